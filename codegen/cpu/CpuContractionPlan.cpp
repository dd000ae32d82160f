//===- CpuContractionPlan.cpp - blocks, grain and scratch of contractions -===//
//
// A task computes a block of rows x columns over all of k. What the sizes of blocks trade:
//
//   threads   16 or more tasks keep many threads busy; a task below a microsecond costs more than it brings. Rows are
//             cut before columns where a weight is small, and tasks are numbered by rows first: convolutions that
//             follow each other then leave a row with the thread that wrote it, and whatever is not cut moves all of
//             its input between processors
//   caches    a block's rows of A (all k, or one k block) are read again for each column tile: they should stay in half
//             of a second-level cache; a column tile of B (k x 64) is read again for each row tile
//   weights   the columns' part of B is streamed once for each block of rows: few row blocks where B is large
//
// Tasks that follow each other in a thread share what is larger: rows vary fastest where B is the larger operand,
// unless it is small, or is packed by the task; columns where A is. Blocks are counted in tiles whose size depends on
// the level; only the number of blocks is planned here, each level spreads its tiles over them. Levels whose tasks
// copy bytes may have fewer blocks of rows and more of columns, as many tasks or a few less; those that take Strassen's
// algorithm cut rows alone into these blocks, and share out what there is of tiles anew.
//
// Where k is long, the tile's columns of B would not stay in the second-level cache: k runs in blocks, outermost in the
// task, and partial sums wait in scratch.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContraction.h"
#include "codegen/cpu/CpuKernels.h"
#include "codegen/cpu/CpuPlan.h"
#include "codegen/cpu/CpuTemplates.h"
#include "codegen/cpu/CpuTuning.h"
#include "codegen/cpu/CpuWinograd.h"
#include "codegen/cpu/ScratchLayout.h"
#include "ir/loop/Strassen.h"
#include "ir/loop/Winograd.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t wantedTasks = 16;   // per contraction
static constexpr int64_t taskWork = 1 << 16; // multiply-adds: half of a microsecond to one and a half
static constexpr int64_t grainWork = 1 << 16;
static constexpr int64_t fewestCut = 48;     // rows of a task that are worth two
static constexpr int64_t fewestOfSmall = 24; // the same beside a small weight
static constexpr int64_t fewestOfBytes = 96; // of bytes, whose weight some levels look at, or transform, in each task
static constexpr int64_t weightBytes = 256 << 10; // that every thread may read: rows stay with the thread that has them
/// Words of k that are not cut, and of a block where they are: 128 rows by so many stay in the second-level cache.
static constexpr int64_t longestWhole = 1024, longestBlock = 768;

namespace {
struct BlockCounts {
  int64_t m = 1, n = 1;
};
} // namespace

/// Bytes of A that a row adds to the working set: a convolution's rows overlap.
static double bytesOfRow(const ContractionForm &form, int64_t k) {
  double bytes = double(k) * form.lhs.elementBytes();
  if (form.multipliesBytes()) // some levels copy them
    return (form.lhs.form == LhsForm::PackedRows ? 3 : 2) * bytes;
  if (!form.lhs.readsMemory())
    return bytes;
  int64_t inner = form.group * form.kLoops.back().extent.asConstant().value_or(k / form.group);
  return form.kLoops.size() > 1 ? double(inner) * form.lhs.elementBytes() * 2 : bytes;
}

/// Whether a block of k is as many words of each operand.
static bool hasOneRun(const ContractionForm &form) {
  return form.kLoops.size() == 1 && form.group == 1 && form.bits == 0;
}

/// Terms of which blocks of rows keep all in the second-level cache: those of a block of k.
static int64_t termsOfBlock(const ContractionForm &form, int64_t k) {
  if (k <= longestWhole || !hasOneRun(form))
    return std::min<int64_t>(k, 1536);
  return llvm::divideCeil(k, llvm::divideCeil(k, longestBlock));
}

static bool isSmallWeight(const ContractionForm &form, int64_t n, int64_t k) {
  return n * k * form.accumulatorBytes() <= weightBytes;
}

