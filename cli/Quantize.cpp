// ptc quantize: a model whose products are of 8-bit integers, from one in floats and samples of its inputs.
//
// The model runs on each sample and is looked at (quantize/ObservedModel.h); compiler/quantize/Quantizer.h decides what
// becomes 8 bits and writes the new model, which then runs on the same samples, so that what the two have at each
// product can be compared. What comes out is an ONNX model, for `ptc compile` as for other tools. The same samples give
// the same bytes on every machine.
#include "cli/TemporaryFolder.h"
#include "cli/Verb.h"
#include "cli/quantize/ObservedModel.h"
#include "cli/quantize/Samples.h"
#include "compiler/artifact/Outputs.h"
#include "compiler/quantize/Quantizer.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <climits>
#include <cmath>

using namespace llvm;

namespace ptc {

namespace {
struct QuantizeOptions {
  CompileOptions compile;
  QuantizeSettings settings;
  std::string output, folder, activations = "uint8", weights = "channel", reportPath;
  std::vector<std::string> inputs, dims;
  double leastDecibels = -INFINITY;
  unsigned mostSamples = 0; // 0: all
  bool hasNoReport = false;
};

/// What the samples are, and how a model runs on one.
struct SampleSet {
  std::vector<Sample> samples;
  SymbolDims dims;

