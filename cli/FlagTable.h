// The flags of a verb as a table in Markdown: what `ptc VERB --help=markdown` prints and the pages in docs/ show.
#ifndef PTC_CLI_FLAGTABLE_H
#define PTC_CLI_FLAGTABLE_H

#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>

namespace ptc {

/// One table for each group of flags, in the order of --help; the arguments without a name come first. A verb's own
/// verbs come before what is common to them.
void printFlagTable(llvm::raw_ostream &os, const CLI::App &app);

} // namespace ptc

#endif // PTC_CLI_FLAGTABLE_H
