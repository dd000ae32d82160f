// Plants in the stages: passes that are left out or that undo what a stage has decided.
#include "compiler/schedule/Passes.h"
#include "ir/loop/Loop.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "tests/planted/Plants.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

/// A pass of one function.
struct FunctionPass : PassWrapper<FunctionPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FunctionPass)
  explicit FunctionPass(std::function<void(ModuleOp)> body) : body(std::move(body)) {}
  void runOnOperation() override { body(getOperation()); }
  std::function<void(ModuleOp)> body;
};

std::unique_ptr<Pass> makePass(std::function<void(ModuleOp)> body) {
  return std::make_unique<FunctionPass>(std::move(body));
}

std::string printPass(const Pass &pass) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const_cast<Pass &>(pass).printAsTextualPipeline(os);
  return text;
}

void addPass(OpPassManager &passes, const std::string &text) {
  if (failed(parsePassPipeline(text, passes)))
    llvm::report_fatal_error("a stage's pass cannot be read back: " + StringRef(text));
}

/// The same passes, but the one called `argument` replaced: a manager lets go of no pass, so that all are built anew.
void replacePass(OpPassManager &passes, StringRef argument, function_ref<void(const std::string &text)> replace) {
  std::vector<std::pair<bool, std::string>> texts;
  for (const Pass &pass : passes)
    texts.emplace_back(pass.getArgument() == argument, printPass(pass));
  passes.clear();
  for (const auto &[isReplaced, text] : texts)
    if (isReplaced)
      replace(text);
    else
      addPass(passes, text);
}

SmallVector<Operation *> writersOf(Value buffer) {
  SmallVector<Operation *> writers;
  for (Operation *user : buffer.getUsers())
    if (isa<StoreOp>(user))
      writers.push_back(user->getParentOp());
  return writers;
}

//===----------------------------------------------------------------------===//
// A fusion refused
//===----------------------------------------------------------------------===//

constexpr StringLiteral plantedName = "planted";

/// Control flow is not fused: the node becomes a branch that is always taken, until fusion is over.
void hideNode(ModuleOp module) {
  for (auto program : module.getOps<ProgramOp>()) {
    Operation *last = nullptr;
    for (auto node : program.getBlock().getOps<PointwiseOp>()) {
      SmallVector<Value> read, written;
      collectAccesses(node, read, written);
      if (llvm::any_of(read, [&](Value buffer) { return !writersOf(buffer).empty(); }))
        last = node;
    }
    if (!last)
      continue;
    OpBuilder b(last);
    Expr one = Expr::constant(b.getContext(), 1);
    auto type =
        BufferType::get(b.getContext(), ArrayRef<Expr>(one), b.getI1Type(), LayoutAttr::get(b.getContext(), {0}));
    auto value = DenseElementsAttr::get(RankedTensorType::get({1}, b.getI1Type()), true);
    auto condition = ConstantOp::create(b, last->getLoc(), type, value);
    auto branch = IfOp::create(b, last->getLoc(), condition.getResult(), ArrayAttr());
    branch->setAttr(plantedName, b.getUnitAttr());
    last->moveBefore(&branch.getThenRegion().emplaceBlock(), branch.getThenRegion().front().end());
    branch.getElseRegion().emplaceBlock();
  }
}

void showNode(ModuleOp module) {
  module.walk([](IfOp branch) {
    if (!branch->hasAttr(plantedName))
      return;
    for (Operation &op : llvm::make_early_inc_range(branch.getThenRegion().front()))
      op.moveBefore(branch);
    Operation *condition = branch.getCondition().getDefiningOp();
    branch->erase();
    condition->erase();
  });
}

//===----------------------------------------------------------------------===//
// A copy
//===----------------------------------------------------------------------===//

/// The kernel that reads `buffer`, which another one has written before it.
FusedOp findReader(Value buffer) {
  Operation *writer = nullptr, *reader = nullptr;
  for (Operation *user : buffer.getUsers()) {
    auto kernel = user->getParentOfType<FusedOp>();
    if (!kernel || kernel->getBlock() != buffer.getParentBlock())
      return {};
    Operation *&first = isa<StoreOp>(user) ? writer : reader;
    if (!first || kernel->isBeforeInBlock(first))
      first = kernel;
  }
  return writer && reader && writer != reader ? cast<FusedOp>(reader) : FusedOp();
}

/// One kernel reads a copy of what it read.
void insertCopy(ModuleOp module) {
  for (auto program : module.getOps<ProgramOp>())
    for (auto buffer : llvm::make_early_inc_range(program.getBlock().getOps<BufferOp>())) {
      FusedOp reader = findReader(buffer.getResult());
      if (!reader)
        continue;
      OpBuilder b(buffer);
      BufferType type = buffer.getResult().getType();
      auto copied = cast<BufferOp>(b.clone(*buffer.getOperation()));
      b.setInsertionPoint(reader);
      auto kernel = FusedOp::create(b, reader.getLoc(), 1);
      b.setInsertionPointToEnd(&kernel.getBody().emplaceBlock());
      auto node = PointwiseOp::create(b, reader.getLoc(),
                                      prim::getExprArray(b.getContext(), ArrayRef<Expr>(type.getElementCount())));
      b.setInsertionPointToEnd(&node.getBody().emplaceBlock());
      Expr position = Expr::symbol(b.getContext(), "d0");
      Value element = LoadOp::create(b, reader.getLoc(), buffer.getResult(), ArrayRef<Expr>(position));
      StoreOp::create(b, reader.getLoc(), element, copied.getResult(), ArrayRef<Expr>(position));
      buffer.getResult().replaceUsesWithIf(copied.getResult(),
                                           [&](OpOperand &use) { return reader->isProperAncestor(use.getOwner()); });
      return;
    }
}

