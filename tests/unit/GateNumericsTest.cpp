#include "compiler/gate/Numerics.h"

#include <catch2/catch.hpp>

using namespace ptc::gate;

namespace {

NumericRow row(int64_t maxUlp, int64_t p99Ulp) {
  NumericRow row{.function = "main", .output = "y", .level = "x86-64-v3", .maxUlp = maxUlp, .p99Ulp = p99Ulp};
  row.maxUlpTolerance = defaultUlpTolerance(maxUlp);
  row.p99UlpTolerance = defaultUlpTolerance(p99Ulp);
  return row;
}

std::vector<Finding> compareRows(const NumericRow &before, const NumericRow &after) {
  std::vector<Finding> findings;
  compareNumerics({before}, {after}, findings);
  return findings;
}

} // namespace

TEST_CASE("Distances within their tolerance are no finding, in neither direction") {
  CHECK(compareRows(row(100, 4), row(100, 4)).empty());
  CHECK(compareRows(row(100, 4), row(202, 10)).empty());
  CHECK(compareRows(row(100, 4), row(49, 1)).empty());
  CHECK(compareRows(row(0, 0), row(2, 1)).empty());
}

TEST_CASE("A distance beyond its tolerance is a regression of that output") {
  std::vector<Finding> findings = compareRows(row(100, 4), row(203, 5));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == FindingKind::Accuracy);
  CHECK(findings[0].direction == Direction::Regression);
  CHECK(findings[0].subject == "output y");
  CHECK(findings[0].after == "203");
  CHECK(findings[0].tolerance == "202");
}

TEST_CASE("A regression names the nodes that a search has found, or says how to search") {
  NumericRow worse = row(203, 5);
  CHECK_THAT(compareRows(row(100, 4), worse)[0].reason,
             Catch::Matchers::StartsWith("ptc verify MODEL.onnx --per-node"));
  worse.nodes = {"soft"};
  worse.cause = "first differs at node 'soft'";
  std::vector<Finding> findings = compareRows(row(100, 4), worse);
  CHECK(findings[0].nodes == worse.nodes);
  CHECK(findings[0].reason == worse.cause);
}

TEST_CASE("A distance that is less by more than the tolerance is an improvement") {
  std::vector<Finding> findings = compareRows(row(100, 40), row(100, 4));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].direction == Direction::Improvement);
}

TEST_CASE("A tolerance that is stricter than the recorded figure is no improvement") {
  NumericRow before = row(100, 4);
  before.maxUlpTolerance = 30;
  std::vector<Finding> findings = compareRows(before, row(90, 4));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].direction == Direction::Regression);
}

TEST_CASE("A tolerance that a person wrote holds") {
  NumericRow before = row(100, 4);
  before.maxUlpTolerance = 1000;
  CHECK(compareRows(before, row(900, 4)).empty());
}

TEST_CASE("Rows of other levels and seeds are not compared") {
  NumericRow other = row(5000, 5000);
  other.level = "x86-64-v4";
  CHECK(compareRows(row(0, 0), other).empty());
  other = row(5000, 5000);
  other.seed = 1;
  CHECK(compareRows(row(0, 0), other).empty());
}

TEST_CASE("NaN where the reference has none, and bits that depend on threads, are regressions whatever was recorded") {
  NumericRow wrong = row(0, 0);
  wrong.nans = 3;
  wrong.threadsEqual = false;
  std::vector<Finding> findings;
  checkNumerics({wrong}, findings);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].kind == FindingKind::NonFinite);
  CHECK(findings[1].kind == FindingKind::Threads);
  wrong = row(0, 0);
  wrong.nans = wrong.nansExpected = 3;
  findings.clear();
  checkNumerics({wrong}, findings);
  CHECK(findings.empty());
}

TEST_CASE("A row is the same after it was written and read") {
  NumericRow before = row(INT64_MAX, 7);
  before.digest = "0123";
  before.nans = before.nansExpected = 2;
  before.seed = 5;
  llvm::Expected<NumericRow> after = parseNumericRow(toJson(before));
  REQUIRE(bool(after));
  CHECK(toJson(*after) == toJson(before));
  CHECK(after->maxUlpTolerance == INT64_MAX);
}
