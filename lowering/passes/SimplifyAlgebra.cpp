//===- SimplifyAlgebra.cpp - the same tensor with less work ---------------===//
//
// Rewrites to a fixed point. Every rule is exact for all inputs, NaN, infinities and the
// sign of zero included, but for pow, whose products round once more, and tanh, which rounds less often:
//
//   x * 1, x / 1, x - 0, x + -0 = x                (x + 0 is not: -0 + 0 = 0)
//   x / c = x * (1 / c)                            c a power of two
//   pow(x, 1), pow(x, 2), pow(x, 3) = x, x * x, x * x * x
//   x / pow(y, c) = x * pow(y, -c)                 0 < |c| <= 3/4, but 1/2: no positive y's power is 0 or infinite
//   tanh(log(1 + exp(x))) = n / (n + 2)            n = e (e + 2), e = exp(x), of mish
//   and(x, true), or(x, false), select(c, x, x) = x; not(not(x)) = x
//   reshape(reshape(x)), transpose(transpose(x)), broadcast(broadcast(x)) = one of them
//   transpose(x) = reshape(x)                      where only dims of 1 move
//   slice(x) = x                                   of everything
//   gather(x, [a, a + s, a + 2s, ...]) = slice(x)  constant indices
//   concat(slice(x, a to b), slice(x, b to c)) = slice(x, a to c)
//   concat(slice(x, a to end), slice(x, 0 to a)) = pad(x), wrapped: a roll
//   concat(slice(x, n to 2n), slice(x, 0 to n)) = slice(reshape(x, [2, n]), 1 to 0) as one dim
//   concat(-slice(x, n to 2n), slice(x, 0 to n)) = that times [-1, 1]
//   concat(x, y, z) = concat(concat(x, y), z)      where concat(x, y) is computed anyway
//   convolution(pad(x)) = convolution(x)           zeros around pixels, with a wider border; weights are finite
//   window(pad(x)) = window(x)                     likewise, of what a sum or an extremum does not depend on
//
// A value that was split and joined again is written in place where it is one slice. Where each layer reads all layers
// before it (dense blocks), each concat is a part of the next, so that all are parts of the last one's memory: of many
// concats one writes each value, in place, and none copies. A roll is an index into x; where
// few elements lie behind the axis, two copies cost less. Halves that change places need no modulo: with what rotary
// embeddings make of them they are one node.
//
//===----------------------------------------------------------------------===//
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ptc {
#define GEN_PASS_DEF_SIMPLIFYALGEBRA
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// The one value that all elements of a boolean have.
static std::optional<bool> getBoolSplat(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && isa<BroadcastOp, ReshapeOp, TransposeOp, SliceOp>(op))
    return getBoolSplat(op->getOperand(0));
  DenseElementsAttr elements = getConstant(value);
  if (!elements || !elements.isSplat() || !elements.getElementType().isInteger(1))
    return std::nullopt;
  return elements.getSplatValue<bool>();
}

static bool isSplat(Value value, double number) {
  std::optional<double> splat = getSplat(value);
  return splat && *splat == number && std::signbit(*splat) == std::signbit(number);
}

/// The operand of a binary op that is its result; null if neither is.
static Value getNeutralResult(Operation *op) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  bool isFloat = isa<FloatType>(getElementType(a));
  if (isa<MulOp>(op))
    return isSplat(b, 1) ? a : isSplat(a, 1) ? b : Value();
  if (isa<DivOp>(op))
    return isSplat(b, 1) ? a : Value();
  if (isa<SubOp>(op))
    return isSplat(b, 0) ? a : Value();
  if (isa<AddOp>(op)) {
    double zero = isFloat ? -0.0 : 0.0;
    return isSplat(b, zero) ? a : isSplat(a, zero) ? b : Value();
  }
  if (isa<PowOp>(op))
    return isSplat(b, 1) ? a : Value();
  if (isa<AndOp>(op))
    return getBoolSplat(b) == true ? a : getBoolSplat(a) == true ? b : Value();
  if (isa<OrOp>(op))
    return getBoolSplat(b) == false ? a : getBoolSplat(a) == false ? b : Value();
  return {};
}

