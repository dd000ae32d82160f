//===- CpuEmitter.cpp - the emitter of a kernel for a CPU level -----------===//
#include "codegen/cpu/CpuEmitter.h"
#include "codegen/common/Strides.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;

SmallVector<int64_t> cpu::dimsBetween(int64_t first, int64_t end, int64_t without) {
  SmallVector<int64_t> dims;
  for (int64_t dim = first; dim < end; ++dim)
    if (dim != without)
      dims.push_back(dim);
  return dims;
}

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

void cpu::KernelEmitter::forEach(Value lower, Value upper, int64_t step, llvm::function_ref<void(Value)> body) {
  createLoop(lower, upper, step, {}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

void cpu::KernelEmitter::forEachVector(EmissionPoint point, int64_t dim, int64_t lanes, Value lower, Value upper,
                                       llvm::function_ref<void(const EmissionPoint &, Value)> body) {
  InvariantBuilder &in = invariants;
  point.lanes = lanes;
  point.vectorDim = dim;
  Value count = in.sub(upper, lower);
  Value whole = in.add(lower, in.mul(in.floorDiv(count, constant(lanes), true), constant(lanes)));
  forEach(lower, whole, lanes, [&](Value at) {
    point.dims[size_t(dim)] = at;
    body(point, at);
  });
  forEach(whole, upper, lanes, [&](Value at) {
    point.dims[size_t(dim)] = at;
    point.mask = laneMask(in.sub(upper, at), lanes);
    body(point, at);
    point.mask = {};
  });
}

void cpu::KernelEmitter::emitIf(Value condition, llvm::function_ref<void()> body,
                                llvm::function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  body();
  if (!otherwise)
    return;
  builder.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

SmallVector<Value> cpu::KernelEmitter::emitChoice(Value condition, TypeRange types,
                                                  llvm::function_ref<SmallVector<Value>(bool isTrue)> emit) {
  auto choice = scf::IfOp::create(builder, loc, types, condition, /*withElseRegion=*/true);
  for (Block *block : {choice.thenBlock(), choice.elseBlock()}) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(block);
    scf::YieldOp::create(builder, loc, emit(block == choice.thenBlock()));
  }
  return {choice.result_begin(), choice.result_end()};
}
