//===- Regions.cpp - convolution and pooling at computed positions --------===//
//
// RoiAlign averages samples of a grid laid over each region, MaxRoiPool takes the
// largest pixel of each part of a region; DeformConv moves each
// tap of its window by an offset of its own. Both read between pixels: a position
// along an axis has two neighbours with weights that sum up to 1, so that a sample is
// a sum over the corners around it. A corner is one gather of all channels, which
// stand last for that.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Windows.h"
#include <array>

using namespace ptc::prim;

namespace ptc::decomp {

namespace {

/// A neighbour of positions along one axis.
struct Neighbour {
  Value index;  // si64, within the axis
  Value weight; // 0 where it does not count
};
using Neighbours = std::array<Neighbour, 2>;

} // namespace

static Value extentOf(NodeContext &n, Expr size, Type type) {
  return n.convert(n.fromExprs(size, n.si64(), /*isScalar=*/true), type);
}

static Value clampIndex(NodeContext &n, Value index, Value last) {
  return n.convert(n.minimum(n.maximum(index, n.scalarLike(0, index)), last), n.si64());
}

/// The row-major index of a pixel.
static Value pixelIndex(NodeContext &n, llvm::ArrayRef<Value> indices, llvm::ArrayRef<Expr> sizes) {
  Value result = indices.front();
  for (size_t i = 1; i < indices.size(); ++i)
    result = n.add(n.mul(result, n.fromExprs(sizes[i], n.si64(), /*isScalar=*/true)), indices[i]);
  return result;
}

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

/// Positions up to one pixel outside read the border; those farther away count as 0.
static Neighbours bordered(NodeContext &n, Value position, Expr size) {
  Value extent = extentOf(n, size, n.elementType(position)), last = n.add(extent, -1.0);
  Value isNear = n.logicalAnd(n.lessEqual(n.scalarLike(-1, position), position), n.lessEqual(position, extent));
  Value inside = n.minimum(n.maximum(position, n.scalarLike(0, position)), last);
  Value low = n.unary<FloorOp>(inside), one = n.scalarLike(1, low), zero = n.scalarLike(0, low);
  Value weight = n.sub(inside, low);
  return {Neighbour{clampIndex(n, low, last), n.select(isNear, n.sub(one, weight), zero)},
          Neighbour{clampIndex(n, n.add(low, 1.0), last), n.select(isNear, weight, zero)}};
}

namespace {
/// Samples along one axis.
struct Samples {
  Expr ratio;      // of a bin
  Value positions; // [regions, bins * ratio]
  // Where regions have ratios of their own, `ratio` being the largest:
  Value counts;  // [regions]
  Value isTaken; // [regions, bins * ratio]
};
} // namespace

/// `ratio` samples a bin; of 0, as many as a bin has pixels.
static Samples placeSamples(NodeContext &n, Value begin, Value end, int64_t bins, int64_t ratio, bool isHalfPixel) {
  double scale = n.real("spatial_scale", 1.0), shift = isHalfPixel ? -0.5 : 0.0;
  begin = n.add(n.mul(begin, scale), shift);
  Value length = n.sub(n.add(n.mul(end, scale), shift), begin);
  if (!isHalfPixel)
    length = n.maximum(length, n.scalarLike(1, length));
  Value bin = n.div(length, double(bins));
  Samples samples{.ratio = n.expr(ratio)};
  Value each = n.scalarLike(double(ratio), bin);
  if (ratio == 0) {
    each = n.maximum(n.unary<CeilOp>(bin), n.scalarLike(0, bin));
    samples.counts = each;
    Value most = n.reduce(ReduceKind::Max, n.concat({n.convert(each, n.si64()), n.intVector({0})}, 0), 0, false);
    samples.ratio = n.bind(most, {});
    each = n.unsqueeze(each, {1, 2});
  }
  // Sample s of bin b has the offset b * bin + (s + 0.5) * bin / ratio.
  Dims grid = {n.dim(begin, 0), n.expr(bins), samples.ratio}, flat = {grid[0], grid[1] * grid[2]};
  Type type = n.elementType(begin);
  Value offset = n.add(n.iota(1, grid, type), n.div(n.add(n.iota(2, grid, type), 0.5), each));
  samples.positions = n.add(n.unsqueeze(begin, 1), n.mul(n.reshape(offset, flat), n.unsqueeze(bin, 1)));
  if (samples.counts)
    samples.isTaken = n.reshape(n.less(n.iota(2, grid, type), each), flat);
  return samples;
}

/// What the samples of a bin make together; those that a region does not have count for nothing.
static Value poolSamples(NodeContext &n, Value sample, const Samples &rows, const Samples &columns, Dims grid,
                         bool isAverage) {
  Ints axes = {2, 4};
  if (!rows.counts) {
    sample = n.reshape(sample, grid);
    return isAverage ? n.mean(sample, axes, false) : n.reduce(ReduceKind::Max, sample, axes, /*keepDims=*/false);
  }
  Value isTaken = n.logicalAnd(n.unsqueeze(rows.isTaken, {2, 3}), n.unsqueeze(columns.isTaken, {1, 3}));
  Value otherwise = isAverage ? n.scalarLike(0, sample) : n.lowest(n.elementType(sample));
  sample = n.reshape(n.select(isTaken, sample, otherwise), grid);
  Value count = n.unsqueeze(n.mul(rows.counts, columns.counts), {1, 2, 3});
  if (isAverage)
    return n.div(n.sum(sample, axes, false), n.maximum(count, n.scalarLike(1, count)));
  Value most = n.reduce(ReduceKind::Max, sample, axes, /*keepDims=*/false), zero = n.scalarLike(0, most);
  return n.select(n.less(zero, count), most, zero);
}

Values roiAlign(NodeContext &n) {
  Value x = n.input(0), rois = n.input(1), batch = n.input(2);
  std::string mode = n.text("mode", "avg");
  std::string transform =
      n.text("coordinate_transformation_mode", n.opset() >= 16 ? "half_pixel" : "output_half_pixel");
  int64_t height = n.integer("output_height", 1), width = n.integer("output_width", 1);
  int64_t ratio = n.integer("sampling_ratio", 0);
  bool fits = n.rank(x) == 4 && n.rank(rois) == 2 && n.rank(batch) == 1 &&
              n.shapes.assumeEqual(n.dim(rois, 1), n.expr(4)) && n.shapes.assumeEqual(n.dim(rois, 0), n.dim(batch, 0));
  if (!fits)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "images [N, C, H, W] and regions [regions, 4] are needed")};
  if (mode != "avg" && mode != "max")
    return {n.fail(DiagId::BadAttribute, "mode", "'" + mode + "'", "avg or max is needed")};
  if (transform != "half_pixel" && transform != "output_half_pixel")
    return {n.fail(DiagId::BadAttribute, "coordinate_transformation_mode", "'" + transform + "'",
                   "half_pixel or output_half_pixel is needed")};
  constexpr int64_t most = 1 << 16;
  if (ratio < 0 || ratio > most)
    return {n.fail(DiagId::BadAttribute, "sampling_ratio", ratio, "0 to 65536 is needed")};
  if (height < 1 || width < 1 || height > most || width > most)
    return {n.fail(DiagId::BadAttribute, "output_height or output_width", height, "1 to 65536 is needed")};
  Expr regions = n.dim(rois, 0), channels = n.dim(x, 1), h = n.dim(x, 2), w = n.dim(x, 3);
  bool isHalfPixel = transform == "half_pixel";
  Samples ys = placeSamples(n, n.at(rois, 1, 1), n.at(rois, 1, 3), height, ratio, isHalfPixel);
  Samples xs = placeSamples(n, n.at(rois, 1, 0), n.at(rois, 1, 2), width, ratio, isHalfPixel);
  Value pixels = n.reshape(n.transpose(x, {0, 2, 3, 1}), {n.dim(x, 0) * h * w, channels});
  Value image = n.unsqueeze(n.wrapIndices(n.convert(batch, n.si64()), n.dim(x, 0)), {1, 2});
  Value sample;
  for (const Neighbour &row : bordered(n, ys.positions, h))
    for (const Neighbour &column : bordered(n, xs.positions, w)) {
      Value at = pixelIndex(n, {image, n.unsqueeze(row.index, 2), n.unsqueeze(column.index, 1)}, {n.dim(x, 0), h, w});
      Value weight = n.mul(n.unsqueeze(row.weight, 2), n.unsqueeze(column.weight, 1));
      Value part = n.mul(n.gather(pixels, at, 0), n.unsqueeze(weight, 3)); // [regions, ys, xs, channels]
      // `max` is over the weighted corners too, in onnxruntime and in the specification's reference.
      sample = !sample ? part : mode == "avg" ? n.add(sample, part) : n.maximum(sample, part);
    }
  Dims grid = {regions, n.expr(height), ys.ratio, n.expr(width), xs.ratio, channels};
  return {n.transpose(poolSamples(n, sample, ys, xs, grid, mode == "avg"), {0, 3, 1, 2})};
}

