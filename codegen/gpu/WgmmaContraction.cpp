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
// Of a convolution a step is a place of the window and some channels: lhs is copied by pixels (WgmmaWindow.cpp).
//
// Rhs that is a weight is asked for before the launches in front of this one have ended, as far as there are stages.
//
// Of f32 there is a third barrier (WgmmaSplitF32.cpp). Where tiles are few, `splits` blocks share the k of one
// (WgmmaResults.cpp).
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuTemplates.h"
#include "codegen/gpu/WgmmaEmitter.h"
#include "codegen/gpu/WgmmaInstructions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t tilesTogether = 8; // along m, between which columns change
static constexpr int64_t groupWarps = WgmmaTile::groupThreads / warpSize;

WgmmaEmitter::WgmmaEmitter(GpuEmitter &e, loop::ContractionOp op)
    : e(e), b(e.builder), op(op), dims(op), tile(*getWgmmaTile(e.kernel)), operands(*analyzeOperands(op, tile)),
      hasWeights(e.kernel.getConfigAttr().contains("weights")) {
  e.setDomain(dims.domain);
  auto count = [&](ArrayRef<Expr> extents) { return *product(op.getContext(), extents).asConstant(); };
  rowTiles = llvm::divideCeil(count(dims.m()), tile.m);
  columnTiles = llvm::divideCeil(count(dims.n()), tile.n);
  tiles = rowTiles * columnTiles * count(dims.batch());
  steps = e.constant(operands.steps);
  thread = e.getRegister("tid.x");
  lane = e.invariants.mod(thread, e.constant(warpSize), true);
  memory = e.launchedMemory(WgmmaTile::sharedAlignment);
  shared = e.invariants.get<LLVM::PtrToIntOp>(b.getI32Type(), memory);
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

Value WgmmaEmitter::dividedAt(const Turn &turn) { return e.invariants.add(fullAt(turn), word(16 * tile.stages)); }

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
      createBarrierInit(e, emptyAt(turn), tile.groups() * (tile.isSplitF32() ? groupWarps : 1));
      if (tile.isSplitF32())
        createBarrierInit(e, dividedAt(turn), groupWarps);
    }
    createBarrierInitFence(e);
    return SmallVector<Value>();
  });
  e.createBlockBarrier();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// `number`: of the tile and the split, which changes first.
WgmmaEmitter::Place WgmmaEmitter::placeOf(Value number) {
  auto divide = [&](Value value, Value by) { return e.invariants.floorDiv(value, by, true); };
  auto mod = [&](Value value, Value by) { return e.invariants.mod(value, by, true); };
  Value split = mod(number, word(tile.splits));
  number = divide(number, word(tile.splits));
  Value perBatch = word(rowTiles * columnTiles), perGroup = word(std::min(tilesTogether, rowTiles) * columnTiles);
  Value inBatch = mod(number, perBatch), group = divide(inBatch, perGroup), inGroup = mod(inBatch, perGroup);
  Value firstRow = e.invariants.mul(group, word(tilesTogether));
  Value rows = e.invariants.min(e.invariants.sub(word(rowTiles), firstRow), word(tilesTogether));
  Value row = e.invariants.add(firstRow, mod(inGroup, rows)), column = divide(inGroup, rows);
  auto share = [&](Value of) {
    return e.invariants.floorDiv(e.invariants.mul(steps, widen(of)), e.constant(tile.splits), true);
  };
  Place place{.row = e.invariants.mul(row, word(tile.m)),
              .column = e.invariants.mul(column, word(tile.n)),
              .number = number,
              .split = split,
              .firstStep = share(split),
              .endStep = share(e.invariants.add(split, word(1)))};
  SmallVector<Value> sizes;
  for (Expr extent : dims.batch())
    sizes.push_back(e.emitExpr(extent, {}));
  for (Value digit : e.createDigits(widen(divide(number, perBatch)), sizes))
    place.batch.push_back(toWord(digit));
  return place;
}

