//===- WgmmaPlan.cpp - contractions of warpgroups: the plan ---------------===//
//
// Operands must be boxes of a tensor in memory: elements of 16 bits or f32 that are read as they are, through an index
// that is linear in the dims, whose free dims and whose k are one dim each (of a batch, up to three dims stay),
// contiguous in one of the two (of f32 in k: wgmma reads no other), all extents known. Copies put zeros where a box
// reaches over an end, so that no extent needs to be a multiple of the tile's.
//
// Blocks stay and take tile after tile, so that the copies of the next tile are under way while results are written.
// The estimate counts, like that of MmaPlan, cycles of a multiprocessor: turns of tiles, each its steps and its
// results.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/WgmmaPlan.h"
#include "runtime/include/ptc/descriptor.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t multiprocessors = 132;
static constexpr int64_t mostBatchDims = 3;    // beside the two of a box
static constexpr int64_t resultsTogether = 8;  // that a thread writes
static constexpr int64_t mostExtent = 1 << 30; // coordinates are i32

DenseI64ArrayAttr WgmmaTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {m, n, stages, together, int64_t(kind), splits});
}

WgmmaTile WgmmaTile::fromAttribute(DenseI64ArrayAttr attribute) {
  ArrayRef<int64_t> values = attribute.asArrayRef();
  return {values[0], values[1], values[2], values[3], MmaKind(values[4]), values[5]};
}

