//===- GpuPlan.cpp - how a kernel is laid out over threads ----------------===//
//
// Two layouts cover what is not a template.
//
//   points   one thread for each point of the spread dims (or a few adjacent ones, where that makes accesses of 16
//            bytes); what is left of a node's domain are loops of the thread. A pointwise node spreads its whole
//            domain, a reduction its kept dims: good if neighbours along a kept dim lie side by side in memory.
//   rows     the threads of a row share each node: they stride over a pointwise node's own dims, and a reduction is
//            combined through shuffles and shared memory. Good for softmax, layer normalisation, sums and running sums
//            along the innermost dim. A row of one warp needs no barrier, and a block holds several.
//
// Buffers of the kernel's own are a thread's (points; one value a row, which all its threads compute), or the registers
// of those that use them (RowBuffers.cpp), or lie in shared memory; a row whose size is not known, or too large for
// that, has its part of a scratch buffer in global memory.
//
// A row is cut into steps of 16 bytes. A thread takes up to 32 elements, in steps that are all under way at once: a row
// of 1024 is one warp's, which waits for nobody. Longer rows have as many threads as that makes, at most 256, or 1024
// if rows are few.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuPlan.h"
#include "codegen/common/ConflictParts.h"
#include "codegen/gpu/AtomicScatter.h"
#include "codegen/gpu/DeviceShape.h"
#include "codegen/gpu/GpuTemplates.h"
#include "codegen/gpu/GpuTuning.h"
#include "codegen/gpu/LaneAnalysis.h"
#include "codegen/gpu/LibraryCall.h"
#include "codegen/gpu/MergeSort.h"
#include "codegen/gpu/MmaAttention.h"
#include "codegen/gpu/OwnedScatter.h"
#include "codegen/gpu/RowBuffers.h"
#include "codegen/gpu/SortedScatter.h"
#include "codegen/gpu/SplitReduction.h"
#include "codegen/gpu/TeamScan.h"
#include "ir/loop/Horizontal.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t blockThreads = 256;
static constexpr int64_t maxBlockThreads = 1024;
static constexpr int64_t threadBytes = 512;      // of a thread's own buffers: they should become registers
static constexpr int64_t sharedBytes = 40 << 10; // of a block: of 48 KB without opting in; reductions need some
static constexpr int64_t elementsOfThread = 32;  // of a row: what fits in registers
static constexpr int64_t mostRows = 8;           // of a block, one a warp
static constexpr int64_t serialPoints = 16;      // of a node's own domain that one thread takes in a loop

DictionaryAttr GpuConfig::toAttribute(MLIRContext *context) const {
  Builder b(context);
  auto number = [&](StringRef name, int64_t value) { return b.getNamedAttr(name, b.getI64IntegerAttr(value)); };
  return b.getDictionaryAttr({b.getNamedAttr("layout", b.getStringAttr(isRows ? "rows" : "points")),
                              number("lanes", lanes), number("rows", rows), number("spread", spread),
                              number("threads", threads)});
}

GpuConfig GpuConfig::fromAttribute(DictionaryAttr config) {
  auto number = [&](StringRef name) { return config.getAs<IntegerAttr>(name).getInt(); };
  return {.isRows = config.getAs<StringAttr>("layout") == "rows",
          .spread = number("spread"),
          .threads = number("threads"),
          .rows = number("rows"),
          .lanes = number("lanes")};
}

SmallVector<Operation *> gpu::getNodes(loop::KernelOp kernel) {
  SmallVector<Operation *> nodes;
  for (Operation &op : kernel.getBlock())
    if (loop::isNode(&op))
      nodes.push_back(&op);
  return nodes;
}

