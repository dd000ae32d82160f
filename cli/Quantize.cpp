// ptc quantize: a model whose products are of 8-bit integers, from one in floats and samples of its inputs.
//
//   plan        which products and values become 8 bits           lowering/quantize/QuantizationPlan.h
//   calibrate   the model runs on each sample and is looked at     quantize/ObservedModel.h, ActivationRange.h
//   rewrite     QuantizeLinear and DequantizeLinear around them    lowering/quantize/QuantizeModel.h
//   measure     the new model runs on the same samples, and what the two have at each product is compared
//
// What comes out is an ONNX model, for `ptc compile` as for other tools. The same samples give the same bytes on every
// machine.
#include "cli/Verb.h"
#include "cli/quantize/ObservedModel.h"
#include "cli/quantize/QuantizeReport.h"
#include "cli/quantize/Samples.h"
#include "compiler/artifact/Outputs.h"
#include "lowering/onnx/WriteModel.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace llvm;

namespace ptc {

using namespace quantize;

namespace {
struct QuantizeOptions {
  CompileOptions compile;
  std::string output, folder, method = "minmax", activations = "uint8", weights = "channel", reportPath;
  std::vector<std::string> inputs, dims, keep;
  double percent = 99.99, leastDecibels = -1;
  unsigned mostSamples = 0; // 0: all
  bool measures = true;
};

class Quantizer {
public:
  Quantizer(Session &session, const QuantizeOptions &options) : session(session), options(options) {}
  ~Quantizer();
  Error run();

private:
  Error readModel();
  Error plan();
  Error makeFolder();
  Error listInputs();
  Error calibrate();
  Error observe(StringRef what, function_ref<void(ActivationRange &, ArrayRef<float>)> add);
  Error dropUnseen(bool &isChanged);
  Error rewrite();
  Error measure();
  Error compareRuns(ObservedModel &quantized, std::vector<Tensor> &inputs);
  Error checkOutputs() const;
  Error writeFiles();
  Expected<std::vector<Tensor>> inputsOf(const Sample &sample) const;
  std::string inFolder(const Twine &name) const;

