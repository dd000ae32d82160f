//===- IntegerDivision.cpp - vectors of quotients and remainders ----------===//
//
// Processors divide integers one at a time, and those of vectors by floats at no cost of exactness: with p digits,
// where |a| and |b| are at most 2^(p-2),
//
//   q = trunc(fl(a / b))    r = a - q b
//
// are those of the integers. A quotient that is no integer lies at least 1/b below the next one k, which is at least
// 1/(2 max(a, b)) of k, more than a rounding moves it; r is exact, since q b is an integer that has p digits. Integers
// of 16 bits are divided in f32, of 32 bits in f64, of 64 bits in f64 as long as all lanes are in [-2^51, 2^51), else
// one by one: a branch that is never taken by sizes, positions and counts.
//
// By a divisor that the lanes share there is one division, of 1 by it. |a| (1 / |b|) errs by at most half of an integer
// and is rounded to the nearest, so that r lies between -|b| and |b|: where it is negative, it is one |b| more.
//
// A remainder with the divisor's sign (prim's modulus) is that of a quotient rounded down, or to the nearest and b more
// where its sign is not b's. The choice that a body makes behind a truncated remainder is replaced with it.
//
// Conversions of 64 bits need no instruction for them (AVX-512 has it): the bits of 1.5 2^52 + a are the integer's and
// a constant.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryFamilies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ptc::codegen {

static constexpr double roundBase = 0x1.8p52; // its last digit is 1
static constexpr uint64_t roundBits = 0x4338000000000000, reach = uint64_t(1) << 51;

namespace {
class Division {
public:
  Division(Emitter &e, Operation *op, bool isFloored)
      : e(e), op(op), b(e.b), type(cast<VectorType>(op->getResult(0).getType())), width(type.getElementTypeBitWidth()),
        isSigned(isa<arith::DivSIOp, arith::RemSIOp>(op)), isQuotient(isa<arith::DivSIOp, arith::DivUIOp>(op)),
        isFloored(isFloored) {}

  Value emit();

private:
  Type integers(unsigned bits) { return type.clone(b.getIntegerType(bits)); }
  /// Whether the integers are converted by adding roundBase.
  bool isWide() const { return width == 64 || (width == 32 && !isSigned); }
  Value extended(Value x, unsigned bits);
  Num toFloat(Value x);
  Value toInteger(Num x);
  Num divide(Num x, Num y);
  Num divideByShared(Num x, Value divisor);
  Value divideOneByOne();

  Emitter &e;
  Operation *op;
  ImplicitLocOpBuilder &b;
  VectorType type;
  unsigned width;
  bool isSigned, isQuotient, isFloored;
};
} // namespace

Value Division::extended(Value x, unsigned bits) {
  if (width == bits)
    return x;
  return isSigned ? Value(arith::ExtSIOp::create(b, integers(bits), x))
                  : Value(arith::ExtUIOp::create(b, integers(bits), x));
}

Num Division::toFloat(Value x) {
  if (isWide() && !e.options.x86Scalef)
    return toNum(e.bits(extended(x, 64)) + roundBits) - roundBase;
  return e.num(arith::SIToFPOp::create(b, e.floatType, extended(x, isWide() ? 64 : 32)));
}

Value Division::toInteger(Num x) {
  bool adds = isWide() && !e.options.x86Scalef;
  Value result = adds ? (toBits(x + roundBase) - roundBits).v
                      : Value(arith::FPToSIOp::create(b, integers(isWide() ? 64 : 32), x.v));
  return result.getType() == type ? result : Value(arith::TruncIOp::create(b, type, result));
}

Num Division::divide(Num x, Num y) {
  Num q = isFloored ? e.num(math::FloorOp::create(b, (x / y).v)) : trunc(x / y);
  return isQuotient ? q : fma(-q, y, x);
}

// The divisor is converted and inverted as a scalar: it may be loaded anew for each vector, where stores may change it.
Num Division::divideByShared(Num x, Value divisor) {
  Emitter scalar(b, getElementTypeOrSelf(e.floatType), e.options);
  auto spread = [&](Num value) { return e.num(vector::BroadcastOp::create(b, e.floatType, value.v)); };
  Num y = scalar.num(isSigned ? Value(arith::SIToFPOp::create(b, scalar.floatType, divisor))
                              : Value(arith::UIToFPOp::create(b, scalar.floatType, divisor)));
  if (isFloored) {
    Num q = e.num(math::RoundEvenOp::create(b, (x * spread(1.0 / y)).v)), step = spread(y), r = fma(-q, step, x);
    Num turned = toNum(toBits(r) ^ toBits(spread(copysign(scalar.num(0.0), y))));
    return r + select(turned < 0.0, step, e.num(0.0));
  }
  Num length = abs(y), step = spread(length), size = isSigned ? abs(x) : x;
  Num q = e.num(math::RoundEvenOp::create(b, (size * spread(1.0 / length)).v)), r = fma(-q, step, size);
  Mask isBelow = r < 0.0;
  Num result = isQuotient ? select(isBelow, q - 1.0, q) : select(isBelow, r + step, r);
  if (!isSigned)
    return result;
  return copysign(result, isQuotient ? toNum(toBits(x) ^ toBits(spread(y))) : x);
}

