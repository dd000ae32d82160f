//===- CpuContractionPatches.h - windows of 3x3 bytes ------------*- C++ -*-===//
//
// Products of a task whose rows are patches of 4 x 4 outputs.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTIONPATCHES_H
#define PTC_CODEGEN_CPU_CPUCONTRACTIONPATCHES_H

#include "codegen/cpu/CpuContractionTask.h"

namespace ptc::cpu {

/// Transformed pixels, weights and products of a task's patches in scratch are its own.
class PatchEmission : ContractionTechnique {
public:
  explicit PatchEmission(ContractionEmission &contraction);
  /// Once for tasks of the same patches.
  void transformPixels(const ContractionTask &task);
  void emit(const ContractionTask &task);

private:
  /// A patch's first row, and how many of its lines and columns the patches before it have, too.
  struct Place {
    mlir::Value row, sharedLines, sharedColumns;
  };
  /// A block of channels: its first term, its groups.
  struct Block {
    mlir::Value lower, groups;
  };
  Place placeOf(mlir::Value patch);
  RowAddresses pixelsOf(const ContractionTask &task, mlir::Value row);
  Expr termsOfOuter(const KLoop &kLoop);
  void forEachBlock(llvm::function_ref<void(const Block &block)> body);
  void transformWeights(const ContractionTask &task, mlir::Value panel, const Block &block);
  void multiplyTile(const Block &block, mlir::Value point, mlir::Value first, int64_t height);
  void multiplyBlock(const ContractionTask &task, const Block &block);
  mlir::Value outputsOf(mlir::Value local, int64_t output, const TileVector &vector);
  void startOutputs(const ContractionTask &task, mlir::Value panel);
  void addToOutputs(const ContractionTask &task);
  void finish(const ContractionTask &task, mlir::Value panel);

  mlir::Value pixelCopies, pointWeights, pointProducts, outputSums; // in scratch
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTIONPATCHES_H
