//===- Selection.cpp - operators whose results are as long as they find ----===//
#include "lowering/decomp/OnnxOps.h"
#include "lowering/passes/Patterns.h"

using namespace ptc::prim;

namespace ptc::decomp {

/// The numbers of the positions that are true, where those are known as they are; of 32 bits where these hold all.
static Value positionsOfTrue(NodeContext &n, Value mask) {
  if (std::optional<Ints> known = n.knownInts(mask)) {
    Ints kept;
    for (auto [i, isKept] : llvm::enumerate(*known))
      if (isKept)
        kept.push_back(i);
    return n.intVector(kept);
  }
  if (!mask)
    return {};
  bool isShort = n.shapes.range(n.dim(mask, 0)).max < std::numeric_limits<int32_t>::max();
  return n.findTrue(mask, {}, isShort ? n.si32() : n.si64());
}

/// The slices of x along an axis (or the elements of flat x) whose condition is true.
Values compress(NodeContext &n) {
  Value x = n.input(0), condition = n.input(1);
  int64_t axis = 0;
  if (!n.has("axis")) {
    x = n.reshape(x, product(n.getContext(), n.dims(x)));
  } else if (std::optional<int64_t> given = n.axis(n.rank(x), 0)) {
    axis = *given;
  } else {
    return {};
  }
  if (n.rank(condition) != 1)
    return {n.fail(DiagId::WrongRank, 1, n.rank(condition), "a vector is needed")};
  return {n.gather(x, positionsOfTrue(n, condition), axis)};
}

/// Whether all elements are one constant, and not 0.
static bool isFilled(Value x) {
  std::optional<double> value = getSplat(x);
  return value && *value != 0;
}

static Value isComplexNonZero(NodeContext &n, Value x) {
  auto [re, im] = n.complexParts(x);
  auto differs = [&](Value v) { return n.predicate<NeOp>(v, n.scalarLike(0, v)); };
  return n.logicalOr(differs(re), differs(im));
}

/// The indices of the elements that are not 0, one column an element. A scalar counts as a vector of one.
Values nonZero(NodeContext &n) {
  Value x = n.input(0);
  if (n.rank(x) == 0)
    x = n.reshape(x, n.expr(1));
  if (!x)
    return {};
  Dims dims = n.dims(x);
  Expr size = product(n.getContext(), dims);
  Value flat = n.reshape(x, size);
  Value position;
  if (isFilled(x)) // exporters count that way: NonZero(ConstantOfShape)
    position = n.iota(0, size, n.si64());
  else
    position = positionsOfTrue(n, n.isBool(x)      ? flat
                                  : n.isComplex(x) ? isComplexNonZero(n, flat)
                                  : n.isString(x)  ? n.logicalNot(n.equal(flat, n.scalarLike(0, flat)))
                                                   : n.predicate<NeOp>(flat, n.scalarLike(0, flat)));
  if (!position)
    return {};
  // The place along a dim is what its quotient has beyond that of the dim in front. A dim of one element has the
  // quotient of the dim in front of it, and is none to those behind it.
  Values rows;
  Value before;
  auto scalar = [&](Expr e) { return n.fromExprs(e, n.elementType(position), /*isScalar=*/true); };
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis].isConstant(1)) {
      rows.push_back(n.fill(n.scalar(0, n.si64()), n.dim(position, 0)));
      continue;
    }
    Expr stride = product(n.getContext(), llvm::ArrayRef(dims).drop_front(axis + 1));
    Value quotient = stride.isConstant(1) ? position : n.div(position, scalar(stride));
    Value row = before ? n.sub(quotient, n.mul(before, scalar(dims[axis]))) : quotient;
    rows.push_back(n.convert(row, n.si64()));
    before = quotient;
  }
  return {n.stack(rows, 0)};
}

//===----------------------------------------------------------------------===//
// Unique
//===----------------------------------------------------------------------===//

namespace {
/// What the four results are made of: groups of equal elements in ascending order.
struct Groups {
  Value order;  // positions in x, sorted by element, equal ones by position [n]
  Value starts; // where in `order` each group begins [u]
  Value number; // of the group, for each place in `order` [n]
};
} // namespace

static Value differ(NodeContext &n, Value a, Value b) {
  Value result = n.predicate<NeOp>(a, b);
  return n.isFloat(a) ? n.logicalAnd(result, n.logicalNot(n.logicalAnd(n.isNan(a), n.isNan(b)))) : result;
}

/// `isNew`: whether a group begins at a place of `order`.
static Groups groupsOf(NodeContext &n, Value order, Value isNew) {
  Value number = n.sub(n.scan(ReduceKind::Sum, n.convert(isNew, n.si64()), 0, false, false), 1.0);
  return {order, n.findTrue(isNew), number};
}

