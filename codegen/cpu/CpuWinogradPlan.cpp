//===- CpuWinogradPlan.cpp - blocks and scratch of Winograd convolutions --===//
//
// A task takes a block of tiles and a block of columns. Transformed pixels of its tiles (all channels) and its sums lie
// in scratch, [position][tile][channel], and should stay in a second-level cache between the two transforms and the
// products. Every block of tiles streams all transformed weights, which are many: below three dozen tiles that costs
// more than pixels that come from the third level; a tile of a volume counts for each of its planes of outputs. Every
// block of columns streams the pixels, so a task takes many columns where tasks remain for many threads; the tasks of
// one block of tiles follow each other, and only the first of a thread transforms the pixels.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuTuning.h"
#include "codegen/cpu/CpuWinograd.h"
#include "codegen/cpu/ScratchLayout.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Winograd.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t fewPanels = 4, manyPanels = 8; // of a task
static constexpr int64_t mostPanels = 64;               // that tuning may ask for
static constexpr int64_t fewestTiles = 36, mostTiles = 96;
static constexpr int64_t enoughTasks = 8;     // for threads; with fewer, tasks are as narrow as is worth it
static constexpr int64_t grainWork = 1 << 19; // multiply-adds
static constexpr int64_t lineElements = 16;

/// Planes an odd number of lines apart: the positions of an element do not meet in one set of the first-level cache.
static Expr planeOf(Expr elements) { return roundUp(elements, 2 * lineElements) + lineElements; }

SmallVector<const WinogradSide *> WinogradForm::sides() const {
  SmallVector<const WinogradSide *> found;
  if (tile.isVolume())
    found.push_back(&deep);
  if (hasRows())
    found.push_back(&down);
  found.push_back(&across);
  return found;
}

/// Where the lhs is a load, masked or not, whose steps along all sides are those of the window times theirs: the
/// window's.
static void findStrides(WinogradForm &form) {
  ContractionForm &product = form.product;
  if (!product.lhs.readsMemory())
    return;
  Expr index = product.lhs.index();
  auto common = [](Expr expr, const WinogradSide &side) {
    Expr output = loop::strideOf(expr, side.output), window = loop::strideOf(expr, side.window);
    return output && window && output * side.dilation == window * side.step ? window : Expr();
  };
  auto commonOfAll = [&](Expr expr) {
    return llvm::all_of(form.sides(), [&](const WinogradSide *side) { return bool(common(expr, *side)); });
  };
  Expr along = loop::strideOf(index, form.channel);
  if (!commonOfAll(index) || !along || !along.isConstant(1))
    return;
  for (Expr condition : product.lhs.conditions())
    if (!commonOfAll(condition) || condition.uses(dimName(form.channel)))
      return;
  for (WinogradSide *side : {&form.deep, &form.down, &form.across})
    side->stride = side->output < 0 ? Expr::constant(index.getContext(), 0) : common(index, *side);
  form.readsInPlace = true;
}

/// All phases have as many tiles; of the last ones some may lie outside.
static WinogradSide sideOf(const ContractionForm &form, int64_t output, int64_t window, int64_t dilation,
                           loop::WinogradTile tile) {
  Expr extent = form.domain[output], apart = Expr::constant(extent.getContext(), dilation);
  return {.output = output,
          .window = window,
          .outputs = tile.outputs,
          .taps = tile.taps,
          .dilation = dilation,
          .step = tile.stride,
          .phases = dilation == 1 ? apart : Expr::min(apart, extent),
          .tiles = extent.ceilDiv(dilation).ceilDiv(tile.outputs)};
}

/// Tiles of a task that takes so many panels of columns, such that its scratch stays in a second-level cache.
static int64_t chooseTiles(const WinogradForm &form, int64_t columns) {
  const ContractionForm &p = form.product;
  int64_t tileBytes = form.positions() * (p.k.getValue() + columns * panelWidth) * p.accumulatorBytes();
  return std::clamp(blockBytes / tileBytes, fewestTiles / (form.tile.depth > 1 ? 2 : 1), mostTiles);
}

/// Panels of columns that a task takes. A size that only a run knows counts as large.
static int64_t chooseColumns(const WinogradForm &form) {
  auto m = form.product.m.asConstant(), n = form.product.n.asConstant();
  if (!m || !n)
    return manyPanels;
  int64_t tasks = form.product.batch.getValue() * llvm::divideCeil(*m, chooseTiles(form, manyPanels)) *
                  llvm::divideCeil(llvm::divideCeil(*n, panelWidth), manyPanels);
  return tasks < enoughTasks ? fewPanels : manyPanels;
}

