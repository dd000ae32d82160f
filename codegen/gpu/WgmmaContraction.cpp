//===- WgmmaContraction.cpp - contractions of warpgroups ------------------===//
//
//   result[b, m, n] = epilogue(sum over k of lhs(b, m, k) * rhs(b, k, n))
//
// The first warpgroup of a block is a single thread's: it asks for boxes of both operands, stage by stage, as far ahead
// as there are stages. The others multiply, each 64 rows of the tile, straight from shared memory. Two barriers a stage
// connect them:
//
//   full    the stage's bytes have arrived: products may begin
//   empty   all warpgroups are done with the stage: the next boxes may be asked for
//
// Products of one step are under way while those of the next are asked for; a stage is given back one step later.
//
// There are no more blocks than run at the same time, and a block takes every gridDim-th tile. Tiles go in groups of
// eight along m: blocks that run at the same time share rows and columns in L2.
//
// The tensor cores leave two neighbouring results a thread, and four threads have those of a row's eight: they exchange
// them, so that each has eight neighbours of one chunk of columns, and reads and writes 16 bytes at a time.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuTemplates.h"
#include "codegen/gpu/MmaEpilogue.h"
#include "codegen/gpu/WgmmaInstructions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t tilesTogether = 8; // along m, between which columns change
static constexpr int64_t chunkLanes = 8, quadLanes = 4;
static constexpr int64_t chunksTogether = 4;

namespace {

class WgmmaEmitter {
public:
  WgmmaEmitter(GpuEmitter &e, loop::ContractionOp op);
  void emit();

private:
  struct Place {
    SmallVector<Value> batch; // by dim
    Value row, column;
  };
  /// Where the next stage is and how often all have been used: what the loops carry.
  struct Turn {
    Value stage, parity;
  };
  Value word(int64_t value) { return e.invariants.constant(b.getI32IntegerAttr(int32_t(value))); }
  Value toWord(Value value) { return e.invariants.get<arith::TruncIOp>(b.getI32Type(), value); }
  Value stageAt(const Turn &turn, int64_t offset);
  Value fullAt(const Turn &turn);
  Value emptyAt(const Turn &turn);
  Turn next(const Turn &turn);
  void initBarriers();
  SmallVector<Value> forTiles(ValueRange carried, llvm::function_ref<SmallVector<Value>(const Place &, ValueRange)>);
  Place placeOf(Value number);
  void copy(const WgmmaOperand &operand, Value map, const Place &place, Value step, const Turn &turn, bool isRhs);
  void produce();
  void consume();
  SmallVector<Value> multiply(const Turn &turn, ValueRange sums);
  void release(Value barrier, Value condition);
  void finish(const Place &place, ValueRange sums);
  SmallVector<Value> exchange(SmallVector<Value> pairs);

  GpuEmitter &e;
  OpBuilder &b;
  loop::ContractionOp op;
  const ContractionDims dims;
  const WgmmaTile tile;
  WgmmaOperand lhs, rhs;
  Value thread, shared, steps;
  int64_t tiles, rowTiles, columnTiles;
};

} // namespace

