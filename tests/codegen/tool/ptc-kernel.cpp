//===- ptc-kernel.cpp - plans, prints, runs and checks kernels ------------===//
//
//   ptc-kernel FILE.mlir                      the planned kernels
//   ptc-kernel FILE.mlir --level=L --emit=llvm|asm
//   ptc-kernel FILE.mlir --check [--level=L]  compiles for each level that this processor has, runs on random data,
//                                             whole and cut in pieces, and compares with the interpreter
//   ptc-kernel FILE.mlir --time [--level=L]   best time of a call, and of compiling
//
// Attributes of the kernels say what to run: `test.symbols` is a list of dictionaries of symbol values;
// `test.ranges`, one [low, high] an argument, bounds random integers; `test.tolerance` is relative (default 2e-6);
// `test.nan` mixes NaN, infinities and zeros into floats; `test.fails`: an index is out of range.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/CpuKernels.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "tests/codegen/tool/KernelInterpreter.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include <chrono>
#include <cmath>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace ptc;
using namespace ptc::test;
using KernelFunction = int32_t (*)(void *const *, const int64_t *, int64_t, int64_t, void *);

namespace {
struct Settings {
  std::string file, level, emit;
  bool check = false, time = false;
};
} // namespace

static llvm::ExitOnError check("ptc-kernel: ");

static double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static SymbolValues toSymbols(DictionaryAttr dictionary) {
  SymbolValues values;
  for (NamedAttribute attribute : dictionary)
    values[attribute.getName().getValue()] = cast<IntegerAttr>(attribute.getValue()).getInt();
  return values;
}

static std::vector<Memory> randomBuffers(loop::KernelOp kernel, const SymbolValues &symbols, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  auto ranges = kernel->getAttrOfType<ArrayAttr>("test.ranges");
  bool special = kernel->hasAttr("test.nan");
  std::vector<Memory> buffers;
  for (auto [index, argument] : llvm::enumerate(kernel.getBlock().getArguments())) {
    auto type = cast<loop::BufferType>(argument.getType());
    Memory memory{type.getElementType(), {}};
    int64_t count = *type.getElementCount().evaluate(symbols);
    memory.bytes.resize(size_t(count * type.getElementBytes()));
    int64_t low = -50, high = 50;
    if (ranges && index < ranges.size()) {
      auto range = cast<ArrayAttr>(ranges[index]);
      low = cast<IntegerAttr>(range[0]).getInt();
      high = cast<IntegerAttr>(range[1]).getInt();
    }
    for (int64_t i = 0; i < count; ++i) {
      Scalar value{normal(random), low + int64_t(random() % uint64_t(high - low + 1))};
      if (memory.type.isInteger(1))
        value.i = int64_t(random() % 2);
      if (special && random() % 8 == 0) {
        const double specials[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0, 1.0};
        value.f = specials[random() % 7];
      }
      memory.set(i, value);
    }
    buffers.push_back(std::move(memory));
  }
  return buffers;
}

namespace {
/// A kernel in memory, ready to be called.
struct Compiled {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  KernelFunction function = nullptr;
  double generateSeconds = 0, emitSeconds = 0;
};
} // namespace

// What the runtime brings for processors without conversions of f16; here the compiler's library does.
extern "C" float __extendhfsf2(_Float16);
extern "C" _Float16 __truncsfhf2(float);

static void defineHalfConversions(llvm::orc::LLJIT &jit) {
  llvm::orc::SymbolMap symbols;
  auto define = [&](const char *name, void *address) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
  define("__extendhfsf2", reinterpret_cast<void *>(&__extendhfsf2));
  define("__truncsfhf2", reinterpret_cast<void *>(&__truncsfhf2));
  check(jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))));
}

static Compiled compile(loop::KernelOp kernel, const cpu::CpuLevel &level) {
  Compiled result;
  llvm::LLVMContext context;
  double start = seconds();
  auto module = check(cpu::generateKernel(kernel, "test_kernel", level, context));
  double middle = seconds();
  auto object = check(object::emitOptimized(*module, cpu::getTargetLevel(level)));
  result.generateSeconds = middle - start;
  result.emitSeconds = seconds() - middle;
  result.jit = check(llvm::orc::LLJITBuilder().create());
  defineHalfConversions(*result.jit);
  check(result.jit->addObjectFile(
      llvm::MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), "kernel")));
  result.function = check(result.jit->lookup("test_kernel")).toPtr<KernelFunction>();
  return result;
}

