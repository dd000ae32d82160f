// A model on its way through the stages of Phases.def:
//
//   import        ONNX to prim                       lowering/onnx
//   prim          folding and algebra on tensors     Stages.cpp: addPrim
//   loop          prim to nodes over buffers         Stages.cpp: addLoop
//   schedule      nodes to kernels and launches      Stages.cpp: addSchedule
//   plan-memory   buffers to offsets in one arena    Stages.cpp: addPlanMemory
//   codegen       kernels to objects, in parallel    KernelObjects.cpp; codegen/host for the program around them
//   link          objects and weights to a library   Artefact.cpp
//
// Of several targets, import runs once and the stages up to plan-memory for each; codegen and link put them together.
// Up to plan-memory a stage's result is the module and nothing else, so each can be printed and taken up again. Every
// stage runs inside runPhase: a diagnostic of the user's ends the compile quietly (it has been reported), anything else
// that goes wrong is a defect of ptc and leaves a reproducer, which holds no weights because the module never does.
#include "compiler/Pipeline.h"
#include "compiler/Artefact.h"
#include "compiler/CustomOps.h"
#include "compiler/KernelObjects.h"
#include "compiler/Machine.h"
#include "compiler/Registration.h"
#include "compiler/SaveTemps.h"
#include "compiler/Stages.h"
#include "compiler/Stats.h"
#include "ir/Diagnostics.h"
#include "ir/loop/Loop.h"
#include "lowering/onnx/ImportOnnx.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TimeProfiler.h"
#include <chrono>

using namespace llvm;

