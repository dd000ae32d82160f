//===- SplitSums.cpp - sums run through memory in its order ---------------===//
//
// A sum may be taken in any order. Where what it reads went through a reshape, one dim of the sum stands for several of
// the buffer's: after Flatten, k of a fully connected layer is (channel, row, column), and an image with channels
// innermost is read at [k floordiv 49, k mod 49 floordiv 7, k mod 7], element by element.
//
//   split    k -> 49*k0 + k1 where the body asks for k floordiv 49 or k mod 49; the divisions vanish
//   order    the dims of such a sum then run as the memory of the largest buffer that the node reads
//
// A convolution's sum has its window in front of the channels. Where a picture comes with its channels outermost and no
// window meets a border (patches), the window's columns are the run in memory, three channels are none: such a sum is
// ordered, too, for targets whose tiles walk the innermost dim of a sum. (Of a window at a border whole runs are
// zeros.)
//
// Weights follow: their recipes (PackWeights, which comes next) take the dims of the sum in the order that they have.
//
//===----------------------------------------------------------------------===//

#include "ir/expr/DimName.h"
#include "lowering/prim_to_loop/FunctionLowering.h"
#include "lowering/prim_to_loop/MemoryOrder.h"
#include "lowering/prim_to_loop/Passes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_SPLITSUMS
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

namespace {

/// Reduced dims of a node that may be reordered; they are its last ones.
unsigned getSumDims(Operation *node) {
  if (auto contraction = dyn_cast<ContractionOp>(node))
    return contraction.getK();
  auto reduction = dyn_cast<ReductionOp>(node);
  bool hasPositions = node->walk([](ArgReduceOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return reduction && !hasPositions ? reduction.getReduced() : 0;
}

void setSumDims(Operation *node, int64_t count) {
  if (auto contraction = dyn_cast<ContractionOp>(node))
    contraction.setK(count);
  else
    cast<ReductionOp>(node).setReduced(count);
}

/// Gives the node a new domain; `oldDims[i]` is old dim i in terms of the new ones.
void rewrite(Operation *node, ArrayRef<Expr> domain, ArrayRef<Expr> oldDims, const SymbolRanges &symbols) {
  setDomain(node, domain);
  SymbolRanges ranges = getDomainRanges(symbols, domain);
  auto renamed = [&](StringRef symbol) -> Expr {
    unsigned dim;
    bool isDim = symbol.consume_front("d") && !symbol.getAsInteger(10, dim);
    return isDim && dim < oldDims.size() ? oldDims[dim] : Expr();
  };
  mapBodyExprs(node, [&](Expr expr) { return expr.substitute(renamed); });
  mapBodyExprs(node, [&](Expr expr) { return expr.simplify(ranges); });
}

/// The largest divisor by which an index of the node divides `dim` itself, if the dim can be split there; 0: none.
int64_t findDivisor(Operation *node, unsigned dim, int64_t extent) {
  std::string name = dimName(dim);
  int64_t best = 0;
  auto visit = [&](auto &self, Expr expr) -> void {
    auto operands = expr.getOperands();
    bool divides = expr.getKind() == ExprKind::FloorDiv || expr.getKind() == ExprKind::Mod;
    if (divides && operands[0].isSymbol(name) && operands[1].isConstant()) {
      int64_t divisor = operands[1].getValue();
      if (divisor > 1 && divisor < extent && extent % divisor == 0)
        best = std::max(best, divisor);
    }
    for (Expr operand : operands)
      self(self, operand);
  };
  node->walk([&](LoadOp load) {
    for (Expr index : prim::getExprs(load.getIndices()))
      visit(visit, index);
  });
  return best;
}

/// Splits one dim of the sum; false if there is nothing to split.
bool splitOne(Operation *node, const SymbolRanges &symbols) {
  SmallVector<Expr> domain = getDomain(node), oldDims;
  MLIRContext *context = node->getContext();
  unsigned sums = getSumDims(node);
  for (unsigned dim = domain.size() - sums; dim < domain.size(); ++dim) {
    auto extent = domain[dim].asConstant();
    int64_t divisor = extent ? findDivisor(node, dim, *extent) : 0;
    if (!divisor)
      continue;
    for (unsigned old = 0; old < domain.size(); ++old)
      oldDims.push_back(Expr::dim(context, old <= dim ? old : old + 1));
    oldDims[dim] = Expr::dim(context, dim) * divisor + Expr::dim(context, dim + 1);
    domain[dim] = Expr::constant(context, *extent / divisor);
    domain.insert(domain.begin() + dim + 1, Expr::constant(context, divisor));
    rewrite(node, domain, oldDims, symbols);
    setSumDims(node, sums + 1);
    return true;
  }
  return false;
}

void orderSum(Operation *node, const SymbolRanges &symbols, const SymbolValues &hints) {
  SmallVector<int64_t> places = getMemoryPlaces(node, hints);
  if (places.empty())
    return;
  SmallVector<Expr> domain = getDomain(node), newDomain, oldDims(domain.size());
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, domain.size()));
  auto place = [&](unsigned dim) { return domain[dim].isConstant(1) ? -1 : places[dim]; };
  std::stable_sort(order.end() - getSumDims(node), order.end(),
                   [&](unsigned a, unsigned b) { return place(a) < place(b); });
  for (unsigned dim : order) {
    oldDims[dim] = Expr::dim(node->getContext(), newDomain.size());
    newDomain.push_back(domain[dim]);
  }
  rewrite(node, newDomain, oldDims, symbols);
}

/// Whether the node sums up windows that meet no border.
bool hasInnerWindows(Operation *node) {
  auto product = dyn_cast<ContractionOp>(node);
  return product && product.getK() > 1 && product.getLhs().getOps<MaskedOp>().empty();
}

struct SplitSums : ptc::impl::SplitSumsBase<SplitSums> {
  using SplitSumsBase::SplitSumsBase;
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
      SymbolValues hints = prim::getSymbolHints(program.getSymbols());
      program.walk([&](Operation *node) {
        if (!isa<ContractionOp, ReductionOp>(node))
          return;
        bool split = false;
        while (getSumDims(node) > 0 && splitOne(node, symbols))
          split = true;
        if (split || (orderWindows && hasInnerWindows(node)))
          orderSum(node, symbols, hints);
      });
    }
  }
};

} // namespace
