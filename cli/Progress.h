// A progress bar on the last line of a terminal; nothing anywhere else.
#ifndef PTC_CLI_PROGRESS_H
#define PTC_CLI_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include <chrono>
#include <mutex>

namespace ptc {

/// Thread-safe. Draws at most ten times a second, and nothing in the first 0.3 seconds.
class Progress {
public:
  explicit Progress(bool enabled) : enabled(enabled) {}
  ~Progress() { clear(); }

  void show(llvm::StringRef what, size_t done, size_t total);
  /// Takes the bar away, so that a line can be printed.
  void clear();

private:
  bool enabled;
  bool visible = false;
  std::mutex mutex;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last = start;
};

} // namespace ptc

#endif // PTC_CLI_PROGRESS_H
