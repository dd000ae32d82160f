#include "compiler/OutputPlan.h"
#include "codegen/host/Interface.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

namespace {
struct KindRow {
  OutputKind kind;
  StringLiteral name, suffix;
  bool isText;
};
} // namespace

static constexpr KindRow kinds[] = {
    {OutputKind::SharedLibrary, "so", ".so", false}, {OutputKind::StaticLibrary, "a", ".a", false},
    {OutputKind::Object, "o", ".o", false},          {OutputKind::Header, "h", ".h", true},
    {OutputKind::CppHeader, "hpp", ".hpp", true},    {OutputKind::Manifest, "json", ".json", true},
    {OutputKind::Llvm, "llvm", ".ll", true},         {OutputKind::Assembly, "asm", ".s", true},
    {OutputKind::Assembly, "ptx", ".ptx", true},
};

const Output *OutputPlan::find(OutputKind kind) const {
  auto found = llvm::find_if(outputs, [&](const Output &output) { return output.kind == kind; });
  return found == outputs.end() ? nullptr : &*found;
}

Phase OutputPlan::lastPhase() const {
  Phase last = Phase::Import;
  for (const Output &output : outputs) {
    bool isText = output.kind == OutputKind::Llvm || output.kind == OutputKind::Assembly;
    Phase needed = isStage(output.kind) ? output.phase : isText ? Phase::Codegen : Phase::Link;
    last = std::max(last, needed);
  }
  return last;
}

std::string OutputPlan::beside(StringRef suffix) const {
  SmallString<128> path(outputs.front().path);
  sys::path::replace_extension(path, suffix);
  return path.str().str();
}

std::vector<std::pair<std::string, std::string>> OutputPlan::files() const {
  std::vector<std::pair<std::string, std::string>> files;
  auto add = [&](const Twine &what, StringRef path) {
    if (!path.empty() && path != "-")
      files.emplace_back(what.str(), path.str());
  };
  for (const Output &output : outputs) {
    add("the output '" + output.name + (isStage(output.kind) ? ":" + getRow(output.phase).name : "") + "'",
        output.path);
  }
  add("the depfile", depfile);
  if (writesWeights())
    add("the file of --weights=file", weights);
  add("the listing of --debug-info", listing);
  add("the file of --stats", stats);
  add("the file of --time-trace", timeTrace);
  return files;
}

static Expected<std::pair<Output, StringRef>> parseKind(StringRef text) {
  StringRef stage = text;
  if (stage.consume_front("mlir:")) {
    if (std::optional<Phase> phase = findMlirPhase(stage))
      return std::pair(Output{OutputKind::Mlir, *phase, "mlir", ""}, getRow(*phase).name);
    return exitError(exitUsage, "--emit: '" + stage + "' is not a stage with text",
                     "import, prim, loop, schedule or plan-memory");
  }
  if (stage.consume_front("onnx:")) {
    std::optional<Phase> phase = findMlirPhase(stage);
    if (phase && *phase <= Phase::Prim)
      return std::pair(Output{OutputKind::Onnx, *phase, "onnx", ""}, getRow(*phase).name);
    return exitError(exitUsage, "--emit: '" + stage + "' is not a stage whose result is a model", "onnx:prim");
  }
  for (const KindRow &row : kinds)
    if (row.name == text)
      return std::pair(Output{row.kind, Phase::Link, row.name, ""}, StringRef(row.suffix));
  return exitError(exitUsage, "--emit: unknown kind '" + text + "'",
                   "so, a, o, h, hpp, json, llvm, asm, ptx, mlir:STAGE, onnx:prim");
}

static bool isLibrary(StringRef kind) { return kind == "so" || kind == "a" || kind == "o"; }

/// Without --emit: a library of the kind that -o's suffix says, with headers and manifest; of targets without libraries
/// their default.
static option::List kindsOf(const CompileOptions &options, ArrayRef<StringRef> written) {
  if (!options.emit.empty())
    return options.emit;
  StringRef kind = written.front(), suffix = sys::path::extension(options.output);
  if (!isLibrary(kind))
    return {kind.str()};
  suffix.consume_front(".");
  if (suffix == "ptx" && llvm::is_contained(written, suffix))
    return {suffix.str()};
  return {(isLibrary(suffix) && llvm::is_contained(written, suffix) ? suffix : kind).str(), "h", "hpp", "json"};
}

/// Whether a file of another kind than the suffix says would be written. Suffixes that name no kind are free.
static Error checkSuffix(const Output &output, ArrayRef<StringRef> written) {
  StringRef suffix = sys::path::extension(output.path);
  bool isTaken =
      (suffix == ".onnx" && output.kind != OutputKind::Onnx) || (suffix == ".mlir" && output.kind != OutputKind::Mlir);
  const KindRow *own = nullptr, *named = nullptr;
  for (const KindRow &row : kinds) {
    if (row.kind == output.kind && row.name == output.name)
      own = &row;
    if (row.suffix == suffix && !named)
      named = &row;
  }
  if (!isTaken && (!named || named->kind == output.kind))
    return Error::success();
  StringRef stageSuffix = output.kind == OutputKind::Onnx ? ".onnx" : ".mlir";
  std::string help = ("a name that ends in " + (own ? StringRef(own->suffix) : stageSuffix)).str();
  if (named)
    help += (llvm::is_contained(written, named->name) ? ", or --emit=" + named->name
                                                      : ", or a --target that writes '" + named->name + "'")
                .str();
  return exitError(exitUsage,
                   "-o " + output.path + ": '" + suffix + "' is not the suffix of '" + output.name +
                       "', which would be written there",
                   help);
}

