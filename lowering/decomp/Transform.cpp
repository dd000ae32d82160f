//===- Transform.cpp - discrete Fourier transforms ------------------------===//
//
//   X[k] = sum over t of x[t] * w^(k t),  w = exp(-2 pi i / n); the inverse has the
//                                         other sign and divides by n
//
// A length that is a product of factors r goes through one pass for each (Cooley and
// Tukey; Swarztrauber's order, as FFTPACK and its descendants have it). With r done
// of l1 and ido left to do, n = l1 * r * ido,
//
//   y[u, k, i] = w^(l1 u i) * sum over b of x[k, b, i] * exp(-2 pi i u b / r)
//
// so that a pass is r results of r slices, pointwise, and [u, k] is the next pass's k.
// Transforms of 2, 3, 4 and 5 elements are spelled out; those of other primes are
// products with a matrix of p * p. Products are rounded before they are added: so
// every step has the errors that implementations of these passes are known for, on
// every processor, and sums that cancel elsewhere cancel here.
//
// A prime factor above `mostPrime` makes a convolution of the transform (Bluestein):
// k t = (k^2 + t^2 - (k - t)^2) / 2, with transforms of a power of two.
//
// Many short signals, and lengths that only the run knows, are multiplied by the
// matrix of all roots: n / log n times the work, at the speed of matrix products.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/Transform.h"
#include "ir/prim/Elements.h"
#include <cmath>

using namespace ptc::prim;

namespace ptc::decomp {

/// A product that is rounded before it is added to another.
static Value roundedMul(NodeContext &n, Value a, Value b) {
  Value product = n.mul(a, b);
  if (auto op = product ? product.getDefiningOp<MulOp>() : MulOp())
    op->setDiscardableAttr(roundedAttr, n.getBuilder().getUnitAttr());
  return product;
}

namespace {

constexpr int64_t mostPrime = 256;               // whose matrix is multiplied
constexpr int64_t mostRow = 64;                  // of many signals, multiplied as a whole
constexpr int64_t mostLength = int64_t(1) << 20; // its roots are constants of the program

/// exp(2 pi i k / n) with k / n an eighth of the circle at most, where sine and cosine are exact at the ends.
std::pair<double, double> root(int64_t k, int64_t n) {
  int64_t octant = 8 * k / n; // k < n
  auto at = [&](int64_t eighths) { return 2 * M_PI * double(8 * k - eighths * n) / (8 * double(n)); };
  int64_t nearest = (octant + 1) / 2; // in quarters
  double angle = at(2 * nearest), c = std::cos(angle), s = std::sin(angle);
  switch (nearest % 4) {
  case 0:
    return {c, s};
  case 1:
    return {-s, c};
  case 2:
    return {-c, -s};
  default:
    return {s, -c};
  }
}

/// 4 while it divides, 2, then odd primes; a single 2 comes first.
Ints factorsOf(int64_t n) {
  Ints factors;
  for (; n % 4 == 0; n /= 4)
    factors.push_back(4);
  if (n % 2 == 0) {
    factors.insert(factors.begin(), 2);
    n /= 2;
  }
  for (int64_t p = 3; p * p <= n; p += 2)
    for (; n % p == 0; n /= p)
      factors.push_back(p);
  if (n > 1)
    factors.push_back(n);
  return factors;
}

class Passes {
public:
  Passes(NodeContext &n, int64_t length, bool isInverse) : n(n), length(length), isInverse(isInverse) {}

  ComplexParts run(ComplexParts x) {
    Dims outer = n.dims(x.re);
    if (outer.empty())
      return {};
    outer.pop_back();
    int64_t done = 1;
    for (int64_t radix : factorsOf(length)) {
      int64_t left = length / (done * radix);
      x = pass(split(x, outer, {done, radix, left}), radix, left);
      done *= radix;
    }
    x = split(x, outer, {length});
    if (!isInverse)
      return x;
    auto scaled = [&](Value v) { return v ? n.mul(v, 1.0 / double(length)) : v; };
    return {scaled(x.re), scaled(x.im)};
  }

private:
  ComplexParts split(ComplexParts x, Dims dims, llvm::ArrayRef<int64_t> last) {
    for (int64_t dim : last)
      dims.push_back(n.expr(dim));
    return {n.reshape(x.re, dims), x.im ? n.reshape(x.im, dims) : Value()};
  }

