//===- LibraryConvolution.cpp - what cuDNN can compute --------------------===//
//
// A kernel that is one convolution of f16, bf16 or f32, with a bias, a residual and a ReLU behind it as it has them, is
// a graph of cuDNN's as well (LibraryCall.cpp). What is a product in cuBLASLt's terms is left to that.
//
//   input      windows of an image (ImageAxes.cpp) of one to three axes; groups are dims of the batch
//   layouts    channels are innermost in input, weights and result alike, or pixels and places of the window are; lines
//              and images may be further apart than they are long
//   extents    known
//
// The image ends where the padding's conditions say, and where they say nothing at the last pixel that a window
// reaches. As much more of it as adds no window belongs to it as well, if memory has it: a stride that leaves pixels
// over is one in a whole tensor then. Rows of a 1x1 convolution with strides are every second pixel, say, of an image
// whose pixels are as far apart as they have channels.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/ImageAxes.h"
#include "codegen/gpu/LibraryCall.h"
#include "runtime/include/ptc/descriptor.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using Convolution = codegen::LibraryConvolution;
using Image = Convolution::Image;

namespace {
/// A tensor in the library's order: images or columns, channels, axes.
using Dims = SmallVector<Axis>;

class ConvolutionMatcher {
public:
  explicit ConvolutionMatcher(loop::ContractionOp op) : op(op), dims(op) {}
  std::optional<Convolution> match();

private:
  std::optional<Axis> mergeGroups(ArrayRef<Axis> all, int64_t from, int64_t to) const;
  int64_t pixelsOf(const ImageAxis &axis) const { return lhs->axes[size_t(axis.rowDim)].extent; }
  int64_t sidesOf(const ImageAxis &axis) const {
    if (axis.windowDim < 0)
      return &axis == &axes.back() ? placesInChannels : 1;
    return lhs->axes[size_t(axis.windowDim)].extent;
  }
  /// The position of the last window's last place.
  int64_t reachOf(const ImageAxis &axis) const {
    return axis.stride * (pixelsOf(axis) - 1) + axis.dilation * (sidesOf(axis) - 1);
  }
  bool findImage();
  void splitChannels();
  void findSteps();
  void lengthen();
  std::optional<Image> describe(unsigned buffer, int64_t bytes, Dims tensor) const;
  bool describeInput();
  bool describeWeights();
  std::optional<Image> describeResult(const LibraryAccess &access) const;
  bool isBias(const LibraryAccess &access) const;
  bool describeEpilogue();

  loop::ContractionOp op;
  ContractionDims dims;
  Convolution convolution;
  std::optional<WgmmaLoad> lhs;
  SmallVector<ImageAxis> axes; // outermost first
  int64_t imagesDim = -1;      // of m; -1: there is one image
  Axis images, channels;       // of the input
  int64_t placesInChannels = 1;
  bool isChannelsLast = true;
};
} // namespace

/// Groups and what there is in each, as one.
std::optional<Axis> ConvolutionMatcher::mergeGroups(ArrayRef<Axis> all, int64_t from, int64_t to) const {
  SmallVector<Axis> merged(all.take_front(size_t(dims.firstM)));
  llvm::append_range(merged, all.slice(size_t(from), size_t(to - from)));
  return mergeAxes(merged);
}

//===----------------------------------------------------------------------===//
// The image
//===----------------------------------------------------------------------===//

bool ConvolutionMatcher::findImage() {
  lhs = analyzeLoad(op, false, WgmmaTile{.kind = *findMmaKind(op)});
  std::optional<SmallVector<ImageAxis>> found =
      lhs && !dims.k().empty() ? findImageAxes(dims, *lhs) : std::optional<SmallVector<ImageAxis>>();
  std::optional<Axis> merged =
      found ? mergeGroups(lhs->axes, dims.lastK(), int64_t(lhs->axes.size())) : std::optional<Axis>();
  if (!merged)
    return false;
  axes = std::move(*found);
  channels = *merged;
  // Rows are those of images, too, if there are more of them than axes can be, or windows move along others alone.
  bool hasWindows = llvm::any_of(axes, [](const ImageAxis &axis) { return axis.windowDim >= 0; });
  if (axes.size() > 1 && axes.front().isPlain && (hasWindows || axes.size() > 2)) {
    imagesDim = axes.front().rowDim;
    images = lhs->axes[size_t(imagesDim)];
    axes.erase(axes.begin());
  }
  isChannelsLast = channels.extent == 1 || channels.stride == 1;
  return !axes.empty() && axes.size() <= PTC_RT_LIBRARY_AXES;
}

