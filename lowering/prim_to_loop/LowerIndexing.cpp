//===- LowerIndexing.cpp - gathers as indirect indices, scatters ----------===//

#include "ir/loop/UnsignedStores.h"
#include "ir/loop/WrappedIndices.h"
#include "lowering/passes/Patterns.h"
#include "lowering/prim_to_loop/FunctionLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

using Exprs = SmallVector<Expr>;

/// Reads an index from `indices`, checks it against `extent`, if there is one, and returns the
/// expression `v$k` that stands for it among the operands of `target`. prim's indices are not negative: the model's
/// have been normalised, but for those of which the check does it (`wraps`).
Expr emitIndirect(Body &body, const ElementFn &indices, const Index &at, Type indexType, Expr extent, Index &target,
                  bool wraps = false) {
  prim::ScalarBuilder scalars(body.builder, body.loc, indexType.isUnsignedInteger());
  Value index = scalars.convert(indices(body, at), body.builder.getI64Type(), false);
  if (extent) {
    auto check = CheckIndexOp::create(body.builder, body.loc, body.builder.getI64Type(), index, ExprAttr(extent));
    if (wraps)
      check->setAttr(wrapsAttr, body.builder.getUnitAttr());
    index = check;
  }
  target.operands.push_back(index);
  return Expr::operand(body.builder.getContext(), target.operands.size() - 1);
}

Exprs slice(ArrayRef<Expr> list, unsigned begin, unsigned end) {
  return Exprs(list.begin() + begin, list.begin() + end);
}

/// What indices are checked against: the extents, one for each place along the last dim or one for all, and nothing
/// where the indices are constants that lie inside and are not negative.
Exprs checkedExtents(Value indices, ArrayRef<Expr> extents) {
  DenseElementsAttr constants = prim::getConstant(indices);
  bool isKnown = constants && llvm::all_of(extents, [](Expr extent) { return extent.isConstant(); });
  auto isGood = [&](auto numbered) {
    Expr extent = extents[numbered.index() % extents.size()];
    return !numbered.value().isNegative() && numbered.value().ult(uint64_t(extent.getValue()));
  };
  if (!isKnown || !llvm::all_of(llvm::enumerate(constants.getValues<APInt>()), isGood))
    return Exprs(extents);
  return Exprs(extents.size());
}

/// i of select(i < 0, i + extent, i), which the check of an index does as well. Otherwise the indices as they are.
Value withoutWrap(Value indices, Expr extent) {
  auto select = indices.getDefiningOp<prim::SelectOp>();
  auto test = select ? select.getCondition().getDefiningOp<prim::LtOp>() : prim::LtOp();
  auto sum = select ? select.getA().getDefiningOp<prim::AddOp>() : prim::AddOp();
  if (!test || !sum || !extent.isConstant() || !isa<IntegerType>(prim::getElementType(indices)))
    return indices;
  Value index = select.getB();
  bool wraps = test.getA() == index && prim::getSplat(test.getB()) == 0.0 && sum.getA() == index &&
               prim::getSplat(sum.getB()) == double(extent.getValue());
  return wraps ? index : indices;
}

/// Whether the value is much larger than the result, at the hints: what computes it then computes the elements that are
/// gathered alone (rows of a quantised table, for example).
bool isMuchLarger(FunctionLowering &lowering, Value x, Value result) {
  constexpr int64_t times = 4;
  MLIRContext *context = x.getContext();
  auto sizeOf = [&](Value value) { return product(context, prim::getDims(value)).evaluate(lowering.symbolHints); };
  std::optional<int64_t> size = sizeOf(x), gathered = sizeOf(result);
  return size && gathered && *size / times >= *gathered;
}

Tensor startGather(FunctionLowering &lowering, Value x, Value indices, Value result, Location loc) {
  if (!isMuchLarger(lowering, x, result))
    lowering.realizeUnlessCheap(lowering.get(x), loc);
  lowering.realizeUnlessCheap(lowering.get(indices), loc, 3, 1);
  Tensor tensor;
  tensor.dims = prim::getDims(result);
  tensor.elementType = prim::getElementType(result);
  tensor.operations = 1 + lowering.get(x).operations + lowering.get(indices).operations;
  tensor.reads = lowering.get(x).reads + lowering.get(indices).reads;
  return tensor;
}

