//===- ClassScores.cpp - what classifiers do with scores ------------------===//
#include "lowering/decomp/ClassScores.h"
#include <cmath>
#include <numeric>

using namespace ptc;
using namespace ptc::decomp;
using namespace ptc::prim;

std::optional<PostTransform> decomp::readPostTransform(NodeContext &n) {
  std::string name = n.text("post_transform", "NONE");
  for (auto [known, transform] :
       {std::pair("NONE", PostTransform::None), std::pair("SOFTMAX", PostTransform::Softmax),
        std::pair("LOGISTIC", PostTransform::Logistic), std::pair("SOFTMAX_ZERO", PostTransform::SoftmaxZero),
        std::pair("PROBIT", PostTransform::Probit)})
    if (name == known)
      return transform;
  n.fail(DiagId::BadAttribute, "post_transform", "'" + name + "'",
         "NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT is needed");
  return std::nullopt;
}

/// exp(x - max) over its sum; scores of 0 keep out of the sum and stay (nearly) 0.
static Value softmaxZero(NodeContext &n, Value x) {
  Value high = n.reduce(ReduceKind::Max, x, 1, /*keepDims=*/true);
  Value isZero = n.lessEqual(n.abs(x), n.scalarLike(1e-7, x));
  Value e = n.exp(n.sub(x, high)), kept = n.select(isZero, n.mul(x, n.exp(n.neg(high))), e);
  return n.div(kept, n.sum(n.select(isZero, n.scalarLike(0, x), e), 1, true));
}

/// sqrt(2) * inverse erf(2p - 1), by the closed form of Winitzki that onnxruntime has.
static Value probit(NodeContext &n, Value p) {
  constexpr double a = 0.147, pi = 3.14159;
  Value x = n.add(n.mul(p, 2.0), -1.0), one = n.scalarLike(1, x);
  Value logarithm = n.log(n.mul(n.sub(one, x), n.add(x, 1.0)));
  Value v = n.add(n.mul(logarithm, 0.5), 2 / (pi * a));
  Value root = n.sqrt(n.sub(n.sqrt(n.sub(n.mul(v, v), n.mul(logarithm, 1 / a))), v));
  return n.mul(n.select(n.less(x, n.scalarLike(0, x)), n.neg(root), root), 1.41421356);
}

Value decomp::transformScores(NodeContext &n, Value scores, PostTransform transform) {
  switch (transform) {
  case PostTransform::None:
    return scores;
  case PostTransform::Softmax:
    return n.softmax(scores, 1);
  case PostTransform::Logistic:
    return n.sigmoid(scores);
  case PostTransform::SoftmaxZero:
    return softmaxZero(n, scores);
  case PostTransform::Probit:
    return probit(n, scores);
  }
  return scores;
}

std::optional<Labels> decomp::classLabels(NodeContext &n, llvm::StringRef integers, llvm::StringRef strings) {
  Labels labels;
  if (n.has(strings))
    labels.texts = n.texts(strings);
  if (labels.texts.empty())
    labels.integers = n.integers(integers, {});
  if (labels.size() > 0)
    return labels;
  n.fail(DiagId::MissingAttribute, integers);
  return std::nullopt;
}

Value decomp::chooseLabel(NodeContext &n, const Labels &labels, Value index) {
  if (!labels.texts.empty())
    return n.gather(n.strings(labels.texts), index, 0);
  bool areIndices =
      llvm::all_of(llvm::enumerate(labels.integers), [](auto item) { return int64_t(item.index()) == item.value(); });
  return areIndices ? index : n.gather(n.intVector(labels.integers), index, 0);
}

Value decomp::bestLabel(NodeContext &n, const Labels &labels, Value scores) {
  return chooseLabel(n, labels, n.argReduce(ArgKind::Max, scores, 1, /*selectLast=*/false, /*keepDims=*/false));
}

Value decomp::findString(NodeContext &n, Value x, llvm::ArrayRef<std::string> list) {
  Ints order(list.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return list[a] < list[b]; });
  order.erase(std::unique(order.begin(), order.end(), [&](int64_t a, int64_t b) { return list[a] == list[b]; }),
              order.end());
  auto sorted = llvm::map_to_vector(order, [&](int64_t i) { return list[i]; });
  int64_t count = order.size();
  Value place =
      n.call("string_lookup", {x, n.strings(sorted)}, {n.elementCount(x), n.expr(count)}, n.dims(x), n.si64());
  order.push_back(list.size());
  return n.gather(n.intVector(order), place, 0);
}

Value decomp::featureRows(NodeContext &n, size_t i) {
  Value x = n.input(i);
  x = n.elementType(x).isF64() ? x : n.convert(x, n.f32());
  if (n.rank(x) == 1)
    x = n.unsqueeze(x, 0);
  return n.rank(x) == 2 ? x : n.fail(DiagId::WrongRank, i, n.rank(x), "[rows, features] is needed");
}