static BlockCounts countStaticBlocks(const ContractionForm &form, int64_t m, int64_t n, int64_t k, int64_t batch) {
  int64_t panels = llvm::divideCeil(n, panelWidth);
  bool packsB = form.rhs.isPacked();
  // A weight's stream is what counts where rows are few.
  double work = double(std::max<int64_t>(m, 8)) * double(n) * double(k);
  int64_t narrowest = std::max<int64_t>(m <= 8 ? 2 : packsB ? 8 : 3, form.behind.panelUnit); // panels of a task
  if (form.behind.hasAllColumns)
    narrowest = panels;
  bool isSmall = isSmallWeight(form, n, k);
  BlockCounts blocks;
  int64_t kBlock = termsOfBlock(form, k);
  // Each task packs each block of k anew. Where rows are few, to read them again for fewer columns costs less, unless
  // they are bytes, of which some levels make copies for each task.
  bool packsBlocks =
      packsB && kBlock < k && m > 2 * tallestTile && !form.behind.hasAllColumns && !form.multipliesBytes();
  // By Strassen's algorithm a task may make sums of columns for all of its rows.
  double bytesOfBlock = permitsStrassen(form) ? 2 * blockBytes : blockBytes;
  int64_t wantM = int64_t(std::ceil(double(m) * bytesOfRow(form, kBlock) / bytesOfBlock));
  blocks.m = std::clamp<int64_t>(wantM, 1, std::max<int64_t>(1, m / 48));
  if (packsB) {
    double bytesOfTerm = double(form.accumulatorBytes()) / double(form.group);
    int64_t wantN = int64_t(std::ceil(double(n) * double(kBlock) * bytesOfTerm / blockBytes));
    blocks.n = std::clamp<int64_t>(wantN, 1, std::max<int64_t>(1, panels / 4));
  }
  while (true) {
    int64_t tasks = batch * blocks.m * blocks.n;
    if (tasks >= wantedTasks || work * batch / double(tasks) < 2 * taskWork)
      return blocks;
    int64_t rows = m / blocks.m, width = panels / blocks.n;
    bool ofBytes = form.multipliesBytes(), cutsFew = isSmall || form.behind.hasAllColumns;
    int64_t fewest = cutsFew ? (ofBytes ? 2 * fewestCopied : fewestOfSmall) : ofBytes ? fewestOfBytes : fewestCut;
    bool isFlat = packsBlocks && rows <= width * panelWidth;
    int64_t least = isFlat ? std::max<int64_t>(2, form.behind.panelUnit) : narrowest;
    bool canM = rows >= (packsBlocks && blocks.n > 1 ? 2 * fewest : fewest), canN = width >= 2 * least;
    // B that the task packs is packed again for each block of rows.
    bool preferN = packsB || (!isSmall && width * panelWidth * 2 >= rows);
    if (canN && (preferN || !canM))
      blocks.n = std::min(blocks.n * 2, panels / least);
    else if (canM)
      blocks.m *= 2;
    else
      return blocks;
  }
}

static constexpr int64_t mostRowsOfUnknown = 96;

/// Rows of a block where it is not known how many there are.
static int64_t rowsOfUnknown(const ContractionForm &form) {
  auto k = form.k.asConstant();
  if (!k || *k <= 0)
    return mostRowsOfUnknown;
  return std::clamp<int64_t>(blockBytes / (termsOfBlock(form, *k) * form.lhs.elementBytes()), 48, mostRowsOfUnknown);
}

