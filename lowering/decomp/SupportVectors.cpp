//===- SupportVectors.cpp - support vector machines -----------------------===//
//
// ai.onnx.ml. The kernel of every row with every support vector is a matrix:
//
//   LINEAR x.v    POLY (gamma x.v + coef0)^degree    SIGMOID tanh(gamma x.v + coef0)
//   RBF exp(-gamma |x - v|^2)
//
// A regression is its product with a vector of coefficients. A classifier has one
// such vector for each pair of classes, written as one matrix with zeros for the
// support vectors of other classes; each pair casts a vote. Probabilities of pairs
// become one of each class by the iteration that libsvm has (Wu, Lin and Weng:
// Probability Estimates for Multi-class Classification by Pairwise Coupling, 2004).
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/ClassScores.h"
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

using Reals = llvm::SmallVector<double>;

static Reals realsOrEmpty(NodeContext &n, llvm::StringRef name) { return n.reals(name).value_or(Reals()); }

/// [rows, vectors] for vectors given one behind the other.
static Value kernelMatrix(NodeContext &n, Value x, const Reals &vectors, int64_t count) {
  std::string kind = n.text("kernel_type", "LINEAR");
  Reals parameters = realsOrEmpty(n, "kernel_params");
  parameters.resize(3, 0.0);
  double gamma = parameters[0], shift = parameters[1], degree = parameters[2];
  if (count < 1 || vectors.empty() || vectors.size() % count)
    return n.fail(DiagId::BadAttribute, "support_vectors", int64_t(vectors.size()),
                  std::to_string(count) + " vectors of one length are needed");
  int64_t width = vectors.size() / count;
  Value v = n.reshape(n.floatVector(vectors, n.elementType(x)), n.exprs({count, width}));
  if (kind == "RBF") {
    Value difference = n.sub(n.unsqueeze(x, 1), v); // [rows, vectors, features]
    return n.exp(n.mul(n.sum(n.mul(difference, difference), 2, false), -gamma));
  }
  Value product = n.innerMatmul(x, n.swapAxes(v, 0, 1));
  if (kind == "LINEAR")
    return product;
  Value shifted = n.add(n.mul(product, gamma), shift);
  if (kind == "SIGMOID")
    return n.tanh(shifted);
  if (kind == "POLY")
    return n.binary<PowOp>(shifted, n.scalarLike(degree, shifted));
  return n.fail(DiagId::BadAttribute, "kernel_type", "'" + kind + "'", "LINEAR, POLY, RBF or SIGMOID is needed");
}

Values svmRegressor(NodeContext &n) {
  Value x = featureRows(n, 0);
  std::optional<PostTransform> transform = readPostTransform(n);
  Reals coefficients = realsOrEmpty(n, "coefficients"), rho = realsOrEmpty(n, "rho");
  int64_t supports = n.integer("n_supports", 0);
  if (!transform)
    return {};
  if (coefficients.empty() || rho.empty())
    return {n.fail(DiagId::MissingAttribute, coefficients.empty() ? "coefficients" : "rho")};
  Value kernel = supports > 0 ? kernelMatrix(n, x, realsOrEmpty(n, "support_vectors"), supports) : x;
  Value y = n.innerMatmul(kernel, n.unsqueeze(n.floatVector(coefficients, n.elementType(x)), 1));
  y = n.add(y, rho.front());
  if (n.integer("one_class", 0) == 1)
    y = n.select(n.less(n.scalarLike(0, y), y), n.scalarLike(1, y), n.scalarLike(-1, y));
  else if (*transform == PostTransform::Probit) // of one score a row others do nothing, as in onnxruntime
    y = transformScores(n, y, *transform);
  return {n.convert(y, n.f32())};
}

namespace {

/// One vote for each pair of classes.
struct Pairs {
  Value scores, votes; // [rows, pairs], [rows, classes]
};

} // namespace

/// coefficients [classes - 1, vectors]; vectors stand class by class. Pair (i, j) uses row j - 1 for the vectors of
/// class i and row i for those of class j.
static Pairs decidePairs(NodeContext &n, Value kernel, const Reals &coefficients, const Ints &sizes, const Reals &rho) {
  int64_t classes = sizes.size(), vectors = 0, pairs = classes * (classes - 1) / 2, pair = 0;
  Ints begins;
  for (int64_t size : sizes) {
    begins.push_back(vectors);
    vectors += size;
  }
  Reals matrix(vectors * pairs, 0.0), first(pairs * classes, 0.0), second = first;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      for (int64_t v = begins[i]; v < begins[i] + sizes[i]; ++v)
        matrix[v * pairs + pair] = coefficients[(j - 1) * vectors + v];
      for (int64_t v = begins[j]; v < begins[j] + sizes[j]; ++v)
        matrix[v * pairs + pair] = coefficients[i * vectors + v];
      first[pair * classes + i] = 1;
      second[pair * classes + j] = 1;
    }
  Type type = n.elementType(kernel);
  auto constant = [&](const Reals &values, int64_t rows) {
    return n.reshape(n.floatVector(values, type), n.exprs({rows, int64_t(values.size()) / rows}));
  };
  Value scores = n.add(n.innerMatmul(kernel, constant(matrix, vectors)), n.floatVector(rho, type));
  Value isFirst = n.less(n.scalarLike(0, scores), scores);
  Value wins = n.convert(isFirst, type), losses = n.convert(n.logicalNot(isFirst), type);
  return {scores, n.add(n.innerMatmul(wins, constant(first, pairs)), n.innerMatmul(losses, constant(second, pairs)))};
}

