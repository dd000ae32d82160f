//===- EvalViews.cpp - sources of values and index rewrites ---------------===//
#include "ir/eval/EvalOps.h"
#include "ir/prim/WeightAttrs.h"

using namespace ptc;
using namespace ptc::eval;

Results eval::evalConstant(prim::ConstantOp op, Operands, Scope &) {
  llvm::Expected<Tensor> y = Tensor::fromAttribute(op.getValue());
  return y ? result(std::move(*y)) : Results(y.takeError());
}

Results eval::evalExprs(prim::ExprsOp op, Operands, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  llvm::Expected<Dims> values = evaluateExprs(prim::getExprs(op.getValues()), scope);
  if (!values)
    return values.takeError();
  for (auto [i, value] : llvm::enumerate(*values))
    y->setInt(i, value);
  return result(std::move(*y));
}

/// Appends the transpose of a matrix that has so many columns, of `terms` elements each.
static void appendTurned(llvm::ArrayRef<char> matrix, int64_t columns, int64_t terms, std::vector<char> &all) {
  size_t bytes = matrix.size() / size_t(columns * terms);
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t term = 0; term < terms; ++term) {
      llvm::ArrayRef<char> element = matrix.slice(size_t(term * columns + column) * bytes, bytes);
      all.insert(all.end(), element.begin(), element.end());
    }
}

Results eval::evalWeight(prim::WeightOp op, Operands, Scope &scope) {
  llvm::Expected<Dims> dims = evaluateExprs(prim::getDims(op.getResult()), scope);
  if (!dims)
    return dims.takeError();
  std::vector<char> all; // of several weights
  llvm::ArrayRef<char> bytes;
  auto rows = op->getAttrOfType<mlir::DenseI64ArrayAttr>(prim::partRowsAttr);
  for (auto [number, ref] : llvm::enumerate(op.getRefs())) {
    llvm::Expected<llvm::ArrayRef<char>> part = scope.weights.getBytes(ref);
    if (!part)
      return part.takeError();
    bytes = *part;
    if (prim::isTurnedPart(op, number))
      appendTurned(*part, rows ? rows[int64_t(number)] : (*dims)[1], dims->back(), all);
    else if (op.getOthers())
      all.insert(all.end(), part->begin(), part->end());
  }
  if (op.getOthers())
    bytes = all;
  llvm::Expected<Tensor> y = Tensor::fromPacked(prim::getElementType(op.getResult()), *dims, bytes);
  return y ? result(std::move(*y)) : Results(y.takeError());
}

Results eval::evalIota(prim::IotaOp op, Operands, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  int64_t axis = op.getAxis();
  if (axis < 0 || axis >= y->getRank())
    return error("iota's axis is out of the result's rank");
  forEachIndex(y->getShape(), [&](llvm::ArrayRef<int64_t> index, int64_t position) {
    if (y->isFloat())
      y->setFloat(position, double(index[axis]));
    else
      y->setInt(position, index[axis]);
  });
  return result(std::move(*y));
}

/// y[index] = x's element at base + index times strides.
static void copyByIndex(const Tensor &x, int64_t base, const Dims &strides, Tensor &y) {
  forEachRow(y.getShape(), [&](llvm::ArrayRef<int64_t> index, int64_t position, int64_t length) {
    y.copyElements(position, length, x, base + dot(index, strides), strides.empty() ? 1 : strides.back());
  });
}

Results eval::evalBroadcast(prim::BroadcastOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  auto strides = rowMajorStrides(x[0]->getShape());
  Dims from(y->getRank(), 0);
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    int64_t dim = x[0]->getDim(i);
    if (dim != 1 && dim != y->getDim(axis))
      return error("cannot stretch a dim of " + llvm::Twine(dim) + " to " + llvm::Twine(y->getDim(axis)));
    from[axis] = dim == 1 ? 0 : strides[i];
  }
  copyByIndex(*x[0], 0, from, *y);
  return result(std::move(*y));
}

