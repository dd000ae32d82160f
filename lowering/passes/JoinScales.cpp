//===- JoinScales.cpp - what lies between quantised tensors, in one scale --===//
//
// A quantised model multiplies by the scale of each operand, adds in real numbers, divides by the scale of the result
// and rounds. Scales are constants, so they are multiplied and divided beforehand:
//
//   round((sum ci xi + b) / s) + z  =  round(sum (ci / s) xi + b / s) + z         xi integers, s > 0
//   round(relu(x) / s)              =  round(relu(x / s)); without relu where the result is unsigned and z = 0
//
// What is left for each element of a product is a fused multiply-add and a conversion, where there was a division,
// which takes as long as ten of these. A residual sum is one more of both.
//
// Bytes that are rounded and taken apart again at once stay real numbers, bit by bit the same:
//
//   real(q) - z  =  clamp(r, least - z, most - z)      where q = convert(r + z), r rounded
//
// be it for a sum or for other pointwise operations that end in bytes (an activation), which one kernel computes. Bytes
// that are taken apart and rounded to what they were are left alone. The largest of a window is found among the bytes:
//
//   max over k of (q[k] - z) s  =  (max over k of q[k] - z) s                       s > 0
//
// Depthwise convolutions sum whole numbers in f32, which become no integers before they are scaled.
//
// Sums are rounded in another order than the model's. That moves a result only where it lies within some 2^-22 of the
// middle between two integers, and by 1 then. Not under --fp=strict. Quotients of what is no sum of integers stay
// divisions.
//
//===----------------------------------------------------------------------===//
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"

