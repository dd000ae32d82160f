//===- CpuPlan.cpp - how a kernel of loop nodes is cut and vectorised -----===//
//
// A kernel shares its first dims between nodes; threads take ranges of them. There are two shapes of code:
//
//   lanes along a shared dim   every node runs for a vector of points of that dim (pointwise kernels, sums of columns,
//                              pooling over channels). Threads take blocks of it, a multiple of 64 elements, so that
//                              no cut moves an element to another lane and results do not depend on the threads.
//                              A windowed reduction (pooling, depthwise convolution) is tiled along a second dim: its
//                              points share elements of the window and addresses.
//                              So is, along the rows, a product whose points choose their matrix, lanes inside.
//                              A pointwise kernel that reads along another dim than it writes (a transposition) runs
//                              along both in squares.
//   lanes inside               each point of the shared dims is a row; each node chooses among its own dims (softmax,
//                              layer normalisation, sums of rows).
//
// The cheaper estimate decides. A local buffer under lanes along a shared dim has one copy a lane, so that only small
// ones allow it. Everything here follows from shapes, never from the CPU level: all levels share the launches.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/CpuPlan.h"
#include "codegen/common/ReductionSteps.h"
#include "codegen/cpu/ChosenPoints.h"
#include "codegen/cpu/CpuTuning.h"
#include "codegen/cpu/GreedyBuckets.h"
#include "codegen/cpu/NodeEmitter.h"
#include "codegen/cpu/WindowBounds.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t stackBytes = 4096;       // of a kernel's frame; a run promises 64 KB in all
static constexpr int64_t maxLanes = 64;           // of any level: bytes in a vector
static constexpr int64_t blockElements = 64;      // granule of a vector dim: a cache line of bytes
static constexpr double threadCost = 16.0 * 8000; // sixteenths of cycles that are worth a fork
static constexpr int64_t assumedExtent = 64;      // of a symbolic dim, for costs
static constexpr double fewestRows = 4;           // of tiles that keep threads busy

DictionaryAttr LoopConfig::toAttribute(MLIRContext *context) const {
  Builder b(context);
  SmallVector<NamedAttribute> entries{b.getNamedAttr("block", b.getI64IntegerAttr(block)),
                                      b.getNamedAttr("node_vectors", b.getDenseI64ArrayAttr(nodeVectors)),
                                      b.getNamedAttr("shared_vector", b.getI64IntegerAttr(sharedVector))};
  if (ordered >= 0)
    entries.push_back(b.getNamedAttr("ordered", b.getI64IntegerAttr(ordered)));
  if (tiled >= 0) {
    entries.push_back(b.getNamedAttr("tile_block", b.getI64IntegerAttr(tileBlock)));
    entries.push_back(b.getNamedAttr("tiled", b.getI64IntegerAttr(tiled)));
  }
  return b.getDictionaryAttr(entries);
}

LoopConfig LoopConfig::fromAttribute(DictionaryAttr config) {
  LoopConfig result;
  result.sharedVector = config.getAs<IntegerAttr>("shared_vector").getInt();
  result.block = config.getAs<IntegerAttr>("block").getInt();
  if (auto tiled = config.getAs<IntegerAttr>("tiled")) {
    result.tiled = tiled.getInt();
    result.tileBlock = config.getAs<IntegerAttr>("tile_block").getInt();
  }
  if (auto ordered = config.getAs<IntegerAttr>("ordered"))
    result.ordered = ordered.getInt();
  result.nodeVectors = SmallVector<int64_t>(config.getAs<DenseI64ArrayAttr>("node_vectors").asArrayRef());
  return result;
}

SmallVector<Operation *> cpu::getNodes(loop::KernelOp kernel) {
  SmallVector<Operation *> nodes;
  for (Operation &op : kernel.getBlock())
    if (loop::isNode(&op))
      nodes.push_back(&op);
  return nodes;
}

//===----------------------------------------------------------------------===//
// Local memory
//===----------------------------------------------------------------------===//

