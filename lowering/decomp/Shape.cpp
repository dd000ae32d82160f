//===- Shape.cpp - operators that move or make elements -------------------===//
#include "lowering/decomp/ElementTypes.h"
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

//===----------------------------------------------------------------------===//
// Shapes as values
//===----------------------------------------------------------------------===//

/// dims[start:end] as a vector
Values shape(NodeContext &n) {
  Dims dims = n.dims(n.input(0));
  int64_t rank = dims.size();
  auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  int64_t start = clamp(n.integer("start", 0)), end = std::max(start, clamp(n.integer("end", rank)));
  return {n.fromExprs(llvm::ArrayRef(dims).slice(start, end - start), n.si64())};
}

Values size(NodeContext &n) {
  return {n.fromExprs(product(n.getContext(), n.dims(n.input(0))), n.si64(), /*isScalar=*/true)};
}

//===----------------------------------------------------------------------===//
// Reshape and its kind
//===----------------------------------------------------------------------===//

/// Whether a run may find the size to be -1, which says what is left.
static bool mayBeLeft(NodeContext &n, Expr size) {
  return n.shapes.isBoundInside(size) && !n.shapes.isPositive(size + 1);
}

/// Whether a run may find size `i` to be 0, which then copies dim `i` of x. A factor of x's sizes need not be looked
/// at: where it is 0 there are no elements, and a copied size would make some.
static bool mayCopy(NodeContext &n, Value x, llvm::ArrayRef<Expr> shape, int64_t i) {
  return !n.flag("allowzero") && i < n.rank(x) && !shape[i].isConstant() && !n.shapes.isPositive(shape[i]) &&
         !n.shapes.divide(n.dims(x), shape[i]).isExact();
}

/// Sizes that are known only when the model runs: each may be -1 or 0 then, with their meanings.
static Value reshapeToRuntime(NodeContext &n, Value x, llvm::ArrayRef<Expr> shape) {
  Expr zero = n.expr(0), total = product(n.getContext(), n.dims(x)), given = n.expr(1), left = zero;
  Dims sizes;
  for (auto [i, size] : llvm::enumerate(shape)) {
    bool isCopied = size.isConstant(0) ? !n.flag("allowzero") && int64_t(i) < n.rank(x) : mayCopy(n, x, shape, i);
    sizes.push_back(isCopied ? Expr::select(Expr::eq(size, zero), n.dim(x, i), size) : size);
    given = given * Expr::select(Expr::lt(size, zero), n.expr(1), sizes.back());
    left = left + Expr::lt(size, zero);
    if (!n.shapes.assume(Expr::lt(n.expr(-2), size)))
      return n.fail(DiagId::BadReshape, n.describe(n.dims(x)), n.describe(shape));
  }
  Expr isClear = Expr::select(left, Expr::lt(zero, given), n.expr(1)); // what is left beside 0 elements may be anything
  if (!n.shapes.assume(Expr::lt(left, n.expr(2))) || !n.shapes.assume(isClear))
    return n.fail(DiagId::BadReshape, n.describe(n.dims(x)), n.describe(shape));
  for (auto [size, asked] : llvm::zip(sizes, shape))
    size = Expr::select(Expr::lt(asked, zero), total.floorDiv(given), size);
  return n.reshape(x, n.settle(sizes));
}

/// 0 copies the input's dim (unless allowzero), -1 is what is left.
Values reshape(NodeContext &n) {
  Value x = n.input(0);
  std::optional<Dims> shape = n.runtimeExprs(1, "shape");
  if (!shape)
    return {};
  for (size_t i = 0; i < shape->size(); ++i)
    if (mayBeLeft(n, (*shape)[i]) || mayCopy(n, x, *shape, i))
      return {reshapeToRuntime(n, x, *shape)};
  Dims to;
  for (auto [i, dim] : llvm::enumerate(*shape)) {
    if (dim.isConstant(-1))
      to.push_back(Expr());
    else if (dim.isConstant(0) && !n.flag("allowzero")) {
      if (int64_t(i) >= n.rank(x))
        return {n.fail(DiagId::BadReshape, n.describe(n.dims(x)), n.describe(*shape))};
      to.push_back(n.dim(x, i));
    } else if (n.shapes.range(dim).max < 0) {
      return {n.fail(DiagId::BadReshape, n.describe(n.dims(x)), n.describe(*shape))};
    } else {
      to.push_back(dim);
    }
  }
  return {n.reshapeInferred(x, to)};
}

