// ptc-opt: runs passes over a module's text, from any stage; the tool behind tests/*/*.mlir.
//
//   ptc-opt model.prim.mlir --ptc-lower-prim-to-loop --canonicalize
//
// Every library of passes is registered here by its generated function, so a new pass needs no edit.
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
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry dialects;
  dialects.insert<ptc::prim::PrimDialect, ptc::loop::LoopDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
                  mlir::vector::VectorDialect>();

  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
#if __has_include("lowering/passes/Passes.h")
  ptc::registerLoweringPasses();
#endif
#ifdef PTC_HAS_PRIM_TO_LOOP
  ptc::registerPrimToLoopPasses();
#endif
#if __has_include("compiler/schedule/Passes.h")
  ptc::registerSchedulePasses();
#endif
#if __has_include("compiler/memory/Passes.h")
  ptc::registerMemoryPasses();
#endif
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "ptc optimizer driver\n", dialects));
}
