//===- StreamedProduct.cpp - few rows times a matrix ----------------------===//
//
//   result[m, n] = epilogue(sum over k of lhs(m, k) * rhs(k, n)),  up to four rows m
//
// What such a product takes is the time to read the matrix once; tensor cores would only be in the way of that. Where
// rows of the matrix lie in memory one after the other, a block has a few columns of all of them: 32 to 512 bytes of a
// row, so that whole sectors are read, and as narrow as it takes for every multiprocessor to have a block. Threads have
// up to 16 bytes each, ask for a dozen rows at once, and add products in f32; then their sums are added up, across a
// warp by exchanges and across warps through shared memory, in an order that follows from the shape alone.
//
// A matrix that is a weight is asked for before the launch in front has ended (GpuEmitter::createLaunchOrder): no
// kernel writes to it. That hides most of the latency where the product is short, as in a decoder.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/StreamedProduct.h"
#include "codegen/gpu/GpuTuning.h"
#include "codegen/gpu/LaneAnalysis.h"
#include "codegen/gpu/MmaEpilogue.h"
#include "codegen/gpu/WeightOperands.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t mostRows = 4, mostNarrowRows = 2; // of elements of 16 bits tensor cores are as good from there
static constexpr int64_t enoughBlocks = 96;                // of 132 multiprocessors, order of magnitude
static constexpr int64_t vectorBytes = 16, sectorBytes = 32; // of a thread, and what memory is read in
static constexpr int64_t fewestDepth = 64;                   // of k
static constexpr int64_t linesTogether = 12;                 // that a thread asks for at once
static constexpr int64_t fewestThreads = 128, mostThreads = 512;

DenseI64ArrayAttr StreamedTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {rows, across, threads, lanes});
}

