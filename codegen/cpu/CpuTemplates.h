//===- CpuTemplates.h - compute-bound nodes on the CPU ----------*- C++ -*-===//
//
// What a template offers to planKernel and generateKernel. A kernel with a template node holds that node alone, or
// several contractions that are cut into the same blocks and pointwise nodes that read these part by part.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUTEMPLATES_H
#define PTC_CODEGEN_CPU_CPUTEMPLATES_H

#include "codegen/cpu/CpuEmitter.h"
#include "ir/loop/Loop.h"

namespace ptc::cpu {

/// What planKernel writes into the kernel. `scratch` is in bytes a thread (null: none).
struct KernelPlan {
  Expr iterations; // independent units of work, in [0, iterations)
  Expr grain;      // fewest of them that are worth a thread
  Expr scratch;
  mlir::DictionaryAttr config; // the template's own choices, level independent
};

mlir::FailureOr<KernelPlan> planContraction(loop::KernelOp kernel, loop::ContractionOp op);
/// Several, each block of one before the same block of the next, and pointwise nodes behind each block.
mlir::FailureOr<KernelPlan> planContractions(loop::KernelOp kernel, llvm::ArrayRef<mlir::Operation *> nodes);
/// An attention, the last of the nodes, and pointwise nodes that run ahead of each of its heads.
mlir::FailureOr<KernelPlan> planAttention(loop::KernelOp kernel, llvm::ArrayRef<mlir::Operation *> nodes);

/// Emits the iterations [begin, end) (i64 values) at the emitter's insertion point. Planned choices are in
/// kernel.getConfigAttr().
mlir::LogicalResult emitContractions(KernelEmitter &emitter, llvm::ArrayRef<mlir::Operation *> nodes, mlir::Value begin,
                                     mlir::Value end);
mlir::LogicalResult emitAttention(KernelEmitter &emitter, llvm::ArrayRef<mlir::Operation *> nodes, mlir::Value begin,
                                  mlir::Value end);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUTEMPLATES_H
