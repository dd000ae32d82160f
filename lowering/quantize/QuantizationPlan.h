//===- QuantizationPlan.h - what of a model becomes 8 bits ------*- C++ -*-===//
#ifndef PTC_LOWERING_QUANTIZE_QUANTIZATIONPLAN_H
#define PTC_LOWERING_QUANTIZE_QUANTIZATIONPLAN_H

#include "lowering/onnx/ModelFile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include <optional>
#include <set>

namespace ptc::quantize {

/// A product of an activation and constant weights: a Conv, Gemm or MatMul of the main graph.
struct Product {
  int node; // its place among the graph's nodes
  std::string activation, weight, output;
  std::string bias;  // constant and added to the product as it is; empty: none
  int64_t channels;  // the axis of `weight` along which results differ
  std::string title; // "node 'conv1' (Conv → y)"
};

/// A product that stays in floats, and why.
struct Skipped {
  std::string title, reason;
};

/// Which values are rounded to 8 bits. The values of a group have one scale, since nothing but moves of elements lies
/// between them: to round a second time changes nothing.
struct QuantizationPlan {
  std::vector<Product> products;                // in the graph's order
  std::vector<std::vector<std::string>> groups; // of values
  llvm::StringMap<unsigned> groupOf;            // of a value
  std::set<std::pair<int, int>> rounded;        // node and operand that read the rounded value; others read floats
  std::vector<Skipped> skipped;
  int nested = 0; // products in graphs of If, Loop and Scan and in functions, which are never quantised
};

/// Plans for the model; nothing after a diagnostic. `keep`: nodes that stay in floats, by names of nodes or values or
/// patterns of them.
std::optional<QuantizationPlan> planQuantization(mlir::MLIRContext &context, const onnx_import::ModelFile &file,
                                                 llvm::ArrayRef<std::string> keep);

/// The tensors that are the same in every run, by name: initializers and results of Constant nodes.
llvm::StringMap<const onnx::TensorProto *> findConstants(const onnx::GraphProto &graph);
/// Whether anything in the model rounds activations to 8 or 16 bits. Weights that are stored so alone do not count.
bool isQuantized(const onnx::ModelProto &model);
/// Whether a product of the model lets its rows be rounded to 8 bits (MatMulNBits of accuracy_level 4).
bool permitsByteRows(const onnx::ModelProto &model);

/// An operator of ONNX's own domain.
bool isOnnxOp(const onnx::NodeProto &node, llvm::StringRef type);

} // namespace ptc::quantize

#endif // PTC_LOWERING_QUANTIZE_QUANTIZATIONPLAN_H
