// A loop.program as host code: straight-line calls of ptc_rt_launch, branches for loop.if.
//
// A buffer is an address: an argument of the call, the arena plus an offset, the weights plus an offset, or a constant
// of the module. Addresses are computed where they are used, from expressions over the symbols that the call got; what
// is equal is shared afterwards. Since nothing but the call's arguments is needed anywhere, a long program is cut into
// functions of a few hundred launches: compile time stays linear and stack frames small.
//
// The kernel's own expressions (iterations, grain, scratch) are over the kernel's symbols; a launch says what those
// are.
#include "codegen/host/ExprCode.h"
#include "codegen/host/HostBuilder.h"

#include "ir/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"

using namespace llvm;

namespace ptc::host {
namespace {

/// The kernel's expression in terms of the program's symbols.
Expr atLaunch(Expr expr, loop::KernelOp kernel, loop::LaunchOp launch) {
  SmallVector<Expr> values = prim::getExprs(launch.getSymbols());
  return expr.substitute([&](StringRef name) -> Expr {
    for (auto [attr, value] : llvm::zip_equal(kernel.getSymbols(), values))
      if (mlir::cast<mlir::StringAttr>(attr).getValue() == name)
        return value;
    return {};
  });
}

loop::KernelOp kernelOf(loop::LaunchOp launch) {
  return mlir::SymbolTable::lookupNearestSymbolFrom<loop::KernelOp>(launch, launch.getKernelAttr());
}

/// Names of the user's nodes behind a launch, at most so many characters.
std::string nodesOf(mlir::Location location) {
  constexpr size_t most = 200;
  SmallSetVector<StringRef, 8> names;
  location->walk([&](mlir::Location part) {
    if (std::optional<NodeLocation> node = describeLocation(part))
      names.insert(node->node.empty() ? node->output : node->node);
    else if (auto name = mlir::dyn_cast<mlir::NameLoc>(part))
      names.insert(name.getName().getValue());
    return mlir::WalkResult::advance();
  });
  std::string text;
  for (StringRef name : names) {
    if (text.size() + name.size() > most)
      return text + ", ...";
    text += (text.empty() ? "" : ", ") + name.str();
  }
  return text;
}

/// A function `result NAME(const int64_t *symbols, ...)` whose first argument's elements are bound as symbols.
class SymbolFunction {
public:
  SymbolFunction(Constants &constants, const Function &interface, const Twine &name, Type *result,
                 ArrayRef<Type *> parameters, unsigned symbolsParameter)
      : builder(constants.context), exprs(builder, symbols) {
    function = llvm::Function::Create(FunctionType::get(result, parameters, false), GlobalValue::InternalLinkage, name,
                                      constants.module);
    function->addFnAttr(Attribute::NoUnwind);
    builder.SetInsertPoint(BasicBlock::Create(constants.context, "", function));
    for (auto [index, symbol] : llvm::enumerate(interface.symbols)) {
      Value *address =
          builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), function->getArg(symbolsParameter), index);
      symbols[symbol.name] = builder.CreateLoad(builder.getInt64Ty(), address, symbol.name);
    }
  }

  using Value = llvm::Value;
  llvm::Function *function;
  IRBuilder<> builder;
  SymbolCode symbols;
  ExprCode exprs;
};

/// The most bytes of all expressions, or -1 if one leaves 63 bits.
llvm::Function *emitBytes(Constants &constants, const Function &interface, ArrayRef<Expr> sizes, const Twine &name) {
  Type *i64 = Type::getInt64Ty(constants.context);
  SymbolFunction code(constants, interface, name, i64, {constants.pointer}, 0);
  code.exprs.checkOverflow = true;
  llvm::Value *most = code.builder.getInt64(0);
  for (Expr size : sizes) {
    llvm::Value *bytes = code.exprs.emit(size);
    most = code.builder.CreateSelect(code.builder.CreateICmpSGT(bytes, most), bytes, most);
  }
  code.builder.CreateRet(code.builder.CreateSelect(code.exprs.overflowed(), code.builder.getInt64(-1), most));
  return code.function;
}

