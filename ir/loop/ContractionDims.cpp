//===- ContractionDims.cpp - the dims of a contraction, by class ----------===//
#include "ir/loop/ContractionDims.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Winograd.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static Expr dimExpr(MLIRContext *context, int64_t dim) { return Expr::dim(context, unsigned(dim)); }
static bool usesDims(Expr expr) {
  return expr.usesAny([](StringRef name) { return parseNumbered(name, 'd').has_value(); });
}

Expr loop::strideOf(Expr index, int64_t dim) {
  Expr stride = index.coefficientOf(dimName(dim));
  return stride && !usesDims(stride) ? stride : Expr();
}

static void visitExprs(Attribute attr, llvm::function_ref<void(Expr)> visit) {
  if (auto expr = dyn_cast<ExprAttr>(attr))
    return visit(expr);
  if (auto list = dyn_cast<ArrayAttr>(attr))
    for (Attribute element : list)
      visitExprs(element, visit);
}

void loop::walkExprs(Region &region, llvm::function_ref<void(Expr)> visit) {
  region.walk([&](Operation *op) {
    for (NamedAttribute entry : op->getAttrs())
      visitExprs(entry.getValue(), visit);
  });
}

bool loop::usesDim(Operation *root, StringRef dim) {
  bool uses = false;
  root->walk([&](Operation *op) {
    for (NamedAttribute entry : op->getAttrs())
      visitExprs(entry.getValue(), [&](Expr expr) { uses |= expr.uses(dim); });
  });
  return uses;
}

static bool mergesIn(Expr expr, int64_t outer, Expr innerExtent) {
  if (!expr.uses(dimName(outer)) && !expr.uses(dimName(outer + 1)))
    return true;
  Expr a = strideOf(expr, outer), b = strideOf(expr, outer + 1);
  return a && b && a == b * innerExtent;
}

bool loop::mergesIn(Region &region, int64_t outer, Expr innerExtent) {
  bool merges = true;
  walkExprs(region, [&](Expr expr) { merges &= ::mergesIn(expr, outer, innerExtent); });
  return merges;
}

bool loop::mergesIn(ContractionOp op, int64_t outer) {
  Expr inner = getDomain(op)[outer + 1];
  return llvm::all_of(op->getRegions(), [&](Region &region) { return mergesIn(region, outer, inner); }) &&
         llvm::all_of(getNeeded(op), [&](Expr expr) { return ::mergesIn(expr, outer, inner); });
}

/// Removes dim `dim` (its value becomes 0) and renumbers those behind it.
static void eraseDim(loop::ContractionOp op, int64_t dim, int group) {
  MLIRContext *context = op.getContext();
  SmallVector<Expr> domain = loop::getDomain(op);
  domain.erase(domain.begin() + dim);
  loop::substituteExprs(op, [&](StringRef name) -> Expr {
    std::optional<unsigned> number = parseNumbered(name, 'd');
    if (!number || int64_t(*number) < dim)
      return {};
    return int64_t(*number) == dim ? Expr::constant(context, 0) : dimExpr(context, *number - 1);
  });
  loop::setDomain(op, domain);
  DimCounts counts(op);
  --counts.counts[group];
  counts.set(op);
}

/// The inner dim takes over the range of both; the outer one vanishes.
static void mergeWithNext(loop::ContractionOp op, int64_t dim, int group) {
  SmallVector<Expr> domain = loop::getDomain(op);
  domain[dim + 1] = domain[dim] * domain[dim + 1];
  loop::setDomain(op, domain);
  eraseDim(op, dim, group);
}

SmallVector<Expr> loop::getNeeded(ContractionOp op) {
  return op.getNeeded() ? prim::getExprs(*op.getNeeded()) : SmallVector<Expr>();
}

void loop::mergeDims(ContractionOp op) {
  for (int group = 0; group < 4; ++group) {
    DimCounts counts(op);
    for (int64_t at = counts.counts[group] - 1; at >= 0; --at) {
      int64_t dim = counts.first(group) + at;
      SmallVector<Expr> domain = getDomain(op);
      if (domain[dim].isConstant(1)) {
        eraseDim(op, dim, group);
      } else if (at + 1 < counts.counts[group] && mergesIn(op, dim)) {
        mergeWithNext(op, dim, group);
      }
      counts = DimCounts(op);
    }
  }
}

void loop::splitDim(ContractionOp op, int64_t dim, int64_t inner) {
  MLIRContext *context = op.getContext();
  SmallVector<Expr> domain = getDomain(op);
  Expr extent = Expr::constant(context, inner);
  domain[dim] = domain[dim].floorDiv(extent);
  domain.insert(domain.begin() + dim + 1, extent);
  auto split = [&](StringRef name) -> Expr {
    std::optional<unsigned> number = parseNumbered(name, 'd');
    if (!number || int64_t(*number) < dim)
      return {};
    Expr behind = dimExpr(context, *number + 1);
    return int64_t(*number) == dim ? dimExpr(context, *number) * extent + behind : behind;
  };
  mapBodyExprs(op, [&](Expr expr) { return expr.substitute(split); });
  setDomain(op, domain);
  DimCounts counts(op);
  int group = 0;
  while (dim >= counts.first(group + 1))
    ++group;
  ++counts.counts[group];
  counts.set(op);
  SymbolRanges ranges;
  for (auto [number, below] : llvm::enumerate(domain)) {
    ExprRange range;
    range.min = 0;
    if (auto known = below.asConstant())
      range.max = std::max<int64_t>(*known - 1, 0);
    range.below = below;
    ranges[dimName(number)] = range;
  }
  mapBodyExprs(op, [&](Expr expr) { return expr.simplify(ranges); });
}

