//===- Operators.h - which operators, versions and types there are -*- C++ -*-===//
//
// Nothing here is a list of its own. Operators are the rows of OnnxOps.def and the schemas whose function bodies are
// made of them; types are those that a schema allows and ElementTypes has. The importer refuses by the same two.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_ONNX_OPERATORS_H
#define PTC_LOWERING_ONNX_OPERATORS_H

#include "lowering/onnx/CustomOps.h"
#include "mlir/IR/MLIRContext.h"
#include <map>
#include <string>
#include <vector>

namespace ptc {

/// From this version of the domain on, up to the next.
struct OperatorVersion {
  int64_t since;
  bool isFunction; // made of other operators by its schema's body
  /// By constraint of the schema ("T", "T1"), each as the schema writes it ("tensor(float)").
  std::map<std::string, std::vector<std::string>> types;
  std::vector<std::string> inputs; // the constraint, or the type, of each
};

struct ImportedOperator {
  std::string domain, name; // empty domain: ai.onnx
  int64_t oldest;
  std::vector<OperatorVersion> versions; // ascending; none: no schema says which types there are
};

/// By domain and name.
std::vector<ImportedOperator> listOperators();

/// A node of a model, those of subgraphs included, in order.
struct ModelNode {
  std::string name, op, domain;
  int64_t version; // of the operator
  std::vector<std::string> inputs, outputs;
  std::vector<size_t> producers; // of its inputs, and the nodes of its subgraphs
  bool isImported;               // there is a way to import its operator
};

/// Empty after a diagnostic.
std::vector<ModelNode> listNodes(mlir::MLIRContext &context, llvm::StringRef path,
                                 const std::vector<CustomOp> &customOps);

} // namespace ptc

#endif // PTC_LOWERING_ONNX_OPERATORS_H
