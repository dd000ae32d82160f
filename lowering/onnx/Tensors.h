//===- Tensors.h - TensorProto becomes a constant or a weight ---*- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_TENSORS_H
#define PTC_LOWERING_ONNX_TENSORS_H

#include "lowering/onnx/ModelFile.h"
#include "mlir/IR/Builders.h"

namespace ptc::onnx_import {

/// `prim.constant` for small tensors and for those whose bytes do not lie in a file as they are; `prim.weight` for the
/// others, unless `isInline`. Null after a diagnostic.
mlir::Value importTensor(mlir::OpBuilder &builder, mlir::Location loc, const ModelFile &file,
                         const onnx::TensorProto &tensor, llvm::StringRef name, bool isInline = false);

/// The tensor with all its elements, those that the sparse form leaves out as zeros; nothing after a diagnostic. Takes
/// its bytes off `room`.
std::optional<onnx::TensorProto> densify(mlir::Location loc, const ModelFile &file,
                                         const onnx::SparseTensorProto &sparse, int64_t &room);

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_TENSORS_H