namespace ptc {
#define GEN_PASS_DEF_JOINSCALES
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {

/// A number, or one for each place along an axis.
struct Spread {
  SmallVector<double, 1> values;
  int64_t axis = -1;
};

/// The sum of terms, each an integer in f32 times a factor, and a constant.
struct Sum {
  SmallVector<std::pair<Value, Spread>> terms;
  Spread constant{{0}, -1};
};

/// What was rounded to bytes: whole numbers before the zero point.
struct Rounded {
  Value before;
  double zero = 0;
};

constexpr size_t mostTerms = 4;
constexpr unsigned mostPointwise = 64; // operations between bytes and bytes that are looked at

class ScaleJoiner {
public:
  explicit ScaleJoiner(func::FuncOp function) : function(function), b(function.getContext()) {}

  void run() {
    function.walk([&](WindowReduceOp op) { poolBytes(op); });
    function.walk([&](ConvertOp op) { keepWhole(op); });
    SmallVector<ConvertOp> conversions;
    function.walk([&](ConvertOp op) { conversions.push_back(op); });
    for (ConvertOp op : conversions)
      join(op);
    for (ConvertOp op : conversions)
      keepReal(op);
    eraseDeadOps(function);
  }

private:
  void poolBytes(WindowReduceOp op);
  void keepWhole(ConvertOp op);
  void join(ConvertOp op);
  void keepReal(ConvertOp op);
  bool expand(Value value, const Spread &scale, Sum &sum, bool isFirst = false);
  Value asRounded(const Bytes &bytes);
  Value emit(const Sum &sum, Value like);
  Value constant(const Spread &spread, Value like);

  func::FuncOp function;
  OpBuilder b;
  Location loc = b.getUnknownLoc();
  DenseMap<Value, Rounded> rounded;                  // by the bytes, of sums of integers
  llvm::DenseSet<Value> wholeProducts;               // whole numbers in f32
  DenseMap<Value, std::pair<double, double>> bounds; // of whole numbers that were clamped
};

} // namespace

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

static std::optional<Spread> matchSpread(Value value) {
  if (std::optional<double> splat = getSplat(value))
    return Spread{{*splat}, -1};
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  DenseElementsAttr elements = broadcast ? getConstant(broadcast.getX()) : DenseElementsAttr();
  if (!elements || !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  Spread spread;
  for (auto [dim, axis] : llvm::zip(getDims(broadcast.getX()), broadcast.getAxes()))
    if (!dim.isConstant(1)) {
      if (spread.axis >= 0 || dim != getDims(value)[axis])
        return std::nullopt;
      spread.axis = axis;
    }
  for (const APFloat &element : elements.getValues<APFloat>())
    spread.values.push_back(element.convertToDouble());
  return spread;
}

/// Place by place; nothing if they lie along different axes.
static std::optional<Spread> combine(const Spread &x, const Spread &y,
                                     llvm::function_ref<double(double, double)> function) {
  if (x.axis >= 0 && y.axis >= 0 && (x.axis != y.axis || x.values.size() != y.values.size()))
    return std::nullopt;
  Spread result{{}, std::max(x.axis, y.axis)};
  for (size_t i = 0; i < std::max(x.values.size(), y.values.size()); ++i)
    result.values.push_back(function(x.values[x.axis < 0 ? 0 : i], y.values[y.axis < 0 ? 0 : i]));
  return result;
}

static std::optional<Spread> multiply(const Spread &x, const Spread &y) { return combine(x, y, std::multiplies<>()); }

/// Whether f32 holds all values, and sums of 32-bit integers times them.
static bool isModerate(const Spread &spread) {
  return llvm::all_of(spread.values, [](double x) { return x == 0 || (std::abs(x) > 1e-30 && std::abs(x) < 1e25); });
}

static bool isAll(const Spread &spread, double number) {
  return llvm::all_of(spread.values, [&](double x) { return float(x) == float(number); });
}

/// Whether the value is bytes less a zero point, perhaps times a scale: whoever reads it may compute it.
static bool isDequantized(Value value) {
  if (auto product = value.getDefiningOp<MulOp>(); product && matchSpread(product.getB()))
    value = product.getA();
  return matchBytes(value).has_value();
}

/// Whether all numbers of a constant in f32 are whole and of 9 bits.
static bool isWholeConstant(DenseElementsAttr elements) {
  return elements && elements.getElementType().isF32() &&
         llvm::all_of(elements.getValues<float>(), [](float x) { return x == std::round(x) && std::abs(x) <= 255; });
}

/// Whether the value is bytes less a zero point, perhaps looked up in a table.
static bool isWhole(Value value) {
  if (auto lookup = value.getDefiningOp<GatherOp>())
    return isWholeConstant(getConstant(lookup.getX()));
  std::optional<Bytes> bytes = matchBytes(value);
  return bytes && std::abs(bytes->zero) <= 255;
}

/// Whether a product in f32 sums whole numbers, as NarrowProducts writes depthwise convolutions, and so few that all
/// are exact.
static bool isWholeProduct(Value value) {
  constexpr double most = 255, exactInFloat = 1 << 24;
  auto convolution = value.getDefiningOp<ConvolutionOp>();
  DenseElementsAttr weights = convolution ? getConstant(convolution.getW()) : DenseElementsAttr();
  if (!isWholeConstant(weights) || weights.getNumElements() == 0 || convolution.getTransposed() ||
      !isWhole(convolution.getX()))
    return false;
  double terms = double(weights.getNumElements()) / double(weights.getType().getDimSize(0));
  return terms * most * most < exactInFloat;
}

/// Adds scale * value to the sum; false if it does not become one. What others read too is a term as a whole.
bool ScaleJoiner::expand(Value value, const Spread &scale, Sum &sum, bool isFirst) {
  auto addConstant = [&](const Spread &spread) {
    std::optional<Spread> part = multiply(spread, scale);
    part = part ? combine(sum.constant, *part, std::plus<>()) : part;
    if (part)
      sum.constant = *part;
    return part.has_value();
  };
  if (std::optional<Spread> spread = matchSpread(value))
    return addConstant(*spread);
  if (std::optional<Bytes> bytes = matchBytes(value)) {
    Value term = asRounded(*bytes);
    if (!term) {
      OpBuilder::InsertionGuard guard(b);
      term = ConvertOp::create(b, loc, value.getType(), bytes->q);
      if (!addConstant({{-bytes->zero}, -1}))
        return false;
    }
    sum.terms.push_back({term, scale});
    return sum.terms.size() <= mostTerms;
  }
  auto convert = value.getDefiningOp<ConvertOp>();
  if ((convert && isInteger(convert.getX(), 32)) || wholeProducts.contains(value)) {
    sum.terms.push_back({value, scale});
    return sum.terms.size() <= mostTerms && (isFirst || hasUses(value, 1));
  }
  Operation *op = value.getDefiningOp();
  if (!op || (!isFirst && !hasUses(value, 1) && !isDequantized(value)))
    return false;
  if (isa<AddOp>(op))
    return expand(op->getOperand(0), scale, sum) && expand(op->getOperand(1), scale, sum);
  if (isa<SubOp>(op)) {
    std::optional<Spread> opposite = multiply(scale, {{-1}, -1});
    return expand(op->getOperand(0), scale, sum) && expand(op->getOperand(1), *opposite, sum);
  }
  std::optional<Spread> factor = isa<MulOp>(op) ? matchSpread(op->getOperand(1)) : std::nullopt;
  factor = factor ? multiply(*factor, scale) : factor;
  return factor && isModerate(*factor) && expand(op->getOperand(0), *factor, sum);
}

/// What was rounded to bytes that nothing else reads, inside of their range; null if it is not known.
Value ScaleJoiner::asRounded(const Bytes &bytes) {
  auto [before, zero] = rounded.lookup(bytes.q);
  if (!before || zero != bytes.zero || !hasUses(bytes.q, 1))
    return {};
  double least = (getElementType(bytes.q).isUnsignedInteger() ? 0 : -128) - bytes.zero, most = least + 255;
  if (auto known = bounds.find(before); known != bounds.end() && known->second == std::pair(least, most))
    return before;
  Value low = constant({{least}, -1}, before), high = constant({{most}, -1}, before);
  Value clamped = SelectOp::create(b, loc, LtOp::create(b, loc, low, before), before, low);
  clamped = SelectOp::create(b, loc, LtOp::create(b, loc, clamped, high), clamped, high);
  bounds[clamped] = {least, most};
  return clamped;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

Value ScaleJoiner::constant(const Spread &spread, Value like) {
  SmallVector<int64_t, 1> shape, axes;
  if (spread.axis >= 0) {
    shape.push_back(int64_t(spread.values.size()));
    axes.push_back(spread.axis);
  }
  SmallVector<float> values;
  for (double value : spread.values)
    values.push_back(float(value));
  auto type = RankedTensorType::get(shape, b.getF32Type());
  Value small = ConstantOp::create(b, loc, type, DenseElementsAttr::get(type, ArrayRef<float>(values)));
  return BroadcastOp::create(b, loc, like.getType(), small, axes);
}

Value ScaleJoiner::emit(const Sum &sum, Value like) {
  Value result;
  for (const auto &[term, factor] : sum.terms) {
    Value part = isAll(factor, 1) ? term : MulOp::create(b, loc, term, constant(factor, like)).getResult();
    if (!result && !isAll(sum.constant, 0))
      part = AddOp::create(b, loc, part, constant(sum.constant, like));
    result = result ? AddOp::create(b, loc, part, result).getResult() : part;
  }
  return result;
}

/// Whether each window holds an element: what is the largest of none is infinite.
static bool areInside(WindowReduceOp op) {
  SmallVector<Expr> in = getDims(op.getX()), out = getDims(op.getResult()), low = getExprs(op.getLow());
  for (size_t i = 0; i < low.size(); ++i) {
    std::optional<int64_t> extent = in[i + 2].asConstant(), results = out[i + 2].asConstant(),
                           before = low[i].asConstant();
    if (!extent || !results || !before || *before > (op.getWindow()[i] - 1) * op.getDilations()[i] ||
        (*results - 1) * op.getStrides()[i] - *before >= *extent)
      return false;
  }
  return true;
}

void ScaleJoiner::poolBytes(WindowReduceOp op) {
  auto product = op.getX().getDefiningOp<MulOp>();
  std::optional<Bytes> bytes = product ? matchBytes(product.getA()) : std::nullopt;
  std::optional<double> scale = bytes ? getSplat(product.getB()) : std::nullopt;
  bool hasGaps = llvm::any_of(op.getDilations(), [](int64_t dilation) { return dilation != 1; });
  if (op.getKind() != ReduceKind::Max || hasGaps || !scale || !(*scale > 0) || !areInside(op))
    return;
  b.setInsertionPoint(op);
  loc = op.getLoc();
  Value like = op.getResult();
  Type type = getTensorType(getDims(like), getElementType(bytes->q));
  Value pooled = WindowReduceOp::create(b, loc, type, bytes->q, op.getKind(), op.getWindow(), op.getStrides(),
                                        op.getDilations(), op.getLow());
  // The same operations in the same order: a zero point in integers.
  auto integers = RankedTensorType::get({}, IntegerType::get(b.getContext(), 32, IntegerType::Signed));
  Type wide = getTensorType(getDims(like), integers.getElementType());
  Value zero =
      ConstantOp::create(b, loc, integers, DenseElementsAttr::get(integers, APInt(32, int64_t(bytes->zero), true)));
  zero = BroadcastOp::create(b, loc, wide, zero, ArrayRef<int64_t>());
  Value centered = SubOp::create(b, loc, ConvertOp::create(b, loc, wide, pooled), zero);
  Value real = ConvertOp::create(b, loc, like.getType(), centered);
  like.replaceAllUsesWith(MulOp::create(b, loc, real, constant({{*scale}, -1}, like)));
}

/// Whole numbers in f32 need not become integers on the way to a scale.
void ScaleJoiner::keepWhole(ConvertOp op) {
  auto integers = op.getX().getDefiningOp<ConvertOp>();
  if (!integers || !getElementType(op.getY()).isF32() || !isInteger(op.getX(), 32) || !isWholeProduct(integers.getX()))
    return;
  wholeProducts.insert(integers.getX());
  op.getY().replaceAllUsesWith(integers.getX());
  op.erase();
  if (integers->use_empty())
    integers.erase();
}

void ScaleJoiner::join(ConvertOp op) {
  std::optional<Quantization> found = matchQuantization(op);
  Operation *quotient = found ? found->round.getX().getDefiningOp() : nullptr;
  if (!quotient || !isa<DivOp, MulOp>(quotient))
    return;
  std::optional<double> scale = getSplat(quotient->getOperand(1));
  if (!scale || !isModerate({{*scale}, -1}) || *scale <= 0)
    return;
  b.setInsertionPoint(found->round);
  loc = found->round.getLoc();
  Value value = quotient->getOperand(0);
  auto relu = hasUses(value, 1) ? value.getDefiningOp<ReluOp>() : ReluOp();
  Sum sum;
  Spread factor{{isa<DivOp>(quotient) ? 1 / *scale : *scale}, -1};
  bool isSum = expand(relu ? relu.getX() : value, factor, sum, /*isFirst=*/true);
  if (!isSum || sum.terms.empty() || !isModerate(sum.constant))
    return;
  bool isUnsigned = getElementType(op.getY()).isUnsignedInteger();
  auto whole = sum.terms.front().first.getDefiningOp<ConvertOp>();
  if (sum.terms.size() == 1 && !relu && whole && whole.getX().getType() == op.getY().getType() &&
      isAll(sum.terms.front().second, 1) && isAll(sum.constant, -found->zero))
    return op.getY().replaceAllUsesWith(whole.getX());
  Value joined = emit(sum, value);
  if (relu && !(isUnsigned && found->zero == 0 && found->isAlone))
    joined = ReluOp::create(b, loc, joined);
  found->round->setOperand(0, joined);
  bool isWhole = bounds.contains(joined); // rounded already
  rounded[op.getY()] = {isWhole ? joined : found->round.getResult(), found->zero};
}

/// Whether all that becomes of the value are bytes, by pointwise operations on it and constants alone.
static bool endsInBytes(Value value) {
  SetVector<Operation *> reached;
  auto add = [&](Value next) { reached.insert(next.user_begin(), next.user_end()); };
  add(value);
  for (unsigned at = 0; at < reached.size(); ++at) {
    Operation *op = reached[at];
    if (!isa<PointwiseOpInterface>(op) || reached.size() > mostPointwise)
      return false;
    if (!isInteger(op->getResult(0), 8))
      add(op->getResult(0));
  }
  return !reached.empty() && llvm::all_of(reached, [&](Operation *op) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return operand == value || reached.contains(operand.getDefiningOp()) || getSplat(operand) || matchSpread(operand);
    });
  });
}

/// Bytes that are taken apart for an activation alone stay real numbers.
void ScaleJoiner::keepReal(ConvertOp op) {
  Value value = op.getY();
  std::optional<Bytes> bytes = matchBytes(value);
  if (!bytes || !rounded.contains(bytes->q) || !endsInBytes(value))
    return;
  b.setInsertionPoint(op);
  loc = op.getLoc();
  if (Value real = asRounded(*bytes)) // + 0: integers have one zero
    value.replaceAllUsesWith(AddOp::create(b, loc, real, constant({{0}, -1}, real)));
}

namespace {
struct JoinScales : ptc::impl::JoinScalesBase<JoinScales> {
  void runOnOperation() override { ScaleJoiner(getOperation()).run(); }
};
} // namespace
