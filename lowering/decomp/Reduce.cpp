//===- Reduce.cpp - reductions, scans, order ------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// `prepare`, reduce, `finish`. No axes means all of them, or none with noop_with_empty_axes.
template <typename Prepare, typename Finish>
static Value reduction(NodeContext &n, ReduceKind kind, Prepare prepare, Finish finish) {
  Value x = n.input(0);
  std::optional<Ints> axes = n.axes(1, n.rank(x));
  if (!axes)
    return {};
  if (axes->empty() && !n.flag("noop_with_empty_axes"))
    *axes = llvm::to_vector(llvm::seq<int64_t>(n.rank(x)));
  return finish(n.reduce(kind, prepare(x), *axes, n.flag("keepdims", true)));
}
static Value same(Value x) { return x; }

/// Booleans have their own kinds of minimum and maximum.
static ReduceKind ordered(NodeContext &n, ReduceKind numeric, ReduceKind boolean) {
  return n.isBool(n.input(0)) ? boolean : numeric;
}

Values reduceSum(NodeContext &n) { return {reduction(n, ReduceKind::Sum, same, same)}; }
Values reduceProd(NodeContext &n) { return {reduction(n, ReduceKind::Prod, same, same)}; }
Values reduceMax(NodeContext &n) { return {reduction(n, ordered(n, ReduceKind::Max, ReduceKind::Any), same, same)}; }
Values reduceMin(NodeContext &n) { return {reduction(n, ordered(n, ReduceKind::Min, ReduceKind::All), same, same)}; }
Values reduceL1(NodeContext &n) {
  return {reduction(n, ReduceKind::Sum, [&](Value x) { return n.abs(x); }, same)};
}
Values reduceSumSquare(NodeContext &n) {
  return {reduction(n, ReduceKind::Sum, [&](Value x) { return n.mul(x, x); }, same)};
}

/// Roots and logarithms of integers are computed in double precision.
static Value inFloat(NodeContext &n, Value x) { return n.isFloat(x) ? x : n.convert(x, n.getBuilder().getF64Type()); }

Values reduceL2(NodeContext &n) {
  auto square = [&](Value x) { return n.mul(inFloat(n, x), inFloat(n, x)); };
  return {reduction(n, ReduceKind::Sum, square, [&](Value x) { return n.convertLike(n.sqrt(x), n.input(0)); })};
}
Values reduceLogSum(NodeContext &n) {
  return {reduction(
      n, ReduceKind::Sum, [&](Value x) { return inFloat(n, x); },
      [&](Value x) { return n.convertLike(n.log(x), n.input(0)); })};
}

Values reduceMean(NodeContext &n) {
  Value x = n.input(0);
  std::optional<Ints> axes = n.axes(1, n.rank(x));
  if (!axes)
    return {};
  if (axes->empty() && n.flag("noop_with_empty_axes"))
    return {x};
  if (axes->empty())
    *axes = llvm::to_vector(llvm::seq<int64_t>(n.rank(x)));
  return {n.mean(x, *axes, n.flag("keepdims", true))};
}

/// m + log(sum(exp(x - m))) with the maximum m, or 0 where that is infinite
Values reduceLogSumExp(NodeContext &n) {
  Value x = n.input(0);
  std::optional<Ints> axes = n.axes(1, n.rank(x));
  if (!axes)
    return {};
  if (axes->empty() && n.flag("noop_with_empty_axes"))
    return {x};
  if (axes->empty())
    *axes = llvm::to_vector(llvm::seq<int64_t>(n.rank(x)));
  Value y = inFloat(n, x), m = n.reduce(ReduceKind::Max, y, *axes, true);
  m = n.select(n.test<IsInfOp>(m), n.scalarLike(0, m), m);
  Value result = n.add(n.log(n.sum(n.exp(n.sub(y, m)), *axes, true)), m);
  if (!n.flag("keepdims", true))
    result = n.squeeze(result, *axes);
  return {n.convertLike(result, x)};
}

static Value argReduction(NodeContext &n, ArgKind kind) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.axis(n.rank(x), 0);
  if (!axis)
    return {};
  return n.argReduce(kind, x, *axis, n.flag("select_last_index"), n.flag("keepdims", true));
}
Values argMax(NodeContext &n) { return {argReduction(n, ArgKind::Max)}; }
Values argMin(NodeContext &n) { return {argReduction(n, ArgKind::Min)}; }

//===----------------------------------------------------------------------===//
// Scans and order
//===----------------------------------------------------------------------===//

static Value cumulative(NodeContext &n, ReduceKind kind) {
  Value x = n.input(0);
  std::optional<int64_t> given = n.inputInt(1, "axis");
  std::optional<int64_t> axis = given ? n.normalizeAxis(*given, n.rank(x)) : std::nullopt;
  return axis ? n.scan(kind, x, *axis, n.flag("exclusive"), n.flag("reverse")) : Value();
}
Values cumSum(NodeContext &n) { return {cumulative(n, ReduceKind::Sum)}; }
Values cumProd(NodeContext &n) { return {cumulative(n, ReduceKind::Prod)}; }

/// `k` is an attribute up to version 1 and an input from 10.
Values topK(NodeContext &n) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.axis(n.rank(x), -1);
  std::optional<Expr> k = n.has("k") ? n.expr(n.integer("k", 0)) : n.inputExpr(1, "k");
  if (!axis || !k)
    return {};
  if (n.shapes.less(n.dim(x, *axis), *k) == true)
    return {n.fail(DiagId::DimMismatch, "k", *k, "the size of the dim it is taken from", n.dim(x, *axis))};
  if (k->isConstant() && k->getValue() < 0)
    return {n.fail(DiagId::NegativeDim, *axis, *k)};
  auto [values, indices] = n.sort(x, *axis, /*descending=*/n.flag("largest", true), *k);
  return {values, indices};
}

} // namespace ptc::decomp
