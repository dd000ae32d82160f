//===- LinearAlgebra.cpp - determinants and inverses ----------------------===//
//
// Gaussian elimination with partial pivoting, a step a column, each over all
// matrices of a batch at once: the size must be known, and the steps are spelled
// out. A pivot of 0 (a singular matrix) divides as 1; the determinant is 0 then.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

static constexpr int64_t maxSize = 128; // the number of steps

/// x as [batch, M, M]; nothing after a diagnostic.
static std::optional<int64_t> flattenBatch(NodeContext &n, Value &x) {
  int64_t rank = n.rank(x);
  Expr rows = n.dim(x, rank - 2), columns = n.dim(x, rank - 1);
  if (rank < 2 || !n.shapes.assumeEqual(rows, columns)) {
    n.fail(DiagId::WrongRank, 0, rank, "square matrices are needed");
    return std::nullopt;
  }
  Expr size = rows.isConstant() ? rows : columns;
  if (!size.isConstant() || size.getValue() > maxSize) {
    n.failWithHelp("pin it with --dim or --shape", DiagId::UnsupportedForm,
                   "a matrix of " + size.str() + " rows (up to " + std::to_string(maxSize) + " can be known)");
    return std::nullopt;
  }
  Dims dims = n.dims(x);
  x = n.reshape(x, {product(n.getContext(), llvm::ArrayRef(dims).drop_back(2)), size, size});
  return size.getValue();
}

/// The row of a [batch, rows, columns] where column `column` is largest from row `first` on, as [batch, 1].
static Value pivotRow(NodeContext &n, Value a, int64_t column, int64_t first) {
  Value candidates = n.abs(n.at(a, 2, column));
  if (first > 0)
    candidates = n.select(n.less(n.iota(1, n.dims(candidates), n.si64()), n.scalar(first, n.si64())),
                          n.scalarLike(-1, candidates), candidates);
  return n.argReduce(ArgKind::Max, candidates, 1, /*selectLast=*/false, /*keepDims=*/true);
}

/// Row `to` takes the place of row `pivot` of each matrix; also gives what stood there, as [batch, 1, columns].
static std::pair<Value, Value> movePivot(NodeContext &n, Value a, Value pivot, int64_t to) {
  Value chosen = n.unsqueeze(n.gatherNd(a, pivot, 1), 1), moved = n.sliceAxis(a, 1, n.expr(to), n.expr(1));
  Value isPivot = n.equal(n.iota(1, n.dims(a), n.si64()), n.unsqueeze(pivot, 2));
  return {n.select(isPivot, moved, a), chosen};
}

static Value orOne(NodeContext &n, Value x) { return n.select(n.equal(x, n.scalarLike(0, x)), n.scalarLike(1, x), x); }

/// The product of the pivots, with the sign of the exchanges.
Values det(NodeContext &n) {
  Value x = n.input(0), a = x;
  std::optional<int64_t> size = flattenBatch(n, a);
  if (!size)
    return {};
  Value result = n.fill(n.scalarLike(1, x), n.dim(a, 0));
  for (int64_t left = *size; left > 0; --left) {
    Value pivot = pivotRow(n, a, 0, 0);
    auto [rest, row] = movePivot(n, a, pivot, 0);
    Value value = n.reshape(n.sliceAxis(row, 2, n.expr(0), n.expr(1)), n.dim(a, 0));
    Value isInPlace = n.equal(n.reshape(pivot, n.dim(a, 0)), n.scalar(0, n.si64()));
    result = n.mul(result, n.select(isInPlace, value, n.neg(value)));
    if (left == 1)
      break;
    Expr fewer = n.expr(left - 1), one = n.expr(1);
    rest = n.sliceAxis(rest, 1, one, fewer);
    Value factor = n.div(n.sliceAxis(rest, 2, n.expr(0), one), orOne(n, n.unsqueeze(value, {1, 2})));
    a = n.sub(n.sliceAxis(rest, 2, one, fewer), n.mul(factor, n.sliceAxis(row, 2, one, fewer)));
  }
  Dims dims = n.dims(x);
  return {n.reshape(result, llvm::ArrayRef(dims).drop_back(2))};
}

/// [A | I] becomes [I | A^-1]: Gauss and Jordan. Narrow floats are computed in f32.
Values inverse(NodeContext &n) {
  Value x = n.input(0);
  if (x && (!n.isFloat(x)))
    return {n.fail(DiagId::WrongInputType, 0, n.elementType(x), "a float type is needed")};
  Value a = n.elementType(x).isF64() ? x : n.convert(x, n.f32());
  std::optional<int64_t> size = flattenBatch(n, a);
  if (!size)
    return {};
  Dims dims = n.dims(a);
  Value isDiagonal = n.equal(n.iota(1, dims, n.si64()), n.iota(2, dims, n.si64()));
  a = n.concat({a, n.convertLike(isDiagonal, a)}, 2);
  for (int64_t k = 0; k < *size; ++k) {
    auto [rest, row] = movePivot(n, a, pivotRow(n, a, k, k), k);
    row = n.div(row, orOne(n, n.sliceAxis(row, 2, n.expr(k), n.expr(1))));
    Value reduced = n.sub(rest, n.mul(n.sliceAxis(rest, 2, n.expr(k), n.expr(1)), row));
    Value isRow = n.equal(n.iota(1, n.dims(a), n.si64()), n.scalar(k, n.si64()));
    a = n.select(isRow, row, reduced);
  }
  Value result = n.sliceAxis(a, 2, n.expr(*size), n.expr(*size));
  return {n.convertLike(n.reshape(result, n.dims(x)), x)};
}

} // namespace ptc::decomp
