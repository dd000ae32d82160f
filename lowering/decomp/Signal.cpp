//===- Signal.cpp - discrete Fourier transforms, Col2Im -------------------===//
//
// A transform of a known length is a product with the matrix of its roots of unity,
// split into cosines and sines:
//
//   X[k] = sum over t of x[t] * (cos(2 pi k t / n) - i sin(2 pi k t / n))
//
// and the inverse with the other sign, divided by n. A real signal needs the first
// n/2 + 1 frequencies alone (onesided); their inverse folds the mirrored ones into
// weights of 2. The matrices are constants in the program, which bounds the length.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"
#include <cmath>

using namespace ptc::prim;

namespace ptc::decomp {

static constexpr int64_t maxTransformLength = 512;

namespace {
struct Complex {
  Value re, im; // im is null for real values
};
} // namespace

/// rows x columns of f(2 pi r c / n) * scale(r)
static Value rootsMatrix(NodeContext &n, int64_t rows, int64_t columns, int64_t length, double (*f)(double), Type type,
                         llvm::function_ref<double(int64_t)> scale) {
  llvm::SmallVector<double> values;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      values.push_back(f(2 * M_PI * double(r * c % length) / double(length)) * scale(r));
  return n.reshape(n.floatVector(values, type), n.exprs({rows, columns}));
}

/// The transform of the last dim, which has `length` elements (or length/2 + 1 of a onesided inverse).
static Complex transform(NodeContext &n, Complex x, int64_t length, bool isInverse, bool isOnesided) {
  int64_t rows = isInverse && isOnesided ? length / 2 + 1 : length;
  int64_t columns = !isInverse && isOnesided ? length / 2 + 1 : length;
  auto scale = [&](int64_t r) {
    bool isMirrored = isInverse && isOnesided && r != 0 && 2 * r != length;
    return (isInverse ? 1.0 / double(length) : 1.0) * (isMirrored ? 2 : 1);
  };
  Type type = n.elementType(x.re);
  Value c = rootsMatrix(n, rows, columns, length, [](double a) { return std::cos(a); }, type, scale);
  Value s = rootsMatrix(n, rows, columns, length, [](double a) { return std::sin(a); }, type, scale);
  Value sign = n.scalar(isInverse ? -1 : 1, type); // of the imaginary unit
  Complex y{n.matmul(x.re, c), n.neg(n.mul(n.matmul(x.re, s), sign))};
  if (x.im) {
    y.re = n.add(y.re, n.mul(n.matmul(x.im, s), sign));
    y.im = n.add(y.im, n.matmul(x.im, c));
  }
  return y;
}

/// The last dim cut or filled with zeros to `size`.
static Value resized(NodeContext &n, Value x, int64_t size) {
  int64_t axis = n.rank(x) - 1;
  Expr dim = n.dim(x, axis);
  if (dim.isConstant() && dim.getValue() > size)
    return n.sliceAxis(x, axis, n.expr(0), n.expr(size));
  Dims low(n.rank(x), n.expr(0)), high = low;
  high.back() = n.expr(size) - dim;
  return n.pad(x, n.scalarLike(0, x), low, high);
}

/// [..., signal, ..., 1 or 2]: the last dim holds the real and the imaginary part. The axis is an attribute up to
/// version 17 and an input from 20.
Values dft(NodeContext &n) {
  Value x = n.input(0);
  bool isInverse = n.flag("inverse"), isOnesided = n.flag("onesided");
  int64_t axis = n.opset() < 20 ? n.integer("axis", 1) : -2;
  if (n.hasInput(2)) {
    std::optional<int64_t> given = n.inputInt(2, "axis");
    if (!given)
      return {};
    axis = *given;
  }
  std::optional<int64_t> normalized = n.normalizeAxis(axis, n.rank(x));
  if (!normalized || *normalized + 1 >= n.rank(x))
    return {n.fail(DiagId::BadAxis, axis, n.rank(x) - 1)};
  int64_t last = n.rank(x) - 1;
  bool isComplex = n.dim(x, last).isConstant(2);
  Expr length = n.dim(x, *normalized);
  if (isInverse && isOnesided)
    length = (length - 1) * 2;
  if (n.hasInput(1)) {
    std::optional<int64_t> given = n.inputInt(1, "dft_length");
    if (!given)
      return {};
    length = n.expr(*given);
  }
  if (!length.isConstant() || length.getValue() < 1 || length.getValue() > maxTransformLength)
    return {n.fail(DiagId::UnsupportedForm, "a transform of " + length.str() + " elements")};
  int64_t size = length.getValue(), rows = isInverse && isOnesided ? size / 2 + 1 : size;
  // The transformed axis last.
  auto part = [&](int64_t index) {
    Value value = n.at(x, last, index);
    return resized(n, n.swapAxes(value, *normalized, n.rank(value) - 1), rows);
  };
  Complex y = transform(n, {part(0), isComplex ? part(1) : Value()}, size, isInverse, isOnesided);
  auto back = [&](Value v) { return n.swapAxes(v, *normalized, n.rank(v) - 1); };
  if (isInverse && isOnesided)
    return {n.unsqueeze(back(y.re), last)};
  return {n.stack(Values{back(y.re), back(y.im)}, last)};
}

/// onnxruntime's own forms: one dim, half of the frequencies.
static bool isPlainTransform(NodeContext &n) {
  for (auto [name, value] : {std::pair("signal_ndim", 1), std::pair("onesided", 1), std::pair("normalized", 0)})
    if (int64_t given = n.integer(name, value); given != value) {
      n.fail(DiagId::UnsupportedAttribute, name, given);
      return false;
    }
  return true;
}

static bool isTransformable(NodeContext &n, Expr length) {
  if (length.isConstant() && length.getValue() >= 1 && length.getValue() <= maxTransformLength)
    return true;
  n.fail(DiagId::UnsupportedForm, "a transform of " + length.str() + " elements");
  return false;
}

/// [..., length] real to [..., length / 2 + 1, 2]
Values rfft(NodeContext &n) {
  Value x = n.input(0);
  Expr length = n.dim(x, n.rank(x) - 1);
  if (!isPlainTransform(n) || !isTransformable(n, length))
    return {};
  Complex y = transform(n, {x, {}}, length.getValue(), /*isInverse=*/false, /*isOnesided=*/true);
  return {n.stack({y.re, y.im}, n.rank(x))};
}

/// [..., frequencies, 2] to [..., 2 * (frequencies - 1)] real
Values irfft(NodeContext &n) {
  Value x = n.input(0);
  int64_t last = n.rank(x) - 1;
  if (last < 1 || !n.shapes.assumeEqual(n.dim(x, last), n.expr(2)))
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "[..., frequencies, 2] is needed")};
  Expr length = n.shapes.simplify((n.dim(x, last - 1) - 1) * 2);
  if (!isPlainTransform(n) || !isTransformable(n, length))
    return {};
  Complex parts{n.at(x, last, 0), n.at(x, last, 1)};
  return {transform(n, parts, length.getValue(), /*isInverse=*/true, /*isOnesided=*/true).re};
}

