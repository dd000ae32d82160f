// Functions of the symbols alone: sizes, guards, shapes. The runtime calls them before a program.
#ifndef PTC_CODEGEN_HOST_SIZEFUNCTIONS_H
#define PTC_CODEGEN_HOST_SIZEFUNCTIONS_H

#include "codegen/host/ExprCode.h"
#include "codegen/host/HostBuilder.h"

namespace ptc::host {

/// A function `result NAME(const int64_t *symbols, ...)` whose argument `symbolsParameter` has the symbols' values.
class SymbolFunction {
public:
  SymbolFunction(Constants &constants, const Function &interface, const llvm::Twine &name, llvm::Type *result,
                 llvm::ArrayRef<llvm::Type *> parameters, unsigned symbolsParameter)
      : builder(constants.context), exprs(builder, symbols) {
    function = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false),
                                      llvm::GlobalValue::InternalLinkage, name, constants.module);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    builder.SetInsertPoint(llvm::BasicBlock::Create(constants.context, "", function));
    for (auto [index, symbol] : llvm::enumerate(interface.symbols)) {
      Value *address =
          builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), function->getArg(symbolsParameter), index);
      symbols.values[symbol.name] = builder.CreateLoad(builder.getInt64Ty(), address, symbol.name);
    }
  }

  /// Symbols that get their values while the function runs; their places are behind the interface's own.
  void addBoundSymbols(const Function &interface, const loop::BoundSymbols &bound, unsigned symbolsParameter) {
    for (auto [index, symbol] : llvm::enumerate(bound.getAll()))
      symbols.addresses[symbol.name] = builder.CreateConstInBoundsGEP1_64(
          builder.getInt64Ty(), function->getArg(symbolsParameter), interface.symbols.size() + index);
  }

  using Value = llvm::Value;
  llvm::Function *function;
  llvm::IRBuilder<> builder;
  SymbolCode symbols;
  ExprCode exprs;
};

/// The most bytes of all expressions, or -1 if one leaves 63 bits.
llvm::Function *emitBytes(Constants &constants, const Function &interface, llvm::ArrayRef<Expr> sizes,
                          const llvm::Twine &name);

/// The index of the first guard that is 0, or -1; null without guards.
llvm::Function *emitGuard(Constants &constants, const Function &interface, llvm::ArrayRef<Expr> guards,
                          const llvm::Twine &name);

} // namespace ptc::host

#endif
