//===- ExprEmitter.cpp - expressions as i64 arithmetic --------------------===//
//
// A sum is added up from the terms of the outermost loop to those of the innermost, so that each partial sum is
// computed where it last changes: of `d0*768 + d1*64 + d2` the inner loop keeps one addition.
//
// Over the lanes of a vector an expression is one of three things: the same in all of them (a scalar), affine in the
// vector dim (a scalar plus a constant vector), or anything else (vector arithmetic on the dim's lanes, in 32 bits
// where the ranges allow it: 64-bit vector multiplications and divisions are slow everywhere).
//
//===----------------------------------------------------------------------===//
#include "codegen/common/KernelEmitter.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;

Value KernelEmitter::symbolValue(StringRef name) const {
  Value value = symbolValues.lookup(name);
  assert(value && "a kernel's expression uses a symbol that the kernel does not list");
  return value;
}

// Dims with a known value become constants, which folds what depends on them alone; offsets enter the expression, so
// that neighbouring points differ by a constant.
Expr KernelEmitter::bindConstants(Expr expr, const EmissionPoint &point) const {
  return expr.substitute([&](StringRef name) -> Expr {
    std::optional<unsigned> dim = parseNumbered(name, 'd');
    if (!dim || *dim >= point.dims.size() || !point.dims[*dim] || int64_t(*dim) == point.vectorDim)
      return {};
    int64_t offset = *dim < point.offsets.size() ? point.offsets[*dim] : 0;
    if (auto value = invariants.asConstant(point.dims[*dim]))
      return Expr::constant(expr.getContext(), *value + offset);
    return offset ? Expr::dim(expr.getContext(), *dim) + offset : Expr();
  });
}

bool KernelEmitter::fitsInt32(Expr expr) const {
  ExprRange range = expr.range(ranges);
  if (range.min < -(int64_t(1) << 31) || range.max >= int64_t(1) << 31)
    return false;
  return expr.isConstant() || expr.isSymbol() ||
         llvm::all_of(expr.getOperands(), [&](Expr operand) { return fitsInt32(operand); });
}

static SmallVector<Value> outermostFirst(SmallVector<Value> values) {
  llvm::sort(values, [](Value a, Value b) {
    // Constants last: they fold into addresses.
    auto rank = [](Value v) {
      bool isConstant = v.getDefiningOp<arith::ConstantOp>();
      return isConstant ? ~0u : InvariantBuilder::depthOf(v) * 2 + isVector(v);
    };
    return rank(a) < rank(b);
  });
  return values;
}

Value KernelEmitter::emitTree(Expr expr, llvm::function_ref<Value(StringRef)> leaf, Type type) {
  auto literal = [&](int64_t value) { return invariants.constant(IntegerAttr::get(type, value)); };
  if (expr.isConstant())
    return literal(expr.getValue());
  if (expr.isSymbol())
    return leaf(expr.getSymbol());
  SmallVector<Expr, 4> operands = expr.getOperands();
  SmallVector<Value> values;
  for (Expr operand : operands)
    values.push_back(emitTree(operand, leaf, type));
  auto isNonNegative = [&] { return operands[0].range(ranges).min >= 0 && operands[1].range(ranges).min >= 1; };
  auto asInteger = [&](Value flag) -> Value {
    Type result = isVector(flag) ? Type(cast<VectorType>(flag.getType()).clone(type)) : type;
    return invariants.get<arith::ExtUIOp>(result, flag);
  };
  auto fold = [&](auto combine) {
    values = outermostFirst(values);
    Value result = values.front();
    for (Value value : llvm::drop_begin(values))
      result = combine(result, value);
    return result;
  };
  switch (expr.getKind()) {
  case ExprKind::Add:
    return fold([&](Value a, Value b) { return invariants.add(a, b); });
  case ExprKind::Mul:
    return fold([&](Value a, Value b) { return invariants.mul(a, b); });
  case ExprKind::FloorDiv:
    return invariants.floorDiv(values[0], values[1], isNonNegative());
  case ExprKind::Mod:
    return invariants.mod(values[0], values[1], isNonNegative());
  case ExprKind::Min:
    return fold([&](Value a, Value b) { return invariants.min(a, b); });
  case ExprKind::Max:
    return fold([&](Value a, Value b) { return invariants.max(a, b); });
  case ExprKind::Lt:
    return asInteger(invariants.compare(arith::CmpIPredicate::slt, values[0], values[1]));
  case ExprKind::Eq:
    return asInteger(invariants.compare(arith::CmpIPredicate::eq, values[0], values[1]));
  case ExprKind::Select:
    return invariants.select(invariants.compare(arith::CmpIPredicate::ne, values[0], literal(0)), values[1], values[2]);
  case ExprKind::Constant:
  case ExprKind::Symbol:
    break;
  }
  llvm_unreachable("leaves are above");
}

