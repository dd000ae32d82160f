// Launches, calls of the runtime's functions and taps of a program.
#include "codegen/host/ProgramParts.h"
#include "ir/Diagnostics.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Recurrence.h"
#include "ir/loop/Strassen.h"

using namespace llvm;

namespace ptc::host {

/// The kernel's expression in terms of the program's symbols.
static Expr atLaunch(Expr expr, loop::KernelOp kernel, loop::LaunchOp launch) {
  SmallVector<Expr> values = prim::getExprs(launch.getSymbols());
  return expr.substitute([&](StringRef name) -> Expr {
    for (auto [attr, value] : llvm::zip_equal(kernel.getSymbols(), values))
      if (mlir::cast<mlir::StringAttr>(attr).getValue() == name)
        return value;
    return {};
  });
}

SmallVector<loop::LaunchOp> getJoined(loop::LaunchOp launch) {
  SmallVector<loop::LaunchOp> launches{launch};
  for (loop::LaunchOp last = loop::getLastJoined(launch); launches.back() != last;)
    launches.push_back(mlir::cast<loop::LaunchOp>(launches.back()->getNextNode()));
  return launches;
}

/// Whether a call of the kernel copies operands, whatever the number of its iterations.
static bool copiesOperands(loop::KernelOp kernel) {
  mlir::DictionaryAttr config = kernel.getConfigAttr();
  return config && config.contains(loop::algorithmAttr);
}

/// Fills the arrays of a launch's arguments, and counts it among the sites.
Expected<PartEmitter::LaunchCode> PartEmitter::prepareLaunch(loop::LaunchOp launch, Value *buffers, Value *symbols) {
  loop::KernelOp kernel = kernelOf(launch);
  if (!kernel || !kernel.getIterations())
    return createStringError(inconvertibleErrorCode(), "kernel '" + launch.getKernel() + "' has no iterations");
  bool onHost = kernel.getOnHost().has_value();
  for (auto [index, buffer] : llvm::enumerate(launch.getBuffers())) {
    Expected<Value *> pointer = address(buffer, onHost);
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
  if (std::optional<ExprAttr> bytes = kernel.getScratch(); bytes && !onHost) // there the runtime finds room
    if (Expr most = whole.bound.getMost(atLaunch(*bytes, kernel, launch)))   // else the runtime finds room
      whole.scratch.push_back(most);
  auto evaluate = [&](std::optional<ExprAttr> attr, int64_t otherwise) -> Value * {
    return attr ? code.exprs.emit(atLaunch(*attr, kernel, launch)) : builder.getInt64(otherwise);
  };
  unsigned site = whole.sites.size();
  whole.siteOf[launch] = site;
  whole.sites.push_back({.kernel = whole.kernels.ofLaunch.lookup(launch),
                         .nodes = nodesOf(launch.getLoc()),
                         .copies = copiesOperands(kernel)});
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
  bool onHost = kernelOf(launch).getOnHost().has_value();
  leaveOnFault(builder.CreateCall(runtime(phase ? "launch_phases" : "launch", i32, types, onHost), arguments));
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
    Expected<Value *> pointer = address(buffer, whole.inputs.device.has_value());
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

/// Programs for a device wait for what lies there; the runtime gives the host's memory back to the launches behind.
Error PartEmitter::emitTransfer(loop::TransferOp transfer) {
  Expected<Value *> onDevice = address(transfer.getBuffer()), onHost = address(transfer.getBuffer(), /*onHost=*/true);
  if (!onDevice || !onHost)
    return joinErrors(onDevice.takeError(), onHost.takeError());
  loop::BufferType type = transfer.getBuffer().getType();
  Expr bytes = type.getElementCount() * type.getElementBytes();
  if (Error error = checkBound(bytes, "a transfer"))
    return error;
  Value *target = transfer.getToDevice() ? *onDevice : *onHost, *source = transfer.getToDevice() ? *onHost : *onDevice;
  Type *i32 = builder.getInt32Ty(), *i64 = builder.getInt64Ty(), *pointer = constants.pointer;
  FunctionCallee callee = runtime(transfer.getToDevice() ? "write" : "read", i32, {pointer, pointer, pointer, i64});
  leaveOnFault(builder.CreateCall(callee, {code.function->getArg(0), target, source, code.exprs.emit(bytes)}));
  return Error::success();
}

/// Whether the launch does the work of the node whose value the tap shows.
static bool runsNodeOf(loop::TapOp tap, loop::LaunchOp launch) {
  std::optional<NodeLocation> wanted = describeLocation(tap.getLoc());
  return wanted && launch.getLoc()
                       ->walk([&](mlir::Location part) {
                         std::optional<NodeLocation> node = describeLocation(part);
                         bool isIt = node && node->node == wanted->node && node->output == wanted->output;
                         return isIt ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
                       })
                       .wasInterrupted();
}

static bool writes(loop::LaunchOp launch, mlir::Value buffer) {
  return llvm::any_of(kernelOf(launch).getArgumentsWritten(),
                      [&](int64_t written) { return launch.getBuffers()[written] == buffer; });
}

/// The launch that writes the tapped buffer and does the work of the tap's node: others may write the rest of the
/// buffer behind it. If none does, the one that completes the buffer, behind which PlaceTaps has put the tap.
unsigned PartEmitter::siteBefore(loop::TapOp tap) {
  loop::LaunchOp own;
  for (mlir::Operation *user : tap.getBuffer().getUsers()) {
    auto launch = mlir::dyn_cast<loop::LaunchOp>(user);
    if (launch && launch->getBlock() == tap->getBlock() && launch->isBeforeInBlock(tap) &&
        writes(launch, tap.getBuffer()) && runsNodeOf(tap, launch) && (!own || own->isBeforeInBlock(launch)))
      own = launch;
  }
  if (own)
    return whole.siteOf.at(own);
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
    shape.push_back(first.coefficientOf(dimName(dim), &rest));
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
  bool onHost = whole.isOnHost(tap.getBuffer());
  Expected<Value *> buffer = address(tap.getBuffer(), onHost);
  if (!buffer)
    return buffer.takeError();
  int64_t bytes = tap.getBuffer().getType().getElementBytes();
  Type *pointer = constants.pointer;
  bool mayFail = whole.inputs.device && !onHost;
  Type *result = mayFail ? builder.getInt32Ty() : builder.getVoidTy();
  FunctionCallee callee = runtime("tap", result, {pointer, builder.getInt32Ty(), pointer, pointer}, onHost);
  Value *shown = builder.CreateCall(callee, {code.function->getArg(0), builder.getInt32(whole.taps.size()),
                                             offset(*buffer, code.exprs.emit(first * bytes)), shapeArray});
  if (mayFail)
    leaveOnFault(shown);
  DType dtype = dtypeOf(tap.getType());
  if (isPacked(dtype))
    dtype.bits = 8;
  NodeLocation node = describeLocation(tap.getLoc()).value_or(NodeLocation());
  whole.taps.push_back({node.node.str(), node.op.str(), tap.getOutput().str(), dtype, unsigned(rank),
                        unsigned(tap.getNumber()), siteBefore(tap)});
  return Error::success();
}

} // namespace ptc::host
