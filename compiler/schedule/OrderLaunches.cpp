//===- OrderLaunches.cpp - launches in an order that needs less memory ----===//
//
// Launches come in the order of the user's graph, and what a model returns besides its main result is
// often written at its very end: the keys and values of every layer would stay alive until then.
// A launch may move up to just behind the last thing it depends on. It does if that shortens
// the lives of buffers by more bytes x steps than it lengthens others', and the peak does not
// rise. One pass from first to last: what moves up makes room for what depends on it.
// A result that may lie over an operand read for the last time counts once, as memory planning will have it.
//
// Cost: what lies between the two places of a launch, for each that may gain by a move (`mayGain`): for others, such as
// thousands of heads that need nothing of each other, their own accesses.
//
// Everything that is no launch (an if, a loop) keeps its place, and nothing moves across it.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/LaunchUses.h"
#include "compiler/schedule/Passes.h"
#include "llvm/ADT/MapVector.h"

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
    for (size_t from = 0; from < launches.size(); ++from) {
      LaunchOp launch = launches[from];
      if (from > 0)
        peakBefore[from] = std::max(peakBefore[from - 1], steps[from - 1].during);
      if (size_t to = getEarliest(launch); to != from && mayGain(from, to))
        tryMove(from, to);
      pass(launch);
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

  /// The accesses to a buffer or argument by launches that have found their places.
  struct Passed {
    Operation *lastUser = nullptr, *lastWriter = nullptr;
    unsigned accesses = 0;
  };

  void pass(LaunchOp launch) {
    auto isBehind = [&](Operation *last) { return !last || places[last] < places[launch]; };
    for (const LaunchUses::Access &access : uses.getAccesses(launch)) {
      Passed &known = passed[access.root];
      ++known.accesses;
      if (isBehind(known.lastUser))
        known.lastUser = launch;
      if (access.writes && isBehind(known.lastWriter))
        known.lastWriter = launch;
    }
  }

  /// The first place where the next launch finds all that it depends on done.
  size_t getEarliest(LaunchOp launch) {
    size_t to = 0;
    for (const LaunchUses::Access &access : uses.getAccesses(launch)) {
      Passed known = passed.lookup(access.root);
      if (Operation *last = access.writes ? known.lastUser : known.lastWriter)
        to = std::max(to, places[last] + 1);
    }
    return to;
  }

  /// Whether moving launch `from` up to place `to` may save bytes x steps. What lives at place `from` but not yet at
  /// `to` begins one step later then, what lives at `to` alone ends one later. What the launch begins, and others end,
  /// lives longer by the whole way; what it ends, less long by so much at most, and the result of the launch that ends
  /// it then may lie over it.
  bool mayGain(size_t from, size_t to) {
    int64_t distance = int64_t(from - to), gain = steps[from].before - steps[to].before;
    llvm::SmallMapVector<Value, unsigned, 8> accesses;
    for (const LaunchUses::Access &access : uses.getAccesses(launches[from]))
      ++accesses[access.root];
    for (auto [root, count] : accesses) {
      LaunchUses::Around::Uses all = whole.buffers.lookup(root);
      if (!all.isOwn)
        continue;
      unsigned before = passed.lookup(root).accesses;
      bool isFirst = before == 0, isLast = before + count == all.all;
      if (isFirst != isLast)
        gain += uses.getBytes(root) * (isFirst ? -distance : distance + 1);
    }
    return gain > 0;
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
  DenseMap<Value, Passed> passed;
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
