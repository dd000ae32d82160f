//===- Patterns.h - questions that passes ask of prim values ----*- C++ -*-===//
#ifndef PTC_LOWERING_PASSES_PATTERNS_H
#define PTC_LOWERING_PASSES_PATTERNS_H

#include "ir/prim/Prim.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace ptc::prim {

/// The elements of a constant; null for other values.
mlir::DenseElementsAttr getConstant(mlir::Value value);

/// The one value that all elements have, seen through views; nothing for booleans.
std::optional<double> getSplat(mlir::Value value);

/// Whether the op makes wider numbers: whoever reads them reads the narrow ones.
bool widens(mlir::Operation *op);

/// Adds those who read elements of the value: who reads views and wider numbers of it, taps aside.
void listReaders(mlir::Value value, llvm::SmallVectorImpl<mlir::Operation *> &readers);

/// Whether exactly `count` operands are `value`, those of optional taps aside.
bool hasUses(mlir::Value value, unsigned count);

/// Whether elements are integers of so many bits, signed or unsigned.
bool isInteger(mlir::Value value, unsigned bits);

/// 8-bit integers and their zero point.
struct Bytes {
  mlir::Value q;
  double zero = 0;
};
/// q - zero in f32, by way of signed 32-bit integers: in others the difference would wrap.
std::optional<Bytes> matchBytes(mlir::Value value);

/// convert(round(quotient) + zero)
struct Quantization {
  RoundOp round;
  double zero = 0;
  bool isAlone = true; // nothing else reads what is rounded
};
/// What rounds f32 to 8-bit integers.
std::optional<Quantization> matchQuantization(ConvertOp op);

/// Adds to the function's list of weights that constants were computed from: nothing may replace them at run time.
void noteFoldedWeights(mlir::func::FuncOp function, llvm::ArrayRef<mlir::StringAttr> names);

} // namespace ptc::prim

#endif // PTC_LOWERING_PASSES_PATTERNS_H