// What comparisons read of those chosen in a row.
static Expr greedyBytes(loop::GreedyOp greedy) {
  codegen::ConflictParts parts(greedy);
  Expr length = loop::getDomain(greedy).back();
  return GreedyBuckets::findInterval(parts, length) ? GreedyBuckets::getBytes(parts, length) : parts.getBytes(length);
}

// The memory that an operation of the kernel needs for itself; null: none.
static Expr getLocalBytes(Operation &op) {
  if (auto buffer = dyn_cast<loop::BufferOp>(op)) {
    auto type = cast<loop::BufferType>(buffer.getResult().getType());
    return type.getElementCount() * type.getElementBytes();
  }
  if (auto sort = dyn_cast<loop::SortOp>(op))
    return getSortBytes(sort);
  if (auto greedy = dyn_cast<loop::GreedyOp>(op))
    return greedyBytes(greedy);
  return {};
}

// Puts buffers on the stack, the smallest first, until it is full: those of a few vectors become registers there.
static void chooseStack(MutableArrayRef<LocalBuffer> buffers) {
  SmallVector<std::pair<int64_t, LocalBuffer *>> known;
  for (LocalBuffer &local : buffers)
    if (std::optional<int64_t> bytes = local.bytes.asConstant(); bytes && isa<loop::BufferOp>(local.op))
      known.push_back({int64_t(llvm::alignTo(uint64_t(*bytes), 64)), &local});
  llvm::stable_sort(known, llvm::less_first());
  int64_t stack = 0;
  for (auto [bytes, local] : known) {
    local->onStack = stack + bytes <= stackBytes;
    stack += local->onStack ? bytes : 0;
  }
}

LocalMemory cpu::placeLocalBuffers(loop::KernelOp kernel) {
  LocalMemory memory;
  for (Operation &op : kernel.getBlock())
    if (Expr bytes = getLocalBytes(op))
      memory.buffers.push_back({.op = &op, .onStack = false, .offset = {}, .bytes = bytes});
  chooseStack(memory.buffers);
  Expr total = Expr::constant(kernel.getContext(), 0);
  for (LocalBuffer &local : memory.buffers) {
    local.offset = total;
    if (!local.onStack)
      total = total + local.bytes.ceilDiv(64) * int64_t(64);
  }
  memory.scratch = total;
  return memory;
}

// Each lane needs its own copy of a local buffer.
static bool localsAllowLanes(loop::KernelOp kernel) {
  int64_t bytes = 0;
  for (auto buffer : kernel.getBlock().getOps<loop::BufferOp>()) {
    auto type = cast<loop::BufferType>(buffer.getResult().getType());
    std::optional<int64_t> count = type.getElementCount().asConstant();
    if (!count || *count > 16)
      return false;
    bytes += *count * type.getElementBytes() * maxLanes;
  }
  return bytes <= 4 * stackBytes;
}

// An index into a local buffer that uses the dim would meet the lanes' copies.
static bool localsUseDim(loop::KernelOp kernel, int64_t dim) {
  std::string name = dimName(dim);
  auto uses = [&](Value buffer, ArrayAttr indices) {
    return buffer.getDefiningOp<loop::BufferOp>() && Expr(cast<ExprAttr>(indices[0])).uses(name);
  };
  WalkResult result = kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<loop::LoadOp>(op))
      return uses(load.getBuffer(), load.getIndices()) ? WalkResult::interrupt() : WalkResult::advance();
    if (auto store = dyn_cast<loop::StoreOp>(op))
      return uses(store.getBuffer(), store.getIndices()) ? WalkResult::interrupt() : WalkResult::advance();
    return WalkResult::advance();
  });
  return result.wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

static double assumedSize(ArrayRef<Expr> extents) {
  double size = 1;
  for (Expr extent : extents)
    size *= double(std::max<int64_t>(extent.asConstant().value_or(assumedExtent), 1));
  return size;
}

namespace {
struct Choice {
  LoopConfig config;
  double cost = 0; // sixteenths of cycles for all points
};
} // namespace

