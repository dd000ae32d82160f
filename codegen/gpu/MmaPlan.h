//===- MmaPlan.h - contractions on tensor cores: the plan -------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_MMAPLAN_H
#define PTC_CODEGEN_GPU_MMAPLAN_H

#include "codegen/gpu/ContractionDims.h"
#include "codegen/gpu/GpuPlan.h"

namespace ptc::gpu {

/// What the tensor cores multiply. Floats are summed in f32, 8-bit integers in i32.
enum class MmaKind {
  F16,
  BF16,
  SplitF32, // f32 as a sum of two tf32 numbers: three products
  S8S8,     // 8-bit integers, signed (S) or not (U): lhs, rhs
  S8U8,
  U8S8,
  U8U8,
};
inline bool multipliesBytes(MmaKind kind) { return kind >= MmaKind::S8S8; }
inline int64_t getElementBytes(MmaKind kind) { return kind == MmaKind::SplitF32 ? 4 : multipliesBytes(kind) ? 1 : 2; }
mlir::Type getSumType(mlir::MLIRContext *context, MmaKind kind);

/// How a contraction is cut. A block computes m x n results with warpsM x warpsN warps; operands come through `stages`
/// tiles of shared memory, each 128 bytes deep in k.
struct MmaTile {
  int64_t m, n, warpsM, warpsN, stages;
  MmaKind kind;
  int64_t rhsBits = 0; // of numbers that are copied as they are (MmaPacked.h); 0: elements of the kind

  int64_t elementBytes() const { return getElementBytes(kind); }
  int64_t k() const { return depthBytes / elementBytes(); }
  int64_t warpM() const { return m / warpsM; }
  int64_t warpN() const { return n / warpsN; }
  int64_t threads() const { return warpsM * warpsN * warpSize; }
  int64_t rhsDepthBytes() const { return rhsBits ? k() * rhsBits / 8 : depthBytes; }
  int64_t stageBytes() const { return m * depthBytes + n * rhsDepthBytes(); }
  /// Sums on their way to the epilogue lie in rows of `sumPitch`, 4 bytes each.
  int64_t sumPitch() const { return n + 8; }
  int64_t sharedBytes() const { return std::max(stages * stageBytes(), m * sumPitch() * 4); }

  mlir::DenseI64ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  static MmaTile fromAttribute(mlir::DictionaryAttr config);

  static constexpr int64_t depthBytes = 128;
  static constexpr int64_t vectorBytes = 16; // of a chunk that lies together in every layout
  int64_t vector() const { return vectorBytes / elementBytes(); }
};

/// How the elements of an operand reach shared memory.
struct MmaSource {
  enum class Copy {
    Vectors, // 16 bytes at a time, asynchronously
    Words,   // 4 bytes at a time, asynchronously
    Turned,  // 4 bytes along the free dims of each of four k, which threads turn
    Values,  // computed by the threads; of bytes four along k
  };
  Copy copy = Copy::Values;
  bool isAlongK = true;     // a tile's rows run along k, those of bytes always; else along the free dims
  bool isReadAlongK = true; // neighbouring threads read neighbours along k
  loop::LoadOp load;        // of what is copied
  loop::MaskedOp mask;      // `padding` where it fails; null: none
  int64_t padding = 0;      // of floats always 0

  /// Elements that are copied at a time.
  int64_t together(int64_t elementBytes) const {
    return copy == Copy::Vectors ? MmaTile::vectorBytes / elementBytes : copy == Copy::Words ? 4 / elementBytes : 1;
  }
};
/// Fills load, mask and padding if the region is a load, a constant where a mask fails.
bool matchLoad(mlir::Region &region, MmaSource &source);
MmaSource analyzeSource(loop::ContractionOp op, const ContractionDims &dims, bool isRhs, MmaKind kind);
/// Whether `lanes` elements that follow each other in the dims of the list (the last changes first) lie side by side in
/// memory, are aligned and exist together.
bool isVectorAlong(const ContractionDims &dims, llvm::ArrayRef<int64_t> along, const MmaSource &source, int64_t lanes);

/// What the region yields, before it is widened.
mlir::Value getNarrowValue(mlir::Region &region);

/// The kind that multiplies the op's operands, or nothing.
std::optional<MmaKind> findMmaKind(loop::ContractionOp op);

/// A way to cut a contraction, and what the estimate holds of it in cycles that compare with those of WgmmaCandidate.
struct MmaCandidate {
  MmaTile tile;
  int64_t splits;
  double cycles;
};
/// All that suit the op, whose extents count as at the plan where they are symbols.
llvm::SmallVector<MmaCandidate> listMmaTiles(loop::ContractionOp op, MmaKind kind);

/// Plans a kernel of one contraction whose kind is known: its attributes are set.
void planMma(loop::KernelOp kernel, loop::ContractionOp op, MmaKind kind);

/// Blocks that share the k of one tile: `splits` of the kernel's config.
Expr getMmaSplits(loop::KernelOp kernel);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_MMAPLAN_H
