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
// original refuses, it refuses. So a guard that becomes false here would never let
// the variant run: the size is reported.
//
// Padding to a bucket (a call of 100 runs as one of 128) is not here: what the padding
// has to be depends on the model, masks included, and is the caller's to know.
//
//===----------------------------------------------------------------------===//
#include "compiler/specialize/Passes.h"
#include "ir/Diagnostics.h"
#include "ir/prim/Variants.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

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

/// The original's guards where they do not hold anyway, then `symbol == size` for each pin.
LogicalResult setGuards(func::FuncOp variant, func::FuncOp original, const Pins &pins) {
  MLIRContext *context = variant.getContext();
  SymbolRanges ranges = prim::getSymbolRanges(variant->getAttrOfType<DictionaryAttr>(prim::symbolsAttr));
  SmallVector<Expr> guards;
  auto copied = variant->getAttrOfType<ArrayAttr>(prim::guardsAttr);
  for (auto [number, guard] : llvm::enumerate(copied ? prim::getExprs(copied) : SmallVector<Expr>())) {
    Expr condition = guard.simplify(ranges);
    if (condition.isConstant(0)) {
      Expr asWritten = prim::getExprs(original->getAttrOfType<ArrayAttr>(prim::guardsAttr))[number];
      diagnose(UnknownLoc::get(context), DiagId::BadShapeOption, "--bucket " + prim::getVariantName(variant),
               "the model needs " + asWritten.str() + " to hold, which it does not at this size");
      return failure();
    }
    if (!condition.isConstant())
      guards.push_back(condition);
  }
  for (NamedAttribute pin : pins)
    guards.push_back(Expr::eq(Expr::symbol(context, pin.getName()), Expr::constant(context, sizeOf(pin))));
  variant->setAttr(prim::guardsAttr, prim::getExprArray(context, guards));
  return success();
}

LogicalResult makeVariant(func::FuncOp variant, func::FuncOp original, const Pins &pins) {
  prim::substituteSymbols(variant, [&](StringRef symbol) -> Expr {
    for (NamedAttribute pin : pins)
      if (pin.getName() == symbol)
        return Expr::constant(variant.getContext(), sizeOf(pin));
    return {};
  });
  variant->setAttr(prim::symbolsAttr, pinRanges(variant->getAttrOfType<DictionaryAttr>(prim::symbolsAttr), pins));
  variant->setAttr(prim::pinsAttr, DictionaryAttr::get(variant.getContext(), pins));
  return setGuards(variant, original, pins);
}

struct SpecializeFunctions : ptc::impl::SpecializeFunctionsBase<SpecializeFunctions> {
  void runOnOperation() override {
    SymbolTable table(getOperation());
    bool isMade = true;
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      auto buckets = function->getAttrOfType<DictionaryAttr>(prim::bucketsAttr);
      if (!buckets)
        continue;
      function->removeAttr(prim::bucketsAttr);
      auto general = function->getAttrOfType<FlatSymbolRefAttr>(prim::variantOfAttr);
      // What is for fewer sizes is tried before what is for more.
      Block::iterator place = general ? function->getIterator() : std::next(function->getIterator());
      for (const Pins &pins : combine(buckets)) {
        func::FuncOp variant = function.clone();
        std::string name = function.getName().str();
        for (NamedAttribute pin : pins)
          name += "_" + pin.getName().str() + "_" + std::to_string(sizeOf(pin));
        variant.setName(name);
        variant->setAttr(prim::variantOfAttr, general ? general : FlatSymbolRefAttr::get(function));
        table.insert(variant, place);
        isMade &= succeeded(makeVariant(variant, function, pins)); // all are tried, so that all problems are told
      }
    }
    if (!isMade)
      signalPassFailure();
  }
};

} // namespace
