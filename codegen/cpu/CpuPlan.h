//===- CpuPlan.h - how a kernel of loop nodes is cut and vectorised -*- C++ -*-===//
#ifndef PTC_CODEGEN_CPU_CPUPLAN_H
#define PTC_CODEGEN_CPU_CPUPLAN_H

#include "codegen/cpu/CpuTemplates.h"
#include "ir/loop/Loop.h"

namespace ptc::cpu {

/// What planKernel decides for a kernel without templates; stored as the kernel's `config`.
///
/// Iterations are the points of the shared (parallel) dims in row-major order, or, if lanes run along the shared dim
/// `sharedVector`: the points of the others, each times the blocks of `block` elements of that dim. A dim that is
/// `tiled` is no digit of them; one that is cut has a block of `tileBlock` elements as its digit. The digit of a dim
/// whose points are `ordered` counts places in their order (ChosenPoints.cpp).
struct LoopConfig {
  int64_t sharedVector = -1;
  int64_t block = 0;
  int64_t tiled = -1;
  int64_t tileBlock = 0;
  int64_t ordered = -1;
  llvm::SmallVector<int64_t> nodeVectors; // per node, a dim of its own along which lanes run; -1: none

  mlir::DictionaryAttr toAttribute(mlir::MLIRContext *context) const;
  static LoopConfig fromAttribute(mlir::DictionaryAttr config);
};

/// Where the kernel's own buffers lie.
struct LocalBuffer {
  mlir::Operation *op; // loop.buffer, or loop.sort for its work space
  bool onStack;
  Expr offset; // in scratch, in bytes
  Expr bytes;
};
struct LocalMemory {
  llvm::SmallVector<LocalBuffer> buffers;
  Expr scratch; // bytes a thread
};
LocalMemory placeLocalBuffers(loop::KernelOp kernel);
/// Tells the emitter where these are; those in scratch behind the first `base` bytes of it (null: 0). `lanes` copies of
/// each, on the stack where there are several.
void placeLocals(KernelEmitter &emitter, int64_t lanes, Expr base = {});

/// The kernel's nodes in order.
llvm::SmallVector<mlir::Operation *> getNodes(loop::KernelOp kernel);

/// Estimated cycles (in sixteenths) of one point of the node when lanes run along `dim` (-1: scalar code). What follows
/// dim `turned` is turned in registers (NodeSquares.cpp).
double estimatePoint(mlir::Operation *node, int64_t dim, int64_t turned = -1);
/// What a node reads along dim `across` while its stores follow dim `along`; none where it is not made in squares.
llvm::SmallVector<loop::LoadOp> getCrossingLoads(mlir::Operation *node, int64_t along, int64_t across);
/// Whether a node gathers rows that run along dim `across`, at places that do not depend on it, while its stores follow
/// dim `along`.
bool gathersAcross(mlir::Operation *node, int64_t along, int64_t across);
/// Whether stores of the 2 to 4 points along `along`, or 8, fill what vectors of them along `across` leave out between
/// their lanes.
bool weavesStores(mlir::Operation *node, int64_t along, int64_t across);
/// Lanes along the dim would load an element at a time.
bool gathersAlong(mlir::Operation *node, int64_t dim);
/// Lanes may run along the node's dim.
bool canVectorize(mlir::Operation *node, int64_t dim);

/// The node's own dim, behind `shared` others, along which lanes run best; -1: scalar code is better.
int64_t chooseNodeVector(mlir::Operation *node, int64_t shared);

/// Neither lanes nor tiles run along the first `apart` dims: they are the first digits of the iterations.
KernelPlan planLoops(loop::KernelOp kernel, int64_t apart = 0);
/// Sets the attributes that say how the kernel is cut.
void setPlan(loop::KernelOp kernel, const KernelPlan &plan);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUPLAN_H
