#include "compiler/artifact/Outputs.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <catch2/catch.hpp>

using namespace llvm;
using namespace ptc::artifact;

namespace {

struct Folder {
  SmallString<64> path;
  Folder() { REQUIRE(!sys::fs::createUniqueDirectory("ptc-outputs", path)); }
  ~Folder() { sys::fs::remove_directories(path); }
  std::string operator/(StringRef name) const { return (path + "/" + name).str(); }
  unsigned count() const {
    std::error_code error;
    unsigned files = 0;
    for (sys::fs::directory_iterator it(path, error), end; it != end && !error; it.increment(error))
      ++files;
    return files;
  }
};

std::string read(const std::string &path) {
  auto buffer = MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "(none)";
}

} // namespace

TEST_CASE("outputs appear at commit, all of them", "[outputs]") {
  Folder folder;
  Outputs outputs;
  cantFail(outputs.write(folder / "a", "one"));
  cantFail(outputs.write(folder / "b", "two"));
  CHECK(read(folder / "a") == "(none)");
  cantFail(outputs.commit());
  CHECK(read(folder / "a") == "one");
  CHECK(read(folder / "b") == "two");
  CHECK(folder.count() == 2);
}

TEST_CASE("outputs that are not committed leave what was there", "[outputs]") {
  Folder folder;
  {
    Outputs outputs;
    cantFail(outputs.write(folder / "a", "old"));
    cantFail(outputs.commit());
  }
  {
    Outputs outputs;
    cantFail(outputs.write(folder / "a", "new"));
  }
  CHECK(read(folder / "a") == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("an unchanged output keeps its time stamp", "[outputs]") {
  Folder folder;
  sys::fs::file_status before, after;
  for (sys::fs::file_status *status : {&before, &after}) {
    Outputs outputs;
    cantFail(outputs.write(folder / "a", "same"));
    cantFail(outputs.commit());
    REQUIRE(!sys::fs::status(folder / "a", *status));
  }
  CHECK(before.getUniqueID() == after.getUniqueID());
  CHECK(before.getLastModificationTime() == after.getLastModificationTime());
}

TEST_CASE("an output that cannot be written is named", "[outputs]") {
  Folder folder;
  Outputs outputs;
  CHECK(toString(outputs.write(folder / "no/such/file", "x")) ==
        "cannot write '" + (folder / "no/such/file") + "': No such file or directory");
  CHECK(toString(outputs.write(folder.path, "x")) == ("cannot write '" + folder.path + "': Is a directory").str());
  cantFail(outputs.write("/dev/null", "x"));
  cantFail(outputs.commit());
}

TEST_CASE("a commit that fails in its middle takes back what it has done", "[outputs]") {
  Folder folder;
  {
    Outputs outputs;
    cantFail(outputs.write(folder / "main", "old main"));
    cantFail(outputs.write(folder / "header", "old header"));
    cantFail(outputs.commit(folder / "main"));
  }
  {
    Outputs outputs;
    cantFail(outputs.write(folder / "main", "new main"));
    cantFail(outputs.write(folder / "header", "new header"));
    cantFail(outputs.write(folder / "more", "new"));
    cantFail(outputs.write(folder / "blocked", "new"));
    REQUIRE(!sys::fs::create_directory(folder / "blocked"));
    CHECK(toString(outputs.commit(folder / "main")).find("cannot write '" + (folder / "blocked")) == 0);
  }
  CHECK(read(folder / "main") == "old main");
  CHECK(read(folder / "header") == "old header");
  CHECK(read(folder / "more") == "(none)");
  CHECK(folder.count() == 3);
}
