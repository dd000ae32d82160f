//===- Recurrence.h - loops as one kernel -----------------------*- C++ -*-===//
#ifndef PTC_IR_LOOP_RECURRENCE_H
#define PTC_IR_LOOP_RECURRENCE_H

#include "ir/loop/Loop.h"

#define GET_OP_CLASSES
#include "ir/loop/RecurrenceOps.h.inc"

namespace ptc::loop {

/// Whether the op lies inside of a recurrence.
bool isInRecurrence(mlir::Operation *op);

/// The groups of the body in chains, each in order: a chain touches no memory that another one writes, in any step.
llvm::SmallVector<llvm::SmallVector<FusedOp>> findChains(RecurrenceOp op);

/// Of a planned kernel: how many of its iterations may run at the same time. Those of a group of nodes in a
/// recurrence: the groups of one number do not depend on each other.
inline constexpr llvm::StringLiteral phaseAttr = "phase";
/// Null if all iterations may.
Expr getPhase(KernelOp kernel);

/// Of a kernel that is a recurrence: the bytes that a step of one chain reads (of several the mean), its weights again
/// each time; and how many such steps there are, those of all chains.
inline constexpr llvm::StringLiteral stepBytesReadAttr = "step_bytes_read", stepsAttr = "steps";

} // namespace ptc::loop

#endif // PTC_IR_LOOP_RECURRENCE_H
