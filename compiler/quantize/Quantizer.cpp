#include "compiler/quantize/Quantizer.h"
#include "compiler/artifact/Outputs.h"
#include "lowering/onnx/WriteModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace llvm;

namespace ptc {

using namespace quantize;

Quantizer::Quantizer(const CompileOptions &options, const CompileHooks &hooks, QuantizeSettings settings)
    : hooks(hooks), compilation(options, this->hooks), settings(std::move(settings)) {
  using Method = Calibration::Method;
  StringRef method = this->settings.method;
  calibration.method = method == "minmax" ? Method::MinMax : method == "entropy" ? Method::Entropy : Method::Percentile;
  calibration.percent = this->settings.percent;
}

Error Quantizer::readModel() {
  Error failed = compilation.runPhase(Phase::Import, [&]() -> Error {
    file = onnx_import::ModelFile::open(compilation.getContext(), compilation.options.model);
    return file ? Error::success() : reported();
  });
  if (failed)
    return failed;
  return makePlan();
}

Expected<FewBits> findFewBits(const CompileOptions &options, CompileHooks hooks) {
  Compilation compilation(options, hooks);
  FewBits found;
  Error failed = compilation.runPhase(Phase::Import, [&]() -> Error {
    auto file = onnx_import::ModelFile::open(compilation.getContext(), options.model);
    if (!file)
      return reported();
    found.ofActivations = isQuantized(file->proto());
    found.ofRows = options.fp != "strict" && permitsByteRows(file->proto());
    return Error::success();
  });
  if (failed)
    return std::move(failed);
  return found;
}

Error Quantizer::checkInputsKept(StringRef output) const {
  for (const std::string &read : file->listFiles())
    for (const std::string &own : {output.str(), output.str() + ".data"})
      if (sys::fs::equivalent(read, own))
        return exitError(exitUsage, "-o " + output + " would take the place of '" + read + "', which is read",
                         "give the new model another name");
  return Error::success();
}

/// "node 'a': reason; node 'b': reason"
static std::string listReasons(ArrayRef<Skipped> skipped) {
  constexpr size_t shown = 3;
  std::string text;
  for (const Skipped &product : skipped.take_front(shown))
    text += (text.empty() ? ": " : "; ") + product.title + ": " + product.reason;
  if (skipped.size() > shown)
    text += "; and " + std::to_string(skipped.size() - shown) + " more";
  return text;
}

Error Quantizer::makePlan() {
  return compilation.runPhase(Phase::Import, [&]() -> Error {
    std::optional<QuantizationPlan> made = planQuantization(compilation.getContext(), *file, settings.keep);
    if (!made)
      return reported();
    plan = std::move(*made);
    if (report.skipped.empty()) // later plans keep what samples tell (endExtremes)
      report.skipped = plan.skipped;
    if (!plan.products.empty())
      return Error::success();
    if (isQuantized(file->proto()))
      return exitError(exitUnsupported,
                       "'" + compilation.options.model + "' is quantised already" + listReasons(report.skipped),
                       "`ptc quantize` takes the model in floats");
    return exitError(exitUnsupported,
                     "nothing of '" + compilation.options.model + "' can be quantised" + listReasons(report.skipped),
                     "Conv, Gemm and MatMul of the main graph with constant float32 weights can be");
  });
}

std::vector<std::string> Quantizer::listResults() const {
  std::vector<std::string> values;
  for (const Product &product : plan.products)
    values.push_back(product.output);
  return values;
}

std::vector<std::string> Quantizer::listValues() const {
  std::vector<std::string> values;
  StringSet<> known;
  for (const onnx::ValueInfoProto &input : file->proto().graph().input())
    known.insert(input.name());
  auto want = [&](const std::string &value) {
    if (known.insert(value).second)
      values.push_back(value);
  };
  for (const auto &group : plan.groups)
    llvm::for_each(group, want);
  llvm::for_each(listResults(), want);
  return values;
}

//===----------------------------------------------------------------------===//
// Calibration
//===----------------------------------------------------------------------===//

void Quantizer::addExtremes(StringRef value, ArrayRef<float> elements) {
  if (plan.groupOf.contains(value))
    ranges[value].addExtremes(elements);
}

void Quantizer::addHistogram(StringRef value, ArrayRef<float> elements) {
  if (plan.groupOf.contains(value))
    ranges[value].addHistogram(elements);
}

/// A product that is left in floats may be why another value was to be rounded: the plan is made anew until it holds.
Error Quantizer::endExtremes() {
  for (bool isWhole = false; !isWhole;) {
    isWhole = true;
    for (const Product &product : plan.products) {
      const auto &group = plan.groups[plan.groupOf.lookup(product.activation)];
      if (llvm::any_of(group, [&](const std::string &value) { return !ranges[value].isEmpty(); }))
        continue;
      bool isNotFinite = llvm::any_of(group, [&](const std::string &value) { return ranges[value].getNotFinite(); });
      report.skipped.push_back(
          {product.title, "'" + product.activation +
                              (isNotFinite ? "' is not finite" : "' is not computed by itself, or in no sample")});
      settings.keep.push_back(product.output);
      isWhole = false;
    }
    if (!isWhole)
      if (Error error = makePlan())
        return error;
  }
  return Error::success();
}

uint64_t Quantizer::chooseScales() {
  uint64_t notFinite = 0;
  for (const auto &group : plan.groups) {
    ActivationRange whole;
    for (const std::string &value : group)
      whole.join(ranges[value]);
    notFinite += whole.getNotFinite();
    scales.push_back(quantizationOf(whole.choose(calibration), settings.isSymmetric));
  }
  for (auto [number, product] : enumerate(plan.products)) {
    productOf[product.output] = number;
    readersOf[product.activation].push_back(number);
  }
  return notFinite;
}

//===----------------------------------------------------------------------===//
// The new model
//===----------------------------------------------------------------------===//

static Error writePieces(StringRef path, const onnx_import::ModelBytes &bytes) {
  std::error_code failed;
  raw_fd_ostream os(path, failed);
  for (const auto &[offset, piece] : bytes.beside) {
    if (failed)
      break;
    os.write_zeros(offset - os.tell());
    os << piece;
    failed = os.error();
  }
  os.close();
  failed = failed ? failed : os.error();
  os.clear_error();
  return failed ? artifact::cannotWrite(path, failed) : Error::success();
}

static std::string pathIn(StringRef folder, StringRef name) {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

static uint64_t sizeOf(StringRef path) {
  uint64_t size = 0;
  return sys::fs::file_size(path, size) ? 0 : size;
}

Expected<std::vector<std::string>> Quantizer::write(StringRef folder, StringRef name) {
  QuantizedModel quantized = quantizeModel(*file, plan, scales, {.perChannel = settings.isPerChannel});
  for (auto [product, error] : llvm::zip_equal(plan.products, quantized.weights))
    report.products.push_back({product.title, product.output, error, {}, {}});
  std::string dataName = name.str() + ".data";
  Expected<onnx_import::ModelBytes> bytes = onnx_import::serializeModel(std::move(quantized.proto), *file, dataName);
  if (!bytes)
    return exitError(exitLimit, toString(bytes.takeError()));
  std::vector<std::string> names;
  if (!bytes->beside.empty()) {
    if (Error error = writePieces(pathIn(folder, dataName), *bytes))
      return std::move(error);
    names.push_back(dataName);
  }
  names.push_back(name.str()); // last: it refers to the other
  artifact::Outputs outputs;
  if (Error error = outputs.write(pathIn(folder, name), bytes->model))
    return std::move(error);
  if (Error error = outputs.commit())
    return std::move(error);
  for (const std::string &path : file->listFiles())
    report.bytesBefore += sizeOf(path);
  for (const std::string &own : names)
    report.bytesAfter += sizeOf(pathIn(folder, own));
  return names;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Where the model in floats has a number; that the other has none there is noise without end.
static void addErrors(SignalAndNoise &error, ArrayRef<float> expected, ArrayRef<float> actual) {
  for (auto [wanted, got] : llvm::zip(expected, actual))
    if (std::isfinite(wanted))
      error.add(wanted, std::isfinite(got) ? got : HUGE_VAL);
}

void Quantizer::expect(StringRef value, ArrayRef<float> elements) {
  if (productOf.contains(value))
    expected[value] = elements.vec();
  auto readers = readersOf.find(value);
  if (readers == readersOf.end())
    return;
  const Quantization &scale = scales[plan.groupOf.lookup(value)];
  SignalAndNoise error;
  for (float element : elements)
    if (std::isfinite(element))
      error.add(element, scale.round(element));
  for (size_t product : readers->second)
    report.products[product].input.add(error);
}

void Quantizer::compare(StringRef value, ArrayRef<float> elements) {
  if (auto product = productOf.find(value); product != productOf.end())
    addErrors(report.products[product->second].result, expected[value], elements);
}

void Quantizer::compareOutput(StringRef name, ArrayRef<float> wanted, ArrayRef<float> actual) {
  report.isMeasured = true;
  auto output = llvm::find_if(report.outputs, [&](const OutputError &known) { return known.name == name; });
  if (output == report.outputs.end())
    output = report.outputs.insert(output, {.name = name.str()});
  addErrors(output->error, wanted, actual);
  for (auto [a, b] : llvm::zip(wanted, actual)) {
    if (!std::isfinite(a))
      continue;
    output->largest = std::max(output->largest, double(std::abs(a)));
    if (!std::isfinite(b)) {
      ++output->notFinite;
      continue;
    }
    output->largestDifference = std::max(output->largestDifference, std::abs(double(a) - double(b)));
  }
}

QuantizeReport Quantizer::takeReport(size_t samples) {
  report.model = compilation.options.model;
  report.method = settings.method;
  report.samples = samples;
  report.scales = scales.size();
  return std::move(report);
}

} // namespace ptc
