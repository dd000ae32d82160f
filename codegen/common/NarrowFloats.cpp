//===- NarrowFloats.cpp - conversions that a processor lacks --------------===//
//
// bf16 is the upper half of f32. Rounding to nearest even adds 0x7fff and the lowest kept bit to the bits before the
// lower half is dropped; carries run into the exponent as they should. A NaN would be rounded to infinity or to zero:
// its upper half is taken instead, with the quiet bit set.
//
// What is left of the type (selections, constants, values that leave a branch) then becomes i16: LLVM would legalise a
// bf16 scalar by way of f32, with library calls again.
//
// Floats of 4, 6 and 8 bits: normal values are rounded like bf16, at their own number of mantissa bits, and the
// exponent is rebased by a subtraction. Subnormal ones are rounded by an addition: beside 2^k whose last place is the
// type's smallest step, the sum's lowest bits are the result. Backwards, a subnormal value is its integer times that
// step.
//
// E8M0 is the exponent of an f32 and nothing else. Rounding to nearest adds half of the mantissa's range; the value
// with exponent 0 is a subnormal f32, and there is no zero, so that all below its half more is that value.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

static Type withElement(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? Type(vector.clone(element)) : element;
}

static Value literal(OpBuilder &b, Location loc, Type type, uint64_t value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attribute = IntegerAttr::get(element, int64_t(value));
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  return arith::ConstantOp::create(b, loc, type, attribute);
}

static Value truncate(OpBuilder &b, Location loc, Value value, Type to) {
  Type i32 = withElement(to, b.getI32Type()), i16 = withElement(to, b.getIntegerType(16));
  auto constant = [&](uint64_t v) { return literal(b, loc, i32, v); };
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  Value upper = arith::ShRUIOp::create(b, loc, bits, constant(16));
  Value odd = arith::AndIOp::create(b, loc, upper, constant(1));
  Value bias = arith::AddIOp::create(b, loc, odd, constant(0x7fff));
  Value sum = arith::AddIOp::create(b, loc, bits, bias);
  Value rounded = arith::ShRUIOp::create(b, loc, sum, constant(16));
  Value quiet = arith::OrIOp::create(b, loc, upper, constant(0x40));
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  Value chosen = arith::SelectOp::create(b, loc, isNan, quiet, rounded);
  Value narrow = arith::TruncIOp::create(b, loc, i16, chosen);
  return arith::BitcastOp::create(b, loc, to, narrow);
}

static Value extend(OpBuilder &b, Location loc, Value value, Type to) {
  Type i32 = withElement(to, b.getI32Type()), i16 = withElement(to, b.getIntegerType(16));
  Value bits = arith::BitcastOp::create(b, loc, i16, value);
  Value wide = arith::ExtUIOp::create(b, loc, i32, bits);
  Value shifted = arith::ShLIOp::create(b, loc, wide, literal(b, loc, i32, 16));
  return arith::BitcastOp::create(b, loc, to, shifted);
}

static bool isBf16(Type type) { return getElementTypeOrSelf(type).isBF16(); }

// Ops that only move bits.
static bool isTypeAgnostic(Operation *op) {
  return isa<arith::SelectOp, arith::ConstantOp, arith::BitcastOp>(op) ||
         !isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
}

static void replaceConstant(arith::ConstantOp op, Type to) {
  if (auto splat = dyn_cast<SplatElementsAttr>(op.getValue())) {
    APInt bits = splat.getSplatValue<APFloat>().bitcastToAPInt();
    op.setValueAttr(DenseElementsAttr::get(cast<ShapedType>(to), bits));
  } else if (auto elements = dyn_cast<DenseElementsAttr>(op.getValue())) {
    op.setValueAttr(elements.mapValues(getElementTypeOrSelf(to), [](const APFloat &v) { return v.bitcastToAPInt(); }));
  } else {
    op.setValueAttr(IntegerAttr::get(to, cast<FloatAttr>(op.getValue()).getValue().bitcastToAPInt()));
  }
}

