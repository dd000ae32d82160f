#include "compiler/gate/Compare.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ptc::gate {

bool exceeds(int64_t before, int64_t after, StringRef tolerance) {
  uint64_t moved = before > after ? uint64_t(before) - uint64_t(after) : uint64_t(after) - uint64_t(before);
  double limit = 0;
  bool isShare = tolerance.consume_back("%");
  if (!tolerance.empty() && tolerance.getAsDouble(limit))
    limit = 0; // what is no number tolerates nothing
  return double(moved) > (isShare ? limit / 100 * std::abs(double(before)) : limit);
}

Finding findingOf(FindingKind kind, std::string subject, std::string what, int64_t before, int64_t after,
                  bool isMoreBetter) {
  return {.kind = kind,
          .direction = (after > before) == isMoreBetter ? Direction::Improvement : Direction::Regression,
          .subject = std::move(subject),
          .what = std::move(what),
          .before = std::to_string(before),
          .after = std::to_string(after)};
}

void compareAmounts(FindingKind kind, const std::string &subject, const std::string &what,
                    const artifact::Amount &before, const artifact::Amount &after, std::vector<Finding> &findings) {
  if (before.atHint == after.atHint && before.text == after.text)
    return;
  Finding finding = findingOf(kind, subject, what, before.atHint, after.atHint);
  if (before.atHint == after.atHint)
    finding.direction = Direction::Change;
  for (auto [text, amount] : {std::pair(&finding.before, &before), {&finding.after, &after}})
    if (amount->text != *text)
      *text += " at the hint (" + amount->text + ")";
  findings.push_back(std::move(finding));
}

/// Equal but for where: twelve equal layers are one line of a report.
static bool areAlike(const Finding &a, const Finding &b) {
  return a.kind == b.kind && a.direction == b.direction && a.what == b.what && a.before == b.before &&
         a.after == b.after && a.tolerance == b.tolerance && a.reason == b.reason && a.waiver == b.waiver;
}

static std::vector<Finding> merged(std::vector<Finding> findings) {
  std::vector<Finding> result;
  for (Finding &finding : findings) {
    auto same = find_if(result, [&](const Finding &other) { return areAlike(other, finding); });
    if (same == result.end())
      result.push_back(std::move(finding));
    else
      same->alike += 1 + finding.alike;
  }
  llvm::stable_sort(result, [](const Finding &a, const Finding &b) { return a.kind < b.kind; });
  return result;
}

std::vector<Finding> compare(const Baseline &before, const Baseline &after, StringRef today,
                             std::vector<Finding> measured) {
  std::vector<Finding> findings;
  compareKernels(before, after, findings);
  compareMemory(before, after, findings);
  compareInterface(before, after, findings);
  compareNumerics(before.numerics, after.numerics, findings);
  append_range(findings, measured);
  applyWaivers(before.waivers, today, findings);
  return merged(std::move(findings));
}

Verdict judge(ArrayRef<Finding> findings) {
  Verdict verdict;
  for (const Finding &finding : findings) {
    unsigned &count = !finding.waiver.empty()                       ? verdict.waived
                      : finding.direction == Direction::Improvement ? verdict.improvements
                                                                    : verdict.regressions;
    count += 1 + finding.alike;
  }
  return verdict;
}

} // namespace ptc::gate
