//===- Prim.h - the prim dialect --------------------------------*- C++ -*-===//
#ifndef PTC_IR_PRIM_PRIM_H
#define PTC_IR_PRIM_PRIM_H

#include "ir/expr/Expr.h"
#include "ir/prim/ScalarBuilder.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/prim/PrimEnums.h.inc"

namespace ptc::prim {
// `custom<OneExpr>` of assembly formats.
mlir::ParseResult parseOneExpr(mlir::AsmParser &parser, ExprAttr &expr);
void printOneExpr(mlir::AsmPrinter &printer, mlir::Operation *, ExprAttr expr);
// What prim.if and loop.if bind; what prim.loop and loop.repeat bind.
void forEachJoinedBinding(mlir::ArrayAttr joined, llvm::function_ref<void(llvm::StringRef, Expr, bool)> visit);
void forEachLoopBinding(llvm::StringRef counter, ExprAttr trips, mlir::StringAttr rounds, mlir::ArrayAttr carried,
                        llvm::function_ref<void(llvm::StringRef, Expr, bool)> visit);
} // namespace ptc::prim

#include "ir/prim/PrimDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/prim/PrimTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/prim/PrimAttrs.h.inc"
#include "ir/prim/PrimInterfaces.h.inc"
#define GET_OP_CLASSES
#include "ir/prim/PrimOps.h.inc"

namespace ptc::prim {

/// The dims of a ranked tensor type as expressions.
llvm::SmallVector<Expr> getDims(mlir::Type tensorType);
inline llvm::SmallVector<Expr> getDims(mlir::Value tensor) { return getDims(tensor.getType()); }
/// A ranked tensor type of these dims; carries a DimsAttr where one is not constant.
mlir::RankedTensorType getTensorType(llvm::ArrayRef<Expr> dims, mlir::Type elementType);
inline mlir::Type getElementType(mlir::Value tensor) {
  return llvm::cast<mlir::RankedTensorType>(tensor.getType()).getElementType();
}
inline int64_t getRank(mlir::Value tensor) { return llvm::cast<mlir::RankedTensorType>(tensor.getType()).getRank(); }
/// The type that scalar bodies compute with: signless integers; handles for what is no number.
mlir::Type getScalarType(mlir::Type elementType);
/// The type as DLPack writes it: its code * 256 + bits; 200 and 201 are the codes of strings and sequences.
int64_t getTypeCode(mlir::Type elementType);
/// Strings and sequences, whose elements are handles below prim.
inline bool isHandle(mlir::Type elementType) { return llvm::isa<StringType, SequenceType>(elementType); }

mlir::ArrayAttr getExprArray(mlir::MLIRContext *context, llvm::ArrayRef<Expr> exprs);
llvm::SmallVector<Expr> getExprs(mlir::ArrayAttr exprs);

/// `[batch, 3, d0*2]`
mlir::ParseResult parseExprList(mlir::AsmParser &parser, mlir::ArrayAttr &exprs);
void printExprList(mlir::AsmPrinter &printer, mlir::ArrayAttr exprs);
inline void printExprList(mlir::AsmPrinter &printer, mlir::Operation *, mlir::ArrayAttr exprs) {
  printExprList(printer, exprs);
}

/// ` below EXPR`, or nothing.
mlir::ParseResult parseTrips(mlir::AsmParser &parser, ExprAttr &trips);
void printTrips(mlir::AsmPrinter &printer, mlir::Operation *, ExprAttr trips);

/// Uses of a value other than by optional taps: what patterns that want a value for themselves ask, so that observing
/// a program changes it as little as can be.
unsigned countReaders(mlir::Value value);

/// Every symbol in the op's attributes and in the types of its results; dims of domains and the like included.
void walkSymbols(mlir::Operation *op, llvm::function_ref<void(llvm::StringRef)> visit);
/// Erases ops below `root` whose results nobody uses, nor the symbols that they bind, and that do nothing else; last
/// first.
void eraseDeadOps(mlir::Operation *root);
/// Reports an op that uses one of the symbols bound inside `root` (prim.bind, loop.bind) where it has no value yet.
mlir::LogicalResult verifyBoundSymbols(mlir::Operation *root);

/// Names of attributes on the entry `func.func` of a prim module.
///   prim.symbols   dictionary: symbol name -> #prim.symbol
///   prim.guards    list of expressions that must not be 0
/// and on its arguments and results:
///   prim.name      the ONNX name
///   prim.alias     (argument) index of the result that shares its buffer
inline constexpr llvm::StringLiteral symbolsAttr = "prim.symbols";
inline constexpr llvm::StringLiteral guardsAttr = "prim.guards";
inline constexpr llvm::StringLiteral nameAttr = "prim.name";
inline constexpr llvm::StringLiteral aliasAttr = "prim.alias";

/// Ranges out of a `prim.symbols` dictionary (null: none).
SymbolRanges getSymbolRanges(mlir::DictionaryAttr symbols);
SymbolValues getSymbolHints(mlir::DictionaryAttr symbols);

} // namespace ptc::prim

#endif // PTC_IR_PRIM_PRIM_H
