//===- PrimBuilderViews.cpp - views and indexing --------------------------===//
#include "lowering/decomp/PrimBuilder.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;
using namespace ptc::prim;

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

Value PrimBuilder::reshape(Value x, ArrayRef<Expr> to) {
  if (!x)
    return {};
  Dims from = dims(x);
  if (from == Dims(to))
    return x;
  if (!shapes.assumeEqual(product(getContext(), from), product(getContext(), to)))
    return fail(DiagId::BadReshape, describe(from), describe(to));
  return fold(ReshapeOp::create(builder, loc, resultType(to, elementType(x)), x));
}

Value PrimBuilder::reshapeInferred(Value x, Dims to) {
  if (!x)
    return {};
  Dims known;
  Expr *open = nullptr;
  for (Expr &dim : to) {
    if (dim)
      known.push_back(dim);
    else if (open)
      return fail(DiagId::BadReshape, describe(dims(x)), describe(to));
    else
      open = &dim;
  }
  if (!open)
    return reshape(x, to);
  ShapeScope::Quotient rest = shapes.divide(dims(x), known);
  bool isEmptyByZero = llvm::any_of(known, [](Expr e) { return e.isConstant(0); });
  if (isEmptyByZero)
    return fail(DiagId::BadReshape, describe(dims(x)), describe(to));
  // What does not cancel may be 0, beside which any size is right: refused, as by others.
  if (!rest.isExact() && !shapes.assume(Expr::lt(expr(0), rest.denominator)))
    return fail(DiagId::BadReshape, describe(dims(x)), describe(to));
  if (!rest.isExact() && !shapes.assumeEqual(rest.numerator.mod(rest.denominator), expr(0)))
    return fail(DiagId::BadReshape, describe(dims(x)), describe(to));
  *open = shapes.simplify(rest.numerator.floorDiv(rest.denominator));
  if (dims(x) == to)
    return x;
  return fold(ReshapeOp::create(builder, loc, resultType(to, elementType(x)), x));
}

Value PrimBuilder::unsqueeze(Value x, ArrayRef<int64_t> axes) {
  if (!x)
    return {};
  Dims from = dims(x), to;
  size_t next = 0;
  for (size_t i = 0; i < from.size() + axes.size(); ++i)
    to.push_back(llvm::is_contained(axes, int64_t(i)) || next == from.size() ? expr(1) : from[next++]);
  return reshape(x, to);
}

Value PrimBuilder::squeeze(Value x, ArrayRef<int64_t> axes) {
  if (!x)
    return {};
  Dims to;
  for (auto [i, dim] : llvm::enumerate(dims(x))) {
    if (!llvm::is_contained(axes, int64_t(i)))
      to.push_back(dim);
    else if (!shapes.assumeEqual(dim, expr(1)))
      return fail(DiagId::DimMismatch, "the squeezed dim " + std::to_string(i), dim, "the size that can be squeezed",
                  1);
  }
  if (rank(x) == int64_t(to.size()))
    return x;
  return fold(ReshapeOp::create(builder, loc, resultType(to, elementType(x)), x));
}

//===----------------------------------------------------------------------===//
// Transpose, slice, pad, concat
//===----------------------------------------------------------------------===//

Value PrimBuilder::transpose(Value x, ArrayRef<int64_t> permutation) {
  if (!x)
    return {};
  Dims from = dims(x), to;
  SmallVector<bool> isSeen(from.size(), false);
  if (permutation.size() != from.size())
    return fail(DiagId::WrongRank, 0, from.size(), "the permutation has another length");
  bool isIdentity = true;
  for (auto [i, axis] : llvm::enumerate(permutation)) {
    if (axis < 0 || axis >= int64_t(from.size()))
      return fail(DiagId::BadAxis, axis, from.size());
    if (isSeen[axis])
      return fail(DiagId::BadAttribute, "perm", describe(exprs(permutation)),
                  "axis " + std::to_string(axis) + " repeats");
    isSeen[axis] = true;
    isIdentity &= axis == int64_t(i);
    to.push_back(from[axis]);
  }
  if (isIdentity)
    return x;
  return fold(TransposeOp::create(builder, loc, resultType(to, elementType(x)), x, permutation));
}

