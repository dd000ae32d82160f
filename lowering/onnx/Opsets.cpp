//===- Opsets.cpp - operator versions, schemas and function bodies --------===//
#include "lowering/onnx/Opsets.h"

using namespace llvm;
using namespace ptc::onnx_import;

const onnx::OpSchema *Opsets::schema(const onnx::NodeProto &node) const {
  if (!has(node.domain()))
    return nullptr;
  return onnx::OpSchemaRegistry::Schema(node.op_type(), version(node.domain()), normalize(node.domain()).str());
}

int64_t Opsets::operatorVersion(const onnx::NodeProto &node) const {
  const onnx::OpSchema *known = schema(node);
  return known ? known->SinceVersion() : version(node.domain());
}

std::string LocalFunctions::key(StringRef domain, StringRef name, StringRef overload) {
  return (Opsets::normalize(domain) + "\n" + name + "\n" + overload).str();
}

LocalFunctions::LocalFunctions(const onnx::ModelProto &model) {
  for (const onnx::FunctionProto &function : model.functions())
    functions[key(function.domain(), function.name(), function.overload())] = &function;
}

const onnx::FunctionProto *LocalFunctions::find(const onnx::NodeProto &node) const {
  return functions.lookup(key(node.domain(), node.op_type(), node.overload()));
}
