//===- CpuContractionLines.cpp - tiles in lines of the image --------------===//
//
// Problem. Where all rows of a tile read zeros beside the image at an element of the window, its products are left out.
// Tiles of rows that follow each other seldom are such: of 17 pixels a line and 14 rows a tile most lie in two lines,
// of which one is in the image; and of a half line some pixels see what the others do not.
//
// Idea. A line of the image is the last dim of the rows. All lines are cut alike, into a few tiles: as even as they can
// be, or also wherever windows along the line begin or cease to see the image, which dilated ones do at a few places
// (28 pixels with taps 12 apart: 12, 4 and 12). An element of the window is left out for a tile then by what is above
// and below its line, and to both sides of it.
//
// What that brings is counted: for each tile, the elements of the window that one of its rows sees. Lower tiles take
// longer for each row, and the question costs a little for each element. What is little is left alone.
//
// Rows whose dims the window meets alike may be in any order: one along which windows leave the image is put outside
// (a window of 1 x 7: tiles are pieces of columns, for each of which an element is in the image or is not).
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuTemplates.h"
#include "ir/expr/DimName.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr size_t mostHeights = 3;     // of tiles: code stands there for each
static constexpr int64_t mostElements = 512; // of the window
static constexpr int64_t mostRows = 1 << 16; // more lie in large images, whose borders are little
static constexpr int64_t mostSeen = 1 << 20; // places along a dim by elements: the same, and of long signals
static constexpr double leastSaved = 0.03;   // of the products' time
static constexpr double ofQuestion = 8;      // cycles for an element of the window
static constexpr double latency = 4;         // of a multiply-add, in cycles
static constexpr double ofVector = 2;        // cycles in which the second-level cache gives one of the weight

/// For each place along a dim of the rows the elements of the window that lie in the image there.
using SeenPlaces = llvm::SmallVector<llvm::BitVector>;

/// The dim of the rows that the condition is about, if it is one; -1: none.
static std::optional<int64_t> rowDimOf(Expr condition, int64_t firstM, int64_t firstN) {
  int64_t found = -1;
  for (int64_t dim = 0; dim < firstN; ++dim) {
    if (!condition.uses(dimName(dim)))
      continue;
    if (found >= 0 || dim < firstM)
      return std::nullopt;
    found = dim;
  }
  return found;
}

/// What the condition is at each element of the window, rows aside, and what a step along the dim of the rows adds.
struct SeenCondition {
  int64_t dim = -1, step = 0; // -1: rows make no difference
  SmallVector<int64_t> ofElements;
};

/// The condition as a sum; nothing where it is none, or of several dims of rows.
static std::optional<SeenCondition> solveCondition(Expr condition, ArrayRef<Expr> domain, int64_t firstM,
                                                   int64_t firstN, ArrayRef<int64_t> window, int64_t elements) {
  std::optional<int64_t> dim = rowDimOf(condition, firstM, firstN);
  if (!dim)
    return std::nullopt;
  auto takeOff = [&](int64_t from) -> std::optional<int64_t> {
    Expr rest, step = condition.coefficientOf(dimName(from), &rest);
    if (!step || !step.isConstant())
      return std::nullopt;
    condition = rest;
    return step.getValue();
  };
  SeenCondition solved;
  if (*dim >= 0) {
    auto step = takeOff(*dim);
    if (!step)
      return std::nullopt;
    solved.dim = *dim - firstM;
    solved.step = *step;
  }
  SmallVector<int64_t> steps;
  for (int64_t each : window) {
    auto step = takeOff(each);
    if (!step)
      return std::nullopt;
    steps.push_back(*step);
  }
  if (!condition.isConstant())
    return std::nullopt;
  solved.ofElements.assign(size_t(elements), condition.getValue());
  for (int64_t element = 0; element < elements; ++element) {
    int64_t rest = element;
    for (auto [each, step] : llvm::reverse(llvm::zip_equal(window, steps))) {
      int64_t extent = domain[each].getValue();
      solved.ofElements[size_t(element)] += step * (rest % extent);
      rest /= extent;
    }
  }
  return solved;
}

