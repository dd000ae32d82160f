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

/// Which of the levels has the code that a kernel runs at this one.
static size_t findCodeLevel(const KernelRequest &request, size_t kernel, size_t level) {
  StringRef name = request.target.findCodeLevel(request.kernels[kernel], request.levels[level].name, request.levels);
  auto found = llvm::find_if(request.levels, [&](const codegen::Level &row) { return row.name == name; });
  size_t index = size_t(found - request.levels.begin());
  assert(index <= level && "code is the level's own, or that of one in front of it");
  return index;
}

static codegen::KernelCode shareCode(const codegen::KernelCode &code, StringRef level) {
  return {.kernel = code.kernel,
          .level = level.str(),
          .sharedWith = code.level,
          .codeBytes = code.codeBytes,
          .facts = code.facts};
}

Expected<std::vector<codegen::KernelCode>> compileKernels(const KernelRequest &request, ThreadPoolInterface &pool,
                                                          size_t &failed) {
  size_t levels = request.levels.size(), all = request.kernels.size() * levels;
  std::vector<size_t> owners(all); // whose code is at each place
  for (size_t i = 0; i < all; ++i)
    owners[i] = i - i % levels + findCodeLevel(request, i / levels, i % levels);
  size_t total =
      size_t(llvm::count_if(llvm::enumerate(owners), [](auto place) { return place.index() == place.value(); }));
  std::vector<std::optional<Expected<codegen::KernelCode>>> slots(all);
  std::atomic<size_t> done = 0;
  ThreadPoolTaskGroup group(pool);
  for (size_t i = 0; i < all; ++i) {
    if (owners[i] != i)
      continue;
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
  }
  group.wait();

  std::vector<codegen::KernelCode> objects;
  Error error = Error::success();
  for (size_t i = 0; i < all; ++i) {
    if (owners[i] != i) { // a lower level's, which is among the objects
      if (!error)
        objects.push_back(shareCode(objects[owners[i]], request.levels[i % levels].name));
    } else if (*slots[i]) {
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
