// Each library's registration function is generated from its Passes.td, so a new pass needs no edit here.
#include "compiler/Registration.h"
#include "compiler/memory/Passes.h"
#include "compiler/schedule/Passes.h"
#include "compiler/specialize/Passes.h"
#include "ir/loop/Loop.h"
#include "ir/prim/Prim.h"
#include "lowering/onnx/ImportTool.h"
#include "lowering/passes/Passes.h"
#include "lowering/prim_to_loop/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Transforms/Passes.h"

namespace ptc {

void registerStageDialects(mlir::DialectRegistry &registry) {
  registry
      .insert<prim::PrimDialect, loop::LoopDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
              mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
}

void registerStagePasses() {
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
  registerSpecializePasses();
  registerLoweringPasses();
  registerPrimToLoopPasses();
  registerSchedulePasses();
  registerMemoryPasses();
}

std::optional<int> runImportCommand(int argc, char **argv) {
  return isImportCommand(argc, argv) ? std::optional(importOnnxMain(argc, argv)) : std::nullopt;
}

} // namespace ptc
