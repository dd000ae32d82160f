// The numeric tier of a baseline: how far each output is from the reference, on inputs that follow from the interface.
#ifndef PTC_COMPILER_GATE_NUMERICS_H
#define PTC_COMPILER_GATE_NUMERICS_H

#include "compiler/gate/Finding.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace ptc::gate {

/// One output of one function at one CPU level, on the inputs of one seed. Its tolerances stand beside it.
struct NumericRow {
  std::string function, output, level;
  int64_t seed = 0;
  int64_t maxUlp = 0, p99Ulp = 0;                   // distance to the reference, in units in the last place
  int64_t maxUlpTolerance = 0, p99UlpTolerance = 0; // the largest accepted
  int64_t nans = 0, infinities = 0;                 // of the output; the reference has as many
  std::string digest;                               // of the output's bytes, whose distances these are
  // Of this measurement alone; recorded rows have none of it.
  int64_t nansExpected = 0, infinitiesExpected = 0; // what the reference has
  bool threadsEqual = true;                         // one thread gives the bits that several give
  std::vector<std::string> nodes; // if it is worse than recorded: the nodes that make it so, as far as they are known
  std::string cause;              // and how they differ, in words
};

/// Room for a change that leaves the order of errors as it is (a sum in another order), not for a wrong constant.
int64_t defaultUlpTolerance(int64_t ulp);

/// Whether the output is further off than the recorded tolerances allow, or has other NaN or infinities than the
/// reference.
bool isWorse(const NumericRow &recorded, const NumericRow &measured);
/// The recorded row of the same output, level and seed; null if there is none.
const NumericRow *findRow(llvm::ArrayRef<NumericRow> recorded, const NumericRow &measured);

llvm::json::Value toJson(const NumericRow &row);
llvm::Expected<NumericRow> parseNumericRow(const llvm::json::Value &value);

/// Tolerances that a person wrote stay: those that are not the default of their figure.
void keepTolerances(llvm::ArrayRef<NumericRow> before, llvm::MutableArrayRef<NumericRow> after);

/// Appends what differs, of the levels and seeds that both have: a machine does not run every level.
void compareNumerics(llvm::ArrayRef<NumericRow> before, llvm::ArrayRef<NumericRow> after,
                     std::vector<Finding> &findings);
/// Appends what is wrong with a measurement whatever was recorded.
void checkNumerics(llvm::ArrayRef<NumericRow> rows, std::vector<Finding> &findings);

} // namespace ptc::gate

#endif // PTC_COMPILER_GATE_NUMERICS_H
