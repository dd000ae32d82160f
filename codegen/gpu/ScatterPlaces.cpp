//===- ScatterPlaces.cpp - where a scatter's points write -----------------===//
#include "codegen/gpu/ScatterPlaces.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using codegen::BodyEmitter;

// The ops of the body that the values need, in order.
static SmallVector<Operation *> opsBehind(Block &body, ValueRange values) {
  llvm::DenseSet<Operation *> needed;
  for (Value value : values)
    needed.insert(value.getDefiningOp());
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::reverse(body)) {
    if (!needed.contains(&op))
      continue;
    ops.push_back(&op);
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == &body)
          needed.insert(def);
    });
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

static Expr placeOf(loop::StoreOp store) { return prim::getExprs(store.getIndices())[0]; }

// What told dims say and what indices say is all that the place is made of.
static bool isSum(Expr place, const loop::ToldDims &told, unsigned operands) {
  MLIRContext *context = place.getContext();
  Expr sum = Expr::constant(context, 0);
  for (auto [step, number] : told.dims)
    sum = sum + Expr::dim(context, number) * step;
  for (unsigned i = 0; i < operands; ++i) {
    Expr operand = Expr::operand(context, i);
    sum = sum + operand * place.coefficientOf(operand.getSymbol());
  }
  return sum == place;
}

ScatterPlaces::ScatterPlaces(loop::ScatterOp op, bool isFlat)
    : op(op), store(*op.getBody().getOps<loop::StoreOp>().begin()) {
  SmallVector<Expr> domain = loop::getDomain(op);
  std::optional<loop::ToldDims> found = isFlat ? std::nullopt : loop::findToldDims(op, store);
  if (found && isSum(placeOf(store), *found, store.getIndexOperands().size()))
    told = *found;
  for (loop::ToldDims::Dim dim : llvm::reverse(told.dims)) {
    toldDims.push_back(dim.number);
    toldPoints *= domain[dim.number].getValue();
  }
  for (unsigned dim = 0; dim < domain.size(); ++dim)
    if (!llvm::is_contained(toldDims, dim))
      updateDims.push_back(dim);
  Block &body = op.getBody().front();
  indexOps = opsBehind(body, store.getIndexOperands());
  valueOps = opsBehind(body, store.getValue());
  for (unsigned dim : toldDims)
    for (Operation *each : indexOps)
      isUniform &= !loop::usesDim(each, dimName(dim));
}

Expr ScatterPlaces::countUpdates() const {
  SmallVector<Expr> domain = loop::getDomain(op), extents;
  for (unsigned dim : updateDims)
    extents.push_back(domain[dim]);
  return product(loop::ScatterOp(op).getContext(), extents);
}

std::optional<Expr> ScatterPlaces::countQuotients() const {
  Expr elements = cast<loop::BufferType>(loop::StoreOp(store).getBuffer().getType()).getElementCount();
  if (elements.isConstant(0)) // which is how the type says that it is not known
    return std::nullopt;
  return elements.ceilDiv(told.reach);
}

bool gpu::hasPlaces(loop::ScatterOp op) {
  int64_t stores = 0;
  Value target;
  op.getBody().walk([&](loop::StoreOp store) {
    ++stores;
    target = store.getBuffer();
  });
  bool readsTarget = op.getBody()
                         .walk([&](loop::LoadOp load) {
                           return load.getBuffer() == target ? WalkResult::interrupt() : WalkResult::advance();
                         })
                         .wasInterrupted();
  return stores == 1 && !op.getBody().getOps<loop::StoreOp>().empty() && !readsTarget && op.getIndependent() == 0;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

PlaceEmitter::PlaceEmitter(GpuEmitter &e, const ScatterPlaces &places) : e(e), places(places) {
  SmallVector<Expr> domain = loop::getDomain(places.op);
  rank = unsigned(domain.size());
  for (unsigned dim : places.toldDims)
    toldSizes.push_back(e.emitExpr(domain[dim], {}));
  updates = e.constant(1);
  for (unsigned dim : places.updateDims) {
    updateSizes.push_back(e.emitExpr(domain[dim], {}));
    updates = e.invariants.mul(updates, updateSizes.back());
  }
}

EmissionPoint PlaceEmitter::pointAt(Value toldPoint, Value update) {
  EmissionPoint point;
  point.dims.resize(rank);
  for (auto [dim, digit] : llvm::zip_equal(places.toldDims, e.createDigits(toldPoint, toldSizes)))
    point.dims[dim] = digit;
  for (auto [dim, digit] : llvm::zip_equal(places.updateDims, e.createDigits(update, updateSizes)))
    point.dims[dim] = digit;
  return point;
}

Value PlaceEmitter::quotientOf(Value toldPoint, Value update) {
  EmissionPoint point = pointAt(toldPoint, update);
  BodyEmitter body(e, point);
  body.emitOps(places.indexOps);
  loop::StoreOp store = places.store;
  SmallVector<Value> indices =
      llvm::map_to_vector(store.getIndexOperands(), [&](Value index) { return body.lookup(index); });
  for (unsigned dim : places.toldDims)
    point.dims[dim] = e.constant(0);
  Value place = e.emitExpr(placeOf(store), point, indices);
  return e.invariants.floorDiv(place, e.constant(places.told.reach), true);
}

Value PlaceEmitter::addressOf(Value toldPoint, Value quotient) {
  Value element = e.invariants.mul(quotient, e.constant(places.told.reach));
  SmallVector<Value> digits = e.createDigits(toldPoint, toldSizes);
  for (auto [dim, digit] : llvm::zip_equal(llvm::reverse(places.told.dims), digits))
    element = e.invariants.add(element, e.invariants.mul(digit, e.constant(dim.step)));
  loop::StoreOp store = places.store;
  return e.getAddress(e.getPointer(store.getBuffer()), store.getValue().getType(), element);
}

Value PlaceEmitter::valueOf(const EmissionPoint &point) {
  BodyEmitter body(e, point);
  body.emitOps(places.valueOps);
  return body.lookup(loop::StoreOp(places.store).getValue());
}

void PlaceEmitter::apply(const EmissionPoint &point) {
  SmallVector<Operation *> ops;
  for (Operation &inner : loop::ScatterOp(places.op).getBody().front())
    ops.push_back(&inner);
  BodyEmitter(e, point).emitOps(ops);
}
