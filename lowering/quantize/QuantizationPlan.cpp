//===- QuantizationPlan.cpp - what of a model becomes 8 bits --------------===//
//
// Quantised are the products with weights, where the time goes and where integers are faster: each reads its activation
// and its weights in 8 bits. Everything between two products is computed in floats and rounded when it is stored, so
// that what goes through memory is bytes.
//
// A value that a product reads is rounded once; who else reads it gets
//   - the rounded value, where that is what 8-bit storage is for: sums (residuals), pools, concatenations, moves
//   - the float, everywhere else: normalisations, softmax, outputs of the model
//
// Moves of elements (Reshape, MaxPool, ...) commute with rounding, so a rounded result of one has the scale of what it
// moves, which is rounded too: then the bytes are moved. For the same reason a Concat gives its scale to those of its
// operands that no product asks for.
//
//===----------------------------------------------------------------------===//
#include "lowering/quantize/QuantizationPlan.h"
#include "ir/Diagnostics.h"
#include "lowering/onnx/NodeSelection.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace llvm;

namespace ptc::quantize {

using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TensorProto;

bool isOnnxOp(const NodeProto &node, StringRef type) {
  return (node.domain().empty() || node.domain() == "ai.onnx") && node.op_type() == type;
}

static bool isOneOf(const NodeProto &node, ArrayRef<StringRef> types) {
  return any_of(types, [&](StringRef type) { return isOnnxOp(node, type); });
}

static const onnx::AttributeProto *findAttribute(const NodeProto &node, StringRef name) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

static int64_t integerOf(const NodeProto &node, StringRef name, int64_t fallback) {
  const onnx::AttributeProto *attribute = findAttribute(node, name);
  return attribute ? attribute->i() : fallback;
}

static float floatOf(const NodeProto &node, StringRef name, float fallback) {
  const onnx::AttributeProto *attribute = findAttribute(node, name);
  return attribute ? attribute->f() : fallback;
}

StringMap<const TensorProto *> findConstants(const GraphProto &graph) {
  StringMap<const TensorProto *> constants;
  for (const TensorProto &tensor : graph.initializer())
    constants[tensor.name()] = &tensor;
  for (const NodeProto &node : graph.node())
    if (isOnnxOp(node, "Constant") && node.output_size() == 1)
      if (const onnx::AttributeProto *value = findAttribute(node, "value"))
        constants[node.output(0)] = &value->t();
  return constants;
}

/// Elements go to other places, or fewer of them do; none is computed. Of the first operand.
static bool isMove(const NodeProto &node) {
  return isOneOf(node, {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "DepthToSpace",
                        "SpaceToDepth", "Expand", "Tile", "Identity"}) ||
         (isOnnxOp(node, "MaxPool") && node.output_size() == 1);
}

/// Adds up, averages or joins: the error of rounded operands does not grow.
static bool readsRounded(const NodeProto &node) {
  return isOneOf(node, {"Add", "Sum", "Concat", "AveragePool", "GlobalAveragePool", "ReduceMean"});
}

static bool isProduct(const NodeProto &node) { return isOneOf(node, {"Conv", "Gemm", "MatMul"}); }

static int countNested(const GraphProto &graph, bool isNested);

static int countNested(const NodeProto &node) {
  int count = 0;
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      count += countNested(attribute.g(), true);
    for (const GraphProto &graph : attribute.graphs())
      count += countNested(graph, true);
  }
  return count;
}

static int countNested(const GraphProto &graph, bool isNested) {
  int count = 0;
  for (const NodeProto &node : graph.node())
    count += (isNested && isProduct(node)) + countNested(node);
  return count;
}

/// QuantizeLinear and DynamicQuantizeLinear, QLinear..., and those of onnxruntime. "DequantizeLinear" has no capital Q.
static bool roundsActivations(const NodeProto &node) {
  StringRef type = node.op_type();
  return type.contains("Quantize") || type.starts_with("QLinear") || type == "QGemm" || type == "QAttention";
}

