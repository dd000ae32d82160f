//===- ChooseWinograd.cpp - which convolutions Winograd computes ----------===//
//
// F(t x t, 3x3) takes (t + 2)^2 products for t^2 outputs of a channel, where direct summation takes 9 t^2: 2.25 times
// fewer for t = 2, 4 times fewer for t = 4. F(t, r), along any one dim that has no stride, takes 2 of 3 products for
// F(2, 3), half of them for F(4, 3), 0.6 and 0.4 for F(2, 5) and F(4, 5), 4 of 7 for F(2, 7). F(3 x 3, 3x3) with stride
// 2 takes 49 of 81, F(4 x 4) 81 of 144. In volumes F(2, 3) along the depth takes 2 of 3 of what is left. What it costs
// besides:
//
//   transforms   of every tile's pixels for each input channel, and of its sums for each output channel
//   weights      (t + 2)^2 numbers in place of 9, with stride 2 (2 t + 1)^2, in volumes 4 (t + 2)^2 in place of 27. A
//   model's weights do not stay in a cache
//                between two runs: they stream from memory, which outweighs the rest where images are small
//   whole tiles  a 14 x 14 image takes 16 tiles of 4 x 4, as much as one of 16 x 16; where elements of the window lie
//                apart, each phase of the outputs has whole tiles of its own
//
// All three are estimated in multiply-adds; the cheapest way is taken. The choice depends on shapes and hints alone: a
// model is the same library on every machine. A free size is taken at its hint: much smaller images than that run
// slower than by direct sums, unless a bucket has them.
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/ChooseWinograd.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Winograd.h"
#include "ir/prim/Elements.h"

#include <cmath>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int64_t fewestChannels = 16; // of input and output: a vector, and a product worth a tile's entry
static constexpr double streamRows = 17.5;    // rows of a product that takes as long as its weights from memory
static constexpr double tileRows = 3.5;       // rows in the time that the tiles of a product take besides
static constexpr double leastGain = 1.15;     // smaller ones are within what the estimate does not see

namespace {
/// Of one channel of a tile's pixels and of its sums, and of a tile in one task.
struct TransformCost {
  double pixel, sum, tile;
};

/// Extents at the hint.
struct Extents {
  double images = 1, depth = 1, rows = 1, columns = 1, in = 1, out = 1; // in: channels of all slices
  WinogradDilations dilations = {1, 1};
  double seen = 1;     // the part of the window's elements that are pixels
  double elements = 9; // of the window, without slices
};

/// A way to compute a contraction.
struct Way {
  WinogradChoice choice;
  double cost = 0; // where there is a tile
};
} // namespace

static TransformCost transformCost(WinogradTile tile) {
  if (tile.isVolume()) { // a square for each plane, and each position along the depth
    WinogradTile square{.outputs = tile.outputs};
    TransformCost ofSquare = transformCost(square);
    double along = double(square.positions());
    return {double(tile.planes()) * ofSquare.pixel + 16 * along, double(tile.depth) * ofSquare.sum + 12 * along, 0};
  }
  if (tile.stride == 2)
    return tile.outputs == 3 ? TransformCost{240, 210, 0} : TransformCost{400, 360, 0};
  if (tile.sides == 2)
    return tile.outputs == 2 ? TransformCost{70, 50, 0} : TransformCost{220, 180, 0};
  switch (tile.size()) {
  case 4:
    return {20, 20, 1500};
  case 6:
    return {36, 34, 1500};
  default:
    return {56, 50, 1500};
  }
}

/// A product with so many weights, which are fetched while it multiplies.
static double productCost(double weights, double rows) { return weights * std::max(rows + tileRows, streamRows); }

static double directCost(const Extents &e) {
  return productCost(e.elements * e.in * e.out, e.images * e.depth * e.rows * e.columns * e.seen);
}

/// Tiles along a side, those of all phases.
static double tilesAlong(double extent, int64_t dilation, int64_t tile) {
  double phases = std::min(extent, double(dilation));
  return phases * std::ceil(std::ceil(extent / double(dilation)) / double(tile));
}

