//===- Optimize.cpp - LLVM's passes over one kernel -----------------------===//
//
// A kernel arrives as one function without calls, already vectorised, unrolled where that pays and with index
// arithmetic hoisted. What is left for LLVM: stack slots into registers, folding, common subexpressions across blocks,
// invariant code (loads, broadcasts), short loops of constant length; in the end, what the code generator should not
// look into. LLVM's O2 would add inlining, interprocedural passes and its own vectorisers: several times the time for
// nothing.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Optimize.h"
#include "codegen/common/HideInvariants.h"
#include "codegen/common/LLVMFaults.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/JumpThreading.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;
using namespace ptc::codegen;

namespace {
/// Unrolls and peels short loops as LLVM does, which unrolls to at most 600 instructions and peels loops of 75. Before
/// it asks how often a loop runs, it prices all that is in it, and does so anew for each loop around others.
struct UnrollShortLoopsPass : PassInfoMixin<UnrollShortLoopsPass> {
  /// Instructions: up to how many a loop is looked at, and if it runs a constant number of times. Some count for
  /// nothing.
  static constexpr size_t most = 256, mostCounted = 1024;

  static size_t countInstructions(const Loop &loop) {
    size_t count = 0;
    for (const BasicBlock *block : loop.blocks())
      if ((count += block->size()) > mostCounted)
        break;
    return count;
  }

  static bool hasConstantTrips(const Loop &loop, ScalarEvolution &evolution) {
    SmallVector<BasicBlock *> exiting;
    loop.getExitingBlocks(exiting);
    return evolution.isBackedgeTakenCountMaxOrZero(&loop) || any_of(exiting, [&](const BasicBlock *block) {
             return evolution.getSmallConstantTripCount(&loop, block) != 0;
           });
  }

  PreservedAnalyses run(Loop &loop, LoopAnalysisManager &analyses, LoopStandardAnalysisResults &results,
                        LPMUpdater &updater) {
    size_t count = countInstructions(loop);
    if (count > mostCounted || (count > most && !hasConstantTrips(loop, results.SE)))
      return PreservedAnalyses::all();
    return LoopFullUnrollPass(/*OptLevel=*/2, /*OnlyWhenForced=*/false).run(loop, analyses, results, updater);
  }
};
} // namespace

static void addSlotsToRegisters(FunctionPassManager &passes) {
  passes.addPass(OrderStoresPass());
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
}

static FunctionPassManager buildPasses(unsigned optLevel) {
  FunctionPassManager passes;
  addSlotsToRegisters(passes);
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  if (optLevel == 0)
    return passes;
  {
    LoopPassManager loops;
    loops.addPass(LoopRotatePass());
    loops.addPass(LICMPass(LICMOptions()));
    passes.addPass(createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  }
  if (optLevel == 1)
    return passes;
  {
    LoopPassManager loops;
    loops.addPass(UnrollShortLoopsPass());
    passes.addPass(createFunctionToLoopPassAdaptor(std::move(loops)));
  }
  addSlotsToRegisters(passes);
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(JumpThreadingPass()); // vectors side by side ask the same condition one after the other
  passes.addPass(InstCombinePass());
  passes.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(ADCEPass());
  passes.addPass(SimplifyCFGPass());
  return passes;
}

/// What follows LLVM's own passes, of which at levels above 2 more are to come (optimizeModule, which ends with it,
/// too).
static FunctionPassManager buildLastPasses(const TargetMachine &machine, unsigned optLevel) {
  FunctionPassManager passes;
  passes.addPass(StoreLonePass());
  if (optLevel == 1 || optLevel == 2)
    addHiding(passes, machine);
  return passes;
}

void ptc::codegen::optimizeKernel(Module &module, TargetMachine &machine, unsigned optLevel) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  ModulePassManager pipeline;
  pipeline.addPass(createModuleToFunctionPassAdaptor(buildPasses(optLevel)));
  pipeline.addPass(createModuleToFunctionPassAdaptor(buildLastPasses(machine, optLevel)));
  pipeline.run(module, modules);
}
