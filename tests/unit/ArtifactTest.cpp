// What the last two stages write, loaded and run: both entries, weights in the file and beside it, reproducible bytes,
// failures that leave nothing behind.
#include "ArtifactFixture.h"
#include "runtime/include/ptc/abi.h"
#include "runtime/include/ptc/descriptor.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <sys/resource.h>

using namespace llvm;
using namespace ptc;
using namespace ptc::test;

namespace {

struct Library {
  explicit Library(const std::string &path) : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    INFO((handle ? "" : dlerror()));
    REQUIRE(handle);
    table = static_cast<const ptc_model_table *>(dlsym(handle, "ptc_model_v1"));
    REQUIRE(table);
  }
  ~Library() { dlclose(handle); }
  template <typename Type> Type get(const char *name) { return reinterpret_cast<Type>(dlsym(handle, name)); }
  void *handle;
  const ptc_model_table *table;
};

std::string bytesOf(const std::string &path) {
  auto buffer = MemoryBuffer::getFile(path);
  REQUIRE(buffer);
  return (*buffer)->getBuffer().str();
}

void checkTensorRun(const ptc_model_table *table, const ptc_options *options = nullptr) {
  ptc_model *model = nullptr;
  ptc_ctx *ctx = nullptr;
  REQUIRE(table->create(options, &model) == PTC_OK);
  REQUIRE(table->ctx_create(model, &ctx) == PTC_OK);
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {};
  uint8_t flag = 1;
  int64_t past = 41, shape[] = {2, 4}, one[] = {1};
  ptc_tensor inputs[] = {{x, {PTC_CPU, 0}, 2, {PTC_FLOAT, 32, 1}, shape, nullptr, 0},
                         {&flag, {PTC_CPU, 0}, 0, {PTC_BOOL, 8, 1}, nullptr, nullptr, 0},
                         {&past, {PTC_CPU, 0}, 1, {PTC_INT, 64, 1}, one, nullptr, 0}};
  ptc_tensor outputs[] = {{y, {PTC_CPU, 0}, 2, {PTC_FLOAT, 32, 1}, shape, nullptr, 0},
                          {nullptr, {PTC_CPU, 0}, 1, {PTC_INT, 64, 1}, one, nullptr, 0}};
  CHECK(table->run(ctx, 0, inputs, outputs, nullptr, nullptr) == PTC_OK);
  CHECK(y[0] == -3);
  CHECK(y[7] == -41);
  CHECK(past == 42);
  shape[0] = 40;
  CHECK(table->workspace_size(ctx, 0, inputs) == PTC_NO_SIZE);
  CHECK(std::string(table->last_error(ctx)) == "batch <= 32 is needed, but batch is 40 (dim 0 of input 'x:0')");
  table->ctx_destroy(ctx);
  table->destroy(model);
}

/// The library's loadable bytes are where its headers say, and nothing in it is both writable and executable.
void checkElf(const std::string &path) {
  auto buffer = MemoryBuffer::getFile(path, false, false);
  auto file = cantFail(llvm::object::ELFFile<llvm::object::ELF64LE>::create((*buffer)->getBuffer()));
  bool relro = false, stack = false;
  for (const auto &segment : cantFail(file.program_headers())) {
    relro |= segment.p_type == ELF::PT_GNU_RELRO;
    stack |= segment.p_type == ELF::PT_GNU_STACK && !(segment.p_flags & ELF::PF_X);
    if (segment.p_type == ELF::PT_LOAD) {
      CHECK(segment.p_offset + segment.p_filesz <= (*buffer)->getBufferSize());
      CHECK((segment.p_flags & (ELF::PF_W | ELF::PF_X)) != (ELF::PF_W | ELF::PF_X));
      CHECK(segment.p_offset % segment.p_align == segment.p_vaddr % segment.p_align);
    }
  }
  CHECK(relro);
  CHECK(stack);
}

} // namespace

