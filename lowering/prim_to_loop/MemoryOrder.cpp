//===- MemoryOrder.cpp - in which order a node's dims run through memory --===//

#include "lowering/prim_to_loop/MemoryOrder.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

/// Calls `visit` with the number of each dim that the index uses.
static void walkDims(Expr index, llvm::function_ref<void(unsigned)> visit) {
  index.walkSymbols([&](StringRef symbol) {
    unsigned dim;
    if (symbol.consume_front("d") && !symbol.getAsInteger(10, dim))
      visit(dim);
  });
}

/// The dims of what an indirect index is computed from.
static void walkIndirectDims(LoadOp load, Expr index, llvm::function_ref<void(unsigned)> visit) {
  SmallVector<Value> open;
  index.walkSymbols([&](StringRef symbol) {
    unsigned operand;
    if (symbol.consume_front("v$") && !symbol.getAsInteger(10, operand))
      open.push_back(load.getIndexOperands()[operand]);
  });
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    llvm::append_range(open, op->getOperands());
    if (auto inner = dyn_cast<LoadOp>(op))
      for (Expr expr : prim::getExprs(inner.getIndices()))
        walkDims(expr, visit);
    if (auto number = dyn_cast<IndexOp>(op))
      walkDims(number.getExpr(), visit);
  }
}

/// Intermediates come before arguments of equal size.
static LoadOp getLargestRead(Operation *node, const SymbolValues &hints) {
  LoadOp best;
  int64_t bestSize = -1;
  node->walk([&](LoadOp load) {
    auto type = cast<BufferType>(load.getBuffer().getType());
    if (!type.getLayout() || type.getRank() < 2 ||
        isa_and_nonnull<WeightOp, ConstantOp>(load.getBuffer().getDefiningOp()))
      return;
    int64_t size = type.getElementCount().evaluate(hints).value_or(0) * 2;
    if (load.getBuffer().getDefiningOp<BufferOp>())
      ++size;
    if (size > bestSize) {
      best = load;
      bestSize = size;
    }
  });
  return best;
}

/// By dim of a domain of this rank: the place in the order of the indices that use it.
static SmallVector<int64_t> getPlaces(LayoutAttr layout, ArrayRef<Expr> indices, unsigned rank, LoadOp load) {
  SmallVector<int64_t> places(rank, -1);
  for (bool isIndirect : {false, true})
    for (auto [place, bufferDim] : llvm::enumerate(layout.getOrder())) {
      auto visit = [&](unsigned dim) {
        if (places[dim] < 0)
          places[dim] = int64_t(place);
      };
      if (!isIndirect)
        walkDims(indices[bufferDim], visit);
      else if (load)
        walkIndirectDims(load, indices[bufferDim], visit);
    }
  for (unsigned dim = 1; dim < rank; ++dim)
    if (places[dim] < 0)
      places[dim] = places[dim - 1];
  return places;
}

/// Whether another read has dims that `largest` has not: each is repeated along dims of the others (all pairs of two
/// rows), and none of them says how the points should run.
static bool isOfPairs(Operation *node, LoadOp largest) {
  auto collect = [](LoadOp load, llvm::SmallDenseSet<unsigned> &dims) {
    for (Expr index : prim::getExprs(load.getIndices()))
      walkDims(index, [&](unsigned dim) { dims.insert(dim); });
  };
  llvm::SmallDenseSet<unsigned> known, others;
  collect(largest, known);
  bool isIndirect = false;
  node->walk([&](LoadOp load) {
    isIndirect |= !load.getIndexOperands().empty();
    if (!isa_and_nonnull<WeightOp, ConstantOp>(load.getBuffer().getDefiningOp()))
      collect(load, others);
  });
  return !isIndirect && llvm::any_of(others, [&](unsigned dim) { return !known.contains(dim); });
}

SmallVector<int64_t> loop::getMemoryPlaces(Operation *node, const SymbolValues &hints) {
  LoadOp largest = getLargestRead(node, hints);
  if (!largest)
    return {};
  if (isa<PointwiseOp>(node) && isOfPairs(node, largest))
    return llvm::to_vector(llvm::seq<int64_t>(0, getDomain(node).size()));
  auto type = cast<BufferType>(largest.getBuffer().getType());
  return getPlaces(type.getLayout(), prim::getExprs(largest.getIndices()), getDomain(node).size(), largest);
}

SmallVector<int64_t> loop::getPlacesOfStore(StoreOp store, unsigned rank) {
  return getPlaces(cast<BufferType>(store.getBuffer().getType()).getLayout(), prim::getExprs(store.getIndices()), rank,
                   {});
}

SmallVector<int64_t> loop::getBufferOrder(ArrayRef<Expr> indices, ArrayRef<int64_t> places, LoadOp load) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, indices.size()));
  SmallVector<int64_t> position(indices.size(), -1);
  for (auto [i, index] : llvm::enumerate(indices)) {
    auto visit = [&](unsigned dim) { position[i] = std::max(position[i], places[dim]); };
    walkDims(index, visit);
    if (load && position[i] < 0)
      walkIndirectDims(load, index, visit);
    if (position[i] < 0 && i > 0)
      position[i] = position[i - 1];
  }
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return position[a] < position[b]; });
  return order;
}

