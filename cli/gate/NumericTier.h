// The numeric tier of `ptc gate`: how far a library's outputs are from the reference.
#ifndef PTC_CLI_GATE_NUMERICTIER_H
#define PTC_CLI_GATE_NUMERICTIER_H

#include "cli/InputSpecs.h"
#include "compiler/Options.h"
#include "compiler/gate/Numerics.h"

namespace ptc {

struct NumericTierOptions {
  std::vector<std::string> levels; // of the library
  std::vector<uint64_t> seeds = {0};
  std::vector<std::string> inputs; // specs for inputs that random numbers do not suit; they win over the seeds
  bool namesNodes = false;         // of rows that are worse than recorded, say which nodes make them so
};

struct MeasuredNumerics {
  std::vector<gate::NumericRow> rows; // by level, seed, output
  std::vector<std::string> skipped;   // levels of the library that this machine does not run
};

/// Runs each level of `library`, which `options` made, at the dims' hints. `recorded` spares the reference: what has
/// the bits that were recorded is as far from it as was recorded.
llvm::Expected<MeasuredNumerics> measureNumerics(Session &session, const CompileOptions &options,
                                                 llvm::StringRef library, const NumericTierOptions &how,
                                                 llvm::ArrayRef<gate::NumericRow> recorded);

} // namespace ptc

#endif // PTC_CLI_GATE_NUMERICTIER_H
