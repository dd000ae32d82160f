//===- SymbolicFold.h - values of small tensors as expressions --*- C++ -*-===//
#ifndef PTC_LOWERING_DECOMP_SYMBOLICFOLD_H
#define PTC_LOWERING_DECOMP_SYMBOLICFOLD_H

#include "lowering/decomp/ShapeScope.h"

namespace ptc::decomp {

/// numerator / denominator; integers and booleans have a denominator of 1.
struct Rational {
  Expr numerator, denominator;
  bool isInteger() const { return denominator.isConstant(1); }
};

/// A small tensor whose elements are known in terms of shape symbols.
struct KnownTensor {
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<Rational> elements; // row-major
  int64_t rank() const { return shape.size(); }
};

/// Tensors of more elements are never looked at.
inline constexpr int64_t maxKnownElements = 256;

/// What `value` is, found by interpreting the primitives it comes from.
std::optional<KnownTensor> evaluateSymbolically(mlir::Value value, const ShapeScope &shapes);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_SYMBOLICFOLD_H
