// What a gate finds between two baselines: each kind of regression by node and reason, and nothing else.
#include "compiler/gate/Compare.h"
#include "compiler/gate/Report.h"
#include "llvm/ADT/STLExtras.h"
#include <catch2/catch.hpp>

using namespace ptc;
using namespace ptc::gate;

namespace {

constexpr llvm::StringLiteral level = "x86-64-v3", day = "2026-06-15";

artifact::KernelEntry kernel(std::string name, std::vector<std::vector<std::string>> launches) {
  artifact::KernelEntry entry{.name = std::move(name),
                              .kind = "pointwise",
                              .launches = std::move(launches),
                              .flops = {"10*batch", 40},
                              .bytesRead = {"64", 64},
                              .bytesWritten = {"64", 64}};
  object::CodeFacts facts;
  facts.vectorBits = 256;
  facts.vectorLoops = 2;
  entry.code.push_back({level.str(), 1000, facts});
  return entry;
}

artifact::BufferEntry buffer(std::string node, std::string lastReadBy) {
  return {.function = "main",
          .node = node,
          .bytes = {"64", 64},
          .alignment = 64,
          .writtenBy = node,
          .lastReadBy = lastReadBy,
          .keptFor = lastReadBy};
}

/// Three kernels in a row: conv and relu fused, then add, then softmax in two equal layers.
Baseline sample() {
  Baseline baseline{.model = "m.onnx", .modelDigest = "12", .target = "cpu", .levels = {level.str()}};
  baseline.kernels = {kernel("conv_relu", {{"conv", "relu"}}), kernel("add", {{"add"}}),
                      kernel("softmax", {{"softmax1"}, {"softmax2"}})};
  baseline.memory = {{.function = "main", .peak = {"128", 128}, .lowerBound = {"128", 128}}};
  baseline.buffers = {buffer("relu", "add"), buffer("add", "softmax1")};
  baseline.interface =
      llvm::json::Array{llvm::json::Object{{"function", "main"}, {"is", "input"}, {"name", "x"}, {"dtype", "float32"}}};
  return baseline;
}

std::vector<Finding> compareWith(llvm::function_ref<void(Baseline &)> change) {
  Baseline after = sample();
  change(after);
  return compare(sample(), after, day);
}

const Finding &only(const std::vector<Finding> &findings, FindingKind kind) {
  auto isKind = [&](const Finding &finding) { return finding.kind == kind; };
  REQUIRE(llvm::count_if(findings, isKind) == 1);
  return *llvm::find_if(findings, isKind);
}

} // namespace

TEST_CASE("gate: what is as recorded has no findings, whatever its kernels are called") {
  CHECK(compareWith([](Baseline &) {}).empty());
  CHECK(compareWith([](Baseline &after) {
          after.kernels[0].name = "conv_relu_again";
          std::swap(after.kernels[0], after.kernels[1]);
          after.refusals.push_back({"they differ", {{"conv", "add"}}});
        }).empty());
}

TEST_CASE("gate: a lost fusion is named by its nodes, with the scheduler's reason") {
  auto findings = compareWith([](Baseline &after) {
    after.kernels[0] = kernel("conv", {{"conv"}});
    after.kernels.push_back(kernel("relu", {{"relu"}}));
    after.refusals = {{"its rows are too long", {{"conv", "relu"}}}, {"of no matter", {{"add", "softmax1"}}}};
  });
  const Finding &fusion = only(findings, FindingKind::Fusion);
  CHECK(fusion.direction == Direction::Regression);
  CHECK(fusion.nodes == std::vector<std::string>{"conv", "relu"});
  CHECK((fusion.before == "1" && fusion.after == "2"));
  CHECK(fusion.reason == "its rows are too long");
  CHECK(llvm::StringRef(fusion.detail).contains("'relu' is not fused with its producer 'conv'"));
  CHECK(only(findings, FindingKind::Kernel).what == "launches in all");
}

TEST_CASE("gate: a gained fusion is an improvement, which fails unless it is allowed") {
  Baseline before = sample(), after = sample();
  after.kernels = {kernel("conv_relu_add", {{"conv", "relu", "add"}}), before.kernels[2]};
  auto findings = compare(before, after, day);
  CHECK(only(findings, FindingKind::Fusion).direction == Direction::Improvement);
  Verdict verdict = judge(findings);
  CHECK(verdict.regressions == 0);
  CHECK_FALSE(verdict.passes(/*allowImprovements=*/false));
  CHECK(verdict.passes(/*allowImprovements=*/true));
}

