// A loop.program as host code: straight-line calls of ptc_rt_launch, branches for loop.if, loops for loop.repeat.
//
// A buffer is an address: an argument of the call, the arena plus an offset, the weights plus an offset, or a constant
// of the module. Addresses are computed where they are used, from expressions over the symbols that the call got; what
// is equal is shared afterwards. Since nothing but the call's arguments is needed anywhere, a long program is cut into
// functions of a few hundred launches: compile time stays linear and stack frames small.
//
// A symbol that the program binds is read from the call's array wherever it is used; it is written by the runtime, when
// its value has been checked, or is the number of a loop's round.
//
// A tap calls ptc_rt_tap with the address, the extents and the strides of a value that is complete.
//
// Joined launches are one call with an array of parts.
//
// In a program of a device buffers have addresses there, and those that the host uses have one on the host, too
// (loop::Places): of the same argument, at the same offset of an arena of its own. Calls and launches on the host are
// what they are in a program of the processor; a transfer copies from one address to the other.
//
// The kernel's own expressions (iterations, grain, scratch) are over the kernel's symbols; a launch says what those
// are.
#include "codegen/host/HostBuilder.h"
#include "codegen/host/ProgramParts.h"
#include "ir/prim/Variants.h"
#include "runtime/include/ptc/descriptor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"

using namespace llvm;

namespace ptc::host {

PartEmitter::PartEmitter(ProgramEmitter &whole, const Twine &name)
    : whole(whole), constants(whole.constants),
      code(constants, whole.interface, name, Type::getInt32Ty(constants.context),
           {constants.pointer, constants.pointer, constants.pointer, constants.pointer}, 1),
      builder(code.builder) {
  code.addBoundSymbols(whole.interface, whole.bound, 1);
}

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
  size_t buffers = 1, symbols = 1, parts = 1;
  for (mlir::Operation *op : ops)
    op->walk([&](loop::LaunchOp first) {
      size_t buffersOf = 0, symbolsOf = 0, partsOf = 0;
      for (loop::LaunchOp launch : getJoined(first)) {
        buffersOf += launch.getBuffers().size();
        symbolsOf += launch.getSymbols().size();
        ++partsOf;
      }
      buffers = std::max(buffers, buffersOf);
      symbols = std::max(symbols, symbolsOf);
      parts = std::max(parts, partsOf);
    });
  for (mlir::Operation *op : ops)
    op->walk([&](loop::CallOp call) {
      buffers = std::max<size_t>(buffers, call->getNumOperands());
      symbols = std::max<size_t>(symbols, call.getNumbers().size());
    });
  bufferArray = builder.CreateAlloca(constants.pointer, builder.getInt32(buffers), "buffers");
  symbolArray = builder.CreateAlloca(builder.getInt64Ty(), builder.getInt32(symbols), "launch_symbols");
  if (parts > 1)
    partArray = builder.CreateAlloca(getPartType(), builder.getInt32(parts), "parts");
  if (whole.inputs.device)
    scalarSlot = builder.CreateAlloca(builder.getInt64Ty(), nullptr, "scalar");
  size_t extents = 0;
  for (mlir::Operation *op : ops)
    op->walk([&](loop::TapOp tap) { extents = std::max<size_t>(extents, 1 + 2 * tap.getDomain().size()); });
  for (mlir::Operation *op : ops)
    op->walk([&](loop::OutputOp output) {
      extents = std::max<size_t>(extents, 1 + output.getBuffer().getType().getRank());
    });
  for (mlir::BlockArgument output : whole.knownOutputs())
    extents = std::max<size_t>(extents, 1 + mlir::cast<loop::BufferType>(output.getType()).getRank());
  if (extents)
    shapeArray = builder.CreateAlloca(builder.getInt64Ty(), builder.getInt32(extents), "shape");
}

/// Consecutive ops with at most so many launches, those inside of branches counted.
static std::vector<SmallVector<mlir::Operation *>> partition(mlir::Block &block) {
  constexpr unsigned mostLaunches = 256;
  std::vector<SmallVector<mlir::Operation *>> groups(1);
  unsigned inGroup = 0;
  for (mlir::Operation &op : block) {
    unsigned launches = 0;
    op.walk([&](mlir::Operation *inner) { launches += mlir::isa<loop::LaunchOp, loop::CallOp>(inner); });
    auto launch = mlir::dyn_cast<loop::LaunchOp>(op);
    bool isJoined = launch && launch.getJoined();
    if (inGroup > 0 && inGroup + launches > mostLaunches && !isJoined) {
      groups.emplace_back();
      inGroup = 0;
    }
    groups.back().push_back(&op);
    inGroup += launches;
  }
  return groups;
}

