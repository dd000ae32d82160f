#include "compiler/Stages.h"
#include "compiler/memory/Passes.h"
#include "compiler/schedule/Passes.h"
#include "compiler/specialize/Passes.h"
#include "lowering/passes/Passes.h"
#include "lowering/prim_to_loop/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

namespace ptc {

static void addPrim(mlir::OpPassManager &passes, const CompileOptions &options, const TargetInfo &target,
                    eval::WeightSource &weights) {
  constexpr int64_t constantBytes = 1 << 20, computedBytes = 64 << 20; // larger constants are weights
  // First: equal sizes look equal to all that follows.
  passes.addNestedPass<mlir::func::FuncOp>(createUnifySizes());
  passes.addPass(createSpecializeFunctions()); // before folding: variants fold what they alone know
  if (options.optLevel > 0)
    passes.addNestedPass<mlir::func::FuncOp>(createMoveBytes()); // before products, which read bytes behind moves then
  // Before folding, which would dequantise small weights. Weights that come at run time have no sums yet.
  bool isFixed = options.weights != "none";
  passes.addNestedPass<mlir::func::FuncOp>(createNarrowProducts(isFixed ? &weights : nullptr, target.weightPanel > 0));
  if (isFixed && options.optLevel > 0)
    passes.addNestedPass<mlir::func::FuncOp>(createSinkBroadcasts()); // before folding, which knows no free dims
  // Before all that follows: known branches vanish with their bodies.
  passes.addNestedPass<mlir::func::FuncOp>(
      createFoldConstants({constantBytes, isFixed && options.optLevel > 0 ? computedBytes : 0}, weights));
  passes.addNestedPass<mlir::func::FuncOp>(createSimplifyAlgebra()); // what the decompositions wrote too generally
  if (options.optLevel > 0 && target.weightPanel > 0)                // devices compute faster than they look up
    passes.addNestedPass<mlir::func::FuncOp>(createTabulateBytes()); // while what is rounded is bytes, behind folding
  if (options.fp != "strict") {
    passes.addNestedPass<mlir::func::FuncOp>(createLookUpOneHots()); // 0, 1, 2, ... is folded by now
    passes.addNestedPass<mlir::func::FuncOp>(createTrimWindows());
    passes.addNestedPass<mlir::func::FuncOp>(createFoldMirroredFilters(isFixed ? &weights : nullptr));
    passes.addNestedPass<mlir::func::FuncOp>(createJoinScales()); // scales are folded by now
    if (options.optLevel > 0 && target.weightPanel > 0) // measured on CPUs alone; sizes of resizes are folded by now
      passes.addNestedPass<mlir::func::FuncOp>(createMovePointwiseConvolutions());
  }
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass()); // equal subgraphs of the decompositions become one
  if (options.optLevel > 0)
    passes.addNestedPass<mlir::func::FuncOp>(createSinkRepeats()); // before attention, whose masks repeat for all heads
  RecognizeAttentionOptions attention;
  attention.remarks = options.remarks;
  passes.addNestedPass<mlir::func::FuncOp>(createRecognizeAttention(attention)); // masks and scales are folded by now
  if (options.autocast != "none") {
    passes.addNestedPass<mlir::func::FuncOp>(
        createAutocast({.type = options.autocast, .onlyWeights = !target.runsOnDevice})); // products are final
    passes.addPass(mlir::createCSEPass()); // products of one value read one rounded value
  }
  passes.addNestedPass<mlir::func::FuncOp>(createDropDeadTaps()); // last: what the graph computes is final
}

static void addLoop(mlir::OpPassManager &passes, const CompileOptions &options, const TargetInfo &target,
                    eval::WeightSource &weights) {
  if (options.optLevel > 0 && target.coreCacheBytes > 0)
    passes.addNestedPass<mlir::func::FuncOp>(
        createSplitBatch({.nearBytes = target.coreCacheBytes,
                          .farBytes = target.sharedCacheBytes,
                          .remarks = options.remarks})); // before other dims come in front of the batch
  if (options.optLevel > 0 && target.weightPanel > 0)
    passes.addNestedPass<mlir::func::FuncOp>(createJoinColumns(
        {.panel = target.weightPanel})); // before what becomes a batch: two of three weights may have one type
  if (options.optLevel > 0)
    passes.addNestedPass<mlir::func::FuncOp>( // what is written as primitives shows each weight
        createJoinProducts({.severalValues = target.weightPanel > 0}));
  LowerPrimToLoopOptions lowering;
  // A target whose products read packed weights has these, too. Others convert as they stream them for a few rows, and
  // word by word for more.
  constexpr int64_t fewRows = 4;
  lowering.recurrences = lowering.readsRowsAnywhere = lowering.groupsInWindows = lowering.storesBorders =
      target.weightPanel > 0;
  lowering.skipsZeros = target.weightPanel > 0 && options.fp != "strict" && options.optLevel > 0;
  lowering.takesByteRows = target.weightPanel > 0 && options.fp != "strict" && options.optLevel > 0;
  lowering.mostStreamedRows = target.weightPanel > 0 ? 0 : fewRows;
  passes.addPass(createLowerPrimToLoop(lowering)); // views become index expressions, pointwise chains one node
  passes.addPass(createUnifyExtents()); // before sizes are compared; on loop, where no type rule asks for others
  if (options.optLevel > 0 && target.weightPanel > 0)
    passes.addPass(createJoinShifts()); // before a part that is the whole value is elided
  // Producers write straight into concats and outputs. Devices write pixels along the pixels.
  passes.addPass(createElideCopies({.keepsImages = options.optLevel > 0 && target.weightPanel > 0}));
  if (options.optLevel > 0 && target.weightPanel > 0)
    passes.addPass(createCopyImages()); // before layouts: a copy has its own; devices read images in any order
  // After that: who reads a buffer is final. Devices take pixels along the pixels.
  passes.addPass(createAssignLayouts({.gatherRows = target.weightPanel > 0}));
  // Needs layouts: a sum runs in the order of the memory that it reads.
  passes.addPass(createSplitSums({.orderWindows = target.weightPanel > 0}));
  // Last: stored forms follow the order of memory, panels that of a contraction's dims.
  passes.addPass(createPackWeights({.panelWidth = target.weightPanel,
                                    .fewestColumns = target.fewestPanelColumns,
                                    .winograd = target.hasWinograd && options.fp != "strict"}));
  if (options.optLevel > 0 && target.hasStrassen && options.fp != "strict" && options.weights != "none")
    passes.addPass(createChooseStrassen(&weights)); // of packed weights alone
}

