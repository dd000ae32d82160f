//===- NarrowProducts.cpp - products of quantised tensors on 8-bit integers ===//
//
// A quantised tensor is scale * (q - zero), q of 8 bits. Models spell the product of two of them out, in 32-bit
// integers (MatMulInteger, QLinearConv, ...) or in floats (between DequantizeLinear and QuantizeLinear). With a
// constant b, scales and zero points leave the sum over k:
//
//   sum sa (a - za) * sb (b - zb)  =  sa sb (sum a b  -  za sum b  -  zb sum a  +  K za zb)
//
// The sum of b is a constant, and sum a b is of 8-bit integers alone: an exact product in 32 bits, of which a processor
// does four times as many a cycle as of floats. What such instructions want is an unsigned a and a signed b: the other
// kinds become these by flipping the top bit, which moves their zero point by 128. A padded convolution pads a with
// its zero point.
//
// That needs a constant b of the rank of a matrix or of a convolution's weights, a multiple of four innermost terms (a
// fourth channel of zeros makes that of an image's three), one zero point for all of a, and a known one where a
// convolution pads with it. A product of integers whose b is computed, too, is of bytes if it has rows enough to pay
// for a copy of b and for the sums over k, each in a pass of its own, and the target packs its words (`packsComputed`);
// both zero points are then one number. Elsewhere an integer product whose sums stay below 2^24 is computed in f32,
// exactly: floats have fused multiply-adds, 32-bit integers slow ones. So are depthwise convolutions of floats, whose
// windows are too short for more than one vector: what they read are bytes, and scales come behind their sums. Other
// integer products, and those of floats, stay as they are: transposed convolutions, floats whose sums might wrap.
//
// A weight whose columns are summed, or whose values were looked at, has become part of the program:
// prim.folded_weights tells so, and it cannot be replaced at run time. Without a weight source (weights that come at
// run time) nothing is summed.
//
//===----------------------------------------------------------------------===//
#include "ir/eval/ReferenceEval.h"
#include "ir/prim/Elements.h"
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"

namespace ptc {
#define GEN_PASS_DEF_NARROWPRODUCTS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {

/// Terms that an instruction adds up at once.
constexpr int64_t groupSize = 4;
/// Of a product whose b is copied and summed for it alone.
constexpr int64_t fewestRows = 16;
/// Of a sum that must not wrap: terms are at most 255 * 255 once zero points are subtracted.
constexpr int64_t mostTerms = std::numeric_limits<int32_t>::max() / (255 * 255);
/// Integers up to here are exact in f32.
constexpr int64_t exactInFloat = int64_t(1) << 24;

/// A number, or one for each place along an axis.
struct Parameter {
  Value value; // rank 0 or 1; null: neutral
  int64_t axis = -1;
  bool isScalar() const { return !value || axis < 0; }
};

/// scale * (q - zero)
struct Quantized {
  Value q;
  Parameter zero, scale; // si32, f32
};

struct NarrowProduct {
  NarrowProduct(Operation *op, eval::WeightSource &weights)
      : op(op), b(op), loc(op->getLoc()), weights(weights), convolution(dyn_cast<ConvolutionOp>(op)) {}

  bool rewrite(bool packsComputed);

  SmallVector<StringAttr> folded; // names of the weights that constants may have been computed from

private:
  void noteWeights(Value value);
  bool isNarrow(const Quantized &lhs, const Quantized &rhs);
  bool rewriteNarrow(Quantized lhs, Quantized rhs);
  bool isNarrowOfComputed(const Quantized &lhs, const Quantized &rhs);
  void rewriteComputed(Quantized lhs, Quantized rhs);
  Value termsSummed(Value q, int64_t axis, Value like);
  bool rewriteInFloats(const Quantized &lhs, const Quantized &rhs);
  bool rewriteGroups(const Quantized &lhs, const Quantized &rhs);
  Value centered(const Quantized &x, int64_t axis);
  void flipTo(Type kind, Quantized &x);
  bool makeSigned(Quantized &x);
  bool padsChannels();
  Value padded(const Quantized &x);
  Value paddedChannels(Value q);
  Value multiply(Value lhs, Value rhs, bool isPadded);
  Value windowSums(Value q, Value like);
  Value corrected(Value sum, Value q, const Quantized &lhs, const Quantized &rhs);
  std::optional<SmallVector<int64_t>> columnSums(Value q);
  Value scaled(Value sum, const Quantized &lhs, const Quantized &rhs);
  bool isByte(const Quantized &x);

