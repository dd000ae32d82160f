//===- Quantize.cpp - quantisation as plain arithmetic --------------------===//
//
// real = (quantised - zero_point) * scale. Scales and zero points are scalars, or
// vectors along an axis, or (version 21) one a block of elements along an axis.
// Products of quantised tensors are exact in 32-bit integers; passes/NarrowProducts.cpp
// makes products of 8-bit integers of them.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/ElementTypes.h"
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Quantized.h"
#include "lowering/decomp/Windows.h"

using namespace ptc::prim;

namespace ptc::decomp {

/// Whether dim `axis` of input `number`, a scale or zero point, is `needed`, if only by a guard.
static bool expectSize(NodeContext &n, size_t number, Value v, int64_t axis, Expr needed) {
  Expr size = n.dim(v, axis);
  bool fits = n.shapes.assumeEqual(size, needed);
  if (!fits)
    n.fail(DiagId::DimMismatch, "dim " + std::to_string(axis) + " of input " + std::to_string(number), size,
           "what fits input 0", needed);
  return fits;
}

/// Whether the zero point, if there is one, has the shape of the scale, or one element.
static bool expectShapeOfScale(NodeContext &n) {
  Value scale = n.input(1), zeroPoint = n.optionalInput(2);
  if (!scale || !zeroPoint)
    return bool(scale);
  auto isSingle = [&](Value v) { return llvm::all_of(n.dims(v), [](Expr dim) { return dim.isConstant(1); }); };
  if (isSingle(scale) && isSingle(zeroPoint))
    return true;
  if (n.rank(zeroPoint) != n.rank(scale)) {
    n.fail(DiagId::WrongRank, 2, n.rank(zeroPoint), "a zero point has the shape of its scale");
    return false;
  }
  for (int64_t i = 0; i < n.rank(scale); ++i)
    if (!n.shapes.assumeEqual(n.dim(zeroPoint, i), n.dim(scale, i))) {
      n.fail(DiagId::DimMismatch, "dim " + std::to_string(i) + " of input 2", n.dim(zeroPoint, i), "that of its scale",
             n.dim(scale, i));
      return false;
    }
  return true;
}

/// A scale or zero point (input `number`), with dims that broadcast to x, which is never stretched to it.
static Value spread(NodeContext &n, size_t number, Value x, int64_t blockSize) {
  Value v = n.optionalInput(number);
  if (!v || n.rank(v) == 0)
    return v;
  if (n.rank(v) == 1 && n.dim(v, 0).isConstant(1))
    return n.reshape(v, {});
  std::optional<int64_t> axis = n.axis(n.rank(x), 1);
  if (n.rank(v) == 1 && blockSize == 0) {
    if (!axis)
      return {};
    Expr size = n.dim(v, 0); // where it is not known it may turn out to be 1, which is for all of x
    if (size.isConstant() && !expectSize(n, number, v, 0, n.dim(x, *axis)))
      return {};
    Ints after;
    for (int64_t i = 1; i < n.rank(x) - *axis; ++i)
      after.push_back(i);
    Value aligned = n.unsqueeze(v, after);
    return size.isConstant() ? aligned : n.broadcastTo(aligned, n.dims(x));
  }
  if (!axis || n.rank(v) != n.rank(x) || blockSize < 1)
    return n.fail(DiagId::WrongRank, number, n.rank(v), "a scalar, a vector or a scale a block is needed");
  for (int64_t i = 0; i < n.rank(v); ++i)
    if (!expectSize(n, number, v, i, i == *axis ? n.dim(x, i).ceilDiv(blockSize) : n.dim(x, i)))
      return {};
  // Each block's value, repeated: [.., blocks, ..] -> [.., blocks, size, ..] -> [.., dim, ..]
  Dims wide = n.dims(v), joined = wide;
  wide.insert(wide.begin() + *axis + 1, n.expr(blockSize));
  joined[*axis] = joined[*axis] * blockSize;
  Ints axes;
  for (int64_t i = 0; i < n.rank(v); ++i)
    axes.push_back(i <= *axis ? i : i + 1);
  Value repeated = n.reshape(n.broadcast(v, axes, wide), joined);
  return n.sliceAxis(repeated, *axis, n.expr(0), n.dim(x, *axis)); // the last block may be short
}

Value quantize(NodeContext &n, Value x, Value scale, Value zeroPoint, Type to) {
  Value scaled = n.div(x, n.convertLike(scale, x));
  if (llvm::isa<mlir::FloatType>(to)) {
    if (zeroPoint)
      scaled = n.add(scaled, n.convertLike(zeroPoint, scaled));
    double largest = llvm::APFloat::getLargest(llvm::cast<mlir::FloatType>(to).getFloatSemantics()).convertToDouble();
    return n.convert(n.flag("saturate", true) ? n.clamp(scaled, -largest, largest) : scaled, to);
  }
  Value rounded = n.unary<RoundOp>(scaled);
  if (n.elementType(rounded).getIntOrFloatBitWidth() < 32)
    rounded = n.convert(rounded, n.f32());
  if (zeroPoint)
    rounded = n.add(rounded, n.convertLike(zeroPoint, rounded));
  return n.convert(rounded, to); // which saturates
}

Values quantizeLinear(NodeContext &n) {
  Value x = n.input(0), scale = n.input(1), zeroPoint = n.optionalInput(2);
  Type to = zeroPoint                      ? n.elementType(zeroPoint)
            : n.integer("output_dtype", 0) ? n.typeAttribute("output_dtype")
                                           : n.ui8();
  if (!to || !expectShapeOfScale(n))
    return {};
  int64_t blockSize = n.integer("block_size", 0);
  Value wide = n.isFloat(x) ? x : n.convertLike(x, scale);
  return {quantize(n, wide, spread(n, 1, x, blockSize), spread(n, 2, x, blockSize), to)};
}

Value dequantize(NodeContext &n, Value x, Value scale, Value zeroPoint) {
  Value y;
  if (zeroPoint && n.isInteger(x))
    y = n.convertLike(n.sub(n.convert(x, n.si32()), n.convert(zeroPoint, n.si32())), scale);
  else if (zeroPoint)
    y = n.sub(n.convertLike(x, scale), n.convertLike(zeroPoint, scale));
  else
    y = n.convertLike(x, scale);
  return n.mul(y, scale);
}

Values dequantizeLinear(NodeContext &n) {
  Value x = n.input(0);
  if (!expectShapeOfScale(n))
    return {};
  int64_t blockSize = n.integer("block_size", 0);
  Value y = dequantize(n, x, spread(n, 1, x, blockSize), spread(n, 2, x, blockSize));
  return {n.integer("output_dtype", 0) ? n.convert(y, n.typeAttribute("output_dtype")) : y};
}

/// scale = (max(x, 0) - min(x, 0)) / 255; zero point = round(-min / scale)
Values dynamicQuantizeLinear(NodeContext &n) {
  Value x = n.input(0), zero = n.scalarLike(0, x);
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(n.rank(x)));
  Value low = n.minimum(n.reduce(ReduceKind::Min, x, axes, false), zero);
  Value high = n.maximum(n.reduce(ReduceKind::Max, x, axes, false), zero);
  Value scale = n.div(n.sub(high, low), 255.0);
  Value shift = n.unary<RoundOp>(n.clamp(n.div(n.neg(low), scale), 0, 255));
  Value zeroPoint = n.convert(shift, n.ui8());
  return {quantize(n, x, scale, zeroPoint, n.ui8()), scale, zeroPoint};
}

