//===- PrimPointwise.td - the table of pointwise primitives ---------------===//
//
// One row is all there is to an elementwise primitive: mnemonic, classes of
// element types, scalar body, domain of its test and permitted error. Types,
// registration, lowering, reference evaluation and tests derive from the row.
//
// The body is C++ over `s` (ScalarBuilder, ir/prim/ScalarBuilder.h) and the
// scalar operands `x[i]`. It must be total: no input may trap or be poison.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_PRIM_PRIMPOINTWISE
#define PTC_IR_PRIM_PRIMPOINTWISE

include "ir/prim/PrimInterfaces.td"

// Classes of element types a row accepts; the enumerated tests go through them.
class TypeClass<string n, Type t> { string name = n; Type type = t; }
def Numeric : TypeClass<"numeric", TensorOf<[AnyFloat, AnySignedInteger, AnyUnsignedInteger]>>;
def Float   : TypeClass<"float", TensorOf<[AnyFloat]>>;
def Integer : TypeClass<"integer", TensorOf<[AnySignedInteger, AnyUnsignedInteger]>>;
def Bool    : TypeClass<"bool", TensorOf<[I1]>>;
def Bits    : TypeClass<"bits", TensorOf<[I1, AnySignedInteger, AnyUnsignedInteger]>>;
def Word    : TypeClass<"word", TensorOf<[UI64]>>;
def Any     : TypeClass<"any", TensorOf<[AnyType]>>;

class Prim_Pointwise<string mnemonic, int operandCount, TypeClass types,
                     string scalarBody, string testDomain, int ulp,
                     list<Trait> traits>
    : Prim_Op<mnemonic, !listconcat(traits, [Pure, Elementwise, SameOperandsAndResultShape, Prim_PointwiseInterface])> {
  // Read by the generator of the tests (llvm-tblgen --dump-json).
  int ptcOperands = operandCount;
  string ptcTypes = types.name;
  string ptcDomain = testDomain; // "lo, hi" of each operand in tests
  int ptcUlp = ulp;
  let extraClassDeclaration = [{
    static ::mlir::Value emitScalar(::ptc::prim::ScalarBuilder &s, ::llvm::ArrayRef<::mlir::Value> x) { }] # scalarBody # [{ }
  }];
}

class Prim_Unary<string mnemonic, TypeClass types, string body, string domain = "-10, 10", int ulp = 0>
    : Prim_Pointwise<mnemonic, 1, types, body, domain, ulp, [SameOperandsAndResultType]> {
  let arguments = (ins types.type:$x);
  let results = (outs types.type:$y);
  let assemblyFormat = "$x attr-dict `:` type($y)";
}

class Prim_Binary<string mnemonic, TypeClass types, string body, string domain = "-10, 10", int ulp = 0>
    : Prim_Pointwise<mnemonic, 2, types, body, domain, ulp, [SameOperandsAndResultType]> {
  let arguments = (ins types.type:$a, types.type:$b);
  let results = (outs types.type:$y);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($y)";
}

