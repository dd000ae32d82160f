// Waivers: findings that may be, until a day. After it the finding counts again, and the waiver itself is one, so that
// it is either removed or given another day in a review.
#include "compiler/gate/Compare.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ptc::gate {

static bool covers(const Waiver &waiver, const Finding &finding) {
  bool isKind = waiver.finding.empty() || waiver.finding == getRow(finding.kind).name;
  bool isNode = waiver.node.empty() || is_contained(finding.nodes, waiver.node) ||
                StringRef(finding.subject).split(' ').second == waiver.node;
  return isKind && isNode;
}

void applyWaivers(ArrayRef<Waiver> waivers, StringRef today, std::vector<Finding> &findings) {
  std::vector<Finding> ended;
  for (const Waiver &waiver : waivers) {
    bool isOver = StringRef(waiver.until) < today; // days in this form sort as text
    for (Finding &finding : findings)
      if (!isOver && finding.waiver.empty() && covers(waiver, finding))
        finding.waiver = waiver.reason + " (until " + waiver.until + ")";
    if (!isOver)
      continue;
    std::string what = waiver.finding.empty() ? "all findings" : "'" + waiver.finding + "'";
    ended.push_back({.kind = FindingKind::Waiver,
                     .direction = Direction::Regression,
                     .subject = "waiver of " + what + (waiver.node.empty() ? "" : " at '" + waiver.node + "'"),
                     .what = "ended on " + waiver.until,
                     .reason = "it said: " + waiver.reason +
                               "; remove it from the baseline's 'waivers', or give it "
                               "another last day"});
    if (!waiver.node.empty())
      ended.back().nodes = {waiver.node};
  }
  append_range(findings, ended);
}

} // namespace ptc::gate
