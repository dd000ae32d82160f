//===- ShapeScope.h - what is known and assumed of shape symbols *- C++ -*-===//
//
// The symbols of a model under import with their ranges, and the guards: what
// had to be assumed of them so that every shape makes sense. A guard is an
// expression that must not be 0; the entry function checks all of them, but for
// those over symbols that the program binds itself (`bind`): these stand where the
// assumption was made, as prim.guard, and hold inside of that block.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_DECOMP_SHAPESCOPE_H
#define PTC_LOWERING_DECOMP_SHAPESCOPE_H

#include "ir/prim/MostSize.h"
#include "ir/prim/Prim.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace ptc::decomp {

struct SymbolBounds {
  int64_t min = 1;
  int64_t max = prim::mostSize;
  int64_t divisor = 1;
  int64_t hint = 1;
  bool isHintChosen = false; // by the user
};

/// What is assumed of two sizes that meet in a broadcast where nothing is known of them: that they are equal, which is
/// what they nearly always are, or what ONNX says, that they are equal or one of them is 1.
enum class Meeting { Equal, Stretch };

class ShapeScope {
public:
  explicit ShapeScope(mlir::MLIRContext *context, Meeting meeting = Meeting::Equal)
      : context(context), meeting(meeting), place{nullptr, mlir::UnknownLoc::get(context)} {}

  mlir::MLIRContext *getContext() const { return context; }
  Expr constant(int64_t value) const { return Expr::constant(context, value); }

  /// Declares `name`, or returns the symbol that was declared before. Bounds of a known symbol are intersected.
  Expr declare(llvm::StringRef name, SymbolBounds bounds);
  /// Declares a symbol that the program binds (prim.bind, which the caller makes): u0, u1, ... Never above `atMost`,
  /// if that is given.
  Expr declareBound(SymbolBounds bounds, Expr atMost);
  /// Whether the expression uses a symbol that the program binds.
  bool isBoundInside(Expr e) const {
    return e.usesAny([&](llvm::StringRef symbol) { return boundInside.contains(symbol); });
  }
  /// The most that `e` can be, over the entry's symbols; null where nothing bounds it.
  Expr mostOf(Expr e) const;

  /// The most that `e` can be where `most` says it of some symbols; null where nothing bounds one of these.
  Expr boundBy(Expr e, llvm::function_ref<std::optional<Expr>(llvm::StringRef)> most) const;
  /// Declares a symbol that the program binds as another scope has it.
  void adopt(llvm::StringRef symbol, const ShapeScope &from);

  /// Where guards inside the program go. Each PrimBuilder says so for its node.
  struct Place {
    mlir::OpBuilder *builder = nullptr;
    mlir::Location loc;
  };
  Place setPlace(Place next) { return std::exchange(place, next); }
  /// In a branch that may not run, nothing is assumed of the whole run: guards stand in the branch. Returns what was.
  bool setConditional(bool next) { return std::exchange(isConditional, next); }

  /// A name that no symbol has yet: `base`, `base_1`, ...
  std::string unusedName(llvm::StringRef base) const;
  bool isDeclared(llvm::StringRef name) const { return ranges.contains(name); }

  Expr simplify(Expr e) const { return e.simplify(ranges); }
  std::optional<bool> equal(Expr a, Expr b) const;
  std::optional<bool> less(Expr a, Expr b) const { return knownLess(a, b, ranges); }
  /// What `e` can be in a run that the guards admit.
  ExprRange range(Expr e) const;
  bool isNonNegative(Expr e) const { return range(e).min >= 0; }
  bool isPositive(Expr e) const { return range(e).min > 0; }

  /// Makes `a == b` hold: true if it does already or became a guard, false if it can never hold.
  bool assumeEqual(Expr a, Expr b);
  /// Makes `condition` (not 0) hold, in the same sense.
  bool assume(Expr condition);

