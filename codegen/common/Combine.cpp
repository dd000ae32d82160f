//===- Combine.cpp - one step of a reduction ------------------------------===//
#include "codegen/common/BodyEmitter.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;
using prim::ReduceKind;

/// A step that puts NaN back where one value is: select(x is NaN, NaN, rest).
struct NanStep {
  Value x, rest;
};
static std::optional<NanStep> matchNanStep(Value value, Value nan) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto isNan = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  bool isStep = isNan && isNan.getPredicate() == arith::CmpFPredicate::UNO && isNan.getLhs() == isNan.getRhs() &&
                select.getTrueValue() == nan;
  return isStep ? std::optional(NanStep{isNan.getLhs(), select.getFalseValue()}) : std::nullopt;
}

// Where there is no instruction for it, one on most processors: select(a > b, a, b), which is b where they are
// unordered, so that a NaN in b stays. A NaN in `a` is put back by a second selection, off the chain of dependent
// steps. It selects a constant: of select(nan, a, select(a > b, a, b)) LLVM would make one selection by two conditions,
// which is slower. If b is such a step itself, one comparison asks about the values of both:
//
//   max(a, select(c is NaN, NaN, max(c, d))) = select(a or c is NaN, NaN, max(a, max(c, d)))
static Value emitFloatExtremum(KernelEmitter &e, bool isMax, Value a, Value b, bool noNan) {
  if (e.traits.hasExtrema && a.getType().isF32())
    return isMax ? arith::MaximumFOp::create(e.builder, e.loc, a, b).getResult()
                 : arith::MinimumFOp::create(e.builder, e.loc, a, b).getResult();
  auto compare = [&](arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(e.builder, e.loc, predicate, x, y);
  };
  auto maximum = [&](Value x, Value y) -> Value {
    Value better = compare(isMax ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, x, y);
    return arith::SelectOp::create(e.builder, e.loc, better, x, y);
  };
  if (noNan)
    return maximum(a, b);
  // All bits are set: where masks are vectors, the selection joins bits.
  auto type = cast<FloatType>(getElementTypeOrSelf(a.getType()));
  APFloat allOnes(type.getFloatSemantics(), APInt::getAllOnes(type.getWidth()));
  Value nan = e.invariants.constant(FloatAttr::get(type, allOnes));
  if (auto vector = dyn_cast<VectorType>(a.getType()))
    nan = e.splat(nan, vector.getNumElements());
  std::optional<NanStep> before = matchNanStep(b, nan);
  Value isNan = compare(arith::CmpFPredicate::UNO, a, before ? before->x : a);
  return arith::SelectOp::create(e.builder, e.loc, isNan, nan, maximum(a, before ? before->rest : b));
}

Value codegen::emitCombine(KernelEmitter &e, ReduceKind kind, Value a, Value b, bool isUnsigned, bool noNan) {
  OpBuilder &builder = e.builder;
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(a.getType()));
  auto create = [&](auto tag) -> Value { return decltype(tag)::create(builder, e.loc, a, b); };
  // A product that enters a sum may be rounded with it.
  auto contract = arith::FastMathFlagsAttr::get(builder.getContext(), arith::FastMathFlags::contract);
  switch (kind) {
  case ReduceKind::Sum:
    return isFloat ? arith::AddFOp::create(builder, e.loc, a, b, contract).getResult() : create(arith::AddIOp());
  case ReduceKind::Prod:
    return isFloat ? arith::MulFOp::create(builder, e.loc, a, b, contract).getResult() : create(arith::MulIOp());
  case ReduceKind::Max:
    if (isFloat)
      return emitFloatExtremum(e, true, a, b, noNan);
    return isUnsigned ? create(arith::MaxUIOp()) : create(arith::MaxSIOp());
  case ReduceKind::Min:
    if (isFloat)
      return emitFloatExtremum(e, false, a, b, noNan);
    return isUnsigned ? create(arith::MinUIOp()) : create(arith::MinSIOp());
  case ReduceKind::Any:
    return create(arith::OrIOp());
  case ReduceKind::All:
    return create(arith::AndIOp());
  }
  llvm_unreachable("all kinds are above");
}

TypedAttr codegen::getIdentity(ReduceKind kind, Type type, bool isUnsigned) {
  if (auto floating = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floating.getFloatSemantics();
    switch (kind) {
    case ReduceKind::Prod:
      return FloatAttr::get(type, 1.0);
    case ReduceKind::Max:
      return FloatAttr::get(type, APFloat::getInf(semantics, true));
    case ReduceKind::Min:
      return FloatAttr::get(type, APFloat::getInf(semantics, false));
    default:
      return FloatAttr::get(type, 0.0);
    }
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  APInt value(bits, 0);
  if (kind == ReduceKind::Prod)
    value = APInt(bits, 1);
  if (kind == ReduceKind::All)
    value = APInt::getAllOnes(bits);
  if (kind == ReduceKind::Max)
    value = isUnsigned ? APInt::getMinValue(bits) : APInt::getSignedMinValue(bits);
  if (kind == ReduceKind::Min)
    value = isUnsigned ? APInt::getMaxValue(bits) : APInt::getSignedMaxValue(bits);
  return IntegerAttr::get(type, value);
}
