//===- Combine.cpp - one step of a reduction ------------------------------===//
#include "codegen/common/BodyEmitter.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;
using prim::ReduceKind;

// Where there is no instruction for it, one on most processors: select(a > b, a, b), which is b where they are
// unordered, so that a NaN in b stays. A NaN in `a` is put back by a second selection, off the chain of dependent
// steps. It selects a constant: of select(nan, a, select(a > b, a, b)) LLVM would make one selection by two conditions,
// which is slower.
static Value emitFloatExtremum(KernelEmitter &e, bool isMax, Value a, Value b, bool noNan) {
  if (e.traits.hasExtrema && a.getType().isF32())
    return isMax ? arith::MaximumFOp::create(e.builder, e.loc, a, b).getResult()
                 : arith::MinimumFOp::create(e.builder, e.loc, a, b).getResult();
  auto compare = [&](arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(e.builder, e.loc, predicate, x, y);
  };
  Value better = compare(isMax ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, a, b);
  Value extremum = arith::SelectOp::create(e.builder, e.loc, better, a, b);
  if (noNan)
    return extremum;
  auto type = cast<FloatType>(getElementTypeOrSelf(a.getType()));
  Value nan = e.invariants.constant(FloatAttr::get(type, APFloat::getNaN(type.getFloatSemantics())));
  if (auto vector = dyn_cast<VectorType>(a.getType()))
    nan = e.splat(nan, vector.getNumElements());
  return arith::SelectOp::create(e.builder, e.loc, compare(arith::CmpFPredicate::UNO, a, a), nan, extremum);
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
