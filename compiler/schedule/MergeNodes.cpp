//===- MergeNodes.cpp - pointwise nodes into other nodes' bodies ----------===//
//
// Let T be a buffer that node A writes and node B reads. To run B's body at a point of
// A's loop nest we need, for each point of A, the point of B that reads the element
// just written. Both walk T's memory: A writes address a(x), B reads address b(y). If
// b is a mixed-radix number of B's dims,
//
//   b(y) = offset + s0*y0 + s1*y1 + ..., with s_i >= s_(i+1) * extent_(i+1), all y in use,
//
// it can be inverted digit by digit: y_i = floordiv(mod(a(x) - offset, s_(i-1)), s_i). The
// ranges of the dims remove the divisions wherever the two nests agree, which is
// nearly always, since nodes are normalized. If divisions remain we refuse: addresses
// must stay affine for vector code.
//
// B may read a slice of T, where A is a product: keys and values are columns of what queries are columns of, too. One
// dim of A then lies in a part of its range, with which the ranges of the dims remove the divisions, and B's body runs
// under that condition. Rows and columns become the digits by which B counts them: (2304) columns are (36, 64), of
// which 12 to 23 are the heads of the keys.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MergeNodes.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"
#include "ir/loop/Winograd.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

Expr loop::getAddress(Operation *access) {
  if (auto load = dyn_cast<LoadOp>(access))
    return prim::getExprs(load.getIndices())[0];
  return prim::getExprs(cast<StoreOp>(access).getIndices())[0];
}

bool loop::isIndirect(Operation *access) {
  if (auto load = dyn_cast<LoadOp>(access))
    return !load.getIndexOperands().empty();
  return !cast<StoreOp>(access).getIndexOperands().empty();
}

unsigned loop::countDivisions(Expr expr) {
  if (!expr.usesAny(isDimSymbol))
    return 0;
  unsigned count = expr.getKind() == ExprKind::FloorDiv || expr.getKind() == ExprKind::Mod;
  for (Expr operand : expr.getOperands())
    count += countDivisions(operand);
  return count;
}

std::optional<SmallVector<Digit>> loop::getDigits(Expr position, ArrayRef<Expr> domain, const SymbolRanges &ranges,
                                                  const SymbolValues &hints, Expr &rest) {
  SmallVector<Digit> digits;
  rest = position;
  for (unsigned dim = 0; dim < domain.size(); ++dim) {
    Expr remainder;
    Expr step = rest.coefficientOf(dimName(dim), &remainder);
    if (!step || step.isConstant(0) || step.usesAny(isDimSymbol))
      return {};
    digits.push_back({dim, step, step.evaluate(hints).value_or(0)});
    rest = remainder;
  }
  if (rest.usesAny(isDimSymbol))
    return {};
  llvm::stable_sort(digits, [](const Digit &a, const Digit &b) { return std::abs(a.size) > std::abs(b.size); });
  auto length = [](const Digit &digit) { return digit.size < 0 ? digit.step * -1 : digit.step; };
  for (unsigned i = 0; i + 1 < digits.size(); ++i) {
    Expr covered = length(digits[i + 1]) * domain[digits[i + 1].dim];
    auto isLess = knownLess(length(digits[i]), covered, ranges);
    if (!isLess || *isLess)
      return {};
  }
  return digits;
}

std::optional<SmallVector<Expr>> loop::locate(Expr position, ArrayRef<Expr> domain, Expr address,
                                              const SymbolRanges &ranges, const SymbolValues &hints) {
  Expr rest;
  std::optional<SmallVector<Digit>> digits = getDigits(position, domain, ranges, hints, rest);
  if (!digits)
    return {};
  SmallVector<Expr> dims(domain.size());
  Expr left = (address - rest).simplify(ranges);
  for (const Digit &digit : *digits) {
    if (digit.size < 0 && &digit != &digits->back()) // what it leaves would count downwards
      return {};
    dims[digit.dim] = left.floorDiv(digit.step).simplify(ranges);
    left = left.mod(digit.step).simplify(ranges);
  }
  // What is left lies between the elements that the position takes, as with halves that are stored interleaved.
  if (!left.isConstant(0))
    return {};
  // The digits must be digits: another slice of T would give points outside the domain.
  for (auto [dim, extent] : llvm::zip(dims, domain)) {
    auto isInside = knownLess(dim, extent, ranges);
    if (dim.range(ranges).min < 0 || !isInside || !*isInside)
      return {};
  }
  return dims;
}

std::optional<SmallVector<Expr>> loop::invert(Expr position, ArrayRef<Expr> domain, Expr address,
                                              const SymbolRanges &ranges, const SymbolValues &hints) {
  auto dims = locate(position, domain, address, ranges, hints);
  bool isDivided = dims && llvm::any_of(*dims, [](Expr dim) { return countDivisions(dim) > 0; });
  return isDivided ? std::nullopt : dims;
}

