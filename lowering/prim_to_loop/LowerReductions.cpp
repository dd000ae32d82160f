//===- LowerReductions.cpp - reductions, windows, scans, sort -------------===//

#include "lowering/prim_to_loop/FunctionLowering.h"
#include "lowering/prim_to_loop/NanElsewhere.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include <functional>
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

/// The neutral element of a reduction, as a scalar of `type`.
Value emitNeutral(Body &body, prim::ReduceKind kind, Type type, bool isUnsigned) {
  OpBuilder &b = body.builder;
  if (auto real = dyn_cast<FloatType>(type)) {
    APFloat value = APFloat::getZero(real.getFloatSemantics());
    if (kind == prim::ReduceKind::Prod)
      value = APFloat(real.getFloatSemantics(), 1);
    if (kind == prim::ReduceKind::Max || kind == prim::ReduceKind::Min)
      value = APFloat::getInf(real.getFloatSemantics(), kind == prim::ReduceKind::Max);
    return arith::ConstantOp::create(b, body.loc, b.getFloatAttr(real, value));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value(width, kind == prim::ReduceKind::Prod ? 1 : 0);
  if (kind == prim::ReduceKind::Max)
    value = isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  if (kind == prim::ReduceKind::Min)
    value = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  return arith::ConstantOp::create(b, body.loc, b.getIntegerAttr(type, value));
}

/// Reduces `scalar` in the body of a reduction node. Narrow floats accumulate in
/// f32; any and all reduce bytes by max and min.
Value emitReduce(Body &body, Value scalar, prim::ReduceKind kind, Type elementType, bool noNan = false) {
  OpBuilder &b = body.builder;
  bool isUnsigned = elementType.isUnsignedInteger();
  auto kindAttr = [&](prim::ReduceKind k) { return prim::ReduceKindAttr::get(b.getContext(), k); };
  auto flag = [&](bool set) { return set ? b.getUnitAttr() : UnitAttr(); };
  if (scalar.getType().isInteger(1)) {
    bool isMax = kind == prim::ReduceKind::Any || kind == prim::ReduceKind::Max;
    Value byte = arith::ExtUIOp::create(b, body.loc, b.getI8Type(), scalar);
    Value reduced = ReduceOp::create(b, body.loc, byte, kindAttr(isMax ? prim::ReduceKind::Max : prim::ReduceKind::Min),
                                     flag(true), UnitAttr());
    Value zero = arith::ConstantOp::create(b, body.loc, b.getI8IntegerAttr(0));
    return arith::CmpIOp::create(b, body.loc, arith::CmpIPredicate::ne, reduced, zero);
  }
  Value reduced = ReduceOp::create(b, body.loc, widen(body, scalar), kindAttr(kind), flag(isUnsigned), flag(noNan));
  return narrow(body, reduced, elementType);
}

} // namespace

/// Domain: kept dims, then the reduced ones in their order.
static void lowerReduce(FunctionLowering &lowering, prim::ReduceOp op) {
  Tensor &x = lowering.get(op.getX());
  SmallVector<Expr> domain = prim::getDims(op.getResult());
  unsigned kept = domain.size();
  SmallVector<unsigned> dimOf(x.dims.size());
  unsigned nextKept = 0;
  for (unsigned axis = 0; axis < x.dims.size(); ++axis)
    if (llvm::is_contained(op.getAxes(), int64_t(axis))) {
      dimOf[axis] = domain.size();
      domain.push_back(x.dims[axis]);
    } else {
      dimOf[axis] = nextKept++;
    }
  Type elementType = prim::getElementType(op.getX());
  Value buffer = lowering.createBuffer(prim::getDims(op.getResult()), elementType, op.getLoc());
  OpBuilder::InsertionGuard guard(lowering.builder);
  auto node = ReductionOp::create(lowering.builder, op.getLoc(), prim::getExprArray(op.getContext(), domain),
                                  int64_t(op.getAxes().size()));
  Body body = lowering.beginBody(node.getBody(), domain, op.getLoc());
  Index index;
  for (unsigned dim : dimOf)
    index.at.push_back(Expr::dim(op.getContext(), dim));
  Value reduced = emitReduce(body, x.element(body, index), op.getKind(), elementType, isNanElsewhere(op));
  StoreOp::create(lowering.builder, op.getLoc(), reduced, buffer, ArrayRef<Expr>(lowering.dims(0, kept)));
  lowering.set(op.getResult(), lowering.readOf(buffer, elementType));
}

