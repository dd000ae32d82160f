//===- GpuTuning.h - what can be tuned in a kernel of a GPU -----*- C++ -*-===//
//
// The numbers of `loop.tuned` (ir/loop/Tuned.h) that the GPU's planners ask for. A planner lists the plans that are
// right for a kernel, whatever was tuned; numbers only choose among them, so that no file makes a wrong kernel.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_GPU_GPUTUNING_H
#define PTC_CODEGEN_GPU_GPUTUNING_H

#include "ir/loop/Tuned.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace ptc::gpu {

namespace tuned {
using Name = llvm::StringLiteral;
// Products on tensor cores. `warpgroups` 1: the other numbers are of the plan for warpgroups, which stands whatever the
// estimate says; 0: there is none.
inline constexpr Name warpgroups = "warpgroups", tileRows = "tile_rows", tileColumns = "tile_columns";
inline constexpr Name splits = "splits", together = "together", stages = "stages";
// 1: cuBLASLt computes the product, or cuDNN the convolution, where it is found, at the level that was measured
// (LibraryCall.h); the other numbers are of the kernel's own code.
inline constexpr Name cublaslt = "cublaslt", cudnn = "cudnn";
// Few rows times a matrix; `streamed` 0: like other products.
inline constexpr Name streamed = "streamed", across = "across", streamThreads = "stream_threads";
// Attention.
inline constexpr Name warps = "warps", keyGroups = "key_groups", blockKeys = "block_keys";
// Loops: threads of a row, rows of a block; adjacent points of a thread, threads of a block.
inline constexpr Name rowThreads = "row_threads", blockRows = "block_rows";
inline constexpr Name lanes = "lanes", blockThreads = "block_threads";
// All of them.
inline constexpr Name names[] = {warpgroups, tileRows,  tileColumns, splits,    together,      stages,
                                 cublaslt,   cudnn,     streamed,    across,    streamThreads, warps,
                                 keyGroups,  blockKeys, rowThreads,  blockRows, lanes,         blockThreads};
} // namespace tuned

/// The power of two that is next below the tuned number, within [least, most], or else `chosen`.
inline int64_t tunedPower(mlir::Operation *op, llvm::StringRef name, int64_t least, int64_t most, int64_t chosen) {
  std::optional<int64_t> number = loop::getTuned(op, name);
  return number ? int64_t(llvm::bit_floor(uint64_t(std::clamp(*number, least, most)))) : chosen;
}

/// Of the candidates, leaves those whose number is nearest to the tuned one; all where none was tuned.
template <typename Candidate, typename Number>
void keepNearest(llvm::SmallVectorImpl<Candidate> &candidates, mlir::Operation *op, llvm::StringRef name,
                 Number numberOf) {
  std::optional<int64_t> number = loop::getTuned(op, name);
  if (!number || candidates.empty())
    return;
  constexpr int64_t most = int64_t(1) << 32;
  int64_t wanted = std::clamp<int64_t>(*number, 0, most), least = most;
  auto distance = [&](const Candidate &candidate) { return std::abs(numberOf(candidate) - wanted); };
  for (const Candidate &candidate : candidates)
    least = std::min(least, distance(candidate));
  llvm::erase_if(candidates, [&](const Candidate &candidate) { return distance(candidate) > least; });
}

/// Numbers that are worth a measurement beside those of the plan, the most promising first. The kernel is not planned
/// yet.
llvm::SmallVector<mlir::DictionaryAttr> listAlternatives(loop::KernelOp kernel, llvm::StringRef level);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_GPUTUNING_H
