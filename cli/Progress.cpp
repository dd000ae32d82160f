#include "cli/Progress.h"
#include "llvm/Support/raw_ostream.h"

namespace ptc {

void Progress::show(llvm::StringRef what, size_t done, size_t total) {
  using namespace std::chrono_literals;
  if (!enabled)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  auto now = std::chrono::steady_clock::now();
  if (now - start < 300ms || (visible && now - last < 100ms))
    return;
  last = now;
  constexpr size_t width = 30;
  size_t filled = total ? done * width / total : 0;
  llvm::errs() << "\r\x1b[K[" << std::string(filled, '=') << std::string(width - filled, ' ') << "] " << what;
  if (total)
    llvm::errs() << ' ' << done << '/' << total;
  llvm::errs().flush();
  visible = true;
}

void Progress::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  if (visible)
    llvm::errs() << "\r\x1b[K";
  visible = false;
}

} // namespace ptc
