//===- PrimDialect.cpp - registration, attributes, dims of tensor types ---===//

#include "ir/expr/ExprStorage.h"
#include "ir/prim/Elements.h"
#include "ir/prim/Prim.h"
#include "ir/prim/WeightAttrs.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::prim;

#include "ir/prim/PrimDialect.cpp.inc"
#include "ir/prim/PrimEnums.cpp.inc"
#include "ir/prim/PrimInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/prim/PrimTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/prim/PrimAttrs.cpp.inc"

void PrimDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "ir/prim/PrimOps.cpp.inc"
      >();
}

void PrimDialect::registerAttributes() {
  addAttributes<ExprAttr,
#define GET_ATTRDEF_LIST
#include "ir/prim/PrimAttrs.cpp.inc"
                >();
}

void PrimDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/prim/PrimTypes.cpp.inc"
      >();
}

Attribute PrimDialect::parseAttribute(DialectAsmParser &parser, Type type) const {
  StringRef mnemonic;
  Attribute attr;
  OptionalParseResult result = generatedAttributeParser(parser, &mnemonic, type, attr);
  if (result.has_value())
    return attr;
  if (mnemonic == "expr")
    return ExprAttr::parse(parser, type);
  parser.emitError(parser.getNameLoc(), "unknown prim attribute: ") << mnemonic;
  return {};
}

void PrimDialect::printAttribute(Attribute attr, DialectAsmPrinter &printer) const {
  if (auto expr = dyn_cast<ExprAttr>(attr)) {
    printer << "expr";
    expr.print(printer);
    return;
  }
  (void)generatedAttributePrinter(attr, printer);
}

SmallVector<WeightRefAttr> prim::getWeightRefs(WeightRefAttr first, ArrayAttr others) {
  SmallVector<WeightRefAttr> refs{first};
  if (others)
    llvm::append_range(refs, others.getAsRange<WeightRefAttr>());
  return refs;
}

SmallVector<WeightRefAttr> WeightOp::getRefs() { return getWeightRefs(getRef(), getOthersAttr()); }

RankedTensorType WeightOp::getPartType() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (!getOthersAttr())
    return type;
  auto rows = (*this)->getAttrOfType<DenseI64ArrayAttr>(partRowsAttr);
  SmallVector<Expr> dims = getDims(type);
  if (rows)
    dims[0] = Expr::constant(getContext(), rows[0]);
  else
    dims.erase(dims.begin());
  if (isTurnedPart(*this, 0))
    std::swap(dims[0], dims[1]);
  return getTensorType(dims, type.getElementType());
}

void prim::setTurned(Operation *weight, ArrayRef<bool> turned) {
  if (llvm::is_contained(turned, true))
    weight->setAttr(turnedAttr, DenseBoolArrayAttr::get(weight->getContext(), turned));
}

bool prim::isTurnedPart(Operation *weight, size_t number) {
  auto turned = weight->getAttrOfType<DenseBoolArrayAttr>(turnedAttr);
  return turned && turned[int64_t(number)];
}

bool prim::isNarrowedWeight(Operation *op) {
  auto convert = dyn_cast_if_present<ConvertOp>(op);
  if (!convert || !convert.getX().getDefiningOp<WeightOp>() || !getElementType(convert.getX()).isF32())
    return false;
  Type to = getElementType(convert.getY());
  return to.isF16() || to.isBF16();
}

unsigned prim::countReaders(Value value) {
  return llvm::count_if(value.getUses(), [](OpOperand &use) {
    auto tap = dyn_cast<TapOp>(use.getOwner());
    return !tap || !tap.getOptional();
  });
}

//===----------------------------------------------------------------------===//
// Lists of expressions
//===----------------------------------------------------------------------===//

ParseResult prim::parseExprList(AsmParser &parser, ArrayAttr &exprs) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    Expr expr = Expr::parse(parser);
    list.push_back(expr);
    return success(bool(expr));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  exprs = ArrayAttr::get(parser.getContext(), list);
  return success();
}

ParseResult prim::parseOneExpr(AsmParser &parser, ExprAttr &attr) {
  Expr expr = Expr::parse(parser);
  if (expr)
    attr = expr;
  return success(bool(expr));
}

void prim::printOneExpr(AsmPrinter &printer, Operation *, ExprAttr expr) { printer << Expr(expr).str(); }

void prim::printExprList(AsmPrinter &printer, ArrayAttr exprs) {
  printer << '[';
  llvm::interleaveComma(exprs, printer, [&](Attribute attr) { printer << Expr(cast<ExprAttr>(attr)).str(); });
  printer << ']';
}

ParseResult prim::parseTrips(AsmParser &parser, ExprAttr &trips) {
  if (failed(parser.parseOptionalKeyword("below")))
    return success();
  Expr expr = Expr::parse(parser);
  if (expr)
    trips = expr;
  return success(bool(expr));
}

