//===- CpuContractionInside.cpp - tiles whose windows meet no border ------===//
//
// Problem. Where a window may reach beyond the image, each row of a tile asks at each of the window's pixels whether it
// is there, and reads a run of constants if not. Between two such questions lie as many steps of the multiply-add tile
// as a pixel has channels. With 8 of them, the questions and what surrounds the short loop take nearly half of the
// time.
//
// Idea. The conditions are affine, so for a tile whose rows lie in one line of the image the corners decide: if all
// hold where each is smallest, none fails for any row and pixel. Then the rows are a fixed step apart, and pixels that
// follow each other in memory and in the weight are one loop over k:
//
//   for window row, window column: [addresses of all rows] for channel     ->     for window row: for column x channel
//
// Where a pixel's channels are a slice of more, the loops stay, without the questions.
//
// An image of few channels first is read in runs as short as the window, so rows are copied to scratch; a tile inside
// reads them where they are, with the same loops, and only rows of the other tiles are copied. Copying took longer than
// the products. What tiles further on read is fetched meanwhile, as copies run by run do by themselves.
//
// Most tiles of an image that is large beside its window are such. The loops over k exist twice, so it is done only
// where they are short and the lines are long, or of any length that a run tells.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/ScratchLayout.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t longestPixel = 12; // channels: with 16, code that exists twice gained nothing
/// Bytes ahead that a tile's pixels are fetched: more lines of channels are read, a little of each, than the processor
/// follows by itself. As far as the next line of the image, if that is near, or a little on in the same. Of an image of
/// 600 KB that waits in memory the next line is better (half of the time that 512 bytes take), of one of megabytes,
/// which streams, what is near (on AVX2 0.95 of the time of copying; with the next line or 1 KB 1.06 to 1.2).
static constexpr int64_t farthestAhead = 2048, nearAhead = 512;
static constexpr int64_t mostLines = 4;
static constexpr int64_t tilesOfLine = 3; // fewer, and most tiles lie in two lines or at a border

static bool isConstantOrUnused(Expr expr, int64_t dim) {
  std::string name = dimName(dim);
  Expr step = expr.uses(name) ? expr.coefficientOf(name) : Expr::constant(expr.getContext(), 0);
  return step && step.isConstant();
}

bool ContractionEmission::areConditionsSolvable() {
  for (Expr condition : f.lhs.conditions())
    for (int64_t dim = 0; dim < int64_t(f.domain.size()); ++dim)
      if (dim == f.firstN() - 1 || dim >= f.firstK())
        if (!isConstantOrUnused(condition, dim) || (dim >= f.firstK() && !f.domain[dim].isConstant()))
          return false;
  return true;
}

static SmallVector<KLoop> joinLoops(ContractionEmission &c) {
  const ContractionForm &f = c.f;
  if (!c.sharedPixels.empty() || f.kLoops.back().extent.asConstant().value_or(1 << 20) > longestPixel)
    return {};
  // From the inside out; what is split stays the outermost loop, as does what has steps of some c.outputs alone.
  SmallVector<KLoop> joined(f.kLoops);
  size_t outermost = f.blocks.isSplitK() ? 1 : c.outputs > 1 ? size_t(f.taps.loop) : 0;
  while (joined.size() > outermost + 1) {
    KLoop inner = joined.back(), &outer = joined[joined.size() - 2];
    if (outer.aStride != inner.extent * inner.aStride || outer.bStride != inner.extent * inner.bStride)
      break;
    outer = {.dim = -1, .extent = outer.extent * inner.extent, .aStride = inner.aStride, .bStride = inner.bStride};
    joined.pop_back();
  }
  return joined;
}

static SmallVector<KLoop> loopsInPlace(ContractionEmission &c) {
  const ContractionForm &f = c.f;
  if (f.group != 1 || f.blocks.isSplitK() || f.lhs.element != c.accumulator || !c.copiesRuns())
    return {};
  SmallVector<KLoop> loops(f.kLoops);
  for (KLoop &own : loops) {
    if (own.dim < 0)
      return {};
    own.aStride = loop::strideOf(f.lhs.index(), own.dim);
  }
  return loops;
}

SmallVector<KLoop> ContractionEmission::getInsideLoops(int64_t height) {
  if (!i.asConstant(m) && height < split.height - 1)
    return {}; // no tile of many rows is as low
  bool isPacked = f.lhs.form == LhsForm::PackedRows && f.lhs.load;
  if ((f.lhs.form != LhsForm::Redirected && !isPacked) || f.group != 1 || f.mDims == 0)
    return {};
  int64_t line = f.firstN() - 1;
  Expr stride = loop::strideOf(f.lhs.index(), line);
  int64_t fewest = tilesOfLine * split.height * outputs;
  bool isLong = f.domain[line].asConstant().value_or(fewest) >= fewest;
  if (!isLong || !stride || !stride.isConstant() || !areConditionsSolvable())
    return {};
  return isPacked ? loopsInPlace(*this) : joinLoops(*this);
}

