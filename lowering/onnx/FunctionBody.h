//===- FunctionBody.h - bodies of functions, ready to expand ----*- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_FUNCTIONBODY_H
#define PTC_LOWERING_ONNX_FUNCTIONBODY_H

#include "lowering/onnx/Opsets.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"

namespace ptc::onnx_import {

/// The body that an operator's schema has for a node whose inputs have these types; nothing if it has none.
std::optional<onnx::FunctionProto> schemaBody(const onnx::NodeProto &node, const Opsets &opsets,
                                              llvm::ArrayRef<mlir::Value> inputs, std::string &error);

/// Replaces the node's references to attributes of the enclosing function, in subgraphs too, by what the call gives
/// or the function's defaults; references to attributes that neither has are dropped.
void bindAttributes(onnx::NodeProto &node, const onnx::NodeProto &call, const onnx::FunctionProto &function);

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_FUNCTIONBODY_H