/// What windows see along each dim of the rows, the dims of the window being `window`; none where extents are not known
/// or large, or conditions are no sums or of several dims.
static std::optional<SmallVector<SeenPlaces>> findSeen(ArrayRef<Expr> domain, ArrayRef<Expr> conditions, int64_t firstM,
                                                       int64_t firstN, ArrayRef<int64_t> window) {
  int64_t elements = 1;
  for (int64_t dim : window)
    elements *=
        dim < 0 ? mostElements + 1 : std::min(domain[dim].asConstant().value_or(mostElements + 1), mostElements + 1);
  if (elements > mostElements)
    return std::nullopt;
  SmallVector<SeenPlaces> seen;
  for (int64_t dim = firstM; dim < firstN; ++dim) {
    auto extent = domain[dim].asConstant();
    if (!extent || *extent * elements > mostSeen)
      return std::nullopt;
    seen.emplace_back(*extent, llvm::BitVector(unsigned(elements), true));
  }
  for (Expr condition : conditions) {
    auto solved = solveCondition(condition, domain, firstM, firstN, window, elements);
    if (!solved)
      return std::nullopt;
    if (solved->dim < 0)
      continue;
    for (auto [place, bits] : llvm::enumerate(seen[size_t(solved->dim)]))
      for (auto [element, value] : llvm::enumerate(solved->ofElements))
        if (value + solved->step * int64_t(place) < 0)
          bits.reset(unsigned(element));
  }
  return seen;
}

/// The line as tiles of at most `height` rows, cut at `ends`, too (the last of which is the line's).
static SmallVector<LinePart> partLine(ArrayRef<int64_t> ends, int64_t height) {
  SmallVector<LinePart> parts;
  int64_t first = 0;
  for (int64_t end : ends) {
    int64_t count = llvm::divideCeil(end - first, height);
    for (int64_t part = 0; part < count; ++part) {
      int64_t own = (end - first + count - part - 1) / (count - part);
      parts.push_back({first, own});
      first += own;
    }
  }
  return parts;
}

namespace {

/// What windows see, line by line, and what tiles cost that are cut so or so: cycles of all products.
struct LineCosts {
  SeenPlaces along;                   // a line
  SmallVector<llvm::BitVector> lines; // for each, the elements of the window that lie in the image there
  int64_t terms, lanes;               // of an element of the window; of a vector
  int64_t panels;                     // of a tile

  int64_t length() const { return int64_t(along.size()); }
  llvm::BitVector none() const { return llvm::BitVector(along.front().size()); }
  double ofElement(int64_t height, bool asks) const;
  double ofTilesInARow(int64_t tallest, bool asks) const;
  double ofParts(ArrayRef<LinePart> parts) const;
  SmallVector<int64_t> ends() const;
};

} // namespace

/// Of one element of the window, for a tile.
double LineCosts::ofElement(int64_t height, bool asks) const {
  double vectors = double(panels * panelWidth / lanes), sums = double(height) * vectors;
  double step = std::max({sums / 2, (double(height) + vectors) / 2, vectors * ofVector, latency});
  return step * double(terms) + (asks ? ofQuestion + double(height) : 0);
}

/// Of balanced tiles that follow each other. `asks`: what no row of a tile sees is left out.
double LineCosts::ofTilesInARow(int64_t tallest, bool asks) const {
  double cost = 0;
  int64_t rows = int64_t(lines.size()) * length(), tiles = llvm::divideCeil(rows, tallest), row = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    int64_t height = rows / tiles + (tile < rows % tiles);
    llvm::BitVector seen = none();
    for (int64_t end = row + height; asks && row < end; ++row) {
      llvm::BitVector own = lines[size_t(row / length())];
      own &= along[size_t(row % length())];
      seen |= own;
    }
    cost += ofElement(height, asks) * double(asks ? seen.count() : seen.size());
  }
  return cost;
}

double LineCosts::ofParts(ArrayRef<LinePart> parts) const {
  double cost = 0;
  for (LinePart part : parts) {
    llvm::BitVector any = none();
    for (int64_t place = part.first; place < part.first + part.height; ++place)
      any |= along[size_t(place)];
    for (llvm::BitVector bits : lines)
      cost += ofElement(part.height, /*asks=*/true) * double((bits &= any).count());
  }
  return cost;
}

/// Where windows along the line begin or cease to see the image, and its end.
SmallVector<int64_t> LineCosts::ends() const {
  SmallVector<int64_t> ends;
  for (int64_t place = 1; place < length(); ++place)
    if (along[size_t(place)] != along[size_t(place - 1)])
      ends.push_back(place);
  ends.push_back(length());
  return ends;
}

/// What windows see in each line of the image, given what they see along each dim.
static SmallVector<llvm::BitVector> combineLines(ArrayRef<SeenPlaces> seen) {
  int64_t lines = 1;
  for (const SeenPlaces &places : seen.drop_back())
    lines *= int64_t(places.size());
  SmallVector<llvm::BitVector> ofLines;
  for (int64_t number = 0; number < lines; ++number) {
    llvm::BitVector bits(seen.back().front().size(), true);
    int64_t rest = number;
    for (const SeenPlaces &places : llvm::reverse(seen.drop_back())) {
      bits &= places[size_t(rest % int64_t(places.size()))];
      rest /= int64_t(places.size());
    }
    ofLines.push_back(bits);
  }
  return ofLines;
}

