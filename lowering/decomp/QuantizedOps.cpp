//===- QuantizedOps.cpp - onnxruntime's operators on quantised tensors ----===//
//
// com.microsoft. Pointwise ones and their kind dequantise, compute, quantise: fusion
// makes one kernel of it. Products are of integers.
//
//===----------------------------------------------------------------------===//
#include "ir/prim/ByteRows.h"
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Quantized.h"
#include "lowering/decomp/Windows.h"

using namespace ptc::prim;

namespace ptc::decomp {

/// A scale or zero point of one element, as a scalar; null where the input is absent.
static Value single(NodeContext &n, size_t i) {
  Value x = n.optionalInput(i);
  return x ? n.reshape(x, {}) : Value();
}

/// Input i, whose scale and zero point follow, as real numbers.
static Value real(NodeContext &n, size_t i) {
  Value scale = n.input(i + 1);
  return dequantize(n, n.input(i), n.reshape(scale, {}), single(n, i + 2));
}

/// Quantised to the type of input `like`, with scale and zero point from input i on.
static Value quantized(NodeContext &n, Value x, size_t i, Value like) {
  Value scale = n.input(i);
  return like ? quantize(n, x, n.reshape(scale, {}), single(n, i + 1), n.elementType(like)) : Value();
}

//===----------------------------------------------------------------------===//
// Pointwise operators and their kind
//===----------------------------------------------------------------------===//

Values qlinearAdd(NodeContext &n) { return {quantized(n, n.add(real(n, 0), real(n, 3)), 6, n.input(0))}; }
Values qlinearMul(NodeContext &n) { return {quantized(n, n.mul(real(n, 0), real(n, 3)), 6, n.input(0))}; }
Values qlinearSigmoid(NodeContext &n) { return {quantized(n, n.sigmoid(real(n, 0)), 3, n.input(0))}; }

Values qlinearLeakyRelu(NodeContext &n) {
  Value x = real(n, 0), zero = n.scalarLike(0, x);
  Value y = n.select(n.less(x, zero), n.mul(x, n.real("alpha", 0.01)), x);
  return {quantized(n, y, 3, n.input(0))};
}

/// `opset` tells which Softmax is meant: before 13 the dims from `axis` on are one.
Values qlinearSoftmax(NodeContext &n) {
  Value x = real(n, 0);
  std::optional<int64_t> axis = n.axis(n.rank(x), -1);
  if (!axis)
    return {};
  if (n.integer("opset", 13) >= 13)
    return {quantized(n, n.softmax(x, *axis), 3, n.input(0))};
  Dims dims = n.dims(x);
  Expr rows = product(n.getContext(), llvm::ArrayRef(dims).take_front(*axis));
  Expr columns = product(n.getContext(), llvm::ArrayRef(dims).drop_front(*axis));
  Value y = n.reshape(n.softmax(n.reshape(x, {rows, columns}), 1), dims);
  return {quantized(n, y, 3, n.input(0))};
}

/// The result's scale and zero point come first, then tensor, scale and zero point of each input.
Values qlinearConcat(NodeContext &n) {
  Values parts;
  if (n.inputCount() < 5 || n.inputCount() % 3 != 2)
    return {n.fail(DiagId::DimMismatch, "the number of inputs", n.inputCount(), "what is needed", "2 and 3 a tensor")};
  for (size_t i = 2; i < n.inputCount(); i += 3)
    parts.push_back(real(n, i));
  std::optional<int64_t> axis = n.axis(n.rank(parts.front()), 1);
  return {axis ? quantized(n, n.concat(parts, *axis), 0, n.input(2)) : Value()};
}

Values qlinearWhere(NodeContext &n) {
  return {quantized(n, n.select(n.input(0), real(n, 1), real(n, 4)), 7, n.input(1))};
}

Values qlinearReduceMean(NodeContext &n) {
  Value x = real(n, 0);
  Ints axes = n.integers("axes", llvm::to_vector(llvm::seq<int64_t>(n.rank(x))));
  for (int64_t &axis : axes) {
    std::optional<int64_t> place = n.normalizeAxis(axis, n.rank(x));
    if (!place)
      return {};
    axis = *place;
  }
  return {quantized(n, n.mean(x, axes, n.flag("keepdims", true)), 3, n.input(0))};
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// Dims with the channels in front, and back.
static std::pair<Ints, Ints> channelOrders(int64_t rank) {
  Ints toFirst = {0, rank - 1}, toLast = {0};
  for (int64_t i = 1; i + 1 < rank; ++i) {
    toFirst.push_back(i);
    toLast.push_back(i + 1);
  }
  toLast.push_back(1);
  return {toFirst, toLast};
}

template <typename Pool> static Values pooled(NodeContext &n, Pool pool) {
  Value x = real(n, 0);
  if (n.rank(x) < 3)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "images are needed")};
  auto [toFirst, toLast] = channelOrders(n.rank(x));
  bool isLast = n.flag("channels_last");
  Value y = pool(isLast ? n.transpose(x, toFirst) : x);
  return {quantized(n, isLast ? n.transpose(y, toLast) : y, 3, n.input(0))};
}

