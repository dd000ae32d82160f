//===- UnsignedStores.h - stores of the larger of unsigned numbers - C++ --===//
#ifndef PTC_IR_LOOP_UNSIGNEDSTORES_H
#define PTC_IR_LOOP_UNSIGNEDSTORES_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// On a `loop.store` that combines: the numbers are unsigned, which says the larger of two.
inline constexpr llvm::StringLiteral unsignedAttr = "loop.unsigned";

inline bool isUnsigned(StoreOp store) { return store->hasAttr(unsignedAttr); }

} // namespace ptc::loop

#endif // PTC_IR_LOOP_UNSIGNEDSTORES_H
