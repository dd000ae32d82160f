//===- SpecializeFunctions.cpp - a variant for each size asked for --------===//
//
// A function with free dims serves every size in their ranges; one that knows its
// sizes has constants where that one has expressions: loops without tails, tiles that
// fit, branches and shape computations folded away. `prim.buckets` names the sizes
// that are worth code of their own.
//
//   for each combination of the sizes, with B the symbols it fixes:
//     clone the function; replace the symbols of B by constants everywhere;
//     its guards are those of the original, and `symbol == size` for each of B
//
// The clones stand behind the original in the module and go through all stages as
// functions of their own, with nothing in common but the references to weights, which
// are stored once whoever reads them. The library tries their guards first and the
// general function last, so a size that no variant is for costs a few comparisons.
//
// Invariant: a variant computes what the original computes for these sizes; what the
// original refuses, it refuses. So a guard of the entry that becomes false here would
// never let the variant run. A combination of sizes that cannot occur is left out as
// long as each of its sizes is in another one; else the sizes are reported. A branch
// or body that these sizes make impossible, which may not be taken, ends the run with a sentence.
//
// Where sizes meet in broadcasts there are two originals, one that takes them for equal and a general one
// (lowering/decomp/MeetingSizes.cpp). The clones are the former's, whose code is better. Sizes that contradict it, as
// two buckets of different sizes do, get a clone of the latter; and a size of 1 gets both: it may be equal, or stretch.
//
// Padding to a bucket (a call of 100 runs as one of 128) is not here: what the padding
// has to be depends on the model, masks included, and is the caller's to know.
//
//===----------------------------------------------------------------------===//
#include "compiler/specialize/Passes.h"
#include "ir/Diagnostics.h"
#include "ir/expr/ConditionText.h"
#include "ir/prim/Prim.h"
#include "ir/prim/Variants.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace ptc {
#define GEN_PASS_DEF_SPECIALIZEFUNCTIONS
#include "compiler/specialize/Passes.h.inc"
} // namespace ptc

using namespace mlir;
using namespace ptc;

