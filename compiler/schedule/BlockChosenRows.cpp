//===- BlockChosenRows.cpp - products by weights that points choose -------===//
//
// A product of single columns (a mixture of experts) may read another weight at each point of its batch dims, told by a
// loaded index:
//
//   y[p, i] = sum over k of w[choice[p]][i, k] * x[p, k]
//
// Point after point a whole weight would come from the last cache or from memory for each. Blocks of a few rows i
// outside of the points are read by all points that choose them while they lie in the second-level cache:
//
//   (p, i)  becomes  (i / 8, p, i mod 8)
//
// The dim of blocks is a batch dim of the product. It takes 0.75 to 0.85 of a whole model's time at 16 tokens and more.
// With few points there is little to share, and shorter runs of memory cost 1 to 4 %.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Scheduler.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int64_t rowsOfBlock = 8;
static constexpr int64_t fewestPoints = 16; // that the hints promise

/// Whether the lhs is read at a place that a loaded index tells, the same for all rows of a point.
static bool choosesByPoint(ContractionOp product) {
  unsigned batch = product.getBatch();
  auto isNoPoint = [&](StringRef symbol) {
    auto dim = getDimNumber(symbol);
    return dim && *dim >= batch;
  };
  bool isChosen = false, isByPoint = true;
  product.getLhs().walk([&](LoadOp load) {
    if (!load.getIndexOperands().empty())
      isChosen = true;
    else
      isByPoint &= !prim::getExprs(load.getIndices())[0].usesAny(isNoPoint);
  });
  return isChosen && isByPoint;
}

void loop::blockChosenRows(ContractionOp product, const FusionContext &context) {
  SmallVector<Expr> domain = getDomain(product);
  unsigned batch = product.getBatch();
  if (context.hasDevice || product.getM() != 1 || batch == 0)
    return;
  auto rows = domain[batch].asConstant();
  bool isOneColumn =
      llvm::all_of(ArrayRef(domain).slice(batch + 1, product.getN()), [](Expr extent) { return extent.isConstant(1); });
  MLIRContext *mlirContext = product.getContext();
  int64_t points = ptc::product(mlirContext, ArrayRef(domain).take_front(batch)).evaluate(context.hints).value_or(0);
  if (!rows || *rows % rowsOfBlock || *rows <= rowsOfBlock || !isOneColumn || points < fewestPoints ||
      !choosesByPoint(product))
    return;
  SmallVector<Expr> oldDims, blocked = {Expr::constant(mlirContext, *rows / rowsOfBlock)};
  for (unsigned dim = 0; dim < domain.size(); ++dim) {
    blocked.push_back(dim == batch ? Expr::constant(mlirContext, rowsOfBlock) : domain[dim]);
    oldDims.push_back(Expr::dim(mlirContext, dim + 1));
  }
  oldDims[batch] = Expr::dim(mlirContext, 0) * rowsOfBlock + oldDims[batch];
  rewriteDims(product, blocked, oldDims, context.symbols);
  product.setBatch(batch + 1);
}
