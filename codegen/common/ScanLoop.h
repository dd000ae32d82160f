//===- ScanLoop.h - running values along a scan's last dim ------*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_SCANLOOP_H
#define PTC_CODEGEN_COMMON_SCANLOOP_H

#include "codegen/common/BodyEmitter.h"

namespace ptc::codegen {

/// The loop over the scanned dim, the domain's last, at each of `points`; their positions in it are ignored.
void emitScanLoop(KernelEmitter &e, loop::ScanOp op, llvm::ArrayRef<EmissionPoint> points);

/// Whether a line alone is summed with its elements in lanes.
bool scansInLanes(KernelEmitter &e, loop::ScanOp op);
/// The loop over such a line; `point` is a scalar one, whose position in it is ignored.
void emitScanInLanes(KernelEmitter &e, loop::ScanOp op, const EmissionPoint &point);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_SCANLOOP_H