  /// [..., done, radix, left] to [..., radix, done, left]
  ComplexParts pass(ComplexParts x, int64_t radix, int64_t left) {
    int64_t axis = n.rank(x.re) - 2;
    llvm::SmallVector<ComplexParts> parts, results;
    if (radix > 5)
      x = multiplied(x, radix);
    for (int64_t b = 0; b < radix; ++b)
      parts.push_back({n.at(x.re, axis, b), x.im ? n.at(x.im, axis, b) : Value()});
    results = radix == 2   ? two(parts)
              : radix == 3 ? three(parts)
              : radix == 4 ? four(parts)
              : radix == 5 ? five(parts)
                           : parts;
    Values re, im;
    for (int64_t u = 0; u < radix; ++u) {
      ComplexParts y = left == 1 || u == 0 ? results[u] : turned(results[u], radix, left, u);
      re.push_back(y.re);
      im.push_back(y.im);
    }
    bool isReal = llvm::none_of(im, [](Value v) { return bool(v); });
    for (Value &v : im)
      v = v ? v : n.fill(n.scalarLike(0, re.front()), n.dims(re.front()));
    return {n.stack(re, axis - 1), isReal ? Value() : n.stack(im, axis - 1)};
  }

  /// Times exp(-+ 2 pi i u j / (radix * left)) for j below left.
  ComplexParts turned(ComplexParts x, int64_t radix, int64_t left, int64_t u) {
    llvm::SmallVector<double> re, im;
    for (int64_t j = 0; j < left; ++j) {
      auto [c, s] = root(u * j % (radix * left), radix * left);
      re.push_back(c);
      im.push_back(isInverse ? s : -s);
    }
    Type type = n.elementType(x.re);
    return times(x, {n.floatVector(re, type), n.floatVector(im, type)});
  }

  ComplexParts times(ComplexParts x, ComplexParts w) {
    auto product = [&](Value a, Value b) { return roundedMul(n, a, b); };
    if (!x.im)
      return {product(x.re, w.re), product(x.re, w.im)};
    return {n.sub(product(x.re, w.re), product(x.im, w.im)), n.add(product(x.re, w.im), product(x.im, w.re))};
  }

  /// Each dim before the last times the matrix of the radix's roots.
  ComplexParts multiplied(ComplexParts x, int64_t radix) {
    Type type = n.elementType(x.re);
    llvm::SmallVector<double> cosines, sines;
    for (int64_t u = 0; u < radix; ++u)
      for (int64_t b = 0; b < radix; ++b) {
        auto [c, s] = root(u * b % radix, radix);
        cosines.push_back(c);
        sines.push_back(isInverse ? s : -s);
      }
    Value c = n.reshape(n.floatVector(cosines, type), n.exprs({radix, radix}));
    Value s = n.reshape(n.floatVector(sines, type), n.exprs({radix, radix}));
    if (!x.im)
      return {n.innerMatmul(c, x.re), n.innerMatmul(s, x.re)};
    return {n.sub(n.innerMatmul(c, x.re), n.innerMatmul(s, x.im)),
            n.add(n.innerMatmul(c, x.im), n.innerMatmul(s, x.re))};
  }

  using Parts = llvm::SmallVector<ComplexParts>;

  ComplexParts add(ComplexParts a, ComplexParts b) {
    return {n.add(a.re, b.re), !a.im ? b.im : !b.im ? a.im : n.add(a.im, b.im)};
  }
  ComplexParts sub(ComplexParts a, ComplexParts b) {
    return {n.sub(a.re, b.re), !b.im ? a.im : !a.im ? n.neg(b.im) : n.sub(a.im, b.im)};
  }
  ComplexParts scale(ComplexParts a, double factor) {
    auto product = [&](Value v) { return v ? roundedMul(n, v, n.scalarLike(factor, v)) : v; };
    return {product(a.re), product(a.im)};
  }
  /// Times i of the inverse, -i of the transform; a real value has a real part of 0, which is null here.
  ComplexParts rotated(ComplexParts a) {
    Value re = a.im ? (isInverse ? n.neg(a.im) : a.im) : n.scalarLike(0, a.re);
    return {re, isInverse ? a.re : n.neg(a.re)};
  }

  Parts two(const Parts &x) { return {add(x[0], x[1]), sub(x[0], x[1])}; }

  Parts three(const Parts &x) {
    ComplexParts sum = add(x[1], x[2]), difference = sub(x[1], x[2]);
    ComplexParts a = add(x[0], scale(sum, -0.5)), b = rotated(scale(difference, root(1, 3).second));
    return {add(x[0], sum), add(a, b), sub(a, b)};
  }

  Parts four(const Parts &x) {
    ComplexParts even = add(x[0], x[2]), evenDifference = sub(x[0], x[2]);
    ComplexParts odd = add(x[1], x[3]), oddDifference = rotated(sub(x[1], x[3]));
    return {add(even, odd), add(evenDifference, oddDifference), sub(even, odd), sub(evenDifference, oddDifference)};
  }