bool gpu::checksIndices(loop::KernelOp kernel) {
  return kernel.walk([](loop::CheckIndexOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

//===----------------------------------------------------------------------===//
// What there is no code for
//===----------------------------------------------------------------------===//

static bool usesDims(Expr extent) {
  return extent.usesAny([](StringRef name) {
    unsigned number;
    return name.consume_front("d") && !name.getAsInteger(10, number);
  });
}

// Extents in front of the first that depends on another dim: what threads may divide among themselves.
static int64_t rectangularDims(Operation *node) {
  SmallVector<Expr> domain = loop::getDomain(node);
  return int64_t(llvm::find_if(domain, usesDims) - domain.begin());
}

static bool isUneven(Operation *node) { return rectangularDims(node) < int64_t(loop::getDomain(node).size()); }

std::optional<std::string> gpu::whyUnsupported(loop::KernelOp kernel) {
  SmallVector<Operation *> nodes = getNodes(kernel);
  for (Operation *node : nodes) {
    if (!isa<loop::PointwiseOp, loop::ReductionOp, loop::ScanOp, loop::ScatterOp, loop::SortOp, loop::GreedyOp,
             loop::ContractionOp, loop::AttentionOp>(node))
      return node->getName().stripDialect().str() + " nodes";
    if (isUneven(node) && (nodes.size() > 1 || !isa<loop::PointwiseOp, loop::ReductionOp, loop::ScatterOp>(node)))
      return "domains in which one extent depends on another dim, in fused kernels";
    if (nodes.size() > 1 && isa<loop::ContractionOp, loop::AttentionOp>(node))
      return "matrix products and attention among other nodes of a kernel";
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Local memory
//===----------------------------------------------------------------------===//

static std::optional<Expr> workSpaceBytes(Operation *node) {
  constexpr int64_t sortedBytes = 16; // a key and its index
  if (isa<loop::SortOp>(node))
    return loop::getDomain(node).back() * sortedBytes;
  if (auto greedy = dyn_cast<loop::GreedyOp>(node))
    return codegen::ConflictParts(greedy).getBytes(loop::getDomain(node).back());
  return std::nullopt;
}

LocalMemory gpu::placeLocalBuffers(loop::KernelOp kernel, const GpuConfig &config) {
  LocalMemory memory;
  memory.scratchBytes = Expr::constant(kernel.getContext(), 0);
  for (auto buffer : kernel.getBlock().getOps<loop::BufferOp>()) {
    auto type = cast<loop::BufferType>(buffer.getResult().getType());
    Expr bytes = (type.getElementCount() * type.getElementBytes()).ceilDiv(16) * int64_t(16);
    LocalBuffer local{buffer, LocalBuffer::Place::Scratch, memory.scratchBytes};
    std::optional<int64_t> known = bytes.asConstant();
    if (!config.isRows || isRowValue(buffer, config)) {
      local.place = LocalBuffer::Place::Thread;
    } else if (countKept(buffer, config)) {
      local.place = LocalBuffer::Place::Registers;
    } else if (known && (memory.sharedBytes + *known) * config.rows <= sharedBytes) {
      local.place = LocalBuffer::Place::Shared;
      local.offset = Expr::constant(kernel.getContext(), memory.sharedBytes);
      memory.sharedBytes += *known;
    } else {
      memory.scratchBytes = memory.scratchBytes + bytes;
    }
    memory.buffers.push_back(local);
  }
  for (Operation *node : getNodes(kernel))
    if (std::optional<Expr> bytes = workSpaceBytes(node)) {
      memory.workSpaces.push_back({node, memory.scratchBytes});
      memory.scratchBytes = memory.scratchBytes + *bytes;
    }
  return memory;
}

// A thread may have copies of its own of all local buffers. Registers have no index that a run tells.
static bool fitsThread(loop::KernelOp kernel) {
  auto isIndirect = [](Operation *user) {
    auto load = dyn_cast<loop::LoadOp>(user);
    return load && !load.getIndexOperands().empty();
  };
  int64_t bytes = 0;
  for (auto buffer : kernel.getBlock().getOps<loop::BufferOp>()) {
    if (llvm::any_of(buffer.getResult().getUsers(), isIndirect))
      return false;
    auto type = cast<loop::BufferType>(buffer.getResult().getType());
    std::optional<int64_t> count = type.getElementCount().asConstant();
    if (!count)
      return false;
    bytes += *count * type.getElementBytes();
  }
  return bytes <= threadBytes;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

// Points of the dims from `first` on; nothing if that is not a constant.
static std::optional<int64_t> countFrom(Operation *node, size_t first) {
  int64_t count = 1;
  SmallVector<Expr> domain = loop::getDomain(node);
  for (Expr extent : ArrayRef(domain).drop_front(std::min(first, domain.size()))) {
    std::optional<int64_t> known = extent.asConstant();
    if (!known)
      return std::nullopt;
    count *= std::max<int64_t>(*known, 1);
  }
  return count;
}

static int64_t keptDims(Operation *node) {
  auto reduction = dyn_cast<loop::ReductionOp>(node);
  return int64_t(loop::getDomain(node).size()) - (reduction ? int64_t(reduction.getReduced()) : 0);
}

static int64_t independentDims(Operation *node) { return int64_t(cast<loop::ScatterOp>(node).getIndependent()); }

static GpuConfig planPoints(Operation *node, int64_t spread, int64_t mostLanes = 16) {
  GpuConfig config{.spread = spread, .threads = blockThreads};
  if (isa<loop::PointwiseOp>(node) && spread > 0 && mostLanes > 1)
    config.lanes = LaneAnalysis(node, spread - 1).chooseLanes();
  return config;
}

// Steps of a row that its threads share at a time; nothing if they are not a constant.
static std::optional<int64_t> stepsOfRow(Operation *node, int64_t spread) {
  std::optional<int64_t> count = countFrom(node, size_t(spread));
  int64_t rank = int64_t(loop::getDomain(node).size());
  if (!count || rank <= spread)
    return count;
  return llvm::divideCeil(*count, lanesOfRow(node));
}

static GpuConfig planRows(ArrayRef<Operation *> nodes, int64_t spread) {
  GpuConfig config{.isRows = true, .spread = spread, .threads = blockThreads};
  std::optional<int64_t> rows = 1, points = 1, steps = 1;
  SmallVector<Expr> domain = loop::getDomain(nodes.front());
  for (Expr extent : ArrayRef(domain).take_front(size_t(spread))) {
    std::optional<int64_t> known = extent.asConstant();
    rows = rows && known ? std::optional(*rows * *known) : std::nullopt;
  }
  auto most = [](std::optional<int64_t> a, std::optional<int64_t> b) {
    return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
  };
  for (Operation *node : nodes) {
    points = most(points, countFrom(node, size_t(spread)));
    steps = most(steps, stepsOfRow(node, spread));
  }
  if (!points || !steps)
    return config;
  constexpr int64_t warps = 8; // of rows, that keep a multiprocessor busy
  bool areMany = rows && *rows >= warps * multiprocessors, areFew = rows && *rows < multiprocessors;
  int64_t threads = areMany ? llvm::divideCeil(*points, elementsOfThread) : *steps;
  config.threads = std::clamp<int64_t>(int64_t(llvm::PowerOf2Ceil(uint64_t(threads))), warpSize,
                                       areFew ? maxBlockThreads : blockThreads);
  config.threads = tunedPower(nodes.front(), tuned::rowThreads, warpSize, maxBlockThreads, config.threads);
  if (config.threads == warpSize) {
    config.rows = !rows ? 4 : areMany ? 8 : *rows >= 4 * multiprocessors ? 4 : 1;
    config.rows = tunedPower(nodes.front(), tuned::blockRows, 1, mostRows, config.rows);
  }
  return config;
}

// A row's tiles are in order, so only its comparisons keep threads busy.
static GpuConfig planGreedy(Operation *node, int64_t spread) {
  int64_t length = loop::getDomain(node).back().asConstant().value_or(blockThreads);
  int64_t threads = int64_t(llvm::PowerOf2Ceil(uint64_t(std::max<int64_t>(length, 1))));
  return {.isRows = true, .spread = spread, .threads = std::clamp<int64_t>(threads, warpSize, blockThreads)};
}

// A block a row: half as many comparisons at a time as there are elements.
static GpuConfig planSort(Operation *node, int64_t spread) {
  int64_t length = loop::getDomain(node).back().asConstant().value_or(maxBlockThreads);
  int64_t threads = int64_t(llvm::PowerOf2Ceil(uint64_t(std::max<int64_t>(length / 2, 1))));
  return {.isRows = true, .spread = spread, .threads = std::clamp<int64_t>(threads, warpSize, maxBlockThreads)};
}

// A query is a row, and a warp's; of few queries, a block's, whose warps share the keys.
static GpuConfig planQueries(Operation *node) {
  SmallVector<Expr> domain = loop::getDomain(node);
  int64_t spread = int64_t(domain.size()) - 3, queries = 1;
  for (Expr extent : ArrayRef(domain).take_front(size_t(spread)))
    queries *= std::max<int64_t>(extent.asConstant().value_or(1), 1);
  if (!domain[size_t(spread) - 1].isConstant())
    queries *= 4 * multiprocessors;
  int64_t groups = llvm::divideCeil(domain[size_t(spread)].asConstant().value_or(maxBlockThreads), warpSize);
  if (queries >= 4 * multiprocessors || groups <= 1)
    return {.isRows = true, .spread = spread, .threads = warpSize, .rows = queries < multiprocessors ? 1 : 4};
  int64_t warps = std::min<int64_t>(int64_t(llvm::PowerOf2Ceil(uint64_t(groups))), blockThreads / warpSize);
  return {.isRows = true, .spread = spread, .threads = warps * warpSize};
}

static bool hasLocals(loop::KernelOp kernel) { return !kernel.getBlock().getOps<loop::BufferOp>().empty(); }

static GpuConfig choose(loop::KernelOp kernel) {
  SmallVector<Operation *> nodes = getNodes(kernel);
  int64_t shared = int64_t(kernel.getParallel());
  if (nodes.empty())
    return {};
  Operation *node = nodes.front();
  int64_t rank = int64_t(loop::getDomain(node).size());
  if (isa<loop::AttentionOp>(node))
    return planQueries(node);
  if (isa<loop::SortOp>(node) && nodes.size() == 1)
    return planSort(node, rank - 1);
  if (isa<loop::GreedyOp>(node) && nodes.size() == 1)
    return planGreedy(node, rank - 1);
  if (nodes.size() == 1 && !hasLocals(kernel)) {
    if (int64_t free = rectangularDims(node); free < rank)
      return planPoints(node, std::min(free, isa<loop::ScatterOp>(node) ? independentDims(node) : keptDims(node)), 1);
    if (isa<loop::ScatterOp>(node))
      return planPoints(node, independentDims(node));
    if (!isa<loop::ReductionOp, loop::ScanOp>(node))
      return planPoints(node, rank);
    auto scan = dyn_cast<loop::ScanOp>(node);
    int64_t kept = scan ? rank - 1 : keptDims(node);
    std::optional<int64_t> own = countFrom(node, size_t(kept));
    bool isLong = (!own || *own >= 2 * warpSize) && LaneAnalysis(node, rank - 1).anyContiguous();
    return isLong && (!scan || mayShareLine(scan)) ? planRows(nodes, kept) : planPoints(node, kept);
  }
  bool isSerial = fitsThread(kernel) && llvm::all_of(nodes, [&](Operation *each) {
                    std::optional<int64_t> own = countFrom(each, size_t(shared));
                    return own && *own <= serialPoints && !isa<loop::GreedyOp>(each);
                  });
  return isSerial ? planPoints(node, shared, 1) : planRows(nodes, shared); // local buffers are of one point
}

/// Of points, what was found to be faster: fewer of them a thread, another size of blocks.
static void useTuned(loop::KernelOp kernel, GpuConfig &config) {
  if (config.isRows)
    return;
  config.lanes = tunedPower(kernel, tuned::lanes, 1, config.lanes, config.lanes);
  config.threads = tunedPower(kernel, tuned::blockThreads, 2 * warpSize, maxBlockThreads, config.threads);
}

// Threads (points) or rows in all.
static Expr countParts(Operation *node, const GpuConfig &config) {
  SmallVector<Expr> extents = loop::getDomain(node);
  extents.truncate(size_t(config.spread));
  if (config.lanes > 1)
    extents.back() = extents.back().ceilDiv(config.lanes);
  return product(node->getContext(), extents);
}

GpuConfig gpu::planHorizontal(Operation *node) { return planPoints(node, int64_t(loop::getDomain(node).size())); }

Expr gpu::countBlocks(Operation *node, const GpuConfig &config) {
  return countParts(node, config).ceilDiv(config.threads);
}

void gpu::setPlan(loop::KernelOp kernel, const TemplatePlan &plan) {
  MLIRContext *context = kernel.getContext();
  NamedAttrList attributes(GpuConfig{.threads = plan.threads}.toAttribute(context));
  attributes.set("layout", StringAttr::get(context, plan.layout));
  attributes.set(plan.name, plan.tile);
  if (plan.weights)
    attributes.set("weights", UnitAttr::get(context));
  kernel.setIterationsAttr(plan.blocks);
  kernel.setGrainAttr(Expr::constant(context, 1));
  kernel.setScratchAttr(Expr::constant(context, 0));
  kernel.setConfigAttr(attributes.getDictionary(context));
}

static void planCode(loop::KernelOp kernel) {
  MLIRContext *context = kernel.getContext();
  auto contractions = kernel.getBlock().getOps<loop::ContractionOp>();
  if (!contractions.empty() && planContraction(kernel, *contractions.begin()))
    return;
  SmallVector<Operation *> nodes = getNodes(kernel);
  auto attention = nodes.size() == 1 ? dyn_cast<loop::AttentionOp>(nodes.front()) : loop::AttentionOp();
  if (attention && planMmaAttention(kernel, attention))
    return;
  auto reduction = nodes.size() == 1 ? dyn_cast<loop::ReductionOp>(nodes.front()) : loop::ReductionOp();
  if (reduction && !hasLocals(kernel) && !isUneven(reduction) && planSplitReduction(kernel, reduction))
    return;
  auto scan = nodes.size() == 1 ? dyn_cast<loop::ScanOp>(nodes.front()) : loop::ScanOp();
  if (scan && !hasLocals(kernel) && !isUneven(scan) && planSplitScan(kernel, scan))
    return;
  auto sort = nodes.size() == 1 ? dyn_cast<loop::SortOp>(nodes.front()) : loop::SortOp();
  if (sort && !hasLocals(kernel) && !isUneven(sort) && planMergeSort(kernel, sort))
    return;
  auto scatter = nodes.size() == 1 ? dyn_cast<loop::ScatterOp>(nodes.front()) : loop::ScatterOp();
  if (scatter && !hasLocals(kernel) && !isUneven(scatter) &&
      (planAtomicScatter(kernel, scatter) || planLastScatter(kernel, scatter) || planSortedScatter(kernel, scatter) ||
       planOwnedScatter(kernel, scatter)))
    return;
  bool isSideBySide = loop::isHorizontal(kernel);
  GpuConfig config = isSideBySide ? GpuConfig{.threads = blockThreads} : choose(kernel);
  if (!isSideBySide)
    useTuned(kernel, config);
  Expr parts = nodes.empty() ? Expr::constant(context, 1) : countParts(nodes.front(), config), blocks;
  if (isSideBySide) {
    blocks = Expr::constant(context, 0);
    for (Operation *node : nodes)
      blocks = blocks + countBlocks(node, planHorizontal(node));
  } else {
    blocks = parts.ceilDiv(config.isRows ? config.rows : config.threads);
  }
  kernel.setIterationsAttr(blocks);
  kernel.setGrainAttr(Expr::constant(context, 1));
  kernel.setScratchAttr(placeLocalBuffers(kernel, config).scratchBytes * parts);
  kernel.setConfigAttr(config.toAttribute(context));
}

/// Between which values each symbol is at all launches of the kernel; nothing for a kernel alone.
static SmallVector<ExprRange> findSymbolRanges(loop::KernelOp kernel) {
  SmallVector<ExprRange> all;
  auto module = kernel->getParentOfType<ModuleOp>();
  if (!module || kernel.getSymbols().empty())
    return all;
  for (auto program : module.getOps<loop::ProgramOp>()) {
    SymbolRanges ranges = prim::getSymbolRanges(program.getSymbols());
    program.walk([&](loop::LaunchOp launch) {
      if (launch.getKernel() != kernel.getSymName())
        return;
      SmallVector<ExprRange> own;
      for (Expr value : prim::getExprs(launch.getSymbols()))
        own.push_back(value.range(ranges));
      if (all.empty())
        all = own;
      for (auto [range, other] : llvm::zip_equal(all, own))
        range = {std::min(range.min, other.min), std::max(range.max, other.max)};
    });
  }
  return all;
}

// A kernel is shared between programs, so that it is no part of its content what each of them says of sizes.
static void setBounds(loop::KernelOp kernel) {
  SmallVector<int64_t> bounds;
  for (const ExprRange &range : findSymbolRanges(kernel))
    bounds.append({range.min, range.max});
  if (bounds.empty())
    return;
  NamedAttrList config(kernel.getConfigAttr());
  config.set("bounds", DenseI64ArrayAttr::get(kernel.getContext(), bounds));
  kernel.setConfigAttr(config.getDictionary(kernel.getContext()));
}

void gpu::planKernel(loop::KernelOp kernel) {
  planCode(kernel);
  planLibraryCall(kernel);
  setBounds(kernel);
}
