//===- JoinLaunches.cpp - launches that run side by side -----------------===//
//
// Between two launches all threads meet, though the second may need nothing of the first: the products for queries,
// keys and values, the branches of an inception block, the heads of a detector. Such launches are joined: their pieces
// are one parallel loop, so that threads meet once, the last pieces of one overlap the first of the next, and kernels
// too small for all threads share them.
//
// A launch joins the one before it if neither depends on the other. A later one moves up for that only if it reads
// what a member of the loop reads: then the loop reads it while it lies in cache, and otherwise a branch would be torn
// from its own next launch, which finds its operand in cache now. Buffers of a loop live for all of it; what would
// raise the peak is not joined: it is measured over the launches that may change their places, since no other step
// knows of it. Phases of a recurrence are loops of their own.
//
// Nothing moves across a tap: the observer sees each value right after the launch that wrote it.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/LaunchUses.h"
#include "compiler/schedule/Passes.h"
#include "ir/loop/Recurrence.h"
#include "runtime/include/ptc/descriptor.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_JOINLAUNCHES
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

/// How far ahead a launch is looked for: what lies further away is out of cache anyway.
constexpr size_t farthest = 32;

class LaunchLoops {
public:
  LaunchLoops(LaunchUses &uses, MutableArrayRef<LaunchOp> launches)
      : uses(uses), launches(launches), joined(launches.size()) {}

  void join() {
    LaunchUses::Around around = uses.getAround(getTimed(0, launches.size()));
    int64_t peak = uses.measure(getTimed(0, launches.size()), around).peak;
    for (size_t begin = 0, end; begin < launches.size(); begin = end) {
      SmallVector<size_t> origins; // of the members behind the first
      end = begin + 1;
      for (size_t from = end; from < std::min(launches.size(), begin + farthest) && end - begin < PTC_RT_MOST_JOINED;
           ++from)
        if (mayJoin(begin, end, from)) {
          move(from, end);
          joined[end++] = true;
          origins.push_back(from);
        }
      auto measure = [&] {
        return uses.measure(getTimed(begin, std::min(launches.size(), begin + farthest)), around).peak;
      };
      for (; !origins.empty() && measure() > peak; origins.pop_back()) {
        joined[--end] = false;
        move(end, origins.back());
      }
      for (LaunchOp launch : launches.slice(begin, end - begin))
        uses.pass(launch, around);
    }
    placeInOrder(launches);
    for (auto [launch, isJoined] : llvm::zip_equal(launches, joined))
      launch.setJoined(isJoined);
  }

private:
  /// Whether launch `from` may run side by side with [begin, end).
  bool mayJoin(size_t begin, size_t end, size_t from) {
    if (hasPhases(launches[begin]) || hasPhases(launches[from]))
      return false;
    for (size_t i = begin; i < from; ++i)
      if (uses.dependsOn(launches[from], launches[i]))
        return false;
    return from == end || readsWhatIsRead(begin, end, from);
  }

  bool hasPhases(LaunchOp launch) { return !uses.getKernel(launch).getBlock().getOps<RecurrenceOp>().empty(); }

  bool readsWhatIsRead(size_t begin, size_t end, size_t from) {
    llvm::SmallDenseSet<Value> read;
    for (LaunchOp member : launches.slice(begin, end - begin))
      for (const LaunchUses::Access &access : uses.getAccesses(member))
        if (!access.writes && !isa_and_present<WeightOp, ConstantOp>(access.root.getDefiningOp()))
          read.insert(access.root);
    return llvm::any_of(uses.getAccesses(launches[from]),
                        [&](const LaunchUses::Access &access) { return !access.writes && read.contains(access.root); });
  }

  /// Puts launch `from` at place `to`; those between give way.
  void move(size_t from, size_t to) {
    auto first = launches.begin();
    if (to < from)
      std::rotate(first + to, first + from, first + from + 1);
    else
      std::rotate(first + from, first + from + 1, first + to + 1);
  }

  SmallVector<TimedLaunch> getTimed(size_t begin, size_t end) {
    SmallVector<TimedLaunch> timed;
    for (size_t i = begin; i < end; ++i)
      timed.push_back({launches[i], timed.empty() ? 0 : timed.back().step + !joined[i]});
    return timed;
  }

  LaunchUses &uses;
  MutableArrayRef<LaunchOp> launches;
  SmallVector<bool> joined; // each to the one before it
};

struct JoinLaunches : ptc::impl::JoinLaunchesBase<JoinLaunches> {
  void runOnOperation() override {
    SymbolTable kernels(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>()) {
      LaunchUses uses(program, kernels);
      forEachRow(program.getBlock(), llvm::IsaPred<BufferOp>,
                 [&](MutableArrayRef<LaunchOp> row) { LaunchLoops(uses, row).join(); });
    }
  }
};

} // namespace
