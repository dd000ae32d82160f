//===- Variants.h - one function for some sizes ------------------*- C++ -*-===//
//
// A function may have variants: the same computation for calls whose sizes meet
// more guards. They are functions (later programs) of their own in the module; the
// attributes here say whose variants they are.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_PRIM_VARIANTS_H
#define PTC_IR_PRIM_VARIANTS_H

#include "ir/expr/Expr.h"
#include "mlir/IR/Operation.h"

namespace ptc::prim {

/// On an entry as imported: symbol -> the sizes (i64 array) that are to have variants of their own.
inline constexpr llvm::StringLiteral bucketsAttr = "prim.buckets";
/// On a function or program: the one whose variant it is.
inline constexpr llvm::StringLiteral variantOfAttr = "prim.variant_of";
/// Beside it: what is known of sizes in the variant alone. Symbol -> its only size (i64), or expression -> what it is
/// equal to (i64 or expression).
inline constexpr llvm::StringLiteral pinsAttr = "prim.pins";

/// "batch=1,seq=128", "mask_0=batch"; empty for what is no variant.
std::string getVariantName(mlir::Operation *function);

/// Replaces symbols in the attributes of `root` and of all ops in it, and in the types of their values. `map` answers
/// null for symbols that stay.
void substituteSymbols(mlir::Operation *root, llvm::function_ref<Expr(llvm::StringRef)> map);

} // namespace ptc::prim

#endif // PTC_IR_PRIM_VARIANTS_H
