//===- PackedRhs.h - a rhs that converts numbers of few bits ----*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_PACKEDRHS_H
#define PTC_CODEGEN_GPU_PACKEDRHS_H

#include "codegen/gpu/ContractionDims.h"

namespace ptc::gpu {

/// A rhs region whose elements are made of bytes, whole or in parts:
///
///   element = f(float(load >> bits * d) & (2^bits - 1)) * factor         d: the dim `part`
///
/// The bytes of four neighbours along the dim `byte` are a word in memory; whatever else the region reads is the same
/// for all of a word's numbers.
struct PackedRhs {
  loop::LoadOp load;
  int64_t byte, part = -1, bits = 8;
  bool isSigned = false;
  mlir::Operation *real;                        // number - subtracted, in f32
  int64_t subtracted = 0;                       // a small integer
  mlir::Value element, factor;                  // factor: the same for a word; null: 1
  llvm::SmallVector<mlir::Operation *> shared;  // done once a word
  llvm::SmallVector<mlir::Operation *> varying; // behind `real`, up to `element`

  int64_t parts() const { return 8 / bits; }
  static constexpr int64_t wordBytes = 4;
};

std::optional<PackedRhs> matchPackedRhs(loop::ContractionOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_PACKEDRHS_H
