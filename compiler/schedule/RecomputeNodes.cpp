//===- RecomputeNodes.cpp - cheap values computed by their readers --------===//
//
// x - mean has two readers: the sum of its squares, and what divides it by their root. Where the two run in one loop it
// stays in cache between them. Where they cannot, because the sum needs the whole image, it would be written to memory
// and read twice, to save one subtraction.
//
// So is it where they could, but a row is too long for the first-level cache (the groups of a normalisation, the
// logarithm of a softmax over a vocabulary): x is there still, and read in place of what would be written beside it. In
// short rows, and across rows, the subtraction costs more than it saves (measured: 1.04 to 1.2 of the time). Only where
// values cost an addition or two of what is an argument or has other readers, which lies in memory anyway. Not
// products: with an addition behind them, in one reader, they are rounded otherwise than in another one.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/RecomputeNodes.h"
#include "compiler/schedule/MergeNodes.h"
#include "compiler/schedule/Passes.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_RECOMPUTENODES
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

static constexpr unsigned mostReaders = 4;
static constexpr unsigned mostOps = 4;        // of arithmetic, which loads and stores of the value hide
static constexpr int64_t smallShare = 1 << 4; // what is read besides has at most a sixteenth of the points

/// Whether the op takes a cycle or so for each vector.
static bool isCheap(Operation &op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::ExtFOp>(op);
}

/// Whether a sum writes the buffer, or what a few pointwise nodes make of one does.
static bool isOfSum(Value buffer, unsigned depth = 0) {
  constexpr unsigned mostNodes = 3;
  return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
    if (!isa<StoreOp>(user))
      return false;
    auto node = dyn_cast<PointwiseOp>(user->getParentOp());
    return isa<ReductionOp>(user->getParentOp()) ||
           (node && depth < mostNodes &&
            llvm::any_of(
                node.getBody().getOps<LoadOp>(), [&](LoadOp load) { return isOfSum(load.getBuffer(), depth + 1); }));
  });
}

/// The node that computes the value, if it is one and pointwise.
static PointwiseOp getWriter(Value buffer) {
  PointwiseOp node;
  for (Operation *user : buffer.getUsers())
    if (auto store = dyn_cast<StoreOp>(user)) {
      if (node || isIndirect(store) || store.getCombine())
        return {};
      node = dyn_cast<PointwiseOp>(store->getParentOp());
      if (!node)
        return {};
    }
  return node;
}

/// Whether what the node reads there is more than little beside its points.
static bool isLarge(Value buffer, PointwiseOp node, const SymbolValues &hints) {
  auto points = product(node.getContext(), getDomain(node)).evaluate(hints);
  auto elements = cast<BufferType>(buffer.getType()).getElementCount().evaluate(hints);
  return !points || !elements || *elements * smallShare > *points;
}

/// Whether the node is computed of many values and a few sums.
static bool waitsForSum(PointwiseOp node, const SymbolValues &hints) {
  return llvm::any_of(node.getBody().getOps<LoadOp>(), [&](LoadOp load) {
    return !isLarge(load.getBuffer(), node, hints) && isOfSum(load.getBuffer());
  });
}

/// The node that computes the value, if it is a cheap one, and waits for a sum: others may be part of what makes the
/// large value (a product's bias).
static PointwiseOp findSource(Value buffer, const SymbolValues &hints) {
  PointwiseOp node = getWriter(buffer);
  if (!node || !waitsForSum(node, hints))
    return {};
  unsigned large = 0, ops = 0, stores = 0;
  for (Operation &op : node.getBody().front()) {
    if (auto load = dyn_cast<LoadOp>(op)) {
      if (isIndirect(load))
        return {};
      large += isLarge(load.getBuffer(), node, hints);
    } else if (isa<StoreOp>(op)) {
      ++stores;
    } else if (isCheap(op)) {
      ++ops;
    } else if (!isa<arith::ConstantOp>(op)) {
      return {};
    }
  }
  return stores == 1 && large == 1 && ops <= mostOps ? node : PointwiseOp();
}

bool loop::runsBesideSum(Value buffer, const SymbolValues &hints) {
  PointwiseOp node = getWriter(buffer);
  return node && waitsForSum(node, hints) && !findSource(buffer, hints);
}

