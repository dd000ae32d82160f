//===- Resize.cpp - interpolation along axes ------------------------------===//
//
// Interpolation separates: each axis whose size or coordinates change is resampled
// on its own. Along one axis, result element i sits at coordinate
//
//   c(i) = half_pixel          (i + 0.5) / scale - 0.5
//          pytorch_half_pixel  the same, 0 where the result has one element
//          asymmetric          i / scale
//          align_corners       i * (in - 1) / (out - 1)
//          half_pixel_symmetric  half_pixel about the centre of the input: an offset before the - 0.5
//          tf_crop_and_resize  within the region [start, end] of the input
//
// and takes one (nearest), two (linear) or four (cubic) elements around c(i), with
// indices clamped to the input. So an axis costs one gather a tap and a weighted
// sum. Where sizes are known, indices and weights are constants, computed in double
// precision; where they are symbols, the same formulas are emitted as primitives
// in f64: `Arithmetic` below is the one text for both.
//
// Repeating each element a whole number of times (nearest, the usual upsampling in
// detectors) is a broadcast between two reshapes: a view.
//
// Antialiasing widens the filter by 1/scale, so that each result element is a
// weighted sum over a window: one gather of all its elements, and a reduction. Where
// windows lie at equal distances (halves, quarters), it is a sum of slices with steps.
//
// Axes that shrink come first, since what follows has less to do. Those that grow
// follow from the innermost on: elements that lie anywhere in a row are gathered one
// by one, of the small tensor, and the last and largest pass takes whole rows.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"
#include <cmath>

using namespace ptc::prim;