//===----------------------------------------------------------------------===//
// Probabilities
//===----------------------------------------------------------------------===//

/// What pair (i, j) says of class i against j: r [rows, classes, classes], with r_ji = 1 - r_ij.
static Value pairProbabilities(NodeContext &n, Value scores, const Reals &a, const Reals &b, int64_t classes) {
  Type type = n.elementType(scores);
  Value shifted = n.add(n.mul(scores, n.floatVector(a, type)), n.floatVector(b, type));
  Value first = n.clamp(n.sigmoid(n.neg(shifted)), 1e-7, 1 - 1e-7);
  Value all = n.concat({first, n.sub(n.scalarLike(1, first), first)}, 1);
  int64_t pairs = a.size(), pair = 0;
  Ints places(classes * classes, 0);
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      places[i * classes + j] = pair;
      places[j * classes + i] = pairs + pair;
    }
  return n.reshape(n.gather(all, n.intVector(places), 1), {n.dim(scores, 0), n.expr(classes), n.expr(classes)});
}

namespace {

/// Minimises p Q p over the probabilities p of each row, Q_tt = sum over j of r_jt^2, Q_tj = -r_jt r_tj: in each round
/// each p_t in turn, until a round begins with all residuals below a bound.
class Coupling {
public:
  Coupling(NodeContext &n, Value r, int64_t classes) : n(n), classes(classes), rows(n.dim(r, 0)) {
    Value across = n.transpose(r, {0, 2, 1});
    Reals unit(classes * classes, 0.0);
    for (int64_t t = 0; t < classes; ++t)
      unit[t * classes + t] = 1;
    isOwn = n.convert(n.reshape(n.floatVector(unit, n.elementType(r)), n.exprs({classes, classes})), n.i1());
    Value none = n.scalarLike(0, r), squares = n.select(isOwn, none, n.mul(across, across));
    diagonal = n.sum(squares, 2, /*keepDims=*/false);
    q = n.select(isOwn, n.unsqueeze(diagonal, 2), n.neg(n.mul(across, r)));
  }

  Value solve() {
    mlir::OpBuilder &builder = n.getBuilder();
    mlir::Location loc = n.getLoc();
    Expr trips = n.expr(std::max<int64_t>(100, classes));
    Value start = n.fill(n.scalar(1 / double(classes), n.elementType(q)), {rows, n.expr(classes)});
    Value goesOn = n.scalar(1, n.i1());
    Expr round = n.shapes.declareBound({.min = 0, .hint = 0}, trips - 1);
    if (n.hasFailed())
      return {};
    mlir::OperationState made(loc, LoopOp::getOperationName());
    mlir::Region *region = made.addRegion();
    {
      mlir::OpBuilder::InsertionGuard guard(builder);
      mlir::Block *block = builder.createBlock(region);
      Value p = block->addArgument(start.getType(), loc), isOpen;
      Value next = runRound(p, isOpen);
      if (n.hasFailed())
        return {};
      YieldOp::create(builder, loc, Values{isOpen, next});
    }
    made.addOperands({goesOn, start});
    made.addTypes(start.getType());
    auto &properties = made.getOrAddProperties<LoopOp::Properties>();
    properties.counter = builder.getStringAttr(round.getSymbol());
    properties.trips = trips;
    properties.operandSegmentSizes = {0, 1, 1, 0};
    return builder.create(made)->getResult(0);
  }

private:
  /// `isOpen`: whether some row is not done. A row that is done stays as it is.
  Value runRound(Value before, Value &isOpen) {
    Value p = before, product = n.sum(n.mul(q, n.unsqueeze(p, 1)), 2, /*keepDims=*/false); // Q p
    Value whole = n.sum(n.mul(p, product), 1, /*keepDims=*/true);                          // p Q p
    Value residual = n.reduce(ReduceKind::Max, n.abs(n.sub(product, whole)), 1, /*keepDims=*/true);
    Value isDone = n.less(residual, n.scalarLike(0.005 / double(classes), residual));
    for (int64_t t = 0; t < classes; ++t) {
      auto column = [&](Value x) { return n.sliceAxis(x, 1, n.expr(t), n.expr(1)); }; // [rows, 1]
      Value own = column(diagonal), error = column(product);
      Value step = n.div(n.sub(whole, error), own), total = n.add(step, 1.0);
      whole = n.div(n.add(whole, n.mul(step, n.add(n.mul(step, own), n.mul(error, 2.0)))), n.mul(total, total));
      product = n.div(n.add(product, n.mul(step, n.at(q, 1, t))), total);
      p = n.div(n.select(n.at(isOwn, 0, t), n.add(p, step), p), total);
    }
    Value open = n.convert(n.logicalNot(isDone), n.si32());
    isOpen = n.less(n.scalar(0, n.si32()), n.reshape(n.reduce(ReduceKind::Max, n.reshape(open, rows), 0, false), {}));
    return n.select(isDone, before, p);
  }

