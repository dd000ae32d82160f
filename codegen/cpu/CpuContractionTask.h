//===- CpuContractionTask.h - tasks of a contraction, their tiles -*- C++ -*-===//
//
// Which rows and columns a task and a tile have, and what the classes that emit a part of a contraction begin with.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTIONTASK_H
#define PTC_CODEGEN_CPU_CPUCONTRACTIONTASK_H

#include "codegen/cpu/CpuContraction.h"

namespace ptc::cpu {

class ContractionEmission;

/// The block of the result that a task computes.
struct ContractionTask {
  mlir::Value batch;
  mlir::Value mBlock, nBlock; // null of a rectangle (CpuContractionRectangles.cpp)
  mlir::Value matrix;         // of a packed weight's, which repeat where the batch has more
  llvm::SmallVector<mlir::Value> batchDims;
  mlir::Value firstRow, rows;       // rows [firstRow, firstRow + rows)
  mlir::Value firstTile, endTile;   // row tiles
  mlir::Value firstHeld;            // the row that what scratch has of A begins with
  mlir::Value firstHeldTile;        // and its tile
  mlir::Value firstPanel, endPanel; // panels
  mlir::Value firstColumnTile, endColumnTile;
};

/// Row tiles of one height: tile t in [lower, upper) starts at row t*height + offset. Where tiles are parts of lines,
/// those of a line start at `firsts`, after as many other tiles of it as `before`.
struct RowClass {
  int64_t height;
  mlir::Value offset, lower, upper;
  llvm::SmallVector<int64_t> firsts;
  int64_t before = 0;
};

/// Rows of each line that are a tile: [first, first + height).
struct LinePart {
  int64_t first, height;
};

/// Column tiles of one width: tile t in [lower, upper) starts at panel t*panels + offset; or, where its panels lie
/// `apart`, at panel t + offset.
struct ColumnClass {
  int64_t panels, offset;
  mlir::Value lower, upper;
  bool isMasked = false;            // the last panel may be partly outside n
  int64_t lastColumns = panelWidth; // of the last panel, if known to be fewer in all tiles of the class
  mlir::Value apart;                // panels from each panel of a tile to its next one; null: they are neighbours
};

/// A tile of a task: its number among the row tiles, its first row and panel, and where the outermost loop over k runs.
struct ContractionTile {
  RowClass rows;
  ColumnClass columns;
  mlir::Value number, row, panel;
  mlir::Value kLower, kUpper;
};

/// Of a tile's rows in A, where the outer loops over k stand (TileOperands).
using RowAddresses = std::function<llvm::SmallVector<mlir::Value>(mlir::ValueRange outer)>;

/// Words of two 16-bit integers that a group of four bytes is taken apart into: its even bytes, its odd ones.
inline constexpr int64_t wordsOfGroup = 2, termsOfWord = 2;

/// A way of emitting a contraction or a part of it, which a class of its own has: what it uses of the contraction.
class ContractionTechnique {
public:
  explicit ContractionTechnique(ContractionEmission &contraction);

protected:
  mlir::Value value(Expr expr) const { return e.emitExpr(expr, {}); }
  void loop(mlir::Value lower, mlir::Value upper, int64_t step, llvm::function_ref<void(mlir::Value)> body) const {
    e.forEach(lower, upper, step, body);
  }
  void emitIf(mlir::Value condition, llvm::function_ref<void()> body) const { e.emitIf(condition, body); }

  ContractionEmission &c;
  KernelEmitter &e;
  ContractionForm &f;
  InvariantBuilder &i;
  mlir::Type accumulator;
  int64_t lanes;
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTIONTASK_H
