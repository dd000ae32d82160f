//===- FloatContraction.cpp - Products and sums that are rounded once -----===//
#include "codegen/common/FloatContraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace mlir;
using namespace ptc;

void codegen::forbidContraction(Operation *root) {
  root->walk([](arith::ArithFastMathInterface op) {
    auto flags = op.getFastMathFlagsAttr();
    if (!flags)
      return;
    auto without = flags.getValue() & ~arith::FastMathFlags::contract;
    op->setAttr(op.getFastMathAttrName(), arith::FastMathFlagsAttr::get(op->getContext(), without));
  });
}

void codegen::roundSharedProducts(llvm::Function &function) {
  for (llvm::Instruction &instruction : llvm::instructions(function))
    if (instruction.getOpcode() == llvm::Instruction::FMul && !instruction.hasOneUse())
      instruction.setHasAllowContract(false);
}
