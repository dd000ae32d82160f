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
// The kernel's own expressions (iterations, grain, scratch) are over the kernel's symbols; a launch says what those
// are.
#include "codegen/host/HostBuilder.h"
#include "codegen/host/SizeFunctions.h"
#include "ir/loop/Recurrence.h"

#include "ir/Diagnostics.h"
#include "ir/prim/Variants.h"
#include "runtime/include/ptc/abi.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include <map>

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

/// The launch and those that are joined to it.
SmallVector<loop::LaunchOp> getJoined(loop::LaunchOp launch) {
  SmallVector<loop::LaunchOp> launches{launch};
  for (loop::LaunchOp last = loop::getLastJoined(launch); launches.back() != last;)
    launches.push_back(mlir::cast<loop::LaunchOp>(launches.back()->getNextNode()));
  return launches;
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
  Error emitProgram(loop::ProgramOp program);
  void convertArgument(mlir::BlockArgument argument);
  void copyPacked(mlir::BlockArgument argument, StringRef function);
  Value *argumentPointer(mlir::BlockArgument argument);
  Error emitBlock(mlir::Block &block);
  Error emitOps(ArrayRef<mlir::Operation *> ops);
  struct LaunchCode {
    Value *buffers, *symbols, *iterations, *grain, *scratch;
    unsigned site;
  };
  Expected<LaunchCode> prepareLaunch(loop::LaunchOp launch, Value *bufferArray, Value *symbolArray);
  Error emitLaunches(loop::LaunchOp launch);
  Error emitLaunch(loop::LaunchOp launch);
  Error emitJoinedLaunches(ArrayRef<loop::LaunchOp> launches);
  Error emitCall(loop::CallOp call);
  Error emitTap(loop::TapOp tap);
  unsigned siteBefore(loop::TapOp tap);
  Error emitIf(loop::IfOp branch);
  Error emitJoined(loop::IfOp branch, bool isThen);
  Error emitBind(loop::BindOp bind);
  Error emitGuard(loop::GuardOp guard);
  Error growSlot(unsigned slot, Expr bytes);
  Error announce(mlir::BlockArgument output);
  Error emitRepeat(loop::RepeatOp repeat);
  Error setCarried(loop::RepeatOp repeat, function_ref<Expr(prim::CarriedAttr)> value);
  Expected<Value *> hasNextRound(loop::RepeatOp repeat, Value *round);
  Error callPart(ArrayRef<mlir::Operation *> ops);
  Error checkBound(Expr expr, StringRef kernel);
  void leaveOnFault(Value *result);
  Expected<Value *> address(mlir::Value buffer);
  Value *readScalar(Value *pointer, Type *type);
  FunctionCallee runtime(StringRef name, Type *result, ArrayRef<Type *> parameters);
  Value *callMember(unsigned index);
  StructType *getPartType();
  Expected<Value *> constantAddress(loop::ConstantOp constant);
  Value *offset(Value *base, Value *bytes) { return builder.CreateGEP(builder.getInt8Ty(), base, bytes); }

  ProgramEmitter &whole;
  Constants &constants;
  SymbolFunction code;
  IRBuilder<> &builder;
  BasicBlock *failed = nullptr;
  PHINode *fault = nullptr;
  Value *bufferArray = nullptr, *symbolArray = nullptr, *partArray = nullptr, *shapeArray = nullptr,
        *scalarSlot = nullptr;
};

bool isPacked(DType type) { return type.bits < 8; }
bool isHandle(DType type) { return type.code == PTC_STRING || type.code == PTC_SEQUENCE; }

/// What all parts of a program share.
struct ProgramEmitter {
  Constants &constants;
  const HostInputs &inputs;
  const Function &interface;
  const KernelTable &kernels;
  std::string name;
  std::vector<LaunchSite> sites;
  std::map<mlir::Operation *, unsigned> siteOf;
  std::vector<TapSite> taps;
  SmallVector<Expr> scratch; // of each launch
  unsigned parts = 0;
  loop::ProgramOp program;
  loop::BoundSymbols bound;  // their places are behind the interface's symbols, in this order
  std::vector<Guard> guards; // that the program checks itself
  unsigned blocks = 0;       // slots of memory that grows
  /// Arguments that have another form at the ABI, packed ones and inputs of handles: where in the arena, behind what
  /// was planned, their inner form lies. (Handles of an output lie in the memory of its views.)
  std::map<unsigned, Expr> inner;
  Expr arenaBytes;

