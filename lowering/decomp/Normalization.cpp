//===- Normalization.cpp - batch, layer, group, instance, local -----------===//
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Unrounded.h"

using namespace ptc::prim;

namespace ptc::decomp {

/// A vector over the channels (dim 1) of x.
static Value perChannel(NodeContext &n, Value vector, Value x) {
  Ints axes;
  for (int64_t i = 0; i + 2 < n.rank(x); ++i)
    axes.push_back(i + 1);
  return n.unsqueeze(vector, axes); // [C, 1, 1, ...]
}

static Value variance(NodeContext &n, Value centered, llvm::ArrayRef<int64_t> axes) {
  return n.mean(n.mul(centered, centered), axes, /*keepDims=*/true);
}

static bool isSource(Value x) { return x.getDefiningOp<ConstantOp>() || x.getDefiningOp<WeightOp>(); }

/// The statistics that a later run starts with, in the type of those `before`.
static Value runningOf(NodeContext &n, Value before, Value now, double momentum) {
  Type type = isNarrow(n, before) || n.elementType(now).isF64() ? n.elementType(now) : n.elementType(before);
  Value kept = n.mul(n.convert(before, type), momentum);
  return n.convertLike(n.add(kept, n.mul(n.convert(now, type), 1 - momentum)), before);
}

/// Inference: x * s + (B - mean * s) with s = scale / sqrt(var + epsilon), so that the vectors fold: of what is known
/// in f64, since one error of s is that of a whole channel. Narrow floats are multiplied in f32, with s not rounded to
/// them. Training (from version 14): the statistics are those of the batch, and running ones are updated.
Values batchNormalization(NodeContext &n) {
  Value x = n.input(0), scale = n.input(1), bias = n.input(2), mean = n.input(3), var = n.input(4);
  double epsilon = n.real("epsilon", 1e-5), momentum = n.real("momentum", 0.9);
  Values outputs;
  if (n.opset() < 7 && !n.flag("is_test"))
    return {n.fail(DiagId::UnsupportedAttribute, "is_test", 0)};
  bool isPerElement = n.rank(x) < 2 || (n.opset() < 9 && !n.flag("spatial", true)); // of a sample
  for (unsigned i = 1; i <= 4 && !isPerElement; ++i)
    if (n.rank(n.input(i)) == 1)
      if (Expr length = n.dims(n.input(i))[0], channels = n.dims(x)[1];
          length.isConstant() && channels.isConstant() && length != channels)
        return {n.fail(DiagId::DimMismatch, "dim 0 of input " + llvm::Twine(i), length, "dim 1 of input 0", channels)};
  Value wide = isNarrow(n, x) ? unrounded(n, x, n.f32()) : x;
  if (n.flag("training_mode")) {
    Ints axes = {0};
    for (int64_t i = 2; i < n.rank(x); ++i)
      axes.push_back(i);
    Dims channels = n.dims(mean);
    Value batchMean = n.mean(wide, axes, true);
    Value batchVar = n.reshape(variance(n, n.sub(wide, batchMean), axes), channels);
    batchMean = n.reshape(batchMean, channels);
    outputs = {{}, runningOf(n, mean, batchMean, momentum), runningOf(n, var, batchVar, momentum)};
    mean = batchMean; // as they are: running ones may be rounded to less
    var = batchVar;
  }
  bool isExact = llvm::all_of(Values{scale, bias, mean, var}, isSource) ||
                 llvm::any_of(Values{x, scale, mean}, [&](Value value) { return n.elementType(value).isF64(); });
  Type exact = isExact ? n.f64() : n.f32();
  for (Value *vector : {&scale, &bias, &mean, &var})
    *vector = n.convert(*vector, exact);
  Value s = n.mul(scale, n.rsqrt(n.add(var, epsilon)));
  Value shift = n.sub(bias, n.mul(mean, s));
  s = n.convertLike(s, wide);
  shift = n.convertLike(shift, wide);
  if (!isPerElement) {
    s = perChannel(n, s, x);
    shift = perChannel(n, shift, x);
  }
  Value y = unrounded(n, n.add(n.mul(wide, s), shift), n.elementType(x));
  outputs.resize(std::max<size_t>(outputs.size(), 1));
  outputs[0] = y;
  return outputs;
}

/// Groups of channels that a reshape made channels of, as dims [batch, groups, channels of a group, spatial dims...]
/// again, for memory to run along them in any order; x itself if it is nothing of the kind.
static Value splitGroups(NodeContext &n, Value x) {
  auto view = x.getDefiningOp<prim::ReshapeOp>();
  if (!view || n.rank(x) != 3 || n.rank(view.getX()) < 3)
    return x;
  Dims dims = n.dims(view.getX());
  std::optional<int64_t> channels = dims[1].asConstant(), groups = n.dim(x, 1).asConstant();
  if (!channels || !groups || *groups <= 0 || *channels % *groups != 0 || dims[0] != n.dim(x, 0))
    return x;
  dims[1] = n.expr(*channels / *groups);
  dims.insert(dims.begin() + 1, n.expr(*groups));
  return n.reshape(view.getX(), dims);
}

/// Each channel of each sample over its spatial dims.
Values instanceNormalization(NodeContext &n) {
  Value x = splitGroups(n, n.input(0));
  Ints axes;
  for (int64_t i = 2; i < n.rank(x); ++i)
    axes.push_back(i);
  Value centered = n.sub(x, n.mean(x, axes, true));
  Value scale = n.rsqrt(n.add(variance(n, centered, axes), n.real("epsilon", 1e-5)));
  Value y = n.add(n.mul(n.mul(centered, scale), perChannel(n, n.input(1), x)), perChannel(n, n.input(2), x));
  return {n.reshape(y, n.dims(n.input(0)))};
}

/// stash_type: the statistics of narrow floats are computed in f32. What is made of them need not be rounded before it
/// is scaled.
static Value stashed(NodeContext &n, Value x) {
  return isNarrow(n, x) && n.integer("stash_type", 1) == 1 ? n.convert(x, n.f32()) : x;
}

static Ints axesFrom(int64_t axis, int64_t rank) { return llvm::to_vector(llvm::seq<int64_t>(axis, rank)); }

/// The mean is subtracted first: fma(x, s, -mean * s) errs 0.8 times as much in f32 where the mean of a row is 0,
/// but 1.2 times where it is three standard deviations, and 1.4 times where it is ten.
Values layerNormalization(NodeContext &n) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.axis(n.rank(x), -1);
  if (!axis)
    return {};
  Ints axes = axesFrom(*axis, n.rank(x));
  Value wide = stashed(n, x);
  Value mean = n.mean(wide, axes, true);
  Value centered = n.sub(wide, mean);
  Value invStdDev = n.rsqrt(n.add(variance(n, centered, axes), n.real("epsilon", 1e-5)));
  Value y = n.mul(unrounded(n, n.mul(centered, invStdDev), n.elementType(x)), n.input(1));
  if (n.hasInput(2))
    y = n.add(y, n.input(2));
  bool isStashed = n.integer("stash_type", 1) == 1; // the type of the statistics
  return {y, isStashed ? n.convert(mean, n.f32()) : mean, isStashed ? n.convert(invStdDev, n.f32()) : invStdDev};
}

