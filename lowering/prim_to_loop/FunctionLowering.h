//===- FunctionLowering.h - state of lowering one function ------*- C++ -*-===//
//
// Lowering is define-by-run, as TorchInductor's: the value of every prim op is a
// `Tensor`, a function from an index to the scalar there. Views compose index
// functions; pointwise ops compose scalars; nothing is computed until a Tensor
// is realized, that is written to a buffer by a node. Templates and reductions
// realize their results at once; pointwise values when reading them again would
// repeat work (`reuse`), or at the end of the function.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_PRIM_TO_LOOP_FUNCTIONLOWERING_H
#define PTC_LOWERING_PRIM_TO_LOOP_FUNCTIONLOWERING_H

#include "ir/loop/Loop.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <functional>

namespace ptc::loop {

/// An element's position: expressions over the dims of the node being built,
/// shape symbols and `v$k` for operands[k] (i64).
struct Index {
  llvm::SmallVector<Expr> at;
  llvm::SmallVector<mlir::Value> operands;
};

/// Where a node's body is being written.
struct Body {
  mlir::OpBuilder &builder;
  mlir::Location loc;
  SymbolRanges ranges; // of shape symbols and of the node's dims
  llvm::SmallVector<Expr> domain = {};

  /// Whether the condition is known to be >= 0 at all points of the domain.
  bool holds(Expr condition) const;
  /// The value of an expression over the index's operands, as i64.
  mlir::Value emitIndex(Expr expr, llvm::ArrayRef<mlir::Value> operands);
};

using ElementFn = std::function<mlir::Value(Body &, const Index &)>;

/// The lowered value of a prim value.
struct Tensor {
  llvm::SmallVector<Expr> dims;
  mlir::Type elementType; // of the prim value, signedness included
  ElementFn element;
  mlir::Value buffer; // set if element is a plain read of this buffer
  int operations = 0; // scalar operations an element costs
  int reads = 0;      // loads an element costs
  bool isScalarConstant = false;
  llvm::SmallVector<mlir::Location> origins; // of the ops whose work an element is, until it is realized
};

/// What the target makes code of.
struct TargetTraits {
  bool recurrences = true;       // loop.recurrence
  bool convertsWeights = true;   // products whose rhs converts a weight of few bits
  bool readsRowsAnywhere = true; // products read rows of lhs that lie in no regular order
  bool groupsInWindows = true;   // small groups of a convolution run along their channels, as depthwise ones
  bool storesBorders = true;     // windows read the borders of pads from memory
  bool skipsZeros = true;        // products leave out terms that masks make zero
  bool takesByteRows = true;     // rows of products are rounded to 8 bits where the model permits it
  int64_t mostStreamedRows = 0;  // of a lhs, with more of which words of weights have one scale; 0: never mind
};

class FunctionLowering {
public:
  FunctionLowering(mlir::func::FuncOp function, mlir::OpBuilder &builder, TargetTraits target);
  mlir::LogicalResult run();

private:
  llvm::SmallVector<Expr> findBelowViews(mlir::Value view, mlir::Value base, llvm::ArrayRef<mlir::Operation *> views);
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  void traceOrigins(mlir::Operation *op, mlir::Operation *before);
  void storeResults(mlir::OperandRange results, llvm::ArrayRef<mlir::Value> outputs, llvm::ArrayRef<int64_t> aliases);