//===----------------------------------------------------------------------===//
// Integer products
//===----------------------------------------------------------------------===//

Value centered(NodeContext &n, Value x, Value zeroPoint, int64_t axis) {
  Value wide = n.convert(x, n.si32());
  if (!zeroPoint)
    return wide;
  Value shift = n.convert(zeroPoint, n.si32());
  if (n.rank(shift) == 1 && n.dim(shift, 0).isConstant(1))
    shift = n.reshape(shift, {});
  if (n.rank(shift) == 1)
    shift = n.broadcast(shift, axis, n.dims(wide));
  return n.sub(wide, shift);
}

static int64_t rowAxis(NodeContext &n, Value x) { return std::max<int64_t>(0, n.rank(x) - 2); }
static int64_t columnAxis(NodeContext &n, Value x) { return std::max<int64_t>(0, n.rank(x) - 1); }

Values matMulInteger(NodeContext &n) {
  Value a = n.input(0), b = n.input(1);
  return {n.matmul(centered(n, a, n.optionalInput(2), rowAxis(n, a)),
                   centered(n, b, n.optionalInput(3), columnAxis(n, b)))};
}

/// scale * integer, quantised to the type of the result's zero point
static Value requantize(NodeContext &n, Value product, Value scale, Value outScale, Value outZero) {
  return quantize(n, n.mul(n.convert(product, n.f32()), scale), outScale, outZero, n.elementType(outZero));
}

