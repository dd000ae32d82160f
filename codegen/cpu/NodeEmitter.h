//===- NodeEmitter.h - code of loop nodes at points of the kernel -*- C++ -*-===//
//
// A node is emitted for one or more points of the kernel's shared dims: scalar points (its own dims may carry the
// lanes), or vector points along a shared dim, several at once so that their dependency chains overlap.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_NODEEMITTER_H
#define PTC_CODEGEN_CPU_NODEEMITTER_H

#include "codegen/cpu/CpuEmitter.h"
#include "codegen/cpu/CpuPlan.h"

namespace ptc::cpu {

using Points = llvm::SmallVector<EmissionPoint, 4>;
/// What values of a node's body are, where it is known before the body is emitted, and what a tile does at each step
/// besides, given its first point and the number of its points (null: nothing).
struct PointContext {
  llvm::DenseMap<mlir::Value, mlir::Value> known;
  std::function<void(const EmissionPoint &first, int64_t count)> atStep;
};
/// Emits something for the points; `carried` are loop-carried values, the result their next values.
using PointBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(const Points &points, mlir::ValueRange carried)>;

/// Steps of a long sum that are added up by themselves before they join the others. It is the same wherever a sum's
/// lanes are kept dims, so that how these are cut changes no bit.
inline constexpr int64_t blockSteps = 64;

class NodeEmitter {
public:
  NodeEmitter(KernelEmitter &emitter, mlir::Operation *node) : e(emitter), node(node), domain(loop::getDomain(node)) {
    e.setDomain(domain);
  }

  /// Emits the node at points of the first `shared` dims. `vectorDim`: the node's own dim that carries lanes, -1.
  /// `tiled`: of a windowed reduction the dim along which the points are a tile, -1. `context`: the same for all points
  /// of a reduction.
  void emit(const Points &points, int64_t shared, int64_t vectorDim, int64_t tiled = -1,
            const PointContext &context = PointContext());

private:
  void emitPointwise(const Points &points, int64_t shared, int64_t vectorDim);
  void emitReduction(loop::ReductionOp op, const Points &points, int64_t shared, int64_t vectorDim, int64_t tiled,
                     const PointContext &context);
  void emitScan(loop::ScanOp op, const Points &points, int64_t shared, int64_t vectorDim);
  void emitSort(loop::SortOp op, const Points &points, int64_t shared, int64_t vectorDim);
  void emitRowSort(loop::SortOp op, const EmissionPoint &row);
  void emitGreedy(loop::GreedyOp op, const EmissionPoint &point, int64_t shared);

  KernelEmitter &e;
  mlir::Operation *node;
  llvm::SmallVector<Expr> domain;
};

/// The ops of a body whose values are the same wherever a point lies along the dims. Loads of what the node stores are
/// not among them.
llvm::SmallVector<mlir::Operation *> findUniform(KernelEmitter &e, mlir::Block &block, llvm::ArrayRef<int64_t> dims);

/// How many vectors of points one step of a loop takes: enough chains to hide latencies, few enough to stay in
/// registers. Of a node, or of the operations of its loop alone.
int64_t choosePointsPerStep(mlir::Operation *node);
int64_t choosePointsPerStep(llvm::ArrayRef<mlir::Operation *> ops);
/// Whether a step takes two vectors as one of twice the lanes: each operation of a function then stands beside that of
/// the other vector, and their chains overlap.
bool takesPairs(mlir::Operation *node, const CpuLevel &level);

/// What takes dozens of instructions that wait for each other: an elementary function.
bool isFunction(mlir::Operation *op);

/// How many rows of a lone pointwise node [rows, row] a step takes together, lanes along `vectorDim`: 1 where a row
/// fills a vector, or no function gains by it. A power of two.
int64_t chooseShortRows(KernelEmitter &e, mlir::Operation *node, int64_t vectorDim);
/// The node at `count` rows from `first` on.
void emitShortRows(KernelEmitter &e, mlir::Operation *node, mlir::Value first, int64_t count);

/// Loops over `dims` (outermost first) around `body`, values carried through. Loops of constant length that come to at
/// most `unrolled` iterations together are unrolled.
llvm::SmallVector<mlir::Value> emitLoops(KernelEmitter &e, llvm::ArrayRef<Expr> domain, llvm::ArrayRef<int64_t> dims,
                                         const Points &points, mlir::ValueRange carried, PointBody body,
                                         int64_t unrolled = 1);

/// One loop over [lower, upper) of `dim` in vectors: `pointsPerStep` vectors at a time (`inPairs`: two as one), then
/// one, then what is left under a mask (`hasMasks`) or in smaller steps. `point` gives the other dims.
llvm::SmallVector<mlir::Value> emitVectorLoop(KernelEmitter &e, const EmissionPoint &point, int64_t dim,
                                              mlir::Value lower, mlir::Value upper, int64_t lanes,
                                              int64_t pointsPerStep, bool hasMasks, mlir::ValueRange carried,
                                              PointBody body, bool inPairs = false);

/// Emits something for each of the points that it loops over.
using PointLoop = llvm::function_ref<void(llvm::function_ref<void(const EmissionPoint &point)> body)>;

/// A windowed reduction along dim `config.tiled`: all of the dim, or its block of that number. `alongLanes` loops over
/// the points of a tile's place, vectors along another shared dim, or is one point where lanes run along a reduced dim.
/// `context`: the same for all of them.
void emitTiles(KernelEmitter &e, mlir::Operation *node, const LoopConfig &config, int64_t shared, mlir::Value block,
               PointLoop alongLanes, const PointContext &context = PointContext());

/// A pointwise node in squares along the dims `config.sharedVector` and `config.tiled`: all of each, or its block of
/// that number. `point` has the other dims.
void emitSquares(KernelEmitter &e, mlir::Operation *node, const LoopConfig &config, const EmissionPoint &point,
                 mlir::Value block, mlir::Value tileBlock);

/// Whether sums of columns of a large matrix take its whole rows in turn.
bool readsRowsInTurn(loop::ReductionOp op);
/// Such sums of the columns [from, to); `byColumns` emits them for where these are few, with the same results.
void emitRowsInTurn(KernelEmitter &e, loop::ReductionOp op, mlir::Value from, mlir::Value to,
                    llvm::function_ref<void()> byColumns);

/// Where along a kept dim all windows of a reduction lie inside its input, as far as `conditions` say it.
struct Interior {
  mlir::Value from, to;
  llvm::DenseSet<mlir::Attribute> conditions;
};
Interior findInterior(KernelEmitter &e, loop::ReductionOp op, int64_t dim);

/// Work space of a sort.
Expr getSortBytes(loop::SortOp op);

/// The reduced dim over the elements of groups of which vectors of so many lanes along dim `lanesDim` hold several; -1.
int64_t findGroupTerm(KernelEmitter &e, loop::ReductionOp op, int64_t lanesDim, int64_t lanes);

/// Masked accesses exist for every element type that the op loads or stores.
bool hasMasks(mlir::Operation *op, const CpuLevel &level);

/// Lanes for the dim: no more than a constant extent needs.
int64_t chooseLanes(KernelEmitter &e, mlir::Operation *op, Expr extent);
/// Shorter vectors where whatever repeats along the dim (codegen/common/Interleaving.h) does so in whole ones of those
/// alone: rows of 56 are three and a half vectors of 16.
int64_t shortenToBlocks(mlir::Operation *op, int64_t dim, int64_t lanes);
/// The most that divide the constant extent.
int64_t chooseWholeLanes(KernelEmitter &e, mlir::Operation *op, Expr extent);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_NODEEMITTER_H
