#include "tests/unit/TemplateRunner.h"

#include "codegen/cpu/CpuKernels.h"
#include "codegen/cpu/CpuTuning.h"
#include "ir/loop/Loop.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include <chrono>
#include <cstring>
#include <deque>

using namespace ptc;
using namespace ptc::test;

// Conversions that processors without F16C call. A library takes them from ptc's runtime; here they are the C++
// run-time library's, named explicitly because a static program exports nothing to look up.
extern "C" float __extendhfsf2(_Float16);
extern "C" _Float16 __truncsfhf2(float);

static llvm::Error defineConversions(llvm::orc::LLJIT &jit) {
  llvm::orc::SymbolMap symbols;
  auto define = [&](llvm::StringRef name, auto *function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Callable};
  };
  define("__extendhfsf2", &__extendhfsf2);
  define("__truncsfhf2", &__truncsfhf2);
  return jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols)));
}

struct CompiledKernel::State {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  loop::KernelOp kernel;
  std::unique_ptr<llvm::orc::LLJIT> jit;

  int64_t evaluate(Expr expr, const std::vector<int64_t> &symbols) {
    SymbolValues values;
    for (auto [name, value] : llvm::zip(kernel.getSymbols().getAsValueRange<mlir::StringAttr>(), symbols))
      values[name] = value;
    return expr.evaluate(values).value_or(-1);
  }
};

CompiledKernel::~CompiledKernel() = default;

static bool report(llvm::Error error) {
  if (!error)
    return false;
  llvm::errs() << llvm::toString(std::move(error)) << "\n";
  return true;
}

std::vector<std::string> test::kernelNames(const std::string &text) {
  mlir::MLIRContext context;
  cpu::loadKernelDialects(context);
  std::vector<std::string> names;
  if (auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context))
    for (loop::KernelOp kernel : module->getOps<loop::KernelOp>())
      names.push_back(kernel.getSymName().str());
  return names;
}

std::vector<Numbers> test::alternativesOf(const std::string &text, const cpu::CpuLevel &level) {
  mlir::MLIRContext context;
  cpu::loadKernelDialects(context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  std::vector<Numbers> all;
  if (!module)
    return all;
  for (mlir::DictionaryAttr dictionary : cpu::listAlternatives(*module->getOps<loop::KernelOp>().begin(), level)) {
    Numbers &numbers = all.emplace_back();
    for (mlir::NamedAttribute entry : dictionary)
      numbers[entry.getName().str()] = mlir::cast<mlir::IntegerAttr>(entry.getValue()).getInt();
  }
  return all;
}

static void setNumbers(loop::KernelOp kernel, const Numbers &numbers, const cpu::CpuLevel &level) {
  mlir::Builder builder(kernel.getContext());
  mlir::NamedAttrList entries;
  entries.set(loop::tunedLevelAttr, builder.getStringAttr(level.name));
  for (const auto &[name, number] : numbers)
    entries.set(name, builder.getI64IntegerAttr(number));
  if (!numbers.empty())
    kernel->setAttr(loop::tunedAttr, entries.getDictionary(kernel.getContext()));
}

std::unique_ptr<CompiledKernel> CompiledKernel::compile(const std::string &text, const cpu::CpuLevel &level,
                                                        const std::string &name, const Numbers &numbers) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto result = std::make_unique<CompiledKernel>();
  result->state = std::make_unique<State>();
  State &state = *result->state;
  cpu::loadKernelDialects(state.context);
  state.module = mlir::parseSourceString<mlir::ModuleOp>(text, &state.context);
  if (!state.module)
    return nullptr;
  for (loop::KernelOp kernel : state.module->getOps<loop::KernelOp>())
    if (!state.kernel && (name.empty() || kernel.getSymName() == name))
      state.kernel = kernel;
  setNumbers(state.kernel, numbers, level);
  auto start = std::chrono::steady_clock::now();
  if (failed(cpu::planKernel(state.kernel)))
    return nullptr;
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = cpu::generateKernel(state.kernel, "kernel", level, *context);
  if (!module) {
    report(module.takeError());
    return nullptr;
  }
  object::TargetLevel target = cpu::getTargetLevel(level);
  auto object = object::emitOptimized(**module, target);
  if (!object) {
    report(object.takeError());
    return nullptr;
  }
  std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  result->milliseconds = spent.count();
  llvm::raw_string_ostream config(result->config);
  config << state.kernel.getConfigAttr();
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) {
    report(jit.takeError());
    return nullptr;
  }
  state.jit = std::move(*jit);
  if (report(defineConversions(*state.jit)))
    return nullptr;
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object->data(), object->size()), "kernel");
  if (report(state.jit->addObjectFile(std::move(buffer))))
    return nullptr;
  auto symbol = state.jit->lookup("kernel");
  if (!symbol) {
    report(symbol.takeError());
    return nullptr;
  }
  result->function = symbol->toPtr<Function *>();
  return result;
}

