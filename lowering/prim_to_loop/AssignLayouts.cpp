//===- AssignLayouts.cpp - one layout for each buffer ---------------------===//
//
// Arguments, weights and constants are row-major. Buffers are decided in program
// order: the node that writes a buffer says in which order its dims run in memory.
//
//   contraction   batch dims, m dims, then n innermost: the register tile stores
//                 whole vectors (channels last, for a convolution)
//   attention     batch and row dims, then e innermost
//   others        the order of the largest buffer they read, so that nothing is
//                 transposed on the way; row-major if they read none
//
// A store index that mixes several dims keeps its buffer row-major. Concat buffers
// follow the first producer; the others write into it with strides.
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/Passes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

namespace {

bool isDim(StringRef symbol, unsigned &dim) { return symbol.consume_front("d") && !symbol.getAsInteger(10, dim); }

/// The only dim that an index uses, if it uses one.
std::optional<unsigned> getOnlyDim(Expr index) {
  std::optional<unsigned> found;
  bool several = false;
  index.walkSymbols([&](StringRef symbol) {
    unsigned dim;
    if (!isDim(symbol, dim))
      return;
    several |= found && *found != dim;
    found = dim;
  });
  return several ? std::nullopt : found;
}

class LayoutAssignment {
public:
  LayoutAssignment(ProgramOp program) : program(program), hints(prim::getSymbolHints(program.getSymbols())) {}

  void run() {
    program.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isNode(op))
        visitNode(op);
    });
    program.walk([&](BufferOp op) { assignRowMajor(op.getResult()); });
  }

private:
  void assignRowMajor(Value buffer) {
    auto type = cast<BufferType>(buffer.getType());
    if (!type.getLayout())
      setLayout(buffer, LayoutAttr::getRowMajor(type.getContext(), type.getRank()));
  }

  static void setLayout(Value buffer, LayoutAttr layout) {
    auto type = cast<BufferType>(buffer.getType());
    buffer.setType(BufferType::get(type.getContext(), type.getShape(), type.getElementType(), layout));
  }

  void visitNode(Operation *node) {
    SmallVector<int64_t> order = getDimOrder(node);
    node->walk([&](StoreOp store) {
      if (!cast<BufferType>(store.getBuffer().getType()).getLayout())
        assign(store, order);
    });
  }

  /// Dims of the node's domain, outermost first, as memory should run.
  SmallVector<int64_t> getDimOrder(Operation *node) {
    unsigned rank = getDomain(node).size();
    if (isa<ContractionOp, AttentionOp>(node))
      return llvm::to_vector(llvm::seq<int64_t>(0, rank));
    LoadOp largest = getLargestRead(node);
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    if (!largest)
      return order;
    // Position of each domain dim in the memory order of what is read.
    auto type = cast<BufferType>(largest.getBuffer().getType());
    SmallVector<Expr> indices = prim::getExprs(largest.getIndices());
    SmallVector<int64_t> position(rank, -1);
    for (auto [at, bufferDim] : llvm::enumerate(type.getLayout().getOrder()))
      if (auto dim = getOnlyDim(indices[bufferDim]))
        if (position[*dim] < 0)
          position[*dim] = at;
    // Dims that are not read keep their place relative to the dim before them.
    for (unsigned dim = 1; dim < rank; ++dim)
      if (position[dim] < 0)
        position[dim] = position[dim - 1];
    llvm::stable_sort(order, [&](int64_t a, int64_t b) { return position[a] < position[b]; });
    return order;
  }

  /// The read of the largest buffer whose layout is not plain row-major by
  /// necessity alone: intermediates before arguments and weights of equal size.
  LoadOp getLargestRead(Operation *node) {
    LoadOp best;
    int64_t bestSize = -1;
    node->walk([&](LoadOp load) {
      auto type = cast<BufferType>(load.getBuffer().getType());
      if (!type.getLayout() || type.getRank() < 2 || load.getBuffer().getDefiningOp<WeightOp>())
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

  void assign(StoreOp store, ArrayRef<int64_t> dimOrder) {
    SmallVector<Expr> indices = prim::getExprs(store.getIndices());
    SmallVector<int64_t> rankOf(dimOrder.size());
    for (auto [at, dim] : llvm::enumerate(dimOrder))
      rankOf[dim] = at;
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, indices.size()));
    SmallVector<int64_t> position(indices.size(), -1);
    for (auto [i, index] : llvm::enumerate(indices)) {
      // A group dim and a channel dim may share an index: the inner one decides.
      index.walkSymbols([&](StringRef symbol) {
        unsigned dim;
        if (isDim(symbol, dim))
          position[i] = std::max(position[i], rankOf[dim]);
      });
      if (position[i] < 0 && i > 0)
        position[i] = position[i - 1];
    }
    llvm::stable_sort(order, [&](int64_t a, int64_t b) { return position[a] < position[b]; });
    setLayout(store.getBuffer(), LayoutAttr::get(program.getContext(), order));
  }

  ProgramOp program;
  SymbolValues hints;
};

struct AssignLayouts : ptc::impl::AssignLayoutsBase<AssignLayouts> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      LayoutAssignment(program).run();
  }
};

} // namespace
