//===- ElementaryEmitter.cpp - arithmetic that reads like the formula -----===//
#include "codegen/common/ElementaryEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace ptc::codegen {

static Type elementWithShape(Type shape, Type element) {
  if (auto v = dyn_cast<VectorType>(shape))
    return v.clone(element);
  return element;
}

static Type integerOfWidth(Type type) {
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  return elementWithShape(type, IntegerType::get(type.getContext(), width));
}

Emitter::Emitter(ImplicitLocOpBuilder &b, Type type, const ElementaryOptions &options)
    : b(b), options(options), floatType(type), bitsType(integerOfWidth(type)),
      isF64(getElementTypeOrSelf(type).isF64()), width(isF64 ? 64 : 32), mantissa(isF64 ? 52 : 23),
      bias(isF64 ? 1023 : 127) {
  assert((isF64 || getElementTypeOrSelf(type).isF32()) && "elementary functions are computed in f32 or f64");
}

Type Emitter::withElement(Type element) const { return elementWithShape(floatType, element); }

static Value constant(ImplicitLocOpBuilder &b, Type type, TypedAttr scalar) {
  if (auto v = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(b, DenseElementsAttr::get(v, Attribute(scalar)));
  return arith::ConstantOp::create(b, scalar);
}

Num Emitter::num(double c) {
  return {this, constant(b, floatType, b.getFloatAttr(getElementTypeOrSelf(floatType), c))};
}

Bits Emitter::bits(uint64_t c) {
  Type element = getElementTypeOrSelf(bitsType);
  return {this, constant(b, bitsType,
                         b.getIntegerAttr(element, APInt(width, c, /*isSigned=*/false, /*implicitTrunc=*/true)))};
}

Num Emitter::infinity() { return num(std::numeric_limits<double>::infinity()); }
Num Emitter::nan() { return num(std::numeric_limits<double>::quiet_NaN()); }
double Emitter::smallestNormal() const { return std::ldexp(1.0, 1 - bias); }

/// What the lanes have together.
static Value joinLanes(ImplicitLocOpBuilder &b, Value x) {
  auto v = dyn_cast<VectorType>(x.getType());
  if (!v)
    return x;
  if (v.getRank() == 0)
    return vector::ExtractOp::create(b, x, ArrayRef<int64_t>{});
  if (v.getRank() > 1)
    x = vector::ShapeCastOp::create(b, VectorType::get({v.getNumElements()}, v.getElementType()), x);
  return vector::ReductionOp::create(b, vector::CombiningKind::OR, x);
}

Value Emitter::any(Mask m) { return joinLanes(b, m.v); }

Value Emitter::anyBit(Bits x) {
  Value all = joinLanes(b, x.v);
  Value none = arith::ConstantOp::create(b, b.getIntegerAttr(all.getType(), 0));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, all, none);
}

SmallVector<Value> Emitter::ifAny(Mask m, ArrayRef<Value> otherwise, llvm::function_ref<SmallVector<Value>()> then) {
  return ifTrue(any(m), otherwise, then);
}

