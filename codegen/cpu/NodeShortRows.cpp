//===- NodeShortRows.cpp - pointwise nodes whose rows are part of a vector ===//
//
// A row of four elements fills a quarter of a vector, and a function (an exponential) takes as long for a part as for
// the whole. Where rows are gathered no longer vector can load them. So a step takes as many rows as fill a vector:
//
//   accesses, indices   row by row, a vector of the row's length each; where the rows follow each other in memory
//                       those of all rows at once
//   arithmetic          once for all rows, which stand side by side in one vector
//
// A value of the rows is joined where arithmetic meets it, and taken apart where a row stores it: a few shuffles in
// place of a function. A lane computes the same in either vector, so that it does not matter which rows are left over.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/NodeEmitter.h"
#include "ir/expr/DimName.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

namespace {
/// A pointwise body at several rows.
class ShortRows {
public:
  ShortRows(KernelEmitter &e, const Points &points, const EmissionPoint &joined, int64_t rowDim)
      : e(e), lanes(points.front().lanes), rowDim(rowDim), vectorDim(joined.vectorDim), whole(e, joined) {
    for (const EmissionPoint &point : points)
      rows.emplace_back(e, point);
  }
  void emit(Operation *op);

private:
  bool isWhole(Operation *op);
  bool areNeighbours(ArrayAttr indices, ValueRange operands);
  void join(Value value);
  void takeApart(Value value, size_t row);

  KernelEmitter &e;
  int64_t lanes; // of a row
  int64_t rowDim, vectorDim;
  SmallVector<BodyEmitter, 0> rows;
  BodyEmitter whole; // all rows
};
} // namespace

/// Element 0 of a row stands behind the last one of the row before.
bool ShortRows::areNeighbours(ArrayAttr indices, ValueRange operands) {
  Expr index = cast<ExprAttr>(indices[0]);
  Expr step = operands.empty() ? index.coefficientOf(dimName(vectorDim)) : Expr();
  Expr rowStep = step ? index.coefficientOf(dimName(rowDim)) : Expr();
  return rowStep && step.isConstant(1) && rowStep.isConstant(lanes);
}

/// Emitted once for all rows.
bool ShortRows::isWhole(Operation *op) {
  if (auto load = dyn_cast<loop::LoadOp>(op))
    return areNeighbours(load.getIndices(), load.getIndexOperands());
  if (auto store = dyn_cast<loop::StoreOp>(op))
    return areNeighbours(store.getIndices(), store.getIndexOperands());
  return op->hasTrait<OpTrait::Elementwise>() && llvm::any_of(op->getOperands(), [&](Value operand) {
           return whole.isBound(operand) || isVector(rows.front().lookup(operand));
         });
}

void ShortRows::join(Value value) {
  if (whole.isBound(value))
    return;
  SmallVector<Value> parts = llvm::map_to_vector(rows, [&](const BodyEmitter &row) { return row.lookup(value); });
  if (!isVector(parts.front()) && llvm::all_equal(parts))
    return whole.bind(value, parts.front());
  for (Value &part : parts)
    part = e.splat(part, lanes);
  for (int64_t width = lanes; parts.size() > 1; width *= 2) {
    auto order = llvm::to_vector(llvm::seq<int32_t>(0, int32_t(2 * width)));
    for (size_t i = 0; i < parts.size() / 2; ++i)
      parts[i] = LLVM::ShuffleVectorOp::create(e.builder, e.loc, parts[2 * i], parts[2 * i + 1], order);
    parts.truncate(parts.size() / 2);
  }
  whole.bind(value, parts.front());
}

void ShortRows::takeApart(Value value, size_t row) {
  if (rows[row].isBound(value))
    return;
  Value joined = whole.lookup(value);
  int32_t first = int32_t(int64_t(row) * lanes);
  auto order = llvm::to_vector(llvm::seq<int32_t>(first, first + int32_t(lanes)));
  rows[row].bind(value, LLVM::ShuffleVectorOp::create(e.builder, e.loc, joined, joined, order));
}

void ShortRows::emit(Operation *op) {
  llvm::SaveAndRestore place(e.loc, op->getLoc());
  auto values =
      llvm::make_filter_range(op->getOperands(), [](Value value) { return !isa<loop::BufferType>(value.getType()); });
  if (isWhole(op)) {
    for (Value value : values)
      join(value);
    return whole.emitOp(op);
  }
  for (auto [number, row] : llvm::enumerate(rows)) {
    for (Value value : values)
      takeApart(value, number);
    row.emitOp(op);
  }
}

int64_t cpu::chooseShortRows(KernelEmitter &e, Operation *node, int64_t vectorDim) {
  SmallVector<Expr> domain = loop::getDomain(node);
  std::optional<int64_t> extent = vectorDim == 1 ? domain[1].asConstant() : std::nullopt;
  if (!isa<loop::PointwiseOp>(node) || domain.size() != 2 || !extent || *extent < 2 ||
      !llvm::isPowerOf2_64(uint64_t(*extent)))
    return 1;
  bool hasFunction = false;
  WalkResult masks = node->walk([&](Operation *op) {
    hasFunction |= isFunction(op);
    return isa<loop::MaskedOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  int64_t lanes = e.chooseLanes(node) * (takesPairs(node, e.level) ? 2 : 1);
  return hasFunction && !masks.wasInterrupted() ? std::max<int64_t>(lanes / *extent, 1) : 1;
}

void cpu::emitShortRows(KernelEmitter &e, Operation *node, Value first, int64_t count) {
  SmallVector<Expr> domain = loop::getDomain(node);
  e.setDomain(domain);
  e.loc = node->getLoc();
  Points points;
  for (int64_t row = 0; row < count; ++row) {
    EmissionPoint point;
    point.dims = {e.invariants.add(first, e.constant(row)), e.constant(0)};
    point.vectorDim = 1;
    point.lanes = *domain[1].asConstant();
    points.push_back(point);
  }
  EmissionPoint joined = points.front();
  joined.lanes *= count;
  ShortRows rows(e, points, joined, 0);
  SmallVector<Operation *> ops = llvm::map_to_vector(node->getRegion(0).front(), [](Operation &op) { return &op; });
  codegen::emitStoresLast(ops, [&](Operation *op) { rows.emit(op); });
}
