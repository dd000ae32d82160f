//===- Transform.h - discrete Fourier transforms ----------------*- C++ -*-===//
#ifndef PTC_LOWERING_DECOMP_TRANSFORM_H
#define PTC_LOWERING_DECOMP_TRANSFORM_H

#include "lowering/decomp/NodeContext.h"

namespace ptc::decomp {

/// Complex values as two tensors; `im` is null where all are real.
struct ComplexParts {
  Value re, im;
};

struct TransformKind {
  bool isInverse = false;
  bool isOnesided = false; // the n/2 + 1 first frequencies stand for all: those of a real signal
  bool areRows = false;    // many short signals: a product with a matrix is tried first
};

/// The transform of the last dim, which has `length` elements (length/2 + 1 of a onesided inverse, whose result is
/// real).
ComplexParts transform(NodeContext &n, ComplexParts x, Expr length, TransformKind kind);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_TRANSFORM_H
