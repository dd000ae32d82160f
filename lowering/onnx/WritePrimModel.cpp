//===- WritePrimModel.cpp - a prim module as an ONNX model ----------------===//
//
// One node an op, in their order. Nothing here knows an op but three that are no computation: a weight is an
// initializer, a constant has its elements in an attribute, and the end of a region is a node that names its results.
// All else is generic: operands are inputs, results outputs with a type in value_info, attributes take the ONNX kind
// that says the same, regions are graphs.
//
//===----------------------------------------------------------------------===//
#include "ir/Diagnostics.h"
#include "ir/prim/GuardNodes.h"
#include "ir/prim/PackedElements.h"
#include "ir/prim/WeightAttrs.h"
#include "lowering/decomp/ElementTypes.h"
#include "lowering/onnx/PrimModel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <onnx/onnx_pb.h>

using namespace mlir;
using namespace ptc;
using namespace ptc::onnx_import;
using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;

namespace {

constexpr uint64_t pageBytes = 4096;
constexpr int64_t irVersion = 10; // the first one whose nodes have metadata

class PrimModelWriter {
public:
  PrimModelWriter(func::FuncOp entry, eval::WeightSource &weights, StringRef dataFile, bool isInline)
      : entry(entry), weights(weights), dataFile(dataFile), isInline(isInline) {}

  llvm::Expected<PrimModel> write(StringRef producer) {
    model.set_ir_version(irVersion);
    model.set_producer_name("ptc");
    model.set_producer_version(producer.str());
    auto *opset = model.add_opset_import();
    opset->set_domain(primDomain);
    opset->set_version(primVersion);
    addMetadata();
    GraphProto &graph = *model.mutable_graph();
    graph.set_name(entry.getSymName().str());
    for (unsigned i = 0; i < entry.getNumResults(); ++i) // the names that callers know come first
      taken.insert(entry.getResultAttrOfType<StringAttr>(i, prim::nameAttr).getValue());
    for (BlockArgument argument : entry.getArguments()) {
      std::string name = entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(), prim::nameAttr).str();
      taken.insert(name);
      names[argument] = name;
      describe(*graph.add_input(), name, argument.getType());
    }
    llvm::Error error = llvm::Error::success();
    entry.walk([&](prim::WeightOp weight) {
      if (!error)
        error = addWeight(weight);
    });
    if (error)
      return std::move(error);
    addOps(entry.getBody().front(), graph);
    if (!model.SerializeToString(&result.bytes))
      return llvm::createStringError("the model is larger than a protobuf can be");
    return std::move(result);
  }

private:
  //===--- The whole ---===//
  void addMetadata(const Twine &key, const Twine &value) {
    auto *entry = model.add_metadata_props();
    entry->set_key(key.str());
    entry->set_value(value.str());
  }

  void addGuard(size_t number, StringRef guard) {
    addMetadata(guardKey + Twine(number), guard);
    if (auto nodes = entry->getAttrOfType<DictionaryAttr>(prim::guardNodesAttr))
      if (auto node = nodes.getAs<StringAttr>(guard))
        addMetadata(guardNodeKey + Twine(number), node.getValue());
  }

  void addMetadata() {
    if (auto symbols = entry->getAttrOfType<DictionaryAttr>(prim::symbolsAttr))
      for (NamedAttribute symbol : symbols) {
        auto bounds = cast<prim::SymbolAttr>(symbol.getValue());
        addMetadata(symbolKey + symbol.getName().getValue(), Twine(bounds.getMin()) + " " + Twine(bounds.getMax()) +
                                                                 " " + Twine(bounds.getDivisor()) + " " +
                                                                 Twine(bounds.getHint()));
      }
    auto list = [&](StringRef name) { return entry->getAttrOfType<ArrayAttr>(name); };
    if (ArrayAttr guards = list(prim::guardsAttr))
      for (auto [i, guard] : llvm::enumerate(prim::getExprs(guards)))
        addGuard(i, guard.str());
    if (ArrayAttr folded = list(prim::foldedWeightsAttr))
      for (auto [i, name] : llvm::enumerate(folded.getAsValueRange<StringAttr>()))
        addMetadata(foldedKey + Twine(i), name);
    for (unsigned i = 0; i < entry.getNumArguments(); ++i)
      if (auto alias = entry.getArgAttrOfType<IntegerAttr>(i, prim::aliasAttr))
        addMetadata(aliasKey + Twine(i), Twine(alias.getInt()));
  }