/// Dims before `axis` become one, and those from it on another.
Values flatten(NodeContext &n) {
  Value x = n.input(0);
  int64_t rank = n.rank(x), axis = n.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return {n.fail(DiagId::BadAxis, axis, rank)};
  axis = axis < 0 ? axis + rank : axis;
  Dims dims = n.dims(x);
  return {n.reshape(x, {product(n.getContext(), llvm::ArrayRef(dims).take_front(axis)),
                        product(n.getContext(), llvm::ArrayRef(dims).drop_front(axis))})};
}

/// For each of `rank` dims whether one of the axes names it, as a scalar 0 or 1.
static Values namedAxes(NodeContext &n, llvm::ArrayRef<Value> axes, int64_t rank) {
  Values named;
  for (int64_t axis = 0; axis < rank; ++axis) {
    Value isNamed = n.scalar(0, n.i1());
    for (Value given : axes)
      for (int64_t name : {axis, axis - rank})
        isNamed = n.logicalOr(isNamed, n.equal(given, n.scalar(name, n.si64())));
    named.push_back(n.convert(isNamed, n.si64()));
  }
  return named;
}

/// Element `number` of those `sizes` for which `chosen` is 1, in order; 1 where there are not so many.
static Value pick(NodeContext &n, llvm::ArrayRef<Expr> sizes, llvm::ArrayRef<Value> chosen, Value number) {
  Value before = n.scalar(0, n.si64()), result = n.scalar(1, n.si64()), one = n.scalar(1, n.si64());
  for (auto [size, isChosen] : llvm::zip_equal(sizes, chosen)) {
    Value isIt = n.logicalAnd(n.equal(isChosen, one), n.equal(before, number));
    result = n.select(isIt, n.fromExprs(size, n.si64(), /*isScalar=*/true), result);
    before = n.add(before, isChosen);
  }
  return result;
}

/// The most that one of the sizes can be, and 1.
static Expr largest(NodeContext &n, llvm::ArrayRef<Expr> sizes) {
  Expr most = n.expr(1);
  for (Expr size : sizes)
    most = Expr::max(most, size);
  return n.shapes.simplify(most);
}

/// Axes that are known only when the model runs: their number says the result's rank, their values its dims.
static Value squeezeAtRuntime(NodeContext &n, Value x) {
  std::optional<Values> axes = n.inputScalars(1, "axes");
  if (!axes || int64_t(axes->size()) > n.rank(x))
    return {};
  Dims from = n.dims(x), to;
  Values kept;
  for (Value isNamed : namedAxes(n, *axes, n.rank(x)))
    kept.push_back(n.sub(n.scalar(1, n.si64()), isNamed));
  for (size_t i = 0; i < from.size() - axes->size(); ++i)
    to.push_back(n.bind(pick(n, from, kept, n.scalar(i, n.si64())), largest(n, from)));
  return n.reshape(x, to);
}

static Value unsqueezeAtRuntime(NodeContext &n, Value x) {
  std::optional<Values> axes = n.inputScalars(1, "axes");
  if (!axes)
    return {};
  Dims from = n.dims(x), to;
  Value before = n.scalar(0, n.si64()), one = n.scalar(1, n.si64());
  Values all(from.size(), one);
  for (Value isNamed : namedAxes(n, *axes, n.rank(x) + axes->size())) {
    Value size = n.select(n.equal(isNamed, one), one, pick(n, from, all, before));
    to.push_back(n.bind(size, largest(n, from)));
    before = n.add(before, n.sub(one, isNamed));
  }
  return n.reshape(x, to);
}

/// Without axes, all dims of size 1 go.
Values squeeze(NodeContext &n) {
  Value x = n.input(0);
  if (n.hasInput(1) && !n.isKnown(1))
    return {squeezeAtRuntime(n, x)};
  std::optional<Ints> axes = n.axes(1, n.rank(x));
  if (!axes)
    return {};
  if (!n.hasInput(1) && !n.has("axes"))
    for (auto [i, dim] : llvm::enumerate(n.dims(x))) {
      if (dim.isConstant(1))
        axes->push_back(i);
      else if (!dim.isConstant())
        n.shapes.assume(Expr::eq(Expr::eq(dim, n.expr(1)), n.expr(0))); // else the rank were another
    }
  return {n.squeeze(x, *axes)};
}

