//===- MmaPlan.cpp - contractions on tensor cores: the plan ---------------===//
//
// A tile and the number of blocks that share its k (`splits`) are chosen by an estimate in cycles of a multiprocessor:
//
//   step       the larger of products on the tensor cores and bytes of both operands from L2; and what warps do to get
//              fragments out of shared memory (and to divide them), which larger parts for a warp make less of
//              of packed weights also the conversion of their numbers
//   block      steps, plus what a block pays once: the first loads, the epilogue
//   launch     the blocks of the busiest multiprocessor, plus the sum over splits
//
// Constants are of a recent device; what matters is their order of magnitude: large tiles where there are many, small
// ones and split sums where multiprocessors would be idle. Extents that are symbols count as one, but a side that is
// made of symbols alone as `symbolicRows`; the number of splits is an expression then, so that it follows the sizes.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/MmaPlan.h"
#include "codegen/gpu/DeviceShape.h"
#include "codegen/gpu/GpuTuning.h"
#include "codegen/gpu/MmaPacked.h"
#include "codegen/gpu/WeightOperands.h"
#include "codegen/gpu/WgmmaPlan.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"
#include "runtime/include/ptc/descriptor.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t symbolicRows = 128;
static constexpr int64_t fewestStepsOfSplit = 4; // fewer do not pay for a sum
static constexpr int64_t mostSymbolicSplits = 8;
static constexpr int64_t fewestStages = 3, mostStages = 5;

DenseI64ArrayAttr MmaTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {m, n, warpsM, warpsN, stages, int64_t(kind), rhsBits});
}

MmaTile MmaTile::fromAttribute(DictionaryAttr config) {
  ArrayRef<int64_t> values = config.getAs<DenseI64ArrayAttr>("mma").asArrayRef();
  return {values[0], values[1], values[2], values[3], values[4], MmaKind(values[5]), values[6]};
}

Expr gpu::getMmaSplits(loop::KernelOp kernel) { return Expr(kernel.getConfigAttr().getAs<ExprAttr>("splits")); }

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Type gpu::getSumType(MLIRContext *context, MmaKind kind) {
  return multipliesBytes(kind) ? Type(IntegerType::get(context, 32)) : Float32Type::get(context);
}

static Operation *getWidening(Region &region) {
  Operation *op = cast<loop::YieldOp>(region.front().getTerminator()).getValue().getDefiningOp();
  return isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op) ? op : nullptr;
}

Value gpu::getNarrowValue(Region &region) {
  Operation *widening = getWidening(region);
  return widening ? widening->getOperand(0) : cast<loop::YieldOp>(region.front().getTerminator()).getValue();
}

// Of what is not there: +0, or an integer that fits a byte.
static std::optional<int64_t> findPadding(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  if (auto number = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr())
    return number.getValue().isPosZero() ? std::optional<int64_t>(0) : std::nullopt;
  auto number = constant ? dyn_cast<IntegerAttr>(constant.getValue()) : IntegerAttr();
  if (!number || !(value.getType().isInteger(8) || number.getValue().isZero()))
    return std::nullopt;
  return number.getValue().getSExtValue();
}

// The type that all values of the region fit in.
static Type narrowType(Region &region) {
  Value value = getNarrowValue(region);
  auto mask = value.getDefiningOp<loop::MaskedOp>();
  return mask && findPadding(mask.getOther()) ? getNarrowValue(mask.getBody()).getType() : value.getType();
}

// Whether the region's bytes are signed numbers, if they are bytes and nothing else.
static std::optional<bool> findSign(Region &region) {
  Operation *widening = getWidening(region);
  if (!widening)
    if (auto mask = getNarrowValue(region).getDefiningOp<loop::MaskedOp>())
      widening = getWidening(mask.getBody());
  if (!widening || !narrowType(region).isInteger(8))
    return std::nullopt;
  return isa<arith::ExtSIOp>(widening);
}

static std::optional<MmaKind> findByteKind(loop::ContractionOp op) {
  std::optional<bool> lhs = findSign(op.getLhs()), rhs = findSign(op.getRhs());
  if (!lhs || !rhs)
    return std::nullopt;
  return *lhs ? (*rhs ? MmaKind::S8S8 : MmaKind::S8U8) : (*rhs ? MmaKind::U8S8 : MmaKind::U8U8);
}

