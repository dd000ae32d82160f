#include "codegen/host/HostModule.h"
#include "codegen/host/HostBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"

using namespace llvm;

namespace ptc::host {

loop::KernelOp kernelOf(loop::LaunchOp launch) {
  return mlir::SymbolTable::lookupNearestSymbolFrom<loop::KernelOp>(launch, launch.getKernelAttr());
}

SmallVector<loop::KernelOp> launchedKernels(const HostInputs &inputs) {
  SmallSetVector<mlir::Operation *, 16> kernels;
  for (const HostFunction &function : inputs.functions)
    for (loop::ProgramOp program : function.variants)
      program->walk([&](loop::LaunchOp launch) {
        if (loop::KernelOp kernel = kernelOf(launch))
          kernels.insert(kernel);
      });
  return llvm::map_to_vector(kernels, [](mlir::Operation *op) { return mlir::cast<loop::KernelOp>(op); });
}

std::string kernelSymbol(StringRef kernel, StringRef level) { return (kernel + "." + level).str(); }

/// The one optimisation that host code wants: launches repeat addresses and sizes. Everything else would cost more than
/// it saves.
static void shareCommonCode(Module &module) {
  PassBuilder builder;
  FunctionAnalysisManager functions;
  functions.registerPass([] { return TargetLibraryAnalysis(); });
  builder.registerFunctionAnalyses(functions);
  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass());
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      passes.run(function, functions);
}

/// For walks of the stack, which come through these functions on their way up from a kernel.
static void keepFrames(Module &module) {
  for (llvm::Function &function : module) {
    function.addFnAttr("frame-pointer", "all");
    function.setUWTableKind(UWTableKind::Async);
  }
}

/// The functions of one target's programs.
static Error emitFunctions(TargetCode &code, const ModelInterface &interface) {
  for (auto [host, function] : llvm::zip_equal(code.inputs.functions, interface.functions)) {
    FunctionCode &emittedFunction = code.functions.emplace_back();
    for (auto [index, variant] : llvm::enumerate(host.variants)) {
      Expected<VariantCode> emitted = emitProgram(code.constants, code.inputs, function, variant, code.kernels,
                                                  Twine(function.cPrefix) + "_" + Twine(index));
      if (!emitted)
        return emitted.takeError();
      emittedFunction.variants.push_back(std::move(*emitted));
    }
    loop::ProgramOp program = host.variants.back();
    loop::BoundSymbols bound(program);
    auto isDerived = [](const Dim &dim) { return dim.extent < 0 && dim.symbol < 0; };
    if (llvm::any_of(function.inputs, [&](const Value &value) { return llvm::any_of(value.dims, isDerived); }))
      emittedFunction.inputShapes = emitShapes(code.constants, function, program.getInputArgs(), bound,
                                               Twine(function.cPrefix) + "_input_shapes");
    emittedFunction.outputShapes =
        emitShapes(code.constants, function, program.getOutputArgs(), bound, Twine(function.cPrefix) + "_shapes");
  }
  return Error::success();
}

Expected<std::unique_ptr<Module>> emitHostModule(ArrayRef<const HostInputs *> targets, const ModelInterface &interface,
                                                 LLVMContext &context) {
  auto module = std::make_unique<Module>(interface.name, context);
  // Both supported processors lay out the tables alike: 64-bit little-endian with natural alignment.
  module->setDataLayout("e-m:e-i64:64-n8:16:32:64-S128");
  std::deque<TargetCode> codes;
  for (const HostInputs *inputs : targets)
    if (Error error = emitFunctions(codes.emplace_back(*module, *inputs), interface))
      return std::move(error);
  emitDescriptors(codes, interface);
  if (llvm::any_of(targets, [](const HostInputs *inputs) { return inputs->namesLaunches; }))
    keepFrames(*module);
  shareCommonCode(*module);
  return module;
}

} // namespace ptc::host
