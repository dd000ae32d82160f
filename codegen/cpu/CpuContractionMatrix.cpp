//===- CpuContractionMatrix.cpp - sums in registers of 16 x 16 words ------===//
//
// Problem. Some processors (Intel's AMX) have eight registers of 16 rows of 64 bytes, and an instruction that
// multiplies and adds up whole ones: 16 times the products of a vector instruction.
//
// Idea. A unit panel, [k / group][16 words], is what such a register takes as its B, 16 groups of k at a time. A row of
// A's register is 64 bytes of a row of A. So a block of 32 rows and two panels is four registers of sums, two of A and
// two of B, of which each serves twice: four products of 16 cycles each, longer than one is waited for. Where a task
// has no more than 16 rows, four panels take one row of registers. The sums go to the scratch memory that long
// epilogues read them from, whatever the epilogue is: vectors do not reach these registers. Where k runs in blocks they
// come from and go to where partial sums lie.
//
//   for panels of the task, two at a time         rows come outermost where all panels wait in the first-level cache
//     for rows of the task, up to 32 at a time
//       sums = 0
//       for outer k, for 16 groups of the innermost k: load A, load B, multiply; rows of the last block's epilogue
//       store the sums
//   the last epilogue
//
// Vectors wait for a block's sums until its last product is done, and an epilogue is longer than what a processor looks
// ahead. So sums have two places in turn, and a block's epilogue runs row by row between the products of the next one:
// of 4 and more steps little of it is seen.
//
// Ends. How many rows and bytes of a row each register has is said by a configuration of 64 bytes. Loading it clears
// all registers and takes as long as ten products, so a task has one: its blocks have as many rows each, the fewest of
// which there are as few blocks, and the last one begins as many rows before the end. It computes some rows of the one
// before again, whose epilogue it leaves out. Partial sums of blocks of k cannot be added twice: there blocks have 32
// rows, and the last ones a configuration of their own. Where no depth of 9 to 16 groups divides the innermost k, its
// last groups are multiplied from copies that end in zeros.
//
// Rows of A that do not lie a fixed step apart (windows over images) are copied for all columns of a task
// (CpuContractionMatrixRows.cpp); where k runs in blocks or is told by a run, 64 bytes of each on the way.
//
// A few rows read a weight as fast with vectors as memory gives it. Where a run says how many rows there are the kernel
// has both, and code of vectors for those few alone.
//
// Safety. The registers are the thread's. The state is released before the kernel returns, so that no caller sees it
// and no switch of context behind it saves it. The process's permission is asked for where the level is chosen
// (runtime/src/cpu.c).
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionMatrix.h"
#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuContractionEpilogue.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t matrixRows = 16, wordBytes = 4; // of a register
static constexpr int64_t matrixBytes = matrixRows * matrixRowBytes;
static constexpr int64_t fewestGroups = 9;       // of a step
static constexpr int64_t firstA = 4, firstB = 6; // registers; sums are 0 to 3
static constexpr int64_t tallest = 2 * matrixRows, registersOfSums = 4;
static constexpr int64_t widestShort = 4; // panels beside one row of registers
static constexpr int64_t nearBytes = 32 << 10;
static constexpr int64_t fewestMeetings = 8; // of a weight that are not worth to be fetched for

bool ContractionEmission::sumsInMatrix() {
  bool isSum = accumulator.isF32() ? f.group == 2 : accumulator.isInteger(32) && f.group == 4;
  bool readsRows = f.lhs.readsMemory() || f.lhs.form == LhsForm::PackedRows;
  return e.level.hasMatrixRegisters && f.isDot() && isSum && readsRows && !convertsWeight() && f.mDims > 0 &&
         i.asConstant(m).value_or(fewestInMatrix) >= fewestInMatrix;
}

/// The loops over k of such sums.
static SmallVector<KLoop> listLoops(const ContractionForm &f, const MatrixRows &copies) {
  if (!copies.getCopies())
    return f.kLoops;
  Expr one = Expr::constant(f.op->getContext(), 1);
  if (copies.areOfPixels()) {
    SmallVector<KLoop> loops(f.kLoops);
    for (auto [own, step] : llvm::zip(loops, f.copies.steps))
      own.aStride = one * (step * f.copies.pitch);
    return loops;
  }
  return {{.dim = -1, .extent = f.k.floorDiv(f.group), .aStride = one * f.group, .bStride = one}};
}