static void countBlocks(ContractionForm &form) {
  MLIRContext *context = form.op.getContext();
  auto constant = [&](int64_t value) { return Expr::constant(context, value); };
  auto m = form.m.asConstant(), n = form.n.asConstant(), k = form.k.asConstant(), batch = form.batch.asConstant();
  if (m && n && k) {
    BlockCounts blocks = countStaticBlocks(form, std::max<int64_t>(*m, 1), std::max<int64_t>(*n, 1),
                                           std::max<int64_t>(*k, 1), batch.value_or(1));
    form.blocks.m = constant(tunedWithin(form.op, tuned::mBlocks, 1, std::max<int64_t>(*m, 1), blocks.m));
    form.blocks.n = constant(
        tunedWithin(form.op, tuned::nBlocks, 1, llvm::divideCeil(std::max<int64_t>(*n, 1), panelWidth), blocks.n));
  } else {
    auto blocksOf = [&](Expr extent, int64_t size) {
      auto known = extent.asConstant();
      return known ? constant(std::max<int64_t>(1, llvm::divideCeil(*known, size)))
                   : Expr::max(extent.ceilDiv(size), constant(1));
    };
    form.blocks.m = blocksOf(form.m, rowsOfUnknown(form));
    form.blocks.n = blocksOf(form.n, form.rhs.isPacked() ? 256 : 128);
    if (form.behind.hasAllColumns) // as many tasks, if they have rows enough: threads share few of them evenly
      form.blocks.m = Expr::min(Expr::max(form.blocks.m, blocksOf(form.m, mostRowsOfUnknown) * form.blocks.n),
                                blocksOf(form.m, fewestOfSmall));
  }
  if (form.behind.hasAllColumns)
    form.blocks.n = constant(1);
  if (form.behind.hasAllRows) { // few blocks are as even as they can be
    int64_t parts = *n / (panelWidth * form.behind.panelUnit);
    form.blocks.m = constant(1);
    form.blocks.n = constant(tunedWithin(form.op, tuned::nBlocks, 1, parts, std::min(parts, 2 * wantedTasks)));
  }
  if (form.behind.panelUnit > 1) // a part is one task's
    form.blocks.n = constant(std::min(form.blocks.n.getValue(), *n / (panelWidth * form.behind.panelUnit)));
  bool bIsLarger = (m && n ? *n >= *m : true) && !(n && k && isSmallWeight(form, *n, *k));
  form.blocks.mFastest = form.rhs.isPacked() || (bIsLarger && !form.lhs.isPacked());
}

/// K blocks of up to 1152 words where B would leave the second-level cache between two row tiles.
static void splitK(ContractionForm &form) {
  MLIRContext *context = form.op.getContext();
  const KLoop &outer = form.kLoops.front();
  form.blocks.k = Expr::constant(context, 1);
  form.blocks.kSize = outer.extent;
  auto k = form.k.asConstant(), extent = outer.extent.asConstant(), m = form.m.asConstant();
  bool isNaturalOrder = outer.dim == form.firstK();
  bool isOfBytes = form.permitsByteRows() && suitsFixedPoint(form); // short rows and columns
  if ((form.rhs.isPacked() && !isNaturalOrder) || form.taps.step || isOfBytes)
    return;
  if (!k && form.kLoops.size() == 1) {
    form.blocks.kSize = Expr::constant(context, longestBlock); // whole words
    form.blocks.k = outer.extent.ceilDiv(longestBlock);
    return;
  }
  if (!k || !extent || *extent == 0)
    return;
  int64_t inner = *k / *extent, ofWord = form.multipliesBytes() ? form.group : 1;
  int64_t longest = inner > 1 ? 1152 : hasOneRun(form) ? longestBlock : longestWhole;
  int64_t most = std::max<int64_t>(1, longest * ofWord / inner);
  bool isWhole = *k <= longestWhole * ofWord || (m && *m <= 2 * tallestTile);
  int64_t blocks = tunedWithin(form.op, tuned::kBlocks, 1, *extent, isWhole ? 1 : llvm::divideCeil(*extent, most));
  if (blocks == 1)
    return;
  int64_t unit = inner > 1 ? 1 : permitsStrassen(form) ? loop::strassenTerms : form.conversion.words;
  form.blocks.kSize = Expr::constant(context, llvm::alignTo(llvm::divideCeil(*extent, blocks), unit));
  form.blocks.k = Expr::constant(context, llvm::divideCeil(*extent, form.blocks.kSize.getValue()));
}

/// Whether copies of bytes may save more than they cost. For a row, in cycles of a core with 256-bit vectors: some for
/// each run of k and for each vector, against half of what its products take without them.
static bool paysToCopy(const ContractionForm &form) {
  constexpr int64_t ofRun = 20, bytesOfCycle = 8, productsOfCycle = 32;
  if (!form.multipliesBytes() || form.blocks.rowsMost.asConstant().value_or(fewestCopied) < fewestCopied)
    return false;
  auto n = form.n.asConstant(), k = form.k.asConstant();
  int64_t runs = 1;
  for (const KLoop &loop : ArrayRef(form.kLoops).drop_back())
    runs *= loop.extent.asConstant().value_or(1);
  return !n || !k || runs * ofRun + *k / bytesOfCycle < *k * *n / productsOfCycle;
}

