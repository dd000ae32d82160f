//===- CpuContractionEmission.h - a contraction being emitted ---*- C++ -*-===//
//
// State shared by the files that emit one contraction: what a task is, which loops it has, and the values that all of
// them need. Members stand by file, whose name each section tells; without one they are CpuContraction.cpp's.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTIONEMISSION_H
#define PTC_CODEGEN_CPU_CPUCONTRACTIONEMISSION_H

#include "codegen/cpu/CpuContractionTask.h"
#include <memory>

namespace ptc::cpu {

class ByteEmission;
class FixedPointEmission;
class PatchEmission;

/// Rows that are worth such sums; fewer, and vectors read a weight as fast as memory gives it.
inline constexpr int64_t fewestInMatrix = 5;

/// Memory of a kernel whose sums are in matrix registers.
struct MatrixSlots {
  int64_t groups = 0;      // of k that a step takes
  mlir::Value whole, tail; // configurations: of 32 rows, of a task's blocks or its last rows
  mlir::Value height;      // rows of the one that is loaded
  mlir::Value delayed;     // the block whose epilogue is delayed
  mlir::Value a, b;        // copies of two registers of each operand
};

/// Which tasks multiply copies of their bytes in pairs; how many rows they have may be known to a run alone.
enum class ByteCopying { None, ManyRows, All };

/// Which tasks take their rows in fixed point: those of few rows may be known to a run alone.
enum class FixedPoint { None, FewRows, All };

/// What a tile multiplies: operands as they are, bytes in pairs, rows in fixed point.
enum class TileKind { Plain, Bytes, FixedPoint };

class ContractionEmission {
public:
  ContractionEmission(KernelEmitter &emitter, ContractionForm &form);
  ~ContractionEmission();
  void emit(mlir::Value begin, mlir::Value end);
  /// A node behind the product's blocks: the parts of the task's columns. Where the node stands in the emitter's
  /// kernel.
  void emitBehind(const ContractionTask &task, mlir::Operation *node, loop::ContractionOp product);
  void emitTasks(mlir::Value begin, mlir::Value end);

  /// Sets the tile, and what follows from it: where tuning asks for one, that.
  void chooseSplit(const TiledExtents &extents);
  void findScratch();
  void emitTask(const ContractionTask &task);
  /// Tasks [begin, end), which are blocks of columns of all rows, as one.
  void emitTogether(mlir::Value begin, mlir::Value end);
  void emitBlock(const ContractionTask &task, mlir::Value kLower, mlir::Value kUpper);
  /// The tile without terms that are zero for all of its sums, or enter none that is read (CpuContractionNeeded.cpp).
  ContractionTile withNeededTerms(ContractionTile tile);
  void emitTile(const ContractionTask &task, const ContractionTile &tile, TileKind kind);
  /// `body` for tasks of each kind, as far as there are several.
  void forEachKind(const ContractionTask &task, llvm::function_ref<void(TileKind kind)> body);
  TileShape shapeOf(const ContractionTile &tile);
  /// The products of a tile, added to what is given, and what becomes of them.
  using TileProducts = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange init)>;
  void finishTile(const ContractionTask &task, const ContractionTile &tile, TileProducts products);
  llvm::SmallVector<mlir::Type> sumTypes(const ContractionTile &tile);

