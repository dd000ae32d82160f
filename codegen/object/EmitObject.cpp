#include "codegen/object/EmitObject.h"
#include "codegen/common/HideInvariants.h"
#include "codegen/common/LLVMFaults.h"
#include "runtime/include/ptc/descriptor.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/CodeGen/CodeGenTargetMachineImpl.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeAArch64TargetInfo();
void LLVMInitializeAArch64Target();
void LLVMInitializeAArch64TargetMC();
void LLVMInitializeAArch64AsmPrinter();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

using namespace llvm;

namespace ptc::object {

static void registerTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

/// Kernels deserve everything that LLVM has already at the default level.
static CodeGenOptLevel codegenLevel(unsigned optLevel) {
  return optLevel == 0 ? CodeGenOptLevel::None : optLevel == 1 ? CodeGenOptLevel::Less : CodeGenOptLevel::Aggressive;
}

Expected<std::unique_ptr<TargetMachine>> createTargetMachine(const TargetLevel &level, unsigned optLevel) {
  registerTargets();
  std::string message;
  Triple triple(level.triple);
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError(inconvertibleErrorCode(), "no code generator for " + level.triple + ": " + message);
  TargetOptions options;
  // Fusing is decided where code is made (by `fmuladd` and flags on operations), never here for all.
  options.AllowFPOpFusion = FPOpFusion::Standard;
  options.FunctionSections = options.DataSections = true;
  options.UniqueSectionNames = true;
  options.MCOptions.AsmVerbose = true;
  // Loops begin with the line of the cache of decoded instructions: the fewer lines they touch the better, the more so
  // while another thread of the core takes its share (2 to 7 % of whole models there, nothing lost alone).
  if (triple.isX86())
    options.LoopAlignment = 64;
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      triple, level.cpu, level.features, options, Reloc::PIC_, std::nullopt, codegenLevel(optLevel)));
  if (!machine)
    return createStringError(inconvertibleErrorCode(), "no code generator for " + level.triple);
  return machine;
}

MachinePool::Loan::~Loan() {
  if (!machine)
    return;
  std::lock_guard lock(pool->mutex);
  pool->idle[key].push_back(std::move(machine));
}

Expected<MachinePool::Loan> MachinePool::take(const TargetLevel &level, unsigned optLevel) {
  std::string key = (Twine(level.triple) + "|" + level.cpu + "|" + level.features + "|" + Twine(optLevel)).str();
  {
    std::lock_guard lock(mutex);
    if (auto &machines = idle[key]; !machines.empty()) {
      Loan loan(*this, key, std::move(machines.back()));
      machines.pop_back();
      return loan;
    }
  }
  Expected<std::unique_ptr<TargetMachine>> machine = createTargetMachine(level, optLevel);
  if (!machine)
    return machine.takeError();
  return Loan(*this, key, std::move(*machine));
}

void prepareModule(Module &module, const TargetLevel &level, const TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  module.setPICLevel(PICLevel::BigPIC);
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", level.cpu);
    function.addFnAttr("tune-cpu", level.tuneCpu);
    if (!level.features.empty())
      function.addFnAttr("target-features", level.features);
    if (level.vectorBits)
      function.addFnAttr("prefer-vector-width", std::to_string(level.vectorBits));
    function.setDoesNotThrow();
  }
}

void optimizeModule(Module &module, const TargetLevel &level, TargetMachine &machine, unsigned optLevel) {
  if (optLevel == 0)
    return;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = level.vectorBits != 0;
  PassBuilder builder(&machine, tuning);
  // No C library is assumed but the memory functions that the linker's stand-in has.
  TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  for (LibFunc function : {LibFunc_memcpy, LibFunc_memmove, LibFunc_memset, LibFunc_memcmp, LibFunc_bcmp})
    library.setAvailable(function);
  functions.registerPass([&] { return TargetLibraryAnalysis(library); });
  // LLVM offers no place right before each SROA; kernels have been through Optimize.cpp's before.
  builder.registerPipelineStartEPCallback([](ModulePassManager &passes, OptimizationLevel) {
    passes.addPass(createModuleToFunctionPassAdaptor(codegen::OrderStoresPass()));
  });
  builder.registerPeepholeEPCallback(
      [](FunctionPassManager &passes, OptimizationLevel) { passes.addPass(codegen::OrderStoresPass()); });
  builder.registerOptimizerLastEPCallback([&machine](ModulePassManager &passes, OptimizationLevel, ThinOrFullLTOPhase) {
    FunctionPassManager last;
    last.addPass(codegen::StoreLonePass());
    codegen::addHiding(last, machine);
    passes.addPass(createModuleToFunctionPassAdaptor(std::move(last)));
  });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  OptimizationLevel level_ = optLevel == 1   ? OptimizationLevel::O1
                             : optLevel == 2 ? OptimizationLevel::O2
                                             : OptimizationLevel::O3;
  builder.buildPerModuleDefaultPipeline(level_).run(module, modules);
}