/// Of an image of outputs.
static int64_t patchesOf(int64_t height, int64_t width) {
  return int64_t(llvm::divideCeil(height, patchSize) * llvm::divideCeil(width, patchSize));
}

/// Whether instructions for a panel of so many patches of a task, with 256-bit vectors, are fewer than for as many
/// outputs by bytes in pairs.
static bool areFewerInPatches(double patches, double outputs, double terms, double panels) {
  constexpr double ofProducts = 108, ofResults = 900, ofPixels = 31, ofWeights = 138, ofPairs = 14.6;
  double inPatches = patches * (terms * (ofProducts + ofPixels / panels) + ofResults) + terms * ofWeights;
  return inPatches < 0.9 * ofPairs * terms * outputs;
}

/// Whether the sum is over windows of 3 x 3 pixels that lie in memory as their outputs do in the image, and is worth
/// transforms (CpuContractionPatches.cpp).
static bool paysInPatches(ContractionForm &form) {
  constexpr int64_t fewestColumns = 32;
  if (!form.multipliesBytes() || !form.lhs.readsMemory() || form.rhs.isPacked() || !form.batch.isConstant(1) ||
      form.mDims < 2 || form.nDims != 1 || form.kLoops.size() < 3)
    return false;
  int64_t across = form.firstN() - 1, down = across - 1;
  int64_t column = form.kLoops[form.kLoops.size() - 2].dim, line = form.kLoops[form.kLoops.size() - 3].dim;
  auto width = form.domain[across].asConstant(), height = form.domain[down].asConstant();
  auto n = form.n.asConstant(), k = form.k.asConstant(), channels = form.kLoops.back().extent.asConstant();
  if (!width || !height || !n || !k || !channels || !form.domain[column].isConstant(patchTaps) ||
      !form.domain[line].isConstant(patchTaps))
    return false;
  bool isRagged = *n % panelWidth || *channels * form.group % patchChannels;
  if (isRagged || *n < fewestColumns || std::min(*width, *height) < patchSize)
    return false;
  int64_t panelCount = *n / panelWidth;
  double image = double(*height * *width), patches = double(patchesOf(*height, *width)), images = 1;
  if (auto m = form.m.asConstant()) {
    auto blocksOfRows = form.blocks.m.asConstant(), blocksOfColumns = form.blocks.n.asConstant();
    if (!blocksOfRows || !blocksOfColumns)
      return false;
    // Tasks stay as many: of fewer blocks of rows and of down to a panel each (takeBlocksOfCopies).
    int64_t tasks = *blocksOfRows * *blocksOfColumns;
    images = double(*m) / image / double(std::min<int64_t>(*blocksOfRows, llvm::divideCeil(tasks, panelCount)));
  }
  double terms = double(*k) / (patchTaps * patchTaps);
  if (!areFewerInPatches(images * patches, images * image, terms, double(panelCount)))
    return false;
  return llvm::all_of(form.lhs.movedExprs(), [&](Expr expr) {
    auto isSame = [&](int64_t output, int64_t tap) {
      Expr ofOutput = loop::strideOf(expr, output), ofTap = loop::strideOf(expr, tap);
      return ofOutput && ofTap && ofOutput == ofTap;
    };
    return isSame(across, column) && isSame(down, line);
  });
}

bool cpu::ownsTasks(const ContractionForm &form) {
  auto kernel = form.op->getParentOfType<loop::KernelOp>();
  return !kernel || getNodes(kernel).size() == 1;
}

namespace {
/// Rows of A that are copied, or patches, of which there are `across` in so many rows: how many bytes the copy of one
/// has, with what a task holds of its results, and of how many the products take as long as taking the columns apart.
struct RowsOfCopies {
  int64_t bytes, ofTransform, across = 1, rows = 1;
};
} // namespace