  NodeContext &n;
  int64_t classes;
  Expr rows;
  Value q, diagonal, isOwn; // [rows, classes, classes], [rows, classes], [classes, classes]
};

} // namespace

/// A model without support vectors: a row of coefficients for each class.
static Values linearSvm(NodeContext &n, const Labels &labels, PostTransform transform, const Reals &coefficients,
                        const Reals &rho) {
  int64_t classes = labels.size();
  if (coefficients.empty() || coefficients.size() % classes || rho.empty())
    return {n.fail(DiagId::DimMismatch, "the number of values in 'coefficients'", coefficients.size(),
                   "a multiple of the number of classes", classes)};
  Value x = featureRows(n, 0);
  Value w = n.reshape(n.floatVector(coefficients, n.elementType(x)),
                      n.exprs({classes, int64_t(coefficients.size()) / classes}));
  Value scores = n.add(n.innerMatmul(x, n.swapAxes(w, 0, 1)), rho.front());
  return {bestLabel(n, labels, scores), n.convert(transformScores(n, scores, transform), n.f32())};
}

Values svmClassifier(NodeContext &n) {
  std::optional<Labels> labels = classLabels(n, "classlabels_ints", "classlabels_strings");
  std::optional<PostTransform> transform = readPostTransform(n);
  Reals coefficients = realsOrEmpty(n, "coefficients"), rho = realsOrEmpty(n, "rho");
  Ints sizes = n.integers("vectors_per_class", {});
  if (!labels || !transform)
    return {};
  Reals slopes = realsOrEmpty(n, "prob_a"), shifts = realsOrEmpty(n, "prob_b");
  int64_t classes = labels->size(), vectors = 0, pairs = classes * (classes - 1) / 2;
  for (int64_t size : sizes)
    vectors += std::max<int64_t>(0, size);
  if (llvm::any_of(sizes, [](int64_t size) { return size < 0; }))
    return {
        n.fail(DiagId::BadAttribute, "vectors_per_class", *llvm::min_element(sizes), "numbers of vectors are needed")};
  if (vectors == 0)
    return linearSvm(n, *labels, *transform, coefficients, rho);
  if (int64_t(sizes.size()) != classes || classes < 2 || int64_t(coefficients.size()) != (classes - 1) * vectors ||
      int64_t(rho.size()) != pairs)
    return {n.fail(DiagId::DimMismatch, "the number of values in 'coefficients'", coefficients.size(), "what is needed",
                   (classes - 1) * vectors)};
  Value kernel = kernelMatrix(n, featureRows(n, 0), realsOrEmpty(n, "support_vectors"), vectors);
  if (!kernel)
    return {};
  Pairs decided = decidePairs(n, kernel, coefficients, sizes, rho);
  Value label = bestLabel(n, *labels, decided.votes), scores = decided.scores;
  if (!slopes.empty()) {
    if (int64_t(slopes.size()) != pairs || shifts.size() != slopes.size())
      return {n.fail(DiagId::DimMismatch, "the number of values in 'prob_a'", slopes.size(), "the pairs of classes",
                     pairs)};
    Value r = pairProbabilities(n, scores, slopes, shifts, classes);
    scores = r ? Coupling(n, r, classes).solve() : Value();
    return {label, n.convert(transformScores(n, scores, *transform), n.f32())};
  }
  if (classes > 2)
    return {label, n.convert(transformScores(n, scores, *transform), n.f32())};
  if (*transform == PostTransform::Probit)
    return {n.fail(DiagId::UnsupportedAttribute, "post_transform", "PROBIT (of one score for two classes)")};
  Value both = n.concat({n.neg(scores), scores}, 1);
  return {label, n.convert(transformScores(n, both, *transform), n.f32())};
}

} // namespace ptc::decomp
