//===- Autocast.cpp - products that read narrow operands ------------------===//
//
// A product in f32 reads its operands rounded to bf16 or f16 and adds up in f32:
//
//   matmul(a, b)   ->   matmul(f32(a'), f32(b'))     a' = views(convert(x)) where a = views(x)
//
// So for matrix products, convolutions and attention; everything else, and what is fused behind a product, stays in
// f32. Rounding stands below views: what readers share is rounded and stored once, and of a weight it is a stored form
// (prim::isNarrowedWeight). Not below a slice of an argument, of which more would be rounded than is read, nor next to
// attention, which writes its result in the order of the views and rounds it as it does.
//
// With `onlyWeights` a product without a weight stays as it is, and so do attention and depthwise convolutions: a
// target that is no faster there would only store more.
//
// In loops (that import has not unrolled) products stay as they are: a recurrent cell's error grows with the steps. So
// do those of nodes that the user names (prim::keepsTypeAttr).
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

static bool isView(Operation *op) { return isa_and_nonnull<ReshapeOp, TransposeOp, SliceOp, BroadcastOp, PadOp>(op); }

/// What lies below views.
static Value baseOf(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Whether products alone read the concat, and concats of which that is true.
static bool isForProducts(ConcatOp concat) {
  llvm::SetVector<Operation *> concats;
  concats.insert(concat);
  for (size_t i = 0; i < concats.size(); ++i)
    for (Operation *user : concats[i]->getUsers())
      if (isa<ConcatOp>(user))
        concats.insert(user);
      else if (!isa<MatmulOp, ConvolutionOp, AttentionOp>(user))
        return false;
  return true;
}

/// Whether the op is a view, or a concat for products alone, below which rounding belongs.
static bool sinksBelow(Operation *op) {
  if (auto concat = dyn_cast_if_present<ConcatOp>(op))
    return isForProducts(concat);
  if (!isView(op))
    return false;
  Operation *base = baseOf(op->getResult(0)).getDefiningOp();
  bool isSliced = false;
  for (Operation *view = op; isView(view); view = view->getOperand(0).getDefiningOp())
    isSliced |= isa<SliceOp>(view);
  return base ? !isa<AttentionOp>(base) : !isSliced;
}

/// `value` in the narrow type, rounded below its views.
static Value narrowed(OpBuilder &b, Value value, FloatType to) {
  Operation *op = value.getDefiningOp();
  Type type = getTensorType(getDims(value), to);
  if (auto convert = dyn_cast_if_present<ConvertOp>(op); convert && getElementType(convert.getX()) == to)
    return convert.getX();
  if (sinksBelow(op)) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(narrowed(b, operand, to));
    Operation *view = b.clone(*op);
    view->setOperands(operands);
    view->getResult(0).setType(type);
    return view->getResult(0);
  }
  Location loc = op ? op->getLoc() : value.getLoc();
  if (auto constant = dyn_cast_if_present<ConstantOp>(op))
    if (auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue()))
      return ConstantOp::create(b, loc, type, rounded(elements, to));
  return ConvertOp::create(b, loc, type, value);
}

/// Whether nothing is added up: every sum has one term.
static bool isOfOneTerm(Operation *op) {
  auto product = dyn_cast<MatmulOp>(op);
  return product && getDims(product.getLhs()).back().isConstant(1);
}

/// Whether an operand is a weight, or a constant, with which more than a window is multiplied at once.
static bool hasWeight(Operation *product) {
  auto convolution = dyn_cast<ConvolutionOp>(product);
  bool isDepthwise = convolution && convolution.getGroups() > 1 && getDims(convolution.getW())[1].isConstant(1);
  return !isDepthwise && !isa<AttentionOp>(product) && llvm::any_of(product->getOperands(), [](Value operand) {
    return isa_and_nonnull<WeightOp, ConstantOp>(baseOf(operand).getDefiningOp());
  });
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
      if (isProduct && getElementType(op->getResult(0)).isF32() && !isOfOneTerm(op) && (!onlyWeights || hasWeight(op)))
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
