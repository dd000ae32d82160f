//===- ImageAxes.cpp - the image that windows lie in ----------------------===//
//
//   lhs(n, o..., w..., c) = image[n, o * stride + w * dilation - padding..., c], zero outside of the image
//
// What is known are indices, so that the image is found from them. The dims of m but those of k that are not c are
// taken as axes, each with the dim of the window that moves along it: the one that a condition of the padding names
// beside it, else that with the nearest step in memory. u = o * stride + w * dilation is a position along an axis; the
// conditions say which ones exist, and without them all that occur do.
//
// A dim of the window that no axis has is refused.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/ImageAxes.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

namespace {

/// An axis as far as it is known.
struct Positions {
  int64_t rowDim, windowDim = -1;   // of the op
  int64_t stride = 0, dilation = 0; // of u in them; 0: not known yet
  std::optional<int64_t> first, last;

  bool isPlain() const { return windowDim < 0 && stride == 0; }
  /// Takes what a condition says: it is not negative.
  bool restrict(int64_t rowFactor, int64_t windowFactor, int64_t constant);
  /// From steps in memory of the two dims, what is missing. Nothing: they do not fit one axis.
  std::optional<ImageAxis> complete(const Axis &row, const Axis &window) const;
};

class ImageAnalysis {
public:
  ImageAnalysis(const ContractionDims &dims, const WgmmaLoad &lhs) : dims(dims), lhs(lhs) {}
  std::optional<SmallVector<ImageAxis>> run();

private:
  bool readCondition(Expr condition);
  bool pairWindowDims();

  const ContractionDims &dims;
  const WgmmaLoad &lhs;
  SmallVector<Positions> axes; // outermost first
};

} // namespace

bool Positions::restrict(int64_t rowFactor, int64_t windowFactor, int64_t constant) {
  int64_t sign = rowFactor > 0 ? 1 : -1;
  rowFactor *= sign;
  windowFactor *= sign;
  bool isNew = stride == 0;
  if (windowFactor < 0 || (!isNew && (stride != rowFactor || dilation != windowFactor)))
    return false;
  stride = rowFactor;
  dilation = windowFactor;
  std::optional<int64_t> &bound = sign > 0 ? first : last;
  int64_t found = sign > 0 ? -constant : constant;
  bound = !bound ? found : sign > 0 ? std::max(*bound, found) : std::min(*bound, found);
  return true;
}

std::optional<ImageAxis> Positions::complete(const Axis &row, const Axis &window) const {
  ImageAxis axis{.rowDim = rowDim, .windowDim = windowDim, .stride = stride, .dilation = dilation};
  axis.isPlain = isPlain();
  if (stride == 0) {
    axis.unit = windowDim < 0 ? row.stride : std::gcd(row.stride, window.stride);
    axis.stride = axis.unit > 0 ? row.stride / axis.unit : 0;
    axis.dilation = windowDim < 0 || axis.unit == 0 ? 0 : window.stride / axis.unit;
  } else {
    axis.unit = row.stride / stride;
  }
  if (axis.unit <= 0 || row.stride != axis.unit * axis.stride ||
      (windowDim >= 0 && window.stride != axis.unit * axis.dilation))
    return std::nullopt;
  axis.first = first.value_or(0);
  axis.last = last.value_or(axis.stride * (row.extent - 1) + axis.dilation * (window.extent - 1));
  return axis.first <= axis.last ? std::optional(axis) : std::nullopt;
}

/// A condition restricts one axis.
bool ImageAnalysis::readCondition(Expr condition) {
  int64_t constant = 0;
  auto factors = readAxes(dims.domain, condition, constant);
  if (!factors)
    return false;
  int64_t row = -1, window = -1;
  for (auto [dim, factor] : llvm::enumerate(*factors)) {
    if (factor.stride == 0 || factor.extent == 1)
      continue;
    int64_t number = int64_t(dim);
    if (number >= dims.firstM && number < dims.firstN && row < 0)
      row = number;
    else if (isWindowDim(dims, lhs, number) && window < 0)
      window = number;
    else
      return false;
  }
  auto *axis = llvm::find_if(axes, [&](const Positions &each) { return each.rowDim == row; });
  if (axis == axes.end() || (window >= 0 && axis->windowDim >= 0 && axis->windowDim != window))
    return false;
  if (window >= 0)
    axis->windowDim = window;
  return axis->restrict((*factors)[size_t(row)].stride, window < 0 ? 0 : (*factors)[size_t(window)].stride, constant);
}

/// Window dims that no condition names.
bool ImageAnalysis::pairWindowDims() {
  for (int64_t dim = dims.firstK; dim < dims.lastK(); ++dim) {
    bool isTaken = llvm::any_of(axes, [&](const Positions &axis) { return axis.windowDim == dim; });
    if (!isWindowDim(dims, lhs, dim) || isTaken)
      continue;
    Positions *nearest = nullptr;
    int64_t least = 0;
    for (Positions &axis : axes) {
      int64_t a = lhs.axes[size_t(axis.rowDim)].stride, b = lhs.axes[size_t(dim)].stride;
      if (!axis.isPlain() || a <= 0 || b <= 0 || std::max(a, b) % std::min(a, b) != 0)
        continue;
      int64_t distance = std::max(a, b) / std::min(a, b);
      if (!nearest || distance < least) {
        nearest = &axis;
        least = distance;
      }
    }
    if (!nearest)
      return false;
    nearest->windowDim = dim;
  }
  return true;
}

std::optional<SmallVector<ImageAxis>> ImageAnalysis::run() {
  for (int64_t dim = dims.firstM; dim < dims.firstN; ++dim)
    if (lhs.axes[size_t(dim)].extent > 1)
      axes.push_back({.rowDim = dim});
  if (!llvm::all_of(lhs.conditions, [&](Expr condition) { return readCondition(condition); }) || !pairWindowDims())
    return std::nullopt;
  SmallVector<ImageAxis> found;
  for (const Positions &axis : axes) {
    Axis none;
    std::optional<ImageAxis> complete =
        axis.complete(lhs.axes[size_t(axis.rowDim)], axis.windowDim < 0 ? none : lhs.axes[size_t(axis.windowDim)]);
    if (!complete)
      return std::nullopt;
    found.push_back(*complete);
  }
  return found;
}

std::optional<SmallVector<ImageAxis>> gpu::findImageAxes(const ContractionDims &dims, const WgmmaLoad &lhs) {
  return ImageAnalysis(dims, lhs).run();
}
