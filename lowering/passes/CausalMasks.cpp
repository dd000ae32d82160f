//===- CausalMasks.cpp - masks that are triangles -------------------------===//
#include "lowering/passes/CausalMasks.h"
#include "lowering/passes/Patterns.h"
#include <limits>

using namespace mlir;
using namespace ptc;
using namespace ptc::prim;

/// A score so low that its weight is 0 beside any other.
static bool isHidden(const APFloat &x) { return x.isNegative() && (x.isInfinity() || x.isLargest()); }

/// Whether a constant's last two dims are a square triangle: `visible` where column <= row, and only there.
template <typename Element>
static bool isTriangle(DenseElementsAttr elements, llvm::function_ref<std::optional<bool>(const Element &)> visible) {
  ArrayRef<int64_t> shape = elements.getType().getShape();
  int64_t rows = shape[shape.size() - 2], columns = shape.back(), at = 0;
  return rows == columns && llvm::all_of(elements.getValues<Element>(), [&](const Element &x) {
           int64_t row = at / columns % rows, column = at++ % columns;
           std::optional<bool> isVisible = visible(x);
           return isVisible && *isVisible == (column <= row);
         });
}

bool prim::isCausalMask(Value mask, bool isInverted) {
  SmallVector<Expr> dims = getDims(mask);
  if (auto broadcast = mask.getDefiningOp<BroadcastOp>()) { // the last two dims in place
    ArrayRef<int64_t> axes = broadcast.getAxes();
    int64_t rank = dims.size();
    if (axes.size() < 2 || axes.take_back(2) != ArrayRef<int64_t>({rank - 2, rank - 1}))
      return false;
    mask = broadcast.getX();
  }
  if (dims.size() < 2 || ArrayRef(getDims(mask)).take_back(2) != ArrayRef(dims).take_back(2))
    return false;
  if (auto select = mask.getDefiningOp<SelectOp>()) {
    std::optional<double> a = getSplat(select.getA()), b = getSplat(select.getB());
    auto hides = [](std::optional<double> x) { return x && *x <= -std::numeric_limits<float>::max(); };
    return (a == 0.0 && hides(b) && isCausalMask(select.getCondition(), false)) ||
           (b == 0.0 && hides(a) && isCausalMask(select.getCondition(), true));
  }
  DenseElementsAttr elements = getConstant(mask);
  if (!elements)
    return false;
  if (elements.getElementType().isInteger(1))
    return isTriangle<bool>(elements, [&](bool x) { return x != isInverted; });
  if (!isa<FloatType>(elements.getElementType()))
    return false;
  return isTriangle<APFloat>(elements, [](const APFloat &x) {
    return x.isZero() ? std::optional(true) : isHidden(x) ? std::optional(false) : std::nullopt;
  });
}
