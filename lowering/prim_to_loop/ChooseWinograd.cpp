//===- ChooseWinograd.cpp - which convolutions Winograd computes ----------===//
//
// F(t x t, 3x3) takes (t + 2)^2 products for t^2 outputs of a channel, where direct summation takes 9 t^2: 2.25 times
// fewer for t = 2, 4 times fewer for t = 4. What it costs besides:
//
//   transforms   of every tile's pixels for each input channel, and of its sums for each output channel
//   weights      (t + 2)^2 numbers in place of 9. A model's weights do not stay in a cache between two runs: they
//                stream from memory, which outweighs the rest where images are small
//   whole tiles  a 14 x 14 image takes 16 tiles of 4 x 4, as much as one of 16 x 16; where elements of the window lie
//                apart, each phase of the outputs has whole tiles of its own
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
  WinogradDilations dilations = {1, 1};
  double seen = 1; // the part of the window's elements that are pixels
};
} // namespace

/// A product with so many weights, which are fetched while it multiplies.
static double productCost(double weights, double rows) { return weights * std::max(rows + tileRows, streamRows); }

static double directCost(const Extents &e) {
  return productCost(9 * e.in * e.out, e.images * e.rows * e.columns * e.seen);
}

/// Tiles along a side, those of all phases.
static double tilesAlong(double extent, int64_t dilation, int64_t tile) {
  double phases = std::min(extent, double(dilation));
  return phases * std::ceil(std::ceil(extent / double(dilation)) / double(tile));
}

static double winogradCost(const Extents &e, int64_t tile) {
  double positions = double((tile + 2) * (tile + 2));
  double tiles = e.images * tilesAlong(e.rows, e.dilations[0], tile) * tilesAlong(e.columns, e.dilations[1], tile);
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

/// How many of the elements of windows along a side are pixels, in parts of all of them.
static double seenAlong(ContractionOp node, unsigned output, unsigned window, int64_t extent,
                        const SymbolValues &hints) {
  std::array<int64_t, 3> first{}, last;
  last.fill(extent - 1);
  node.getLhs().walk([&](MaskedOp masked) {
    for (Expr condition : prim::getExprs(masked.getConditions())) {
      Expr rest, step = condition.coefficientOf(dimName(output), &rest);
      Expr apart = step ? rest.coefficientOf(dimName(window), &rest) : Expr();
      auto ofOutput = step ? step.evaluate(hints) : std::nullopt,
           ofWindow = apart ? apart.evaluate(hints) : std::nullopt;
      auto others = rest ? rest.evaluate(hints) : std::nullopt;
      if (!ofOutput || !ofWindow || !others || *ofOutput == 0)
        continue;
      for (int64_t element = 0; element < 3; ++element) {
        int64_t value = *others + element * *ofWindow;
        if (*ofOutput > 0)
          first[element] = std::max(first[element], llvm::divideCeilSigned(-value, *ofOutput));
        else
          last[element] = std::min(last[element], llvm::divideFloorSigned(value, -*ofOutput));
      }
    }
  });
  int64_t seen = 0;
  for (auto [from, to] : llvm::zip(first, last))
    seen += std::max<int64_t>(to - from + 1, 0);
  return double(seen) / double(3 * std::max<int64_t>(extent, 1));
}

static bool isFloat32(ContractionOp node) {
  auto yieldedType = [](Region &region) { return cast<YieldOp>(region.front().getTerminator()).getValue().getType(); };
  bool isNarrow = false;
  for (auto load : node.getRhs().getOps<LoadOp>())
    isNarrow |= !load.getType().isF32();
  return !isNarrow && yieldedType(node.getLhs()).isF32() && yieldedType(node.getRhs()).isF32();
}

int64_t loop::chooseWinograd(ContractionOp node, const SymbolValues &hints) {
  if (!isFloat32(node))
    return 0;
  auto dilations = findWinogradDilations(node);
  if (!dilations)
    return 0;
  SmallVector<Expr> domain = getDomain(node);
  unsigned n = node.getBatch() + node.getM(), channel = domain.size() - 1;
  auto extent = [&](unsigned dim) { return double(domain[dim].evaluate(hints).value_or(1)); };
  Extents extents{.rows = extent(n - 2),
                  .columns = extent(n - 1),
                  .in = extent(channel),
                  .out = extent(n),
                  .dilations = *dilations};
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
  // Direct sums leave out elements that a whole tile of rows does not see: of neighbours these are few.
  for (unsigned side : {0u, 1u})
    if ((*dilations)[side] > 1)
      extents.seen *=
          seenAlong(node, n - 2 + side, getWinogradWindow(node) + side, int64_t(extent(n - 2 + side)), hints);
  double best = directCost(extents) / leastGain;
  int64_t choice = 0;
  for (int64_t tile : {2, 4})
    if (double cost = winogradCost(extents, tile); cost < best) {
      best = cost;
      choice = tile;
    }
  return choice;
}
