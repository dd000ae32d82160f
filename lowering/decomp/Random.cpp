//===- Random.cpp - numbers that only look random -------------------------===//
//
// Element i of a node's result is drawn from philox(i, key): a function of its index
// alone, so that it does not matter how many threads compute it, or in which order.
// The key says which stream of numbers the node draws from:
//
//   with `seed`   the 32 bits of the attribute, a float (Dropout's: an integer): two nodes of one seed agree
//   without       1 << 32 | the number of the node among those that draw
//
// In a loop each round has a stream of its own: key' = philox(number of the round, key), for each loop around the node
// from the outermost. The generator that ONNX has in mind goes on from round to round, with a seed as well.
//
// So a run is a function of its inputs as ever: it gives the same numbers each time,
// which are not those of NumPy or onnxruntime, whose generators are sequences.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"
#include <bit>
#include <cmath>

using namespace ptc::prim;

namespace ptc::decomp {

namespace {

/// The numbers that one node draws.
class Stream {
public:
  enum class Seed { Real, Integer }; // the type of the attribute
  explicit Stream(NodeContext &n, Seed kind = Seed::Real) : n(n) {
    uint64_t number = (uint64_t(1) << 32) + n.nextStream();
    if (n.has("seed"))
      number =
          kind == Seed::Integer ? uint32_t(n.integer("seed", 0)) : std::bit_cast<uint32_t>(float(n.real("seed", 0)));
    auto type = mlir::RankedTensorType::get({}, n.ui64());
    key = n.constant(mlir::DenseElementsAttr::get(type, llvm::APInt(64, number)));
    for (Expr round : n.shapes.rounds)
      key = n.binary<PhiloxOp>(n.fromExprs(round, n.ui64(), /*isScalar=*/true), key);
  }

  /// 64 bits an element.
  Value bits(llvm::ArrayRef<Expr> dims) {
    Value index = n.iota(0, product(n.getContext(), dims), n.ui64());
    return n.reshape(n.binary<PhiloxOp>(index, n.fill(key, n.dims(index))), dims);
  }

  /// In [0, 1), of all numbers that `type` (f32 or f64) has with equal gaps.
  Value uniform(llvm::ArrayRef<Expr> dims, Type type) {
    int digits = type.isF64() ? 53 : 24;
    return n.mul(n.convert(high(bits(dims), digits), type), std::ldexp(1.0, -digits));
  }

  /// Box and Muller: sqrt(-2 ln u) cos(2 pi v), u in (0, 1] and v in [0, 1] from half of the bits each.
  Value normal(llvm::ArrayRef<Expr> dims, Type type) {
    Value both = bits(dims);
    Value low = n.logicalAnd(both, n.scalarLike(4294967295.0, both));
    Value u = n.mul(n.add(n.convert(high(both, 32), type), 1.0), 0x1p-32);
    Value v = n.mul(n.convert(low, type), 0x1p-32);
    return n.mul(n.sqrt(n.mul(n.log(u), -2.0)), n.unary<CosOp>(n.mul(v, 2 * M_PI)));
  }

private:
  Value high(Value word, int count) { return n.binary<ShiftRightOp>(word, n.scalarLike(64 - count, word)); }