DimSplit loop::splitAtDigits(Operation *node, Expr read, ArrayRef<Digit> digits) {
  SmallVector<SmallVector<Expr>> dims;
  for (auto [dim, extent] : llvm::enumerate(getDomain(node))) {
    auto step = read.coefficientOf(dimName(dim)).asConstant();
    SmallVector<Expr> parts{extent};
    for (const Digit &digit : llvm::reverse(digits)) { // the last first: each takes what is left of the dim
      auto length = digit.step.asConstant();
      if (!step || *step < 1 || !length || *length % *step)
        continue;
      int64_t covered = 1;
      for (Expr part : ArrayRef(parts).drop_front())
        covered *= part.getValue();
      int64_t count = *length / *step / covered;
      Expr left = parts[0].floorDiv(std::max<int64_t>(count, 1));
      if (count < 2 || *length / *step % covered || left * count != parts[0] || left.isConstant(1))
        continue;
      parts[0] = left;
      parts.insert(parts.begin() + 1, Expr::constant(node->getContext(), count));
    }
    dims.push_back(parts);
  }
  return splitDims(node, dims);
}

StoreOp loop::getOnlyStore(Operation *node, Value buffer) {
  StoreOp found;
  bool several = false;
  node->walk([&](StoreOp store) {
    if (store.getBuffer() != buffer)
      return;
    several |= bool(found);
    found = store;
  });
  return several ? StoreOp() : found;
}

SmallVector<LoadOp> loop::getLoads(Operation *node, Value buffer) {
  SmallVector<LoadOp> loads;
  node->walk([&](LoadOp load) {
    if (load.getBuffer() == buffer)
      loads.push_back(load);
  });
  return loads;
}

void loop::cloneWithDims(OpBuilder &b, Operation &op, IRMapping &mapping, ArrayRef<Expr> dims,
                         const SymbolRanges &ranges) {
  Operation *copy = b.clone(op, mapping);
  substituteExprs(copy, [&](StringRef symbol) -> Expr {
    auto dim = getDimNumber(symbol);
    return dim ? dims[*dim] : Expr();
  });
  copy->walk([&](Operation *inner) {
    for (NamedAttribute entry : llvm::to_vector(inner->getAttrs())) {
      if (auto expr = dyn_cast<ExprAttr>(entry.getValue())) {
        inner->setAttr(entry.getName(), Expr(expr).simplify(ranges));
      } else if (auto list = dyn_cast<ArrayAttr>(entry.getValue())) {
        SmallVector<Attribute> simplified;
        for (Attribute element : list)
          simplified.push_back(isa<ExprAttr>(element) ? Attribute(Expr(cast<ExprAttr>(element)).simplify(ranges))
                                                      : element);
        inner->setAttr(entry.getName(), b.getArrayAttr(simplified));
      }
    }
  });
}

Location loop::fuseLocations(Operation *a, Operation *b) {
  return FusedLoc::get(a->getContext(), {a->getLoc(), b->getLoc()});
}

unsigned loop::countBodyOps(Operation *node) {
  unsigned count = 0;
  node->walk([&](Operation *) { ++count; });
  return count;
}

/// A prologue or a part of an epilogue of more work costs more than it saves.
static constexpr unsigned mostCheapOps = 12;

bool loop::isCheap(Operation *node) {
  bool hasFunctions = false;
  node->walk([&](Operation *op) { hasFunctions |= isa_and_nonnull<math::MathDialect>(op->getDialect()); });
  return !hasFunctions && countBodyOps(node) <= mostCheapOps;
}

bool loop::isPlainPointwise(Operation *node) {
  bool plain = isa<PointwiseOp>(node);
  node->walk([&](StoreOp store) { plain &= !store.getCombine(); });
  return plain;
}

Expr loop::getStoredCount(Operation *node, StoreOp store) {
  SmallVector<Expr> domain = getDomain(node);
  unsigned count = domain.size();
  if (auto reduction = dyn_cast<ReductionOp>(node)) {
    bool usesReduced = false;
    unsigned kept = count - reduction.getReduced();
    getAddress(store).walkSymbols([&](StringRef symbol) {
      auto dim = getDimNumber(symbol);
      usesReduced |= dim && *dim >= kept;
    });
    if (!usesReduced)
      count = kept;
  } else if (auto contraction = dyn_cast<ContractionOp>(node)) {
    count -= contraction.getK();
  } else if (isa<AttentionOp>(node)) {
    SmallVector<Expr> stored(domain.begin(), domain.end() - 3); // batch and i
    stored.push_back(domain.back());                            // e
    return product(node->getContext(), stored);
  }
  return product(node->getContext(), ArrayRef<Expr>(domain).take_front(count));
}

