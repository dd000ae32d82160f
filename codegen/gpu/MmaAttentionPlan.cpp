//===- MmaAttentionPlan.cpp - attention on tensor cores: the plan ---------===//
//
// Operands are rows of d (q, k) or e (v) elements that lie side by side in memory, no more than 128 of a number known
// at compile time. Other attentions, and those of few queries and keys, are a warp's for each query.
//
// Few queries have too few tiles for the device: blocks share the keys of each (`splits`), but have at least 128.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/DeviceShape.h"
#include "codegen/gpu/GpuTuning.h"
#include "codegen/gpu/LaneAnalysis.h"
#include "codegen/gpu/MmaAttention.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t symbolicExtent = 128;
static constexpr int64_t fewestQueries = 5; // of which a tile pays, unless keys are many
static constexpr int64_t manyKeys = 256;
static constexpr int64_t fewestKeysOfSplit = 128, blocksOfSplit = 2 * multiprocessors;
static constexpr int64_t mostElements = 128; // of a row
static constexpr int64_t grain = 16;         // of queries, keys and rows
static constexpr int64_t mostWarps = 8;
static constexpr int64_t mostKeys = mostWarps * 64; // of a tile

DenseI64ArrayAttr AttentionTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {warps, groups, keys, stages, depth, width, int64_t(kind)});
}

AttentionTile AttentionTile::fromAttribute(DictionaryAttr config) {
  ArrayRef<int64_t> values = config.getAs<DenseI64ArrayAttr>("attention").asArrayRef();
  return {values[0], values[1], values[2], values[3], values[4], values[5], MmaKind(values[6])};
}

// The elements' type, where the region is a load of chunks of 16 bytes along the dim; null elsewhere.
static Type vectorType(loop::AttentionOp op, Region &region, int64_t dim) {
  auto load = getNarrowValue(region).getDefiningOp<loop::LoadOp>();
  if (!load || !load.getIndexOperands().empty() || load->getBlock() != &region.front())
    return {};
  int64_t lanes = MmaTile::vectorBytes / loop::getElementBytes(load.getType());
  bool isVector = LaneAnalysis(op, dim).isVector(Expr(cast<ExprAttr>(load.getIndices()[0])), {}, lanes);
  return isVector ? load.getType() : Type();
}

