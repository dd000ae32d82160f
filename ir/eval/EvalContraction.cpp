//===- EvalContraction.cpp - matmul, convolution, attention ---------------===//
//
// Computed in double (floats) or wrapping 64-bit integers, rounded once.
//
//===----------------------------------------------------------------------===//
#include "ir/eval/EvalOps.h"
#include <cmath>

using namespace ptc;
using namespace ptc::eval;

/// Elements as double or as uint64_t, whose arithmetic wraps.
template <typename T> static std::vector<T> load(const Tensor &x) {
  if constexpr (std::is_same_v<T, double>) {
    return x.toDoubles();
  } else {
    std::vector<T> values(x.getNumElements());
    for (int64_t i = 0; i != x.getNumElements(); ++i)
      values[i] = T(x.getInt(i));
    return values;
  }
}

template <typename T> static void store(const std::vector<T> &values, Tensor &y) {
  for (int64_t i = 0; i != y.getNumElements(); ++i) {
    if constexpr (std::is_same_v<T, double>)
      y.setFloat(i, values[i]);
    else
      y.setInt(i, int64_t(values[i]));
  }
}

static int64_t countOf(llvm::ArrayRef<int64_t> dims) { return countElements(dims).value_or(0); }

//===----------------------------------------------------------------------===//
// Matmul
//===----------------------------------------------------------------------===//

/// c[row] += a[row] * b for so many rows from a pointer on: a row of b that was read serves all of them.
template <size_t rows, typename T> static void multiplyRows(const T *a, const T *b, T *c, int64_t k, int64_t n) {
  for (int64_t p = 0; p != k; ++p) {
    T factors[rows];
    for (size_t r = 0; r != rows; ++r)
      factors[r] = a[int64_t(r) * k + p];
    const T *from = b + p * n;
    for (int64_t j = 0; j != n; ++j)
      for (size_t r = 0; r != rows; ++r)
        c[int64_t(r) * n + j] += factors[r] * from[j];
  }
}

template <typename T> static void matmul(const Tensor &lhs, const Tensor &rhs, Tensor &y) {
  constexpr int64_t block = 4;
  int64_t k = lhs.getShape().back(), n = rhs.getShape().back();
  int64_t matrices = countOf(rhs.getShape().drop_back(2));
  int64_t rows = countOf(lhs.getShape().drop_front(rhs.getRank() - 2).drop_back()); // of each
  std::vector<T> a = load<T>(lhs), b = load<T>(rhs), c(y.getNumElements(), 0);
  for (int64_t matrix = 0; matrix != matrices; ++matrix) {
    const T *right = b.data() + matrix * k * n;
    for (int64_t row = 0; row < rows;) {
      int64_t at = matrix * rows + row;
      if (row + block <= rows)
        multiplyRows<block>(a.data() + at * k, right, c.data() + at * n, k, n);
      else
        multiplyRows<1>(a.data() + at * k, right, c.data() + at * n, k, n);
      row += row + block <= rows ? block : 1;
    }
  }
  store(c, y);
}

