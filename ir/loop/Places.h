//===- Places.h - which buffers of a device's program lie where -*- C++ -*-===//
//
// In a program of a device calls run on the host, and so do launches of kernels that are `on_host`. A buffer lies where
// it is used: on the device if any launch there uses it, else on the host. The host sees one of the device through a
// mirror, which loop.transfer fills or copies back. Both memories are laid out alike: a buffer's offset, and the bytes
// that are its own as long as it lives, are the same in either, so that a mirror needs no plan of its own and nothing
// that lies on the host is in its way.
//
// Weights and constants lie in both. What this says follows from the program alone, in every stage from schedule on.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_LOOP_PLACES_H
#define PTC_IR_LOOP_PLACES_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// The buffer behind views; of an aliased pair the input stands for both.
mlir::Value getRoot(ProgramOp program, mlir::Value buffer);

class Places {
public:
  explicit Places(ProgramOp program);
  /// Whether something runs on the host.
  bool usesHost() const { return usesHostValue; }
  bool isOnHost(mlir::Value buffer) const;
  /// Whether the buffer, which lies on the device, has a mirror.
  bool isMirrored(mlir::Value buffer) const;
  mlir::Value getRoot(mlir::Value buffer) const { return loop::getRoot(program, buffer); }

private:
  ProgramOp program;
  bool usesHostValue = false;
  llvm::DenseSet<mlir::Value> usedOnDevice, usedOnHost, mirrored;
};

/// Whether it is an argument, or a constant, whose elements in the model are strings or sequences, which only the host
/// can look into. (Other buffers may hold handles, too, but nothing tells them from numbers.)
bool holdsHandles(mlir::Value root);

} // namespace ptc::loop

#endif // PTC_IR_LOOP_PLACES_H
