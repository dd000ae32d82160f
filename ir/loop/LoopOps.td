//===- LoopOps.td - the loop dialect --------------------------------------===//
//
// Loop-level IR in the manner of TorchInductor: nodes with an iteration domain
// and a scalar body over buffers. README.md maps Inductor's op handler to it.
//
// Life of a module:
//   after prim-to-loop   loop.program holds buffers and unfused nodes; views have
//                        become index expressions; layouts of buffers are open
//   after assign-layouts every buffer type carries a layout
//   within schedule      accesses are linearized, nodes fused (loop.fused)
//   after schedule       nodes live in loop.kernel symbols, loop.launch calls
//                        them; indices inside kernels are linear (elements from
//                        the start of rank-1 memory), dims merged
//   after plan-memory    loop.buffer has become loop.at (offset in the arena) or,
//                        where no bound is known, loop.grow
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_LOOPOPS
#define PTC_IR_LOOP_LOOPOPS

include "ir/prim/PrimInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"

def Loop_Dialect : Dialect {
  let name = "loop";
  let summary = "Loop nodes over buffers, kernels and the program that launches them";
  let cppNamespace = "::ptc::loop";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::ptc::prim::PrimDialect"];
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
  }];
}

//===----------------------------------------------------------------------===//
// Attributes and types
//===----------------------------------------------------------------------===//

def Loop_LayoutAttr : AttrDef<Loop_Dialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "how logical dims lie in memory: order[0] is the outermost";
  let parameters = (ins OptionalArrayRefParameter<"int64_t">:$order);
  let assemblyFormat = "`<` `[` (`]`) : ($order^ `]`)? `>`";
  let extraClassDeclaration = [{
    static LayoutAttr getRowMajor(::mlir::MLIRContext *context, int64_t rank);
    bool isRowMajor() const;
  }];
}

def Loop_BufferType : TypeDef<Loop_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "a buffer of logical dims; without a layout it is still flexible";
  let description = [{
    `!loop.buffer<[batch, 64] x f32>`, `!loop.buffer<[batch, 64] x f32, <[1, 0]>>`.
    The element type is signless (signedness has gone into the bodies' ops);
    i1 is stored as one byte, 0 or 1.
  }];
  let parameters = (ins ArrayRefParameter<"::ptc::ExprAttr">:$dims, "::mlir::Type":$elementType, "LayoutAttr":$layout);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::ptc::Expr> getShape() const;
    int64_t getRank() const { return getDims().size(); }
    /// Bytes of one element in memory.
    int64_t getElementBytes() const;
    /// Number of elements.
    ::ptc::Expr getElementCount() const;
    /// Strides in elements of each logical dim; the layout must be known.
    ::llvm::SmallVector<::ptc::Expr> getStrides() const;
    static BufferType get(::mlir::MLIRContext *context, ::llvm::ArrayRef<::ptc::Expr> shape,
                          ::mlir::Type elementType, LayoutAttr layout = {});
  }];
}

defvar Loop_ReduceKindAttr = Prim_ReduceKindAttr;