  Expected<llvm::Function *> emitPart(ArrayRef<mlir::Operation *> ops) {
    PartEmitter part(*this, parts == 0 ? Twine(name) : name + "_" + Twine(parts));
    ++parts;
    if (Error error = part.emit(ops))
      return error;
    return part.function();
  }

  const Value &valueOf(unsigned argument) const {
    size_t inputs = interface.inputs.size();
    return argument < inputs ? interface.inputs[argument] : interface.outputs[argument - inputs];
  }

  /// Outputs whose sizes callers are told by the run, and which this program knows beforehand.
  SmallVector<mlir::BlockArgument> knownOutputs() {
    SmallVector<mlir::BlockArgument> known;
    for (auto [output, value] : llvm::zip_equal(program.getOutputArgs(), interface.outputs))
      if (value.isFound() && !llvm::any_of(output.getUsers(), llvm::IsaPred<loop::OutputOp>))
        known.push_back(output);
    return known;
  }

  void placeInnerForms() {
    mlir::MLIRContext *context = program.getContext();
    std::optional<ExprAttr> planned = program.getArena();
    arenaBytes = planned ? Expr(*planned) : Expr::constant(context, 0);
    for (mlir::BlockArgument argument : program.getBlock().getArguments())
      if (DType dtype = valueOf(argument.getArgNumber()).dtype;
          isPacked(dtype) || (isHandle(dtype) && argument.getArgNumber() < interface.inputs.size())) {
        auto type = mlir::cast<loop::BufferType>(argument.getType());
        Expr count = bound.getMost(type.getElementCount());
        assert(count && "a packed value that nothing bounds is refused at import");
        inner[argument.getArgNumber()] = arenaBytes;
        arenaBytes = arenaBytes + (count * type.getElementBytes()).ceilDiv(64) * 64;
      }
  }
};

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
std::vector<SmallVector<mlir::Operation *>> partition(mlir::Block &block) {
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
  Value *outer = argumentPointer(argument), *handles = cantFail(address(argument));
  Value *count = code.exprs.emit(mlir::cast<loop::BufferType>(argument.getType()).getElementCount());
  leaveOnFault(
      builder.CreateCall(callee, {code.function->getArg(0), builder.getInt32(isInput ? number : number - inputs),
                                  isInput ? handles : outer, isInput ? outer : handles, count}));
}

/// `ptc_rt_NAME`, or of programs for a device `ptc_rt_cuda_NAME`.
FunctionCallee PartEmitter::runtime(StringRef name, Type *result, ArrayRef<Type *> parameters) {
  StringRef prefix = whole.inputs.device ? "ptc_rt_cuda_" : "ptc_rt_";
  return runtimeFunction(constants.module, (prefix + name).str(), result, parameters);
}

/// ptc_rt_part
StructType *PartEmitter::getPartType() {
  Type *i64 = builder.getInt64Ty(), *pointer = constants.pointer;
  return StructType::get(constants.context, {pointer, pointer, i64, i64, i64, builder.getInt32Ty()});
}

void PartEmitter::copyPacked(mlir::BlockArgument argument, StringRef function) {
  Type *i64 = builder.getInt64Ty(), *i32 = builder.getInt32Ty(), *pointer = constants.pointer;
  Value *packed = argumentPointer(argument), *bytes = cantFail(address(argument));
  if (function == "unpack")
    std::swap(packed, bytes);
  Value *count = code.exprs.emit(mlir::cast<loop::BufferType>(argument.getType()).getElementCount());
  SmallVector<Value *> arguments{packed, bytes, count,
                                 builder.getInt32(whole.valueOf(argument.getArgNumber()).dtype.bits)};
  if (!whole.inputs.device) {
    builder.CreateCall(runtime(function, builder.getVoidTy(), {pointer, pointer, i64, i32}), arguments);
    return;
  }
  arguments.insert(arguments.begin(), code.function->getArg(0));
  leaveOnFault(builder.CreateCall(runtime(function, i32, {pointer, pointer, pointer, i64, i32}), arguments));
}

