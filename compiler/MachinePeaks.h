// What this machine can do at most, as measured now: what a kernel's time is held against.
#ifndef PTC_COMPILER_MACHINEPEAKS_H
#define PTC_COMPILER_MACHINEPEAKS_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace ptc {

/// Memory that is read again and again, at most `bytes` of it: how many bytes a second arrive.
struct Bandwidth {
  double bytes, bytesPerSecond;
};

struct MachinePeaks {
  /// Operations a second by the type of a product's operands ("f32", "bf16", "i8"), a multiply-add being two; "fma":
  /// of what is no product, where that is not as with f32. A type without instructions of its own is absent.
  llvm::StringMap<double> operations;
  /// By growing sizes: what fits in each cache, then memory, whose size has no end.
  std::vector<Bandwidth> bandwidths;

  /// Those of `type`, or those of f32.
  double operationsOf(llvm::StringRef type) const;
  /// Of memory that holds so many bytes.
  double bandwidthOf(double bytes) const;
  /// What each of many readings of the same bytes takes at least: a cache keeps of them as many as it holds.
  double secondsToReadAgain(double bytes) const;
  /// The larger figure of each: what two measurements at different moments say together.
  void merge(const MachinePeaks &other);
};

/// All that `threads` threads can do at once. Takes some tenths of a second in which those threads do nothing else, and
/// tells the best of many slices, since other work on the machine can only slow them. Empty on processors for which
/// there are no such loops.
MachinePeaks measurePeaks(unsigned threads);

/// The bandwidth of memory at this moment, which what else runs on the machine changes from one moment to the next: a
/// program that waits for memory is held against readings that it takes turns with.
class MemoryReading {
public:
  /// Takes memory of several times the last cache for as long as it lives.
  explicit MemoryReading(unsigned threads);
  ~MemoryReading();

  /// Of one slice of some milliseconds, in bytes a second; it leaves nothing of the caller's in the caches. 0 on
  /// processors for which there is no such loop.
  double measure();

private:
  struct Part;
  std::unique_ptr<Part> part;
};

/// The same as measurePeaks of a CUDA device, by its number. An error where there is no driver or it fails. Uses the
/// device's primary context and up to 1 GiB of its memory.
llvm::Expected<MachinePeaks> measureDevicePeaks(int ordinal);

/// The kernels that measure it, as PTX: with instructions of warpgroups (sm_90a) or of warps (from sm_80 on).
std::string getDevicePeakText(bool hasWarpgroups);

} // namespace ptc

#endif // PTC_COMPILER_MACHINEPEAKS_H
