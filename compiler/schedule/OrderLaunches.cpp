//===- OrderLaunches.cpp - launches in an order that needs less memory ----===//
//
// Launches come in the order of the user's graph, and what a model returns besides its main result is
// often written at its very end: the keys and values of every layer would stay alive until then.
// A launch may move up to just behind the last thing it depends on. It does if that shortens
// the lives of buffers by more bytes x steps than it lengthens others', and the peak does not
// rise. One pass from first to last: what moves up makes room for what depends on it.
// A result that may lie over an operand read for the last time counts once, as memory planning will have it.
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
  explicit LaunchOrder(LaunchUses &uses) : uses(uses) {}

  void order(MutableArrayRef<LaunchOp> launches) {
    for (size_t from = 1; from < launches.size(); ++from) {
      size_t to = getEarliest(launches, from);
      if (to == from)
        continue;
      LaunchUses::MemoryUse before = measure(launches);
      std::rotate(launches.begin() + to, launches.begin() + from, launches.begin() + from + 1);
      LaunchUses::MemoryUse after = measure(launches);
      if (after.peak > before.peak || after.area >= before.area)
        std::rotate(launches.begin() + to, launches.begin() + to + 1, launches.begin() + from + 1);
    }
    placeInOrder(launches);
  }

private:
  /// The first place where launch `from` finds all that it depends on done.
  size_t getEarliest(ArrayRef<LaunchOp> launches, size_t from) {
    size_t to = from;
    while (to > 0 && !uses.dependsOn(launches[from], launches[to - 1]))
      --to;
    return to;
  }

  /// One after the other.
  LaunchUses::MemoryUse measure(ArrayRef<LaunchOp> launches) {
    SmallVector<TimedLaunch> timed;
    for (auto [step, launch] : llvm::enumerate(launches))
      timed.push_back({launch, step});
    return uses.measure(timed);
  }

  LaunchUses &uses;
};

struct OrderLaunches : ptc::impl::OrderLaunchesBase<OrderLaunches> {
  void runOnOperation() override {
    SymbolTable kernels(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>()) {
      LaunchUses uses(program, kernels);
      forEachRow(program.getBlock(), llvm::IsaPred<BufferOp, TapOp>,
                 [&](MutableArrayRef<LaunchOp> row) { LaunchOrder(uses).order(row); });
    }
  }
};

} // namespace