llvm::Value *PartEmitter::argumentPointer(mlir::BlockArgument argument) {
  Value *slot =
      builder.CreateConstInBoundsGEP1_64(constants.pointer, code.function->getArg(2), argument.getArgNumber());
  return builder.CreateLoad(constants.pointer, slot);
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
    else if (auto branch = mlir::dyn_cast<loop::IfOp>(op))
      error = emitIf(branch);
    else if (auto bind = mlir::dyn_cast<loop::BindOp>(op))
      error = emitBind(bind);
    else if (auto guard = mlir::dyn_cast<loop::GuardOp>(op))
      error = emitGuard(guard);
    else if (auto grow = mlir::dyn_cast<loop::GrowOp>(op))
      error = growSlot(grow.getSlot(), grow.getBytes());
    else if (auto regrow = mlir::dyn_cast<loop::RegrowOp>(op))
      error = growSlot(mlir::cast<loop::GrowOp>(loop::skipViews(regrow.getBuffer()).getDefiningOp()).getSlot(),
                       regrow.getBytes());
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

/// Fills the arrays of a launch's arguments, and counts it among the sites.
Expected<PartEmitter::LaunchCode> PartEmitter::prepareLaunch(loop::LaunchOp launch, Value *buffers, Value *symbols) {
  loop::KernelOp kernel = kernelOf(launch);
  if (!kernel || !kernel.getIterations())
    return createStringError(inconvertibleErrorCode(), "kernel '" + launch.getKernel() + "' has no iterations");
  for (auto [index, buffer] : llvm::enumerate(launch.getBuffers())) {
    Expected<Value *> pointer = address(buffer);
    if (!pointer)
      return pointer.takeError();
    builder.CreateStore(*pointer, builder.CreateConstInBoundsGEP1_64(constants.pointer, buffers, index));
  }
  for (Expr value : prim::getExprs(launch.getSymbols()))
    if (Error error = checkBound(value, launch.getKernel()))
      return error;
  for (auto [index, value] : llvm::enumerate(prim::getExprs(launch.getSymbols())))
    builder.CreateStore(code.exprs.emit(value),
                        builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), symbols, index));
  if (std::optional<ExprAttr> bytes = kernel.getScratch())
    if (Expr most = whole.bound.getMost(atLaunch(*bytes, kernel, launch))) // else the runtime finds room
      whole.scratch.push_back(most);
  auto evaluate = [&](std::optional<ExprAttr> attr, int64_t otherwise) -> Value * {
    return attr ? code.exprs.emit(atLaunch(*attr, kernel, launch)) : builder.getInt64(otherwise);
  };
  unsigned site = whole.sites.size();
  whole.siteOf[launch] = site;
  whole.sites.push_back({whole.kernels.ofLaunch.lookup(launch), nodesOf(launch.getLoc())});
  return LaunchCode{buffers,
                    symbols,
                    evaluate(kernel.getIterations(), 1),
                    evaluate(kernel.getGrain(), 1),
                    evaluate(kernel.getScratch(), 0),
                    site};
}

Error PartEmitter::emitLaunch(loop::LaunchOp launch) {
  Expected<LaunchCode> prepared = prepareLaunch(launch, bufferArray, symbolArray);
  if (!prepared)
    return prepared.takeError();
  Type *i64 = builder.getInt64Ty(), *i32 = builder.getInt32Ty(), *pointer = constants.pointer;
  SmallVector<Type *> types{pointer, i32, pointer, pointer, i64, i64, i64};
  SmallVector<Value *> arguments{code.function->getArg(0), builder.getInt32(prepared->site), prepared->buffers,
                                 prepared->symbols, prepared->iterations};
  Expr phase = loop::getPhase(kernelOf(launch));
  if (phase) {
    types.push_back(i64);
    arguments.push_back(code.exprs.emit(atLaunch(phase, kernelOf(launch), launch)));
  }
  arguments.append({prepared->grain, prepared->scratch});
  leaveOnFault(builder.CreateCall(runtime(phase ? "launch_phases" : "launch", i32, types), arguments));
  return Error::success();
}