/// Axes are those of the result.
Values unsqueeze(NodeContext &n) {
  Value x = n.input(0);
  if (n.hasInput(1) && !n.isKnown(1))
    return {unsqueezeAtRuntime(n, x)};
  std::optional<Ints> given = n.hasInput(1) ? n.inputInts(1, "axes") : n.integers("axes");
  if (!given)
    return {n.fail(DiagId::MissingAttribute, "axes")};
  std::optional<Ints> axes = Ints();
  for (int64_t axis : *given) {
    std::optional<int64_t> normalized = n.normalizeAxis(axis, n.rank(x) + given->size());
    if (!normalized)
      return {};
    axes->push_back(*normalized);
  }
  return {n.unsqueeze(x, *axes)};
}

Values transpose(NodeContext &n) {
  Value x = n.input(0);
  Ints reversed;
  for (int64_t axis = n.rank(x); axis-- > 0;)
    reversed.push_back(axis);
  return {n.transpose(x, n.integers("perm", reversed))};
}

/// The attribute `blocksize`, if the tensor has blocks of it: rank 4, dims at `blocked` that are its multiples, or
/// those of its square where they are channels.
static std::optional<Expr> blockSizeOf(NodeContext &n, Value x, llvm::ArrayRef<int64_t> blocked) {
  int64_t size = n.integer("blocksize", 1);
  if (n.rank(x) != 4)
    return n.fail(DiagId::WrongRank, 0, n.rank(x), "4 is needed"), std::nullopt;
  if (size < 1 || size > 4096)
    return n.fail(DiagId::BadAttribute, "blocksize", size, "1 to 4096 is needed"), std::nullopt;
  for (int64_t axis : blocked) {
    Expr unit = n.expr(axis == 1 ? size * size : size), dim = n.dim(x, axis);
    if (!n.shapes.assumeEqual(dim.mod(unit), n.expr(0)))
      return n.fail(DiagId::DimMismatch, "dim " + std::to_string(axis) + " of input 0", dim, "what is needed",
                    "a multiple of " + unit.str()),
             std::nullopt;
  }
  return n.expr(size);
}

/// DCR: the depth is [block, block, channels]; CRD: [channels, block, block].
Values depthToSpace(NodeContext &n) {
  Value x = n.input(0);
  std::optional<Expr> size = blockSizeOf(n, x, {1});
  if (!size)
    return {};
  Expr b = *size;
  Expr batch = n.dim(x, 0), channels = n.dim(x, 1).floorDiv(b * b), height = n.dim(x, 2), width = n.dim(x, 3);
  bool isDcr = n.text("mode", "DCR") == "DCR";
  Value blocks = isDcr ? n.transpose(n.reshape(x, {batch, b, b, channels, height, width}), {0, 3, 4, 1, 5, 2})
                       : n.transpose(n.reshape(x, {batch, channels, b, b, height, width}), {0, 1, 4, 2, 5, 3});
  return {n.reshape(blocks, {batch, channels, height * b, width * b})};
}

Values spaceToDepth(NodeContext &n) {
  Value x = n.input(0);
  std::optional<Expr> size = blockSizeOf(n, x, {2, 3});
  if (!size)
    return {};
  Expr b = *size;
  Expr batch = n.dim(x, 0), channels = n.dim(x, 1), height = n.dim(x, 2).floorDiv(b), width = n.dim(x, 3).floorDiv(b);
  bool isDcr = n.text("mode", "DCR") == "DCR";
  Value blocks = n.transpose(n.reshape(x, {batch, channels, height, b, width, b}),
                             isDcr ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4});
  return {n.reshape(blocks, {batch, channels * b * b, height, width})};
}

//===----------------------------------------------------------------------===//
// Concat, split, slice
//===----------------------------------------------------------------------===//

Values concat(NodeContext &n) {
  std::optional<int64_t> axis = n.axis(n.rank(n.input(0)), 1);
  return {axis ? n.concat(n.allInputs(), *axis) : Value()};
}

/// Sizes of the parts: given, or as equal as can be with the last one smaller.
static std::optional<Dims> splitSizes(NodeContext &n, Expr dim, size_t count) {
  if (n.hasInput(1) && n.isKnown(1))
    return n.inputExprs(1, "split");
  if (n.hasInput(1)) {
    std::optional<Values> given = n.inputScalars(1, "split");
    if (!given)
      return std::nullopt;
    Dims sizes;
    for (Value size : *given)
      sizes.push_back(n.bind(size, dim));
    return sizes;
  }
  if (std::optional<Ints> sizes = n.integers("split"))
    return n.exprs(*sizes);
  Expr part = dim.ceilDiv(int64_t(count));
  if (n.has("num_outputs")) {
    Dims sizes(count, part);
    sizes.back() = n.shapes.simplify(dim - part * int64_t(count - 1));
    if (!n.shapes.isNonNegative(sizes.back()) && !n.shapes.assume(Expr::lt(n.expr(-1), sizes.back()))) {
      n.fail(DiagId::DimMismatch, "the split dim", dim, "too small for its number of parts", count);
      return std::nullopt;
    }
    return sizes;
  }
  if (!n.shapes.assumeEqual(dim.mod(int64_t(count)), n.expr(0))) {
    n.fail(DiagId::DimMismatch, "the split dim", dim, "the number of parts", count);
    return std::nullopt;
  }
  return Dims(count,
              n.shapes.divide(dim, n.expr(count)).numerator.floorDiv(n.shapes.divide(dim, n.expr(count)).denominator));
}

