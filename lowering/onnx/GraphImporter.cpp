//===- GraphImporter.cpp - nodes of ONNX graphs become prim ops -----------===//
//
// One walk over the nodes in their order. A node is, in this order of preference,
//   1. a call of one of the model's own functions: its body is imported in a name
//      scope of its own;
//   2. a row of OnnxOps.def: its decomposition runs;
//   3. an operator whose schema has a function body: like 1, with the body built
//      for the types that its inputs have by now.
// Types and shapes need no separate inference: every prim op knows its own.
//
// Errors do not end the walk. A node that fails leaves its outputs marked as
// failed, and nodes that use them are passed over, so each real problem of a model
// is reported once.
//
//===----------------------------------------------------------------------===//
#include "lowering/onnx/GraphImporter.h"
#include "lowering/decomp/ElementTypes.h"
#include "lowering/onnx/CheckGraph.h"
#include "lowering/onnx/FunctionBody.h"
#include "lowering/onnx/Tensors.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::onnx_import;
using decomp::Values;
using onnx::NodeProto;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

NameScope::Entry *NameScope::find(StringRef name) {
  for (NameScope *scope = this; scope; scope = scope->parent)
    if (auto entry = scope->entries.find(name); entry != scope->entries.end())
      return &entry->second;
  return nullptr;
}

void NameScope::set(StringRef name, Value value) {
  if (!name.empty())
    entries[name] = {value ? State::Known : State::Failed, value, nullptr};
}

Value GraphImporter::valueOf(NameScope::Entry &slot) {
  if (!slot.initializer)
    return slot.value;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  const std::string &name = slot.initializer->name();
  Location loc = makeNodeLocation(builder.getContext(), name, "Initializer", name);
  slot.value = importTensor(builder, loc, file, *slot.initializer, name);
  slot.state = slot.value ? NameScope::State::Known : NameScope::State::Failed;
  slot.initializer = nullptr;
  return slot.value;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

GraphImporter::GraphImporter(OpBuilder &builder, decomp::ShapeScope &shapes, const ModelFile &file,
                             const ImportOptions &options)
    : taps(options.taps), builder(builder), shapes(shapes), file(file), options(options),
      opsets(file.proto().opset_import()), functions(file.proto()), entry(builder.getInsertionBlock()) {}

bool GraphImporter::importGraph(const onnx::GraphProto &graph, NameScope &scope) {
  for (const onnx::TensorProto &tensor : graph.initializer())
    scope.setInitializer(tensor);
  return importNodes(graph.node(), Frame{scope, opsets, "", 0});
}

std::optional<Values> GraphImporter::outputsOf(const onnx::GraphProto &graph, NameScope &scope) {
  Values outputs;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    NameScope::Entry *slot = scope.find(output.name());
    Value value = slot ? valueOf(*slot) : Value();
    if (!value)
      return std::nullopt;
    outputs.push_back(value);
  }
  return outputs;
}

std::optional<Values> GraphImporter::importSubgraph(const onnx::GraphProto &graph, ArrayRef<Value> inputs,
                                                    const Frame &frame) {
  if (frame.depth >= options.maxDepth) {
    diagnose(UnknownLoc::get(builder.getContext()), DiagId::NestedTooDeep, options.maxDepth);
    return std::nullopt;
  }
  NameScope scope(&frame.scope);
  for (const onnx::TensorProto &tensor : graph.initializer())
    scope.setInitializer(tensor);
  for (int i = 0; i < graph.input_size(); ++i)
    scope.set(graph.input(i).name(), i < int(inputs.size()) ? inputs[i] : Value());
  bool isComplete = importNodes(graph.node(), Frame{scope, frame.opsets, frame.path, frame.depth + 1});
  std::optional<Values> outputs = outputsOf(graph, scope);
  return isComplete ? outputs : std::nullopt;
}

