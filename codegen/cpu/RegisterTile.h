//===- RegisterTile.h - the multiply-add tile held in registers -*- C++ -*-===//
//
// The one inner kernel of matrix products, convolutions and attention:
//
//   acc[r][c] += sum over k of A[r](k) * B(k)[c]      r < rows, c < width
//
// Accumulators are native vectors carried by the k loops; A elements are broadcast from one address a row; B comes in
// unit panels, 16 columns wide and contiguous in k ([n/16][k][16]), of which a tile takes one to five.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_REGISTERTILE_H
#define PTC_CODEGEN_CPU_REGISTERTILE_H

#include "codegen/cpu/CpuEmitter.h"
#include "ir/loop/ContractionDims.h"
#include <functional>

namespace ptc::cpu {

/// Columns of a unit panel.
using loop::panelWidth;

/// Size of a tile: `rows` x `panels` * 16. `unroll` > 1: as many sets of accumulators, for tiles too small to hide the
/// latency of a multiply-add. Of the last panel `lastColumns` are wanted.
struct TileShape {
  int64_t rows = 0, panels = 0, unroll = 1;
  int64_t lastColumns = panelWidth;
};

/// Of any level; scratch is planned for as much. A tile that has all rows of a weight's product may be taller.
inline constexpr int64_t tallestTile = 14, widestTile = 5, tallestAlone = 28;

/// One vector of a tile's row.
struct TileVector {
  int64_t column, lanes;
};

/// The vectors of a row of `panels` panels. Of the last one only what covers `lastColumns`: half a vector where that is
/// enough and 256 bits wide.
llvm::SmallVector<TileVector> getTileVectors(int64_t panels, int64_t lastColumns, int64_t lanes);

/// A tile's largest height and width at a level, and the split of a given extent into equal parts.
struct TileSplit {
  int64_t height = 0, width = 0; // rows, panels
  int64_t unroll = 1;
};

/// The product that a tile is chosen for; -1: not known. `rowUnit` divides m. Of the last of the panels `lastColumns`
/// are wanted.
struct TiledExtents {
  TiledExtents(int64_t m, int64_t n, int64_t k, int64_t rowUnit = 1)
      : rowUnit(rowUnit), m(m), panels(n < 0 ? 64 : std::max<int64_t>(llvm::divideCeil(n, panelWidth), 1)), k(k),
        lastColumns(n > 0 ? n - (panels - 1) * panelWidth : panelWidth) {}
  int64_t rowUnit, m, panels, k, lastColumns;
};

/// How a tile reads its operands. `splitsGroups`: neighbours in k as one word that it takes apart (bf16 without a dot
/// product, numbers of few bits): each vector of B takes two registers, and what splits them one more. `streams`: B
/// comes from memory, of which each row tile behind the first finds it in the second-level cache. Up to `mostAlone`
/// rows are one tile where registers suffice. Tiles are spread over so many `blocks` of columns. `wide`: four panels
/// rather than three.
struct TileReads {
  bool splitsGroups = false, streams = false, wide = false;
  int64_t mostAlone = 0, blocks = 1;
};

/// The tiles for a product, the one estimated to be the fastest first.
llvm::SmallVector<TileSplit> listTiles(const CpuLevel &level, mlir::Type accumulator, const TiledExtents &extents,
                                       const TileReads &reads = {});
/// The first of them.
inline TileSplit chooseTile(const CpuLevel &level, mlir::Type accumulator, const TiledExtents &extents,
                            const TileReads &reads = {}) {
  return listTiles(level, accumulator, extents, reads).front();
}
/// A tile of about the wanted height and width that divides the product into equal parts.
TileSplit limitTile(const CpuLevel &level, mlir::Type accumulator, const TiledExtents &extents, TileSplit wanted);

/// How many sets of accumulators a tile of so many vectors takes turns with, so that multiply-adds need not wait for
/// each other.
int64_t unrollOfTile(const CpuLevel &level, int64_t accumulators);

/// Steps of a loop that LLVM may make one after the other by itself.
inline constexpr int64_t longestUnrolled = 8;

/// One loop over a part of the k dims: the steps, in elements, that it takes in A and in B.
struct TileLoop {
  mlir::Value lower, upper; // i64; upper is not below lower
  mlir::Value aStride, bStride;
};

/// Columns that each output has in a row of several.
inline constexpr int64_t outputColumns = 8;

/// A row of the tile that is several outputs side by side, each of which reads B so many elements before the one ahead
/// of it. Those in [first, end) have products in these steps of k.
struct TileOutputs {
  int64_t count = 1, first = 0, end = 1;
  mlir::Value distance; // i64
};

/// A product of a pixel: the row of the tile whose sum it is, and which of the rows of B it is by.
struct TileUse {
  int64_t row, tap;
};

/// How many bytes ahead a stream of weights of few bits is fetched: half as far hides less, twice as far comes too
/// early.
inline constexpr int64_t streamAhead = 2048;

/// The same of wider elements, of which a tile of so many rows reads so many panels at once (RegisterTileChoice.cpp).
/// `isFollowed`: by a processor that reads on by itself.
int64_t aheadOfStreams(const CpuLevel &level, bool isFollowed, int64_t rows, int64_t panels);

/// What is added to each vector of B, of one panel where it is stored, or subtracted from it: what lies so many
/// elements behind it. Null: nothing.
struct TileAddend {
  mlir::Value distance; // i64
  bool isSubtracted = false;
  mlir::Value storedAt; // where the results go, as a panel whose first row is that of the loops at 0; null: nowhere
};

struct TileOperands {
  mlir::Type accumulator; // f32, f64 or an integer
  mlir::Type aElement;    // of A in memory: the accumulator's type, or i8, i16 or bf16 if there are groups
  mlir::Type bElement;    // of B in memory
  /// Above 1: a step takes so many neighbours in k, of which B holds a word of the accumulator's size. Either an
  /// instruction multiplies and adds them up, four unsigned bytes of A by signed bytes of B, two 16-bit integers or two
  /// bf16, or, where `splitB` is set, they are multiplied one after the other.
  int64_t group = 1;
  llvm::SmallVector<TileLoop> loops; // outer to inner, at least one
  /// Addresses of the rows of A where all of `loops` stand at 0 but the outer ones, whose values are given. Called at
  /// the innermost loop's entry with the builder there.
  std::function<llvm::SmallVector<mlir::Value>(mlir::ValueRange outer)> rowAddresses;
  /// Of bytes: of how many pairs of products, of as many groups, the sums fit in 16 bits: 1 or 2. 0: of none.
  int64_t addedPairs = 0;
  bool meetsRows = false;  // rows read what their neighbours read a few steps of the innermost loop on
  mlir::Value zeros;       // where all rows start there the innermost loop is left out; null: it never is
  mlir::Value panels;      // address of the first panel at k = 0
  mlir::Value panelStride; // elements from one panel to the next
  /// What is fetched meanwhile: from each of these addresses on, which hold where all loops stand at 0, so many bytes
  /// for each row of B.
  llvm::SmallVector<mlir::Value> fetched;
  mlir::Value fetchedBytes;
  int64_t fetchedAhead = 0; // in each panel's own stream, in bytes
  /// Rows share what they read: all products of each element of A in a step, for which rowAddresses has as many
  /// addresses, with rows of B that lie `tapStride` elements apart. Empty: a row has an element of its own.
  llvm::ArrayRef<llvm::SmallVector<TileUse>> pixels;
  mlir::Value tapStride;
  TileAddend addend;
  TileOutputs outputs; // several: B is one panel of f32, of whose columns each output has the first
  /// From bElement to the accumulator's type, on the vector from `column` of the tile on, where the loops stand at
  /// `ks`; null: equal types.
  std::function<mlir::Value(mlir::Value, int64_t column, mlir::ValueRange ks)> convertB;
  /// Number `term` of the group in a vector of B's words, in the accumulator's type; the rest as of convertB.
  std::function<mlir::Value(mlir::Value words, int64_t term, int64_t column, mlir::ValueRange ks)> splitB;
  /// What is the same for all of the innermost loop in a vector of B, given where the outer loops stand: it multiplies
  /// the sums of that loop. Null: nothing.
  std::function<mlir::Value(int64_t column, int64_t lanes, mlir::ValueRange outer)> factorB;
};

/// Emits the tile; accumulators start at `init` (empty: at 0), in the order [row][vector of the width].
llvm::SmallVector<mlir::Value> emitRegisterTile(KernelEmitter &emitter, TileShape shape, const TileOperands &operands,
                                                mlir::ValueRange init);

/// c + the products of the unsigned bytes of `a` and the signed ones of `b`, four for each 32-bit lane.
mlir::Value createByteDot(KernelEmitter &emitter, mlir::Value a, mlir::Value b, mlir::Value c);
/// Of unsigned by signed bytes the sums of two products as 16-bit integers, which saturate; where the level has it.
mlir::Value createBytePairs(KernelEmitter &emitter, mlir::Value a, mlir::Value b);
/// createByteDot where none of those sums saturates.
mlir::Value createDotOfPairs(KernelEmitter &emitter, mlir::Value a, mlir::Value b, mlir::Value c);
/// The same of two groups, where the sums of four products fit in 16 bits, too.
mlir::Value createDotOfGroups(KernelEmitter &emitter, mlir::Value a0, mlir::Value a1, mlir::Value b0, mlir::Value b1,
                              mlir::Value c);
/// c + the products of the signed 16-bit integers of `a` and `b`, two for each 32-bit lane.
mlir::Value createPairDot(KernelEmitter &emitter, mlir::Value a, mlir::Value b, mlir::Value c);
/// The even and the odd bytes of 32-bit lanes, as pairs of 16-bit integers.
std::pair<mlir::Value, mlir::Value> splitBytes(KernelEmitter &emitter, mlir::Value words, bool isSigned);
/// c + the products of the bf16 of `a` and `b`, two for each 32-bit lane, which are given as f32. Where the processor
/// has an instruction for it, denormal numbers count as 0.
mlir::Value createBf16Dot(KernelEmitter &emitter, mlir::Value a, mlir::Value b, mlir::Value c);
/// a * b + c on vectors of floats or integers.
mlir::Value createMultiplyAdd(KernelEmitter &emitter, mlir::Value a, mlir::Value b, mlir::Value c);
/// One vector behind the other; as many as a power of two.
mlir::Value join(KernelEmitter &emitter, llvm::ArrayRef<mlir::Value> vectors);
/// What two vectors have at even and at odd places of the results, in each part of so many lanes apart: halves of them.
std::pair<mlir::Value, mlir::Value> interleave(KernelEmitter &emitter, mlir::Value x, mlir::Value y, int64_t ofPart);
/// Transposes a square of vectors in registers: log2 rounds that exchange off-diagonal blocks.
void transposeSquare(KernelEmitter &emitter, llvm::SmallVectorImpl<mlir::Value> &rows);
/// The same number or address, of which LLVM knows nothing.
mlir::Value hide(KernelEmitter &emitter, mlir::Value value);
/// Fetches the line at `address` into the cache of a level, 1 or 2.
void createPrefetch(KernelEmitter &emitter, mlir::Value address, int level = 2);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_REGISTERTILE_H
