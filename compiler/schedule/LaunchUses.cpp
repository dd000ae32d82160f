#include "compiler/schedule/LaunchUses.h"
#include "compiler/memory/InPlaceReuse.h"
#include "compiler/schedule/MergeNodes.h"
#include "ir/loop/Places.h"
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
      found->second.push_back({getRoot(program, buffer), llvm::is_contained(written, int64_t(index)),
                               kernel.getBlock().getArgument(unsigned(index))});
  }
  return found->second;
}

bool LaunchUses::dependsOn(LaunchOp later, LaunchOp earlier) {
  SmallVector<Access> before(getAccesses(earlier));
  for (const Access &a : before)
    for (const Access &b : getAccesses(later))
      if (a.root == b.root && (a.writes || b.writes)) {
        Footprint &first = getFootprint(earlier, a.root); // which stays where it is
        if (!first.isApartFrom(getFootprint(later, b.root)))
          return true;
      }
  return false;
}

/// Whether addresses count from somewhere inside of the buffer's root.
static bool isInPart(Value buffer) {
  while (auto flatten = buffer.getDefiningOp<FlattenOp>())
    buffer = flatten.getBuffer();
  return bool(buffer.getDefiningOp<PartOp>());
}

Footprint &LaunchUses::getFootprint(LaunchOp launch, Value root) {
  std::unique_ptr<Footprint> &footprint = footprints[{launch, root}];
  if (footprint)
    return *footprint;
  footprint = std::make_unique<Footprint>();
  KernelOp kernel = getKernel(launch);
  llvm::StringMap<Expr> told;
  for (auto [name, value] : llvm::zip_equal(kernel.getSymbols(), prim::getExprs(launch.getSymbols())))
    told[cast<StringAttr>(name).getValue()] = value;
  auto inProgram = [&](Expr expr) { return expr.substitute([&](StringRef symbol) { return told.lookup(symbol); }); };
  for (auto [buffer, argument] : llvm::zip_equal(launch.getBuffers(), kernel.getBlock().getArguments())) {
    if (getRoot(program, buffer) != root)
      continue;
    if (isInPart(buffer))
      footprint->addAll();
    for (Operation *user : argument.getUsers()) {
      Operation *node = getEnclosingNode(user);
      if (!isa<LoadOp, StoreOp>(user) || !node || node->getBlock() != &kernel.getBlock()) {
        footprint->addAll();
        continue;
      }
      SmallVector<Expr> domain = llvm::map_to_vector(getDomain(node), inProgram);
      auto own = std::make_shared<const SymbolRanges>(getNodeRanges(node, domain, ranges));
      footprint->add(inProgram(getAddress(user)), isa<StoreOp>(user), own, unsigned(domain.size()));
    }
  }
  return *footprint;
}

LaunchUses::Around LaunchUses::getAround(ArrayRef<TimedLaunch> row) {
  Around around;
  llvm::MapVector<Value, unsigned> users;
  for (auto [launch, step] : row)
    for (const Access &access : getAccesses(launch))
      if (access.root.getDefiningOp<BufferOp>())
        ++users[access.root];
  for (auto [buffer, count] : users) {
    bool isOwn = llvm::count_if(buffer.getUsers(), [](Operation *user) { return !isa<TapOp>(user); }) == count;
    around.buffers[buffer] = {.before = 0, .all = count, .isOwn = isOwn};
    around.alive += isOwn ? 0 : getBytes(buffer);
  }
  return around;
}

void LaunchUses::pass(LaunchOp launch, Around &around) {
  for (const Access &access : getAccesses(launch)) {
    auto found = around.buffers.find(access.root);
    if (found == around.buffers.end())
      continue;
    Around::Uses &uses = found->second;
    int64_t bytes = uses.isOwn ? getBytes(access.root) : 0;
    around.alive += uses.before == 0 ? bytes : 0;
    around.alive -= ++uses.before == uses.all ? bytes : 0;
  }
}

LaunchUses::MemoryUse LaunchUses::measure(ArrayRef<TimedLaunch> launches, const Around &around,
                                          SmallVectorImpl<StepUse> *steps) {
  struct Life {
    size_t begin, end;
    unsigned users;
    bool beginsBefore, endsBehind; // the launches
  };
  size_t first = launches.empty() ? 0 : launches.front().step;
  llvm::MapVector<Value, Life> lives;
  SmallVector<unsigned> sharing(launches.empty() ? 0 : launches.back().step - first + 1); // launches of each step
  for (auto [launch, at] : launches) {
    size_t step = at - first;
    ++sharing[step];
    for (const Access &access : getAccesses(launch))
      if (access.root.getDefiningOp<BufferOp>()) {
        Life &life = lives.insert({access.root, {step, step, 0, false, false}}).first->second;
        life.end = step;
        ++life.users;
      }
  }
  SmallVector<int64_t> begun(sharing.size()), ended(sharing.size()), saved(sharing.size()); // bytes in each step
  for (auto &[buffer, life] : lives) {
    Around::Uses uses = around.buffers.lookup(buffer);
    life.beginsBefore = uses.before > 0;
    life.endsBehind = uses.before + life.users < uses.all;
    if (uses.isOwn && !life.beginsBefore)
      begun[life.begin] += getBytes(buffer);
    if (uses.isOwn && !life.endsBehind)
      ended[life.end] += getBytes(buffer);
  }
  // What may lie over an operand read for the last time counts once, one result over each operand; side by side with
  // others nothing may.
  for (auto [launch, at] : launches) {
    llvm::SmallDenseSet<Value> taken;
    for (const Access &access : getAccesses(launch)) {
      size_t step = at - first;
      auto life = lives.find(access.root);
      if (sharing[step] > 1 || !access.writes || life == lives.end() || life->second.beginsBefore ||
          life->second.begin != step)
        continue;
      for (const Access &read : getAccesses(launch)) {
        auto other = lives.find(read.root);
        if (read.writes || other == lives.end() || other->second.endsBehind || other->second.end != step ||
            getBytes(read.root) != getBytes(access.root) || taken.contains(read.root) ||
            !isInPlace(read.argument, access.argument))
          continue;
        taken.insert(read.root);
        saved[step] += getBytes(access.root);
        break;
      }
    }
  }
  MemoryUse use;
  int64_t before = around.alive;
  for (size_t step = 0; step < sharing.size(); ++step) {
    int64_t during = before + begun[step] - saved[step];
    use.peak = std::max(use.peak, during);
    use.area += during;
    if (steps)
      steps->push_back({before, during});
    before += begun[step] - ended[step];
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
  auto [found, isNew] = bytes.try_emplace(buffer, 0);
  if (isNew) {
    auto type = cast<BufferType>(buffer.getType());
    found->second = type.getElementCount().evaluate(hints).value_or(0) * type.getElementBytes();
  }
  return found->second;
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