llvm::Function *emitGuard(Constants &constants, const Function &interface, ArrayRef<Expr> guards, const Twine &name) {
  if (guards.empty())
    return nullptr;
  SymbolFunction code(constants, interface, name, Type::getInt32Ty(constants.context), {constants.pointer}, 0);
  llvm::Value *failed = code.builder.getInt32(-1);
  // From the last to the first, so that the first that fails is the answer.
  for (size_t index = guards.size(); index-- > 0;) {
    llvm::Value *fails = code.builder.CreateICmpEQ(code.exprs.emit(guards[index]), code.builder.getInt64(0));
    failed = code.builder.CreateSelect(fails, code.builder.getInt32(index), failed);
  }
  code.builder.CreateRet(failed);
  return code.function;
}

struct ProgramEmitter;

/// One function of the program: launches and branches in a row.
class PartEmitter {
public:
  PartEmitter(ProgramEmitter &whole, const Twine &name);
  Error emit(ArrayRef<mlir::Operation *> ops);
  llvm::Function *function() { return code.function; }

private:
  using Value = llvm::Value;

  void reserveArrays(ArrayRef<mlir::Operation *> ops);
  Error emitBlock(mlir::Block &block);
  Error emitOps(ArrayRef<mlir::Operation *> ops);
  Error emitLaunch(loop::LaunchOp launch);
  Error emitIf(loop::IfOp branch);
  Error callPart(ArrayRef<mlir::Operation *> ops);
  Error checkBound(Expr expr, StringRef kernel);
  void leaveOnFault(Value *result);
  Expected<Value *> address(mlir::Value buffer);
  Value *offset(Value *base, Value *bytes) { return builder.CreateGEP(builder.getInt8Ty(), base, bytes); }

  ProgramEmitter &whole;
  Constants &constants;
  SymbolFunction code;
  IRBuilder<> &builder;
  BasicBlock *failed = nullptr;
  PHINode *fault = nullptr;
  Value *bufferArray = nullptr, *symbolArray = nullptr;
};

/// What all parts of a program share.
struct ProgramEmitter {
  Constants &constants;
  const HostInputs &inputs;
  const Function &interface;
  const StringMap<unsigned> &kernels;
  std::string name;
  std::vector<LaunchSite> sites;
  SmallVector<Expr> scratch; // of each launch
  unsigned parts = 0;

  Expected<llvm::Function *> emitPart(ArrayRef<mlir::Operation *> ops) {
    PartEmitter part(*this, parts == 0 ? Twine(name) : name + "_" + Twine(parts));
    ++parts;
    if (Error error = part.emit(ops))
      return error;
    return part.function();
  }
};

PartEmitter::PartEmitter(ProgramEmitter &whole, const Twine &name)
    : whole(whole), constants(whole.constants),
      code(constants, whole.interface, name, Type::getInt32Ty(constants.context),
           {constants.pointer, constants.pointer, constants.pointer, constants.pointer}, 1),
      builder(code.builder) {}

Error PartEmitter::emit(ArrayRef<mlir::Operation *> ops) {
  reserveArrays(ops);
  failed = BasicBlock::Create(constants.context, "failed", code.function);
  builder.SetInsertPoint(failed);
  fault = builder.CreatePHI(builder.getInt32Ty(), 0);
  builder.CreateRet(fault);
  builder.SetInsertPoint(&code.function->getEntryBlock());
  if (Error error = emitOps(ops))
    return error;
  builder.CreateRet(builder.getInt32(0));
  if (fault->getNumIncomingValues() == 0)
    failed->eraseFromParent();
  return Error::success();
}

void PartEmitter::reserveArrays(ArrayRef<mlir::Operation *> ops) {
  size_t buffers = 1, symbols = 1;
  for (mlir::Operation *op : ops)
    op->walk([&](loop::LaunchOp launch) {
      buffers = std::max<size_t>(buffers, launch.getBuffers().size());
      symbols = std::max<size_t>(symbols, launch.getSymbols().size());
    });
  bufferArray = builder.CreateAlloca(constants.pointer, builder.getInt32(buffers), "buffers");
  symbolArray = builder.CreateAlloca(builder.getInt64Ty(), builder.getInt32(symbols), "launch_symbols");
}

