//===- WireFormat.h - cuts tensor bytes out of an ONNX file -----*- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_WIREFORMAT_H
#define PTC_LOWERING_ONNX_WIREFORMAT_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace ptc::onnx_import {

/// Tensors with more bytes than this stay in the file.
inline constexpr uint64_t maxInlineBytes = 4096;

struct WireError {
  bool isTruncated = false; // else: not protobuf of an ONNX model
  uint64_t offset = 0;
  uint64_t announced = 0, available = 0;
  std::string reason;
};

/// The model without the bytes of its large tensors. A tensor that lost them has an empty `raw_data` and in
/// `doc_string` a mark that readMark understands; all other tensors have no doc_string. False after an error.
bool stripTensors(llvm::StringRef bytes, std::string &stripped, WireError &error);

/// Where the bytes of a tensor lie.
struct ByteRange {
  uint64_t offset = 0, size = 0;
  llvm::StringRef file; // empty: the model's own
};
std::string writeMark(const ByteRange &range);
bool readMark(llvm::StringRef mark, ByteRange &range);

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_WIREFORMAT_H