Value PrimBuilder::swapAxes(Value x, int64_t a, int64_t b) {
  Ints permutation = llvm::to_vector(llvm::seq<int64_t>(rank(x)));
  if (std::min(a, b) >= 0 && std::max(a, b) < rank(x))
    std::swap(permutation[a], permutation[b]);
  return transpose(x, permutation);
}

Value PrimBuilder::slice(Value x, ArrayRef<Expr> starts, ArrayRef<int64_t> steps, ArrayRef<Expr> to) {
  if (!x)
    return {};
  bool isWhole = dims(x) == Dims(to) && llvm::all_of(steps, [](int64_t s) { return s == 1; });
  if (isWhole)
    return x;
  ArrayAttr startsAttr = getExprArray(getContext(), starts);
  return fold(SliceOp::create(builder, loc, resultType(to, elementType(x)), x, startsAttr, steps));
}

Value PrimBuilder::sliceAxis(Value x, int64_t axis, Expr start, Expr size, int64_t step) {
  if (!hasAxis(x, axis))
    return {};
  Dims to = dims(x), starts(to.size(), expr(0));
  Ints steps(to.size(), 1);
  Expr last = shapes.simplify(start + (size - 1) * step), whole = to[axis];
  bool isKnown = last.isConstant() && whole.isConstant() && size.isConstant() && size.getValue() > 0;
  if (isKnown && (last.getValue() < 0 || last.getValue() >= whole.getValue()))
    return fail(DiagId::IndexOutOfRange, last, axis, whole);
  starts[axis] = start;
  steps[axis] = step;
  to[axis] = size;
  return slice(x, starts, steps, to);
}

Value PrimBuilder::at(Value x, int64_t axis, int64_t index) {
  return squeeze(sliceAxis(x, axis, expr(index), expr(1)), axis);
}

Value PrimBuilder::pad(Value x, Value value, ArrayRef<Expr> low, ArrayRef<Expr> high, PadKind kind) {
  if (!x || !value)
    return {};
  Dims from = dims(x), to;
  if (low.size() != from.size() || high.size() != from.size())
    return fail(DiagId::WrongRank, 0, from.size(), "another number of dims is padded");
  bool isNothing = true;
  for (auto [i, dim] : llvm::enumerate(from)) {
    to.push_back(settle(dim + low[i] + high[i]));
    isNothing &= low[i].isConstant(0) && high[i].isConstant(0);
    if (!shapes.isNonNegative(to.back()) && !shapes.assume(Expr::lt(expr(-1), to.back())))
      return fail(DiagId::NegativeDim, i, to.back());
  }
  if (isNothing)
    return x;
  if (elementType(value) != elementType(x))
    return fail(DiagId::TypeMismatch, elementType(x), elementType(value));
  ArrayAttr lowAttr = getExprArray(getContext(), low);
  return fold(PadOp::create(builder, loc, resultType(to, elementType(x)), x, reshape(value, {}), lowAttr, kind));
}

Value PrimBuilder::concat(ArrayRef<Value> inputs, int64_t axis) {
  if (inputs.empty() || !llvm::all_of(inputs, [](Value v) { return bool(v); }))
    return {};
  if (!hasAxis(inputs.front(), axis))
    return {};
  Dims to = dims(inputs.front());
  Values parts;
  for (auto [number, input] : llvm::enumerate(inputs)) {
    Dims from = dims(input);
    if (from.size() != to.size())
      return fail(DiagId::WrongRank, number, from.size(), "all inputs must have the rank of the first");
    if (elementType(input) != elementType(inputs.front()))
      return fail(DiagId::TypeMismatch, elementType(inputs.front()), elementType(input));
    for (auto [i, dim] : llvm::enumerate(from)) {
      if (int64_t(i) == axis)
        continue;
      if (!shapes.assumeEqual(dim, to[i]))
        return fail(DiagId::DimMismatch, llvm::formatv("dim {0} of input {1}", i, number).str(), dim, "that of input 0",
                    to[i]);
      if (dim.isConstant())
        to[i] = dim;
    }
  }
  Expr size = expr(0);
  for (Value input : inputs) {
    Expr part = dim(input, axis);
    size = size + part;
    to[axis] = part;
    if (!part.isConstant(0))
      parts.push_back(recast(input, to));
  }
  to[axis] = shapes.simplify(size);
  if (parts.size() == 1)
    return parts.front();
  if (parts.empty())
    return inputs.front();
  return fold(ConcatOp::create(builder, loc, resultType(to, elementType(parts.front())), parts, axis));
}

