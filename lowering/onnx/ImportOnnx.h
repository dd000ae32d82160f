//===- ImportOnnx.h - ONNX models become prim modules -----------*- C++ -*-===//
//
// Everything wrong with the model is a diagnostic of the context (ir/Diagnostics.h),
// as many of them as can be found in one go; the result is null then. No exception
// leaves these functions.
//
// The module holds one `func.func` (the entry) with the attributes named in
// ir/prim/Prim.h. Weights are references: the empty file name means the model
// itself, any other is relative to the model's folder.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_ONNX_IMPORTONNX_H
#define PTC_LOWERING_ONNX_IMPORTONNX_H

#include "lowering/onnx/CustomOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <utility>
#include <vector>

namespace ptc {

/// Which dims of the inputs are symbols.
enum class DynamicDims {
  Auto, // those that the file leaves open
  On,   // the others as well: what the file says is their hint
  Off,  // none: open dims have the size of their hint, which the user gives
};

struct ImportOptions {
  /// `batch=8`, `batch=1..64`, `batch=1..64:8` (min..max:hint), `x[2]=48` (axis of an input; all forms).
  std::vector<std::string> dims;
  /// `x=1x3x48x320`; `?` leaves a dim as it is.
  std::vector<std::string> shapes;
  DynamicDims dynamic = DynamicDims::Auto;
  /// `seq=128,512`: sizes of a dim, named as in `dims`, that the function is to have variants for.
  std::vector<std::string> buckets;
  /// Input and output that share a buffer.
  std::vector<std::pair<std::string, std::string>> aliases;
  /// Inputs that are constants: name and a file with a TensorProto. They are no arguments of the entry then.
  std::vector<std::pair<std::string, std::string>> constants;
  /// Values to show to an observer: names of nodes or values, patterns (`layer1/*`), `all`.
  std::vector<std::string> taps;
  /// Nodes whose products keep their element type under --autocast: names and patterns as for taps.
  std::vector<std::string> keptNodes;
  /// Operators of the user's own, which go before those of the same name that ptc has.
  std::vector<CustomOp> customOps;
  std::string entryName = "main";
  /// Gets the paths of all files that the model was read from, itself first.
  std::vector<std::string> *filesRead = nullptr;
  /// Operators that cannot be imported do not end the import: it goes on to find what else is wrong, and fails then.
  bool findsAll = false;
  unsigned maxNodes = 1'000'000; // after functions are expanded
  unsigned maxDepth = 64;        // of nested graphs and functions
};

/// Imports the model at `path`: protobuf, or ONNX's text form where the name ends in `.onnxtxt`.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(mlir::MLIRContext &context, llvm::StringRef path,
                                             const ImportOptions &options = {});
/// The same from memory. `path` names the model in messages and locates its external data.
mlir::OwningOpRef<mlir::ModuleOp> importOnnxBytes(mlir::MLIRContext &context, llvm::StringRef bytes,
                                                  llvm::StringRef path, const ImportOptions &options = {});

/// Reports what keeps the model from being compiled and whether anything does, without building a module.
bool checkOnnx(mlir::MLIRContext &context, llvm::StringRef path, const ImportOptions &options = {});

} // namespace ptc

#endif // PTC_LOWERING_ONNX_IMPORTONNX_H