/// The source's dims at a place that reads what it writes, if each point of the reader reads another element and what
/// the source reads of as many elements is read without divisions then.
static std::optional<SmallVector<Expr>> locateRead(PointwiseOp source, StoreOp store, LoadOp load,
                                                   const SymbolRanges &symbols, const SymbolValues &hints) {
  Operation *reader = load->getParentOp();
  MLIRContext *context = source.getContext();
  Expr points = product(context, getDomain(source)).simplify(symbols);
  if (!isa<PointwiseOp, ReductionOp>(reader) || isIndirect(load) ||
      product(context, getDomain(reader)).simplify(symbols) != points)
    return std::nullopt;
  SymbolRanges ranges = getNodeRanges(reader, symbols);
  auto dims = locate(getAddress(store), getDomain(source), getAddress(load), ranges, hints);
  if (!dims)
    return std::nullopt;
  for (LoadOp read : source.getBody().getOps<LoadOp>()) {
    Expr address = substituteDims(getAddress(read), *dims);
    if (isLarge(read.getBuffer(), source, hints) && countDivisions(address.simplify(ranges)) > 0)
      return std::nullopt;
  }
  return dims;
}

bool loop::recomputeInReaders(Value buffer, const SymbolRanges &symbols, const SymbolValues &hints) {
  PointwiseOp source = buffer.getDefiningOp<BufferOp>() ? findSource(buffer, hints) : PointwiseOp();
  if (!source)
    return false;
  StoreOp store = getOnlyStore(source, buffer);
  SmallVector<std::pair<LoadOp, SmallVector<Expr>>> reads;
  for (Operation *user : buffer.getUsers()) {
    if (user == store)
      continue;
    auto load = dyn_cast<LoadOp>(user);
    auto dims = load && load->getBlock()->getParentOp()->getBlock() == source->getBlock()
                    ? locateRead(source, store, load, symbols, hints)
                    : std::nullopt;
    if (!dims || reads.size() == mostReaders)
      return false;
    reads.push_back({load, *dims});
  }
  llvm::DenseMap<std::pair<Operation *, Attribute>, Value> values; // of a reader at an address
  for (auto &[load, dims] : reads) {
    Operation *reader = load->getParentOp();
    Value &value = values[{reader, getAddress(load)}];
    if (!value) {
      SymbolRanges ranges = getNodeRanges(reader, symbols);
      OpBuilder b = OpBuilder::atBlockBegin(load->getBlock());
      IRMapping mapping;
      for (Operation &op : source.getBody().front())
        if (&op != store)
          cloneWithDims(b, op, mapping, dims, ranges);
      value = mapping.lookup(store.getValue());
    }
    load.getResult().replaceAllUsesWith(value);
    load.erase();
  }
  source.erase();
  buffer.getDefiningOp()->erase();
  return true;
}

/// Whether somebody reduces the buffer along rows, as they lie in memory, that the first-level cache does not hold.
static bool isReducedInLongRows(Value buffer, const SymbolValues &hints) {
  constexpr int64_t nearBytes = 1 << 15;
  return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
    auto load = dyn_cast<LoadOp>(user);
    auto sum = load ? dyn_cast<ReductionOp>(load->getParentOp()) : ReductionOp();
    if (!sum)
      return false;
    SmallVector<Expr> domain = getDomain(sum);
    Expr step = getAddress(load).coefficientOf(dimName(domain.size() - 1));
    auto elements = product(sum.getContext(), ArrayRef(domain).take_back(sum.getReduced())).evaluate(hints);
    return step && step.isConstant(1) && elements &&
           *elements * cast<BufferType>(buffer.getType()).getElementBytes() > nearBytes;
  });
}

/// Whether the node that writes the buffer only adds, and what it reads lies in memory whether it reads that or not.
static bool onlyAdds(Value buffer, const SymbolValues &hints) {
  constexpr int mostAdditions = 2;
  PointwiseOp node = findSource(buffer, hints);
  int additions = 0;
  if (!node)
    return false;
  for (Operation &op : node.getBody().front()) {
    if (isa<arith::MulFOp>(op))
      return false;
    additions += isa<arith::AddFOp, arith::SubFOp>(op);
    auto load = dyn_cast<LoadOp>(op);
    if (!load || !isLarge(load.getBuffer(), node, hints))
      continue;
    auto isOther = [&](Operation *user) { return isa<LoadOp>(user) && user->getParentOp() != node; };
    if (!isa<BlockArgument>(skipViews(load.getBuffer())) && llvm::none_of(load.getBuffer().getUsers(), isOther))
      return false;
  }
  return additions > 0 && additions <= mostAdditions;
}

namespace {

struct RecomputeNodes : ptc::impl::RecomputeNodesBase<RecomputeNodes> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
      SymbolValues hints = prim::getSymbolHints(program.getSymbols());
      SmallVector<BufferOp> buffers;
      program.walk([&](BufferOp buffer) { buffers.push_back(buffer); });
      for (BufferOp buffer : buffers)
        if (isReducedInLongRows(buffer, hints) && onlyAdds(buffer, hints))
          recomputeInReaders(buffer, symbols, hints);
    }
  }
};

} // namespace
