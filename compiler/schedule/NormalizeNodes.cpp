//===- NormalizeNodes.cpp - a canonical loop nest for each node -----------===//
//
// Two nodes that walk the same memory should look alike, whatever shapes the
// user's graph had. For each node, within each kind of dims:
//
//   1. dims of extent 1 go (one of each kind stays in a contraction)
//   2. a dim of a pointwise node that is seen divided by a number (halves that change places; heads behind a batch)
//      becomes the quotient and the rest, if nothing is divided then and what was divided is in runs along the rest or
//      another dim; on CPUs also where a few rests are divided still (a transposed convolution's results, of which
//      every second one sees the same elements of the window, from the second one on), and all that is read is in runs
//      along the quotient: results of each rest are vectors, which are woven
//   3. dims are ordered by how far a step moves in memory, far to near: by the store
//      for kept dims, by the first load that uses it for reduced ones
//   4. adjacent dims (a, b) merge into one of extent a*b if all expressions see them
//      only as a*extent(b) + b; what would need a new division or modulo does not merge,
//      nor what is in runs along a or b and would be in runs no longer
//
// Steps of symbolic size compare by the symbols' hints, equal ones by larger sizes: with a batch of 1 a step of 256
// elements is as long as one of 256 times the batch, but is no longer for any other.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/NodeDims.h"
#include "compiler/schedule/Passes.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ToldDims.h"
#include "ir/loop/Winograd.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_NORMALIZENODES
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

static constexpr int64_t shortestRun = 16; // elements: a vector of the longest level
static constexpr int64_t mostWoven = 8;    // vectors that are woven in registers, a power of two, or three

namespace {

class Normalizer {
public:
  Normalizer(Operation *node, const SymbolRanges &symbols, const SymbolValues &hints, bool weaves)
      : node(node), symbols(symbols), hints(hints), larger(enlarge(hints)), weaves(weaves) {}

  void run() {
    dropUnitDims();
    if (isa<PointwiseOp>(node))
      splitDims();
    auto contraction = dyn_cast<ContractionOp>(node);
    if (contraction && getWinogradTile(contraction))
      return; // rows, columns and the window stay the dims that they are
    if (isReorderable(node))
      orderDims();
    if (auto scatter = dyn_cast<ScatterOp>(node))
      orderScatter(scatter);
    if (isReorderable(node) || isa<AttentionOp>(node))
      mergeDims();
  }

private:
  MLIRContext *context() { return node->getContext(); }

  /// Applies a new list of old dims (by number), dims left out being 0.
  void keepDims(ArrayRef<unsigned> kept) {
    SmallVector<Expr> domain = getDomain(node), newDomain;
    SmallVector<unsigned> kinds = getDimKinds(node), newKinds;
    SmallVector<Expr> oldDims(domain.size(), Expr::constant(context(), 0));
    for (unsigned dim : kept) {
      oldDims[dim] = Expr::dim(context(), newDomain.size());
      newDomain.push_back(domain[dim]);
      newKinds.push_back(kinds[dim]);
    }
    rewriteDims(node, newDomain, oldDims, symbols);
    setDimKinds(node, newKinds);
  }

  void dropUnitDims() {
    SmallVector<Expr> domain = getDomain(node);
    SmallVector<unsigned> kinds = getDimKinds(node), kept;
    for (unsigned dim = 0; dim < domain.size(); ++dim) {
      bool mayDrop = domain[dim].isConstant(1);
      if (isa<ScanOp, SortOp, GreedyOp>(node))
        mayDrop &= kinds[dim] == 0;
      else if (isa<AttentionOp>(node))
        mayDrop &= kinds[dim] == 0;
      else if (isa<ContractionOp>(node) && kinds[dim] != 0)
        mayDrop &= isOneOfSeveral(domain, kinds, kept, dim);
      else if (auto scatter = dyn_cast<ScatterOp>(node))
        mayDrop &= scatter.getIndependent() == 0;
      if (!mayDrop)
        kept.push_back(dim);
    }
    if (kept.size() != domain.size())
      keepDims(kept);
  }