namespace {

/// The first dims of `node`, behind those of a batch that both have, without the product's columns, if the last of them
/// counts all columns of some rows.
SmallVector<Expr> getRowDims(ContractionOp product, Operation *node) {
  SmallVector<Expr> domain = getDomain(product), rows = getDomain(node);
  unsigned batch = product.getBatch();
  if (ArrayRef(rows).take_front(batch) == ArrayRef(domain).take_front(batch)) // products one behind the other
    rows.erase(rows.begin(), rows.begin() + batch);
  if (product.getN() != 1 || rows.empty() ||
      ptc::product(node->getContext(), rows) != domain[batch] * domain[batch + 1])
    return rows;
  auto last = rows.back().asConstant(), columns = domain[batch + 1].asConstant();
  if (!last || !columns || *columns < 1 || *last % *columns)
    return rows;
  rows.back() = Expr::constant(node->getContext(), *last / *columns);
  if (*last == *columns)
    rows.pop_back();
  return rows;
}

/// A product's dims with its rows, which are one dim, as the first dims of `node` that have as many points: work that
/// broadcasts along some of them (images) cannot be written in terms of their product.
std::optional<DimSplit> splitRows(ContractionOp product, Operation *node) {
  if (product.getM() != 1)
    return std::nullopt;
  SmallVector<Expr> rows = getRowDims(product, node);
  while (!rows.empty() && ptc::product(node->getContext(), rows) != getDomain(product)[product.getBatch()])
    rows.pop_back();
  if (rows.size() < 2)
    return std::nullopt;
  SmallVector<SmallVector<Expr>> parts = getUnsplit(product);
  parts[product.getBatch()] = rows;
  return splitDims(product, parts);
}

/// Where all points of a product that write what a node reads lie: one dim of it in a part of its range.
struct Slice {
  unsigned dim;
  int64_t first, count;
  int64_t end() const { return first + count; }
};

SymbolRanges getSliceRanges(Operation *target, ArrayRef<Expr> domain, const Slice &slice, const SymbolRanges &symbols) {
  SymbolRanges ranges = getNodeRanges(target, domain, symbols);
  Expr end = Expr::constant(target->getContext(), slice.end());
  ranges[dimName(slice.dim)] = {.min = slice.first, .max = slice.end() - 1, .below = end};
  return ranges;
}

/// A product's dims with its rows and columns as the digits by which a node counts what it reads of them. A vector of
/// columns lies in one of the parts that columns become: these are whole panels.
DimSplit splitAsRead(ContractionOp target, Expr position, ArrayRef<Expr> read, const FusionContext &context) {
  SmallVector<SmallVector<Expr>> parts = getUnsplit(target);
  unsigned m = target.getBatch(), n = m + target.getM();
  SmallVector<Expr> rows;
  Expr rest;
  auto digits = getDigits(position, read, getNodeRanges(target, context.symbols), context.hints, rest);
  if (digits && target.getN() == 1 && parts[n][0].isConstant()) {
    int64_t width = parts[n][0].getValue(), part = std::gcd(width, rest.asConstant().value_or(0));
    for (const Digit &digit : *digits)
      if (auto step = digit.step.asConstant(); !step || *step % width == 0)
        rows.push_back(read[digit.dim]);
      else
        part = std::gcd(part, *step == 1 ? read[digit.dim].asConstant().value_or(1) : *step);
    if (part < width && part % panelWidth == 0)
      parts[n] = {Expr::constant(target.getContext(), width / part), Expr::constant(target.getContext(), part)};
  }
  if (rows.size() > 1 && target.getM() == 1 && product(target.getContext(), rows) == parts[m][0])
    parts[m] = rows;
  return splitDims(target, parts);
}

/// Whether neighbours in what the node reads at `position` are neighbours in all that it writes.
bool keepsNeighbours(Operation *node, Expr position) {
  bool keeps = true;
  for (unsigned dim = 0; dim < getDomain(node).size(); ++dim)
    if (Expr step = position.coefficientOf(dimName(dim)); step && step.isConstant(1))
      node->walk([&](StoreOp store) {
        Expr stored = getAddress(store).coefficientOf(dimName(dim));
        keeps &= stored && stored.isConstant(1);
      });
  return keeps;
}

/// Whether, of the target's dims split so, the point of `node` at which it accesses `position`, where `access` in the
/// target is, is affine.
bool isAffineIn(const DimSplit &split, Operation *target, Operation *access, Operation *node, Expr position,
                const FusionContext &context) {
  Expr address = substituteDims(getAddress(access), split.oldDims);
  SymbolRanges ranges = getNodeRanges(target, split.domain, context.symbols);
  return invert(position, getDomain(node), address, ranges, context.hints).has_value();
}

/// A product's dims with its columns as the digits by which `node` counts what it reads at `position` (heads that are
/// written side by side with others). Vectors stay whole.
std::optional<DimSplit> splitColumns(ContractionOp product, Operation *store, Operation *node, Expr position,
                                     const FusionContext &context) {
  std::string last = dimName(product.getBatch() + product.getM());
  Expr step = product.getN() == 1 ? getAddress(store).coefficientOf(last) : Expr();
  if (context.hasDevice || product.getRhs().getOps<PanelsOp>().empty() || !step || !step.isConstant(1) ||
      !keepsNeighbours(node, position))
    return std::nullopt;
  return splitAsRead(product, position, getDomain(node), context);
}

/// The slice of a product's result, stored at `address` of the dims `split`, that `node` reads; nothing if it is none,
/// or one that would cut vectors of columns in parts.
std::optional<Slice> findSlice(ContractionOp target, const DimSplit &split, Expr address, Operation *node,
                               Expr position, const FusionContext &context) {
  auto atZero = [&](StringRef symbol) { return isDimSymbol(symbol) ? Expr::constant(target.getContext(), 0) : Expr(); };
  Expr offset = position.substitute(atZero) - address.substitute(atZero);
  unsigned columns = llvm::count_if(split.kinds, [](unsigned kind) { return kind < 3; }); // batch, m and n
  Expr read = product(target.getContext(), getDomain(node));
  Expr stored = product(target.getContext(), ArrayRef(split.domain).take_front(columns));
  for (unsigned dim = 0; dim < columns; ++dim) {
    bool isLastColumn = split.kinds[dim] == 2 && dim + 1 == columns;
    std::optional<int64_t> extent = split.domain[dim].asConstant(), count = read.evaluate(context.hints);
    Expr step = address.coefficientOf(dimName(dim));
    if (isLastColumn || !extent || !count || !step || step.usesAny(isDimSymbol))
      continue;
    Expr first = exactQuotient(offset, step, context.symbols);
    count = *count * *extent / std::max<int64_t>(stored.evaluate(context.hints).value_or(1), 1);
    if (!first || !first.isConstant() || *count < 1 || read * *extent != stored * *count)
      continue;
    Slice slice{dim, first.getValue(), *count};
    if (slice.first < 0 || slice.end() > *extent)
      continue;
    SymbolRanges ranges = getSliceRanges(target, split.domain, slice, context.symbols);
    if (invert(position, getDomain(node), address, ranges, context.hints))
      return slice;
  }
  return std::nullopt;
}

/// The target's dims in which the point of `node` at which `own` accesses what `access` in `target` does is affine: its
/// own, or those of a contraction with its rows split, or the columns of a product that stores them.
std::optional<DimSplit> findAffineDims(Operation *node, Operation *own, Operation *target, Operation *access,
                                       const FusionContext &context) {
  Expr position = getAddress(own);
  auto isAffine = [&](const DimSplit &split) { return isAffineIn(split, target, access, node, position, context); };
  if (DimSplit split = splitDims(target, getUnsplit(target)); isAffine(split))
    return split;
  auto product = dyn_cast<ContractionOp>(target);
  if (!product)
    return std::nullopt;
  if (auto split = splitRows(product, node); split && isAffine(*split))
    return split;
  if (!isa<StoreOp>(access))
    return std::nullopt;
  auto split = splitColumns(product, access, node, position, context);
  return split && isAffine(*split) ? split : std::nullopt;
}

/// Clones the body of pointwise `node`, its dims replaced, at the builder's
/// position. Loads of `buffer` become `value`.
void cloneBody(OpBuilder &b, Operation *node, ArrayRef<Expr> dims, Value buffer, Value value,
               const SymbolRanges &ranges) {
  IRMapping mapping;
  for (Operation &op : cast<PointwiseOp>(node).getBody().front()) {
    auto load = dyn_cast<LoadOp>(op);
    if (load && load.getBuffer() == buffer)
      mapping.map(load.getResult(), value);
    else
      cloneWithDims(b, op, mapping, dims, ranges);
  }
}

bool isMergeTarget(Operation *node) { return isa<PointwiseOp, ReductionOp, ContractionOp, AttentionOp>(node); }

/// Whether all that the node reads in other buffers lies along its dim, or is the same for all points of it.
bool readsAlong(Operation *node, Value buffer, unsigned dim) {
  bool liesAlong = true;
  node->walk([&](LoadOp load) {
    Expr step = isIndirect(load) ? Expr() : getAddress(load).coefficientOf(dimName(dim));
    liesAlong &= load.getBuffer() == buffer || (step && (step.isConstant(0) || step.isConstant(1)));
  });
  return liesAlong;
}

bool hasRegions(Block &body) {
  return llvm::any_of(body, [](Operation &op) { return op.getNumRegions() > 0; });
}

/// Whether the product's epilogue reads the same for all rows.
bool readsSameInRows(ContractionOp product) {
  DimCounts counts(product);
  bool isSame = !hasRegions(product.getEpilogue().front());
  product.getEpilogue().walk([&](LoadOp load) {
    isSame &= !isIndirect(load);
    for (int64_t row = counts.first(1); row < counts.first(2); ++row)
      isSame &= !getAddress(load).uses(dimName(unsigned(row)));
  });
  return isSame;
}

/// Whether windows leave the image along its lines alone: tiles are pieces of columns then (CpuContractionLines.cpp).
bool leavesAlongLines(ContractionOp product) {
  DimCounts counts(product);
  bool along = false, across = false;
  product.getLhs().walk([&](MaskedOp masked) {
    for (Expr condition : prim::getExprs(masked.getConditions())) {
      across |= condition.uses(dimName(unsigned(counts.first(1))));
      along |= condition.uses(dimName(unsigned(counts.first(2) - 1)));
    }
  });
  return counts.counts[1] == 2 && along && !across;
}

/// Whether the product's sums can be turned for `node`, which puts the rows of each column of one image side by side,
/// and nobody else reads them as they lie.
bool canTurnPixels(ContractionOp product, Operation *node, LoadOp load) {
  Value buffer = load.getBuffer();
  auto isOurs = [&](Operation *user) { return product->isAncestor(user) || node->isAncestor(user); };
  if (getWinogradTile(product) || getGroup(product) > 1 || product.getBatch() || product.getN() != 1 ||
      !product.getEpilogue().getArgument(0).getType().isF32() || getDomain(node).size() != 2 ||
      !buffer.getDefiningOp<BufferOp>() || !llvm::all_of(buffer.getUsers(), isOurs) ||
      hasRegions(node->getRegion(0).front()))
    return false;
  Expr outer = getAddress(load).coefficientOf(dimName(0));
  unsigned row = outer && outer.isConstant(1) ? 1 : 0;
  bool storesAlong = getDomain(node)[row].isConstant();
  node->walk([&](StoreOp store) {
    Expr step = isIndirect(store) ? Expr() : getAddress(store).coefficientOf(dimName(row));
    storesAlong &= step && step.isConstant(1) && store->getParentOp() == node;
  });
  return storesAlong && readsAlong(node, buffer, row) && readsSameInRows(product) && !leavesAlongLines(product);
}

/// Whether `node` takes an image apart whose channels lie side by side: a product that sums up windows writes it in
/// whole vectors of these, and one pass more costs less than what it would take otherwise (up to 8 times as long).
bool takesImageApart(Operation *target, Operation *node, LoadOp load, const FusionContext &context) {
  auto contraction = dyn_cast<ContractionOp>(target);
  return contraction && !context.hasDevice && writesWholePixels(contraction) &&
         !keepsNeighbours(node, getAddress(load)) && !canTurnPixels(contraction, node, load);
}

/// Whether the product's sums are turned, and could not be with `node` in its epilogue.
bool keepsFromTurning(Operation *target, StoreOp store, Operation *node, LoadOp load, const FusionContext &context) {
  auto contraction = dyn_cast<ContractionOp>(target);
  if (!contraction || context.hasDevice || !turnsPixels(contraction))
    return false;
  bool isSlice = product(node->getContext(), getDomain(node)) != getStoredCount(target, store);
  if (isSlice || hasRegions(node->getRegion(0).front()))
    return true;
  for (unsigned dim = 0; dim < getDomain(node).size(); ++dim)
    if (Expr step = getAddress(load).coefficientOf(dimName(dim)); step && step.isConstant(1))
      return !readsAlong(node, load.getBuffer(), dim) || !keepsNeighbours(node, getAddress(load));
  return true;
}

/// The dims of a product and the part of them at which `node` reads what it writes.
struct SlicePlace {
  DimSplit split;
  Slice slice;
};

/// Where `node`, which reads a slice of what a product writes, may run in its epilogue; rows and columns may be split
/// for that. (A product without a packed weight may be computed as a reduction, whose passes know no conditions.)
std::optional<SlicePlace> findSlicePlace(Operation *target, StoreOp store, Operation *node, LoadOp load,
                                         const FusionContext &context) {
  auto contraction = dyn_cast<ContractionOp>(target);
  bool isPacked = contraction && !contraction.getRhs().getOps<PanelsOp>().empty();
  if (!isPacked || context.hasDevice || !isCheap(node) || !keepsNeighbours(node, getAddress(load)))
    return std::nullopt;
  DimSplit split = splitAsRead(contraction, getAddress(load), getDomain(node), context);
  Expr address = substituteDims(getAddress(store), split.oldDims);
  auto slice = findSlice(contraction, split, address, node, getAddress(load), context);
  if (!slice)
    return std::nullopt;
  return SlicePlace{split, *slice};
}

} // namespace

