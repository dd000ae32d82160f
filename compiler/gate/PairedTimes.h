//===- PairedTimes.h - is one program slower than another? ------*- C++ -*-===//
//
// Judges pairs of times that were measured in turns. Measuring is the caller's; nothing here looks at a clock.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_COMPILER_GATE_PAIREDTIMES_H
#define PTC_COMPILER_GATE_PAIREDTIMES_H

#include "llvm/Support/Error.h"
#include <functional>
#include <vector>

namespace ptc::gate {

/// Half the number of standard deviations of the binomial distribution, for medianWithInterval.
constexpr double reach95 = 0.98, reach997 = 1.5;

/// A median, and two of the values that enclose the true one.
struct Interval {
  double median = 1, low = 1, high = 1;
};

/// The number of values below the true median is binomial(n, 1/2), so the ranks n/2 -+ reach sqrt(n) enclose it with
/// the same probability whatever the distribution is. `values` is not empty.
Interval medianWithInterval(std::vector<double> values, double reach);

/// Seconds of a run of each of two programs, measured one right after the other.
struct TimePair {
  double subject = 0, other = 0;
};

/// One independent measurement: pairs as they are asked for, at most so many.
struct Measurement {
  std::function<llvm::Expected<TimePair>()> nextPair;
  unsigned mostPairs = 0;
};

/// When a subject counts as slower.
struct TimeRule {
  double tolerance = 0.05; // its time / the other's - 1, of which the interval's lower end has to be above
  double floor = 1e-6;     // seconds a run by which it has to be slower as well
  unsigned repeats = 3;    // measurements that have to say so, all of them
};

enum class TimeVerdict { Same, Slower, Faster, Undecided };

struct TimeResult {
  TimeVerdict verdict = TimeVerdict::Undecided;
  Interval ratio;                       // subject / other, of the last measurement
  double seconds = 0, otherSeconds = 0; // medians
  unsigned pairs = 0, measurements = 0;
};

/// Begins measurement `number` anew: the programs are loaded and set up again, so that where their memory happens to
/// lie differs.
using StartMeasurement = std::function<llvm::Expected<Measurement>(unsigned number)>;

/// Measures until the rule has an answer.
llvm::Expected<TimeResult> compareTimes(const TimeRule &rule, const StartMeasurement &start);

} // namespace ptc::gate

#endif // PTC_COMPILER_GATE_PAIREDTIMES_H