namespace {

template <typename OpTy> struct DropNeutral : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    Value result = getNeutralResult(op);
    if (!result)
      return rewriter.notifyMatchFailure(op, "no operand is neutral");
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// A tensor of the type of `like` whose elements are all `number`.
static Value createSplat(PatternRewriter &rewriter, Value like, double number) {
  auto type = cast<FloatType>(getElementType(like));
  auto scalar = RankedTensorType::get({}, type);
  auto value = DenseElementsAttr::get(scalar, rewriter.getFloatAttr(type, number));
  Value constant = ConstantOp::create(rewriter, like.getLoc(), scalar, value);
  return BroadcastOp::create(rewriter, like.getLoc(), like.getType(), constant, ArrayRef<int64_t>());
}

/// x / 2^n = x * 2^-n: both are the same number, rounded once.
struct DivideByPowerOfTwo : OpRewritePattern<DivOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DivOp op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<FloatType>(getElementType(op.getY()));
    std::optional<double> divisor = getSplat(op.getB());
    int exponent = 0;
    if (!type || !divisor || std::abs(std::frexp(*divisor, &exponent)) != 0.5 || std::abs(exponent) > 12)
      return rewriter.notifyMatchFailure(op, "the divisor is no power of two");
    Value factor = createSplat(rewriter, op.getY(), 1 / *divisor);
    rewriter.replaceOpWithNewOp<MulOp>(op, op.getY().getType(), op.getA(), factor);
    return success();
  }
};

struct ExpandPower : OpRewritePattern<PowOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PowOp op, PatternRewriter &rewriter) const override {
    if (!isa<FloatType>(getElementType(op.getY())) || (!isSplat(op.getB(), 2) && !isSplat(op.getB(), 3)))
      return rewriter.notifyMatchFailure(op, "the exponent is neither 2 nor 3");
    Value x = op.getA(), product = MulOp::create(rewriter, op.getLoc(), x.getType(), x, x);
    if (isSplat(op.getB(), 3))
      product = MulOp::create(rewriter, op.getLoc(), x.getType(), product, x);
    rewriter.replaceOp(op, product);
    return success();
  }
};

/// x / pow(y, c) = x * pow(y, -c), which takes as long without the quotient. (Of 1/2 the root's quotient stays.)
struct DivideByPower : OpRewritePattern<DivOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DivOp op, PatternRewriter &rewriter) const override {
    auto power = op.getB().getDefiningOp<PowOp>();
    if (!power || !power->hasOneUse() || !(getElementType(op.getY()).isF32() || getElementType(op.getY()).isF64()))
      return rewriter.notifyMatchFailure(op, "the divisor is no power of wide floats of its own");
    std::optional<double> exponent = getSplat(power.getB());
    if (!exponent || *exponent == 0 || std::abs(*exponent) > 0.75 || std::abs(*exponent) == 0.5)
      return rewriter.notifyMatchFailure(op, "the exponent is not known, or its inverse may overflow");
    Type type = power.getType();
    Value inverse =
        PowOp::create(rewriter, power.getLoc(), type, power.getA(), createSplat(rewriter, power.getY(), -*exponent));
    rewriter.replaceOpWithNewOp<MulOp>(op, op.getY().getType(), op.getA(), inverse);
    return success();
  }
};

/// x where `value` is log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)); null for all else.
static Value matchSoftplus(Value value) {
  auto sum = value.getDefiningOp<AddOp>();
  if (!sum)
    return {};
  auto relu = sum.getA().getDefiningOp<ReluOp>();
  auto log = sum.getB().getDefiningOp<Log1pOp>();
  if (!relu || !log) {
    relu = sum.getB().getDefiningOp<ReluOp>();
    log = sum.getA().getDefiningOp<Log1pOp>();
  }
  auto exp = log ? log.getX().getDefiningOp<ExpOp>() : ExpOp();
  auto negative = exp ? exp.getX().getDefiningOp<NegOp>() : NegOp();
  auto size = negative ? negative.getX().getDefiningOp<AbsOp>() : AbsOp();
  return relu && size && size.getX() == relu.getX() ? relu.getX() : Value();
}