/// Equal for equal files, links resolved; of a file that does not exist yet, its folder's with its name.
static std::string identityOf(StringRef path) {
  SmallString<256> real, folder(sys::path::parent_path(path));
  if (!sys::fs::real_path(path, real))
    return real.str().str();
  if (sys::fs::real_path(folder.empty() ? "." : folder.str(), real))
    real = folder;
  sys::path::append(real, sys::path::filename(path));
  return real.str().str();
}

/// A special file, such as /dev/null, takes all.
static Error checkDistinct(const OutputPlan &plan) {
  auto files = plan.files();
  for (auto it = files.begin(); it != files.end(); ++it) {
    sys::fs::file_status status;
    if (!sys::fs::status(it->second, status) && status.type() != sys::fs::file_type::regular_file)
      continue;
    auto same = std::find_if(files.begin(), it,
                             [&](const auto &other) { return identityOf(other.second) == identityOf(it->second); });
    if (same != it)
      return exitError(exitUsage, same->first + " and " + it->first + " would both be '" + it->second + "'",
                       "another name for one of them");
  }
  return Error::success();
}

Error checkInputsKept(const OutputPlan &plan, ArrayRef<std::string> inputs) {
  for (const auto &[what, path] : plan.files())
    for (const std::string &input : inputs) {
      sys::fs::file_status status;
      bool isFile = !sys::fs::status(path, status) && status.type() == sys::fs::file_type::regular_file;
      if (isFile && sys::fs::equivalent(path, input))
        return exitError(exitUsage, what + ", '" + path + "', would replace '" + input + "', which the compile reads",
                         "another name or folder for it: -o, -MF, --stats, --time-trace");
    }
  return Error::success();
}

Expected<OutputPlan> planOutputs(const CompileOptions &options, ArrayRef<StringRef> written) {
  OutputPlan plan;
  std::string stem = stemOf(options.output.empty() || options.output == "-" ? options.model : options.output);
  for (StringRef text : kindsOf(options, written)) {
    auto parsed = parseKind(text);
    if (!parsed)
      return parsed.takeError();
    auto &[output, suffix] = *parsed;
    std::string extension = output.kind == OutputKind::Mlir   ? ("." + suffix + ".mlir").str()
                            : output.kind == OutputKind::Onnx ? ("." + suffix + ".onnx").str()
                                                              : suffix.str();
    if (!plan.outputs.empty())
      output.path = plan.beside(extension);
    else
      output.path = options.output.empty() ? stem + extension : options.output;
    plan.outputs.push_back(std::move(output));
  }
  plan.needsHost = isLibrary(written.front()) && llvm::any_of(plan.outputs, [](const Output &output) {
                     return !OutputPlan::isStage(output.kind) && output.kind != OutputKind::Assembly;
                   });
  bool isPipe = plan.outputs.front().path == "-";
  const KindRow *row = llvm::find_if(kinds, [&](const KindRow &r) { return r.kind == plan.outputs.front().kind; });
  bool isText = row == std::end(kinds) ? plan.outputs.front().kind == OutputKind::Mlir : row->isText;
  if (isPipe && (plan.outputs.size() > 1 || !isText))
    return exitError(exitUsage, "-o - is for one output that is text",
                     "--emit=mlir:STAGE, llvm, asm, ptx, h, hpp or json");
  plan.name = host::cIdentifier(options.name.empty() ? stem : options.name);
  if (!options.name.empty() && plan.name != options.name)
    return exitError(exitUsage, "--name=" + options.name + " is not an identifier of C");
  if (options.depfile || !options.depfilePath.empty())
    plan.depfile = options.depfilePath.empty() ? plan.beside(".d") : options.depfilePath;
  else if (!options.depfileTarget.empty())
    return exitError(exitUsage, "--MT " + options.depfileTarget + ": no depfile is written", "add --MD or --MF FILE");
  plan.weights = options.weights == "file" ? plan.beside(".weights") : "";
  if (options.debugInfo && plan.lastPhase() == Phase::Link && plan.outputs.front().path != "-")
    plan.listing = plan.beside(".debug.mlir");
  plan.stats = options.stats;
  plan.timeTrace = options.timeTrace;
  if (Error error = checkSuffix(plan.outputs.front(), written))
    return std::move(error);
  if (Error error = checkDistinct(plan))
    return std::move(error);
  return plan;
}

} // namespace ptc