Results eval::evalReshape(prim::ReshapeOp op, Operands x, Scope &scope) {
  llvm::Expected<Dims> dims = evaluateExprs(prim::getDims(op.getResult()), scope);
  if (!dims)
    return dims.takeError();
  if (countElements(*dims) != x[0]->getNumElements())
    return error("cannot reshape " + llvm::Twine(x[0]->getNumElements()) +
                 " elements: the new dims hold another number");
  return result(Tensor(*x[0]).reshaped(*dims));
}

Results eval::evalTranspose(prim::TransposeOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  auto strides = rowMajorStrides(x[0]->getShape());
  Dims from;
  for (int64_t axis : op.getPermutation())
    from.push_back(strides[axis]);
  copyByIndex(*x[0], 0, from, *y);
  return result(std::move(*y));
}

Results eval::evalSlice(prim::SliceOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  llvm::Expected<Dims> starts = evaluateExprs(prim::getExprs(op.getStarts()), scope);
  if (!starts)
    return starts.takeError();
  auto strides = rowMajorStrides(x[0]->getShape());
  Dims from;
  int64_t base = 0;
  for (int64_t axis = 0; axis != y->getRank(); ++axis) {
    int64_t start = (*starts)[axis], step = op.getSteps()[axis];
    int64_t last = start + (y->getDim(axis) - 1) * step, dim = x[0]->getDim(axis);
    if (y->getNumElements() != 0 && (start < 0 || start >= dim || last < 0 || last >= dim))
      return error("slice " + llvm::Twine(start) + " to " + llvm::Twine(last) + " is out of a dim of " +
                   llvm::Twine(dim));
    base += start * strides[axis];
    from.push_back(step * strides[axis]);
  }
  copyByIndex(*x[0], base, from, *y);
  return result(std::move(*y));
}

/// Where element i of a padded dim comes from; -1: the padding value.
static int64_t padSource(int64_t i, int64_t size, prim::PadKind kind) {
  if (i >= 0 && i < size)
    return i;
  switch (kind) {
  case prim::PadKind::Constant:
    return -1;
  case prim::PadKind::Edge:
    return i < 0 ? 0 : size - 1;
  case prim::PadKind::Wrap:
    return floorModTotal(i, size);
  case prim::PadKind::Reflect: {
    if (size == 1)
      return 0;
    int64_t folded = floorModTotal(i, 2 * (size - 1));
    return folded < size ? folded : 2 * (size - 1) - folded;
  }
  }
  llvm_unreachable("all kinds of padding are listed");
}

Results eval::evalPad(prim::PadOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  llvm::Expected<Dims> low = evaluateExprs(prim::getExprs(op.getLow()), scope);
  if (!low)
    return low.takeError();
  bool isConstant = op.getKind() == prim::PadKind::Constant;
  if (!isConstant && x[0]->getNumElements() == 0 && y->getNumElements() != 0)
    return error("cannot pad an empty tensor with its own elements");
  if (isConstant && x[1]->getNumElements() != 1)
    return error("the padding value is not a scalar");
  auto strides = rowMajorStrides(x[0]->getShape());
  forEachIndex(y->getShape(), [&](llvm::ArrayRef<int64_t> index, int64_t position) {
    int64_t from = 0;
    for (auto [axis, i] : llvm::enumerate(index)) {
      int64_t source = padSource(i - (*low)[axis], x[0]->getDim(axis), op.getKind());
      if (source < 0)
        return y->copyElement(position, *x[1], 0);
      from += source * strides[axis];
    }
    y->copyElement(position, *x[0], from);
  });
  return result(std::move(*y));
}

Results eval::evalConcat(prim::ConcatOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  int64_t axis = op.getAxis(), offset = 0;
  auto strides = rowMajorStrides(y->getShape());
  for (const Tensor *part : x) {
    Dims expected(y->getShape());
    expected[axis] = part->getDim(axis);
    if (part->getShape() != llvm::ArrayRef<int64_t>(expected) || offset + part->getDim(axis) > y->getDim(axis))
      return error("operands of concat do not fit together");
    forEachIndex(part->getShape(), [&](llvm::ArrayRef<int64_t> index, int64_t position) {
      y->copyElement(dot(index, strides) + offset * strides[axis], *part, position);
    });
    offset += part->getDim(axis);
  }
  return result(std::move(*y));
}
