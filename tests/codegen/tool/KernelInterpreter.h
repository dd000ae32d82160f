//===- KernelInterpreter.h - runs a loop.kernel op by op --------*- C++ -*-===//
//
// The oracle of code generation's tests: points in order, one scalar at a time, floats as double rounded to the type
// after each op. Slow and obvious.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_TESTS_CODEGEN_KERNELINTERPRETER_H
#define PTC_TESTS_CODEGEN_KERNELINTERPRETER_H

#include "ir/loop/Loop.h"
#include <vector>

namespace ptc::test {

struct Scalar {
  double f = 0;
  int64_t i = 0; // sign-extended; i1 is 0 or 1
};

/// Elements as they lie in memory.
struct Memory {
  mlir::Type type;
  std::vector<char> bytes;
  Scalar get(int64_t index) const;
  void set(int64_t index, Scalar value);
  int64_t size() const;
};

/// Runs the kernel over its whole iteration space. False when a checked index is out of range.
bool interpret(loop::KernelOp kernel, std::vector<Memory> &buffers, const SymbolValues &symbols);

} // namespace ptc::test

#endif // PTC_TESTS_CODEGEN_KERNELINTERPRETER_H
