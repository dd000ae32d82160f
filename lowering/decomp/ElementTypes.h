//===- ElementTypes.h - ONNX element types and ours -------------*- C++ -*-===//
#ifndef PTC_LOWERING_DECOMP_ELEMENTTYPES_H
#define PTC_LOWERING_DECOMP_ELEMENTTYPES_H

#include "mlir/IR/Builders.h"
#include <string>

namespace onnx {
class TypeProto;
}

namespace ptc::decomp {

/// The element type of a TensorProto.DataType; null for unknown types.
mlir::Type fromOnnxType(mlir::MLIRContext *context, int32_t dataType);
/// The TensorProto.DataType of an element type; 0 (UNDEFINED) if it has none.
int32_t toOnnxType(mlir::Type elementType);
/// "float16" and the like, as ONNX's documentation writes them.
std::string onnxTypeName(int32_t dataType);
/// The type of a value inside a sequence: a tensor type without symbols, `?` for dims that the file leaves open, or the
/// type of a sequence. Null, with the reason in `problem`, for maps, sparse tensors and element types that are missing.
mlir::Type fromTypeProto(mlir::MLIRContext *context, const onnx::TypeProto &type, std::string &problem);
void toTypeProto(mlir::Type type, onnx::TypeProto &proto);
/// "tensor(float)", "seq(tensor(string))", "optional(tensor(int64))": how schemas write the type of a value.
std::string onnxTypeOf(mlir::Type type);
/// A map while importing is one value of the types of its keys and values, [n] both; a list of maps with the same keys
/// has values [maps, n]. Neither prim nor what comes after knows them.
bool isMap(mlir::Type type);
mlir::Value joinMap(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value keys, mlir::Value values);
std::pair<mlir::Value, mlir::Value> splitMap(mlir::Value map);
/// A type in a sentence: "float16" of an element type, "float16 [2, n]" of a tensor.
std::string describeType(mlir::Type type);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_ELEMENTTYPES_H
