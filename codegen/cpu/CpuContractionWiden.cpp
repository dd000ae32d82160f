//===- CpuContractionWiden.cpp - bytes multiplied as 16-bit integers ------===//
//
// Problem. Where no instruction multiplies bytes, two multiplications of 16-bit pairs take the place of one dot product
// of four. Taking bytes apart inside of the tile costs two operations for each row and three for each vector of B a
// step: a third beside the products themselves, and the registers of their masks.
//
// Idea. Each operand is taken apart once, into scratch, and the tile runs on what it wants, `createPairDot`:
//
//   A   a task's rows, wherever bytes come from: in place, around borders, packed; each column tile reads them
//   B   the column tile of a weight; each row tile of the task reads it
//
// Both hold the block of k that is computed, as a rule all of k. A group of four bytes becomes two words: its even
// bytes, its odd ones. So B needs shifts alone, and A one shuffle of the vector of bytes before they are widened.
// Neighbours in k are contiguous in both, whatever the loops over k were: the tile has one.
//
// Two products for four. On processors with fewer units for multiplications than for additions words are added before
// they are multiplied (S. Winograd, A New Algorithm for Inner Product, 1968):
//
//   (a0 + b1) (a1 + b0) = a0 b0 + a1 b1 + a0 a1 + b0 b1
//
// 16 bits hold the sums of bytes. What the last two terms come to is told by the row and by the column alone; it is
// added up beside the copies, and subtracted where a tile's sums start. Modulo 2^32 the results are the same integers.
// Beside one product for each of two words a step has as many instructions, one multiplication and three additions in
// place of two each: a tile's loop takes 0.88 of the time on a processor with two units that multiply and four that
// add.
//
// Cost. An instruction for four bytes of A, six for a vector of B, against what each tile would have spent: from
// `fewestWidened` rows of a task on. Products are the same integers as of bytes.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t fewestSummed = 128; // terms of products of sums: 64 took a tenth longer

bool cpu::multipliesSums(const ContractionForm &form, const CpuLevel &level) {
  int64_t terms = form.k.asConstant().value_or(fewestSummed);
  return level.multipliesSums() && (form.quads.across ? terms / quadTaps : terms) >= fewestSummed;
}

void ContractionEmission::cutForCopies() {
  if (!f.blocks.ofCopies || !e.level.widensBytes())
    return;
  int64_t tasks = f.blocks.m.getValue() * f.blocks.n.getValue(), width = takesQuads() ? 1 : split.width;
  int64_t mostColumns = llvm::divideCeil(llvm::divideCeil(f.n.getValue(), panelWidth), width);
  for (int64_t rows = f.blocks.ofCopies; rows < f.blocks.m.getValue(); ++rows)
    if (tasks % rows == 0 && tasks / rows <= mostColumns) {
      mBlocks = i.constant(rows);
      nBlocks = i.constant(tasks / rows);
      return;
    }
}

Widening ContractionEmission::chooseWidening() {
  if (!f.wide.lhsAt || !e.level.widensBytes())
    return Widening::None;
  auto rows = i.asConstant(m), blocks = i.asConstant(mBlocks);
  if (!rows || !blocks)
    return Widening::ManyRows;
  return *rows / *blocks >= fewestWidened ? Widening::All : Widening::None;
}

Value ContractionEmission::loadWords(Value from, int64_t groups) {
  int64_t count = groups * f.group;
  Value bytes = e.createLoad(f.lhs.element, count, from);
  SmallVector<int32_t> order; // the even bytes of each group before the odd ones
  for (int64_t first = 0; first < count; first += f.group)
    for (int64_t parity : {0, 1})
      for (int64_t at = parity; at < f.group; at += wordsOfGroup)
        order.push_back(int32_t(first + at));
  bytes = LLVM::ShuffleVectorOp::create(e.builder, e.loc, bytes, bytes, order);
  return arith::ExtUIOp::create(e.builder, e.loc, VectorType::get(count, e.builder.getI16Type()), bytes);
}

Value ContractionEmission::zeroSum() {
  auto type = VectorType::get({lanes}, accumulator);
  return i.constant(cast<TypedAttr>(e.builder.getZeroAttr(type)));
}

Value ContractionEmission::sumOfLanes(Value vector) {
  for (int64_t half = lanes / 2; half; half /= 2) {
    SmallVector<int32_t> low = llvm::to_vector(llvm::seq<int32_t>(0, int32_t(half))), high;
    for (int32_t lane : low)
      high.push_back(lane + int32_t(half));
    Value x = LLVM::ShuffleVectorOp::create(e.builder, e.loc, vector, vector, low);
    Value y = LLVM::ShuffleVectorOp::create(e.builder, e.loc, vector, vector, high);
    vector = arith::AddIOp::create(e.builder, e.loc, x, y);
  }
  return LLVM::BitcastOp::create(e.builder, e.loc, accumulator, vector);
}

