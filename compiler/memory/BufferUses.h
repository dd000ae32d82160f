// From where to where in a program a buffer's bytes are needed.
#ifndef PTC_COMPILER_MEMORY_BUFFERUSES_H
#define PTC_COMPILER_MEMORY_BUFFERUSES_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// Operations in the order of the program, inclusive; both may be the same.
struct UseSpan {
  mlir::Operation *first, *last;
};

/// Uses of a buffer, also through views. A use by one of several joined launches lasts for all of them. A use inside of
/// a loop around which the buffer is declared lasts for the whole outermost such loop: what one round writes, a later
/// one may read, and what the first round reads the last one does.
llvm::SmallVector<UseSpan> getUses(mlir::Value buffer);

} // namespace ptc::loop

#endif // PTC_COMPILER_MEMORY_BUFFERUSES_H