  // Tasks and their tiles (CpuContractionTiles.cpp).
  ContractionTask decodeTask(mlir::Value index);
  /// The task's blocks; its rows and columns are not set.
  ContractionTask findBlocks(mlir::Value index);
  /// Begin and end of one of so many pieces of [0, whole), times `unit`.
  std::pair<mlir::Value, mlir::Value> pieceOf(mlir::Value whole, mlir::Value pieces, mlir::Value number,
                                              int64_t unit = 1);
  void cutInMatrixUnits(ContractionTask &task);
  void cutInPatches(ContractionTask &task);
  void cutInTiles(ContractionTask &task);
  /// An extent in tiles: the first `larger` of them have part + 1 rows, the others `part`.
  struct Parts {
    mlir::Value tiles, part, larger;
  };
  Parts splitRows();
  llvm::SmallVector<RowClass> rowClasses(const ContractionTask &task);
  llvm::SmallVector<ColumnClass> columnClasses(const ContractionTask &task);
  /// Tiles whose panels lie apart, then single panels.
  llvm::SmallVector<ColumnClass> classesApart(const ContractionTask &task);
  /// The column of the result that a tile's column is.
  mlir::Value columnOf(const ColumnClass &columns, mlir::Value panel, int64_t column);
  using ColumnBody = llvm::function_ref<void(const ColumnClass &columns, mlir::Value panel)>;
  void forEachColumnTile(const ContractionTask &task, ColumnBody body);
  mlir::Value firstRowOf(const RowClass &rows, mlir::Value rowTile);
  /// The number of a tile among all of the task's, counted from the task's first.
  mlir::Value numberOf(const ContractionTask &task, const RowClass &rows, mlir::Value rowTile);
  using TileBody = llvm::function_ref<void(const RowClass &rows, const ColumnClass &columns, mlir::Value rowTile,
                                           mlir::Value row, mlir::Value panel)>;
  /// Loops over the task's column tiles and row tiles, one for each pair of classes.
  void forEachTile(const ContractionTask &task, TileBody body);

  // What a tile fetches meanwhile (CpuContractionFetch.cpp).
  /// Whether a tile of this height holds all rows.
  bool isLoneRowTile(int64_t height);
  /// Of the next column tile its share, or so many bytes further on in its own streams.
  struct Fetching {
    bool nextColumns = false;
    int64_t ahead = 0;
  };
  Fetching chooseFetching(const ContractionTile &tile);
  /// How far behind a column tile, and behind the rows of B that it reads, those lie that are read next; null: the
  /// panels that follow.
  struct PanelStep {
    mlir::Value panels, rows;
  };
  PanelStep nextPanels(const ContractionTask &task, const ContractionTile &tile);
  /// Of the next column tile: so many panels, `apart` bytes from one to the next, from number `panel` on. Of each row
  /// `bytes` bytes, which are share `number`.
  struct FetchedShare {
    int64_t panels = 1;
    mlir::Value panel, number, apart, bytes;
  };
  std::optional<int64_t> rowTilesOfTask();
  FetchedShare shareOf(const ContractionTask &task, mlir::Value rowTile, int64_t panels, int64_t rowBytes,
                       mlir::Value panelBytes);
  /// Sets what a row tile fetches of the next column tile of `panels` panels, in rows [lower, upper) of B moved by
  /// `step`.
  void fetchNextPanels(TileOperands &operands, const ContractionTask &task, mlir::Value rowTile, int64_t panels,
                       mlir::Value lower, mlir::Value upper, const PanelStep &step);
  /// Whether the streams of a lone row tile's panels should go on from one column tile to the next.
  bool wantsLongStreams();

  // What a tile reads.
  mlir::Type elementOfB();
  /// Whether the weight's elements are more than loaded before they are multiplied.
  bool convertsWeight() { return !f.rhs.isPacked() && f.op.getRhs().front().getOperations().size() > 1; }
  TileOperands operandsOf(const ContractionTask &task, const ContractionTile &tile, const TileShape &shape,
                          const Fetching &fetching);
  RowAddresses rowAddresses(const ContractionTask &task, const RowClass &rows, mlir::Value row);
  RowAddresses addressesInPanels(const ContractionTask &task, int64_t height, mlir::Value row);
  RowAddresses addressesInMemory(const ContractionTask &task, int64_t height, mlir::Value row);
  /// So many, `stride` elements from one to the next.
  llvm::SmallVector<mlir::Value> addressesApart(mlir::Value first, mlir::Type element, int64_t count,
                                                mlir::Value stride);
  /// `base` where the outer loops over k stand.
  mlir::Value movedBy(mlir::Value base, mlir::ValueRange outer);
  /// Of A's element at the point: where the load reads; where the mask holds; or as the form of A says.
  mlir::Value addressInPlace(const EmissionPoint &point);
  mlir::Value redirectedAddress(const EmissionPoint &point);
  mlir::Value addressOf(const EmissionPoint &point);
  /// Whether products of zeros alone may be left out, and are worth the question.
  bool mayLeaveOut() const;
  bool meetsZeros() const;

