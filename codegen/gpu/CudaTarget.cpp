//===- CudaTarget.cpp - NVIDIA GPUs as a target ---------------------------===//
//
// A kernel is a PTX entry of its own module; the modules of a model are joined to one text, whose comments say how each
// entry is launched:
//
//   parameters  a pointer for each buffer, an i64 for each symbol, then, where the kernel has them: a pointer to a u32
//               that becomes 1 if a checked index was out of range; a pointer to the scratch of the whole launch; a
//               pointer to counters, which are zero before and behind the launch; maps of tensors (128 bytes each)
//   pointers    of device memory, aligned to 16 bytes
//   grid        (blocks, 1, 1), blocks (threads, rows, 1); "at most" so many blocks for each multiprocessor, which
//               share the work, where that is said
//   order       from compute capability 9.0 on an entry may begin while the launch in front of it runs
//               (programmatic dependent launch): it waits for that before it touches memory
//   shared      bytes of a block's shared memory that the launch gives, where there are some
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/CudaTarget.h"
#include "codegen/common/ElementaryFunctions.h"
#include "codegen/common/FloatContraction.h"
#include "codegen/common/LowerToLLVM.h"
#include "codegen/common/NarrowFloats.h"
#include "codegen/common/Optimize.h"
#include "codegen/gpu/Assembler.h"
#include "codegen/gpu/CudaLevels.h"
#include "codegen/gpu/GpuEmitter.h"
#include "codegen/gpu/GpuTuning.h"
#include "codegen/gpu/LibraryCall.h"
#include "codegen/gpu/WgmmaPlan.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/include/ptc/descriptor.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
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
  SmallVector<DictionaryAttr> listAlternatives(loop::KernelOp kernel, StringRef level) const override {
    return gpu::listAlternatives(kernel, level);
  }
  ArrayRef<llvm::StringLiteral> getTunedNames() const override { return gpu::tuned::names; }
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
                           .host = "cpu",
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

static constexpr unsigned tensorMapBytes = 128; // of the driver's CUtensorMap

static bool needsScratch(loop::KernelOp kernel) { return !Expr(kernel.getScratchAttr()).isConstant(0); }
static bool needsCounters(loop::KernelOp kernel) { return kernel.getConfigAttr().contains("counters"); }

// Of a block's shared memory, what the launch gives.
static unsigned sharedBytesOf(loop::KernelOp kernel) {
  auto bytes = kernel.getConfigAttr().getAs<IntegerAttr>("shared");
  return bytes ? unsigned(bytes.getInt()) : 0;
}

// How the kernel is launched on an architecture that multiplies with warpgroups, if it is planned for them.
static void setWarpgroups(loop::KernelOp kernel, codegen::DeviceLaunch &launch) {
  std::optional<WgmmaTile> tile = getWgmmaTile(kernel);
  if (!tile)
    return;
  auto op = *kernel.getBlock().getOps<loop::ContractionOp>().begin();
  launch.threads = unsigned(tile->threads());
  launch.sharedBytes = unsigned(tile->sharedBytes());
  launch.blocks = unsigned(std::min<int64_t>(countWgmmaTiles(op, *tile) * tile->splits, INT32_MAX));
  launch.together = unsigned(tile->together);
  launch.cluster = tile->isCluster() ? unsigned(tile->splits) : 1;
  std::optional<WgmmaOperands> operands = analyzeOperands(op, *tile);
  launch.maps = {operands->lhs.map, operands->rhs.map};
}

static codegen::DeviceLaunch getLaunch(loop::KernelOp kernel, StringRef level, const codegen::CodeOptions &options) {
  GpuConfig config = GpuConfig::fromAttribute(kernel.getConfigAttr());
  codegen::DeviceLaunch launch{.threads = unsigned(config.threads),
                               .rows = unsigned(config.rows),
                               .buffers = kernel.getBlock().getNumArguments(),
                               .symbols = unsigned(kernel.getSymbols().size()),
                               .checksIndices = checksIndices(kernel),
                               .hasScratch = needsScratch(kernel),
                               .hasCounters = needsCounters(kernel),
                               .sharedBytes = sharedBytesOf(kernel),
                               .entry = (options.entry.empty() ? kernel.getSymName() : StringRef(options.entry)).str()};
  if (hasWarpgroups(level))
    setWarpgroups(kernel, launch);
  setLibraryCall(launch, kernel, level, options.contracts);
  return launch;
}