// Values of the types that `isNarrow` tells become integers of `bits` bits.
static void retype(Operation *root, llvm::function_ref<bool(Type)> isNarrow, unsigned bits) {
  Type integer = IntegerType::get(root->getContext(), bits);
  WalkResult result = root->walk([&](Operation *op) {
    bool touches = llvm::any_of(op->getOperandTypes(), isNarrow) || llvm::any_of(op->getResultTypes(), isNarrow);
    return touches && !isTypeAgnostic(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (result.wasInterrupted())
    return; // arithmetic in the type itself stays LLVM's affair
  auto change = [&](Value value) {
    if (isNarrow(value.getType()))
      value.setType(withElement(value.getType(), integer));
  };
  SmallVector<Operation *> casts;
  root->walk([&](Operation *op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && isNarrow(constant.getType()))
      replaceConstant(constant, withElement(constant.getType(), integer));
    llvm::for_each(op->getResults(), change);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), change);
    if (isa<arith::BitcastOp>(op))
      casts.push_back(op);
  });
  for (Operation *op : casts)
    if (op->getOperand(0).getType() == op->getResult(0).getType()) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
}

void ptc::codegen::expandBf16Conversions(Operation *root) {
  auto isBetween = [](Type narrow, Type wide) {
    return getElementTypeOrSelf(narrow).isBF16() && getElementTypeOrSelf(wide).isF32();
  };
  SmallVector<Operation *> found;
  root->walk([&](Operation *op) {
    if (auto narrow = dyn_cast<arith::TruncFOp>(op); narrow && isBetween(narrow.getType(), narrow.getIn().getType()))
      found.push_back(op);
    if (auto wide = dyn_cast<arith::ExtFOp>(op); wide && isBetween(wide.getIn().getType(), wide.getType()))
      found.push_back(op);
  });
  for (Operation *op : found) {
    OpBuilder b(op);
    Type to = op->getResult(0).getType();
    Value from = op->getOperand(0);
    Value value = isa<arith::TruncFOp>(op) ? truncate(b, op->getLoc(), from, to) : extend(b, op->getLoc(), from, to);
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }
  retype(root, isBf16, 16);
}

namespace {
/// One format of at most 8 bits with a sign bit on top.
struct NarrowFormat {
  unsigned bits, mantissa;
  int bias;
  unsigned largest;  // bits of the largest finite value
  unsigned overflow; // what becomes of larger ones
  unsigned nan;      // what becomes of NaN
  bool hasInfinity = false, hasNan = true;
  bool isUnsignedZero = false; // FNUZ: one zero, one NaN where -0 would be
};
} // namespace

static std::optional<NarrowFormat> getFormat(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<Float8E4M3FNType>(element))
    return NarrowFormat{.bits = 8, .mantissa = 3, .bias = 7, .largest = 0x7e, .overflow = 0x7f, .nan = 0x7f};
  if (isa<Float8E5M2Type>(element))
    return NarrowFormat{
        .bits = 8, .mantissa = 2, .bias = 15, .largest = 0x7b, .overflow = 0x7c, .nan = 0x7e, .hasInfinity = true};
  if (isa<Float8E4M3FNUZType>(element))
    return NarrowFormat{
        .bits = 8, .mantissa = 3, .bias = 8, .largest = 0x7f, .overflow = 0x80, .nan = 0x80, .isUnsignedZero = true};
  if (isa<Float8E5M2FNUZType>(element))
    return NarrowFormat{
        .bits = 8, .mantissa = 2, .bias = 16, .largest = 0x7f, .overflow = 0x80, .nan = 0x80, .isUnsignedZero = true};
  if (isa<Float4E2M1FNType>(element)) // neither infinity nor NaN: NaN becomes -0
    return NarrowFormat{.bits = 4, .mantissa = 1, .bias = 1, .largest = 7, .overflow = 7, .nan = 8, .hasNan = false};
  if (isa<Float6E2M3FNType>(element))
    return NarrowFormat{.bits = 6, .mantissa = 3, .bias = 1, .largest = 31, .overflow = 31, .nan = 32, .hasNan = false};
  if (isa<Float6E3M2FNType>(element))
    return NarrowFormat{.bits = 6, .mantissa = 2, .bias = 3, .largest = 31, .overflow = 31, .nan = 32, .hasNan = false};
  return std::nullopt;
}

static bool isScale(Type type) { return isa<Float8E8M0FNUType>(getElementTypeOrSelf(type)); }
static bool isNarrow(Type type) { return getFormat(type) || isScale(type); }

static uint32_t powerOfTwo(int exponent) { return uint32_t(exponent + 127) << 23; } // bits of an f32