// Where a packed weight's elements come from: dest dim i has extents[i] and steps
// strides[i] elements in the source; element = 0 where a bound fails.
def Loop_RecipeAttr : AttrDef<Loop_Dialect, "Recipe"> {
  let mnemonic = "recipe";
  let summary = "how a weight's stored form is gathered from its source";
  let description = [{
    dest[e0, e1, ...] (row-major over `extents`) = source[offset + sum e_i * strides_i].
    Panels: dim `lane`, of extent 16 or, where dims behind it have the other columns
    of a panel, a divisor of it, continues dim `panel`; elements with panel * extent
    of `lane` + lane >= limit are 0 (`panel` is -1 where there are no panels).
    `element` is the source's element type if the stored form converts it.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$extents, ArrayRefParameter<"int64_t">:$strides, "int64_t":$offset,
                        "int64_t":$panel, "int64_t":$lane, "int64_t":$limit);
  let assemblyFormat = "`<` `extents` `=` `[` $extents `]` `,` `strides` `=` `[` $strides `]` `,` `offset` `=` $offset `,` `panel` `=` $panel `,` `lane` `=` $lane `,` `limit` `=` $limit `>`";
}

class Loop_Op<string mnemonic, list<Trait> traits = []> : Op<Loop_Dialect, mnemonic, traits>;
def Loop_Buffer : Type<CPred<"::llvm::isa<::ptc::loop::BufferType>($_self)">, "a loop buffer", "::ptc::loop::BufferType">;

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

def Loop_ProgramOp : Loop_Op<"program", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "one function of the library for one target: buffers, nodes or launches in order";
  let description = [{
    Block arguments are the inputs, then the outputs. `symbols`: name ->
    #prim.symbol. `guards` must not be 0. `aliases` holds pairs (input index,
    output index) that may share a buffer. `symbol_sources`: name of a symbol -> [input,
    dim] where it is bound first. `input_names`, `output_names`: ONNX names;
    `input_types`, `output_types`: element types with signedness.
    After plan-memory `arena` is the arena's size in bytes, `lower_bound` the largest live set.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$inputs, StrArrayAttr:$input_names, StrArrayAttr:$output_names,
                       TypeArrayAttr:$input_types, TypeArrayAttr:$output_types,
                       DictionaryAttr:$symbols, DictionaryAttr:$symbol_sources, Prim_ExprArrayAttr:$guards, DenseI64ArrayAttr:$aliases,
                       OptionalAttr<Prim_ExprAttr>:$arena, OptionalAttr<Prim_ExprAttr>:$lower_bound);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    ::mlir::ArrayRef<::mlir::BlockArgument> getInputArgs() { return getBlock().getArguments().take_front(getInputs()); }
    ::mlir::ArrayRef<::mlir::BlockArgument> getOutputArgs() { return getBlock().getArguments().drop_front(getInputs()); }
  }];
}

def Loop_BufferOp : Loop_Op<"buffer", []> {
  let summary = "an intermediate buffer, placed in the arena later";
  let results = (outs Loop_Buffer:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Loop_FlattenOp : Loop_Op<"flatten", [Pure]> {
  let summary = "the memory of a buffer as one dim; what kernels are given";
  let arguments = (ins Loop_Buffer:$buffer);
  let results = (outs Loop_Buffer:$result);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer) `->` type($result)";
}

def Loop_PartOp : Loop_Op<"part", [Pure]> {
  let summary = "a buffer within another one, from an element on";
  let description = [{
    A view like loop.flatten: both are row-major. Parts of one buffer that are in use at one time do not overlap. The
    offset is evaluated where the part is used: its symbols need to be bound there only.
  }];
  let arguments = (ins Loop_Buffer:$buffer, Prim_ExprAttr:$offset);
  let results = (outs Loop_Buffer:$result);
  let assemblyFormat = "$buffer `from` custom<OneExpr>($offset) attr-dict `:` type($buffer) `->` type($result)";
}

def Loop_AtOp : Loop_Op<"at", [Pure]> {
  let summary = "a buffer at a byte offset of the arena";
  let arguments = (ins Prim_ExprAttr:$offset);
  let results = (outs Loop_Buffer:$result);
  let assemblyFormat = "custom<OneExpr>($offset) attr-dict `:` type($result)";
}

def Loop_WeightOp : Loop_Op<"weight", [Pure]> {
  let summary = "a weight in its stored form";
  let description = [{
    Without a recipe the bytes are stored as they are. `source` is the tensor type in the file. With `others`: several
    weights of that type, and the recipe reads their elements as if they lay one behind another.
  }];
  let arguments = (ins Prim_WeightRefAttr:$ref, OptionalAttr<Prim_WeightRefArrayAttr>:$others,
                       OptionalAttr<Loop_RecipeAttr>:$recipe);
  let results = (outs Loop_Buffer:$result);
  let assemblyFormat = "$ref (`others` $others^)? (`recipe` $recipe^)? attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// All of them, in order.
    ::llvm::SmallVector<prim::WeightRefAttr> getRefs();
  }];
}

