//===- Convolution.cpp - convolutions -------------------------------------===//
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Windows.h"

using namespace ptc::prim;

namespace ptc::decomp {

/// A vector over the channels of y, added to it.
static Value addBias(NodeContext &n, Value y, Value bias) {
  return bias && y ? n.add(y, n.broadcast(bias, 1, n.dims(y))) : y;
}

Values conv(NodeContext &n) {
  Value x = n.input(0), w = n.input(1);
  std::optional<Ints> size = windowSize(n, x, w);
  std::optional<PlacedWindow> window = size ? placeWindow(n, x, *size) : std::nullopt;
  int64_t groups = n.integer("group", 1);
  if (!window)
    return {};
  if (groups < 1 || !n.shapes.assumeEqual(n.dim(w, 0).mod(groups), n.expr(0)))
    return {n.fail(DiagId::BadAttribute, "group", groups, "it must divide the channels")};
  return {addBias(n, n.convolution(x, w, *window, groups), n.optionalInput(2))};
}

/// Results of a transposed convolution along one dim whose places leave the remainders [first, first + count) by the
/// stride. They see `taps` elements of the window each.
struct Phases {
  int64_t first, count, taps;
};

/// A window of 5 and a stride of 3: the remainders 0 and 1 see two elements, 2 sees one. Those that see as many as the
/// stride goes into the window are together, and end where it ends; of the others each is alone, every third element.
static llvm::SmallVector<Phases> phasesOf(int64_t size, int64_t stride) {
  int64_t rest = size % stride;
  llvm::SmallVector<Phases> phases;
  for (int64_t first = 0; first < rest; ++first)
    phases.push_back({first, 1, size / stride + 1});
  phases.push_back({rest, stride - rest, size / stride});
  return phases;
}

constexpr int64_t mostGroups = 16; // of phases: convolutions for one

/// Whether a transposed convolution has phases, each with elements of its window, and all results lie where windows do.
static bool hasPhases(NodeContext &n, Value x, const PlacedWindow &window) {
  bool isStrided = false;
  int64_t groups = 1;
  for (auto [i, size] : llvm::enumerate(window.size)) {
    int64_t stride = window.strides[i];
    Expr end = (n.dim(x, int64_t(i) + 2) - 1) * stride + size;
    if (stride < 1 || size < stride || window.dilations[i] != 1 || n.shapes.range(window.low[i]).min < 0 ||
        n.shapes.range(n.shapes.simplify(end - window.low[i] - window.resultDims[i])).min < 0)
      return false;
    isStrided |= stride > 1;
    groups *= size % stride + 1;
  }
  return isStrided && groups <= mostGroups;
}

/// Columns that kernels have side by side.
constexpr int64_t blockColumns = 16;

/// The sums of some phases of each dim: [batch, phases..., groups, out, places...].
static Value convolveGroup(NodeContext &n, Value x, Value w, const PlacedWindow &window, int64_t groups,
                           llvm::ArrayRef<Phases> group) {
  Expr in = n.dim(w, 0).floorDiv(groups), out = n.dim(w, 1);
  int64_t spatial = int64_t(group.size()), allPhases = 1;
  PlacedWindow inner;
  inner.strides = inner.dilations = Ints(group.size(), 1);
  Dims firsts(2, n.expr(0)), seen{n.dim(w, 0), out}, split{n.expr(groups), in, out}, starts(3, n.expr(0)),
      picked{n.expr(groups), in, out}, phases;
  Ints apart(2, 1), steps(3, 1), ofPhases, ofTaps;
  for (auto [i, phase] : llvm::enumerate(group)) {
    int64_t stride = window.strides[i], most = llvm::divideCeil(window.size[i], stride);
    int64_t period = phase.count == 1 ? 1 : stride;
    firsts.push_back(n.expr(phase.first));
    apart.push_back(phase.count == 1 ? stride : 1);
    seen.push_back(n.expr(phase.taps * period));
    llvm::append_range(split, Dims{n.expr(phase.taps), n.expr(period)});
    llvm::append_range(starts, Dims{n.expr(phase.taps - 1), n.expr(0)});
    llvm::append_range(picked, Dims{n.expr(phase.taps), n.expr(phase.count)});
    steps.append({phase.taps > 1 ? -1 : 1, 1});
    ofTaps.push_back(2 * int64_t(i) + 3);
    ofPhases.push_back(2 * int64_t(i) + 4);
    phases.push_back(n.expr(phase.count));
    allPhases *= phase.count;
    inner.size.push_back(phase.taps);
    inner.low.push_back(n.expr(phase.taps - 1));
    inner.high.push_back(n.expr(most - 1));
    inner.resultDims.push_back(n.shapes.simplify(n.dim(x, int64_t(i) + 2) + (most - 1)));
  }
  // Columns are (phases, out), so that channels lie side by side, or (out, phases) where blocks of them would end among
  // the channels of a phase, but not among the phases of a channel.
  bool isOutFirst = blockColumns % allPhases == 0 && out.mod(blockColumns).asConstant().value_or(0) != 0;
  Ints order{0}, back{0};
  Dims sums{n.dim(x, 0), n.expr(groups)};
  if (isOutFirst) {
    order.push_back(2);
    sums.push_back(out);
  }
  llvm::append_range(order, ofPhases);
  llvm::append_range(sums, phases);
  if (!isOutFirst) {
    order.push_back(2);
    sums.push_back(out);
  }
  order.push_back(1);
  llvm::append_range(order, ofTaps);
  llvm::append_range(sums, inner.resultDims);
  Value turned = n.transpose(n.slice(n.reshape(n.slice(w, firsts, apart, seen), split), starts, steps, picked), order);
  Dims weight{n.shapes.simplify(out * (groups * allPhases)), in};
  for (int64_t size : inner.size)
    weight.push_back(n.expr(size));
  Value y = n.reshape(n.convolution(x, n.reshape(turned, weight), inner, groups), sums);
  for (int64_t i = 0; i < spatial; ++i)
    back.push_back(i + (isOutFirst ? 3 : 2));
  back.append({1, isOutFirst ? 2 : spatial + 2});
  for (int64_t i = 0; i < spatial; ++i)
    back.push_back(spatial + 3 + i);
  return n.transpose(y, back);
}

/// All phases of the dims from group.size() on, for those of the dims before it that `group` has.
static Value convolveGroups(NodeContext &n, Value x, Value w, const PlacedWindow &window, int64_t groups,
                            llvm::SmallVector<Phases> group) {
  size_t dim = group.size();
  if (dim == window.size.size())
    return convolveGroup(n, x, w, window, groups, group);
  Values parts;
  for (Phases phases : phasesOf(window.size[dim], window.strides[dim])) {
    group.push_back(phases);
    parts.push_back(convolveGroups(n, x, w, window, groups, group));
    group.pop_back();
  }
  return parts.size() == 1 ? parts.front() : n.concat(parts, int64_t(dim) + 1);
}

/// Such a convolution. Results whose places have the same remainder by the strides see the same elements of the window:
/// with q + low = t * stride + r and k = j * stride + r,
///
///   y[q] = sum over p, k with q = p * stride + k - low of x[p] * w[k] = sum over j of x[t - j] * w[j * stride + r]
///
/// So it is a convolution over x with the columns (r, out), and what it computes is moved to its places; several where
/// remainders see different numbers of elements. Summed as it is written, all but one of strides^dims products would
/// be with zeros.
static Value convolvePhases(NodeContext &n, Value x, Value w, const PlacedWindow &window, int64_t groups) {
  int64_t spatial = int64_t(window.size.size());
  Expr out = n.shapes.simplify(n.dim(w, 1) * groups);
  Dims whole{n.dim(x, 0), out};
  Ints places{0, spatial + 1, spatial + 2};
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t stride = window.strides[size_t(i)];
    Expr count = n.dim(x, i + 2) + (llvm::divideCeil(window.size[size_t(i)], stride) - 1);
    whole.push_back(n.shapes.simplify(count * stride));
    places.append({spatial + 3 + i, i + 1});
  }
  Value y = n.reshape(n.transpose(convolveGroups(n, x, w, window, groups, {}), places), whole);
  Dims from(2, n.expr(0)), to{n.dim(x, 0), out};
  llvm::append_range(from, window.low);
  llvm::append_range(to, window.resultDims);
  return n.slice(y, from, Ints(to.size(), 1), to);
}

Values convTranspose(NodeContext &n) {
  Value x = n.input(0), w = n.input(1);
  std::optional<Ints> size = windowSize(n, x, w);
  std::optional<PlacedWindow> window = size ? placeTransposedWindow(n, x, *size) : std::nullopt;
  int64_t groups = n.integer("group", 1);
  if (!window)
    return {};
  if (groups < 1 || !n.shapes.assumeEqual(n.dim(w, 0).mod(groups), n.expr(0)))
    return {n.fail(DiagId::BadAttribute, "group", groups, "it must divide the channels")};
  // The only place of a window along a dim is there with any stride.
  for (size_t i = 0; i < window->size.size(); ++i)
    if (n.dim(x, int64_t(i) + 2).isConstant(1) && window->dilations[i] == 1)
      window->strides[i] = window->size[i];
  bool fits = n.elementType(x) == n.elementType(w) && n.dim(x, 1) == n.dim(w, 0);
  Value y = fits && hasPhases(n, x, *window) ? convolvePhases(n, x, w, *window, groups)
                                             : n.convolution(x, w, *window, groups, /*transposed=*/true);
  return {addBias(n, y, n.optionalInput(2))};
}

} // namespace ptc::decomp
