#include "compiler/gate/PairedTimes.h"

#include <catch2/catch.hpp>

#include <random>

using namespace ptc::gate;

namespace {

/// Two programs on a machine whose speed drifts, and which now and then is taken away for a while.
struct NoisyMachine {
  double ratio, seconds = 0.01, spread = 0.05;
  double bias = 0; // of a setup: memory that lies badly for the subject, in some measurements
  std::mt19937 random;

  double sample(double time, double speed) {
    double noise = std::exponential_distribution<double>(1 / spread)(random);
    bool isPreempted = std::bernoulli_distribution(0.2)(random);
    return time * speed * (1 + noise + (isPreempted ? std::uniform_real_distribution<double>(0, 1)(random) : 0));
  }

  TimeResult compare(const TimeRule &rule = {}, unsigned mostPairs = 384) {
    auto start = [&](unsigned number) -> llvm::Expected<Measurement> {
      double setup = 1 + (number % 2 ? 0 : bias);
      auto next = [this, setup]() -> llvm::Expected<TimePair> {
        double speed = std::uniform_real_distribution<double>(1, 1.5)(random);
        return TimePair{sample(seconds * ratio * setup, speed), sample(seconds, speed)};
      };
      return Measurement{next, mostPairs};
    };
    llvm::Expected<TimeResult> result = compareTimes(rule, start);
    REQUIRE(bool(result));
    return *result;
  }
};

unsigned count(TimeVerdict verdict, NoisyMachine machine, unsigned runs) {
  unsigned found = 0;
  for (unsigned run = 0; run < runs; ++run)
    found += machine.compare().verdict == verdict;
  return found;
}

} // namespace

TEST_CASE("Equal programs on a noisy machine are never slower") {
  CHECK(count(TimeVerdict::Slower, {.ratio = 1, .random = std::mt19937(1)}, 500) == 0);
  CHECK(count(TimeVerdict::Slower, {.ratio = 1, .spread = 0.3, .random = std::mt19937(2)}, 200) == 0);
}

TEST_CASE("A tenth more time on a noisy machine is always slower") {
  CHECK(count(TimeVerdict::Slower, {.ratio = 1.1, .random = std::mt19937(3)}, 500) == 500);
}

TEST_CASE("A tenth less time is faster, and less than the tolerance is neither") {
  CHECK(count(TimeVerdict::Faster, {.ratio = 1 / 1.1, .random = std::mt19937(4)}, 100) >= 98);
  CHECK(count(TimeVerdict::Slower, {.ratio = 1.02, .random = std::mt19937(5)}, 200) == 0);
}

TEST_CASE("What only one of the measurements says is no alarm") {
  TimeResult result = NoisyMachine{.ratio = 1, .bias = 0.3, .random = std::mt19937(6)}.compare();
  CHECK(result.verdict != TimeVerdict::Slower);
  CHECK(result.measurements == 2);
}

TEST_CASE("A difference below the floor is none") {
  NoisyMachine machine{.ratio = 1.5, .seconds = 1e-6, .random = std::mt19937(7)};
  CHECK(machine.compare().verdict == TimeVerdict::Same);
  CHECK(machine.compare({.floor = 1e-7}).verdict == TimeVerdict::Slower);
}

TEST_CASE("Noise that outlasts the pairs is undecided") {
  NoisyMachine machine{.ratio = 1.06, .spread = 0.5, .random = std::mt19937(8)};
  TimeResult result = machine.compare({}, 30);
  CHECK(result.verdict == TimeVerdict::Undecided);
  CHECK(result.pairs == 30);
}

TEST_CASE("The interval encloses the median of any distribution as often as it says") {
  std::mt19937 random(9);
  std::exponential_distribution<double> exponential(1);
  unsigned outside = 0;
  constexpr unsigned rounds = 2000;
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<double> values(41);
    for (double &value : values)
      value = exponential(random);
    Interval interval = medianWithInterval(values, reach95);
    outside += interval.low > 0.6931 || interval.high < 0.6931;
  }
  CHECK(outside < rounds * 0.05);
}
