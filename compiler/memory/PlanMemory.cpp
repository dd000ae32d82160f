//===- PlanMemory.cpp - offsets in one arena ------------------------------===//
//
// Every intermediate buffer lives from the launch that first writes it to the one that
// last reads it; one that a loop uses and that is declared outside of it for the whole loop (BufferUses.h). Two buffers
// may share bytes if their lives do not overlap; the problem is then to pack rectangles (life x size) into a strip of
// least height.
//
// 1. In-place reuse. Where a launch reads buffer A for the last time and writes B, and
//    touches each element of A only before it writes the same element of B (InPlaceReuse.cpp), the two are
//    one block. Blocks, not buffers, are placed. So it is where B is an output that nothing has touched yet: the block
//    of A lies in the output's own memory then, and takes none of the arena.
// 2. Placement. Sizes that are multiples of one product of symbols (of 1 if they are constants, of
//    `batch` in most models) are placed as if they were constants (PlaceBlocks.cpp), and each such
//    class of blocks lies behind the other. Where classes live at different times that wastes
//    memory: blocks of constant sizes are tried as multiples of the largest class's product, in whose gaps they
//    may lie then, and shared slots (PlaceInSlots.cpp), and what needs least at the hint is taken.
//
// A size that the program learns while it runs is planned at the most it can be (BoundSymbols::getMost); if nothing
// bounds it the block is no part of the arena but grows in memory of the context (loop.grow).
//
// The lower bound is the largest sum of sizes that are live at one moment, at the hint.
//
//===----------------------------------------------------------------------===//

#include "compiler/memory/BufferUses.h"
#include "compiler/memory/InPlaceReuse.h"
#include "compiler/memory/Passes.h"
#include "compiler/memory/PlaceBlocks.h"
#include "compiler/memory/PlaceInSlots.h"
#include "llvm/ADT/MapVector.h"

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
  Expr size;  // bytes, a multiple of the alignment: `units` of `scale`; of what grows, as many as there are
  Expr scale; // the same in all blocks of a class
  int64_t units = 0;
  int64_t sizeAtHint = 0;
  Expr offset;
  Value output;       // in whose memory it lies; null: in the arena
  bool grows = false; // no bound of its size is known before the run

  bool isInArena() const { return !buffers.empty() && !grows && !output; }
};

//===----------------------------------------------------------------------===//
// The plan of one program
//===----------------------------------------------------------------------===//

class MemoryPlan {
public:
  MemoryPlan(ProgramOp program)
      : program(program), context(program.getContext()), symbols(prim::getSymbolRanges(program.getSymbols())),
        hints(prim::getSymbolHints(program.getSymbols())), boundSymbols(program),
        kernels(program->getParentOfType<ModuleOp>()), arena(Expr::constant(context, 0)) {}

  void run() {
    numberOps();
    collectBlocks();
    reuseInPlace();
    place();
    placeGrowing();
    announceOutputs();
    emit();
  }

private:
  void numberOps() {
    program.walk<WalkOrder::PreOrder>([&](Operation *op) {
      times[op] = unsigned(launchesBefore.size());
      launchesBefore.push_back(launches);
      launches += isa<LaunchOp>(op);
    });
  }

  void collectBlocks() {
    program.walk<WalkOrder::PreOrder>([&](BufferOp buffer) {
      Life life{~0u, 0};
      for (UseSpan use : getUses(buffer.getResult())) {
        life.begin = std::min(life.begin, times.at(use.first));
        life.end = std::max(life.end, times.at(use.last));
      }
      if (life.begin > life.end) {
        unused.push_back(buffer);
        return;
      }
      BufferType type = buffer.getResult().getType();
      Expr bytes = type.getElementCount() * type.getElementBytes(), most = boundSymbols.getMost(bytes);
      blockOf[buffer] = blocks.size();
      endOf[buffer] = life.end;
      if (!most || llvm::any_of(buffer->getUsers(), [](Operation *user) { return isa<RegrowOp>(user); })) {
        blocks.push_back({.buffers = {buffer}, .life = life, .size = bytes, .grows = true});
        return;
      }
      if (most != bytes) // of a difference: no less than nothing
        most = Expr::max(most, Expr::constant(context, 0));
      auto [units, scale] = splitSize(most);
      Expr size = scale * units;
      blocks.push_back({{buffer}, life, size, scale, units, size.evaluate(hints).value_or(0), Expr()});
    });
  }

