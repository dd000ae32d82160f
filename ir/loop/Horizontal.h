//===- Horizontal.h - kernels of nodes side by side -------------*- C++ -*-===//
//
// The nodes of a horizontal group or kernel are independent of each other and share no dims: each has its own part of
// the launch, and nobody knows which runs first.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_HORIZONTAL_H
#define PTC_IR_LOOP_HORIZONTAL_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace ptc::loop {

constexpr llvm::StringLiteral horizontalName = "horizontal"; // an attribute of loop.fused and loop.kernel

inline bool isHorizontal(mlir::Operation *op) { return op->hasAttr(horizontalName); }
inline void setHorizontal(mlir::Operation *op) { op->setAttr(horizontalName, mlir::UnitAttr::get(op->getContext())); }

} // namespace ptc::loop

#endif // PTC_IR_LOOP_HORIZONTAL_H
