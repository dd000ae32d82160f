// What every verb is given: where to write, how to complain, how loud to be.
#ifndef PTC_CLI_SESSION_H
#define PTC_CLI_SESSION_H

#include "cli/Crash.h"
#include "cli/Progress.h"
#include "compiler/DiagnosticRendering.h"

namespace ptc {

/// Options that all verbs have.
struct CommonOptions {
  bool verbose = false;
  bool quiet = false;
  std::string color = "auto";       // always, never
  std::string diagnostics = "text"; // json, sarif
};

struct CompilerParts;

struct Session {
  CommonOptions common;
  Diagnostics &diagnostics;
  Progress &progress;
  Crash &crash;
  llvm::raw_ostream &out;                 // results
  std::string program;                    // argv[0]
  std::vector<std::string> arguments;     // as given, for reproducers
  std::vector<std::string> argumentFiles; // @FILE, that some of them were read from
  const CompilerParts &parts;             // the compiler that verbs drive

  /// A line of -v.
  void log(const llvm::Twine &line) const;
  /// A line that a user sees unless -q.
  void say(const llvm::Twine &line) const;
};

} // namespace ptc

#endif // PTC_CLI_SESSION_H