  int64_t resultAxis() const { return convolution ? 1 : getRank(op->getResult(0)) - 1; }
  int64_t rhsAxis() const { return convolution ? 0 : getRank(op->getOperand(1)) - 1; }
  Value shaped(Value like, Type elementType, Value parameter, int64_t axis) {
    SmallVector<int64_t> axes;
    if (axis >= 0)
      axes.push_back(axis);
    return BroadcastOp::create(b, loc, getTensorType(getDims(like), elementType), parameter, axes);
  }
  Value converted(Value x, Type elementType) {
    if (getElementType(x) == elementType)
      return x;
    return ConvertOp::create(b, loc, getTensorType(getDims(x), elementType), x);
  }
  Value integers(ArrayRef<int64_t> values, bool isScalar) {
    SmallVector<int64_t, 1> shape;
    if (!isScalar)
      shape.push_back(int64_t(values.size()));
    SmallVector<APInt> all;
    for (int64_t value : values)
      all.push_back(APInt(32, uint64_t(value), /*isSigned=*/true, /*implicitTrunc=*/true));
    auto type = RankedTensorType::get(shape, si32());
    return ConstantOp::create(b, loc, type, DenseElementsAttr::get(type, all));
  }
  /// The known integers of a parameter, one for each of `count` places; nothing if they are not constant.
  std::optional<SmallVector<int64_t>> knownIntegers(const Parameter &parameter, int64_t count);

  Type si32() { return IntegerType::get(b.getContext(), 32, IntegerType::Signed); }
  Type ui8() { return IntegerType::get(b.getContext(), 8, IntegerType::Unsigned); }
  Type si8() { return IntegerType::get(b.getContext(), 8, IntegerType::Signed); }

  Operation *op;
  OpBuilder b;
  Location loc;
  eval::WeightSource &weights;
  ConvolutionOp convolution;
};

} // namespace

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

static bool isEightBits(Value x) {
  auto type = dyn_cast<IntegerType>(getElementType(x));
  return type && type.getWidth() == 8 && !type.isSignless();
}

static bool isInt32(Value x) {
  auto type = dyn_cast<IntegerType>(getElementType(x));
  return type && type.getWidth() == 32 && type.isSigned();
}

/// Whether the value depends on constants and weights alone.
static bool isConstant(Value value, unsigned depth = 8) {
  Operation *op = value.getDefiningOp();
  if (!op || !depth || !cast<RankedTensorType>(value.getType()).hasStaticShape())
    return false;
  if (isa<ConstantOp, WeightOp>(op))
    return true;
  bool isSimple = isa<BroadcastOp, ReshapeOp, TransposeOp, SliceOp, ConvertOp, BitcastOp, XorOp, AddOp>(op);
  return isSimple && llvm::all_of(op->getOperands(), [&](Value x) { return isConstant(x, depth - 1); });
}

