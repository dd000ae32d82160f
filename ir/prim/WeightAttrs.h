//===- WeightAttrs.h - what is known about weights beside their ops -*- C++ -*-===//
//
// A weight that a caller may replace must be known by what the model says of it,
// and every value that was made of it must be one that can be made again.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_PRIM_WEIGHTATTRS_H
#define PTC_IR_PRIM_WEIGHTATTRS_H

#include "ir/prim/Prim.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringRef.h"

namespace ptc::prim {

/// On a `loop.weight`: the tensor type that the model declares, whatever the stored form.
inline constexpr llvm::StringLiteral sourceTypeAttr = "source";
/// On a `loop.weight` of bytes: each holds several elements of the model's weight, of so many bits, the first lowest;
/// the recipe says where elements come from.
inline constexpr llvm::StringLiteral packedBitsAttr = "packed_bits";
/// On a `prim.weight` or `loop.weight` with others: the weights are matrices of these numbers of rows, one behind
/// another along the first dim instead of a new one.
inline constexpr llvm::StringLiteral partRowsAttr = "part_rows";
/// On a `prim.weight` or `loop.weight` with others that are matrices: for each of them, whether it is its transpose
/// that lies so.
inline constexpr llvm::StringLiteral turnedAttr = "turned";
/// On a function or program: names of weights whose values went into constants.
inline constexpr llvm::StringLiteral foldedWeightsAttr = "prim.folded_weights";

/// The references of an op for one weight or several: the first, and those of `others`, which may be null.
llvm::SmallVector<WeightRefAttr> getWeightRefs(WeightRefAttr first, mlir::ArrayAttr others);

/// Whether part `number` of an op for several weights is the transpose of that weight.
bool isTurnedPart(mlir::Operation *weight, size_t number);
/// Says so of each part, if any is.
void setTurned(mlir::Operation *weight, llvm::ArrayRef<bool> turned);

/// Whether the op rounds a weight of f32 to a narrower float: a stored form of the weight, which is never computed.
bool isNarrowedWeight(mlir::Operation *op);

} // namespace ptc::prim

#endif // PTC_IR_PRIM_WEIGHTATTRS_H
