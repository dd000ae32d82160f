//===- ReferenceEval.h - the reference interpreter of prim ------*- C++ -*-===//
//
// Executes prim functions on host tensors: the oracle of tests and `ptc verify`,
// and what folds constants. Slow, obvious and complete; errors of the model
// (an index out of range, an unknown symbol) are returned, never asserted.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_EVAL_REFERENCEEVAL_H
#define PTC_IR_EVAL_REFERENCEEVAL_H

#include "ir/eval/Tensor.h"
#include "ir/prim/Prim.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ptc::eval {

/// Why something is not evaluated that a library can do: the interpreter does not have it.
class Lack : public llvm::ErrorInfo<Lack, llvm::StringError> {
public:
  static char ID;
  explicit Lack(const llvm::Twine &what) : ErrorInfo(what, llvm::inconvertibleErrorCode()) {}
};

/// Where the bytes of weights come from.
class WeightSource {
public:
  virtual ~WeightSource() = default;
  /// The bytes of a reference; they stay valid while the source lives. Safe to call from many threads: passes run on
  /// several functions at a time.
  virtual llvm::Expected<llvm::ArrayRef<char>> getBytes(prim::WeightRefAttr ref) = 0;
  /// Keeps bytes that were computed of weights, as a weight without a name, and returns its reference: the same for the
  /// same bytes. Null where the source keeps none. Safe to call from many threads.
  virtual prim::WeightRefAttr keep(mlir::MLIRContext *context, llvm::ArrayRef<char> bytes) { return {}; }
};

/// A source for functions without weights.
class NoWeights : public WeightSource {
public:
  llvm::Expected<llvm::ArrayRef<char>> getBytes(prim::WeightRefAttr ref) override;
};

/// Called with each op's results right after it ran; an error ends the run.
using Observer = llvm::function_ref<llvm::Error(mlir::Operation *, llvm::ArrayRef<Tensor>)>;

/// Runs a function. Symbols that the inputs' dims name need no entry in
/// `symbols`; those that have one must agree with the inputs. Guards are checked.
llvm::Expected<std::vector<Tensor>> evaluate(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs,
                                             const SymbolValues &symbols, WeightSource &weights,
                                             Observer observer = nullptr);

/// The symbols' values for these inputs, and those given; an error if they do not fit or a guard fails.
llvm::Expected<SymbolValues> bindSymbols(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs,
                                         const SymbolValues &symbols = {});

/// Values that are given instead of computed; null for others.
using GivenValues = llvm::function_ref<const Tensor *(mlir::Value)>;

/// What the ops that define `wanted` make of the nearest given values and the function's inputs. Values of the
/// function, none inside a loop, may be computed at once on several threads, if `weights` allows that.
llvm::Expected<Tensor> evaluateValue(mlir::Value wanted, llvm::ArrayRef<Tensor> inputs, GivenValues given,
                                     const SymbolValues &symbols, WeightSource &weights);

/// Runs one op of the prim dialect on the values of its operands.
llvm::Expected<std::vector<Tensor>> evaluate(mlir::Operation *op, llvm::ArrayRef<const Tensor *> operands,
                                             const SymbolValues &symbols, WeightSource &weights);

struct FoldLimits {
  /// Neither an operand nor a result is larger than this.
  int64_t maxBytes = 1 << 20;
};

/// The results of an op whose operands are all constants, or nothing where an
/// operand is not, a dim is not known, the limit is exceeded or the op fails.
std::optional<std::vector<mlir::DenseElementsAttr>> fold(mlir::Operation *op, const FoldLimits &limits = {});

} // namespace ptc::eval

#endif // PTC_IR_EVAL_REFERENCEEVAL_H
