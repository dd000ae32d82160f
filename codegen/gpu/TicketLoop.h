//===- TicketLoop.h - what blocks of a launch do in phases ------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_TICKETLOOP_H
#define PTC_CODEGEN_GPU_TICKETLOOP_H

#include "codegen/gpu/GpuEmitter.h"

namespace ptc::gpu {

/// Blocks take numbers, in order, and do what they stand for; a number may wait for those before it. Of a kernel with
/// counters, whose blocks have one row of threads.
class TicketLoop {
public:
  explicit TicketLoop(GpuEmitter &e);

  /// `body` for each number (i64) below `count`, by all threads of one block. `blocks`: of the launch.
  void emit(mlir::Value count, mlir::Value blocks, llvm::function_ref<void(mlir::Value ticket)> body);
  /// In a body: all tickets below `ticket`, which is not above the body's own, are done, and what they wrote is seen.
  void createWait(mlir::Value ticket);

private:
  mlir::Value takeTicket();
  mlir::Value addressOf(int64_t counter);

  GpuEmitter &e;
  mlir::Value isFirst, next; // the block's first thread; its number, in shared memory
};

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_TICKETLOOP_H
