//===- CopyImages.cpp - images of the caller's, channels last -------------===//
//
// Problem. An argument is row-major, so an image comes with its channels outermost. A convolution adds up channels for
// each pixel of its window: it gathers them from as many places of memory, once for each element of the window, and
// what reads channels in a row (tiles of several rows, Winograd's algorithm) is not for it.
//
// Idea. Such an image is copied once with its channels innermost, and all convolutions of that kind read the copy. The
// copy moves each element once; what it saves is as many times the window's elements and columns. No round of a loop
// changes an argument: where loops are around the convolution, the copy stands in front of the outermost.
//
// A node that gathers pixels at places that are read takes the channels of each from as many places, too. Where it
// takes as many elements as the image has, it reads a copy: one of those elements costs as much as four or five of a
// copy.
//
//   copied   a load of an input by a contraction whose sum runs over a window and, innermost, over one dim of the
//            input; with so many channels that a vector is full of them, and as many columns, or three of windows that
//            overlap. Loads by a pointwise node that take so many channels at places inside of the image that are read,
//            as often as it has elements
//   not      results, which may be written in parts, some between two reads; few channels, as of pictures (whole tiles
//            of such are read in place, CpuContractionInside.cpp); 1 x 1 convolutions, which are products whose other
//            operand may be transposed
//
//===----------------------------------------------------------------------===//

#include "ir/loop/Recurrence.h"
#include "lowering/prim_to_loop/MemoryOrder.h"
#include "lowering/prim_to_loop/Passes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_COPYIMAGES
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

/// The outermost loop around the node, or the node.
static Operation *getOutermostLoop(Operation *node) {
  Operation *place = node;
  for (Operation *op = node->getParentOp(); !isa<ProgramOp>(op); op = op->getParentOp())
    if (isa<RepeatOp, RecurrenceOp>(op))
      place = op;
  return place;
}

/// A copy of `image`, made before `place`, in which `channels` is the innermost dim.
static Value copyImage(Operation *place, Location loc, Value image, unsigned channels) {
  OpBuilder b(place);
  auto type = cast<BufferType>(image.getType());
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  llvm::erase(order, channels);
  order.push_back(channels);
  Value copy = BufferOp::create(
      b, loc,
      BufferType::get(b.getContext(), type.getShape(), type.getElementType(), LayoutAttr::get(b.getContext(), order)));
  auto pointwise = PointwiseOp::create(b, loc, prim::getExprArray(b.getContext(), type.getShape()));
  b.setInsertionPointToEnd(&pointwise.getBody().emplaceBlock());
  SmallVector<Expr> at;
  for (unsigned dim = 0; dim < type.getRank(); ++dim)
    at.push_back(Expr::dim(b.getContext(), dim));
  Value element = LoadOp::create(b, loc, image, ArrayRef<Expr>(at));
  StoreOp::create(b, loc, element, copy, ArrayRef<Expr>(at));
  return copy;
}

namespace {

struct CopyImages : ptc::impl::CopyImagesBase<CopyImages> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      copyImages(program);
  }

  void copyImages(ProgramOp program) {
    DenseMap<std::tuple<Block *, Value, unsigned>, Value> copies;
    auto readCopy = [&](Operation *node, LoadOp load, std::optional<unsigned> channels) {
      if (!channels || int64_t(*channels) + 1 == cast<BufferType>(load.getBuffer().getType()).getRank())
        return;
      Operation *place = getOutermostLoop(node);
      Value &copy = copies[{place->getBlock(), load.getBuffer(), *channels}];
      if (!copy)
        copy = copyImage(place, node->getLoc(), load.getBuffer(), *channels);
      load.getBufferMutable().assign(copy);
    };
    auto isInput = [&](LoadOp load) {
      auto argument = dyn_cast<BlockArgument>(load.getBuffer());
      return argument && llvm::is_contained(program.getInputArgs(), argument);
    };
    program.walk([&](ContractionOp node) {
      node.getLhs().walk([&](LoadOp load) {
        if (isInput(load))
          readCopy(node, load, getChannels(node, load));
      });
    });
    SymbolValues hints = prim::getSymbolHints(program.getSymbols());
    program.walk([&](PointwiseOp node) {
      SmallVector<std::pair<LoadOp, std::optional<unsigned>>> gathers; // all are counted before any reads the copy
      node.walk([&](LoadOp load) {
        if (isInput(load) && !load.getIndexOperands().empty())
          gathers.push_back({load, getGatheredRows(node, load, hints)});
      });
      for (auto [load, rows] : gathers)
        readCopy(node, load, rows);
    });
  }
};

} // namespace
