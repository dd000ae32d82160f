//===- LinearizeAccesses.cpp - from logical indices to memory -------------===//
//
// After this pass every load and store has one index, the position in elements
// from the start of the buffer, and every buffer is one-dimensional. Layouts have
// done their work: what follows reasons about addresses, which are polynomials in
// the dims wherever the graph is regular.
//
// A target may want aligned addresses of buffers. A part that may begin elsewhere, as the rows do that a loop stacks,
// is no address then: its elements are reached from the whole's.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/NodeDims.h"
#include "compiler/schedule/Passes.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Recurrence.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_LINEARIZEACCESSES
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

ArrayAttr linearize(ArrayAttr indices, BufferType type, const SymbolRanges &ranges) {
  Expr position = Expr::constant(type.getContext(), 0);
  for (auto [index, stride] : llvm::zip(prim::getExprs(indices), type.getStrides()))
    position = position + index * stride;
  return prim::getExprArray(type.getContext(), {position.simplify(ranges)});
}

BufferType getFlatType(BufferType type) {
  MLIRContext *context = type.getContext();
  return BufferType::get(context, ArrayRef<Expr>(type.getElementCount()), type.getElementType(),
                         LayoutAttr::getRowMajor(context, 1));
}

void dropTap(TapOp tap, StringRef reason) {
  tap.getBufferMutable().clear();
  tap.setIndicesAttr(ArrayAttr::get(tap.getContext(), {}));
  tap.setReason(reason);
}

/// An observer is told strides: a view that has none is not shown.
void linearizeTap(TapOp tap, const SymbolRanges &symbols) {
  if (!tap.getBuffer())
    return;
  ArrayAttr position = linearize(tap.getIndices(), tap.getBuffer().getType(), getNodeRanges(tap, symbols));
  Expr rest = prim::getExprs(position)[0];
  auto usesDims = [](Expr expr) { return expr.usesAny(isDimSymbol); };
  for (size_t dim = 0; dim < tap.getDomain().size(); ++dim) {
    Expr next, step = rest.coefficientOf(dimName(dim), &next);
    if (!step || usesDims(step))
      return dropTap(tap, "a view whose elements have no strides in memory");
    rest = next;
  }
  if (usesDims(rest))
    return dropTap(tap, "a view whose elements have no strides in memory");
  tap.setIndicesAttr(position);
}

bool isAligned(PartOp part, int64_t bytes, const SymbolRanges &symbols) {
  if (auto whole = part.getBuffer().getDefiningOp<PartOp>(); whole && !isAligned(whole, bytes, symbols))
    return false;
  ExprRange range = Expr(part.getOffset()).range(symbols);
  bool isStart = range.isPoint() && range.min == 0;
  return isStart || range.divisor * getElementBytes(cast<BufferType>(part.getType()).getElementType()) % bytes == 0;
}

/// Loads and stores of the part become ones of what it is a part of.
void reachFromWhole(PartOp part, const SymbolRanges &symbols) {
  auto moved = [&](ArrayAttr indices, Operation *access) {
    Expr position = prim::getExprs(indices)[0] + Expr(part.getOffset());
    return prim::getExprArray(part.getContext(), {position.simplify(getNodeRanges(getEnclosingNode(access), symbols))});
  };
  for (Operation *user : llvm::make_early_inc_range(part->getUsers())) {
    if (auto load = dyn_cast<LoadOp>(user)) {
      load.setIndicesAttr(moved(load.getIndices(), load));
      load.getBufferMutable().assign(part.getBuffer());
    } else if (auto store = dyn_cast<StoreOp>(user)) {
      store.setIndicesAttr(moved(store.getIndices(), store));
      store.getBufferMutable().assign(part.getBuffer());
    }
  }
  if (part->use_empty())
    part->erase();
}

struct LinearizeAccesses : ptc::impl::LinearizeAccessesBase<LinearizeAccesses> {
  using LinearizeAccessesBase::LinearizeAccessesBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      linearizeProgram(program);
  }

  void linearizeProgram(ProgramOp program) {
    SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
    program.walk([&](Operation *op) {
      if (auto tap = dyn_cast<TapOp>(op))
        return linearizeTap(tap, symbols);
      if (!isa<LoadOp, StoreOp>(op))
        return;
      SymbolRanges ranges = getNodeRanges(getEnclosingNode(op), symbols);
      if (auto load = dyn_cast<LoadOp>(op))
        load.setIndicesAttr(linearize(load.getIndices(), load.getBuffer().getType(), ranges));
      else if (auto store = dyn_cast<StoreOp>(op))
        store.setIndicesAttr(linearize(store.getIndices(), store.getBuffer().getType(), ranges));
    });
    OpBuilder b = OpBuilder::atBlockBegin(&program.getBlock());
    for (BlockArgument argument : program.getBlock().getArguments()) {
      auto type = cast<BufferType>(argument.getType());
      auto flat = FlattenOp::create(b, program.getLoc(), getFlatType(type), argument);
      argument.replaceAllUsesExcept(flat, flat);
      if (flat->use_empty())
        flat.erase();
    }
    program.walk([](Operation *op) {
      if (isa<BufferOp, WeightOp, ConstantOp, PartOp>(op))
        op->getResult(0).setType(getFlatType(cast<BufferType>(op->getResult(0).getType())));
      if (auto recurrence = dyn_cast<RecurrenceOp>(op))
        for (BlockArgument state : recurrence.getBody().getArguments())
          state.setType(getFlatType(cast<BufferType>(state.getType())));
    });
    SmallVector<PartOp> parts;
    program.walk([&](PartOp part) { parts.push_back(part); });
    for (PartOp part : llvm::reverse(parts)) // a part of a part before what that is of
      if (!isAligned(part, pointerAlignment, symbols))
        reachFromWhole(part, symbols);
  }
};

} // namespace
