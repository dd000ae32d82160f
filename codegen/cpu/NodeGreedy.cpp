//===- NodeGreedy.cpp - greedy choice in rows -----------------------------===//
//
// A candidate is compared with the points chosen before, some vectors of them at a time, until some lane conflicts:
// rows cost candidates x chosen at most. Many candidates meet their conflict early, since the first of those chosen are
// the best, but where boxes of many classes share a row, most meet none. What is computed is cut by what it depends on
// (ConflictParts.h): what a chosen point brings to the comparison lies in the kernel's local memory, value by value in
// the order in which points were chosen, and what is left of a pair is asked in two steps: most pairs are no conflict
// for a simple reason. In long rows most of those remembered are in the order of a bound, so that only the neighbours
// of a candidate are compared (GreedyBuckets.h).
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/GreedyBuckets.h"
#include "codegen/cpu/NodeEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;
using codegen::ConflictParts;

static constexpr int64_t vectorsAtOnce = 4; // of chosen points, for one branch

namespace {
struct RowChoice {
  KernelEmitter &e;
  mutable loop::GreedyOp op;
  const ConflictParts &parts;
  EmissionPoint point;       // its last dim is the candidate's
  SmallVector<Value> arrays; // of remembered values
  int64_t lanes;
  std::optional<codegen::ConflictInterval> interval;
  std::optional<GreedyBuckets> buckets; // by the interval

  Value getTrue() const { return e.invariants.constant(e.builder.getBoolAttr(true)); }
  Value both(Value a, Value b) const { return !a ? b : !b ? a : arith::AndIOp::create(e.builder, e.loc, a, b); }

  /// The conjunction; null without conditions.
  Value all(const BodyEmitter &body, ArrayRef<Value> conditions) const {
    Value result;
    for (Value condition : conditions) {
      Value holds = body.lookup(condition);
      if (result && isVector(result) != isVector(holds)) {
        holds = e.splat(holds, lanes);
        result = e.splat(result, lanes);
      }
      result = both(result, holds);
    }
    return result;
  }

  Value decide(const BodyEmitter &own, Value count, ValueRange order);
  Value searchAll(const BodyEmitter &own, Value from, Value to, Value isFree) const;
  Value search(const BodyEmitter &own, Value from, Value to, Value isFree, int64_t vectors, Value &reached) const;
  Value conflictsWith(const BodyEmitter &own, Value first, Value count, int64_t vectors) const;
  void bindOwn(const BodyEmitter &own, BodyEmitter &body) const;
  Value remember(const BodyEmitter &own, Value count) const;
  SmallVector<Value> rememberInOrder(const BodyEmitter &own, Value count, ValueRange order);
  SmallVector<Value> compare(Value count, ValueRange order);
  SmallVector<Value> choose(TypeRange types, Value condition, llvm::function_ref<SmallVector<Value>()> then,
                            ValueRange otherwise) const;
  SmallVector<Value> step(Value chosen, Value count, ValueRange order);
};
} // namespace

void RowChoice::bindOwn(const BodyEmitter &own, BodyEmitter &body) const {
  for (Operation *inner : parts.own)
    body.bind(inner->getResults(), llvm::map_to_vector(inner->getResults(), [&](Value v) { return own.lookup(v); }));
}

/// Whether some of the vectors of remembered points from `first` on conflicts with the candidate; of one vector, those
/// below `count`.
Value RowChoice::conflictsWith(const BodyEmitter &own, Value first, Value count, int64_t vectors) const {
  OpBuilder &b = e.builder;
  SmallVector<BodyEmitter> bodies;
  SmallVector<Value> may;
  Value any;
  for (int64_t i = 0; i < vectors; ++i) {
    EmissionPoint others = point;
    others.lanes = lanes;
    others.vectorDim = int64_t(point.dims.size()); // no index has this dim: lanes differ in the chosen point alone
    if (vectors == 1)
      others.mask = e.laneMask(arith::SubIOp::create(b, e.loc, count, first), lanes);
    BodyEmitter &body = bodies.emplace_back(e, others);
    bindOwn(own, body);
    Value from = arith::AddIOp::create(b, e.loc, first, e.constant(i * lanes));
    for (auto [value, array] : llvm::zip_equal(parts.remembered, arrays)) {
      Type memory = KernelEmitter::getMemoryType(value.getType());
      Value address = LLVM::GEPOp::create(b, e.loc, array.getType(), memory, array, ArrayRef<LLVM::GEPArg>{from});
      body.bind(value, e.createLoad(value.getType(), lanes, address));
    }
    body.emitOps(parts.early);
    Value holds = all(body, parts.earlyConditions);
    holds = e.splat(holds ? holds : getTrue(), lanes);
    may.push_back(both(holds, others.mask));
    any = any ? arith::OrIOp::create(b, e.loc, any, may.back()).getResult() : may.back();
  }
  Value isSome = e.anyLane(any);
  if (parts.lateConditions.empty())
    return isSome;
  auto closer = scf::IfOp::create(b, e.loc, TypeRange{b.getI1Type()}, isSome, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&closer.getElseRegion().front());
  scf::YieldOp::create(b, e.loc, isSome);
  b.setInsertionPointToStart(&closer.getThenRegion().front());
  any = {};
  for (auto [body, early] : llvm::zip_equal(bodies, may)) {
    body.emitOps(parts.late);
    Value holds = both(early, e.splat(all(body, parts.lateConditions), lanes));
    any = any ? arith::OrIOp::create(b, e.loc, any, holds).getResult() : holds;
  }
  scf::YieldOp::create(b, e.loc, e.anyLane(any));
  return closer.getResult(0);
}