/// Above the bound the quotient is 1, rounded, and n still a number. Narrow floats have no room for n.
struct TanhOfSoftplus : OpRewritePattern<TanhOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TanhOp op, PatternRewriter &rewriter) const override {
    Value x = matchSoftplus(op.getX());
    if (!x || !(getElementType(x).isF32() || getElementType(x).isF64()))
      return rewriter.notifyMatchFailure(op, "no softplus of wide floats");
    Location loc = op.getLoc();
    Type type = x.getType();
    Value two = createSplat(rewriter, x, 2);
    Value bounded = MinimumOp::create(rewriter, loc, type, x, createSplat(rewriter, x, 40));
    Value e = ExpOp::create(rewriter, loc, type, bounded);
    Value n = MulOp::create(rewriter, loc, type, e, AddOp::create(rewriter, loc, type, e, two));
    rewriter.replaceOpWithNewOp<DivOp>(op, type, n, AddOp::create(rewriter, loc, type, n, two));
    return success();
  }
};

struct DropSelect : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op, PatternRewriter &rewriter) const override {
    std::optional<bool> condition = getBoolSplat(op.getCondition());
    if (op.getA() != op.getB() && !condition)
      return rewriter.notifyMatchFailure(op, "the condition is not known");
    rewriter.replaceOp(op, condition.value_or(true) ? op.getA() : op.getB());
    return success();
  }
};

struct DropDoubleNot : OpRewritePattern<NotOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(NotOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<NotOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "no double negation");
    rewriter.replaceOp(op, inner.getX());
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

namespace {

struct ComposeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<ReshapeOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "no reshape of a reshape");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getResult().getType(), inner.getX());
    return success();
  }
};

struct ComposeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    if (auto inner = op.getX().getDefiningOp<TransposeOp>()) {
      SmallVector<int64_t> permutation;
      for (int64_t axis : op.getPermutation())
        permutation.push_back(inner.getPermutation()[axis]);
      rewriter.replaceOpWithNewOp<TransposeOp>(op, inner.getX(), permutation);
      return success();
    }
    int64_t last = -1;
    SmallVector<Expr> dims = getDims(op.getX());
    for (int64_t axis : op.getPermutation()) {
      if (dims[axis].isConstant(1))
        continue;
      if (axis < last)
        return rewriter.notifyMatchFailure(op, "a dim larger than 1 moves");
      last = axis;
    }
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getResult().getType(), op.getX());
    return success();
  }
};

struct ComposeBroadcasts : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<BroadcastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "no broadcast of a broadcast");
    SmallVector<int64_t> axes;
    for (int64_t axis : inner.getAxes())
      axes.push_back(op.getAxes()[axis]);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getResult().getType(), inner.getX(), axes);
    return success();
  }
};

bool isWhole(SliceOp op) {
  auto isZero = [](Expr start) { return start.isConstant(0); };
  return op.getX().getType() == op.getResult().getType() && llvm::all_of(getExprs(op.getStarts()), isZero) &&
         llvm::all_of(op.getSteps(), [](int64_t step) { return step == 1; });
}

struct DropSlice : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    if (!isWhole(op))
      return rewriter.notifyMatchFailure(op, "a part");
    rewriter.replaceOp(op, op.getX());
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Slices in disguise
//===----------------------------------------------------------------------===//

/// First index and step of constant indices that are an arithmetic progression inside [0, extent).
static std::optional<std::pair<int64_t, int64_t>> getProgression(Value indices, int64_t extent) {
  DenseElementsAttr elements = getConstant(indices);
  if (!elements || elements.getNumElements() == 0)
    return std::nullopt;
  SmallVector<int64_t> list;
  for (const APInt &index : elements.getValues<APInt>())
    list.push_back(index.getSExtValue());
  int64_t step = list.size() > 1 ? list[1] - list[0] : 1;
  for (auto [i, index] : llvm::enumerate(list)) {
    bool isInside = index >= 0 && index < extent;
    if (!isInside || index != list[0] + int64_t(i) * step)
      return std::nullopt;
  }
  if (step == 0)
    return std::nullopt;
  return std::pair(list[0], step);
}

namespace {

struct GatherIsSlice : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    SmallVector<Expr> dims = getDims(op.getX());
    int64_t axis = op.getAxis();
    auto progression = dims[axis].isConstant() ? getProgression(op.getIndices(), dims[axis].getValue()) : std::nullopt;
    if (!progression)
      return rewriter.notifyMatchFailure(op, "the indices are no constant progression");
    MLIRContext *context = op.getContext();
    SmallVector<Expr> starts(dims.size(), Expr::constant(context, 0));
    SmallVector<int64_t> steps(dims.size(), 1);
    starts[axis] = Expr::constant(context, progression->first);
    steps[axis] = progression->second;
    dims[axis] = Expr::constant(context, getConstant(op.getIndices()).getNumElements());
    Type type = getTensorType(dims, getElementType(op.getX()));
    Value slice = SliceOp::create(rewriter, op.getLoc(), type, op.getX(), getExprArray(context, starts), steps);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getResult().getType(), slice);
    return success();
  }
};

