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

/// A transposed convolution by phases. `isApart`: each phase is computed by itself, at the places alone that are
/// results.
struct Phased {
  Value x, w;
  const PlacedWindow &window;
  int64_t groups;
  bool isApart = false;
};

/// Results of a transposed convolution along one dim whose places leave the remainders [first, first + count) by the
/// stride. They see `taps` elements of the window each, from place `start` on.
struct Phases {
  int64_t first, count, taps, start = 0;
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

/// Each remainder alone, in the order of their first results: those of place t and remainder r are t * stride + r -
/// low.
static llvm::SmallVector<Phases> phasesApart(int64_t size, int64_t stride, int64_t low) {
  llvm::SmallVector<Phases> phases(size_t(stride), Phases{});
  for (int64_t first = 0; first < stride; ++first) {
    int64_t start = llvm::divideCeilSigned(low - first, stride);
    phases[size_t(start * stride + first - low)] = {first, 1, size / stride + (first < size % stride), start};
  }
  return phases;
}

/// Whether that saves products: together, phases have a place at the border of the image where others have results.
static bool savesBorders(NodeContext &n, Value x, Value w, const PlacedWindow &window) {
  constexpr int64_t mostPhases = 4, fewestColumns = 64;
  constexpr double leastSaved = 1.15;
  int64_t phases = 1;
  double together = 1, apart = 1;
  for (auto [i, size] : llvm::enumerate(window.size)) {
    int64_t stride = window.strides[i];
    auto extent = n.dim(x, int64_t(i) + 2).asConstant(), low = window.low[i].asConstant(),
         results = window.resultDims[i].asConstant();
    if (!extent || !low || !results || *results % stride)
      return false;
    for (const Phases &phase : phasesApart(size, stride, *low))
      if (phase.start >= phase.taps)
        return false; // it starts within the image
    phases *= stride;
    together *= double((*extent + llvm::divideCeil(size, stride) - 1) * stride);
    apart *= double(*results);
  }
  return phases <= mostPhases && n.dim(w, 1).asConstant().value_or(0) >= fewestColumns &&
         together >= leastSaved * apart;
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
static Value convolveGroup(NodeContext &n, const Phased &c, llvm::ArrayRef<Phases> group) {
  auto [x, w, window, groups, isApart] = c;
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
    inner.low.push_back(n.expr(phase.taps - 1 - phase.start));
    Expr places = isApart ? window.resultDims[i].floorDiv(stride) : n.dim(x, int64_t(i) + 2) + (most - 1);
    inner.resultDims.push_back(n.shapes.simplify(places));
  }
  // Columns are (phases, out), so that channels lie side by side, or (out, phases) of fewer channels than fill a block:
  // it would end among the channels of a phase, but does not among the phases of a channel.
  bool isOutFirst = blockColumns % allPhases == 0 && out.asConstant().value_or(blockColumns) < blockColumns;
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
static Value convolveGroups(NodeContext &n, const Phased &c, llvm::SmallVector<Phases> group) {
  size_t dim = group.size();
  if (dim == c.window.size.size())
    return convolveGroup(n, c, group);
  int64_t size = c.window.size[dim], stride = c.window.strides[dim];
  Values parts;
  for (Phases phases : c.isApart ? phasesApart(size, stride, c.window.low[dim].getValue()) : phasesOf(size, stride)) {
    group.push_back(phases);
    parts.push_back(convolveGroups(n, c, group));
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
  Phased c{x, w, window, groups, savesBorders(n, x, w, window)};
  int64_t spatial = int64_t(window.size.size());
  Expr out = n.shapes.simplify(n.dim(w, 1) * groups);
  Dims whole{n.dim(x, 0), out};
  Ints places{0, spatial + 1, spatial + 2};
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t stride = window.strides[size_t(i)];
    Expr count = n.dim(x, i + 2) + (llvm::divideCeil(window.size[size_t(i)], stride) - 1);
    whole.push_back(c.isApart ? window.resultDims[size_t(i)] : n.shapes.simplify(count * stride));
    places.append({spatial + 3 + i, i + 1});
  }
  Value y = n.reshape(n.transpose(convolveGroups(n, c, {}), places), whole);
  if (c.isApart)
    return y;
  Dims from(2, n.expr(0)), to{n.dim(x, 0), out};
  llvm::append_range(from, window.low);
  llvm::append_range(to, window.resultDims);
  return n.slice(y, from, Ints(to.size(), 1), to);
}

/// Columns of the products of phases for a pixel, those included that fill up blocks; one column is a sum along the
/// channels.
static int64_t columnsOfPhases(const PlacedWindow &window, int64_t out) {
  constexpr int64_t ofSum = 4;
  struct Group {
    int64_t taps, phases;
  };
  llvm::SmallVector<Group> groups{{1, 1}};
  for (auto [i, size] : llvm::enumerate(window.size))
    for (auto [taps, phases] : std::exchange(groups, {}))
      for (const Phases &each : phasesOf(size, window.strides[i]))
        groups.push_back({taps * each.taps, phases * each.count});
  int64_t columns = 0;
  for (auto [taps, phases] : groups)
    columns += taps * (phases * out == 1 ? ofSum : llvm::divideCeil(phases * out, blockColumns) * blockColumns);
  return columns;
}

/// Whether convolveBySpreading is less work than phases: of few channels these are products of few columns, several of
/// them where remainders see different numbers of elements. Results that are not woven are added up one by one, which
/// takes up to twice as long.
static bool spreadsProducts(NodeContext &n, Value x, Value w, const PlacedWindow &window, int64_t groups) {
  constexpr int64_t mostTaps = 25;
  constexpr int64_t mostChannels = 8; // images of more are read pixel by pixel, and written so by phases
  constexpr double ofCopies = 1.25;   // of the product: pixels are copied for it
  auto in = n.dim(w, 0).asConstant(), out = n.dim(w, 1).asConstant();
  bool isSource = w.getDefiningOp<ConstantOp>() || w.getDefiningOp<WeightOp>(); // others may be products of integers
  Type type = n.elementType(x);
  if (!isSource || !(type.isF32() || type.isF64()) || groups != 1 || !in || !out || *out > mostChannels)
    return false;
  int64_t taps = 1, rows = *out; // for a pixel
  for (auto [i, size] : llvm::enumerate(window.size)) {
    int64_t stride = window.strides[i];
    taps *= llvm::divideCeil(size, stride);
    rows *= size;
  }
  int64_t stride = window.strides.back();
  bool isCount = stride == 1 || stride == 3 || (stride <= 8 && llvm::isPowerOf2_64(uint64_t(stride)));
  bool isWoven = isCount && n.shapes.simplify(window.resultDims.back().mod(stride)).isConstant(0); // NodeSquares.cpp
  return isWoven && taps <= mostTaps && double(rows) * ofCopies < double(columnsOfPhases(window, *out));
}

/// A transposed convolution as one product of the pixels and the whole window, whose rows are then added up where they
/// lie in the image: with the names of convolvePhases,
///
///   z[k, p] = sum over channels of w[k] * x[p],   y[q] = sum over j of z[j * stride + r, t - j]
///
/// Nothing is multiplied that is not in the image or in the window; a row of z is a whole image of one element of the
/// window. What it costs is that z has as many elements of the window for each result as there are taps j.
static Value convolveBySpreading(NodeContext &n, Value x, Value w, const PlacedWindow &window) {
  int64_t spatial = int64_t(window.size.size());
  Expr batch = n.dim(x, 0), in = n.dim(w, 0), out = n.dim(w, 1);
  Expr rows = out, pixels = n.expr(1);
  Dims planes{batch}, spread{batch, out};
  Ints windowFirst, order{0, spatial + 1};
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t size = window.size[size_t(i)], stride = window.strides[size_t(i)];
    rows = rows * size;
    pixels = pixels * n.dim(x, i + 2);
    planes.push_back(n.expr(size));
    windowFirst.push_back(i + 2);
    order.append({spatial + 2 + i, i + 1});
    spread.push_back(n.shapes.simplify((n.dim(x, i + 2) + (llvm::divideCeil(size, stride) - 1)) * stride));
  }
  windowFirst.append({1, 0});
  planes.push_back(out);
  for (int64_t i = 0; i < spatial; ++i)
    planes.push_back(n.dim(x, i + 2));
  rows = n.shapes.simplify(rows);
  pixels = n.shapes.simplify(pixels);
  Value weight = n.broadcast(n.reshape(n.transpose(w, windowFirst), {rows, in}), {1, 2}, {batch, rows, in});
  Value z = n.reshape(n.matmul(weight, n.reshape(x, {batch, in, pixels})), planes);

  // One tap of each dim after the other: the elements that it has of the window, at the places that see them.
  Value sum, zero = n.scalarLike(0, z);
  Ints tap(size_t(spatial), 0);
  while (true) {
    Dims from(planes.size(), n.expr(0)), part(planes), low(from), high(from);
    for (int64_t i = 0; i < spatial; ++i) {
      int64_t size = window.size[size_t(i)], stride = window.strides[size_t(i)], j = tap[size_t(i)];
      int64_t seen = std::min(stride, size - j * stride), most = llvm::divideCeil(size, stride);
      from[size_t(i + 1)] = n.expr(j * stride);
      part[size_t(i + 1)] = n.expr(seen);
      high[size_t(i + 1)] = n.expr(stride - seen);
      low[size_t(spatial + 2 + i)] = n.expr(j);
      high[size_t(spatial + 2 + i)] = n.expr(most - 1 - j);
    }
    Value seen = n.pad(n.slice(z, from, Ints(planes.size(), 1), part), zero, low, high);
    sum = sum ? n.add(sum, seen) : seen;
    int64_t next = spatial - 1;
    for (; next >= 0; --next) {
      if (++tap[size_t(next)] * window.strides[size_t(next)] < window.size[size_t(next)])
        break;
      tap[size_t(next)] = 0;
    }
    if (next < 0)
      break;
  }
  Dims from(2, n.expr(0)), to{batch, out};
  llvm::append_range(from, window.low);
  llvm::append_range(to, window.resultDims);
  return n.slice(n.reshape(n.transpose(sum, order), spread), from, Ints(to.size(), 1), to);
}

/// Along dims of one element there is one place of the window, with any stride: the results are the part of the window
/// that no padding takes away.
static Value spreadPixels(NodeContext &n, Value x, Value w, PlacedWindow &window) {
  Dims from(2, n.expr(0)), to{n.dim(w, 0), n.dim(w, 1)};
  for (size_t i = 0; i < window.size.size(); ++i) {
    auto low = window.low[i].asConstant(), results = window.resultDims[i].asConstant();
    bool isPart = n.dim(x, int64_t(i) + 2).isConstant(1) && window.dilations[i] == 1 && low && results && *low >= 0 &&
                  *results >= 1 && *low + *results <= window.size[i];
    from.push_back(n.expr(isPart ? *low : 0));
    to.push_back(n.expr(isPart ? *results : window.size[i]));
    if (isPart) {
      window.size[i] = window.strides[i] = *results;
      window.low[i] = n.expr(0);
    }
  }
  return n.slice(w, from, Ints(to.size(), 1), to);
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
  w = spreadPixels(n, x, w, *window);
  bool fits = n.elementType(x) == n.elementType(w) && n.dim(x, 1) == n.dim(w, 0);
  Value y;
  if (!fits || !hasPhases(n, x, *window))
    y = n.convolution(x, w, *window, groups, /*transposed=*/true);
  else if (spreadsProducts(n, x, w, *window, groups))
    y = convolveBySpreading(n, x, w, *window);
  else
    y = convolvePhases(n, x, w, *window, groups);
  return {addBias(n, y, n.optionalInput(2))};
}

} // namespace ptc::decomp
