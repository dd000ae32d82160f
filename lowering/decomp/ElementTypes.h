//===- ElementTypes.h - ONNX element types and ours -------------*- C++ -*-===//
#ifndef PTC_LOWERING_DECOMP_ELEMENTTYPES_H
#define PTC_LOWERING_DECOMP_ELEMENTTYPES_H

#include "mlir/IR/Types.h"
#include <string>

namespace ptc::decomp {

/// The element type of a TensorProto.DataType; null for string, complex and unknown types.
mlir::Type fromOnnxType(mlir::MLIRContext *context, int32_t dataType);
/// The TensorProto.DataType of an element type; 0 (UNDEFINED) if it has none.
int32_t toOnnxType(mlir::Type elementType);
/// "float16" and the like, as ONNX's documentation writes them.
std::string onnxTypeName(int32_t dataType);
/// A type in a sentence: "float16" of an element type, "float16 [2, n]" of a tensor.
std::string describeType(mlir::Type type);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_ELEMENTTYPES_H
