// Each library's registration function is generated from its Passes.td, so a new pass needs no edit here.
#include "compiler/Registration.h"
#include "ir/loop/Loop.h"
#include "ir/prim/Prim.h"
#if __has_include("lowering/passes/Passes.h")
#include "lowering/passes/Passes.h"
#endif
#if __has_include("lowering/prim_to_loop/PackWeights.cpp")
#include "lowering/prim_to_loop/Passes.h"
#define PTC_HAS_PRIM_TO_LOOP
#endif
#if __has_include("compiler/schedule/Passes.h")
#include "compiler/schedule/Passes.h"
#endif
#if __has_include("compiler/memory/Passes.h")
#include "compiler/memory/Passes.h"
#endif

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
#if __has_include("lowering/passes/Passes.h")
  registerLoweringPasses();
#endif
#ifdef PTC_HAS_PRIM_TO_LOOP
  registerPrimToLoopPasses();
#endif
#if __has_include("compiler/schedule/Passes.h")
  registerSchedulePasses();
#endif
#if __has_include("compiler/memory/Passes.h")
  registerMemoryPasses();
#endif
}

} // namespace ptc