TEST_CASE("a shared library runs through the typed entry", "[artifact]") {
  Artifact artifact = build({});
  checkElf(artifact.path);
  Library library(artifact.path);
  auto create = library.get<ptc_status (*)(const ptc_options *, void **)>("m_create");
  auto ctxCreate = library.get<ptc_status (*)(const void *, void **)>("m_ctx_create");
  auto run = library.get<ptc_status (*)(void *, const int64_t *, const float *, const uint8_t *, int64_t *, float *,
                                        void *, void *)>("m_run");
  auto workspaceSize = library.get<size_t (*)(const void *, const int64_t *)>("m_workspace_size");
  auto outputShapes =
      library.get<ptc_status (*)(const void *, const int64_t *, int64_t *, int64_t *)>("m_output_shapes");
  auto setWeight = library.get<ptc_status (*)(void *, const char *, const void *, size_t)>("m_set_weight");
  auto lastError = library.get<const char *(*)(const void *)>("m_last_error");
  auto ctxDestroy = library.get<void (*)(void *)>("m_ctx_destroy");
  auto destroy = library.get<void (*)(void *)>("m_destroy");
  REQUIRE(
      (create && ctxCreate && run && workspaceSize && outputShapes && setWeight && lastError && ctxDestroy && destroy));
  CHECK(dlsym(library.handle, "ptc_rt_run") == nullptr);

  void *model = nullptr, *ctx = nullptr;
  REQUIRE(create(nullptr, &model) == PTC_OK);
  REQUIRE(ctxCreate(model, &ctx) == PTC_OK);
  float x[128], y[128];
  for (int i = 0; i < 128; ++i)
    x[i] = i;
  uint8_t flag = 0;
  int64_t past = 7, batch = 32, shape[2] = {}, next[1] = {};
  CHECK(workspaceSize(model, &batch) >= 32 * 16 + 64);
  CHECK(outputShapes(model, &batch, shape, next) == PTC_OK);
  CHECK((shape[0] == 32 && shape[1] == 4 && next[0] == 1));
  CHECK(run(ctx, &batch, x, &flag, &past, y, nullptr, nullptr) == PTC_OK);
  CHECK((y[0] == 1 && y[127] == 127 * 5 + 1 && past == 8));
  batch = 33;
  CHECK(run(ctx, &batch, x, &flag, &past, y, nullptr, nullptr) == PTC_GUARD_FAILED);
  CHECK(std::string(lastError(ctx)) == "batch <= 32 is needed, but batch is 33 (dim 0 of input 'x:0')");
  batch = 65;
  CHECK(run(ctx, &batch, x, &flag, &past, y, nullptr, nullptr) == PTC_GUARD_FAILED);
  CHECK(std::string(lastError(ctx)) == "batch <= 64 is needed, but batch is 65 (dim 0 of input 'x:0')");
  float weight[] = {1, 1, 1, 1};
  CHECK(setWeight(model, "w", weight, sizeof(weight)) == PTC_OK);
  batch = 1;
  CHECK(run(ctx, &batch, x, &flag, &past, y, nullptr, nullptr) == PTC_OK);
  CHECK(y[3] == 4);
  ctxDestroy(ctx);
  destroy(model);
}

static std::vector<std::string> librariesNeededBy(const std::string &path) {
  auto buffer = MemoryBuffer::getFile(path, false, false);
  auto object = cantFail(llvm::object::ObjectFile::createELFObjectFile(**buffer));
  const auto &file = cast<llvm::object::ELF64LEObjectFile>(*object).getELFFile();
  std::vector<std::string> names;
  StringRef strings;
  for (const auto &section : cantFail(file.sections()))
    if (section.sh_type == ELF::SHT_DYNSYM)
      strings = cantFail(file.getStringTableForSymtab(section));
  for (const auto &entry : cantFail(file.dynamicEntries()))
    if (entry.d_tag == ELF::DT_NEEDED)
      names.push_back(strings.data() + entry.getVal());
  return names;
}

TEST_CASE("a shared library runs through the generic entry and needs what its threads need", "[artifact]") {
  using Names = std::vector<std::string>;
  const std::pair<host::Threading, Names> kinds[] = {{host::Threading::Pool, {"libc.so.6", "libpthread.so.0"}},
                                                     {host::Threading::OpenMP, {"libc.so.6", "libgomp.so.1"}},
                                                     {host::Threading::None, {"libc.so.6"}}};
  for (const auto &[threading, needed] : kinds) {
    Artifact artifact = build({.threading = threading});
    CHECK(librariesNeededBy(artifact.path) == needed);
    checkTensorRun(Library(artifact.path).table);
  }
}

