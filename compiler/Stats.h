// What a compile did, in numbers.
#ifndef PTC_COMPILER_STATS_H
#define PTC_COMPILER_STATS_H

#include "compiler/Pipeline.h"

namespace ptc {

/// Counts and sizes of the finished artefact.
struct ArtefactSummary {
  size_t kernels = 0;  // distinct
  size_t launches = 0; // in the program
  uint64_t codeBytes = 0, weightBytes = 0, fileBytes = 0;
  int64_t arenaBytes = 0, lowerBoundBytes = 0; // at the hint
};

/// JSON: seconds of each stage, the summary, peak memory of this process.
std::string formatStats(const Compilation &compilation, const ArtefactSummary &summary);

} // namespace ptc

#endif // PTC_COMPILER_STATS_H