namespace ptc::decomp {

namespace {

/// What Resize's attributes say.
struct Sampling {
  std::string mode, transformation, nearest;
  double cubicCoefficient = -0.75, extrapolation = 0;
  bool excludeOutside = false, antialias = false;
};

/// One axis to be resampled. `scale` is out/in unless the model gives another, or computes one: `factor`, a scalar in
/// f64.
struct Axis {
  int64_t axis;
  Expr in, out;
  std::optional<double> scale;
  double start = 0, end = 1; // region of tf_crop_and_resize
  Value factor = {};
  bool hasOwnScale() const { return scale || factor; }
};

/// Vectors over the result's elements: numbers where the sizes are known.
class StaticArithmetic {
public:
  using Vector = std::vector<double>;
  StaticArithmetic(int64_t in, int64_t out, std::optional<double> scale)
      : in(in), out(out), scale(scale.value_or(double(out) / double(in))), exactOut(scale ? *scale * in : out) {}
  Vector positions() const {
    Vector v(out);
    for (int64_t i = 0; i < out; ++i)
      v[i] = i;
    return v;
  }
  template <typename F> static Vector map(Vector a, F f) {
    for (double &x : a)
      x = f(x);
    return a;
  }
  Vector add(Vector a, double b) const {
    return map(std::move(a), [=](double x) { return x + b; });
  }
  /// A quotient: of a product, a sum that follows would see what rounding takes away, and ties move.
  Vector unscaled(Vector a) const {
    return map(std::move(a), [=, this](double x) { return x / scale; });
  }
  /// Corners on corners, and 0 for a single element; in this order, in which halves stay halves.
  Vector betweenCorners(Vector a) const {
    double steps = exactOut - 1;
    return map(std::move(a), [=, this](double x) { return steps == 0 ? 0.0 : x * (in - 1) / steps; });
  }
  /// The rounded size moves the centre.
  Vector aboutCentre(Vector a) const { return add(std::move(a), in / 2.0 * (1 - out / exactOut)); }
  Vector floor(Vector a) const {
    return map(std::move(a), [](double x) { return std::floor(x); });
  }
  Vector ceil(Vector a) const {
    return map(std::move(a), [](double x) { return std::ceil(x); });
  }
  Vector clampToInput(Vector a) const {
    return map(std::move(a), [=, this](double x) { return std::clamp<double>(x, 0, in - 1); });
  }

private:
  int64_t in, out;
  double scale, exactOut;
};

/// The same as emitted primitives, where sizes are symbols: in f64, since a coordinate between two elements must not
/// round to either side.
class EmittedArithmetic {
public:
  using Vector = Value;
  EmittedArithmetic(NodeContext &n, const Axis &axis)
      : n(n), axis(axis), wide(mlir::Float64Type::get(n.getContext())) {}
  Vector positions() const { return n.iota(0, axis.out, wide); }
  Value inSize() const { return n.convert(n.fromExprs(axis.in, n.si64(), true), wide); }
  Value outSize() const { return n.convert(n.fromExprs(axis.out, n.si64(), true), wide); }
  Value scale() const {
    return axis.factor ? axis.factor : axis.scale ? n.scalar(*axis.scale, wide) : n.div(outSize(), inSize());
  }
  /// The result's size before it is rounded down.
  Value exactOutSize() const { return axis.hasOwnScale() ? n.mul(inSize(), scale()) : outSize(); }
  Vector add(Vector a, double b) const { return n.add(a, b); }
  Vector add(Vector a, Value b) const { return n.add(a, b); }
  Vector mul(Vector a, double b) const { return n.mul(a, b); }
  Vector mul(Vector a, Value b) const { return n.mul(a, b); }
  Vector unscaled(Vector a) const { return n.div(a, scale()); }
  Vector betweenCorners(Vector a) const {
    Value steps = add(exactOutSize(), -1.0), one = n.scalarLike(1, steps), zero = n.scalarLike(0, steps);
    Value isSingle = n.equal(steps, zero), between = n.div(mul(a, add(inSize(), -1.0)), n.select(isSingle, one, steps));
    return n.select(isSingle, n.scalarLike(0, between), between);
  }
  Vector aboutCentre(Vector a) const {
    if (!axis.hasOwnScale())
      return a;
    Value lost = n.sub(n.scalar(1, wide), n.div(outSize(), exactOutSize()));
    return n.add(a, n.mul(n.mul(inSize(), 0.5), lost));
  }
  Vector floor(Vector a) const { return n.unary<FloorOp>(a); }
  Vector ceil(Vector a) const { return n.unary<CeilOp>(a); }
  Vector clampToInput(Vector a) const { return n.minimum(n.maximum(a, n.scalarLike(0, a)), n.add(inSize(), -1.0)); }

private:
  NodeContext &n;
  const Axis &axis;
  Type wide;
};

template <typename A> typename A::Vector coordinates(const A &a, const std::string &transformation) {
  auto i = a.positions();
  if (transformation == "asymmetric")
    return a.unscaled(i);
  if (transformation == "align_corners")
    return a.betweenCorners(i);
  auto c = a.unscaled(a.add(i, 0.5));
  if (transformation == "tf_half_pixel_for_nn")
    return c;
  if (transformation == "half_pixel_symmetric")
    c = a.aboutCentre(c);
  return a.add(c, -0.5);
}

/// Coordinates where all sizes are known: every transformation.
std::vector<double> staticCoordinates(const Axis &axis, const std::string &transformation) {
  int64_t in = axis.in.getValue(), out = axis.out.getValue();
  StaticArithmetic a(in, out, axis.scale);
  if (transformation == "tf_crop_and_resize") {
    if (out <= 1)
      return std::vector<double>(out, 0.5 * (axis.start + axis.end) * (in - 1));
    // In f32, as ONNX's reference and onnxruntime have it: whole elements and halves are met by regions such as 0.1.
    auto start = float(axis.start), extent = float(axis.end) - start, last = float(in - 1);
    std::vector<double> all;
    for (int64_t i = 0; i < out; ++i)
      all.push_back(start * last + float(i) * extent * last / float(out - 1));
    return all;
  }
  bool isSingle = out == 1 && (transformation == "pytorch_half_pixel" || transformation == "align_corners");
  if (isSingle)
    return {0.0};
  return coordinates(a, transformation);
}

//===----------------------------------------------------------------------===//
// Filters
//===----------------------------------------------------------------------===//

double cubicWeight(double distance, double a) {
  double x = std::abs(distance);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}
double linearWeight(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

double roundNearest(double c, const std::string &mode) {
  if (mode == "floor")
    return std::floor(c);
  if (mode == "ceil")
    return std::ceil(c);
  return mode == "round_prefer_ceil" ? std::floor(c + 0.5) : std::ceil(c - 0.5);
}

/// Elements and their weights: one for every result element, or all of one of them.
struct Tap {
  Ints index;
  llvm::SmallVector<double> weight;
};

/// The taps of a filter that spans `taps` elements around each coordinate.
llvm::SmallVector<Tap> filterTaps(llvm::ArrayRef<double> c, int64_t in, const Sampling &s, int64_t taps,
                                  llvm::function_ref<double(double)> weight) {
  llvm::SmallVector<Tap> result(taps);
  for (double x : c) {
    double first = std::floor(x) - (taps / 2 - 1), total = 0;
    llvm::SmallVector<double> weights;
    for (int64_t t = 0; t < taps; ++t) {
      bool isOutside = first + t < 0 || first + t > in - 1;
      weights.push_back(s.excludeOutside && isOutside ? 0 : weight(x - (first + t)));
      total += weights.back();
    }
    for (int64_t t = 0; t < taps; ++t) {
      result[t].index.push_back(std::clamp<double>(first + t, 0, in - 1));
      result[t].weight.push_back(weights[t] / (total == 0 ? 1 : total));
    }
  }
  return result;
}

/// A vector along `axis` of x.
Value alongAxis(NodeContext &n, Value vector, Value x, int64_t axis) {
  Ints after;
  for (int64_t i = 1; i < n.rank(x) - axis; ++i)
    after.push_back(i);
  return n.unsqueeze(vector, after);
}

/// Elements outside the region of tf_crop_and_resize are the extrapolation value.
Value extrapolate(NodeContext &n, Value y, llvm::ArrayRef<double> c, const Axis &axis, const Sampling &s) {
  double last = axis.in.getValue() - 1;
  llvm::SmallVector<double> isOutside;
  for (double x : c)
    isOutside.push_back(x < 0 || x > last);
  if (llvm::none_of(isOutside, [](double o) { return o != 0; }))
    return y;
  Value mask = alongAxis(n, n.floatVector(isOutside, n.i1()), y, axis.axis);
  return n.select(mask, n.scalarLike(s.extrapolation, y), y);
}

Value resampleStatic(NodeContext &n, Value x, const Axis &axis, const Sampling &s) {
  std::vector<double> c = staticCoordinates(axis, s.transformation);
  int64_t in = axis.in.getValue();
  Value y;
  if (s.mode == "nearest") {
    Ints index;
    for (double coordinate : c)
      index.push_back(std::clamp<double>(roundNearest(coordinate, s.nearest), 0, in - 1));
    y = n.gather(x, n.intVector(index), axis.axis);
  } else {
    bool isCubic = s.mode == "cubic";
    auto weight = [&](double d) { return isCubic ? cubicWeight(d, s.cubicCoefficient) : linearWeight(d); };
    if (!isCubic) // beyond the border the border's value
      for (double &coordinate : c)
        if (s.transformation != "tf_crop_and_resize")
          coordinate = std::clamp<double>(coordinate, 0, in - 1);
    for (const Tap &tap : filterTaps(c, in, s, isCubic ? 4 : 2, weight)) {
      Value part = n.mul(n.gather(x, n.intVector(tap.index), axis.axis),
                         alongAxis(n, n.floatVector(tap.weight, n.elementType(x)), x, axis.axis));
      y = y ? n.add(y, part) : part;
    }
  }
  return s.transformation == "tf_crop_and_resize" ? extrapolate(n, y, c, axis, s) : y;
}

constexpr int64_t mostSlices = 16;

/// The weighted sum over windows that begin at equal distances, of the input with zeros around it; null: they do not.
Value sumOfSlices(NodeContext &n, Value x, const Axis &axis, llvm::ArrayRef<Tap> windows, int64_t taps) {
  int64_t in = axis.in.getValue(), out = axis.out.getValue(), step = out ? in / out : 0;
  if (step < 2 || in % out || taps > mostSlices)
    return {};
  int64_t first = in, last = -in; // of a window, beside step times the number of its element
  for (auto [o, window] : llvm::enumerate(windows)) {
    if (window.index.empty())
      return {};
    first = std::min(first, window.index.front() - int64_t(o) * step);
    last = std::max(last, window.index.back() - int64_t(o) * step);
  }
  if (last - first + 1 != taps)
    return {};
  for (auto [o, window] : llvm::enumerate(windows)) { // 0 times an element that no window has may be NaN
    int64_t from = std::max<int64_t>(int64_t(o) * step + first, 0);
    int64_t to = std::min<int64_t>(int64_t(o) * step + last, in - 1);
    if (int64_t(window.index.size()) != to - from + 1)
      return {};
  }
  Dims low(n.rank(x), n.expr(0)), high = low;
  int64_t before = std::max<int64_t>(-first, 0);
  low[axis.axis] = n.expr(before);
  high[axis.axis] = n.expr(std::max<int64_t>(step * (out - 1) + last - (in - 1), 0));
  Value wide = n.elementType(x).getIntOrFloatBitWidth() < 32 ? n.convert(x, n.f32()) : x;
  Value padded = n.pad(wide, n.scalarLike(0, wide), low, high), sum;
  for (int64_t tap = 0; tap < taps; ++tap) {
    llvm::SmallVector<double> weights;
    for (auto [o, window] : llvm::enumerate(windows)) {
      const int64_t *found = llvm::find(window.index, int64_t(o) * step + first + tap);
      weights.push_back(found == window.index.end() ? 0 : window.weight[found - window.index.begin()]);
    }
    Value piece = n.sliceAxis(padded, axis.axis, n.expr(before + first + tap), axis.out, step);
    Value term = n.mul(piece, alongAxis(n, n.floatVector(weights, n.elementType(wide)), x, axis.axis));
    sum = sum ? n.add(sum, term) : term;
  }
  return n.convertLike(sum, x);
}

/// The same of windows that begin anywhere, all of which have as many taps then.
Value sumOfGathered(NodeContext &n, Value x, const Axis &axis, llvm::MutableArrayRef<Tap> windows, int64_t taps) {
  Ints indices;
  llvm::SmallVector<double> weights;
  for (Tap &window : windows) {
    window.index.resize(taps, window.index.empty() ? 0 : window.index.back());
    window.weight.resize(taps, 0);
    llvm::append_range(indices, window.index);
    llvm::append_range(weights, window.weight);
  }
  Ints shape{axis.out.getValue(), taps}, aligned = shape; // with the dims behind the axis
  aligned.append(n.rank(x) - axis.axis - 1, 1);
  Value gathered = n.gather(x, n.reshape(n.intVector(indices), n.exprs(shape)), axis.axis);
  Value weighting = n.reshape(n.floatVector(weights, n.elementType(x)), n.exprs(aligned));
  return n.sum(n.mul(gathered, weighting), axis.axis + 1, /*keepDims=*/false);
}

/// A filter widened by 1/scale where the result is smaller: for each result element as many taps as the widest window
/// has, gathered and added up. Borders beyond the input are weights of the border's element.
Value resampleAntialiased(NodeContext &n, Value x, const Axis &axis, const Sampling &s) {
  std::vector<double> c = staticCoordinates(axis, s.transformation);
  int64_t in = axis.in.getValue(), out = axis.out.getValue();
  double scale = std::min(1.0, axis.scale.value_or(double(out) / double(in)));
  double support = (s.mode == "cubic" ? 2 : 1) / scale;
  llvm::SmallVector<Tap> windows(out); // of each element, its taps
  size_t taps = 1;
  for (int64_t o = 0; o < out; ++o) {
    auto &[index, weights] = windows[o];
    double total = 0;
    for (int64_t i = std::ceil(c[o] - support); i <= int64_t(std::floor(c[o] + support)); ++i) {
      double d = (c[o] - i) * scale, weight = s.mode == "cubic" ? cubicWeight(d, s.cubicCoefficient) : linearWeight(d);
      bool isOutside = i < 0 || i >= in;
      if (weight == 0 || (s.excludeOutside && isOutside))
        continue;
      int64_t inside = std::clamp<int64_t>(i, 0, in - 1);
      if (index.empty() || index.back() != inside) {
        index.push_back(inside);
        weights.push_back(0);
      }
      weights.back() += weight;
      total += weight;
    }
    for (double &weight : weights)
      weight /= total == 0 ? 1 : total;
    taps = std::max(taps, index.size());
  }
  Value y = sumOfSlices(n, x, axis, windows, int64_t(taps));
  if (!y)
    y = sumOfGathered(n, x, axis, windows, int64_t(taps));
  return s.transformation == "tf_crop_and_resize" ? extrapolate(n, y, c, axis, s) : y;
}

/// Coordinates where sizes are symbols: every transformation.
Value emittedCoordinates(NodeContext &n, const Axis &axis, const std::string &transformation) {
  EmittedArithmetic a(n, axis);
  if (transformation == "tf_crop_and_resize") {
    Value last = n.add(a.inSize(), -1.0), steps = n.add(a.outSize(), -1.0);
    Value zero = n.scalarLike(0, steps), isSingle = n.lessEqual(steps, zero);
    Value divisor = n.select(isSingle, n.scalarLike(1, steps), steps);
    auto rounded = [&](Value x) { return n.convert(n.convert(x, n.f32()), n.elementType(last)); };
    double extent = float(axis.end) - float(axis.start);
    Value moved = rounded(a.mul(rounded(a.mul(a.positions(), extent)), last));
    Value several = rounded(a.add(rounded(n.div(moved, divisor)), rounded(n.mul(last, axis.start))));
    return n.select(isSingle, n.mul(last, 0.5 * (axis.start + axis.end)), several);
  }
  Value c = coordinates(a, transformation);
  if (transformation == "pytorch_half_pixel" || transformation == "align_corners") { // one result element sits at 0
    Value isSingle = n.lessEqual(a.outSize(), n.scalarLike(1, a.outSize()));
    c = n.select(isSingle, n.scalarLike(0, c), c);
  }
  return c;
}

/// `cubicWeight` of distances of which it is known whether they are above 1.
Value emittedCubicWeight(NodeContext &n, Value distance, bool isFar, double a) {
  Value x = n.abs(distance);
  auto horner = [&](std::initializer_list<double> coefficients) {
    Value sum;
    for (double c : coefficients)
      sum = sum ? n.add(n.mul(sum, x), c) : n.scalarLike(c, x);
    return sum;
  };
  return isFar ? horner({a, -5 * a, 8 * a, -4 * a}) : horner({a + 2, -(a + 3), 0, 1});
}

/// Four taps around c, as `filterTaps` has them.
Value resampleCubic(NodeContext &n, Value x, Value c, const Axis &axis, const Sampling &s) {
  EmittedArithmetic a(n, axis);
  Value low = a.floor(c), total, sum;
  Values indices, weights;
  for (int64_t t = 0; t < 4; ++t) {
    Value at = n.add(low, double(t - 1)), inside = a.clampToInput(at);
    Value weight = emittedCubicWeight(n, n.sub(c, at), t == 0 || t == 3, s.cubicCoefficient);
    if (s.excludeOutside)
      weight = n.select(n.equal(at, inside), weight, n.scalarLike(0, weight));
    total = total ? n.add(total, weight) : weight;
    indices.push_back(n.convert(inside, n.si64()));
    weights.push_back(weight);
  }
  for (auto [index, weight] : llvm::zip(indices, weights)) {
    Value share = s.excludeOutside ? n.div(weight, total) : weight;
    Value part = n.mul(n.gather(x, index, axis.axis), alongAxis(n, n.convertLike(share, x), x, axis.axis));
    sum = sum ? n.add(sum, part) : part;
  }
  return sum;
}

/// Whether resampling may learn sizes and scales when the program runs.
bool canBeOpen(const Sampling &s) { return !(s.antialias && s.mode != "nearest"); }

/// At coordinates that are emitted.
Value resampleAt(NodeContext &n, Value x, Value c, const Axis &axis, const Sampling &s) {
  EmittedArithmetic a(n, axis);
  if (s.mode == "cubic")
    return resampleCubic(n, x, c, axis, s);
  if (s.mode == "nearest") {
    Value rounded = s.nearest == "floor"               ? a.floor(c)
                    : s.nearest == "ceil"              ? a.ceil(c)
                    : s.nearest == "round_prefer_ceil" ? a.floor(a.add(c, 0.5))
                                                       : a.ceil(a.add(c, -0.5));
    return n.gather(x, n.convert(a.clampToInput(rounded), n.si64()), axis.axis);
  }
  c = a.clampToInput(c);
  Value low = a.floor(c), high = a.clampToInput(a.add(low, 1.0));
  Value weight = alongAxis(n, n.convertLike(n.sub(c, low), x), x, axis.axis);
  Value first = n.gather(x, n.convert(low, n.si64()), axis.axis);
  Value second = n.gather(x, n.convert(high, n.si64()), axis.axis);
  return n.add(first, n.mul(n.sub(second, first), weight));
}

Value resampleSymbolic(NodeContext &n, Value x, const Axis &axis, const Sampling &s) {
  if (!canBeOpen(s))
    return n.failWithHelp("pin the sizes with --dim or --shape", DiagId::UnsupportedForm,
                          "Resize with antialias at a size that is not known");
  Value c = emittedCoordinates(n, axis, s.transformation), y = resampleAt(n, x, c, axis, s);
  if (s.transformation != "tf_crop_and_resize" || n.hasFailed())
    return y;
  Value last = n.add(EmittedArithmetic(n, axis).inSize(), -1.0);
  Value isOutside = n.logicalOr(n.less(c, n.scalarLike(0, c)), n.less(last, c));
  return n.select(alongAxis(n, isOutside, y, axis.axis), n.scalarLike(s.extrapolation, y), y);
}

/// How often each element is repeated, if that is all there is to it.
std::optional<int64_t> repetition(NodeContext &n, const Axis &axis, const Sampling &s) {
  ShapeScope::Quotient factor = n.shapes.divide(axis.out, axis.in);
  if (s.mode != "nearest" || axis.factor || !factor.isExact() || !factor.numerator.isConstant() ||
      axis.in.isConstant(0))
    return std::nullopt;
  int64_t times = factor.numerator.getValue();
  if (axis.scale && *axis.scale != double(times))
    return std::nullopt;
  bool isFloored = s.transformation == "asymmetric" && s.nearest == "floor";
  bool isCentred = (s.transformation == "half_pixel" || s.transformation == "pytorch_half_pixel") &&
                   llvm::StringRef(s.nearest).starts_with("round") && (times > 1);
  return isFloored || isCentred ? std::optional(times) : std::nullopt;
}

Value resample(NodeContext &n, Value x, const Axis &axis, const Sampling &s) {
  bool isWhole = s.transformation != "tf_crop_and_resize" || (axis.start == 0 && axis.end == 1);
  if (axis.in == axis.out && axis.scale.value_or(1) == 1 && !axis.factor && isWhole)
    return x;
  if (std::optional<int64_t> times = repetition(n, axis, s)) {
    Dims wide = n.dims(x), joined = wide;
    wide.insert(wide.begin() + axis.axis + 1, n.expr(*times));
    joined[axis.axis] = axis.out;
    Ints axes;
    for (int64_t i = 0; i < n.rank(x); ++i)
      axes.push_back(i <= axis.axis ? i : i + 1);
    return n.reshape(n.broadcast(x, axes, wide), joined);
  }
  if (!axis.in.isConstant() || !axis.out.isConstant() || axis.factor)
    return resampleSymbolic(n, x, axis, s);
  return s.antialias && s.mode != "nearest" ? resampleAntialiased(n, x, axis, s) : resampleStatic(n, x, axis, s);
}

/// Axes that shrink, then those that grow, from the innermost on.
llvm::SmallVector<Axis> inOrder(NodeContext &n, llvm::ArrayRef<Axis> axes) {
  auto shrinks = [&](const Axis &axis) {
    auto in = n.shapes.inGeneral(axis.in), out = n.shapes.inGeneral(axis.out);
    return !axis.factor && in && out && *out < *in;
  };
  llvm::SmallVector<Axis> ordered(axes);
  llvm::stable_sort(ordered, [&](const Axis &a, const Axis &b) {
    bool isFirst = shrinks(a), isSecond = shrinks(b);
    return isFirst != isSecond ? isFirst : !isFirst && a.axis > b.axis;
  });
  return ordered;
}

Value resampleAll(NodeContext &n, Value x, llvm::ArrayRef<Axis> axes, const Sampling &s) {
  bool isFloat = n.isFloat(x);
  Value y = isFloat || s.mode == "nearest" ? x : n.convert(x, n.f32());
  for (const Axis &axis : inOrder(n, axes))
    y = resample(n, y, axis, s);
  if (!isFloat && s.mode != "nearest") // integers are rounded and saturated
    y = n.convertLike(n.unary<RoundOp>(y), x);
  return y;
}

/// The size that a scale gives: floor(in * scale) of floats in f32, whose product is rounded, as onnxruntime has
/// it. So 10 elements become 13 by a scale of 1.3, which is 1.29999995, and 90 become 116. (ONNX says no type; its
/// reference takes f64, and makes 12 of 10.)
int64_t scaledSize(int64_t in, double scale) { return int64_t(std::floor(float(in) * float(scale))); }

/// Whether floor(in * numerator / denominator) is that size wherever `in` is in the range: where f32 has the quotient,
/// up to millions of elements; else products are rounded to the other side of a size somewhere above thousands.
bool isScaledSize(ExprRange in, int64_t numerator, int64_t denominator, double scale) {
  constexpr int64_t largest = 1 << 16;
  if (in.max > largest)
    return scale * double(denominator) == double(numerator);
  for (int64_t size = std::max<int64_t>(in.min, 0); size <= in.max; ++size)
    if (size * numerator / denominator != scaledSize(size, scale))
      return false;
  return true;
}

/// The same as an expression, with the quotient of small integers that the scale stands for, if it gives that size.
std::optional<Expr> scaledSize(NodeContext &n, Expr in, double scale) {
  if (in.isConstant())
    return n.expr(scaledSize(in.getValue(), scale));
  constexpr int64_t largestDenominator = 1024;
  for (int64_t denominator = 1; denominator <= largestDenominator; ++denominator) {
    double numerator = std::round(scale * double(denominator));
    if (float(numerator / double(denominator)) != float(scale))
      continue;
    if (!isScaledSize(n.shapes.range(in), int64_t(numerator), denominator, scale))
      return std::nullopt;
    return n.shapes.simplify((in * int64_t(numerator)).floorDiv(denominator));
  }
  return std::nullopt;
}

/// The same where the program computes it, by a scale in f32.
Expr findScaledSize(NodeContext &n, Expr in, Value scale) {
  Value size = n.mul(n.convertLike(n.fromExprs(in, n.si64(), /*isScalar=*/true), scale), scale);
  return n.bind(n.convert(n.unary<FloorOp>(size), n.si64()), Expr());
}

} // namespace

//===----------------------------------------------------------------------===//
// The operators
//===----------------------------------------------------------------------===//

/// What of the axis `i` of `count` tf_crop_and_resize looks at.
static void setRegion(Axis &entry, llvm::ArrayRef<double> regions, size_t i, size_t count) {
  if (regions.empty())
    return;
  entry.start = regions[i];
  entry.end = regions[i + count];
}

static bool isScale(double scale) { return scale > 0 && std::isfinite(scale); }

static Value failOnScale(NodeContext &n, double scale) {
  return n.fail(DiagId::DimMismatch, n.has("scales") ? "a number of 'scales'" : "a number of the input 'scales'", scale,
                "what a size is multiplied by", "a finite number above 0");
}

/// The factor in f64; the run ends at one that is no scale. What is made of it meets a scale in any case, so that the
/// sentence is the same whatever runs first.
static Value guardScale(NodeContext &n, Value factor) {
  double largest = std::numeric_limits<double>::max();
  Value isSound =
      n.logicalAnd(n.less(n.scalarLike(0, factor), factor), n.lessEqual(factor, n.scalarLike(largest, factor)));
  Expr condition = n.bind(n.convert(isSound, n.si64()), n.expr(1));
  if (n.hasFailed() || condition.isConstant(1))
    return factor;
  mlir::OpBuilder &builder = n.getBuilder();
  GuardOp::create(builder, n.getLoc(), ExprAttr(condition),
                  builder.getStringAttr("a scale of Resize is 0, negative, infinite or NaN"));
  return n.select(isSound, factor, n.scalarLike(1, factor));
}

/// The scales are found when the program runs; those among them that are known stay so.
static Value resizeByFoundScales(NodeContext &n, Value x, Value scales, llvm::ArrayRef<int64_t> axes,
                                 llvm::ArrayRef<double> regions, const Sampling &s) {
  Type wide = mlir::Float64Type::get(n.getContext());
  llvm::SmallVector<Axis> resized;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    Expr in = n.dim(x, axis);
    Value scale = n.elementOf(scales, i);
    std::optional<llvm::SmallVector<double>> known = n.knownFloats(scale);
    if (known && known->size() == 1 && !isScale(known->front()))
      return failOnScale(n, known->front());
    std::optional<Expr> out = known && known->size() == 1 ? scaledSize(n, in, known->front()) : std::nullopt;
    Axis entry{axis, in, {}};
    setRegion(entry, regions, i, axes.size());
    if (out) {
      entry.out = *out;
      entry.scale = known->front();
    } else {
      entry.factor = guardScale(n, n.convert(scale, wide));
      entry.out = findScaledSize(n, in, n.convertLike(entry.factor, scale));
    }
    resized.push_back(entry);
  }
  return resampleAll(n, x, resized, s);
}

static Value resizeByScales(NodeContext &n, Value x, size_t input, llvm::ArrayRef<int64_t> axes,
                            llvm::ArrayRef<double> regions, const Sampling &s) {
  std::optional<llvm::SmallVector<double>> scales;
  Value vector = n.optionalInput(input);
  bool isFound = vector && n.rank(vector) == 1 && !n.knownFloats(vector) &&
                 n.shapes.assumeEqual(n.dim(vector, 0), n.expr(axes.size()));
  if (!n.has("scales") && isFound && canBeOpen(s))
    return resizeByFoundScales(n, x, vector, axes, regions, s);
  if (n.has("scales"))
    scales = n.reals("scales");
  else
    scales = n.inputFloats(input, "scales");
  if (!scales)
    return {};
  if (scales->size() != axes.size())
    return n.fail(DiagId::DimMismatch, "the number of scales", scales->size(), "the number of axes", axes.size());
  llvm::SmallVector<Axis> resized;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (!isScale((*scales)[i]))
      return failOnScale(n, (*scales)[i]);
    Expr in = n.dim(x, axis);
    std::optional<Expr> out = scaledSize(n, in, (*scales)[i]);
    if (!out)
      out = findScaledSize(n, in, n.scalar((*scales)[i], mlir::Float32Type::get(n.getContext())));
    Axis entry{axis, in, *out, (*scales)[i]};
    setRegion(entry, regions, i, axes.size());
    resized.push_back(entry);
  }
  return resampleAll(n, x, resized, s);
}