static bool roundsRows(const NodeProto &node) {
  constexpr int64_t inBytes = 4;
  return node.op_type() == "MatMulNBits" && any_of(node.attribute(), [](const onnx::AttributeProto &attribute) {
           return attribute.name() == "accuracy_level" && attribute.i() == inBytes;
         });
}

using NodeTest = bool(const NodeProto &);

/// Whether the test is true of one of the nodes, or of one in their graphs.
template <typename Nodes> static bool anyNode(const Nodes &nodes, NodeTest &test) {
  return any_of(nodes, [&](const NodeProto &node) {
    auto isWithin = [&](const GraphProto &graph) { return anyNode(graph.node(), test); };
    return test(node) || any_of(node.attribute(), [&](const onnx::AttributeProto &attribute) {
             return (attribute.has_g() && isWithin(attribute.g())) || any_of(attribute.graphs(), isWithin);
           });
  });
}

static bool anyNode(const onnx::ModelProto &model, NodeTest &test) {
  return anyNode(model.graph().node(), test) ||
         any_of(model.functions(), [&](const auto &function) { return anyNode(function.node(), test); });
}

bool isQuantized(const onnx::ModelProto &model) { return anyNode(model, roundsActivations); }

bool permitsByteRows(const onnx::ModelProto &model) { return anyNode(model, roundsRows); }

namespace {
class Planner {
public:
  Planner(mlir::MLIRContext &context, const onnx_import::ModelFile &file, ArrayRef<std::string> keep)
      : context(context), graph(file.proto().graph()), constants(findConstants(graph)),
        kept("--keep", "keeps every one", keep) {
    for (const auto &[i, node] : enumerate(graph.node())) {
      for (const std::string &output : node.output())
        producers[output] = i;
      for (auto [place, input] : enumerate(node.input()))
        readers[input].push_back({int(i), int(place)});
    }
    plan.nested = countNested(graph, false);
    for (const onnx::FunctionProto &function : file.proto().functions())
      plan.nested += count_if(function.node(), isProduct);
  }

  std::optional<QuantizationPlan> run() {
    for (const auto &[i, node] : enumerate(graph.node()))
      planNode(node, int(i));
    if (!kept.reportUnmatched(mlir::UnknownLoc::get(&context)))
      return std::nullopt;
    followMoves();
    makeGroups();
    findReaders();
    return std::move(plan);
  }

private:
  void planNode(const NodeProto &node, int number);
  std::string findObstacle(const NodeProto &node) const;
  void followMoves();
  void makeGroups();
  void findReaders();
  bool isQuantized(StringRef value) const { return numbers.contains(value); }
  /// Asks for a value in 8 bits; false if it is already one.
  bool quantize(const std::string &value) {
    if (!numbers.try_emplace(value, values.size()).second)
      return false;
    scales.insert(values.size());
    values.push_back(value);
    return true;
  }
  /// Whether a value may be rounded: it comes from a node, or from outside.
  bool isActivation(StringRef value) const { return !value.empty() && !constants.contains(value); }

  mlir::MLIRContext &context;
  const GraphProto &graph;
  StringMap<const TensorProto *> constants;
  onnx_import::NodeSelection kept;
  StringMap<int> producers;
  StringMap<SmallVector<std::pair<int, int>>> readers;
  std::vector<std::string> values; // in 8 bits, in the order in which they are met
  StringMap<unsigned> numbers;     // of `values`
  EquivalenceClasses<unsigned> scales;
  QuantizationPlan plan;
};
} // namespace

