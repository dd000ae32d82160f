//===- EvalReduce.cpp - reductions, scans, order, windows -----------------===//
//
// Float sums and products are accumulated in double and rounded once.
//
//===----------------------------------------------------------------------===//
#include "ir/eval/Combine.h"
#include "ir/eval/EvalOps.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <numeric>

using namespace ptc;
using namespace ptc::eval;

namespace {
/// Running values of one combination over elements of a tensor's type.
class Accumulators {
public:
  Accumulators(Combination kind, const Tensor &like, int64_t count) : kind(kind), isUnsigned(like.isUnsigned()) {
    if (like.isFloat())
      floats.assign(count, floatIdentity(kind));
    else
      integers.assign(count, integerIdentity(kind, like.getElementType().getIntOrFloatBitWidth(), isUnsigned));
  }
  void add(int64_t slot, const Tensor &x, int64_t position) {
    if (x.isFloat())
      floats[slot] = combine(kind, floats[slot], x.getFloat(position));
    else
      integers[slot] = combine(kind, integers[slot], x.getInt(position), isUnsigned);
  }
  /// `count` elements that lie together, into slots `step` apart.
  void addRow(int64_t slot, int64_t step, const Tensor &x, int64_t position, int64_t count) {
    if (!x.isFloat()) {
      for (int64_t i = 0; i != count; ++i)
        add(slot + i * step, x, position + i);
      return;
    }
    std::array<double, 256> values;
    for (int64_t first = 0; first < count; first += values.size()) {
      llvm::MutableArrayRef<double> block(values.data(), std::min<int64_t>(values.size(), count - first));
      x.getFloats(position + first, block);
      double *sums = floats.data() + slot + first * step;
      if (kind == Combination::Sum) // by far the most frequent: a loop without a choice
        for (auto [i, value] : llvm::enumerate(block))
          sums[i * step] += value;
      else
        for (auto [i, value] : llvm::enumerate(block))
          sums[i * step] = combine(kind, sums[i * step], value);
    }
  }
  void store(int64_t slot, Tensor &y, int64_t position) const {
    if (y.isFloat())
      y.setFloat(position, floats[slot]);
    else
      y.setInt(position, integers[slot]);
  }

private:
  Combination kind;
  bool isUnsigned;
  std::vector<double> floats;
  std::vector<int64_t> integers;
};

/// A tensor as rows along one axis: element j of row r lies at start(r) + j*stride.
struct Rows {
  int64_t count, length, stride;
  Rows(llvm::ArrayRef<int64_t> shape, int64_t axis)
      : count(1), length(shape[axis]), stride(rowMajorStrides(shape)[axis]) {
    for (auto [i, dim] : llvm::enumerate(shape))
      count *= int64_t(i) == axis ? 1 : dim;
  }
  int64_t start(int64_t row) const { return row / stride * stride * length + row % stride; }
};
} // namespace

static llvm::Error checkAxis(int64_t axis, const Tensor &x) {
  if (axis < 0 || axis >= x.getRank())
    return error("axis " + llvm::Twine(axis) + " is out of a rank of " + llvm::Twine(x.getRank()));
  return llvm::Error::success();
}

Results eval::evalReduce(prim::ReduceOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  Dims kept, to(x[0]->getRank(), 0);
  for (int64_t axis = 0; axis != x[0]->getRank(); ++axis)
    if (!llvm::is_contained(op.getAxes(), axis))
      kept.push_back(axis);
  if (int64_t(kept.size()) != y->getRank())
    return error("the rank of a reduction's result does not fit its axes");
  auto strides = rowMajorStrides(y->getShape());
  for (auto [i, axis] : llvm::enumerate(kept)) {
    if (x[0]->getDim(axis) != y->getDim(i))
      return error("the dims of a reduction's result do not fit its operand");
    to[axis] = strides[i];
  }
  Accumulators sums(getCombination(op.getKind()), *x[0], y->getNumElements());
  forEachRow(x[0]->getShape(), [&](llvm::ArrayRef<int64_t> index, int64_t position, int64_t length) {
    sums.addRow(dot(index, to), to.empty() ? 0 : to.back(), *x[0], position, length);
  });
  for (int64_t i = 0; i != y->getNumElements(); ++i)
    sums.store(i, *y, i);
  return result(std::move(*y));
}

/// A total order: integers by sign, floats with NaN above everything.
static int order(const Tensor &x, int64_t a, int64_t b) {
  auto threeWay = [](auto p, auto q) { return p < q ? -1 : q < p ? 1 : 0; };
  if (!x.isFloat())
    return x.isUnsigned() ? threeWay(uint64_t(x.getInt(a)), uint64_t(x.getInt(b))) : threeWay(x.getInt(a), x.getInt(b));
  double p = x.getFloat(a), q = x.getFloat(b);
  if (std::isnan(p) || std::isnan(q))
    return int(std::isnan(p)) - int(std::isnan(q));
  return threeWay(p, q);
}