def Loop_ConstantOp : Loop_Op<"constant", [Pure]> {
  let summary = "a small constant buffer, row-major";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Loop_Buffer:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

def Loop_GrowOp : Loop_Op<"grow", []> {
  let summary = "a buffer in memory of the context that grows when it must; `slot` numbers it";
  let description = [{ Stands before all uses and behind the binds of the symbols in `bytes`. What the slot held is lost. }];
  let arguments = (ins I64Attr:$slot, Prim_ExprAttr:$bytes);
  let results = (outs Loop_Buffer:$result);
  let assemblyFormat = "$slot `bytes` custom<OneExpr>($bytes) attr-dict `:` type($result)";
}

def Loop_RegrowOp : Loop_Op<"regrow", []> {
  let summary = "the buffer, which lies in memory that grows, has room for so many bytes now";
  let description = [{ What it held stays only with `keeps`, which costs a copy and the memory of both while it grows. }];
  let arguments = (ins Loop_Buffer:$buffer, Prim_ExprAttr:$bytes, UnitAttr:$keeps);
  let assemblyFormat = "$buffer (`keeps` $keeps^)? `bytes` custom<OneExpr>($bytes) attr-dict `:` type($buffer)";
}

def Loop_OutputOp : Loop_Op<"output", []> {
  let summary = "tells the caller the dims of a result, and gets its memory where the caller has given none";
  let description = [{ For results whose dims the program learns while it runs; stands before all other uses. }];
  let arguments = (ins Loop_Buffer:$buffer);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer)";
}

def Loop_BindOp : Loop_Op<"bind", [Prim_SymbolBinderInterface]> {
  let summary = "from here on the symbol has the value of a one-element i64 buffer, which the host reads";
  let description = [{
    Or that of an expression over symbols bound earlier. prim.bind says the rest. The symbol's range is that in `symbols`
    of the program.
  }];
  let arguments = (ins StrAttr:$symbol, Optional<Loop_Buffer>:$buffer, OptionalAttr<Prim_ExprAttr>:$value,
                       OptionalAttr<Prim_ExprAttr>:$at_most);
  let assemblyFormat = [{
    $symbol `=` ($buffer^ `:` type($buffer))? (`value` custom<OneExpr>($value)^)? (`at_most` custom<OneExpr>($at_most)^)? attr-dict
  }];
  let extraClassDeclaration = [{
    ::ptc::Expr getUpper() { return getAtMostAttr() ? ::ptc::Expr(getAtMostAttr()) : ::ptc::Expr(); }
    void forEachBinding(::llvm::function_ref<void(::llvm::StringRef, ::ptc::Expr, bool)> visit) {
      visit(getSymbol(), getUpper(), /*isInside=*/false);
    }
  }];
}

def Loop_GuardOp : Loop_Op<"guard", []> {
  let summary = "the run ends here where the condition, over bound symbols, is 0";
  let arguments = (ins Prim_ExprAttr:$condition, OptionalAttr<StrAttr>:$because);
  let assemblyFormat = "custom<OneExpr>($condition) (`because` $because^)? attr-dict";
}

