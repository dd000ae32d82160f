//===- CustomOps.h - operators of the user's own ----------------*- C++ -*-===//
//
// A node whose operator --custom-op names becomes a call of the user's library. What its outputs are the library
// itself says (`infer`), in expressions of its inputs' dims; this file is about the model's side of that, and whoever
// asks for the import opens libraries.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_ONNX_CUSTOMOPS_H
#define PTC_LOWERING_ONNX_CUSTOMOPS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace onnx {
class NodeProto;
} // namespace onnx

namespace ptc {

/// An input or output as the library's `infer` sees it; null `element`: absent.
struct CustomValue {
  mlir::Type element;
  std::vector<std::string> dims;
  mlir::DenseElementsAttr known; // of an input: its elements, where they are few and the model has them
};

/// A node for `infer`; attributes as in #prim.custom.
struct CustomNode {
  std::string name;
  int64_t version;
  mlir::DictionaryAttr attributes;
  std::vector<CustomValue> inputs;
  size_t outputs;
};

struct CustomOp {
  std::string domain, op;
  /// As users write it.
  std::string name() const { return domain.empty() ? op : domain + "." + op; }
  std::string library, symbol; // as the artefact looks for them
  /// The outputs of a node, or the library's sentence. A dim is an expression, "?" or "<= EXPRESSION".
  std::function<llvm::Expected<std::vector<CustomValue>>(const CustomNode &)> infer;
};

namespace onnx_import {

/// The operators that are the user's own, and which of them a model has.
class CustomOps {
public:
  explicit CustomOps(const std::vector<CustomOp> &ops) : ops(ops), isUsed(ops.size()) {}
  const CustomOp *find(const onnx::NodeProto &node) const;
  /// The same, and notes that the model has it.
  const CustomOp *use(const onnx::NodeProto &node);
  /// Reports those that no node uses; true if there are none.
  bool reportUnused(mlir::Location loc) const;

private:
  const std::vector<CustomOp> &ops;
  std::vector<bool> isUsed;
};

} // namespace onnx_import
} // namespace ptc

#endif // PTC_LOWERING_ONNX_CUSTOMOPS_H
