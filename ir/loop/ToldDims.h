//===- ToldDims.h - dims of a scatter that its places tell ------*- C++ -*-===//
#ifndef PTC_IR_LOOP_TOLDDIMS_H
#define PTC_IR_LOOP_TOLDDIMS_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// Dims that the place of a store tells: it is another one wherever they are others, so that points meet only where
/// they agree in them. They fill [0, reach) of a place's remainder by `reach`; its indices say the quotient.
struct ToldDims {
  struct Dim {
    int64_t step;
    unsigned number;
  };
  llvm::SmallVector<Dim> dims; // of increasing steps
  int64_t reach = 1;
};

/// Nothing where the place uses dims in another way.
std::optional<ToldDims> findToldDims(ScatterOp scatter, StoreOp store);

} // namespace ptc::loop

#endif // PTC_IR_LOOP_TOLDDIMS_H
