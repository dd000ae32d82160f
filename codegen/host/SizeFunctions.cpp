#include "codegen/host/SizeFunctions.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ptc::host {

llvm::Function *emitBytes(Constants &constants, const Function &interface, ArrayRef<Expr> sizes, const Twine &name) {
  Type *i64 = Type::getInt64Ty(constants.context);
  SymbolFunction code(constants, interface, name, i64, {constants.pointer}, 0);
  code.exprs.checkOverflow = true;
  llvm::Value *most = code.builder.getInt64(0);
  for (Expr size : sizes) {
    llvm::Value *bytes = code.exprs.emit(size);
    most = code.builder.CreateSelect(code.builder.CreateICmpSGT(bytes, most), bytes, most);
  }
  code.builder.CreateRet(code.builder.CreateSelect(code.exprs.overflowed(), code.builder.getInt64(-1), most));
  return code.function;
}

llvm::Function *emitGuard(Constants &constants, const Function &interface, ArrayRef<Expr> guards, const Twine &name) {
  if (guards.empty())
    return nullptr;
  SymbolFunction code(constants, interface, name, Type::getInt32Ty(constants.context), {constants.pointer}, 0);
  llvm::Value *failed = code.builder.getInt32(-1);
  // From the last to the first, so that the first that fails is the answer.
  for (size_t index = guards.size(); index-- > 0;) {
    llvm::Value *fails = code.builder.CreateICmpEQ(code.exprs.emit(guards[index]), code.builder.getInt64(0));
    failed = code.builder.CreateSelect(fails, code.builder.getInt32(index), failed);
  }
  code.builder.CreateRet(failed);
  return code.function;
}

llvm::Function *emitShapes(Constants &constants, const Function &interface, ArrayRef<mlir::BlockArgument> values,
                           const loop::BoundSymbols &bound, const Twine &name) {
  PointerType *pointer = constants.pointer;
  SymbolFunction code(constants, interface, name, Type::getVoidTy(constants.context), {pointer, pointer}, 0);
  IRBuilder<> &builder = code.builder;
  auto emit = [&](Expr most) { // an overflow concerns its own extent alone
    ExprCode exprs(builder, code.symbols);
    exprs.checkOverflow = true;
    llvm::Value *extent = exprs.emit(most);
    return builder.CreateSelect(exprs.overflowed(), builder.getInt64(-1), extent);
  };
  for (auto [index, value] : llvm::enumerate(values)) {
    llvm::Value *slot = builder.CreateConstInBoundsGEP1_64(pointer, code.function->getArg(1), index);
    llvm::Value *shape = builder.CreateLoad(pointer, slot);
    for (auto [dim, extent] : llvm::enumerate(mlir::cast<loop::BufferType>(value.getType()).getShape())) {
      Expr most = bound.getMost(extent);
      builder.CreateStore(most ? emit(most) : builder.getInt64(-1),
                          builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), shape, dim));
    }
  }
  builder.CreateRetVoid();
  return code.function;
}

} // namespace ptc::host