/// Whether slice b begins where slice a ends along `axis`, and is like it otherwise.
bool isNext(SliceOp a, SliceOp b, int64_t axis) {
  if (!a || !b || a.getX() != b.getX() || a.getSteps() != b.getSteps() || a.getSteps()[axis] != 1)
    return false;
  SmallVector<Expr> starts = getExprs(a.getStarts()), others = getExprs(b.getStarts());
  starts[axis] = starts[axis] + getDims(a.getResult())[axis];
  return starts == others;
}

struct JoinSlices : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    if (op.getInputs().size() == 1) {
      rewriter.replaceOp(op, op.getInputs()[0]);
      return success();
    }
    int64_t axis = op.getAxis();
    SmallVector<Value> inputs;
    for (Value input : op.getInputs()) {
      auto slice = input.getDefiningOp<SliceOp>();
      auto before = inputs.empty() ? SliceOp() : inputs.back().getDefiningOp<SliceOp>();
      if (!isNext(before, slice, axis)) {
        inputs.push_back(input);
        continue;
      }
      SmallVector<Expr> dims = getDims(before.getResult());
      dims[axis] = dims[axis] + getDims(input)[axis];
      Type type = getTensorType(dims, getElementType(input));
      inputs.back() =
          SliceOp::create(rewriter, op.getLoc(), type, slice.getX(), before.getStartsAttr(), before.getSteps());
    }
    if (inputs.size() == op.getInputs().size())
      return rewriter.notifyMatchFailure(op, "no slices that follow each other");
    rewriter.replaceOpWithNewOp<ConcatOp>(op, inputs, uint64_t(axis));
    return success();
  }
};

/// The longest concat, along the same axis and in the same block, of a run of what `op` joins, but not of all of it;
/// and where that run begins. Null where there is none.
std::pair<ConcatOp, size_t> findJoinedRun(ConcatOp op) {
  std::pair<ConcatOp, size_t> longest;
  size_t count = 1;
  for (auto [start, input] : llvm::enumerate(op.getInputs()))
    for (Operation *user : input.getUsers()) {
      auto other = dyn_cast<ConcatOp>(user);
      if (!other || other->use_empty() || other->getBlock() != op->getBlock() || other.getAxis() != op.getAxis())
        continue;
      size_t size = other.getInputs().size();
      if (size <= count || size >= op.getInputs().size() || start + size > op.getInputs().size() ||
          !llvm::equal(other.getInputs(), op.getInputs().slice(start, size)))
        continue;
      longest = {other, start};
      count = size;
    }
  return longest;
}

struct NestConcats : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    auto [part, start] = findJoinedRun(op);
    if (!part)
      return rewriter.notifyMatchFailure(op, "no other concat of some of its inputs");
    if (op->isBeforeInBlock(part)) // which has no other operands than `op` has
      rewriter.moveOpBefore(part, op);
    SmallVector<Value> inputs(op.getInputs());
    auto run = inputs.begin() + start;
    inputs.insert(inputs.erase(run, run + part.getInputs().size()), part.getResult());
    rewriter.replaceOpWithNewOp<ConcatOp>(op, op.getResult().getType(), inputs, op.getAxis());
    return success();
  }
};

constexpr int64_t shortestRow = 8; // of a roll

/// Whether so many elements lie behind `axis`, of dims that are not known perhaps.
bool hasRows(ArrayRef<Expr> dims, int64_t axis) {
  int64_t elements = 1;
  for (Expr dim : dims.drop_front(axis + 1))
    elements *= dim.asConstant().value_or(shortestRow);
  return elements >= shortestRow;
}