Error PartEmitter::emitLaunches(loop::LaunchOp launch) {
  if (launch.getJoined()) // the first of them spoke for it
    return Error::success();
  SmallVector<loop::LaunchOp> launches = getJoined(launch);
  return launches.size() == 1 ? emitLaunch(launch) : emitJoinedLaunches(launches);
}

/// One call with an array of ptc_rt_part. Their arguments lie one behind the other.
Error PartEmitter::emitJoinedLaunches(ArrayRef<loop::LaunchOp> launches) {
  Type *i64 = builder.getInt64Ty(), *i32 = builder.getInt32Ty(), *pointer = constants.pointer;
  StructType *part = getPartType();
  auto at = [&](Type *type, Value *array, size_t index) {
    return builder.CreateConstInBoundsGEP1_64(type, array, index);
  };
  size_t buffers = 0, symbols = 0;
  for (auto [index, launch] : llvm::enumerate(launches)) {
    Expected<LaunchCode> prepared =
        prepareLaunch(launch, at(pointer, bufferArray, buffers), at(i64, symbolArray, symbols));
    if (!prepared)
      return prepared.takeError();
    Value *fields[] = {prepared->buffers, prepared->symbols, prepared->iterations,
                       prepared->grain,   prepared->scratch, builder.getInt32(prepared->site)};
    for (auto [field, value] : llvm::enumerate(fields))
      builder.CreateStore(value, builder.CreateStructGEP(part, at(part, partArray, index), unsigned(field)));
    buffers += loop::LaunchOp(launch).getBuffers().size();
    symbols += loop::LaunchOp(launch).getSymbols().size();
  }
  leaveOnFault(builder.CreateCall(runtime("launch_joined", i32, {pointer, pointer, i32}),
                                  {code.function->getArg(0), partArray, builder.getInt32(launches.size())}));
  return Error::success();
}

/// Functions of the runtime are given addresses and numbers as kernels are.
Error PartEmitter::emitCall(loop::CallOp call) {
  for (auto [index, buffer] : llvm::enumerate(call->getOperands())) {
    Expected<Value *> pointer = address(buffer);
    if (!pointer)
      return pointer.takeError();
    builder.CreateStore(*pointer, builder.CreateConstInBoundsGEP1_64(constants.pointer, bufferArray, index));
  }
  for (auto [index, number] : llvm::enumerate(prim::getExprs(call.getNumbers()))) {
    if (Error error = checkBound(number, call.getCallee()))
      return error;
    builder.CreateStore(code.exprs.emit(number),
                        builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), symbolArray, index));
  }
  Type *i32 = builder.getInt32Ty(), *pointer = constants.pointer;
  FunctionCallee callee =
      runtimeFunction(constants.module, ("ptc_rt_" + call.getCallee()).str(), i32, {pointer, i32, pointer, pointer});
  FunctionCallee invoke =
      runtimeFunction(constants.module, "ptc_rt_invoke", i32, {pointer, i32, pointer, pointer, pointer});
  Value *result = builder.CreateCall(invoke, {code.function->getArg(0), builder.getInt32(whole.sites.size()),
                                              callee.getCallee(), bufferArray, symbolArray});
  unsigned custom = call.getCustomAttr() ? addCustomNode(constants, call) : 0;
  whole.sites.push_back({UINT32_MAX, nodesOf(call.getLoc()), custom});
  leaveOnFault(result);
  return Error::success();
}

/// The launch that completes the tapped buffer. PlaceTaps has put the tap behind it.
unsigned PartEmitter::siteBefore(loop::TapOp tap) {
  for (mlir::Operation *op = tap->getPrevNode(); op; op = op->getPrevNode()) {
    auto launch = mlir::dyn_cast<loop::LaunchOp>(op);
    if (launch && llvm::is_contained(launch.getBuffers(), tap.getBuffer()))
      return whole.siteOf.at(launch);
    if (launch || loop::isControlFlow(op) || mlir::isa<loop::CallOp>(op))
      break;
  }
  return UINT32_MAX;
}