template <typename Nodes> bool GraphImporter::importNodes(const Nodes &nodes, const Frame &frame) {
  bool isComplete = true;
  for (const NodeProto &node : nodes) {
    if (++nodeCount > options.maxNodes) {
      if (nodeCount == options.maxNodes + 1)
        diagnose(nodeLocation(builder.getContext(), node, frame.path), DiagId::TooManyNodes, options.maxNodes);
      return false;
    }
    isComplete &= importNode(node, frame);
  }
  return isComplete;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void GraphImporter::fail(const NodeProto &node, const Frame &frame) {
  for (const std::string &output : node.output())
    frame.scope.set(output, {});
}

bool GraphImporter::importNode(const NodeProto &node, const Frame &frame) {
  Location loc = nodeLocation(builder.getContext(), node, frame.path);
  SmallVector<Value> inputs;
  for (const std::string &name : node.input()) {
    NameScope::Entry *slot = name.empty() ? nullptr : frame.scope.find(name);
    bool isAbsent = name.empty() || (slot && slot->state == NameScope::State::Absent);
    Value value = slot ? valueOf(*slot) : Value();
    if (!value && !isAbsent) {
      fail(node, frame); // its producer has been reported
      return false;
    }
    inputs.push_back(value);
  }
  bool isComplete, isCall = false;
  if (const onnx::FunctionProto *function = functions.find(node))
    isComplete = expand(node, frame, inputs, loc, *function), isCall = true;
  else if (const decomp::OnnxOp *op =
               decomp::findOnnxOp(node.domain(), node.op_type(), frame.opsets.operatorVersion(node)))
    isComplete = decompose(node, frame, inputs, loc, op->decompose);
  else
    isComplete = expandSchema(node, frame, inputs, loc);
  if (!isComplete)
    fail(node, frame);
  else if (!taps.empty() && schemaDepth == 0)
    tapOutputs(node, frame, loc, isCall);
  return isComplete;
}

/// Taps of the node's outputs, as far as --tap asks for them. Those of a call have been met by a pattern inside.
void GraphImporter::tapOutputs(const NodeProto &node, const Frame &frame, Location loc, bool isCall) {
  std::optional<NodeLocation> place = describeLocation(loc);
  for (const std::string &output : node.output()) {
    NameScope::Entry *slot = output.empty() ? nullptr : frame.scope.find(output);
    if (!slot || !slot->value)
      continue;
    TapSelection::Kind kind = taps.find(place ? place->node : "", output);
    bool isPattern = kind == TapSelection::Kind::Pattern;
    if (kind == TapSelection::Kind::None || (isPattern && isCall))
      continue;
    prim::TapOp::create(builder, loc, slot->value, builder.getStringAttr(output),
                        builder.getI64IntegerAttr(taps.nextNumber()), isPattern ? builder.getUnitAttr() : UnitAttr(),
                        StringAttr());
  }
}

/// Element types as the schema has them, so that decompositions need not ask.
static bool checkTypes(decomp::NodeContext &node, const onnx::OpSchema &schema, ArrayRef<Value> inputs) {
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (!input || schema.inputs().empty())
      continue;
    const onnx::OpSchema::FormalParameter &formal = schema.inputs()[std::min(i, schema.inputs().size() - 1)];
    std::string type = decomp::onnxTypeOf(input.getType());
    std::vector<std::string> allowed;
    for (const auto *candidate : formal.GetTypes())
      allowed.push_back(*candidate);
    // A value takes the place of one that may be absent.
    if (!llvm::is_contained(allowed, type) && !llvm::is_contained(allowed, "optional(" + type + ")")) {
      StringRef word = type;
      if (word.consume_front("tensor(") && word.consume_back(")")) {
        type = word.str();
        llvm::erase_if(allowed, [](StringRef t) { return !t.starts_with("tensor("); });
        for (std::string &t : allowed)
          t = StringRef(t).drop_front(7).drop_back().str();
      }
      llvm::sort(allowed); // the schema has a set without an order
      node.fail(DiagId::WrongInputType, i, type, schema.Name() + " takes " + llvm::join(allowed, ", "));
      return false;
    }
  }
  return true;
}

/// Without a schema nothing says which element types an operator takes: those with which its prim ops are sound.
static bool fitTypes(decomp::NodeContext &context, const NodeProto &node, ArrayRef<Value> inputs, Operation *first) {
  bool isSound = true;
  {
    ScopedDiagnosticHandler silence(context.getContext(), [](Diagnostic &) {});
    for (Operation *op = first; op; op = op->getNextNode())
      isSound &= succeeded(mlir::verify(op));
  }
  if (isSound)
    return true;
  std::string types;
  for (Value input : inputs)
    types += (types.empty() ? "" : ", ") +
             (input ? decomp::describeType(prim::isHandle(prim::getElementType(input)) ? input.getType()
                                                                                       : prim::getElementType(input))
                    : std::string("none"));
  context.fail(DiagId::UnsupportedForm, node.op_type() + " of inputs of types (" + types + ")");
  return false;
}

