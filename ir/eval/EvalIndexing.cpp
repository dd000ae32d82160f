//===- EvalIndexing.cpp - gathers and scatters ----------------------------===//
#include "ir/eval/Combine.h"
#include "ir/eval/EvalOps.h"

using namespace ptc;
using namespace ptc::eval;

llvm::Expected<int64_t> eval::checkIndex(int64_t index, int64_t size) {
  if (index < 0 || index >= size)
    return error("index " + llvm::Twine(index) + " is out of a dim of " + llvm::Twine(size));
  return index;
}

static int64_t countOf(llvm::ArrayRef<int64_t> dims) { return countElements(dims).value_or(0); }

/// Checks all elements of an index tensor against one dim.
static llvm::Error checkIndices(const Tensor &indices, int64_t size) {
  for (int64_t i = 0; i != indices.getNumElements(); ++i)
    if (llvm::Expected<int64_t> index = checkIndex(indices.getInt(i), size); !index)
      return index.takeError();
  return llvm::Error::success();
}

Results eval::evalGather(prim::GatherOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  const Tensor &from = *x[0], &indices = *x[1];
  size_t axis = op.getAxis();
  int64_t size = from.getDim(axis);
  if (llvm::Error failure = checkIndices(indices, size))
    return failure;
  int64_t outer = countOf(from.getShape().take_front(axis)), inner = countOf(from.getShape().drop_front(axis + 1));
  if (y->getNumElements() != outer * indices.getNumElements() * inner)
    return error("the dims of gather's result do not fit its operands");
  int64_t position = 0;
  for (int64_t o = 0; o != outer; ++o)
    for (int64_t i = 0; i != indices.getNumElements(); ++i)
      for (int64_t k = 0; k != inner; ++k)
        y->copyElement(position++, from, (o * size + indices.getInt(i)) * inner + k);
  return result(std::move(*y));
}

/// Whether every dim but `axis` of `part` lies within `whole`.
static bool fitsAround(const Tensor &part, const Tensor &whole, int64_t axis) {
  if (part.getRank() != whole.getRank() || axis < 0 || axis >= whole.getRank())
    return false;
  for (int64_t i = 0; i != part.getRank(); ++i)
    if (i != axis && part.getDim(i) > whole.getDim(i))
      return false;
  return true;
}

Results eval::evalGatherElements(prim::GatherElementsOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  const Tensor &from = *x[0], &indices = *x[1];
  int64_t axis = op.getAxis();
  if (!fitsAround(indices, from, axis) || y->getShape() != indices.getShape())
    return error("the dims of gather_elements' indices do not fit its operand");
  if (llvm::Error failure = checkIndices(indices, from.getDim(axis)))
    return failure;
  auto strides = rowMajorStrides(from.getShape());
  forEachIndex(y->getShape(), [&](llvm::ArrayRef<int64_t> index, int64_t position) {
    int64_t source = dot(index, strides) + (indices.getInt(position) - index[axis]) * strides[axis];
    y->copyElement(position, from, source);
  });
  return result(std::move(*y));
}

/// Position of the slice that an index tuple names, in elements of `whole`.
static llvm::Expected<int64_t> tuplePosition(const Tensor &indices, int64_t tuple, int64_t length, const Tensor &whole,
                                             int64_t firstAxis) {
  auto strides = rowMajorStrides(whole.getShape());
  int64_t position = 0;
  for (int64_t i = 0; i != length; ++i) {
    llvm::Expected<int64_t> index = checkIndex(indices.getInt(tuple * length + i), whole.getDim(firstAxis + i));
    if (!index)
      return index.takeError();
    position += *index * strides[firstAxis + i];
  }
  return position;
}

Results eval::evalGatherNd(prim::GatherNdOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  const Tensor &from = *x[0], &indices = *x[1];
  int64_t shared = op.getBatchDims(), length = indices.getRank() ? indices.getShape().back() : 0;
  if (indices.getRank() == 0 || shared + length > from.getRank() || shared >= indices.getRank() ||
      from.getShape().take_front(shared) != indices.getShape().take_front(shared))
    return error("the dims of gather_nd's indices do not fit its operand");
  int64_t batches = countOf(from.getShape().take_front(shared));
  int64_t tuples = countOf(indices.getShape().drop_front(shared).drop_back());
  int64_t slice = countOf(from.getShape().drop_front(shared + length));
  int64_t batchSize = countOf(from.getShape().drop_front(shared));
  if (y->getNumElements() != batches * tuples * slice)
    return error("the dims of gather_nd's result do not fit its operands");
  for (int64_t batch = 0; batch != batches; ++batch)
    for (int64_t t = 0; t != tuples; ++t) {
      int64_t tuple = batch * tuples + t;
      llvm::Expected<int64_t> position = tuplePosition(indices, tuple, length, from, shared);
      if (!position)
        return position.takeError();
      for (int64_t k = 0; k != slice; ++k)
        y->copyElement(tuple * slice + k, from, batch * batchSize + *position + k);
    }
  return result(std::move(*y));
}

/// y[to] = y[to] combined with updates[from].
static void scatterElement(Tensor &y, int64_t to, const Tensor &updates, int64_t from, prim::ScatterKind kind) {
  if (kind == prim::ScatterKind::Set)
    return y.copyElement(to, updates, from);
  Combination combination = kind == prim::ScatterKind::Add   ? Combination::Sum
                            : kind == prim::ScatterKind::Mul ? Combination::Product
                            : kind == prim::ScatterKind::Max ? Combination::Maximum
                                                             : Combination::Minimum;
  if (y.isFloat())
    y.setFloat(to, combine(combination, y.getFloat(to), updates.getFloat(from)));
  else
    y.setInt(to, combine(combination, y.getInt(to), updates.getInt(from), y.isUnsigned()));
}

Results eval::evalScatterElements(prim::ScatterElementsOp op, Operands x, Scope &scope) {
  Tensor y = *x[0];
  const Tensor &indices = *x[1], &updates = *x[2];
  int64_t axis = op.getAxis();
  if (!fitsAround(indices, y, axis) || indices.getShape() != updates.getShape())
    return error("the dims of scatter_elements' indices and updates do not fit its operand");
  if (llvm::Error failure = checkIndices(indices, y.getDim(axis)))
    return failure;
  auto strides = rowMajorStrides(y.getShape());
  forEachIndex(updates.getShape(), [&](llvm::ArrayRef<int64_t> index, int64_t position) {
    int64_t to = dot(index, strides) + (indices.getInt(position) - index[axis]) * strides[axis];
    scatterElement(y, to, updates, position, op.getKind());
  });
  return result(std::move(y));
}

Results eval::evalScatterNd(prim::ScatterNdOp op, Operands x, Scope &scope) {
  Tensor y = *x[0];
  const Tensor &indices = *x[1], &updates = *x[2];
  int64_t length = indices.getRank() ? indices.getShape().back() : 0;
  if (indices.getRank() == 0 || length > y.getRank())
    return error("the dims of scatter_nd's indices do not fit its operand");
  int64_t tuples = countOf(indices.getShape().drop_back()), slice = countOf(y.getShape().drop_front(length));
  if (updates.getNumElements() != tuples * slice)
    return error("the dims of scatter_nd's updates do not fit its indices");
  for (int64_t tuple = 0; tuple != tuples; ++tuple) {
    llvm::Expected<int64_t> position = tuplePosition(indices, tuple, length, y, 0);
    if (!position)
      return position.takeError();
    for (int64_t k = 0; k != slice; ++k)
      scatterElement(y, *position + k, updates, tuple * slice + k, op.getKind());
  }
  return result(std::move(y));
}
