//===- CpuEmitter.h - common's emitters for a CPU level ---------*- C++ -*-===//
//
// What codegen/common offers, under the names that this folder uses, and the emitter of a kernel that knows the level
// and the kernel ABI.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUEMITTER_H
#define PTC_CODEGEN_CPU_CPUEMITTER_H

#include "codegen/common/BodyEmitter.h"
#include "codegen/common/KernelEmitter.h"
#include "codegen/cpu/CpuLevels.h"

namespace ptc::cpu {

using codegen::BodyEmitter;
using codegen::EmissionPoint;
using codegen::emitCombine;
using codegen::getIdentity;
using codegen::InvariantBuilder;
using codegen::isVector;
using codegen::LoopBody;
using codegen::parseOperand;

/// The dims [first, end) but for one.
llvm::SmallVector<int64_t> dimsBetween(int64_t first, int64_t end, int64_t without = -1);

class KernelEmitter : public codegen::KernelEmitter {
public:
  /// `builder` stands at the start of the function's body. Pointers of kernel arguments and values of symbols are
  /// loaded there from the kernel ABI's `buffers` and `symbols`; `errorFlag` is a pointer to i32.
  KernelEmitter(mlir::OpBuilder &builder, loop::KernelOp kernel, const CpuLevel &level, mlir::Value buffers,
                mlir::Value symbols, mlir::Value scratch, mlir::Value errorFlag);

  const CpuLevel &level;
  bool isStrict = false; // 0 times infinity and NaN matters
  bool isStage = false;  // of a recurrence: weights are read again at each step, out of caches

  /// The thread's scratch block from a byte offset on.
  mlir::Value getScratch(int64_t offset = 0) { return getScratchAt(constant(offset)); }
  mlir::Value getScratchAt(mlir::Value offset) { return getAddress(scratch, builder.getI8Type(), offset); }

  /// createLoop without values from one round to the next.
  void forEach(mlir::Value lower, mlir::Value upper, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// Points with so many lanes along `dim` in [lower, upper): whole vectors, then a masked one. `body` gets the
  /// position.
  void forEachVector(EmissionPoint point, int64_t dim, int64_t lanes, mlir::Value lower, mlir::Value upper,
                     llvm::function_ref<void(const EmissionPoint &, mlir::Value)> body);
  void emitIf(mlir::Value condition, llvm::function_ref<void()> body, llvm::function_ref<void()> otherwise = {});
  /// What `emit` gives in the one case and in the other, of these types.
  llvm::SmallVector<mlir::Value> emitChoice(mlir::Value condition, mlir::TypeRange types,
                                            llvm::function_ref<llvm::SmallVector<mlir::Value>(bool isTrue)> emit);

private:
  mlir::Value scratch;
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUEMITTER_H
