//===- Control.cpp - If ---------------------------------------------------===//
//
// A condition that is known while importing picks its branch, which is imported in
// place: exporters wrap shape fixes this way (`if dim == 1: squeeze`).
//
// Otherwise both branches become regions, which use the surrounding values
// directly. What a branch must assume of sizes is checked where it runs, not on entry. Where its shapes can never be
// right, the branch is a guard that ends a run with the sentence that would have refused the model: exporters leave
// code for settings that the inputs' shapes exclude.
//
// Dims that differ between the branches become symbols, which have the values that the branch taken
// gives them. Ranks must agree: no type joins two. Where they do not, the importer forks: the nodes
// that depend on the If become part of its branches, each with the ranks that it has there, and what
// is joined is what they come to. Often only one of the branches can go on, and the other is a guard;
// if the condition is on sizes alone, the guard stands on entry and there is no If.
//
// Where nothing of that helps, a condition on sizes alone takes one branch, and a guard says so: where the rank of
// an output of the model depends on it, the branch that gives the declared one, else that which the sizes' hints take;
// where no hint was given, sizes are taken for more than 1, since that is what a free dim is for.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Sequences.h"

using namespace mlir;
using namespace ptc::prim;

namespace ptc::decomp {

namespace {

/// A branch as it was imported: what it yields, or why it can never run.
struct Branch {
  Region region;
  Values values;
  std::string impossible; // empty: the branch can run
  Location loc;           // of the sentence
  std::vector<Diagnostic> reports;
};

/// What a branch gives, or what the nodes behind it give where it has them inside.
std::optional<Values> branchOf(NodeContext &n, StringRef name) {
  std::optional<Values> outputs = n.subgraph(name);
  return outputs && n.hasRest() ? n.takeRest(*outputs) : outputs;
}

class Conditional {
public:
  Conditional(NodeContext &n, Value condition) : n(n), condition(condition) {}

  /// The results; nothing if the branches cannot be joined, with what is to be said about it in `reports`, or if only
  /// one of them can run and `joinsGuards` is false.
  std::optional<Values> build(std::vector<Diagnostic> &reports, bool joinsGuards) {
    bool isComplete = import(thenBranch, "then_branch");
    isComplete &= import(elseBranch, "else_branch");
    bool isNone = !thenBranch.impossible.empty() && !elseBranch.impossible.empty();
    std::optional<Values> results;
    if (isComplete && !joinsGuards && onlyBranch())
      return std::nullopt;
    if (isComplete && !isNone && n.attempt([&] { return join(results); }, reports))
      return results;
    for (Branch *branch : {&thenBranch, &elseBranch})
      if (!isComplete || isNone)
        std::move(branch->reports.begin(), branch->reports.end(), std::back_inserter(reports));
    return std::nullopt;
  }

  /// The first result that the branches give with different ranks.
  struct Ranks {
    size_t result;
    int64_t onThen, onElse;
  };
  std::optional<Ranks> differingRanks() const { return ranks; }
  /// The only branch that can run, if there is just one.
  std::optional<bool> onlyBranch() const {
    if (thenBranch.impossible.empty() == elseBranch.impossible.empty())
      return std::nullopt;
    return thenBranch.impossible.empty();
  }

private:
  /// Whether everything that is wrong is wrong with shapes.
  static bool isAboutShapes(ArrayRef<Diagnostic> reports) {
    return llvm::all_of(reports, [](const Diagnostic &report) {
      if (report.getSeverity() != DiagnosticSeverity::Error)
        return true;
      std::optional<DiagId> id = parseCode(report.str());
      return id && getDiagRow(*id).code / 100 == 4 && getDiagRow(*id).exitClass == ExitClass::InvalidModel;
    });
  }

  bool import(Branch &branch, StringRef name) {
    OpBuilder &builder = n.getBuilder();
    bool isImported = n.attempt(
        [&] {
          OpBuilder::InsertionGuard guard(builder);
          builder.createBlock(&branch.region);
          bool was = n.shapes.setConditional(true);
          std::optional<Values> outputs = branchOf(n, name);
          n.shapes.setConditional(was);
          branch.values = outputs.value_or(Values());
          return outputs.has_value();
        },
        branch.reports);
    if (isImported)
      return true;
    auto error = llvm::find_if(
        branch.reports, [](const Diagnostic &report) { return report.getSeverity() == DiagnosticSeverity::Error; });
    if (error == branch.reports.end() || !isAboutShapes(branch.reports))
      return false;
    branch.impossible = stripCode(error->str()).str();
    branch.loc = error->getLocation();
    branch.region.front().dropAllReferences();
    branch.region.front().clear();
    return true;
  }

  /// A branch that ends the run, and then gives values like those of the other one.
  void endRun(Branch &branch, const Branch &other) {
    OpBuilder &builder = n.getBuilder();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&branch.region.front());
    GuardOp::create(builder, branch.loc, ExprAttr(n.expr(0)), builder.getStringAttr(branch.impossible));
    for (Value like : other.values) {
      Dims dims = n.dims(like);
      for (Expr &dim : dims)
        dim = n.shapes.isBoundInside(dim) ? n.expr(0) : dim;
      branch.values.push_back(n.fill(n.scalar(0, n.elementType(like)), dims));
    }
  }