Results eval::evalArgReduce(prim::ArgReduceOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  if (llvm::Error failure = checkAxis(op.getAxis(), *x[0]))
    return failure;
  Rows rows(x[0]->getShape(), op.getAxis());
  if (rows.count != y->getNumElements())
    return error("the dims of arg_reduce's result do not fit its operand");
  if (rows.length == 0 && rows.count != 0)
    return error("an empty dim has no extremum");
  bool isMax = op.getKind() == prim::ArgKind::Max;
  for (int64_t row = 0; row != rows.count; ++row) {
    int64_t best = rows.start(row), bestIndex = 0;
    for (int64_t j = 1; j != rows.length; ++j) {
      int64_t position = rows.start(row) + j * rows.stride;
      int comparison = order(*x[0], position, best);
      // NaN is the extremum of both kinds.
      bool isNan = x[0]->isFloat() && std::isnan(x[0]->getFloat(position));
      bool bestIsNan = x[0]->isFloat() && std::isnan(x[0]->getFloat(best));
      bool isBetter = isNan || bestIsNan ? isNan && !bestIsNan : isMax ? comparison > 0 : comparison < 0;
      if (isBetter || (op.getSelectLast() && comparison == 0)) {
        best = position;
        bestIndex = j;
      }
    }
    y->setInt(row, bestIndex);
  }
  return result(std::move(*y));
}

Results eval::evalScan(prim::ScanOp op, Operands x, Scope &scope) {
  Tensor y = *x[0];
  if (llvm::Error failure = checkAxis(op.getAxis(), y))
    return failure;
  if (y.getNumElements() == 0)
    return result(std::move(y));
  Rows rows(y.getShape(), op.getAxis());
  for (int64_t row = 0; row != rows.count; ++row) {
    Accumulators sum(getCombination(op.getKind()), y, 1);
    for (int64_t j = 0; j != rows.length; ++j) {
      int64_t position = rows.start(row) + (op.getReverse() ? rows.length - 1 - j : j) * rows.stride;
      if (op.getExclusive())
        sum.store(0, y, position);
      sum.add(0, *x[0], position);
      if (!op.getExclusive())
        sum.store(0, y, position);
    }
  }
  return result(std::move(y));
}

Results eval::evalSort(prim::SortOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> values = allocate(op.getValues(), scope);
  if (!values)
    return values.takeError();
  llvm::Expected<Tensor> indices = allocate(op.getIndices(), scope);
  if (!indices)
    return indices.takeError();
  if (llvm::Error failure = checkAxis(op.getAxis(), *x[0]))
    return failure;
  Rows from(x[0]->getShape(), op.getAxis()), to(values->getShape(), op.getAxis());
  if (to.count != from.count || to.length > from.length || indices->getShape() != values->getShape())
    return error("the dims of sort's results do not fit its operand");
  bool isDescending = op.getDescending();
  std::vector<int64_t> permutation(from.length);
  for (int64_t row = 0; row != from.count; ++row) {
    int64_t start = from.start(row);
    std::iota(permutation.begin(), permutation.end(), 0);
    llvm::sort(permutation, [&](int64_t a, int64_t b) {
      int comparison = order(*x[0], start + a * from.stride, start + b * from.stride);
      if (comparison == 0)
        return a < b;
      return isDescending ? comparison > 0 : comparison < 0;
    });
    for (int64_t j = 0; j != to.length; ++j) {
      int64_t position = to.start(row) + j * to.stride;
      values->copyElement(position, *x[0], start + permutation[j] * from.stride);
      indices->setInt(position, permutation[j]);
    }
  }
  std::vector<Tensor> results;
  results.push_back(std::move(*values));
  results.push_back(std::move(*indices));
  return results;
}

Results eval::evalWindowReduce(prim::WindowReduceOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  llvm::Expected<Dims> low = evaluateExprs(prim::getExprs(op.getLow()), scope);
  if (!low)
    return low.takeError();
  const Tensor &from = *x[0];
  int64_t spatial = op.getWindow().size();
  if (from.getRank() != spatial + 2 || y->getRank() != spatial + 2 || int64_t(low->size()) != spatial ||
      from.getShape().take_front(2) != y->getShape().take_front(2))
    return error("the dims of window_reduce do not fit its window");
  auto strides = rowMajorStrides(from.getShape());
  Combination kind = getCombination(op.getKind());
  forEachIndex(y->getShape(), [&](llvm::ArrayRef<int64_t> index, int64_t position) {
    Accumulators sum(kind, from, 1);
    int64_t base = index[0] * strides[0] + index[1] * strides[1];
    forEachIndex(op.getWindow(), [&](llvm::ArrayRef<int64_t> k, int64_t) {
      int64_t offset = base;
      for (int64_t i = 0; i != spatial; ++i) {
        int64_t at = index[i + 2] * op.getStrides()[i] + k[i] * op.getDilations()[i] - (*low)[i];
        if (at < 0 || at >= from.getDim(i + 2))
          return;
        offset += at * strides[i + 2];
      }
      sum.add(0, from, offset);
    });
    sum.store(0, *y, position);
  });
  return result(std::move(*y));
}