SmallVector<Value> Emitter::ifTrue(Value condition, ArrayRef<Value> otherwise,
                                   llvm::function_ref<SmallVector<Value>()> then) {
  auto branch = scf::IfOp::create(b, TypeRange(ValueRange(otherwise)), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, then());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, otherwise);
  return llvm::to_vector_of<Value>(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

template <typename Op> static Num binary(Num a, Num b) { return {a.e, Op::create(a.e->b, a.v, b.v)}; }
template <typename Op> static Num unary(Num a) { return {a.e, Op::create(a.e->b, a.v)}; }

Num operator+(Num a, Num b) { return binary<arith::AddFOp>(a, b); }
Num operator-(Num a, Num b) { return binary<arith::SubFOp>(a, b); }
Num operator*(Num a, Num b) { return binary<arith::MulFOp>(a, b); }
Num operator/(Num a, Num b) { return binary<arith::DivFOp>(a, b); }
Num operator-(Num a) { return unary<arith::NegFOp>(a); }
Num operator+(Num a, double b) { return a + a.e->num(b); }
Num operator-(Num a, double b) { return a - a.e->num(b); }
Num operator*(Num a, double b) { return a * a.e->num(b); }
Num operator/(double a, Num b) { return b.e->num(a) / b; }
Num operator-(double a, Num b) { return b.e->num(a) - b; }

Num fma(Num a, Num b, Num c) {
  if (!a.e->options.hasFma)
    return a * b + c;
  return {a.e, math::FmaOp::create(a.e->b, a.v, b.v, c.v)};
}
Num fma(Num a, double b, Num c) { return fma(a, a.e->num(b), c); }
Num fma(Num a, Num b, double c) { return fma(a, b, a.e->num(c)); }

Num abs(Num x) { return unary<math::AbsFOp>(x); }
Num sqrt(Num x) { return unary<math::SqrtOp>(x); }
Num trunc(Num x) { return unary<math::TruncOp>(x); }
Num copysign(Num x, Num s) { return binary<math::CopySignOp>(x, s); }
Num select(Mask m, Num a, Num b) { return {m.e, arith::SelectOp::create(m.e->b, m.v, a.v, b.v)}; }
Num select(Mask m, double a, Num b) { return select(m, b.e->num(a), b); }
Num select(Mask m, Num a, double b) { return select(m, a, a.e->num(b)); }
Num select(Mask m, double a, double b, Emitter &e) { return select(m, e.num(a), e.num(b)); }

// The comparison's order makes a NaN choose x, which is what vmaxps and vminps do.
Num atLeast(Num x, double lowest) {
  Num c = x.e->num(lowest);
  return hasExtremum(x) ? binary<arith::MaximumFOp>(x, c) : select(x < c, c, x);
}
Num atMost(Num x, double highest) {
  Num c = x.e->num(highest);
  return hasExtremum(x) ? binary<arith::MinimumFOp>(x, c) : select(c < x, c, x);
}
bool hasExtremum(Num x) { return x.e->options.hasExtrema && x.v.getType().isF32(); }

static Mask compare(arith::CmpFPredicate p, Num a, Num b) { return {a.e, arith::CmpFOp::create(a.e->b, p, a.v, b.v)}; }
Mask operator<(Num a, Num b) { return compare(arith::CmpFPredicate::OLT, a, b); }
Mask operator<(Num a, double b) { return a < a.e->num(b); }
Mask operator>(Num a, double b) { return a.e->num(b) < a; }
Mask operator<=(Num a, Num b) { return compare(arith::CmpFPredicate::OLE, a, b); }
Mask operator>=(Num a, Num b) { return compare(arith::CmpFPredicate::OGE, a, b); }
Mask operator>=(Num a, double b) { return a >= a.e->num(b); }
Mask operator==(Num a, Num b) { return compare(arith::CmpFPredicate::OEQ, a, b); }
Mask operator==(Num a, double b) { return a == a.e->num(b); }
Mask unordered(Num a, Num b) { return compare(arith::CmpFPredicate::UNO, a, b); }
Mask differs(Num a, Num b) { return compare(arith::CmpFPredicate::UNE, a, b); }

//===----------------------------------------------------------------------===//
// Integers and masks
//===----------------------------------------------------------------------===//

template <typename Op> static Bits binary(Bits a, Bits b) { return {a.e, Op::create(a.e->b, a.v, b.v)}; }

Bits operator+(Bits a, Bits b) { return binary<arith::AddIOp>(a, b); }
Bits operator-(Bits a, Bits b) { return binary<arith::SubIOp>(a, b); }
Bits operator*(Bits a, Bits b) { return binary<arith::MulIOp>(a, b); }
Bits operator&(Bits a, Bits b) { return binary<arith::AndIOp>(a, b); }
Bits operator|(Bits a, Bits b) { return binary<arith::OrIOp>(a, b); }
Bits operator^(Bits a, Bits b) { return binary<arith::XOrIOp>(a, b); }
Bits operator+(Bits a, uint64_t b) { return a + a.e->bits(b); }
Bits operator-(Bits a, uint64_t b) { return a - a.e->bits(b); }
Bits operator&(Bits a, uint64_t b) { return a & a.e->bits(b); }
Bits operator|(Bits a, uint64_t b) { return a | a.e->bits(b); }
Bits operator<<(Bits a, unsigned n) { return binary<arith::ShLIOp>(a, a.e->bits(n)); }
Bits operator>>(Bits a, unsigned n) { return binary<arith::ShRUIOp>(a, a.e->bits(n)); }
Bits shiftRightSigned(Bits a, unsigned n) { return binary<arith::ShRSIOp>(a, a.e->bits(n)); }
Bits select(Mask m, Bits a, Bits b) { return {m.e, arith::SelectOp::create(m.e->b, m.v, a.v, b.v)}; }

static Mask compare(arith::CmpIPredicate p, Bits a, Bits b) {
  return {a.e, arith::CmpIOp::create(a.e->b, p, a.v, b.v)};
}
Mask operator==(Bits a, uint64_t b) { return compare(arith::CmpIPredicate::eq, a, a.e->bits(b)); }
Mask differs(Bits a, uint64_t b) { return compare(arith::CmpIPredicate::ne, a, a.e->bits(b)); }
Mask lessUnsigned(Bits a, Bits b) { return compare(arith::CmpIPredicate::ult, a, b); }
Mask lessSigned(Bits a, Bits b) { return compare(arith::CmpIPredicate::slt, a, b); }

Mask operator&(Mask a, Mask b) { return {a.e, arith::AndIOp::create(a.e->b, a.v, b.v)}; }
Mask operator|(Mask a, Mask b) { return {a.e, arith::OrIOp::create(a.e->b, a.v, b.v)}; }
Mask operator!(Mask a) {
  Value one = constant(a.e->b, a.v.getType(), a.e->b.getBoolAttr(true));
  return {a.e, arith::XOrIOp::create(a.e->b, a.v, one)};
}

Bits toBits(Num x) { return {x.e, arith::BitcastOp::create(x.e->b, x.e->bitsType, x.v)}; }
Num toNum(Bits x) { return {x.e, arith::BitcastOp::create(x.e->b, x.e->floatType, x.v)}; }

static double magic(const Emitter &e) { return std::ldexp(1.5, e.mantissa); }

// AVX2 has no conversion of 64-bit integers; adding the integer to the bits of 1.5 * 2^52 works everywhere.
Num toFloat(Bits k) {
  if (!k.e->isF64)
    return {k.e, arith::SIToFPOp::create(k.e->b, k.e->floatType, k.v)};
  return toNum(k + toBits(k.e->num(magic(*k.e)))) - magic(*k.e);
}

Num extend(Num x, Emitter &wide) { return {&wide, arith::ExtFOp::create(wide.b, wide.floatType, x.v)}; }
Num truncate(Num x, Emitter &narrow) { return {&narrow, arith::TruncFOp::create(narrow.b, narrow.floatType, x.v)}; }

//===----------------------------------------------------------------------===//
// Polynomials and pairs
//===----------------------------------------------------------------------===//

Num polynomial(Num x, ArrayRef<double> c) {
  Num p = x.e->num(c.back());
  for (double next : llvm::reverse(c.drop_back()))
    p = fma(p, x, next);
  return p;
}

Num polynomialInHalves(Num x, ArrayRef<double> c) {
  SmallVector<double> even, odd;
  for (auto [power, coefficient] : llvm::enumerate(c))
    (power % 2 ? odd : even).push_back(coefficient);
  Num square = x * x;
  return fma(polynomial(square, odd), x, polynomial(square, even));
}

Pair twoSum(Num a, Num b) {
  Num s = a + b, fromB = s - a;
  return {s, (a - (s - fromB)) + (b - fromB)};
}

Pair fastTwoSum(Num a, Num b) {
  Num s = a + b;
  return {s, b - (s - a)};
}

// The upper half of the significand, by Veltkamp's splitting.
static Num upperHalf(Num a) {
  Num c = a * (std::ldexp(1.0, a.e->isF64 ? 27 : 12) + 1);
  return c - (c - a);
}

Pair twoProduct(Num a, Num b) {
  Num p = a * b;
  if (a.e->options.hasFma)
    return {p, fma(a, b, -p)};
  Num ah = upperHalf(a), al = a - ah, bh = upperHalf(b), bl = b - bh;
  return {p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)};
}