def Loop_IfOp : Loop_Op<"if", [Prim_SymbolBinderInterface, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "runs one region, by a one-element i1 buffer read on the host";
  let description = [{ `joined`: as of prim.if; at the end of a region the host gives these symbols their values. }];
  let arguments = (ins Loop_Buffer:$condition, OptionalAttr<Prim_JoinedArrayAttr>:$joined);
  let regions = (region SizedRegion<1>:$then_region, SizedRegion<1>:$else_region);
  let assemblyFormat = [{
    $condition (`joins` $joined^)? `then` $then_region `else` $else_region attr-dict `:` type($condition)
  }];
  let extraClassDeclaration = [{
    void forEachBinding(::llvm::function_ref<void(::llvm::StringRef, ::ptc::Expr, bool)> visit) {
      ::ptc::prim::forEachJoinedBinding(getJoinedAttr(), visit);
    }
  }];
}

def Loop_RepeatOp : Loop_Op<"repeat", [Prim_SymbolBinderInterface, SingleBlock, NoTerminator, NoRegionArguments, AttrSizedOperandSegments]> {
  let summary = "runs its region round after round";
  let description = [{
    Round i, counted from 0, runs if i < `trips`, i < the si64 in `limit` and the i1 in `condition` is not 0, as far as
    these are given. The host reads the buffers before each round; the region writes a new condition. Inside,
    the symbol `counter` is i; behind the op the symbol `rounds` is the number of rounds.

    A buffer that is declared inside holds a value of one round. One that is declared outside and used inside keeps its
    bytes for itself from the first round to the last one.
  }];
  let arguments = (ins StrAttr:$counter, OptionalAttr<Prim_ExprAttr>:$trips, OptionalAttr<StrAttr>:$rounds,
                       OptionalAttr<Prim_CarriedArrayAttr>:$carried,
                       Optional<Loop_Buffer>:$limit, Optional<Loop_Buffer>:$condition);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $counter custom<Trips>($trips) (`limit` $limit^ `:` type($limit))? (`while` $condition^ `:` type($condition))?
    (`binds` $rounds^)? (`carries` $carried^)? $body attr-dict
  }];
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    void forEachBinding(::llvm::function_ref<void(::llvm::StringRef, ::ptc::Expr, bool)> visit) {
      ::ptc::prim::forEachLoopBinding(getCounter(), getTripsAttr(), getRoundsAttr(), getCarriedAttr(), visit);
    }
  }];
}

def Loop_CallOp : Loop_Op<"call", [AttrSizedOperandSegments]> {
  let summary = "runs a function of the runtime on the calling thread";
  let description = [{
    `ptc_rt_<callee>` is given the addresses of `read`, then those of `written`, all of them row-major, and the values
    of `numbers`. A buffer that is in both is updated. It is a step of a program, no part of a kernel.
  }];
  let arguments = (ins StrAttr:$callee, Variadic<Loop_Buffer>:$read, Variadic<Loop_Buffer>:$written, Prim_ExprArrayAttr:$numbers,
                       OptionalAttr<Prim_CustomAttr>:$custom);
  let assemblyFormat = [{
    $callee `read` `(` $read `)` `written` `(` $written `)` `numbers` custom<ExprList>($numbers) (`of` $custom^)? attr-dict
    `:` `(` type($read) `)` `(` type($written) `)`
  }];
  let hasVerifier = 1;
}

def Loop_FusedOp : Loop_Op<"fused", [SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "nodes that will be one kernel; they share their first `parallel` dims";
  let arguments = (ins I64Attr:$parallel);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`parallel` $parallel $body attr-dict";
}