/// Bytes from a row of A to the next; null where that is not fixed.
static Value fixedRowStride(ContractionEmission &c) {
  InvariantBuilder &i = c.i;
  const ContractionForm &f = c.f;
  Value bytes = i.constant(f.lhs.elementBytes());
  if (f.lhs.form == LhsForm::PackedRows)
    return i.mul(c.value(f.scratch.lhsPitch), bytes);
  std::optional<int64_t> step = stepInPlace(f);
  return step ? i.mul(i.constant(*step), bytes) : Value();
}

namespace {

/// Of the block whose epilogue is delayed: its rows from the next on, what is the first of its sums, where these begin
/// in scratch (in words), and its first column.
enum class Field { Next, Last, Origin, Sums, Column };

Value fieldOf(KernelEmitter &e, Value slot, Field field) {
  return e.getAddress(slot, e.builder.getI64Type(), e.constant(int64_t(field)));
}

/// The products of one block of a task.
class MatrixBlock {
public:
  MatrixBlock(ContractionEmission &c, MatrixRows &copies, const MatrixSlots &slots, const ContractionTask &task,
              Value kLower, Value kUpper)
      : c(c), e(c.e), f(c.f), i(c.i), task(task), copies(copies), slots(slots), loops(listLoops(f, copies)),
        kLower(kLower), kUpper(copies.getCopies() ? c.value(loops.front().extent) : kUpper) {
    firstRow = copies.areOfPixels() ? copies.pixelOf(task.firstRow) : task.firstRow;
    count = copies.areOfPixels() ? copies.pixelsOf(task) : task.rows;
    end = i.add(firstRow, count);
    blocks = i.floorDiv(i.add(count, i.constant(tallest - 1)), i.constant(tallest), true);
    isNear = hasNearPanels();
    chooseStep();
    pitch = i.mul(c.sumsPitch, i.constant(wordBytes));
    byte = e.builder.getI8Type();
  }
  void emit();
  void emitPartial();

private:
  struct Shape {
    int64_t matrices, panels; // rows of registers, columns of them
    int64_t sum(int64_t row, int64_t column) const { return row * 2 + column; }
  };
  void chooseStep();
  bool hasNearPanels();
  // All of k.
  void configure();
  void emitBlocks(int64_t matrices);
  void emitBlock(Shape shape, Value number, Value panel);
  /// Whether a block's epilogue runs between the products of the next one.
  bool isDelayed(Shape shape) const { // squares of many rows are turned
    return !f.turns && shape.matrices * shape.panels == registersOfSums && stepsOfBlock() > 0;
  }
  int64_t stepsOfBlock() const; // 0: not known
  /// So many rows, at most, of the epilogue that is delayed.
  void emitPiece(Shape shape, int64_t mostRows);
  /// Rows [next, last), or those of such pixels, of which `origin` has the first sums.
  struct RowsOfSums {
    Value next, last, origin;
  };
  void emitEpilogue(Shape shape, Value sums, RowsOfSums rows, Value column);
  Value loadOf(Field field) { return e.createLoad(e.builder.getI64Type(), 1, fieldOf(e, slots.delayed, field)); }
  // A block of k.
  void emitPartialBlock(Value row, Value panel, int64_t width);

