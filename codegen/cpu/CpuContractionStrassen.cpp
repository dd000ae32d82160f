//===- CpuContractionStrassen.cpp - seven products in place of eight ------===//
//
// Problem. Large products run at the speed of the multiply-add units. Only fewer multiplications are faster.
//
// Idea. One level of Strassen's algorithm (ir/loop/Strassen.h) within a tile whose quarters are what registers hold: 14
// rows by two panels of 512-bit vectors, six by one panel of 256-bit ones. Each of the seven products is a register
// tile over half of the terms, with sums in memory. What the quarters' sums and differences cost:
//
//   A   copies in scratch, [row tile][quarter or sum][row][term / 2], made once for all columns of a thread
//   B   wide tiles make them in registers, in each product anew: two loads and an addition for each vector of B.
//       Processors of AMD add beside their multiply-adds, so that only the loads show. Narrow tiles use a vector of B
//       for half as many rows, and the loads would be what binds: the first tile of a rectangle stores what it makes,
//       and those below it read that
//   C   a dozen additions of a quarter for 7 K/2 steps
//
// Wide: from 32 rows and 192 columns and terms on a product takes 0.88 to 0.97 of the time (Zen 4). Narrow: from
// leastStored on 0.92 to 0.97 on an Intel Xeon, whose second-level cache (2 MB) holds the copies of A; from
// leastBesideStreams on 0.96 to 0.99 on a Zen 3 (512 KB). What is stored pays for itself in the tiles below.
//
// Sums of A copied beside, made in registers they would be two loads for each multiply-add's one. Sums of B that wide
// tiles read from memory were slower: 0.95 to 1.06 of the plain time.
//
// Rows. Norms of rows that meet must be finite, and within a factor of each other. A tile's pairs are asked when it is
// copied, over all of k; where one is not, the tile is computed plainly, and so is a last tile of an odd number of
// rows. Tiles are those of all rows, however these are shared out (CpuContractionRectangles.cpp), so results do not
// depend on threads.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuContractionEpilogue.h"
#include "codegen/cpu/ScratchLayout.h"
#include "ir/loop/Strassen.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

using loop::strassenTerms;

/// What is copied of A: two quarters, and the five sums in the order of the products that they belong to.
enum Copy : int64_t { Upper, Lower, Diagonal, LowerTerms, UpperTerms, Rows, OddTerms, copies };

namespace {
/// Of a level: rows and panels of a quarter, rows of a last tile of an odd number of rows, products that fetch what is
/// behind the tile, blocks of k that are taken as one, whether sums of B are stored, and what the sides of a tile take.
struct StrassenTile {
  int64_t rows, panels, lastRows, fetching, blocksTogether;
  bool storesSums;
  SidesOfTile sides;

  constexpr int64_t panelsOfTile() const { return 2 * panels; }
};

/// Products with fewer elements in all rows, rows of a task, columns or terms of a block are faster without the
/// algorithm.
struct LeastProduct {
  int64_t elements, rowsOfTask, columns, terms;
};
} // namespace

/// 28 vectors of sums of 32 registers, or 12 of 16. Sums of several blocks of k are added up in memory: wide tiles do
/// so less often, narrow ones store the sums of B's quarters of one block.
static constexpr StrassenTile wideTile{.rows = 14,
                                       .panels = 2,
                                       .lastRows = 13,
                                       .fetching = 4,
                                       .blocksTogether = 2,
                                       .storesSums = false,
                                       .sides = {.rows = 1, .columns = 0.75}};
static constexpr StrassenTile narrowTile{.rows = 6,
                                         .panels = 1,
                                         .lastRows = 5,
                                         .fetching = 7,
                                         .blocksTogether = 1,
                                         .storesSums = true,
                                         .sides = {.rows = 1, .columns = 0.5}};
static_assert(wideTile.panels * panelWidth == loop::strassenColumns[1] &&
              narrowTile.panels * panelWidth == loop::strassenColumns[0] &&
              wideTile.panelsOfTile() * panelWidth == loop::strassenUnit);

