//===- LLVMFaults.h - kernels kept from what LLVM does wrong ----*- C++ -*-===//
//
// Passes that change nothing of what a kernel means. Each names the fault that it is for, and can go with it.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_COMMON_LLVMFAULTS_H
#define PTC_CODEGEN_COMMON_LLVMFAULTS_H

#include "llvm/IR/PassManager.h"

namespace ptc::codegen {

/// Where a stack slot is stored in parts within a block and read as one vector, moves the store of the last part behind
/// those of the others. To run ahead of every SROA: LLVM 22's joins the parts where the last of them is stored, and
/// uses values there that are computed later.
struct OrderStoresPass : llvm::PassInfoMixin<OrderStoresPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
  static bool isRequired() { return true; }
};

/// A masked store of one lane becomes a store of that element. To run last: LLVM 22's code for AVX-512 stores the
/// element before it was narrowed, where it was (2 or 4 bytes more than there are).
struct StoreLonePass : llvm::PassInfoMixin<StoreLonePass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
  static bool isRequired() { return true; }
};

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_LLVMFAULTS_H
