//===- Fourier.cpp - operators that transform signals ---------------------===//
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Transform.h"

using namespace ptc::prim;

namespace ptc::decomp {

/// The last dim cut or filled with zeros to `size`.
static Value resized(NodeContext &n, Value x, Expr size) {
  int64_t axis = n.rank(x) - 1;
  Expr dim = n.dim(x, axis);
  if (!x || dim == size)
    return x;
  if (dim.isConstant() && size.isConstant() && dim.getValue() > size.getValue())
    return n.sliceAxis(x, axis, n.expr(0), size);
  Dims low(n.rank(x), n.expr(0)), high = low;
  high.back() = n.shapes.simplify(Expr::max(size - dim, n.expr(0)));
  Value filled = n.pad(x, n.scalarLike(0, x), low, high);
  return dim.isConstant() && size.isConstant() ? filled : n.sliceAxis(filled, axis, n.expr(0), size);
}

/// A length that the node is given, or one that the run finds.
static Expr givenLength(NodeContext &n, size_t i, llvm::StringRef what, Expr otherwise) {
  if (!n.hasInput(i))
    return otherwise;
  std::optional<Dims> given = n.knownExprs(n.input(i));
  if (given && given->size() == 1)
    return given->front();
  std::optional<Values> scalars = n.inputScalars(i, what);
  if (!scalars)
    return {};
  return n.bind(scalars->front(), {}, 1);
}

/// Whether the dim of the parts holds an imaginary one as well: 2, which an open dim is taken for, and a guard says so.
static bool hasTwoParts(NodeContext &n, Expr dim) {
  return dim.isConstant() ? dim.getValue() == 2 : n.shapes.assumeEqual(dim, n.expr(2));
}

/// [..., signal, ..., 1 or 2]: the last dim holds the real and the imaginary part. The axis is an attribute up to
/// version 17 and an input from 20.
Values dft(NodeContext &n) {
  Value x = n.input(0);
  TransformKind kind{.isInverse = n.flag("inverse"), .isOnesided = n.flag("onesided")};
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
  bool isComplex = hasTwoParts(n, n.dim(x, last)), isHalf = kind.isInverse && kind.isOnesided;
  Expr length = n.dim(x, *normalized);
  length = givenLength(n, 1, "dft_length", isHalf ? (length - 1) * 2 : length);
  if (!length)
    return {};
  length = n.shapes.simplify(length);
  Expr rows = isHalf ? n.shapes.simplify(length.floorDiv(2) + 1) : length;
  // The transformed axis last.
  auto part = [&](int64_t index) {
    Value value = n.at(x, last, index);
    return resized(n, n.swapAxes(value, *normalized, n.rank(value) - 1), rows);
  };
  ComplexParts y = transform(n, {part(0), isComplex ? part(1) : Value()}, length, kind);
  auto back = [&](Value v) { return n.swapAxes(v, *normalized, n.rank(v) - 1); };
  if (isHalf)
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

/// [..., length] real to [..., length / 2 + 1, 2]
Values rfft(NodeContext &n) {
  Value x = n.input(0);
  if (!isPlainTransform(n) || !n.hasAxis(x, 0))
    return {};
  ComplexParts y = transform(n, {x, {}}, n.dim(x, n.rank(x) - 1), {.isOnesided = true, .areRows = true});
  return {n.stack({y.re, y.im}, n.rank(x))};
}

/// [..., frequencies, 2] to [..., 2 * (frequencies - 1)] real
Values irfft(NodeContext &n) {
  Value x = n.input(0);
  int64_t last = n.rank(x) - 1;
  if (last < 1 || !n.shapes.assumeEqual(n.dim(x, last), n.expr(2)))
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "[..., frequencies, 2] is needed")};
  if (!isPlainTransform(n))
    return {};
  Expr length = n.shapes.simplify((n.dim(x, last - 1) - 1) * 2);
  ComplexParts parts{n.at(x, last, 0), n.at(x, last, 1)};
  return {transform(n, parts, length, {.isInverse = true, .isOnesided = true, .areRows = true}).re};
}

/// Transforms of windows that begin `frame_step` apart: [batch, frames, frequencies, 2].
Values stft(NodeContext &n) {
  Value signal = n.input(0), window = n.optionalInput(2);
  std::optional<int64_t> step = n.inputInt(1, "frame_step");
  if (!step || n.rank(signal) < 2)
    return {n.fail(DiagId::WrongRank, 0, n.rank(signal), "batch and time are needed")};
  Expr length = givenLength(n, 3, "frame_length", window ? n.dim(window, 0) : n.expr(0));
  if (!length)
    return {};
  if ((length.isConstant() && length.getValue() < 1) || *step < 1)
    return {n.fail(DiagId::UnsupportedForm, "frames of " + length.str() + " elements")};
  bool isComplex = n.rank(signal) == 3 && hasTwoParts(n, n.dim(signal, 2));
  if (n.rank(signal) == 2)
    signal = n.unsqueeze(signal, 2);
  Expr frames = n.settle((n.dim(signal, 1) - length).floorDiv(*step) + 1);
  Dims index = {frames, length};
  Value positions = n.add(n.mul(n.iota(0, index, n.si64()), double(*step)), n.iota(1, index, n.si64()));
  auto part = [&](int64_t i) {
    Value framed = n.gather(n.at(signal, 2, i), positions, 1); // [batch, frames, length]
    return window ? n.mul(framed, window) : framed;
  };
  TransformKind kind{.isOnesided = n.flag("onesided", true) && !isComplex, .areRows = true};
  ComplexParts y = transform(n, {part(0), isComplex ? part(1) : Value()}, length, kind);
  return {n.stack(Values{y.re, y.im}, 3)};
}

} // namespace ptc::decomp
