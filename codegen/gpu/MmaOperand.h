//===- MmaOperand.h - an operand's tiles in shared memory -------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_MMAOPERAND_H
#define PTC_CODEGEN_GPU_MMAOPERAND_H

#include "codegen/gpu/MmaShared.h"

namespace ptc::gpu {

/// What the parts of one kernel's emission share.
struct MmaBlock {
  GpuEmitter &e;
  loop::ContractionOp op;
  ContractionDims dims;
  MmaTile tile;
  EmissionPoint point;                   // the dims of the batch
  mlir::Value thread, lane;              // i64
  mlir::Value warpRow, warpColumn;       // of the tile: where the warp's part begins
  llvm::SmallVector<mlir::Value> kSizes; // extents
  mlir::Value kCount;                    // their product
  bool isWholeK = false;                 // tiles end where k does
  bool isWholeInner = false;             // and where the last dim of k does
};

/// lhs, whose free dims are m, or rhs, whose are n.
class MmaOperand {
public:
  /// `number`: of the tile among those along the free dims; `offset`: bytes within a stage.
  MmaOperand(MmaBlock &block, bool isRhs, mlir::Value number, int64_t offset);

  mlir::Value getFirst() const { return first; } // row or column of the tile
  mlir::Value getCount() const { return count; } // of all there are
  /// The dims of a row or column, set in `point`.
  void setFree(EmissionPoint &point, mlir::Value position) const;
  void setDepth(EmissionPoint &point, mlir::Value step, mlir::Value k) const;

  bool isAsync() const { return source.copy <= MmaSource::Copy::Words; }
  /// Asynchronous: begins to copy the tile of a step of k to a stage (a pointer).
  void copy(mlir::Value step, mlir::Value stage) const;
  /// Else: this thread's elements of the tile, and their way to the stage.
  llvm::SmallVector<mlir::Value> compute(mlir::Value step) const;
  void store(mlir::ValueRange values, mlir::Value stage) const;

  /// The warp's fragments at the step `part` of the tile's four: of each 16 rows four registers, of each 8 columns two.
  MmaFragments readFragments(mlir::Value stage, int64_t part) const;
  /// Lhs beside packed numbers: the same of the parts 2 * `half` and the next, whose k are the thread's own
  /// (MmaPacked.h).
  std::array<MmaFragments, 2> readStrips(mlir::Value stage, int64_t half) const;

private:
  struct Place {
    mlir::Value free, k; // within the tile
  };
  Place placeOf(int64_t number, int64_t together) const;
  EmissionPoint pointAt(const Place &place, mlir::Value step, int64_t together) const;
  mlir::Value existsAt(const Place &place, mlir::Value step) const;
  mlir::Value isInside(const EmissionPoint &at) const;
  /// The tile is larger than what there is: the rest of it is not read.
  bool isFew() const {
    std::optional<int64_t> known = e.invariants.asConstant(count);
    return known && *known < size;
  }
  mlir::Value addressOf(mlir::Value stage, mlir::Value free, mlir::Value k, int64_t more = 0) const;
  int64_t together() const { return source.together(block.tile.elementBytes()); }
  int64_t perThread() const { return size * block.tile.k() / (together() * block.tile.threads()); }
  /// Bytes come four along k, which are a word; turned ones, of four neighbours along the free dims at a time.
  bool isBytes() const { return block.tile.elementBytes() == 1; }
  bool isTurned() const { return source.copy == MmaSource::Copy::Turned; }
  int64_t wordsPerThread() const { return size * block.tile.k() / (4 * block.tile.threads()); }
  Place placeOfWord(int64_t number) const;
  EmissionPoint pointOfByte(const Place &place, mlir::Value step, mlir::Value *exists) const;
  llvm::SmallVector<mlir::Value> loadWords(const Place &place, mlir::Value step) const;
  mlir::Value computeWord(const Place &place, mlir::Value step) const;
  llvm::SmallVector<mlir::Value> computeWords(mlir::Value step) const;
  void fill(mlir::Value address, int64_t bytes) const;
  mlir::Value convert(mlir::Value value) const;
  MmaFragments readWords(mlir::Value stage, int64_t part) const;

  MmaBlock &block;
  GpuEmitter &e;
  bool isRhs;
  mlir::Region &region;
  MmaSource source;
  int64_t size;
  MmaRows rows;
  int64_t firstDim, offset;
  mlir::Value first, count, warpFirst;
  llvm::SmallVector<mlir::Value> freeSizes;
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_MMAOPERAND_H
