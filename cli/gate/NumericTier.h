// The numeric tier of `ptc gate`: what it asks of whoever measures a freshly compiled library.
#ifndef PTC_CLI_GATE_NUMERICTIER_H
#define PTC_CLI_GATE_NUMERICTIER_H

#include "cli/Session.h"
#include "compiler/gate/Observe.h"

namespace ptc {

/// Rows for each output of the library, by running it; `options` made it.
using MeasureNumerics = std::function<llvm::Expected<std::vector<gate::NumericRow>>(
    Session &session, const CompileOptions &options, llvm::StringRef library)>;

} // namespace ptc

#endif // PTC_CLI_GATE_NUMERICTIER_H
