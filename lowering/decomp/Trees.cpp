//===- Trees.cpp - ensembles of decision trees ----------------------------===//
//
// All trees become tables over one list of nodes. A node holds a feature, a threshold
// and its two children, which stand side by side in their table:
//
//   next = children[2 * node + (x[row, feature[node]] passes ? 0 : 1)]
//
// A leaf is its own child, so that after as many steps as the deepest tree has levels
// every tree of every row stands at its leaf: each step is one pointwise operation on
// [rows, trees] with indirect loads, and all steps fuse into one loop. What a leaf adds
// to the targets is a row of another table.
//
// How a node compares is a set of accepted outcomes (below, equal, above, unordered),
// which also says where a missing value goes. Where all nodes agree, as they do in the
// models of every library, it is one comparison. A node that tests for membership in a
// set becomes a chain of nodes that test for one member each.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/ClassScores.h"
#include "lowering/decomp/OnnxOps.h"
#include "llvm/ADT/DenseMap.h"
#include <cmath>

using namespace ptc::prim;

namespace ptc::decomp {

namespace {

constexpr int64_t maxDepth = 1024;

enum Outcome : unsigned { Below = 1, Equal = 2, Above = 4, Unordered = 8 };

/// The outcomes that lead to the true branch, in the order of TreeEnsemble's numbers for modes.
struct Mode {
  llvm::StringLiteral name;
  unsigned accepted;
};
constexpr Mode modes[] = {{"BRANCH_LEQ", Below | Equal}, {"BRANCH_LT", Below},
                          {"BRANCH_GTE", Above | Equal}, {"BRANCH_GT", Above},
                          {"BRANCH_EQ", Equal},          {"BRANCH_NEQ", Below | Above | Unordered}};
constexpr int64_t memberMode = 6;

struct TreeNode {
  int64_t feature = 0;
  double threshold = 0;
  unsigned accepted = 0; // 0: a leaf
  int64_t whenTrue = -1, whenFalse = -1;
};

/// What a leaf adds to a target.
struct LeafWeight {
  int64_t node, target;
  double weight;
};

struct Forest {
  std::vector<TreeNode> nodes;
  Ints roots;
  std::vector<LeafWeight> weights;
};

enum class Aggregate { Average, Sum, Min, Max };

} // namespace

/// The number of steps from the roots to the deepest leaf; nothing after a diagnostic (a cycle, a branch to nowhere).
static std::optional<int64_t> findDepth(NodeContext &n, const Forest &forest) {
  int64_t count = forest.nodes.size();
  std::vector<int64_t> depth(count, -1); // -1: not seen, -2: on the path
  for (int64_t root : forest.roots) {
    llvm::SmallVector<int64_t> path = {root};
    while (!path.empty()) {
      int64_t at = path.back();
      const TreeNode &node = forest.nodes[at];
      int64_t below = -1;
      bool isReady = true;
      if (node.accepted)
        for (int64_t child : {node.whenTrue, node.whenFalse}) {
          if (child < 0 || child >= count || depth[child] == -2) {
            n.fail(DiagId::UnsupportedForm, "a tree whose branches do not end in leaves");
            return std::nullopt;
          }
          if (depth[child] == -1 && isReady) {
            depth[at] = -2;
            path.push_back(child);
            isReady = false;
          }
          below = std::max(below, depth[child]);
        }
      if (!isReady)
        continue;
      depth[at] = below + 1;
      path.pop_back();
    }
  }
  int64_t deepest = 0;
  for (int64_t root : forest.roots)
    deepest = std::max(deepest, depth[root]);
  if (deepest <= maxDepth)
    return deepest;
  n.fail(DiagId::TooLongToUnroll, deepest, maxDepth);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

namespace {

class ForestWalk {
public:
  ForestWalk(NodeContext &n, Value rows, const Forest &forest)
      : n(n), x(rows), forest(forest), index(n.getBuilder().getIntegerType(32, /*isSigned=*/false)) {
    llvm::SmallVector<double> features, thresholds, children, masks;
    for (auto [number, node] : llvm::enumerate(forest.nodes)) {
      bool isLeaf = !node.accepted;
      features.push_back(node.feature);
      thresholds.push_back(node.threshold);
      masks.push_back(node.accepted);
      children.push_back(isLeaf ? number : node.whenTrue);
      children.push_back(isLeaf ? number : node.whenFalse);
      if (!isLeaf)
        common = common.value_or(node.accepted) == node.accepted ? node.accepted : 0;
    }
    feature = n.floatVector(features, index);
    threshold = n.floatVector(thresholds, n.elementType(x));
    child = n.floatVector(children, index);
    if (!common.value_or(0))
      mask = n.floatVector(masks, index);
  }

  /// The leaf of each row in each tree: [rows, trees].
  Value leaves(int64_t depth) {
    llvm::SmallVector<double> roots(forest.roots.begin(), forest.roots.end());
    Value node = n.broadcastTo(n.floatVector(roots, index), {n.dim(x, 0), n.expr(roots.size())});
    for (int64_t step = 0; step < depth; ++step) {
      Value value = n.gatherElements(x, n.gather(feature, node, 0), 1);
      Value side = n.select(passes(value, node), n.scalar(0, index), n.scalar(1, index));
      node = n.gather(child, n.add(n.mul(node, 2.0), side), 0);
    }
    return node;
  }

private:
  Value passes(Value value, Value node) {
    Value limit = n.gather(threshold, node, 0);
    switch (common.value_or(0)) {
    case Below | Equal:
      return n.lessEqual(value, limit);
    case Below:
      return n.less(value, limit);
    case Above | Equal:
      return n.lessEqual(limit, value);
    case Above:
      return n.less(limit, value);
    case Equal:
      return n.equal(value, limit);
    default:
      break;
    }
    auto number = [&](unsigned outcome) { return n.scalar(outcome, index); };
    Value outcome = n.select(n.less(value, limit), number(Below),
                             n.select(n.equal(value, limit), number(Equal),
                                      n.select(n.less(limit, value), number(Above), number(Unordered))));
    Value accepted = mask ? n.gather(mask, node, 0) : number(*common);
    return n.logicalNot(n.equal(n.logicalAnd(accepted, outcome), number(0)));
  }

  NodeContext &n;
  Value x;
  const Forest &forest;
  Type index;                     // unsigned: no index counts from the end
  std::optional<unsigned> common; // what all nodes accept; 0: they differ
  Value feature, threshold, child, mask;
};

} // namespace

/// The leaves' weights over all trees: [rows, targets]. A target that no leaf names gets 0, to which its base value is
/// added as in the specification's reference (onnxruntime leaves such a target at 0).
static Value aggregate(NodeContext &n, const Forest &forest, Value rows, int64_t targets, Aggregate kind) {
  std::optional<int64_t> depth = findDepth(n, forest);
  if (!depth || !rows)
    return {};
  constexpr int64_t maxEntries = int64_t(1) << 28; // of the table of weights
  if (targets > maxEntries / int64_t(std::max<size_t>(1, forest.nodes.size())))
    return n.fail(DiagId::UnsupportedForm, "an ensemble of " + std::to_string(targets) + " targets");
  double nothing = kind == Aggregate::Min ? INFINITY : kind == Aggregate::Max ? -INFINITY : 0;
  llvm::SmallVector<double> table(forest.nodes.size() * targets, nothing);
  for (const LeafWeight &leaf : forest.weights) {
    double &entry = table[leaf.node * targets + leaf.target];
    entry = kind == Aggregate::Min   ? std::min(entry, leaf.weight)
            : kind == Aggregate::Max ? std::max(entry, leaf.weight)
                                     : entry + leaf.weight;
  }
  Value leaf = ForestWalk(n, rows, forest).leaves(*depth);
  Value weights = n.floatVector(table, n.elementType(rows));
  if (targets > 1)
    weights = n.reshape(weights, n.exprs({int64_t(forest.nodes.size()), targets}));
  Value all = n.gather(weights, leaf, 0); // [rows, trees] or [rows, trees, targets]
  ReduceKind reduction = kind == Aggregate::Min   ? ReduceKind::Min
                         : kind == Aggregate::Max ? ReduceKind::Max
                                                  : ReduceKind::Sum;
  Value scores = n.reduce(reduction, all, 1, /*keepDims=*/false);
  if (kind == Aggregate::Average)
    scores = n.div(scores, double(forest.roots.size()));
  if (nothing != 0)
    scores = n.select(n.test<IsInfOp>(scores), n.scalarLike(0, scores), scores);
  return targets > 1 ? scores : n.unsqueeze(scores, 1);
}

//===----------------------------------------------------------------------===//
// Attributes of versions 1 and 3: lists, a number a tree and a node
//===----------------------------------------------------------------------===//

namespace {

/// Reads lists of one length; diagnoses the first that has another.
class ListReader {
public:
  ListReader(NodeContext &n, size_t count) : n(n), count(count) {}

  Ints integers(llvm::StringRef name) { return checked(name, n.integers(name, {})); }
  llvm::SmallVector<double> reals(llvm::StringRef name) {
    std::optional<llvm::SmallVector<double>> list = n.reals(name);
    if (!list || list->empty())
      list = n.tensorReals((name + "_as_tensor").str());
    return checked(name, list ? *list : llvm::SmallVector<double>());
  }

private:
  template <typename List> List checked(llvm::StringRef name, List list) {
    if (list.size() != count)
      n.fail(DiagId::DimMismatch, "the number of values in '" + name.str() + "'", list.size(), "what is needed", count);
    list.resize(count);
    return list;
  }
  NodeContext &n;
  size_t count;
};

} // namespace

static std::optional<Forest> readForest(NodeContext &n, llvm::StringRef target, int64_t targets) {
  Ints trees = n.integers("nodes_treeids", {});
  size_t count = trees.size();
  ListReader read(n, count);
  Ints ids = read.integers("nodes_nodeids"), features = read.integers("nodes_featureids");
  Ints whenTrue = read.integers("nodes_truenodeids"), whenFalse = read.integers("nodes_falsenodeids");
  llvm::SmallVector<double> thresholds = read.reals("nodes_values");
  Ints missing = n.integers("nodes_missing_value_tracks_true", {});
  llvm::SmallVector<std::string> names = n.texts("nodes_modes");
  if (names.size() != count || count == 0)
    n.fail(DiagId::DimMismatch, "the number of values in 'nodes_modes'", names.size(), "what is needed", count);
  if (n.hasFailed())
    return std::nullopt;

  Forest forest;
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < count; ++i)
    if (!places.try_emplace({trees[i], ids[i]}, i).second) {
      n.fail(DiagId::BadAttribute, "nodes_nodeids", ids[i], "each node of a tree needs a number of its own");
      return std::nullopt;
    }
  auto place = [&](int64_t tree, int64_t id) {
    auto found = places.find({tree, id});
    return found == places.end() ? -1 : found->second;
  };
  std::vector<bool> isChild(count, false);
  for (size_t i = 0; i < count; ++i) {
    TreeNode node{features[i], thresholds[i]};
    if (names[i] != "LEAF") {
      const Mode *mode = llvm::find_if(modes, [&](const Mode &m) { return m.name == names[i]; });
      if (mode == std::end(modes)) {
        n.fail(DiagId::BadAttribute, "nodes_modes", "'" + names[i] + "'", "LEAF or a BRANCH mode is needed");
        return std::nullopt;
      }
      node.accepted = mode->accepted | (i < missing.size() && missing[i] ? Unordered : 0);
      node.whenTrue = place(trees[i], whenTrue[i]);
      node.whenFalse = place(trees[i], whenFalse[i]);
      for (int64_t child : {node.whenTrue, node.whenFalse})
        if (child >= 0)
          isChild[child] = true;
    } else {
      node.feature = 0;
      node.threshold = 0;
    }
    forest.nodes.push_back(node);
  }
  for (size_t i = 0; i < count; ++i)
    if (!isChild[i])
      forest.roots.push_back(i);

  Ints leafTrees = n.integers((target + "_treeids").str(), {});
  ListReader leaves(n, leafTrees.size());
  Ints leafIds = leaves.integers((target + "_nodeids").str()), leafTargets = leaves.integers((target + "_ids").str());
  llvm::SmallVector<double> weights = leaves.reals((target + "_weights").str());
  if (n.hasFailed())
    return std::nullopt;
  for (size_t i = 0; i < leafTrees.size(); ++i) {
    int64_t at = place(leafTrees[i], leafIds[i]);
    if (at < 0 || leafTargets[i] < 0 || leafTargets[i] >= targets) {
      n.fail(DiagId::BadAttribute, (target + "_ids").str(), leafTargets[i],
             "a leaf and one of " + std::to_string(targets) + " targets are needed");
      return std::nullopt;
    }
    if (!forest.nodes[at].accepted)
      forest.weights.push_back({at, leafTargets[i], weights[i]});
  }
  return forest;
}

/// base_values, one a target; empty where the model has none. Nothing after a diagnostic.
static std::optional<llvm::SmallVector<double>> readBase(NodeContext &n) {
  std::optional<llvm::SmallVector<double>> base = n.reals("base_values");
  if (!base || base->empty())
    base = n.tensorReals("base_values_as_tensor");
  if (n.hasFailed())
    return std::nullopt;
  return base ? *base : llvm::SmallVector<double>();
}

static std::optional<Aggregate> readAggregate(NodeContext &n) {
  std::string name = n.text("aggregate_function", "SUM");
  for (auto [known, kind] : {std::pair("AVERAGE", Aggregate::Average), std::pair("SUM", Aggregate::Sum),
                             std::pair("MIN", Aggregate::Min), std::pair("MAX", Aggregate::Max)})
    if (name == known)
      return kind;
  n.fail(DiagId::BadAttribute, "aggregate_function", "'" + name + "'", "AVERAGE, SUM, MIN or MAX is needed");
  return std::nullopt;
}

/// A transform of one score a row is none but PROBIT, as in onnxruntime.
static Value finishTargets(NodeContext &n, Value scores, int64_t targets, PostTransform transform) {
  bool isApplied = targets > 1 || transform == PostTransform::Probit;
  return isApplied ? transformScores(n, scores, transform) : scores;
}

Values treeEnsembleRegressor(NodeContext &n) {
  int64_t targets = n.integer("n_targets", 1);
  std::optional<Aggregate> kind = readAggregate(n);
  std::optional<PostTransform> transform = readPostTransform(n);
  if (!kind || !transform)
    return {};
  if (targets < 1)
    return {n.fail(DiagId::BadAttribute, "n_targets", targets, "a positive number is needed")};
  std::optional<Forest> forest = readForest(n, "target", targets);
  std::optional<llvm::SmallVector<double>> base = readBase(n);
  if (!forest || !base)
    return {};
  Value scores = aggregate(n, *forest, featureRows(n, 0), targets, *kind);
  if (int64_t(base->size()) == targets)
    scores = n.add(scores, n.floatVector(*base, n.elementType(scores)));
  return {n.convert(finishTargets(n, scores, targets, *transform), n.f32())};
}

//===----------------------------------------------------------------------===//
// Classifier
//===----------------------------------------------------------------------===//

/// The label of the second class where its score says so: as a probability, or as a logarithm of odds.
static Value labelByOneScore(NodeContext &n, Value score, const Labels &labels, bool isProbability) {
  Value isSecond = n.less(n.scalarLike(isProbability ? 0.5 : 0.0, score), score);
  Value index = n.reshape(n.select(isSecond, n.scalar(1, n.si64()), n.scalar(0, n.si64())), n.dim(score, 0));
  return chooseLabel(n, labels, index);
}

/// Two classes, and all leaves name the first: its score alone decides, and the other one's score follows from it. The
/// score is a probability if no weight is negative, else a logarithm of odds.
static Values classifyByOneScore(NodeContext &n, Value score, const Labels &labels, bool isProbability,
                                 PostTransform transform) {
  Value first;
  if (transform == PostTransform::Probit)
    return {n.fail(DiagId::UnsupportedAttribute, "post_transform", "PROBIT (of one score for two classes)")};
  Value label = labelByOneScore(n, score, labels, isProbability);
  if (transform == PostTransform::Logistic) {
    first = n.sigmoid(n.neg(score));
    score = n.sigmoid(score);
  } else if (isProbability) {
    first = n.sub(n.scalarLike(1, score), score);
  } else {
    first = n.neg(score);
  }
  return {label, n.convert(n.concat({first, score}, 1), n.f32())};
}

Values treeEnsembleClassifier(NodeContext &n) {
  std::optional<Labels> labels = classLabels(n, "classlabels_int64s", "classlabels_strings");
  std::optional<PostTransform> transform = readPostTransform(n);
  if (!labels || !transform)
    return {};
  int64_t classes = labels->size();
  std::optional<Forest> forest = readForest(n, "class", classes);
  std::optional<llvm::SmallVector<double>> base = readBase(n);
  if (!forest || !base)
    return {};
  const std::vector<LeafWeight> &weights = forest->weights;
  bool namesOne = llvm::all_of(weights, [&](const LeafWeight &w) { return w.target == weights.front().target; });
  bool isProbability = llvm::all_of(weights, [](const LeafWeight &w) { return w.weight >= 0; });
  Value rows = featureRows(n, 0);
  if (classes == 2 && namesOne && !weights.empty()) {
    bool isFirst = weights.front().target == 0;
    for (LeafWeight &weight : forest->weights)
      weight.target = 0;
    Value score = aggregate(n, *forest, rows, 1, Aggregate::Sum);
    // onnxruntime and the reference evaluator do not agree on what two bases of one score mean.
    if (!isFirst && base->size() > 1)
      return {n.fail(DiagId::UnsupportedForm, "two base_values where all leaves name the second of two classes")};
    if (isFirst && !base->empty())
      score = n.add(score, base->front());
    if (!isFirst) { // the first class has nothing
      Value first = n.fill(n.scalarLike(0, score), n.dims(score));
      Value scores = transformScores(n, n.concat({first, score}, 1), *transform);
      return {labelByOneScore(n, score, *labels, isProbability), n.convert(scores, n.f32())};
    }
    return classifyByOneScore(n, score, *labels, isProbability, *transform);
  }
  Value scores = aggregate(n, *forest, rows, classes, Aggregate::Sum);
  if (int64_t(base->size()) == classes)
    scores = n.add(scores, n.floatVector(*base, n.elementType(scores)));
  return {bestLabel(n, *labels, scores), n.convert(finishTargets(n, scores, classes, *transform), n.f32())};
}

//===----------------------------------------------------------------------===//
// TreeEnsemble: numbers of nodes and leaves
//===----------------------------------------------------------------------===//

namespace {

/// Reads version 5's attributes: leaves are numbered apart from nodes.
class EnsembleReader {
public:
  explicit EnsembleReader(NodeContext &n) : n(n) {}

