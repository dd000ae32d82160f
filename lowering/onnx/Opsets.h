//===- Opsets.h - operator versions, schemas and function bodies *- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_OPSETS_H
#define PTC_LOWERING_ONNX_OPSETS_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

namespace ptc::onnx_import {

/// Domains and the versions of them that a model or function imports. "ai.onnx" and "" are one domain.
class Opsets {
public:
  Opsets() = default;
  template <typename Imports> explicit Opsets(const Imports &imports) {
    for (const onnx::OperatorSetIdProto &import : imports)
      versions[normalize(import.domain())] = import.version();
  }
  /// Takes over the domains of `outer` that this one does not import: some schemas' bodies leave theirs out.
  void inherit(const Opsets &outer) {
    for (const auto &entry : outer.versions)
      versions.try_emplace(entry.getKey(), entry.getValue());
  }
  static llvm::StringRef normalize(llvm::StringRef domain) { return domain == "ai.onnx" ? "" : domain; }
  bool has(llvm::StringRef domain) const { return versions.contains(normalize(domain)); }
  int64_t version(llvm::StringRef domain) const { return versions.lookup(normalize(domain)); }
  /// Null for operators ONNX does not know.
  const onnx::OpSchema *schema(const onnx::NodeProto &node) const;
  /// The version of the operator that a node means: its schema's, or the domain's where there is no schema.
  int64_t operatorVersion(const onnx::NodeProto &node) const;

private:
  llvm::StringMap<int64_t> versions;
};

/// The model's own functions by operator.
class LocalFunctions {
public:
  explicit LocalFunctions(const onnx::ModelProto &model);
  const onnx::FunctionProto *find(const onnx::NodeProto &node) const;

private:
  static std::string key(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload);
  llvm::StringMap<const onnx::FunctionProto *> functions;
};

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_OPSETS_H
