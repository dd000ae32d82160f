//===- OwnedScatter.cpp - scatters whose points may meet ------------------===//
//
// Updates that meet at one place must be done in their order: sums of floats would differ otherwise, and without a
// combination the last one wins. Updates of different places need no order. So every place has an owner, which does its
// updates one after the other, and nobody waits for anybody: results are those of a loop, bit by bit.
//
//   told dims   where the place itself says a point's dims (the columns of rows that indices choose), points meet only
//               within one of them: ToldDims.h. A thread for each of many, which walks over all updates
//   owners      else places are dealt out by their quotient, as cards are: to blocks, then to a block's warps
//
// A block looks at 1,024 updates at a time, four a thread, and asks only for their places. A ballot for each warp of
// the block says which updates are its own, in order; it does those, all lanes together where indices are the same for
// the told points (rows), else its first lane alone. A place is always the same lane's, so that no fence is needed.
//
// Cost: every block reads all indices of its told points, mostly from L2: 1/256 of an access for each thread and
// update, where a thread alone would have all of them. What remains is the latency of the updates that meet.
//
// Of many updates all indices are too many: SortedScatter.cpp, and AtomicScatter.cpp where order is nothing.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/OwnedScatter.h"
#include "codegen/gpu/DeviceShape.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t fullDevice = 4 * multiprocessors; // blocks
static constexpr int64_t manyTold = 1 << 15;               // a thread each occupies the device
static constexpr int64_t fewUpdates = 32;                  // nothing to deal out
static constexpr int64_t mostTogether = 128;               // told points of a block
static constexpr int64_t updatesOfThread = 4;              // under way
static constexpr int64_t fewestUpdatesOfPart = 8;

DenseI64ArrayAttr ScatterTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {int64_t(owner), chunk, parts, isUniform});
}

