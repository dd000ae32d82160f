#include "compiler/DiagnosticRendering.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/JSON.h"
#include <catch2/catch.hpp>

using namespace ptc;

/// What a run that meets one unsupported operator prints.
static std::string render(DiagnosticFormat format, int &exitCode) {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::MLIRContext context;
  {
    Diagnostics diagnostics(os, {format, false, false}, "model.onnx");
    context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
      diagnostics.report(diagnostic);
      return mlir::success();
    });
    mlir::Location loc = makeNodeLocation(&context, "layer3/conv2", "Conv", "x_214");
    auto diagnostic = diagnose(loc, DiagId::UnsupportedForm, "a kernel of rank 9");
    diagnostic.attachNote() << "found in the third layer";
    addHelp(diagnostic, "export with rank 2");
    diagnostic.report();
    exitCode = diagnostics.exitCode();
  }
  return text;
}

TEST_CASE("a diagnostic names file, node, operator, output, code and help", "[diagnostics]") {
  int exitCode = 0;
  CHECK(render(DiagnosticFormat::Text, exitCode) ==
        "model.onnx: node 'layer3/conv2' (Conv → x_214): error[PTC0306]: a kernel of rank 9 is not supported\n"
        "  note: found in the third layer\n"
        "  help: export with rank 2\n");
  CHECK(exitCode == exitUnsupported);
}

TEST_CASE("JSON and SARIF are valid and carry the code", "[diagnostics]") {
  int exitCode = 0;
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(render(DiagnosticFormat::Json, exitCode));
  REQUIRE(bool(json));
  const llvm::json::Object &first = *(*json->getAsObject()->getArray("diagnostics"))[0].getAsObject();
  CHECK(*first.getString("code") == "PTC0306");
  CHECK(*first.getString("node") == "layer3/conv2");
  CHECK(*json->getAsObject()->getInteger("exit_code") == exitUnsupported);

  llvm::Expected<llvm::json::Value> sarif = llvm::json::parse(render(DiagnosticFormat::Sarif, exitCode));
  REQUIRE(bool(sarif));
  CHECK(*sarif->getAsObject()->getString("version") == "2.1.0");
}

TEST_CASE("errors of the outside world have the exit code of files, unexplained ones that of a defect",
          "[diagnostics]") {
  std::string text;
  llvm::raw_string_ostream os(text);
  Diagnostics diagnostics(os, {}, "ptc");
  diagnostics.report(llvm::createStringError(std::make_error_code(std::errc::no_space_on_device), "cannot write 'x'"));
  CHECK(diagnostics.exitCode() == exitFile);
  diagnostics.report(reported());
  CHECK(diagnostics.errorCount() == 1);
  diagnostics.report(llvm::createStringError(llvm::inconvertibleErrorCode(), "what"));
  CHECK(diagnostics.exitCode() == exitInternal);
  CHECK(text == "ptc: error: cannot write 'x'\nptc: error: what\n");
}
