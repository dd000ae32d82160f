//===- ScalarProgram.cpp - the arith and math ops of scalar bodies --------===//
//
// A pointwise primitive has one scalar body, written once in its row; what runs
// here is what that row emits. Precision: every float op is computed in double
// and rounded to f32, for f64 not at all. For +, -, *, / and sqrt this is the
// correctly rounded f32 result (a double has more than 2*24 + 2 bits). Types
// narrower than f32 are computed in f32 and rounded where they are stored or
// explicitly truncated, as generated code does.
//
//===----------------------------------------------------------------------===//
#include "ir/eval/ScalarProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

using namespace ptc;
using namespace ptc::eval;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

static double asFloat(uint64_t bits) { return std::bit_cast<double>(bits); }
static uint64_t fromFloat(double value) { return std::bit_cast<uint64_t>(value); }
static int64_t signExtend(uint64_t bits, unsigned width) { return int64_t(bits << (64 - width)) >> (64 - width); }
static uint64_t mask(unsigned width) { return width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1; }

static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return a + b;
  return a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
}
static double minimum(double a, double b) { return -maximum(-a, -b); }

/// Squaring; a negative exponent yields 0 but for bases of 1 and -1.
static uint64_t integerPower(uint64_t base, int64_t exponent, unsigned width) {
  int64_t signedBase = signExtend(base, width);
  if (exponent < 0) {
    if (signedBase == -1)
      return exponent % 2 ? base : 1;
    return signedBase == 1;
  }
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1)
      result *= base;
  return result;
}

/// Float to integer. Bodies clamp before; what would overflow becomes 0.
static uint64_t truncateToInteger(double value, bool isSigned) {
  double t = std::trunc(value);
  if (isSigned)
    return t >= -0x1p63 && t < 0x1p63 ? uint64_t(int64_t(t)) : 0;
  return t >= 0 && t < 0x1p64 ? uint64_t(t) : 0;
}

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::OEQ:
    return a == b;
  case P::OGT:
    return a > b;
  case P::OGE:
    return a >= b;
  case P::OLT:
    return a < b;
  case P::OLE:
    return a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return a != b;
  case P::UNO:
    return unordered;
  case P::AlwaysTrue:
    return true;
  }
  llvm_unreachable("all predicates are listed");
}

static bool compareIntegers(arith::CmpIPredicate predicate, uint64_t a, uint64_t b, unsigned width) {
  using P = arith::CmpIPredicate;
  int64_t x = signExtend(a, width), y = signExtend(b, width);
  switch (predicate) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
    return x < y;
  case P::sle:
    return x <= y;
  case P::sgt:
    return x > y;
  case P::sge:
    return x >= y;
  case P::ult:
    return a < b;
  case P::ule:
    return a <= b;
  case P::ugt:
    return a > b;
  case P::uge:
    return a >= b;
  }
  llvm_unreachable("all predicates are listed");
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {
/// Where an op's operands and result lie, and the types that matter to it.
struct Place {
  llvm::SmallVector<size_t, 3> from;
  size_t to;
  unsigned width = 64; // of the first operand, for integers
  unsigned toWidth = 64;
  bool roundsToF32 = false;
};

template <typename F> ScalarProgram::Step unary(Place p, F f) {
  return [=](std::vector<ScalarProgram::Slot> &slots, int64_t count) {
    const uint64_t *x = slots[p.from[0]].data();
    uint64_t *y = slots[p.to].data();
    for (int64_t i = 0; i != count; ++i)
      y[i] = f(x[i]);
  };
}

template <typename F> ScalarProgram::Step binary(Place p, F f) {
  return [=](std::vector<ScalarProgram::Slot> &slots, int64_t count) {
    const uint64_t *a = slots[p.from[0]].data(), *b = slots[p.from[1]].data();
    uint64_t *y = slots[p.to].data();
    for (int64_t i = 0; i != count; ++i)
      y[i] = f(a[i], b[i]);
  };
}

template <typename F> ScalarProgram::Step floatUnary(Place p, F f) {
  if (p.roundsToF32)
    return unary(p, [f](uint64_t x) { return fromFloat(float(f(asFloat(x)))); });
  return unary(p, [f](uint64_t x) { return fromFloat(f(asFloat(x))); });
}

template <typename F> ScalarProgram::Step floatBinary(Place p, F f) {
  if (p.roundsToF32)
    return binary(p, [f](uint64_t a, uint64_t b) { return fromFloat(float(f(asFloat(a), asFloat(b)))); });
  return binary(p, [f](uint64_t a, uint64_t b) { return fromFloat(f(asFloat(a), asFloat(b))); });
}

/// f on signed operands of the op's width; the result wraps to it.
template <typename F> ScalarProgram::Step signedBinary(Place p, F f) {
  unsigned width = p.width;
  return binary(
      p, [=](uint64_t a, uint64_t b) { return uint64_t(f(signExtend(a, width), signExtend(b, width))) & mask(width); });
}
template <typename F> ScalarProgram::Step unsignedBinary(Place p, F f) {
  unsigned width = p.width;
  return binary(p, [=](uint64_t a, uint64_t b) { return uint64_t(f(a, b)) & mask(width); });
}
} // namespace

