// ptc-opt: runs passes over a module's text, from any stage; the tool behind tests/*/*.mlir.
//
//   ptc-opt model.prim.mlir --ptc-lower-prim-to-loop --canonicalize
//   ptc-opt --import-onnx model.onnx --dim batch=1     prints the module that import makes
#include "compiler/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  if (std::optional<int> exitCode = ptc::runImportCommand(argc, argv))
    return *exitCode;
  mlir::DialectRegistry registry;
  ptc::registerStageDialects(registry);
  ptc::registerStagePasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "ptc's passes over a module's text\n", registry));
}
