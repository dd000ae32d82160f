//===- FusedNormalization.cpp - onnxruntime's normalisations --------------===//
//
// com.microsoft: a normalisation with the sums around it, as its transformer
// optimiser writes them. Statistics of narrow floats are computed in f32.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

namespace {

struct Normalized {
  Value y, mean, invStdDev;
};

} // namespace

static Value widened(NodeContext &n, Value x) {
  bool isNarrow = n.isFloat(x) && n.elementType(x).getIntOrFloatBitWidth() < 32;
  return isNarrow ? n.convert(x, n.f32()) : x;
}

/// (x - mean) / sqrt(variance + epsilon) over the last dim, or x / sqrt(mean(x^2) + epsilon). Of narrow floats in f32,
/// the result too.
static Normalized normalizeRows(NodeContext &n, Value x, double epsilon, bool isCentered) {
  int64_t last = n.rank(x) - 1;
  Value wide = widened(n, x), mean = isCentered ? n.mean(wide, last, true) : Value();
  Value centered = isCentered ? n.sub(wide, mean) : wide;
  Value invStdDev = n.rsqrt(n.add(n.mean(n.mul(centered, centered), last, true), epsilon));
  return {n.mul(centered, invStdDev), mean, invStdDev};
}

/// y * gamma + beta, in y's type; `beta` may be null.
static Value scaleAndShift(NodeContext &n, Value y, Value gamma, Value beta) {
  y = n.mul(y, n.convertLike(gamma, y));
  return beta ? n.add(y, n.convertLike(beta, y)) : y;
}

/// The sum of the input, the skipped values and a bias, then a normalisation. Nothing is rounded to a narrow float but
/// the results.
static Values skipNormalization(NodeContext &n, Value gamma, Value beta, Value bias, bool isCentered) {
  Value x = n.input(0);
  if (n.rank(x) < 1)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "rows are needed")};
  Value sum = n.add(widened(n, x), n.broadcastTo(widened(n, n.input(1)), n.dims(x)));
  if (bias)
    sum = n.add(sum, widened(n, bias));
  Normalized normal = normalizeRows(n, sum, n.real("epsilon", 1e-12), isCentered);
  Value y = scaleAndShift(n, normal.y, gamma, beta);
  return {n.convertLike(y, x), normal.mean, normal.invStdDev, n.convertLike(sum, x)};
}

Values skipLayerNormalization(NodeContext &n) {
  return skipNormalization(n, n.input(2), n.optionalInput(3), n.optionalInput(4), /*isCentered=*/true);
}
Values skipSimplifiedLayerNormalization(NodeContext &n) {
  return skipNormalization(n, n.input(2), {}, n.optionalInput(3), /*isCentered=*/false);
}

/// The RMS normalisation that onnxruntime puts into ONNX's own domain.
Values simplifiedLayerNormalization(NodeContext &n) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.axis(n.rank(x), -1);
  if (!axis)
    return {};
  if (*axis + 1 != n.rank(x))
    return {n.fail(DiagId::UnsupportedAttribute, "axis", *axis)};
  Normalized normal = normalizeRows(n, x, n.real("epsilon", 1e-5), /*isCentered=*/false);
  Value y = scaleAndShift(n, normal.y, n.input(1), {});
  return {n.convertLike(y, n.input(1)), normal.invStdDev};
}

/// The rows of three tables (words, positions, segments) that integers name, summed up and normalised.
Values embedLayerNormalization(NodeContext &n) {
  Value ids = n.input(0), segments = n.optionalInput(1), mask = n.optionalInput(7), positions = n.optionalInput(8);
  if (n.rank(ids) != 2)
    return {n.fail(DiagId::WrongRank, 0, n.rank(ids), "[batch, words] is needed")};
  Value rows = positions ? positions : n.iota(0, n.dim(ids, 1), n.elementType(ids));
  Value sum = n.add(widened(n, n.gather(n.input(2), ids, 0)), widened(n, n.gather(n.input(3), rows, 0)));
  if (segments)
    sum = n.add(sum, widened(n, n.gather(n.input(4), segments, 0)));
  Normalized normal = normalizeRows(n, sum, n.real("epsilon", 1e-12), /*isCentered=*/true);
  Value length; // of each sequence: the words that the mask keeps
  if (n.hasOutput(1))
    length = mask ? n.sum(n.convert(n.equal(mask, n.scalarLike(1, mask)), n.si32()), 1, false)
                  : n.fill(n.scalar(0, n.si32()), n.dim(ids, 0));
  Value y = scaleAndShift(n, normal.y, n.input(5), n.input(6));
  return {n.convertLike(y, n.input(2)), length, n.convertLike(sum, n.input(2))};
}