Values qlinearAveragePool(NodeContext &n) {
  return pooled(n, [&](Value x) -> Value {
    std::optional<Ints> size = windowSize(n, x);
    std::optional<PlacedWindow> window = size ? placeWindow(n, x, *size) : std::nullopt;
    if (!window)
      return {};
    Dims ones(n.rank(x), n.expr(1));
    for (int64_t i = 2; i < n.rank(x); ++i)
      ones[i] = n.dim(x, i);
    Value sum = n.windowReduce(ReduceKind::Sum, x, *window);
    if (n.flag("count_include_pad") && !window->hasOverhang) {
      double count = 1;
      for (int64_t k : window->size)
        count *= k;
      return n.div(sum, count);
    }
    if (n.flag("count_include_pad"))
      return n.fail(DiagId::UnsupportedAttribute, "ceil_mode", 1);
    return n.div(sum, n.windowReduce(ReduceKind::Sum, n.fill(n.scalarLike(1, x), ones), *window));
  });
}

Values qlinearGlobalAveragePool(NodeContext &n) {
  return pooled(n, [&](Value x) {
    Ints axes = llvm::to_vector(llvm::seq<int64_t>(2, n.rank(x)));
    return n.mean(x, axes, /*keepDims=*/true);
  });
}

/// The largest element of each window; channels stand last.
Values nhwcMaxPool(NodeContext &n) {
  Value x = n.input(0);
  if (n.rank(x) < 3)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "images are needed")};
  auto [toFirst, toLast] = channelOrders(n.rank(x));
  Value image = n.transpose(x, toFirst);
  std::optional<Ints> size = windowSize(n, image);
  std::optional<PlacedWindow> window = size ? placeWindow(n, image, *size) : std::nullopt;
  return {window ? n.transpose(n.windowReduce(ReduceKind::Max, image, *window), toLast) : Value()};
}

/// Convolution of integers with the channels first, or last as `channels_last` says.
Values qlinearConvAnyLayout(NodeContext &n) {
  Value x = n.input(0), w = n.input(3), outScale = n.input(6), outZero = n.input(7);
  if (n.rank(x) < 3)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "images are needed")};
  auto [toFirst, toLast] = channelOrders(n.rank(x));
  bool isLast = n.flag("channels_last");
  Value image = isLast ? n.transpose(x, toFirst) : x;
  std::optional<Ints> size = windowSize(n, image, w);
  std::optional<PlacedWindow> window = size ? placeWindow(n, image, *size) : std::nullopt;
  int64_t groups = n.integer("group", 1);
  if (!window)
    return {};
  if (groups < 1 || !n.shapes.assumeEqual(n.dim(w, 0).mod(groups), n.expr(0)))
    return {n.fail(DiagId::BadAttribute, "group", groups, "it must divide the channels")};
  Value sum = n.convolution(centered(n, image, n.input(2), 1), centered(n, w, n.input(5), 0), *window, groups);
  if (Value bias = n.optionalInput(8); bias && sum)
    sum = n.add(sum, n.broadcast(bias, 1, n.dims(sum)));
  if (!sum)
    return {};
  Value scale = scaleOfProduct(n, n.reshape(n.input(1), {}), 0, n.input(4), 1, sum);
  Value y = quantize(n, n.mul(n.convert(sum, n.f32()), scale), n.reshape(outScale, {}), n.reshape(outZero, {}),
                     n.elementType(outZero));
  return {isLast ? n.transpose(y, toLast) : y};
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Integers a and b multiplied, as real numbers: scales are scalars or belong to the columns.
static Value realProduct(NodeContext &n, Value a, Value aZero, Value aScale, Value b, Value bZero, Value bScale) {
  int64_t rows = std::max<int64_t>(0, n.rank(a) - 2), columns = std::max<int64_t>(0, n.rank(b) - 1);
  Value product = n.matmul(centered(n, a, aZero, rows), centered(n, b, bZero, columns));
  if (!product)
    return {};
  Value scale = scaleOfProduct(n, aScale, n.rank(product) - 2, bScale, n.rank(product) - 1, product);
  return n.mul(n.convert(product, n.f32()), scale);
}

