#include "cli/Comparison.h"
#include "compiler/quantize/QuantizeReport.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace ptc {

/// Steps between two floats of one type: their bits as integers that grow with the value.
static uint64_t ulpsApart(const Tensor &a, const Tensor &b, int64_t i) {
  unsigned bytes = a.dtype.bits / 8;
  auto order = [&](const Tensor &tensor) {
    uint64_t word = 0;
    std::memcpy(&word, tensor.bytes.data() + i * bytes, bytes);
    uint64_t sign = uint64_t(1) << (8 * bytes - 1);
    return word & sign ? sign - (word & (sign - 1)) : sign + word;
  };
  uint64_t x = order(a), y = order(b);
  return x > y ? x - y : y - x;
}

static double largestMagnitude(const Tensor &tensor) {
  double largest = 0;
  for (int64_t i = 0, count = tensor.elementCount(); i < count; ++i)
    if (double value = std::fabs(tensor.at(i)); std::isfinite(value))
      largest = std::fmax(largest, value);
  return largest;
}

/// Complex numbers as pairs of floats.
static Tensor partsOf(const Tensor &tensor) {
  Tensor parts{{PTC_FLOAT, static_cast<uint8_t>(tensor.dtype.bits / 2), 1}, tensor.shape, tensor.bytes};
  parts.shape.push_back(2);
  return parts;
}

UlpSummary summarizeUlps(const Tensor &actual, const Tensor &expected) {
  if (actual.dtype.code == PTC_COMPLEX)
    return summarizeUlps(partsOf(actual), partsOf(expected));
  UlpSummary summary;
  std::vector<uint64_t> distances;
  bool hasUlps = actual.isFloat() && actual.dtype.bits >= 8;
  for (int64_t i = 0, count = actual.elementCount(); i < count; ++i) {
    double a = actual.at(i), b = expected.at(i);
    summary.nans += std::isnan(a);
    summary.nansExpected += std::isnan(b);
    summary.infinities += std::isinf(a);
    summary.infinitiesExpected += std::isinf(b);
    if (std::isfinite(a) && std::isfinite(b))
      distances.push_back(a == b ? 0 : hasUlps ? ulpsApart(actual, expected, i) : 1);
  }
  if (distances.empty())
    return summary;
  summary.max = *std::max_element(distances.begin(), distances.end());
  auto rank = distances.begin() + (distances.size() * 99 + 99) / 100 - 1; // the nearest rank
  std::nth_element(distances.begin(), rank, distances.end());
  summary.p99 = *rank;
  return summary;
}

/// Strings are equal or not. Of sequences all tensors are compared; one of another shape differs in one place.
static Difference compareValues(const Tensor &actual, const Tensor &expected, const Tolerance &tolerance) {
  Difference difference;
  difference.sameBits = actual.texts == expected.texts && actual.items.size() == expected.items.size();
  for (size_t i = 0; i < std::min(actual.texts.size(), expected.texts.size()); ++i)
    if (actual.texts[i] != expected.texts[i] && difference.count++ == 0)
      difference.worst = static_cast<int64_t>(i);
  difference.count += actual.items.size() != expected.items.size();
  for (size_t i = 0; i < std::min(actual.items.size(), expected.items.size()); ++i) {
    const Tensor &a = actual.items[i], &b = expected.items[i];
    Difference one;
    if (a.shape == b.shape && a.dtype == b.dtype)
      one = compareTensors(a, b, tolerance);
    else
      one.count = 1;
    difference.sameBits &= one.sameBits;
    difference.count += one.count;
    difference.largest = std::fmax(difference.largest, one.largest);
    difference.largestUlp = std::max(difference.largestUlp, one.largestUlp);
  }
  return difference;
}

/// Of the elements that are finite in both.
static double decibelsOf(const Tensor &actual, const Tensor &expected) {
  quantize::SignalAndNoise ratio;
  for (int64_t i = 0, count = actual.elementCount(); i < count; ++i)
    if (double a = actual.at(i), b = expected.at(i); std::isfinite(a) && std::isfinite(b))
      ratio.add(b, a);
  return ratio.decibels();
}

Difference compareTensors(const Tensor &actual, const Tensor &expected, const Tolerance &tolerance) {
  Difference difference;
  if (!actual.isNumeric())
    return compareValues(actual, expected, tolerance);
  if (actual.dtype.code == PTC_COMPLEX) {
    difference = compareTensors(partsOf(actual), partsOf(expected), tolerance);
    difference.worst /= difference.worst > 0 ? 2 : 1;
    return difference;
  }
  difference.sameBits = actual.bytes == expected.bytes;
  if (difference.sameBits)
    return difference;
  bool isFloat = actual.isFloat();
  bool hasUlps = actual.isFloat() && actual.dtype.bits >= 8;
  double absolute = tolerance.absolute.value_or(isFloat ? tolerance.ofLargest * largestMagnitude(expected) : 0);
  if (isFloat && tolerance.leastDecibels)
    difference.decibels = decibelsOf(actual, expected);
  bool isClose = difference.decibels && *difference.decibels >= *tolerance.leastDecibels;
  double steps = actual.dtype.bits == 8 && (actual.dtype.code == PTC_INT || actual.dtype.code == PTC_UINT)
                     ? tolerance.byteSteps
                     : 0;
  double furthest = -1;
  for (int64_t i = 0, count = actual.elementCount(); i < count; ++i) {
    double a = actual.at(i), b = expected.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    double distance = std::isfinite(a) && std::isfinite(b) ? std::fabs(a - b) : INFINITY;
    double allowed = isFloat && std::isfinite(b) ? tolerance.relative * std::fabs(b) + absolute : steps;
    uint64_t ulps = hasUlps ? ulpsApart(actual, expected, i) : 0;
    bool isOut = tolerance.ulp && hasUlps ? ulps > *tolerance.ulp : !(distance <= allowed);
    isOut &= !isClose || !std::isfinite(distance);
    difference.count += isOut;
    difference.largest = std::fmax(difference.largest, distance);
    difference.largestUlp = std::max(difference.largestUlp, ulps);
    if (double excess = distance - allowed + (isOut ? 1e30 : 0); difference.worst < 0 || excess > furthest) {
      furthest = excess;
      difference.worst = i;
    }
  }
  return difference;
}

Tolerance toleranceOfRounding(const Tensor &expected) {
  double ulp = 0; // of a float with fewer than 32 bits, relative
  if (expected.dtype.code == PTC_BFLOAT)
    ulp = 0x1p-7;
  else if (expected.isFloat() && expected.dtype.bits <= 16)
    ulp = expected.dtype.bits == 16 ? 0x1p-10 : 0x1p-2;
  double relative = std::max(1e-5, 8 * ulp), largest = 0;
  for (int64_t i = 0, count = expected.isFloat() ? expected.elementCount() : 0; i < count; ++i)
    if (double magnitude = std::fabs(expected.at(i)); std::isfinite(magnitude))
      largest = std::max(largest, magnitude);
  return {.relative = relative, .absolute = relative * largest, .ulp = std::nullopt};
}

} // namespace ptc
