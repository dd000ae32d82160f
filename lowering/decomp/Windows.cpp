//===- Windows.cpp - attributes that place windows ------------------------===//
#include "lowering/decomp/Windows.h"

using namespace ptc;
using namespace ptc::decomp;

namespace {

/// Of sizes, steps and paddings of a window: so their products stay within 64 bits.
constexpr int64_t most = std::numeric_limits<int32_t>::max();

/// strides, dilations and pads as given, checked for number and sign.
struct WindowAttributes {
  Ints strides, dilations, pads;
  std::string autoPad;
};

std::optional<WindowAttributes> readAttributes(NodeContext &n, size_t spatial) {
  WindowAttributes a;
  a.strides = n.integers("strides", Ints(spatial, 1));
  a.dilations = n.integers("dilations", Ints(spatial, 1));
  a.pads = n.integers("pads", Ints(2 * spatial, 0));
  a.autoPad = n.text("auto_pad", "NOTSET");
  auto check = [&](llvm::StringRef name, const Ints &values, size_t count, int64_t least) {
    if (values.size() != count)
      n.fail(DiagId::DimMismatch, "the number of values in '" + name.str() + "'", values.size(), "what is needed",
             count);
    for (int64_t value : values)
      if (value < least || value > most)
        n.fail(DiagId::BadAttribute, name, value, std::to_string(least) + " to " + std::to_string(most) + " is needed");
  };
  check("strides", a.strides, spatial, 1);
  check("dilations", a.dilations, spatial, 1);
  check("pads", a.pads, 2 * spatial, 0);
  llvm::StringRef pad = a.autoPad;
  if (pad != "NOTSET" && pad != "VALID" && pad != "SAME_UPPER" && pad != "SAME_LOWER")
    n.fail(DiagId::BadAttribute, "auto_pad", "'" + a.autoPad + "'",
           "NOTSET, VALID, SAME_UPPER or SAME_LOWER is needed");
  return n.hasFailed() ? std::nullopt : std::optional(a);
}

} // namespace

std::optional<Ints> ptc::decomp::windowSize(NodeContext &n, Value x, Value weights) {
  if (n.rank(x) < 3) {
    n.fail(DiagId::WrongRank, 0, n.rank(x), "batch, channels and at least one spatial dim are needed");
    return std::nullopt;
  }
  size_t spatial = n.rank(x) - 2;
  std::optional<Ints> size = n.integers("kernel_shape");
  if (weights) {
    if (n.rank(weights) != n.rank(x)) {
      n.fail(DiagId::WrongRank, 1, n.rank(weights), "the rank of input 0 is needed");
      return std::nullopt;
    }
    Ints actual;
    for (size_t i = 0; i < spatial; ++i) {
      if (!n.dim(weights, i + 2).isConstant()) {
        n.fail(DiagId::DataDependentShape, "the size of the window");
        return std::nullopt;
      }
      actual.push_back(n.dim(weights, i + 2).getValue());
    }
    if (size && *size != actual) {
      n.fail(DiagId::BadAttribute, "kernel_shape", n.describe(n.exprs(*size)),
             "the weights have " + n.describe(n.exprs(actual)));
      return std::nullopt;
    }
    size = actual;
  }
  if (!size) {
    n.fail(DiagId::MissingAttribute, "kernel_shape");
    return std::nullopt;
  }
  if (size->size() != spatial || !llvm::all_of(*size, [](int64_t k) { return k > 0; })) {
    n.fail(DiagId::BadAttribute, "kernel_shape", n.describe(n.exprs(*size)),
           "one positive size for each spatial dim is needed");
    return std::nullopt;
  }
  int64_t elements = 1;
  for (int64_t k : *size) {
    if (k > most / elements) {
      n.fail(DiagId::BadAttribute, "kernel_shape", n.describe(n.exprs(*size)),
             "a window of at most " + std::to_string(most) + " elements is needed");
      return std::nullopt;
    }
    elements *= k;
  }
  return size;
}