void lowerGather(FunctionLowering &lowering, prim::GatherOp op) {
  unsigned axis = op.getAxis(), rank = prim::getRank(op.getIndices());
  Expr extent = prim::getDims(op.getX())[axis];
  Value positions = withoutWrap(op.getIndices(), extent);
  bool wraps = positions != op.getIndices();
  Tensor tensor = startGather(lowering, op.getX(), positions, op.getResult(), op.getLoc());
  ElementFn x = lowering.get(op.getX()).element, indices = lowering.get(positions).element;
  Type indexType = prim::getElementType(op.getIndices());
  extent = checkedExtents(positions, extent)[0];
  tensor.element = [=](Body &body, const Index &index) {
    Index target{slice(index.at, 0, axis), index.operands};
    Index at{slice(index.at, axis, axis + rank), index.operands};
    target.at.push_back(emitIndirect(body, indices, at, indexType, extent, target, wraps));
    target.at.append(index.at.begin() + axis + rank, index.at.end());
    return x(body, target);
  };
  lowering.set(op.getResult(), tensor);
}

void lowerGatherElements(FunctionLowering &lowering, prim::GatherElementsOp op) {
  unsigned axis = op.getAxis();
  Expr extent = prim::getDims(op.getX())[axis];
  Value positions = withoutWrap(op.getIndices(), extent);
  bool wraps = positions != op.getIndices();
  Tensor tensor = startGather(lowering, op.getX(), positions, op.getResult(), op.getLoc());
  ElementFn x = lowering.get(op.getX()).element, indices = lowering.get(positions).element;
  extent = checkedExtents(positions, extent)[0];
  Type indexType = prim::getElementType(op.getIndices());
  tensor.element = [=](Body &body, const Index &index) {
    Index target = index;
    target.at[axis] = emitIndirect(body, indices, index, indexType, extent, target, wraps);
    return x(body, target);
  };
  lowering.set(op.getResult(), tensor);
}

void lowerGatherNd(FunctionLowering &lowering, prim::GatherNdOp op) {
  Tensor tensor = startGather(lowering, op.getX(), op.getIndices(), op.getResult(), op.getLoc());
  ElementFn x = lowering.get(op.getX()).element, indices = lowering.get(op.getIndices()).element;
  unsigned batch = op.getBatchDims(), lead = prim::getRank(op.getIndices()) - 1;
  int64_t length = prim::getDims(op.getIndices()).back().getValue();
  Exprs extents = checkedExtents(op.getIndices(), slice(prim::getDims(op.getX()), batch, batch + length));
  Type indexType = prim::getElementType(op.getIndices());
  MLIRContext *context = op.getContext();
  tensor.element = [=](Body &body, const Index &index) {
    Index target{slice(index.at, 0, batch), index.operands};
    for (int64_t i = 0; i < length; ++i) {
      Index at{slice(index.at, 0, lead), index.operands};
      at.at.push_back(Expr::constant(context, i));
      target.at.push_back(emitIndirect(body, indices, at, indexType, extents[i], target));
    }
    target.at.append(index.at.begin() + lead, index.at.end());
    return x(body, target);
  };
  lowering.set(op.getResult(), tensor);
}

prim::ReduceKindAttr getCombine(prim::ScatterKind kind, MLIRContext *context) {
  switch (kind) {
  case prim::ScatterKind::Set:
    return {};
  case prim::ScatterKind::Add:
    return prim::ReduceKindAttr::get(context, prim::ReduceKind::Sum);
  case prim::ScatterKind::Mul:
    return prim::ReduceKindAttr::get(context, prim::ReduceKind::Prod);
  case prim::ScatterKind::Max:
    return prim::ReduceKindAttr::get(context, prim::ReduceKind::Max);
  case prim::ScatterKind::Min:
    return prim::ReduceKindAttr::get(context, prim::ReduceKind::Min);
  }
  return {};
}

