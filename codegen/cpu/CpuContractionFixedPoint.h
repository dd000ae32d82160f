//===- CpuContractionFixedPoint.h - rows in fixed point ----------*- C++ -*-===//
//
// Tiles of rows in fixed point by weights of few bits.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTIONFIXEDPOINT_H
#define PTC_CODEGEN_CPU_CPUCONTRACTIONFIXEDPOINT_H

#include "codegen/cpu/CpuContractionTask.h"

namespace ptc::cpu {

/// The copy of a task's rows in scratch is its own.
class FixedPointEmission : ContractionTechnique {
public:
  explicit FixedPointEmission(ContractionEmission &contraction);
  void copyRows(const ContractionTask &task);
  llvm::SmallVector<mlir::Value> multiply(const ContractionTask &task, const ContractionTile &tile,
                                          mlir::ValueRange init);

private:
  mlir::Value records;
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTIONFIXEDPOINT_H
