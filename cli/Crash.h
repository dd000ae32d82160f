// What is said when the process dies by a signal.
#ifndef PTC_CLI_CRASH_H
#define PTC_CLI_CRASH_H

#include "llvm/ADT/StringRef.h"

namespace ptc {

/// Lives as long as the process; the handlers only read it and write to standard error.
class Crash {
public:
  /// Makes crashes, exhausted memory and fatal errors of LLVM end the process with a sentence and an exit code.
  void install();
  /// Does not return once a signal is ending the process: what fails from then on fails because its files are gone.
  static void waitIfInterrupted();
  /// From here on code of this library runs: a crash may be its own.
  void suspect(llvm::StringRef library);

private:
  static void report(void *crash);
  char library[512] = {};
};

} // namespace ptc

#endif // PTC_CLI_CRASH_H