Values matMulIntegerToFloat(NodeContext &n) {
  Value y = realProduct(n, n.input(0), n.optionalInput(4), n.input(2), n.input(1), n.optionalInput(5), n.input(3));
  return {n.convertLike(n.hasInput(6) ? n.add(y, n.input(6)) : y, n.input(2))};
}

/// The left operand is quantised to 8 bits by its own range first.
Values dynamicQuantizeMatMul(NodeContext &n) {
  Values a = dynamicQuantizeLinear(n); // of input 0
  Value y = realProduct(n, a[0], a[2], a[1], n.input(1), n.optionalInput(3), n.input(2));
  return {n.hasInput(4) ? n.add(y, n.input(4)) : y};
}

/// alpha * A B + C, C in units of the product's scale; quantised where a scale for the result is given.
Values qgemm(NodeContext &n) {
  Value a = n.input(0), b = n.input(3), bZero = n.input(5), bScale = n.input(4);
  if (n.rank(a) != 2 || n.rank(b) != 2)
    return {n.fail(DiagId::WrongRank, 0, n.rank(a), "matrices are needed")};
  if (n.flag("transA"))
    a = n.swapAxes(a, 0, 1);
  if (n.flag("transB"))
    b = n.swapAxes(b, 0, 1);
  Value product = n.matmul(centered(n, a, n.input(2), 0), centered(n, b, bZero, 1));
  if (n.hasInput(6))
    product = n.add(product, n.broadcastTo(n.input(6), n.dims(product)));
  if (!product)
    return {};
  Value aScale = n.mul(n.reshape(n.input(1), {}), n.real("alpha", 1.0));
  Value scale = scaleOfProduct(n, aScale, 0, bScale, 1, product);
  Value y = n.mul(n.convert(product, n.f32()), scale);
  if (!n.hasInput(7))
    return {y};
  Type to = n.hasInput(8) ? n.elementType(n.input(8)) : n.elementType(a);
  return {quantize(n, y, n.reshape(n.input(7), {}), single(n, 8), to)};
}

//===----------------------------------------------------------------------===//
// Weights of few bits
//===----------------------------------------------------------------------===//

/// The numbers of `bits` bits in bytes, the lowest bits first: [..., bytes] becomes [..., bytes * 8 / bits]. With
/// `copies` each stands there so many times, in a dim of its own: [..., bytes * 8 / bits, copies].
static Value unpackBits(NodeContext &n, Value bytes, int64_t bits, std::optional<int64_t> copies = std::nullopt) {
  if (!bytes)
    return {};
  int64_t rank = n.rank(bytes), perByte = 8 / bits;
  Dims dims = n.dims(bytes), each = dims;
  dims.back() = dims.back() * perByte;
  if (perByte > 1)
    each.push_back(n.expr(perByte));
  if (copies) {
    each.push_back(n.expr(*copies));
    dims.push_back(n.expr(*copies));
  }
  Value numbers = n.broadcast(bytes, llvm::to_vector<6>(llvm::seq<int64_t>(rank)), each);
  if (perByte > 1) {
    numbers = n.binary<ShiftRightOp>(numbers, n.mul(n.iota(rank, each, n.ui8()), double(bits)));
    numbers = n.logicalAnd(numbers, n.scalarLike(double((1 << bits) - 1), numbers));
  }
  return n.reshape(numbers, dims);
}

/// The product's rows may be rounded to 8 bits; `y` is the product, or a reshape of it where a is a vector.
static void permitByteRows(Value y) {
  while (auto reshape = y.getDefiningOp<ReshapeOp>())
    y = reshape.getX();
  if (auto product = y.getDefiningOp<MatmulOp>())
    product->setAttr(byteRowsAttr, mlir::UnitAttr::get(product.getContext()));
}

