#include "tests/numerics/FunctionCompiler.h"
#include "codegen/common/NarrowFloats.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace ptc::test {

Signature floats(unsigned operands, bool isF64, int64_t lanes) {
  auto type = [isF64](Builder &b) -> Type { return isF64 ? Type(b.getF64Type()) : Type(b.getF32Type()); };
  return {operands, lanes, type, nullptr, nullptr};
}

/// func @f(n, y, x0, x1, x2): for i in steps of the lanes: y[i..] = build(x0[i..], ...).
static func::FuncOp buildLoop(ModuleOp module, const Signature &s, const BuildOp &build) {
  ImplicitLocOpBuilder b(module.getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto function = func::FuncOp::create(b, "f", b.getFunctionType({i64, pointer, pointer, pointer, pointer}, {}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  auto shaped = [&](Type t) -> Type { return s.lanes ? VectorType::get({s.lanes}, t) : t; };
  Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
  Value step = arith::ConstantOp::create(b, b.getI64IntegerAttr(std::max<int64_t>(s.lanes, 1)));
  auto loop = scf::ForOp::create(b, zero, entry->getArgument(0), step);
  b.setInsertionPointToStart(loop.getBody());
  auto address = [&](unsigned argument, Type t) -> Value {
    return LLVM::GEPOp::create(b, pointer, t, entry->getArgument(argument),
                               ArrayRef<LLVM::GEPArg>{loop.getInductionVar()});
  };
  auto alignment = [](Type t) { return t.getIntOrFloatBitWidth() / 8; };
  SmallVector<Value> x;
  for (unsigned i = 0; i < s.operands; ++i) {
    Type t = i == 1 && s.second ? s.second(b) : s.element(b);
    x.push_back(LLVM::LoadOp::create(b, shaped(t), address(2 + i, t), alignment(t)));
  }
  Value y = build(b, x);
  Type resultType = getElementTypeOrSelf(y.getType());
  if (resultType.isInteger(1)) {
    resultType = b.getI32Type();
    y = arith::ExtUIOp::create(b, shaped(resultType), y);
  }
  LLVM::StoreOp::create(b, y, address(1, resultType), alignment(resultType));
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b);
  return function;
}

static std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect, cf::ControlFlowDialect, func::FuncDialect,
                  vector::VectorDialect, LLVM::LLVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

static void lower(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(module)))
    llvm::report_fatal_error("the test's module does not lower");
}

namespace {
/// The loop in LLVM, and how many ops its body took after expansion.
struct Translated {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  unsigned opCount = 0;
};
} // namespace

static Translated translate(const Signature &signature, const codegen::ElementaryOptions &options,
                            const BuildOp &build) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context.get()));
  func::FuncOp function = buildLoop(*module, signature, build);
  codegen::expandElementaryFunctions(function, options);
  codegen::expandBf16Conversions(function);
  Translated result;
  function.walk([&](Operation *op) { result.opCount += !isa<arith::ConstantOp>(op); });
  lower(*module);
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = translateModuleToLLVMIR(*module, *result.context);
  return result;
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple());
  for (llvm::Function &f : module)
    if (!f.isDeclaration()) {
      f.addFnAttr("target-cpu", machine.getTargetCPU());
      f.addFnAttr("target-features", machine.getTargetFeatureString());
      f.addFnAttr("prefer-vector-width", "512");
    }
  llvm::cantFail(makeOptimizingTransformer(2, 0, &machine)(&module));
}

CompiledFunction::CompiledFunction(const Signature &signature, const Machine &machine, const BuildOp &build) {
  static const bool once = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)once;
  Translated translated = translate(signature, machine.options, build);
  opCount = translated.opCount;

  llvm::ExitOnError check("compiling a test function: ");
  auto target = check(llvm::orc::JITTargetMachineBuilder::detectHost());
  if (!machine.cpu.empty()) {
    target.setCPU(machine.cpu);
    target.getFeatures() = llvm::SubtargetFeatures();
  }
  target.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  auto targetMachine = check(target.createTargetMachine());
  optimize(*translated.module, *targetMachine);
  jit = check(llvm::orc::LLJITBuilder()
                  .setJITTargetMachineBuilder(target)
                  .setLinkProcessSymbolsByDefault(false)
                  .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                  .create());
  check(jit->addIRModule(llvm::orc::ThreadSafeModule(std::move(translated.module), std::move(translated.context))));
  call = check(jit->lookup("f")).toPtr<decltype(call)>();
}

std::string assembleForGpu(const Signature &signature, const BuildOp &build) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  Translated translated = translate(signature, {}, build);
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    llvm::report_fatal_error(llvm::StringRef(error));
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, "sm_80", "+ptx70", {}, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Default));
  optimize(*translated.module, *machine);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile);
  passes.run(*translated.module);
  return text.str().str();
}

} // namespace ptc::test