//===----------------------------------------------------------------------===//
// MaxRoiPool
//===----------------------------------------------------------------------===//

/// Which pixels of an axis belong to which bins of which regions: [regions, bins, size].
static Value binMask(NodeContext &n, Value begin, Value end, int64_t bins, Expr size) {
  auto rounded = [&](Value v) { // halves away from zero
    v = n.mul(v, n.real("spatial_scale", 1.0));
    Value half = n.scalarLike(0.5, v), zero = n.scalarLike(0, v);
    return n.unary<TruncOp>(n.add(v, n.select(n.less(v, zero), n.neg(half), half)));
  };
  begin = rounded(begin);
  Value length = n.add(n.sub(rounded(end), begin), 1.0);
  Value bin = n.unsqueeze(n.div(n.maximum(length, n.scalarLike(1, length)), double(bins)), {1, 2});
  Dims dims = {n.dim(begin, 0), n.expr(bins), n.expr(1)}, all = {dims[0], dims[1], size};
  Type type = n.elementType(begin);
  Value number = n.iota(1, dims, type), origin = n.unsqueeze(begin, {1, 2});
  Value first = n.add(n.unary<FloorOp>(n.mul(number, bin)), origin);
  Value last = n.add(n.unary<CeilOp>(n.mul(n.add(number, 1.0), bin)), origin);
  Value pixel = n.iota(2, all, type);
  return n.logicalAnd(n.lessEqual(first, pixel), n.less(pixel, last));
}

