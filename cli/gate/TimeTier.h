// The time tier of `ptc gate check`: a library against another one, in turns.
#ifndef PTC_CLI_GATE_TIMETIER_H
#define PTC_CLI_GATE_TIMETIER_H

#include "cli/TimedModel.h"
#include "compiler/gate/PairedTimes.h"

namespace ptc {

struct TimeTierOptions {
  TimedModelOptions model; // instance.threads: 1 is timed by the processor time of its thread, more by the wall clock
  gate::TimeRule rule;
  double seconds = 60; // that one measurement may take at most
};

/// A copy of the library made ready to be timed, its file gone: where the page cache keeps a file makes code up to 4 %
/// faster or slower, and a file that a linker wrote differs in that from one that was copied.
llvm::Expected<TimedModel> prepareCopy(Session &session, llvm::StringRef path, const TimedModelOptions &options);

/// Whether `subject` takes longer than `other`, both paths of libraries with the same inputs.
llvm::Expected<gate::TimeResult> compareLibraries(Session &session, llvm::StringRef subject, llvm::StringRef other,
                                                  const TimeTierOptions &options);

/// "1.102 times the other's time (between 1.087 and 1.115): 8.81 ms a run against 8.00 ms, 48 pairs, 3 measurements"
std::string describeTimes(const gate::TimeResult &result);

} // namespace ptc

#endif // PTC_CLI_GATE_TIMETIER_H