/// Where sums are stored; the first of processors that follow streams, whose second-level caches are a quarter of those
/// that the second was measured with.
static constexpr LeastProduct leastBesideStreams{.elements = 128 * 768, .rowsOfTask = 64, .columns = 768, .terms = 640};
static constexpr LeastProduct leastStored{.elements = 96 * 384, .rowsOfTask = 48, .columns = 256, .terms = 256};

/// Products by a sum of B's quarters.
static constexpr int64_t sumsOfColumns = 5;

static const StrassenTile &tileOf(const CpuLevel &level) { return level.vectorBits > 256 ? wideTile : narrowTile; }

int64_t cpu::panelsOfStrassen(const CpuLevel &level) { return tileOf(level).panelsOfTile(); }

SidesOfTile cpu::sidesOfStrassen(const CpuLevel &level) { return tileOf(level).sides; }

int64_t cpu::blocksOfStrassen(const CpuLevel &level) { return tileOf(level).blocksTogether; }

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

bool cpu::permitsStrassen(const ContractionForm &form) {
  loop::PanelsOp panels = form.rhs.panels;
  return panels && panels->hasAttr(loop::strassenAttr);
}

/// Whether all products of the kernel, of which a later one may read what an earlier one's task has made, are cut
/// alike: they have the same rows, and weights of the same size that permit it.
static bool areCutAlike(const ContractionForm &form) {
  auto kernel = form.op->getParentOfType<loop::KernelOp>();
  if (!kernel)
    return true;
  return llvm::all_of(kernel.getBlock().getOps<loop::ContractionOp>(), [&](loop::ContractionOp other) {
    auto panels = dyn_cast<loop::PanelsOp>(other.getRhs().front().front());
    return other == form.op ||
           (panels && panels->hasAttr(loop::strassenAttr) &&
            other.getDomainAttr() == loop::ContractionOp(form.op).getDomainAttr() &&
            OperationEquivalence::isRegionEquivalentTo(&loop::ContractionOp(form.op).getLhs(), &other.getLhs(),
                                                       OperationEquivalence::IgnoreLocations));
  });
}

bool cpu::suitsStrassen(const ContractionForm &form) {
  if (!permitsStrassen(form) || !areCutAlike(form) || form.rhs.form != RhsForm::Panels || !form.accumulator.isF32() ||
      form.group != 1 || form.bits || form.kLoops.size() != 1 || form.turns)
    return false;
  auto m = form.m.asConstant(), n = form.n.asConstant(), k = form.k.asConstant();
  bool readsRows = form.lhs.form == LhsForm::InPlace || form.lhs.form == LhsForm::PackedRows;
  return readsRows && form.lhs.element.isF32() && form.kLoops.front().aStride.isConstant(1) && m && n && k &&
         *m >= 2 * wideTile.rows && *n % loop::strassenUnit == 0 && *k % strassenTerms == 0 &&
         form.blocks.kSize.asConstant().value_or(1) % strassenTerms == 0 && form.rhs.matrices == 0 && !form.taps.step &&
         (form.behind.panelUnit % wideTile.panelsOfTile() == 0 || wideTile.panelsOfTile() % form.behind.panelUnit == 0);
}

