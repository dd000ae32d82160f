//===- InPlaceReuse.h - a result over an operand ----------------*- C++ -*-===//
#ifndef PTC_COMPILER_MEMORY_INPLACEREUSE_H
#define PTC_COMPILER_MEMORY_INPLACEREUSE_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// Whether a kernel's argument `written` may lie where its argument `read` does, if nothing reads that later.
bool mayReuse(mlir::BlockArgument read, mlir::BlockArgument written);

} // namespace ptc::loop

#endif // PTC_COMPILER_MEMORY_INPLACEREUSE_H
