//===- CpuContraction.h - how the CPU computes a loop.contraction -*- C++ -*-===//
//
// What planning and code generation share: the form of a contraction (how each operand is read, how its loops are cut),
// a function of the op alone. Nothing here depends on the CPU level, so that all levels share iterations and scratch.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTION_H
#define PTC_CODEGEN_CPU_CPUCONTRACTION_H

#include "codegen/cpu/RegisterTile.h"
#include "ir/loop/ContractionDims.h"

namespace ptc::cpu {

struct ScratchLayout;

/// Row tiles whose sums lie in scratch before a long epilogue runs on them.
inline constexpr int64_t tilesThatWait = 2;
inline constexpr int64_t rowsThatTurn = 112; // at most that wait to be turned: 7 squares

/// How the rows of A reach the register tile.
enum class LhsForm {
  InPlace,       // affine in k, unit stride in the innermost k loop
  Redirected,    // as InPlace, but where a condition on the row and the outer k loops fails a run of constants is read
  Panels,        // a packed weight (roles swapped: the weight's columns are the rows)
  PackedRows,    // evaluated into scratch, [row][k]
  PackedColumns, // evaluated into scratch, [k][row]
};

/// How B becomes unit panels.
enum class RhsForm {
  Panels,          // packed weight
  PackedConverted, // packed weight, converted into scratch
  PackedAlongN,    // evaluated into scratch with vectors along n
  PackedAlongK,    // evaluated with vectors along k and transposed
};

/// What is contracted: the op's dims, which are those of the batch, of m, of n and of k in this order.
struct ContractionShape {
  explicit ContractionShape(loop::ContractionOp op);

  llvm::SmallVector<Expr> domain;
  int64_t batchDims, mDims, nDims, kDims;
  Expr batch, m, n, k; // products of the extents; of Winograd's products m and k are tiles and channels

  int64_t firstM() const { return batchDims; }
  int64_t firstN() const { return batchDims + mDims; }
  int64_t firstK() const { return batchDims + mDims + nDims; }
  /// What divides m, whatever the sizes that a run tells: the pixels of an image.
  int64_t rowUnit() const { return m.range(SymbolRanges()).divisor; }
};

/// A loop over one k dim (-1: all of them as one), outermost first; the innermost one runs over groups. Strides in
/// elements of A and in rows of B.
struct KLoop {
  int64_t dim;
  Expr extent, aStride, bStride;
};

/// How A is read. Its rows lie in memory (InPlace, Redirected), and then it has a load, in a weight (Panels) or in
/// scratch.
struct LhsOperand {
  LhsForm form = LhsForm::InPlace;
  mlir::Type element;     // in memory
  loop::LoadOp load;      // InPlace, Redirected; PackedRows: if A is one, masked or not
  loop::MaskedOp mask;    // the mask around it; Redirected: there is one, InPlace: none
  mlir::TypedAttr other;  // what is read where the mask fails
  loop::PanelsOp panels;  // Panels
  int64_t vectorDim = -1; // of packing

  /// Where the load reads.
  Expr index() const;
  /// Of the mask; empty without one.
  llvm::SmallVector<Expr> conditions() const;
  /// All that moves with a row: the index, then the conditions.
  llvm::SmallVector<Expr> movedExprs() const;
  bool readsMemory() const { return form == LhsForm::InPlace || form == LhsForm::Redirected; }
  bool isPacked() const { return form == LhsForm::PackedRows || form == LhsForm::PackedColumns; }
  int64_t elementBytes() const { return loop::getElementBytes(element); }
};

/// How B is read.
struct RhsOperand {
  RhsForm form = RhsForm::Panels;
  loop::PanelsOp panels;  // Panels, PackedConverted; while they stand in the rhs (bindPanels)
  mlir::Value buffer;     // of the panels, then
  int64_t matrices = 0;   // of the packed weight, if those of the batch are more or not known
  int64_t vectorDim = -1; // of packing
  bool streams = false;   // a weight that does not wait in the second-level cache

