//===- CpuContractionMatrix.h - sums in matrix registers ---------*- C++ -*-===//
//
// Blocks of a task whose sums are in registers of 16 x 16 words, and the copies of rows that they read.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTIONMATRIX_H
#define PTC_CODEGEN_CPU_CPUCONTRACTIONMATRIX_H

#include "codegen/cpu/CpuContractionTask.h"

namespace ptc::cpu {

/// Copies of a task's rows, or of the pixels that they are windows of, in scratch (CpuContractionMatrixRows.cpp).
class MatrixRows : ContractionTechnique {
public:
  explicit MatrixRows(ContractionEmission &contraction);
  /// Where they lie; null: rows are read where they are.
  mlir::Value getCopies() const { return copies; }
  bool areOfPixels() const { return copies && !f.copies.pixels.empty(); }
  void copy(const ContractionTask &task);
  /// The fewest and the most rows, or pixels, of a task that has any.
  std::pair<int64_t, int64_t> rowsOfTasks();

  /// The pixel that the row's window begins with; the first of its line.
  mlir::Value pixelOf(mlir::Value row);
  /// From that of the task's first row to that of its last one.
  mlir::Value pixelsOf(const ContractionTask &task);
  mlir::Value startOfLine(mlir::Value pixel);
  /// The first row whose window does not begin before the pixel.
  mlir::Value firstRowAt(mlir::Value pixel);

private:
  void copyPixels(const ContractionTask &task);
  void copyRows(const ContractionTask &task);
  /// `row` where its window meets no border, which the value tells; null: it is not copied so.
  mlir::Value copyInside(const ContractionTask &task, mlir::Value row, mlir::Value target);
  void copyAnywhere(const ContractionTask &task, mlir::Value row, mlir::Value target);
  /// The elements of a row that the innermost loop over k reads.
  void copyRun(mlir::Value from, mlir::Value to);

  mlir::Value copies;
};

/// Memory of a kernel whose sums are in matrix registers.
struct MatrixSlots {
  int64_t groups = 0;      // of k that a step takes
  mlir::Value whole, tail; // configurations: of 32 rows, of a task's blocks or its last rows
  mlir::Value height;      // rows of the one that is loaded
  mlir::Value delayed;     // the block whose epilogue is delayed
  mlir::Value a, b;        // copies of two registers of each operand
};

/// The registers' state and the memory beside it are its own, from the kernel's beginning to `release`.
class MatrixEmission : ContractionTechnique {
public:
  explicit MatrixEmission(ContractionEmission &contraction);
  bool copiesRows() const { return bool(rows.getCopies()); }
  void copyRows(const ContractionTask &task) { rows.copy(task); }
  void emitBlock(const ContractionTask &task, mlir::Value kLower, mlir::Value kUpper);
  void release();

private:
  MatrixRows rows;
  MatrixSlots slots;
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTIONMATRIX_H