Values split(NodeContext &n) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.axis(n.rank(x), 0);
  if (!axis)
    return {};
  std::optional<Dims> sizes = splitSizes(n, n.dim(x, *axis), n.outputCount());
  if (!sizes)
    return {};
  Expr total = n.expr(0);
  Values parts;
  for (Expr size : *sizes) {
    if (n.shapes.range(size).max < 0)
      return {n.fail(DiagId::NegativeDim, *axis, size)};
    parts.push_back(n.sliceAxis(x, *axis, total, size));
    total = total + size;
  }
  if (!n.shapes.assumeEqual(total, n.dim(x, *axis)))
    return {n.fail(DiagId::DimMismatch, "the sum of the parts", total, "the split dim", n.dim(x, *axis))};
  return parts;
}

namespace {
struct SliceBounds {
  Expr start, size;
};
} // namespace

/// numpy's x[start:end:step] along a dim of `size` elements.
static SliceBounds sliceBounds(NodeContext &n, Expr start, Expr end, int64_t step, Expr size) {
  Expr zero = n.expr(0), one = n.expr(1);
  auto fromEnd = [&](Expr i) { return n.shapes.simplify(Expr::select(Expr::lt(i, zero), i + size, i)); };
  auto clamp = [&](Expr i, Expr low, Expr high) { return n.shapes.simplify(Expr::min(Expr::max(i, low), high)); };
  start = fromEnd(start);
  end = fromEnd(end);
  if (step > 0) {
    start = clamp(start, zero, size);
    end = clamp(end, zero, size);
    return {start, n.shapes.simplify(Expr::max((end - start).ceilDiv(step), zero))};
  }
  start = clamp(start, zero, size - one);
  end = clamp(end, -one, size - one);
  return {start, n.shapes.simplify(Expr::max((start - end).ceilDiv(-step), zero))};
}

namespace {
/// Bounds of a slice along one dim that are known only when the model runs: all of it on scalars. Nothing given means
/// the whole dim, which is what a slice along other dims leaves it.
struct RuntimeSlice {
  Value start, end, step;
};
} // namespace

/// x[start:end:step] along `axis`: as many elements as there are, from where they begin.
static Value sliceAtRuntime(NodeContext &n, Value x, int64_t axis, RuntimeSlice s) {
  Expr size = n.dim(x, axis);
  auto number = [&](Expr e) { return n.fromExprs(e, n.si64(), /*isScalar=*/true); };
  Value length = number(size), zero = n.scalar(0, n.si64()), one = n.scalar(1, n.si64());
  auto fromEnd = [&](Value i) { return n.select(n.less(i, zero), n.add(i, length), i); };
  auto clamp = [&](Value i, Value low, Value high) { return n.minimum(n.maximum(i, low), high); };
  Value isForward = n.less(zero, s.step), last = n.sub(length, one);
  Value low = n.select(isForward, zero, n.neg(one)), high = n.select(isForward, length, last);
  Value start = clamp(fromEnd(s.start), n.maximum(low, zero), high), end = clamp(fromEnd(s.end), low, high);
  Value span = n.select(isForward, n.sub(end, start), n.sub(start, end)), stride = n.abs(s.step);
  Value count = n.maximum(n.div(n.add(span, n.sub(stride, one)), stride), zero);
  Expr found = n.bind(count, size);
  if (std::optional<Ints> step = n.knownInts(s.step); step && step->front() == 1)
    return n.sliceAxis(x, axis, n.bind(n.maximum(start, zero), size), found);
  return n.gather(x, n.add(n.mul(n.iota(0, found, n.si64()), s.step), start), axis);
}

/// A vector of open length has as many elements as the operator takes.
static void assumeLength(NodeContext &n, size_t i, int64_t length) {
  Value x = n.optionalInput(i);
  if (n.rank(x) == 1 && !n.dim(x, 0).isConstant())
    n.shapes.assumeEqual(n.dim(x, 0), n.expr(length));
}

