//===- Expr.h - integer expressions over symbols ----------------*- C++ -*-===//
//
// One expression language serves shapes, indices, guards, arena offsets, launch
// sizes and the manifest. An expression is a 64-bit integer function of named
// symbols: `batch`, `seq` (shape symbols), `d0`, `d1`, ... (the dims of the
// iteration domain around a load or store) and `v$0`, `v$1`, ... (the SSA values
// that an indirect access takes as operands).
//
// Expressions are immutable, uniqued in the MLIRContext and kept in a normal
// form, so that equality of pointers decides most questions of equality:
//
//   sum      c0 + c1*t1 + ... ; terms sorted, equal terms merged, no zero
//   term     product of atoms, sorted by `compare`
//   atom     symbol | floordiv(a,b) | mod(a,b) | min(a,b) | max(a,b)
//            | lt(a,b) | eq(a,b) | select(c,a,b)
//
// Products of sums are expanded. Division and modulo follow floor semantics and
// are total: division by zero yields 0, modulo by zero yields the dividend.
// Rewrites assume that no intermediate value leaves 64 bits; constants wrap.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_EXPR_EXPR_H
#define PTC_IR_EXPR_EXPR_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace mlir {
class AsmParser;
class AsmPrinter;
} // namespace mlir

namespace ptc {

namespace detail {
struct ExprStorage;
}

enum class ExprKind : uint8_t {
  Constant,
  Symbol,
  Mul, // coefficient and sorted atoms (a coefficient of 1 is left out)
  Add, // sorted terms, the constant first
  FloorDiv,
  Mod,
  Min,
  Max,
  Lt,
  Eq,
  Select, // select(c, a, b): a where c is not zero
};

/// The uniqued attribute. `Expr` below is the value to compute with.
class ExprAttr : public mlir::Attribute::AttrBase<ExprAttr, mlir::Attribute, detail::ExprStorage> {
public:
  using Base::Base;
  static constexpr llvm::StringLiteral name = "prim.expr";
  ExprKind getKind() const;
  int64_t getValue() const;          // Constant
  llvm::StringRef getSymbol() const; // Symbol
  llvm::ArrayRef<ExprAttr> getOperands() const;
  static mlir::Attribute parse(mlir::AsmParser &parser, mlir::Type);
  void print(mlir::AsmPrinter &printer) const;
};

/// A closed interval of 64-bit integers, a known divisor of the value, and
/// optionally a bound that is an expression itself (`d0` below `batch*seq`).
struct ExprRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  int64_t divisor = 1; // never 0
  ExprAttr below = {}; // exclusive upper bound, or null
  bool isPoint() const { return min == max; }
  bool operator==(const ExprRange &) const = default;
};

/// "d3" -> 3 with the prefix 'd'; nothing for other names.
std::optional<unsigned> parseNumbered(llvm::StringRef name, char prefix);

/// What is known of the symbols of an expression; a symbol without an entry is
/// unbounded. Copies share the entries of the map that the first one was made
/// from, so that a node's dims can be added to a program's thousands of symbols.
class SymbolRanges {
public:
  SymbolRanges() = default;
  explicit SymbolRanges(llvm::StringMap<ExprRange> entries)
      : shared(std::make_shared<const llvm::StringMap<ExprRange>>(std::move(entries))) {}

  /// Null without an entry.
  const ExprRange *find(llvm::StringRef symbol) const {
    if (auto entry = own.find(symbol); entry != own.end())
      return &entry->second;
    if (!shared)
      return nullptr;
    auto entry = shared->find(symbol);
    return entry != shared->end() ? &entry->second : nullptr;
  }
  bool contains(llvm::StringRef symbol) const { return find(symbol); }
  ExprRange lookup(llvm::StringRef symbol) const {
    const ExprRange *range = find(symbol);
    return range ? *range : ExprRange();
  }
  /// To be written to: an entry of this copy alone, made if there is none.
  ExprRange &operator[](llvm::StringRef symbol) {
    auto [entry, isNew] = own.try_emplace(symbol);
    if (isNew && shared)
      if (auto known = shared->find(symbol); known != shared->end())
        entry->second = known->second;
    return entry->second;
  }

private:
  std::shared_ptr<const llvm::StringMap<ExprRange>> shared;
  llvm::StringMap<ExprRange> own; // these go first
};
using SymbolValues = llvm::StringMap<int64_t>;

/// Value semantics over ExprAttr with arithmetic. A default-constructed Expr is
/// null and may only be tested and assigned.
class Expr {
public:
  Expr() = default;
  Expr(ExprAttr attr) : attr(attr) {}
  static Expr constant(mlir::MLIRContext *context, int64_t value);
  static Expr symbol(mlir::MLIRContext *context, llvm::StringRef name);
  /// The dim `d<index>` of the iteration domain.
  static Expr dim(mlir::MLIRContext *context, unsigned index);
  /// The operand `v$<index>` of an indirect access.
  static Expr operand(mlir::MLIRContext *context, unsigned index);

