//===- ImportPrimModel.cpp - an ONNX model of primitives as a prim module -===//
//
// The other direction of WritePrimModel.cpp, and as generic: a node's operator names the op, its record says the rest.
// ONNX has fewer kinds of attributes than MLIR. So a value is tried in all of the forms that its kind may stand for,
// and the record's own constraint, which verifyInherentAttrs applies to one attribute at a time, decides.
//
// Files are not to be trusted. Before an op's type rule runs, findMisfit checks what rules take for granted; the rules
// then run as the verifier, and at the end so does the check that every symbol is bound before it is used.
//
//===----------------------------------------------------------------------===//
#include "ir/Diagnostics.h"
#include "ir/prim/ByteRows.h"
#include "ir/prim/Elements.h"
#include "ir/prim/GuardNodes.h"
#include "ir/prim/WeightAttrs.h"
#include "lowering/decomp/ElementTypes.h"
#include "lowering/decomp/ShapeScope.h"
#include "lowering/onnx/CheckGraph.h"
#include "lowering/onnx/ModelFile.h"
#include "lowering/onnx/PrimModel.h"
#include "lowering/onnx/Tensors.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::onnx_import;
using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;

bool ptc::onnx_import::isPrimModel(const ModelFile &file) {
  return llvm::any_of(file.proto().opset_import(), [](const auto &import) { return import.domain() == primDomain; });
}

namespace {

class PrimModelImporter {
public:
  PrimModelImporter(MLIRContext &context, const ModelFile &file, StringRef entryName)
      : context(context), loc(UnknownLoc::get(&context)), file(file), entryName(entryName), builder(&context) {}

  OwningOpRef<ModuleOp> run() {
    const GraphProto &graph = file.proto().graph();
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    builder.setInsertionPointToStart(module->getBody());
    entry = func::FuncOp::create(builder, loc, entryName, builder.getFunctionType({}, {}));
    Block *block = entry.addEntryBlock();
    builder.setInsertionPointToStart(block);
    Names names;
    llvm::StringSet<> weights;
    for (const onnx::TensorProto &tensor : graph.initializer())
      weights.insert(tensor.name());
    for (const onnx::ValueInfoProto &input : graph.input()) {
      Type type = weights.contains(input.name()) ? Type() : typeOf(input);
      if (!type)
        return nullptr;
      entry.setArgAttrs(block->getNumArguments(), ArrayRef<NamedAttribute>());
      names[input.name()] = block->addArgument(type, loc);
      argumentNames.push_back(builder.getStringAttr(input.name()));
    }
    for (const onnx::TensorProto &tensor : graph.initializer()) {
      Location where = makeNodeLocation(&context, tensor.name(), "Initializer", tensor.name());
      names[tensor.name()] = importTensor(builder, where, file, tensor, tensor.name());
      if (!names[tensor.name()])
        return nullptr;
    }
    if (!importNodes(graph, names, /*isEntry=*/true) || !finish(*block))
      return nullptr;
    return module;
  }

private:
  using Names = llvm::StringMap<Value>;

  template <typename... Parts> bool fail(Location where, const Parts &...parts) {
    std::string sentence;
    llvm::raw_string_ostream os(sentence);
    (os << ... << parts);
    diagnose(where, DiagId::BadPrim, sentence);
    return false;
  }

  //===--- Types ---===//
  Type typeOf(const onnx::ValueInfoProto &info) {
    std::string problem;
    Type type = typeOf(info.type(), problem);
    if (!type)
      fail(loc, "the type of '", info.name(), "' is ", problem);
    return type;
  }