void prim::printTrips(AsmPrinter &printer, Operation *, ExprAttr trips) {
  if (trips)
    printer << "below " << Expr(trips).str();
}

ArrayAttr prim::getExprArray(MLIRContext *context, ArrayRef<Expr> exprs) {
  SmallVector<Attribute> list(exprs.begin(), exprs.end());
  return ArrayAttr::get(context, list);
}

SmallVector<Expr> prim::getExprs(ArrayAttr exprs) {
  SmallVector<Expr> list;
  for (Attribute attr : exprs)
    list.push_back(cast<ExprAttr>(attr));
  return list;
}

//===----------------------------------------------------------------------===//
// Dims of tensor types
//===----------------------------------------------------------------------===//

Attribute DimsAttr::parse(AsmParser &parser, Type) {
  ArrayAttr list;
  if (parser.parseLess() || parseExprList(parser, list) || parser.parseGreater())
    return {};
  SmallVector<ExprAttr> dims;
  for (Attribute attr : list)
    dims.push_back(cast<ExprAttr>(attr));
  return get(parser.getContext(), dims);
}

void DimsAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer, [&](ExprAttr dim) { printer << Expr(dim).str(); });
  printer << "]>";
}

LogicalResult DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getDims().size())
    return emitError() << "the type has " << shape.size() << " dims, its encoding " << getDims().size();
  for (auto [size, dim] : llvm::zip(shape, getDims())) {
    bool isStatic = Expr(dim).isConstant();
    if (isStatic != !ShapedType::isDynamic(size) || (isStatic && Expr(dim).getValue() != size))
      return emitError() << "dim " << Expr(dim).str() << " of the encoding contradicts the type's";
  }
  return success();
}

SmallVector<Expr> prim::getDims(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<Expr> dims;
  if (auto encoding = dyn_cast_or_null<DimsAttr>(tensor.getEncoding())) {
    dims.append(encoding.getDims().begin(), encoding.getDims().end());
    return dims;
  }
  for (int64_t size : tensor.getShape())
    dims.push_back(Expr::constant(type.getContext(), size));
  return dims;
}

RankedTensorType prim::getTensorType(ArrayRef<Expr> dims, Type elementType) {
  SmallVector<int64_t> shape;
  SmallVector<ExprAttr> encoded;
  for (Expr dim : dims) {
    shape.push_back(dim.isConstant() ? dim.getValue() : ShapedType::kDynamic);
    encoded.push_back(dim);
  }
  if (!llvm::is_contained(shape, ShapedType::kDynamic))
    return RankedTensorType::get(shape, elementType);
  return RankedTensorType::get(shape, elementType, DimsAttr::get(elementType.getContext(), encoded));
}

Type prim::getScalarType(Type elementType) {
  if (auto integer = dyn_cast<IntegerType>(elementType))
    return IntegerType::get(integer.getContext(), integer.getWidth());
  if (isHandle(elementType))
    return IntegerType::get(elementType.getContext(), 64);
  return elementType;
}

int64_t prim::getTypeCode(Type type) {
  auto make = [](int64_t code, int64_t bits) { return code * 256 + bits; };
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() == 1 ? make(6, 8)
                                   : make(isComplex(integer)     ? 5
                                          : integer.isUnsigned() ? 1
                                                                 : 0,
                                          integer.getWidth());
  return llvm::TypeSwitch<Type, int64_t>(type)
      .Case([&](BFloat16Type) { return make(4, 16); })
      .Case([&](Float8E4M3FNType) { return make(10, 8); })
      .Case([&](Float8E4M3FNUZType) { return make(11, 8); })
      .Case([&](Float8E5M2Type) { return make(12, 8); })
      .Case([&](Float8E5M2FNUZType) { return make(13, 8); })
      .Case([&](Float8E8M0FNUType) { return make(14, 8); })
      .Case([&](Float6E2M3FNType) { return make(15, 6); })
      .Case([&](Float6E3M2FNType) { return make(16, 6); })
      .Case([&](Float4E2M1FNType) { return make(17, 4); })
      .Case([&](StringType) { return make(200, 128); })
      .Case([&](SequenceType) { return make(201, 128); })
      .Default([&](Type other) { return make(2, other.getIntOrFloatBitWidth()); });
}

SymbolRanges prim::getSymbolRanges(DictionaryAttr symbols) {
  llvm::StringMap<ExprRange> ranges;
  if (symbols)
    for (NamedAttribute entry : symbols)
      if (auto symbol = dyn_cast<SymbolAttr>(entry.getValue()))
        ranges[entry.getName()] = {symbol.getMin(), symbol.getMax(), symbol.getDivisor()};
  return SymbolRanges(std::move(ranges));
}

SymbolValues prim::getSymbolHints(DictionaryAttr symbols) {
  SymbolValues hints;
  if (symbols)
    for (NamedAttribute entry : symbols)
      if (auto symbol = dyn_cast<SymbolAttr>(entry.getValue()))
        hints[entry.getName()] = symbol.getHint();
  return hints;
}
