//===- SumOfParts.cpp - sums over values put side by side -----------------===//
//
// Values are stacked to be summed up: samples of several levels of an image, each weighed, or what several branches
// say. Written into one buffer by nodes of their own and read again by the sum, they cross memory twice. A reduction
// over a dim that several pointwise nodes write parts of is taken part by part:
//
//   T[.., 0:4, ..] = f(..);  T[.., 4:8, ..] = g(..);   s[..] = sum over i < 8 of w[i] * T[.., i, ..]
//   ->  p[..] = sum over i < 4 of w[i] * f(..);   q[..] = sum over i < 4 of w[i + 4] * g(..);   s[..] = p + q
//
// and each node is merged into the sum of its part (FuseNodes). For CPUs.
//
// Refused: few elements, values that others read, too, and parts that the sum reads in an order that has no inverse,
// since nothing would be merged then.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MergeNodes.h"
#include "compiler/schedule/PartialSums.h"
#include "compiler/schedule/Passes.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_SUMOFPARTS
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

static constexpr size_t mostParts = 8;        // nodes of one kernel, about (Scheduler.h: mostBeside)
static constexpr int64_t leastWork = 1 << 10; // elements: fewer are in cache wherever they lie

namespace {

/// A node that writes [first, first + count) of the reduced dim.
struct Part {
  PointwiseOp node;
  StoreOp store;
  int64_t first, count;
};

struct Parts {
  Value buffer;
  unsigned dim; // of the reduction
  SmallVector<Part> parts;
};

/// What two partial results are together; null where there is no op for it.
Value combine(OpBuilder &b, ReduceOp reduce, Value x, Value y) {
  Location loc = reduce.getLoc();
  bool isFloat = isa<FloatType>(reduce.getType()), isUnsigned = reduce.getIsUnsigned();
  switch (reduce.getKind()) {
  case prim::ReduceKind::Sum:
    return isFloat ? arith::AddFOp::create(b, loc, x, y).getResult() : arith::AddIOp::create(b, loc, x, y);
  case prim::ReduceKind::Prod:
    return isFloat ? arith::MulFOp::create(b, loc, x, y).getResult() : arith::MulIOp::create(b, loc, x, y);
  case prim::ReduceKind::Max:
    return isFloat      ? arith::MaximumFOp::create(b, loc, x, y).getResult()
           : isUnsigned ? arith::MaxUIOp::create(b, loc, x, y).getResult()
                        : arith::MaxSIOp::create(b, loc, x, y);
  case prim::ReduceKind::Min:
    return isFloat      ? arith::MinimumFOp::create(b, loc, x, y).getResult()
           : isUnsigned ? arith::MinUIOp::create(b, loc, x, y).getResult()
                        : arith::MinSIOp::create(b, loc, x, y);
  case prim::ReduceKind::Any:
  case prim::ReduceKind::All:
    return {};
  }
}

bool isCombinable(ReductionOp sum) {
  bool storesElements = false;
  auto isKnown = [](ReduceOp reduce) {
    return reduce.getKind() != prim::ReduceKind::Any && reduce.getKind() != prim::ReduceKind::All;
  };
  for (StoreOp store : sum.getBody().getOps<StoreOp>())
    for (unsigned dim = getKeptCount(sum); dim < getDomain(sum).size(); ++dim)
      storesElements |= getAddress(store).uses(dimName(dim));
  return canSumParts(sum) && !storesElements && llvm::all_of(sum.getBody().getOps<ReduceOp>(), isKnown);
}

class PartFinder {
public:
  PartFinder(ReductionOp sum, const SymbolRanges &symbols, const SymbolValues &hints)
      : sum(sum), symbols(symbols), hints(hints), domain(getDomain(sum)) {}

  std::optional<Parts> find() {
    if (!isCombinable(sum) || product(sum.getContext(), domain).evaluate(hints).value_or(0) < leastWork)
      return std::nullopt;
    for (LoadOp load : sum.getBody().getOps<LoadOp>()) {
      SmallVector<StoreOp> stores = getStores(load);
      for (unsigned dim = getKeptCount(sum); dim < domain.size() && stores.size() > 1; ++dim)
        if (std::optional<Parts> parts = findAlong(load, stores, dim))
          return parts;
    }
    return std::nullopt;
  }

private:
  /// One store each of pointwise nodes, if nobody else uses what the load reads.
  SmallVector<StoreOp> getStores(LoadOp load) {
    Value buffer = load.getBuffer();
    SmallVector<StoreOp> stores;
    llvm::SmallPtrSet<Operation *, 8> nodes;
    if (!buffer.getDefiningOp<BufferOp>() || isIndirect(load))
      return {};
    for (Operation *user : buffer.getUsers()) {
      auto store = dyn_cast<StoreOp>(user);
      bool isOwn = isa<LoadOp>(user) && user->getParentOp() == sum && getAddress(user) == getAddress(load);
      bool isPart = store && isPlainPointwise(store->getParentOp()) && !isIndirect(store) &&
                    store->getParentOp()->getBlock() == sum->getBlock() && nodes.insert(store->getParentOp()).second;
      if (!isOwn && !isPart)
        return {};
      if (isPart)
        stores.push_back(store);
    }
    return stores.size() <= mostParts ? stores : SmallVector<StoreOp>();
  }