  /// The size of what two sizes that meet in a broadcast are stretched to; null if they never fit. MeetingSizes.cpp
  /// says how.
  Expr meet(Expr a, Expr b);
  /// Whether `from` is a size that a dim of `to` comes from: 1 or `to`, as was assumed when they met.
  bool stretches(Expr from, Expr to) const;
  /// Makes `from` be `to` or 1: `from` is to be stretched to what it meets.
  bool assumeStretch(Expr from, Expr to);
  /// Pairs that are equal by Meeting::Equal alone: others may fit as well.
  llvm::ArrayRef<std::pair<Expr, Expr>> getMeetings() const { return met; }
  /// Pairs that Meeting::Equal made equal before something else needed it, of the sizes themselves or of what one of
  /// them stands for, the size of both: Meeting::Stretch tells which.
  llvm::ArrayRef<std::pair<Expr, Expr>> getNeededMeetings() const { return metAndNeeded; }
  /// Whether the two are equal in every run that the entry admits, as far as one of its guards says.
  bool isGuardedEqual(Expr a, Expr b) const;

  /// The loops that the node is in, from the outermost: the numbers of their rounds.
  llvm::SmallVector<Expr, 2> rounds;

  /// `numerators / denominators` after cancelling common factors; `exact` tells whether nothing is left below.
  struct Quotient {
    Expr numerator, denominator;
    bool isExact() const { return denominator.isConstant(1); }
  };
  Quotient divide(llvm::ArrayRef<Expr> numerators, llvm::ArrayRef<Expr> denominators) const;

  /// The value at the symbols' hints.
  std::optional<int64_t> atHints(Expr e) const;
  /// The value at sizes that say something: hints that the user chose, and elsewhere never 0 or 1 if the bounds have
  /// more.
  std::optional<int64_t> inGeneral(Expr e) const;

  /// Whether an address space of 48 bits holds such a tensor as far as its constants tell; dims of 0 count as 1. Below
  /// that, sizes and sums of sizes that the compiler works out stay within 64 bits.
  static bool isHoldable(llvm::ArrayRef<Expr> dims, mlir::Type elementType);

  /// Symbols with their bounds, and hints that meet the guards where that is easy to tell.
  mlir::DictionaryAttr symbolsAttr() const;
  mlir::ArrayAttr guardsAttr() const { return prim::getExprArray(context, guards); }
  /// The node that each guard stems from (ir/prim/GuardNodes.h).
  mlir::DictionaryAttr guardNodesAttr() const;

private:
  using Symbols = llvm::MapVector<mlir::StringAttr, SymbolBounds>;
  Symbols withAgreeingHints() const;
  bool isAssumed(Expr condition) const;
  /// Notes the first value of the guard's only symbol that it admits, if that is near.
  void learnLeast(Expr guard);
  /// Whether there are values of the symbols with which `from` is 1 and `to` is not.
  bool mayStretch(Expr from, Expr to) const;
  llvm::SmallVector<Expr> partsOf(Expr size) const;
  Expr sizeOf(llvm::ArrayRef<Expr> parts) const;

  mlir::MLIRContext *context;
  Meeting meeting;
  SymbolRanges ranges;
  Symbols symbols; // in order of appearance
  llvm::SmallVector<Expr> guards;
  llvm::SmallVector<mlir::Location> guardPlaces; // of each
  /// Symbol -> the least value that the guards admit, where it is above the bound. Signs are told by it (`range`): with
  /// h >= 29 the truncating division of exporters' (h - 29) / 8 is a plain one. Nothing is simplified by it, since
  /// sizes that were written before the guard have to look like those written after.
  llvm::StringMap<int64_t> leasts;
  llvm::SmallVector<std::pair<Expr, Expr>> met, metAndNeeded;
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<Expr>> joined; // size -> the sizes that met in it
  llvm::StringMap<Expr> boundInside; // symbol -> the most it can be, over the entry's symbols, or null
  llvm::SmallVector<std::pair<Expr, mlir::Block *>> innerGuards;
  Place place;
  bool isConditional = false;
};

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_SHAPESCOPE_H