int64_t cpu::chooseNodeVector(Operation *node, int64_t shared) {
  double best = estimatePoint(node, -1);
  int64_t dim = -1;
  for (int64_t candidate = int64_t(loop::getDomain(node).size()) - 1; candidate >= shared; --candidate) {
    if (!canVectorize(node, candidate))
      continue;
    double cost = estimatePoint(node, candidate);
    if (cost < best) {
      best = cost;
      dim = candidate;
    }
  }
  return dim;
}

static Choice chooseInside(ArrayRef<Operation *> nodes, int64_t shared) {
  Choice choice;
  for (Operation *node : nodes) {
    int64_t dim = chooseNodeVector(node, shared);
    choice.config.nodeVectors.push_back(dim);
    choice.cost += estimatePoint(node, dim) * assumedSize(loop::getDomain(node));
  }
  return choice;
}

static std::optional<Choice> chooseShared(loop::KernelOp kernel, ArrayRef<Operation *> nodes, int64_t dim) {
  if (!localsAllowLanes(kernel) || localsUseDim(kernel, dim))
    return std::nullopt;
  Choice choice;
  choice.config.sharedVector = dim;
  choice.config.nodeVectors.assign(nodes.size(), -1);
  for (Operation *node : nodes) {
    SmallVector<Expr> domain = loop::getDomain(node);
    // Inner extents may not depend on the lane.
    for (Expr extent : domain)
      if (extent.uses(dimName(dim)))
        return std::nullopt;
    if (!canVectorize(node, dim))
      return std::nullopt;
    choice.cost += estimatePoint(node, dim) * assumedSize(domain);
  }
  return choice;
}

// Elements of the vector dim in one iteration: enough work to make its start-up negligible.
static int64_t chooseBlock(Expr extent, double costPerElement, bool hasOthers) {
  std::optional<int64_t> known = extent.asConstant();
  int64_t wanted = int64_t(threadCost / 2 / std::max(costPerElement, 1.0));
  int64_t block = std::clamp<int64_t>(int64_t(llvm::PowerOf2Ceil(uint64_t(std::max<int64_t>(wanted, 1)))),
                                      blockElements, hasOthers ? 4096 : blockElements);
  if (known && hasOthers && *known <= std::max(block, 2 * blockElements)) // rather than a half and less
    return std::max<int64_t>(*known, 1);
  return block;
}

// max(1, threadCost / cost of one iteration), the latter an expression of the symbols.
static constexpr int64_t orderCost = 200; // of a point or a matrix in their order, in the units of a grain's cost

static Expr chooseGrain(MLIRContext *context, ArrayRef<Operation *> nodes, const LoopConfig &config, int64_t shared) {
  Expr cost = Expr::constant(context, 16 * 20);
  for (auto [index, node] : llvm::enumerate(nodes)) {
    SmallVector<Expr> domain = loop::getDomain(node);
    int64_t dim = config.sharedVector >= 0 ? config.sharedVector : config.nodeVectors[index];
    int64_t across = isa<loop::PointwiseOp>(node) ? config.tiled : -1;
    if (across >= 0 && gathersAcross(node, dim, across))
      std::swap(dim, across);
    double point = estimatePoint(node, dim, across) * double(config.sharedVector >= 0 ? config.block : 1);
    Expr points = Expr::constant(context, std::max<int64_t>(int64_t(point), 1));
    if (config.tiled >= 0)
      points = points * (config.tileBlock ? Expr::constant(context, config.tileBlock) : domain[size_t(config.tiled)]);
    for (Expr extent : ArrayRef<Expr>(domain).drop_front(shared)) {
      bool usesDims = extent.usesAny([](StringRef name) { return parseNumbered(name, 'd').has_value(); });
      points = points * (usesDims ? Expr::constant(context, assumedExtent) : extent);
    }
    cost = cost + points;
  }
  Expr grain = Expr::constant(context, int64_t(threadCost)).floorDiv(cost);
  if (config.ordered >= 0) {
    auto product = cast<loop::ReductionOp>(nodes.front());
    Expr order = (loop::getDomain(product)[size_t(config.ordered)] + findChosenPoints(product)->matrices) * orderCost;
    grain = Expr::max(grain, (order * 8).ceilDiv(cost)); // at most an eighth of a range's work
  }
  return Expr::max(Expr::constant(context, 1), grain);
}

