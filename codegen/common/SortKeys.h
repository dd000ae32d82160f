//===- SortKeys.h - sort keys as integers of one order ----------*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_SORTKEYS_H
#define PTC_CODEGEN_COMMON_SORTKEYS_H

#include "codegen/common/KernelEmitter.h"

namespace ptc::codegen {

/// The key as a signed i64 of the order wanted: floats by their bits, -0 equal to +0, NaN above everything; descending
/// order by complement.
mlir::Value orderedKey(KernelEmitter &e, mlir::Value key, bool isUnsigned, bool descending);
/// The same in fewer bits, or of a vector: `type` has at least the bits of a key.
mlir::Value orderedKey(KernelEmitter &e, mlir::Value key, bool isUnsigned, bool descending, mlir::IntegerType type);
/// What a key of `type` was: -0 is +0 now, every NaN the same one.
mlir::Value valueOfKey(KernelEmitter &e, mlir::Value ordered, bool isUnsigned, bool descending, mlir::Type type);
/// i1: whether a value is the one that its key does not tell from another, -0; null where all keys differ.
mlir::Value isNegativeZero(KernelEmitter &e, mlir::Value value);
/// Of 32 or 64 bits: the least that keys of a scalar type fit in.
mlir::IntegerType narrowKeyType(mlir::Type type);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_SORTKEYS_H
