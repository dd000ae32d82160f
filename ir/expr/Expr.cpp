//===- Expr.cpp - storage, order and queries of expressions ---------------===//
#include "ir/expr/Expr.h"
#include "ir/expr/DimName.h"
#include "ir/expr/ExprPolynomial.h"
#include "ir/expr/ExprStorage.h"
#include "ir/expr/ReplaceParts.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace ptc;
using namespace ptc::detail;

MLIR_DEFINE_EXPLICIT_TYPE_ID(ptc::ExprAttr)

ExprKind ExprAttr::getKind() const { return getImpl()->key.kind; }
int64_t ExprAttr::getValue() const { return getImpl()->key.value; }
llvm::StringRef ExprAttr::getSymbol() const { return getImpl()->key.symbol; }
llvm::ArrayRef<ExprAttr> ExprAttr::getOperands() const { return getImpl()->key.operands; }

ExprAttr detail::makeExpr(mlir::MLIRContext *context, ExprKind kind, int64_t value, llvm::StringRef symbol,
                          llvm::ArrayRef<ExprAttr> operands) {
  return ExprAttr::get(context, kind, value, symbol, operands);
}

Expr detail::makeAtom(ExprKind kind, llvm::ArrayRef<Expr> operands) {
  llvm::SmallVector<ExprAttr, 4> attrs(operands.begin(), operands.end());
  return Expr(makeExpr(operands.front().getContext(), kind, 0, {}, attrs));
}

Expr Expr::constant(mlir::MLIRContext *context, int64_t value) { return makeExpr(context, ExprKind::Constant, value); }

Expr Expr::symbol(mlir::MLIRContext *context, llvm::StringRef name) {
  return makeExpr(context, ExprKind::Symbol, 0, name);
}

std::optional<unsigned> ptc::parseNumbered(llvm::StringRef name, char prefix) {
  unsigned number;
  if (name.size() < 2 || name.front() != prefix || name.drop_front().getAsInteger(10, number))
    return std::nullopt;
  return number;
}

Expr Expr::dim(mlir::MLIRContext *context, unsigned index) { return symbol(context, dimName(index)); }

Expr Expr::operand(mlir::MLIRContext *context, unsigned index) { return symbol(context, "v$" + std::to_string(index)); }

