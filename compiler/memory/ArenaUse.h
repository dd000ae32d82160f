// Who uses the arena, and when: the plan of a program's memory as a table for people.
#ifndef PTC_COMPILER_MEMORY_ARENAUSE_H
#define PTC_COMPILER_MEMORY_ARENAUSE_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// An intermediate value in the arena. Launches are numbered from 0 in the order of the program.
struct ArenaBuffer {
  Expr offset, bytes;
  unsigned first, last;    // the launches that use it
  mlir::Location location; // of the launch that writes it first
  bool isAliveAt(unsigned launch) const { return first <= launch && launch <= last; }
};

struct ArenaUse {
  llvm::SmallVector<ArenaBuffer> buffers; // by offset at the hint, then by first use
  unsigned fullest = 0;                   // the launch at which most bytes are alive, at the hint
  int64_t aliveBytes = 0;                 // then
};

/// Memory beside the arena, of a size that nothing bounds before the run.
struct GrowingBlock {
  mlir::Location location;       // of what it is for first
  llvm::SmallVector<Expr> bytes; // that it has room for, in the order of the program
};

/// Of a program whose memory is planned.
ArenaUse getArenaUse(ProgramOp program);
/// By slot.
llvm::SmallVector<GrowingBlock> getGrowingBlocks(ProgramOp program);

} // namespace ptc::loop

#endif // PTC_COMPILER_MEMORY_ARENAUSE_H