/// x / sqrt(mean(x^2) + epsilon) * scale
Values rmsNormalization(NodeContext &n) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.axis(n.rank(x), -1);
  if (!axis)
    return {};
  Value wide = stashed(n, x);
  Value scale = n.rsqrt(n.add(variance(n, wide, axesFrom(*axis, n.rank(x))), n.real("epsilon", 1e-5)));
  Value y = unrounded(n, n.mul(wide, scale), n.elementType(x)), factor = n.input(1);
  Type mine = n.elementType(y), other = n.elementType(factor);
  if (mine != other) { // the wider of both; the result has x's, as ONNX's inference and reference have it
    unsigned width = mine.getIntOrFloatBitWidth(), otherWidth = other.getIntOrFloatBitWidth();
    Type common = width == otherWidth ? n.f32() : width < otherWidth ? other : mine;
    y = n.convert(y, common);
    factor = n.convert(factor, common);
  }
  return {n.convert(n.mul(y, factor), mine)};
}

/// Channels in groups; scale and bias belong to groups in version 18 and to channels from 21.
Values groupNormalization(NodeContext &n) {
  Value x = n.input(0), scale = n.input(1), bias = n.input(2);
  int64_t groups = n.integer("num_groups", 1);
  Expr channels = n.dim(x, 1);
  if (n.rank(x) < 2 || groups <= 0 || !n.shapes.assumeEqual(channels.mod(groups), n.expr(0)))
    return {n.fail(DiagId::BadAttribute, "num_groups", groups, "it must divide the channels")};
  Dims grouped = n.dims(x);
  grouped[1] = channels.floorDiv(groups);
  grouped.insert(grouped.begin() + 1, n.expr(groups));
  Value wide = n.reshape(stashed(n, x), grouped);
  Ints axes = axesFrom(2, grouped.size());
  Value centered = n.sub(wide, n.mean(wide, axes, true));
  Value normal = n.mul(centered, n.rsqrt(n.add(variance(n, centered, axes), n.real("epsilon", 1e-5))));
  normal = unrounded(n, n.reshape(normal, n.dims(x)), n.elementType(x));
  if (n.opset() < 21) {
    auto spread = [&](Value v) { // [groups] -> [channels]
      return n.reshape(n.broadcast(v, 0, {n.expr(groups), channels.floorDiv(groups)}), channels);
    };
    scale = spread(scale);
    bias = spread(bias);
  }
  return {n.add(n.mul(normal, perChannel(n, scale, x)), perChannel(n, bias, x))};
}

