//===- Passes.h - passes of the schedule stage ------------------*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_PASSES_H
#define PTC_COMPILER_SCHEDULE_PASSES_H

#include "ir/loop/Loop.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ptc {
/// The first part of the metadata of a remark about two nodes that were not fused; the producer's name and the reason
/// follow.
constexpr llvm::StringLiteral refusedFusion = "refused-fusion";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

#endif // PTC_COMPILER_SCHEDULE_PASSES_H
