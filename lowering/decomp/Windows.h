//===- Windows.h - attributes that place windows ----------------*- C++ -*-===//
#ifndef PTC_LOWERING_DECOMP_WINDOWS_H
#define PTC_LOWERING_DECOMP_WINDOWS_H

#include "lowering/decomp/NodeContext.h"

namespace ptc::decomp {

/// A placed window with the padding after each dim.
struct PlacedWindow : PrimBuilder::Window {
  Dims high;
  bool hasOverhang = false; // ceil_mode: the last window may reach past the padding
};

/// Reads strides, dilations, pads, auto_pad and ceil_mode of a node whose windows of `size` slide over the spatial
/// dims of x. Nothing after a diagnostic.
std::optional<PlacedWindow> placeWindow(NodeContext &n, Value x, Ints size);
/// The same for transposed convolution, which has output_padding and output_shape besides.
std::optional<PlacedWindow> placeTransposedWindow(NodeContext &n, Value x, Ints size);
/// kernel_shape, or the trailing dims of the weights.
std::optional<Ints> windowSize(NodeContext &n, Value x, Value weights = {});

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_WINDOWS_H
