//===- GraphImporter.cpp - nodes of ONNX graphs become prim ops -----------===//
//
// One walk over the nodes in their order. A node is, in this order of preference,
//   1. an operator of the user's own (--custom-op): it becomes a call of his library;
//   2. a call of one of the model's own functions: its body is imported in a name
//      scope of its own;
//   3. a row of OnnxOps.def: its decomposition runs;
//   4. an operator whose schema has a function body: like 2, with the body built
//      for the types that its inputs have by now.
// Types and shapes need no separate inference: every prim op knows its own.
//
// Errors do not end the walk. A node that fails leaves its outputs marked as
// failed, and nodes that use them are passed over, so each real problem of a model
// is reported once.
//
//===----------------------------------------------------------------------===//
#include "lowering/onnx/GraphImporter.h"
#include "ir/prim/Elements.h"
#include "lowering/decomp/ElementTypes.h"
#include "lowering/onnx/CheckGraph.h"
#include "lowering/onnx/FunctionBody.h"
#include "lowering/onnx/Tensors.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::onnx_import;
using decomp::Values;
using onnx::NodeProto;

/// Each If that has the rest of its graph in both branches doubles that: 2^MAX_FORKS copies at most.
static constexpr unsigned MAX_FORKS = 4;

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

Value GraphImporter::valueOf(NameScope::Entry &slot, bool isInline) {
  if (!slot.initializer)
    return slot.value;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  const std::string &name = slot.initializer->name();
  Location loc = makeNodeLocation(builder.getContext(), name, "Initializer", name);
  slot.value = importTensor(builder, loc, file, *slot.initializer, name, isInline);
  slot.state = slot.value ? NameScope::State::Known : NameScope::State::Failed;
  slot.initializer = nullptr;
  return slot.value;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

GraphImporter::GraphImporter(OpBuilder &builder, decomp::ShapeScope &shapes, const ModelFile &file,
                             const ImportOptions &options)
    : taps("--tap", "taps every one", options.taps),
      keeps("--autocast-keep", "is what --autocast=none does", options.keptNodes), customOps(options.customOps),
      builder(builder), shapes(shapes), file(file), options(options), opsets(file.proto().opset_import()),
      functions(file.proto()), entry(builder.getInsertionBlock()) {}

template <typename Range> static std::vector<const NodeProto *> pointersTo(const Range &nodes) {
  std::vector<const NodeProto *> pointers;
  for (const NodeProto &node : nodes)
    pointers.push_back(&node);
  return pointers;
}

template <typename Range> static std::vector<std::string> namesOf(const Range &values) {
  std::vector<std::string> names;
  for (const onnx::ValueInfoProto &value : values)
    names.push_back(value.name());
  return names;
}

bool GraphImporter::importGraph(const onnx::GraphProto &graph, NameScope &scope) {
  for (const onnx::TensorProto &tensor : graph.initializer())
    scope.setInitializer(tensor);
  std::vector<std::string> results = namesOf(graph.output());
  return importNodes(pointersTo(graph.node()), Frame{scope, opsets, "", 0, results});
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
  std::vector<std::string> results = namesOf(graph.output());
  bool isComplete = importNodes(pointersTo(graph.node()),
                                Frame{scope, frame.opsets, frame.path, frame.depth + 1, results, frame.forks});
  std::optional<Values> outputs = outputsOf(graph, scope);
  return isComplete && outputs && haveNoMap(*outputs) ? outputs : std::nullopt;
}

/// Maps pass through no control flow: ONNX knows them as inputs and outputs of a model alone.
bool GraphImporter::haveNoMap(ArrayRef<Value> values) {
  bool isMap = llvm::any_of(values, [](Value value) { return value && decomp::isMap(value.getType()); });
  if (isMap)
    diagnose(UnknownLoc::get(builder.getContext()), DiagId::UnsupportedForm, "a map that a subgraph gives");
  return !isMap;
}

bool GraphImporter::importNodes(Nodes nodes, const Frame &frame) {
  bool isComplete = true;
  for (; !nodes.empty(); nodes = nodes.drop_front()) {
    const NodeProto &node = *nodes.front();
    if (++nodeCount > options.maxNodes) {
      if (nodeCount == options.maxNodes + 1)
        diagnose(nodeLocation(builder.getContext(), node, frame.path), DiagId::TooManyNodes, options.maxNodes);
      return false;
    }
    Outcome outcome = importNode(node, frame);
    if (outcome == Outcome::Forks)
      return isComplete & importFork(node, nodes.drop_front(), frame);
    isComplete &= outcome == Outcome::Complete;
  }
  return isComplete;
}

//===----------------------------------------------------------------------===//
// Ifs whose results differ in rank
//===----------------------------------------------------------------------===//

/// Names that the nodes of a graph use, their own ones among them.
static void collectUses(const NodeProto &node, llvm::StringSet<> &names) {
  names.insert_range(node.input());
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    auto collect = [&](const onnx::GraphProto &graph) {
      for (const NodeProto &inner : graph.node())
        collectUses(inner, names);
      for (const onnx::ValueInfoProto &output : graph.output())
        names.insert(output.name());
    };
    if (attribute.has_g())
      collect(attribute.g());
    for (const onnx::GraphProto &graph : attribute.graphs())
      collect(graph);
  }
}