/// Consecutive ops with at most so many launches, those inside of branches counted.
std::vector<SmallVector<mlir::Operation *>> partition(mlir::Block &block) {
  constexpr unsigned mostLaunches = 256;
  std::vector<SmallVector<mlir::Operation *>> groups(1);
  unsigned inGroup = 0;
  for (mlir::Operation &op : block) {
    unsigned launches = 0;
    op.walk([&](loop::LaunchOp) { ++launches; });
    if (inGroup > 0 && inGroup + launches > mostLaunches) {
      groups.emplace_back();
      inGroup = 0;
    }
    groups.back().push_back(&op);
    inGroup += launches;
  }
  return groups;
}

Error PartEmitter::emitBlock(mlir::Block &block) {
  std::vector<SmallVector<mlir::Operation *>> groups = partition(block);
  if (groups.size() == 1)
    return emitOps(groups[0]);
  for (ArrayRef<mlir::Operation *> group : groups)
    if (Error error = callPart(group))
      return error;
  return Error::success();
}

Error PartEmitter::callPart(ArrayRef<mlir::Operation *> ops) {
  Expected<llvm::Function *> part = whole.emitPart(ops);
  if (!part)
    return part.takeError();
  SmallVector<Value *> arguments;
  for (Argument &argument : code.function->args())
    arguments.push_back(&argument);
  leaveOnFault(builder.CreateCall(*part, arguments));
  return Error::success();
}

Error PartEmitter::emitOps(ArrayRef<mlir::Operation *> ops) {
  for (mlir::Operation *op : ops) {
    Error error = Error::success();
    if (auto launch = mlir::dyn_cast<loop::LaunchOp>(op))
      error = emitLaunch(launch);
    else if (auto branch = mlir::dyn_cast<loop::IfOp>(op))
      error = emitIf(branch);
    else if (auto program = mlir::dyn_cast<loop::ProgramOp>(op))
      error = emitBlock(program.getBlock());
    else if (!mlir::isa<loop::AtOp, loop::FlattenOp, loop::WeightOp, loop::ConstantOp>(op))
      error = createStringError(inconvertibleErrorCode(), "the host cannot run '" + op->getName().getStringRef() + "'");
    if (error)
      return error;
  }
  return Error::success();
}

Error PartEmitter::emitLaunch(loop::LaunchOp launch) {
  loop::KernelOp kernel = kernelOf(launch);
  if (!kernel || !kernel.getIterations())
    return createStringError(inconvertibleErrorCode(), "kernel '" + launch.getKernel() + "' has no iterations");
  for (auto [index, buffer] : llvm::enumerate(launch.getBuffers())) {
    Expected<Value *> pointer = address(buffer);
    if (!pointer)
      return pointer.takeError();
    builder.CreateStore(*pointer, builder.CreateConstInBoundsGEP1_64(constants.pointer, bufferArray, index));
  }
  for (Expr value : prim::getExprs(launch.getSymbols()))
    if (Error error = checkBound(value, launch.getKernel()))
      return error;
  for (auto [index, value] : llvm::enumerate(prim::getExprs(launch.getSymbols())))
    builder.CreateStore(code.exprs.emit(value),
                        builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), symbolArray, index));
  auto evaluate = [&](std::optional<ExprAttr> attr, int64_t otherwise) -> Value * {
    return attr ? code.exprs.emit(atLaunch(*attr, kernel, launch)) : builder.getInt64(otherwise);
  };
  if (std::optional<ExprAttr> bytes = kernel.getScratch())
    whole.scratch.push_back(atLaunch(*bytes, kernel, launch));
  Type *i64 = builder.getInt64Ty(), *i32 = builder.getInt32Ty(), *pointer = constants.pointer;
  FunctionCallee callee =
      runtimeFunction(constants.module, "ptc_rt_launch", i32, {pointer, i32, pointer, pointer, i64, i64, i64});
  Value *result = builder.CreateCall(callee, {code.function->getArg(0), builder.getInt32(whole.sites.size()),
                                              bufferArray, symbolArray, evaluate(kernel.getIterations(), 1),
                                              evaluate(kernel.getGrain(), 1), evaluate(kernel.getScratch(), 0)});
  whole.sites.push_back({whole.kernels.lookup(launch.getKernel()), nodesOf(launch.getLoc())});
  leaveOnFault(result);
  return Error::success();
}

