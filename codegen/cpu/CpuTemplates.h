//===- CpuTemplates.h - compute-bound nodes on the CPU ----------*- C++ -*-===//
//
// What a template offers to planKernel and generateKernel. A kernel with a template node holds that node alone,
// contractions that are cut into the same blocks and nodes that read these part by part, row by row or column by
// column, or an attention and what runs ahead of its heads.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUTEMPLATES_H
#define PTC_CODEGEN_CPU_CPUTEMPLATES_H

#include "codegen/cpu/CpuEmitter.h"
#include "ir/loop/ColumnParts.h"

namespace ptc::cpu {

/// What planKernel writes into the kernel. `scratch` is in bytes a thread (null: none).
struct KernelPlan {
  Expr iterations; // independent units of work, in [0, iterations)
  Expr grain;      // fewest of them that are worth a thread
  Expr scratch;
  mlir::DictionaryAttr config; // the template's own choices, level independent
};

mlir::FailureOr<KernelPlan> planContraction(loop::KernelOp kernel, loop::ContractionOp op);
/// Several, each block of one before the same block of the next, and nodes behind each block.
mlir::FailureOr<KernelPlan> planContractions(loop::KernelOp kernel, llvm::ArrayRef<mlir::Operation *> nodes);
/// An attention, the last of the nodes, and pointwise nodes and products that run ahead of each of its heads.
mlir::FailureOr<KernelPlan> planAttention(loop::KernelOp kernel, llvm::ArrayRef<mlir::Operation *> nodes);

/// Emits a call for rows [begin, end) of what runs behind a product row by row, or parts of its columns.
using RunBehind = llvm::function_ref<void(mlir::Value begin, mlir::Value end)>;
/// Whether the kernel is a product and what runs behind it row by row.
bool hasRowsBehind(loop::KernelOp kernel);
/// The columns of a product, in all rows, behind which a sum runs part by part; nothing: the kernel is none of those.
std::optional<loop::ColumnParts> findColumnsBehind(loop::KernelOp kernel);
/// What runs behind a product in a function of its own.
struct NodesBehind {
  loop::KernelOp kernel; // planned; the caller owns it. It finds its scratch behind the product's
  Expr iterations;       // of a row, or of a part of the columns
};
mlir::FailureOr<NodesBehind> createKernelBehind(loop::KernelOp kernel);
/// Bytes of scratch of the product.
Expr getProductScratch(loop::KernelOp kernel);

/// Emits the iterations [begin, end) (i64 values) at the emitter's insertion point. Planned choices are in
/// kernel.getConfigAttr().
mlir::LogicalResult emitContractions(KernelEmitter &emitter, llvm::ArrayRef<mlir::Operation *> nodes, mlir::Value begin,
                                     mlir::Value end, RunBehind runBehind);
mlir::LogicalResult emitAttention(KernelEmitter &emitter, llvm::ArrayRef<mlir::Operation *> nodes, mlir::Value begin,
                                  mlir::Value end);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUTEMPLATES_H
