#include "codegen/host/Interface.h"
#include "compiler/artifact/Header.h"
#include "compiler/artifact/Manifest.h"
#include "runtime/include/ptc/abi.h"

#include <catch2/catch.hpp>

using namespace ptc;
using namespace ptc::host;

TEST_CASE("C identifiers follow the stated rule", "[interface]") {
  CHECK(cIdentifier("x") == "x");
  CHECK(cIdentifier("input:0") == "input_0");
  CHECK(cIdentifier("0conv") == "_0conv");
  CHECK(cIdentifier("class") == "class_");
  CHECK(cIdentifier("") == "unnamed");
  CHECK(cIdentifier("na\xc3\xafve") == "na__ve");
}

static ModelInterface sample() {
  ModelInterface model{.name = "m", .compiler = "ptc test"};
  Function function{.name = "main"};
  function.symbols = {{.name = "batch", .min = 1, .max = 64, .divisor = 8}, {.name = "seq len"}};
  function.inputs = {{.name = "x:0", .dtype = {PTC_FLOAT, 32}, .dims = {{-1, 0, "batch"}, {3, -1, "3"}}},
                     {.name = "x.0", .dtype = {PTC_BFLOAT, 16}, .dims = {}},
                     {.name = "dims", .dtype = {PTC_BOOL, 8}, .dims = {{-1, -1, "2*batch"}}},
                     {.name = "past", .dtype = {PTC_INT, 64}, .dims = {}, .alias = 1}};
  function.outputs = {{.name = "*/ end", .dtype = {PTC_FLOAT, 16}, .dims = {{-1, 0, "batch"}}},
                      {.name = "present", .dtype = {PTC_INT, 64}, .dims = {}, .alias = 3}};
  model.functions = {function, function};
  model.functions[1].name = "decode";
  assignCNames(model);
  return model;
}

TEST_CASE("C names are unique within a function", "[interface]") {
  ModelInterface model = sample();
  const Function &function = model.functions[0];
  CHECK(function.cPrefix == "m");
  CHECK(model.functions[1].cPrefix == "m_decode");
  CHECK(function.inputs[0].cName == "x_0");
  CHECK(function.inputs[1].cName == "x_0_2");
  CHECK(function.inputs[2].cName == "dims_2");
  CHECK(function.symbols[1].cName == "seq_len");
}

TEST_CASE("the header declares typed functions and no name of the user's can break it", "[interface]") {
  std::string header = artifact::writeHeader(sample(), {.source = "m.onnx"});
  auto has = [&](const char *text) { return header.find(text) != std::string::npos; };
  CHECK(has("typedef struct m_dims {\n  int64_t batch; /* 1 <= batch <= 64, a multiple of 8 */"));
  CHECK(has("const float *x_0 /* [batch, 3] */"));
  CHECK(has("const ptc_bfloat16 *x_0_2 /* [] */"));
  CHECK(has("int64_t *past /* [] */"));
  CHECK(!has("int64_t *present"));
  CHECK(has("ptc_float16 *___end /* [batch] */"));
  CHECK(has("m_status m_decode_run("));
  CHECK(has("'* / end' in the model"));
  CHECK(has("typedef struct ptc_options {"));
  CHECK(has("extern const ptc_model_table ptc_model_v1;"));
}

TEST_CASE("the C++ header has a call for each function, with what it can check", "[interface]") {
  std::string header = artifact::writeCppHeader(sample(), {.fileName = "m.hpp", .cHeader = "m.h"});
  auto has = [&](const char *text) { return header.find(text) != std::string::npos; };
  CHECK(has("#include \"m.h\""));
  CHECK(has("namespace ptc::m {"));
  CHECK(has("using decode_Dims = ::m_decode_dims;"));
  CHECK(has("::ptc::Result<decode_Shapes> decode_output_shapes(const decode_Dims &dims) const"));
  CHECK(has("::ptc::Status decode_run(const decode_Dims &dims, ::ptc::Span<const float> x_0, "
            "::ptc::Span<const ptc_bfloat16> x_0_2, ::ptc::Span<const ptc_bool> dims_2, ::ptc::Span<int64_t> past, "
            "::ptc::Span<ptc_float16> ___end, void *workspace"));
  CHECK(has("check(status, \"x_0\", x_0, ::std::array<::std::int64_t, 2>{{dims.batch, 3}}, 32, 1);"));
  CHECK(has("check(status, \"past\", past, ::std::array<::std::int64_t, 0>{}, 64, 1);"));
  CHECK(!has("check(status, \"dims_2\""));
}

TEST_CASE("the manifest is canonical JSON and survives any name", "[interface]") {
  artifact::Manifest manifest{.interface = sample(), .target = "cpu", .levels = {"x86-64-v3"}};
  manifest.interface.functions[0].inputs[0].name = "bad \xff";
  std::string text = artifact::writeManifest(manifest);
  auto parsed = llvm::json::parse(text);
  REQUIRE(bool(parsed));
  CHECK(parsed->getAsObject()->getInteger("abi") == PTC_ABI_VERSION);
  CHECK(text == artifact::writeManifest(manifest));
  CHECK(text.find("\"abi\"") < text.find("\"build_id\""));
}

TEST_CASE("a depfile names outputs, inputs and phony inputs", "[interface]") {
  CHECK(artifact::writeDepfile({"a b.so"}, {"m.onnx", "w#1"}) ==
        "a\\ b.so: \\\n  m.onnx \\\n  w\\#1\n\nm.onnx:\n\nw\\#1:\n");
}
