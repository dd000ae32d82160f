//===- CpuTuning.cpp - numbers worth measuring beside the plan's ----------===//
//
// What the estimates behind a plan cannot see decides between sizes that they hold for equal: where code lies, which
// lines meet in a set of a cache, how far a processor looks ahead. So each number is moved a little from where the plan
// has it, one at a time; whoever measures combines those that help.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuTuning.h"
#include "codegen/cpu/CpuContraction.h"
#include "codegen/cpu/CpuPlan.h"
#include "codegen/cpu/CpuRecurrence.h"
#include "codegen/cpu/CpuWinograd.h"
#include "ir/loop/Winograd.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

namespace {
/// Dictionaries of numbers, none twice.
class Alternatives {
public:
  explicit Alternatives(MLIRContext *context) : builder(context) {}

  void add(ArrayRef<std::pair<StringRef, int64_t>> numbers) {
    SmallVector<NamedAttribute> entries;
    for (auto [name, number] : numbers)
      entries.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(number)));
    auto dictionary = builder.getDictionaryAttr(entries);
    if (!llvm::is_contained(all, dictionary))
      all.push_back(dictionary);
  }
  /// Half and twice of what the plan has, within the bounds.
  void scale(StringRef name, int64_t chosen, int64_t least, int64_t most) {
    for (int64_t number : {chosen / 2, chosen * 2})
      if (number >= least && number <= most)
        add({{name, number}});
  }
  SmallVector<DictionaryAttr> take() { return std::move(all); }

private:
  Builder builder;
  SmallVector<DictionaryAttr> all;
};
} // namespace

static void addTiles(Alternatives &found, const ContractionForm &form, const CpuLevel &level,
                     const TiledExtents &extents) {
  if (chooseOutputs(form, level) > 1 || takesStrassen(form, level))
    return; // rows of several outputs have a tile of their own, as has Strassen's algorithm
  SmallVector<TileSplit> tiles = listTiles(form, level, extents);
  TileSplit chosen = tiles.front();
  tiles.push_back({.height = chosen.height - 1, .width = chosen.width});
  for (const TileSplit &tile : ArrayRef(tiles).drop_front()) {
    TileSplit limited = limitTile(level, form.accumulator, extents, tile);
    if (limited.height != chosen.height || limited.width != chosen.width)
      found.add({{tuned::tileRows, limited.height}, {tuned::tilePanels, limited.width}});
  }
}

static void addBlocks(Alternatives &found, const ContractionForm &form, const TileSplit &tile, int64_t m,
                      int64_t panels) {
  int64_t rows = form.blocks.m.getValue(), columns = form.blocks.n.getValue();
  int64_t mostRows = llvm::divideCeil(m, tile.height), mostColumns = llvm::divideCeil(panels, tile.width);
  std::pair<int64_t, int64_t> others[] = {{rows, columns * 2}, {rows * 2, columns},     {rows, columns / 2},
                                          {rows / 2, columns}, {rows * 2, columns / 2}, {rows / 2, columns * 2}};
  bool hasWholeRows = hasRowsBehind(form.op->getParentOfType<loop::KernelOp>());
  for (auto [mBlocks, nBlocks] : others)
    if ((hasWholeRows && nBlocks != columns) || (form.behind.hasAllRows && mBlocks != rows))
      continue;
    else if (mBlocks >= 1 && mBlocks <= mostRows && nBlocks >= 1 && nBlocks <= mostColumns)
      found.add({{tuned::mBlocks, mBlocks}, {tuned::nBlocks, nBlocks}});
}

/// Pieces of k in which a block of columns is a quarter of a second-level cache or more.
static void addSplits(Alternatives &found, const ContractionForm &form, int64_t k) {
  constexpr int64_t fewestTerms = 192;
  auto blocks = form.blocks.k.asConstant();
  if (!blocks)
    return;
  for (int64_t other : {*blocks - 1, *blocks + 1, *blocks * 2})
    if (other >= 1 && other != *blocks && (other == 1 || k / other >= fewestTerms))
      found.add({{tuned::kBlocks, other}});
}

