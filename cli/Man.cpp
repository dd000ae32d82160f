// ptc man: manual pages, from the tables that --help uses.
#include "cli/VerbTable.h"
#include "cli/help/ManPage.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

namespace {
struct ManOptions {
  std::string verb, folder;
};
} // namespace

static Error writePage(StringRef folder, const Twine &page, function_ref<void(raw_ostream &)> print) {
  SmallString<128> path(folder);
  sys::path::append(path, page + ".1");
  std::error_code failed;
  raw_fd_ostream file(path, failed);
  if (!failed) {
    print(file);
    file.close();
    failed = file.error();
    file.clear_error();
  }
  return failed ? exitError(exitFile, "cannot write '" + path + "': " + failed.message()) : Error::success();
}

static Error writePages(StringRef folder) {
  if (std::error_code failed = sys::fs::create_directories(folder))
    return exitError(exitFile, "cannot create the folder '" + folder + "': " + failed.message());
  std::vector<VerbShape> verbs = describeVerbs();
  if (Error error = writePage(folder, "ptc", [&](raw_ostream &os) { printManPage(os, verbs); }))
    return error;
  for (const VerbShape &verb : verbs)
    if (Error error = writePage(folder, "ptc-" + verb.name, [&](raw_ostream &os) { printManPage(os, verb); }))
      return error;
  return Error::success();
}

static Error print(Session &session, StringRef name) {
  std::vector<VerbShape> verbs = describeVerbs();
  if (name.empty())
    return printManPage(session.out, verbs), Error::success();
  printManPage(session.out, *find_if(verbs, [&](const VerbShape &verb) { return verb.name == name; }));
  return Error::success();
}

Action declareMan(CLI::App &app) {
  auto options = std::make_shared<ManOptions>();
  std::vector<std::string> names;
  for (const VerbRow &verb : getVerbs())
    names.push_back(verb.name.str());
  app.add_option("verb", options->verb, "the page of this verb (default: the page of ptc)")
      ->check(CLI::IsMember(names))
      ->type_name("VERB");
  app.add_option("-o,--output", options->folder, "write all pages into this folder: ptc.1, ptc-compile.1, ...")
      ->type_name("DIR");
  return [options](Session &session) {
    return options->folder.empty() ? print(session, options->verb) : writePages(options->folder);
  };
}

} // namespace ptc