void cpu::layOutStrassen(ContractionForm &form, ScratchLayout &layout) {
  StrassenCopies &strassen = form.strassen;
  strassen.pitch = roundUp(form.k.floorDiv(2), strassenTerms) + panelWidth; // rows do not crowd sets
  Expr pairs = form.blocks.rowsMost.ceilDiv(2);
  strassen.at = layout.add(pairs * strassen.pitch * int64_t(copies), form.accumulatorBytes());
  strassen.statesAt = layout.add(roundUp(pairs, panelWidth), sizeof(int32_t)); // tiles are fewer
  Expr terms = form.blocks.isSplitK() ? form.blocks.kSize : form.k;
  strassen.columnsSize = terms.ceilDiv(2) * (narrowTile.panels * panelWidth);
  strassen.columnsAt = layout.add(strassen.columnsSize * sumsOfColumns, form.accumulatorBytes());
  strassen.hasColumnsAt = layout.add(Expr::constant(form.op.getContext(), 1), sizeof(int32_t));
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

bool cpu::takesStrassen(const ContractionForm &form, const CpuLevel &level) {
  if (!form.strassen.at || !level.hasFma || level.vectorBits < 256)
    return false;
  if (level.vectorBits > 256)
    return level.addsBesideProducts;
  const LeastProduct &least = level.followsStreams ? leastBesideStreams : leastStored;
  int64_t rows = form.m.getValue();
  return rows * form.k.getValue() >= least.elements && rows / form.blocks.m.getValue() >= least.rowsOfTask &&
         form.n.getValue() >= least.columns && form.blocks.kSize.getValue() >= least.terms;
}

bool ContractionEmission::takesStrassen() const { return !e.isStage && cpu::takesStrassen(f, e.level); }

/// In pairs of rows.
ContractionEmission::Parts ContractionEmission::splitPairs() {
  const StrassenTile &tile = tileOf(e.level);
  int64_t rows = *i.asConstant(m), last = rows % 2 ? tile.lastRows : 0, pairs = (rows - last) / 2;
  int64_t tiles = llvm::divideCeil(pairs, tile.rows);
  return {i.constant(tiles + (last ? 1 : 0)), i.constant(pairs / tiles * 2), i.constant(pairs % tiles)};
}

SmallVector<RowClass> ContractionEmission::classesOfPairs(const ContractionTask &task) {
  Parts parts = splitPairs();
  int64_t lastRows = tileOf(e.level).lastRows;
  int64_t rows = *i.asConstant(m), part = *i.asConstant(parts.part), larger = *i.asConstant(parts.larger);
  int64_t tiles = *i.asConstant(parts.tiles) - rows % 2;
  Value first = i.constant(larger), end = i.constant(tiles);
  SmallVector<RowClass> classes;
  if (larger)
    classes.push_back({part + 2, i.constant(0), task.firstTile, i.min(task.endTile, first)});
  classes.push_back({part, i.constant(2 * larger), i.max(task.firstTile, first), i.min(task.endTile, end)});
  if (rows % 2)
    classes.push_back(
        {lastRows, i.constant(rows - tiles * lastRows - lastRows), i.max(task.firstTile, end), task.endTile});
  return classes;
}

/// Which copies of a tile's rows scratch has: none; none that may be added, so that they are multiplied plainly; all.
enum State : int32_t { NotCopied, Plain, Added };

namespace {
/// A product: which copy of A, by which quarter of B (or two: b + sign * other), and the quarters of C that it is added
/// to, with a sign each. Quarters are numbered 11, 12, 21, 22. `continues`: the next product starts with its sums.
struct Product {
  Copy a;
  int64_t b, other, sign;
  SmallVector<std::pair<int64_t, int64_t>, 2> targets;
  bool continues = false;

  bool hasSum() const { return other >= 0; }
};

/// Tiles of seven products. What the copies of A in scratch hold is its own.
class StrassenEmission : ContractionTechnique {
public:
  using ContractionTechnique::ContractionTechnique;
  void forgetCopies(Value tiles);
  /// Copies the task's rows, which `pack` has computed if scratch is to have them, where that has not been done.
  void copyRows(const ContractionTask &task, llvm::function_ref<void(const ContractionTask &rows)> pack);
  void emitTile(const ContractionTask &task, const ContractionTile &tile);
  /// Whether the column tile's sums of B are stored.
  void noteColumns(bool areStored);

private:
  /// Where the copies of a tile begin, whose first row it is, or so many rows of them behind that.
  Value copyOf(const ContractionTask &task, Value row, Value copied);
  /// Where it is noted which copies that tile has.
  Value stateOf(const ContractionTask &task, Value tile) { return stateAt(i.sub(tile, task.firstHeldTile)); }
  Value stateAt(Value number) { return e.getAddress(c.scratchAt(f.strassen.statesAt), e.builder.getI32Type(), number); }
  Value wordOf(int32_t number) { return i.constant(cast<TypedAttr>(e.builder.getI32IntegerAttr(number))); }
  /// Whether that is in memory.
  Value isWord(Value address, int32_t number);
  SmallVector<Value> copyRowPair(Value upper, Value lower, Value target, Value pairs);
  /// Of the tile whose first row it is; returns whether all pairs are near.
  Value copyPairs(const ContractionTask &task, Value row, Value pairs);
  Value areNear(Value upper, Value lower);
  void fetchBesideQuarters(TileOperands &operands, const ContractionTask &task, const ContractionTile &tile,
                           int64_t product);
  TileOperands operandsOf(const ContractionTask &task, const ContractionTile &tile, const Product &product);
  /// Where the stored sum of that number would be if the loop stood at 0.
  Value storedSum(const ContractionTile &tile, int64_t number);
  void takeStored(TileOperands &operands, Value stored);
  Value sumsOfTile(const ContractionTask &task, const ContractionTile &tile);
  void addToSums(Value target, ValueRange tileSums, bool isFirst, bool isSubtracted);
  void multiplyQuarters(const ContractionTask &task, const ContractionTile &tile);
  void multiplyPlainly(const ContractionTask &task, const ContractionTile &tile);

  const StrassenTile &quarters = tileOf(e.level);
};

} // namespace

/// Of the pair that the row begins.
Value StrassenEmission::copyOf(const ContractionTask &task, Value row, Value copied) {
  Value pair = i.floorDiv(i.sub(row, task.firstHeld), i.constant(2), true), pitch = value(f.strassen.pitch);
  Value rows = i.add(i.mul(pair, i.constant(int64_t(copies))), copied);
  return e.getAddress(c.scratchAt(f.strassen.at), accumulator, i.mul(rows, pitch));
}

Value StrassenEmission::isWord(Value address, int32_t number) {
  Value word = e.createLoad(e.builder.getI32Type(), 1, address);
  return arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::eq, word, wordOf(number));
}

