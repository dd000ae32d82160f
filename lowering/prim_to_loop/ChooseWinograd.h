//===- ChooseWinograd.h - which convolutions Winograd computes --*- C++ -*-===//
#ifndef PTC_LOWERING_PRIM_TO_LOOP_CHOOSEWINOGRAD_H
#define PTC_LOWERING_PRIM_TO_LOOP_CHOOSEWINOGRAD_H

#include "ir/loop/Loop.h"
#include "ir/prim/Prim.h"

namespace ptc::loop {

/// The tile of outputs (2 or 4) with which Winograd's algorithm is the fastest way to compute the contraction at the
/// hints of its symbols; 0 where direct summation is, or where it is no f32 convolution that the algorithm can do.
int64_t chooseWinograd(ContractionOp node, const SymbolValues &hints);

} // namespace ptc::loop

#endif // PTC_LOWERING_PRIM_TO_LOOP_CHOOSEWINOGRAD_H