bool loop::isNarrow(ContractionOp op) {
  constexpr int64_t fewestRows = 3, fewestColumns = 6;
  DimCounts counts(op);
  SmallVector<Expr> domain = getDomain(op);
  auto isBelow = [&](int group, int64_t bound) {
    ArrayRef<Expr> dims = ArrayRef(domain).slice(counts.first(group), counts.counts[group]);
    return product(op.getContext(), dims).asConstant().value_or(bound) < bound;
  };
  return isBelow(1, fewestRows) || isBelow(2, fewestColumns);
}

int64_t loop::getGroup(ContractionOp op) {
  auto isWidened = [](Region &region, auto widening, auto fits) {
    auto op = cast<YieldOp>(region.front().getTerminator()).getValue().getDefiningOp<decltype(widening)>();
    return op && fits(op.getIn().getType()) && op.getType().getIntOrFloatBitWidth() == 32;
  };
  auto isByte = [](Type type) { return type.isInteger(8); };
  auto isBf16 = [](Type type) { return type.isBF16(); };
  Region &lhs = op.getLhs(), &rhs = op.getRhs();
  int64_t group = 1;
  if (isWidened(lhs, arith::ExtUIOp(), isByte) && isWidened(rhs, arith::ExtSIOp(), isByte))
    group = 4;
  else if (isWidened(lhs, arith::ExtFOp(), isBf16) && isWidened(rhs, arith::ExtFOp(), isBf16))
    group = 2;
  if (!op.getK())
    return 1;
  auto last = getDomain(op).back().asConstant();
  return last && *last % group == 0 ? group : 1;
}

bool loop::writesWholePixels(ContractionOp op) {
  constexpr int64_t fewestColumns = 16, fewestTerms = 24;
  DimCounts counts(op);
  SmallVector<Expr> domain = getDomain(op);
  auto points = [&](int64_t first, int64_t end) {
    return product(op.getContext(), ArrayRef(domain).slice(first, end - first)).asConstant().value_or(0);
  };
  int64_t columns = counts.first(2), terms = counts.first(3), end = int64_t(domain.size());
  return counts.counts[3] >= 2 && points(columns, terms) >= fewestColumns && points(terms, end) >= fewestTerms &&
         points(terms, end - 1) > 1;
}

bool loop::turnsPixels(ContractionOp op) {
  DimCounts counts(op);
  int64_t last = counts.first(2) - 1;
  bool isPlain = op.getEpilogue().getArgument(0).getType().isF32() && getGroup(op) == 1 && !getWinogradTile(op);
  if (!isPlain || counts.counts[1] == 0 || counts.counts[2] != 1 || !writesWholePixels(op))
    return false;
  // Of sizes that a run tells the code stands there for each height of tiles (measured: 0.99 to 1.04 of the time).
  SmallVector<Expr> domain = getDomain(op);
  if (!product(op.getContext(), ArrayRef(domain).slice(counts.first(1), counts.counts[1])).isConstant())
    return false;
  for (int64_t dim = counts.first(1); dim < last; ++dim)
    if (!mergesIn(op.getEpilogue(), dim, domain[dim + 1]))
      return false;
  auto stepOf = [&](ArrayAttr indices, ValueRange operands) {
    Expr step = operands.empty() ? strideOf(cast<ExprAttr>(indices[0]), last) : Expr();
    return step ? step.asConstant() : std::nullopt;
  };
  bool stores = false;
  for (Operation &inner : op.getEpilogue().front()) {
    if (inner.getNumRegions())
      return false;
    if (auto load = dyn_cast<LoadOp>(inner)) {
      auto step = stepOf(load.getIndices(), load.getIndexOperands());
      if (step != 0 && step != 1)
        return false;
    } else if (auto store = dyn_cast<StoreOp>(inner)) {
      if (store.getCombine() || stepOf(store.getIndices(), store.getIndexOperands()) != 1)
        return false;
      stores = true;
    }
  }
  return stores;
}

ReductionOp loop::replaceByReduction(ContractionOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto reduction = ReductionOp::create(builder, loc, op.getDomainAttr(), op.getK());
  Block &body = reduction.getBody().emplaceBlock();
  auto inlineRegion = [&](Region &region) -> Value {
    Block &block = region.front();
    Value result;
    for (Operation &inner : llvm::make_early_inc_range(block)) {
      if (auto yield = dyn_cast<YieldOp>(inner)) {
        result = yield.getValue();
        yield.erase();
        continue;
      }
      inner.moveBefore(&body, body.end());
    }
    return result;
  };
  Value a = inlineRegion(op.getLhs()), b = inlineRegion(op.getRhs());
  builder.setInsertionPointToEnd(&body);
  Type type = op.getEpilogue().getArgument(0).getType();
  auto widen = [&](Value value) -> Value {
    if (value.getType() == type)
      return value;
    if (isa<FloatType>(type))
      return arith::ExtFOp::create(builder, loc, type, value);
    return arith::ExtSIOp::create(builder, loc, type, value);
  };
  a = widen(a);
  b = widen(b);
  Value product = isa<FloatType>(type) ? arith::MulFOp::create(builder, loc, a, b).getResult()
                                       : arith::MulIOp::create(builder, loc, a, b).getResult();
  auto sum = ReduceOp::create(builder, loc, product, prim::ReduceKind::Sum);
  op.getEpilogue().getArgument(0).replaceAllUsesWith(sum.getResult());
  inlineRegion(op.getEpilogue());
  op.erase();
  return reduction;
}