Pair multiply(Pair a, Pair b) {
  Pair p = twoProduct(a.hi, b.hi);
  return fastTwoSum(p.hi, p.lo + fma(a.hi, b.lo, a.lo * b.hi));
}

Pair multiply(Pair a, Num b) {
  Pair p = twoProduct(a.hi, b);
  return fastTwoSum(p.hi, fma(a.lo, b, p.lo));
}

Pair add(Pair a, Pair b) {
  Pair s = fastTwoSum(a.hi, b.hi);
  return fastTwoSum(s.hi, s.lo + (a.lo + b.lo));
}

Pair pairOf(double hi, double lo, Emitter &e) { return {e.num(hi), e.num(lo)}; }

//===----------------------------------------------------------------------===//
// Powers of two
//===----------------------------------------------------------------------===//

PowerOfTwo roundToPower(Num x, double scale, int bias) {
  double m = magic(*x.e) + bias;
  Num t = scale == 1 ? x + m : fma(x, scale, x.e->num(m));
  return {t - m, toBits(t)};
}

Num powerOfTwo(PowerOfTwo k) { return toNum(k.biased << k.n.e->mantissa); }

/// AVX-512's instruction `name` in all lanes, or null where it does not apply.
static Value callAvx512(Emitter &e, llvm::StringRef name, Value first, Value second) {
  auto v = dyn_cast<VectorType>(e.floatType);
  if (!e.options.x86Scalef || !v || v.getRank() != 1 || v.isScalable())
    return {};
  int64_t size = v.getNumElements(), vectorBits = size * e.width;
  if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512)
    return {};
  ImplicitLocOpBuilder &b = e.b;
  unsigned maskBits = size < 8 ? 8 : size;
  Value lanes =
      LLVM::ConstantOp::create(b, b.getIntegerType(maskBits), b.getIntegerAttr(b.getIntegerType(maskBits), -1));
  SmallVector<Value> arguments{first, second, first, lanes};
  if (vectorBits == 512) // 4: the current rounding mode
    arguments.push_back(LLVM::ConstantOp::create(b, b.getI32Type(), b.getI32IntegerAttr(4)));
  std::string full = ("llvm.x86.avx512.mask." + name + (e.isF64 ? ".pd." : ".ps.") + llvm::Twine(vectorBits)).str();
  return LLVM::CallIntrinsicOp::create(b, e.floatType, b.getStringAttr(full), arguments).getResult(0);
}