  // One function per family; each defines the op's results in `values`.
  void lowerConstant(mlir::Operation *op);
  bool lowerIndexing(mlir::Operation *op);
  bool lowerReduction(mlir::Operation *op);
  bool lowerContraction(mlir::Operation *op);
  mlir::LogicalResult lowerIf(prim::IfOp op);
  bool isBounded(mlir::Value value);
  mlir::LogicalResult lowerLoop(prim::LoopOp op);
  mlir::LogicalResult lowerRegion(mlir::Region &from, mlir::Region &to,
                                  llvm::function_ref<mlir::LogicalResult(mlir::Operation *yield)> storeYielded);
  void realizeCaptured(mlir::Region &region, mlir::Location loc);
  static bool isRecurrence(prim::LoopOp loop);
  mlir::LogicalResult lowerRecurrence(prim::LoopOp op);
  mlir::Value getRowMajor(mlir::Value value, mlir::Location loc);
  void lowerConcat(prim::ConcatOp op);
  void lowerSort(prim::SortOp op);
  void lowerNms(prim::NmsOp op);
  void lowerScatter(mlir::Operation *op);
  void lowerAttention(prim::AttentionOp op);
  void lowerTap(prim::TapOp op);
  void lowerCall(prim::CallOp call);

public:
  /// Defines the result of a view anew, from its operand as it is now; false if `op` is none.
  bool lowerView(mlir::Operation *op);
  /// Defines the result of a pointwise op, anew if it has been defined.
  void lowerPointwise(mlir::Operation *op);
  /// The tensor of a value, for this region alone. The reference stays valid while the region is lowered.
  Tensor &get(mlir::Value value);
  void set(mlir::Value value, Tensor tensor);
  /// Writes the tensor to a buffer (once) and makes it a plain read of that. `loc` is for what has no origin.
  void realize(Tensor &tensor, mlir::Location loc);
  /// Realizes `value`, a view of something computed perhaps: then what it shows, if its elements lie at
  /// affine places there; of one that is read `asRows`, if those of the last dim are whole. The views stay views.
  void realizeBelowViews(mlir::Value value, mlir::Location loc, bool asRows = false);
  /// Realizes a pad below views for windows, which overlap: one of what kernels make in parts, so that these write it,
  /// others if they mirror, repeat or wrap.
  void storeBorders(mlir::Value value);
  /// Realizes unless reading an element again is as cheap as reading a buffer.
  void realizeUnlessCheap(Tensor &tensor, mlir::Location loc, int operations = 0, int reads = 1);
  /// Writes the tensor's elements to `buffer` at positions given by `at`.
  void store(const Tensor &tensor, mlir::Value buffer,
             llvm::function_ref<llvm::SmallVector<Expr>(llvm::ArrayRef<Expr>)> at, mlir::Location loc);

  /// Writes what the concat puts behind its first operand, which lies at the beginning of `place`.
  void storeBehind(prim::ConcatOp append, mlir::Value place);

  mlir::Value createBuffer(llvm::ArrayRef<Expr> dims, mlir::Type elementType, mlir::Location loc);
  mlir::Value createRowMajorBuffer(llvm::ArrayRef<Expr> dims, mlir::Type elementType, mlir::Location loc);
  /// A row-major view of `dims` from element `offset` of `whole` on.
  mlir::Value createPart(mlir::Value whole, Expr offset, llvm::ArrayRef<Expr> dims, mlir::Location loc);
  Tensor readOf(mlir::Value buffer, mlir::Type elementType);
  /// A view: same elements, the index goes through `map`.
  Tensor viewOf(const Tensor &tensor, llvm::ArrayRef<Expr> dims,
                std::function<llvm::SmallVector<Expr>(Body &, llvm::ArrayRef<Expr>)> map);
  /// Starts a body in `region` for dims of these extents.
  Body beginBody(mlir::Region &region, llvm::ArrayRef<Expr> domain, mlir::Location loc, mlir::TypeRange arguments = {});
  /// d<first>, d<first+1>, ...
  llvm::SmallVector<Expr> dims(unsigned first, unsigned count);

  mlir::func::FuncOp function;
  mlir::OpBuilder &builder;
  TargetTraits target;
  mlir::MLIRContext *context;
  SymbolRanges symbolRanges;
  SymbolValues symbolHints;
  std::optional<llvm::StringMap<Expr>> upperBounds; // of what ops of the function bind, once a branch has asked for it
  /// Of each region that is being lowered, the outermost first: its own values, and those of outer ones that it uses.
  /// What is realized inside is not seen outside.
  using Values = llvm::DenseMap<mlir::Value, std::unique_ptr<Tensor>>;
  llvm::SmallVector<Values> values = llvm::SmallVector<Values>(1);
  llvm::DenseMap<mlir::Value, mlir::Value> weightBuffers;
  llvm::SmallPtrSet<mlir::Operation *, 4> appends; // concats whose operands a loop writes behind its state
};

/// Whether the op shows each element of its operand once, at another place: a reshape, a transpose, a roll.
bool isPermutation(mlir::Operation *op);

/// Where the border of a pad that mirrors, repeats or wraps finds its element in x.
Expr borderIndex(prim::PadKind kind, Expr at, Expr extent);

/// The 16-bit float that `value`, of f32, widens, which templates read and widen themselves. Other values as they are.
mlir::Value unwidened(mlir::Value value);

/// Narrow floats compute in f32: widens f16 and bf16, leaves others.
mlir::Value widen(Body &body, mlir::Value scalar);
/// Narrows a float back to the scalar type of `elementType`.
mlir::Value narrow(Body &body, mlir::Value scalar, mlir::Type elementType);

/// Ranges of `symbols` and of dims d0.. with these extents.
SymbolRanges getDomainRanges(const SymbolRanges &symbols, llvm::ArrayRef<Expr> domain);

} // namespace ptc::loop

#endif // PTC_LOWERING_PRIM_TO_LOOP_FUNCTIONLOWERING_H
