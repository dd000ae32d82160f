//===- LowerTaps.cpp - where an observer finds a value --------------------===//
//
// A tapped value that lies in a buffer is shown there. Having two users it mostly does: `shouldRealize` writes it, and
// fusion later keeps the store and lets the other user have the value from the register. A view of a
// buffer (a reshape, a transpose, a part of a concat) is shown as a strided tensor, at no cost. What remains is
// computed again by each of its readers, and is copied for the observer, unless it depends on no data.
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/FunctionLowering.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {
struct PlainRead {
  Value buffer;
  SmallVector<Expr> indices;
};
} // namespace

/// What the tensor reads if each of its elements is one of a buffer, at a place that expressions say.
static std::optional<PlainRead> findPlainRead(FunctionLowering &lowering, const Tensor &tensor, Location loc) {
  OpBuilder &b = lowering.builder;
  OpBuilder::InsertionGuard guard(b);
  auto scratch = PointwiseOp::create(b, loc, prim::getExprArray(lowering.context, tensor.dims));
  Body body = lowering.beginBody(scratch.getBody(), tensor.dims, loc);
  Value scalar = tensor.element(body, {lowering.dims(0, tensor.dims.size()), {}});
  auto load = scalar.getDefiningOp<LoadOp>();
  std::optional<PlainRead> found;
  if (load && load.getIndexOperands().empty() && load->getParentOp() == scratch)
    found = PlainRead{load.getBuffer(), prim::getExprs(load.getIndices())};
  scratch.erase();
  return found;
}

static bool isKnown(Value buffer) { return isa_and_nonnull<WeightOp, ConstantOp>(buffer.getDefiningOp()); }

void FunctionLowering::lowerTap(prim::TapOp tap) {
  Location loc = tap.getLoc();
  auto emit = [&](Value buffer, ArrayRef<Expr> domain, ArrayRef<Expr> at, Type type, StringAttr reason) {
    TapOp::create(builder, loc, buffer, prim::getExprArray(context, domain), prim::getExprArray(context, at),
                  TypeAttr::get(type), tap.getOutputAttr(), tap.getNumberAttr(), reason);
  };
  auto drop = [&](const Twine &reason) { emit({}, {}, {}, builder.getNoneType(), builder.getStringAttr(reason)); };
  if (!tap.getX())
    return drop(tap.getReason().value_or(""));
  if (prim::isHandle(prim::getElementType(tap.getX())))
    return drop("strings and sequences are not shown");
  Tensor tensor = get(tap.getX());
  if (tensor.buffer && !(tap.getOptional() && isKnown(tensor.buffer)))
    return emit(tensor.buffer, tensor.dims, dims(0, tensor.dims.size()), tensor.elementType, {});
  if (tap.getOptional()) {
    std::optional<PlainRead> read = findPlainRead(*this, tensor, loc);
    if (read ? isKnown(read->buffer) : tensor.reads == 0)
      return drop("known when the model is compiled");
    if (read)
      return emit(read->buffer, tensor.dims, read->indices, tensor.elementType, {});
  }
  tensor.buffer = {};
  realize(tensor, loc);
  emit(tensor.buffer, tensor.dims, dims(0, tensor.dims.size()), tensor.elementType, {});
}
