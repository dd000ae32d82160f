//===- Elements.h - what elements and bodies are besides numbers *- C++ -*-===//
#ifndef PTC_IR_PRIM_ELEMENTS_H
#define PTC_IR_PRIM_ELEMENTS_H

#include "mlir/IR/BuiltinTypes.h"

namespace ptc::prim {

/// Complex numbers, which only move: an integer without a sign is the bits of two floats of half its width, the real
/// part in the low ones.
inline bool isComplex(mlir::Type elementType) { return elementType.isSignlessInteger() && !elementType.isInteger(1); }

/// On a `prim.mul` of floats, and on the operation in its scalar body: the product is rounded, under every --fp, before
/// a sum takes it.
inline constexpr llvm::StringLiteral roundedAttr = "prim.rounded";

/// On a `prim.convert` between narrow floats and f32 that is no cast of the model's: what it converts may stay wide.
inline constexpr llvm::StringLiteral unroundedAttr = "prim.unrounded";

/// On a product in f32, and on its contraction: --autocast leaves its operands as they are, and its sums are computed
/// as they stand. Those of whole numbers, which f32 holds, are exact.
inline constexpr llvm::StringLiteral keepsTypeAttr = "prim.keeps_type";

/// On functions: a list of names. Of a map NAME of the source model, the keys are the argument or result NAME.keys and
/// the values NAME.values.
inline constexpr llvm::StringLiteral mapsAttr = "prim.maps";
inline constexpr llvm::StringLiteral mapKeysSuffix = ".keys", mapValuesSuffix = ".values";

} // namespace ptc::prim

#endif // PTC_IR_PRIM_ELEMENTS_H