/// Blocks of rows (patches), which are copied once, that are worth taking the columns apart for each, and whose copies
/// stay in the second-level cache; the most that a block has of them.
static Expr planBlocksOfCopies(ContractionForm &form, const RowsOfCopies &copies) {
  constexpr int64_t share = 32; // of the products
  ContractionBlocks &blocks = form.blocks;
  int64_t wanted = share * copies.ofTransform;
  Expr count = form.m.floorDiv(copies.rows) * copies.across;
  if (auto known = count.asConstant()) {
    int64_t fitting = llvm::divideCeil(*known * copies.bytes, blockBytes);
    blocks.ofCopies = std::clamp<int64_t>(std::max(*known / wanted, fitting), 1, blocks.m.getValue());
    return count.ceilDiv(blocks.ofCopies);
  }
  int64_t ofBlock = std::max<int64_t>(rowsOfUnknown(form) * copies.across / copies.rows, 1);
  int64_t fitting = std::min(wanted, blockBytes / copies.bytes), n = form.n.asConstant().value_or(1);
  int64_t columns = llvm::divideCeil(n, panelWidth) / blocks.n.asConstant().value_or(n);
  blocks.togetherInCopies = std::max<int64_t>(std::min(fitting / ofBlock, columns), 1);
  // Where nearly twice as many blocks are one.
  int64_t most = llvm::divideCeil((2 * blocks.togetherInCopies - 1) * rowsOfUnknown(form) * copies.across, copies.rows);
  return Expr::min(count, Expr::constant(form.op.getContext(), most));
}

/// Rows of B in a block of k.
static Expr rowsOfBlock(const ContractionForm &form) {
  return form.blocks.isSplitK() ? form.blocks.kSize * form.kLoops.front().bStride : form.k.floorDiv(form.group);
}

/// Copies of operands that the task packs.
static void layOutOperands(ContractionForm &form, ScratchLayout &layout) {
  ContractionScratch &scratch = form.scratch;
  int64_t bytes = form.accumulatorBytes();
  if (form.lhs.form == LhsForm::PackedRows) {
    // Rows an odd number of lines apart do not meet in one set of the first-level cache.
    scratch.lhsPitch = roundUp(form.k, 32) + 16;
    scratch.lhsAt = layout.add(form.blocks.rowsMost * scratch.lhsPitch + 32, form.lhs.elementBytes());
  } else if (form.lhs.form == LhsForm::PackedColumns) {
    scratch.lhsPitch = roundUp(form.blocks.rowsMost, 32) + 16;
    scratch.lhsAt = layout.add(form.k * scratch.lhsPitch + 32, bytes);
  }
  if (form.rhs.isPacked()) {
    scratch.rhsRows = rowsOfBlock(form);
    Expr panels = form.blocks.panelsMost;
    scratch.rhsAt = layout.add((panels + 1) * scratch.rhsRows * panelWidth + 16 * panelWidth, bytes);
    scratch.lineAt = layout.add(panels * panelWidth + 32, bytes);
  }
}

/// Partial sums of a task, or the sums of tiles that wait for the epilogue.
static void layOutSums(ContractionForm &form, ScratchLayout &layout) {
  MLIRContext *context = form.op.getContext();
  ContractionScratch &scratch = form.scratch;
  Expr rows = form.blocks.rowsMost;
  if (form.blocks.isSplitK()) {
    scratch.sumsPitch = form.blocks.panelsMost * panelWidth;
  } else {
    int64_t waiting = tilesThatWait * std::max(tallestAlone, tallestTile * form.taps.mostOutputs);
    scratch.sumsPitch = Expr::constant(context, widestTile * panelWidth);
    rows = Expr::constant(context, std::max(waiting, form.turns ? rowsThatTurn : 0));
  }
  scratch.sumsAt = layout.add(rows * scratch.sumsPitch, form.accumulatorBytes());
}

