//===- PrimTypeRules.cpp - type rules, verifiers and folds of prim ops ----===//
//
// One `inferReturnTypes` for each op whose result type follows from operands and
// attributes. A rule that is violated returns failure with a sentence: decompositions
// check a user's model before they build, so a failure here is a bug of ours.
//
//===----------------------------------------------------------------------===//

#include "ir/prim/Prim.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::prim;

#define GET_OP_CLASSES
#include "ir/prim/PrimOps.cpp.inc"

namespace {

LogicalResult rankError(std::optional<Location> loc, const char *sentence) { return emitOptionalError(loc, sentence); }

using Types = SmallVectorImpl<Type>;

/// i1 of the operands' shape, encoding included.
LogicalResult inferPredicate(Value operand, Types &results) {
  auto type = cast<RankedTensorType>(operand.getType());
  results.push_back(type.clone(IntegerType::get(type.getContext(), 1)));
  return success();
}

SmallVector<Expr> dropAxes(ArrayRef<Expr> dims, ArrayRef<int64_t> axes) {
  SmallVector<Expr> kept;
  for (auto [index, dim] : llvm::enumerate(dims))
    if (!llvm::is_contained(axes, int64_t(index)))
      kept.push_back(dim);
  return kept;
}

} // namespace

#define PREDICATE(OP, OPERAND)                                                                                         \
  LogicalResult OP::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor, Types &results) {        \
    return inferPredicate(adaptor.OPERAND(), results);                                                                 \
  }
PREDICATE(EqOp, getA)
PREDICATE(NeOp, getA)
PREDICATE(LtOp, getA)
PREDICATE(LeOp, getA)
PREDICATE(IsNanOp, getX)
PREDICATE(IsInfOp, getX)
#undef PREDICATE

Value ConvertOp::emitScalar(ScalarBuilder &s, ArrayRef<Value> x) {
  Type to = getElementType(getY());
  return s.convert(x[0], getScalarType(to), to.isUnsignedInteger());
}

Value BitcastOp::emitScalar(ScalarBuilder &s, ArrayRef<Value> x) {
  return s.bitcast(x[0], getScalarType(getElementType(getY())));
}

LogicalResult BitcastOp::verify() {
  auto storedBits = [](Type type) {
    return isHandle(type) ? 64 : type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth();
  };
  Type from = getElementType(getX()), to = getElementType(getY());
  return storedBits(from) == storedBits(to) ? success() : emitOpError("takes ") << from << " to another width: " << to;
}

//===----------------------------------------------------------------------===//
// Sources and views
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ExprsOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (type.getRank() > 1 || !type.hasStaticShape() || type.getNumElements() != int64_t(getValues().size()))
    return emitOpError("has ") << getValues().size() << " values for " << type;
  return success();
}

LogicalResult BroadcastOp::verify() {
  SmallVector<Expr> from = getDims(getX()), to = getDims(getResult());
  if (from.size() != getAxes().size())
    return emitOpError("needs one axis for each dim of the operand");
  int64_t last = -1;
  for (auto [dim, axis] : llvm::zip(from, getAxes())) {
    if (axis <= last || axis >= int64_t(to.size()))
      return emitOpError("axes must ascend within the result's rank");
    last = axis;
    bool isOpen = !dim.isConstant() || !to[axis].isConstant(); // it is 1 or the result's when the program runs
    if (!isOpen && !dim.isConstant(1) && dim != to[axis])
      return emitOpError("stretches dim ") << dim.str() << " to " << to[axis].str();
  }
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getX().getType() == getResult().getType())
    return getX();
  return {};
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                            Types &results) {
  SmallVector<Expr> from = getDims(adaptor.getX()), to;
  if (from.size() != adaptor.getPermutation().size())
    return rankError(loc, "the permutation has another rank than the operand");
  for (int64_t axis : adaptor.getPermutation())
    to.push_back(from[axis]);
  results.push_back(getTensorType(to, getElementType(adaptor.getX())));
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  for (auto [index, axis] : llvm::enumerate(getPermutation()))
    if (axis != int64_t(index))
      return {};
  return getX();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
                                         Types &results) {
  SmallVector<Expr> dims = getDims(adaptor.getInputs().front());
  size_t axis = adaptor.getAxis();
  if (axis >= dims.size())
    return rankError(loc, "the axis is out of the operands' rank");
  for (Value input : adaptor.getInputs().drop_front())
    dims[axis] = dims[axis] + getDims(input)[axis];
  results.push_back(getTensorType(dims, getElementType(adaptor.getInputs().front())));
  return success();
}

