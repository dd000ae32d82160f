//===- SortedScatter.h - scatters by sorted updates -------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_SORTEDSCATTER_H
#define PTC_CODEGEN_GPU_SORTEDSCATTER_H

#include "codegen/gpu/ScatterPlaces.h"

namespace ptc::gpu {

/// How updates are sorted, and who takes which.
struct SortedTile {
  static constexpr int64_t threads = 256;
  static constexpr int64_t steps = 4;                       // ranks of a warp that takes rows, or windows of teams
  static constexpr int64_t mostColumns = 4;                 // of a lane
  int64_t digitBits;                                        // of the sort
  int64_t passes;                                           // 0: as many as the number of places takes
  int64_t lanes;                                            // that take an update together, a power of two
  int64_t columns;                                          // told points of a lane
  bool isFlat;                                              // no told points
  int64_t together() const { return columns == 1 ? 8 : 4; } // updates that a lane has under way
  int64_t toldOfTeam() const { return lanes * columns; }
  int64_t teams() const { return threads / lanes; } // of a block
  int64_t ranksOfTicket() const { return teams() * steps; }

  mlir::DenseI64ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  static SortedTile fromAttribute(mlir::DictionaryAttr config);
};

/// Plans a kernel of one scatter whose updates of a place are combined in their order, if there are so many of them
/// that sorting is sooner done than that each owner looks at all (OwnedScatter.h); its attributes are set. The kernel
/// has no buffers of its own.
bool planSortedScatter(loop::KernelOp kernel, loop::ScatterOp op);
void emitSortedScatter(GpuEmitter &e, loop::ScatterOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_SORTEDSCATTER_H