  Parts five(const Parts &x) {
    auto [c1, s1] = root(1, 5);
    auto [c2, s2] = root(2, 5);
    ComplexParts outer = add(x[1], x[4]), outerDifference = sub(x[1], x[4]);
    ComplexParts inner = add(x[2], x[3]), innerDifference = sub(x[2], x[3]);
    auto even = [&](double a, double b) { return add(add(x[0], scale(outer, a)), scale(inner, b)); };
    auto odd = [&](double a, double b) { return rotated(add(scale(outerDifference, a), scale(innerDifference, b))); };
    ComplexParts a = even(c1, c2), b = odd(s1, s2), c = even(c2, c1), d = odd(s2, -s1);
    return {add(add(x[0], outer), inner), add(a, b), add(c, d), sub(c, d), sub(a, b)};
  }

  NodeContext &n;
  int64_t length;
  bool isInverse;
};

/// As a convolution with exp(+- pi i t^2 / n), in f64: the angles of its factors have n^2 times as many digits.
class Convolved {
public:
  Convolved(NodeContext &n, int64_t length, bool isInverse) : n(n), length(length), isInverse(isInverse) {
    while (padded < 2 * length - 1)
      padded *= 2;
  }

  ComplexParts run(ComplexParts x) {
    Type type = n.f64();
    auto wide = [&](Value v) { return v ? n.convert(v, type) : n.scalar(0, type); };
    llvm::SmallVector<double> re(padded), im(padded);
    for (int64_t t = 0; t < length; ++t)
      for (int64_t at : {t, (padded - t) % padded})
        std::tie(re[at], im[at]) = chirp(t);
    llvm::ArrayRef<double> allRe(re), allIm(im);
    ComplexParts factors{n.floatVector(allRe.take_front(length), type),
                         n.neg(n.floatVector(allIm.take_front(length), type))};
    ComplexParts filter = Passes(n, padded, false).run({n.floatVector(re, type), n.floatVector(im, type)});
    ComplexParts moved = extended(product({wide(x.re), wide(x.im)}, factors));
    ComplexParts y = Passes(n, padded, true).run(product(Passes(n, padded, false).run(moved), filter));
    auto front = [&](Value v) { return n.sliceAxis(v, n.rank(v) - 1, n.expr(0), n.expr(length)); };
    y = product({front(y.re), front(y.im)}, factors);
    double scale = isInverse ? 1.0 / double(length) : 1.0;
    return {n.convertLike(n.mul(y.re, scale), x.re), n.convertLike(n.mul(y.im, scale), x.re)};
  }

private:
  std::pair<double, double> chirp(int64_t t) {
    auto [c, s] = root(t * t % (2 * length), 2 * length);
    return {c, isInverse ? -s : s};
  }
  ComplexParts product(ComplexParts a, ComplexParts b) {
    return {n.sub(n.mul(a.re, b.re), n.mul(a.im, b.im)), n.add(n.mul(a.re, b.im), n.mul(a.im, b.re))};
  }
  ComplexParts extended(ComplexParts x) {
    Dims low(n.rank(x.re), n.expr(0)), high = low;
    high.back() = n.expr(padded - length);
    return {n.pad(x.re, n.scalarLike(0, x.re), low, high), n.pad(x.im, n.scalarLike(0, x.im), low, high)};
  }

  NodeContext &n;
  int64_t length, padded = 1;
  bool isInverse;
};

/// A product with the matrix of all roots, of the frequencies that are needed alone. A onesided inverse folds the
/// mirrored ones into weights of 2.
class Multiplied {
public:
  Multiplied(NodeContext &n, Expr length, TransformKind kind) : n(n), length(length), kind(kind) {
    Expr half = n.shapes.simplify(length.floorDiv(2) + 1);
    rows = kind.isOnesided && kind.isInverse ? half : length;
    columns = kind.isOnesided && !kind.isInverse ? half : length;
  }

  ComplexParts run(ComplexParts x) {
    type = n.elementType(x.re);
    Value c = matrix(false), s = matrix(true);
    ComplexParts y{n.innerMatmul(x.re, c), n.innerMatmul(x.re, s)};
    if (x.im) {
      y.re = n.sub(y.re, n.innerMatmul(x.im, s));
      y.im = n.add(y.im, n.innerMatmul(x.im, c));
    }
    return y;
  }

private:
  Value matrix(bool isSine) {
    bool isKnown = length.isConstant() && length.getValue() <= mostRow;
    Value m = isKnown ? listed(length.getValue(), isSine) : computed(isSine);
    return isSine && !kind.isInverse ? n.neg(m) : m;
  }

  double weight(int64_t row, int64_t size) const {
    bool isMirrored = kind.isInverse && kind.isOnesided && row != 0 && 2 * row != size;
    return (kind.isInverse ? 1.0 / double(size) : 1.0) * (isMirrored ? 2 : 1);
  }

