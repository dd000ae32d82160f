#include "compiler/memory/ArenaUse.h"
#include "compiler/memory/BufferUses.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <map>

using namespace mlir;

namespace ptc::loop {

/// Bytes of each slot are counted once: buffers that were joined by reuse in place lie at one offset.
static int64_t countAlive(llvm::ArrayRef<ArenaBuffer> buffers, unsigned launch, const SymbolValues &hints) {
  std::map<int64_t, int64_t> bytesAt;
  for (const ArenaBuffer &buffer : buffers)
    if (buffer.isAliveAt(launch)) {
      int64_t &bytes = bytesAt[buffer.offset.evaluate(hints).value_or(0)];
      bytes = std::max(bytes, buffer.bytes.evaluate(hints).value_or(0));
    }
  int64_t sum = 0;
  for (auto &[offset, bytes] : bytesAt)
    sum += bytes;
  return sum;
}

ArenaUse getArenaUse(ProgramOp program) {
  ArenaUse use;
  SymbolValues hints = prim::getSymbolHints(program.getSymbols());
  llvm::DenseMap<Operation *, unsigned> next; // the first launch that is not before an operation
  unsigned launches = 0;
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    next[op] = launches;
    launches += isa<LaunchOp>(op);
  });
  program.walk<WalkOrder::PreOrder>([&](AtOp at) {
    auto type = cast<BufferType>(at.getResult().getType());
    ArenaBuffer buffer{at.getOffset(), type.getElementCount() * type.getElementBytes(), ~0u, 0, at.getLoc()};
    for (UseSpan span : getUses(at.getResult())) {
      if (isa<TapOp>(span.first))
        continue;
      if (next.at(span.first) < buffer.first)
        std::tie(buffer.first, buffer.location) = std::pair(next.at(span.first), span.first->getLoc());
      unsigned last = next.at(span.last);
      buffer.last = std::max(buffer.last, isa<LaunchOp>(span.last) || last == 0 ? last : last - 1);
    }
    if (buffer.first <= buffer.last)
      use.buffers.push_back(buffer);
  });
  auto offsetOf = [&](const ArenaBuffer &buffer) { return buffer.offset.evaluate(hints).value_or(0); };
  llvm::stable_sort(use.buffers, [&](const ArenaBuffer &a, const ArenaBuffer &b) {
    return std::tuple(offsetOf(a), a.first) < std::tuple(offsetOf(b), b.first);
  });
  for (unsigned launch = 0; launch < launches; ++launch)
    if (int64_t bytes = countAlive(use.buffers, launch, hints); bytes > use.aliveBytes)
      std::tie(use.fullest, use.aliveBytes) = std::tuple(launch, bytes);
  return use;
}

llvm::SmallVector<GrowingBlock> getGrowingBlocks(ProgramOp program) {
  std::map<int64_t, GrowingBlock> blocks;
  auto add = [&](GrowOp grow, Location location, Expr bytes) {
    GrowingBlock &block = blocks.try_emplace(int64_t(grow.getSlot()), GrowingBlock{location, {}}).first->second;
    if (!llvm::is_contained(block.bytes, bytes))
      block.bytes.push_back(bytes);
  };
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto grow = dyn_cast<GrowOp>(op))
      add(grow, op->getLoc(), grow.getBytes());
    else if (auto regrow = dyn_cast<RegrowOp>(op))
      if (auto grow = regrow.getBuffer().getDefiningOp<GrowOp>())
        add(grow, op->getLoc(), regrow.getBytes());
  });
  return llvm::map_to_vector(blocks, [](auto &entry) { return std::move(entry.second); });
}

} // namespace ptc::loop