namespace {
/// i32 and f32 arithmetic on the shape of one conversion.
struct NarrowArithmetic {
  OpBuilder &b;
  Location loc;
  Type i32, f32;
  NarrowArithmetic(OpBuilder &b, Location loc, Type like)
      : b(b), loc(loc), i32(withElement(like, b.getI32Type())), f32(withElement(like, b.getF32Type())) {}

  Value integer(uint32_t v) { return literal(b, loc, i32, v); }
  Value real(uint32_t bits) { return asFloat(integer(bits)); }
  Value asFloat(Value v) { return arith::BitcastOp::create(b, loc, f32, v); }
  Value asBits(Value v) { return arith::BitcastOp::create(b, loc, i32, v); }
  Value select(Value c, Value x, Value y) { return arith::SelectOp::create(b, loc, c, x, y); }
  Value compare(arith::CmpIPredicate p, Value x, Value y) { return arith::CmpIOp::create(b, loc, p, x, y); }
  template <typename OpTy> Value op(Value x, Value y) { return OpTy::create(b, loc, x, y); }
};
} // namespace

static Value toNarrow(NarrowArithmetic a, Value x, const NarrowFormat &format) {
  Value bits = a.asBits(x);
  Value magnitude = a.op<arith::AndIOp>(bits, a.integer(0x7fffffff));
  Value sign = a.op<arith::ShRUIOp>(a.op<arith::AndIOp>(bits, a.integer(0x80000000)), a.integer(32 - format.bits));
  unsigned shift = 23 - format.mantissa;
  Value odd = a.op<arith::AndIOp>(a.op<arith::ShRUIOp>(magnitude, a.integer(shift)), a.integer(1));
  Value sum = a.op<arith::AddIOp>(a.op<arith::AddIOp>(magnitude, odd), a.integer((1u << (shift - 1)) - 1));
  Value normal = a.op<arith::SubIOp>(a.op<arith::ShRUIOp>(sum, a.integer(shift)),
                                     a.integer(uint32_t(127 - format.bias) << format.mantissa));
  uint32_t step = powerOfTwo(24 - int(format.mantissa) - format.bias);
  Value subnormal =
      a.op<arith::SubIOp>(a.asBits(a.op<arith::AddFOp>(a.asFloat(magnitude), a.real(step))), a.integer(step));
  Value isNormal = a.compare(arith::CmpIPredicate::uge, magnitude, a.integer(powerOfTwo(1 - format.bias)));
  Value result = a.select(isNormal, normal, subnormal);
  Value isAbove = a.compare(arith::CmpIPredicate::sgt, result, a.integer(format.largest));
  Value isNan = a.compare(arith::CmpIPredicate::ugt, magnitude, a.integer(0x7f800000));
  if (format.isUnsignedZero) {
    Value isZero = a.compare(arith::CmpIPredicate::eq, result, a.integer(0));
    Value isSpecial = a.op<arith::OrIOp>(isAbove, isNan);
    result = a.op<arith::OrIOp>(result, a.select(isZero, a.integer(0), sign));
    return a.select(isSpecial, a.integer(format.nan), result);
  }
  result = a.select(isAbove, a.integer(format.overflow), result);
  result = a.select(isNan, a.integer(format.nan), result);
  return a.op<arith::OrIOp>(result, sign);
}

static Value fromNarrow(NarrowArithmetic a, Value bits, const NarrowFormat &format) {
  uint32_t signBit = 1u << (format.bits - 1);
  Value magnitude = a.op<arith::AndIOp>(bits, a.integer(signBit - 1));
  Value sign = a.op<arith::ShLIOp>(a.op<arith::AndIOp>(bits, a.integer(signBit)), a.integer(32 - format.bits));
  Value shifted = a.op<arith::ShLIOp>(magnitude, a.integer(23 - format.mantissa));
  Value normal = a.op<arith::AddIOp>(shifted, a.integer(uint32_t(127 - format.bias) << 23));
  Value number = arith::UIToFPOp::create(a.b, a.loc, a.f32, magnitude);
  Value subnormal = a.asBits(a.op<arith::MulFOp>(number, a.real(powerOfTwo(1 - format.bias - int(format.mantissa)))));
  Value isNormal = a.compare(arith::CmpIPredicate::uge, magnitude, a.integer(1u << format.mantissa));
  Value result = a.op<arith::OrIOp>(a.select(isNormal, normal, subnormal), sign);
  Value nan = a.integer(0x7fc00000);
  if (!format.hasNan)
    return result;
  if (format.isUnsignedZero)
    return a.select(a.compare(arith::CmpIPredicate::eq, bits, a.integer(format.nan)), nan, result);
  if (format.hasInfinity) {
    Value infinity = a.op<arith::OrIOp>(a.integer(0x7f800000), sign);
    result = a.select(a.compare(arith::CmpIPredicate::eq, magnitude, a.integer(format.overflow)), infinity, result);
  }
  uint32_t lastNumber = format.hasInfinity ? format.overflow : format.largest;
  return a.select(a.compare(arith::CmpIPredicate::ugt, magnitude, a.integer(lastNumber)), nan, result);
}

