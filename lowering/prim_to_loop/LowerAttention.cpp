//===- LowerAttention.cpp - attention as one node -------------------------===//
//
// q, k and v are read through their views: heads that lie interleaved in the result of
// a projection are never copied apart. Likewise the result is written in the order of the
// transpose that joins the heads again, if that is its only reader.
//
// The score region scales, caps and masks; a mask that is cheap to compute is computed there.
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/FunctionLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

using Exprs = SmallVector<Expr>;

/// Masks of at most this cost are computed for each score.
static constexpr int maskOperations = 2, maskReads = 2;

/// scale * dot, between the caps, then the masks in order.
static Value emitScore(FunctionLowering &lowering, prim::AttentionOp op, Body &body, Value dot, const Exprs &at) {
  OpBuilder &b = body.builder;
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(b, body.loc, b.getF32FloatAttr(float(value)));
  };
  double scale = op.getScale().convertToDouble();
  Value score = scale == 1 ? dot : arith::MulFOp::create(b, body.loc, dot, constant(scale));
  if (auto cap = op.getSoftcap())
    score =
        arith::MulFOp::create(b, body.loc, math::TanhOp::create(b, body.loc, score), constant(cap->convertToDouble()));
  for (Value mask : op.getMasks()) {
    Value element = widen(body, lowering.get(mask).element(body, {at, {}}));
    if (element.getType().isInteger(1))
      score = arith::SelectOp::create(b, body.loc, element, score, constant(op.getMaskedValue()));
    else
      score = arith::AddFOp::create(b, body.loc, score, element);
  }
  return score;
}

/// The transpose that alone reads the result and leaves its last dim in place.
static prim::TransposeOp getOnlyTranspose(prim::AttentionOp op) {
  Value result = op.getResult();
  if (prim::countReaders(result) != 1)
    return {};
  auto user = llvm::find_if(result.getUsers(), [](Operation *user) { return isa<prim::TransposeOp>(user); });
  auto transpose = user == result.user_end() ? prim::TransposeOp() : cast<prim::TransposeOp>(*user);
  bool keepsLast = transpose && transpose.getPermutation().back() == prim::getRank(result) - 1;
  return keepsLast ? transpose : prim::TransposeOp();
}

void FunctionLowering::lowerAttention(prim::AttentionOp op) {
  Location loc = op.getLoc();
  Value narrowQ = unwidened(op.getQ()), narrowK = unwidened(op.getK()), narrowV = unwidened(op.getV());
  for (Value operand : {narrowQ, narrowK, narrowV})
    if (Tensor &tensor = get(operand); tensor.operations > 0 || tensor.reads > 1)
      realizeBelowViews(operand, loc);
  for (Value mask : op.getMasks())
    realizeUnlessCheap(get(mask), loc, maskOperations, maskReads);
  Exprs q = prim::getDims(op.getQ()), v = prim::getDims(op.getV());
  unsigned batch = q.size() - 2;
  Exprs domain(q.begin(), q.end() - 1);
  domain.append({v[batch], q.back(), v.back()});
  Expr i = Expr::dim(context, batch), j = Expr::dim(context, batch + 1), d = Expr::dim(context, batch + 2),
       e = Expr::dim(context, batch + 3);
  auto indexOf = [&](Expr row, Expr column) {
    Exprs at = dims(0, batch);
    at.append({row, column});
    return at;
  };

  Type elementType = prim::getElementType(op.getResult());
  Exprs resultDims = prim::getDims(op.getResult());
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, resultDims.size()));
  if (prim::TransposeOp transpose = getOnlyTranspose(op))
    order.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
  auto inOrder = [order](ArrayRef<Expr> at) {
    Exprs ordered;
    for (int64_t axis : order)
      ordered.push_back(at[axis]);
    return ordered;
  };
  Value buffer = createBuffer(inOrder(resultDims), elementType, loc);

  OpBuilder &b = builder;
  OpBuilder::InsertionGuard guard(b);
  auto node = AttentionOp::create(b, loc, prim::getExprArray(context, domain), int64_t(batch), op.getCausal(),
                                  op.getZeroMaskedRows());
  auto emitOperand = [&](Region &region, Value operand, Expr row, Expr column) {
    Body body = beginBody(region, domain, loc);
    YieldOp::create(b, loc, widen(body, get(operand).element(body, {indexOf(row, column), {}})));
  };
  emitOperand(node.getQ(), narrowQ, i, d);
  emitOperand(node.getK(), narrowK, j, d);
  emitOperand(node.getV(), narrowV, j, e);
  Type f32 = b.getF32Type();
  Body score = beginBody(node.getScore(), domain, loc, {f32});
  YieldOp::create(b, loc, emitScore(*this, op, score, node.getScore().getArgument(0), indexOf(i, j)));
  Body epilogue = beginBody(node.getEpilogue(), domain, loc, {f32});
  StoreOp::create(b, loc, narrow(epilogue, node.getEpilogue().getArgument(0), elementType), buffer,
                  ArrayRef<Expr>(inOrder(indexOf(i, e))));

  Tensor stored = readOf(buffer, elementType);
  Tensor result = viewOf(stored, resultDims, [inOrder](Body &, ArrayRef<Expr> at) { return inOrder(at); });
  bool isPlain = llvm::is_sorted(order);
  set(op.getResult(), isPlain ? stored : result);
}
