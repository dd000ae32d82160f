//===- Strassen.h - products with seven multiplications for eight -*- C++ -*-===//
//
// V. Strassen, Gaussian Elimination is not Optimal, 1969: of operands in quarters,
//
//   M1 = (A11 + A22) (B11 + B22)    M2 = (A21 + A22) B11    M3 = A11 (B12 - B22)    M4 = A22 (B21 - B11)
//   M5 = (A11 + A12) B22            M6 = (A21 - A11) (B11 + B12)                    M7 = (A12 - A22) (B21 + B22)
//
//   C11 = M1 + M4 - M5 + M7    C12 = M3 + M5    C21 = M2 + M4    C22 = M1 - M2 + M3 + M6
//
// Quarters are neighbours here: of A the halves of a tile's rows and the even and odd terms, of B 32 (16) columns and
// as many beside them, and the same terms. Which numbers meet does not depend on how the work is cut.
//
// Errors, root mean squares over those of plain f32 products: 1.5 to 1.7 for normally distributed operands. They grow
// with the largest quarter, where those of plain products grow with each: a row beside one that is r times as large has
// errors about r times as large. So norms (roots of sums of squares) that meet must be within a factor of mostApart: of
// a weight's rows and columns when the model is compiled (ChooseStrassen.cpp), of A's rows when it runs.
//
// A contraction that is computed this way has `strassen` on the loop.panels of its rhs. Targets and levels are free to
// compute it plainly.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_STRASSEN_H
#define PTC_IR_LOOP_STRASSEN_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace ptc::loop {

/// On a loop.panels: the product may be computed by Strassen's algorithm.
inline constexpr llvm::StringLiteral strassenAttr = "strassen";
/// In the config of a planned kernel some of whose levels do so: its value is strassenAttr.
inline constexpr llvm::StringLiteral algorithmAttr = "algorithm";

/// Columns of a quarter of B, at one level or another; what columns are a multiple of; as many terms as are a step of
/// copies of A's quarters, and how far apart norms may be.
inline constexpr int64_t strassenColumns[] = {16, 32}, strassenUnit = 64, strassenTerms = 32, mostApart = 8;

/// Between these are the squares of norms that may meet: sums of products are finite and normal.
inline constexpr float mostSquare = 0x1p80f, leastSquare = 0x1p-80f;

} // namespace ptc::loop

#endif // PTC_IR_LOOP_STRASSEN_H