FusionPlan loop::canMergeIntoProducer(Operation *target, Operation *node, Value buffer, const FusionContext &context) {
  if (!isPlainPointwise(node) || !isMergeTarget(target))
    return FusionPlan::no("the consumer is not pointwise");
  if (countBodyOps(target) + countBodyOps(node) > maxBodyOps)
    return FusionPlan::no("the fused body would be too large");
  StoreOp store = getOnlyStore(target, buffer);
  SmallVector<LoadOp> loads = getLoads(node, buffer);
  if (!store || store.getCombine() || isIndirect(store) || loads.empty())
    return FusionPlan::no("the value is not written once at a plain address");
  if (store->getParentOp() != target || loads[0]->getParentOp() != node)
    return FusionPlan::no("the value is read or written under a mask");
  for (LoadOp load : loads)
    if (isIndirect(load) || getAddress(load) != getAddress(loads[0]))
      return FusionPlan::no("the consumer reads the value at several places");
  if (takesImageApart(target, node, loads[0], context))
    return FusionPlan::no("the consumer takes pixels apart that a convolution writes whole");
  if (keepsFromTurning(target, store, node, loads[0], context))
    return FusionPlan::no("a convolution that takes its pixels apart could not do so with the consumer");
  if (product(node->getContext(), getDomain(node)) != getStoredCount(target, store)) {
    if (auto place = findSlicePlace(target, store, node, loads[0], context))
      return {.kind = FusionKind::MergeIntoProducer, .buffer = buffer, .split = place->split};
    return FusionPlan::no("the consumer runs over other elements than the producer writes");
  }
  if (auto split = findAffineDims(node, loads[0], target, store, context))
    return {.kind = FusionKind::MergeIntoProducer, .buffer = buffer, .split = *split};
  return FusionPlan::no("the consumer walks the value in an order that has no affine inverse");
}

