//===- PlaceInSlots.h - blocks of symbolic sizes in shared slots ----------===//

#ifndef PTC_COMPILER_MEMORY_PLACEINSLOTS_H
#define PTC_COMPILER_MEMORY_PLACEINSLOTS_H

#include "compiler/memory/PlaceBlocks.h"
#include "ir/expr/Expr.h"

namespace ptc {

struct SymbolicLife {
  Life life;
  Expr size; // bytes
  int64_t sizeAtHint;
};

struct SymbolicPlacement {
  llvm::SmallVector<Expr> offsets; // of each block, in bytes
  Expr size;                       // of all of them
};

/// Offsets such that no two blocks alive at one time share bytes, whatever the symbols' values; chosen for those of the
/// hint. The result depends on the blocks and their order alone. There is at least one block.
SymbolicPlacement placeInSlots(llvm::ArrayRef<SymbolicLife> blocks, const SymbolRanges &symbols);

} // namespace ptc

#endif // PTC_COMPILER_MEMORY_PLACEINSLOTS_H
