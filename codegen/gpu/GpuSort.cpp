//===- GpuSort.cpp - stable sort of rows ----------------------------------===//
//
// Keys become signed 64-bit integers in the order wanted (codegen/common/SortKeys.h), each with its index, in scratch
// memory of the row; the row's threads sort them by a bitonic network (Batcher 1968) in the form in which every
// comparison puts the smaller one first: what lies behind the end of the row counts as largest, never moves, and needs
// neither memory nor comparisons. Index decides between equal keys, so that the sort is stable and the network need not
// be.
//
// Stage s merges sorted runs of 2^(s-1) elements: first element i with the mirrored one of the neighbouring run, then
// at distances 2^(s-2), ..., 1. n/2 comparisons each, shared by the threads, with a barrier behind each: n log^2 n / 4
// comparisons in all.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/SortKeys.h"
#include "codegen/gpu/GpuTemplates.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

namespace {

struct RowNetwork {
  GpuEmitter &e;
  Value memory, length; // keys, then indices

  Value keyAt(Value index) { return e.getAddress(memory, e.builder.getI64Type(), index); }
  Value indexAt(Value index) { return keyAt(e.invariants.add(index, length)); }
  Value load(Value address) { return e.createLoad(e.builder.getI64Type(), 1, address); }
  template <typename OpTy> Value create(Value a, Value b) { return OpTy::create(e.builder, e.loc, a, b); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(e.builder, e.loc, predicate, a, b);
  }

  void exchange(Value low, Value high);
  void pass(Value pairs, llvm::function_ref<std::pair<Value, Value>(Value)> pairOf);
  void sort();
};

} // namespace

void RowNetwork::exchange(Value low, Value high) {
  e.createIf(compare(arith::CmpIPredicate::slt, high, length), {}, [&] {
    Value a = load(keyAt(low)), b = load(keyAt(high)), i = load(indexAt(low)), j = load(indexAt(high));
    Value isLess = compare(arith::CmpIPredicate::slt, b, a), isEqual = compare(arith::CmpIPredicate::eq, a, b);
    Value isBefore = compare(arith::CmpIPredicate::slt, j, i);
    e.createIf(create<arith::OrIOp>(isLess, create<arith::AndIOp>(isEqual, isBefore)), {}, [&] {
      e.createStore(b, keyAt(low));
      e.createStore(a, keyAt(high));
      e.createStore(j, indexAt(low));
      e.createStore(i, indexAt(high));
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
}

void RowNetwork::pass(Value pairs, llvm::function_ref<std::pair<Value, Value>(Value)> pairOf) {
  e.createStrided(e.row, pairs, {}, [&](Value number, ValueRange) {
    auto [low, high] = pairOf(number);
    exchange(low, high);
    return SmallVector<Value>();
  });
  e.createBarrier();
}

void RowNetwork::sort() {
  OpBuilder &b = e.builder;
  Value one = e.constant(1);
  // 2^stages is the length rounded up; a length of 0 or 1 has no stages.
  Value atLeastOne = e.invariants.max(length, one);
  Value zeros = math::CountLeadingZerosOp::create(b, e.loc, create<arith::SubIOp>(atLeastOne, one));
  Value stages = create<arith::SubIOp>(e.constant(64), zeros);
  Value pairs = create<arith::DivUIOp>(create<arith::ShLIOp>(one, stages), e.constant(2));
  e.createLoop(one, create<arith::AddIOp>(stages, one), 1, {}, [&](Value stage, ValueRange) {
    Value shift = create<arith::SubIOp>(stage, one), half = create<arith::ShLIOp>(one, shift);
    pass(pairs, [&](Value number) {
      Value run = create<arith::ShRUIOp>(number, shift);
      Value place = create<arith::AndIOp>(number, create<arith::SubIOp>(half, one));
      Value start = create<arith::ShLIOp>(run, stage);
      Value end = create<arith::AddIOp>(start, create<arith::ShLIOp>(half, one));
      return std::pair(create<arith::AddIOp>(start, place),
                       create<arith::SubIOp>(create<arith::SubIOp>(end, one), place));
    });
    e.createLoop(e.constant(0), shift, 1, {}, [&](Value done, ValueRange) {
      Value bits = create<arith::SubIOp>(create<arith::SubIOp>(shift, one), done);
      Value distance = create<arith::ShLIOp>(one, bits);
      pass(pairs, [&](Value number) {
        Value run = create<arith::ShRUIOp>(number, bits);
        Value place = create<arith::AndIOp>(number, create<arith::SubIOp>(distance, one));
        Value low = create<arith::AddIOp>(create<arith::ShLIOp>(run, create<arith::AddIOp>(bits, one)), place);
        return std::pair(low, create<arith::AddIOp>(low, distance));
      });
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
}

void gpu::emitSortRow(GpuEmitter &e, loop::SortOp op, const EmissionPoint &start, Expr extent) {
  EmissionPoint point = start;
  size_t last = point.dims.size() - 1;
  RowNetwork row{e, e.getLocalMemory(op), e.emitExpr(extent, point)};
  auto valueAt = [&](Value position) {
    point.dims[last] = position;
    return e.emitRegion(op.getKey(), point);
  };
  e.createStrided(e.row, row.length, {}, [&](Value i, ValueRange) {
    Value key = codegen::orderedKey(e, valueAt(i), op.getIsUnsigned(), op.getDescending());
    e.createStore(key, row.keyAt(i));
    e.createStore(i, row.indexAt(i));
    return SmallVector<Value>();
  });
  e.createBarrier();
  row.sort();
  Value kept = e.emitExpr(op.getKept(), point);
  e.createStrided(e.row, kept, {}, [&](Value rank, ValueRange) {
    Value index = row.load(row.indexAt(rank)), value = valueAt(index);
    point.dims[last] = rank;
    e.emitRegion(op.getBody(), point, {value, index});
    return SmallVector<Value>();
  });
  e.createBarrier(); // the next row is sorted in the same memory
}