  bool join(std::optional<Values> &results) {
    if (!thenBranch.impossible.empty())
      endRun(thenBranch, elseBranch);
    if (!elseBranch.impossible.empty())
      endRun(elseBranch, thenBranch);
    size_t count = thenBranch.values.size();
    if (count != elseBranch.values.size() || (count < n.outputCount() && !n.hasRest())) {
      n.fail(DiagId::BranchResults, count, elseBranch.values.size(), n.outputCount());
      return false;
    }
    SmallVector<Type> types;
    for (auto [i, pair] : llvm::enumerate(llvm::zip_equal(thenBranch.values, elseBranch.values))) {
      auto [a, b] = pair;
      Type joined = a.getType() == b.getType() ? Type() : joinSequences(n, a, b);
      if (joined) {
        convert(thenBranch, i, joined);
        convert(elseBranch, i, joined);
      } else {
        joined = joinTypes(a, b);
      }
      if (!joined) {
        if (n.rank(a) != n.rank(b) && !ranks)
          ranks = Ranks{i, n.rank(a), n.rank(b)};
        n.fail(DiagId::BranchTypes, "output " + std::to_string(i), a.getType(), b.getType());
        return false;
      }
      types.push_back(joined);
    }
    results = create(types);
    return !n.hasFailed();
  }

  /// A sequence becomes one of another type where the branch ends.
  void convert(Branch &branch, size_t number, Type type) {
    OpBuilder &builder = n.getBuilder();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&branch.region.front());
    branch.values[number] = convertSequence(n, branch.values[number], type);
  }

  Type joinTypes(Value a, Value b) {
    if (a.getType() == b.getType())
      return a.getType();
    if (n.elementType(a) != n.elementType(b) || n.rank(a) != n.rank(b))
      return {};
    Dims dims = n.dims(a);
    for (auto [dim, other] : llvm::zip_equal(dims, n.dims(b)))
      if (dim != other)
        dim = joinSizes(dim, other);
    return getTensorType(dims, n.elementType(a));
  }

  /// A symbol for what is `a` behind the one branch and `b` behind the other.
  Expr joinSizes(Expr a, Expr b) {
    for (auto size : joined)
      if (Expr(size.getThenSize()) == a && Expr(size.getElseSize()) == b)
        return Expr::symbol(n.getContext(), size.getName());
    Expr most = n.shapes.mostOf(Expr::max(a, b)); // null: the run finds room for the result
    int64_t least = std::max<int64_t>(0, std::min(n.shapes.range(a).min, n.shapes.range(b).min));
    SymbolBounds bounds{.min = least};
    bounds.hint = std::clamp<int64_t>(n.shapes.atHints(a).value_or(least), least, bounds.max);
    Expr symbol = n.shapes.declareBound(bounds, most);
    joined.push_back(JoinedAttr::get(n.getContext(), symbol.getSymbol(), a, b));
    return symbol;
  }

  Values create(ArrayRef<Type> types) {
    OpBuilder &builder = n.getBuilder();
    OperationState state(n.getLoc(), IfOp::getOperationName());
    state.addOperands(condition);
    state.addTypes(types);
    if (!joined.empty()) {
      SmallVector<Attribute> sizes(joined.begin(), joined.end());
      state.getOrAddProperties<IfOp::Properties>().joined = builder.getArrayAttr(sizes);
    }
    for (Branch *branch : {&thenBranch, &elseBranch}) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(&branch->region.front());
      YieldOp::create(builder, n.getLoc(), branch->values);
      state.addRegion()->takeBody(branch->region);
    }
    return Values(builder.create(state)->getResults());
  }

  NodeContext &n;
  Value condition;
  Branch thenBranch{.loc = n.getLoc()}, elseBranch{.loc = n.getLoc()};
  SmallVector<JoinedAttr> joined;
  std::optional<Ranks> ranks;
};

bool isTakenInGeneral(NodeContext &n, Expr condition) { return n.shapes.inGeneral(condition).value_or(1) != 0; }

/// A library has one rank for each output of the model: the declared one, if a branch gives it, else that of the branch
/// which usual sizes take. It is said which.
bool chooseRank(NodeContext &n, Expr condition, const Conditional::Ranks &ranks) {
  auto [name, declared] = n.graphOutput(ranks.result).value_or(std::pair(std::string("the result"), int64_t(-1)));
  bool isTaken = declared == ranks.onThen || (declared != ranks.onElse && isTakenInGeneral(n, condition));
  InFlightDiagnostic warning = diagnose(n.getLoc(), DiagId::RankOfSizes, name, ranks.onThen, condition.str(),
                                        ranks.onElse, isTaken ? ranks.onThen : ranks.onElse);
  addHelp(warning, "for the other rank declare the output with it, or give sizes or hints that take the other branch "
                   "(--shape, --dim NAME=LO..HI:HINT)");
  return isTaken;
}

} // namespace

Values conditional(NodeContext &n) {
  Value condition = n.reshape(n.input(0), {});
  if (!condition || !n.isBool(condition))
    return {n.fail(DiagId::WrongInputType, 0, n.elementType(condition), "bool is needed")};
  std::optional<Expr> known = n.knownCondition(condition);
  bool isOfSizes = known && !n.shapes.isBoundInside(*known);
  std::vector<Diagnostic> reports;
  std::optional<bool> only;
  std::optional<Conditional::Ranks> ranks;
  if (!known || !known->isConstant()) {
    Conditional both(n, condition);
    ShapeScope before = n.shapes;
    if (std::optional<Values> results = both.build(reports, /*joinsGuards=*/!n.hasRest() || !isOfSizes))
      return *results;
    only = both.onlyBranch();
    n.shapes = before;
    ranks = both.differingRanks();
    if (ranks && n.fork())
      return {};
  }
  if (!isOfSizes) {
    n.report(std::move(reports));
    return {};
  }
  bool isTaken = only ? *only : ranks ? chooseRank(n, *known, *ranks) : isTakenInGeneral(n, *known);
  n.shapes.assume(isTaken ? *known : Expr::eq(*known, n.expr(0)));
  std::optional<Values> outputs = branchOf(n, isTaken ? "then_branch" : "else_branch");
  return outputs ? *outputs : Values();
}

} // namespace ptc::decomp