Error PartEmitter::emitProgram(loop::ProgramOp program) {
  for (mlir::BlockArgument argument : program.getInputArgs())
    convertArgument(argument);
  for (mlir::BlockArgument output : whole.knownOutputs())
    if (Error error = announce(output))
      return error;
  if (Error error = emitBlock(program.getBlock()))
    return error;
  for (mlir::BlockArgument argument : program.getOutputArgs())
    convertArgument(argument);
  return Error::success();
}

/// From the form at the ABI to the inner one, of an input; back, of an output.
void PartEmitter::convertArgument(mlir::BlockArgument argument) {
  unsigned number = argument.getArgNumber(), inputs = whole.interface.inputs.size();
  DType dtype = whole.valueOf(number).dtype;
  bool isInput = number < inputs;
  if (!isPacked(dtype) && !isHandle(dtype))
    return;
  if (isPacked(dtype))
    return copyPacked(argument, isInput ? "unpack" : "pack");
  std::string name = isInput ? "ptc_rt_open_" : "ptc_rt_close_";
  Type *i64 = builder.getInt64Ty(), *i32 = builder.getInt32Ty(), *pointer = constants.pointer;
  FunctionCallee callee = runtimeFunction(constants.module, name + dtype.name() + (dtype.code == PTC_STRING ? "s" : ""),
                                          i32, {pointer, i32, pointer, pointer, i64});
  bool onHost = whole.inputs.device.has_value(); // nothing else knows such elements
  Value *outer = argumentPointer(argument, onHost), *handles = cantFail(address(argument, onHost));
  Value *count = code.exprs.emit(mlir::cast<loop::BufferType>(argument.getType()).getElementCount());
  leaveOnFault(
      builder.CreateCall(callee, {code.function->getArg(0), builder.getInt32(isInput ? number : number - inputs),
                                  isInput ? handles : outer, isInput ? outer : handles, count}));
}

/// `ptc_rt_NAME`, or of programs for a device `ptc_rt_cuda_NAME`, but for what they do on the host.
FunctionCallee PartEmitter::runtime(StringRef name, Type *result, ArrayRef<Type *> parameters, bool onHost) {
  StringRef prefix = whole.inputs.device && !onHost ? "ptc_rt_cuda_" : "ptc_rt_";
  return runtimeFunction(constants.module, (prefix + name).str(), result, parameters);
}

/// ptc_rt_part
StructType *PartEmitter::getPartType() {
  Type *i64 = builder.getInt64Ty(), *pointer = constants.pointer;
  return StructType::get(constants.context, {pointer, pointer, i64, i64, i64, builder.getInt32Ty()});
}

void PartEmitter::copyPacked(mlir::BlockArgument argument, StringRef function) {
  Type *i64 = builder.getInt64Ty(), *i32 = builder.getInt32Ty(), *pointer = constants.pointer;
  bool onHost = whole.isOnHost(argument);
  Value *packed = argumentPointer(argument, onHost), *bytes = cantFail(address(argument, onHost));
  if (function == "unpack")
    std::swap(packed, bytes);
  Value *count = code.exprs.emit(mlir::cast<loop::BufferType>(argument.getType()).getElementCount());
  SmallVector<Value *> arguments{packed, bytes, count,
                                 builder.getInt32(whole.valueOf(argument.getArgNumber()).dtype.bits)};
  if (!whole.inputs.device || onHost) {
    builder.CreateCall(runtime(function, builder.getVoidTy(), {pointer, pointer, i64, i32}, onHost), arguments);
    return;
  }
  arguments.insert(arguments.begin(), code.function->getArg(0));
  leaveOnFault(builder.CreateCall(runtime(function, i32, {pointer, pointer, pointer, i64, i32}), arguments));
}

llvm::Value *PartEmitter::argumentPointer(mlir::BlockArgument argument, bool onHost) {
  Value *arguments = onHost ? callMember(4) : code.function->getArg(2); // ptc_rt_call::host_arguments
  Value *slot = builder.CreateConstInBoundsGEP1_64(constants.pointer, arguments, argument.getArgNumber());
  return builder.CreateLoad(constants.pointer, slot);
}

