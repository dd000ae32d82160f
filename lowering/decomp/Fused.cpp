//===- Fused.cpp - onnxruntime's products and convolutions with more ------===//
//
// com.microsoft: what its graph optimiser fuses: transposes and scales of matrix
// products, activations and sums after products and convolutions, other layouts.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/Activations.h"
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Windows.h"

using namespace ptc::prim;

namespace ptc::decomp {

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// An operand of a product: with `batchFlag` its first dim changes places with the batch dims, with `flag` the last
/// two.
static Value operand(NodeContext &n, Value x, llvm::StringRef flag, llvm::StringRef batchFlag) {
  int64_t rank = n.rank(x);
  if (n.flag(batchFlag) && rank > 2) {
    Ints order;
    for (int64_t i = 1; i + 1 < rank; ++i)
      order.push_back(i);
    order.append({0, rank - 1});
    x = n.transpose(x, order);
  }
  return n.flag(flag) && rank > 1 ? n.swapAxes(x, rank - 2, rank - 1) : x;
}

static Value fusedProduct(NodeContext &n) {
  Value y = n.matmul(operand(n, n.input(0), "transA", "transBatchA"), operand(n, n.input(1), "transB", "transBatchB"));
  double alpha = n.real("alpha", 1.0);
  return alpha == 1.0 ? y : n.mul(y, alpha);
}

Values fusedMatMul(NodeContext &n) { return {fusedProduct(n)}; }

static ActivationParameters readParameters(NodeContext &n) {
  ActivationParameters p;
  if (n.has("activation_alpha"))
    p.alpha = n.real("activation_alpha", 0);
  if (n.has("activation_beta"))
    p.beta = n.real("activation_beta", 0);
  return p;
}

Values fusedMatMulActivation(NodeContext &n) {
  return {activate(n, fusedProduct(n), n.text("activation", ""), readParameters(n))};
}

Values fusedGemm(NodeContext &n) {
  Values y = gemm(n);
  return {activate(n, y.front(), n.text("activation", ""), readParameters(n))};
}

/// gelu(X W + bias), by the approximation with tanh
Values gemmFastGelu(NodeContext &n) {
  Value y = n.matmul(n.input(0), n.input(1));
  return {activate(n, n.hasInput(2) ? n.add(y, n.input(2)) : y, "FastGelu", {})};
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// conv(x, w) + bias + z, then the activation.
static Value finish(NodeContext &n, Value y, Value z) {
  if (z)
    y = n.add(y, z);
  ActivationParameters p;
  if (std::optional<llvm::SmallVector<double>> given = n.reals("activation_params")) {
    if (!given->empty())
      p.alpha = (*given)[0];
    if (given->size() > 1)
      p.beta = (*given)[1];
  }
  return activate(n, y, n.text("activation", ""), p);
}

Values fusedConv(NodeContext &n) {
  Values y = conv(n);
  return {y.empty() ? Value() : finish(n, y.front(), n.optionalInput(3))};
}

/// Channels stand last: x [N, spatial..., C], w [out, C / group, window...].
static Value convolveChannelsLast(NodeContext &n) {
  Value x = n.input(0), w = n.input(1);
  int64_t rank = n.rank(x), groups = n.integer("group", 1);
  if (rank < 3)
    return n.fail(DiagId::WrongRank, 0, rank, "images are needed");
  Ints toFirst = {0, rank - 1}, toLast = {0};
  for (int64_t i = 1; i + 1 < rank; ++i) {
    toFirst.push_back(i);
    toLast.push_back(i + 1);
  }
  toLast.push_back(1);
  Value image = n.transpose(x, toFirst);
  std::optional<Ints> size = windowSize(n, image, w);
  std::optional<PlacedWindow> window = size ? placeWindow(n, image, *size) : std::nullopt;
  if (!window)
    return {};
  if (groups < 1 || !n.shapes.assumeEqual(n.dim(w, 0).mod(groups), n.expr(0)))
    return n.fail(DiagId::BadAttribute, "group", groups, "it must divide the channels");
  Value y = n.transpose(n.convolution(image, w, *window, groups), toLast);
  return n.hasInput(2) ? n.add(y, n.input(2)) : y;
}

Values nhwcConv(NodeContext &n) { return {convolveChannelsLast(n)}; }
Values nhwcFusedConv(NodeContext &n) { return {finish(n, convolveChannelsLast(n), n.optionalInput(3))}; }

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Values biasAdd(NodeContext &n) { return {n.add(n.add(n.input(0), n.input(1)), n.input(2))}; }

/// The halves a and b of x + bias along the last dim: a * gelu(b)
Values biasSplitGelu(NodeContext &n) {
  Value x = n.add(n.input(0), n.input(1));
  int64_t last = n.rank(x) - 1;
  Expr width = n.dim(x, last), half = n.shapes.simplify(width.floorDiv(2));
  if (n.rank(x) < 1 || !n.shapes.assumeEqual(width.mod(2), n.expr(0)))
    return {n.fail(DiagId::DimMismatch, "the last dim of input 0", width, "what is needed", "an even number")};
  Value b = n.sliceAxis(x, last, half, half);
  return {n.mul(n.sliceAxis(x, last, n.expr(0), half), activate(n, b, "Gelu", {}))};
}

/// Distances of all rows of A from all rows of B: |a - b|, or its square.
Values cdist(NodeContext &n) {
  std::string metric = n.text("metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean")
    return {n.fail(DiagId::UnsupportedAttribute, "metric", metric)};
  Value difference = n.sub(n.unsqueeze(n.input(0), 1), n.unsqueeze(n.input(1), 0));
  if (n.rank(difference) != 3)
    return {n.fail(DiagId::WrongRank, 0, n.rank(n.input(0)), "matrices are needed")};
  Value squares = n.sum(n.mul(difference, difference), 2, false);
  return {metric == "euclidean" ? n.sqrt(squares) : squares};
}

/// Slices of `size` elements along a dim, `step` apart; the elements of a slice stand in a dim at the end.
Values unfoldTensor(NodeContext &n) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.axis(n.rank(x), -1, "dim");
  int64_t size = n.integer("size", 0), step = n.integer("step", 1);
  if (!axis)
    return {};
  if (size < 1 || step < 1)
    return {n.fail(DiagId::BadAttribute, size < 1 ? "size" : "step", size < 1 ? size : step,
                   "a positive number is needed")};
  Expr count = n.shapes.simplify((n.dim(x, *axis) - size).floorDiv(step) + 1);
  Dims index = {count, n.expr(size)};
  Value positions = n.add(n.mul(n.iota(0, index, n.si64()), double(step)), n.iota(1, index, n.si64()));
  Ints order;
  for (int64_t i = 0; i <= n.rank(x); ++i)
    if (i != *axis + 1)
      order.push_back(i);
  order.push_back(*axis + 1);
  return {n.transpose(n.gather(x, positions, *axis), order)};
}

/// A dim of 1 at `axis`.
Values expandDims(NodeContext &n) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.inputInt(1, "axis");
  std::optional<int64_t> place = axis ? n.normalizeAxis(*axis, n.rank(x) + 1) : std::nullopt;
  return {place ? n.unsqueeze(x, *place) : Value()};
}

} // namespace ptc::decomp