static OwningOpRef<ModuleOp> buildModule(loop::KernelOp kernel, const codegen::DeviceLaunch &launch, bool startsEarly,
                                         bool contracts) {
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
  types.append(launch.maps.size(), LLVM::LLVMPointerType::get(context)); // by value: makeModule
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
  auto function = LLVM::LLVMFuncOp::create(builder, loc, launch.entry, type, LLVM::Linkage::External, false,
                                           LLVM::CConv::PTX_Kernel);
  for (auto [index, parameter] : llvm::enumerate(types))
    if (parameter == pointer)
      function.setArgAttr(unsigned(index), LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(16));
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  GpuEmitter(builder, *module, kernel, entry->getArguments(), startsEarly).emit();
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  if (!contracts)
    codegen::forbidContraction(function);
  codegen::expandElementaryFunctions(function, {.hasExtrema = true, .approximations = codegen::Approximations::Nvidia});
  codegen::expandNarrowFloatConversions(function);
  return module;
}

static void describeMap(raw_ostream &os, const codegen::TensorMap &map) {
  auto list = [&](StringRef name, ArrayRef<int64_t> values) {
    os << ", " << name << " [";
    llvm::interleaveComma(values, os);
    os << ']';
  };
  os << "map of parameter " << map.buffer << ", " << map.elementBytes << " bytes an element, offset " << map.offset;
  list("extents", map.extents);
  list("strides", map.strides);
  list("box", map.box);
  if (map.steps.empty())
    return;
  list("lower", map.lower);
  list("upper", map.upper);
  list("steps", map.steps);
}

// How the entry is launched, as comments.
static std::string describeLaunch(loop::KernelOp kernel, const codegen::DeviceLaunch &launch) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// kernel " << kernel.getSymName() << "\n//   grid ";
  if (launch.blocks)
    os << launch.blocks;
  else
    os << Expr(kernel.getIterationsAttr());
  os << ", block " << launch.threads << " x " << launch.rows << " threads\n";
  if (launch.cluster > 1)
    os << "//   clusters of " << launch.cluster << " blocks\n";
  else if (launch.blocks)
    os << "//   at most " << launch.together << " a multiprocessor\n";
  for (auto [index, argument] : llvm::enumerate(kernel.getBlock().getArguments())) {
    auto type = cast<loop::BufferType>(argument.getType());
    bool isWritten = llvm::is_contained(kernel.getArgumentsWritten(), int64_t(index));
    os << "//   parameter " << index << ": " << type.getElementType() << (isWritten ? ", written\n" : ", read\n");
  }
  size_t next = kernel.getBlock().getNumArguments();
  for (StringRef name : kernel.getSymbols().getAsValueRange<StringAttr>())
    os << "//   parameter " << next++ << ": i64 " << name << '\n';
  if (launch.checksIndices)
    os << "//   parameter " << next++ << ": errors, 4 bytes\n";
  if (launch.hasScratch)
    os << "//   parameter " << next++ << ": scratch, " << Expr(kernel.getScratchAttr()) << " bytes\n";
  if (launch.hasCounters)
    os << "//   parameter " << next++ << ": counters, " << 4 * PTC_RT_CUDA_COUNTERS << " bytes\n";
  for (const codegen::TensorMap &map : launch.maps) {
    os << "//   parameter " << next++ << ": ";
    describeMap(os, map);
    os << '\n';
  }
  describeLibraryCall(os, launch);
  if (launch.sharedBytes)
    os << "//   shared " << launch.sharedBytes << " bytes\n";
  return text;
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

// What MLIR has no words for: threads of a block, and blocks that a multiprocessor should hold; maps are passed by
// value, and the function does not change them; and what all threads of a warp do together stays so.
static void setAttributes(llvm::Function &function, const codegen::DeviceLaunch &launch, loop::KernelOp kernel,
                          StringRef levelName) {
  llvm::LLVMContext &context = function.getContext();
  std::string block = std::to_string(launch.threads) + "," + std::to_string(launch.rows) + ",1";
  function.addFnAttr("nvvm.reqntid", block);
  if (auto resident = kernel.getConfigAttr().getAs<IntegerAttr>("resident"); resident && launch.maps.empty()) {
    int64_t held = getResidentThreads(levelName) / int64_t(launch.threads * launch.rows);
    function.addFnAttr("nvvm.minctasm", std::to_string(std::min(resident.getInt(), held)));
  }
  if (launch.maps.empty())
    return;
  function.addFnAttr("nvvm.minctasm", std::to_string(launch.together));
  if (launch.cluster > 1)
    function.addFnAttr("nvvm.cluster_dim", std::to_string(launch.cluster) + ",1,1");
  auto *map = llvm::ArrayType::get(llvm::Type::getInt8Ty(context), tensorMapBytes);
  for (size_t i = function.arg_size() - launch.maps.size(); i < function.arg_size(); ++i) {
    llvm::AttrBuilder attributes(context);
    attributes.addByValAttr(map).addAlignmentAttr(llvm::Align(64)).addAttribute("nvvm.grid_constant");
    function.addParamAttrs(unsigned(i), attributes);
  }
  for (llvm::Instruction &instruction : llvm::instructions(function))
    if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction); call && call->isInlineAsm())
      call->setConvergent();
}

