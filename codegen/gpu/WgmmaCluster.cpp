//===- WgmmaCluster.cpp - sums of blocks of a cluster ---------------------===//
//
// Blocks that share the k of a tile can be a cluster: they run at the same time on neighbouring multiprocessors, and
// read each other's shared memory. Each leaves its sums in its own, where the stages were, and behind a barrier of the
// cluster each adds up one part of the tile, in the order of the splits, and writes its results. A second barrier keeps
// blocks from ending while others read.
//
// Beside a counter in memory (WgmmaResults.cpp) nothing goes through L2, and the results of a tile are written by all
// of its blocks instead of the last one.
//
// A part is eight sums of each thread: those of two rows' eight neighbouring columns, after an exchange. They lie in
// memory thread by thread, four at a time.
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

static constexpr size_t partSums = 8;

/// Where four sums of this thread lie in the shared memory of its block (i32).
Value WgmmaEmitter::sumAddress(Value part, int64_t half) {
  const int64_t threads = WgmmaTile::groupThreads * tile.groups(), bytes = 4 * 4;
  Value rank = e.invariants.sub(toWord(thread), word(WgmmaTile::groupThreads)); // among those that multiply
  Value line = e.invariants.add(e.invariants.mul(part, word(2)), word(half));
  Value index = e.invariants.add(e.invariants.mul(line, word(threads)), rank);
  return e.invariants.add(shared, e.invariants.mul(index, word(bytes)));
}

/// The sums of a part over all blocks.
SmallVector<Value> WgmmaEmitter::addPart(Value part) {
  SmallVector<Value> sums(partSums, zero());
  for (int64_t block = 0; block < tile.splits; ++block)
    for (int64_t half : {0, 1})
      for (auto [i, value] : llvm::enumerate(createPeerLoad(e, sumType(), sumAddress(part, half), word(block)))) {
        Value &sum = sums[size_t(half) * 4 + i];
        sum = createSum(e, sum, value);
      }
  return sums;
}

void WgmmaEmitter::finishInCluster(const Place &place, ValueRange sums) {
  const int64_t parts = int64_t(sumCount() / partSums);
  createGroupsBarrier(e, tile.groups()); // nobody multiplies any more
  for (int64_t part = 0; part < parts; ++part) {
    SmallVector<Value> own = sumsOfPart(sums, part);
    for (int64_t half : {0, 1})
      createSharedStore(e, sumAddress(word(part), half), ArrayRef(own).slice(size_t(half) * 4, 4));
  }
  createClusterBarrier(e);
  Results results = beginResults(place);
  for (int64_t first = 0; first < parts; first += tile.splits) {
    Value part = e.invariants.add(place.split, word(first));
    auto emit = [&] {
      SmallVector<MmaResults::Chunk> chunks;
      addChunks(results, part, addPart(part), chunks);
      emitChunks(results, chunks);
      return SmallVector<Value>();
    };
    if (first + tile.splits <= parts)
      emit();
    else
      e.createIf(e.invariants.compare(arith::CmpIPredicate::slt, part, word(parts)), {}, emit);
  }
  createClusterBarrier(e);
}
