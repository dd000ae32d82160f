//===- KernelEmitter.h - emits node bodies as vector code -------*- C++ -*-===//
//
// Shared by all targets that make machine code. A kernel's body is emitted for a *point*: the values that the dims have
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
#include "ir/loop/Loop.h"
#include "llvm/ADT/DenseSet.h"

namespace ptc::codegen {

/// Where a body is emitted.
struct EmissionPoint {
  llvm::SmallVector<mlir::Value> dims; // i64 scalars, of the vector dim that of lane 0; null: not defined here
  int64_t vectorDim = -1;              // -1: scalar point
  int64_t lanes = 1;                   // 1: scalar point
  int64_t laneStride = 1;              // not 1: lanes stand in the order of StridedLanes(lanes, laneStride)
  mlir::Value mask;                    // vector<lanes x i1>: lanes that exist; null: all of them
  llvm::SmallVector<int64_t> offsets;  // by dim, added to `dims`; empty: none. Neighbours then share index arithmetic
  const llvm::DenseSet<mlir::Attribute> *assumed = nullptr; // conditions of masks that are known to hold
  bool isVector() const { return lanes > 1; }
};

using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value iv, mlir::ValueRange carried)>;

/// What emission depends on besides the kernel.
struct EmissionTraits {
  int64_t vectorBits = 0;     // of a register that lanes fill
  int64_t mostStride = 1;     // up to which lanes that step over elements are taken out of whole vectors
  int64_t maskedBits = 0;     // of the smallest element of masked vector loads; 0: there are none
  bool narrowIndices = false; // scalar index arithmetic in 32 bits where the ranges allow it
  bool sharedErrors = false;  // threads that run at the same time share the error flag
  bool hasExtrema = false;    // instructions for the larger and the smaller f32, which are NaN if one of the two is
};

class KernelEmitter {
public:
  /// `builder` stands at the start of the function's body; `errorFlag` is a pointer to i32, null if the kernel checks
  /// nothing. Pointers and symbols are set by the target, which knows where its kernels find them.
  KernelEmitter(mlir::OpBuilder &builder, loop::KernelOp kernel, EmissionTraits traits, mlir::Value errorFlag);

  mlir::OpBuilder &builder;
  loop::KernelOp kernel;
  const EmissionTraits traits;
  mlir::Location loc;
  InvariantBuilder invariants; // hoisted, deduplicated i64 and vector arithmetic

  /// While the kernel runs denormal results are 0.
  bool flushesDenormals = false;

  /// Tells the ranges of d0, d1, ...: call it before a node's expressions are emitted.
  void setDomain(llvm::ArrayRef<Expr> domain);
  const SymbolRanges &getRanges() const { return ranges; }

  //===--- Memory ---------------------------------------------------------===//

  /// Base address of a kernel argument or of a local buffer.
  mlir::Value getPointer(mlir::Value buffer) const { return pointers.lookup(buffer); }
  void setPointer(mlir::Value buffer, mlir::Value pointer) { pointers[buffer] = pointer; }
  /// Says that at vector points each lane has its own copy of this local buffer: element i of lane l lies at
  /// i*lanes + l.
  void setPerLane(mlir::Value buffer) { perLane.insert(buffer); }
  bool isPerLane(mlir::Value buffer) const { return perLane.contains(buffer); }
  /// Says that a local buffer of one element is written by straight code alone, which all that reads it follows. So a
  /// load takes the stored value itself, wherever that is visible: conversions that may be left out between them are.
  void hold(mlir::Value buffer) { held.insert({buffer, {}}); }
  /// The value last stored to a buffer that is held; null for others, and where the value is not visible.
  mlir::Value getHeld(mlir::Value buffer) const;
  void setHeld(mlir::Value buffer, mlir::Value value);
  /// Memory of the function's frame; small and of static size.
  mlir::Value createStackSlot(int64_t bytes, int64_t alignment = 64);
  /// Work space of an op that needs some (a sort).
  mlir::Value getLocalMemory(mlir::Operation *op) const { return localMemory.lookup(op); }
  void setLocalMemory(mlir::Operation *op, mlir::Value pointer) { localMemory[op] = pointer; }
  /// The type that memory holds for a scalar type: i1 is i8, floats below 32 bits are their bits, others themselves.
  static mlir::Type getMemoryType(mlir::Type elementType);
  /// &pointer[index], index in elements of `elementType` (as stored in memory).
  mlir::Value getAddress(mlir::Value pointer, mlir::Type elementType, mlir::Value index);
  /// lanes elements (1: a scalar) that lie at `address`; mask as in a point. i1 is converted from and to bytes.
  mlir::Value createLoad(mlir::Type elementType, int64_t lanes, mlir::Value address, mlir::Value mask = {});
  void createStore(mlir::Value value, mlir::Value address, mlir::Value mask = {});
  /// What memory holds as what bodies compute with, and back.
  mlir::Value fromMemory(mlir::Value stored, mlir::Type elementType);
  mlir::Value toMemory(mlir::Value value);

