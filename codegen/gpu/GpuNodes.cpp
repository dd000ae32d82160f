//===- GpuNodes.cpp - pointwise, scatter, reduction and scan nodes --------===//
//
// A node is emitted at one point of the spread dims, for the threads of a row; in the layout `points` a row is one
// thread, and every loop over a team becomes a plain loop.
//
// A reduction, and a scan, has three ways, by what is left of its kept dims and by how memory runs:
//
//   no kept dim left       all threads of the row share it
//   reduced dim contiguous one warp for each point of the kept dims
//   otherwise              one thread for each point: neighbours read neighbours
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ScanLoop.h"
#include "codegen/gpu/GpuTemplates.h"
#include "codegen/gpu/RowBuffers.h"
#include "codegen/gpu/TeamScan.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using codegen::BodyEmitter;
using codegen::BodyParts;

static constexpr int64_t unrolledWindow = 32; // windows of pooling: conditions and addresses become constants

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

// Groups of lanes: whole ones together, the last elements of an extent one by one.
SmallVector<Value> NodeEmitter::withTail(const EmissionPoint &point, int64_t dim, int64_t lanes, ValueRange carried,
                                         PointBody body) {
  if (lanes == 1)
    return body(point, 1, carried);
  Expr extent = domain[size_t(dim)];
  if (extent.range(SymbolRanges()).divisor % lanes == 0)
    return body(point, lanes, carried);
  Value first = point.dims[size_t(dim)], end = e.emitExpr(extent, point);
  Value isWhole = e.invariants.compare(arith::CmpIPredicate::sle, e.invariants.add(first, e.constant(lanes)), end);
  SmallVector<Value> values = e.createIf(isWhole, carried, [&] { return body(point, lanes, carried); });
  // Behind a whole group the loop starts at its end.
  Value from = e.invariants.select(isWhole, end, first);
  return e.createLoop(from, end, 1, values, [&](Value iv, ValueRange in) {
    EmissionPoint at = point;
    at.dims[size_t(dim)] = iv;
    return body(at, 1, in);
  });
}

SmallVector<Value> NodeEmitter::forSerialPoints(const EmissionPoint &point, int64_t from, int64_t to,
                                                ValueRange carried, PointBody body) {
  if (from == to)
    return body(point, 1, carried);
  int64_t points = 1;
  for (int64_t dim = from; dim < to; ++dim)
    points *= std::clamp<int64_t>(domain[size_t(dim)].asConstant().value_or(unrolledWindow + 1), 1, unrolledWindow + 1);
  Value extent = e.emitExpr(domain[size_t(from)], point);
  auto inner = [&](Value iv, ValueRange in) {
    EmissionPoint at = point;
    at.dims[size_t(from)] = iv;
    return forSerialPoints(at, from + 1, to, in, body);
  };
  if (points > unrolledWindow)
    return e.createLoop(e.constant(0), extent, 1, carried, inner);
  SmallVector<Value> values(carried);
  for (int64_t i = 0; i < *e.invariants.asConstant(extent); ++i)
    values = inner(e.constant(i), values);
  return values;
}

SmallVector<Value> NodeEmitter::forPoints(const Team &team, const EmissionPoint &point, int64_t from, int64_t to,
                                          int64_t lanes, ValueRange carried, PointBody body) {
  if (team.size == 1)
    return forSerialPoints(point, from, to, carried, body);
  SmallVector<Value> sizes;
  Value count = e.constant(1);
  for (int64_t dim = from; dim < to; ++dim) {
    Expr extent = domain[size_t(dim)];
    sizes.push_back(e.emitExpr(dim == to - 1 ? extent.ceilDiv(lanes) : extent, point));
    count = e.invariants.mul(count, sizes.back());
  }
  return e.createStrided(team, count, carried, [&](Value number, ValueRange in) {
    EmissionPoint at = point;
    for (auto [index, digit] : llvm::enumerate(e.createDigits(number, sizes)))
      at.dims[size_t(from) + index] = digit;
    if (lanes > 1)
      at.dims[size_t(to - 1)] = e.invariants.mul(at.dims[size_t(to - 1)], e.constant(lanes));
    return withTail(at, to - 1, lanes, in, body);
  });
}