/// What a broadcast spreads: a scalar, or a vector along one axis. A small one has been folded.
static std::optional<Parameter> matchParameter(Value value) {
  if (auto constant = value.getDefiningOp<ConstantOp>()) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements || !elements.isSplat())
      return std::nullopt;
    OpBuilder b(constant);
    DenseElementsAttr scalar = elements.resizeSplat(RankedTensorType::get({}, elements.getElementType()));
    return Parameter{ConstantOp::create(b, constant.getLoc(), scalar.getType(), scalar).getResult(), -1};
  }
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return std::nullopt;
  Value x = broadcast.getX();
  Parameter parameter;
  unsigned wide = 0;
  bool isWhole = true;
  for (auto [dim, axis] : llvm::zip(getDims(x), broadcast.getAxes()))
    if (!dim.isConstant(1)) {
      parameter.axis = axis;
      isWhole &= dim == getDims(value)[axis];
      ++wide;
    }
  if (wide > 1 || !isWhole)
    return std::nullopt;
  SmallVector<Expr> dims;
  if (wide)
    dims.push_back(getDims(value)[parameter.axis]);
  OpBuilder b(broadcast);
  Type type = getTensorType(dims, getElementType(x));
  parameter.value = type == x.getType() ? x : ReshapeOp::create(b, broadcast.getLoc(), type, x).getResult();
  return parameter;
}

/// q - zero in 32-bit integers, or q alone.
static std::optional<Quantized> matchCentered(Value value) {
  Quantized x;
  if (auto difference = value.getDefiningOp<SubOp>(); difference && isInt32(value)) {
    std::optional<Parameter> zero = matchParameter(difference.getB());
    if (!zero)
      return std::nullopt;
    x.zero = *zero;
    value = difference.getA();
  }
  auto convert = value.getDefiningOp<ConvertOp>();
  if (!convert || !isEightBits(convert.getX()))
    return std::nullopt;
  x.q = convert.getX();
  return x;
}

static int64_t movedAxis(ArrayRef<int64_t> permutation, int64_t axis) {
  return axis < 0 ? axis : llvm::find(permutation, axis) - permutation.begin();
}

