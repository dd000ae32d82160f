//===- PlaceOnHost.cpp - what a device's program leaves to the host -------===//
//
// Strings and sequences lie in the host's memory, functions of the runtime run there, and a device may lack code of
// some kernel. All of that runs on the host inside the same run, and everything else on the device. Which buffer lies
// where follows (Places.h); where the host reads or writes one that lies on the device, a loop.transfer stands in front
// of the launch or behind it.
//
// On the host run
//   - calls;
//   - launches over strings and sequences that the model is given, or that are constants of it. (Others are handles of
//     8 bytes, which a device may move as it moves numbers.)
//   - launches of kernels that the device has no code of;
//   - groups of launches that share buffers among each other, that the host has to do with, and that are small: to run
//     them there takes less time than to bring their operands over and the results back.
// A kernel has one place, so that one with launches in both becomes two.
//
// Transfers are what keeps the device's bytes the truth: the host fetches what it reads, at every place anew, and
// brings back what it has written. So each point of a program can rely on them, whichever branch was taken and in
// whichever round of a loop it is. One is left out where the mirror has the bytes already, which is told within a
// block. What the host writes in part is fetched before; a buffer's life then begins with the transfer, and nothing
// takes its memory in place.
//
// Refused: places chosen buffer by buffer, at each moment (a data-flow problem over branches and loops, for copies that
// cost little beside a wait for the device, which most of them need anyway); memory planned for both sides (the host's
// would be smaller; it is as large as the device's, and pages that nobody touches cost nothing).
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Passes.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Places.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_PLACEONHOST
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

/// Bytes moved and operations of a group: what a processor does in the time of one transfer and its wait.
constexpr int64_t mostWork = 1 << 16;

bool liesInBoth(Value root) { return isa_and_present<WeightOp, ConstantOp>(root.getDefiningOp()); }

//===----------------------------------------------------------------------===//
// Which launches
//===----------------------------------------------------------------------===//

class HostLaunches {
public:
  HostLaunches(ProgramOp program, const SymbolTable &kernels, const WhyNoCode &whyNoCode)
      : program(program), kernels(kernels), whyNoCode(whyNoCode), places(program),
        hints(prim::getSymbolHints(program.getSymbols())) {}

  /// With the reason of each, in order.
  llvm::MapVector<LaunchOp, std::string> find() {
    SmallVector<LaunchOp> others;
    program.walk([&](Operation *op) {
      auto launch = dyn_cast<LaunchOp>(op);
      if (!launch)
        return noteHost(op);
      std::optional<std::string> reason = whyOnHost(launch);
      if (!reason)
        return others.push_back(launch);
      found[launch] = *reason;
      usesHost = true;
      addRoots(launch.getBuffers());
    });
    if (usesHost)
      addNeighbours(others);
    return std::move(found);
  }

private:
  std::optional<std::string> whyOnHost(LaunchOp launch) {
    auto kernel = kernels.lookup<KernelOp>(launch.getKernel());
    if (kernel.getOnHost())
      return kernel.getOnHost()->str();
    if (std::optional<std::string> missing = whyNoCode ? whyNoCode(kernel) : std::nullopt)
      return "the device has no code of " + *missing;
    if (llvm::any_of(launch.getBuffers(), [&](Value buffer) { return holdsHandles(places.getRoot(buffer)); }))
      return std::string("strings and sequences lie there");
    return std::nullopt;
  }

  /// What else the host looks at.
  void noteHost(Operation *op) {
    usesHost |= isa<CallOp>(op);
    if (isa<CallOp, BindOp>(op) || isControlFlow(op))
      addRoots(op->getOperands());
  }

  void addRoots(ValueRange buffers) {
    for (Value buffer : buffers)
      if (Value root = places.getRoot(buffer); !liesInBoth(root))
        hostRoots.insert(root);
  }