/// Channels in groups, x * sigmoid(x) after it where `activation` is 1, as `type`; channels stand last unless told
/// otherwise.
static Value normalizeGroups(NodeContext &n, Value x, Type type) {
  int64_t groups = n.integer("groups", 1), activation = n.integer("activation", 0);
  bool isLast = n.flag("channels_last", true);
  if (activation != 0 && activation != 1)
    return n.fail(DiagId::UnsupportedAttribute, "activation", activation);
  if (n.rank(x) < 3)
    return n.fail(DiagId::WrongRank, 0, n.rank(x), "images are needed");
  int64_t axis = isLast ? n.rank(x) - 1 : 1;
  Expr channels = n.dim(x, axis);
  if (groups < 1 || !n.shapes.assumeEqual(channels.mod(groups), n.expr(0)))
    return n.fail(DiagId::BadAttribute, "groups", groups, "it must divide the channels");
  Dims grouped = n.dims(x);
  grouped[axis] = n.shapes.simplify(channels.floorDiv(groups));
  grouped.insert(grouped.begin() + axis, n.expr(groups));
  Ints axes;
  for (int64_t i = 1; i < int64_t(grouped.size()); ++i)
    if (i != axis)
      axes.push_back(i);
  Value wide = n.reshape(widened(n, x), grouped);
  Value centered = n.sub(wide, n.mean(wide, axes, true));
  Value scale = n.rsqrt(n.add(n.mean(n.mul(centered, centered), axes, true), n.real("epsilon", 1e-5)));
  Value normal = n.reshape(n.mul(centered, scale), n.dims(x));
  Value gamma = n.convertLike(n.input(1), normal), beta = n.convertLike(n.input(2), normal);
  Dims dims = n.dims(x);
  Value y = n.add(n.mul(normal, n.broadcast(gamma, axis, dims)), n.broadcast(beta, axis, dims));
  return n.convert(activation ? n.mul(y, n.sigmoid(y)) : y, type);
}

Values groupNorm(NodeContext &n) { return {normalizeGroups(n, n.input(0), n.elementType(n.input(0)))}; }

/// The skipped values are images, or a vector of channels an image.
Values skipGroupNorm(NodeContext &n) {
  Value x = n.input(0), skip = n.input(3);
  if (!n.flag("channels_last", true))
    return {n.fail(DiagId::UnsupportedAttribute, "channels_last", 0)};
  if (n.rank(skip) == 2)
    skip = n.unsqueeze(skip, {1, 2});
  Value sum = n.add(widened(n, x), widened(n, skip));
  if (n.hasInput(4))
    sum = n.add(sum, widened(n, n.input(4)));
  return {normalizeGroups(n, sum, n.elementType(x)), n.convertLike(sum, x)};
}

/// softmax(x + bias): the bias lacks, or has as 1, dims in front of `axis` (inner) or of its own (outer), so it is
/// repeated for blocks of rows.
Values biasSoftmax(NodeContext &n) {
  Value x = n.input(0), bias = n.input(1);
  std::optional<int64_t> axis = n.axis(n.rank(x), 1);
  if (!axis)
    return {};
  Dims dims = n.dims(x);
  Expr columns = product(n.getContext(), llvm::ArrayRef(dims).drop_front(*axis));
  Expr rows = product(n.getContext(), llvm::ArrayRef(dims).take_front(*axis));
  Value y = n.add(widened(n, x), n.broadcastTo(widened(n, bias), dims));
  return {n.convertLike(n.reshape(n.softmax(n.reshape(y, {rows, columns}), 1), dims), x)};
}

} // namespace ptc::decomp