llvm::SmallVector<Expr, 4> Expr::getOperands() const {
  llvm::ArrayRef<ExprAttr> operands = attr.getOperands();
  return llvm::SmallVector<Expr, 4>(operands.begin(), operands.end());
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

template <typename T> static int threeWay(T a, T b) { return a < b ? -1 : b < a ? 1 : 0; }

int ptc::compare(Expr a, Expr b) {
  if (a == b)
    return 0;
  if (a.getKind() != b.getKind())
    return threeWay(a.getKind(), b.getKind());
  if (a.isConstant())
    return threeWay(a.getValue(), b.getValue());
  if (a.isSymbol())
    return a.getSymbol().compare_numeric(b.getSymbol()); // d2 before d10
  return compareAtoms(a.getOperands(), b.getOperands());
}

int detail::compareAtoms(llvm::ArrayRef<Expr> a, llvm::ArrayRef<Expr> b) {
  for (auto [x, y] : llvm::zip(a, b))
    if (int order = compare(x, y))
      return order;
  return threeWay(a.size(), b.size());
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

int64_t ptc::floorDivTotal(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (b == -1)
    return wrapMul(a, -1);
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

int64_t ptc::floorModTotal(int64_t a, int64_t b) {
  if (b == 0)
    return a;
  return wrapAdd(a, -wrapMul(floorDivTotal(a, b), b));
}

namespace {
/// Evaluates shared subexpressions once.
class Evaluator {
public:
  explicit Evaluator(const SymbolValues &values) : values(values) {}

  std::optional<int64_t> visit(Expr e) {
    if (e.isConstant())
      return e.getValue();
    if (e.isSymbol()) {
      auto it = values.find(e.getSymbol());
      return it == values.end() ? std::nullopt : std::optional(it->second);
    }
    mlir::Attribute key = e;
    if (auto it = known.find(key); it != known.end())
      return it->second;
    std::optional<int64_t> result = compute(e);
    known[key] = result;
    return result;
  }

private:
  std::optional<int64_t> compute(Expr e) {
    llvm::SmallVector<int64_t, 4> v;
    for (Expr operand : e.getOperands()) {
      std::optional<int64_t> value = visit(operand);
      if (!value)
        return std::nullopt;
      v.push_back(*value);
    }
    switch (e.getKind()) {
    case ExprKind::Add:
      return llvm::accumulate(v, int64_t(0), wrapAdd);
    case ExprKind::Mul:
      return llvm::accumulate(v, int64_t(1), wrapMul);
    case ExprKind::FloorDiv:
      return floorDivTotal(v[0], v[1]);
    case ExprKind::Mod:
      return floorModTotal(v[0], v[1]);
    case ExprKind::Min:
      return *llvm::min_element(v);
    case ExprKind::Max:
      return *llvm::max_element(v);
    case ExprKind::Lt:
      return v[0] < v[1];
    case ExprKind::Eq:
      return v[0] == v[1];
    case ExprKind::Select:
      return v[0] ? v[1] : v[2];
    case ExprKind::Constant:
    case ExprKind::Symbol:
      break;
    }
    llvm_unreachable("leaves are evaluated by visit");
  }

  const SymbolValues &values;
  llvm::DenseMap<mlir::Attribute, std::optional<int64_t>> known;
};

/// Rebuilds an expression with some of its parts replaced, shared parts once.
class Substitution {
public:
  explicit Substitution(llvm::function_ref<Expr(Expr)> map) : map(map) {}

  Expr visit(Expr e) {
    if (e.isConstant())
      return e;
    if (Expr replacement = map(e))
      return replacement;
    if (e.isSymbol())
      return e;
    if (Expr found = known.lookup(mlir::Attribute(e)))
      return found;
    llvm::SmallVector<Expr, 4> operands;
    bool changed = false;
    for (Expr operand : e.getOperands()) {
      operands.push_back(visit(operand));
      changed |= operands.back() != operand;
    }
    Expr result = changed ? rebuild(e, operands) : e;
    known[mlir::Attribute(e)] = result;
    return result;
  }

  static Expr rebuild(Expr e, llvm::ArrayRef<Expr> v) {
    switch (e.getKind()) {
    case ExprKind::Add: {
      Polynomial terms;
      for (Expr x : v)
        llvm::append_range(terms, termsOf(x));
      return exprOf(e.getContext(), std::move(terms));
    }
    case ExprKind::Mul:
      return product(e.getContext(), v);
    case ExprKind::FloorDiv:
      return v[0].floorDiv(v[1]);
    case ExprKind::Mod:
      return v[0].mod(v[1]);
    case ExprKind::Min:
      return llvm::accumulate(v.drop_front(), v[0], Expr::min);
    case ExprKind::Max:
      return llvm::accumulate(v.drop_front(), v[0], Expr::max);
    case ExprKind::Lt:
      return Expr::lt(v[0], v[1]);
    case ExprKind::Eq:
      return Expr::eq(v[0], v[1]);
    case ExprKind::Select:
      return Expr::select(v[0], v[1], v[2]);
    case ExprKind::Constant:
    case ExprKind::Symbol:
      break;
    }
    llvm_unreachable("leaves are replaced by visit");
  }

private:
  llvm::function_ref<Expr(Expr)> map;
  llvm::DenseMap<mlir::Attribute, Expr> known;
};
} // namespace

std::optional<int64_t> Expr::evaluate(const SymbolValues &values) const { return Evaluator(values).visit(*this); }

Expr Expr::substitute(llvm::function_ref<Expr(llvm::StringRef)> map) const {
  auto ofSymbol = [&](Expr e) { return e.isSymbol() ? map(e.getSymbol()) : Expr(); };
  return Substitution(ofSymbol).visit(*this);
}

Expr ptc::replaceParts(Expr e, llvm::function_ref<Expr(Expr)> map) { return Substitution(map).visit(e); }

static bool anySymbol(Expr e, llvm::function_ref<bool(llvm::StringRef)> predicate,
                      llvm::DenseSet<mlir::Attribute> &seen) {
  if (e.isSymbol())
    return predicate(e.getSymbol());
  if (e.isConstant() || !seen.insert(e).second)
    return false;
  return llvm::any_of(e.getOperands(), [&](Expr operand) { return anySymbol(operand, predicate, seen); });
}

bool Expr::usesAny(llvm::function_ref<bool(llvm::StringRef)> predicate) const {
  llvm::DenseSet<mlir::Attribute> seen;
  return anySymbol(*this, predicate, seen);
}

bool Expr::uses(llvm::StringRef symbol) const {
  return usesAny([&](llvm::StringRef name) { return name == symbol; });
}

void Expr::walkSymbols(llvm::function_ref<void(llvm::StringRef)> visit) const {
  usesAny([&](llvm::StringRef name) {
    visit(name);
    return false;
  });
}

Expr Expr::coefficientOf(llvm::StringRef symbol, Expr *rest) const {
  Polynomial with, without;
  for (const Term &term : termsOf(*this)) {
    Term cofactor{term.coefficient, {}};
    bool found = false;
    for (Expr atom : term.atoms) {
      if (!found && atom.isSymbol(symbol)) {
        found = true;
        continue;
      }
      if (atom.uses(symbol))
        return Expr();
      cofactor.atoms.push_back(atom);
    }
    (found ? with : without).push_back(cofactor);
  }
  if (rest)
    *rest = exprOf(getContext(), std::move(without));
  return exprOf(getContext(), std::move(with));
}

Expr ptc::product(mlir::MLIRContext *context, llvm::ArrayRef<Expr> extents) {
  Expr result = Expr::constant(context, 1);
  for (Expr extent : extents)
    result = result * extent;
  return result;
}