static void lowerArgReduce(FunctionLowering &lowering, prim::ArgReduceOp op) {
  Tensor &x = lowering.get(op.getX());
  unsigned axis = op.getAxis();
  SmallVector<Expr> domain = prim::getDims(op.getResult());
  unsigned kept = domain.size();
  domain.push_back(x.dims[axis]);
  Value buffer =
      lowering.createBuffer(prim::getDims(op.getResult()), prim::getElementType(op.getResult()), op.getLoc());
  OpBuilder &b = lowering.builder;
  OpBuilder::InsertionGuard guard(b);
  auto node = ReductionOp::create(b, op.getLoc(), prim::getExprArray(op.getContext(), domain), 1);
  Body body = lowering.beginBody(node.getBody(), domain, op.getLoc());
  Index index{lowering.dims(0, kept), {}};
  index.at.insert(index.at.begin() + axis, Expr::dim(op.getContext(), kept));
  Value scalar = widen(body, x.element(body, index));
  if (scalar.getType().isInteger(1))
    scalar = arith::ExtUIOp::create(b, op.getLoc(), b.getI8Type(), scalar);
  bool isUnsigned = x.elementType.isUnsignedInteger() || x.elementType.isInteger(1);
  Value position = ArgReduceOp::create(b, op.getLoc(), b.getI64Type(), scalar, op.getKindAttr(), op.getSelectLastAttr(),
                                       isUnsigned ? b.getUnitAttr() : UnitAttr());
  StoreOp::create(b, op.getLoc(), position, buffer, ArrayRef<Expr>(lowering.dims(0, kept)));
  lowering.set(op.getResult(), lowering.readOf(buffer, prim::getElementType(op.getResult())));
}

/// Whether the elements of a short window are one operation of values that are stored in any case, as others read them:
/// to compute them again costs less than a buffer of their own (squares, of which LRN adds up five).
static bool isComputedAgain(FunctionLowering &lowering, prim::WindowReduceOp op) {
  constexpr int64_t fewElements = 8;
  constexpr int mostReads = 2; // x * x
  Value x = op.getX();
  while (isPermutation(x.getDefiningOp()))
    x = x.getDefiningOp()->getOperand(0);
  Operation *maker = x.getDefiningOp();
  const Tensor &tensor = lowering.get(op.getX());
  if (std::accumulate(op.getWindow().begin(), op.getWindow().end(), int64_t(1), std::multiplies()) > fewElements ||
      tensor.operations > 1 || tensor.reads > mostReads || !maker || !isa<prim::PointwiseOpInterface>(maker))
    return false;
  return llvm::all_of(maker->getOperands(), [&](Value operand) {
    return lowering.get(operand).buffer &&
           llvm::any_of(operand.getUsers(), [&](Operation *user) { return user != maker; });
  });
}

/// Domain: [n, c, out..., window...]; what lies outside x is neutral.
static void lowerWindowReduce(FunctionLowering &lowering, prim::WindowReduceOp op) {
  if (lowering.target.storesBorders)
    lowering.storeBorders(op.getX());
  Tensor &x = lowering.get(op.getX());
  if (!isComputedAgain(lowering, op))
    lowering.realizeUnlessCheap(x, op.getLoc());
  MLIRContext *context = op.getContext();
  SmallVector<Expr> domain = prim::getDims(op.getResult()), low = prim::getExprs(op.getLow());
  unsigned kept = domain.size(), spatial = op.getWindow().size(), batch = kept - spatial;
  for (int64_t extent : op.getWindow())
    domain.push_back(Expr::constant(context, extent));
  Type elementType = prim::getElementType(op.getX());
  Value buffer = lowering.createBuffer(prim::getDims(op.getResult()), elementType, op.getLoc());
  OpBuilder &b = lowering.builder;
  OpBuilder::InsertionGuard guard(b);
  auto node = ReductionOp::create(b, op.getLoc(), prim::getExprArray(context, domain), int64_t(spatial));
  Body body = lowering.beginBody(node.getBody(), domain, op.getLoc());
  Index index{lowering.dims(0, batch), {}};
  SmallVector<Expr> conditions;
  for (unsigned i = 0; i < spatial; ++i) {
    Expr at = Expr::dim(context, batch + i) * op.getStrides()[i] + Expr::dim(context, kept + i) * op.getDilations()[i] -
              low[i];
    at = at.simplify(body.ranges);
    index.at.push_back(at);
    for (Expr condition : {at, x.dims[batch + i] - 1 - at})
      if (condition.range(body.ranges).min < 0)
        conditions.push_back(condition);
  }
  Value scalar;
  if (conditions.empty()) {
    scalar = x.element(body, index);
  } else {
    Value other = emitNeutral(body, op.getKind(), prim::getScalarType(elementType), elementType.isUnsignedInteger());
    auto masked =
        MaskedOp::create(b, op.getLoc(), other.getType(), prim::getExprArray(context, conditions), ValueRange(), other);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToEnd(&masked.getBody().emplaceBlock());
    YieldOp::create(b, op.getLoc(), x.element(body, index));
    scalar = masked.getResult();
  }
  Value reduced = emitReduce(body, scalar, op.getKind(), elementType);
  StoreOp::create(b, op.getLoc(), reduced, buffer, ArrayRef<Expr>(lowering.dims(0, kept)));
  lowering.set(op.getResult(), lowering.readOf(buffer, elementType));
}

