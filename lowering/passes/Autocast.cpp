//===- Autocast.cpp - products that read narrow operands ------------------===//
//
// A product in f32 reads its operands rounded to bf16 or f16 and adds up in f32:
//
//   matmul(a, b)   ->   matmul(f32(a'), f32(b'))     a' = views(convert(x)) where a = views(x)
//
// So for matrix products, convolutions and attention; everything else, and what is fused behind a product, stays in
// f32. Rounding stands below reshapes and transposes: what readers share is rounded and stored once, and of a weight it
// is a stored form (prim::isNarrowedWeight).
//
// In loops products stay as they are: a recurrent cell's error grows with the steps. So do those of nodes that the user
// names (prim::keepsTypeAttr).
//
// Invariant: types of values that other ops read do not change.
//
//===----------------------------------------------------------------------===//
#include "ir/prim/Elements.h"
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"

namespace ptc {
#define GEN_PASS_DEF_AUTOCAST
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

/// A constant's elements, rounded to nearest even.
static DenseElementsAttr rounded(DenseElementsAttr elements, FloatType to) {
  return cast<DenseFPElementsAttr>(elements).mapValues(to, [&](const APFloat &x) {
    APFloat y = x;
    bool losesInfo;
    y.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    return y.bitcastToAPInt();
  });
}

/// `value` in the narrow type, rounded below its views.
static Value narrowed(OpBuilder &b, Value value, FloatType to) {
  Operation *op = value.getDefiningOp();
  Type type = getTensorType(getDims(value), to);
  if (auto convert = dyn_cast_if_present<ConvertOp>(op); convert && getElementType(convert.getX()) == to)
    return convert.getX();
  if (isa_and_nonnull<ReshapeOp, TransposeOp>(op)) {
    Value inner = narrowed(b, op->getOperand(0), to);
    Operation *view = b.clone(*op);
    view->setOperand(0, inner);
    view->getResult(0).setType(type);
    return view->getResult(0);
  }
  Location loc = op ? op->getLoc() : value.getLoc();
  if (auto constant = dyn_cast_if_present<ConstantOp>(op))
    if (auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue()))
      return ConstantOp::create(b, loc, type, rounded(elements, to));
  return ConvertOp::create(b, loc, type, value);
}

namespace {
struct Autocast : ptc::impl::AutocastBase<Autocast> {
  using AutocastBase::AutocastBase;

  void runOnOperation() override {
    FloatType to = type == "f16" ? FloatType(Float16Type::get(&getContext())) : BFloat16Type::get(&getContext());
    SmallVector<Operation *> products;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<LoopOp>(op))
        return WalkResult::skip();
      bool isProduct = isa<MatmulOp, ConvolutionOp, AttentionOp>(op) && !op->hasAttr(keepsTypeAttr);
      if (isProduct && getElementType(op->getResult(0)).isF32())
        products.push_back(op);
      return WalkResult::advance();
    });
    for (Operation *op : products) {
      OpBuilder b(op);
      unsigned operands = isa<AttentionOp>(op) ? 3 : 2; // masks stay
      for (OpOperand &operand : op->getOpOperands().take_front(operands)) {
        Value narrow = narrowed(b, operand.get(), to);
        operand.set(ConvertOp::create(b, op->getLoc(), operand.get().getType(), narrow));
      }
    }
    eraseDeadOps(getOperation());
  }
};
} // namespace