/// Transforms of windows that begin `frame_step` apart: [batch, frames, frequencies, 2].
Values stft(NodeContext &n) {
  Value signal = n.input(0), window = n.optionalInput(2);
  std::optional<int64_t> step = n.inputInt(1, "frame_step");
  if (!step || n.rank(signal) < 2)
    return {n.fail(DiagId::WrongRank, 0, n.rank(signal), "batch and time are needed")};
  Expr length = window ? n.dim(window, 0) : n.expr(0);
  if (n.hasInput(3)) {
    std::optional<int64_t> given = n.inputInt(3, "frame_length");
    if (!given)
      return {};
    length = n.expr(*given);
  }
  if (!length.isConstant() || length.getValue() < 1 || length.getValue() > maxTransformLength || *step < 1)
    return {n.fail(DiagId::UnsupportedForm, "frames of " + length.str() + " elements")};
  bool isComplex = n.rank(signal) == 3 && n.dim(signal, 2).isConstant(2);
  if (n.rank(signal) == 2)
    signal = n.unsqueeze(signal, 2);
  Expr frames = (n.dim(signal, 1) - length).floorDiv(*step) + 1;
  Dims index = {frames, length};
  Value positions = n.add(n.mul(n.iota(0, index, n.si64()), double(*step)), n.iota(1, index, n.si64()));
  auto part = [&](int64_t i) {
    Value framed = n.gather(n.at(signal, 2, i), positions, 1); // [batch, frames, length]
    return window ? n.mul(framed, window) : framed;
  };
  Complex y = transform(n, {part(0), isComplex ? part(1) : Value()}, length.getValue(), false,
                        n.flag("onesided", true) && !isComplex);
  return {n.stack(Values{y.re, y.im}, 3)};
}

