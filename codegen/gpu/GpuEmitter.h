//===- GpuEmitter.h - code of loop nodes for one thread ---------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_GPUEMITTER_H
#define PTC_CODEGEN_GPU_GPUEMITTER_H

#include "codegen/common/BodyEmitter.h"
#include "codegen/common/ReductionSteps.h"
#include "codegen/gpu/GpuPlan.h"
#include "codegen/gpu/LaneEmitter.h"

namespace ptc::gpu {

using codegen::EmissionPoint;
using codegen::LoopBody;

/// Threads that do one thing together: a thread alone, a warp, or all threads of a row.
struct Team {
  mlir::Value rank; // i64, of this thread
  int64_t size = 1; // a power of two
};

/// One kernel's emission: its parameters, threads and memory.
class GpuEmitter : public codegen::KernelEmitter {
public:
  /// `arguments` are the function's: buffers, symbols, then error flag, scratch, counters and maps where there are
  /// some.
  /// `startsEarly`: before the launch in front of it has ended.
  GpuEmitter(mlir::OpBuilder &builder, mlir::ModuleOp module, loop::KernelOp kernel, mlir::ValueRange arguments,
             bool startsEarly);

  const GpuConfig config;
  const bool startsEarly;
  Team row; // of this thread; of one thread in layout `points`

  /// The kernel's whole body.
  void emit();

  //===--- Threads (GpuThreads.cpp) ---------------------------------------===//

  /// A special register as i64: "tid.x", "ctaid.x".
  mlir::Value getRegister(llvm::StringRef name);
  /// What launches in front of this one wrote is seen behind it. Does nothing in code that does not start early. Every
  /// thread comes here before it touches memory of the device.
  void createLaunchOrder();
  /// All writes of the row's threads before are seen by its threads behind.
  void createBarrier();
  /// The same for all threads of the block.
  void createBlockBarrier();
  /// Which of the warp's lanes the condition (i1) holds in: bit by bit, an i32.
  mlir::Value createBallot(mlir::Value condition);
  /// The values of the lane whose number differs in the bit `distance`.
  llvm::SmallVector<mlir::Value> createShuffle(mlir::ValueRange values, int64_t distance);
  /// The values that lane `lane` (i64, each lane's own) of the warp has.
  llvm::SmallVector<mlir::Value> createShuffleFrom(mlir::ValueRange values, mlir::Value lane);
  /// `body` where `condition` holds, `carried` unchanged elsewhere.
  llvm::SmallVector<mlir::Value> createIf(mlir::Value condition, mlir::ValueRange carried,
                                          llvm::function_ref<llvm::SmallVector<mlir::Value>()> body);
  /// The team's threads take the numbers [0, count) in turn.
  llvm::SmallVector<mlir::Value> createStrided(const Team &team, mlir::Value count, mlir::ValueRange carried,
                                               LoopBody body);
  /// A reduction's slots over the whole team, in each of its threads.
  llvm::SmallVector<mlir::Value> combine(const Team &team, mlir::Operation *reduction,
                                         llvm::SmallVector<mlir::Value> slots);
  /// Digits of `number` in the mixed radix `sizes` (outermost first). All are i64.
  llvm::SmallVector<mlir::Value> createDigits(mlir::Value number, llvm::ArrayRef<mlir::Value> sizes);

  /// The element of a buffer that the thread keeps in registers (RowBuffers.h), at a lane of the turn that is emitted;
  /// null for other buffers. A store, which comes first, sets it.
  mlir::Value *getKept(mlir::Value buffer, int64_t lane);

  /// Memory of the block, aligned to 16 bytes.
  mlir::Value sharedMemory(int64_t bytes);
  /// The same for each row of the block.
  mlir::Value sharedMemoryOfRow(int64_t bytes);
  /// Memory of the block that the launch gives.
  mlir::Value launchedMemory(int64_t alignment = 128);

  /// Of the whole launch, where the kernel has them.
  mlir::Value scratch, counters;
  llvm::SmallVector<mlir::Value> maps; // of tensors that are copied box by box, where this level's code does that

private:
  void placeLocals();
  void emitHorizontal(llvm::ArrayRef<mlir::Operation *> nodes);

  mlir::ModuleOp module;
  mlir::Value rowOfGrid, rowOfBlock; // i64
  unsigned sharedBlocks = 0;
  llvm::DenseSet<mlir::Value> keptBuffers;                                               // in registers
  llvm::DenseMap<std::pair<mlir::Value, std::pair<int64_t, int64_t>>, mlir::Value> kept; // by buffer, turn and lane
  int64_t turn = 0; // of a strided loop that is straight code
};

/// One node at a point of the kernel's spread dims.
class NodeEmitter {
public:
  NodeEmitter(GpuEmitter &e, mlir::Operation *node, int64_t spread)
      : e(e), node(node), domain(loop::getDomain(node)), spread(spread) {
    e.setDomain(domain);
  }

  /// The threads of the row (of one in layout `points`) emit the node; `lanes` adjacent points of the last spread dim.
  void emit(const EmissionPoint &point, int64_t lanes = 1);

private:
  using PointBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(const EmissionPoint &point, int64_t lanes,
                                                                      mlir::ValueRange carried)>;
  /// The team runs `body` for all points of the dims [from, to), the last of them in groups of `lanes`.
  llvm::SmallVector<mlir::Value> forPoints(const Team &team, const EmissionPoint &point, int64_t from, int64_t to,
                                           int64_t lanes, mlir::ValueRange carried, PointBody body);
  llvm::SmallVector<mlir::Value> forSerialPoints(const EmissionPoint &point, int64_t from, int64_t to,
                                                 mlir::ValueRange carried, PointBody body);
  llvm::SmallVector<mlir::Value> withTail(const EmissionPoint &point, int64_t dim, int64_t lanes,
                                          mlir::ValueRange carried, PointBody body);
  /// All threads of the row together run `body` for each point of the dims from `from` on but the last.
  void forRows(const EmissionPoint &point, int64_t from, llvm::function_ref<void(const EmissionPoint &)> body);
  std::pair<Team, Team> warpsOfRow();
  void emitReduction(loop::ReductionOp op, const EmissionPoint &point);
  void reduce(loop::ReductionOp op, const codegen::BodyParts &parts, const Team &team, const EmissionPoint &point);
  void emitScatter(loop::ScatterOp op, const EmissionPoint &point);
  void emitScan(loop::ScanOp op, const EmissionPoint &point);

  GpuEmitter &e;
  mlir::Operation *node;
  llvm::SmallVector<Expr> domain;
  int64_t spread;
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_GPUEMITTER_H
