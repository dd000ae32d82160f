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
///   a size                  a constant; 0, a tensor without elements, if the user gives no other
///   unnamed, negative,      a symbol of its own: `<input>_<axis>`
///   or named '?'
///   pinned by the user      a constant; pinning one dim of a name pins the name
///
/// DynamicDims::On takes a size in the file for a dim without a name, and for its hint; one of 0 for its least size.
class InputShapes {
public:
  InputShapes(decomp::ShapeScope &shapes, mlir::Location loc, DynamicDims dynamic)
      : shapes(shapes), loc(loc), dynamic(dynamic) {}

  /// Reads the user's options against the inputs; false after diagnostics.
  bool readOptions(const ImportOptions &options, llvm::ArrayRef<const onnx::ValueInfoProto *> inputs);
  /// The dims of an input; nothing after a diagnostic.
  std::optional<llvm::SmallVector<Expr>> dimsOf(const onnx::ValueInfoProto &input);
  /// The options that give dims of the input one size each: "--dim batch=8 --dim seq=128".
  std::string describePins(const onnx::ValueInfoProto &input) const;
  /// After all inputs: whether every dim has a size where none may be free.
  bool checkSizes();
  /// After all inputs: `prim.buckets` of the function, null for none.
  mlir::DictionaryAttr getBuckets() const;

private:
  /// A dim that an option names: the key of its bounds, and its size if that is not free.
  struct NamedDim {
    std::string key;
    std::optional<int64_t> fixed = {};
    std::string words = {}; // "dim 1 of 'x'", of a fixed one
  };
  std::optional<NamedDim> findDim(llvm::StringRef option, llvm::StringRef name,
                                  llvm::ArrayRef<const onnx::ValueInfoProto *> inputs);
  NamedDim dimAt(const onnx::ValueInfoProto &input, unsigned axis) const;
  std::optional<int64_t> fixedSize(const onnx::ValueInfoProto &input, unsigned axis) const;
  bool readBucket(llvm::StringRef text, llvm::ArrayRef<const onnx::ValueInfoProto *> inputs);
  bool checkBucket(llvm::StringRef option, const NamedDim &dim, llvm::ArrayRef<int64_t> sizes);
  bool readDim(llvm::StringRef option, llvm::ArrayRef<const onnx::ValueInfoProto *> inputs);
  bool readShape(llvm::StringRef option, llvm::ArrayRef<const onnx::ValueInfoProto *> inputs);
  bool bind(llvm::StringRef option, const NamedDim &dim, decomp::SymbolBounds bounds);
  bool reject(llvm::StringRef option, const llvm::Twine &reason, const llvm::Twine &help = "");

  decomp::ShapeScope &shapes;
  mlir::Location loc;
  DynamicDims dynamic;
  llvm::StringMap<decomp::SymbolBounds> bounds; // by the dim's name, or `input[axis]`
  llvm::StringMap<unsigned> ranks;              // of inputs without a shape, given by the user
  llvm::StringMap<Expr> named;                  // a dim's name in the file -> its symbol
  std::vector<std::pair<std::string, llvm::SmallVector<int64_t>>> buckets; // as `bounds`
  std::vector<std::string> unsized;                                        // free dims where none may be
};

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_INPUTSHAPES_H