/// The largest pixel of each bin of each region; 0 where a bin has none.
Values maxRoiPool(NodeContext &n) {
  Value x = n.input(0), rois = n.input(1);
  Ints pooled = n.integers("pooled_shape", {});
  if (n.rank(x) != 4 || n.rank(rois) != 2 || !n.shapes.assumeEqual(n.dim(rois, 1), n.expr(5)))
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "images [N, C, H, W] and regions [regions, 5] are needed")};
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1 || pooled[0] > 1 << 16 || pooled[1] > 1 << 16)
    return {n.fail(DiagId::BadAttribute, "pooled_shape", pooled.size(), "two numbers from 1 to 65536 are needed")};
  Value wide = n.elementType(rois).getIntOrFloatBitWidth() < 32 ? n.convert(rois, n.f32()) : rois;
  auto column = [&](int64_t i) { return n.at(wide, 1, i); };
  Value image = n.wrapIndices(n.convert(column(0), n.si64()), n.dim(x, 0));
  Value pixels = n.gather(x, image, 0), least = n.lowest(n.elementType(x)); // [regions, C, H, W]
  Value rows = binMask(n, column(2), column(4), pooled[0], n.dim(x, 2));
  Value columns = binMask(n, column(1), column(3), pooled[1], n.dim(x, 3));
  // Along rows first: [regions, C, H, bins, W], then [regions, C, bins, H, bins].
  Value across = n.select(n.unsqueeze(columns, {1, 2}), n.unsqueeze(pixels, {3}), least);
  across = n.reduce(ReduceKind::Max, across, {4}, /*keepDims=*/false);
  Value down = n.select(n.unsqueeze(rows, {1, 4}), n.unsqueeze(across, {2}), least);
  down = n.reduce(ReduceKind::Max, down, {3}, /*keepDims=*/false);
  auto isAny = [&](Value mask) { return n.reduce(ReduceKind::Any, mask, {2}, /*keepDims=*/false); };
  Value isFilled = n.logicalAnd(n.unsqueeze(isAny(rows), {1, 3}), n.unsqueeze(isAny(columns), {1, 2}));
  return {n.select(isFilled, down, n.scalarLike(0, down))};
}

//===----------------------------------------------------------------------===//
// DeformConv
//===----------------------------------------------------------------------===//

/// Neighbours outside count as 0, each for itself.
static Neighbours zeroPadded(NodeContext &n, Value position, Expr size) {
  Value last = n.add(extentOf(n, size, n.elementType(position)), -1.0);
  Value low = n.unary<FloorOp>(position), high = n.add(low, 1.0), weight = n.sub(position, low);
  auto neighbour = [&](Value index, Value share) -> Neighbour {
    Value isInside = n.logicalAnd(n.lessEqual(n.scalarLike(0, index), index), n.lessEqual(index, last));
    return {clampIndex(n, index, last), n.select(isInside, share, n.scalarLike(0, share))};
  };
  return {neighbour(low, n.sub(n.scalarLike(1, weight), weight)), neighbour(high, weight)};
}

namespace {

/// What the taps of all windows read: [N, offset groups, taps * positions, channels / offset groups].
class MovedTaps {
public:
  MovedTaps(NodeContext &n, const PlacedWindow &window, int64_t groups) : n(n), window(window), groups(groups) {
    x = n.input(0);
    taps = product(n.getContext(), n.exprs(window.size));
    positions = product(n.getContext(), window.resultDims);
  }

