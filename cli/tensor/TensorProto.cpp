// ONNX's serialised TensorProto, as the official test suites store inputs and outputs.
#include "cli/tensor/TensorFiles.h"
#include "compiler/DiagnosticRendering.h"
#include <onnx/onnx-data.pb.h>
#include <onnx/onnx_pb.h>

using namespace llvm;
using onnx::TensorProto;

namespace ptc {

static std::optional<ptc_dtype> dtypeOf(int type) {
  switch (type) {
  case TensorProto::FLOAT:
    return ptc_dtype{PTC_FLOAT, 32, 1};
  case TensorProto::DOUBLE:
    return ptc_dtype{PTC_FLOAT, 64, 1};
  case TensorProto::FLOAT16:
    return ptc_dtype{PTC_FLOAT, 16, 1};
  case TensorProto::BFLOAT16:
    return ptc_dtype{PTC_BFLOAT, 16, 1};
  case TensorProto::STRING:
    return ptc_dtype{PTC_STRING, 128, 1};
  case TensorProto::BOOL:
    return ptc_dtype{PTC_BOOL, 8, 1};
  case TensorProto::INT4:
    return ptc_dtype{PTC_INT, 4, 1};
  case TensorProto::INT8:
    return ptc_dtype{PTC_INT, 8, 1};
  case TensorProto::INT16:
    return ptc_dtype{PTC_INT, 16, 1};
  case TensorProto::INT32:
    return ptc_dtype{PTC_INT, 32, 1};
  case TensorProto::INT64:
    return ptc_dtype{PTC_INT, 64, 1};
  case TensorProto::UINT4:
    return ptc_dtype{PTC_UINT, 4, 1};
  case TensorProto::UINT8:
    return ptc_dtype{PTC_UINT, 8, 1};
  case TensorProto::UINT16:
    return ptc_dtype{PTC_UINT, 16, 1};
  case TensorProto::UINT32:
    return ptc_dtype{PTC_UINT, 32, 1};
  case TensorProto::UINT64:
    return ptc_dtype{PTC_UINT, 64, 1};
  case TensorProto::COMPLEX64:
    return ptc_dtype{PTC_COMPLEX, 64, 1};
  case TensorProto::COMPLEX128:
    return ptc_dtype{PTC_COMPLEX, 128, 1};
  case TensorProto::FLOAT8E4M3FN:
    return ptc_dtype{PTC_FLOAT8_E4M3FN, 8, 1};
  case TensorProto::FLOAT8E4M3FNUZ:
    return ptc_dtype{PTC_FLOAT8_E4M3FNUZ, 8, 1};
  case TensorProto::FLOAT8E5M2:
    return ptc_dtype{PTC_FLOAT8_E5M2, 8, 1};
  case TensorProto::FLOAT8E5M2FNUZ:
    return ptc_dtype{PTC_FLOAT8_E5M2FNUZ, 8, 1};
  case TensorProto::FLOAT8E8M0:
    return ptc_dtype{PTC_FLOAT8_E8M0FNU, 8, 1};
  case TensorProto::FLOAT6E2M3:
    return ptc_dtype{PTC_FLOAT6_E2M3FN, 6, 1};
  case TensorProto::FLOAT6E3M2:
    return ptc_dtype{PTC_FLOAT6_E3M2FN, 6, 1};
  case TensorProto::FLOAT4E2M1:
    return ptc_dtype{PTC_FLOAT4_E2M1FN, 4, 1};
  case TensorProto::INT2:
    return ptc_dtype{PTC_INT, 2, 1};
  case TensorProto::UINT2:
    return ptc_dtype{PTC_UINT, 2, 1};
  }
  return std::nullopt;
}

/// The low `width` bytes of each element of a repeated field.
template <typename Field> static void copyElements(const Field &field, size_t width, Bytes &bytes) {
  size_t offset = 0;
  for (auto element : field) {
    if (offset + width > bytes.size())
      return;
    std::memcpy(bytes.data() + offset, &element, width);
    offset += width;
  }
}

/// onnx.proto says which field holds which element type when there is no raw_data.
static void copyFields(const TensorProto &proto, Tensor &tensor) {
  Bytes &bytes = tensor.bytes;
  switch (proto.data_type()) {
  case TensorProto::FLOAT:
  case TensorProto::COMPLEX64:
    return copyElements(proto.float_data(), 4, bytes);
  case TensorProto::DOUBLE:
  case TensorProto::COMPLEX128:
    return copyElements(proto.double_data(), 8, bytes);
  case TensorProto::INT64:
    return copyElements(proto.int64_data(), 8, bytes);
  case TensorProto::UINT64:
    return copyElements(proto.uint64_data(), 8, bytes);
  case TensorProto::UINT32:
    return copyElements(proto.uint64_data(), 4, bytes);
  default:
    return copyElements(proto.int32_data(), std::max(tensor.dtype.bits / 8, 1), bytes);
  }
}

static Expected<Tensor> convert(const TensorProto &proto, StringRef path);

template <typename Proto> static Error parse(Proto &proto, StringRef bytes, StringRef path) {
  if (bytes.size() <= INT32_MAX && proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error::success();
  return exitError(exitUsage, "'" + path + "' cannot be read as an ONNX value: it is not a serialised " +
                                  Proto::descriptor()->name());
}

static Expected<Tensor> sequenceOf(const google::protobuf::RepeatedPtrField<TensorProto> &tensors, StringRef path) {
  Tensor sequence{{PTC_SEQUENCE, 128, 1}, {}, {}};
  for (const TensorProto &proto : tensors) {
    Expected<Tensor> item = convert(proto, path);
    if (!item)
      return item.takeError();
    sequence.items.push_back(std::move(*item));
  }
  return sequence;
}

Expected<Tensor> parseSequenceProto(StringRef bytes, StringRef path) {
  onnx::SequenceProto proto;
  if (Error error = parse(proto, bytes, path))
    return std::move(error);
  if (proto.elem_type() != onnx::SequenceProto::TENSOR && proto.elem_type() != onnx::SequenceProto::UNDEFINED)
    return exitError(exitUsage, "'" + path + "' is a sequence of what are no tensors");
  return sequenceOf(proto.tensor_values(), path);
}

Expected<Tensor> parseOptionalProto(StringRef bytes, StringRef path) {
  onnx::OptionalProto proto;
  if (Error error = parse(proto, bytes, path))
    return std::move(error);
  Tensor optional{{PTC_SEQUENCE, 128, 1}, {}, {}};
  if (!proto.has_tensor_value() && !proto.has_sequence_value())
    return optional;
  Expected<Tensor> item = proto.has_tensor_value() ? convert(proto.tensor_value(), path)
                                                   : sequenceOf(proto.sequence_value().tensor_values(), path);
  if (!item)
    return item.takeError();
  optional.items.push_back(std::move(*item));
  return optional;
}

Expected<Tensor> parseTensorProto(StringRef bytes, StringRef path) {
  TensorProto proto;
  if (Error error = parse(proto, bytes, path))
    return std::move(error);
  return convert(proto, path);
}

static Expected<Tensor> convert(const TensorProto &proto, StringRef path) {
  auto bad = [&](const Twine &what) {
    return exitError(exitUsage, "'" + path + "' cannot be read as an ONNX tensor: " + what);
  };
  std::optional<ptc_dtype> dtype = dtypeOf(proto.data_type());
  if (!dtype)
    return bad("element type " + Twine(proto.data_type()) + " is not supported");
  uint64_t count = 1;
  for (int64_t extent : proto.dims()) {
    if (extent < 0 || (extent > 0 && count > (uint64_t(1) << 40) / extent))
      return bad("its dims are not valid");
    count *= extent;
  }
  if (dtype->code == PTC_STRING) {
    if (static_cast<uint64_t>(proto.string_data_size()) != count)
      return bad("it has " + Twine(proto.string_data_size()) + " strings, its dims need " + Twine(count));
    Tensor tensor{*dtype, {proto.dims().begin(), proto.dims().end()}, {}};
    tensor.texts.assign(proto.string_data().begin(), proto.string_data().end());
    return tensor;
  }
  Tensor tensor = Tensor::zeros(*dtype, {proto.dims().begin(), proto.dims().end()});
  if (!proto.has_raw_data())
    copyFields(proto, tensor);
  else if (proto.raw_data().size() == tensor.bytes.size())
    tensor.bytes.assign(proto.raw_data().begin(), proto.raw_data().end());
  else
    return bad("it has " + Twine(proto.raw_data().size()) + " bytes of elements, its dims need " +
               Twine(tensor.bytes.size()));
  return tensor;
}

} // namespace ptc