void NodeEmitter::forRows(const EmissionPoint &point, int64_t from,
                          llvm::function_ref<void(const EmissionPoint &)> body) {
  if (from + 1 == int64_t(domain.size()))
    return body(point);
  e.createLoop(e.constant(0), e.emitExpr(domain[size_t(from)], point), 1, {}, [&](Value iv, ValueRange) {
    EmissionPoint at = point;
    at.dims[size_t(from)] = iv;
    forRows(at, from + 1, body);
    return SmallVector<Value>();
  });
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void NodeEmitter::emit(const EmissionPoint &spreadPoint, int64_t spreadLanes) {
  EmissionPoint point = spreadPoint;
  int64_t rank = int64_t(domain.size());
  point.dims.resize(size_t(rank));
  if (auto reduction = dyn_cast<loop::ReductionOp>(node))
    return emitReduction(reduction, point);
  if (auto scan = dyn_cast<loop::ScanOp>(node))
    return emitScan(scan, point);
  if (auto sort = dyn_cast<loop::SortOp>(node))
    return forRows(point, spread, [&](const EmissionPoint &row) { emitSortRow(e, sort, row, domain.back()); });
  if (auto greedy = dyn_cast<loop::GreedyOp>(node))
    return forRows(point, spread, [&](const EmissionPoint &row) { emitGreedyRow(e, greedy, row, domain.back()); });
  if (auto attention = dyn_cast<loop::AttentionOp>(node))
    return emitAttention(e, attention, point);
  if (auto scatter = dyn_cast<loop::ScatterOp>(node))
    return emitScatter(scatter, point);
  assert(isa<loop::PointwiseOp>(node) && "whyUnsupported knows what there is");
  SmallVector<Operation *> ops;
  for (Operation &op : node->getRegion(0).front())
    ops.push_back(&op);
  auto body = [&](const EmissionPoint &at, int64_t lanes, ValueRange) {
    LaneEmitter(e, node, at, rank - 1, lanes).emitOps(ops);
    return SmallVector<Value>();
  };
  if (spreadLanes > 1) {
    withTail(point, rank - 1, spreadLanes, {}, body);
    return;
  }
  int64_t lanes = e.row.size > 1 && rank > spread ? lanesOfRow(node) : 1;
  forPoints(e.row, point, spread, rank, lanes, {}, body);
}

// Points that may meet are one thread's, in order.
void NodeEmitter::emitScatter(loop::ScatterOp op, const EmissionPoint &point) {
  int64_t rank = int64_t(domain.size()), independent = std::max(int64_t(op.getIndependent()), spread);
  auto rest = [&](const EmissionPoint &at) {
    forSerialPoints(at, independent, rank, {}, [&](const EmissionPoint &here, int64_t, ValueRange) {
      BodyEmitter body(e, here);
      SmallVector<Operation *> ops;
      for (Operation &inner : op.getBody().front())
        ops.push_back(&inner);
      body.emitOps(ops);
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  };
  if (independent > spread || e.row.size == 1) {
    forPoints(e.row, point, spread, independent, 1, {},
              [&](const EmissionPoint &at, int64_t, ValueRange) { return rest(at); });
    return;
  }
  e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, e.row.rank, e.constant(0)), {},
             [&] { return rest(point); });
}

// An index that loses against every element's, where the values are equal.
static int64_t worstIndex(loop::ArgReduceOp arg) {
  return arg.getSelectLast() ? -1 : std::numeric_limits<int64_t>::max();
}

void NodeEmitter::reduce(loop::ReductionOp op, const BodyParts &parts, const Team &team, const EmissionPoint &point) {
  int64_t rank = int64_t(domain.size()), kept = rank - int64_t(op.getReduced());
  int64_t lanes = team.size > 1 && kept < rank ? lanesOfRow(node) : 1;
  size_t slots = codegen::slotsOf(parts);
  SmallVector<Value> values; // lane by lane
  for (int64_t lane = 0; lane < lanes; ++lane)
    for (Operation *reduction : parts.reductions) {
      values.push_back(e.invariants.constant(codegen::identityOf(reduction)));
      if (auto arg = dyn_cast<loop::ArgReduceOp>(reduction))
        values.push_back(e.constant(worstIndex(arg)));
    }
  auto step = [&](const EmissionPoint &at, int64_t taken, ValueRange carried) {
    SmallVector<Value> next(carried);
    LaneEmitter group(e, node, at, rank - 1, taken);
    group.emitOps(parts.before);
    size_t slot = 0;
    for (size_t lane = 0; lane < group.size(); ++lane)
      for (Operation *reduction : parts.reductions) {
        SmallVector<Value> element = {group.getBody(lane).lookup(reduction->getOperand(0))};
        if (isa<loop::ArgReduceOp>(reduction))
          element.push_back(group.getPoint(lane).dims[size_t(kept)]);
        size_t count = codegen::slotsOf(reduction);
        SmallVector<Value> before(ArrayRef(next).slice(slot, count));
        llvm::copy(codegen::mergeSlots(e, reduction, element, before), next.begin() + slot);
        slot += count;
      }
    return next;
  };
  values = forPoints(team, point, kept, rank, lanes, values, step);

  BodyEmitter body(e, point);
  size_t slot = 0;
  for (Operation *reduction : parts.reductions) {
    size_t count = codegen::slotsOf(reduction);
    auto ofLane = [&](int64_t lane) {
      return SmallVector<Value>(ArrayRef(values).slice(size_t(lane) * slots + slot, count));
    };
    SmallVector<SmallVector<Value>> ends;
    for (int64_t lane = 0; lane < lanes; ++lane)
      ends.push_back(ofLane(lane));
    for (size_t distance = ends.size() / 2; distance > 0; distance /= 2)
      for (size_t lane = 0; lane < distance; ++lane)
        ends[lane] = codegen::mergeSlots(e, reduction, ends[lane], ends[lane + distance]);
    body.bind(reduction->getResult(0), e.combine(team, reduction, ends[0]).back());
    slot += count;
  }
  if (team.size == 1)
    return body.emitOps(parts.after);
  // Row values are made by every thread; what goes to memory is one thread's.
  auto isRowStore = [&](Operation *op) {
    auto store = dyn_cast<loop::StoreOp>(op);
    auto local = store ? store.getBuffer().getDefiningOp<loop::BufferOp>() : loop::BufferOp();
    return local && isRowValue(local, e.config);
  };
  SmallVector<Operation *> ofAll, ofOne = parts.after;
  if (llvm::any_of(parts.after, isRowStore)) {
    auto middle = std::stable_partition(ofOne.begin(), ofOne.end(),
                                        [&](Operation *op) { return !isa<loop::StoreOp>(op) || isRowStore(op); });
    ofAll.assign(ofOne.begin(), middle);
    ofOne.erase(ofOne.begin(), middle);
    body.emitOps(ofAll);
  }
  if (ofOne.empty())
    return;
  e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, team.rank, e.constant(0)), {}, [&] {
    body.emitOps(ofOne);
    return SmallVector<Value>();
  });
}

