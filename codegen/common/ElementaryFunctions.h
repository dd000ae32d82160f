//===- ElementaryFunctions.h - math ops as arithmetic --------------------===//
//
// Kernels call no C library. Every `math` op, the NaN-aware minimum and maximum and the float remainder of `arith`
// become arithmetic on the same scalar or vector type, with the error bounds of ElementaryFunctions.def. The result
// holds `arith` ops, `math` ops that every target lowers to an instruction (fma, sqrt, floor, ceil, trunc, roundeven,
// absf, copysign, bit counts, integer abs) and, for rare inputs, `scf.if` / `scf.while`.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_COMMON_ELEMENTARYFUNCTIONS_H
#define PTC_CODEGEN_COMMON_ELEMENTARYFUNCTIONS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Operation.h"

namespace ptc::codegen {

/// What functions whose values are rounded to 16 bits are made of (ElementaryNarrow.h).
enum class Approximations {
  None,   ///< nothing of their own: they are computed as others are
  Nvidia, ///< ex2.approx, rcp.approx and div.full, of scalars
  Exact,  ///< the same forms, with 2^x, 1/x and quotients as this target has them: for tests
};

struct ElementaryOptions {
  /// The target has a fused multiply-add. Without it products and sums are separate and errors grow by up to 1 ulp.
  bool hasFma = true;
  /// The target has AVX-512's vscalef (with VL for vectors below 512 bits): exponentials save five instructions.
  bool x86Scalef = false;
  /// maximumf and minimumf take -0 to be below +0 (two instructions more). ONNX leaves the sign of that zero open.
  bool orderSignedZeros = false;
  /// The target has instructions for maximumf and minimumf of f32.
  bool hasExtrema = false;
  Approximations approximations = Approximations::None;
  /// The formula of sigmoid becomes one function (ElementarySigmoid.cpp).
  bool joinsSigmoids = false;
  /// Vectors of integers are divided by floats: the target divides integers one by one.
  bool dividesByFloats = false;
  /// Vectors of floats become integers of 64 bits through those of 32 where all lanes are: the target converts to 64
  /// one by one (WideConversions.cpp).
  bool convertsThrough32 = false;
  /// Vectors are divided by what a loop does not change in three operations (SharedDivisors.cpp).
  bool multipliesByReciprocals = false;
  /// Quotients of a softmax (ir/loop/Softmax.h) are products with the inverse of its sum, within 1.5 ulp.
  bool multipliesByInverseSums = false;
};

/// Of a math.exp2 or math.exp: its operand is not above 0, or NaN, and results below the smallest normal number may be
/// 0.
inline constexpr llvm::StringLiteral notPositiveAttr = "ptc.not_positive";

/// Of a math.log1p: its operand is in [0, 1], or NaN.
inline constexpr llvm::StringLiteral inUnitAttr = "ptc.in_unit";

/// True if `op` has a row in ElementaryFunctions.def, even one that is left as it is.
bool isElementary(mlir::Operation *op);

/// Emits the value of `mathOp` with `operands` in place of its own operands (same shape and element type as each
/// other). f16 and bf16 are computed in f32. Returns null for an op or element type that has no row; sincos has two
/// results: see below.
mlir::Value expandElementary(mlir::ImplicitLocOpBuilder &b, mlir::Operation *mathOp, mlir::ValueRange operands,
                             const ElementaryOptions &options);

/// The same for any number of results; empty if there is no row.
llvm::SmallVector<mlir::Value> expandElementaryResults(mlir::ImplicitLocOpBuilder &b, mlir::Operation *mathOp,
                                                       mlir::ValueRange operands, const ElementaryOptions &options);

/// Replaces all elementary ops nested in `root`. Must run before `scf` is lowered.
/// Dialects arith, math, scf, vector and llvm have to be loaded.
void expandElementaryFunctions(mlir::Operation *root, const ElementaryOptions &options);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_ELEMENTARYFUNCTIONS_H
