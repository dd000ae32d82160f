// What not every machine has: OpenMP's runtime, NVIDIA's driver and its tools.
//
// A shared library is here if the loader finds it, so the loader is asked, not a list of folders. But a library that is
// loaded runs code of its own, and a driver that does not fit its kernel module may crash or hang in it: all of that
// happens in a child process, which has ten seconds and sends what it saw through a pipe. A child that dies has said
// something too.
#include "codegen/gpu/Assembler.h"
#include "codegen/gpu/CudaLevels.h"
#include "compiler/CudaDriver.h"
#include "compiler/DiagnosticRendering.h"
#include "compiler/Machine.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <csignal>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace ptc {

using State = Finding::State;

[[noreturn]] static void answer(int pipe, function_ref<std::string()> question) {
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM})
    ::signal(signal, SIG_DFL);
  alarm(10);
  if (int nowhere = open("/dev/null", O_RDWR); nowhere >= 0)
    for (int stream : {0, 1, 2})
      dup2(nowhere, stream);
  std::string text = question();
  for (size_t sent = 0; sent < text.size();) {
    ssize_t count = write(pipe, text.data() + sent, text.size() - sent);
    if (count <= 0)
      _exit(1);
    sent += count;
  }
  _exit(0); // without destructors and exit handlers: they belong to the parent
}

/// What a child process answers; nothing if it died on the way.
static std::optional<std::string> askChild(function_ref<std::string()> question) {
  int ends[2];
  if (pipe(ends) != 0)
    return std::nullopt;
  pid_t child = fork();
  if (child == 0)
    answer(ends[1], question);
  close(ends[1]);
  auto closed = scope_exit([&] { close(ends[0]); });
  if (child < 0)
    return std::nullopt;
  std::string text;
  char block[4096];
  for (ssize_t count; (count = read(ends[0], block, sizeof block)) != 0;) {
    if (count < 0 && errno != EINTR)
      break;
    text.append(block, std::max<ssize_t>(count, 0));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::optional(text) : std::nullopt;
}

static std::string pathOf(void *library) {
  link_map *map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
}

bool hasSharedLibrary(ArrayRef<const char *> names) {
  return askChild([&]() -> std::string {
           for (const char *name : names)
             if (dlopen(name, RTLD_LAZY | RTLD_LOCAL))
               return name;
           return "";
         }).value_or("") != "";
}

static Finding openMp() {
  std::optional<std::string> path = askChild([]() -> std::string {
    void *library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_LOCAL);
    return library ? pathOf(library) : "";
  });
  if (path && !path->empty())
    return {"OpenMP runtime", State::Ok, *path, ""};
  return {"OpenMP runtime", State::Absent, path ? "the loader finds no libgomp.so.1" : "libgomp.so.1 fails to load",
          "libraries of --threads=openmp alone need it: install libgomp1"};
}

static std::string describeDevice(const CudaDriver &cuda, int ordinal) {
  int device = 0, major = 0, minor = 0, processors = 0;
  char name[256] = "";
  size_t bytes = 0;
  if (cuda.get(&device, ordinal) || cuda.name(name, sizeof name, device) ||
      cuda.attribute(&major, int(CudaAttribute::Major), device) ||
      cuda.attribute(&minor, int(CudaAttribute::Minor), device) ||
      cuda.attribute(&processors, int(CudaAttribute::Multiprocessors), device) || cuda.memory(&bytes, device))
    return formatv("\n{0}: does not answer", ordinal);
  return formatv("\n{0}: {1}, {2} multiprocessors, {3:f1} GB, compute capability {4}.{5}: --gpu={6}", ordinal,
                 static_cast<const char *>(name), processors, double(bytes) / 1e9, major, minor,
                 gpu::getLevelFor(uint64_t(10 * major + minor)));
}