static void addContraction(Alternatives &found, loop::ContractionOp op, const CpuLevel &level) {
  ContractionForm form = analyzeContraction(op);
  auto known = [](Expr extent) { return extent.asConstant().value_or(-1); };
  TiledExtents extents(known(form.m), known(form.n), known(form.k), form.rowUnit());
  addTiles(found, form, level, extents);
  if (extents.m <= 0 || known(form.n) <= 0 || extents.k <= 0)
    return; // blocks follow from sizes that a run tells
  TileSplit tile = listTiles(form, level, extents).front();
  addBlocks(found, form, tile, extents.m, extents.panels);
  addSplits(found, form, extents.k);
  if (!form.rhs.isPacked() && extents.m > tile.height)
    found.add({{tuned::prefetch, 0}});
}

static void addWinograd(Alternatives &found, loop::ContractionOp op, const CpuLevel &level) {
  WinogradForm form =
      analyzeWinograd(describeContraction(op), loop::getWinogradTile(op), loop::getWinogradDilations(op));
  const ContractionForm &products = form.product;
  auto m = products.m.asConstant(), n = products.n.asConstant();
  if (!m || !n || *m < 1 || *n < 1)
    return;
  int64_t tiles = llvm::divideCeil(*m, products.blocks.m.getValue());
  int64_t panels = llvm::divideCeil(*n, panelWidth);
  found.scale(tuned::blockTiles, tiles, 6, *m);
  found.scale(tuned::taskPanels, llvm::divideCeil(panels, products.blocks.n.getValue()), 1, panels);
  addTiles(found, products, level, TiledExtents(*m, *n, products.k.getValue()));
}

static void addAttention(Alternatives &found, const KernelPlan &plan, loop::AttentionOp op) {
  SmallVector<Expr> domain = loop::getDomain(op);
  auto queries = domain[op.getBatch()].asConstant(), keys = domain[op.getBatch() + 1].asConstant();
  auto planned = [&](StringRef name) { return Expr(plan.config.getAs<ExprAttr>(name)).asConstant().value_or(0); };
  if (keys)
    found.scale(tuned::blockKeys, planned("keys"), 64, *keys);
  if (queries)
    found.scale(tuned::taskQueries, planned("queries"), 16, *queries);
}

/// Each shared dim as the dim of the lanes, and each node's own; those that cannot be end in the plan that there is.
static void addLanes(Alternatives &found, loop::KernelOp kernel) {
  auto planWith = [&](std::optional<int64_t> dim) {
    OwningOpRef<loop::KernelOp> copy = kernel.clone();
    Builder b(kernel.getContext());
    if (dim)
      copy.get()->setAttr(loop::tunedAttr,
                          b.getDictionaryAttr(b.getNamedAttr(tuned::lanesDim, b.getI64IntegerAttr(*dim))));
    return planLoops(*copy).config;
  };
  DictionaryAttr chosen = planWith(std::nullopt);
  SmallVector<DictionaryAttr> seen{chosen};
  for (int64_t dim = int64_t(kernel.getParallel()) - 1; dim >= -1; --dim)
    if (DictionaryAttr config = planWith(dim); !llvm::is_contained(seen, config)) {
      seen.push_back(config);
      found.add({{tuned::lanesDim, dim}});
    }
}

SmallVector<DictionaryAttr> cpu::listAlternatives(loop::KernelOp kernel, const CpuLevel &level) {
  Alternatives found(kernel.getContext());
  OwningOpRef<loop::KernelOp> copy = kernel.clone();
  SmallVector<Operation *> nodes = getNodes(*copy);
  if (nodes.empty() || getRecurrence(*copy))
    return {};
  auto attention = dyn_cast<loop::AttentionOp>(nodes.back());
  auto contraction = attention ? loop::ContractionOp() : dyn_cast<loop::ContractionOp>(nodes.front());
  if (contraction)
    canonicalizeContraction(contraction);
  if (contraction && loop::getWinogradTile(contraction)) {
    addWinograd(found, contraction, level);
  } else if (contraction && !isNarrowContraction(contraction)) {
    addContraction(found, contraction, level);
  } else if (attention) {
    if (FailureOr<KernelPlan> plan = planAttention(*copy, nodes); succeeded(plan))
      addAttention(found, *plan, attention);
  } else if (!contraction) {
    addLanes(found, *copy);
  }
  return found.take();
}