  //===--- Names and types ---===//
  std::string unusedName(StringRef base) {
    std::string name = base.str();
    while (!taken.insert(name).second)
      name = (base + "_" + Twine(count++)).str();
    return name;
  }

  static void describe(onnx::ValueInfoProto &proto, StringRef name, Type type) {
    proto.set_name(name.str());
    decomp::toTypeProto(type, *proto.mutable_type());
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && proto.type().has_tensor_type())
      proto.mutable_type()->mutable_tensor_type()->mutable_shape(); // also of rank 0
  }

  //===--- Ops ---===//
  void addOps(Block &block, GraphProto &graph) {
    for (Operation &op : block) {
      if (isa<prim::WeightOp>(op))
        continue;
      NodeProto &node = *graph.add_node();
      node.set_domain(primDomain);
      bool isEnd = isa<func::ReturnOp>(op);
      node.set_op_type(isEnd ? "yield" : op.getName().stripDialect().str());
      addLocation(op, node);
      for (Value operand : op.getOperands())
        node.add_input(names.lookup(operand));
      for (Value value : op.getResults()) {
        std::string name = names[value] = unusedName((node.op_type() + "_" + Twine(count++)).str());
        node.add_output(name);
        describe(*graph.add_value_info(), name, value.getType());
      }
      if (op.hasTrait<OpTrait::IsTerminator>())
        addEnd(op, node, graph);
      else if (node.output_size() == 0) // ONNX wants each node to have something
        node.add_output(unusedName((node.op_type() + "_" + Twine(count++)).str()));
      for (NamedAttribute attribute : op.getAttrs())
        if (!isEnd)
          addAttribute(*node.add_attribute(), attribute.getName().getValue(), attribute.getValue());
      for (auto [i, region] : llvm::enumerate(op.getRegions()))
        addRegion(region, i, node);
    }
  }

  /// The results of the graph have the names that callers know, those of a region new ones.
  void addEnd(Operation &op, NodeProto &node, GraphProto &graph) {
    bool isEntry = isa<func::ReturnOp>(op);
    for (auto [i, value] : llvm::enumerate(op.getOperands())) {
      std::string name = isEntry ? entry.getResultAttrOfType<StringAttr>(i, prim::nameAttr).str()
                                 : unusedName(("yield_" + Twine(count++)).str());
      node.add_output(name);
      describe(*graph.add_output(), name, value.getType());
    }
    if (node.output_size() == 0)
      node.add_output(unusedName(("yield_" + Twine(count++)).str()));
  }

  void addRegion(Region &region, size_t index, NodeProto &node) {
    AttributeProto &attribute = *node.add_attribute();
    attribute.set_name("region" + std::to_string(index));
    attribute.set_type(AttributeProto::GRAPH);
    GraphProto &graph = *attribute.mutable_g();
    graph.set_name(unusedName(attribute.name()));
    for (BlockArgument argument : region.getArguments()) {
      std::string name = names[argument] = unusedName(("state_" + Twine(count++)).str());
      describe(*graph.add_input(), name, argument.getType());
    }
    addOps(region.front(), graph);
  }

  static void addLocation(Operation &op, NodeProto &node) {
    std::optional<NodeLocation> place = describeLocation(op.getLoc());
    if (!place)
      return;
    node.set_name(place->node.str());
    for (auto [key, value] : {std::pair("op", place->op), std::pair("output", place->output)}) {
      auto *entry = node.add_metadata_props();
      entry->set_key(key);
      entry->set_value(value.str());
    }
  }

  llvm::Error addWeight(prim::WeightOp weight) {
    prim::WeightRefAttr ref = weight.getRef();
    auto [known, isNew] = initializers.try_emplace(ref, "");
    if (isNew) {
      known->second = unusedName(ref.getName().empty() ? "computed" : ref.getName());
      onnx::TensorProto &tensor = *model.mutable_graph()->add_initializer();
      tensor.set_name(known->second);
      auto type = cast<RankedTensorType>(weight.getResult().getType());
      setType(tensor, type);
      if (isInline) {
        llvm::Expected<ArrayRef<char>> bytes = weights.getBytes(ref);
        if (!bytes)
          return bytes.takeError();
        tensor.set_raw_data(bytes->data(), bytes->size());
      } else {
        addExternal(tensor, ref);
      }
    }
    names[weight.getResult()] = known->second;
    return llvm::Error::success();
  }

  void addExternal(onnx::TensorProto &tensor, prim::WeightRefAttr ref) {
    uint64_t offset =
        result.beside.empty() ? 0 : result.beside.back().first + uint64_t(result.beside.back().second.getSize());
    offset = llvm::alignTo(offset, pageBytes);
    result.beside.emplace_back(offset, ref);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (auto [key, value] : {std::pair("location", dataFile.str()), std::pair("offset", std::to_string(offset)),
                              std::pair("length", std::to_string(ref.getSize()))}) {
      auto *entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
  }

  //===--- Attributes ---===//
  static void setType(onnx::TensorProto &tensor, ShapedType type) {
    tensor.set_data_type(decomp::toOnnxType(type.getElementType()));
    for (int64_t extent : type.getShape())
      tensor.add_dims(extent);
  }

  static std::string textOf(Attribute value) {
    std::string text;
    llvm::raw_string_ostream(text) << value;
    return text;
  }

  static void setElements(onnx::TensorProto &tensor, DenseElementsAttr elements) {
    setType(tensor, elements.getType());
    if (auto strings = dyn_cast<DenseStringElementsAttr>(elements)) {
      for (const std::string &text : prim::listStrings(strings))
        tensor.add_string_data(text);
      return;
    }
    std::vector<char> bytes = prim::packElements(elements);
    tensor.set_raw_data(bytes.data(), bytes.size());
  }

  /// The keyword of an enum, the text of an expression, else what MLIR prints.
  static std::string wordOf(Attribute value) {
    if (auto expr = dyn_cast<ExprAttr>(value))
      return Expr(expr).str();
    if (auto kind = dyn_cast<prim::ReduceKindAttr>(value))
      return stringifyReduceKind(kind.getValue()).str();
    if (auto kind = dyn_cast<prim::ArgKindAttr>(value))
      return stringifyArgKind(kind.getValue()).str();
    if (auto kind = dyn_cast<prim::PadKindAttr>(value))
      return stringifyPadKind(kind.getValue()).str();
    if (auto kind = dyn_cast<prim::ScatterKindAttr>(value))
      return stringifyScatterKind(kind.getValue()).str();
    return textOf(value);
  }

  static void addAttribute(AttributeProto &proto, StringRef name, Attribute value) {
    proto.set_name(name.str());
    auto setIntegers = [&](auto list) {
      proto.set_type(AttributeProto::INTS);
      for (auto element : list)
        proto.add_ints(element);
    };
    if (isa<UnitAttr>(value) || isa<IntegerAttr>(value)) {
      proto.set_type(AttributeProto::INT);
      auto integer = dyn_cast<IntegerAttr>(value);
      proto.set_i(integer ? integer.getType().isInteger(1) ? integer.getValue().getBoolValue() : integer.getInt() : 1);
    } else if (auto real = dyn_cast<FloatAttr>(value)) { // ONNX's own are f32
      proto.set_type(AttributeProto::TENSOR);
      setElements(*proto.mutable_t(),
                  DenseElementsAttr::get(RankedTensorType::get({}, real.getType()), real.getValue()));
    } else if (auto elements = dyn_cast<DenseElementsAttr>(value)) {
      proto.set_type(AttributeProto::TENSOR);
      setElements(*proto.mutable_t(), elements);
    } else if (auto integers = dyn_cast<DenseI64ArrayAttr>(value)) {
      setIntegers(integers.asArrayRef());
    } else if (auto integers = dyn_cast<DenseI32ArrayAttr>(value)) {
      setIntegers(integers.asArrayRef());
    } else if (auto list = dyn_cast<ArrayAttr>(value)) {
      proto.set_type(AttributeProto::STRINGS);
      for (Attribute element : list)
        proto.add_strings(wordOf(element));
    } else {
      proto.set_type(AttributeProto::STRING);
      auto text = dyn_cast<StringAttr>(value);
      proto.set_s(text ? text.str() : wordOf(value));
    }
  }

  func::FuncOp entry;
  eval::WeightSource &weights;
  StringRef dataFile;
  bool isInline;
  onnx::ModelProto model;
  PrimModel result;
  llvm::DenseMap<Value, std::string> names;
  llvm::DenseMap<Attribute, std::string> initializers;
  llvm::StringSet<> taken;
  unsigned count = 0;
};

} // namespace

llvm::Expected<PrimModel> ptc::writePrimModel(ModuleOp module, eval::WeightSource &weights, StringRef dataFile,
                                              StringRef producer, uint64_t mostInline) {
  func::FuncOp entry = *module.getOps<func::FuncOp>().begin();
  uint64_t bytes = 0;
  module.walk([&](prim::WeightOp weight) { bytes += uint64_t(weight.getRef().getSize()); });
  return PrimModelWriter(entry, weights, dataFile, bytes <= mostInline).write(producer);
}
