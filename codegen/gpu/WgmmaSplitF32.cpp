//===- WgmmaSplitF32.cpp - contractions of f32 by warpgroups --------------===//
//
//   x = high + low, high the 11 bits that the tensor cores take of an f32, low the rest:
//   sum += low * high + high * low + high * high
//
// Both operands come as boxes of f32. The high part of rhs is rhs itself: the tensor cores ignore the bits behind. One
// warpgroup reads the tile of a stage, and leaves the low parts behind it, element by element at the same place, so
// that the order within the tile (the swizzle) means nothing to it. Lhs goes through registers, where the warpgroups
// that multiply divide it. So weights are stored once, and nothing is known of either operand:
//
//   full     the stage's bytes have arrived
//   divided  its low parts are there: products may begin
//   empty    all warps are done with it
//
// The tensor cores cut sums off instead of rounding them, towards zero, which a deep network would show: they add up
// the eight products of a part (small ones first), and the rest is ordinary arithmetic, while the next part is under
// way; of wide tiles, which lack the registers, they add up a whole step.
//
// A deep network would show errors that have a direction. Rhs is cut, so that all of its low parts have the sign of
// their elements; lhs is rounded, so that its own have either sign, and low * low, which is left out, is zero on
// average. Of low parts the tensor cores take 11 bits; those of lhs have 12, and a cut of them shows in no direction.
// Those of rhs are rounded, so many of them away from zero as makes up for what the sums lose: 4.2e-8 of a part, 9e-8
// of a step, where rounding all of them away gains 7.5e-8, and to the nearest, halves away, 3.2e-8. (Products are 1e-8
// off so, on average.)
//
// The low half of an infinity is no number where it is lhs's, and 0 where it is rhs's: a sum with one is that infinity
// or no number, and those are done again in f32 (MmaEpilogue.cpp). A NaN of rhs whose payload is in its last 13 bits
// alone, which no arithmetic makes, counts as an infinity.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/MmaShared.h"
#include "codegen/gpu/WgmmaEmitter.h"
#include "codegen/gpu/WgmmaInstructions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t partsOfStep = 4; // of 8 elements
static constexpr int64_t partBytes = 32;
static constexpr uint32_t half = 0x1000, whole = 0x1fff; // of the last of 11 bits

static Value constantBits(GpuEmitter &e, uint32_t value) {
  return e.invariants.constant(e.builder.getI32IntegerAttr(int32_t(value)));
}

static Value cut(GpuEmitter &e, Value bits) {
  return arith::AndIOp::create(e.builder, e.loc, bits, constantBits(e, 0xffffe000));
}

static Value add(GpuEmitter &e, Value bits, uint32_t more) {
  return arith::AddIOp::create(e.builder, e.loc, bits, constantBits(e, more));
}

/// What is left of an element without its high part, as bits.
static Value restOf(GpuEmitter &e, Value bits, Value high) {
  OpBuilder &b = e.builder;
  auto asFloat = [&](Value value) { return arith::BitcastOp::create(b, e.loc, b.getF32Type(), value); };
  Value rest = arith::SubFOp::create(b, e.loc, asFloat(bits), asFloat(high));
  return arith::BitcastOp::create(b, e.loc, b.getI32Type(), rest);
}

//===----------------------------------------------------------------------===//
// Rhs, in shared memory
//===----------------------------------------------------------------------===//

Value WgmmaEmitter::stagePointer(const Turn &turn, int64_t offset) {
  Value bytes = e.invariants.mul(widen(turn.stage), e.constant(tile.stageBytes()));
  return e.getAddress(memory, b.getI8Type(), e.invariants.add(bytes, e.constant(offset)));
}

// Reads of all, then writes of all: several are under way at once.
void WgmmaEmitter::divideStage(const Turn &turn) {
  auto type = VectorType::get({4}, b.getI32Type());
  Value mine = e.invariants.mul(thread, e.constant(MmaTile::vectorBytes));
  Value from = e.getAddress(stagePointer(turn, tile.lhsBytes()), b.getI8Type(), mine);
  constexpr int64_t together = MmaTile::vectorBytes * WgmmaTile::groupThreads;
  auto addressOf = [&](int64_t offset) { return e.getAddress(from, b.getI8Type(), e.constant(offset)); };
  SmallVector<Value> vectors;
  for (int64_t at = 0; at < tile.rhsBytes(); at += together)
    vectors.push_back(LLVM::LoadOp::create(b, e.loc, type, addressOf(at), MmaTile::vectorBytes));
  for (auto [number, bits] : llvm::enumerate(vectors)) {
    Value low = bits;
    for (int64_t i = 0; i < 4; ++i) {
      Value element = LLVM::ExtractElementOp::create(b, e.loc, bits, e.constant(i));
      Value rounded = add(e, restOf(e, element, cut(e, element)), i < tile.awayOfFour() ? whole : half);
      low = LLVM::InsertElementOp::create(b, e.loc, low, rounded, e.constant(i));
    }
    LLVM::StoreOp::create(b, e.loc, low, addressOf(int64_t(number) * together + tile.rhsBytes()), MmaTile::vectorBytes);
  }
}

