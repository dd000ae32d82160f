//===- ChooseWinograd.h - which convolutions Winograd computes --*- C++ -*-===//
#ifndef PTC_LOWERING_PRIM_TO_LOOP_CHOOSEWINOGRAD_H
#define PTC_LOWERING_PRIM_TO_LOOP_CHOOSEWINOGRAD_H

#include "ir/loop/Winograd.h"
#include "ir/prim/Prim.h"

namespace ptc::loop {

struct WinogradChoice {
  WinogradTile tile;
  WinogradDilations dilations = {1, 1};
  // The innermost dims that are transformed, which need not be the last row and the one in front of the channel.
  unsigned output = 0, window = 0;
};

/// With which Winograd's algorithm is the fastest way to compute the contraction at the hints of its symbols; no tile
/// where direct summation is, or where it is no f32 convolution that the algorithm can do.
WinogradChoice chooseWinograd(ContractionOp node, const SymbolValues &hints);

} // namespace ptc::loop

#endif // PTC_LOWERING_PRIM_TO_LOOP_CHOOSEWINOGRAD_H
