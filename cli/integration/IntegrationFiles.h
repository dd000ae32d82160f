// Where the files for users' build systems lie: `ptc --mk` and `ptc --cmake` print it.
#ifndef PTC_CLI_INTEGRATION_INTEGRATIONFILES_H
#define PTC_CLI_INTEGRATION_INTEGRATIONFILES_H

#include "llvm/Support/Error.h"
#include <string>

namespace ptc {

/// The absolute path of `path` ("share/ptc/ptc.mk"), a file of the integration or a folder of such: below the prefix
/// that this program is installed in, or, for a program that was copied alone, below a folder of the user's cache,
/// where it is written on first use.
llvm::Expected<std::string> findIntegration(llvm::StringRef path, llvm::StringRef program);

} // namespace ptc

#endif // PTC_CLI_INTEGRATION_INTEGRATIONFILES_H