//===----------------------------------------------------------------------===//
// Copies of A
//===----------------------------------------------------------------------===//

/// Copies a row of the upper half and one of the lower, of so many pairs, and returns sums of the squares in each, by
/// lanes.
SmallVector<Value> StrassenEmission::copyRowPair(Value upper, Value lower, Value target, Value pairs) {
  OpBuilder &b = e.builder;
  SmallVector<Value> none(2, i.constant(cast<TypedAttr>(b.getZeroAttr(VectorType::get(lanes, accumulator)))));
  return e.createLoop(i.constant(0), c.k, 2 * lanes, none, [&](Value at, ValueRange squares) {
    SmallVector<Value> quarters, next(squares);
    for (size_t half : {0, 1}) {
      Value pieces[2];
      for (int64_t piece : {0, 1}) {
        Value address = e.getAddress(half ? lower : upper, accumulator, i.add(at, i.constant(piece * lanes)));
        pieces[piece] = e.createLoad(accumulator, lanes, address);
        next[half] = LLVM::FMAOp::create(b, e.loc, pieces[piece], pieces[piece], next[half]);
      }
      for (int32_t odd : {0, 1}) {
        SmallVector<int32_t> order;
        for (int32_t lane = 0; lane < lanes; ++lane)
          order.push_back(2 * lane + odd);
        quarters.push_back(LLVM::ShuffleVectorOp::create(b, e.loc, pieces[0], pieces[1], order));
      }
    }
    Value a11 = quarters[0], a12 = quarters[1], a21 = quarters[2], a22 = quarters[3];
    auto add = [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, e.loc, x, y); };
    auto subtract = [&](Value x, Value y) -> Value { return arith::SubFOp::create(b, e.loc, x, y); };
    Value place = i.floorDiv(at, i.constant(2), true), apart = i.mul(pairs, value(f.strassen.pitch));
    Value all[copies] = {a11, a22, add(a11, a22), add(a21, a22), add(a11, a12), subtract(a21, a11), subtract(a12, a22)};
    for (auto [copy, vector] : llvm::enumerate(all)) {
      Value offset = i.add(place, i.mul(i.constant(int64_t(copy)), apart));
      e.createStore(vector, e.getAddress(target, accumulator, offset));
    }
    return next;
  });
}

