//===- CpuContractionForm.cpp - canonical form and analysis of contractions ===//
//
// A contraction comes as three index domains (m, n, k) and two regions that say how an element is read. This file
// brings it into a canonical form (as few dims as possible, result contiguous along n) and decides for each operand
// whether the register tile reads it where it is or from a packed copy:
//
//   A  in place where a row is one address plus constant strides; padding (a mask on the row and on outer k dims) is
//      still in place: for each (row, kh, kw) the address is that of the pixel or of a run of zeros.
//   A  packed where elements are computed, masked along the innermost dim, or not contiguous in k, and where the runs
//      of a few rows lie at such strides that they push each other out of the first-level cache.
//   B  as stored where it is a packed weight; packed by the task otherwise, computed bytes in words of four.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContraction.h"
#include "codegen/cpu/CpuPlan.h"
#include "codegen/cpu/CpuTemplates.h"
#include "codegen/cpu/ScratchLayout.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ColumnParts.h"
#include "ir/loop/Winograd.h"
#include "ir/prim/ByteRows.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

//===----------------------------------------------------------------------===//
// Canonical form
//===----------------------------------------------------------------------===//

static Expr onlyIndex(ArrayAttr indices) { return indices.size() == 1 ? Expr(cast<ExprAttr>(indices[0])) : Expr(); }

/// Whether the result is written contiguously along the last m dim and not along the last n dim.
static bool isTransposedResult(loop::ContractionOp op) {
  loop::DimCounts counts(op);
  if (counts.counts[1] == 0)
    return false;
  bool transposed = false, seen = false;
  op.getEpilogue().walk([&](loop::StoreOp store) {
    Expr index = onlyIndex(store.getIndices());
    if (seen || !index)
      return;
    seen = true;
    Expr alongM = loop::strideOf(index, counts.first(2) - 1);
    Expr alongN = counts.counts[2] ? loop::strideOf(index, counts.first(3) - 1) : Expr();
    transposed = alongM && alongM.isConstant(1) && !(alongN && alongN.isConstant(1));
  });
  return transposed;
}

static loop::PanelsOp yieldedPanels(Region &region) {
  auto yield = cast<loop::YieldOp>(region.front().getTerminator());
  return yield.getValue().getDefiningOp<loop::PanelsOp>();
}

