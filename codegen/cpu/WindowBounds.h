//===- WindowBounds.h - where a window lies inside its input ----*- C++ -*-===//
#ifndef PTC_CODEGEN_CPU_WINDOWBOUNDS_H
#define PTC_CODEGEN_CPU_WINDOWBOUNDS_H

#include "ir/loop/Loop.h"

namespace ptc::cpu {

/// Values of a dim, lower <= dim < upper; null: no bound on that side.
struct DimBounds {
  Expr lower, upper;
};

/// Conditions `expr >= 0` of the masks in a reduction's body whose failure means that the point adds nothing to any of
/// the reductions: a loop may leave such points out.
llvm::SmallVector<Expr> getSkippableConditions(loop::ReductionOp op);

/// The values of the dim for which `condition >= 0`, the other dims given; nothing if the condition is not affine in it
/// with a constant coefficient.
std::optional<DimBounds> solveFor(Expr condition, int64_t dim);

/// The values of kept dim `dim` for which `condition >= 0` wherever the reduced dims stand. Nothing if it uses other
/// kept dims or reduced dims of symbolic extent.
std::optional<DimBounds> solveForAllWindows(Expr condition, int64_t dim, llvm::ArrayRef<Expr> domain,
                                            int64_t firstReduced);

/// Whether the windows of outputs that are near each other along the kept dim have elements in common which they see at
/// different places of the reduced dim. `inSteps`: each such place is a whole number of outputs further; a line of the
/// window that is longer than a line of the image, whose end is the next one's start, is no overlap then.
bool windowsOverlap(loop::ReductionOp op, int64_t kept, int64_t reduced, bool inSteps = false);

/// The kept dim that a kernel of one windowed reduction can be tiled along, -1: none. Lanes run along `lanesDim`, of
/// dims [apart, shared) as the tiled one, or of the reduced ones. Neighbours along it that have nothing in common are
/// better off one after the other.
int64_t findTiledDim(loop::ReductionOp op, int64_t apart, int64_t shared, int64_t lanesDim);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_WINDOWBOUNDS_H