/// A copy of x, then a scatter node over `updates`; `position` says where.
void emitScatter(FunctionLowering &lowering, Value xValue, Value updatesValue, Value result, prim::ScatterKind kind,
                 function_ref<Index(Body &, ArrayRef<Expr>)> position) {
  Location loc = result.getLoc();
  OpBuilder &b = lowering.builder;
  Type elementType = prim::getElementType(result);
  Value buffer = lowering.createBuffer(prim::getDims(result), elementType, loc);
  lowering.store(lowering.get(xValue), buffer, [](ArrayRef<Expr> d) { return Exprs(d); }, loc);
  Tensor &updates = lowering.get(updatesValue);
  OpBuilder::InsertionGuard guard(b);
  auto node = ScatterOp::create(b, loc, prim::getExprArray(b.getContext(), updates.dims), 0);
  Body body = lowering.beginBody(node.getBody(), updates.dims, loc);
  Exprs at = lowering.dims(0, updates.dims.size());
  Value update = updates.element(body, {at, {}});
  Index target = position(body, at);
  auto store = StoreOp::create(b, loc, update, buffer, ArrayRef<Expr>(target.at), ValueRange(target.operands));
  if (auto combine = getCombine(kind, b.getContext()))
    store.setCombineAttr(combine);
  if (elementType.isUnsignedInteger() && store.getCombine())
    store->setAttr(unsignedAttr, b.getUnitAttr());
  lowering.set(result, lowering.readOf(buffer, elementType));
}

} // namespace

void FunctionLowering::lowerScatter(Operation *op) {
  if (auto scatter = dyn_cast<prim::ScatterElementsOp>(op)) {
    ElementFn indices = get(scatter.getIndices()).element;
    unsigned axis = scatter.getAxis();
    Expr extent = checkedExtents(scatter.getIndices(), prim::getDims(scatter.getX())[axis])[0];
    Type indexType = prim::getElementType(scatter.getIndices());
    return emitScatter(*this, scatter.getX(), scatter.getUpdates(), scatter.getResult(), scatter.getKind(),
                       [&](Body &body, ArrayRef<Expr> at) {
                         Index target{Exprs(at), {}};
                         target.at[axis] = emitIndirect(body, indices, {Exprs(at), {}}, indexType, extent, target);
                         return target;
                       });
  }
  auto scatter = cast<prim::ScatterNdOp>(op);
  ElementFn indices = get(scatter.getIndices()).element;
  unsigned lead = prim::getRank(scatter.getIndices()) - 1;
  int64_t length = prim::getDims(scatter.getIndices()).back().getValue();
  Exprs extents = checkedExtents(scatter.getIndices(), slice(prim::getDims(scatter.getX()), 0, length));
  Type indexType = prim::getElementType(scatter.getIndices());
  emitScatter(*this, scatter.getX(), scatter.getUpdates(), scatter.getResult(), scatter.getKind(),
              [&](Body &body, ArrayRef<Expr> at) {
                Index target;
                for (int64_t i = 0; i < length; ++i) {
                  Index source{slice(at, 0, lead), {}};
                  source.at.push_back(Expr::constant(context, i));
                  target.at.push_back(emitIndirect(body, indices, source, indexType, extents[i], target));
                }
                target.at.append(at.begin() + lead, at.end());
                return target;
              });
}

bool FunctionLowering::lowerIndexing(Operation *op) {
  if (auto gather = dyn_cast<prim::GatherOp>(op))
    lowerGather(*this, gather);
  else if (auto elements = dyn_cast<prim::GatherElementsOp>(op))
    lowerGatherElements(*this, elements);
  else if (auto nd = dyn_cast<prim::GatherNdOp>(op))
    lowerGatherNd(*this, nd);
  else if (isa<prim::ScatterElementsOp, prim::ScatterNdOp>(op))
    lowerScatter(op);
  else
    return false;
  return true;
}