static Values sliceAtRuntime(NodeContext &n, Value x) {
  for (size_t i : {1, 2, 4})
    if (!n.hasInput(3)) // all axes
      assumeLength(n, i, n.rank(x));
  std::optional<Values> starts = n.inputScalars(1, "starts"), ends = n.inputScalars(2, "ends");
  std::optional<Values> steps = n.hasInput(4) ? n.inputScalars(4, "steps") : Values();
  std::optional<Values> axes = n.hasInput(3) ? n.inputScalars(3, "axes") : Values();
  if (!starts || !ends || !steps || !axes)
    return {};
  for (size_t i = axes->size(); i < starts->size() && !n.hasInput(3); ++i)
    axes->push_back(n.scalar(i, n.si64()));
  for (size_t i = steps->size(); i < starts->size() && !n.hasInput(4); ++i)
    steps->push_back(n.scalar(1, n.si64()));
  if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size())
    return {
        n.fail(DiagId::DimMismatch, "the number of starts", starts->size(), "that of ends, axes or steps", "another")};
  for (int64_t axis = 0, rank = n.rank(x); axis < rank; ++axis) {
    RuntimeSlice s{n.scalar(0, n.si64()), n.fromExprs(n.dim(x, axis), n.si64(), true), n.scalar(1, n.si64())};
    bool isSliced = false;
    for (size_t i = 0; i < axes->size(); ++i) {
      Value given = (*axes)[i];
      Value isThis =
          n.logicalOr(n.equal(given, n.scalar(axis, n.si64())), n.equal(given, n.scalar(axis - rank, n.si64())));
      std::optional<Ints> known = n.knownInts(isThis);
      if (known && !known->front())
        continue;
      isSliced = true;
      s = {n.select(isThis, (*starts)[i], s.start), n.select(isThis, (*ends)[i], s.end),
           n.select(isThis, (*steps)[i], s.step)};
    }
    if (isSliced)
      x = sliceAtRuntime(n, x, axis, s);
    if (!x)
      return {};
  }
  return {x};
}

/// Bounds are attributes up to version 1 and inputs from 10.
Values slice(NodeContext &n) {
  Value x = n.input(0);
  bool hasInputs = n.opset() >= 10;
  for (size_t i = 1; hasInputs && i < n.inputCount(); ++i)
    if (n.hasInput(i) && !n.isKnown(i))
      return sliceAtRuntime(n, x);
  auto given = [&](size_t i, llvm::StringRef name) -> std::optional<Dims> {
    if (hasInputs)
      return n.inputExprs(i, name);
    std::optional<Ints> values = n.integers(name);
    return values ? std::optional(n.exprs(*values)) : std::nullopt;
  };
  std::optional<Dims> starts = given(1, "starts"), ends = given(2, "ends");
  if (!starts || !ends)
    return {n.fail(DiagId::MissingAttribute, "starts and ends")};
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(starts->size())), steps(starts->size(), 1);
  if (hasInputs ? n.hasInput(3) : n.has("axes")) {
    std::optional<Ints> known = hasInputs ? n.inputInts(3, "axes") : n.integers("axes");
    if (!known)
      return {};
    axes = *known;
  }
  if (n.hasInput(4)) {
    std::optional<Ints> known = n.inputInts(4, "steps");
    if (!known)
      return {};
    steps = *known;
  }
  if (ends->size() != starts->size() || axes.size() != starts->size() || steps.size() != starts->size())
    return {
        n.fail(DiagId::DimMismatch, "the number of starts", starts->size(), "that of ends, axes or steps", "another")};
  Dims first(n.rank(x), n.expr(0)), dims = n.dims(x);
  Ints stride(n.rank(x), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    std::optional<int64_t> axis = n.normalizeAxis(axes[i], n.rank(x));
    if (!axis)
      return {};
    if (steps[i] == 0)
      return {n.fail(DiagId::DimMismatch, "input 4 (steps)", 0, "the least size of a step", 1)};
    SliceBounds bounds = sliceBounds(n, (*starts)[i], (*ends)[i], steps[i], n.dim(x, *axis));
    first[*axis] = bounds.start;
    dims[*axis] = bounds.size;
    stride[*axis] = steps[i];
  }
  return {n.slice(x, first, stride, dims)};
}

//===----------------------------------------------------------------------===//
// Pad, tile, expand
//===----------------------------------------------------------------------===//