std::optional<MmaKind> gpu::findMmaKind(loop::ContractionOp op) {
  Type lhs = narrowType(op.getLhs()), rhs = narrowType(op.getRhs()), sum = op.getEpilogue().getArgument(0).getType();
  if (sum.isInteger(32))
    return findByteKind(op);
  if (!sum.isF32())
    return std::nullopt;
  if (lhs.isF16() && rhs.isF16())
    return MmaKind::F16;
  if (lhs.isBF16() && rhs.isBF16())
    return MmaKind::BF16;
  auto widens = [](Type type) { return type.isF32() || type.isF16() || type.isBF16(); };
  return widens(lhs) && widens(rhs) ? std::optional(MmaKind::SplitF32) : std::nullopt;
}

bool gpu::matchLoad(Region &region, MmaSource &source) {
  Value value = getNarrowValue(region);
  if (auto mask = value.getDefiningOp<loop::MaskedOp>()) {
    std::optional<int64_t> padding = findPadding(mask.getOther());
    if (!mask.getOperands_().empty() || !padding)
      return false;
    source.mask = mask;
    source.padding = *padding;
    value = getNarrowValue(mask.getBody());
  }
  source.load = value.getDefiningOp<loop::LoadOp>();
  return source.load && source.load.getIndexOperands().empty();
}

bool gpu::isVectorAlong(const ContractionDims &dims, ArrayRef<int64_t> along, const MmaSource &source, int64_t lanes) {
  loop::LoadOp load = source.load;
  Expr index(cast<ExprAttr>(load.getIndices()[0]));
  SymbolRanges ranges;
  for (auto [dim, extent] : llvm::enumerate(dims.domain)) {
    ExprRange &range = ranges[dimName(dim)];
    range.min = 0;
    if (std::optional<int64_t> known = extent.asConstant())
      range.max = std::max<int64_t>(*known - 1, 0);
  }
  int64_t together = 1; // along the dims so far
  for (int64_t dim : llvm::reverse(along)) {
    std::string name = dimName(dim);
    std::optional<int64_t> extent = dims.domain[size_t(dim)].asConstant();
    if (extent && *extent == 1)
      continue;
    Expr stride = loop::strideOf(index, dim);
    auto uses = [&](Attribute each) { return Expr(cast<ExprAttr>(each)).uses(name); };
    loop::MaskedOp mask = source.mask;
    if (!extent || !stride || !stride.isConstant(together) || (mask && llvm::any_of(mask.getConditions(), uses)))
      return false;
    int64_t left = lanes / together;
    if (*extent % left == 0) {
      ranges[name].divisor = left;
      return index.range(ranges).divisor % lanes == 0;
    }
    if (left % *extent != 0)
      return false;
    ranges[name].max = 0;
    together *= *extent;
  }
  return false;
}