  Type typeOf(const onnx::TypeProto &proto, std::string &problem) {
    if (proto.value_case() != onnx::TypeProto::kTensorType) {
      Type type = decomp::fromTypeProto(&context, proto, problem);
      return type;
    }
    Type element = decomp::fromOnnxType(&context, proto.tensor_type().elem_type());
    problem = "that of a tensor of " + decomp::onnxTypeName(proto.tensor_type().elem_type());
    if (!element)
      return {};
    SmallVector<Expr> dims;
    for (const auto &dim : proto.tensor_type().shape().dim()) {
      Expr expr =
          dim.has_dim_value() ? Expr::constant(&context, dim.dim_value()) : Expr::parse(&context, dim.dim_param());
      problem = "one with the dim '" + dim.dim_param() + "', which is no expression";
      if (!expr)
        return {};
      expr.walkSymbols([&](StringRef symbol) { used.insert(symbol); });
      dims.push_back(expr);
    }
    problem = "one that no address space holds";
    bool isSound = llvm::none_of(dims, [](Expr dim) { return dim.isConstant() && dim.getValue() < 0; });
    return isSound && decomp::ShapeScope::isHoldable(dims, element) ? prim::getTensorType(dims, element) : Type();
  }

  //===--- Nodes ---===//
  bool importNodes(const GraphProto &graph, Names &names, bool isEntry) {
    llvm::StringMap<const onnx::ValueInfoProto *> types;
    for (const onnx::ValueInfoProto &info : graph.value_info())
      types[info.name()] = &info;
    for (auto [i, node] : llvm::enumerate(graph.node())) {
      Location where = locationOf(node);
      bool isEnd = node.op_type() == "yield";
      if (node.domain() != primDomain)
        return fail(where, "its domain is not ", primDomain);
      if (isEnd != (int(i) + 1 == graph.node_size()))
        return fail(where, "a graph has one `yield`, its last node");
      SmallVector<Value> operands;
      for (const std::string &name : node.input()) {
        Value value = names.lookup(name);
        if (!value)
          return fail(where, "'", name, "' is not known there");
        operands.push_back(value);
      }
      if (isEnd && isEntry) {
        func::ReturnOp::create(builder, loc, operands);
        return checkEnd(node, graph, operands, where);
      }
      if (!importNode(node, names, types, operands, where))
        return false;
    }
    return graph.node_size() || fail(loc, "a graph has one `yield`, its last node");
  }

  bool checkEnd(const NodeProto &node, const GraphProto &graph, ValueRange operands, Location where) {
    if (graph.output_size() != int(operands.size()))
      return fail(where, "the graph has ", graph.output_size(), " outputs");
    for (int i = 0; i < graph.output_size(); ++i)
      if (graph.output(i).name() != node.output(i))
        return fail(where, "its outputs are not those of the graph");
    return true;
  }

  Location locationOf(const NodeProto &node) {
    StringRef op = node.op_type(), output = node.output_size() ? StringRef(node.output(0)) : StringRef();
    for (const auto &entry : node.metadata_props()) {
      if (entry.key() == "op")
        op = entry.value();
      if (entry.key() == "output")
        output = entry.value();
    }
    return makeNodeLocation(&context, node.name(), op, output);
  }

  bool importNode(const NodeProto &node, Names &names, const llvm::StringMap<const onnx::ValueInfoProto *> &types,
                  ArrayRef<Value> operands, Location where) {
    std::optional<RegisteredOperationName> record =
        RegisteredOperationName::lookup(("prim." + StringRef(node.op_type())).str(), &context);
    if (!record || node.op_type() == "weight")
      return fail(where, "there is no primitive '", node.op_type(), "'");
    OperationState state(where, *record);
    state.addOperands(operands);
    SmallVector<StringRef> results;
    for (const std::string &output : node.output()) {
      const onnx::ValueInfoProto *info = types.lookup(output);
      if (!info)
        continue; // not a value
      Type type = typeOf(*info);
      if (!type)
        return false;
      state.addTypes(type);
      results.push_back(output);
    }
    unsigned regions = 0;
    for (const AttributeProto &attribute : node.attribute()) {
      if (attribute.type() == AttributeProto::GRAPH) {
        if (attribute.name() != "region" + std::to_string(regions++))
          return fail(where, "its graphs are region0, region1, ... in order");
        continue;
      }
      if (!addAttribute(state, *record, attribute, where))
        return false;
    }
    for (unsigned i = 0; i < regions; ++i)
      state.addRegion();
    Operation *op = builder.create(state);
    if (!importRegions(op, node, names) || !isSound(op, where))
      return false;
    for (auto [name, value] : llvm::zip_equal(results, op->getResults()))
      names[name] = value;
    return true;
  }