TEST_CASE("gate: an extra launch of a node is a copy that was not there") {
  auto findings = compareWith([](Baseline &after) { after.kernels.push_back(kernel("copy", {{"add"}})); });
  auto extra = llvm::find_if(findings, [](const Finding &f) { return f.what == "a launch that was not there"; });
  REQUIRE(extra != findings.end());
  CHECK(extra->direction == Direction::Regression);
  CHECK(extra->nodes == std::vector<std::string>{"add"});
}

TEST_CASE("gate: a loop that turns scalar, spills and larger code are found on their level") {
  auto findings = compareWith([](Baseline &after) {
    object::CodeFacts &facts = after.kernels[1].code[0].facts;
    facts.vectorLoops = facts.scalarLoops = 1;
    facts.spills = 3;
    after.kernels[1].code[0].bytes = 1011;
    after.kernels[0].code[0].bytes = 1010; // within one percent
  });
  const Finding &loops = only(findings, FindingKind::Vectorization);
  CHECK(loops.direction == Direction::Regression);
  CHECK(loops.subject == "kernel add for x86-64-v3");
  CHECK(loops.nodes == std::vector<std::string>{"add"});
  CHECK(loops.reason == "a loop that was vectorised is scalar");
  CHECK(only(findings, FindingKind::Registers).after == "3");
  CHECK(only(findings, FindingKind::CodeSize).subject == "kernel add for x86-64-v3");
}

TEST_CASE("gate: an unaligned buffer, one kept too long and one no longer reused in place are named") {
  auto findings = compareWith([](Baseline &after) {
    after.buffers[0].alignment = 4;
    after.buffers[1].keptUntil = 1;
    after.buffers[1].keptFor = "softmax2";
    after.memory[0].peak = {"192", 192};
  });
  const Finding &alignment = only(findings, FindingKind::Alignment);
  CHECK((alignment.subject == "buffer of 'relu'" && alignment.after == "4"));
  const Finding &life = only(findings, FindingKind::LiveRange);
  CHECK(life.direction == Direction::Regression);
  CHECK(life.nodes == std::vector<std::string>{"add"});
  CHECK((life.after == "'softmax2'" && life.reason == "it is read for the last time by 'softmax1'"));
  CHECK(only(findings, FindingKind::PeakMemory).direction == Direction::Regression);

  Baseline before = sample();
  before.buffers[1].reuses = "relu";
  CHECK(only(compare(before, sample(), day), FindingKind::LiveRange).direction == Direction::Regression);
  CHECK(only(compare(sample(), before, day), FindingKind::LiveRange).direction == Direction::Improvement);
}

TEST_CASE("gate: bytes and operations count as expressions too") {
  auto findings = compareWith([](Baseline &after) {
    after.kernels[2].flops = {"10*batch*batch", 40};
    after.kernels[1].bytesWritten = {"128", 128};
  });
  const Finding &work = only(findings, FindingKind::Work);
  CHECK(work.direction == Direction::Change);
  CHECK(work.alike == 1); // both launches of softmax
  CHECK(llvm::count_if(findings, [](const Finding &f) { return f.kind == FindingKind::Traffic; }) == 2);
}

TEST_CASE("gate: a changed interface is named") {
  auto findings = compareWith([](Baseline &after) {
    after.interface = llvm::json::Array{
        llvm::json::Object{{"function", "main"}, {"is", "input"}, {"name", "x"}, {"dtype", "float16"}}};
    after.levels = {"x86-64-v4"};
  });
  CHECK(findings.size() == 2);
  CHECK((findings[0].subject == "input x" && findings[0].what == "dtype" && findings[0].before == "\"float32\""));
}

TEST_CASE("gate: a waiver holds up to its day, and is a finding after it") {
  Baseline before = sample(), after = sample();
  after.kernels[1].code[0].facts.spills = 3;
  before.waivers = {{.finding = "registers", .node = "add", .reason = "issue 12", .until = day.str()}};
  CHECK(judge(compare(before, after, day)).passes(false));
  CHECK(judge(compare(before, after, day)).waived == 1);
  before.waivers[0].node = "conv";
  CHECK_FALSE(judge(compare(before, after, day)).passes(false));
  before.waivers[0] = {.finding = "registers", .reason = "issue 12", .until = "2026-06-14"};
  auto findings = compare(before, after, day);
  CHECK(findings.size() == 2);
  CHECK(only(findings, FindingKind::Waiver).what == "ended on 2026-06-14");
}