Num powerByInstructions(Num x, llvm::function_ref<Num(Num)> ofRest) {
  Emitter &e = *x.e;
  constexpr int32_t toEvenQuietly = 8;
  Value way = LLVM::ConstantOp::create(e.b, e.b.getI32Type(), e.b.getI32IntegerAttr(toEvenQuietly));
  Value rest = callAvx512(e, "reduce", x.v, way);
  if (!rest)
    return {};
  Value whole = math::RoundEvenOp::create(e.b, x.v);
  return e.num(callAvx512(e, "scalef", ofRest(e.num(rest)).v, whole));
}

Num lookUp(llvm::ArrayRef<double> table, Bits index) {
  Emitter &e = *index.e;
  auto type = cast<VectorType>(e.floatType);
  SmallVector<float> numbers(table.begin(), table.end());
  Value all = arith::ConstantOp::create(e.b, DenseElementsAttr::get(type, llvm::ArrayRef(numbers)));
  auto name = e.b.getStringAttr("llvm.x86.avx512.permvar.sf.512");
  return e.num(LLVM::CallIntrinsicOp::create(e.b, type, name, ValueRange{all, index.v}).getResult(0));
}

bool hasLookUp(const Emitter &e) {
  auto v = dyn_cast<VectorType>(e.floatType);
  return e.options.x86Scalef && !e.isF64 && v && v.getRank() == 1 && !v.isScalable() &&
         v.getNumElements() == lookUpSize;
}

// One factor 2^n cannot be represented where the result is denormal or n is the overflow's; two factors of half the
// exponent can. The bias 2 e.bias makes each half's biased exponent a shift of the raw bits.
Num timesPower(Num p, PowerOfTwo k, int shift) {
  if (Value scaled = callAvx512(*p.e, "scalef", p.v, (shift ? k.n + double(shift) : k.n).v))
    return p.e->num(scaled);
  Bits half = k.biased >> 1, rest = k.biased - half;
  unsigned m = p.e->mantissa;
  return p * toNum(half << m) * toNum(rest << m);
}

} // namespace ptc::codegen
