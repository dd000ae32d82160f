//===- LowerViews.cpp - views as index rewrites ---------------------------===//
//
// Broadcast, transpose, slice, reshape and pad are functions of indices. Only a
// broadcast of a computed value realizes first: its elements would be computed
// once for each copy.
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/FunctionLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

using Exprs = SmallVector<Expr>;

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

/// Dims [fromBegin, fromEnd) of the operand hold the same elements as dims
/// [toBegin, toEnd) of the result.
struct ReshapeGroup {
  unsigned fromBegin, fromEnd, toBegin, toEnd;
};

/// Splits a reshape into the smallest groups of dims with equal products, so
/// that index arithmetic stays within a group. Dims of 1 join any group.
SmallVector<ReshapeGroup> groupReshape(ArrayRef<Expr> from, ArrayRef<Expr> to) {
  SmallVector<ReshapeGroup> groups;
  unsigned i = 0, j = 0;
  MLIRContext *context = from.empty() ? (to.empty() ? nullptr : to[0].getContext()) : from[0].getContext();
  while (i < from.size() || j < to.size()) {
    ReshapeGroup group{i, i, j, j};
    Expr fromSize = Expr::constant(context, 1), toSize = fromSize;
    // Grow the side whose product is known to be the smaller one.
    bool closed = false;
    while (!closed) {
      if (group.fromEnd > group.fromBegin && group.toEnd > group.toBegin && fromSize == toSize) {
        closed = true;
        break;
      }
      bool canGrowFrom = group.fromEnd < from.size();
      bool canGrowTo = group.toEnd < to.size();
      if (!canGrowFrom && !canGrowTo)
        break;
      auto a = fromSize.asConstant(), b = toSize.asConstant();
      bool growFrom = canGrowFrom;
      if (canGrowFrom && canGrowTo) {
        if (group.fromEnd == group.fromBegin)
          growFrom = true;
        else if (group.toEnd == group.toBegin)
          growFrom = false;
        else if (a && b)
          growFrom = *a < *b;
        else // symbolic: grow the side with fewer factors
          growFrom = fromSize.str().size() < toSize.str().size();
      }
      if (growFrom)
        fromSize = fromSize * from[group.fromEnd++];
      else
        toSize = toSize * to[group.toEnd++];
    }
    // Trailing dims of 1 would otherwise form a group without a partner.
    if (closed) {
      auto restIsOne = [](ArrayRef<Expr> dims, unsigned at) {
        return llvm::all_of(dims.drop_front(at), [](Expr dim) { return dim.isConstant(1); });
      };
      if (restIsOne(from, group.fromEnd) && restIsOne(to, group.toEnd)) {
        group.fromEnd = from.size();
        group.toEnd = to.size();
      }
    }
    groups.push_back(group);
    i = group.fromEnd;
    j = group.toEnd;
  }
  return groups;
}

/// Row-major position of `at` in dims of these extents.
Expr linearize(MLIRContext *context, ArrayRef<Expr> at, ArrayRef<Expr> extents) {
  Expr position = Expr::constant(context, 0);
  for (auto [index, extent] : llvm::zip(at, extents))
    position = position * extent + index;
  return position;
}

/// Index in `extents` of a row-major position.
Exprs delinearize(Expr position, ArrayRef<Expr> extents, const SymbolRanges &ranges) {
  Exprs at(extents.size());
  MLIRContext *context = position.getContext();
  for (unsigned i = extents.size(); i-- > 0;) {
    if (extents[i].isConstant(1)) {
      at[i] = Expr::constant(context, 0);
      continue;
    }
    bool isFirst = llvm::all_of(extents.take_front(i), [](Expr e) { return e.isConstant(1); });
    at[i] = (isFirst ? position : position.mod(extents[i])).simplify(ranges);
    position = position.floorDiv(extents[i]).simplify(ranges);
  }
  return at;
}

Exprs reshapeIndex(ArrayRef<Expr> at, ArrayRef<Expr> from, ArrayRef<Expr> to, ArrayRef<ReshapeGroup> groups,
                   MLIRContext *context, const SymbolRanges &ranges) {
  Exprs result;
  for (const ReshapeGroup &g : groups) {
    ArrayRef<Expr> fromDims = from.slice(g.fromBegin, g.fromEnd - g.fromBegin);
    ArrayRef<Expr> toDims = to.slice(g.toBegin, g.toEnd - g.toBegin);
    ArrayRef<Expr> toAt = at.slice(g.toBegin, g.toEnd - g.toBegin);
    Expr position = linearize(context, toAt, toDims).simplify(ranges);
    result.append(delinearize(position, fromDims, ranges));
  }
  return result;
}

/// The size with each of these symbols replaced: what is equal is then written in one way.
Expr unified(Expr size, ArrayRef<std::pair<StringRef, Expr>> equal) {
  if (equal.empty())
    return size;
  return size.substitute([&](StringRef symbol) {
    const auto *found = llvm::find_if(equal, [&](const auto &pair) { return pair.first == symbol; });
    return found == equal.end() ? Expr() : found->second;
  });
}