  std::optional<Forest> read(int64_t targets) {
    Ints features = n.integers("nodes_featureids", {});
    count = features.size();
    ListReader list(n, count);
    trueNodes = list.integers("nodes_truenodeids");
    falseNodes = list.integers("nodes_falsenodeids");
    trueLeafs = list.integers("nodes_trueleafs");
    falseLeafs = list.integers("nodes_falseleafs");
    auto splits = n.tensorReals("nodes_splits"), weights = n.tensorReals("leaf_weights");
    std::optional<Ints> kinds = n.tensorIntegers("nodes_modes");
    Ints missing = n.integers("nodes_missing_value_tracks_true", {}), leafTargets = n.integers("leaf_targetids", {});
    auto needed = [&](llvm::StringRef name, size_t given, size_t size) {
      if (given != size)
        n.fail(DiagId::DimMismatch, "the number of values in '" + name.str() + "'", given, "what is needed", size);
    };
    needed("nodes_splits", splits ? splits->size() : 0, count);
    needed("nodes_modes", kinds ? kinds->size() : 0, count);
    needed("leaf_weights", weights ? weights->size() : 0, leafTargets.size());
    if (n.hasFailed())
      return std::nullopt;
    leafCount = leafTargets.size();
    forest.nodes.resize(count + leafCount);
    for (size_t i = 0; i < count; ++i) {
      TreeNode &node = forest.nodes[i];
      node = {features[i], (*splits)[i], 0, childOf(i, true), childOf(i, false)};
      unsigned whenMissing = i < missing.size() && missing[i] ? Unordered : 0;
      if ((*kinds)[i] == memberMode) {
        if (!chainMembers(i, whenMissing))
          return std::nullopt;
      } else if ((*kinds)[i] >= 0 && (*kinds)[i] < memberMode) {
        node.accepted = modes[(*kinds)[i]].accepted | whenMissing;
      } else {
        n.fail(DiagId::BadAttribute, "nodes_modes", (*kinds)[i], "0 to 6 is needed");
        return std::nullopt;
      }
    }
    for (size_t i = 0; i < leafCount; ++i) {
      if (leafTargets[i] < 0 || leafTargets[i] >= targets) {
        n.fail(DiagId::BadAttribute, "leaf_targetids", leafTargets[i], "one of the targets is needed");
        return std::nullopt;
      }
      forest.weights.push_back({int64_t(count + i), leafTargets[i], (*weights)[i]});
    }
    for (int64_t root : n.integers("tree_roots", {}))
      if (root >= 0 && root < int64_t(count))
        forest.roots.push_back(root);
      else
        n.fail(DiagId::BadAttribute, "tree_roots", root, "one of the nodes is needed");
    return n.hasFailed() ? std::nullopt : std::optional(std::move(forest));
  }

private:
  /// The place of a branch's end; -1 where it is none.
  int64_t childOf(size_t i, bool whenTrue) const {
    int64_t id = (whenTrue ? trueNodes : falseNodes)[i];
    bool isLeaf = (whenTrue ? trueLeafs : falseLeafs)[i] != 0;
    if (id < 0 || id >= int64_t(isLeaf ? leafCount : count))
      return -1;
    return isLeaf ? count + id : id;
  }

