// The numeric tier of a baseline: how far each output is from the reference, on inputs that follow from the interface.
#ifndef PTC_COMPILER_GATE_NUMERICS_H
#define PTC_COMPILER_GATE_NUMERICS_H

#include "compiler/gate/Finding.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace ptc::gate {

/// One output of one function, its tolerances beside it.
struct NumericRow {
  std::string function, output;
  int64_t maxUlp = 0, p99Ulp = 0;                   // distance to the reference, in units in the last place
  int64_t maxUlpTolerance = 0, p99UlpTolerance = 0; // the largest accepted
  int64_t nans = 0, infinities = 0;                 // exact
  bool threadsEqual = true;                         // one thread gives the bits that all threads give
};

llvm::json::Value toJson(const NumericRow &row);
llvm::Expected<NumericRow> parseNumericRow(const llvm::json::Value &value);

/// Appends what differs. `after` holds no rows if nothing was measured; then nothing is compared.
void compareNumerics(llvm::ArrayRef<NumericRow> before, llvm::ArrayRef<NumericRow> after,
                     std::vector<Finding> &findings);

} // namespace ptc::gate

#endif // PTC_COMPILER_GATE_NUMERICS_H
