// The last two stages: what is generated from a planned module, and the files that it becomes.
#ifndef PTC_COMPILER_ARTEFACT_H
#define PTC_COMPILER_ARTEFACT_H

#include "codegen/host/HostModule.h"
#include "compiler/KernelObjects.h"
#include "compiler/OutputPlan.h"
#include "compiler/Pipeline.h"
#include "compiler/Stats.h"
#include "compiler/StoredWeights.h"
#include "compiler/artifact/Header.h"
#include "compiler/artifact/Link.h"
#include "compiler/artifact/Manifest.h"
#include "compiler/tuning/Tuning.h"
#include <deque>

namespace ptc {

struct PrimModel;

/// The user's nodes that a location stems from, each once.
std::vector<std::string> nodeNames(mlir::Location location);
artifact::Amount amountOf(Expr expr, const SymbolValues &hints);
inline Expr exprOf(std::optional<Expr> attr) { return attr ? *attr : Expr(); }
/// Adds the arena of a planned program and its buffers. `target`: as MemoryEntry has it.
void describeMemory(llvm::StringRef target, llvm::StringRef function, loop::ProgramOp program,
                    artifact::Manifest &manifest);

/// Kernels for one target's levels.
struct KernelSet {
  const codegen::Target &target;
  std::vector<codegen::Level> levels = {};        // from low to high
  bool choosesLevels = false;                     // --cpu=auto
  std::string assembler = {};                     // of a device's kernels; empty: none
  bool isBeside = false;                          // what a device leaves to the host: nobody has tuned it
  llvm::SmallVector<loop::KernelOp> kernels = {}; // in the order of first launch
  std::vector<std::string> entries = {};          // of a device: what its code calls them
  std::vector<codegen::KernelCode> codes = {};    // kernels x levels
};

/// What is generated for one target: its own kernels and, of a device, those that run on the host.
struct CompiledTarget : KernelSet {
  explicit CompiledTarget(const codegen::Target &target) : KernelSet{target} {}
  /// The target's own kernels, then the host's.
  llvm::SmallVector<const KernelSet *, 2> getSets() const {
    return onHost ? llvm::SmallVector<const KernelSet *, 2>{this, &*onHost}
                  : llvm::SmallVector<const KernelSet *, 2>{this};
  }

  mlir::ModuleOp module = {}; // planned; from generateCode on
  host::HostInputs inputs = {};
  std::optional<KernelSet> onHost;
};

/// One compile's results on their way into files. Nothing appears under its name before commit().
class Artefact {
public:
  Artefact(Compilation &compilation, const OutputPlan &plan);

  /// Levels, outputs and kinds of threads, before anything is compiled.
  llvm::Error checkOptions();
  /// The text of a stage, if it was asked for.
  llvm::Error writeStage(Phase phase);
  /// Codegen: plans and compiles the kernels and the host program.
  llvm::Error generateCode();
  /// Link: libraries, header, manifest, depfile.
  llvm::Error link();
  llvm::Error writeStats(llvm::StringRef text);
  llvm::Error writeTimeTrace(llvm::StringRef text);
  /// After generateCode, and after link where there is one.
  llvm::Error fill(CompileRecord &record);
  llvm::Error commit();
  ArtefactSummary getSummary() const;

private:
  llvm::Error checkTargetOptions(CompiledTarget &part);
  llvm::Error findAssembler(CompiledTarget &part);
  llvm::Error chooseLevels(KernelSet &set);
  llvm::Error addSpecialLevels(KernelSet &set);
  llvm::Error checkMode();
  llvm::Error checkLibraryOptions();
  llvm::Error generateKernels(CompiledTarget &part);
  llvm::Error compileSet(KernelSet &set);
  void describeDeviceCode(CompiledTarget &part);
  llvm::Error useTuning(KernelSet &set);
  llvm::Error planKernels(KernelSet &set);
  std::string listingName() const;
  llvm::Error writeListing(CompiledTarget &part);
  llvm::Error generateHost();
  llvm::Error addKernels(const CompiledTarget &part, const KernelSet &set, artifact::LinkInputs &inputs,
                         std::deque<llvm::SmallVector<char, 0>> &named);
  llvm::Error saveKernels(const CompiledTarget &part, const KernelSet &set);
  llvm::Error saveBenchmarks(const CompiledTarget &part);
  llvm::Error writeCodeTexts();
  llvm::Error writePrims(llvm::StringRef path);
  llvm::Error writePrimWeights(llvm::StringRef path, const PrimModel &model);
  llvm::Error writeText(llvm::StringRef path, llvm::StringRef text);
  llvm::Expected<artifact::LinkResult> linkOutput(const Output &output, artifact::LinkInputs &inputs);
  artifact::HeaderOptions headerOptions(const Output &output) const;
  llvm::Expected<artifact::Manifest> describe();
  /// The part's target where the library has several; empty: it need not be said.
  llvm::StringRef nameOf(const CompiledTarget &part) const;
  llvm::Error writeDepfile();

  Compilation &compilation;
  const OutputPlan &plan;
  std::vector<CompiledTarget> parts; // one for each target, in the order of --target
  artifact::Outputs outputs;
  std::vector<std::pair<std::string, std::string>> pipes; // text for standard output
  std::optional<StoredWeights> weights;
  std::optional<Tuning> tuning;
  host::ModelInterface interface;
  llvm::SmallVector<char, 0> hostObject;
  std::string hostText;
  artifact::LinkResult linked;
};

} // namespace ptc

#endif // PTC_COMPILER_ARTEFACT_H
