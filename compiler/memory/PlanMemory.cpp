//===- PlanMemory.cpp - offsets in one arena ------------------------------===//
//
// Every intermediate buffer lives from the launch that first writes it to the one that
// last reads it. Two buffers may share bytes if their lives do not overlap; the
// problem is then to pack rectangles (life x size) into a strip of least height.
//
// 1. In-place reuse. Where a launch reads buffer A for the last time and writes B, and
//    touches each element of A only before it writes the same element of B, the two are
//    one block. Blocks, not buffers, are placed.
// 2. Placement. Blocks of constant sizes go where PlaceBlocks.cpp finds room. With symbolic
//    sizes blocks share slots, the largest at the hint first: a block takes a
//    slot of which no other block is alive, if possible one that holds its very size; a
//    slot is as large as the largest of its blocks, and slots lie one behind
//    the other. (Stacking each block on all that it conflicts with packs tighter, but
//    its offsets are nested maxima: 74 MB of text for a detector with free height
//    and width. Sums of flat maxima stay small.)
//
// The lower bound is the largest sum of sizes that are live at one moment, at the hint.
//
//===----------------------------------------------------------------------===//

#include "compiler/memory/Passes.h"
#include "compiler/memory/PlaceBlocks.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_PLANMEMORY
#include "compiler/memory/Passes.h.inc"
} // namespace ptc

namespace {

/// Offsets are multiples of a cache line, so that vectors never straddle two buffers.
constexpr int64_t alignment = 64;

/// Buffers that share bytes by in-place reuse.
struct MemoryBlock {
  SmallVector<BufferOp> buffers;
  Life life;
  Expr size; // bytes, a multiple of the alignment
  int64_t sizeAtHint = 0;
  Expr offset;
};

//===----------------------------------------------------------------------===//
// In-place reuse
//===----------------------------------------------------------------------===//

/// Accesses to one argument of a kernel.
struct ArgumentAccess {
  Operation *op;
  Operation *node;
  Expr address;
  bool isStore, isInEpilogue;
};

Operation *getNode(Operation *op) {
  while (!isNode(op))
    op = op->getParentOp();
  return op;
}

std::optional<SmallVector<ArgumentAccess>> getAccesses(Value argument) {
  SmallVector<ArgumentAccess> accesses;
  for (Operation *user : argument.getUsers()) {
    auto indices = user->getAttrOfType<ArrayAttr>("indices");
    bool isDirect = isa<LoadOp, StoreOp>(user) && indices && indices.size() == 1;
    if (!isDirect)
      return std::nullopt;
    auto load = dyn_cast<LoadOp>(user);
    auto store = dyn_cast<StoreOp>(user);
    if (load ? !load.getIndexOperands().empty() : (!store.getIndexOperands().empty() || store.getCombine()))
      return std::nullopt;
    Operation *node = getNode(user);
    bool isInEpilogue = true;
    if (auto contraction = dyn_cast<ContractionOp>(node))
      isInEpilogue = contraction.getEpilogue().isAncestor(user->getParentRegion());
    if (auto attention = dyn_cast<AttentionOp>(node))
      isInEpilogue = attention.getEpilogue().isAncestor(user->getParentRegion());
    accesses.push_back({user, node, prim::getExprs(indices)[0], bool(store), isInEpilogue});
  }
  return accesses;
}

/// All operations of the node that `op` depends on.
void collectSources(Operation *op, SetVector<Operation *> &sources) {
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp(); source && sources.insert(source))
      collectSources(source, sources);
}

