// The search behind `ptc tune` and `--mode=max-autotune`.
#ifndef PTC_CLI_TUNE_KERNELTUNER_H
#define PTC_CLI_TUNE_KERNELTUNER_H

#include "cli/CompileSession.h"
#include "compiler/gate/PairedTimes.h"
#include "compiler/tuning/Tuning.h"

namespace ptc {

struct TunerOptions {
  CompileOptions compile; // of the library that the tuning is for; its mode and tune file do not count
  std::vector<std::string> inputs;
  double seconds = 60;  // that the search may take, about
  unsigned threads = 0; // 0: all
};

struct TunerResult {
  Tuning tuning;
  gate::Interval ratio;               // time of a run with the tuning / as planned
  size_t alternatives = 0, tried = 0; // in kernels that count
};

/// Compiles and times the model's kernels with other numbers than their planner's, and writes the tuning file `output`
/// ("-": standard output).
llvm::Expected<TunerResult> tuneKernels(Session &session, llvm::StringRef verb, const TunerOptions &options,
                                        llvm::StringRef output);

/// " m_blocks=2 n_blocks=4"
std::string formatNumbers(const TunedNumbers &numbers);

/// A sentence about it.
std::string describe(const TunerResult &result);

} // namespace ptc

#endif // PTC_CLI_TUNE_KERNELTUNER_H