struct RollIsPad : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    int64_t axis = op.getAxis();
    auto isPair = op.getInputs().size() == 2 && hasRows(getDims(op.getResult()), axis);
    auto first = isPair ? op.getInputs()[0].getDefiningOp<SliceOp>() : SliceOp();
    auto second = isPair ? op.getInputs()[1].getDefiningOp<SliceOp>() : SliceOp();
    bool isRoll = first && isNext(second, first, axis) && first.getX().getType() == op.getResult().getType() &&
                  llvm::all_of(getExprs(second.getStarts()), [](Expr start) { return start.isConstant(0); }) &&
                  llvm::all_of(second.getSteps(), [](int64_t step) { return step == 1; }) &&
                  !isHandle(getElementType(op.getResult())); // pads have a value, and strings no constants
    if (!isRoll)
      return rewriter.notifyMatchFailure(op, "no roll");
    SmallVector<Expr> low;
    for (Expr start : getExprs(first.getStarts()))
      low.push_back(start * -1);
    auto scalar = RankedTensorType::get({}, getElementType(op.getResult()));
    Value unused = ConstantOp::create(rewriter, op.getLoc(),
                                      DenseElementsAttr::get(scalar, rewriter.getZeroAttr(scalar.getElementType())));
    rewriter.replaceOpWithNewOp<PadOp>(op, op.getResult().getType(), first.getX(), unused,
                                       getExprArray(op.getContext(), low), PadKind::Wrap);
    return success();
  }
};

constexpr int64_t shortestHalf = 16; // a vector of the longest level

/// What is negated, if that is all that reads it, or the value itself.
std::pair<SliceOp, bool> getSignedSlice(Value value) {
  auto negation = value.hasOneUse() ? value.getDefiningOp<NegOp>() : NegOp();
  return {(negation ? negation.getX() : value).getDefiningOp<SliceOp>(), bool(negation)};
}

struct ExchangeHalves : OpRewritePattern<ConcatOp> {
  ExchangeHalves(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/2) {} // it is a roll, too

  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    int64_t axis = op.getAxis();
    if (op.getInputs().size() != 2)
      return rewriter.notifyMatchFailure(op, "no two halves");
    auto [first, negatesFirst] = getSignedSlice(op.getInputs()[0]);
    auto [second, negatesSecond] = getSignedSlice(op.getInputs()[1]);
    if (!first || !isNext(second, first, axis) || first.getX().getType() != op.getResult().getType() ||
        first.getResult().getType() != second.getResult().getType() ||
        !llvm::all_of(getExprs(second.getStarts()), [](Expr start) { return start.isConstant(0); }) ||
        !llvm::all_of(second.getSteps(), [](int64_t step) { return step == 1; }))
      return rewriter.notifyMatchFailure(op, "no halves of one value");
    SmallVector<Expr> dims = getDims(first.getResult());
    int64_t run = 1;
    for (Expr dim : ArrayRef(dims).drop_front(axis))
      run *= dim.asConstant().value_or(axis + 1 < int64_t(dims.size()) ? shortestHalf : 0);
    if (!dims[axis].isConstant() || run < shortestHalf)
      return rewriter.notifyMatchFailure(op, "halves are too short for vectors");
    if ((negatesFirst || negatesSecond) && !isa<FloatType>(getElementType(op.getResult())))
      return rewriter.notifyMatchFailure(op, "negated integers");
    rewriter.replaceOp(op, exchange(rewriter, op, first.getX(), dims, negatesFirst, negatesSecond));
    return success();
  }

private:
  /// `dims`: of a half.
  static Value exchange(PatternRewriter &rewriter, ConcatOp op, Value x, SmallVector<Expr> dims, bool negatesFirst,
                        bool negatesSecond) {
    MLIRContext *context = op.getContext();
    int64_t axis = op.getAxis();
    Type element = getElementType(x);
    dims.insert(dims.begin() + axis, Expr::constant(context, 2));
    SmallVector<Expr> starts(dims.size(), Expr::constant(context, 0));
    SmallVector<int64_t> steps(dims.size(), 1);
    starts[axis] = Expr::constant(context, 1);
    steps[axis] = -1;
    Type halves = getTensorType(dims, element);
    Value value = ReshapeOp::create(rewriter, op.getLoc(), halves, x);
    value = SliceOp::create(rewriter, op.getLoc(), halves, value, getExprArray(context, starts), steps);
    if (negatesFirst || negatesSecond) {
      auto number = [&](bool negates) -> Attribute { return rewriter.getFloatAttr(element, negates ? -1 : 1); };
      auto pair = RankedTensorType::get({2}, element);
      auto signs = DenseElementsAttr::get(pair, {number(negatesFirst), number(negatesSecond)});
      Value factor = ConstantOp::create(rewriter, op.getLoc(), pair, signs);
      factor = BroadcastOp::create(rewriter, op.getLoc(), halves, factor, axis);
      value = MulOp::create(rewriter, op.getLoc(), halves, value, factor);
    }
    return ReshapeOp::create(rewriter, op.getLoc(), op.getResult().getType(), value);
  }
};