def Loop_KernelOp : Loop_Op<"kernel", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "one parallel region: nodes over linear memory";
  let description = [{
    Block arguments are rank-1 buffers (pointers); `arguments_written` are the
    indices of those that are written. The first `parallel` dims of every node are
    the kernel's own and equal in all of them; nothing else is shared between
    iterations of those dims, which may run in any order on any thread. Beside a contraction they are those of the
    nodes behind it, count its rows, and are 0 where these are none that run row by row.
    A kernel whose node has one dim and parallel = 1 is split anywhere.
    `config` is what the target's planner decided (tile sizes, vector dim).
    `flops`, `bytes_read`, `bytes_written` are expressions for reports and grain.
    `on_host`, in programs of a device: launches of this kernel run on the host, and why.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols, I64Attr:$parallel, DenseI64ArrayAttr:$arguments_written,
                       OptionalAttr<DictionaryAttr>:$config, OptionalAttr<Prim_ExprAttr>:$iterations, OptionalAttr<Prim_ExprAttr>:$grain,
                       OptionalAttr<Prim_ExprAttr>:$scratch, OptionalAttr<Prim_ExprAttr>:$flops,
                       OptionalAttr<Prim_ExprAttr>:$bytes_read, OptionalAttr<Prim_ExprAttr>:$bytes_written,
                       OptionalAttr<StrAttr>:$on_host);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{ ::mlir::Block &getBlock() { return getBody().front(); } }];
}

