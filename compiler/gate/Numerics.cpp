// Rows of figures, compared where level, seed, function and output are the same. A figure within its tolerance is no
// finding, in either direction: the tolerance of what is measured now says whether what was recorded has become better
// by more than noise of the kind.
#include "compiler/gate/Numerics.h"

using namespace llvm;

namespace ptc::gate {

int64_t defaultUlpTolerance(int64_t ulp) {
  constexpr int64_t few = 2;
  return ulp > (INT64_MAX - few) / 2 ? INT64_MAX : 2 * ulp + few;
}

static bool isSameOutput(const NumericRow &a, const NumericRow &b) {
  return a.function == b.function && a.output == b.output && a.level == b.level && a.seed == b.seed;
}

bool isWorse(const NumericRow &recorded, const NumericRow &measured) {
  return measured.maxUlp > recorded.maxUlpTolerance || measured.p99Ulp > recorded.p99UlpTolerance ||
         measured.nans != measured.nansExpected || measured.infinities != measured.infinitiesExpected;
}

const NumericRow *findRow(ArrayRef<NumericRow> recorded, const NumericRow &measured) {
  auto found = find_if(recorded, [&](const NumericRow &row) { return isSameOutput(row, measured); });
  return found == recorded.end() ? nullptr : &*found;
}

json::Value toJson(const NumericRow &row) {
  return json::Object{{"digest", row.digest},
                      {"function", json::fixUTF8(row.function)},
                      {"infinities", row.infinities},
                      {"level", row.level},
                      {"max_ulp", row.maxUlp},
                      {"max_ulp_tolerance", row.maxUlpTolerance},
                      {"nans", row.nans},
                      {"output", json::fixUTF8(row.output)},
                      {"p99_ulp", row.p99Ulp},
                      {"p99_ulp_tolerance", row.p99UlpTolerance},
                      {"seed", row.seed}};
}

Expected<NumericRow> parseNumericRow(const json::Value &value) {
  json::Path::Root root("numerics");
  json::ObjectMapper map(value, root);
  NumericRow row;
  if (map && map.map("digest", row.digest) && map.map("function", row.function) &&
      map.map("infinities", row.infinities) && map.map("level", row.level) && map.map("max_ulp", row.maxUlp) &&
      map.map("max_ulp_tolerance", row.maxUlpTolerance) && map.map("nans", row.nans) && map.map("output", row.output) &&
      map.map("p99_ulp", row.p99Ulp) && map.map("p99_ulp_tolerance", row.p99UlpTolerance) &&
      map.map("seed", row.seed)) {
    row.nansExpected = row.nans;
    row.infinitiesExpected = row.infinities;
    return row;
  }
  return root.getError();
}

static Finding findingOf(FindingKind kind, const NumericRow &row, StringRef what, int64_t before, int64_t after) {
  return {.kind = kind,
          .direction = after > before ? Direction::Regression : Direction::Improvement,
          .subject = "output " + row.output,
          .what = (what + " at " + row.level).str(),
          .before = std::to_string(before),
          .after = std::to_string(after)};
}

static void compareDistance(const NumericRow &row, StringRef what, int64_t recorded, int64_t tolerance,
                            int64_t measured, std::vector<Finding> &findings) {
  bool isWorse = measured > tolerance, isBetter = defaultUlpTolerance(measured) < recorded;
  if (!isWorse && !isBetter)
    return;
  findings.push_back(findingOf(FindingKind::Accuracy, row, what, recorded, measured));
  if (!isWorse)
    return;
  findings.back().direction = Direction::Regression; // also of a tolerance that is stricter than what was recorded
  findings.back().tolerance = std::to_string(tolerance);
  findings.back().nodes = row.nodes;
  findings.back().reason = row.cause;
  if (row.nodes.empty())
    findings.back().reason +=
        (row.cause.empty() ? "" : "; ") +
        std::string("ptc verify MODEL.onnx --per-node, with the flags of the baseline, compares node by node");
}

static void compareRow(const NumericRow &before, const NumericRow &after, std::vector<Finding> &findings) {
  compareDistance(after, "largest distance to the reference in ulp", before.maxUlp, before.maxUlpTolerance,
                  after.maxUlp, findings);
  compareDistance(after, "99th percentile of the distance to the reference in ulp", before.p99Ulp,
                  before.p99UlpTolerance, after.p99Ulp, findings);
  auto compareCount = [&](StringRef what, int64_t recorded, int64_t measured, int64_t expected) {
    if (recorded == measured || measured != expected) // the latter is checkNumerics' to tell
      return;
    findings.push_back(findingOf(FindingKind::NonFinite, after, what, recorded, measured));
    findings.back().direction = Direction::Change; // the reference has them too: the model is another one
  };
  compareCount("NaN", before.nans, after.nans, after.nansExpected);
  compareCount("infinities", before.infinities, after.infinities, after.infinitiesExpected);
}

static bool isOneRun(const NumericRow &a, const NumericRow &b) { return a.level == b.level && a.seed == b.seed; }

void keepTolerances(ArrayRef<NumericRow> before, MutableArrayRef<NumericRow> after) {
  for (const NumericRow &old : before)
    for (NumericRow &row : after) {
      if (!isSameOutput(old, row))
        continue;
      if (old.maxUlpTolerance != defaultUlpTolerance(old.maxUlp))
        row.maxUlpTolerance = old.maxUlpTolerance;
      if (old.p99UlpTolerance != defaultUlpTolerance(old.p99Ulp))
        row.p99UlpTolerance = old.p99UlpTolerance;
    }
}

void compareNumerics(ArrayRef<NumericRow> before, ArrayRef<NumericRow> after, std::vector<Finding> &findings) {
  for (const NumericRow &row : after) {
    auto old = find_if(before, [&](const NumericRow &other) { return isSameOutput(row, other); });
    if (old != before.end())
      compareRow(*old, row, findings);
    else if (any_of(before, [&](const NumericRow &other) { return isOneRun(row, other); })) // a line that got lost
      findings.push_back({.kind = FindingKind::Accuracy,
                          .direction = Direction::Change,
                          .subject = "output " + row.output,
                          .what = "its distance to the reference at " + row.level,
                          .before = "not recorded",
                          .after = std::to_string(row.maxUlp) + " ulp"});
  }
}

void checkNumerics(ArrayRef<NumericRow> rows, std::vector<Finding> &findings) {
  for (const NumericRow &row : rows) {
    auto compareCount = [&](StringRef what, int64_t expected, int64_t measured) {
      if (expected == measured)
        return;
      findings.push_back(findingOf(FindingKind::NonFinite, row, what, expected, measured));
      findings.back().direction = Direction::Regression;
      findings.back().nodes = row.nodes;
      findings.back().reason = "the reference has " + std::to_string(expected);
      if (!row.cause.empty())
        findings.back().reason += "; " + row.cause;
    };
    compareCount("NaN", row.nansExpected, row.nans);
    compareCount("infinities", row.infinitiesExpected, row.infinities);
    if (row.threadsEqual)
      continue;
    findings.push_back({.kind = FindingKind::Threads,
                        .direction = Direction::Regression,
                        .subject = "output " + row.output,
                        .what = "its bits with several threads at " + row.level,
                        .before = "those with one thread",
                        .after = "other ones"});
  }
}

} // namespace ptc::gate
