// ptc inspect: what a model or a library is made of.
//
//   MODEL.onnx   the planned module: interface, operations, kernels, memory, or a graph of the launches
//   MODEL.so     the interface by its table; kernels and memory from the manifest beside it
//   MODEL.json   the manifest
#include "cli/CompileSession.h"
#include "cli/ModelLibrary.h"
#include "cli/Reference.h"
#include "cli/Verb.h"
#include "compiler/memory/ArenaUse.h"
#include "ir/expr/ConditionText.h"
#include "ir/loop/Rounds.h"
#include "ir/prim/MostSize.h"
#include "ir/prim/Variants.h"
#include "llvm/ADT/CachedHashString.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace llvm;

namespace ptc {

namespace {
struct InspectOptions {
  CompileOptions compile; // its model may be a library or a manifest
  bool kernels = false, memory = false, formulas = false;
  std::string graph;
  bool showsAll() const { return !kernels && !memory; }
};
} // namespace

//===----------------------------------------------------------------------===//
// Libraries and manifests
//===----------------------------------------------------------------------===//

static int64_t atHint(const json::Object &object, StringRef key) {
  const json::Object *amount = object.getObject(key);
  return amount ? amount->getInteger("at_hint").value_or(0) : 0;
}

/// "cuda, seq=128": the target, where a library has several, and the variant; empty: the only general program.
static std::string programOf(const json::Object &entry) {
  SmallVector<StringRef> parts;
  for (StringRef key : {"target", "variant"})
    if (std::optional<StringRef> part = entry.getString(key))
      parts.push_back(*part);
  return join(parts, ", ");
}

static std::string ofProgram(const std::string &program) { return program.empty() ? "" : " of " + program; }

/// Those of one program, and their sums.
static void printKernels(raw_ostream &os, const std::string &program, ArrayRef<const json::Object *> kernels) {
  os << "kernels" << ofProgram(program) << ": kind, launches, MFLOP, MB read, MB written at the hint, name, nodes\n";
  int64_t launches = 0, executions = 0, joined = 0, flops = 0, bytes = 0, weights = 0;
  for (const json::Object *entry : kernels) {
    const json::Object &kernel = *entry;
    std::vector<std::string> nodes;
    for (const json::Value &node : *kernel.getArray("nodes"))
      nodes.push_back(node.getAsString().value_or("").str());
    int64_t times = kernel.getInteger("launches").value_or(0);
    launches += times;
    times = kernel.getInteger("executions").value_or(times);
    executions += times;
    joined += kernel.getInteger("joined_launches").value_or(0);
    flops += times * atHint(kernel, "flops");
    bytes += times * (atHint(kernel, "bytes_read") + atHint(kernel, "bytes_written"));
    weights += times * kernel.getInteger("weight_bytes_read").value_or(0);
    os << "  " << left_justify(kernel.getString("kind").value_or(""), 22)
       << format("%4lld %10.3f %9.3f %9.3f  ", static_cast<long long>(times), atHint(kernel, "flops") * 1e-6,
                 atHint(kernel, "bytes_read") * 1e-6, atHint(kernel, "bytes_written") * 1e-6)
       << kernel.getString("name").value_or("") << "  ";
    if (std::optional<StringRef> library = kernel.getString("library"))
      os << "(or " << *library << ")  ";
    os << join(nodes, ", ") << '\n';
  }
  os << format("in all: %lld launches in %lld parallel loops, ", static_cast<long long>(launches),
               static_cast<long long>(launches - joined));
  if (executions != launches)
    os << format("%lld with the rounds of the program's loops, ", static_cast<long long>(executions));
  os << format("%.3f MFLOP, %.3f MB of activations and %.3f MB of weights moved\n", flops * 1e-6,
               (bytes - weights) * 1e-6, weights * 1e-6);
}

static void printKernels(raw_ostream &os, const json::Object &manifest) {
  SmallSetVector<CachedHashString, 4> programs;
  for (const json::Value &value : *manifest.getArray("memory")) // a program may launch nothing
    programs.insert(CachedHashString(programOf(*value.getAsObject())));
  for (const CachedHashString &program : programs) {
    std::vector<const json::Object *> kernels;
    for (const json::Value &value : *manifest.getArray("kernels"))
      if (programOf(*value.getAsObject()) == program.val())
        kernels.push_back(value.getAsObject());
    printKernels(os, program.val().str(), kernels);
  }
}

/// A line for memory beside the arena, whose size a run finds.
static void printGrowing(raw_ostream &os, StringRef bytes, StringRef nodes) {
  os << "grows beside the arena: " << bytes << " bytes, written by " << nodes << '\n';
}

static void printMemory(raw_ostream &os, const json::Object &manifest) {
  for (const json::Value &value : *manifest.getArray("memory")) {
    const json::Object &memory = *value.getAsObject();
    os << "memory of " << memory.getString("function").value_or("") << ofProgram(programOf(memory)) << ": "
       << atHint(memory, "peak") << " bytes at the hint; lower bound " << atHint(memory, "lower_bound") << '\n';
    if (const json::Array *growing = memory.getArray("growing"))
      for (const json::Value &block : *growing) {
        const json::Object &object = *block.getAsObject();
        auto texts = map_range(*object.getArray("bytes"), [](const json::Value &v) { return v.getAsString()->str(); });
        printGrowing(os, join(texts, ", then "), object.getString("node").value_or(""));
      }
  }
  if (const json::Object *weights = manifest.getObject("weights"))
    os << "weights: " << weights->getInteger("bytes").value_or(0) << " bytes, "
       << weights->getString("place").value_or("") << '\n';
}

static Error printManifest(Session &session, StringRef path, const InspectOptions &options) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  Expected<json::Value> parsed = json::parse(*text);
  if (!parsed)
    return exitError(exitUsage, "'" + path + "' is not JSON: " + toString(parsed.takeError()));
  const json::Object *manifest = parsed->getAsObject();
  if (!manifest || !manifest->getArray("kernels") || !manifest->getArray("memory"))
    return exitError(exitUsage, "'" + path + "' is not a manifest of ptc");
  if (options.showsAll() || options.kernels)
    printKernels(session.out, *manifest);
  if (options.showsAll() || options.memory)
    printMemory(session.out, *manifest);
  return Error::success();
}

