//===- Scheduler.h - groups of nodes and what may be fused ------*- C++ -*-===//
//
// The scheduler's view of one block: groups of nodes (one group will be one
// kernel), what they read and write, and the ways of fusing them:
//
//   merge     a pointwise node goes into the body of another node (a pointwise, a
//             reduction's inner or outer part, a template's epilogue): the value
//             between them stays in a register
//   share     groups of pointwise and reduction nodes run one after the other for each
//             point of common outer dims: what lies between them stays in cache
//   blocks    products of the same rows, pointwise nodes that read these part by part, and nodes that share a product's
//             rows run one after the other for each block of their results; pointwise nodes and products run ahead of
//             each head of an attention
//
// `canFuse` answers with a plan or with the reason for refusing.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_COMPILER_SCHEDULE_SCHEDULER_H
#define PTC_COMPILER_SCHEDULE_SCHEDULER_H

#include "compiler/schedule/NodeDims.h"
#include <memory>

namespace ptc::loop {

/// Nodes that will be one kernel.
struct Group {
  llvm::SmallVector<mlir::Operation *> nodes; // in order of execution
  llvm::SmallVector<Expr> outer;              // extents of shared dims, once there are several nodes
  unsigned position = 0;                      // in the block's order
  bool isOpaque = false;                      // control flow: never fused
  llvm::SmallVector<mlir::Value> read, written;
  bool reads(mlir::Value buffer) const { return llvm::is_contained(read, buffer); }
  bool writes(mlir::Value buffer) const { return llvm::is_contained(written, buffer); }
};

enum class FusionKind {
  None,
  MergeIntoProducer,
  MergeIntoConsumer,
  MergeParts,
  MergeReads,
  Share,
  Beside,
  MergeBeside,
  Blocks
};

struct FusionPlan {
  FusionKind kind = FusionKind::None;
  mlir::Value buffer = {};            // what is kept in registers or cache; Beside: what both read
  llvm::SmallVector<Expr> outer = {}; // Share, Beside: extents of the common dims; Blocks: of what counts rows or heads
  std::string reason = {};            // None: why not
  DimSplit split = {};                // MergeInto.., MergeReads: the dims that the target shall have; empty: its own
  explicit operator bool() const { return kind != FusionKind::None; }
  static FusionPlan no(std::string reason) { return {.reason = std::move(reason)}; }
};

/// What the functions below need to know of the program.
struct FusionContext {
  SymbolRanges symbols;
  SymbolValues hints;
  mlir::Block *block; // being scheduled
  /// Results that may share an argument's memory, and that argument's.
  llvm::DenseMap<mlir::Value, mlir::Value> aliases;
  bool hasDevice = false;  // kernels run there, but for those of strings and sequences
  int64_t weightBytes = 0; // of the whole program
};

/// Heads of one query each that have the same keys become queries of one head (GroupHeads.cpp).
void groupHeads(AttentionOp op, const SymbolRanges &symbols);

// Merging (MergeNodes.cpp).

/// May pointwise `node` be inlined after `buffer`'s store in `target`?
FusionPlan canMergeIntoProducer(mlir::Operation *target, mlir::Operation *node, mlir::Value buffer,
                                const FusionContext &context);
void mergeIntoProducer(mlir::Operation *target, mlir::Operation *node, const FusionPlan &plan,
                       const FusionContext &context);
/// May pointwise `node`, which writes `buffer`, be inlined where `target` reads it? The plan may split the target's
/// dims, if it stands alone (`isAlone`): others of its kernel share them.
FusionPlan canMergeIntoConsumer(mlir::Operation *node, mlir::Operation *target, mlir::Value buffer, bool isAlone,
                                const FusionContext &context);
void mergeIntoConsumer(mlir::Operation *node, mlir::Operation *target, const FusionPlan &plan,
                       const FusionContext &context);

/// May pointwise `node`, which reads few parts of what the sum `target` writes to `buffer` (a gate and what it lets
/// through), be one with it? All parts are summed side by side then. Others are refused without a reason.
FusionPlan canMergeParts(mlir::Operation *target, mlir::Operation *node, mlir::Value buffer,
                         const FusionContext &context);
/// Returns what the two have become.
mlir::Operation *mergeParts(mlir::Operation *target, mlir::Operation *node, mlir::Value buffer,
                            const FusionContext &context);

/// May pointwise `node`, which writes `buffer`, be computed at each of the few places where `target` reads it? Only
/// where that is no more work, as where pairs of rows become one and pairs of columns then. The plan may split the
/// target's dims.
FusionPlan canMergeReads(mlir::Operation *node, mlir::Operation *target, mlir::Value buffer,
                         const FusionContext &context);
void mergeReads(mlir::Operation *node, mlir::Operation *target, const FusionPlan &plan, const FusionContext &context);

/// Merges members of a final group with each other (MergeMembers.cpp).
void mergeMembers(Group &group, const FusionContext &context);

/// Pointwise nodes whose indices are sums between few places of the last dim become a node for each piece of it
/// (SplitRuns.cpp). For groups that are final.
void splitRuns(Group &group, const FusionContext &context);

// Sharing outer dims (ShareDims.cpp).
FusionPlan canShare(const Group &producer, const Group &consumer, const FusionContext &context);
/// May pointwise nodes and products run in an attention's tasks, ahead of the heads that read what they write? The
/// plan's dims are those of heads.
FusionPlan canRunAhead(const Group &producer, const Group &consumer, const FusionContext &context);
/// Adds the consumer's nodes to the producer's, all of them with the plan's dims first.
void share(Group &producer, const Group &consumer, const FusionPlan &plan, const FusionContext &context);

// Sharing blocks of rows and columns (ShareBlocks.cpp): of products, and of pointwise nodes and norms behind them;
// heads of an attention, and of what runs ahead of it. Groups of other nodes are refused without a reason.
FusionPlan canShareBlocks(const Group &producer, const Group &consumer, const FusionContext &context);
void shareBlocks(Group &producer, const Group &consumer, const FusionPlan &plan, const FusionContext &context);

/// Rows of a weight that each point of a lone sum of products chooses: in blocks outside of the points
/// (BlockChosenRows.cpp).
void blockChosenRows(ReductionOp product, const FusionContext &context);

/// Fewer points than this leave cores idle when the work is large.
constexpr int64_t minParallelPoints = 4;
constexpr int64_t smallWork = 1 << 14;
/// Nodes of a kernel that share no values, or that run behind products: its code is theirs together.
constexpr size_t mostBeside = 8;

// Side by side (ShareReads.cpp): groups that do not depend on each other. Those that have nothing to do with each other
// are refused without a reason.

/// May pointwise groups that read one value run as one kernel, node after node?
FusionPlan canRunBeside(const Group &first, const Group &second, const FusionContext &context);
void runBeside(Group &first, const Group &second, const FusionPlan &plan, const FusionContext &context);
/// May pointwise groups that have the same readers be one node (MergeNodes.cpp)?
FusionPlan canMergeBeside(const Group &first, const Group &second);
void mergeBeside(Group &first, const Group &second, const FusionPlan &plan, const FusionContext &context);
/// May reductions of the same elements that do not depend on each other be one node (MergeSums.cpp)?
bool canMergeSums(const Group &first, const Group &second);
void mergeSums(Group &first, const Group &second);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_SCHEDULER_H
