//===- MmaShared.h - tiles in shared memory for tensor cores ----*- C++ -*-===//
//
// Chunks of 16 bytes change places within a row (exclusive or with a number that follows from the row), so that neither
// copies nor reads of fragments meet in a bank. Rows of fewer than eight chunks share a line of banks; the number
// counts lines then.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_GPU_MMASHARED_H
#define PTC_CODEGEN_GPU_MMASHARED_H

#include "codegen/gpu/GpuEmitter.h"
#include "codegen/gpu/MmaPlan.h"

namespace ptc::gpu {

using MmaFragments = llvm::SmallVector<llvm::SmallVector<mlir::Value>>;

struct MmaRows {
  /// What reads them: matrices (eight rows, one chunk of each); single f32, four rows t by eight neighbours; or of the
  /// rows 2t or 2t + 1; or quarters of rows of 128 bytes, chunk by chunk. TurnedMatrices: rows of 128 bytes of which
  /// writers have words of every fourth row.
  enum class Reader { Matrices, Words, PairedWords, Strips, TurnedMatrices };
  int64_t rowBytes, elementBytes;
  Reader reader;

  /// Bytes from the beginning.
  mlir::Value offsetOf(GpuEmitter &e, mlir::Value row, mlir::Value column) const;
  /// The address of an element, `more` bytes on.
  mlir::Value addressOf(GpuEmitter &e, mlir::Value base, mlir::Value row, mlir::Value column, int64_t more) const;
};

/// Which operand of a product a tile is, and how it lies.
struct MmaSide {
  bool isRhs;
  bool isAlongK; // rows run along k
};

/// Fragments 32 bytes deep at `k` (elements): of the 16 rows from `free` + `more` on, or of twice 8 columns.
MmaFragments createMatrixFragments(GpuEmitter &e, const MmaRows &rows, MmaSide side, mlir::Value base, mlir::Value lane,
                                   mlir::Value free, int64_t more, int64_t k);

/// sums + a * b for all fragments, row by row. The tensor cores cut their sums off instead of rounding them, always
/// towards zero, which a deep network would show; so of f32 only the eight products of one instruction are added up
/// there (the small ones first), and the rest in ordinary arithmetic.
llvm::SmallVector<mlir::Value> createProducts(GpuEmitter &e, MmaKind kind, const MmaFragments &a, const MmaFragments &b,
                                              llvm::SmallVector<mlir::Value> sums);
/// The same of f32, sums + a * b * factors: b has tf32 numbers, so that two products do; `factors` are those of a
/// thread's columns.
llvm::SmallVector<mlir::Value> createScaledProducts(GpuEmitter &e, const MmaFragments &a, const MmaFragments &b,
                                                    mlir::ValueRange factors, llvm::SmallVector<mlir::Value> sums);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_MMASHARED_H
