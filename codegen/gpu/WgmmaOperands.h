//===- WgmmaOperands.h - what indices say of memory -------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_WGMMAOPERANDS_H
#define PTC_CODEGEN_GPU_WGMMAOPERANDS_H

#include "codegen/gpu/WgmmaPlan.h"

namespace ptc::gpu {

/// `extent` elements, `stride` apart.
struct Axis {
  int64_t extent = 1, stride = 0;
};

/// Extents, and what `index` is multiples of, for all dims of known extents; the rest of it in `offset`. Nothing if the
/// index is not linear in them.
std::optional<llvm::SmallVector<Axis>> readAxes(llvm::ArrayRef<Expr> domain, Expr index, int64_t &offset);
/// Dims as one axis, the last one innermost.
std::optional<Axis> mergeAxes(llvm::ArrayRef<Axis> axes);
/// Where boxes may begin.
bool isAligned(int64_t elements, const WgmmaTile &tile);

/// An operand that is a load of elements of the tile's kind from a buffer of the kernel: where each dim steps.
struct WgmmaLoad {
  unsigned buffer;                    // of the kernel's
  int64_t offset;                     // elements
  llvm::SmallVector<Axis> axes;       // one a dim
  llvm::SmallVector<Expr> conditions; // where one of them is negative, it is zero
};
std::optional<WgmmaLoad> analyzeLoad(loop::ContractionOp op, bool isRhs, const WgmmaTile &tile);

/// Both operands of a convolution.
std::optional<WgmmaOperands> analyzeWindow(loop::ContractionOp op, const WgmmaTile &tile);

/// Adds a dim to a map, outside of those there are.
void addDim(codegen::TensorMap &map, const Axis &axis);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_WGMMAOPERANDS_H