static void layOutPatches(ContractionForm &form, ScratchLayout &layout) {
  MLIRContext *context = form.op.getContext();
  PatchCopies &patches = form.patches;
  int64_t height = form.domain[form.firstN() - 2].getValue(), width = form.domain[form.firstN() - 1].getValue();
  int64_t bytes = form.accumulatorBytes();
  auto constant = [&](int64_t x) { return Expr::constant(context, x); };
  patches.across = llvm::divideCeil(width, patchSize);
  patches.ofImage = patchesOf(height, width);
  patches.count = form.m.floorDiv(height * width) * patches.ofImage;
  patches.terms = form.k.getValue() / (patchTaps * patchTaps);
  int64_t parts = llvm::divideCeil(patches.terms, mostPatchTerms);
  patches.blockTerms = llvm::alignTo(llvm::divideCeil(patches.terms, parts), patchChannels);
  patches.blocks = llvm::divideCeil(patches.terms, patches.blockTerms);
  // Patches' pixels and points' weights are an odd number of lines apart: not in the same sets of the first-level
  // cache.
  constexpr int64_t termsOfLine = lineBytes / 2;
  patches.pitch = llvm::alignTo(patches.terms * patchPoints, 2 * termsOfLine) + termsOfLine;
  patches.weightPitch = patches.blockTerms / 2 * panelWidth + lineBytes / bytes;
  int64_t resultBytes = (patchPoints + patchOutputs) * panelWidth * bytes;
  Expr most = planBlocksOfCopies(
      form,
      {.bytes = 2 * patches.pitch + resultBytes, .ofTransform = 2, .across = patches.ofImage, .rows = height * width});
  patches.pixelsAt = layout.add(most * patches.pitch, 2);
  patches.weightsAt = layout.add(constant(patchPoints * patches.weightPitch), bytes);
  patches.productsAt = layout.add(most * (patchPoints * panelWidth), bytes);
  patches.outputsAt = layout.add(most * (patchOutputs * panelWidth), bytes);
}

/// Lines that are an odd number, so that rows do not meet in the same sets of the first-level cache.
static Expr pitchOf(Expr bytes) { return bytes.ceilDiv(lineBytes).floorDiv(2) * (2 * lineBytes) + lineBytes; }

static void layOutByteCopies(ContractionForm &form, ScratchLayout &layout) {
  MLIRContext *context = form.op.getContext();
  constexpr int64_t rowsTogether = 64, termsTogether = 16; // that are transposed at once, at most
  ByteCopies &copies = form.bytes;
  ContractionBlocks &blocks = form.blocks;
  copies.rows = rowsOfBlock(form);
  Expr terms = roundUp(copies.rows * form.group, termsTogether);
  copies.pitch = pitchOf(terms);
  Expr most = blocks.rowsMost;
  auto pitch = copies.pitch.asConstant();
  if (pitch && form.m.isConstant() == blocks.m.isConstant() && blocks.n.isConstant() && !blocks.isSplitK() &&
      form.lhs.form != LhsForm::PackedRows && ownsTasks(form))
    most = Expr::min(form.m, planBlocksOfCopies(form, {.bytes = *pitch, .ofTransform = 8})) + 2 * tallestTile;
  most = roundUp(most, rowsTogether);
  int64_t bytes = form.accumulatorBytes();
  int64_t columns = panelWidth * std::min(widestTile, form.n.ceilDiv(panelWidth).asConstant().value_or(widestTile));
  copies.turnedPitch = pitchOf(most);
  copies.widePitch = pitchOf(terms * 2).floorDiv(2);
  copies.restPitch = most + lineBytes / bytes;
  copies.listSize = copies.rows * 2 + 2; // one of each pair, and one that makes them even
  copies.rowsAt = layout.add(most * copies.pitch, 1);
  copies.turnedAt = layout.add(terms * copies.turnedPitch, 1);
  copies.wideAt = layout.add(most * copies.widePitch, 2);
  copies.columnsAt = layout.add(copies.rows * columns * 2, bytes); // of 16-bit integers
  copies.listPlacesAt = layout.add(copies.listSize * panelWidth, 8);
  copies.listWeightsAt = layout.add(copies.listSize * panelWidth, 2);
  copies.largestAt = layout.add(terms, 1);
  copies.isTurnedAt = layout.add(Expr::constant(context, 1), 8);
  copies.isWidenedAt = layout.add(Expr::constant(context, 1), 8);
  copies.listCountsAt = layout.add(Expr::constant(context, panelWidth), 8);
  copies.restOfColumnsAt = layout.add(copies.restPitch * panelWidth, bytes);
  copies.restOfRowsAt = layout.add(copies.restPitch * columns, bytes);
  copies.zerosAt = layout.add(Expr::constant(context, panelWidth), bytes);
}

