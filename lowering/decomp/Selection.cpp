//===- Selection.cpp - operators whose results are as long as they find ----===//
#include "lowering/decomp/OnnxOps.h"
#include "lowering/passes/Patterns.h"

using namespace ptc::prim;

namespace ptc::decomp {

/// The elements at the positions that are true: by number where those are known.
static Value positionsOfTrue(NodeContext &n, Value mask) {
  if (std::optional<Ints> known = n.knownInts(mask)) {
    Ints kept;
    for (auto [i, isKept] : llvm::enumerate(*known))
      if (isKept)
        kept.push_back(i);
    return n.intVector(kept);
  }
  return n.findTrue(mask);
}

/// The slices of x along an axis (or the elements of flat x) whose condition is true.
Values compress(NodeContext &n) {
  Value x = n.input(0), condition = n.input(1);
  int64_t axis = 0;
  if (!n.has("axis")) {
    x = n.reshape(x, product(n.getContext(), n.dims(x)));
  } else if (std::optional<int64_t> given = n.axis(n.rank(x), 0)) {
    axis = *given;
  } else {
    return {};
  }
  if (n.rank(condition) != 1)
    return {n.fail(DiagId::WrongRank, 1, n.rank(condition), "a vector is needed")};
  return {n.gather(x, positionsOfTrue(n, condition), axis)};
}

/// Whether all elements are one constant, and not 0.
static bool isFilled(Value x) {
  std::optional<double> value = getSplat(x);
  return value && *value != 0;
}

/// The indices of the elements that are not 0, one column an element. A scalar counts as a vector of one.
Values nonZero(NodeContext &n) {
  Value x = n.input(0);
  if (n.rank(x) == 0)
    x = n.reshape(x, n.expr(1));
  if (!x)
    return {};
  Dims dims = n.dims(x);
  Expr size = product(n.getContext(), dims);
  Value flat = n.reshape(x, size);
  Value position;
  if (isFilled(x)) // exporters count that way: NonZero(ConstantOfShape)
    position = n.iota(0, size, n.si64());
  else
    position = positionsOfTrue(n, n.isBool(x) ? flat : n.predicate<NeOp>(flat, n.scalarLike(0, flat)));
  Values rows;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    Expr stride = product(n.getContext(), llvm::ArrayRef(dims).drop_front(axis + 1));
    auto scalar = [&](Expr e) { return n.fromExprs(e, n.si64(), /*isScalar=*/true); };
    rows.push_back(n.binary<ModOp>(n.div(position, scalar(stride)), scalar(dims[axis])));
  }
  return {n.stack(rows, 0)};
}

} // namespace ptc::decomp
