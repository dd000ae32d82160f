//===- InvariantBuilder.h - hoisted, deduplicated arithmetic ----*- C++ -*-===//
//
// Index arithmetic is pure and never traps, so an operation on it may stand anywhere its operands are defined. This
// builder puts each one directly behind the definition of its innermost operand, that is, in the outermost loop where
// it can be computed, and creates none twice. Emitters may therefore ask for `row * stride` at every access.
//
// Invariant: an op that was inserted behind the later of its operands, or at the beginning of a scope that has them all
// from outside, dominates every place of the scope where both are visible, so that a hit in the table is always usable.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_COMMON_INVARIANTBUILDER_H
#define PTC_CODEGEN_COMMON_INVARIANTBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include <utility>

namespace ptc::codegen {

class InvariantBuilder {
  using Table = llvm::DenseMap<unsigned, llvm::SmallVector<mlir::Operation *, 1>>; // by hash

public:
  /// `entry`: the block that holds what depends on nothing, and in front of which nothing is put.
  InvariantBuilder(mlir::Block *entry, mlir::Location loc) : entry(entry), loc(loc) {}

  mlir::Value constant(int64_t value);
  mlir::Value constant(mlir::TypedAttr value);
  mlir::Value constant(llvm::ArrayRef<int64_t> lanes, mlir::Type elementType);
  /// 0, 1, ..., lanes-1 times `step`.
  mlir::Value iota(int64_t lanes, mlir::Type elementType, int64_t step = 1);
  std::optional<int64_t> asConstant(mlir::Value value) const;

  // Integers of one width; a scalar operand is broadcast when the other is a vector. No result overflows.
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  /// Floor division and modulo, total (see Expr.h). `nonNegative`: a >= 0 and b > 0 are known.
  mlir::Value floorDiv(mlir::Value a, mlir::Value b, bool nonNegative);
  mlir::Value mod(mlir::Value a, mlir::Value b, bool nonNegative);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b); // i1
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value logicalAnd(mlir::Value a, mlir::Value b);
  mlir::Value broadcast(mlir::Value scalar, int64_t lanes);

  /// Any pure op with one result, hoisted and deduplicated.
  template <typename OpTy, typename... Args> mlir::Value get(Args &&...args) {
    mlir::OpBuilder detached(loc.getContext());
    return insert(OpTy::create(detached, loc, std::forward<Args>(args)...));
  }
  mlir::Value insert(mlir::Operation *detached);

  /// While it lives, what would be put in front of `block` is put at its beginning: a branch that others do not take
  /// keeps its divisions to itself.
  class Scope {
  public:
    Scope(InvariantBuilder &builder, mlir::Block *block)
        : builder(builder), outer(std::exchange(builder.entry, block)), known(builder.table) {}
    ~Scope() {
      builder.entry = outer;
      builder.table = std::move(known);
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    InvariantBuilder &builder;
    mlir::Block *outer;
    Table known; // what is computed in the block is not known behind it
  };

  /// Number of regions around the value's definition.
  static unsigned depthOf(mlir::Value value);

private:
  std::optional<std::pair<int64_t, int64_t>> bothConstant(mlir::Value a, mlir::Value b) const;
  std::pair<mlir::Value, mlir::Value> unify(mlir::Value a, mlir::Value b);
  template <typename OpTy> mlir::Value binary(mlir::Value a, mlir::Value b);
  void place(mlir::Operation *op);

  mlir::Block *entry;
  mlir::Location loc;
  Table table;
};

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_INVARIANTBUILDER_H