// As the architecture has it, but for warpgroups' products of signed with unsigned bytes, which are younger.
static object::TargetLevel getLevelOf(loop::KernelOp kernel, StringRef levelName) {
  object::TargetLevel level = getTargetLevel(levelName);
  std::optional<WgmmaTile> tile = hasWarpgroups(levelName) ? getWgmmaTile(kernel) : std::nullopt;
  if (tile && (tile->kind == MmaKind::S8U8 || tile->kind == MmaKind::U8S8))
    level.features = "+ptx84"; // CUDA 12.4
  return level;
}

static llvm::Expected<std::unique_ptr<llvm::Module>> makeModule(loop::KernelOp kernel, StringRef levelName,
                                                                const codegen::DeviceLaunch &launch,
                                                                llvm::LLVMContext &context,
                                                                const codegen::CodeOptions &options) {
  auto failed = [&](const char *what) { return llvm::createStringError(llvm::inconvertibleErrorCode(), what); };
  object::TargetLevel level = getLevelOf(kernel, levelName);
  OwningOpRef<ModuleOp> module = buildModule(kernel, launch, startsEarly(levelName), options.contracts);
  if (mlir::failed(codegen::lowerToLLVMDialect(*module)))
    return failed("lowering to LLVM failed");
  std::unique_ptr<llvm::Module> result = codegen::translateToLLVM(*module, context);
  if (!result)
    return failed("translation to LLVM failed");
  auto machine = object::createTargetMachine(level, options.optLevel);
  if (!machine)
    return machine.takeError();
  object::prepareModule(*result, level, **machine);
  setAttributes(*result->getFunction(launch.entry), launch, kernel, levelName);
  codegen::optimizeKernel(*result, **machine, options.optLevel);
  codegen::roundSharedProducts(*result->getFunction(launch.entry));
  return result;
}

llvm::Expected<codegen::KernelCode> CudaTarget::generateKernel(loop::KernelOp kernel, StringRef levelName,
                                                               const codegen::CodeOptions &options) const {
  object::TargetLevel level = getLevelOf(kernel, levelName);
  llvm::LLVMContext context; // of its own: contexts are not shared between threads
  codegen::KernelCode code{.kernel = kernel.getSymName().str(), .level = levelName.str()};
  codegen::DeviceLaunch launch = getLaunch(kernel, levelName, options);
  auto module = makeModule(kernel, levelName, launch, context, options);
  if (!module)
    return module.takeError();
  if (options.wantsText)
    code.llvmText = object::printModule(**module);
  auto text = object::emitOptimized(**module, level, object::EmissionKind::Assembly, options.optLevel, &code.facts);
  if (!text)
    return text.takeError();
  code.assembly = describeLaunch(kernel, launch) + std::string(text->begin(), text->end());
  code.launch = std::move(launch);
  if (options.wantsObject)
    if (llvm::Error error = makeImage({text->data(), text->size()}, levelName, options.assembler, code))
      return std::move(error);
  return code;
}

// "8.4" of ".version 8.4" and what follows, as two numbers.
static std::pair<unsigned, unsigned> versionOf(StringRef header) {
  header.consume_front(".version ");
  unsigned major = 0, minor = 0;
  if (!header.consumeInteger(10, major) && header.consume_front("."))
    header.consumeInteger(10, minor);
  return {major, minor};
}

// One header for all entries: that of the youngest version.
std::string CudaTarget::joinAssembly(ArrayRef<codegen::KernelCode> codes) const {
  std::string text;
  StringRef header;
  for (const codegen::KernelCode &code : codes) {
    auto [description, module] = StringRef(code.assembly).split("//\n");
    StringRef rest = module.substr(module.find(".version"));
    size_t end = rest.find('\n', rest.find(".address_size")) + 1;
    if (versionOf(rest) >= versionOf(header))
      header = rest.take_front(end);
    text += "\n" + description.str() + rest.drop_front(end).str();
  }
  return header.str() + text;
}

const codegen::Target &gpu::getCudaTarget() {
  static const CudaTarget target;
  return target;
}
