//===- MergeReads.cpp - nodes of which another reads several places --------===//
//
// A node that reads what another one writes at several places becomes one with it where each element is computed no
// more often than before: the body of the one that writes is there once for each place.
//
//   s[i] = sum(..);            y[i] = s[i] * gate(s[i+n])        both halves are summed side by side (canMergeParts)
//   r[i, j] = mean of 2 rows;  y[i, j] = mean of r[i, 2j], r[i, 2j+1]   four loads and no r (canMergeReads)
//
// The points of the one are found in those of the other as in MergeNodes.cpp.
//
//===----------------------------------------------------------------------===//
#include "compiler/schedule/MergeNodes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

/// More sums at a time would not stay in registers.
constexpr size_t mostParts = 4;

/// The distinct addresses at which the node reads the buffer, in order; none where one is computed or under a mask.
static SmallVector<Expr> getPartAddresses(Operation *node, Value buffer) {
  SmallVector<Expr> addresses;
  for (LoadOp load : getLoads(node, buffer)) {
    if (isIndirect(load) || load->getParentOp() != node)
      return {};
    if (!llvm::is_contained(addresses, getAddress(load)))
      addresses.push_back(getAddress(load));
  }
  return addresses;
}

/// The dims that a sum keeps, of the element at an address in the node's dims.
static std::optional<SmallVector<Expr>> invertPart(ReductionOp sum, StoreOp store, Operation *node, Expr address,
                                                   const FusionContext &context) {
  SmallVector<Expr> kept = getDomain(sum);
  kept.resize(getKeptCount(sum));
  return invert(getAddress(store), kept, address, getNodeRanges(node, context.symbols), context.hints);
}

FusionPlan loop::canMergeParts(Operation *target, Operation *node, Value buffer, const FusionContext &context) {
  auto sum = dyn_cast<ReductionOp>(target);
  SmallVector<Expr> addresses = getPartAddresses(node, buffer);
  if (!sum || context.hasDevice || !isPlainPointwise(node) || addresses.size() < 2 || addresses.size() > mostParts)
    return {};
  unsigned stores = 0;
  sum.walk([&](StoreOp) { ++stores; });
  StoreOp store = getOnlyStore(sum, buffer);
  if (stores != 1 || !store || store.getCombine() || isIndirect(store) || store->getParentOp() != sum)
    return FusionPlan::no("the value is not written once at a plain address");
  if (!buffer.getDefiningOp<BufferOp>() || llvm::range_size(buffer.getUsers()) != getLoads(node, buffer).size() + 1)
    return FusionPlan::no("others read the value, too");
  if (countBodyOps(sum) * addresses.size() + countBodyOps(node) > maxBodyOps)
    return FusionPlan::no("the fused body would be too large");
  Expr points = product(node->getContext(), getDomain(node));
  if (points * int64_t(addresses.size()) != getStoredCount(sum, store))
    return FusionPlan::no("the consumer does not read each element of the sum once");
  for (Expr address : addresses)
    if (!invertPart(sum, store, node, address, context))
      return FusionPlan::no("the consumer walks the value in an order that has no affine inverse");
  return {.kind = FusionKind::MergeParts, .buffer = buffer};
}

