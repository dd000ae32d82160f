//===- CpuContractionNeeded.cpp - tiles leave out terms that are zero -----===//
//
// A product may say at which terms it is zero, or enters sums that nobody reads: where an expression is negative
// (`needed` of loop.contraction), as row - term behind a causal mask. The expression's largest value in a tile tells
// what is left out of all of its sums:
//
//   row - term      terms behind the tile's last row
//   term - column   terms before the tile's first column
//   row - column    all terms, where the tile's first column lies behind its last row
//
// What is left of a tile along the diagonal is computed as ever. Rows of tiles are few beside those of a matrix,
// columns not so few: of 128 x 128 sums of a tile of 12 x 32 two thirds remain, of 128 terms a little more than half.
// The epilogue gets zeros as sums. Tasks become as unequal as rows are, and there are several for each thread.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

namespace {
/// row * r + column * c + term * t + constant
struct TermLimit {
  int64_t ofRow = 0, ofColumn = 0, ofTerm = 0, constant = 0;
};
} // namespace

/// The expression so; none if it asks for other dims, or the product has several of a kind.
static std::optional<TermLimit> matchLimit(const ContractionForm &form, Expr needed) {
  TermLimit limit;
  auto take = [&](int64_t &factor, int64_t first, int64_t dims) {
    Expr rest, own = dims == 1 ? needed.coefficientOf(dimName(first), &rest) : Expr();
    auto known = own ? own.asConstant() : std::nullopt;
    if (known)
      std::tie(factor, needed) = std::pair(*known, rest);
  };
  take(limit.ofRow, form.firstM(), form.mDims);
  take(limit.ofColumn, form.firstN(), form.nDims);
  take(limit.ofTerm, form.firstK(), form.kDims);
  auto constant = needed.asConstant();
  if (!constant || std::abs(limit.ofTerm) > 1)
    return std::nullopt;
  limit.constant = *constant;
  return limit;
}

ContractionTile ContractionEmission::withNeededTerms(ContractionTile tile) {
  bool isPlain = f.rhs.isPacked() && f.group == 1 && f.kLoops.size() == 1 && outputs == 1 && !f.turns;
  for (Expr needed : loop::getNeeded(f.op)) {
    std::optional<TermLimit> limit = matchLimit(f, needed);
    if (!isPlain || !limit || (limit->ofTerm > 0 && f.blocks.isSplitK())) // a block's copy begins with its first term
      continue;
    auto mostOf = [&](int64_t factor, Value first, int64_t count) {
      return i.mul(i.add(first, i.constant(factor > 0 ? count - 1 : 0)), i.constant(factor));
    };
    Value column = i.mul(tile.panel, i.constant(panelWidth));
    Value most = i.add(mostOf(limit->ofRow, tile.row, tile.rows.height),
                       mostOf(limit->ofColumn, column, tile.columns.panels * panelWidth));
    most = i.add(most, i.constant(limit->constant));
    if (limit->ofTerm < 0)
      tile.kUpper = i.max(i.min(tile.kUpper, i.add(most, i.constant(1))), tile.kLower);
    else if (limit->ofTerm > 0)
      tile.kLower = i.min(i.max(tile.kLower, i.sub(i.constant(0), most)), tile.kUpper);
    else
      tile.kUpper = i.select(i.compare(arith::CmpIPredicate::sge, most, i.constant(0)), tile.kUpper, tile.kLower);
  }
  return tile;
}
