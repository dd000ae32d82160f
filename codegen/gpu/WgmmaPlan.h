//===- WgmmaPlan.h - contractions of warpgroups: the plan -------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_WGMMAPLAN_H
#define PTC_CODEGEN_GPU_WGMMAPLAN_H

#include "codegen/Target.h"
#include "codegen/gpu/MmaPlan.h"

namespace ptc::gpu {

/// How a contraction is cut for an architecture with wgmma and TMA. A block computes m x n results at a time, 64 rows a
/// warpgroup; one more warpgroup asks for the operands, which come through `stages` tiles of shared memory, 128 bytes
/// deep in k. `together` blocks share a multiprocessor: while one writes results, another multiplies. `splits` blocks
/// share the k of a tile.
///
/// Of f32 (MmaKind::SplitF32) one warpgroup divides the tiles of rhs, whose low parts lie behind them, and another one
/// asks for operands.
struct WgmmaTile {
  int64_t m, n, stages, together;
  MmaKind kind;
  int64_t splits = 1;

  static constexpr int64_t groupThreads = 128, groupRows = 64;
  static constexpr int64_t chunkBytes = groupRows * MmaTile::depthBytes; // of a box of 64 rows
  /// The blocks of a tile are a cluster.
  bool isCluster() const { return splits > 1 && splits <= 8; }
  bool isSplitF32() const { return kind == MmaKind::SplitF32; }
  int64_t elementBytes() const { return getElementBytes(kind); }
  int64_t k() const { return MmaTile::depthBytes / elementBytes(); } // of a stage: the elements of a row of a box
  int64_t groups() const { return m / groupRows; }
  /// Registers are taken from warpgroups that need few.
  bool isDivided() const { return groups() == 2 && together == 1; }
  int64_t threads() const {
    return groupThreads * (groups() + 1) + (!isSplitF32() ? 0 : isDivided() ? groupThreads : warpSize);
  }
  int64_t lhsBytes() const { return m * MmaTile::depthBytes; }
  int64_t rhsBytes() const { return n * MmaTile::depthBytes; }
  int64_t copiedBytes() const { return lhsBytes() + rhsBytes(); }
  int64_t stageBytes() const { return copiedBytes() + (isSplitF32() ? rhsBytes() : 0); }
  int64_t barrierOffset() const { return stages * stageBytes(); }
  int64_t sharedBytes() const { return barrierOffset() + (isSplitF32() ? 24 : 16) * stages; }
  static constexpr int64_t sharedAlignment = 1024;
  /// Products of f32 are summed up in so many parts of a step, so many at a time.
  int64_t sumParts() const { return n <= 64 ? 4 : 1; }
  int64_t sumPartsUnderWay() const { return n <= 32 ? 4 : 2; }
  /// Of four low parts of rhs so many are rounded away from zero (WgmmaSplitF32.cpp).
  int64_t awayOfFour() const { return sumParts() == 1 ? 4 : 1; }

  mlir::DenseI64ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  static WgmmaTile fromAttribute(mlir::DenseI64ArrayAttr values);
};

/// Lhs of a convolution (WgmmaWindow.cpp): its rows are pixels of the result, and a step reads what lies at one place
/// of the window for each of them. The lists run as the op's dims do.
struct WgmmaWindow {
  struct Axis {
    int64_t pixels, stride, corner; // pixel p's window begins at p * stride + corner
  };
  struct Side {
    int64_t extent, dilation;
    size_t axis; // along which it lies
  };
  int64_t images; // around the axes
  llvm::SmallVector<Axis> axes;
  llvm::SmallVector<Side> sides;

  int64_t places() const;
};

/// An operand that boxes of a tensor are: dim 0 of the map is what memory is contiguous in, dim 1 the other of k and
/// the free dims, the rest dims of the batch. Where lhs has a window, its map's dims from 1 on are the axes and the
/// images; that of rhs has the sides of the window between dim 0 and the free dims.
struct WgmmaOperand {
  bool isAlongK;                  // dim 0 is k
  int64_t boxes;                  // of a stage, along the free dims
  llvm::SmallVector<size_t> dims; // of the op: those of the map from dim 2 on
  codegen::TensorMap map;
};
struct WgmmaOperands {
  WgmmaOperand lhs, rhs;
  std::optional<WgmmaWindow> window;
  int64_t steps;        // of k
  int64_t stepsOfPlace; // of these, at one place of the window
};
std::optional<WgmmaOperands> analyzeOperands(loop::ContractionOp op, const WgmmaTile &tile);

/// What the estimate holds of a tile.
struct WgmmaCandidate {
  WgmmaTile tile;
  double cycles;
};
/// All tiles that suit the op on an architecture with wgmma.
llvm::SmallVector<WgmmaCandidate> listWgmmaTiles(loop::ContractionOp op, MmaKind kind);

/// The tile for the op on an architecture with wgmma, if that has an advantage over a plan of so many cycles, or was
/// found to be faster.
std::optional<WgmmaTile> planWgmma(loop::ContractionOp op, MmaKind kind, double otherCycles);

/// What planWgmma decided for the kernel; nothing: its other plan is for all architectures.
std::optional<WgmmaTile> getWgmmaTile(loop::KernelOp kernel);
int64_t countWgmmaTiles(loop::ContractionOp op, const WgmmaTile &tile);
/// Of the launch: where splits leave their sums.
int64_t countWgmmaScratch(loop::ContractionOp op, const WgmmaTile &tile);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_WGMMAPLAN_H