Value PrimBuilder::stack(ArrayRef<Value> inputs, int64_t axis) {
  return concat(llvm::map_to_vector(inputs, [&](Value v) { return unsqueeze(v, axis); }), axis);
}

//===----------------------------------------------------------------------===//
// Indexing
//===----------------------------------------------------------------------===//

Value PrimBuilder::wrapIndices(Value indices, Expr size) {
  if (!indices)
    return {};
  if (std::optional<Dims> known = knownExprs(indices);
      known && llvm::all_of(*known, [&](Expr e) { return shapes.isNonNegative(e); }))
    return indices;
  if (isUnsigned(indices))
    return indices;
  Value isNegative = less(indices, scalarLike(0, indices));
  Value wrapped = add(indices, fromExprs(size, elementType(indices), /*isScalar=*/true));
  return select(isNegative, wrapped, indices);
}

/// No index is in range of an empty axis, and a kernel's index is at least 0: so there must be none. `places` are dims
/// of what indices name, elements at each of them.
static bool hasPlaces(PrimBuilder &n, const Dims &places, int64_t axis, Expr size) {
  Expr count = n.expr(1);
  for (Expr dim : places)
    count = n.shapes.isPositive(dim) ? count : count * dim;
  if (n.shapes.isPositive(size) || n.shapes.assume(Expr::lt(Expr::min(count, n.expr(1)), size + 1)))
    return true;
  n.fail(DiagId::IndexOutOfRange, 0, axis, size);
  return false;
}

/// The same of tuples of indices, for axes of `from` from `axis` on.
static bool hasTuples(PrimBuilder &n, const Dims &places, const Dims &from, int64_t axis, int64_t length) {
  return llvm::all_of(llvm::seq<int64_t>(axis, axis + length),
                      [&](int64_t each) { return hasPlaces(n, places, each, from[each]); });
}

Value PrimBuilder::gather(Value x, Value indices, int64_t axis) {
  if (!hasAxis(x, axis) || !indices)
    return {};
  if (!isInteger(indices))
    return fail(DiagId::WrongInputType, 1, elementType(indices), "an integer type is needed");
  Expr size = dim(x, axis);
  if (std::optional<Ints> known = knownInts(indices); known && size.isConstant())
    for (int64_t index : *known)
      if (index < -size.getValue() || index >= size.getValue())
        return fail(DiagId::IndexOutOfRange, index, axis, size);
  indices = wrapIndices(indices, size);
  // One known index is a slice. One that the program learns, and that may be out of range, is checked by the op.
  std::optional<Dims> known = knownExprs(indices);
  if (known && known->size() == 1 && rank(indices) == 0) {
    Expr index = known->front();
    bool isChecked = shapes.isNonNegative(index) && shapes.less(index, size).value_or(false);
    if (!isChecked && !shapes.isBoundInside(index) && !shapes.isBoundInside(size)) {
      if (!shapes.assume(Expr::lt(expr(-1), index)) || !shapes.assume(Expr::lt(index, size)))
        return fail(DiagId::IndexOutOfRange, index, axis, size);
      isChecked = true;
    }
    if (isChecked)
      return squeeze(sliceAxis(x, axis, index, expr(1)), axis);
  }
  Dims from = dims(x), to(from.begin(), from.begin() + axis);
  llvm::append_range(to, dims(indices));
  to.append(from.begin() + axis + 1, from.end());
  if (!hasPlaces(*this, to, axis, size))
    return {};
  return fold(GatherOp::create(builder, loc, resultType(to, elementType(x)), x, indices, axis));
}

/// Indices of elements are taken from x at their own places but for `axis`: they may not reach beyond it.
static bool reachesInto(PrimBuilder &n, Value x, Value indices, int64_t axis) {
  if (n.rank(x) != n.rank(indices)) {
    n.fail(DiagId::WrongRank, 1, n.rank(indices), "that of the data is needed");
    return false;
  }
  for (int64_t d = 0; d < n.rank(x); ++d)
    if (d != axis && !n.shapes.assume(Expr::lt(n.dim(indices, d), n.dim(x, d) + 1))) {
      n.fail(DiagId::DimMismatch, "a size of the indices", n.dim(indices, d), "that of the data", n.dim(x, d));
      return false;
    }
  return hasPlaces(n, n.dims(indices), axis, n.dim(x, axis));
}

