//===- RecognizeAttention.cpp - products around a softmax -----------------===//
//
// Exporters spell scaled dot-product attention out:
//
//   s = matmul(q, k^T)          q, k or s times constants; masks are added or selected
//   p = exp(s - max(s)) / sum(exp(s - max(s)))          along the last dim
//   p = select(is_nan(p), 0, p)                         torch's guard for rows without a key
//   p = select(r, 0, p)                                 ONNX's: r is the same for a whole row
//   y = matmul(p, v)
//
// Spelled so, s and p are matrices in memory, the largest values of the whole model. As one
// `prim.attention` they never exist.
//
// The match starts at the last product and walks up. It looks at the structure of prim ops
// alone; operands of commutative ops may stand either way. Every value between must have no
// other reader, else nothing would be saved: a reason for `ptc explain`, like the others. Masks are
// kept in their order, so that sums round as they did. Reshapes of the batch dims between the
// products and the softmax are moved to q, k, v, the result and the masks below them, where they cost nothing.
//
// Rules with constants c, masks m (i1) and a (float):
//   matmul(q * c, k^T * d) / e        scale = c * d / e
//   tanh(s) * c                       softcap c; s has no masks
//   select(m, s, c)                   mask m, masked_score c
//   select(m, c, s)                   mask not m
//   s + a                             mask a
//   masks that are j <= i throughout  causal, if hidden scores cannot matter
//   select(r, 0, p) v                 select(r, 0, p v)
//   p v without keys                  0, where there may be none; weights without a sum are NaN
//
//===----------------------------------------------------------------------===//
#include "ir/prim/Elements.h"
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"

namespace ptc {
#define GEN_PASS_DEF_RECOGNIZEATTENTION
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {

struct Mask {
  Value value;
  bool isInverted = false;
};

/// What lies above the softmax.
struct Scores {
  MatmulOp product;
  double scale = 1;
  std::optional<double> softcap; // times the hyperbolic tangent of what is scaled
  SmallVector<Mask> masks;
  std::optional<double> maskedScore;
  SmallVector<Expr> batch;         // batch dims at the softmax
  SmallVector<Location> locations; // of what scales and masks
};

class AttentionMatch {
public:
  explicit AttentionMatch(MatmulOp last) : last(last) {}

  /// True if the product's lhs is a softmax; `reason` then says what else is wrong, if anything.
  bool findSoftmax();
  /// The scores that enter the softmax, and their product.
  bool findScores();
  void rewrite();

  std::string reason;

private:
  bool refuse(const char *why) {
    reason = why;
    return false;
  }
  bool findGuard(SelectOp select);
  bool peel(Value value, Scores &scores);
  bool peelSum(AddOp op, bool isSecond, Scores &scores);
  bool peelSelect(SelectOp op, Scores &scores);
  bool peelReshape(ReshapeOp op, Scores &scores);
  Value reshapeBatch(OpBuilder &b, Value value);
  bool mayLackKeys();

  MatmulOp last;
  DivOp quotient;
  Value logits; // what the softmax is of
  bool zeroesNan = false;
  BroadcastOp zeroedRows; // the rows of p that are 0 whatever the scores are
  Scores found;
};

} // namespace

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// The reduction of `kind` over the last dim of x that `value` holds for each element of a row.
static ReduceOp matchRowStatistic(Value value, ReduceKind kind) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  for (auto [i, axis] : llvm::enumerate(broadcast.getAxes()))
    if (axis != int64_t(i) && !getDims(broadcast.getX())[i].isConstant(1)) // where one row is put does not matter
      return {};
  Value row = broadcast.getX();
  if (auto reshape = row.getDefiningOp<ReshapeOp>()) {
    SmallVector<Expr> to = getDims(row);
    if (to.empty() || !to.pop_back_val().isConstant(1) || to != getDims(reshape.getX()))
      return {};
    row = reshape.getX();
  }
  auto reduce = row.getDefiningOp<ReduceOp>();
  int64_t lastAxis = getRank(value) - 1;
  bool fits = reduce && reduce.getKind() == kind && reduce.getAxes() == ArrayRef<int64_t>(lastAxis) &&
              getDims(reduce.getX()) == getDims(value);
  return fits ? reduce : ReduceOp();
}

