//===- FoldMirroredFilters.cpp - filters that are their own mirror image ---===//
//
// Spectra are computed as convolutions of a signal with windowed cosines and sines, and low-pass filters are even: each
// filter is its own mirror image about a centre, or the negative of it. Elements that meet one weight are added first,
// which halves the products:
//
//   sum over k of x[p + k] w[k]  =  sum over pairs k < c - k of (x[p + k] +- x[p + c - k]) w[k]
//                                   + w[c / 2] x[p + c / 2]
//
// with w[c - k] = +-w[k]. Here c is the window's length, as periodic window functions have it: the first weight has no
// partner. The sums of all pairs and places are one small tensor [batch, places, pairs], and the rest is a product of
// matrices. Even filters come first and odd ones behind them, or the other way round; their results are joined.
//
// Where a window begins is a multiple of the stride. If the stride divides the window, x in rows of one stride holds
// all that is added as slices: the element k = a stride + r of window t is r of row t + a, and its partner is
// stride - r of row t + c / stride - a - 1, or of the row behind it where r is 0.
//
// Weights are compared bit by bit (0 and -0 are equal); those that are folded cannot be replaced at run time. Sums are
// rounded in another order, with errors that are no larger in the mean; x that is so large that a sum of two overflows
// gives infinity, and NaN or infinity where all weights are 0 (before the first pair, in the middle of odd filters) is
// not read. Hence not under --fp=strict, and not in 16 bits: sums of two would be rounded to them, with errors half as
// large again, and overflow at 65504.
//
//===----------------------------------------------------------------------===//
#include "ir/eval/ReferenceEval.h"
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include <cmath>

namespace ptc {
#define GEN_PASS_DEF_FOLDMIRROREDFILTERS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {

/// The parts of x that are added are slices of rows: with more of them than that they cost what products do.
constexpr int64_t mostRows = 8;

/// Which of two kinds of filters are where: rows [0, first) of the one, the others of the other.
struct Kinds {
  int64_t first = 0;
  bool isFirstEven = true;
};

class Folding {
public:
  Folding(ConvolutionOp op, int64_t fewest, eval::WeightSource &weights)
      : op(op), b(op), loc(op.getLoc()), fewest(fewest), weights(weights) {}

  bool rewrite();
  SmallVector<StringAttr> folded; // names of weights

private:
  bool matches();
  std::optional<Kinds> classify(const eval::Tensor &w);
  Value fold(int64_t begin, int64_t end, bool isEven);
  Value terms(bool isEven);
  Value piece(int64_t row, int64_t from, int64_t count, bool isMirrored);
  Value slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps);

  ConvolutionOp op;
  OpBuilder b;
  Location loc;
  int64_t fewest;
  eval::WeightSource &weights;
  int64_t filters = 0, window = 0, stride = 0, places = 0;
  bool hasFirst = false; // the weight without a partner is not 0 everywhere
  Value rows;            // x as [batch, rows, stride]
};

} // namespace

static bool isWide(Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() >= 32; }

/// A signal of one channel, windows that lie inside of it, and strides that divide them.
bool Folding::matches() {
  SmallVector<Expr> x = getDims(op.getX()), w = getDims(op.getW()), y = getDims(op.getResult());
  bool isPlain = !op.getTransposed() && op.getGroups() == 1 && w.size() == 3 && op.getDilations()[0] == 1 &&
                 getExprs(op.getLow())[0].isConstant(0) && isWide(getElementType(op.getX()));
  if (!isPlain || !x[1].isConstant(1) || !x[2].isConstant() || !y[2].isConstant() || !w[0].isConstant() ||
      !w[2].isConstant())
    return false;
  filters = w[0].getValue(), window = w[2].getValue(), stride = op.getStrides()[0], places = y[2].getValue();
  return filters >= fewest && places > 0 && window % stride == 0 && window / stride <= mostRows && window > 2 &&
         x[2].getValue() >= (places - 1) * stride + window;
}

std::optional<Kinds> Folding::classify(const eval::Tensor &w) {
  std::vector<double> values = w.toDoubles();
  auto is = [&](int64_t filter, double sign) {
    const double *row = values.data() + filter * window;
    for (int64_t k = 1; k <= window / 2; ++k)
      if (!std::isfinite(row[k]) || row[k] != sign * row[window - k])
        return false;
    return sign > 0 || row[0] == 0;
  };
  Kinds kinds;
  int64_t decides = 0; // the first that is not both, as zeros are
  while (decides + 1 < filters && is(decides, 1) && is(decides, -1))
    ++decides;
  kinds.isFirstEven = is(decides, 1);
  double sign = kinds.isFirstEven ? 1 : -1;
  while (kinds.first < filters && is(kinds.first, sign))
    ++kinds.first;
  for (int64_t filter = kinds.first; filter < filters; ++filter)
    if (!is(filter, -sign))
      return std::nullopt;
  for (int64_t filter = 0; filter < filters; ++filter)
    hasFirst |= values[filter * window] != 0;
  return kinds;
}