def Loop_LaunchOp : Loop_Op<"launch", []> {
  let summary = "runs a kernel; its location carries the user's nodes";
  let description = [{
    `symbols` are the values of the kernel's symbols (alpha-renamed) in its order. A launch that is `joined`
    runs in one parallel loop with the launch right before it: neither depends on the other.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Loop_Buffer>:$buffers, Prim_ExprArrayAttr:$symbols,
                       UnitAttr:$joined);
  let assemblyFormat = "$kernel `(` $buffers `)` `symbols` custom<ExprList>($symbols) attr-dict `:` type($buffers)";
  let hasVerifier = 1;
}

def Loop_TransferOp : Loop_Op<"transfer", []> {
  let summary = "copies a buffer that lies on a device to its place on the host, or back";
  let description = [{ Only in programs of a device; `Places.h` says which buffers lie where. }];
  let arguments = (ins Loop_Buffer:$buffer, UnitAttr:$to_device);
  let assemblyFormat = "$buffer (`to_device` $to_device^):(`to_host`)? attr-dict `:` type($buffer)";
}

def Loop_TapOp : Loop_Op<"tap", []> {
  let summary = "shows a value to the observer of a run, right after the launch that wrote it";
  let description = [{
    Element (d0, d1, ...) of a value with the dims `domain` lies in the buffer at `indices` , which is one
    affine position once accesses are linear. `type` has the value's signedness. prim.tap says the rest;
    a tap without a buffer sees nothing and says why.
  }];
  let arguments = (ins Optional<Loop_Buffer>:$buffer, Prim_ExprArrayAttr:$domain, Prim_ExprArrayAttr:$indices,
                       TypeAttr:$type, StrAttr:$output, I64Attr:$number, OptionalAttr<StrAttr>:$reason);
  let assemblyFormat = [{
    $number $output $type custom<ExprList>($domain) ($buffer^ `:` type($buffer))? `at` custom<ExprList>($indices)
    (`because` $reason^)? attr-dict
  }];
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

// `domain` are the extents of dims d0, d1, ...; an extent may use symbols and
// earlier dims. Bodies may refer to buffers and to nothing else from outside.
class Loop_Node<string mnemonic, list<Trait> traits = []>
    : Loop_Op<mnemonic, !listconcat([SingleBlock, NoTerminator, NoRegionArguments], traits)>;

def Loop_PointwiseOp : Loop_Node<"pointwise"> {
  let summary = "runs the body once for each point of the domain";
  let arguments = (ins Prim_ExprArrayAttr:$domain);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "custom<ExprList>($domain) $body attr-dict";
}

def Loop_ReductionOp : Loop_Node<"reduction"> {
  let summary = "the last `reduced` dims are reduced by loop.reduce";
  let description = [{
    Ops that depend on a loop.reduce or loop.arg_reduce of the body run once after the
    reduced dims; the others run for every point. Stores of the first kind must not use the reduced dims.
  }];
  let arguments = (ins Prim_ExprArrayAttr:$domain, I64Attr:$reduced);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "custom<ExprList>($domain) `reduced` $reduced $body attr-dict";
}

def Loop_ScanOp : Loop_Node<"scan"> {
  let summary = "the last dim runs in order (`reverse`: backwards); loop.running holds the state";
  let arguments = (ins Prim_ExprArrayAttr:$domain, UnitAttr:$reverse);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "custom<ExprList>($domain) (`reverse` $reverse^)? $body attr-dict";
}

def Loop_ScatterOp : Loop_Node<"scatter"> {
  let summary = "a pointwise whose stores may meet at one element: points run in order of the domain";
  let description = [{ The first `independent` dims never meet and may run in parallel. }];
  let arguments = (ins Prim_ExprArrayAttr:$domain, I64Attr:$independent);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "custom<ExprList>($domain) `independent` $independent $body attr-dict";
}

def Loop_SortOp : Loop_Op<"sort", [SingleBlock, NoTerminator]> {
  let summary = "stable sort of rows; stores the first `kept` values and indices";
  let description = [{
    domain: [outer..., row length]. `key` region yields the key at (outer, last
    dim); `body` region has arguments (value, si64 index) at (outer, rank < kept), where
    the last dim is now the rank.
  }];
  let arguments = (ins Prim_ExprArrayAttr:$domain, Prim_ExprAttr:$kept, BoolAttr:$descending, BoolAttr:$is_unsigned);
  let regions = (region SizedRegion<1>:$key, SizedRegion<1>:$body);
  let assemblyFormat = "custom<ExprList>($domain) `kept` custom<OneExpr>($kept) $descending `,` $is_unsigned `key` $key `body` $body attr-dict";
}

def Loop_GreedyOp : Loop_Op<"greedy", [SingleBlock, NoTerminator]> {
  let summary = "chooses points of rows in order, each unless it conflicts with one chosen before";
  let description = [{
    domain: [outer..., row length]. At a point of a row: `candidate` (argument: how many of the row are chosen so far) says
    whether it may be chosen at all, `conflict` (argument: the last dim of a chosen point) whether that one excludes it. `body`
    (argument: whether it is chosen, i1) runs for every point.
  }];
  let arguments = (ins Prim_ExprArrayAttr:$domain);
  let regions = (region SizedRegion<1>:$candidate, SizedRegion<1>:$conflict, SizedRegion<1>:$body);
  let assemblyFormat = "custom<ExprList>($domain) `candidate` $candidate `conflict` $conflict `body` $body attr-dict";
}

//===----------------------------------------------------------------------===//
// Templates: compute-bound nodes with prologue and epilogue regions
//===----------------------------------------------------------------------===//

def Loop_ContractionOp : Loop_Op<"contraction", [SingleBlock, NoTerminator]> {
  let summary = "acc[b, m, n] = sum over k of lhs(b, m, k) * rhs(b, k, n); then the epilogue";
  let description = [{
    Matrix products and convolutions. domain: [batch..., m..., n..., k...] with the
    counts given; dims are numbered in that order (d0...). `lhs` may use b, m, k dims;
    `rhs` b, k, n dims; the epilogue (argument: acc) b, m, n dims. lhs and rhs end in
    loop.yield. Where the lhs is a plain load its address is affine in m and k and it
    is read in place; otherwise (masked, computed, not unit-stride) tiles of it are packed.
    Accumulates in f32 for f32, f16, bf16; f64 for f64; i32 for 8-bit integers; else in its own type.
    A rhs that is a weight in unit panels begins with its loop.panels. `needed` has expressions over the dims: a term
    where one of them is negative is zero, or enters a sum that nobody reads, and may be left out.
  }];
  let arguments = (ins Prim_ExprArrayAttr:$domain, I64Attr:$batch, I64Attr:$m, I64Attr:$n, I64Attr:$k,
                       OptionalAttr<Prim_ExprArrayAttr>:$needed);
  let regions = (region SizedRegion<1>:$lhs, SizedRegion<1>:$rhs, SizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    custom<ExprList>($domain) `batch` $batch `m` $m `n` $n `k` $k (`needed` custom<ExprList>($needed)^)?
    `lhs` $lhs `rhs` $rhs `epilogue` $epilogue attr-dict
  }];
}

def Loop_PanelsOp : Loop_Op<"panels", []> {
  let summary = "in a contraction's rhs: an element of a packed weight";
  let description = [{
    Instead of a load: buffer is rank 1 and packed [batch...][ceil(n/16)][k/group][16][group]; yields the element at
    the contraction's (b, k, n). Where the batch has more matrices than are packed, they repeat. `group` divides the last k dim: where an instruction adds up several products, their
    operands are neighbours. `bits` above 0: elements are unsigned numbers of so many bits, the `group` of them in 32, the
    first lowest. What follows in the region converts the element, and may read other weights beside it: one with a `row`
    has rows of its own, [batch...][ceil(n/16)][rows][16], of which the expression over k dims says which.
  }];
  let arguments = (ins Loop_Buffer:$buffer, DefaultValuedAttr<I64Attr, "1">:$group, DefaultValuedAttr<I64Attr, "0">:$bits,
                       OptionalAttr<Prim_ExprAttr>:$row);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$buffer (`row` custom<OneExpr>($row)^)? attr-dict `:` type($buffer) `->` type($result)";
}

def Loop_AttentionOp : Loop_Op<"attention", [SingleBlock, NoTerminator]> {
  let summary = "streaming softmax(score(q k^T)) v over [b..., i, j, d, e]";
  let description = [{
    domain: [batch..., i (queries), j (keys), d, e]. Regions: q uses b, i, d; k uses
    b, j, d; v uses b, j, e; each ends in loop.yield. `score` (argument: f32 dot product)
    uses b, i, j and yields the score that enters the softmax (scale, mask); the epilogue
    (argument: f32 result) uses b, i, e.
  }];
  let arguments = (ins Prim_ExprArrayAttr:$domain, I64Attr:$batch, UnitAttr:$causal, UnitAttr:$zero_masked_rows);
  let regions = (region SizedRegion<1>:$q, SizedRegion<1>:$k, SizedRegion<1>:$v, SizedRegion<1>:$score, SizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    custom<ExprList>($domain) `batch` $batch (`causal` $causal^)? (`zero_masked_rows` $zero_masked_rows^)?
    `q` $q `k` $k `v` $v `score` $score `epilogue` $epilogue attr-dict
  }];
}