/// A W^T: W [N, K] is (q - zero) * scale, in blocks along K. q is packed as [N, blocks, bytes].
Values matMulNBits(NodeContext &n) {
  Value a = n.input(0), packed = n.input(1), scales = n.input(2), zeros = n.optionalInput(3);
  int64_t rows = n.integer("N", 0), width = n.integer("K", 0), block = n.integer("block_size", 0);
  int64_t bits = n.integer("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8)
    return {n.fail(DiagId::UnsupportedAttribute, "bits", bits)};
  if (n.integer("weight_prepacked", 0) != 0)
    return {n.fail(DiagId::UnsupportedAttribute, "weight_prepacked", n.integer("weight_prepacked", 0))};
  if (n.hasInput(4))
    return {n.fail(DiagId::UnsupportedForm, "input 4 (g_idx)")};
  for (auto [name, value] : {std::pair("N", rows), std::pair("K", width), std::pair("block_size", block)})
    if (value < 1 || value > INT32_MAX)
      return {n.fail(DiagId::BadAttribute, name, value, "a positive number of 31 bits is needed")};
  int64_t blocks = (width + block - 1) / block;
  if (packed && n.elementType(packed) != n.ui8())
    return {n.fail(DiagId::WrongInputType, 1, n.elementType(packed), "uint8 is needed")};
  Value q = n.convertLike(unpackBits(n, n.reshape(packed, n.exprs({rows, blocks, block * bits / 8})), bits), a);
  Value scale = n.unsqueeze(n.reshape(scales, n.exprs({rows, blocks})), 2);
  Value zero = n.scalarLike(double(1 << (bits - 1)), a);
  if (zeros && n.isFloat(zeros)) {
    zero = n.unsqueeze(n.reshape(zeros, n.exprs({rows, blocks})), 2);
  } else if (zeros) {
    int64_t bytes = (blocks * bits + 7) / 8;
    // Numbers of few bits for each element, not for each block: nothing is worth a place in memory.
    Value all = unpackBits(n, n.reshape(zeros, n.exprs({rows, bytes})), bits, block);
    zero = n.convertLike(n.sliceAxis(all, 1, n.expr(0), n.expr(blocks)), a);
  }
  Value w =
      n.reshape(n.mul(n.sub(q, n.convertLike(zero, a)), n.convertLike(scale, a)), n.exprs({rows, blocks * block}));
  w = n.sliceAxis(w, 1, n.expr(0), n.expr(width));
  Value y = n.matmul(a, n.swapAxes(w, 0, 1));
  constexpr int64_t inBytes = 4; // rows may be rounded to 8 bits, block by block
  if (n.integer("accuracy_level", 0) == inBytes)
    permitByteRows(y);
  return {n.hasInput(5) ? n.add(y, n.input(5)) : y};
}

/// Rows of a table of quantised numbers, dequantised: one scale a block of the last dim. Numbers below 8 bits come as
/// such, or packed in bytes.
Values gatherBlockQuantized(NodeContext &n) {
  Value table = n.input(0), indices = n.input(1), scales = n.input(2), zeros = n.optionalInput(3);
  int64_t block = n.integer("block_size", 128), bits = n.integer("bits", 4);
  std::optional<int64_t> gatherAxis = n.axis(n.rank(table), 0, "gather_axis");
  std::optional<int64_t> blockAxis = n.axis(n.rank(table), 1, "quantize_axis");
  if (!gatherAxis || !blockAxis)
    return {};
  bool isLast = *blockAxis + 1 == n.rank(table) && *gatherAxis != *blockAxis;
  if (!isLast)
    return {n.fail(DiagId::UnsupportedAttribute, "quantize_axis", *blockAxis)};
  bool areBytes = table && n.elementType(table) == n.ui8();
  if ((bits != 2 && bits != 4 && bits != 8) || block < 1)
    return {n.fail(DiagId::UnsupportedAttribute, block < 1 ? "block_size" : "bits", block < 1 ? block : bits)};
  auto rows = [&](Value x) { return n.gather(x, indices, *gatherAxis); };
  Value q = rows(table), scale = rows(scales), zero = zeros ? rows(zeros) : Value();
  if (areBytes && bits < 8) {
    q = unpackBits(n, q, bits);
    zero = zero ? unpackBits(n, zero, bits) : Value();
  }
  if (areBytes && !zeros) // half of the range
    zero = n.scalar(double(1 << (bits - 1)), n.ui8());
  if (!q || !scale)
    return {};
  Dims dims = n.dims(q), perBlock = n.dims(scale);
  Expr width = dims.back(), blocks = perBlock.back();
  // [..., blocks] -> [..., blocks, block] -> [..., width]
  auto spread = [&](Value x) {
    if (!x || n.rank(x) == 0)
      return x;
    x = n.sliceAxis(x, n.rank(x) - 1, n.expr(0), blocks); // bytes may hold one zero point more
    Dims wide = perBlock, joined = perBlock;
    wide.push_back(n.expr(block));
    joined.back() = blocks * block;
    Ints axes = llvm::to_vector<6>(llvm::seq<int64_t>(n.rank(x)));
    return n.sliceAxis(n.reshape(n.broadcast(x, axes, wide), joined), n.rank(x) - 1, n.expr(0), width);
  };
  return {dequantize(n, q, spread(scale), spread(zero))};
}

/// Products of 16-bit integers in 32 bits, unsigned where both are.
Values matMulInteger16(NodeContext &n) {
  Value a = n.input(0), b = n.input(1);
  Type type = n.isUnsigned(a) && n.isUnsigned(b) ? n.getBuilder().getIntegerType(32, /*isSigned=*/false) : n.si32();
  return {n.matmul(n.convert(a, type), n.convert(b, type))};
}

} // namespace ptc::decomp
