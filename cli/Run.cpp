// ptc run: a library's model on given inputs.
#include "cli/InputSpecs.h"
#include "cli/Profile.h"
#include "cli/Taps.h"
#include "cli/Verb.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace llvm;

namespace ptc {

namespace {
struct RunOptions {
  std::string library, function, profile, tapFolder;
  InstanceOptions instance;
  std::vector<std::string> inputs, outputs, dims;
};
} // namespace

/// "y float32 1x1000: min -1.5 max 9.25 mean 0.01, most at 281: [0.1, 0.2, ...]"
static void summarize(raw_ostream &os, StringRef name, const Tensor &tensor) {
  int64_t count = tensor.elementCount(), most = 0, nans = 0;
  if (tensor.dtype.code == PTC_SEQUENCE) {
    os << name << " sequence of " << tensor.items.size() << "\n";
    for (auto [i, item] : enumerate(tensor.items))
      summarize(os, (name + "[" + Twine(i) + "]").str(), item);
    return;
  }
  os << name << ' ' << formatType(tensor.dtype) << ' ' << formatShape(tensor.shape);
  double least = INFINITY, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = tensor.at(i);
    nans += std::isnan(value);
    least = std::fmin(least, value);
    sum += value;
    if (value > tensor.at(most))
      most = i;
  }
  if (count > 1 && tensor.isNumeric())
    os << format(": min %.6g max %.6g mean %.6g, most at %lld", least, tensor.at(most), sum / count,
                 static_cast<long long>(most));
  if (nans)
    os << ", " << nans << " NaN";
  os << ": [";
  constexpr int64_t shown = 8;
  for (int64_t i = 0; i < std::min(count, shown); ++i)
    os << (i ? ", " : "") << tensor.text(i);
  os << (count > shown ? ", ...]\n" : "]\n");
}

/// The output that a spec NAME=... is about; what follows the name stays in `spec`. Null if the model has no such
/// output.
static const ptc_value *outputOf(const ptc_function &function, StringRef &spec) {
  for (const ptc_value &output : ArrayRef(function.outputs, function.output_count))
    if (StringRef rest = spec; rest.consume_front(output.name) && rest.consume_front("=")) {
      spec = rest;
      return &output;
    }
  return nullptr;
}

/// A wrong name is found before the model runs.
static Error checkOutputs(const ptc_function &function, ArrayRef<std::string> specs) {
  for (StringRef spec : specs)
    if (StringRef rest = spec; !spec.starts_with("@") && !outputOf(function, rest))
      return exitError(exitUsage, "the model has no output '" + spec.split('=').first + "'",
                       "-o NAME=@FILE.npy, or -o @FILE.npz for all outputs");
  return Error::success();
}

/// -o y=@y.npy, -o @all.npz
static Error writeOutputs(const ptc_function &function, const std::vector<Tensor> &outputs,
                          ArrayRef<std::string> specs) {
  for (StringRef spec : specs) {
    if (spec.consume_front("@")) {
      NamedTensors all;
      for (unsigned i = 0; i < function.output_count; ++i) {
        if (outputs[i].dtype.code == PTC_SEQUENCE)
          return writeTensor(spec, function.outputs[i].name, outputs[i]); // says why not
        all.emplace_back(function.outputs[i].name, outputs[i]);
      }
      if (Error error = writeFile(spec, formatNpz(all)))
        return error;
      continue;
    }
    const ptc_value *output = outputOf(function, spec);
    spec.consume_front("@");
    if (Error error = writeTensor(spec, output->name, outputs[output - function.outputs]))
      return error;
  }
  return Error::success();
}

/// --profile FILE: the spans of the one run, as a trace.
static Error writeProfile(Session &session, const ModelLibrary &library, const Profile &profile, StringRef path) {
  if (size_t lost = profile.countLost())
    session.say(Twine(lost) + " spans were more than the profile holds; the trace ends early");
  ProfiledRuns runs{library.path().str(), profile.getSpans().vec()};
  return writeFile(path, formatTrace(runs, library.table()));
}

static Error runModel(Session &session, const RunOptions &options) {
  Expected<ModelLibrary> library = ModelLibrary::open(session, options.library);
  if (!library)
    return library.takeError();
  Expected<unsigned> function = library->findFunction(options.function);
  if (!function)
    return function.takeError();
  const ptc_function &interface = library->table().functions[*function];
  if (Error error = checkOutputs(interface, options.outputs))
    return error;
  Expected<SymbolDims> dims = parseDims(options.dims);
  if (!dims)
    return dims.takeError();
  Expected<std::vector<Tensor>> inputs = makeInputs(interface, options.inputs, *dims);
  if (!inputs)
    return inputs.takeError();
  std::optional<Profile> profile;
  InstanceOptions how = options.instance;
  if (!options.profile.empty())
    how.profile = profile.emplace().get();
  std::vector<TappedValue> taps;
  if (!options.tapFolder.empty())
    how.tap = [&](const ptc_tap &tap) { taps.push_back(copyTap(tap)); };
  Expected<ModelInstance> instance = ModelInstance::create(*library, how);
  if (!instance)
    return instance.takeError();
  session.log("CPU level " + Twine(library->table().cpu_level(instance->getModel())) + ", " +
              Twine(library->table().threads(instance->getModel())) + " thread(s)");
  Expected<std::vector<Tensor>> outputs = instance->makeOutputs(*function, *inputs);
  if (!outputs)
    return outputs.takeError();
  if (profile) // threads that start and memory that is touched first are no kernel's time
    if (Error error = instance->warmUp(*function, *inputs))
      return error;
  if (Error error = instance->run(*function, *inputs, *outputs))
    return error;
  if (profile)
    if (Error error = writeProfile(session, *library, *profile, options.profile))
      return error;
  if (!options.tapFolder.empty()) {
    if (taps.empty())
      return exitError(exitUsage, "--tap-dir: '" + options.library + "' shows no values",
                       "compile the model with --tap NODE, or --tap all");
    if (Error error = writeTaps(options.tapFolder, taps))
      return error;
  }
  if (!session.common.quiet)
    for (unsigned i = 0; i < interface.output_count; ++i)
      summarize(session.out, interface.outputs[i].name, (*outputs)[i]);
  return writeOutputs(interface, *outputs, options.outputs);
}

Action declareRun(CLI::App &app) {
  auto options = std::make_shared<RunOptions>();
  app.add_option("library", options->library, "a library made by ptc")->required()->type_name("MODEL.so");
  app.add_option("-i,--input", options->inputs, inputSpecHelp.str())->allow_extra_args(false)->type_name("SPEC");
  app.add_option("-o,--output", options->outputs, "where an output goes: y=@y.npy; all of them: @all.npz")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  app.add_option("--dim,--at", options->dims, "a symbol's value for made-up inputs: batch=8")
      ->allow_extra_args(false)
      ->type_name("NAME=N");
  app.add_option("--function", options->function, "which function of the library (default: the first)")
      ->type_name("NAME");
  app.add_option("--tap-dir", options->tapFolder, "write each tapped value (ptc compile --tap) to DIR/NAME.npy")
      ->type_name("DIR");
  app.add_option("--threads", options->instance.threads, "threads of a run (default: all)")->type_name("N");
  app.add_option("--profile", options->profile,
                 "write what took how long, launches and their pieces on threads, for chrome://tracing or Perfetto")
      ->type_name("FILE");
  addInstanceOptions(app, options->instance);
  return [options](Session &session) { return runModel(session, *options); };
}

} // namespace ptc
