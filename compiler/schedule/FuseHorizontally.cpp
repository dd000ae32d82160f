//===- FuseHorizontally.cpp - small independent nodes as one kernel -------===//
//
// A launch costs a device about a microsecond, whatever it does; a decoder that appends to its caches has dozens of
// launches that each copy a few kilobytes. Pointwise nodes that stand next to each other, are independent and would
// leave most of the device idle become one kernel, in which each has blocks of its own.
//
// Nothing changes its place but for views and buffers, and what is large stays alone: so no buffer lives longer than a
// few small nodes take. Where a node could join the ones before it and does not, a remark says why.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/NodeDims.h"
#include "compiler/schedule/Passes.h"
#include "compiler/schedule/StateCopies.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Horizontal.h"
#include "ir/loop/Places.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_FUSEHORIZONTALLY
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

constexpr int64_t mostPoints = 1 << 18; // of a node: about what a device has under way at once
constexpr size_t mostNodes = 32;        // of a kernel: a block looks for its node, and parameters have little room

/// How far apart neighbours along the dim are; nothing if that is not constant.
std::optional<int64_t> getStep(Expr address, StringRef dim) {
  Expr step = address.uses(dim) ? address.coefficientOf(dim) : Expr();
  return step ? step.asConstant() : std::nullopt;
}

/// Where a store writes between multiples of `period`, which some of its dims jump over; nothing if it may jump over
/// the end, or if that is not known.
std::optional<std::pair<int64_t, int64_t>> getPart(StoreOp store, int64_t period) {
  if (!store.getIndexOperands().empty())
    return std::nullopt;
  Expr address = prim::getExprs(store.getIndices())[0];
  SymbolRanges ranges;
  for (auto [dim, extent] : llvm::enumerate(getDomain(getEnclosingNode(store)))) {
    std::string name = dimName(dim);
    std::optional<int64_t> count = extent.asConstant();
    std::optional<int64_t> step = address.uses(name) ? getStep(address, name) : 0;
    if (!count || *count < 1 || !step)
      return std::nullopt;
    ranges[name] = {.min = 0, .max = *step % period == 0 ? 0 : *count - 1};
  }
  ExprRange part = address.range(ranges);
  if (part.min < 0 || part.max >= period)
    return std::nullopt;
  return std::pair(part.min, part.max);
}

/// The stores are to one buffer, but to other elements, as those of parts that become one tensor.
bool isDistinct(StoreOp a, StoreOp b) {
  Expr address = prim::getExprs(a.getIndices())[0];
  SmallVector<int64_t> periods{cast<BufferType>(a.getBuffer().getType()).getElementCount().asConstant().value_or(0)};
  for (size_t dim = 0; dim < getDomain(getEnclosingNode(a)).size(); ++dim)
    periods.push_back(getStep(address, dimName(dim)).value_or(0));
  return llvm::any_of(periods, [&](int64_t period) {
    auto first = period > 0 ? getPart(a, period) : std::nullopt, second = first ? getPart(b, period) : std::nullopt;
    return first && second && (first->second < second->first || second->second < first->first);
  });
}

class BlockFusion {
public:
  BlockFusion(ProgramOp program, Block &block, bool remarks)
      : program(program), block(block), hints(prim::getSymbolHints(program.getSymbols())), remarks(remarks) {
    program.walk([&](Operation *op) {
      if (isa<CallOp, BindOp>(op))
        for (Value operand : op->getOperands())
          hostRoots.insert(getRoot(operand));
    });
  }

  void run() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto fused = dyn_cast<FusedOp>(op);
      StringRef reason = fused ? whyAlone(fused) : StringRef();
      if (fused && reason.empty()) {
        add(fused);
      } else if (fused || !(isa<BufferOp>(op) || isMemoryEffectFree(&op))) {
        if (fused && isPointwise(fused))
          refuse(fused, reason);
        flush("something else runs between them");
      }
    }
    flush({});
  }

