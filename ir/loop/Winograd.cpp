//===- Winograd.cpp - convolutions by Winograd's algorithm ----------------===//
#include "ir/loop/Winograd.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int64_t mostDilation = 64;
static constexpr int64_t strideOfPhases = 2; // with more, no phase of three taps has two

WinogradTile loop::getWinogradTile(Operation *op) {
  auto tile = op ? op->getAttrOfType<DenseI64ArrayAttr>(winogradAttr) : DenseI64ArrayAttr();
  if (!tile)
    return {};
  WinogradTile found{.outputs = tile[0], .taps = tile[1], .sides = std::min<int64_t>(tile.size() - 1, 2)};
  if (tile.size() == 4)
    found.stride = tile[3];
  else if (tile.size() == 5)
    found.depth = tile[4];
  return found;
}

WinogradTile loop::getWinogradTile(ContractionOp op) {
  for (auto panels : op.getRhs().getOps<PanelsOp>())
    return getWinogradTile(panels.getOperation());
  return {};
}

void loop::setWinogradTile(Operation *op, WinogradTile tile) {
  SmallVector<int64_t> numbers{tile.outputs};
  numbers.append(size_t(tile.dims()), tile.taps);
  assert(tile.sides == 2 || (tile.stride == 1 && !tile.isVolume()));
  assert(tile.stride == 1 || !tile.isVolume());
  if (tile.stride != 1)
    numbers.push_back(tile.stride);
  if (tile.isVolume())
    numbers.push_back(tile.depth);
  op->setAttr(winogradAttr, DenseI64ArrayAttr::get(op->getContext(), numbers));
}

ArrayRef<double> loop::getWinogradPoints(WinogradTile phase) {
  static constexpr double ofFour[] = {1}, ofFive[] = {0.75, 2}, ofSix[] = {0.625, 1.5}, ofEight[] = {0.5, 1, 2};
  if (phase.taps == 1)
    return {};
  switch (phase.size()) {
  case 4:
    return ofFour;
  case 5:
    return ofFive;
  case 6:
    return ofSix;
  case 8:
    return ofEight;
  }
  llvm_unreachable("no points for a tile of this size");
}

// A row of G: the powers of a point a over the product of its distances from all others. For +-p these are the same, 2p
// and p times p^2 - q^2 for every other q.
static SmallVector<double> weightMatrixOfPhase(WinogradTile phase) {
  if (phase.taps == 1)
    return SmallVector<double>(size_t(phase.size()), 1.0);
  ArrayRef<double> points = getWinogradPoints(phase);
  double atZero = 1;
  for (double p : points)
    atZero *= -p * p;
  SmallVector<double> rows(size_t(phase.taps), 0.0);
  rows[0] = 1 / atZero;
  for (double p : points) {
    double distances = 2 * p * p;
    for (double q : points)
      distances *= p == q ? 1 : p * p - q * q;
    for (double at : {p, -p})
      for (int64_t tap = 0; tap < phase.taps; ++tap)
        rows.push_back(tap == 0 ? 1 / distances : at * rows.back());
  }
  if (hasInfinity(phase)) {
    rows.append(size_t(phase.taps), 0.0);
    rows.back() = 1;
  }
  return rows;
}

SmallVector<double> loop::getWinogradWeightMatrix(WinogradTile tile) {
  SmallVector<double> rows;
  for (int64_t number = 0; number < tile.stride; ++number) {
    WinogradTile phase = tile.phase(number);
    SmallVector<double> ofPhase = weightMatrixOfPhase(phase);
    for (int64_t row = 0; row < phase.size(); ++row)
      for (int64_t tap = 0; tap < tile.taps; ++tap) {
        bool isOfPhase = tap % tile.stride == number;
        rows.push_back(isOfPhase ? ofPhase[size_t(row * phase.taps + tap / tile.stride)] : 0.0);
      }
  }
  return rows;
}

namespace {
/// How a dim of the window moves over pixels: stride * output + dilation * window, where one of them is 1.
struct Steps {
  int64_t stride, dilation;
};
} // namespace

/// Whether the dims of outputs and of the window only occur in that sum.
static bool isSumOnly(Expr expr, unsigned output, unsigned window, Steps steps) {
  MLIRContext *context = expr.getContext();
  std::string first = dimName(output), second = dimName(window);
  if (!expr.uses(first) && !expr.uses(second))
    return true;
  Expr sum = Expr::dim(context, output) * steps.stride + Expr::dim(context, window) * steps.dilation;
  StringRef whole = steps.stride == 1 ? first : second, none = steps.stride == 1 ? second : first;
  Expr summed = expr.substitute([&](StringRef name) {
    return name == whole ? sum : name == none ? Expr::constant(context, 0) : Expr();
  });
  return summed == expr;
}

