//===- AtomicScatter.cpp - scatters in which order is nothing -------------===//
//
// Integers have one sum, and any numbers one maximum, in whatever order they are taken: a thread for each point, and an
// atomic operation. Floats have no such instruction: their bits are compared and swapped until nothing changes, which
// most updates of one place find at once. Which zero is larger and which NaN comes out must not depend on the order
// either: +0 is above -0, and there is one NaN.
//
// Where nothing is combined, the last update of a place stays. Which one that is takes a word for each place: updates
// reset theirs, then leave the largest of their numbers there, and the one whose number it is writes; three phases of
// one launch (TicketLoop.cpp). No place is looked at that nobody writes to.
//
// Refused: sums of 8 and 16 bits and products by compare and swap: where many meet, each waits for all others.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/AtomicScatter.h"
#include "codegen/gpu/DeviceShape.h"
#include "codegen/gpu/TicketLoop.h"
#include "ir/loop/UnsignedStores.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using prim::ReduceKind;

using Values = SmallVector<Value>;

static constexpr int64_t blockThreads = 256;
static constexpr int64_t fullDevice = 4 * multiprocessors; // blocks
static constexpr int64_t updatesOfThread = 4;              // of a ticket, under way together
static constexpr int64_t ticketUpdates = blockThreads * updatesOfThread;

//===----------------------------------------------------------------------===//
// Atomic operations
//===----------------------------------------------------------------------===//

static bool isExtremum(ReduceKind kind) { return kind == ReduceKind::Max || kind == ReduceKind::Min; }

static bool hasInstruction(ReduceKind kind, Type type) {
  return (type.isInteger(32) || type.isInteger(64)) && (kind == ReduceKind::Sum || isExtremum(kind));
}

static bool isOrderFree(loop::StoreOp store) {
  std::optional<ReduceKind> kind = store.getCombine();
  Type type = store.getValue().getType();
  constexpr unsigned leastBits = 16; // that are compared and swapped
  return kind && (hasInstruction(*kind, type) || (isExtremum(*kind) && type.getIntOrFloatBitWidth() >= leastBits));
}

static LLVM::AtomicBinOp operationOf(ReduceKind kind, bool isUnsigned) {
  if (kind == ReduceKind::Sum)
    return LLVM::AtomicBinOp::add;
  if (kind == ReduceKind::Max)
    return isUnsigned ? LLVM::AtomicBinOp::umax : LLVM::AtomicBinOp::max;
  return isUnsigned ? LLVM::AtomicBinOp::umin : LLVM::AtomicBinOp::min;
}

namespace {

class AtomicEmitter {
public:
  AtomicEmitter(GpuEmitter &e, loop::StoreOp store)
      : e(e), b(e.builder), type(store.getValue().getType()), kind(*store.getCombine()),
        isUnsigned(loop::isUnsigned(store)), bits(b.getIntegerType(type.getIntOrFloatBitWidth())) {}

  void combine(Value address, Value value);

private:
  bool isFloat() const { return isa<FloatType>(type); }
  Value asBits(Value value) { return isFloat() ? arith::BitcastOp::create(b, e.loc, bits, value).getResult() : value; }
  Value combined(Value oldBits, Value value);

  GpuEmitter &e;
  OpBuilder &b;
  Type type;
  const ReduceKind kind;
  const bool isUnsigned;
  IntegerType bits;
};

} // namespace

/// The bits of the extremum, whichever came first.
Value AtomicEmitter::combined(Value oldBits, Value value) {
  if (!isFloat())
    return codegen::emitCombine(e, kind, oldBits, value, isUnsigned);
  Value old = arith::BitcastOp::create(b, e.loc, type, oldBits), own = asBits(value);
  Value result = asBits(codegen::emitCombine(e, kind, old, value));
  Value isEqual = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OEQ, old, value); // bits differ of zeros
  Value zero = kind == ReduceKind::Max ? arith::AndIOp::create(b, e.loc, oldBits, own).getResult()
                                       : arith::OrIOp::create(b, e.loc, oldBits, own).getResult();
  return arith::SelectOp::create(b, e.loc, isEqual, zero, result);
}

