//===- RecurrenceOps.td - loops as one kernel -----------------------------===//
//
// An op of the loop dialect. Few files know of it, so it has a header of its own (Recurrence.h).
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_RECURRENCEOPS
#define PTC_IR_LOOP_RECURRENCEOPS

include "ir/loop/LoopOps.td"

def Loop_RecurrenceOp : Loop_Op<"recurrence", [AttrSizedOperandSegments, SingleBlock, NoTerminator]> {
  let summary = "nodes that run one after another for each step, with state carried from step to step";
  let description = [{
    For the steps 0, 1, ... of `steps` the nodes of the body run in order; in their expressions the symbol `t$` is the
    step. Each state has two block arguments: what it is now (read only), then what it will be in the next step
    (written whole in each step, read after that). At step 0 the state is `initial`; after the last step it
    lies in `finals`. `spare` is memory for a second copy. Where there are no steps the nodes of
    `otherwise` run instead, which see the operands alone. All of it is one kernel: within it groups
    of nodes are `loop.fused`, after planning with the attributes that a kernel has. The kernel's attribute `phase`
    says how many of its iterations, from the first one on, may run at the same time; then come the next.
  }];
  let arguments = (ins Prim_ExprAttr:$steps, Variadic<Loop_Buffer>:$initial, Variadic<Loop_Buffer>:$spare,
                       Variadic<Loop_Buffer>:$finals);
  let regions = (region SizedRegion<1>:$body, AnyRegion:$otherwise);
  let assemblyFormat = [{
    custom<OneExpr>($steps) (`from` $initial^ `:` type($initial) `by` $spare `:` type($spare) `to` $finals `:` type($finals))?
    $body (`otherwise` $otherwise^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The symbol that stands for the step.
    static constexpr ::llvm::StringLiteral stepSymbol = "t$";
    ::mlir::BlockArgument getNow(unsigned state) { return getBody().getArgument(2 * state); }
    ::mlir::BlockArgument getNext(unsigned state) { return getBody().getArgument(2 * state + 1); }
  }];
}

#endif // PTC_IR_LOOP_RECURRENCEOPS