  /// A constant by which a part of the expression that uses the dim is divided; 0: there is none.
  static int64_t findDivisor(Expr expr, StringRef dim) {
    bool isDivision = expr.getKind() == ExprKind::FloorDiv || expr.getKind() == ExprKind::Mod;
    if (isDivision && expr.getOperands()[0].uses(dim) && expr.getOperands()[1].isConstant())
      return expr.getOperands()[1].getValue();
    for (Expr operand : expr.getOperands())
      if (int64_t divisor = findDivisor(operand, dim))
        return divisor;
    return 0;
  }

  void splitDims() {
    for (unsigned dim = 0; dim < getDomain(node).size(); ++dim) {
      int64_t divisor = 0;
      forEachExpr(node, [&](Expr expr) { divisor = divisor ? divisor : findDivisor(expr, dimName(dim)); });
      Expr extent = getDomain(node)[dim];
      Expr quotient = divisor > 1 ? exactQuotient(extent, Expr::constant(context(), divisor), symbols) : Expr();
      if (quotient && quotient.asConstant().value_or(divisor) > 1)
        trySplit(dim, quotient, divisor);
    }
  }

  void trySplit(unsigned dim, Expr quotient, int64_t rest) {
    Expr inner = Expr::constant(context(), rest), extent = getDomain(node)[dim];
    SmallVector<SmallVector<Expr>> parts = getUnsplit(node);
    parts[dim] = {quotient, inner};
    DimSplit split = loop::splitDims(node, parts);
    SymbolRanges ranges = getNodeRanges(node, split.domain, symbols);
    auto change = [&](Expr expr) { return substituteDims(expr, split.oldDims).simplify(ranges); };
    bool keepsRuns = true;
    forEachExpr(node, [&](Expr expr) {
      if (!expr.uses(dimName(dim)))
        return;
      Expr changed = change(expr);
      bool isDivided = countDivisions(expr) > 0;
      bool mustRun = isDivided ? changed.uses(dimName(dim + 1)) : isRun(expr, dimName(dim), extent);
      keepsRuns &= countDivisions(changed) == 0 && (!mustRun || isRun(changed, dimName(dim + 1), inner) ||
                                                    (isDivided && hasRuns(changed, split.domain)));
    });
    bool isUsed = llvm::any_of(getDomain(node), [&](Expr each) { return each.uses(dimName(dim)); });
    if (isUsed || !(keepsRuns || (weaves && canWeave(dim, quotient, rest, change))))
      return;
    applySplit(node, split, symbols);
  }

  /// Whether, with `change`, results lie as far from each other along the dim as there are rests, which lie side by
  /// side, and what is read is in runs along it for each of them.
  bool canWeave(unsigned dim, Expr quotient, int64_t rest, function_ref<Expr(Expr)> change) {
    if (rest > mostWoven || !(rest == 3 || llvm::isPowerOf2_64(uint64_t(rest))))
      return false;
    std::string along = dimName(dim), rests = dimName(dim + 1), old = dimName(dim);
    bool isWoven = true, stores = false;
    forEachExpr(node, [&](Expr expr) { isWoven &= !expr.uses(old) || !isDivided(change(expr), along); });
    node->walk([&](Operation *op) {
      auto load = dyn_cast<LoadOp>(op);
      auto store = dyn_cast<StoreOp>(op);
      if (!load && !store)
        return;
      Expr index = load ? Expr(cast<ExprAttr>(load.getIndices()[0])) : Expr(cast<ExprAttr>(store.getIndices()[0]));
      if (store || index.uses(old))
        index = change(index);
      else
        return;
      Expr ofRest = index.coefficientOf(rests), step = index.coefficientOf(along);
      stores |= bool(store);
      isWoven &= store ? ofRest && ofRest.isConstant(1) && step && step.isConstant(rest)
                       : isRun(index, along, quotient) && !staysInRow(index, dim, rest);
    });
    return isWoven && stores;
  }

  /// Whether the rests, the dim behind `dim`, lie within a step of another one: elements change places in a row. What a
  /// product's block is followed by goes through its row in vectors, and shuffles.
  bool staysInRow(Expr index, unsigned dim, int64_t rest) {
    if (!index.coefficientOf(dimName(dim + 1)))
      return false;
    int64_t span = getStep(index, dim + 1).first * rest;
    for (unsigned other = 0; other <= getDomain(node).size(); ++other)
      if (other != dim && other != dim + 1 && index.uses(dimName(other)) && getStep(index, other).first >= span)
        return true;
    return false;
  }