static void layOutScratch(ContractionForm &form) {
  ScratchLayout layout{Expr::constant(form.op.getContext(), 0)};
  layOutOperands(form, layout);
  layOutSums(form, layout);
  if (form.lhs.form == LhsForm::Redirected)
    form.scratch.fillAt = layout.add(form.fillSize() + 16, form.accumulatorBytes());
  if (suitsFixedPoint(form)) {
    form.fixedPoint.pitch = wordsOfFixedPoint(form);
    Expr rows = form.permitsByteRows() ? form.blocks.rowsMost : Expr::constant(form.op.getContext(), mostInFixedPoint);
    form.fixedPoint.at = layout.add(form.fixedPoint.pitch * rows, 4);
  }
  ScratchLayout ofMatrix{layout.end}; // no level makes these copies and those that follow
  form.copies = planMatrixCopies(form);
  if (form.copies.scratch)
    form.copies.at = ofMatrix.add(form.copies.scratch, 1);
  if (suitsStrassen(form))
    layOutStrassen(form, layout);
  if (ownsTasks(form) && paysInPatches(form))
    layOutPatches(form, layout);
  else if (paysToCopy(form))
    layOutByteCopies(form, layout);
  form.scratch.size = Expr::max(layout.end, ofMatrix.end);
}

void cpu::planBlocks(ContractionForm &form) {
  ContractionBlocks &blocks = form.blocks;
  countBlocks(form);
  splitK(form);
  assert((!form.behind.hasAllColumns || blocks.n.isConstant(1)) && "whole rows are one block's");
  assert((!form.behind.hasAllRows || blocks.m.isConstant(1)) && "whole columns are one block's");
  assert(!(blocks.isSplitK() && form.taps.step) && "several outputs in a row of the tile have sums in registers alone");
  if (blocks.isSplitK() && form.rhs.isPacked() && form.lhs.isPacked())
    blocks.mFastest = false; // no task finds columns packed, but rows
  bool isStrassen = suitsStrassen(form);
  if (isStrassen)
    blocks.mFastest = false; // at levels that multiply plainly rows stay with the thread that wrote them
  blocks.rowsMost = mostOfPart(form.m, blocks.m, (isStrassen ? 4 : 2) * tallestTile);
  blocks.panelsMost = mostOfPart(form.n.ceilDiv(panelWidth), blocks.n, std::max(2 * widestTile, form.behind.panelUnit));
  layOutScratch(form);
  blocks.iterations = form.batch * blocks.m * blocks.n;
  Expr one = Expr::constant(form.op.getContext(), 1);
  Expr work = form.m.ceilDiv(blocks.m) * form.n.ceilDiv(blocks.n) * Expr::max(form.k, one);
  blocks.grain = Expr::constant(form.op.getContext(), grainWork).ceilDiv(Expr::max(work, one));
}

static StringRef nameOf(LhsForm form) {
  switch (form) {
  case LhsForm::InPlace:
    return "in_place";
  case LhsForm::Redirected:
    return "redirected";
  case LhsForm::Panels:
    return "panels";
  case LhsForm::PackedRows:
    return "packed_rows";
  case LhsForm::PackedColumns:
    return "packed_columns";
  }
  llvm_unreachable("a form of the lhs");
}

static StringRef nameOf(RhsForm form) {
  switch (form) {
  case RhsForm::Panels:
    return "panels";
  case RhsForm::PackedConverted:
    return "packed_converted";
  case RhsForm::PackedAlongN:
    return "packed_along_n";
  case RhsForm::PackedAlongK:
    return "packed_along_k";
  }
  llvm_unreachable("a form of the rhs");
}

FailureOr<KernelPlan> cpu::planContraction(loop::KernelOp kernel, loop::ContractionOp op) {
  canonicalizeContraction(op);
  if (loop::getWinogradTile(op))
    return planWinograd(op);
  if (isNarrowContraction(op)) {
    kernel.setParallel(int64_t(op.getBatch() + op.getM() + op.getN()));
    loop::replaceByReduction(op);
    return planLoops(kernel);
  }
  ContractionForm form = analyzeContraction(op);
  Builder builder(kernel.getContext());
  auto config = builder.getDictionaryAttr({
      builder.getNamedAttr("lhs", builder.getStringAttr(nameOf(form.lhs.form))),
      builder.getNamedAttr("rhs", builder.getStringAttr(nameOf(form.rhs.form))),
      builder.getNamedAttr("m_blocks", ExprAttr(form.blocks.m)),
      builder.getNamedAttr("n_blocks", ExprAttr(form.blocks.n)),
      builder.getNamedAttr("k_blocks", ExprAttr(form.blocks.k)),
      builder.getNamedAttr("k_group", builder.getI64IntegerAttr(form.group)),
  });
  if (form.strassen.at) {
    NamedAttrList all(config);
    all.set(loop::algorithmAttr, builder.getStringAttr(loop::strassenAttr));
    config = all.getDictionary(kernel.getContext());
  }
  return KernelPlan{
      .iterations = form.blocks.iterations, .grain = form.blocks.grain, .scratch = form.scratch.size, .config = config};
}