void WgmmaEmitter::divideTiles() {
  Value isOne = e.invariants.compare(arith::CmpIPredicate::eq, toWord(lane), word(0));
  Value is = e.invariants.get<arith::ExtUIOp>(b.getI32Type(), isOne);
  forTiles({word(0), word(0)}, [&](const Place &place, ValueRange in) {
    return e.createLoop(place.firstStep, place.endStep, 1, in, [&](Value, ValueRange now) {
      Turn turn{now[0], now[1]};
      createBarrierWait(e, fullAt(turn), turn.parity);
      divideStage(turn);
      createSharedFence(e);
      createWarpBarrier(e);
      createBarrierArrive(e, dividedAt(turn), is);
      Turn later = next(turn);
      return SmallVector<Value>{later.stage, later.parity};
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

SmallVector<Value> WgmmaEmitter::addUp(ValueRange sums, ValueRange more) {
  SmallVector<Value> all;
  for (auto [sum, own] : llvm::zip_equal(sums, more))
    all.push_back(arith::AddFOp::create(b, e.loc, sum, own));
  return all;
}

/// The warp's elements of lhs, four a part.
SmallVector<Value> WgmmaEmitter::readLhs(const Turn &turn) {
  MmaRows rows{.rowBytes = MmaTile::depthBytes, .elementBytes = 4, .reader = MmaRows::Reader::Matrices};
  SmallVector<Value> elements;
  for (int64_t part = 0; part < partsOfStep; ++part)
    llvm::append_range(elements,
                       createMatrixFragments(e, rows, {.isRhs = false, .isAlongK = true}, stagePointer(turn, 0), lane,
                                             firstRowOfWarp(), 0, part * partBytes / 4)
                           .front());
  return elements;
}

/// Of each part, four high parts and four low ones.
SmallVector<Value> WgmmaEmitter::divideLhs(ValueRange elements) {
  SmallVector<Value> fragments;
  for (size_t part = 0; part < elements.size(); part += 4) {
    for (Value element : elements.slice(part, 4))
      fragments.push_back(cut(e, add(e, element, half)));
    for (auto [i, element] : llvm::enumerate(elements.slice(part, 4)))
      fragments.push_back(restOf(e, element, fragments[2 * part + i]));
  }
  return fragments;
}

/// Products of the parts [from, to) of a step; asynchronous.
SmallVector<Value> WgmmaEmitter::multiplyParts(const Turn &turn, ValueRange fragments, int64_t from, int64_t to) {
  auto lhsOf = [&](int64_t part, bool isLow) { return fragments.slice(size_t(part * 8 + (isLow ? 4 : 0)), 4); };
  auto rhsOf = [&](int64_t part, bool isLow) {
    Value start = stageAt(turn, tile.lhsBytes() + (isLow ? tile.rhsBytes() : 0));
    return arith::AddIOp::create(b, e.loc, createMatrixDescriptor(e, start, 0), e.constant(part * partBytes / 16))
        .getResult();
  };
  SmallVector<Value> sums;
  for (auto [lhsIsLow, rhsIsLow] : {std::pair(true, false), std::pair(false, true), std::pair(false, false)})
    for (int64_t part = from; part < to; ++part)
      sums = createSplitProduct(e, tile, lhsOf(part, lhsIsLow), rhsOf(part, rhsIsLow), sums);
  createProductCommit(e);
  return sums;
}

// While products are under way, lhs of the next step is read. (It is divided behind the wait for them: the assembler
// would make all products wait for each other if registers that they read were written before.) The last step of a tile
// reads its own once more.
void WgmmaEmitter::consumeSplit() {
  const size_t count = sumCount();
  auto readAhead = [&](const Turn &turn) {
    createBarrierWait(e, fullAt(turn), turn.parity);
    return readLhs(turn);
  };
  e.createLaunchOrder();
  forTiles({word(0), word(0)}, [&](const Place &place, ValueRange in) {
    SmallVector<Value> carried(count, zero());
    llvm::append_range(carried, in);
    llvm::append_range(carried, readAhead({in[0], in[1]}));
    Value last = e.invariants.sub(place.endStep, e.constant(1));
    carried = e.createLoop(place.firstStep, place.endStep, 1, carried, [&](Value step, ValueRange now) {
      Turn turn{now[count], now[count + 1]}, later = next(turn);
      createBarrierWait(e, dividedAt(turn), turn.parity);
      SmallVector<Value> fragments = createProductFence(e, divideLhs(now.drop_front(count + 2)));
      const int64_t sets = tile.sumParts(), parts = partsOfStep / sets;
      SmallVector<SmallVector<Value>> own;
      auto begin = [&] {
        int64_t set = int64_t(own.size());
        own.push_back(multiplyParts(turn, fragments, set * parts, (set + 1) * parts));
      };
      while (int64_t(own.size()) < std::min(sets, tile.sumPartsUnderWay()))
        begin();
      Value isLast = e.invariants.compare(arith::CmpIPredicate::eq, step, last);
      SmallVector<Value> read = readAhead({e.invariants.select(isLast, turn.stage, later.stage),
                                           e.invariants.select(isLast, turn.parity, later.parity)});
      SmallVector<Value> sums(now.take_front(count));
      for (int64_t set = 0; set < sets; ++set) {
        sums = addUp(sums, createProductEnd(e, own[size_t(set)], int64_t(own.size()) - 1 - set));
        if (int64_t(own.size()) < sets) {
          createProductFence(e);
          begin();
        }
      }
      release(emptyAt(turn), {});
      sums.append({later.stage, later.parity});
      llvm::append_range(sums, read);
      return sums;
    });
    finish(place, ArrayRef(carried).take_front(count));
    return SmallVector<Value>{carried[count], carried[count + 1]};
  });
}
