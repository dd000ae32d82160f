//===- KernelEmitter.h - emits node bodies as vector code -------*- C++ -*-===//
//
// Shared by all CPU nodes and templates. A kernel's body is emitted for a *point*: the values that the dims have
// there, and the dim that runs along the lanes of a vector. Every loop.load becomes what its index says: one scalar
// (the index does not use the vector dim), one contiguous vector (coefficient 1), or a gather. Scalar arith and math
// ops are cloned on vectors. A value that is the same in all lanes stays a scalar until a vector op needs it.
//
// Ops are created at `builder`'s insertion point; index arithmetic, constants and addresses are created once, in the
// outermost block where their operands are defined.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_COMMON_KERNELEMITTER_H
#define PTC_CODEGEN_COMMON_KERNELEMITTER_H

#include "codegen/common/InvariantBuilder.h"
#include "codegen/cpu/CpuLevels.h"
#include "ir/loop/Loop.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ptc::cpu {

/// Where a body is emitted.
struct EmissionPoint {
  llvm::SmallVector<mlir::Value> dims; // i64 scalars, of the vector dim that of lane 0; null: not defined here
  int64_t vectorDim = -1;              // -1: scalar point
  int64_t lanes = 1;                   // 1: scalar point
  mlir::Value mask;                    // vector<lanes x i1>: lanes that exist; null: all of them
  bool isVector() const { return lanes > 1; }
};

using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value iv, mlir::ValueRange carried)>;

class KernelEmitter {
public:
  /// `builder` stands at the start of the function's body. Pointers of kernel arguments and values of symbols are
  /// loaded there from the kernel ABI's `buffers` and `symbols`; `errorFlag` is a pointer to i32.
  KernelEmitter(mlir::OpBuilder &builder, loop::KernelOp kernel, const CpuLevel &level, mlir::Value buffers,
                mlir::Value symbols, mlir::Value scratch, mlir::Value errorFlag);

  mlir::OpBuilder &builder;
  loop::KernelOp kernel;
  const CpuLevel &level;
  mlir::Location loc;
  InvariantBuilder invariants; // hoisted, deduplicated i64 and vector arithmetic

  //===--- Memory ---------------------------------------------------------===//

  /// Base address of a kernel argument or of a local buffer.
  mlir::Value getPointer(mlir::Value buffer) const { return pointers.lookup(buffer); }
  void setPointer(mlir::Value buffer, mlir::Value pointer) { pointers[buffer] = pointer; }
  /// `bytes` of the thread's scratch block, from byte offset `offset`.
  mlir::Value getScratch(int64_t offset = 0);
  /// The type that memory holds for a scalar type: i1 is i8, 8-bit floats are i8, others themselves.
  static mlir::Type getMemoryType(mlir::Type elementType);
  /// &pointer[index], index in elements of `elementType` (as stored in memory).
  mlir::Value getAddress(mlir::Value pointer, mlir::Type elementType, mlir::Value index);
  /// lanes elements (1: a scalar) that lie at `address`; mask as in a point. i1 is converted from and to bytes.
  mlir::Value createLoad(mlir::Type elementType, int64_t lanes, mlir::Value address, mlir::Value mask = {});
  void createStore(mlir::Value value, mlir::Value address, mlir::Value mask = {});

  //===--- Expressions ----------------------------------------------------===//

  mlir::Value symbolValue(llvm::StringRef name) const;
  /// The i64 value at the point (lane 0 of the vector dim); `operands` are the scalar values of _0, _1, ...
  mlir::Value emitExpr(Expr expr, const EmissionPoint &point, mlir::ValueRange operands = {});
  /// The value in every lane: a scalar if all lanes agree, else vector<lanes x i64>.
  mlir::Value emitLanes(Expr expr, const EmissionPoint &point, mlir::ValueRange operands = {});

  //===--- Bodies ---------------------------------------------------------===//

  /// Emits the ops of `block` for the point; block arguments take `arguments`. Returns the value of its loop.yield
  /// (scalar if uniform, else a vector; see `splat`), null without one.
  mlir::Value emitBlock(mlir::Block &block, const EmissionPoint &point, mlir::ValueRange arguments = {});
  mlir::Value emitRegion(mlir::Region &region, const EmissionPoint &point, mlir::ValueRange arguments = {}) {
    return emitBlock(region.front(), point, arguments);
  }
  /// The value as vector<lanes x T>; a vector or lanes == 1 is returned as it is.
  mlir::Value splat(mlir::Value value, int64_t lanes);
  /// vector<lanes x i1> of the lanes l with l < count (i64).
  mlir::Value laneMask(mlir::Value count, int64_t lanes);
  /// Lanes that suit the element types that `op`'s body loads, stores and computes.
  int64_t chooseLanes(mlir::Operation *op) const;

  //===--- Loops ----------------------------------------------------------===//

  /// for iv = lower; iv < upper; iv += step (all i64): the body gets the carried values and returns the next ones.
  /// The insertion point is inside while `body` runs, after the loop later. Returns the final carried values.
  llvm::SmallVector<mlir::Value> createLoop(mlir::Value lower, mlir::Value upper, int64_t step,
                                            mlir::ValueRange init, LoopBody body);
  mlir::Value constant(int64_t value) { return invariants.constant(value); }

private:
  friend class BodyEmitter;
  llvm::DenseMap<mlir::Value, mlir::Value> pointers;
  llvm::StringMap<mlir::Value> symbolValues;
  mlir::Value scratch, errorFlag;
};

} // namespace ptc::cpu

#endif // PTC_CODEGEN_COMMON_KERNELEMITTER_H
