//===- MovePointwiseConvolutions.cpp - where pixels or channels are fewest ----===//
//
// A convolution by windows of one pixel multiplies each pixel's channels by a matrix. What treats all channels alike
// and adds up multiples of pixels (a resize, a sum over windows) gives the same before it and behind it, and a sum over
// channels is that of its parts:
//
//   convolution(concat(resize(a), b), [v, w])   ->   convolution(b, w) + resize(convolution(a, v))
//   convolution(sums(x), w)                     ->   sums(convolution(x, w))               of fewer channels
//   sums(convolution(x, w))                     ->   convolution(sums(x), w)               of fewer pixels
//
// The decoders of detectors and of segmentation networks put images of several sizes side by side and multiply them by
// one weight: each is multiplied in its own size then, and neither its larger copy nor the concat is stored.
//
// A map of pixels is all that is between a value and one before it, its source: views and gathers of the dims behind
// the channels, sums of such values, their products by what all channels have alike, sums over windows. It is written
// again of the convolution's result. The source is the farthest value that has no more pixels than those behind it.
//
// Sums are added up in another order, interpolated ones are of products that were rounded; hence not under --fp=strict.
//
// Cost: linear in the ops, as maps are of so many ops at most.
//
//===----------------------------------------------------------------------===//
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace ptc {
#define GEN_PASS_DEF_MOVEPOINTWISECONVOLUTIONS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {
/// Below, a convolution costs no more than what is done with its result.
constexpr int64_t leastChannels = 16;
/// How many times fewer pixels or channels are worth a convolution of its own.
constexpr int64_t leastRatio = 2;
/// Of a map: ops one behind the other, and all of them, which each convolution that is moved writes again, with the
/// broadcasts of their factors.
constexpr unsigned mostSteps = 32, mostOps = 128;

/// What a value is a map of: itself, if of no other.
struct PixelMap {
  Value source;
  bool sumsWindows = false;
  unsigned steps = 0;
};

class ConvolutionMover {
public:
  explicit ConvolutionMover(const SymbolValues &hints) : hints(hints) {}

  /// The convolution's parts that read maps of smaller images are computed of these.
  void moveBeforeMaps(ConvolutionOp op);
  /// Sums over windows of the convolution's result are computed of what it reads.
  void moveBehindSums(ConvolutionOp op);
  PixelMap findMap(Value value);

private:
  bool isWorthMoving(const PixelMap &map, Value image, int64_t results) const;
  std::optional<int64_t> countPixels(Value value) const;

  const SymbolValues &hints;
  llvm::DenseMap<Value, PixelMap> maps;
};

/// Writes a map again, of another source with other channels.
class MapCopy {
public:
  MapCopy(OpBuilder &b, Value from, Value to) : b(b), channels(getDims(to)[1]) { copies[from] = to; }
  Value get(Value value);

private:
  RankedTensorType getType(Value value) const {
    SmallVector<Expr> dims = getDims(value);
    dims[1] = channels;
    return getTensorType(dims, getElementType(value));
  }
  OpBuilder &b;
  Expr channels;
  llvm::DenseMap<Value, Value> copies;
};
} // namespace

static bool isPointwise(ConvolutionOp op) {
  SmallVector<Expr> in = getDims(op.getX()), out = getDims(op.getResult()), window = getDims(op.getW());
  auto isOne = [](auto number) { return number == 1; };
  auto is = [](int64_t value) { return [value](Expr e) { return e.isConstant(value); }; };
  return !op.getTransposed() && op.getGroups() == 1 && llvm::all_of(op.getStrides(), isOne) &&
         llvm::all_of(getExprs(op.getLow()), is(0)) && llvm::all_of(ArrayRef(window).drop_front(2), is(1)) &&
         ArrayRef(in).drop_front(2) == ArrayRef(out).drop_front(2) && window[0].isConstant() &&
         window[1].isConstant() && getElementType(op.getResult()).isF32() && getElementType(op.getX()).isF32();
}

/// Whether batch and channels are the first two dims of both.
static bool keepsFirst(Value from, Value to) {
  SmallVector<Expr> before = getDims(from), after = getDims(to);
  return before.size() >= 2 && after.size() >= 2 && before[0] == after[0] && before[1] == after[1];
}

/// Whether all channels have the same.
static bool isUniform(Value value) {
  auto op = value.getDefiningOp<BroadcastOp>();
  if (!op)
    return false;
  SmallVector<Expr> dims = getDims(op.getX());
  for (auto [dim, axis] : llvm::zip_equal(dims, op.getAxes()))
    if (axis == 1 && !dim.isConstant(1))
      return false;
  return true;
}