WgmmaEmitter::WgmmaEmitter(GpuEmitter &e, loop::ContractionOp op)
    : e(e), b(e.builder), op(op), dims(op), tile(*getWgmmaTile(e.kernel)), lhs(*analyzeBoxes(op, false, tile)),
      rhs(*analyzeBoxes(op, true, tile)) {
  e.setDomain(dims.domain);
  auto count = [&](ArrayRef<Expr> extents) { return *product(op.getContext(), extents).asConstant(); };
  rowTiles = llvm::divideCeil(count(dims.m()), tile.m);
  columnTiles = llvm::divideCeil(count(dims.n()), tile.n);
  tiles = rowTiles * columnTiles * count(dims.batch());
  steps = e.constant(llvm::divideCeil(count(dims.k()), WgmmaTile::k));
  thread = e.getRegister("tid.x");
  Value base = e.launchedMemory(WgmmaTile::sharedAlignment);
  shared = e.invariants.get<LLVM::PtrToIntOp>(b.getI32Type(), base);
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

Value WgmmaEmitter::stageAt(const Turn &turn, int64_t offset) {
  Value start = e.invariants.add(shared, e.invariants.mul(turn.stage, word(tile.stageBytes())));
  return e.invariants.add(start, word(offset));
}

Value WgmmaEmitter::fullAt(const Turn &turn) {
  Value first = e.invariants.add(shared, word(tile.barrierOffset()));
  return e.invariants.add(first, e.invariants.mul(turn.stage, word(8)));
}

Value WgmmaEmitter::emptyAt(const Turn &turn) { return e.invariants.add(fullAt(turn), word(8 * tile.stages)); }

WgmmaEmitter::Turn WgmmaEmitter::next(const Turn &turn) {
  Value stage = e.invariants.add(turn.stage, word(1));
  Value isEnd = e.invariants.compare(arith::CmpIPredicate::eq, stage, word(tile.stages));
  Value other = e.invariants.get<arith::XOrIOp>(turn.parity, word(1));
  return {e.invariants.select(isEnd, word(0), stage), e.invariants.select(isEnd, other, turn.parity)};
}

void WgmmaEmitter::initBarriers() {
  Value isFirst = e.invariants.compare(arith::CmpIPredicate::eq, thread, e.constant(0));
  e.createIf(isFirst, {}, [&] {
    for (int64_t stage = 0; stage < tile.stages; ++stage) {
      Turn turn{word(stage), word(0)};
      createBarrierInit(e, fullAt(turn), 1);
      createBarrierInit(e, emptyAt(turn), tile.groups());
    }
    createBarrierInitFence(e);
    return SmallVector<Value>();
  });
  e.createBlockBarrier();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

WgmmaEmitter::Place WgmmaEmitter::placeOf(Value number) {
  auto divide = [&](Value value, Value by) { return e.invariants.floorDiv(value, by, true); };
  auto mod = [&](Value value, Value by) { return e.invariants.mod(value, by, true); };
  Value perBatch = word(rowTiles * columnTiles), perGroup = word(std::min(tilesTogether, rowTiles) * columnTiles);
  Value inBatch = mod(number, perBatch), group = divide(inBatch, perGroup), inGroup = mod(inBatch, perGroup);
  Value firstRow = e.invariants.mul(group, word(tilesTogether));
  Value rows = e.invariants.min(e.invariants.sub(word(rowTiles), firstRow), word(tilesTogether));
  Value row = e.invariants.add(firstRow, mod(inGroup, rows)), column = divide(inGroup, rows);
  Place place{{}, e.invariants.mul(row, word(tile.m)), e.invariants.mul(column, word(tile.n))};
  SmallVector<Value> sizes;
  for (Expr extent : dims.batch())
    sizes.push_back(e.emitExpr(extent, {}));
  Value batch = e.invariants.get<arith::ExtUIOp>(b.getI64Type(), divide(number, perBatch));
  for (Value digit : e.createDigits(batch, sizes))
    place.batch.push_back(toWord(digit));
  return place;
}

SmallVector<Value> WgmmaEmitter::forTiles(ValueRange carried,
                                          llvm::function_ref<SmallVector<Value>(const Place &, ValueRange)> body) {
  Value first = e.getRegister("ctaid.x"), stride = e.getRegister("nctaid.x");
  Value left = e.invariants.sub(e.invariants.add(e.constant(tiles - 1), stride), first);
  Value turns = e.invariants.floorDiv(left, stride, true);
  return e.createLoop(e.constant(0), turns, 1, carried, [&](Value turn, ValueRange in) {
    Value number = e.invariants.add(first, e.invariants.mul(turn, stride));
    return body(placeOf(toWord(number)), in);
  });
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void WgmmaEmitter::copy(const WgmmaOperand &operand, Value map, const Place &place, Value step, const Turn &turn,
                        bool isRhs) {
  Value k = e.invariants.mul(step, word(WgmmaTile::k)), free = isRhs ? place.column : place.row;
  Value target = stageAt(turn, isRhs ? tile.lhsBytes() : 0);
  for (int64_t box = 0; box < operand.boxes; ++box) {
    Value along = e.invariants.add(free, word(box * WgmmaTile::chunk));
    SmallVector<Value> coordinates{operand.isAlongK ? k : along, operand.isAlongK ? along : k};
    for (size_t dim : operand.dims)
      coordinates.push_back(place.batch[dim]);
    createBoxCopy(e, e.invariants.add(target, word(box * WgmmaTile::chunkBytes)), map, coordinates, fullAt(turn));
  }
}

void WgmmaEmitter::produce() {
  forTiles({word(0), word(1)}, [&](const Place &place, ValueRange in) {
    return e.createLoop(e.constant(0), steps, 1, in, [&](Value step, ValueRange now) {
      Turn turn{now[0], now[1]};
      createBarrierWait(e, emptyAt(turn), turn.parity);
      createBarrierExpect(e, fullAt(turn), tile.stageBytes());
      copy(lhs, e.maps[0], place, toWord(step), turn, false);
      copy(rhs, e.maps[1], place, toWord(step), turn, true);
      Turn later = next(turn);
      return SmallVector<Value>{later.stage, later.parity};
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

SmallVector<Value> WgmmaEmitter::multiply(const Turn &turn, ValueRange sums) {
  Value group = toWord(e.invariants.floorDiv(thread, e.constant(WgmmaTile::groupThreads), true));
  Value rows = e.invariants.mul(e.invariants.sub(group, word(1)), word(WgmmaTile::chunkBytes));
  Value left =
      createMatrixDescriptor(e, e.invariants.add(stageAt(turn, 0), rows), lhs.isAlongK ? 0 : WgmmaTile::chunkBytes);
  Value right = createMatrixDescriptor(e, stageAt(turn, tile.lhsBytes()), rhs.isAlongK ? 0 : WgmmaTile::chunkBytes);
  auto deeper = [&](const WgmmaOperand &operand, Value descriptor, int64_t part) -> Value {
    int64_t bytes = operand.isAlongK ? 32 : 16 * MmaTile::depthBytes;
    return arith::AddIOp::create(b, e.loc, descriptor, e.constant(part * bytes / 16));
  };
  SmallVector<Value> next(sums);
  createProductFence(e);
  for (int64_t part = 0; part < WgmmaTile::k / 16; ++part)
    next = createProduct(e, tile, deeper(lhs, left, part), deeper(rhs, right, part), lhs.isAlongK, rhs.isAlongK, next);
  createProductCommit(e);
  return next;
}

/// One thread of the warpgroup says that a stage is free.
void WgmmaEmitter::release(Value barrier, Value condition) {
  Value rank = toWord(e.invariants.mod(thread, e.constant(WgmmaTile::groupThreads), true));
  Value isOne = e.invariants.compare(arith::CmpIPredicate::eq, rank, word(0));
  Value is = e.invariants.get<arith::ExtUIOp>(b.getI32Type(), isOne);
  if (condition)
    is = arith::SelectOp::create(b, e.loc, condition, is, word(0));
  createBarrierArrive(e, barrier, is);
}

void WgmmaEmitter::consume() {
  size_t count = size_t(tile.n / 2);
  forTiles({word(0), word(0)}, [&](const Place &place, ValueRange in) {
    Value zero = e.invariants.constant(b.getF32FloatAttr(0));
    SmallVector<Value> carried(count, zero);
    llvm::append_range(carried, in);
    carried.push_back(emptyAt({in[0], in[1]}));
    carried = e.createLoop(e.constant(0), steps, 1, carried, [&](Value step, ValueRange now) {
      Turn turn{now[count], now[count + 1]};
      createBarrierWait(e, fullAt(turn), turn.parity);
      SmallVector<Value> out = multiply(turn, now.take_front(count));
      createProductWait(e, 1);
      release(now[count + 2], e.invariants.compare(arith::CmpIPredicate::ne, step, e.constant(0)));
      Turn later = next(turn);
      out.append({later.stage, later.parity, emptyAt(turn)});
      return out;
    });
    SmallVector<Value> sums(ArrayRef(carried).take_front(count));
    sums.append({place.row, place.column});
    llvm::append_range(sums, place.batch);
    sums = createProductEnd(e, sums);
    release(carried[count + 2], {});
    Place here{SmallVector<Value>(ArrayRef(sums).drop_front(count + 2)), sums[count], sums[count + 1]};
    finish(here, ArrayRef(sums).take_front(count));
    return SmallVector<Value>{carried[count], carried[count + 1]};
  });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Four threads' values `pairs` (lists of two neighbours, of four chunks) as the eight of chunk `lane % 4`.
SmallVector<Value> WgmmaEmitter::exchange(SmallVector<Value> pairs) {
  Value quad = e.invariants.mod(thread, e.constant(quadLanes), true);
  for (int64_t distance : {1, 2}) {
    Value bit = e.invariants.mod(e.invariants.floorDiv(quad, e.constant(distance), true), e.constant(2), true);
    Value isUpper = e.invariants.compare(arith::CmpIPredicate::eq, bit, e.constant(1));
    for (size_t i = 0; i < pairs.size(); ++i) {
      size_t other = i + 2 * size_t(distance);
      if ((i / 2) & size_t(distance))
        continue;
      Value &low = pairs[i], &high = pairs[other];
      Value given = arith::SelectOp::create(b, e.loc, isUpper, low, high);
      Value taken = e.createShuffle(given, distance)[0];
      low = arith::SelectOp::create(b, e.loc, isUpper, taken, low);
      high = arith::SelectOp::create(b, e.loc, isUpper, high, taken);
    }
  }
  return pairs;
}

void WgmmaEmitter::finish(const Place &place, ValueRange sums) {
  auto widen = [&](Value value) { return e.invariants.get<arith::ExtUIOp>(b.getI64Type(), value); };
  EmissionPoint point;
  for (Value digit : place.batch)
    point.dims.push_back(widen(digit));
  MmaResults results(e, op, dims, point);
  Value lane = e.invariants.mod(thread, e.constant(warpSize), true), quad = e.constant(quadLanes);
  Value warp = e.invariants.sub(e.invariants.floorDiv(thread, e.constant(warpSize), true), e.constant(4));
  Value row = e.invariants.add(e.invariants.mul(warp, e.constant(16)), e.invariants.floorDiv(lane, quad, true));
  row = e.invariants.add(widen(place.row), row);
  Value column = e.invariants.mul(e.invariants.mod(lane, quad, true), e.constant(chunkLanes));
  column = e.invariants.add(widen(place.column), column);
  SmallVector<MmaResults::Chunk> chunks;
  for (int64_t from = 0; from < tile.n; from += chunkLanes * quadLanes)
    for (int64_t below : {0, 8}) {
      SmallVector<Value> pairs;
      for (int64_t chunk = 0; chunk < quadLanes; ++chunk)
        for (int64_t i : {0, 1})
          pairs.push_back(sums[size_t((from / chunkLanes + chunk) * 4 + below / 4 + i)]);
      pairs = exchange(std::move(pairs));
      int64_t lanes = results.chooseLanes();
      for (int64_t first = 0; first < chunkLanes; first += lanes)
        chunks.push_back({e.invariants.add(row, e.constant(below)), e.invariants.add(column, e.constant(from + first)),
                          SmallVector<Value>(ArrayRef(pairs).slice(size_t(first), size_t(lanes)))});
      if (int64_t(chunks.size()) * lanes >= chunksTogether * chunkLanes) {
        results.emit(chunks);
        chunks.clear();
      }
    }
  if (!chunks.empty())
    results.emit(chunks);
}

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

void WgmmaEmitter::emit() {
  // Of 65536 in all, 168 a thread at the start.
  constexpr int64_t fewRegisters = 40, manyRegisters = 232;
  bool isDivided = tile.groups() == 2 && tile.together == 1;
  initBarriers();
  Value isFirst = e.invariants.compare(arith::CmpIPredicate::slt, thread, e.constant(WgmmaTile::groupThreads));
  auto roles = scf::IfOp::create(b, e.loc, isFirst, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(roles.thenBlock());
    if (isDivided)
      createRegisterLimit(e, fewRegisters, false);
    Value isOne = e.invariants.compare(arith::CmpIPredicate::eq, thread, e.constant(0));
    e.createIf(isOne, {}, [&] {
      produce();
      return SmallVector<Value>();
    });
    b.setInsertionPointToStart(roles.elseBlock());
    if (isDivided)
      createRegisterLimit(e, manyRegisters, true);
    consume();
  }
}

void gpu::emitWgmmaContraction(GpuEmitter &e, loop::ContractionOp op) { WgmmaEmitter(e, op).emit(); }