llvm::Value *PartEmitter::arena(bool onHost) {
  return onHost ? callMember(3) : code.function->getArg(3); // ptc_rt_call::host_arena
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
      error = emitLaunches(launch);
    else if (auto tap = mlir::dyn_cast<loop::TapOp>(op))
      error = emitTap(tap);
    else if (auto call = mlir::dyn_cast<loop::CallOp>(op))
      error = emitCall(call);
    else if (auto transfer = mlir::dyn_cast<loop::TransferOp>(op))
      error = emitTransfer(transfer);
    else if (auto branch = mlir::dyn_cast<loop::IfOp>(op))
      error = emitIf(branch);
    else if (auto bind = mlir::dyn_cast<loop::BindOp>(op))
      error = emitBind(bind);
    else if (auto guard = mlir::dyn_cast<loop::GuardOp>(op))
      error = emitGuard(guard);
    else if (auto grow = mlir::dyn_cast<loop::GrowOp>(op))
      error = growSlot(grow.getResult(), grow.getBytes(), /*keeps=*/false);
    else if (auto regrow = mlir::dyn_cast<loop::RegrowOp>(op))
      error = growSlot(loop::skipViews(regrow.getBuffer()), regrow.getBytes(), regrow.getKeeps());
    else if (auto output = mlir::dyn_cast<loop::OutputOp>(op))
      error = announce(mlir::cast<mlir::BlockArgument>(output.getBuffer()));
    else if (auto repeat = mlir::dyn_cast<loop::RepeatOp>(op))
      error = emitRepeat(repeat);
    else if (auto program = mlir::dyn_cast<loop::ProgramOp>(op))
      error = emitProgram(program);
    else if (!mlir::isa<loop::AtOp, loop::FlattenOp, loop::PartOp, loop::WeightOp, loop::ConstantOp>(op))
      error = createStringError(inconvertibleErrorCode(), "the host cannot run '" + op->getName().getStringRef() + "'");
    if (error)
      return error;
  }
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

/// A value that a launch has written, on the host; programs for a device wait for it, unless it lies there.
Expected<llvm::Value *> PartEmitter::readScalar(mlir::Value buffer, Type *type) {
  bool onHost = whole.isOnHost(buffer);
  Expected<Value *> place = address(buffer, onHost);
  if (!place)
    return place;
  Value *pointer = *place;
  if (whole.inputs.device && !onHost) {
    Type *address = constants.pointer, *i32 = builder.getInt32Ty(), *i64 = builder.getInt64Ty();
    uint64_t bytes = constants.module.getDataLayout().getTypeStoreSize(type);
    leaveOnFault(builder.CreateCall(runtime("read", i32, {address, address, address, i64}),
                                    {code.function->getArg(0), scalarSlot, pointer, builder.getInt64(bytes)}));
    pointer = scalarSlot;
  }
  return builder.CreateAlignedLoad(type, pointer, Align(1));
}
/// At the insertion point: an address computed in one branch must not be used in another.
Expected<llvm::Value *> PartEmitter::address(mlir::Value buffer, bool onHost) {
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(buffer)) {
    auto place = whole.inner.find(argument.getArgNumber());
    return place == whole.inner.end() ? argumentPointer(argument, onHost)
                                      : offset(arena(onHost), code.exprs.emit(place->second));
  }
  mlir::Operation *op = buffer.getDefiningOp();
  if (auto flatten = mlir::dyn_cast<loop::FlattenOp>(op))
    return address(flatten.getBuffer(), onHost);
  if (auto part = mlir::dyn_cast<loop::PartOp>(op)) {
    if (Error error = checkBound(part.getOffset(), "a part of a buffer"))
      return error;
    Expected<Value *> start = address(part.getBuffer(), onHost);
    if (!start)
      return start;
    Expr bytes = Expr(part.getOffset()) * part.getResult().getType().getElementBytes();
    return offset(*start, code.exprs.emit(bytes));
  }
  if (auto at = mlir::dyn_cast<loop::AtOp>(op))
    return offset(arena(onHost), code.exprs.emit(at.getOffset()));
  if (auto grow = mlir::dyn_cast<loop::GrowOp>(op)) { // ptc_rt_call::blocks, host_blocks
    Value *blocks = callMember(onHost ? 6 : 1);
    return builder.CreateLoad(constants.pointer,
                              builder.CreateConstInBoundsGEP1_64(constants.pointer, blocks, grow.getSlot()));
  }
  if (std::optional<uint64_t> stored = whole.inputs.storedOffset(op)) // ptc_rt_call::weights, host_weights
    return offset(callMember(onHost ? 5 : 0), builder.getInt64(*stored));
  if (auto constant = mlir::dyn_cast<loop::ConstantOp>(op))
    return constantAddress(constant, onHost);
  return createStringError(inconvertibleErrorCode(), "'" + op->getName().getStringRef() + "' has no place in memory");
}

