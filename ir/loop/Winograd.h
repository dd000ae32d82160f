//===- Winograd.h - convolutions by Winograd's algorithm --------*- C++ -*-===//
//
// F(t x t, 3x3): of t + 2 pixels in each direction, t x t outputs take (t + 2)^2 products a channel instead of 9 t^2:
//
//   Y = A^T [ (G g G^T) * (B^T d B) ] A      g: 3x3 weights, d: (t + 2)^2 pixels, Y: t x t outputs
//
// and F(t, r), along one dim, t outputs of r weights take t + r - 1 instead of t r:
//
//   Y = A^T [ (G g) * (B^T d) ]
//
// With a stride s the pixels of every s-th place, a phase, meet every s-th weight: F(t x t, 3x3) with stride 2 is along
// each dim F(t, 2) of the even pixels beside t products of the odd ones, 2 t + 1 products for 3 t. Its positions are
// those of one phase after the other.
//
// Volumes, F(2 x t x t, 3x3x3), are transformed along their depth, too: 4 (t + 2)^2 products for 54 t^2. Positions are
// those of one square after the other.
//
// (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S. Gray, Fast Algorithms for Convolutional
// Neural Networks, 2015). The matrices follow from t + r - 1 points at which polynomials are evaluated, here 0, +-p for
// some p, and, of an even number, infinity. Of 4 points, p = 1. Of 5, p = 3/4 and 2. Of 6, p = 5/8 and 3/2: with 1 and
// 2, which need fewer multiplications where there is no fused multiply-add, the error of F(4x4, 3x3) is four times as
// large. Of 8, p = 1/2, 1 and 2. The constants of B and A are exact in f32.
//
// Errors, of f32 results against exact ones, over the largest output: F(2x2) 0.3 to 0.7 of that of f32 sums one by one,
// F(4x4) about twice that. Along one dim, root mean squares over those of sums one by one (256 channels): F(2, 3) 0.7,
// F(4, 3) 1.5, F(2, 5) 1.1, F(4, 5) 2.4, F(2, 7) 2.1, where F(4x4) has 2.1; all are below 1 where pixels have a mean of
// three times their spread. Of other points with four bits, up to 3, none have less than 0.95 of it. F(6, 3), of 8
// points, 2.6 is left out. Of volumes F(2 x 4x4) has 0.8 of the error of F(4x4) of slices that are added up. With
// stride 2 F(3x3) has 0.5 and F(4x4), of 5 points, 0.8. An infinity or NaN in a tile's pixels shows in all outputs of
// the tile. Pixels above 1e36 may overflow where a direct sum does not, and denormal numbers lose bits, since both are
// multiplied before they are added up.
//
// A contraction that is computed this way keeps its regions and its domain; the loop.panels of its rhs has `winograd`,
// the tile t and the extents of the window that is transformed, and so has the weight or constant that it reads:
//
//   domain   [group... | image..., row, column | n | slice..., 3, 3, channel]: the last two m dims move with the
//            window's two; the slices of a window that has more dims are terms like channels.
//            Elements of the window may lie d pixels apart: then every d-th output belongs to one phase, whose pixels
//            are neighbours to each other, and a tile is one of a phase. Or the stride is 2
//            [group... | image..., depth, row, column | n | slice..., 3, 3, 3, channel] of volumes
//            [group... | image..., output | n | slice..., r, channel] along one dim
//   weight   [positions][group...][n/16][slice...][channel][16], made of a form [window...][group...]... that the
//            recipe gathers
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_WINOGRAD_H
#define PTC_IR_LOOP_WINOGRAD_H

#include "ir/loop/Loop.h"

#include <array>