std::optional<WgmmaTile> gpu::getWgmmaTile(loop::KernelOp kernel) {
  auto values = kernel.getConfigAttr() ? kernel.getConfigAttr().getAs<DenseI64ArrayAttr>("wgmma") : nullptr;
  return values ? std::optional(WgmmaTile::fromAttribute(values)) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

namespace {
/// `extent` elements, `stride` apart.
struct Axis {
  int64_t extent = 1, stride = 0;
};
} // namespace

// Dims as one axis, the last one innermost.
static std::optional<Axis> mergeAxes(ArrayRef<Axis> axes) {
  Axis merged;
  for (const Axis &axis : llvm::reverse(axes)) {
    if (axis.extent == 1)
      continue;
    if (merged.extent == 1)
      merged = axis;
    else if (axis.stride == merged.stride * merged.extent)
      merged.extent *= axis.extent;
    else
      return std::nullopt;
  }
  if (merged.extent > mostExtent)
    return std::nullopt;
  return merged;
}

// Extents and strides of all dims in the index; the rest of it in `offset`.
static std::optional<SmallVector<Axis>> readAxes(ArrayRef<Expr> domain, Expr index, int64_t &offset) {
  SmallVector<Axis> axes;
  for (auto [dim, extent] : llvm::enumerate(domain)) {
    std::optional<int64_t> known = extent.asConstant();
    if (!known || *known < 1 || *known > mostExtent)
      return std::nullopt;
    Axis &axis = axes.emplace_back(Axis{*known, 0});
    std::string name = "d" + std::to_string(dim);
    if (!index.uses(name))
      continue;
    Expr rest, coefficient = index.coefficientOf(name, &rest);
    if (!coefficient || !coefficient.isConstant())
      return std::nullopt;
    axis.stride = coefficient.getValue();
    index = rest;
  }
  if (!index.isConstant())
    return std::nullopt;
  offset = index.getValue();
  return axes;
}

// Where boxes may begin.
static bool isAligned(int64_t elements, const WgmmaTile &tile) {
  return elements >= 0 && elements * tile.elementBytes() % MmaTile::vectorBytes == 0;
}

static bool isOfKind(Type type, MmaKind kind) {
  switch (kind) {
  case MmaKind::F16:
    return type.isF16();
  case MmaKind::BF16:
    return type.isBF16();
  case MmaKind::SplitF32:
    return type.isF32();
  }
  return false;
}

std::optional<WgmmaOperand> gpu::analyzeBoxes(loop::ContractionOp op, bool isRhs, const WgmmaTile &tile) {
  ContractionDims dims(op);
  auto load = getNarrowValue(isRhs ? op.getRhs() : op.getLhs()).getDefiningOp<loop::LoadOp>();
  auto buffer = load ? dyn_cast<BlockArgument>(load.getBuffer()) : BlockArgument();
  bool isPlain = buffer && buffer.getOwner() == &op->getParentOfType<loop::KernelOp>().getBlock() &&
                 load.getIndexOperands().empty() && isOfKind(load.getType(), tile.kind);
  int64_t offset = 0;
  auto axes = isPlain ? readAxes(dims.domain, Expr(cast<ExprAttr>(load.getIndices()[0])), offset) : std::nullopt;
  if (!axes || !isAligned(offset, tile))
    return std::nullopt;
  auto slice = [&](int64_t from, int64_t to) { return ArrayRef(*axes).slice(size_t(from), size_t(to - from)); };
  std::optional<Axis> free =
      isRhs ? mergeAxes(slice(dims.firstN, dims.firstK)) : mergeAxes(slice(dims.firstM, dims.firstN));
  std::optional<Axis> k = mergeAxes(slice(dims.firstK, int64_t(axes->size())));
  if (!free || !k)
    return std::nullopt;
  WgmmaOperand operand{.isAlongK = k->stride == 1};
  const Axis &inner = operand.isAlongK ? *k : *free, &outer = operand.isAlongK ? *free : *k;
  if (inner.stride != 1 || outer.stride <= 0 || !isAligned(outer.stride, tile))
    return std::nullopt;
  int64_t size = isRhs ? tile.n : tile.m, bytes = tile.elementBytes();
  if (!operand.isAlongK && (tile.isSplitF32() || size % tile.k() != 0))
    return std::nullopt;
  operand.boxes = operand.isAlongK ? 1 : size / tile.k();
  operand.map = {.buffer = buffer.getArgNumber(), .elementBytes = unsigned(bytes), .offset = offset * bytes};
  auto add = [&](const Axis &axis, int64_t box) {
    operand.map.extents.push_back(axis.extent);
    operand.map.strides.push_back(axis.stride * bytes);
    operand.map.box.push_back(box);
  };
  add(inner, tile.k());
  add(outer, operand.isAlongK ? size : tile.k());
  for (auto [dim, axis] : llvm::enumerate(slice(0, dims.firstM))) {
    if (axis.extent == 1 || axis.stride == 0)
      continue;
    if (!isAligned(axis.stride, tile) || operand.dims.size() == mostBatchDims)
      return std::nullopt;
    operand.dims.push_back(dim);
    add(axis, 1);
  }
  return operand;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

static int64_t countOf(ArrayRef<Expr> extents) {
  int64_t count = 1;
  for (Expr extent : extents)
    count *= extent.asConstant().value_or(0);
  return count;
}

int64_t gpu::countWgmmaTiles(loop::ContractionOp op, const WgmmaTile &tile) {
  ContractionDims dims(op);
  return countOf(dims.batch()) * llvm::divideCeil(countOf(dims.m()), tile.m) *
         llvm::divideCeil(countOf(dims.n()), tile.n);
}

// Bytes of a stage that come from L2: rows of a box that do not begin with a line have a part of one more.
static int64_t countBytes(int64_t rows, const WgmmaOperand &operand) {
  bool isWhole = (operand.map.strides[1] | operand.map.offset) % MmaTile::depthBytes == 0;
  return rows * MmaTile::depthBytes * (isWhole ? 1 : 2);
}

int64_t gpu::countWgmmaScratch(loop::ContractionOp op, const WgmmaTile &tile) {
  return tile.splits > 1 ? countWgmmaTiles(op, tile) * tile.splits * tile.m * tile.n * 4 : 0;
}

// Of a step. Of f32 there are three products, 8 deep, each of which begins with reading lhs from registers; a warpgroup
// that is alone lets the tensor cores wait while it adds up many sums.
static double countProductCycles(const WgmmaTile &tile) {
  if (!tile.isSplitF32())
    return double(tile.m * tile.n * tile.k()) / 1950 + 60;
  constexpr int64_t products = 3 * 4;
  return double(products * tile.groups()) * (31 + 0.47 * double(tile.n)) +
         (tile.groups() == 1 && tile.n > 32 ? 200 : 0);
}

// Fits measured times: a step is the tensor cores' or L2's; a turn of tiles ends with results, which other blocks of
// the multiprocessor hide in part.
static double estimate(loop::ContractionOp op, const WgmmaTile &tile, const WgmmaOperand &lhs,
                       const WgmmaOperand &rhs) {
  ContractionDims dims(op);
  double fromL2 = double(countBytes(tile.m, lhs) + countBytes(tile.n, rhs)) / 70;
  double steps = double(llvm::divideCeil(llvm::divideCeil(countOf(dims.k()), tile.k()), tile.splits));
  double turns = double(llvm::divideCeil(countWgmmaTiles(op, tile) * tile.splits, multiprocessors));
  double results = (900 + double(tile.m * tile.n) / 6) * (tile.together > 1 ? 0.5 : 1);
  double once = 4200 + double(tile.n) * 8 + (tile.groups() > 1 ? 1000 : 0);
  double sum = tile.splits > 1 ? 2500 + double(tile.splits + 1) * double(tile.m * tile.n) * 4 / 24 : 0;
  return once + turns * steps * std::max(countProductCycles(tile), fromL2) + (turns - 1) * results + sum;
}

static bool fits(loop::ContractionOp op, const WgmmaTile &tile) {
  constexpr int64_t fewestSteps = 4; // fewer do not pay for a sum
  int64_t tiles = countWgmmaTiles(op, tile), blocks = multiprocessors * tile.together;
  if (tile.together > 1 && tiles <= multiprocessors)
    return false; // alone, more stages do more
  int64_t steps = llvm::divideCeil(countOf(ContractionDims(op).k()), tile.k());
  return tile.splits == 1 || (tiles * tile.splits <= blocks && tiles * tile.groups() <= PTC_RT_CUDA_COUNTERS &&
                              steps / tile.splits >= fewestSteps);
}

std::optional<WgmmaTile> gpu::planWgmma(loop::ContractionOp op, MmaKind kind, double otherCycles) {
  ContractionDims dims(op);
  std::optional<int64_t> inner = dims.n().empty() ? std::nullopt : dims.n().back().asConstant();
  if (!inner || *inner % resultsTogether != 0 || countOf(dims.m()) < WgmmaTile::groupRows)
    return std::nullopt;
  static constexpr int64_t ofHalves[][4] = {{128, 256, 4, 1}, {128, 192, 5, 1}, {128, 128, 6, 1}, {128, 96, 7, 1},
                                            {64, 192, 6, 1},  {64, 128, 4, 2},  {64, 128, 8, 1},  {64, 96, 5, 2},
                                            {64, 96, 8, 1},   {64, 64, 6, 2},   {64, 64, 8, 1}};
  static constexpr int64_t ofFloats[][4] = {{128, 128, 4, 1}, {128, 96, 5, 1}, {128, 64, 6, 1}, {64, 128, 5, 1},
                                            {64, 96, 6, 1},   {64, 64, 8, 1},  {64, 32, 12, 1}};
  using Shapes = ArrayRef<int64_t[4]>;
  std::optional<WgmmaTile> best;
  double least = otherCycles;
  for (auto [m, n, stages, together] : kind == MmaKind::SplitF32 ? Shapes(ofFloats) : Shapes(ofHalves))
    for (int64_t splits : {1, 2, 3, 4, 6, 8}) {
      WgmmaTile tile{.m = m, .n = n, .stages = stages, .together = together, .kind = kind, .splits = splits};
      std::optional<WgmmaOperand> lhs = analyzeBoxes(op, false, tile), rhs = analyzeBoxes(op, true, tile);
      if (!lhs || !rhs || !fits(op, tile))
        break;
      if (double cycles = estimate(op, tile, *lhs, *rhs); cycles < least) {
        least = cycles;
        best = tile;
      }
    }
  return best;
}
