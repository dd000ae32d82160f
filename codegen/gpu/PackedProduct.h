//===- PackedProduct.h - few rows times packed weights ----------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_PACKEDPRODUCT_H
#define PTC_CODEGEN_GPU_PACKEDPRODUCT_H

#include "codegen/gpu/GpuEmitter.h"

namespace ptc::gpu {

/// How a product of few rows with weights of few bits is cut: a block computes `columns` of the result with all of its
/// threads, each of which takes a word (4 bytes) of every column, `threads` words at a time.
struct PackedTile {
  int64_t rows; // of the result
  int64_t columns, threads;

  int64_t warps() const { return threads / warpSize; }
  int64_t sums() const { return rows * columns; } // of a thread
  mlir::DenseI64ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  static PackedTile fromAttribute(mlir::DictionaryAttr config);
};

/// Plans a kernel of one contraction in this way, if it suits: its attributes are set.
bool planPacked(loop::KernelOp kernel, loop::ContractionOp op);
void emitPacked(GpuEmitter &e, loop::ContractionOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_PACKEDPRODUCT_H
