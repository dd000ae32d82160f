// --threads of verbs that compile a model and run it.
#ifndef PTC_CLI_RUNTHREADS_H
#define PTC_CLI_RUNTHREADS_H

#include "compiler/Options.h"
#include <CLI/CLI.hpp>

namespace ptc {

/// Says in the help of --threads, the row of Options.def, that it takes a number of threads, too.
void describeRunThreads(CLI::App &app);
/// Moves the number in --threads=2 or --threads=openmp,2 to `threads`; the kind stays. An error if they exclude each
/// other.
llvm::Error takeRunThreads(CompileOptions &compile, unsigned &threads);

} // namespace ptc

#endif // PTC_CLI_RUNTHREADS_H
