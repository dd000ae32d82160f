//===- ScalarBuilder.h - scalar bodies of pointwise primitives --*- C++ -*-===//
//
// The vocabulary in which rows of PrimPointwise.td write their bodies: total
// scalar operations on signless values, chosen by the operand's type and the
// signedness of the primitive's element type. Emits arith and math ops.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_PRIM_SCALARBUILDER_H
#define PTC_IR_PRIM_SCALARBUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include <functional>

namespace ptc::prim {

class ScalarBuilder {
public:
  /// `isUnsigned`: the operands' element type is an unsigned integer.
  ScalarBuilder(mlir::OpBuilder &builder, mlir::Location loc, bool isUnsigned)
      : b(builder), loc(loc), isUnsigned(isUnsigned) {}

  mlir::Value add(mlir::Value a, mlir::Value c);
  mlir::Value sub(mlir::Value a, mlir::Value c);
  mlir::Value mul(mlir::Value a, mlir::Value c);
  mlir::Value div(mlir::Value a, mlir::Value c);
  mlir::Value rem(mlir::Value a, mlir::Value c);
  mlir::Value mod(mlir::Value a, mlir::Value c);
  mlir::Value pow(mlir::Value a, mlir::Value c);
  mlir::Value maximum(mlir::Value a, mlir::Value c);
  mlir::Value minimum(mlir::Value a, mlir::Value c);
  mlir::Value abs(mlir::Value a);
  mlir::Value neg(mlir::Value a);
  mlir::Value sign(mlir::Value a);
  mlir::Value relu(mlir::Value a);
  mlir::Value sigmoid(mlir::Value a);
  mlir::Value bitAnd(mlir::Value a, mlir::Value c);
  mlir::Value bitOr(mlir::Value a, mlir::Value c);
  mlir::Value bitXor(mlir::Value a, mlir::Value c);
  mlir::Value bitNot(mlir::Value a);
  mlir::Value shiftLeft(mlir::Value a, mlir::Value c);
  mlir::Value shiftRight(mlir::Value a, mlir::Value c);
  mlir::Value equal(mlir::Value a, mlir::Value c);
  mlir::Value notEqual(mlir::Value a, mlir::Value c);
  mlir::Value less(mlir::Value a, mlir::Value c);
  mlir::Value lessEqual(mlir::Value a, mlir::Value c);
  mlir::Value isNan(mlir::Value a);
  mlir::Value isInf(mlir::Value a);
  mlir::Value select(mlir::Value c, mlir::Value a, mlir::Value d);
  /// Conversion from and to signless scalars; `to` and `toUnsigned` describe
  /// the result, the builder's own signedness the operand.
  mlir::Value convert(mlir::Value a, mlir::Type to, bool toUnsigned);

  /// The bits of `a` as another type of the same width; a boolean is a byte of 0 or 1.
  mlir::Value bitcast(mlir::Value a, mlir::Type to);
  /// 64 random bits for two words of 64 bits; the row in PrimPointwise.td says which.
  mlir::Value philox(mlir::Value counter, mlir::Value key);

  /// Whether a shift's amount is known to be below the width; null: it never is.
  std::function<bool(mlir::Value amount, unsigned width)> isBelow;

  mlir::Value constant(mlir::Type type, double value);
  mlir::Value zero(mlir::Value like) { return constant(like.getType(), 0); }
  mlir::Value one(mlir::Value like) { return constant(like.getType(), 1); }

  template <typename MathOp> mlir::Value math(llvm::ArrayRef<mlir::Value> x) {
    return MathOp::create(b, loc, mlir::ValueRange(x)).getResult();
  }

private:
  bool isFloat(mlir::Value v) const;
  mlir::OpBuilder &b;
  mlir::Location loc;
  bool isUnsigned;
};

} // namespace ptc::prim

#endif // PTC_IR_PRIM_SCALARBUILDER_H
