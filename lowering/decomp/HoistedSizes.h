//===- HoistedSizes.h - sizes found out in front of a loop ------*- C++ -*-===//
#ifndef PTC_LOWERING_DECOMP_HOISTEDSIZES_H
#define PTC_LOWERING_DECOMP_HOISTEDSIZES_H

#include "lowering/decomp/LoopForm.h"

namespace ptc::decomp {

/// What has moved from the body of a loop under import to the place in front of it.
class HoistedSizes {
public:
  explicit HoistedSizes(NodeContext &n) : n(n) {}

  /// A new import of the body begins; `place` is in front of the loop.
  void start(mlir::OpBuilder::InsertPoint place) { inFront = place; }
  /// Finds out in front of the loop what a size is, where all rounds find out the same; `outside` then knows its
  /// symbols.
  void hoist(Expr size, mlir::Block &body, const LoopForm &form, ShapeScope &outside);
  /// The import did not become part of the program (its body is gone already), or it did.
  void drop();
  void keep() { moved.clear(); }

private:
  void moveOut(llvm::ArrayRef<mlir::Operation *> origin, const LoopForm &form);
  Value doesRun(const LoopForm &form);
  Value inBranch(llvm::ArrayRef<mlir::Operation *> unsure, Value size, Value runs);
  Value inFrontOf(llvm::function_ref<Value()> build);
  void move(mlir::Operation *op);

  NodeContext &n;
  mlir::OpBuilder::InsertPoint inFront;
  llvm::SmallVector<mlir::Operation *> moved; // in order
};

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_HOISTEDSIZES_H
