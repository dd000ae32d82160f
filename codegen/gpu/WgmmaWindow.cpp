//===- WgmmaWindow.cpp - contractions of warpgroups: convolutions ---------===//
//
//   lhs(n, o..., w..., c) = image[n, o * stride + w * dilation - padding..., c], zero outside of the image
//
// A step of k is one place w of the window and some of the channels c, which must be contiguous. What it reads of lhs
// are channels of as many pixels as the tile has rows, each `stride` behind the one before: across ends of lines and
// images, but with the same w for all of them. TMA copies that (im2col): a map says which pixels windows begin at, a
// copy where it begins and how far into the window; zeros stand for what lies outside.
//
// The image is found from indices: ImageAxes.cpp.
//
// Rhs has the same steps, so that the dims of its map are channels, those of the window, columns: where channels are no
// multiple of a step, both operands are zero behind the last one.
//
// A product whose rows are no multiple of one another in memory (a 1x1 convolution with strides) is a window of one
// place. Groups are refused.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/ImageAxes.h"
#include "codegen/gpu/WgmmaOperands.h"
#include "runtime/include/ptc/descriptor.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

int64_t WgmmaWindow::places() const {
  int64_t count = 1;
  for (const Side &side : sides)
    count *= side.extent;
  return count;
}

namespace {

class WindowAnalysis {
public:
  WindowAnalysis(loop::ContractionOp op, const WgmmaTile &tile) : dims(op), tile(tile), op(op) {}
  std::optional<WgmmaOperands> run();

private:
  bool findAxes();
  std::optional<WgmmaOperand> describeLhs(WgmmaWindow &window);
  std::optional<WgmmaOperand> describeRhs();

  ContractionDims dims;
  const WgmmaTile &tile;
  loop::ContractionOp op;
  std::optional<WgmmaLoad> lhs;
  SmallVector<ImageAxis> axes; // outermost first
  Axis images;
};

} // namespace

