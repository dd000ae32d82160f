//===- ChosenPoints.cpp - points in the order of what they choose ---------===//
//
// Points of a product may each read another matrix, told by a loaded index (a mixture of experts):
//
//   y[b, p, i] = sum over k of w[choice[p]][b, i, k] * x[p, k]
//
// A block b of rows i of all matrices waits in the second-level cache while the points run over it
// (schedule/BlockChosenRows.cpp). Points that have chosen the same one read it from the first-level cache if they
// follow each other. So the digit of the iterations that counts points counts places in their order by choice, which is
// as good a way to visit them: each result is computed as ever, and any range of iterations is that of another thread.
//
// Blocks of a matrix are short runs of memory, which the processor begins to fetch too late. Meanwhile each tile of
// rows fetches a share of the rows at its place in the next block of its matrix, neighbours in the order different
// ones: up to a quarter each. Where fewer points choose a matrix, the rest of its block is not fetched ahead.
//
// The order is a counting sort, stable, at the start of each range of iterations: some instructions for each point and
// each matrix, against hundreds for a point's block; ranges are long enough for it (CpuPlan.cpp). Its memory is the
// thread's scratch: the points in order, then where those of each matrix begin.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/ChosenPoints.h"
#include "codegen/cpu/RegisterTile.h"
#include "ir/expr/DimName.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t mostMatrices = 1024; // whose counts are cleared for each range of iterations
static constexpr int64_t placeBytes = 8;
static constexpr int64_t fetchedShares = 4;    // of a block: by so many points that choose its matrix
static constexpr int64_t fewestTerms = 8;      // that rows are whole multiples of: vectors fill them
static constexpr int64_t fewestProducts = 128; // of a point and its rows: less costs no more than the order

/// Adds the dims that tell the value, if it is computed of loads that no op of the node stores to.
static bool collectDims(Value value, llvm::DenseSet<unsigned> &dims) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions())
    return false;
  auto collect = [&](ArrayRef<Expr> exprs) {
    for (Expr expr : exprs)
      expr.usesAny([&](StringRef name) {
        if (std::optional<unsigned> dim = parseNumbered(name, 'd'))
          dims.insert(*dim);
        return false;
      });
  };
  if (auto load = dyn_cast<loop::LoadOp>(op)) {
    auto isOwn = [&](loop::StoreOp store) { return store.getBuffer() == load.getBuffer(); };
    if (llvm::any_of(op->getBlock()->getOps<loop::StoreOp>(), isOwn))
      return false;
    collect(prim::getExprs(load.getIndices()));
  } else if (auto index = dyn_cast<loop::IndexOp>(op)) {
    collect(index.getExpr());
  } else if (!isa<loop::CheckIndexOp>(op) && !isMemoryEffectFree(op)) {
    return false;
  }
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return isa<loop::BufferType>(operand.getType()) || collectDims(operand, dims);
  });
}

/// Whether the two are computed alike.
static bool areAlike(Value a, Value b) {
  if (a == b)
    return true;
  Operation *one = a.getDefiningOp(), *other = b.getDefiningOp();
  return one && other && one->getNumRegions() == 0 && one->getName() == other->getName() &&
         one->getAttrDictionary() == other->getAttrDictionary() && one->getNumOperands() == other->getNumOperands() &&
         llvm::all_of(llvm::zip(one->getOperands(), other->getOperands()),
                      [](auto pair) { return areAlike(std::get<0>(pair), std::get<1>(pair)); });
}

/// What all loads of the rows along dim `row` that take an index take; null: there are none, or they differ.
static loop::CheckIndexOp findChoice(loop::ReductionOp product, int64_t row) {
  loop::CheckIndexOp choice;
  WalkResult result = product.walk([&](loop::LoadOp load) {
    if (load.getIndexOperands().empty() || !Expr(cast<ExprAttr>(load.getIndices()[0])).uses(dimName(row)))
      return WalkResult::advance();
    auto own = load.getIndexOperands()[0].getDefiningOp<loop::CheckIndexOp>();
    if (!own || own->getParentOp() != product || load.getIndexOperands().size() != 1 ||
        (choice && !areAlike(choice.getResult(), own.getResult())))
      return WalkResult::interrupt();
    choice = choice ? choice : own;
    return WalkResult::advance();
  });
  return result.wasInterrupted() ? loop::CheckIndexOp() : choice;
}

std::optional<ChosenPoints> cpu::findChosenPoints(loop::ReductionOp product) {
  SmallVector<Expr> domain = loop::getDomain(product);
  int64_t row = int64_t(domain.size() - product.getReduced()) - 1;
  if (product.getReduced() != 1 || row < 1 ||
      !llvm::none_of(product.getBody().front(), llvm::IsaPred<loop::ArgReduceOp>))
    return std::nullopt;
  auto rows = domain[size_t(row)].asConstant(), terms = domain.back().asConstant();
  loop::CheckIndexOp choice = findChoice(product, row);
  llvm::DenseSet<unsigned> dims;
  if (!rows || *rows < 2 || *rows % 2 || !terms || *terms < fewestTerms || *terms % fewestTerms ||
      *rows * *terms < fewestProducts || !choice || !collectDims(choice.getResult(), dims) || dims.size() != 1)
    return std::nullopt;
  int64_t dim = *dims.begin();
  auto matrices = Expr(choice.getExtent()).asConstant();
  if (dim == 0 || dim >= row || !matrices || *matrices < 1 || *matrices > mostMatrices)
    return std::nullopt;
  return ChosenPoints{dim, choice, *matrices};
}