  void emitSums(Shape shape, Value row, Value height, Value number, Value panel, Value sums);
  void setRows(Shape shape, Value row);
  void emitNest(Shape shape, unsigned depth, SmallVector<Value> outer, Value panels);
  void emitInnermost(Shape shape, ArrayRef<Value> outer, Value panels);
  void emitLast(Shape shape, Value k, Value count, Value panels);
  void chooseFetched(Value number);
  void fetchNext(Shape shape, Value panelRow);
  void loadRows(int64_t matrix, Value k);
  void multiply(Shape shape, llvm::function_ref<void(int64_t)> loadB);
  void forEachRow(int64_t matrix, llvm::function_ref<void(Value address, Value slot)> body);
  Value at(Value address, Value bytes) { return e.getAddress(address, byte, bytes); }
  Value aOffset(Value k) {
    return i.mul(i.mul(k, c.value(loops.back().aStride)), i.constant(loop::getElementBytes(f.lhs.element)));
  }
  Value bOffset(Value k, const KLoop &kLoop) { // a row of B is a row of a register
    return i.mul(i.mul(k, c.value(kLoop.bStride)), i.constant(matrixRowBytes));
  }
  Value panelBytes() { return i.mul(c.panelWords(), i.constant(wordBytes)); }

  ContractionEmission &c;
  KernelEmitter &e;
  ContractionForm &f;
  InvariantBuilder &i;
  const ContractionTask &task;
  MatrixRows &copies;
  const MatrixSlots &slots;
  SmallVector<KLoop> loops;
  Value firstRow, count, end; // of the task, or of pixels that its windows begin with
  Value blocks, height;       // so many, of as many rows each
  Value kLower, kUpper, pitch;
  Type byte;
  bool isWhole = false;    // steps divide all of the innermost loop
  bool isNear = false;     // all panels of the task are in the first-level cache
  int64_t rowsOfPiece = 0; // of the epilogue that is delayed, behind each step
  // Of the rows that are multiplied:
  Value rows, stride; // how many; bytes from one to the next, null: not fixed
  std::function<SmallVector<Value>(ValueRange)> addressesAt;
  SmallVector<Value> addresses;   // of the first row, or of each
  Value firstFetched, endFetched; // of the lines of a step's B: those of the next panels that they fetch
};

} // namespace

/// Calls an instruction on registers.
static void callMatrix(KernelEmitter &e, StringRef name, ArrayRef<int64_t> registers, ArrayRef<Value> operands = {}) {
  SmallVector<Value> all;
  for (int64_t number : registers)
    all.push_back(e.invariants.constant(cast<TypedAttr>(e.builder.getI8IntegerAttr(int8_t(number)))));
  llvm::append_range(all, operands);
  LLVM::CallIntrinsicOp::create(e.builder, e.loc, e.builder.getStringAttr(("llvm.x86." + name).str()), all);
}

/// Groups that a step takes, so that steps divide the innermost loop; or 16.
static int64_t groupsOfStep(const ContractionForm &f, ArrayRef<KLoop> loops) {
  auto extent = loops.back().extent.asConstant(), block = f.blocks.kSize.asConstant();
  bool isCut = f.blocks.isSplitK() && loops.size() == 1;
  if (!extent || *extent == 0 || (isCut && !block))
    return matrixRowGroups;
  int64_t unit = isCut ? std::gcd(*extent, *block) : *extent;
  if (unit <= matrixRowGroups)
    return isCut ? matrixRowGroups : unit;
  for (int64_t groups = matrixRowGroups; groups >= fewestGroups; --groups)
    if (unit % groups == 0)
      return groups;
  return matrixRowGroups;
}

void MatrixBlock::chooseStep() {
  auto extent = loops.back().extent.asConstant(), block = f.blocks.kSize.asConstant();
  bool isCut = f.blocks.isSplitK() && loops.size() == 1;
  isWhole = extent && *extent % slots.groups == 0 && (!isCut || (block && *block % slots.groups == 0));
}

/// The configuration of registers of which the first row of sums has `first` rows, the second `second`.
static void storeConfiguration(KernelEmitter &e, Value slot, int64_t groups, Value first, Value second) {
  InvariantBuilder &i = e.invariants;
  int64_t sums = matrixRowBytes, a = groups * wordBytes;
  Value rows = i.add(i.add(i.mul(first, i.constant(0x0000000100000101)), i.mul(second, i.constant(0x0000010001010000))),
                     i.constant(groups * 0x0101000000000000));
  std::pair<int64_t, Value> words[] = {
      {0, i.constant(1)},                                                     // the palette
      {8, i.constant(0)},                                                     // row to start at
      {16, i.constant(sums * 0x0001000100010001)},                            // bytes of a row: sums
      {24, i.constant(a * 0x0000000000010001 + (sums << 32) + (sums << 48))}, // A, B
      {32, i.constant(0)},
      {40, i.constant(0)},
      {48, rows},
      {56, i.constant(0)},
  };
  for (auto [offset, word] : words)
    e.createStore(word, e.getAddress(slot, e.builder.getI8Type(), i.constant(offset)));
}

