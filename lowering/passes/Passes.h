//===- Passes.h - passes from prim to prim ----------------------*- C++ -*-===//
#ifndef PTC_LOWERING_PASSES_PASSES_H
#define PTC_LOWERING_PASSES_PASSES_H

#include "ir/prim/Prim.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace ptc::eval {
class WeightSource;
}

namespace ptc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lowering/passes/Passes.h.inc"

/// Limits, in bytes, of operands and results of what is computed at compile time.
struct FoldedBytes {
  int64_t constants = 0; // which the IR holds
  int64_t computed = 0;  // on the way to small results and to weights of weights (FoldConstants.cpp); 0: none
};
/// FoldConstants that also reads weights, such as the parameters of a normalisation. The source outlives the pass.
std::unique_ptr<mlir::Pass> createFoldConstants(FoldedBytes limits, eval::WeightSource &weights);
/// NarrowProducts that sums the columns of weights; null: of none. The source outlives the pass. `packsComputed`:
/// kernels pack bytes that are no weight.
std::unique_ptr<mlir::Pass> createNarrowProducts(eval::WeightSource *weights, bool packsComputed);
/// FoldMirroredFilters that compares weights, too; null: constants alone. The source outlives the pass.
std::unique_ptr<mlir::Pass> createFoldMirroredFilters(eval::WeightSource *weights);
} // namespace ptc

#endif // PTC_LOWERING_PASSES_PASSES_H
