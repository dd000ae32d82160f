//===- FunctionCompiler.h - math ops made callable ------------------------===//
//
// Builds a loop that applies ops to arrays, expands the elementary functions in it, lowers it to LLVM and compiles it
// in memory. No library is on offer to the compiled code: a call of libm fails to link, and with it the test.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_TESTS_NUMERICS_FUNCTIONCOMPILER_H
#define PTC_TESTS_NUMERICS_FUNCTIONCOMPILER_H

#include "codegen/common/ElementaryFunctions.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include <functional>
#include <memory>
#include <string>

namespace ptc::test {

/// What one compiled function works on; operands all have the type `element`, or `second` for the second one if set.
struct Signature {
  unsigned operands = 1;
  int64_t lanes = 16; ///< 0: scalars
  std::function<mlir::Type(mlir::Builder &)> element, second, result;
};
struct Machine {
  std::string cpu; ///< empty: this one
  ptc::codegen::ElementaryOptions options;
};
using BuildOp = std::function<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;

class CompiledFunction {
public:
  CompiledFunction(const Signature &signature, const Machine &machine, const BuildOp &build);
  /// y[i] = f(x0[i], x1[i], x2[i]) for i < n; n is a multiple of the lanes.
  void operator()(int64_t n, void *y, const void *x0, const void *x1 = nullptr, const void *x2 = nullptr) const {
    call(n, y, x0, x1, x2);
  }
  unsigned opCount = 0; ///< ops of the loop's body after expansion

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
  void (*call)(int64_t, void *, const void *, const void *, const void *) = nullptr;
};

/// The same loop as PTX for sm_80.
std::string assembleForGpu(const Signature &signature, const BuildOp &build);

Signature floats(unsigned operands, bool isF64, int64_t lanes);

} // namespace ptc::test

#endif // PTC_TESTS_NUMERICS_FUNCTIONCOMPILER_H
