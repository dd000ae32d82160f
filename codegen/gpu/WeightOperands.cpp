//===- WeightOperands.cpp - what no launch writes -------------------------===//
#include "codegen/gpu/WeightOperands.h"

using namespace mlir;
using namespace ptc;

bool gpu::isWeight(loop::KernelOp kernel, unsigned argument) {
  bool is = true, isLaunched = false;
  auto module = kernel->getParentOfType<ModuleOp>();
  if (!module) // a kernel alone
    return false;
  module.walk([&](loop::LaunchOp launch) {
    if (launch.getKernel() != kernel.getSymName())
      return;
    Value buffer = launch.getBuffers()[argument];
    while (auto flattened = buffer.getDefiningOp<loop::FlattenOp>())
      buffer = flattened->getOperand(0);
    isLaunched = true;
    is &= isa_and_nonnull<loop::WeightOp, loop::ConstantOp>(buffer.getDefiningOp());
  });
  return is && isLaunched;
}
