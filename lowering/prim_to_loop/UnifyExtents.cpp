//===- UnifyExtents.cpp - two expressions of one size become one ----------===//
//
// What joins images of several scales compares their sizes, and the model is refused others:
//
//   guard eq(floordiv(height + 7, 8), 4*floordiv(height + 31, 32))
//
// To all that follows these are two sizes: a producer cannot write into the joined buffer, whose rows are so many
// elements apart, rows and columns of the one do not meet those of the other, and nothing is fused across. Here
//
//   floordiv(height + 7, 8)  ->  4*floordiv(height + 31, 32)
//
// in the whole program. Left is a side that is one quotient, which the other one must not hold; of two quotients the
// first. Rules are applied to the guards that follow and to each other, so that what comes in holds no left side.
//
// Invariant: guards stay, and what says which sizes a variant is for. They are what a call is refused or served by, and
// hold wherever a size is asked for. Here and not on prim, where a convolution's result has the size that its type rule
// says. Symbols of the arguments are prim's, too (UnifySizes).
//
//===----------------------------------------------------------------------===//
#include "ir/expr/ReplaceParts.h"
#include "lowering/prim_to_loop/Passes.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_UNIFYEXTENTS
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

namespace {

/// What stands for each quotient.
using Rules = llvm::MapVector<Attribute, Expr>;

Expr rewrite(const Rules &rules, Expr e) {
  return replaceParts(e, [&](Expr part) { return rules.lookup(Attribute(part)); });
}

bool holds(Expr e, Expr part) {
  return e == part || llvm::any_of(e.getOperands(), [&](Expr operand) { return holds(operand, part); });
}

Rules findRules(ArrayRef<Expr> guards) {
  Rules rules;
  for (Expr guard : guards) {
    if (guard.getKind() != ExprKind::Eq)
      continue;
    Expr from = rewrite(rules, guard.getOperands()[0]), to = rewrite(rules, guard.getOperands()[1]);
    if (from.getKind() != ExprKind::FloorDiv || holds(to, from))
      std::swap(from, to);
    if (from.getKind() != ExprKind::FloorDiv || holds(to, from))
      continue;
    Rules own;
    own.insert({Attribute(from), to});
    for (auto &[quotient, size] : rules)
      size = rewrite(own, size);
    rules.insert({Attribute(from), to});
  }
  return rules;
}

struct UnifyExtents : ptc::impl::UnifyExtentsBase<UnifyExtents> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      Rules rules = findRules(prim::getExprs(program.getGuards()));
      if (rules.empty())
        continue;
      DictionaryAttr own = program->getAttrDictionary();
      AttrTypeReplacer replacer;
      replacer.addReplacement([&](ExprAttr expr) -> std::optional<std::pair<Attribute, WalkResult>> {
        return std::pair<Attribute, WalkResult>(rewrite(rules, expr), WalkResult::skip());
      });
      replacer.recursivelyReplaceElementsIn(program, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                            /*replaceTypes=*/true);
      program->setAttrs(own);
    }
  }
};

} // namespace