namespace {
/// Where a buffer lies: at a cache line or off it, with bytes around that must stay, or at a page that cannot be read.
enum class Place { Aligned, Shifted, AtEnd, AtStart };

/// Bytes with guards or an unreadable page on each side.
class Guarded {
public:
  Guarded(ArrayRef<char> bytes, Place place) : bytes(bytes.size()) {
    static const auto page = size_t(sysconf(_SC_PAGESIZE));
    size_t whole = llvm::alignTo(bytes.size() + 2 * guard + 128, page);
    mapped = whole + 2 * page;
    void *memory = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      llvm::report_fatal_error("no memory for a kernel's buffers");
    map = static_cast<char *>(memory);
    first = map + page;
    last = first + whole;
    mprotect(first, whole, PROT_READ | PROT_WRITE);
    memset(first, 0x5a, whole);
    start = place == Place::AtEnd     ? last - bytes.size()
            : place == Place::AtStart ? first
                                      : first + guard + (place == Place::Shifted ? 8 : 0);
    llvm::copy(bytes, start);
  }
  Guarded(const Guarded &) = delete;
  Guarded(Guarded &&other)
      : start(other.start), map(std::exchange(other.map, nullptr)), first(other.first), last(other.last),
        bytes(other.bytes), mapped(other.mapped) {}
  ~Guarded() {
    if (map)
      munmap(map, mapped);
  }

  char *start;
  bool holds() const {
    auto isGuard = [](char c) { return c == 0x5a; };
    return std::all_of(first, start, isGuard) && std::all_of(start + bytes, last, isGuard);
  }

private:
  static constexpr size_t guard = 128;
  char *map, *first, *last;
  size_t bytes, mapped;
};

/// One call's arguments: buffers guarded on both sides.
struct Call {
  std::vector<Guarded> storage;
  std::vector<void *> pointers;
  std::vector<size_t> sizes;
  std::vector<int64_t> symbols;
  std::vector<char> scratchStorage;
  char *scratch = nullptr;
  int64_t iterations = 0;

  Call(loop::KernelOp kernel, const std::vector<Memory> &buffers, const SymbolValues &values, Place place) {
    for (const Memory &memory : buffers) {
      pointers.push_back(storage.emplace_back(memory.bytes, place).start);
      sizes.push_back(memory.bytes.size());
    }
    for (auto name : kernel.getSymbols().getAsValueRange<StringAttr>())
      symbols.push_back(values.lookup(name));
    int64_t bytes = *kernel.getScratch()->evaluate(values);
    scratchStorage.resize(size_t(bytes) + 64);
    scratch = reinterpret_cast<char *>(llvm::alignTo(reinterpret_cast<uintptr_t>(scratchStorage.data()), 64));
    iterations = *kernel.getIterations()->evaluate(values);
  }
  const char *bytes(size_t buffer) const { return static_cast<const char *>(pointers[buffer]); }
  bool guardsHold() const {
    return llvm::all_of(storage, [](const Guarded &buffer) { return buffer.holds(); });
  }
};
} // namespace

static double difference(Scalar a, Scalar b, Type type) {
  if (!isa<FloatType>(type))
    return a.i == b.i ? 0 : INFINITY;
  if (std::isnan(a.f) || std::isnan(b.f))
    return std::isnan(a.f) == std::isnan(b.f) ? 0 : INFINITY;
  if (a.f == b.f)
    return 0;
  double error = std::fabs(a.f - b.f) / std::max(1.0, std::fabs(a.f));
  return std::isnan(error) ? INFINITY : error;
}

// The largest error of all elements, and where.
static bool compare(const std::vector<Memory> &expected, const Call &call, double tolerance, const Twine &what) {
  double worst = 0;
  for (auto [index, memory] : llvm::enumerate(expected)) {
    Memory actual{memory.type, {}};
    actual.bytes.assign(call.bytes(index), call.bytes(index) + call.sizes[index]);
    for (int64_t i = 0; i < memory.size(); ++i) {
      Scalar a = memory.get(i), b = actual.get(i);
      double error = difference(a, b, memory.type);
      if (error > tolerance) {
        llvm::outs() << "FAIL " << what << ": argument " << index << " element " << i << " is " << b.f << "/" << b.i
                     << ", expected " << a.f << "/" << a.i << "\n";
        return false;
      }
      worst = std::max(worst, error);
    }
  }
  if (!call.guardsHold()) {
    llvm::outs() << "FAIL " << what << ": wrote outside of a buffer\n";
    return false;
  }
  return true;
}