  /// `bytes`, rounded up to whole lines, as a number of times a product of symbols. A sum is one of itself, and so
  /// is what would grow much if its number were rounded.
  std::pair<int64_t, Expr> splitSize(Expr bytes) {
    bytes = bytes.simplify(symbols);
    if (bytes.isConstant())
      return {int64_t(llvm::alignTo(uint64_t(bytes.getValue()), alignment)), Expr::constant(context, 1)};
    if (bytes.getKind() == ExprKind::Mul && bytes.getOperands()[0].isConstant()) {
      int64_t units = bytes.getOperands()[0].getValue(), rounded = int64_t(llvm::alignTo(uint64_t(units), alignment));
      if (rounded - units <= units / 16)
        return {rounded, product(context, ArrayRef<Expr>(bytes.getOperands()).drop_front())};
    }
    return {1, (bytes.ceilDiv(alignment) * alignment).simplify(symbols)};
  }

  void reuseInPlace() {
    program.walk<WalkOrder::PreOrder>([&](LaunchOp launch) {
      auto kernel = kernels.lookup<KernelOp>(launch.getKernel());
      unsigned now = times.at(launch);
      llvm::SmallPtrSet<MemoryBlock *, 4> taken;
      for (int64_t written : kernel.getArgumentsWritten()) {
        Value to = launch.getBuffers()[written];
        if (auto buffer = to.getDefiningOp<BufferOp>()) {
          if (blocks[blockOf.at(buffer)].life.begin == now && blocks[blockOf.at(buffer)].buffers.size() == 1)
            tryReuse(launch, kernel, buffer, written, taken);
        } else if (startsOutput(to, now)) {
          tryOutput(launch, kernel, to, written, taken);
        }
      }
    });
  }

  /// The block of an operand that the launch is the last to read and that its result may lie over. `taken`: blocks that
  /// other results of this launch lie over. There is one result over each: nodes that run behind others may read all
  /// of them.
  MemoryBlock *findSource(LaunchOp launch, KernelOp kernel, unsigned written,
                          const llvm::SmallPtrSetImpl<MemoryBlock *> &taken,
                          llvm::function_ref<bool(const MemoryBlock &)> fits) {
    for (auto [index, buffer] : llvm::enumerate(launch.getBuffers())) {
      auto from = buffer.getDefiningOp<BufferOp>();
      // Within one region: a branch that is not taken must not end a life.
      if (!from || index == written || from->getBlock() != launch->getBlock())
        continue;
      MemoryBlock &source = blocks[blockOf.at(from)];
      if (!taken.contains(&source) && !source.grows && !source.output && source.life.end == times.at(launch) &&
          fits(source) && llvm::count(launch.getBuffers(), buffer) == 1 &&
          mayReuse(kernel.getBlock().getArgument(index), kernel.getBlock().getArgument(written)))
        return &source;
    }
    return nullptr;
  }

  void tryReuse(LaunchOp launch, KernelOp kernel, BufferOp to, unsigned written,
                llvm::SmallPtrSetImpl<MemoryBlock *> &taken) {
    MemoryBlock &target = blocks[blockOf.at(to)];
    if (target.grows || to->getBlock() != launch->getBlock())
      return;
    MemoryBlock *source = findSource(launch, kernel, written, taken, [&](const MemoryBlock &source) {
      return &source != &target && source.size == target.size;
    });
    if (!source)
      return;
    taken.insert(source);
    source->buffers.push_back(to);
    source->life.end = target.life.end;
    target.buffers.clear();
    blockOf[to] = unsigned(source - blocks.data());
  }

  void tryOutput(LaunchOp launch, KernelOp kernel, Value to, unsigned written,
                 llvm::SmallPtrSetImpl<MemoryBlock *> &taken) {
    MemoryBlock *source = findSource(launch, kernel, written, taken, [&](const MemoryBlock &source) {
      return llvm::all_of(source.buffers, [&](BufferOp buffer) {
        return buffer.getResult().getType() == to.getType() && isUsedByLaunches(buffer.getResult());
      });
    });
    if (!source)
      return;
    taken.insert(source);
    source->output = to;
  }

  /// Whether launches alone use the buffer, by way of views, too.
  static bool isUsedByLaunches(Value buffer) {
    return llvm::all_of(buffer.getUsers(), [](Operation *user) {
      return isa<LaunchOp>(user) || (isa<FlattenOp, PartOp>(user) && isUsedByLaunches(user->getResult(0)));
    });
  }