/// The steps with which all expressions are sums of the two dims.
static std::optional<Steps> findSteps(ArrayRef<Expr> exprs, unsigned output, unsigned window) {
  auto ofAll = [&](Steps steps) {
    bool holds = llvm::all_of(exprs, [&](Expr expr) { return isSumOnly(expr, output, window, steps); });
    return holds ? std::optional(steps) : std::nullopt;
  };
  for (Expr expr : exprs) {
    Expr step = expr.coefficientOf(dimName(output)), apart = expr.coefficientOf(dimName(window));
    if (!step || !apart || step.isConstant(0))
      continue;
    if (step == apart * strideOfPhases)
      return ofAll({.stride = strideOfPhases, .dilation = 1});
    for (int64_t dilation = 1; dilation <= mostDilation; ++dilation)
      if (apart == step * dilation)
        return ofAll({.stride = 1, .dilation = dilation});
  }
  return ofAll({.stride = 1, .dilation = 1});
}

/// Groups, channels and the window are constant, and columns are one dim.
static bool hasConstantWeight(ContractionOp op) {
  SmallVector<Expr> domain = getDomain(op);
  unsigned n = unsigned(op.getBatch() + op.getM());
  auto isConstant = [](Expr extent) { return extent.isConstant(); };
  return op.getN() == 1 && llvm::all_of(ArrayRef(domain).take_front(op.getBatch()), isConstant) &&
         llvm::all_of(ArrayRef(domain).drop_front(n + 1), isConstant);
}

static SmallVector<Expr> exprsOfLhs(ContractionOp op) {
  SmallVector<Expr> exprs;
  op.getLhs().walk([&](Operation *inner) {
    for (NamedAttribute entry : inner->getAttrs())
      if (auto list = dyn_cast<ArrayAttr>(entry.getValue()))
        llvm::append_range(exprs, prim::getExprs(list));
  });
  return exprs;
}

std::optional<WinogradSteps> loop::findWinogradSteps(ContractionOp op) {
  if (op.getM() < 2 || op.getK() < 3 || !hasConstantWeight(op))
    return std::nullopt;
  SmallVector<Expr> domain = getDomain(op), exprs = exprsOfLhs(op);
  unsigned n = unsigned(op.getBatch() + op.getM()), window = unsigned(domain.size()) - 3;
  if (!domain[window].isConstant(3) || !domain[window + 1].isConstant(3))
    return std::nullopt;
  auto down = findSteps(exprs, n - 2, window), across = findSteps(exprs, n - 1, window + 1);
  if (!down || !across || down->stride != across->stride)
    return std::nullopt;
  return WinogradSteps{.dilations = {down->dilation, across->dilation}, .stride = down->stride};
}

/// The dim of outputs that moves with one of the window, and how.
static std::optional<WinogradLine> findLine(ContractionOp op, ArrayRef<Expr> exprs, unsigned window) {
  std::string windowName = dimName(window);
  for (unsigned output = unsigned(op.getBatch() + op.getM()); output-- > unsigned(op.getBatch());) {
    std::string name = dimName(output);
    auto usesBoth = [&](Expr expr) { return expr.uses(name) && expr.uses(windowName); };
    if (!llvm::any_of(exprs, usesBoth))
      continue;
    if (auto steps = findSteps(exprs, output, window); steps && steps->stride == 1)
      return WinogradLine{output, window, steps->dilation};
  }
  return std::nullopt;
}

std::optional<WinogradLine> loop::findWinogradDepth(ContractionOp op) {
  if (op.getM() < 3 || op.getK() < 4 || !hasConstantWeight(op))
    return std::nullopt;
  unsigned window = unsigned(getDomain(op).size()) - 4, output = unsigned(op.getBatch() + op.getM()) - 3;
  if (!getDomain(op)[window].isConstant(3))
    return std::nullopt;
  auto line = findLine(op, exprsOfLhs(op), window);
  return line && line->output == output && line->dilation == 1 ? line : std::nullopt;
}

