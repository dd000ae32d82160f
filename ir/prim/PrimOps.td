//===- PrimOps.td - structural primitives ---------------------------------===//
//
// Everything of the prim dialect that is not a row of PrimPointwise.td. A new
// structural primitive needs five places: its record here, its type rule in
// PrimTypeRules.cpp, a case in ir/eval, a lowering in lowering/prim_to_loop, a test.
//
// Dims, starts, pads and the like are expressions, never tensors. Axes are
// non-negative. Operands are already broadcast and of equal element types.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_PRIM_PRIMOPS
#define PTC_IR_PRIM_PRIMOPS

include "ir/prim/PrimPointwise.td"

//===----------------------------------------------------------------------===//
// Sources of values
//===----------------------------------------------------------------------===//

def Prim_ConstantOp : Prim_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a small constant (weights are prim.weight)";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Prim_ExprsOp : Prim_Op<"exprs", [Pure]> {
  let summary = "an integer tensor of rank 0 or 1 whose elements are expressions";
  let description = [{
    What Shape and arithmetic on shapes become. Rank 0 has one element.
  }];
  let arguments = (ins Prim_ExprArrayAttr:$values);
  let results = (outs Prim_IntTensor:$result);
  let assemblyFormat = "custom<ExprList>($values) attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Prim_WeightOp : Prim_Op<"weight", [Pure]> {
  let summary = "a reference to a weight's bytes, row-major, as stored in the model";
  let description = [{ With `others`: several weights of one type, one behind another along a new first dim. }];
  let arguments = (ins Prim_WeightRefAttr:$ref, OptionalAttr<Prim_WeightRefArrayAttr>:$others);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$ref (`others` $others^)? attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// All of them, in order.
    ::llvm::SmallVector<WeightRefAttr> getRefs();
    /// The type of each.
    ::mlir::RankedTensorType getPartType();
  }];
}

