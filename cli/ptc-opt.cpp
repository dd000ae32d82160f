// ptc-opt: runs passes over a module's text, from any stage; the tool behind tests/*/*.mlir.
//
//   ptc-opt model.prim.mlir --ptc-lower-prim-to-loop --canonicalize
#include "compiler/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  ptc::registerStageDialects(registry);
  ptc::registerStagePasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "ptc's passes over a module's text\n", registry));
}
