#include "compiler/gate/Numerics.h"

using namespace llvm;

namespace ptc::gate {

json::Value toJson(const NumericRow &row) {
  return json::Object{{"function", row.function},
                      {"infinities", row.infinities},
                      {"max_ulp", row.maxUlp},
                      {"max_ulp_tolerance", row.maxUlpTolerance},
                      {"nans", row.nans},
                      {"output", row.output},
                      {"p99_ulp", row.p99Ulp},
                      {"p99_ulp_tolerance", row.p99UlpTolerance},
                      {"threads_equal", row.threadsEqual}};
}

Expected<NumericRow> parseNumericRow(const json::Value &value) {
  json::Path::Root root("numerics");
  json::ObjectMapper map(value, root);
  NumericRow row;
  if (map && map.map("function", row.function) && map.map("infinities", row.infinities) &&
      map.map("max_ulp", row.maxUlp) && map.map("max_ulp_tolerance", row.maxUlpTolerance) &&
      map.map("nans", row.nans) && map.map("output", row.output) && map.map("p99_ulp", row.p99Ulp) &&
      map.map("p99_ulp_tolerance", row.p99UlpTolerance) && map.map("threads_equal", row.threadsEqual))
    return row;
  return root.getError();
}

static Finding findingOf(FindingKind kind, const NumericRow &row, StringRef what, int64_t before, int64_t after) {
  return {.kind = kind,
          .direction = after > before ? Direction::Regression : Direction::Improvement,
          .subject = "output " + row.output,
          .what = what.str(),
          .before = std::to_string(before),
          .after = std::to_string(after)};
}

static void compareRow(const NumericRow &before, const NumericRow &after, std::vector<Finding> &findings) {
  auto compareUlp = [&](StringRef what, int64_t recorded, int64_t tolerance, int64_t measured) {
    if (measured <= tolerance)
      return;
    findings.push_back(findingOf(FindingKind::Accuracy, before, what, recorded, measured));
    findings.back().tolerance = std::to_string(tolerance);
  };
  compareUlp("largest distance to the reference in ulp", before.maxUlp, before.maxUlpTolerance, after.maxUlp);
  compareUlp("99th percentile of the distance in ulp", before.p99Ulp, before.p99UlpTolerance, after.p99Ulp);
  if (before.nans != after.nans)
    findings.push_back(findingOf(FindingKind::NonFinite, before, "NaN", before.nans, after.nans));
  if (before.infinities != after.infinities)
    findings.push_back(findingOf(FindingKind::NonFinite, before, "infinities", before.infinities, after.infinities));
  if (before.threadsEqual != after.threadsEqual)
    findings.push_back(findingOf(FindingKind::Threads, before, "outputs whose bits depend on the number of threads",
                                 !before.threadsEqual, !after.threadsEqual));
}

void compareNumerics(ArrayRef<NumericRow> before, ArrayRef<NumericRow> after, std::vector<Finding> &findings) {
  for (const NumericRow &row : before)
    for (const NumericRow &other : after)
      if (row.function == other.function && row.output == other.output)
        compareRow(row, other, findings);
}

} // namespace ptc::gate
