//===- SumInStages.cpp - sums across rows, block by block of them ---------===//
//
// A sum may lie across memory and keep the columns of its rows apart, or groups of them: those of a group norm, with
// channels innermost, are 8 elements of each of 9216 rows of 256. Group by group, half a cache line of each row is
// read, 32 times over; column by column, a few lines of each row, which lie pages apart. Such a sum is taken in two
// stages, for CPUs:
//
//   parts[block, column]  =  sum of column, over the rows of a block     whole rows, in the order of memory
//   sum[group]            =  sum of parts, over blocks and the group's columns
//
// Blocks are independent: threads share them. Where the parts are many still, the second stage is taken in stages, too.
//
// Refused: runs of several vectors inside a row, which are read at the same speed (measured: 40 elements with AVX-512),
// rows of few columns, which are read whole anyway, near rows of which two sums run in one loop (a softmax's), and
// little work, for which one kernel more costs more; sums over windows. Rows of a number of which no part is known (and
// that is no product of sizes) stay as they are.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MergeNodes.h"
#include "compiler/schedule/PartialSums.h"
#include "compiler/schedule/Passes.h"
#include "compiler/schedule/RecomputeNodes.h"
#include "ir/expr/DimName.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_SUMINSTAGES
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

static constexpr int64_t longRun = 40;        // elements of a row that one sum reads
static constexpr int64_t leastWork = 1 << 13; // elements: their sum takes as long as a few launches
// Where columns are kept apart: elements of a row, and in all (what the second-level cache holds is read as fast in any
// order).
static constexpr int64_t longRow = 256, leastColumnWork = 1 << 18;
static constexpr int64_t pageBytes = 4096; // rows further apart take an entry of the TLB each, again for each column
// Rows of a block (measured from 8 to 1024, 256 to 1024 columns of f32: 32 and 64 are the fastest, by little), and
// those that will do.
static constexpr int64_t blockRows = 32, fewestRows = 8, mostRows = 256;

namespace {

struct Blocks {
  Expr count, rows; // of a block
};

/// The dims of a sum that lies across rows, and these in blocks.
struct RowSum {
  unsigned group;                 // the last kept dim: groups of columns, or columns
  unsigned row;                   // the first reduced dim
  std::optional<unsigned> column; // the last reduced dim: columns of a group
  int64_t run;                    // columns of a group
  Blocks blocks;
  bool onPages; // of its own, each row
};

/// The rows as blocks of so many, the divisor next to what a block should have; of a product of sizes that one of them
/// (which may be 0: then there are no rows). Nothing where none will do.
std::optional<Blocks> chooseBlocks(Expr rows, const SymbolValues &hints) {
  std::optional<Blocks> best;
  int64_t distance = mostRows;
  auto consider = [&](Blocks blocks) {
    int64_t size = blocks.rows.evaluate(hints).value_or(0);
    bool isOne = blocks.count.evaluate(hints).value_or(1) < 2;
    if (isOne || size < fewestRows || size > mostRows || std::abs(size - blockRows) >= distance)
      return;
    best = blocks;
    distance = std::abs(size - blockRows);
  };
  MLIRContext *context = rows.getContext();
  if (auto count = rows.asConstant()) {
    for (int64_t size = fewestRows; size <= mostRows; ++size)
      if (*count % size == 0)
        consider({Expr::constant(context, *count / size), Expr::constant(context, size)});
  } else if (rows.getKind() == ExprKind::Mul) {
    SmallVector<Expr> factors(rows.getOperands());
    for (unsigned number = 0; number < factors.size(); ++number) {
      SmallVector<Expr> others = factors;
      others.erase(others.begin() + number);
      consider({product(context, others), factors[number]});
    }
  }
  return best;
}

std::optional<RowSum> findRows(ReductionOp sum, const SymbolValues &hints) {
  SmallVector<Expr> domain = getDomain(sum);
  unsigned kept = getKeptCount(sum), rank = unsigned(domain.size());
  std::optional<Blocks> blocks = kept < rank ? chooseBlocks(domain[kept], hints) : std::nullopt;
  if (kept == 0 || !blocks || !canSumParts(sum))
    return std::nullopt;
  RowSum rows{.group = kept - 1, .row = kept, .column = {}, .run = 1, .blocks = *blocks, .onPages = false};
  int64_t elements = product(sum.getContext(), domain).evaluate(hints).value_or(0);
  int64_t groups = domain[rows.group].evaluate(hints).value_or(0);
  std::optional<RowSum> found;
  bool areWindows = false;
  sum.walk([&](LoadOp load) {
    Expr position = getAddress(load);
    auto step = [&](unsigned dim) {
      Expr each = position.coefficientOf(dimName(dim));
      return each ? each.evaluate(hints).value_or(0) : 0;
    };
    int64_t apart = step(rows.row), all = apart * domain[rows.row].evaluate(hints).value_or(0);
    if (isIndirect(load) || apart == 0)
      return;
    if (rank - kept > 1 && step(rank - 1) == 1) {
      rows.column = rank - 1;
      rows.run = domain[rank - 1].asConstant().value_or(longRun);
    }
    // What neighbours along a dim read is the same (a window's weights), or some of it is (windows that overlap).
    for (unsigned dim = 0; dim < rank; ++dim) {
      bool isInner = dim > rows.row && dim != rows.column;
      bool isShared = dim < kept ? step(dim) == 0 || (step(dim) >= apart && step(dim) < all)
                                 : isInner && step(dim) < groups * rows.run;
      areWindows |= !domain[dim].isConstant(1) && isShared;
    }
    bool pays =
        rows.column ? rows.run < longRun && elements >= leastWork : groups >= longRow && elements >= leastColumnWork;
    rows.onPages = apart * cast<BufferType>(load.getBuffer().getType()).getElementBytes() >= pageBytes;
    if (pays && step(rows.group) == rows.run && apart >= groups * rows.run)
      found = rows;
  });
  return areWindows ? std::nullopt : found;
}

/// Whether a sum of what is read, or what is computed of it for another sum, is one that the other runs beside: column
/// by column what both read is in the second-level cache still.
bool sharesColumns(ReductionOp sum, const SymbolValues &hints) {
  auto isRead = [](Value buffer) {
    return llvm::any_of(buffer.getUsers(),
                        [](Operation *user) { return isa<LoadOp>(user) && isa<ReductionOp>(user->getParentOp()); });
  };
  for (LoadOp load : sum.getBody().getOps<LoadOp>()) {
    if (runsBesideSum(load.getBuffer(), hints))
      return true;
    for (Operation *user : load.getBuffer().getUsers())
      if (auto reader = dyn_cast<PointwiseOp>(user->getParentOp()))
        for (StoreOp store : reader.getBody().getOps<StoreOp>())
          if (isRead(store.getBuffer()) && runsBesideSum(store.getBuffer(), hints))
            return true;
  }
  return false;
}

/// The first stage, over the node's rows as they lie in memory, before the node, which becomes the second.
class Stages {
public:
  Stages(ReductionOp sum, RowSum rows, const SymbolRanges &symbols)
      : second(sum), rows(rows), symbols(symbols), domain(getDomain(sum)) {}

