//===- GreedyBuckets.h - chosen points by where they lie --------*- C++ -*-===//
#ifndef PTC_CODEGEN_CPU_GREEDYBUCKETS_H
#define PTC_CODEGEN_CPU_GREEDYBUCKETS_H

#include "codegen/common/ConflictInterval.h"
#include "codegen/cpu/CpuEmitter.h"

namespace ptc::cpu {

/// Keeps most of a row's remembered points in the order of a bound, so that a candidate meets those alone that lie
/// about where it does. State is a list of values that the loop over candidates carries: how many points are in order,
/// then what a bound's bucket is computed with.
class GreedyBuckets {
public:
  /// `memory` has `getBytes(count)` bytes for rows of `count` points; the remembered values lie in it from
  /// `parts.getOffset` on.
  GreedyBuckets(KernelEmitter &e, const codegen::ConflictParts &parts, const codegen::ConflictInterval &interval,
                mlir::Value memory, Expr count, const EmissionPoint &row);
  static Expr getBytes(const codegen::ConflictParts &parts, Expr count);
  /// The interval to order by, where there is one and rows of `count` points may be long enough.
  static std::optional<codegen::ConflictInterval> findInterval(const codegen::ConflictParts &parts, Expr count);

  /// The state of a row of which nothing is in order.
  llvm::SmallVector<mlir::Value> createState();
  /// [from, to) in the arrays: all points in order that may conflict with a candidate of these bounds.
  std::pair<mlir::Value, mlir::Value> findRange(mlir::Value ownLower, mlir::Value ownUpper, mlir::ValueRange state);
  /// Puts all `count` remembered points in order if many of them are not; the next state.
  llvm::SmallVector<mlir::Value> extend(mlir::Value count, mlir::ValueRange state);

private:
  using Values = llvm::SmallVector<mlir::Value>;
  /// What a bound's bucket is computed with.
  struct Scale {
    mlir::Value origin, factor;
  };

  template <typename OpTy> mlir::Value make(mlir::Value a, mlir::Value b) const {
    return OpTy::create(e.builder, e.loc, a, b);
  }
  mlir::Value number(double value) const;
  mlir::Value isOrdered(mlir::arith::CmpFPredicate predicate, mlir::Value a, mlir::Value b) const;
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) const;
  mlir::Value entry(mlir::Value table, mlir::Value index) const;
  mlir::Value loadEntry(mlir::Value table, mlir::Value index) const;
  mlir::Value loadBound(mlir::Value bound, mlir::Value index) const;

  mlir::Value lowerBucket(mlir::Value bound, Scale scale) const;
  mlir::Value upperBucket(mlir::Value bound, Scale scale) const;
  Scale measure(mlir::Value count) const;
  void countBuckets(mlir::Value count, Scale scale) const;
  void addUp() const;
  void move(mlir::Value count, Scale scale) const;

  KernelEmitter &e;
  const codegen::ConflictParts &parts;
  const codegen::ConflictInterval interval;
  Values arrays, copies;     // of remembered values
  mlir::Value starts, first; // tables, see the essay
  mlir::FloatType type;      // of bounds
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_GREEDYBUCKETS_H