//===----------------------------------------------------------------------===//
// A life prolonged
//===----------------------------------------------------------------------===//

/// Looks at the arena's first buffer once more, at the program's end.
void useLate(ModuleOp module) {
  for (auto program : module.getOps<ProgramOp>()) {
    auto buffers = program.getBlock().getOps<BufferOp>();
    auto found = llvm::find_if(buffers, [](BufferOp buffer) { return !buffer->use_empty(); });
    if (found == buffers.end())
      continue;
    OpBuilder b = OpBuilder::atBlockEnd(&program.getBlock());
    Value buffer = (*found).getResult();
    CallOp::create(b, program.getLoc(), "look", ValueRange(buffer), ValueRange(), b.getArrayAttr({}),
                   prim::CustomAttr())
        ->setAttr(plantedName, b.getUnitAttr());
  }
}

void forgetUse(ModuleOp module) {
  module.walk([](CallOp call) {
    if (call->hasAttr(plantedName))
      call->erase();
  });
}

//===----------------------------------------------------------------------===//
// Offsets, launches
//===----------------------------------------------------------------------===//

void shiftOffsets(ModuleOp module) {
  for (auto program : module.getOps<ProgramOp>()) {
    program.walk([](AtOp at) { at.setOffsetAttr(at.getOffset() + int64_t(4)); });
    if (std::optional<Expr> arena = program.getArena())
      program.setArenaAttr(*arena + int64_t(64));
  }
}

int64_t flopsOf(LaunchOp launch) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(launch, launch.getKernelAttr());
  std::optional<Expr> flops = kernel.getFlops();
  return flops ? flops->asConstant().value_or(0) : 0;
}

/// A launch may run twice if it reads nothing of what it writes.
bool isRepeatable(LaunchOp launch) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(launch, launch.getKernelAttr());
  for (int64_t written : kernel.getArgumentsWritten())
    if (llvm::count(launch.getBuffers(), launch.getBuffers()[written]) > 1 ||
        !kernel.getBlock().getArgument(written).getUses().empty())
      for (Operation *user : kernel.getBlock().getArgument(written).getUsers())
        if (!isa<StoreOp>(user) || cast<StoreOp>(user).getCombine())
          return false;
  return true;
}

void repeatLaunches(ModuleOp module, double share) {
  for (auto program : module.getOps<ProgramOp>()) {
    SmallVector<LaunchOp> launches;
    program.walk([&](LaunchOp launch) { launches.push_back(launch); });
    double total = 0;
    for (LaunchOp launch : launches)
      total += flopsOf(launch);
    // The largest first, as long as they fit: the sum comes near the share.
    llvm::stable_sort(launches, [](LaunchOp a, LaunchOp b) { return flopsOf(a) > flopsOf(b); });
    double left = share * total;
    for (LaunchOp launch : launches)
      if (double flops = flopsOf(launch); flops > 0 && flops <= left && isRepeatable(launch)) {
        OpBuilder b(launch);
        b.clone(*launch);
        left -= flops;
      }
  }
}

} // namespace

void test::refuseOneFusion(Phase phase, OpPassManager &passes) {
  if (phase == Phase::Schedule)
    replacePass(passes, "ptc-fuse-nodes", [&](const std::string &fuse) {
      passes.addPass(makePass(hideNode));
      addPass(passes, fuse);
      passes.addPass(makePass(showNode));
    });
}

void test::copyOneBuffer(Phase phase, OpPassManager &passes) {
  if (phase == Phase::Schedule)
    replacePass(passes, "ptc-outline-kernels", [&](const std::string &outline) {
      passes.addPass(makePass(insertCopy));
      addPass(passes, outline);
    });
}

void test::misalignArena(Phase phase, OpPassManager &passes) {
  if (phase == Phase::PlanMemory)
    passes.addPass(makePass(shiftOffsets));
}

void test::prolongOneLife(Phase phase, OpPassManager &passes) {
  if (phase == Phase::Schedule)
    passes.addPass(makePass(useLate));
  if (phase == Phase::PlanMemory)
    passes.addPass(makePass(forgetUse));
}

test::ChangePasses test::repeatWork(double share) {
  return [share](Phase phase, OpPassManager &passes) {
    if (phase == Phase::Schedule)
      passes.addPass(makePass([share](ModuleOp module) { repeatLaunches(module, share); }));
  };
}
