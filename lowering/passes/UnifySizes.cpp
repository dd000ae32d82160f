//===- UnifySizes.cpp - two names for one size become one ------------------===//
//
// Exporters give every input dims of its own, and the model says later that some are equal: a guard
//
//   eq(mask_0, batch)
//
// From then on the two are one size, and what compares sizes as expressions should see one: reshapes that keep dims,
// fusion, attention. In the function, `mask_0` is replaced by `batch`, the one that comes first in the arguments.
// Arguments keep their types, since the entry reads the symbols off them; a reshape that keeps all elements in place
// follows.
//
// Invariant: guards stay, so a call whose sizes differ is refused as before.
//
//===----------------------------------------------------------------------===//
#include "ir/prim/Variants.h"
#include "lowering/passes/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace ptc {
#define GEN_PASS_DEF_UNIFYSIZES
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace mlir;
using namespace ptc;

namespace {

/// Symbols in the order in which arguments have them, each with the one that stands for it.
using Leaders = llvm::MapVector<StringAttr, StringAttr>;

Leaders findEqualSizes(func::FuncOp function, ArrayRef<Expr> guards) {
  Leaders leaders;
  for (BlockArgument argument : function.getArguments())
    if (isa<RankedTensorType>(argument.getType()))
      for (Expr dim : prim::getDims(argument))
        if (dim.isSymbol())
          leaders.insert({StringAttr::get(dim.getContext(), dim.getSymbol()), {}});
  for (auto &[name, leader] : leaders)
    leader = name;
  for (Expr guard : guards) {
    if (guard.getKind() != ExprKind::Eq)
      continue;
    Expr left = guard.getOperands()[0], right = guard.getOperands()[1];
    auto find = [&](Expr e) {
      return e.isSymbol() ? leaders.find(StringAttr::get(e.getContext(), e.getSymbol())) : leaders.end();
    };
    auto *a = find(left), *b = find(right);
    if (a == leaders.end() || b == leaders.end() || a->second == b->second)
      continue;
    StringAttr kept = leaders.find(a->second) < leaders.find(b->second) ? a->second : b->second;
    StringAttr gone = kept == a->second ? b->second : a->second;
    for (auto &[name, leader] : leaders)
      if (leader == gone)
        leader = kept;
  }
  return leaders;
}

struct UnifySizes : ptc::impl::UnifySizesBase<UnifySizes> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto guards = function->getAttrOfType<ArrayAttr>(prim::guardsAttr);
    if (!guards || function.isDeclaration())
      return;
    Leaders leaders = findEqualSizes(function, prim::getExprs(guards));
    if (llvm::all_of(leaders, [](const auto &pair) { return pair.first == pair.second; }))
      return;
    Attribute pins = function->getAttr(prim::pinsAttr);
    SmallVector<Type> types(function.getArgumentTypes());
    prim::substituteSymbols(function, [&](StringRef symbol) -> Expr {
      auto *found = leaders.find(StringAttr::get(&getContext(), symbol));
      bool isOther = found != leaders.end() && found->first != found->second;
      return isOther ? Expr::symbol(&getContext(), found->second) : Expr();
    });
    function->setAttr(prim::guardsAttr, guards);
    if (pins)
      function->setAttr(prim::pinsAttr, pins);
    auto builder = OpBuilder::atBlockBegin(&function.getBody().front());
    for (auto [argument, type] : llvm::zip(function.getArguments(), types)) {
      if (argument.getType() == type)
        continue;
      auto view = prim::ReshapeOp::create(builder, argument.getLoc(), argument.getType(), argument);
      argument.replaceAllUsesExcept(view, view);
      argument.setType(type);
    }
    function.setType(builder.getFunctionType(types, function.getResultTypes()));
  }
};

} // namespace
