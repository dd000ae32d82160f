//===- Passes.h - passes of the plan-memory stage ---------------*- C++ -*-===//
#ifndef PTC_COMPILER_MEMORY_PASSES_H
#define PTC_COMPILER_MEMORY_PASSES_H

#include "ir/loop/Loop.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ptc {
/// Of a loop.at: the launch, numbered in the program's order, up to which the plan reserves the buffer's bytes.
constexpr llvm::StringLiteral keptUntilAttr = "loop.kept_until";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/memory/Passes.h.inc"
} // namespace ptc

#endif // PTC_COMPILER_MEMORY_PASSES_H
