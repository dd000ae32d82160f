//===- Winograd.h - 3x3 convolutions by Winograd's algorithm ----*- C++ -*-===//
//
// F(t x t, 3x3): of t + 2 pixels in each direction, t x t outputs take (t + 2)^2 products a channel instead of 9 t^2:
//
//   Y = A^T [ (G g G^T) * (B^T d B) ] A      g: 3x3 weights, d: (t + 2)^2 pixels, Y: t x t outputs
//
// (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S. Gray, Fast Algorithms for Convolutional
// Neural Networks, 2015). The matrices follow from t + 1 points at which polynomials are evaluated, here 0, +-p for
// some p, and infinity. For t = 2, p = 1. For t = 4, p = 5/8 and 3/2: with 1 and 2, which need fewer multiplications
// where there is no fused multiply-add, the error is four times as large. The constants of B and A are exact in f32.
//
// Errors, of f32 results against exact ones, over the largest output: F(2x2) 0.3 to 0.7 of that of f32 sums one by one,
// F(4x4) about twice that. An infinity or NaN in a tile's pixels shows in all outputs of the tile. Pixels above 1e36
// may overflow where a direct sum does not, and denormal numbers lose bits, since both are multiplied before they are
// added up.
//
// A contraction that is computed this way keeps its regions and its domain; the loop.panels of its rhs has `winograd`,
// the tile t, and so has the weight or constant that it reads:
//
//   domain   [group... | image..., row, column | n | slice..., 3, 3, channel]: the last two m dims move with the
//            window's two; the slices of a window that has more dims, as 3x3x3 in volumes, are terms like channels.
//            Elements of the window may lie d pixels apart: then every d-th output belongs to one phase, whose pixels
//            are neighbours to each other, and a tile is one of a phase
//   weight   [(t + 2)^2][group...][n/16][slice...][channel][16], made of a form [3][3][group...]... that the recipe
//            gathers
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_WINOGRAD_H
#define PTC_IR_LOOP_WINOGRAD_H

#include "ir/loop/Loop.h"

#include <array>

namespace ptc::loop {

/// On a loop.panels and on the weight or constant behind it: the tile of outputs, 2 or 4.
inline constexpr llvm::StringLiteral winogradAttr = "winograd";
/// On a loop.panels of that kind, where its contraction has WinogradDilations other than 1.
inline constexpr llvm::StringLiteral winogradDilationsAttr = "dilations";

/// The tile that the op's attribute tells; 0 without one.
int64_t getWinogradTile(mlir::Operation *op);
/// The tile of a contraction that is computed this way; 0 for all others.
int64_t getWinogradTile(ContractionOp op);

/// The points p of a tile; positions along a dim are those of 0, p0, -p0, p1, ..., infinity.
llvm::ArrayRef<double> getWinogradPoints(int64_t tile);
/// G, (tile + 2) x 3, row-major.
llvm::SmallVector<double> getWinogradWeightMatrix(int64_t tile);

/// The number of the first of the window's two dims that are transformed, of a contraction with at least three k dims.
unsigned getWinogradWindow(ContractionOp op);

/// Outputs from one pixel of the window to the next, down and across.
using WinogradDilations = std::array<int64_t, 2>;

/// The dilations of a convolution with a 3x3 window over dims as above, perhaps in groups: the lhs sees row and column
/// only in sums with so many times the window's dims. None for all other contractions.
std::optional<WinogradDilations> findWinogradDilations(ContractionOp op);
/// Those of a contraction that is computed this way, as its attribute tells.
WinogradDilations getWinogradDilations(ContractionOp op);

/// Nine planes of `size` elements at the start of `elements`, which has (tile + 2)^2 of them, become the planes of
/// G g G^T. Sums in f64, rounded once.
void transformWinogradWeights(int64_t tile, llvm::MutableArrayRef<float> elements);

} // namespace ptc::loop

#endif // PTC_IR_LOOP_WINOGRAD_H
