//===- CpuContractionBytes.h - bytes multiplied in pairs ---------*- C++ -*-===//
//
// Tiles of copies of bytes, where no instruction multiplies four of them and adds them up.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTIONBYTES_H
#define PTC_CODEGEN_CPU_CPUCONTRACTIONBYTES_H

#include "codegen/cpu/CpuContractionTask.h"
#include <array>

namespace ptc::cpu {

/// Copies of a task's rows and of a column tile in scratch, lists of weights that are taken out of these, and what is
/// known of the column tile are its own. A task's rows are copied before its columns, these before tiles multiply them.
class ByteEmission : ContractionTechnique {
public:
  explicit ByteEmission(ContractionEmission &contraction);
  void copyRows(const ContractionTask &task, mlir::Value kLower, mlir::Value kUpper);
  /// Copies the tile's columns where something has to be left out, and multiplies that by all rows.
  void copyColumns(const ContractionTask &task, const ColumnClass &columns, mlir::Value panel, mlir::Value kLower,
                   mlir::Value kUpper);
  /// The products of a tile and of what its columns leave out, added to `init` (empty: 0).
  llvm::SmallVector<mlir::Value> multiply(const ContractionTask &task, const ContractionTile &tile,
                                          mlir::ValueRange init);

private:
  /// Of a panel of the column tile that is copied: where the products lie that its copy leaves out, numbers from a
  /// row's to the next's. Zeros at one place where there are none.
  struct RestOfPanel {
    mlir::Value first, pitch;
  };
  /// The column tile: its first panel where it is, whether sums of four products are added up in 16 bits. Else panels
  /// are copied, in words of 16-bit integers or without what is in lists.
  struct ColumnTile {
    mlir::Value inPlace, addsFour, inWords;
    llvm::SmallVector<RestOfPanel> rests;
  };
  /// Of two groups that follow each other.
  using WeightsOfGroups = std::array<mlir::Value, 2>;

  // Rows.
  int64_t rowOfPlace(int64_t place) const;
  void findLargest(mlir::Value rows, mlir::Value terms);
  void turnRows(mlir::Value rows, mlir::Value terms);
  void onceForRows(mlir::Value isMade, llvm::function_ref<void()> make);
  void widenRows(mlir::Value rows, mlir::Value terms);
  mlir::Value zeroBytes();

  // Columns.
  mlir::Value groupsTo(mlir::Value k);
  mlir::Value largestPairs(mlir::Value weights, mlir::Value largest);
  mlir::Value isAtEnd(mlir::Value sums, bool isLargest);
  mlir::Value pairLeaves(mlir::Value weights, mlir::Value largest);
  mlir::Value fourLeave(const WeightsOfGroups &weights, const WeightsOfGroups &largest);
  void takeOut(mlir::Value pairs, mlir::Value copy, mlir::Value term);
  mlir::Value largestOfGroup(mlir::Value group);
  mlir::Value loadWeights(const ContractionTask &task, mlir::Value panel, mlir::Value group, int64_t column);
  mlir::Value addsFour(const ContractionTask &task, mlir::Value panel, mlir::Value groups, mlir::Value before);
  mlir::Value wholePairs(mlir::Value groups);
  /// Whether something is left out, in lists.
  mlir::Value copyWeights(const ContractionTask &task, mlir::Value from, mlir::Value to, mlir::Value groups);
  mlir::Value copyPanel(const ContractionTask &task, const ColumnClass &columns, int64_t p, mlir::Value from,
                        mlir::Value groups);
  mlir::Value wantsWords(const ContractionTask &task, llvm::ArrayRef<mlir::Value> panelsOfTile, mlir::Value groups);
  void widenPanel(const ContractionTask &task, int64_t p, mlir::Value from, mlir::Value groups);

  // What was taken out.
  llvm::SmallVector<mlir::Value> multiplyEntries(mlir::Value entry, mlir::Value row, mlir::ValueRange sums);
  void multiplyLists(const ContractionTask &task);
  void transposeRest(const ContractionTask &task, const ColumnClass &columns, int64_t p);

  // The tile.
  TileOperands byteOperands(const ContractionTask &task, const ContractionTile &tile, int64_t addedPairs);
  TileOperands wideOperands(const ContractionTask &task, const ContractionTile &tile);
  llvm::SmallVector<mlir::Value> startOf(const ContractionTask &task, const ContractionTile &tile,
                                         mlir::ValueRange init);

  mlir::Value byteRows, turnedRows, wideRows, byteColumns, listPlaces, listWeights, largestBytes, isTurned, isWidened,
      listCounts, restOfColumns, restOfRows, zeroRow; // in scratch
  ColumnTile columnTile;
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTIONBYTES_H
