//===- ReductionSteps.h - the parts of a reduction node ---------*- C++ -*-===//
//
// The body of a reduction falls into what the reductions read (run for every point of the reduced dims), the
// reductions, and what depends on them (run once behind the loops). An op that both parts need is emitted in both.
//
// A loop.reduce carries one value, its accumulator; a loop.arg_reduce two, the best value and its index. These are its
// slots; wherever several reductions are carried together their slots follow each other in the order of the body.
// Running values of a scan (loop.running) are taken apart in the same way, if none of them needs another one.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_COMMON_REDUCTIONSTEPS_H
#define PTC_CODEGEN_COMMON_REDUCTIONSTEPS_H

#include "codegen/common/KernelEmitter.h"

namespace ptc::codegen {

/// The parts of a reduction's body.
struct BodyParts {
  llvm::SmallVector<mlir::Operation *> reductions;    // loop.reduce, loop.arg_reduce, loop.running
  llvm::SmallVector<mlir::Operation *> before, after; // in order
};

BodyParts splitBody(mlir::Block &block);

size_t slotsOf(mlir::Operation *reduction);
size_t slotsOf(const BodyParts &parts);

/// What the first slot starts with; an index starts with 0.
mlir::TypedAttr identityOf(mlir::Operation *reduction);

/// i1: `b`, at a later index, replaces the best value `a` of an arg_reduce. `orEqual`: an equal value does too.
mlir::Value isBetter(KernelEmitter &e, loop::ArgReduceOp arg, mlir::Value a, mlir::Value b, bool orEqual);

/// The slots of two parts of the reduced elements, in any order, as those of both.
llvm::SmallVector<mlir::Value> mergeSlots(KernelEmitter &e, mlir::Operation *reduction, llvm::ArrayRef<mlir::Value> a,
                                          llvm::ArrayRef<mlir::Value> b);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_REDUCTIONSTEPS_H
