//===- PairedTimes.cpp - is one program slower than another? --------------===//
//
// A time says little on a shared machine: clock speed and neighbours drift over seconds. Two programs that take turns
// within milliseconds share most of that, so each pair of times gives one ratio, and the median of ratios is judged by
// an interval that holds for any distribution (medianWithInterval).
//
// How many pairs it takes depends on the noise, which is not known before. So they are taken in stages, 12, 24, 48,
// ..., and after each stage the interval is looked at:
//
//   low > limit = 1 + tolerance    slower, if the difference is above the floor
//   high < 1 / limit               faster, likewise
//   both between                   the same
//   otherwise                      another stage; when pairs run out undecided, or the same if high < limit
//
// Looking several times raises the chance of a wrong answer, hence an interval of three standard deviations: of 12
// pairs it takes in all, so that a first look decides only if all pairs agree.
//
// What no number of pairs in one process can average out is a bias that stays: memory that happens to lie badly for one
// of the two. Slower is therefore believed only if `repeats` measurements say so, each with both programs set up anew.
// One that does not say so ends the comparison. Two equal programs thus raise an alarm only if a bias or an
// error of 1 in 700 comes several times in a row, while a program that is slower by twice the tolerance is missed only
// if the noise outlasts all pairs; then it is told as undecided, never as the same.
//
//===----------------------------------------------------------------------===//
#include "compiler/gate/PairedTimes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <algorithm>
#include <cassert>
#include <cmath>

using namespace llvm;

namespace ptc::gate {

Interval medianWithInterval(std::vector<double> values, double reach) {
  assert(!values.empty() && "there is no median of nothing");
  llvm::sort(values);
  double n = values.size(), width = reach * std::sqrt(n);
  auto at = [&](double rank) { return values[static_cast<size_t>(std::clamp(rank, 0.0, n - 1))]; };
  return {at((n - 1) / 2), at(std::floor(n / 2 - width) - 1), at(std::ceil(n / 2 + width))};
}

static double medianOf(ArrayRef<TimePair> pairs, double TimePair::*member) {
  auto times = llvm::map_to_vector(pairs, [&](const TimePair &pair) { return pair.*member; });
  auto middle = times.begin() + times.size() / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// What the pairs of one measurement say so far, or at its end.
static TimeResult judge(const TimeRule &rule, ArrayRef<TimePair> pairs, bool isLast) {
  std::vector<double> ratios;
  for (const TimePair &pair : pairs)
    ratios.push_back(pair.subject / pair.other);
  TimeResult result{.ratio = medianWithInterval(std::move(ratios), reach997),
                    .seconds = medianOf(pairs, &TimePair::subject),
                    .otherSeconds = medianOf(pairs, &TimePair::other),
                    .pairs = static_cast<unsigned>(pairs.size())};
  double limit = 1 + rule.tolerance, difference = (result.ratio.median - 1) * result.otherSeconds;
  bool isAboveFloor = std::fabs(difference) > rule.floor;
  if (result.ratio.low > limit)
    result.verdict = isAboveFloor ? TimeVerdict::Slower : TimeVerdict::Same;
  else if (result.ratio.high < 1 / limit)
    result.verdict = isAboveFloor ? TimeVerdict::Faster : TimeVerdict::Same;
  else if (result.ratio.high < limit && (result.ratio.low > 1 / limit || isLast))
    result.verdict = TimeVerdict::Same;
  return result;
}

static Expected<TimeResult> measure(const TimeRule &rule, const Measurement &measurement) {
  constexpr unsigned firstLook = 12;
  std::vector<TimePair> pairs;
  for (unsigned look = firstLook;; look *= 2) {
    unsigned wanted = std::min(look, std::max(measurement.mostPairs, firstLook));
    while (pairs.size() < wanted) {
      Expected<TimePair> pair = measurement.nextPair();
      if (!pair)
        return pair.takeError();
      pairs.push_back(*pair);
    }
    bool isLast = wanted >= measurement.mostPairs;
    TimeResult result = judge(rule, pairs, isLast);
    if (result.verdict != TimeVerdict::Undecided || isLast)
      return result;
  }
}

Expected<TimeResult> compareTimes(const TimeRule &rule, const StartMeasurement &start) {
  for (unsigned number = 0;; ++number) {
    Expected<Measurement> measurement = start(number);
    if (!measurement)
      return measurement.takeError();
    Expected<TimeResult> result = measure(rule, *measurement);
    if (!result)
      return result.takeError();
    result->measurements = number + 1;
    if (result->verdict != TimeVerdict::Slower || number + 1 >= rule.repeats)
      return result;
  }
}

} // namespace ptc::gate