/// Puts the builder where ops run at the slice's points alone.
static void enterSlice(OpBuilder &b, Operation *target, const Slice &slice, Value value) {
  Expr dim = Expr::dim(b.getContext(), slice.dim);
  SmallVector<Expr> conditions;
  if (slice.first > 0)
    conditions.push_back(dim - slice.first);
  if (getDomain(target)[slice.dim] != Expr::constant(b.getContext(), slice.end()))
    conditions.push_back(dim * -1 + (slice.end() - 1));
  auto masked = MaskedOp::create(b, target->getLoc(), value.getType(), prim::getExprArray(b.getContext(), conditions),
                                 ValueRange(), value);
  b.setInsertionPointToEnd(&masked.getBody().emplaceBlock());
  b.setInsertionPoint(YieldOp::create(b, target->getLoc(), value));
}

void loop::mergeIntoProducer(Operation *target, Operation *node, const FusionPlan &plan, const FusionContext &context) {
  Value buffer = plan.buffer;
  applySplit(target, plan.split, context.symbols);
  StoreOp store = getOnlyStore(target, buffer);
  LoadOp load = getLoads(node, buffer)[0];
  SymbolRanges ranges = getNodeRanges(target, context.symbols);
  OpBuilder b(store->getBlock(), store->getBlock()->end());
  if (product(node->getContext(), getDomain(node)) != getStoredCount(target, store)) {
    Slice slice = findSlicePlace(target, store, node, load, context)->slice;
    ranges = getSliceRanges(target, getDomain(target), slice, context.symbols);
    enterSlice(b, target, slice, store.getValue());
  }
  SmallVector<Expr> dims = *invert(getAddress(load), getDomain(node), getAddress(store), ranges, context.hints);
  cloneBody(b, node, dims, buffer, store.getValue(), ranges);
  target->setLoc(fuseLocations(target, node));
  node->erase();
}

