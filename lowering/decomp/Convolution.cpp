//===- Convolution.cpp - convolutions -------------------------------------===//
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Windows.h"

using namespace ptc::prim;

namespace ptc::decomp {

/// A vector over the channels of y, added to it.
static Value addBias(NodeContext &n, Value y, Value bias) {
  return bias && y ? n.add(y, n.broadcast(bias, 1, n.dims(y))) : y;
}

Values conv(NodeContext &n) {
  Value x = n.input(0), w = n.input(1);
  std::optional<Ints> size = windowSize(n, x, w);
  std::optional<PlacedWindow> window = size ? placeWindow(n, x, *size) : std::nullopt;
  int64_t groups = n.integer("group", 1);
  if (!window)
    return {};
  if (groups < 1 || !n.shapes.assumeEqual(n.dim(w, 0).mod(groups), n.expr(0)))
    return {n.fail(DiagId::BadAttribute, "group", groups, "it must divide the channels")};
  return {addBias(n, n.convolution(x, w, *window, groups), n.optionalInput(2))};
}

/// Whether the strides of a transposed convolution divide its window, and all results lie where windows do.
static bool hasPhases(NodeContext &n, Value x, const PlacedWindow &window) {
  bool isStrided = false;
  for (auto [i, size] : llvm::enumerate(window.size)) {
    int64_t stride = window.strides[i];
    Expr end = (n.dim(x, int64_t(i) + 2) - 1) * stride + size;
    if (stride < 1 || size % stride != 0 || window.dilations[i] != 1 || n.shapes.range(window.low[i]).min < 0 ||
        n.shapes.range(n.shapes.simplify(end - window.low[i] - window.resultDims[i])).min < 0)
      return false;
    isStrided |= stride > 1;
  }
  return isStrided;
}

/// Such a convolution. Results whose places have the same remainder by the strides see the same elements of the window:
/// with q + low = t * stride + r and k = j * stride + r,
///
///   y[q] = sum over p, k with q = p * stride + k - low of x[p] * w[k] = sum over j of x[t - j] * w[j * stride + r]
///
/// So it is a convolution over x with the columns (r, out), and what it computes is moved to its places. Summed as it
/// is written, all but one of strides^dims products would be with zeros.
static Value convolvePhases(NodeContext &n, Value x, Value w, const PlacedWindow &window) {
  int64_t spatial = int64_t(window.size.size());
  Expr out = n.dim(w, 1), columns = out;
  PlacedWindow inner;
  inner.strides = inner.dilations = Ints(size_t(spatial), 1);
  Dims split{n.dim(w, 0), out}, starts(2, n.expr(0)), phases{n.dim(x, 0)}, whole{n.dim(x, 0), out};
  Ints steps(2, 1), order, places{0, spatial + 1};
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t stride = window.strides[size_t(i)], size = window.size[size_t(i)] / stride;
    Expr count = n.shapes.simplify(n.dim(x, i + 2) + (size - 1));
    llvm::append_range(split, Dims{n.expr(size), n.expr(stride)});
    llvm::append_range(starts, Dims{n.expr(size - 1), n.expr(0)});
    steps.append({size > 1 ? -1 : 1, 1});
    order.push_back(2 * i + 3);
    phases.push_back(n.expr(stride));
    columns = columns * stride;
    inner.size.push_back(size);
    inner.low.push_back(n.expr(size - 1));
    inner.high.push_back(n.expr(size - 1));
    inner.resultDims.push_back(count);
    whole.push_back(n.shapes.simplify(count * stride));
    places.append({spatial + 2 + i, i + 1});
  }
  order.append({1, 0}); // [strides..., out, in, window...]
  for (int64_t i = 0; i < spatial; ++i)
    order.push_back(2 * i + 2);
  Value turned = n.transpose(n.slice(n.reshape(w, split), starts, steps, split), order);
  Dims weight{n.shapes.simplify(columns), n.dim(w, 0)};
  for (int64_t size : inner.size)
    weight.push_back(n.expr(size));
  Value sums = n.convolution(x, n.reshape(turned, weight), inner, 1);
  phases.push_back(out);
  llvm::append_range(phases, inner.resultDims);
  Value y = n.reshape(n.transpose(n.reshape(sums, phases), places), whole);
  Dims from(2, n.expr(0)), to{n.dim(x, 0), out};
  llvm::append_range(from, window.low);
  llvm::append_range(to, window.resultDims);
  return n.slice(y, from, Ints(to.size(), 1), to);
}

Values convTranspose(NodeContext &n) {
  Value x = n.input(0), w = n.input(1);
  std::optional<Ints> size = windowSize(n, x, w);
  std::optional<PlacedWindow> window = size ? placeTransposedWindow(n, x, *size) : std::nullopt;
  int64_t groups = n.integer("group", 1);
  if (!window)
    return {};
  if (groups < 1 || !n.shapes.assumeEqual(n.dim(w, 0).mod(groups), n.expr(0)))
    return {n.fail(DiagId::BadAttribute, "group", groups, "it must divide the channels")};
  bool fits = groups == 1 && n.elementType(x) == n.elementType(w) && n.dim(x, 1) == n.dim(w, 0);
  Value y = fits && hasPhases(n, x, *window) ? convolvePhases(n, x, w, *window)
                                             : n.convolution(x, w, *window, groups, /*transposed=*/true);
  return {addBias(n, y, n.optionalInput(2))};
}

} // namespace ptc::decomp
