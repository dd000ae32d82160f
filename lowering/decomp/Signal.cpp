//===- Signal.cpp - Col2Im, Mel filters -----------------------------------===//
#include "lowering/decomp/OnnxOps.h"
#include <cmath>

using namespace ptc::prim;

namespace ptc::decomp {

/// The inverse of taking windows: [N, C * window, positions] summed into an image [N, C, spatial...].
Values col2Im(NodeContext &n) {
  Value x = n.input(0);
  if (n.isComplex(x))
    return n.byParts(col2Im);
  std::optional<Ints> image = n.inputInts(1, "image_shape"), block = n.inputInts(2, "block_shape");
  if (!image || !block || n.rank(x) != 3 || image->size() != block->size())
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "3 is needed, and one block size for each dim of the image")};
  size_t spatial = image->size();
  Ints dilations = n.integers("dilations", Ints(spatial, 1)), strides = n.integers("strides", Ints(spatial, 1));
  Ints pads = n.integers("pads", Ints(2 * spatial, 0));
  if (dilations.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial)
    return {n.fail(DiagId::BadAttribute, "dilations, strides or pads", "too short", "one value a dim is needed")};
  // index[window..., position...] in the padded image, dim by dim
  Dims whole, padded, positions;
  int64_t window = 1;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t size = (*image)[i] + pads[i] + pads[i + spatial], extent = dilations[i] * ((*block)[i] - 1) + 1;
    if (strides[i] < 1 || (*block)[i] < 1 || size < extent)
      return {n.fail(DiagId::BadAttribute, "block_shape", (*block)[i], "the block must fit into the image")};
    padded.push_back(n.expr(size));
    positions.push_back(n.expr((size - extent) / strides[i] + 1));
    if (n.isString(x) && size - extent >= strides[i] && strides[i] < extent)
      return {n.fail(DiagId::UnsupportedForm, "blocks of strings that overlap")};
    whole.push_back(n.expr((*block)[i]));
    window *= (*block)[i];
  }
  llvm::append_range(whole, positions);
  Value index = n.scalar(0, n.si64());
  for (size_t i = 0; i < spatial; ++i) {
    Value along = n.add(n.mul(n.iota(i, whole, n.si64()), double(dilations[i])),
                        n.mul(n.iota(i + spatial, whole, n.si64()), double(strides[i])));
    index = n.add(n.mul(index, double(padded[i].getValue())), along);
  }
  Expr batch = n.dim(x, 0), channels = n.dim(x, 1).floorDiv(window), count = n.expr(window) * n.dim(x, 2);
  Value updates = n.reshape(x, {batch, channels, count});
  Value indices = n.broadcastTo(n.reshape(index, {count}), {batch, channels, count});
  Value zeros = n.fill(n.scalarLike(0, x), {batch, channels, product(n.getContext(), padded)});
  ScatterKind kind = n.isString(x) ? ScatterKind::Set : ScatterKind::Add;
  Value summed = n.scatterElements(zeros, indices, updates, 2, kind);
  Dims dims = {batch, channels}, starts(2, n.expr(0)), cropped = dims;
  llvm::append_range(dims, padded);
  for (size_t i = 0; i < spatial; ++i) {
    starts.push_back(n.expr(pads[i]));
    cropped.push_back(n.expr((*image)[i]));
  }
  return {n.slice(n.reshape(summed, dims), starts, Ints(dims.size(), 1), cropped)};
}

//===----------------------------------------------------------------------===//
// Mel filters
//===----------------------------------------------------------------------===//

/// Triangles over the bins of a spectrum, between three neighbouring ones of num_mel_bins + 2 edges that are equally
/// far apart on the mel scale, 2595 log10(1 + f / 700). Rows are bins of the spectrum, columns triangles.
Values melWeightMatrix(NodeContext &n) {
  std::optional<int64_t> filters = n.inputInt(0, "num_mel_bins"), length = n.inputInt(1, "dft_length");
  if (!filters || !length)
    return {};
  constexpr int64_t most = 1 << 24;
  if (*filters < 1 || *length < 1 || *filters > most || *length > most)
    return {n.fail(DiagId::DimMismatch, "input 0 (num_mel_bins)", *filters, "what is needed", "a positive number")};
  Type type = n.f64();
  auto input = [&](size_t i) { return n.convert(n.reshape(n.input(i), {}), type); };
  auto toMel = [&](Value f) { return n.mul(n.log(n.add(n.div(f, 700.0), 1.0)), 2595 / std::log(10.0)); };
  Value low = toMel(input(3)), step = n.div(n.sub(toMel(input(4)), low), double(*filters + 2));
  Value mel = n.add(n.mul(n.iota(0, n.expr(*filters + 2), type), step), low);
  Value hertz = n.mul(n.add(n.binary<PowOp>(n.scalar(10, type), n.div(mel, 2595.0)), -1.0), 700.0);
  Value edges = n.unary<FloorOp>(n.div(n.mul(hertz, double(*length + 1)), input(2)));
  auto edge = [&](int64_t i) { return n.sliceAxis(edges, 0, n.expr(i), n.expr(*filters)); };
  Value left = edge(0), top = edge(1), right = edge(2);
  Value bin = n.iota(0, n.exprs({*length / 2 + 1, *filters}), type), zero = n.scalar(0, type), one = n.scalar(1, type);
  Value rise = n.sub(top, left), fall = n.sub(right, top);
  Value rising = n.select(n.equal(rise, zero), one, n.div(n.sub(bin, left), rise));
  Value isRising = n.logicalAnd(n.lessEqual(left, bin), n.lessEqual(bin, top));
  Value isFalling = n.logicalAnd(n.lessEqual(top, bin), n.less(bin, right));
  Value weight = n.select(isFalling, n.div(n.sub(right, bin), fall), n.select(isRising, rising, zero));
  return {n.convert(weight, n.has("output_datatype") ? n.typeAttribute("output_datatype") : n.f32())};
}

} // namespace ptc::decomp
