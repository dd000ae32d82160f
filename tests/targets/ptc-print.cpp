// ptc-print MODEL.onnx [KIND [DIM=SPEC...]]: the stages of ptc for the printing target, the result on standard output.
#include "compiler/Pipeline.h"
#include "tests/targets/PrintingTarget.h"

using namespace ptc;

int main(int argc, char **argv) {
  if (argc < 2) {
    llvm::errs() << "usage: ptc-print MODEL.onnx [asm|mlir:STAGE [DIM=SPEC...]]\n";
    return exitUsage;
  }
  CompileOptions options;
  options.model = argv[1];
  options.output = "-";
  options.target = "printing";
  options.emit = {argc > 2 ? argv[2] : "asm"};
  for (int i = 3; i < argc; ++i)
    options.dims.emplace_back(argv[i]);
  Diagnostics diagnostics(llvm::errs(), {}, options.model);
  const codegen::Target *targets[] = {&test::getPrintingTarget()};
  CompileHooks hooks{.diagnostics = diagnostics,
                     .progress = [](llvm::StringRef, size_t, size_t) {},
                     .log = [](const llvm::Twine &) {},
                     .version = "",
                     .command = "",
                     .targets = targets};
  if (llvm::Error error = compile(options, hooks))
    diagnostics.report(std::move(error));
  return diagnostics.exitCode();
}
