//===- WgmmaPlan.cpp - contractions of warpgroups: the plan ---------------===//
//
// Blocks stay and take tile after tile, so that the copies of the next tile are under way while results are written.
// The estimate counts, like that of MmaPlan, cycles of a multiprocessor: turns of tiles, each its steps and its
// results.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/WgmmaPlan.h"
#include "codegen/gpu/DeviceShape.h"
#include "codegen/gpu/GpuTuning.h"
#include "runtime/include/ptc/descriptor.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t resultsTogether = 8; // that a thread writes
static constexpr int64_t fewestRows = WgmmaTile::groupRows / 2 + 1;
// Of clusters of more than two blocks so many blocks run at the same time: parts of a device have odd numbers of
// multiprocessors.
static constexpr int64_t blocksInClusters = 104;

DenseI64ArrayAttr WgmmaTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {m, n, stages, together, int64_t(kind), splits});
}

WgmmaTile WgmmaTile::fromAttribute(DenseI64ArrayAttr attribute) {
  ArrayRef<int64_t> values = attribute.asArrayRef();
  return {values[0], values[1], values[2], values[3], MmaKind(values[4]), values[5]};
}

std::optional<WgmmaTile> gpu::getWgmmaTile(loop::KernelOp kernel) {
  auto values = kernel.getConfigAttr() ? kernel.getConfigAttr().getAs<DenseI64ArrayAttr>("wgmma") : nullptr;
  return values ? std::optional(WgmmaTile::fromAttribute(values)) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

static int64_t countOf(ArrayRef<Expr> extents) {
  int64_t count = 1;
  for (Expr extent : extents)
    count *= extent.asConstant().value_or(0);
  return count;
}

int64_t gpu::countWgmmaTiles(loop::ContractionOp op, const WgmmaTile &tile) {
  ContractionDims dims(op);
  return countOf(dims.batch()) * llvm::divideCeil(countOf(dims.m()), tile.m) *
         llvm::divideCeil(countOf(dims.n()), tile.n);
}

// Bytes of a stage that come from L2: rows of a box that do not begin with a line have a part of one more.
static int64_t countBytes(int64_t rows, const WgmmaOperand &operand) {
  bool isWhole = (operand.map.strides[1] | operand.map.offset) % MmaTile::depthBytes == 0;
  return rows * MmaTile::depthBytes * (isWhole ? 1 : 2);
}

int64_t gpu::countWgmmaScratch(loop::ContractionOp op, const WgmmaTile &tile) {
  return tile.splits > 1 && !tile.isCluster() ? countWgmmaTiles(op, tile) * tile.splits * tile.m * tile.n * 4 : 0;
}

// Of a step. Of f32 there are three products, 8 deep, whose sums are added up: while another warpgroup multiplies, if
// there is one.
static double countProductCycles(const WgmmaTile &tile) {
  if (!tile.isSplitF32())
    return double(tile.m * tile.n * MmaTile::depthBytes) / 3900 + 60;
  constexpr int64_t products = 3 * 4;
  double added = tile.sumParts() == 1 ? 7 : tile.groups() == 2 ? 15 : 28;
  return double(products * tile.groups()) * (added + 0.55 * double(tile.n));
}

// Fits measured times: a step is the tensor cores' or L2's; a turn of tiles ends with results, which other blocks of
// the multiprocessor hide in part.
static double estimate(loop::ContractionOp op, const WgmmaTile &tile, const WgmmaOperands &operands) {
  double fromL2 = double(countBytes(tile.m, operands.lhs) + countBytes(tile.n, operands.rhs)) / 70;
  double steps = double(llvm::divideCeil(operands.steps, tile.splits));
  double turns = double(llvm::divideCeil(countWgmmaTiles(op, tile) * tile.splits, multiprocessors));
  double results = (900 + double(tile.m * tile.n) / 6) * (tile.together > 1 ? 0.5 : 1);
  double once = (tile.isSplitF32() ? 6500 : tile.groups() > 1 ? 6200 : 5200) + double(tile.n) * 8;
  double sum = tile.splits == 1   ? 0
               : tile.isCluster() ? 1900 + double(tile.splits) * 70 + double(tile.m * tile.n) * 4 / 16 +
                                        (llvm::isPowerOf2_64(uint64_t(tile.splits)) ? 0 : 1000)
                                  : 2500 + double(tile.splits + 1) * double(tile.m * tile.n) * 4 / 24;
  return once + turns * steps * std::max(countProductCycles(tile), fromL2) + (turns - 1) * results + sum;
}

static bool fits(loop::ContractionOp op, const WgmmaTile &tile, int64_t steps) {
  constexpr int64_t fewestSteps = 4; // fewer do not pay for a sum
  int64_t tiles = countWgmmaTiles(op, tile);
  int64_t blocks = tile.isCluster() && tile.splits > 2 ? blocksInClusters : multiprocessors * tile.together;
  if (tile.together > 1 && tiles <= multiprocessors)
    return false; // alone, more stages do more
  bool hasCounters = tile.isCluster() || tiles * tile.groups() <= PTC_RT_CUDA_COUNTERS;
  return tile.splits == 1 || (tiles * tile.splits <= blocks && hasCounters && steps / tile.splits >= fewestSteps);
}

SmallVector<WgmmaCandidate> gpu::listWgmmaTiles(loop::ContractionOp op, MmaKind kind) {
  ContractionDims dims(op);
  std::optional<int64_t> inner = dims.n().empty() ? std::nullopt : dims.n().back().asConstant();
  if (!inner || *inner % resultsTogether != 0 || countOf(dims.m()) < fewestRows)
    return {};
  static constexpr int64_t ofHalves[][4] = {{128, 256, 4, 1}, {128, 192, 5, 1}, {128, 128, 6, 1}, {128, 96, 7, 1},
                                            {64, 192, 6, 1},  {64, 128, 4, 2},  {64, 128, 8, 1},  {64, 96, 5, 2},
                                            {64, 96, 8, 1},   {64, 64, 6, 2},   {64, 64, 8, 1},   {128, 64, 8, 1},
                                            {64, 32, 12, 1}};
  static constexpr int64_t ofFloats[][4] = {
      {128, 128, 4, 1}, {128, 96, 5, 1}, {128, 64, 6, 1}, {64, 64, 8, 1}, {64, 32, 12, 1}};
  using Shapes = ArrayRef<int64_t[4]>;
  SmallVector<WgmmaCandidate> found;
  for (auto [m, n, stages, together] : kind == MmaKind::SplitF32 ? Shapes(ofFloats) : Shapes(ofHalves)) {
    WgmmaTile tile{.m = m, .n = n, .stages = stages, .together = together, .kind = kind};
    std::optional<WgmmaOperands> operands = analyzeOperands(op, tile);
    if (!operands)
      continue;
    for (int64_t splits : {1, 2, 3, 4, 5, 6, 8, 12, 16}) {
      tile.splits = splits;
      if (fits(op, tile, operands->steps))
        found.push_back({tile, estimate(op, tile, *operands)});
    }
  }
  return found;
}

std::optional<WgmmaTile> gpu::planWgmma(loop::ContractionOp op, MmaKind kind, double otherCycles) {
  using Candidate = WgmmaCandidate;
  std::optional<int64_t> isWanted = loop::getTuned(op, tuned::warpgroups);
  if (isWanted && *isWanted <= 0)
    return std::nullopt;
  SmallVector<Candidate> candidates = listWgmmaTiles(op, kind);
  if (isWanted) {
    keepNearest(candidates, op, tuned::tileRows, [](const Candidate &each) { return each.tile.m; });
    keepNearest(candidates, op, tuned::tileColumns, [](const Candidate &each) { return each.tile.n; });
    keepNearest(candidates, op, tuned::together, [](const Candidate &each) { return each.tile.together; });
    keepNearest(candidates, op, tuned::splits, [](const Candidate &each) { return each.tile.splits; });
  }
  auto best = llvm::min_element(candidates, [](const Candidate &a, const Candidate &b) { return a.cycles < b.cycles; });
  if (best == candidates.end() || (!isWanted && best->cycles >= otherCycles))
    return std::nullopt;
  return best->tile;
}