Value Division::divideOneByOne() {
  Value result = b.clone(*op)->getResult(0);
  if (!isFloored)
    return result;
  Bits r = e.bits(result), divisor = e.bits(op->getOperand(1));
  return select(lessSigned(r ^ divisor, e.bits(0)) & differs(r, 0), r + divisor, r).v;
}

/// The scalar that all lanes of a vector have; null where they may differ.
static Value getShared(ImplicitLocOpBuilder &b, Value vector) {
  if (auto broadcast = vector.getDefiningOp<vector::BroadcastOp>())
    return isa<VectorType>(broadcast.getSource().getType()) ? Value() : broadcast.getSource();
  DenseElementsAttr constant;
  if (!matchPattern(vector, m_Constant(&constant)) || !constant.isSplat())
    return {};
  return arith::ConstantOp::create(b, cast<TypedAttr>(constant.getSplatValue<Attribute>()));
}

Value Division::emit() {
  Value x = op->getOperand(0), y = op->getOperand(1);
  Value shared = getShared(b, y);
  Value result = toInteger(shared ? divideByShared(toFloat(x), shared) : divide(toFloat(x), toFloat(y)));
  if (width < 64)
    return result;
  auto isBeyond = [&](Emitter &of, Value value) { // the reach of f64
    return of.anyBit(isSigned ? (of.bits(value) + reach) & ~(2 * reach - 1) : of.bits(value) & ~(reach - 1));
  };
  Emitter scalar(b, b.getF64Type(), e.options);
  Value rare = arith::OrIOp::create(b, isBeyond(e, x), shared ? isBeyond(scalar, shared) : isBeyond(e, y));
  return e.ifTrue(rare, {result}, [&]() -> SmallVector<Value> { return {divideOneByOne()}; }).front();
}

static bool isSame(Value a, Value b) {
  auto first = a.getDefiningOp<vector::BroadcastOp>(), second = b.getDefiningOp<vector::BroadcastOp>();
  if (first && second)
    return a.getType() == b.getType() && first.getSource() == second.getSource();
  DenseElementsAttr one, other;
  return a == b || (matchPattern(a, m_Constant(&one)) && matchPattern(b, m_Constant(&other)) && one == other);
}

static bool isComparison(Value value, arith::CmpIPredicate predicate, llvm::function_ref<bool(Value)> isLeft) {
  auto compare = value.getDefiningOp<arith::CmpIOp>();
  return compare && compare.getPredicate() == predicate && matchPattern(compare.getRhs(), m_Zero()) &&
         isLeft(compare.getLhs());
}

/// The modulus select(r != 0 && (r ^ divisor) < 0, r + divisor, r) of a remainder that nothing else uses, or null.
static arith::SelectOp findModulus(Operation *op) {
  Value r = op->getResult(0), divisor = op->getOperand(1);
  arith::SelectOp modulus;
  for (Operation *user : r.getUsers())
    if (auto choice = dyn_cast<arith::SelectOp>(user); choice && choice.getFalseValue() == r)
      modulus = choice;
  auto joins = [&](Operation *both) {
    return both && ((both->getOperand(0) == r && isSame(both->getOperand(1), divisor)) ||
                    (both->getOperand(1) == r && isSame(both->getOperand(0), divisor)));
  };
  auto condition = modulus ? modulus.getCondition().getDefiningOp<arith::AndIOp>() : arith::AndIOp();
  if (!isa<arith::RemSIOp>(op) || !condition || !joins(modulus.getTrueValue().getDefiningOp<arith::AddIOp>()))
    return {};
  auto isRest = [&](Value value) { return value == r; };
  auto isUnlike = [&](Value value) { return joins(value.getDefiningOp<arith::XOrIOp>()); };
  bool matches = isComparison(condition.getLhs(), arith::CmpIPredicate::ne, isRest) &&
                 isComparison(condition.getRhs(), arith::CmpIPredicate::slt, isUnlike);
  return matches && llvm::range_size(r.getUsers()) == 4 ? modulus : arith::SelectOp();
}

/// By a constant the back end multiplies, of all types but i64, of which vectors have no high halves of products;
/// powers of 2 are shifts.
static bool isConverted(Operation *op) {
  auto type = dyn_cast<VectorType>(op->getResult(0).getType());
  if (!type || type.getElementTypeBitWidth() < 8)
    return false;
  DenseElementsAttr constant;
  if (!matchPattern(op->getOperand(1), m_Constant(&constant)))
    return true;
  if (type.getElementTypeBitWidth() < 64 || !constant.isSplat())
    return false;
  APInt divisor = constant.getSplatValue<APInt>();
  return !divisor.isZero() && !divisor.abs().isPowerOf2();
}

void expandIntegerDivisions(Operation *root, const ElementaryOptions &options) {
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op) && isConverted(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    auto type = cast<VectorType>(op->getResult(0).getType());
    Type element = type.getElementTypeBitWidth() <= 16 ? b.getF32Type() : b.getF64Type();
    Emitter e(b, type.clone(element), options);
    arith::SelectOp modulus = findModulus(op);
    Value result = Division(e, op, modulus != nullptr).emit();
    Operation *replaced = modulus ? modulus.getOperation() : op;
    replaced->getResult(0).replaceAllUsesWith(result);
    eraseUnused(replaced);
  }
}

} // namespace ptc::codegen
