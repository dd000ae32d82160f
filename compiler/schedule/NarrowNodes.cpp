//===- NarrowNodes.cpp - nodes over what is read of their results ---------===//
//
// What a node writes may be read in part: a causal convolution is padded at both ends and its last outputs are cut off.
// A dim of the node that counts an index of the buffer need not run over what lies before the first and behind the last
// of those that anybody reads:
//
//   store B[.., di, ..] for di in [0, n), all loads of it in [low, high]  ->  store B[.., low + di, ..] for di in
//   [0, high - low + 1)
//
// Nodes that read the slice then run over the same points, and are merged with it. The buffer keeps its size: what is
// read lies where it lay. Refused: nodes that write several buffers, each of which wants points of its own.
//
// Consumers come before their producers, so that a slice of a slice narrows both. Cost: one walk over the accesses of
// each node for each dim.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/NodeDims.h"
#include "compiler/schedule/Passes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_NARROWNODES
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

/// Indices [low, high] of one dim of a buffer.
struct IndexRange {
  int64_t low, high;
};

/// The node's only store, if that is all that it writes, each element once.
StoreOp getOnlyStore(Operation *node) {
  StoreOp only;
  unsigned count = 0;
  node->walk([&](StoreOp store) {
    only = store;
    ++count;
  });
  bool isPlain = count == 1 && only.getIndexOperands().empty() && !only.getCombine();
  return isPlain && only.getBuffer().getDefiningOp<BufferOp>() ? only : StoreOp();
}

/// What loads read of the buffer along its dim number `dim`; nothing if others than loads and the store use it.
std::optional<IndexRange> findRead(StoreOp store, unsigned dim, const SymbolRanges &symbols) {
  std::optional<IndexRange> read;
  for (Operation *user : store.getBuffer().getUsers()) {
    if (user == store)
      continue;
    auto load = dyn_cast<LoadOp>(user);
    if (!load)
      return std::nullopt;
    ExprRange range = prim::getExprs(load.getIndices())[dim].range(getNodeRanges(getEnclosingNode(load), symbols));
    read = read ? IndexRange{std::min(read->low, range.min), std::max(read->high, range.max)}
                : IndexRange{range.min, range.max};
  }
  return read;
}

/// Narrows dim number `dim` of the node to the points from `first` on, `count` of them.
void narrowDim(Operation *node, unsigned dim, int64_t first, int64_t count, const SymbolRanges &symbols) {
  MLIRContext *context = node->getContext();
  SmallVector<Expr> domain = getDomain(node), oldDims;
  for (unsigned old = 0; old < domain.size(); ++old)
    oldDims.push_back(Expr::dim(context, old) + (old == dim ? first : 0));
  domain[dim] = Expr::constant(context, count);
  rewriteDims(node, domain, oldDims, symbols);
}

void narrow(Operation *node, const SymbolRanges &symbols) {
  StoreOp store = getOnlyStore(node);
  auto followsDims = [](Expr extent) { return extent.usesAny(isDimSymbol); };
  if (!store || llvm::any_of(getDomain(node), followsDims))
    return;
  for (auto [at, index] : llvm::enumerate(prim::getExprs(store.getIndices())))
    for (unsigned dim = 0; dim < getKeptCount(node); ++dim) {
      auto extent = getDomain(node)[dim].asConstant();
      if (!extent || index != Expr::dim(node->getContext(), dim))
        continue;
      std::optional<IndexRange> read = findRead(store, unsigned(at), symbols);
      if (!read)
        return;
      int64_t low = std::max<int64_t>(read->low, 0), high = std::min(read->high, *extent - 1);
      if (low <= high && high - low + 1 < *extent)
        narrowDim(node, dim, low, high - low + 1, symbols);
    }
}

struct NarrowNodes : ptc::impl::NarrowNodesBase<NarrowNodes> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
      SmallVector<Operation *> nodes;
      program.walk([&](Operation *op) {
        if (isa<PointwiseOp, ReductionOp>(op))
          nodes.push_back(op);
      });
      for (Operation *node : llvm::reverse(nodes))
        narrow(node, symbols);
    }
  }
};

} // namespace