Results eval::evalMatmul(prim::MatmulOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  llvm::ArrayRef<int64_t> lhs = x[0]->getShape(), rhs = x[1]->getShape();
  bool areMatrices = lhs.size() >= 2 && rhs.size() >= 2 && rhs.size() <= lhs.size();
  if (!areMatrices || lhs.back() != rhs.drop_back().back() || lhs.take_front(rhs.size() - 2) != rhs.drop_back(2))
    return error("the dims of matmul's operands do not fit together");
  Dims expected(lhs);
  expected.back() = rhs.back();
  if (y->getShape() != llvm::ArrayRef<int64_t>(expected))
    return error("the dims of matmul's result do not fit its operands");
  if (y->isFloat())
    matmul<double>(*x[0], *x[1], *y);
  else
    matmul<uint64_t>(*x[0], *x[1], *y);
  return result(std::move(*y));
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

namespace {
/// The window's geometry: which positions of `wide` (the input, or the result of
/// a transposed convolution) the taps at one position of `narrow` reach.
struct Window {
  llvm::ArrayRef<int64_t> narrow, wide, size, strides, dilations;
  Dims low;
  struct Tap {
    int64_t wide, window; // row-major positions
  };
  llvm::SmallVector<Tap, 16> taps(llvm::ArrayRef<int64_t> at) const {
    llvm::SmallVector<Tap, 16> result;
    auto wideStrides = rowMajorStrides(wide);
    forEachIndex(size, [&](llvm::ArrayRef<int64_t> k, int64_t position) {
      int64_t offset = 0;
      for (size_t i = 0; i != k.size(); ++i) {
        int64_t q = at[i] * strides[i] + k[i] * dilations[i] - low[i];
        if (q < 0 || q >= wide[i])
          return;
        offset += q * wideStrides[i];
      }
      result.push_back({offset, position});
    });
    return result;
  }
};
} // namespace

/// x [n, c, wide], w [o, c/groups, window] -> y [n, o, narrow]. At each position the
/// elements that the window covers are collected and multiplied with the transposed
/// weights, so that the innermost loop runs over output channels without gaps.
template <typename T>
static void convolve(const Tensor &xs, const Tensor &ws, const Window &window, int64_t groups, Tensor &ys) {
  std::vector<T> x = load<T>(xs), w = load<T>(ws), y(ys.getNumElements(), 0);
  int64_t batch = xs.getDim(0), channels = xs.getDim(1), perGroup = channels / groups;
  int64_t out = ys.getDim(1), outPerGroup = out / groups, taps = countOf(window.size), depth = perGroup * taps;
  int64_t wide = countOf(window.wide), narrow = countOf(window.narrow);
  std::vector<T> transposed(w.size());
  for (int64_t o = 0; o != out; ++o)
    for (int64_t k = 0; k != depth; ++k)
      transposed[(o / outPerGroup * depth + k) * outPerGroup + o % outPerGroup] = w[o * depth + k];
  std::vector<T> sums(outPerGroup);
  forEachIndex(window.narrow, [&](llvm::ArrayRef<int64_t> at, int64_t position) {
    auto reached = window.taps(at);
    for (int64_t n = 0; n != batch; ++n)
      for (int64_t g = 0; g != groups; ++g) {
        std::fill(sums.begin(), sums.end(), T(0));
        for (int64_t c = 0; c != perGroup; ++c)
          for (auto tap : reached) {
            T value = x[(n * channels + g * perGroup + c) * wide + tap.wide];
            const T *row = transposed.data() + (g * depth + c * taps + tap.window) * outPerGroup;
            for (int64_t o = 0; o != outPerGroup; ++o)
              sums[o] += value * row[o];
          }
        for (int64_t o = 0; o != outPerGroup; ++o)
          y[(n * out + g * outPerGroup + o) * narrow + position] = sums[o];
      }
  });
  store(y, ys);
}

/// x [n, c, narrow], w [c, o/groups, window] -> y [n, o, wide].
template <typename T>
static void convolveTransposed(const Tensor &xs, const Tensor &ws, const Window &window, int64_t groups, Tensor &ys) {
  std::vector<T> x = load<T>(xs), w = load<T>(ws), y(ys.getNumElements(), 0);
  int64_t batch = xs.getDim(0), channels = xs.getDim(1), out = ys.getDim(1), perGroup = out / groups;
  int64_t wide = countOf(window.wide), narrow = countOf(window.narrow), taps = countOf(window.size);
  forEachIndex(window.narrow, [&](llvm::ArrayRef<int64_t> at, int64_t position) {
    auto reached = window.taps(at);
    for (int64_t n = 0; n != batch; ++n)
      for (int64_t c = 0; c != channels; ++c) {
        T value = x[(n * channels + c) * narrow + position];
        int64_t first = c / (channels / groups) * perGroup;
        for (int64_t o = 0; o != perGroup; ++o)
          for (auto tap : reached)
            y[(n * out + first + o) * wide + tap.wide] += value * w[(c * perGroup + o) * taps + tap.window];
      }
  });
  store(y, ys);
}

static bool convolutionFits(prim::ConvolutionOp op, const Tensor &x, const Tensor &w, const Tensor &y) {
  int64_t rank = x.getRank(), groups = op.getGroups();
  if (rank < 2 || w.getRank() != rank || y.getRank() != rank || int64_t(op.getStrides().size()) != rank - 2 ||
      int64_t(op.getDilations().size()) != rank - 2 || int64_t(op.getLow().size()) != rank - 2)
    return false;
  if (groups < 1 || x.getDim(0) != y.getDim(0) || x.getDim(1) % groups || y.getDim(1) % groups)
    return false;
  if (op.getTransposed())
    return w.getDim(0) == x.getDim(1) && w.getDim(1) == y.getDim(1) / groups;
  return w.getDim(0) == y.getDim(1) && w.getDim(1) == x.getDim(1) / groups;
}

Results eval::evalConvolution(prim::ConvolutionOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  llvm::Expected<Dims> low = evaluateExprs(prim::getExprs(op.getLow()), scope);
  if (!low)
    return low.takeError();
  if (!convolutionFits(op, *x[0], *x[1], *y))
    return error("the dims of convolution's operands and result do not fit together");
  if (y->getNumElements() == 0)
    return result(std::move(*y));
  bool isTransposed = op.getTransposed();
  llvm::ArrayRef<int64_t> from = x[0]->getShape().drop_front(2), to = y->getShape().drop_front(2);
  Window window{isTransposed ? from : to, isTransposed ? to : from, x[1]->getShape().drop_front(2),
                op.getStrides(),          op.getDilations(),        *low};
  int64_t groups = op.getGroups();
  if (y->isFloat() && isTransposed)
    convolveTransposed<double>(*x[0], *x[1], window, groups, *y);
  else if (y->isFloat())
    convolve<double>(*x[0], *x[1], window, groups, *y);
  else if (isTransposed)
    convolveTransposed<uint64_t>(*x[0], *x[1], window, groups, *y);
  else
    convolve<uint64_t>(*x[0], *x[1], window, groups, *y);
  return result(std::move(*y));
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Strides of `mask` under the dims of `scores`, aligned at the last dim.
static std::optional<Dims> broadcastStrides(llvm::ArrayRef<int64_t> mask, llvm::ArrayRef<int64_t> scores) {
  if (mask.size() > scores.size())
    return std::nullopt;
  Dims result(scores.size(), 0);
  auto strides = rowMajorStrides(mask);
  size_t shift = scores.size() - mask.size();
  for (size_t i = 0; i != mask.size(); ++i) {
    if (mask[i] != 1 && mask[i] != scores[i + shift])
      return std::nullopt;
    result[i + shift] = mask[i] == 1 ? 0 : strides[i];
  }
  return result;
}

/// softmax in place; what is -inf takes no part.
static void softmax(std::vector<double> &row, bool zeroNanRow) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (double s : row)
    largest = std::max(largest, s);
  for (double &s : row)
    sum += s = std::exp(s - largest); // -inf - -inf: NaN, as softmax of -inf gives
  if (zeroNanRow && std::isnan(sum))
    return std::fill(row.begin(), row.end(), 0.0);
  for (double &s : row)
    s /= sum;
}

namespace {
struct MaskElements {
  const Tensor *tensor;
  Dims strides; // under the dims of the scores
};
} // namespace

/// The score after all masks.
static double maskScore(double score, llvm::ArrayRef<MaskElements> masks, llvm::ArrayRef<int64_t> index, int64_t key,
                        double masked) {
  for (const MaskElements &mask : masks) {
    int64_t at = dot(index, llvm::ArrayRef(mask.strides).drop_back()) + key * mask.strides.back();
    if (mask.tensor->isFloat())
      score += mask.tensor->getFloat(at);
    else if (!mask.tensor->getInt(at))
      score = masked;
  }
  return score;
}

Results eval::evalAttention(prim::AttentionOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op.getResult(), scope);
  if (!y)
    return y.takeError();
  llvm::ArrayRef<int64_t> q = x[0]->getShape(), k = x[1]->getShape(), v = x[2]->getShape();
  if (q.size() < 2 || k.size() != q.size() || v.size() != q.size() || q.drop_back(2) != k.drop_back(2) ||
      q.drop_back(2) != v.drop_back(2) || q.back() != k.back() || k.drop_back() != v.drop_back())
    return error("the dims of attention's operands do not fit together");
  int64_t depth = q.back(), keys = k.drop_back().back(), width = v.back();
  Dims scores(q);
  scores.back() = keys;
  if (y->getNumElements() != countOf(q.drop_back()) * width)
    return error("the dims of attention's result do not fit its operands");
  std::vector<MaskElements> masks;
  for (const Tensor *mask : llvm::ArrayRef(x).drop_front(3)) {
    std::optional<Dims> strides = broadcastStrides(mask->getShape(), scores);
    if (!strides)
      return error("the dims of attention's mask do not fit its operands");
    masks.push_back({mask, *strides});
  }
  std::vector<double> qs = x[0]->toDoubles(), ks = x[1]->toDoubles(), vs = x[2]->toDoubles(), row(keys);
  double scale = op.getScale().convertToDouble();
  auto softcap = op.getSoftcap();
  forEachIndex(llvm::ArrayRef(scores).drop_back(), [&](llvm::ArrayRef<int64_t> index, int64_t r) {
    int64_t firstKey = r / q.drop_back().back() * keys;
    for (int64_t j = 0; j != keys; ++j) {
      double s = 0;
      for (int64_t d = 0; d != depth; ++d)
        s += qs[r * depth + d] * ks[(firstKey + j) * depth + d];
      s *= scale;
      if (softcap)
        s = softcap->convertToDouble() * std::tanh(s);
      row[j] = maskScore(s, masks, index, j, op.getMaskedValue());
      if (op.getCausal() && j > index.back())
        row[j] = -std::numeric_limits<double>::infinity();
    }
    softmax(row, op.getZeroMaskedRows());
    for (int64_t e = 0; e != width; ++e) {
      double sum = 0;
      for (int64_t j = 0; j != keys; ++j)
        sum += row[j] == 0 ? 0 : row[j] * vs[(firstKey + j) * width + e];
      y->setFloat(r * width + e, sum);
    }
  });
  return result(std::move(*y));
}
