//===- SplitRuns.cpp - borders apart from the run between them ------------===//
//
// A pad that mirrors, repeats or wraps reads a row by an index with modulo or minimum in it, which lanes would gather:
//
//   min(mod(d + 55, 56), ...)   over d in [0, 58)   is   d - 1   for d in [1, 57)
//
// Where such indices are sums in d between few places, a pointwise node becomes one node for each piece of its last
// dim, all in one kernel, behind each other for each point of the other dims. The long pieces then load and store
// whole vectors. For CPUs: a device's threads compute an index each.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Scheduler.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

static constexpr int64_t shortestRun = 16; // elements: a vector of the longest level
static constexpr size_t mostPieces = 5;
// Elements of runs in the time of one that is gathered (measured: 10 of f32 with AVX-512, in the second-level cache).
static constexpr int64_t runsPerGather = 8;

namespace {

/// Part of a dim: [begin, end).
struct Piece {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

/// coefficient * d + rest.
struct Line {
  int64_t coefficient, rest;

  /// The first d > 0 at which the value is negative, if it is not at 0, or not negative, if it is.
  std::optional<int64_t> findChangeOfSign() const {
    if (rest < 0 && coefficient > 0)
      return llvm::divideCeilSigned(-rest, coefficient);
    if (rest >= 0 && coefficient < 0)
      return rest / -coefficient + 1;
    return std::nullopt;
  }
};

class RunSplitter {
public:
  RunSplitter(PointwiseOp node, const SymbolRanges &symbols) : node(node) {
    domain = getDomain(node);
    last = domain.size() - 1;
    ranges = getNodeRanges(node, symbols);
    name = dimName(last);
    forEachExpr(node, [&](Expr expr) {
      if (expr.uses(name))
        exprs.push_back(expr);
    });
  }

  /// The pieces between which indices are sums; none where the dim is one already, or most of it would not be runs.
  SmallVector<Piece> findPieces() {
    std::optional<int64_t> extent = domain[last].asConstant();
    if (!extent || *extent < shortestRun)
      return {};
    SmallVector<Piece> done, open{{0, *extent}};
    while (!open.empty()) {
      Piece piece = open.pop_back_val();
      if (std::optional<int64_t> at = findBreak(piece)) {
        open.push_back({piece.begin + *at, piece.end});
        open.push_back({piece.begin, piece.begin + *at});
      } else {
        done.push_back(piece);
      }
      if (done.size() + open.size() > mostPieces)
        return {};
    }
    int64_t inRuns = 0;
    for (Piece piece : done)
      if (piece.size() >= shortestRun && isLinear(piece))
        inRuns += piece.size();
    return done.size() > 1 && 2 * inRuns >= *extent ? done : SmallVector<Piece>();
  }

private:
  /// The expression inside the piece, whose dim starts at 0.
  Expr atPiece(Expr expr, Piece piece) {
    Expr shifted = Expr::dim(node.getContext(), last) + piece.begin;
    expr = expr.substitute([&](StringRef symbol) { return symbol == name ? shifted : Expr(); });
    ExprRange range{.min = 0, .max = piece.size() - 1};
    range.below = Expr::constant(node.getContext(), piece.size());
    ranges[name] = range;
    return expr.simplify(ranges);
  }

  std::optional<int64_t> findBreak(Piece piece) {
    for (Expr expr : exprs)
      if (std::optional<int64_t> at = findBreakOf(atPiece(expr, piece)); at && *at < piece.size())
        return at;
    return std::nullopt;
  }

  std::optional<Line> asLine(Expr expr) {
    Expr rest = expr,
         coefficient = expr.uses(name) ? expr.coefficientOf(name, &rest) : Expr::constant(expr.getContext(), 0);
    if (!coefficient || !coefficient.isConstant() || !rest.isConstant())
      return std::nullopt;
    return Line{coefficient.getValue(), rest.getValue()};
  }

