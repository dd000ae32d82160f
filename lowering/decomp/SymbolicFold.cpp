//===- SymbolicFold.cpp - values of small tensors as expressions ----------===//
//
// Exporters compute shapes with tensors: Shape, Gather, Cast, Mul, Floor,
// Concat, and then Reshape or Resize. None of it may survive import, since dims
// are expressions in prim. This file interprets primitives over expressions:
//
//   element    a quotient of two expressions. Integers and booleans (0, 1) have
//              the denominator 1; floats appear because exporters scale sizes in
//              floating point (`floor(float(h) * 2.0)`), and only floats that are
//              exact quotients are followed.
//   views      move elements; no arithmetic.
//   pointwise  exact arithmetic. Comparisons give lt/eq expressions, which the
//              ranges of the symbols decide where they can.
//
// The walk goes from a value up through the ops that define it. It is cheap,
// because every integer result that it finds is written back as prim.exprs or
// prim.constant by the builder: the next walk ends there. Only undecided booleans
// and floats are walked again, each value once, and not deeper than `maxDepth`.
//
// Floats are treated as exact reals here, which is what the writer of a scale
// factor means; a model that relies on rounding in its shape arithmetic would get
// the size that exact arithmetic gives.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/SymbolicFold.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;
using namespace ptc::prim;

namespace {

constexpr unsigned maxDepth = 32;
using Known = std::optional<KnownTensor>;
using KnownScalar = std::optional<Rational>;

int64_t elementCount(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

/// Calls `visit` with the coordinates of every element in row-major order.
void forEachIndex(ArrayRef<int64_t> shape, function_ref<void(ArrayRef<int64_t>)> visit) {
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t n = elementCount(shape); n > 0; --n) {
    visit(index);
    for (int64_t axis = shape.size() - 1; axis >= 0 && ++index[axis] == shape[axis]; --axis)
      index[axis] = 0;
  }
}

int64_t linearize(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t linear = 0;
  for (auto [i, dim] : llvm::zip(index, shape))
    linear = linear * dim + i;
  return linear;
}

class Evaluator {
public:
  explicit Evaluator(const ShapeScope &shapes) : shapes(shapes) {}

  Known evaluate(Value value, unsigned depth) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !type.hasStaticShape() || type.getNumElements() > maxKnownElements || depth > maxDepth)
      return std::nullopt;
    Operation *op = value.getDefiningOp();
    if (!op)
      return std::nullopt;
    // Expressions are signed: of 64 bits without a sign they hold half.
    if (auto integer = dyn_cast<IntegerType>(type.getElementType());
        integer && integer.isUnsigned() && integer.getWidth() > 63)
      return std::nullopt;
    this->depth = depth;
    return wrapped(compute(op, type), type.getElementType());
  }

