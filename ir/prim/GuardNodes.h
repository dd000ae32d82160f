//===- GuardNodes.h - the nodes that guards of an entry stem from *- C++ -*-===//
#ifndef PTC_IR_PRIM_GUARDNODES_H
#define PTC_IR_PRIM_GUARDNODES_H

#include "llvm/ADT/StringRef.h"

namespace ptc::prim {

/// On the entry, and on the program made of it: a dictionary from the text of a guard to the node that is the first to
/// need it. For sentences alone: guards that no node of the user's needs are not in it.
inline constexpr llvm::StringLiteral guardNodesAttr = "prim.guard_nodes";

} // namespace ptc::prim

#endif // PTC_IR_PRIM_GUARDNODES_H