/// Goes on comparing while the candidate is free and there are remembered points before `to`; whether it still is then.
Value RowChoice::search(const BodyEmitter &own, Value from, Value to, Value isFree, int64_t vectors,
                        Value &reached) const {
  OpBuilder &b = e.builder;
  // Regions are filled when they are the loop's: what is hoisted out of them goes by how deep they are.
  auto loop = scf::WhileOp::create(b, e.loc, TypeRange{b.getI64Type(), b.getI1Type()}, ValueRange{from, isFree},
                                   nullptr, nullptr);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&loop.getBefore().front());
  ValueRange state = loop.getBeforeArguments();
  Value isLeft = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::slt, state[0], to);
  scf::ConditionOp::create(b, e.loc, both(isLeft, state[1]), state);
  b.setInsertionPointToStart(&loop.getAfter().front());
  state = loop.getAfterArguments();
  Value conflicts = conflictsWith(own, state[0], to, vectors);
  Value next = arith::AddIOp::create(b, e.loc, state[0], e.constant(vectors * lanes));
  scf::YieldOp::create(b, e.loc, ValueRange{next, arith::XOrIOp::create(b, e.loc, conflicts, getTrue())});
  reached = loop.getResult(0);
  return loop.getResult(1);
}

/// Goes on in many vectors at a time, then in single ones.
Value RowChoice::searchAll(const BodyEmitter &own, Value from, Value to, Value isFree) const {
  OpBuilder &b = e.builder;
  Value step = e.constant(vectorsAtOnce * lanes), length = arith::SubIOp::create(b, e.loc, to, from), reached;
  Value whole = arith::MulIOp::create(b, e.loc, arith::DivUIOp::create(b, e.loc, length, step), step);
  isFree = search(own, from, arith::AddIOp::create(b, e.loc, from, whole), isFree, vectorsAtOnce, reached);
  return search(own, reached, to, isFree, 1, reached);
}

/// Whether none of the first `count` remembered points conflicts with the candidate.
Value RowChoice::decide(const BodyEmitter &own, Value count, ValueRange order) {
  if (!buckets)
    return searchAll(own, e.constant(0), count, getTrue());
  auto [from, to] = buckets->findRange(own.lookup(interval->ownLower), own.lookup(interval->ownUpper), order);
  // First those in order, then those behind them.
  return e.createLoop(e.constant(0), e.constant(2), 1, {from, to, getTrue()},
                      [&](Value, ValueRange part) -> SmallVector<Value> {
                        return {order.front(), count, searchAll(own, part[0], part[1], part[2])};
                      })[2];
}

/// Keeps what the candidate, which is chosen, brings to later comparisons; returns how many are remembered then.
Value RowChoice::remember(const BodyEmitter &own, Value count) const {
  OpBuilder &b = e.builder;
  BodyEmitter body(e, point);
  bindOwn(own, body);
  body.bind(op.getConflict().front().getArgument(0), point.dims.back());
  body.emitOps(parts.other);
  for (auto [value, array] : llvm::zip_equal(parts.remembered, arrays)) {
    Type memory = KernelEmitter::getMemoryType(value.getType());
    Value address = LLVM::GEPOp::create(b, e.loc, array.getType(), memory, array, ArrayRef<LLVM::GEPArg>{count});
    e.createStore(body.lookup(value), address);
  }
  Value counts = all(body, parts.otherConditions);
  Value one = counts ? arith::ExtUIOp::create(b, e.loc, b.getI64Type(), counts) : e.constant(1);
  return arith::AddIOp::create(b, e.loc, count, one);
}