static constexpr int64_t fewestChannels = 16, fewestColumns = 3, fewestTaps = 4;
static constexpr int64_t fewestTapsOfImage = 3; // rows of signals are gathered as fast, where each is read so often
static constexpr int64_t manyColumns = 16;      // for which a copy pays that is read once

/// How many points the dims [first, first + count) have; 0: not known.
static int64_t countPoints(ArrayRef<Expr> domain, unsigned first, unsigned count) {
  int64_t points = 1;
  for (Expr extent : domain.slice(first, count))
    points *= extent.asConstant().value_or(0);
  return points;
}

/// Whether windows of the convolution overlap, so that elements of the image are read twice and more.
static bool overlapsWindows(ContractionOp node, LoadOp load) {
  SmallVector<Expr> domain = getDomain(node);
  unsigned rows = node.getBatch(), columns = rows + node.getM(), window = columns + node.getN();
  double reads = 1;
  for (Expr index : prim::getExprs(load.getIndices())) {
    auto stepOf = [&](unsigned dim) {
      Expr step = index.coefficientOf(dimName(dim));
      return step ? step.asConstant().value_or(0) : 0;
    };
    int64_t taps = 0, stride = 0;
    for (unsigned dim = window; dim + 1 < domain.size(); ++dim)
      taps = std::max(taps, stepOf(dim) ? countPoints(domain, dim, 1) : 0);
    for (unsigned dim = rows; dim < columns; ++dim)
      stride = std::max(stride, stepOf(dim));
    if (taps && stride)
      reads *= double(taps) / double(stride);
  }
  return reads >= 2;
}

/// Whether the other operand is read as it lies, or can be stored as the sum runs: not backwards nor in steps (a phase
/// of a transposed convolution), where it stays as it is if columns are few.
static bool readsWeightWhole(ContractionOp node) {
  bool isWhole = true;
  node.getRhs().walk([&](LoadOp load) {
    for (Expr index : prim::getExprs(load.getIndices()))
      for (unsigned dim = 0; dim < getDomain(node).size(); ++dim) {
        Expr step = index.coefficientOf(dimName(dim));
        isWhole &= step && (step.isConstant(0) || step.isConstant(1));
      }
  });
  return isWhole;
}

std::optional<unsigned> loop::getChannels(ContractionOp node, LoadOp load) {
  SmallVector<Expr> domain = getDomain(node);
  unsigned columns = node.getBatch() + node.getM(), window = columns + node.getN(), last = domain.size() - 1;
  int64_t count = countPoints(domain, columns, node.getN());
  bool isImage = cast<BufferType>(load.getBuffer().getType()).getRank() >= 4;
  if (node.getK() < 2 || !load.getIndexOperands().empty() || countPoints(domain, last, 1) < fewestChannels ||
      count < fewestColumns ||
      countPoints(domain, window, node.getK() - 1) < (isImage ? fewestTapsOfImage : fewestTaps) ||
      (count < manyColumns && !(overlapsWindows(node, load) && readsWeightWhole(node))))
    return std::nullopt;
  std::string name = dimName(last);
  std::optional<unsigned> found;
  for (auto [dim, index] : llvm::enumerate(prim::getExprs(load.getIndices()))) {
    if (!index.uses(name))
      continue;
    Expr step = index.coefficientOf(name);
    if (found || !step || !step.isConstant(1))
      return std::nullopt;
    found = dim;
  }
  return found;
}

static bool isIndirect(Expr index) {
  return index.usesAny([](StringRef symbol) { return symbol.starts_with("v$"); });
}

std::optional<unsigned> loop::getGatheredRows(PointwiseOp node, LoadOp load, const SymbolValues &hints) {
  SmallVector<Expr> domain = getDomain(node), indices = prim::getExprs(load.getIndices());
  llvm::SmallDenseSet<unsigned> choosing; // dims that places depend on
  for (Expr index : indices)
    walkIndirectDims(load, index, [&](unsigned dim) { choosing.insert(dim); });
  std::optional<unsigned> rows;
  bool isApart = false; // what is chosen lies between the elements of a row
  for (auto [dim, index] : llvm::enumerate(indices)) {
    isApart |= rows && isIndirect(index);
    std::optional<unsigned> walked;
    walkDims(index, [&](unsigned used) { walked = used; });
    bool isRow = walked && index == Expr::dim(load.getContext(), *walked) && !choosing.contains(*walked) &&
                 domain[*walked].asConstant().value_or(0) >= fewestChannels;
    if (isApart && walked)
      return std::nullopt; // memory runs along another dim of the pixels
    if (isRow)
      rows = unsigned(dim);
  }
  if (!isApart)
    return std::nullopt;
  int64_t taken = 0;
  node.walk([&](LoadOp other) { taken += other.getBuffer() == load.getBuffer() && !other.getIndexOperands().empty(); });
  for (Expr extent : domain)
    taken *= extent.evaluate(hints).value_or(0);
  int64_t elements = cast<BufferType>(load.getBuffer().getType()).getElementCount().evaluate(hints).value_or(taken + 1);
  return taken >= elements ? rows : std::nullopt;
}
