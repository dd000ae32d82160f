//===- GpuBarriers.h - where the threads of a row must wait -----*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_GPUBARRIERS_H
#define PTC_CODEGEN_GPU_GPUBARRIERS_H

#include "codegen/gpu/GpuPlan.h"

namespace ptc::gpu {

/// Follows the nodes of a row and says where a barrier is needed.
class Barriers {
public:
  explicit Barriers(const GpuConfig &config) : config(config) {}
  /// The next node; true if a barrier must stand before it.
  bool enter(mlir::Operation *node);

private:
  struct Access {
    mlir::Operation *node;
    mlir::Value buffer;
    mlir::Attribute index; // null: not by the thread that has the node's point
    bool isWrite;
  };
  void collect(mlir::Operation *node, llvm::ArrayRef<mlir::Operation *> ops, bool isOwn,
               llvm::SmallVectorImpl<Access> &into) const;
  bool conflict(const Access &a, const Access &b) const;

  const GpuConfig &config;
  llvm::SmallVector<Access> open; // since the last barrier
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_GPUBARRIERS_H
