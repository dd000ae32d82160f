//===- CpuTuning.h - what can be tuned in a kernel of the CPU ---*- C++ -*-===//
//
// The numbers of `loop.tuned` (ir/loop/Tuned.h) that the CPU's planners and emitters ask for. Whatever a number is, the
// kernel is right: those out of range count as the nearest that is not.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUTUNING_H
#define PTC_CODEGEN_CPU_CPUTUNING_H

#include "codegen/cpu/CpuLevels.h"
#include "ir/loop/Tuned.h"
#include <algorithm>

namespace ptc::cpu {

namespace tuned {
using Name = llvm::StringLiteral;
// Products.
inline constexpr Name mBlocks = "m_blocks", nBlocks = "n_blocks", kBlocks = "k_blocks";
inline constexpr Name tileRows = "tile_rows", tilePanels = "tile_panels", prefetch = "prefetch"; // of one level
// Winograd's products: tiles of pixels of a block, panels of columns of a task.
inline constexpr Name blockTiles = "block_tiles", taskPanels = "task_panels";
// Attention.
inline constexpr Name taskQueries = "task_queries", blockKeys = "block_keys";
// Loops: the shared dim of the lanes, -1: each node's own.
inline constexpr Name lanesDim = "lanes_dim";
// All of them.
inline constexpr Name names[] = {mBlocks,    nBlocks,    kBlocks,     tileRows,  tilePanels, prefetch,
                                 blockTiles, taskPanels, taskQueries, blockKeys, lanesDim};
} // namespace tuned

/// The tuned number within [least, most], or else `chosen`.
inline int64_t tunedWithin(mlir::Operation *op, llvm::StringRef name, int64_t least, int64_t most, int64_t chosen) {
  std::optional<int64_t> number = loop::getTuned(op, name);
  return number ? std::clamp(*number, least, most) : chosen;
}

/// Numbers that are worth a measurement beside those of the plan, each set on its own, the most promising first. The
/// kernel is not planned yet; sizes that a run tells are taken at their hints.
llvm::SmallVector<mlir::DictionaryAttr> listAlternatives(loop::KernelOp kernel, const CpuLevel &level);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUTUNING_H
