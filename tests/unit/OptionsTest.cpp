#include "compiler/Options.h"
#include "codegen/Targets.h"
#include "compiler/OutputPlan.h"
#include "compiler/Phases.h"
#include <catch2/catch.hpp>
#include <set>

using namespace ptc;

static OutputPlan planOf(const CompileOptions &options) {
  llvm::Expected<OutputPlan> plan = planOutputs(options, codegen::getTargets().front()->getInfo().outputs);
  REQUIRE(bool(plan));
  return std::move(*plan);
}

static std::string failureOf(const CompileOptions &options) {
  llvm::Expected<OutputPlan> plan = planOutputs(options, codegen::getTargets().front()->getInfo().outputs);
  REQUIRE(!plan);
  return llvm::toString(plan.takeError());
}

TEST_CASE("default options leave no flag in the artefact's digest", "[options]") {
  CHECK(canonicalFlags(CompileOptions()).empty());
}

TEST_CASE("options that change the artefact are part of its digest, others are not", "[options]") {
  CompileOptions options;
  options.cpu = {"x86-64-v3"};
  options.dims = {"batch=1..8"};
  options.output = "elsewhere.so";
  options.jobs = 7;
  CHECK(canonicalFlags(options) == std::vector<std::string>{"--cpu=x86-64-v3", "--dim=batch=1..8"});
}

TEST_CASE("each option has help and a flag of its own", "[options]") {
  std::set<std::string> flags;
  const CompileOptions defaults;
  visitOptions(defaults, [&](option::Role, llvm::StringRef group, const auto &, llvm::StringRef flag, llvm::StringRef,
                             llvm::StringRef help) {
    CHECK(flags.insert(flag.str()).second);
    CHECK(!group.empty());
    CHECK(!help.empty());
  });
}

TEST_CASE("a library's headers and manifest lie beside it", "[options]") {
  CompileOptions options{.model = "models/net.onnx"};
  options.output = "out/lib.so";
  OutputPlan plan = planOf(options);
  REQUIRE(plan.outputs.size() == 4);
  CHECK(plan.outputs[0].path == "out/lib.so");
  CHECK(plan.outputs[1].path == "out/lib.h");
  CHECK(plan.outputs[2].path == "out/lib.hpp");
  CHECK(plan.outputs[3].path == "out/lib.json");
  CHECK(plan.name == "lib");
  CHECK(plan.lastPhase() == Phase::Link);
}

TEST_CASE("without -o outputs are named after the model, in the current folder", "[options]") {
  OutputPlan plan = planOf({.model = "models/my-net.onnx"});
  CHECK(plan.outputs[0].path == "my-net.so");
  CHECK(plan.name == "my_net");
}

TEST_CASE("the suffix of -o chooses the kind of library", "[options]") {
  CompileOptions options{.model = "net.onnx"};
  options.output = "net.a";
  CHECK(planOf(options).outputs[0].kind == OutputKind::StaticLibrary);
}

TEST_CASE("a stage's text needs no later stage", "[options]") {
  CompileOptions options{.model = "net.onnx"};
  options.emit = {"mlir:loop"};
  options.output = "-";
  CHECK(planOf(options).lastPhase() == Phase::Loop);
}

TEST_CASE("wrong outputs are refused in words", "[options]") {
  CompileOptions options{.model = "net.onnx"};
  options.emit = {"exe"};
  CHECK(failureOf(options) == "--emit: unknown kind 'exe'");
  options.emit = {"mlir:codegen"};
  CHECK(failureOf(options) == "--emit: 'codegen' is not a stage with text");
  options.emit = {"so"};
  options.output = "-";
  CHECK(failureOf(options) == "-o - is for one output that is text");
  options.output = "net.so";
  options.name = "2net";
  CHECK(failureOf(options) == "--name=2net is not an identifier of C");
}
