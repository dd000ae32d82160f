//===- ScalarProgram.h - scalar bodies, interpreted -------------*- C++ -*-===//
#ifndef PTC_IR_EVAL_SCALARPROGRAM_H
#define PTC_IR_EVAL_SCALARPROGRAM_H

#include "ir/eval/Tensor.h"
#include "mlir/IR/Block.h"
#include <functional>

namespace ptc::eval {

/// A straight-line body of arith and math ops, turned into steps over slots that
/// hold a block of elements each. Floats are kept as double, integers as bits of
/// their width, zero-extended.
class ScalarProgram {
public:
  /// Elements computed at a time.
  static constexpr int64_t width = 256;
  using Slot = std::vector<uint64_t>;
  using Step = std::function<void(std::vector<Slot> &, int64_t count)>;

  /// The body is `block` without terminator; it computes `result`.
  static llvm::Expected<ScalarProgram> create(mlir::Block &block, mlir::Value result);

  /// result[i] = body(operands[0][i], ...) for all elements.
  void run(llvm::ArrayRef<const Tensor *> operands, Tensor &result) const;

private:
  size_t slotCount = 0, resultSlot = 0;
  std::vector<Step> steps;
  std::vector<std::pair<size_t, uint64_t>> constants;
};

} // namespace ptc::eval

#endif // PTC_IR_EVAL_SCALARPROGRAM_H
