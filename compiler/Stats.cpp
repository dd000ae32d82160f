#include "compiler/Stats.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <sys/resource.h>

using namespace llvm;

namespace ptc {

std::string formatStats(const Compilation &compilation, const ArtefactSummary &summary) {
  json::Object stages;
  double total = 0;
  for (const PhaseTime &time : compilation.getTimes()) {
    stages[getRow(time.phase).name] = time.seconds;
    total += time.seconds;
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  json::Object all{{"stages", std::move(stages)},
                   {"seconds", total},
                   {"cpu_seconds", usage.ru_utime.tv_sec + usage.ru_utime.tv_usec * 1e-6},
                   {"peak_resident_bytes", static_cast<int64_t>(usage.ru_maxrss) * 1024},
                   {"kernels", static_cast<int64_t>(summary.kernels)},
                   {"launches", static_cast<int64_t>(summary.launches)},
                   {"code_bytes", static_cast<int64_t>(summary.codeBytes)},
                   {"weight_bytes", static_cast<int64_t>(summary.weightBytes)},
                   {"file_bytes", static_cast<int64_t>(summary.fileBytes)},
                   {"arena_bytes", summary.arenaBytes},
                   {"arena_lower_bound_bytes", summary.lowerBoundBytes}};
  return formatv("{0:2}\n", json::Value(std::move(all))).str();
}

} // namespace ptc
