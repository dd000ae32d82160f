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
// Cost. An instruction for four bytes of A, six for a vector of B, against what each tile would have spent: from
// `fewestWidened` rows of a task on. Products are the same integers as of bytes.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t wordsOfGroup = 2; // in copies

Widening ContractionEmission::chooseWidening() {
  if (!f.wideLhsAt || !e.level.widensBytes())
    return Widening::None;
  auto rows = i.asConstant(m), blocks = i.asConstant(mBlocks);
  if (!rows || !blocks)
    return Widening::ManyRows;
  return *rows / *blocks >= fewestWidened ? Widening::All : Widening::None;
}

void ContractionEmission::forEachWidth(const ContractionTask &task, llvm::function_ref<void(bool)> body) {
  if (widening != Widening::ManyRows)
    return body(widening == Widening::All);
  Value fewest = i.constant(fewestWidened);
  emitIf(i.compare(arith::CmpIPredicate::sge, task.rows, fewest), [&] { body(true); });
  emitIf(i.compare(arith::CmpIPredicate::slt, task.rows, fewest), [&] { body(false); });
}

/// `count` groups of unsigned bytes at `from`, as 16-bit integers at `to`.
static void widenGroups(ContractionEmission &c, Value from, Value to, int64_t count) {
  OpBuilder &b = c.e.builder;
  int64_t size = c.f.group;
  Value bytes = c.e.createLoad(c.f.lhsElement, count * size, from);
  SmallVector<int32_t> order; // the even bytes of each group before the odd ones
  for (int64_t group = 0; group < count; ++group)
    for (int64_t parity : {0, 1})
      for (int64_t at = parity; at < size; at += 2)
        order.push_back(int32_t(group * size + at));
  bytes = LLVM::ShuffleVectorOp::create(b, c.e.loc, bytes, bytes, order);
  c.e.createStore(arith::ExtUIOp::create(b, c.e.loc, VectorType::get(count * size, b.getI16Type()), bytes), to);
}

void ContractionEmission::widenRows(const ContractionTask &task, Value kLower, Value kUpper) {
  Type wide = e.builder.getI16Type();
  int64_t together = e.level.lanesOf(16) / f.group; // groups of a vector
  auto widenRun = [&](Value from, Value to, Value groups) {
    auto widen = [&](Value at, int64_t count) {
      Value offset = i.mul(at, i.constant(f.group));
      widenGroups(*this, e.getAddress(from, f.lhsElement, offset), e.getAddress(to, wide, offset), count);
    };
    Value whole = i.mul(i.floorDiv(groups, i.constant(together), true), i.constant(together));
    loop(i.constant(0), whole, together, [&](Value at) { widen(at, together); });
    auto known = i.asConstant(groups);
    if (!known)
      return loop(whole, groups, 1, [&](Value at) { widen(at, 1); });
    Value rest = whole;
    for (int64_t count = together / 2; count; count /= 2)
      if (*known & count) {
        widen(rest, count);
        rest = i.add(rest, i.constant(count));
      }
  };
  Value endRow = i.add(task.firstRow, task.rows);
  if (widening == Widening::ManyRows)
    endRow =
        i.select(i.compare(arith::CmpIPredicate::sge, task.rows, i.constant(fewestWidened)), endRow, task.firstRow);
  loop(task.firstRow, endRow, 1, [&](Value row) {
    auto addresses = rowAddresses(task, RowClass{.height = 1}, row);
    SmallVector<Value> outer;
    auto widenLoops = [&](auto &&self, Value to) -> void {
      const KLoop &kLoop = f.kLoops[outer.size()];
      Value lower = outer.empty() ? kLower : i.constant(0), upper = outer.empty() ? kUpper : value(kLoop.extent);
      if (outer.size() + 1 == f.kLoops.size()) {
        Value from = e.getAddress(addresses(outer).front(), f.lhsElement, i.mul(lower, i.constant(f.group)));
        return widenRun(from, to, i.sub(upper, lower));
      }
      Value step = i.mul(value(kLoop.bStride), i.constant(f.group));
      loop(lower, upper, 1, [&](Value at) {
        outer.push_back(at);
        self(self, e.getAddress(to, wide, i.mul(i.sub(at, lower), step)));
        outer.pop_back();
      });
    };
    widenLoops(widenLoops, e.getAddress(wideLhs, wide, i.mul(i.sub(row, task.firstRow), value(f.widePitch))));
  });
}

/// Where a panel's k loop stands, in groups: those of the outermost loop's [kLower, kUpper).
Value ContractionEmission::groupsTo(Value k) { return i.mul(k, value(f.kLoops.front().bStride)); }

void ContractionEmission::widenColumns(const ContractionTask &task, const ColumnClass &columns, Value panel,
                                       Value kLower, Value kUpper) {
  bool isConverted = f.op.getRhs().front().getOperations().size() > 1;
  Value lower = groupsTo(kLower), width = i.constant(panelWidth);
  Value groups = i.floorDiv(k, i.constant(f.group), true);
  for (int64_t p = 0; p < columns.panels; ++p) {
    Value flat = i.add(i.add(i.mul(task.batch, panels), panel), i.constant(p));
    Value from = e.getAddress(e.getPointer(f.rhsBuffer), accumulator, i.mul(i.mul(flat, groups), width));
    Value to = e.getAddress(wideRhs, accumulator, i.mul(value(f.wideRows), i.constant(p * wordsOfGroup * panelWidth)));
    loop(lower, groupsTo(kUpper), 1, [&](Value group) {
      Value source = e.getAddress(from, accumulator, i.mul(group, width));
      Value target = e.getAddress(to, accumulator, i.mul(i.sub(group, lower), i.constant(wordsOfGroup * panelWidth)));
      for (int64_t part = 0; part < panelWidth; part += lanes) {
        Value words = e.createLoad(accumulator, lanes, e.getAddress(source, accumulator, i.constant(part)));
        if (isConverted)
          words = convertedGroups(task, words);
        auto [even, odd] = splitBytes(e, words, /*isSigned=*/true);
        e.createStore(even, e.getAddress(target, accumulator, i.constant(part)));
        e.createStore(odd, e.getAddress(target, accumulator, i.constant(panelWidth + part)));
      }
    });
  }
}

TileOperands ContractionEmission::wideOperands(const ContractionTask &task, const RowClass &rows, Value row,
                                               Value kLower, Value kUpper) {
  Type wide = e.builder.getI16Type();
  Value width = i.constant(panelWidth), words = i.constant(wordsOfGroup);
  Value lower = i.mul(groupsTo(kLower), words), pitch = value(f.widePitch);
  TileOperands operands{.accumulator = accumulator, .aElement = wide, .bElement = accumulator, .group = 2};
  operands.panelStride = i.mul(i.mul(value(f.wideRows), words), width);
  operands.panels = e.getAddress(wideRhs, accumulator, i.sub(i.constant(0), i.mul(lower, width)));
  operands.loops.push_back({.lower = lower,
                            .upper = i.mul(groupsTo(kUpper), words),
                            .aStride = i.constant(operands.group),
                            .bStride = width});
  Value skipped = i.mul(lower, i.constant(operands.group)); // copies start at kLower
  Value first = e.getAddress(wideLhs, wide, i.sub(i.mul(i.sub(row, task.firstRow), pitch), skipped));
  operands.rowAddresses = [=, this, count = rows.height](ValueRange) {
    SmallVector<Value> addresses;
    for (int64_t r = 0; r < count; ++r)
      addresses.push_back(e.getAddress(first, wide, i.mul(i.constant(r), pitch)));
    return addresses;
  };
  return operands;
}
