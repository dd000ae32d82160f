//===- PackedRhs.cpp - a rhs that converts numbers of few bits ------------===//
//
// A number becomes an f32 without a shift: behind the exponent of 2^23 a bit of the mantissa is worth 2^place, so that
//
//   float(q) - z  =  (2^23 | q << s) * 2^-s - (2^(23 - s) + z)
//
// is one operation on bits and one exact multiply-add. Places from 2^23 on are taken from the word's upper half.
//
// Of a model in 16 bits every operation is rounded, but for a flag that says that it may stay wide.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/PackedRhs.h"
#include "codegen/gpu/LaneAnalysis.h"
#include "ir/expr/DimName.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static Operation *onlyUser(Value value) { return value.hasOneUse() ? *value.user_begin() : nullptr; }

static bool mayStayWide(arith::TruncFOp op) {
  std::optional<arith::FastMathFlags> flags = op.getFastmath();
  return flags && arith::bitEnumContainsAny(*flags, arith::FastMathFlags::contract);
}

// The value before roundings that need not be.
static Value beforeRounding(Value value) {
  while (true) {
    auto widened = value.getDefiningOp<arith::ExtFOp>();
    auto narrowed = widened ? widened.getIn().getDefiningOp<arith::TruncFOp>() : arith::TruncFOp();
    if (!narrowed || !mayStayWide(narrowed) || narrowed.getIn().getType() != value.getType())
      return value;
    value = narrowed.getIn();
  }
}

// The op that has the small integer `op` as an f32, if no one else reads it before.
static Operation *asWide(Operation *op) {
  while (op) {
    Operation *user = onlyUser(op->getResult(0));
    auto narrowed = dyn_cast_or_null<arith::TruncFOp>(user);
    bool isWide = op->getResult(0).getType().isF32();
    if (isWide && !(narrowed && mayStayWide(narrowed)))
      return op;
    if (!isWide && !isa_and_nonnull<arith::ExtFOp>(user))
      return nullptr;
    op = user;
  }
  return nullptr;
}

// A byte's value, or a part's.
static bool isSmallInteger(Value value) {
  Operation *op = beforeWidening(beforeRounding(value)).getDefiningOp();
  return isa_and_nonnull<arith::UIToFPOp, arith::SIToFPOp>(op) && op->getOperand(0).getType().isInteger(8);
}

namespace {

class PackedMatcher {
public:
  explicit PackedMatcher(loop::ContractionOp op) : op(op), dims(op), block(op.getRhs().front()) {}
  std::optional<PackedRhs> run();

private:
  bool matchLoad(loop::LoadOp load);
  Operation *matchNumber();
  bool matchReal(Operation *number);
  bool moves(Operation &inner) const;
  bool sortOps(Operation *number);

  loop::ContractionOp op;
  ContractionDims dims;
  Block &block;
  PackedRhs rhs;
};

} // namespace

/// Words of four neighbours along a dim of k.
bool PackedMatcher::matchLoad(loop::LoadOp load) {
  if (!load.getType().isInteger(8) || !load.getIndexOperands().empty())
    return false;
  Expr index(cast<ExprAttr>(load.getIndices()[0]));
  for (int64_t dim = dims.firstK; dim <= dims.lastK(); ++dim) {
    std::optional<int64_t> extent = dims.domain[size_t(dim)].asConstant();
    if (!extent || *extent % PackedRhs::wordBytes != 0 ||
        !LaneAnalysis(op, dim).isVector(index, {}, PackedRhs::wordBytes))
      continue;
    rhs.load = load;
    rhs.byte = dim;
    return true;
  }
  return false;
}

