//===- Bounds.cpp - a number that bounds another --------------------------===//

#include "ir/loop/Bounds.h"
#include "ir/loop/Loop.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

bool loop::isSameValue(Value a, Value b) {
  auto x = a.getDefiningOp<LoadOp>(), y = b.getDefiningOp<LoadOp>();
  if (a == b || !x || !y)
    return a == b;
  return x->getBlock() == y->getBlock() && x.getBuffer() == y.getBuffer() && x.getIndices() == y.getIndices() &&
         llvm::equal(x.getIndexOperands(), y.getIndexOperands());
}

static std::optional<double> numberOf(Value value) {
  APFloat number(0.0);
  if (!matchPattern(value, m_ConstantFloat(&number)) || number.isNaN())
    return std::nullopt;
  bool loses = false;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

std::optional<Bounded> loop::findBound(arith::SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
  auto number = numberOf(select.getFalseValue());
  if (!compare || !number)
    return std::nullopt;
  bool isLess = compare.getPredicate() == arith::CmpFPredicate::OLT;
  if (!isLess && compare.getPredicate() != arith::CmpFPredicate::OGT)
    return std::nullopt;
  Value smaller = isLess ? compare.getLhs() : compare.getRhs(), larger = isLess ? compare.getRhs() : compare.getLhs();
  Value x = select.getTrueValue();
  if (isSameValue(smaller, x) && numberOf(larger) == number)
    return Bounded{x, *number, /*isUpper=*/true};
  if (isSameValue(larger, x) && numberOf(smaller) == number)
    return Bounded{x, *number, /*isUpper=*/false};
  return std::nullopt;
}
