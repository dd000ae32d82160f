//===- Operators.cpp - which operators, versions and types there are ------===//
#include "lowering/onnx/Operators.h"
#include "ir/Diagnostics.h"
#include "lowering/decomp/ElementTypes.h"
#include "lowering/decomp/OnnxOps.h"
#include "lowering/onnx/CheckGraph.h"
#include "lowering/onnx/ModelFile.h"
#include "lowering/onnx/Opsets.h"
#include "lowering/onnx/PrimModel.h"
#include "llvm/ADT/StringMap.h"
#include <set>

using namespace mlir;
using namespace ptc;
using namespace ptc::onnx_import;
using onnx::GraphProto;
using onnx::NodeProto;

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// Whether a type that a schema names ("seq(tensor(float))") is one that values can have.
static bool isKnownType(StringRef type, const std::set<std::string> &elements) {
  if (type.contains("map(")) { // with elements that all schemas' maps have
    type.consume_front("seq(");
    return type.starts_with("map(");
  }
  while (type.consume_front("seq(") || type.consume_front("optional("))
    type.consume_back(")");
  return type.consume_front("tensor(") && type.consume_back(")") && elements.count(type.str());
}

static std::set<std::string> elementNames() {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<prim::PrimDialect>();
  std::set<std::string> names;
  for (int32_t type = onnx::TensorProto::FLOAT; onnx::TensorProto::DataType_IsValid(type); ++type)
    if (decomp::fromOnnxType(&context, type))
      names.insert(decomp::onnxTypeName(type));
  return names;
}

static OperatorVersion describeSchema(const onnx::OpSchema &schema, bool isFunction,
                                      const std::set<std::string> &elements) {
  OperatorVersion version{.since = schema.SinceVersion(), .isFunction = isFunction, .types = {}, .inputs = {}};
  for (const auto &constraint : schema.typeConstraintParams()) {
    std::vector<std::string> &types = version.types[constraint.type_param_str];
    for (const std::string &type : constraint.allowed_type_strs)
      if (isKnownType(type, elements))
        types.push_back(type);
  }
  for (const auto &input : schema.inputs())
    version.inputs.push_back(input.GetTypeStr());
  return version;
}

std::vector<ImportedOperator> ptc::listOperators() {
  std::map<std::pair<std::string, std::string>, ImportedOperator> operators;
  auto entry = [&](StringRef domain, StringRef name, int64_t since) -> ImportedOperator & {
    auto [found, isNew] =
        operators.try_emplace({domain.str(), name.str()}, ImportedOperator{domain.str(), name.str(), since, {}});
    found->second.oldest = std::min(found->second.oldest, since);
    return found->second;
  };
  for (const decomp::OnnxOp &op : decomp::getOnnxOps())
    entry(op.domain, op.name, op.since);
  std::set<std::string> elements = elementNames();
  std::vector<onnx::OpSchema> schemas = onnx::OpSchemaRegistry::get_all_schemas_with_history();
  llvm::sort(schemas, [](const auto &a, const auto &b) { return a.SinceVersion() < b.SinceVersion(); });
  for (const onnx::OpSchema &schema : schemas) {
    if (schema.Deprecated())
      continue;
    onnx::OperatorSetIdProto opset;
    opset.set_domain(schema.domain());
    opset.set_version(schema.SinceVersion());
    Opsets opsets(std::vector<onnx::OperatorSetIdProto>{opset});
    NodeProto node;
    node.set_domain(schema.domain());
    node.set_op_type(schema.Name());
    if (!canImport(node, opsets))
      continue;
    bool isRow = decomp::findOnnxOp(schema.domain(), schema.Name(), schema.SinceVersion());
    entry(schema.domain(), schema.Name(), schema.SinceVersion())
        .versions.push_back(describeSchema(schema, !isRow, elements));
  }
  std::vector<ImportedOperator> list;
  for (auto &[name, op] : operators)
    list.push_back(std::move(op));
  return list;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

namespace {

class NodeList {
public:
  NodeList(const onnx::ModelProto &model, const std::vector<CustomOp> &customOps)
      : opsets(model.opset_import()), functions(model), customOps(customOps) {}

  /// Returns which nodes of the graph itself there are.
  std::vector<size_t> add(const GraphProto &graph) {
    scopes.emplace_back();
    std::vector<size_t> own;
    for (const NodeProto &node : graph.node())
      own.push_back(add(node));
    scopes.pop_back();
    return own;
  }

  std::vector<ModelNode> nodes;

private:
  size_t add(const NodeProto &node) {
    ModelNode entry{.name = node.name(),
                    .op = node.op_type(),
                    .domain = Opsets::normalize(node.domain()).str(),
                    .version = opsets.operatorVersion(node),
                    .inputs = {node.input().begin(), node.input().end()},
                    .outputs = {node.output().begin(), node.output().end()},
                    .producers = {},
                    .isImported = node.domain() == primDomain || customOps.find(node) || functions.find(node) ||
                                  canImport(node, opsets)};
    for (const std::string &input : node.input())
      for (auto &scope : llvm::reverse(scopes))
        if (auto producer = scope.find(input); producer != scope.end()) {
          entry.producers.push_back(producer->second);
          break;
        }
    size_t place = nodes.size();
    nodes.push_back(std::move(entry));
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        for (size_t inner : add(attribute.g()))
          nodes[place].producers.push_back(inner);
    for (const std::string &output : node.output())
      scopes.back()[output] = place;
    return place;
  }

  Opsets opsets;
  LocalFunctions functions;
  CustomOps customOps;
  std::vector<llvm::StringMap<size_t>> scopes; // who makes a value
};

} // namespace

std::vector<ModelNode> ptc::listNodes(MLIRContext &context, StringRef path, const std::vector<CustomOp> &customOps) {
  try {
    std::unique_ptr<ModelFile> file = ModelFile::open(context, path);
    if (!file)
      return {};
    NodeList list(file->proto(), customOps);
    list.add(file->proto().graph());
    return std::move(list.nodes);
  } catch (const std::exception &e) {
    diagnose(UnknownLoc::get(&context), DiagId::OnnxFailure, e.what());
  }
  return {};
}