static std::optional<Quantized> matchQuantized(Value value) {
  if (auto transpose = value.getDefiningOp<TransposeOp>()) {
    std::optional<Quantized> x = matchQuantized(transpose.getX());
    if (!x)
      return std::nullopt;
    OpBuilder b(transpose);
    x->q = TransposeOp::create(b, transpose.getLoc(), x->q, transpose.getPermutation());
    x->zero.axis = movedAxis(transpose.getPermutation(), x->zero.axis);
    x->scale.axis = movedAxis(transpose.getPermutation(), x->scale.axis);
    return x;
  }
  if (isInt32(value))
    return matchCentered(value);
  auto scaled = value.getDefiningOp<MulOp>();
  if (!scaled || !getElementType(value).isF32())
    return std::nullopt;
  for (auto [number, factor] : {std::pair(scaled.getA(), scaled.getB()), std::pair(scaled.getB(), scaled.getA())}) {
    auto convert = number.getDefiningOp<ConvertOp>();
    std::optional<Parameter> scale = convert ? matchParameter(factor) : std::nullopt;
    if (!scale)
      continue;
    Value integers = convert.getX();
    std::optional<Quantized> x;
    if (isEightBits(integers))
      x = Quantized{integers, {}, {}};
    else if (isInt32(integers))
      x = matchCentered(integers);
    if (x) {
      x->scale = *scale;
      return x;
    }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Products of 8-bit integers
//===----------------------------------------------------------------------===//

std::optional<SmallVector<int64_t>> NarrowProduct::knownIntegers(const Parameter &parameter, int64_t count) {
  if (!parameter.value)
    return SmallVector<int64_t>(count, 0);
  if (!isConstant(parameter.value))
    return std::nullopt;
  auto tensor = eval::evaluateValue(parameter.value, {}, [](Value) { return nullptr; }, {}, weights);
  if (!tensor) {
    llvm::consumeError(tensor.takeError());
    return std::nullopt;
  }
  noteWeights(parameter.value);
  SmallVector<int64_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(tensor->getInt(parameter.isScalar() ? 0 : i));
  return values;
}

/// The terms of a sum, if they are known.
static std::optional<int64_t> countTerms(Operation *op) {
  SmallVector<Expr> dims = getDims(op->getOperand(1));
  if (!isa<ConvolutionOp>(op))
    return dims[dims.size() - 2].asConstant();
  return product(op->getContext(), ArrayRef(dims).drop_front()).asConstant();
}

bool NarrowProduct::isNarrow(const Quantized &lhs, const Quantized &rhs) {
  std::optional<int64_t> terms = countTerms(op);
  if (!terms || !isConstant(rhs.q) || !lhs.zero.isScalar() || !lhs.scale.isScalar())
    return false;
  if (lhs.scale.value && (*terms > mostTerms || !isByte(lhs) || !isByte(rhs)))
    return false;
  for (const Parameter &parameter : {rhs.zero, rhs.scale})
    if (!parameter.isScalar() && parameter.axis != rhsAxis())
      return false;
  if (!convolution)
    return *terms % groupSize == 0 && getRank(rhs.q) == 2;
  std::optional<int64_t> channels = getDims(rhs.q)[1].asConstant();
  return !convolution.getTransposed() && channels && (*channels % groupSize == 0 || padsChannels());
}

/// Whether channels of zeros make the innermost terms a multiple: a third more work for the three of an image, at four
/// times the speed.
bool NarrowProduct::padsChannels() {
  if (!convolution || convolution.getGroups() != 1)
    return false;
  std::optional<int64_t> channels = getDims(op->getOperand(1))[1].asConstant();
  return channels && *channels % groupSize == groupSize - 1;
}

/// x with its top bit flipped, as the other kind of 8-bit integer; the zero point moves along.
static Value flipped(OpBuilder &b, Location loc, Value q, Type to) {
  Type type = getTensorType(getDims(q), to);
  Value bits = BitcastOp::create(b, loc, type, q);
  auto scalar = RankedTensorType::get({}, to);
  Value top = ConstantOp::create(b, loc, scalar, DenseElementsAttr::get(scalar, APInt(8, 128)));
  return XorOp::create(b, loc, bits, BroadcastOp::create(b, loc, type, top, ArrayRef<int64_t>()));
}

/// x as the kind of 8-bit integers, with its zero point, one number, moved along.
void NarrowProduct::flipTo(Type kind, Quantized &x) {
  if (getElementType(x.q) == kind)
    return;
  x.q = flipped(b, loc, x.q, kind);
  Value offset = integers({kind == ui8() ? 128 : -128}, /*isScalar=*/true);
  x.zero.value = x.zero.value ? AddOp::create(b, loc, x.zero.value, offset).getResult() : offset;
}

bool NarrowProduct::makeSigned(Quantized &x) {
  int64_t columns = getDims(x.q)[rhsAxis()].getValue();
  bool isFlipped = getElementType(x.q) == ui8();
  std::optional<SmallVector<int64_t>> zeros = knownIntegers(x.zero, columns);
  if (!zeros)
    return false;
  if (isFlipped)
    x.q = flipped(b, loc, x.q, si8());
  for (int64_t &zero : *zeros)
    zero -= isFlipped ? 128 : 0;
  x.zero = {};
  if (!llvm::all_equal(*zeros))
    x.zero = {integers(*zeros, /*isScalar=*/false), rhsAxis()};
  else if (!zeros->empty() && zeros->front() != 0)
    x.zero = {integers({zeros->front()}, /*isScalar=*/true), -1};
  return true;
}

/// The lhs of a convolution with a border of zero points; null if these are not known.
Value NarrowProduct::padded(const Quantized &x) {
  SmallVector<Expr> dims = getDims(x.q), low = getExprs(convolution.getLow()), window = getDims(op->getOperand(1)),
                    result = getDims(op->getResult(0));
  bool isInside = !padsChannels();
  SmallVector<Expr> before(2, Expr::constant(b.getContext(), 0)), extents(dims.begin(), dims.begin() + 2);
  for (size_t i = 0; i < low.size(); ++i) {
    Expr extent =
        (result[i + 2] - 1) * convolution.getStrides()[i] + (window[i + 2] - 1) * convolution.getDilations()[i] + 1;
    auto known = extent.asConstant(), whole = dims[i + 2].asConstant();
    isInside &= low[i].isConstant(0) && known && whole && *known <= *whole;
    before.push_back(low[i]);
    extents.push_back(extent);
  }
  if (isInside)
    return x.q;
  if (padsChannels())
    extents[1] = extents[1].ceilDiv(groupSize) * groupSize;
  std::optional<SmallVector<int64_t>> zero = knownIntegers(x.zero, 1);
  if (!zero || zero->front() < 0 || zero->front() > 255)
    return {};
  auto scalar = RankedTensorType::get({}, ui8());
  Value fill = ConstantOp::create(b, loc, scalar, DenseElementsAttr::get(scalar, APInt(8, uint64_t(zero->front()))));
  return PadOp::create(b, loc, getTensorType(extents, ui8()), x.q, fill, getExprArray(b.getContext(), before),
                       PadKind::Constant);
}

/// The weights of a convolution with channels of zeros; null if they are not known.
Value NarrowProduct::paddedChannels(Value q) {
  SmallVector<Expr> dims = getDims(q);
  dims[1] = dims[1].ceilDiv(groupSize) * groupSize;
  auto scalar = RankedTensorType::get({}, si8());
  Value fill = ConstantOp::create(b, loc, scalar, DenseElementsAttr::get(scalar, APInt(8, 0)));
  SmallVector<Expr> before(dims.size(), Expr::constant(b.getContext(), 0));
  Value wide = PadOp::create(b, loc, getTensorType(dims, si8()), q, fill, getExprArray(b.getContext(), before),
                             PadKind::Constant);
  auto tensor = eval::evaluateValue(wide, {}, [](Value) { return nullptr; }, {}, weights);
  if (!tensor) {
    llvm::consumeError(tensor.takeError());
    return {};
  }
  noteWeights(q);
  return ConstantOp::create(b, loc, wide.getType(), tensor->toAttribute());
}

/// The op with other operands.
Value NarrowProduct::multiply(Value lhs, Value rhs, bool isPadded) {
  if (!convolution)
    return MatmulOp::create(b, loc, lhs, rhs);
  SmallVector<Expr> low = getExprs(convolution.getLow());
  if (isPadded)
    low.assign(low.size(), Expr::constant(b.getContext(), 0));
  Type type = getTensorType(getDims(op->getResult(0)), getElementType(lhs));
  return ConvolutionOp::create(b, loc, type, lhs, rhs, convolution.getStrides(), convolution.getDilations(),
                               getExprArray(b.getContext(), low), convolution.getGroups(), convolution.getTransposed());
}

/// The weights that a constant value was computed from.
void NarrowProduct::noteWeights(Value value) {
  if (auto weight = value.getDefiningOp<WeightOp>())
    folded.push_back(b.getStringAttr(weight.getRef().getName()));
  for (Value operand : value.getDefiningOp()->getOperands())
    noteWeights(operand);
}

/// For each column of the rhs, the sum over k.
std::optional<SmallVector<int64_t>> NarrowProduct::columnSums(Value q) {
  auto tensor = eval::evaluateValue(q, {}, [](Value) { return nullptr; }, {}, weights);
  if (!tensor) {
    llvm::consumeError(tensor.takeError());
    return std::nullopt;
  }
  int64_t columns = tensor->getDim(rhsAxis()), terms = *countTerms(op);
  SmallVector<int64_t> sums(columns, 0);
  for (int64_t at = 0, count = tensor->getNumElements(); at < count; ++at)
    sums[convolution ? at / terms : at % columns] += tensor->getInt(at);
  noteWeights(q);
  return sums;
}

/// What a convolution's windows of q, which has its borders, hold in all, for each element of a product: channels are
/// summed before windows, whose sums are of a plane a group then.
Value NarrowProduct::windowSums(Value q, Value like) {
  SmallVector<Expr> dims = getDims(q), out = getDims(like), window = getDims(op->getOperand(1));
  Expr groups = Expr::constant(b.getContext(), convolution.getGroups()), channels = window[1];
  if (dims[1] != groups * channels) { // channels of zeros in the weights
    dims[1] = groups * channels;
    SmallVector<Expr> starts(dims.size(), Expr::constant(b.getContext(), 0));
    q = SliceOp::create(b, loc, getTensorType(dims, ui8()), q, getExprArray(b.getContext(), starts),
                        SmallVector<int64_t>(dims.size(), 1));
  }
  dims[1] = groups;
  dims.insert(dims.begin() + 2, channels);
  Value parted = ReshapeOp::create(b, loc, getTensorType(dims, si32()), converted(q, si32()));
  Value sums = ReduceOp::create(b, loc, parted, ReduceKind::Sum, ArrayRef<int64_t>(2));
  SmallVector<int64_t> sizes;
  for (Expr size : ArrayRef(window).drop_front(2))
    sizes.push_back(*size.asConstant());
  SmallVector<Expr> inside(sizes.size(), Expr::constant(b.getContext(), 0)), each = out;
  each[1] = groups;
  sums = WindowReduceOp::create(b, loc, getTensorType(each, si32()), sums, ReduceKind::Sum, sizes,
                                convolution.getStrides(), convolution.getDilations(),
                                getExprArray(b.getContext(), inside));
  each.insert(each.begin() + 2, out[1].floorDiv(convolution.getGroups()));
  SmallVector<int64_t> axes{0, 1};
  llvm::append_range(axes, llvm::seq<int64_t>(3, int64_t(each.size())));
  Value spread = BroadcastOp::create(b, loc, getTensorType(each, si32()), sums, axes);
  return ReshapeOp::create(b, loc, like.getType(), spread);
}

/// sum - za (sum b - K zb) - zb sum a; null if the sums are not known. q is the lhs with its borders.
Value NarrowProduct::corrected(Value sum, Value q, const Quantized &lhs, const Quantized &rhs) {
  int64_t columns = getDims(rhs.q)[rhsAxis()].getValue(), terms = *countTerms(op);
  std::optional<SmallVector<int64_t>> zeros = knownIntegers(rhs.zero, columns), left = knownIntegers(lhs.zero, 1);
  bool isLeftZero = left && left->front() == 0;
  if (!isLeftZero) {
    std::optional<SmallVector<int64_t>> sums = columnSums(rhs.q);
    if (!sums)
      return {};
    for (auto [total, zero] : llvm::zip(*sums, *zeros))
      total = (total - terms * zero) * (left ? left->front() : 1);
    Value moved = shaped(sum, si32(), integers(*sums, /*isScalar=*/false), resultAxis());
    if (!left)
      moved = MulOp::create(b, loc, moved, shaped(sum, si32(), lhs.zero.value, -1));
    sum = SubOp::create(b, loc, sum, moved);
  }
  if (!rhs.zero.value)
    return sum;
  Value rows = convolution ? windowSums(q, sum) : termsSummed(lhs.q, getRank(lhs.q) - 1, sum);
  Value zero = shaped(sum, si32(), rhs.zero.value, rhs.zero.isScalar() ? -1 : resultAxis());
  return SubOp::create(b, loc, sum, MulOp::create(b, loc, rows, zero));
}

Value NarrowProduct::scaled(Value sum, const Quantized &lhs, const Quantized &rhs) {
  Value factor = rhs.scale.value;
  Value left = BroadcastOp::create(b, loc, factor.getType(), lhs.scale.value, ArrayRef<int64_t>());
  factor = MulOp::create(b, loc, left, factor);
  Value y = converted(sum, b.getF32Type());
  return MulOp::create(b, loc, y, shaped(y, b.getF32Type(), factor, rhs.scale.isScalar() ? -1 : resultAxis()));
}

bool NarrowProduct::rewriteNarrow(Quantized lhs, Quantized rhs) {
  flipTo(ui8(), lhs);
  if (!makeSigned(rhs))
    return false;
  Value q = convolution ? padded(lhs) : lhs.q;
  Value w = padsChannels() ? paddedChannels(rhs.q) : rhs.q;
  if (!q || !w)
    return false;
  Value sum = multiply(converted(q, si32()), converted(w, si32()), q != lhs.q);
  sum = corrected(sum, q, lhs, rhs);
  if (!sum)
    return false;
  op->getResult(0).replaceAllUsesWith(isInt32(op->getResult(0)) ? sum : scaled(sum, lhs, rhs));
  return true;
}

//===----------------------------------------------------------------------===//
// Of two computed operands
//===----------------------------------------------------------------------===//

bool NarrowProduct::isNarrowOfComputed(const Quantized &lhs, const Quantized &rhs) {
  std::optional<int64_t> terms = countTerms(op);
  if (convolution || isConstant(rhs.q) || !terms || *terms % groupSize || !lhs.zero.isScalar() || !rhs.zero.isScalar())
    return false;
  SmallVector<Expr> left = getDims(lhs.q), right = getDims(rhs.q);
  int64_t rows = left[left.size() - 2].asConstant().value_or(fewestRows);
  bool isSameBatch = llvm::equal(ArrayRef(left).drop_back(2), ArrayRef(right).drop_back(2));
  return rows >= fewestRows && isSameBatch;
}

/// The sums of q over an axis, one of its last two, for each element of a product.
Value NarrowProduct::termsSummed(Value q, int64_t axis, Value like) {
  Value sums = ReduceOp::create(b, loc, converted(q, si32()), ReduceKind::Sum, ArrayRef(axis));
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, getRank(like)));
  axes.erase(axes.begin() + axis);
  return BroadcastOp::create(b, loc, like.getType(), sums, axes);
}

