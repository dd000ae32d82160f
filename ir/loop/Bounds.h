//===- Bounds.h - a number that bounds another ------------------*- C++ -*-===//
//
// The larger or the smaller of x and a number, as nodes have it: the number where x is NaN.
//
//   %0 = arith.cmpf olt, %x, %c    %1 = arith.select %0, %x, %c            x or c, whichever is smaller
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_BOUNDS_H
#define PTC_IR_LOOP_BOUNDS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <optional>

namespace ptc::loop {

struct Bounded {
  mlir::Value x;
  double number;
  bool isUpper; // else the number is a lower bound
};

/// What the selection is of floats, or of vectors of them whose lanes have one bound; nothing otherwise. Loads of one
/// element in a block, between which nothing is stored, count as one value.
std::optional<Bounded> findBound(mlir::arith::SelectOp select);

/// Whether the two are one value, or loads as above.
bool isSameValue(mlir::Value a, mlir::Value b);

} // namespace ptc::loop

#endif // PTC_IR_LOOP_BOUNDS_H