Value ContractionEmission::liesInside(const ContractionTask &task, int64_t height, Value row) {
  int64_t line = f.firstN() - 1;
  EmissionPoint first = taskPoint(task);
  setDims(first, f.firstM(), f.mDims, i.mul(row, i.constant(outputs)));
  Value last = i.add(first.dims[line], i.constant(height * outputs - 1));
  Value inside = i.compare(arith::CmpIPredicate::slt, last, value(f.domain[line]));
  for (Expr condition : f.lhs.conditions()) {
    EmissionPoint smallest = first;
    auto falls = [&](int64_t dim) {
      std::string name = dimName(dim);
      return condition.uses(name) && condition.coefficientOf(name).getValue() < 0;
    };
    if (falls(line))
      smallest.dims[line] = last;
    for (int64_t dim = f.firstK(); dim < int64_t(f.domain.size()); ++dim)
      smallest.dims[dim] = i.constant(falls(dim) ? f.domain[dim].getValue() - 1 : 0);
    Value holds = i.compare(arith::CmpIPredicate::sge, e.emitExpr(condition, smallest), i.constant(0));
    inside = i.logicalAnd(inside, holds);
  }
  return inside;
}

/// How far ahead pixels are fetched: the next line of the image, if it is near.
static Value bytesAhead(ContractionEmission &c) {
  InvariantBuilder &i = c.i;
  const ContractionForm &f = c.f;
  Value nearby = i.constant(nearAhead);
  Expr ofLine = f.mDims < 2 ? Expr() : loop::strideOf(f.lhs.index(), f.firstN() - 2);
  if (!ofLine)
    return nearby;
  Value line = i.mul(c.value(ofLine), i.constant(f.lhs.elementBytes()));
  auto isAtMost = [&](Value a, Value b) { return i.compare(arith::CmpIPredicate::sle, a, b); };
  Value isNear = i.logicalAnd(isAtMost(nearby, line), isAtMost(line, i.constant(farthestAhead)));
  return i.select(isNear, line, nearby);
}

/// Fetches what a later tile reads so many bytes beyond `first`, its rows `stride` elements apart.
static void fetchPixels(ContractionEmission &c, Value first, int64_t height, int64_t stride, Value ahead) {
  KernelEmitter &e = c.e;
  InvariantBuilder &i = c.i;
  int64_t bytes = height * std::abs(stride) * c.f.lhs.elementBytes();
  if (bytes > mostLines * lineBytes)
    return; // pixels of many channels: lines are few and dense
  for (int64_t byte = 0; byte < bytes; byte += lineBytes) {
    Value at = i.add(ahead, i.constant(stride < 0 ? -byte : byte));
    createPrefetch(e, e.getAddress(first, e.builder.getI8Type(), at), /*level=*/1);
  }
}

TileOperands ContractionEmission::insideOperands(const ContractionTask &task, TileOperands operands,
                                                 ArrayRef<KLoop> joined, int64_t height, Value row) {
  TileLoop outermost = operands.loops.front();
  operands.loops.clear();
  operands.zeros = Value();
  operands.convertB = nullptr; // B is what it is
  for (auto [index, kLoop] : llvm::enumerate(joined)) {
    operands.loops.push_back({.lower = i.constant(0),
                              .upper = value(kLoop.extent),
                              .aStride = value(kLoop.aStride),
                              .bStride = i.mul(value(kLoop.bStride), i.constant(panelWidth))});
    if (index == 0 && f.blocks.isSplitK())
      operands.loops.back() = outermost;
  }
  Value first = addressInPlace(rowPoint(task, i.mul(row, i.constant(outputs))));
  int64_t stride = loop::strideOf(f.lhs.index(), f.firstN() - 1).getValue() * outputs;
  auto step = joined.back().aStride.asConstant(), extent = joined.back().extent.asConstant();
  operands.meetsRows = step && extent && *step != 0 && *extent <= longestUnrolled && stride % *step == 0 &&
                       std::abs(stride / *step) < *extent;
  operands.rowAddresses = [=, this, loops = operands.loops, ahead = bytesAhead(*this)](ValueRange outer) {
    Value offset = i.constant(0);
    for (auto [at, kLoop] : llvm::zip(outer, loops))
      offset = i.add(offset, i.mul(at, kLoop.aStride));
    Value base = e.getAddress(first, f.lhs.element, offset);
    fetchPixels(*this, base, height, stride, ahead);
    return addressesApart(base, f.lhs.element, height, i.constant(stride));
  };
  return operands;
}