SmallVector<WinogradLine> loop::findWinogradLines(ContractionOp op) {
  SmallVector<WinogradLine> lines;
  if (op.getM() < 1 || op.getK() < 2 || !hasConstantWeight(op))
    return lines;
  SmallVector<Expr> domain = getDomain(op), exprs = exprsOfLhs(op);
  unsigned n = unsigned(op.getBatch() + op.getM());
  for (unsigned window = unsigned(domain.size()) - 2; window > n; --window)
    if (llvm::is_contained({3, 5, 7}, domain[window].getValue()))
      if (auto line = findLine(op, exprs, window))
        lines.push_back(*line);
  return lines;
}

WinogradDilations loop::getWinogradDilations(ContractionOp op) {
  for (auto panels : op.getRhs().getOps<PanelsOp>())
    if (auto dilations = panels->getAttrOfType<DenseI64ArrayAttr>(winogradDilationsAttr))
      return {dilations[0], dilations[1]};
  return {1, 1};
}

/// Planes of G g.
static void transformAlongOne(WinogradTile tile, MutableArrayRef<float> elements) {
  SmallVector<double> matrix = getWinogradWeightMatrix(tile);
  size_t size = size_t(tile.size()), taps = size_t(tile.taps), plane = elements.size() / size;
  for (size_t e = 0; e < plane; ++e) {
    double window[7];
    for (size_t j = 0; j < taps; ++j)
      window[j] = double(elements[j * plane + e]);
    for (size_t a = 0; a < size; ++a) {
      double sum = 0;
      for (size_t j = 0; j < taps; ++j)
        sum += matrix[taps * a + j] * window[j];
      elements[a * plane + e] = float(sum);
    }
  }
}

namespace {
constexpr size_t blockOfWeights = 64;

/// 3x3 weights of a block.
struct Squares {
  double weights[3][3][blockOfWeights];
};
} // namespace

static Squares sumOfSlices(ArrayRef<double> factors, ArrayRef<Squares> slices, size_t count) {
  Squares sum{};
  for (auto [factor, slice] : llvm::zip_first(factors, slices))
    for (size_t i = 0; i < 9; ++i)
      for (size_t e = 0; e < count; ++e)
        sum.weights[i / 3][i % 3][e] += factor * slice.weights[i / 3][i % 3][e];
  return sum;
}

/// G g G^T to positions of `target`, `plane` elements apart.
static void transformSquares(ArrayRef<double> matrix, const Squares &window, size_t count,
                             MutableArrayRef<float> target, size_t plane) {
  const auto &g = window.weights;
  size_t size = matrix.size() / 3;
  double half[9][3][blockOfWeights];
  for (size_t a = 0; a < size; ++a)
    for (size_t j = 0; j < 3; ++j)
      for (size_t e = 0; e < count; ++e)
        half[a][j][e] = matrix[3 * a] * g[0][j][e] + matrix[3 * a + 1] * g[1][j][e] + matrix[3 * a + 2] * g[2][j][e];
  for (size_t a = 0; a < size; ++a)
    for (size_t b = 0; b < size; ++b)
      for (size_t e = 0; e < count; ++e)
        target[(a * size + b) * plane + e] = float(matrix[3 * b] * half[a][0][e] + matrix[3 * b + 1] * half[a][1][e] +
                                                   matrix[3 * b + 2] * half[a][2][e]);
}

void loop::transformWinogradWeights(WinogradTile tile, MutableArrayRef<float> elements) {
  if (tile.sides == 1)
    return transformAlongOne(tile, elements);
  SmallVector<double> sides = getWinogradWeightMatrix(tile), deep{1};
  if (tile.isVolume())
    deep = getWinogradWeightMatrix(tile.alongDepth());
  size_t planes = size_t(tile.planes()), slices = deep.size() / planes;
  size_t square = size_t(tile.size() * tile.size()), plane = elements.size() / (planes * square);
  for (size_t start = 0; start < plane; start += blockOfWeights) {
    size_t count = std::min(blockOfWeights, plane - start);
    Squares window[3];
    for (size_t i = 0; i < 9 * slices; ++i)
      for (size_t e = 0; e < count; ++e)
        window[i / 9].weights[i % 9 / 3][i % 3][e] = double(elements[i * plane + start + e]);
    for (size_t z = 0; z < planes; ++z)
      transformSquares(sides, sumOfSlices(ArrayRef(deep).slice(z * slices, slices), window, count), count,
                       elements.drop_front(z * square * plane + start), plane);
  }
}