//===----------------------------------------------------------------------===//
// Indexing
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor, Types &results) {
  SmallVector<Expr> x = getDims(adaptor.getX()), indices = getDims(adaptor.getIndices());
  size_t axis = adaptor.getAxis();
  SmallVector<Expr> dims(x.begin(), x.begin() + axis);
  dims.append(indices.begin(), indices.end());
  dims.append(x.begin() + axis + 1, x.end());
  results.push_back(getTensorType(dims, getElementType(adaptor.getX())));
  return success();
}

LogicalResult GatherElementsOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                                 Types &results) {
  results.push_back(getTensorType(getDims(adaptor.getIndices()), getElementType(adaptor.getX())));
  return success();
}

LogicalResult GatherNdOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                           Types &results) {
  SmallVector<Expr> x = getDims(adaptor.getX()), indices = getDims(adaptor.getIndices());
  if (indices.empty() || !indices.back().isConstant())
    return rankError(loc, "the length of index tuples must be known");
  size_t consumed = adaptor.getBatchDims() + indices.back().getValue();
  if (consumed > x.size())
    return rankError(loc, "index tuples are longer than the operand's rank");
  SmallVector<Expr> dims(indices.begin(), indices.end() - 1);
  dims.append(x.begin() + consumed, x.end());
  results.push_back(getTensorType(dims, getElementType(adaptor.getX())));
  return success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

LogicalResult CallOp::verify() {
  if (getCallee().starts_with("custom_") != bool(getCustomAttr()))
    return emitOpError("says whose operator it is, if and only if it calls the user's own");
#define PRIM_CALL(NAME, OPERANDS, NUMBERS, RESULTS)                                                                    \
  if (getCallee() == #NAME) {                                                                                          \
    bool fits = (OPERANDS < 0 || getInputs().size() == size_t(OPERANDS)) &&                                            \
                (NUMBERS < 0 || getNumbers().size() == size_t(NUMBERS)) &&                                             \
                (RESULTS < 0 || getResults().size() == size_t(RESULTS));                                               \
    return fits ? success() : emitOpError("takes other operands, numbers or results");                                 \
  }
#include "ir/prim/PrimCalls.def"
  return emitOpError("has no such function: ") << getCallee();
}

//===----------------------------------------------------------------------===//
// Reductions and contractions
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor, Types &results) {
  results.push_back(
      getTensorType(dropAxes(getDims(adaptor.getX()), adaptor.getAxes()), getElementType(adaptor.getX())));
  return success();
}