/// (x - mean) / (standard deviation + 1e-9); f16 does not hold the small number, so that narrow floats are computed in
/// f32.
Values meanVarianceNormalization(NodeContext &n) {
  Value x = n.input(0), wide = stashed(n, x);
  std::optional<Ints> axes = n.axes(1, n.rank(x));
  if (!axes)
    return {};
  if (axes->empty())
    for (int64_t axis : {0, 2, 3})
      if (n.normalizeAxis(axis, n.rank(x)))
        axes->push_back(axis);
  Value centered = n.sub(wide, n.mean(wide, *axes, true));
  Value deviation = n.sqrt(variance(n, centered, *axes));
  return {n.convertLike(n.div(centered, n.add(deviation, 1e-9)), x)};
}

/// x / |x|_p along an axis
Values lpNormalization(NodeContext &n) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.axis(n.rank(x), -1);
  int64_t p = n.integer("p", 2);
  if (!axis || (p != 1 && p != 2))
    return {n.fail(DiagId::BadAttribute, "p", p, "1 or 2 is needed")};
  Value norm = p == 1 ? n.sum(n.abs(x), *axis, true) : n.sqrt(n.sum(n.mul(x, x), *axis, true));
  Value isZero = n.equal(norm, n.scalarLike(0, norm));
  return {n.select(isZero, n.scalarLike(0, x), n.div(x, norm))};
}

/// x / (bias + alpha/size * sum of squares over `size` neighbouring channels)^beta
Values lrn(NodeContext &n) {
  Value x = n.input(0);
  int64_t size = n.integer("size", 1);
  if (n.rank(x) < 2 || size < 1)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "2 or more is needed")};
  Dims dims = n.dims(x);
  Expr inner = product(n.getContext(), llvm::ArrayRef(dims).drop_front(2));
  Value squares = n.reshape(n.mul(x, x), {dims[0], n.expr(1), dims[1], inner});
  PrimBuilder::Window window{{size, 1}, {1, 1}, {1, 1}, n.exprs({(size - 1) / 2, 0}), {dims[1], inner}};
  Value total = n.reshape(n.windowReduce(ReduceKind::Sum, squares, window), dims);
  Value base = n.add(n.mul(total, n.real("alpha", 1e-4) / size), n.real("bias", 1.0));
  return {n.div(x, n.binary<PowOp>(base, n.scalarLike(n.real("beta", 0.75), x)))};
}

} // namespace ptc::decomp
