//===- ElementaryFunctions.cpp - dispatch of the table --------------------===//
#include "codegen/common/ElementaryFunctions.h"
#include "codegen/common/ElementaryFamilies.h"
#include "codegen/common/ElementaryNarrow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ptc::codegen {

// Emitters of the SPECIAL rows (Power, Rounding, Trig).
Num emitFPowI(Num x, Value n);
Value emitIPowI(ImplicitLocOpBuilder &b, Value x, Value n, llvm::function_ref<Value(Value)> anyLane);
Num emitMinMax(Num x, Num y, arith::FastMathFlags flags, bool maximum, bool propagatesNaN);
Num emitFmaWithoutInstruction(Num x, Num y, Num z);
SmallVector<Value> emitSincos(Num x);

/// Left alone, as the target has it.
static bool isKept(Operation *op, const ElementaryOptions &options) {
#define PTC_ELEMENTARY_KEPT(OP)                                                                                        \
  if (isa<OP>(op))                                                                                                     \
    return true;
#include "codegen/common/ElementaryFunctions.def"
  if (isa<arith::MaximumFOp, arith::MinimumFOp>(op))
    return options.hasExtrema && op->getResult(0).getType().isF32();
  return isa<math::FmaOp>(op) && options.hasFma;
}

bool isElementary(Operation *op) {
  return isKept(op, {}) || isa<
#define PTC_ELEMENTARY_UNARY(NAME, OP, ULP32, ULP64) OP,
#define PTC_ELEMENTARY_BINARY(NAME, OP, ULP32, ULP64) OP,
#define PTC_ELEMENTARY_TEST(NAME, OP) OP,
#define PTC_ELEMENTARY_SPECIAL(NAME, OP) OP,
#include "codegen/common/ElementaryFunctions.def"
                               math::FmaOp>(op);
}

/// The rows whose emitter sees the op; x are its operands as floats of e.
static SmallVector<Value> emitSpecial(Emitter &e, Operation *op, ValueRange x) {
  auto number = [&](unsigned i) { return e.num(x[i]); };
  auto minMax = [&](auto o, bool maximum, bool propagates) -> SmallVector<Value> {
    return {emitMinMax(number(0), number(1), o.getFastmath(), maximum, propagates).v};
  };
  return llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case([&](math::SincosOp) { return emitSincos(number(0)); })
      .Case([&](math::FPowIOp) -> SmallVector<Value> { return {emitFPowI(number(0), x[1]).v}; })
      .Case([&](math::FmaOp) -> SmallVector<Value> {
        return {emitFmaWithoutInstruction(number(0), number(1), number(2)).v};
      })
      .Case([&](math::ClampFOp) -> SmallVector<Value> {
        Num low = select(number(0) < number(1), number(1), number(0));
        return {select(number(2) < low, number(2), low).v};
      })
      .Case([&](arith::MaximumFOp o) { return minMax(o, true, true); })
      .Case([&](arith::MinimumFOp o) { return minMax(o, false, true); })
      .Case([&](arith::MaxNumFOp o) { return minMax(o, true, false); })
      .Case([&](arith::MinNumFOp o) { return minMax(o, false, false); })
      .Default(SmallVector<Value>());
}

