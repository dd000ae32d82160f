//===- ChooseWinograd.cpp - which convolutions Winograd computes ----------===//
//
// F(t x t, 3x3) takes (t + 2)^2 products for t^2 outputs of a channel, where direct summation takes 9 t^2: 2.25 times
// fewer for t = 2, 4 times fewer for t = 4. What it costs besides:
//
//   transforms   of every tile's pixels for each input channel, and of its sums for each output channel
//   weights      (t + 2)^2 numbers in place of 9. A model's weights do not stay in a cache between two runs: they
//                stream from memory, which outweighs the rest where images are small
//   whole tiles  a 14 x 14 image takes 16 tiles of 4 x 4, as much as one of 16 x 16
//
// All three are estimated in multiply-adds. The choice depends on shapes and hints alone: a model is the same library
// on every machine. A free size is taken at its hint: much smaller images than that run slower than by direct sums,
// unless a bucket has them.
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/ChooseWinograd.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Winograd.h"

#include <cmath>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int64_t fewestChannels = 16;    // of input and output: a vector, and a product worth a tile's entry
static constexpr double streamRows = 17.5;       // rows of a product that takes as long as its weights from memory
static constexpr double tileRows = 3.5;          // rows in the time that the tiles of a product take besides
static constexpr double leastGain = 1.15;        // smaller ones are within what the estimate does not see
static constexpr double pixelCost[] = {70, 220}; // of one channel of a tile's pixels, for t = 2 and 4
static constexpr double sumCost[] = {50, 180};   // of one channel of a tile's sums

namespace {
/// Extents at the hint.
struct Extents {
  double images = 1, rows = 1, columns = 1, in = 1, out = 1; // in: channels of all slices
};
} // namespace

/// A product with so many weights, which are fetched while it multiplies.
static double productCost(double weights, double rows) { return weights * std::max(rows + tileRows, streamRows); }

static double directCost(const Extents &e) { return productCost(9 * e.in * e.out, e.images * e.rows * e.columns); }

static double winogradCost(const Extents &e, int64_t tile) {
  double positions = double((tile + 2) * (tile + 2));
  double tiles = e.images * std::ceil(e.rows / double(tile)) * std::ceil(e.columns / double(tile));
  double transforms = tiles * (e.in * pixelCost[tile / 4] + e.out * sumCost[tile / 4]);
  return productCost(positions * e.in * e.out, tiles) + transforms;
}

/// Whether memory runs along `dim` in all accesses of the region that use it, of which there are some.
template <typename Access> static bool runsAlong(Region &region, unsigned dim) {
  bool runs = true, used = false;
  region.walk([&](Access access) {
    auto type = cast<BufferType>(access.getBuffer().getType());
    Expr position = Expr::constant(access.getContext(), 0);
    for (auto [index, stride] : llvm::zip(prim::getExprs(access.getIndices()), type.getStrides()))
      position = position + index * stride;
    std::string name = dimName(dim);
    if (!position.uses(name))
      return;
    Expr step = position.coefficientOf(name);
    used = true;
    runs &= step && step.isConstant(1);
  });
  return runs && used;
}

static bool isFloat32(ContractionOp node) {
  auto yieldedType = [](Region &region) { return cast<YieldOp>(region.front().getTerminator()).getValue().getType(); };
  bool isNarrow = false;
  for (auto load : node.getRhs().getOps<LoadOp>())
    isNarrow |= !load.getType().isF32();
  return !isNarrow && yieldedType(node.getLhs()).isF32() && yieldedType(node.getRhs()).isF32();
}

int64_t loop::chooseWinograd(ContractionOp node, const SymbolValues &hints) {
  if (!isWinogradShaped(node) || !isFloat32(node))
    return 0;
  SmallVector<Expr> domain = getDomain(node);
  unsigned n = node.getBatch() + node.getM(), channel = domain.size() - 1;
  auto extent = [&](unsigned dim) { return double(domain[dim].evaluate(hints).value_or(1)); };
  Extents extents{.rows = extent(n - 2), .columns = extent(n - 1), .in = extent(channel), .out = extent(n)};
  for (unsigned dim = node.getBatch(); dim + 2 < n; ++dim)
    extents.images *= extent(dim);
  for (unsigned slice = n + 1; slice < getWinogradWindow(node); ++slice)
    extents.in *= extent(slice);
  if (extent(channel) < fewestChannels || extents.out < fewestChannels)
    return 0;
  // One row or column of outputs is a dim that vanishes.
  if (domain[n - 2].isConstant(1) || domain[n - 1].isConstant(1))
    return 0;
  if (!runsAlong<LoadOp>(node.getLhs(), channel))
    return 0;
  double best = directCost(extents) / leastGain;
  int64_t choice = 0;
  for (int64_t tile : {2, 4})
    if (double cost = winogradCost(extents, tile); cost < best) {
      best = cost;
      choice = tile;
    }
  return choice;
}
