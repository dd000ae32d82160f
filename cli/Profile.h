// Spans of runs (runtime/include/ptc/abi.h) as a trace and as a table of kernels.
#ifndef PTC_CLI_PROFILE_H
#define PTC_CLI_PROFILE_H

#include "cli/InputSpecs.h"
#include "cli/ModelLibrary.h"
#include "compiler/MachinePeaks.h"
#include "llvm/Support/JSON.h"
#include <memory>

namespace ptc {

/// The memory that a profiled model writes its spans to.
class Profile {
public:
  explicit Profile(size_t capacity = size_t(1) << 20);
  ptc_profile *get() { return profile.get(); }
  /// Forgets all spans but the first `count`.
  void truncate(size_t count) { profile->count = count; }
  llvm::ArrayRef<ptc_span> getSpans() const;
  size_t countLost() const;

private:
  std::unique_ptr<ptc_span[]> memory; // not initialised, so that only what is used takes pages
  std::unique_ptr<ptc_profile> profile;
};

/// Some runs under one heading.
struct ProfiledRuns {
  std::string title;
  std::vector<ptc_span> spans;
};

/// Chrome's trace format, which Perfetto and chrome://tracing read: a process for each of `runs`, a row for each
/// thread. Times are in microseconds since the first span.
std::string formatTrace(llvm::ArrayRef<ProfiledRuns> runs, const ptc_model_table &table);

/// A kernel in the runs of a profile. Rates are those of its first launch in the program, for which the manifest has
/// the numbers; other launches of the kernel may have other dims.
struct KernelTime {
  std::string kernel, nodes;
  int64_t launches = 0;    // a run
  double seconds = 0;      // a run: the sum over launches of the median over runs
  double share = 0;        // of the time of all kernels
  double firstSeconds = 0; // of the first launch
  std::optional<double> flopsPerSecond, bytesPerSecond;
  std::optional<double> ofBound; // the least time that the machine's peaks allow the first launch / its time
};

/// The longest first.
std::vector<KernelTime> timeKernels(llvm::ArrayRef<ptc_span> spans);

/// Adds rates to `times` from the manifest beside the library, at these values of the symbols, and shares of the bound:
/// the longer of what the operations take at the peak of their type, and the bytes at the bandwidth of the memory that
/// they fit in. Weights and what the caller gives and takes are expected where all of them fit, since a run lies
/// between two uses. An error where there is no manifest or it is another library's.
llvm::Error addRates(std::vector<KernelTime> &times, llvm::StringRef library, const SymbolDims &symbols,
                     const MachinePeaks &peaks);

/// Of the time of all kernels for which there is one, the share that their bounds take.
std::optional<double> shareOfBound(llvm::ArrayRef<KernelTime> times);

void printKernelTimes(llvm::raw_ostream &os, llvm::ArrayRef<KernelTime> times, const MachinePeaks &peaks);
llvm::json::Array kernelTimesToJson(llvm::ArrayRef<KernelTime> times);
llvm::json::Object peaksToJson(const MachinePeaks &peaks);

} // namespace ptc

#endif // PTC_CLI_PROFILE_H
