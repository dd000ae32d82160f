#include "compiler/schedule/LaunchUses.h"
#include "compiler/memory/InPlaceReuse.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace ptc::loop {

ArrayRef<LaunchUses::Access> LaunchUses::getAccesses(LaunchOp launch) {
  auto [found, isNew] = accesses.try_emplace(launch);
  if (isNew) {
    KernelOp kernel = getKernel(launch);
    ArrayRef<int64_t> written = kernel.getArgumentsWritten();
    for (auto [index, buffer] : llvm::enumerate(launch.getBuffers()))
      found->second.push_back({getRoot(buffer), llvm::is_contained(written, int64_t(index)),
                               kernel.getBlock().getArgument(unsigned(index))});
  }
  return found->second;
}

bool LaunchUses::dependsOn(LaunchOp later, LaunchOp earlier) {
  SmallVector<Access> before(getAccesses(earlier));
  for (const Access &a : before)
    for (const Access &b : getAccesses(later))
      if (a.root == b.root && (a.writes || b.writes))
        return true;
  return false;
}

/// The buffer behind views; of an aliased pair the input stands for both.
Value LaunchUses::getRoot(Value buffer) {
  buffer = skipViews(buffer);
  ArrayRef<int64_t> aliases = program.getAliases();
  for (size_t i = 0; i + 1 < aliases.size(); i += 2)
    if (buffer == program.getOutputArgs()[aliases[i + 1]])
      return program.getInputArgs()[aliases[i]];
  return buffer;
}

LaunchUses::MemoryUse LaunchUses::measure(ArrayRef<TimedLaunch> launches) {
  struct Life {
    size_t begin, end;
    unsigned users;
  };
  llvm::MapVector<Value, Life> lives;
  SmallVector<unsigned> sharing(launches.empty() ? 0 : launches.back().step + 1); // launches of each step
  for (auto [launch, step] : launches) {
    ++sharing[step];
    for (const Access &access : getAccesses(launch))
      if (access.root.getDefiningOp<BufferOp>()) {
        Life &life = lives.insert({access.root, {step, step, 0}}).first->second;
        life.end = step;
        ++life.users;
      }
  }
  SmallVector<int64_t> change(sharing.size() + 1);
  for (auto &[buffer, life] : lives) {
    bool isOwn = llvm::count_if(buffer.getUsers(), [](Operation *user) { return !isa<TapOp>(user); }) == life.users;
    change[isOwn ? life.begin : 0] += getBytes(buffer);
    change[isOwn ? life.end + 1 : sharing.size()] -= getBytes(buffer);
  }
  // What may lie over an operand read for the last time counts once; side by side with others nothing may.
  for (auto [launch, step] : launches)
    for (const Access &access : getAccesses(launch)) {
      auto life = lives.find(access.root);
      if (sharing[step] > 1 || !access.writes || life == lives.end() || life->second.begin != step)
        continue;
      for (const Access &read : getAccesses(launch)) {
        auto other = lives.find(read.root);
        if (read.writes || other == lives.end() || other->second.end != step ||
            getBytes(read.root) != getBytes(access.root) || !isInPlace(read.argument, access.argument))
          continue;
        change[step] -= getBytes(access.root);
        change[step + 1] += getBytes(access.root);
        break;
      }
    }
  MemoryUse use;
  int64_t alive = 0;
  for (int64_t bytes : change) {
    alive += bytes;
    use.peak = std::max(use.peak, alive);
    use.area += alive;
  }
  return use;
}

bool LaunchUses::isInPlace(BlockArgument read, BlockArgument written) {
  auto [found, isNew] = inPlace.try_emplace({read, written}, false);
  if (isNew)
    found->second = mayReuse(read, written);
  return found->second;
}

int64_t LaunchUses::getBytes(Value buffer) {
  auto type = cast<BufferType>(buffer.getType());
  return type.getElementCount().evaluate(hints).value_or(0) * type.getElementBytes();
}

void forEachRow(Block &block, llvm::function_ref<bool(Operation *)> isNeutral,
                llvm::function_ref<void(MutableArrayRef<LaunchOp>)> visit) {
  SmallVector<LaunchOp> row;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto launch = dyn_cast<LaunchOp>(op)) {
      row.push_back(launch);
    } else if (!isNeutral(&op) && !isMemoryEffectFree(&op)) {
      visit(row);
      row.clear();
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          forEachRow(inner, isNeutral, visit);
    }
  }
  visit(row);
}

void placeInOrder(ArrayRef<LaunchOp> launches) {
  if (launches.empty())
    return;
  Operation *last = launches[0];
  for (LaunchOp launch : launches)
    if (last->isBeforeInBlock(launch))
      last = launch;
  Block *block = last->getBlock();
  Block::iterator behind = std::next(last->getIterator());
  for (LaunchOp launch : launches)
    launch->moveBefore(block, behind);
}

} // namespace ptc::loop
