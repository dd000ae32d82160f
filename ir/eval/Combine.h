//===- Combine.h - the combinations of reductions and scatters --*- C++ -*-===//
#ifndef PTC_IR_EVAL_COMBINE_H
#define PTC_IR_EVAL_COMBINE_H

#include "ir/prim/Prim.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace ptc::eval {

/// Associative, with an identity. Any and All are maximum and minimum of booleans.
enum class Combination { Sum, Product, Maximum, Minimum };

inline Combination getCombination(prim::ReduceKind kind) {
  switch (kind) {
  case prim::ReduceKind::Sum:
    return Combination::Sum;
  case prim::ReduceKind::Prod:
    return Combination::Product;
  case prim::ReduceKind::Max:
  case prim::ReduceKind::Any:
    return Combination::Maximum;
  case prim::ReduceKind::Min:
  case prim::ReduceKind::All:
    return Combination::Minimum;
  }
  llvm_unreachable("all kinds of reductions are listed");
}

/// NaN wins in maximum and minimum.
inline double combine(Combination kind, double a, double b) {
  switch (kind) {
  case Combination::Sum:
    return a + b;
  case Combination::Product:
    return a * b;
  case Combination::Maximum:
    return std::isnan(a) || a > b || (a == b && !std::signbit(a)) ? a : b;
  case Combination::Minimum:
    return std::isnan(a) || a < b || (a == b && std::signbit(a)) ? a : b;
  }
  llvm_unreachable("all combinations are listed");
}

/// Sums and products wrap at 64 bits, which is right for every narrower width.
inline int64_t combine(Combination kind, int64_t a, int64_t b, bool isUnsigned) {
  bool less = isUnsigned ? uint64_t(a) < uint64_t(b) : a < b;
  switch (kind) {
  case Combination::Sum:
    return int64_t(uint64_t(a) + uint64_t(b));
  case Combination::Product:
    return int64_t(uint64_t(a) * uint64_t(b));
  case Combination::Maximum:
    return less ? b : a;
  case Combination::Minimum:
    return less ? a : b;
  }
  llvm_unreachable("all combinations are listed");
}

inline double floatIdentity(Combination kind) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
  case Combination::Sum:
    return 0;
  case Combination::Product:
    return 1;
  case Combination::Maximum:
    return -infinity;
  case Combination::Minimum:
    return infinity;
  }
  llvm_unreachable("all combinations are listed");
}

inline int64_t integerIdentity(Combination kind, unsigned width, bool isUnsigned) {
  int64_t top = int64_t(uint64_t(1) << (width - 1));
  switch (kind) {
  case Combination::Sum:
    return 0;
  case Combination::Product:
    return 1;
  case Combination::Maximum:
    return isUnsigned ? 0 : int64_t(-uint64_t(top));
  case Combination::Minimum:
    return isUnsigned ? int64_t(uint64_t(top) * 2 - 1) : int64_t(uint64_t(top) - 1);
  }
  llvm_unreachable("all combinations are listed");
}

} // namespace ptc::eval

#endif // PTC_IR_EVAL_COMBINE_H
