//===- CpuContractionMatrixRows.cpp - rows copied for matrix registers ----===//
//
// Problem. A register takes 16 rows that lie a fixed step apart. The rows of a window over an image do not: they skip a
// line's end, step over pixels, or are constants beyond the border. Copying 64 bytes of each whenever they are read
// takes longer than the products, of which a register does 16 rows by 16 columns in 16 cycles.
//
// Idea. A task copies what it reads once, into scratch, for all of its columns and for the tasks behind it that have
// the same rows. Where windows overlap that is the image's pixels with their border:
//
//   place(row) = sum over dims of m:  coordinate * what follows of the bordered image
//
// A window's element is the pixel at place(row) + a step that is the same for all rows. So the rows of the product are
// all pixels from the first output's on, a fixed step apart; those at the ends of lines, which no output begins with,
// are computed and left out by the epilogue: 2 of 58 for a 3 x 3 window over 56 columns. A window that moves by more
// pixels than its elements do has rows of its own, all of k in the order in which the panels have it; one loop over k
// is left. Most of these windows meet no border: their runs lie as far apart as those of any other, and are copied
// without a question.
//
// Rows and pixels begin at lines of the cache, an odd number of them apart, so that 16 do not meet in few of its sets.
// Rows end in zeros where the last step of k has fewer terms.
//
// Cost. A load and a store for 64 bytes, of a pixel or of each pixel of a row, against a step of sums for each 16
// columns.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuContractionMatrix.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t mostRuns = 32;     // of a row, whose code stands there for each
static constexpr int64_t mostUnrolled = 16; // vectors of a run

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

/// Dim of m, and elements of it, that a step along a dim of k is the same as in all of `exprs`.
static std::optional<std::pair<int64_t, int64_t>> moveOf(const ContractionForm &f, int64_t k, ArrayRef<Expr> exprs) {
  auto constantStride = [&](Expr expr, int64_t dim) -> std::optional<int64_t> {
    Expr stride = loop::strideOf(expr, dim);
    return stride ? stride.asConstant() : std::nullopt;
  };
  std::optional<std::pair<int64_t, int64_t>> nearest;
  for (int64_t dim = f.firstM(); dim < f.firstN(); ++dim) {
    auto ofRow = constantStride(exprs.front(), dim), ofK = constantStride(exprs.front(), k);
    if (!ofRow || !ofK || *ofRow <= 0 || *ofK <= 0 || *ofK % *ofRow)
      continue;
    int64_t pixels = *ofK / *ofRow;
    bool movesAlike = llvm::all_of(exprs, [&](Expr expr) {
      auto ofRow = constantStride(expr, dim), ofK = constantStride(expr, k);
      return ofRow && ofK && *ofK == pixels * *ofRow;
    });
    if (movesAlike && (!nearest || pixels < nearest->second))
      nearest = {dim, pixels};
  }
  return nearest;
}

static SmallVector<int64_t> extentsOfRows(const ContractionForm &f) {
  SmallVector<int64_t> extents;
  for (int64_t dim = f.firstM(); dim < f.firstN(); ++dim)
    extents.push_back(f.domain[dim].getValue());
  return extents;
}

static int64_t pixelOfRow(const ContractionForm &f, ArrayRef<int64_t> pixels, int64_t row) {
  return linearize(delinearize(row, computeStrides(extentsOfRows(f))), computeStrides(pixels));
}

/// Elements of a pixel or row, so that the next begins at a line of the cache, an odd number of them on.
static int64_t pitchOf(const ContractionForm &f, int64_t length) {
  int64_t ofLine = matrixRowBytes / f.lhs.elementBytes();
  return (llvm::divideCeil(length, ofLine) | 1) * ofLine;
}

