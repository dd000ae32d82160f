//===- Sequences.h - lists of tensors while importing -----------*- C++ -*-===//
//
// A sequence whose length is known is the list of operands of the call that makes
// it, so that operators on it choose among values, and the call is dropped when
// nothing needs the sequence itself.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_DECOMP_SEQUENCES_H
#define PTC_LOWERING_DECOMP_SEQUENCES_H

#include "lowering/decomp/PrimBuilder.h"

namespace ptc::decomp {

/// The tensors of a sequence whose length is known.
std::optional<Values> knownItems(Value sequence);
/// The type of a tensor inside a sequence: `?` for what is not a constant.
mlir::TensorType itemType(Value tensor);
/// What both types are cases of; null if they have different elements.
mlir::TensorType joinItems(mlir::TensorType a, mlir::TensorType b);
/// The type of a value that is a sequence of such tensors.
mlir::RankedTensorType sequenceOf(mlir::TensorType item, bool isOptional = false);
/// The type of which two sequences are both cases; null, undiagnosed, if there is none. A sequence and an optional one
/// are optional values.
mlir::Type joinSequences(PrimBuilder &n, Value a, Value b);
/// The sequence as a value of a type that `joinSequences` has given.
Value convertSequence(PrimBuilder &n, Value sequence, mlir::Type type);
/// A sequence without tensors, of which nothing is known but their elements.
Value emptySequence(PrimBuilder &n, mlir::Type element);
/// How many tensors a sequence has, a scalar.
Value sequenceLengthOf(PrimBuilder &n, Value sequence);
/// The tensor at a position, an si64 scalar that is known or not.
Value sequenceItem(PrimBuilder &n, Value sequence, Value position);
/// The sequence with one tensor more, behind the others.
Value appendItem(PrimBuilder &n, Value sequence, Value tensor);
/// The type that the tensors of `sequence` have by what is put into it on the way from those of `empty`, sequences of
/// which nothing is known; null if that is nothing.
mlir::TensorType itemsAdded(Value sequence, llvm::ArrayRef<Value> empty);
/// What an optional value is, which has to be there when the program comes here.
Value presentValue(PrimBuilder &n, Value optional);
inline bool isOptional(Value x) {
  auto type = llvm::dyn_cast<prim::SequenceType>(prim::getElementType(x));
  return type && type.getOptional();
}

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_SEQUENCES_H
