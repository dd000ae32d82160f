//===- Tensors.cpp - TensorProto becomes a constant or a weight -----------===//
//
// A tensor's elements stand in one of three forms: raw little-endian bytes, in the
// model or outside (ModelFile.h gives both the same face); or one of the typed
// lists, where int32_data serves every type of at most 32 bits, floats included;
// types below 8 bits are packed, the first element in the low bits.
//
//===----------------------------------------------------------------------===//
#include "lowering/onnx/Tensors.h"
#include "ir/Diagnostics.h"
#include "ir/prim/Elements.h"
#include "ir/prim/Prim.h"
#include "lowering/decomp/ElementTypes.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::onnx_import;
using onnx::TensorProto;

namespace {

/// Bytes of one element as MLIR keeps it; sub-byte elements take one byte each there.
unsigned storedWidth(Type type) { return std::max(8u, type.getIntOrFloatBitWidth()); }

/// Little-endian bytes of the elements in MLIR's form, from packed sub-byte elements.
std::vector<char> unpack(StringRef packed, unsigned width, uint64_t count) {
  std::vector<char> bytes(count);
  for (uint64_t i = 0; i < count; ++i) { // an element of 6 bits may lie in two bytes
    uint64_t place = i * width;
    unsigned pair = uint8_t(packed[place / 8]);
    if (place % 8 + width > 8)
      pair |= unsigned(uint8_t(packed[place / 8 + 1])) << 8;
    bytes[i] = char((pair >> (place % 8)) & ((1u << width) - 1));
  }
  return bytes;
}

template <typename Element, typename List> std::vector<char> copyList(const List &list) {
  std::vector<char> bytes(list.size() * sizeof(Element));
  char *out = bytes.data();
  for (auto value : list) {
    llvm::support::endian::write<Element>(out, static_cast<Element>(value), llvm::endianness::little);
    out += sizeof(Element);
  }
  return bytes;
}

/// The typed list of the tensor as bytes; sub-byte types come out packed, but for those of 6 bits.
std::vector<char> typedBytes(const TensorProto &tensor, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  if (prim::isComplex(type)) // the real and the imaginary part of each element
    return width == 64 ? copyList<float>(tensor.float_data()) : copyList<double>(tensor.double_data());
  if (type.isF64())
    return copyList<double>(tensor.double_data());
  if (type.isF32())
    return copyList<float>(tensor.float_data());
  if (type.isUnsignedInteger(64))
    return copyList<uint64_t>(tensor.uint64_data());
  if (type.isUnsignedInteger(32))
    return copyList<uint32_t>(tensor.uint64_data());
  if (width == 64)
    return copyList<int64_t>(tensor.int64_data());
  if (width == 32)
    return copyList<int32_t>(tensor.int32_data());
  if (width == 16)
    return copyList<uint16_t>(tensor.int32_data());
  return copyList<uint8_t>(tensor.int32_data());
}

/// Element bytes as DenseElementsAttr wants them; booleans go through their own constructor.
DenseElementsAttr makeDense(RankedTensorType type, ArrayRef<char> bytes) {
  Type element = type.getElementType();
  unsigned width = element.getIntOrFloatBitWidth();
  if (width >= 8)
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  if (width == 1) {
    SmallVector<bool> values(bytes.size());
    for (auto [i, byte] : llvm::enumerate(bytes))
      values[i] = byte != 0;
    return DenseElementsAttr::get(type, values);
  }
  if (auto floatType = dyn_cast<FloatType>(element)) {
    SmallVector<APFloat> values;
    for (char byte : bytes)
      values.emplace_back(floatType.getFloatSemantics(), APInt(width, uint8_t(byte)));
    return DenseElementsAttr::get(type, values);
  }
  SmallVector<APInt> values;
  for (char byte : bytes)
    values.emplace_back(width, uint8_t(byte));
  return DenseElementsAttr::get(type, values);
}

/// Strings stand in the model itself: they have no raw form.
Value importStrings(OpBuilder &builder, Location loc, const TensorProto &tensor, StringRef name,
                    RankedTensorType type) {
  if (tensor.string_data_size() != type.getNumElements()) {
    diagnose(loc, DiagId::TensorSize, name, "string", tensor.string_data_size(), type.getNumElements());
    return {};
  }
  SmallVector<StringRef> texts(tensor.string_data().begin(), tensor.string_data().end());
  return prim::ConstantOp::create(builder, loc, type, DenseStringElementsAttr::get(type, texts));
}

} // namespace

