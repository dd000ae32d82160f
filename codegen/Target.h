//===- Target.h - what a target can do --------------------------*- C++ -*-===//
//
// The one virtual interface of the compiler. A target plans a kernel once for all its levels and makes code of it for
// one; what it is called and what it writes is in its TargetInfo. The stages before see that value alone, the driver
// sees this class, and nobody sees which targets there are but the table in Targets.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_TARGET_H
#define PTC_CODEGEN_TARGET_H

#include "codegen/object/CodeFacts.h"
#include "ir/loop/Loop.h"
#include "ir/target/TargetInfo.h"
#include "llvm/Support/Error.h"

namespace ptc::codegen {

/// A processor that code is made for. Levels of one library share the triple.
struct Level {
  std::string name;
  std::string triple;    // of the library
  uint64_t features = 0; // what it takes to run: PTC_RT_... bits (runtime/include/ptc/descriptor.h)
};

/// A tensor that a kernel's code copies box by box: ptc_rt_tensor_map. Its innermost dim comes first. Of an image whose
/// pixels are copied (im2col), dims are channels, axes, images; a box has so many channels of so many pixels; windows
/// begin at every `steps`-th position from `lower` to `upper`, counted from the first and last ones of each axis.
struct TensorMap {
  unsigned buffer = 0, elementBytes = 0;          // buffer: of the kernel's
  int64_t offset = 0;                             // bytes
  llvm::SmallVector<int64_t> extents, strides;    // strides in bytes
  llvm::SmallVector<int64_t> box;                 // extents of a copy
  llvm::SmallVector<int64_t> lower, upper, steps; // of an image: one an axis
};

/// What a library of the device's maker may compute in the place of the kernel's code.
enum class LibraryType { F32, F16, BF16 };

/// A matrix product: ptc_rt_product.
struct LibraryProduct {
  struct Matrix {
    unsigned buffer = 0; // of the kernel's
    bool isAlongK = false;
    int64_t offset = 0, pitch = 0, batchStride = 0; // offset: bytes
  };
  LibraryType type = LibraryType::F32, resultType = LibraryType::F32;
  bool hasRelu = false;
  bool roundsOnce = false; // the kernel's own code rounds the sum before the bias, too
  int64_t batch = 1, m = 0, n = 0, k = 0;
  int64_t workspace = 0; // bytes, of the launch's scratch
  Matrix lhs, rhs, result;
  std::optional<Matrix> bias;
};

/// A convolution: ptc_rt_convolution.
struct LibraryConvolution {
  struct Image {
    unsigned buffer = 0;                         // of the kernel's
    int64_t offset = 0;                          // bytes
    llvm::SmallVector<int64_t> extents, strides; // in elements: images or columns, channels, axes
  };
  struct Bias {
    unsigned buffer = 0;
    int64_t offset = 0; // bytes
  };
  LibraryType type = LibraryType::F32, resultType = LibraryType::F32;
  bool hasRelu = false;
  bool roundsOnce = false; // the kernel's own code rounds in between, too, or adds in another order
  llvm::SmallVector<int64_t, 3> steps, dilations, before, behind; // one an axis
  int64_t workspace = 0;                                          // bytes, of the launch's scratch
  Image input, weights, result;
  std::optional<Bias> bias;
  std::optional<Image> residual;
};

/// How a kernel of a device is launched, one block for each of its iterations: ptc_rt_device_kernel.
struct DeviceLaunch {
  unsigned threads = 0, rows = 0; // of a block
  unsigned buffers = 0, symbols = 0;
  bool checksIndices = false, hasScratch = false, hasCounters = false;
  unsigned sharedBytes = 0; // of a block, given at the launch
  unsigned blocks = 0;      // at most, whatever the kernel's iterations are; 0: as many as those
  unsigned together = 1;    // of these, those that share a multiprocessor
  unsigned cluster = 1;     // so many blocks work together; all `blocks` are launched then
  std::string entry;        // by which the driver finds it in the code
  std::vector<TensorMap> maps;
  std::optional<LibraryProduct> product; // of which there is one at most
  std::optional<LibraryConvolution> convolution;

