//===- Reduce.cpp - reductions, scans, order ------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

namespace {
/// A view of x with the dims that axes name last, in which sizes are symbols that the program binds.
struct OpenAxes {
  Value x, places; // elements, and where each lies in the row-major x
  Ints axes;       // the last dims
  Dims kept;       // x's dims with 1 for those that are named
};
} // namespace

/// Axes that are known only when the model runs. Sizes and strides of the view's dims are picked from those of x.
static std::optional<OpenAxes> openAxes(NodeContext &n, Value x, llvm::ArrayRef<Value> axes) {
  int64_t rank = n.rank(x), kept = rank - int64_t(axes.size());
  if (kept < 0) {
    n.fail(DiagId::DimMismatch, "the number of axes", axes.size(), "the rank", rank);
    return std::nullopt;
  }
  Dims from = n.dims(x), strides(rank, n.expr(1));
  for (int64_t i = rank - 1; i-- > 0;)
    strides[i] = strides[i + 1] * from[i + 1];
  auto number = [&](Expr e) { return n.fromExprs(e, n.si64(), /*isScalar=*/true); };
  Value zero = n.scalar(0, n.si64()), one = n.scalar(1, n.si64());
  OpenAxes open;
  Values sizes(rank, one), steps(rank, zero);
  Value keptBefore = zero;
  for (int64_t i = 0; i < rank; ++i) {
    Value isNamed = n.scalar(0, n.i1());
    auto choose = [&](int64_t place, Value isThis) {
      sizes[place] = n.select(isThis, number(from[i]), sizes[place]);
      steps[place] = n.select(isThis, number(strides[i]), steps[place]);
    };
    for (auto [q, axis] : llvm::enumerate(axes)) {
      Value isThis = n.logicalOr(n.equal(axis, n.scalar(i, n.si64())), n.equal(axis, n.scalar(i - rank, n.si64())));
      choose(kept + q, isThis);
      isNamed = n.logicalOr(isNamed, isThis);
    }
    for (int64_t p = 0; p < kept; ++p)
      choose(p, n.logicalAnd(n.logicalNot(isNamed), n.equal(keptBefore, n.scalar(p, n.si64()))));
    keptBefore = n.add(keptBefore, n.select(isNamed, zero, one));
    open.kept.push_back(n.bind(n.select(isNamed, one, number(from[i])), Expr::max(from[i], n.expr(1))));
  }
  Expr most = n.expr(1);
  for (Expr size : from)
    most = Expr::max(most, size);
  Dims dims;
  for (Value size : sizes)
    dims.push_back(n.bind(size, n.shapes.simplify(most)));
  open.places = n.fill(zero, dims);
  for (int64_t i = 0; i < rank; ++i)
    open.places = n.add(open.places, n.mul(n.iota(i, dims, n.si64()), steps[i]));
  open.x = n.gather(n.reshape(x, product(n.getContext(), from)), open.places, 0);
  for (int64_t i = kept; i < rank; ++i)
    open.axes.push_back(i);
  return open;
}

/// `reduce(x, axes, keepDims)` over axes that only the run knows.
template <typename Reduce> static Value reduceAtRuntime(NodeContext &n, Value x, Reduce reduce) {
  std::optional<Values> given = n.inputScalars(1, "axes");
  std::optional<OpenAxes> open = given ? openAxes(n, x, *given) : std::nullopt;
  if (!open)
    return {};
  Value result = reduce(open->x, open->axes, false);
  return n.flag("keepdims", true) ? n.reshape(result, open->kept) : result;
}

/// Whether the axes are an input that only the run knows, and not empty.
static bool hasOpenAxes(NodeContext &n) {
  return n.hasInput(1) && !n.isKnown(1) && !n.dim(n.input(1), 0).isConstant(0);
}

