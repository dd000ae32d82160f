//===- PrimModel.h - models written in primitives ---------------*- C++ -*-===//
//
// `--emit=onnx:prim` writes the module of a stage before loop as an ONNX model whose operators are those of the prim
// dialect, and importing such a model gives the same module. PrimModels.md is the format.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_ONNX_PRIMMODEL_H
#define PTC_LOWERING_ONNX_PRIMMODEL_H

#include "ir/eval/ReferenceEval.h"
#include "ir/prim/Prim.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ptc {

struct PrimModel {
  std::string bytes;
  /// What the file beside the model holds, and where; empty: the weights are in the model.
  std::vector<std::pair<uint64_t, prim::WeightRefAttr>> beside;
};

/// `dataFile` is the name of the file beside the model, for more weights than one protobuf should hold.
llvm::Expected<PrimModel> writePrimModel(mlir::ModuleOp module, eval::WeightSource &weights, llvm::StringRef dataFile,
                                         llvm::StringRef producer, uint64_t mostInline = uint64_t(1) << 30);

namespace onnx_import {
class ModelFile;

inline constexpr char primDomain[] = "ptc.prim";
inline constexpr int64_t primVersion = 1;

/// Names of metadata, each followed by what it is about.
inline constexpr char symbolKey[] = "ptc.prim.symbol.", guardKey[] = "ptc.prim.guard.",
                      guardNodeKey[] = "ptc.prim.guard_node.", aliasKey[] = "ptc.prim.alias.",
                      foldedKey[] = "ptc.prim.folded.";

bool isPrimModel(const ModelFile &file);
/// Null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> importPrimModel(mlir::MLIRContext &context, const ModelFile &file,
                                                  llvm::StringRef entryName);
/// Whether ranks, axes and lists of a primitive fit, which its type rule takes for granted; a sentence if not.
std::optional<std::string> findMisfit(mlir::Operation *op);

} // namespace onnx_import
} // namespace ptc

#endif // PTC_LOWERING_ONNX_PRIMMODEL_H