MatrixEmission::MatrixEmission(ContractionEmission &contraction)
    : ContractionTechnique(contraction), rows(contraction) {
  slots.groups = groupsOfStep(f, listLoops(f, rows));
  for (Value *slot : {&slots.whole, &slots.tail, &slots.delayed})
    *slot = e.createStackSlot(matrixRowBytes);
  for (Field field : {Field::Next, Field::Last, Field::Origin, Field::Sums, Field::Column})
    e.createStore(i.constant(0), fieldOf(e, slots.delayed, field));
  slots.height = e.createStackSlot(wordBytes * 2);
  e.createStore(i.constant(0), slots.height);
  slots.a = e.createStackSlot(2 * matrixBytes);
  slots.b = e.createStackSlot(2 * matrixBytes);
  storeConfiguration(e, slots.whole, slots.groups, i.constant(matrixRows), i.constant(matrixRows));
}

void MatrixEmission::release() { callMatrix(e, "tilerelease", {}); }

void MatrixEmission::emitBlock(const ContractionTask &task, Value kLower, Value kUpper) {
  MatrixBlock block(c, rows, slots, task, kLower, kUpper);
  f.blocks.isSplitK() ? block.emitPartial() : block.emit();
}

/// Whether all panels of a task stay in the first-level cache. Then rows come outermost, and what the epilogue reads
/// and writes of one is met once, not as often as there are panels.
bool MatrixBlock::hasNearPanels() {
  auto words = i.asConstant(c.panelWords()), panels = i.asConstant(c.panels), blocks = i.asConstant(c.nBlocks);
  return words && panels && blocks && !f.blocks.isSplitK() &&
         llvm::divideCeil(*panels, *blocks) * *words * wordBytes <= nearBytes;
}

//===----------------------------------------------------------------------===//
// Blocks with all of k
//===----------------------------------------------------------------------===//

void MatrixBlock::configure() {
  Value sixteen = i.constant(matrixRows), most = i.max(blocks, i.constant(1));
  height = i.max(i.floorDiv(i.add(count, i.sub(most, i.constant(1))), most, true), i.constant(1));
  Value held = e.createLoad(e.builder.getI64Type(), 1, slots.height);
  c.emitIf(i.compare(arith::CmpIPredicate::ne, held, height), [&] {
    Value isTwo = i.compare(arith::CmpIPredicate::sgt, height, sixteen);
    storeConfiguration(e, slots.tail, slots.groups, i.min(height, sixteen),
                       i.select(isTwo, i.sub(height, sixteen), height));
    callMatrix(e, "ldtilecfg", {}, {slots.tail});
    e.createStore(height, slots.height);
  });
}

void MatrixBlock::emit() {
  configure();
  auto [fewest, most] = copies.rowsOfTasks();
  if (fewest > matrixRows)
    return emitBlocks(2);
  Value sixteen = i.constant(matrixRows);
  if (most > matrixRows)
    c.emitIf(i.compare(arith::CmpIPredicate::sgt, count, sixteen), [&] { emitBlocks(2); });
  c.emitIf(i.compare(arith::CmpIPredicate::sle, count, sixteen), [&] { emitBlocks(1); });
}