/// Extents, strides and the first element's place follow from the expression of an element's position.
Error PartEmitter::emitTap(loop::TapOp tap) {
  if (!tap.getBuffer())
    return Error::success();
  Expr first = prim::getExprs(tap.getIndices())[0];
  SmallVector<Expr> shape = prim::getExprs(tap.getDomain());
  size_t rank = shape.size();
  for (size_t dim = 0; dim < rank; ++dim) {
    Expr rest;
    shape.push_back(first.coefficientOf("d" + std::to_string(dim), &rest));
    first = rest;
  }
  shape.push_back(first);
  for (Expr value : shape)
    if (Error error = checkBound(value, tap.getOutput()))
      return error;
  shape.pop_back();
  for (auto [index, value] : llvm::enumerate(shape))
    builder.CreateStore(code.exprs.emit(value),
                        builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), shapeArray, index));
  Expected<Value *> buffer = address(tap.getBuffer());
  if (!buffer)
    return buffer.takeError();
  int64_t bytes = tap.getBuffer().getType().getElementBytes();
  Type *pointer = constants.pointer;
  Type *result = whole.inputs.device ? builder.getInt32Ty() : builder.getVoidTy();
  FunctionCallee callee = runtime("tap", result, {pointer, builder.getInt32Ty(), pointer, pointer});
  Value *shown = builder.CreateCall(callee, {code.function->getArg(0), builder.getInt32(whole.taps.size()),
                                             offset(*buffer, code.exprs.emit(first * bytes)), shapeArray});
  if (whole.inputs.device)
    leaveOnFault(shown);
  DType dtype = dtypeOf(tap.getType());
  if (isPacked(dtype))
    dtype.bits = 8;
  NodeLocation node = describeLocation(tap.getLoc()).value_or(NodeLocation());
  whole.taps.push_back({node.node.str(), node.op.str(), tap.getOutput().str(), dtype, unsigned(rank),
                        unsigned(tap.getNumber()), siteBefore(tap)});
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

/// A value that a launch has written, on the host; programs for a device wait for it.
llvm::Value *PartEmitter::readScalar(Value *pointer, Type *type) {
  if (whole.inputs.device) {
    Type *address = constants.pointer, *i32 = builder.getInt32Ty(), *i64 = builder.getInt64Ty();
    uint64_t bytes = constants.module.getDataLayout().getTypeStoreSize(type);
    leaveOnFault(builder.CreateCall(runtime("read", i32, {address, address, address, i64}),
                                    {code.function->getArg(0), scalarSlot, pointer, builder.getInt64(bytes)}));
    pointer = scalarSlot;
  }
  return builder.CreateAlignedLoad(type, pointer, Align(1));
}

Error PartEmitter::emitIf(loop::IfOp branch) {
  Expected<Value *> pointer = address(branch.getCondition());
  if (!pointer)
    return pointer.takeError();
  Value *condition = builder.CreateIsNotNull(readScalar(*pointer, builder.getInt8Ty()));
  BasicBlock *onTrue = BasicBlock::Create(constants.context, "then", code.function, failed);
  BasicBlock *onFalse = BasicBlock::Create(constants.context, "else", code.function, failed);
  BasicBlock *join = BasicBlock::Create(constants.context, "", code.function, failed);
  builder.CreateCondBr(condition, onTrue, onFalse);
  for (auto [block, region] :
       {std::pair{onTrue, &branch.getThenRegion()}, std::pair{onFalse, &branch.getElseRegion()}}) {
    builder.SetInsertPoint(block);
    if (Error error = emitBlock(region->front()))
      return error;
    if (Error error = emitJoined(branch, block == onTrue))
      return error;
    builder.CreateBr(join);
  }
  builder.SetInsertPoint(join);
  return Error::success();
}