static std::optional<MmaKind> findKind(loop::AttentionOp op) {
  int64_t batch = int64_t(op.getBatch());
  Type q = vectorType(op, op.getQ(), batch + 2), k = vectorType(op, op.getK(), batch + 2);
  Type v = vectorType(op, op.getV(), batch + 3);
  if (!q || q != k || q != v)
    return std::nullopt;
  if (q.isF32())
    return MmaKind::SplitF32;
  return q.isF16() ? std::optional(MmaKind::F16) : q.isBF16() ? std::optional(MmaKind::BF16) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

namespace {
struct Work {
  int64_t heads, queries, keys;
};
} // namespace

// Symbols of a batch count as one, the least there can be.
static int64_t countOf(MLIRContext *context, Expr extent, int64_t ifSymbolic) {
  Expr known = extent.substitute([&](StringRef) { return Expr::constant(context, ifSymbolic); });
  return std::max<int64_t>(known.asConstant().value_or(ifSymbolic), 1);
}

// The ways in which keys come to a block of so many warps: at once where they fit, and in tiles that fit twice. The
// best first.
static void addTiles(SmallVectorImpl<AttentionTile> &found, AttentionTile tile, std::optional<int64_t> keys,
                     int64_t mostTogether) {
  const int64_t most = tile.kind == MmaKind::SplitF32 ? 32 : 64; // of a group, whose scores are in registers
  auto addIfFits = [&](int64_t together, int64_t stages) {
    tile.keys = together;
    tile.stages = stages;
    if (tile.sharedBytes() <= sharedLimit)
      found.push_back(tile);
  };
  if (int64_t all = llvm::alignTo(keys.value_or(0), grain * tile.groups); keys && all <= most * tile.groups)
    addIfFits(all, 1);
  for (int64_t ofGroup = most; ofGroup >= grain; ofGroup /= 2)
    if (ofGroup * tile.groups <= mostTogether)
      addIfFits(ofGroup * tile.groups, 2);
}

// Cycles of the busiest multiprocessor. A cell is 16 queries by 16 keys; four schedulers take turns, but a warp alone
// waits for its own results most of the time. What blocks read comes out of L2.
static double estimate(const Work &work, const AttentionTile &tile, int64_t splits) {
  bool isSplit = tile.kind == MmaKind::SplitF32;
  double size = double(tile.depth + tile.width) / 128;
  double issue = (isSplit ? 1000 : 200) * size, latency = (isSplit ? 1500 : 400) * size;
  int64_t blocks = work.heads * llvm::divideCeil(work.queries, tile.queries()) * splits;
  int64_t keys = llvm::divideCeil(work.keys, splits);
  double together = double(llvm::divideCeil(blocks, multiprocessors));
  double cells = double(llvm::divideCeil(keys, grain * tile.groups)); // of a warp
  double arithmetic = std::max(together * cells * double(tile.warps) * issue / 4, cells * latency);
  double bytes = double(keys) * double(tile.depth + tile.width) * double(tile.elementBytes());
  double join = double(tile.groups * tile.queries() * tile.width) / double(tile.threads()) * 8;
  return std::max(arithmetic, together * bytes / 48) + join;
}

// The number of blocks that share the keys of a tile of few queries.
static Expr chooseSplits(MLIRContext *context, Expr tiles, std::optional<int64_t> queries, Expr keys) {
  auto number = [&](int64_t value) { return Expr::constant(context, value); };
  if (!queries || *queries > grain)
    return number(1);
  return Expr::max(Expr::min(number(blocksOfSplit).floorDiv(tiles), keys.floorDiv(fewestKeysOfSplit)), number(1));
}

static std::optional<AttentionTile> chooseTile(loop::AttentionOp op, const Work &work, std::optional<int64_t> keys,
                                               Expr splitsExpr, AttentionTile tile) {
  bool isSplit = !splitsExpr.isConstant(1);
  int64_t splits = countOf(splitsExpr.getContext(), splitsExpr, symbolicExtent);
  int64_t mostTogether = !isSplit ? mostKeys : keys ? fewestKeysOfSplit : fewestKeysOfSplit / 2;
  SmallVector<AttentionTile> tiles;
  for (int64_t queryWarps : {8, 4, 2, 1}) // of equal ones that with the most queries: they share what is read
    for (int64_t groups = 1; groups * queryWarps <= mostWarps; groups *= 2) {
      tile.warps = groups * queryWarps;
      tile.groups = groups;
      addTiles(tiles, tile, isSplit ? std::nullopt : keys, mostTogether);
    }
  keepNearest(tiles, op, tuned::warps, [](const AttentionTile &each) { return each.warps; });
  keepNearest(tiles, op, tuned::keyGroups, [](const AttentionTile &each) { return each.groups; });
  keepNearest(tiles, op, tuned::blockKeys, [](const AttentionTile &each) { return each.keys; });
  auto best = llvm::min_element(tiles, [&](const AttentionTile &a, const AttentionTile &b) {
    return estimate(work, a, splits) < estimate(work, b, splits);
  });
  return best == tiles.end() ? std::nullopt : std::optional(*best);
}

bool gpu::planMmaAttention(loop::KernelOp kernel, loop::AttentionOp op) {
  MLIRContext *context = kernel.getContext();
  SmallVector<Expr> domain = loop::getDomain(op);
  size_t batch = op.getBatch();
  std::optional<int64_t> depth = domain[batch + 2].asConstant(), width = domain[batch + 3].asConstant();
  std::optional<int64_t> queries = domain[batch].asConstant(), keys = domain[batch + 1].asConstant();
  std::optional<MmaKind> kind = findKind(op);
  auto suits = [&](std::optional<int64_t> extent) {
    return extent && *extent % grain == 0 && *extent > 0 && *extent <= mostElements;
  };
  bool isSmall = queries && *queries < fewestQueries && keys && *keys < manyKeys;
  if (!kind || !suits(depth) || !suits(width) || isSmall || (keys && *keys < 1))
    return false;
  Expr heads = product(context, ArrayRef(domain).take_front(batch));
  Work work{countOf(context, heads, 1), countOf(context, domain[batch], symbolicExtent),
            countOf(context, domain[batch + 1], symbolicExtent)};
  Expr splits = chooseSplits(context, heads, queries, domain[batch + 1]);
  bool isSplit = !splits.isConstant(1);
  std::optional<AttentionTile> tile = chooseTile(
      op, work, keys, splits,
      {.warps = 1, .groups = 1, .keys = grain, .stages = 2, .depth = *depth, .width = *width, .kind = *kind});
  if (!tile)
    return false;
  Expr blocks = heads * domain[batch].ceilDiv(tile->queries()) * splits;
  NamedAttrList attributes(GpuConfig{.threads = tile->threads()}.toAttribute(context));
  attributes.set("layout", StringAttr::get(context, "attention"));
  attributes.set("attention", tile->toAttribute(context));
  attributes.set("splits", ExprAttr(splits));
  if (isSplit)
    attributes.set("counters", UnitAttr::get(context));
  attributes.set("shared", IntegerAttr::get(IntegerType::get(context, 64), tile->sharedBytes()));
  kernel.setIterationsAttr(blocks);
  kernel.setGrainAttr(Expr::constant(context, 1));
  kernel.setScratchAttr(isSplit ? blocks * (tile->queries() * tile->partPitch() * 4) : Expr::constant(context, 0));
  kernel.setConfigAttr(attributes.getDictionary(context));
  return true;
}