  std::optional<Parts> findAlong(LoadOp load, ArrayRef<StoreOp> stores, unsigned dim) {
    auto extent = domain[dim].asConstant();
    Expr step = getAddress(load).coefficientOf(dimName(dim));
    if (!extent || !step || step.asConstant().value_or(0) <= 0)
      return std::nullopt;
    Parts found{load.getBuffer(), dim, {}};
    for (StoreOp store : stores) {
      std::optional<Part> part = findPart(load, store, dim, step.getValue());
      if (!part)
        return std::nullopt;
      found.parts.push_back(*part);
    }
    llvm::sort(found.parts, [](const Part &a, const Part &b) { return a.first < b.first; });
    int64_t next = 0;
    for (const Part &part : found.parts)
      if (std::exchange(next, part.first + part.count) != part.first)
        return std::nullopt;
    return next == *extent ? std::optional(found) : std::nullopt;
  }

  std::optional<Part> findPart(LoadOp load, StoreOp store, unsigned dim, int64_t step) {
    auto node = cast<PointwiseOp>(store->getParentOp());
    Expr storeRest, loadRest;
    if (!getDigits(getAddress(store), getDomain(node), getNodeRanges(node, symbols), hints, storeRest) ||
        !getDigits(getAddress(load), domain, getNodeRanges(sum, symbols), hints, loadRest))
      return std::nullopt;
    auto offset = (storeRest - loadRest).asConstant();
    Expr others = Expr::constant(sum.getContext(), 1);
    for (unsigned other = 0; other < domain.size(); ++other)
      others = other == dim ? others : others * domain[other];
    Expr count = exactQuotient(product(sum.getContext(), getDomain(node)), others, symbols);
    if (!offset || *offset < 0 || *offset % step || !count || count.asConstant().value_or(0) < 1)
      return std::nullopt;
    Part part{node, store, *offset / step, count.getValue()};
    SmallVector<Expr> narrowed = domain;
    narrowed[dim] = count;
    Expr address = atPart(getAddress(load), dim, part.first);
    if (!locate(getAddress(store), getDomain(node), address, getNodeRanges(sum, narrowed, symbols), hints))
      return std::nullopt;
    return part;
  }

  Expr atPart(Expr expr, unsigned dim, int64_t first) {
    return expr.substitute(
        [&](StringRef symbol) { return symbol == dimName(dim) ? Expr::dim(sum.getContext(), dim) + first : Expr(); });
  }

  ReductionOp sum;
  const SymbolRanges &symbols;
  const SymbolValues &hints;
  SmallVector<Expr> domain;
};

/// The sum over one part, whose node writes a buffer of its own; what it is, in buffers.
SmallVector<Value> sumPart(ReductionOp sum, const Parts &all, const Part &part, const SymbolRanges &symbols) {
  MLIRContext *context = sum.getContext();
  OpBuilder b(sum);
  auto own = cast<ReductionOp>(b.clone(*sum));
  b.setInsertionPoint(part.node);
  StoreOp store = part.store;
  Value buffer = BufferOp::create(b, store.getLoc(), all.buffer.getType());
  store.getBufferMutable().assign(buffer);
  for (LoadOp load : getLoads(own, all.buffer))
    load.getBufferMutable().assign(buffer);
  dropResults(own);
  SmallVector<Expr> domain = getDomain(own), newDomain, oldDims;
  SmallVector<unsigned> kinds = getDimKinds(own);
  bool isOne = part.count == 1; // then there is no such dim
  for (unsigned dim = 0; dim < domain.size(); ++dim) {
    bool isParted = dim == all.dim;
    Expr first = Expr::constant(context, isParted ? part.first : 0);
    oldDims.push_back(isParted && isOne ? first : first + Expr::dim(context, unsigned(newDomain.size())));
    if (!isParted || !isOne)
      newDomain.push_back(isParted ? Expr::constant(context, part.count) : domain[dim]);
  }
  if (isOne)
    kinds.erase(kinds.begin() + all.dim);
  rewriteDims(own, newDomain, oldDims, symbols);
  setDimKinds(own, kinds);
  SmallVector<Value> partials = storePartials(own);
  if (own.getReduced() == 0) { // one element each
    for (ReduceOp reduce : llvm::to_vector(own.getBody().getOps<ReduceOp>())) {
      reduce.getResult().replaceAllUsesWith(reduce.getValue());
      reduce.erase();
    }
    replaceByPointwise(own);
  }
  return partials;
}

void split(ReductionOp sum, const Parts &all, const SymbolRanges &symbols) {
  SmallVector<SmallVector<Value>> partials; // of each part
  for (const Part &part : all.parts)
    partials.push_back(sumPart(sum, all, part, symbols));
  SmallVector<Expr> kept = getDomain(sum);
  kept.truncate(getKeptCount(sum));
  Expr position = getPartialPosition(kept, sum.getContext());
  for (auto [number, reduce] : llvm::enumerate(llvm::to_vector(sum.getBody().getOps<ReduceOp>()))) {
    OpBuilder b(reduce);
    Value result;
    for (ArrayRef<Value> ofPart : partials) {
      Value partial = LoadOp::create(b, reduce.getLoc(), ofPart[number], ArrayRef<Expr>(position));
      result = result ? combine(b, reduce, result, partial) : partial;
    }
    reduce.getResult().replaceAllUsesWith(result);
    reduce.erase();
  }
  eraseUnused(sum);
  setDomain(sum, kept);
  replaceByPointwise(sum);
  all.buffer.getDefiningOp()->erase();
}

struct SumOfParts : ptc::impl::SumOfPartsBase<SumOfParts> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
      SymbolValues hints = prim::getSymbolHints(program.getSymbols());
      SmallVector<ReductionOp> sums;
      program.walk([&](ReductionOp sum) { sums.push_back(sum); });
      for (ReductionOp sum : sums)
        if (std::optional<Parts> parts = PartFinder(sum, symbols, hints).find())
          split(sum, *parts, symbols);
    }
  }
};

} // namespace