/// A prologue of more columns costs more, for each block of them, than it saves.
constexpr int64_t maxPrologueColumns = 512;

/// May pointwise `node` be computed where a contraction reads its lhs? A block of rows is packed then, once for each
/// block of columns, so the node must be cheap, columns few, and no element may be read by several rows, as those of an
/// image are by overlapping windows.
static FusionPlan canMergeIntoLhs(Operation *node, ContractionOp target, Value buffer, const FusionContext &context) {
  StoreOp store = getOnlyStore(node, buffer);
  SmallVector<LoadOp> loads = getLoads(target, buffer);
  if (!store || isIndirect(store) || loads.size() != 1 || isIndirect(loads[0]) ||
      loads[0]->getParentRegion() != &target.getLhs() || !buffer.getDefiningOp<BufferOp>() ||
      !llvm::hasNItems(buffer.getUsers(), 2))
    return FusionPlan::no("the value is not written once and read once, as it is, by a template's lhs");
  unsigned stores = 0;
  node->walk([&](StoreOp) { ++stores; });
  if (stores != 1) // the lhs of a template is read, for several blocks at once; nothing may be written there
    return FusionPlan::no("the producer writes other values as well");
  if (!isCheap(node))
    return FusionPlan::no("the template would compute it again for each block of columns");
  SmallVector<Expr> domain = getDomain(target), read(domain);
  unsigned n = target.getBatch() + target.getM();
  int64_t columns = product(node->getContext(), ArrayRef<Expr>(domain).slice(n, target.getN()))
                        .evaluate(context.hints)
                        .value_or(maxPrologueColumns + 1);
  read.erase(read.begin() + n, read.begin() + n + target.getN());
  if (columns > maxPrologueColumns)
    return FusionPlan::no("the template would compute it again for each block of columns");
  if (product(node->getContext(), getDomain(node)) != product(node->getContext(), read))
    return FusionPlan::no("the consumer would compute the value more than once");
  if (auto split = findAffineDims(node, store, target, loads[0], context))
    return {.kind = FusionKind::MergeIntoConsumer, .buffer = buffer, .split = *split};
  return FusionPlan::no("the consumer walks the value in an order that has no affine inverse");
}