void MatrixBlock::emitBlocks(int64_t matrices) {
  auto panels = i.asConstant(c.panels);
  SmallVector<int64_t> widths{2};
  if (matrices == 1 && panels.value_or(widestShort) >= widestShort)
    widths.insert(widths.begin(), widestShort);
  if (!panels || *panels % matrixUnitPanels)
    widths.push_back(1);
  bool isOnly = isNear && widths.size() == 1;                           // no block of another width comes between
  e.createStore(i.constant(0), fieldOf(e, slots.delayed, Field::Sums)); // another shape's may lie elsewhere
  auto forEachNumber = [&](llvm::function_ref<void(Value number)> body) { c.loop(i.constant(0), blocks, 1, body); };
  auto forEachPanels = [&](llvm::function_ref<void(Shape shape, Value panel)> body) {
    Value from = task.firstPanel;
    for (int64_t width : widths) {
      Shape shape{matrices, width};
      Value whole = i.floorDiv(i.sub(task.endPanel, from), i.constant(width), true);
      Value to = i.add(from, i.mul(whole, i.constant(width)));
      c.loop(from, to, width, [&](Value panel) { body(shape, panel); });
      from = to;
      if (isDelayed(shape) && !isOnly)
        emitPiece(shape, tallest);
    }
  };
  if (!isNear)
    return forEachPanels(
        [&](Shape shape, Value panel) { forEachNumber([&](Value number) { emitBlock(shape, number, panel); }); });
  forEachNumber(
      [&](Value number) { forEachPanels([&](Shape shape, Value panel) { emitBlock(shape, number, panel); }); });
  if (isOnly && isDelayed({matrices, widths.front()}))
    emitPiece({matrices, widths.front()}, tallest);
}

int64_t MatrixBlock::stepsOfBlock() const {
  int64_t steps = loops.back().extent.asConstant().value_or(0) / slots.groups;
  for (const KLoop &outer : ArrayRef(loops).drop_back())
    steps *= outer.extent.asConstant().value_or(0);
  return steps;
}

void MatrixBlock::emitBlock(Shape shape, Value number, Value panel) {
  Value row = i.add(firstRow, i.mul(number, height)), first = i.min(row, i.sub(end, height));
  Value last = i.min(i.add(row, height), end), column = i.mul(panel, i.constant(panelWidth)), sums = i.constant(0);
  if (isDelayed(shape)) { // beside those of the block before
    int64_t place = shape.matrices == 1 ? matrixRows : 0, column = place ? 0 : shape.panels * panelWidth;
    Value apart = i.add(i.mul(c.sumsPitch, i.constant(place)), i.constant(column));
    sums = i.sub(apart, loadOf(Field::Sums));
    rowsOfPiece = llvm::divideCeil(shape.matrices * matrixRows, stepsOfBlock());
  }
  emitSums(shape, first, height, number, panel, e.getAddress(c.sums, c.accumulator, sums));
  rowsOfPiece = 0;
  if (copies.areOfPixels()) {
    row = copies.firstRowAt(row);
    last = copies.firstRowAt(last);
  }
  if (!isDelayed(shape))
    return emitEpilogue(shape, sums, {row, last, first}, column);
  std::pair<Field, Value> fields[] = {
      {Field::Next, row}, {Field::Last, last}, {Field::Origin, first}, {Field::Sums, sums}, {Field::Column, column}};
  for (auto [field, value] : fields)
    e.createStore(value, fieldOf(e, slots.delayed, field));
}

void MatrixBlock::emitPiece(Shape shape, int64_t mostRows) {
  Value next = loadOf(Field::Next), last = i.min(i.add(next, i.constant(mostRows)), loadOf(Field::Last));
  emitEpilogue(shape, loadOf(Field::Sums), {next, last, loadOf(Field::Origin)}, loadOf(Field::Column));
  e.createStore(last, fieldOf(e, slots.delayed, Field::Next));
}

void MatrixBlock::emitEpilogue(Shape shape, Value sums, RowsOfSums rows, Value column) {
  bool isFull = i.asConstant(c.n).value_or(1) % panelWidth == 0;
  Value stop = i.add(column, i.constant(shape.panels * panelWidth)), columnEnd = isFull ? stop : i.min(stop, c.n);
  Value count = i.sub(rows.last, rows.next), address = e.getAddress(c.sums, c.accumulator, sums);
  if (copies.areOfPixels())
    return c.epilogue->emitOnSums(task, address, rows.next, count, column, columnEnd,
                                  [&](Value row) { return i.sub(copies.pixelOf(row), rows.origin); });
  address = e.getAddress(address, c.accumulator, i.mul(i.sub(rows.next, rows.origin), c.sumsPitch));
  c.epilogue->emitOnSums(task, address, rows.next, count, column, columnEnd);
}