// Result: i1 of the operands' shape.
class Prim_Predicate<string mnemonic, int n, TypeClass types, string body>
    : Prim_Pointwise<mnemonic, n, types, body, "-10, 10", 0, [SameTypeOperands, InferTypeOpAdaptor]> {
  let results = (outs Prim_BoolTensor:$y);
}
class Prim_Test<string mnemonic, TypeClass types, string body> : Prim_Predicate<mnemonic, 1, types, body> {
  let arguments = (ins types.type:$x);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
class Prim_Compare<string mnemonic, TypeClass types, string body> : Prim_Predicate<mnemonic, 2, types, body> {
  let arguments = (ins types.type:$a, types.type:$b);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a)";
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

def Prim_AddOp : Prim_Binary<"add", Numeric, "return s.add(x[0], x[1]);">;
def Prim_SubOp : Prim_Binary<"sub", Numeric, "return s.sub(x[0], x[1]);">;
def Prim_MulOp : Prim_Binary<"mul", Numeric, "return s.mul(x[0], x[1]);">;
// Integers truncate; x / 0 = 0 and INT_MIN / -1 = INT_MIN.
def Prim_DivOp : Prim_Binary<"div", Numeric, "return s.div(x[0], x[1]);">;
// Sign of the dividend (C's fmod and %); x rem 0 = 0 for integers.
def Prim_RemOp : Prim_Binary<"rem", Numeric, "return s.rem(x[0], x[1]);">;
// Sign of the divisor (Python's %); x mod 0 = 0 for integers.
def Prim_ModOp : Prim_Binary<"mod", Numeric, "return s.mod(x[0], x[1]);">;
def Prim_PowOp : Prim_Binary<"pow", Numeric, "return s.pow(x[0], x[1]);", "0, 4", 2>;
def Prim_Atan2Op : Prim_Binary<"atan2", Float, "return s.math<mlir::math::Atan2Op>(x);", "-10, 10", 4>;
// NaN where an operand is NaN.
def Prim_MaximumOp : Prim_Binary<"maximum", Numeric, "return s.maximum(x[0], x[1]);">;
def Prim_MinimumOp : Prim_Binary<"minimum", Numeric, "return s.minimum(x[0], x[1]);">;

def Prim_AbsOp : Prim_Unary<"abs", Numeric, "return s.abs(x[0]);">;
def Prim_NegOp : Prim_Unary<"neg", Numeric, "return s.neg(x[0]);">;
def Prim_SignOp : Prim_Unary<"sign", Numeric, "return s.sign(x[0]);">;
def Prim_ReluOp : Prim_Unary<"relu", Numeric, "return s.relu(x[0]);">;
def Prim_ReciprocalOp : Prim_Unary<"reciprocal", Float, "return s.div(s.one(x[0]), x[0]);">;
def Prim_SqrtOp : Prim_Unary<"sqrt", Float, "return s.math<mlir::math::SqrtOp>(x);", "0, 100">;
def Prim_RsqrtOp : Prim_Unary<"rsqrt", Float, "return s.math<mlir::math::RsqrtOp>(x);", "0, 100", 1>;
def Prim_CeilOp : Prim_Unary<"ceil", Float, "return s.math<mlir::math::CeilOp>(x);">;
def Prim_FloorOp : Prim_Unary<"floor", Float, "return s.math<mlir::math::FloorOp>(x);">;
def Prim_RoundOp : Prim_Unary<"round", Float, "return s.math<mlir::math::RoundEvenOp>(x);">; // ties to even
def Prim_TruncOp : Prim_Unary<"trunc", Float, "return s.math<mlir::math::TruncOp>(x);">;

//===----------------------------------------------------------------------===//
// Elementary functions (codegen/common has them, with their measured errors)
//===----------------------------------------------------------------------===//

def Prim_ExpOp : Prim_Unary<"exp", Float, "return s.math<mlir::math::ExpOp>(x);", "-20, 20", 2>;
def Prim_Exp2Op : Prim_Unary<"exp2", Float, "return s.math<mlir::math::Exp2Op>(x);", "-20, 20", 2>;
def Prim_Expm1Op : Prim_Unary<"expm1", Float, "return s.math<mlir::math::ExpM1Op>(x);", "-20, 20", 2>;
def Prim_LogOp : Prim_Unary<"log", Float, "return s.math<mlir::math::LogOp>(x);", "0, 100", 2>;
def Prim_Log2Op : Prim_Unary<"log2", Float, "return s.math<mlir::math::Log2Op>(x);", "0, 100", 2>;
def Prim_Log1pOp : Prim_Unary<"log1p", Float, "return s.math<mlir::math::Log1pOp>(x);", "0, 100", 2>;
def Prim_SinOp : Prim_Unary<"sin", Float, "return s.math<mlir::math::SinOp>(x);", "-20, 20", 4>;
def Prim_CosOp : Prim_Unary<"cos", Float, "return s.math<mlir::math::CosOp>(x);", "-20, 20", 4>;
def Prim_TanOp : Prim_Unary<"tan", Float, "return s.math<mlir::math::TanOp>(x);", "-1, 1", 4>;
def Prim_AsinOp : Prim_Unary<"asin", Float, "return s.math<mlir::math::AsinOp>(x);", "-1, 1", 4>;
def Prim_AcosOp : Prim_Unary<"acos", Float, "return s.math<mlir::math::AcosOp>(x);", "-1, 1", 4>;
def Prim_AtanOp : Prim_Unary<"atan", Float, "return s.math<mlir::math::AtanOp>(x);", "-10, 10", 4>;
def Prim_SinhOp : Prim_Unary<"sinh", Float, "return s.math<mlir::math::SinhOp>(x);", "-10, 10", 4>;
def Prim_CoshOp : Prim_Unary<"cosh", Float, "return s.math<mlir::math::CoshOp>(x);", "-10, 10", 4>;
def Prim_TanhOp : Prim_Unary<"tanh", Float, "return s.math<mlir::math::TanhOp>(x);", "-10, 10", 4>;
def Prim_AsinhOp : Prim_Unary<"asinh", Float, "return s.math<mlir::math::AsinhOp>(x);", "-10, 10", 4>;
def Prim_AcoshOp : Prim_Unary<"acosh", Float, "return s.math<mlir::math::AcoshOp>(x);", "1, 100", 4>;
def Prim_AtanhOp : Prim_Unary<"atanh", Float, "return s.math<mlir::math::AtanhOp>(x);", "-1, 1", 4>;
def Prim_ErfOp : Prim_Unary<"erf", Float, "return s.math<mlir::math::ErfOp>(x);", "-5, 5", 4>;
def Prim_SigmoidOp : Prim_Unary<"sigmoid", Float, "return s.sigmoid(x[0]);", "-20, 20", 4>;

//===----------------------------------------------------------------------===//
// Bits and booleans
//===----------------------------------------------------------------------===//

def Prim_AndOp : Prim_Binary<"and", Bits, "return s.bitAnd(x[0], x[1]);">;
def Prim_OrOp : Prim_Binary<"or", Bits, "return s.bitOr(x[0], x[1]);">;
def Prim_XorOp : Prim_Binary<"xor", Bits, "return s.bitXor(x[0], x[1]);">;
def Prim_NotOp : Prim_Unary<"not", Bits, "return s.bitNot(x[0]);">;
// 64 random bits: words 0 and 1 of Philox 4x32-10 with the counter (a, 0) and the key b.
def Prim_PhiloxOp : Prim_Binary<"philox", Word, "return s.philox(x[0], x[1]);", "0, 1e18">;
// A shift of the width or more yields 0; a signed shift to the right leaves the sign.
def Prim_ShiftLeftOp : Prim_Binary<"shift_left", Integer, "return s.shiftLeft(x[0], x[1]);", "0, 7">;
def Prim_ShiftRightOp : Prim_Binary<"shift_right", Integer, "return s.shiftRight(x[0], x[1]);", "0, 7">;

//===----------------------------------------------------------------------===//
// Predicates
//===----------------------------------------------------------------------===//

def Prim_EqOp : Prim_Compare<"eq", Any, "return s.equal(x[0], x[1]);">;
def Prim_NeOp : Prim_Compare<"ne", Any, "return s.notEqual(x[0], x[1]);">;
def Prim_LtOp : Prim_Compare<"lt", Numeric, "return s.less(x[0], x[1]);">;
def Prim_LeOp : Prim_Compare<"le", Numeric, "return s.lessEqual(x[0], x[1]);">;
def Prim_IsNanOp : Prim_Test<"is_nan", Float, "return s.isNan(x[0]);">;
def Prim_IsInfOp : Prim_Test<"is_inf", Float, "return s.isInf(x[0]);">;

//===----------------------------------------------------------------------===//
// Selection and conversion
//===----------------------------------------------------------------------===//

def Prim_SelectOp : Prim_Pointwise<"select", 3, Any, "return s.select(x[0], x[1], x[2]);", "-10, 10", 0,
                                   [AllTypesMatch<["a", "b", "y"]>]> {
  let summary = "a where condition holds, else b";
  let arguments = (ins Prim_BoolTensor:$condition, Prim_Tensor:$a, Prim_Tensor:$b);
  let results = (outs Prim_Tensor:$y);
  let assemblyFormat = "$condition `,` $a `,` $b attr-dict `:` type($condition) `,` type($y)";
}

def Prim_ConvertOp : Prim_Op<"convert", [Pure, Elementwise, SameOperandsAndResultShape, Prim_PointwiseInterface]> {
  let summary = "converts the element type";
  let description = [{
    Float to integer truncates towards zero, saturates at the integer's range
    and maps NaN to 0; integer to narrower integer wraps; anything to `i1` is
    `x != 0`; float to narrower float rounds to nearest even.
  }];
  let arguments = (ins Prim_Tensor:$x);
  let results = (outs Prim_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let extraClassDeclaration = [{
    ::mlir::Value emitScalar(::ptc::prim::ScalarBuilder &s, ::llvm::ArrayRef<::mlir::Value> x);
  }];
}

def Prim_BitcastOp : Prim_Op<"bitcast", [Pure, Elementwise, SameOperandsAndResultShape, Prim_PointwiseInterface]> {
  let summary = "the bits of an element as another type of the same width; a boolean is a byte of 0 or 1";
  let arguments = (ins Prim_Tensor:$x);
  let results = (outs Prim_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value emitScalar(::ptc::prim::ScalarBuilder &s, ::llvm::ArrayRef<::mlir::Value> x);
  }];
}

#endif // PTC_IR_PRIM_PRIMPOINTWISE
