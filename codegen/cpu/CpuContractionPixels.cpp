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
// Up to eight columns are half of a 512-bit vector, two of which many processors multiply in the time of a whole one.
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
// The same where several outputs may be a row of the tile instead (CpuContractionOutputs.cpp). With windows of three
// columns these leave a fourth of the lanes unused, and most steps mask some: rows of eight columns of eight channels
// that share pixels take half of the time with 512 bits, with 256 bits 0.87.
static constexpr int64_t mostTapsForOutputs = 3, fewestTermsForOutputs = 8;

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

/// The loop over k that rows share pixels along, and where these lie for a row's element of the window.
struct PixelSharing {
  int64_t taps = 0, ofRow = 0, ofTap = 0; // 0 taps: they share none
};

static PixelSharing findSharing(const ContractionForm &f, const CpuLevel &level) {
  auto columns = f.n.asConstant();
  loop::ContractionOp op = f.op;
  bool isPlain = f.lhs.form == LhsForm::Redirected && !f.rhs.isPacked() && f.group == 1 && !f.bits &&
                 f.conversion.beside.empty() && f.lhs.element == f.accumulator && isa<FloatType>(f.accumulator) &&
                 !f.blocks.isSplitK() && op.getRhs().front().getOperations().size() == 1 &&
                 cast<loop::BufferType>(f.rhs.buffer.getType()).getElementType() == f.accumulator;
  if (!isPlain || loop::getWinogradTile(op) || f.kLoops.size() < 2 || !f.mDims || !columns || *columns > panelWidth)
    return {};
  int64_t lanes = std::min(panelWidth, level.lanesOf(f.accumulator.getIntOrFloatBitWidth()));
  const KLoop &tap = f.kLoops[f.kLoops.size() - 2];
  int64_t taps = tap.dim < 0 ? 0 : tap.extent.asConstant().value_or(0);
  bool hasOutputs = f.taps.step != 0;
  if (getTileVectors(1, *columns, lanes).size() != 1 || taps < 2 ||
      taps > (hasOutputs ? mostTapsForOutputs : mostTaps) ||
      f.kLoops.back().extent.asConstant().value_or(0) < (hasOutputs ? fewestTermsForOutputs : fewestTerms))
    return {};
  auto steps = commonSteps(f, f.firstN() - 1, tap.dim);
  if (!steps || steps->first == 0 || steps->second == 0)
    return {};
  return {.taps = taps, .ofRow = steps->first, .ofTap = steps->second};
}

/// The most rows of a line's outputs that are a tile beside the rows of B; 0: too few.
static int64_t rowsOfLine(const ContractionForm &f, const CpuLevel &level, const PixelSharing &sharing) {
  auto line = f.domain[f.firstN() - 1].asConstant();
  int64_t height = std::min<int64_t>(tallestTile, level.vectorRegisters - sharing.taps - 1);
  while (line && height >= fewestRows && *line % height)
    --height;
  return line && height >= fewestRows ? height : 0;
}

bool cpu::sharesPixels(const ContractionForm &form, const CpuLevel &level) {
  PixelSharing sharing = findSharing(form, level);
  return sharing.taps && rowsOfLine(form, level, sharing);
}

void ContractionEmission::findSharedPixels(bool isTuned) {
  PixelSharing sharing = findSharing(f, e.level);
  if (outputs > 1 || sharing.taps == 0)
    return;
  auto line = f.domain[f.firstN() - 1].asConstant();
  int64_t height = isTuned ? split.height : rowsOfLine(f, e.level, sharing);
  if (!line || height < fewestRows || *line % height)
    return;
  split = {.height = height, .width = 1};
  std::map<int64_t, SmallVector<TileUse>> byPlace;
  for (int64_t row = 0; row < height; ++row)
    for (int64_t t = 0; t < sharing.taps; ++t)
      byPlace[row * sharing.ofRow + t * sharing.ofTap].push_back({row, t});
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