  /// Whether something that uses the dim is divided, or its remainder taken.
  static bool isDivided(Expr expr, StringRef dim) {
    bool isDivision = expr.getKind() == ExprKind::FloorDiv || expr.getKind() == ExprKind::Mod;
    if (isDivision && expr.uses(dim))
      return true;
    return llvm::any_of(expr.getOperands(), [&](Expr operand) { return isDivided(operand, dim); });
  }

  /// Whether the expression moves by one element at a time along some dim.
  bool hasRuns(Expr expr, ArrayRef<Expr> domain) {
    return llvm::any_of(llvm::seq<unsigned>(0, domain.size()),
                        [&](unsigned dim) { return isRun(expr, dimName(dim), domain[dim]); });
  }

  /// Another dim of the same kind stays.
  static bool isOneOfSeveral(ArrayRef<Expr> domain, ArrayRef<unsigned> kinds, ArrayRef<unsigned> kept, unsigned dim) {
    for (unsigned other : kept)
      if (kinds[other] == kinds[dim])
        return true;
    for (unsigned other = dim + 1; other < domain.size(); ++other)
      if (kinds[other] == kinds[dim])
        return true;
    return false;
  }

  /// How far one step of a dim moves: at the hint, and where all symbols are larger.
  using Step = std::pair<int64_t, int64_t>;

  /// A dim's step in memory; short where that is unclear.
  Step getStep(Expr position, unsigned dim) {
    Expr step = position.coefficientOf(dimName(dim));
    if (!step)
      return position.uses(dimName(dim)) ? Step{1, 1} : Step{0, 0};
    auto lengthAt = [&](const SymbolValues &sizes) { return std::abs(step.evaluate(sizes).value_or(1)); };
    return {lengthAt(hints), lengthAt(larger)};
  }

  static SymbolValues enlarge(const SymbolValues &hints) {
    SymbolValues larger = hints;
    for (auto &symbol : larger)
      symbol.second *= 2;
    return larger;
  }