StreamedTile StreamedTile::fromAttribute(DictionaryAttr config) {
  ArrayRef<int64_t> values = config.getAs<DenseI64ArrayAttr>("streamed").asArrayRef();
  return {values[0], values[1], values[2], values[3]};
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

static std::optional<StreamedTile> chooseTile(loop::ContractionOp op) {
  ContractionDims dims(op);
  std::optional<MmaKind> kind = findMmaKind(op);
  auto count = [&](ArrayRef<Expr> extents) { return product(op.getContext(), extents).asConstant().value_or(0); };
  if (!kind || multipliesBytes(*kind) || count(dims.batch()) != 1 || dims.m().size() > 1 || dims.n().size() != 1 ||
      dims.k().size() != 1)
    return std::nullopt;
  int64_t rows = count(dims.m()), columns = count(dims.n()), depth = count(dims.k());
  auto load = getNarrowValue(op.getRhs()).getDefiningOp<loop::LoadOp>();
  if (!load || load->getBlock() != &op.getRhs().front() || !load.getIndexOperands().empty())
    return std::nullopt;
  int64_t bytes = loop::getElementBytes(load.getType()), lanes = vectorBytes / bytes;
  LaneAnalysis analysis(op, dims.firstN);
  Expr index(cast<ExprAttr>(load.getIndices()[0]));
  if (rows < 1 || rows > (bytes == 4 ? mostRows : mostNarrowRows) || depth < fewestDepth ||
      !analysis.isContiguous(index, {}))
    return std::nullopt;
  while (lanes > 1 && (columns % lanes != 0 || !analysis.isVector(index, {}, lanes)))
    lanes /= 2;
  StreamedTile tile{.rows = rows, .across = warpSize, .threads = fewestThreads, .lanes = lanes};
  while (tile.columns() * bytes > sectorBytes && llvm::divideCeil(columns, tile.columns()) < enoughBlocks)
    tile.across /= 2;
  tile.across = tunedPower(op, tuned::across, 1, warpSize, tile.across);
  while (tile.threads < mostThreads && tile.depth() * linesTogether < depth)
    tile.threads *= 2;
  tile.threads = tunedPower(op, tuned::streamThreads, fewestThreads, mostThreads, tile.threads);
  return tile;
}

bool gpu::planStreamed(loop::KernelOp kernel, loop::ContractionOp op) {
  std::optional<StreamedTile> tile = chooseTile(op);
  if (!tile || loop::getTuned(op, tuned::streamed) == 0)
    return false;
  MLIRContext *context = kernel.getContext();
  auto load = getNarrowValue(op.getRhs()).getDefiningOp<loop::LoadOp>();
  auto argument = dyn_cast<BlockArgument>(load.getBuffer());
  setPlan(kernel, {.layout = "streamed",
                   .name = "streamed",
                   .tile = tile->toAttribute(context),
                   .threads = tile->threads,
                   .blocks = ContractionDims(op).n()[0].ceilDiv(tile->columns()),
                   .weights = argument && isWeight(kernel, argument.getArgNumber())});
  return true;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {

class StreamedEmitter {
public:
  StreamedEmitter(GpuEmitter &e, loop::ContractionOp op);
  void emit();

private:
  using Values = SmallVector<Value>;
  /// Neighbours in a row of the matrix. `exists`: null if it does for certain.
  struct Line {
    LaneEmitter elements;
    Value k, exists;
  };

  std::vector<Line> request(Value firstTurn, int64_t turns);
  Values multiply(std::vector<Line> &lines, Values sums);
  Values addUpWarp(Values sums);
  void finish(ValueRange sums);

  GpuEmitter &e;
  OpBuilder &b;
  loop::ContractionOp op;
  const ContractionDims dims;
  const StreamedTile tile;
  EmissionPoint point;
  int64_t depth, turns;
  bool isWhole;                           // the last turn is
  Value thread, firstColumn, column, row; // column of the block, of the thread; row of a turn
};

} // namespace

StreamedEmitter::StreamedEmitter(GpuEmitter &e, loop::ContractionOp op)
    : e(e), b(e.builder), op(op), dims(op), tile(StreamedTile::fromAttribute(e.kernel.getConfigAttr())),
      depth(*dims.k()[0].asConstant()), turns(llvm::divideCeil(depth, tile.depth())),
      isWhole(depth % tile.depth() == 0) {
  e.setDomain(dims.domain);
  point.dims.assign(dims.domain.size(), e.constant(0));
  thread = e.getRegister("tid.x");
  row = e.invariants.floorDiv(thread, e.constant(tile.across), true);
  Value lane = e.invariants.mod(thread, e.constant(tile.across), true);
  firstColumn = e.invariants.mul(e.getRegister("ctaid.x"), e.constant(tile.columns()));
  column = e.invariants.add(firstColumn, e.invariants.mul(lane, e.constant(tile.lanes)));
}

/// The thread's lines of some turns. Columns that do not exist are the last ones again, and so are rows.
std::vector<StreamedEmitter::Line> StreamedEmitter::request(Value firstTurn, int64_t count) {
  Block &body = op.getRhs().front();
  Operation *load = getNarrowValue(op.getRhs()).getDefiningOp();
  Value last = e.constant(*dims.n()[0].asConstant() - tile.lanes);
  std::vector<Line> lines;
  lines.reserve(size_t(count));
  for (int64_t i = 0; i < count; ++i) {
    Value turn = e.invariants.add(firstTurn, e.constant(i));
    Value k = e.invariants.add(e.invariants.mul(turn, e.constant(tile.depth())), row), exists;
    if (std::optional<int64_t> known = e.invariants.asConstant(turn); !isWhole && known && *known == turns - 1) {
      exists = e.invariants.compare(arith::CmpIPredicate::slt, k, e.constant(depth));
      k = e.invariants.min(k, e.constant(depth - 1));
    }
    EmissionPoint here = point;
    here.dims[size_t(dims.firstN)] = e.invariants.min(column, last);
    here.dims[size_t(dims.firstK)] = k;
    Line &line = lines.emplace_back(Line{LaneEmitter(e, op, here, dims.firstN, tile.lanes), k, exists});
    for (Operation &inner : body)
      if (inner.isBeforeInBlock(load) || &inner == load)
        line.elements.emitOps(&inner);
  }
  return lines;
}

StreamedEmitter::Values StreamedEmitter::multiply(std::vector<Line> &lines, Values sums) {
  Type f32 = b.getF32Type();
  Value zero = e.invariants.constant(b.getF32FloatAttr(0));
  Block &body = op.getRhs().front();
  Operation *load = getNarrowValue(op.getRhs()).getDefiningOp();
  Value yielded = cast<loop::YieldOp>(body.getTerminator()).getValue();
  auto widen = [&](Value value) -> Value {
    return value.getType() == f32 ? value : arith::ExtFOp::create(b, e.loc, f32, value).getResult();
  };
  auto unlessMissing = [&](const Line &line, Value value) -> Value {
    return line.exists ? arith::SelectOp::create(b, e.loc, line.exists, value, zero).getResult() : value;
  };
  SmallVector<Values> left; // by line and row
  for (const Line &line : lines) {
    Values &values = left.emplace_back();
    for (int64_t m = 0; m < tile.rows; ++m) {
      EmissionPoint here = point;
      if (!dims.m().empty())
        here.dims[size_t(dims.firstM)] = e.constant(m);
      here.dims[size_t(dims.firstK)] = line.k;
      values.push_back(unlessMissing(line, widen(e.emitRegion(op.getLhs(), here))));
    }
  }
  for (auto [line, values] : llvm::zip_equal(lines, left)) {
    for (Operation &inner : body)
      if (load->isBeforeInBlock(&inner) && !isa<loop::YieldOp>(inner))
        line.elements.emitOps(&inner);
    for (int64_t lane = 0; lane < tile.lanes; ++lane) {
      Value element = unlessMissing(line, widen(line.elements.getBody(size_t(lane)).lookup(yielded)));
      for (int64_t m = 0; m < tile.rows; ++m) {
        Value &sum = sums[size_t(m * tile.lanes + lane)];
        sum = math::FmaOp::create(b, e.loc, values[size_t(m)], element, sum);
      }
    }
  }
  return sums;
}

/// Over the rows of a warp.
StreamedEmitter::Values StreamedEmitter::addUpWarp(Values sums) {
  for (int64_t distance = warpSize / 2; distance >= tile.across; distance /= 2)
    for (auto [sum, other] : llvm::zip_equal(sums, e.createShuffle(sums, distance)))
      sum = arith::AddFOp::create(b, e.loc, sum, other);
  return sums;
}

/// Over the warps; [warp][row][column] in shared memory.
void StreamedEmitter::finish(ValueRange sums) {
  Type f32 = b.getF32Type();
  Value memory = e.sharedMemory(tile.sumBytes());
  Value warp = e.invariants.floorDiv(thread, e.constant(warpSize), true);
  Value lane = e.invariants.mod(thread, e.constant(warpSize), true);
  Value own = e.invariants.mul(warp, e.constant(tile.rows * tile.columns()));
  own = e.invariants.add(own, e.invariants.mul(lane, e.constant(tile.lanes)));
  e.createIf(e.invariants.compare(arith::CmpIPredicate::slt, lane, e.constant(tile.across)), {}, [&] {
    for (auto [i, sum] : llvm::enumerate(sums)) {
      int64_t m = int64_t(i) / tile.lanes, n = int64_t(i) % tile.lanes;
      Value index = e.invariants.add(own, e.constant(m * tile.columns() + n));
      e.createStore(sum, e.getAddress(memory, f32, index));
    }
    return Values();
  });
  e.createBlockBarrier();
  EmissionPoint batch;
  batch.dims.assign(point.dims.begin(), point.dims.begin() + dims.firstM);
  MmaResults(e, op, dims, batch).emitWarpSums({memory, firstColumn, thread, tile.threads, tile.rows, tile.columns()});
}

void StreamedEmitter::emit() {
  bool isWeight = e.kernel.getConfigAttr().contains("weights");
  if (!isWeight)
    e.createLaunchOrder();
  int64_t first = std::min(turns, linesTogether);
  std::vector<Line> lines = request(e.constant(0), first);
  if (isWeight)
    e.createLaunchOrder();
  Values sums(size_t(tile.rows * tile.lanes), e.invariants.constant(b.getF32FloatAttr(0)));
  sums = multiply(lines, sums);
  int64_t end = turns - (turns - first) % linesTogether; // of what comes in equal parts
  if (end == turns && !isWhole && end > first)
    end -= linesTogether;
  sums = e.createLoop(e.constant(first), e.constant(end), linesTogether, sums, [&](Value turn, ValueRange in) {
    std::vector<Line> next = request(turn, linesTogether);
    return multiply(next, Values(in));
  });
  if (end < turns) {
    lines = request(e.constant(end), turns - end);
    sums = multiply(lines, sums);
  }
  finish(addUpWarp(sums));
}

void gpu::emitStreamed(GpuEmitter &e, loop::ContractionOp op) { StreamedEmitter(e, op).emit(); }
