//===- PrimBuilderReduce.cpp - reductions, windows, contractions ----------===//
#include "ir/prim/Elements.h"
#include "lowering/decomp/PrimBuilder.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;
using namespace ptc::prim;

Value PrimBuilder::reduce(ReduceKind kind, Value x, ArrayRef<int64_t> axes, bool keepDims) {
  if (!x || axes.empty())
    return x;
  for (int64_t axis : axes)
    if (!hasAxis(x, axis))
      return {};
  Dims kept, reduced;
  Ints sorted(axes);
  llvm::sort(sorted);
  for (auto [i, dim] : llvm::enumerate(dims(x))) {
    bool isReduced = llvm::is_contained(sorted, int64_t(i));
    if (!isReduced)
      reduced.push_back(dim);
    kept.push_back(isReduced ? expr(1) : dim);
  }
  Value result = fold(ReduceOp::create(builder, loc, resultType(reduced, elementType(x)), x, kind, sorted));
  return keepDims ? reshape(result, kept) : result;
}

/// Whether the type holds the number exactly: 16 bits hold few whole ones above 2048 (256 in bf16), f16 none above
/// 65504.
static bool holds(FloatType type, const Expr &number) {
  if (!number.isConstant())
    return false;
  bool isRounded = false;
  APFloat value(double(number.getValue()));
  value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &isRounded);
  return !isRounded;
}

Value PrimBuilder::mean(Value x, ArrayRef<int64_t> axes, bool keepDims) {
  if (!x)
    return {};
  Dims reduced;
  for (int64_t axis : axes)
    reduced.push_back(dim(x, axis));
  Expr count = product(getContext(), reduced);
  if (auto type = dyn_cast<FloatType>(elementType(x)); type && type.getWidth() < 32 && !holds(type, count))
    return convert(mean(convert(x, builder.getF32Type()), axes, keepDims), type);
  Value total = sum(x, axes, keepDims);
  if (count.isConstant())
    return div(total, scalarLike(count.getValue(), x));
  return div(total, convert(fromExprs(count, si64(), /*isScalar=*/true), elementType(x)));
}

Value PrimBuilder::argReduce(ArgKind kind, Value x, int64_t axis, bool selectLast, bool keepDims) {
  if (!hasAxis(x, axis))
    return {};
  Dims to = dims(x), kept = to;
  kept[axis] = expr(1);
  to.erase(to.begin() + axis);
  if (dim(x, axis).isConstant(1)) // a loop over nothing has no index to give
    return fill(scalar(0, si64()), keepDims ? kept : to);
  Value result = fold(ArgReduceOp::create(builder, loc, resultType(to, si64()), x, kind, axis, selectLast));
  return keepDims ? reshape(result, kept) : result;
}

Value PrimBuilder::scan(ReduceKind kind, Value x, int64_t axis, bool exclusive, bool reverse) {
  return hasAxis(x, axis) ? fold(ScanOp::create(builder, loc, x.getType(), x, kind, axis, exclusive, reverse))
                          : Value();
}