/// sum - za sum b - zb sum a + K za zb
void NarrowProduct::rewriteComputed(Quantized lhs, Quantized rhs) {
  flipTo(ui8(), lhs);
  flipTo(si8(), rhs);
  Value sum = multiply(converted(lhs.q, si32()), converted(rhs.q, si32()), /*isPadded=*/false), result = sum;
  int64_t last = getRank(sum) - 1;
  auto subtract = [&](Value zero, Value sums) {
    result = SubOp::create(b, loc, result, MulOp::create(b, loc, shaped(sum, si32(), zero, -1), sums));
  };
  if (lhs.zero.value)
    subtract(lhs.zero.value, termsSummed(rhs.q, last - 1, sum));
  if (rhs.zero.value)
    subtract(rhs.zero.value, termsSummed(lhs.q, last, sum));
  if (lhs.zero.value && rhs.zero.value) {
    Value terms = integers({*countTerms(op)}, /*isScalar=*/true);
    Value zeros = MulOp::create(b, loc, MulOp::create(b, loc, lhs.zero.value, rhs.zero.value), terms);
    result = AddOp::create(b, loc, result, shaped(sum, si32(), zeros, -1));
  }
  op->getResult(0).replaceAllUsesWith(result);
}

//===----------------------------------------------------------------------===//
// In floats
//===----------------------------------------------------------------------===//

