// What `ptc gate` does with a freshly compiled library besides reading its manifest: the numeric and the time tier.
#ifndef PTC_CLI_GATE_LIBRARYTIERS_H
#define PTC_CLI_GATE_LIBRARYTIERS_H

#include "cli/gate/NumericTier.h"
#include "cli/gate/TimeTier.h"
#include "compiler/gate/Observe.h"

namespace ptc {

struct LibraryTiers {
  bool skipsNumerics = false;
  bool namesNodes = false;         // that make results worse than recorded
  std::vector<uint64_t> seeds;     // none: those that were recorded, of a new recording 0
  std::vector<std::string> inputs; // likewise: specs for inputs that random numbers do not suit
  std::string against;             // a library, or a folder of them; empty: no time tier
  double tolerance = 5;            // percent of time

  /// Whether results are measured on other inputs than were recorded, or for the first time.
  bool measuresAnew(const gate::Baseline *recorded) const { return !recorded || !seeds.empty() || !inputs.empty(); }
  bool measuresResults(const gate::Baseline *recorded) const {
    return !skipsNumerics && (measuresAnew(recorded) || !recorded->numerics.empty());
  }
  bool runsLibrary(const gate::Baseline *recorded) const { return !against.empty() || measuresResults(recorded); }
};

/// Fills in `observed`: the rows of its numerics, and what is wrong whatever was recorded. `recorded` is null when a
/// baseline is made.
llvm::Error measureLibrary(Session &session, const LibraryTiers &tiers, const CompileOptions &options,
                           const gate::Baseline *recorded, gate::Observed &observed);

} // namespace ptc

#endif // PTC_CLI_GATE_LIBRARYTIERS_H