Value Folding::slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
  SmallVector<Expr> begins, dims = getDims(x);
  for (auto [axis, start] : llvm::enumerate(starts)) {
    begins.push_back(Expr::constant(b.getContext(), start));
    if (sizes[axis] >= 0)
      dims[axis] = Expr::constant(b.getContext(), sizes[axis]);
  }
  return SliceOp::create(b, loc, getTensorType(dims, getElementType(x)), x, getExprArray(b.getContext(), begins),
                         steps);
}

/// Of all windows the elements [from, from + count) of one row, or their partners: [batch, places, count].
Value Folding::piece(int64_t row, int64_t from, int64_t count, bool isMirrored) {
  if (!isMirrored)
    return slice(rows, {0, row, from}, {-1, places, count}, {1, 1, 1});
  int64_t partner = window / stride - row;
  if (from == 0)
    return slice(rows, {0, partner, 0}, {-1, places, count}, {1, 1, 1});
  return slice(rows, {0, partner - 1, stride - from}, {-1, places, count}, {1, 1, -1});
}

/// What the weights are multiplied by, in their order: [batch, places, weights of half a window].
Value Folding::terms(bool isEven) {
  SmallVector<Value> parts;
  if (isEven && hasFirst)
    parts.push_back(piece(0, 0, 1, false));
  int64_t pairs = (window + 1) / 2; // the first element that has no partner behind it
  for (int64_t k = 1, count; k < pairs; k += count) {
    int64_t row = k / stride, from = k % stride;
    count = from == 0 ? 1 : std::min(stride - from, pairs - k);
    Value x = piece(row, from, count, false), y = piece(row, from, count, true);
    parts.push_back(isEven ? AddOp::create(b, loc, x, y).getResult() : SubOp::create(b, loc, x, y).getResult());
  }
  if (isEven && window % 2 == 0)
    parts.push_back(piece(window / 2 / stride, window / 2 % stride, 1, false));
  return parts.size() == 1 ? parts[0] : ConcatOp::create(b, loc, parts, 2).getResult();
}

/// The results of filters [begin, end): [batch, filters, places].
Value Folding::fold(int64_t begin, int64_t end, bool isEven) {
  Value x = terms(isEven);
  int64_t count = end - begin, depth = getDims(x)[2].getValue();
  Value w = slice(op.getW(), {begin, 0, isEven && hasFirst ? 0 : 1}, {count, 1, depth}, {1, 1, 1});
  auto plain = RankedTensorType::get({count, depth}, getElementType(w));
  w = TransposeOp::create(b, loc, ReshapeOp::create(b, loc, plain, w), ArrayRef<int64_t>{1, 0});
  return TransposeOp::create(b, loc, MatmulOp::create(b, loc, x, w), ArrayRef<int64_t>{0, 2, 1});
}

bool Folding::rewrite() {
  Operation *source = op.getW().getDefiningOp();
  if (!isa_and_nonnull<WeightOp, ConstantOp>(source) || !matches())
    return false;
  auto w = eval::evaluateValue(op.getW(), {}, [](Value) { return nullptr; }, {}, weights);
  if (!w) {
    llvm::consumeError(w.takeError());
    return false;
  }
  std::optional<Kinds> kinds = classify(*w);
  if (!kinds)
    return false;
  if (auto weight = dyn_cast<WeightOp>(source))
    for (WeightRefAttr ref : weight.getRefs())
      folded.push_back(b.getStringAttr(ref.getName()));
  SmallVector<Expr> dims = getDims(op.getX());
  int64_t count = places - 1 + window / stride;
  Value used = slice(op.getX(), {0, 0, 0}, {-1, 1, count * stride}, {1, 1, 1});
  dims[1] = Expr::constant(b.getContext(), count);
  dims[2] = Expr::constant(b.getContext(), stride);
  rows = ReshapeOp::create(b, loc, getTensorType(dims, getElementType(used)), used);
  SmallVector<Value> results;
  if (kinds->first > 0)
    results.push_back(fold(0, kinds->first, kinds->isFirstEven));
  if (kinds->first < filters)
    results.push_back(fold(kinds->first, filters, !kinds->isFirstEven));
  op.getResult().replaceAllUsesWith(results.size() == 1 ? results[0]
                                                        : ConcatOp::create(b, loc, results, 1).getResult());
  op.erase();
  return true;
}

namespace {
struct FoldMirroredFilters : ptc::impl::FoldMirroredFiltersBase<FoldMirroredFilters> {
  using FoldMirroredFiltersBase::FoldMirroredFiltersBase;
  explicit FoldMirroredFilters(eval::WeightSource *weights) : weights(weights) {}

  void runOnOperation() override {
    eval::NoWeights none;
    SmallVector<ConvolutionOp> all;
    getOperation().walk([&](ConvolutionOp op) { all.push_back(op); });
    for (ConvolutionOp op : all) {
      Folding folding(op, fewestFilters, weights ? *weights : none);
      if (folding.rewrite())
        noteFoldedWeights(getOperation(), folding.folded);
    }
  }

  eval::WeightSource *weights = nullptr;
};
} // namespace

std::unique_ptr<Pass> ptc::createFoldMirroredFilters(eval::WeightSource *weights) {
  return std::make_unique<FoldMirroredFilters>(weights);
}
