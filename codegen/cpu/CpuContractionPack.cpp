//===- CpuContractionPack.cpp - operands of a contraction copied to scratch ===//
//
// Where an operand cannot be read by the register tile as it lies, the task evaluates its region into scratch, with
// vectors along the dim in which memory is contiguous:
//
//   A along k   rows, [row][k]                  padded convolutions' masks are decided once for each row and outer k;
//                                               a row whose window meets no border is copied run by run
//   A along m   columns, [k][row]               the tile then broadcasts from neighbouring addresses
//   B along n   panels, [panel][k][16]
//   B along k   panels, through a transposition in registers
//
// Bytes of B are packed in words of four neighbours in k, [panel][k / 4][16]: along n by shifting four rows into each
// other, along k as they lie.
//
// Vectors at the end of a run are masked when they are read and written whole: what they write beyond the run belongs
// to a place that is written later, since places are written in ascending order, or to the slack at the end.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionConvert.h"
#include "codegen/cpu/CpuContractionEmission.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t mostRuns = 32; // of a row, whose code stands there for each

Value ContractionEmission::flatK(const EmissionPoint &point) {
  Value flat = i.constant(0);
  for (int64_t d = f.firstK(); d < int64_t(f.domain.size()); ++d)
    flat = i.add(i.mul(flat, value(f.domain[d])), point.dims[d]);
  return flat;
}

void ContractionEmission::forEachK(ArrayRef<int64_t> dims, Value kLower, Value kUpper, EmissionPoint &point,
                                   llvm::function_ref<void()> body) {
  if (dims.empty())
    return body();
  int64_t dim = dims.front();
  bool isSplit = kLower && dim == f.firstK();
  loop(isSplit ? kLower : i.constant(0), isSplit ? kUpper : value(f.domain[dim]), 1, [&](Value at) {
    point.dims[dim] = at;
    forEachK(dims.drop_front(), kLower, kUpper, point, body);
  });
}

void ContractionEmission::fillRedirected() {
  Value element = i.constant(f.lhs.other);
  Value vector = e.splat(element, lanes);
  loop(i.constant(0), i.mul(value(f.fillSize()), i.constant(f.group)), lanes,
       [&](Value at) { e.createStore(vector, e.getAddress(fill, f.lhs.element, at)); });
}

bool ContractionEmission::copiesRuns() {
  if (!f.lhs.load || f.mDims == 0 || f.lhs.vectorDim < 0 || (f.group > 1 && !f.isDot()) || !areConditionsSolvable())
    return false;
  Expr index = f.lhs.index();
  int64_t runs = 1;
  for (int64_t dim = f.firstK(); dim < int64_t(f.domain.size()); ++dim) {
    auto extent = f.domain[dim].asConstant();
    Expr stride = loop::strideOf(index, dim);
    if (!extent || !stride || (stride.isConstant() && stride.getValue() < 0))
      return false;
    runs *= dim == f.lhs.vectorDim ? 1 : *extent;
  }
  return runs <= mostRuns && loop::strideOf(index, f.lhs.vectorDim).isConstant(1);
}

namespace {

/// Copies a task's operands to scratch.
class PackingEmission : ContractionTechnique {
public:
  using ContractionTechnique::ContractionTechnique;
  void packLhs(const ContractionTask &task);
  void packRhs(const ContractionTask &task, Value kLower, Value kUpper);

private:
  void packLhsRows(const ContractionTask &task);
  void packLhsColumns(const ContractionTask &task);
  /// The rows of tiles that do not read A where it is.
  void forEachPackedRow(const ContractionTask &task, llvm::function_ref<void(Value row)> body);
  /// The runs of the row, if its window meets no border, which the value tells.
  Value copyRuns(const ContractionTask &task, Value row, Value target, llvm::function_ref<Value(int64_t)> strideIn);
  void packRhsAlongN(const ContractionTask &task, Value kLower, Value kUpper);
  void packRhsAlongK(const ContractionTask &task, Value kLower, Value kUpper);
  /// The rhs's region as it lies in panels. Of words, k at the point counts groups.
  Value emitRhs(EmissionPoint point);
  SmallVector<Value> emitPanelsOfBytes(EmissionPoint point, Value column, int64_t count);
  /// For each of the terms of so many groups, the group.
  SmallVector<int32_t> lanesOfGroups(int64_t groups);
};

} // namespace

//===----------------------------------------------------------------------===//
// A
//===----------------------------------------------------------------------===//

void PackingEmission::packLhs(const ContractionTask &task) {
  f.lhs.form == LhsForm::PackedRows ? packLhsRows(task) : packLhsColumns(task);
}