//===----------------------------------------------------------------------===//
// A block of k
//===----------------------------------------------------------------------===//

void MatrixBlock::emitPartial() {
  Value left = i.mod(count, i.constant(tallest), true), sixteen = i.constant(matrixRows);
  Value first = i.min(left, sixteen), isTwo = i.compare(arith::CmpIPredicate::sgt, left, sixteen);
  c.emitIf(i.compare(arith::CmpIPredicate::sgt, left, i.constant(0)), [&] {
    storeConfiguration(e, slots.tail, slots.groups, first, i.select(isTwo, i.sub(left, sixteen), left));
  });
  Value isShort = i.compare(arith::CmpIPredicate::sle, count, sixteen);
  Value isLong = i.compare(arith::CmpIPredicate::sge, count, i.constant(tallest)), from = task.firstPanel;
  for (int64_t width : {widestShort, int64_t(2), int64_t(1)}) {
    Value whole = i.mul(i.floorDiv(i.sub(task.endPanel, from), i.constant(width), true), i.constant(width));
    if (width == widestShort)
      whole = i.select(isShort, whole, i.constant(0));
    Value to = i.add(from, whole);
    c.loop(from, to, width, [&](Value panel) {
      if (width != widestShort)
        c.emitIf(isLong, [&] { callMatrix(e, "ldtilecfg", {}, {slots.whole}); });
      c.loop(firstRow, end, tallest, [&](Value row) { emitPartialBlock(row, panel, width); });
    });
    from = to;
  }
}

