// Compilers that are worse than ptc's in one way each.
#ifndef PTC_TESTS_PLANTED_PLANTS_H
#define PTC_TESTS_PLANTED_PLANTS_H

#include "codegen/Target.h"
#include "compiler/Phases.h"
#include "mlir/Pass/PassManager.h"

namespace ptc::test {

using ChangePasses = std::function<void(Phase, mlir::OpPassManager &)>;

/// The last pointwise node that reads what another node computes stays a kernel of its own.
void refuseOneFusion(Phase phase, mlir::OpPassManager &passes);
/// The first buffer between two kernels is copied, and the second reads the copy.
void copyOneBuffer(Phase phase, mlir::OpPassManager &passes);
/// Buffers of the arena begin 4 bytes behind a cache line.
void misalignArena(Phase phase, mlir::OpPassManager &passes);
/// The first buffer of the arena is kept until the end.
void prolongOneLife(Phase phase, mlir::OpPassManager &passes);
/// Launches are repeated until `share` of the floating-point operations is done twice. Results stay what they are.
ChangePasses repeatWork(double share);

/// The CPU with no vectors in kernels of loops.
const codegen::Target &getScalarTarget();
/// The CPU with one wrong coefficient in the exponential of float32: its code differs in such 4 bytes alone.
const codegen::Target &getWrongExpTarget();

} // namespace ptc::test

#endif // PTC_TESTS_PLANTED_PLANTS_H
