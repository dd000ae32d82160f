//===- UpdateInPlace.cpp - state is computed where it lies ----------------===//
//
// A result that shares an argument's memory (--alias) is computed in a buffer of its own, which the last launches copy
// over the argument: others may read that to the end. Here the order of launches is known. Where nothing reads the
// argument any more once the buffer is written for the first time, the buffer is the argument's memory, and the copy is
// none. The launch that writes first may read the argument itself, if it needs no element that it has written
// (InPlaceReuse.cpp):
//
//   launch @add(%s, %x, %b)         launch @add(%s, %x, %t)
//   launch @copy(%b, %t)      =>
//
// A scatter begins by copying its source. If that is the argument, the source lies where the copy would, so that of a
// cache of keys and values only the elements that change are touched.
//
//===----------------------------------------------------------------------===//

#include "compiler/memory/InPlaceReuse.h"
#include "compiler/schedule/Passes.h"
#include "compiler/schedule/StateCopies.h"
#include "ir/loop/Places.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_UPDATEINPLACE
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

std::optional<BufferCopy> loop::matchCopy(Operation *op) {
  auto node = dyn_cast<PointwiseOp>(op);
  if (!node || llvm::range_size(node.getBody().front()) != 2)
    return std::nullopt;
  auto load = dyn_cast<LoadOp>(node.getBody().front().front());
  auto store = dyn_cast<StoreOp>(node.getBody().front().back());
  if (!load || !store || store.getValue() != load.getResult() || load.getIndices() != store.getIndices() ||
      !load.getIndexOperands().empty() || store.getCombine())
    return std::nullopt;
  Value from = load.getBuffer(), to = store.getBuffer();
  SmallVector<Expr> domain = getDomain(node), indices = prim::getExprs(store.getIndices());
  if (from.getType() != to.getType() || domain.size() != 1 || indices.size() != 1 ||
      indices[0] != Expr::dim(node.getContext(), 0) || domain[0] != cast<BufferType>(to.getType()).getElementCount())
    return std::nullopt;
  return BufferCopy{from, to};
}

bool loop::isState(ProgramOp program, Value buffer) {
  Value root = getRoot(program, buffer);
  ArrayRef<int64_t> pairs = program.getAliases();
  for (size_t i = 0; i + 1 < pairs.size(); i += 2)
    if (root == program.getInputArgs()[pairs[i]])
      return true;
  return false;
}

namespace {

class StateUpdates {
public:
  StateUpdates(ProgramOp program, SymbolTable &kernels) : program(program), kernels(kernels) {}

  void run() {
    SmallVector<LaunchOp> launches = llvm::to_vector(program.getBlock().getOps<LaunchOp>());
    for (LaunchOp launch : llvm::reverse(launches)) {
      std::optional<SmallVector<BufferCopy>> copies = findCopies(launch);
      if (!copies || !llvm::all_of(*copies, [&](BufferCopy copy) { return canElide(copy, launch); }))
        continue;
      for (BufferCopy copy : *copies)
        if (auto buffer = copy.from.getDefiningOp<BufferOp>()) {
          copy.to.getDefiningOp()->moveBefore(&program.getBlock(), program.getBlock().begin());
          buffer.getResult().replaceAllUsesWith(copy.to);
          buffer.erase();
        }
      KernelOp kernel = kernels.lookup<KernelOp>(launch.getKernel());
      launch.erase();
      if (SymbolTable::symbolKnownUseEmpty(kernel, program->getParentOp()))
        kernels.erase(kernel);
    }
  }

private:
  /// Strings, and elements below one byte, have another form outside, and memory of their own for this one.
  bool isSameOutside(BlockArgument argument) {
    Type element = cast<TypeAttr>(program.getInputTypes()[argument.getArgNumber()]).getValue();
    return element.isInteger(1) || (element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 8);
  }