  /// The first place above 0 where an innermost part of the expression goes on in another way.
  std::optional<int64_t> findBreakOf(Expr expr) {
    if (!expr.uses(name))
      return std::nullopt;
    for (Expr operand : expr.getOperands())
      if (std::optional<int64_t> at = findBreakOf(operand))
        return at;
    switch (expr.getKind()) {
    case ExprKind::FloorDiv:
    case ExprKind::Mod: {
      std::optional<Line> line = asLine(expr.getOperands()[0]);
      std::optional<int64_t> divisor = expr.getOperands()[1].asConstant();
      if (!line || !divisor || *divisor <= 0)
        return std::nullopt;
      // The value leaves the multiple of the divisor that it starts in.
      int64_t begin = floorDivTotal(line->rest, *divisor) * *divisor, above = line->coefficient > 0 ? *divisor : 0;
      return Line{line->coefficient, line->rest - begin - above}.findChangeOfSign();
    }
    case ExprKind::Min:
    case ExprKind::Max:
    case ExprKind::Lt: {
      std::optional<Line> line = asLine(expr.getOperands()[0] - expr.getOperands()[1]);
      return line ? line->findChangeOfSign() : std::nullopt;
    }
    default:
      return std::nullopt;
    }
  }

  /// Whether all expressions are sums in the dim.
  bool isLinear(Piece piece) {
    return llvm::all_of(exprs, [&](Expr expr) {
      Expr inside = atPiece(expr, piece);
      Expr step = inside.uses(name) ? inside.coefficientOf(name) : Expr();
      return !inside.uses(name) || (step && step.isConstant());
    });
  }

  PointwiseOp node;
  SmallVector<Expr> domain, exprs;
  SymbolRanges ranges;
  unsigned last;
  std::string name;
};

} // namespace

/// Whether enough points are left for threads where the last dim runs within each, or one thread is as fast with runs
/// as several are with gathers.
static bool staysFast(ArrayRef<Expr> domain, const FusionContext &context) {
  Expr points = product(domain.back().getContext(), domain.drop_back());
  int64_t atHint = points.evaluate(context.hints).value_or(1);
  return atHint >= minParallelPoints ||
         atHint * domain.back().evaluate(context.hints).value_or(1) <= runsPerGather * smallWork;
}

/// The node over the piece of its last dim.
static Operation *cutOut(PointwiseOp node, Piece piece, const SymbolRanges &symbols) {
  OpBuilder b(node);
  Operation *part = b.clone(*node);
  SmallVector<Expr> domain = getDomain(node), oldDims;
  for (unsigned i = 0; i < domain.size(); ++i)
    oldDims.push_back(Expr::dim(node.getContext(), i));
  oldDims.back() = oldDims.back() + piece.begin;
  domain.back() = Expr::constant(node.getContext(), piece.size());
  rewriteDims(part, domain, oldDims, symbols);
  return part;
}

void loop::splitRuns(Group &group, const FusionContext &context) {
  if (group.isOpaque || llvm::any_of(group.nodes, llvm::IsaPred<ContractionOp, AttentionOp>))
    return; // what runs beside a template does so in parts of its own
  SmallVector<Operation *> nodes;
  for (Operation *node : group.nodes) {
    auto pointwise = dyn_cast<PointwiseOp>(node);
    size_t rank = pointwise ? getDomain(node).size() : 0;
    SmallVector<Piece> pieces;
    bool isOwn =
        group.nodes.size() > 1 ? rank > group.outer.size() : rank > 0 && staysFast(getDomain(pointwise), context);
    if (isOwn)
      pieces = RunSplitter(pointwise, context.symbols).findPieces();
    if (pieces.empty()) {
      nodes.push_back(node);
      continue;
    }
    if (group.nodes.size() == 1)
      group.outer = SmallVector<Expr>(ArrayRef<Expr>(getDomain(node)).drop_back());
    for (Piece piece : pieces)
      nodes.push_back(cutOut(pointwise, piece, context.symbols));
    node->erase();
  }
  group.nodes = std::move(nodes);
}