void MatrixBlock::emitPartialBlock(Value row, Value panel, int64_t width) {
  Value sixteen = i.constant(matrixRows), most = i.constant(tallest), left = i.min(i.sub(end, row), most);
  Value local = i.sub(row, firstRow), number = i.floorDiv(local, most, true);
  Value column = i.mul(i.sub(panel, task.firstPanel), i.constant(panelWidth));
  Value sums = e.getAddress(c.sums, c.accumulator, i.add(i.mul(local, c.sumsPitch), column));
  Value isLast = i.compare(arith::CmpIPredicate::slt, left, most);
  if (width != widestShort) { // there are more than 16 rows
    c.emitIf(i.compare(arith::CmpIPredicate::eq, left, most),
             [&] { emitSums({2, width}, row, most, number, panel, sums); });
    c.emitIf(i.logicalAnd(isLast, i.compare(arith::CmpIPredicate::sgt, left, sixteen)), [&] {
      callMatrix(e, "ldtilecfg", {}, {slots.tail});
      emitSums({2, width}, row, left, number, panel, sums);
    });
  }
  c.emitIf(i.compare(arith::CmpIPredicate::sle, left, sixteen), [&] {
    callMatrix(e, "ldtilecfg", {}, {slots.tail});
    emitSums({1, width}, row, left, number, panel, sums);
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A block of rows fetches its share of the next panels, in as many parts as it has steps: a weight that other launches
/// have driven out of the second-level cache comes while the matrices are busy. Of many rows the first would fetch all,
/// and it is little beside them; of many blocks of rows all but the first would ask for what is there.
void MatrixBlock::chooseFetched(Value number) {
  auto known = i.asConstant(c.m), cut = i.asConstant(c.mBlocks);
  auto words = i.asConstant(c.panelWords()), panels = i.asConstant(c.panels);
  bool isMet = cut && *cut >= fewestMeetings && words && panels && *words * *panels * wordBytes < leastStreamed;
  if (isNear || isMet || (known && cut && *known > *cut * tallest * slots.groups))
    return;
  Value groups = i.constant(slots.groups), most = i.max(blocks, i.constant(1));
  Value share = i.floorDiv(i.add(groups, i.sub(most, i.constant(1))), most, true);
  firstFetched = i.min(i.mul(number, share), groups);
  endFetched = i.min(i.add(firstFetched, share), groups);
}

void MatrixBlock::fetchNext(Shape shape, Value panelRow) {
  Value next = at(panelRow, i.mul(panelBytes(), i.constant(shape.panels)));
  c.loop(firstFetched, endFetched, 1, [&](Value line) {
    for (int64_t b = 0; b < shape.panels; ++b) {
      Value offset = i.add(i.mul(panelBytes(), i.constant(b)), i.mul(line, i.constant(matrixRowBytes)));
      createPrefetch(e, at(next, offset));
    }
  });
}

void MatrixBlock::emitSums(Shape shape, Value row, Value height, Value number, Value panel, Value sums) {
  rows = height;
  setRows(shape, row);
  chooseFetched(number);
  auto forEachSum = [&](llvm::function_ref<void(int64_t sum, Value address)> body) {
    for (int64_t a = 0; a < shape.matrices; ++a)
      for (int64_t b = 0; b < shape.panels; ++b)
        body(shape.sum(a, b),
             at(sums, i.add(i.mul(pitch, i.constant(a * matrixRows)), i.constant(b * matrixRowBytes))));
  };
  forEachSum([&](int64_t sum, Value address) {
    f.blocks.isSplitK() ? callMatrix(e, "tileloadd64", sum, {address, pitch}) : callMatrix(e, "tilezero", sum);
  });
  emitNest(shape, 0, {}, c.panelAddress(task, panel, kLower));
  forEachSum([&](int64_t sum, Value address) { callMatrix(e, "tilestored64", sum, {address, pitch}); });
}

void MatrixBlock::setRows(Shape shape, Value row) {
  if (!copies.getCopies()) {
    stride = fixedRowStride(c);
    RowClass lines{.height = stride ? 1 : shape.matrices * matrixRows};
    addressesAt = c.rowAddresses(task, lines, row);
    return;
  }
  stride = i.constant(f.copies.pitch * f.lhs.elementBytes());
  Value start = copies.areOfPixels() ? copies.startOfLine(firstRow) : firstRow;
  Value first = at(copies.getCopies(), i.mul(i.sub(row, start), stride));
  addressesAt = [=, this](ValueRange outer) {
    Value offset = i.constant(0);
    for (auto [at, own] : llvm::zip(outer, loops))
      offset = i.add(offset, i.mul(at, c.value(own.aStride)));
    return SmallVector<Value>{e.getAddress(first, f.lhs.element, offset)};
  };
}

void MatrixBlock::emitNest(Shape shape, unsigned depth, SmallVector<Value> outer, Value panels) {
  if (depth + 1 == loops.size())
    return emitInnermost(shape, outer, panels);
  const KLoop &kLoop = loops[depth];
  c.loop(depth ? i.constant(0) : kLower, depth ? c.value(kLoop.extent) : kUpper, 1, [&](Value k) {
    SmallVector<Value> inner(outer);
    inner.push_back(k);
    emitNest(shape, depth + 1, inner, at(panels, bOffset(k, kLoop)));
  });
}

/// Each row that there is, with its place in the copy of A.
void MatrixBlock::forEachRow(int64_t matrix, llvm::function_ref<void(Value address, Value slot)> body) {
  Value first = i.constant(matrix * matrixRows);
  if (!stride) {
    for (int64_t r = 0; r < matrixRows; ++r) {
      Value slot = at(slots.a, i.constant((matrix * matrixRows + r) * matrixRowBytes));
      body(addresses[matrix * matrixRows + r], slot);
    }
    return;
  }
  c.loop(first, i.min(rows, i.constant((matrix + 1) * matrixRows)), 1, [&](Value r) {
    body(at(addresses.front(), i.mul(r, stride)), at(slots.a, i.mul(r, i.constant(matrixRowBytes))));
  });
}

void MatrixBlock::loadRows(int64_t matrix, Value k) {
  Value first = at(addresses.front(), i.mul(stride, i.constant(matrix * matrixRows)));
  callMatrix(e, "tileloadd64", firstA + matrix, {at(first, aOffset(k)), stride});
}

void MatrixBlock::multiply(Shape shape, llvm::function_ref<void(int64_t)> loadB) {
  StringRef name = isa<FloatType>(c.accumulator) ? "tdpbf16ps" : "tdpbusd";
  for (int64_t b = 0; b < shape.panels; ++b) {
    loadB(b);
    for (int64_t a = 0; a < shape.matrices; ++a)
      callMatrix(e, name, {shape.sum(a, b), firstA + a, firstB + b % 2});
  }
}

void MatrixBlock::emitInnermost(Shape shape, ArrayRef<Value> outer, Value panels) {
  addresses = addressesAt(outer);
  if (!stride) // rows that there are not are the first one
    for (auto [r, address] : llvm::enumerate(addresses))
      address = i.get<arith::SelectOp>(i.compare(arith::CmpIPredicate::slt, i.constant(int64_t(r)), rows), address,
                                       addresses[0]);
  bool isOnly = loops.size() == 1;
  Value lower = isOnly ? kLower : i.constant(0), upper = isOnly ? kUpper : c.value(loops.back().extent);
  Value groups = i.constant(slots.groups), span = i.sub(upper, lower);
  Value last = isWhole ? i.constant(0) : i.mod(span, groups, true), middle = i.sub(upper, last);
  c.loop(lower, middle, slots.groups, [&](Value k) {
    for (int64_t a = 0; a < shape.matrices; ++a) {
      if (stride) {
        loadRows(a, k);
        continue;
      }
      Value mask =
          slots.groups < matrixRowGroups ? e.laneMask(i.constant(slots.groups * wordBytes), matrixRowBytes) : Value();
      forEachRow(a, [&](Value address, Value slot) {
        e.createStore(e.createLoad(byte, matrixRowBytes, at(address, aOffset(k)), mask), slot);
      });
      callMatrix(e, "tileloadd64", firstA + a, {at(slots.a, i.constant(a * matrixBytes)), i.constant(matrixRowBytes)});
    }
    Value panelRow = at(panels, bOffset(k, loops.back()));
    if (firstFetched)
      fetchNext(shape, panelRow);
    multiply(shape, [&](int64_t b) {
      Value panel = at(panelRow, i.mul(panelBytes(), i.constant(b)));
      callMatrix(e, "tileloadd64", firstB + b % 2, {panel, i.constant(matrixRowBytes)});
    });
    if (rowsOfPiece)
      emitPiece(shape, rowsOfPiece);
  });
  if (!isWhole)
    c.emitIf(i.compare(arith::CmpIPredicate::sgt, last, i.constant(0)), [&] { emitLast(shape, middle, last, panels); });
}

/// Fewer groups than a step takes, from copies that end in zeros.
void MatrixBlock::emitLast(Shape shape, Value k, Value count, Value panels) {
  Value mask = e.laneMask(i.mul(count, i.constant(wordBytes)), matrixRowBytes);
  for (int64_t a = 0; a < shape.matrices; ++a) {
    if (copies.getCopies()) { // they end in zeros
      loadRows(a, k);
      continue;
    }
    forEachRow(a, [&](Value address, Value slot) {
      e.createStore(e.createLoad(byte, matrixRowBytes, at(address, aOffset(k)), mask), slot);
    });
    callMatrix(e, "tileloadd64", firstA + a, {at(slots.a, i.constant(a * matrixBytes)), i.constant(matrixRowBytes)});
  }
  Value panelRow = at(panels, bOffset(k, loops.back())), bytes = i.constant(matrixRowBytes);
  Value zero = i.constant(cast<TypedAttr>(e.builder.getZeroAttr(VectorType::get(matrixRowBytes, byte))));
  multiply(shape, [&](int64_t b) {
    Value copy = at(slots.b, i.constant(b % 2 * matrixBytes)), panel = at(panelRow, i.mul(panelBytes(), i.constant(b)));
    c.loop(i.constant(0), count, 1, [&](Value g) {
      e.createStore(e.createLoad(byte, matrixRowBytes, at(panel, i.mul(g, bytes))), at(copy, i.mul(g, bytes)));
    });
    c.loop(count, i.constant(slots.groups), 1, [&](Value g) { e.createStore(zero, at(copy, i.mul(g, bytes))); });
    callMatrix(e, "tileloadd64", firstB + b % 2, {copy, bytes});
  });
}
