//===- TrimWindows.cpp - windows lose what lies outside of all images -----===//
//
// A convolution with large dilations over a small image has taps that meet padding alone:
//
//   convolution(x, w[..., 3, 3]) dilation 24, padding 24 over 14 x 14 = convolution(x, w[..., 1:2, 1:2])
//
// First and last indices of the window go, so that what is left is a window. The sums are the same but for the sign of
// zeros, and unless a weight that goes is infinite or NaN, which 0 times makes NaN of every sum; hence not under
// --fp=strict. Extents along the dim must be known.
//
//===----------------------------------------------------------------------===//
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"

namespace ptc {
#define GEN_PASS_DEF_TRIMWINDOWS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {
/// One dim of a window; `low` padded elements before the image's `extent`.
struct Axis {
  int64_t extent, results, window, stride, dilation, low;

  /// Whether some result's window has its element k inside of the image.
  bool meets(int64_t k) const {
    for (int64_t i = 0; i < results; ++i)
      if (int64_t at = i * stride + k * dilation - low; at >= 0 && at < extent)
        return true;
    return false;
  }
};
} // namespace

static void trim(ConvolutionOp op) {
  SmallVector<Expr> in = getDims(op.getX()), out = getDims(op.getResult()), window = getDims(op.getW());
  SmallVector<Expr> low = getExprs(op.getLow());
  MLIRContext *context = op.getContext();
  SmallVector<Expr> starts(window.size(), Expr::constant(context, 0));
  bool isTrimmed = false;
  for (size_t i = 0; i < low.size(); ++i) {
    std::optional<int64_t> numbers[] = {in[i + 2].asConstant(), out[i + 2].asConstant(), window[i + 2].asConstant(),
                                        low[i].asConstant()};
    if (!llvm::all_of(numbers, [](auto number) { return number.has_value(); }))
      continue;
    Axis axis{*numbers[0], *numbers[1], *numbers[2], op.getStrides()[i], op.getDilations()[i], *numbers[3]};
    int64_t first = 0, last = axis.window;
    while (first < last && !axis.meets(first) && axis.low >= (first + 1) * axis.dilation)
      ++first;
    while (first < last - 1 && !axis.meets(last - 1))
      --last;
    if (first == last || (first == 0 && last == axis.window))
      continue;
    isTrimmed = true;
    starts[i + 2] = Expr::constant(context, first);
    window[i + 2] = Expr::constant(context, last - first);
    low[i] = Expr::constant(context, axis.low - first * axis.dilation);
  }
  if (!isTrimmed)
    return;
  OpBuilder b(op);
  SmallVector<int64_t> steps(window.size(), 1);
  Value w = SliceOp::create(b, op.getLoc(), getTensorType(window, getElementType(op.getW())), op.getW(),
                            getExprArray(context, starts), steps);
  op.getWMutable().assign(w);
  op.setLowAttr(getExprArray(context, low));
}

namespace {
struct TrimWindows : ptc::impl::TrimWindowsBase<TrimWindows> {
  void runOnOperation() override {
    getOperation().walk([](ConvolutionOp op) {
      if (!op.getTransposed())
        trim(op);
    });
  }
};
} // namespace