/// Without padding, a line of the window is one piece of memory, and its places and channels are one dim.
void ConvolutionMatcher::splitChannels() {
  ImageAxis &innermost = axes.back();
  if (!isChannelsLast || !innermost.isPlain || channels.extent <= innermost.unit || dims.firstM > 0)
    return;
  int64_t of = std::gcd(channels.extent, innermost.unit);
  placesInChannels = channels.extent / of;
  channels.extent = of;
  innermost.dilation = 1;
}

void ConvolutionMatcher::findSteps() {
  int64_t pitch = isChannelsLast ? channels.extent : 1; // of positions along the next axis
  for (size_t i = axes.size(); i-- > 0;) {
    ImageAxis &axis = axes[i];
    if (axis.isPlain && pitch > 0 && axis.unit % pitch == 0) {
      axis.stride = axis.unit / pitch;
      axis.unit = pitch;
      axis.last = reachOf(axis);
    }
    axis.first = std::max<int64_t>(axis.first, 0);
    if (axis.last >= reachOf(axis) + axis.stride) // no window comes so far
      axis.last = reachOf(axis);
    if (i == 0)
      return;
    pitch = axes[i - 1].unit % axis.stride == 0 ? axes[i - 1].unit / axis.stride : 0;
    if (pitch < axis.unit * (axis.last - axis.first + 1))
      pitch = 0;
  }
}

