//===- Tensor.cpp - element access and conversion -------------------------===//
#include "ir/eval/Tensor.h"
#include "ir/prim/Elements.h"
#include "ir/prim/Prim.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace ptc;
using namespace ptc::eval;
using llvm::APFloat;
using llvm::APInt;

static llvm::Error error(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static unsigned widthOf(mlir::Type type) { return type.getIntOrFloatBitWidth(); }

static std::string toString(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::optional<int64_t> eval::countElements(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count))
      return std::nullopt;
  return count;
}

llvm::SmallVector<int64_t, 4> eval::rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (int64_t i = int64_t(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

llvm::Expected<Tensor> Tensor::create(mlir::Type elementType, llvm::ArrayRef<int64_t> shape) {
  if (prim::isHandle(elementType))
    return createOfHandles(elementType, shape);
  if (!elementType.isIntOrFloat() || (widthOf(elementType) > 64 && !prim::isComplex(elementType)))
    return error("tensors of " + toString(elementType) + " are not evaluated");
  std::optional<int64_t> count = countElements(shape);
  int64_t stride = (widthOf(elementType) + 7) / 8;
  if (!count || *count > maxBytes / stride)
    return error("a tensor's dims are negative or too large");
  Tensor tensor;
  tensor.elementType = elementType;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.count = *count;
  tensor.stride = stride;
  tensor.bytes.assign(*count * stride, 0);
  return tensor;
}

llvm::Expected<Tensor> Tensor::createOfHandles(mlir::Type elementType, llvm::ArrayRef<int64_t> shape) {
  std::optional<int64_t> count = countElements(shape);
  if (!count || *count > maxBytes / int64_t(sizeof(std::string)))
    return error("a tensor's dims are negative or too large");
  bool isText = llvm::isa<prim::StringType>(elementType);
  if (!isText && !shape.empty())
    return error("tensors of sequences are not evaluated");
  Tensor tensor;
  tensor.elementType = elementType;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.count = *count;
  tensor.stride = 0;
  if (isText)
    tensor.texts.resize(*count);
  return tensor;
}

llvm::Expected<Tensor> Tensor::fromPacked(mlir::Type elementType, llvm::ArrayRef<int64_t> shape,
                                          llvm::ArrayRef<char> bytes) {
  llvm::Expected<Tensor> tensor = create(elementType, shape);
  if (!tensor)
    return tensor.takeError();
  unsigned width = widthOf(elementType);
  bool isPacked = width < 8 && !elementType.isInteger(1);
  int64_t needed = isPacked ? (tensor->count * width + 7) / 8 : tensor->count * tensor->stride;
  if (int64_t(bytes.size()) != needed)
    return error(llvm::formatv("a tensor of {0} bytes has {1} bytes of data", needed, bytes.size()).str());
  if (!isPacked) {
    std::memcpy(tensor->bytes.data(), bytes.data(), bytes.size());
    if (elementType.isInteger(1))
      for (uint8_t &b : tensor->bytes)
        b = b != 0;
    return tensor;
  }
  for (int64_t i = 0; i != tensor->count; ++i) // an element of 6 bits may lie in two bytes
    for (unsigned bit = 0; bit != width; ++bit)
      tensor->bytes[i] |= (uint8_t(bytes[(i * width + bit) / 8]) >> ((i * width + bit) % 8) & 1) << bit;
  return tensor;
}

llvm::Expected<Tensor> Tensor::fromAttribute(mlir::ElementsAttr attr) {
  llvm::Expected<Tensor> tensor = create(attr.getElementType(), attr.getShapedType().getShape());
  if (!tensor)
    return tensor.takeError();
  auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(attr);
  if (!dense) {
    if (auto resource = llvm::dyn_cast<mlir::DenseResourceElementsAttr>(attr))
      if (mlir::AsmResourceBlob *blob = resource.getRawHandle().getBlob())
        return fromPacked(attr.getElementType(), attr.getShapedType().getShape(), blob->getData());
    return error("a constant is stored in a form that is not evaluated");
  }
  int64_t i = 0;
  if (auto strings = llvm::dyn_cast<mlir::DenseStringElementsAttr>(dense)) {
    for (llvm::StringRef text : strings.getValues<llvm::StringRef>())
      tensor->texts[i++] = text.str();
    return tensor;
  }
  if (widthOf(attr.getElementType()) > 64) {
    for (const APInt &value : dense.getValues<APInt>())
      std::memcpy(tensor->bytes.data() + tensor->stride * i++, value.getRawData(), tensor->stride);
  } else if (tensor->isFloat()) {
    for (const APFloat &value : dense.getValues<APFloat>())
      tensor->setBits(i++, value.bitcastToAPInt().getZExtValue());
  } else {
    for (const APInt &value : dense.getValues<APInt>())
      tensor->setBits(i++, value.getZExtValue());
  }
  return tensor;
}

mlir::DenseElementsAttr Tensor::toAttribute() const {
  auto type = mlir::RankedTensorType::get(shape, elementType);
  if (llvm::isa<prim::StringType>(elementType)) {
    llvm::SmallVector<llvm::StringRef> strings(texts.begin(), texts.end());
    return mlir::DenseStringElementsAttr::get(type, strings);
  }
  unsigned width = widthOf(elementType);
  if (width % 8 == 0) // the elements lie here as an attribute keeps them
    return mlir::DenseElementsAttr::getFromRawBuffer(
        type, llvm::ArrayRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  bool isSplat = count > 0;
  for (int64_t i = 1; i < count && isSplat; ++i)
    isSplat = getBits(i) == getBits(0);
  int64_t stored = isSplat ? 1 : count;
  if (auto floatType = llvm::dyn_cast<mlir::FloatType>(elementType)) {
    llvm::SmallVector<APFloat> values;
    for (int64_t i = 0; i != stored; ++i)
      values.emplace_back(floatType.getFloatSemantics(), APInt(width, getBits(i)));
    return mlir::DenseElementsAttr::get(type, values);
  }
  llvm::SmallVector<APInt> values;
  for (int64_t i = 0; i != stored; ++i)
    values.emplace_back(width, getBits(i));
  return mlir::DenseElementsAttr::get(type, values);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

uint64_t Tensor::getBits(int64_t i) const {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + i * stride, std::min<int64_t>(stride, sizeof(bits)));
  return bits;
}

void Tensor::setBits(int64_t i, uint64_t bits) { std::memcpy(bytes.data() + i * stride, &bits, stride); }

void Tensor::copyElement(int64_t to, const Tensor &from, int64_t fromIndex) {
  if (llvm::isa<prim::StringType>(elementType)) {
    texts[to] = from.texts[fromIndex];
    return;
  }
  if (llvm::isa<prim::SequenceType>(elementType)) {
    items = from.items;
    return;
  }
  std::memcpy(bytes.data() + to * stride, from.bytes.data() + fromIndex * stride, stride);
}

template <typename Bits> static void copyStrided(const uint8_t *from, uint8_t *to, int64_t count, int64_t step) {
  for (int64_t i = 0; i != count; ++i)
    std::memcpy(to + i * sizeof(Bits), from + i * step * int64_t(sizeof(Bits)), sizeof(Bits));
}

void Tensor::copyElements(int64_t to, int64_t count, const Tensor &from, int64_t fromIndex, int64_t step) {
  const uint8_t *source = from.bytes.data() + fromIndex * stride;
  uint8_t *target = bytes.data() + to * stride;
  bool isHandle = prim::isHandle(elementType);
  if (!isHandle && step == 1)
    std::memcpy(target, source, count * stride);
  else if (!isHandle && stride == 1)
    copyStrided<uint8_t>(source, target, count, step);
  else if (!isHandle && stride == 4)
    copyStrided<uint32_t>(source, target, count, step);
  else if (!isHandle && stride == 8)
    copyStrided<uint64_t>(source, target, count, step);
  else
    for (int64_t i = 0; i != count; ++i)
      copyElement(to + i, from, fromIndex + i * step);
}

int64_t Tensor::getInt(int64_t i) const {
  uint64_t bits = getBits(i);
  unsigned unused = 64 - widthOf(elementType);
  return isUnsigned() ? int64_t(bits) : int64_t(bits << unused) >> unused;
}

void Tensor::setInt(int64_t i, int64_t value) {
  unsigned width = widthOf(elementType);
  uint64_t mask = width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
  setBits(i, uint64_t(value) & mask);
}

// Formats of at most 8 bits lack values: one without NaN has -0 for it, one without infinity its largest (or NaN, which
// APFloat knows), one without a sign NaN, one without zero its smallest.
static std::optional<APFloat> standIn(double value, const llvm::fltSemantics &semantics) {
  bool hasNan = APFloat::semanticsHasNaN(semantics);
  if (!hasNan && std::isnan(value))
    return APFloat::getZero(semantics, /*Negative=*/true);
  if (!hasNan && std::isinf(value))
    return APFloat::getLargest(semantics, value < 0);
  if (!APFloat::semanticsHasSignedRepr(semantics) && (value < 0 || std::isnan(value)))
    return APFloat::getNaN(semantics);
  if (!APFloat::semanticsHasZero(semantics) && value == 0)
    return APFloat::getSmallest(semantics);
  return std::nullopt;
}

static APFloat toApFloat(double value, mlir::FloatType type) {
  if (type.getWidth() <= 8)
    if (std::optional<APFloat> special = standIn(value, type.getFloatSemantics()))
      return *special;
  APFloat result(value);
  bool losesInfo;
  result.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return result;
}

static double toDouble(APFloat value) {
  if (value.isNaN())
    return std::numeric_limits<double>::quiet_NaN();
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

double eval::roundToType(double value, mlir::FloatType type) {
  if (type.isF64())
    return value;
  return type.isF32() ? double(float(value)) : toDouble(toApFloat(value, type));
}

double Tensor::getFloat(int64_t i) const {
  uint64_t bits = getBits(i);
  if (elementType.isF32())
    return std::bit_cast<float>(uint32_t(bits));
  if (elementType.isF64())
    return std::bit_cast<double>(bits);
  if (elementType.isBF16())
    return std::bit_cast<float>(uint32_t(bits) << 16);
  return decodeFloat(bits, llvm::cast<mlir::FloatType>(elementType));
}

double eval::decodeFloat(uint64_t bits, mlir::FloatType type) {
  return toDouble(APFloat(type.getFloatSemantics(), APInt(type.getWidth(), bits)));
}

uint64_t eval::encodeFloat(double value, mlir::FloatType type) {
  return toApFloat(value, type).bitcastToAPInt().getZExtValue();
}

void Tensor::setFloat(int64_t i, double value) {
  if (elementType.isF32())
    return setBits(i, std::bit_cast<uint32_t>(float(value)));
  if (elementType.isF64())
    return setBits(i, std::bit_cast<uint64_t>(value));
  setBits(i, encodeFloat(value, llvm::cast<mlir::FloatType>(elementType)));
}

void Tensor::getFloats(int64_t first, llvm::MutableArrayRef<double> values) const {
  const uint8_t *from = bytes.data() + first * stride;
  if (elementType.isF64())
    std::memcpy(values.data(), from, values.size() * sizeof(double));
  else if (elementType.isF32())
    for (size_t i = 0; i != values.size(); ++i) {
      float value;
      std::memcpy(&value, from + i * sizeof(value), sizeof(value));
      values[i] = value;
    }
  else
    for (size_t i = 0; i != values.size(); ++i)
      values[i] = getFloat(first + int64_t(i));
}

void Tensor::setFloats(int64_t first, llvm::ArrayRef<double> values) {
  uint8_t *to = bytes.data() + first * stride;
  if (elementType.isF64())
    std::memcpy(to, values.data(), values.size() * sizeof(double));
  else if (elementType.isF32())
    for (size_t i = 0; i != values.size(); ++i) {
      float value = float(values[i]);
      std::memcpy(to + i * sizeof(value), &value, sizeof(value));
    }
  else
    for (size_t i = 0; i != values.size(); ++i)
      setFloat(first + int64_t(i), values[i]);
}

std::vector<double> Tensor::toDoubles() const {
  std::vector<double> values(count);
  if (isFloat()) {
    getFloats(0, values);
    return values;
  }
  for (int64_t i = 0; i != count; ++i)
    values[i] = isUnsigned() ? double(uint64_t(getInt(i))) : double(getInt(i));
  return values;
}

Tensor Tensor::reshaped(llvm::ArrayRef<int64_t> dims) && {
  assert(countElements(dims) == count && "a reshape keeps the number of elements");
  shape.assign(dims.begin(), dims.end());
  return std::move(*this);
}
