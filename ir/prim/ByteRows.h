//===- ByteRows.h - rows that a model permits to be bytes -------*- C++ -*-===//
#ifndef PTC_IR_PRIM_BYTEROWS_H
#define PTC_IR_PRIM_BYTEROWS_H

#include "llvm/ADT/StringRef.h"

namespace ptc::prim {

/// On a product by a weight of few bits, and on its contraction: the model permits to take rows of the lhs as integers
/// of 8 bits, with a scale for each of the weight's blocks (MatMulNBits' accuracy_level of 4). A product that takes the
/// place of several has it if all of them have it; what drops it computes more exactly.
inline constexpr llvm::StringLiteral byteRowsAttr = "prim.byte_rows";

} // namespace ptc::prim

#endif // PTC_IR_PRIM_BYTEROWS_H
