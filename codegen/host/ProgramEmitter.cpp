// A loop.program as host code: straight-line calls of ptc_rt_launch, branches for loop.if.
//
// A buffer is an address: an argument of the call, the arena plus an offset, the weights plus an offset, or a constant
// of the module. Addresses are computed where they are used, from expressions over the symbols that the call got; LLVM
// shares what is equal. One array on the stack serves the buffers of all launches and one their symbols, so that stack
// use does not grow with the program.
//
// The kernel's own expressions (iterations, grain, scratch) are over the kernel's symbols; a launch says what those
// are.
#include "codegen/host/ExprCode.h"
#include "codegen/host/HostBuilder.h"

#include "ir/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"

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
    if (std::optional<NodeLocation> node = describeLocation(part); node && !node->node.empty())
      names.insert(node->node);
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

class ProgramEmitter {
public:
  ProgramEmitter(Constants &constants, const HostInputs &inputs, const Function &interface, loop::ProgramOp program,
                 const StringMap<unsigned> &kernels, const Twine &name)
      : constants(constants), inputs(inputs), program(program), kernels(kernels),
        code(constants, interface, name, Type::getInt32Ty(constants.context),
             {constants.pointer, constants.pointer, constants.pointer, constants.pointer}, 1),
        builder(code.builder) {}

  Error emit() {
    reserveArrays();
    failed = BasicBlock::Create(constants.context, "failed", code.function);
    builder.SetInsertPoint(failed);
    fault = builder.CreatePHI(builder.getInt32Ty(), 0);
    builder.CreateRet(fault);
    builder.SetInsertPoint(&code.function->getEntryBlock());
    if (Error error = emitBlock(program.getBlock()))
      return error;
    builder.CreateRet(builder.getInt32(0));
    if (fault->getNumIncomingValues() == 0)
      failed->eraseFromParent();
    return Error::success();
  }

  llvm::Function *function() { return code.function; }
  std::vector<LaunchSite> sites;
  SmallVector<Expr> scratch; // of each launch

private:
  using Value = llvm::Value;

  void reserveArrays() {
    size_t buffers = 1, symbols = 1;
    program.walk([&](loop::LaunchOp launch) {
      buffers = std::max<size_t>(buffers, launch.getBuffers().size());
      symbols = std::max<size_t>(symbols, launch.getSymbols().size());
    });
    bufferArray = builder.CreateAlloca(constants.pointer, builder.getInt32(buffers), "buffers");
    symbolArray = builder.CreateAlloca(builder.getInt64Ty(), builder.getInt32(symbols), "launch_symbols");
  }

  Error emitBlock(mlir::Block &block) {
    for (mlir::Operation &op : block) {
      if (auto launch = mlir::dyn_cast<loop::LaunchOp>(op)) {
        if (Error error = emitLaunch(launch))
          return error;
      } else if (auto branch = mlir::dyn_cast<loop::IfOp>(op)) {
        if (Error error = emitIf(branch))
          return error;
      } else if (!mlir::isa<loop::AtOp, loop::WeightOp, loop::ConstantOp>(op)) {
        return createStringError(inconvertibleErrorCode(), "the host cannot run '" + op.getName().getStringRef() + "'");
      }
    }
    return Error::success();
  }