static constexpr int64_t longestVectors = 256; // elements of a reduced dim: float sums are not blocked in tiles
static constexpr int64_t longestHalves = 64;   // of vectors of 4 elements, which whole ones and a rest outdo then
static constexpr size_t longestElement = 8;    // operations for an element, which stand there once for each output

/// Lanes along the reduced dim, if vectors fill it: of a tile's outputs each has one.
static bool allowsTiles(loop::ReductionOp op, const Choice &inside, ArrayRef<Expr> domain, int64_t kept) {
  int64_t dim = inside.config.nodeVectors.front();
  std::optional<int64_t> extent = dim >= kept ? domain[size_t(dim)].asConstant() : std::nullopt;
  bool isShort = codegen::splitBody(op.getBody().front()).before.size() <= longestElement;
  bool fillsHalves = extent && *extent % 4 == 0 && *extent <= longestHalves;
  return isShort && extent && *extent > 0 && (fillsHalves || *extent % 8 == 0) && *extent <= longestVectors;
}

// A lone windowed reduction with lanes along a kept dim runs along a second one in tiles; one with lanes along a
// reduced dim along any. All kept dims are shared then. Where the others are few, the tiled dim is cut as well.
static std::optional<Choice> chooseTiled(loop::KernelOp kernel, ArrayRef<Operation *> nodes, int64_t apart) {
  auto reduction = nodes.size() == 1 ? dyn_cast<loop::ReductionOp>(nodes.front()) : loop::ReductionOp();
  if (!reduction)
    return std::nullopt;
  SmallVector<Expr> domain = loop::getDomain(reduction);
  int64_t kept = int64_t(domain.size()) - int64_t(reduction.getReduced());
  std::optional<Choice> best;
  for (int64_t dim = kept - 1; dim >= apart; --dim)
    if (std::optional<Choice> choice = chooseShared(kernel, nodes, dim); choice && (!best || choice->cost < best->cost))
      best = choice;
  Choice inside = chooseInside(nodes, kept);
  bool isCheaper = !best || best->cost >= inside.cost;
  if (allowsTiles(reduction, inside, domain, kept) && (isCheaper || gathersAlong(reduction, best->config.sharedVector)))
    best = inside;
  else if (isCheaper)
    return std::nullopt;
  LoopConfig &config = best->config;
  int64_t lanesDim = config.sharedVector >= 0 ? config.sharedVector : config.nodeVectors.front();
  config.tiled = findTiledDim(reduction, apart, kept, lanesDim);
  if (config.tiled < 0)
    return std::nullopt;
  double others = 1;
  for (int64_t dim = 0; dim < kept; ++dim)
    if (dim != config.sharedVector && dim != config.tiled)
      others *= assumedSize(domain[size_t(dim)]);
  config.tileBlock = others < fewestRows ? 64 : 0;
  kernel.setParallel(kept);
  return best;
}

// A lone product whose points choose their matrix has lanes along its terms and runs along the rows in tiles, for the
// points in the order of what they choose. All kept dims are shared then.
static std::optional<Choice> chooseOrdered(loop::KernelOp kernel, ArrayRef<Operation *> nodes, int64_t apart) {
  auto product = nodes.size() == 1 ? dyn_cast<loop::ReductionOp>(nodes.front()) : loop::ReductionOp();
  auto chosen = product ? findChosenPoints(product) : std::nullopt;
  if (!chosen || chosen->dim < apart || loop::getTuned(kernel, tuned::lanesDim) ||
      !kernel.getBlock().getOps<loop::BufferOp>().empty())
    return std::nullopt;
  int64_t terms = int64_t(loop::getDomain(product).size()) - 1;
  Choice choice = chooseInside(nodes, terms);
  if (choice.config.nodeVectors.front() != terms)
    return std::nullopt;
  choice.config.tiled = terms - 1;
  choice.config.ordered = chosen->dim;
  kernel.setParallel(terms);
  return choice;
}

