// The processor, its memory and the C library, as Linux's own files and calls tell them. What a file does not tell is
// left out of the line: containers hide many of them.
#include "compiler/Machine.h"
#include "compiler/Capabilities.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <gnu/libc-version.h>
#include <unistd.h>

using namespace llvm;

namespace ptc {

using State = Finding::State;

/// The file's text without white space around it; empty if there is none.
static std::string read(const Twine &path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFileAsStream(path);
  return file ? (*file)->getBuffer().trim().str() : std::string();
}

/// What stands behind `key` and a colon in a file of such lines.
static std::string readField(const Twine &path, StringRef key) {
  SmallVector<StringRef> lines;
  std::string text = read(path);
  StringRef(text).split(lines, '\n');
  for (StringRef line : lines) {
    auto [name, value] = line.split(':');
    if (name.trim() == key)
      return value.trim().str();
  }
  return "";
}

static Finding processor() {
  std::string model = readField("/proc/cpuinfo", "model name");
  if (model.empty())
    model = "a processor of the kind " + sys::getHostCPUName().str();
  return {"processor", State::Ok, model + ", " + Triple(sys::getProcessTriple()).getArchName().str(), ""};
}

static Finding levels() {
  std::vector<std::string> here, made;
  for (const SupportedTarget &target : supportedTargets())
    for (const SupportedLevel &level : target.levels) {
      if (level.isLinked)
        made.push_back(level.name);
      if (level.isLinked && level.runsHere == true)
        here.push_back(level.name);
    }
  if (!here.empty())
    return {"CPU levels", State::Ok, join(here, ", "), ""};
  return {"CPU levels", State::Missing, "none of " + join(made, ", ") + " runs on this processor",
          "libraries can be made here, for another machine: ptc compile --cpu=" +
              (made.empty() ? "LEVEL" : made.front())};
}

/// Processors' worth of time that this process's control group gets; 0: no limit, or none that is shown.
static double groupQuota() {
  std::string limit = read("/sys/fs/cgroup/cpu.max");
  auto [quota, period] = StringRef(limit).split(' ');
  double microseconds = 0, every = 0;
  if (quota.getAsDouble(microseconds) || period.getAsDouble(every) || every <= 0)
    return 0;
  return microseconds / every;
}

static Finding threads() {
  unsigned usable = std::max(1u, hardware_concurrency().compute_thread_count()); // as its affinity mask says
  std::string text = formatv("{0} for this process", usable);
  if (int cores = get_physical_cores(); cores > 0) // within the mask, too
    text += formatv(", on {0} cores", cores);
  if (long all = ::sysconf(_SC_NPROCESSORS_ONLN); all > 0)
    text += formatv("; {0} of the machine", all);
  double quota = groupQuota();
  if (quota > 0)
    text += formatv("; its control group gets the time of {0:f1}", quota);
  unsigned share = std::max(1u, unsigned(quota + 0.5));
  if (quota > 0 && share < usable)
    return {"threads", State::Ok, text,
            formatv("a run on more threads than that is slower: threads = {0} in ptc_options", share)};
  return {"threads", State::Ok, text, ""};
}

static Finding caches() {
  std::vector<std::string> all;
  for (unsigned index = 0; index < 8; ++index) {
    std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    std::string level = read(folder + "/level"), kind = read(folder + "/type"), size = read(folder + "/size");
    if (!level.empty() && !size.empty())
      all.push_back("L" + level + (kind == "Unified" ? "" : " " + StringRef(kind).lower()) + " " + size);
  }
  return {"caches", State::Ok, all.empty() ? "not shown by the system" : join(all, ", "), ""};
}

static std::string gigabytes(StringRef kilobytes) {
  uint64_t count = 0;
  kilobytes.consumeInteger(10, count);
  return formatv("{0:f1} GB", double(count) * 1024 / 1e9);
}

static Finding memory() {
  std::string all = readField("/proc/meminfo", "MemTotal"), free = readField("/proc/meminfo", "MemAvailable");
  if (all.empty())
    return {"memory", State::Ok, "not shown by the system", ""};
  std::string text = gigabytes(all) + ", " + gigabytes(free) + " available";
  uint64_t limit = 0;
  if (std::string group = read("/sys/fs/cgroup/memory.max"); !StringRef(group).getAsInteger(10, limit))
    text += formatv("; its control group gets {0:f1} GB", double(limit) / 1e9);
  return {"memory", State::Ok, text, ""};
}

static Finding libc() {
  StringRef version = gnu_get_libc_version();
  unsigned major = 0, minor = 0;
  auto [first, second] = version.split('.');
  bool isRead = !first.getAsInteger(10, major) && !second.consumeInteger(10, minor);
  if (!isRead || std::pair(major, minor) >= std::pair(2u, 17u))
    return {"C library", State::Ok, "glibc " + version.str(), ""};
  return {"C library", State::Missing, "glibc " + version.str(), "libraries of ptc need glibc 2.17 or newer"};
}

/// The folder of temporary files, in which a file has been written.
static Finding temporaryFolder() {
  SmallString<128> folder, path;
  sys::path::system_temp_directory(/*erasedOnReboot=*/true, folder);
  SmallString<128> model(folder);
  sys::path::append(model, "ptc-doctor-%%%%%%%%");
  int descriptor = -1;
  std::error_code failed = sys::fs::createUniqueFile(model, descriptor, path);
  if (!failed) {
    raw_fd_ostream file(descriptor, /*shouldClose=*/true);
    file << std::string(4096, '\0');
    file.flush();
    failed = file.error();
    file.clear_error();
    file.close();
    sys::fs::remove(path);
  }
  if (failed)
    return {"temporary folder", State::Missing, (folder + ": " + failed.message()).str(),
            "`ptc verify` and reports of defects write there; TMPDIR names another"};
  std::string text = (folder + ", writable").str();
  if (ErrorOr<sys::fs::space_info> space = sys::fs::disk_space(folder))
    text += formatv(", {0:f1} GB free", double(space->available) / 1e9);
  return {"temporary folder", State::Ok, text, ""};
}

std::vector<Finding> examineMachine() {
  std::vector<Finding> findings{processor(), levels(), threads(), caches(), memory(), libc(), temporaryFolder()};
  append_range(findings, examineOptionalParts());
  return findings;
}

} // namespace ptc
