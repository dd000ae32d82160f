#include "tests/numerics/Measure.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace ptc::test {

template <typename T, typename Exact> static double errorOf(T y, Exact r) {
  using Limits = std::numeric_limits<T>;
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(r))
    return std::isnan(y) ? 0 : wrong;
  if (std::isnan(y))
    return wrong;
  if (r == 0 && y == 0)
    return std::signbit(r) == std::signbit(y) ? 0 : wrong;
  if (std::isinf(r))
    return y == T(r) ? 0 : wrong;
  int exponent;
  std::frexp(r, &exponent);
  exponent = std::clamp(exponent, Limits::min_exponent, Limits::max_exponent);
  Exact ulp = std::ldexp(Exact(1), exponent - Limits::digits);
  // Infinity stands for the value after the largest.
  Exact value = std::isinf(y) ? std::copysign(std::ldexp(Exact(1), Limits::max_exponent), Exact(y)) : Exact(y);
  if (std::isinf(y) && std::fabs(r) >= std::fabs(value))
    return 0;
  return double(std::fabs(value - r) / ulp);
}

double ulpError(float y, double r) { return errorOf(y, r); }
double ulpError(double y, long double r) { return errorOf(y, r); }

std::string Worst::text() const {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, "%.3f ulp at (%a, %a): got %a, expected %a", ulp, at, at2, got, expected);
  return buffer;
}

static uint64_t mix(uint64_t x) { // splitmix64
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

template <typename T> struct IntegerOf;
template <> struct IntegerOf<float> {
  using Type = uint32_t;
};
template <> struct IntegerOf<double> {
  using Type = uint64_t;
};

template <typename T> std::vector<T> specialValues() {
  using L = std::numeric_limits<T>;
  std::vector<T> v{0,   L::denorm_min(), L::min(), L::max(), L::infinity(), L::epsilon(), 1, 2, 3, 4, 5, 7, 10, 100,
                   1000};
  for (double x : {0.25, 0.3, 0.5, 0.7, 0.9, 1.25, 1.5, 1.75, 2.5, 3.5, 0.4142135623730950, 2.414213562373095, 1.1875})
    v.push_back(T(x));
  for (int n : {20, 23, 24, 25, 31, 52, 53, 54, 63, 64})
    for (int d : {-1, 0, 1})
      v.push_back(T(std::ldexp(1.0L, n) + d));
  for (int n = 1; n < 8; ++n)
    v.push_back(T(n * M_PI_4));
  size_t count = v.size();
  for (size_t i = 0; i < count; ++i)
    for (T toward : {T(0), L::infinity()})
      v.push_back(std::nextafter(v[i], toward));
  count = v.size();
  for (size_t i = 0; i < count; ++i)
    v.push_back(-v[i]);
  v.push_back(L::quiet_NaN());
  return v;
}

template <typename T> std::vector<T> spreadValues(int64_t count) {
  using I = typename IntegerOf<T>::Type;
  I stride = std::numeric_limits<I>::max() / I(count);
  std::vector<T> v(count);
  for (int64_t i = 0; i < count; ++i) {
    I bits = I(i) * stride + I(mix(i) % stride);
    std::memcpy(&v[i], &bits, sizeof bits);
  }
  return v;
}

template <typename T> std::vector<T> binadeValues(int64_t count, int lo, int hi, uint64_t seed) {
  std::vector<T> v(count);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t a = mix(seed * 0x100000000 + 2 * i), b = mix(seed * 0x100000000 + 2 * i + 1);
    long double significand = 1 + std::ldexp((long double)(a >> 1), -63);
    v[i] = T((b & 1 ? -1 : 1) * std::ldexp(significand, lo + int((b >> 1) % uint64_t(hi - lo + 1))));
  }
  return v;
}

template std::vector<float> specialValues<float>();
template std::vector<double> specialValues<double>();
template std::vector<float> spreadValues<float>(int64_t);
template std::vector<double> spreadValues<double>(int64_t);
template std::vector<float> binadeValues<float>(int64_t, int, int, uint64_t);
template std::vector<double> binadeValues<double>(int64_t, int, int, uint64_t);

} // namespace ptc::test