  Value read() {
    Dims dims = n.dims(x), sizes(dims.begin() + 2, dims.end());
    Expr pixels = product(n.getContext(), sizes), channels = dims[1].floorDiv(groups);
    Value last = n.transpose(n.reshape(x, {dims[0], n.expr(groups), channels, pixels}), {0, 1, 3, 2});
    llvm::SmallVector<Neighbours> axes;
    for (auto [axis, size] : llvm::enumerate(sizes))
      axes.push_back(zeroPadded(n, position(axis), size));
    Value result;
    for (size_t corner = 0; corner < size_t(1) << axes.size(); ++corner) {
      Values indices;
      Value weight;
      for (auto [axis, neighbours] : llvm::enumerate(axes)) {
        const Neighbour &neighbour = neighbours[corner >> axis & 1];
        indices.push_back(neighbour.index);
        weight = weight ? n.mul(weight, neighbour.weight) : neighbour.weight;
      }
      Value taken = n.gatherNd(last, n.unsqueeze(pixelIndex(n, indices, sizes), 3), 2);
      taken = n.mul(taken, n.unsqueeze(weight, 3));
      result = result ? n.add(result, taken) : taken;
    }
    if (Value mask = n.optionalInput(4))
      result = n.mul(result, n.reshape(mask, {dims[0], n.expr(groups), taps * positions, n.expr(1)}));
    return result;
  }

  Expr taps, positions;

private:
  /// p * stride - pad + k * dilation + the tap's offset, for all taps k and positions p.
  Value position(int64_t axis) {
    int64_t spatial = window.size.size();
    Dims split = {n.dim(x, 0), n.expr(groups)};
    for (int64_t size : window.size)
      split.push_back(n.expr(size));
    split.push_back(n.expr(spatial));
    llvm::append_range(split, window.resultDims);
    Value offset = n.at(n.reshape(n.input(2), split), 2 + spatial, axis);
    Dims all = n.dims(offset);
    Type type = n.elementType(offset);
    Value base = n.add(n.mul(n.iota(2 + axis, all, type), double(window.dilations[axis])),
                       n.mul(n.iota(2 + spatial + axis, all, type), double(window.strides[axis])));
    Value moved = n.sub(n.add(base, offset), n.convert(n.fromExprs(window.low[axis], n.si64(), true), type));
    return n.reshape(moved, {n.dim(x, 0), n.expr(groups), taps * positions});
  }

  NodeContext &n;
  const PlacedWindow &window;
  int64_t groups;
  Value x;
};

} // namespace

/// What the taps read is a matrix an image and group, its product with the weights the result.
Values deformConv(NodeContext &n) {
  Value x = n.input(0), w = n.input(1), bias = n.optionalInput(3);
  std::optional<Ints> size = windowSize(n, x, w);
  std::optional<PlacedWindow> window = size ? placeWindow(n, x, *size) : std::nullopt;
  int64_t groups = n.integer("group", 1), offsetGroups = n.integer("offset_group", 1);
  if (!window)
    return {};
  if (window->size.size() > 4) // a sample has 2 corners a dim
    return {n.fail(DiagId::UnsupportedForm,
                   "a deformable convolution of " + std::to_string(window->size.size()) + " dims")};
  Expr images = n.dim(x, 0), channels = n.dim(x, 1), zero = n.expr(0);
  bool divides = groups > 0 && n.shapes.assumeEqual(n.dim(w, 0).mod(groups), zero) &&
                 n.shapes.assumeEqual(channels, n.dim(w, 1) * groups);
  if (!divides)
    return {n.fail(DiagId::BadAttribute, "group", groups, "it must divide the channels")};
  if (offsetGroups < 1 || !n.shapes.assumeEqual(channels.mod(offsetGroups), zero))
    return {n.fail(DiagId::BadAttribute, "offset_group", offsetGroups, "it must divide the channels")};
  MovedTaps moved(n, *window, offsetGroups);
  Expr perOffset = channels.floorDiv(offsetGroups), perGroup = n.dim(w, 1), results = n.dim(w, 0).floorDiv(groups);
  Value columns = n.reshape(moved.read(), {images, n.expr(offsetGroups), moved.taps, moved.positions, perOffset});
  columns = n.transpose(columns, {0, 1, 4, 2, 3}); // channels, then taps, as the weights have them
  columns = n.reshape(columns, {images, n.expr(groups), perGroup * moved.taps, moved.positions});
  Value y = n.matmul(n.reshape(w, {n.expr(groups), results, perGroup * moved.taps}), columns);
  Dims dims = {images, n.dim(w, 0)};
  llvm::append_range(dims, window->resultDims);
  y = n.reshape(y, dims);
  return {bias ? n.add(y, n.broadcast(bias, 1, dims)) : y};
}

} // namespace ptc::decomp
