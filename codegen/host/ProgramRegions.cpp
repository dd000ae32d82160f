// Branches and loops of a program, the sizes that it learns, and the memory and results that depend on them.
#include "codegen/host/ProgramParts.h"

using namespace llvm;

namespace ptc::host {

Error PartEmitter::emitIf(loop::IfOp branch) {
  Expected<Value *> read = readScalar(branch.getCondition(), builder.getInt8Ty());
  if (!read)
    return read.takeError();
  Value *condition = builder.CreateIsNotNull(*read);
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
  } else if (Expected<Value *> read = readScalar(bind.getBuffer(), i64)) {
    value = *read;
  } else {
    return read.takeError();
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

/// In the memories that it lies in: of a device, of the host, of both.
Error PartEmitter::growSlot(mlir::Value grown, Expr bytes, bool keeps) {
  unsigned slot = mlir::cast<loop::GrowOp>(grown.getDefiningOp()).getSlot();
  if (Error error = checkBound(bytes, "a growing block"))
    return error;
  ExprCode sizes(builder, code.symbols);
  sizes.checkOverflow = true;
  Value *wanted = sizes.emit(bytes);
  wanted = builder.CreateSelect(sizes.overflowed(), builder.getInt64(-1), wanted);
  whole.blocks = std::max(whole.blocks, slot + 1);
  Type *i32 = builder.getInt32Ty();
  auto grow = [&](StringRef name) {
    FunctionCallee callee = runtime(name, i32, {constants.pointer, i32, builder.getInt64Ty()});
    leaveOnFault(builder.CreateCall(callee, {code.function->getArg(0), builder.getInt32(slot), wanted}));
  };
  if (!whole.isOnHost(grown))
    grow(keeps ? "regrow" : "grow");
  if (whole.places && (whole.isOnHost(grown) || whole.places->isMirrored(grown)))
    grow(keeps ? "regrow_host" : "grow_host");
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
    Expected<Value *> most = readScalar(limit, builder.getInt64Ty());
    if (!most)
      return most;
    goesOn = builder.CreateAnd(goesOn, builder.CreateICmpSLT(round, *most));
  }
  if (mlir::Value condition = repeat.getCondition()) {
    Expected<Value *> holds = readScalar(condition, builder.getInt8Ty());
    if (!holds)
      return holds;
    goesOn = builder.CreateAnd(goesOn, builder.CreateIsNotNull(*holds));
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

} // namespace ptc::host
