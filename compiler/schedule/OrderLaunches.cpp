//===- OrderLaunches.cpp - launches in an order that needs less memory ----===//
//
// Launches come in the order of the user's graph, and what a model returns besides its main result is
// often written at its very end: the keys and values of every layer would stay alive until then.
// A launch may move up to just behind the last thing it depends on. It does if that shortens
// the lives of buffers by more bytes x steps than it lengthens others', and the peak does not
// rise. One pass from first to last: what moves up makes room for what depends on it.
// A result that may lie over an operand read for the last time counts once, as memory planning will have it.
//
// Cost: what lies between the two places of a launch, for each that may move.
//
// Everything that is no launch (an if, a loop) keeps its place, and nothing moves across it.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/LaunchUses.h"
#include "compiler/schedule/Passes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_ORDERLAUNCHES
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

class LaunchOrder {
public:
  LaunchOrder(LaunchUses &uses, MutableArrayRef<LaunchOp> launches)
      : uses(uses), launches(launches), whole(uses.getAround(getTimed(0, launches.size()))) {}

  void order() {
    begin();
    for (size_t from = 1; from < launches.size(); ++from) {
      peakBefore[from] = std::max(peakBefore[from - 1], steps[from - 1].during);
      if (size_t to = getEarliest(from); to != from)
        tryMove(from, to);
    }
    placeInOrder(launches);
  }

private:
  void begin() {
    uses.measure(getTimed(0, launches.size()), whole, &steps);
    peakBefore.assign(launches.size(), 0);
    peakBehind.assign(launches.size() + 1, 0);
    for (size_t i = launches.size(); i-- > 0;)
      peakBehind[i] = std::max(peakBehind[i + 1], steps[i].during);
    for (auto [i, launch] : llvm::enumerate(launches)) {
      places[launch] = i;
      for (const LaunchUses::Access &access : uses.getAccesses(launch))
        users[access.root].push_back(launch);
    }
  }

  /// The first place where launch `from` finds all that it depends on done.
  size_t getEarliest(size_t from) {
    size_t to = from;
    while (to > 0 && !uses.dependsOn(launches[from], launches[to - 1]))
      --to;
    return to;
  }

  /// Moves launch `from` up to place `to` if that is worth it. Only the steps between the two know of it.
  void tryMove(size_t from, size_t to) {
    auto first = launches.begin();
    LaunchUses::Around around = getAround(to, from + 1);
    LaunchUses::MemoryUse before = uses.measure(getTimed(to, from + 1), around);
    std::rotate(first + to, first + from, first + from + 1);
    SmallVector<LaunchUses::StepUse> moved;
    LaunchUses::MemoryUse after = uses.measure(getTimed(to, from + 1), around, &moved);
    int64_t elsewhere = std::max(peakBefore[to], peakBehind[from + 1]);
    if (std::max(after.peak, elsewhere) > std::max(before.peak, elsewhere) || after.area >= before.area) {
      std::rotate(first + to, first + to + 1, first + from + 1);
      return;
    }
    llvm::copy(moved, steps.begin() + to);
    for (size_t i = to; i <= from; ++i) {
      places[launches[i]] = i;
      if (i > to)
        peakBefore[i] = std::max(peakBefore[i - 1], steps[i - 1].during);
    }
  }

  /// What is around the launches [begin, end).
  LaunchUses::Around getAround(size_t begin, size_t end) {
    LaunchUses::Around around;
    around.alive = steps[begin].before;
    for (LaunchOp launch : launches.slice(begin, end - begin))
      for (const LaunchUses::Access &access : uses.getAccesses(launch))
        if (auto found = whole.buffers.find(access.root); found != whole.buffers.end())
          if (auto [entry, isNew] = around.buffers.insert(*found); isNew)
            entry->second.before =
                llvm::count_if(users[access.root], [&](mlir::Operation *user) { return places.lookup(user) < begin; });
    return around;
  }

  /// One after the other.
  SmallVector<TimedLaunch> getTimed(size_t begin, size_t end) {
    SmallVector<TimedLaunch> timed;
    for (size_t i = begin; i < end; ++i)
      timed.push_back({launches[i], i});
    return timed;
  }

  LaunchUses &uses;
  MutableArrayRef<LaunchOp> launches;
  LaunchUses::Around whole;
  SmallVector<LaunchUses::StepUse> steps;      // of the order as it is
  SmallVector<int64_t> peakBefore, peakBehind; // of the steps before each, and from each on
  DenseMap<Operation *, size_t> places;
  DenseMap<Value, SmallVector<Operation *>> users; // once for each access
};

struct OrderLaunches : ptc::impl::OrderLaunchesBase<OrderLaunches> {
  void runOnOperation() override {
    SymbolTable kernels(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>()) {
      LaunchUses uses(program, kernels);
      forEachRow(program.getBlock(), llvm::IsaPred<BufferOp, TapOp>,
                 [&](MutableArrayRef<LaunchOp> row) { LaunchOrder(uses, row).order(); });
    }
  }
};

} // namespace
