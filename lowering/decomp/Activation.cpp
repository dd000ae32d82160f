//===- Activation.cpp - activation functions and softmax ------------------===//
#include "lowering/decomp/Activations.h"
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/Unrounded.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <functional>

using namespace ptc::prim;

namespace ptc::decomp {

Values relu(NodeContext &n) { return {n.relu(n.input(0))}; }
Values sigmoid(NodeContext &n) { return {n.sigmoid(n.input(0))}; }
Values tanh(NodeContext &n) { return {n.tanh(n.input(0))}; }

/// x < 0 ? slope * x : x
static Value leaky(NodeContext &n, Value x, Value slope) {
  return n.select(n.less(x, n.scalarLike(0, x)), n.mul(slope, x), x);
}
Values leakyRelu(NodeContext &n) {
  Value x = n.input(0);
  return {leaky(n, x, n.scalarLike(n.real("alpha", 0.01), x))};
}

/// The slope broadcasts to x; before version 7 a vector of slopes belonged to the channels.
Values prelu(NodeContext &n) {
  Value x = n.input(0), slope = n.input(1);
  if (n.opset() < 7 && n.rank(slope) == 1 && !n.dim(slope, 0).isConstant(1) && n.rank(x) > 1)
    slope = n.broadcast(slope, 1, n.dims(x));
  return {leaky(n, x, n.broadcastTo(slope, n.dims(x)))};
}

/// x < 0 ? alpha * (exp(x) - 1) : x
static Value elu(NodeContext &n, Value x, double alpha) {
  Value negative = n.mul(n.unary<Expm1Op>(x), alpha);
  return n.select(n.less(x, n.scalarLike(0, x)), negative, x);
}
Values elu(NodeContext &n) { return {elu(n, n.input(0), n.real("alpha", 1.0))}; }

Values selu(NodeContext &n) {
  double alpha = n.real("alpha", 1.67326319217681884765625), gamma = n.real("gamma", 1.05070102214813232421875);
  return {n.mul(elu(n, n.input(0), alpha), gamma)};
}

/// max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
Values celu(NodeContext &n) {
  Value x = n.input(0);
  double alpha = n.real("alpha", 1.0);
  Value negative = n.mul(n.unary<Expm1Op>(n.div(x, alpha)), alpha);
  return {n.add(n.relu(x), n.minimum(n.scalarLike(0, x), negative))};
}

/// max(0, min(1, alpha * x + beta))
static Value hardSigmoid(NodeContext &n, Value x, double alpha, double beta) {
  return n.clamp(n.add(n.mul(x, alpha), beta), 0, 1);
}
Values hardSigmoid(NodeContext &n) { return {hardSigmoid(n, n.input(0), n.real("alpha", 0.2), n.real("beta", 0.5))}; }
Values hardSwish(NodeContext &n) {
  Value x = n.input(0);
  return {n.mul(x, hardSigmoid(n, x, 1.0 / 6, 0.5))};
}

/// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), which never overflows
static Value softplus(NodeContext &n, Value x) { return n.add(n.relu(x), n.unary<Log1pOp>(n.exp(n.neg(n.abs(x))))); }
Values softplus(NodeContext &n) { return {softplus(n, n.input(0))}; }
Values mish(NodeContext &n) {
  Value x = n.input(0);
  return {n.mul(x, n.tanh(softplus(n, x)))};
}
Values softsign(NodeContext &n) {
  Value x = n.input(0);
  return {n.div(x, n.add(n.abs(x), 1.0))};
}
Values swish(NodeContext &n) {
  Value x = n.input(0);
  return {n.mul(x, n.sigmoid(n.mul(x, n.real("alpha", 1.0))))};
}

Values thresholdedRelu(NodeContext &n) {
  Value x = n.input(0), zero = n.scalarLike(0, x);
  return {n.select(n.less(n.scalarLike(n.real("alpha", 1.0), x), x), x, zero)};
}

/// x < -lambd ? x + bias : x > lambd ? x - bias : 0
Values shrink(NodeContext &n) {
  Value given = n.input(0), x = given;
  double lambd = n.real("lambd", 0.5), bias = n.real("bias", 0.0);
  if (n.isInteger(x) && bias != std::trunc(bias)) // the sum loses its fraction, the bias does not
    x = n.convert(x, n.f64());
  Value low = n.less(x, n.scalarLike(-lambd, x)), high = n.less(n.scalarLike(lambd, x), x);
  Value moved = n.select(low, n.add(x, bias), n.select(high, n.sub(x, bias), n.scalarLike(0, x)));
  return {n.convertLike(moved, given)};
}

/// f(x), in f32 where x is narrower: numbers like sqrt(1/2) are not rounded to its type.
static Value inWide(NodeContext &n, Value x, llvm::function_ref<Value(Value)> f) {
  return isNarrow(n, x) ? unrounded(n, f(unrounded(n, x, n.f32())), n.elementType(x)) : f(x);
}

/// x / 2 * (1 + erf(x / sqrt(2)))
static Value geluByErf(NodeContext &n, Value given) {
  return inWide(n, given, [&](Value x) { return n.mul(n.mul(x, 0.5), n.add(n.erf(n.mul(x, std::sqrt(0.5))), 1.0)); });
}
/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
static Value geluByTanh(NodeContext &n, Value given) {
  return inWide(n, given, [&](Value x) {
    Value cube = n.mul(n.mul(x, x), x);
    Value inner = n.tanh(n.mul(n.add(x, n.mul(cube, 0.044715)), std::sqrt(2 / M_PI)));
    return n.mul(n.mul(x, 0.5), n.add(inner, 1.0));
  });
}
Values gelu(NodeContext &n) {
  Value x = n.input(0);
  std::string approximate = n.text("approximate", "none");
  if (approximate == "none")
    return {geluByErf(n, x)};
  if (approximate == "tanh")
    return {geluByTanh(n, x)};
  return {n.fail(DiagId::BadAttribute, "approximate", "'" + approximate + "'", "none or tanh is needed")};
}
Values biasGelu(NodeContext &n) { return {geluByErf(n, n.add(n.input(0), n.input(1)))}; }
Values fastGelu(NodeContext &n) {
  Value x = n.input(0);
  return {geluByTanh(n, n.hasInput(1) ? n.add(x, n.input(1)) : x)};
}

/// x * sigmoid(alpha * x)
Values quickGelu(NodeContext &n) {
  Value x = n.input(0);
  return {n.mul(x, n.sigmoid(n.mul(x, n.real("alpha", 1.702))))};
}

Value activate(NodeContext &n, Value x, llvm::StringRef name, const ActivationParameters &p) {
  if (name.empty())
    return x;
  std::pair<llvm::StringLiteral, std::function<Value()>> known[] = {
      {"Relu", [&] { return n.relu(x); }},
      {"Tanh", [&] { return n.tanh(x); }},
      {"Sigmoid", [&] { return n.sigmoid(x); }},
      {"LeakyRelu", [&] { return leaky(n, x, n.scalarLike(p.alpha.value_or(0.01), x)); }},
      {"Elu", [&] { return elu(n, x, p.alpha.value_or(1.0)); }},
      {"HardSigmoid", [&] { return hardSigmoid(n, x, p.alpha.value_or(0.2), p.beta.value_or(0.5)); }},
      {"HardSwish", [&] { return n.mul(x, hardSigmoid(n, x, 1.0 / 6, 0.5)); }},
      {"Clip", [&] { return n.clamp(x, p.alpha.value_or(-INFINITY), p.beta.value_or(INFINITY)); }},
      {"Softplus", [&] { return softplus(n, x); }},
      {"Softsign", [&] { return n.div(x, n.add(n.abs(x), 1.0)); }},
      {"Gelu", [&] { return geluByErf(n, x); }},
      {"FastGelu", [&] { return geluByTanh(n, x); }},
  };
  auto *found = llvm::find_if(known, [&](const auto &kind) { return kind.first == name; });
  if (found != std::end(known))
    return found->second();
  auto names = llvm::map_range(known, [](const auto &kind) { return kind.first; });
  return n.failWithHelp("supported: " + llvm::join(names, ", "), DiagId::UnsupportedAttribute, "activation", name);
}

//===----------------------------------------------------------------------===//
// Softmax and its kind
//===----------------------------------------------------------------------===//

/// Before version 13 the operators see x as a matrix: dims before `axis` are rows, the others are one column dim.
template <typename Rowwise> static Value alongAxis(NodeContext &n, Rowwise rowwise) {
  Value x = n.input(0);
  bool isMatrix = n.opset() < 13;
  std::optional<int64_t> axis = n.axis(n.rank(x), isMatrix ? 1 : -1);
  if (!axis)
    return {};
  if (!isMatrix || *axis + 1 == n.rank(x))
    return rowwise(x, *axis);
  Dims dims = n.dims(x);
  Expr rows = product(n.getContext(), llvm::ArrayRef(dims).take_front(*axis));
  Expr columns = product(n.getContext(), llvm::ArrayRef(dims).drop_front(*axis));
  return n.reshape(rowwise(n.reshape(x, {rows, columns}), 1), dims);
}

Values softmax(NodeContext &n) {
  return {alongAxis(n, [&](Value x, int64_t axis) { return n.softmax(x, axis); })};
}

/// (x - max) - log(sum(exp(x - max)))
Values logSoftmax(NodeContext &n) {
  return {alongAxis(n, [&](Value x, int64_t axis) {
    Value shifted = n.sub(x, n.reduce(ReduceKind::Max, x, axis, true));
    return n.sub(shifted, n.log(n.sum(n.exp(shifted), axis, true)));
  })};
}

/// 1 at the first maximum along the axis, 0 elsewhere
Values hardmax(NodeContext &n) {
  return {alongAxis(n, [&](Value x, int64_t axis) {
    Value best = n.argReduce(ArgKind::Max, x, axis, /*selectLast=*/false, /*keepDims=*/true);
    return n.convertLike(n.equal(n.iota(axis, n.dims(x), n.si64()), best), x);
  })};
}

} // namespace ptc::decomp
