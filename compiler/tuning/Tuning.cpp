#include "compiler/tuning/Tuning.h"
#include "compiler/Pipeline.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <set>

using namespace llvm;

namespace ptc {

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

static json::Value toJson(const TunedKernel &kernel) {
  json::Object numbers;
  for (const auto &[name, number] : kernel.numbers)
    numbers[name] = number;
  return json::Object{{"kernel", kernel.kernel},
                      {"numbers", std::move(numbers)},
                      {"ns", nanoseconds(kernel.seconds)},
                      {"planned_ns", nanoseconds(kernel.plannedSeconds)}};
}

std::string writeTuning(const Tuning &tuning) {
  std::string text;
  raw_string_ostream os(text);
  auto line = [&](StringRef name, const json::Value &value) {
    os << "  " << json::Value(name) << ": " << value << ",\n";
  };
  os << "{\n";
  line("format", tuningFormat);
  line("compiler", tuning.compiler);
  line("model", json::fixUTF8(tuning.model));
  line("level", tuning.level);
  line("processor", json::fixUTF8(tuning.processor));
  line("threads", tuning.threads);
  os << "  \"kernels\": [";
  StringRef separator = "\n    ";
  for (const TunedKernel &kernel : tuning.kernels) {
    os << separator << toJson(kernel);
    separator = ",\n    ";
  }
  os << "\n  ]\n}\n";
  return text;
}

static bool fromJSON(const json::Value &value, TunedKernel &kernel, json::Path path) {
  json::ObjectMapper map(value, path);
  int64_t planned = 0, measured = 0;
  if (!map || !map.map("kernel", kernel.kernel) || !map.map("numbers", kernel.numbers) || !map.map("ns", measured) ||
      !map.map("planned_ns", planned))
    return false;
  kernel.plannedSeconds = double(planned) * 1e-9;
  kernel.seconds = double(measured) * 1e-9;
  return true;
}

static bool fromJSON(const json::Value &value, Tuning &tuning, json::Path path) {
  json::ObjectMapper map(value, path);
  int64_t format = 0, threads = 0;
  if (!map || !map.map("format", format))
    return false;
  if (format != tuningFormat) {
    path.field("format").report("another number than this ptc's");
    return false;
  }
  if (!map.map("compiler", tuning.compiler) || !map.map("model", tuning.model) || !map.map("level", tuning.level) ||
      !map.map("processor", tuning.processor) || !map.map("threads", threads) || !map.map("kernels", tuning.kernels))
    return false;
  tuning.threads = static_cast<unsigned>(threads);
  return true;
}

Expected<Tuning> readTuning(StringRef path) {
  constexpr StringLiteral help = "`ptc tune MODEL.onnx -o FILE` writes one";
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file)
    return exitError(exitFile, "cannot read tuning file '" + path + "': " + file.getError().message(), help);
  auto wrong = [&](Error error) {
    return exitError(exitUsage,
                     "'" + path + "' is not a tuning file that this ptc reads: " + toString(std::move(error)), help);
  };
  Expected<json::Value> value = json::parse((*file)->getBuffer());
  if (!value)
    return wrong(value.takeError());
  json::Path::Root root("the file");
  Tuning tuning;
  if (!fromJSON(*value, tuning, root))
    return wrong(root.getError());
  return tuning;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

std::vector<std::string> findUnknownNumbers(const Tuning &tuning, ArrayRef<StringLiteral> known) {
  std::set<std::string> unknown;
  for (const TunedKernel &kernel : tuning.kernels)
    for (const auto &[name, number] : kernel.numbers)
      if (!is_contained(known, StringRef(name)))
        unknown.insert(name);
  return {unknown.begin(), unknown.end()};
}

size_t applyTuning(const Tuning &tuning, ArrayRef<loop::KernelOp> kernels) {
  StringMap<const TunedKernel *> known;
  for (const TunedKernel &kernel : tuning.kernels)
    known[kernel.kernel] = &kernel;
  size_t unknown = 0;
  for (loop::KernelOp kernel : kernels) {
    const TunedKernel *found = known.lookup(kernel.getSymName());
    unknown += !found;
    if (!found || found->numbers.empty())
      continue;
    mlir::Builder builder(kernel.getContext());
    mlir::NamedAttrList numbers;
    for (const auto &[name, number] : found->numbers)
      numbers.set(name, builder.getI64IntegerAttr(number));
    numbers.set(loop::tunedLevelAttr, builder.getStringAttr(tuning.level));
    kernel->setAttr(loop::tunedAttr, numbers.getDictionary(kernel.getContext()));
  }
  return unknown;
}

Expected<StringMap<std::vector<TunedNumbers>>> listAlternatives(Compilation &compilation, StringRef level) {
  if (Error error = compilation.runTo(Phase::PlanMemory))
    return error;
  StringMap<std::vector<TunedNumbers>> all;
  const codegen::Target &target = *compilation.targets.front();
  target.loadDialects(compilation.getContext());
  for (auto kernel : compilation.getModule().getOps<loop::KernelOp>()) {
    std::vector<TunedNumbers> &alternatives = all[kernel.getSymName()];
    for (mlir::DictionaryAttr dictionary : target.listAlternatives(kernel, level)) {
      TunedNumbers &numbers = alternatives.emplace_back();
      for (mlir::NamedAttribute number : dictionary)
        numbers[number.getName().str()] = cast<mlir::IntegerAttr>(number.getValue()).getInt();
    }
  }
  return all;
}

} // namespace ptc
