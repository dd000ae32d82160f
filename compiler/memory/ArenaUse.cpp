#include "compiler/memory/ArenaUse.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ptc::loop {

static Value skipViews(Value buffer) {
  while (auto flatten = buffer.getDefiningOp<FlattenOp>())
    buffer = flatten.getBuffer();
  return buffer;
}

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
  llvm::MapVector<Value, unsigned> indices;
  unsigned launches = 0;
  program.walk([&](LaunchOp launch) {
    for (Value argument : launch.getBuffers()) {
      Value buffer = skipViews(argument);
      auto at = buffer.getDefiningOp<AtOp>();
      if (!at)
        continue;
      auto [found, isNew] = indices.insert({buffer, use.buffers.size()});
      auto type = cast<BufferType>(buffer.getType());
      if (isNew)
        use.buffers.push_back(
            {at.getOffset(), type.getElementCount() * type.getElementBytes(), launches, launches, launch.getLoc()});
      use.buffers[found->second].last = launches;
    }
    ++launches;
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

} // namespace ptc::loop