static constexpr int64_t fewestInSquare = 4; // of either dim, if that is known
static constexpr int64_t wholeSide = 128;    // a dim that is not longer is not cut
static constexpr int64_t sideBlock = 64;     // lines of both sides stay in the first-level cache meanwhile

static constexpr int64_t wholeStrands = 1024; // the same, where strands are woven: each line is written at one place

static constexpr int64_t fewLines = 16; // that go on in step

static bool fillsSquares(Expr extent) { return extent.asConstant().value_or(fewestInSquare) >= fewestInSquare; }

/// A part of the dim, in whole squares if its extent allows that.
static int64_t chooseSideBlock(Expr extent) {
  int64_t known = extent.asConstant().value_or(0);
  if (known > 0 && known <= wholeSide)
    return known;
  for (int64_t block = wholeSide; known && block >= sideBlock / 2; block -= 16)
    if (known % block == 0)
      return block;
  return sideBlock;
}

/// A part of a dim that is written in step with others: each line is a stream, of which the processor follows few.
static int64_t chooseFewLines(Expr extent) {
  int64_t known = extent.asConstant().value_or(0);
  for (int64_t lines : {fewLines, fewLines / 2})
    if (known % lines == 0)
      return lines;
  return known <= wholeSide ? known : fewLines;
}

/// Whether another dim lies between neighbours along dim `across` in what the node stores.
static bool storesApart(loop::PointwiseOp node, int64_t along, int64_t across) {
  auto store = *node.getBody().front().getOps<loop::StoreOp>().begin();
  Expr index = cast<ExprAttr>(store.getIndices()[0]);
  auto stepAlong = [&](int64_t dim) {
    Expr step = index.coefficientOf(dimName(dim));
    return step ? step.asConstant().value_or(0) : 0;
  };
  SmallVector<Expr> domain = loop::getDomain(node);
  return llvm::any_of(llvm::seq<int64_t>(int64_t(domain.size())), [&](int64_t dim) {
    bool isOther = dim != along && dim != across && !domain[size_t(dim)].isConstant(1);
    return isOther && stepAlong(dim) > 0 && stepAlong(dim) < stepAlong(across);
  });
}

// A lone pointwise node that reads along one dim and writes along another. All dims are shared then.
static std::optional<Choice> chooseSquares(loop::KernelOp kernel, ArrayRef<Operation *> nodes) {
  auto node = nodes.size() == 1 ? dyn_cast<loop::PointwiseOp>(nodes.front()) : loop::PointwiseOp();
  if (!node || !kernel.getBlock().getOps<loop::BufferOp>().empty())
    return std::nullopt;
  SmallVector<Expr> domain = loop::getDomain(node);
  auto usesDims = [](Expr extent) {
    return extent.usesAny([](StringRef name) { return parseNumbered(name, 'd').has_value(); });
  };
  if (llvm::any_of(domain, usesDims))
    return std::nullopt;
  std::optional<Choice> best;
  for (int64_t along = 0, rank = int64_t(domain.size()); along < rank; ++along)
    for (int64_t across = 0; across < rank; ++across) {
      bool isGather = gathersAcross(node, along, across), isWoven = !isGather && weavesStores(node, along, across);
      bool turns = isGather || isWoven || !getCrossingLoads(node, along, across).empty();
      if (!turns || !fillsSquares(domain[size_t(across)]))
        continue;
      if (!isWoven && !fillsSquares(domain[size_t(along)]))
        continue;
      Choice choice;
      choice.cost = isWoven || isGather ? estimatePoint(node, across, along) : estimatePoint(node, along, across);
      choice.cost *= assumedSize(domain);
      choice.config = {.sharedVector = along, .tiled = across, .nodeVectors = {-1}};
      if (!best || choice.cost < best->cost)
        best = choice;
    }
  if (!best)
    return std::nullopt;
  for (int64_t dim = -1; dim < int64_t(domain.size()); ++dim)
    if (estimatePoint(node, dim) * assumedSize(domain) <= best->cost)
      return std::nullopt;
  LoopConfig &config = best->config;
  Expr across = domain[size_t(config.tiled)];
  config.block = chooseSideBlock(domain[size_t(config.sharedVector)]);
  bool isApart = storesApart(node, config.sharedVector, config.tiled);
  bool isWhole = weavesStores(node, config.sharedVector, config.tiled) && across.asConstant().value_or(0) > 0 &&
                 across.getValue() <= wholeStrands;
  int64_t side = isWhole ? across.getValue() : isApart ? chooseFewLines(across) : chooseSideBlock(across);
  config.tileBlock = across.isConstant(side) ? 0 : side;
  kernel.setParallel(int64_t(domain.size()));
  return best;
}