/// Domain: the other dims, then the axis.
static void lowerScan(FunctionLowering &lowering, prim::ScanOp op) {
  // Of a float: one element after the other, more take longer than in vectors beforehand.
  constexpr int mostOperations = 1;
  Tensor &x = lowering.get(op.getX());
  if (x.operations > mostOperations && isa<FloatType>(x.elementType))
    lowering.realize(x, op.getLoc());
  unsigned axis = op.getAxis(), rank = x.dims.size();
  SmallVector<Expr> domain(x.dims), position;
  domain.erase(domain.begin() + axis);
  domain.push_back(x.dims[axis]);
  for (unsigned i = 0; i < rank; ++i)
    position.push_back(Expr::dim(op.getContext(), i == axis ? rank - 1 : i - (i > axis)));
  Type elementType = prim::getElementType(op.getX());
  Value buffer = lowering.createBuffer(x.dims, elementType, op.getLoc());
  OpBuilder &b = lowering.builder;
  OpBuilder::InsertionGuard guard(b);
  auto node = ScanOp::create(b, op.getLoc(), prim::getExprArray(op.getContext(), domain),
                             op.getReverse() ? b.getUnitAttr() : UnitAttr());
  Body body = lowering.beginBody(node.getBody(), domain, op.getLoc());
  Value scalar = widen(body, x.element(body, {position, {}}));
  Value running =
      RunningOp::create(b, op.getLoc(), scalar, op.getKindAttr(), op.getExclusive() ? b.getUnitAttr() : UnitAttr(),
                        elementType.isUnsignedInteger() ? b.getUnitAttr() : UnitAttr());
  StoreOp::create(b, op.getLoc(), narrow(body, running, elementType), buffer, ArrayRef<Expr>(position));
  lowering.set(op.getResult(), lowering.readOf(buffer, elementType));
}

void FunctionLowering::lowerSort(prim::SortOp op) {
  Tensor &x = get(op.getX());
  unsigned axis = op.getAxis(), rank = x.dims.size();
  SmallVector<Expr> domain(x.dims), position;
  domain.erase(domain.begin() + axis);
  domain.push_back(x.dims[axis]);
  for (unsigned i = 0; i < rank; ++i)
    position.push_back(Expr::dim(context, i == axis ? rank - 1 : i - (i > axis)));
  Expr kept = prim::getDims(op.getValues())[axis];
  Location loc = op.getLoc();
  Value values = createBuffer(prim::getDims(op.getValues()), x.elementType, loc);
  Type indexType = prim::getElementType(op.getIndices());
  Value indices = createBuffer(prim::getDims(op.getIndices()), indexType, loc);
  OpBuilder::InsertionGuard guard(builder);
  bool isUnsigned = x.elementType.isUnsignedInteger();
  auto node =
      SortOp::create(builder, loc, prim::getExprArray(context, domain), ExprAttr(kept), op.getDescending(), isUnsigned);
  Body key = beginBody(node.getKey(), domain, loc);
  YieldOp::create(builder, loc, x.element(key, {position, {}}));
  Type scalarType = prim::getScalarType(x.elementType);
  beginBody(node.getBody(), domain, loc, {scalarType, builder.getI64Type()});
  Block &block = node.getBody().front();
  StoreOp::create(builder, loc, block.getArgument(0), values, ArrayRef<Expr>(position));
  StoreOp::create(builder, loc, block.getArgument(1), indices, ArrayRef<Expr>(position));
  set(op.getValues(), readOf(values, x.elementType));
  set(op.getIndices(), readOf(indices, indexType));
}

bool FunctionLowering::lowerReduction(Operation *op) {
  if (auto reduce = dyn_cast<prim::ReduceOp>(op))
    lowerReduce(*this, reduce);
  else if (auto argReduce = dyn_cast<prim::ArgReduceOp>(op))
    lowerArgReduce(*this, argReduce);
  else if (auto window = dyn_cast<prim::WindowReduceOp>(op))
    lowerWindowReduce(*this, window);
  else if (auto scan = dyn_cast<prim::ScanOp>(op))
    lowerScan(*this, scan);
  else if (auto sort = dyn_cast<prim::SortOp>(op))
    lowerSort(sort);
  else if (auto nms = dyn_cast<prim::NmsOp>(op))
    lowerNms(nms);
  else
    return false;
  return true;
}