/// The pairs of a symbol and what the function's guards say it is equal to: a constant, or a symbol that stays.
SmallVector<std::pair<StringRef, Expr>> findEqualSizes(func::FuncOp function) {
  SmallVector<std::pair<StringRef, Expr>> equal;
  auto guards = function->getAttrOfType<ArrayAttr>(prim::guardsAttr);
  for (Expr guard : guards ? prim::getExprs(guards) : Exprs()) {
    if (guard.getKind() != ExprKind::Eq)
      continue;
    Expr kept = unified(guard.getOperands()[0], equal), gone = unified(guard.getOperands()[1], equal);
    if (!gone.isSymbol() || (kept.isSymbol() && compare(gone, kept) < 0))
      std::swap(kept, gone);
    if (kept == gone || !gone.isSymbol() || !(kept.isSymbol() || kept.isConstant()))
      continue;
    for (auto &[symbol, value] : equal)
      if (value == gone)
        value = kept;
    equal.push_back({gone.getSymbol(), kept});
  }
  return equal;
}

Tensor lowerReshape(FunctionLowering &lowering, prim::ReshapeOp op) {
  Tensor &x = lowering.get(op.getX());
  Exprs from = prim::getDims(op.getX()), to = prim::getDims(op.getResult());
  if (from.size() > 1 && !llvm::all_of(from, [](Expr dim) { return dim.isConstant(); })) {
    auto equal = findEqualSizes(op->getParentOfType<func::FuncOp>());
    for (Exprs *dims : {&from, &to})
      for (Expr &dim : *dims)
        dim = unified(dim, equal);
  }
  SmallVector<ReshapeGroup> groups = groupReshape(from, to);
  MLIRContext *context = op.getContext();
  return lowering.viewOf(x, prim::getDims(op.getResult()), [=](Body &body, ArrayRef<Expr> at) {
    return reshapeIndex(at, from, to, groups, context, body.ranges);
  });
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

/// Whether products alone read what is broadcast, in whole rows.
bool isReadAsRows(prim::BroadcastOp op) {
  int64_t last = prim::getRank(op.getX()) - 1, to = prim::getRank(op.getResult()) - 1;
  bool keepsRows =
      last >= 0 && op.getAxes()[last] == to && prim::getDims(op.getX())[last] == prim::getDims(op.getResult())[to];
  return keepsRows && llvm::all_of(op->getUsers(), [&](Operation *user) {
           auto product = dyn_cast<prim::MatmulOp>(user);
           return product && product.getLhs() == op.getResult() && product.getRhs() != op.getResult();
         });
}

Tensor lowerBroadcast(FunctionLowering &lowering, prim::BroadcastOp op) {
  Tensor &x = lowering.get(op.getX());
  Exprs from = prim::getDims(op.getX()), to = prim::getDims(op.getResult());
  SmallVector<int64_t> axes(op.getAxes());
  bool enlarges = false;
  for (auto [axis, extent] : llvm::enumerate(to)) {
    auto found = llvm::find(axes, int64_t(axis));
    bool kept = found != axes.end() && from[found - axes.begin()] == extent;
    enlarges |= !kept && !extent.isConstant(1);
  }
  bool isSingle = llvm::all_of(from, [](Expr dim) { return dim.isConstant(1); });
  if (enlarges && !x.isScalarConstant && (x.operations > 0 || x.reads > 1) && !(isSingle && x.reads == 0))
    lowering.realizeBelowViews(op.getX(), op.getLoc(), lowering.target.readsRowsAnywhere && isReadAsRows(op));
  MLIRContext *context = op.getContext();
  return lowering.viewOf(lowering.get(op.getX()), to, [=](Body &, ArrayRef<Expr> at) {
    Exprs index;
    for (auto [dim, axis] : llvm::zip(from, axes)) {
      Expr one = Expr::constant(context, 1);
      index.push_back(dim == to[axis] ? at[axis] : at[axis] * Expr::lt(one, dim)); // of a dim that is 1 the first
    }
    return index;
  });
}

Tensor lowerTranspose(FunctionLowering &lowering, prim::TransposeOp op) {
  SmallVector<int64_t> permutation(op.getPermutation());
  return lowering.viewOf(lowering.get(op.getX()), prim::getDims(op.getResult()), [=](Body &, ArrayRef<Expr> at) {
    Exprs index(permutation.size());
    for (auto [i, axis] : llvm::enumerate(permutation))
      index[axis] = at[i];
    return index;
  });
}

Tensor lowerSlice(FunctionLowering &lowering, prim::SliceOp op) {
  Exprs starts = prim::getExprs(op.getStarts());
  SmallVector<int64_t> steps(op.getSteps());
  return lowering.viewOf(lowering.get(op.getX()), prim::getDims(op.getResult()), [=](Body &, ArrayRef<Expr> at) {
    Exprs index;
    for (auto [i, start, step] : llvm::zip(at, starts, steps))
      index.push_back(start + i * step);
    return index;
  });
}

/// A value under a mask: nothing is read where a condition is negative.
Value emitMasked(Body &body, ArrayRef<Expr> conditions, ArrayRef<Value> operands, Value other,
                 function_ref<Value()> inner) {
  SmallVector<Expr> undecided;
  for (Expr condition : conditions) {
    condition = condition.simplify(body.ranges);
    if (!body.holds(condition))
      undecided.push_back(condition);
  }
  if (undecided.empty())
    return inner();
  auto masked = MaskedOp::create(body.builder, body.loc, other.getType(),
                                 prim::getExprArray(other.getContext(), undecided), ValueRange(operands), other);
  OpBuilder::InsertionGuard guard(body.builder);
  body.builder.setInsertionPointToEnd(&masked.getBody().emplaceBlock());
  YieldOp::create(body.builder, body.loc, inner());
  return masked.getResult();
}

Tensor lowerPad(FunctionLowering &lowering, prim::PadOp op) {
  Tensor &x = lowering.get(op.getX());
  if (op.getKind() != prim::PadKind::Constant && !isPermutation(op)) // elements are read several times
    lowering.realizeUnlessCheap(x, op.getLoc());
  Exprs low = prim::getExprs(op.getLow()), extents = prim::getDims(op.getX());
  Exprs padded = prim::getDims(op.getResult());
  prim::PadKind kind = op.getKind();
  ElementFn inner = x.element, fill = lowering.get(op.getValue()).element;
  int64_t fillRank = prim::getRank(op.getValue());
  Tensor result = x;
  result.buffer = {};
  result.isScalarConstant = false;
  result.dims = padded;
  result.operations += kind == prim::PadKind::Constant ? 1 : 0;
  result.element = [=](Body &body, const Index &index) -> Value {
    Index shifted{{}, index.operands};
    Exprs conditions;
    for (auto [at, before, extent, whole] : llvm::zip(index.at, low, extents, padded)) {
      Expr position = at - before;
      bool hasBorder = !before.isConstant(0) || whole != extent;
      shifted.at.push_back(hasBorder ? borderIndex(kind, position, extent).simplify(body.ranges) : position);
      conditions.push_back(position);
      conditions.push_back(extent - 1 - position);
    }
    if (kind != prim::PadKind::Constant)
      return inner(body, shifted);
    Exprs zeros(fillRank,
                Expr::constant(extents.empty() ? fill(body, {{}, {}}).getContext() : extents[0].getContext(), 0));
    Value other = fill(body, {zeros, {}});
    return emitMasked(body, conditions, index.operands, other, [&] { return inner(body, shifted); });
  };
  return result;
}

} // namespace