/// Arithmetic on floats; null for other ops.
static ScalarProgram::Step floatStep(Operation *op, const Place &p) {
  using Result = ScalarProgram::Step;
  using llvm::TypeSwitch;
#define UNARY(OP, FUNCTION) .Case([&](OP) { return floatUnary(p, [](double x) -> double { return FUNCTION(x); }); })
#define BINARY(OP, FUNCTION)                                                                                           \
  .Case([&](OP) { return floatBinary(p, [](double a, double b) -> double { return FUNCTION(a, b); }); })
#define INFIX(OP, SIGN) .Case([&](OP) { return floatBinary(p, [](double a, double b) { return a SIGN b; }); })
  // clang-format off
  return TypeSwitch<Operation *, Result>(op)
      INFIX(arith::AddFOp, +) INFIX(arith::SubFOp, -) INFIX(arith::MulFOp, *) INFIX(arith::DivFOp, /)
      BINARY(arith::RemFOp, std::fmod) BINARY(arith::MaximumFOp, maximum) BINARY(arith::MinimumFOp, minimum)
      BINARY(arith::MaxNumFOp, std::fmax) BINARY(arith::MinNumFOp, std::fmin)
      BINARY(math::PowFOp, std::pow) BINARY(math::Atan2Op, std::atan2) BINARY(math::CopySignOp, std::copysign)
      UNARY(arith::NegFOp, -) UNARY(math::AbsFOp, std::fabs) UNARY(math::SqrtOp, std::sqrt)
      UNARY(math::RsqrtOp, 1 / std::sqrt) UNARY(math::CbrtOp, std::cbrt)
      UNARY(math::CeilOp, std::ceil) UNARY(math::FloorOp, std::floor) UNARY(math::TruncOp, std::trunc)
      UNARY(math::RoundOp, std::round) UNARY(math::RoundEvenOp, std::nearbyint)
      UNARY(math::ExpOp, std::exp) UNARY(math::Exp2Op, std::exp2) UNARY(math::ExpM1Op, std::expm1)
      UNARY(math::LogOp, std::log) UNARY(math::Log2Op, std::log2) UNARY(math::Log10Op, std::log10)
      UNARY(math::Log1pOp, std::log1p)
      UNARY(math::SinOp, std::sin) UNARY(math::CosOp, std::cos) UNARY(math::TanOp, std::tan)
      UNARY(math::AsinOp, std::asin) UNARY(math::AcosOp, std::acos) UNARY(math::AtanOp, std::atan)
      UNARY(math::SinhOp, std::sinh) UNARY(math::CoshOp, std::cosh) UNARY(math::TanhOp, std::tanh)
      UNARY(math::AsinhOp, std::asinh) UNARY(math::AcoshOp, std::acosh) UNARY(math::AtanhOp, std::atanh)
      UNARY(math::ErfOp, std::erf) UNARY(math::ErfcOp, std::erfc)
      .Default([](Operation *) { return Result(); });
  // clang-format on
#undef UNARY
#undef BINARY
#undef INFIX
}

