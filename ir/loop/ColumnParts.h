//===- ColumnParts.h - nodes that read a product by parts -------*- C++ -*-===//
//
// A node may read a product's result part by part: heads, each some neighbouring columns of a row. Then it can run
// where a block of whole parts has been computed. Or it reads row by row (a norm), and can run where whole rows have;
// or column by column (a depthwise convolution), and can run where whole columns have.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_COLUMNPARTS_H
#define PTC_IR_LOOP_COLUMNPARTS_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// How a node reads a product's result, which lies in rows.
struct ColumnParts {
  llvm::SmallVector<unsigned> rows; // dims of the node that count the product's rows, the outermost first
  unsigned dim;                     // counts parts
  int64_t width, first;             // columns of a part, and the column that part 0 begins at
  bool operator==(const ColumnParts &) const = default;
};

/// Nothing if the node reads none of the product's results, or one in another way.
std::optional<ColumnParts> findColumnParts(ContractionOp product, mlir::Operation *node);

/// How a node reads columns of the product's results, each point those of its part in any rows: `rows` is empty. Of
/// dims that count columns `dim` is the one that takes the widest steps; a part is one column where it is the only one.
/// Nothing if the node reads none of the product's results, or other columns.
std::optional<ColumnParts> findOwnColumns(ContractionOp product, mlir::Operation *node);

/// Whether the node's first `shared` dims count the product's rows in order, and it reads of the product's results what
/// lies in the row of its point alone. Something else may lie in the rows, too.
bool readsOwnRows(ContractionOp product, mlir::Operation *node, unsigned shared);

} // namespace ptc::loop

#endif // PTC_IR_LOOP_COLUMNPARTS_H
