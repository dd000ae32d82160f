//===- Passes.h - passes that make variants ----------------------*- C++ -*-===//
#ifndef PTC_COMPILER_SPECIALIZE_PASSES_H
#define PTC_COMPILER_SPECIALIZE_PASSES_H

#include "ir/prim/Prim.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ptc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/specialize/Passes.h.inc"
} // namespace ptc

#endif // PTC_COMPILER_SPECIALIZE_PASSES_H