/// The inverse of taking windows: [N, C * window, positions] summed into an image [N, C, spatial...].
Values col2Im(NodeContext &n) {
  Value x = n.input(0);
  std::optional<Ints> image = n.inputInts(1, "image_shape"), block = n.inputInts(2, "block_shape");
  if (!image || !block || n.rank(x) != 3 || image->size() != block->size())
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "3 is needed, and one block size for each dim of the image")};
  size_t spatial = image->size();
  Ints dilations = n.integers("dilations", Ints(spatial, 1)), strides = n.integers("strides", Ints(spatial, 1));
  Ints pads = n.integers("pads", Ints(2 * spatial, 0));
  if (dilations.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial)
    return {n.fail(DiagId::BadAttribute, "dilations, strides or pads", "too short", "one value a dim is needed")};
  // index[window..., position...] in the padded image, dim by dim
  Dims whole, padded, positions;
  int64_t window = 1;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t size = (*image)[i] + pads[i] + pads[i + spatial], extent = dilations[i] * ((*block)[i] - 1) + 1;
    if (strides[i] < 1 || (*block)[i] < 1 || size < extent)
      return {n.fail(DiagId::BadAttribute, "block_shape", (*block)[i], "the block must fit into the image")};
    padded.push_back(n.expr(size));
    positions.push_back(n.expr((size - extent) / strides[i] + 1));
    whole.push_back(n.expr((*block)[i]));
    window *= (*block)[i];
  }
  llvm::append_range(whole, positions);
  Value index = n.scalar(0, n.si64());
  for (size_t i = 0; i < spatial; ++i) {
    Value along = n.add(n.mul(n.iota(i, whole, n.si64()), double(dilations[i])),
                        n.mul(n.iota(i + spatial, whole, n.si64()), double(strides[i])));
    index = n.add(n.mul(index, double(padded[i].getValue())), along);
  }
  Expr batch = n.dim(x, 0), channels = n.dim(x, 1).floorDiv(window), count = n.expr(window) * n.dim(x, 2);
  Value updates = n.reshape(x, {batch, channels, count});
  Value indices = n.broadcastTo(n.reshape(index, {count}), {batch, channels, count});
  Value zeros = n.fill(n.scalarLike(0, x), {batch, channels, product(n.getContext(), padded)});
  Value summed = n.scatterElements(zeros, indices, updates, 2, ScatterKind::Add);
  Dims dims = {batch, channels}, starts(2, n.expr(0)), cropped = dims;
  llvm::append_range(dims, padded);
  for (size_t i = 0; i < spatial; ++i) {
    starts.push_back(n.expr(pads[i]));
    cropped.push_back(n.expr((*image)[i]));
  }
  return {n.slice(n.reshape(summed, dims), starts, Ints(dims.size(), 1), cropped)};
}

//===----------------------------------------------------------------------===//
// Mel filters
//===----------------------------------------------------------------------===//

/// Triangles over the bins of a spectrum, between three neighbouring ones of num_mel_bins + 2 edges that are equally
/// far apart on the mel scale, 2595 log10(1 + f / 700). Rows are bins of the spectrum, columns triangles.
Values melWeightMatrix(NodeContext &n) {
  std::optional<int64_t> filters = n.inputInt(0, "num_mel_bins"), length = n.inputInt(1, "dft_length");
  if (!filters || !length)
    return {};
  constexpr int64_t most = 1 << 24;
  if (*filters < 1 || *length < 1 || *filters > most || *length > most)
    return {n.fail(DiagId::DimMismatch, "input 0 (num_mel_bins)", *filters, "what is needed", "a positive number")};
  Type type = n.f64();
  auto input = [&](size_t i) { return n.convert(n.reshape(n.input(i), {}), type); };
  auto toMel = [&](Value f) { return n.mul(n.log(n.add(n.div(f, 700.0), 1.0)), 2595 / std::log(10.0)); };
  Value low = toMel(input(3)), step = n.div(n.sub(toMel(input(4)), low), double(*filters + 2));
  Value mel = n.add(n.mul(n.iota(0, n.expr(*filters + 2), type), step), low);
  Value hertz = n.mul(n.add(n.binary<PowOp>(n.scalar(10, type), n.div(mel, 2595.0)), -1.0), 700.0);
  Value edges = n.unary<FloorOp>(n.div(n.mul(hertz, double(*length + 1)), input(2)));
  auto edge = [&](int64_t i) { return n.sliceAxis(edges, 0, n.expr(i), n.expr(*filters)); };
  Value left = edge(0), top = edge(1), right = edge(2);
  Value bin = n.iota(0, n.exprs({*length / 2 + 1, *filters}), type), zero = n.scalar(0, type), one = n.scalar(1, type);
  Value rise = n.sub(top, left), fall = n.sub(right, top);
  Value rising = n.select(n.equal(rise, zero), one, n.div(n.sub(bin, left), rise));
  Value isRising = n.logicalAnd(n.lessEqual(left, bin), n.lessEqual(bin, top));
  Value isFalling = n.logicalAnd(n.lessEqual(top, bin), n.less(bin, right));
  Value weight = n.select(isFalling, n.div(n.sub(right, bin), fall), n.select(isRising, rising, zero));
  return {n.convert(weight, n.has("output_datatype") ? n.typeAttribute("output_datatype") : n.f32())};
}

} // namespace ptc::decomp
