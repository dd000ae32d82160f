//===- OrderStores.h - parts of a vector, the last one last -----*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_ORDERSTORES_H
#define PTC_CODEGEN_COMMON_ORDERSTORES_H

#include "llvm/IR/PassManager.h"

namespace ptc::codegen {

/// Where a stack slot is stored in parts within a block and read as one vector, moves the store of the last part behind
/// those of the others. To run ahead of every SROA: LLVM 22's joins the parts where the last of them is stored, and
/// uses values there that are computed later.
struct OrderStoresPass : llvm::PassInfoMixin<OrderStoresPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
  static bool isRequired() { return true; }
};

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_ORDERSTORES_H
