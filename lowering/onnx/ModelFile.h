//===- ModelFile.h - an ONNX model and the files of its tensors -*- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_MODELFILE_H
#define PTC_LOWERING_ONNX_MODELFILE_H

#include "lowering/onnx/WireFormat.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <onnx/onnx_pb.h>

namespace ptc::onnx_import {

/// A parsed model whose large tensors are marks (WireFormat.h) into files. Invariant: every mark has been checked
/// to lie within its file, and every file within the model's folder.
class ModelFile {
public:
  /// Reads and parses; null after a diagnostic.
  static std::unique_ptr<ModelFile> open(mlir::MLIRContext &context, llvm::StringRef path);
  static std::unique_ptr<ModelFile> parse(mlir::MLIRContext &context, std::unique_ptr<llvm::MemoryBuffer> bytes,
                                          llvm::StringRef path);

  /// Makes the tensor in the file at `tensorPath` the value of a graph input; false after a diagnostic.
  bool bindInput(mlir::MLIRContext &context, llvm::StringRef input, llvm::StringRef tensorPath);

  const onnx::ModelProto &proto() const { return model; }
  /// The bytes of a tensor that has any: its raw data, or what its mark names. Typed data: not here.
  std::optional<llvm::StringRef> rawBytes(const onnx::TensorProto &tensor) const;
  llvm::StringRef getPath() const { return path; }
  /// Paths of the model and of all its external files, read by now or not; those in the order of their names.
  std::vector<std::string> listFiles() const;

private:
  bool resolveExternalData(mlir::Location loc);
  bool resolveGraph(onnx::GraphProto &graph, mlir::Location loc);
  bool resolveNode(onnx::NodeProto &node, mlir::Location loc);
  bool resolveTensor(onnx::TensorProto &tensor, mlir::Location loc);
  bool densifyTensors(mlir::MLIRContext &context);
  bool densifyGraph(onnx::GraphProto &graph, mlir::MLIRContext &context);
  bool densifyNode(onnx::NodeProto &node, mlir::MLIRContext &context);
  std::string pathOf(llvm::StringRef name) const;
  const llvm::MemoryBuffer *externalFile(llvm::StringRef name, llvm::StringRef tensor, mlir::Location loc);

  std::string path;
  std::unique_ptr<llvm::MemoryBuffer> bytes;
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> externalFiles;
  onnx::ModelProto model;
  int64_t room = int64_t(1) << 31; // for sparse tensors with all their elements: what a model file may hold
};

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_MODELFILE_H
