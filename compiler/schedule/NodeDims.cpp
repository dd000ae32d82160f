//===- NodeDims.cpp - rewriting the dims of nodes -------------------------===//

#include "compiler/schedule/NodeDims.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"
#include "ir/loop/Recurrence.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

std::optional<unsigned> loop::getDimNumber(StringRef symbol) {
  unsigned number;
  if (!symbol.consume_front("d") || symbol.getAsInteger(10, number))
    return std::nullopt;
  return number;
}

int64_t loop::findDivisor(Expr expr, StringRef dim) {
  auto operands = expr.getOperands();
  if (expr.getKind() == ExprKind::FloorDiv && operands[0].isSymbol(dim))
    return operands[1].asConstant().value_or(0);
  for (Expr operand : operands)
    if (int64_t divisor = findDivisor(operand, dim))
      return divisor;
  return 0;
}

Operation *loop::getEnclosingNode(Operation *op) {
  while (op && !isNode(op))
    op = op->getParentOp();
  return op;
}

SymbolRanges loop::getNodeRanges(Operation *node, const SymbolRanges &symbols) {
  return getNodeRanges(node, getDomain(node), symbols);
}

SymbolRanges loop::getNodeRanges(Operation *node, ArrayRef<Expr> domain, const SymbolRanges &symbols) {
  SymbolRanges ranges = symbols;
  auto add = [&](StringRef name, Expr extent) {
    ExprRange known = extent.range(ranges), range;
    range.min = 0;
    if (known.max != std::numeric_limits<int64_t>::max())
      range.max = std::max<int64_t>(known.max - 1, 0);
    range.below = extent;
    ranges[name.str()] = range;
  };
  if (auto recurrence = node->getParentOfType<RecurrenceOp>())
    add(RecurrenceOp::stepSymbol, recurrence.getSteps());
  for (auto [index, extent] : llvm::enumerate(domain))
    add(dimName(index), extent);
  return ranges;
}

/// Dims by their names; dims behind the last of them stay.
static auto mapDims(ArrayRef<Expr> dims) {
  return [dims](StringRef symbol) {
    auto dim = getDimNumber(symbol);
    return dim && *dim < dims.size() ? dims[*dim] : Expr();
  };
}

Expr loop::substituteDims(Expr expr, ArrayRef<Expr> dims) { return expr.substitute(mapDims(dims)); }

void loop::rewriteDims(Operation *node, ArrayRef<Expr> domain, ArrayRef<Expr> oldDims, const SymbolRanges &symbols) {
  setDomain(node, domain);
  SymbolRanges ranges = getNodeRanges(node, symbols);
  auto map = mapDims(oldDims);
  mapBodyExprs(node, [&](Expr expr) { return expr.substitute(map); });
  mapBodyExprs(node, [&](Expr expr) { return expr.simplify(ranges); });
}

void loop::bringForward(Operation *node, ArrayRef<unsigned> first, const SymbolRanges &symbols) {
  SmallVector<Expr> domain = getDomain(node), oldDims(domain.size()), newDomain;
  auto add = [&](unsigned dim) {
    if (oldDims[dim])
      return;
    oldDims[dim] = Expr::dim(node->getContext(), newDomain.size());
    newDomain.push_back(domain[dim]);
  };
  llvm::for_each(first, add);
  for (unsigned dim = 0; dim < domain.size(); ++dim)
    add(dim);
  rewriteDims(node, newDomain, oldDims, symbols);
}

SmallVector<unsigned> loop::getDimKinds(Operation *node) {
  unsigned rank = getDomain(node).size();
  SmallVector<unsigned> kinds(rank, 0);
  if (auto reduction = dyn_cast<ReductionOp>(node)) {
    for (unsigned i = rank - reduction.getReduced(); i < rank; ++i)
      kinds[i] = 1;
  } else if (isa<ScanOp, SortOp, GreedyOp>(node)) {
    kinds.back() = 1;
  } else if (auto contraction = dyn_cast<ContractionOp>(node)) {
    unsigned at = 0;
    const uint64_t counts[] = {contraction.getBatch(), contraction.getM(), contraction.getN(), contraction.getK()};
    for (unsigned kind = 0; kind < 4; ++kind)
      for (uint64_t i = 0; i < counts[kind]; ++i)
        kinds[at++] = kind;
  } else if (auto attention = dyn_cast<AttentionOp>(node)) {
    for (unsigned i = attention.getBatch(); i < rank; ++i)
      kinds[i] = 1 + i - attention.getBatch();
  }
  return kinds;
}

void loop::setDimKinds(Operation *node, ArrayRef<unsigned> kinds) {
  auto count = [&](unsigned kind) { return int64_t(llvm::count(kinds, kind)); };
  if (auto reduction = dyn_cast<ReductionOp>(node)) {
    reduction.setReduced(count(1));
  } else if (auto contraction = dyn_cast<ContractionOp>(node)) {
    contraction.setBatch(count(0));
    contraction.setM(count(1));
    contraction.setN(count(2));
    contraction.setK(count(3));
  } else if (auto attention = dyn_cast<AttentionOp>(node)) {
    attention.setBatch(count(0));
  }
}

bool loop::isReorderable(Operation *node) { return isa<PointwiseOp, ReductionOp, ContractionOp>(node); }

unsigned loop::getKeptCount(Operation *node) {
  unsigned rank = getDomain(node).size();
  if (auto reduction = dyn_cast<ReductionOp>(node))
    return rank - reduction.getReduced();
  if (isa<ScanOp, SortOp, GreedyOp>(node))
    return rank - 1;
  if (auto scatter = dyn_cast<ScatterOp>(node))
    return scatter.getIndependent();
  if (isa<PointwiseOp>(node))
    return rank;
  return 0;
}

