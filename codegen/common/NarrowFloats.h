//===- NarrowFloats.h - conversions that a processor lacks ------*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_NARROWFLOATS_H
#define PTC_CODEGEN_COMMON_NARROWFLOATS_H

#include "mlir/IR/Operation.h"

namespace ptc::cpu {

/// Replaces each conversion between f32 and bf16 in `root` by integer arithmetic, where LLVM would call a library
/// function for every element.
void expandBf16Conversions(mlir::Operation *root);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_COMMON_NARROWFLOATS_H