/// An element as the bytes it has in memory, little endian; a boolean is one byte.
static void appendElement(std::string &bytes, const APInt &value) {
  unsigned width = divideCeil(value.getBitWidth(), 8);
  APInt whole = value.zext(8 * width);
  for (unsigned i = 0; i < width; ++i)
    bytes.push_back(char(whole.extractBitsAsZExtValue(8, 8 * i)));
}

llvm::Value *PartEmitter::callMember(unsigned index) {
  Value *place = builder.CreateConstInBoundsGEP1_64(constants.pointer, code.function->getArg(0), index);
  return builder.CreateLoad(constants.pointer, place);
}

/// The handles of constant strings: addresses of views in the library itself.
static llvm::Value *stringAddresses(Constants &constants, mlir::DenseStringElementsAttr strings) {
  SmallVector<Constant *> handles;
  for (StringRef text : strings.getValues<StringRef>())
    handles.push_back(constants.global(
        constants.record({constants.string(text), constants.i64(text.size())}, sizeof(ptc_string)), "string"));
  return constants.array(handles, "strings");
}

Expected<llvm::Value *> PartEmitter::constantAddress(loop::ConstantOp constant, bool onHost) {
  auto elements = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
  if (auto strings = mlir::dyn_cast<mlir::DenseStringElementsAttr>(constant.getValue()))
    return stringAddresses(constants, strings);
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
  if (whole.inputs.device && !onHost)
    return offset(callMember(2), builder.getInt64(constants.placeOnDevice(bytes))); // ptc_rt_call::constants
  return constants.bytes(bytes);
}
Expected<VariantCode> emitProgram(Constants &constants, const HostInputs &inputs, const Function &function,
                                  loop::ProgramOp program, const KernelTable &kernels, const Twine &name) {
  ProgramEmitter emitter{.constants = constants,
                         .inputs = inputs,
                         .interface = function,
                         .kernels = kernels,
                         .name = (name + "_program").str(),
                         .program = program,
                         .bound = loop::BoundSymbols(program)};
  if (inputs.device)
    emitter.places.emplace(program);
  emitter.placeInnerForms();
  Expected<llvm::Function *> whole = emitter.emitPart({program.getOperation()});
  if (!whole)
    return whole.takeError();
  VariantCode result;
  result.name = prim::getVariantName(program);
  if (auto pins = program->getAttrOfType<mlir::DictionaryAttr>(prim::pinsAttr))
    for (const Symbol &symbol : function.symbols) {
      auto pin = pins.getAs<mlir::IntegerAttr>(symbol.name);
      result.pins.push_back(pin ? pin.getInt() : -1);
    }
  result.program = *whole;
  result.arenaBytes = emitBytes(constants, function, emitter.arenaBytes, name + "_arena_bytes");
  result.scratchBytes =
      emitter.scratch.empty() ? nullptr : emitBytes(constants, function, emitter.scratch, name + "_scratch_bytes");
  result.guard = emitGuard(constants, function, prim::getExprs(program.getGuards()), name + "_guard");
  result.guards = guardsOf(program, function.symbols);
  llvm::append_range(result.guards, emitter.guards);
  result.innerGuards = emitter.guards.size();
  result.blocks = emitter.blocks;
  if (emitter.places && emitter.places->usesHost())
    for (mlir::BlockArgument argument : program.getBlock().getArguments())
      result.places.push_back(emitter.places->isOnHost(argument)     ? PTC_RT_ON_HOST
                              : emitter.places->isMirrored(argument) ? PTC_RT_ON_BOTH
                                                                     : PTC_RT_ON_DEVICE);
  for (const loop::BoundSymbol &symbol : emitter.bound.getAll())
    result.bound.push_back({symbol.name, nodesOf(symbol.binder->getLoc())});
  result.launches = std::move(emitter.sites);
  result.taps = std::move(emitter.taps);
  return result;
}

} // namespace ptc::host