  bool isPacked() const { return form != RhsForm::Panels; } // by the task
};

/// Panels that are read beside the weight's: their row is an expression over k dims.
struct BesidePanels {
  mlir::Value buffer;
  Expr row;
  mlir::Type type;
};

/// What becomes of the weight's elements before they are multiplied.
struct WeightConversion {
  int64_t words = 1;                              // PackedConverted: the panels' group
  llvm::SmallVector<loop::PanelsOp> besidePanels; // of the rhs, with rows of their own; while they stand in it
  llvm::SmallVector<BesidePanels> beside;         // then
  /// What numbers of few bits are converted to, if a vector of the accumulator's type has a place for each: by number,
  /// over and over. Null: the rhs converts them.
  mlir::DenseElementsAttr table;
  /// Of a rhs that is a product of an element and of what does not change along the last k dim: the two; or null.
  mlir::Value factored, factor;
  mlir::Value value; // what the rhs yields
  /// Where `factored` is the number plus what does not change along the last k dim: how numbers are to be read.
  enum class Numbers { Other, Unsigned, Signed } numbers = Numbers::Other;
};

/// Where few columns leave most of a vector unused: the loop over k that moves as the outputs in a line of the image
/// do, by so many steps from one to the next (0: there is none), and how many may be a row of the tile
/// (CpuContractionOutputs.cpp).
struct OutputTaps {
  int64_t loop = 0, step = 0, mostOutputs = 1;
};

/// What nodes behind the product ask of its blocks.
struct BlockDemands {
  explicit BlockDemands(loop::ContractionOp op);

  int64_t panelUnit;  // panels that no block cuts: a part that nodes read
  bool hasAllColumns; // of each block: nodes read whole rows
  bool hasAllRows;    // the same, whole columns
};

/// How the work is cut: tasks are batch x m x n, the extents in so many blocks; kLoops[0] runs in k pieces of kSize.
struct ContractionBlocks {
  Expr m, n, k, kSize;
  bool mFastest = false;
  Expr rowsMost, panelsMost; // of one task, at any level
  /// On levels that copy bytes: blocks of rows in place of m, tasks stay as many (0: m); where m is not known, so many
  /// of its blocks, or a few more, are one, and tasks at most as many.
  int64_t ofCopies = 0, togetherInCopies = 1;
  Expr iterations, grain;

  bool isSplitK() const { return !k.isConstant(1); }
};

/// A task's scratch: offsets in bytes (null: not needed) and its size, elements of a row, rows of a packed panel.
struct ContractionScratch {
  Expr lhsAt, rhsAt, lineAt, sumsAt, fillAt, size;
  Expr lhsPitch, sumsPitch, rhsRows;
};

/// The same of bytes that are multiplied in pairs: a task's rows, the same transposed, or as 16-bit integers, the
/// largest byte at each place of a row, a column tile; for each column of a panel a list of weights, and their products
/// for columns and for rows; a row of zeros in the place of those, and whether rows are transposed, or wide, yet. In
/// bytes a row of A and of the transposed copy, in numbers a wide row, a list and a column of products, in groups a
/// column of B. Levels that multiply four bytes leave them alone.
struct ByteCopies {
  Expr rowsAt, turnedAt, wideAt, largestAt, columnsAt, listPlacesAt, listWeightsAt, listCountsAt, restOfColumnsAt,
      restOfRowsAt;
  Expr zerosAt, isTurnedAt, isWidenedAt;
  Expr pitch, turnedPitch, widePitch, listSize, restPitch, rows;
};

/// The same of windows of 3 x 3 bytes, 4 x 4 outputs at once, in place of ByteCopies: so many patches in an image (0:
/// it is not done) and across it, all of them, the terms of a product, in so many blocks of as many, and what a task
/// has of pixels, weights, products and outputs. In 16-bit integers the pixels of a patch, in words the weights of a
/// point.
struct PatchCopies {
  int64_t ofImage = 0, across = 0, terms = 0, blocks = 1, blockTerms = 0, pitch = 0, weightPitch = 0;
  Expr count;
  Expr pixelsAt, weightsAt, productsAt, outputsAt;
};

/// A task's rows in fixed point, where the weight's numbers have few bits and rows are few or may be bytes: words of 32
/// bits, from a row to the next `pitch` (CpuContractionFixedPoint.cpp). Null: no level has such.
struct FixedPointRows {
  Expr at, pitch;
};

/// What tasks with sums in matrix registers copy of A, whose rows are no fixed step apart.
struct MatrixCopies {
  Expr at, scratch;  // in bytes; null: rows are read where they are
  int64_t pitch = 0; // elements from a row to the next, or from a pixel
  /// Of each dim of m, the outputs and what their windows reach beyond the last of them; empty: rows are copied.
  llvm::SmallVector<int64_t> pixels;
  llvm::SmallVector<int64_t> steps; // pixels from one element of the window to the next, of each outer loop over k
  int64_t reach = 0;                // pixels from a window's first to its last
};

/// Copies of a task's rows, and of sums of them, for Strassen's algorithm: offsets in bytes, elements from one row's
/// half of the terms to the next's, and which of these each row tile has (CpuContractionStrassen.cpp). Of levels that
/// store sums of B, too: where these are, elements of one, and whether they are made. Null: products are plain.
struct StrassenCopies {
  Expr at, statesAt, pitch;
  Expr columnsAt, columnsSize, hasColumnsAt;
};

struct ContractionForm : ContractionShape {
  explicit ContractionForm(loop::ContractionOp op);

