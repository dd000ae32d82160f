//===- Strides.h - lanes that step over elements ----------------*- C++ -*-===//
//
// L lanes that step by s (2 to 4) elements lie among s*(L-1)+1 that follow each other: s whole vectors at distances of
// L-1, of which the first starts with the first lane's element and the last ends with the last lane's, so that nothing
// outside of what the lanes read is touched. A window of stride 2 is read so, every second pixel of an image, the real
// parts of complex numbers: s loads and as many shuffles in the place of L loads and L insertions.
//
// For powers of two, and for 3 where L-1 is no multiple of 3, no two of the elements lie in one place of their
// vectors. They are merged by selections, and stand in an order that depends on L and s alone, not on where the lanes
// start. What is computed of such loads alone may stay in that order: one permutation at the end instead of one a load.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_COMMON_STRIDES_H
#define PTC_CODEGEN_COMMON_STRIDES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace ptc::codegen {

inline constexpr int64_t mostSplitStride = 4; // more vectors hold too little each

/// Where lanes that step by `stride` find their elements.
struct StridedLanes {
  StridedLanes(int64_t lanes, int64_t stride);

  struct Place {
    int64_t vector, lane;
  };
  llvm::SmallVector<Place> places;  // by lane
  llvm::SmallVector<int32_t> order; // which lane's element stands where when merged; empty: two would meet

  bool canMerge() const { return !order.empty(); }
  /// Elements from the start of the first vector to that of another.
  int64_t startOf(int64_t vector) const { return vector * (int64_t(places.size()) - 1); }
  /// What `mask`, in the lanes' order or merged like them, has of one of the vectors.
  mlir::Value maskOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value mask, int64_t vector,
                     bool isMerged) const;
  /// The lanes' elements out of the vectors, merged only or brought into the lanes' order.
  mlir::Value join(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> vectors,
                   bool inOrder) const;
  /// Lanes that stand as `order` says back in theirs; and the other way round.
  mlir::Value toLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value merged) const;
  mlir::Value fromLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value vector) const;
};

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_STRIDES_H
