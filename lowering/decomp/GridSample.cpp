//===- GridSample.cpp - interpolation at given coordinates ----------------===//
//
// grid [N, out..., r] holds coordinates in [-1, 1] per result element, x first (the
// last spatial dim of the input comes first). A coordinate becomes a position:
//
//   align_corners  (c + 1) / 2 * (size - 1)        else  ((c + 1) * size - 1) / 2
//
// and the result is the weighted sum over the corners around it: one (nearest), two
// (linear) or four (cubic) along each axis, so their product over all axes. Each
// corner is a gather of whole channels from the input with channels last, by one
// index over all spatial dims: row by row, which is where the pixel lies in memory.
//
// Positions outside: `border` clamps them, `reflection` folds them back, `zeros`
// multiplies the corner's weight by 0.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

namespace {

/// Element indices along one axis, with the weight and the validity of each.
struct Corner {
  Value index;    // an integer, within the input
  Value weight;   // a float, or null for 1
  Value isInside; // i1, or null for always
};

class Sampler {
public:
  Sampler(NodeContext &n, std::string mode, std::string padding, bool alignCorners, Type indexType)
      : n(n), mode(std::move(mode)), padding(std::move(padding)), alignCorners(alignCorners), indexType(indexType) {}

  llvm::SmallVector<Corner> corners(Value coordinate, Expr size) {
    Value extent = n.convert(n.fromExprs(size, n.si64(), true), n.elementType(coordinate));
    Value shifted = n.add(coordinate, 1.0), position;
    if (alignCorners)
      position = n.mul(n.mul(shifted, 0.5), n.add(extent, -1.0));
    else
      position = n.mul(n.add(n.mul(shifted, extent), -1.0), 0.5);
    if (mode == "nearest")
      return {corner(n.unary<RoundOp>(reflectedIf(position, extent)), {}, extent)};
    if (mode == "linear") {
      position = padding == "border" ? clamped(position, extent) : reflectedIf(position, extent);
      Value low = n.unary<FloorOp>(position), weight = n.sub(position, low);
      return {corner(low, n.sub(n.scalarLike(1, weight), weight), extent), corner(n.add(low, 1.0), weight, extent)};
    }
    Value low = n.unary<FloorOp>(position), offset = n.sub(position, low);
    llvm::SmallVector<Corner> result;
    for (int64_t k = -1; k <= 2; ++k)
      result.push_back(
          corner(reflectedIf(n.add(low, double(k)), extent), cubicWeight(n.add(offset, double(-k))), extent));
    return result;
  }

private:
  Value clamped(Value p, Value extent) { return n.minimum(n.maximum(p, n.scalarLike(0, p)), n.add(extent, -1.0)); }

  /// Folded back at the borders as often as needed: a triangle wave.
  Value reflectedIf(Value p, Value extent) {
    if (padding != "reflection")
      return p;
    double origin = alignCorners ? 0.0 : -0.5;
    Value span = alignCorners ? n.maximum(n.add(extent, -1.0), n.scalarLike(1, extent)) : extent;
    Value period = n.mul(span, 2.0);
    Value inside = n.binary<ModOp>(n.add(p, -origin), period); // in [0, period)
    Value folded = n.minimum(inside, n.sub(period, inside));
    return clamped(n.add(folded, origin), extent);
  }

  Corner corner(Value index, Value weight, Value extent) {
    Value isInside;
    if (padding == "zeros") {
      Value last = n.add(extent, -1.0);
      isInside = n.logicalAnd(n.lessEqual(n.scalarLike(0, index), index), n.lessEqual(index, last));
    }
    return {n.convert(clamped(index, extent), indexType), weight, isInside};
  }

  /// The cubic convolution kernel with a = -0.75
  Value cubicWeight(Value distance) {
    constexpr double a = -0.75;
    Value x = n.abs(distance);
    Value inner = n.add(n.mul(n.mul(n.add(n.mul(x, a + 2), -(a + 3)), x), x), 1.0);
    Value outer = n.add(n.mul(n.add(n.mul(n.add(n.mul(x, a), -5 * a), x), 8 * a), x), -4 * a);
    return n.select(n.lessEqual(x, n.scalarLike(1, x)), inner, outer);
  }

  NodeContext &n;
  std::string mode, padding;
  bool alignCorners;
  Type indexType;
};

} // namespace

