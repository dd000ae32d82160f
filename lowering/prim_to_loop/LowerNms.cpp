//===- LowerNms.cpp - suppression of boxes as a greedy choice --------------===//
//
// Boxes are read where they are compared, through whatever view or gather they are: most of them are no candidates.
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/FunctionLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {
/// Arithmetic on scalars of the boxes' type.
struct Geometry {
  Body &body;
  template <typename Op> Value make(Value a, Value b) const { return Op::create(body.builder, body.loc, a, b); }
  Value greater(Value a, Value b) const {
    return arith::CmpFOp::create(body.builder, body.loc, arith::CmpFPredicate::OGT, a, b);
  }
  Value area(ArrayRef<Value> x) const {
    return make<arith::MulFOp>(make<arith::SubFOp>(x[2], x[0]), make<arith::SubFOp>(x[3], x[1]));
  }
  // Instructions of their own: a box with a NaN has no area, so which of the two they give then does not matter.
  Value smaller(Value a, Value b) const { return choose(arith::CmpFPredicate::OLT, a, b); }
  Value larger(Value a, Value b) const { return choose(arith::CmpFPredicate::OGT, a, b); }
  Value choose(arith::CmpFPredicate predicate, Value a, Value b) const {
    Value isFirst = arith::CmpFOp::create(body.builder, body.loc, predicate, a, b);
    return arith::SelectOp::create(body.builder, body.loc, isFirst, a, b);
  }
  Value both(Value a, Value b) const { return make<arith::AndIOp>(a, b); }

  /// Intersection over union above the threshold, all areas positive.
  Value overlap(ArrayRef<Value> x, ArrayRef<Value> y, Value threshold) const {
    Value zero = arith::ConstantOp::create(body.builder, body.loc, body.builder.getZeroAttr(x[0].getType()));
    Value height = make<arith::SubFOp>(smaller(x[2], y[2]), larger(x[0], y[0]));
    Value width = make<arith::SubFOp>(smaller(x[3], y[3]), larger(x[1], y[1]));
    Value common = make<arith::MulFOp>(height, width), first = area(x), second = area(y);
    Value all = make<arith::SubFOp>(make<arith::AddFOp>(first, second), common);
    Value result = greater(make<arith::DivFOp>(common, all), threshold);
    for (Value positive : {height, width, common, first, second, all})
      result = both(result, greater(positive, zero));
    return result;
  }
};
} // namespace

void FunctionLowering::lowerNms(prim::NmsOp op) {
  Location loc = op.getLoc();
  realize(get(op.getCounts()), loc);
  SmallVector<Expr> domain = prim::getDims(op.getKept());
  unsigned rank = domain.size();
  Value buffer = createBuffer(domain, builder.getI1Type(), loc);
  ElementFn boxes = get(op.getBoxes()).element, counts = get(op.getCounts()).element;
  ElementFn limit = get(op.getLimit()).element, threshold = get(op.getThreshold()).element;
  Type countType = prim::getElementType(op.getCounts()), limitType = prim::getElementType(op.getLimit());
  SmallVector<Expr> point = dims(0, rank), row(point.begin(), point.end() - 1);
  auto cornersAt = [&](Body &body, ArrayRef<Expr> at, ArrayRef<Value> operands) {
    SmallVector<Value> corners;
    for (int64_t i = 0; i < 4; ++i) {
      Index index{SmallVector<Expr>(at), SmallVector<Value>(operands)};
      index.at.push_back(Expr::constant(context, i));
      corners.push_back(widen(body, boxes(body, index)));
    }
    return corners;
  };
  OpBuilder::InsertionGuard guard(builder);
  auto node = GreedyOp::create(builder, loc, prim::getExprArray(context, domain));

  Body candidate = beginBody(node.getCandidate(), domain, loc, {builder.getI64Type()});
  prim::ScalarBuilder scalars(builder, loc, false);
  Value most = scalars.convert(limit(candidate, {}), builder.getI64Type(), limitType.isUnsignedInteger());
  Value count = scalars.convert(counts(candidate, {row, {}}), builder.getI64Type(), countType.isUnsignedInteger());
  auto less = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
  };
  Value position = candidate.emitIndex(point.back(), {});
  Value mayBe = arith::AndIOp::create(builder, loc, less(position, count),
                                      less(node.getCandidate().front().getArgument(0), most));
  YieldOp::create(builder, loc, mayBe);

  Body conflict = beginBody(node.getConflict(), domain, loc, {builder.getI64Type()});
  SmallVector<Expr> other = row;
  other.push_back(Expr::operand(context, 0));
  SmallVector<Value> mine = cornersAt(conflict, point, {});
  SmallVector<Value> theirs = cornersAt(conflict, other, {node.getConflict().front().getArgument(0)});
  Value bound = widen(conflict, threshold(conflict, {}));
  YieldOp::create(builder, loc, Geometry{conflict}.overlap(mine, theirs, bound));

  beginBody(node.getBody(), domain, loc, {builder.getI1Type()});
  StoreOp::create(builder, loc, node.getBody().front().getArgument(0), buffer, ArrayRef<Expr>(point));
  set(op.getKept(), readOf(buffer, builder.getI1Type()));
}
