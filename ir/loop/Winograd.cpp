//===- Winograd.cpp - 3x3 convolutions by Winograd's algorithm ------------===//
#include "ir/loop/Winograd.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int64_t mostDilation = 64;

int64_t loop::getWinogradTile(Operation *op) {
  auto tile = op ? op->getAttrOfType<IntegerAttr>(winogradAttr) : IntegerAttr();
  return tile ? tile.getInt() : 0;
}

int64_t loop::getWinogradTile(ContractionOp op) {
  for (auto panels : op.getRhs().getOps<PanelsOp>())
    return getWinogradTile(panels.getOperation());
  return 0;
}

ArrayRef<double> loop::getWinogradPoints(int64_t tile) {
  static constexpr double two[] = {1}, four[] = {0.625, 1.5};
  return tile == 2 ? ArrayRef<double>(two) : ArrayRef<double>(four);
}

// A row of G: the powers of a point a over the product of its distances from all others. For +-p these are the same, 2p
// and p times p^2 - q^2 for every other q.
SmallVector<double> loop::getWinogradWeightMatrix(int64_t tile) {
  ArrayRef<double> points = getWinogradPoints(tile);
  double atZero = 1;
  for (double p : points)
    atZero *= -p * p;
  SmallVector<double> rows{1 / atZero, 0, 0};
  for (double p : points) {
    double distances = 2 * p * p;
    for (double q : points)
      distances *= p == q ? 1 : p * p - q * q;
    for (double at : {p, -p})
      rows.append({1 / distances, at / distances, at * at / distances});
  }
  rows.append({0, 0, 1});
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

unsigned loop::getWinogradWindow(ContractionOp op) { return unsigned(getDomain(op).size()) - 3; }

std::optional<WinogradDilations> loop::findWinogradDilations(ContractionOp op) {
  SmallVector<Expr> domain = getDomain(op);
  if (op.getM() < 2 || op.getN() != 1 || op.getK() < 3)
    return std::nullopt;
  unsigned n = unsigned(op.getBatch() + op.getM()), window = getWinogradWindow(op);
  auto isConstant = [](Expr extent) { return extent.isConstant(); };
  if (!llvm::all_of(ArrayRef(domain).take_front(op.getBatch()), isConstant) ||
      !llvm::all_of(ArrayRef(domain).drop_front(n + 1), isConstant))
    return std::nullopt;
  if (!domain[window].isConstant(3) || !domain[window + 1].isConstant(3))
    return std::nullopt;
  SmallVector<Expr> exprs;
  op.getLhs().walk([&](Operation *inner) {
    for (NamedAttribute entry : inner->getAttrs())
      if (auto list = dyn_cast<ArrayAttr>(entry.getValue()))
        llvm::append_range(exprs, prim::getExprs(list));
  });
  auto down = findDilation(exprs, n - 2, window), across = findDilation(exprs, n - 1, window + 1);
  return down && across ? std::optional(WinogradDilations{*down, *across}) : std::nullopt;
}

WinogradDilations loop::getWinogradDilations(ContractionOp op) {
  for (auto panels : op.getRhs().getOps<PanelsOp>())
    if (auto dilations = panels->getAttrOfType<DenseI64ArrayAttr>(winogradDilationsAttr))
      return {dilations[0], dilations[1]};
  return {1, 1};
}

void loop::transformWinogradWeights(int64_t tile, MutableArrayRef<float> elements) {
  constexpr size_t block = 64;
  SmallVector<double> matrix = getWinogradWeightMatrix(tile);
  size_t size = size_t(tile + 2), plane = elements.size() / (size * size);
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
