//===- TicketLoop.cpp - what blocks of a launch do in phases --------------===//
//
// Work in phases, each of which needs the one before it, takes a launch a phase, or blocks that wait for each other.
// Those may wait for ever if some of them are not on the device yet, which nothing promises: other launches may have
// its multiprocessors. So work is dealt out by numbers: a block takes the next one when it has done the last, and a
// number waits for smaller ones alone. Whose smaller ones are is decided; so of all that are not done the smallest is
// at work, waits for nothing, and will be done.
//
// Three counters, zero before and behind a launch: numbers that were taken, numbers that are done, blocks that are
// through. A block asks for its next number while it works. Which block takes what depends on timing, what a number
// stands for does not: results are the same every time.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/TicketLoop.h"
#include "codegen/gpu/GpuInstructions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

enum Counter { taken, done, through, counterCount };

TicketLoop::TicketLoop(GpuEmitter &e) : e(e) {
  isFirst = e.invariants.compare(arith::CmpIPredicate::eq, e.getRegister("tid.x"), e.constant(0));
  next = e.sharedMemory(8);
}

Value TicketLoop::addressOf(int64_t counter) {
  return e.getAddress(e.counters, e.builder.getI32Type(), e.constant(counter));
}

/// In the first thread; 0 in the others.
Value TicketLoop::takeTicket() {
  return e.createIf(isFirst, {e.constant(0)}, [&] {
    Value number = createCount(e, addressOf(taken));
    return SmallVector<Value>{arith::ExtUIOp::create(e.builder, e.loc, e.builder.getI64Type(), number).getResult()};
  })[0];
}

void TicketLoop::createWait(Value ticket) {
  OpBuilder &b = e.builder;
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  e.createIf(isFirst, {}, [&] {
    auto loop = scf::WhileOp::create(b, e.loc, TypeRange(), ValueRange());
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&loop.getBefore());
    // The fence is behind the loop: each would empty the cache of those who work.
    Value now = LLVM::LoadOp::create(b, e.loc, i32, addressOf(done), /*alignment=*/4, /*isVolatile=*/false,
                                     /*isNonTemporal=*/false, /*isInvariant=*/false, /*isInvariantGroup=*/false,
                                     LLVM::AtomicOrdering::monotonic, "device");
    now = arith::ExtUIOp::create(b, e.loc, i64, now);
    Value isEarly = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::slt, now, ticket);
    scf::ConditionOp::create(b, e.loc, isEarly, ValueRange());
    b.createBlock(&loop.getAfter());
    Value time = e.invariants.constant(b.getI32IntegerAttr(20)); // nanoseconds
    LLVM::CallIntrinsicOp::create(b, e.loc, b.getStringAttr("llvm.nvvm.nanosleep"), ValueRange(time));
    scf::YieldOp::create(b, e.loc);
    b.setInsertionPointAfter(loop);
    createDeviceFence(e);
    return SmallVector<Value>();
  });
  e.createBlockBarrier();
}

void TicketLoop::emit(Value count, Value blocks, llvm::function_ref<void(Value)> body) {
  OpBuilder &b = e.builder;
  Type i64 = b.getI64Type();
  auto share = [&](Value ticket) -> Value {
    e.createIf(isFirst, {}, [&] {
      e.createStore(ticket, next);
      return SmallVector<Value>();
    });
    e.createBlockBarrier();
    return e.createLoad(i64, 1, next);
  };
  auto loop = scf::WhileOp::create(b, e.loc, TypeRange(i64), ValueRange(share(takeTicket())));
  {
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.createBlock(&loop.getBefore(), {}, {i64}, {e.loc});
    Value isLeft = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::slt, before->getArgument(0), count);
    scf::ConditionOp::create(b, e.loc, isLeft, before->getArguments());
    Block *after = b.createBlock(&loop.getAfter(), {}, {i64}, {e.loc});
    Value following = takeTicket();
    body(after->getArgument(0));
    createDeviceFence(e);
    e.createBlockBarrier(); // and all threads have read `next`
    e.createIf(isFirst, {}, [&] {
      createCount(e, addressOf(done));
      return SmallVector<Value>();
    });
    scf::YieldOp::create(b, e.loc, share(following));
  }
  e.createIf(isFirst, {}, [&] {
    Value before = arith::ExtUIOp::create(b, e.loc, i64, createCount(e, addressOf(through)));
    Value isLast = e.invariants.compare(arith::CmpIPredicate::eq, before, e.invariants.sub(blocks, e.constant(1)));
    e.createIf(isLast, {}, [&] {
      for (int64_t counter = 0; counter < counterCount; ++counter)
        LLVM::StoreOp::create(b, e.loc, e.invariants.constant(b.getI32IntegerAttr(0)), addressOf(counter));
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
}