void AtomicEmitter::combine(Value address, Value value) {
  constexpr auto order = LLVM::AtomicOrdering::monotonic;
  if (hasInstruction(kind, type)) {
    LLVM::AtomicRMWOp::create(b, e.loc, operationOf(kind, isUnsigned), address, value, order, "device");
    return;
  }
  if (isFloat()) {
    auto nan = FloatAttr::get(type, APFloat::getNaN(cast<FloatType>(type).getFloatSemantics()));
    Value isNaN = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::UNO, value, value);
    value = arith::SelectOp::create(b, e.loc, isNaN, e.invariants.constant(nan), value);
  }
  unsigned bytes = bits.getWidth() / 8;
  Value first = LLVM::LoadOp::create(b, e.loc, bits, address, bytes, /*isVolatile=*/false, /*isNonTemporal=*/false,
                                     /*isInvariant=*/false, /*isInvariantGroup=*/false, order, "device");
  Type types[] = {bits, bits}; // what is there, and what should be
  SmallVector<Location> locations(2, e.loc);
  auto loop = scf::WhileOp::create(b, e.loc, TypeRange(types), ValueRange{first, combined(first, value)});
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, types, locations);
  Value differs =
      arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne, before->getArgument(0), before->getArgument(1));
  scf::ConditionOp::create(b, e.loc, differs, before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, types, locations);
  Value expected = after->getArgument(0), wanted = after->getArgument(1);
  Value result = LLVM::AtomicCmpXchgOp::create(b, e.loc, address, expected, wanted, order, order, "device");
  Value found = LLVM::ExtractValueOp::create(b, e.loc, result, 0);
  Value isDone = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, found, expected);
  Value now = arith::SelectOp::create(b, e.loc, isDone, wanted, found);
  Value next = arith::SelectOp::create(b, e.loc, isDone, wanted, combined(found, value));
  scf::YieldOp::create(b, e.loc, ValueRange{now, next});
}

//===----------------------------------------------------------------------===//
// In any order
//===----------------------------------------------------------------------===//

bool gpu::planAtomicScatter(loop::KernelOp kernel, loop::ScatterOp op) {
  if (!hasPlaces(op) || !isOrderFree(*op.getBody().getOps<loop::StoreOp>().begin()))
    return false;
  MLIRContext *context = kernel.getContext();
  Expr points = product(context, loop::getDomain(op));
  setPlan(kernel, {.layout = "points",
                   .name = "atomic",
                   .tile = UnitAttr::get(context),
                   .threads = blockThreads,
                   .blocks = points.ceilDiv(blockThreads)});
  return true;
}

void gpu::emitAtomicScatter(GpuEmitter &e, loop::ScatterOp op) {
  e.setDomain(loop::getDomain(op));
  ScatterPlaces places(op, /*isFlat=*/true);
  PlaceEmitter emitter(e, places);
  auto &in = e.invariants;
  Value number = in.add(in.mul(e.getRegister("ctaid.x"), e.constant(blockThreads)), e.getRegister("tid.x"));
  e.createIf(in.compare(arith::CmpIPredicate::slt, number, emitter.updates), {}, [&] {
    Value address = emitter.addressOf(e.constant(0), emitter.quotientOf(e.constant(0), number));
    AtomicEmitter(e, places.store).combine(address, emitter.valueOf(emitter.pointAt(e.constant(0), number)));
    return Values();
  });
}

//===----------------------------------------------------------------------===//
// The last one stays
//===----------------------------------------------------------------------===//

// Told dims are of use where all of their points have one index.
static ScatterPlaces placesOf(loop::ScatterOp op) {
  ScatterPlaces places(op);
  return places.isUniform ? places : ScatterPlaces(op, /*isFlat=*/true);
}

bool gpu::planLastScatter(loop::KernelOp kernel, loop::ScatterOp op) {
  if (!hasPlaces(op) || (*op.getBody().getOps<loop::StoreOp>().begin()).getCombine())
    return false;
  MLIRContext *context = kernel.getContext();
  ScatterPlaces places = placesOf(op);
  Expr updates = places.countUpdates();
  std::optional<int64_t> known = updates.asConstant();
  std::optional<Expr> quotients = places.countQuotients();
  if ((known && *known <= ScatterPlaces::fewUpdates) || !quotients)
    return false;
  Expr points = product(context, loop::getDomain(op));
  NamedAttrList attributes(GpuConfig{.threads = blockThreads}.toAttribute(context));
  attributes.set("layout", StringAttr::get(context, "updates"));
  attributes.set("last", UnitAttr::get(context));
  attributes.set("counters", UnitAttr::get(context));
  kernel.setIterationsAttr(Expr::min(points.ceilDiv(ticketUpdates), Expr::constant(context, fullDevice)));
  kernel.setGrainAttr(Expr::constant(context, 1));
  kernel.setScratchAttr(*quotients * 8);
  kernel.setConfigAttr(attributes.getDictionary(context));
  return true;
}

