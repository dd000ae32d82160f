//===- LoopForm.h - a loop before it is a program ---------------*- C++ -*-===//
//
// Loop, Scan and SequenceMap (Loops.cpp) say what their rounds are; here it becomes a region, or the rounds one after
// the other.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_DECOMP_LOOPFORM_H
#define PTC_LOWERING_DECOMP_LOOPFORM_H

#include "lowering/decomp/NodeContext.h"

namespace ptc::decomp {

/// A loop as ONNX has it, before anything is imported.
struct LoopForm {
  Expr trips;             // null: only the limit or the condition ends the loop
  Value limit, condition; // null where there is none
  Values states, scanned; // dim 0 of the latter is that of the trips
  size_t stacks = 0;
  bool hasCondition = false; // the body gives one
};

/// The rounds of one loop: it imports the body for a round, and gives [condition,] states, rows.
using LoopBody =
    llvm::function_ref<std::optional<Values>(Expr round, llvm::ArrayRef<Value> states, llvm::ArrayRef<Value> elements)>;

/// The loop's results: the last states, then the rows stacked along a new dim 0. Nothing after a diagnostic.
std::optional<Values> buildLoop(NodeContext &n, const LoopForm &form, LoopBody importRound);
/// The same, always as the region of a prim.loop.
std::optional<Values> buildRegionLoop(NodeContext &n, LoopForm form, LoopBody importRound);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_LOOPFORM_H
