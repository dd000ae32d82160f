//===- LaunchUses.h - what launches in a row need of each other -*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_LAUNCHUSES_H
#define PTC_COMPILER_SCHEDULE_LAUNCHUSES_H

#include "compiler/schedule/Footprint.h"

namespace ptc::loop {

/// A launch and its step: launches of one step run side by side. Steps ascend from 0.
struct TimedLaunch {
  LaunchOp launch;
  size_t step;
};

/// Dependences between the launches of one program, and the memory that an order of them needs at the hint.
class LaunchUses {
public:
  struct Access {
    mlir::Value root; // a buffer or an argument of the program
    bool writes;
    mlir::BlockArgument argument; // of the kernel
  };
  struct MemoryUse {
    int64_t peak = 0, area = 0; // bytes, bytes x steps
  };
  /// Bytes in front of a step, and during it.
  struct StepUse {
    int64_t before = 0, during = 0;
  };

  LaunchUses(ProgramOp program, mlir::SymbolTable &kernels)
      : program(program), kernels(kernels), hints(prim::getSymbolHints(program.getSymbols())),
        ranges(prim::getSymbolRanges(program.getSymbols())) {}

  /// In order; the reference is valid until the next call.
  llvm::ArrayRef<Access> getAccesses(LaunchOp launch);
  KernelOp getKernel(LaunchOp launch) { return kernels.lookup<KernelOp>(launch.getKernel()); }
  /// Whether one of the two writes elements that the other one uses: not those that write parts of a concat.
  bool dependsOn(LaunchOp later, LaunchOp earlier);
  /// What is around some neighbours in a row of launches.
  struct Around {
    struct Uses {
      unsigned before = 0, all = 0; // by the launches before the neighbours, and in the row
      bool isOwn = false;           // nobody else uses it
    };
    llvm::DenseMap<mlir::Value, Uses> buffers;
    int64_t alive = 0; // bytes in front of the neighbours
  };
  /// What the arena's buffers need while neighbours run that are a part of a row, all together and in each step.
  /// Buffers that others use too live through the whole run.
  MemoryUse measure(llvm::ArrayRef<TimedLaunch> neighbours, const Around &around,
                    llvm::SmallVectorImpl<StepUse> *steps = nullptr);
  /// In front of the first launch of a row.
  Around getAround(llvm::ArrayRef<TimedLaunch> row);
  /// Moves on behind a launch.
  void pass(LaunchOp launch, Around &around);
  int64_t getBytes(mlir::Value buffer);

private:
  /// Which elements of the buffer the launch uses.
  Footprint &getFootprint(LaunchOp launch, mlir::Value root);
  bool isInPlace(mlir::BlockArgument read, mlir::BlockArgument written);

  ProgramOp program;
  mlir::SymbolTable &kernels;
  SymbolValues hints;
  SymbolRanges ranges;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Access>> accesses;
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Value>, std::unique_ptr<Footprint>> footprints;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, bool> inPlace;
  llvm::DenseMap<mlir::Value, int64_t> bytes;
};

/// Calls `visit` with the launches between which a block has nothing else that touches buffers, inner blocks' first.
/// `isNeutral` names other operations that do not end such a row.
void forEachRow(mlir::Block &block, llvm::function_ref<bool(mlir::Operation *)> isNeutral,
                llvm::function_ref<void(llvm::MutableArrayRef<LaunchOp>)> visit);

/// Puts the launches of a row into this order, one right behind the other, where the last of them stood in the block:
/// there all that they use is defined.
void placeInOrder(llvm::ArrayRef<LaunchOp> launches);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_LAUNCHUSES_H
