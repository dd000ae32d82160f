//===- SplitReduction.h - long reductions of few results --------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_SPLITREDUCTION_H
#define PTC_CODEGEN_GPU_SPLITREDUCTION_H

#include "codegen/gpu/GpuEmitter.h"

namespace ptc::gpu {

/// How a reduction is cut: a block has `across` times `lanes` neighbouring results, or (`isRow`) one, whose points lie
/// side by side in memory and come `lanes` at a time. What it adds up goes round the other `down` threads.
struct SplitTile {
  static constexpr int64_t threads = 256;
  int64_t across, lanes, together; // steps that a thread asks for at once
  bool isRow;

  int64_t down() const { return threads / across; }
  int64_t columns() const { return isRow ? 1 : across * lanes; }

  mlir::DenseI64ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  static SplitTile fromAttribute(mlir::DictionaryAttr config);
};

/// Plans a kernel of one reduction in this way, if its results alone are too few for the device: its attributes are
/// set. The kernel has no buffers of its own.
bool planSplitReduction(loop::KernelOp kernel, loop::ReductionOp op);
void emitSplitReduction(GpuEmitter &e, loop::ReductionOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_SPLITREDUCTION_H