Value PackingEmission::copyRuns(const ContractionTask &task, Value row, Value target,
                                llvm::function_ref<Value(int64_t)> strideIn) {
  Expr index = f.lhs.index();
  int64_t length = f.domain[f.lhs.vectorDim].getValue();
  int64_t width = std::min<int64_t>(lanes, int64_t(llvm::PowerOf2Ceil(uint64_t(length))));
  int64_t covered = int64_t(llvm::alignTo(uint64_t(length), uint64_t(width)));
  SmallVector<int64_t> outer = dimsBetween(f.firstK(), int64_t(f.domain.size()), f.lhs.vectorDim);
  Value first = e.emitExpr(index, c.rowPoint(task, row));
  // The vectors of the last run may not reach beyond the buffer, which the whole window lies in.
  Value lastRun = i.constant(0), ascends = i.constant(e.builder.getBoolAttr(true));
  for (int64_t dim : outer) {
    Value stride = value(loop::strideOf(index, dim));
    lastRun = i.add(lastRun, i.mul(stride, i.constant(f.domain[dim].getValue() - 1)));
    ascends = i.logicalAnd(ascends, i.compare(arith::CmpIPredicate::sge, stride, i.constant(0)));
  }
  Value end = i.add(first, i.add(lastRun, i.constant(covered)));
  Value size = value(cast<loop::BufferType>(f.lhs.load.getBuffer().getType()).getElementCount());
  Value fits = i.logicalAnd(i.compare(arith::CmpIPredicate::sle, end, size), ascends);
  Value isInside = i.logicalAnd(c.liesInside(task, 1, row), fits);
  emitIf(isInside, [&] {
    Value source = e.getAddress(e.getPointer(f.lhs.load.getBuffer()), f.lhs.element, first);
    auto copy = [&](auto &&self, ArrayRef<int64_t> dims, Value from, Value to) -> void {
      if (!dims.empty()) {
        Value stride = value(loop::strideOf(index, dims.front()));
        for (int64_t at = 0; at < f.domain[dims.front()].getValue(); ++at)
          self(self, dims.drop_front(), i.add(from, i.mul(i.constant(at), stride)),
               i.add(to, i.mul(i.constant(at), strideIn(dims.front()))));
        return;
      }
      for (int64_t at = 0; at < length; at += width) {
        Value run =
            e.createLoad(f.lhs.element, width, e.getAddress(source, f.lhs.element, i.add(from, i.constant(at))));
        e.createStore(run, e.getAddress(target, f.lhs.element, i.add(to, i.constant(at))));
      }
    };
    copy(copy, outer, i.constant(0), i.constant(0));
  });
  return isInside;
}

void PackingEmission::forEachPackedRow(const ContractionTask &task, llvm::function_ref<void(Value)> body) {
  if (c.getInsideLoops(c.split.height).empty())
    return loop(task.firstRow, i.add(task.firstRow, task.rows), 1, body);
  for (const RowClass &rows : c.rowClasses(task))
    loop(rows.lower, rows.upper, 1, [&](Value tile) {
      Value first = c.firstRowOf(rows, tile), end = i.add(first, i.constant(rows.height));
      bool readsInPlace = !c.getInsideLoops(rows.height).empty();
      loop(first, readsInPlace ? i.select(c.liesInside(task, rows.height, first), first, end) : end, 1, body);
    });
}

void PackingEmission::packLhsRows(const ContractionTask &task) {
  EmissionPoint point = c.taskPoint(task);
  int64_t endK = int64_t(f.domain.size());
  SmallVector<int64_t> outer = dimsBetween(f.firstK(), endK, f.lhs.vectorDim);
  Value pitch = value(f.scratch.lhsPitch);
  // Place of each dim in a row.
  auto strideIn = [&](int64_t dim) -> Value {
    for (const KLoop &kLoop : f.kLoops)
      if (kLoop.dim == dim)
        return value(kLoop.aStride);
    Expr stride = Expr::constant(e.builder.getContext(), 1);
    for (int64_t d = dim + 1; d < endK; ++d)
      stride = stride * f.domain[d];
    return value(stride);
  };
  auto packRow = [&](Value row) {
    c.forEachK(outer, {}, {}, point, [&] {
      Value offset = i.constant(0);
      for (int64_t d : outer)
        offset = i.add(offset, i.mul(point.dims[d], strideIn(d)));
      Value run = e.getAddress(row, f.lhs.element, offset);
      if (f.lhs.vectorDim < 0) {
        e.createStore(c.emitLhs(point), run);
        return;
      }
      c.forEachVector(point, f.lhs.vectorDim, i.constant(0), value(f.domain[f.lhs.vectorDim]),
                      [&](const EmissionPoint &at, Value position) {
                        Value element = e.splat(c.emitLhs(at), lanes);
                        e.createStore(element, e.getAddress(run, f.lhs.element, position));
                      });
    });
  };
  forEachPackedRow(task, [&](Value number) {
    Value local = i.sub(number, task.firstHeld), row = e.getAddress(c.lhsPack, f.lhs.element, i.mul(local, pitch));
    c.setDims(point, f.firstM(), f.mDims, number);
    if (!c.copiesRuns())
      return packRow(row);
    Value isCopied = copyRuns(task, number, row, strideIn);
    emitIf(i.compare(arith::CmpIPredicate::eq, isCopied, i.constant(e.builder.getBoolAttr(false))),
           [&] { packRow(row); });
  });
}