unsigned loop::getIndependentCount(Operation *node) {
  if (auto contraction = dyn_cast<ContractionOp>(node))
    return contraction.getBatch();
  if (auto attention = dyn_cast<AttentionOp>(node))
    return attention.getBatch();
  return getKeptCount(node);
}

void loop::forEachExpr(Operation *node, function_ref<void(Expr)> visit) {
  if (auto product = dyn_cast<ContractionOp>(node))
    llvm::for_each(getNeeded(product), visit);
  for (Region &region : node->getRegions())
    region.walk([&](Operation *op) {
      for (NamedAttribute entry : op->getAttrs()) {
        if (auto expr = dyn_cast<ExprAttr>(entry.getValue()))
          visit(expr);
        else if (auto list = dyn_cast<ArrayAttr>(entry.getValue()))
          for (Attribute element : list)
            if (auto expr = dyn_cast<ExprAttr>(element))
              visit(expr);
      }
    });
}

Expr loop::exactQuotient(Expr a, Expr b, const SymbolRanges &ranges) {
  if (a == b)
    return Expr::constant(a.getContext(), 1);
  if (b.isConstant(0))
    return {};
  Expr quotient = a.floorDiv(b).simplify(ranges);
  if ((quotient * b).simplify(ranges) != a)
    return {};
  return quotient;
}

SmallVector<SmallVector<Expr>> loop::getUnsplit(Operation *node) {
  return llvm::map_to_vector(getDomain(node), [](Expr extent) { return SmallVector<Expr>{extent}; });
}

DimSplit loop::splitDims(Operation *node, ArrayRef<SmallVector<Expr>> parts) {
  DimSplit split;
  SmallVector<unsigned> kinds = getDimKinds(node);
  for (auto [dim, digits] : llvm::enumerate(parts)) {
    Expr old = Expr::constant(node->getContext(), 0);
    for (Expr digit : digits) {
      old = old * digit + Expr::dim(node->getContext(), split.domain.size());
      split.domain.push_back(digit);
      split.kinds.push_back(kinds[dim]);
    }
    split.oldDims.push_back(old);
  }
  return split;
}

void loop::applySplit(Operation *node, const DimSplit &split, const SymbolRanges &symbols) {
  if (split.domain.size() <= getDomain(node).size())
    return;
  rewriteDims(node, split.domain, split.oldDims, symbols);
  setDimKinds(node, split.kinds);
}

// Walks the node's dims along `outer`: an equal dim is taken, a larger one is split
// into (outer, rest) if that is exact.
std::optional<DimSplit> loop::findPrefixSplit(Operation *node, ArrayRef<Expr> outer, const SymbolRanges &symbols) {
  SmallVector<Expr> domain = getDomain(node);
  SmallVector<unsigned> kinds = getDimKinds(node);
  unsigned kept = getIndependentCount(node);
  MLIRContext *context = node->getContext();
  SmallVector<Expr> newDomain, oldDims(domain.size());
  SmallVector<unsigned> newKinds;
  unsigned next = 0;
  Expr rest; // what is left of dim `next` after a split
  Expr restOffset;
  for (Expr extent : outer) {
    if (extent.isConstant(1) && !(next < kept && domain[next].isConstant(1) && !rest)) {
      newDomain.push_back(extent);
      newKinds.push_back(0);
      continue;
    }
    if (next >= kept)
      return std::nullopt;
    Expr available = rest ? rest : domain[next];
    Expr quotient = exactQuotient(available, extent, symbols);
    if (!quotient)
      return std::nullopt;
    Expr dim = Expr::dim(context, newDomain.size());
    newDomain.push_back(extent);
    newKinds.push_back(0);
    Expr sofar = restOffset ? restOffset : Expr::constant(context, 0);
    if (quotient.isConstant(1)) {
      oldDims[next] = sofar + dim;
      ++next;
      rest = restOffset = Expr();
    } else {
      rest = quotient;
      restOffset = sofar + dim * quotient;
    }
  }
  if (rest) {
    oldDims[next] = restOffset + Expr::dim(context, newDomain.size());
    newDomain.push_back(rest);
    newKinds.push_back(0);
    ++next;
  }
  for (; next < domain.size(); ++next) {
    oldDims[next] = Expr::dim(context, newDomain.size());
    newDomain.push_back(domain[next]);
    newKinds.push_back(kinds[next]);
  }
  return DimSplit{newDomain, oldDims, newKinds};
}

bool loop::splitPrefix(Operation *node, ArrayRef<Expr> outer, const SymbolRanges &symbols) {
  std::optional<DimSplit> split = findPrefixSplit(node, outer, symbols);
  if (split)
    applySplit(node, *split, symbols);
  return split.has_value();
}

std::optional<SmallVector<Expr>> loop::refineDims(ArrayRef<Expr> outer, ArrayRef<Expr> dims,
                                                  const SymbolRanges &symbols) {
  SmallVector<Expr> refined;
  Expr own; // what is left of the dim of `dims` that has been reached
  for (Expr left : outer) {
    if (left.isConstant(1)) {
      refined.push_back(left);
      continue;
    }
    while (!left.isConstant(1)) {
      if (!own || own.isConstant(1)) {
        if (dims.empty())
          return std::nullopt;
        own = dims.front();
        dims = dims.drop_front();
      } else if (Expr rest = exactQuotient(left, own, symbols)) {
        refined.push_back(own);
        left = rest;
        own = Expr();
      } else if (Expr rest = exactQuotient(own, left, symbols)) {
        refined.push_back(left);
        own = rest;
        break;
      } else {
        return std::nullopt;
      }
    }
  }
  return refined;
}
