//===- PackedRhs.h - a rhs that converts numbers of few bits ----*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_PACKEDRHS_H
#define PTC_CODEGEN_GPU_PACKEDRHS_H

#include "codegen/gpu/ContractionDims.h"
#include "codegen/gpu/GpuEmitter.h"

namespace ptc::gpu {

/// A rhs region whose elements are made of bytes, whole or in parts:
///
///   element = round(f(float(load >> bits * d) & (2^bits - 1)) * factor)         d: the dim `part`
///
/// The bytes of four neighbours along the dim `byte` are a word in memory; whatever else the region reads is the same
/// for all numbers along it.
struct PackedRhs {
  loop::LoadOp load;
  int64_t byte, part = -1, bits = 8;
  bool isSigned = false;
  mlir::Operation *real;                        // number - subtracted, in f32
  int64_t subtracted = 0;                       // a small integer
  mlir::Value element, factor;                  // factor: the same for a word; null: 1
  mlir::arith::TruncFOp rounding;               // null: none
  bool isInteger = false;                       // `element` is real - zero, a small integer
  mlir::Value zero;                             // null: 0
  llvm::SmallVector<mlir::Operation *> shared;  // done once a word
  llvm::SmallVector<mlir::Operation *> varying; // behind `real`, up to `element`

  int64_t parts() const { return 8 / bits; }
  /// The type that values are rounded to; null: none, or they may as well stay wide.
  mlir::Type roundedTo() const;
  static constexpr int64_t wordBytes = 4;
};

std::optional<PackedRhs> matchPackedRhs(loop::ContractionOp op);

/// The float that was widened.
mlir::Value beforeWidening(mlir::Value value);

/// The number that begins at the bit `place` of a word (i32), less what is subtracted from it: an f32.
mlir::Value createReal(GpuEmitter &e, const PackedRhs &rhs, mlir::Value word, int64_t place);
/// What is made of it, in f32, by a body that has what numbers share: `element`, or (`isFinal`) what the region yields.
mlir::Value createElement(GpuEmitter &e, const PackedRhs &rhs, codegen::BodyEmitter body, mlir::Value real,
                          bool isFinal);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_PACKEDRHS_H
