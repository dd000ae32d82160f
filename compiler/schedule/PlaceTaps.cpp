//===- PlaceTaps.cpp - an observer sees a value as soon as it is there ----===//
//
// While nodes are fused and launches ordered, a tap is no part of the order: it stands somewhere in its block and says
// only that its buffer is read. Now it takes its place, right after the last launch (or branch) that writes the
// buffer: there the value is complete, and the buffer's memory is free for others as early as can be. What nothing
// writes, an argument, is shown first of all; what has a size that the program learns, once that is known. Taps behind
// one launch keep the order of the model's graph.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Passes.h"
#include "ir/loop/Loop.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_PLACETAPS
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

class TapPlaces {
public:
  explicit TapPlaces(const SymbolTable &kernels) : kernels(kernels) {}

  void run(Block &block) {
    SmallVector<TapOp> taps;
    llvm::DenseMap<Value, Operation *> lastWriters;
    llvm::StringMap<Operation *> binders;
    Operation *lastDeclaration = nullptr;
    for (Operation &op : block) {
      if (auto binder = dyn_cast<prim::SymbolBinderOpInterface>(op))
        binder.forEachBinding([&](StringRef symbol, Expr, bool isInside) {
          if (!isInside)
            binders[symbol] = &op;
        });
      if (auto tap = dyn_cast<TapOp>(op))
        taps.push_back(tap);
      else if (op.getNumResults())
        lastDeclaration = &op;
      op.walk([&](LaunchOp launch) { noteWrites(launch, &op, lastWriters); });
      op.walk([&](CallOp call) {
        for (Value buffer : call.getWritten())
          lastWriters[skipViews(buffer)] = &op;
      });
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          run(inner);
    }
    for (TapOp tap : llvm::reverse(taps)) {
      Operation *place = tap.getBuffer() ? lastWriters.lookup(skipViews(tap.getBuffer())) : nullptr;
      if (!place)
        place = lastDeclaration;
      Operation *buffer = tap.getBuffer() ? tap.getBuffer().getDefiningOp() : nullptr; // a part behind a loop
      if (buffer && buffer->getBlock() == &block && place && place->isBeforeInBlock(buffer))
        place = buffer;
      prim::walkSymbols(tap, [&](StringRef symbol) {
        Operation *binder = binders.lookup(symbol);
        if (binder && (!place || place->isBeforeInBlock(binder)))
          place = binder;
      });
      if (place)
        tap->moveAfter(place);
    }
  }

private:
  void noteWrites(LaunchOp launch, Operation *place, llvm::DenseMap<Value, Operation *> &writers) {
    for (int64_t written : kernels.lookup<KernelOp>(launch.getKernel()).getArgumentsWritten())
      writers[skipViews(launch.getBuffers()[written])] = place;
  }

  const SymbolTable &kernels;
};

struct PlaceTaps : ptc::impl::PlaceTapsBase<PlaceTaps> {
  void runOnOperation() override {
    SymbolTable kernels(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>())
      TapPlaces(kernels).run(program.getBlock());
  }
};

} // namespace