bool loop::isPermutation(Operation *op) {
  auto pad = dyn_cast_or_null<prim::PadOp>(op);
  bool isRoll = pad && pad.getKind() == prim::PadKind::Wrap && pad.getX().getType() == pad.getResult().getType();
  return isRoll || isa_and_nonnull<prim::ReshapeOp, prim::TransposeOp>(op);
}

bool FunctionLowering::lowerView(Operation *op) {
  Tensor result;
  if (auto reshape = dyn_cast<prim::ReshapeOp>(op))
    result = lowerReshape(*this, reshape);
  else if (auto broadcast = dyn_cast<prim::BroadcastOp>(op))
    result = lowerBroadcast(*this, broadcast);
  else if (auto transpose = dyn_cast<prim::TransposeOp>(op))
    result = lowerTranspose(*this, transpose);
  else if (auto slice = dyn_cast<prim::SliceOp>(op))
    result = lowerSlice(*this, slice);
  else if (auto pad = dyn_cast<prim::PadOp>(op))
    result = lowerPad(*this, pad);
  else if (auto concat = dyn_cast<prim::ConcatOp>(op)) {
    lowerConcat(concat);
    return true;
  } else
    return false;
  set(op->getResult(0), std::move(result));
  return true;
}

// One buffer into which each operand is copied; ElideCopies lets the operands'
// producers write there themselves, and nothing of the concat remains.
void FunctionLowering::lowerConcat(prim::ConcatOp op) {
  Value buffer = createBuffer(prim::getDims(op.getResult()), prim::getElementType(op.getResult()), op.getLoc());
  unsigned axis = op.getAxis();
  Expr offset = Expr::constant(context, 0);
  for (Value input : op.getInputs()) {
    Tensor &x = get(input);
    store(
        x, buffer,
        [&](ArrayRef<Expr> at) {
          Exprs position(at);
          position[axis] = position[axis] + offset;
          return position;
        },
        op.getLoc());
    offset = offset + x.dims[axis];
  }
  set(op.getResult(), readOf(buffer, prim::getElementType(op.getResult())));
}
