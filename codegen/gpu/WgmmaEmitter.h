//===- WgmmaEmitter.h - code of contractions of warpgroups ------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_WGMMAEMITTER_H
#define PTC_CODEGEN_GPU_WGMMAEMITTER_H

#include "codegen/gpu/ContractionDims.h"
#include "codegen/gpu/GpuEmitter.h"
#include "codegen/gpu/MmaEpilogue.h"
#include "codegen/gpu/WgmmaPlan.h"

namespace ptc::gpu {

/// A block of one contraction; its parts are in WgmmaContraction.cpp, WgmmaSplitF32.cpp and WgmmaResults.cpp.
class WgmmaEmitter {
public:
  WgmmaEmitter(GpuEmitter &e, loop::ContractionOp op);
  void emit();

private:
  /// A tile, and the steps of k that the block does of it.
  struct Place {
    llvm::SmallVector<mlir::Value> batch;   // by dim
    mlir::Value row, column, number, split; // i32
    mlir::Value firstStep, endStep;         // i64
  };
  /// Where the next stage is and how often all have been used: what the loops carry.
  struct Turn {
    mlir::Value stage, parity;
  };
  using TileBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(const Place &place, mlir::ValueRange carried)>;

  mlir::Value word(int64_t value) { return e.invariants.constant(b.getI32IntegerAttr(int32_t(value))); }
  mlir::Value toWord(mlir::Value value) { return e.invariants.get<mlir::arith::TruncIOp>(b.getI32Type(), value); }
  mlir::Value widen(mlir::Value value) { return e.invariants.get<mlir::arith::ExtUIOp>(b.getI64Type(), value); }
  mlir::Type sumType() { return getSumType(b.getContext(), tile.kind); }
  mlir::Value zero() { return e.invariants.constant(b.getZeroAttr(sumType())); }
  size_t sumCount() const { return size_t(tile.n / 2); }
  /// Where the rows of this thread's warp, of those that multiply, begin in the tile.
  mlir::Value firstRowOfWarp();

  mlir::Value stageAt(const Turn &turn, int64_t offset);
  mlir::Value fullAt(const Turn &turn);
  mlir::Value emptyAt(const Turn &turn);
  mlir::Value dividedAt(const Turn &turn);
  Turn next(const Turn &turn);
  void initBarriers();
  llvm::SmallVector<mlir::Value> forTiles(mlir::ValueRange carried, TileBody body);
  Place placeOf(mlir::Value number);
  void copyBoxes(bool isRhs, const Place &place, mlir::Value step, const Turn &turn);
  llvm::SmallVector<mlir::Value> cornerOf(const Place &place);
  void copyPlace(bool isRhs, const Place &place, mlir::ValueRange corner, mlir::Value step, const Turn &turn);
  void copy(bool isRhs, const Place &place, mlir::ValueRange corner, mlir::Value step, const Turn &turn);
  void beginStage(const Place &place, mlir::Value step, const Turn &turn);
  mlir::Value beginEarly();
  void produce();
  void consume();
  llvm::SmallVector<mlir::Value> multiply(const Turn &turn, mlir::ValueRange sums);
  void release(mlir::Value barrier, mlir::Value condition);

  // f32 (WgmmaSplitF32.cpp)
  mlir::Value stagePointer(const Turn &turn, int64_t offset);
  void divideTiles();
  void divideStage(const Turn &turn);
  void consumeSplit();
  llvm::SmallVector<mlir::Value> multiplyParts(const Turn &turn, mlir::ValueRange fragments, int64_t from, int64_t to);
  llvm::SmallVector<mlir::Value> readLhs(const Turn &turn);
  llvm::SmallVector<mlir::Value> divideLhs(mlir::ValueRange elements);
  llvm::SmallVector<mlir::Value> addUp(mlir::ValueRange sums, mlir::ValueRange more);

  // Results (WgmmaResults.cpp)
  void finish(const Place &place, mlir::ValueRange sums);
  /// The thread's first row and column among all results.
  struct Results {
    MmaResults writer;
    mlir::Value row, column, inQuad;
  };
  Results beginResults(const Place &place);
  llvm::SmallVector<mlir::Value> sumsOfPart(mlir::ValueRange sums, int64_t part);
  void addChunks(const Results &results, mlir::Value part, llvm::SmallVector<mlir::Value> pairs,
                 llvm::SmallVector<MmaResults::Chunk> &chunks);
  void emitChunks(const Results &results, llvm::MutableArrayRef<MmaResults::Chunk> chunks);
  void emitResults(const Place &place, mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> exchange(llvm::SmallVector<mlir::Value> pairs);
  mlir::Value partAddress(const Place &place, mlir::Value split, size_t quad);
  void store(const Place &place, mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> addSplits(const Place &place);

  // Clusters (WgmmaCluster.cpp)
  mlir::Value sumAddress(mlir::Value part, int64_t half);
  llvm::SmallVector<mlir::Value> addPart(mlir::Value part);
  void finishInCluster(const Place &place, mlir::ValueRange sums);

  GpuEmitter &e;
  mlir::OpBuilder &b;
  loop::ContractionOp op;
  const ContractionDims dims;
  const WgmmaTile tile;
  const WgmmaOperands operands;
  const bool hasWeights;                           // rhs is one in every launch
  mlir::Value thread, lane, memory, shared, steps; // memory: a pointer; shared: the same as an address
  int64_t tiles, rowTiles, columnTiles;
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_WGMMAEMITTER_H
