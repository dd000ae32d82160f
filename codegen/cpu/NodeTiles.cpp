//===- NodeTiles.cpp - windowed reductions in tiles of outputs ------------===//
//
// Depthwise convolution does two operations for each element of a window, with two loads: one output at a time it runs
// at the speed of the loads. A tile of several neighbouring outputs, each with its accumulators in registers, loads an
// element of the weights once for all of them, and an element of the input once for all windows that hold it: with
// offsets instead of dims of their own (EmissionPoint) neighbours ask for the same address, and LLVM loads it once.
//
// At the borders of the input some outputs' windows lie partly outside. Three kinds of tiles:
//
//   constant    the outputs stand at known positions: conditions fold, elements outside are left out
//   interior    a loop; all conditions on the tiled dim are known to hold
//   single      one output at a time, whose loops over the window leave out what lies outside
//
// Lanes along another kept dim run inside of a tile: what follows each other in memory is read in turn, and a line of
// the cache while it is there. The other way round each vector of channels takes a whole row of the image, whose lines
// lie far apart and are more than the first-level cache has. Where a window lies across the lanes (LRN), each vector of
// them has its own masks, and runs over all tiles with those.
//
// A dim of known extent is cut into equal tiles, constant ones where they meet a border; else single outputs surround
// the interior. The sum of an output is taken in the same order in all of them.
//
// A convolution with few outputs is such a sum, too, with lanes along its channels: one output's multiply-adds would
// wait for each other.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/NodeEmitter.h"
#include "codegen/cpu/WindowBounds.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ToldNumbers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t mostConstantTiles = 3; // their code is unrolled
static constexpr int64_t mostElements = 4096;   // of windows in them, where those reach over more than a tile

namespace {
class TileEmission {
public:
  TileEmission(KernelEmitter &e, loop::ReductionOp op, const LoopConfig &config, int64_t shared, PointLoop alongLanes,
               const PointContext &context)
      : e(e), op(op), domain(loop::getDomain(op)), dim(config.tiled), shared(shared),
        reducedLanes(config.sharedVector < 0 ? config.nodeVectors.front() : -1), isOrdered(config.ordered >= 0),
        alongLanes(alongLanes), context(context) {
    inside = findInterior(e, op, dim);
  }
  void emitKnown(int64_t extent);
  void emitRange(Value from, Value to);

private:
  int64_t chooseWidth();
  int64_t chooseRows();
  int64_t longestRow();
  void emitAt(Value position, int64_t count, bool isInside);
  void singles(Value from, Value to, bool isInside);
  void tiles(Value from, Value to, int64_t width);

  KernelEmitter &e;
  loop::ReductionOp op;
  SmallVector<Expr> domain;
  int64_t dim, shared, reducedLanes; // the last: a reduced dim that carries lanes, -1
  bool isOrdered;                    // points follow each other by what they choose
  PointLoop alongLanes;
  const PointContext &context;
  Interior inside;
};
} // namespace

Interior cpu::findInterior(KernelEmitter &e, loop::ReductionOp op, int64_t dim) {
  InvariantBuilder &in = e.invariants;
  SmallVector<Expr> domain = loop::getDomain(op);
  e.setDomain(domain);
  int64_t firstReduced = int64_t(domain.size()) - int64_t(op.getReduced());
  std::string name = dimName(dim);
  Interior inside{e.constant(0), e.emitExpr(domain[size_t(dim)], {}), {}};
  op.walk([&](loop::MaskedOp mask) {
    for (Expr condition : prim::getExprs(mask.getConditions())) {
      if (!condition.uses(name))
        continue;
      std::optional<DimBounds> bounds = solveForAllWindows(condition, dim, domain, firstReduced);
      if (!bounds)
        continue;
      if (bounds->lower)
        inside.from = in.max(inside.from, e.emitExpr(bounds->lower, {}));
      if (bounds->upper)
        inside.to = in.min(inside.to, e.emitExpr(bounds->upper, {}));
      inside.conditions.insert(condition);
    }
  });
  return inside;
}

/// Rows of a matrix, whose sums are at most half of the registers.
int64_t TileEmission::chooseRows() {
  int64_t reductions = llvm::range_size(op.getBody().front().getOps<loop::ReduceOp>());
  uint64_t most = std::max<int64_t>(e.level.vectorRegisters / 2 / reductions, 2),
           rows = uint64_t(domain[size_t(dim)].getValue());
  int64_t lanes = chooseWholeLanes(e, op, domain[size_t(reducedLanes)]);
  return std::min({int64_t(llvm::bit_floor(most)), int64_t(rows & -rows), lanes});
}

static bool isElementaryFunction(Operation *op) {
  return isa<math::MathDialect>(op->getDialect()) && !isa<math::SqrtOp, math::AbsFOp, math::FmaOp>(op);
}

/// Whether what follows the sums has a function, and only one.
static bool hasFunctionBehind(loop::ReductionOp op) {
  Block &body = op.getBody().front();
  SmallVector<Operation *> functions;
  op.walk([&](Operation *inner) {
    if (isElementaryFunction(inner))
      functions.push_back(inner);
  });
  return functions.size() == 1 && functions[0]->getBlock() == &body &&
         llvm::all_of(body.getOps<loop::ReduceOp>(),
                      [&](loop::ReduceOp reduce) { return reduce->isBeforeInBlock(functions[0]); });
}

