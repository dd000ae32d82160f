//===- CpuWinograd.h - convolutions by Winograd's algorithm -----*- C++ -*-===//
//
// What planning and emission share. A convolution becomes products of one shape, positions, as many as a tile has: rows
// are tiles of outputs, k is the input channels (of each slice of the window), and columns the output channels; groups
// are a batch of them, whose weights lie [position][group]. `product` describes one of them, so that its tasks, tiles
// and classes are those of any product; its regions and domain remain the convolution's.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUWINOGRAD_H
#define PTC_CODEGEN_CPU_CPUWINOGRAD_H

#include "codegen/cpu/CpuContraction.h"
#include "codegen/cpu/CpuTemplates.h"
#include "ir/loop/Winograd.h"

namespace ptc::cpu {

/// Planes, rows or columns; of a window along one dim only columns, and a tile has one pixel and output down. Only
/// volumes have several planes. Outputs of a phase are `dilation` apart, as the elements of the window are.
struct WinogradSide {
  int64_t output = -1, window = -1; // dims of the domain
  int64_t outputs = 1, taps = 1;
  int64_t dilation = 1, step = 1; // step: pixels from one output to the next
  Expr phases, tiles;             // tiles of each phase
  Expr stride;                    // elements between the pixels of a tile, in a WinogradForm that reads them in place

  int64_t size() const { return (outputs - 1) * step + taps; } // pixels
};

struct WinogradForm {
  ContractionForm product; // m: tiles, k: channels
  loop::WinogradTile tile;
  WinogradSide deep, down, across;
  int64_t channel = 0; // dim of the domain
  int64_t slices = 1;  // of the window, in dims from firstK on

  /// The pixels of a tile that lies inside can be read where they are.
  bool readsInPlace = false;

  // Scratch, in bytes from its start, and elements from one position, tile or pixel to the next.
  Expr pixelsAt, sumsAt, patchAt, resultsAt;
  Expr pixelsPitch, pixelsPlane, sumsPitch, sumsPlane;

  bool hasRows() const { return tile.sides == 2; }
  int64_t positions() const { return tile.positions(); }
  /// Those that the tile has, from the outermost one in.
  llvm::SmallVector<const WinogradSide *> sides() const;
  /// The first dims of outputs and of the window that are transformed.
  int64_t firstOutput() const { return sides().front()->output; }
  int64_t firstWindow() const { return sides().front()->window; }
};

/// `form`: the contraction as describeContraction sees it; tile and dilations are those that its panels tell.
WinogradForm analyzeWinograd(ContractionForm form, loop::WinogradTile tile, loop::WinogradDilations dilations);
KernelPlan planWinograd(loop::ContractionOp op);
void emitWinograd(KernelEmitter &emitter, WinogradForm form, mlir::Value begin, mlir::Value end);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUWINOGRAD_H