void cpu::setPlan(loop::KernelOp kernel, const KernelPlan &plan) {
  kernel.setIterationsAttr(plan.iterations);
  kernel.setGrainAttr(plan.grain);
  kernel.setScratchAttr(plan.scratch ? plan.scratch : Expr::constant(kernel.getContext(), 0));
  kernel.setConfigAttr(plan.config);
}

KernelPlan cpu::planLoops(loop::KernelOp kernel, int64_t apart) {
  MLIRContext *context = kernel.getContext();
  SmallVector<Operation *> nodes = getNodes(kernel);
  std::optional<Choice> tiled = chooseOrdered(kernel, nodes, apart);
  if (!tiled)
    tiled = chooseTiled(kernel, nodes, apart);
  bool isSquare = false;
  if (!tiled && !loop::getTuned(kernel, tuned::lanesDim)) {
    tiled = chooseSquares(kernel, nodes);
    isSquare = tiled.has_value();
  }
  int64_t shared = int64_t(kernel.getParallel());
  std::optional<int64_t> wanted = loop::getTuned(kernel, tuned::lanesDim);
  Choice best = tiled ? *tiled : chooseInside(nodes, shared);
  for (int64_t dim = shared - 1; dim >= apart && !tiled; --dim)
    if (std::optional<Choice> choice = chooseShared(kernel, nodes, dim);
        choice && (wanted ? dim == *wanted : choice->cost < best.cost))
      best = *choice;

  LoopConfig &config = best.config;
  SmallVector<Expr> extents;
  if (!nodes.empty())
    extents = loop::getDomain(nodes.front());
  extents.truncate(size_t(shared));
  Expr iterations = Expr::constant(context, 1);
  for (auto [dim, extent] : llvm::enumerate(extents)) {
    if (int64_t(dim) == config.tiled)
      iterations = config.tileBlock ? iterations * extent.ceilDiv(config.tileBlock) : iterations;
    else if (int64_t(dim) != config.sharedVector)
      iterations = iterations * extent;
  }
  if (isSquare) {
    iterations = iterations * extents[size_t(config.sharedVector)].ceilDiv(config.block);
  } else if (config.sharedVector >= 0) {
    Expr extent = extents[size_t(config.sharedVector)];
    double perElement = best.cost / assumedSize(extents);
    if (config.tiled >= 0)
      perElement *= config.tileBlock ? double(config.tileBlock) : assumedSize(extents[size_t(config.tiled)]);
    config.block = chooseBlock(extent, perElement, shared > 1);
    iterations = iterations * extent.ceilDiv(config.block);
  }
  Expr scratch = placeLocalBuffers(kernel).scratch;
  if (config.ordered >= 0)
    scratch = findChosenPoints(cast<loop::ReductionOp>(nodes.front()))->getBytes(loop::getDomain(nodes.front()));
  return {.iterations = iterations,
          .grain = chooseGrain(context, nodes, config, shared),
          .scratch = scratch,
          .config = config.toAttribute(context)};
}