void ConvolutionMatcher::lengthen() {
  for (auto [i, axis] : llvm::enumerate(axes)) {
    int64_t around = i > 0 ? axes[i - 1].unit : images.stride, most = around / axis.unit;
    bool isPadded = reachOf(axis) > axis.last, isWhole = around % axis.unit == 0;
    int64_t farthest = axis.first + most - 1;
    if (!isPadded && isWhole && farthest > axis.last && farthest < reachOf(axis) + axis.stride)
      axis.last = farthest;
  }
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// From the innermost dim on. One of a single element may have any stride; it gets that of a whole tensor.
std::optional<Image> ConvolutionMatcher::describe(unsigned buffer, int64_t bytes, Dims tensor) const {
  if (tensor.size() == 3) // the library knows images of two axes or three
    tensor.insert(tensor.begin() + 2, Axis());
  SmallVector<size_t> order;
  for (size_t d = tensor.size(); d-- > 2;)
    order.push_back(d);
  order.insert(isChannelsLast ? order.begin() : order.end(), 1);
  order.push_back(0);
  int64_t reach = 1;
  for (auto [place, d] : llvm::enumerate(order)) {
    Axis &axis = tensor[d];
    if (axis.extent == 1)
      axis.stride = reach;
    if (axis.stride < reach || (place == 0 && axis.stride != 1))
      return std::nullopt;
    reach = axis.stride * axis.extent;
  }
  if (!isLibraryOffset(bytes))
    return std::nullopt;
  Image image{.buffer = buffer, .offset = bytes};
  for (const Axis &axis : tensor) {
    image.extents.push_back(axis.extent);
    image.strides.push_back(axis.stride);
  }
  return image;
}

bool ConvolutionMatcher::describeInput() {
  Dims tensor = {images, channels};
  int64_t offset = lhs->offset, last = 0;
  for (const ImageAxis &axis : axes) {
    tensor.push_back({axis.last - axis.first + 1, axis.unit});
    offset += axis.unit * axis.first;
    convolution.steps.push_back(axis.stride);
    convolution.dilations.push_back(std::max<int64_t>(axis.dilation, 1));
    convolution.before.push_back(axis.first);
    convolution.behind.push_back(std::max<int64_t>(reachOf(axis) - axis.last, 0));
  }
  for (const Axis &axis : tensor)
    last += axis.stride * (axis.extent - 1);
  auto type = cast<loop::BufferType>(op->getBlock()->getArgument(lhs->buffer).getType());
  std::optional<int64_t> count = type.getElementCount().asConstant();
  std::optional<Image> input = describe(lhs->buffer, offset * getBytes(convolution.type), tensor);
  if (!input || !count || offset + last >= *count)
    return false;
  convolution.input = std::move(*input);
  if (axes.size() > 1)
    return true;
  for (auto [list, value] : {std::pair(&convolution.steps, 1), std::pair(&convolution.dilations, 1),
                             std::pair(&convolution.before, 0), std::pair(&convolution.behind, 0)})
    list->insert(list->begin(), value);
  return true;
}

bool ConvolutionMatcher::describeWeights() {
  std::optional<WgmmaLoad> rhs = analyzeLoad(op, true, WgmmaTile{.kind = *findMmaKind(op)});
  std::optional<Axis> columns =
      rhs && rhs->conditions.empty() ? mergeGroups(rhs->axes, dims.firstN, dims.firstK) : std::optional<Axis>();
  if (!columns)
    return false;
  Axis terms = rhs->axes[size_t(dims.lastK())];
  Dims tensor = {*columns, {terms.extent / placesInChannels, terms.stride}};
  for (const ImageAxis &axis : axes)
    tensor.push_back(axis.windowDim < 0 ? Axis() : rhs->axes[size_t(axis.windowDim)]);
  if (placesInChannels > 1)
    tensor.back() = {placesInChannels, terms.stride * terms.extent / placesInChannels};
  std::optional<Image> weights = describe(rhs->buffer, rhs->offset * getBytes(convolution.type), tensor);
  if (weights)
    convolution.weights = std::move(*weights);
  return weights.has_value();
}

/// The result, or a tensor of its extents.
std::optional<Image> ConvolutionMatcher::describeResult(const LibraryAccess &access) const {
  std::optional<Axis> columns = mergeGroups(access.axes, dims.firstN, dims.firstK);
  if (!columns)
    return std::nullopt;
  Dims tensor = {imagesDim < 0 ? Axis() : access.axes[size_t(imagesDim)], *columns};
  for (const ImageAxis &axis : axes)
    tensor.push_back(access.axes[size_t(axis.rowDim)]);
  return describe(access.buffer, access.offset, tensor);
}

/// A vector along the columns.
bool ConvolutionMatcher::isBias(const LibraryAccess &access) const {
  std::optional<Axis> columns = mergeGroups(access.axes, dims.firstN, dims.firstK);
  return columns && columns->stride == 1 && isLibraryOffset(access.offset) &&
         llvm::all_of(ArrayRef(access.axes).slice(size_t(dims.firstM), dims.m().size()),
                      [](const Axis &axis) { return axis.stride == 0; });
}

bool ConvolutionMatcher::describeEpilogue() {
  std::optional<LibraryEpilogue> epilogue = matchLibraryEpilogue(op, convolution.type);
  std::optional<Image> result = epilogue ? describeResult(epilogue->result) : std::optional<Image>();
  if (!result)
    return false;
  convolution.resultType = epilogue->type;
  convolution.hasRelu = epilogue->hasRelu;
  convolution.roundsOnce = epilogue->roundsOnce;
  convolution.result = std::move(*result);
  for (const LibraryAccess &addend : epilogue->addends) {
    if (!convolution.bias && isBias(addend))
      convolution.bias = {.buffer = addend.buffer, .offset = addend.offset};
    else if (std::optional<Image> residual = describeResult(addend); residual && !convolution.residual)
      convolution.residual = std::move(residual);
    else
      return false;
  }
  return true;
}

std::optional<Convolution> ConvolutionMatcher::match() {
  std::optional<codegen::LibraryType> type = findLibraryType(op);
  if (!type)
    return std::nullopt;
  convolution.type = *type;
  if (!findImage())
    return std::nullopt;
  splitChannels();
  findSteps();
  lengthen();
  if (!describeInput() || !describeWeights() || !describeEpilogue())
    return std::nullopt;
  convolution.workspace = libraryWorkspace;
  return convolution;
}

std::optional<Convolution> gpu::findLibraryConvolution(loop::KernelOp kernel) {
  SmallVector<Operation *> nodes = getNodes(kernel);
  auto op = nodes.size() == 1 ? dyn_cast<loop::ContractionOp>(nodes.front()) : loop::ContractionOp();
  return op && !findLibraryProduct(kernel) ? ConvolutionMatcher(op).match() : std::nullopt;
}