static bool runChecked(loop::KernelOp kernel, const Compiled &code, const std::vector<Memory> &start,
                       const std::vector<Memory> &expected, const SymbolValues &values, bool fails, const Twine &what) {
  auto tolerance = kernel->getAttrOfType<FloatAttr>("test.tolerance");
  double limit = tolerance ? tolerance.getValueAsDouble() : 2e-6;
  std::mt19937_64 random(7);
  for (auto [pieces, place] : {std::pair(1, Place::Shifted), {2, Place::AtEnd}, {5, Place::AtStart}}) {
    Call call(kernel, start, values, place);
    std::vector<int64_t> cuts{0, call.iterations};
    for (int i = 1; i < pieces; ++i)
      cuts.push_back(int64_t(random() % uint64_t(call.iterations + 1)));
    llvm::sort(cuts);
    int32_t status = 0;
    for (size_t i = 0; i + 1 < cuts.size(); ++i)
      if (cuts[i] < cuts[i + 1] || pieces == 1)
        status |= code.function(call.pointers.data(), call.symbols.data(), cuts[i], cuts[i + 1], call.scratch);
    if (status != int(fails)) {
      llvm::outs() << "FAIL " << what << ": status " << status << "\n";
      return false;
    }
    if (!fails && !compare(expected, call, limit, what + " in " + Twine(pieces) + " pieces"))
      return false;
  }
  return true;
}

static SmallVector<SymbolValues> symbolSets(loop::KernelOp kernel) {
  SmallVector<SymbolValues> sets;
  if (auto list = kernel->getAttrOfType<ArrayAttr>("test.symbols"))
    for (auto each : list.getAsRange<DictionaryAttr>())
      sets.push_back(toSymbols(each));
  if (sets.empty())
    sets.emplace_back();
  return sets;
}

static bool checkKernel(loop::KernelOp kernel, const Settings &settings) {
  bool good = true;
  bool fails = kernel->hasAttr("test.fails");
  for (const cpu::CpuLevel &level : cpu::getCpuLevels()) {
    if (!cpu::isOfHost(level) || (!settings.level.empty() && settings.level != level.name))
      continue;
    Compiled code = compile(kernel, level);
    for (auto [index, values] : llvm::enumerate(symbolSets(kernel))) {
      std::vector<Memory> start = randomBuffers(kernel, values, unsigned(index + 1));
      std::vector<Memory> expected = start;
      if (interpret(kernel, expected, values) == fails) {
        llvm::outs() << "FAIL " << kernel.getSymName() << ": the interpreter disagrees with test.fails\n";
        return false;
      }
      good &= runChecked(kernel, code, start, expected, values, fails,
                         kernel.getSymName() + " " + level.name + " set " + Twine(index));
    }
  }
  if (good)
    llvm::outs() << "ok " << kernel.getSymName() << "\n";
  return good;
}

static void timeKernel(loop::KernelOp kernel, const Settings &settings) {
  for (const cpu::CpuLevel &level : cpu::getCpuLevels()) {
    if (!cpu::isOfHost(level) || (!settings.level.empty() && settings.level != level.name))
      continue;
    Compiled code = compile(kernel, level);
    SymbolValues values = symbolSets(kernel).back();
    std::vector<Memory> start = randomBuffers(kernel, values, 1);
    Call call(kernel, start, values, Place::Aligned);
    double best = 1e9, until = seconds() + 0.5;
    while (seconds() < until) {
      double begin = seconds();
      code.function(call.pointers.data(), call.symbols.data(), 0, call.iterations, call.scratch);
      best = std::min(best, seconds() - begin);
    }
    llvm::outs() << llvm::formatv("{0} {1}: {2:f2} us; generate {3:f1} ms, emit {4:f1} ms\n", kernel.getSymName(),
                                  level.name, best * 1e6, code.generateSeconds * 1e3, code.emitSeconds * 1e3);
  }
}

static void printKernel(loop::KernelOp kernel, const Settings &settings) {
  const cpu::CpuLevel *level = cpu::findCpuLevel(settings.level);
  if (!level)
    return kernel.print(llvm::outs()), void(llvm::outs() << "\n");
  llvm::LLVMContext context;
  auto module = check(cpu::generateKernel(kernel, kernel.getSymName(), *level, context));
  if (settings.emit == "llvm")
    return module->print(llvm::outs(), nullptr);
  auto text = check(object::emitOptimized(*module, cpu::getTargetLevel(*level), object::EmissionKind::Assembly));
  llvm::outs() << StringRef(text.data(), text.size());
}

int main(int argc, char **argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument.consume_front("--level="))
      settings.level = argument;
    else if (argument.consume_front("--emit="))
      settings.emit = argument;
    else if (argument == "--check")
      settings.check = true;
    else if (argument == "--time")
      settings.time = true;
    else
      settings.file = argument;
  }
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  MLIRContext context;
  cpu::loadKernelDialects(context);
  context.allowUnregisteredDialects();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(settings.file, &context);
  if (!module || failed(verify(*module)))
    return 1;
  bool good = true;
  for (auto kernel : module->getOps<loop::KernelOp>()) {
    if (failed(cpu::planKernel(kernel)))
      return 1;
    if (settings.check)
      good &= checkKernel(kernel, settings);
    else if (settings.time)
      timeKernel(kernel, settings);
    else
      printKernel(kernel, settings);
  }
  return good ? 0 : 1;
}