  /// Whether the buffer shows an output, or a part of one, that nothing touches before. It is no input besides, and its
  /// size is known from the start.
  bool startsOutput(Value buffer, unsigned now) {
    auto outputs = program.getOutputArgs();
    auto *output = llvm::find(outputs, skipViews(buffer));
    if (output == outputs.end() || !isUsedByLaunches(*output))
      return false;
    ArrayRef<int64_t> aliases = program.getAliases();
    for (size_t pair = 0; pair < aliases.size(); pair += 2)
      if (aliases[pair + 1] == output - outputs.begin())
        return false;
    return llvm::none_of(cast<BufferType>(output->getType()).getShape(),
                         [&](Expr dim) { return boundSymbols.uses(dim); }) &&
           llvm::all_of(getUses(*output), [&](UseSpan use) { return times.at(use.first) >= now; });
  }

  void place() {
    SmallVector<MemoryBlock *> order;
    SmallVector<SizedLife> lives;
    for (MemoryBlock &block : blocks)
      if (block.isInArena()) {
        order.push_back(&block);
        lives.push_back({block.life, block.sizeAtHint});
      }
    lowerBound = getLowerBound(lives);
    arena = placeInClasses(order);
    if (atHint(arena) <= lowerBound ||
        llvm::all_of(order, [](const MemoryBlock *block) { return block->size.isConstant(); }))
      return;
    placeConstantsInGaps(order);
    auto symbolic = llvm::map_to_vector(
        order, [](const MemoryBlock *block) { return SymbolicLife{block->life, block->size, block->sizeAtHint}; });
    SymbolicPlacement slots = placeInSlots(symbolic, symbols);
    if (atHint(slots.size) >= atHint(arena))
      return;
    arena = slots.size;
    for (auto [block, offset] : llvm::zip_equal(order, slots.offsets))
      block->offset = offset;
  }

  int64_t atHint(Expr size) const { return size.evaluate(hints).value_or(0); }

  /// Where that needs less at the hint, blocks of constant sizes become members of the class that has most bytes.
  void placeConstantsInGaps(ArrayRef<MemoryBlock *> order) {
    llvm::MapVector<Attribute, int64_t> bytes;
    for (const MemoryBlock *block : order)
      if (!block->scale.isConstant() && block->scale.range(symbols).min >= 1)
        bytes[block->scale] += block->sizeAtHint;
    if (bytes.empty())
      return;
    Expr scale = cast<ExprAttr>(llvm::max_element(bytes, llvm::less_second())->first);
    int64_t least = scale.range(symbols).min;
    auto joined = llvm::map_to_vector(order, [&](const MemoryBlock *block) {
      MemoryBlock member = *block;
      if (block->scale.isConstant()) {
        member.scale = scale;
        member.units = int64_t(llvm::alignTo(uint64_t(llvm::divideCeil(block->units, least)), alignment));
      }
      return member;
    });
    Expr size = placeInClasses(llvm::map_to_vector(joined, [](MemoryBlock &member) { return &member; }));
    if (atHint(size) >= atHint(arena))
      return;
    arena = size;
    for (auto [block, member] : llvm::zip_equal(order, joined))
      block->offset = member.offset;
  }

  /// The blocks of each scale in the gaps of a part of their own; returns the size of all parts.
  Expr placeInClasses(ArrayRef<MemoryBlock *> order) {
    llvm::MapVector<Attribute, SmallVector<MemoryBlock *>> classes;
    for (MemoryBlock *block : order)
      classes[block->scale].push_back(block);
    Expr end = Expr::constant(context, 0);
    for (auto &[attr, members] : classes) {
      auto lives =
          llvm::map_to_vector(members, [](const MemoryBlock *block) { return SizedLife{block->life, block->units}; });
      Placement placement = placeBlocks(lives);
      Expr scale = cast<ExprAttr>(attr);
      for (auto [block, offset] : llvm::zip_equal(members, placement.offsets))
        block->offset = (end + scale * offset).simplify(symbols);
      end = (end + scale * placement.height).simplify(symbols);
    }
    return end;
  }

