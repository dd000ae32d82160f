//===- LaneEmitter.h - one body at adjacent points --------------*- C++ -*-===//
//
// A thread may take several adjacent points of a dim. Their arithmetic is scalar, one body a point, since a GPU's
// thread has no vector registers; accesses that move with the dim become one access of up to 16 bytes.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_GPU_LANEEMITTER_H
#define PTC_CODEGEN_GPU_LANEEMITTER_H

#include "codegen/common/BodyEmitter.h"
#include "codegen/gpu/LaneAnalysis.h"
#include <vector>

namespace ptc::gpu {

class GpuEmitter;

class LaneEmitter {
public:
  /// The points of `first` and, along `dim` (a multiple of `lanes` there), of those behind it.
  LaneEmitter(GpuEmitter &e, mlir::Operation *node, const codegen::EmissionPoint &first, int64_t dim, int64_t lanes);

  /// Emits the ops for all points, op by op, stores last.
  void emitOps(llvm::ArrayRef<mlir::Operation *> ops);
  size_t size() const { return bodies.size(); }
  codegen::BodyEmitter &getBody(size_t lane) { return bodies[lane]; }
  const codegen::EmissionPoint &getPoint(size_t lane) const { return points[lane]; }

private:
  void emitOp(mlir::Operation *op);
  mlir::Value vectorAddress(mlir::Value buffer, Expr index, mlir::ValueRange operands, mlir::Type elementType);
  bool emitKept(mlir::Operation *op);
  void emitLoad(loop::LoadOp op);
  void emitStore(loop::StoreOp op);

  GpuEmitter &e;
  LaneAnalysis analysis;
  std::vector<codegen::EmissionPoint> points;
  std::vector<codegen::BodyEmitter> bodies;
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_LANEEMITTER_H