/// Why the node's product is not one of 8-bit integers; empty if it can be.
std::string Planner::findObstacle(const NodeProto &node) const {
  if (node.input_size() < 2 || node.output_size() != 1)
    return "it is not complete";
  const TensorProto *weight = constants.lookup(node.input(1));
  if (!weight)
    return isActivation(node.input(0)) ? "neither of its operands is a constant of the model"
                                       : "its constant operand is the first one";
  if (!isActivation(node.input(0)))
    return "both of its operands are constants";
  if (weight->data_type() != TensorProto::FLOAT)
    return "its weights are not float32";
  if (isOnnxOp(node, "Conv"))
    return weight->dims_size() >= 3 ? "" : "its weights have rank " + std::to_string(weight->dims_size());
  if (weight->dims_size() != 2)
    return "its weights have rank " + std::to_string(weight->dims_size());
  if (isOnnxOp(node, "Gemm") && integerOf(node, "transA", 0))
    return "its activation is transposed";
  return "";
}

void Planner::planNode(const NodeProto &node, int number) {
  if (!isProduct(node))
    return;
  std::string output = node.output_size() ? node.output(0) : "";
  std::string title = formatLocation(makeNodeLocation(&context, node.name(), node.op_type(), output));
  bool isKept = kept.find(node.name(), output) != onnx_import::NodeSelection::Kind::None;
  std::string obstacle = isKept ? "--keep names it" : findObstacle(node);
  if (!obstacle.empty()) {
    plan.skipped.push_back({std::move(title), std::move(obstacle)});
    return;
  }
  Product product{number, node.input(0), node.input(1), output, "", 0, std::move(title)};
  if (isOnnxOp(node, "MatMul") || (isOnnxOp(node, "Gemm") && !integerOf(node, "transB", 0)))
    product.channels = 1;
  bool isPlainSum = isOnnxOp(node, "Conv") ||
                    (isOnnxOp(node, "Gemm") && floatOf(node, "alpha", 1) == 1 && floatOf(node, "beta", 1) == 1);
  if (const TensorProto *bias = node.input_size() > 2 ? constants.lookup(node.input(2)) : nullptr;
      bias && isPlainSum && bias->data_type() == TensorProto::FLOAT && bias->dims_size() == 1 &&
      bias->dims(0) == constants.lookup(product.weight)->dims(product.channels))
    product.bias = node.input(2);
  quantize(product.activation);
  plan.products.push_back(std::move(product));
}

/// From the products' operands back to what they were moved from.
void Planner::followMoves() {
  std::vector<std::string> pending = values;
  auto join = [&](const std::string &operand, const std::string &value) {
    if (!isActivation(operand))
      return;
    if (quantize(operand))
      pending.push_back(operand);
    scales.unionSets(numbers.lookup(operand), numbers.lookup(value));
  };
  while (!pending.empty()) {
    std::string value = pending.back();
    pending.pop_back();
    auto producer = producers.find(value);
    if (producer == producers.end())
      continue;
    const NodeProto &node = graph.node(producer->second);
    if (isMove(node) && node.input_size())
      join(node.input(0), value);
    else if (isOnnxOp(node, "Concat"))
      for (const std::string &operand : node.input())
        if (!isQuantized(operand)) // one that a product reads has a range of its own
          join(operand, value);
  }
}

void Planner::makeGroups() {
  DenseMap<unsigned, unsigned> groups; // by leader
  for (auto [number, value] : enumerate(values)) {
    auto [group, isNew] = groups.try_emplace(scales.getLeaderValue(number), plan.groups.size());
    if (isNew)
      plan.groups.emplace_back();
    plan.groups[group->second].push_back(value);
    plan.groupOf[value] = group->second;
  }
}

void Planner::findReaders() {
  for (const Product &product : plan.products)
    plan.rounded.insert({product.node, 0});
  for (const std::string &value : values)
    for (auto [number, place] : readers.lookup(value)) {
      const NodeProto &node = graph.node(number);
      bool isQuantizedMove = isMove(node) && place == 0 &&
                             any_of(node.output(), [&](const std::string &output) { return isQuantized(output); });
      if (isQuantizedMove || readsRounded(node))
        plan.rounded.insert({number, place});
    }
}

std::optional<QuantizationPlan> planQuantization(mlir::MLIRContext &context, const onnx_import::ModelFile &file,
                                                 ArrayRef<std::string> keep) {
  return Planner(context, file, keep).run();
}

} // namespace ptc::quantize
