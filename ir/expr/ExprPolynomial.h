//===- ExprPolynomial.h - the terms of an expression ------------*- C++ -*-===//
//
// The working form behind the smart constructors: a sum as a list of terms, a
// term as a coefficient and a sorted list of atoms. The constant is the term
// without atoms. Used inside ir/expr only.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_EXPR_EXPRPOLYNOMIAL_H
#define PTC_IR_EXPR_EXPRPOLYNOMIAL_H

#include "ir/expr/Expr.h"

namespace ptc::detail {

using Atoms = llvm::SmallVector<Expr, 3>;

struct Term {
  int64_t coefficient = 0;
  Atoms atoms;
};
using Polynomial = llvm::SmallVector<Term, 6>;

/// Two's complement arithmetic without undefined behaviour.
inline int64_t wrapAdd(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
inline int64_t wrapMul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

ExprAttr makeExpr(mlir::MLIRContext *context, ExprKind kind, int64_t value, llvm::StringRef symbol = {},
                  llvm::ArrayRef<ExprAttr> operands = {});
Expr makeAtom(ExprKind kind, llvm::ArrayRef<Expr> operands);

/// The single term of an expression that is not a sum.
Term termOf(Expr e);
Polynomial termsOf(Expr e);
Expr exprOf(mlir::MLIRContext *context, const Term &term);
/// Sorts, merges, recombines (ExprNormal.cpp) and builds the sum.
Expr exprOf(mlir::MLIRContext *context, Polynomial terms);

int compareAtoms(llvm::ArrayRef<Expr> a, llvm::ArrayRef<Expr> b);
Term multiply(const Term &a, const Term &b);
/// a / b where b divides a exactly as a monomial, nothing otherwise.
std::optional<Term> divideExactly(const Term &a, const Term &b);
/// The constant term's value; `rest` receives the other terms.
int64_t splitConstant(Expr e, Polynomial *rest = nullptr);

} // namespace ptc::detail

#endif // PTC_IR_EXPR_EXPRPOLYNOMIAL_H
