//===- ElementaryEmitter.h - arithmetic that reads like the formula -------===//
//
// The elementary functions are written as C++ expressions over Num (floats), Bits (integers of the same width) and Mask
// (i1); each operator appends one op. The values are scalars or vectors of any shape; an Emitter fixes the shape and
// the float format (f32 or f64), so that one text serves both formats.
//
// Nothing here may be poison: shift amounts are constants below the width, and no float becomes an integer through
// fptosi: integers come from the low bits of a float to which 1.5 * 2^mantissa was added.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_COMMON_ELEMENTARYEMITTER_H
#define PTC_CODEGEN_COMMON_ELEMENTARYEMITTER_H

#include "codegen/common/ElementaryFunctions.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ptc::codegen {

class Emitter;
struct Num {
  Emitter *e = nullptr;
  mlir::Value v;
};
struct Bits {
  Emitter *e = nullptr;
  mlir::Value v;
};
struct Mask {
  Emitter *e = nullptr;
  mlir::Value v;
};
/// An unevaluated sum hi + lo with |lo| <= ulp(hi)/2.
struct Pair {
  Num hi, lo;
};
/// n = round(x * scale) as a float; the low bits of `biased` hold n + the bias asked for.
struct PowerOfTwo {
  Num n;
  Bits biased;
};

class Emitter {
public:
  /// `type`: f32 or f64, or a vector of one of them.
  Emitter(mlir::ImplicitLocOpBuilder &b, mlir::Type type, const ElementaryOptions &options);

  mlir::ImplicitLocOpBuilder &b;
  const ElementaryOptions &options;
  const mlir::Type floatType, bitsType;
  const bool isF64;
  const unsigned width, mantissa; ///< bits of the format, stored bits of the significand
  const int bias;

  Num num(double c);
  Bits bits(uint64_t c);
  Num num(mlir::Value v) { return {this, v}; }
  Bits bits(mlir::Value v) { return {this, v}; }
  Mask mask(mlir::Value v) { return {this, v}; }
  double pick(double forF32, double forF64) const { return isF64 ? forF64 : forF32; }
  llvm::ArrayRef<double> pick(llvm::ArrayRef<double> forF32, llvm::ArrayRef<double> forF64) const {
    return isF64 ? forF64 : forF32;
  }
  Num infinity();
  Num nan();
  uint64_t signMask() const { return uint64_t(1) << (width - 1); }
  double smallestNormal() const;

  /// True where any lane is set (a scalar i1).
  mlir::Value any(Mask m);
  /// True where a bit of any lane is.
  mlir::Value anyBit(Bits x);
  /// The values of `then` where the scalar i1 holds at run time, else `otherwise`.
  llvm::SmallVector<mlir::Value> ifTrue(mlir::Value condition, llvm::ArrayRef<mlir::Value> otherwise,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> then);
  /// The values of `then` where a lane of `m` is set at run time, of `otherwise` when none is.
  llvm::SmallVector<mlir::Value> ifAny(Mask m, llvm::ArrayRef<mlir::Value> otherwise,
                                       llvm::function_ref<llvm::SmallVector<mlir::Value>()> then);

  mlir::Type withElement(mlir::Type element) const;
};

Num operator+(Num a, Num b);
Num operator-(Num a, Num b);
Num operator*(Num a, Num b);
Num operator/(Num a, Num b);
Num operator-(Num a);
Num operator+(Num a, double b);
Num operator-(Num a, double b);
Num operator*(Num a, double b);
Num operator/(double a, Num b);
Num operator-(double a, Num b);
Num fma(Num a, Num b, Num c);
Num fma(Num a, double b, Num c);
Num fma(Num a, Num b, double c);
Num abs(Num x);
Num sqrt(Num x);
Num trunc(Num x);
Num select(Mask m, Num a, Num b);
Num select(Mask m, double a, Num b);
Num select(Mask m, Num a, double b);
Num select(Mask m, double a, double b, Emitter &e);
/// Magnitude of x with the sign bit of s.
Num copysign(Num x, Num s);
/// Whether maximumf and minimumf of x are instructions.
bool hasExtremum(Num x);
/// One instruction each; a NaN in x stays.
Num atLeast(Num x, double lowest);
Num atMost(Num x, double highest);

