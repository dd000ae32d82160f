//===- ImportTool.cpp - `ptc-opt --import-onnx` ---------------------------===//
#include "lowering/onnx/ImportTool.h"
#include "ir/Diagnostics.h"
#include "lowering/onnx/ImportOnnx.h"
#include "mlir/IR/Verifier.h"

using namespace llvm;
using namespace ptc;

bool ptc::isImportCommand(int argc, char **argv) { return argc > 1 && StringRef(argv[1]) == "--import-onnx"; }

static std::pair<std::string, std::string> splitPair(StringRef text) {
  auto [first, second] = text.split('=');
  return {first.str(), second.str()};
}

/// Reads `--flag value` pairs after the model; false for anything else.
static bool readFlags(ArrayRef<char *> arguments, ImportOptions &options) {
  for (size_t i = 0; i + 1 < arguments.size(); i += 2) {
    StringRef flag = arguments[i], value = arguments[i + 1];
    if (flag == "--dim")
      options.dims.push_back(value.str());
    else if (flag == "--shape")
      options.shapes.push_back(value.str());
    else if (flag == "--bucket")
      options.buckets.push_back(value.str());
    else if (flag == "--alias")
      options.aliases.push_back(splitPair(value));
    else if (flag == "--const")
      options.constants.push_back(splitPair(value));
    else if (flag == "--max-nodes" && !value.getAsInteger(10, options.maxNodes))
      continue;
    else if (flag == "--max-depth" && !value.getAsInteger(10, options.maxDepth))
      continue;
    else
      return false;
  }
  return arguments.size() % 2 == 0;
}

int ptc::importOnnxMain(int argc, char **argv) {
  ImportOptions options;
  if (argc < 3 || !readFlags(ArrayRef(argv, argc).drop_front(3), options)) {
    errs() << "usage: --import-onnx MODEL [--dim D] [--shape S] [--bucket B] [--alias IN=OUT] [--const NAME=FILE]\n";
    return static_cast<int>(ExitClass::Usage);
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  int code = 0;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diag) {
    std::string place = formatLocation(diag.getLocation());
    errs() << place << (place.empty() ? "" : ": ") << diag << '\n';
    for (mlir::Diagnostic &note : diag.getNotes())
      errs() << "  " << note << '\n';
    if (std::optional<DiagId> id = parseCode(diag.str()))
      code = std::max(code, exitCode(*id));
    return success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = importOnnx(context, argv[2], options);
  if (!module)
    return code;
  constexpr int internalError = 70;
  if (failed(mlir::verify(*module)))
    return internalError;
  module->print(outs());
  return 0;
}