static void addSchedule(mlir::OpPassManager &passes, const CompileOptions &options, const codegen::Target &target) {
  if (options.optLevel > 0)
    passes.addPass(createNarrowNodes()); // while indices are those of the buffers' dims
  // Dependences and memory runs are told from linear positions.
  constexpr int64_t devicePointers = 16; // bytes: a thread's widest access
  passes.addPass(createLinearizeAccesses({.pointerAlignment = target.getInfo().runsOnDevice ? devicePointers : 1}));
  // Equal iteration spaces look equal, which fusion compares. On CPUs vectors of results between each other are woven.
  passes.addPass(createNormalizeNodes({.weaves = options.optLevel > 0 && !target.getInfo().runsOnDevice}));
  if (options.optLevel > 0 && !target.getInfo().runsOnDevice) {
    passes.addPass(createSumSingleColumns()); // which are fused with more; points and rows are dims apart by now
    passes.addPass(createSumOfParts());       // nodes are merged into the sums of what they write
    passes.addPass(createSumInStages());      // what each stage is fused with is told by its own dims
    passes.addPass(createSpreadGroups());     // also of rows that a first stage sums up
    passes.addPass(createRecomputeNodes());   // before fusion, which would store for one reader what others read
  }
  FuseNodesOptions fusion;
  fusion.remarks = options.remarks;
  fusion.disable = options.optLevel == 0;
  fusion.device = target.getInfo().runsOnDevice;
  passes.addPass(createFuseNodes(fusion));
  bool runsOnDevice = target.getInfo().runsOnDevice;
  if (options.optLevel > 0 && !runsOnDevice && options.fp != "strict")
    passes.addPass(createMoveScales()); // what computes rows is in their product; equal kernels are not found yet
  if (options.optLevel > 0 && !runsOnDevice && options.fp != "strict")
    passes.addPass(createNarrowBuffers()); // what is between kernels is final; their names tell its type
  if (options.optLevel > 0 && runsOnDevice)
    passes.addPass(createFuseHorizontally(
        {.remarks = options.remarks}));   // each launch costs; what depends on what is final, order nearly
  passes.addPass(createOutlineKernels()); // after fusion: equal kernels are found by content
  if (!runsOnDevice)
    passes.addPass(createShareConstants()); // nearly equal ones are, too; at -O0 as well: fewer compile sooner
  passes.addPass(createOrderLaunches());    // launches alone: what kernels are is final
  if (options.optLevel > 0)
    passes.addPass(createUpdateInPlace()); // the order of launches is final; what is tapped is not, nor where it lies
  passes.addPass(createPlaceTaps());       // the same
  if (options.optLevel > 0 && !runsOnDevice)
    passes.addPass(createJoinLaunches()); // nothing moves across a tap
  passes.addPass(createCountWork());      // before a target's planner rewrites kernels
  if (runsOnDevice)                       // last: work is counted, and transfers are uses that planned lives last for
    passes.addPass(createPlaceOnHost({.remarks = options.remarks},
                                     [&target](loop::KernelOp kernel) { return target.whyUnsupported(kernel); }));
}

void addStage(mlir::OpPassManager &passes, Phase phase, const CompileOptions &options, const codegen::Target &target,
              eval::WeightSource &weights) {
  const TargetInfo &info = target.getInfo();
  switch (phase) {
  case Phase::Prim:
    return addPrim(passes, options, info, weights);
  case Phase::Loop:
    return addLoop(passes, options, info, weights);
  case Phase::Schedule:
    return addSchedule(passes, options, target);
  case Phase::PlanMemory:
    passes.addPass(createPlanMemory());
    return;
  case Phase::Import:
  case Phase::Codegen:
  case Phase::Link:
    return;
  }
}

} // namespace ptc
