//===- BlockMerge.h - a block sorts and merges in shared memory -*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_BLOCKMERGE_H
#define PTC_CODEGEN_GPU_BLOCKMERGE_H

#include "codegen/gpu/GpuEmitter.h"

namespace ptc::gpu {

/// What is sorted: one i64, or two (the first decides). No two are equal.
using SortItem = llvm::SmallVector<mlir::Value, 2>;

/// The threads of a block, a power of two, and a tile of items: `perThread` for each of them.
class BlockMerge {
public:
  static constexpr int64_t perThread = 8;
  /// `words` of an item.
  BlockMerge(GpuEmitter &e, int64_t threads, int64_t words);

  int64_t size() const { return threads * perThread; }
  static mlir::Value isLess(GpuEmitter &e, const SortItem &a, const SortItem &b);
  /// An item behind all others.
  SortItem last();

  /// The tile in order: the thread's are neighbours, its first one at its number times `perThread`.
  llvm::SmallVector<SortItem> sort(llvm::SmallVector<SortItem> items);
  /// Puts an item at a place (i64) of the tile; and reads it, behind a barrier.
  void put(mlir::Value place, const SortItem &item);
  SortItem get(mlir::Value place);
  /// Puts what `sort` or `merge` returned. All have read the tile before; there is a barrier behind.
  void putAll(llvm::ArrayRef<SortItem> items);
  /// Merges runs of the tile, [0, middle) and [middle, end), as `sort`; a barrier is in front.
  llvm::SmallVector<SortItem> merge(mlir::Value middle, mlir::Value end);

private:
  void sortThread(llvm::MutableArrayRef<SortItem> items);
  llvm::SmallVector<SortItem> mergeRuns(mlir::Value begin, mlir::Value middle, mlir::Value end, mlir::Value from);

  GpuEmitter &e;
  mlir::OpBuilder &b;
  const int64_t threads, words;
  mlir::Value thread, memory;
};

/// `body` gets and returns what is carried while `condition` holds of that.
llvm::SmallVector<mlir::Value> createWhile(GpuEmitter &e, mlir::ValueRange start,
                                           llvm::function_ref<mlir::Value(mlir::ValueRange)> condition,
                                           llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> body);
/// The first number of [low, high) that `isBefore` does not hold of, which holds of all in front of it.
mlir::Value createSearch(GpuEmitter &e, mlir::Value low, mlir::Value high,
                         llvm::function_ref<mlir::Value(mlir::Value)> isBefore);
/// The same by the lanes of a warp together, who ask for 32 numbers at a time.
mlir::Value createWarpSearch(GpuEmitter &e, mlir::Value lane, mlir::Value low, mlir::Value high,
                             llvm::function_ref<mlir::Value(mlir::Value)> isBefore);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_BLOCKMERGE_H