static void planTasks(WinogradForm &form) {
  ContractionForm &p = form.product;
  MLIRContext *context = p.op.getContext();
  auto constant = [&](int64_t value) { return Expr::constant(context, value); };
  int64_t channels = p.k.getValue();
  Expr panels = p.n.ceilDiv(panelWidth);
  int64_t columns = tunedWithin(p.op, tuned::taskPanels, 1, mostPanels, chooseColumns(form));
  int64_t tiles = tunedWithin(p.op, tuned::blockTiles, 1, 4 * mostTiles, chooseTiles(form, columns));
  p.blocks.m = Expr::max(p.m.ceilDiv(tiles), constant(1));
  if (auto known = p.m.asConstant())
    p.blocks.m = constant(std::max<int64_t>(llvm::divideCeil(*known, tiles), 1));
  p.blocks.n = panels.ceilDiv(columns);
  p.blocks.k = constant(1);
  p.blocks.kSize = p.k;
  p.blocks.mFastest = false;
  p.blocks.rowsMost = mostOfPart(p.m, p.blocks.m, 2 * tallestTile);
  p.blocks.panelsMost = mostOfPart(panels, p.blocks.n, 2 * widestTile);
  p.blocks.iterations = p.batch * p.blocks.m * p.blocks.n;
  Expr work = p.m.ceilDiv(p.blocks.m) * p.n.ceilDiv(p.blocks.n) * (form.positions() * std::max<int64_t>(channels, 1));
  p.blocks.grain = constant(grainWork).ceilDiv(Expr::max(work, constant(1)));
}

static void layOutScratch(WinogradForm &form) {
  ContractionForm &p = form.product;
  MLIRContext *context = p.op.getContext();
  int64_t bytes = p.accumulatorBytes(), channels = p.k.getValue();
  // Rows a multiple of 2 KiB apart would meet in a few sets of the first-level cache.
  int64_t pitch = int64_t(llvm::alignTo(uint64_t(channels), lineElements));
  form.pixelsPitch = Expr::constant(context, pitch % 512 ? pitch : pitch + lineElements);
  form.pixelsPlane = planeOf(p.blocks.rowsMost * form.pixelsPitch);
  form.sumsPitch = p.blocks.panelsMost * panelWidth;
  form.sumsPlane = planeOf(p.blocks.rowsMost * form.sumsPitch);
  ScratchLayout layout{Expr::constant(context, 0)};
  form.pixelsAt = layout.add(form.pixelsPlane * form.positions(), bytes);
  form.sumsAt = layout.add(form.sumsPlane * form.positions(), bytes);
  form.patchAt = layout.add(form.pixelsPitch * form.positions(), bytes);
  form.resultsAt = layout.add(form.sumsPitch * (form.deep.outputs * form.down.outputs * form.across.outputs), bytes);
  p.scratch.sumsPitch = form.sumsPitch;
  p.scratch.size = layout.end;
}

WinogradForm cpu::analyzeWinograd(ContractionForm contraction, loop::WinogradTile tile,
                                  loop::WinogradDilations dilations) {
  WinogradForm form{.product = std::move(contraction), .tile = tile};
  ContractionForm &p = form.product;
  form.channel = int64_t(p.domain.size()) - 1;
  form.across = sideOf(p, p.firstN() - 1, form.channel - 1, dilations[1], tile);
  if (form.hasRows())
    form.down = sideOf(p, p.firstN() - 2, form.channel - 2, dilations[0], tile);
  if (tile.isVolume())
    form.deep = sideOf(p, p.firstN() - 3, form.channel - 3, 1, tile.alongDepth());
  for (int64_t dim = p.firstK(); dim < form.firstWindow(); ++dim)
    form.slices *= p.domain[dim].getValue();
  findStrides(form);
  p.m = form.across.phases * form.across.tiles;
  if (form.hasRows())
    p.m = form.down.phases * form.down.tiles * p.m;
  if (tile.isVolume())
    p.m = form.deep.tiles * p.m;
  for (int64_t dim = p.firstM(); dim < form.firstOutput(); ++dim)
    p.m = p.m * p.domain[dim];
  p.k = p.domain[form.channel] * form.slices;
  if (auto n = p.n.asConstant())
    p.rhs.streams = p.batch.getValue() * *n * p.k.getValue() * form.positions() * p.accumulatorBytes() >= leastStreamed;
  planTasks(form);
  layOutScratch(form);
  return form;
}

KernelPlan cpu::planWinograd(loop::ContractionOp op) {
  WinogradForm form =
      analyzeWinograd(describeContraction(op), loop::getWinogradTile(op), loop::getWinogradDilations(op));
  const ContractionForm &p = form.product;
  Builder builder(op.getContext());
  auto config = builder.getDictionaryAttr({
      builder.getNamedAttr("m_blocks", ExprAttr(p.blocks.m)),
      builder.getNamedAttr("n_blocks", ExprAttr(p.blocks.n)),
      builder.getNamedAttr("pixels", builder.getStringAttr(form.readsInPlace ? "in_place" : "copied")),
      builder.getNamedAttr("winograd", builder.getI64IntegerAttr(form.tile.outputs)),
  });
  return KernelPlan{
      .iterations = p.blocks.iterations, .grain = p.blocks.grain, .scratch = p.scratch.size, .config = config};
}