/// Accumulators in at most half of the registers; fewer where the code after the window is long. A function there is a
/// chain of operations, of which those of all outputs go side by side: seven, which divide many images' lines, take 0.9
/// of the time of four; with 16 registers five 0.93, and more spill at some strides.
int64_t TileEmission::chooseWidth() {
  if (isOrdered)
    return chooseRows();
  if (reducedLanes >= 0) // lanes of the outputs become lanes along the dim
    return std::max<int64_t>(chooseWholeLanes(e, op, domain[size_t(reducedLanes)]), 2);
  int64_t reductions = 0, operations = 0;
  bool hasFunctions = false, isWide = e.level.vectorRegisters >= 32;
  op.walk([&](Operation *inner) {
    reductions += isa<loop::ReduceOp>(inner);
    operations += !loop::isNumber(inner);
    hasFunctions |= isElementaryFunction(inner);
  });
  int64_t most = isWide ? 8 : 6;
  if (operations > 32 || (hasFunctions && !hasFunctionBehind(op)))
    most = 4;
  else if (hasFunctions)
    most = isWide ? 7 : 5;
  return std::max<int64_t>(most / std::max<int64_t>(reductions, 1), 2);
}

/// The most elements of a window along which those of neighbours overlap.
int64_t TileEmission::longestRow() {
  int64_t longest = 1;
  for (int64_t reduced = int64_t(domain.size() - op.getReduced()); reduced < int64_t(domain.size()); ++reduced)
    if (windowsOverlap(op, dim, reduced))
      longest = std::max(longest, domain[size_t(reduced)].asConstant().value_or(mostElements));
  return longest;
}

/// `count` outputs from `position` on.
void TileEmission::emitAt(Value position, int64_t count, bool isInside) {
  auto place = e.invariants.asConstant(position);
  alongLanes([&](const EmissionPoint &point) {
    llvm::DenseSet<Attribute> assumed;
    if (point.assumed)
      assumed = *point.assumed;
    if (isInside)
      assumed.insert_range(inside.conditions);
    Points points(size_t(count), point);
    for (auto [i, at] : llvm::enumerate(points)) {
      at.dims.resize(domain.size());
      at.dims[size_t(dim)] = place ? e.constant(*place + int64_t(i)) : position;
      at.offsets.assign(domain.size(), 0);
      at.offsets[size_t(dim)] = place ? 0 : int64_t(i);
      at.assumed = &assumed;
    }
    NodeEmitter(e, op).emit(points, shared, reducedLanes, dim, context);
  });
}

void TileEmission::singles(Value from, Value to, bool isInside) {
  e.forEach(from, to, 1, [&](Value at) { emitAt(at, 1, isInside); });
}

void TileEmission::tiles(Value from, Value to, int64_t width) {
  e.forEach(from, to, width, [&](Value at) { emitAt(at, width, true); });
}

void TileEmission::emitKnown(int64_t extent) {
  int64_t width = chooseWidth();
  if (reducedLanes >= 0 && extent % width)
    return emitRange(e.constant(0), e.constant(extent));
  int64_t count = llvm::divideCeil(extent, width), part = extent / count, larger = extent % count;
  auto from = e.invariants.asConstant(inside.from), to = e.invariants.asConstant(inside.to);
  auto startOf = [&](int64_t tile) { return tile * part + std::min(tile, larger); };
  auto isInside = [&](int64_t tile) { return from && to && startOf(tile) >= *from && startOf(tile + 1) <= *to; };
  int64_t outside = llvm::count_if(llvm::seq<int64_t>(0, count), [&](int64_t tile) { return !isInside(tile); });
  // Single outputs wait for their own sums: worse where they are more than a tile.
  bool reachesFar = from && to && std::max(*from, extent - *to) > width;
  if (outside > (reachesFar ? std::max(mostElements / (width * longestRow()), mostConstantTiles) : mostConstantTiles))
    return emitRange(e.constant(0), e.constant(extent));
  for (int64_t tile = 0; tile < count;) {
    int64_t size = startOf(tile + 1) - startOf(tile), end = tile + 1;
    if (!isInside(tile)) {
      emitAt(e.constant(startOf(tile)), size, false);
      tile = end;
      continue;
    }
    while (end < count && isInside(end) && startOf(end + 1) - startOf(end) == size)
      ++end;
    tiles(e.constant(startOf(tile)), e.constant(startOf(end)), size);
    tile = end;
  }
}

void TileEmission::emitRange(Value from, Value to) {
  InvariantBuilder &in = e.invariants;
  int64_t width = chooseWidth();
  Value first = in.min(in.max(from, inside.from), to), last = in.max(in.min(to, inside.to), first);
  Value whole = in.mul(in.floorDiv(in.sub(last, first), e.constant(width), true), e.constant(width));
  Value middle = in.add(first, whole);
  singles(from, first, false);
  tiles(first, middle, width);
  singles(middle, last, true);
  singles(last, to, false);
}

void cpu::emitTiles(KernelEmitter &e, Operation *node, const LoopConfig &config, int64_t shared, Value block,
                    PointLoop alongLanes, const PointContext &context) {
  auto op = cast<loop::ReductionOp>(node);
  TileEmission emission(e, op, config, shared, alongLanes, context);
  Value extent = e.emitExpr(loop::getDomain(op)[size_t(config.tiled)], {});
  if (block) {
    InvariantBuilder &in = e.invariants;
    Value from = in.mul(block, e.constant(config.tileBlock));
    return emission.emitRange(from, in.min(in.add(from, e.constant(config.tileBlock)), extent));
  }
  if (auto known = e.invariants.asConstant(extent); known && *known > 0)
    return emission.emitKnown(*known);
  emission.emitRange(e.constant(0), extent);
}
