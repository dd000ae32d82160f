//===- InvariantBuilder.cpp - hoisted, deduplicated arithmetic ------------===//
#include "codegen/common/InvariantBuilder.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ptc::codegen;

static int64_t lanesOf(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  return type ? type.getNumElements() : 1;
}

unsigned InvariantBuilder::depthOf(Value value) {
  unsigned depth = 0;
  for (Operation *op = value.getParentBlock()->getParentOp(); op; op = op->getParentOp())
    ++depth;
  return depth;
}

void InvariantBuilder::place(Operation *op) {
  Value innermost;
  unsigned depth = 0;
  for (Value operand : op->getOperands()) {
    unsigned d = depthOf(operand);
    bool later = !innermost || d > depth;
    if (innermost && d == depth)
      if (Operation *def = operand.getDefiningOp())
        later = !innermost.getDefiningOp() || innermost.getDefiningOp()->isBeforeInBlock(def);
    if (later) {
      innermost = operand;
      depth = d;
    }
  }
  if (!innermost || !entry->getParent()->isAncestor(innermost.getParentRegion()))
    entry->push_front(op);
  else if (Operation *def = innermost.getDefiningOp())
    def->getBlock()->getOperations().insertAfter(def->getIterator(), op);
  else
    innermost.getParentBlock()->push_front(op);
}

Value InvariantBuilder::insert(Operation *op) {
  auto hash = static_cast<unsigned>(size_t(OperationEquivalence::computeHash(op, OperationEquivalence::directHashValue,
                                                                             OperationEquivalence::ignoreHashValue,
                                                                             OperationEquivalence::IgnoreLocations)));
  auto &bucket = table[hash];
  for (Operation *known : bucket)
    if (OperationEquivalence::isEquivalentTo(known, op, OperationEquivalence::exactValueMatch, nullptr,
                                             OperationEquivalence::IgnoreLocations)) {
      op->destroy();
      return known->getResult(0);
    }
  place(op);
  bucket.push_back(op);
  return op->getResult(0);
}

Value InvariantBuilder::constant(int64_t value) {
  return constant(IntegerAttr::get(IntegerType::get(loc.getContext(), 64), value));
}

Value InvariantBuilder::constant(TypedAttr value) { return get<arith::ConstantOp>(value); }

Value InvariantBuilder::constant(ArrayRef<int64_t> lanes, Type elementType) {
  SmallVector<APInt> values;
  for (int64_t value : lanes)
    values.push_back(APInt(64, uint64_t(value)).trunc(elementType.getIntOrFloatBitWidth()));
  return constant(DenseElementsAttr::get(VectorType::get({int64_t(lanes.size())}, elementType), values));
}

Value InvariantBuilder::iota(int64_t lanes, Type elementType, int64_t step) {
  SmallVector<int64_t> values;
  for (int64_t lane = 0; lane < lanes; ++lane)
    values.push_back(lane * step);
  return constant(values, elementType);
}

std::optional<int64_t> InvariantBuilder::asConstant(Value value) const {
  APInt result;
  if (matchPattern(value, m_ConstantInt(&result)) && result.getBitWidth() <= 64)
    return result.getSExtValue();
  return std::nullopt;
}

Value InvariantBuilder::broadcast(Value scalar, int64_t lanes) {
  if (lanes == 1 || isa<VectorType>(scalar.getType()))
    return scalar;
  auto type = VectorType::get({lanes}, scalar.getType());
  Attribute value;
  if (matchPattern(scalar, m_Constant(&value)))
    return constant(cast<TypedAttr>(Attribute(SplatElementsAttr::get(type, value))));
  return get<vector::BroadcastOp>(type, scalar);
}

std::pair<Value, Value> InvariantBuilder::unify(Value a, Value b) {
  int64_t lanes = std::max(lanesOf(a), lanesOf(b));
  return {broadcast(a, lanes), broadcast(b, lanes)};
}

template <typename OpTy> Value InvariantBuilder::binary(Value a, Value b) {
  auto [x, y] = unify(a, b);
  return get<OpTy>(x, y);
}

static arith::IntegerOverflowFlags noWrap() { return arith::IntegerOverflowFlags::nsw; }

Value InvariantBuilder::add(Value a, Value b) {
  auto ca = asConstant(a), cb = asConstant(b);
  if (ca == 0)
    return broadcast(b, lanesOf(a));
  if (cb == 0)
    return broadcast(a, lanesOf(b));
  if (ca && cb && a.getType().isInteger(64) && b.getType().isInteger(64))
    return constant(*ca + *cb);
  auto [x, y] = unify(a, b);
  return get<arith::AddIOp>(x, y, noWrap());
}

