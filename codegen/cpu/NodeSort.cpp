//===- NodeSort.cpp - stable sort of rows ---------------------------------===//
//
// Keys become signed 64-bit integers in the order wanted (codegen/common/SortKeys.h), each with its index, and are
// sorted bottom-up by merging runs of 1, 2, 4, ... between two arrays: n log n steps without unpredictable branches
// (the merge selects), stable because the left run wins ties. The body then reads the key region again at each index,
// so that values keep their bits.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/SortKeys.h"
#include "codegen/cpu/NodeEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

namespace {
struct RowSort {
  KernelEmitter &e;
  Value length; // i64
  Type i64;

  template <typename OpTy> Value create(Value a, Value b) const { return OpTy::create(e.builder, e.loc, a, b); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) const {
    return arith::CmpIOp::create(e.builder, e.loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) const {
    return arith::SelectOp::create(e.builder, e.loc, condition, a, b);
  }
  Value address(Value base, Value index) const {
    return LLVM::GEPOp::create(e.builder, e.loc, base.getType(), i64, base, ArrayRef<LLVM::GEPArg>{index});
  }
  Value load(Value base, Value index) const { return e.createLoad(i64, 1, address(base, index)); }

  Value sorted(Value from, Value to) const;
  void mergeRuns(Value from, Value to, Value low, Value width) const;
};
} // namespace

// Merges [low, low+width) and the run behind it into `to`. An array is n keys, then n indices.
void RowSort::mergeRuns(Value from, Value to, Value low, Value width) const {
  Value middle = create<arith::MinSIOp>(create<arith::AddIOp>(low, width), length);
  Value high = create<arith::MinSIOp>(create<arith::AddIOp>(middle, width), length);
  Value last = create<arith::SubIOp>(length, e.constant(1));
  Value fromIndex = address(from, length), toIndex = address(to, length);
  e.createLoop(low, high, 1, {low, middle}, [&](Value out, ValueRange carried) -> SmallVector<Value> {
    Value left = carried[0], right = carried[1];
    Value leftKey = load(from, create<arith::MinSIOp>(left, last));
    Value rightKey = load(from, create<arith::MinSIOp>(right, last));
    Value hasRight = compare(arith::CmpIPredicate::slt, right, high);
    Value leftEmpty = compare(arith::CmpIPredicate::sge, left, middle);
    Value smaller = compare(arith::CmpIPredicate::slt, rightKey, leftKey);
    Value takeRight = create<arith::AndIOp>(hasRight, create<arith::OrIOp>(leftEmpty, smaller));
    Value index = load(fromIndex, select(takeRight, right, left));
    e.createStore(select(takeRight, rightKey, leftKey), address(to, out));
    e.createStore(index, address(toIndex, out));
    Value step = arith::ExtUIOp::create(e.builder, e.loc, i64, takeRight);
    Value other = create<arith::SubIOp>(e.constant(1), step);
    return {create<arith::AddIOp>(left, other), create<arith::AddIOp>(right, step)};
  });
}

// Sorts what lies at `from`; returns the array, of the two, that holds the result.
Value RowSort::sorted(Value from, Value to) const {
  OpBuilder &builder = e.builder;
  SmallVector<Value> init{e.constant(1), from, to};
  SmallVector<Type> types(ValueRange(init).getTypes());
  auto loop = scf::WhileOp::create(
      builder, e.loc, types, init,
      [&](OpBuilder &, Location loc, ValueRange state) {
        Value isShort = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, state[0], length);
        scf::ConditionOp::create(builder, loc, isShort, state);
      },
      [&](OpBuilder &, Location loc, ValueRange state) {
        Value width = state[0];
        Value twice = create<arith::AddIOp>(width, width);
        auto runs = scf::ForOp::create(builder, loc, e.constant(0), length, twice);
        {
          OpBuilder::InsertionGuard guard(builder);
          builder.setInsertionPointToStart(runs.getBody());
          mergeRuns(state[1], state[2], runs.getInductionVar(), width);
        }
        scf::YieldOp::create(builder, loc, ValueRange{twice, state[2], state[1]});
      });
  return loop.getResult(1);
}

void NodeEmitter::emitSort(loop::SortOp op, const EmissionPoint &shared, int64_t sharedDims) {
  int64_t last = int64_t(domain.size()) - 1;
  SmallVector<int64_t> outer;
  for (int64_t dim = sharedDims; dim < last; ++dim)
    outer.push_back(dim);
  Points points{shared};
  emitLoops(e, domain, outer, points, {}, [&](const Points &at, ValueRange) -> SmallVector<Value> {
    EmissionPoint point = at.front();
    auto keyAt = [&](Value position) {
      point.dims[size_t(last)] = position;
      return e.emitRegion(op.getKey(), point);
    };
    RowSort row{e, e.emitExpr(domain[size_t(last)], point), e.builder.getI64Type()};
    Value first = e.getLocalMemory(op);
    Value second = row.address(first, row.create<arith::AddIOp>(row.length, row.length));
    e.createLoop(e.constant(0), row.length, 1, {}, [&](Value i, ValueRange) -> SmallVector<Value> {
      Value key = codegen::orderedKey(e, keyAt(i), op.getIsUnsigned(), op.getDescending());
      e.createStore(key, row.address(first, i));
      e.createStore(i, row.address(row.address(first, row.length), i));
      return {};
    });
    Value result = row.sorted(first, second);
    Value kept = e.emitExpr(op.getKept(), at.front());
    e.createLoop(e.constant(0), kept, 1, {}, [&](Value rank, ValueRange) -> SmallVector<Value> {
      Value index = row.load(row.address(result, row.length), rank);
      Value value = keyAt(index);
      point.dims[size_t(last)] = rank;
      e.emitRegion(op.getBody(), point, {value, index});
      return {};
    });
    return {};
  });
}
