//===- HideInvariants.cpp - opaque bases of innermost loops ---------------===//
//
// Problem. The code generator's reduction of strength tries all ways to add up an address from the terms that it finds
// in it. Those of a kernel reach back to the index of its task, through divisions and bounds, and trying them was up to
// a third of all time of compilation, for the same loops.
//
// Idea. What an innermost loop takes from outside becomes a constant distance from a frozen value, in front of the
// loop. A freeze is nothing in machine code. x86 adds base, index and distance in each load; elsewhere each distance
// would take a register of its own.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/HideInvariants.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"

using namespace llvm;

namespace {
/// The values that one loop takes from outside, by what they were.
struct Hidden {
  Instruction *end; // of the loop's preheader
  const DataLayout &layout;
  DenseMap<Value *, Value *> roots, values;

  explicit Hidden(Instruction *end) : end(end), layout(end->getDataLayout()) {}

  /// Constants and stack slots are part of an address without a register.
  Value *freeze(Value *root) {
    Value *&frozen = roots[root];
    if (!frozen)
      frozen = isa<Constant, FreezeInst, AllocaInst>(root) ? root : new FreezeInst(root, "", end->getIterator());
    return frozen;
  }

  Value *hide(Value *value) {
    if (!value->getType()->isPointerTy())
      return freeze(value);
    if (Value *known = values.lookup(value))
      return known;
    APInt offset(layout.getIndexTypeSizeInBits(value->getType()), 0);
    Value *result = freeze(value->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true));
    IRBuilder<> builder(end);
    if (!offset.isZero())
      result = builder.CreatePtrAdd(result, builder.getInt(offset));
    values[value] = result;
    return result;
  }
};

struct HideInvariantsPass : PassInfoMixin<HideInvariantsPass> {
  /// Addresses and what they are made of.
  static bool isPartOfAddress(const Value &value) {
    return value.getType()->isPointerTy() || value.getType()->isIntegerTy(64);
  }

  PreservedAnalyses run(Loop &loop, LoopAnalysisManager &, LoopStandardAnalysisResults &results, LPMUpdater &) {
    if (!loop.isInnermost())
      return PreservedAnalyses::all();
    Hidden hidden(loop.getLoopPreheader()->getTerminator());
    for (BasicBlock *block : loop.blocks())
      for (Instruction &inst : *block)
        for (Use &operand : inst.operands())
          if (auto *value = dyn_cast<Instruction>(operand); value && !loop.contains(value) && isPartOfAddress(*value))
            operand.set(hidden.hide(value));
    results.SE.forgetLoop(&loop);
    return getLoopPassPreservedAnalyses();
  }
};
} // namespace

void ptc::codegen::addHiding(FunctionPassManager &passes, const TargetMachine &machine) {
  if (machine.getTargetTriple().isX86())
    passes.addPass(createFunctionToLoopPassAdaptor(HideInvariantsPass()));
}
