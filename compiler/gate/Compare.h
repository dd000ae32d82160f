// Two baselines into findings. Pure: nothing is read, compiled or printed.
#ifndef PTC_COMPILER_GATE_COMPARE_H
#define PTC_COMPILER_GATE_COMPARE_H

#include "compiler/gate/Baseline.h"

namespace ptc::gate {

/// All differences in the order of FindingKinds.def, equal ones merged. Tolerances and waivers are those of `before`;
/// `today` (YYYY-MM-DD) ends waivers. `measured` are findings that no two recordings tell (times, threads, ...).
std::vector<Finding> compare(const Baseline &before, const Baseline &after, llvm::StringRef today,
                             std::vector<Finding> measured = {});

/// The parts of compare(); each appends.
void compareKernels(const Baseline &before, const Baseline &after, std::vector<Finding> &findings);
void compareCode(const artifact::KernelEntry &before, const artifact::KernelEntry &after, const Tolerances &tolerances,
                 std::vector<Finding> &findings);
/// Buffers of nodes that `findings` says are fused otherwise, or that these write, are left out: that explains them.
void compareMemory(const Baseline &before, const Baseline &after, std::vector<Finding> &findings);
void compareInterface(const Baseline &before, const Baseline &after, std::vector<Finding> &findings);
void applyWaivers(llvm::ArrayRef<Waiver> waivers, llvm::StringRef today, std::vector<Finding> &findings);

/// A finding about a number of which fewer (or more) is better.
Finding findingOf(FindingKind kind, std::string subject, std::string what, int64_t before, int64_t after,
                  bool isMoreBetter = false);
/// Appends a finding if the amounts differ, in value at the hint or as expressions. Fewer is better.
void compareAmounts(FindingKind kind, const std::string &subject, const std::string &what,
                    const artifact::Amount &before, const artifact::Amount &after, std::vector<Finding> &findings);

/// Whether an amount moved by more than a tolerance ("1%", "64", "": exact).
bool exceeds(int64_t before, int64_t after, llvm::StringRef tolerance);

struct Verdict {
  unsigned regressions = 0; // and changes
  unsigned improvements = 0;
  unsigned waived = 0;
  bool passes(bool allowImprovements) const { return !regressions && (allowImprovements || !improvements); }
};
Verdict judge(llvm::ArrayRef<Finding> findings);

} // namespace ptc::gate

#endif // PTC_COMPILER_GATE_COMPARE_H
