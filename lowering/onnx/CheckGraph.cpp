//===- CheckGraph.cpp - is the model a well-formed graph? -----------------===//
//
// Names first: ONNX's checker stops at its first complaint and reports it in its
// own words, so what users really get wrong is found here, with every occurrence
// at its node. The checker then sees a model whose names are sound and judges the
// rest (attributes, required fields, types of initializers).
//
// A name that is used before its definition is either a cycle or an unsorted
// graph: it is a cycle if the later node reaches back to the earlier one.
//
//===----------------------------------------------------------------------===//
#include "lowering/onnx/CheckGraph.h"
#include "ir/Diagnostics.h"
#include "lowering/decomp/OnnxOps.h"
#include "lowering/onnx/Opsets.h"
#include "lowering/onnx/WireFormat.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include <onnx/checker.h>

using namespace mlir;
using namespace ptc;
using namespace ptc::onnx_import;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;

Location ptc::onnx_import::nodeLocation(MLIRContext *context, const NodeProto &node, StringRef prefix) {
  std::string name = prefix.empty() ? node.name() : (prefix + "/" + node.name()).str();
  StringRef output;
  for (const std::string &candidate : node.output())
    if (output.empty())
      output = candidate;
  return makeNodeLocation(context, name, node.op_type(), output);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {

class NameChecker {
public:
  NameChecker(MLIRContext *context, unsigned maxDepth) : context(context), maxDepth(maxDepth) {}

  bool check(const GraphProto &graph, unsigned depth) {
    if (depth > maxDepth) {
      diagnose(UnknownLoc::get(context), DiagId::NestedTooDeep, maxDepth);
      return false;
    }
    scopes.emplace_back();
    bool isSound = true;
    for (const onnx::ValueInfoProto &input : graph.input())
      isSound &= define(input.name(), UnknownLoc::get(context));
    for (const onnx::TensorProto &tensor : graph.initializer())
      if (!scopes.back().contains(tensor.name())) // an input's default
        isSound &= define(tensor.name(), UnknownLoc::get(context));
    isSound &= checkNodes(graph.node(), depth);
    for (const onnx::ValueInfoProto &output : graph.output())
      if (!isDefined(output.name())) {
        diagnose(UnknownLoc::get(context), DiagId::UndefinedOutput, output.name());
        isSound = false;
      }
    scopes.pop_back();
    return isSound;
  }

  bool check(const onnx::FunctionProto &function) {
    scopes.emplace_back();
    bool isSound = true;
    for (const std::string &input : function.input())
      isSound &= define(input, UnknownLoc::get(context));
    isSound &= checkNodes(function.node(), 0);
    scopes.pop_back();
    return isSound;
  }

private:
  template <typename Nodes> bool checkNodes(const Nodes &nodes, unsigned depth) {
    llvm::StringMap<int> producers;
    for (int i = 0; i < nodes.size(); ++i)
      for (const std::string &output : nodes[i].output())
        producers.try_emplace(output, i);
    bool isSound = true;
    for (int i = 0; i < nodes.size(); ++i) {
      Location loc = nodeLocation(context, nodes[i]);
      for (int k = 0; k < nodes[i].input_size(); ++k)
        isSound &= checkUse(nodes, producers, i, k, loc);
      for (const onnx::AttributeProto &attribute : nodes[i].attribute())
        if (attribute.has_g())
          isSound &= check(attribute.g(), depth + 1);
      for (const std::string &output : nodes[i].output())
        isSound &= define(output, loc);
    }
    return isSound;
  }

  template <typename Nodes>
  bool checkUse(const Nodes &nodes, const llvm::StringMap<int> &producers, int i, int k, Location loc) {
    const std::string &name = nodes[i].input(k);
    if (name.empty() || isDefined(name))
      return true;
    auto producer = producers.find(name);
    if (producer == producers.end())
      diagnose(loc, DiagId::UndefinedValue, k, name);
    else if (std::vector<int> path = findPath(nodes, producers, i, producer->second); !path.empty())
      reportCycle(nodes, path, name, loc);
    else
      diagnose(loc, DiagId::NotSorted, k, name);
    return false;
  }

  /// The nodes on a path of values from node `from` to node `to`, both included; nothing if there is none.
  template <typename Nodes>
  static std::vector<int> findPath(const Nodes &nodes, const llvm::StringMap<int> &producers, int from, int to) {
    SmallVector<int> open = {to};
    llvm::DenseMap<int, int> next = {{to, to}}; // towards `to`
    while (!open.empty()) {
      int current = open.pop_back_val();
      if (current == from) {
        std::vector<int> path = {current};
        while (path.back() != to)
          path.push_back(next.lookup(path.back()));
        return path;
      }
      for (const std::string &input : nodes[current].input())
        if (auto producer = producers.find(input); producer != producers.end())
          if (next.try_emplace(producer->second, current).second)
            open.push_back(producer->second);
    }
    return {};
  }

  template <typename Nodes>
  static void reportCycle(const Nodes &nodes, std::vector<int> path, StringRef name, Location loc) {
    constexpr size_t maxShown = 8;
    InFlightDiagnostic diag = diagnose(loc, DiagId::Cycle, name);
    std::string text;
    path.push_back(path.front());
    for (int node : ArrayRef(path).take_front(maxShown))
      text += (text.empty() ? "" : " → ") + describe(nodes[node]);
    diag.attachNote() << "its nodes: " << text << (path.size() > maxShown ? " → ..." : "");
    addHelp(diag, "a graph has no cycles; what repeats is the body of a Loop or Scan node");
  }

  static std::string describe(const NodeProto &node) {
    return node.name().empty() ? node.op_type() : "'" + node.name() + "' (" + node.op_type() + ")";
  }

  bool isDefined(StringRef name) const {
    return llvm::any_of(scopes, [&](const Scope &scope) { return scope.contains(name); });
  }

  bool define(StringRef name, Location loc) {
    if (name.empty())
      return true;
    auto [entry, isNew] = scopes.back().try_emplace(name, loc);
    if (isNew)
      return true;
    InFlightDiagnostic diag = diagnose(loc, DiagId::DuplicateValue, name);
    std::string first = formatLocation(entry->second);
    diag.attachNote() << "the other is " << (first.empty() ? "an input or initializer of the graph" : first);
    addHelp(diag, "give one of them another name, and the inputs that mean it");
    return false;
  }

  MLIRContext *context;
  unsigned maxDepth;
  using Scope = llvm::StringMap<Location>; // where each value is defined
  SmallVector<Scope> scopes;
};

bool checkVersions(MLIRContext *context, const ModelProto &model) {
  Location loc = UnknownLoc::get(context);
  bool isSound = true;
  int64_t newestIr = onnx::Version::IR_VERSION;
  if (model.ir_version() > newestIr) {
    diagnose(loc, DiagId::IrVersionTooNew, model.ir_version(), newestIr);
    isSound = false;
  }
  const auto &known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  for (const onnx::OperatorSetIdProto &import : model.opset_import()) {
    StringRef domain = Opsets::normalize(import.domain());
    auto range = known.find(domain.str());
    if (range != known.end() && import.version() > range->second.second) {
      diagnose(loc, DiagId::OpsetTooNew, import.version(), domain.empty() ? "ai.onnx" : domain, range->second.second);
      isSound = false;
    }
  }
  return isSound;
}

} // namespace

bool ptc::onnx_import::checkStructure(MLIRContext *context, const ModelProto &model, unsigned maxDepth) {
  bool isSound = checkVersions(context, model);
  isSound &= NameChecker(context, maxDepth).check(model.graph(), 0);
  for (const onnx::FunctionProto &function : model.functions())
    isSound &= NameChecker(context, maxDepth).check(function);
  return isSound;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

bool ptc::onnx_import::canImport(const NodeProto &node, const Opsets &opsets) {
  if (decomp::findOnnxOp(node.domain(), node.op_type(), opsets.operatorVersion(node)))
    return true;
  const onnx::OpSchema *schema = opsets.schema(node);
  if (!schema)
    return false;
  if (schema->HasContextDependentFunction())
    return true; // whether its body can be is seen when it is expanded
  const onnx::FunctionProto *body = schema->GetFunction(opsets.version(node.domain()));
  return body && llvm::all_of(body->node(), [&](const NodeProto &inner) { return canImport(inner, opsets); });
}

namespace {

class OperatorScan {
public:
  OperatorScan(MLIRContext *context, const ModelProto &model, const CustomOps &customOps)
      : context(context), customOps(customOps), functions(model) {
    Opsets opsets(model.opset_import());
    scan(model.graph().node(), opsets);
    for (const onnx::FunctionProto &function : model.functions())
      scan(function.node(), Opsets(function.opset_import()));
  }

  bool report(bool goesOn) const {
    for (const auto &[domain, loc] : withoutOpset)
      diagnose(loc, DiagId::MissingOpset, domain);
    for (const auto &[key, uses] : missing) {
      std::string names;
      for (StringRef name : ArrayRef(uses.names).take_front(maxNames))
        names += (names.empty() ? "" : ", ") + name.str();
      if (uses.names.size() > maxNames)
        names += ", ...";
      InFlightDiagnostic diag =
          diagnose(uses.loc, DiagId::UnsupportedOperator, key, uses.version, uses.names.size(), names);
      addHelp(diag, "--custom-op " + key + "=LIBRARY:SYMBOL brings an operator of your own");
    }
    return (missing.empty() || goesOn) && withoutOpset.empty();
  }

private:
  static constexpr size_t maxNames = 5;
  struct Uses {
    Location loc;
    int64_t version;
    SmallVector<std::string> names;
  };

  template <typename Nodes> void scan(const Nodes &nodes, const Opsets &opsets) {
    for (const NodeProto &node : nodes) {
      if (!opsets.has(node.domain()))
        withoutOpset.insert({node.domain(), nodeLocation(context, node)});
      else if (!isSupported(node, opsets))
        note(node, opsets);
      for (const onnx::AttributeProto &attribute : node.attribute())
        if (attribute.has_g())
          scan(attribute.g().node(), opsets);
    }
  }

  bool isSupported(const NodeProto &node, const Opsets &opsets) const {
    return customOps.find(node) || functions.find(node) || canImport(node, opsets);
  }

  void note(const NodeProto &node, const Opsets &opsets) {
    StringRef domain = Opsets::normalize(node.domain());
    std::string key = domain.empty() ? node.op_type() : (domain + "." + node.op_type()).str();
    auto [entry, isNew] = missing.insert({key, Uses{nodeLocation(context, node), opsets.operatorVersion(node), {}}});
    std::string name = !node.name().empty() ? node.name() : node.output_size() ? node.output(0) : std::string();
    entry->second.names.push_back("'" + name + "'");
  }

  MLIRContext *context;
  const CustomOps &customOps;
  LocalFunctions functions;
  llvm::MapVector<std::string, Uses, std::map<std::string, unsigned>> missing;
  std::map<std::string, Location> withoutOpset; // the first node of each domain that is not imported
};

} // namespace

bool ptc::onnx_import::checkOperators(MLIRContext *context, const ModelProto &model, const CustomOps &customOps,
                                      bool goesOn) {
  return OperatorScan(context, model, customOps).report(goesOn);
}

//===----------------------------------------------------------------------===//
// ONNX's checker
//===----------------------------------------------------------------------===//

/// The checker compares dims with bytes, which marked tensors do not have: in its copy of the model they are empty.
static void emptyMarkedTensors(GraphProto &graph);

static constexpr char foreignDomain[] = "com.microsoft";

static void emptyIfMarked(onnx::TensorProto &tensor) {
  ByteRange range;
  if (!readMark(tensor.doc_string(), range))
    return;
  tensor.clear_dims();
  tensor.add_dims(0);
}

template <typename Nodes> static void emptyMarkedTensorsOf(Nodes &nodes) {
  for (NodeProto &node : nodes)
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_t())
        emptyIfMarked(*attribute.mutable_t());
      if (attribute.has_g())
        emptyMarkedTensors(*attribute.mutable_g());
    }
}

