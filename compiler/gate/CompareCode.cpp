// One kernel's machine code against what it was, level by level: size, loops, vectors, registers, spills, stack.
#include "compiler/gate/Compare.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ptc::gate {

namespace {
enum class Better { Fewer, More, Neither };
struct FactRow {
  StringLiteral name, text;
  int64_t object::CodeFacts::*field;
  Better better;
};
} // namespace

static constexpr FactRow facts[] = {
#define CODE_FACT(field, name, text, better) {name, text, &object::CodeFacts::field, Better::better},
#include "codegen/object/CodeFacts.def"
#undef CODE_FACT
};

static bool isAboutLoops(const FactRow &row) {
  return row.field == &object::CodeFacts::vectorLoops || row.field == &object::CodeFacts::scalarLoops;
}

/// Both numbers of loops are one fact: a loop that stops being vectorised moves from the one to the other.
static void compareLoops(const object::CodeFacts &before, const object::CodeFacts &after, const std::string &subject,
                         std::vector<Finding> &findings) {
  if (before.vectorLoops == after.vectorLoops && before.scalarLoops == after.scalarLoops)
    return;
  auto text = [](const object::CodeFacts &facts) {
    return std::to_string(facts.vectorLoops) + " over vectors and " + std::to_string(facts.scalarLoops) +
           " over single elements";
  };
  Finding finding{.kind = FindingKind::Vectorization,
                  .subject = subject,
                  .what = "innermost loops",
                  .before = text(before),
                  .after = text(after)};
  if (after.scalarLoops != before.scalarLoops)
    finding.direction = after.scalarLoops > before.scalarLoops ? Direction::Regression : Direction::Improvement;
  if (after.scalarLoops > before.scalarLoops && after.vectorLoops < before.vectorLoops)
    finding.reason = "a loop that was vectorised is scalar";
  findings.push_back(std::move(finding));
}

static void compareLevel(const artifact::CodeEntry &before, const artifact::CodeEntry &after,
                         const std::string &subject, const Tolerances &tolerances, std::vector<Finding> &findings) {
  if (exceeds(before.bytes, after.bytes, tolerances.codeBytes)) {
    findings.push_back(findingOf(FindingKind::CodeSize, subject, "bytes of machine code", before.bytes, after.bytes));
    findings.back().tolerance = tolerances.codeBytes;
  }
  compareLoops(before.facts, after.facts, subject, findings);
  for (const FactRow &row : facts) {
    int64_t was = before.facts.*row.field, now = after.facts.*row.field;
    if (was == now || isAboutLoops(row))
      continue;
    bool isWidth = row.field == &object::CodeFacts::vectorBits;
    Finding finding = findingOf(isWidth ? FindingKind::Vectorization : FindingKind::Registers, subject, row.text.str(),
                                was, now, row.better == Better::More);
    if (row.better == Better::Neither)
      finding.direction = Direction::Change;
    if (isWidth && !now)
      finding.reason = "no vectors are used any more";
    findings.push_back(std::move(finding));
  }
}

void compareCode(const artifact::KernelEntry &before, const artifact::KernelEntry &after, const Tolerances &tolerances,
                 std::vector<Finding> &findings) {
  for (const artifact::CodeEntry &code : after.code) {
    auto found = find_if(before.code, [&](const auto &other) { return other.level == code.level; });
    if (found != before.code.end()) // other levels are a change of the interface
      compareLevel(*found, code, "kernel " + after.name + " for " + code.level, tolerances, findings);
  }
}

} // namespace ptc::gate
