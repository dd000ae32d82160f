//===- ImageAxes.h - the image that windows lie in --------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_IMAGEAXES_H
#define PTC_CODEGEN_GPU_IMAGEAXES_H

#include "codegen/gpu/WgmmaOperands.h"

namespace ptc::gpu {

/// One axis of the image, along which windows begin at multiples of `stride`, and their places are `dilation` apart.
struct ImageAxis {
  int64_t rowDim, windowDim = -1;   // of the op; windowDim -1: windows have one place along it
  int64_t stride = 0, dilation = 0; // of positions
  int64_t first = 0, last = 0;      // positions that exist, counted from where the first window begins
  int64_t unit = 0;                 // elements of memory from one position to the next
  bool isPlain = false; // no window moves along it, and nothing is said of its positions: it may be of images
};

/// The axes of the image that lhs reads windows of, outermost first; nothing if it is none.
std::optional<llvm::SmallVector<ImageAxis>> findImageAxes(const ContractionDims &dims, const WgmmaLoad &lhs);

/// Whether a dim of k is one of the window, not the one of channels.
inline bool isWindowDim(const ContractionDims &dims, const WgmmaLoad &lhs, int64_t dim) {
  return dim >= dims.firstK && dim < dims.lastK() && lhs.axes[size_t(dim)].extent > 1;
}

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_IMAGEAXES_H