/// Runs of a flat range [first, first + count) along the last of several dims: `body` gets a point with all of the dims
/// but the last set, the bounds of the last, and the position of its 0 relative to `first`.
static void forEachRun(ContractionEmission &c, EmissionPoint &point, int64_t firstDim, int64_t dims, Value first,
                       Value count, llvm::function_ref<void(Value lower, Value upper, Value origin)> body) {
  InvariantBuilder &i = c.i;
  if (dims == 1)
    return body(first, i.add(first, count), i.sub(i.constant(0), first));
  Value extent = c.value(c.f.domain[firstDim + dims - 1]);
  Value end = i.add(first, count);
  Value lastRun = i.floorDiv(i.add(end, i.sub(extent, i.constant(1))), extent, true);
  c.loop(i.floorDiv(first, extent, true), lastRun, 1, [&](Value run) {
    Value start = i.mul(run, extent);
    c.setDims(point, firstDim, dims - 1, run);
    Value lower = i.max(i.sub(first, start), i.constant(0));
    Value upper = i.min(i.sub(end, start), extent);
    body(lower, upper, i.sub(start, first));
  });
}

void PackingEmission::packLhsColumns(const ContractionTask &task) {
  EmissionPoint point = c.taskPoint(task);
  SmallVector<int64_t> outer = dimsBetween(f.firstK(), int64_t(f.domain.size()));
  Value pitch = value(f.scratch.lhsPitch);
  c.forEachK(outer, {}, {}, point, [&] {
    Value line = e.getAddress(c.lhsPack, f.lhs.element, i.mul(c.flatK(point), pitch));
    forEachRun(c, point, f.firstM(), f.mDims, task.firstRow, task.rows, [&](Value lower, Value upper, Value origin) {
      c.forEachVector(point, f.firstN() - 1, lower, upper, [&](const EmissionPoint &at, Value position) {
        Value element = e.splat(c.emitLhs(at), lanes);
        e.createStore(element, e.getAddress(line, f.lhs.element, i.add(origin, position)));
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// B
//===----------------------------------------------------------------------===//

void PackingEmission::packRhs(const ContractionTask &task, Value kLower, Value kUpper) {
  if (f.rhs.form == RhsForm::PackedConverted)
    return WeightConverter(c, task).pack(kLower, kUpper);
  f.rhs.form == RhsForm::PackedAlongN ? packRhsAlongN(task, kLower, kUpper) : packRhsAlongK(task, kLower, kUpper);
}

Value PackingEmission::emitRhs(EmissionPoint point) {
  auto emitTerms = [&](const EmissionPoint &at) { return e.splat(e.emitRegion(f.op.getRhs(), at), at.lanes); };
  if (!f.isDot())
    return c.widened(emitTerms(point));
  int64_t k = f.firstK();
  auto words = VectorType::get(point.lanes, accumulator);
  point.dims[k] = i.mul(point.dims[k], i.constant(f.group));
  if (point.vectorDim == k) {
    if (point.mask)
      point.mask = LLVM::ShuffleVectorOp::create(e.builder, e.loc, point.mask, point.mask, lanesOfGroups(point.lanes));
    point.lanes *= f.group;
    return LLVM::BitcastOp::create(e.builder, e.loc, words, emitTerms(point));
  }
  Value first = point.dims[k], sum;
  for (int64_t term = 0; term < f.group; ++term) {
    point.dims[k] = i.add(first, i.constant(term));
    Value byte = arith::ExtUIOp::create(e.builder, e.loc, words, emitTerms(point));
    Value bits = i.constant(cast<TypedAttr>(DenseElementsAttr::get(words, APInt(32, uint64_t(term * 8)))));
    byte = term ? arith::ShLIOp::create(e.builder, e.loc, byte, bits).getResult() : byte;
    sum = term ? arith::OrIOp::create(e.builder, e.loc, sum, byte).getResult() : byte;
  }
  return sum;
}

/// Words of `count` columns that follow each other in memory, a vector of lanes each: bytes of the terms are
/// interleaved, then pairs of them, in each 128 bits apart.
SmallVector<Value> PackingEmission::emitPanelsOfBytes(EmissionPoint point, Value column, int64_t count) {
  int64_t k = f.firstK();
  Value term = i.mul(point.dims[k], i.constant(f.group));
  point.lanes = count;
  point.vectorDim = k - 1;
  point.dims[point.vectorDim] = column;
  SmallVector<Value> rows;
  for (int64_t at = 0; at < f.group; ++at) {
    point.dims[k] = i.add(term, i.constant(at));
    rows.push_back(e.splat(e.emitRegion(f.op.getRhs(), point), count));
  }
  auto pairsOf = [&](Value bytes) {
    return LLVM::BitcastOp::create(e.builder, e.loc, VectorType::get(count / 2, e.builder.getI16Type()), bytes);
  };
  auto [low, high] = interleave(e, rows[0], rows[1], panelWidth);
  auto [nextLow, nextHigh] = interleave(e, rows[2], rows[3], panelWidth);
  auto [first, second] = interleave(e, pairsOf(low), pairsOf(nextLow), panelWidth / 2);
  auto [third, fourth] = interleave(e, pairsOf(high), pairsOf(nextHigh), panelWidth / 2);
  SmallVector<Value> quarters; // of each panel
  for (Value pairs : {first, second, third, fourth})
    quarters.push_back(LLVM::BitcastOp::create(e.builder, e.loc, VectorType::get(count / 4, accumulator), pairs));
  constexpr int64_t ofQuarter = panelWidth / 4;
  auto wordsOf = [&](Value x, Value y, int64_t panel) -> Value { // two quarters
    SmallVector<int32_t> order;
    for (int64_t from : {int64_t(0), count / 4})
      for (int64_t at = 0; at < ofQuarter; ++at)
        order.push_back(int32_t(from + panel * ofQuarter + at));
    return LLVM::ShuffleVectorOp::create(e.builder, e.loc, x, y, order);
  };
  SmallVector<Value> words;
  for (int64_t panel = 0; panel < count / panelWidth; ++panel) {
    if (lanes == ofQuarter) {
      words.append(quarters);
      continue;
    }
    Value lower = wordsOf(quarters[0], quarters[1], panel), upper = wordsOf(quarters[2], quarters[3], panel);
    if (lanes == panelWidth)
      words.push_back(join(e, {lower, upper}));
    else
      words.append({lower, upper});
  }
  return words;
}

SmallVector<int32_t> PackingEmission::lanesOfGroups(int64_t groups) {
  SmallVector<int32_t> order;
  for (int64_t lane = 0; lane < groups * f.group; ++lane)
    order.push_back(int32_t(lane / f.group));
  return order;
}

void PackingEmission::packRhsAlongN(const ContractionTask &task, Value kLower, Value kUpper) {
  EmissionPoint point = c.taskPoint(task);
  SmallVector<int64_t> outer = dimsBetween(f.firstK(), int64_t(f.domain.size()));
  Value rows = value(f.scratch.rhsRows), width = i.constant(panelWidth);
  Value panelSize = i.mul(rows, width);
  Value skipped = f.blocks.isSplitK() ? i.mul(kLower, value(f.kLoops[0].bStride)) : i.constant(0);
  Value firstColumn = i.mul(task.firstPanel, width);
  Value endColumn = i.min(i.mul(task.endPanel, width), c.n);
  Value count = i.sub(endColumn, firstColumn);
  auto isSplit = [&] { return f.blocks.isSplitK() || f.isDot() ? kLower : Value(); };
  c.forEachK(outer, isSplit(), kUpper, point, [&] {
    Value row = e.getAddress(c.rhsPack, accumulator, i.mul(i.sub(c.flatK(point), skipped), width));
    auto place = [&](Value column) { // of a column relative to the first one
      Value panel = i.floorDiv(column, width, true), lane = i.mod(column, width, true);
      return e.getAddress(row, accumulator, i.add(i.mul(panel, panelSize), lane));
    };
    if (f.nDims == 0) {
      e.createStore(c.widened(e.emitRegion(f.op.getRhs(), point)), row);
      return;
    }
    if (f.nDims == 1) {
      Value first = firstColumn;
      if (f.multipliesBytes()) { // whole vectors of bytes
        int64_t together = std::max(e.level.lanesOf(8), panelWidth);
        Value whole = i.mul(i.floorDiv(count, i.constant(together), true), i.constant(together));
        first = i.add(first, whole);
        loop(firstColumn, first, together, [&](Value column) {
          for (auto [number, words] : llvm::enumerate(emitPanelsOfBytes(point, column, together)))
            e.createStore(words, place(i.add(i.sub(column, firstColumn), i.constant(int64_t(number) * lanes))));
        });
      }
      c.forEachVector(point, f.firstK() - 1, first, endColumn, [&](const EmissionPoint &at, Value position) {
        e.createStore(emitRhs(at), place(i.sub(position, firstColumn)));
      });
      return;
    }
    // Runs that do not start at whole vectors: a line of columns first, then its vectors.
    Value line = c.scratchAt(f.scratch.lineAt);
    forEachRun(c, point, f.firstN(), f.nDims, firstColumn, count, [&](Value lower, Value upper, Value origin) {
      c.forEachVector(point, f.firstK() - 1, lower, upper, [&](const EmissionPoint &at, Value position) {
        e.createStore(emitRhs(at), e.getAddress(line, accumulator, i.add(origin, position)));
      });
    });
    loop(i.constant(0), count, lanes, [&](Value column) {
      Value vector = e.createLoad(accumulator, lanes, e.getAddress(line, accumulator, column));
      e.createStore(vector, place(column));
    });
  });
}

void PackingEmission::packRhsAlongK(const ContractionTask &task, Value kLower, Value kUpper) {
  EmissionPoint point = c.taskPoint(task);
  int64_t along = f.rhs.vectorDim;
  SmallVector<int64_t> outer = dimsBetween(f.firstK(), int64_t(f.domain.size()), along);
  Value rows = value(f.scratch.rhsRows), width = i.constant(panelWidth);
  Value skipped = f.blocks.isSplitK() ? i.mul(kLower, value(f.kLoops[0].bStride)) : i.constant(0);
  Expr inner = Expr::constant(e.builder.getContext(), 1); // rows of B between neighbours along the dim
  for (int64_t d = along + 1; d < int64_t(f.domain.size()); ++d)
    inner = inner * f.domain[d];
  Value step = i.mul(value(inner), width);
  bool isSplitHere = (f.blocks.isSplitK() || f.isDot()) && along == f.firstK();
  Value lower = isSplitHere ? kLower : i.constant(0), upper = isSplitHere ? kUpper : value(f.domain[along]);
  Value last = i.sub(c.n, i.constant(1));
  loop(task.firstPanel, task.endPanel, 1, [&](Value panel) {
    Value base = e.getAddress(c.rhsPack, accumulator, i.mul(i.mul(i.sub(panel, task.firstPanel), rows), width));
    c.forEachK(outer, f.blocks.isSplitK() ? kLower : Value(), kUpper, point, [&] {
      for (int64_t part = 0; part < panelWidth; part += lanes)
        c.forEachVector(point, along, lower, upper, [&](const EmissionPoint &at, Value position) {
          SmallVector<Value> square;
          for (int64_t column = 0; column < lanes; ++column) {
            EmissionPoint one = at;
            Value flat = i.add(i.mul(panel, width), i.constant(part + column));
            c.setDims(one, f.firstN(), f.nDims, i.min(flat, last)); // columns beyond n repeat the last
            square.push_back(emitRhs(one));
          }
          transposeSquare(e, square);
          EmissionPoint first = at;
          first.dims[along] = position;
          Value row = i.mul(i.sub(c.flatK(first), skipped), width);
          Value target = e.getAddress(base, accumulator, i.add(row, i.constant(part)));
          auto storeRow = [&](int64_t r) {
            e.createStore(square[r], e.getAddress(target, accumulator, i.mul(step, i.constant(r))));
          };
          if (!at.mask) {
            for (int64_t r = 0; r < lanes; ++r)
              storeRow(r);
            return;
          }
          // Rows beyond the run must not be written: they may belong to another run that is there already.
          for (int64_t r = 0; r < lanes; ++r)
            emitIf(i.compare(arith::CmpIPredicate::slt, i.add(position, i.constant(r)), upper), [&] { storeRow(r); });
        });
    });
  });
}

void ContractionEmission::packLhs(const ContractionTask &task) { PackingEmission(*this).packLhs(task); }

void ContractionEmission::packRhs(const ContractionTask &task, Value kLower, Value kUpper) {
  PackingEmission(*this).packRhs(task, kLower, kUpper);
}