  bool importRegions(Operation *op, const NodeProto &node, const Names &names) {
    unsigned index = 0;
    for (const AttributeProto &attribute : node.attribute()) {
      if (attribute.type() != AttributeProto::GRAPH)
        continue;
      OpBuilder::InsertionGuard guard(builder);
      Block *block = builder.createBlock(&op->getRegion(index++));
      Names inner = names;
      for (const onnx::ValueInfoProto &input : attribute.g().input()) {
        Type type = typeOf(input);
        if (!type)
          return false;
        inner[input.name()] = block->addArgument(type, loc);
      }
      if (!importNodes(attribute.g(), inner, /*isEntry=*/false))
        return false;
    }
    return true;
  }

  bool isSound(Operation *op, Location where) {
    if (std::optional<std::string> misfit = findMisfit(op))
      return fail(where, *misfit);
    std::string sentence;
    bool verified;
    {
      ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
        sentence = sentence.empty() ? diagnostic.str() : sentence;
        return success();
      });
      verified = succeeded(mlir::verify(op));
    }
    return verified || fail(where, sentence);
  }

  //===--- Attributes ---===//
  Attribute enumOf(StringRef word, unsigned which) {
    switch (which) {
    case 0:
      if (auto kind = prim::symbolizeReduceKind(word))
        return prim::ReduceKindAttr::get(&context, *kind);
      break;
    case 1:
      if (auto kind = prim::symbolizeArgKind(word))
        return prim::ArgKindAttr::get(&context, *kind);
      break;
    case 2:
      if (auto kind = prim::symbolizePadKind(word))
        return prim::PadKindAttr::get(&context, *kind);
      break;
    case 3:
      if (auto kind = prim::symbolizeScatterKind(word))
        return prim::ScatterKindAttr::get(&context, *kind);
      break;
    }
    return {};
  }

  Attribute parse(StringRef text) {
    ScopedDiagnosticHandler silence(&context, [](Diagnostic &) { return success(); });
    return parseAttribute(text, &context, Type(), /*numRead=*/nullptr, /*isKnownNullTerminated=*/false);
  }

  Attribute exprOf(StringRef text) {
    Expr expr = Expr::parse(&context, text);
    return expr ? Attribute(ExprAttr(expr)) : Attribute();
  }

  template <typename Of> Attribute listOf(const AttributeProto &attribute, Of of) {
    SmallVector<Attribute> list;
    for (const std::string &text : attribute.strings()) {
      list.push_back(of(text));
      if (!list.back())
        return {};
    }
    return builder.getArrayAttr(list);
  }

  /// What the value may stand for.
  SmallVector<Attribute> formsOf(const AttributeProto &attribute, Location where) {
    SmallVector<Attribute> forms;
    switch (attribute.type()) {
    case AttributeProto::INT:
      forms = {builder.getI64IntegerAttr(attribute.i()), builder.getBoolAttr(attribute.i() != 0)};
      if (attribute.i() == 1)
        forms.push_back(builder.getUnitAttr());
      break;
    case AttributeProto::INTS:
      forms.push_back(
          builder.getDenseI64ArrayAttr(SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end())));
      forms.push_back(
          builder.getDenseI32ArrayAttr(SmallVector<int32_t>(attribute.ints().begin(), attribute.ints().end())));
      break;
    case AttributeProto::STRING:
      forms = {builder.getStringAttr(attribute.s()), exprOf(attribute.s()), parse(attribute.s())};
      for (unsigned which = 0; which < 4; ++which)
        forms.push_back(enumOf(attribute.s(), which));
      break;
    case AttributeProto::STRINGS:
      forms.push_back(listOf(attribute, [&](StringRef text) { return exprOf(text); }));
      forms.push_back(listOf(attribute, [&](StringRef text) { return parse(text); }));
      break;
    case AttributeProto::TENSOR:
      if (Value value = importTensor(builder, where, file, attribute.t(), attribute.name(), /*isInline=*/true)) {
        auto constant = value.getDefiningOp<prim::ConstantOp>();
        auto elements = cast<DenseElementsAttr>(constant.getValue());
        forms.push_back(elements);
        if (elements.getType().getRank() == 0 && isa<FloatType>(elements.getElementType()))
          forms.push_back(*elements.value_begin<FloatAttr>());
        constant.erase();
      }
      break;
    default:
      break;
    }
    llvm::erase_if(forms, [](Attribute form) { return !form; });
    return forms;
  }

  bool addAttribute(OperationState &state, RegisteredOperationName record, const AttributeProto &attribute,
                    Location where) {
    StringRef name = attribute.name();
    StringRef op = record.getStringRef();
    bool isMatmul = op == prim::MatmulOp::getOperationName();
    bool isProduct = isMatmul || op == prim::ConvolutionOp::getOperationName();
    if ((name == prim::roundedAttr && op == prim::MulOp::getOperationName()) ||
        (name == prim::unroundedAttr && op == prim::ConvertOp::getOperationName()) ||
        (name == prim::keepsTypeAttr && isProduct) || (name == prim::byteRowsAttr && isMatmul)) {
      state.addAttribute(name, builder.getUnitAttr());
      return true;
    }
    bool isKnown = llvm::any_of(record.getAttributeNames(), [&](StringAttr known) { return known == name; });
    if (!isKnown || state.attributes.get(name))
      return fail(where, "it has no attribute '", name, "', or has it twice");
    bool isSegments = name.ends_with("SegmentSizes"); // MLIR's own, which records do not constrain
    for (Attribute form : formsOf(attribute, where)) {
      if (isSegments != isa<DenseI32ArrayAttr>(form))
        continue;
      NamedAttrList alone;
      alone.set(name, form);
      ScopedDiagnosticHandler silence(&context, [](Diagnostic &) { return success(); });
      if (failed(record.verifyInherentAttrs(alone, [&] { return mlir::emitError(where); })))
        continue;
      state.addAttribute(name, form);
      return true;
    }
    return fail(where, "the attribute '", name, "' has a value that it cannot have");
  }

  //===--- The whole ---===//
  static bool readNumbers(StringRef text, MutableArrayRef<int64_t> numbers) {
    SmallVector<StringRef> words;
    text.split(words, ' ', -1, /*KeepEmpty=*/false);
    if (words.size() != numbers.size())
      return false;
    for (auto [word, number] : llvm::zip_equal(words, numbers))
      if (word.getAsInteger(10, number))
        return false;
    return true;
  }

  bool readMetadata() {
    NamedAttrList symbols, guardNodes;
    SmallVector<Attribute> guards, folded;
    llvm::StringMap<std::string> guardOf; // its number -> its text
    for (const auto &property : file.proto().metadata_props()) {
      StringRef key = property.key(), value = property.value();
      if (key.consume_front(symbolKey)) {
        int64_t bounds[4];
        bool isSound = !key.empty() && readNumbers(value, bounds) && bounds[0] <= bounds[1] && bounds[2] > 0;
        if (!isSound || symbols.get(key))
          return fail(loc, "the symbol '", key, "' has no bounds of the form MIN MAX DIVISOR HINT");
        symbols.set(key, prim::SymbolAttr::get(&context, bounds[0], bounds[1], bounds[2], bounds[3]));
      } else if (key.consume_front(guardKey)) {
        guards.push_back(exprOf(value));
        if (!guards.back())
          return fail(loc, "the guard '", value, "' is no expression");
        Expr guard(cast<ExprAttr>(guards.back()));
        guard.walkSymbols([&](StringRef symbol) { used.insert(symbol); });
        guardOf[key] = guard.str();
      } else if (key.consume_front(guardNodeKey)) {
        auto guard = guardOf.find(key);
        if (guard == guardOf.end())
          return fail(loc, "no guard of the number '", key, "' stands before its node '", value, "'");
        guardNodes.set(guard->second, builder.getStringAttr(value));
      } else if (key.consume_front(foldedKey)) {
        folded.push_back(builder.getStringAttr(value));
      } else if (key.consume_front(aliasKey)) {
        unsigned input = 0, output = 0;
        if (key.getAsInteger(10, input) || value.getAsInteger(10, output) || input >= entry.getNumArguments() ||
            output >= entry.getNumResults() || entry.getArgumentTypes()[input] != entry.getResultTypes()[output])
          return fail(loc, "'", key, "' and '", value, "' are no pair of an input and an output of one type");
        entry.setArgAttr(input, prim::aliasAttr, builder.getI64IntegerAttr(output));
      }
    }
    entry->setAttr(prim::symbolsAttr, symbols.getDictionary(&context));
    entry->setAttr(prim::guardsAttr, builder.getArrayAttr(guards));
    if (!guardNodes.empty())
      entry->setAttr(prim::guardNodesAttr, guardNodes.getDictionary(&context));
    if (!folded.empty())
      entry->setAttr(prim::foldedWeightsAttr, builder.getArrayAttr(folded));
    return true;
  }

  bool finish(Block &block) {
    Operation *end = block.getTerminator();
    entry.setType(builder.getFunctionType(block.getArgumentTypes(), end->getOperandTypes()));
    for (auto [i, name] : llvm::enumerate(argumentNames))
      entry.setArgAttr(i, prim::nameAttr, name);
    for (auto [i, output] : llvm::enumerate(file.proto().graph().output()))
      entry.setResultAttr(i, prim::nameAttr, builder.getStringAttr(output.name()));
    return readMetadata() && checkSymbols();
  }

  bool isName(StringRef symbol) {
    Expr expr = Expr::parse(&context, symbol);
    return expr && expr.isSymbol(symbol);
  }

  /// Every symbol that occurs is a dim of an input that the file describes, or bound by an op, and that before it is
  /// used.
  bool checkSymbols() {
    llvm::StringSet<> known;
    auto described = entry->getAttrOfType<DictionaryAttr>(prim::symbolsAttr);
    for (Type type : entry.getArgumentTypes())
      if (isa<RankedTensorType>(type))
        for (Expr dim : prim::getDims(type))
          if (dim.isSymbol() && described.contains(dim.getSymbol()))
            known.insert(dim.getSymbol());
    std::string wrong;
    entry.walk([&](Operation *op) {
      if (auto binder = dyn_cast<prim::SymbolBinderOpInterface>(op))
        binder.forEachBinding([&](StringRef symbol, Expr, bool) {
          known.insert(symbol);
          wrong = isName(symbol) ? wrong : symbol.str();
        });
      prim::walkSymbols(op, [&](StringRef symbol) { used.insert(symbol); });
    });
    if (!wrong.empty())
      return fail(loc, "what binds '", wrong, "' does not bind the name of a symbol");
    for (const auto &symbol : used)
      if (!known.contains(symbol.getKey()))
        return fail(loc, "nothing says what the symbol '", symbol.getKey(), "' is");
    std::string sentence;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      sentence = diagnostic.str();
      return success();
    });
    return succeeded(prim::verifyBoundSymbols(entry)) || fail(loc, sentence);
  }

  MLIRContext &context;
  Location loc;
  const ModelFile &file;
  StringRef entryName;
  OpBuilder builder;
  func::FuncOp entry;
  SmallVector<StringAttr> argumentNames;
  llvm::StringSet<> used; // symbols
};

} // namespace

OwningOpRef<ModuleOp> ptc::onnx_import::importPrimModel(MLIRContext &context, const ModelFile &file,
                                                        StringRef entryName) {
  for (const onnx::OperatorSetIdProto &import : file.proto().opset_import())
    if (import.domain() == primDomain && import.version() > primVersion) {
      diagnose(UnknownLoc::get(&context), DiagId::OpsetTooNew, import.version(), primDomain, primVersion);
      return nullptr;
    }
  return PrimModelImporter(context, file, entryName).run();
}