bool GraphImporter::decompose(const NodeProto &node, const Frame &frame, ArrayRef<Value> inputs, Location loc,
                              decomp::Decomposition function) {
  decomp::ImportHooks hooks;
  hooks.tensor = [&](const onnx::TensorProto &tensor, Location where) {
    return importTensor(builder, where, file, tensor, tensor.name().empty() ? node.output(0) : tensor.name());
  };
  hooks.constant = [&](const onnx::TensorProto &tensor, Location where) {
    return importTensor(builder, where, file, tensor, tensor.name().empty() ? node.output(0) : tensor.name(),
                        /*isInline=*/true);
  };
  hooks.nextStream = [&] { return streamCount++; };
  hooks.subgraph = [&](const onnx::GraphProto &graph, ArrayRef<Value> values) {
    return importSubgraph(graph, values, frame);
  };
  decomp::NodeContext context(builder, loc, shapes, node, frame.opsets.operatorVersion(node), inputs, hooks);
  const onnx::OpSchema *schema = frame.opsets.schema(node);
  int needed = schema ? schema->min_input() : 0;
  for (int i = 0; i < needed; ++i) {
    bool isOptional =
        schema && i < int(schema->inputs().size()) && schema->inputs()[i].GetOption() == onnx::OpSchema::Optional;
    if (!isOptional && !context.input(i))
      return false;
  }
  if (schema && !checkTypes(context, *schema, inputs))
    return false;
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  Values outputs = function(context);
  if (context.hasFailed())
    return false;
  // Of strings, what only moves elements is sound; a schema may allow more.
  bool hasHandles = llvm::any_of(inputs, [](Value v) { return v && prim::isHandle(prim::getElementType(v)); });
  if ((!schema || hasHandles) && !fitTypes(context, node, inputs,
                                           before           ? before->getNextNode()
                                           : block->empty() ? nullptr
                                                            : &block->front()))
    return false;
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    if (i >= int(outputs.size()) || !outputs[i]) {
      context.fail(DiagId::UnsupportedForm, "output " + std::to_string(i) + " of " + node.op_type());
      return false;
    }
    frame.scope.set(node.output(i), outputs[i]);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

bool GraphImporter::expand(const NodeProto &node, const Frame &frame, ArrayRef<Value> inputs, Location loc,
                           const onnx::FunctionProto &function) {
  if (frame.depth >= options.maxDepth) {
    diagnose(loc, DiagId::NestedTooDeep, options.maxDepth);
    return false;
  }
  NameScope scope;
  for (int i = 0; i < function.input_size(); ++i) {
    if (i < int(inputs.size()) && inputs[i])
      scope.set(function.input(i), inputs[i]);
    else
      scope.setAbsent(function.input(i));
  }
  std::string path = frame.path.empty() ? node.name() : frame.path + "/" + node.name();
  if (path.empty() && node.output_size())
    path = node.output(0);
  Opsets bodyOpsets(function.opset_import());
  bodyOpsets.inherit(frame.opsets);
  std::vector<NodeProto> body(function.node().begin(), function.node().end());
  for (NodeProto &inner : body)
    bindAttributes(inner, node, function);
  if (!importNodes(body, Frame{scope, bodyOpsets, path, frame.depth + 1}))
    return false;
  for (int i = 0; i < std::min(node.output_size(), function.output_size()); ++i) {
    NameScope::Entry *slot = scope.find(function.output(i));
    Value value = slot ? valueOf(*slot) : Value();
    if (!value && !node.output(i).empty()) {
      diagnose(loc, DiagId::UndefinedOutput, function.output(i));
      return false;
    }
    frame.scope.set(node.output(i), value);
  }
  return true;
}

bool GraphImporter::expandSchema(const NodeProto &node, const Frame &frame, ArrayRef<Value> inputs, Location loc) {
  std::string error;
  if (std::optional<onnx::FunctionProto> body = schemaBody(node, frame.opsets, inputs, error)) {
    ++schemaDepth;
    bool isComplete = expand(node, frame, inputs, loc, *body);
    --schemaDepth;
    return isComplete;
  }
  if (!error.empty())
    diagnose(loc, DiagId::OnnxFailure, error);
  else
    diagnose(loc, DiagId::UnsupportedOperator, node.op_type(), frame.opsets.operatorVersion(node), 1,
             "'" + node.name() + "'");
  return false;
}