/// Whether rows with these squares may meet. What is no number is not below anything.
Value StrassenEmission::areNear(Value upper, Value lower) {
  OpBuilder &b = e.builder;
  auto number = [&](double value) { return i.constant(cast<TypedAttr>(b.getFloatAttr(accumulator, value))); };
  auto isBelow = [&](Value one, Value other) -> Value {
    return arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OLT, one, other);
  };
  Value most = number(loop::mostSquare), least = number(loop::leastSquare);
  Value factor = number(double(loop::mostApart * loop::mostApart));
  auto isWithin = [&](Value one, Value other) -> Value {
    return i.logicalAnd(i.logicalAnd(isBelow(one, most), isBelow(least, one)),
                        isBelow(one, arith::MulFOp::create(b, e.loc, other, factor)));
  };
  auto sumOf = [&](Value lanesOfSum) -> Value {
    auto sum = LLVM::vector_reduce_fadd::create(b, e.loc, accumulator, number(0), lanesOfSum);
    sum.setFastmathFlags(LLVM::FastmathFlags::reassoc);
    return sum;
  };
  Value x = sumOf(upper), y = sumOf(lower);
  return i.logicalAnd(isWithin(x, y), isWithin(y, x));
}

void StrassenEmission::forgetCopies(Value tiles) {
  auto type = VectorType::get(panelWidth, e.builder.getI32Type());
  Value none = i.constant(cast<TypedAttr>(DenseElementsAttr::get(type, int32_t(NotCopied))));
  loop(i.constant(0), tiles, panelWidth, [&](Value first) { e.createStore(none, stateAt(first)); });
}

Value StrassenEmission::copyPairs(const ContractionTask &task, Value row, Value pairs) {
  OpBuilder &b = e.builder;
  Value first = copyOf(task, row, i.constant(0)), yes = i.constant(cast<TypedAttr>(b.getBoolAttr(true)));
  auto copyPair = [&](Value local, ValueRange carried) -> SmallVector<Value> {
    RowClass single{.height = 1};
    Value upper = c.rowAddresses(task, single, i.add(row, local))({}).front();
    Value lower = c.rowAddresses(task, single, i.add(i.add(row, pairs), local))({}).front();
    Value target = e.getAddress(first, accumulator, i.mul(local, value(f.strassen.pitch)));
    SmallVector<Value> squares = copyRowPair(upper, lower, target, pairs);
    return {arith::AndIOp::create(b, e.loc, carried.front(), areNear(squares[0], squares[1]))};
  };
  return e.createLoop(i.constant(0), pairs, 1, ValueRange(yes), copyPair).front();
}

