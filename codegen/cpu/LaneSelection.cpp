//===- LaneSelection.cpp - the first few of many short rows ---------------===//
//
// A few of each of many rows (the experts of a token, the best classes of a pixel) need no row in order: each lane has
// a row of its own, and the first `kept` of its points so far stand in registers, in order. A point is compared with
// all of them; where it comes before one, this one and those behind it move on by one place, and it takes the place
// that is left:
//
//   c[j] = key < key of place j       new place j = c[j-1] ? place j-1 : c[j] ? the point : place j
//
// Comparisons are strict, so that of equal keys the first one stays in front. It takes 1 comparison and 4 selections a
// place for as many rows as a vector has lanes, and no branch; a place is a key and an index. A value is what its key
// was: of -0, whose key is that of +0, the highest bit of the index tells, which is less than `manyPoints` otherwise.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/SortKeys.h"
#include "codegen/cpu/RowSort.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t mostPlaces = 8; // beyond that what is in no register costs more than a sort
static constexpr int64_t fewestRows = 8; // that fill lanes

bool cpu::selectsInLanes(loop::SortOp op, int64_t dim) {
  SmallVector<Expr> domain = loop::getDomain(op);
  auto kept = Expr(op.getKept()).asConstant(), length = domain.back().asConstant();
  Type key = op.getKey().front().getTerminator()->getOperand(0).getType();
  unsigned bits = key.getIntOrFloatBitWidth();
  return dim + 1 < int64_t(domain.size()) && domain[size_t(dim)].asConstant().value_or(fewestRows) >= fewestRows &&
         kept && *kept >= 1 && *kept <= mostPlaces && length && *length >= *kept && *length < manyPoints &&
         (bits == 32 || bits == 64);
}

namespace {
struct Place {
  Value key, index;
};
using Places = SmallVector<Place>;
} // namespace

static Place select(KernelEmitter &e, Value condition, const Place &a, const Place &b) {
  auto choose = [&](Value a, Value b) -> Value { return arith::SelectOp::create(e.builder, e.loc, condition, a, b); };
  return {choose(a.key, b.key), choose(a.index, b.index)};
}

/// The places with the point among them, up to `most`.
static Places insert(KernelEmitter &e, const Places &places, const Place &point, size_t most) {
  SmallVector<Value> isBefore;
  for (const Place &place : places)
    isBefore.push_back(arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::slt, point.key, place.key));
  Places next;
  for (size_t j = 0; j < std::min(places.size() + 1, most); ++j) {
    Place own = j < places.size() ? select(e, isBefore[j], point, places[j]) : point;
    next.push_back(j ? select(e, isBefore[j - 1], places[j - 1], own) : own);
  }
  return next;
}

namespace {
struct LaneSelection {
  KernelEmitter &e;
  loop::SortOp op;
  const EmissionPoint &rows;
  Type valueType = op.getKey().front().getTerminator()->getOperand(0).getType();
  IntegerType type = codegen::narrowKeyType(valueType);

  Value everywhere(const APInt &number) {
    return e.splat(e.invariants.constant(IntegerAttr::get(type, number)), rows.lanes);
  }
  APInt highest() const { return APInt::getSignedMinValue(type.getWidth()); }
  EmissionPoint at(Value position) {
    EmissionPoint point = rows;
    point.dims.back() = position;
    return point;
  }
  Place pointAt(Value position);
  void emitResult(Value rank, const Place &place);
};
} // namespace

Place LaneSelection::pointAt(Value position) {
  Value value = e.splat(e.emitRegion(op.getKey(), at(position)), rows.lanes);
  Value number = type.getWidth() == 64 ? position : arith::TruncIOp::create(e.builder, e.loc, type, position);
  Value index = e.splat(number, rows.lanes);
  if (Value isZero = codegen::isNegativeZero(e, value)) {
    Value marked = e.splat(
        arith::OrIOp::create(e.builder, e.loc, number, e.invariants.constant(IntegerAttr::get(type, highest()))),
        rows.lanes);
    index = arith::SelectOp::create(e.builder, e.loc, isZero, marked, index);
  }
  return {codegen::orderedKey(e, value, op.getIsUnsigned(), op.getDescending(), type), index};
}

void LaneSelection::emitResult(Value rank, const Place &place) {
  Value value = codegen::valueOfKey(e, place.key, op.getIsUnsigned(), op.getDescending(), valueType);
  Value index = place.index;
  if (isa<FloatType>(valueType)) {
    Value isMarked = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::slt, index,
                                           everywhere(APInt(type.getWidth(), 0)));
    Value negative = arith::NegFOp::create(e.builder, e.loc, value);
    value = arith::SelectOp::create(e.builder, e.loc, isMarked, negative, value);
    index = arith::AndIOp::create(e.builder, e.loc, index, everywhere(~highest()));
  }
  Type wide = e.builder.getI64Type();
  if (auto vector = dyn_cast<VectorType>(index.getType()))
    wide = vector.clone(wide);
  if (index.getType() != wide)
    index = arith::ExtUIOp::create(e.builder, e.loc, wide, index);
  e.emitRegion(op.getBody(), at(rank), {value, index});
}

static SmallVector<Value> toValues(const Places &places) {
  SmallVector<Value> values;
  for (const Place &place : places)
    values.append({place.key, place.index});
  return values;
}

static Places toPlaces(ValueRange values) {
  Places places;
  for (size_t i = 0; i < values.size(); i += 2)
    places.push_back({values[i], values[i + 1]});
  return places;
}

void cpu::emitLaneSelection(KernelEmitter &e, loop::SortOp op, const EmissionPoint &rows) {
  LaneSelection selection{e, op, rows};
  size_t kept = size_t(Expr(op.getKept()).getValue());
  Value length = e.emitExpr(loop::getDomain(op).back(), rows);
  Places first;
  for (size_t i = 0; i < kept; ++i)
    first = insert(e, first, selection.pointAt(e.constant(int64_t(i))), kept);
  auto step = [&](Value position, ValueRange carried) {
    return toValues(insert(e, toPlaces(carried), selection.pointAt(position), kept));
  };
  Places places = toPlaces(e.createLoop(e.constant(int64_t(kept)), length, 1, toValues(first), step));
  for (auto [rank, place] : llvm::enumerate(places))
    selection.emitResult(e.constant(int64_t(rank)), place);
}
