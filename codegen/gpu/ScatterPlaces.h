//===- ScatterPlaces.h - where a scatter's points write ---------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_SCATTERPLACES_H
#define PTC_CODEGEN_GPU_SCATTERPLACES_H

#include "codegen/gpu/GpuEmitter.h"
#include "ir/loop/ToldDims.h"

namespace ptc::gpu {

/// A scatter with one store, all of whose points may meet. Dims that the place itself says (ToldDims.h) are told;
/// points of the others are updates, in order, which write a place for each told point. Places that differ by what told
/// dims say have one quotient.
struct ScatterPlaces {
  static constexpr int64_t fewUpdates = 4096; // which owners find sooner than phases are done

  /// `isFlat`: no dims are told, each point is an update, each element a quotient.
  explicit ScatterPlaces(loop::ScatterOp op, bool isFlat = false);

  loop::ScatterOp op;
  loop::StoreOp store;
  loop::ToldDims told;
  llvm::SmallVector<unsigned> toldDims, updateDims; // places grow with the last told dim
  llvm::SmallVector<mlir::Operation *> indexOps;    // what the store's indices need
  llvm::SmallVector<mlir::Operation *> valueOps;    // what its value needs
  int64_t toldPoints = 1;
  bool isUniform = true; // indices are the same for all told points

  Expr countUpdates() const;
  /// Nothing where the kernel does not know how large the target is: of its symbols none is of dims that no point has.
  std::optional<Expr> countQuotients() const;
};

/// In the code of a scatter.
class PlaceEmitter {
public:
  PlaceEmitter(GpuEmitter &e, const ScatterPlaces &places);

  mlir::Value updates; // their number, i64

  EmissionPoint pointAt(mlir::Value toldPoint, mlir::Value update);
  /// The quotient of an update's place at the told point, i64; reports indices that are out of range.
  mlir::Value quotientOf(mlir::Value toldPoint, mlir::Value update);
  /// The element that a point writes, and its value there.
  mlir::Value addressOf(mlir::Value toldPoint, mlir::Value quotient);
  mlir::Value valueOf(const EmissionPoint &point);
  /// All of the body.
  void apply(const EmissionPoint &point);

private:
  GpuEmitter &e;
  const ScatterPlaces &places;
  unsigned rank;
  llvm::SmallVector<mlir::Value> toldSizes, updateSizes;
};

/// Whether the scatter has one store, at the end of its body, of what is read nowhere else, and all its points may
/// meet.
bool hasPlaces(loop::ScatterOp op);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_SCATTERPLACES_H