/// Copies of pixels, if windows overlap so; without them `scratch` is null.
static MatrixCopies planPixels(const ContractionForm &f) {
  auto isConstant = [](Expr extent) { return extent.isConstant() && extent.getValue() > 0; };
  ArrayRef<Expr> ofRows = ArrayRef(f.domain).slice(size_t(f.firstM()), size_t(f.mDims));
  if (!llvm::all_of(ofRows, isConstant) || !isConstant(f.blocks.m) || f.mDims < 2 || f.kLoops.size() < 2)
    return {};
  SmallVector<Expr> exprs = f.lhs.movedExprs();
  MatrixCopies copies{.pixels = extentsOfRows(f)};
  SmallVector<std::pair<int64_t, int64_t>> moves;
  for (const KLoop &own : ArrayRef(f.kLoops).drop_back()) {
    auto move = own.dim < 0 ? std::nullopt : moveOf(f, own.dim, exprs);
    if (!move)
      return {};
    moves.push_back({move->first - f.firstM(), move->second});
    copies.pixels[size_t(moves.back().first)] += (own.extent.getValue() - 1) * move->second;
  }
  for (auto [own, move] : llvm::zip(f.kLoops, moves)) {
    int64_t step = move.second;
    for (int64_t follows : ArrayRef(copies.pixels).drop_front(size_t(move.first) + 1))
      step *= follows;
    copies.steps.push_back(step);
    copies.reach += (own.extent.getValue() - 1) * step;
  }
  return copies;
}

/// The first and the last row of each task's block that has any.
static void forEachRowBlock(int64_t rows, int64_t blocks, llvm::function_ref<void(int64_t first, int64_t last)> body) {
  int64_t units = llvm::divideCeil(rows, matrixUnitRows);
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t first = units * block / blocks * matrixUnitRows;
    int64_t end = std::min(units * (block + 1) / blocks * matrixUnitRows, rows);
    if (first < end)
      body(first, end - 1);
  }
}

/// Whether products of pixels, which wait nearer than rows, are not many more; sets the scratch of the copies.
static bool paysInPixels(const ContractionForm &f, MatrixCopies &copies) {
  int64_t line = copies.pixels.back(), groups = f.kLoops.back().extent.getValue(), taps = 1, most = 0, products = 0;
  for (const KLoop &own : ArrayRef(f.kLoops).drop_back())
    taps *= own.extent.getValue();
  int64_t units = llvm::divideCeil(f.m.getValue(), matrixUnitRows);
  forEachRowBlock(f.m.getValue(), f.blocks.m.getValue(), [&](int64_t first, int64_t last) {
    int64_t pixel = pixelOfRow(f, copies.pixels, first), lastPixel = pixelOfRow(f, copies.pixels, last);
    most = std::max(most, (lastPixel + copies.reach) / line - pixel / line + 1);
    products += llvm::divideCeil(lastPixel - pixel + 1, matrixUnitRows);
  });
  copies.pitch = pitchOf(f, groups * f.group);
  copies.scratch = Expr::constant(f.op->getContext(), most * line * copies.pitch * f.lhs.elementBytes());
  int64_t ofPixels = products * taps * int64_t(llvm::divideCeil(groups, matrixRowGroups));
  int64_t ofRows = units * int64_t(llvm::divideCeil(taps * groups, matrixRowGroups));
  bool isWhole = groups <= matrixRowGroups || groups % matrixRowGroups == 0;
  int64_t panels = llvm::divideCeil(f.n.asConstant().value_or(panelWidth), panelWidth);
  return isWhole && 4 * ofPixels * panels <= 5 * ofRows * (panels + 1); // a row's copy takes about a panel's time
}

MatrixCopies cpu::planMatrixCopies(const ContractionForm &f) {
  if (!f.isDot() || !f.lhs.readsMemory() || f.mDims == 0 || stepInPlace(f) || f.blocks.isSplitK() || !f.k.isConstant())
    return {};
  MatrixCopies pixels = planPixels(f);
  if (!pixels.pixels.empty() && paysInPixels(f, pixels))
    return pixels;
  int64_t pitch = pitchOf(f, f.k.getValue());
  return {.scratch = f.blocks.rowsMost * (pitch * f.lhs.elementBytes()), .pitch = pitch};
}

MatrixRows::MatrixRows(ContractionEmission &contraction)
    : ContractionTechnique(contraction), copies(f.copies.at ? c.scratchAt(f.copies.at) : Value()) {}