/// How many are remembered with the candidate, which is chosen, and their order.
SmallVector<Value> RowChoice::rememberInOrder(const BodyEmitter &own, Value count, ValueRange order) {
  SmallVector<Value> next{remember(own, count)};
  if (buckets)
    next.append(buckets->extend(next.front(), order));
  return next;
}

SmallVector<Value> RowChoice::choose(TypeRange types, Value condition, llvm::function_ref<SmallVector<Value>()> then,
                                     ValueRange otherwise) const {
  return e.emitChoice(condition, types, [&](bool isTrue) { return isTrue ? then() : SmallVector<Value>(otherwise); });
}

/// Whether the candidate is chosen; how many are remembered then, and their order.
SmallVector<Value> RowChoice::compare(Value count, ValueRange order) {
  BodyEmitter own(e, point);
  own.emitOps(parts.own);
  Value canConflict = all(own, parts.ownConditions);
  auto decision = [&]() -> SmallVector<Value> { return {decide(own, count, order)}; };
  Value isFree = canConflict ? choose({e.builder.getI1Type()}, canConflict, decision, getTrue())[0] : decision()[0];
  SmallVector<Value> now{count};
  llvm::append_range(now, order);
  SmallVector<Value> result{isFree};
  result.append(choose(ValueRange(now).getTypes(), isFree, [&] { return rememberInOrder(own, count, order); }, now));
  return result;
}

/// Decides about the candidate; returns how many are chosen, how many of those remembered, and their order then.
SmallVector<Value> RowChoice::step(Value chosen, Value count, ValueRange order) {
  Value mayBe = e.emitRegion(op.getCandidate(), point, {chosen});
  SmallVector<Value> now{mayBe, count};
  llvm::append_range(now, order);
  SmallVector<Value> next = choose(ValueRange(now).getTypes(), mayBe, [&] { return compare(count, order); }, now);
  Value isChosen = next.front();
  e.emitRegion(op.getBody(), point, {isChosen});
  Value one = arith::ExtUIOp::create(e.builder, e.loc, e.builder.getI64Type(), isChosen);
  next.front() = arith::AddIOp::create(e.builder, e.loc, chosen, one);
  return next;
}

// Lanes that fill a vector with the widest of what is read for a pair.
static int64_t lanesFor(const KernelEmitter &e, const ConflictParts &parts) {
  unsigned widest = 8;
  for (Value value : parts.remembered)
    widest = std::max(widest, KernelEmitter::getMemoryType(value.getType()).getIntOrFloatBitWidth());
  return std::max<int64_t>(e.traits.vectorBits / int64_t(widest), 2);
}

void NodeEmitter::emitGreedy(loop::GreedyOp op, const EmissionPoint &shared, int64_t sharedDims) {
  int64_t last = int64_t(domain.size()) - 1;
  SmallVector<int64_t> outer;
  for (int64_t dim = sharedDims; dim < last; ++dim)
    outer.push_back(dim);
  Points points{shared};
  ConflictParts parts(op);
  auto interval = GreedyBuckets::findInterval(parts, domain[size_t(last)]);
  emitLoops(e, domain, outer, points, {}, [&](const Points &at, ValueRange) -> SmallVector<Value> {
    RowChoice row{e, op, parts, at.front(), {}, lanesFor(e, parts), interval, {}};
    for (size_t i = 0; i < parts.remembered.size(); ++i) {
      Value offset = e.emitExpr(parts.getOffset(i, domain[size_t(last)]), at.front());
      row.arrays.push_back(e.getAddress(e.getLocalMemory(op), e.builder.getI8Type(), offset));
    }
    SmallVector<Value> state{e.constant(0), e.constant(0)};
    if (interval) {
      row.buckets.emplace(e, parts, *interval, e.getLocalMemory(op), domain[size_t(last)], at.front());
      state.append(row.buckets->createState());
    }
    Value length = e.emitExpr(domain[size_t(last)], at.front());
    e.createLoop(e.constant(0), length, 1, state, [&](Value i, ValueRange carried) -> SmallVector<Value> {
      row.point.dims[size_t(last)] = i;
      return row.step(carried[0], carried[1], carried.drop_front(2));
    });
    return {};
  });
}
