//===- GpuTemplates.h - contractions and attention on the GPU ---*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_GPUTEMPLATES_H
#define PTC_CODEGEN_GPU_GPUTEMPLATES_H

#include "codegen/gpu/GpuEmitter.h"

namespace ptc::gpu {

/// How a contraction is cut: a block computes m x n results, a thread threadM x threadN of them; the steps of k, `k` at
/// a time, go round the `groups` of threads, whose sums are added up at the end.
struct ContractionTile {
  int64_t m, n, k, threadM, threadN, groups;

  int64_t groupThreads() const { return (m / threadM) * (n / threadN); }
  int64_t threads() const { return groupThreads() * groups; }
  mlir::DenseI64ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  static ContractionTile fromAttribute(mlir::DictionaryAttr config);
};

/// Plans a kernel of one contraction: its attributes are set. Small ones become reductions, which the caller plans.
bool planContraction(loop::KernelOp kernel, loop::ContractionOp op);
void emitContraction(GpuEmitter &e, loop::ContractionOp op);
/// A contraction that is planned for tensor cores (MmaPlan.h).
void emitMmaContraction(GpuEmitter &e, loop::ContractionOp op);
/// The same for warpgroups (WgmmaPlan.h).
void emitWgmmaContraction(GpuEmitter &e, loop::ContractionOp op);

/// One row of a loop.attention for the threads of a warp.
void emitAttention(GpuEmitter &e, loop::AttentionOp op, const EmissionPoint &point);

/// A kernel of one attention that is planned for tensor cores (MmaAttention.h).
void emitMmaAttention(GpuEmitter &e, loop::AttentionOp op);

/// Sorts a row of `extent` points by all threads of e.row; the row's last dim is the node's own.
void emitSortRow(GpuEmitter &e, loop::SortOp op, const EmissionPoint &row, Expr extent);
/// Chooses points of a row in the same way; e.row is at least a warp.
void emitGreedyRow(GpuEmitter &e, loop::GreedyOp op, const EmissionPoint &row, Expr extent);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_GPUTEMPLATES_H
