//===- JoinColumns.cpp - products of one value by weights of other widths -===//
//
// Products that share their lhs become one whose columns are those of all (queries, keys and values of grouped heads):
//
//   matmul(x, w0), matmul(x, w1), ...     ->    p = matmul(x, [w0 w1 ...]),  p[.., 0 to n0], p[.., n0 to n0 + n1], ...
//
// The weights lie one behind another as rows of the joint weight's transpose, whichever way the model stores them. Each
// fills whole panels, so that it is a range of what is stored and can be replaced alone.
//
// Weights of one type are a batch instead (JoinProducts.cpp), where each part keeps its order in memory, unless one of
// the products is written straight into a result or a concat: columns may be copied there from the joint product,
// beside whatever else reads it, and a copy of an element costs nothing beside a sum of many terms. No more columns are
// copied than stay: the copies of a model's one wide result would be work of its own.
//
//===----------------------------------------------------------------------===//
#include "ir/prim/WeightAttrs.h"
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "llvm/ADT/MapVector.h"

namespace ptc {
#define GEN_PASS_DEF_JOINCOLUMNS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {

constexpr int64_t fewestTerms = 128; // of a product whose columns may be copied

/// A product that can be joined.
struct Part {
  MatmulOp product;
  WeightOp weight;
  bool isTurned; // the weight is [terms, columns], as the product reads it
  int64_t terms, columns;
  bool isCopied; // into a result or a concat

  /// Whether the two can be columns of one product.
  bool fits(Part other) {
    return terms == other.terms && getElementType(weight.getResult()) == getElementType(other.weight.getResult()) &&
           getElementType(product.getResult()) == getElementType(other.product.getResult());
  }
};

/// Whether the value lies in memory whatever reads it, and not in the epilogue of its product.
bool isStored(Value value, bool &isCopied) {
  SmallVector<Operation *> readers;
  listReaders(value, readers);
  bool hasProduct = false;
  for (Operation *reader : readers) {
    hasProduct |= isa<MatmulOp, AttentionOp, ConvolutionOp>(reader);
    isCopied |= isa<ConcatOp, func::ReturnOp>(reader);
    if (!isa<MatmulOp, AttentionOp, ConvolutionOp, PointwiseOpInterface, ReduceOp, SliceOp, ConcatOp, func::ReturnOp>(
            reader))
      return false;
  }
  return hasProduct || isCopied || readers.size() > 1;
}

std::optional<Part> matchPart(MatmulOp product, int64_t panel) {
  Value rhs = product.getRhs();
  auto transpose = rhs.getDefiningOp<TransposeOp>();
  auto weight = (transpose ? transpose.getX() : rhs).getDefiningOp<WeightOp>();
  SmallVector<Expr> dims = getDims(rhs);
  if (!weight || weight.getOthers() || dims.size() != 2 || !rhs.hasOneUse() || !weight.getResult().hasOneUse() ||
      !isa<FloatType>(getElementType(rhs)))
    return std::nullopt;
  Part part{product, weight, !transpose, dims[0].getValue(), dims[1].getValue(), false};
  bool isWorthIt = isStored(product.getResult(), part.isCopied) && (!part.isCopied || part.terms >= fewestTerms);
  if (part.columns % panel || !isWorthIt)
    return std::nullopt;
  return part;
}

/// Whether it pays, and no batch of products does as well.
bool pays(ArrayRef<Part> parts) {
  int64_t copied = 0, kept = 0;
  for (const Part &part : parts)
    (part.isCopied ? copied : kept) += part.columns;
  bool isBatch = copied == 0 && llvm::all_of(parts, [&](const Part &part) { return part.columns == parts[0].columns; });
  return parts.size() > 1 && copied <= kept && !isBatch;
}

void join(Block *start, MutableArrayRef<Part> parts) {
  MatmulOp first = parts[0].product;
  for (Part &part : parts)
    if (part.product->isBeforeInBlock(first))
      first = part.product;
  OpBuilder atStart = OpBuilder::atBlockBegin(start), b(first);
  MLIRContext *context = b.getContext();
  Location loc = b.getFusedLoc(llvm::map_to_vector(parts, [](Part &part) { return part.product.getLoc(); }));
  SmallVector<int64_t> rows;
  SmallVector<Attribute> others;
  int64_t columns = 0;
  for (Part &part : parts) {
    rows.push_back(part.columns);
    others.push_back(part.weight.getRefAttr());
    columns += part.columns;
  }
  Type element = getElementType(parts[0].weight.getResult());
  Expr all = Expr::constant(context, columns), terms = Expr::constant(context, parts[0].terms);
  auto weight = WeightOp::create(atStart, loc, getTensorType({all, terms}, element), parts[0].weight.getRef(),
                                 b.getArrayAttr(ArrayRef(others).drop_front()));
  weight->setAttr(partRowsAttr, b.getDenseI64ArrayAttr(rows));
  setTurned(weight, llvm::map_to_vector(parts, [](Part &part) { return part.isTurned; }));
  Value rhs = TransposeOp::create(b, loc, weight, ArrayRef<int64_t>{1, 0});
  Value joint = MatmulOp::create(b, loc, first.getLhs(), rhs);
  SmallVector<Expr> starts(getRank(joint), Expr::constant(context, 0)), dims = getDims(joint);
  SmallVector<int64_t> steps(starts.size(), 1);
  for (Part &part : parts) {
    dims.back() = Expr::constant(context, part.columns);
    Value slice =
        SliceOp::create(b, part.product.getLoc(), part.product.getType(), joint, getExprArray(context, starts), steps);
    part.product.getResult().replaceAllUsesWith(slice);
    starts.back() = starts.back() + part.columns;
  }
}

struct JoinColumns : ptc::impl::JoinColumnsBase<JoinColumns> {
  using JoinColumnsBase::JoinColumnsBase;
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    llvm::MapVector<std::pair<Value, Block *>, SmallVector<Part>> byLhs;
    function.walk([&](MatmulOp product) {
      if (std::optional<Part> part = matchPart(product, panel))
        byLhs[{product.getLhs(), product->getBlock()}].push_back(*part);
    });
    for (auto &[lhs, parts] : byLhs)
      while (!parts.empty()) {
        SmallVector<Part> fitting, others;
        for (Part &part : parts)
          (parts[0].fits(part) ? fitting : others).push_back(part);
        if (pays(fitting))
          join(&function.front(), fitting);
        parts = others;
      }
    eraseDeadOps(function);
  }
};

} // namespace