/// Those of all dims, where only the run knows which dims are padded.
static std::optional<Dims> padsAtRuntime(NodeContext &n, Value x) {
  std::optional<Values> pads = n.inputScalars(1, "pads"), axes = n.inputScalars(3, "axes");
  if (!pads || !axes || pads->size() != 2 * axes->size())
    return std::nullopt;
  int64_t rank = n.rank(x);
  Dims all;
  for (size_t side : {size_t(0), axes->size()})
    for (int64_t dim = 0; dim < rank; ++dim) {
      Value amount = n.scalar(0, n.si64());
      for (auto [i, axis] : llvm::enumerate(*axes)) {
        Value isThis =
            n.logicalOr(n.equal(axis, n.scalar(dim, n.si64())), n.equal(axis, n.scalar(dim - rank, n.si64())));
        amount = n.select(isThis, (*pads)[side + i], amount);
      }
      all.push_back(n.bind(amount, {}, -(int64_t(1) << 31)));
    }
  return all;
}

/// pads = [begins..., ends...] of all dims, or of `axes`
Values pad(NodeContext &n) {
  Value x = n.input(0);
  std::optional<Dims> pads;
  bool hasOpenAxes = n.hasInput(1) && n.hasInput(3) && !n.isKnown(3);
  if (!n.hasInput(3))
    assumeLength(n, 1, 2 * n.rank(x));
  if (hasOpenAxes)
    pads = padsAtRuntime(n, x);
  else if (n.hasInput(1))
    pads = n.runtimeExprs(1, "pads");
  else if (std::optional<Ints> values = n.integers("pads"))
    pads = n.exprs(*values);
  if (!pads)
    return {n.fail(DiagId::MissingAttribute, "pads")};
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(n.rank(x)));
  if (n.hasInput(3) && !hasOpenAxes) {
    std::optional<Ints> given = n.inputInts(3, "axes");
    if (!given)
      return {};
    axes = *given;
  }
  if (pads->size() != 2 * axes.size())
    return {
        n.fail(DiagId::DimMismatch, "the number of pads", pads->size(), "twice the number of axes", 2 * axes.size())};
  Dims low(n.rank(x), n.expr(0)), high = low;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    std::optional<int64_t> normalized = n.normalizeAxis(axis, n.rank(x));
    if (!normalized)
      return {};
    low[*normalized] = (*pads)[i];
    high[*normalized] = (*pads)[i + axes.size()];
  }
  std::string mode = n.text("mode", "constant");
  std::optional<PadKind> kind = symbolizePadKind(mode);
  if (!kind)
    return {n.fail(DiagId::BadAttribute, "mode", "'" + mode + "'", "constant, edge, reflect or wrap is needed")};
  for (auto [i, before, after, dim] : llvm::enumerate(low, high, n.dims(x))) {
    bool hasSource = *kind == PadKind::Constant || n.shapes.isPositive(dim);
    if (!hasSource && !n.shapes.assume(Expr::max(Expr::lt(n.expr(0), dim), Expr::lt(before + after, n.expr(1)))))
      return {n.fail(DiagId::DimMismatch, "dim " + std::to_string(i), 0, "the least size that has a border", 1)};
  }
  Value value = n.hasInput(2) ? n.reshape(n.input(2), {}) : n.scalarLike(n.real("value", 0.0), x);
  return {n.pad(x, value, low, high, *kind)};
}

/// The middle of x where it is larger than `shape`, x in the middle of zeros where it is smaller.
Values centerCropPad(NodeContext &n) {
  Value x = n.input(0);
  std::optional<Dims> shape = n.runtimeExprs(1, "shape");
  if (!shape)
    return {};
  Ints axes = n.integers("axes", llvm::to_vector(llvm::seq<int64_t>(n.rank(x))));
  if (axes.size() != shape->size())
    return {n.fail(DiagId::DimMismatch, "the number of sizes", shape->size(), "that of axes", axes.size())};
  Dims kept = n.dims(x), starts(kept.size(), n.expr(0)), low = starts, high = starts;
  for (auto [axis, size] : llvm::zip_equal(axes, n.settle(*shape))) {
    std::optional<int64_t> i = n.normalizeAxis(axis, n.rank(x));
    if (!i)
      return {};
    if (n.shapes.range(size).max < 0)
      return {n.fail(DiagId::NegativeDim, *i, size)};
    Expr dim = kept[*i];
    auto half = [&](Expr difference) { return n.shapes.simplify(Expr::max(difference, n.expr(0)).floorDiv(2)); };
    starts[*i] = half(dim - size);
    kept[*i] = n.settle(Expr::min(dim, size));
    low[*i] = half(size - dim);
    high[*i] = n.shapes.simplify(size - kept[*i] - low[*i]);
  }
  Value cropped = n.slice(x, starts, Ints(kept.size(), 1), kept);
  return {n.pad(cropped, n.scalarLike(0, x), low, high)};
}