/// What TargetMachine::addPassesToEmitFile does, but for hoisting, and with a look at the machine code before it is
/// printed. True on failure.
static bool addEmission(TargetMachine &machine, legacy::PassManager &passes, raw_pwrite_stream &stream,
                        CodeGenFileType type, CodeFacts *facts, bool hoistsConstants) {
  auto &generator = static_cast<CodeGenTargetMachineImpl &>(machine); // the one class of machines that generate code
  TargetPassConfig *config = generator.createPassConfig(passes);
  config->setDisableVerify(true);
  if (!hoistsConstants)
    config->disablePass(&EarlyMachineLICMID);
  auto *functions = new MachineModuleInfoWrapperPass(&machine);
  passes.add(config);
  passes.add(functions);
  if (config->addISelPasses())
    return true;
  config->addMachinePasses();
  config->setInitialized();
  if (facts)
    passes.add(createCountRegistersPass(*facts));
  if (generator.addAsmPrinter(passes, stream, nullptr, type, functions->getMMI().getContext()))
    return true;
  passes.add(createFreeMachineFunctionPass());
  return false;
}

Expected<SmallVector<char, 0>> emitModule(Module &module, TargetMachine &machine, EmissionKind kind, CodeFacts *facts,
                                          bool hoistsConstants) {
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  CodeGenFileType type = kind == EmissionKind::Object ? CodeGenFileType::ObjectFile : CodeGenFileType::AssemblyFile;
  if (facts)
    countLoops(module, *facts);
  if (addEmission(machine, passes, stream, type, facts, hoistsConstants))
    return createStringError(inconvertibleErrorCode(), "cannot emit code for " + machine.getTargetTriple().str());
  passes.run(module);
  return bytes;
}

Expected<SmallVector<char, 0>> emitObject(Module &module, const TargetLevel &level, unsigned optLevel) {
  Expected<std::unique_ptr<TargetMachine>> machine = createTargetMachine(level, optLevel);
  if (!machine)
    return machine.takeError();
  prepareModule(module, level, **machine);
  optimizeModule(module, level, **machine, optLevel);
  return emitModule(module, **machine);
}

Expected<SmallVector<char, 0>> emitOptimized(Module &module, const TargetLevel &level, EmissionKind kind,
                                             unsigned optLevel, CodeFacts *facts) {
  Expected<std::unique_ptr<TargetMachine>> machine = createTargetMachine(level, optLevel);
  if (!machine)
    return machine.takeError();
  return emitModule(module, **machine, kind, facts, level.hoistsConstants);
}

std::string printModule(const Module &module) {
  std::string text;
  raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

Expected<uint64_t> runtimeFeatures(StringRef cpu, StringRef features) {
  constexpr uint64_t v2 = PTC_RT_X86_V2, v3 = v2 | PTC_RT_X86_V3, v4 = v3 | PTC_RT_X86_V4;
  std::optional<uint64_t> bits = StringSwitch<std::optional<uint64_t>>(cpu)
                                     .Cases({"x86-64", "generic"}, 0)
                                     .Case("x86-64-v2", v2)
                                     .Case("x86-64-v3", v3)
                                     .Case("x86-64-v4", v4)
                                     .Default(std::nullopt);
  if (!bits)
    return createStringError(inconvertibleErrorCode(), "the runtime cannot tell a '" + cpu + "'");
  SmallVector<StringRef> names;
  features.split(names, ',', -1, /*KeepEmpty=*/false);
  for (StringRef name : names) {
    // What is switched off, and tuning flags, need nothing of the processor.
    if (name.starts_with("-") || name.starts_with("+prefer-") || name.starts_with("+fast-") || name == "+neon")
      continue;
    std::optional<uint64_t> bit = StringSwitch<std::optional<uint64_t>>(name)
                                      .Case("+avxvnni", PTC_RT_X86_AVX_VNNI)
                                      .Case("+avx512vnni", PTC_RT_X86_AVX512_VNNI)
                                      .Case("+avx512bf16", PTC_RT_X86_AVX512_BF16)
                                      .Case("+avx512fp16", PTC_RT_X86_AVX512_FP16)
                                      .Case("+avx512vbmi", PTC_RT_X86_AVX512_VBMI)
                                      .Case("+sse4a", PTC_RT_X86_SSE4A)
                                      .Case("+amx-tile", PTC_RT_X86_AMX_TILE)
                                      .Case("+amx-int8", PTC_RT_X86_AMX_INT8)
                                      .Case("+amx-bf16", PTC_RT_X86_AMX_BF16)
                                      .Case("+dotprod", PTC_RT_ARM_DOTPROD)
                                      .Case("+fullfp16", PTC_RT_ARM_FP16)
                                      .Case("+i8mm", PTC_RT_ARM_I8MM)
                                      .Case("+bf16", PTC_RT_ARM_BF16)
                                      .Case("+sve", PTC_RT_ARM_SVE)
                                      .Default(std::nullopt);
    if (!bit)
      return createStringError(inconvertibleErrorCode(),
                               "the runtime cannot tell whether a processor has '" + name + "'");
    *bits |= *bit;
  }
  return *bits;
}

} // namespace ptc::object
