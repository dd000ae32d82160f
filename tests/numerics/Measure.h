//===- Measure.h - errors in ulp, and points worth testing ----------------===//
#ifndef PTC_TESTS_NUMERICS_MEASURE_H
#define PTC_TESTS_NUMERICS_MEASURE_H

#include <cstdint>
#include <string>
#include <vector>

namespace ptc::test {

/// Error of y against the exact value r, in units in the last place of r's binade (of the denormals' below that).
/// Infinity where the class (NaN, infinity, sign of zero) is wrong.
double ulpError(float y, double r);
double ulpError(double y, long double r);

struct Worst {
  double ulp = 0;
  double at = 0, at2 = 0, got = 0, expected = 0;
  void take(double error, double x, double x2, double y, double r) {
    if (!(error <= ulp))
      *this = {error, x, x2, y, r};
  }
  std::string text() const;
};

/// Zeros, ones, bounds of the format, infinities, NaN, ... of both signs.
template <typename T> std::vector<T> specialValues();
/// Bit patterns over the whole format, `count` of them, evenly spread and jittered; the same in each run.
template <typename T> std::vector<T> spreadValues(int64_t count);
/// Magnitudes 2^lo to 2^hi of both signs, random mantissas.
template <typename T> std::vector<T> binadeValues(int64_t count, int lo, int hi, uint64_t seed);

} // namespace ptc::test

#endif // PTC_TESTS_NUMERICS_MEASURE_H
