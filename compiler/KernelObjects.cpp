#include "compiler/KernelObjects.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/TimeProfiler.h"
#include <atomic>

using namespace llvm;

namespace ptc {

namespace {
/// What a thread of the pool does within one task, as part of the trace.
struct TraceThread {
  explicit TraceThread(bool isOn) : isMine(isOn && !timeTraceProfilerEnabled()) {
    if (isMine)
      timeTraceProfilerInitialize(timeTraceGranularity, "ptc");
  }
  ~TraceThread() {
    if (isMine)
      timeTraceProfilerFinishThread();
  }
  bool isMine;
};
} // namespace

static Error addToFront(const Twine &where, Error error) {
  std::error_code code = inconvertibleErrorCode();
  std::string what;
  handleAllErrors(std::move(error), [&](const ErrorInfoBase &info) {
    code = info.convertToErrorCode();
    what = info.message();
  });
  return createStringError(code, where + what);
}

Expected<std::vector<codegen::KernelCode>> compileKernels(const KernelRequest &request, ThreadPoolInterface &pool,
                                                          size_t &failed) {
  size_t levels = request.levels.size(), total = request.kernels.size() * levels;
  std::vector<std::optional<Expected<codegen::KernelCode>>> slots(total);
  std::atomic<size_t> done = 0;
  ThreadPoolTaskGroup group(pool);
  for (size_t i = 0; i < total; ++i)
    group.async([&, i] {
      TraceThread trace(request.isTraced);
      CrashRecoveryContext crash;
      bool survived = crash.RunSafely([&] {
        loop::KernelOp kernel = request.kernels[i / levels];
        TimeTraceScope scope("kernel",
                             [&] { return (kernel.getSymName() + " for " + request.levels[i % levels].name).str(); });
        codegen::CodeOptions options = request.options;
        if (!request.entries.empty())
          options.entry = request.entries[i / levels];
        slots[i].emplace(request.target.generateKernel(kernel, request.levels[i % levels].name, options));
      });
      if (!survived)
        slots[i].emplace(createStringError(inconvertibleErrorCode(), "the code generator crashed"));
      if (request.progress)
        request.progress(++done, total);
    });
  group.wait();

  std::vector<codegen::KernelCode> objects;
  Error error = Error::success();
  for (size_t i = 0; i < total; ++i) {
    if (*slots[i]) {
      objects.push_back(std::move(**slots[i]));
    } else if (!error) {
      failed = i / levels;
      loop::KernelOp kernel = request.kernels[failed];
      error = addToFront("kernel " + kernel.getSymName() + " for " + request.levels[i % levels].name + ": ",
                         slots[i]->takeError());
    } else {
      consumeError(slots[i]->takeError());
    }
  }
  if (error)
    return std::move(error);
  return objects;
}

} // namespace ptc