  loop::ContractionOp op;
  mlir::Type accumulator;
  /// Above 1: B holds words of so many neighbours in k. Both operands are 8-bit integers or bf16, of which an
  /// instruction multiplies and adds up a word's, or B's elements are numbers of `bits` bits, converted by the rhs.
  int64_t group = 1, bits = 0;
  llvm::SmallVector<KLoop> kLoops; // not empty
  LhsOperand lhs;
  RhsOperand rhs;
  WeightConversion conversion;
  OutputTaps taps;
  int64_t mostAlone = 0; // rows that are one tile where registers suffice
  bool turns;            // sums wait for the epilogue, which sees vectors of rows

  BlockDemands behind;
  ContractionBlocks blocks; // from planBlocks on, and what follows
  ContractionScratch scratch;
  ByteCopies bytes;
  PatchCopies patches;
  FixedPointRows fixedPoint;
  StrassenCopies strassen;
  MatrixCopies copies;

  /// prim::byteRowsAttr
  bool permitsByteRows() const;
  /// Whether an instruction adds up the products of a group.
  bool isDot() const { return group > 1 && bits == 0; }
  bool multipliesBytes() const { return isDot() && mlir::isa<mlir::IntegerType>(accumulator); }
  /// What a row that is redirected reads in the innermost loop, at most: outputs of one row of the tile read on.
  Expr fillSize() const {
    bool readsOn = taps.step && taps.loop + 1 == int64_t(kLoops.size());
    return kLoops.back().extent + (readsOn ? (taps.mostOutputs - 1) * taps.step : 0);
  }
  int64_t accumulatorBytes() const { return loop::getElementBytes(accumulator); }
};

/// Merges dims that all regions use as one, drops dims of extent 1, and swaps the roles of lhs and rhs where the result
/// is contiguous along m but not along n. Rewrites the op in place; its meaning stays.
void canonicalizeContraction(loop::ContractionOp op);

/// Whether windows of the convolution leave the image along the last of its two dims of rows and not along the other
/// one, so often that tiles along the other one, whose pixels see the same, are less work.
bool bringsColumnsOutside(loop::ContractionOp op);

/// True if the register tile does not pay: few columns or rows and no packed weight.
bool isNarrowContraction(loop::ContractionOp op);

/// Pointwise nodes of a kernel run behind each block of the product that they read, part by part. In panels, the
/// columns that the parts of all products are multiples of.
int64_t getPanelUnit(loop::ContractionOp op);

/// Tiles for the contraction's products, the one estimated to be the fastest first.
llvm::SmallVector<TileSplit> listTiles(const ContractionForm &form, const CpuLevel &level, const TiledExtents &extents);

/// Whether no other node of the kernel is cut into the product's tasks, or runs behind them.
bool ownsTasks(const ContractionForm &form);

/// Finds the form's tapLoop.
void findTaps(ContractionForm &form);
/// How many outputs are a row of the tile at the level.
int64_t chooseOutputs(const ContractionForm &form, const CpuLevel &level);
/// Whether rows of the tile, outputs of a line, share the pixels that they read (CpuContractionPixels.cpp).
bool sharesPixels(const ContractionForm &form, const CpuLevel &level);

/// Rows of a task that are worth being copied, and a look at its columns, where no instruction multiplies four bytes.
inline constexpr int64_t fewestCopied = 16;

/// Rows of a task that are worth copies in fixed point of 31 bits: three are as fast as floats.
inline constexpr int64_t mostInFixedPoint = 2;

/// Whether levels may take a task's rows as numbers in fixed point.
bool suitsFixedPoint(const ContractionForm &form);
/// The tile of such products where the model permits rows of bytes.
TileSplit chooseTileOfBytes(const ContractionForm &form, const CpuLevel &level, const TiledExtents &extents);
/// 32-bit words of a row of such numbers.
Expr wordsOfFixedPoint(const ContractionForm &form);

/// Whether the weight's rows and columns permit Strassen's algorithm.
bool permitsStrassen(const ContractionForm &form);
/// Whether the level's code makes use of it, outside stages of a recurrence. Its tiles are its own, of so many panels.
bool takesStrassen(const ContractionForm &form, const CpuLevel &level);
int64_t panelsOfStrassen(const CpuLevel &level);
/// In products of a tile: what it takes to copy a tile's rows, and to fetch its columns and make their sums, where
/// other cores have them.
struct SidesOfTile {
  double rows, columns;
};
SidesOfTile sidesOfStrassen(const CpuLevel &level);
/// Blocks of k that it takes as one.
int64_t blocksOfStrassen(const CpuLevel &level);
/// Whether the product is one that it computes, in whole tiles.
bool suitsStrassen(const ContractionForm &form);
/// Places the copies behind what `layout` has.
void layOutStrassen(ContractionForm &form, ScratchLayout &layout);

/// Elements from a row of A where it is to the next; none where that is no constant.
std::optional<int64_t> stepInPlace(const ContractionForm &form);

/// Along each dim, outputs that are computed together, the window's pixels, points; those of both; channels that one
/// vector may have; bits by which an output is found shifted to the left, and the most terms whose sum has room for
/// them.
inline constexpr int64_t patchSize = 4, patchTaps = 3, patchSide = patchSize + patchTaps - 1;
inline constexpr int64_t patchOutputs = patchSize * patchSize, patchPoints = patchSide * patchSide, patchChannels = 16;
inline constexpr int64_t patchBits = 6;
inline constexpr int64_t mostPatchTerms =
    (int64_t(1) << (31 - patchBits)) / (255 * 128 * patchTaps * patchTaps) / patchChannels * patchChannels;

/// Bytes of a weight that does not wait in the second-level cache.
inline constexpr int64_t leastStreamed = 1 << 19;

/// Rows and panels that tasks with sums in matrix registers are cut between.
inline constexpr int64_t matrixUnitRows = 16, matrixUnitPanels = 2;

/// Bytes of a row of a matrix register, and words of 4 bytes, which are groups of terms.
inline constexpr int64_t matrixRowBytes = 64, matrixRowGroups = matrixRowBytes / 4;

/// The copies of such tasks, but for where they lie.
MatrixCopies planMatrixCopies(const ContractionForm &form);

ContractionForm analyzeContraction(loop::ContractionOp op);
/// The part of the analysis that says what the dims are and how operands are read.
ContractionForm describeContraction(loop::ContractionOp op);
/// The part of the analysis that cuts the work into blocks and lays out the scratch memory.
void planBlocks(ContractionForm &form);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTION_H
