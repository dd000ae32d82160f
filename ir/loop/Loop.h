//===- Loop.h - the loop dialect --------------------------------*- C++ -*-===//
#ifndef PTC_IR_LOOP_LOOP_H
#define PTC_IR_LOOP_LOOP_H

#include "ir/prim/Prim.h"
#include "mlir/IR/SymbolTable.h"

namespace ptc::loop {
using prim::parseExprList;
using prim::parseOneExpr;
using prim::parseTrips;
using prim::printExprList;
using prim::printOneExpr;
using prim::printTrips;
} // namespace ptc::loop

#include "ir/loop/LoopDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/loop/LoopAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/loop/LoopTypes.h.inc"
#define GET_OP_CLASSES
#include "ir/loop/LoopOps.h.inc"

namespace ptc::loop {

/// Bytes of one element in memory (i1: 1).
int64_t getElementBytes(mlir::Type elementType);

/// True for pointwise, reduction, scan, scatter, sort, contraction, attention.
bool isNode(mlir::Operation *op);
/// The buffer that a view (loop.flatten, loop.part) shows, or the buffer itself.
mlir::Value skipViews(mlir::Value buffer);
/// The first and the last of the launches that run in one parallel loop with this one.
LaunchOp getFirstJoined(LaunchOp launch);
LaunchOp getLastJoined(LaunchOp launch);
/// An op with regions of launches: loop.if, loop.repeat.
bool isControlFlow(mlir::Operation *op);
/// Extents of the node's iteration domain.
llvm::SmallVector<Expr> getDomain(mlir::Operation *node);
void setDomain(mlir::Operation *node, llvm::ArrayRef<Expr> domain);

/// Rewrites every expression inside `root`: indices, conditions, index ops and the domains of nodes.
void mapExprs(mlir::Operation *root, llvm::function_ref<Expr(Expr)> map);
/// Rewrites those of a node that are not its domain.
void mapBodyExprs(mlir::Operation *node, llvm::function_ref<Expr(Expr)> map);
/// As mapExprs, by substituting symbols.
void substituteExprs(mlir::Operation *root, llvm::function_ref<Expr(llvm::StringRef)> map);

/// A symbol whose value the program learns while it runs.
struct BoundSymbol {
  std::string name;
  Expr atMost; // over the symbols of the entry; null: no bound is known
  mlir::Operation *binder;
};

/// What the symbols that ops of a program bind can be: in order, each once.
class BoundSymbols {
public:
  explicit BoundSymbols(ProgramOp program);
  llvm::ArrayRef<BoundSymbol> getAll() const { return symbols; }
  bool empty() const { return symbols.empty(); }
  const BoundSymbol *find(llvm::StringRef name) const;
  bool uses(Expr expr) const;
  /// The most that an expression can be, over the symbols of the entry alone; null where no bound is known. The
  /// expression itself if it uses none of these symbols.
  Expr getMost(Expr expr) const;

private:
  void collect(mlir::Operation *op);
  SymbolRanges ranges;
  llvm::SmallVector<BoundSymbol, 2> symbols;
  llvm::StringMap<size_t> places; // of `symbols`, by name
};

/// Buffers that the node (or everything inside `op`) loads from and stores to.
void collectAccesses(mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> &read,
                     llvm::SmallVectorImpl<mlir::Value> &written);

} // namespace ptc::loop

#endif // PTC_IR_LOOP_LOOP_H