Value ContractionEmission::addProductsOfWords(Value words, Value sums) {
  int64_t count = cast<VectorType>(words.getType()).getNumElements() / 2; // words
  auto type = VectorType::get({count}, accumulator);
  Value first = LLVM::BitcastOp::create(e.builder, e.loc, type, words);
  Value zero = i.constant(cast<TypedAttr>(e.builder.getZeroAttr(type)));
  SmallVector<int32_t> own, others; // the second words under the first, beside zeros
  for (int32_t lane = 0; lane < int32_t(lanes); ++lane) {
    own.push_back(lane < count ? lane : int32_t(count));
    others.push_back(lane < count && lane % 2 == 0 ? lane + 1 : int32_t(count));
  }
  Value second = LLVM::ShuffleVectorOp::create(e.builder, e.loc, first, zero, others);
  first = LLVM::ShuffleVectorOp::create(e.builder, e.loc, first, zero, own);
  return createPairDot(e, first, second, sums);
}

void ContractionEmission::widenRows(const ContractionTask &task, Value kLower, Value kUpper) {
  Type wide = e.builder.getI16Type();
  int64_t together = e.level.lanesOf(16) / f.group; // groups of a vector
  bool addsUp = takesSums();
  auto widenRun = [&](Value from, Value to, Value groups, ValueRange sums) -> SmallVector<Value> {
    auto widen = [&](Value at, int64_t count, ValueRange sums) -> SmallVector<Value> {
      Value offset = i.mul(at, i.constant(f.group));
      Value words = loadWords(e.getAddress(from, f.lhs.element, offset), count);
      e.createStore(words, e.getAddress(to, wide, offset));
      if (addsUp)
        return {addProductsOfWords(words, sums.front())};
      return {};
    };
    auto widenLoop = [&](Value lower, Value upper, int64_t count, ValueRange sums) {
      return e.createLoop(lower, upper, count, sums,
                          [&](Value at, ValueRange carried) { return widen(at, count, carried); });
    };
    Value whole = i.mul(i.floorDiv(groups, i.constant(together), true), i.constant(together));
    SmallVector<Value> result = widenLoop(i.constant(0), whole, together, sums);
    auto known = i.asConstant(groups);
    if (!known)
      return widenLoop(whole, groups, 1, result);
    Value rest = whole;
    for (int64_t count = together / 2; count; count /= 2)
      if (*known & count) {
        result = widen(rest, count, result);
        rest = i.add(rest, i.constant(count));
      }
    return result;
  };
  Value endRow = i.add(task.firstRow, task.rows);
  if (widening == Widening::ManyRows)
    endRow =
        i.select(i.compare(arith::CmpIPredicate::sge, task.rows, i.constant(fewestWidened)), endRow, task.firstRow);
  loop(task.firstRow, endRow, 1, [&](Value row) {
    auto addresses = rowAddresses(task, RowClass{.height = 1}, row);
    SmallVector<Value> outer;
    auto widenLoops = [&](auto &&self, Value to, ValueRange sums) -> SmallVector<Value> {
      const KLoop &kLoop = f.kLoops[outer.size()];
      Value lower = outer.empty() ? kLower : i.constant(0), upper = outer.empty() ? kUpper : value(kLoop.extent);
      if (outer.size() + 1 == f.kLoops.size()) {
        Value from = e.getAddress(addresses(outer).front(), f.lhs.element, i.mul(lower, i.constant(f.group)));
        return widenRun(from, to, i.sub(upper, lower), sums);
      }
      Value step = i.mul(value(kLoop.bStride), i.constant(f.group));
      return e.createLoop(lower, upper, 1, sums, [&](Value at, ValueRange carried) {
        outer.push_back(at);
        auto result = self(self, e.getAddress(to, wide, i.mul(i.sub(at, lower), step)), carried);
        outer.pop_back();
        return result;
      });
    };
    Value local = i.sub(row, task.firstRow);
    SmallVector<Value> sums;
    if (addsUp)
      sums.push_back(zeroSum());
    sums = widenLoops(widenLoops, e.getAddress(wideLhs, wide, i.mul(local, value(f.wide.pitch))), sums);
    if (addsUp)
      e.createStore(sumOfLanes(sums.front()), e.getAddress(wideRowSums, accumulator, local));
  });
}

/// Where a panel's k loop stands, in groups: those of the outermost loop's [kLower, kUpper).
Value ContractionEmission::groupsTo(Value k) { return i.mul(k, value(f.kLoops.front().bStride)); }

