//===- ToldNumbers.h - scalars that a launch says ---------------*- C++ -*-===//
//
// The low bits of a symbol's value, as a number to compute with, in the place of a constant:
//
//   %0 = loop.index s3 {loop.number}    %1 = arith.trunci %0 : i64 to i32    %2 = arith.bitcast %1 : i32 to f32
//
// A float's magnitude is above 2^-100 and below 2^100.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_TOLDNUMBERS_H
#define PTC_IR_LOOP_TOLDNUMBERS_H

#include "ir/loop/Loop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace ptc::loop {

inline constexpr llvm::StringLiteral numberAttr = "loop.number";

/// Whether the op is, or is a step of, a number that the launch says.
inline bool isToldNumber(mlir::Operation *op) {
  if (op && llvm::isa<mlir::arith::TruncIOp, mlir::arith::BitcastOp>(op))
    return isToldNumber(op->getOperand(0).getDefiningOp());
  return op && llvm::isa<IndexOp>(op) && op->hasAttr(numberAttr);
}

/// Whether the op is a step of a number on the way to another: where operations are counted a number is one, as a
/// constant is.
inline bool isStepOfNumber(mlir::Operation *op) {
  return isToldNumber(op) && llvm::any_of(op->getUsers(), isToldNumber);
}

/// Whether the op costs nothing, since its value is the same wherever the kernel runs.
inline bool isNumber(mlir::Operation *op) { return llvm::isa<mlir::arith::ConstantOp>(op) || isToldNumber(op); }

} // namespace ptc::loop

#endif // PTC_IR_LOOP_TOLDNUMBERS_H