Value ptc::onnx_import::importTensor(OpBuilder &builder, Location loc, const ModelFile &file, const TensorProto &tensor,
                                     StringRef name, bool isInline) {
  std::string what = ("tensor '" + name + "'").str();
  Type element = decomp::fromOnnxType(builder.getContext(), tensor.data_type());
  if (!element) {
    diagnose(loc, DiagId::UnsupportedType, what, decomp::onnxTypeName(tensor.data_type()));
    return {};
  }
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  uint64_t count = 1;
  for (int64_t dim : shape) {
    bool overflows = dim < 0 || (dim != 0 && count > (uint64_t(1) << 48) / uint64_t(dim));
    if (overflows) {
      diagnose(loc, DiagId::TensorSize, name, decomp::onnxTypeName(tensor.data_type()), 0, "an impossible number of");
      return {};
    }
    count *= dim;
  }
  auto type = RankedTensorType::get(shape, element);
  if (isa<prim::StringType>(element))
    return importStrings(builder, loc, tensor, name, type);
  unsigned width = element.getIntOrFloatBitWidth();
  bool isPacked = width < 8 && width > 1;
  uint64_t needed = isPacked ? (count * width + 7) / 8 : count * (storedWidth(element) / 8);

  std::optional<StringRef> raw = file.rawBytes(tensor);
  std::vector<char> typed;
  if (!raw) {
    typed = typedBytes(tensor, element);
    raw = StringRef(typed.data(), typed.size());
  }
  bool isList = !typed.empty() && width == 6; // one element an entry
  if (raw->size() != (isList ? count : needed)) {
    diagnose(loc, DiagId::TensorSize, name, decomp::onnxTypeName(tensor.data_type()), raw->size(), needed);
    return {};
  }
  ByteRange range;
  if (!isInline && needed > maxInlineBytes && readMark(tensor.doc_string(), range)) {
    auto ref = prim::WeightRefAttr::get(builder.getContext(), name, range.file, range.offset, range.size);
    return prim::WeightOp::create(builder, loc, type, ref, ArrayAttr());
  }
  std::vector<char> unpacked;
  ArrayRef<char> elements(raw->data(), raw->size());
  if (isPacked && !isList) {
    unpacked = unpack(*raw, width, count);
    elements = unpacked;
  }
  return prim::ConstantOp::create(builder, loc, type, makeDense(type, elements));
}

//===----------------------------------------------------------------------===//
// Sparse tensors
//===----------------------------------------------------------------------===//

/// The bytes of a tensor whose elements have whole ones; typed lists go through `typed`.
static StringRef wholeBytes(const ModelFile &file, const TensorProto &tensor, Type element, std::vector<char> &typed) {
  if (std::optional<StringRef> raw = file.rawBytes(tensor))
    return *raw;
  typed = typedBytes(tensor, element);
  return StringRef(typed.data(), typed.size());
}

/// Position of element `i` of `count`: indices are positions themselves, [count], or one coordinate a dim, [count,
/// rank]. -1 where they lie outside.
static int64_t positionOf(ArrayRef<int64_t> indices, ArrayRef<int64_t> shape, int64_t total, int64_t i, bool isLinear) {
  if (isLinear)
    return indices[i] >= 0 && indices[i] < total ? indices[i] : -1;
  int64_t position = 0;
  for (auto [extent, at] : llvm::zip_equal(shape, indices.slice(i * shape.size(), shape.size()))) {
    if (at < 0 || at >= extent)
      return -1;
    position = position * extent + at;
  }
  return position;
}

std::optional<TensorProto> ptc::onnx_import::densify(Location loc, const ModelFile &file,
                                                     const onnx::SparseTensorProto &sparse, int64_t &room) {
  const TensorProto &values = sparse.values();
  auto refuse = [&](const Twine &why) {
    diagnose(loc, DiagId::UnsupportedForm, ("sparse tensor '" + values.name() + "', " + why + ",").str());
    return std::nullopt;
  };
  Type element = decomp::fromOnnxType(loc.getContext(), values.data_type());
  if (!element || !element.isIntOrFloat() || (element.getIntOrFloatBitWidth() % 8 && !element.isInteger(1)))
    return refuse("whose elements are no whole bytes");
  int64_t width = storedWidth(element) / 8, total = 1;
  SmallVector<int64_t> shape(sparse.dims().begin(), sparse.dims().end());
  for (int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && total > room / width / dim))
      return refuse("with which the model's sparse tensors have 2 GB or more");
    total *= dim;
  }
  std::vector<char> typedValues, typedIndices;
  StringRef bytes = wholeBytes(file, values, element, typedValues);
  StringRef places = wholeBytes(file, sparse.indices(), IntegerType::get(loc.getContext(), 64), typedIndices);
  int64_t count = int64_t(bytes.size()) / width;
  bool isLinear = sparse.indices().dims_size() == 1;
  uint64_t needed = uint64_t(count) * (isLinear ? 1 : shape.size()) * sizeof(int64_t);
  if (bytes.size() != size_t(count * width) || places.size() != needed ||
      sparse.indices().data_type() != TensorProto::INT64)
    return refuse("whose indices do not fit its values");
  SmallVector<int64_t> indices(places.size() / sizeof(int64_t));
  for (auto [i, index] : llvm::enumerate(indices))
    index = llvm::support::endian::read64le(places.data() + i * sizeof(int64_t));

  TensorProto dense;
  dense.set_name(values.name());
  dense.set_data_type(values.data_type());
  *dense.mutable_dims() = sparse.dims();
  std::string &raw = *dense.mutable_raw_data();
  raw.assign(size_t(total * width), 0);
  room -= total * width;
  for (int64_t i = 0, before = -1; i < count; ++i) {
    int64_t position = positionOf(indices, shape, total, i, isLinear);
    if (position < 0)
      return refuse("of which an index lies outside");
    if (position <= before)
      return refuse("whose indices do not ascend");
    before = position;
    std::memcpy(raw.data() + position * width, bytes.data() + i * width, size_t(width));
  }
  return dense;
}