/// One scale for all axes, the smallest or the largest that the sizes ask for.
static Value resizeKeepingAspect(NodeContext &n, Value x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<Expr> sizes,
                                 bool takesLeast, llvm::ArrayRef<double> regions, const Sampling &s) {
  Type wide = mlir::Float64Type::get(n.getContext());
  auto asReal = [&](Expr e) { return n.convert(n.fromExprs(e, n.si64(), /*isScalar=*/true), wide); };
  Value factor;
  for (auto [axis, size] : llvm::zip(axes, sizes)) {
    Value own = n.div(asReal(size), asReal(n.dim(x, axis)));
    factor = !factor ? own : takesLeast ? n.minimum(factor, own) : n.maximum(factor, own);
  }
  factor = guardScale(n, factor);
  llvm::SmallVector<Axis> resized;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    Expr in = n.dim(x, axis);
    Value size = n.unary<FloorOp>(n.add(n.mul(asReal(in), factor), 0.5));
    Axis entry{axis, in, n.bind(n.convert(size, n.si64()), Expr())};
    entry.factor = factor;
    setRegion(entry, regions, i, axes.size());
    resized.push_back(entry);
  }
  return resampleAll(n, x, resized, s);
}

static Value resizeToSizes(NodeContext &n, Value x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<double> regions,
                           const Sampling &s) {
  if (Value vector = n.optionalInput(3); n.rank(vector) == 1 && !n.dim(vector, 0).isConstant())
    n.shapes.assumeEqual(n.dim(vector, 0), n.expr(axes.size()));
  std::optional<Dims> sizes = canBeOpen(s) ? n.runtimeExprs(3, "sizes") : n.inputExprs(3, "sizes");
  if (!sizes)
    return {};
  *sizes = n.settle(*sizes);
  if (sizes->size() != axes.size())
    return n.fail(DiagId::DimMismatch, "the number of sizes", sizes->size(), "the number of axes", axes.size());
  std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  std::optional<double> shared; // one scale for all axes
  auto isOpen = [](Expr e) { return !e.isConstant(); };
  bool hasOpen =
      llvm::any_of(*sizes, isOpen) || llvm::any_of(axes, [&](int64_t axis) { return isOpen(n.dim(x, axis)); });
  if (policy != "stretch" && hasOpen)
    return resizeKeepingAspect(n, x, axes, *sizes, policy == "not_larger", regions, s);
  if (policy != "stretch")
    for (auto [i, axis] : llvm::enumerate(axes)) {
      double scale = double((*sizes)[i].getValue()) / double(n.dim(x, axis).getValue());
      shared = !shared ? scale : policy == "not_larger" ? std::min(*shared, scale) : std::max(*shared, scale);
    }
  llvm::SmallVector<Axis> resized;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    Axis entry{axis, n.dim(x, axis), (*sizes)[i], shared};
    if (shared)
      entry.out = n.expr(int64_t(std::floor(entry.in.getValue() * *shared + 0.5)));
    setRegion(entry, regions, i, axes.size());
    resized.push_back(entry);
  }
  return resampleAll(n, x, resized, s);
}

