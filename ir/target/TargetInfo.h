//===- TargetInfo.h - what stages may know of a target ----------*- C++ -*-===//
//
// Everything that the stages before code generation, the options and the outputs depend on, as one value. codegen
// fills one for each target; no stage asks for a target by name.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_TARGET_TARGETINFO_H
#define PTC_IR_TARGET_TARGETINFO_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace ptc {

struct TargetInfo {
  llvm::StringRef name;                       // the user's word: --target=cpu
  llvm::ArrayRef<llvm::StringRef> levels;     // what code can be made for, from low to high: "x86-64-v3", "sm_80"
  llvm::StringRef levelFlag;                  // the option that names levels; empty: all of them
  llvm::ArrayRef<llvm::StringRef> autoLevels; // what "auto" stands for there, besides those that kernels ask for
  bool oneLevelText = false;                  // text of kernels is for one level
  bool runsOnDevice = false;                  // kernels run on a device, which reads what lies in its own memory
  llvm::StringRef host;                       // of a device: the target that has code of what runs beside it
  llvm::ArrayRef<llvm::StringRef> outputs;    // kinds of --emit besides mlir:STAGE, the default first
  llvm::StringRef assemblySuffix = ".s";      // of a kernel's text among --save-temps
  /// Columns of the unit panels that the weights of contractions are stored in; 0: weights stay as they are.
  int64_t weightPanel = 0;
  /// Contractions with fewer columns get none: the target has another way for them.
  int64_t fewestPanelColumns = 0;
  /// Bytes of the cache that a core has for itself, and of the one that cores share, as far as one program finds it its
  /// own; 0: there is nothing to gain by an order of work that keeps a batch's images in them.
  int64_t coreCacheBytes = 0;
  int64_t sharedCacheBytes = 0;
  /// Convolutions with such weights may be computed by Winograd's algorithm.
  bool hasWinograd = false;
  /// Large products may be computed by Strassen's algorithm.
  bool hasStrassen = false;
};

} // namespace ptc

#endif // PTC_IR_TARGET_TARGETINFO_H