  // Tiles in lines of the image (CpuContractionLines.cpp).
  /// Sets lineParts or the height of tiles, and asksForZeros, where that saves products.
  void cutLines();
  /// Rows of a line that has parts.
  int64_t lengthOfLine() const { return lineParts.back().first + lineParts.back().height; }

  // Tiles whose windows meet no border (CpuContractionInside.cpp).
  /// The loops over k of such a tile of so many rows, which reads A where it is; empty where there is nothing to gain.
  llvm::SmallVector<KLoop> getInsideLoops(int64_t height);
  llvm::SmallVector<KLoop> joinLoops();
  llvm::SmallVector<KLoop> loopsInPlace();
  /// Whether `liesInside` can tell: for each condition it is known at which end of each dim it is smallest.
  bool areConditionsSolvable();
  mlir::Value liesInside(const ContractionTask &task, int64_t height, mlir::Value row);
  /// Fetches what a later tile reads so many bytes beyond `first`, its rows `stride` elements apart.
  void fetchPixels(mlir::Value first, int64_t height, int64_t stride, mlir::Value ahead);
  /// How far on that is: the next line of the image, if it is near.
  mlir::Value bytesAhead();
  TileOperands insideOperands(const ContractionTask &task, TileOperands operands, llvm::ArrayRef<KLoop> joined,
                              int64_t height, mlir::Value row);

  // Several outputs in a row of the tile (CpuContractionOutputs.cpp).
  llvm::SmallVector<mlir::Value> multiplyOutputs(TileShape shape, const TileOperands &operands, mlir::ValueRange init);
  /// The sums of such a tile as those of a tile with a row for each output.
  llvm::SmallVector<mlir::Value> separateOutputs(TileShape shape, mlir::ValueRange accumulators);
  RowClass rowsOfOutputs(RowClass rows) const {
    rows.height *= outputs;
    return rows;
  }
  /// The tile with a row for each output.
  ContractionTile tileWithOutputs(ContractionTile tile) {
    tile.rows = rowsOfOutputs(tile.rows);
    tile.row = i.mul(tile.row, i.constant(outputs));
    return tile;
  }

  // Strassen's algorithm (CpuContractionStrassen.cpp). Column tiles have four panels then, row tiles halves.
  bool takesStrassen() const;
  /// Whether the same copies serve all matrices of the batch, whose tasks follow each other then.
  bool sharesCopies() const;
  /// Tiles of pairs of rows; `larger` of them have one pair more. A last one may have an odd number of rows.
  Parts splitPairs();
  llvm::SmallVector<RowClass> classesOfPairs(const ContractionTask &task);
  void copyForStrassen(const ContractionTask &task);
  void emitStrassenTile(const ContractionTask &task, const ContractionTile &tile);

  // Pixels that a tile's rows share (CpuContractionPixels.cpp).
  /// Sets sharedPixels, and the tile that it takes, where a vector is all columns. A tuned tile
  /// keeps its height, and has none where that does not divide the line.
  void findSharedPixels(bool isTuned);
  TileOperands sharingOperands(const ContractionTask &task, TileOperands operands, mlir::Value row);

  // Sums in matrix registers (CpuContractionMatrix.cpp).
  bool sumsInMatrix();
  void prepareMatrix();
  void releaseMatrix();
  void emitMatrixBlock(const ContractionTask &task, mlir::Value kLower, mlir::Value kUpper);
  /// Bytes from a row of A to the next; null where that is not fixed.
  mlir::Value fixedRowStride();
  /// The fewest and the most rows, or pixels, of a task that has any.
  std::pair<int64_t, int64_t> rowsOfMatrixTasks();
  /// The loops over k of such sums.
  llvm::SmallVector<KLoop> matrixLoops() const;