static double winogradCost(const Extents &e, WinogradTile tile) {
  double tiles = e.images * tilesAlong(e.depth, 1, tile.depth) * tilesAlong(e.columns, e.dilations[1], tile.outputs);
  if (tile.sides == 2)
    tiles *= tilesAlong(e.rows, e.dilations[0], tile.outputs);
  TransformCost cost = transformCost(tile);
  double transforms = tiles * (e.in * cost.pixel + e.out * cost.sum + cost.tile);
  return productCost(double(tile.positions()) * e.in * e.out, tiles) + transforms;
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
  size_t elements = size_t(getDomain(node)[window].getValue());
  SmallVector<int64_t> first(elements, 0), last(elements, extent - 1);
  node.getLhs().walk([&](MaskedOp masked) {
    for (Expr condition : prim::getExprs(masked.getConditions())) {
      Expr rest, step = condition.coefficientOf(dimName(output), &rest);
      Expr apart = step ? rest.coefficientOf(dimName(window), &rest) : Expr();
      auto ofOutput = step ? step.evaluate(hints) : std::nullopt,
           ofWindow = apart ? apart.evaluate(hints) : std::nullopt;
      auto others = rest ? rest.evaluate(hints) : std::nullopt;
      if (!ofOutput || !ofWindow || !others || *ofOutput == 0)
        continue;
      for (size_t element = 0; element < elements; ++element) {
        int64_t value = *others + int64_t(element) * *ofWindow;
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
  return double(seen) / (double(elements) * double(std::max<int64_t>(extent, 1)));
}

static bool isFloat32(ContractionOp node) {
  auto yieldedType = [](Region &region) { return cast<YieldOp>(region.front().getTerminator()).getValue().getType(); };
  bool isNarrow = false;
  for (auto load : node.getRhs().getOps<LoadOp>())
    isNarrow |= !load.getType().isF32();
  return !isNarrow && yieldedType(node.getLhs()).isF32() && yieldedType(node.getRhs()).isF32();
}

/// `tile` with as many outputs as cost least, if that is below direct summation's.
static Way chooseTile(const Extents &e, WinogradTile tile) {
  constexpr int64_t mostPositions = 8; // of a phase, for the sake of small errors
  Way way{.cost = directCost(e) / leastGain};
  SmallVector<int64_t> sizes = tile.stride == 1 ? SmallVector<int64_t>{2, 4} : SmallVector<int64_t>{3, 4};
  for (int64_t outputs : sizes) {
    tile.outputs = outputs;
    if (double cost = winogradCost(e, tile); tile.phase(0).size() <= mostPositions && cost < way.cost)
      way = {{.tile = tile, .dilations = e.dilations}, cost};
  }
  return way;
}

/// Direct sums leave out elements that a whole tile of rows does not see: of neighbours these are few.
static double seenApart(ContractionOp node, unsigned output, unsigned window, int64_t dilation,
                        const SymbolValues &hints) {
  int64_t extent = getDomain(node)[output].evaluate(hints).value_or(1);
  return dilation > 1 ? seenAlong(node, output, window, extent, hints) : 1;
}

/// All dims of outputs count as images, all elements of the window as slices.
static Extents extentsOf(ContractionOp node, const SymbolValues &hints) {
  SmallVector<Expr> domain = getDomain(node);
  unsigned n = node.getBatch() + node.getM();
  auto extent = [&](unsigned dim) { return double(domain[dim].evaluate(hints).value_or(1)); };
  Extents extents{.in = extent(domain.size() - 1), .out = extent(n)};
  for (unsigned slice = n + 1; slice + 1 < domain.size(); ++slice)
    extents.in *= extent(slice);
  for (unsigned dim = node.getBatch(); dim < n; ++dim)
    extents.images *= extent(dim);
  return extents;
}

static Way chooseSquares(ContractionOp node, const WinogradSteps &steps, const SymbolValues &hints) {
  SmallVector<Expr> domain = getDomain(node);
  unsigned n = node.getBatch() + node.getM(), window = unsigned(domain.size()) - 3;
  auto extent = [&](unsigned dim) { return double(domain[dim].evaluate(hints).value_or(1)); };
  // One row or column of outputs is a dim that vanishes.
  if (domain[n - 2].isConstant(1) || domain[n - 1].isConstant(1))
    return {};
  Extents extents = extentsOf(node, hints);
  extents.in /= extents.elements;
  extents.rows = extent(n - 2);
  extents.columns = extent(n - 1);
  extents.images /= extents.rows * extents.columns;
  extents.dilations = steps.dilations;
  for (unsigned side : {0u, 1u})
    extents.seen *= seenApart(node, n - 2 + side, window + side, steps.dilations[side], hints);
  Way way = chooseTile(extents, {.stride = steps.stride});
  way.choice.output = n - 1;
  way.choice.window = window + 1;
  return way;
}

/// Volumes of slices that follow each other.
static Way chooseVolumes(ContractionOp node, const WinogradSteps &steps, const SymbolValues &hints) {
  constexpr int64_t depth = 2; // four products along it for six
  auto line = findWinogradDepth(node);
  if (!line || steps.stride != 1 || steps.dilations != WinogradDilations{1, 1})
    return {};
  SmallVector<Expr> domain = getDomain(node);
  unsigned n = node.getBatch() + node.getM(), window = unsigned(domain.size()) - 3;
  auto extent = [&](unsigned dim) { return double(domain[dim].evaluate(hints).value_or(1)); };
  if (llvm::any_of(ArrayRef(domain).slice(line->output, 3), [](Expr dim) { return dim.isConstant(1); }))
    return {};
  Extents extents = extentsOf(node, hints);
  extents.elements = 27;
  extents.in /= extents.elements;
  extents.depth = extent(line->output);
  extents.rows = extent(n - 2);
  extents.columns = extent(n - 1);
  extents.images /= extents.depth * extents.rows * extents.columns;
  Way way = chooseTile(extents, {.depth = depth});
  way.choice.output = n - 1;
  way.choice.window = window + 1;
  return way;
}

static Way chooseLine(ContractionOp node, WinogradLine line, const SymbolValues &hints) {
  SmallVector<Expr> domain = getDomain(node);
  int64_t taps = domain[line.window].getValue();
  if (domain[line.output].isConstant(1))
    return {};
  Extents extents = extentsOf(node, hints);
  extents.elements = double(taps);
  extents.in /= extents.elements;
  extents.columns = double(domain[line.output].evaluate(hints).value_or(1));
  extents.images /= extents.columns;
  extents.dilations = {1, line.dilation};
  extents.seen = seenApart(node, line.output, line.window, line.dilation, hints);
  Way way = chooseTile(extents, {.taps = taps, .sides = 1});
  way.choice.output = line.output;
  way.choice.window = line.window;
  return way;
}

WinogradChoice loop::chooseWinograd(ContractionOp node, const SymbolValues &hints) {
  if (!isFloat32(node) || node->hasAttr(prim::keepsTypeAttr))
    return {};
  SmallVector<Expr> domain = getDomain(node);
  unsigned n = node.getBatch() + node.getM(), channel = domain.size() - 1;
  auto extent = [&](unsigned dim) { return domain[dim].evaluate(hints).value_or(1); };
  if (extent(channel) < fewestChannels || extent(n) < fewestChannels || !runsAlong<LoadOp>(node.getLhs(), channel))
    return {};
  Way best;
  auto take = [&](Way way) {
    if (way.choice.tile && (!best.choice.tile || way.cost < best.cost))
      best = way;
  };
  if (auto steps = findWinogradSteps(node)) {
    take(chooseSquares(node, *steps, hints));
    take(chooseVolumes(node, *steps, hints));
  }
  for (WinogradLine line : findWinogradLines(node))
    take(chooseLine(node, line, hints));
  return best.choice;
}