ScatterTile ScatterTile::fromAttribute(DictionaryAttr config) {
  ArrayRef<int64_t> values = config.getAs<DenseI64ArrayAttr>("scatter").asArrayRef();
  return {Owner(values[0]), values[1], values[2], values[3] != 0};
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

static ScatterTile chooseTile(const ScatterPlaces &places, std::optional<int64_t> updates) {
  int64_t points = places.toldPoints;
  if (points >= manyTold || (updates && *updates <= fewUpdates))
    return {ScatterTile::Owner::Thread, 1, 1, places.isUniform};
  int64_t chunk = places.isUniform ? std::min(points, mostTogether) : 1;
  int64_t parts = std::max<int64_t>(fullDevice / llvm::divideCeil(points, chunk), 1);
  if (updates)
    parts = std::clamp<int64_t>(*updates / fewestUpdatesOfPart, 1, parts);
  return {ScatterTile::Owner::Warps, chunk, int64_t(llvm::bit_floor(uint64_t(parts))), places.isUniform};
}

double gpu::estimateOwned(const ScatterPlaces &places, int64_t updates) {
  constexpr double batch = 2500, update = 700; // each
  ScatterTile tile = chooseTile(places, updates);
  if (tile.owner == ScatterTile::Owner::Thread)
    return update * double(updates);
  int64_t blocks = llvm::divideCeil(places.toldPoints, tile.chunk) * tile.parts;
  int64_t batches = llvm::divideCeil(updates, updatesOfThread * ScatterTile::threads);
  double ofBlock = batch * double(batches) + update * double(updates) / double(tile.parts * ScatterTile::warps);
  return ofBlock * double(llvm::divideCeil(blocks, fullDevice));
}

bool gpu::planOwnedScatter(loop::KernelOp kernel, loop::ScatterOp op) {
  if (!hasPlaces(op))
    return false;
  MLIRContext *context = kernel.getContext();
  ScatterPlaces places(op);
  ScatterTile tile = chooseTile(places, places.countUpdates().asConstant());
  bool isThread = tile.owner == ScatterTile::Owner::Thread;
  int64_t blocks = isThread ? llvm::divideCeil(places.toldPoints, ScatterTile::threads)
                            : llvm::divideCeil(places.toldPoints, tile.chunk) * tile.parts;
  setPlan(kernel, {.layout = "owners",
                   .name = "scatter",
                   .tile = tile.toAttribute(context),
                   .threads = ScatterTile::threads,
                   .blocks = Expr::constant(context, blocks)});
  return true;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {

class ScatterEmitter {
public:
  ScatterEmitter(GpuEmitter &e, loop::ScatterOp op);
  void emit();

private:
  using Values = SmallVector<Value>;
  Value isEqual(Value a, Value b) { return e.invariants.compare(arith::CmpIPredicate::eq, a, b); }
  Value isLess(Value a, Value b) { return e.invariants.compare(arith::CmpIPredicate::slt, a, b); }
  Value word(int32_t value) { return e.invariants.constant(b.getI32IntegerAttr(value)); }
  void emitThread();
  void emitBlock();
  Value quotientOf(Value update);
  void shareOut(Value first);
  void forBits(Value bits, llvm::function_ref<void(Value bit)> body);
  void takeOwn(Value first);
  void takeUpdate(Value update);
  Value maskAddress(Value ofWarp, Value group);

  GpuEmitter &e;
  OpBuilder &b;
  const ScatterTile tile;
  const ScatterPlaces places;
  PlaceEmitter emitter;
  Value thread, lane, warp, updates; // updates: their number
  Value firstTold, part, masks;      // of the block
};

} // namespace

ScatterEmitter::ScatterEmitter(GpuEmitter &e, loop::ScatterOp op)
    : e(e), b(e.builder), tile(ScatterTile::fromAttribute(e.kernel.getConfigAttr())), places(op), emitter(e, places),
      thread(e.getRegister("tid.x")), updates(emitter.updates) {
  lane = e.invariants.mod(thread, e.constant(warpSize), true);
  warp = e.invariants.floorDiv(thread, e.constant(warpSize), true);
}

/// A thread for each told point.
void ScatterEmitter::emitThread() {
  Value block = e.invariants.mul(e.getRegister("ctaid.x"), e.constant(ScatterTile::threads));
  Value number = e.invariants.add(block, thread);
  e.createIf(isLess(number, e.constant(places.toldPoints)), {}, [&] {
    e.createLoop(e.constant(0), updates, 1, {}, [&](Value update, ValueRange) {
      emitter.apply(emitter.pointAt(number, update));
      return Values();
    });
    return Values();
  });
}

/// What an update's place is but for what its told dims say: the lower bits (i32), which do to deal out.
Value ScatterEmitter::quotientOf(Value update) {
  return arith::TruncIOp::create(b, e.loc, b.getI32Type(), emitter.quotientOf(firstTold, update));
}

/// Bits of the updates in group `group` of 32 that are the warp's.
Value ScatterEmitter::maskAddress(Value ofWarp, Value group) {
  Value line = e.invariants.mul(ofWarp, e.constant(updatesOfThread * ScatterTile::warps));
  return e.getAddress(masks, b.getI32Type(), e.invariants.add(line, group));
}

/// Says which of the updates from `first` on are whose.
void ScatterEmitter::shareOut(Value first) {
  Value last = e.invariants.sub(updates, e.constant(1));
  Values quotients, exist;
  for (int64_t i = 0; i < updatesOfThread; ++i) {
    Value update = e.invariants.add(first, e.invariants.add(thread, e.constant(i * ScatterTile::threads)));
    exist.push_back(isLess(update, updates));
    quotients.push_back(quotientOf(e.invariants.min(update, last)));
  }
  for (int64_t i = 0; i < updatesOfThread; ++i) {
    Value quotient = quotients[size_t(i)];
    Value isOwn = isEqual(arith::AndIOp::create(b, e.loc, quotient, word(int32_t(tile.parts - 1))), part);
    isOwn = arith::AndIOp::create(b, e.loc, isOwn, exist[size_t(i)]);
    Value any = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne, e.createBallot(isOwn), word(0));
    Value bits = e.createIf(any, {word(0)}, [&] { // rarely
      Value dealt = arith::ShRUIOp::create(b, e.loc, quotient, word(int32_t(llvm::Log2_64(uint64_t(tile.parts)))));
      Value owner = arith::AndIOp::create(b, e.loc, dealt, word(ScatterTile::warps - 1)), own = word(0);
      for (int64_t of = 0; of < ScatterTile::warps; ++of) {
        Value ballot = e.createBallot(arith::AndIOp::create(b, e.loc, isOwn, isEqual(owner, word(int32_t(of)))));
        own = arith::SelectOp::create(b, e.loc, isEqual(lane, e.constant(of)), ballot, own);
      }
      return Values{own};
    })[0];
    e.createIf(isLess(lane, e.constant(ScatterTile::warps)), {}, [&] {
      e.createStore(bits, maskAddress(lane, e.invariants.add(warp, e.constant(i * ScatterTile::warps))));
      return Values();
    });
  }
}

/// `body` for each bit (i64) of a word that is the same in all lanes, from the lowest on.
void ScatterEmitter::forBits(Value bits, llvm::function_ref<void(Value bit)> body) {
  auto widen = [&](Value value) { return arith::ExtUIOp::create(b, e.loc, b.getI64Type(), value).getResult(); };
  Value count = widen(math::CtPopOp::create(b, e.loc, bits));
  e.createLoop(e.constant(0), count, 1, {bits}, [&](Value, ValueRange left) {
    body(widen(math::CountTrailingZerosOp::create(b, e.loc, left[0])));
    Value below = arith::SubIOp::create(b, e.loc, left[0], word(1));
    return Values{arith::AndIOp::create(b, e.loc, left[0], below)};
  });
}

void ScatterEmitter::takeUpdate(Value update) {
  if (!tile.isUniform || places.toldPoints == 1) {
    e.createIf(isEqual(lane, e.constant(0)), {}, [&] {
      emitter.apply(emitter.pointAt(firstTold, update));
      return Values();
    });
    return;
  }
  Value left = e.invariants.sub(e.constant(places.toldPoints), firstTold);
  e.createLoop(lane, e.invariants.min(e.constant(tile.chunk), left), warpSize, {}, [&](Value column, ValueRange) {
    emitter.apply(emitter.pointAt(e.invariants.add(firstTold, column), update));
    return Values();
  });
}

/// The warp's own of the updates from `first` on.
void ScatterEmitter::takeOwn(Value first) {
  Value bits = e.createLoad(b.getI32Type(), 1, maskAddress(warp, lane));
  Value some = e.createBallot(arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne, bits, word(0)));
  forBits(some, [&](Value group) {
    Value begin = e.invariants.add(first, e.invariants.mul(group, e.constant(warpSize)));
    Value own = e.createLoad(b.getI32Type(), 1, maskAddress(warp, group));
    forBits(own, [&](Value bit) { takeUpdate(e.invariants.add(begin, bit)); });
  });
}

void ScatterEmitter::emitBlock() {
  static_assert(updatesOfThread * ScatterTile::warps == warpSize, "a lane for each group of a batch");
  Value block = e.getRegister("ctaid.x"), chunk = e.invariants.floorDiv(block, e.constant(tile.parts), true);
  part = arith::TruncIOp::create(b, e.loc, b.getI32Type(), e.invariants.mod(block, e.constant(tile.parts), true));
  firstTold = e.invariants.mul(chunk, e.constant(tile.chunk));
  masks = e.sharedMemory(ScatterTile::warps * warpSize * 4);
  e.createLoop(e.constant(0), updates, updatesOfThread * ScatterTile::threads, {}, [&](Value first, ValueRange) {
    shareOut(first);
    e.createBlockBarrier();
    takeOwn(first);
    e.createBlockBarrier();
    return Values();
  });
}

void ScatterEmitter::emit() {
  if (tile.owner == ScatterTile::Owner::Thread)
    emitThread();
  else
    emitBlock();
}

void gpu::emitOwnedScatter(GpuEmitter &e, loop::ScatterOp op) {
  e.setDomain(loop::getDomain(op));
  ScatterEmitter(e, op).emit();
}