  // Copies of rows or of pixels for them (CpuContractionMatrixRows.cpp), in scratch.
  void copyForMatrix(const ContractionTask &task);
  bool copiesPixels() const { return copied && !f.copies.pixels.empty(); }
  /// The pixel that the row's window begins with; the first of its line.
  mlir::Value pixelOf(mlir::Value row);
  /// From that of the task's first row to that of its last one.
  mlir::Value pixelsOf(const ContractionTask &task);
  mlir::Value startOfLine(mlir::Value pixel);
  /// The first row whose window does not begin before the pixel.
  mlir::Value firstRowAt(mlir::Value pixel);
  void copyPixels(const ContractionTask &task);
  void copyRows(const ContractionTask &task);
  /// `row` where its window meets no border, which the value tells; null: it is not copied so.
  mlir::Value copyInside(const ContractionTask &task, mlir::Value row, mlir::Value target);
  void copyAnywhere(const ContractionTask &task, mlir::Value row, mlir::Value target);
  /// The elements of a row that the innermost loop over k reads.
  void copyRun(mlir::Value from, mlir::Value to);

  // Conversion of B's elements (CpuContractionConvert.cpp).
  /// What the tile does with vectors that it loads from the weight's panels.
  void convertOperand(TileOperands &operands, const TileShape &shape, const ContractionTask &task,
                      const ContractionTile &tile);
  mlir::Value convertedGroups(const ContractionTask &task, mlir::Value groups);
  /// `wanted` of the rhs on a vector of the weight's elements from `column` of the panel on, at the point's k.
  /// `prefetches`: what is read beside the weight streams from memory.
  mlir::Value converted(const ContractionTask &task, EmissionPoint at, mlir::Value wanted, mlir::Value panel,
                        mlir::Value elements, int64_t column, bool prefetches = false);
  /// The conversion's factor for a vector of the panel's columns, where the outer loops over k stand.
  mlir::Value factorOf(const ContractionTask &task, mlir::Value panel, const TileVector &vector, mlir::ValueRange outer,
                       bool prefetches);
  /// Number `term` of the groups in a vector of words, as the rest of the rhs takes it.
  mlir::Value numberOf(mlir::Value words, int64_t term);
  /// Where the loops over k stand, and number `term` of a group.
  EmissionPoint pointInLoops(const ContractionTask &task, mlir::ValueRange ks, int64_t term);

  // Bytes multiplied in pairs (CpuContractionBytes.cpp).
  /// Cuts the plan's tasks into fewer blocks of rows and more of columns, which each task looks at or transforms.
  void takeBlocksOfCopies();
  ByteCopying chooseCopying();
  /// Whether a copy of rows is of all of k, and serves tasks that follow each other.
  bool copiesRowsOfTasks() const { return copying != ByteCopying::None && !f.blocks.isSplitK(); }

  // Rows in fixed point (CpuContractionFixedPoint.cpp).
  FixedPoint chooseFixedPoint();

  // Windows of 3 x 3 bytes, 4 x 4 outputs at once (CpuContractionPatches.cpp). A task's rows are patches then.
  bool takesPatches() const { return f.patches.ofImage && e.level.multipliesPairs(); }
  /// `groups` groups of unsigned bytes at `from` as 16-bit integers, in words.
  mlir::Value loadWords(mlir::Value from, int64_t groups);
  /// A vector of zeros of the accumulator's type.
  mlir::Value zeroSum();

  // Packing (CpuContractionPack.cpp). Each runs only where the copy from the task before does not serve.
  void packLhs(const ContractionTask &task);
  void packLhsRows(const ContractionTask &task);
  /// The rows of tiles that do not read A where it is.
  void forEachPackedRow(const ContractionTask &task, llvm::function_ref<void(mlir::Value row)> body);
  /// Whether rows whose window meets no border can be copied run by run, in whole vectors.
  bool copiesRuns();
  /// The runs of the row, if its window meets no border, which the value tells.
  mlir::Value copyRuns(const ContractionTask &task, mlir::Value row, mlir::Value target,
                       llvm::function_ref<mlir::Value(int64_t)> strideIn);
  void packLhsColumns(const ContractionTask &task);
  void packRhs(const ContractionTask &task, mlir::Value kLower, mlir::Value kUpper);
  void packRhsConverted(const ContractionTask &task, mlir::Value kLower, mlir::Value kUpper);
  void packRhsAlongN(const ContractionTask &task, mlir::Value kLower, mlir::Value kUpper);
  void packRhsAlongK(const ContractionTask &task, mlir::Value kLower, mlir::Value kUpper);
  void fillRedirected();

