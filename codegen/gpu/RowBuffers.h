//===- RowBuffers.h - what of a row its threads have themselves -*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_ROWBUFFERS_H
#define PTC_CODEGEN_GPU_ROWBUFFERS_H

#include "codegen/gpu/GpuPlan.h"

namespace ptc::gpu {

/// Turns of a strided loop over a row that become straight code, if there are no more: enough accesses in flight.
constexpr int64_t unrolledTurns = 8;

/// Adjacent points that a thread of a row takes together: as many in all nodes of one domain, where those take several.
int64_t lanesOfRow(mlir::Operation *node);

/// A reduction of which the row's threads together have every point.
bool isWholeRow(mlir::Operation *node, const GpuConfig &config);

/// The same thread has a point in both nodes.
bool sharesPoints(mlir::Operation *a, mlir::Operation *b, const GpuConfig &config);

/// Buffers of one element that every thread of a row computes for itself: what only the outer part of reductions over
/// the whole row writes.
bool isRowValue(loop::BufferOp buffer, const GpuConfig &config);

/// How many elements of the buffer each thread keeps in registers: those of its own points, which no other thread
/// reads. 0: the buffer is memory.
int64_t countKept(loop::BufferOp buffer, const GpuConfig &config);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_ROWBUFFERS_H