std::pair<int64_t, int64_t> MatrixRows::rowsOfTasks() {
  int64_t fewest = std::numeric_limits<int64_t>::max(), most = 0;
  auto rows = i.asConstant(c.m), blocks = i.asConstant(c.mBlocks);
  if (!rows || !blocks)
    return {most, fewest};
  forEachRowBlock(*rows, *blocks, [&](int64_t first, int64_t last) {
    auto placeOf = [&](int64_t row) { return areOfPixels() ? pixelOfRow(f, f.copies.pixels, row) : row; };
    int64_t count = placeOf(last) - placeOf(first) + 1;
    fewest = std::min(fewest, count);
    most = std::max(most, count);
  });
  return {fewest, most};
}

//===----------------------------------------------------------------------===//
// Pixels
//===----------------------------------------------------------------------===//

void MatrixRows::copyRun(Value from, Value to) {
  int64_t length = f.kLoops.back().extent.getValue() * f.group, width = matrixRowBytes / f.lhs.elementBytes();
  int64_t whole = length / width * width;
  auto copy = [&](Value at, Value mask) {
    Value vector = e.createLoad(f.lhs.element, width, e.getAddress(from, f.lhs.element, at), mask);
    e.createStore(vector, e.getAddress(to, f.lhs.element, at), mask);
  };
  if (whole / width > mostUnrolled)
    loop(i.constant(0), i.constant(whole), width, [&](Value at) { copy(at, {}); });
  else
    for (int64_t at = 0; at < whole; at += width)
      copy(i.constant(at), {});
  if (whole < length)
    copy(i.constant(whole), e.laneMask(i.constant(length - whole), width));
}

Value MatrixRows::pixelOf(Value row) {
  EmissionPoint point;
  point.dims.resize(f.domain.size());
  c.setDims(point, f.firstM(), f.mDims, row);
  Value pixel = point.dims[size_t(f.firstM())];
  for (int64_t d = 1; d < f.mDims; ++d)
    pixel = i.add(i.mul(pixel, i.constant(f.copies.pixels[size_t(d)])), point.dims[size_t(f.firstM() + d)]);
  return pixel;
}

Value MatrixRows::pixelsOf(const ContractionTask &task) {
  Value last = i.sub(i.add(task.firstRow, task.rows), i.constant(1));
  Value count = i.add(i.sub(pixelOf(last), pixelOf(task.firstRow)), i.constant(1));
  return i.select(i.compare(arith::CmpIPredicate::sgt, task.rows, i.constant(0)), count, i.constant(0));
}

Value MatrixRows::startOfLine(Value pixel) {
  Value line = i.constant(f.copies.pixels.back());
  return i.mul(i.floorDiv(pixel, line, true), line);
}

Value MatrixRows::firstRowAt(Value pixel) {
  SmallVector<Value> dims(size_t(f.mDims), Value());
  for (int64_t d = f.mDims - 1; d > 0; --d) {
    Value extent = i.constant(f.copies.pixels[size_t(d)]);
    dims[size_t(d)] = i.mod(pixel, extent, true);
    pixel = i.floorDiv(pixel, extent, true);
  }
  dims[0] = pixel;
  Value row = i.constant(0), isBehind = i.constant(e.builder.getBoolAttr(false));
  for (int64_t d = 0; d < f.mDims; ++d) { // what follows a line's outputs is the next line's first
    Value extent = value(f.domain[size_t(f.firstM() + d)]), at = i.min(dims[size_t(d)], extent);
    row = i.add(i.mul(row, extent), i.select(isBehind, i.constant(0), at));
    isBehind = i.get<arith::OrIOp>(isBehind, i.compare(arith::CmpIPredicate::eq, at, extent));
  }
  return row;
}

