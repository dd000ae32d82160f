//===- MmaAttentionEmitter.h - code of attention on tensor cores *- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_MMAATTENTIONEMITTER_H
#define PTC_CODEGEN_GPU_MMAATTENTIONEMITTER_H

#include "codegen/gpu/MmaAttention.h"
#include "codegen/gpu/MmaShared.h"

namespace ptc::gpu {

/// A block of one attention; its code is in MmaAttention.cpp, MmaAttentionResults.cpp and
/// MmaAttentionParts.cpp.
class AttentionEmitter {
public:
  AttentionEmitter(GpuEmitter &e, loop::AttentionOp op);
  void emit();

private:
  using Values = llvm::SmallVector<mlir::Value>;
  // The state of a thread: of its two rows the maximum (in powers of two) and the sum of weights, then the sums of all
  // columns.
  static constexpr size_t firstSum = 4;

  mlir::Value number(float value) { return e.invariants.constant(b.getF32FloatAttr(value)); }
  mlir::Value infinity() { return number(-std::numeric_limits<float>::infinity()); }
  mlir::Value less(mlir::Value x, mlir::Value y) { return e.invariants.compare(mlir::arith::CmpIPredicate::slt, x, y); }
  mlir::Value atMost(mlir::Value x, mlir::Value y) {
    return e.invariants.compare(mlir::arith::CmpIPredicate::sle, x, y);
  }
  mlir::Value at(mlir::Value base, int64_t bytes) { return e.getAddress(base, b.getI8Type(), e.constant(bytes)); }
  mlir::Value stageAt(mlir::Value bytes) { return e.getAddress(at(shared, tile.queryBytes()), b.getI8Type(), bytes); }
  /// The group's number times so many. (Rows change places within fewer than a group has.)
  mlir::Value ofGroup(int64_t factor) { return e.invariants.mul(group, e.constant(factor)); }
  Values choose(mlir::Value condition, mlir::TypeRange types, llvm::function_ref<Values()> yes,
                llvm::function_ref<Values()> no);
  void findPlace();
  bool isWholeTiles() const;

  void copyRows(mlir::Region &region, int64_t rowDim, int64_t columnDim, int64_t columns, const MmaRows &rows,
                int64_t count, mlir::Value first, mlir::Value last, mlir::Value target);
  void copyQueries();
  void copyKeys(mlir::Value step, mlir::Value stage, bool isValues);
  void copyTile(mlir::Value step, mlir::Value stage);

  MmaFragments readQueries(int64_t k);
  void keepQueries();
  Values scoresOf(mlir::Value stage);
  void applyScore(Values &scores, mlir::Value firstKey);
  Values scoresWithin(mlir::ValueRange products, mlir::Value firstKey);
  Values scoresChecked(mlir::ValueRange products, mlir::Value firstKey);
  mlir::Value overQuad(mlir::Value value, llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> step);
  mlir::Value larger(mlir::Value a, mlir::Value c);
  mlir::Value baseOf(mlir::Value maximum);
  mlir::Value powerOfTwo(mlir::Value exponent);
  Values weigh(Values &scores, mlir::ValueRange state, Values &scales);
  MmaFragments leftOf(llvm::ArrayRef<mlir::Value> weights, int64_t part);
  MmaFragments valuesOf(mlir::Value stage, int64_t part);
  Values addValues(mlir::Value stage, llvm::ArrayRef<mlir::Value> weights, mlir::ValueRange sums,
                   llvm::ArrayRef<mlir::Value> scales);
  Values start();
  Values takeAll();
  Values takeTiles();

  // Results (MmaAttentionResults.cpp)
  mlir::Value sumAddress(mlir::Value group, mlir::Value row, mlir::Value column, int64_t more);
  mlir::Value rowSumsAddress(mlir::Value group, mlir::Value row);
  void spread(mlir::ValueRange state);
  /// Of sums that belong together: the largest maximum, their weights to its base, and what each is multiplied by.
  struct Joint {
    mlir::Value maximum, weight;
    Values factors;
  };
  Joint join(mlir::ValueRange maxima, mlir::ValueRange weights);
  Joint joinGroups(mlir::Value row);
  Values sumGroups(llvm::ArrayRef<mlir::Value> factors, mlir::Value row, mlir::Value column, int64_t lanes);
  int64_t chooseLanes();
  /// Chunks of columns go round the block's threads.
  void forChunks(int64_t lanes, llvm::function_ref<void(mlir::Value row, mlir::Value column)> body);
  /// Sums of weights times v, which become results.
  void writeChunk(mlir::Value row, mlir::Value column, Values results, mlir::Value isSome);
  void emitChunk(mlir::Value row, mlir::Value column, int64_t lanes);
  void emitResults(mlir::ValueRange state);

  // Parts of the keys (MmaAttentionParts.cpp)
  mlir::Value partAddress(mlir::Value part, mlir::Value row, mlir::Value column);
  void storePart(mlir::Value row, mlir::Value column, int64_t lanes);
  Values takeParts(mlir::Value first, mlir::ValueRange state, mlir::Value row, mlir::Value column);
  void joinParts(mlir::Value row, mlir::Value column, int64_t lanes);
  void meet(int64_t lanes);

  int64_t stepDepth() const { return 32 / tile.elementBytes(); } // of an instruction or two
  int64_t scoreTiles() const { return tile.groupKeys() / 8; }
  size_t sumCount() const { return size_t(tile.width / 8 * 4); }

  GpuEmitter &e;
  mlir::OpBuilder &b;
  loop::AttentionOp op;
  const AttentionTile tile;
  const Expr splitsExpr;
  llvm::SmallVector<Expr> domain;
  EmissionPoint point;
  int64_t iDim, jDim, dDim, eDim;
  MmaRows keyRows, valueRows; // q lies as k does
  mlir::Value shared, thread, lane, warpRow, group, firstQuery, queryCount, keyCount;
  mlir::Value tileNumber, splits, split, firstStep, lastStep; // of the block
  mlir::Value query[2], queryInside[2];                       // of the thread's rows; clamped
  llvm::SmallVector<MmaFragments> queries;                    // of the warp, by steps of depth; empty: read when wanted
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_MMAATTENTIONEMITTER_H
