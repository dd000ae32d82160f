// What a compile needs of a session.
#ifndef PTC_CLI_COMPILESESSION_H
#define PTC_CLI_COMPILESESSION_H

#include "cli/Session.h"
#include "compiler/Pipeline.h"

namespace ptc {

/// The parts of the compiler that a program may have of its own; by default they are ptc's.
struct CompilerParts {
  codegen::TargetTable targets = codegen::getTargets();
  std::function<void(Phase, mlir::OpPassManager &)> changePasses = {};
};

/// The whole of ptc: verb, flags, exit code.
int runProgram(int argc, char **argv, const CompilerParts &parts);

/// Refers to the session.
CompileHooks hooksOf(Session &session, llvm::StringRef verb);

} // namespace ptc

#endif // PTC_CLI_COMPILESESSION_H