static bool containsPanels(Region &region) {
  return region.walk([](loop::PanelsOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

static void swapRoles(loop::ContractionOp op) {
  loop::DimCounts counts(op);
  int64_t firstM = counts.first(1), m = counts.counts[1], n = counts.counts[2];
  MLIRContext *context = op.getContext();
  SmallVector<Expr> domain = loop::getDomain(op);
  std::rotate(domain.begin() + firstM, domain.begin() + firstM + m, domain.begin() + firstM + m + n);
  loop::substituteExprs(op, [&](StringRef name) -> Expr {
    std::optional<unsigned> number = parseNumbered(name, 'd');
    if (!number || *number < firstM || *number >= firstM + m + n)
      return {};
    int64_t dim = *number;
    return Expr::dim(context, unsigned(dim < firstM + m ? dim + n : dim - m));
  });
  loop::setDomain(op, domain);
  std::swap(counts.counts[1], counts.counts[2]);
  counts.set(op);
  Region held;
  held.takeBody(op.getLhs());
  op.getLhs().takeBody(op.getRhs());
  op.getRhs().takeBody(held);
}

static bool isAlone(loop::ContractionOp op) {
  auto kernel = op->getParentOfType<loop::KernelOp>();
  return !kernel || getNodes(kernel).size() == 1;
}

/// Puts a dim of rows inside of the next one.
static void exchangeRows(loop::ContractionOp op, int64_t first) {
  SmallVector<Expr> domain = loop::getDomain(op);
  std::swap(domain[size_t(first)], domain[size_t(first) + 1]);
  loop::substituteExprs(op, [&](StringRef name) -> Expr {
    std::optional<unsigned> number = parseNumbered(name, 'd');
    bool isRow = number && (*number == first || *number == first + 1);
    return isRow ? Expr::dim(op.getContext(), unsigned(2 * first + 1 - *number)) : Expr();
  });
  loop::setDomain(op, domain);
}

/// Windows along time alone, over images too large to be met again in the second-level cache: pixels of an image that
/// tasks take for all times before the next ones; 0: whole images, one after the other.
static int64_t choosePieceOfImage(loop::ContractionOp op) {
  constexpr int64_t fewestRows = 14, mostRows = 56, nearBytes = 1 << 20;
  loop::DimCounts counts(op);
  int64_t pixel = counts.first(2) - 1, time = pixel - 1, window = counts.first(3);
  SmallVector<Expr> domain = loop::getDomain(op);
  auto yielded = cast<loop::YieldOp>(op.getLhs().front().getTerminator()).getValue();
  auto mask = yielded.getDefiningOp<loop::MaskedOp>();
  SmallVector<loop::LoadOp> loads;
  op.getLhs().walk([&](loop::LoadOp load) { loads.push_back(load); });
  if (counts.counts[0] || counts.counts[1] < 2 || counts.counts[3] != 2 || !mask || loads.size() != 1)
    return 0;
  for (Expr condition : prim::getExprs(mask.getConditions()))
    if (condition.uses(dimName(unsigned(pixel))))
      return 0;
  Expr index = onlyIndex(loads[0].getIndices());
  Expr ofTime = index ? loop::strideOf(index, time) : Expr(), ofWindow = index ? loop::strideOf(index, window) : Expr();
  Expr ofPixel = index ? loop::strideOf(index, pixel) : Expr();
  auto pixels = domain[size_t(pixel)].asConstant(), taps = domain[size_t(window)].asConstant();
  if (!ofTime || !ofWindow || !ofWindow.isConstant() || !ofPixel || !ofPixel.isConstant() || !pixels || !taps ||
      ofWindow.getValue() != *pixels * ofPixel.getValue()) // or pieces already
    return 0;
  int64_t bytes = loads[0].getType().getIntOrFloatBitWidth() / 8;
  if (*taps * ofWindow.getValue() * bytes <= nearBytes)
    return 0;
  for (int64_t piece = mostRows; piece >= fewestRows; --piece)
    if (*pixels % piece == 0 && *pixels > piece)
      return piece;
  return 0;
}

void cpu::canonicalizeContraction(loop::ContractionOp op) {
  if (loop::getWinogradTile(op))
    return; // which dims are rows, columns and the window is told by their places
  loop::mergeDims(op);
  if (loop::turnsPixels(op))
    return;
  Region &rhs = op.getRhs();
  // A weight can be the row operand if its elements are used as they are stored.
  auto panels = yieldedPanels(rhs);
  bool canSwap = !containsPanels(rhs);
  if (panels) {
    auto type = cast<loop::BufferType>(panels.getBuffer().getType());
    canSwap = type.getElementType() == op.getEpilogue().getArgument(0).getType();
  }
  if (canSwap && !containsPanels(op.getLhs()) && isTransposedResult(op))
    swapRoles(op);
  else if (panels && canSwap && isAlone(op) && bringsColumnsOutside(op))
    exchangeRows(op, loop::DimCounts(op).first(1));
  else if (int64_t piece = panels && canSwap && isAlone(op) ? choosePieceOfImage(op) : 0) {
    int64_t image = loop::DimCounts(op).first(2) - 1;
    loop::splitDim(op, image, piece);
    exchangeRows(op, image - 1);
  }
}

bool cpu::isNarrowContraction(loop::ContractionOp op) {
  if (containsPanels(op.getLhs()) || containsPanels(op.getRhs()))
    return false;
  return loop::isNarrow(op);
}

int64_t cpu::getPanelUnit(loop::ContractionOp op) {
  int64_t unit = 1;
  Block &block = *op->getBlock();
  bool isAhead = !block.getOps<loop::AttentionOp>().empty();
  if (auto columns = findColumnsBehind(op->getParentOfType<loop::KernelOp>()))
    return columns->width / panelWidth;
  if (isAhead || hasRowsBehind(op->getParentOfType<loop::KernelOp>()))
    return unit;
  for (auto product : block.getOps<loop::ContractionOp>())
    for (auto node : block.getOps<loop::PointwiseOp>())
      if (auto parts = loop::findColumnParts(product, node))
        unit = std::lcm(unit, parts->width / panelWidth);
  return unit;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

static Value yieldedValue(Block &block) { return cast<loop::YieldOp>(block.getTerminator()).getValue(); }

/// The load that `value` of the block is, if its element type is `type`.
static loop::LoadOp plainLoad(Value value, Block &block, Type type) {
  auto load = value.getDefiningOp<loop::LoadOp>();
  if (!load || load->getBlock() != &block || !load.getIndexOperands().empty() || !onlyIndex(load.getIndices()) ||
      load.getType() != type)
    return {};
  return load;
}

/// Fills lhsLoad, lhsMask and lhsOther if the region is a load, masked or not.
static bool matchLoad(ContractionForm &form) {
  Block &block = form.op.getLhs().front();
  Value value = yieldedValue(block);
  if (form.isDot())
    value = value.getDefiningOp()->getOperand(0); // of what widens it
  if ((form.lhs.load = plainLoad(value, block, form.lhs.element)))
    return true;
  auto mask = value.getDefiningOp<loop::MaskedOp>();
  if (!mask || !mask.getOperands_().empty())
    return false;
  auto other = mask.getOther().getDefiningOp<arith::ConstantOp>();
  Block &body = mask.getBody().front();
  auto load = plainLoad(yieldedValue(body), body, form.lhs.element);
  if (!other || !load)
    return false;
  form.lhs.load = load;
  form.lhs.mask = mask;
  form.lhs.other = other.getValue();
  return true;
}

static bool isMaskedBy(const LhsOperand &lhs, int64_t dim) {
  return llvm::any_of(lhs.conditions(), [&](Expr condition) { return condition.uses(dimName(dim)); });
}

/// bStride of each k dim: rows of B, k flattened in the order of the dims.
static SmallVector<Expr> rowStrides(const ContractionForm &form) {
  SmallVector<Expr> strides(form.kDims);
  Expr stride = Expr::constant(form.accumulator.getContext(), 1);
  for (int64_t i = form.kDims - 1; i >= 0; --i) {
    strides[i] = stride;
    stride = stride * form.domain[form.firstK() + i];
  }
  return strides;
}

/// The loops of an A whose k is contiguous in the order of the dims, `unit` elements from one to the next: one loop.
/// Two where B is packed and k is long, so that k can run in blocks of its first dim, which packing knows.
static SmallVector<KLoop> wholeK(const ContractionForm &form, Expr unit) {
  Expr one = Expr::constant(form.accumulator.getContext(), 1);
  if (form.kDims == 0)
    return {{.dim = -1, .extent = one, .aStride = unit, .bStride = one}};
  if (form.kDims == 1)
    return {{.dim = form.firstK(), .extent = form.k, .aStride = unit, .bStride = one}};
  Expr first = form.domain[form.firstK()];
  auto k = form.k.asConstant(), outer = first.asConstant();
  if (!form.rhs.isPacked() || !k || !outer || !unit || *k <= 1024 || *outer == 0)
    return {{.dim = -1, .extent = form.k, .aStride = unit, .bStride = one}};
  Expr inner = Expr::constant(one.getContext(), *k / *outer);
  return {{.dim = form.firstK(), .extent = first, .aStride = unit * inner, .bStride = inner},
          {.dim = -1, .extent = inner, .aStride = unit, .bStride = one}};
}

/// Reads A where it is, if every k dim has a stride and one of them, long enough, has stride 1 and no mask.
static bool readInPlace(ContractionForm &form) {
  if (!matchLoad(form))
    return false;
  MLIRContext *context = form.accumulator.getContext();
  Expr index = form.lhs.index();
  SmallVector<Expr> strides;
  int64_t inner = -1, innerLength = 0;
  for (int64_t i = 0; i < form.kDims; ++i) {
    int64_t dim = form.firstK() + i;
    Expr stride = loop::strideOf(index, dim);
    if (!stride)
      return false;
    strides.push_back(stride);
    int64_t length = form.domain[dim].asConstant().value_or(1 << 20);
    if (stride.isConstant(1) && !isMaskedBy(form.lhs, dim) && length > innerLength) {
      inner = i;
      innerLength = length;
    }
  }
  if (form.kDims == 0) {
    if (form.lhs.mask)
      return false;
    form.kLoops = wholeK(form, Expr::constant(context, 0));
    form.lhs.form = LhsForm::InPlace;
    return true;
  }
  if (inner < 0 || (form.kDims > 1 && innerLength < 8) || (form.group > 1 && inner != form.kDims - 1))
    return false;
  SmallVector<Expr> rows = rowStrides(form);
  auto add = [&](int64_t i) {
    form.kLoops.push_back({form.firstK() + i, form.domain[form.firstK() + i], strides[i], rows[i]});
  };
  for (int64_t i = 0; i < form.kDims; ++i)
    if (i != inner)
      add(i);
  add(inner);
  form.lhs.form = form.lhs.mask ? LhsForm::Redirected : LhsForm::InPlace;
  return true;
}

static constexpr int64_t cacheSets = 64, cacheWays = 8; // of a first-level cache
static constexpr int64_t rowsOfTile = 6, mostRuns = 1 << 10;
static constexpr int64_t columnsWorthCopies = 64, columnsOfTile = 64;

/// The cache lines that the first rows of an A in place touch; none where a stride is not known, or where they are
/// many.
static llvm::DenseSet<int64_t> linesOfTile(ContractionForm &form) {
  struct Dim {
    Expr extent, stride;
  };
  SmallVector<int64_t> starts;
  auto addRun = [&](int64_t number, ArrayRef<Dim> dims, int64_t start) { // the later dims vary fastest
    for (const auto &[extent, stride] : llvm::reverse(dims)) {
      auto count = extent.asConstant(), step = stride ? stride.asConstant() : std::nullopt;
      if (!count || !step || *step < 0)
        return false;
      start += number % *count * *step * form.lhs.elementBytes();
      number /= *count;
    }
    starts.push_back(start);
    return true;
  };
  Expr index = form.lhs.index();
  SmallVector<Dim> rows, outer;
  int64_t runs = 1;
  for (int64_t dim = form.firstM(); dim < form.firstN(); ++dim)
    rows.push_back({form.domain[dim], loop::strideOf(index, dim)});
  for (const KLoop &loop : ArrayRef(form.kLoops).drop_back()) {
    outer.push_back({loop.extent, loop.aStride});
    runs *= std::min(loop.extent.asConstant().value_or(mostRuns), mostRuns);
  }
  for (int64_t number = 0; number < std::min(form.m.asConstant().value_or(0), rowsOfTile); ++number)
    if (!addRun(number, rows, 0))
      return {};
  for (int64_t start : std::exchange(starts, {}))
    for (int64_t number = 0; number < runs; ++number)
      if (runs > mostRuns || !addRun(number, outer, start))
        return {};
  int64_t length = form.kLoops.back().extent.asConstant().value_or(0) * form.lhs.elementBytes();
  llvm::DenseSet<int64_t> lines;
  for (int64_t start : starts)
    for (int64_t line = start / lineBytes; line * lineBytes < start + length; ++line)
      lines.insert(line);
  return lines;
}

/// Whether so many of those lines share a set that each column tile fetches A from the second-level cache again, where
/// rows one behind the other would have stayed.
static bool crowdsFewSets(ContractionForm &form) {
  if (form.lhs.form != LhsForm::InPlace || form.group > 1 || form.kLoops.size() < 2 || form.rhs.isPacked() ||
      form.n.asConstant().value_or(0) < columnsWorthCopies)
    return false;
  std::array<int64_t, cacheSets> used{};
  llvm::DenseSet<int64_t> lines = linesOfTile(form);
  for (int64_t line : lines)
    ++used[line % cacheSets];
  int64_t all = int64_t(lines.size()), pushedOut = 0;
  int64_t share = std::max<int64_t>(cacheWays, llvm::divideCeil(all, cacheSets));
  for (int64_t count : used)
    pushedOut += std::max<int64_t>(count - share, 0);
  return pushedOut * 4 > all;
}

std::optional<int64_t> cpu::stepInPlace(const ContractionForm &f) {
  Expr stride = f.lhs.form == LhsForm::InPlace && f.mDims == 1 ? loop::strideOf(f.lhs.index(), f.firstM()) : Expr();
  return stride ? stride.asConstant() : std::nullopt;
}

/// Bytes of an element of the packed rhs.
static int64_t panelBytes(ContractionForm &form) {
  return loop::getElementBytes(cast<loop::BufferType>(form.rhs.panels.getBuffer().getType()).getElementType());
}

/// Whether B is a weight of known size, of numbers that are multiplied as they are, that streams from memory.
static bool streamsWeight(ContractionForm &form) {
  auto n = form.n.asConstant(), k = form.k.asConstant();
  if (!n || !k || form.rhs.isPacked() || form.bits || !form.conversion.besidePanels.empty())
    return false;
  return *n * *k * panelBytes(form) >= leastStreamed;
}

/// How many rows, a constant step apart, are better off in one tile: a weight that streams from memory is read once
/// then, not from the second-level cache again; where a column tile of it leaves that cache, in the lowest tiles, too.
static int64_t mostRowsAlone(ContractionForm &form) {
  int64_t fewest = form.rowUnit();
  if (!form.rhs.streams || fewest > tallestAlone || form.kLoops.size() != 1 || loop::getWinogradTile(form.op))
    return 0;
  if (form.lhs.form != LhsForm::PackedRows && !stepInPlace(form))
    return 0; // the addresses of so many rows would need registers
  int64_t columns = std::min(form.n.getValue(), columnsOfTile);
  return columns * form.k.getValue() * panelBytes(form) >= leastStreamed ? tallestAlone : tallestTile;
}

/// Whether rows that a tile reads side by side share so few sets that they push each other out before a line is used
/// up.
static bool crowdsSideBySide(ContractionForm &form) {
  if (form.lhs.form != LhsForm::InPlace || form.m.asConstant().value_or(tallestAlone + 1) > mostRowsAlone(form))
    return false;
  std::array<int64_t, cacheSets> used{};
  int64_t step = stepInPlace(form).value_or(0) * form.lhs.elementBytes();
  for (int64_t row = 0; row < form.m.getValue(); ++row)
    ++used[std::abs(row * step) / lineBytes % cacheSets];
  return *llvm::max_element(used) > cacheWays / 2;
}

/// The dim in [first, end) along which every load of the region is contiguous or constant, the longest; -1: none.
static int64_t contiguousDim(Region &region, const ContractionForm &form, int64_t first, int64_t end) {
  int64_t best = -1, bestLength = 1;
  for (int64_t dim = first; dim < end; ++dim) {
    bool contiguous = false, other = false;
    region.walk([&](loop::LoadOp load) {
      Expr index = onlyIndex(load.getIndices());
      Expr stride = index && load.getIndexOperands().empty() ? loop::strideOf(index, dim) : Expr();
      contiguous |= stride && stride.isConstant(1);
      other |= !stride || !(stride.isConstant(1) || stride.isConstant(0));
    });
    int64_t length = std::min<int64_t>(form.domain[dim].asConstant().value_or(1 << 20), 32);
    if (contiguous && !other && length > bestLength) {
      best = dim;
      bestLength = length;
    }
  }
  return best;
}

static void packLhs(ContractionForm &form) {
  MLIRContext *context = form.accumulator.getContext();
  Region &region = form.op.getLhs();
  int64_t alongK = contiguousDim(region, form, form.firstK(), form.firstK() + form.kDims);
  int64_t alongM = contiguousDim(region, form, form.firstM(), form.firstN());
  // With few rows the columns of a [k][row] copy would be mostly empty.
  auto rows = form.m.asConstant();
  if (form.group > 1) {
    form.lhs.form = LhsForm::PackedRows; // groups are neighbours, in the order of B
    form.lhs.vectorDim = form.firstK() + form.kDims - 1;
    if (form.isDot())
      form.kLoops = wholeK(form, Expr::constant(context, 1));
    else // each dim has its loop: what is read beside the weight changes with the outer ones
      for (auto [index, stride] : llvm::enumerate(rowStrides(form)))
        form.kLoops.push_back({form.firstK() + int64_t(index), form.domain[form.firstK() + index], stride, stride});
    return;
  }
  if (alongK < 0 && alongM >= 0 && form.mDims > 0 && !(rows && *rows < 8)) {
    form.lhs.form = LhsForm::PackedColumns;
    form.lhs.vectorDim = form.firstN() - 1;
    if (alongM != form.lhs.vectorDim) // not the last m dim: rows are walked in order, so vectors run along the last
      form.lhs.form = form.kDims ? LhsForm::PackedRows : form.lhs.form;
  } else {
    form.lhs.form = LhsForm::PackedRows;
  }
  if (form.lhs.form == LhsForm::PackedColumns) {
    form.kLoops = wholeK(form, Expr()); // the stride is the pitch, which follows from the blocks
    return;
  }
  form.lhs.vectorDim = alongK >= 0 ? alongK : form.kDims ? form.firstK() + form.kDims - 1 : -1;
  int64_t last = form.firstK() + form.kDims - 1;
  if (form.kDims <= 1 || form.lhs.vectorDim == last) {
    form.kLoops = wholeK(form, Expr::constant(context, 1));
    return;
  }
  // Rows are stored with the vector dim innermost.
  SmallVector<Expr> rowsOfB = rowStrides(form);
  SmallVector<int64_t> order;
  for (int64_t dim = form.firstK(); dim <= last; ++dim)
    if (dim != form.lhs.vectorDim)
      order.push_back(dim);
  order.push_back(form.lhs.vectorDim);
  Expr stride = Expr::constant(context, 1);
  for (int64_t dim : llvm::reverse(order)) {
    form.kLoops.insert(form.kLoops.begin(), {dim, form.domain[dim], stride, rowsOfB[dim - form.firstK()]});
    stride = stride * form.domain[dim];
  }
}

static constexpr int64_t manyRows = 32; // for which a weight is converted beforehand: several tiles of them

static void chooseRhs(ContractionForm &form) {
  Region &region = form.op.getRhs();
  region.walk([&](loop::PanelsOp panels) {
    if (panels.getRow())
      form.conversion.besidePanels.push_back(panels);
    else
      form.rhs.panels = panels;
  });
  if (form.rhs.panels) {
    auto rows = form.m.asConstant();
    // By numbers of its terms that a run makes.
    bool isScaled = form.rhs.panels.getGroup() == 1 && !region.getOps<loop::LoadOp>().empty();
    bool isConverted = form.rhs.panels.getBits() || !form.conversion.besidePanels.empty() || isScaled;
    bool isFewBits = form.rhs.panels.getBits() && form.permitsByteRows() && form.kDims > 1; // multiplied by bytes
    form.rhs.form = isConverted && !isFewBits && rows && *rows >= manyRows ? RhsForm::PackedConverted : RhsForm::Panels;
    return;
  }
  int64_t alongN = contiguousDim(region, form, form.firstN(), form.firstK());
  int64_t alongK = contiguousDim(region, form, form.firstK(), form.firstK() + form.kDims);
  int64_t lastN = form.firstK() - 1;
  if (alongK >= 0 && alongN != lastN) {
    form.rhs.form = RhsForm::PackedAlongK;
    form.rhs.vectorDim = alongK;
    return;
  }
  form.rhs.form = RhsForm::PackedAlongN;
  form.rhs.vectorDim = form.nDims ? lastN : -1;
}

/// Neighbours in k that a word of B holds: as stored, or of bytes that the task packs.
static int64_t chooseGroup(ContractionForm &form) {
  if (form.rhs.panels)
    return form.rhs.panels.getGroup();
  bool fillsWords =
      form.rhs.form == RhsForm::PackedAlongK || (form.rhs.form == RhsForm::PackedAlongN && form.nDims == 1);
  bool isPlain = form.kDims == 1 && fillsWords && !containsPanels(form.op.getLhs());
  return isPlain && isa<IntegerType>(form.accumulator) ? loop::getGroup(form.op) : 1;
}

/// The elements of A in memory: of products that are added up in groups, what its region widens.
static Type chooseLhsElement(ContractionForm &form) {
  return form.isDot() ? yieldedValue(form.op.getLhs().front()).getDefiningOp()->getOperand(0).getType()
                      : form.accumulator;
}

/// The innermost loop, so far over terms, runs over groups; B has a row for each.
static void groupTerms(ContractionForm &form) {
  if (form.group == 1)
    return;
  for (KLoop &loop : MutableArrayRef(form.kLoops).drop_back())
    loop.bStride = loop.bStride.floorDiv(form.group);
  KLoop &inner = form.kLoops.back();
  inner.extent = inner.extent.floorDiv(form.group);
  inner.aStride = inner.aStride * form.group;
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

/// How many matrices the packed weight has, if the batch has other numbers of them; else 0.
static int64_t countMatrices(const ContractionForm &form) {
  loop::PanelsOp panels = form.rhs.panels ? form.rhs.panels : form.lhs.panels;
  Expr columns = form.rhs.panels ? form.n : form.m;
  auto count = columns.asConstant(), k = form.k.asConstant();
  if (!panels || panels.getBits() || loop::getWinogradTile(form.op) || !count || !k)
    return 0;
  auto elements = cast<loop::BufferType>(panels.getBuffer().getType()).getElementCount().asConstant();
  int64_t ofMatrix = int64_t(llvm::alignTo(uint64_t(*count), uint64_t(panelWidth))) * *k;
  int64_t matrices = elements && ofMatrix ? *elements / ofMatrix : 0;
  return form.batch.isConstant(matrices) ? 0 : matrices;
}

ContractionShape::ContractionShape(loop::ContractionOp op) : domain(loop::getDomain(op)) {
  loop::DimCounts dims(op);
  std::tie(batchDims, mDims, nDims, kDims) = std::tie(dims.counts[0], dims.counts[1], dims.counts[2], dims.counts[3]);
  assert(firstK() + kDims == int64_t(domain.size()) && "each dim is of one class");
  auto extent = [&](int group) {
    return product(op.getContext(), ArrayRef(domain).slice(dims.first(group), dims.counts[group]));
  };
  batch = extent(0);
  m = extent(1);
  n = extent(2);
  k = extent(3);
}

Expr LhsOperand::index() const { return cast<ExprAttr>(loop::LoadOp(load).getIndices()[0]); }

SmallVector<Expr> LhsOperand::conditions() const {
  return mask ? prim::getExprs(loop::MaskedOp(mask).getConditions()) : SmallVector<Expr>();
}

SmallVector<Expr> LhsOperand::movedExprs() const {
  SmallVector<Expr> exprs{index()};
  llvm::append_range(exprs, conditions());
  return exprs;
}

BlockDemands::BlockDemands(loop::ContractionOp op)
    : panelUnit(getPanelUnit(op)), hasAllColumns(hasRowsBehind(op->getParentOfType<loop::KernelOp>())),
      hasAllRows(findColumnsBehind(op->getParentOfType<loop::KernelOp>()).has_value()) {
  assert(!(hasAllColumns && hasAllRows) && "nodes behind a product read whole rows or whole columns");
}

ContractionForm::ContractionForm(loop::ContractionOp op)
    : ContractionShape(op), op(op), accumulator(op.getEpilogue().getArgument(0).getType()),
      turns(loop::turnsPixels(op)), behind(op) {}

bool ContractionForm::permitsByteRows() const { return loop::ContractionOp(op)->hasAttr(prim::byteRowsAttr); }

static void chooseLhs(ContractionForm &form) {
  form.lhs.element = chooseLhsElement(form);
  if ((form.lhs.panels = yieldedPanels(form.op.getLhs()))) {
    form.lhs.form = LhsForm::Panels;
    form.kLoops = wholeK(form, Expr::constant(form.op.getContext(), panelWidth));
    return;
  }
  if (readInPlace(form) && !crowdsFewSets(form) && !crowdsSideBySide(form)) {
    assert(form.lhs.load && bool(form.lhs.mask) == (form.lhs.form == LhsForm::Redirected) && "a mask redirects rows");
    return;
  }
  form.kLoops.clear();
  packLhs(form);
  if (form.lhs.form != LhsForm::PackedRows)
    form.lhs.load = {};
}

ContractionForm cpu::describeContraction(loop::ContractionOp op) {
  ContractionForm form(op);
  chooseRhs(form);
  form.group = chooseGroup(form);
  form.bits = form.rhs.panels ? form.rhs.panels.getBits() : 0;
  if (form.rhs.form == RhsForm::PackedConverted)
    std::swap(form.conversion.words, form.group);
  form.rhs.streams = streamsWeight(form);
  chooseLhs(form);
  assert(!form.kLoops.empty() && "without dims of k there is a loop of one step");
  form.rhs.matrices = countMatrices(form);
  form.mostAlone = mostRowsAlone(form);
  groupTerms(form);
  findTaps(form);
  return form;
}

ContractionForm cpu::analyzeContraction(loop::ContractionOp op) {
  ContractionForm form = describeContraction(op);
  planBlocks(form);
  if (form.lhs.form == LhsForm::PackedColumns)
    form.kLoops.front().aStride = form.scratch.lhsPitch;
  return form;
}
