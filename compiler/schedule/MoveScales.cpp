//===- MoveScales.cpp - scales of a product's terms multiply its weight ---===//
//
// Problem. Squeeze-and-excitation multiplies each channel of an image by a number that the image gives, and a 1 x 1
// convolution reads the result. Fused into the product this is done row by row: each task copies its rows, scaled.
//
// Idea. The number belongs to the term, not to the row:
//
//   sum over k of (s[k] x[m, k]) w[k, n]     ->     sum over k of x[m, k] (s[k] w[k, n])
//
// Rows are read where they are then, and a task copies the columns of its weight, scaled. That is less where there are
// fewer columns than rows: 24 columns by 3136 rows take 0.85 of the time, 16 by 12544 0.75; with 49 rows and 192
// columns it would take 1.07. More columns than a task has rows gain nothing, however many rows there are in all.
//
// Each product is rounded twice as before, in another order, so --fp=strict leaves it out.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/NodeDims.h"
#include "compiler/schedule/Passes.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"
#include "ir/loop/Winograd.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_MOVESCALES
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

static constexpr int64_t fewestRows = 32;   // for which a task converts its weight beforehand
static constexpr int64_t mostColumns = 128; // about the rows of a task

static Value yieldedValue(Region &region) { return cast<YieldOp>(region.front().getTerminator()).getValue(); }

/// The weight in panels that the rhs is, of f32 and nothing else.
static PanelsOp findWeight(ContractionOp product) {
  auto panels = yieldedValue(product.getRhs()).getDefiningOp<PanelsOp>();
  bool isPlain = panels && panels.getType().isF32() && panels.getGroup() == 1 && !panels.getBits() && !panels.getRow();
  return isPlain && !getWinogradTile(product) ? panels : PanelsOp();
}

/// The group's dims as one; nothing if a run tells it.
static std::optional<int64_t> extentOf(ContractionOp product, int group) {
  DimCounts counts(product);
  SmallVector<Expr> domain = getDomain(product);
  int64_t extent = 1;
  for (int64_t dim = counts.first(group); dim < counts.first(group + 1); ++dim) {
    auto known = domain[size_t(dim)].asConstant();
    if (!known)
      return std::nullopt;
    extent *= *known;
  }
  return extent;
}

static bool usesRows(ContractionOp product, Expr index) {
  DimCounts counts(product);
  return llvm::any_of(llvm::seq(counts.first(1), counts.first(2)),
                      [&](int64_t dim) { return index.uses(dimName(dim)); });
}

/// Whether results lie along the columns: else rows and columns change roles, and a weight is read as rows are.
static bool storesColumns(ContractionOp product) {
  DimCounts counts(product);
  int64_t last = counts.first(3) - 1;
  bool along = counts.counts[2] > 0;
  product.getEpilogue().walk([&](StoreOp store) {
    SmallVector<Expr> indices = prim::getExprs(store.getIndices());
    Expr step = indices.size() == 1 ? strideOf(indices[0], last) : Expr();
    along &= step && step.isConstant(1);
  });
  return along;
}

/// The factor of the lhs that is the same for all rows; null: there is none.
static LoadOp findScale(ContractionOp product, arith::MulFOp scaled) {
  for (Value operand : scaled->getOperands()) {
    auto load = operand.getDefiningOp<LoadOp>();
    if (!load || !load->hasOneUse() || load->getParentRegion() != &product.getLhs() || !load.getIndexOperands().empty())
      continue;
    SmallVector<Expr> indices = prim::getExprs(load.getIndices());
    if (indices.size() == 1 && !usesRows(product, indices[0]))
      return load;
  }
  return {};
}

static void moveScale(ContractionOp product) {
  PanelsOp weight = findWeight(product);
  auto scaled = yieldedValue(product.getLhs()).getDefiningOp<arith::MulFOp>();
  auto rows = extentOf(product, 1), columns = extentOf(product, 2);
  if (!weight || !scaled || !rows || !columns || *rows < std::max(fewestRows, *columns + 1) || *columns > mostColumns ||
      !storesColumns(product))
    return;
  LoadOp scale = findScale(product, scaled);
  if (!scale)
    return;
  Value row = scaled->getOperand(scaled->getOperand(0) == scale.getResult() ? 1 : 0);
  scaled.replaceAllUsesWith(row);
  scaled.erase();
  scale->moveAfter(weight);
  OpBuilder b(scale->getBlock(), std::next(scale->getIterator()));
  auto moved = arith::MulFOp::create(b, scale.getLoc(), weight, scale);
  weight.getResult().replaceAllUsesExcept(moved, moved);
}

namespace {
struct MoveScales : ptc::impl::MoveScalesBase<MoveScales> {
  void runOnOperation() override { getOperation().walk(moveScale); }
};
} // namespace
