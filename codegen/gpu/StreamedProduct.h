//===- StreamedProduct.h - few rows times a matrix --------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_STREAMEDPRODUCT_H
#define PTC_CODEGEN_GPU_STREAMEDPRODUCT_H

#include "codegen/gpu/GpuEmitter.h"

namespace ptc::gpu {

/// How a product of few rows with a matrix whose rows lie along n is cut: `across` threads have `lanes` neighbours each
/// of a row of the matrix, all of a block's threads so many rows at a time.
struct StreamedTile {
  int64_t rows;            // of the result
  int64_t across, threads; // powers of two; at most a warp across
  int64_t lanes;

  int64_t columns() const { return across * lanes; }
  int64_t depth() const { return threads / across; } // of k at a time
  int64_t warps() const { return threads / warpSize; }
  int64_t sumBytes() const { return warps() * rows * columns() * 4; }

  mlir::DenseI64ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  static StreamedTile fromAttribute(mlir::DictionaryAttr config);
};

/// Plans a kernel of one contraction in this way, if it suits: its attributes are set.
bool planStreamed(loop::KernelOp kernel, loop::ContractionOp op);
void emitStreamed(GpuEmitter &e, loop::ContractionOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_STREAMEDPRODUCT_H
