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

#include "compiler/memory/InPlaceReuse.h"
#include "compiler/schedule/Passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_ORDERLAUNCHES
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

struct Access {
  Value root; // a buffer or an argument of the program
  bool writes;
  BlockArgument argument; // of the kernel
};

class LaunchOrder {
public:
  LaunchOrder(ProgramOp program, SymbolTable &kernels)
      : program(program), kernels(kernels), hints(prim::getSymbolHints(program.getSymbols())) {}

  /// Orders each run of launches of a block; other operations that touch buffers end a run.
  void run(Block &block) {
    SmallVector<LaunchOp> launches;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto launch = dyn_cast<LaunchOp>(op)) {
        launches.push_back(launch);
      } else if (!isa<BufferOp, TapOp>(op) && !isMemoryEffectFree(&op)) {
        order(launches);
        launches.clear();
        for (Region &region : op.getRegions())
          for (Block &inner : region)
            run(inner);
      }
    }
    order(launches);
  }

private:
  void order(MutableArrayRef<LaunchOp> launches) {
    for (size_t from = 1; from < launches.size(); ++from) {
      size_t to = getEarliest(launches, from);
      if (to == from)
        continue;
      MemoryUse before = measure(launches);
      std::rotate(launches.begin() + to, launches.begin() + from, launches.begin() + from + 1);
      MemoryUse after = measure(launches);
      if (after.peak > before.peak || after.area >= before.area)
        std::rotate(launches.begin() + to, launches.begin() + to + 1, launches.begin() + from + 1);
    }
    // Behind the last of them every buffer and constant that they use is defined.
    for (size_t i = launches.size(); i > 1; --i)
      launches[i - 2]->moveBefore(launches[i - 1]);
  }

  /// The first place where launch `from` finds all that it depends on done.
  size_t getEarliest(ArrayRef<LaunchOp> launches, size_t from) {
    size_t to = from;
    while (to > 0 && !dependsOn(launches[from], launches[to - 1]))
      --to;
    return to;
  }

  bool dependsOn(LaunchOp later, LaunchOp earlier) {
    for (const Access &a : getAccesses(earlier))
      for (const Access &b : getAccesses(later))
        if (a.root == b.root && (a.writes || b.writes))
          return true;
    return false;
  }

  ArrayRef<Access> getAccesses(LaunchOp launch) {
    auto [found, isNew] = accesses.try_emplace(launch);
    if (isNew) {
      auto kernel = kernels.lookup<KernelOp>(launch.getKernel());
      ArrayRef<int64_t> written = kernel.getArgumentsWritten();
      for (auto [index, buffer] : llvm::enumerate(launch.getBuffers()))
        found->second.push_back({getRoot(buffer), llvm::is_contained(written, int64_t(index)),
                                 kernel.getBlock().getArgument(unsigned(index))});
    }
    return found->second;
  }

  /// The buffer behind views; of an aliased pair the input stands for both.
  Value getRoot(Value buffer) {
    buffer = skipViews(buffer);
    ArrayRef<int64_t> aliases = program.getAliases();
    for (size_t i = 0; i + 1 < aliases.size(); i += 2)
      if (buffer == program.getOutputArgs()[aliases[i + 1]])
        return program.getInputArgs()[aliases[i]];
    return buffer;
  }

  struct MemoryUse {
    int64_t peak = 0, area = 0; // bytes, bytes x steps
  };

  /// What the arena's buffers need in this order. Buffers that others use too live through the whole run.
  MemoryUse measure(ArrayRef<LaunchOp> launches) {
    struct Life {
      size_t begin, end;
      unsigned users;
    };
    llvm::MapVector<Value, Life> lives;
    for (auto [time, launch] : llvm::enumerate(launches))
      for (const Access &access : getAccesses(launch))
        if (access.root.getDefiningOp<BufferOp>()) {
          Life &life = lives.insert({access.root, {time, time, 0}}).first->second;
          life.end = time;
          ++life.users;
        }
    SmallVector<int64_t> change(launches.size() + 1);
    for (auto &[buffer, life] : lives) {
      bool isOwn = llvm::count_if(buffer.getUsers(), [](Operation *user) { return !isa<TapOp>(user); }) == life.users;
      change[isOwn ? life.begin : 0] += getBytes(buffer);
      change[isOwn ? life.end + 1 : launches.size()] -= getBytes(buffer);
    }
    for (auto [time, launch] : llvm::enumerate(launches))
      for (const Access &access : getAccesses(launch)) {
        auto life = lives.find(access.root);
        if (!access.writes || life == lives.end() || life->second.begin != time)
          continue;
        for (const Access &read : getAccesses(launch)) {
          auto other = lives.find(read.root);
          if (read.writes || other == lives.end() || other->second.end != time ||
              getBytes(read.root) != getBytes(access.root) || !isInPlace(read.argument, access.argument))
            continue;
          change[time] -= getBytes(access.root);
          change[time + 1] += getBytes(access.root);
          break;
        }
      }
    MemoryUse use;
    int64_t alive = 0;
    for (int64_t step : change) {
      alive += step;
      use.peak = std::max(use.peak, alive);
      use.area += alive;
    }
    return use;
  }

  bool isInPlace(BlockArgument read, BlockArgument written) {
    auto [found, isNew] = inPlace.try_emplace({read, written}, false);
    if (isNew)
      found->second = mayReuse(read, written);
    return found->second;
  }

  int64_t getBytes(Value buffer) {
    auto type = cast<BufferType>(buffer.getType());
    return type.getElementCount().evaluate(hints).value_or(0) * type.getElementBytes();
  }

  ProgramOp program;
  SymbolTable &kernels;
  SymbolValues hints;
  llvm::DenseMap<Operation *, SmallVector<Access>> accesses;
  llvm::DenseMap<std::pair<Value, Value>, bool> inPlace;
};

struct OrderLaunches : ptc::impl::OrderLaunchesBase<OrderLaunches> {
  void runOnOperation() override {
    SymbolTable kernels(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>())
      LaunchOrder(program, kernels).run(program.getBlock());
  }
};

} // namespace
