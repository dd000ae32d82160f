// The host code of a library: one LLVM module with the descriptor, the typed entry functions and the programs.
#ifndef PTC_CODEGEN_HOST_HOSTMODULE_H
#define PTC_CODEGEN_HOST_HOSTMODULE_H

#include "codegen/Target.h"
#include "codegen/host/Interface.h"
#include "ir/loop/Loop.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace ptc::host {

/// Which kind of threads the library uses: the runtime's names.
enum class Threading { Pool, OpenMP, None };

struct Level {
  std::string name;                         // "x86-64-v3"
  uint64_t features = 0;                    // object::runtimeFeatures
  llvm::StringMap<std::string> shared = {}; // kernels that have another level's function: that level's name
  /// The level whose function the kernel has at this one.
  llvm::StringRef codeLevel(llvm::StringRef kernel) const {
    auto other = shared.find(kernel);
    return other == shared.end() ? llvm::StringRef(name) : llvm::StringRef(other->second);
  }
};

/// A function of the library: its program for one range of dims or more, in order of preference, the most general last.
/// All have the same inputs, outputs and symbols.
struct HostFunction {
  std::string name;
  llvm::SmallVector<loop::ProgramOp, 1> variants;
};

enum class WeightsPlace { Absent = 0, Embedded = 1, File = 2 };

/// Kernels that run on a device, level by level, each in the order of launchedKernels; those that run on the host have
/// no bytes. The bytes must outlive the module's emission.
struct DeviceCode {
  std::vector<std::vector<codegen::DeviceLaunch>> kernels;
  std::vector<std::vector<llvm::StringRef>> images;
  bool recordsGraphs = false; // the launches of a run are recorded once and replayed
};

/// What one target brings. Those of one library agree in names, compiler, threads, the place and number of weights, and
/// in what their functions show to the outside.
struct HostInputs {
  std::string name;                    // C identifier, prefix of all names
  std::string compiler;                // "ptc 0.1.0"
  std::vector<HostFunction> functions; // the main one first
  std::vector<Level> levels;           // lowest first
  std::vector<Level> hostLevels;       // of a device, for kernels that run on the host; none: there are none
  Threading threading = Threading::Pool;
  WeightsPlace weightsPlace = WeightsPlace::Embedded;
  std::string weightsFile;                   // without folder, for WeightsPlace::File
  uint64_t weightBytes = 0;                  // of all targets
  uint64_t weightsBegin = 0, weightsEnd = 0; // of them, those that this target's kernels read
  std::vector<Weight> weights;               // what set_weight may replace
  bool namesLaunches = false;                // for debuggers and profilers: see KernelTable
  std::optional<DeviceCode> device;          // none: kernels are functions of the library
  /// Where in the weights section a weight lies, or a constant that lies there too; nothing for other operations.
  llvm::function_ref<std::optional<uint64_t>(mlir::Operation *)> storedOffset;
};

/// The element type as the ABI names it; the type has the model's signedness.
DType dtypeOf(mlir::Type elementType);

/// What the programs show to the outside, with C names assigned. The source of the header and of the manifest, and of
/// the descriptors in the module; the same whichever target of a library is asked.
ModelInterface describeInterface(const HostInputs &inputs);

/// CustomNodes.cpp: the user's own operators that programs call.
std::vector<CustomOperator> listCustomOperators(const HostInputs &inputs);

/// The guards of a program as the descriptor and the header show them.
std::vector<Guard> guardsOf(loop::ProgramOp program, llvm::ArrayRef<Symbol> symbols);

/// A condition as a sentence shows it; `indexOf` numbers the symbols, -1 for those that are not shown.
Guard guardOf(Expr condition, llvm::function_ref<int(llvm::StringRef)> indexOf);

/// The function that a kernel has in the object of a level: generateKernel must give it this name.
std::string kernelSymbol(llvm::StringRef kernel, llvm::StringRef level);

/// The kernel that a launch names; null if there is none.
loop::KernelOp kernelOf(loop::LaunchOp launch);

/// Names of the user's nodes behind a launch, at most so many characters.
std::string nodesOf(mlir::Location location);

/// What the code of a device calls each kernel, in the order of launchedKernels: the kernel's name, then the user's
/// nodes of its first launch, and how many launches more there are. It has letters, digits and underscores alone.
std::vector<std::string> entryNames(const HostInputs &inputs);

/// A function that launches call: a kernel's or, with names, that of one launch of it.
struct KernelEntry {
  loop::KernelOp kernel;
  std::string nodes; // empty: the kernel's, for all its launches
  std::string symbol(llvm::StringRef level) const;
  llvm::StringRef launchedKernel() const;
  bool runsOnHost() const; // in a program of a device
};

/// What each level's table of functions holds, in the order of first use.
struct KernelTable {
  std::vector<KernelEntry> entries;
  llvm::DenseMap<mlir::Operation *, unsigned> ofLaunch;
};

KernelTable tabulateKernels(const HostInputs &inputs);

/// Kernels that the programs launch, in the order of the descriptor (first use).
llvm::SmallVector<loop::KernelOp> launchedKernels(const HostInputs &inputs);

/// The module of a library for these targets, not yet prepared for a processor: object::emitObject with the baseline of
/// one and optLevel 0 compiles it (code that runs once a launch is not worth more; it is eight times faster to make).
/// It refers to the kernels' functions, to the runtime, to `ptc_weights` (if embedded) and to `ptc_weights_digest`, all
/// hidden. Defines the typed functions, NAME_model_v1 and its alias ptc_model_v1. Programs must be at the end of
/// plan-memory and kernels planned.
llvm::Expected<std::unique_ptr<llvm::Module>>
emitHostModule(llvm::ArrayRef<const HostInputs *> targets, const ModelInterface &interface, llvm::LLVMContext &context);

} // namespace ptc::host

#endif
