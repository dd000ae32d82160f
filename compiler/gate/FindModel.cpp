#include "compiler/gate/FindModel.h"
#include "compiler/gate/Observe.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc::gate {

static std::string joined(StringRef folder, StringRef name) {
  SmallString<256> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

/// Files of the recorded name below the folder, in a fixed order.
static std::vector<std::string> filesNamed(StringRef folder, StringRef name) {
  std::vector<std::string> found;
  std::error_code failed;
  for (sys::fs::recursive_directory_iterator it(folder, failed), end; it != end && !failed; it.increment(failed))
    if (sys::path::filename(it->path()) == name && !sys::fs::is_directory(it->path()))
      found.push_back(it->path());
  llvm::sort(found);
  return found;
}

static Error notFound(const Baseline &baseline, StringRef path, const Twine &where) {
  return exitError(exitFile, "the model '" + baseline.model + "' of '" + path + "' is not " + where,
                   "--model=FILE names it, --models=DIR a folder that holds it");
}

Expected<std::string> findModel(const Baseline &baseline, StringRef baselinePath, const ModelPlaces &places) {
  if (!places.model.empty())
    return places.model;
  std::string beside = joined(sys::path::parent_path(baselinePath), baseline.model);
  if (sys::fs::exists(beside))
    return beside;
  if (places.folder.empty())
    return notFound(baseline, baselinePath, "beside it");
  std::string below = joined(places.folder, baseline.model);
  std::vector<std::string> files;
  if (sys::fs::exists(below))
    files.push_back(below);
  append_range(files, filesNamed(places.folder, sys::path::filename(baseline.model)));
  for (const std::string &file : files) {
    Expected<std::string> digest = digestOfModel(file);
    if (!digest)
      return digest.takeError();
    if (*digest == baseline.modelDigest)
      return file;
  }
  if (files.empty())
    return notFound(baseline, baselinePath, "beside it, nor below '" + places.folder + "'");
  return files.front(); // checkModel tells that it is another
}

Error checkModel(const Baseline &baseline, StringRef baselinePath, StringRef model) {
  Expected<std::string> digest = digestOfModel(model);
  if (!digest)
    return digest.takeError();
  if (*digest == baseline.modelDigest)
    return Error::success();
  return exitError(exitDifference,
                   "'" + baselinePath + "' is stale: it was recorded of a model with the digest " +
                       StringRef(baseline.modelDigest).take_front(12) + "..., and '" + model + "' has " +
                       StringRef(*digest).take_front(12) + "...",
                   "if the model was changed on purpose: ptc gate update " + baselinePath + " --model=" + model +
                       "; else give the right one with --model or --models");
}

std::string recordedName(StringRef model, StringRef baselinePath) {
  SmallString<256> file, folder;
  StringRef parent = sys::path::parent_path(baselinePath);
  if (sys::fs::real_path(model, file) || sys::fs::real_path(parent.empty() ? "." : parent, folder))
    return sys::path::filename(model).str();
  StringRef rest = file;
  if (rest.consume_front(folder) && rest.consume_front("/"))
    return rest.str();
  return sys::path::filename(model).str();
}

Expected<std::vector<std::string>> listBaselines(ArrayRef<std::string> paths) {
  std::vector<std::string> files;
  for (const std::string &path : paths) {
    if (!sys::fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    std::error_code failed;
    for (sys::fs::directory_iterator it(path, failed), end; it != end && !failed; it.increment(failed))
      if (sys::path::extension(it->path()) == ".json")
        inside.push_back(it->path());
    if (failed)
      return exitError(exitFile, "cannot read the folder '" + path + "': " + failed.message());
    if (inside.empty())
      return exitError(exitUsage, "the folder '" + path + "' holds no baseline",
                       "ptc gate record MODEL.onnx -o " + path + "/MODEL.json");
    llvm::sort(inside);
    append_range(files, inside);
  }
  return files;
}

} // namespace ptc::gate