std::optional<PlacedWindow> ptc::decomp::placeWindow(NodeContext &n, Value x, Ints size) {
  size_t spatial = size.size();
  std::optional<WindowAttributes> a = readAttributes(n, spatial);
  if (!a)
    return std::nullopt;
  PlacedWindow w;
  w.hasOverhang = n.flag("ceil_mode");
  for (size_t i = 0; i < spatial; ++i) {
    Expr in = n.dim(x, i + 2), low = n.expr(0), high = n.expr(0);
    int64_t stride = a->strides[i], extent = (size[i] - 1) * a->dilations[i] + 1;
    Expr out;
    if (llvm::StringRef(a->autoPad).starts_with("SAME")) {
      // As many windows as strides; the padding is split, the odd element at the end or the beginning.
      out = in.ceilDiv(stride);
      Expr total = Expr::max((out - 1) * stride + extent - in, n.expr(0));
      low = a->autoPad == "SAME_UPPER" ? total.floorDiv(2) : total.ceilDiv(2);
      high = total - low;
    } else {
      if (a->autoPad == "NOTSET") {
        low = n.expr(a->pads[i]);
        high = n.expr(a->pads[i + spatial]);
      }
      Expr room = in + low + high - extent;
      out = room.floorDiv(stride) + 1;
      if (w.hasOverhang) // no window begins after the data and the padding before it
        out = Expr::min(room.ceilDiv(stride) + 1, (in + low).ceilDiv(stride));
    }
    out = n.shapes.simplify(out);
    ExprRange range = n.shapes.range(out);
    if (range.max < 0 || out.isConstant(0)) {
      n.fail(DiagId::NegativeDim, i + 2, out);
      return std::nullopt;
    }
    if (range.min < 1 && !n.shapes.assume(Expr::lt(n.expr(0), out)))
      return std::nullopt;
    w.low.push_back(n.shapes.simplify(low));
    w.high.push_back(n.shapes.simplify(high));
    w.resultDims.push_back(out);
  }
  w.size = std::move(size);
  w.strides = a->strides;
  w.dilations = a->dilations;
  return w;
}

std::optional<PlacedWindow> ptc::decomp::placeTransposedWindow(NodeContext &n, Value x, Ints size) {
  size_t spatial = size.size();
  std::optional<WindowAttributes> a = readAttributes(n, spatial);
  Ints extra = n.integers("output_padding", Ints(spatial, 0));
  std::optional<Ints> outputShape = n.integers("output_shape");
  if (extra.size() != spatial || (outputShape && outputShape->size() < spatial))
    n.fail(DiagId::BadAttribute, "output_shape or output_padding", "too short", "one value a spatial dim is needed");
  if (!a || n.hasFailed())
    return std::nullopt;
  if (outputShape) // old files list the batch and the channels too
    outputShape->erase(outputShape->begin(), outputShape->end() - spatial);
  PlacedWindow w;
  for (size_t i = 0; i < spatial; ++i) {
    Expr in = n.dim(x, i + 2), low = n.expr(0), high = n.expr(0);
    int64_t extent = (size[i] - 1) * a->dilations[i] + 1;
    Expr whole = (in - 1) * a->strides[i] + extra[i] + extent;
    bool isSame = llvm::StringRef(a->autoPad).starts_with("SAME");
    Expr out;
    if (outputShape || isSame) {
      out = outputShape ? n.expr((*outputShape)[i]) : in * a->strides[i];
      Expr total = n.shapes.simplify(Expr::max(whole - out, n.expr(0)));
      low = a->autoPad == "SAME_UPPER" ? total.floorDiv(2) : total.ceilDiv(2);
      high = total - low;
    } else {
      if (a->autoPad == "NOTSET") {
        low = n.expr(a->pads[i]);
        high = n.expr(a->pads[i + spatial]);
      }
      out = whole - low - high;
    }
    out = n.shapes.simplify(out);
    ExprRange range = n.shapes.range(out);
    if (range.max < 1) {
      n.fail(DiagId::NegativeDim, i + 2, out);
      return std::nullopt;
    }
    if (range.min < 1 && !n.shapes.assume(Expr::lt(n.expr(0), out)))
      return std::nullopt;
    w.low.push_back(n.shapes.simplify(low));
    w.high.push_back(n.shapes.simplify(high));
    w.resultDims.push_back(out);
  }
  w.size = std::move(size);
  w.strides = a->strides;
  w.dilations = a->dilations;
  return w;
}