//===----------------------------------------------------------------------===//
// Bodies: memory ops (arithmetic is arith and math on scalars)
//===----------------------------------------------------------------------===//

def Loop_LoadOp : Loop_Op<"load", [MemoryEffects<[MemRead]>,
    TypesMatchWith<"the result is an element of the buffer", "buffer", "result",
                   "::llvm::cast<::ptc::loop::BufferType>($_self).getElementType()">]> {
  let summary = "element at logical indices; operand k stands in them as v$k";
  let arguments = (ins Loop_Buffer:$buffer, Prim_ExprArrayAttr:$indices, Variadic<I64>:$operands_);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$buffer custom<ExprList>($indices) (`(` $operands_^ `)`)? attr-dict `:` type($buffer)";
  let extraClassDeclaration = [{ ::mlir::OperandRange getIndexOperands() { return getOperands_(); } }];
  let builders = [OpBuilder<(ins "::mlir::Value":$buffer, "::llvm::ArrayRef<::ptc::Expr>":$indices,
                                 CArg<"::mlir::ValueRange", "{}">:$operands)>];
}

def Loop_StoreOp : Loop_Op<"store", [MemoryEffects<[MemWrite]>,
    TypesMatchWith<"the value is an element of the buffer", "buffer", "value",
                   "::llvm::cast<::ptc::loop::BufferType>($_self).getElementType()">]> {
  let summary = "writes, or combines with `combine` (sum, prod, max, min) what is there";
  let arguments = (ins AnyType:$value, Loop_Buffer:$buffer, Prim_ExprArrayAttr:$indices, Variadic<I64>:$operands_,
                       OptionalAttr<Loop_ReduceKindAttr>:$combine);
  let assemblyFormat = "$value `,` $buffer custom<ExprList>($indices) (`(` $operands_^ `)`)? (`combine` $combine^)? attr-dict `:` type($buffer)";
  let extraClassDeclaration = [{ ::mlir::OperandRange getIndexOperands() { return getOperands_(); } }];
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$buffer, "::llvm::ArrayRef<::ptc::Expr>":$indices,
                                 CArg<"::mlir::ValueRange", "{}">:$operands)>];
}