/// Whether a selection puts 0 in the place of weights: of those that are NaN, or of whole rows.
bool AttentionMatch::findGuard(SelectOp select) {
  if (getSplat(select.getA()) != 0.0)
    return false;
  Value condition = select.getCondition();
  if (auto test = condition.getDefiningOp<IsNanOp>()) {
    zeroesNan = true;
    return test.getX() == select.getB();
  }
  zeroedRows = condition.getDefiningOp<BroadcastOp>();
  if (!zeroedRows)
    return false;
  ArrayRef<int64_t> axes = zeroedRows.getAxes();
  bool hasColumns = !axes.empty() && axes.back() == getRank(condition) - 1;
  return !hasColumns || getDims(zeroedRows.getX()).back().isConstant(1);
}

bool AttentionMatch::findSoftmax() {
  Value weights = last.getLhs(), guarded;
  if (auto select = weights.getDefiningOp<SelectOp>()) {
    if (!findGuard(select))
      return false;
    guarded = weights;
    weights = select.getB();
  }
  if (auto reshape = weights.getDefiningOp<ReshapeOp>(); reshape && !guarded)
    weights = reshape.getX();
  quotient = weights.getDefiningOp<DivOp>();
  auto exp = quotient ? quotient.getA().getDefiningOp<ExpOp>() : ExpOp();
  auto sum = exp ? matchRowStatistic(quotient.getB(), ReduceKind::Sum) : ReduceOp();
  auto difference = exp ? exp.getX().getDefiningOp<SubOp>() : SubOp();
  auto max = difference ? matchRowStatistic(difference.getB(), ReduceKind::Max) : ReduceOp();
  if (!sum || sum.getX() != exp.getY() || !max || max.getX() != difference.getA())
    return false;
  logits = difference.getA();
  // The guard against NaN reads the weights twice, the softmax the scores and the exponentials.
  bool isPrivate = hasUses(last.getLhs(), 1) && hasUses(weights, zeroesNan ? 2 : 1) && hasUses(exp.getY(), 2) &&
                   hasUses(logits, 2) && (!guarded || hasUses(guarded, 1));
  if (!isPrivate)
    return reason = "the weights or scores are read elsewhere too", true;
  Type type = getElementType(logits);
  if (!isa<FloatType>(type) || type.getIntOrFloatBitWidth() > 32)
    return reason = "the template accumulates in f32", true;
  if (getRank(last.getLhs()) != getRank(last.getRhs()))
    return reason = "the values are shared by all heads", true;
  return true;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// The scores are operand b of the sum if `isSecond`, else a.
bool AttentionMatch::peelSum(AddOp op, bool isSecond, Scores &scores) {
  Scores attempt = scores;
  if (!peel(isSecond ? op.getB() : op.getA(), attempt))
    return false;
  attempt.masks.push_back({isSecond ? op.getA() : op.getB()});
  attempt.locations.push_back(op.getLoc());
  scores = attempt;
  return true;
}

bool AttentionMatch::peelSelect(SelectOp op, Scores &scores) {
  for (bool inverted : {false, true}) {
    std::optional<double> fill = getSplat(inverted ? op.getA() : op.getB());
    Scores attempt = scores;
    if (!fill || !peel(inverted ? op.getB() : op.getA(), attempt))
      continue;
    if (attempt.maskedScore && *attempt.maskedScore != *fill)
      return refuse("masks put different values in place of scores");
    attempt.maskedScore = fill;
    attempt.masks.push_back({op.getCondition(), inverted});
    attempt.locations.push_back(op.getLoc());
    scores = attempt;
    return true;
  }
  return refuse("a score is selected from two computed values");
}

/// Batch dims alone may change, and only next to the product.
bool AttentionMatch::peelReshape(ReshapeOp op, Scores &scores) {
  SmallVector<Expr> from = getDims(op.getX()), to = getDims(op.getResult());
  if (from.size() < 2 || to.size() < 2 || ArrayRef(from).take_back(2) != ArrayRef(to).take_back(2))
    return refuse("a reshape of the scores mixes rows");
  return peel(op.getX(), scores);
}

bool AttentionMatch::peel(Value value, Scores &scores) {
  if (auto product = value.getDefiningOp<MatmulOp>()) {
    scores.product = product;
    return value == logits || hasUses(value, 1) || refuse("the scores are read elsewhere too");
  }
  if (value != logits && !hasUses(value, 1))
    return refuse("the scores are read elsewhere too");
  Operation *op = value.getDefiningOp();
  if (!op)
    return refuse("the scores are no product");
  auto scaled = [&](Value inner, std::optional<double> factor) {
    if (!factor || !peel(inner, scores))
      return false;
    if (!scores.masks.empty())
      return refuse("the scores are scaled after a mask");
    (scores.softcap ? *scores.softcap : scores.scale) *= *factor;
    scores.locations.push_back(op->getLoc());
    return true;
  };
  if (auto mul = dyn_cast<MulOp>(op)) {
    std::optional<double> b = getSplat(mul.getB());
    return b ? scaled(mul.getA(), b) : scaled(mul.getB(), getSplat(mul.getA())) || refuse("the scale is no constant");
  }
  if (auto div = dyn_cast<DivOp>(op)) {
    std::optional<double> divisor = getSplat(div.getB());
    return divisor ? scaled(div.getA(), 1 / *divisor) : refuse("the scale is no constant");
  }
  if (auto tanh = dyn_cast<TanhOp>(op)) {
    if (!peel(tanh.getX(), scores))
      return false;
    if (!scores.masks.empty() || scores.softcap)
      return refuse(scores.softcap ? "the scores are capped twice" : "the scores are capped after a mask");
    scores.softcap = 1;
    scores.locations.push_back(op->getLoc());
    return true;
  }
  if (auto add = dyn_cast<AddOp>(op))
    return peelSum(add, false, scores) || peelSum(add, true, scores);
  if (auto select = dyn_cast<SelectOp>(op))
    return peelSelect(select, scores);
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return peelReshape(reshape, scores);
  return refuse("the scores are no product");
}

bool AttentionMatch::findScores() {
  SmallVector<Expr> dims = getDims(logits);
  if (dims.size() < 2)
    return refuse("the softmax is of a vector");
  found.batch.assign(dims.begin(), dims.end() - 2);
  if (!peel(logits, found))
    return false;
  MatmulOp product = found.product;
  if (getRank(product.getLhs()) != getRank(product.getRhs()))
    return refuse("the keys are shared by all heads");
  if (ArrayRef(getDims(last.getLhs())).take_back(2) != ArrayRef(dims).take_back(2) ||
      ArrayRef(getDims(product.getResult())).take_back(2) != ArrayRef(dims).take_back(2))
    return refuse("a reshape of the scores mixes rows");
  reason.clear();
  return true;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// x without multiplications by constants below views; the constants go to the scale.
static Value stripScale(OpBuilder &b, Value x, Scores &scores) {
  Operation *op = x.getDefiningOp();
  if (!op || !hasUses(x, 1))
    return x;
  if (isa<ReshapeOp, TransposeOp>(op)) {
    Value inner = stripScale(b, op->getOperand(0), scores);
    if (inner == op->getOperand(0))
      return x;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(op);
    Operation *copy = b.clone(*op);
    copy->setOperand(0, inner);
    return copy->getResult(0);
  }
  auto mul = dyn_cast<MulOp>(op);
  auto div = dyn_cast<DivOp>(op);
  for (bool swapped : {false, true}) {
    std::optional<double> factor;
    if (mul)
      factor = getSplat(mul->getOperand(swapped ? 0 : 1));
    else if (div && !swapped)
      factor = getSplat(div.getB());
    if (!factor)
      continue;
    scores.scale *= div ? 1 / *factor : *factor;
    scores.locations.push_back(op->getLoc());
    return stripScale(b, op->getOperand(swapped ? 1 : 0), scores);
  }
  return x;
}

/// A score so low that its weight is 0 beside any other.
static bool isHidden(const APFloat &x) { return x.isNegative() && (x.isInfinity() || x.isLargest()); }

/// Whether a constant's last two dims are a square triangle: `visible` where column <= row, and only there.
template <typename Element>
static bool isTriangle(DenseElementsAttr elements, llvm::function_ref<std::optional<bool>(const Element &)> visible) {
  ArrayRef<int64_t> shape = elements.getType().getShape();
  int64_t rows = shape[shape.size() - 2], columns = shape.back(), at = 0;
  return rows == columns && llvm::all_of(elements.getValues<Element>(), [&](const Element &x) {
           int64_t row = at / columns % rows, column = at++ % columns;
           std::optional<bool> isVisible = visible(x);
           return isVisible && *isVisible == (column <= row);
         });
}

/// A mask that hides the keys behind the query and nothing else, the same for all heads.
static bool isCausalMask(Value mask, bool isInverted) {
  SmallVector<Expr> dims = getDims(mask);
  if (auto broadcast = mask.getDefiningOp<BroadcastOp>()) { // the last two dims in place
    ArrayRef<int64_t> axes = broadcast.getAxes();
    int64_t rank = dims.size();
    if (axes.size() < 2 || axes.take_back(2) != ArrayRef<int64_t>({rank - 2, rank - 1}))
      return false;
    mask = broadcast.getX();
  }
  if (dims.size() < 2 || ArrayRef(getDims(mask)).take_back(2) != ArrayRef(dims).take_back(2))
    return false;
  if (auto select = mask.getDefiningOp<SelectOp>()) {
    std::optional<double> a = getSplat(select.getA()), b = getSplat(select.getB());
    auto hides = [](std::optional<double> x) { return x && *x <= -std::numeric_limits<float>::max(); };
    return (a == 0.0 && hides(b) && isCausalMask(select.getCondition(), false)) ||
           (b == 0.0 && hides(a) && isCausalMask(select.getCondition(), true));
  }
  DenseElementsAttr elements = getConstant(mask);
  if (!elements)
    return false;
  if (elements.getElementType().isInteger(1))
    return isTriangle<bool>(elements, [&](bool x) { return x != isInverted; });
  if (!isa<FloatType>(elements.getElementType()))
    return false;
  return isTriangle<APFloat>(elements, [](const APFloat &x) {
    return x.isZero() ? std::optional(true) : isHidden(x) ? std::optional(false) : std::nullopt;
  });
}

/// `value` with the batch dims of the softmax.
Value AttentionMatch::reshapeBatch(OpBuilder &b, Value value) {
  SmallVector<Expr> dims(found.batch);
  dims.append(llvm::to_vector(ArrayRef(getDims(value)).take_back(2)));
  Type type = getTensorType(dims, getElementType(value));
  return type == value.getType() ? value : ReshapeOp::create(b, value.getLoc(), type, value).getResult();
}

bool AttentionMatch::mayLackKeys() {
  auto symbols = last->getParentOfType<func::FuncOp>()->getAttrOfType<DictionaryAttr>(symbolsAttr);
  return getDims(last.getLhs()).back().range(getSymbolRanges(symbols)).min < 1;
}

/// 0 where `rows`, which lie along `axes` of the result, are true.
static Value zeroRows(OpBuilder &b, Location loc, Value rows, ArrayRef<int64_t> axes, Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  auto bits = RankedTensorType::get(type.getShape(), b.getI1Type(), type.getEncoding());
  rows = BroadcastOp::create(b, loc, bits, rows, axes);
  Value none = ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(RankedTensorType::get({}, type.getElementType()), b.getZeroAttr(type.getElementType())));
  none = BroadcastOp::create(b, loc, type, none, ArrayRef<int64_t>());
  return SelectOp::create(b, loc, type, rows, none, result);
}

void AttentionMatch::rewrite() {
  OpBuilder b(last);
  Value q = stripScale(b, found.product.getLhs(), found), k = stripScale(b, found.product.getRhs(), found);
  SmallVector<Location> locations{found.product.getLoc()};
  llvm::append_range(locations, found.locations);
  locations.append({quotient.getLoc(), last.getLoc()});
  Location loc = b.getFusedLoc(locations);
  SmallVector<int64_t> swap = llvm::to_vector(llvm::seq<int64_t>(0, getRank(k)));
  std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
  k = TransposeOp::create(b, loc, k, swap);
  q = reshapeBatch(b, q);
  k = reshapeBatch(b, k);
  Value v = reshapeBatch(b, last.getRhs());
  // With other masks a row might have no visible key but hidden ones, whose finite scores count then.
  bool isCausal = found.masks.size() == 1 && isCausalMask(found.masks[0].value, found.masks[0].isInverted) &&
                  found.maskedScore.value_or(-INFINITY) <= -std::numeric_limits<float>::max();
  SmallVector<Value> masks;
  if (!isCausal)
    for (const Mask &mask : found.masks) {
      Value visible = mask.isInverted ? NotOp::create(b, loc, mask.value.getType(), mask.value).getY() : mask.value;
      masks.push_back(reshapeBatch(b, visible));
    }
  SmallVector<Expr> dims(found.batch);
  dims.append({getDims(q)[found.batch.size()], getDims(v).back()});
  FloatAttr softcap, masked;
  if (found.softcap)
    softcap = b.getF64FloatAttr(*found.softcap);
  if (found.maskedScore && !isCausal && !std::isinf(*found.maskedScore))
    masked = b.getF64FloatAttr(*found.maskedScore);
  auto unit = [&](bool isSet) { return isSet ? b.getUnitAttr() : UnitAttr(); };
  Value result = AttentionOp::create(b, loc, getTensorType(dims, getElementType(v)), q, k, v, masks,
                                     b.getF64FloatAttr(found.scale), softcap, masked, unit(isCausal), unit(zeroesNan));
  if (last->hasAttr(keepsTypeAttr) || found.product->hasAttr(keepsTypeAttr))
    result.getDefiningOp()->setAttr(keepsTypeAttr, b.getUnitAttr());
  if (result.getType() != last.getResult().getType())
    result = ReshapeOp::create(b, loc, last.getResult().getType(), result);
  if (zeroedRows)
    result = zeroRows(b, loc, zeroedRows.getX(), zeroedRows.getAxes(), result);
  if (mayLackKeys()) {
    Expr isEmpty = Expr::lt(getDims(last.getLhs()).back(), Expr::constant(b.getContext(), 1));
    auto number = RankedTensorType::get({}, b.getIntegerType(64, /*isSigned=*/true));
    Value empty = ExprsOp::create(b, loc, number, getExprArray(b.getContext(), {isEmpty}));
    empty = ConvertOp::create(b, loc, RankedTensorType::get({}, b.getI1Type()), empty);
    result = zeroRows(b, loc, empty, {}, result);
  }
  last.getResult().replaceAllUsesWith(result);
}

namespace {
struct RecognizeAttention : ptc::impl::RecognizeAttentionBase<RecognizeAttention> {
  using RecognizeAttentionBase::RecognizeAttentionBase;
  void runOnOperation() override {
    SmallVector<MatmulOp> products;
    getOperation().walk([&](MatmulOp op) { products.push_back(op); });
    for (MatmulOp product : products) {
      AttentionMatch match(product);
      if (!match.findSoftmax())
        continue;
      if (match.reason.empty() && match.findScores())
        match.rewrite();
      else if (remarks)
        product->emitRemark("not attention: ") << match.reason;
    }
    eraseDeadOps(getOperation());
  }
};
} // namespace