  void orderDims() {
    SmallVector<Expr> domain = getDomain(node);
    SmallVector<unsigned> kinds = getDimKinds(node);
    SmallVector<Step> steps(domain.size());
    auto look = [&](Expr position, bool reduced) {
      for (unsigned dim = 0; dim < domain.size(); ++dim)
        if (steps[dim].first == 0 && isReducedKind(kinds[dim]) == reduced)
          steps[dim] = getStep(position, dim);
    };
    node->walk([&](StoreOp store) { look(prim::getExprs(store.getIndices())[0], false); });
    node->walk([&](LoadOp load) { look(prim::getExprs(load.getIndices())[0], false); });
    node->walk([&](LoadOp load) { look(prim::getExprs(load.getIndices())[0], true); });
    // The k dims of a contraction are in the order of its packed weight.
    SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, domain.size()));
    llvm::stable_sort(order, [&](unsigned a, unsigned b) {
      if (kinds[a] != kinds[b])
        return kinds[a] < kinds[b];
      if (isa<ContractionOp>(node) && kinds[a] != 1)
        return a < b;
      return steps[a] > steps[b];
    });
    if (!llvm::is_sorted(order))
      keepDims(order);
  }

  /// Dims of a scatter that a place tells (it is another one if they are others) run in the order of memory: points
  /// that meet are as far apart in all orders of them.
  void orderScatter(ScatterOp scatter) {
    SmallVector<StoreOp> stores;
    scatter.walk([&](StoreOp store) { stores.push_back(store); });
    if (stores.size() != 1 || scatter.getIndependent() != 0)
      return;
    std::optional<ToldDims> told = findToldDims(scatter, stores.front());
    if (!told)
      return;
    SmallVector<unsigned> places = llvm::map_to_vector(told->dims, [](ToldDims::Dim dim) { return dim.number; });
    llvm::sort(places);
    SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, getDomain(node).size()));
    for (auto [at, dim] : llvm::zip(places, llvm::reverse(told->dims)))
      order[at] = dim.number;
    if (!llvm::is_sorted(order))
      keepDims(order);
  }

  bool isReducedKind(unsigned kind) const { return isa<ContractionOp>(node) ? kind == 3 : kind == 1; }

  void mergeDims() {
    for (unsigned dim = 0; dim + 1 < getDomain(node).size();) {
      SmallVector<unsigned> kinds = getDimKinds(node);
      if (kinds[dim] != kinds[dim + 1] || !tryMerge(dim))
        ++dim;
    }
  }

  /// Divisions and modulos of an expression, counted with repetition.
  static unsigned countDivisions(Expr expr) {
    unsigned count = expr.getKind() == ExprKind::FloorDiv || expr.getKind() == ExprKind::Mod;
    for (Expr operand : expr.getOperands())
      count += countDivisions(operand);
    return count;
  }

  /// Whether the dim moves by one element at a time, and often enough for vectors.
  bool isRun(Expr expr, StringRef dim, Expr extent) {
    Expr step = expr.uses(dim) ? expr.coefficientOf(dim) : Expr();
    return step && step.isConstant(1) && extent.evaluate(hints).value_or(shortestRun) >= shortestRun;
  }

  bool tryMerge(unsigned dim) {
    SmallVector<Expr> domain = getDomain(node);
    Expr inner = domain[dim + 1];
    std::string a = dimName(dim), b = dimName(dim + 1);
    // The expressions must see the pair only as a*inner + b.
    bool mergeable = true;
    Expr merged = Expr::dim(context(), dim);
    SymbolRanges ranges = getNodeRanges(node, symbols);
    ExprRange range;
    range.min = 0;
    range.below = domain[dim] * inner;
    ExprRange known = Expr(range.below).range(symbols);
    if (known.max != std::numeric_limits<int64_t>::max())
      range.max = std::max<int64_t>(known.max - 1, 0);
    ranges[a] = range;
    forEachExpr(node, [&](Expr expr) {
      if (!mergeable || (!expr.uses(a) && !expr.uses(b)))
        return;
      Expr changed = expr.substitute([&](StringRef symbol) -> Expr {
        if (symbol == a)
          return merged.floorDiv(inner);
        if (symbol == b)
          return merged.mod(inner);
        return {};
      });
      changed = changed.simplify(ranges);
      mergeable = countDivisions(changed) <= countDivisions(expr) &&
                  (!isRun(expr, b, inner) || isRun(changed, a, inner)) &&
                  (!isRun(expr, a, domain[dim]) || isRun(changed, a, domain[dim]));
    });
    for (Expr extent : domain)
      mergeable &= !extent.uses(a) && !extent.uses(b);
    if (!mergeable)
      return false;
    applyMerge(dim, inner);
    return true;
  }

  void applyMerge(unsigned dim, Expr inner) {
    SmallVector<Expr> domain = getDomain(node), oldDims;
    SmallVector<unsigned> kinds = getDimKinds(node);
    for (unsigned i = 0; i < domain.size(); ++i)
      oldDims.push_back(Expr::dim(context(), i <= dim ? i : i - 1));
    Expr merged = Expr::dim(context(), dim);
    oldDims[dim] = merged.floorDiv(inner);
    oldDims[dim + 1] = merged.mod(inner);
    domain[dim] = domain[dim] * inner;
    domain.erase(domain.begin() + dim + 1);
    kinds.erase(kinds.begin() + dim + 1);
    rewriteDims(node, domain, oldDims, symbols);
    setDimKinds(node, kinds);
  }

  Operation *node;
  const SymbolRanges &symbols;
  const SymbolValues &hints;
  SymbolValues larger;
  bool weaves;
};

struct NormalizeNodes : ptc::impl::NormalizeNodesBase<NormalizeNodes> {
  using NormalizeNodesBase::NormalizeNodesBase;
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
      SymbolValues hints = prim::getSymbolHints(program.getSymbols());
      program.walk([&](Operation *op) {
        if (isNode(op))
          Normalizer(op, symbols, hints, weaves).run();
      });
    }
  }
};

} // namespace