/// Arithmetic on integers; null for other ops. Division by zero, which bodies
/// rule out beforehand, yields 0.
static ScalarProgram::Step integerStep(Operation *op, const Place &p) {
  using Result = ScalarProgram::Step;
  unsigned width = p.width;
#define SIGNED(OP, VALUE) .Case([&](OP) { return signedBinary(p, [=](int64_t a, int64_t b) { return VALUE; }); })
#define UNSIGNED(OP, VALUE) .Case([&](OP) { return unsignedBinary(p, [=](uint64_t a, uint64_t b) { return VALUE; }); })
  // clang-format off
  return llvm::TypeSwitch<Operation *, Result>(op)
      UNSIGNED(arith::AddIOp, a + b) UNSIGNED(arith::SubIOp, a - b) UNSIGNED(arith::MulIOp, a * b)
      UNSIGNED(arith::AndIOp, a & b) UNSIGNED(arith::OrIOp, a | b) UNSIGNED(arith::XOrIOp, a ^ b)
      UNSIGNED(arith::DivUIOp, b ? a / b : 0) UNSIGNED(arith::RemUIOp, b ? a % b : 0)
      SIGNED(arith::DivSIOp, b == 0 ? 0 : b == -1 ? int64_t(-uint64_t(a)) : a / b)
      SIGNED(arith::RemSIOp, b == 0 || b == -1 ? 0 : a % b)
      UNSIGNED(arith::MaxUIOp, std::max(a, b)) UNSIGNED(arith::MinUIOp, std::min(a, b))
      SIGNED(arith::MaxSIOp, std::max(a, b)) SIGNED(arith::MinSIOp, std::min(a, b))
      UNSIGNED(arith::ShLIOp, b < width ? a << b : 0) UNSIGNED(arith::ShRUIOp, b < width ? a >> b : 0)
      SIGNED(arith::ShRSIOp, uint64_t(b) < width ? a >> b : 0)
      UNSIGNED(math::IPowIOp, integerPower(a, signExtend(b, width), width))
      .Case([&](math::AbsIOp) {
        return unary(p, [=](uint64_t x) { return (signExtend(x, width) < 0 ? -x : x) & mask(width); });
      })
      .Case([&](math::CtPopOp) { return unary(p, [](uint64_t x) { return uint64_t(std::popcount(x)); }); })
      .Default([](Operation *) { return Result(); });
  // clang-format on
#undef SIGNED
#undef UNSIGNED
}

static ScalarProgram::Step conversionStep(Operation *op, const Place &p) {
  using Result = ScalarProgram::Step;
  unsigned width = p.width, toWidth = p.toWidth;
  auto floatResult = dyn_cast<FloatType>(op->getResult(0).getType());
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::ExtFOp) { return unary(p, [](uint64_t x) { return x; }); })
      .Case([&](arith::TruncFOp) {
        return unary(p, [=](uint64_t x) { return fromFloat(roundToType(asFloat(x), floatResult)); });
      })
      .Case([&](arith::SIToFPOp) {
        if (floatResult.isF32()) // in one step: going through double would round twice
          return unary(p, [=](uint64_t x) { return fromFloat(float(signExtend(x, width))); });
        return unary(p, [=](uint64_t x) { return fromFloat(roundToType(double(signExtend(x, width)), floatResult)); });
      })
      .Case([&](arith::UIToFPOp) {
        if (floatResult.isF32())
          return unary(p, [](uint64_t x) { return fromFloat(float(x)); });
        return unary(p, [=](uint64_t x) { return fromFloat(roundToType(double(x), floatResult)); });
      })
      .Case([&](arith::FPToSIOp) {
        return unary(p, [=](uint64_t x) { return truncateToInteger(asFloat(x), true) & mask(toWidth); });
      })
      .Case([&](arith::FPToUIOp) {
        return unary(p, [=](uint64_t x) { return truncateToInteger(asFloat(x), false) & mask(toWidth); });
      })
      .Case([&](arith::ExtUIOp) { return unary(p, [](uint64_t x) { return x; }); })
      .Case([&](arith::ExtSIOp) {
        return unary(p, [=](uint64_t x) { return uint64_t(signExtend(x, width)) & mask(toWidth); });
      })
      .Case([&](arith::TruncIOp) { return unary(p, [=](uint64_t x) { return x & mask(toWidth); }); })
      .Default([](Operation *) { return Result(); });
}