  /// Operations and bytes at the hint; nothing where that is not known.
  std::optional<int64_t> countWork(LaunchOp launch) {
    auto kernel = kernels.lookup<KernelOp>(launch.getKernel());
    SymbolValues values;
    for (auto [name, value] :
         llvm::zip_equal(kernel.getSymbols().getAsValueRange<StringAttr>(), prim::getExprs(launch.getSymbols())))
      if (std::optional<int64_t> number = value.evaluate(hints))
        values[name] = *number;
    int64_t work = 0;
    for (std::optional<ExprAttr> attr : {kernel.getFlops(), kernel.getBytesRead(), kernel.getBytesWritten()}) {
      std::optional<int64_t> part = attr ? Expr(*attr).evaluate(values) : std::nullopt;
      if (!part || *part > mostWork)
        return std::nullopt;
      work += *part;
    }
    return work;
  }

  void addNeighbours(ArrayRef<LaunchOp> launches) {
    llvm::EquivalenceClasses<size_t> groups;
    llvm::DenseMap<Value, size_t> firstUser;
    for (auto [index, launch] : llvm::enumerate(launches)) {
      groups.insert(index);
      for (Value buffer : LaunchOp(launch).getBuffers())
        if (Value root = places.getRoot(buffer); !liesInBoth(root))
          groups.unionSets(index, firstUser.try_emplace(root, index).first->second);
    }
    struct Group {
      bool meetsHost = false, isSmall = true;
      int64_t work = 0;
    };
    llvm::DenseMap<size_t, Group> known;
    for (auto [index, launch] : llvm::enumerate(launches)) {
      Group &group = known[groups.getLeaderValue(index)];
      std::optional<int64_t> work = countWork(launch);
      group.isSmall &= work && (group.work += *work) <= mostWork;
      group.meetsHost |= llvm::any_of(LaunchOp(launch).getBuffers(),
                                      [&](Value buffer) { return hostRoots.contains(places.getRoot(buffer)); });
    }
    for (auto [index, launch] : llvm::enumerate(launches))
      if (const Group &group = known[groups.getLeaderValue(index)]; group.meetsHost && group.isSmall)
        found[launch] = "its operands or results are there, and it is small";
  }

  ProgramOp program;
  const SymbolTable &kernels;
  const WhyNoCode &whyNoCode;
  Places places; // before anything is placed: for roots
  SymbolValues hints;
  bool usesHost = false;
  llvm::DenseSet<Value> hostRoots;
  llvm::MapVector<LaunchOp, std::string> found;
};

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Whether the kernel's one store to the argument writes each element: stores of a node that is no scatter never meet,
/// so that as many points as elements are all of them.
bool writesAll(BlockArgument argument) {
  if (!argument.hasOneUse())
    return false;
  auto store = dyn_cast<StoreOp>(*argument.user_begin());
  Operation *node = store ? store->getParentOp() : nullptr;
  if (!isa_and_present<PointwiseOp, ReductionOp, ScanOp, ContractionOp, AttentionOp>(node) || store.getCombine() ||
      !store.getIndexOperands().empty())
    return false;
  Expr address = prim::getExprs(store.getIndices())[0], points = Expr::constant(node->getContext(), 1);
  for (auto [dim, extent] : llvm::enumerate(getDomain(node)))
    if (address.uses(dimName(dim)))
      points = points * extent;
  return points == cast<BufferType>(argument.getType()).getElementCount();
}

class Transfers {
public:
  Transfers(ProgramOp program, const SymbolTable &kernels) : places(program), kernels(kernels) {}

  void insert(Block &block) {
    llvm::SmallSetVector<Value, 8> mirrored; // views whose mirrors are as the device's bytes are
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto launch = dyn_cast<LaunchOp>(op))
        visit(launch, mirrored);
      else if (auto call = dyn_cast<CallOp>(op))
        surround(call, call.getRead(), call.getWritten(), mirrored);
      else if (auto regrow = dyn_cast<RegrowOp>(op))
        forget(regrow.getBuffer(), mirrored);
      if (op.getNumRegions())
        mirrored.clear();
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          insert(inner);
    }
  }