Values gridSample(NodeContext &n) {
  Value x = n.input(0), grid = n.input(1);
  if (n.isComplex(x))
    return n.byParts(gridSample);
  bool isWide = n.elementType(x).isF64() || n.elementType(grid).isF64();
  grid = n.convert(grid, isWide ? n.f64() : n.f32());
  int64_t spatial = n.rank(x) - 2;
  std::string mode = n.text("mode", "linear"), padding = n.text("padding_mode", "zeros");
  mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  if (spatial < 1 || n.rank(grid) != n.rank(x) || !n.shapes.assumeEqual(n.dim(grid, n.rank(grid) - 1), n.expr(spatial)))
    return {
        n.fail(DiagId::WrongRank, 1, n.rank(grid), "the rank of input 0 is needed, and one coordinate a spatial dim")};
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return {n.fail(DiagId::BadAttribute, "mode", "'" + mode + "'", "nearest, linear or cubic is needed")};
  if (n.isString(x) && mode != "nearest")
    return {n.fail(DiagId::UnsupportedForm, "interpolation between strings")};
  Type type = n.elementType(x);
  if (mode != "nearest" && !n.isFloat(x)) // weights are fractions
    x = n.convert(x, type.getIntOrFloatBitWidth() > 16 ? n.f64() : n.f32());
  Expr pixels = product(n.getContext(), llvm::ArrayRef(n.dims(x)).drop_front(2));
  bool isShort = n.shapes.range(pixels).max <= std::numeric_limits<int32_t>::max();
  Type indexType = isShort ? n.si32() : n.si64();
  Sampler sampler(n, mode, padding, n.flag("align_corners"), indexType);

  // Channels last, so that one index takes all channels.
  Ints toFirst = {0, n.rank(x) - 1};
  for (int64_t i = 0; i < spatial; ++i)
    toFirst.push_back(1 + i);
  Value channelsLast = n.transpose(n.reshape(x, {n.dim(x, 0), n.dim(x, 1), pixels}), {0, 2, 1});
  llvm::SmallVector<llvm::SmallVector<Corner>> axes;
  for (int64_t i = 0; i < spatial; ++i)
    axes.push_back(sampler.corners(n.at(grid, n.rank(grid) - 1, spatial - 1 - i), n.dim(x, 2 + i)));

  size_t taps = axes.front().size(), combinations = 1;
  for (int64_t i = 0; i < spatial; ++i)
    combinations *= taps;
  Value result;
  for (size_t combination = 0; combination < combinations; ++combination) {
    Value pixel, weight, isInside;
    size_t rest = combination;
    for (int64_t i = 0; i < spatial; ++i, rest /= taps) {
      const Corner &c = axes[i][rest % taps];
      pixel = pixel ? n.add(n.mul(pixel, n.fromExprs(n.dim(x, 2 + i), indexType, true)), c.index) : c.index;
      if (c.weight)
        weight = weight ? n.mul(weight, c.weight) : c.weight;
      if (c.isInside)
        isInside = isInside ? n.logicalAnd(isInside, c.isInside) : c.isInside;
    }
    Value taken = n.gatherNd(channelsLast, n.unsqueeze(pixel, n.rank(grid) - 1), 1);
    if (!taken)
      return {};
    int64_t last = n.rank(taken) - 1;
    if (weight)
      taken = n.mul(taken, n.convertLike(n.unsqueeze(weight, last), taken));
    if (isInside)
      taken = n.select(n.unsqueeze(isInside, last), taken, n.scalarLike(0, taken));
    result = result ? n.add(result, taken) : taken;
  }
  return {n.convert(n.transpose(result, toFirst), type)};
}

/// Positions in [-1, 1] of the elements of an image [N, C, spatial...], x first, transformed by theta [N, r, r + 1].
/// Element i of a dim of size s is at (2i + 1 - s) / s, or with align_corners at (2i + 1 - s) / (s - 1).
Values affineGrid(NodeContext &n) {
  Value theta = n.input(0);
  std::optional<Dims> size = n.inputExprs(1, "size");
  if (!size)
    return {};
  int64_t r = int64_t(size->size()) - 2;
  bool fits = (r == 2 || r == 3) && n.rank(theta) == 3 && n.shapes.assumeEqual(n.dim(theta, 1), n.expr(r)) &&
              n.shapes.assumeEqual(n.dim(theta, 2), n.expr(r + 1)) &&
              n.shapes.assumeEqual(n.dim(theta, 0), size->front());
  if (!fits)
    return {n.fail(DiagId::WrongRank, 0, n.rank(theta),
                   "theta [N, r, r + 1] with the size of r spatial dims, 2 or 3, is needed")};
  Value wide = n.elementType(theta).getIntOrFloatBitWidth() < 32 ? n.convert(theta, n.f32()) : theta;
  Values positions; // along each spatial dim
  for (int64_t axis = 0; axis < r; ++axis) {
    Dims dims(r, n.expr(1));
    dims[axis] = (*size)[axis + 2];
    Value extent = n.convert(n.fromExprs(dims[axis], n.si64(), /*isScalar=*/true), n.elementType(wide));
    Value doubled = n.mul(n.iota(axis, dims, n.elementType(wide)), 2.0);
    Value divisor = n.flag("align_corners") ? n.maximum(n.sub(extent, 1.0), n.scalarLike(1, extent)) : extent;
    positions.push_back(n.div(n.sub(n.add(doubled, 1.0), extent), divisor));
  }
  Values rows;
  Ints spatial = llvm::to_vector(llvm::seq<int64_t>(1, r + 1));
  for (int64_t row = 0; row < r; ++row) {
    auto factor = [&](int64_t column) { return n.unsqueeze(n.at(n.at(wide, 1, row), 1, column), spatial); };
    Value sum = factor(r);
    for (int64_t axis = 0; axis < r; ++axis)
      sum = n.add(n.mul(factor(r - 1 - axis), positions[axis]), sum);
    rows.push_back(sum);
  }
  return {n.convertLike(n.stack(rows, r + 1), theta)};
}

} // namespace ptc::decomp
