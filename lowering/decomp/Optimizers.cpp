//===- Optimizers.cpp - steps of training ---------------------------------===//
//
// ai.onnx.preview.training. Inputs: the learning rate R, the number T of steps so
// far, then a list of tensors for each role (parameters X, gradients G, moments).
// Results: the new tensors, a list a role.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

namespace {

/// The tensors of one parameter, a role each.
using Roles = llvm::SmallVector<Value, 4>;

} // namespace

/// Applies `step` to each parameter's tensors. The first result of a step replaces the parameter.
template <typename Step> static Values eachParameter(NodeContext &n, size_t roles, Step step) {
  size_t given = n.inputCount() < 2 ? 0 : n.inputCount() - 2, count = given / roles;
  if (count == 0 || count * roles != given)
    return {n.fail(DiagId::DimMismatch, "the number of tensors after R and T", given, "what is needed",
                   "a multiple of " + std::to_string(roles))};
  llvm::SmallVector<Roles> results;
  for (size_t i = 0; i < count; ++i) {
    Roles x;
    for (size_t role = 0; role < roles; ++role)
      x.push_back(n.input(2 + role * count + i));
    results.push_back(step(x));
  }
  Values outputs;
  for (size_t role = 0; role < results.front().size(); ++role)
    for (Roles &result : results)
      outputs.push_back(result[role]);
  return outputs;
}

/// The gradient of the loss with a penalty of norm_coefficient / 2 * |X|^2
static Value regularized(NodeContext &n, Value x, Value g) { return n.add(n.mul(x, n.real("norm_coefficient", 0)), g); }

static Value rateLike(NodeContext &n, Value x) { return n.convertLike(n.reshape(n.input(0), {}), x); }
static Value stepsLike(NodeContext &n, Value x) { return n.convertLike(n.reshape(n.input(1), {}), x); }
static Value isPositive(NodeContext &n, Value x) { return n.less(n.scalarLike(0, x), x); }

Values adagrad(NodeContext &n) {
  return eachParameter(n, 3, [&](Roles &t) -> Roles {
    Value x = t[0], g = regularized(n, x, t[1]);
    Value decay = n.add(n.mul(stepsLike(n, x), n.real("decay_factor", 0)), 1.0);
    Value squares = n.add(t[2], n.mul(g, g));
    Value step = n.div(n.mul(n.div(rateLike(n, x), decay), g), n.add(n.sqrt(squares), n.real("epsilon", 1e-6)));
    return {n.sub(x, step), squares};
  });
}

Values adam(NodeContext &n) {
  double alpha = n.real("alpha", 0.9), beta = n.real("beta", 0.999);
  return eachParameter(n, 4, [&](Roles &t) -> Roles {
    Value x = t[0], g = regularized(n, x, t[1]), rate = rateLike(n, x), steps = stepsLike(n, x);
    Value mean = n.add(n.mul(t[2], alpha), n.mul(g, 1 - alpha));
    Value squares = n.add(n.mul(t[3], beta), n.mul(n.mul(g, g), 1 - beta));
    auto rest = [&](double base) { // 1 - base^T
      return n.sub(n.scalarLike(1, x), n.binary<PowOp>(n.scalarLike(base, x), steps));
    };
    Value corrected = n.div(n.mul(rate, n.sqrt(rest(beta))), rest(alpha));
    rate = n.select(isPositive(n, steps), corrected, rate);
    Value step = n.mul(rate, n.div(mean, n.add(n.sqrt(squares), n.real("epsilon", 1e-6))));
    return {n.mul(n.sub(x, step), 1 - n.real("norm_coefficient_post", 0)), mean, squares};
  });
}

Values momentum(NodeContext &n) {
  double alpha = n.real("alpha", 0), beta = n.real("beta", 0);
  std::string mode = n.text("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    return {n.fail(DiagId::BadAttribute, "mode", "'" + mode + "'", "standard or nesterov is needed")};
  return eachParameter(n, 3, [&](Roles &t) -> Roles {
    Value x = t[0], g = regularized(n, x, t[1]);
    Value weight = n.select(isPositive(n, stepsLike(n, x)), n.scalarLike(beta, x), n.scalarLike(1, x));
    Value velocity = n.add(n.mul(t[2], alpha), n.mul(weight, g));
    Value step = mode == "nesterov" ? n.add(g, n.mul(velocity, alpha)) : velocity;
    return {n.sub(x, n.mul(rateLike(n, x), step)), velocity};
  });
}

} // namespace ptc::decomp
