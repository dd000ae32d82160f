//===- QuantizeModel.cpp - a model with 8-bit products --------------------===//
//
// What is written is what other tools read as well (onnxruntime, OpenVINO, TensorRT): the model's own nodes, floats
// between them, and pairs of QuantizeLinear and DequantizeLinear where a value is rounded. Weights stand in 8 bits
// behind a DequantizeLinear, signed and symmetric, one scale a channel; biases in 32 bits, in units of what is added
// up.
//
// Version 13 of the two operators is the first with scales along an axis. A model of an older one gets those of domain
// com.microsoft, which have them too, and stays as it is otherwise.
//
//===----------------------------------------------------------------------===//
#include "lowering/quantize/QuantizeModel.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>
#include <limits>
#include <map>

using namespace llvm;

namespace ptc::quantize {

using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TensorProto;

double SignalAndNoise::decibels() const {
  if (noise == 0)
    return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

static std::vector<float> readFloats(const onnx_import::ModelFile &file, const TensorProto &tensor) {
  std::optional<StringRef> raw = file.rawBytes(tensor);
  if (!raw)
    return {tensor.float_data().begin(), tensor.float_data().end()};
  std::vector<float> elements(raw->size() / sizeof(float));
  std::memcpy(elements.data(), raw->data(), elements.size() * sizeof(float));
  return elements;
}

static void collectNames(const GraphProto &graph, StringSet<> &names) {
  for (const auto *values : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const onnx::ValueInfoProto &value : *values)
      names.insert(value.name());
  for (const TensorProto &tensor : graph.initializer())
    names.insert(tensor.name());
  for (const NodeProto &node : graph.node()) {
    names.insert(node.name());
    for (const auto *values : {&node.input(), &node.output()})
      for (const std::string &value : *values)
        names.insert(value);
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        collectNames(attribute.g(), names);
      for (const GraphProto &nested : attribute.graphs())
        collectNames(nested, names);
    }
  }
}

static void collectUses(const GraphProto &graph, StringSet<> &used) {
  for (const onnx::ValueInfoProto &output : graph.output())
    used.insert(output.name());
  for (const NodeProto &node : graph.node()) {
    for (const std::string &input : node.input())
      used.insert(input);
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        collectUses(attribute.g(), used);
      for (const GraphProto &nested : attribute.graphs())
        collectUses(nested, used);
    }
  }
}

namespace {
/// Weights in 8 bits, with a scale for each channel.
struct RoundedWeights {
  std::vector<int8_t> elements;
  std::vector<float> scales;
  SignalAndNoise error;
};

class Rewriter {
public:
  Rewriter(const onnx_import::ModelFile &file, const QuantizationPlan &plan, ArrayRef<Quantization> scales,
           const WeightOptions &options)
      : file(file), plan(plan), scales(scales), options(options), source(file.proto().graph()),
        constants(findConstants(source)) {
    collectNames(source, names);
  }

  QuantizedModel run() {
    result.proto = file.proto();
    chooseOperators();
    GraphProto &graph = *result.proto.mutable_graph();
    graph.clear_node();
    for (const onnx::ValueInfoProto &input : source.input())
      addActivation(input.name());
    size_t next = 0;
    for (int i = 0; i < source.node_size(); ++i) {
      NodeProto node = source.node(i);
      if (next < plan.products.size() && plan.products[next].node == i)
        addProduct(plan.products[next++], node);
      for (int place = 0; place < node.input_size(); ++place)
        if (plan.rounded.contains({i, place}))
          if (auto rounded = dequantized.find(node.input(place)); rounded != dequantized.end())
            node.set_input(place, rounded->second);
      *graph.add_node() = node;
      for (const std::string &output : node.output())
        addActivation(output);
    }
    dropUnused();
    return std::move(result);
  }

private:
  void chooseOperators();
  void addActivation(StringRef value);
  void addProduct(const Product &product, NodeProto &node);
  RoundedWeights roundWeights(const Product &product, ArrayRef<float> bias, float activationScale);
  std::string addWeights(const Product &product, const RoundedWeights &rounded);
  void dropUnused();

  std::string unusedName(const Twine &base) {
    std::string name = base.str();
    for (unsigned count = 1; !names.insert(name).second; ++count)
      name = (base + "_" + Twine(count)).str();
    return name;
  }