// Both are scalar i64 constants.
std::optional<std::pair<int64_t, int64_t>> InvariantBuilder::bothConstant(Value a, Value b) const {
  if (!a.getType().isInteger(64) || !b.getType().isInteger(64))
    return std::nullopt;
  auto x = asConstant(a), y = asConstant(b);
  return x && y ? std::optional(std::pair(*x, *y)) : std::nullopt;
}

Value InvariantBuilder::sub(Value a, Value b) {
  if (asConstant(b) == 0)
    return broadcast(a, lanesOf(b));
  if (auto known = bothConstant(a, b))
    return constant(known->first - known->second);
  auto [x, y] = unify(a, b);
  return get<arith::SubIOp>(x, y, noWrap());
}

Value InvariantBuilder::mul(Value a, Value b) {
  auto ca = asConstant(a), cb = asConstant(b);
  if (ca == 1 || cb == 0)
    return broadcast(b, lanesOf(a));
  if (cb == 1 || ca == 0)
    return broadcast(a, lanesOf(b));
  if (ca && cb && a.getType().isInteger(64) && b.getType().isInteger(64))
    return constant(*ca * *cb);
  auto [x, y] = unify(a, b);
  return get<arith::MulIOp>(x, y, noWrap());
}

Value InvariantBuilder::min(Value a, Value b) {
  if (auto known = bothConstant(a, b))
    return constant(std::min(known->first, known->second));
  return binary<arith::MinSIOp>(a, b);
}

Value InvariantBuilder::max(Value a, Value b) {
  if (auto known = bothConstant(a, b))
    return constant(std::max(known->first, known->second));
  return binary<arith::MaxSIOp>(a, b);
}

Value InvariantBuilder::logicalAnd(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return binary<arith::AndIOp>(a, b);
}

Value InvariantBuilder::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  if (auto known = bothConstant(a, b))
    return constant(
        BoolAttr::get(loc.getContext(), arith::applyCmpPredicate(predicate, APInt(64, uint64_t(known->first)),
                                                                 APInt(64, uint64_t(known->second)))));
  auto [x, y] = unify(a, b);
  return get<arith::CmpIOp>(predicate, x, y);
}

Value InvariantBuilder::select(Value condition, Value a, Value b) {
  if (auto known = isa<VectorType>(condition.getType()) ? std::nullopt : asConstant(condition))
    return *known ? a : b;
  int64_t lanes = std::max({lanesOf(condition), lanesOf(a), lanesOf(b)});
  return get<arith::SelectOp>(broadcast(condition, lanes), broadcast(a, lanes), broadcast(b, lanes));
}

static TypedAttr integerLike(Value like, int64_t value) {
  Type element = getElementTypeOrSelf(like.getType());
  return IntegerAttr::get(element, value);
}

// floor(a / b) = a / b - (a % b != 0 and the signs differ), with b = 0 replaced by 1 and the result by 0.
Value InvariantBuilder::floorDiv(Value a, Value b, bool nonNegative) {
  std::optional<int64_t> divisor = asConstant(b);
  if (divisor == 1)
    return a;
  if (auto known = bothConstant(a, b); known && known->second > 0)
    return constant(llvm::divideFloorSigned(known->first, known->second));
  if (divisor && *divisor > 0 && llvm::isPowerOf2_64(*divisor)) {
    Value shift = constant(integerLike(b, llvm::Log2_64(*divisor)));
    return nonNegative ? binary<arith::ShRUIOp>(a, shift) : binary<arith::ShRSIOp>(a, shift);
  }
  if (nonNegative)
    return binary<arith::DivUIOp>(a, b);
  Value zero = constant(integerLike(b, 0)), one = constant(integerLike(b, 1));
  bool mayBeZero = !divisor || *divisor == 0;
  Value isZero = mayBeZero ? compare(arith::CmpIPredicate::eq, b, zero) : Value();
  Value safe = mayBeZero ? select(isZero, one, b) : b;
  Value quotient = binary<arith::DivSIOp>(a, safe);
  Value rest = sub(a, mul(quotient, safe));
  Value inexact = compare(arith::CmpIPredicate::ne, rest, zero);
  auto [x, y] = unify(rest, safe);
  Value differ = compare(arith::CmpIPredicate::slt, binary<arith::XOrIOp>(x, y), zero);
  Value result = select(logicalAnd(inexact, differ), sub(quotient, one), quotient);
  return mayBeZero ? select(isZero, zero, result) : result;
}

// a mod b = a - floor(a / b) * b; with floor(a / 0) = 0 this is a, as it must be.
Value InvariantBuilder::mod(Value a, Value b, bool nonNegative) {
  std::optional<int64_t> divisor = asConstant(b);
  if (divisor && *divisor > 0 && llvm::isPowerOf2_64(*divisor))
    return binary<arith::AndIOp>(a, constant(integerLike(b, *divisor - 1)));
  return sub(a, mul(floorDiv(a, b, nonNegative), b));
}
