//===- FloatContraction.h - Products and sums that are rounded once -*- C++ -*-===//
//
// Emission lets LLVM round a product and the sum it enters once, everywhere; what is taken back of that.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace llvm {
class Function;
} // namespace llvm
namespace mlir {
class Operation;
} // namespace mlir

namespace ptc::codegen {

/// Every operation nested in `root` is rounded, as `--fp=strict` asks. Elementary functions, which are expanded later,
/// keep the multiply-adds that their error bounds rest on.
void forbidContraction(mlir::Operation *root);

/// A product of several uses is rounded, in LLVM IR that is optimised already: a back end that would enter it into each
/// sum unrounded (NVPTX's, not x86's) makes x*y - x*y something else than 0.
void roundSharedProducts(llvm::Function &function);

} // namespace ptc::codegen
