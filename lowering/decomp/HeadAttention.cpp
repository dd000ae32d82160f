//===- HeadAttention.cpp - attention over heads ---------------------------===//
#include "lowering/decomp/HeadAttention.h"
#include <cmath>

using namespace ptc;
using namespace ptc::decomp;
using namespace ptc::prim;

bool decomp::expectDim(NodeContext &n, llvm::StringRef what, Expr dim, Expr needed) {
  bool holds = n.shapes.assumeEqual(dim, needed);
  if (!holds)
    n.fail(DiagId::DimMismatch, what, dim, "what is needed", needed);
  return holds;
}

Value decomp::splitHeads(NodeContext &n, Value x, int64_t heads) {
  if (n.rank(x) != 3)
    return n.fail(DiagId::WrongRank, 0, n.rank(x), "[batch, rows, heads * size] is needed");
  Expr width = n.dim(x, 2);
  if (heads < 1 || !n.shapes.assumeEqual(width.mod(heads), n.expr(0)))
    return n.fail(DiagId::BadAttribute, "num_heads", heads, "it must divide the width " + width.str());
  Expr size = n.shapes.simplify(width.floorDiv(heads));
  return n.transpose(n.reshape(x, {n.dim(x, 0), n.dim(x, 1), n.expr(heads), size}), {0, 2, 1, 3});
}

Value decomp::joinHeads(NodeContext &n, Value x) {
  Expr width = n.shapes.simplify(n.dim(x, 1) * n.dim(x, 3));
  return n.reshape(n.transpose(x, {0, 2, 1, 3}), {n.dim(x, 0), n.dim(x, 2), width});
}

Value decomp::attendHeads(NodeContext &n, Value q, Value k, Value v, double scale, const HeadMasks &masks) {
  Value scores = n.mul(n.matmul(q, n.swapAxes(k, n.rank(k) - 2, n.rank(k) - 1)), scale);
  if (masks.added)
    scores = n.add(scores, masks.added);
  if (masks.isVisible)
    scores = n.select(masks.isVisible, scores, n.lowest(n.elementType(scores)));
  return n.matmul(n.softmax(scores, n.rank(scores) - 1), v);
}

double decomp::scoreScale(NodeContext &n, Value heads) {
  if (double scale = n.real("scale", 0))
    return scale;
  Expr size = n.dim(heads, n.rank(heads) - 1);
  if (heads && !size.isConstant())
    n.fail(DiagId::DataDependentShape, "the size of a head");
  return size.isConstant() && size.getValue() > 0 ? 1 / std::sqrt(double(size.getValue())) : 0;
}

Value decomp::causalMask(NodeContext &n, Expr rows, Expr keys, Expr past) {
  Value row = n.iota(0, {rows, keys}, n.si64()), key = n.iota(1, {rows, keys}, n.si64());
  return n.lessEqual(key, n.add(row, n.fromExprs(past, n.si64(), /*isScalar=*/true)));
}

Value decomp::paddingMask(NodeContext &n, size_t input, Expr batch, Expr rows, Expr keys, Type type) {
  Value mask = n.input(input);
  if (mask && !n.isInteger(mask))
    return n.fail(DiagId::WrongInputType, input, n.elementType(mask), "an integer type is needed");
  Value isVisible, zero = n.scalarLike(0, mask);
  auto isKnown = [&](Expr a, Expr b) { return n.shapes.equal(a, b) == std::optional(true); };
  if (n.rank(mask) == 1) {
    // The end of each sequence, then its begin if there are two numbers a sequence.
    Expr count = n.dim(mask, 0);
    bool hasBegin = isKnown(count, batch * 2) && !isKnown(count, batch);
    if (!hasBegin && !n.shapes.assumeEqual(count, batch))
      return n.fail(DiagId::UnsupportedForm, "a mask of " + count.str() + " numbers for a batch of " + batch.str());
    Value key = n.iota(1, {batch, keys}, n.elementType(mask));
    isVisible = n.less(key, n.unsqueeze(n.sliceAxis(mask, 0, n.expr(0), batch), 1));
    if (hasBegin)
      isVisible = n.logicalAnd(isVisible, n.lessEqual(n.unsqueeze(n.sliceAxis(mask, 0, batch, batch), 1), key));
  } else if (n.rank(mask) == 2 || n.rank(mask) == 3) {
    isVisible = n.less(zero, mask);
  } else {
    return n.fail(DiagId::WrongRank, input, n.rank(mask), "a mask of rank 1, 2 or 3 is needed");
  }
  isVisible = n.rank(mask) == 3 ? n.unsqueeze(isVisible, 1) : n.unsqueeze(isVisible, {1, 2});
  double filter = n.real("mask_filter_value", -10000.0);
  return n.select(isVisible, n.scalar(0, type), n.scalar(filter, type));
}

Value decomp::rotatePairs(NodeContext &n, Value x, Value cos, Value sin, bool areNeighbours) {
  if (!x || !cos || !sin)
    return {};
  int64_t last = n.rank(x) - 1;
  Expr pairs = n.dim(cos, n.rank(cos) - 1), rotated = n.shapes.simplify(pairs * 2), size = n.dim(x, last);
  if (!n.shapes.assume(Expr::lt(rotated, size + 1)))
    return n.fail(DiagId::DimMismatch, "twice the width of the cosines", rotated, "the size of a head", size);
  Value head = n.sliceAxis(x, last, n.expr(0), rotated);
  Dims split = n.dims(head);
  if (!head)
    return {};
  split.pop_back();
  split.push_back(areNeighbours ? pairs : n.expr(2));
  split.push_back(areNeighbours ? n.expr(2) : pairs);
  int64_t member = areNeighbours ? last + 1 : last;
  Value both = n.reshape(head, split), a = n.at(both, member, 0), b = n.at(both, member, 1);
  Value first = n.sub(n.mul(a, cos), n.mul(b, sin)), second = n.add(n.mul(b, cos), n.mul(a, sin));
  Value result = n.reshape(n.stack({first, second}, member), n.dims(head));
  if (n.shapes.equal(rotated, size) == std::optional(true))
    return result;
  return n.concat({result, n.sliceAxis(x, last, rotated, n.shapes.simplify(size - rotated))}, last);
}
