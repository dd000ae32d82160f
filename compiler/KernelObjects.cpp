#include "compiler/KernelObjects.h"
#include "codegen/cpu/CpuKernels.h"
#include "codegen/host/HostModule.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ThreadPool.h"
#include <atomic>

using namespace llvm;

namespace ptc {

object::TargetLevel targetLevelOf(const cpu::CpuLevel &level) {
  return {.triple = level.triple.str(),
          .cpu = level.cpu.str(),
          .tuneCpu = level.tuneCpu.str(),
          .features = level.features.str(),
          .vectorBits = static_cast<unsigned>(level.vectorBits)};
}

uint64_t codeBytesOf(ArrayRef<char> object) {
  auto file = llvm::object::ObjectFile::createObjectFile(MemoryBufferRef(StringRef(object.data(), object.size()), ""));
  if (!file)
    return consumeError(file.takeError()), 0;
  uint64_t bytes = 0;
  for (const llvm::object::SectionRef &section : (*file)->sections())
    if (section.isText())
      bytes += section.getSize();
  return bytes;
}

static Expected<KernelObject> compileKernel(loop::KernelOp kernel, const cpu::CpuLevel &level, bool wantsText) {
  LLVMContext context; // of its own: contexts are not shared between threads
  KernelObject result{.kernel = kernel.getSymName().str(), .level = level.name.str()};
  std::string symbol = host::kernelSymbol(kernel.getSymName(), level.name);
  Expected<std::unique_ptr<Module>> module = cpu::generateKernel(kernel, symbol, level, context);
  if (!module)
    return module.takeError();
  object::TargetLevel target = targetLevelOf(level);
  if (wantsText) {
    result.llvmText = object::printModule(**module);
    // Emission changes the module: the text is made from one of its own.
    LLVMContext again;
    Expected<std::unique_ptr<Module>> copy = cpu::generateKernel(kernel, symbol, level, again);
    if (!copy)
      return copy.takeError();
    auto text = object::emitOptimized(**copy, target, object::EmissionKind::Assembly);
    if (!text)
      return text.takeError();
    result.assembly.assign(text->begin(), text->end());
  }
  auto object = object::emitOptimized(**module, target);
  if (!object)
    return object.takeError();
  result.object = std::move(*object);
  result.codeBytes = codeBytesOf(result.object);
  return result;
}

Expected<std::vector<KernelObject>> compileKernels(const KernelRequest &request, ThreadPoolInterface &pool,
                                                   size_t &failed) {
  size_t levels = request.levels.size(), total = request.kernels.size() * levels;
  std::vector<std::optional<Expected<KernelObject>>> slots(total);
  std::atomic<size_t> done = 0;
  ThreadPoolTaskGroup group(pool);
  for (size_t i = 0; i < total; ++i)
    group.async([&, i] {
      CrashRecoveryContext crash;
      bool survived = crash.RunSafely([&] {
        slots[i].emplace(compileKernel(request.kernels[i / levels], *request.levels[i % levels], request.wantsText));
      });
      if (!survived)
        slots[i].emplace(createStringError(inconvertibleErrorCode(), "the code generator crashed"));
      if (request.progress)
        request.progress(++done, total);
    });
  group.wait();

  std::vector<KernelObject> objects;
  Error error = Error::success();
  for (size_t i = 0; i < total; ++i) {
    if (*slots[i]) {
      objects.push_back(std::move(**slots[i]));
    } else if (!error) {
      failed = i / levels;
      loop::KernelOp kernel = request.kernels[failed];
      error = createStringError(inconvertibleErrorCode(), "kernel " + kernel.getSymName() + " for " +
                                                              request.levels[i % levels]->name + ": " +
                                                              toString(slots[i]->takeError()));
    } else {
      consumeError(slots[i]->takeError());
    }
  }
  if (error)
    return std::move(error);
  return objects;
}

} // namespace ptc