/// Sizes that differ between the branches, at the end of one.
Error PartEmitter::emitJoined(loop::IfOp branch, bool isThen) {
  if (!branch.getJoinedAttr())
    return Error::success();
  for (auto size : branch.getJoinedAttr().getAsRange<prim::JoinedAttr>()) {
    Expr value = isThen ? size.getThenSize() : size.getElseSize();
    if (Error error = checkBound(value, size.getName()))
      return error;
    builder.CreateStore(code.exprs.emit(value), code.symbols.addresses.lookup(size.getName()));
  }
  return Error::success();
}

/// Reads the value where it lies in memory; the runtime stores it among the symbols, or says why not.
Error PartEmitter::emitBind(loop::BindOp bind) {
  auto range = prim::getSymbolRanges(whole.program.getSymbols()).lookup(bind.getSymbol());
  Type *i64 = builder.getInt64Ty(), *i32 = builder.getInt32Ty();
  Value *value = nullptr, *most = builder.getInt64(range.max);
  if (!bind.getBuffer()) {
    if (Error error = checkBound(*bind.getValue(), bind.getSymbol()))
      return error;
    value = code.exprs.emit(*bind.getValue());
  } else if (Expected<Value *> pointer = address(bind.getBuffer())) {
    value = readScalar(*pointer, i64);
  } else {
    return pointer.takeError();
  }
  if (Expr upper = bind.getUpper()) {
    if (Error error = checkBound(upper, bind.getSymbol()))
      return error;
    Value *bound = code.exprs.emit(upper);
    most = builder.CreateSelect(builder.CreateICmpSLT(bound, most), bound, most);
  }
  auto symbols = whole.bound.getAll();
  unsigned index = whole.bound.find(bind.getSymbol()) - symbols.begin();
  FunctionCallee callee =
      runtimeFunction(constants.module, "ptc_rt_bind_symbol", i32, {constants.pointer, i32, i64, i64, i64});
  leaveOnFault(builder.CreateCall(
      callee, {code.function->getArg(0), builder.getInt32(index), value, builder.getInt64(range.min), most}));
  return Error::success();
}

Error PartEmitter::emitGuard(loop::GuardOp guard) {
  if (Error error = checkBound(guard.getCondition(), "guard"))
    return error;
  unsigned own = whole.interface.symbols.size();
  Guard described = guardOf(guard.getCondition(), [&](StringRef name) -> int {
    for (auto [index, symbol] : llvm::enumerate(whole.interface.symbols))
      if (symbol.name == name)
        return index;
    const loop::BoundSymbol *inner = whole.bound.find(name);
    return inner ? int(own + (inner - whole.bound.getAll().begin())) : -1;
  });
  described.nodes = nodesOf(guard.getLoc());
  if (guard.getBecause()) { // a sentence, which needs no values
    described.text = guard.getBecause()->str();
    described.symbols.clear();
  }
  unsigned index = whole.program.getGuards().size() + whole.guards.size();
  whole.guards.push_back(std::move(described));
  BasicBlock *fails = BasicBlock::Create(constants.context, "", code.function, failed);
  BasicBlock *next = BasicBlock::Create(constants.context, "", code.function, failed);
  builder.CreateCondBr(builder.CreateICmpEQ(code.exprs.emit(guard.getCondition()), builder.getInt64(0)), fails, next);
  builder.SetInsertPoint(fails);
  Type *i32 = builder.getInt32Ty();
  FunctionCallee callee = runtimeFunction(constants.module, "ptc_rt_fail", i32, {constants.pointer, i32});
  fault->addIncoming(builder.CreateCall(callee, {code.function->getArg(0), builder.getInt32(index)}), fails);
  builder.CreateBr(failed);
  builder.SetInsertPoint(next);
  return Error::success();
}

Error PartEmitter::growSlot(unsigned slot, Expr bytes) {
  if (Error error = checkBound(bytes, "a growing block"))
    return error;
  ExprCode sizes(builder, code.symbols);
  sizes.checkOverflow = true;
  Value *wanted = sizes.emit(bytes);
  wanted = builder.CreateSelect(sizes.overflowed(), builder.getInt64(-1), wanted);
  whole.blocks = std::max(whole.blocks, slot + 1);
  Type *i32 = builder.getInt32Ty();
  FunctionCallee callee = runtime("grow", i32, {constants.pointer, i32, builder.getInt64Ty()});
  leaveOnFault(builder.CreateCall(callee, {code.function->getArg(0), builder.getInt32(slot), wanted}));
  return Error::success();
}

