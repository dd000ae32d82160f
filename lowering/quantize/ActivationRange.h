//===- ActivationRange.h - what calibration sees of a value -----*- C++ -*-===//
#ifndef PTC_LOWERING_QUANTIZE_ACTIVATIONRANGE_H
#define PTC_LOWERING_QUANTIZE_ACTIVATIONRANGE_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace ptc::quantize {

/// Reals from low to high.
struct Range {
  double low = 0, high = 0;
};

/// real = scale * (integer - zeroPoint), of 8 bits.
struct Quantization {
  float scale = 1;
  int32_t zeroPoint = 0;
  bool isSigned = false;

  int32_t least() const { return isSigned ? -128 : 0; }
  int32_t most() const { return isSigned ? 127 : 255; }
  /// What QuantizeLinear makes of a number: the nearest integer, ties to even.
  int32_t quantize(float x) const;
  float round(float x) const { return scale * float(quantize(x) - zeroPoint); }
};

/// How a range is chosen from what was seen.
struct Calibration {
  enum class Method : uint8_t { MinMax, Entropy, Percentile } method = Method::MinMax;
  double percent = 99.99; // of the elements, within the range
  bool needsHistogram() const { return method != Method::MinMax; }
};

/// Statistics of a value over all samples: extremes first; then, in another pass over the same samples, a histogram
/// between them. Numbers that are not finite are counted and left out. Not thread-safe.
class ActivationRange {
public:
  void addExtremes(llvm::ArrayRef<float> elements);
  void addHistogram(llvm::ArrayRef<float> elements);
  /// Of values that share a scale.
  void join(const ActivationRange &other);

  bool isEmpty() const { return count == 0; }
  uint64_t getNotFinite() const { return notFinite; }
  Range getExtremes() const { return {low, high}; }
  /// Whole after both passes, where the method needs them.
  Range choose(const Calibration &calibration) const;

private:
  Range chooseByEntropy() const;
  Range chooseByPercentile(double percent) const;
  double binWidth() const;

  float low = 0, high = 0;
  uint64_t count = 0, notFinite = 0;
  std::vector<uint64_t> bins; // between -m and m, the largest magnitude
  uint64_t zeros = 0;         // of what the bins count
};

/// Unsigned: the range with 0 in it, 0 exactly a multiple of the scale. Signed: symmetric, with zero point 0.
Quantization quantizationOf(Range range, bool isSigned);

} // namespace ptc::quantize

#endif // PTC_LOWERING_QUANTIZE_ACTIVATIONRANGE_H