static bool hasFewHeights(ArrayRef<LinePart> parts) {
  llvm::SmallSet<int64_t, 8> heights;
  for (LinePart part : parts)
    heights.insert(part.height);
  return heights.size() <= mostHeights;
}

/// What windows see along each dim of the rows, where tiles can be in lines; else nothing.
static std::optional<SmallVector<SeenPlaces>> findSeenInLines(const ContractionEmission &c) {
  const ContractionForm &f = c.f;
  auto known = c.i.asConstant(c.m);
  if (f.lhs.form != LhsForm::Redirected || f.rhs.isPacked() || f.group != 1 || f.bits || !c.sharedPixels.empty() ||
      c.e.isStage || f.batchDims || f.mDims < 1 || !known || *known > mostRows || *known <= c.split.height ||
      !f.kLoops.back().extent.isConstant() || !isa<FloatType>(c.accumulator) || !c.mayLeaveOut())
    return std::nullopt;
  SmallVector<int64_t> window;
  for (const KLoop &loop : ArrayRef(f.kLoops).drop_back())
    window.push_back(loop.dim);
  auto seen = findSeen(f.domain, f.lhs.conditions(), f.firstM(), f.firstN(), window);
  if (!seen)
    return std::nullopt;
  int64_t pixels = 1;
  for (const SeenPlaces &places : *seen)
    pixels *= int64_t(places.size());
  if (pixels != *known)
    return std::nullopt; // rows are tiles of pixels, for Winograd's algorithm
  int64_t line = int64_t(seen->back().size()), lines = *known / line, blocks = c.i.asConstant(c.mBlocks).value_or(0);
  auto roomOfTask = f.blocks.rowsMost.asConstant();
  bool hasRoom =
      blocks >= 1 && lines >= blocks && roomOfTask && int64_t(llvm::divideCeil(lines, blocks)) * line <= *roomOfTask;
  return hasRoom ? seen : std::nullopt;
}

void ContractionEmission::cutLines() {
  std::optional<SmallVector<SeenPlaces>> seen = findSeenInLines(*this);
  if (!seen)
    return;
  LineCosts costs{.along = seen->back(),
                  .lines = combineLines(*seen),
                  .terms = f.kLoops.back().extent.getValue(),
                  .lanes = lanes,
                  .panels = split.width};
  double best = (1 - leastSaved) * costs.ofTilesInARow(split.height, meetsZeros());
  SmallVector<LinePart> chosen;
  for (const SmallVector<LinePart> &parts :
       {partLine({costs.length()}, split.height), partLine(costs.ends(), split.height)}) {
    if (!hasFewHeights(parts))
      continue;
    if (double cost = costs.ofParts(parts); cost < best) {
      best = cost;
      chosen = parts;
    }
  }
  if (chosen.empty())
    return;
  asksForZeros = true;
  if (llvm::all_of(chosen, [&](LinePart part) { return part.height == chosen[0].height; }))
    split.height = chosen[0].height; // tiles one behind the other end with lines
  else
    lineParts = chosen;
}

bool cpu::bringsColumnsOutside(loop::ContractionOp op) {
  constexpr int64_t fewestPlaces = 6, fewestChannels = 16; // images of fewer are read in runs along a line
  constexpr double leastUnseen = 0.05;
  loop::DimCounts counts(op);
  auto yield = cast<loop::YieldOp>(op.getLhs().front().getTerminator());
  auto mask = yield.getValue().getDefiningOp<loop::MaskedOp>();
  int64_t firstM = counts.first(1), firstN = counts.first(2), firstK = counts.first(3);
  SmallVector<Expr> domain = loop::getDomain(op);
  if (!mask || counts.counts[0] || counts.counts[1] != 2 || counts.counts[3] < 2 ||
      domain.back().asConstant().value_or(0) < fewestChannels)
    return false;
  SmallVector<Expr> conditions = prim::getExprs(mask.getConditions());
  auto window = llvm::to_vector(llvm::seq<int64_t>(firstK, int64_t(domain.size()) - 1));
  auto seen = findSeen(domain, conditions, firstM, firstN, window);
  if (!seen || int64_t(seen->front().size()) < fewestPlaces)
    return false;
  auto shareOf = [](const SeenPlaces &places) {
    double count = 0;
    for (const llvm::BitVector &bits : places)
      count += double(bits.count());
    return count / double(places.size() * places.front().size());
  };
  return shareOf(seen->front()) == 1 && shareOf(seen->back()) < 1 - leastUnseen;
}