Error PartEmitter::announce(mlir::BlockArgument output) {
  for (auto [index, extent] : llvm::enumerate(mlir::cast<loop::BufferType>(output.getType()).getShape())) {
    if (Error error = checkBound(extent, "an output"))
      return error;
    builder.CreateStore(code.exprs.emit(extent),
                        builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), shapeArray, index));
  }
  unsigned number = output.getArgNumber() - whole.interface.inputs.size();
  Type *i32 = builder.getInt32Ty();
  FunctionCallee callee = runtime("output", i32, {constants.pointer, i32, constants.pointer});
  leaveOnFault(builder.CreateCall(callee, {code.function->getArg(0), builder.getInt32(number), shapeArray}));
  return Error::success();
}

/// Whether the round with this number is to run.
Expected<llvm::Value *> PartEmitter::hasNextRound(loop::RepeatOp repeat, Value *round) {
  Value *goesOn = builder.getTrue();
  if (std::optional<Expr> trips = repeat.getTrips()) {
    if (Error error = checkBound(*trips, repeat.getCounter()))
      return error;
    goesOn = builder.CreateICmpSLT(round, code.exprs.emit(*trips));
  }
  if (mlir::Value limit = repeat.getLimit()) {
    Expected<Value *> pointer = address(limit);
    if (!pointer)
      return pointer;
    Value *most = readScalar(*pointer, builder.getInt64Ty());
    goesOn = builder.CreateAnd(goesOn, builder.CreateICmpSLT(round, most));
  }
  if (mlir::Value condition = repeat.getCondition()) {
    Expected<Value *> pointer = address(condition);
    if (!pointer)
      return pointer;
    Value *holds = builder.CreateIsNotNull(readScalar(*pointer, builder.getInt8Ty()));
    goesOn = builder.CreateAnd(goesOn, holds);
  }
  return goesOn;
}

/// All values first: each may be made of any.
Error PartEmitter::setCarried(loop::RepeatOp repeat, function_ref<Expr(prim::CarriedAttr)> value) {
  SmallVector<std::pair<StringRef, Value *>> values;
  if (repeat.getCarriedAttr())
    for (auto size : repeat.getCarriedAttr().getAsRange<prim::CarriedAttr>()) {
      if (Error error = checkBound(value(size), size.getName()))
        return error;
      values.push_back({size.getName(), code.exprs.emit(value(size))});
    }
  for (auto [name, number] : values)
    builder.CreateStore(number, code.symbols.addresses.lookup(name));
  return Error::success();
}

Error PartEmitter::emitRepeat(loop::RepeatOp repeat) {
  Value *slot = code.symbols.addresses.lookup(repeat.getCounter());
  builder.CreateStore(builder.getInt64(0), slot);
  auto initial = [](prim::CarriedAttr size) { return Expr(size.getInitial()); };
  auto next = [](prim::CarriedAttr size) { return Expr(size.getNext()); };
  if (Error error = setCarried(repeat, initial))
    return error;
  BasicBlock *head = BasicBlock::Create(constants.context, "round", code.function, failed);
  BasicBlock *body = BasicBlock::Create(constants.context, "repeat", code.function, failed);
  BasicBlock *done = BasicBlock::Create(constants.context, "", code.function, failed);
  builder.CreateBr(head);
  builder.SetInsertPoint(head);
  Value *round = builder.CreateLoad(builder.getInt64Ty(), slot, repeat.getCounter());
  Expected<Value *> goesOn = hasNextRound(repeat, round);
  if (!goesOn)
    return goesOn.takeError();
  builder.CreateCondBr(*goesOn, body, done);
  builder.SetInsertPoint(body);
  if (Error error = emitBlock(repeat.getBlock()))
    return error;
  if (Error error = setCarried(repeat, next))
    return error;
  builder.CreateStore(builder.CreateAdd(round, builder.getInt64(1)), slot);
  builder.CreateBr(head);
  builder.SetInsertPoint(done);
  if (std::optional<StringRef> rounds = repeat.getRounds())
    builder.CreateStore(round, code.symbols.addresses.lookup(*rounds));
  if (repeat.getCarriedAttr())
    for (auto size : repeat.getCarriedAttr().getAsRange<prim::CarriedAttr>())
      builder.CreateStore(code.exprs.emit(Expr::symbol(repeat.getContext(), size.getName())),
                          code.symbols.addresses.lookup(size.getFinal()));
  return Error::success();
}