Error PartEmitter::checkBound(Expr expr, StringRef kernel) {
  std::string missing;
  expr.walkSymbols([&](StringRef name) {
    if (!code.symbols.contains(name))
      missing = name.str();
  });
  if (missing.empty())
    return Error::success();
  return createStringError(inconvertibleErrorCode(),
                           "a launch of '" + kernel + "' uses '" + missing + "', which is no symbol of the program");
}

void PartEmitter::leaveOnFault(Value *result) {
  BasicBlock *next = BasicBlock::Create(constants.context, "", code.function, failed);
  fault->addIncoming(result, builder.GetInsertBlock());
  builder.CreateCondBr(builder.CreateIsNull(result), next, failed);
  builder.SetInsertPoint(next);
}

Error PartEmitter::emitIf(loop::IfOp branch) {
  Expected<Value *> pointer = address(branch.getCondition());
  if (!pointer)
    return pointer.takeError();
  Value *condition = builder.CreateIsNotNull(builder.CreateLoad(builder.getInt8Ty(), *pointer));
  BasicBlock *onTrue = BasicBlock::Create(constants.context, "then", code.function, failed);
  BasicBlock *onFalse = BasicBlock::Create(constants.context, "else", code.function, failed);
  BasicBlock *join = BasicBlock::Create(constants.context, "", code.function, failed);
  builder.CreateCondBr(condition, onTrue, onFalse);
  for (auto [block, region] :
       {std::pair{onTrue, &branch.getThenRegion()}, std::pair{onFalse, &branch.getElseRegion()}}) {
    builder.SetInsertPoint(block);
    if (Error error = emitBlock(region->front()))
      return error;
    builder.CreateBr(join);
  }
  builder.SetInsertPoint(join);
  return Error::success();
}

Expected<llvm::Value *> constantAddress(Constants &constants, loop::ConstantOp constant);

/// At the insertion point: an address computed in one branch must not be used in another.
Expected<llvm::Value *> PartEmitter::address(mlir::Value buffer) {
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(buffer)) {
    Value *slot =
        builder.CreateConstInBoundsGEP1_64(constants.pointer, code.function->getArg(2), argument.getArgNumber());
    return builder.CreateLoad(constants.pointer, slot);
  }
  mlir::Operation *op = buffer.getDefiningOp();
  if (auto flatten = mlir::dyn_cast<loop::FlattenOp>(op))
    return address(flatten.getBuffer());
  if (auto at = mlir::dyn_cast<loop::AtOp>(op))
    return offset(code.function->getArg(3), code.exprs.emit(at.getOffset()));
  if (auto weight = mlir::dyn_cast<loop::WeightOp>(op)) {
    Value *base = builder.CreateLoad(constants.pointer, code.function->getArg(0)); // ptc_rt_call::weights
    return offset(base, builder.getInt64(whole.inputs.weightOffset(weight)));
  }
  if (auto constant = mlir::dyn_cast<loop::ConstantOp>(op))
    return constantAddress(constants, constant);
  return createStringError(inconvertibleErrorCode(), "'" + op->getName().getStringRef() + "' has no place in memory");
}

/// An element as the bytes it has in memory, little endian; a boolean is one byte.
void appendElement(std::string &bytes, const APInt &value) {
  unsigned width = divideCeil(value.getBitWidth(), 8);
  APInt whole = value.zext(8 * width);
  for (unsigned i = 0; i < width; ++i)
    bytes.push_back(char(whole.extractBitsAsZExtValue(8, 8 * i)));
}

Expected<llvm::Value *> constantAddress(Constants &constants, loop::ConstantOp constant) {
  auto elements = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
  if (!elements || !elements.getElementType().isIntOrFloat())
    return createStringError(inconvertibleErrorCode(), "a constant that is not dense");
  // A splat is written once and repeated.
  std::string bytes, element;
  bool isFloat = mlir::isa<mlir::FloatType>(elements.getElementType());
  int64_t distinct = elements.isSplat() ? 1 : elements.getNumElements();
  for (int64_t i = 0; i < distinct && elements.getNumElements() > 0; ++i)
    appendElement(element,
                  isFloat ? elements.getValues<APFloat>()[i].bitcastToAPInt() : elements.getValues<APInt>()[i]);
  for (int64_t i = 0; i < elements.getNumElements(); i += distinct)
    bytes += element;
  GlobalVariable *global =
      constants.global(ConstantDataArray::getString(constants.context, bytes, /*AddNull=*/false), "constant");
  global->setAlignment(Align(64));
  return global;
}

} // namespace