std::shared_ptr<CompiledKernel> CompiledKernel::share(const std::string &text, const cpu::CpuLevel &level,
                                                      const Numbers &numbers) {
  struct Kept {
    std::string text;
    const cpu::CpuLevel *level;
    Numbers numbers;
    std::shared_ptr<CompiledKernel> kernel;
  };
  constexpr size_t mostKept = 48;                        // four texts at every level, with room
  static std::deque<Kept> &kept = *new std::deque<Kept>; // never destroyed: what LLVM's objects refer to may go first
  for (const Kept &one : kept)
    if (one.text == text && one.level == &level && one.numbers == numbers)
      return one.kernel;
  std::shared_ptr<CompiledKernel> kernel = compile(text, level, "", numbers);
  if (!kernel)
    return nullptr;
  if (kept.size() == mostKept)
    kept.pop_front();
  kept.push_back({text, &level, numbers, kernel});
  return kernel;
}

int64_t CompiledKernel::iterations(const std::vector<int64_t> &symbols) const {
  return state->evaluate(*state->kernel.getIterations(), symbols);
}

int64_t CompiledKernel::scratchBytes(const std::vector<int64_t> &symbols) const {
  return state->evaluate(*state->kernel.getScratch(), symbols);
}

std::vector<int64_t> CompiledKernel::bufferBytes(const std::vector<int64_t> &symbols) const {
  std::vector<int64_t> bytes;
  for (mlir::Type type : state->kernel.getBlock().getArgumentTypes()) {
    auto buffer = mlir::cast<loop::BufferType>(type);
    bytes.push_back(state->evaluate(buffer.getElementCount(), symbols) * buffer.getElementBytes());
  }
  return bytes;
}

void CompiledKernel::run(const std::vector<void *> &buffers, const std::vector<int64_t> &symbols, int64_t pieces) {
  int64_t all = iterations(symbols), bytes = scratchBytes(symbols);
  std::vector<char> memory(size_t(bytes) + 256);
  char *scratch = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  for (int64_t piece = pieces; piece-- > 0;) {
    std::memset(scratch, 0xff, size_t(bytes) + 128);
    function(buffers.data(), symbols.data(), all * piece / pieces, all * (piece + 1) / pieces, scratch);
    for (int64_t at = bytes; at < bytes + 128; ++at)
      if (scratch[at] != char(0xff)) {
        llvm::errs() << "scratch overrun\n";
        std::abort();
      }
  }
}

std::vector<const cpu::CpuLevel *> test::runnableLevels() {
  std::vector<const cpu::CpuLevel *> levels;
  for (const cpu::CpuLevel &level : cpu::getCpuLevels())
    // Strassen's sums are right on all processors, if not fast.
    if (cpu::isOfHost(level) || (level.addsBesideProducts && cpu::isOfHost(*cpu::findCpuLevel(level.base))))
      levels.push_back(&level);
  return levels;
}

/// The tiles, loops and masks of x86-64-v4 in the instructions of x86-64-v3: LLVM splits the vectors.
static const cpu::CpuLevel *getSplitLevel() {
  static const cpu::CpuLevel split = [] {
    const cpu::CpuLevel &v3 = *cpu::findCpuLevel("x86-64-v3");
    cpu::CpuLevel result = *cpu::findCpuLevel("x86-64-v4");
    result.name = "x86-64-v4 in instructions of v3";
    result.cpu = v3.cpu;
    result.tuneCpu = v3.tuneCpu;
    result.features = v3.features;
    result.hasScalef = v3.hasScalef;
    return result;
  }();
  return &split;
}

std::vector<const cpu::CpuLevel *> test::plannedLevels() {
  std::vector<const cpu::CpuLevel *> levels = runnableLevels();
  if (!levels.empty() && levels.back()->vectorBits == 256)
    levels.push_back(getSplitLevel());
  return levels;
}

std::vector<const cpu::CpuLevel *> test::lowestAndHighest() {
  std::vector<const cpu::CpuLevel *> levels = plannedLevels();
  return {levels.front(), levels.back()};
}
