//===- AssignLayouts.cpp - one layout for each buffer ---------------------===//
//
// Arguments, weights, constants and what functions of the runtime read and write are row-major. Buffers are decided in
// program order: the node that writes a buffer says in which order its dims run in memory.
//
//   contraction   batch dims, m dims, then n innermost: the register tile stores
//                 whole vectors (channels last, for a convolution)
//   attention     row-major: the lowering has put heads where the reader wants them
//   recurrence    row-major: rows of a step lie behind those of the step before
//   others        the order of the largest buffer they read, so that nothing is
//                 transposed on the way (a pooling keeps channels last); row-major
//                 if they read none, or if none of what they read has all of
//                 their dims (all pairs of two rows). What they fill is decided by who else
//                 writes there (a scatter into zeros). Bytes that a product
//                 reads in groups have these innermost, images that a
//                 convolution reads, or pixels are gathered from, their
//                 channels. What is read once, for a larger buffer whose order is
//                 known (a result of the model that is resized or repeated), takes
//                 that: the smaller one is transposed
//
// Concat buffers follow the first producer; the others write into it with strides.
//
//===----------------------------------------------------------------------===//

#include "ir/loop/Recurrence.h"
#include "lowering/prim_to_loop/MemoryOrder.h"
#include "lowering/prim_to_loop/Passes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

namespace {

class LayoutAssignment {
public:
  LayoutAssignment(ProgramOp program, bool gatherRows)
      : program(program), gatherRows(gatherRows), hints(prim::getSymbolHints(program.getSymbols())) {}

  void run() {
    program.walk([&](CallOp call) {
      for (Value buffer : call->getOperands())
        assignRowMajor(buffer);
    });
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

  /// Whether another node stores to the buffer, too.
  static bool isWrittenElsewhere(Value buffer, Operation *node) {
    return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
      auto store = dyn_cast<StoreOp>(user);
      return store && store.getBuffer() == buffer && !node->isProperAncestor(user);
    });
  }

  /// The dim of a buffer of bytes along which a product of 8-bit integers reads several at once.
  static std::optional<int64_t> getGroupedDim(Value buffer) {
    for (Operation *user : buffer.getUsers()) {
      auto load = dyn_cast<LoadOp>(user);
      auto product = user->getParentOfType<ContractionOp>();
      if (!load || !product || !product.getLhs().isAncestor(load->getParentRegion()) || !load.getType().isInteger(8) ||
          !product.getEpilogue().getArgument(0).getType().isInteger(32))
        continue;
      Expr last = Expr::dim(load.getContext(), unsigned(getDomain(product).size() - 1));
      for (auto [dim, index] : llvm::enumerate(prim::getExprs(load.getIndices())))
        if (index == last)
          return int64_t(dim);
    }
    return std::nullopt;
  }

  /// The dim of an image that a convolution reads, or that rows are gathered along.
  std::optional<int64_t> getImageDim(Value buffer) {
    for (Operation *user : buffer.getUsers()) {
      auto load = dyn_cast<LoadOp>(user);
      bool isGather = gatherRows && load && !load.getIndexOperands().empty();
      if (auto pointwise = isGather ? load->getParentOfType<PointwiseOp>() : PointwiseOp())
        if (auto dim = getGatheredRows(pointwise, load, hints))
          return int64_t(*dim);
      auto product = user->getParentOfType<ContractionOp>();
      if (load && product && product.getLhs().isAncestor(load->getParentRegion()))
        if (auto dim = getChannels(product, load))
          return int64_t(*dim);
    }
    return std::nullopt;
  }

  /// The order of a buffer as its one reader would have it, a pointwise node that makes more of it than there is and
  /// whose results have orders; empty: there is no such node.
  SmallVector<int64_t> getOrderOfSpread(Value buffer, PointwiseOp writer) {
    PointwiseOp reader;
    LoadOp read;
    for (Operation *user : buffer.getUsers()) {
      if (writer->isProperAncestor(user))
        continue;
      auto load = dyn_cast<LoadOp>(user);
      auto node = load ? load->getParentOfType<PointwiseOp>() : PointwiseOp();
      if (!node || node->getParentRegion() != writer->getParentRegion() || (reader && node != reader))
        return {};
      reader = node;
      read = load;
    }
    StoreOp largest;
    int64_t most = 2 * countElements(buffer) - 1;
    if (reader)
      reader.walk([&](StoreOp store) {
        int64_t count = countElements(store.getBuffer());
        if (cast<BufferType>(store.getBuffer().getType()).getLayout() && count > most) {
          largest = store;
          most = count;
        }
      });
    if (!largest)
      return {};
    SmallVector<int64_t> places = getPlacesOfStore(largest, getDomain(reader).size());
    return getBufferOrder(prim::getExprs(read.getIndices()), places, read);
  }

  int64_t countElements(Value buffer) {
    return cast<BufferType>(buffer.getType()).getElementCount().evaluate(hints).value_or(0);
  }

  void visitNode(Operation *node) {
    SmallVector<int64_t> places = getPlaces(node);
    bool isFill = isa<PointwiseOp>(node) && getMemoryPlaces(node, hints).empty();
    node->walk([&](StoreOp store) {
      if (isFill && isWrittenElsewhere(store.getBuffer(), node))
        return;
      if (isa<AttentionOp>(node) || isInRecurrence(node))
        assignRowMajor(store.getBuffer());
      else if (!cast<BufferType>(store.getBuffer().getType()).getLayout()) {
        SmallVector<int64_t> order = getBufferOrder(prim::getExprs(store.getIndices()), places);
        auto writer = dyn_cast<PointwiseOp>(node);
        std::optional<int64_t> innermost = writer ? getGroupedDim(store.getBuffer()) : std::nullopt;
        if (writer && !innermost)
          innermost = getImageDim(store.getBuffer());
        if (innermost) {
          llvm::erase(order, *innermost);
          order.push_back(*innermost);
        } else if (writer) {
          if (SmallVector<int64_t> wanted = getOrderOfSpread(store.getBuffer(), writer); !wanted.empty())
            order = wanted;
        }
        setLayout(store.getBuffer(), LayoutAttr::get(program.getContext(), order));
      }
    });
  }

  /// Places of the node's dims, as memory should run: those of what it reads, ties as in the domain.
  SmallVector<int64_t> getPlaces(Operation *node) {
    unsigned rank = getDomain(node).size();
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    if (isa<ContractionOp>(node))
      return order;
    SmallVector<int64_t> read = getMemoryPlaces(node, hints), places(rank);
    if (!read.empty())
      llvm::stable_sort(order, [&](int64_t a, int64_t b) { return read[a] < read[b]; });
    for (auto [at, dim] : llvm::enumerate(order))
      places[dim] = int64_t(at);
    return places;
  }

  ProgramOp program;
  bool gatherRows;
  SymbolValues hints;
};

struct AssignLayouts : ptc::impl::AssignLayoutsBase<AssignLayouts> {
  using AssignLayoutsBase::AssignLayoutsBase;
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      LayoutAssignment(program, gatherRows).run();
  }
};

} // namespace