/// Whether nothing needs the element that `load` reads once `store`, in the same node, has
/// written it. Order says so in a node that runs its body once. One with reductions runs
/// a pass for each and repeats the loads that a pass needs: there the store must come after
/// all reductions that the load feeds, and be the one store of what else is made of it.
bool isReadBefore(Operation *load, Operation *store, Operation *node) {
  if (load->getBlock() != store->getBlock() || !load->isBeforeInBlock(store))
    return false;
  if (!isa<ReductionOp>(node))
    return true;
  SetVector<Operation *> sources, reached;
  collectSources(store, sources);
  reached.insert(load);
  for (unsigned next = 0; next < reached.size(); ++next)
    for (Operation *user : reached[next]->getUsers()) {
      bool isReduction = isa<ReduceOp, ArgReduceOp>(user);
      if (isReduction ? !sources.contains(user) : isa<StoreOp>(user) && user != store)
        return false;
      if (!isReduction)
        reached.insert(user);
    }
  return true;
}

/// Whether `written` may lie where `read` does: each element is read at the point that
/// writes it and before that, in that node or an earlier one of the same kernel.
bool mayReuse(BlockArgument read, BlockArgument written) {
  if (cast<BufferType>(read.getType()).getElementBytes() != cast<BufferType>(written.getType()).getElementBytes())
    return false;
  auto loads = getAccesses(read), stores = getAccesses(written);
  if (!loads || !stores || loads->empty() || stores->empty())
    return false;
  Operation *node = stores->front().node;
  if (isa<ScatterOp, SortOp, ScanOp>(node))
    return false;
  Expr address = stores->front().address;
  for (const ArgumentAccess &access : *stores)
    if (!access.isStore || access.node != node || access.address != address || stores->size() != 1)
      return false;
  for (const ArgumentAccess &access : *loads) {
    if (access.isStore || access.address != address || !access.isInEpilogue)
      return false;
    if (access.node == node ? !isReadBefore(access.op, stores->front().op, node) : !access.node->isBeforeInBlock(node))
      return false;
    if (isa<ScatterOp, SortOp, ScanOp>(access.node))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The plan of one program
//===----------------------------------------------------------------------===//

class MemoryPlan {
public:
  MemoryPlan(ProgramOp program)
      : program(program), context(program.getContext()), symbols(prim::getSymbolRanges(program.getSymbols())),
        hints(prim::getSymbolHints(program.getSymbols())), kernels(program->getParentOfType<ModuleOp>()),
        arena(Expr::constant(context, 0)) {}

  void run() {
    numberOps();
    collectBlocks();
    reuseInPlace();
    place();
    emit();
  }

private:
  void numberOps() {
    unsigned time = 0;
    program.walk<WalkOrder::PreOrder>([&](Operation *op) { times[op] = time++; });
  }

  void collectBlocks() {
    program.walk<WalkOrder::PreOrder>([&](BufferOp buffer) {
      if (buffer->use_empty()) {
        unused.push_back(buffer);
        return;
      }
      Life life{~0u, 0};
      for (Operation *user : buffer->getUsers()) {
        life.begin = std::min(life.begin, times.at(user));
        life.end = std::max(life.end, times.at(user));
      }
      BufferType type = buffer.getResult().getType();
      Expr bytes = type.getElementCount() * type.getElementBytes();
      Expr size = (bytes.ceilDiv(alignment) * alignment).simplify(symbols);
      blockOf[buffer] = blocks.size();
      blocks.push_back({{buffer}, life, size, size.evaluate(hints).value_or(0), Expr()});
    });
  }

  void reuseInPlace() {
    program.walk<WalkOrder::PreOrder>([&](LaunchOp launch) {
      auto kernel = kernels.lookup<KernelOp>(launch.getKernel());
      unsigned now = times.at(launch);
      for (int64_t written : kernel.getArgumentsWritten()) {
        auto to = launch.getBuffers()[written].getDefiningOp<BufferOp>();
        if (!to || blocks[blockOf.at(to)].life.begin != now || blocks[blockOf.at(to)].buffers.size() != 1)
          continue;
        tryReuse(launch, kernel, to, written);
      }
    });
  }

  void tryReuse(LaunchOp launch, KernelOp kernel, BufferOp to, unsigned written) {
    MemoryBlock &target = blocks[blockOf.at(to)];
    for (auto [index, buffer] : llvm::enumerate(launch.getBuffers())) {
      auto from = buffer.getDefiningOp<BufferOp>();
      if (!from || from == to || index == written)
        continue;
      MemoryBlock &source = blocks[blockOf.at(from)];
      // Within one region: a branch that is not taken must not end a life.
      if (&source == &target || source.life.end != target.life.begin || source.size != target.size ||
          from->getBlock() != to->getBlock() || launch->getBlock() != from->getBlock())
        continue;
      if (llvm::count(launch.getBuffers(), buffer) != 1 ||
          !mayReuse(kernel.getBlock().getArgument(index), kernel.getBlock().getArgument(written)))
        continue;
      source.buffers.push_back(to);
      source.life.end = target.life.end;
      target.buffers.clear();
      blockOf[to] = blockOf[from];
      return;
    }
  }

  void place() {
    SmallVector<MemoryBlock *> order;
    bool isStatic = true;
    for (MemoryBlock &block : blocks)
      if (!block.buffers.empty()) {
        order.push_back(&block);
        isStatic &= block.size.isConstant();
      }
    lowerBound = getLowerBound(getSizedLives(order));
    if (isStatic)
      placeInGaps(order);
    else
      placeInSlots(order);
  }

  SmallVector<SizedLife> getSizedLives(ArrayRef<MemoryBlock *> order) const {
    return llvm::map_to_vector(order,
                               [](const MemoryBlock *block) { return SizedLife{block->life, block->sizeAtHint}; });
  }

  void placeInGaps(ArrayRef<MemoryBlock *> order) {
    Placement placement = placeBlocks(getSizedLives(order));
    for (auto [block, offset] : llvm::zip_equal(order, placement.offsets))
      block->offset = Expr::constant(context, offset);
    arena = Expr::constant(context, placement.height);
  }

  struct Slot {
    SmallVector<MemoryBlock *> members;
    Expr size;
  };

  void placeInSlots(SmallVector<MemoryBlock *> order) {
    llvm::stable_sort(order, [](const MemoryBlock *a, const MemoryBlock *b) { return a->sizeAtHint > b->sizeAtHint; });
    SmallVector<Slot> slots;
    for (MemoryBlock *block : order) {
      Slot *best = nullptr;
      for (Slot &slot : slots) {
        if (llvm::any_of(slot.members, [&](MemoryBlock *other) { return other->life.overlaps(block->life); }))
          continue;
        bool holdsSize = llvm::any_of(slot.members, [&](MemoryBlock *other) { return other->size == block->size; });
        if (!best || holdsSize)
          best = &slot;
        if (holdsSize)
          break;
      }
      if (!best)
        best = &slots.emplace_back(Slot{{}, block->size});
      best->members.push_back(block);
      best->size = Expr::max(best->size, block->size).simplify(symbols);
    }
    for (const Slot &slot : slots) {
      for (MemoryBlock *block : slot.members)
        block->offset = arena;
      arena = (arena + slot.size).simplify(symbols);
    }
  }

  void emit() {
    program.setArenaAttr(arena);
    program.setLowerBoundAttr(Expr::constant(context, lowerBound));
    for (MemoryBlock &block : blocks)
      for (BufferOp buffer : block.buffers) {
        OpBuilder b(buffer);
        auto at = AtOp::create(b, buffer.getLoc(), buffer.getResult().getType(), ExprAttr(block.offset));
        buffer.replaceAllUsesWith(at.getResult());
        buffer.erase();
      }
    for (BufferOp buffer : unused)
      buffer.erase();
  }

  ProgramOp program;
  MLIRContext *context;
  SymbolRanges symbols;
  SymbolValues hints;
  SymbolTable kernels;
  Expr arena;             // bytes
  int64_t lowerBound = 0; // bytes
  llvm::DenseMap<Operation *, unsigned> times;
  std::vector<MemoryBlock> blocks;
  llvm::DenseMap<Operation *, unsigned> blockOf;
  SmallVector<BufferOp> unused;
};

struct PlanMemory : ptc::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      MemoryPlan(program).run();
  }
};

} // namespace
