//===- Unrounded.cpp - narrow floats that may be wide meanwhile -----------===//
#include "lowering/decomp/Unrounded.h"
#include "ir/prim/Elements.h"

using namespace ptc::prim;

namespace ptc::decomp {

bool isNarrow(NodeContext &n, Value x) { return n.isFloat(x) && n.elementType(x).getIntOrFloatBitWidth() < 32; }

Value unrounded(NodeContext &n, Value x, Type to) {
  Value converted = n.convert(x, to);
  if (auto op = converted.getDefiningOp<ConvertOp>(); op && converted != x)
    op->setDiscardableAttr(unroundedAttr, n.getBuilder().getUnitAttr());
  return converted;
}

} // namespace ptc::decomp