static void printInterface(raw_ostream &os, const ptc_model_table &table) {
  os << table.name << ": made by " << table.compiler << ", model interface " << table.abi_version << "\nlevels:";
  for (uint32_t i = 0; i < table.level_count; ++i)
    os << ' ' << table.levels[i];
  os << '\n';
  for (const ptc_function &function : ArrayRef(table.functions, table.function_count)) {
    os << "function " << function.name << '\n';
    for (const ptc_value &value : ArrayRef(function.inputs, function.input_count))
      os << "  input  " << formatValue(value) << (value.alias >= 0 ? " (updated in place)" : "") << '\n';
    for (const ptc_value &value : ArrayRef(function.outputs, function.output_count))
      os << "  output " << formatValue(value) << (isFound(value) ? " (its size is found by the run)" : "") << '\n';
    for (const ptc_symbol &symbol : ArrayRef(function.symbols, function.symbol_count)) {
      os << "  symbol " << symbol.name << " from " << symbol.min;
      if (symbol.max != INT64_MAX)
        os << " to " << symbol.max;
      os << ", tuned for " << symbol.hint << '\n';
    }
    for (uint32_t i = 0; i < function.guard_count; ++i)
      os << "  guard  " << function.guards[i] << '\n';
  }
  os << table.weight_count << " weights can be replaced\n";
}