/// What is written, an element for each place; null where there are more or fewer.
static Value updatesOf(PrimBuilder &n, Value updates, const Dims &places) {
  if (n.rank(updates) != int64_t(places.size()))
    return n.fail(DiagId::WrongRank, 2, n.rank(updates), "updates have the dims of the places that the indices name");
  for (auto [found, wanted] : llvm::zip(n.dims(updates), places))
    if (!n.shapes.assumeEqual(found, wanted))
      return n.fail(DiagId::DimMismatch, "a size of the updates", found, "that of the places that the indices name",
                    wanted);
  return n.broadcastTo(updates, places); // equal sizes of other names
}

Value PrimBuilder::gatherElements(Value x, Value indices, int64_t axis) {
  if (!hasAxis(x, axis) || !indices || !hasAxis(indices, rank(x) - 1))
    return {};
  if (!isInteger(indices))
    return fail(DiagId::WrongInputType, 1, elementType(indices), "an integer type is needed");
  if (!reachesInto(*this, x, indices, axis))
    return {};
  indices = wrapIndices(indices, dim(x, axis));
  return fold(GatherElementsOp::create(builder, loc, resultType(dims(indices), elementType(x)), x, indices, axis));
}

Value PrimBuilder::gatherNd(Value x, Value indices, int64_t batchDims) {
  if (!x || !indices)
    return {};
  Dims from = dims(x), index = dims(indices);
  if (index.empty() || !index.back().isConstant())
    return fail(DiagId::DataDependentShape, "the length of index tuples");
  int64_t length = index.back().getValue();
  if (batchDims < 0 || batchDims + length > int64_t(from.size()) || batchDims >= int64_t(index.size()))
    return fail(DiagId::WrongRank, 0, from.size(), "the index tuples are longer");
  Dims to(index.begin(), index.end() - 1);
  to.append(from.begin() + batchDims + length, from.end());
  if (!hasTuples(*this, to, from, batchDims, length))
    return {};
  return fold(GatherNdOp::create(builder, loc, resultType(to, elementType(x)), x, indices, batchDims));
}

Value PrimBuilder::scatterElements(Value x, Value indices, Value updates, int64_t axis, ScatterKind kind) {
  if (!hasAxis(x, axis) || !indices || !updates)
    return {};
  if (elementType(x) != elementType(updates))
    return fail(DiagId::TypeMismatch, elementType(x), elementType(updates));
  if (!reachesInto(*this, x, indices, axis))
    return {};
  updates = updatesOf(*this, updates, dims(indices));
  if (!updates)
    return {};
  auto repeated = indices.getDefiningOp<BroadcastOp>(); // scatters that share indices store one for all that repeat it
  indices = wrapIndices(repeated ? repeated.getX() : indices, dim(x, axis));
  if (repeated)
    indices = fold(BroadcastOp::create(builder, loc, repeated.getType(), indices, repeated.getAxes()));
  return ScatterElementsOp::create(builder, loc, x.getType(), x, indices, updates, axis, kind);
}

Value PrimBuilder::scatterNd(Value x, Value indices, Value updates, ScatterKind kind) {
  if (!x || !indices || !updates)
    return {};
  if (elementType(x) != elementType(updates))
    return fail(DiagId::TypeMismatch, elementType(x), elementType(updates));
  Dims data = dims(x), index = dims(indices);
  if (index.empty() || !index.back().isConstant())
    return fail(DiagId::DataDependentShape, "the length of index tuples");
  if (index.back().getValue() > int64_t(data.size()))
    return fail(DiagId::WrongRank, 0, data.size(), "the index tuples are longer");
  Dims places(index.begin(), index.end() - 1);
  places.append(data.begin() + index.back().getValue(), data.end());
  if (!hasTuples(*this, places, data, 0, index.back().getValue()))
    return {};
  updates = updatesOf(*this, updates, places);
  if (!updates)
    return {};
  return ScatterNdOp::create(builder, loc, x.getType(), x, indices, updates, kind);
}
