//===- CpuContractionEmission.h - a contraction being emitted ---*- C++ -*-===//
//
// What the files that emit one contraction share: its form, the tile, and what several techniques need of tasks, rows
// and columns. A technique is a class of its own (ContractionTechnique), with its own state. Members stand by file,
// whose name each section tells; without one they are CpuContraction.cpp's.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUCONTRACTIONEMISSION_H
#define PTC_CODEGEN_CPU_CPUCONTRACTIONEMISSION_H

#include "codegen/cpu/CpuContractionTask.h"
#include <memory>

namespace ptc::cpu {

class ByteEmission;        // CpuContractionBytes.h
class ContractionEpilogue; // CpuContractionEpilogue.h
class FixedPointEmission;  // CpuContractionFixedPoint.h
class MatrixEmission;      // CpuContractionMatrix.h
class PatchEmission;       // CpuContractionPatches.h

/// Rows that are worth sums in matrix registers; of fewer vectors read a weight as fast as memory gives it.
inline constexpr int64_t fewestInMatrix = 5;

/// Which tasks multiply copies of their bytes in pairs; how many rows they have may be known to a run alone.
enum class ByteCopying { None, ManyRows, All };

/// Which tasks take their rows in fixed point: those of few rows may be known to a run alone.
enum class FixedPoint { None, FewRows, All };

/// What a tile multiplies: operands as they are, bytes in pairs, rows in fixed point.
enum class TileKind { Plain, Bytes, FixedPoint };

/// The code of a contraction's tasks. Its parts hold references to it, so it stays where it is.
class ContractionEmission {
public:
  ContractionEmission(KernelEmitter &emitter, ContractionForm &form);
  ~ContractionEmission();
  void emit(mlir::Value begin, mlir::Value end);
  /// A node behind the product's blocks: the parts of the task's columns. Where the node stands in the emitter's
  /// kernel.
  void emitBehind(const ContractionTask &task, mlir::Operation *node, loop::ContractionOp product);
  TileShape shapeOf(const ContractionTile &tile);
  llvm::SmallVector<mlir::Type> sumTypes(const ContractionTile &tile);

  // Tasks and their tiles (CpuContractionTiles.cpp).
  ContractionTask decodeTask(mlir::Value index);
  /// What follows from the task's batch and its tiles.
  void setExtents(ContractionTask &task);
  /// The first row of a tile; of their number, that behind the last.
  mlir::Value startOfTile(mlir::Value rowTile);
  /// Column tiles in all, where the panels are known.
  int64_t columnTiles() const;
  /// As many as no task cuts, since nodes behind read them together: all, if these read whole rows.
  int64_t columnTilesOfUnit() const;
  /// An extent in tiles: the first `larger` of them have part + 1 rows, the others `part`.
  struct Parts {
    mlir::Value tiles, part, larger;
  };
  llvm::SmallVector<RowClass> rowClasses(const ContractionTask &task);
  /// The column of the result that a tile's column is.
  mlir::Value columnOf(const ColumnClass &columns, mlir::Value panel, int64_t column);
  mlir::Value firstRowOf(const RowClass &rows, mlir::Value rowTile);
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
  /// How far behind a column tile, and behind the rows of B that it reads, those lie that are read next; null: the
  /// panels that follow.
  struct PanelStep {
    mlir::Value panels, rows;
  };
  PanelStep nextPanels(const ContractionTask &task, const ContractionTile &tile);
  /// Sets what a row tile fetches of the next column tile of `panels` panels, in rows [lower, upper) of B moved by
  /// `step`.
  void fetchNextPanels(TileOperands &operands, const ContractionTask &task, mlir::Value rowTile, int64_t panels,
                       mlir::Value lower, mlir::Value upper, const PanelStep &step);

