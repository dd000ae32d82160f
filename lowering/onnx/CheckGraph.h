//===- CheckGraph.h - is the model a well-formed graph? ---------*- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_CHECKGRAPH_H
#define PTC_LOWERING_ONNX_CHECKGRAPH_H

#include "lowering/onnx/CustomOps.h"
#include "lowering/onnx/Opsets.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"
#include <onnx/onnx_pb.h>

namespace ptc::onnx_import {

/// The location of a node; `prefix` is the path of the calls it is expanded in.
mlir::Location nodeLocation(mlir::MLIRContext *context, const onnx::NodeProto &node, llvm::StringRef prefix = "");

/// Versions, opsets, names: every value defined once and before it is used, no cycles. Reports all problems.
bool checkStructure(mlir::MLIRContext *context, const onnx::ModelProto &model, unsigned maxDepth);
/// Attributes of every node have the types that its operator's schema gives them, and those that it requires are there.
/// Reports all problems.
bool checkAttributes(mlir::MLIRContext *context, const onnx::ModelProto &model);
/// Whether there is a row for the node's operator, or a function body of operators that have one.
bool canImport(const onnx::NodeProto &node, const Opsets &opsets);
/// Reports operators that can neither be decomposed nor expanded, all at once. `goesOn`: these do not make it false.
bool checkOperators(mlir::MLIRContext *context, const onnx::ModelProto &model, const CustomOps &customOps, bool goesOn);
/// ONNX's own checker.
bool checkWithOnnx(mlir::MLIRContext *context, const onnx::ModelProto &model, const CustomOps &customOps);

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_CHECKGRAPH_H
