//===- BlockGroups.h - a block's nodes as groups, and back ------*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_BLOCKGROUPS_H
#define PTC_COMPILER_SCHEDULE_BLOCKGROUPS_H

#include "compiler/schedule/GroupOrder.h"
#include "compiler/schedule/Scheduler.h"
#include "llvm/ADT/StringSet.h"
#include <vector>

namespace ptc::loop {

/// Symbols that ops of the block bind for what comes after them.
llvm::StringSet<> getSymbolsBoundIn(mlir::Block &block);

/// Brings what groups do not move to the block's beginning: buffers and the like, and guards that can be checked there.
void hoistDeclarations(mlir::Block &block);
/// Every node and every op that runs by itself, a group each, in the block's order.
std::vector<Group> collectGroups(mlir::Block &block);
/// What must run before what, of such groups.
GroupOrder orderGroups(llvm::ArrayRef<Group> groups, const FusionContext &context);

/// What the group's nodes read and write.
void updateAccesses(Group &group);

/// Gives the block the groups in that order (EmitGroups.cpp), each as the op that will be a kernel. Those without nodes
/// are left out.
void emitGroups(mlir::Block &block, llvm::ArrayRef<Group *> groups, const FusionContext &context);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_BLOCKGROUPS_H