  // Epilogue (CpuContractionEpilogue.cpp).
  /// Takes what the epilogue first adds to integer sums, if it is the same for all rows, out of it.
  void takeBias();
  /// Where the sums of a tile start: at the bias that was taken, or empty.
  llvm::SmallVector<mlir::Value> initialSums(const ContractionTask &task, const RowClass &rows,
                                             const ColumnClass &columns, mlir::Value panel);
  bool isLightEpilogue(const ContractionTask &task, int64_t accumulators);
  /// Whether the sums of such a tile wait in scratch for the epilogue.
  bool waits(const ContractionTask &task, const RowClass &rows, const ColumnClass &columns);
  /// Puts the sums of a tile behind those of `waitingRows` rows.
  void storeSums(const RowClass &rows, const ColumnClass &columns, mlir::ValueRange accumulators);
  /// The epilogue on what waits: `rows` rows from `row` on.
  void emitWaitingEpilogue(const ContractionTask &task, const ColumnClass &columns, mlir::Value row, mlir::Value rows,
                           mlir::Value panel);
  void emitEpilogueOnTile(const ContractionTask &task, const RowClass &rows, const ColumnClass &columns,
                          mlir::Value row, mlir::Value panel, mlir::ValueRange accumulators);
  /// The epilogue on one row of sums in memory, at the point's other dims: columns [column, column + columns).
  void emitEpilogueOnRow(const EmissionPoint &point, mlir::Value line, mlir::Value column, mlir::Value columns);
  /// The epilogue on rows x columns of sums that lie in memory, [row][column] with the given pitch; or, from `pixel`
  /// on, [pixel][column].
  void emitEpilogueOnSums(const ContractionTask &task, mlir::Value sums, mlir::Value row, mlir::Value rows,
                          mlir::Value column, mlir::Value columnEnd, mlir::Value pixel = {});
  /// Where the epilogue's vectors are of rows: for squares of `columns` columns of sums, turned in registers.
  void emitTurnedEpilogue(const ContractionTask &task, const WaitingSums &waiting, mlir::Value columns);
  /// One square, from this row and column of what waits on. `mask`: the rows that there are; null: all.
  void emitEpilogueOnSquare(const ContractionTask &task, const WaitingSums &waiting, mlir::Value row,
                            mlir::Value column, int64_t columns, mlir::Value mask);
  int64_t tilesTogether(int64_t height) const;
  void zeroSums(const ContractionTask &task);

  // Points.
  EmissionPoint taskPoint(const ContractionTask &task);
  /// The first term of a row.
  EmissionPoint rowPoint(const ContractionTask &task, mlir::Value row);
  /// Sets dims [first, first + count) of a domain from a flat index.
  void setDims(EmissionPoint &point, llvm::ArrayRef<Expr> domain, int64_t first, int64_t count, mlir::Value flat);
  void setDims(EmissionPoint &point, int64_t first, int64_t count, mlir::Value flat) {
    setDims(point, f.domain, first, count, flat);
  }
  /// Dims of `rows` rows that follow each other from `row`, by counting up.
  llvm::SmallVector<EmissionPoint> rowPoints(const EmissionPoint &base, mlir::Value row, int64_t rows,
                                             int64_t step = 1);
  /// Nested loops over k dims; `body` gets all their values. Dim 0 runs in [kLower, kUpper) of kLoops[0] if it is the
  /// outermost one and k is split.
  void forEachK(llvm::ArrayRef<int64_t> dims, mlir::Value kLower, mlir::Value kUpper, EmissionPoint &point,
                llvm::function_ref<void()> body);
  /// Vector points along a dim in [lower, upper): whole vectors, then a masked one. `body` gets the position.
  void forEachVector(const EmissionPoint &point, int64_t dim, mlir::Value lower, mlir::Value upper,
                     llvm::function_ref<void(const EmissionPoint &, mlir::Value)> body) {
    e.forEachVector(point, dim, lanes, lower, upper, body);
  }
  /// k flattened in the order of the dims, at the point.
  mlir::Value flatK(const EmissionPoint &point);