  Error run(const Sample &sample, ObservedModel &model, const ValueObserver &observer,
            std::vector<Tensor> *outputs = nullptr) const;
};
} // namespace

static std::string pathIn(StringRef folder, const Twine &name) {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

/// The error with the sample's name before it.
static Error ofSample(const Sample &sample, Error error) {
  return handleErrors(std::move(error), [&](const ExitError &failed) {
    return exitError(failed.code, "sample '" + sample.name + "': " + failed.message, failed.help);
  });
}

Error SampleSet::run(const Sample &sample, ObservedModel &model, const ValueObserver &observer,
                     std::vector<Tensor> *outputs) const {
  Expected<std::vector<Tensor>> inputs = makeInputs(model.getInterface(), sample.specs, dims);
  if (!inputs)
    return ofSample(sample, inputs.takeError());
  Expected<std::vector<Tensor>> results = model.run(*inputs, observer);
  if (!results)
    return ofSample(sample, results.takeError());
  if (outputs)
    *outputs = std::move(*results);
  return Error::success();
}

static Expected<SampleSet> chooseSamples(const QuantizeOptions &options, const ptc_function &function) {
  Expected<SymbolDims> dims = parseDims(options.dims);
  if (!dims)
    return dims.takeError();
  SampleSet set{{{"-i", {}}}, std::move(*dims)};
  if (!options.folder.empty()) {
    Expected<std::vector<Sample>> listed = listSamples(options.folder, function);
    if (!listed)
      return listed.takeError();
    set.samples = std::move(*listed);
  }
  if (options.mostSamples && set.samples.size() > options.mostSamples)
    set.samples.resize(options.mostSamples);
  for (Sample &sample : set.samples)
    llvm::append_range(sample.specs, options.inputs);
  return set;
}

static Error calibrate(Session &session, Quantizer &quantizer, ObservedModel &model, const SampleSet &set) {
  auto show = [&](StringRef what, const ValueObserver &observer) -> Error {
    for (auto [number, sample] : enumerate(set.samples)) {
      session.progress.show(what, number, set.samples.size());
      if (Error error = set.run(sample, model, observer))
        return error;
    }
    return Error::success();
  };
  if (Error error = show("calibrating",
                         [&](StringRef value, ArrayRef<float> elements) { quantizer.addExtremes(value, elements); }))
    return error;
  if (Error error = quantizer.endExtremes())
    return error;
  if (quantizer.needsHistogram())
    if (Error error = show("counting",
                           [&](StringRef value, ArrayRef<float> elements) { quantizer.addHistogram(value, elements); }))
      return error;
  if (uint64_t notFinite = quantizer.chooseScales())
    session.say(Twine(notFinite) + " elements of activations are not finite; the others decide");
  return Error::success();
}

/// Both models on each sample.
static Error measure(Session &session, Quantizer &quantizer, ObservedModel &model, ObservedModel &quantized,
                     const SampleSet &set) {
  for (auto [number, sample] : enumerate(set.samples)) {
    session.progress.show("measuring errors", number, set.samples.size());
    std::vector<Tensor> expected, actual;
    if (Error error = set.run(
            sample, model, [&](StringRef value, ArrayRef<float> elements) { quantizer.expect(value, elements); },
            &expected))
      return error;
    if (Error error = set.run(
            sample, quantized, [&](StringRef value, ArrayRef<float> elements) { quantizer.compare(value, elements); },
            &actual))
      return error;
    for (auto [i, tensor] : enumerate(expected))
      if (isFloat32(tensor) && tensor.shape == actual[i].shape)
        quantizer.compareOutput(model.getInterface().outputs[i].name, floatsOf(tensor), floatsOf(actual[i]));
  }
  return Error::success();
}

/// --min-db
static Error checkOutputs(const QuantizeReport &report, double leastDecibels) {
  for (const OutputError &output : report.outputs) {
    if (output.error.count == 0 && std::isfinite(leastDecibels))
      return exitError(exitDifference,
                       formatv("output '{0}' has no finite element in floats, of which --min-db could be told. Nothing "
                               "is written",
                               output.name),
                       "samples with which the model of floats gives numbers");
    if (output.error.decibels() < leastDecibels)
      return exitError(
          exitDifference,
          formatv("output '{0}' has {1:f1} dB of signal over noise; --min-db asks for {2:f1}. Nothing is written",
                  output.name, output.error.decibels(), leastDecibels),
          "--keep leaves a node in floats: try those that the report lists first; or --calibrate=entropy, or more "
          "samples");
  }
  return Error::success();
}

/// Copies the files of the new model to where they belong, all or none.
static Error writeFiles(Session &session, const QuantizeOptions &options, const QuantizeReport &report,
                        StringRef folder, ArrayRef<std::string> names) {
  artifact::Outputs outputs;
  for (const std::string &name : names) {
    std::string path = pathIn(sys::path::parent_path(options.output), name);
    Expected<std::string> staged = outputs.stage(path);
    if (!staged)
      return staged.takeError();
    if (std::error_code failed = sys::fs::copy_file(pathIn(folder, name), *staged))
      return artifact::cannotWrite(path, failed);
  }
  if (!options.reportPath.empty() && options.reportPath != "-")
    if (Error error = outputs.write(options.reportPath, formatReport(report)))
      return error;
  if (Error error = outputs.commit(options.output))
    return error;
  if (options.reportPath == "-")
    session.out << formatReport(report);
  return Error::success();
}

/// Before all that takes long: an error if a file could not be written.
static Error checkOutputFiles(const QuantizeOptions &options) {
  artifact::Outputs outputs;
  for (const std::string &path : {options.output, options.reportPath})
    if (!path.empty() && path != "-")
      if (Expected<std::string> staged = outputs.stage(path); !staged)
        return staged.takeError();
  return Error::success();
}

static Error quantizeIn(Session &session, const QuantizeOptions &options, StringRef folder) {
  for (StringRef part : {"float", "quantized"})
    if (std::error_code failed = sys::fs::create_directory(pathIn(folder, part)))
      return exitError(exitFile, "cannot make a temporary folder: " + failed.message());
  Quantizer quantizer(options.compile, hooksOf(session, "quantize"), options.settings);
  if (Error error = quantizer.readModel())
    return error;
  if (Error error = quantizer.checkInputsKept(options.output))
    return error;
  if (Error error = checkOutputFiles(options))
    return error;
  if (int nested = quantizer.countNested())
    session.say(Twine(nested) + " product(s) inside of If, Loop, Scan or functions stay in floats");
  Expected<ObservedModel> model = ObservedModel::compile(session, options.compile, options.compile.model,
                                                         pathIn(folder, "float"), quantizer.listValues());
  if (!model)
    return model.takeError();
  Expected<SampleSet> set = chooseSamples(options, model->getInterface());
  if (!set)
    return set.takeError();
  if (Error error = calibrate(session, quantizer, *model, *set))
    return error;
  StringRef name = sys::path::filename(options.output);
  Expected<std::vector<std::string>> names = quantizer.write(folder, name);
  if (!names)
    return names.takeError();
  if (!options.hasNoReport) {
    Expected<ObservedModel> quantized = ObservedModel::compile(session, options.compile, pathIn(folder, name),
                                                               pathIn(folder, "quantized"), quantizer.listResults());
    if (!quantized)
      return quantized.takeError();
    if (Error error = measure(session, quantizer, *model, *quantized, *set))
      return error;
  }
  session.progress.clear();
  QuantizeReport report = quantizer.takeReport(set->samples.size());
  report.output = options.output;
  if (!session.common.quiet && options.reportPath != "-")
    printReport(session.out, report, session.common.verbose);
  if (Error error = checkOutputs(report, options.leastDecibels))
    return error;
  return writeFiles(session, options, report, folder, *names);
}

static Error runQuantize(Session &session, QuantizeOptions &options) {
  if (options.folder.empty() && options.inputs.empty())
    return exitError(exitUsage, "nothing to calibrate with: --data DIR is needed",
                     "some 10 to 500 samples of real inputs; -i random:0 tells nothing of accuracy, but the arithmetic "
                     "and its speed are the same");
  if (options.settings.percent <= 0 || options.settings.percent > 100)
    return exitError(exitUsage, "--percent: from 0 to 100, of the elements");
  if (std::isfinite(options.leastDecibels) && options.hasNoReport)
    return exitError(exitUsage, "--min-db needs the errors that --no-report leaves out", "leave one of the two out");
  if (options.output.empty())
    options.output = stemOf(options.compile.model) + "-int8.onnx";
  options.settings.isSymmetric = options.activations == "int8";
  options.settings.isPerChannel = options.weights == "channel";
  Expected<TemporaryFolder> folder = TemporaryFolder::create("ptc-quantize");
  return folder ? quantizeIn(session, options, folder->path()) : folder.takeError();
}

Action declareQuantize(CLI::App &app) {
  auto options = std::make_shared<QuantizeOptions>();
  addModelOption(app, options->compile);
  app.add_option("-o,--output", options->output, "the new model (default: MODEL-int8.onnx)")->type_name("FILE.onnx");
  app.add_option("--data", options->folder, samplesHelp.str())->type_name("DIR");
  app.add_option("-i,--input", options->inputs,
                 inputSpecHelp.str() + "; with --data: what samples do not have, else the only sample")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  app.add_option("--at", options->dims, "a symbol's value for made-up inputs: batch=8")
      ->allow_extra_args(false)
      ->type_name("NAME=N");
  app.add_option("--samples", options->mostSamples, "use the first N samples alone (default: all)")
      ->check(CLI::Range(1u, UINT_MAX).description(""))
      ->type_name("N");
  app.add_option("--calibrate", options->settings.method,
                 "how the range of an activation is chosen from all that was seen of it. minmax (default): all of it; "
                 "entropy: what loses the least information; percentile: all but a few outliers")
      ->check(CLI::IsMember({"minmax", "entropy", "percentile"}))
      ->type_name("METHOD");
  CLI::Option *percent =
      app.add_option("--percent", options->settings.percent,
                     "of the elements within the range, with --calibrate=percentile (default: 99.99)")
          ->type_name("P");
  app.add_option("--activations", options->activations, "uint8 (default): the range as it is; int8: symmetric around 0")
      ->check(CLI::IsMember({"uint8", "int8"}))
      ->type_name("TYPE");
  app.add_option("--weights", options->weights,
                 "channel (default): a scale for each output channel; tensor: one for all")
      ->check(CLI::IsMember({"channel", "tensor"}))
      ->type_name("SCALES");
  app.add_option("--keep", options->settings.keep,
                 "a node that stays in floats: its name, that of its value, or a pattern such as 'head/*'")
      ->allow_extra_args(false)
      ->type_name("NODE");
  app.add_option("--report", options->reportPath,
                 "write the errors of all nodes as JSON ('-': standard output, which has nothing else then)")
      ->type_name("FILE.json");
  app.add_flag("--no-report", options->hasNoReport, "do not run the new model to measure its errors");
  app.add_option("--min-db", options->leastDecibels,
                 "exit code 1, and nothing written, if an output has less signal over noise than this")
      ->type_name("DB");
  addCompileOptions(app, options->compile, {"Shapes", "Operators", "Running"});
  return [options, percent](Session &session) {
    if (percent->count() && options->settings.method != "percentile")
      return exitError(exitUsage, "--percent: --calibrate=" + options->settings.method + " leaves nothing out",
                       "--calibrate=percentile, or leave it out");
    return runQuantize(session, *options);
  };
}

} // namespace ptc