private:
  Known compute(Operation *op, RankedTensorType type) {
    return TypeSwitch<Operation *, Known>(op)
        .Case([&](ConstantOp c) { return constant(c.getValue()); })
        .Case([&](ExprsOp e) { return exprs(e, type.getShape()); })
        .Case([&](ReshapeOp r) { return reshape(r, type.getShape()); })
        .Case([&](BroadcastOp b) { return broadcast(b, type.getShape()); })
        .Case([&](TransposeOp t) { return transpose(t, type.getShape()); })
        .Case([&](SliceOp s) { return slice(s, type.getShape()); })
        .Case([&](ConcatOp c) { return concat(c, type.getShape()); })
        .Case([&](GatherOp g) { return gather(g, type.getShape()); })
        .Case([&](ReduceOp r) { return reduce(r, type.getShape()); })
        .Case([&](ScanOp s) { return scan(s); })
        .Case([&](IotaOp i) { return iota(i, type); })
        .Case([&](PointwiseOpInterface) { return pointwise(op, type); })
        .Default([](Operation *) { return std::nullopt; });
  }

  /// Constants wrap in their type; a symbolic size is taken to fit.
  Known wrapped(Known known, Type element) {
    auto type = dyn_cast<IntegerType>(element);
    if (!known || !type || type.getWidth() == 1 || type.getWidth() > 63)
      return known;
    for (Rational &x : known->elements)
      if (std::optional<int64_t> value = x.numerator.asConstant(); value && x.isInteger()) {
        APInt bits(type.getWidth(), *value, /*isSigned=*/true, /*implicitTrunc=*/true);
        x = integer(type.isUnsigned() ? int64_t(bits.getZExtValue()) : bits.getSExtValue());
      }
    return known;
  }

  Rational integer(Expr e) const { return {shapes.simplify(e), shapes.constant(1)}; }
  Rational integer(int64_t value) const { return {shapes.constant(value), shapes.constant(1)}; }

  Known operand(Value value) {
    if (auto found = results.find(value); found != results.end())
      return found->second;
    unsigned saved = depth;
    Known known = evaluate(value, depth + 1);
    depth = saved;
    results.try_emplace(value, known);
    return known;
  }

  //===--- Sources ---===//

  /// The float as a quotient of integers, if it is one with a small denominator.
  KnownScalar fromDouble(double value) const {
    double denominator = 1;
    for (; denominator <= 1 << 20; denominator *= 2)
      if (double scaled = value * denominator; scaled == std::trunc(scaled) && std::abs(scaled) < 1e15)
        return Rational{shapes.constant(int64_t(scaled)), shapes.constant(int64_t(denominator))};
    return std::nullopt;
  }

  Known constant(ElementsAttr attr) {
    auto dense = dyn_cast<DenseElementsAttr>(attr);
    if (!dense)
      return std::nullopt;
    KnownTensor known{SmallVector<int64_t>(dense.getType().getShape()), {}};
    Type type = dense.getElementType();
    if (isa<FloatType>(type)) {
      for (const APFloat &value : dense.getValues<APFloat>()) {
        KnownScalar element = value.isFinite() ? fromDouble(value.convertToDouble()) : std::nullopt;
        if (!element)
          return std::nullopt;
        known.elements.push_back(*element);
      }
      return known;
    }
    auto integerType = dyn_cast<IntegerType>(type);
    if (!integerType || integerType.getWidth() > 64)
      return std::nullopt;
    bool isZeroExtended = integerType.isUnsigned() || integerType.getWidth() == 1;
    for (const APInt &value : dense.getValues<APInt>())
      known.elements.push_back(integer(isZeroExtended ? int64_t(value.getZExtValue()) : value.getSExtValue()));
    return known;
  }

  Known exprs(ExprsOp op, ArrayRef<int64_t> shape) {
    KnownTensor known{SmallVector<int64_t>(shape), {}};
    for (Expr e : getExprs(op.getValues()))
      known.elements.push_back(integer(e));
    return known;
  }

  Known iota(IotaOp op, RankedTensorType type) {
    if (!isa<IntegerType>(type.getElementType()))
      return std::nullopt;
    KnownTensor known{SmallVector<int64_t>(type.getShape()), {}};
    forEachIndex(type.getShape(), [&](ArrayRef<int64_t> i) { known.elements.push_back(integer(i[op.getAxis()])); });
    return known;
  }

  //===--- Views ---===//

  /// The tensor of `shape` whose element at an index is `source` of that index.
  template <typename Source> Known collect(ArrayRef<int64_t> shape, const KnownTensor &x, Source source) {
    KnownTensor known{SmallVector<int64_t>(shape), {}};
    forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> from = source(index);
      known.elements.push_back(x.elements[linearize(from, x.shape)]);
    });
    return known;
  }

  Known reshape(ReshapeOp op, ArrayRef<int64_t> shape) {
    Known x = operand(op.getX());
    if (x)
      x->shape.assign(shape.begin(), shape.end());
    return x;
  }

  Known broadcast(BroadcastOp op, ArrayRef<int64_t> shape) {
    Known x = operand(op.getX());
    if (!x)
      return std::nullopt;
    return collect(shape, *x, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> from;
      for (auto [axis, dim] : llvm::zip(op.getAxes(), x->shape))
        from.push_back(dim == 1 ? 0 : index[axis]);
      return from;
    });
  }

  Known transpose(TransposeOp op, ArrayRef<int64_t> shape) {
    Known x = operand(op.getX());
    if (!x)
      return std::nullopt;
    return collect(shape, *x, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> from(index.size());
      for (auto [i, axis] : llvm::enumerate(op.getPermutation()))
        from[axis] = index[i];
      return from;
    });
  }

  Known slice(SliceOp op, ArrayRef<int64_t> shape) {
    Known x = operand(op.getX());
    SmallVector<Expr> starts = getExprs(op.getStarts());
    if (!x || !llvm::all_of(starts, [](Expr e) { return e.isConstant(); }))
      return std::nullopt;
    return collect(shape, *x, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> from;
      for (auto [i, start, step] : llvm::zip(index, starts, op.getSteps()))
        from.push_back(start.getValue() + i * step);
      return from;
    });
  }

  Known concat(ConcatOp op, ArrayRef<int64_t> shape) {
    SmallVector<KnownTensor> parts;
    for (Value input : op.getInputs()) {
      Known part = operand(input);
      if (!part)
        return std::nullopt;
      parts.push_back(std::move(*part));
    }
    KnownTensor known{SmallVector<int64_t>(shape), {}};
    forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> from(index);
      int64_t &position = from[op.getAxis()];
      KnownTensor *part = parts.begin();
      for (; position >= part->shape[op.getAxis()]; ++part)
        position -= part->shape[op.getAxis()];
      known.elements.push_back(part->elements[linearize(from, part->shape)]);
    });
    return known;
  }

  Known gather(GatherOp op, ArrayRef<int64_t> shape) {
    Known x = operand(op.getX()), indices = operand(op.getIndices());
    if (!x || !indices)
      return std::nullopt;
    int64_t size = x->shape[op.getAxis()];
    for (Rational index : indices->elements)
      if (!index.numerator.isConstant() || index.numerator.getValue() < 0 || index.numerator.getValue() >= size)
        return std::nullopt;
    return collect(shape, *x, [&](ArrayRef<int64_t> index) {
      ArrayRef<int64_t> inner = index.slice(op.getAxis(), indices->rank());
      SmallVector<int64_t> from(index.take_front(op.getAxis()));
      from.push_back(indices->elements[linearize(inner, indices->shape)].numerator.getValue());
      llvm::append_range(from, index.drop_front(op.getAxis() + indices->rank()));
      return from;
    });
  }

  //===--- Reductions ---===//

  KnownScalar combine(ReduceKind kind, Rational a, Rational b) {
    switch (kind) {
    case ReduceKind::Sum:
      return add(a, b);
    case ReduceKind::Prod:
      return mul(a, b);
    case ReduceKind::All:
    case ReduceKind::Min:
      return minmax(a, b, Expr::min);
    case ReduceKind::Any:
    case ReduceKind::Max:
      return minmax(a, b, Expr::max);
    }
    return std::nullopt;
  }

  Known reduce(ReduceOp op, ArrayRef<int64_t> shape) {
    Known x = operand(op.getX());
    if (!x)
      return std::nullopt;
    SmallVector<KnownScalar> sums(elementCount(shape));
    int64_t position = 0;
    bool isKnown = true;
    forEachIndex(x->shape, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> kept;
      for (auto [axis, i] : llvm::enumerate(index))
        if (!llvm::is_contained(op.getAxes(), int64_t(axis)))
          kept.push_back(i);
      KnownScalar &sum = sums[linearize(kept, shape)];
      Rational element = x->elements[position++];
      sum = sum ? combine(op.getKind(), *sum, element) : element;
      isKnown &= sum.has_value();
    });
    KnownTensor known{SmallVector<int64_t>(shape), {}};
    for (KnownScalar sum : sums) {
      bool isEmptyProduct = !sum && x->elements.empty() && op.getKind() == ReduceKind::Prod;
      bool isEmptySum = !sum && x->elements.empty() && op.getKind() == ReduceKind::Sum;
      if (!isKnown || (!sum && !isEmptyProduct && !isEmptySum))
        return std::nullopt;
      known.elements.push_back(sum ? *sum : integer(isEmptyProduct));
    }
    return known;
  }

  Known scan(ScanOp op) {
    Known x = operand(op.getX());
    if (!x || x->rank() != 1 || op.getKind() != ReduceKind::Sum || op.getExclusive() || op.getReverse())
      return std::nullopt;
    for (size_t i = 1; i < x->elements.size(); ++i) {
      KnownScalar sum = add(x->elements[i - 1], x->elements[i]);
      if (!sum)
        return std::nullopt;
      x->elements[i] = *sum;
    }
    return x;
  }

  //===--- Pointwise ---===//

  Known pointwise(Operation *op, RankedTensorType type) {
    SmallVector<KnownTensor> x;
    // A select needs only the side that its condition takes.
    for (Value value : op->getOperands()) {
      Known known = operand(value);
      if (!known)
        return std::nullopt;
      x.push_back(std::move(*known));
    }
    KnownTensor result{SmallVector<int64_t>(type.getShape()), {}};
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      SmallVector<Rational> arguments;
      for (KnownTensor &tensor : x)
        arguments.push_back(tensor.elements[i]);
      KnownScalar element = scalar(op, arguments);
      if (!element)
        return std::nullopt;
      result.elements.push_back(*element);
    }
    return result;
  }

  KnownScalar scalar(Operation *op, ArrayRef<Rational> x) {
    return TypeSwitch<Operation *, KnownScalar>(op)
        .Case([&](AddOp) { return add(x[0], x[1]); })
        .Case([&](SubOp) { return add(x[0], {-x[1].numerator, x[1].denominator}); })
        .Case([&](NegOp) { return Rational{-x[0].numerator, x[0].denominator}; })
        .Case([&](MulOp) { return mul(x[0], x[1]); })
        .Case([&](DivOp d) {
          return isa<FloatType>(getElementType(d.getA())) ? ratio(x[0], x[1]) : truncated(x[0], x[1]);
        })
        .Case([&](ModOp) { return modulo(x[0], x[1]); })
        .Case([&](RemOp) { return remainder(x[0], x[1]); })
        .Case([&](MaximumOp) { return minmax(x[0], x[1], Expr::max); })
        .Case([&](MinimumOp) { return minmax(x[0], x[1], Expr::min); })
        .Case([&](AbsOp) { return absolute(x[0]); })
        .Case([&](ReluOp) { return minmax(x[0], integer(0), Expr::max); })
        .Case([&](FloorOp) { return integer(x[0].numerator.floorDiv(x[0].denominator)); })
        .Case([&](CeilOp) { return integer(x[0].numerator.ceilDiv(x[0].denominator)); })
        .Case([&](EqOp) { return compare(x[0], x[1], Expr::eq); })
        .Case([&](NeOp) { return negated(compare(x[0], x[1], Expr::eq)); })
        .Case([&](LtOp) { return compare(x[0], x[1], Expr::lt); })
        .Case([&](LeOp) { return negated(compare(x[1], x[0], Expr::lt)); })
        .Case([&](AndOp o) { return boolean(o, [&] { return x[0].numerator * x[1].numerator; }); })
        .Case([&](OrOp o) { return boolean(o, [&] { return Expr::max(x[0].numerator, x[1].numerator); }); })
        .Case([&](XorOp o) {
          return boolean(o, [&] { return shapes.constant(1) - Expr::eq(x[0].numerator, x[1].numerator); });
        })
        .Case([&](NotOp o) { return boolean(o, [&] { return shapes.constant(1) - x[0].numerator; }); })
        .Case([&](SelectOp) { return choose(x[0], x[1], x[2]); })
        .Case([&](ConvertOp c) { return converted(c, x[0]); })
        .Default([](Operation *) { return std::nullopt; });
  }

  KnownScalar ratio(Rational a, Rational b) {
    ShapeScope::Quotient q = shapes.divide({a.numerator, b.denominator}, {a.denominator, b.numerator});
    if (!shapes.isPositive(q.denominator))
      return std::nullopt;
    return Rational{shapes.simplify(q.numerator), shapes.simplify(q.denominator)};
  }
  KnownScalar mul(Rational a, Rational b) {
    if (a.isInteger() && b.isInteger())
      return integer(a.numerator * b.numerator);
    return ratio(a, {b.denominator, b.numerator});
  }
  KnownScalar add(Rational a, Rational b) {
    if (a.isInteger() && b.isInteger())
      return integer(a.numerator + b.numerator);
    return ratio({a.numerator * b.denominator + b.numerator * a.denominator, shapes.constant(1)},
                 {a.denominator * b.denominator, shapes.constant(1)});
  }
  KnownScalar minmax(Rational a, Rational b, Expr (*choose)(Expr, Expr)) {
    if (a.isInteger() && b.isInteger())
      return integer(choose(a.numerator, b.numerator));
    if (a.denominator != b.denominator)
      return std::nullopt;
    return Rational{shapes.simplify(choose(a.numerator, b.numerator)), a.denominator};
  }
  KnownScalar truncated(Rational a, Rational b) {
    if (a.numerator.isConstant() && b.numerator.isConstant()) {
      int64_t divisor = b.numerator.getValue();
      if (divisor == 0)
        return integer(int64_t(0));
      return integer(divisor == -1 ? -a.numerator : shapes.constant(a.numerator.getValue() / divisor));
    }
    if (!shapes.isNonNegative(a.numerator) || !shapes.isPositive(b.numerator))
      return std::nullopt;
    ShapeScope::Quotient q = shapes.divide({a.numerator}, {b.numerator});
    return integer(q.numerator.floorDiv(q.denominator));
  }
  KnownScalar modulo(Rational a, Rational b) {
    if (!a.isInteger() || !b.isInteger() || b.numerator.isConstant(0))
      return std::nullopt;
    return integer(a.numerator.mod(b.numerator));
  }
  KnownScalar remainder(Rational a, Rational b) {
    if (!shapes.isNonNegative(a.numerator) || !shapes.isPositive(b.numerator))
      return std::nullopt;
    return modulo(a, b);
  }
  KnownScalar absolute(Rational a) {
    return Rational{shapes.simplify(Expr::max(a.numerator, -a.numerator)), a.denominator};
  }
  KnownScalar compare(Rational a, Rational b, Expr (*relation)(Expr, Expr)) {
    return integer(relation(a.numerator * b.denominator, b.numerator * a.denominator));
  }
  KnownScalar negated(KnownScalar a) { return integer(shapes.constant(1) - a->numerator); }
  template <typename Compute> KnownScalar boolean(Operation *op, Compute compute) {
    if (!getElementType(op->getResult(0)).isInteger(1))
      return std::nullopt;
    return integer(compute());
  }
  KnownScalar choose(Rational condition, Rational a, Rational b) {
    if (condition.numerator.isConstant())
      return condition.numerator.isConstant(0) ? b : a;
    if (!a.isInteger() || !b.isInteger())
      return std::nullopt;
    return integer(Expr::select(condition.numerator, a.numerator, b.numerator));
  }
  KnownScalar converted(ConvertOp op, Rational x) {
    Type from = getElementType(op.getX()), to = getElementType(op.getY());
    if (isa<FloatType>(to))
      return x;
    if (to.isInteger(1))
      return negated(integer(Expr::eq(x.numerator, shapes.constant(0))));
    auto integerType = dyn_cast<IntegerType>(to);
    if (!integerType)
      return std::nullopt;
    if (isa<FloatType>(from)) { // truncates towards zero
      if (!x.isInteger() && !shapes.isNonNegative(x.numerator))
        return std::nullopt;
      x = integer(x.numerator.floorDiv(x.denominator));
    }
    // A constant must keep its value; a symbolic size is taken to fit.
    if (std::optional<int64_t> value = x.numerator.asConstant(); value && integerType.getWidth() < 64) {
      unsigned width = integerType.getWidth();
      bool fits = integerType.isUnsigned() ? *value >= 0 && llvm::isUIntN(width, *value) : llvm::isIntN(width, *value);
      if (!fits)
        return std::nullopt;
    }
    return x;
  }

  const ShapeScope &shapes;
  unsigned depth = 0;
  llvm::DenseMap<Value, Known> results; // of operands, so that a shared one is walked once
};

} // namespace

std::optional<KnownTensor> ptc::decomp::evaluateSymbolically(Value value, const ShapeScope &shapes) {
  return value ? Evaluator(shapes).evaluate(value, 0) : std::nullopt;
}
