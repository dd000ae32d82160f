//===- BodyEmitter.h - one body at one point --------------------*- C++ -*-===//
#ifndef PTC_CODEGEN_COMMON_BODYEMITTER_H
#define PTC_CODEGEN_COMMON_BODYEMITTER_H

#include "codegen/common/KernelEmitter.h"

namespace ptc::codegen {

/// Calls `emit` for each of the ops in order, but stores come last: memory that a body reads for the last time may be
/// the memory that it writes (in-place reuse), at the same index. A load of a buffer that the body has stored to sees
/// the store.
void emitStoresLast(llvm::ArrayRef<mlir::Operation *> ops, llvm::function_ref<void(mlir::Operation *)> emit);

/// Emits scalar body ops for a point, one after the other. Values of the body are mapped to scalars (the same in all
/// lanes) or to vectors of the point's lanes.
class BodyEmitter {
public:
  BodyEmitter(KernelEmitter &emitter, const EmissionPoint &point) : e(emitter), point(point) {}

  void bind(mlir::Value bodyValue, mlir::Value emitted) { values[bodyValue] = emitted; }
  void bind(mlir::ValueRange bodyValues, mlir::ValueRange emitted) {
    for (auto [bodyValue, value] : llvm::zip_equal(bodyValues, emitted))
      bind(bodyValue, value);
  }
  mlir::Value lookup(mlir::Value bodyValue) const {
    mlir::Value value = values.lookup(bodyValue);
    assert(value && "a body uses a value before it was emitted");
    return value;
  }
  bool isBound(mlir::Value bodyValue) const { return values.contains(bodyValue); }

  /// All ops of the block in order; the operand of its loop.yield, null without one. Ops whose results are bound
  /// already are left out.
  mlir::Value emitBlock(mlir::Block &block);
  void emitOp(mlir::Operation *op);
  /// As emitOp for each of the ops, stores last.
  void emitOps(llvm::ArrayRef<mlir::Operation *> ops);

private:
  struct Access {
    mlir::Value address; // one pointer, or a vector of pointers
    int64_t lanes = 1;   // 1: one element for all lanes
    bool isReversed = false;
    mlir::Value mask;
    llvm::SmallVector<mlir::Value> runs; // addresses of as many runs, whose elements take turns in the lanes
    llvm::SmallVector<int32_t> places;   // where in the vector of `together` elements at the address each lane is
    int64_t together = 0;
    int64_t stride = 1; // of lanes that are taken out of whole vectors, which lie at these addresses
    llvm::SmallVector<mlir::Value> vectors;
  };
  Access resolve(mlir::Value buffer, mlir::ArrayAttr indices, mlir::OperandRange operands, mlir::Type elementType,
                 loop::LoadOp load); // null: of a store
  /// Addresses of the runs that lanes with that index read in turns, if it is such an index.
  llvm::SmallVector<mlir::Value> resolveRuns(mlir::Value base, Expr index, mlir::ValueRange operands,
                                             mlir::Type elementType);
  /// Lets lanes that read an element of their group each take it out of one vector, if the index is so and it is known
  /// which element.
  bool resolveGroups(Access &access, mlir::Value base, loop::LoadOp load, mlir::ValueRange operands);
  /// Whether lanes with that stride are taken out of whole vectors.
  bool splits(int64_t stride, mlir::Type elementType) const;
  mlir::Value load(const Access &access, mlir::Type elementType);
  mlir::Value loadStrided(const Access &access, mlir::Type elementType);
  mlir::Value loadInOrder(const Access &access, mlir::Type elementType);
  void store(mlir::Value value, const Access &access);
  void emitStore(loop::StoreOp op);
  void emitElementwise(mlir::Operation *op);
  mlir::Value emitIndexComparison(mlir::arith::CmpIOp op); // null: one of another kind
  void emitCheckIndex(loop::CheckIndexOp op);
  void emitMasked(loop::MaskedOp op);
  mlir::Value emitGuarded(loop::MaskedOp op, mlir::Value mask, bool isVarying);
  bool variesInLanes(mlir::Region &region) const;
  llvm::SmallVector<mlir::Value> lookupAll(mlir::ValueRange bodyValues) const {
    return llvm::map_to_vector(bodyValues, [&](mlir::Value v) { return lookup(v); });
  }

  KernelEmitter &e;
  EmissionPoint point;
  bool isGuarded = false; // the mask comes from a condition too: perhaps no lane is set
  llvm::DenseMap<mlir::Value, mlir::Value> values;
};

/// `combine` of a store, or one step of a reduction.
mlir::Value emitCombine(KernelEmitter &emitter, prim::ReduceKind kind, mlir::Value a, mlir::Value b,
                        bool isUnsigned = false, bool noNan = false);
/// The neutral element of the reduction.
mlir::TypedAttr getIdentity(prim::ReduceKind kind, mlir::Type elementType, bool isUnsigned);

} // namespace ptc::codegen

#endif // PTC_CODEGEN_COMMON_BODYEMITTER_H
