//===- CudaTarget.cpp - NVIDIA GPUs as a target ---------------------------===//
//
// A kernel is a PTX entry of its own module; the modules of a model are joined to one text, whose comments say how each
// entry is launched:
//
//   parameters  a pointer for each buffer, an i64 for each symbol, then, where the kernel has them: a pointer to a u32
//               that becomes 1 if a checked index was out of range; a pointer to the scratch of the whole launch; a
//               pointer to counters, which are zero before and behind the launch
//   pointers    of device memory, aligned to 16 bytes
//   grid        (blocks, 1, 1), blocks (threads, rows, 1)
//   shared      bytes of a block's shared memory that the launch gives, where there are some
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/CudaTarget.h"
#include "codegen/common/ElementaryFunctions.h"
#include "codegen/common/LowerToLLVM.h"
#include "codegen/common/NarrowFloats.h"
#include "codegen/common/Optimize.h"
#include "codegen/gpu/Assembler.h"
#include "codegen/gpu/CudaLevels.h"
#include "codegen/gpu/GpuEmitter.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/include/ptc/descriptor.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

namespace {

class CudaTarget : public codegen::Target {
public:
  const TargetInfo &getInfo() const override { return info; }
  llvm::Expected<codegen::Level> describeLevel(StringRef name) const override {
    // The library is for this machine's kind of processor.
    bool isArm = llvm::Triple(llvm::sys::getProcessTriple()).isAArch64();
    return codegen::Level{name.str(), isArm ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu",
                          getFeatures(name)};
  }
  void loadDialects(MLIRContext &context) const override;
  std::optional<std::string> whyUnsupported(loop::KernelOp kernel) const override {
    return gpu::whyUnsupported(kernel);
  }
  LogicalResult planKernel(loop::KernelOp kernel) const override { return gpu::planKernel(kernel), success(); }
  llvm::Expected<codegen::KernelCode> generateKernel(loop::KernelOp kernel, StringRef level,
                                                     const codegen::CodeOptions &options) const override;
  std::string joinAssembly(ArrayRef<codegen::KernelCode> codes) const override;

private:
  static constexpr StringRef outputs[] = {"so", "a", "o", "h", "hpp", "json", "ptx", "llvm"};
  const TargetInfo info = {.name = "cuda",
                           .levels = getArchitectures(),
                           .levelFlag = "--gpu",
                           .oneLevelText = true,
                           .runsOnDevice = true,
                           .outputs = outputs,
                           .assemblySuffix = ".ptx"};
};

} // namespace

void CudaTarget::loadDialects(MLIRContext &context) const {
  codegen::registerTranslation(context);
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, math::MathDialect,
                      scf::SCFDialect, ub::UBDialect, vector::VectorDialect, loop::LoopDialect>();
}

//===----------------------------------------------------------------------===//
// One kernel
//===----------------------------------------------------------------------===//

static bool needsScratch(loop::KernelOp kernel) { return !Expr(kernel.getScratchAttr()).isConstant(0); }
static bool needsCounters(loop::KernelOp kernel) { return kernel.getConfigAttr().contains("counters"); }

// Of a block's shared memory, what the launch gives.
static unsigned sharedBytesOf(loop::KernelOp kernel) {
  auto bytes = kernel.getConfigAttr().getAs<IntegerAttr>("shared");
  return bytes ? unsigned(bytes.getInt()) : 0;
}