/// Whether the zero point is of the same 8-bit type as the numbers.
bool NarrowProduct::isByte(const Quantized &x) {
  const Parameter &parameter = x.zero;
  if (!parameter.value)
    return true;
  Value value = parameter.value;
  if (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  if (auto convert = value.getDefiningOp<ConvertOp>())
    return getElementType(convert.getX()) == getElementType(x.q);
  int64_t low = getElementType(x.q) == ui8() ? 0 : -128;
  int64_t count = parameter.isScalar() ? 1 : getDims(parameter.value)[0].asConstant().value_or(0);
  std::optional<SmallVector<int64_t>> known = knownIntegers(parameter, count);
  return known && llvm::all_of(*known, [&](int64_t zero) { return zero >= low && zero < low + 256; });
}

bool NarrowProduct::rewriteInFloats(const Quantized &lhs, const Quantized &rhs) {
  std::optional<int64_t> terms = countTerms(op);
  if (!terms || *terms * 255 * 255 >= exactInFloat || !isByte(lhs) || !isByte(rhs))
    return false;
  Type f32 = b.getF32Type();
  Value y = multiply(converted(op->getOperand(0), f32), converted(op->getOperand(1), f32), /*isPadded=*/false);
  y.getDefiningOp()->setAttr(keepsTypeAttr, b.getUnitAttr()); // exact as it is
  op->getResult(0).replaceAllUsesWith(converted(y, si32()));
  return true;
}

/// q - zero in f32.
Value NarrowProduct::centered(const Quantized &x, int64_t axis) {
  Value whole = x.q;
  if (x.zero.value && getSplat(x.zero.value) != 0) {
    whole = converted(whole, si32());
    whole = SubOp::create(b, loc, whole, shaped(whole, si32(), x.zero.value, x.zero.isScalar() ? -1 : axis));
  }
  return converted(whole, b.getF32Type());
}

/// A convolution of groups in floats that are whole numbers: windows are read as bytes, and scales come behind sums.
bool NarrowProduct::rewriteGroups(const Quantized &lhs, const Quantized &rhs) {
  std::optional<int64_t> terms = countTerms(op);
  if (!convolution || convolution.getTransposed() || convolution.getGroups() == 1 || !terms ||
      *terms * 255 * 255 >= exactInFloat || !isConstant(rhs.q) || !lhs.zero.isScalar() || !lhs.scale.isScalar() ||
      !isByte(lhs) || !isByte(rhs))
    return false;
  for (const Parameter &parameter : {rhs.zero, rhs.scale})
    if (!parameter.isScalar() && parameter.axis != rhsAxis())
      return false;
  Value y = multiply(centered(lhs, -1), centered(rhs, rhsAxis()), /*isPadded=*/false);
  y.getDefiningOp()->setAttr(keepsTypeAttr, b.getUnitAttr()); // exact as it is
  op->getResult(0).replaceAllUsesWith(scaled(converted(y, si32()), lhs, rhs));
  return true;
}

bool NarrowProduct::rewrite(bool packsComputed) {
  bool isReal = getElementType(op->getResult(0)).isF32();
  if (!isReal && !isInt32(op->getResult(0)))
    return false;
  std::optional<Quantized> lhs = matchQuantized(op->getOperand(0)), rhs = matchQuantized(op->getOperand(1));
  if (!lhs || !rhs || bool(lhs->scale.value) != isReal || bool(rhs->scale.value) != isReal)
    return false;
  if (isNarrow(*lhs, *rhs) && rewriteNarrow(*lhs, *rhs))
    return true;
  if (packsComputed && !isReal && isNarrowOfComputed(*lhs, *rhs)) {
    rewriteComputed(*lhs, *rhs);
    return true;
  }
  return isReal ? rewriteGroups(*lhs, *rhs) : rewriteInFloats(*lhs, *rhs);
}

namespace {
struct NarrowProducts : ptc::impl::NarrowProductsBase<NarrowProducts> {
  explicit NarrowProducts(eval::WeightSource *weights = nullptr, bool packsComputed = false)
      : weights(weights), packsComputed(packsComputed) {}

  void runOnOperation() override {
    eval::NoWeights none;
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (isa<MatmulOp, ConvolutionOp>(op))
        products.push_back(op);
    });
    for (Operation *op : products) {
      NarrowProduct product(op, weights ? *weights : none);
      if (product.rewrite(packsComputed))
        noteFoldedWeights(getOperation(), product.folded);
    }
    eraseDeadOps(getOperation());
  }

  eval::WeightSource *weights;
  bool packsComputed;
};
} // namespace

std::unique_ptr<Pass> ptc::createNarrowProducts(eval::WeightSource *weights, bool packsComputed) {
  return std::make_unique<NarrowProducts>(weights, packsComputed);
}