/// Ordered comparisons: false where an operand is NaN.
Mask operator<(Num a, Num b);
Mask operator<(Num a, double b);
Mask operator>(Num a, double b);
Mask operator<=(Num a, Num b);
Mask operator>=(Num a, Num b);
Mask operator>=(Num a, double b);
Mask operator==(Num a, Num b);
Mask operator==(Num a, double b);
/// True where a NaN is among the operands.
Mask unordered(Num a, Num b);
/// a != b or unordered.
Mask differs(Num a, Num b);

Bits operator+(Bits a, Bits b);
Bits operator-(Bits a, Bits b);
Bits operator*(Bits a, Bits b);
Bits operator&(Bits a, Bits b);
Bits operator|(Bits a, Bits b);
Bits operator^(Bits a, Bits b);
Bits operator+(Bits a, uint64_t b);
Bits operator-(Bits a, uint64_t b);
Bits operator&(Bits a, uint64_t b);
Bits operator|(Bits a, uint64_t b);
Bits operator<<(Bits a, unsigned n);
Bits operator>>(Bits a, unsigned n); ///< logical
Bits shiftRightSigned(Bits a, unsigned n);
Bits select(Mask m, Bits a, Bits b);
Mask operator==(Bits a, uint64_t b);
Mask differs(Bits a, uint64_t b);
Mask lessUnsigned(Bits a, Bits b);
Mask lessSigned(Bits a, Bits b);

Mask operator&(Mask a, Mask b);
Mask operator|(Mask a, Mask b);
Mask operator!(Mask a);

Bits toBits(Num x);
Num toNum(Bits x);
/// |k| < 2^(mantissa-2) as a float.
Num toFloat(Bits k);
/// Same values in another format of the same shape.
Num extend(Num x, Emitter &wide);
Num truncate(Num x, Emitter &narrow);

/// Sum of c[k] x^k by Horner's rule.
Num polynomial(Num x, llvm::ArrayRef<double> c);
/// The same as x odd(x^2) + even(x^2): one product more, and half as many steps that wait for each other.
Num polynomialInHalves(Num x, llvm::ArrayRef<double> c);

// Exact sums and products (Knuth, Dekker, Veltkamp).
Pair twoSum(Num a, Num b);
Pair fastTwoSum(Num a, Num b); ///< |a| >= |b| or a = 0
Pair twoProduct(Num a, Num b);
/// a * b to about twice the precision.
Pair multiply(Pair a, Pair b);
Pair multiply(Pair a, Num b);
Pair add(Pair a, Pair b); ///< |a| >= |b|
Pair pairOf(double hi, double lo, Emitter &e);

/// |x * scale| < 2^(mantissa-2).
PowerOfTwo roundToPower(Num x, double scale, int bias);
/// 2^n, n within the normal range; k was made with bias e.bias + shift: then 2^(n + shift).
Num powerOfTwo(PowerOfTwo k);
/// p * 2^n with one rounding, for any n down to twice the smallest exponent; k was made with bias 2 e.bias + shift.
Num timesPower(Num p, PowerOfTwo k, int shift = 0);
/// ofRest(x - n) * 2^n, n = round(x), where the target has instructions for it (AVX-512), else nothing. They take any
/// x: infinities are n, and leave 0.
Num powerByInstructions(Num x, llvm::function_ref<Num(Num)> ofRest);

/// Numbers of a table that one instruction looks up in.
inline constexpr int64_t lookUpSize = 16;
/// Whether there is such an instruction: for vectors of 16 f32 on AVX-512.
bool hasLookUp(const Emitter &e);
/// The number of the table of 16 whose place the lowest 4 bits of each lane's index tell.
Num lookUp(llvm::ArrayRef<double> table, Bits index);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_ELEMENTARYEMITTER_H
