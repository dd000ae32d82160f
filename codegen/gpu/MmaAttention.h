//===- MmaAttention.h - attention on tensor cores ---------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_MMAATTENTION_H
#define PTC_CODEGEN_GPU_MMAATTENTION_H

#include "codegen/gpu/MmaPlan.h"
#include "llvm/Support/MathExtras.h"

namespace ptc::gpu {

/// How an attention is cut: a warp has 16 queries, and `groups` warps of a block's `warps` have the same ones; keys
/// come `keys` at a time, of which each group takes its share, through `stages` tiles of shared memory. One stage: all
/// keys come at once.
struct AttentionTile {
  int64_t warps, groups, keys, stages, depth, width; // depth of q and k, width of v: constants
  MmaKind kind;

  int64_t elementBytes() const { return kind == MmaKind::SplitF32 ? 4 : 2; }
  int64_t queries() const { return 16 * queryWarps(); }
  int64_t queryWarps() const { return warps / groups; }
  int64_t groupKeys() const { return keys / groups; }
  int64_t threads() const { return warps * warpSize; }
  /// Rows in shared memory; chunks change places within a power of two of them.
  int64_t depthBytes() const { return int64_t(llvm::PowerOf2Ceil(uint64_t(depth))) * elementBytes(); }
  int64_t widthBytes() const { return int64_t(llvm::PowerOf2Ceil(uint64_t(width))) * elementBytes(); }
  int64_t queryBytes() const { return queries() * depthBytes(); }
  int64_t keyBytes() const { return keys * depthBytes(); }
  int64_t stageBytes() const { return keyBytes() + keys * widthBytes(); }
  int64_t sharedBytes() const { return std::max(queryBytes() + stages * stageBytes(), sumBytes()); }
  /// In the end every warp leaves its sums, rows of `sumPitch` f32, and behind all of them of each row its maximum and
  /// its sum of weights.
  int64_t sumPitch() const { return width + 8; }
  int64_t rowSumsOffset() const { return warps * 16 * sumPitch() * 4; }
  /// Of a part's rows in scratch (MmaAttentionParts.cpp).
  int64_t partPitch() const { return width + 4; }
  int64_t sumBytes() const { return rowSumsOffset() + warps * 16 * 8; }

  mlir::DenseI64ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  static AttentionTile fromAttribute(mlir::DictionaryAttr config);
};

/// Plans a kernel of one attention for tensor cores, if its operands suit: its attributes are set.
bool planMmaAttention(loop::KernelOp kernel, loop::AttentionOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_MMAATTENTION_H