namespace ptc {

namespace {
/// LLVM keeps a trace for the whole process, so that its own passes can add to it.
struct TimeTrace {
  explicit TimeTrace(bool isOn) : isOn(isOn) {
    if (isOn)
      timeTraceProfilerInitialize(timeTraceGranularity, "ptc");
  }
  ~TimeTrace() {
    if (isOn)
      timeTraceProfilerCleanup();
  }
  bool isOn;
};
} // namespace

static std::string takeTimeTrace() {
  SmallString<0> text;
  raw_svector_ostream os(text);
  timeTraceProfilerWrite(os);
  return text.str().str();
}

/// The kinds that all targets write, in the order of the first.
static SmallVector<StringRef> commonOutputs(ArrayRef<const codegen::Target *> targets) {
  SmallVector<StringRef> kinds;
  for (StringRef kind : targets.front()->getInfo().outputs)
    if (llvm::all_of(targets, [&](const auto *target) { return is_contained(target->getInfo().outputs, kind); }))
      kinds.push_back(kind);
  return kinds;
}

Error compile(const CompileOptions &options, const CompileHooks &hooks, CompileRecord *record) {
  TimeTrace trace(!options.timeTrace.empty());
  Compilation compilation(options, hooks);
  if (Error error = compilation.checkTarget())
    return error;
  Expected<OutputPlan> plan = planOutputs(options, commonOutputs(compilation.targets));
  if (!plan)
    return plan.takeError();
  Artefact artefact(compilation, *plan);
  if (Error error = artefact.checkOptions())
    return error;

  if (Error error = compilation.runTo(Phase::Import))
    return error;
  if (Error error = checkInputsKept(*plan, compilation.filesRead))
    return error;
  Phase last = plan->lastPhase();
  for (const PhaseRow &row : getPhases().take_front(static_cast<size_t>(std::min(last, Phase::PlanMemory)) + 1)) {
    if (Error error = compilation.runTo(row.phase))
      return error;
    if (Error error = artefact.writeStage(row.phase))
      return error;
  }
  if (last >= Phase::Codegen) // before any code: all that is missing is told at once
    if (Error error = compilation.checkKernels())
      return error;
  if (last >= Phase::Codegen)
    if (Error error = compilation.runPhase(Phase::Codegen, [&] { return artefact.generateCode(); }))
      return error;
  if (last == Phase::Link)
    if (Error error = compilation.runPhase(Phase::Link, [&] { return artefact.link(); }))
      return error;
  if (!options.stats.empty())
    if (Error error = artefact.writeStats(formatStats(compilation, artefact.getSummary())))
      return error;
  if (trace.isOn)
    if (Error error = artefact.writeTimeTrace(takeTimeTrace()))
      return error;
  if (record && last >= Phase::Codegen)
    if (Error error = artefact.fill(*record))
      return error;
  return artefact.commit();
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

static ThreadPoolStrategy strategyOf(const CompileOptions &options) {
  return options.jobs ? hardware_concurrency(options.jobs) : hardware_concurrency();
}

/// This machine's level of the target. A device is asked for it where the word is used; one that is absent leaves the
/// word, and is told of when levels are chosen (Artefact.cpp).
static std::optional<std::string> findHostLevel(const codegen::Target &target, const CompileOptions &options) {
  if (!target.getInfo().runsOnDevice) {
    std::optional<StringRef> level = target.findHostLevel();
    return level ? std::optional(level->str()) : std::nullopt;
  }
  if (!llvm::is_contained(options.gpu, "native"))
    return std::nullopt;
  Expected<std::string> level = findCudaLevel();
  if (level)
    return *level;
  consumeError(level.takeError());
  return std::nullopt;
}

/// What follows, the digest of the flags included, sees a level and not the word.
static CompileOptions withHostLevels(CompileOptions options, codegen::TargetTable all) {
  SmallVector<const codegen::Target *> targets;
  for (const codegen::Target *target : codegen::findTargets(all, options.target)) {
    targets.push_back(target);
    if (target && !target->getInfo().host.empty())
      targets.push_back(codegen::findTarget(all, target->getInfo().host));
  }
  for (const codegen::Target *target : targets) {
    std::optional<std::string> level = target ? findHostLevel(*target, options) : std::nullopt;
    if (!level)
      continue;
    visitOptions(options, [&](option::Role, StringRef, auto &field, StringRef flags, StringRef, StringRef) {
      if constexpr (std::is_same_v<std::decay_t<decltype(field)>, option::List>)
        if (flags == target->getInfo().levelFlag)
          llvm::replace(field, std::string("native"), *level);
    });
  }
  return options;
}

Compilation::Compilation(const CompileOptions &options, const CompileHooks &hooks)
    : options(withHostLevels(options, hooks.targets)), hooks(hooks),
      targets(codegen::findTargets(hooks.targets, options.target)), pool(strategyOf(options)),
      weightFiles(options.model) {
  mlir::DialectRegistry registry;
  registerStageDialects(registry);
  context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  if (pool.getMaxConcurrency() > 1)
    context->setThreadPool(pool);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false); // users see their nodes, not our ops
  CrashRecoveryContext::Enable();
  hooks.diagnostics.setSubject(options.model);
  context->getDiagEngine().registerHandler([&hooks](mlir::Diagnostic &diagnostic) {
    hooks.diagnostics.report(diagnostic);
    return mlir::success();
  });
}

Compilation::~Compilation() {
  modules.clear();
  context.reset();
  CrashRecoveryContext::Disable();
}

Error Compilation::checkTarget() const {
  SmallVector<StringRef> names;
  StringRef(options.target).split(names, ',');
  for (auto [index, name] : llvm::enumerate(names)) {
    const codegen::Target *target = targets[index];
    if (!target)
      return exitError(exitUsage, "unknown target '" + name + "'", "--target=" + codegen::targetNames(hooks.targets));
    if (llvm::is_contained(ArrayRef(targets).take_front(index), target))
      return exitError(exitUsage, "--target=" + options.target + ": '" + name + "' twice", "name each target once");
    if (targets.size() > 1 && !llvm::is_contained(target->getInfo().outputs, "so"))
      return exitError(exitUsage,
                       "--target=" + options.target + ": '" + name + "' makes no libraries, which targets could share",
                       "compile once for each");
  }
  bool hasGpu =
      llvm::any_of(targets, [](const codegen::Target *target) { return target->getInfo().levelFlag == "--gpu"; });
  if (!hasGpu && options.gpu != CompileOptions().gpu)
    return exitError(exitUsage, "--gpu is for GPUs; the target is " + options.target,
                     "add --target=cuda, or leave --gpu out");
  if (!hasGpu && options.assembler != CompileOptions().assembler)
    return exitError(exitUsage, "--ptxas is for GPUs; the target is " + options.target,
                     "add --target=cuda, or leave --ptxas out");
  return Error::success();
}

Error requireOneTarget(const CompileOptions &options, StringRef what) {
  if (!StringRef(options.target).contains(','))
    return Error::success();
  return exitError(exitUsage, "--target=" + options.target + ": " + what + " is about one target", "once for each");
}

Error Compilation::runTo(Phase last) {
  if (Error error = checkTarget())
    return error;
  for (const PhaseRow &row : getPhases()) {
    if (row.phase > last || (reached && row.phase <= *reached))
      continue;
    hooks.progress(row.name, static_cast<size_t>(row.phase), getPhases().size());
    Error error = runPhase(row.phase, [&] { return row.phase == Phase::Import ? import() : runPasses(row.phase); });
    if (error)
      return error;
    reached = row.phase;
    if (Error error = saveStage(row.phase))
      return error;
  }
  return Error::success();
}

static std::optional<DynamicDims> parseDynamic(StringRef text) {
  return StringSwitch<std::optional<DynamicDims>>(text)
      .Case("auto", DynamicDims::Auto)
      .Case("on", DynamicDims::On)
      .Case("off", DynamicDims::Off)
      .Default(std::nullopt);
}

Error Compilation::import() {
  std::optional<DynamicDims> dynamic = parseDynamic(options.dynamic);
  if (!dynamic)
    return exitError(exitUsage, "unknown value '" + options.dynamic + "' of --dynamic", "--dynamic=auto, on or off");
  ImportOptions import{.dims = options.dims,
                       .shapes = options.shapes,
                       .dynamic = *dynamic,
                       .buckets = options.buckets,
                       .taps = options.taps,
                       .keptNodes = options.autocastKeep,
                       .filesRead = &filesRead,
                       .findsAll = hooks.findsAll};
  for (StringRef alias : options.aliases) {
    auto [input, output] = alias.split('=');
    if (input.empty() || output.empty())
      return exitError(exitUsage, "--alias " + alias + ": expected INPUT=OUTPUT");
    import.aliases.emplace_back(input, output);
  }
  Expected<std::vector<CustomOp>> customOps = openCustomOps(options.customOps);
  if (!customOps)
    return customOps.takeError();
  import.customOps = std::move(*customOps);
  mlir::OwningOpRef<mlir::ModuleOp> module = importOnnx(*context, options.model, import);
  llvm::append_range(filesRead, hooks.argumentFiles);
  if (!options.tuneFile.empty())
    filesRead.push_back(options.tuneFile);
  if (!module)
    return reported();
  modules.push_back(std::move(module));
  return Error::success();
}

Error Compilation::runPasses(Phase phase) {
  while (modules.size() < targets.size()) // all stages behind import depend on the target
    modules.push_back(modules.front()->clone());
  for (auto [target, module] : llvm::zip_equal(targets, modules)) {
    mlir::PassManager passes(context.get(), mlir::ModuleOp::getOperationName());
    addStage(passes, phase, options, *target, weightFiles);
    if (hooks.changePasses)
      hooks.changePasses(phase, passes);
    if (mlir::failed(passes.run(*module)))
      return reported();
  }
  return Error::success();
}

const codegen::Target *Compilation::findHost(const codegen::Target &target) const {
  return target.getInfo().host.empty() ? nullptr : codegen::findTarget(hooks.targets, target.getInfo().host);
}

Error Compilation::checkKernels(std::vector<std::vector<std::string>> *nodes) {
  for (size_t index = 0; index < targets.size(); ++index)
    if (Error error = checkKernels(index, nodes))
      return error;
  return Error::success();
}

Error Compilation::checkKernels(size_t index, std::vector<std::vector<std::string>> *nodes) {
  const codegen::Target *target = targets[index], *host = findHost(*target);
  mlir::ModuleOp module = getModule(index);
  // By reason, in the order of launches: one model may launch hundreds of kernels for the same reason.
  std::vector<std::pair<std::string, SmallVector<loop::LaunchOp>>> refused;
  for (auto program : module.getOps<loop::ProgramOp>())
    program.walk([&](loop::LaunchOp launch) {
      auto kernel = mlir::SymbolTable::lookupNearestSymbolFrom<loop::KernelOp>(launch, launch.getKernelAttr());
      const codegen::Target *runsIt = kernel.getOnHost() && host ? host : target;
      std::optional<std::string> reason = runsIt->whyUnsupported(kernel);
      if (!reason)
        return;
      auto found = llvm::find_if(refused, [&](const auto &entry) { return entry.first == *reason; });
      if (found == refused.end())
        found = refused.insert(found, {*reason, {}});
      found->second.push_back(launch);
    });
  for (const auto &[reason, launches] : refused) {
    SmallSetVector<StringRef, 8> names;
    for (loop::LaunchOp launch : launches)
      launch.getLoc()->walk([&](mlir::Location part) {
        if (std::optional<NodeLocation> node = describeLocation(part))
          names.insert(node->node.empty() ? node->output : node->node);
        return mlir::WalkResult::advance();
      });
    if (nodes)
      nodes->emplace_back(names.begin(), names.end());
    mlir::InFlightDiagnostic diag =
        diagnose(loop::LaunchOp(launches.front()).getLoc(), DiagId::UnsupportedForm,
                 formatv("code of {0} for --target={1}, which {2} kernel(s) of the node(s) {3} need,", reason,
                         target->getInfo().name, launches.size(), join(names, ", "))
                     .str());
    addHelp(diag, "--target=cpu has code of all kinds");
  }
  return refused.empty() ? Error::success() : reported();
}

Error Compilation::saveStage(Phase phase) {
  if (options.saveTemps.empty())
    return Error::success();
  return saveText(options.saveTemps, formatv("{0}-{1}.mlir", static_cast<int>(phase), getRow(phase).name).str(),
                  printModules());
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

static bool isReported(const Error &error) { return error.isA<ReportedError>(); }

/// An error that the user or the machine caused, not ptc.
static bool isExplained(const Diagnostics &diagnostics, Error &error) {
  if (isReported(error))
    return diagnostics.exitCode() != exitOk && diagnostics.exitCode() != exitInternal;
  bool isOutside = error.isA<ExitError>();
  Error rest = handleErrors(std::move(error), [&](std::unique_ptr<ErrorInfoBase> info) -> Error {
    isOutside |= info->convertToErrorCode() != inconvertibleErrorCode();
    return Error(std::move(info));
  });
  error = std::move(rest);
  return isOutside;
}

static std::string printAll(ArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> modules) {
  return join(llvm::map_range(modules, [](const auto &module) { return printModule(*module); }), "// -----\n");
}

std::string Compilation::printModules() { return printAll(modules); }

Error Compilation::runPhase(Phase phase, function_ref<Error()> body) {
  auto before = llvm::map_to_vector(modules, [](auto &module) { return mlir::OwningOpRef(module->clone()); });
  auto start = std::chrono::steady_clock::now();
  TimeTraceScope scope("stage", getRow(phase).name);
  CrashRecoveryContext crash;
  std::optional<Error> outcome;
  bool survived = crash.RunSafely([&] { outcome.emplace(body()); });
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  times.push_back({phase, seconds});
  hooks.log(formatv("{0}: {1:f3} s", getRow(phase).name, seconds).str());
  if (!survived)
    return internalError(phase, "ptc crashed", printAll(before));
  if (!*outcome || isExplained(hooks.diagnostics, *outcome))
    return std::move(*outcome);
  std::string what = isReported(*outcome) ? "a pass failed" : "";
  what += isReported(*outcome) ? (consumeError(std::move(*outcome)), "") : toString(std::move(*outcome));
  return internalError(phase, what, printAll(before));
}

Error Compilation::internalError(Phase phase, const Twine &what, StringRef text) {
  std::string where;
  if (!text.empty()) {
    Expected<std::string> path = writeReproducer(options, hooks.command, phase, text);
    where = path ? "the module before it (without weights) and the command are in " + *path
                 : "no reproducer: " + toString(path.takeError());
  }
  return exitError(exitInternal, "internal error in stage " + getRow(phase).name + ": " + what, where);
}

std::string printModule(mlir::ModuleOp module) {
  std::string text;
  raw_string_ostream os(text);
  module.print(os, mlir::OpPrintingFlags().enableDebugInfo(true, false).useLocalScope(false));
  os << '\n';
  return text;
}

} // namespace ptc
