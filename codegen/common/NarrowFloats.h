//===- NarrowFloats.h - conversions that a processor lacks ------*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_NARROWFLOATS_H
#define PTC_CODEGEN_COMMON_NARROWFLOATS_H

#include "mlir/IR/Operation.h"

namespace ptc::codegen {

/// Replaces each conversion between f32 and bf16 in `root` by integer arithmetic, where LLVM would call a library
/// function for every element.
void expandBf16Conversions(mlir::Operation *root);

/// The same for floats of 4 and 8 bits, which no CPU level converts: E4M3FN, E5M2, their FNUZ variants, E2M1FN and
/// E8M0FNU, from and to any wider float. Overflow gives what the type has for it: infinity in E5M2, the largest value
/// in E2M1FN, NaN in the others.
void expandNarrowFloatConversions(mlir::Operation *root);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_NARROWFLOATS_H
