#include "cli/Profile.h"
#include "ir/prim/Prim.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <map>

using namespace llvm;

namespace ptc {

Profile::Profile(size_t capacity) : memory(new ptc_span[capacity]), profile(std::make_unique<ptc_profile>()) {
  *profile = {sizeof(ptc_span), memory.get(), capacity, 0};
}

ArrayRef<ptc_span> Profile::getSpans() const { return {memory.get(), std::min(profile->count, profile->capacity)}; }

size_t Profile::countLost() const {
  return profile->count > profile->capacity ? profile->count - profile->capacity : 0;
}

//===----------------------------------------------------------------------===//
// The trace
//===----------------------------------------------------------------------===//

static std::string nameOf(const ptc_span &span, const ptc_model_table &table) {
  if (span.kind == PTC_SPAN_RUN)
    return std::string("run ") + table.functions[span.function].name;
  return span.nodes[0] ? span.nodes : span.kernel;
}

/// A name or a label of a process or thread; viewers show it in the place of its number.
static json::Object metadata(StringRef what, int64_t process, int64_t thread, StringRef name) {
  return json::Object{
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", json::Object{{"name", name}}}};
}

static void writeEvent(json::OStream &json, const ptc_span &span, const ptc_model_table &table, uint64_t start,
                       int64_t process, int64_t thread) {
  auto microseconds = [&](StringRef key, uint64_t ns) {
    json.attributeBegin(key);
    json.rawValue(std::to_string(ns / 1000) + "." + std::to_string(1000 + ns % 1000).substr(1));
    json.attributeEnd();
  };
  static const char *const kinds[] = {"run", "launch", "piece"};
  json.object([&] {
    json.attribute("ph", "X");
    json.attribute("name", json::fixUTF8(nameOf(span, table)));
    json.attribute("cat", kinds[std::min<uint32_t>(span.kind, PTC_SPAN_PIECE)]);
    microseconds("ts", span.begin_ns - start);
    microseconds("dur", span.end_ns - span.begin_ns);
    json.attribute("pid", process);
    json.attribute("tid", thread);
    if (span.kind == PTC_SPAN_RUN)
      return;
    json.attributeObject("args", [&] {
      json.attribute("kernel", span.kernel);
      json.attribute("nodes", json::fixUTF8(span.nodes));
      json.attribute("launch", span.launch);
      json.attribute("iterations", (Twine(span.begin) + ".." + Twine(span.end)).str());
    });
  });
}

std::string formatTrace(ArrayRef<ProfiledRuns> runs, const ptc_model_table &table) {
  uint64_t start = UINT64_MAX;
  for (const ProfiledRuns &run : runs)
    for (const ptc_span &span : run.spans)
      start = std::min(start, span.begin_ns);
  std::string text;
  raw_string_ostream stream(text);
  json::OStream json(stream);
  json.objectBegin();
  json.attribute("displayTimeUnit", "ns");
  json.attributeBegin("traceEvents");
  json.arrayBegin();
  for (auto [index, run] : enumerate(runs)) {
    int64_t process = int64_t(index) + 1;
    json.value(metadata("process_name", process, 0, run.title));
    std::map<std::pair<const ptc_ctx *, uint32_t>, int64_t> threads; // in the order of their first spans
    for (const ptc_span &span : run.spans) {
      auto [thread, isNew] = threads.try_emplace({span.ctx, span.thread}, int64_t(threads.size()));
      if (isNew)
        json.value(metadata("thread_name", process, thread->second,
                            span.thread ? "worker " + std::to_string(span.thread) : "caller"));
      writeEvent(json, span, table, start, process, thread->second);
    }
  }
  json.arrayEnd();
  json.attributeEnd();
  json.objectEnd();
  return text + "\n";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static double median(std::vector<double> values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<KernelTime> timeKernels(ArrayRef<ptc_span> spans) {
  std::map<uint32_t, std::pair<const ptc_span *, std::vector<double>>> launches;
  size_t runs = 0;
  for (const ptc_span &span : spans) {
    runs += span.kind == PTC_SPAN_RUN;
    if (span.kind == PTC_SPAN_LAUNCH) {
      auto &[first, times] = launches[span.launch];
      first = &span;
      times.push_back(double(span.end_ns - span.begin_ns) * 1e-9);
    }
  }
  MapVector<StringRef, KernelTime> kernels;
  double total = 0;
  for (auto &[number, launch] : launches) {
    KernelTime &time = kernels[launch.first->kernel];
    double seconds = median(launch.second);
    if (time.launches == 0) {
      time.kernel = launch.first->kernel;
      time.nodes = launch.first->nodes;
      time.firstSeconds = seconds;
    }
    // A launch in a loop runs in each of its rounds.
    auto rounds = std::max<size_t>((launch.second.size() + runs / 2) / std::max<size_t>(runs, 1), 1);
    time.launches += rounds;
    time.seconds += seconds * double(rounds);
    total += seconds * double(rounds);
  }
  std::vector<KernelTime> result;
  for (auto &[name, time] : kernels) {
    time.share = total > 0 ? time.seconds / total : 0;
    result.push_back(std::move(time));
  }
  llvm::stable_sort(result, [](const KernelTime &a, const KernelTime &b) { return a.seconds > b.seconds; });
  return result;
}

namespace {
/// What the manifest says of a kernel's first launch, where it says so.
struct KernelWork {
  std::optional<double> flops, read, written, steps, stepRead;
  double weights = 0, arguments = 0; // the latter of a launch, on average
  StringRef products;
  bool isBeside = false; // on the host, where the device's peaks say nothing
};
} // namespace

static KernelWork workOf(const json::Object &kernel, const SymbolDims &symbols, mlir::MLIRContext &context) {
  auto amountOf = [&](StringRef key) -> std::optional<double> {
    const json::Object *amount = kernel.getObject(key);
    Expr expr = amount ? Expr::parse(&context, amount->getString("expression").value_or("")) : Expr();
    std::optional<int64_t> value = expr ? expr.evaluate(symbols) : std::nullopt;
    return value ? std::optional<double>(*value) : std::nullopt;
  };
  return {amountOf("flops"),
          amountOf("bytes_read"),
          amountOf("bytes_written"),
          amountOf("steps"),
          amountOf("step_bytes_read"),
          double(kernel.getInteger("weight_bytes_read").value_or(0)),
          amountOf("argument_bytes").value_or(0) / // older libraries do not say
              double(std::max<int64_t>(kernel.getInteger("launches").value_or(1), 1)),
          kernel.getString("products").value_or("fma"),
          kernel.getString("on_host").has_value()};
}

/// What it reads of weights, and reads and writes of the function's inputs and outputs.
static double bytesKept(const KernelWork &work) {
  double weights = std::min(work.weights, work.read.value_or(0));
  double rest = work.read.value_or(0) - weights + work.written.value_or(0);
  return weights + std::min(work.arguments, rest);
}

/// The least seconds; nothing where a peak or an amount is not known. `allKept`: bytesKept of all launches.
static std::optional<double> boundOf(const KernelWork &work, const MachinePeaks &peaks, double allKept) {
  double operations = peaks.operationsOf(work.products);
  if (!work.flops || !work.read || !work.written || work.isBeside || operations <= 0 || peaks.bandwidths.empty())
    return std::nullopt;
  double kept = bytesKept(work), rest = *work.read + *work.written - kept;
  double memory = kept / peaks.bandwidthOf(allKept) + rest / peaks.bandwidthOf(rest);
  if (work.steps && work.stepRead) // each step waits for the one before it
    memory = std::max(memory, *work.steps * peaks.secondsToReadAgain(*work.stepRead));
  return std::max(*work.flops / operations, memory);
}

Error addRates(std::vector<KernelTime> &times, StringRef library, const SymbolDims &symbols,
               const MachinePeaks &peaks) {
  Expected<json::Value> manifest = readManifest(library);
  if (!manifest)
    return manifest.takeError();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<prim::PrimDialect>(); // expressions belong to it
  StringMap<KernelWork> kernels;
  for (const json::Value &kernel : *manifest->getAsObject()->getArray("kernels"))
    if (const json::Object *object = kernel.getAsObject())
      kernels.try_emplace(object->getString("name").value_or(""),
                          workOf(*object, symbols, context)); // the general program's first
  double allKept = 0;
  for (const KernelTime &time : times)
    allKept += bytesKept(kernels.lookup(time.kernel)) * double(time.launches);
  for (KernelTime &time : times) {
    KernelWork work = kernels.lookup(time.kernel);
    if (time.firstSeconds <= 0)
      continue;
    if (work.flops)
      time.flopsPerSecond = *work.flops / time.firstSeconds;
    if (work.read && work.written)
      time.bytesPerSecond = (*work.read + *work.written) / time.firstSeconds;
    if (std::optional<double> bound = boundOf(work, peaks, allKept))
      time.ofBound = *bound / time.firstSeconds;
  }
  return Error::success();
}

std::optional<double> shareOfBound(ArrayRef<KernelTime> times) {
  double bound = 0, seconds = 0;
  for (const KernelTime &time : times)
    if (time.ofBound) {
      bound += *time.ofBound * time.seconds;
      seconds += time.seconds;
    }
  return seconds > 0 ? std::optional(bound / seconds) : std::nullopt;
}

/// "f32 237, i8 950 GFLOP/s; 480 GB/s of 32 KB, ..., 33 of memory"
static void printPeaks(raw_ostream &os, const MachinePeaks &peaks) {
  std::vector<StringRef> types(peaks.operations.keys().begin(), peaks.operations.keys().end());
  llvm::sort(types);
  ListSeparator comma;
  for (StringRef type : types)
    os << comma << type << format(" %.0f", peaks.operations.lookup(type) * 1e-9);
  os << " GFLOP/s; ";
  ListSeparator next;
  for (const Bandwidth &level : peaks.bandwidths) {
    os << next << format("%.0f GB/s of ", level.bytesPerSecond * 1e-9);
    if (std::isinf(level.bytes))
      os << "memory";
    else
      os << format("%.0f KB", level.bytes / 1024);
  }
}

void printKernelTimes(raw_ostream &os, ArrayRef<KernelTime> times, const MachinePeaks &peaks) {
  os << "  share   time us  launches   GFLOP/s      GB/s   bound  kernel: nodes of its first launch\n";
  auto rate = [&](std::optional<double> perSecond) {
    if (perSecond)
      os << format("%10.2f", *perSecond * 1e-9);
    else
      os << "         -";
  };
  auto percent = [&](std::optional<double> share) {
    if (share)
      os << format("%7.1f%%", *share * 100);
    else
      os << "       -";
  };
  for (const KernelTime &time : times) {
    os << format("%6.1f%% %9.1f %9lld", time.share * 100, time.seconds * 1e6, static_cast<long long>(time.launches));
    rate(time.flopsPerSecond);
    rate(time.bytesPerSecond);
    percent(time.ofBound);
    os << "  " << time.kernel << ": " << time.nodes << '\n';
  }
  std::optional<double> share = shareOfBound(times);
  if (!share)
    return;
  os << format("%.1f %% of what this machine allows: ", *share * 100);
  printPeaks(os, peaks);
  os << '\n';
}

json::Object peaksToJson(const MachinePeaks &peaks) {
  json::Object operations;
  for (const auto &entry : peaks.operations)
    operations[entry.getKey()] = entry.getValue() * 1e-9;
  json::Array bandwidths;
  for (const Bandwidth &level : peaks.bandwidths) {
    json::Object row{{"gbytes_per_second", level.bytesPerSecond * 1e-9}};
    if (!std::isinf(level.bytes))
      row["bytes"] = int64_t(level.bytes);
    bandwidths.push_back(std::move(row));
  }
  return json::Object{{"gflops_per_second", std::move(operations)}, {"bandwidths", std::move(bandwidths)}};
}

json::Array kernelTimesToJson(ArrayRef<KernelTime> times) {
  json::Array list;
  for (const KernelTime &time : times) {
    json::Object object{{"kernel", time.kernel},
                        {"nodes", json::fixUTF8(time.nodes)},
                        {"launches", time.launches},
                        {"share", time.share},
                        {"time_us", time.seconds * 1e6}};
    if (time.flopsPerSecond)
      object["gflops_per_second"] = *time.flopsPerSecond * 1e-9;
    if (time.bytesPerSecond)
      object["gbytes_per_second"] = *time.bytesPerSecond * 1e-9;
    if (time.ofBound)
      object["bound_share"] = *time.ofBound;
    list.push_back(std::move(object));
  }
  return list;
}

} // namespace ptc
