//===- LowerBorders.cpp - padded values in memory -------------------------===//
//
// What windows overlap on is stored: they would compute a border's indices again for each element. A value that
// kernels of the program make is stored in the middle of the padded one, as one part of a concat, so that its producer
// writes it there (ElideCopies) and no pass over it is left; each border is a node of its own, before and behind each
// padded dim:
//
//   pointwise [1, 64, 8, 8] { store(load x[...], P[d0, d1, d2 + 1, d3 + 1]) }                 elided
//   pointwise [1, 64, 1, 10] { store(load P[d0, d1, 2 - d2, mirrored d3], P[d0, d1, d2, d3]) }  above; below alike
//   pointwise [1, 64, 8, 1] { store(load P[d0, d1, d2 + 1, 2], P[d0, d1, d2 + 1, 0]) }        on the left, ...
//
// Borders of the first padded dim are whole in the others, those of later ones between them. All read the middle alone,
// so that they depend on nothing but that, and run in any order. A border of constants reads nothing.
//
// What the program is given is copied whatever happens: with its borders, by one node.
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/FunctionLowering.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

using Exprs = SmallVector<Expr>;

Expr loop::borderIndex(prim::PadKind kind, Expr at, Expr extent) {
  MLIRContext *context = at.getContext();
  Expr zero = Expr::constant(context, 0), last = extent - 1;
  switch (kind) {
  case prim::PadKind::Edge:
    return Expr::max(zero, Expr::min(at, last));
  case prim::PadKind::Wrap:
    return at.mod(extent);
  case prim::PadKind::Reflect: {
    // |at| folded at the end: period 2*(extent-1).
    Expr period = Expr::max(last * 2, Expr::constant(context, 1));
    Expr folded = at.mod(period);
    return Expr::min(folded, period - folded);
  }
  case prim::PadKind::Constant:
    break;
  }
  return at;
}

namespace {

/// How a pad divides the dims of what it makes.
struct Frame {
  explicit Frame(prim::PadOp pad)
      : low(prim::getExprs(pad.getLow())), inner(prim::getDims(pad.getX())), whole(prim::getDims(pad.getResult())) {}

  Expr getHigh(unsigned dim) const { return whole[dim] - low[dim] - inner[dim]; }
  bool isPadded(unsigned dim) const { return !low[dim].isConstant(0) || whole[dim] != inner[dim]; }
  /// Where what is padded lies.
  Exprs findInWhole(ArrayRef<Expr> at) const {
    Exprs position(at);
    for (auto [index, before] : llvm::zip_equal(position, low))
      index = index + before;
    return position;
  }
  /// Whether nothing is cropped.
  bool holds(const SymbolRanges &ranges) const {
    return llvm::all_of(llvm::seq<unsigned>(0, whole.size()), [&](unsigned dim) {
      return low[dim].range(ranges).min >= 0 && getHigh(dim).simplify(ranges).range(ranges).min >= 0;
    });
  }

  Exprs low, inner, whole;
};

/// Writes the border of `dim`, in front of the middle or behind it.
void storeBorder(FunctionLowering &lowering, prim::PadOp pad, const Frame &frame, Value buffer, unsigned dim,
                 bool isBehind) {
  Expr size = isBehind ? frame.getHigh(dim).simplify(lowering.symbolRanges) : frame.low[dim];
  if (size.isConstant(0))
    return;
  Tensor border = lowering.readOf(buffer, prim::getElementType(pad.getResult()));
  border.origins = {pad.getLoc()};
  border.buffer = {};
  for (unsigned i = 0; i <= dim; ++i)
    border.dims[i] = i == dim ? size : frame.inner[i];
  auto place = [&](ArrayRef<Expr> at) {
    Exprs position(at);
    for (unsigned i = 0; i < dim; ++i)
      position[i] = position[i] + frame.low[i];
    if (isBehind)
      position[dim] = position[dim] + frame.low[dim] + frame.inner[dim];
    return position;
  };
  prim::PadKind kind = pad.getKind();
  if (kind == prim::PadKind::Constant)
    border.element = [&](Body &body, const Index &) { return lowering.get(pad.getValue()).element(body, {{}, {}}); };
  else
    border.element = [&, read = border.element](Body &body, const Index &index) {
      Exprs source = place(index.at);
      for (unsigned i = dim; i < source.size(); ++i)
        if (frame.isPadded(i))
          source[i] = borderIndex(kind, source[i] - frame.low[i], frame.inner[i]).simplify(body.ranges) + frame.low[i];
      return read(body, {source, index.operands});
    };
  lowering.store(border, buffer, place, pad.getLoc());
}

/// Stores the padded value part by part; false, with nothing done, if something of x is cropped.
bool storeParts(FunctionLowering &lowering, prim::PadOp pad) {
  Frame frame(pad);
  bool hasFill = pad.getKind() == prim::PadKind::Constant;
  if (!frame.holds(lowering.symbolRanges) || (hasFill && prim::getRank(pad.getValue()) != 0))
    return false;
  Type elementType = prim::getElementType(pad.getResult());
  Value buffer = lowering.createBuffer(frame.whole, elementType, pad.getLoc());
  Tensor middle = lowering.get(pad.getX());
  lowering.store(middle, buffer, [&](ArrayRef<Expr> at) { return frame.findInWhole(at); }, pad.getLoc());
  for (unsigned dim = 0; dim < frame.whole.size(); ++dim)
    for (bool isBehind : {false, true})
      if (frame.isPadded(dim))
        storeBorder(lowering, pad, frame, buffer, dim, isBehind);
  lowering.set(pad.getResult(), lowering.readOf(buffer, elementType));
  return true;
}

/// Whether a kernel of the program writes something that the value is computed from.
bool isMade(FunctionLowering &lowering, Value value) {
  SmallVector<Value> open{value};
  SmallPtrSet<Operation *, 16> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (Value buffer = lowering.get(next).buffer; buffer && buffer.getDefiningOp<BufferOp>())
      return true;
    else if (Operation *op = next.getDefiningOp(); !buffer && op && seen.insert(op).second)
      llvm::append_range(open, op->getOperands());
  }
  return false;
}

/// Whether the pad changes sizes that are not known.
bool padsFreeSizes(prim::PadOp pad) {
  Frame frame(pad);
  return llvm::any_of(llvm::seq<unsigned>(0, frame.whole.size()), [&](unsigned dim) {
    return frame.whole[dim] != frame.inner[dim] && !frame.whole[dim].isConstant();
  });
}

} // namespace

void FunctionLowering::storeBorders(Value value) {
  SmallVector<Operation *> views;
  Value base = value;
  while (!get(base).buffer &&
         isa_and_nonnull<prim::ReshapeOp, prim::TransposeOp, prim::SliceOp>(base.getDefiningOp())) {
    views.push_back(base.getDefiningOp());
    base = views.back()->getOperand(0);
  }
  auto pad = base.getDefiningOp<prim::PadOp>();
  if (!pad || get(base).buffer)
    return;
  storeBorders(pad.getX());
  if (!isMade(*this, pad.getX()) || !storeParts(*this, pad)) {
    lowerView(pad); // of what has been stored since
    if (pad.getKind() != prim::PadKind::Constant && !padsFreeSizes(pad))
      realize(get(base), pad.getLoc());
  }
  for (Operation *view : llvm::reverse(views))
    lowerView(view);
}
