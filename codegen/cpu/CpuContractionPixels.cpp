//===- CpuContractionPixels.cpp - pixels that a tile's rows share ---------===//
//
// Problem. Where a group of a convolution has as many columns as a vector has lanes, a tile is one vector wide: each
// multiply-add loads an element of A of its own, which is as much as a core can, and more than it can beside the rows
// of B. And at each pixel of the window the addresses of all rows are asked for, as at a border.
//
// Idea. Outputs that follow each other in a line of the image read the same pixels, each with another weight of the
// window's line. So a step takes a channel of all pixels that the tile's rows read in a line of the window:
//
//   for window row, window column: [addresses] for channel     ->     for window row: [addresses] for channel
//
// with as many rows of B in registers as the window has columns. 14 outputs of a window of three take 16 loads of A and
// three of B for 42 multiply-adds, where they took 42 and 3, and 16 addresses in place of 42.
//
// Invariant. A tile's height divides the line, so its rows lie in one.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "ir/loop/Winograd.h"
#include <map>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t mostTaps = 7;     // rows of B in registers, beside 14 sums
static constexpr int64_t fewestRows = 7;   // fewer sums wait for each other
static constexpr int64_t fewestTerms = 13; // channels of a pixel: fewer are joined with the window's columns

/// Steps of what dim `across` of the outputs and dim `along` of the window move alike; nothing if they do not.
static std::optional<std::pair<int64_t, int64_t>> commonSteps(const ContractionForm &form, int64_t across,
                                                              int64_t along) {
  std::optional<std::pair<int64_t, int64_t>> steps;
  for (Expr expr : form.lhs.movedExprs()) {
    Expr output = loop::strideOf(expr, across), tap = loop::strideOf(expr, along);
    if (!output || !tap || !output.isConstant() || !tap.isConstant())
      return std::nullopt;
    if (!steps)
      steps = {output.getValue(), tap.getValue()};
    if (output.getValue() * steps->second != tap.getValue() * steps->first)
      return std::nullopt;
  }
  return steps;
}

void ContractionEmission::findSharedPixels(bool isTuned) {
  int64_t line = f.firstN() - 1,
          vectors = int64_t(getTileVectors(1, f.n.asConstant().value_or(panelWidth), lanes).size());
  auto columns = f.n.asConstant(), across = f.mDims ? f.domain[line].asConstant() : std::nullopt;
  bool isPlain = f.lhs.form == LhsForm::Redirected && !f.rhs.isPacked() && f.group == 1 && !f.bits &&
                 f.conversion.beside.empty() && f.lhs.element == accumulator && isa<FloatType>(accumulator) &&
                 !f.blocks.isSplitK() &&
                 cast<loop::BufferType>(f.rhs.buffer.getType()).getElementType() == accumulator && !convertsWeight();
  if (!isPlain || loop::getWinogradTile(f.op) || f.kLoops.size() < 2 || !across || !columns || *columns > panelWidth ||
      *columns <= lanes / 2 || vectors != 1)
    return;
  const KLoop &tap = f.kLoops[f.kLoops.size() - 2];
  int64_t taps = tap.dim < 0 ? 0 : tap.extent.asConstant().value_or(0);
  if (taps < 2 || taps > mostTaps || f.kLoops.back().extent.asConstant().value_or(0) < fewestTerms)
    return;
  int64_t height = isTuned ? split.height : tallestTile;
  while (!isTuned && *across % height)
    --height;
  std::optional<std::pair<int64_t, int64_t>> steps = commonSteps(f, line, tap.dim);
  if (height < fewestRows || *across % height || !steps || steps->first == 0 || steps->second == 0)
    return;
  split = {.height = height, .width = 1};
  std::map<int64_t, SmallVector<TileUse>> byPlace;
  for (int64_t row = 0; row < height; ++row)
    for (int64_t t = 0; t < taps; ++t)
      byPlace[row * steps->first + t * steps->second].push_back({row, t});
  for (auto &[place, uses] : byPlace)
    sharedPixels.push_back(uses);
}

TileOperands ContractionEmission::sharingOperands(const ContractionTask &task, TileOperands operands, Value row) {
  size_t tap = operands.loops.size() - 2;
  operands.tapStride = operands.loops[tap].bStride;
  operands.pixels = sharedPixels;
  operands.loops.erase(operands.loops.begin() + ptrdiff_t(tap));
  operands.fetched.clear(); // a weight of one panel stays in the cache
  EmissionPoint first = rowPoint(task, row);
  operands.rowAddresses = [=, this](ValueRange outer) {
    SmallVector<Value> addresses;
    int64_t line = f.firstN() - 1;
    for (const SmallVector<TileUse> &uses : sharedPixels) {
      EmissionPoint point = first;
      for (auto [at, loop] : llvm::zip(outer, f.kLoops))
        point.dims[loop.dim] = at;
      point.dims[line] = i.add(first.dims[line], i.constant(uses.front().row));
      point.dims[f.kLoops[tap].dim] = i.constant(uses.front().tap);
      addresses.push_back(redirectedAddress(point));
    }
    return addresses;
  };
  return operands;
}