static void emptyMarkedTensors(GraphProto &graph) {
  for (onnx::TensorProto &tensor : *graph.mutable_initializer())
    emptyIfMarked(tensor);
  emptyMarkedTensorsOf(*graph.mutable_node());
}

/// Nodes that onnxruntime's tools put into ONNX's own domain, which the checker does not know there, move to theirs, as
/// do those of the user's own operators.
template <typename Nodes> static void moveForeignNodes(Nodes &nodes, const Opsets &opsets, const CustomOps &customOps) {
  for (NodeProto &node : nodes) {
    bool isOnnx = Opsets::normalize(node.domain()).empty();
    bool isForeign = customOps.find(node) || (isOnnx && !opsets.schema(node) &&
                                              decomp::findOnnxOp("", node.op_type(), opsets.operatorVersion(node)));
    if (isForeign)
      node.set_domain(foreignDomain);
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        moveForeignNodes(*attribute.mutable_g()->mutable_node(), opsets, customOps);
  }
}

template <typename Owner, typename Nodes>
static void moveForeignNodesOf(Owner &owner, Nodes &nodes, const CustomOps &customOps) {
  Opsets opsets(owner.opset_import());
  moveForeignNodes(nodes, opsets, customOps);
  if (!opsets.has(foreignDomain)) {
    onnx::OperatorSetIdProto *import = owner.add_opset_import();
    import->set_domain(foreignDomain);
    import->set_version(1);
  }
}

