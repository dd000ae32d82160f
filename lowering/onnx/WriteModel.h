//===- WriteModel.h - an ONNX model and its tensors as files ----*- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_WRITEMODEL_H
#define PTC_LOWERING_ONNX_WRITEMODEL_H

#include "lowering/onnx/ModelFile.h"
#include "llvm/Support/Error.h"
#include <deque>

namespace ptc::onnx_import {

/// What stands in a model's file, and in the one beside it.
struct ModelBytes {
  std::string model;
  /// Pieces with their offsets, which refer to the source's files and to `tensors`; empty: all tensors are in the
  /// model.
  std::vector<std::pair<uint64_t, llvm::StringRef>> beside;
  std::deque<std::string> tensors; // at addresses that stay
};

/// Serialises a model that was made from `source`'s: its marks are into the same files. More than `mostInline` bytes of
/// tensors go into a file `dataFile` beside the model. `model` is spent.
llvm::Expected<ModelBytes> serializeModel(onnx::ModelProto model, const ModelFile &source, llvm::StringRef dataFile,
                                          uint64_t mostInline = uint64_t(1) << 30);

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_WRITEMODEL_H
