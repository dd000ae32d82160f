//===- WgmmaResults.cpp - from sums of warpgroups to results --------------===//
//
// The tensor cores leave two neighbouring results a thread, and four threads have those of a row's eight: they exchange
// them, so that each has eight neighbours of one chunk of columns, and reads and writes 16 bytes at a time.
//
// Blocks that share the k of a tile leave their sums in the launch's scratch, each warpgroup its own rows, and count
// themselves; the warpgroup that comes last adds up all of them in the order of the splits. So results do not depend on
// timing, and no block waits for another. Where the blocks are a cluster: WgmmaCluster.cpp.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuInstructions.h"
#include "codegen/gpu/MmaEpilogue.h"
#include "codegen/gpu/WgmmaEmitter.h"
#include "codegen/gpu/WgmmaInstructions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t chunkLanes = 8, quadLanes = 4;
static constexpr int64_t chunksTogether = 4;

//===----------------------------------------------------------------------===//
// Splits
//===----------------------------------------------------------------------===//

/// Four of a thread's sums, 16 bytes.
Value WgmmaEmitter::partAddress(const Place &place, Value split, size_t quad) {
  constexpr int64_t threads = WgmmaTile::groupThreads;
  int64_t quads = int64_t(sumCount() / 4);
  Value part = e.invariants.add(e.invariants.mul(widen(place.number), e.constant(tile.splits)), split);
  Value line = e.invariants.add(e.invariants.mul(part, e.constant(quads)), e.constant(int64_t(quad)));
  Value rank = e.invariants.sub(thread, e.constant(threads)); // among those that multiply
  Value index = e.invariants.add(e.invariants.mul(line, e.constant(threads * tile.groups())), rank);
  return e.getAddress(e.scratch, b.getF32Type(), e.invariants.mul(index, e.constant(4)));
}

void WgmmaEmitter::store(const Place &place, ValueRange sums) {
  auto type = VectorType::get({4}, sumType());
  for (size_t quad = 0; quad * 4 < sums.size(); ++quad) {
    Value vector = LLVM::PoisonOp::create(b, e.loc, type);
    for (size_t i = 0; i < 4; ++i)
      vector = LLVM::InsertElementOp::create(b, e.loc, vector, sums[quad * 4 + i], e.constant(int64_t(i)));
    LLVM::StoreOp::create(b, e.loc, vector, partAddress(place, widen(place.split), quad), 16);
  }
}

SmallVector<Value> WgmmaEmitter::addSplits(const Place &place) {
  auto type = VectorType::get({4}, sumType());
  SmallVector<Value> start(sumCount(), zero());
  return e.createLoop(e.constant(0), e.constant(tile.splits), 1, start, [&](Value split, ValueRange in) {
    SmallVector<Value> next;
    for (size_t quad = 0; quad * 4 < in.size(); ++quad) {
      Value vector = LLVM::LoadOp::create(b, e.loc, type, partAddress(place, split, quad), 16);
      for (size_t i = 0; i < 4; ++i) {
        Value part = LLVM::ExtractElementOp::create(b, e.loc, vector, e.constant(int64_t(i)));
        next.push_back(createSum(e, in[quad * 4 + i], part));
      }
    }
    return next;
  });
}