void MatrixRows::copyPixels(const ContractionTask &task) {
  int64_t line = f.copies.pixels.back(), lastDim = f.firstN() - 1;
  Value across = i.constant(line), pixel = pixelOf(task.firstRow), count = pixelsOf(task);
  Value first = i.floorDiv(pixel, across, true), reach = i.constant(f.copies.reach + line - 1);
  Value end = i.floorDiv(i.add(i.add(pixel, count), reach), across, true);
  end = i.select(i.compare(arith::CmpIPredicate::sgt, count, i.constant(0)), end, first);
  EmissionPoint point = c.taskPoint(task);
  for (int64_t dim = f.firstK(); dim < int64_t(f.domain.size()); ++dim)
    point.dims[dim] = i.constant(0);
  loop(first, end, 1, [&](Value number) {
    Value rest = number;
    for (int64_t d = f.mDims - 2; d >= 0; --d) {
      Value extent = i.constant(f.copies.pixels[size_t(d)]);
      point.dims[size_t(f.firstM() + d)] = d ? i.mod(rest, extent, true) : rest;
      rest = i.floorDiv(rest, extent, true);
    }
    Value start = i.mul(i.sub(number, first), across);
    loop(i.constant(0), across, 1, [&](Value column) {
      point.dims[size_t(lastDim)] = column;
      Value to = i.mul(i.add(start, column), i.constant(f.copies.pitch));
      copyRun(c.addressOf(point), e.getAddress(copies, f.lhs.element, to));
    });
  });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value MatrixRows::copyInside(const ContractionTask &task, Value row, Value target) {
  Expr index = f.lhs.index();
  ArrayRef<KLoop> outer = ArrayRef(f.kLoops).drop_back();
  int64_t runs = 1;
  for (const KLoop &kLoop : outer) {
    if (kLoop.dim < 0 || !loop::strideOf(index, kLoop.dim))
      return {};
    runs *= kLoop.extent.getValue();
  }
  if (runs > mostRuns || !c.areConditionsSolvable())
    return {};
  Value isInside = c.liesInside(task, 1, row);
  emitIf(isInside, [&] {
    Value source = c.addressInPlace(c.rowPoint(task, row));
    auto copy = [&](auto &&self, ArrayRef<KLoop> loops, Value from, Value to) -> void {
      if (loops.empty())
        return copyRun(e.getAddress(source, f.lhs.element, from), e.getAddress(target, f.lhs.element, to));
      const KLoop &own = loops.front();
      Value stride = value(loop::strideOf(index, own.dim)), place = value(own.bStride * f.group);
      for (int64_t at = 0; at < own.extent.getValue(); ++at)
        self(self, loops.drop_front(), i.add(from, i.mul(i.constant(at), stride)),
             i.add(to, i.mul(i.constant(at), place)));
    };
    copy(copy, outer, i.constant(0), i.constant(0));
  });
  return isInside;
}

void MatrixRows::copyAnywhere(const ContractionTask &task, Value row, Value target) {
  auto addresses = c.rowAddresses(task, RowClass{.height = 1}, row);
  SmallVector<Value> outer;
  auto copy = [&](auto &&self, Value to) -> void {
    if (outer.size() + 1 == f.kLoops.size())
      return copyRun(addresses(outer).front(), to);
    const KLoop &own = f.kLoops[outer.size()];
    Value place = value(own.bStride * f.group);
    loop(i.constant(0), value(own.extent), 1, [&](Value at) {
      outer.push_back(at);
      self(self, e.getAddress(to, f.lhs.element, i.mul(at, place)));
      outer.pop_back();
    });
  };
  copy(copy, target);
}

void MatrixRows::copyRows(const ContractionTask &task) {
  int64_t width = matrixRowBytes / f.lhs.elementBytes(), terms = f.k.getValue();
  Value zeros = i.constant(cast<TypedAttr>(e.builder.getZeroAttr(VectorType::get(width, f.lhs.element))));
  loop(i.constant(0), task.rows, 1, [&](Value local) {
    Value row = i.add(task.firstRow, local);
    Value target = e.getAddress(copies, f.lhs.element, i.mul(local, i.constant(f.copies.pitch)));
    if (terms % width)
      e.createStore(zeros, e.getAddress(target, f.lhs.element, i.constant(terms / width * width)));
    Value isCopied = copyInside(task, row, target);
    if (!isCopied)
      return copyAnywhere(task, row, target);
    emitIf(i.compare(arith::CmpIPredicate::eq, isCopied, i.constant(e.builder.getBoolAttr(false))),
           [&] { copyAnywhere(task, row, target); });
  });
}

void MatrixRows::copy(const ContractionTask &task) { areOfPixels() ? copyPixels(task) : copyRows(task); }