  Value listed(int64_t size, bool isSine) {
    llvm::SmallVector<double> values;
    for (int64_t r = 0; r < rows.getValue(); ++r)
      for (int64_t c = 0; c < columns.getValue(); ++c) {
        auto [cosine, sine] = root(r * c % size, size);
        values.push_back((isSine ? sine : cosine) * weight(r, size));
      }
    return n.reshape(n.floatVector(values, type), {rows, columns});
  }

  Value computed(bool isSine) {
    Dims dims = {rows, columns};
    Value size = n.fromExprs(length, n.si64(), /*isScalar=*/true), wide = n.convert(size, n.f64());
    Value row = n.iota(0, dims, n.si64());
    Value place = n.binary<ModOp>(n.mul(row, n.iota(1, dims, n.si64())), size);
    Value angle = n.mul(n.div(n.convert(place, n.f64()), wide), 2 * M_PI);
    Value m = isSine ? n.unary<SinOp>(angle) : n.unary<CosOp>(angle);
    if (kind.isInverse)
      m = n.div(m, wide);
    if (kind.isInverse && kind.isOnesided) {
      Value isSingle = n.logicalOr(n.equal(row, n.scalar(0, n.si64())), n.equal(n.add(row, row), size));
      m = n.select(isSingle, m, n.add(m, m));
    }
    return n.convert(m, type);
  }

  NodeContext &n;
  Expr length, rows, columns;
  TransformKind kind;
  Type type;
};

} // namespace

/// All frequencies of a real signal: the second half mirrors the first.
static ComplexParts mirrored(NodeContext &n, ComplexParts x, int64_t length) {
  auto whole = [&](Value v, bool isNegated) {
    int64_t axis = n.rank(v) - 1;
    if (length < 3)
      return v;
    Value rest = n.sliceAxis(v, axis, n.expr((length - 1) / 2), n.expr((length - 1) / 2), -1);
    return n.concat({v, isNegated ? n.neg(rest) : rest}, axis);
  };
  return {whole(x.re, false), x.im ? whole(x.im, true) : Value()};
}

/// The first half of the frequencies of a real signal: the first one, and the middle one of an even length, are real,
/// which rounding does not leave them.
static ComplexParts firstHalf(NodeContext &n, ComplexParts x, int64_t length) {
  int64_t axis = n.rank(x.re) - 1, between = (length - 1) / 2;
  auto slice = [&](Value v, int64_t start, int64_t size) { return n.sliceAxis(v, axis, n.expr(start), n.expr(size)); };
  Value re = slice(x.re, 0, length / 2 + 1);
  if (!x.im || !re)
    return {re, re ? n.fill(n.scalarLike(0, re), n.dims(re)) : re};
  Dims one = n.dims(re);
  one[axis] = n.expr(1);
  Value zero = n.fill(n.scalarLike(0, re), one);
  Values im = {zero};
  if (between > 0)
    im.push_back(slice(x.im, 1, between));
  if (length % 2 == 0)
    im.push_back(zero);
  return {re, n.concat(im, axis)};
}

static ComplexParts transformKnown(NodeContext &n, ComplexParts x, int64_t length, TransformKind kind) {
  bool isReal = !x.im, isHalf = kind.isOnesided && !kind.isInverse;
  if (kind.isInverse && kind.isOnesided)
    x = mirrored(n, x, length);
  Ints factors = factorsOf(length);
  bool isSplit = llvm::all_of(factors, [](int64_t p) { return p <= mostPrime; });
  x = isSplit ? Passes(n, length, kind.isInverse).run(x) : Convolved(n, length, kind.isInverse).run(x);
  if (kind.isInverse && kind.isOnesided)
    return x;
  if (isReal) {
    x = firstHalf(n, x, length);
    return isHalf ? x : mirrored(n, x, length);
  }
  auto half = [&](Value v) { return n.sliceAxis(v, n.rank(v) - 1, n.expr(0), n.expr(length / 2 + 1)); };
  return isHalf ? ComplexParts{half(x.re), half(x.im)} : x;
}

ComplexParts transform(NodeContext &n, ComplexParts x, Expr length, TransformKind kind) {
  if (length.isConstant() && (length.getValue() < 1 || length.getValue() > mostLength)) {
    n.fail(DiagId::UnsupportedForm, "a transform of " + length.str() + " elements");
    return {};
  }
  if (!x.re)
    return {};
  Type type = n.elementType(x.re);
  bool isNarrow = type.getIntOrFloatBitWidth() < 32;
  auto converted = [&](ComplexParts y, Type to) {
    return ComplexParts{n.convert(y.re, to), y.im ? n.convert(y.im, to) : Value()};
  };
  if (isNarrow)
    x = converted(x, n.f32());
  bool isProduct = !length.isConstant() || (kind.areRows && length.getValue() <= mostRow);
  x = isProduct ? Multiplied(n, length, kind).run(x) : transformKnown(n, x, length.getValue(), kind);
  return isNarrow ? converted(x, type) : x;
}

} // namespace ptc::decomp
