//===- CpuAttention.h - streaming softmax attention on the CPU --*- C++ -*-===//
//
// What the files of the attention template share: CpuAttention.cpp tells how it works.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUATTENTION_H
#define PTC_CODEGEN_CPU_CPUATTENTION_H

#include "codegen/cpu/CpuContraction.h"
#include "codegen/cpu/CpuEmitter.h"
#include "codegen/cpu/RegisterTile.h"
#include <optional>

namespace ptc::cpu {

/// What follows from the op alone; the same for all levels.
struct AttentionForm {
  llvm::SmallVector<Expr> domain;
  int64_t batchDims;
  Expr batch, i, j, d, e;
  Expr rows, blocks; // queries of a task, tasks of a head
  int64_t rowsMost;  // of rows
  Expr keys;         // of a block, at most
  Expr qPitch, scorePitch, outputPitch;
  Expr qAt, kAt, vAt, scoresAt, outputAt, maximaAt, sumsAt, scalesAt, partialsAt, skipsAt, scratch;
  bool isOneBlock;  // all keys in one block
  Expr held, slots; // blocks of keys whose copies a head's tasks hold; places for these and one that changes
};

AttentionForm analyzeAttention(loop::AttentionOp op);

/// Whether scores have masks that may hide keys, and whether a score tells that whatever the product is.
bool mayHideKeys(loop::AttentionOp op);

/// Bytes of scratch that queries and the products ahead of them use in turns; the kernel's own buffers follow.
Expr scratchInTurns(const AttentionForm &f, llvm::ArrayRef<mlir::Operation *> ahead);

/// Of a product that runs ahead of each head. Its dims may be merged; its batch begins with the heads.
Expr matricesOfHead(const ContractionForm &form, const AttentionForm &f);

struct AttentionEmission {
  AttentionEmission(KernelEmitter &emitter, loop::AttentionOp op, llvm::ArrayRef<mlir::Operation *> ahead);
  void emit(mlir::Value begin, mlir::Value end);

  // Parts of a task.
  void decodeHead(mlir::Value index);
  void decodeBlock(mlir::Value block);
  void emitAhead();
  mlir::Value emitTask(mlir::Value packed);
  mlir::Value chooseBlock(mlir::Value key);
  void packBlock(mlir::Value key, mlir::Value held, mlir::Value end);
  void packKeys(mlir::Value key, mlir::Value first, mlir::Value end);
  void packQueries();
  void resetState();
  void packPanels(mlir::Region &region, int64_t lanesDim, mlir::Value first, mlir::Value count, int64_t rowsDim,
                  mlir::Value rowFirst, mlir::Value rowCount, mlir::Value target, mlir::Value rowsOfPanel);
  void emitTile(mlir::Value row, mlir::Value key, mlir::Value count);
  void emitKeys(mlir::Value row, mlir::Value key, mlir::Value count);
  void emitScores(mlir::Value row, mlir::Value count);
  // The softmax, in steps over all rows of the tile: what is reduced across lanes then waits for no other row.
  void emitScoreRows(mlir::Value row, mlir::Value key, mlir::Value count);
  void emitBases(mlir::Value row);
  void emitWeights(mlir::Value row, mlir::Value count);
  void emitSums(mlir::Value row);
  void emitOutput(mlir::Value row, mlir::Value count);
  void emitResults();

  // Keys that masks hide: CpuAttentionHidden.cpp.
  mlir::Value findsHidden(mlir::Value row);
  void emitSkips();
  void emitVisibleKeys(mlir::Value row, mlir::Value key, mlir::Value count);
  mlir::Value skipUnits(mlir::Value doesSkip, mlir::Value first, mlir::Value end, bool isFromEnd,
                        llvm::function_ref<mlir::Value(mlir::Value unit)> isHidden);
  mlir::Value isHidden(mlir::Value row, mlir::Value key, mlir::Value count, mlir::Value probedRow,
                       mlir::Value probedColumn, mlir::Value unit);
  mlir::Value isAnyVisible(mlir::Value row, mlir::Value key, mlir::Value column, mlir::Value count);

  EmissionPoint point() const;
  void loop(mlir::Value lower, mlir::Value upper, int64_t step, llvm::function_ref<void(mlir::Value)> body) {
    e.forEach(lower, upper, step, body);
  }
  void forEachVector(const EmissionPoint &at, int64_t dim, mlir::Value lower, mlir::Value upper,
                     llvm::function_ref<void(const EmissionPoint &, mlir::Value)> body) {
    e.forEachVector(at, dim, lanes, lower, upper, body);
  }
  /// Column tiles of a product: whole ones, then the rest, one tile where what is left of `known` columns in all is.
  void forEachColumnTile(mlir::Value columns, std::optional<int64_t> known,
                         llvm::function_ref<void(const TileShape &shape, mlir::Value panel)> body);
  mlir::Value value(Expr expr) { return e.emitExpr(expr, {}); }
  mlir::Value at(mlir::Value base, mlir::Value index) { return e.getAddress(base, f32, index); }
  mlir::Value maximum(mlir::Value a, mlir::Value b);
  mlir::Value acrossLanes(mlir::Value vector, llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);
  /// The power of e, or of 2 where scores are in its units, of what is not above 0, or NaN.
  mlir::Value exponential(mlir::Value x);
  mlir::Value binary(mlir::Value a, mlir::Value b, bool isSum);
  mlir::Value splatConstant(float x);
  mlir::Value partialAt(mlir::Value row) { return at(partials, in.mul(row, in.constant(panelWidth))); }
  mlir::Value firstLane(mlir::Value vector);

  KernelEmitter &e;
  loop::AttentionOp op;
  llvm::ArrayRef<mlir::Operation *> ahead; // of each head
  InvariantBuilder &in;
  AttentionForm f;
  mlir::Type f32;
  std::optional<float> scale; // scores are products times it, which the copies of the queries bring, and log2(e)
  int64_t lanes, dimI, dimJ, dimD, dimE, height, width;
  bool isEmitted = true;    // all that runs ahead
  bool skipsHidden = false; // keys that masks hide from all queries of a tile
  mlir::Value queries, keys, depth, size;
  mlir::Value qPack, kPacks, vPacks, scores, output, maxima, sums, scales, partials, skips;
  mlir::Value qPitch, scorePitch, outputPitch, blockKeys;
  // The task, and its block of keys.
  llvm::SmallVector<mlir::Value> batchDims;
  mlir::Value batch, firstRow, rows;
  mlir::Value kPack, vPack;
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUATTENTION_H