/// The one node of the graph that the checker's context is about: "Bad node spec for node. Name: fc OpType: Gemm".
/// Names need not be unique, nor need there be one.
static const NodeProto *findNode(const GraphProto &graph, StringRef context) {
  const NodeProto *found = nullptr;
  unsigned count = 0;
  for (const NodeProto &node : graph.node()) {
    bool isNamed = context.contains("Name: " + node.name() + " OpType: " + node.op_type());
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (const NodeProto *inner = attribute.has_g() ? findNode(attribute.g(), context) : nullptr)
        return inner;
    if (isNamed)
      found = &node, ++count;
  }
  return count == 1 ? found : nullptr;
}

/// The checker stops at its first finding, and it is the library's sentence, which knows the rule that is broken.
static void reportFinding(MLIRContext *context, const ModelProto &model, StringRef text) {
  auto [sentence, rest] = text.trim().split("\n\n==> Context: ");
  rest = rest.trim();
  const NodeProto *node = findNode(model.graph(), rest);
  Location loc = node ? nodeLocation(context, *node) : UnknownLoc::get(context);
  InFlightDiagnostic diag = diagnose(loc, DiagId::CheckerRefused, sentence.trim());
  if (!node && !rest.empty())
    diag.attachNote() << rest;
  addHelp(diag,
          "the file breaks a rule of ONNX: write it again with a newer exporter, or change this place with the onnx "
          "package and try `onnx.checker.check_model`");
}

bool ptc::onnx_import::checkWithOnnx(MLIRContext *context, const ModelProto &model, const CustomOps &customOps) {
  try {
    ModelProto copy = model;
    emptyMarkedTensors(*copy.mutable_graph());
    for (onnx::ValueInfoProto &input : *copy.mutable_graph()->mutable_input())
      if (input.type().has_tensor_type()) // --shape may give what is missing
        input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (onnx::ValueInfoProto &output : *copy.mutable_graph()->mutable_output()) { // what it is follows from its node
      output.clear_type();
      output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
      output.mutable_type()->mutable_tensor_type()->mutable_shape();
    }
    moveForeignNodesOf(copy, *copy.mutable_graph()->mutable_node(), customOps);
    for (onnx::FunctionProto &function : *copy.mutable_functions()) {
      emptyMarkedTensorsOf(*function.mutable_node());
      moveForeignNodesOf(function, *function.mutable_node(), customOps);
    }
    onnx::checker::check_model(copy);
    return true;
  } catch (const std::exception &e) {
    reportFinding(context, model, e.what());
    return false;
  }
}