/// Each dim is repeated as a whole: [a] -> [1, a] -> [r, a] -> [r*a].
Values tile(NodeContext &n) {
  Value x = n.input(0);
  assumeLength(n, 1, n.rank(x));
  std::optional<Dims> repeats = n.runtimeExprs(1, "repeats");
  if (!repeats)
    return {};
  *repeats = n.settle(*repeats);
  if (int64_t(repeats->size()) != n.rank(x))
    return {n.fail(DiagId::DimMismatch, "the number of repeats", repeats->size(), "the rank", n.rank(x))};
  Dims wide, joined;
  Ints axes;
  for (auto [i, repeat, dim] : llvm::enumerate(*repeats, n.dims(x))) {
    if (n.shapes.range(repeat).max < 0)
      return {n.fail(DiagId::NegativeDim, i, repeat * dim)};
    if (!repeat.isConstant(1))
      wide.push_back(repeat);
    axes.push_back(wide.size());
    wide.push_back(dim);
    joined.push_back(repeat * dim);
  }
  return {n.reshape(n.broadcast(x, axes, wide), joined)};
}

Values expand(NodeContext &n) {
  Value x = n.input(0);
  std::optional<Dims> shape = n.runtimeExprs(1, "shape");
  if (!shape)
    return {};
  // A size that the run finds decides for dims that are or may be 1; others stay, and it must be the same or 1.
  Dims from = n.dims(x);
  for (size_t i = 0; i < shape->size(); ++i) {
    Expr &size = (*shape)[i];
    size_t missing = shape->size() > from.size() ? shape->size() - from.size() : 0;
    Expr own = i < missing ? n.expr(1) : from[i + from.size() - shape->size()];
    if (!n.shapes.isBoundInside(size))
      continue;
    if (own.isConstant(1) || (!own.isConstant() && n.shapes.range(own).min <= 1)) {
      size = n.settle(size);
      continue;
    }
    if (!n.shapes.assume(Expr::eq(size, own) + Expr::eq(size, n.expr(1))))
      return {n.fail(DiagId::Broadcast, n.describe(from), n.describe(*shape))};
    size = own;
  }
  std::optional<Dims> joint = n.broadcastDims(from, *shape);
  return {joint ? n.broadcastTo(x, *joint) : Value()};
}

//===----------------------------------------------------------------------===//
// Made from nothing
//===----------------------------------------------------------------------===//

Values constant(NodeContext &n) {
  if (n.has("value"))
    return {n.tensor("value")};
  if (n.has("value_float"))
    return {n.scalar(n.real("value_float", 0), n.f32())};
  if (n.has("value_int"))
    return {n.fromExprs(n.expr(n.integer("value_int", 0)), n.si64(), /*isScalar=*/true)};
  if (std::optional<llvm::SmallVector<double>> values = n.reals("value_floats"))
    return {n.floatVector(*values, n.f32())};
  if (std::optional<Ints> values = n.integers("value_ints"))
    return {n.intVector(*values)};
  if (n.has("value_string"))
    return {n.strings(n.text("value_string", ""), /*isScalar=*/true)};
  if (n.has("value_strings"))
    return {n.strings(n.texts("value_strings"))};
  return {n.fail(DiagId::MissingAttribute, "value")};
}

Values constantOfShape(NodeContext &n) {
  std::optional<Dims> shape = n.runtimeExprs(0, "shape");
  if (shape)
    *shape = n.settle(*shape);
  Value value = n.has("value") ? n.reshape(n.tensor("value"), {}) : n.scalar(0, n.f32());
  return {shape ? n.fill(value, *shape) : Value()};
}

