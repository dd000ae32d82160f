//===- ImportOnnx.cpp - ONNX models become prim modules -------------------===//
#include "lowering/onnx/ImportOnnx.h"
#include "ir/prim/Elements.h"
#include "ir/prim/GuardNodes.h"
#include "ir/prim/Prim.h"
#include "ir/prim/Variants.h"
#include "lowering/decomp/ElementTypes.h"
#include "lowering/onnx/CheckGraph.h"
#include "lowering/onnx/GraphImporter.h"
#include "lowering/onnx/InputShapes.h"
#include "lowering/onnx/PrimModel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::onnx_import;
using onnx::ValueInfoProto;

namespace {

/// The graph's inputs that are not initializers: what a caller passes.
SmallVector<const ValueInfoProto *> callerInputs(const onnx::GraphProto &graph) {
  llvm::StringSet<> initializers;
  for (const onnx::TensorProto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  SmallVector<const ValueInfoProto *> inputs;
  for (const ValueInfoProto &input : graph.input())
    if (!initializers.contains(input.name()))
      inputs.push_back(&input);
  return inputs;
}

/// A map of tensors of one element each.
bool isPlainMap(const onnx::TypeProto &type) {
  return type.value_case() == onnx::TypeProto::kMapType &&
         type.map_type().value_type().value_case() == onnx::TypeProto::kTensorType;
}

/// The two vectors that stand for a map.
SmallVector<ValueInfoProto, 2> partsOf(const std::string &name, int32_t keyType, int32_t valueType) {
  SmallVector<ValueInfoProto, 2> parts(2);
  for (auto [part, suffix, type] :
       llvm::zip_equal(parts, std::array{prim::mapKeysSuffix, prim::mapValuesSuffix}, std::array{keyType, valueType})) {
    part.set_name(name + suffix.str());
    part.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  }
  return parts;
}

StringRef kindOf(const onnx::TypeProto &type) {
  switch (type.value_case()) {
  case onnx::TypeProto::kSequenceType:
    return "sequence";
  case onnx::TypeProto::kMapType:
    return "map";
  case onnx::TypeProto::kOptionalType:
    return "optional";
  case onnx::TypeProto::kSparseTensorType:
    return "sparse tensor";
  default:
    return "value without a type";
  }
}

class ModelImporter {
public:
  using Sizes = std::pair<Expr, Expr>;

  ModelImporter(MLIRContext &context, const ModelFile &file, const ImportOptions &options,
                decomp::Meeting meeting = decomp::Meeting::Equal)
      : context(context), loc(UnknownLoc::get(&context)), file(file), graph(file.proto().graph()), options(options),
        shapes(&context, meeting), builder(&context) {
    for (const ValueInfoProto *input : callerInputs(graph))
      if (isPlainMap(input->type()))
        addMapInput(*input);
      else
        inputs.push_back(input);
  }

  OwningOpRef<ModuleOp> run() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    builder.setInsertionPointToStart(module->getBody());
    entry = func::FuncOp::create(builder, loc, options.entryName, builder.getFunctionType({}, {}));
    Block *block = entry.addEntryBlock();
    builder.setInsertionPointToStart(block);
    NameScope scope;
    if (!addInputs(*block, scope))
      return nullptr;
    GraphImporter importer(builder, shapes, file, options);
    bool isComplete = importer.importGraph(graph, scope);
    isComplete = isComplete && importer.taps.reportUnmatched(loc) && importer.keeps.reportUnmatched(loc) &&
                 importer.customOps.reportUnused(loc);
    std::optional<decomp::Values> outputs = importer.outputsOf(graph, scope);
    if (!isComplete || !outputs)
      return nullptr;
    Values results = splitOutputs(*outputs);
    if (!checkNames())
      return nullptr;
    func::ReturnOp::create(builder, loc, results);
    entry.setType(builder.getFunctionType(block->getArgumentTypes(), ValueRange(results).getTypes()));
    if (!checkOutputs(results) || !addAttributes())
      return nullptr;
    prim::eraseDeadOps(entry); // shape computations that folded away leave their operands behind
    return module;
  }

  /// Makes `module`, which is this importer's, the variant for sizes that are equal where they meet in broadcasts, and
  /// the function of `general`, which has it beside its own from now on, the one that serves the others.
  void becomeVariantOf(ModuleOp general, ArrayRef<Sizes> meetings) {
    entry->setAttr(prim::variantOfAttr, FlatSymbolRefAttr::get(&context, options.entryName));
    NamedAttrList equal;
    for (auto [a, b] : meetings) {
      bool takesA = a.isSymbol() && !(b.isSymbol() && compare(a, b) < 0);
      Expr key = takesA ? a : b, value = takesA ? b : a;
      if (key.isConstant())
        std::swap(key, value);
      std::optional<int64_t> size = value.asConstant();
      equal.set(key.str(), size ? Attribute(builder.getI64IntegerAttr(*size)) : Attribute(ExprAttr(value)));
    }
    entry->setAttr(prim::pinsAttr, equal.getDictionary(&context));
    entry.setName(options.entryName + "_equal");
    auto other = cast<func::FuncOp>(general.lookupSymbol(options.entryName));
    entry->moveAfter(other);
  }
  bool hasMeetings() const { return !shapes.getMeetings().empty() || !shapes.getNeededMeetings().empty(); }
  /// The sizes that are equal here and need not be so for `general`.
  SmallVector<Sizes> getMeetings(const ModelImporter &general) const {
    SmallVector<Sizes> meetings(shapes.getMeetings());
    llvm::copy_if(shapes.getNeededMeetings(), std::back_inserter(meetings),
                  [&](const Sizes &pair) { return !general.shapes.isGuardedEqual(pair.first, pair.second); });
    return meetings;
  }
  /// Says why only equal sizes are served: `reports` is what the import for the others has said.
  void reportEqualOnly(ArrayRef<Diagnostic> reports) const {
    const auto *error = llvm::find_if(
        reports, [](const Diagnostic &report) { return report.getSeverity() == DiagnosticSeverity::Error; });
    if (error == reports.end() || shapes.getMeetings().empty())
      return;
    auto describe = [](const auto &pair) { return pair.first.str() + " and " + pair.second.str(); };
    std::string sizes = llvm::join(llvm::map_range(shapes.getMeetings(), describe), "; ");
    diagnose(error->getLocation(), DiagId::EqualSizesOnly, sizes, stripCode(error->str()).str());
  }

private:
  using Values = decomp::Values;

  /// An input for the keys and one for the values, of as many elements.
  void addMapInput(const ValueInfoProto &input) {
    const onnx::TypeProto::Map &map = input.type().map_type();
    maps.push_back(input.name());
    for (ValueInfoProto &part : partsOf(input.name(), map.key_type(), map.value_type().tensor_type().elem_type())) {
      part.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param(input.name() + "_entries");
      parts.push_back(std::make_unique<ValueInfoProto>(std::move(part)));
      inputs.push_back(parts.back().get());
    }
  }

  /// Of each map its keys and its values; `declared` becomes what the file says about each result.
  Values splitOutputs(ArrayRef<Value> outputs) {
    Values results;
    for (auto [output, value] : llvm::zip_equal(graph.output(), outputs)) {
      if (!decomp::isMap(value.getType())) {
        declared.push_back(&output);
        results.push_back(value);
        continue;
      }
      auto [keys, values] = decomp::splitMap(value);
      results.append({keys, values});
      maps.push_back(output.name());
      bool isList = output.type().value_case() == onnx::TypeProto::kSequenceType;
      const onnx::TypeProto &type = isList ? output.type().sequence_type().elem_type() : output.type();
      int32_t valueType = isPlainMap(type) ? type.map_type().value_type().tensor_type().elem_type() : 0;
      for (ValueInfoProto &part :
           partsOf(output.name(), isPlainMap(type) ? type.map_type().key_type() : 0, valueType)) {
        parts.push_back(std::make_unique<ValueInfoProto>(std::move(part)));
        declared.push_back(parts.back().get());
      }
    }
    return results;
  }

  /// The parts of maps have names of their own.
  bool checkNames() {
    for (ArrayRef<const ValueInfoProto *> values : {ArrayRef(inputs), ArrayRef(declared)}) {
      llvm::StringSet<> names;
      for (const ValueInfoProto *value : values)
        if (!names.insert(value->name()).second && !maps.empty()) {
          diagnose(loc, DiagId::UnsupportedForm, "a second value '" + value->name() + "' beside that part of a map");
          return false;
        }
    }
    return true;
  }

  bool addInputs(Block &block, NameScope &scope) {
    InputShapes inputShapes(shapes, loc, options.dynamic);
    bool isValid = inputShapes.readOptions(options, inputs);
    for (const ValueInfoProto *input : inputs) {
      onnx::TypeProto::ValueCase kind = input->type().value_case();
      if (kind == onnx::TypeProto::kSequenceType || kind == onnx::TypeProto::kOptionalType) {
        std::string problem;
        Type type = decomp::fromTypeProto(&context, input->type(), problem);
        if (!type)
          diagnose(loc, DiagId::NotATensor, input->name(), (kindOf(input->type()) + " of a " + problem).str());
        isValid &= bool(type);
        if (type)
          scope.set(input->name(), block.addArgument(type, loc));
        continue;
      }
      Type element = elementTypeOf(*input);
      std::optional<SmallVector<Expr>> dims = element ? inputShapes.dimsOf(*input) : std::nullopt;
      isValid &= dims.has_value();
      if (dims && !decomp::ShapeScope::isHoldable(*dims, element)) {
        std::string what = shapeText(*dims) + ", which no address space holds", pins = inputShapes.describePins(*input);
        if (pins.empty())
          diagnose(loc, DiagId::UnsupportedForm, "graph input '" + input->name() + "' of " + what + ",");
        else
          diagnose(loc, DiagId::BadShapeOption, pins, "input '" + input->name() + "' would be a tensor of " + what);
        isValid = false;
      }
      if (dims)
        scope.set(input->name(), block.addArgument(prim::getTensorType(*dims, element), loc));
    }
    for (const std::string &map : maps) {
      NameScope::Entry *keys = scope.find(map + prim::mapKeysSuffix.str());
      NameScope::Entry *values = scope.find(map + prim::mapValuesSuffix.str());
      if (keys && values)
        scope.set(map, decomp::joinMap(builder, loc, keys->value, values->value));
    }
    isValid = isValid && inputShapes.checkSizes();
    if (isValid)
      buckets = inputShapes.getBuckets();
    return isValid;
  }

  Type elementTypeOf(const ValueInfoProto &input) {
    if (input.type().value_case() != onnx::TypeProto::kTensorType) {
      diagnose(loc, DiagId::NotATensor, input.name(), kindOf(input.type()));
      return {};
    }
    int32_t dataType = input.type().tensor_type().elem_type();
    Type type = decomp::fromOnnxType(&context, dataType);
    if (!type)
      diagnose(loc, DiagId::UnsupportedType, "the graph input '" + input.name() + "'", decomp::onnxTypeName(dataType));
    return type;
  }

  /// What the file says about its outputs against what it computes: another element type is an error, as everywhere in
  /// ONNX; another shape a warning, for exporters write shapes of one example, and pins change them.
  bool checkOutputs(ValueRange outputs) {
    bool isValid = true;
    for (auto [output, value] : llvm::zip_equal(declared, outputs)) {
      const onnx::TypeProto::Tensor &type = output->type().tensor_type();
      Type element = prim::getElementType(value);
      if (type.elem_type() && decomp::fromOnnxType(&context, type.elem_type()) != element) {
        std::string computed = decomp::onnxTypeName(decomp::toOnnxType(element));
        InFlightDiagnostic diag =
            diagnose(loc, DiagId::OutputType, output->name(), decomp::onnxTypeName(type.elem_type()), computed);
        addHelp(diag, "declare the output as " + computed + ", or add a Cast before it");
        isValid = false;
      }
      SmallVector<Expr> dims = prim::getDims(value);
      bool isPacked = element.isIntOrFloat() && element.getIntOrFloatBitWidth() < 8 && !element.isInteger(1);
      if (isPacked && !shapes.mostOf(product(&context, dims))) { // it is packed from memory of a size known before
        diagnose(loc, DiagId::UnsupportedForm,
                 ("the graph output '" + output->name() + "' of packed elements, whose size nothing bounds,"));
        isValid = false;
      }
      if (type.has_shape() && options.dims.empty() && options.shapes.empty() && contradicts(type.shape(), dims)) {
        InFlightDiagnostic diag =
            diagnose(loc, DiagId::OutputShape, output->name(), shapeText(type.shape()), shapeText(dims));
        addHelp(diag, "the computed shape is used; declare it, or leave the declared dims open");
      }
    }
    return isValid;
  }

  static bool contradicts(const onnx::TensorShapeProto &declared, ArrayRef<Expr> dims) {
    if (declared.dim_size() != int(dims.size()))
      return true;
    return llvm::any_of(llvm::zip_equal(declared.dim(), dims), [](auto pair) {
      auto &[wanted, dim] = pair;
      std::optional<int64_t> known = dim.asConstant();
      return wanted.dim_value() > 0 && known && *known != wanted.dim_value();
    });
  }

  static std::string shapeText(const onnx::TensorShapeProto &shape) {
    return listText(shape.dim(), [](const onnx::TensorShapeProto::Dimension &dim) {
      bool isNamed = !dim.dim_param().empty();
      return dim.dim_value() > 0 ? std::to_string(dim.dim_value()) : isNamed ? dim.dim_param() : "?";
    });
  }
  static std::string shapeText(ArrayRef<Expr> dims) {
    return listText(dims, [](Expr dim) { return dim.str(); });
  }
  template <typename Range, typename Text> static std::string listText(const Range &dims, Text text) {
    return "[" + llvm::join(llvm::map_range(dims, text), ", ") + "]";
  }

  bool addAttributes() {
    entry->setAttr(prim::symbolsAttr, shapes.symbolsAttr());
    entry->setAttr(prim::guardsAttr, shapes.guardsAttr());
    if (DictionaryAttr nodes = shapes.guardNodesAttr(); !nodes.empty())
      entry->setAttr(prim::guardNodesAttr, nodes);
    if (buckets)
      entry->setAttr(prim::bucketsAttr, buckets);
    for (auto [i, input] : llvm::enumerate(inputs))
      entry.setArgAttr(i, prim::nameAttr, builder.getStringAttr(input->name()));
    for (auto [i, output] : llvm::enumerate(declared))
      entry.setResultAttr(i, prim::nameAttr, builder.getStringAttr(output->name()));
    if (!maps.empty())
      entry->setAttr(prim::mapsAttr, builder.getStrArrayAttr(llvm::map_to_vector(
                                         maps, [](const std::string &name) { return StringRef(name); })));
    bool isValid = true;
    for (const auto &[past, present] : options.aliases)
      isValid &= addAlias(past, present);
    return isValid;
  }

  bool addAlias(StringRef past, StringRef present) {
    std::string option = ("--alias " + past + "=" + present).str();
    auto *input = llvm::find_if(inputs, [&](const ValueInfoProto *i) { return past == i->name(); });
    auto *output = llvm::find_if(declared, [&](const ValueInfoProto *o) { return present == o->name(); });
    if (input == inputs.end() || output == declared.end()) {
      diagnose(loc, DiagId::BadShapeOption, option,
               input == inputs.end() ? "the model has no such input" : "the model has no such output");
      return false;
    }
    unsigned argument = input - inputs.begin(), result = output - declared.begin();
    if (entry.getArgument(argument).getType() != entry.getResultTypes()[result]) {
      diagnose(loc, DiagId::BadShapeOption, option, "the two have different types");
      return false;
    }
    if (prim::isHandle(prim::getElementType(entry.getArgument(argument)))) {
      diagnose(loc, DiagId::BadShapeOption, option, "strings and sequences cannot share a buffer");
      return false;
    }
    for (unsigned other = 0; other < entry.getNumArguments(); ++other) {
      auto taken = entry.getArgAttrOfType<IntegerAttr>(other, prim::aliasAttr);
      if (taken && (other == argument || taken.getInt() == int64_t(result))) {
        diagnose(loc, DiagId::BadShapeOption, option,
                 other == argument ? "the input is in another pair already" : "the output is in another pair already");
        return false;
      }
    }
    entry.setArgAttr(argument, prim::aliasAttr, builder.getI64IntegerAttr(result));
    return true;
  }

  MLIRContext &context;
  Location loc;
  const ModelFile &file;
  const onnx::GraphProto &graph;
  const ImportOptions &options;
  decomp::ShapeScope shapes;
  OpBuilder builder;
  func::FuncOp entry;
  DictionaryAttr buckets;
  SmallVector<const ValueInfoProto *> inputs, declared; // what a caller passes, and gets
  std::vector<std::unique_ptr<ValueInfoProto>> parts;   // of maps
  std::vector<std::string> maps;
};

/// A model of primitives is finished: what an import decides has been decided.
bool hasNoChanges(MLIRContext &context, const ImportOptions &options) {
  std::string flag = !options.dims.empty()                  ? "--dim " + options.dims.front()
                     : !options.shapes.empty()              ? "--shape " + options.shapes.front()
                     : !options.aliases.empty()             ? "--alias " + options.aliases.front().first
                     : !options.taps.empty()                ? "--tap " + options.taps.front()
                     : !options.keptNodes.empty()           ? "--autocast-keep " + options.keptNodes.front()
                     : !options.customOps.empty()           ? "--custom-op " + options.customOps.front().name()
                     : !options.buckets.empty()             ? "--bucket " + options.buckets.front()
                     : options.dynamic != DynamicDims::Auto ? "--dynamic"
                                                            : "";
  if (!flag.empty())
    diagnose(UnknownLoc::get(&context), DiagId::BadShapeOption, flag,
             "the model is in primitives, whose sizes and values are fixed; the flag belongs to the compile that "
             "writes them");
  return flag.empty();
}

bool check(MLIRContext &context, const ModelFile &file, const ImportOptions &options) {
  if (!checkStructure(&context, file.proto(), options.maxDepth))
    return false;
  bool isSound = checkAttributes(&context, file.proto());
  CustomOps customOps(options.customOps);
  bool areKnown = checkOperators(&context, file.proto(), customOps, options.findsAll);
  return areKnown && isSound && checkWithOnnx(&context, file.proto(), customOps);
}

/// Sizes that meet in broadcasts are equal in nearly every run: a function for that is a variant of one for whatever
/// fits, which is imported anew. MeetingSizes.cpp has the rules.
OwningOpRef<ModuleOp> importForAllSizes(MLIRContext &context, const ModelFile &file, const ImportOptions &options) {
  ModelImporter importer(context, file, options);
  OwningOpRef<ModuleOp> module = importer.run();
  if (!module || !importer.hasMeetings())
    return module;
  // Warnings have been given, and if it does not work in general, it still does for equal sizes.
  std::vector<Diagnostic> reports;
  ModelImporter others(context, file, options, decomp::Meeting::Stretch);
  OwningOpRef<ModuleOp> general;
  {
    ScopedDiagnosticHandler keep(&context, [&](Diagnostic &report) { reports.push_back(std::move(report)); });
    general = others.run();
  }
  if (!general) {
    importer.reportEqualOnly(reports);
    return module;
  }
  SmallVector<ModelImporter::Sizes> meetings = importer.getMeetings(others);
  if (meetings.empty()) // the two admit the same sizes
    return module;
  importer.becomeVariantOf(*general, meetings);
  return general;
}

OwningOpRef<ModuleOp> import(MLIRContext &context, std::unique_ptr<ModelFile> file, const ImportOptions &options) {
  if (!file)
    return nullptr;
  for (const auto &[input, path] : options.constants)
    if (!file->bindInput(context, input, path))
      return nullptr;
  if (options.filesRead)
    *options.filesRead = file->listFiles();
  context.loadDialect<prim::PrimDialect, func::FuncDialect>();
  try {
    if (isPrimModel(*file)) {
      const std::vector<CustomOp> noOps;
      CustomOps none(noOps);
      bool isSound = hasNoChanges(context, options) && checkStructure(&context, file->proto(), options.maxDepth) &&
                     checkWithOnnx(&context, file->proto(), none);
      return isSound ? importPrimModel(context, *file, options.entryName) : nullptr;
    }
    if (check(context, *file, options))
      return importForAllSizes(context, *file, options);
  } catch (const std::exception &e) {
    diagnose(UnknownLoc::get(&context), DiagId::OnnxFailure, e.what());
  }
  return nullptr;
}

} // namespace

OwningOpRef<ModuleOp> ptc::importOnnx(MLIRContext &context, StringRef path, const ImportOptions &options) {
  return import(context, ModelFile::open(context, path), options);
}

OwningOpRef<ModuleOp> ptc::importOnnxBytes(MLIRContext &context, StringRef bytes, StringRef path,
                                           const ImportOptions &options) {
  auto buffer = llvm::MemoryBuffer::getMemBuffer(bytes, path, /*RequiresNullTerminator=*/false);
  return import(context, ModelFile::parse(context, std::move(buffer), path), options);
}

bool ptc::checkOnnx(MLIRContext &context, StringRef path, const ImportOptions &options) {
  return bool(importOnnx(context, path, options));
}