  Session &session;
  const QuantizeOptions &options;
  Calibration calibration;
  std::optional<Compilation> compilation; // for its context and its handling of diagnostics
  std::unique_ptr<onnx_import::ModelFile> file;
  std::vector<std::string> keep; // what the user keeps, then what no sample showed
  QuantizationPlan chosen;
  SmallString<128> folder; // of files that are gone at the end
  std::optional<ObservedModel> model;
  SymbolDims dims;
  std::vector<Sample> samples;
  StringMap<ActivationRange> ranges; // by value
  std::vector<Quantization> scales;  // by group
  std::string modelName, modelPath;  // of the new model, in `folder`
  std::vector<std::string> written;  // names of its files there
  QuantizeReport report;
};
} // namespace

Quantizer::~Quantizer() {
  if (!folder.empty())
    sys::fs::remove_directories(folder);
}

std::string Quantizer::inFolder(const Twine &name) const {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

Error Quantizer::makeFolder() {
  if (std::error_code failed = sys::fs::createUniqueDirectory("ptc-quantize", folder))
    return exitError(exitFile, "cannot make a temporary folder: " + failed.message());
  for (StringRef part : {"float", "quantized"})
    if (std::error_code failed = sys::fs::create_directory(inFolder(part)))
      return exitError(exitFile, "cannot make a temporary folder: " + failed.message());
  return Error::success();
}

Error Quantizer::readModel() {
  return compilation->runPhase(Phase::Import, [&]() -> Error {
    file = onnx_import::ModelFile::open(compilation->getContext(), options.compile.model);
    if (!file)
      return reported();
    std::string path = options.output;
    for (const std::string &read : file->listFiles())
      for (const std::string &own : {path, path + ".data"})
        if (sys::fs::equivalent(read, own))
          return exitError(exitUsage, "-o " + path + " would take the place of '" + read + "', which is read",
                           "give the new model another name");
    return Error::success();
  });
}

/// "node 'a': reason; node 'b': reason"
static std::string listReasons(ArrayRef<Skipped> skipped) {
  constexpr size_t shown = 3;
  std::string text;
  for (const Skipped &product : skipped.take_front(shown))
    text += (text.empty() ? "" : "; ") + product.title + ": " + product.reason;
  if (skipped.size() > shown)
    text += "; and " + std::to_string(skipped.size() - shown) + " more";
  return text;
}

Error Quantizer::plan() {
  return compilation->runPhase(Phase::Import, [&]() -> Error {
    std::optional<QuantizationPlan> plan = planQuantization(compilation->getContext(), *file, keep);
    if (!plan)
      return reported();
    chosen = std::move(*plan);
    if (chosen.products.empty())
      return exitError(exitUnsupported,
                       "nothing of '" + options.compile.model + "' can be quantised" +
                           (chosen.skipped.empty() ? Twine("") : ": " + Twine(listReasons(chosen.skipped))),
                       "Conv, Gemm and MatMul of the main graph with constant float32 weights can be");
    return Error::success();
  });
}

/// The error with the sample's name before it.
static Error ofSample(const Sample &sample, Error error) {
  return handleErrors(std::move(error), [&](const ExitError &failed) {
    return exitError(failed.code, "sample '" + sample.name + "': " + failed.message, failed.help);
  });
}

Expected<std::vector<Tensor>> Quantizer::inputsOf(const Sample &sample) const {
  Expected<std::vector<Tensor>> inputs = makeInputs(model->getInterface(), sample.specs, dims);
  return inputs ? std::move(inputs) : ofSample(sample, inputs.takeError());
}

Error Quantizer::listInputs() {
  Expected<SymbolDims> given = parseDims(options.dims);
  if (!given)
    return given.takeError();
  dims = std::move(*given);
  if (options.folder.empty()) {
    samples = {{"-i", options.inputs}};
    return Error::success();
  }
  Expected<std::vector<Sample>> listed = listSamples(options.folder, model->getInterface());
  if (!listed)
    return listed.takeError();
  samples = std::move(*listed);
  if (options.mostSamples && samples.size() > options.mostSamples)
    samples.resize(options.mostSamples);
  for (Sample &sample : samples)
    llvm::append_range(sample.specs, options.inputs);
  return Error::success();
}

/// Shows each value of the plan, in each sample, to `add`.
Error Quantizer::observe(StringRef what, function_ref<void(ActivationRange &, ArrayRef<float>)> add) {
  for (auto [number, sample] : enumerate(samples)) {
    session.progress.show(what, number, samples.size());
    Expected<std::vector<Tensor>> inputs = inputsOf(sample);
    if (!inputs)
      return inputs.takeError();
    Expected<std::vector<Tensor>> outputs = model->run(*inputs, [&](StringRef value, ArrayRef<float> elements) {
      if (chosen.groupOf.contains(value))
        add(ranges[value], elements);
    });
    if (!outputs)
      return ofSample(sample, outputs.takeError());
  }
  return Error::success();
}

/// Keeps products in floats whose activation nobody has seen. `isChanged`: there were such.
Error Quantizer::dropUnseen(bool &isChanged) {
  isChanged = false;
  std::vector<Skipped> unseen;
  for (const Product &product : chosen.products) {
    const auto &group = chosen.groups[chosen.groupOf.lookup(product.activation)];
    if (llvm::any_of(group, [&](const std::string &value) { return !ranges[value].isEmpty(); }))
      continue;
    uint64_t notFinite = 0;
    for (const std::string &value : group)
      notFinite += ranges[value].getNotFinite();
    unseen.push_back({product.title, "'" + product.activation + "' " +
                                         (notFinite ? "is not finite" : "is not computed by itself, or in no sample")});
    keep.push_back(product.output);
  }
  if (unseen.empty())
    return Error::success();
  isChanged = true;
  std::vector<Skipped> earlier = std::move(report.skipped);
  if (Error error = plan())
    return error;
  report.skipped = std::move(earlier);
  llvm::append_range(report.skipped, unseen);
  return Error::success();
}

Error Quantizer::calibrate() {
  std::vector<std::string> values;
  StringSet<> known;
  for (const onnx::ValueInfoProto &input : file->proto().graph().input())
    known.insert(input.name());
  auto want = [&](const std::string &value) {
    if (known.insert(value).second)
      values.push_back(value);
  };
  for (const auto &group : chosen.groups)
    llvm::for_each(group, want);
  for (const Product &product : chosen.products)
    want(product.output);
  Expected<ObservedModel> compiled =
      ObservedModel::compile(session, options.compile, options.compile.model, inFolder("float"), values);
  if (!compiled)
    return compiled.takeError();
  model.emplace(std::move(*compiled));
  if (Error error = listInputs())
    return error;
  if (Error error = observe("calibrating", [](ActivationRange &range, ArrayRef<float> elements) {
        range.addExtremes(elements);
      }))
    return error;
  for (bool isChanged = true; isChanged;)
    if (Error error = dropUnseen(isChanged))
      return error;
  if (calibration.needsHistogram())
    if (Error error = observe("counting", [](ActivationRange &range, ArrayRef<float> elements) {
          range.addHistogram(elements);
        }))
      return error;
  uint64_t notFinite = 0;
  for (const auto &group : chosen.groups) {
    ActivationRange whole;
    for (const std::string &value : group)
      whole.join(ranges[value]);
    notFinite += whole.getNotFinite();
    scales.push_back(quantizationOf(whole.choose(calibration), options.activations == "int8"));
  }
  if (notFinite)
    session.say(Twine(notFinite) + " elements of activations are not finite; the others decide");
  return Error::success();
}

Error Quantizer::rewrite() {
  QuantizedModel quantized = quantizeModel(*file, chosen, scales, {.perChannel = options.weights == "channel"});
  std::string dataName = modelName + ".data";
  for (auto [product, error] : llvm::zip_equal(chosen.products, quantized.weights))
    report.products.push_back({product.title, product.output, error, {}, {}});
  Expected<onnx_import::ModelBytes> bytes = onnx_import::serializeModel(std::move(quantized.proto), *file, dataName);
  if (!bytes)
    return exitError(exitLimit, toString(bytes.takeError()));
  modelPath = inFolder(modelName);
  if (!bytes->beside.empty()) {
    std::error_code failed;
    raw_fd_ostream os(inFolder(dataName), failed);
    for (const auto &[offset, piece] : bytes->beside) {
      if (failed)
        break;
      os.write_zeros(offset - os.tell());
      os << piece;
      failed = os.error();
    }
    os.close();
    failed = failed ? failed : os.error();
    os.clear_error();
    if (failed)
      return artifact::cannotWrite(inFolder(dataName), failed);
    written.push_back(dataName);
  }
  written.push_back(modelName); // last: it refers to the other
  return writeFile(modelPath, bytes->model);
}

/// One sample in both models.
Error Quantizer::compareRuns(ObservedModel &quantized, std::vector<Tensor> &inputs) {
  StringMap<std::vector<float>> results;
  StringMap<ProductError *> products;
  StringMap<SmallVector<ProductError *, 1>> readers; // by activation
  for (auto [product, error] : llvm::zip_equal(chosen.products, report.products)) {
    products[product.output] = &error;
    readers[product.activation].push_back(&error);
  }
  Expected<std::vector<Tensor>> expected = model->run(inputs, [&](StringRef value, ArrayRef<float> elements) {
    if (products.contains(value))
      results[value] = elements.vec();
    auto found = readers.find(value);
    if (found == readers.end())
      return;
    const Quantization &scale = scales[chosen.groupOf.lookup(value)];
    SignalAndNoise error;
    for (float element : elements)
      if (std::isfinite(element))
        error.add(element, scale.round(element));
    for (ProductError *product : found->second) {
      product->input.signal += error.signal;
      product->input.noise += error.noise;
    }
  });
  if (!expected)
    return expected.takeError();
  Expected<std::vector<Tensor>> actual = quantized.run(inputs, [&](StringRef value, ArrayRef<float> elements) {
    auto found = products.find(value);
    if (found == products.end())
      return;
    const std::vector<float> &wanted = results[value];
    for (size_t i = 0; i < std::min(wanted.size(), elements.size()); ++i)
      if (std::isfinite(wanted[i]) && std::isfinite(elements[i]))
        found->second->result.add(wanted[i], elements[i]);
  });
  if (!actual)
    return actual.takeError();
  for (auto [i, tensor] : enumerate(*expected)) {
    OutputError &output = report.outputs[i];
    if (tensor.dtype.code != PTC_FLOAT || tensor.dtype.bits != 32 || tensor.shape != (*actual)[i].shape)
      continue;
    for (auto [wanted, got] : llvm::zip_equal(floatsOf(tensor), floatsOf((*actual)[i]))) {
      if (!std::isfinite(wanted) || !std::isfinite(got))
        continue;
      output.error.add(wanted, got);
      output.largest = std::max(output.largest, double(std::abs(wanted)));
      output.largestDifference = std::max(output.largestDifference, std::abs(double(wanted) - got));
    }
  }
  return Error::success();
}

Error Quantizer::measure() {
  std::vector<std::string> values;
  for (const Product &product : chosen.products)
    values.push_back(product.output);
  Expected<ObservedModel> quantized =
      ObservedModel::compile(session, options.compile, modelPath, inFolder("quantized"), values);
  if (!quantized)
    return quantized.takeError();
  const ptc_function &interface = model->getInterface();
  for (unsigned i = 0; i < interface.output_count; ++i)
    report.outputs.push_back({interface.outputs[i].name, {}, 0, 0});
  for (auto [number, sample] : enumerate(samples)) {
    session.progress.show("measuring errors", number, samples.size());
    Expected<std::vector<Tensor>> inputs = inputsOf(sample);
    if (!inputs)
      return inputs.takeError();
    if (Error error = compareRuns(*quantized, *inputs))
      return error;
  }
  llvm::erase_if(report.outputs, [](const OutputError &output) { return output.error.signal == 0; });
  report.isMeasured = true;
  return Error::success();
}

/// --min-db
Error Quantizer::checkOutputs() const {
  if (options.leastDecibels < 0)
    return Error::success();
  for (const OutputError &output : report.outputs)
    if (output.error.decibels() < options.leastDecibels)
      return exitError(exitDifference,
                       formatv("output '{0}' has {1:f1} dB of signal over noise; --min-db asks for {2:f1}. Nothing is written",
                               output.name, output.error.decibels(), options.leastDecibels),
                       "--keep leaves a node in floats: try those that the report lists first; or --calibrate=entropy, "
                       "or more samples");
  return Error::success();
}

Error Quantizer::writeFiles() {
  artifact::Outputs outputs;
  StringRef target = sys::path::parent_path(options.output);
  for (const std::string &name : written) {
    SmallString<128> path(target);
    sys::path::append(path, name);
    Expected<std::string> staged = outputs.stage(path);
    if (!staged)
      return staged.takeError();
    if (std::error_code failed = sys::fs::copy_file(inFolder(name), *staged))
      return artifact::cannotWrite(path, failed);
  }
  if (options.reportPath == "-")
    session.out << formatReport(report);
  else if (!options.reportPath.empty())
    if (Error error = outputs.write(options.reportPath, formatReport(report)))
      return error;
  return outputs.commit(options.output);
}

static uint64_t sizeOf(const std::string &path) {
  uint64_t size = 0;
  return sys::fs::file_size(path, size) ? 0 : size;
}

Error Quantizer::run() {
  calibration.method = options.method == "minmax"    ? Calibration::Method::MinMax
                       : options.method == "entropy" ? Calibration::Method::Entropy
                                                     : Calibration::Method::Percentile;
  calibration.percent = options.percent;
  keep = options.keep;
  modelName = sys::path::filename(options.output).str();
  CompileHooks hooks = hooksOf(session, "quantize");
  compilation.emplace(options.compile, hooks);
  if (Error error = readModel())
    return error;
  if (Error error = plan())
    return error;
  report.skipped = chosen.skipped;
  if (chosen.nested)
    session.say(Twine(chosen.nested) + " product(s) inside of If, Loop, Scan or functions stay in floats");
  if (Error error = makeFolder())
    return error;
  if (Error error = calibrate())
    return error;
  if (Error error = rewrite())
    return error;
  if (options.measures)
    if (Error error = measure())
      return error;
  session.progress.clear();
  report.model = options.compile.model;
  report.output = options.output;
  report.method = options.method;
  report.samples = samples.size();
  report.scales = scales.size();
  for (const std::string &path : file->listFiles())
    report.bytesBefore += sizeOf(path);
  for (const std::string &name : written)
    report.bytesAfter += sizeOf(inFolder(name));
  if (!session.common.quiet && options.reportPath != "-")
    printReport(session.out, report, session.common.verbose);
  if (Error error = checkOutputs())
    return error;
  return writeFiles();
}

static Error runQuantize(Session &session, QuantizeOptions &options) {
  if (options.folder.empty() && options.inputs.empty())
    return exitError(exitUsage, "nothing to calibrate with: --data DIR is needed",
                     "some 10 to 500 samples of real inputs; -i random:0 tells nothing of accuracy, but the arithmetic "
                     "and its speed are the same");
  if (options.percent <= 0 || options.percent > 100)
    return exitError(exitUsage, "--percent: from 0 to 100, of the elements");
  if (options.leastDecibels >= 0 && !options.measures)
    return exitError(exitUsage, "--min-db needs the errors that --no-report leaves out", "leave one of the two out");
  if (options.output.empty())
    options.output = stemOf(options.compile.model) + "-int8.onnx";
  return Quantizer(session, options).run();
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
  app.add_option("--samples", options->mostSamples, "use the first N samples alone (default: all)")->type_name("N");
  app.add_option("--calibrate", options->method,
                 "how the range of an activation is chosen from all that was seen of it. minmax (default): all of it; "
                 "entropy: what loses the least information; percentile: all but a few outliers")
      ->check(CLI::IsMember({"minmax", "entropy", "percentile"}))
      ->type_name("METHOD:{minmax,entropy,percentile}");
  app.add_option("--percent", options->percent, "of the elements within the range, with --calibrate=percentile (default: 99.99)")
      ->type_name("P");
  app.add_option("--activations", options->activations,
                 "uint8 (default): the range as it is; int8: symmetric around 0")
      ->check(CLI::IsMember({"uint8", "int8"}))
      ->type_name("TYPE:{uint8,int8}");
  app.add_option("--weights", options->weights, "channel (default): a scale for each output channel; tensor: one for all")
      ->check(CLI::IsMember({"channel", "tensor"}))
      ->type_name("SCALES:{channel,tensor}");
  app.add_option("--keep", options->keep, "a node that stays in floats: its name, that of its value, or a pattern such as 'head/*'")
      ->allow_extra_args(false)
      ->type_name("NODE");
  app.add_option("--report", options->reportPath, "write the errors of all nodes as JSON ('-': standard output, which has nothing else then)")->type_name("FILE.json");
  app.add_flag("!--no-report", options->measures, "do not run the new model to measure its errors");
  app.add_option("--min-db", options->leastDecibels,
                 "exit code 1, and nothing written, if an output has less signal over noise than this")
      ->type_name("DB");
  addCompileOptions(app, options->compile, {"Shapes", "Operators", "Running"});
  return [options](Session &session) { return runQuantize(session, *options); };
}

} // namespace ptc