/// No type joins such results: the nodes that depend on them are imported once in each branch, behind its own nodes,
/// and the If gives what of theirs the graph gives. All others come first.
bool GraphImporter::importFork(const NodeProto &node, Nodes later, const Frame &frame) {
  llvm::StringSet<> dependent;
  dependent.insert_range(node.output());
  std::vector<const NodeProto *> before, rest;
  for (const NodeProto *next : later) {
    llvm::StringSet<> uses;
    collectUses(*next, uses);
    bool isDependent = llvm::any_of(uses, [&](const auto &use) { return dependent.contains(use.getKey()); });
    (isDependent ? rest : before).push_back(next);
    if (isDependent)
      dependent.insert_range(next->output());
  }
  dependent.erase(""); // outputs that are left out
  std::vector<std::string> results;
  llvm::copy_if(frame.results, std::back_inserter(results),
                [&](const std::string &name) { return dependent.contains(name); });
  bool isComplete = importNodes(before, frame);
  Frame inner = frame;
  inner.results = results;
  Nodes behind = rest;
  return isComplete & (importNode(node, inner, &behind) == Outcome::Complete);
}

/// The nodes behind an If, with these values for its outputs; the values that `results` names.
std::optional<Values> GraphImporter::importRest(const NodeProto &node, ArrayRef<Value> outputs, Nodes rest,
                                                ArrayRef<std::string> results, const Frame &frame) {
  NameScope scope(&frame.scope);
  for (auto [name, value] : llvm::zip(node.output(), outputs))
    scope.set(name, value);
  bool isComplete =
      importNodes(rest, Frame{scope, frame.opsets, frame.path, frame.depth + 1, results, frame.forks + 1});
  Values values;
  for (const std::string &name : results) {
    NameScope::Entry *slot = scope.find(name);
    values.push_back(slot ? valueOf(*slot) : Value());
  }
  bool areThere = llvm::all_of(values, [](Value v) { return bool(v); });
  return isComplete && areThere && haveNoMap(values) ? std::optional(values) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void GraphImporter::fail(const NodeProto &node, const Frame &frame) {
  for (const std::string &output : node.output())
    frame.scope.set(output, {});
}

/// Whether the initializer has an integer for each of the node's outputs: their sizes, which their types show, however
/// many there are.
static bool tellsSizes(const onnx::TensorProto &initializer, const NodeProto &node) {
  return initializer.data_type() == onnx::TensorProto::INT64 && initializer.dims_size() == 1 &&
         initializer.dims(0) == node.output_size();
}

GraphImporter::Outcome GraphImporter::importNode(const NodeProto &node, const Frame &frame, const Nodes *rest) {
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  Location loc = nodeLocation(builder.getContext(), node, frame.path);
  SmallVector<Value> inputs;
  for (const std::string &name : node.input()) {
    NameScope::Entry *slot = name.empty() ? nullptr : frame.scope.find(name);
    bool isAbsent = name.empty() || (slot && slot->state == NameScope::State::Absent);
    bool isInline = slot && slot->initializer && tellsSizes(*slot->initializer, node);
    Value value = slot ? valueOf(*slot, isInline) : Value();
    if (!value && !isAbsent) {
      fail(node, frame); // its producer has been reported
      return Outcome::Failed;
    }
    inputs.push_back(value);
  }
  Outcome outcome;
  bool isCall = false;
  auto outcomeOf = [](bool isComplete) { return isComplete ? Outcome::Complete : Outcome::Failed; };
  if (const CustomOp *custom = customOps.use(node))
    outcome = decompose(node, frame, inputs, loc, nullptr, nullptr, custom);
  else if (const onnx::FunctionProto *function = functions.find(node))
    outcome = outcomeOf(expand(node, frame, inputs, loc, *function)), isCall = true;
  else if (const decomp::OnnxOp *op =
               decomp::findOnnxOp(node.domain(), node.op_type(), frame.opsets.operatorVersion(node)))
    outcome = decompose(node, frame, inputs, loc, op->decompose, rest);
  else
    outcome = outcomeOf(expandSchema(node, frame, inputs, loc));
  if (outcome == Outcome::Failed)
    fail(node, frame);
  else if (outcome == Outcome::Complete && !taps.empty() && schemaDepth == 0)
    tapOutputs(node, frame, loc, isCall);
  if (outcome == Outcome::Complete && !keeps.empty() && schemaDepth == 0 && !keepTypes(node, loc, before))
    return Outcome::Failed;
  return outcome;
}

/// Marks the products among the node's ops, which are those behind `before`, as far as --autocast-keep asks for them;
/// false after a diagnostic if it names a node without any.
bool GraphImporter::keepTypes(const NodeProto &node, Location loc, Operation *before) {
  std::optional<NodeLocation> place = describeLocation(loc);
  NodeSelection::Kind kind = NodeSelection::Kind::None;
  for (const std::string &output : node.output())
    if (!output.empty())
      kind = std::max(kind, keeps.find(place ? place->node : "", output));
  if (kind == NodeSelection::Kind::None)
    return true;
  Block *block = builder.getInsertionBlock();
  bool hasProduct = false;
  for (Operation &op : llvm::make_range(before ? std::next(before->getIterator()) : block->begin(), block->end()))
    op.walk([&](Operation *product) {
      if (isa<prim::MatmulOp, prim::ConvolutionOp>(product)) {
        product->setAttr(prim::keepsTypeAttr, builder.getUnitAttr());
        hasProduct = true;
      }
    });
  if (hasProduct || kind == NodeSelection::Kind::Pattern)
    return true;
  diagnose(loc, DiagId::BadShapeOption, "--autocast-keep", "the node has no product that --autocast would round");
  return false;
}

/// Taps of the node's outputs, as far as --tap asks for them. Those of a call have been met by a pattern inside.
void GraphImporter::tapOutputs(const NodeProto &node, const Frame &frame, Location loc, bool isCall) {
  std::optional<NodeLocation> place = describeLocation(loc);
  for (const std::string &output : node.output()) {
    NameScope::Entry *slot = output.empty() ? nullptr : frame.scope.find(output);
    if (!slot || !slot->value || decomp::isMap(slot->value.getType()))
      continue;
    NodeSelection::Kind kind = taps.find(place ? place->node : "", output);
    bool isPattern = kind == NodeSelection::Kind::Pattern;
    if (kind == NodeSelection::Kind::None || (isPattern && isCall))
      continue;
    prim::TapOp::create(builder, loc, slot->value, builder.getStringAttr(output), builder.getI64IntegerAttr(tapCount++),
                        isPattern ? builder.getUnitAttr() : UnitAttr(), StringAttr());
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
      if (op->getNumRegions() == 0) // the nodes inside of regions have been asked themselves
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

GraphImporter::Outcome GraphImporter::decompose(const NodeProto &node, const Frame &frame, ArrayRef<Value> inputs,
                                                Location loc, decomp::Decomposition function, const Nodes *rest,
                                                const CustomOp *custom) {
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
  if (rest)
    hooks.rest = [&](ArrayRef<Value> outputs) { return importRest(node, outputs, *rest, frame.results, frame); };
  hooks.graphOutput = [&](size_t i) -> std::optional<std::pair<std::string, int64_t>> {
    size_t count = rest ? frame.results.size() : size_t(node.output_size());
    std::string name = i < count ? rest ? frame.results[i] : node.output(int(i)) : "";
    for (const onnx::ValueInfoProto &output : file.proto().graph().output())
      if (frame.path.empty() && !name.empty() && output.name() == name) {
        const onnx::TypeProto &type = output.type();
        return std::pair(name, type.has_tensor_type() && type.tensor_type().has_shape()
                                   ? int64_t(type.tensor_type().shape().dim_size())
                                   : int64_t(-1));
      }
    return std::nullopt;
  };
  hooks.canFork = !rest && frame.forks < MAX_FORKS && frame.depth < options.maxDepth;
  decomp::NodeContext context(builder, loc, shapes, node, frame.opsets.operatorVersion(node), inputs, hooks);
  const onnx::OpSchema *schema = custom ? nullptr : frame.opsets.schema(node);
  int needed = schema ? schema->min_input() : 0;
  for (int i = 0; i < needed; ++i) {
    bool isOptional =
        schema && i < int(schema->inputs().size()) && schema->inputs()[i].GetOption() == onnx::OpSchema::Optional;
    if (!isOptional && !context.input(i))
      return Outcome::Failed;
  }
  if (schema && !checkTypes(context, *schema, inputs))
    return Outcome::Failed;
  if (!schema && llvm::any_of(inputs, [](Value v) { return v && decomp::isMap(v.getType()); })) {
    context.fail(DiagId::UnsupportedForm, "a map as an input of " + node.op_type());
    return Outcome::Failed;
  }
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  Values outputs = custom ? importCustomNode(context, node, *custom, file) : function(context);
  if (context.isFork())
    return Outcome::Forks;
  if (context.hasFailed() || (custom && outputs.empty()))
    return Outcome::Failed;
  // Of strings, what only moves elements is sound; a schema may allow more.
  bool hasHandles = llvm::any_of(
      inputs, [](Value v) { return v && !decomp::isMap(v.getType()) && prim::isHandle(prim::getElementType(v)); });
  if (!custom && (!schema || hasHandles) &&
      !fitTypes(context, node, inputs,
                before           ? before->getNextNode()
                : block->empty() ? nullptr
                                 : &block->front()))
    return Outcome::Failed;
  if (context.hasTakenRest()) {
    for (auto [name, value] : llvm::zip_equal(frame.results, outputs))
      frame.scope.set(name, value);
    return Outcome::Complete;
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    if (i >= int(outputs.size()) || !outputs[i]) {
      context.fail(DiagId::UnsupportedForm, "output " + std::to_string(i) + " of " + node.op_type());
      return Outcome::Failed;
    }
    frame.scope.set(node.output(i), outputs[i]);
  }
  return Outcome::Complete;
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
  std::vector<std::string> results(function.output().begin(), function.output().end());
  if (!importNodes(pointersTo(body), Frame{scope, bodyOpsets, path, frame.depth + 1, results, frame.forks}))
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

/// Bodies are written for inputs of one float type. Where an operator has several that its outputs have too, and a node
/// uses them, the body computes in the widest.
static SmallVector<Value> unifyFloats(decomp::PrimBuilder &n, const onnx::OpSchema &schema, ArrayRef<Value> inputs) {
  SmallVector<Value> unified(inputs);
  SmallVector<size_t> floats;
  Type widest;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    const std::string &type = schema.inputs()[std::min(i, schema.inputs().size() - 1)].GetTypeStr();
    bool isOfOutputs = llvm::any_of(schema.outputs(), [&](const auto &o) { return o.GetTypeStr() == type; });
    if (!input || !isOfOutputs || !isa<FloatType>(prim::getElementType(input)))
      continue;
    Type element = prim::getElementType(input);
    if (widest && widest != element && element.getIntOrFloatBitWidth() == widest.getIntOrFloatBitWidth())
      widest = n.f32(); // f16 and bf16
    else if (!widest || element.getIntOrFloatBitWidth() > widest.getIntOrFloatBitWidth())
      widest = element;
    floats.push_back(i);
  }
  for (size_t i : floats)
    unified[i] = n.convert(unified[i], widest);
  return unified;
}

/// Outputs as the schema has them: of the type of the inputs that share their constraint.
void GraphImporter::restoreFloats(const NodeProto &node, const Frame &frame, const onnx::OpSchema &schema,
                                  ArrayRef<Value> inputs, decomp::PrimBuilder &n) {
  for (auto [i, output] : llvm::enumerate(node.output())) {
    const std::string &type = schema.outputs()[std::min(i, schema.outputs().size() - 1)].GetTypeStr();
    NameScope::Entry *slot = output.empty() ? nullptr : frame.scope.find(output);
    for (auto [k, input] : llvm::enumerate(inputs))
      if (slot && slot->value && input &&
          schema.inputs()[std::min(k, schema.inputs().size() - 1)].GetTypeStr() == type) {
        frame.scope.set(output, n.convertLike(slot->value, input));
        break;
      }
  }
}

bool GraphImporter::expandSchema(const NodeProto &node, const Frame &frame, ArrayRef<Value> inputs, Location loc) {
  const onnx::OpSchema *schema = frame.opsets.schema(node);
  if (llvm::any_of(inputs, [](Value v) { return v && decomp::isMap(v.getType()); })) {
    diagnose(loc, DiagId::UnsupportedForm, "a map as an input of " + node.op_type());
    return false;
  }
  if (schema && !schema->inputs().empty()) {
    decomp::PrimBuilder n(builder, loc, shapes);
    SmallVector<Value> unified = unifyFloats(n, *schema, inputs);
    if (ArrayRef<Value>(unified) != inputs) {
      if (!expandSchemaBody(node, frame, unified, loc))
        return false;
      restoreFloats(node, frame, *schema, inputs, n);
      return true;
    }
  }
  return expandSchemaBody(node, frame, inputs, loc);
}

bool GraphImporter::expandSchemaBody(const NodeProto &node, const Frame &frame, ArrayRef<Value> inputs, Location loc) {
  std::string error;
  if (std::optional<onnx::FunctionProto> body = schemaBody(node, frame.opsets, inputs, error)) {
    ++schemaDepth;
    bool isComplete = expand(node, frame, inputs, loc, *body);
    --schemaDepth;
    return isComplete;
  }
  if (!error.empty())
    diagnose(loc, DiagId::OnnxFailure, error);
  else if (canImport(node, frame.opsets) || !options.findsAll) // else it has been reported
    diagnose(loc, DiagId::UnsupportedOperator, node.op_type(), frame.opsets.operatorVersion(node), 1,
             "'" + node.name() + "'");
  return false;
}