Expected<VariantCode> emitProgram(Constants &constants, const HostInputs &inputs, const Function &function,
                                  loop::ProgramOp program, const StringMap<unsigned> &kernels, const Twine &name) {
  ProgramEmitter emitter{constants, inputs, function, kernels, (name + "_program").str()};
  Expected<llvm::Function *> whole = emitter.emitPart({program.getOperation()});
  if (!whole)
    return whole.takeError();
  VariantCode result;
  result.name = program.getSymName().str();
  result.program = *whole;
  SmallVector<Expr> arena;
  if (std::optional<ExprAttr> bytes = program.getArena())
    arena.push_back(*bytes);
  result.arenaBytes = emitBytes(constants, function, arena, name + "_arena_bytes");
  result.scratchBytes =
      emitter.scratch.empty() ? nullptr : emitBytes(constants, function, emitter.scratch, name + "_scratch_bytes");
  result.guard = emitGuard(constants, function, prim::getExprs(program.getGuards()), name + "_guard");
  result.guards = guardsOf(program, function.symbols);
  result.launches = std::move(emitter.sites);
  return result;
}

llvm::Function *emitShapes(Constants &constants, const Function &interface, ArrayRef<mlir::BlockArgument> values,
                           const Twine &name) {
  PointerType *pointer = constants.pointer;
  SymbolFunction code(constants, interface, name, Type::getVoidTy(constants.context), {pointer, pointer}, 0);
  IRBuilder<> &builder = code.builder;
  for (auto [index, value] : llvm::enumerate(values)) {
    llvm::Value *slot = builder.CreateConstInBoundsGEP1_64(pointer, code.function->getArg(1), index);
    llvm::Value *shape = builder.CreateLoad(pointer, slot);
    for (auto [dim, extent] : llvm::enumerate(mlir::cast<loop::BufferType>(value.getType()).getShape()))
      builder.CreateStore(code.exprs.emit(extent),
                          builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), shape, dim));
  }
  builder.CreateRetVoid();
  return code.function;
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

Expected<std::unique_ptr<Module>> emitHostModule(const HostInputs &inputs, const ModelInterface &interface,
                                                 LLVMContext &context) {
  auto module = std::make_unique<Module>(inputs.name, context);
  // Both supported processors lay out the tables alike: 64-bit little-endian with natural alignment.
  module->setDataLayout("e-m:e-i64:64-n8:16:32:64-S128");
  Constants constants(*module);
  SmallVector<loop::KernelOp> kernels = launchedKernels(inputs);
  StringMap<unsigned> kernelIndex;
  for (auto [index, kernel] : llvm::enumerate(kernels))
    kernelIndex[kernel.getSymName()] = index;

  std::vector<FunctionCode> codes;
  for (auto [host, function] : llvm::zip_equal(inputs.functions, interface.functions)) {
    FunctionCode code = {};
    for (auto [index, variant] : llvm::enumerate(host.variants)) {
      Expected<VariantCode> emitted =
          emitProgram(constants, inputs, function, variant, kernelIndex, Twine(function.cPrefix) + "_" + Twine(index));
      if (!emitted)
        return emitted.takeError();
      code.variants.push_back(std::move(*emitted));
    }
    loop::ProgramOp program = host.variants.back();
    auto isDerived = [](const Dim &dim) { return dim.extent < 0 && dim.symbol < 0; };
    if (llvm::any_of(function.inputs, [&](const Value &value) { return llvm::any_of(value.dims, isDerived); }))
      code.inputShapes =
          emitShapes(constants, function, program.getInputArgs(), Twine(function.cPrefix) + "_input_shapes");
    code.outputShapes = emitShapes(constants, function, program.getOutputArgs(), Twine(function.cPrefix) + "_shapes");
    codes.push_back(std::move(code));
  }
  emitDescriptor(constants, inputs, interface, codes, kernels);
  shareCommonCode(*module);
  return module;
}

} // namespace ptc::host