std::pair<Value, Value> PrimBuilder::sort(Value x, int64_t axis, bool descending, Expr count) {
  if (!hasAxis(x, axis))
    return {};
  Dims to = dims(x);
  to[axis] = count;
  auto op = SortOp::create(builder, loc, resultType(to, elementType(x)), resultType(to, si64()), x, axis, descending);
  return {op.getValues(), op.getIndices()};
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

Value PrimBuilder::windowReduce(ReduceKind kind, Value x, const Window &window) {
  if (!x)
    return {};
  if (!hasAxis(x, int64_t(window.size.size()) + 1))
    return {};
  Dims to = {dim(x, 0), dim(x, 1)};
  llvm::append_range(to, window.resultDims);
  return fold(WindowReduceOp::create(builder, loc, resultType(to, elementType(x)), x, kind, window.size, window.strides,
                                     window.dilations, getExprArray(getContext(), window.low)));
}

Value PrimBuilder::convolution(Value x, Value w, const Window &window, int64_t groups, bool transposed) {
  if (!x || !w)
    return {};
  if (elementType(x) != elementType(w))
    return fail(DiagId::TypeMismatch, elementType(x), elementType(w));
  int64_t last = int64_t(window.size.size()) + 1;
  if (!hasAxis(x, last) || !hasAxis(w, last))
    return {};
  Expr channels = transposed ? dim(w, 0) : dim(w, 1) * groups;
  if (!shapes.assumeEqual(dim(x, 1), channels))
    return fail(DiagId::DimMismatch, "the number of channels", dim(x, 1), "what the weights take", channels);
  Dims to = {dim(x, 0), transposed ? dim(w, 1) * groups : dim(w, 0)};
  llvm::append_range(to, window.resultDims);
  Dims from = dims(x);
  from[1] = channels;
  return ConvolutionOp::create(builder, loc, resultType(to, elementType(x)), recast(x, from), w, window.strides,
                               window.dilations, getExprArray(getContext(), window.low), groups, transposed);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

Value PrimBuilder::innerMatmul(Value a, Value b) {
  Value result = matmul(a, b);
  Operation *product = result ? result.getDefiningOp() : nullptr;
  while (product && !isa<MatmulOp>(product)) // below the reshape of a vector
    product = product->getOperand(0).getDefiningOp();
  if (product)
    product->setAttr(keepsTypeAttr, builder.getUnitAttr());
  return result;
}

Value PrimBuilder::matmul(Value a, Value b) {
  if (!a || !b)
    return {};
  if (elementType(a) != elementType(b))
    return fail(DiagId::TypeMismatch, elementType(a), elementType(b));
  if (rank(a) == 0 || rank(b) == 0)
    return fail(DiagId::WrongRank, rank(a) == 0 ? 0 : 1, 0, "a matrix product needs at least rank 1");
  bool isRow = rank(a) == 1, isColumn = rank(b) == 1;
  if (isRow)
    a = unsqueeze(a, 0);
  if (isColumn)
    b = unsqueeze(b, 1);
  Dims lhs = dims(a), rhs = dims(b);
  Expr inner = rhs[rhs.size() - 2];
  if (!shapes.assumeEqual(lhs.back(), inner))
    return fail(DiagId::DimMismatch, "the last dim of input 0", lhs.back(), "the dim of input 1 that it meets", inner);
  lhs.back() = inner;
  // The batch dims of both, broadcast; a right side whose batch dims are all 1 needs none.
  ArrayRef<Expr> lhsBatch = ArrayRef(lhs).drop_back(2), rhsBatch = ArrayRef(rhs).drop_back(2);
  std::optional<Dims> batch = broadcastDims(lhsBatch, rhsBatch);
  if (!batch)
    return {};
  Dims lhsDims = *batch, rhsDims = *batch, resultDims = *batch;
  lhsDims.append(lhs.end() - 2, lhs.end());
  rhsDims.append(rhs.end() - 2, rhs.end());
  resultDims.push_back(lhs[lhs.size() - 2]);
  resultDims.push_back(rhs.back());
  bool isShared = llvm::all_of(rhsBatch, [](Expr e) { return e.isConstant(1); });
  a = broadcastTo(recast(a, lhs), lhsDims);
  b = isShared ? reshape(b, ArrayRef(rhs).take_back(2)) : broadcastTo(b, rhsDims);
  if (!a || !b)
    return {};
  Value result = MatmulOp::create(builder, loc, resultType(resultDims, elementType(a)), a, b);
  Ints dropped;
  if (isRow)
    dropped.push_back(resultDims.size() - 2);
  if (isColumn)
    dropped.push_back(resultDims.size() - 1);
  return dropped.empty() ? result : squeeze(result, dropped);
}

Value PrimBuilder::softmax(Value x, int64_t axis) {
  Value e = exp(sub(x, reduce(ReduceKind::Max, x, axis, /*keepDims=*/true)));
  return div(e, sum(e, axis, true));
}
