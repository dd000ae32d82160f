//===- OwnedScatter.h - scatters whose points may meet ----------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_OWNEDSCATTER_H
#define PTC_CODEGEN_GPU_OWNEDSCATTER_H

#include "codegen/gpu/ScatterPlaces.h"

namespace ptc::gpu {

/// How places are divided. Updates are the points of the dims that places do not tell.
struct ScatterTile {
  static constexpr int64_t threads = 256, warps = threads / warpSize;
  enum class Owner { Thread, Warps };
  Owner owner;    // of the places of `chunk` points of the told dims
  int64_t chunk;  // Warps: those of a block
  int64_t parts;  // Warps: blocks that share its places; a power of two
  bool isUniform; // the places' indices are the same for all told points, which lanes then share

  mlir::DenseI64ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  static ScatterTile fromAttribute(mlir::DictionaryAttr config);
};

/// Plans a kernel of one scatter, all of whose points may meet, in this way, if it has one store: its attributes are
/// set. The kernel has no buffers of its own.
bool planOwnedScatter(loop::KernelOp kernel, loop::ScatterOp op);
/// Nanoseconds that it takes, about.
double estimateOwned(const ScatterPlaces &places, int64_t updates);
void emitOwnedScatter(GpuEmitter &e, loop::ScatterOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_OWNEDSCATTER_H