def Prim_IotaOp : Prim_Op<"iota", [Pure]> {
  let summary = "the index along an axis";
  let arguments = (ins I64Attr:$axis);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Views: index rewrites, never copies
//===----------------------------------------------------------------------===//

def Prim_BroadcastOp : Prim_Op<"broadcast", [Pure]> {
  let summary = "operand dim i becomes result dim axes[i]; a dim of 1 stretches";
  let arguments = (ins Prim_Tensor:$x, DenseI64ArrayAttr:$axes);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$x `,` $axes attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Prim_ReshapeOp : Prim_Op<"reshape", [Pure]> {
  let summary = "same elements in row-major order, other dims";
  let arguments = (ins Prim_Tensor:$x);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
}

def Prim_TransposeOp : Prim_InferredOp<"transpose"> {
  let summary = "result dim i is operand dim permutation[i]";
  let arguments = (ins Prim_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$x `,` $permutation attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
}

def Prim_SliceOp : Prim_Op<"slice", [Pure]> {
  let summary = "result[i] = x[starts + i*steps]; steps may be negative, never 0";
  let arguments = (ins Prim_Tensor:$x, Prim_ExprArrayAttr:$starts, DenseI64ArrayAttr:$steps);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$x custom<ExprList>($starts) `,` $steps attr-dict `:` type($x) `->` type($result)";
}

def Prim_PadOp : Prim_Op<"pad", [Pure]> {
  let summary = "adds low elements before each dim (negative: crops); the result's dims say the rest";
  let description = [{
    constant: the scalar tensor `value`; edge, reflect (without the border
    itself), wrap: taken from x.
  }];
  let arguments = (ins Prim_Tensor:$x, Prim_Tensor:$value, Prim_ExprArrayAttr:$low, Prim_PadKindAttr:$kind);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$kind $x `,` $value custom<ExprList>($low) attr-dict `:` functional-type(operands, results)";
}

def Prim_ConcatOp : Prim_InferredOp<"concat"> {
  let summary = "joins operands along an axis";
  let arguments = (ins Variadic<Prim_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$inputs `axis` $axis attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Indexing. Negative indices have been normalised; one out of range is a
// run-time error of the model.
//===----------------------------------------------------------------------===//

def Prim_GatherOp : Prim_InferredOp<"gather"> {
  let summary = "numpy.take: result dims are x[:axis] + indices + x[axis+1:]";
  let arguments = (ins Prim_Tensor:$x, Prim_IntTensor:$indices, I64Attr:$axis);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$x `,` $indices `,` $axis attr-dict `:` functional-type(operands, results)";
}
def Prim_GatherElementsOp : Prim_InferredOp<"gather_elements"> {
  let summary = "numpy.take_along_axis";
  let arguments = (ins Prim_Tensor:$x, Prim_IntTensor:$indices, I64Attr:$axis);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$x `,` $indices `,` $axis attr-dict `:` functional-type(operands, results)";
}
def Prim_GatherNdOp : Prim_InferredOp<"gather_nd"> {
  let summary = "index tuples stand in the last dim of indices; batch_dims leading dims are shared";
  let arguments = (ins Prim_Tensor:$x, Prim_IntTensor:$indices, I64Attr:$batch_dims);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$x `,` $indices `,` $batch_dims attr-dict `:` functional-type(operands, results)";
}
def Prim_ScatterElementsOp : Prim_Op<"scatter_elements", [Pure, AllTypesMatch<["x", "result"]>]> {
  let summary = "x with updates written (or combined) at indices along an axis";
  let arguments = (ins Prim_Tensor:$x, Prim_IntTensor:$indices, Prim_Tensor:$updates, I64Attr:$axis, Prim_ScatterKindAttr:$kind);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$kind $x `,` $indices `,` $updates `,` $axis attr-dict `:` functional-type(operands, results)";
}
def Prim_ScatterNdOp : Prim_Op<"scatter_nd", [Pure, AllTypesMatch<["x", "result"]>]> {
  let summary = "x with slices of updates written (or combined) at index tuples";
  let arguments = (ins Prim_Tensor:$x, Prim_IntTensor:$indices, Prim_Tensor:$updates, Prim_ScatterKindAttr:$kind);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$kind $x `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Reductions, scans, order
//===----------------------------------------------------------------------===//

def Prim_ReduceOp : Prim_InferredOp<"reduce"> {
  let summary = "reduces axes away (ascending list); f16 and bf16 accumulate in f32";
  let arguments = (ins Prim_Tensor:$x, Prim_ReduceKindAttr:$kind, DenseI64ArrayAttr:$axes);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$kind $x `,` $axes attr-dict `:` type($x) `->` type($result)";
}
def Prim_ArgReduceOp : Prim_InferredOp<"arg_reduce"> {
  let summary = "si64 index of the extremum along an axis, the axis reduced away";
  let arguments = (ins Prim_Tensor:$x, Prim_ArgKindAttr:$kind, I64Attr:$axis, BoolAttr:$select_last);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$kind $x `,` $axis `,` $select_last attr-dict `:` type($x) `->` type($result)";
}
def Prim_ScanOp : Prim_Op<"scan", [Pure, SameOperandsAndResultType]> {
  let summary = "running reduction along an axis (sum, prod, max, min)";
  let arguments = (ins Prim_Tensor:$x, Prim_ReduceKindAttr:$kind, I64Attr:$axis, BoolAttr:$exclusive, BoolAttr:$reverse);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$kind $x `,` $axis `,` $exclusive `,` $reverse attr-dict `:` type($x)";
}
def Prim_SortOp : Prim_Op<"sort", [Pure]> {
  let summary = "stable sort along an axis: values and si64 indices; keeps the first dims of the results (top-k)";
  let arguments = (ins Prim_Tensor:$x, I64Attr:$axis, BoolAttr:$descending);
  let results = (outs Prim_Tensor:$values, Prim_Tensor:$indices);
  let assemblyFormat = "$x `,` $axis `,` $descending attr-dict `:` type($x) `->` type($values) `,` type($indices)";
}

def Prim_NmsOp : Prim_Op<"nms", [Pure]> {
  let summary = "greedy non-maximum suppression along the last dim of the result";
  let description = [{
    boxes [..., n, 4] are (a0, b0, a1, b1) with a0 <= a1 and b0 <= b1, the best first; counts [...] say how many of a row take part.
    Row by row a box is kept unless one kept before it overlaps it: area of the intersection
    over that of the union above `threshold` (a scalar; boxes whose intersection, own or joint area is not positive do not
    overlap). Once `limit` (a scalar) are kept in a row the others are not.
  }];
  let arguments = (ins Prim_Tensor:$boxes, Prim_IntTensor:$counts, Prim_IntTensor:$limit, Prim_Tensor:$threshold);
  let results = (outs Prim_BoolTensor:$kept);
  let assemblyFormat = "$boxes `,` $counts `,` $limit `,` $threshold attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Windows, contractions, attention
//===----------------------------------------------------------------------===//

def Prim_WindowReduceOp : Prim_Op<"window_reduce", [Pure]> {
  let summary = "pooling over the trailing dims of x [batch, channels, spatial...]";
  let description = [{
    result[n,c,o] = reduce over k of x[n, c, o*strides + k*dilations - low].
    What lies outside x does not take part (sum: 0, max: -inf).
  }];
  let arguments = (ins Prim_Tensor:$x, Prim_ReduceKindAttr:$kind, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, Prim_ExprArrayAttr:$low);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$kind $x `window` $window `strides` $strides `dilations` $dilations `low` custom<ExprList>($low) attr-dict `:` type($x) `->` type($result)";
}

def Prim_MatmulOp : Prim_InferredOp<"matmul"> {
  let summary = "[batch..., m, k] x [batch..., k, n]; the rhs has all batch dims of the lhs, or the first of them, or none";
  let arguments = (ins Prim_Tensor:$lhs, Prim_Tensor:$rhs);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Prim_ConvolutionOp : Prim_Op<"convolution", [Pure]> {
  let summary = "x [batch, channels, spatial...], w [out, channels/groups, window...]";
  let description = [{
    result[n,o,p] = sum over c, k of x[n, c, p*strides + k*dilations - low] * w[o, c, k],
    zero outside x. Transposed: w is [channels, out/groups, window...] and
    result[n,o,q] sums x[n,c,p] * w[c,o,k] over all p, k with
    q = p*strides + k*dilations - low. The result's dims say the rest.
  }];
  let arguments = (ins Prim_Tensor:$x, Prim_Tensor:$w, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       Prim_ExprArrayAttr:$low, I64Attr:$groups, UnitAttr:$transposed);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = [{
    (`transposed` $transposed^)? $x `,` $w `strides` $strides `dilations` $dilations `low` custom<ExprList>($low)
    `groups` $groups attr-dict `:` functional-type(operands, results)
  }];
}

def Prim_AttentionOp : Prim_Op<"attention", [Pure]> {
  let summary = "softmax(q k^T * scale, capped and masked) v";
  let description = [{
    q [batch..., i, d], k [batch..., j, d], v [batch..., j, e]. With `softcap` c the score is
    c * tanh(q k^T * scale), which lies between -c and c. Masks broadcast to
    [batch..., i, j] and are applied in order: a float one is added to the score, where
    an i1 one is false the score becomes `masked_score` (-inf if absent). `causal`: query i sees
    keys j <= i. Result [batch..., i, e]. A row whose weights are NaN, as of a
    fully masked row, is NaN unless `zero_masked_rows`, which makes it 0.
  }];
  let arguments = (ins Prim_Tensor:$q, Prim_Tensor:$k, Prim_Tensor:$v, Variadic<Prim_Tensor>:$masks,
                       F64Attr:$scale, OptionalAttr<F64Attr>:$softcap, OptionalAttr<F64Attr>:$masked_score, UnitAttr:$causal,
                       UnitAttr:$zero_masked_rows);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`masks` `(` $masks^ `)`)? `scale` $scale (`softcap` $softcap^)? (`masked_score` $masked_score^)?
    (`causal` $causal^)? (`zero_masked_rows` $zero_masked_rows^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The score where an i1 mask is false.
    double getMaskedValue() {
      auto score = getMaskedScore();
      return score ? score->convertToDouble() : -std::numeric_limits<double>::infinity();
    }
  }];
}

//===----------------------------------------------------------------------===//
// Sizes that are known only when the program runs
//===----------------------------------------------------------------------===//

def Prim_BindOp : Prim_Op<"bind", [Prim_SymbolBinderInterface]> {
  let summary = "from here on the symbol has the scalar's value";
  let description = [{
    Dominates every use of the symbol, in types and in attributes. A value outside of
    the symbol's range (`prim.symbols` of the function), or above `at_most`, ends the run at this node. Memory is
    planned for `at_most`, an expression over symbols that are bound earlier; where it is absent no bound is known.
  }];
  let arguments = (ins StrAttr:$symbol, Prim_Tensor:$x, OptionalAttr<Prim_ExprAttr>:$at_most);
  let assemblyFormat = "$symbol `=` $x (`at_most` custom<OneExpr>($at_most)^)? attr-dict `:` type($x)";
  let extraClassDeclaration = [{
    ::ptc::Expr getUpper() { return getAtMostAttr() ? ::ptc::Expr(getAtMostAttr()) : ::ptc::Expr(); }
    void forEachBinding(::llvm::function_ref<void(::llvm::StringRef, ::ptc::Expr, bool)> visit) {
      visit(getSymbol(), getUpper(), /*isInside=*/false);
    }
  }];
  let hasVerifier = 1;
}

def Prim_GuardOp : Prim_Op<"guard"> {
  let summary = "the run ends here where the condition, over bound symbols, is 0";
  let description = [{ `because` is the sentence for a condition that is never met. }];
  let arguments = (ins Prim_ExprAttr:$condition, OptionalAttr<StrAttr>:$because);
  let assemblyFormat = "custom<OneExpr>($condition) (`because` $because^)? attr-dict";
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

def Prim_IfOp : Prim_Op<"if", [Prim_SymbolBinderInterface, RecursiveMemoryEffects, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, SingleBlockImplicitTerminator<"YieldOp">, NoRegionArguments]> {
  let summary = "one of two regions; both yield values of the results' types";
  let description = [{
    `joined` are sizes that differ: behind the op such a symbol has the value that the branch taken gives it, an expression
    of what is known at its end. Results' dims are written with these.
  }];
  let arguments = (ins Prim_BoolTensor:$condition, OptionalAttr<Prim_JoinedArrayAttr>:$joined);
  let results = (outs Variadic<Prim_Tensor>:$results);
  let regions = (region SizedRegion<1>:$then_region, SizedRegion<1>:$else_region);
  let assemblyFormat = [{
    $condition (`joins` $joined^)? `then` $then_region `else` $else_region attr-dict `:` functional-type(operands, results)
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    void forEachBinding(::llvm::function_ref<void(::llvm::StringRef, ::ptc::Expr, bool)> visit) {
      ::ptc::prim::forEachJoinedBinding(getJoinedAttr(), visit);
    }
  }];
}

def Prim_LoopOp : Prim_Op<"loop", [Prim_SymbolBinderInterface, RecursiveMemoryEffects, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, AttrSizedOperandSegments, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "runs its region round after round; states are carried on, rows are stacked";
  let description = [{
    Round i, counted from 0, runs if i < `trips` (never negative), i < `limit` (a si64 scalar) and the condition holds,
    as far as these are given; one of them is. The condition of round 0 is the operand, that of the next ones the first
    value that the region yields (there is none without the operand).

    Region arguments: the states, then element i along dim 0 of each scanned value, which has at least `trips` of them.
    Inside, the symbol `counter` is i. Values from outside are used directly. Yields: [condition,] the next states, rows.
    Results: the last states (without a round the initial ones), then the rows of each kind stacked along a new dim 0
    of as many elements as there were rounds: `trips` if nothing else limits them, else the symbol `rounds`,
    which the op binds for what comes after it.

    `carried` are sizes that change from round to round: a symbol of the region that is `initial` in round 0 and
    takes the value `next` after each round; behind the op the symbol `final` is the value after the last round.
    The dims of states are written with these.
  }];
  let arguments = (ins StrAttr:$counter, OptionalAttr<Prim_ExprAttr>:$trips, OptionalAttr<StrAttr>:$rounds,
                       OptionalAttr<Prim_CarriedArrayAttr>:$carried,
                       Optional<Prim_IntTensor>:$limit, Optional<Prim_BoolTensor>:$condition,
                       Variadic<Prim_Tensor>:$initial, Variadic<Prim_Tensor>:$scanned);
  let results = (outs Variadic<Prim_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $counter custom<Trips>($trips) (`limit` $limit^)? (`while` $condition^)? (`binds` $rounds^)? (`carries` $carried^)?
    `states` `(` $initial `)` `over` `(` $scanned `)` $body attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    void forEachBinding(::llvm::function_ref<void(::llvm::StringRef, ::ptc::Expr, bool)> visit) {
      ::ptc::prim::forEachLoopBinding(getCounter(), getTripsAttr(), getRoundsAttr(), getCarriedAttr(), visit);
    }
    unsigned getStateCount() { return getInitial().size(); }
    ::mlir::ArrayRef<::mlir::BlockArgument> getStateArgs() { return getBlock().getArguments().take_front(getStateCount()); }
    ::mlir::ArrayRef<::mlir::BlockArgument> getElementArgs() { return getBlock().getArguments().drop_front(getStateCount()); }
    /// What a round yields.
    ::mlir::Value getNextCondition() { return getCondition() ? getBlock().getTerminator()->getOperand(0) : ::mlir::Value(); }
    ::mlir::OperandRange getNextStates() {
      return getBlock().getTerminator()->getOperands().slice(getCondition() ? 1 : 0, getStateCount());
    }
    ::mlir::OperandRange getRows() {
      return getBlock().getTerminator()->getOperands().drop_front((getCondition() ? 1 : 0) + getStateCount());
    }
    ::mlir::ResultRange getFinalStates() { return getResults().take_front(getStateCount()); }
    ::mlir::ResultRange getStacks() { return getResults().drop_front(getStateCount()); }
    /// The number of rounds behind the op: an expression; null if no symbol stands for it.
    ::ptc::Expr getRoundCount();
  }];
}

def Prim_YieldOp : Prim_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["IfOp", "LoopOp"]>]> {
  let arguments = (ins Variadic<Prim_Tensor>:$values);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Functions of the runtime
//===----------------------------------------------------------------------===//

def Prim_CallOp : Prim_Op<"call", [Pure]> {
  let summary = "a function of the runtime, for what loops over elements cannot say";
  let description = [{
    Strings, sequences, operators of the user's own. `callee` is a row of PrimCalls.def, which says what operands,
    numbers and results mean; the rows `custom_...` call functions of the library that `custom` names.
  }];
  let arguments = (ins StrAttr:$callee, Variadic<Prim_Tensor>:$inputs, Prim_ExprArrayAttr:$numbers,
                       OptionalAttr<Prim_CustomAttr>:$custom);
  let results = (outs Variadic<Prim_Tensor>:$results);
  let assemblyFormat = [{
    $callee `(` $inputs `)` custom<ExprList>($numbers) (`of` $custom^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Observation
//===----------------------------------------------------------------------===//

def Prim_TapOp : Prim_Op<"tap"> {
  let summary = "shows a value to the observer of a run; its location names the node";
  let description = [{
    `output` is the value's name in the model, `number` the tap's place in the order of the
    model's graph. An `optional` tap (one of many that a pattern asked for) sees what the
    program computes anyway; where that is nothing it loses its operand and says why.
  }];
  let arguments = (ins Optional<Prim_Tensor>:$x, StrAttr:$output, I64Attr:$number, UnitAttr:$optional,
                       OptionalAttr<StrAttr>:$reason);
  let assemblyFormat = "$number $output ($x^ `:` type($x))? (`optional` $optional^)? (`because` $reason^)? attr-dict";
}

#endif // PTC_IR_PRIM_PRIMOPS