def Loop_IndexOp : Loop_Op<"index", [Pure]> {
  let summary = "the value of an expression as i64";
  let arguments = (ins Prim_ExprAttr:$expr, Variadic<I64>:$operands_);
  let results = (outs I64:$result);
  let assemblyFormat = "custom<OneExpr>($expr) (`(` $operands_^ `)`)? attr-dict";
}

def Loop_CheckIndexOp : Loop_Op<"check_index", []> {
  let summary = "an index that came from memory: 0 <= i < extent or the call fails; negative ones wrap first where `loop.wraps` stands (WrappedIndices.h)";
  let arguments = (ins I64:$index, Prim_ExprAttr:$extent);
  let results = (outs I64:$result);
  let assemblyFormat = "$index `in` custom<OneExpr>($extent) attr-dict";
}

def Loop_MaskedOp : Loop_Op<"masked", [SingleBlock, NoRegionArguments, RecursiveMemoryEffects, TypesMatchWith<"the result is of the type of other", "result", "other", "$_self">]> {
  let summary = "the region's value where all conditions are >= 0, else `other`; nothing is read elsewhere";
  let arguments = (ins Prim_ExprArrayAttr:$conditions, Variadic<I64>:$operands_, AnyType:$other);
  let results = (outs AnyType:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "custom<ExprList>($conditions) (`(` $operands_^ `)`)? `else` $other $body attr-dict `:` type($result)";
}

def Loop_YieldOp : Loop_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Loop_ReduceOp : Loop_Op<"reduce", [Pure, SameOperandsAndResultType]> {
  let summary = "reduces a value over the node's reduced dims";
  let description = [{ max and min of floats yield NaN if any value is NaN, unless `no_nan` (a result that is NaN anyway elsewhere). }];
  let arguments = (ins AnyType:$value, Loop_ReduceKindAttr:$kind, UnitAttr:$is_unsigned, UnitAttr:$no_nan);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$kind $value (`unsigned` $is_unsigned^)? (`no_nan` $no_nan^)? attr-dict `:` type($value)";
}

def Loop_ArgReduceOp : Loop_Op<"arg_reduce", [Pure]> {
  let summary = "index along the (one) reduced dim of the first (or last) extremum; NaN counts as extreme";
  let arguments = (ins AnyType:$value, Prim_ArgKindAttr:$kind, BoolAttr:$select_last, UnitAttr:$is_unsigned);
  let results = (outs I64:$result);
  let assemblyFormat = "$kind $value `,` $select_last (`unsigned` $is_unsigned^)? attr-dict `:` type($value)";
}

def Loop_RunningOp : Loop_Op<"running", [Pure, SameOperandsAndResultType]> {
  let summary = "in a scan: the reduction of the values so far, with (or without: exclusive) this one";
  let arguments = (ins AnyType:$value, Loop_ReduceKindAttr:$kind, UnitAttr:$exclusive, UnitAttr:$is_unsigned);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$kind $value (`exclusive` $exclusive^)? (`unsigned` $is_unsigned^)? attr-dict `:` type($value)";
}

#endif // PTC_IR_LOOP_LOOPOPS