  /// What a launch copies, if it does nothing else.
  std::optional<SmallVector<BufferCopy>> findCopies(LaunchOp launch) {
    SmallVector<BufferCopy> copies;
    for (Operation &op : kernels.lookup<KernelOp>(launch.getKernel()).getBlock()) {
      std::optional<BufferCopy> copy = matchCopy(&op);
      auto from = copy ? dyn_cast<BlockArgument>(copy->from) : BlockArgument();
      auto to = copy ? dyn_cast<BlockArgument>(copy->to) : BlockArgument();
      bool isTaken = llvm::any_of(
          copies, [&](BufferCopy other) { return from && other.from == launch.getBuffers()[from.getArgNumber()]; });
      if (!from || !to || isTaken) // one buffer is in one place
        return std::nullopt;
      copies.push_back({launch.getBuffers()[from.getArgNumber()], launch.getBuffers()[to.getArgNumber()]});
    }
    return copies;
  }

  bool canElide(BufferCopy copy, LaunchOp launch) {
    Value argument = getRoot(program, copy.to);
    if (argument == skipViews(copy.to) || copy.from.getType() != copy.to.getType() || // no result that shares memory
        !isSameOutside(cast<BlockArgument>(argument)))
      return false;
    if (getRoot(program, copy.from) == argument)
      return true;
    auto buffer = copy.from.getDefiningOp<BufferOp>();
    return buffer && copy.to.getDefiningOp<FlattenOp>() && isUsedHereAlone(buffer.getResult()) &&
           usesOf(skipViews(copy.to)).size() == 1 && isFree(argument, buffer.getResult(), launch);
  }

  /// Operations that use the value, also by way of views.
  static SmallVector<Operation *> usesOf(Value value) {
    SmallVector<Operation *> uses;
    for (Operation *user : value.getUsers())
      if (isa<FlattenOp, PartOp>(user))
        llvm::append_range(uses, usesOf(user->getResult(0)));
      else
        uses.push_back(user);
    return uses;
  }

  bool isUsedHereAlone(Value buffer) {
    return llvm::all_of(usesOf(buffer), [&](Operation *use) {
      return isa<TapOp>(use) || (isa<LaunchOp>(use) && use->getBlock() == &program.getBlock());
    });
  }

  /// Whether the argument's elements are needed no more once the buffer's are written.
  bool isFree(Value argument, Value buffer, LaunchOp copy) {
    LaunchOp first = copy;
    for (Operation *use : usesOf(buffer))
      if (auto launch = dyn_cast<LaunchOp>(use); launch && launch->isBeforeInBlock(first))
        first = launch;
    return llvm::all_of(usesOf(argument), [&](Operation *use) {
      Operation *here = program.getBlock().findAncestorOpInBlock(*use);
      return !isa<TapOp>(use) &&
             (here == first ? isReadInPlace(first, argument, buffer) : here->isBeforeInBlock(first));
    });
  }

  bool isReadInPlace(LaunchOp launch, Value argument, Value buffer) {
    std::optional<unsigned> read, written;
    for (auto [index, each] : llvm::enumerate(launch.getBuffers())) {
      Value root = skipViews(each);
      if (root != argument && root != buffer)
        continue;
      std::optional<unsigned> &place = root == argument ? read : written;
      if (place || isa_and_nonnull<PartOp>(each.getDefiningOp()))
        return false;
      place = unsigned(index);
    }
    Block &block = kernels.lookup<KernelOp>(launch.getKernel()).getBlock();
    return read && written && mayReuse(block.getArgument(*read), block.getArgument(*written));
  }

  ProgramOp program;
  SymbolTable &kernels;
};

struct UpdateInPlace : ptc::impl::UpdateInPlaceBase<UpdateInPlace> {
  void runOnOperation() override {
    SymbolTable kernels(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>())
      if (!program.getAliases().empty())
        StateUpdates(program, kernels).run();
  }
};

} // namespace