// 2^(code - 127); what is negative, infinite or NaN becomes NaN, 255.
static Value toScale(NarrowArithmetic a, Value x) {
  Value bits = a.asBits(x), magnitude = a.op<arith::AndIOp>(bits, a.integer(0x7fffffff));
  Value rounded = a.op<arith::ShRUIOp>(a.op<arith::AddIOp>(magnitude, a.integer(0x400000)), a.integer(23));
  Value isLeast = a.compare(arith::CmpIPredicate::ult, magnitude, a.integer(0x600000)); // 1.5 * 2^-127
  Value code = a.select(isLeast, a.integer(0), rounded);
  Value isAbove = a.compare(arith::CmpIPredicate::ugt, code, a.integer(255));
  Value isNegative = a.compare(arith::CmpIPredicate::ugt, bits, a.integer(0x80000000)); // -0 is none
  return a.select(a.op<arith::OrIOp>(isAbove, isNegative), a.integer(255), code);
}

static Value fromScale(NarrowArithmetic a, Value code) {
  Value result = a.op<arith::ShLIOp>(code, a.integer(23));
  result = a.select(a.compare(arith::CmpIPredicate::eq, code, a.integer(0)), a.integer(0x400000), result);
  return a.select(a.compare(arith::CmpIPredicate::eq, code, a.integer(255)), a.integer(0x7fc00000), result);
}

// Any wider float to f32 or back.
static Value convertWide(OpBuilder &b, Location loc, Value value, Type to) {
  Type from = getElementTypeOrSelf(value.getType());
  if (value.getType() == to)
    return value;
  if (getElementTypeOrSelf(to).getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(b, loc, to, value);
  return arith::TruncFOp::create(b, loc, to, value);
}

static Value narrowed(OpBuilder &b, Location loc, Value value, Type to) {
  NarrowArithmetic a(b, loc, to);
  Value wide = convertWide(b, loc, value, a.f32);
  Value code = isScale(to) ? toScale(a, wide) : toNarrow(a, wide, *getFormat(to));
  Type integer = withElement(to, b.getIntegerType(getElementTypeOrSelf(to).getIntOrFloatBitWidth()));
  return arith::BitcastOp::create(b, loc, to, arith::TruncIOp::create(b, loc, integer, code));
}

static Value widened(OpBuilder &b, Location loc, Value value, Type to) {
  NarrowArithmetic a(b, loc, to);
  Type from = value.getType();
  Type integer = withElement(from, b.getIntegerType(getElementTypeOrSelf(from).getIntOrFloatBitWidth()));
  Value code = arith::ExtUIOp::create(b, loc, a.i32, arith::BitcastOp::create(b, loc, integer, value));
  Value bits = isScale(from) ? fromScale(a, code) : fromNarrow(a, code, *getFormat(from));
  return convertWide(b, loc, a.asFloat(bits), to);
}

void ptc::codegen::expandNarrowFloatConversions(Operation *root) {
  SmallVector<Operation *> found;
  root->walk([&](Operation *op) {
    if (isa<arith::TruncFOp>(op) ? isNarrow(op->getResult(0).getType())
                                 : isa<arith::ExtFOp>(op) && isNarrow(op->getOperand(0).getType()))
      found.push_back(op);
  });
  for (Operation *op : found) {
    OpBuilder b(op);
    Value from = op->getOperand(0);
    Type to = op->getResult(0).getType();
    Value value = isa<arith::TruncFOp>(op) ? narrowed(b, op->getLoc(), from, to) : widened(b, op->getLoc(), from, to);
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }
  for (unsigned bits : {4, 6, 8})
    retype(
        root, [&](Type type) { return isNarrow(type) && getElementTypeOrSelf(type).getIntOrFloatBitWidth() == bits; },
        bits);
}