  /// Slots of the context's memory: what is not alive at one time may share one.
  void placeGrowing() {
    std::vector<SmallVector<Life>> slots;
    for (MemoryBlock &block : blocks) {
      if (!block.grows)
        continue;
      auto slot = llvm::find_if(slots, [&](const auto &lives) {
        return llvm::none_of(lives, [&](const Life &life) { return life.overlaps(block.life); });
      });
      if (slot == slots.end())
        slot = slots.insert(slot, SmallVector<Life>());
      slot->push_back(block.life);
      block.units = slot - slots.begin();
    }
  }

  /// The first op of `block` that uses the value, by way of views or inside of a region; null if nothing does.
  static Operation *getFirstUse(Value value, Block *block) {
    Operation *first = nullptr;
    for (Operation *user : value.getUsers()) {
      Operation *use =
          isa<FlattenOp, PartOp>(user) ? getFirstUse(user->getResult(0), block) : block->findAncestorOpInBlock(*user);
      if (auto launch = dyn_cast_or_null<LaunchOp>(use))
        use = getFirstJoined(launch);
      if (use && (!first || use->isBeforeInBlock(first)))
        first = use;
    }
    return first;
  }

  /// Results whose dims are learned are given memory before they are touched. What touches them stands behind the
  /// binds.
  void announceOutputs() {
    if (boundSymbols.empty())
      return;
    for (BlockArgument output : program.getOutputArgs()) {
      // Each dim counts: a product with a dim of 0 uses no symbol.
      if (llvm::none_of(cast<BufferType>(output.getType()).getShape(),
                        [&](Expr dim) { return boundSymbols.uses(dim); }))
        continue;
      Operation *first = getFirstUse(output, &program.getBlock());
      OpBuilder b = first ? OpBuilder(first) : OpBuilder::atBlockEnd(&program.getBlock());
      OutputOp::create(b, program.getLoc(), output);
    }
  }

  void emit() {
    program.setArenaAttr(arena);
    program.setLowerBoundAttr(Expr::constant(context, lowerBound));
    for (MemoryBlock &block : blocks)
      for (BufferOp buffer : block.buffers) {
        OpBuilder b(buffer);
        if (block.output) {
          moveToFront(block.output.getDefiningOp());
          buffer.replaceAllUsesWith(block.output);
          buffer.erase();
          continue;
        }
        if (block.grows) {
          b.setInsertionPoint(getFirstUse(buffer, buffer->getBlock()));
          auto grown = GrowOp::create(b, buffer.getLoc(), buffer.getResult().getType(), block.units, block.size);
          buffer.replaceAllUsesWith(grown.getResult());
          moveViewsBehind(grown);
          buffer.erase();
          continue;
        }
        auto at = AtOp::create(b, buffer.getLoc(), buffer.getResult().getType(), ExprAttr(block.offset));
        unsigned end = buffer == block.buffers.back() ? block.life.end : endOf.at(buffer);
        at->setAttr(keptUntilAttr, b.getI64IntegerAttr(launchesBefore[end]));
        buffer.replaceAllUsesWith(at.getResult());
        buffer.erase();
      }
    for (BufferOp buffer : unused)
      eraseWithViews(buffer);
  }

  /// Views in the block of what they show.
  static void moveViewsBehind(Operation *shown) {
    for (Operation *user : shown->getUsers())
      if (isa<FlattenOp, PartOp>(user) && user->getBlock() == shown->getBlock()) {
        if (user->isBeforeInBlock(shown))
          user->moveAfter(shown);
        moveViewsBehind(user);
      }
  }

  /// A view of an argument, and those that it shows.
  void moveToFront(Operation *view) {
    for (; view; view = view->getOperand(0).getDefiningOp())
      view->moveBefore(&program.getBlock(), program.getBlock().begin());
  }

  static void eraseWithViews(Operation *view) {
    for (Operation *user : llvm::make_early_inc_range(view->getUsers()))
      eraseWithViews(user);
    view->erase();
  }

  ProgramOp program;
  MLIRContext *context;
  SymbolRanges symbols;
  SymbolValues hints;
  BoundSymbols boundSymbols;
  SymbolTable kernels;
  Expr arena;             // bytes
  int64_t lowerBound = 0; // bytes
  llvm::DenseMap<Operation *, unsigned> times;
  int64_t launches = 0;
  SmallVector<int64_t> launchesBefore;         // each time
  llvm::DenseMap<Operation *, unsigned> endOf; // the last use of each buffer
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
