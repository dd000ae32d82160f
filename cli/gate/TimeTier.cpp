// A pair of times is one slice of each library, one right after the other; which comes first alternates (ABBA). A slice
// is a few groups of runs, and the fastest group counts: a group that an interrupt or a cold cache has hit is
// slower for a reason that is not the library's. A group has so many runs that the clock's own cost and resolution
// do not matter; both libraries run the same number.
//
// Each measurement loads copies of both files, made then and there. Where the page cache keeps a file, and in how large
// pieces, makes code and weights up to 4 % faster or slower: a file that a linker wrote through a mapping differs in
// that from one that was copied, though every byte is the same.
//
// A model of one thread is timed by that thread's processor time. It does not run on while another process has the
// core, which on a busy machine is most of the noise. With more threads the wall clock is what counts, noise included.
#include "cli/gate/TimeTier.h"
#include "cli/TemporaryFolder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <cmath>

using namespace llvm;

namespace ptc {

namespace {
constexpr double groupSeconds = 200e-6, sliceSeconds = 15e-3;
constexpr unsigned groupsPerSlice = 8;

double elapsed() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Two libraries set up for one measurement.
class Rivals {
public:
  Rivals(TimedModel subject, TimedModel other, bool usesWallClock)
      : models{std::move(subject), std::move(other)}, usesWallClock(usesWallClock) {}

  /// Warms both up, and finds how many runs make a group and how many pairs fit into `seconds`.
  Expected<unsigned> calibrate(double seconds);
  Expected<gate::TimePair> nextPair();

private:
  Expected<double> timeGroup(TimedModel &model);
  Expected<double> timeSlice(TimedModel &model);

  TimedModel models[2];
  bool usesWallClock;
  unsigned runs = 1; // of a group
  unsigned pairs = 0;
};
} // namespace

Expected<double> Rivals::timeGroup(TimedModel &model) {
  if (!usesWallClock)
    return model.threadTime(runs);
  double sum = 0;
  for (unsigned run = 0; run < runs; ++run) {
    Expected<double> seconds = model.wallTime();
    if (!seconds)
      return seconds.takeError();
    sum += *seconds;
  }
  return sum;
}

Expected<double> Rivals::timeSlice(TimedModel &model) {
  double fastest = INFINITY, sum = 0;
  for (unsigned group = 0; group < groupsPerSlice && sum < sliceSeconds; ++group) {
    Expected<double> seconds = timeGroup(model);
    if (!seconds)
      return seconds.takeError();
    fastest = std::fmin(fastest, *seconds);
    sum += *seconds;
  }
  return fastest / runs;
}

Expected<unsigned> Rivals::calibrate(double seconds) {
  constexpr unsigned mostRuns = 1 << 16;
  for (double time = 0; time < groupSeconds && runs < mostRuns; runs *= 2) {
    Expected<double> measured = timeGroup(models[1]);
    if (!measured)
      return measured.takeError();
    time = 2 * *measured;
  }
  double start = elapsed();
  Expected<gate::TimePair> pair = nextPair();
  if (!pair)
    return pair.takeError();
  return static_cast<unsigned>(std::clamp(seconds / (elapsed() - start), 12.0, 400.0));
}

Expected<gate::TimePair> Rivals::nextPair() {
  double time[2];
  for (unsigned turn = 0; turn < 2; ++turn) {
    unsigned which = (turn + pairs) % 2;
    Expected<double> seconds = timeSlice(models[which]);
    if (!seconds)
      return seconds.takeError();
    time[which] = *seconds;
  }
  ++pairs;
  return gate::TimePair{time[0], time[1]};
}

/// The library and, where it is of that kind, the file of its weights, in a folder of their own.
static Expected<std::string> copyLibrary(StringRef path, StringRef folder) {
  auto failed = [&](std::error_code code) {
    return exitError(exitFile, "cannot copy '" + path + "' to be timed: " + code.message());
  };
  StringRef home = sys::path::parent_path(path);
  std::error_code code;
  for (sys::fs::directory_iterator file(home.empty() ? "." : home, code), end; !code && file != end;
       file.increment(code)) {
    if (sys::path::extension(file->path()) != ".weights")
      continue;
    SmallString<128> absolute(file->path()), link(folder);
    sys::path::append(link, sys::path::filename(file->path()));
    if ((code = sys::fs::make_absolute(absolute)) || (code = sys::fs::create_link(absolute, link)))
      return failed(code);
  }
  SmallString<128> copy(folder);
  sys::path::append(copy, sys::path::filename(path));
  if ((code = sys::fs::copy_file(path, copy)))
    return failed(code);
  return copy.str().str();
}

Expected<TimedModel> prepareCopy(Session &session, StringRef path, const TimedModelOptions &options) {
  Expected<TemporaryFolder> folder = TemporaryFolder::create("ptc-time"); // what is loaded needs no file
  if (!folder)
    return folder.takeError();
  Expected<std::string> copy = copyLibrary(path, folder->path());
  if (!copy)
    return copy.takeError();
  Expected<ModelLibrary> library = ModelLibrary::open(session, *copy);
  return library ? TimedModel::prepare(*library, options) : library.takeError();
}

Expected<gate::TimeResult> compareLibraries(Session &session, StringRef subject, StringRef other,
                                            const TimeTierOptions &options) {
  for (StringRef path : {subject, other}) // what is wrong with a file is said of the file, not of its copy
    if (Expected<ModelLibrary> library = ModelLibrary::open(session, path); !library)
      return library.takeError();
  std::vector<std::shared_ptr<Rivals>> earlier; // kept: new copies must not lie where these do
  auto start = [&](unsigned number) -> Expected<gate::Measurement> {
    session.progress.show("timing", number, options.rule.repeats);
    std::optional<TimedModel> prepared[2];
    for (unsigned turn = 0; turn < 2; ++turn) { // which one gets the first memory alternates too
      unsigned which = (turn + number) % 2;
      Expected<TimedModel> model = prepareCopy(session, which ? other : subject, options.model);
      if (!model)
        return model.takeError();
      prepared[which].emplace(std::move(*model));
    }
    auto rivals =
        std::make_shared<Rivals>(std::move(*prepared[0]), std::move(*prepared[1]), options.model.instance.threads != 1);
    earlier.push_back(rivals);
    Expected<unsigned> mostPairs = rivals->calibrate(options.seconds);
    if (!mostPairs)
      return mostPairs.takeError();
    return gate::Measurement{[rivals] { return rivals->nextPair(); }, *mostPairs};
  };
  Expected<gate::TimeResult> result = gate::compareTimes(options.rule, start);
  session.progress.clear();
  return result;
}

static std::string formatTime(double seconds) {
  if (seconds < 1e-3)
    return formatv("{0:f1} us", seconds * 1e6);
  return formatv("{0:f2} ms", seconds * 1e3);
}

std::string describeTimes(const gate::TimeResult &result) {
  return formatv("{0:f3} times the other's time (between {1:f3} and {2:f3}): {3} a run against {4}, {5} pairs, {6} "
                 "measurement{7}",
                 result.ratio.median, result.ratio.low, result.ratio.high, formatTime(result.seconds),
                 formatTime(result.otherSeconds), result.pairs, result.measurements,
                 result.measurements == 1 ? "" : "s");
}

} // namespace ptc
