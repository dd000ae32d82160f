// How far two tensors are apart.
#ifndef PTC_CLI_COMPARISON_H
#define PTC_CLI_COMPARISON_H

#include "cli/tensor/Tensor.h"
#include <optional>

namespace ptc {

/// |a - b| <= relative * |b| + absolute for each element of a against b, the expected one. NaN equals NaN, and an
/// infinity itself alone.
struct Tolerance {
  double relative = 1e-3;
  std::optional<double> absolute; // none: `ofLargest` times the largest finite |b|
  double ofLargest = 1e-5;
  std::optional<uint64_t> ulp; // instead of both, for floats
  // Floats with so much signal over noise are right, whatever elements differ: rounding to 8 bits on the way takes some
  // of them a step further.
  std::optional<double> leastDecibels;
  double byteSteps = 0; // integers of 8 bits may differ by so much
};

struct Difference {
  int64_t count = 0;       // elements out of tolerance
  int64_t worst = -1;      // the one that is furthest out, or furthest apart if none is
  double largest = 0;      // |a - b|
  uint64_t largestUlp = 0; // of floats of at most 64 bits
  bool sameBits = true;
  std::optional<double> decibels; // of floats, if the tolerance is about them
};

/// Distances of a tensor's elements from the expected ones, where both are finite: in units in the last place for
/// floats, 1 for other values that differ.
struct UlpSummary {
  uint64_t max = 0, p99 = 0;
  int64_t nans = 0, infinities = 0; // of the tensor
  int64_t nansExpected = 0, infinitiesExpected = 0;
};
UlpSummary summarizeUlps(const Tensor &actual, const Tensor &expected);

/// What rounding may do to one node. A float32 is off by a few ulp, or in a long sum by a few of its largest terms; a
/// type with fewer bits may be rounded after each step of a node, or once. A wrong constant is off by more.
Tolerance toleranceOfRounding(const Tensor &expected);

/// Both have the same type and shape. Integers and booleans have to be equal.
Difference compareTensors(const Tensor &actual, const Tensor &expected, const Tolerance &tolerance);

} // namespace ptc

#endif // PTC_CLI_COMPARISON_H