  explicit operator bool() const { return bool(attr); }
  operator ExprAttr() const { return attr; }
  operator mlir::Attribute() const { return attr; }
  bool operator==(Expr other) const { return attr == other.attr; }
  bool operator!=(Expr other) const { return attr != other.attr; }

  mlir::MLIRContext *getContext() const { return attr.getContext(); }
  ExprKind getKind() const { return attr.getKind(); }
  bool isConstant() const { return getKind() == ExprKind::Constant; }
  bool isConstant(int64_t v) const { return isConstant() && getValue() == v; }
  bool isSymbol() const { return getKind() == ExprKind::Symbol; }
  bool isSymbol(llvm::StringRef s) const { return isSymbol() && getSymbol() == s; }
  int64_t getValue() const { return attr.getValue(); }
  llvm::StringRef getSymbol() const { return attr.getSymbol(); }
  llvm::SmallVector<Expr, 4> getOperands() const;
  /// The constant value, if the expression is one.
  std::optional<int64_t> asConstant() const { return isConstant() ? std::optional<int64_t>(getValue()) : std::nullopt; }

  Expr operator+(Expr b) const;
  Expr operator-(Expr b) const;
  Expr operator*(Expr b) const;
  Expr operator-() const;
  Expr operator+(int64_t b) const;
  Expr operator-(int64_t b) const { return *this + (-b); }
  Expr operator*(int64_t b) const;
  Expr floorDiv(Expr b) const;
  Expr floorDiv(int64_t b) const;
  Expr ceilDiv(Expr b) const;
  Expr ceilDiv(int64_t b) const;
  Expr mod(Expr b) const;
  Expr mod(int64_t b) const;
  static Expr min(Expr a, Expr b);
  static Expr max(Expr a, Expr b);
  static Expr lt(Expr a, Expr b); // 1 where a < b, else 0
  static Expr eq(Expr a, Expr b);
  static Expr select(Expr c, Expr a, Expr b);

  /// Replaces symbols; a null result of `map` keeps the symbol.
  Expr substitute(llvm::function_ref<Expr(llvm::StringRef)> map) const;
  /// The value, or nothing when a symbol has none.
  std::optional<int64_t> evaluate(const SymbolValues &values) const;
  /// Bounds and a divisor, from those of the symbols.
  ExprRange range(const SymbolRanges &ranges) const;
  /// Rewrites floordiv, mod, min, max, lt, eq and select that the ranges decide.
  Expr simplify(const SymbolRanges &ranges) const;
  /// Coefficient of `symbol` if the expression is `coefficient*symbol + rest`
  /// with neither part depending on it; null otherwise.
  Expr coefficientOf(llvm::StringRef symbol, Expr *rest = nullptr) const;
  bool uses(llvm::StringRef symbol) const;
  bool usesAny(llvm::function_ref<bool(llvm::StringRef)> predicate) const;
  void walkSymbols(llvm::function_ref<void(llvm::StringRef)> visit) const;

  std::string str() const;
  static Expr parse(mlir::AsmParser &parser); // null after an error
  /// Parses text as users write it; null if it is not an expression.
  static Expr parse(mlir::MLIRContext *context, llvm::StringRef text);

private:
  ExprAttr attr;
};

/// Total order by structure (never by address).
int compare(Expr a, Expr b);
/// True, false, or nothing where the ranges do not decide.
std::optional<bool> knownEqual(Expr a, Expr b, const SymbolRanges &ranges);
std::optional<bool> knownLess(Expr a, Expr b, const SymbolRanges &ranges);

/// Product of extents; 1 for none.
Expr product(mlir::MLIRContext *context, llvm::ArrayRef<Expr> extents);

inline Expr operator+(int64_t a, Expr b) { return b + a; }
inline Expr operator*(int64_t a, Expr b) { return b * a; }

/// Two expressions between which a value lies; null where that side is not known.
struct ExprBounds {
  Expr lower, upper;
};

/// What an expression can be at least and at most, given what some of its symbols can be (`of` answers nothing for
/// the others, which stay). The result is monotone in the bounds given, so an upper bound of a size is enough room
/// for every value of the symbols. ExprBounds.cpp says how.
ExprBounds boundExpr(Expr e, const SymbolRanges &ranges,
                     llvm::function_ref<std::optional<ExprBounds>(llvm::StringRef)> of);

/// Floor division and modulo with the total semantics above, for evaluators.
int64_t floorDivTotal(int64_t a, int64_t b);
int64_t floorModTotal(int64_t a, int64_t b);

inline llvm::hash_code hash_value(Expr e) { return mlir::hash_value(mlir::Attribute(e)); }
inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Expr e) { return os << (e ? e.str() : "<<null>>"); }

} // namespace ptc

MLIR_DECLARE_EXPLICIT_TYPE_ID(ptc::ExprAttr)

#endif // PTC_IR_EXPR_EXPR_H