Value scaleAlong(NodeContext &n, Value scale, Value x, int64_t axis) {
  if (n.rank(scale) == 0 || n.dim(scale, 0).isConstant(1))
    return n.convert(n.reshape(scale, {}), n.f32());
  return n.rank(scale) == 1 ? n.convert(n.broadcast(scale, axis, n.dims(x)), n.f32()) : n.convert(scale, n.f32());
}

Value scaleOfProduct(NodeContext &n, Value rowScale, int64_t rows, Value columnScale, int64_t columns, Value y) {
  // A scalar is multiplied while the other is small.
  if (n.rank(rowScale) == 0 || (n.rank(rowScale) == 1 && n.dim(rowScale, 0).isConstant(1)))
    return scaleAlong(n, n.mul(n.convert(n.reshape(rowScale, {}), n.f32()), n.convert(columnScale, n.f32())), y,
                      columns);
  return n.mul(scaleAlong(n, rowScale, y, rows), scaleAlong(n, columnScale, y, columns));
}

Values qlinearMatMul(NodeContext &n) {
  Value a = n.input(0), b = n.input(3);
  Value product = n.matmul(centered(n, a, n.input(2), rowAxis(n, a)), centered(n, b, n.input(5), columnAxis(n, b)));
  if (!product)
    return {};
  Value scale = scaleOfProduct(n, n.input(1), rowAxis(n, product), n.input(4), columnAxis(n, product), product);
  return {requantize(n, product, scale, n.reshape(n.input(6), {}), n.reshape(n.input(7), {}))};
}

static Value integerConvolution(NodeContext &n, Value x, Value xZero, Value w, Value wZero) {
  std::optional<Ints> size = windowSize(n, x, w);
  std::optional<PlacedWindow> window = size ? placeWindow(n, x, *size) : std::nullopt;
  int64_t groups = n.integer("group", 1);
  if (!window || groups < 1)
    return n.fail(DiagId::BadAttribute, "group", groups, "it must divide the channels");
  return n.convolution(centered(n, x, xZero, 1), centered(n, w, wZero, 0), *window, groups);
}

Values convInteger(NodeContext &n) {
  return {integerConvolution(n, n.input(0), n.optionalInput(2), n.input(1), n.optionalInput(3))};
}

Values qlinearConv(NodeContext &n) {
  Value product = integerConvolution(n, n.input(0), n.input(2), n.input(3), n.input(5));
  if (Value bias = n.optionalInput(8); bias && product)
    product = n.add(product, n.broadcast(bias, 1, n.dims(product)));
  if (!product)
    return {};
  Value scale = scaleOfProduct(n, n.reshape(n.input(1), {}), 0, n.input(4), 1, product);
  return {requantize(n, product, scale, n.reshape(n.input(6), {}), n.reshape(n.input(7), {}))};
}

} // namespace ptc::decomp