void ContractionEmission::widenColumns(const ContractionTask &task, const ColumnClass &columns, Value panel,
                                       Value kLower, Value kUpper) {
  Value lower = groupsTo(kLower), width = i.constant(panelWidth);
  for (int64_t p = 0; p < columns.panels; ++p) {
    Value from = panelAddress(task, i.add(panel, i.constant(p)), kLower);
    Value to = e.getAddress(wideRhs, accumulator, i.mul(value(f.wide.rows), i.constant(p * wordsOfGroup * panelWidth)));
    SmallVector<Value> sums(takesSums() ? size_t(panelWidth / lanes) : 0, zeroSum());
    sums = e.createLoop(lower, groupsTo(kUpper), 1, sums, [&](Value group, ValueRange carried) {
      SmallVector<Value> next(carried);
      Value source = e.getAddress(from, accumulator, i.mul(group, width));
      Value target = e.getAddress(to, accumulator, i.mul(i.sub(group, lower), i.constant(wordsOfGroup * panelWidth)));
      for (int64_t part = 0; part < panelWidth; part += lanes) {
        Value words = e.createLoad(accumulator, lanes, e.getAddress(source, accumulator, i.constant(part)));
        if (convertsWeight())
          words = convertedGroups(task, words);
        auto [even, odd] = splitBytes(e, words, /*isSigned=*/true);
        e.createStore(even, e.getAddress(target, accumulator, i.constant(part)));
        e.createStore(odd, e.getAddress(target, accumulator, i.constant(panelWidth + part)));
        if (!next.empty())
          next[size_t(part / lanes)] = createPairDot(e, even, odd, next[size_t(part / lanes)]);
      }
      return next;
    });
    for (auto [index, sum] : llvm::enumerate(sums))
      e.createStore(sum,
                    e.getAddress(wideColumnSums, accumulator, i.constant(p * panelWidth + int64_t(index) * lanes)));
  }
}

TileOperands ContractionEmission::wideOperands(const ContractionTask &task, const ContractionTile &tile) {
  Type wide = e.builder.getI16Type();
  int64_t wordsOfStep = takesSums() ? wordsOfGroup : 1;
  Value width = i.constant(panelWidth), words = i.constant(wordsOfGroup / wordsOfStep); // of a group; then in steps
  Value lower = i.mul(groupsTo(tile.kLower), words), pitch = value(f.wide.pitch);
  TileOperands operands{
      .accumulator = accumulator, .aElement = wide, .bElement = accumulator, .group = 2 * wordsOfStep};
  operands.panelStride = i.mul(value(f.wide.rows), i.constant(wordsOfGroup * panelWidth));
  Value step = i.mul(i.constant(wordsOfStep), width);
  operands.panels = e.getAddress(wideRhs, accumulator, i.sub(i.constant(0), i.mul(lower, step)));
  operands.loops.push_back({.lower = lower,
                            .upper = i.mul(groupsTo(tile.kUpper), words),
                            .aStride = i.constant(operands.group),
                            .bStride = step});
  Value skipped = i.mul(lower, i.constant(operands.group)); // copies start at kLower
  Value first = e.getAddress(wideLhs, wide, i.sub(i.mul(i.sub(tile.row, task.firstRow), pitch), skipped));
  operands.rowAddresses = [=, this, count = tile.rows.height](ValueRange) {
    return addressesApart(first, wide, count, pitch);
  };
  return operands;
}

SmallVector<Value> ContractionEmission::startOfSums(TileShape shape, Value rowSums, int64_t rowStep, Value columnSums,
                                                    ValueRange init) {
  if (!takesSums())
    return init;
  SmallVector<Value> ofColumns, result;
  SmallVector<TileVector> vectors = getTileVectors(shape.panels, shape.lastColumns, lanes);
  for (const TileVector &vector : vectors)
    ofColumns.push_back(
        e.createLoad(accumulator, vector.lanes, e.getAddress(columnSums, accumulator, i.constant(vector.column))));
  for (int64_t r = 0; r < shape.rows; ++r) {
    Value ofRow = e.createLoad(accumulator, 1, e.getAddress(rowSums, accumulator, i.constant(r * rowStep)));
    for (auto [c, vector] : llvm::enumerate(vectors)) {
      Value both = arith::AddIOp::create(e.builder, e.loc, e.splat(ofRow, vector.lanes), ofColumns[c]);
      Value zero = i.constant(cast<TypedAttr>(e.builder.getZeroAttr(both.getType())));
      Value start = init.empty() ? zero : init[size_t(r) * vectors.size() + c];
      result.push_back(arith::SubIOp::create(e.builder, e.loc, start, both));
    }
  }
  return result;
}