MmaSource gpu::analyzeSource(loop::ContractionOp op, const ContractionDims &dims, bool isRhs, MmaKind kind) {
  Region &region = isRhs ? op.getRhs() : op.getLhs();
  int64_t from = isRhs ? dims.firstN : dims.firstM, to = isRhs ? dims.firstK : dims.firstN;
  SmallVector<int64_t> free = llvm::to_vector(llvm::seq(from, to));
  SmallVector<int64_t> k = llvm::to_vector(llvm::seq(dims.firstK, dims.lastK() + 1));
  int64_t elementBytes = getElementBytes(kind), lanes = MmaTile::vectorBytes / elementBytes;
  bool isBytes = multipliesBytes(kind);
  MmaSource source;
  source.isReadAlongK = readsAlongK(region, free.empty() ? -1 : free.back(), dims.lastK());
  source.isAlongK = source.isReadAlongK || isBytes;
  bool isCopied = matchLoad(region, source) && loop::getElementBytes(source.load.getType()) == elementBytes &&
                  isa<FloatType>(source.load.getType()) != isBytes;
  if (!isCopied)
    return {.isAlongK = source.isAlongK, .isReadAlongK = source.isReadAlongK};
  bool alongK = isVectorAlong(dims, k, source, lanes);
  if (alongK || (!isBytes && isVectorAlong(dims, free, source, lanes))) {
    source.copy = MmaSource::Copy::Vectors;
    source.isAlongK = alongK;
  } else if (elementBytes == 4 || (isBytes && isVectorAlong(dims, k, source, 4))) {
    source.copy = MmaSource::Copy::Words;
  } else if (isBytes && !source.mask && isVectorAlong(dims, free, source, 4)) {
    source.copy = MmaSource::Copy::Turned;
  }
  return source;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

namespace {
struct Work {
  int64_t batch, m, n, k;
};
} // namespace

static int64_t countTiles(const Work &work, const MmaTile &tile) {
  return work.batch * llvm::divideCeil(work.m, tile.m) * llvm::divideCeil(work.n, tile.n);
}

static double estimate(const Work &work, const MmaTile &tile, int64_t splits) {
  bool isSplit = tile.kind == MmaKind::SplitF32;
  double rate = isSplit ? 512 / 2.3 : multipliesBytes(tile.kind) ? 2520 : 1260; // a cycle
  double products = double(tile.m * tile.n * tile.k()) / rate;
  double fromL2 = double(tile.stageBytes()) / 48;
  double fragments = double(tile.warpsM * tile.warpsN * (tile.warpM() + (tile.rhsBits ? 0 : tile.warpN())));
  double conversions = tile.rhsBits ? double(tile.warpsM * tile.n * tile.k()) / 128 * (isSplit ? 4 : 3) : 0;
  double step = std::max(products, fromL2) + fragments * (isSplit ? 1.25 : 0.5) + conversions;
  double steps = double(llvm::divideCeil(llvm::divideCeil(work.k, tile.k()), splits));
  double blocks = double(llvm::divideCeil(countTiles(work, tile) * splits, multiprocessors));
  double once = 2000 + double(tile.m * tile.n) / double(tile.threads()) * 8;
  double sum = splits > 1 ? 3000 + double(splits + 1) * double(tile.m * tile.n) * 4 / 24 : 0;
  return blocks * (steps * step + once / 2) + steps * 100 + once + sum;
}

static SmallVector<MmaCandidate> listTiles(const Work &work, MmaKind kind, int64_t rhsBits) {
  // Of equal ones the first: wide tiles were faster.
  static constexpr int64_t shapes[][4] = {{128, 128, 2, 4}, {64, 128, 2, 4}, {128, 64, 4, 2}, {64, 64, 2, 2},
                                          {32, 64, 2, 2},   {64, 32, 2, 2},  {32, 32, 2, 2},  {16, 64, 1, 4}};
  // Each row of warps converts all numbers.
  static constexpr int64_t packedShapes[][4] = {{128, 128, 2, 4}, {128, 128, 1, 8}, {64, 128, 1, 4}, {64, 64, 1, 4},
                                                {32, 128, 1, 4},  {32, 64, 1, 4},   {16, 128, 1, 4}, {16, 64, 1, 4}};
  // Measured times of a network's layers were longer than the estimate by so much, those of warpgroups were not.
  const double measured = kind == MmaKind::SplitF32 ? 1.7 : 1.25;
  SmallVector<MmaCandidate> found;
  for (auto [m, n, warpsM, warpsN] : rhsBits ? packedShapes : shapes) {
    MmaTile tile{
        .m = m, .n = n, .warpsM = warpsM, .warpsN = warpsN, .stages = fewestStages, .kind = kind, .rhsBits = rhsBits};
    while (tile.stages < mostStages && (tile.stages + 1) * tile.stageBytes() <= sharedLimit / 2)
      ++tile.stages;
    int64_t steps = llvm::divideCeil(work.k, tile.k());
    for (int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16}) {
      bool fits = countTiles(work, tile) <= PTC_RT_CUDA_COUNTERS && steps / splits >= fewestStepsOfSplit;
      if (splits > 1 && !fits)
        break;
      found.push_back({tile, splits, estimate(work, tile, splits) * measured});
    }
  }
  return found;
}