  Error emitLaunch(loop::LaunchOp launch) {
    loop::KernelOp kernel = kernelOf(launch);
    if (!kernel || !kernel.getIterations())
      return createStringError(inconvertibleErrorCode(), "kernel '" + launch.getKernel() + "' has no iterations");
    for (auto [index, buffer] : llvm::enumerate(launch.getBuffers())) {
      Expected<Value *> pointer = address(buffer);
      if (!pointer)
        return pointer.takeError();
      builder.CreateStore(*pointer, builder.CreateConstInBoundsGEP1_64(constants.pointer, bufferArray, index));
    }
    for (auto [index, value] : llvm::enumerate(prim::getExprs(launch.getSymbols())))
      builder.CreateStore(code.exprs.emit(value),
                          builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), symbolArray, index));
    auto evaluate = [&](std::optional<ExprAttr> attr, int64_t otherwise) -> Value * {
      return attr ? code.exprs.emit(atLaunch(*attr, kernel, launch)) : builder.getInt64(otherwise);
    };
    if (std::optional<ExprAttr> bytes = kernel.getScratch())
      scratch.push_back(atLaunch(*bytes, kernel, launch));
    Type *i64 = builder.getInt64Ty(), *i32 = builder.getInt32Ty(), *pointer = constants.pointer;
    FunctionCallee callee =
        runtimeFunction(constants.module, "ptc_rt_launch", i32, {pointer, i32, pointer, pointer, i64, i64, i64});
    Value *result = builder.CreateCall(callee, {code.function->getArg(0), builder.getInt32(sites.size()), bufferArray,
                                                symbolArray, evaluate(kernel.getIterations(), 1),
                                                evaluate(kernel.getGrain(), 1), evaluate(kernel.getScratch(), 0)});
    sites.push_back({kernels.lookup(launch.getKernel()), nodesOf(launch.getLoc())});
    leaveOnFault(result);
    return Error::success();
  }

  void leaveOnFault(Value *result) {
    BasicBlock *next = BasicBlock::Create(constants.context, "", code.function, failed);
    fault->addIncoming(result, builder.GetInsertBlock());
    builder.CreateCondBr(builder.CreateIsNull(result), next, failed);
    builder.SetInsertPoint(next);
  }

  Error emitIf(loop::IfOp branch) {
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

  /// At the insertion point: an address computed in one branch must not be used in another.
  Expected<Value *> address(mlir::Value buffer) {
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(buffer)) {
      Value *slot =
          builder.CreateConstInBoundsGEP1_64(constants.pointer, code.function->getArg(2), argument.getArgNumber());
      return builder.CreateLoad(constants.pointer, slot);
    }
    mlir::Operation *op = buffer.getDefiningOp();
    if (auto at = mlir::dyn_cast<loop::AtOp>(op))
      return offset(code.function->getArg(3), code.exprs.emit(at.getOffset()));
    if (auto weight = mlir::dyn_cast<loop::WeightOp>(op)) {
      Value *base = builder.CreateLoad(constants.pointer, code.function->getArg(0)); // ptc_rt_call::weights
      return offset(base, builder.getInt64(inputs.weightOffset(weight)));
    }
    if (auto constant = mlir::dyn_cast<loop::ConstantOp>(op))
      return constantAddress(constant);
    return createStringError(inconvertibleErrorCode(), "'" + op->getName().getStringRef() + "' has no place in memory");
  }

  Value *offset(Value *base, Value *bytes) { return builder.CreateGEP(builder.getInt8Ty(), base, bytes); }

  Expected<Value *> constantAddress(loop::ConstantOp constant);

  Constants &constants;
  const HostInputs &inputs;
  loop::ProgramOp program;
  const StringMap<unsigned> &kernels;
  SymbolFunction code;
  IRBuilder<> &builder;
  BasicBlock *failed = nullptr;
  PHINode *fault = nullptr;
  Value *bufferArray = nullptr, *symbolArray = nullptr;
};

/// An element as the bytes it has in memory, little endian; a boolean is one byte.
void appendElement(std::string &bytes, const APInt &value) {
  unsigned width = divideCeil(value.getBitWidth(), 8);
  APInt whole = value.zext(8 * width);
  for (unsigned i = 0; i < width; ++i)
    bytes.push_back(char(whole.extractBitsAsZExtValue(8, 8 * i)));
}

Expected<llvm::Value *> ProgramEmitter::constantAddress(loop::ConstantOp constant) {
  auto elements = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
  if (!elements || !elements.getElementType().isIntOrFloat())
    return createStringError(inconvertibleErrorCode(), "a constant that is not dense");
  std::string bytes;
  if (mlir::isa<mlir::FloatType>(elements.getElementType()))
    for (const APFloat &value : elements.getValues<APFloat>())
      appendElement(bytes, value.bitcastToAPInt());
  else
    for (const APInt &value : elements.getValues<APInt>())
      appendElement(bytes, value);
  GlobalVariable *global =
      constants.global(ConstantDataArray::getString(constants.context, bytes, /*AddNull=*/false), "constant");
  global->setAlignment(Align(64));
  return global;
}

} // namespace

Expected<VariantCode> emitProgram(Constants &constants, const HostInputs &inputs, const Function &function,
                                  loop::ProgramOp program, const StringMap<unsigned> &kernels, const Twine &name) {
  ProgramEmitter emitter(constants, inputs, function, program, kernels, name + "_program");
  if (Error error = emitter.emit())
    return error;
  VariantCode result;
  result.name = program.getSymName().str();
  result.program = emitter.function();
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
  return module;
}

} // namespace ptc::host