/// "ok " and what `describe` says of a driver with so many devices, or what is wrong; empty without a driver.
static std::string askDriver(function_ref<std::string(void *library, const CudaDriver &, int count)> describe) {
  void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    return "";
  CudaDriver cuda(library);
  std::string path = pathOf(library);
  if (!cuda.isWhole())
    return path + " lacks functions of a CUDA driver";
  int status = cuda.init(0), count = 0;
  constexpr int noDevice = 100; // CUDA_ERROR_NO_DEVICE
  if (status == noDevice || (status == 0 && (cuda.count(&count) || count == 0)))
    return path + " is here, but shows no device";
  if (status)
    return formatv("{0} is here, but cuInit fails with error {1}", path, status);
  return "ok " + describe(library, cuda, count);
}

static std::string describeDriver(void *library, const CudaDriver &cuda, int count) {
  int version = 0;
  cuda.version(&version);
  std::string text = formatv("{0}, for CUDA {1}.{2}", pathOf(library), version / 1000, version % 1000 / 10);
  for (int ordinal = 0; ordinal < count; ++ordinal)
    text += describeDevice(cuda, ordinal);
  return text;
}

static std::string nameFirst(void *, const CudaDriver &cuda, int) {
  int device = 0;
  char name[256] = "";
  return cuda.get(&device, 0) || cuda.name(name, sizeof name, device) ? "" : name;
}

static std::string levelOfFirst(void *, const CudaDriver &cuda, int) {
  int device = 0, major = 0, minor = 0;
  bool fails = cuda.get(&device, 0) || cuda.attribute(&major, int(CudaAttribute::Major), device) ||
               cuda.attribute(&minor, int(CudaAttribute::Minor), device);
  return fails ? "" : gpu::getLevelFor(uint64_t(10 * major + minor)).str();
}

/// In a child: whether there is a driver with devices, and in `found` what describe says of them, or what is wrong.
static bool findDriver(function_ref<std::string(void *, const CudaDriver &, int)> describe, std::string &found) {
  std::optional<std::string> text = askChild([&] { return askDriver(describe); });
  bool isHere = text && StringRef(*text).starts_with("ok ");
  found = isHere          ? text->substr(3)
          : !text         ? "libcuda.so.1 crashes or hangs when it is asked"
          : text->empty() ? "the loader finds no libcuda.so.1"
                          : *text;
  return isHere;
}

static Expected<std::string> askFirst(function_ref<std::string(void *, const CudaDriver &, int)> describe) {
  std::string found;
  if (findDriver(describe, found))
    return found;
  return exitError(exitNoDevice, found);
}

Expected<std::string> nameCudaDevice() { return askFirst(nameFirst); }

Expected<std::string> findCudaLevel() { return askFirst(levelOfFirst); }

static Finding gpuDriver() {
  std::string found;
  if (findDriver(describeDriver, found))
    return {"GPU driver", State::Ok, found, ""};
  bool hasModule = sys::fs::exists("/proc/driver/nvidia/version");
  if (hasModule)
    return {"GPU driver", State::Absent, found + "; NVIDIA's kernel module is loaded",
            "CUDA_VISIBLE_DEVICES may hide devices; a container has those that it was started with; else: a driver of "
            "the kernel module's version"};
  return {"GPU driver", State::Absent, found + "; no kernel module of NVIDIA's",
          "code of --target=cuda can be made here, but needs a machine with NVIDIA's driver to run"};
}

static Finding ptxas() {
  if (std::string path = gpu::findAssembler(); !path.empty()) {
    std::string version = gpu::getToolkitVersion(path);
    return {"ptxas", State::Ok, path + (version.empty() ? ", of unknown version" : ", of CUDA " + version), ""};
  }
  return {"ptxas", State::Absent, "not on PATH, nor in " + join(gpu::getToolkitFolders(), ", "),
          "ptc needs none: the driver compiles PTX when it is loaded; ptxas of the CUDA toolkit does it beforehand"};
}

std::vector<Finding> examineOptionalParts() { return {openMp(), gpuDriver(), ptxas()}; }

} // namespace ptc