static OwningOpRef<ModuleOp> buildModule(loop::KernelOp kernel) {
  MLIRContext *context = kernel.getContext();
  Location loc = UnknownLoc::get(context);
  OpBuilder builder(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToStart(module->getBody());
  constexpr unsigned globalSpace = 1;
  Type pointer = LLVM::LLVMPointerType::get(context, globalSpace), i64 = builder.getI64Type();
  SmallVector<Type> types(kernel.getBlock().getNumArguments(), pointer);
  types.append(kernel.getSymbols().size(), i64);
  types.append(size_t(checksIndices(kernel)) + size_t(needsScratch(kernel)) + size_t(needsCounters(kernel)), pointer);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
  auto function = LLVM::LLVMFuncOp::create(builder, loc, kernel.getSymName(), type, LLVM::Linkage::External, false,
                                           LLVM::CConv::PTX_Kernel);
  for (auto [index, parameter] : llvm::enumerate(types))
    if (parameter == pointer)
      function.setArgAttr(unsigned(index), LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(16));
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  GpuEmitter(builder, *module, kernel, entry->getArguments()).emit();
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  codegen::expandElementaryFunctions(function, codegen::ElementaryOptions());
  codegen::expandNarrowFloatConversions(function);
  return module;
}

// How the entry is launched, as comments.
static std::string describeLaunch(loop::KernelOp kernel) {
  GpuConfig config = GpuConfig::fromAttribute(kernel.getConfigAttr());
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// kernel " << kernel.getSymName() << "\n//   grid " << Expr(kernel.getIterationsAttr()) << ", block "
     << config.threads << " x " << config.rows << " threads\n";
  for (auto [index, argument] : llvm::enumerate(kernel.getBlock().getArguments())) {
    auto type = cast<loop::BufferType>(argument.getType());
    bool isWritten = llvm::is_contained(kernel.getArgumentsWritten(), int64_t(index));
    os << "//   parameter " << index << ": " << type.getElementType() << (isWritten ? ", written\n" : ", read\n");
  }
  size_t next = kernel.getBlock().getNumArguments();
  for (StringRef name : kernel.getSymbols().getAsValueRange<StringAttr>())
    os << "//   parameter " << next++ << ": i64 " << name << '\n';
  if (checksIndices(kernel))
    os << "//   parameter " << next++ << ": errors, 4 bytes\n";
  if (needsScratch(kernel))
    os << "//   parameter " << next++ << ": scratch, " << Expr(kernel.getScratchAttr()) << " bytes\n";
  if (needsCounters(kernel))
    os << "//   parameter " << next++ << ": counters, " << 4 * PTC_RT_CUDA_COUNTERS << " bytes\n";
  if (unsigned bytes = sharedBytesOf(kernel))
    os << "//   shared " << bytes << " bytes\n";
  return text;
}

static codegen::DeviceLaunch getLaunch(loop::KernelOp kernel) {
  GpuConfig config = GpuConfig::fromAttribute(kernel.getConfigAttr());
  return {.threads = unsigned(config.threads),
          .rows = unsigned(config.rows),
          .buffers = kernel.getBlock().getNumArguments(),
          .symbols = unsigned(kernel.getSymbols().size()),
          .checksIndices = checksIndices(kernel),
          .hasScratch = needsScratch(kernel),
          .hasCounters = needsCounters(kernel),
          .sharedBytes = sharedBytesOf(kernel)};
}

// What the driver loads: machine code if there is an assembler, else the text with its end.
static llvm::Error makeImage(StringRef text, StringRef levelName, StringRef assembler, codegen::KernelCode &code) {
  if (isText(levelName) || assembler.empty()) {
    code.object.assign(text.begin(), text.end());
    code.object.push_back(0);
    return llvm::Error::success();
  }
  auto assembled = assemble(assembler, text, getArchitecture(levelName), code.facts);
  if (!assembled)
    return assembled.takeError();
  code.object = std::move(assembled->cubin);
  code.codeBytes = assembled->codeBytes;
  return llvm::Error::success();
}

static llvm::Expected<std::unique_ptr<llvm::Module>> makeModule(loop::KernelOp kernel, const object::TargetLevel &level,
                                                                llvm::LLVMContext &context,
                                                                const codegen::CodeOptions &options) {
  auto failed = [&](const char *what) { return llvm::createStringError(llvm::inconvertibleErrorCode(), what); };
  OwningOpRef<ModuleOp> module = buildModule(kernel);
  if (mlir::failed(codegen::lowerToLLVMDialect(*module)))
    return failed("lowering to LLVM failed");
  std::unique_ptr<llvm::Module> result = codegen::translateToLLVM(*module, context);
  if (!result)
    return failed("translation to LLVM failed");
  auto machine = object::createTargetMachine(level, options.optLevel);
  if (!machine)
    return machine.takeError();
  object::prepareModule(*result, level, **machine);
  GpuConfig config = GpuConfig::fromAttribute(kernel.getConfigAttr());
  std::string block = std::to_string(config.threads) + "," + std::to_string(config.rows) + ",1";
  result->getFunction(kernel.getSymName())->addFnAttr("nvvm.reqntid", block);
  codegen::optimizeKernel(*result, **machine, options.optLevel);
  return result;
}

llvm::Expected<codegen::KernelCode> CudaTarget::generateKernel(loop::KernelOp kernel, StringRef levelName,
                                                               const codegen::CodeOptions &options) const {
  object::TargetLevel level = getTargetLevel(levelName);
  llvm::LLVMContext context; // of its own: contexts are not shared between threads
  codegen::KernelCode code{.kernel = kernel.getSymName().str(), .level = levelName.str()};
  auto module = makeModule(kernel, level, context, options);
  if (!module)
    return module.takeError();
  if (options.wantsText)
    code.llvmText = object::printModule(**module);
  auto text = object::emitOptimized(**module, level, object::EmissionKind::Assembly, options.optLevel, &code.facts);
  if (!text)
    return text.takeError();
  code.assembly = describeLaunch(kernel) + std::string(text->begin(), text->end());
  code.launch = getLaunch(kernel);
  if (options.wantsObject)
    if (llvm::Error error = makeImage({text->data(), text->size()}, levelName, options.assembler, code))
      return std::move(error);
  return code;
}

// One header for all entries.
std::string CudaTarget::joinAssembly(ArrayRef<codegen::KernelCode> codes) const {
  std::string text;
  for (const codegen::KernelCode &code : codes) {
    auto [description, module] = StringRef(code.assembly).split("//\n");
    StringRef rest = module.substr(module.find(".version"));
    size_t end = rest.find('\n', rest.find(".address_size")) + 1;
    if (text.empty())
      text = rest.take_front(end).str();
    text += "\n" + description.str() + rest.drop_front(end).str();
  }
  return text;
}

const codegen::Target &gpu::getCudaTarget() {
  static const CudaTarget target;
  return target;
}
