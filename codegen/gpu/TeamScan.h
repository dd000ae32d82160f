//===- TeamScan.h - scans whose dim threads and blocks share ----*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_TEAMSCAN_H
#define PTC_CODEGEN_GPU_TEAMSCAN_H

#include "codegen/gpu/GpuEmitter.h"

namespace ptc::gpu {

/// How a scan is cut: a block has `across` neighbouring lines along the scanned dim, of which memory runs across; or
/// (`isRow`) one, which memory runs along, and whose points come `lanes` at a time. Along the dim go the other threads.
struct ScanTile {
  static constexpr int64_t threads = 256;
  int64_t across, lanes;
  bool isRow;

  mlir::DenseI64ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  static ScanTile fromAttribute(mlir::DictionaryAttr config);
};

/// Whether several threads may share a line of the scan.
bool mayShareLine(loop::ScanOp op);
/// The threads of the team, whole warps, scan the row at a point.
void emitTeamScan(GpuEmitter &e, loop::ScanOp op, const Team &team, const EmissionPoint &point);

/// Plans a kernel of one scan for blocks that share lines, if its lines alone are too few for the device: its
/// attributes are set. The kernel has no buffers of its own.
bool planSplitScan(loop::KernelOp kernel, loop::ScanOp op);
void emitSplitScan(GpuEmitter &e, loop::ScanOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_TEAMSCAN_H
