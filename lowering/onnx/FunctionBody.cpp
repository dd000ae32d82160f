//===- FunctionBody.cpp - bodies of functions, ready to expand ------------===//
#include "lowering/onnx/FunctionBody.h"
#include "ir/prim/Prim.h"
#include "lowering/decomp/ElementTypes.h"

using namespace ptc;
using namespace ptc::onnx_import;
using onnx::AttributeProto;
using onnx::NodeProto;

static onnx::TypeProto typeOf(mlir::Value value) {
  onnx::TypeProto type;
  if (!value)
    return type;
  decomp::toTypeProto(value.getType(), type);
  return type;
}

std::optional<onnx::FunctionProto> ptc::onnx_import::schemaBody(const NodeProto &node, const Opsets &opsets,
                                                                llvm::ArrayRef<mlir::Value> inputs,
                                                                std::string &error) {
  const onnx::OpSchema *schema = opsets.schema(node);
  if (!schema)
    return std::nullopt;
  int version = opsets.version(node.domain());
  // Defaults of attributes stand in the schema, not in its body.
  auto withDefaults = [&](onnx::FunctionProto body) {
    for (const auto &[name, attribute] : schema->attributes())
      if (attribute.default_value.type() != AttributeProto::UNDEFINED)
        *body.add_attribute_proto() = attribute.default_value;
    return body;
  };
  try {
    if (schema->HasContextDependentFunction()) {
      std::vector<onnx::TypeProto> types;
      for (mlir::Value input : inputs)
        types.push_back(typeOf(input));
      onnx::FunctionBodyBuildContextImpl context(node, types);
      onnx::FunctionProto body;
      if (schema->BuildContextDependentFunction(context, body, version))
        return withDefaults(std::move(body));
    }
    if (const onnx::FunctionProto *body = schema->GetFunction(version))
      return withDefaults(*body);
  } catch (const std::exception &e) {
    error = e.what();
  }
  return std::nullopt;
}

static const AttributeProto *findAttribute(const NodeProto &call, const onnx::FunctionProto &function,
                                           const std::string &name) {
  for (const AttributeProto &attribute : call.attribute())
    if (attribute.name() == name)
      return &attribute;
  for (const AttributeProto &attribute : function.attribute_proto())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

void ptc::onnx_import::bindAttributes(NodeProto &node, const NodeProto &call, const onnx::FunctionProto &function) {
  for (int i = node.attribute_size() - 1; i >= 0; --i) {
    AttributeProto &attribute = *node.mutable_attribute(i);
    if (!attribute.ref_attr_name().empty()) {
      std::string name = attribute.name();
      const AttributeProto *given = findAttribute(call, function, attribute.ref_attr_name());
      if (given) {
        attribute = AttributeProto(*given);
        attribute.set_name(name);
      } else {
        node.mutable_attribute()->DeleteSubrange(i, 1);
      }
    } else if (attribute.has_g()) {
      for (NodeProto &inner : *attribute.mutable_g()->mutable_node())
        bindAttributes(inner, call, function);
    }
  }
}