  /// Elements as raw bytes; ONNX's are little-endian, as those of every machine that ptc runs on.
  template <typename Element>
  std::string addTensor(const Twine &base, TensorProto::DataType type, ArrayRef<int64_t> shape,
                        ArrayRef<Element> elements) {
    TensorProto &tensor = *result.proto.mutable_graph()->add_initializer();
    tensor.set_name(unusedName(base));
    tensor.set_data_type(type);
    for (int64_t dim : shape)
      tensor.add_dims(dim);
    tensor.set_raw_data(elements.data(), elements.size() * sizeof(Element));
    return tensor.name();
  }

  std::string addNode(StringRef type, ArrayRef<std::string> inputs, const Twine &output,
                      std::optional<int64_t> axis = std::nullopt) {
    NodeProto &node = *result.proto.mutable_graph()->add_node();
    node.set_op_type(type.str());
    node.set_domain(domain);
    for (const std::string &input : inputs)
      node.add_input(input);
    std::string name = unusedName(output);
    node.set_name(name);
    node.add_output(name);
    if (axis) {
      onnx::AttributeProto &attribute = *node.add_attribute();
      attribute.set_name("axis");
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(*axis);
    }
    return name;
  }

  const onnx_import::ModelFile &file;
  const QuantizationPlan &plan;
  ArrayRef<Quantization> scales;
  const WeightOptions &options;
  const GraphProto &source;
  StringMap<const TensorProto *> constants;
  StringSet<> names;
  std::string domain;
  StringMap<std::string> dequantized; // the rounded form of an activation
  std::map<std::tuple<std::string, int64_t, std::vector<float>>, std::string> weights; // by name, channels and scales
  QuantizedModel result;
};
} // namespace

void Rewriter::chooseOperators() {
  constexpr int64_t firstWithAxis = 13, firstWithFreeInitializers = 4;
  StringRef microsoft = "com.microsoft";
  bool isOld = false, hasMicrosoft = false;
  for (const onnx::OperatorSetIdProto &opset : result.proto.opset_import()) {
    if (opset.domain().empty() || opset.domain() == "ai.onnx")
      isOld = opset.version() < firstWithAxis;
    hasMicrosoft |= opset.domain() == microsoft;
  }
  domain = isOld ? microsoft.str() : "";
  if (isOld && !hasMicrosoft) {
    onnx::OperatorSetIdProto &opset = *result.proto.add_opset_import();
    opset.set_domain(microsoft.str());
    opset.set_version(1);
  }
  result.proto.set_ir_version(std::max(result.proto.ir_version(), firstWithFreeInitializers));
}

/// A value that the plan rounds, right behind the node that it is from.
void Rewriter::addActivation(StringRef value) {
  auto group = plan.groupOf.find(value);
  if (group == plan.groupOf.end() || constants.contains(value))
    return;
  const Quantization &scale = scales[group->second];
  TensorProto::DataType type = scale.isSigned ? TensorProto::INT8 : TensorProto::UINT8;
  std::string factor = addTensor<float>(value + "/scale", TensorProto::FLOAT, {}, scale.scale);
  std::string zero = addTensor<uint8_t>(value + "/zero_point", type, {}, uint8_t(scale.zeroPoint));
  std::string integers = addNode("QuantizeLinear", {value.str(), factor, zero}, value + "/quantized");
  dequantized[value] = addNode("DequantizeLinear", {integers, factor, zero}, value + "/dequantized");
}

/// Symmetric, the largest of a channel is 127. A bias that would not fit in 32 bits widens the scale of its channel.
RoundedWeights Rewriter::roundWeights(const Product &product, ArrayRef<float> bias, float activationScale) {
  constexpr double mostBias = double(1 << 30);
  const TensorProto &tensor = *constants.lookup(product.weight);
  std::vector<float> weights = readFloats(file, tensor);
  int64_t channels = tensor.dims(int(product.channels)), inner = 1;
  for (int64_t axis = product.channels + 1; axis < tensor.dims_size(); ++axis)
    inner *= tensor.dims(int(axis));
  auto channelOf = [&](size_t i) { return size_t(int64_t(i) / inner % channels); };
  std::vector<float> largest(channels);
  for (auto [i, weight] : enumerate(weights))
    if (std::isfinite(weight))
      largest[channelOf(i)] = std::max(largest[channelOf(i)], std::abs(weight));
  if (!options.perChannel)
    llvm::fill(largest, channels ? *llvm::max_element(largest) : 0);
  RoundedWeights rounded;
  for (auto [channel, most] : enumerate(largest)) {
    float scale = most / 127;
    if (!bias.empty())
      scale = std::max(scale, float(std::abs(double(bias[channel])) / mostBias / activationScale));
    rounded.scales.push_back(scale >= std::numeric_limits<float>::min() ? scale : 1);
  }
  if (!options.perChannel && channels)
    llvm::fill(rounded.scales, *llvm::max_element(rounded.scales));
  for (auto [i, weight] : enumerate(weights)) {
    float scale = rounded.scales[channelOf(i)];
    double integer = std::isnan(weight) ? 0 : std::clamp<double>(std::nearbyint(double(weight) / scale), -127, 127);
    rounded.elements.push_back(int8_t(integer));
    rounded.error.add(weight, integer * scale);
  }
  return rounded;
}

