// Loop text of template kernels for tests and benchmarks, and what they should compute.
#ifndef PTC_TESTS_UNIT_TEMPLATEKERNELS_H
#define PTC_TESTS_UNIT_TEMPLATEKERNELS_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ptc::test {

/// From -1 to 1, the same for a seed.
std::vector<float> randomFloats(int64_t count, unsigned seed);

/// The larger of two errors, of which NaN is the largest.
inline double larger(double worst, double error) {
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
}

enum class Activation { None, Relu, Gelu };

/// C[b, m, n] = f(sum A[b, m, k] * B[b, k, n] + bias[n] + residual[b, m, n]).
struct Matmul {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool isPacked = true;    // B in unit panels
  bool isStrassen = false; // B's rows and columns suit Strassen's algorithm
  bool transposeA = false; // A is stored [b, k, m]
  bool sharesA = false;    // all matrices of B are multiplied with one A [m, k]
  bool transposeB = false; // B is stored [b, n, k] (not packed)
  bool transposeC = false; // C and residual are stored [b, n, m]
  bool hasBias = false, hasResidual = false;
  bool isMaskedLhs = false; // A reads as 0 where m + k is odd: a computed prologue
  Activation activation = Activation::None;
  std::string symbolicM, symbolicN, symbolicK; // names of symbols in place of the extents
  std::string type = "f32";                    // of A, B, C: f32, f64

  /// Arguments: A, B, bias, residual, C.
  std::string text() const;
  std::vector<int64_t> symbols() const;
};

/// y[n, oh, ow, group, oc] = relu?(sum x[n, ih, iw, group, ic] * w + bias), channels last unless `isChannelsFirst`.
struct Convolution {
  int64_t images = 1, height = 1, width = 1, groups = 1, in = 1, out = 1; // channels of a group
  int64_t kernelHeight = 1, kernelWidth = 1, stride = 1, dilation = 1, pad = 0;
  int64_t padAfter = -1; // below and to the right; -1: as `pad`
  bool padsLines = true; // to the left and right, too
  int64_t winograd = 0;  // outputs along a side of the tile for which w is transformed (of 3x3, else along x); 0: none
  bool isChannelsFirst = false, isInputChannelsFirst = false;
  bool hasResidual = false, hasRelu = false, hasGelu = false;
  bool isFreeBatch = false; // how many images there are is known to a run alone

  int64_t pads() const { return pad + (padAfter < 0 ? pad : padAfter); }
  int64_t outHeight() const { return (height + pads() - dilation * (kernelHeight - 1) - 1) / stride + 1; }
  int64_t padLeft() const { return padsLines ? pad : 0; }
  int64_t outWidth() const {
    return (width + (padsLines ? pads() : 0) - dilation * (kernelWidth - 1) - 1) / stride + 1;
  }
  int64_t inputIndex(int64_t image, int64_t y, int64_t x, int64_t channel) const;
  int64_t outputIndex(int64_t image, int64_t y, int64_t x, int64_t channel) const;
  double flops() const {
    return 2.0 * double(images * outHeight() * outWidth() * groups * in * out * kernelHeight * kernelWidth);
  }
  /// Arguments: x, w (panels, [groups][out/16][kh, kw, in][16], or transformed), bias [groups*out], residual (as y), y.
  std::string text() const;
};

/// softmax(scale * q k^T + mask) v, or softmax(cap * tanh(scale * q k^T) + mask) v, for [batch, heads, rows, size]
/// tensors, stored [batch, rows, heads, size].
struct Attention {
  int64_t batch = 1, heads = 1, i = 1, j = 1, d = 1, e = 1;
  bool isCausal = false, hasMask = false, zeroMaskedRows = false;
  std::string symbolicI, symbolicJ;
  float scale = 0.125f, cap = 0; // 0: none

  /// Arguments: q, k, v, mask [batch, i, j], o.
  std::string text() const;
  std::vector<int64_t> symbols() const;
};

/// Unit panels of a [k][n] matrix with the given strides: [n/16][k][16], zeros beyond n.
std::vector<float> packPanels(const float *source, int64_t k, int64_t n, int64_t kStride, int64_t nStride);

} // namespace ptc::test

#endif