/// The op that has the number: the load, or what takes it out of its byte.
Operation *PackedMatcher::matchNumber() {
  auto shift = dyn_cast_or_null<arith::ShRUIOp>(onlyUser(rhs.load.getResult()));
  if (!shift || shift.getLhs() != rhs.load.getResult())
    return rhs.load;
  auto number = dyn_cast_or_null<arith::AndIOp>(onlyUser(shift.getResult()));
  auto amount = shift.getRhs().getDefiningOp<arith::MulIOp>();
  auto narrowed = amount ? amount.getLhs().getDefiningOp<arith::TruncIOp>() : arith::TruncIOp();
  auto index = narrowed ? narrowed.getIn().getDefiningOp<loop::IndexOp>() : loop::IndexOp();
  APInt mask, bits;
  if (!number || !index || !matchPattern(number.getRhs(), m_ConstantInt(&mask)) || !mask.isMask() ||
      !matchPattern(amount.getRhs(), m_ConstantInt(&bits)) || bits != mask.popcount())
    return nullptr;
  rhs.bits = mask.popcount();
  for (int64_t dim = dims.firstK; dim <= dims.lastK(); ++dim)
    if (index.getExpr().isSymbol(dimName(dim)))
      rhs.part = dim;
  bool isWhole = rhs.part >= 0 && rhs.part != rhs.byte && 8 % rhs.bits == 0 &&
                 dims.domain[size_t(rhs.part)].isConstant(rhs.parts());
  return isWhole ? number.getOperation() : nullptr;
}

bool PackedMatcher::matchReal(Operation *number) {
  Operation *conversion = onlyUser(number->getResult(0));
  if (!isa_and_nonnull<arith::UIToFPOp, arith::SIToFPOp>(conversion))
    return false;
  Operation *real = asWide(conversion);
  if (!real)
    return false;
  rhs.isSigned = rhs.bits == 8 && isa<arith::SIToFPOp>(conversion);
  rhs.real = real;
  constexpr double mostSubtracted = 256; // exact beside 2^23
  auto difference = dyn_cast_or_null<arith::SubFOp>(onlyUser(real->getResult(0)));
  FloatAttr zero;
  if (difference && difference.getLhs() == real->getResult(0) &&
      matchPattern(beforeWidening(difference.getRhs()), m_Constant(&zero))) {
    double value = zero.getValueAsDouble();
    Operation *wide = asWide(difference);
    if (wide && value == std::trunc(value) && std::abs(value) <= mostSubtracted) {
      rhs.real = wide;
      rhs.subtracted = int64_t(value);
    }
  }
  return true;
}

/// The op itself depends on where in a word it is.
bool PackedMatcher::moves(Operation &inner) const {
  auto uses = [&](Expr expr) {
    return expr.uses(dimName(rhs.byte)) || (rhs.part >= 0 && expr.uses(dimName(rhs.part)));
  };
  if (auto load = dyn_cast<loop::LoadOp>(inner))
    return llvm::any_of(load.getIndices(), [&](Attribute each) { return uses(Expr(cast<ExprAttr>(each))); });
  auto index = dyn_cast<loop::IndexOp>(inner);
  return index && uses(index.getExpr());
}

bool PackedMatcher::sortOps(Operation *number) {
  llvm::DenseSet<Operation *> inNumber, varying; // number, and what it is made of
  SmallVector<Operation *> open{rhs.real};
  while (!open.empty()) {
    Operation *inner = open.pop_back_val();
    if (isa<arith::ConstantOp>(inner) || !inNumber.insert(inner).second)
      continue;
    for (Value operand : inner->getOperands())
      if (Operation *from = operand.getDefiningOp())
        open.push_back(from);
  }
  Value yielded = cast<loop::YieldOp>(block.getTerminator()).getValue();
  for (Operation &inner : block) {
    if (isa<loop::YieldOp>(inner))
      continue;
    bool isInside = inNumber.contains(&inner);
    auto isOutside = [&](Operation *user) { return !inNumber.contains(user); };
    if (inner.getNumRegions() || (isInside && &inner != rhs.real && llvm::any_of(inner.getUsers(), isOutside)) ||
        (!isInside && moves(inner)))
      return false;
    if (isInside)
      continue;
    bool varies = llvm::any_of(inner.getOperands(), [&](Value operand) {
      Operation *from = operand.getDefiningOp();
      return from == rhs.real || varying.contains(from);
    });
    if (varies)
      varying.insert(&inner);
    (varies ? rhs.varying : rhs.shared).push_back(&inner);
  }
  if (auto widened = yielded.getDefiningOp<arith::ExtFOp>())
    rhs.rounding = widened.getIn().getDefiningOp<arith::TruncFOp>();
  if (rhs.rounding) {
    yielded = rhs.rounding.getIn();
    llvm::erase_if(rhs.varying, [&](Operation *op) {
      return op == rhs.rounding || (isa<arith::ExtFOp>(op) && op->getOperand(0) == rhs.rounding.getResult());
    });
  }
  rhs.element = yielded;
  auto product = yielded.getDefiningOp<arith::MulFOp>();
  auto isVarying = [&](Value value) {
    return value.getDefiningOp() == rhs.real || varying.contains(value.getDefiningOp());
  };
  if (product && isVarying(product.getLhs()) != isVarying(product.getRhs())) {
    bool first = isVarying(product.getLhs());
    rhs.element = first ? product.getLhs() : product.getRhs();
    rhs.factor = first ? product.getRhs() : product.getLhs();
    llvm::erase(rhs.varying, product.getOperation());
  }
  if (rhs.element.getDefiningOp() != rhs.real)
    rhs.element = beforeRounding(rhs.element);
  auto difference = rhs.element.getDefiningOp<arith::SubFOp>();
  if (difference && difference.getLhs().getDefiningOp() == rhs.real && isSmallInteger(difference.getRhs()))
    rhs.zero = difference.getRhs();
  rhs.isInteger = rhs.zero || rhs.element.getDefiningOp() == rhs.real;
  return isVarying(rhs.element);
}