// The row's warps as a team, and the thread's warp.
std::pair<Team, Team> NodeEmitter::warpsOfRow() {
  Value width = e.constant(warpSize);
  return {{e.invariants.floorDiv(e.row.rank, width, true), e.row.size / warpSize},
          {e.invariants.mod(e.row.rank, width, true), warpSize}};
}

void NodeEmitter::emitReduction(loop::ReductionOp op, const EmissionPoint &point) {
  BodyParts parts = codegen::splitBody(op.getBody().front());
  int64_t rank = int64_t(domain.size()), kept = rank - int64_t(op.getReduced());
  if (kept == spread)
    return reduce(op, parts, e.row, point);
  Team outer = e.row, inner{e.constant(0), 1};
  if (e.row.size > 1 && kept < rank && LaneAnalysis(node, rank - 1).anyContiguous())
    std::tie(outer, inner) = warpsOfRow();
  forPoints(outer, point, spread, kept, 1, {}, [&](const EmissionPoint &at, int64_t, ValueRange) {
    reduce(op, parts, inner, at);
    return SmallVector<Value>();
  });
}

// As reductions; a thread for each point where memory does not run along the scanned dim.
void NodeEmitter::emitScan(loop::ScanOp op, const EmissionPoint &point) {
  int64_t last = int64_t(domain.size()) - 1;
  bool isShared = e.row.size > 1 && mayShareLine(op);
  if (isShared && last == spread)
    return emitTeamScan(e, op, e.row, point);
  if (isShared && LaneAnalysis(node, last).anyContiguous()) {
    auto [warps, warp] = warpsOfRow();
    forPoints(warps, point, spread, last, 1, {}, [&](const EmissionPoint &at, int64_t, ValueRange) {
      emitTeamScan(e, op, warp, at);
      return SmallVector<Value>();
    });
    return;
  }
  forPoints(e.row, point, spread, last, 1, {}, [&](const EmissionPoint &at, int64_t, ValueRange) {
    codegen::emitScanLoop(e, op, at);
    return SmallVector<Value>();
  });
}