static unsigned threadsOfProcess() {
  std::error_code error;
  unsigned count = 0;
  for (sys::fs::directory_iterator it("/proc/self/task", error), end; it != end && !error; it.increment(error))
    ++count;
  return count;
}

TEST_CASE("closing a library ends its threads, even of models that were not destroyed", "[artifact]") {
  Artifact artifact = build({});
  unsigned before = threadsOfProcess();
  {
    Library library(artifact.path);
    ptc_options options = {.struct_size = sizeof(options), .threads = 4};
    ptc_model *model = nullptr;
    ptc_ctx *ctx = nullptr;
    REQUIRE(library.table->create(&options, &model) == PTC_OK);
    REQUIRE(library.table->ctx_create(model, &ctx) == PTC_OK);
    CHECK(threadsOfProcess() == before);
    int64_t shape[] = {8, 4}, one[] = {1};
    ptc_tensor inputs[3] = {};
    inputs[0] = {nullptr, {PTC_CPU, 0}, 2, {PTC_FLOAT, 32, 1}, shape, nullptr, 0};
    inputs[1] = {nullptr, {PTC_CPU, 0}, 0, {PTC_BOOL, 8, 1}, nullptr, nullptr, 0};
    inputs[2] = {nullptr, {PTC_CPU, 0}, 1, {PTC_INT, 64, 1}, one, nullptr, 0};
    CHECK(library.table->warmup(ctx, 0, inputs) == PTC_OK);
    CHECK(threadsOfProcess() == before + 3);
  }
  CHECK(threadsOfProcess() == before);
}

TEST_CASE("a program of many launches runs all of them in order", "[artifact]") {
  Artifact artifact = build({.negations = 1002});
  checkTensorRun(Library(artifact.path).table);
}

