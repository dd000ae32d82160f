// Expressions as 64-bit integer code on the host.
#ifndef PTC_CODEGEN_HOST_EXPRCODE_H
#define PTC_CODEGEN_HOST_EXPRCODE_H

#include "ir/expr/Expr.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"

namespace ptc::host {

/// Values of symbols, or where they are read anew at every use: those that get theirs while the program runs.
struct SymbolCode {
  llvm::StringMap<llvm::Value *> values, addresses;
  bool contains(llvm::StringRef name) const { return values.contains(name) || addresses.contains(name); }
};

/// Emits expressions at the builder's insertion point. Division and modulo are floor division and total, as in ir/expr.
class ExprCode {
public:
  ExprCode(llvm::IRBuilder<> &builder, const SymbolCode &symbols) : builder(builder), symbols(symbols) {}

  llvm::Value *emit(Expr expr);

  /// Whether any sum or product emitted so far left 64 bits; only if checkOverflow was set before.
  llvm::Value *overflowed() { return overflow ? overflow : builder.getFalse(); }
  bool checkOverflow = false;

private:
  llvm::Value *arithmetic(llvm::Instruction::BinaryOps operation, llvm::Intrinsic::ID checked, llvm::Value *a,
                          llvm::Value *b);
  llvm::Value *floorDivision(llvm::Value *a, llvm::Value *b, bool modulo);

  llvm::IRBuilder<> &builder;
  const SymbolCode &symbols;
  llvm::Value *overflow = nullptr;
};

} // namespace ptc::host

#endif