Values resize(NodeContext &n) {
  Value x = n.input(0);
  if (n.isComplex(x))
    return n.byParts(resize);
  bool isFirst = n.opset() < 11; // scales are input 1 then, and coordinates asymmetric
  Sampling s;
  s.mode = n.text("mode", "nearest");
  s.transformation = n.text("coordinate_transformation_mode", isFirst ? "asymmetric" : "half_pixel");
  s.nearest = n.text("nearest_mode", isFirst ? "floor" : "round_prefer_floor");
  s.cubicCoefficient = n.real("cubic_coeff_a", -0.75);
  s.extrapolation = n.real("extrapolation_value", 0);
  s.excludeOutside = n.flag("exclude_outside");
  s.antialias = n.flag("antialias");
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic")
    return {n.fail(DiagId::BadAttribute, "mode", "'" + s.mode + "'", "nearest, linear or cubic is needed")};
  if (n.isString(x) && s.mode != "nearest")
    return {n.fail(DiagId::UnsupportedForm, "interpolation between strings")};
  Ints axes = n.integers("axes", llvm::to_vector(llvm::seq<int64_t>(n.rank(x))));
  for (int64_t &axis : axes) {
    std::optional<int64_t> normalized = n.normalizeAxis(axis, n.rank(x));
    if (!normalized)
      return {};
    axis = *normalized;
  }
  llvm::SmallVector<double> regions;
  if (s.transformation == "tf_crop_and_resize") {
    std::optional<llvm::SmallVector<double>> roi = n.inputFloats(1, "roi");
    if (!roi || roi->size() != 2 * axes.size())
      return {n.fail(DiagId::MissingAttribute, "roi")};
    regions = *roi;
  }
  if (isFirst)
    return {resizeByScales(n, x, 1, axes, regions, s)};
  bool hasScales = n.hasInput(2) && !n.dim(n.input(2), 0).isConstant(0);
  return {hasScales ? resizeByScales(n, x, 2, axes, regions, s) : resizeToSizes(n, x, axes, regions, s)};
}

/// Resize's predecessor: asymmetric coordinates, rounded down.
Values upsample(NodeContext &n) {
  Value x = n.input(0);
  if (n.isComplex(x))
    return n.byParts(upsample);
  Sampling s;
  s.mode = n.text("mode", "nearest");
  s.transformation = "asymmetric";
  s.nearest = "floor";
  if (s.mode != "nearest" && s.mode != "linear")
    return {n.fail(DiagId::BadAttribute, "mode", "'" + s.mode + "'", "nearest or linear is needed")};
  if (n.isString(x) && s.mode != "nearest")
    return {n.fail(DiagId::UnsupportedForm, "interpolation between strings")};
  return {resizeByScales(n, x, 1, llvm::to_vector(llvm::seq<int64_t>(n.rank(x))), {}, s)};
}

} // namespace ptc::decomp