  mlir::Value value(Expr expr) { return e.emitExpr(expr, {}); }
  mlir::Value scratchAt(Expr offset);
  void loop(mlir::Value lower, mlir::Value upper, int64_t step, llvm::function_ref<void(mlir::Value)> body) {
    e.forEach(lower, upper, step, body);
  }
  /// `at` of [lower, upper) where the weight is swept forwards, as far from the other end where it is backwards.
  mlir::Value inTurn(mlir::Value lower, mlir::Value upper, mlir::Value at);
  void emitIf(mlir::Value condition, llvm::function_ref<void()> body) { e.emitIf(condition, body); }
  mlir::Value widened(mlir::Value value); // to the accumulator's type
  /// The lhs's region as it lies in memory.
  mlir::Value emitLhs(const EmissionPoint &point) {
    mlir::Value element = e.emitRegion(f.op.getLhs(), point);
    return f.isDot() ? element : widened(element);
  }

  /// The rhs's region as it lies in panels. Of words, k at the point counts groups.
  mlir::Value emitRhs(EmissionPoint point);
  llvm::SmallVector<mlir::Value> emitPanelsOfBytes(EmissionPoint point, mlir::Value column, int64_t count);
  /// For each of the terms of so many groups, the group.
  llvm::SmallVector<int32_t> lanesOfGroups(int64_t groups);
  /// Where a panel of B begins, in memory or in the task's copy, if its first row is that of k = 0; and its words.
  mlir::Value panelAddress(const ContractionTask &task, mlir::Value panel, mlir::Value kLower);
  mlir::Value panelWords();

  KernelEmitter &e;
  ContractionForm &f;
  std::function<void(const ContractionTask &task)> afterTask; // null: nothing
  InvariantBuilder &i;
  mlir::Type accumulator;
  int64_t lanes;
  TileSplit split;
  bool isFlatM = false, isFlatN = false; // the epilogue uses m (n) as one dim, the last
  mlir::Value m, n, k, mBlocks, nBlocks, panels;
  int64_t rowUnit = 1; // divides m
  int64_t outputs = 1; // that are a row of the tile; m counts such rows, and the epilogue sees each output
  mlir::Value lhsPack, rhsPack, line, sums, sumsPitch, fill, copied;
  ByteCopying copying = ByteCopying::None;
  mlir::Value endOfTasks; // behind which there is nothing to do; null: all have something
  FixedPoint fixedPoint = FixedPoint::None;
  std::unique_ptr<ByteEmission> bytes;                        // null: the contraction has no room for their copies
  std::unique_ptr<PatchEmission> patches;                     // the same
  std::unique_ptr<FixedPointEmission> fixedRows;              // the same
  mlir::Value waitingRows;                                    // in scratch, of tiles before the one that is emitted
  mlir::Value isBackwards;                                    // in every second step of a recurrence; null: in none
  mlir::Region bias;                                          // yields it; empty: there is none
  std::optional<MatrixSlots> matrixSlots;                     // while sums are in matrix registers
  llvm::SmallVector<llvm::SmallVector<TileUse>> sharedPixels; // of a tile in a step; empty: none
  bool hasFewRows = false;     // m is not known, and below fewestInMatrix where this is emitted
  bool hasLongStreams = false; // tiles' panels lie apart, and a thread's tasks are one
  bool asksForZeros = false;   // tiles lie in lines of the image, whose windows often read zeros alone at some element
  llvm::SmallVector<LinePart> lineParts; // the tiles of each line; empty: tiles follow each other
};

/// What follows the elements of the weight's panels is emitted on loaded vectors: the elements become arguments of the
/// rhs, and the form says what may be done about the rest. `isStrict`: products are rounded in the order of the model.
void bindPanels(ContractionForm &form, const CpuLevel &level, bool isStrict);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTIONEMISSION_H
