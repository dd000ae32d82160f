//===- CpuWinograd.h - 3x3 convolutions by Winograd's algorithm -*- C++ -*-===//
//
// What planning and emission share. A convolution becomes (tile + 2)^2 products of one shape, positions: rows are tiles
// of outputs, k is the input channels (of each slice of the window), and columns the output channels; groups are a
// batch of them, whose weights lie [position][group]. `product` describes one of them, so that its tasks, tiles and
// classes are those of any product; its regions and domain remain the convolution's.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_CPU_CPUWINOGRAD_H
#define PTC_CODEGEN_CPU_CPUWINOGRAD_H

#include "codegen/cpu/CpuContraction.h"
#include "codegen/cpu/CpuTemplates.h"

namespace ptc::cpu {

struct WinogradForm {
  ContractionForm product;                                                   // m: tiles, k: channels
  int64_t tile = 0;                                                          // outputs along a side
  int64_t row = 0, column = 0, windowRow = 0, windowColumn = 0, channel = 0; // dims of the domain
  int64_t slices = 1;                                                        // of the window, in dims from firstK on
  Expr tilesDown, tilesAcross;

  /// The pixels of a tile that lies inside can be read where they are, so many elements apart; null: they cannot.
  Expr rowStride, columnStride;

  // Scratch, in bytes from its start, and elements from one position, tile or pixel to the next.
  Expr pixelsAt, sumsAt, patchAt, resultsAt;
  Expr pixelsPitch, pixelsPlane, sumsPitch, sumsPlane;

  int64_t size() const { return tile + 2; }
  int64_t positions() const { return size() * size(); }
};

/// `form`: the contraction as describeContraction sees it.
WinogradForm analyzeWinograd(ContractionForm form, int64_t tile);
KernelPlan planWinograd(loop::ContractionOp op);
void emitWinograd(KernelEmitter &emitter, WinogradForm form, mlir::Value begin, mlir::Value end);

} // namespace ptc::cpu

#endif // PTC_CODEGEN_CPU_CPUWINOGRAD_H