  NodeContext &n;
  Value key;
};

} // namespace

/// Narrow floats are drawn as f32.
static Type drawnType(Type type) { return type.isF64() ? type : mlir::Float32Type::get(type.getContext()); }

/// The result's element type: `dtype`, or else `otherwise`; null after a diagnostic.
static Type floatType(NodeContext &n, Type otherwise) {
  Type type = n.has("dtype") ? n.typeAttribute("dtype") : otherwise;
  if (type && !llvm::isa<mlir::FloatType>(type))
    return n.fail(DiagId::BadAttribute, "dtype", n.integer("dtype", 0), "a float type is needed"), Type();
  return type;
}

static Values drawUniform(NodeContext &n, llvm::ArrayRef<Expr> dims, Type type) {
  if (!type || !n.resultType(dims, type) || n.hasFailed())
    return {};
  double low = n.real("low", 0.0), high = n.real("high", 1.0);
  return {n.convert(n.add(n.mul(Stream(n).uniform(dims, drawnType(type)), high - low), low), type)};
}

static Values drawNormal(NodeContext &n, llvm::ArrayRef<Expr> dims, Type type) {
  if (!type || !n.resultType(dims, type) || n.hasFailed())
    return {};
  double mean = n.real("mean", 0.0), scale = n.real("scale", 1.0);
  return {n.convert(n.add(n.mul(Stream(n).normal(dims, drawnType(type)), scale), mean), type)};
}

Values randomUniform(NodeContext &n) { return drawUniform(n, n.exprs(n.integers("shape", {})), floatType(n, n.f32())); }
Values randomNormal(NodeContext &n) { return drawNormal(n, n.exprs(n.integers("shape", {})), floatType(n, n.f32())); }
Values randomUniformLike(NodeContext &n) {
  return drawUniform(n, n.dims(n.input(0)), floatType(n, n.elementType(n.input(0))));
}
Values randomNormalLike(NodeContext &n) {
  return drawNormal(n, n.dims(n.input(0)), floatType(n, n.elementType(n.input(0))));
}

/// 1 with the probability that the input states.
Values bernoulli(NodeContext &n) {
  Value p = n.input(0);
  Type type = n.has("dtype") ? n.typeAttribute("dtype") : n.elementType(p), drawn = drawnType(n.elementType(p));
  return {n.convert(n.less(Stream(n).uniform(n.dims(p), drawn), n.convert(p, drawn)), type)};
}

/// Each row holds logarithms of the weights of its classes: a draw is the first class whose running sum is above it.
Values multinomial(NodeContext &n) {
  Value x = n.input(0);
  Type type = n.has("dtype") ? n.typeAttribute("dtype") : n.si32(), drawn = drawnType(n.elementType(x));
  int64_t samples = n.integer("sample_size", 1);
  if (n.rank(x) != 2 || samples < 1)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "a matrix is needed, and a sample_size of at least 1")};
  Value sums = n.scan(ReduceKind::Sum, n.softmax(n.convert(x, drawn), 1), 1, /*exclusive=*/false, /*reverse=*/false);
  Expr rows = n.dim(x, 0), classes = n.dim(x, 1);
  Value last = n.sliceAxis(sums, 1, classes - n.expr(1), n.expr(1));
  Value draws = n.mul(Stream(n).uniform({rows, n.expr(samples)}, drawn), last); // rounding: the sum may not be 1
  Value isBelow = n.lessEqual(n.unsqueeze(sums, 1), n.unsqueeze(draws, 2));     // [rows, samples, classes]
  Value count = n.sum(n.convert(isBelow, n.si64()), 2, false);
  Value bound = n.fromExprs(classes - n.expr(1), n.si64(), /*isScalar=*/true);
  return {n.convert(n.minimum(count, bound), type)};
}

/// Training: elements are kept with probability 1 - ratio and scaled by its inverse. Else the identity.
Values dropout(NodeContext &n) {
  Value x = n.input(0), training = n.hasInput(2) ? n.reshape(n.input(2), {}) : n.scalar(0, n.i1());
  Type maskType = n.opset() >= 10 ? n.i1() : n.elementType(x);
  std::optional<Expr> known = n.knownCondition(training);
  if (known && known->isConstant(0))
    return {x, n.hasOutput(1) ? n.fill(n.scalar(1, maskType), n.dims(x)) : Value()};
  Type drawn = drawnType(n.elementType(x));
  Value ratio = n.hasInput(1) ? n.convert(n.reshape(n.input(1), {}), drawn) : n.scalar(0.5, drawn);
  Value isKept = n.lessEqual(ratio, Stream(n, Stream::Seed::Integer).uniform(n.dims(x), drawn));
  Value scale = n.unary<ReciprocalOp>(n.sub(n.scalarLike(1, ratio), ratio));
  Value dropped = n.convertLike(n.mul(n.convert(x, drawn), scale), x);
  return {n.select(training, n.select(isKept, dropped, n.scalarLike(0, x)), x),
          n.convert(n.logicalOr(isKept, n.logicalNot(training)), maskType)};
}

} // namespace ptc::decomp