  /// Node i tests for the next set of `membership_values`, sets being separated by NaN: a chain of tests for equality.
  bool chainMembers(size_t i, unsigned whenMissing) {
    if (!members) {
      members = n.tensorReals("membership_values");
      if (!members)
        return n.fail(DiagId::MissingAttribute, "membership_values"), false;
    }
    llvm::SmallVector<double> set;
    for (; nextMember < members->size() && !std::isnan((*members)[nextMember]); ++nextMember)
      set.push_back((*members)[nextMember]);
    ++nextMember; // the separator
    TreeNode node = forest.nodes[i];
    node.accepted = Equal | whenMissing;
    if (set.empty()) { // nothing is in it
      forest.nodes[i].accepted = Equal | whenMissing;
      forest.nodes[i].threshold = NAN;
      return true;
    }
    int64_t whenFalse = node.whenFalse;
    for (double member : llvm::drop_begin(set)) {
      node.threshold = member;
      node.whenFalse = whenFalse;
      whenFalse = forest.nodes.size();
      forest.nodes.push_back(node);
    }
    node.threshold = set.front();
    node.whenFalse = whenFalse;
    forest.nodes[i] = node;
    return true;
  }

  NodeContext &n;
  Forest forest;
  size_t count = 0, leafCount = 0, nextMember = 0;
  Ints trueNodes, falseNodes, trueLeafs, falseLeafs;
  std::optional<llvm::SmallVector<double>> members;
};

} // namespace

Values treeEnsemble(NodeContext &n) {
  int64_t targets = n.integer("n_targets", 1), kind = n.integer("aggregate_function", 1);
  int64_t transform = n.integer("post_transform", 0);
  if (targets < 1)
    return {n.fail(DiagId::BadAttribute, "n_targets", targets, "a positive number is needed")};
  if (kind < 0 || kind > 3)
    return {n.fail(DiagId::BadAttribute, "aggregate_function", kind, "0 to 3 is needed")};
  if (transform < 0 || transform > 4)
    return {n.fail(DiagId::BadAttribute, "post_transform", transform, "0 to 4 is needed")};
  std::optional<Forest> forest = EnsembleReader(n).read(targets);
  if (!forest)
    return {};
  Value x = n.input(0);
  Value scores = aggregate(n, *forest, featureRows(n, 0), targets, Aggregate(kind));
  scores = finishTargets(n, scores, targets, PostTransform(transform));
  return {n.isFloat(x) ? n.convertLike(scores, x) : scores};
}

} // namespace ptc::decomp
