//===- CpuRecurrence.h - all steps of a loop in one kernel ------*- C++ -*-===//
#ifndef PTC_CODEGEN_CPU_CPURECURRENCE_H
#define PTC_CODEGEN_CPU_CPURECURRENCE_H

#include "codegen/cpu/CpuEmitter.h"
#include "ir/loop/Recurrence.h"

namespace ptc::cpu {

/// A kernel that is a loop.recurrence: that op; null if `kernel` is none.
loop::RecurrenceOp getRecurrence(loop::KernelOp kernel);
/// Plans each group of nodes as a kernel of its own, and sets the kernel's attributes.
mlir::LogicalResult planRecurrence(loop::KernelOp kernel, loop::RecurrenceOp op);
/// The group as a kernel: what `kernel` gets, then each state's `now` and `next`; its last symbol is the step. The
/// caller owns it.
loop::KernelOp createStageKernel(loop::KernelOp kernel, loop::FusedOp stage);
/// The arguments of a function of the kernel ABI, and where it keeps its result.
struct KernelFrame {
  mlir::Value buffers, symbols, begin, end, scratch, errorFlag;
};
/// Emits a call of a function of the kernel ABI in the same module, and notes what it returns in the frame's flag.
void callKernel(KernelEmitter &emitter, llvm::StringRef name, const KernelFrame &frame);
/// Emits the body of the kernel's function; `stages` are the names of the functions for the groups, in order.
void emitRecurrence(KernelEmitter &emitter, loop::RecurrenceOp op, llvm::ArrayRef<std::string> stages,
                    const KernelFrame &frame);
/// All groups of the kernel, those of `otherwise` last.
llvm::SmallVector<loop::FusedOp> getStages(loop::RecurrenceOp op);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPURECURRENCE_H