/// At the insertion point: an address computed in one branch must not be used in another.
Expected<llvm::Value *> PartEmitter::address(mlir::Value buffer) {
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(buffer)) {
    auto place = whole.inner.find(argument.getArgNumber());
    return place == whole.inner.end() ? argumentPointer(argument)
                                      : offset(code.function->getArg(3), code.exprs.emit(place->second));
  }
  mlir::Operation *op = buffer.getDefiningOp();
  if (auto flatten = mlir::dyn_cast<loop::FlattenOp>(op))
    return address(flatten.getBuffer());
  if (auto part = mlir::dyn_cast<loop::PartOp>(op)) {
    if (Error error = checkBound(part.getOffset(), "a part of a buffer"))
      return error;
    Expected<Value *> start = address(part.getBuffer());
    if (!start)
      return start;
    Expr bytes = Expr(part.getOffset()) * part.getResult().getType().getElementBytes();
    return offset(*start, code.exprs.emit(bytes));
  }
  if (auto at = mlir::dyn_cast<loop::AtOp>(op))
    return offset(code.function->getArg(3), code.exprs.emit(at.getOffset()));
  if (auto grow = mlir::dyn_cast<loop::GrowOp>(op)) { // ptc_rt_call::blocks
    return builder.CreateLoad(constants.pointer,
                              builder.CreateConstInBoundsGEP1_64(constants.pointer, callMember(1), grow.getSlot()));
  }
  if (std::optional<uint64_t> stored = whole.inputs.storedOffset(op))
    return offset(callMember(0), builder.getInt64(*stored)); // ptc_rt_call::weights
  if (auto constant = mlir::dyn_cast<loop::ConstantOp>(op))
    return constantAddress(constant);
  return createStringError(inconvertibleErrorCode(), "'" + op->getName().getStringRef() + "' has no place in memory");
}

/// An element as the bytes it has in memory, little endian; a boolean is one byte.
void appendElement(std::string &bytes, const APInt &value) {
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
llvm::Value *stringAddresses(Constants &constants, mlir::DenseStringElementsAttr strings) {
  SmallVector<Constant *> handles;
  for (StringRef text : strings.getValues<StringRef>())
    handles.push_back(constants.global(
        constants.record({constants.string(text), constants.i64(text.size())}, sizeof(ptc_string)), "string"));
  return constants.array(handles, "strings");
}

Expected<llvm::Value *> PartEmitter::constantAddress(loop::ConstantOp constant) {
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
  if (whole.inputs.device)
    return offset(callMember(2), builder.getInt64(constants.placeOnDevice(bytes))); // ptc_rt_call::constants
  return constants.bytes(bytes);
}

} // namespace

Expected<VariantCode> emitProgram(Constants &constants, const HostInputs &inputs, const Function &function,
                                  loop::ProgramOp program, const KernelTable &kernels, const Twine &name) {
  ProgramEmitter emitter{.constants = constants,
                         .inputs = inputs,
                         .interface = function,
                         .kernels = kernels,
                         .name = (name + "_program").str(),
                         .program = program,
                         .bound = loop::BoundSymbols(program)};
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
  for (const loop::BoundSymbol &symbol : emitter.bound.getAll())
    result.bound.push_back({symbol.name, nodesOf(symbol.binder->getLoc())});
  result.launches = std::move(emitter.sites);
  result.taps = std::move(emitter.taps);
  return result;
}

} // namespace ptc::host
