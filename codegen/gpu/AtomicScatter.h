//===- AtomicScatter.h - scatters in which order is nothing -----*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_ATOMICSCATTER_H
#define PTC_CODEGEN_GPU_ATOMICSCATTER_H

#include "codegen/gpu/ScatterPlaces.h"

namespace ptc::gpu {

/// Plans a kernel of one scatter whose updates may be taken in any order, by atomic operations, or of whose updates the
/// last one stays; its attributes are set. The kernel has no buffers of its own.
bool planAtomicScatter(loop::KernelOp kernel, loop::ScatterOp op);
bool planLastScatter(loop::KernelOp kernel, loop::ScatterOp op);

void emitAtomicScatter(GpuEmitter &e, loop::ScatterOp op);
void emitLastScatter(GpuEmitter &e, loop::ScatterOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_ATOMICSCATTER_H
