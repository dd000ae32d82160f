//===- GroupHeads.cpp - heads that share keys become queries --------------===//
//
// With grouped heads (GQA, MQA) several heads have the same keys and values: k and v are read at floordiv(head, g), or
// without the head at all. Where each has one query, that of head g*h + i is query i of group h instead:
//
//   [.., H, 1, j, d, e]   head -> g*h + i, query -> 0   becomes   [.., H/g, g, j, d, e]
//
// so that what is read for one of them serves all. Refused where queries see different keys (causal), and off devices:
// there heads are what cores share.
//
//===----------------------------------------------------------------------===//
#include "compiler/schedule/Scheduler.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

/// The number by which expressions of the region divide the dim; 0: they use it otherwise only.
static int64_t findDivisorIn(Region &region, StringRef dim) {
  int64_t divisor = 0;
  walkExprs(region, [&](Expr expr) { divisor = divisor ? divisor : findDivisor(expr, dim); });
  return divisor;
}

void loop::groupHeads(AttentionOp op, const SymbolRanges &symbols) {
  SmallVector<Expr> domain = getDomain(op);
  unsigned batch = unsigned(op.getBatch()), head = batch - 1, query = batch;
  if (batch == 0 || op.getCausal() || !domain[query].isConstant(1) || !domain[head].isConstant())
    return;
  MLIRContext *context = op.getContext();
  std::string name = dimName(head);
  int64_t heads = domain[head].getValue();
  auto uses = [&](Region &region) {
    return llvm::any_of(region.front(), [&](Operation &inner) { return usesDim(&inner, name); });
  };
  bool isShared = !uses(op.getK()) && !uses(op.getV());
  int64_t group = isShared ? heads : findDivisorIn(op.getK(), name);
  if (group <= 1 || heads % group != 0)
    return;
  SmallVector<Expr> grouped = domain, oldDims;
  for (unsigned dim = 0; dim < domain.size(); ++dim)
    oldDims.push_back(Expr::dim(context, dim));
  grouped[head] = Expr::constant(context, heads / group);
  grouped[query] = Expr::constant(context, group);
  oldDims[head] = Expr::dim(context, head) * group + Expr::dim(context, query);
  oldDims[query] = Expr::constant(context, 0);
  SymbolRanges ranges = getNodeRanges(op, symbols);
  ranges[name].max = heads / group - 1;
  std::string queryName = dimName(query);
  ranges[queryName].max = group - 1;
  bool isSame = true; // for all queries of a group
  for (Region *region : {&op.getK(), &op.getV()})
    walkExprs(*region, [&](Expr expr) { isSame &= !substituteDims(expr, oldDims).simplify(ranges).uses(queryName); });
  if (isSame)
    rewriteDims(op, grouped, oldDims, symbols);
}
