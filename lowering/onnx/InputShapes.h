//===- InputShapes.h - dims of a model's inputs as symbols ------*- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_INPUTSHAPES_H
#define PTC_LOWERING_ONNX_INPUTSHAPES_H

#include "lowering/decomp/ShapeScope.h"
#include "lowering/onnx/ImportOnnx.h"
#include <onnx/onnx_pb.h>

namespace ptc::onnx_import {

/// Dims of the graph's inputs from what the file and the user say.
///
///   named dim               a symbol of that name, shared by all inputs; a name that is no identifier, or that the
///                           expression language uses itself, is changed
///   unnamed, 0, negative,   a symbol of its own: `<input>_<axis>`
///   or named '?'
///   pinned by the user      a constant; pinning one dim of a name pins the name
class InputShapes {
public:
  InputShapes(decomp::ShapeScope &shapes, mlir::Location loc) : shapes(shapes), loc(loc) {}

  /// Reads the user's options against the inputs; false after diagnostics.
  bool readOptions(const ImportOptions &options, llvm::ArrayRef<const onnx::ValueInfoProto *> inputs);
  /// The dims of an input; nothing after a diagnostic.
  std::optional<llvm::SmallVector<Expr>> dimsOf(const onnx::ValueInfoProto &input);

private:
  bool readDim(llvm::StringRef option, llvm::ArrayRef<const onnx::ValueInfoProto *> inputs);
  bool readShape(llvm::StringRef option, llvm::ArrayRef<const onnx::ValueInfoProto *> inputs);
  bool bind(llvm::StringRef option, const onnx::ValueInfoProto &input, unsigned axis, decomp::SymbolBounds bounds);
  bool bindKey(llvm::StringRef option, llvm::StringRef key, decomp::SymbolBounds bounds);
  bool reject(llvm::StringRef option, const llvm::Twine &reason, const llvm::Twine &help = "");

  decomp::ShapeScope &shapes;
  mlir::Location loc;
  llvm::StringMap<decomp::SymbolBounds> bounds; // by the dim's name, or `input[axis]`
  llvm::StringMap<unsigned> ranks;              // of inputs without a shape, given by the user
  llvm::StringMap<Expr> named;                  // a dim's name in the file -> its symbol
};

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_INPUTSHAPES_H
