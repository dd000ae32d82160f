//===- MmaAttentionPlan.cpp - attention on tensor cores: the plan ---------===//
//
// Operands are rows of d (q, k) or e (v) elements that lie side by side in memory, no more than 128 of a number known
// at compile time. Other attentions, and those of fewer queries than make a tile pay, are a warp's for each query.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/LaneAnalysis.h"
#include "codegen/gpu/MmaAttention.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t multiprocessors = 132; // order of magnitude
static constexpr int64_t fewestQueries = 5;
static constexpr int64_t mostElements = 128; // of a row

DenseI64ArrayAttr AttentionTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {warps, groups, keys, depth, width, int64_t(kind)});
}

AttentionTile AttentionTile::fromAttribute(DictionaryAttr config) {
  ArrayRef<int64_t> values = config.getAs<DenseI64ArrayAttr>("attention").asArrayRef();
  return {values[0], values[1], values[2], values[3], values[4], MmaKind(values[5])};
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

bool gpu::planMmaAttention(loop::KernelOp kernel, loop::AttentionOp op) {
  MLIRContext *context = kernel.getContext();
  SmallVector<Expr> domain = loop::getDomain(op);
  size_t batch = op.getBatch();
  std::optional<int64_t> depth = domain[batch + 2].asConstant(), width = domain[batch + 3].asConstant();
  std::optional<int64_t> queries = domain[batch].asConstant();
  std::optional<MmaKind> kind = findKind(op);
  constexpr int64_t grain = 16;
  auto suits = [&](std::optional<int64_t> extent) {
    return extent && *extent % grain == 0 && *extent > 0 && *extent <= mostElements;
  };
  if (!kind || !suits(depth) || !suits(width) || (queries && *queries < fewestQueries))
    return false;
  int64_t keys = *kind == MmaKind::SplitF32 ? 32 : 64;
  AttentionTile tile{.warps = 4, .groups = 1, .keys = keys, .depth = *depth, .width = *width, .kind = *kind};
  Expr heads = product(context, ArrayRef(domain).take_front(batch));
  auto blocksOf = [&] { return heads * domain[batch].ceilDiv(tile.queries()); };
  auto leavesIdle = [&] {
    Expr least = blocksOf().substitute([&](StringRef) { return Expr::constant(context, 1); });
    return least.asConstant().value_or(multiprocessors) < multiprocessors;
  };
  // Too few blocks: of fewer queries, whose keys warps share.
  while (tile.queryWarps() > 1 && leavesIdle())
    tile.groups *= 2;
  tile.keys = std::max(tile.keys, grain * tile.groups);
  Expr blocks = blocksOf();
  NamedAttrList attributes(GpuConfig{.threads = tile.threads()}.toAttribute(context));
  attributes.set("layout", StringAttr::get(context, "attention"));
  attributes.set("attention", tile.toAttribute(context));
  attributes.set("shared", IntegerAttr::get(IntegerType::get(context, 64), tile.sharedBytes()));
  kernel.setIterationsAttr(blocks);
  kernel.setGrainAttr(Expr::constant(context, 1));
  kernel.setScratchAttr(Expr::constant(context, 0));
  kernel.setConfigAttr(attributes.getDictionary(context));
  return true;
}