/// true at 0, then `isNew`: for no elements, nothing.
static Value withFirst(NodeContext &n, Value isNew, Expr size) {
  Value first = n.equal(n.iota(0, size, n.si64()), n.scalar(0, n.si64()));
  return n.logicalOr(first, isNew);
}

/// A value at each place and that at the place before it (at 0: that at 0).
static Value before(NodeContext &n, Value x) {
  Value place = n.iota(0, n.dim(x, 0), n.si64());
  Value previous = n.maximum(n.sub(place, 1.0), n.scalar(0, n.si64()));
  return n.gather(x, previous, 0);
}

static Groups groupElements(NodeContext &n, Value flat) {
  Expr size = n.dim(flat, 0);
  auto [sorted, order] = n.sort(flat, 0, /*descending=*/false, size);
  return groupsOf(n, order, withFirst(n, differ(n, sorted, before(n, sorted)), size));
}

/// Rows in lexicographic order. The rank of a row is the number of rows before it: those that are less where the two
/// differ first, and equal ones that stand before it.
static Groups groupRows(NodeContext &n, Value rows) {
  Expr size = n.dim(rows, 0), length = n.dim(rows, 1);
  Dims pairs = {size, size, length};
  Value a = n.broadcast(rows, {0, 2}, pairs), b = n.broadcast(rows, {1, 2}, pairs);
  Value differs = differ(n, a, b);
  Value place = n.argReduce(ArgKind::Max, n.convert(differs, n.ui8()), 2, /*selectLast=*/false, /*keepDims=*/true);
  auto pick = [&](Value x) { return n.squeeze(n.gatherElements(x, place, 2), 2); };
  Value first = pick(a), second = pick(b);
  Value isEqual = n.logicalNot(n.reduce(ReduceKind::Any, differs, {2}, false));
  Value isLess = n.less(second, first); // row j (dim 1) before row i (dim 0)
  if (n.isFloat(first))                 // NaN above everything
    isLess = n.logicalOr(isLess, n.logicalAnd(n.isNan(first), n.logicalNot(n.isNan(second))));
  Dims square = {size, size};
  Value isEarlier = n.less(n.iota(1, square, n.si64()), n.iota(0, square, n.si64()));
  Value precedes = n.select(isEqual, isEarlier, isLess);
  Value rank = n.sum(n.convert(precedes, n.si64()), {1}, false);
  Value numbers = n.iota(0, size, n.si64());
  Value order = n.scatterElements(n.fill(n.scalar(0, n.si64()), size), rank, numbers, 0, ScatterKind::Set);
  Value sorted = n.gather(rows, order, 0);
  Value isNew = n.reduce(ReduceKind::Any, differ(n, sorted, before(n, sorted)), {1}, false);
  return groupsOf(n, order, withFirst(n, isNew, size));
}

