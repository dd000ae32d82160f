//===- CpuContractionEpilogue.h - what happens to the sums -------*- C++ -*-===//
//
// The epilogue of a contraction on sums in registers and in memory.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTIONEPILOGUE_H
#define PTC_CODEGEN_CPU_CPUCONTRACTIONEPILOGUE_H

#include "codegen/cpu/CpuContractionTask.h"

namespace ptc::cpu {

/// What sums start from, if that is taken out of the epilogue, and how many rows of sums wait for it are its own.
class ContractionEpilogue : ContractionTechnique {
public:
  explicit ContractionEpilogue(ContractionEmission &contraction);
  /// Takes what the epilogue first adds to integer sums, if it is the same for all rows, out of it.
  void takeBias();
  /// Where the sums of a tile start: at the bias that was taken, or empty.
  llvm::SmallVector<mlir::Value> initialSums(const ContractionTask &task, const RowClass &rows,
                                             const ColumnClass &columns, mlir::Value panel);
  /// Sums of all k where it is cut: zeros at first.
  void zeroSums(const ContractionTask &task);

  /// Whether the sums of such a tile wait in scratch for the epilogue.
  bool waits(const RowClass &rows, const ColumnClass &columns);
  /// Tiles of so many rows that wait together: where they are turned, few, of which squares are nearly full.
  int64_t tilesTogether(int64_t height) const;
  /// Rows of the tiles before the one that is emitted.
  void setWaitingRows(mlir::Value rows) { waitingRows = rows; }
  /// Puts the sums of a tile behind those of the waiting rows.
  void storeSums(const ColumnClass &columns, mlir::ValueRange accumulators);
  /// On what waits: `rows` rows from `row` on.
  void emitOnWaiting(const ContractionTask &task, const ColumnClass &columns, mlir::Value row, mlir::Value rows,
                     mlir::Value panel);

  void emitOnTile(const ContractionTask &task, const RowClass &rows, const ColumnClass &columns, mlir::Value row,
                  mlir::Value panel, mlir::ValueRange accumulators);
  /// On one row of sums in memory, at the point's other dims: columns [column, column + columns).
  void emitOnRow(const EmissionPoint &point, mlir::Value line, mlir::Value column, mlir::Value columns);
  /// On rows x columns of sums that lie in memory, [row][column] with the contraction's pitch, or, if it is told, at
  /// `placeOf` a row.
  void emitOnSums(const ContractionTask &task, mlir::Value sums, mlir::Value row, mlir::Value rows, mlir::Value column,
                  mlir::Value columnEnd, llvm::function_ref<mlir::Value(mlir::Value row)> placeOf = {});

private:
  /// Sums that wait for an epilogue: so many rows, of which the first is `row` of the result and starts at its
  /// `column`.
  struct WaitingSums {
    mlir::Value sums, row, rows, column;
  };
  /// Whether lanes of a vector are neighbours along the last n dim wherever a vector starts at a multiple of `lanes`.
  bool hasVectorColumns(int64_t lanes) const;
  bool isLight(int64_t accumulators) const;
  /// Dims of a flat index that the epilogue sees; where it uses the dims as one, the last takes the whole index.
  void setFlat(EmissionPoint &point, int64_t first, int64_t count, bool isFlat, mlir::Value flat);
  /// Where the epilogue's vectors are of rows: for squares of `columns` columns of sums, turned in registers.
  void emitTurned(const ContractionTask &task, const WaitingSums &waiting, mlir::Value columns);
  /// One square, from this row and column of what waits on. `mask`: the rows that there are; null: all.
  void emitOnSquare(const ContractionTask &task, const WaitingSums &waiting, mlir::Value row, mlir::Value column,
                    int64_t columns, mlir::Value mask);

  bool isFlatM, isFlatN;   // the epilogue uses m (n) as one dim, the last
  mlir::Region bias;       // yields it; empty: there is none
  mlir::Value waitingRows; // in scratch
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTIONEPILOGUE_H
