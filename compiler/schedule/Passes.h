//===- Passes.h - passes of the schedule stage ------------------*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_PASSES_H
#define PTC_COMPILER_SCHEDULE_PASSES_H

#include "ir/loop/Loop.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <functional>
#include <optional>

namespace ptc {
/// The first part of the metadata of a remark about two nodes that were not fused; the producer's name and the reason
/// follow.
constexpr llvm::StringLiteral refusedFusion = "refused-fusion";

/// What a device has no code of, of a kernel, for people; nothing: it runs the kernel.
using WhyNoCode = std::function<std::optional<std::string>(loop::KernelOp)>;

#define GEN_PASS_DECL
#include "compiler/schedule/Passes.h.inc"

std::unique_ptr<mlir::Pass> createPlaceOnHost(const PlaceOnHostOptions &options = {}, WhyNoCode whyNoCode = {});

#define GEN_PASS_REGISTRATION
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

#endif // PTC_COMPILER_SCHEDULE_PASSES_H
