//===- LibraryProduct.h - what cuBLASLt can compute -------------*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_LIBRARYPRODUCT_H
#define PTC_CODEGEN_GPU_LIBRARYPRODUCT_H

#include "codegen/Target.h"

namespace ptc::gpu {

/// The product that all of the kernel is, in a library's terms; nothing if it is another thing, or more.
std::optional<codegen::LibraryProduct> findLibraryProduct(loop::KernelOp kernel);

/// Of a kernel that is planned, and for which `cublaslt` was tuned: there is room for the library's scratch. Its code
/// stays as it is.
void planLibraryProduct(loop::KernelOp kernel);

/// What a library does in the place of the kernel's code at a level; `contracts`: a sum and what is added to it may be
/// rounded once.
std::optional<codegen::LibraryProduct> getLibraryProduct(loop::KernelOp kernel, llvm::StringRef level, bool contracts);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_LIBRARYPRODUCT_H
