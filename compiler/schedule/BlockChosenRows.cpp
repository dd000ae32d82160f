//===- BlockChosenRows.cpp - products by weights that points choose -------===//
//
// A product of single columns, which is a sum (of a mixture of experts), may read another weight at each point of its
// outer dims, told by a loaded index:
//
//   y[p, i] = sum over k of w[choice[p]][i, k] * x[p, k]
//
// Point after point a whole weight would come from the last cache or from memory for each. Blocks of a few rows i
// outside of the points are read by all points that choose them while they lie in the second-level cache; code
// generation takes those points one after the other (codegen/cpu/ChosenPoints.cpp):
//
//   (p, i)  becomes  (i / 8, p, i mod 8)
//
// It takes 0.75 to 0.85 of a whole model's time at 16 tokens and more.
// With few points there is little to share, and shorter runs of memory cost 1 to 4 %.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Scheduler.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int64_t rowsOfBlock = 8;
static constexpr int64_t fewestPoints = 16; // that the hints promise

/// Whether the value is computed of loads that see none of the node's dims from `first` on.
static bool isOfDimsBefore(Value value, unsigned first) {
  Operation *op = value.getDefiningOp();
  auto load = dyn_cast_if_present<LoadOp>(op);
  auto isLater = [&](StringRef symbol) {
    auto dim = getDimNumber(symbol);
    return dim && *dim >= first;
  };
  if (!op || isa<IndexOp>(op) || (load && prim::getExprs(load.getIndices())[0].usesAny(isLater)))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return isa<BufferType>(operand.getType()) || isOfDimsBefore(operand, first);
  });
}

/// Whether rows are read at a place that a loaded index tells, the same for all rows of a point.
static bool choosesByPoint(ReductionOp product, unsigned row) {
  bool isChosen = false, isByPoint = true;
  std::string name = dimName(row);
  product.walk([&](LoadOp load) {
    if (load.getIndexOperands().empty() || !prim::getExprs(load.getIndices())[0].uses(name))
      return;
    isChosen = true;
    isByPoint &= llvm::all_of(load.getIndexOperands(), [&](Value index) { return isOfDimsBefore(index, row); });
  });
  return isChosen && isByPoint;
}

void loop::blockChosenRows(ReductionOp product, const FusionContext &context) {
  SmallVector<Expr> domain = getDomain(product);
  unsigned kept = getKeptCount(product);
  if (context.hasDevice || kept < 2)
    return;
  unsigned row = kept - 1;
  auto rows = domain[row].asConstant();
  MLIRContext *mlirContext = product.getContext();
  int64_t points = ptc::product(mlirContext, ArrayRef(domain).take_front(row)).evaluate(context.hints).value_or(0);
  if (!rows || *rows % rowsOfBlock || *rows <= rowsOfBlock || points < fewestPoints || !choosesByPoint(product, row))
    return;
  SmallVector<Expr> oldDims, blocked = {Expr::constant(mlirContext, *rows / rowsOfBlock)};
  for (unsigned dim = 0; dim < domain.size(); ++dim) {
    blocked.push_back(dim == row ? Expr::constant(mlirContext, rowsOfBlock) : domain[dim]);
    oldDims.push_back(Expr::dim(mlirContext, dim + 1));
  }
  oldDims[row] = Expr::dim(mlirContext, 0) * rowsOfBlock + oldDims[row];
  rewriteDims(product, blocked, oldDims, context.symbols);
}