  void split() {
    auto first = cast<ReductionOp>(OpBuilder(second).clone(*second));
    keepParts(first);
    loadParts(storePartials(first));
  }

private:
  MLIRContext *context() { return second.getContext(); }
  Expr dim(size_t number) { return Expr::dim(context(), unsigned(number)); }

  /// Rows in blocks, which are kept apart, as all columns are: [blocks, kept.., columns] of [rows of a block, ..].
  void keepParts(ReductionOp first) {
    dropResults(first);
    SmallVector<Expr> newDomain{rows.blocks.count}, oldDims(domain.size());
    auto keep = [&](unsigned old) {
      oldDims[old] = dim(newDomain.size());
      newDomain.push_back(domain[old]);
    };
    for (unsigned old = 0; old < rows.group; ++old)
      keep(old);
    Expr column = dim(newDomain.size());
    oldDims[rows.group] = column.floorDiv(rows.run);
    if (rows.column)
      oldDims[*rows.column] = column.mod(rows.run);
    newDomain.push_back(domain[rows.group] * rows.run);
    SmallVector<unsigned> kinds(newDomain.size(), 0);
    oldDims[rows.row] = dim(0) * rows.blocks.rows + dim(newDomain.size());
    newDomain.push_back(rows.blocks.rows);
    for (unsigned old = rows.row + 1; old < rows.column.value_or(unsigned(domain.size())); ++old)
      keep(old);
    kinds.resize(newDomain.size(), 1);
    rewriteDims(first, newDomain, oldDims, symbols);
    setDimKinds(first, kinds);
  }

  /// The node sums up the parts: [kept..] of [blocks, columns of a group].
  void loadParts(ArrayRef<Value> parts) {
    SmallVector<Expr> newDomain(ArrayRef(domain).take_front(rows.row)), oldDims;
    for (unsigned old = 0; old < domain.size(); ++old)
      oldDims.push_back(old < rows.row ? dim(old) : Expr::constant(context(), 0)); // results are of kept dims alone
    Expr position = dim(rows.row);
    for (unsigned old = 0; old < rows.row; ++old)
      position = position * domain[old] + dim(old);
    newDomain.push_back(rows.blocks.count);
    if (rows.column) {
      position = position * rows.run + dim(newDomain.size());
      newDomain.push_back(domain[*rows.column]);
    }
    SmallVector<unsigned> kinds(rows.row, 0);
    kinds.resize(newDomain.size(), 1);
    rewriteDims(second, newDomain, oldDims, symbols);
    setDimKinds(second, kinds);
    for (auto [reduce, buffer] : llvm::zip(llvm::to_vector(second.getBody().getOps<ReduceOp>()), parts)) {
      OpBuilder b(reduce);
      Value part = LoadOp::create(b, reduce.getLoc(), buffer, ArrayRef<Expr>(position));
      reduce.getValueMutable().assign(part);
    }
    dropElements(second); // the first stage has them
  }

  ReductionOp second;
  RowSum rows;
  const SymbolRanges &symbols;
  SmallVector<Expr> domain;
};

struct SumInStages : ptc::impl::SumInStagesBase<SumInStages> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
      SymbolValues hints = prim::getSymbolHints(program.getSymbols());
      SmallVector<ReductionOp> sums;
      program.walk([&](ReductionOp sum) { sums.push_back(sum); });
      for (ReductionOp sum : sums) {
        std::optional<RowSum> found = findRows(sum, hints);
        if (!found || (!found->column && !found->onPages && sharesColumns(sum, hints)))
          continue;
        SmallVector<Value> read;
        sum.walk([&](LoadOp load) { read.push_back(load.getBuffer()); });
        for (Value buffer : llvm::SmallSetVector<Value, 4>(read.begin(), read.end()))
          recomputeInReaders(buffer, symbols, hints); // no reader runs in the loop of a sum over all rows
        while (std::optional<RowSum> rows = findRows(sum, hints))
          Stages(sum, *rows, symbols).split();
      }
    }
  }
};

} // namespace