namespace {

using Pins = SmallVector<NamedAttribute>; // symbol -> size

/// All combinations; the last symbol's sizes change fastest.
SmallVector<Pins> combine(DictionaryAttr buckets) {
  SmallVector<Pins> all(1);
  Builder b(buckets.getContext());
  for (NamedAttribute bucket : buckets) {
    SmallVector<Pins> longer;
    for (const Pins &pins : all)
      for (int64_t size : cast<DenseI64ArrayAttr>(bucket.getValue()).asArrayRef()) {
        longer.push_back(pins);
        longer.back().push_back(b.getNamedAttr(bucket.getName(), b.getI64IntegerAttr(size)));
      }
    all = std::move(longer);
  }
  return all;
}

int64_t sizeOf(NamedAttribute pin) { return cast<IntegerAttr>(pin.getValue()).getInt(); }

/// The symbols stay declared, with ranges of one value: all variants of a function have the same ones.
DictionaryAttr pinRanges(DictionaryAttr symbols, const Pins &pins) {
  NamedAttrList list(symbols);
  for (NamedAttribute pin : pins)
    list.set(pin.getName(), prim::SymbolAttr::get(symbols.getContext(), sizeOf(pin), sizeOf(pin), 1, sizeOf(pin)));
  return list.getDictionary(symbols.getContext());
}

/// The original's guards where they do not hold anyway, then `symbol == size` for each pin. A guard of the original
/// that does not hold at these sizes, if there is one.
Expr setGuards(func::FuncOp variant, func::FuncOp original, const Pins &pins) {
  MLIRContext *context = variant.getContext();
  SymbolRanges ranges = prim::getSymbolRanges(variant->getAttrOfType<DictionaryAttr>(prim::symbolsAttr));
  SmallVector<Expr> guards;
  auto copied = variant->getAttrOfType<ArrayAttr>(prim::guardsAttr);
  for (auto [number, guard] : llvm::enumerate(copied ? prim::getExprs(copied) : SmallVector<Expr>())) {
    Expr condition = guard.simplify(ranges);
    if (condition.isConstant(0))
      return prim::getExprs(original->getAttrOfType<ArrayAttr>(prim::guardsAttr))[number];
    if (!condition.isConstant())
      guards.push_back(condition);
  }
  for (NamedAttribute pin : pins)
    guards.push_back(Expr::eq(Expr::symbol(context, pin.getName()), Expr::constant(context, sizeOf(pin))));
  variant->setAttr(prim::guardsAttr, prim::getExprArray(context, guards));
  return {};
}

Expr substitutePins(Expr e, const Pins &pins) {
  return e.substitute([&](StringRef symbol) -> Expr {
    for (NamedAttribute pin : pins)
      if (pin.getName() == symbol)
        return Expr::constant(e.getContext(), sizeOf(pin));
    return {};
  });
}

/// What the original knows of sizes, at these sizes, and the sizes.
DictionaryAttr joinPins(DictionaryAttr known, const Pins &pins) {
  NamedAttrList all(pins);
  MLIRContext *context = known.getContext();
  for (NamedAttribute pin : known) {
    auto size = dyn_cast<IntegerAttr>(pin.getValue());
    Expr value = size ? Expr::constant(context, size.getInt()) : Expr(cast<ExprAttr>(pin.getValue()));
    Expr key = Expr::parse(context, pin.getName());
    if (!key)
      continue; // a number that text does not have: nothing is said of it
    key = substitutePins(key, pins);
    value = substitutePins(value, pins);
    if (key.isConstant())
      std::swap(key, value);
    if (!key.isConstant())
      all.set(key.str(), value.isConstant()
                             ? Attribute(IntegerAttr::get(IntegerType::get(context, 64), value.getValue()))
                             : Attribute(ExprAttr(value)));
  }
  return all.getDictionary(context);
}

std::string describePins(const Pins &pins) {
  return llvm::join(
      llvm::map_range(pins, [](NamedAttribute pin) { return pin.getName().str() + "=" + std::to_string(sizeOf(pin)); }),
      ",");
}

/// Nothing runs behind a guard that never holds: its branch or body ends there and gives zeros, which nobody sees.
/// False where that cannot be: at the entry, or where what it gives is no numbers or has sizes that are found behind
/// the guard.
bool endBlock(prim::GuardOp guard) {
  Operation *yield = guard->getBlock()->getTerminator(), *parent = guard->getParentOp();
  if (isa<func::FuncOp>(parent))
    return false;
  llvm::StringSet<> lost;
  for (Operation *op = guard->getNextNode(); op != yield; op = op->getNextNode())
    if (auto binder = dyn_cast<prim::SymbolBinderOpInterface>(op))
      binder.forEachBinding([&](StringRef symbol, Expr, bool) { lost.insert(symbol); });
  auto isLost = [&](Expr e) { return e.usesAny([&](StringRef symbol) { return lost.contains(symbol); }); };
  if (auto branch = dyn_cast<prim::IfOp>(parent); branch && branch.getJoinedAttr())
    for (auto size : branch.getJoinedAttr().getAsRange<prim::JoinedAttr>())
      if (isLost(size.getThenSize()) || isLost(size.getElseSize()))
        return false;
  auto isZeroable = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getElementType().isIntOrFloat() && llvm::none_of(prim::getDims(value), isLost);
  };
  if (!llvm::all_of(yield->getOperands(), isZeroable))
    return false;
  OpBuilder builder(guard);
  for (OpOperand &operand : yield->getOpOperands()) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    auto zero = cast<DenseElementsAttr>(builder.getZeroAttr(RankedTensorType::get({}, type.getElementType())));
    Value scalar = prim::ConstantOp::create(builder, guard.getLoc(), zero);
    operand.set(prim::BroadcastOp::create(builder, guard.getLoc(), type, scalar, ArrayRef<int64_t>()));
  }
  while (yield->getPrevNode() != guard)
    yield->getPrevNode()->erase();
  return true;
}

/// Ends the blocks inside that these sizes make impossible, with the sentence of what was assumed there. The first
/// assumption where that cannot be, if there is one.
Expr endImpossibleBlocks(func::FuncOp variant, func::FuncOp original, const Pins &pins) {
  SmallVector<prim::GuardOp> guards, own;
  variant.walk<WalkOrder::PreOrder>([&](prim::GuardOp guard) { guards.push_back(guard); });
  original.walk<WalkOrder::PreOrder>([&](prim::GuardOp guard) { own.push_back(guard); });
  SymbolRanges ranges = prim::getSymbolRanges(variant->getAttrOfType<DictionaryAttr>(prim::symbolsAttr));
  DenseSet<Operation *> erased;
  for (auto [guard, before] : llvm::zip_equal(guards, own)) {
    if (erased.contains(guard) || guard.getBecause() || !guard.getCondition().simplify(ranges).isConstant(0))
      continue;
    for (Operation *op = guard->getNextNode(); op; op = op->getNextNode())
      op->walk([&](prim::GuardOp inner) { erased.insert(inner); });
    if (!endBlock(guard))
      return before.getCondition();
    guard.setConditionAttr(ExprAttr(Expr::constant(variant.getContext(), 0)));
    guard.setBecause(conditionText(before.getCondition()) + " is needed, with " + describePins(pins));
  }
  return {};
}

