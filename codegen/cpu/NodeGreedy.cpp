//===- NodeGreedy.cpp - greedy choice in rows -----------------------------===//
//
// The positions of the points chosen so far lie in the kernel's local memory, in the order in which they were chosen. A
// candidate is compared with one vector of them after the other until some lane conflicts: rows cost candidates x
// chosen at most. Many candidates meet their conflict early, since the first of those chosen are the best, but where
// boxes of many classes share a row, most meet none.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/NodeEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

namespace {
struct RowChoice {
  KernelEmitter &e;
  loop::GreedyOp op;
  EmissionPoint point; // its last dim is the candidate's
  Value chosen;        // positions, i64

  Value address(Value index) const {
    Type i64 = e.builder.getI64Type();
    return LLVM::GEPOp::create(e.builder, e.loc, chosen.getType(), i64, chosen, ArrayRef<LLVM::GEPArg>{index});
  }

  /// Whether none of the first `count` chosen ones conflicts with the candidate.
  Value isFree(Value count) {
    OpBuilder &b = e.builder;
    Value isTrue = e.invariants.constant(b.getBoolAttr(true));
    int64_t lanes = e.chooseLanes(op);
    // Regions are filled when they are the loop's: what is hoisted out of them goes by how deep they are.
    auto search = scf::WhileOp::create(b, e.loc, TypeRange{b.getI64Type(), b.getI1Type()},
                                       ValueRange{e.constant(0), isTrue}, nullptr, nullptr);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&search.getBefore().front());
    ValueRange state = search.getBeforeArguments();
    Value isLeft = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::slt, state[0], count);
    scf::ConditionOp::create(b, e.loc, arith::AndIOp::create(b, e.loc, isLeft, state[1]), state);
    b.setInsertionPointToStart(&search.getAfter().front());
    state = search.getAfterArguments();
    Value conflicts = conflictsWith(state[0], count, lanes);
    Value next = arith::AddIOp::create(b, e.loc, state[0], e.constant(lanes));
    scf::YieldOp::create(b, e.loc, ValueRange{next, arith::XOrIOp::create(b, e.loc, conflicts, isTrue)});
    return search.getResult(1);
  }

  /// Whether one of the chosen ones `first`, ... conflicts with the candidate, of those below `count`.
  Value conflictsWith(Value first, Value count, int64_t lanes) {
    OpBuilder &b = e.builder;
    EmissionPoint others = point;
    if (lanes > 1) {
      others.lanes = lanes;
      others.vectorDim = int64_t(point.dims.size()); // no index has this dim: lanes differ in the chosen point alone
      others.mask = e.laneMask(arith::SubIOp::create(b, e.loc, count, first), lanes);
    }
    Value other = e.createLoad(b.getI64Type(), lanes, address(first), others.mask);
    Value conflicts = e.emitRegion(op.getConflict(), others, {other});
    if (!isa<VectorType>(conflicts.getType()))
      return conflicts;
    return e.anyLane(arith::AndIOp::create(b, e.loc, conflicts, others.mask));
  }

  /// Decides about the candidate; returns how many are chosen then.
  Value decide(Value count) {
    OpBuilder &b = e.builder;
    Value mayBe = e.emitRegion(op.getCandidate(), point, {count});
    auto decision = scf::IfOp::create(b, e.loc, TypeRange{b.getI1Type()}, mayBe, /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&decision.getThenRegion().front());
      scf::YieldOp::create(b, e.loc, isFree(count));
      b.setInsertionPointToStart(&decision.getElseRegion().front());
      scf::YieldOp::create(b, e.loc, mayBe);
    }
    Value isChosen = decision.getResult(0);
    e.createStore(point.dims.back(), address(count)); // counts only if it is chosen; count is at most the position
    e.emitRegion(op.getBody(), point, {isChosen});
    Value one = arith::ExtUIOp::create(b, e.loc, b.getI64Type(), isChosen);
    return arith::AddIOp::create(b, e.loc, count, one);
  }
};
} // namespace

void NodeEmitter::emitGreedy(loop::GreedyOp op, const EmissionPoint &shared, int64_t sharedDims) {
  int64_t last = int64_t(domain.size()) - 1;
  SmallVector<int64_t> outer;
  for (int64_t dim = sharedDims; dim < last; ++dim)
    outer.push_back(dim);
  Points points{shared};
  emitLoops(e, domain, outer, points, {}, [&](const Points &at, ValueRange) -> SmallVector<Value> {
    RowChoice row{e, op, at.front(), e.getLocalMemory(op)};
    Value length = e.emitExpr(domain[size_t(last)], at.front());
    e.createLoop(e.constant(0), length, 1, {e.constant(0)}, [&](Value i, ValueRange carried) -> SmallVector<Value> {
      row.point.dims[size_t(last)] = i;
      return {row.decide(carried[0])};
    });
    return {};
  });
}
