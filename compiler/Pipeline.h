// The path of a model through ptc. Read Pipeline.cpp first.
#ifndef PTC_COMPILER_PIPELINE_H
#define PTC_COMPILER_PIPELINE_H

#include "codegen/Targets.h"
#include "compiler/DiagnosticRendering.h"
#include "compiler/Options.h"
#include "compiler/Phases.h"
#include "compiler/StoredWeights.h"
#include "compiler/artifact/Manifest.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/ThreadPool.h"

namespace ptc {

/// How a compile talks to whoever asked for it.
struct CompileHooks {
  Diagnostics &diagnostics;
  std::function<void(llvm::StringRef what, size_t done, size_t total)> progress;
  std::function<void(const llvm::Twine &line)> log;
  std::string version;                                  // of ptc, for the artefact
  std::string command;                                  // for reproducers
  std::vector<std::string> argumentFiles;               // that the command was read from
  codegen::TargetTable targets = codegen::getTargets(); // what may be compiled for
  /// Sees the passes of a stage before they run, and may change them; none: they run as Stages.cpp has them.
  std::function<void(Phase phase, mlir::OpPassManager &passes)> changePasses = {};
  bool findsAll = false; // an import that fails goes on to find everything that is wrong
};

struct PhaseTime {
  Phase phase;
  double seconds;
};

/// One model on its way. Holds everything that lives as long as the compile: threads, MLIR context, and a module for
/// each target, which are one until stages depend on the target.
class Compilation {
public:
  Compilation(const CompileOptions &options, const CompileHooks &hooks);
  ~Compilation();

  /// An error if the options name a target that there is not, or targets that no library can be for.
  llvm::Error checkTarget() const;
  /// Reports every kernel that a target cannot make code of, by the user's nodes; after plan-memory. `nodes` gets the
  /// names of those that each diagnostic is about.
  llvm::Error checkKernels(std::vector<std::vector<std::string>> *nodes = nullptr);
  /// Runs the stages that have not run, up to one that has text (plan-memory at most).
  llvm::Error runTo(Phase last);
  /// Of a device: the target that has code of what runs on the host; null: none.
  const codegen::Target *findHost(const codegen::Target &target) const;
  mlir::ModuleOp getModule(size_t target = 0) { return modules[target].get(); }
  /// The text of all modules, as ptc-opt's -split-input-file reads it.
  std::string printModules();
  mlir::MLIRContext &getContext() { return *context; }
  llvm::ArrayRef<PhaseTime> getTimes() const { return times; }

  const CompileOptions options; // with this machine's level in the place of "native"
  const CompileHooks &hooks;
  const llvm::SmallVector<const codegen::Target *, 1> targets; // null where there is no such target
  llvm::DefaultThreadPool pool;
  WeightFiles weightFiles;
  std::vector<std::string> filesRead; // the model, its external files, those of the command; after import

  /// Runs a stage's body, timed; a crash or an unexplained failure becomes an internal error with a reproducer.
  llvm::Error runPhase(Phase phase, llvm::function_ref<llvm::Error()> body);
  /// Reports a defect of ptc, with `text` (the module before it) in a file.
  llvm::Error internalError(Phase phase, const llvm::Twine &what, llvm::StringRef text);

private:
  llvm::Error import();
  llvm::Error runPasses(Phase phase);
  llvm::Error checkKernels(size_t target, std::vector<std::vector<std::string>> *nodes);
  llvm::Error saveStage(Phase phase);

  std::unique_ptr<mlir::MLIRContext> context;
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>, 1> modules;
  std::vector<PhaseTime> times;
  std::optional<Phase> reached;
};

/// What a compile made, for whoever compares two.
struct CompileRecord {
  artifact::Manifest manifest;
  std::vector<std::pair<std::string, std::string>> code; // kernel and level, or "host": a digest of the object
};

/// Model to artefact: everything that options ask for is written, or nothing. `record`, if any, is filled where code
/// was generated.
llvm::Error compile(const CompileOptions &options, const CompileHooks &hooks, CompileRecord *record = nullptr);

/// An error if the options name several targets, for what is about one: "ptc explain".
llvm::Error requireOneTarget(const CompileOptions &options, llvm::StringRef what);

/// The module as text that ptc-opt reads back.
std::string printModule(mlir::ModuleOp module);

} // namespace ptc

#endif // PTC_COMPILER_PIPELINE_H
