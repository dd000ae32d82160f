//===- CpuContractionConvert.h - weights that are converted ------*- C++ -*-===//
//
// What becomes of elements of a weight in panels before they are multiplied.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTIONCONVERT_H
#define PTC_CODEGEN_CPU_CPUCONTRACTIONCONVERT_H

#include "codegen/cpu/CpuContractionTask.h"

namespace ptc::cpu {

/// Converts the elements that a task reads. Holds references alone, so tiles keep copies of it, while the task lives.
class WeightConverter : ContractionTechnique {
public:
  WeightConverter(ContractionEmission &contraction, const ContractionTask &task)
      : ContractionTechnique(contraction), task(task) {}
  /// A vector of groups of the rhs, with the rest of its region applied to each element.
  mlir::Value convertGroups(mlir::Value groups) const;
  /// `wanted` of the rhs on a vector of the weight's elements from `column` of the panel on, at the point's k.
  /// `prefetches`: what is read beside the weight streams from memory.
  mlir::Value convert(EmissionPoint at, mlir::Value wanted, mlir::Value panel, mlir::Value elements, int64_t column,
                      bool prefetches = false) const;
  /// The conversion's factor for a vector of the panel's columns, where the outer loops over k stand.
  mlir::Value factorOf(mlir::Value panel, const TileVector &vector, mlir::ValueRange outer, bool prefetches) const;
  /// Where the loops over k stand, and number `term` of a group.
  EmissionPoint pointInLoops(mlir::ValueRange ks, int64_t term) const;
  /// What the tile does with vectors that it loads from the weight's panels.
  void convertIn(TileOperands &operands, const TileShape &shape, const ContractionTile &tile) const;
  /// Converts the task's columns, as panels in scratch.
  void pack(mlir::Value kLower, mlir::Value kUpper) const;

private:
  /// Number `term` of the groups in a vector of words, as the rest of the rhs takes it.
  mlir::Value numberOf(mlir::Value words, int64_t term) const;

  const ContractionTask &task;
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTIONCONVERT_H