/// The operands that a map of pixels reads pixels of; none if the op is no map.
static SmallVector<Value> getMapped(Operation *op) {
  if (!op || op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()) ||
      getRank(op->getResult(0)) < 3 || !getElementType(op->getResult(0)).isF32())
    return {};
  Value result = op->getResult(0);
  if (isa<BroadcastOp, ReshapeOp>(op) && getRank(op->getOperand(0)) < 3) // one pixel
    return {};
  if (auto view = dyn_cast<BroadcastOp>(op)) {
    bool isMap = keepsFirst(view.getX(), result) && view.getAxes()[0] == 0 && view.getAxes()[1] == 1;
    return isMap ? SmallVector<Value>{view.getX()} : SmallVector<Value>{};
  }
  if (isa<ReshapeOp>(op))
    return keepsFirst(op->getOperand(0), result) ? SmallVector<Value>{op->getOperand(0)} : SmallVector<Value>{};
  if (auto gather = dyn_cast<GatherOp>(op))
    return gather.getAxis() >= 2 ? SmallVector<Value>{gather.getX()} : SmallVector<Value>{};
  if (auto window = dyn_cast<WindowReduceOp>(op))
    return window.getKind() == ReduceKind::Sum ? SmallVector<Value>{window.getX()} : SmallVector<Value>{};
  if (isa<AddOp, SubOp>(op))
    return {op->getOperand(0), op->getOperand(1)};
  if (!isa<MulOp, DivOp>(op) || op->getOperand(0) == op->getOperand(1))
    return {};
  if (isUniform(op->getOperand(1)))
    return {op->getOperand(0)};
  if (isa<MulOp>(op) && isUniform(op->getOperand(0)))
    return {op->getOperand(1)};
  return {};
}