//===----------------------------------------------------------------------===//
// The order
//===----------------------------------------------------------------------===//

Expr ChosenPoints::getBytes(ArrayRef<Expr> domain) const { return (domain[size_t(dim)] + (matrices + 1)) * placeBytes; }

static Value placeAt(KernelEmitter &e, Value memory, Value number) {
  return e.getAddress(memory, e.builder.getI64Type(), number);
}

Value cpu::loadInOrder(KernelEmitter &e, Value memory, Value place) {
  return e.createLoad(e.builder.getI64Type(), 1, placeAt(e, memory, place));
}

/// The op behind what it is computed of.
static void emitWithOperands(BodyEmitter &body, Operation *op) {
  if (!op || body.isBound(op->getResult(0)))
    return;
  for (Value operand : op->getOperands())
    emitWithOperands(body, operand.getDefiningOp());
  body.emitOp(op);
}

static Value emitChoice(KernelEmitter &e, const ChosenPoints &points, size_t rank, Value number) {
  EmissionPoint point;
  point.dims.resize(rank);
  point.dims[size_t(points.dim)] = number;
  BodyEmitter body(e, point);
  emitWithOperands(body, points.getChoice().getDefiningOp());
  return body.lookup(points.getChoice());
}

void cpu::emitOrder(KernelEmitter &e, const ChosenPoints &points, ArrayRef<Expr> domain, Value memory) {
  Value zero = e.constant(0), count = e.emitExpr(domain[size_t(points.dim)], {});
  Value begins = placeAt(e, memory, count); // of each matrix, the number of points that have chosen one before it
  auto increment = [&](Value number) {
    Value old = loadInOrder(e, begins, number);
    e.createStore(arith::AddIOp::create(e.builder, e.loc, old, e.constant(1)), placeAt(e, begins, number));
    return old;
  };
  auto forEachChoice = [&](llvm::function_ref<void(Value number, Value choice)> body) {
    e.forEach(zero, count, 1, [&](Value number) { body(number, emitChoice(e, points, domain.size(), number)); });
  };
  e.forEach(zero, e.constant(points.matrices + 1), 1,
            [&](Value number) { e.createStore(zero, placeAt(e, begins, number)); });
  forEachChoice([&](Value, Value choice) { increment(e.invariants.add(choice, e.constant(1))); });
  e.createLoop(e.constant(1), e.constant(points.matrices), 1, {zero}, [&](Value number, ValueRange before) {
    Value own = loadInOrder(e, begins, number);
    Value sum = arith::AddIOp::create(e.builder, e.loc, before[0], own);
    e.createStore(sum, placeAt(e, begins, number));
    return SmallVector<Value>{sum};
  });
  forEachChoice([&](Value number, Value choice) { e.createStore(number, placeAt(e, memory, increment(choice))); });
}

/// Visits the loads of the matrix's rows.
static void forEachRowLoad(loop::ReductionOp product, int64_t row, llvm::function_ref<void(loop::LoadOp, Expr)> visit) {
  for (auto load : product.getBody().front().getOps<loop::LoadOp>()) {
    Expr index = cast<ExprAttr>(load.getIndices()[0]);
    if (!load.getIndexOperands().empty() && index.uses(dimName(row)))
      visit(load, index);
  }
}

bool cpu::hasNextBlock(loop::ReductionOp product, const ChosenPoints &points) {
  SmallVector<Expr> domain = loop::getDomain(product);
  int64_t row = int64_t(domain.size()) - 2;
  bool follow = true;
  forEachRowLoad(product, row, [&](loop::LoadOp, Expr index) {
    Expr ofRow = index.coefficientOf(dimName(row)), ofBlock = index.coefficientOf(dimName(points.dim - 1));
    follow &= ofRow && ofBlock && ofBlock == ofRow * domain[size_t(row)];
  });
  return follow;
}

void cpu::fetchNextBlock(KernelEmitter &e, loop::ReductionOp product, const ChosenPoints &points, EmissionPoint at,
                         int64_t rows, Value matrix, Value place) {
  InvariantBuilder &in = e.invariants;
  int64_t row = int64_t(loop::getDomain(product).size()) - 2, shares = std::gcd(rows, fetchedShares);
  Value &block = at.dims[size_t(points.dim - 1)], &first = at.dims[size_t(row)];
  block = in.add(block, e.constant(1));
  first = in.add(first, in.mul(in.mod(place, e.constant(shares), true), e.constant(rows / shares)));
  int64_t offset = at.offsets[size_t(row)];
  forEachRowLoad(product, row, [&](loop::LoadOp load, Expr index) {
    for (int64_t number = 0; number < rows / shares; ++number) {
      at.offsets[size_t(row)] = offset + number;
      createPrefetch(e, e.getAddress(e.getPointer(load.getBuffer()), load.getType(), e.emitExpr(index, at, matrix)));
    }
  });
}