SmallVector<Value> WgmmaEmitter::forTiles(ValueRange carried, TileBody body) {
  Value first = e.getRegister("ctaid.x"), stride = e.getRegister("nctaid.x");
  Value left = e.invariants.sub(e.invariants.add(e.constant(tiles * tile.splits - 1), stride), first);
  Value turns = e.invariants.floorDiv(left, stride, true);
  return e.createLoop(e.constant(0), turns, 1, carried, [&](Value turn, ValueRange in) {
    Value number = e.invariants.add(first, e.invariants.mul(turn, stride));
    return body(placeOf(toWord(number)), in);
  });
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void WgmmaEmitter::copyBoxes(bool isRhs, const Place &place, Value step, const Turn &turn) {
  const WgmmaOperand &operand = isRhs ? operands.rhs : operands.lhs;
  Value map = e.maps[isRhs], k = e.invariants.mul(step, word(tile.k())), free = isRhs ? place.column : place.row;
  Value target = stageAt(turn, isRhs ? tile.lhsBytes() : 0);
  for (int64_t box = 0; box < operand.boxes; ++box) {
    Value along = e.invariants.add(free, word(box * tile.k()));
    SmallVector<Value> coordinates{operand.isAlongK ? k : along, operand.isAlongK ? along : k};
    for (size_t dim : operand.dims)
      coordinates.push_back(place.batch[dim]);
    createBoxCopy(e, e.invariants.add(target, word(box * WgmmaTile::chunkBytes)), map, coordinates, fullAt(turn));
  }
}

/// Where the window of the tile's first pixel begins: coordinates of lhs but the channel.
SmallVector<Value> WgmmaEmitter::cornerOf(const Place &place) {
  if (!operands.window)
    return {};
  SmallVector<Value> sizes{e.constant(operands.window->images)}, corner;
  for (const WgmmaWindow::Axis &axis : operands.window->axes)
    sizes.push_back(e.constant(axis.pixels));
  SmallVector<Value> digits = e.createDigits(widen(place.row), sizes);
  for (auto [axis, digit] : llvm::zip_equal(operands.window->axes, ArrayRef(digits).drop_front()))
    corner.push_back(e.invariants.add(e.invariants.mul(toWord(digit), word(axis.stride)), word(axis.corner)));
  std::reverse(corner.begin(), corner.end());
  corner.push_back(toWord(digits.front()));
  return corner;
}

/// Pixels or weights of a step at a place of the window.
void WgmmaEmitter::copyPlace(bool isRhs, const Place &place, ValueRange corner, Value step, const Turn &turn) {
  Value deep = word(operands.stepsOfPlace), number = e.invariants.floorDiv(step, deep, true);
  Value channel = e.invariants.mul(e.invariants.mod(step, deep, true), word(tile.k()));
  SmallVector<Value> sizes, within(operands.window->axes.size(), word(0)), at{channel};
  for (const WgmmaWindow::Side &side : operands.window->sides)
    sizes.push_back(e.constant(side.extent));
  SmallVector<Value> digits = e.createDigits(widen(number), sizes);
  if (isRhs) {
    for (Value digit : llvm::reverse(digits))
      at.push_back(toWord(digit));
    at.push_back(place.column);
    return createBoxCopy(e, stageAt(turn, tile.lhsBytes()), e.maps[1], at, fullAt(turn));
  }
  for (auto [side, digit] : llvm::zip_equal(operands.window->sides, digits))
    within[within.size() - 1 - side.axis] = e.invariants.mul(toWord(digit), word(side.dilation));
  llvm::append_range(at, corner);
  createPixelCopy(e, stageAt(turn, 0), e.maps[0], at, within, fullAt(turn));
}

void WgmmaEmitter::copy(bool isRhs, const Place &place, ValueRange corner, Value step, const Turn &turn) {
  if (operands.window)
    copyPlace(isRhs, place, corner, step, turn);
  else
    copyBoxes(isRhs, place, step, turn);
}

/// Announces the bytes of a stage and asks for its part of rhs.
void WgmmaEmitter::beginStage(const Place &place, Value step, const Turn &turn) {
  createBarrierExpect(e, fullAt(turn), tile.copiedBytes());
  copy(true, place, {}, step, turn);
}

/// What no launch writes is asked for before those in front of this one have ended: rhs of the first stages. Returns
/// how many (i32).
Value WgmmaEmitter::beginEarly() {
  createMapPrefetch(e, e.maps[0]);
  if (!hasWeights)
    return word(0);
  Place place = placeOf(toWord(e.getRegister("ctaid.x")));
  Value count = e.invariants.min(e.invariants.sub(place.endStep, place.firstStep), e.constant(tile.stages));
  e.createLoop(e.constant(0), count, 1, {}, [&](Value stage, ValueRange) {
    beginStage(place, toWord(e.invariants.add(place.firstStep, stage)), {toWord(stage), word(1)});
    return SmallVector<Value>();
  });
  return toWord(count);
}

void WgmmaEmitter::produce() {
  Value begun = beginEarly();
  e.createLaunchOrder();
  forTiles({word(0), word(1), begun}, [&](const Place &place, ValueRange in) {
    SmallVector<Value> corner = cornerOf(place);
    return e.createLoop(place.firstStep, place.endStep, 1, in, [&](Value step, ValueRange now) {
      Turn turn{now[0], now[1]};
      Value isNew = e.invariants.compare(arith::CmpIPredicate::eq, now[2], word(0));
      e.createIf(isNew, {}, [&] {
        createBarrierWait(e, emptyAt(turn), turn.parity);
        beginStage(place, toWord(step), turn);
        return SmallVector<Value>();
      });
      copy(false, place, corner, toWord(step), turn);
      Turn later = next(turn);
      Value left = e.invariants.select(isNew, word(0), e.invariants.sub(now[2], word(1)));
      return SmallVector<Value>{later.stage, later.parity, left};
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value WgmmaEmitter::firstRowOfWarp() {
  Value warp = e.invariants.sub(e.invariants.floorDiv(thread, e.constant(warpSize), true), e.constant(groupWarps));
  return e.invariants.mul(warp, e.constant(WgmmaTile::groupRows / groupWarps));
}

SmallVector<Value> WgmmaEmitter::multiply(const Turn &turn, ValueRange sums) {
  Value group = toWord(e.invariants.floorDiv(thread, e.constant(WgmmaTile::groupThreads), true));
  Value rows = e.invariants.mul(e.invariants.sub(group, word(1)), word(WgmmaTile::chunkBytes));
  const WgmmaOperand &lhs = operands.lhs, &rhs = operands.rhs;
  Value left =
      createMatrixDescriptor(e, e.invariants.add(stageAt(turn, 0), rows), lhs.isAlongK ? 0 : WgmmaTile::chunkBytes);
  Value right = createMatrixDescriptor(e, stageAt(turn, tile.lhsBytes()), rhs.isAlongK ? 0 : WgmmaTile::chunkBytes);
  auto deeper = [&](const WgmmaOperand &operand, Value descriptor, int64_t part) -> Value {
    int64_t bytes = operand.isAlongK ? 32 : 16 * MmaTile::depthBytes;
    return arith::AddIOp::create(b, e.loc, descriptor, e.constant(part * bytes / 16));
  };
  SmallVector<Value> next(sums);
  createProductFence(e);
  for (int64_t part = 0; part < MmaTile::depthBytes / 32; ++part)
    next = createProduct(e, tile, deeper(lhs, left, part), deeper(rhs, right, part), lhs.isAlongK, rhs.isAlongK, next);
  createProductCommit(e);
  return next;
}

/// One thread of the warpgroup says that a stage is free; of f32, one of each warp, since warps read it on their own.
void WgmmaEmitter::release(Value barrier, Value condition) {
  Value rank = tile.isSplitF32() ? lane : e.invariants.mod(thread, e.constant(WgmmaTile::groupThreads), true);
  rank = toWord(rank);
  Value isOne = e.invariants.compare(arith::CmpIPredicate::eq, rank, word(0));
  Value is = e.invariants.get<arith::ExtUIOp>(b.getI32Type(), isOne);
  if (condition)
    is = arith::SelectOp::create(b, e.loc, condition, is, word(0));
  createBarrierArrive(e, barrier, is);
}

void WgmmaEmitter::consume() {
  size_t count = sumCount();
  e.createLaunchOrder();
  forTiles({word(0), word(0)}, [&](const Place &place, ValueRange in) {
    SmallVector<Value> carried(count, zero());
    llvm::append_range(carried, in);
    carried.push_back(emptyAt({in[0], in[1]}));
    carried = e.createLoop(place.firstStep, place.endStep, 1, carried, [&](Value step, ValueRange now) {
      Turn turn{now[count], now[count + 1]};
      createBarrierWait(e, fullAt(turn), turn.parity);
      SmallVector<Value> out = multiply(turn, now.take_front(count));
      createProductWait(e, 1);
      release(now[count + 2], e.invariants.compare(arith::CmpIPredicate::ne, step, place.firstStep));
      Turn later = next(turn);
      out.append({later.stage, later.parity, emptyAt(turn)});
      return out;
    });
    SmallVector<Value> sums(ArrayRef(carried).take_front(count));
    sums.append({place.row, place.column, place.number, place.split});
    llvm::append_range(sums, place.batch);
    sums = createProductEnd(e, sums);
    release(carried[count + 2], {});
    ArrayRef<Value> rest = ArrayRef(sums).drop_front(count);
    Place here{.batch = SmallVector<Value>(rest.drop_front(4)),
               .row = rest[0],
               .column = rest[1],
               .number = rest[2],
               .split = rest[3]};
    finish(here, ArrayRef(sums).take_front(count));
    return SmallVector<Value>{carried[count], carried[count + 1]};
  });
}

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

void WgmmaEmitter::emit() {
  auto isBefore = [&](int64_t groups) {
    return e.invariants.compare(arith::CmpIPredicate::slt, thread, e.constant(groups * WgmmaTile::groupThreads));
  };
  auto limit = [&](int64_t registers) { // of 65536 in all
    int64_t atStart = 65536 / tile.threads() / 8 * 8;
    if (tile.isDivided())
      createRegisterLimit(e, registers, registers > atStart);
  };
  auto produceAlone = [&](int64_t group) {
    Value first = e.constant(group * WgmmaTile::groupThreads);
    e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, thread, first), {}, [&] {
      produce();
      return SmallVector<Value>();
    });
  };
  auto choose = [&](Value condition, llvm::function_ref<void()> yes, llvm::function_ref<void()> no) {
    auto roles = scf::IfOp::create(b, e.loc, condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(roles.thenBlock());
    yes();
    b.setInsertionPointToStart(roles.elseBlock());
    no();
  };
  initBarriers();
  if (!tile.isSplitF32())
    return choose(isBefore(1), [&] { limit(40), produceAlone(0); }, [&] { limit(232), consume(); });
  int64_t groups = tile.groups() + 1;
  auto multiply = [&] { limit(224), consumeSplit(); };
  choose(
      isBefore(1), [&] { limit(40), divideTiles(); },
      [&] { choose(isBefore(groups), multiply, [&] { limit(24), produceAlone(groups); }); });
}

void gpu::emitWgmmaContraction(GpuEmitter &e, loop::ContractionOp op) { WgmmaEmitter(e, op).emit(); }
