//===- GpuPlan.h - how a kernel is laid out over threads --------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_GPUPLAN_H
#define PTC_CODEGEN_GPU_GPUPLAN_H

#include "ir/loop/Loop.h"

namespace ptc::gpu {

constexpr int64_t warpSize = 32;

/// What planKernel decides; stored as the kernel's `config`. The first `spread` dims of every node are divided among
/// threads or rows:
///
///   points   each thread takes `lanes` adjacent points of them; blocks have `threads` threads
///   rows     each point of them is a row, for `threads` threads; blocks hold `rows` rows
///   tiles    a contraction: GpuTemplates.h
///
/// A horizontal kernel is laid out node by node, as points; what is stored is what they have in common.
///
/// The number of blocks is the kernel's `iterations`.
struct GpuConfig {
  bool isRows = false;
  int64_t spread = 0;
  int64_t threads = 256;
  int64_t rows = 1;
  int64_t lanes = 1;

  mlir::DictionaryAttr toAttribute(mlir::MLIRContext *context) const;
  static GpuConfig fromAttribute(mlir::DictionaryAttr config);
};

/// Where a buffer of the kernel's own lies.
struct LocalBuffer {
  enum class Place { Registers, Thread, Shared, Scratch };
  loop::BufferOp buffer;
  Place place;
  Expr offset; // Shared, Scratch: bytes within the row's part
};
/// Where in the row's scratch a sort or a greedy choice works.
struct WorkSpace {
  mlir::Operation *node;
  Expr offset;
};
struct LocalMemory {
  llvm::SmallVector<LocalBuffer> buffers;
  llvm::SmallVector<WorkSpace> workSpaces;
  int64_t sharedBytes = 0; // of one row
  Expr scratchBytes;       // of one row
};
LocalMemory placeLocalBuffers(loop::KernelOp kernel, const GpuConfig &config);

/// The kernel's nodes in order.
llvm::SmallVector<mlir::Operation *> getNodes(loop::KernelOp kernel);
/// The kernel reports indices that are out of range.
bool checksIndices(loop::KernelOp kernel);

/// The work that no code can be made of yet, for people.
std::optional<std::string> whyUnsupported(loop::KernelOp kernel);

/// The layout of one node of a horizontal kernel, which has blocks of its own.
GpuConfig planHorizontal(mlir::Operation *node);
/// Those blocks.
Expr countBlocks(mlir::Operation *node, const GpuConfig &config);

/// The plan of a template without scratch: `layout`, whose own numbers are `tile` under `name`; `weights`: a part that
/// it may read early is one in every launch.
struct TemplatePlan {
  llvm::StringRef layout, name;
  mlir::Attribute tile;
  int64_t threads;
  Expr blocks;
  bool weights = false;
};
void setPlan(loop::KernelOp kernel, const TemplatePlan &plan);

/// Sets `iterations`, `grain`, `scratch` (bytes in all) and `config`.
void planKernel(loop::KernelOp kernel);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_GPUPLAN_H
