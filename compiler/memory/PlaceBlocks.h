//===- PlaceBlocks.h - rectangles in a strip of least height ---------------===//

#ifndef PTC_COMPILER_MEMORY_PLACEBLOCKS_H
#define PTC_COMPILER_MEMORY_PLACEBLOCKS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace ptc {

/// The times of the first and last use of a block of memory, inclusive.
struct Life {
  unsigned begin, end;
  bool overlaps(const Life &other) const { return begin <= other.end && other.begin <= end; }
};

struct SizedLife {
  Life life;
  int64_t size; // bytes
};

struct Placement {
  llvm::SmallVector<int64_t> offsets; // of each block, in bytes
  int64_t height = 0;                 // bytes in all
};

/// The largest sum of sizes that are alive at one time: no placement is lower.
int64_t getLowerBound(llvm::ArrayRef<SizedLife> blocks);

/// Offsets such that no two blocks alive at one time share bytes. Near the lower bound, not always at it:
/// the problem is NP-hard. The result depends on the blocks and their order alone.
Placement placeBlocks(llvm::ArrayRef<SizedLife> blocks);

} // namespace ptc

#endif // PTC_COMPILER_MEMORY_PLACEBLOCKS_H