static SmallVector<Value> emitFloat(Emitter &e, Operation *op, ValueRange x) {
  if (isa<math::Exp2Op>(op) && op->hasAttr(notPositiveAttr))
    return {exp2OfNotPositive(e.num(x[0])).v};
  if (isa<math::ExpOp>(op) && op->hasAttr(notPositiveAttr))
    return {expOfNotPositive(e.num(x[0])).v};
  if (isa<math::Log1pOp>(op) && op->hasAttr(inUnitAttr) && !e.isF64)
    return {log1pOfUnit(e.num(x[0])).v};
#define PTC_ELEMENTARY_UNARY(NAME, OP, ULP32, ULP64)                                                                   \
  if (isa<OP>(op))                                                                                                     \
    return {emit##NAME(e.num(x[0])).v};
#define PTC_ELEMENTARY_BINARY(NAME, OP, ULP32, ULP64)                                                                  \
  if (isa<OP>(op))                                                                                                     \
    return {emit##NAME(e.num(x[0]), e.num(x[1])).v};
#define PTC_ELEMENTARY_TEST(NAME, OP)                                                                                  \
  if (isa<OP>(op))                                                                                                     \
    return {emit##NAME(e.num(x[0])).v};
#include "codegen/common/ElementaryFunctions.def"
  return emitSpecial(e, op, x);
}

void eraseUnused(Operation *op) {
  llvm::SmallSetVector<Operation *, 8> candidates;
  candidates.insert(op);
  while (!candidates.empty()) {
    Operation *each = candidates.pop_back_val();
    if (!isOpTriviallyDead(each))
      continue;
    for (Value operand : each->getOperands())
      if (Operation *defining = operand.getDefiningOp())
        candidates.insert(defining);
    each->erase(); // no user is left that could add it again
  }
}

/// The op itself on other operands.
static SmallVector<Value> cloneOnto(ImplicitLocOpBuilder &b, Operation *op, ValueRange operands) {
  if (llvm::equal(op->getOperands(), operands))
    return llvm::to_vector_of<Value>(op->getResults());
  Operation *copy = b.clone(*op);
  copy->setOperands(operands);
  return llvm::to_vector_of<Value>(copy->getResults());
}

static SmallVector<Value> emitInteger(ImplicitLocOpBuilder &b, Operation *op, ValueRange operands,
                                      const ElementaryOptions &options) {
  if (!isa<math::IPowIOp>(op))
    return {};
  auto v = dyn_cast<VectorType>(operands[0].getType());
  Type f32 = b.getF32Type();
  Emitter e(b, v ? Type(v.clone(f32)) : f32, options);
  return {emitIPowI(b, operands[0], operands[1], [&](Value m) { return e.any(e.mask(m)); })};
}

SmallVector<Value> expandElementaryResults(ImplicitLocOpBuilder &b, Operation *op, ValueRange operands,
                                           const ElementaryOptions &options) {
  if (!isElementary(op))
    return {};
  if (isKept(op, options))
    return cloneOnto(b, op, operands);
  Type type = operands[0].getType(), element = getElementTypeOrSelf(type);
  if (element.isInteger())
    return emitInteger(b, op, operands, options);
  if (element.isF32() || element.isF64()) {
    Emitter e(b, type, options);
    return emitFloat(e, op, operands);
  }
  if (!element.isF16() && !element.isBF16())
    return {};

  Type f32 = b.getF32Type(), wideType = f32;
  if (auto v = dyn_cast<VectorType>(type))
    wideType = v.clone(f32);
  SmallVector<Value> wide;
  for (Value x : operands)
    wide.push_back(x.getType() == type ? b.createOrFold<arith::ExtFOp>(wideType, x) : x);
  Emitter e(b, wideType, options);
  SmallVector<Value> results = emitFloat(e, op, wide);
  for (Value &r : results)
    if (r.getType() == wideType)
      r = arith::TruncFOp::create(b, type, r);
  return results;
}

Value expandElementary(ImplicitLocOpBuilder &b, Operation *op, ValueRange operands, const ElementaryOptions &options) {
  SmallVector<Value> results = expandElementaryResults(b, op, operands, options);
  return results.size() == 1 ? results.front() : Value();
}

/// Says of log1p(exp(-|x|)), which is what a softplus adds, that its operand is in [0, 1].
static void markUnitLogarithms(Operation *root) {
  root->walk([](math::Log1pOp log) {
    auto exp = log.getOperand().getDefiningOp<math::ExpOp>();
    auto negated = exp ? exp.getOperand().getDefiningOp<arith::NegFOp>() : arith::NegFOp();
    if (negated && negated.getOperand().getDefiningOp<math::AbsFOp>())
      log->setAttr(inUnitAttr, UnitAttr::get(log.getContext()));
  });
}

void expandElementaryFunctions(Operation *root, const ElementaryOptions &options) {
  expandNarrowFunctions(root, options);
  if (options.joinsSigmoids)
    joinSigmoids(root, options);
  if (options.multipliesByInverseSums)
    multiplyByInverseSums(root, options);
  if (options.multipliesByReciprocals)
    multiplyByReciprocals(root, options);
  if (options.dividesByFloats)
    expandIntegerDivisions(root, options);
  if (options.convertsThrough32)
    expandWideConversions(root, options);
  markUnitLogarithms(root);
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    if (isElementary(op) && !isKept(op, options))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    SmallVector<Value> results = expandElementaryResults(b, op, op->getOperands(), options);
    if (results.empty())
      continue;
    op->replaceAllUsesWith(results);
    op->erase();
  }
}

} // namespace ptc::codegen