Operation *loop::mergeParts(Operation *target, Operation *node, Value buffer, const FusionContext &context) {
  auto sum = cast<ReductionOp>(target);
  StoreOp store = getOnlyStore(sum, buffer);
  SmallVector<Expr> domain = getDomain(node), ownDims;
  unsigned kept = getKeptCount(sum), rank = domain.size();
  for (unsigned dim = 0; dim < rank; ++dim)
    ownDims.push_back(Expr::dim(node->getContext(), dim));
  llvm::append_range(domain, ArrayRef(getDomain(sum)).drop_front(kept));
  OpBuilder b(node);
  auto merged = ReductionOp::create(b, fuseLocations(sum, node), prim::getExprArray(b.getContext(), domain),
                                    int64_t(sum.getReduced()));
  b.setInsertionPointToStart(&merged.getBody().emplaceBlock());
  SymbolRanges ranges = getNodeRanges(merged, context.symbols);
  SmallVector<Expr> addresses = getPartAddresses(node, buffer);
  SmallVector<Value> values;
  for (Expr address : addresses) {
    SmallVector<Expr> dims = *invertPart(sum, store, node, address, context);
    for (unsigned dim = kept; dim < getDomain(sum).size(); ++dim)
      dims.push_back(Expr::dim(b.getContext(), rank + dim - kept));
    IRMapping mapping;
    for (Operation &op : sum.getBody().front())
      if (&op != store)
        cloneWithDims(b, op, mapping, dims, ranges);
    values.push_back(mapping.lookup(store.getValue()));
  }
  IRMapping mapping;
  for (Operation &op : cast<PointwiseOp>(node).getBody().front())
    if (auto load = dyn_cast<LoadOp>(op); load && load.getBuffer() == buffer)
      mapping.map(load.getResult(), values[size_t(llvm::find(addresses, getAddress(load)) - addresses.begin())]);
    else
      cloneWithDims(b, op, mapping, ownDims, ranges);
  sum.erase();
  node->erase();
  return merged;
}

FusionPlan loop::canMergeReads(Operation *node, Operation *target, Value buffer, const FusionContext &context) {
  SmallVector<Expr> addresses = getPartAddresses(target, buffer), domain = getDomain(node);
  if (!isPlainPointwise(node) || !isPlainPointwise(target) || addresses.size() < 2 || addresses.size() > mostParts)
    return FusionPlan::no("the consumer reads the value at several places or under a mask");
  StoreOp store = getOnlyStore(node, buffer);
  if (!store || isIndirect(store) || store->getParentOp() != node ||
      !llvm::hasSingleElement(node->getRegion(0).getOps<StoreOp>()))
    return FusionPlan::no("the value is not written once at a plain address");
  if (!buffer.getDefiningOp<BufferOp>() || llvm::range_size(buffer.getUsers()) != getLoads(target, buffer).size() + 1)
    return FusionPlan::no("others read the value, too");
  if (countBodyOps(node) * addresses.size() + countBodyOps(target) > maxBodyOps)
    return FusionPlan::no("the fused body would be too large");
  Expr points = product(node->getContext(), getDomain(target)) * int64_t(addresses.size()), rest;
  auto isMore = knownLess(product(node->getContext(), domain), points, context.symbols);
  if (!isMore || *isMore)
    return FusionPlan::no("the consumer would compute the value more than once");
  auto digits = getDigits(getAddress(store), domain, getNodeRanges(node, context.symbols), context.hints, rest);
  if (!digits)
    return FusionPlan::no("the producer writes an element more than once");
  DimSplit split = splitAtDigits(target, addresses[0], *digits);
  SymbolRanges ranges = getNodeRanges(target, split.domain, context.symbols);
  for (Expr address : addresses) {
    Expr read = substituteDims(address, split.oldDims);
    if (!invert(getAddress(store), domain, read, ranges, context.hints))
      return FusionPlan::no("the consumer walks the value in an order that has no affine inverse");
  }
  return {.kind = FusionKind::MergeReads, .buffer = buffer, .split = split};
}

void loop::mergeReads(Operation *node, Operation *target, const FusionPlan &plan, const FusionContext &context) {
  Value buffer = plan.buffer;
  applySplit(target, plan.split, context.symbols);
  StoreOp store = getOnlyStore(node, buffer);
  SymbolRanges ranges = getNodeRanges(target, context.symbols);
  OpBuilder b(target->getContext());
  for (Expr address : getPartAddresses(target, buffer)) {
    SmallVector<Expr> dims = *invert(getAddress(store), getDomain(node), address, ranges, context.hints);
    IRMapping mapping;
    b.setInsertionPointToStart(&target->getRegion(0).front());
    for (Operation &op : cast<PointwiseOp>(node).getBody().front())
      if (&op != store)
        cloneWithDims(b, op, mapping, dims, ranges);
    for (LoadOp load : getLoads(target, buffer))
      if (getAddress(load) == address) {
        load.getResult().replaceAllUsesWith(mapping.lookup(store.getValue()));
        load.erase();
      }
  }
  target->setLoc(fuseLocations(node, target));
  node->erase();
}
