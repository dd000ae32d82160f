//===- StateCopies.h - copies of state to where it may lie ------*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_STATECOPIES_H
#define PTC_COMPILER_SCHEDULE_STATECOPIES_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

struct BufferCopy {
  mlir::Value from, to;
};

/// What the node copies: all elements of a buffer, in order.
std::optional<BufferCopy> matchCopy(mlir::Operation *node);

/// Whether the buffer is an argument of the program's whose memory a result shares, or that result.
bool isState(ProgramOp program, mlir::Value buffer);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_STATECOPIES_H
