//===- PackedProduct.cpp - few rows times packed weights ------------------===//
//
//   result[m, n] = epilogue(sum over k of lhs(m, k) * rhs(k, n)),  up to four rows m, rhs numbers of 2, 4 or 8 bits
//
// Such a product takes the time to read the weights, if nothing else costs more: converting a number must not take more
// than a few instructions, and reading lhs, which has eight or sixteen times the bytes, must be shared.
//
// Weights lie along k, a column behind the other. A block has some columns and all of k; a thread takes the word of
// each of its columns at one place of k, so that a warp reads whole lines, and what it reads of lhs serves all of them.
//
// PackedRhs says how a number becomes an f32. Scales are the same for a word; its sum is multiplied by them, unless
// what they make is rounded.
//
// Weights are asked for before the launch in front has ended, since nothing writes to them. Sums are added up across a
// warp by exchanges and across warps through shared memory: the order follows from the shape alone.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/PackedProduct.h"
#include "codegen/common/BodyEmitter.h"
#include "codegen/gpu/MmaEpilogue.h"
#include "codegen/gpu/PackedRhs.h"
#include "codegen/gpu/WeightOperands.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t mostRows = 4;
static constexpr int64_t fewestColumns = 64;        // that pay
static constexpr int64_t columnsOfBlock[] = {8, 4}; // more share what is read of lhs
static constexpr int64_t enoughBlocks = 512;        // for all multiprocessors, several times
static constexpr int64_t fewestThreads = 64, mostThreads = 256;

DenseI64ArrayAttr PackedTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {rows, columns, threads});
}