std::optional<PackedRhs> PackedMatcher::run() {
  if (!cast<loop::YieldOp>(block.getTerminator()).getValue().getType().isF32())
    return std::nullopt;
  for (loop::LoadOp load : block.getOps<loop::LoadOp>()) {
    rhs = {};
    if (!matchLoad(load))
      continue;
    Operation *number = matchNumber();
    if (number && matchReal(number) && sortOps(number))
      return rhs;
  }
  return std::nullopt;
}

std::optional<PackedRhs> gpu::matchPackedRhs(loop::ContractionOp op) { return PackedMatcher(op).run(); }

Value gpu::beforeWidening(Value value) {
  while (auto widened = value.getDefiningOp<arith::ExtFOp>())
    value = widened.getIn();
  return value;
}

Type PackedRhs::roundedTo() const {
  arith::TruncFOp op = rounding;
  return op && !mayStayWide(op) ? op.getType() : Type();
}

Value gpu::createReal(GpuEmitter &e, const PackedRhs &rhs, Value bits, int64_t place) {
  constexpr int64_t mantissa = 23, half = 16;
  OpBuilder &b = e.builder;
  auto i32 = [&](uint32_t value) { return e.invariants.constant(b.getI32IntegerAttr(int32_t(value))); };
  auto f32 = [&](double value) { return e.invariants.constant(b.getF32FloatAttr(float(value))); };
  int64_t subtracted = rhs.subtracted;
  if (rhs.isSigned) { // from -128 on
    bits = arith::XOrIOp::create(b, e.loc, bits, i32(0x80808080));
    subtracted += 128;
  }
  if (place + rhs.bits > mantissa) {
    bits = arith::ShRUIOp::create(b, e.loc, bits, i32(half));
    place -= half;
  }
  uint32_t mask = ((1u << rhs.bits) - 1) << place, exponent = uint32_t(127 + mantissa) << mantissa;
  bits = arith::AndIOp::create(b, e.loc, bits, i32(mask));
  bits = arith::OrIOp::create(b, e.loc, bits, i32(exponent));
  Value real = arith::BitcastOp::create(b, e.loc, b.getF32Type(), bits);
  Value offset = f32(-(std::ldexp(1.0, int(mantissa - place)) + double(subtracted)));
  return math::FmaOp::create(b, e.loc, real, f32(std::ldexp(1.0, int(-place))), offset);
}

Value gpu::createElement(GpuEmitter &e, const PackedRhs &rhs, codegen::BodyEmitter body, Value real, bool isFinal) {
  OpBuilder &b = e.builder;
  body.bind(rhs.real->getResult(0), real);
  body.emitOps(rhs.varying);
  Value element = body.lookup(rhs.element);
  if (isFinal && rhs.factor)
    element = arith::MulFOp::create(b, e.loc, element, body.lookup(rhs.factor));
  if (Type narrow = rhs.roundedTo(); isFinal && narrow) {
    element = arith::TruncFOp::create(b, e.loc, narrow, element);
    element = arith::ExtFOp::create(b, e.loc, b.getF32Type(), element);
  }
  return element;
}
