//===- NodeColumns.cpp - sums of columns of a large matrix ----------------===//
//
// Sums of columns take as many vectors of columns at once as registers hold, and read 1 KB of each row. Where rows come
// from the third-level cache or from memory, processors fetch ahead best what is read in turn. So a few rows are added
// over all columns, whose sums wait in the first-level cache meanwhile:
//
//   for each block of 64 rows            as other long sums are blocked (NodeReduction.cpp)
//     for each 4 rows of it
//       for each 2 vectors of columns    partial += the 4 rows
//     total += partial; partial = 0
//
// A product of one row by a computed matrix of 4 MB takes 0.75 of the time. While the second-level cache holds the
// matrix the sums cost more than they bring.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ReductionSteps.h"
#include "codegen/cpu/NodeEmitter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;
using codegen::BodyParts;
using codegen::InvariantBuilder;

static constexpr int64_t farBytes = 2 << 20; // which a core's second-level cache holds at most
static constexpr int64_t streamedRow = 512;  // columns from which rows are streams
static constexpr int64_t fewestRows = 512;   // all long sums of so many are blocked: cuts of the columns change no bit
static constexpr int64_t rowsInTurn = 4;     // for which a sum is loaded and stored once
static constexpr int64_t vectorsInTurn = 2;  // whose additions do not wait for each other
static constexpr int64_t columnsInTurn = 1024; // whose sums take 8 KB of the stack
static constexpr size_t longestElement = 8;    // operations for an element

bool cpu::readsRowsInTurn(loop::ReductionOp op) {
  SmallVector<Expr> domain = loop::getDomain(op);
  BodyParts parts = codegen::splitBody(op.getBody().front());
  auto sum = parts.reductions.size() == 1 ? dyn_cast<loop::ReduceOp>(parts.reductions[0]) : loop::ReduceOp();
  if (domain.size() != 2 || op.getReduced() != 1 || !sum || sum.getKind() != prim::ReduceKind::Sum ||
      !sum.getType().isF32() || parts.before.size() > longestElement)
    return false;
  std::optional<int64_t> columns = domain[0].asConstant(), rows = domain[1].asConstant();
  if (!columns || !rows || *columns < streamedRow || *rows < fewestRows)
    return false;
  return llvm::any_of(parts.before, [&](Operation *before) {
    auto load = dyn_cast<loop::LoadOp>(before);
    if (!load || !load.getIndexOperands().empty())
      return false;
    Expr index = cast<ExprAttr>(load.getIndices()[0]), along = index.coefficientOf("d0"),
         down = index.coefficientOf("d1");
    return along && along.isConstant(1) && down && down.asConstant().value_or(0) >= *columns &&
           *columns * loop::getElementBytes(load.getType()) >= farBytes / *rows;
  });
}

namespace {

/// The columns [first, end), at most `columnsInTurn`.
class ColumnSums {
public:
  ColumnSums(KernelEmitter &e, loop::ReductionOp op)
      : e(e), op(op), domain(loop::getDomain(op)), parts(codegen::splitBody(op.getBody().front())),
        sum(cast<loop::ReduceOp>(parts.reductions.front())), partial(e.createStackSlot(columnsInTurn * 4)),
        total(e.createStackSlot(columnsInTurn * 4)) {
    e.setDomain(domain);
  }

  void emit(Value first, Value end);

private:
  void forColumns(llvm::function_ref<void(const EmissionPoint &)> body);
  void forVectors(llvm::function_ref<void(const Points &)> body);
  Value load(Value sums, const EmissionPoint &point);
  void store(Value value, Value sums, const EmissionPoint &point);
  void clear(Value sums, const EmissionPoint &point);
  void addRows(Value row, int64_t count);
  void addBlock(Value from, Value to);

  KernelEmitter &e;
  loop::ReductionOp op;
  SmallVector<Expr> domain;
  BodyParts parts;
  loop::ReduceOp sum;
  Value partial, total, first, end;
};

} // namespace

void ColumnSums::forVectors(llvm::function_ref<void(const Points &)> body) {
  EmissionPoint point;
  point.dims.resize(1);
  emitVectorLoop(e, point, 0, first, end, cpu::chooseLanes(e, op, domain[0]), vectorsInTurn, hasMasks(op, e.level), {},
                 [&](const Points &points, ValueRange) {
                   body(points);
                   return SmallVector<Value>();
                 });
}