/// The bits that a float has in memory, and back. Elements of float types are doubles here.
static ScalarProgram::Step bitcastStep(Operation *op, const Place &p) {
  if (!isa<arith::BitcastOp>(op))
    return {};
  auto from = dyn_cast<FloatType>(op->getOperand(0).getType()), to = dyn_cast<FloatType>(op->getResult(0).getType());
  if (from)
    return unary(p, [=](uint64_t x) {
      llvm::APFloat value(asFloat(x));
      bool losesInfo;
      value.convert(from.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      return value.bitcastToAPInt().getZExtValue();
    });
  if (to)
    return unary(p, [=, width = p.toWidth](uint64_t x) {
      llvm::APFloat value(to.getFloatSemantics(), llvm::APInt(width, x));
      bool losesInfo;
      value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      return fromFloat(value.convertToDouble());
    });
  return unary(p, [](uint64_t x) { return x; });
}

static ScalarProgram::Step choiceStep(Operation *op, const Place &p) {
  using Result = ScalarProgram::Step;
  unsigned width = p.width;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::CmpFOp compare) {
        arith::CmpFPredicate predicate = compare.getPredicate();
        return binary(
            p, [=](uint64_t a, uint64_t b) { return uint64_t(compareFloats(predicate, asFloat(a), asFloat(b))); });
      })
      .Case([&](arith::CmpIOp compare) {
        arith::CmpIPredicate predicate = compare.getPredicate();
        return binary(p, [=](uint64_t a, uint64_t b) { return uint64_t(compareIntegers(predicate, a, b, width)); });
      })
      .Case([&](arith::SelectOp) -> Result {
        return [p](std::vector<ScalarProgram::Slot> &slots, int64_t count) {
          for (int64_t i = 0; i != count; ++i)
            slots[p.to][i] = slots[slots[p.from[0]][i] ? p.from[1] : p.from[2]][i];
        };
      })
      .Case([&](math::FmaOp) -> Result {
        return [p](std::vector<ScalarProgram::Slot> &slots, int64_t count) {
          for (int64_t i = 0; i != count; ++i) {
            double a = asFloat(slots[p.from[0]][i]), b = asFloat(slots[p.from[1]][i]), c = asFloat(slots[p.from[2]][i]);
            double value = p.roundsToF32 ? double(std::fma(float(a), float(b), float(c))) : std::fma(a, b, c);
            slots[p.to][i] = fromFloat(value);
          }
        };
      })
      .Default([](Operation *) { return Result(); });
}

static uint64_t constantBits(TypedAttr attr) {
  if (auto value = dyn_cast<FloatAttr>(attr))
    return fromFloat(value.getValueAsDouble());
  return cast<IntegerAttr>(attr).getValue().getZExtValue();
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

llvm::Expected<ScalarProgram> ScalarProgram::create(Block &block, Value result) {
  ScalarProgram program;
  llvm::DenseMap<Value, size_t> slotOf;
  for (BlockArgument argument : block.getArguments())
    slotOf[argument] = program.slotCount++;
  for (Operation &op : block) {
    if (op.getNumResults() != 1)
      break; // the terminator
    Place place;
    for (Value operand : op.getOperands())
      place.from.push_back(slotOf.lookup(operand));
    place.to = slotOf[op.getResult(0)] = program.slotCount++;
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      program.constants.push_back({place.to, constantBits(constant.getValue())});
      continue;
    }
    Type type = op.getResult(0).getType(), from = op.getOperand(0).getType();
    if (!type.isIntOrFloat() || !from.isIntOrFloat())
      return llvm::createStringError("a scalar body computes with a type that is not evaluated");
    place.roundsToF32 = isa<FloatType>(type) && !type.isF64();
    place.width = from.getIntOrFloatBitWidth();
    place.toWidth = type.getIntOrFloatBitWidth();
    Step step;
    for (auto rule : {floatStep, integerStep, conversionStep, bitcastStep, choiceStep})
      if (!step)
        step = rule(&op, place);
    if (!step)
      return llvm::createStringError("'" + op.getName().getStringRef() + "' in a scalar body is not evaluated");
    program.steps.push_back(std::move(step));
  }
  program.resultSlot = slotOf.lookup(result);
  return program;
}

static void load(const Tensor &tensor, int64_t first, int64_t count, ScalarProgram::Slot &slot) {
  if (!tensor.isFloat()) {
    for (int64_t i = 0; i != count; ++i)
      slot[i] = tensor.getBits(first + i);
    return;
  }
  std::array<double, ScalarProgram::width> values;
  tensor.getFloats(first, llvm::MutableArrayRef(values.data(), count));
  std::memcpy(slot.data(), values.data(), count * sizeof(double));
}

static void store(const ScalarProgram::Slot &slot, int64_t first, int64_t count, Tensor &tensor) {
  if (!tensor.isFloat()) {
    for (int64_t i = 0; i != count; ++i)
      tensor.setBits(first + i, slot[i]);
    return;
  }
  std::array<double, ScalarProgram::width> values;
  std::memcpy(values.data(), slot.data(), count * sizeof(double));
  tensor.setFloats(first, llvm::ArrayRef(values.data(), count));
}

void ScalarProgram::run(llvm::ArrayRef<const Tensor *> operands, Tensor &result) const {
  std::vector<Slot> slots(slotCount, Slot(width, 0));
  for (auto [slot, bits] : constants)
    std::fill(slots[slot].begin(), slots[slot].end(), bits);
  for (int64_t first = 0; first < result.getNumElements(); first += width) {
    int64_t count = std::min(width, result.getNumElements() - first);
    for (auto [index, operand] : llvm::enumerate(operands))
      load(*operand, first, count, slots[index]);
    for (const Step &step : steps)
      step(slots, count);
    store(slots[resultSlot], first, count, result);
  }
}
