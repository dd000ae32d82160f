//===- SumSingleColumns.cpp - products of one column are sums -------------===//
//
// A matrix times a vector that is no weight in panels gains nothing by a register tile, and becomes a sum over k when
// its kernel is planned. Here it becomes one before nodes are fused: sums share their points with what makes their rows
// and with what reads them (the states of a recurrence that was unrolled, and what is read out of each), which products
// in tiles do not.
//
// Refused: products of one row, or of a few columns. What is computed of rows is fused into a product's lhs, where each
// row is computed once for a block of columns; into a sum it would go once for each column.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/NodeDims.h"
#include "compiler/schedule/Passes.h"
#include "ir/loop/ContractionDims.h"
#include "ir/loop/Winograd.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_SUMSINGLECOLUMNS
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

static bool isOfOneColumn(ContractionOp product) {
  DimCounts counts(product);
  auto columns = ArrayRef(getDomain(product)).slice(size_t(counts.first(2)), size_t(counts.counts[2]));
  return llvm::all_of(columns, [](Expr extent) { return extent.isConstant(1); });
}

static bool readsPanels(ContractionOp product) {
  return product.walk([](PanelsOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// The product's points and rows are what the sum keeps, apart from each other as they are.
static void replaceBySum(ContractionOp product, const SymbolRanges &symbols) {
  DimCounts counts(product);
  unsigned column = unsigned(counts.first(2)), columns = unsigned(counts.counts[2]);
  ReductionOp sum = replaceByReduction(product);
  SmallVector<Expr> domain = getDomain(sum), oldDims;
  SmallVector<unsigned> kinds = getDimKinds(sum);
  for (unsigned dim = 0; dim < domain.size(); ++dim)
    oldDims.push_back(dim < column             ? Expr::dim(sum.getContext(), dim)
                      : dim < column + columns ? Expr::constant(sum.getContext(), 0)
                                               : Expr::dim(sum.getContext(), dim - columns));
  domain.erase(domain.begin() + column, domain.begin() + column + columns);
  kinds.erase(kinds.begin() + column, kinds.begin() + column + columns);
  rewriteDims(sum, domain, oldDims, symbols);
  setDimKinds(sum, kinds);
}

namespace {
struct SumSingleColumns : ptc::impl::SumSingleColumnsBase<SumSingleColumns> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SmallVector<ContractionOp> products;
      program.walk([&](ContractionOp product) {
        if (isOfOneColumn(product) && !readsPanels(product) && !getWinogradTile(product))
          products.push_back(product);
      });
      SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
      for (ContractionOp product : products)
        replaceBySum(product, symbols);
    }
  }
};
} // namespace