void StrassenEmission::copyRows(const ContractionTask &task, llvm::function_ref<void(const ContractionTask &)> pack) {
  loop(task.firstTile, task.endTile, 1, [&](Value tile) {
    Value row = c.startOfTile(tile), end = c.startOfTile(i.add(tile, i.constant(1))), state = stateOf(task, tile);
    emitIf(isWord(state, NotCopied), [&] {
      ContractionTask own = task;
      own.firstTile = tile;
      own.endTile = i.add(tile, i.constant(1));
      own.firstRow = row;
      own.rows = i.sub(end, row);
      pack(own);
      e.createStore(wordOf(Plain), state);
      auto copy = [&] {
        Value areNear = copyPairs(own, row, i.floorDiv(own.rows, i.constant(2), true));
        emitIf(areNear, [&] { e.createStore(wordOf(Added), state); });
      };
      if (*i.asConstant(c.m) % 2)
        emitIf(i.compare(arith::CmpIPredicate::ne, end, c.m), copy);
      else
        copy();
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Sums of two products that the same quarter takes stay in registers between them.
static SmallVector<Product> listProducts() {
  return {{.a = Lower, .b = 2, .other = 0, .sign = -1, .targets = {{2, 1}}, .continues = true}, // M4, then M4 + M7
          {.a = OddTerms, .b = 2, .other = 3, .sign = 1, .targets = {{0, 1}}},
          {.a = Diagonal, .b = 0, .other = 3, .sign = 1, .targets = {{0, 1}}, .continues = true}, // M1, then M1 + M6
          {.a = Rows, .b = 0, .other = 1, .sign = 1, .targets = {{3, 1}}},
          {.a = UpperTerms, .b = 3, .other = -1, .sign = 0, .targets = {{0, -1}, {1, 1}}},  // M5
          {.a = Upper, .b = 1, .other = 3, .sign = -1, .targets = {{1, 1}, {3, 1}}},        // M3
          {.a = LowerTerms, .b = 0, .other = -1, .sign = 0, .targets = {{2, 1}, {3, -1}}}}; // M2
}

/// Each product fetches a share of one of the panels behind the tile; those of the same panel as many bytes a step
/// each.
void StrassenEmission::fetchBesideQuarters(TileOperands &operands, const ContractionTask &task,
                                           const ContractionTile &tile, int64_t product) {
  if (product >= quarters.fetching)
    return;
  int64_t most = llvm::divideCeil(quarters.fetching, quarters.panelsOfTile()), panel = product / most;
  int64_t part = product % most, parts = std::min(most, quarters.fetching - panel * most);
  int64_t rowBytes = panelWidth * f.accumulatorBytes();
  Value sharers = i.mul(i.sub(task.endTile, task.firstTile), i.constant(parts));
  Value bytes = i.add(i.floorDiv(i.constant(rowBytes - 1), sharers, true), i.constant(1));
  ContractionEmission::PanelStep step = c.nextPanels(task, tile);
  Value panels = step.panels ? step.panels : i.constant(quarters.panelsOfTile()),
        rows = step.rows ? step.rows : i.constant(0);
  Value size = i.mul(c.panelWords(), i.constant(f.accumulatorBytes()));
  Value from =
      i.add(i.mul(i.add(panels, i.constant(panel)), size), i.mul(i.add(rows, tile.kLower), i.constant(rowBytes)));
  // Where the loop over k stands at 0.
  Value number = i.sub(tile.number, task.firstTile), span = i.sub(tile.kUpper, tile.kLower);
  Value before = i.add(i.mul(number, i.constant(parts)), i.constant(part));
  before = i.min(before, i.constant(rowBytes - 1)); // of a byte each: the last ones have none
  Value share = i.mul(i.sub(i.mul(span, before), tile.kLower), bytes);
  Value base = c.panelAddress(task, tile.panel, tile.kLower);
  operands.fetched = {hide(e, e.getAddress(base, e.builder.getI8Type(), i.add(from, share)))};
  // For each row that a step moves on by: of the panel two, of stored sums one.
  int64_t rowsOfStep = *i.asConstant(operands.loops.back().bStride) / panelWidth;
  operands.fetchedBytes = hide(e, i.mul(bytes, i.constant(2 / rowsOfStep)));
}

TileOperands StrassenEmission::operandsOf(const ContractionTask &task, const ContractionTile &tile,
                                          const Product &product) {
  TileOperands operands{.accumulator = accumulator, .aElement = accumulator, .bElement = accumulator};
  auto placeOf = [&](int64_t quarter) {
    return i.add(i.mul(c.panelWords(), i.constant(quarter % 2 * quarters.panels)),
                 i.constant(quarter / 2 * panelWidth));
  };
  Value base = c.panelAddress(task, tile.panel, tile.kLower), two = i.constant(2);
  operands.panels = e.getAddress(base, accumulator, placeOf(product.b));
  operands.panelStride = c.panelWords();
  if (product.hasSum())
    operands.addend = {.distance = i.sub(placeOf(product.other), placeOf(product.b)), .isSubtracted = product.sign < 0};
  operands.loops.push_back({.lower = i.floorDiv(tile.kLower, two, true),
                            .upper = i.floorDiv(tile.kUpper, two, true),
                            .aStride = i.constant(1),
                            .bStride = i.constant(2 * panelWidth)});
  Value rows = copyOf(task, tile.row, i.constant(product.a * tile.rows.height / 2));
  operands.rowAddresses = [=, this, count = tile.rows.height / 2](ValueRange) {
    return c.addressesApart(rows, accumulator, count, value(f.strassen.pitch));
  };
  return operands;
}

/// A term's columns follow those of the term before, from the block's first on.
Value StrassenEmission::storedSum(const ContractionTile &tile, int64_t number) {
  Value start = i.mul(value(f.strassen.columnsSize), i.constant(number));
  Value ofFirst = i.mul(i.floorDiv(tile.kLower, i.constant(2), true), i.constant(panelWidth));
  return e.getAddress(c.scratchAt(f.strassen.columnsAt), accumulator, i.sub(start, ofFirst));
}

void StrassenEmission::takeStored(TileOperands &operands, Value stored) {
  operands.panels = stored;
  operands.addend = {};
  operands.loops.front().bStride = i.constant(panelWidth);
}

void StrassenEmission::noteColumns(bool areStored) {
  if (quarters.storesSums)
    e.createStore(wordOf(areStored), c.scratchAt(f.strassen.hasColumnsAt));
}

/// Where the tile's sums lie: in the task's where k is cut, else from the first row on.
Value StrassenEmission::sumsOfTile(const ContractionTask &task, const ContractionTile &tile) {
  if (!f.blocks.isSplitK())
    return c.sums;
  Value column = i.mul(i.sub(tile.panel, task.firstPanel), i.constant(panelWidth));
  return e.getAddress(c.sums, accumulator, i.add(i.mul(i.sub(tile.row, task.firstRow), c.sumsPitch), column));
}

/// Adds a register tile's sums to those at `target`, or stores them there if these are the first.
void StrassenEmission::addToSums(Value target, ValueRange tileSums, bool isFirst, bool isSubtracted) {
  OpBuilder &b = e.builder;
  int64_t vectorsOfRow = quarters.panels * panelWidth / lanes;
  for (auto [index, sum] : llvm::enumerate(tileSums)) {
    Value row = i.mul(i.constant(int64_t(index) / vectorsOfRow), c.sumsPitch);
    Value slot = e.getAddress(target, accumulator, i.add(row, i.constant(int64_t(index) % vectorsOfRow * lanes)));
    if (isFirst && !isSubtracted) {
      e.createStore(sum, slot);
      continue;
    }
    Value before = e.createLoad(accumulator, lanes, slot);
    Value after = isSubtracted ? arith::SubFOp::create(b, e.loc, before, sum).getResult()
                               : arith::AddFOp::create(b, e.loc, before, sum).getResult();
    e.createStore(after, slot);
  }
}

void StrassenEmission::multiplyQuarters(const ContractionTask &task, const ContractionTile &tile) {
  int64_t height = tile.rows.height / 2;
  Value first = sumsOfTile(task, tile);
  auto quarterAt = [&](int64_t quarter) {
    Value row = i.mul(i.constant(quarter / 2 * height), c.sumsPitch);
    return e.getAddress(first, accumulator, i.add(row, i.constant(quarter % 2 * quarters.panels * panelWidth)));
  };
  bool hasSums[4] = {}; // stored before
  SmallVector<Value> carried;
  int64_t sumsBefore = 0; // of B
  // The first such tile stores what is made of B, for those below it.
  Value areStored = quarters.storesSums ? isWord(c.scratchAt(f.strassen.hasColumnsAt), true) : Value();
  TileShape shape{.rows = height, .panels = quarters.panels};
  SmallVector<Type> types(size_t(height * quarters.panels * panelWidth / lanes), VectorType::get(lanes, accumulator));
  for (auto [number, product] : llvm::enumerate(listProducts())) {
    auto multiply = [&, number = int64_t(number), product = product](Value stored, bool isStored) {
      TileOperands operands = operandsOf(task, tile, product);
      if (isStored)
        takeStored(operands, stored);
      else if (stored)
        operands.addend.storedAt = stored;
      fetchBesideQuarters(operands, task, tile, number);
      return emitRegisterTile(e, shape, operands, carried);
    };
    if (areStored && product.hasSum()) {
      Value stored = storedSum(tile, sumsBefore++);
      carried = e.emitChoice(areStored, types, [&](bool isStored) { return multiply(stored, isStored); });
    } else {
      carried = multiply({}, false);
    }
    for (auto [quarter, sign] : product.targets) {
      addToSums(quarterAt(quarter), carried, !f.blocks.isSplitK() && !hasSums[quarter], sign < 0);
      hasSums[quarter] = true;
    }
    if (!product.continues)
      carried.clear();
  }
  assert(!quarters.storesSums || sumsBefore == sumsOfColumns);
  noteColumns(true);
}

/// Halves of the rows and of the panels one after the other, with one code.
void StrassenEmission::multiplyPlainly(const ContractionTask &task, const ContractionTile &tile) {
  int64_t height = tile.rows.height % 2 ? tile.rows.height : tile.rows.height / 2;
  Value first = sumsOfTile(task, tile);
  loop(i.constant(0), i.constant(tile.rows.height / height), 1, [&](Value part) {
    loop(i.constant(0), i.constant(quarters.panelsOfTile()), quarters.panels, [&](Value panel) {
      ContractionTile own = tile;
      own.rows.height = height;
      own.row = i.add(tile.row, i.mul(part, i.constant(height)));
      own.panel = i.add(tile.panel, panel);
      own.columns.panels = quarters.panels;
      TileShape shape{.rows = height, .panels = quarters.panels};
      Value column = i.mul(panel, i.constant(panelWidth));
      Value target =
          e.getAddress(first, accumulator, i.add(i.mul(i.mul(part, i.constant(height)), c.sumsPitch), column));
      addToSums(target, emitRegisterTile(e, shape, c.operandsOf(task, own, shape, {}), {}), !f.blocks.isSplitK(),
                false);
    });
  });
}

void StrassenEmission::emitTile(const ContractionTask &task, const ContractionTile &tile) {
  if (tile.rows.height % 2)
    multiplyPlainly(task, tile);
  else
    e.emitIf(
        isWord(stateOf(task, tile.number), Added), [&] { multiplyQuarters(task, tile); },
        [&] { multiplyPlainly(task, tile); });
  if (f.blocks.isSplitK())
    return;
  Value column = i.mul(tile.panel, i.constant(panelWidth));
  c.epilogue->emitOnSums(task, c.sums, tile.row, i.constant(tile.rows.height), column,
                         i.add(column, i.constant(quarters.panelsOfTile() * panelWidth)));
}

void ContractionEmission::forgetCopies(Value tiles) { StrassenEmission(*this).forgetCopies(tiles); }

void ContractionEmission::copyForStrassen(const ContractionTask &task) {
  StrassenEmission(*this).copyRows(task, [&](const ContractionTask &rows) {
    if (f.lhs.isPacked())
      packLhs(rows);
  });
}

void ContractionEmission::emitStrassenTiles(const ContractionTask &task, const ColumnClass &columns, Value panel,
                                            Value kLower, Value kUpper) {
  StrassenEmission strassen(*this);
  strassen.noteColumns(false);
  for (const RowClass &rows : classesOfPairs(task))
    loop(rows.lower, rows.upper, 1, [&](Value tile) {
      strassen.emitTile(task, {rows, columns, tile, firstRowOf(rows, tile), panel, kLower, kUpper});
    });
}
