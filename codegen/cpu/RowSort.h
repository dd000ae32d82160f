//===- RowSort.h - points of a row, put in order ----------------*- C++ -*-===//
//
// A point is a key, a signed 64-bit integer in the order wanted, and its index. Points lie in two arrays of work space,
// which the steps of a sort go back and forth between.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_ROWSORT_H
#define PTC_CODEGEN_CPU_ROWSORT_H

#include "codegen/cpu/NodeEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace ptc::cpu {

constexpr int64_t digitBits = 11;
constexpr int64_t digits = 1 << digitBits; // also the number of buckets
constexpr int64_t manyPoints = 256;        // for which a table of counts pays
constexpr int64_t wordBytes = 8;

inline bool mayHaveMany(Expr length) { return length.asConstant().value_or(manyPoints) >= manyPoints; }

/// Whether rows along the dim are lanes of which each keeps its first few points (LaneSelection.cpp).
bool selectsInLanes(loop::SortOp op, int64_t dim);
/// Does so at a vector of rows.
void emitLaneSelection(KernelEmitter &emitter, loop::SortOp op, const EmissionPoint &rows);

struct RowSort {
  using Value = mlir::Value;

  KernelEmitter &e;
  Value length; // i64; an array is that many keys, then as many indices
  mlir::IntegerType i64;
  Value from, to;                // the array that holds the points, and the other one
  Value sizes = {};              // a table of counts
  Value count = {};              // of points
  Value lowest = {}, range = {}; // of keys: the first one, and how far the last one is from it

  template <typename OpTy> Value create(Value a, Value b) const { return OpTy::create(e.builder, e.loc, a, b); }
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, Value b) const {
    return mlir::arith::CmpIOp::create(e.builder, e.loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) const {
    return mlir::arith::SelectOp::create(e.builder, e.loc, condition, a, b);
  }
  Value address(Value base, Value index, mlir::Type type) const {
    return mlir::LLVM::GEPOp::create(e.builder, e.loc, base.getType(), type, base,
                                     llvm::ArrayRef<mlir::LLVM::GEPArg>{index});
  }
  Value address(Value base, Value index) const { return address(base, index, i64); }
  Value load(Value base, Value index) const { return e.createLoad(i64, 1, address(base, index)); }
  /// What differs where branches meet.
  llvm::SmallVector<Value> getState() const { return {from, to, count, lowest, range}; }
  void setState(mlir::ValueRange state);
  /// Runs one of two that change the state.
  void choose(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);

  /// Makes points of keys 0, 1, ..., `points` - 1.
  void fill(Value points, llvm::function_ref<Value(Value)> keyAt);
  /// The array, of the two, that holds the points in order.
  Value sorted(bool mayBeMany) const;

  //===--- RowSelection.cpp -----------------------------------------------===//

  /// Keeps the buckets that hold the first `kept` where that is much less.
  void pickFew(Value kept);
  /// The keys of a row in as few bits as they need, not yet points.
  struct Keys {
    loop::SortOp op;
    EmissionPoint row;
    mlir::IntegerType type;
    Value memory; // `getKeyBytes` of it
  };
  static Expr getKeyBytes(Expr length);
  /// Whether `collectFew` may be called: at least one is kept, and of many.
  Value areVeryFew(Value kept) const;
  /// Makes points of those alone that may be among the first `kept`.
  void collectFew(const Keys &keys, Value kept);

  //===--- Steps ----------------------------------------------------------===//

  Value rangeBits() const;
  Value digitOf(Value key, Value shift) const;
  void countDigits(Value from, Value points, Value shift) const;
  Value findBucket(Value kept) const;
  Value pick(Value kept) const;
  void moveByDigit(Value from, Value to, Value shift) const;
  Value sortedByDigits() const;
  void mergeRuns(Value from, Value to, Value low, Value width) const;
  Value merged() const;
  void minimaOf(const Keys &keys, Value groups) const;
  Value findBound(mlir::IntegerType type, Value groups, Value kept);
  llvm::SmallVector<Value> endsOfMinima(mlir::IntegerType type, Value groups) const;
  void collectFirst(const Keys &keys, Value groups);
  Value bitsOf(Value lanes) const;
  Value widened(Value key) const;
  Value collectUpTo(const Keys &keys, Value bound, Value kept) const;
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_ROWSORT_H
