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

Values convTranspose(NodeContext &n) {
  Value x = n.input(0), w = n.input(1);
  std::optional<Ints> size = windowSize(n, x, w);
  std::optional<PlacedWindow> window = size ? placeTransposedWindow(n, x, *size) : std::nullopt;
  int64_t groups = n.integer("group", 1);
  if (!window)
    return {};
  if (groups < 1 || !n.shapes.assumeEqual(n.dim(w, 0).mod(groups), n.expr(0)))
    return {n.fail(DiagId::BadAttribute, "group", groups, "it must divide the channels")};
  return {addBias(n, n.convolution(x, w, *window, groups, /*transposed=*/true), n.optionalInput(2))};
}

} // namespace ptc::decomp
