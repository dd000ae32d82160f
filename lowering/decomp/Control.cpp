//===- Control.cpp - If ---------------------------------------------------===//
//
// A condition that is known while importing picks its branch, which is imported in
// place: exporters wrap shape fixes this way (`if dim == 1: squeeze`). A condition
// on dims that stay open picks the branch that their hints take, and a guard says
// so: the branches of such an If mostly differ in rank, which no type could join.
//
// Otherwise both branches become regions, which use the surrounding values
// directly. Both must give the same types, since a symbol that only one branch
// knows could not be bound outside.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace mlir;
using namespace ptc::prim;

namespace ptc::decomp {

static bool importBranch(NodeContext &n, Region &region, StringRef name) {
  OpBuilder &builder = n.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&region);
  std::optional<Values> outputs = n.subgraph(name);
  YieldOp::create(builder, n.getLoc(), outputs ? ValueRange(*outputs) : ValueRange());
  return outputs.has_value();
}

static bool branchesAgree(NodeContext &n, YieldOp first, YieldOp second) {
  if (first.getNumOperands() != second.getNumOperands() || first.getNumOperands() < n.outputCount()) {
    n.fail(DiagId::BranchResults, first.getNumOperands(), second.getNumOperands(), n.outputCount());
    return false;
  }
  for (auto [i, types] : llvm::enumerate(llvm::zip(first.getOperandTypes(), second.getOperandTypes())))
    if (auto [a, b] = types; a != b) {
      n.fail(DiagId::BranchTypes, "output " + std::to_string(i), a, b);
      return false;
    }
  return true;
}

Values conditional(NodeContext &n) {
  Value condition = n.reshape(n.input(0), {});
  if (!condition || !n.isBool(condition))
    return {n.fail(DiagId::WrongInputType, 0, n.elementType(condition), "bool is needed")};
  if (std::optional<Expr> known = n.knownCondition(condition)) {
    bool isTaken = n.shapes.atHints(*known).value_or(1) != 0;
    n.shapes.assume(isTaken ? *known : Expr::eq(*known, n.expr(0)));
    std::optional<Values> outputs = n.subgraph(isTaken ? "then_branch" : "else_branch");
    return outputs ? *outputs : Values();
  }
  OpBuilder &builder = n.getBuilder();
  OperationState state(n.getLoc(), IfOp::getOperationName());
  state.addOperands(condition);
  Region *thenRegion = state.addRegion(), *elseRegion = state.addRegion();
  bool isComplete = importBranch(n, *thenRegion, "then_branch");
  isComplete &= importBranch(n, *elseRegion, "else_branch");
  if (!isComplete)
    return {};
  auto yield = [](Region *region) { return cast<YieldOp>(region->front().getTerminator()); };
  if (!branchesAgree(n, yield(thenRegion), yield(elseRegion)))
    return {};
  state.addTypes(yield(thenRegion).getOperandTypes());
  return Values(builder.create(state)->getResults());
}

} // namespace ptc::decomp
