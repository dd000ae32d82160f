//===- ToldDims.cpp - dims of a scatter that its places tell --------------===//
#include "ir/loop/ToldDims.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

std::optional<ToldDims> loop::findToldDims(ScatterOp scatter, StoreOp store) {
  SmallVector<Expr> domain = getDomain(scatter);
  Expr place = prim::getExprs(store.getIndices())[0];
  ToldDims told;
  for (unsigned number = 0; number < domain.size(); ++number) {
    std::string name = dimName(number);
    if (!place.uses(name))
      continue;
    Expr step = place.coefficientOf(name);
    if (!step || !step.isConstant() || step.getValue() <= 0 || !domain[number].isConstant() ||
        domain[number].getValue() < 1)
      return std::nullopt;
    told.dims.push_back({step.getValue(), number});
  }
  llvm::sort(told.dims, [](ToldDims::Dim a, ToldDims::Dim b) {
    return std::pair(a.step, a.number) < std::pair(b.step, b.number);
  });
  for (auto [step, number] : told.dims) {
    if (step < told.reach)
      return std::nullopt;
    told.reach = step * domain[number].getValue();
  }
  for (unsigned i = 0; i < store.getIndexOperands().size(); ++i) {
    Expr step = place.coefficientOf(Expr::operand(scatter.getContext(), i).getSymbol());
    if (!step || !step.isConstant() || step.getValue() % told.reach != 0)
      return std::nullopt;
  }
  return told;
}
