//===- Pool.cpp - pooling -------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Windows.h"

using namespace ptc::prim;

namespace ptc::decomp {

static std::optional<PlacedWindow> window(NodeContext &n, Value x) {
  std::optional<Ints> size = windowSize(n, x);
  return size ? placeWindow(n, x, *size) : std::nullopt;
}

static bool isPadded(const PlacedWindow &w) {
  auto isZero = [](Expr e) { return e.isConstant(0); };
  return !llvm::all_of(w.low, isZero) || !llvm::all_of(w.high, isZero);
}

/// The elements of every window side by side: [N, C, out..., K], lowest values outside x.
static Value unfold(NodeContext &n, Value x, const PlacedWindow &w) {
  Dims low(2, n.expr(0)), high(2, n.expr(0));
  int64_t spatial = w.size.size();
  for (int64_t i = 0; i < spatial; ++i) {
    // Enough behind x for the last window, which ceil_mode lets reach past the padding.
    Expr end = (w.resultDims[i] - 1) * w.strides[i] + (w.size[i] - 1) * w.dilations[i] + 1;
    low.push_back(w.low[i]);
    high.push_back(end - n.dim(x, i + 2) - w.low[i]);
  }
  Value padded = n.pad(x, n.lowest(n.elementType(x)), low, high);
  Value windows = padded;
  for (int64_t i = 0; i < spatial; ++i) { // dim 2+i becomes [out, k] there and the k moves to the end
    Dims index = {w.resultDims[i], n.expr(w.size[i])};
    Value positions = n.add(n.mul(n.iota(0, index, n.si64()), double(w.strides[i])),
                            n.mul(n.iota(1, index, n.si64()), double(w.dilations[i])));
    windows = n.gather(windows, positions, 2 + i);
    Ints order;
    for (int64_t axis = 0; axis < n.rank(windows); ++axis)
      if (axis != 3 + i)
        order.push_back(axis);
    order.push_back(3 + i);
    windows = n.transpose(windows, order);
  }
  Dims joined = {n.dim(x, 0), n.dim(x, 1)};
  llvm::append_range(joined, w.resultDims);
  int64_t count = 1;
  for (int64_t k : w.size)
    count *= k;
  joined.push_back(n.expr(count));
  return n.reshape(windows, joined);
}

/// The index of each window's maximum in x seen as one vector (row-major, or with the last spatial dims swapped
/// when storage_order is 1).
static Value maxIndices(NodeContext &n, Value x, const PlacedWindow &w) {
  Value best = n.argReduce(ArgKind::Max, unfold(n, x, w), n.rank(x), false, false);
  Dims dims = n.dims(best);
  Value index = n.fill(n.scalar(0, n.si64()), dims);
  int64_t spatial = w.size.size(), inner = 1;
  bool isColumnMajor = n.integer("storage_order", 0) == 1;
  Dims strides(spatial, n.expr(1));
  for (int64_t i = 1; i < spatial; ++i) {
    int64_t axis = isColumnMajor ? i : spatial - 1 - i, previous = isColumnMajor ? i - 1 : spatial - i;
    strides[axis] = strides[previous] * n.dim(x, previous + 2);
  }
  for (int64_t i = spatial; i-- > 0;) {
    Value inWindow = n.binary<RemOp>(n.div(best, double(inner)), n.scalar(w.size[i], n.si64()));
    Value position =
        n.add(n.mul(n.iota(2 + i, dims, n.si64()), double(w.strides[i])), n.mul(inWindow, double(w.dilations[i])));
    position = n.sub(position, n.fromExprs(w.low[i], n.si64(), true));
    index = n.add(index, n.mul(position, n.fromExprs(strides[i], n.si64(), true)));
    inner *= w.size[i];
  }
  Expr image = n.expr(1);
  for (int64_t i = 0; i < spatial; ++i)
    image = image * n.dim(x, i + 2);
  Value plane =
      n.add(n.mul(n.iota(0, dims, n.si64()), n.fromExprs(n.dim(x, 1), n.si64(), true)), n.iota(1, dims, n.si64()));
  return n.add(index, n.mul(plane, n.fromExprs(image, n.si64(), true)));
}

Values maxPool(NodeContext &n) {
  Value x = n.input(0);
  std::optional<PlacedWindow> w = window(n, x);
  if (!w)
    return {};
  return {n.windowReduce(ReduceKind::Max, x, *w), n.hasOutput(1) ? maxIndices(n, x, *w) : Value()};
}

/// How many elements each window averages over.
static Value windowCount(NodeContext &n, Value x, const PlacedWindow &w, bool includePad) {
  int64_t whole = 1;
  for (int64_t k : w.size)
    whole *= k;
  if (!w.hasOverhang && (includePad || !isPadded(w)))
    return n.scalarLike(whole, x);
  PlacedWindow counted = w;
  Dims dims(2, n.expr(1));
  for (size_t i = 0; i < w.size.size(); ++i) {
    dims.push_back(includePad ? n.dim(x, i + 2) + w.low[i] + w.high[i] : n.dim(x, i + 2));
    if (includePad)
      counted.low[i] = n.expr(0);
  }
  return n.windowReduce(ReduceKind::Sum, n.fill(n.scalarLike(1, x), dims), counted);
}

Values averagePool(NodeContext &n) {
  Value x = n.input(0);
  std::optional<PlacedWindow> w = window(n, x);
  if (!w)
    return {};
  return {n.div(n.windowReduce(ReduceKind::Sum, x, *w), windowCount(n, x, *w, n.flag("count_include_pad")))};
}

/// (sum |x|^p)^(1/p)
static Value lpNorm(NodeContext &n, Value x, double p, llvm::function_ref<Value(Value)> sum) {
  if (p == 1)
    return sum(n.abs(x));
  if (p == 2)
    return n.sqrt(sum(n.mul(x, x)));
  Value powers = n.binary<PowOp>(n.abs(x), n.scalarLike(p, x));
  return n.binary<PowOp>(sum(powers), n.scalarLike(1 / p, x));
}

Values lpPool(NodeContext &n) {
  Value x = n.input(0);
  std::optional<PlacedWindow> w = window(n, x);
  if (!w)
    return {};
  return {lpNorm(n, x, n.integer("p", 2), [&](Value y) { return n.windowReduce(ReduceKind::Sum, y, *w); })};
}

//===----------------------------------------------------------------------===//
// Global pools reduce all spatial dims
//===----------------------------------------------------------------------===//

static Ints spatialAxes(NodeContext &n) {
  return llvm::to_vector(llvm::seq<int64_t>(2, std::max<int64_t>(2, n.rank(n.input(0)))));
}

Values globalAveragePool(NodeContext &n) { return {n.mean(n.input(0), spatialAxes(n), true)}; }
Values globalMaxPool(NodeContext &n) { return {n.reduce(ReduceKind::Max, n.input(0), spatialAxes(n), true)}; }
Values globalLpPool(NodeContext &n) {
  return {lpNorm(n, n.input(0), n.integer("p", 2), [&](Value y) { return n.sum(y, spatialAxes(n), true); })};
}

/// Writes each value at the place its index names in a tensor of zeros.
Values maxUnpool(NodeContext &n) {
  Value x = n.input(0), indices = n.input(1);
  std::optional<Ints> size = windowSize(n, x);
  if (!size)
    return {};
  Ints strides = n.integers("strides", Ints(size->size(), 1)), pads = n.integers("pads", Ints(2 * size->size(), 0));
  if (strides.size() != size->size() || pads.size() != 2 * size->size())
    return {n.fail(DiagId::BadAttribute, "strides or pads", "too short", "one value a spatial dim is needed")};
  Dims dims = {n.dim(x, 0), n.dim(x, 1)}, natural = dims;
  for (size_t i = 0; i < size->size(); ++i)
    natural.push_back((n.dim(x, i + 2) - 1) * strides[i] + (*size)[i] - pads[i] - pads[i + size->size()]);
  dims = natural;
  if (n.hasInput(2)) {
    std::optional<Dims> given = n.inputExprs(2, "output_shape");
    if (!given)
      return {};
    dims = *given;
  }
  // Indices count in the tensor of the natural size; a larger output gets it at its beginning.
  Expr total = product(n.getContext(), natural), count = product(n.getContext(), n.dims(x));
  Value flat = n.scatterElements(n.fill(n.scalarLike(0, x), total), n.reshape(indices, count), n.reshape(x, count), 0,
                                 ScatterKind::Set);
  Value y = n.reshape(flat, natural);
  Dims low(dims.size(), n.expr(0)), high;
  if (dims.size() != natural.size())
    return {n.fail(DiagId::DimMismatch, "the length of output_shape", dims.size(), "the rank", natural.size())};
  for (auto [to, from] : llvm::zip(dims, natural))
    high.push_back(to - from);
  return {n.pad(y, n.scalarLike(0, x), low, high)};
}

} // namespace ptc::decomp
