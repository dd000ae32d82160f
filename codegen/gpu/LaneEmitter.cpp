//===- LaneEmitter.cpp - one body at adjacent points ----------------------===//
#include "codegen/gpu/LaneEmitter.h"
#include "codegen/gpu/GpuEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

// Local buffers begin at multiples of 16 bytes, however many a thread takes of them.
static unsigned alignmentOf(int64_t bytes) { return unsigned(std::min<int64_t>(bytes, 16)); }

LaneEmitter::LaneEmitter(GpuEmitter &e, Operation *node, const codegen::EmissionPoint &first, int64_t dim,
                         int64_t lanes)
    : e(e), analysis(node, std::max<int64_t>(dim, 0)) {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    points.push_back(first);
    if (lane > 0)
      points.back().dims[size_t(dim)] = e.invariants.add(first.dims[size_t(dim)], e.constant(lane));
  }
  for (const codegen::EmissionPoint &point : points)
    bodies.emplace_back(e, point);
}

void LaneEmitter::emitOps(ArrayRef<Operation *> ops) {
  codegen::emitStoresLast(ops, [&](Operation *op) { emitOp(op); });
}

/// A load or store of what threads keep in registers; false for other ops.
bool LaneEmitter::emitKept(Operation *op) {
  auto load = dyn_cast<loop::LoadOp>(op);
  auto store = dyn_cast<loop::StoreOp>(op);
  Value buffer = load ? load.getBuffer() : store ? store.getBuffer() : Value();
  if (!buffer || !e.getKept(buffer, 0))
    return false;
  for (auto [lane, body] : llvm::enumerate(bodies))
    if (load)
      body.bind(load.getResult(), *e.getKept(buffer, int64_t(lane)));
    else
      *e.getKept(buffer, int64_t(lane)) = body.lookup(store.getValue());
  return true;
}

void LaneEmitter::emitOp(Operation *op) {
  if (emitKept(op))
    return;
  int64_t lanes = int64_t(bodies.size());
  if (auto load = dyn_cast<loop::LoadOp>(op);
      load && lanes > 1 &&
      analysis.isVector(Expr(cast<ExprAttr>(load.getIndices()[0])), load.getIndexOperands(), lanes))
    return emitLoad(load);
  if (auto store = dyn_cast<loop::StoreOp>(op);
      store && lanes > 1 && !store.getCombine() &&
      analysis.isVector(Expr(cast<ExprAttr>(store.getIndices()[0])), store.getIndexOperands(), lanes))
    return emitStore(store);
  for (codegen::BodyEmitter &body : bodies)
    body.emitOp(op);
}

Value LaneEmitter::vectorAddress(Value buffer, Expr index, ValueRange operands, Type elementType) {
  SmallVector<Value> at = llvm::map_to_vector(operands, [&](Value v) { return bodies.front().lookup(v); });
  return e.getAddress(e.getPointer(buffer), elementType, e.emitExpr(index, points.front(), at));
}

void LaneEmitter::emitLoad(loop::LoadOp op) {
  int64_t lanes = int64_t(bodies.size());
  Type memory = e.getMemoryType(op.getType());
  Value address =
      vectorAddress(op.getBuffer(), Expr(cast<ExprAttr>(op.getIndices()[0])), op.getIndexOperands(), op.getType());
  unsigned alignment = alignmentOf(lanes * loop::getElementBytes(op.getType()));
  Value vector = LLVM::LoadOp::create(e.builder, e.loc, VectorType::get({lanes}, memory), address, alignment);
  for (auto [lane, body] : llvm::enumerate(bodies)) {
    Value element = LLVM::ExtractElementOp::create(e.builder, e.loc, vector, e.constant(int64_t(lane)));
    body.bind(op.getResult(), e.fromMemory(element, op.getType()));
  }
}

void LaneEmitter::emitStore(loop::StoreOp op) {
  int64_t lanes = int64_t(bodies.size());
  Type type = op.getValue().getType();
  Value vector = LLVM::PoisonOp::create(e.builder, e.loc, VectorType::get({lanes}, e.getMemoryType(type)));
  for (auto [lane, body] : llvm::enumerate(bodies))
    vector = LLVM::InsertElementOp::create(e.builder, e.loc, vector, e.toMemory(body.lookup(op.getValue())),
                                           e.constant(int64_t(lane)));
  Value address = vectorAddress(op.getBuffer(), Expr(cast<ExprAttr>(op.getIndices()[0])), op.getIndexOperands(), type);
  LLVM::StoreOp::create(e.builder, e.loc, vector, address, alignmentOf(lanes * loop::getElementBytes(type)));
}