bool WindowAnalysis::findAxes() {
  std::optional<SmallVector<ImageAxis>> found = findImageAxes(dims, *lhs);
  if (!found)
    return false;
  axes = std::move(*found);
  // The outermost dim of m, if no window moves along it, is one of images.
  if (axes.size() > 1 && axes.front().isPlain) {
    images = lhs->axes[size_t(axes.front().rowDim)];
    axes.erase(axes.begin());
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

// What fits the bits that a map and a copy have for it; of several axes each has a part.
static bool fitsMap(const ImageAxis &axis, int64_t lower, int64_t upper, int64_t farthest, size_t rank) {
  constexpr int64_t mostStride = 8;
  int64_t bits = rank == 1 ? 16 : rank == 2 ? 8 : 5, corner = int64_t(1) << (bits - 1);
  auto isCorner = [&](int64_t value) { return value >= -corner && value < corner; };
  return isCorner(lower) && isCorner(upper) && farthest < int64_t(1) << bits && axis.stride >= 1 &&
         axis.stride <= mostStride;
}

std::optional<WgmmaOperand> WindowAnalysis::describeLhs(WgmmaWindow &window) {
  constexpr size_t mostAxes = PTC_RT_CUDA_MAP_RANK - 2;
  const Axis &channels = lhs->axes[size_t(dims.lastK())];
  if (channels.stride != 1 || axes.empty() || axes.size() > mostAxes)
    return std::nullopt;
  WgmmaOperand operand{.isAlongK = true, .boxes = 1};
  codegen::TensorMap &map = operand.map;
  map = {.buffer = lhs->buffer, .elementBytes = unsigned(tile.elementBytes()), .box = {tile.k(), tile.m}};
  addDim(map, channels);
  int64_t offset = lhs->offset, around = 0;
  for (const ImageAxis &axis : llvm::reverse(axes)) {
    int64_t extent = axis.last - axis.first + 1, pixels = lhs->axes[size_t(axis.rowDim)].extent;
    int64_t lower = -axis.first, upper = axis.stride * (pixels - 1) - axis.last;
    int64_t sides = axis.windowDim < 0 ? 1 : lhs->axes[size_t(axis.windowDim)].extent;
    if (!isAligned(axis.unit, tile) || !fitsMap(axis, lower, upper, axis.dilation * (sides - 1), axes.size()))
      return std::nullopt;
    addDim(map, {extent, axis.unit});
    map.lower.push_back(lower);
    map.upper.push_back(upper);
    map.steps.push_back(axis.stride);
    window.axes.insert(window.axes.begin(), {pixels, axis.stride, lower});
    offset += axis.unit * axis.first;
    around = std::max(around, axis.unit * extent);
  }
  window.images = images.extent;
  addDim(map, {images.extent, images.extent > 1 ? images.stride : around});
  map.offset = offset * tile.elementBytes();
  if (!isAligned(offset, tile) || (images.extent > 1 && (images.stride <= 0 || !isAligned(images.stride, tile))))
    return std::nullopt;
  for (int64_t dim = dims.firstK; dim < dims.lastK(); ++dim)
    for (auto [number, axis] : llvm::enumerate(axes))
      if (axis.windowDim == dim)
        window.sides.push_back({lhs->axes[size_t(dim)].extent, axis.dilation, number});
  return operand;
}

std::optional<WgmmaOperand> WindowAnalysis::describeRhs() {
  std::optional<WgmmaLoad> rhs = analyzeLoad(op, true, tile);
  if (!rhs || !rhs->conditions.empty() || !isAligned(rhs->offset, tile))
    return std::nullopt;
  const Axis &channels = rhs->axes[size_t(dims.lastK())];
  std::optional<Axis> columns =
      mergeAxes(ArrayRef(rhs->axes).slice(size_t(dims.firstN), size_t(dims.firstK - dims.firstN)));
  if (!columns || channels.stride != 1)
    return std::nullopt;
  WgmmaOperand operand{.isAlongK = true, .boxes = 1};
  operand.map = {.buffer = rhs->buffer,
                 .elementBytes = unsigned(tile.elementBytes()),
                 .offset = rhs->offset * tile.elementBytes(),
                 .box = {tile.k()}};
  addDim(operand.map, channels);
  auto add = [&](const Axis &axis, int64_t box) {
    addDim(operand.map, axis);
    operand.map.box.push_back(box);
    return axis.stride > 0 && isAligned(axis.stride, tile);
  };
  for (int64_t dim = dims.lastK() - 1; dim >= dims.firstK; --dim)
    if (isWindowDim(dims, *lhs, dim) && !add(rhs->axes[size_t(dim)], 1))
      return std::nullopt;
  if (!add(*columns, tile.n))
    return std::nullopt;
  return operand;
}

std::optional<WgmmaOperands> WindowAnalysis::run() {
  lhs = analyzeLoad(op, false, tile);
  bool hasBatch = llvm::any_of(dims.batch(), [](Expr extent) { return !extent.isConstant(1); });
  if (!lhs || hasBatch || dims.k().empty() || !findAxes())
    return std::nullopt;
  WgmmaWindow window;
  std::optional<WgmmaOperand> image = describeLhs(window), weights = describeRhs();
  if (!image || !weights)
    return std::nullopt;
  int64_t stepsOfPlace = llvm::divideCeil(lhs->axes[size_t(dims.lastK())].extent, tile.k());
  int64_t steps = window.places() * stepsOfPlace;
  return WgmmaOperands{.lhs = std::move(*image),
                       .rhs = std::move(*weights),
                       .window = std::move(window),
                       .steps = steps,
                       .stepsOfPlace = stepsOfPlace};
}

std::optional<WgmmaOperands> gpu::analyzeWindow(loop::ContractionOp op, const WgmmaTile &tile) {
  return WindowAnalysis(op, tile).run();
}
