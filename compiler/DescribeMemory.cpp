// The arena of a planned program, for the manifest: which buffer lies where, from which launch to which.
//
// First and last use are read off the launches; for how long the plan reserves the bytes is the planner's own word
// (`keptUntilAttr` of a loop.at). The two differ where the planner is not exact, and a gate tells so.
#include "compiler/Artefact.h"
#include "compiler/memory/ArenaUse.h"
#include "compiler/memory/BufferUses.h"
#include "compiler/memory/Passes.h"
#include "ir/prim/Variants.h"
#include "llvm/ADT/bit.h"

using namespace llvm;

namespace ptc {

namespace {
/// The launches of a program in order. An `if`, a loop or a bind stands for the launch after its value was read, a call
/// for the next one.
class LaunchOrder {
public:
  explicit LaunchOrder(loop::ProgramOp program) {
    program.walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation *op) {
      if (loop::isControlFlow(op) || isa<loop::BindOp, loop::CallOp>(op))
        numbers[op] = int64_t(nodes.size());
      if (!isa<loop::LaunchOp>(op))
        return;
      numbers[op] = int64_t(nodes.size());
      std::vector<std::string> names = nodeNames(op->getLoc());
      nodes.push_back(names.empty() ? "" : names.front());
    });
  }
  std::optional<int64_t> numberOf(mlir::Operation *op) const {
    auto found = numbers.find(op);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }
  /// The last launch inside of a loop.
  std::optional<int64_t> lastIn(mlir::Operation *loop) const {
    std::optional<int64_t> last;
    loop->walk([&](loop::LaunchOp launch) { last = numberOf(launch); });
    return last;
  }
  /// The first node of a launch.
  std::string nodeOf(int64_t launch) const {
    return launch < int64_t(nodes.size()) ? nodes[size_t(launch)] : "the end of the run";
  }

private:
  DenseMap<mlir::Operation *, int64_t> numbers;
  std::vector<std::string> nodes;
};
} // namespace

static void addUses(mlir::Value buffer, const LaunchOrder &order, SmallVectorImpl<int64_t> &uses) {
  for (loop::UseSpan span : loop::getUses(buffer)) {
    if (std::optional<int64_t> number = order.numberOf(span.first))
      uses.push_back(*number);
    if (isa<loop::LaunchOp>(span.last))
      uses.push_back(*order.numberOf(span.last));
    if (isa<loop::RepeatOp>(span.first))
      if (std::optional<int64_t> last = order.lastIn(span.first))
        uses.push_back(*last);
  }
}

/// Where a launch writes what it reads for the last time: the later buffer has the place of the earlier.
static void findReuse(MutableArrayRef<artifact::BufferEntry> buffers) {
  for (artifact::BufferEntry &later : buffers)
    for (const artifact::BufferEntry &earlier : buffers)
      if (&later != &earlier && earlier.lastRead == later.written && earlier.written < later.written &&
          earlier.offset.text == later.offset.text && earlier.bytes.text == later.bytes.text)
        later.reuses = earlier.node;
}

void describeMemory(StringRef target, StringRef function, loop::ProgramOp program, artifact::Manifest &manifest) {
  SymbolValues hints = prim::getSymbolHints(program.getSymbols());
  SymbolRanges ranges = prim::getSymbolRanges(program.getSymbols());
  LaunchOrder order(program);
  std::string variant = prim::getVariantName(program);
  artifact::MemoryEntry memory{.target = target.str(),
                               .function = function.str(),
                               .variant = variant,
                               .peak = amountOf(exprOf(program.getArena()), hints),
                               .lowerBound = amountOf(exprOf(program.getLowerBound()), hints)};
  program.walk([&](mlir::Operation *op) {
    memory.hostSyncs += (loop::isControlFlow(op) || isa<loop::BindOp>(op)) && op->getNumOperands() > 0;
    memory.hostSyncs += isa<loop::TransferOp>(op);
  });
  for (const loop::GrowingBlock &block : loop::getGrowingBlocks(program)) {
    std::vector<std::string> names = nodeNames(block.location);
    artifact::GrowingEntry &entry = memory.growing.emplace_back();
    entry.node = names.empty() ? "" : names.front();
    for (Expr bytes : block.bytes)
      entry.bytes.push_back(bytes.str());
  }
  manifest.memory.push_back(std::move(memory));

  std::vector<artifact::BufferEntry> buffers;
  program.walk<mlir::WalkOrder::PreOrder>([&](loop::AtOp at) {
    SmallVector<int64_t> uses;
    addUses(at.getResult(), order, uses);
    if (uses.empty())
      return;
    std::vector<std::string> names = nodeNames(at.getLoc());
    auto type = cast<loop::BufferType>(at.getResult().getType());
    Expr offset = at.getOffset();
    artifact::BufferEntry buffer{.target = target.str(),
                                 .function = function.str(),
                                 .variant = variant,
                                 .node = names.empty() ? "" : names.front(),
                                 .bytes = amountOf(type.getElementCount() * type.getElementBytes(), hints),
                                 .offset = amountOf(offset, hints)};
    // Of 0 and of what is aligned better than a page, a page is said.
    constexpr int64_t most = 4096;
    int64_t divisor = offset.isConstant() ? offset.getValue() : offset.range(ranges).divisor;
    buffer.alignment = divisor ? std::min(most, int64_t(1) << countr_zero(uint64_t(divisor))) : most;
    buffer.written = *min_element(uses);
    buffer.lastRead = *max_element(uses);
    auto kept = at->getAttrOfType<mlir::IntegerAttr>(keptUntilAttr);
    buffer.keptUntil = kept ? kept.getInt() : buffer.lastRead;
    buffer.writtenBy = order.nodeOf(buffer.written);
    buffer.lastReadBy = order.nodeOf(buffer.lastRead);
    buffer.keptFor = order.nodeOf(buffer.keptUntil);
    buffers.push_back(std::move(buffer));
  });
  findReuse(buffers);
  append_range(manifest.buffers, buffers);
}

} // namespace ptc