namespace ptc::loop {

/// On a loop.panels and on the weight or constant behind it: a WinogradTile.
inline constexpr llvm::StringLiteral winogradAttr = "winograd";
/// On a loop.panels of that kind, where its contraction has WinogradDilations other than 1.
inline constexpr llvm::StringLiteral winogradDilationsAttr = "dilations";

/// F(outputs, taps) along so many sides. As an attribute: the outputs, the taps of each side, and of two a stride that
/// is not 1; of a volume the taps of all three dims, and the outputs along its depth.
struct WinogradTile {
  int64_t outputs = 0; // along a side; 0: no tile
  int64_t taps = 3, sides = 2, stride = 1;
  int64_t depth = 1; // outputs along the depth of a volume, with three taps; 1: no volume

  explicit operator bool() const { return outputs != 0; }
  bool isVolume() const { return depth != 1; }
  /// Pixels along a side, and as many positions.
  int64_t size() const { return (outputs - 1) * stride + taps; }
  int64_t positions() const { return planes() * (sides == 2 ? size() * size() : size()); }
  /// Of pixels and positions along the depth.
  int64_t planes() const { return isVolume() ? depth + taps - 1 : 1; }
  int64_t elements() const { return (isVolume() ? taps : 1) * (sides == 2 ? taps * taps : taps); } // of the window
  /// Dims of outputs, and as many of the window, that are transformed.
  int64_t dims() const { return sides + isVolume(); }
  /// Along the depth alone.
  WinogradTile alongDepth() const { return {.outputs = depth, .taps = taps, .sides = 1}; }
  /// What the pixels and weights at number, number + stride, ... along a side are: a tile along one dim, without
  /// stride.
  WinogradTile phase(int64_t number) const {
    return {.outputs = outputs, .taps = (taps - number + stride - 1) / stride, .sides = 1};
  }
};

/// The tile that the op's attribute tells; none without one.
WinogradTile getWinogradTile(mlir::Operation *op);
/// The tile of a contraction that is computed this way; none for all others.
WinogradTile getWinogradTile(ContractionOp op);
void setWinogradTile(mlir::Operation *op, WinogradTile tile);

/// The points p of a phase; none where it has one tap, and its positions are its pixels. Else positions along a dim are
/// those of 0, p0, -p0, p1, ..., and infinity if the phase has it.
llvm::ArrayRef<double> getWinogradPoints(WinogradTile phase);
/// Zero and pairs are an odd number of points.
inline bool hasInfinity(WinogradTile phase) { return phase.size() % 2 == 0; }
/// G, size x taps, row-major.
llvm::SmallVector<double> getWinogradWeightMatrix(WinogradTile tile);

/// Outputs from one pixel of the window to the next, down and across; along one dim 1 and across.
using WinogradDilations = std::array<int64_t, 2>;

/// How a window of two dims moves over pixels. A stride other than 1 has no dilations.
struct WinogradSteps {
  WinogradDilations dilations = {1, 1};
  int64_t stride = 1;
};

/// The steps of a convolution with a 3x3 window over dims as above, perhaps in groups: the lhs sees row and column only
/// in sums with the window's dims, either so many times. None for all other contractions.
std::optional<WinogradSteps> findWinogradSteps(ContractionOp op);

/// A dim of the window and that of outputs that moves with it.
struct WinogradLine {
  unsigned output, window;
  int64_t dilation;
};

/// The dims that move along the depth, in front of the rows and columns of steps without dilation and stride.
std::optional<WinogradLine> findWinogradDepth(ContractionOp op);

/// Those of a convolution's window that have 3, 5 or 7 elements, which no stride separates, from the innermost one out.
/// None for all other contractions.
llvm::SmallVector<WinogradLine> findWinogradLines(ContractionOp op);
/// Those of a contraction that is computed this way, as its attribute tells.
WinogradDilations getWinogradDilations(ContractionOp op);

/// The window's planes at the start of `elements`, which has one for each position, become those of G g G^T or G g.
/// Sums in f64, rounded once.
void transformWinogradWeights(WinogradTile tile, llvm::MutableArrayRef<float> elements);

} // namespace ptc::loop

#endif // PTC_IR_LOOP_WINOGRAD_H