PixelMap ConvolutionMover::findMap(Value value) {
  if (auto found = maps.find(value); found != maps.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  SmallVector<Value> mapped = getMapped(op);
  PixelMap map{value};
  if (!mapped.empty()) {
    PixelMap whole = findMap(mapped[0]);
    whole.sumsWindows |= isa<WindowReduceOp>(op);
    bool hasOneSource = llvm::all_of(mapped, [&](Value operand) {
      PixelMap other = findMap(operand);
      whole.sumsWindows |= other.sumsWindows;
      whole.steps = std::max(whole.steps, other.steps);
      return other.source == whole.source;
    });
    ++whole.steps;
    std::optional<int64_t> before = countPixels(whole.source), behind = countPixels(value);
    bool isSmaller = before && behind && *behind < *before;
    if (hasOneSource && !isSmaller && whole.steps <= mostSteps)
      map = whole;
  }
  return maps[value] = map;
}

std::optional<int64_t> ConvolutionMover::countPixels(Value value) const {
  SmallVector<Expr> dims = getDims(value);
  return product(value.getContext(), ArrayRef(dims).drop_front(2)).evaluate(hints);
}

static bool hasFewOps(const PixelMap &map, Value image) {
  llvm::SetVector<Value> made;
  made.insert(image);
  for (size_t next = 0; next < made.size() && made.size() <= mostOps; ++next)
    for (Value operand : getMapped(made[next].getDefiningOp()))
      if (operand != map.source)
        made.insert(operand);
  return made.size() <= mostOps;
}

/// `results`: channels that a convolution makes of the image.
bool ConvolutionMover::isWorthMoving(const PixelMap &map, Value image, int64_t results) const {
  std::optional<int64_t> channels = getDims(image)[1].asConstant(), few = countPixels(map.source),
                         many = countPixels(image);
  if (map.source == image || !channels || *channels < leastChannels || !few || !many)
    return false;
  // What is saved for a pixel's channels must be worth the map of so many results instead.
  bool pays = map.sumsWindows && *many == *few ? *channels >= results * leastRatio
                                               : *many >= *few * leastRatio && results * *few <= *channels * *many;
  return pays && hasFewOps(map, image);
}

Value MapCopy::get(Value value) {
  if (Value copy = copies.lookup(value))
    return copy;
  Operation *op = value.getDefiningOp();
  SmallVector<Value> mapped = getMapped(op), operands;
  for (Value operand : op->getOperands()) {
    bool isOther = !llvm::is_contained(mapped, operand);
    bool isFactor = isOther && isa<MulOp, DivOp>(op);
    if (isFactor) { // the same for other channels
      auto factor = operand.getDefiningOp<BroadcastOp>();
      operands.push_back(
          BroadcastOp::create(b, factor.getLoc(), getType(operand), factor.getX(), factor.getAxes()).getResult());
    } else {
      operands.push_back(isOther ? operand : get(operand));
    }
  }
  Operation *copy = b.clone(*op);
  copy->setOperands(operands);
  copy->getResult(0).setType(getType(value));
  return copies[value] = copy->getResult(0);
}

/// The weight's columns that multiply channels [first, first + count), for images of that rank.
static Value sliceWeight(OpBuilder &b, ConvolutionOp op, int64_t first, int64_t count, unsigned rank) {
  SmallVector<Expr> dims = getDims(op.getW());
  SmallVector<Expr> starts(dims.size(), Expr::constant(b.getContext(), 0));
  starts[1] = Expr::constant(b.getContext(), first);
  Value w = op.getW();
  Type element = getElementType(w);
  if (!dims[1].isConstant(count)) {
    dims[1] = Expr::constant(b.getContext(), count);
    w = SliceOp::create(b, op.getLoc(), getTensorType(dims, element), w, getExprArray(b.getContext(), starts),
                        SmallVector<int64_t>(dims.size(), 1));
  }
  if (dims.size() == rank)
    return w;
  dims.resize(rank, Expr::constant(b.getContext(), 1));
  return ReshapeOp::create(b, op.getLoc(), getTensorType(dims, element), w);
}

static Value convolve(OpBuilder &b, ConvolutionOp op, Value x, Value w) {
  SmallVector<Expr> dims = getDims(x);
  dims[1] = getDims(w)[0];
  SmallVector<int64_t> ones(dims.size() - 2, 1);
  SmallVector<Expr> low(dims.size() - 2, Expr::constant(b.getContext(), 0));
  return ConvolutionOp::create(b, op.getLoc(), getTensorType(dims, getElementType(op.getResult())), x, w, ones, ones,
                               getExprArray(b.getContext(), low), 1, /*transposed=*/false);
}

void ConvolutionMover::moveBeforeMaps(ConvolutionOp op) {
  int64_t results = getDims(op.getW())[0].getValue();
  auto concat = op.getX().getDefiningOp<ConcatOp>();
  SmallVector<Value> parts = {op.getX()};
  if (concat) {
    bool isMixed = llvm::all_of(concat->getUsers(), [](Operation *user) {
      auto reader = dyn_cast<ConvolutionOp>(user);
      return isa<TapOp>(user) || (reader && isPointwise(reader));
    });
    if (concat.getAxis() != 1 || !isMixed)
      return;
    parts = SmallVector<Value>(concat.getInputs());
  }
  auto isKnown = [](Value part) { return getDims(part)[1].isConstant(); };
  auto isMoved = [&](Value part) { return isWorthMoving(findMap(part), part, results); };
  if (!llvm::all_of(parts, isKnown) || llvm::none_of(parts, isMoved))
    return;
  OpBuilder b(op);
  SmallVector<Value> run, terms; // parts side by side that stay together
  int64_t first = 0, runFirst = 0;
  auto endRun = [&] {
    if (run.empty())
      return;
    Value x = run.size() == 1 ? run[0] : ConcatOp::create(b, concat.getLoc(), run, 1).getResult();
    terms.push_back(convolve(b, op, x, sliceWeight(b, op, runFirst, first - runFirst, getRank(x))));
    run.clear();
  };
  for (Value part : parts) {
    int64_t channels = getDims(part)[1].getValue();
    if (isMoved(part)) {
      PixelMap map = findMap(part);
      endRun();
      Value few = convolve(b, op, map.source, sliceWeight(b, op, first, channels, getRank(map.source)));
      terms.push_back(MapCopy(b, map.source, few).get(part));
    } else {
      if (run.empty())
        runFirst = first;
      run.push_back(part);
    }
    first += channels;
  }
  endRun();
  Value sum = terms[0];
  for (Value term : ArrayRef(terms).drop_front())
    sum = AddOp::create(b, op.getLoc(), sum, term);
  op.getResult().replaceAllUsesWith(sum);
  op.erase();
}

void ConvolutionMover::moveBehindSums(ConvolutionOp op) {
  auto sums = op.getResult().hasOneUse() ? dyn_cast<WindowReduceOp>(*op->user_begin()) : WindowReduceOp();
  if (!sums || sums.getKind() != ReduceKind::Sum || getDims(op.getW())[0].getValue() < leastChannels)
    return;
  std::optional<int64_t> before = countPixels(op.getResult()), behind = countPixels(sums.getResult());
  if (!before || !behind || *before < *behind * leastRatio)
    return;
  OpBuilder b(sums);
  Value x = MapCopy(b, op.getResult(), op.getX()).get(sums.getResult());
  sums.getResult().replaceAllUsesWith(convolve(b, op, x, op.getW()));
  sums.erase();
  op.erase();
}

namespace {
struct MovePointwiseConvolutions : ptc::impl::MovePointwiseConvolutionsBase<MovePointwiseConvolutions> {
  void runOnOperation() override {
    SymbolValues hints;
    if (auto symbols = getOperation()->getAttrOfType<DictionaryAttr>(symbolsAttr))
      hints = getSymbolHints(symbols);
    ConvolutionMover mover(hints);
    getOperation().walk([&](Operation *op) {
      if (auto convolution = dyn_cast<ConvolutionOp>(op); convolution && isPointwise(convolution))
        return mover.moveBeforeMaps(convolution);
      for (Value result : op->getResults()) // in this order none is asked for through others
        mover.findMap(result);
    });
    SmallVector<ConvolutionOp> found;
    getOperation().walk([&](ConvolutionOp op) {
      if (isPointwise(op))
        found.push_back(op);
    });
    for (ConvolutionOp op : found)
      mover.moveBehindSums(op);
  }
};
} // namespace