/// The distinct elements, or slices along an axis; where each occurs first; which of them each element of the input is;
/// how often each occurs. Sorted, or in the order of first occurrence.
Values unique(NodeContext &n) {
  Value x = n.input(0);
  int64_t axis = 0;
  bool hasAxis = n.has("axis");
  if (hasAxis) {
    std::optional<int64_t> given = n.axis(n.rank(x), 0);
    if (!given)
      return {};
    axis = *given;
  } else {
    x = n.reshape(x, product(n.getContext(), n.dims(x)));
  }
  if (!x)
    return {};
  Expr size = n.dim(x, axis);
  Ints front = {axis};
  for (int64_t i = 0; i < n.rank(x); ++i)
    if (i != axis)
      front.push_back(i);
  Value keys = x; // strings are compared by their ranks among all
  if (n.isString(x))
    keys = n.call("string_rank", {x}, n.elementCount(x), n.dims(x), n.si64());
  Value rows = n.transpose(keys, front);
  Dims rest = n.dims(rows);
  Expr length = product(n.getContext(), llvm::ArrayRef(rest).drop_front());
  rows = n.reshape(rows, {size, length});
  if (n.isComplex(x)) { // by their real parts, then their imaginary ones
    auto [re, im] = n.complexParts(rows);
    rows = n.reshape(n.stack({re, im}, 2), {size, length * 2});
  }
  bool areElements = n.rank(x) == 1 && !n.isComplex(x);
  Groups groups = areElements ? groupElements(n, keys) : groupRows(n, rows);
  if (!groups.starts)
    return {};
  Expr count = n.dim(groups.starts, 0);
  Value zero = n.scalar(0, n.si64());
  Value first = n.gather(groups.order, groups.starts, 0);
  Value ones = n.fill(n.scalar(1, n.si64()), size);
  Value counts = n.scatterElements(n.fill(zero, count), groups.number, ones, 0, ScatterKind::Add);
  Value inverse = n.scatterElements(n.fill(zero, size), groups.order, groups.number, 0, ScatterKind::Set);
  if (!n.flag("sorted", true)) {
    auto [ascending, order] = n.sort(first, 0, /*descending=*/false, count);
    first = ascending;
    counts = n.gather(counts, order, 0);
    Value place = n.scatterElements(n.fill(zero, count), order, n.iota(0, count, n.si64()), 0, ScatterKind::Set);
    inverse = n.gather(place, inverse, 0);
  }
  return {n.gather(x, first, axis), first, inverse, counts};
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

/// Boxes [batch, n, 4] as (y0, x0, y1, x1) with y0 <= y1 and x0 <= x1.
static Value cornersOf(NodeContext &n, Value boxes) {
  auto part = [&](int64_t i) { return n.sliceAxis(boxes, 2, n.expr(i), n.expr(1)); };
  if (n.flag("center_point_box")) { // (x, y, width, height)
    Value x = part(0), y = part(1), halfWidth = n.div(part(2), 2.0), halfHeight = n.div(part(3), 2.0);
    return n.concat({n.sub(y, halfHeight), n.sub(x, halfWidth), n.add(y, halfHeight), n.add(x, halfWidth)}, 2);
  }
  Value y = part(0), x = part(1), otherY = part(2), otherX = part(3);
  return n.concat({n.minimum(y, otherY), n.minimum(x, otherX), n.maximum(y, otherY), n.maximum(x, otherX)}, 2);
}

/// Boxes [batch, n, 4] and scores [batch, classes, n] give rows (batch, class, box): of each class the boxes with the
/// best scores, but for those that overlap a better one.
Values nonMaxSuppression(NodeContext &n) {
  Value boxes = n.input(0), scores = n.input(1);
  if (n.rank(boxes) != 3 || n.rank(scores) != 3 || !n.shapes.assumeEqual(n.dim(boxes, 2), n.expr(4)))
    return {
        n.fail(DiagId::WrongRank, 0, n.rank(boxes), "boxes [batch, n, 4] and scores [batch, classes, n] are needed")};
  if (!n.shapes.assumeEqual(n.dim(boxes, 0), n.dim(scores, 0)) ||
      !n.shapes.assumeEqual(n.dim(boxes, 1), n.dim(scores, 2)))
    return {n.fail(DiagId::DimMismatch, "the number of boxes", n.dim(boxes, 1), "that of scores", n.dim(scores, 2))};
  Expr batch = n.dim(scores, 0), classes = n.dim(scores, 1), size = n.dim(scores, 2);
  auto scalarInput = [&](size_t i, Value otherwise) { return n.hasInput(i) ? n.reshape(n.input(i), {}) : otherwise; };
  Value limit = scalarInput(2, n.scalar(0, n.si64())), overlap = scalarInput(3, n.scalar(0, n.f32()));
  auto [sorted, order] = n.sort(scores, 2, /*descending=*/true, size);
  Value counts = n.fill(n.fromExprs(size, n.si64(), /*isScalar=*/true), {batch, classes});
  if (n.hasInput(4)) {
    Value isCandidate = n.less(n.reshape(n.input(4), {}), sorted);
    counts = n.sum(n.convert(isCandidate, n.si64()), {2}, false);
  }
  // The boxes of a class, the best first: [batch, classes, n, 4].
  Dims tuples = {batch, classes, size, n.expr(1)};
  Value numbers = n.concat({n.iota(0, tuples, n.si64()), n.unsqueeze(order, {3})}, 3);
  Value best = n.gatherNd(cornersOf(n, boxes), numbers, 0);
  if (!best || !limit || !overlap || !counts)
    return {};
  Type kept = n.resultType({batch, classes, size}, n.i1());
  Value mask = NmsOp::create(n.getBuilder(), n.getLoc(), kept, best, counts, limit, overlap);
  Expr all = batch * classes * size, perClass = size;
  if (std::optional<Ints> known = n.knownInts(limit))
    perClass = n.shapes.simplify(Expr::min(size, n.expr(std::max<int64_t>(known->front(), 0))));
  Value place = n.findTrue(n.reshape(mask, all), batch * classes * perClass);
  auto number = [&](Expr e) { return n.fromExprs(e, n.si64(), /*isScalar=*/true); };
  Value row = n.div(place, number(size));
  Value box = n.gather(n.reshape(order, all), place, 0);
  return {n.stack({n.div(row, number(classes)), n.binary<ModOp>(row, number(classes)), box}, 1)};
}

} // namespace ptc::decomp