LogicalResult ArgReduceOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor adaptor,
                                            Types &results) {
  int64_t axis = adaptor.getAxis();
  results.push_back(
      getTensorType(dropAxes(getDims(adaptor.getX()), axis), IntegerType::get(context, 64, IntegerType::Signed)));
  return success();
}

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor, Types &results) {
  SmallVector<Expr> lhs = getDims(adaptor.getLhs()), rhs = getDims(adaptor.getRhs());
  if (lhs.size() < 2 || rhs.size() < 2)
    return rankError(loc, "operands must have rank 2 or more");
  if (lhs.back() != rhs[rhs.size() - 2])
    return rankError(loc, "the contracted dims differ");
  lhs.back() = rhs.back();
  results.push_back(getTensorType(lhs, getElementType(adaptor.getLhs())));
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// The type with the symbols that `values` knows replaced.
static Type substituteDims(Type type, function_ref<Expr(StringRef)> values) {
  SmallVector<Expr> dims = getDims(type);
  for (Expr &dim : dims)
    dim = dim.substitute(values);
  return getTensorType(dims, cast<RankedTensorType>(type).getElementType());
}

LogicalResult IfOp::verifyRegions() {
  auto joined = getJoinedAttr();
  auto sizeIn = [&](bool isThen) {
    return [joined, isThen](StringRef name) -> Expr {
      for (auto size : joined.getAsRange<JoinedAttr>())
        if (size.getName() == name)
          return isThen ? size.getThenSize() : size.getElseSize();
      return {};
    };
  };
  for (auto [region, isThen] : {std::pair(&getThenRegion(), true), std::pair(&getElseRegion(), false)}) {
    Operation *yield = region->front().getTerminator();
    if (yield->getNumOperands() != getNumResults())
      return emitOpError("has ") << getNumResults() << " results; a branch yields " << yield->getNumOperands();
    for (auto [value, result] : llvm::zip_equal(yield->getOperands(), getResults()))
      if (Type expected = joined ? substituteDims(result.getType(), sizeIn(isThen)) : result.getType();
          value.getType() != expected)
        return emitOpError("yields ") << value.getType() << " for a result of type " << expected;
  }
  return success();
}

Expr LoopOp::getRoundCount() {
  if (std::optional<StringRef> symbol = getRounds())
    return Expr::symbol(getContext(), *symbol);
  return !getCondition() && !getLimit() && getTrips() ? *getTrips() : Expr();
}

/// The type with sizes that the loop carries at one of their values.
static Type atCarried(Type type, LoopOp loop, function_ref<Expr(CarriedAttr)> value) {
  auto carried = loop.getCarriedAttr();
  if (!carried)
    return type;
  return substituteDims(type, [&](StringRef name) -> Expr {
    for (auto size : carried.getAsRange<CarriedAttr>())
      if (size.getName() == name)
        return value(size);
    return {};
  });
}

LogicalResult LoopOp::verify() {
  if (!getTrips() && !getLimit() && !getCondition())
    return emitOpError("never ends: it has no trips, no limit and no condition");
  if (!getScanned().empty() && !getTrips())
    return emitOpError("scans values without trips");
  if (getTrips() && getTrips()->isConstant() && getTrips()->getValue() < 0)
    return emitOpError("has fewer than no trips");
  for (Value operand : {getLimit(), getCondition()})
    if (operand && getRank(operand) != 0)
      return emitOpError("takes scalars for its limit and its condition, not ") << operand.getType();
  return success();
}

LogicalResult LoopOp::verifyRegions() {
  Operation *yield = getBlock().getTerminator();
  size_t states = getInitial().size(), leading = getCondition() ? 1 : 0;
  if (getResults().size() < states || getBlock().getNumArguments() != states + getScanned().size() ||
      yield->getNumOperands() != leading + getResults().size())
    return emitOpError("has ") << states << " states, " << getScanned().size() << " scanned values and "
                               << getResults().size() << " results, its region " << getBlock().getNumArguments()
                               << " arguments and " << yield->getNumOperands() << " values";
  if (getCondition() && getNextCondition().getType() != getCondition().getType())
    return emitOpError("yields a condition of type ") << getNextCondition().getType();
  for (size_t i = 0; i < states; ++i) {
    Type state = getStateArgs()[i].getType();
    Type initial = atCarried(state, *this, [](CarriedAttr size) { return Expr(size.getInitial()); });
    Type next = atCarried(state, *this, [](CarriedAttr size) { return Expr(size.getNext()); });
    Type last = atCarried(state, *this, [&](CarriedAttr size) { return Expr::symbol(getContext(), size.getFinal()); });
    if (initial != getInitial()[i].getType() || next != getNextStates()[i].getType() ||
        last != getResults()[i].getType())
      return emitOpError("carries state ")
             << i << " of type " << state << " from " << getInitial()[i].getType() << " over "
             << getNextStates()[i].getType() << " to " << getResults()[i].getType();
  }
  for (auto [scanned, element] : llvm::zip_equal(getScanned(), getElementArgs())) {
    SmallVector<Expr> dims = getDims(scanned);
    if (dims.empty() || element.getType() != getTensorType(ArrayRef<Expr>(dims).drop_front(), getElementType(scanned)))
      return emitOpError("scans ") << scanned.getType() << " as " << element.getType();
  }
  for (auto [row, stack] : llvm::zip_equal(getRows(), getStacks())) {
    SmallVector<Expr> dims = getDims(row);
    Expr rounds = getRoundCount();
    if (!rounds)
      return emitOpError("stacks rows, but no symbol is bound to the number of rounds");
    dims.insert(dims.begin(), rounds);
    if (stack.getType() != getTensorType(dims, getElementType(row)))
      return emitOpError("stacks rows of type ") << row.getType() << " as " << stack.getType();
  }
  return success();
}
