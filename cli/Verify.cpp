// ptc verify: does a library compute what it should?
//
// The library is MODEL.so, or what MODEL.onnx compiles to with the given flags. The expected values come from the
// built-in interpreter on a model, from another library, or from files. A difference out of tolerance is exit
// code 1, with the element that is furthest out. With --per-node it is the node that makes it (PerNode.cpp).
#include "cli/Comparison.h"
#include "cli/CompileSession.h"
#include "cli/InputSpecs.h"
#include "cli/PerNode.h"
#include "cli/Reference.h"
#include "cli/RunThreads.h"
#include "cli/TemporaryFolder.h"
#include "cli/Verb.h"
#include "compiler/CustomOps.h"
#include "compiler/quantize/Quantizer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace llvm;

namespace ptc {

namespace {
struct VerifyOptions {
  CompileOptions compile; // its model may be a library
  InstanceOptions instance;
  std::vector<std::string> inputs, dims;
  std::string folder, against = "ref";
  Tolerance tolerance;
  double relative = -1, absolute = -1, leastDecibels = NAN;
  int64_t ulp = -1;
  bool perNode = false;

  bool isLibrary() const { return isLibraryFile(compile.model); }
  bool hasTolerance() const { return relative >= 0 || absolute >= 0 || ulp >= 0 || !std::isnan(leastDecibels); }
};
} // namespace

/// CLI::NonNegativeNumber names the largest double, in all its 309 digits.
static const CLI::Validator isNotNegative(
    [](std::string &text) {
      double value;
      bool isNumber = CLI::detail::lexical_cast(text, value);
      return isNumber && value >= 0 ? std::string() : "'" + text + "' is not 0 or more";
    },
    "");

/// input_0.pb, input_1.pb, ... or output_0.pb, ... of ONNX's test folders.
static Expected<std::vector<Tensor>> readNumbered(StringRef folder, StringRef stem, ArrayRef<ptc_value> values) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    SmallString<128> path(folder);
    sys::path::append(path, stem + "_" + Twine(i) + ".pb");
    Expected<Tensor> tensor = readValue(path, values[i]);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

static Expected<std::vector<Tensor>> inputsOf(const ptc_function &function, const VerifyOptions &options) {
  if (!options.folder.empty())
    return readNumbered(options.folder, "input", {function.inputs, function.input_count});
  Expected<SymbolDims> dims = parseDims(options.dims);
  if (!dims)
    return dims.takeError();
  std::vector<std::string> specs = {"random:0"};
  append_range(specs, options.inputs);
  return makeInputs(function, specs, *dims);
}

static NamedTensors withNames(const ptc_function &function, std::vector<Tensor> tensors) {
  NamedTensors named;
  for (auto [i, tensor] : llvm::enumerate(tensors))
    named.emplace_back(function.outputs[i].name, std::move(tensor));
  return named;
}

/// What the interpreter makes of --against=MODEL.onnx, or of the model that was compiled.
static Expected<NamedTensors> interpret(Session &session, const VerifyOptions &options,
                                        const std::vector<Tensor> &inputs) {
  CompileOptions model = options.compile;
  if (options.against != "ref")
    model.model = options.against;
  else if (options.isLibrary())
    return exitError(exitUsage, "a library alone has no reference",
                     "--against=MODEL.onnx, OTHER.so or FILE.npz, or --data");
  return evaluateReference(session, model, inputs);
}

static Expected<NamedTensors> expectedOutputs(Session &session, const ptc_function &function,
                                              const VerifyOptions &options, const std::vector<Tensor> &inputs) {
  StringRef against = options.against, suffix = sys::path::extension(against);
  if (!options.folder.empty()) {
    Expected<std::vector<Tensor>> read =
        readNumbered(options.folder, "output", {function.outputs, function.output_count});
    return read ? Expected<NamedTensors>(withNames(function, std::move(*read))) : read.takeError();
  }
  if (suffix == ".npz")
    return readTensors(against);
  if (isLibraryFile(against)) {
    Expected<ModelLibrary> other = ModelLibrary::open(session, against);
    if (!other)
      return other.takeError();
    Expected<std::vector<Tensor>> outputs = runOnce(*other, options.instance, inputs);
    return outputs ? Expected<NamedTensors>(withNames(other->table().functions[0], std::move(*outputs)))
                   : outputs.takeError();
  }
  if (against == "ref" || suffix == ".onnx" || sys::fs::exists(against))
    return interpret(session, options, inputs);
  return exitError(exitUsage, "--against=" + against + ": there is no such file",
                   "ref, MODEL.onnx, OTHER.so or FILE.npz");
}

/// A file or library that lacks an output is another model's, which is no difference in its results.
static Error checkHasOutputs(const ptc_function &function, const NamedTensors &expected, StringRef against) {
  for (const ptc_value &output : ArrayRef(function.outputs, function.output_count)) {
    if (llvm::any_of(expected, [&](const auto &entry) { return entry.first == output.name; }))
      continue;
    std::string names = join(map_range(expected, [](const auto &entry) { return entry.first; }), ", ");
    return exitError(exitUsage,
                     "'" + against + "' has nothing of the name '" + output.name + "', an output of the model",
                     "it has " + (names.empty() ? "nothing" : names));
  }
  return Error::success();
}

/// Prints a line; true if the output is within tolerance.
static bool compareOutput(Session &session, StringRef name, const Tensor &actual, const NamedTensors &expected,
                          const Tolerance &tolerance) {
  raw_ostream &os = session.out;
  const Tensor &wanted = llvm::find_if(expected, [&](const auto &entry) { return entry.first == name; })->second;
  if (wanted.shape != actual.shape || !(wanted.dtype == actual.dtype)) {
    os << name << ": " << formatType(actual.dtype) << ' ' << formatShape(actual.shape) << " where "
       << formatType(wanted.dtype) << ' ' << formatShape(wanted.shape) << " is expected\n";
    return false;
  }
  Difference difference = compareTensors(actual, wanted, tolerance);
  if (difference.sameBits) {
    os << name << ": ok, equal bit for bit\n";
    return true;
  }
  bool isOk = difference.count == 0;
  os << name << ": ";
  if (!isOk)
    os << difference.count << " of " << actual.elementCount() << " elements differ; ";
  os << (isOk ? "ok; " : "");
  if (difference.decibels)
    os << format("%.1f dB of signal over noise (at least %g), ", *difference.decibels, *tolerance.leastDecibels);
  os << format("largest difference %.3g", difference.largest);
  if (actual.isFloat())
    os << ", " << difference.largestUlp << " ulp";
  if (difference.worst >= 0 && !actual.isNumeric())
    os << "; at " << difference.worst << ": " << actual.text(difference.worst) << ", expected "
       << wanted.text(difference.worst);
  else if (difference.worst >= 0)
    os << format("; at %lld: %.9g, expected %.9g", static_cast<long long>(difference.worst),
                 actual.at(difference.worst), wanted.at(difference.worst));
  os << '\n';
  return isOk;
}

/// The graph is that of the model which was compiled, or of --against=MODEL.onnx.
static Error verifyNodes(Session &session, const VerifyOptions &options, const ModelLibrary &library,
                         std::vector<Tensor> inputs) {
  CompileOptions model = options.compile;
  if (options.isLibrary())
    model.model = options.against;
  return verifyPerNode(session, {.model = model,
                                 .library = library,
                                 .instance = options.instance,
                                 .inputs = std::move(inputs),
                                 .tolerance = options.tolerance,
                                 .isOwnLibrary = !options.isLibrary()});
}

static Error verifyLibrary(Session &session, const VerifyOptions &options, StringRef path) {
  Expected<ModelLibrary> library = ModelLibrary::open(session, path, options.compile.model);
  if (!library)
    return options.isLibrary() || options.compile.cpu == CompileOptions().cpu
               ? library.takeError()
               : adviseMachine(library.takeError(), "the model is run", "verify", "--cpu");
  const ptc_function &function = library->table().functions[0];
  Expected<std::vector<Tensor>> inputs = inputsOf(function, options);
  if (!inputs)
    return inputs.takeError();
  if (options.perNode)
    return verifyNodes(session, options, *library, std::move(*inputs));
  Expected<std::vector<Tensor>> actual = runOnce(*library, options.instance, *inputs);
  if (!actual)
    return actual.takeError();
  Expected<NamedTensors> expected = expectedOutputs(session, function, options, *inputs);
  if (!expected)
    return expected.takeError();
  if (Error error = checkHasOutputs(function, *expected, options.against))
    return error;
  unsigned wrong = 0;
  for (unsigned i = 0; i < function.output_count; ++i)
    wrong += !compareOutput(session, function.outputs[i].name, (*actual)[i], *expected, options.tolerance);
  if (wrong)
    return exitError(exitDifference, Twine(wrong) + " of " + Twine(function.output_count) + " outputs differ");
  return Error::success();
}

/// A library is compiled already: --dim, --cpu and --threads are those of `ptc run`; other flags of a compile are
/// wrong.
static Error takeFlagsOfRun(VerifyOptions &options, const CLI::App &app) {
  StringRef library = options.compile.model;
  for (const std::string &name : compileFlagsGiven(app)) {
    if (name == "--dim") {
      append_range(options.dims, options.compile.dims);
    } else if (name == "--cpu") {
      if (options.compile.cpu.size() != 1)
        return exitError(exitUsage, "--cpu: a run has one level",
                         "one of those that `ptc inspect " + library + "` lists");
      options.instance.cpuLevel = options.compile.cpu.front();
    } else if (name != "--threads") {
      return compiledAlready(name, library);
    }
  }
  StringRef threads = options.compile.threads;
  if (threads != CompileOptions().threads)
    return compiledAlready("--threads=" + threads.str(), library);
  return Error::success();
}

/// The type of --autocast that the subject is compiled with. Of a library the manifest beside it tells.
static std::string autocastOf(const VerifyOptions &options) {
  if (!options.isLibrary())
    return options.compile.autocast;
  Expected<json::Value> manifest = readManifest(options.compile.model);
  if (!manifest) {
    consumeError(manifest.takeError());
    return {};
  }
  if (const json::Array *flags = manifest->getAsObject()->getArray("flags"))
    for (const json::Value &flag : *flags)
      if (StringRef text = flag.getAsString().value_or(""); text.consume_front("--autocast="))
        return text.str();
  return {};
}

/// What the flags say, or what a model bears that is compiled so: products of rounded operands are off by some units of
/// the narrow type.
static Tolerance toleranceOf(const VerifyOptions &options) {
  constexpr double units = 4;
  Tolerance tolerance;
  std::string autocast = autocastOf(options);
  if (autocast == "bf16")
    tolerance.relative = tolerance.ofLargest = units * 0x1p-8;
  else if (autocast == "f16")
    tolerance.relative = tolerance.ofLargest = units * 0x1p-11;
  if (options.relative >= 0)
    tolerance.relative = options.relative;
  if (options.absolute >= 0)
    tolerance.absolute = options.absolute;
  if (options.ulp >= 0)
    tolerance.ulp = options.ulp;
  if (!std::isnan(options.leastDecibels))
    tolerance.leastDecibels = options.leastDecibels;
  return tolerance;
}

/// Where activations are rounded to 8 bits, a sum that is off in its last place may be rounded to the next step. The
/// interpreter rounds no rows of products.
static Error allowQuantizedSteps(Session &session, VerifyOptions &options) {
  constexpr double leastDecibels = 30;
  bool comparesWithModel = options.against != "ref" && sys::path::extension(options.against) == ".onnx";
  if (options.hasTolerance() || (options.isLibrary() && !options.perNode && !comparesWithModel))
    return Error::success();
  CompileOptions model = options.compile;
  if (options.isLibrary())
    model.model = options.against;
  Expected<FewBits> rounded = findFewBits(model, hooksOf(session, "verify"));
  if (!rounded)
    return rounded.takeError();
  if (!rounded->ofActivations && !rounded->ofRows)
    return Error::success();
  options.tolerance.byteSteps = 1;
  if (!options.perNode || rounded->ofRows)
    options.tolerance.leastDecibels = leastDecibels;
  return Error::success();
}

static Error verify(Session &session, VerifyOptions options, const CLI::App &app) {
  options.tolerance = toleranceOf(options);
  if (options.perNode && options.isLibrary() && (options.against == "ref" || isLibraryFile(options.against)))
    return exitError(exitUsage, "--per-node needs the model's graph", "--against=MODEL.onnx, or the model as subject");
  if (options.perNode && !options.isLibrary() && options.against != "ref")
    return exitError(exitUsage,
                     "--per-node compares with the built-in interpreter alone, not --against=" + options.against,
                     "leave --against out");
  if (Error error = takeRunThreads(options.compile, options.instance.threads))
    return error;
  if (Error error = allowQuantizedSteps(session, options))
    return error;
  if (options.isLibrary()) {
    if (Error error = takeFlagsOfRun(options, app))
      return error;
    return verifyLibrary(session, options, options.compile.model);
  }
  Expected<TemporaryFolder> folder = TemporaryFolder::create("ptc-verify");
  if (!folder)
    return folder.takeError();
  CompileOptions compileOptions = options.compile;
  compileOptions.output = folder->file("model.so");
  compileOptions.emit = {"so"};
  makePathsAbsolute(compileOptions.customOps);
  if (options.perNode)
    compileOptions.taps = {"all"};
  CompileHooks hooks = hooksOf(session, "verify");
  if (Error error = compile(compileOptions, hooks))
    return error;
  return verifyLibrary(session, options, compileOptions.output);
}

Action declareVerify(CLI::App &app) {
  auto options = std::make_shared<VerifyOptions>();
  app.add_option("subject", options->compile.model, "an ONNX file or a library made by ptc")
      ->required()
      ->type_name("MODEL.onnx|MODEL.so");
  app.add_option(
         "--against", options->against,
         "what is expected: ref (default), what the built-in interpreter makes of the model; the same of another "
         "MODEL.onnx; the outputs of OTHER.so; those in FILE.npz, by their names")
      ->type_name("WHAT");
  app.add_flag("--per-node", options->perNode,
               "name the first node that differs from the interpreter on the library's own values of its operands; a "
               "library needs `ptc compile --tap all` and --against=MODEL.onnx");
  app.add_option("--data", options->folder, "a folder with input_N.pb and output_N.pb")->type_name("DIR");
  app.add_option("-i,--input", options->inputs, inputSpecHelp.str() + " (default: random:0)")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  app.add_option("--at", options->dims, "a symbol's value in this run: batch=8")
      ->allow_extra_args(false)
      ->type_name("NAME=N");
  app.add_option("--rtol", options->relative,
                 "tolerated |a - b| as a part of |b| (default: 1e-3; with --autocast 4 units of the type: 1.6e-2 for "
                 "bf16, 2e-3 for f16)")
      ->check(isNotNegative)
      ->type_name("X");
  app.add_option("--atol", options->absolute,
                 "tolerated |a - b| besides (default: 1e-5 of the largest |b|; with --autocast so many units of it)")
      ->check(isNotNegative)
      ->type_name("X");
  app.add_option("--ulp", options->ulp, "tolerated distance in units in the last place, instead")
      ->check(isNotNegative)
      ->type_name("N");
  app.add_option(
         "--min-db", options->leastDecibels,
         "an output with so much signal over noise is right, whatever elements differ (default for a model that "
         "rounds activations to 8 bits: 30, without --per-node)")
      ->type_name("DB");
  addDeviceOption(app, options->instance);
  app.add_option("--weights", options->instance.weightsPath, "where a library's weights file is (default: beside it)")
      ->type_name("FILE");
  addCompileOptions(app, options->compile, {"Target", "Optimise", "Shapes", "Operators", "Running"});
  describeRunThreads(app);
  return [options, &app](Session &session) { return verify(session, *options, app); };
}

} // namespace ptc
