//===- MergeSort.h - sorts of rows by blocks that share them ----*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_MERGESORT_H
#define PTC_CODEGEN_GPU_MERGESORT_H

#include "codegen/gpu/BlockMerge.h"

namespace ptc::gpu {

/// Rows of items as tiles, which become sorted runs, two of which become one in each further phase. Runs are cut
/// behind `kept` items.
class RunMerger {
public:
  using ReadItem = llvm::function_ref<SortItem(mlir::Value row, mlir::Value position)>;
  using Visit = llvm::function_ref<void(mlir::Value row, mlir::Value rank, const SortItem &item)>;

  /// `scratch`: where items lie, of getBytes.
  RunMerger(GpuEmitter &e, BlockMerge &tile, int64_t words, mlir::Value scratch, mlir::Value rows, mlir::Value length,
            mlir::Value kept);
  static Expr getBytes(Expr rows, Expr length, int64_t words);

  /// How many tickets (TicketLoop.h) it takes.
  mlir::Value countTickets();
  /// What ticket number `ticket` does, the first of which is number `first` of the launch. `read` gives an item of a
  /// row; `visit` is called for those that are kept, in the last phase.
  void emit(class TicketLoop &tickets, mlir::Value first, mlir::Value ticket, ReadItem read, Visit visit);
  /// A row of one tile.
  void emitTile(mlir::Value row, ReadItem read, Visit visit);

private:
  llvm::SmallVector<SortItem> sortTile(mlir::Value row, mlir::Value tileNumber, ReadItem read);
  void mergeTile(mlir::Value phase, mlir::Value number, Visit visit);
  void writeTile(llvm::ArrayRef<SortItem> items, mlir::Value row, mlir::Value start, mlir::Value count,
                 mlir::Value buffer, mlir::Value isLast, mlir::Value firstRank, Visit visit);
  mlir::Value lengthOfRun(mlir::Value start, mlir::Value stride);
  mlir::Value addressOf(mlir::Value buffer, mlir::Value row, mlir::Value position, int64_t word);
  SortItem load(mlir::Value buffer, mlir::Value row, mlir::Value position);
  mlir::Value ticketsOf(mlir::Value phase);

  GpuEmitter &e;
  mlir::OpBuilder &b;
  BlockMerge &tile;
  const int64_t words;
  mlir::Value scratch, rows, length, kept, thread, phases, borders;
};

/// Plans a kernel of one sort in this way; its attributes are set. The kernel has no buffers of its own.
bool planMergeSort(loop::KernelOp kernel, loop::SortOp op);
void emitMergeSort(GpuEmitter &e, loop::SortOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_MERGESORT_H
