//===- LowerToLLVM.h - from scf, arith, math, vector to LLVM ----*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_LOWERTOLLVM_H
#define PTC_CODEGEN_COMMON_LOWERTOLLVM_H

#include "mlir/IR/BuiltinOps.h"
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace ptc::codegen {

/// Registers what translateToLLVM needs with a context; not thread-safe.
void registerTranslation(mlir::MLIRContext &context);

/// Converts all ops of llvm.func bodies to the LLVM dialect.
mlir::LogicalResult lowerToLLVMDialect(mlir::ModuleOp module);

/// The module as LLVM IR; null after a diagnostic.
std::unique_ptr<llvm::Module> translateToLLVM(mlir::ModuleOp module, llvm::LLVMContext &context);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_LOWERTOLLVM_H