/// start + i * delta for i < ceil((limit - start) / delta)
Values range(NodeContext &n) {
  Value start = n.reshape(n.input(0), {}), limit = n.reshape(n.input(1), {});
  bool hasDelta = n.hasInput(2) || n.opset() >= 11; // onnxruntime's own operator may leave it out
  Value delta = hasDelta ? n.reshape(n.input(2), {}) : n.scalarLike(1, start);
  Expr count;
  bool isKnown = true;
  for (Value bound : {start, limit, delta})
    isKnown &= n.knownFloats(bound) || n.knownExprs(bound);
  if (!isKnown) {
    Value steps = n.div(n.convert(n.sub(limit, start), n.f64()), n.convert(delta, n.f64()));
    Value found = n.maximum(n.unary<CeilOp>(steps), n.scalar(0, n.f64())), none = n.scalarLike(0, delta);
    Value steps0 = n.select(n.equal(delta, none), n.scalar(-1, n.si64()), n.convert(found, n.si64()));
    Expr size = n.bind(steps0, {}, -1);
    if (n.hasFailed())
      return {};
    GuardOp::create(n.getBuilder(), n.getLoc(), ExprAttr(Expr::lt(n.expr(-1), size)),
                    n.getBuilder().getStringAttr("input 2 (delta) is 0: the range has no end"));
    count = n.settle(Expr::max(size, n.expr(0)));
  } else if (n.isInteger(start)) {
    std::optional<Expr> from = n.inputExpr(0, "start"), to = n.inputExpr(1, "limit");
    std::optional<int64_t> by = hasDelta ? n.inputInt(2, "delta") : 1;
    if (!from || !to || !by)
      return {};
    if (*by == 0 || *by == INT64_MIN)
      return {n.fail(DiagId::DimMismatch, "input 2 (delta)", *by, "the limit", "out of reach")};
    Expr span = *by > 0 ? *to - *from : *from - *to;
    count = n.shapes.simplify(Expr::max(span.ceilDiv(std::abs(*by)), n.expr(0)));
  } else {
    // The count as a tensor expression, which folds to an expression over dims.
    Value steps = n.div(n.sub(limit, start), delta);
    if (auto from = n.knownFloats(start), to = n.knownFloats(limit), step = n.knownFloats(delta); from && to && step) {
      double size = std::ceil((to->front() - from->front()) / step->front());
      if (!(size < 1e9))
        return {n.fail(DiagId::DimMismatch, "input 2 (delta)", step->front(), "the limit", "out of reach")};
      count = n.expr(std::max(0.0, size));
    } else if (std::optional<Dims> known = n.knownExprs(n.unary<CeilOp>(steps))) {
      count = n.shapes.simplify(Expr::max(known->front(), n.expr(0)));
    } else {
      for (size_t i = 0; i < 3; ++i)
        if (!n.knownFloats(n.input(i)) && !n.inputExprs(i, i == 0 ? "start" : i == 1 ? "limit" : "delta"))
          return {};
      return {n.fail(DiagId::DataDependentShape, "the length of the range")};
    }
  }
  return {n.add(n.mul(n.iota(0, count, n.elementType(start)), delta), start)};
}

/// Keeps what lies on or above (`upper`) or on or below the k-th diagonal.
Values trilu(NodeContext &n) {
  Value x = n.input(0);
  int64_t rank = n.rank(x);
  if (rank < 2)
    return {n.fail(DiagId::WrongRank, 0, rank, "2 or more is needed")};
  Dims matrix = {n.dim(x, rank - 2), n.dim(x, rank - 1)};
  Value row = n.iota(0, matrix, n.si64()), column = n.iota(1, matrix, n.si64());
  Value diagonal = n.hasInput(1) ? n.add(row, n.reshape(n.input(1), {})) : row;
  Value kept = n.flag("upper", true) ? n.lessEqual(diagonal, column) : n.lessEqual(column, diagonal);
  return {n.select(kept, x, n.scalarLike(0, x))};
}

Values eyeLike(NodeContext &n) {
  Value x = n.input(0);
  Type type = n.has("dtype") ? n.typeAttribute("dtype") : n.elementType(x);
  if (!type || n.rank(x) != 2)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "a matrix is needed")};
  Value row = n.iota(0, n.dims(x), n.si64()), column = n.iota(1, n.dims(x), n.si64());
  return {n.convert(n.equal(n.add(row, double(n.integer("k", 0))), column), type)};
}

/// The first `sequence_lens[b]` elements along the time axis, reversed.
Values reverseSequence(NodeContext &n) {
  Value x = n.input(0), lengths = n.input(1);
  std::optional<int64_t> time = n.axis(n.rank(x), 0, "time_axis"), batch = n.axis(n.rank(x), 1, "batch_axis");
  if (!time || !batch)
    return {};
  Value position = n.iota(*time, n.dims(x), n.si64());
  Value length = n.broadcast(lengths, *batch, n.dims(x));
  Value mirrored = n.sub(n.sub(length, 1.0), position);
  return {n.gatherElements(x, n.select(n.less(position, length), mirrored, position), *time)};
}

} // namespace ptc::decomp