  //===--- Expressions ----------------------------------------------------===//

  mlir::Value symbolValue(llvm::StringRef name) const;
  /// `range`: what is known of it at all launches.
  void setSymbol(llvm::StringRef name, mlir::Value value, const ExprRange &range = {});
  /// The i64 value at the point (lane 0 of the vector dim); `operands` are the scalar values of the access's operands
  mlir::Value emitExpr(Expr expr, const EmissionPoint &point, mlir::ValueRange operands = {});
  /// The most that a constant, or what an expression over symbols alone became, can be; nothing where that is unknown.
  std::optional<int64_t> getLargest(mlir::Value value) const;
  /// The value in every lane: a scalar if all lanes agree, else vector<lanes x i64>.
  mlir::Value emitLanes(Expr expr, const EmissionPoint &point, mlir::ValueRange operands = {});
  /// As emitLanes, but the vector's elements may be i32 where the ranges allow it.
  mlir::Value emitLaneIndex(Expr expr, const EmissionPoint &point, mlir::ValueRange operands = {});

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
  /// The numbers of the point's lanes, times `step`.
  mlir::Value laneNumbers(const EmissionPoint &point, mlir::Type elementType, int64_t step = 1);
  /// Lanes that suit the element types that `op`'s body loads, stores and computes.
  int64_t chooseLanes(mlir::Operation *op) const;

  //===--- Loops ----------------------------------------------------------===//

  /// for iv = lower; iv < upper; iv += step (all i64): the body gets the carried values and returns the next ones.
  /// The insertion point is inside while `body` runs, after the loop later. Returns the final carried values.
  llvm::SmallVector<mlir::Value> createLoop(mlir::Value lower, mlir::Value upper, int64_t step, mlir::ValueRange init,
                                            LoopBody body);
  mlir::Value constant(int64_t value) { return invariants.constant(value); }

  /// Makes the kernel fail (after it has run to its end) where `bad` (i1) holds.
  void raiseError(mlir::Value bad);
  /// i1: some lane of vector<lanes x i1> is set.
  mlir::Value anyLane(mlir::Value mask);
  /// 8 bytes of zeros that may be read in place of what must not be.
  mlir::Value getDummy();

private:
  mlir::Value emitBound(Expr expr, const EmissionPoint &point, mlir::ValueRange operands);
  Expr bindConstants(Expr expr, const EmissionPoint &point) const;
  mlir::Value emitTree(Expr expr, llvm::function_ref<mlir::Value(llvm::StringRef)> leaf, mlir::Type type);
  bool fitsInt32(Expr expr) const;
  llvm::DenseMap<mlir::Value, mlir::Value> pointers, held;
  llvm::DenseMap<mlir::Operation *, mlir::Value> localMemory;
  llvm::DenseSet<mlir::Value> perLane;
  llvm::StringMap<mlir::Value> symbolValues;
  llvm::DenseMap<mlir::Value, int64_t> largest; // of what depends on symbols alone
  SymbolRanges symbolRanges, ranges;            // of symbols; of dims too
  mlir::Block *entry;
  mlir::Operation *prologue; // stack slots stand behind it: constants are always in front
  mlir::Value errorFlag, dummy;
};

/// The number of an indirect access's operand in an expression (Expr::operand); nothing for other names.
std::optional<unsigned> parseOperand(llvm::StringRef name);
inline bool isVector(mlir::Value value) { return llvm::isa<mlir::VectorType>(value.getType()); }

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_KERNELEMITTER_H