Value KernelEmitter::emitExpr(Expr expr, const EmissionPoint &point, ValueRange operands) {
  return emitBound(bindConstants(expr, point).simplify(ranges), point, operands);
}

Value KernelEmitter::emitBound(Expr expr, const EmissionPoint &point, ValueRange operands) {
  Type i64 = builder.getI64Type();
  bool narrow = traits.narrowIndices && !expr.isConstant() && fitsInt32(expr);
  Type type = narrow ? Type(builder.getI32Type()) : i64;
  auto leaf = [&](StringRef name) -> Value {
    if (auto dim = parseNumbered(name, 'd'); dim && *dim < point.dims.size() && point.dims[*dim])
      return point.dims[*dim];
    if (auto operand = parseOperand(name))
      return operands[*operand];
    return symbolValue(name);
  };
  auto toWidth = [&](Value value) -> Value { return narrow ? invariants.get<arith::TruncIOp>(type, value) : value; };
  Value value = emitTree(expr, [&](StringRef name) { return toWidth(leaf(name)); }, type);
  if (narrow)
    value = invariants.get<arith::ExtSIOp>(i64, value);
  if (!expr.usesAny([](StringRef name) { return parseNumbered(name, 'd') || parseOperand(name); }))
    if (int64_t most = expr.range(ranges).max; most != std::numeric_limits<int64_t>::max())
      largest[value] = most;
  return value;
}

std::optional<int64_t> KernelEmitter::getLargest(Value value) const {
  if (auto constant = invariants.asConstant(value))
    return constant;
  auto it = largest.find(value);
  return it == largest.end() ? std::nullopt : std::optional(it->second);
}

Value KernelEmitter::emitLaneIndex(Expr expr, const EmissionPoint &point, ValueRange operands) {
  expr = bindConstants(expr, point).simplify(ranges);
  bool anyVectorOperand = false;
  expr.walkSymbols([&](StringRef name) {
    if (auto operand = parseOperand(name))
      anyVectorOperand |= isVector(operands[*operand]);
  });
  std::string dim = dimName(point.vectorDim);
  bool usesDim = point.isVector() && expr.uses(dim);
  if (!anyVectorOperand && !usesDim)
    return emitBound(expr, point, operands);
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  if (Expr coefficient = usesDim && !anyVectorOperand ? expr.coefficientOf(dim) : Expr()) {
    Value first = emitBound(expr, point, operands);
    if (coefficient.isConstant())
      return invariants.add(first, laneNumbers(point, i64, coefficient.getValue()));
    Value step = emitBound(coefficient, point, operands);
    return invariants.add(first, invariants.mul(step, laneNumbers(point, i64)));
  }
  bool narrow = !anyVectorOperand && fitsInt32(expr);
  Type type = narrow ? i32 : i64;
  auto toWidth = [&](Value value) -> Value { return narrow ? invariants.get<arith::TruncIOp>(i32, value) : value; };
  return emitTree(
      expr,
      [&](StringRef name) -> Value {
        if (auto number = parseNumbered(name, 'd'); number && *number < point.dims.size() && point.dims[*number]) {
          Value first = toWidth(point.dims[*number]);
          return name == dim ? invariants.add(first, laneNumbers(point, type)) : first;
        }
        if (auto operand = parseOperand(name))
          return toWidth(operands[*operand]);
        return toWidth(symbolValue(name));
      },
      type);
}

Value KernelEmitter::emitLanes(Expr expr, const EmissionPoint &point, ValueRange operands) {
  Value value = emitLaneIndex(expr, point, operands);
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!vector || vector.getElementType().isInteger(64))
    return value;
  return invariants.get<arith::ExtSIOp>(vector.clone(builder.getI64Type()), value);
}