  // What a tile reads.
  /// Whether the weight's elements are more than loaded before they are multiplied.
  bool convertsWeight() { return !f.rhs.isPacked() && f.op.getRhs().front().getOperations().size() > 1; }
  TileOperands operandsOf(const ContractionTask &task, const ContractionTile &tile, const TileShape &shape,
                          const Fetching &fetching);
  RowAddresses rowAddresses(const ContractionTask &task, const RowClass &rows, mlir::Value row);
  /// So many, `stride` elements from one to the next.
  llvm::SmallVector<mlir::Value> addressesApart(mlir::Value first, mlir::Type element, int64_t count,
                                                mlir::Value stride);
  /// Of A's element at the point: where the load reads; where the mask holds; or as the form of A says.
  mlir::Value addressInPlace(const EmissionPoint &point);
  mlir::Value redirectedAddress(const EmissionPoint &point);
  mlir::Value addressOf(const EmissionPoint &point);
  /// Whether products of zeros alone may be left out, and are worth the question.
  bool mayLeaveOut() const;

  // Tiles in lines of the image (CpuContractionLines.cpp).
  /// Rows of a line that has parts.
  int64_t lengthOfLine() const { return lineParts.back().first + lineParts.back().height; }

  // Tiles whose windows meet no border (CpuContractionInside.cpp).
  /// The loops over k of such a tile of so many rows, which reads A where it is; empty where there is nothing to gain.
  llvm::SmallVector<KLoop> getInsideLoops(int64_t height);
  /// Whether `liesInside` can tell: for each condition it is known at which end of each dim it is smallest.
  bool areConditionsSolvable();
  mlir::Value liesInside(const ContractionTask &task, int64_t height, mlir::Value row);

  // Strassen's algorithm (CpuContractionStrassen.cpp). Column tiles and row tiles have halves then.
  bool takesStrassen() const;
  /// Tiles of pairs of rows; `larger` of them have one pair more. A last one may have an odd number of rows.
  Parts splitPairs();
  llvm::SmallVector<RowClass> classesOfPairs(const ContractionTask &task);

  // Bytes multiplied in pairs (CpuContractionBytes.cpp).
  /// Whether a copy of rows is of all of k, and serves tasks that follow each other.
  bool copiesRowsOfTasks() const { return copying != ByteCopying::None && !f.blocks.isSplitK(); }

  // Windows of 3 x 3 bytes, 4 x 4 outputs at once (CpuContractionPatches.cpp). A task's rows are patches then.
  bool takesPatches() const { return f.patches.ofImage && e.level.multipliesPairs(); }
  /// `groups` groups of unsigned bytes at `from` as 16-bit integers, in words.
  mlir::Value loadWords(mlir::Value from, int64_t groups);
  /// A vector of zeros of the accumulator's type.
  mlir::Value zeroSum();

  // Packing (CpuContractionPack.cpp).
  /// Whether rows whose window meets no border can be copied run by run, in whole vectors.
  bool copiesRuns();

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
  void emitIf(mlir::Value condition, llvm::function_ref<void()> body) { e.emitIf(condition, body); }
  mlir::Value widened(mlir::Value value); // to the accumulator's type
  /// The lhs's region as it lies in memory.
  mlir::Value emitLhs(const EmissionPoint &point) {
    mlir::Value element = e.emitRegion(f.op.getLhs(), point);
    return f.isDot() ? element : widened(element);
  }

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
  mlir::Value m, n, k, mBlocks, nBlocks, panels;
  int64_t rowUnit = 1; // divides m
  int64_t outputs = 1; // that are a row of the tile; m counts such rows, and the epilogue sees each output
  mlir::Value lhsPack, rhsPack, sums, sumsPitch, fill;
  ByteCopying copying = ByteCopying::None;
  FixedPoint fixedPoint = FixedPoint::None;
  std::unique_ptr<ContractionEpilogue> epilogue;
  std::unique_ptr<ByteEmission> bytes;                        // null: the contraction has no room for their copies
  std::unique_ptr<PatchEmission> patches;                     // the same
  std::unique_ptr<FixedPointEmission> fixedRows;              // the same
  std::unique_ptr<MatrixEmission> matrix;                     // while sums are in matrix registers
  llvm::SmallVector<llvm::SmallVector<TileUse>> sharedPixels; // of a tile in a step; empty: none
  bool hasLongStreams = false;                                // tiles' panels lie apart, and a thread's tasks are one
  llvm::SmallVector<LinePart> lineParts;                      // the tiles of each line; empty: tiles follow each other

private:
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
  /// The products of a tile, added to what is given, and what becomes of them.
  using TileProducts = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange init)>;
  void finishTile(const ContractionTask &task, const ContractionTile &tile, TileProducts products);

