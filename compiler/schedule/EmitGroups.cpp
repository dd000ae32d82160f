//===- EmitGroups.cpp - groups as the ops that will be kernels ------------===//
//
// A group becomes a loop.fused with its nodes inside. How many of its leading dims count the calls of the body, which
// threads share, is decided here: the last of what is kept stays inside for lanes where it can.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/BlockGroups.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

/// A reduction whose reads are contiguous in the last of its first `kept` dims.
static bool readsAlongKept(Operation *node, unsigned kept) {
  if (!isa<ReductionOp, ScanOp>(node) || kept == 0)
    return false;
  std::string last = dimName(kept - 1);
  unsigned rank = getDomain(node).size();
  bool alongKept = false, alongReduced = false;
  node->walk([&](LoadOp load) {
    Expr address = prim::getExprs(load.getIndices())[0];
    auto isUnit = [&](StringRef dim) {
      Expr step = address.coefficientOf(dim);
      return step && step.isConstant(1);
    };
    alongKept |= isUnit(last);
    for (unsigned dim = kept; dim < rank; ++dim)
      alongReduced |= isUnit(dimName(dim));
  });
  return alongKept && !alongReduced;
}

/// Gives threads something to share where only one dim is kept: (c) becomes (c/64, 64).
static bool splitInnermost(Operation *node, unsigned kept, const SymbolRanges &symbols) {
  SmallVector<Expr> domain = getDomain(node);
  if (kept != 1 || !domain[0].isConstant())
    return false;
  for (int64_t width : {64, 32, 16})
    if (domain[0].getValue() % width == 0 && domain[0].getValue() > width)
      return splitPrefix(node, {Expr::constant(node->getContext(), domain[0].getValue() / width)}, symbols);
  return false;
}

/// Number of leading dims whose points run independently, one call of the body each.
static int64_t getParallel(const Group &group, const FusionContext &context) {
  Operation *node = group.nodes[0];
  if (group.nodes.size() > 1 && isa<ContractionOp>(node)) // the dims of rows of what runs behind it
    return group.outer.size();
  if (group.nodes.size() > 1)
    return group.outer.size() -
           (llvm::any_of(group.nodes, [&](Operation *n) { return readsAlongKept(n, group.outer.size()); }) ? 1 : 0);
  if (isa<ContractionOp, AttentionOp>(node))
    return 0;
  int64_t kept = getKeptCount(node);
  if (isa<PointwiseOp>(node))
    return kept <= 1 ? kept : kept - 1;
  if (kept > 0 && readsAlongKept(node, kept))
    return splitInnermost(node, kept, context.symbols) ? kept : kept - 1;
  return kept;
}

/// A part behind a loop may lie where the number of rounds says: it stands behind the loop, too, and what shows it
/// behind the part.
static void sinkParts(Block &block) {
  llvm::StringSet<> bound = getSymbolsBoundIn(block);
  for (PartOp part : llvm::to_vector(block.getOps<PartOp>())) {
    if (!Expr(part.getOffset()).usesAny([&](StringRef symbol) { return bound.contains(symbol); }))
      continue;
    Operation *first = nullptr;
    SmallVector<Operation *> taps;
    for (Operation *user : part->getUsers()) {
      Operation *use = block.findAncestorOpInBlock(*user);
      if (isa<TapOp>(use))
        taps.push_back(use);
      else if (!first || use->isBeforeInBlock(first))
        first = use;
    }
    if (first)
      part->moveBefore(first);
    else if (!taps.empty())
      part->moveBefore(&block, block.end());
    else
      part->erase();
    for (Operation *tap : taps)
      tap->moveAfter(part);
  }
}

void loop::emitGroups(Block &block, ArrayRef<Group *> groups, const FusionContext &context) {
  for (Group *group : groups) {
    if (group->nodes.empty())
      continue;
    if (group->isOpaque) {
      group->nodes[0]->moveBefore(&block, block.end());
      continue;
    }
    OpBuilder b = OpBuilder::atBlockEnd(&block);
    SmallVector<Location> locations;
    for (Operation *node : group->nodes)
      locations.push_back(node->getLoc());
    auto fused = FusedOp::create(b, FusedLoc::get(b.getContext(), locations), getParallel(*group, context));
    Block &body = fused.getBody().emplaceBlock();
    for (Operation *node : group->nodes)
      node->moveBefore(&body, body.end());
  }
  sinkParts(block);
}
