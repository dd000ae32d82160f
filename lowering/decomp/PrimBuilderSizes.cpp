//===- PrimBuilderSizes.cpp - sizes that the program finds out ------------===//
//
// How many elements of a tensor are true is known only when the model runs. Where a decomposition needs such a number
// as a size it binds a symbol to it; from there on the symbol is a size like any other. What a symbol can be at most is
// said where it is bound, so that memory can be planned before the run.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/PrimBuilder.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;
using namespace ptc::prim;

/// The hint of a size that nothing bounds.
static constexpr int64_t unboundedHint = 16;

static Expr bindSymbol(PrimBuilder &b, Value scalar, Expr atMost, int64_t least) {
  SymbolBounds bounds{.min = least};
  bounds.hint = atMost ? b.shapes.atHints(atMost).value_or(unboundedHint) : unboundedHint;
  bounds.hint = std::clamp(bounds.hint, bounds.min, bounds.max);
  Expr symbol = b.shapes.declareBound(bounds, atMost);
  BindOp::create(b.getBuilder(), b.getLoc(), b.getBuilder().getStringAttr(symbol.getSymbol()), scalar,
                 atMost ? ExprAttr(atMost) : ExprAttr());
  return symbol;
}

Expr PrimBuilder::bind(Value scalar, Expr atMost, int64_t least) {
  scalar = convert(reshape(scalar, {}), si64());
  if (!scalar)
    return expr(1);
  if (std::optional<Dims> known = knownExprs(scalar))
    return known->front();
  return bindSymbol(*this, scalar, atMost, least);
}

Expr PrimBuilder::settle(Expr size) {
  size = shapes.simplify(size);
  if (!shapes.isBoundInside(size) || (size.isSymbol() && shapes.isNonNegative(size)))
    return size;
  Expr most = shapes.mostOf(size);
  return bindSymbol(*this, fromExprs(size, si64(), /*isScalar=*/true), most, 0);
}

Dims PrimBuilder::settle(ArrayRef<Expr> sizes) {
  return llvm::map_to_vector(sizes, [&](Expr size) { return settle(size); });
}

// Each true element learns its place, the number of true ones before it, and writes its position there; the others
// write to one place more, which is cut off. Places are never negative: the scatter takes them as they are.
Value PrimBuilder::findTrue(Value mask, Expr most, Type type) {
  if (!mask)
    return {};
  if (!type)
    type = si64();
  Expr size = dim(mask, 0);
  Value ones = convert(mask, type);
  Expr count = bind(sum(convert(mask, si64()), 0, /*keepDims=*/false), most ? most : size);
  Value places = scan(ReduceKind::Sum, ones, 0, /*exclusive=*/true, /*reverse=*/false);
  Value beyond = fromExprs(size, type, /*isScalar=*/true), none = fill(scalar(0, type), size + 1);
  Value found = ScatterElementsOp::create(builder, loc, none.getType(), none, select(mask, places, beyond),
                                          iota(0, size, type), 0, ScatterKind::Set);
  return sliceAxis(found, 0, expr(0), count);
}
