#include "codegen/host/ExprCode.h"

#include <cassert>

using namespace llvm;

namespace ptc::host {

Value *ExprCode::arithmetic(Instruction::BinaryOps operation, Intrinsic::ID checked, Value *a, Value *b) {
  if (!checkOverflow)
    return builder.CreateBinOp(operation, a, b);
  auto *x = dyn_cast<ConstantInt>(a), *y = dyn_cast<ConstantInt>(b);
  bool isMul = operation == Instruction::Mul, wraps = true;
  APInt known = !x || !y ? APInt(64, 0)
                : isMul  ? x->getValue().smul_ov(y->getValue(), wraps)
                         : x->getValue().sadd_ov(y->getValue(), wraps);
  if (!wraps)
    return builder.getInt(known);
  Value *pair = builder.CreateBinaryIntrinsic(checked, a, b);
  Value *carried = builder.CreateExtractValue(pair, 1);
  overflow = overflow ? builder.CreateOr(overflow, carried) : carried;
  return builder.CreateExtractValue(pair, 0);
}

/// Truncating division first, then one step down where the signs of remainder and divisor differ. A divisor of 0 gives
/// 0 and leaves the dividend, -1 gives the negated dividend and 0: neither reaches the instruction, which would trap.
Value *ExprCode::floorDivision(Value *a, Value *b, bool modulo) {
  Value *zero = builder.getInt64(0), *one = builder.getInt64(1);
  Value *isZero = builder.CreateICmpEQ(b, zero), *isMinusOne = builder.CreateICmpEQ(b, builder.getInt64(-1));
  Value *divisor = builder.CreateSelect(builder.CreateOr(isZero, isMinusOne), one, b);
  Value *remainder = builder.CreateSRem(a, divisor);
  Value *differ = builder.CreateICmpSLT(builder.CreateXor(remainder, divisor), zero);
  Value *adjust = builder.CreateAnd(builder.CreateICmpNE(remainder, zero), differ);
  if (modulo) {
    Value *floored = builder.CreateSelect(adjust, builder.CreateAdd(remainder, divisor), remainder);
    return builder.CreateSelect(isZero, a, floored);
  }
  Value *quotient = builder.CreateSub(builder.CreateSDiv(a, divisor), builder.CreateZExt(adjust, builder.getInt64Ty()));
  return builder.CreateSelect(isZero, zero, builder.CreateSelect(isMinusOne, builder.CreateNeg(a), quotient));
}

Value *ExprCode::emit(Expr expr) {
  SmallVector<Value *, 4> values;
  for (Expr operand : expr.getOperands())
    values.push_back(emit(operand));
  auto fold = [&](Instruction::BinaryOps operation, Intrinsic::ID checked) {
    Value *result = values[0];
    for (Value *value : ArrayRef<Value *>(values).drop_front())
      result = arithmetic(operation, checked, result, value);
    return result;
  };
  auto extremum = [&](CmpInst::Predicate predicate) {
    Value *result = values[0];
    for (Value *value : ArrayRef<Value *>(values).drop_front())
      result = builder.CreateSelect(builder.CreateICmp(predicate, result, value), result, value);
    return result;
  };
  switch (expr.getKind()) {
  case ExprKind::Constant:
    return builder.getInt64(expr.getValue());
  case ExprKind::Symbol: {
    if (Value *address = symbols.addresses.lookup(expr.getSymbol()))
      return builder.CreateLoad(builder.getInt64Ty(), address);
    Value *value = symbols.values.lookup(expr.getSymbol());
    assert(value && "a host expression uses a symbol that is not bound");
    return value;
  }
  case ExprKind::Mul:
    return fold(Instruction::Mul, Intrinsic::smul_with_overflow);
  case ExprKind::Add:
    return fold(Instruction::Add, Intrinsic::sadd_with_overflow);
  case ExprKind::FloorDiv:
    return floorDivision(values[0], values[1], /*modulo=*/false);
  case ExprKind::Mod:
    return floorDivision(values[0], values[1], /*modulo=*/true);
  case ExprKind::Min:
    return extremum(CmpInst::ICMP_SLT);
  case ExprKind::Max:
    return extremum(CmpInst::ICMP_SGT);
  case ExprKind::Lt:
    return builder.CreateZExt(builder.CreateICmpSLT(values[0], values[1]), builder.getInt64Ty());
  case ExprKind::Eq:
    return builder.CreateZExt(builder.CreateICmpEQ(values[0], values[1]), builder.getInt64Ty());
  case ExprKind::Select:
    return builder.CreateSelect(builder.CreateICmpNE(values[0], builder.getInt64(0)), values[1], values[2]);
  }
  llvm_unreachable("all kinds of expressions are handled");
}

} // namespace ptc::host
