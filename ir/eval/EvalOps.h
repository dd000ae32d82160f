//===- EvalOps.h - one function an op of the prim dialect -------*- C++ -*-===//
//
// Private to ir/eval. Each function computes the results of one op from its
// operands; ReferenceEval.cpp dispatches to them.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_EVAL_EVALOPS_H
#define PTC_IR_EVAL_EVALOPS_H

#include "ir/eval/ReferenceEval.h"
#include "ir/prim/Prim.h"

namespace ptc::eval {

using Operands = llvm::ArrayRef<const Tensor *>;
using Results = llvm::Expected<std::vector<Tensor>>;
using Dims = llvm::SmallVector<int64_t, 4>;

/// What surrounds an op while it runs.
struct Scope {
  const SymbolValues &symbols;
  WeightSource &weights;
};

llvm::Error error(const llvm::Twine &message);
/// One result.
inline Results result(Tensor tensor) {
  std::vector<Tensor> results;
  results.push_back(std::move(tensor));
  return results;
}
llvm::Expected<int64_t> evaluateExpr(Expr e, const Scope &scope);
llvm::Expected<Dims> evaluateExprs(llvm::ArrayRef<Expr> exprs, const Scope &scope);
/// Zeros of a result's type, its dims evaluated.
llvm::Expected<Tensor> allocate(mlir::Value value, const Scope &scope);
/// Row-major position of an index with `index` along `axis` checked.
llvm::Expected<int64_t> checkIndex(int64_t index, int64_t size);

// EvalPointwise.cpp
Results evalPointwise(prim::PointwiseOpInterface op, Operands x, Scope &scope);
// EvalViews.cpp
Results evalConstant(prim::ConstantOp op, Operands x, Scope &scope);
Results evalExprs(prim::ExprsOp op, Operands x, Scope &scope);
Results evalWeight(prim::WeightOp op, Operands x, Scope &scope);
Results evalIota(prim::IotaOp op, Operands x, Scope &scope);
Results evalBroadcast(prim::BroadcastOp op, Operands x, Scope &scope);
Results evalReshape(prim::ReshapeOp op, Operands x, Scope &scope);
Results evalTranspose(prim::TransposeOp op, Operands x, Scope &scope);
Results evalSlice(prim::SliceOp op, Operands x, Scope &scope);
Results evalPad(prim::PadOp op, Operands x, Scope &scope);
Results evalConcat(prim::ConcatOp op, Operands x, Scope &scope);
// EvalCalls.cpp
Results evalCall(prim::CallOp op, Operands x, Scope &scope);
// EvalIndexing.cpp
Results evalGather(prim::GatherOp op, Operands x, Scope &scope);
Results evalGatherElements(prim::GatherElementsOp op, Operands x, Scope &scope);
Results evalGatherNd(prim::GatherNdOp op, Operands x, Scope &scope);
Results evalScatterElements(prim::ScatterElementsOp op, Operands x, Scope &scope);
Results evalScatterNd(prim::ScatterNdOp op, Operands x, Scope &scope);
// EvalReduce.cpp
Results evalReduce(prim::ReduceOp op, Operands x, Scope &scope);
Results evalArgReduce(prim::ArgReduceOp op, Operands x, Scope &scope);
Results evalScan(prim::ScanOp op, Operands x, Scope &scope);
Results evalSort(prim::SortOp op, Operands x, Scope &scope);
Results evalNms(prim::NmsOp op, Operands x, Scope &scope);
Results evalWindowReduce(prim::WindowReduceOp op, Operands x, Scope &scope);
// EvalContraction.cpp
Results evalMatmul(prim::MatmulOp op, Operands x, Scope &scope);
Results evalConvolution(prim::ConvolutionOp op, Operands x, Scope &scope);
Results evalAttention(prim::AttentionOp op, Operands x, Scope &scope);

} // namespace ptc::eval

#endif // PTC_IR_EVAL_EVALOPS_H