/// Whether what `op` reads outside of x is what the pad adds: a convolution's zeros, what a pooling's result does not
/// depend on.
bool readsBeyond(Operation *op, Value x, PadOp pad) {
  if (auto convolution = dyn_cast<ConvolutionOp>(op))
    return convolution.getX() == x && convolution.getW() != x && !convolution.getTransposed() &&
           isSplat(pad.getValue(), 0);
  auto window = dyn_cast<WindowReduceOp>(op);
  double infinity = std::numeric_limits<double>::infinity();
  return window && ((window.getKind() == ReduceKind::Sum && isSplat(pad.getValue(), 0)) ||
                    (window.getKind() == ReduceKind::Max && isSplat(pad.getValue(), -infinity)) ||
                    (window.getKind() == ReduceKind::Min && isSplat(pad.getValue(), infinity)));
}

/// Whether all who read `x`, transposed perhaps, do so.
bool isReadBeyond(Value x, PadOp pad) {
  return llvm::all_of(x.getUsers(), [&](Operation *reader) {
    auto transpose = dyn_cast<TransposeOp>(reader);
    return transpose ? isReadBeyond(transpose.getResult(), pad) : readsBeyond(reader, x, pad);
  });
}

/// How many elements the pad adds in front of each of the last `pixels` dims, which have changed places; nothing if it
/// adds others, or crops.
std::optional<SmallVector<int64_t>> findBorder(PadOp pad, ArrayRef<int64_t> places, size_t pixels) {
  SmallVector<Expr> before = getExprs(pad.getLow()), inner = getDims(pad.getX()), outer = getDims(pad.getResult());
  SmallVector<int64_t> border;
  for (auto [dim, place] : llvm::enumerate(places)) {
    auto low = before[place].asConstant(), high = (outer[place] - before[place] - inner[place]).asConstant();
    bool isPixel = dim + pixels >= places.size();
    if (!low || !high || *low < 0 || *high < 0 || (!isPixel && (*low || *high)))
      return std::nullopt;
    if (isPixel)
      border.push_back(*low);
  }
  return border;
}

template <typename OpTy> struct PadIsBorder : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    auto transpose = op.getX().template getDefiningOp<TransposeOp>();
    auto pad = (transpose ? transpose.getX() : op.getX()).template getDefiningOp<PadOp>();
    if (!pad || pad.getKind() != PadKind::Constant || !isa<FloatType>(getElementType(pad.getX())) ||
        !isReadBeyond(pad.getResult(), pad))
      return rewriter.notifyMatchFailure(op, "no border that windows alone read");
    SmallVector<Expr> low = getExprs(op.getLow());
    auto places = llvm::to_vector(llvm::seq<int64_t>(0, getRank(pad.getX())));
    if (transpose)
      places.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
    std::optional<SmallVector<int64_t>> border = findBorder(pad, places, low.size());
    if (!border)
      return rewriter.notifyMatchFailure(op, "not pixels alone are padded");
    for (auto [dim, size] : llvm::enumerate(*border))
      low[dim] = low[dim] + size;
    Value x = pad.getX();
    if (transpose)
      x = TransposeOp::create(rewriter, transpose.getLoc(), x, places);
    rewriter.modifyOpInPlace(op, [&] {
      op.getXMutable().assign(x);
      op.setLowAttr(getExprArray(op.getContext(), low));
    });
    return success();
  }
};

struct SimplifyAlgebra : ptc::impl::SimplifyAlgebraBase<SimplifyAlgebra> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<DropNeutral<AddOp>, DropNeutral<SubOp>, DropNeutral<MulOp>, DropNeutral<DivOp>, DropNeutral<PowOp>,
                 DropNeutral<AndOp>, DropNeutral<OrOp>, DivideByPowerOfTwo, DivideByPower, ExpandPower, TanhOfSoftplus,
                 DropSelect, DropDoubleNot, ComposeReshapes, ComposeTransposes, ComposeBroadcasts, DropSlice,
                 GatherIsSlice, JoinSlices, NestConcats, RollIsPad, ExchangeHalves, PadIsBorder<ConvolutionOp>,
                 PadIsBorder<WindowReduceOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
