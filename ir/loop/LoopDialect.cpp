//===- LoopDialect.cpp - registration, types, attributes ------------------===//

#include "ir/loop/Recurrence.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

#include "ir/loop/LoopDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/loop/LoopAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/loop/LoopTypes.cpp.inc"

void LoopDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "ir/loop/LoopOps.cpp.inc"
      >();
  addOperations<RecurrenceOp>();
}

void LoopDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/loop/LoopTypes.cpp.inc"
      >();
}

void LoopDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/loop/LoopAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

LayoutAttr LayoutAttr::getRowMajor(MLIRContext *context, int64_t rank) {
  return get(context, llvm::to_vector(llvm::seq<int64_t>(0, rank)));
}

bool LayoutAttr::isRowMajor() const {
  for (auto [position, dim] : llvm::enumerate(getOrder()))
    if (dim != int64_t(position))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Buffer type: !loop.buffer<[batch, 64] x f32, <[1, 0]>>
//===----------------------------------------------------------------------===//

Type BufferType::parse(AsmParser &parser) {
  ArrayAttr dims;
  Type elementType;
  LayoutAttr layout;
  if (parser.parseLess() || prim::parseExprList(parser, dims) || parser.parseKeyword("x") ||
      parser.parseType(elementType))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    layout = dyn_cast_or_null<LayoutAttr>(LayoutAttr::parse(parser, {}));
    if (!layout)
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), prim::getExprs(dims), elementType, layout);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << "<";
  prim::printExprList(printer, prim::getExprArray(getContext(), getShape()));
  printer << " x " << getElementType();
  if (getLayout()) {
    printer << ", ";
    getLayout().print(printer);
  }
  printer << ">";
}

BufferType BufferType::get(MLIRContext *context, ArrayRef<Expr> shape, Type elementType, LayoutAttr layout) {
  SmallVector<ExprAttr> dims(shape.begin(), shape.end());
  return get(context, ArrayRef<ExprAttr>(dims), elementType, layout);
}

SmallVector<Expr> BufferType::getShape() const { return SmallVector<Expr>(getDims().begin(), getDims().end()); }

int64_t loop::getElementBytes(Type elementType) { return (elementType.getIntOrFloatBitWidth() + 7) / 8; }

int64_t BufferType::getElementBytes() const { return loop::getElementBytes(getElementType()); }

Expr BufferType::getElementCount() const { return product(getContext(), getShape()); }

SmallVector<Expr> BufferType::getStrides() const {
  assert(getLayout() && "strides of a buffer without a layout");
  SmallVector<Expr> shape = getShape(), strides(shape.size());
  Expr stride = Expr::constant(getContext(), 1);
  for (int64_t dim : llvm::reverse(getLayout().getOrder())) {
    strides[dim] = stride;
    stride = stride * shape[dim];
  }
  return strides;
}
