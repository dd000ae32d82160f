//===- KernelNames.h - kernels are named by content -------------*- C++ -*-===//
#ifndef PTC_COMPILER_SCHEDULE_KERNELNAMES_H
#define PTC_COMPILER_SCHEDULE_KERNELNAMES_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// What a kernel is, as text that two kernels share only if they do the same.
std::string getKernelText(KernelOp kernel);
/// What the kernel does, and a hash of its text.
std::string makeKernelName(llvm::StringRef stem, llvm::StringRef text);
/// The stem of such a name.
llvm::StringRef getKernelStem(llvm::StringRef name);

} // namespace ptc::loop

#endif // PTC_COMPILER_SCHEDULE_KERNELNAMES_H