  /// Of the two, as tuning files and manifests name it; empty: neither.
  llvm::StringRef getLibrary() const { return product ? "cublaslt" : convolution ? "cudnn" : ""; }
};

/// One kernel for one level.
struct KernelCode {
  std::string kernel, level;
  std::string sharedWith; // the level that has object and text, which are missing here then; empty: they are here
  llvm::SmallVector<char, 0>
      object; // of targets whose kernels are linked; with `launch`: what the device's driver loads
  std::optional<DeviceLaunch> launch; // of targets whose kernels run on a device
  std::string llvmText, assembly;     // if text was asked for
  uint64_t codeBytes = 0;             // of executable sections
  object::CodeFacts facts;
};

/// What a user asks of all kernels.
struct CodeOptions {
  unsigned optLevel = 2;   // 0: as emitted, 1: cheap passes, 2: what pays, 3: LLVM's own pipeline besides
  bool contracts = true;   // a product and the sum it enters may be rounded once
  bool wantsText = false;  // LLVM and assembly text beside the object
  bool wantsObject = true; // a library is made
  std::string assembler;   // of targets whose assembler is not part of ptc: its path; empty: none
  std::string entry; // of targets whose kernels run on a device: what the driver and profilers call it; empty: as the
                     // kernel
  std::string
      listing; // the file, without folder, that locations of the kernel's ops are in, for debug info; empty: none
};

class Target {
public:
  virtual ~Target() = default;
  virtual const TargetInfo &getInfo() const = 0;
  /// One of the levels of its TargetInfo; an error if there can be no library for it.
  virtual llvm::Expected<Level> describeLevel(llvm::StringRef name) const = 0;
  /// The best level that this machine runs; nothing if it runs none.
  virtual std::optional<llvm::StringRef> findHostLevel() const { return std::nullopt; }
  /// Whether this machine runs the level.
  virtual bool runsHere(llvm::StringRef level) const { return false; }

  /// Loads every dialect that generateKernel creates ops of. Call it before kernels are planned or generated.
  virtual void loadDialects(mlir::MLIRContext &context) const = 0;
  /// What keeps the target from making code of the kernel, for people ("contractions"); nothing: it can.
  virtual std::optional<std::string> whyUnsupported(loop::KernelOp kernel) const { return std::nullopt; }
  /// Levels whose code for what the kernel computes is better than that of the usual ones; none: those will do.
  virtual llvm::SmallVector<llvm::StringRef> findSpecialLevels(loop::KernelOp kernel) const { return {}; }
  /// The level among `levels` whose code the kernel has at `level`, which is one of them: that itself, or one in front
  /// of it, of whose code the level's own would differ in nothing that counts. `levels` are from low to high.
  virtual llvm::StringRef findCodeLevel(loop::KernelOp kernel, llvm::StringRef level,
                                        llvm::ArrayRef<Level> levels) const {
    return level;
  }
  /// Decides how the kernel's work is cut and sets its attributes `iterations`, `grain`, `scratch` and `config`.
  virtual mlir::LogicalResult planKernel(loop::KernelOp kernel) const = 0;
  /// Numbers for `loop.tuned` (ir/loop/Tuned.h) of a kernel that is not planned yet, which may be faster at the level
  /// than what planKernel chooses: each is worth a measurement.
  virtual llvm::SmallVector<mlir::DictionaryAttr> listAlternatives(loop::KernelOp kernel, llvm::StringRef level) const {
    return {};
  }
  /// The names of all numbers that listAlternatives may give.
  virtual llvm::ArrayRef<llvm::StringLiteral> getTunedNames() const { return {}; }
  /// Code of a planned kernel. Safe to call from several threads on kernels of one MLIRContext.
  virtual llvm::Expected<KernelCode> generateKernel(loop::KernelOp kernel, llvm::StringRef level,
                                                    const CodeOptions &options) const = 0;
  /// The assembly of all kernels as one text.
  virtual std::string joinAssembly(llvm::ArrayRef<KernelCode> codes) const;
};

} // namespace ptc::codegen

#endif // PTC_CODEGEN_TARGET_H