/// `prepare`, reduce, `finish`. No axes means all of them, or none with noop_with_empty_axes.
template <typename Prepare, typename Finish>
static Value reduction(NodeContext &n, ReduceKind kind, Prepare prepare, Finish finish) {
  Value x = n.input(0);
  if (hasOpenAxes(n))
    return reduceAtRuntime(n, x, [&](Value y, llvm::ArrayRef<int64_t> axes, bool keep) {
      return finish(n.reduce(kind, prepare(y), axes, keep));
    });
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

/// Roots and logarithms of integers are computed in double precision; sums below them, such as of squares, are more
/// than 16 bits hold.
static Value inFloat(NodeContext &n, Value x) {
  Type type = n.elementType(x);
  if (!isa<mlir::FloatType>(type))
    return n.convert(x, n.getBuilder().getF64Type());
  return type.getIntOrFloatBitWidth() < 32 ? n.convert(x, n.getBuilder().getF32Type()) : x;
}

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
  if (hasOpenAxes(n))
    return {
        reduceAtRuntime(n, x, [&](Value y, llvm::ArrayRef<int64_t> axes, bool keep) { return n.mean(y, axes, keep); })};
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
static Value logSumExp(NodeContext &n, Value x, llvm::ArrayRef<int64_t> axes, bool keepDims) {
  Value y = inFloat(n, x), m = n.reduce(ReduceKind::Max, y, axes, true);
  m = n.select(n.test<IsInfOp>(m), n.scalarLike(0, m), m);
  Value result = n.add(n.log(n.sum(n.exp(n.sub(y, m)), axes, true)), m);
  return n.convertLike(keepDims ? result : n.squeeze(result, axes), x);
}

Values reduceLogSumExp(NodeContext &n) {
  Value x = n.input(0);
  if (hasOpenAxes(n))
    return {reduceAtRuntime(
        n, x, [&](Value y, llvm::ArrayRef<int64_t> axes, bool keep) { return logSumExp(n, y, axes, keep); })};
  std::optional<Ints> axes = n.axes(1, n.rank(x));
  if (!axes)
    return {};
  if (axes->empty() && n.flag("noop_with_empty_axes"))
    return {x};
  if (axes->empty())
    *axes = llvm::to_vector(llvm::seq<int64_t>(n.rank(x)));
  return {logSumExp(n, x, *axes, n.flag("keepdims", true))};
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
  if (n.hasInput(1) && !n.isKnown(1)) {
    std::optional<Values> axes = n.inputScalars(1, "axis");
    if (!axes)
      return {};
    std::optional<OpenAxes> open = openAxes(n, x, *axes);
    if (!open)
      return {};
    // Forth and back: where an element comes from is where its result goes.
    Value scanned = n.scan(kind, open->x, n.rank(x) - 1, n.flag("exclusive"), n.flag("reverse"));
    Expr size = product(n.getContext(), n.dims(x));
    Value places = n.reshape(open->places, size), flat = n.reshape(scanned, size);
    Value zeros = n.fill(n.scalarLike(0, x), size);
    return n.reshape(n.scatterElements(zeros, places, flat, 0, ScatterKind::Set), n.dims(x));
  }
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
  std::optional<Expr> k = n.expr(n.integer("k", 0));
  if (!n.has("k") && axis)
    k = n.isKnown(1) ? n.inputExpr(1, "k") : n.bind(n.input(1), n.dim(x, *axis));
  if (!axis || !k)
    return {};
  if (!n.shapes.assume(Expr::lt(*k, n.dim(x, *axis) + 1)))
    return {n.fail(DiagId::DimMismatch, "k", *k, "the size of the dim it is taken from", n.dim(x, *axis))};
  if (k->isConstant() && k->getValue() < 0)
    return {n.fail(DiagId::NegativeDim, *axis, *k)};
  auto [values, indices] = n.sort(x, *axis, /*descending=*/n.flag("largest", true), *k);
  return {values, indices};
}

} // namespace ptc::decomp
