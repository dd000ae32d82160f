//===- CpuEmitter.cpp - the emitter of a kernel for a CPU level -----------===//
#include "codegen/cpu/CpuEmitter.h"
#include "codegen/common/Strides.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;

cpu::KernelEmitter::KernelEmitter(OpBuilder &builder, loop::KernelOp kernel, const CpuLevel &level, Value buffers,
                                  Value symbols, Value scratch, Value errorFlag)
    : codegen::KernelEmitter(builder, kernel,
                             {.vectorBits = level.vectorBits,
                              .mostStride = codegen::mostSplitStride,
                              .maskedBits = level.maskedElementBits},
                             errorFlag),
      level(level), scratch(scratch) {
  Type ptr = LLVM::LLVMPointerType::get(builder.getContext()), i64 = builder.getI64Type();
  for (auto [index, argument] : llvm::enumerate(kernel.getBlock().getArguments())) {
    if (argument.use_empty())
      continue;
    Value slot = getAddress(buffers, ptr, constant(int64_t(index)));
    setPointer(argument, LLVM::LoadOp::create(builder, loc, ptr, slot));
  }
  for (auto [index, name] : llvm::enumerate(kernel.getSymbols().getAsValueRange<StringAttr>())) {
    Value slot = getAddress(symbols, i64, constant(int64_t(index)));
    setSymbol(name, LLVM::LoadOp::create(builder, loc, i64, slot));
  }
}
