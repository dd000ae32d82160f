//===- Passes.h - passes from prim to loop ----------------------*- C++ -*-===//
#ifndef PTC_LOWERING_PRIM_TO_LOOP_PASSES_H
#define PTC_LOWERING_PRIM_TO_LOOP_PASSES_H

#include "ir/loop/Loop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace ptc::eval {
class WeightSource;
}

namespace ptc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lowering/prim_to_loop/Passes.h.inc"

/// ChooseStrassen that reads weights; null: none are. The source outlives the pass.
std::unique_ptr<mlir::Pass> createChooseStrassen(eval::WeightSource *weights);
} // namespace ptc

#endif // PTC_LOWERING_PRIM_TO_LOOP_PASSES_H