TEST_CASE("gate: what is measured is waived as what is compared is, and no update makes it go away") {
  Finding slow{.kind = FindingKind::Time, .direction = Direction::Regression, .subject = "model", .what = "time"};
  Baseline before = sample();
  CHECK_FALSE(judge(compare(before, sample(), day, {slow})).passes(false));
  before.waivers = {{.finding = "time", .reason = "issue 12", .until = day.str()}};
  CHECK(judge(compare(before, sample(), day, {slow})).passes(false));
  CHECK_FALSE(isOfRecord(slow));
  CHECK(isOfRecord({.kind = FindingKind::CodeSize}));
}

TEST_CASE("gate: lines that got lost from a baseline are found") {
  Baseline before = sample(), after = sample();
  for (const char *output : {"y", "z"})
    after.numerics.push_back({.function = "main", .output = output, .level = "x86-64-v3"});
  CHECK(compare(before, after, day).empty()); // recorded without results
  before.numerics = {after.numerics[0]};
  CHECK(only(compare(before, after, day), FindingKind::Accuracy).subject == "output z");
  before = sample();
  before.memory.clear();
  CHECK(only(compare(before, sample(), day), FindingKind::PeakMemory).before == "not recorded");
}

TEST_CASE("gate: an update keeps tolerances that a person wrote, and no others") {
  std::vector<NumericRow> before = {{.output = "y", .maxUlp = 10, .p99Ulp = 4}},
                          after = {{.output = "y", .maxUlp = 20}};
  before[0].maxUlpTolerance = defaultUlpTolerance(10);
  before[0].p99UlpTolerance = 5;
  after[0].maxUlpTolerance = defaultUlpTolerance(20);
  keepTolerances(before, after);
  CHECK(after[0].maxUlpTolerance == defaultUlpTolerance(20));
  CHECK(after[0].p99UlpTolerance == 5);
}

TEST_CASE("gate: a tolerance is a share or a number") {
  CHECK_FALSE(exceeds(1000, 1010, "1%"));
  CHECK(exceeds(1000, 1011, "1%"));
  CHECK(exceeds(1000, 989, "1%"));
  CHECK_FALSE(exceeds(10, 26, "16"));
  CHECK(exceeds(10, 11, ""));
  CHECK(exceeds(10, 11, "much"));
}

TEST_CASE("gate: a baseline reads back as it was written, and mistakes are told") {
  Baseline baseline = sample();
  baseline.waivers = {{.node = "add", .reason = "why", .until = "2030-01-31"}};
  baseline.refusals = {{"they differ", {{"conv", "add"}}}};
  baseline.numerics = {{.function = "main", .output = "y", .maxUlp = 3, .maxUlpTolerance = 3}};
  std::string text = writeBaseline(baseline);
  llvm::Expected<Baseline> again = parseBaseline(text, "b.json");
  REQUIRE(bool(again));
  CHECK(writeBaseline(*again) == text);
  CHECK(compare(*again, baseline, day).empty());

  auto mistakeOf = [](llvm::StringRef text) {
    llvm::Expected<Baseline> parsed = parseBaseline(text, "b.json");
    return parsed ? std::string() : llvm::toString(parsed.takeError());
  };
  CHECK(llvm::StringRef(mistakeOf("{}")).contains("it has no 'format'"));
  CHECK(llvm::StringRef(mistakeOf("{\"format\":99}")).contains("it is of format 99, this ptc has format"));
  auto with = [&](llvm::StringRef from, llvm::StringRef to) {
    std::string changed = text;
    changed.replace(changed.find(from.str()), from.size(), to.str());
    return mistakeOf(changed);
  };
  CHECK(llvm::StringRef(with("\"spills\":0", "\"spills\":\"none\"")).contains("needs 'spills', an integer"));
  for (const char *day : {"soon", "2030-13-31", "2030-00-31", "2030-1--31", "2030-01-31-"})
    CHECK(llvm::StringRef(with("2030-01-31", day)).contains("YYYY-MM-DD"));
  CHECK(llvm::StringRef(with("\"node\":\"add\",\"reason\"", "\"nodes\":\"add\",\"reason\""))
            .contains("has 'nodes', which is none of"));
  CHECK(llvm::StringRef(with("\"1%\"", "\"a bit\"")).contains("needs 'code_bytes'"));
  CHECK(llvm::StringRef(with("\"1%\"", "1")).contains("needs 'code_bytes'"));
}