private:
  static bool isPointwise(FusedOp fused) {
    Block &body = fused.getBody().front();
    return llvm::hasSingleElement(body) && isa<PointwiseOp>(body.front());
  }

  /// Why it is not a single pointwise node of few points; empty: it is.
  StringRef whyAlone(FusedOp fused) {
    constexpr StringLiteral tooLarge = "it has enough points to keep the device busy";
    if (!isPointwise(fused))
      return "it is not a single pointwise node";
    if (meetsHost(fused))
      return "the host reads or writes what it does";
    if (std::optional<BufferCopy> copy = matchCopy(&fused.getBody().front().front());
        copy && (isState(program, copy->from) || isState(program, copy->to)))
      return "it copies state, which is nothing to do where that is updated in place";
    int64_t points = 1;
    for (Expr extent : getDomain(&fused.getBody().front().front())) {
      std::optional<int64_t> known = extent.evaluate(hints);
      if (!known)
        return "how many points it has is known to a run alone";
      if (*known > mostPoints)
        return tooLarge;
      points *= std::max<int64_t>(*known, 1);
      if (points > mostPoints)
        return tooLarge;
    }
    return {};
  }

  void refuse(FusedOp fused, StringRef reason) {
    if (remarks && !reason.empty())
      fused.getBody().front().front().emitRemark("shares no kernel with the pointwise nodes before it: ") << reason;
  }

  /// It has to do with what the host looks at, and may run there: strings, sequences, operands of the runtime's
  /// functions and sizes.
  bool meetsHost(FusedOp fused) {
    SmallVector<Value> reads, writes;
    collectAccesses(fused, reads, writes);
    reads.append(writes);
    return llvm::any_of(
        reads, [&](Value buffer) { return holdsHandles(skipViews(buffer)) || hostRoots.contains(getRoot(buffer)); });
  }

  Value getRoot(Value buffer) { return loop::getRoot(program, buffer); }

  /// Both may write to one place: to the same buffer, and not to parts that are known to be distinct.
  bool mayMeet(FusedOp a, FusedOp b) {
    auto storesOf = [](FusedOp fused) {
      SmallVector<StoreOp> stores;
      fused.walk([&](StoreOp store) { stores.push_back(store); });
      return stores;
    };
    for (StoreOp first : storesOf(a))
      for (StoreOp second : storesOf(b))
        if (getRoot(first.getBuffer()) == getRoot(second.getBuffer()) && !isDistinct(first, second))
          return true;
    return false;
  }

  void add(FusedOp fused) {
    SmallVector<Value> reads, writes;
    collectAccesses(fused, reads, writes);
    for (SmallVector<Value> *values : {&reads, &writes})
      for (Value &value : *values)
        value = getRoot(value);
    auto touches = [](ArrayRef<Value> values, const llvm::DenseSet<Value> &set) {
      return llvm::any_of(values, [&](Value value) { return set.contains(value); });
    };
    StringRef reason = members.size() == mostNodes ? "the kernel has as many as fit"
                       : touches(reads, written)   ? "it reads what they write"
                       : touches(writes, read)     ? "it writes what they read"
                       : llvm::any_of(members, [&](FusedOp member) { return mayMeet(member, fused); })
                           ? "it may write where they write"
                       : members.empty() ? interruption
                                         : StringRef();
    refuse(fused, reason);
    if (!reason.empty() && !members.empty())
      flush({});
    members.push_back(fused);
    read.insert(reads.begin(), reads.end());
    written.insert(writes.begin(), writes.end());
  }

  /// The members become one, where the last of them stands: all that they use is defined there. `reason`: why what
  /// follows does not join them; empty: that was said.
  void flush(StringRef reason) {
    interruption = members.empty() ? interruption : reason;
    if (members.size() > 1) {
      FusedOp last = members.back();
      Block &body = last.getBody().front();
      Operation *own = &body.front();
      SmallVector<Location> locations;
      for (FusedOp member : members) {
        locations.push_back(member.getLoc());
        if (member != last)
          member.getBody().front().front().moveBefore(own);
      }
      last.setParallel(0);
      setHorizontal(last);
      last->setLoc(FusedLoc::get(last.getContext(), locations));
      for (FusedOp member : ArrayRef(members).drop_back())
        member.erase();
    }
    members.clear();
    read.clear();
    written.clear();
  }

  ProgramOp program;
  Block &block;
  SymbolValues hints;
  bool remarks;
  SmallVector<FusedOp> members;
  StringRef interruption;              // why the next member does not join those before it
  llvm::DenseSet<Value> read, written; // by the members
  llvm::DenseSet<Value> hostRoots;
};

struct FuseHorizontally : ptc::impl::FuseHorizontallyBase<FuseHorizontally> {
  using FuseHorizontallyBase::FuseHorizontallyBase;
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SmallVector<Block *> blocks{&program.getBlock()};
      program.walk([&](Operation *op) {
        if (isControlFlow(op))
          for (Region &region : op->getRegions())
            blocks.push_back(&region.front());
      });
      for (Block *block : blocks)
        BlockFusion(program, *block, remarks).run();
    }
  }
};

} // namespace