static MmaCandidate chooseTile(loop::ContractionOp op, MmaKind kind) {
  using Candidate = MmaCandidate;
  SmallVector<Candidate> candidates = listMmaTiles(op, kind);
  if (loop::getTuned(op, tuned::warpgroups).value_or(0) <= 0) {
    keepNearest(candidates, op, tuned::tileRows, [](const Candidate &each) { return each.tile.m; });
    keepNearest(candidates, op, tuned::tileColumns, [](const Candidate &each) { return each.tile.n; });
    keepNearest(candidates, op, tuned::splits, [](const Candidate &each) { return each.splits; });
  }
  Candidate best =
      *llvm::min_element(candidates, [](const Candidate &a, const Candidate &b) { return a.cycles < b.cycles; });
  if (std::optional<int64_t> stages = loop::getTuned(op, tuned::stages))
    best.tile.stages = std::clamp(*stages, fewestStages, std::min(mostStages, sharedLimit / best.tile.stageBytes()));
  return best;
}

// What is symbolic counts as one, the least there can be (a batch, mostly).
static int64_t countOf(MLIRContext *context, ArrayRef<Expr> extents, int64_t ifSymbolic) {
  Expr all = product(context, extents);
  Expr least = all.substitute([&](StringRef) { return Expr::constant(context, 1); });
  int64_t count = std::max<int64_t>(least.asConstant().value_or(1), 1);
  return count == 1 && !all.isConstant() ? ifSymbolic : count;
}

SmallVector<MmaCandidate> gpu::listMmaTiles(loop::ContractionOp op, MmaKind kind) {
  MLIRContext *context = op.getContext();
  ContractionDims dims(op);
  std::optional<PackedRhs> packed = matchMmaPacked(op, kind);
  return listTiles({countOf(context, dims.batch(), 1), countOf(context, dims.m(), symbolicRows),
                    countOf(context, dims.n(), symbolicRows), countOf(context, dims.k(), symbolicRows)},
                   kind, packed ? packed->bits : 0);
}

static Expr chooseSplits(MLIRContext *context, const ContractionDims &dims, const MmaCandidate &choice, Expr tiles) {
  if (tiles.isConstant())
    return Expr::constant(context, choice.splits);
  std::optional<int64_t> k = product(context, dims.k()).asConstant();
  int64_t most = k ? llvm::divideCeil(*k, choice.tile.k()) / fewestStepsOfSplit : 1;
  most = std::min(most, mostSymbolicSplits);
  if (most <= 1)
    return Expr::constant(context, 1);
  Expr enough = Expr::constant(context, multiprocessors).floorDiv(tiles);
  return Expr::max(Expr::min(enough, Expr::constant(context, most)), Expr::constant(context, 1));
}

void gpu::planMma(loop::KernelOp kernel, loop::ContractionOp op, MmaKind kind) {
  MLIRContext *context = kernel.getContext();
  ContractionDims dims(op);
  MmaCandidate choice = chooseTile(op, kind);
  const MmaTile &tile = choice.tile;
  Expr tiles = product(context, dims.batch()) * product(context, dims.m()).ceilDiv(tile.m) *
               product(context, dims.n()).ceilDiv(tile.n);
  Expr splits = chooseSplits(context, dims, choice, tiles);
  NamedAttrList attributes(GpuConfig{.threads = tile.threads()}.toAttribute(context));
  attributes.set("layout", StringAttr::get(context, "mma"));
  attributes.set("mma", tile.toAttribute(context));
  attributes.set("splits", ExprAttr(splits));
  attributes.set("shared", IntegerAttr::get(IntegerType::get(context, 64), tile.sharedBytes()));
  Expr blocks = tiles * splits;
  bool isSplit = !splits.isConstant(1);
  Expr scratch = isSplit ? blocks * (tile.m * tile.n * 4) : Expr::constant(context, 0);
  if (std::optional<WgmmaTile> wide = planWgmma(op, kind, choice.cycles)) {
    attributes.set("wgmma", wide->toAttribute(context));
    scratch = Expr::max(scratch, Expr::constant(context, countWgmmaScratch(op, *wide)));
    isSplit |= wide->splits > 1 && !wide->isCluster();
    if (isWeight(kernel, analyzeOperands(op, *wide)->rhs.map.buffer))
      attributes.set("weights", UnitAttr::get(context));
  }
  if (isSplit)
    attributes.set("counters", UnitAttr::get(context));
  kernel.setIterationsAttr(blocks);
  kernel.setGrainAttr(Expr::constant(context, 1));
  kernel.setScratchAttr(scratch);
  kernel.setConfigAttr(attributes.getDictionary(context));
}
