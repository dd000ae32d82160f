//===- ActivationRange.cpp - what calibration sees of a value -------------===//
#include "lowering/quantize/ActivationRange.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace ptc::quantize {

/// Of the histogram, half of them below zero.
constexpr int64_t binCount = 8192;
/// What 8 bits tell apart.
constexpr int64_t levels = 255;

int32_t Quantization::quantize(float x) const {
  double integer = std::nearbyint(double(x) / scale) + zeroPoint;
  if (std::isnan(integer))
    return zeroPoint;
  return int32_t(std::clamp<double>(integer, least(), most()));
}

void ActivationRange::addExtremes(ArrayRef<float> elements) {
  float least = count ? low : std::numeric_limits<float>::infinity(), most = count ? high : -least;
  uint64_t finite = 0;
  for (float element : elements) {
    if (!std::isfinite(element))
      continue;
    ++finite;
    least = std::min(least, element);
    most = std::max(most, element);
  }
  notFinite += elements.size() - finite;
  count += finite;
  if (count) {
    low = least;
    high = most;
  }
}

double ActivationRange::binWidth() const { return 2 * double(std::max(-low, high)) / binCount; }

void ActivationRange::addHistogram(ArrayRef<float> elements) {
  bins.resize(binCount);
  double width = binWidth();
  for (float element : elements) {
    if (!std::isfinite(element))
      continue;
    zeros += element == 0;
    int64_t bin = width > 0 ? binCount / 2 + int64_t(std::floor(element / width)) : binCount / 2;
    ++bins[std::clamp<int64_t>(bin, 0, binCount - 1)];
  }
}

void ActivationRange::join(const ActivationRange &other) {
  if (other.isEmpty()) {
    notFinite += other.notFinite;
    return;
  }
  ActivationRange wide;
  wide.low = isEmpty() ? other.low : std::min(low, other.low);
  wide.high = isEmpty() ? other.high : std::max(high, other.high);
  wide.count = count + other.count;
  wide.notFinite = notFinite + other.notFinite;
  wide.zeros = zeros + other.zeros;
  if (!bins.empty() || !other.bins.empty()) {
    wide.bins.resize(binCount);
    for (const ActivationRange *part : {static_cast<const ActivationRange *>(this), &other})
      for (auto [i, number] : enumerate(part->bins)) { // a bin goes to where its middle is
        double middle = (double(i) + 0.5 - binCount / 2) * part->binWidth();
        int64_t bin = wide.binWidth() > 0 ? binCount / 2 + int64_t(std::floor(middle / wide.binWidth())) : binCount / 2;
        wide.bins[std::clamp<int64_t>(bin, 0, binCount - 1)] += number;
      }
  }
  *this = std::move(wide);
}

Range ActivationRange::choose(const Calibration &calibration) const {
  if (isEmpty() || low == high)
    return getExtremes();
  switch (calibration.method) {
  case Calibration::Method::MinMax:
    return getExtremes();
  case Calibration::Method::Entropy:
    return chooseByEntropy();
  case Calibration::Method::Percentile:
    return chooseByPercentile(calibration.percent);
  }
  llvm_unreachable("all methods are above");
}

/// As much is cut off at both ends.
Range ActivationRange::chooseByPercentile(double percent) const {
  uint64_t total = 0;
  for (uint64_t number : bins)
    total += number;
  double outside = double(total) * (1 - percent / 100) / 2;
  int64_t first = 0, last = binCount - 1;
  for (double below = double(bins[first]); below <= outside && first < last; below += double(bins[++first]))
    ;
  for (double above = double(bins[last]); above <= outside && last > first; above += double(bins[--last]))
    ;
  double width = binWidth();
  return {std::max<double>(low, double(first - binCount / 2) * width),
          std::min<double>(high, double(last + 1 - binCount / 2) * width)};
}

/// How much is lost (relative entropy, in nats) if bins `first` to `last` are all that there is, in `levels` steps: of
/// the distribution that has all beyond them at the ends, measured by the one that knows each step's sum alone, spread
/// evenly over the bins of the step that are not empty.
static double lostEntropy(ArrayRef<uint64_t> bins, int64_t first, int64_t last) {
  int64_t size = last - first + 1;
  double total = 0, kept = 0, below = 0, above = 0;
  for (auto [i, number] : enumerate(bins)) {
    total += double(number);
    if (int64_t(i) < first)
      below += double(number);
    else if (int64_t(i) > last)
      above += double(number);
    else
      kept += double(number);
  }
  if (kept == 0)
    return std::numeric_limits<double>::infinity();
  auto clipped = [&](int64_t i) { return double(bins[i]) + (i == first ? below : 0) + (i == last ? above : 0); };
  constexpr double none = 1e-10; // what the second has where only the first has something
  double lost = 0;
  int64_t steps = std::min(levels, size);
  for (int64_t step = 0; step < steps; ++step) {
    int64_t begin = first + step * size / steps, end = first + (step + 1) * size / steps;
    double sum = 0;
    int64_t filled = 0;
    for (int64_t i = begin; i < end; ++i) {
      sum += double(bins[i]);
      filled += clipped(i) > 0;
    }
    for (int64_t i = begin; i < end; ++i) {
      double p = clipped(i) / total;
      if (p > 0)
        lost += p * std::log(p / std::max(sum / double(filled) / kept, none));
    }
  }
  return lost;
}

/// The threshold t for which [-t, t] loses the least, within the extremes (Migacz, "8-bit inference with TensorRT").
/// Zeros do not count: each range has 0 exactly. As a part of their bin they would be spread over the whole first step
/// behind a ReLU, and the narrowest range, whose steps are single bins, would win whatever it cuts off.
Range ActivationRange::chooseByEntropy() const {
  constexpr int64_t half = binCount / 2, leastBins = 64, step = 16;
  double width = binWidth(), best = std::numeric_limits<double>::infinity();
  int64_t firstSeen = half + int64_t(std::floor(low / width)), lastSeen = half + int64_t(std::floor(high / width));
  int64_t chosen = half;
  std::vector<uint64_t> numbers = bins;
  numbers[half] -= zeros;
  for (int64_t threshold = half; threshold >= leastBins; threshold -= step) { // of equals the widest
    int64_t first = std::max({half - threshold, firstSeen, int64_t(0)});
    int64_t last = std::min({half + threshold - 1, lastSeen, binCount - 1});
    if (last - first + 1 < levels)
      break;
    double lost = lostEntropy(numbers, first, last);
    if (lost < best) {
      best = lost;
      chosen = threshold;
    }
  }
  double limit = double(chosen) * width;
  return {std::max<double>(low, -limit), std::min<double>(high, limit)};
}

Quantization quantizationOf(Range range, bool isSigned) {
  Quantization result;
  result.isSigned = isSigned;
  double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  double width = isSigned ? std::max(-low, high) / 127 : (high - low) / 255;
  float scale = float(width);
  if (!(scale >= std::numeric_limits<float>::min())) // nothing but zeros, or next to them
    return result;
  result.scale = scale;
  if (!isSigned)
    result.zeroPoint = int32_t(std::clamp<double>(std::nearbyint(-low / double(scale)), 0, 255));
  return result;
}

} // namespace ptc::quantize
