//===- Winograd.cpp - convolutions by Winograd's algorithm ----------------===//
#include "ir/loop/Winograd.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int64_t mostDilation = 64;

WinogradTile loop::getWinogradTile(Operation *op) {
  auto tile = op ? op->getAttrOfType<DenseI64ArrayAttr>(winogradAttr) : DenseI64ArrayAttr();
  return tile ? WinogradTile{.outputs = tile[0], .taps = tile[1], .sides = tile.size() - 1} : WinogradTile{};
}

WinogradTile loop::getWinogradTile(ContractionOp op) {
  for (auto panels : op.getRhs().getOps<PanelsOp>())
    return getWinogradTile(panels.getOperation());
  return {};
}

void loop::setWinogradTile(Operation *op, WinogradTile tile) {
  SmallVector<int64_t> numbers{tile.outputs};
  numbers.append(size_t(tile.sides), tile.taps);
  op->setAttr(winogradAttr, DenseI64ArrayAttr::get(op->getContext(), numbers));
}

ArrayRef<double> loop::getWinogradPoints(WinogradTile tile) {
  static constexpr double ofFour[] = {1}, ofSix[] = {0.625, 1.5}, ofEight[] = {0.5, 1, 2};
  assert(tile.size() == 4 || tile.size() == 6 || tile.size() == 8);
  return tile.size() == 4 ? ArrayRef<double>(ofFour) : tile.size() == 6 ? ArrayRef<double>(ofSix) : ofEight;
}

// A row of G: the powers of a point a over the product of its distances from all others. For +-p these are the same, 2p
// and p times p^2 - q^2 for every other q.
SmallVector<double> loop::getWinogradWeightMatrix(WinogradTile tile) {
  ArrayRef<double> points = getWinogradPoints(tile);
  double atZero = 1;
  for (double p : points)
    atZero *= -p * p;
  SmallVector<double> rows(size_t(tile.taps), 0.0);
  rows[0] = 1 / atZero;
  for (double p : points) {
    double distances = 2 * p * p;
    for (double q : points)
      distances *= p == q ? 1 : p * p - q * q;
    for (double at : {p, -p})
      for (int64_t tap = 0; tap < tile.taps; ++tap)
        rows.push_back(tap == 0 ? 1 / distances : at * rows.back());
  }
  rows.append(size_t(tile.taps), 0.0);
  rows.back() = 1;
  return rows;
}

/// Whether the dims of a pixel and of the window only occur as pixel + dilation * window.
static bool isSumOnly(Expr expr, unsigned pixel, unsigned window, int64_t dilation) {
  MLIRContext *context = expr.getContext();
  std::string first = dimName(pixel), second = dimName(window);
  if (!expr.uses(first) && !expr.uses(second))
    return true;
  Expr both = Expr::dim(context, pixel) + Expr::dim(context, window) * dilation, none = Expr::constant(context, 0);
  Expr summed = expr.substitute([&](StringRef name) { return name == first ? both : name == second ? none : Expr(); });
  return summed == expr;
}

/// The dilation with which all expressions are sums of the two dims.
static std::optional<int64_t> findDilation(ArrayRef<Expr> exprs, unsigned pixel, unsigned window) {
  auto isOfAll = [&](int64_t dilation) {
    return llvm::all_of(exprs, [&](Expr expr) { return isSumOnly(expr, pixel, window, dilation); });
  };
  for (Expr expr : exprs) {
    Expr step = expr.coefficientOf(dimName(pixel)), apart = expr.coefficientOf(dimName(window));
    if (!step || !apart || step.isConstant(0))
      continue;
    for (int64_t dilation = 1; dilation <= mostDilation; ++dilation)
      if (apart == step * dilation)
        return isOfAll(dilation) ? std::optional(dilation) : std::nullopt;
  }
  return isOfAll(1) ? std::optional<int64_t>(1) : std::nullopt;
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

std::optional<WinogradDilations> loop::findWinogradDilations(ContractionOp op) {
  if (op.getM() < 2 || op.getK() < 3 || !hasConstantWeight(op))
    return std::nullopt;
  SmallVector<Expr> domain = getDomain(op), exprs = exprsOfLhs(op);
  unsigned n = unsigned(op.getBatch() + op.getM()), window = unsigned(domain.size()) - 3;
  if (!domain[window].isConstant(3) || !domain[window + 1].isConstant(3))
    return std::nullopt;
  auto down = findDilation(exprs, n - 2, window), across = findDilation(exprs, n - 1, window + 1);
  return down && across ? std::optional(WinogradDilations{*down, *across}) : std::nullopt;
}

/// The dim of outputs that moves with one of the window, and how.
static std::optional<WinogradLine> findLine(ContractionOp op, ArrayRef<Expr> exprs, unsigned window) {
  std::string windowName = dimName(window);
  for (unsigned output = unsigned(op.getBatch() + op.getM()); output-- > unsigned(op.getBatch());) {
    std::string name = dimName(output);
    auto usesBoth = [&](Expr expr) { return expr.uses(name) && expr.uses(windowName); };
    if (!llvm::any_of(exprs, usesBoth))
      continue;
    if (auto dilation = findDilation(exprs, output, window))
      return WinogradLine{output, window, *dilation};
  }
  return std::nullopt;
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

void loop::transformWinogradWeights(WinogradTile tile, MutableArrayRef<float> elements) {
  if (tile.sides == 1)
    return transformAlongOne(tile, elements);
  constexpr size_t block = 64;
  SmallVector<double> matrix = getWinogradWeightMatrix(tile);
  size_t size = size_t(tile.size()), plane = elements.size() / (size * size);
  for (size_t start = 0; start < plane; start += block) {
    size_t count = std::min(block, plane - start);
    double window[3][3][block], half[6][3][block];
    for (size_t i = 0; i < 9; ++i)
      for (size_t e = 0; e < count; ++e)
        window[i / 3][i % 3][e] = double(elements[i * plane + start + e]);
    for (size_t a = 0; a < size; ++a)
      for (size_t j = 0; j < 3; ++j)
        for (size_t e = 0; e < count; ++e)
          half[a][j][e] = matrix[3 * a] * window[0][j][e] + matrix[3 * a + 1] * window[1][j][e] +
                          matrix[3 * a + 2] * window[2][j][e];
    for (size_t a = 0; a < size; ++a)
      for (size_t b = 0; b < size; ++b)
        for (size_t e = 0; e < count; ++e)
          elements[(a * size + b) * plane + start + e] = float(
              matrix[3 * b] * half[a][0][e] + matrix[3 * b + 1] * half[a][1][e] + matrix[3 * b + 2] * half[a][2][e]);
  }
}