private:
  using Mirrored = llvm::SmallSetVector<Value, 8>;

  void visit(LaunchOp launch, Mirrored &mirrored) {
    auto kernel = kernels.lookup<KernelOp>(launch.getKernel());
    SmallVector<Value> read, written;
    for (auto [index, buffer] : llvm::enumerate(launch.getBuffers())) {
      bool isWritten = llvm::is_contained(kernel.getArgumentsWritten(), int64_t(index));
      if (isWritten)
        written.push_back(buffer);
      if (!isWritten || !writesAll(kernel.getBlock().getArgument(unsigned(index))))
        read.push_back(buffer);
    }
    if (kernel.getOnHost())
      return surround(launch, read, written, mirrored);
    for (Value buffer : written)
      forget(buffer, mirrored);
  }

  void surround(Operation *op, ValueRange read, ValueRange written, Mirrored &mirrored) {
    OpBuilder builder(op);
    for (Value buffer : read)
      if (isApart(buffer) && mirrored.insert(buffer))
        TransferOp::create(builder, op->getLoc(), buffer, /*to_device=*/false);
    builder.setInsertionPointAfter(op);
    llvm::SmallSetVector<Value, 4> back(written.begin(), written.end());
    for (Value buffer : back)
      if (isApart(buffer)) {
        TransferOp::create(builder, op->getLoc(), buffer, /*to_device=*/true);
        mirrored.insert(buffer);
      }
  }

  /// Whether the host has to bring the buffer over.
  bool isApart(Value buffer) { return !liesInBoth(places.getRoot(buffer)) && !places.isOnHost(buffer); }

  void forget(Value buffer, Mirrored &mirrored) {
    mirrored.remove_if([&](Value view) { return places.getRoot(view) == places.getRoot(buffer); });
  }

  Places places; // before there are transfers
  const SymbolTable &kernels;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Kernels of the host, made as they are asked for; those that no launch needs any more vanish in the end.
class HostKernels {
public:
  explicit HostKernels(ModuleOp module) : kernels(module) {}

  void use(LaunchOp launch, StringRef reason) {
    auto kernel = kernels.lookup<KernelOp>(launch.getKernel());
    if (kernel.getOnHost())
      return;
    KernelOp &host = copies[kernel];
    if (!host) {
      host = kernel.clone();
      host.setSymName((kernel.getSymName() + "_host").str());
      host.setOnHost(reason);
      kernels.insert(host, std::next(kernel->getIterator()));
    }
    launch.setKernel(host.getSymName());
  }

  void eraseUnused(ModuleOp module) {
    llvm::StringSet<> launched;
    module.walk([&](LaunchOp launch) { launched.insert(launch.getKernel()); });
    for (auto [kernel, host] : copies)
      if (!launched.contains(KernelOp(kernel).getSymName()))
        kernels.erase(kernel);
  }

  SymbolTable kernels;

private:
  llvm::MapVector<KernelOp, KernelOp> copies;
};

struct PlaceOnHost : ptc::impl::PlaceOnHostBase<PlaceOnHost> {
  PlaceOnHost(const PlaceOnHostOptions &options, WhyNoCode whyNoCode)
      : PlaceOnHostBase(options), whyNoCode(std::move(whyNoCode)) {}
  PlaceOnHost() = default;

  void runOnOperation() override {
    HostKernels host(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>()) {
      for (auto &[launch, reason] : HostLaunches(program, host.kernels, whyNoCode).find()) {
        LaunchOp op = launch;
        host.use(op, reason);
        if (remarks)
          op->emitRemark("runs on the host: ") << reason;
      }
      if (remarks)
        program.walk([](CallOp call) {
          call->emitRemark("runs on the host: ")
              << (call.getCustomAttr() ? "an operator of your own is a function there"
                                       : "it is a function of the runtime for strings and sequences");
        });
      Transfers(program, host.kernels).insert(program.getBlock());
    }
    host.eraseUnused(getOperation());
  }

  WhyNoCode whyNoCode;
};

} // namespace

std::unique_ptr<Pass> ptc::createPlaceOnHost(const PlaceOnHostOptions &options, WhyNoCode whyNoCode) {
  return std::make_unique<PlaceOnHost>(options, std::move(whyNoCode));
}