/// Rows of a product whose packed operand may be computed while it is packed, once for each block of rows.
constexpr int64_t maxPrologueRows = 512;

/// May pointwise `node` be computed where a contraction packs bytes of its rhs, in words of several terms? What it
/// reads is no node's result, with which it could be computed once.
static FusionPlan canMergeIntoRhs(Operation *node, ContractionOp target, Value buffer, const FusionContext &context) {
  StoreOp store = getOnlyStore(node, buffer);
  SmallVector<LoadOp> loads = getLoads(target, buffer);
  bool isOfBytes = cast<BufferType>(buffer.getType()).getElementType().isInteger(8);
  if (context.hasDevice || !isOfBytes || !store || isIndirect(store) || store->getParentOp() != node ||
      loads.size() != 1 || isIndirect(loads[0]) || loads[0]->getParentRegion() != &target.getRhs() ||
      !buffer.getDefiningOp<BufferOp>() || !llvm::hasNItems(buffer.getUsers(), 2))
    return FusionPlan::no("the value is no bytes that are written once and read once, as they are, by a product's rhs");
  bool readsResults = false;
  unsigned stores = 0;
  node->walk([&](StoreOp) { ++stores; });
  node->walk([&](LoadOp load) { readsResults |= bool(load.getBuffer().getDefiningOp<BufferOp>()); });
  if (stores != 1 || readsResults || !isCheap(node))
    return FusionPlan::no("the product would compute it again for each block of rows");
  SmallVector<Expr> domain = getDomain(target), read(domain);
  unsigned m = target.getBatch();
  int64_t rows = product(node->getContext(), ArrayRef<Expr>(domain).slice(m, target.getM()))
                     .evaluate(context.hints)
                     .value_or(maxPrologueRows + 1);
  read.erase(read.begin() + m, read.begin() + m + target.getM());
  if (rows > maxPrologueRows || product(node->getContext(), getDomain(node)) != product(node->getContext(), read))
    return FusionPlan::no("the product would compute it again for each block of rows");
  if (auto split = findAffineDims(node, store, target, loads[0], context))
    return {.kind = FusionKind::MergeIntoConsumer, .buffer = buffer, .split = *split};
  return FusionPlan::no("the consumer walks the value in an order that has no affine inverse");
}

/// The target's dims split as the node counts what it writes, if its points are found in them then, and nobody else
/// reads that: it would be written in the target's order, not in its own.
static std::optional<DimSplit> findSplitAsWritten(Operation *target, LoadOp load, Operation *node, StoreOp store,
                                                  const FusionContext &context) {
  Value buffer = store.getBuffer();
  if (!buffer.getDefiningOp<BufferOp>() || llvm::range_size(buffer.getUsers()) != getLoads(target, buffer).size() + 1)
    return std::nullopt;
  Expr rest;
  auto digits =
      getDigits(getAddress(store), getDomain(node), getNodeRanges(node, context.symbols), context.hints, rest);
  if (!digits)
    return std::nullopt;
  DimSplit split = splitAtDigits(target, getAddress(load), *digits);
  if (!isAffineIn(split, target, load, node, getAddress(store), context))
    return std::nullopt;
  return split;
}

