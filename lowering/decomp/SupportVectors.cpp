//===- SupportVectors.cpp - support vector machines -----------------------===//
//
// ai.onnx.ml. The kernel of every row with every support vector is a matrix:
//
//   LINEAR x.v    POLY (gamma x.v + coef0)^degree    SIGMOID tanh(gamma x.v + coef0)
//   RBF exp(-gamma |x - v|^2)
//
// A regression is its product with a vector of coefficients. A classifier has one
// such vector for each pair of classes, written as one matrix with zeros for the
// support vectors of other classes; each pair casts a vote.
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
  Value product = n.matmul(x, n.swapAxes(v, 0, 1));
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
  Value y = n.matmul(kernel, n.unsqueeze(n.floatVector(coefficients, n.elementType(x)), 1));
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
  Value scores = n.add(n.matmul(kernel, constant(matrix, vectors)), n.floatVector(rho, type));
  Value isFirst = n.less(n.scalarLike(0, scores), scores);
  Value wins = n.convert(isFirst, type), losses = n.convert(n.logicalNot(isFirst), type);
  return {scores, n.add(n.matmul(wins, constant(first, pairs)), n.matmul(losses, constant(second, pairs)))};
}

Values svmClassifier(NodeContext &n) {
  std::optional<Labels> labels = classLabels(n, "classlabels_ints", "classlabels_strings");
  std::optional<PostTransform> transform = readPostTransform(n);
  Reals coefficients = realsOrEmpty(n, "coefficients"), rho = realsOrEmpty(n, "rho");
  Ints sizes = n.integers("vectors_per_class", {});
  if (!labels || !transform)
    return {};
  if (!realsOrEmpty(n, "prob_a").empty())
    return {n.fail(DiagId::UnsupportedAttribute, "prob_a", "a list (probabilities of pairs)")};
  int64_t classes = labels->size(), vectors = 0, pairs = classes * (classes - 1) / 2;
  for (int64_t size : sizes)
    vectors += std::max<int64_t>(0, size);
  if (vectors == 0 || llvm::any_of(sizes, [](int64_t size) { return size < 0; }))
    return {n.fail(DiagId::UnsupportedForm, "an SVMClassifier without support vectors")};
  if (int64_t(sizes.size()) != classes || classes < 2 || int64_t(coefficients.size()) != (classes - 1) * vectors ||
      int64_t(rho.size()) != pairs)
    return {n.fail(DiagId::DimMismatch, "the number of values in 'coefficients'", coefficients.size(), "what is needed",
                   (classes - 1) * vectors)};
  Value kernel = kernelMatrix(n, featureRows(n, 0), realsOrEmpty(n, "support_vectors"), vectors);
  if (!kernel)
    return {};
  Pairs decided = decidePairs(n, kernel, coefficients, sizes, rho);
  Value label = bestLabel(n, *labels, decided.votes), scores = decided.scores;
  if (classes > 2)
    return {label, n.convert(transformScores(n, scores, *transform), n.f32())};
  if (*transform == PostTransform::Probit)
    return {n.fail(DiagId::UnsupportedAttribute, "post_transform", "PROBIT (of one score for two classes)")};
  Value both = n.concat({n.neg(scores), scores}, 1);
  return {label, n.convert(transformScores(n, both, *transform), n.f32())};
}

} // namespace ptc::decomp