namespace {

class LastEmitter {
public:
  LastEmitter(GpuEmitter &e, loop::ScatterOp op) : e(e), b(e.builder), places(placesOf(op)), emitter(e, places) {}
  void emit();

private:
  using UpdateBody = llvm::function_ref<void(Value word, Value update)>;
  void forUpdates(Value number, UpdateBody body);
  void writeLast(Value number);
  Value wordOf(Value quotient) { return e.getAddress(e.scratch, b.getI64Type(), quotient); }

  GpuEmitter &e;
  OpBuilder &b;
  const ScatterPlaces places;
  PlaceEmitter emitter;
};

} // namespace

/// The thread's updates of the ticket with that number; places of all are asked for first.
void LastEmitter::forUpdates(Value number, UpdateBody body) {
  auto &in = e.invariants;
  Value first = in.add(in.mul(number, e.constant(ticketUpdates)), e.getRegister("tid.x"));
  Value last = in.sub(emitter.updates, e.constant(1));
  Values updates, words;
  for (int64_t i = 0; i < updatesOfThread; ++i) {
    updates.push_back(in.add(first, e.constant(i * blockThreads)));
    words.push_back(wordOf(emitter.quotientOf(e.constant(0), in.min(updates.back(), last))));
  }
  for (auto [update, word] : llvm::zip_equal(updates, words))
    e.createIf(in.compare(arith::CmpIPredicate::slt, update, emitter.updates), {}, [&, update = update, word = word] {
      body(word, update);
      return Values();
    });
}

/// The ticket's points, of those updates that stay.
void LastEmitter::writeLast(Value number) {
  auto &in = e.invariants;
  Value told = e.constant(places.toldPoints), points = in.mul(emitter.updates, told);
  Value first = in.add(in.mul(number, e.constant(ticketUpdates)), e.getRegister("tid.x"));
  Value last = in.sub(points, e.constant(1));
  Values updates, toldPoints, stay;
  for (int64_t i = 0; i < updatesOfThread; ++i) {
    Value point = in.add(first, e.constant(i * blockThreads)), inside = in.min(point, last);
    updates.push_back(in.floorDiv(inside, told, true));
    toldPoints.push_back(in.sub(inside, in.mul(updates.back(), told)));
    Value word = wordOf(emitter.quotientOf(toldPoints.back(), updates.back()));
    Value largest = e.createLoad(b.getI64Type(), 1, word);
    Value isLargest = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, largest, updates.back());
    stay.push_back(arith::AndIOp::create(b, e.loc, isLargest, in.compare(arith::CmpIPredicate::slt, point, points)));
  }
  for (auto [update, toldPoint, stays] : llvm::zip_equal(updates, toldPoints, stay))
    e.createIf(stays, {}, [&, update = update, toldPoint = toldPoint] {
      emitter.apply(emitter.pointAt(toldPoint, update));
      return Values();
    });
}

void LastEmitter::emit() {
  auto &in = e.invariants;
  TicketLoop tickets(e);
  auto countTickets = [&](Value updates) {
    return in.floorDiv(in.add(updates, e.constant(ticketUpdates - 1)), e.constant(ticketUpdates), true);
  };
  Value ofUpdates = countTickets(emitter.updates), reset = ofUpdates, marked = in.add(reset, ofUpdates);
  Value all = in.add(marked, countTickets(in.mul(emitter.updates, e.constant(places.toldPoints))));
  Value blocks = e.emitExpr(Expr(e.kernel.getIterationsAttr()), {});
  auto isBelow = [&](Value ticket, Value end) {
    return arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::slt, ticket, end);
  };
  tickets.emit(all, blocks, [&](Value ticket) {
    auto choice = scf::IfOp::create(b, e.loc, TypeRange(), isBelow(ticket, reset), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    forUpdates(ticket, [&](Value word, Value) { e.createStore(e.constant(-1), word); });
    b.setInsertionPointToStart(choice.elseBlock());
    auto second = scf::IfOp::create(b, e.loc, TypeRange(), isBelow(ticket, marked), /*withElseRegion=*/true);
    b.setInsertionPointToStart(second.thenBlock());
    tickets.createWait(reset);
    forUpdates(in.sub(ticket, reset), [&](Value word, Value update) {
      LLVM::AtomicRMWOp::create(b, e.loc, LLVM::AtomicBinOp::max, word, update, LLVM::AtomicOrdering::monotonic,
                                "device");
    });
    b.setInsertionPointToStart(second.elseBlock());
    tickets.createWait(marked);
    writeLast(in.sub(ticket, marked));
  });
}

void gpu::emitLastScatter(GpuEmitter &e, loop::ScatterOp op) {
  e.setDomain(loop::getDomain(op));
  LastEmitter(e, op).emit();
}