/// The rounded weights as a value; products that share them find the same one.
std::string Rewriter::addWeights(const Product &product, const RoundedWeights &rounded) {
  std::string &value = weights[{product.weight, product.channels, rounded.scales}];
  if (!value.empty())
    return value;
  const TensorProto &weight = *constants.lookup(product.weight);
  ArrayRef<float> factors = rounded.scales;
  SmallVector<int64_t> shape, dims(weight.dims().begin(), weight.dims().end());
  if (options.perChannel)
    shape.push_back(int64_t(factors.size()));
  else
    factors = factors.take_front();
  std::vector<int8_t> zeros(factors.size(), 0);
  std::string factor = addTensor(product.weight + "/scale", TensorProto::FLOAT, shape, factors);
  std::string zero = addTensor<int8_t>(product.weight + "/zero_point", TensorProto::INT8, shape, zeros);
  std::string integers = addTensor<int8_t>(product.weight + "/quantized", TensorProto::INT8, dims, rounded.elements);
  value = addNode("DequantizeLinear", {integers, factor, zero}, product.weight + "/dequantized",
                  options.perChannel ? std::optional(product.channels) : std::nullopt);
  return value;
}

void Rewriter::addProduct(const Product &product, NodeProto &node) {
  float activationScale = scales[plan.groupOf.lookup(product.activation)].scale;
  std::vector<float> bias;
  if (!product.bias.empty())
    bias = readFloats(file, *constants.lookup(product.bias));
  RoundedWeights rounded = roundWeights(product, bias, activationScale);
  result.weights.push_back(rounded.error);
  node.set_input(1, addWeights(product, rounded));
  if (bias.empty())
    return;
  std::vector<int32_t> units;
  std::vector<float> unit;
  for (auto [channel, term] : enumerate(bias)) {
    unit.push_back(rounded.scales[channel] * activationScale);
    units.push_back(std::isnan(term) ? 0 : int32_t(std::nearbyint(double(term) / unit.back())));
  }
  auto channels = int64_t(bias.size());
  std::string factor = addTensor<float>(product.bias + "/scale", TensorProto::FLOAT, {channels}, unit);
  std::string integers = addTensor<int32_t>(product.bias + "/quantized", TensorProto::INT32, {channels}, units);
  node.set_input(2, addNode("DequantizeLinear", {integers, factor}, product.bias + "/dequantized", 0));
}

/// Constants that are read by nothing any more, and their entries among the inputs.
void Rewriter::dropUnused() {
  GraphProto &graph = *result.proto.mutable_graph();
  StringSet<> used;
  collectUses(graph, used);
  auto isUnused = [&](const std::string &name) { return constants.contains(name) && !used.contains(name); };
  auto erase = [](auto &list, auto &&matches) {
    list.erase(std::remove_if(list.begin(), list.end(), matches), list.end());
  };
  erase(*graph.mutable_initializer(), [&](const TensorProto &tensor) { return isUnused(tensor.name()); });
  erase(*graph.mutable_node(), [&](const NodeProto &node) {
    return isOnnxOp(node, "Constant") && node.output_size() == 1 && isUnused(node.output(0));
  });
  for (auto *values : {graph.mutable_input(), graph.mutable_value_info()})
    erase(*values, [&](const onnx::ValueInfoProto &value) { return isUnused(value.name()); });
}

QuantizedModel quantizeModel(const onnx_import::ModelFile &file, const QuantizationPlan &plan,
                             ArrayRef<Quantization> scales, const WeightOptions &options) {
  return Rewriter(file, plan, scales, options).run();
}

} // namespace ptc::quantize
