#include "cli/quantize/Samples.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

/// What is in a folder but hidden files, in the order of names.
static Expected<std::vector<std::string>> listFolder(StringRef folder) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (sys::fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed))
    if (!sys::path::filename(entry->path()).starts_with("."))
      paths.push_back(entry->path());
  if (failed)
    return exitError(exitFile, "cannot read the folder '" + folder + "': " + failed.message());
  llvm::sort(paths);
  return paths;
}

static std::string pathIn(StringRef folder, const Twine &name) {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

/// INPUT.npy or input_N.pb for each input.
static Expected<Sample> sampleOfFolder(StringRef folder, const ptc_function &function) {
  Sample sample{folder.str(), {}};
  for (unsigned i = 0; i < function.input_count; ++i) {
    StringRef name = function.inputs[i].name;
    std::string path = pathIn(folder, name + ".npy");
    if (!sys::fs::exists(path))
      path = pathIn(folder, "input_" + Twine(i) + ".pb");
    if (!sys::fs::exists(path))
      return exitError(exitFile, "the sample '" + folder + "' has no value for input '" + name + "'",
                       "it needs " + name + ".npy or input_" + Twine(i) + ".pb");
    sample.specs.push_back((name + "=@" + path).str());
  }
  return sample;
}

Expected<std::vector<Sample>> listSamples(StringRef folder, const ptc_function &function) {
  if (!sys::fs::is_directory(folder))
    return exitError(exitFile, "--data: '" + folder + "' is not a folder", samplesHelp);
  Expected<std::vector<std::string>> paths = listFolder(folder);
  if (!paths)
    return paths.takeError();
  std::vector<Sample> samples;
  for (const std::string &path : *paths) {
    StringRef suffix = sys::path::extension(path);
    if (sys::fs::is_directory(path)) {
      Expected<Sample> sample = sampleOfFolder(path, function);
      if (!sample)
        return sample.takeError();
      samples.push_back(std::move(*sample));
    } else if (suffix == ".npz") {
      samples.push_back({path, {"@" + path}});
    } else if (suffix != ".npy" && suffix != ".pb") {
      return exitError(exitFile, "--data: '" + path + "' is no sample", samplesHelp);
    } else if (function.input_count == 1) {
      samples.push_back({path, {std::string(function.inputs[0].name) + "=@" + path}});
    } else {
      return exitError(
          exitFile, "--data: '" + path + "' is one array, but the model has " + Twine(function.input_count) + " inputs",
          "a sample of several inputs is a NAME.npz, or a folder with INPUT.npy for each");
    }
  }
  if (samples.empty())
    return exitError(exitFile, "--data: the folder '" + folder + "' has no samples", samplesHelp);
  return samples;
}

} // namespace ptc
