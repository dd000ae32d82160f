//===- LibraryCall.h - kernels that libraries can compute -------*- C++ -*-===//
//
// What the device's maker has libraries for, they may compute faster. Which kernels those are, is read from the
// regions; the kernel keeps its own code, and measuring decides (GpuTuning.h).
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_GPU_LIBRARYCALL_H
#define PTC_CODEGEN_GPU_LIBRARYCALL_H

#include "codegen/Target.h"
#include "codegen/gpu/WgmmaOperands.h"

namespace ptc::gpu {

/// The product, or the convolution, that all of the kernel is, in a library's terms; nothing if it is another thing, or
/// more. A kernel is one of both at most.
std::optional<codegen::LibraryProduct> findLibraryProduct(loop::KernelOp kernel);
std::optional<codegen::LibraryConvolution> findLibraryConvolution(loop::KernelOp kernel);

/// The number by which a tuning file leaves the kernel to the library that can compute it; empty: none can.
llvm::StringRef findLibrary(loop::KernelOp kernel);

/// Whether a kernel that is not planned yet was tuned to be a library's.
bool isLeftToLibrary(loop::KernelOp kernel);

/// Of a kernel that is planned, and was tuned to be a library's: there is room for the library's scratch. Its code
/// stays as it is.
void planLibraryCall(loop::KernelOp kernel);

/// What a library does in the place of the kernel's code at a level; `contracts`: a sum and what is added to it may be
/// rounded once, and NaN may be lost in a ReLU.
void setLibraryCall(codegen::DeviceLaunch &launch, loop::KernelOp kernel, llvm::StringRef level, bool contracts);

/// As a comment: "or by cuBLASLt: ...".
void describeLibraryCall(llvm::raw_ostream &os, const codegen::DeviceLaunch &launch);

//===----------------------------------------------------------------------===//
// What both kinds are read from
//===----------------------------------------------------------------------===//

constexpr int64_t libraryWorkspace = 32 << 20; // what the libraries' makers recommend for sm_90

/// Elements of a buffer of the kernel, one at each point of the op: where each dim steps.
struct LibraryAccess {
  unsigned buffer;
  int64_t offset; // bytes
  llvm::SmallVector<Axis> axes;
};

/// The types of operands that libraries multiply; nothing: 8-bit integers.
std::optional<codegen::LibraryType> findLibraryType(loop::ContractionOp op);
int64_t getBytes(codegen::LibraryType type);

/// What becomes of the sums: vectors or tensors are added, ReLU, one result is stored.
struct LibraryEpilogue {
  codegen::LibraryType type = codegen::LibraryType::F32; // of the result and of what is added
  LibraryAccess result;
  llvm::SmallVector<LibraryAccess> addends; // the first is added last
  bool hasRelu = false;
  bool roundsOnce = false; // a library rounds once, the kernel's own code in between, too, or sums in another order
};
std::optional<LibraryEpilogue> matchLibraryEpilogue(loop::ContractionOp op, codegen::LibraryType operands);

/// Where vectors of 16 bytes begin.
inline bool isLibraryOffset(int64_t bytes) { return bytes >= 0 && bytes % MmaTile::vectorBytes == 0; }

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_LIBRARYCALL_H