/// A guard of the original that does not hold at these sizes, if there is one.
Expr makeVariant(func::FuncOp variant, func::FuncOp original, const Pins &pins) {
  prim::substituteSymbols(variant, [&](StringRef symbol) {
    Expr unknown = Expr::symbol(variant.getContext(), symbol), pinned = substitutePins(unknown, pins);
    return pinned == unknown ? Expr() : pinned;
  });
  variant->setAttr(prim::symbolsAttr, pinRanges(variant->getAttrOfType<DictionaryAttr>(prim::symbolsAttr), pins));
  auto known = original->getAttrOfType<DictionaryAttr>(prim::pinsAttr);
  variant->setAttr(prim::pinsAttr, known ? joinPins(known, pins) : DictionaryAttr::get(variant.getContext(), pins));
  if (Expr broken = endImpossibleBlocks(variant, original, pins))
    return broken;
  return setGuards(variant, original, pins);
}

struct SpecializeFunctions : ptc::impl::SpecializeFunctionsBase<SpecializeFunctions> {
  void runOnOperation() override {
    SymbolTable table(getOperation());
    llvm::MapVector<StringAttr, func::FuncOp> equals; // by the name of the general function
    SmallVector<func::FuncOp> generals;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (auto general = function->getAttrOfType<FlatSymbolRefAttr>(prim::variantOfAttr))
        equals[general.getAttr()] = function;
      else
        generals.push_back(function);
    bool isMade = true;
    for (func::FuncOp general : generals)
      isMade &= specialize(table, general, equals.lookup(general.getSymNameAttr()));
    if (!isMade)
      signalPassFailure();
  }

  /// Clones of both functions; `equal` may be null. All sizes are tried, so that all problems are told.
  static bool specialize(SymbolTable &table, func::FuncOp general, func::FuncOp equal) {
    auto buckets = dyn_cast_if_present<DictionaryAttr>(general->removeAttr(prim::bucketsAttr));
    if (!buckets)
      return true;
    if (equal)
      equal->removeAttr(prim::bucketsAttr);
    // What is for fewer sizes is tried before what is for more.
    Block::iterator place = equal ? equal->getIterator() : std::next(general->getIterator());
    SmallVector<std::pair<Pins, Expr>> impossible;
    DenseSet<NamedAttribute> served;
    for (const Pins &pins : combine(buckets)) {
      Expr broken = equal ? addVariant(table, equal, general, pins, place) : Expr();
      if (!equal || broken || isOneMet(equal, pins))
        broken = addVariant(table, general, general, pins, place);
      if (broken)
        impossible.push_back({pins, broken});
      else
        served.insert(pins.begin(), pins.end());
    }
    bool isMade = true;
    for (const auto &[pins, broken] : impossible) {
      if (llvm::all_of(pins, [&](NamedAttribute pin) { return served.contains(pin); }))
        continue;
      diagnose(UnknownLoc::get(general.getContext()), DiagId::BadShapeOption, "--bucket " + describePins(pins),
               "the model needs " + conditionText(broken) + ", which does not hold");
      isMade = false;
    }
    return isMade;
  }

  /// Whether a size that meets others is 1, so that a run may have others in its place.
  static bool isOneMet(func::FuncOp equal, const Pins &pins) {
    return llvm::any_of(pins, [&](NamedAttribute pin) {
      return sizeOf(pin) == 1 &&
             llvm::any_of(equal->getAttrOfType<DictionaryAttr>(prim::pinsAttr), [&](NamedAttribute known) {
               auto value = dyn_cast<ExprAttr>(known.getValue());
               Expr key = Expr::parse(equal.getContext(), known.getName());
               return (key && key.uses(pin.getName())) || (value && Expr(value).uses(pin.getName()));
             });
    });
  }

  /// A clone of `original` for these sizes; none where a guard does not hold, which is returned.
  static Expr addVariant(SymbolTable &table, func::FuncOp original, func::FuncOp general, const Pins &pins,
                         Block::iterator place) {
    func::FuncOp variant = original.clone();
    if (Expr broken = makeVariant(variant, original, pins)) {
      variant.erase();
      return broken;
    }
    std::string name = original.getName().str();
    for (NamedAttribute pin : pins)
      name += "_" + pin.getName().str() + "_" + std::to_string(sizeOf(pin));
    variant.setName(name);
    variant->setAttr(prim::variantOfAttr, FlatSymbolRefAttr::get(general));
    table.insert(variant, place);
    return {};
  }
};

} // namespace
