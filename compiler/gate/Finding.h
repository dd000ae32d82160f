// What a gate says: one difference between what was recorded and what is, in words that suffice to act on it.
#ifndef PTC_COMPILER_GATE_FINDING_H
#define PTC_COMPILER_GATE_FINDING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace ptc::gate {

enum class Tier : uint8_t { Static, Numeric, Time };

enum class FindingKind : uint8_t {
#define FINDING(Name, name, tier, text) Name,
#include "compiler/gate/FindingKinds.def"
#undef FINDING
};

/// A Change is neither better nor worse; it fails a check as a Regression does.
enum class Direction : uint8_t { Regression, Improvement, Change };

struct Finding {
  FindingKind kind;
  Direction direction = Direction::Change;
  std::string subject;            // "kernel conv_relu", "function main", "output logits", "model"
  std::vector<std::string> nodes; // the user's nodes that it is about
  std::string what;               // the fact: "bytes written at the hint"
  std::string before, after;      // as text; empty where there is none
  std::string tolerance;          // "1%"; empty: exact
  std::string reason;             // why, as far as ptc can tell: the scheduler's refusal
  std::string detail;             // which nodes in particular; not part of what makes two findings alike
  unsigned alike = 0;             // others that differ from this one in subject, nodes and detail alone
  std::string waiver;             // why it does not count; empty: it counts
};

struct FindingRow {
  FindingKind kind;
  llvm::StringLiteral name, text;
  Tier tier;
};
llvm::ArrayRef<FindingRow> getFindingRows();
const FindingRow &getRow(FindingKind kind);
llvm::StringRef getName(Direction direction);

/// Whether it is about what a baseline holds, so that an update makes it go away.
bool isOfRecord(const Finding &finding);

/// The finding as one sentence without its subject: "bytes written at the hint: 4096, was 2048; reason".
std::string describe(const Finding &finding);
/// "kernel conv_relu (nodes a, b, c and 4 more)".
std::string describeSubject(const Finding &finding);

} // namespace ptc::gate

#endif // PTC_COMPILER_GATE_FINDING_H