TEST_CASE("a tap's launch writes what the tap shows and does its node's work", "[artifact]") {
  // The second one is of the node, too, but reads alone; the third one writes for another node.
  Artifact artifact = build({.last = R"(
    loop.launch @copy(%x, %t) symbols [batch*4] : !loop.buffer<[batch, 4] x f32>, !loop.buffer<[batch, 4] x f32> loc(#own)
    loop.launch @copy(%t, %y) symbols [batch*4] : !loop.buffer<[batch, 4] x f32>, !loop.buffer<[batch, 4] x f32> loc(#own)
    loop.launch @negate(%t) symbols [batch*4] : !loop.buffer<[batch, 4] x f32> loc(#other)
    loop.tap 0 "t" f32 [batch, 4] %t : !loop.buffer<[batch, 4] x f32> at [d0*4 + d1] loc(#own)
  )",
                             .locations = R"(
    #own = loc(fused<{node = "own", op = "Neg", output = "t"}>[unknown])
    #other = loc(fused<{node = "other", op = "Neg", output = "u"}>[unknown])
  )"});
  uint32_t launch = 0;
  ptc_options options = {.struct_size = sizeof(options)};
  options.tap_state = &launch;
  options.tap = [](void *state, const ptc_tap *tap) { *static_cast<uint32_t *>(state) = tap->launch; };
  Library library(artifact.path);
  ptc_model *model = nullptr;
  ptc_ctx *ctx = nullptr;
  REQUIRE(library.table->create(&options, &model) == PTC_OK);
  REQUIRE(library.table->ctx_create(model, &ctx) == PTC_OK);
  float x[4] = {}, y[4] = {};
  uint8_t flag = 0;
  int64_t past = 0, shape[] = {1, 4}, one[] = {1};
  ptc_tensor inputs[] = {{x, {PTC_CPU, 0}, 2, {PTC_FLOAT, 32, 1}, shape, nullptr, 0},
                         {&flag, {PTC_CPU, 0}, 0, {PTC_BOOL, 8, 1}, nullptr, nullptr, 0},
                         {&past, {PTC_CPU, 0}, 1, {PTC_INT, 64, 1}, one, nullptr, 0}};
  ptc_tensor outputs[] = {{y, {PTC_CPU, 0}, 2, {PTC_FLOAT, 32, 1}, shape, nullptr, 0},
                          {nullptr, {PTC_CPU, 0}, 1, {PTC_INT, 64, 1}, one, nullptr, 0}};
  CHECK(library.table->run(ctx, 0, inputs, outputs, nullptr, nullptr) == PTC_OK);
  CHECK(launch == 4); // behind @scale, @negate, @copy and @increment
  library.table->ctx_destroy(ctx);
  library.table->destroy(model);
}

TEST_CASE("weights embed at any size and are found beside the library", "[artifact]") {
  Artifact large = build({.padding = 5'000'001});
  checkElf(large.path);
  checkTensorRun(Library(large.path).table);

  Artifact split = build({.weightsFile = true, .padding = 100'000});
  Library library(split.path);
  checkTensorRun(library.table);
  char error[256] = "";
  ptc_options options = {.struct_size = sizeof(options), .error = error, .error_size = sizeof(error)};
  ptc_model *model = nullptr;
  std::string moved = split.folder + "/elsewhere";
  REQUIRE(!sys::fs::rename(split.folder + "/m.weights", moved));
  CHECK(library.table->create(&options, &model) == PTC_WEIGHTS_UNAVAILABLE);
  CHECK(StringRef(error).contains("cannot open the weights file"));
  options.weights_path = moved.c_str();
  checkTensorRun(library.table, &options);
  Artifact other = build({.weightsFile = true, .padding = 100'001});
  std::string foreign = other.folder + "/m.weights";
  options.weights_path = foreign.c_str();
  CHECK(library.table->create(&options, &model) == PTC_WEIGHTS_UNAVAILABLE);
}

TEST_CASE("many weights lie on huge pages, in the file as in memory", "[artifact]") {
  Artifact huge = build({.padding = PTC_RT_WEIGHTS_HUGE});
  checkElf(huge.path);
  auto buffer = MemoryBuffer::getFile(huge.path, false, false);
  auto file = cantFail(llvm::object::ELFFile<llvm::object::ELF64LE>::create((*buffer)->getBuffer()));
  CHECK(llvm::count_if(cantFail(file.program_headers()), [](const auto &segment) {
          return segment.p_type == ELF::PT_LOAD && segment.p_filesz >= PTC_RT_WEIGHTS_HUGE &&
                 segment.p_align == PTC_RT_HUGE_PAGE && segment.p_offset % PTC_RT_HUGE_PAGE == 0;
        }) == 1);
  checkTensorRun(Library(huge.path).table);
}

TEST_CASE("same inputs give the same bytes, whatever the folder and the number of jobs", "[artifact]") {
  for (Output output : {Output::SharedLibrary, Output::Object, Output::StaticLibrary}) {
    Artifact one = build({.output = output, .padding = 3'000'000, .jobs = 1});
    Artifact two = build({.output = output, .padding = 3'000'000, .jobs = 3});
    CHECK(one.folder != two.folder);
    CHECK(bytesOf(one.path) == bytesOf(two.path));
    CHECK(one.result.buildId == two.result.buildId);
  }
  CHECK(build({.padding = 1}).result.buildId != build({.padding = 2}).result.buildId);
}

TEST_CASE("a static library shows its public names only", "[artifact]") {
  Artifact artifact = build({.output = Output::StaticLibrary, .padding = 10'000});
  auto buffer = MemoryBuffer::getFile(artifact.path, false, false);
  auto archive = cantFail(llvm::object::Archive::create(**buffer));
  std::vector<std::string> names;
  for (const llvm::object::Archive::Symbol &symbol : archive->symbols())
    names.push_back(symbol.getName().str());
  std::vector<std::string> expected = host::typedNames(artifact.interface);
  expected.push_back("m_model_v1");
  llvm::sort(names);
  llvm::sort(expected);
  CHECK(names == expected);
}

TEST_CASE("a disk without room is an error that names the output", "[artifact]") {
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small = {1 << 20, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string error;
  Artifact artifact = build({.padding = 5'000'000}, &error);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  CHECK(error == "cannot write '" + artifact.path + "': File too large");
}

TEST_CASE("a failed link leaves the old file and no other", "[artifact]") {
  std::string error;
  Artifact artifact = build({.failFill = true}, &error);
  CHECK(error == "the source is gone");
  std::error_code failed;
  CHECK(sys::fs::directory_iterator(artifact.folder, failed) == sys::fs::directory_iterator());
}