/// The warpgroup's results, once all splits have theirs.
void WgmmaEmitter::finish(const Place &place, ValueRange sums) {
  if (tile.splits == 1)
    return emitResults(place, sums);
  if (tile.isCluster())
    return finishInCluster(place, sums);
  store(place, sums);
  createDeviceFence(e);
  Value group = toWord(e.invariants.floorDiv(thread, e.constant(WgmmaTile::groupThreads), true));
  createGroupBarrierOr(e, group, word(0));
  Value rank = e.invariants.mod(thread, e.constant(WgmmaTile::groupThreads), true);
  Value isFirst = e.invariants.compare(arith::CmpIPredicate::eq, rank, e.constant(0));
  Value number = e.invariants.add(e.invariants.mul(place.number, word(tile.groups())), group);
  Value counter = e.getAddress(e.counters, b.getI32Type(), widen(e.invariants.sub(number, word(1))));
  Value arrived = e.createIf(isFirst, {word(0)}, [&] {
    Value isLast =
        arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, createCount(e, counter), word(tile.splits - 1));
    return SmallVector<Value>{arith::ExtUIOp::create(b, e.loc, b.getI32Type(), isLast).getResult()};
  })[0];
  Value isLast = createGroupBarrierOr(e, group, arrived);
  e.createIf(arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne, isLast, word(0)), {}, [&] {
    createDeviceFence(e);
    e.createIf(isFirst, {}, [&] {
      LLVM::StoreOp::create(b, e.loc, word(0), counter);
      return SmallVector<Value>();
    });
    emitResults(place, addSplits(place));
    return SmallVector<Value>();
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

WgmmaEmitter::Results WgmmaEmitter::beginResults(const Place &place) {
  EmissionPoint point;
  for (Value digit : place.batch)
    point.dims.push_back(widen(digit));
  Value quad = e.constant(quadLanes);
  Value row = e.invariants.add(firstRowOfWarp(), e.invariants.floorDiv(lane, quad, true));
  Value inQuad = e.invariants.mod(lane, quad, true), column = e.invariants.mul(inQuad, e.constant(chunkLanes));
  return {.writer = MmaResults(e, op, dims, point),
          .row = e.invariants.add(widen(place.row), row),
          .column = e.invariants.add(widen(place.column), column),
          .inQuad = inQuad};
}

/// A thread's sums of two neighbours in each of four chunks of one of its rows: what is exchanged together.
SmallVector<Value> WgmmaEmitter::sumsOfPart(ValueRange sums, int64_t part) {
  SmallVector<Value> pairs;
  const int64_t first = part / 2 * quadLanes, chunks = tile.n / chunkLanes;
  for (int64_t chunk = first; chunk < first + quadLanes; ++chunk)
    for (int64_t i : {0, 1})
      pairs.push_back(chunk < chunks ? sums[size_t(chunk * 4 + part % 2 * 2 + i)] : zero());
  return pairs;
}

/// The results of a part (i32) of the thread's, whose sums are `pairs`.
void WgmmaEmitter::addChunks(const Results &results, Value part, SmallVector<Value> pairs,
                             SmallVector<MmaResults::Chunk> &chunks) {
  pairs = exchange(std::move(pairs));
  Value wide = widen(part), two = e.constant(2);
  Value from = e.invariants.mul(e.invariants.floorDiv(wide, two, true), e.constant(chunkLanes * quadLanes));
  Value below = e.invariants.mul(e.invariants.mod(wide, two, true), e.constant(8));
  Value row = e.invariants.add(results.row, below), column = e.invariants.add(results.column, from);
  if (tile.n % (chunkLanes * quadLanes) != 0) { // the other threads have no results
    Value own = e.invariants.add(e.invariants.mul(results.inQuad, e.constant(chunkLanes)), from);
    row = e.invariants.select(e.invariants.compare(arith::CmpIPredicate::slt, own, e.constant(tile.n)), row,
                              e.constant(std::numeric_limits<int32_t>::max()));
  }
  int64_t lanes = results.writer.chooseLanes();
  for (int64_t first = 0; first < chunkLanes; first += lanes)
    chunks.push_back({row, e.invariants.add(column, e.constant(first)),
                      SmallVector<Value>(ArrayRef(pairs).slice(size_t(first), size_t(lanes)))});
}

void WgmmaEmitter::emitChunks(const Results &results, MutableArrayRef<MmaResults::Chunk> chunks) {
  if (tile.isSplitF32())
    results.writer.repair(chunks);
  results.writer.emit(chunks);
}

void WgmmaEmitter::emitResults(const Place &place, ValueRange sums) {
  Results results = beginResults(place);
  SmallVector<MmaResults::Chunk> chunks;
  const int64_t parts = 2 * llvm::divideCeil(tile.n, chunkLanes * quadLanes);
  for (int64_t part = 0; part < parts; ++part) {
    addChunks(results, word(part), sumsOfPart(sums, part), chunks);
    if (int64_t(chunks.size()) * results.writer.chooseLanes() >= chunksTogether * chunkLanes || part + 1 == parts) {
      emitChunks(results, chunks);
      chunks.clear();
    }
  }
}