static Error inspectLibrary(Session &session, const InspectOptions &options) {
  Expected<ModelLibrary> library = ModelLibrary::open(session, options.compile.model);
  if (!library)
    return library.takeError();
  if (options.showsAll())
    printInterface(session.out, library->table());
  SmallString<128> manifest(options.compile.model);
  sys::path::replace_extension(manifest, ".json");
  if (sys::fs::exists(manifest))
    return printManifest(session, manifest, options);
  if (!options.showsAll())
    return exitError(exitFile, "the manifest '" + manifest + "' is missing",
                     "ptc compile writes it beside the library");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static std::string nodesOf(mlir::Location location) {
  std::vector<std::string> names;
  location->walk([&](mlir::Location part) {
    std::optional<NodeLocation> node = describeLocation(part);
    if (node && !is_contained(names, node->node))
      names.push_back(node->node.str());
    return mlir::WalkResult::advance();
  });
  return join(names, ", ");
}

/// Boxes are launches, arrows the buffers from one to the next.
static void printGraph(raw_ostream &os, loop::ProgramOp program) {
  DenseMap<mlir::Value, unsigned> writer;
  unsigned count = 0;
  os << "digraph \"" << program.getSymName() << "\" {\n  node [shape=box, fontname=monospace];\n";
  program.walk([&](loop::LaunchOp launch) {
    auto kernel = mlir::SymbolTable::lookupNearestSymbolFrom<loop::KernelOp>(launch, launch.getKernelAttr());
    std::string label;
    raw_string_ostream escaped(label);
    printEscapedString(nodesOf(launch.getLoc()), escaped);
    os << "  k" << count << " [label=\"" << launch.getKernel() << "\\n" << label << "\"];\n";
    SmallSet<unsigned, 8> known; // writers of what it uses: a buffer may be an operand and a result
    for (auto [index, buffer] : llvm::enumerate(launch.getBuffers())) {
      bool isWritten = is_contained(kernel.getArgumentsWritten(), static_cast<int64_t>(index));
      if (auto from = writer.find(buffer);
          from != writer.end() && from->second != count && known.insert(from->second).second)
        os << "  k" << from->second << " -> k" << count << ";\n";
      if (isWritten)
        writer[buffer] = count;
    }
    ++count;
  });
  os << "}\n";
}

/// "x float32 [batch, 8]", as for libraries.
static void printValues(raw_ostream &os, StringRef what, ArrayRef<mlir::BlockArgument> arguments, mlir::ArrayAttr names,
                        mlir::ArrayAttr types) {
  for (auto [argument, name, type] :
       llvm::zip_equal(arguments, names.getAsRange<mlir::StringAttr>(), types.getAsRange<mlir::TypeAttr>())) {
    auto buffer = cast<loop::BufferType>(argument.getType());
    os << what << name.getValue() << ' ' << formatType(dtypeOf(type.getValue())) << " ["
       << join(map_range(buffer.getShape(), [](Expr dim) { return dim.str(); }), ", ") << "]\n";
  }
}

/// The symbols of the inputs, as for libraries.
static void printSymbols(raw_ostream &os, loop::ProgramOp program) {
  for (mlir::NamedAttribute source : program.getSymbolSources())
    if (auto symbol = program.getSymbols().getAs<prim::SymbolAttr>(source.getName()))
      os << "  symbol " << source.getName().getValue() << " from " << symbol.getMin() << " to " << symbol.getMax()
         << ", tuned for " << symbol.getHint() << '\n';
}

/// Nothing where a symbol in it is as good as unbounded: nobody runs the model at 2^31.
static std::optional<int64_t> atUpperBounds(Expr size, mlir::DictionaryAttr symbols) {
  SymbolValues most;
  bool isBounded = true;
  size.walkSymbols([&](StringRef name) {
    auto symbol = symbols.getAs<prim::SymbolAttr>(name);
    most[name] = symbol ? symbol.getMax() : prim::mostSize;
    isBounded &= most[name] < prim::mostSize;
  });
  return isBounded ? size.evaluate(most) : std::nullopt;
}

/// "arena: 4096 bytes at the hint, 65536 at the upper bounds". As a formula a size may have thousands of characters.
static void printSize(raw_ostream &os, StringRef what, std::optional<Expr> size, mlir::DictionaryAttr symbols,
                      bool asFormula) {
  if (!size)
    return;
  os << what << size->evaluate(prim::getSymbolHints(symbols)).value_or(0) << " bytes";
  if (!size->isConstant()) {
    os << " at the hint";
    if (std::optional<int64_t> most = atUpperBounds(*size, symbols))
      os << ", " << *most << " at the upper bounds";
    if (asFormula)
      os << ": " << formulaText(*size);
  }
  os << '\n';
}

/// The arena's size, its lower bound, and each value in it.
static void printArena(raw_ostream &os, loop::ProgramOp program, const InspectOptions &options) {
  mlir::DictionaryAttr symbols = program.getSymbols();
  SymbolValues hints = prim::getSymbolHints(symbols);
  printSize(os, "arena: ", program.getArena(), symbols, options.formulas);
  printSize(os, "lower bound: ", program.getLowerBound(), symbols, options.formulas);
  for (const loop::GrowingBlock &block : loop::getGrowingBlocks(program))
    printGrowing(os, join(map_range(block.bytes, [](Expr bytes) { return bytes.str(); }), ", then "),
                 nodesOf(block.location));
  if (!options.memory)
    return;
  loop::ArenaUse use = loop::getArenaUse(program);
  if (use.buffers.empty())
    return;
  os << "values in it: offset and bytes at the hint, first and last launch that use it, written by\n";
  for (const loop::ArenaBuffer &buffer : use.buffers)
    os << (buffer.isAliveAt(use.fullest) ? " *" : "  ")
       << format("%12lld %12lld %6u %6u  ", static_cast<long long>(buffer.offset.evaluate(hints).value_or(0)),
                 static_cast<long long>(buffer.bytes.evaluate(hints).value_or(0)), buffer.first, buffer.last)
       << nodesOf(buffer.location) << '\n';
  os << "* alive at launch " << use.fullest << ", when most is in use: " << use.aliveBytes << " bytes\n";
}

static void printProgram(raw_ostream &os, loop::ProgramOp program, const InspectOptions &options) {
  std::string variant = prim::getVariantName(program);
  if (!variant.empty())
    os << "variant " << variant << '\n';
  if (options.showsAll()) {
    if (variant.empty())
      os << "function " << program.getSymName() << '\n';
    printValues(os, "  input  ", program.getInputArgs(), program.getInputNames(), program.getInputTypes());
    printValues(os, "  output ", program.getOutputArgs(), program.getOutputNames(), program.getOutputTypes());
    printSymbols(os, program);
  }
  if (options.showsAll() || options.kernels) {
    llvm::SmallSetVector<StringRef, 16> kernels;
    SymbolValues hints = prim::getSymbolHints(program.getSymbols());
    int64_t launches = 0, executions = 0;
    program.walk([&](loop::LaunchOp launch) {
      kernels.insert(launch.getKernel());
      ++launches;
      executions += loop::countRounds(launch, hints);
      if (options.kernels)
        os << launch.getKernel() << ": " << nodesOf(launch.getLoc()) << '\n';
    });
    os << launches << " launches of " << kernels.size() << " kernels";
    if (executions != launches)
      os << ", " << executions << " with the rounds of the program's loops";
    os << '\n';
  }
  if (options.showsAll() || options.memory)
    printArena(os, program, options);
}

static void countOps(raw_ostream &os, mlir::ModuleOp module) {
  std::map<StringRef, unsigned> counts;
  module.walk([&](mlir::Operation *op) {
    if (op->getName().getDialectNamespace() == "prim")
      ++counts[op->getName().stripDialect()];
  });
  os << "prim ops:";
  for (auto &[name, count] : counts)
    os << ' ' << name << ' ' << count;
  os << '\n';
}

static Error inspectModel(Session &session, const InspectOptions &options) {
  if (options.compile.mode == "max-autotune")
    return exitError(exitUsage, "--mode=max-autotune: `ptc inspect` measures nothing",
                     "--tune-file=FILE shows the model with what `ptc tune` found");
  if (Error error = requireOneTarget(options.compile, "`ptc inspect` of a model"))
    return error;
  CompileHooks hooks = hooksOf(session, "inspect");
  Compilation compilation(options.compile, hooks);
  if (Error error = compilation.runTo(Phase::Prim))
    return error;
  if (options.showsAll() && options.graph.empty())
    countOps(session.out, compilation.getModule());
  if (Error error = compilation.runTo(Phase::PlanMemory))
    return error;
  for (auto program : compilation.getModule().getOps<loop::ProgramOp>()) {
    if (options.graph.empty())
      printProgram(session.out, program, options);
    else
      printGraph(session.out, program);
  }
  return Error::success();
}

Action declareInspect(CLI::App &app) {
  auto options = std::make_shared<InspectOptions>();
  app.add_option("subject", options->compile.model, "an ONNX file, a library made by ptc or its manifest")
      ->required()
      ->type_name("MODEL.onnx|.so|.json");
  app.add_flag("--kernels", options->kernels, "the kernels and the nodes that they run");
  app.add_flag("--memory", options->memory, "the plan of the arena");
  app.add_flag("--formulas", options->formulas, "of a model with free dims, sizes of memory as formulas of them, too");
  app.add_option("--graph", options->graph, "the launches as a graph: dot")
      ->check(CLI::IsMember({"dot"}))
      ->type_name("FORM");
  addCompileOptions(app, options->compile, {"Target", "Optimise", "Shapes", "Operators", "Running"});
  return [options, &app](Session &session) {
    StringRef suffix = sys::path::extension(options->compile.model);
    bool isLibrary = isLibraryFile(options->compile.model);
    if (!options->graph.empty() && (isLibrary || suffix == ".json"))
      return exitError(exitUsage,
                       "--graph is drawn from a model; '" + options->compile.model + "' is what was made of one",
                       "ptc inspect MODEL.onnx --graph=" + options->graph);
    if (options->formulas && (isLibrary || suffix == ".json"))
      return exitError(exitUsage,
                       "--formulas: a library's formulas are in " +
                           std::string(isLibrary ? "the manifest beside it" : "its manifest itself"),
                       "ptc inspect MODEL.onnx --formulas, or `expression` in the .json");
    if (std::vector<std::string> given = compileFlagsGiven(app); (isLibrary || suffix == ".json") && !given.empty())
      return compiledAlready(given.front(), options->compile.model);
    if (isLibrary)
      return inspectLibrary(session, *options);
    if (suffix == ".json")
      return printManifest(session, options->compile.model, *options);
    return inspectModel(session, *options);
  };
}

} // namespace ptc