FusionPlan loop::canMergeIntoConsumer(Operation *node, Operation *target, Value buffer, bool isAlone,
                                      const FusionContext &context) {
  if (!isPlainPointwise(node))
    return FusionPlan::no("the producer is not pointwise");
  if (auto contraction = dyn_cast<ContractionOp>(target)) {
    FusionPlan plan = canMergeIntoRhs(node, contraction, buffer, context);
    return plan ? plan : canMergeIntoLhs(node, contraction, buffer, context);
  }
  if (!isa<PointwiseOp, ReductionOp>(target))
    return FusionPlan::no("the consumer computes operands of a template in tiles");
  if (countBodyOps(target) + countBodyOps(node) > maxBodyOps)
    return FusionPlan::no("the fused body would be too large");
  StoreOp store = getOnlyStore(node, buffer);
  SmallVector<LoadOp> loads = getLoads(target, buffer);
  if (!store || isIndirect(store) || loads.empty() || store->getParentOp() != node)
    return FusionPlan::no("the value is not written once at a plain address");
  for (LoadOp load : loads)
    if (isIndirect(load) || load->getParentOp() != target || getAddress(load) != getAddress(loads[0]))
      return FusionPlan::no("the consumer reads the value at several places or under a mask");
  SmallVector<Expr> domain = getDomain(node);
  if (product(node->getContext(), domain) != product(node->getContext(), getDomain(target)))
    return FusionPlan::no("the consumer would compute the value more than once");
  SymbolRanges ranges = getNodeRanges(target, context.symbols);
  // As many points do not tell: rows that are broadcast and others that are left out may come to the same number.
  Expr rest;
  if (!getDigits(getAddress(loads[0]), getDomain(target), ranges, context.hints, rest))
    return FusionPlan::no("the consumer reads an element more than once");
  FusionPlan plan{.kind = FusionKind::MergeIntoConsumer, .buffer = buffer};
  if (invert(getAddress(store), domain, getAddress(loads[0]), ranges, context.hints))
    return plan;
  auto split =
      context.hasDevice || !isAlone ? std::nullopt : findSplitAsWritten(target, loads[0], node, store, context);
  if (!split)
    return FusionPlan::no("the consumer walks the value in an order that has no affine inverse");
  plan.split = *split;
  return plan;
}

void loop::mergeIntoConsumer(Operation *node, Operation *target, const FusionPlan &plan, const FusionContext &context) {
  Value buffer = plan.buffer;
  applySplit(target, plan.split, context.symbols);
  StoreOp store = getOnlyStore(node, buffer);
  SmallVector<LoadOp> loads = getLoads(target, buffer);
  SymbolRanges ranges = getNodeRanges(target, context.symbols);
  SmallVector<Expr> dims = *invert(getAddress(store), getDomain(node), getAddress(loads[0]), ranges, context.hints);
  // The producer's ops go to the top of the body; its stores stay among them, but in a template's lhs.
  OpBuilder b(target->getContext());
  Block &body = isa<ContractionOp>(target) ? loads[0]->getParentRegion()->front() : target->getRegion(0).front();
  b.setInsertionPointToStart(&body);
  Operation *last = nullptr;
  if (!body.empty())
    last = &body.front();
  cloneBody(b, node, dims, Value(), Value(), ranges);
  Value value;
  StoreOp copy;
  for (Operation &op : body) {
    if (&op == last)
      break;
    if (auto stored = dyn_cast<StoreOp>(op); stored && stored.getBuffer() == buffer)
      copy = stored;
  }
  value = copy.getValue();
  if (isa<ContractionOp>(target))
    copy.erase();
  for (LoadOp load : loads) {
    load.getResult().replaceAllUsesWith(value);
    load.erase();
  }
  target->setLoc(fuseLocations(node, target));
  node->erase();
}

/// Whether the nodes' ops are the same, but for what they read and where they write: lanes suit the one as the other.
static bool areOpsAlike(Operation *node, Operation *other) {
  auto opsOf = [](Operation *node) {
    SmallVector<Operation *> ops;
    node->walk([&](Operation *op) { ops.push_back(op); });
    return ops;
  };
  return llvm::equal(opsOf(node), opsOf(other), [](Operation *a, Operation *b) {
    return a->getName() == b->getName() && a->getResultTypes() == b->getResultTypes();
  });
}

FusionPlan loop::canMergeBeside(const Group &first, const Group &second) {
  auto isOnePointwise = [](const Group &group) { return group.nodes.size() == 1 && isPlainPointwise(group.nodes[0]); };
  if (!isOnePointwise(first) || !isOnePointwise(second))
    return {};
  Operation *node = first.nodes[0], *other = second.nodes[0];
  for (Value buffer : first.read)
    if (skipViews(buffer).getDefiningOp<BufferOp>() && !second.reads(buffer))
      return FusionPlan::no("what the first reads would live until the second runs");
  if (getDomain(node) != getDomain(other))
    return FusionPlan::no("they run over other points");
  if (!areOpsAlike(node, other))
    return FusionPlan::no("they compute unlike things");
  if (countBodyOps(node) + countBodyOps(other) > maxBodyOps)
    return FusionPlan::no("the fused body would be too large");
  return {.kind = FusionKind::MergeBeside};
}

void loop::mergeBeside(Group &first, const Group &second, const FusionPlan &, const FusionContext &) {
  if (isa<ReductionOp>(first.nodes[0]))
    return mergeSums(first, second);
  Operation *node = first.nodes[0], *other = second.nodes[0];
  Block &into = cast<PointwiseOp>(node).getBody().front(), &from = cast<PointwiseOp>(other).getBody().front();
  into.getOperations().splice(into.end(), from.getOperations());
  node->setLoc(fuseLocations(node, other));
  other->erase();
}
