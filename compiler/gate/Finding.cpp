#include "compiler/gate/Finding.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc::gate {

static constexpr FindingRow rows[] = {
#define FINDING(Name, name, tier, text) {FindingKind::Name, name, text, Tier::tier},
#include "compiler/gate/FindingKinds.def"
#undef FINDING
};

ArrayRef<FindingRow> getFindingRows() { return rows; }
const FindingRow &getRow(FindingKind kind) { return rows[static_cast<size_t>(kind)]; }

StringRef getName(Direction direction) {
  switch (direction) {
  case Direction::Regression:
    return "regression";
  case Direction::Improvement:
    return "improvement";
  case Direction::Change:
    return "change";
  }
  llvm_unreachable("all directions have a name");
}

bool isOfRecord(const Finding &finding) {
  switch (finding.kind) {
  case FindingKind::Reproducibility:
  case FindingKind::Threads:
  case FindingKind::Time:
  case FindingKind::Waiver:
    return false;
  case FindingKind::NonFinite:
    return finding.direction == Direction::Change; // else the reference has another number
  default:
    return true;
  }
}

std::string describe(const Finding &finding) {
  std::string text = finding.what;
  if (!finding.before.empty() && !finding.after.empty())
    text += ": " + finding.after + ", was " + finding.before;
  else if (!finding.after.empty())
    text += ": " + finding.after;
  else if (!finding.before.empty())
    text += ": was " + finding.before;
  if (!finding.tolerance.empty())
    text += " (tolerance " + finding.tolerance + ")";
  if (!finding.reason.empty())
    text += "; " + finding.reason;
  if (!finding.detail.empty())
    text += "; " + finding.detail;
  if (finding.alike)
    text += "; and " + std::to_string(finding.alike) + " more like this";
  return text;
}

std::string describeSubject(const Finding &finding) {
  constexpr size_t most = 6;
  if (finding.nodes.empty())
    return finding.subject;
  std::string text = finding.subject + " (" + (finding.nodes.size() > 1 ? "nodes " : "node ");
  text += join(ArrayRef(finding.nodes).take_front(most), ", ");
  if (finding.nodes.size() > most)
    text += " and " + std::to_string(finding.nodes.size() - most) + " more";
  return text + ")";
}

} // namespace ptc::gate
