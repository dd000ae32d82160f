//===- DigitSort.h - rows sorted digit by digit -----------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_DIGITSORT_H
#define PTC_CODEGEN_GPU_DIGITSORT_H

#include "codegen/gpu/GpuEmitter.h"

namespace ptc::gpu {

/// Rows of words (i64), which are sorted by some of their bits as unsigned numbers; equal ones stay in their order.
class DigitSorter {
public:
  static constexpr int64_t threads = 256, warps = threads / warpSize, perThread = 8, tileSize = threads * perThread;
  static constexpr int64_t mostDigitBits = 8;

  using ReadWord = llvm::function_ref<mlir::Value(mlir::Value row, mlir::Value position)>;
  using Visit = llvm::function_ref<void(mlir::Value row, mlir::Value rank, mlir::Value word)>;

  /// `scratch`: of getBytes. Digits have `digitBits` bits, the lowest one begins at bit `firstBit`; there are `passes`,
  /// at least one. Rows have fewer than 2^32 words.
  DigitSorter(GpuEmitter &e, int64_t digitBits, mlir::Value scratch, mlir::Value rows, mlir::Value length,
              mlir::Value firstBit, mlir::Value passes);
  static Expr getBytes(Expr rows, Expr length, int64_t digitBits);

  /// Says in a plan that a multiprocessor holds four blocks, however many registers they would like.
  static void limitRegisters(mlir::NamedAttrList &attributes, mlir::MLIRContext *context);

  /// How many tickets (TicketLoop.h) it takes, from number 0 on.
  mlir::Value countTickets();
  /// What ticket number `ticket` does. `read` gives the words; `visit` is called for each in the last pass.
  void emit(class TicketLoop &tickets, mlir::Value ticket, ReadWord read, Visit visit = {});
  /// The word of a rank, behind all tickets, where nobody visited them.
  mlir::Value load(mlir::Value row, mlir::Value rank);

private:
  using Values = llvm::SmallVector<mlir::Value>;
  struct Tile {
    mlir::Value row, number, start;
  };
  Tile tileOf(mlir::Value number);
  mlir::Value wordAddress(mlir::Value buffer, mlir::Value row, mlir::Value position);
  mlir::Value countAddress(mlir::Value row, mlir::Value digit, mlir::Value tile);
  mlir::Value totalAddress(mlir::Value row, mlir::Value digit);
  mlir::Value digitOf(mlir::Value word, mlir::Value pass);
  void forDigits(llvm::function_ref<void(mlir::Value digit)> body);
  void countTile(mlir::Value pass, mlir::Value number, ReadWord read);
  void sumTiles(mlir::Value number);
  void placeTile(mlir::Value pass, mlir::Value number, Visit visit);
  Values rankInWarp(llvm::ArrayRef<mlir::Value> digits, llvm::ArrayRef<mlir::Value> exist);
  std::pair<mlir::Value, mlir::Value> countInFront(const Tile &tile, mlir::Value digit);
  void placeDigits(const Tile &tile);
  mlir::Value peersOf(int64_t odd, mlir::Value digit);
  mlir::Value areFew();
  mlir::Value countSums();
  mlir::Value sumWarp(mlir::Value value);
  Values sumBlock(Values values);
  mlir::Value warpCount(mlir::Value ofWarp, mlir::Value digit);

  GpuEmitter &e;
  mlir::OpBuilder &b;
  const int64_t digitBits, digits;
  mlir::Value scratch, rows, length, firstBit, passes;
  mlir::Value thread, lane, warp, tiles, counts;       // counts: of scratch
  mlir::Value words, warpCounts, peers, offsets, sums; // in shared memory
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_DIGITSORT_H