FailureOr<KernelPlan> cpu::planContractions(loop::KernelOp kernel, ArrayRef<Operation *> nodes) {
  ArrayRef<Operation *> ops = nodes.take_while(llvm::IsaPred<loop::ContractionOp>);
  for (Operation *op : ops) // what one is planned as may depend on the others
    canonicalizeContraction(cast<loop::ContractionOp>(op));
  FailureOr<KernelPlan> plan = planContraction(kernel, cast<loop::ContractionOp>(ops.front()));
  for (Operation *op : ops.drop_front()) {
    if (failed(plan))
      return failure();
    ContractionForm form = analyzeContraction(cast<loop::ContractionOp>(op));
    if (form.blocks.iterations != plan->iterations)
      return op->emitError("is not cut into the blocks of the product before it in its kernel");
    plan->scratch = Expr::max(plan->scratch, form.scratch.size); // tasks of one are done before the other's begin
    plan->grain = Expr::min(plan->grain, form.blocks.grain);
  }
  if (succeeded(plan) && hasRowsBehind(kernel)) // what the nodes behind it keep of a row
    plan->scratch = plan->scratch + placeLocalBuffers(kernel).scratch;
  return plan;
}

bool cpu::hasRowsBehind(loop::KernelOp kernel) {
  return kernel && kernel.getParallel() > 0 && !kernel.getBlock().getOps<loop::ContractionOp>().empty() &&
         kernel.getBlock().getOps<loop::AttentionOp>().empty() && getNodes(kernel).size() > 1 &&
         !findColumnsBehind(kernel);
}

std::optional<loop::ColumnParts> cpu::findColumnsBehind(loop::KernelOp kernel) {
  SmallVector<Operation *> nodes = kernel ? getNodes(kernel) : SmallVector<Operation *>();
  if (nodes.size() != 2 || kernel.getParallel() != 1 || !isa<loop::ContractionOp>(nodes[0]) ||
      !isa<loop::ReductionOp>(nodes[1]))
    return std::nullopt;
  auto parts = loop::findOwnColumns(cast<loop::ContractionOp>(nodes[0]), nodes[1]);
  return parts && parts->dim == 0 && parts->width % panelWidth == 0 ? parts : std::nullopt;
}

FailureOr<NodesBehind> cpu::createKernelBehind(loop::KernelOp kernel) {
  bool hasColumns = findColumnsBehind(kernel).has_value();
  loop::KernelOp own = kernel.clone();
  for (auto product : llvm::make_early_inc_range(own.getBlock().getOps<loop::ContractionOp>()))
    product.erase();
  if (hasColumns) {
    auto sum = cast<loop::ReductionOp>(getNodes(own).front());
    SmallVector<Expr> domain = loop::getDomain(sum);
    own.setParallel(int64_t(domain.size() - sum.getReduced()));
    setPlan(own, planLoops(own, /*apart=*/1));
    return NodesBehind{own, Expr(own.getIterationsAttr()).floorDiv(domain.front())};
  }
  Builder b(kernel.getContext());
  own->setAttr(loop::tunedAttr, b.getDictionaryAttr(b.getNamedAttr(tuned::lanesDim, b.getI64IntegerAttr(-1))));
  if (failed(planKernel(own))) {
    own.erase();
    return failure();
  }
  return NodesBehind{own, Expr::constant(kernel.getContext(), 1)};
}

Expr cpu::getProductScratch(loop::KernelOp kernel) {
  return analyzeContraction(*kernel.getBlock().getOps<loop::ContractionOp>().begin()).scratch.size;
}