void ColumnSums::forColumns(llvm::function_ref<void(const EmissionPoint &)> body) {
  forVectors([&](const Points &points) { llvm::for_each(points, body); });
}

// Sums stand in whole vectors, of which a mask hides lanes that there are not.
Value ColumnSums::load(Value sums, const EmissionPoint &point) {
  Value address = e.getAddress(sums, sum.getType(), e.invariants.sub(point.dims[0], first));
  return e.createLoad(sum.getType(), point.lanes, address);
}

void ColumnSums::store(Value value, Value sums, const EmissionPoint &point) {
  Value address = e.getAddress(sums, sum.getType(), e.invariants.sub(point.dims[0], first));
  e.createStore(value, address);
}

void ColumnSums::clear(Value sums, const EmissionPoint &point) {
  store(e.splat(e.invariants.constant(codegen::identityOf(sum)), point.lanes), sums, point);
}

void ColumnSums::addRows(Value row, int64_t count) {
  forVectors([&](const Points &points) {
    SmallVector<Value> sums;
    for (const EmissionPoint &point : points)
      sums.push_back(load(partial, point));
    for (int64_t next = 0; next < count; ++next)
      for (auto [point, value] : llvm::zip_equal(points, sums)) {
        EmissionPoint inside = point;
        inside.dims.resize(2);
        inside.dims[1] = e.invariants.add(row, e.constant(next));
        BodyEmitter body(e, inside);
        body.emitOps(parts.before);
        Value term = e.splat(body.lookup(sum.getValue()), point.lanes);
        value = codegen::emitCombine(e, sum.getKind(), term, value);
      }
    for (auto [point, value] : llvm::zip_equal(points, sums))
      store(value, partial, point);
  });
}

void ColumnSums::addBlock(Value from, Value to) {
  auto rows = [&](Value from, Value to, int64_t count) {
    e.createLoop(from, to, count, {}, [&](Value row, ValueRange) {
      addRows(row, count);
      return SmallVector<Value>();
    });
  };
  InvariantBuilder &in = e.invariants;
  Value whole = in.sub(to, in.mod(in.sub(to, from), e.constant(rowsInTurn), true));
  rows(from, whole, rowsInTurn);
  rows(whole, to, 1);
  forColumns([&](const EmissionPoint &point) {
    store(codegen::emitCombine(e, sum.getKind(), load(partial, point), load(total, point)), total, point);
    clear(partial, point);
  });
}

void ColumnSums::emit(Value from, Value to) {
  InvariantBuilder &in = e.invariants;
  first = from;
  end = to;
  forColumns([&](const EmissionPoint &point) {
    clear(partial, point);
    clear(total, point);
  });
  Value rows = e.emitExpr(domain[1], {});
  e.createLoop(e.constant(0), rows, blockSteps, {}, [&](Value block, ValueRange) {
    addBlock(block, in.min(in.add(block, e.constant(blockSteps)), rows));
    return SmallVector<Value>();
  });
  forColumns([&](const EmissionPoint &point) {
    BodyEmitter body(e, point);
    body.bind(sum, load(total, point));
    body.emitOps(parts.after);
  });
}

void cpu::emitRowsInTurn(KernelEmitter &e, loop::ReductionOp op, Value from, Value to,
                         llvm::function_ref<void()> byColumns) {
  InvariantBuilder &in = e.invariants;
  Value isWide = in.compare(arith::CmpIPredicate::sge, in.sub(to, from), e.constant(streamedRow));
  auto choice = scf::IfOp::create(e.builder, e.loc, isWide, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(e.builder);
  e.builder.setInsertionPointToStart(choice.elseBlock());
  byColumns();
  e.builder.setInsertionPointToStart(choice.thenBlock());
  ColumnSums sums(e, op);
  e.createLoop(from, to, columnsInTurn, {}, [&](Value first, ValueRange) {
    sums.emit(first, in.min(in.add(first, e.constant(columnsInTurn)), to));
    return SmallVector<Value>();
  });
}