PackedTile PackedTile::fromAttribute(DictionaryAttr config) {
  ArrayRef<int64_t> values = config.getAs<DenseI64ArrayAttr>("packed").asArrayRef();
  return {values[0], values[1], values[2]};
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

static int64_t countOf(loop::ContractionOp op, ArrayRef<Expr> extents) {
  return product(op.getContext(), extents).asConstant().value_or(0);
}

static int64_t countWords(loop::ContractionOp op, const PackedRhs &rhs) {
  return countOf(op, ContractionDims(op).k()) / (rhs.parts() * PackedRhs::wordBytes);
}

static std::optional<PackedTile> chooseTile(loop::ContractionOp op, const PackedRhs &rhs) {
  ContractionDims dims(op);
  int64_t rows = countOf(op, dims.m()), columns = countOf(op, dims.n()), words = countWords(op, rhs);
  if (countOf(op, dims.batch()) != 1 || rows < 1 || rows > mostRows || columns < fewestColumns ||
      words < fewestThreads / 2 || !op.getEpilogue().getArgument(0).getType().isF32())
    return std::nullopt;
  PackedTile tile{.rows = rows, .columns = columnsOfBlock[1], .threads = fewestThreads};
  if (columns / columnsOfBlock[0] >= enoughBlocks)
    tile.columns = columnsOfBlock[0];
  while (tile.threads < mostThreads && tile.threads < words)
    tile.threads *= 2;
  return tile;
}

// All that rhs reads is a weight.
static bool readsWeights(loop::KernelOp kernel, loop::ContractionOp op) {
  return llvm::all_of(op.getRhs().front().getOps<loop::LoadOp>(), [&](loop::LoadOp load) {
    auto argument = dyn_cast<BlockArgument>(load.getBuffer());
    return argument && isWeight(kernel, argument.getArgNumber());
  });
}

bool gpu::planPacked(loop::KernelOp kernel, loop::ContractionOp op) {
  std::optional<PackedRhs> rhs = matchPackedRhs(op);
  std::optional<PackedTile> tile = rhs ? chooseTile(op, *rhs) : std::nullopt;
  if (!tile)
    return false;
  MLIRContext *context = kernel.getContext();
  setPlan(kernel, {.layout = "packed",
                   .name = "packed",
                   .tile = tile->toAttribute(context),
                   .threads = tile->threads,
                   .blocks = product(context, ContractionDims(op).n()).ceilDiv(tile->columns),
                   .weights = readsWeights(kernel, op)});
  return true;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {

class PackedEmitter {
public:
  PackedEmitter(GpuEmitter &e, loop::ContractionOp op);
  void emit();

private:
  using Values = SmallVector<Value>;
  /// What a thread reads of a column.
  struct Word {
    codegen::BodyEmitter body; // in which the shared ops are
    Value bits;
  };
  /// Its words of all columns at one place of k.
  struct Words {
    EmissionPoint point; // of the first number
    Value exists;        // null: for certain
    std::vector<Word> columns;
  };

  Value f32(double value) { return e.invariants.constant(b.getF32FloatAttr(float(value))); }
  EmissionPoint numberAt(const EmissionPoint &point, int64_t byte, int64_t part);
  Words request(Value turn);
  int64_t numbers() const { return PackedRhs::wordBytes * rhs.parts(); } // of a word
  bool hasFactor() const { return rhs.factor && !rhs.roundedTo(); }      // which sums are multiplied by
  bool findLhsVectors() const;
  Values loadLhs(const EmissionPoint &at);
  Values computeLhs(const EmissionPoint &at);
  Values multiply(Words &words, Values sums);
  Values addUpWarp(Values sums);
  void finish(ValueRange sums);

  GpuEmitter &e;
  OpBuilder &b;
  loop::ContractionOp op;
  const ContractionDims dims;
  const PackedTile tile;
  const PackedRhs rhs;
  int64_t words;
  Value thread, firstColumn;
  Values rowSizes, columnSizes;
  bool hasLhsVectors;
};

} // namespace

PackedEmitter::PackedEmitter(GpuEmitter &e, loop::ContractionOp op)
    : e(e), b(e.builder), op(op), dims(op), tile(PackedTile::fromAttribute(e.kernel.getConfigAttr())),
      rhs(*matchPackedRhs(op)), words(countWords(op, rhs)) {
  e.setDomain(dims.domain);
  thread = e.getRegister("tid.x");
  firstColumn = e.invariants.mul(e.getRegister("ctaid.x"), e.constant(tile.columns));
  for (Expr extent : dims.m())
    rowSizes.push_back(e.emitExpr(extent, {}));
  for (Expr extent : dims.n())
    columnSizes.push_back(e.emitExpr(extent, {}));
  hasLhsVectors = findLhsVectors();
}

EmissionPoint PackedEmitter::numberAt(const EmissionPoint &point, int64_t byte, int64_t part) {
  EmissionPoint at = point;
  at.dims[size_t(rhs.byte)] = e.invariants.add(at.dims[size_t(rhs.byte)], e.constant(byte));
  if (rhs.part >= 0)
    at.dims[size_t(rhs.part)] = e.constant(part);
  return at;
}

/// Asks for the thread's words of a turn. Columns and words that do not exist are the last ones again.
PackedEmitter::Words PackedEmitter::request(Value turn) {
  Words all;
  Value number = e.invariants.add(e.invariants.mul(turn, e.constant(tile.threads)), thread);
  if (words % tile.threads != 0) {
    all.exists = e.invariants.compare(arith::CmpIPredicate::slt, number, e.constant(words));
    number = e.invariants.min(number, e.constant(words - 1));
  }
  Values sizes;
  for (int64_t dim = dims.firstK; dim <= dims.lastK(); ++dim) {
    int64_t extent = dim == rhs.part ? 1 : *dims.domain[size_t(dim)].asConstant();
    sizes.push_back(e.constant(dim == rhs.byte ? extent / PackedRhs::wordBytes : extent));
  }
  all.point.dims.assign(dims.domain.size(), e.constant(0));
  llvm::copy(e.createDigits(number, sizes), all.point.dims.begin() + dims.firstK);
  Value &byte = all.point.dims[size_t(rhs.byte)];
  byte = e.invariants.mul(byte, e.constant(PackedRhs::wordBytes));
  loop::LoadOp load = rhs.load;
  Value last = e.invariants.sub(e.emitExpr(product(op.getContext(), dims.n()), {}), e.constant(1));
  for (int64_t i = 0; i < tile.columns; ++i) {
    EmissionPoint at = all.point;
    Value column = e.invariants.min(e.invariants.add(firstColumn, e.constant(i)), last);
    llvm::copy(e.createDigits(column, columnSizes), at.dims.begin() + dims.firstN);
    Word &word = all.columns.emplace_back(Word{codegen::BodyEmitter(e, at), {}});
    Value index = e.emitExpr(Expr(cast<ExprAttr>(load.getIndices()[0])), at);
    Value address = e.getAddress(e.getPointer(load.getBuffer()), load.getType(), index);
    word.bits = LLVM::LoadOp::create(b, e.loc, b.getI32Type(), address, PackedRhs::wordBytes);
    word.body.emitOps(rhs.shared);
  }
  return all;
}

/// Lhs is a load whose elements lie as the numbers of a word do, and where 16 bytes may be read at once.
bool PackedEmitter::findLhsVectors() const {
  MmaSource source;
  loop::ContractionOp contraction = op;
  if (!matchLoad(contraction.getLhs(), source) || source.mask)
    return false;
  Expr index(cast<ExprAttr>(source.load.getIndices()[0]));
  auto steps = [&](int64_t dim, int64_t by) {
    Expr stride = loop::strideOf(index, dim);
    return stride && stride.isConstant(by);
  };
  SymbolRanges ranges;
  for (auto [dim, extent] : llvm::enumerate(dims.domain)) {
    ExprRange range{.min = 0, .max = std::max<int64_t>(extent.asConstant().value_or(1) - 1, 0)};
    if (int64_t(dim) == rhs.part)
      range.max = 0;
    if (int64_t(dim) == rhs.byte)
      range.divisor = PackedRhs::wordBytes;
    ranges[dimName(dim)] = range;
  }
  return steps(rhs.byte, rhs.parts()) && (rhs.part < 0 || steps(rhs.part, 1)) &&
         index.range(ranges).divisor % numbers() == 0;
}

PackedEmitter::Values PackedEmitter::loadLhs(const EmissionPoint &at) {
  MmaSource source;
  bool isLoad = matchLoad(op.getLhs(), source);
  assert(isLoad && "findLhsVectors has found a load");
  (void)isLoad;
  loop::LoadOp load = source.load;
  int64_t lanes = std::min(numbers(), 16 / loop::getElementBytes(load.getType()));
  Value first = e.emitExpr(Expr(cast<ExprAttr>(load.getIndices()[0])), at);
  Values values;
  for (int64_t number = 0; number < numbers(); number += lanes) {
    Value index = e.invariants.add(first, e.constant(number));
    Value address = e.getAddress(e.getPointer(load.getBuffer()), load.getType(), index);
    auto type = VectorType::get({lanes}, e.getMemoryType(load.getType()));
    Value vector =
        LLVM::LoadOp::create(b, e.loc, type, address, unsigned(lanes * loop::getElementBytes(load.getType())));
    for (int64_t lane = 0; lane < lanes; ++lane)
      values.push_back(
          e.fromMemory(LLVM::ExtractElementOp::create(b, e.loc, vector, e.constant(lane)), load.getType()));
  }
  return values;
}

PackedEmitter::Values PackedEmitter::computeLhs(const EmissionPoint &at) {
  Values values;
  for (int64_t byte = 0; byte < PackedRhs::wordBytes; ++byte)
    for (int64_t part = 0; part < rhs.parts(); ++part)
      values.push_back(e.emitRegion(op.getLhs(), numberAt(at, byte, part)));
  return values;
}

PackedEmitter::Values PackedEmitter::multiply(Words &all, Values sums) {
  Value zero = f32(0);
  auto widen = [&](Value value) -> Value {
    return value.getType().isF32() ? value : arith::ExtFOp::create(b, e.loc, b.getF32Type(), value).getResult();
  };
  SmallVector<Values> left; // by row and number
  for (int64_t m = 0; m < tile.rows; ++m) {
    EmissionPoint at = all.point;
    llvm::copy(e.createDigits(e.constant(m), rowSizes), at.dims.begin() + dims.firstM);
    Values &row = left.emplace_back(hasLhsVectors ? loadLhs(at) : computeLhs(at));
    for (Value &value : row) {
      value = widen(value);
      if (all.exists)
        value = arith::SelectOp::create(b, e.loc, all.exists, value, zero);
    }
  }
  for (auto [column, word] : llvm::enumerate(all.columns)) {
    Values own(size_t(tile.rows), zero);
    for (int64_t number = 0; number < numbers(); ++number) {
      Value real = createReal(e, rhs, word.bits, number * rhs.bits);
      Value element = createElement(e, rhs, word.body, real, /*isFinal=*/!hasFactor());
      for (int64_t m = 0; m < tile.rows; ++m)
        own[size_t(m)] = math::FmaOp::create(b, e.loc, left[size_t(m)][size_t(number)], element, own[size_t(m)]);
    }
    for (int64_t m = 0; m < tile.rows; ++m) {
      Value &sum = sums[size_t(m * tile.columns) + column];
      Value more = own[size_t(m)];
      sum = hasFactor() ? math::FmaOp::create(b, e.loc, more, word.body.lookup(rhs.factor), sum).getResult()
                        : arith::AddFOp::create(b, e.loc, sum, more).getResult();
    }
  }
  return sums;
}

PackedEmitter::Values PackedEmitter::addUpWarp(Values sums) {
  for (int64_t distance = warpSize / 2; distance > 0; distance /= 2)
    for (auto [sum, other] : llvm::zip_equal(sums, e.createShuffle(sums, distance)))
      sum = arith::AddFOp::create(b, e.loc, sum, other);
  return sums;
}

/// Over the warps; [warp][row][column] in shared memory.
void PackedEmitter::finish(ValueRange sums) {
  Type type = b.getF32Type();
  Value memory = e.sharedMemory(tile.warps() * tile.sums() * 4);
  Value warp = e.invariants.floorDiv(thread, e.constant(warpSize), true);
  Value lane = e.invariants.mod(thread, e.constant(warpSize), true);
  e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, lane, e.constant(0)), {}, [&] {
    for (auto [i, sum] : llvm::enumerate(sums)) {
      Value index = e.invariants.add(e.invariants.mul(warp, e.constant(tile.sums())), e.constant(int64_t(i)));
      e.createStore(sum, e.getAddress(memory, type, index));
    }
    return Values();
  });
  e.createBlockBarrier();
  EmissionPoint batch;
  batch.dims.assign(size_t(dims.firstM), e.constant(0));
  MmaResults(e, op, dims, batch).emitWarpSums({memory, firstColumn, thread, tile.threads, tile.rows, tile.columns});
}

void PackedEmitter::emit() {
  bool isWeight = e.kernel.getConfigAttr().contains("weights");
  if (!isWeight)
    e.createLaunchOrder();
  Words first = request(e.constant(0));
  if (isWeight)
    e.createLaunchOrder();
  Values sums = multiply(first, Values(size_t(tile.sums()), f32(0)));
  Value turns = e.constant(llvm::divideCeil(words, tile.threads));
  sums = e.createLoop(e.constant(1), turns, 1, sums, [&](Value turn, ValueRange in) {
    Words next = request(turn);
    return multiply(next, Values(in));
  });
  finish(addUpWarp(sums));
}

void gpu::emitPacked(GpuEmitter &e, loop::ContractionOp op) { PackedEmitter(e, op).emit(); }