  // Tasks and their tiles (CpuContractionTiles.cpp).
  using ColumnBody = llvm::function_ref<void(const ColumnClass &columns, mlir::Value panel)>;
  void forEachColumnTile(const ContractionTask &task, ColumnBody body);
  /// The number of a tile among all of the task's, counted from the task's first.
  mlir::Value numberOf(const ContractionTask &task, const RowClass &rows, mlir::Value rowTile);

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

  // Strassen's algorithm (CpuContractionStrassen.cpp, CpuContractionRectangles.cpp).
  void emitRectangles(mlir::Value begin, mlir::Value end);
  /// Of the first so many tiles that scratch has copies of.
  void forgetCopies(mlir::Value tiles);
  void copyForStrassen(const ContractionTask &task);
  void emitStrassenTiles(const ContractionTask &task, const ColumnClass &columns, mlir::Value panel, mlir::Value kLower,
                         mlir::Value kUpper);

  // Pixels that a tile's rows share (CpuContractionPixels.cpp).
  /// Sets sharedPixels, and the tile that it takes, where a vector is all columns. A tuned tile
  /// keeps its height, and has none where that does not divide the line.
  void findSharedPixels(bool isTuned);
  TileOperands sharingOperands(const ContractionTask &task, TileOperands operands, mlir::Value row);

  // Tiles in lines of the image, and inside of it (CpuContractionLines.cpp, CpuContractionInside.cpp).
  /// Sets lineParts or the height of tiles, and asksForZeros, where that saves products.
  void cutLines();
  TileOperands insideOperands(const ContractionTask &task, TileOperands operands, llvm::ArrayRef<KLoop> joined,
                              int64_t height, mlir::Value row);

  // Sums in matrix registers, bytes in pairs, rows in fixed point: whether and which (CpuContractionMatrix.cpp,
  // CpuContractionBytes.cpp, CpuContractionFixedPoint.cpp).
  bool sumsInMatrix();
  /// Cuts the plan's tasks into fewer blocks of rows and more of columns, which each task looks at or transforms.
  void takeBlocksOfCopies();
  ByteCopying chooseCopying();
  FixedPoint chooseFixedPoint();

  // What a tile fetches meanwhile (CpuContractionFetch.cpp).
  Fetching chooseFetching(const ContractionTile &tile);
  /// Whether the streams of a lone row tile's panels should go on from one column tile to the next.
  bool wantsLongStreams();

  // What a tile reads.
  mlir::Type elementOfB();
  RowAddresses addressesInPanels(const ContractionTask &task, int64_t height, mlir::Value row);
  RowAddresses addressesInMemory(const ContractionTask &task, int64_t height, mlir::Value row);
  /// `base` where the outer loops over k stand.
  mlir::Value movedBy(mlir::Value base, mlir::ValueRange outer);
  bool meetsZeros() const;

  // Packing (CpuContractionPack.cpp). Each runs only where the copy from the task before does not serve.
  void packLhs(const ContractionTask &task);
  void packRhs(const ContractionTask &task, mlir::Value kLower, mlir::Value kUpper);
  void fillRedirected();

  /// `at` of [lower, upper) where the weight is swept forwards, as far from the other end where it is backwards.
  mlir::Value inTurn(mlir::Value lower, mlir::Value upper, mlir::Value at);

  mlir::Value endOfTasks;    // behind which there is nothing to do; null: all have something
  mlir::Value isBackwards;   // in every second step of a recurrence; null: in none
  bool hasFewRows = false;   // m is not known, and below fewestInMatrix where this is emitted
  bool asksForZeros = false; // tiles lie in lines of the image, whose windows often read zeros alone at some element
};

/// What follows the elements of the weight's panels is emitted on loaded vectors: the elements become arguments of the
/// rhs, and the form says what may be done about the rest. `isStrict`: products are rounded in the order of the model.
void bindPanels(ContractionForm &form, const CpuLevel &level, bool isStrict);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUCONTRACTIONEMISSION_H
