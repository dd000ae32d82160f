// What a compile needs of a session.
#ifndef PTC_CLI_COMPILESESSION_H
#define PTC_CLI_COMPILESESSION_H

#include "cli/Session.h"
#include "compiler/Pipeline.h"

namespace ptc {

/// Refers to the session.
CompileHooks hooksOf(Session &session, llvm::StringRef verb);

} // namespace ptc

#endif // PTC_CLI_COMPILESESSION_H
