#include "compiler/Artefact.h"
#include "codegen/gpu/Assembler.h"
#include "codegen/gpu/CudaLevels.h"
#include "codegen/object/EmitObject.h"
#include "compiler/KernelBenchmark.h"
#include "compiler/Machine.h"
#include "compiler/SaveTemps.h"
#include "compiler/artifact/RuntimeObject.h"
#include "ir/prim/Variants.h"
#include "lowering/onnx/PrimModel.h"
#include "mlir/IR/AsmState.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"

using namespace llvm;

namespace ptc {

Artefact::Artefact(Compilation &compilation, const OutputPlan &plan) : compilation(compilation), plan(plan) {
  for (const codegen::Target *target : compilation.targets)
    parts.emplace_back(*target);
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static std::optional<host::Threading> parseThreading(StringRef text) {
  return StringSwitch<std::optional<host::Threading>>(text)
      .Case("pool", host::Threading::Pool)
      .Case("openmp", host::Threading::OpenMP)
      .Case("none", host::Threading::None)
      .Default(std::nullopt);
}

static std::optional<host::WeightsPlace> parsePlace(StringRef text) {
  return StringSwitch<std::optional<host::WeightsPlace>>(text)
      .Case("embed", host::WeightsPlace::Embedded)
      .Case("file", host::WeightsPlace::File)
      .Case("none", host::WeightsPlace::Absent)
      .Default(std::nullopt);
}

/// The levels that the target's flag names; all where it has none.
static option::List levelsAsked(const CompileOptions &options, const TargetInfo &info) {
  option::List asked(info.levels.begin(), info.levels.end());
  visitOptions(options, [&](option::Role, StringRef, const auto &field, StringRef flags, StringRef, StringRef) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, option::List>)
      if (flags == info.levelFlag)
        asked = field;
  });
  return asked;
}

/// Why there is no level of this machine's device.
static Error adviseNative(const TargetInfo &info) {
  Expected<std::string> level = findCudaLevel();
  std::string reason = level ? "it does not answer" : toString(level.takeError());
  return exitError(exitNoDevice, info.levelFlag + "=native is for this machine's device, and there is none: " + reason,
                   "name the architecture, " + info.levelFlag +
                       "=sm_90a; `ptc doctor` on the machine with the device says which");
}

/// What to name instead of an unknown level: for a library, levels that this ptc has a runtime for.
static std::string listLevels(const codegen::Target &target, bool isLinked) {
  const TargetInfo &info = target.getInfo();
  std::vector<std::string> names;
  for (StringRef name : info.levels) {
    Expected<codegen::Level> level = target.describeLevel(name);
    if (!level)
      consumeError(level.takeError());
    else if (!isLinked || artifact::runtimeObject(artifact::runtimeTriple(Triple(level->triple))))
      names.push_back(level->name);
  }
  if (!info.autoLevels.empty())
    names.push_back("auto");
  names.push_back("native");
  return join(names, ", ");
}

Error Artefact::chooseLevels(KernelSet &set) {
  const codegen::Target &target = set.target;
  const TargetInfo &info = target.getInfo();
  bool isLinked = plan.lastPhase() == Phase::Link;
  SmallVector<const StringRef *> rows;
  option::List names;
  for (const std::string &name : levelsAsked(compilation.options, info)) {
    if (name != "auto" || info.autoLevels.empty()) {
      names.push_back(name);
      continue;
    }
    set.choosesLevels = true;
    names.insert(names.end(), info.autoLevels.begin(), info.autoLevels.end());
  }
  for (StringRef name : names) {
    const StringRef *row = llvm::find(info.levels, name);
    if (name == "native" && info.runsOnDevice)
      return adviseNative(info);
    if (row == info.levels.end())
      return exitError(exitUsage, info.levelFlag + ": unknown level '" + name + "'", listLevels(target, isLinked));
    if (!llvm::is_contained(rows, row))
      rows.push_back(row);
  }
  if (rows.empty())
    return exitError(exitUsage, info.levelFlag + " names no level", listLevels(target, isLinked));
  if (info.oneLevelText && plan.find(OutputKind::Assembly) && rows.size() > 1)
    return exitError(exitUsage, info.levelFlag + ": text of --target=" + info.name + " is for one level",
                     "compile once for each");
  llvm::sort(rows); // of one table, from low to high
  for (const StringRef *row : rows) {
    Expected<codegen::Level> level = target.describeLevel(*row);
    if (!level)
      return level.takeError();
    // The first part has levels by now, be it this one or one in front of it.
    const codegen::Level &first = parts.front().levels.empty() ? *level : parts.front().levels.front();
    if (level->triple != first.triple)
      return exitError(exitUsage,
                       "levels '" + first.name + "' and '" + level->name + "' belong to different processors",
                       "compile one library for each");
    set.levels.push_back(std::move(*level));
  }
  StringRef processor = artifact::runtimeTriple(Triple(set.levels.front().triple));
  if (isLinked && !artifact::runtimeObject(processor))
    return exitError(exitTarget,
                     info.levelFlag + "=" + set.levels.front().name + ": this ptc has no runtime for " + processor +
                         ", which a library needs",
                     "--emit=llvm or --emit=asm for the code alone");
  return Error::success();
}

/// What the kernels want beyond the usual levels.
Error Artefact::addSpecialLevels(KernelSet &set) {
  llvm::SetVector<StringRef> names;
  for (loop::KernelOp kernel : set.kernels)
    if (set.choosesLevels)
      names.insert_range(set.target.findSpecialLevels(kernel));
  for (StringRef name : names) {
    if (llvm::any_of(set.levels, [&](const codegen::Level &level) { return level.name == name; }))
      continue;
    Expected<codegen::Level> level = set.target.describeLevel(name);
    if (!level)
      return level.takeError();
    set.levels.push_back(std::move(*level));
  }
  ArrayRef<StringRef> order = set.target.getInfo().levels; // from low to high: a machine takes the last that it has
  llvm::sort(set.levels, [&](const codegen::Level &a, const codegen::Level &b) {
    return llvm::find(order, a.name) < llvm::find(order, b.name);
  });
  return Error::success();
}

Error Artefact::checkOptions() {
  for (const CompiledTarget &part : parts)
    for (const Output &output : plan.outputs) {
      const TargetInfo &info = part.target.getInfo();
      if (!OutputPlan::isStage(output.kind) && !llvm::is_contained(info.outputs, output.name))
        return exitError(exitUsage, "--target=" + info.name + " does not write '" + output.name + "'",
                         "--emit=" + join(info.outputs, ", ") + ", mlir:STAGE, onnx:prim");
    }
  if (plan.find(OutputKind::Onnx)) // targets have their own ways with quantised products
    if (Error error = requireOneTarget(compilation.options, "--emit=onnx:prim"))
      return error;
  if (plan.find(OutputKind::Onnx) && !compilation.options.buckets.empty())
    return exitError(exitUsage,
                     "--bucket " + compilation.options.buckets.front() + ": a model of primitives has no variants",
                     "--emit=so, for a library with variants");
  if (compilation.options.optLevel > 3)
    return exitError(exitUsage, "unknown optimisation level -O" + Twine(compilation.options.optLevel), "-O0 to -O3");
  if (Error error = checkMode())
    return error;
  if (compilation.options.fp != "strict" && compilation.options.fp != "contract")
    return exitError(exitUsage, "unknown rule for floating point '" + compilation.options.fp + "'",
                     "--fp=strict or contract");
  const std::string &autocast = compilation.options.autocast;
  if (autocast != "none" && autocast != "bf16" && autocast != "f16")
    return exitError(exitUsage, "unknown type '" + autocast + "' of --autocast", "--autocast=bf16, f16 or none");
  if (autocast == "none" && !compilation.options.autocastKeep.empty())
    return exitError(exitUsage,
                     "--autocast-keep " + compilation.options.autocastKeep.front() + ": there is no --autocast",
                     "--autocast=bf16 or f16, or leave it out");
  for (CompiledTarget &part : parts)
    if (Error error = checkTargetOptions(part))
      return error;
  return checkLibraryOptions();
}

Error Artefact::checkTargetOptions(CompiledTarget &part) {
  const TargetInfo &info = part.target.getInfo();
  if (compilation.options.debugInfo && (info.runsOnDevice || !llvm::is_contained(info.outputs, "so")))
    return exitError(exitUsage, "--target=" + info.name + " has no --debug-info", "--target=cpu");
  if (!compilation.options.taps.empty() && !llvm::is_contained(info.outputs, "so"))
    return exitError(exitUsage, "--target=" + info.name + " has no --tap", "a target that makes libraries");
  if (Error error = chooseLevels(part))
    return error;
  if (const codegen::Target *host = compilation.findHost(part.target))
    if (Error error = chooseLevels(part.onHost.emplace(KernelSet{.target = *host, .isBeside = true})))
      return error;
  return info.runsOnDevice ? findAssembler(part) : Error::success();
}

Error Artefact::findAssembler(CompiledTarget &part) {
  StringRef asked = compilation.options.assembler;
  if (asked == "none")
    return Error::success();
  if (asked == "auto") {
    part.assembler = gpu::findAssembler();
  } else {
    ErrorOr<std::string> path = sys::findProgramByName(asked);
    if (!path || !sys::fs::can_execute(*path))
      return exitError(exitUsage, "--ptxas=" + asked + " is no program", "ptxas or its path, auto or none");
    part.assembler = *path;
  }
  auto isMachineCode = [](const codegen::Level &level) { return !gpu::isText(level.name); };
  auto machineCode = llvm::find_if(part.levels, isMachineCode);
  if (!part.assembler.empty() || machineCode == part.levels.end() || plan.lastPhase() != Phase::Link)
    return Error::success();
  DiagnosticRecord record{.severity = DiagnosticRecord::Severity::Warning, .subject = compilation.options.model};
  record.message = "there is no ptxas here: code for " + machineCode->name +
                   " is PTX, which the driver compiles when a model is created";
  record.helps.push_back("`ptc doctor` says where ptxas is looked for; --ptxas=none if PTX is meant");
  compilation.hooks.diagnostics.report(std::move(record));
  return Error::success();
}

Error Artefact::checkMode() {
  StringRef mode = compilation.options.mode, tuneFile = compilation.options.tuneFile;
  if (mode != "default" && mode != "reduce-overhead" && mode != "max-autotune")
    return exitError(exitUsage, "unknown mode '" + mode + "'", "--mode is default, reduce-overhead or max-autotune");
  if (mode == "max-autotune" && tuneFile.empty()) // `ptc compile` has measured by now
    return exitError(exitUsage, "--mode=max-autotune needs a --tune-file here",
                     "`ptc tune " + compilation.options.model + "` writes one");
  if (tuneFile.empty())
    return Error::success();
  Expected<Tuning> read = readTuning(tuneFile);
  if (!read)
    return read.takeError();
  tuning = std::move(*read);
  if (llvm::none_of(parts, [&](const CompiledTarget &part) {
        return llvm::is_contained(part.target.getInfo().levels, tuning->level);
      }))
    return exitError(exitUsage,
                     "'" + tuneFile + "' was measured at level '" + tuning->level +
                         "', which --target=" + compilation.options.target + " does not have",
                     "`ptc targets` lists levels; `ptc tune` writes a file for one of this machine's");
  return Error::success();
}

Error Artefact::checkLibraryOptions() {
  const CompileOptions &options = compilation.options;
  std::optional<host::Threading> threading = parseThreading(options.threads);
  if (!threading)
    return exitError(exitUsage, "unknown kind of threads '" + options.threads + "'", "--threads=pool, openmp or none");
  std::optional<host::WeightsPlace> place = parsePlace(options.weights);
  if (!place)
    return exitError(exitUsage, "unknown place for weights '" + options.weights + "'", "--weights=embed, file or none");
  for (CompiledTarget &part : parts) {
    part.inputs.name = plan.name;
    part.inputs.compiler = "ptc " + compilation.hooks.version;
    part.inputs.threading = *threading;
    part.inputs.weightsPlace = *place;
    part.inputs.weightsFile = sys::path::filename(plan.weights).str();
  }
  return Error::success();
}

Error Artefact::writeStage(Phase phase) {
  for (const Output &output : plan.outputs) {
    if (!OutputPlan::isStage(output.kind) || output.phase != phase)
      continue;
    Error error =
        output.kind == OutputKind::Onnx ? writePrims(output.path) : writeText(output.path, compilation.printModules());
    if (error)
      return error;
  }
  return Error::success();
}

/// --emit=onnx:STAGE: a model of primitives, and beside it a file of the weights that a protobuf cannot hold.
Error Artefact::writePrims(StringRef path) {
  std::string dataPath = path.str() + ".data";
  Expected<PrimModel> model = writePrimModel(compilation.getModule(), compilation.weightFiles,
                                             sys::path::filename(dataPath), compilation.hooks.version);
  if (!model)
    return model.takeError();
  if (!model->beside.empty())
    if (Error error = writePrimWeights(dataPath, *model))
      return error;
  return outputs.write(path, model->bytes);
}

Error Artefact::writePrimWeights(StringRef path, const PrimModel &model) {
  Expected<std::string> staged = outputs.stage(path);
  if (!staged)
    return staged.takeError();
  std::error_code failed;
  raw_fd_ostream os(*staged, failed);
  for (const auto &[offset, ref] : model.beside) {
    if (failed)
      break;
    Expected<ArrayRef<char>> bytes = compilation.weightFiles.getBytes(ref);
    if (!bytes)
      return bytes.takeError();
    os.write_zeros(offset - os.tell());
    os.write(bytes->data(), bytes->size());
    failed = os.error();
  }
  os.close();
  failed = failed ? failed : os.error();
  os.clear_error();
  return failed ? artifact::cannotWrite(path, failed) : Error::success();
}

Error Artefact::writeText(StringRef path, StringRef text) {
  if (path != "-")
    return outputs.write(path, text);
  pipes.emplace_back(path, text);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// The module's programs, each with its variants behind which it is the last.
static std::vector<host::HostFunction> functionsOf(mlir::ModuleOp module) {
  std::vector<host::HostFunction> functions;
  for (auto program : module.getOps<loop::ProgramOp>())
    if (!program->hasAttr(prim::variantOfAttr))
      functions.push_back({program.getSymName().str(), {program}});
  for (auto program : module.getOps<loop::ProgramOp>())
    if (auto general = program->getAttrOfType<mlir::FlatSymbolRefAttr>(prim::variantOfAttr)) {
      auto function = llvm::find_if(functions, [&](const auto &f) { return f.name == general.getValue(); });
      function->variants.insert(std::prev(function->variants.end()), program);
    }
  return functions;
}

Error Artefact::generateCode() {
  InitializeAllTargetInfos();
  InitializeAllTargets();
  InitializeAllTargetMCs();
  InitializeAllAsmPrinters();
  SmallVector<mlir::ModuleOp> modules;
  for (auto [index, part] : llvm::enumerate(parts))
    modules.push_back(part.module = compilation.getModule(index));
  Expected<StoredWeights> stored = StoredWeights::collect(
      modules, compilation.weightFiles, parts.front().inputs.weightsPlace != host::WeightsPlace::Absent);
  if (!stored)
    return stored.takeError();
  weights = std::move(*stored);
  for (auto [index, part] : llvm::enumerate(parts)) {
    part.inputs.weightBytes = weights->getLayout().bytes;
    std::tie(part.inputs.weightsBegin, part.inputs.weightsEnd) = weights->rangeOf(index);
    part.inputs.weights = weights->replaceable(index);
    if (Error error = generateKernels(part))
      return error;
  }
  // One kind for the library, which ends its threads; a device's launches have none.
  if (llvm::all_of(parts,
                   [](const CompiledTarget &part) { return part.inputs.device && part.inputs.hostLevels.empty(); }))
    for (CompiledTarget &part : parts)
      part.inputs.threading = host::Threading::None;
  interface = host::describeInterface(parts.front().inputs);
  if (plan.needsHost)
    if (Error error = generateHost())
      return error;
  for (const CompiledTarget &part : parts)
    for (const KernelSet *set : part.getSets())
      if (Error error = saveKernels(part, *set))
        return error;
  if (plan.needsHost && !compilation.options.saveTemps.empty())
    if (Error error = saveText(compilation.options.saveTemps, "host.ll", hostText))
      return error;
  return writeCodeTexts();
}

static std::vector<host::Level> levelsOf(const KernelSet &set) {
  std::vector<host::Level> levels;
  for (const codegen::Level &level : set.levels)
    levels.push_back({level.name, level.features});
  for (auto [index, code] : llvm::enumerate(set.codes))
    if (!code.sharedWith.empty())
      levels[index % levels.size()].shared[code.kernel] = code.sharedWith;
  return levels;
}

Error Artefact::generateKernels(CompiledTarget &part) {
  part.inputs.functions = functionsOf(part.module);
  for (auto [kernel, entry] : llvm::zip_equal(host::launchedKernels(part.inputs), host::entryNames(part.inputs))) {
    KernelSet &set = part.onHost && kernel.getOnHost() ? *part.onHost : part;
    set.kernels.push_back(kernel);
    if (set.target.getInfo().runsOnDevice)
      set.entries.push_back(entry);
  }
  if (Error error = planKernels(part))
    return error;
  if (compilation.options.debugInfo)
    if (Error error = writeListing(part))
      return error;
  if (Error error = compileSet(part))
    return error;
  part.inputs.levels = levelsOf(part);
  if (part.onHost && !part.onHost->kernels.empty()) {
    if (Error error = planKernels(*part.onHost))
      return error;
    if (Error error = compileSet(*part.onHost))
      return error;
    part.inputs.hostLevels = levelsOf(*part.onHost);
  }
  describeDeviceCode(part);
  return Error::success();
}

/// What it says, and whether it lies outside of ptc: in an assembler that does not fit, say.
static std::pair<std::string, bool> describeFailure(Error error) {
  bool isOutside = false;
  std::string what;
  handleAllErrors(std::move(error), [&](const ErrorInfoBase &info) {
    isOutside = info.convertToErrorCode() != inconvertibleErrorCode();
    what = info.message();
  });
  return {what, isOutside};
}

Error Artefact::compileSet(KernelSet &set) {
  const CompileOptions &asked = compilation.options;
  KernelRequest request{
      .target = set.target, .kernels = set.kernels, .levels = set.levels, .isTraced = !asked.timeTrace.empty()};
  request.entries = set.entries;
  request.options.optLevel = asked.optLevel;
  request.options.contracts = asked.fp != "strict";
  request.options.listing = asked.debugInfo ? listingName() : "";
  request.options.wantsText =
      !asked.saveTemps.empty() || plan.find(OutputKind::Llvm) || plan.find(OutputKind::Assembly);
  request.options.wantsObject = plan.lastPhase() == Phase::Link;
  request.options.assembler = set.assembler;
  request.progress = [&](size_t done, size_t total) { compilation.hooks.progress("compiling kernels", done, total); };
  size_t failed = 0;
  Expected<std::vector<codegen::KernelCode>> compiled = compileKernels(request, compilation.pool, failed);
  if (!compiled) {
    auto [what, isOutside] = describeFailure(compiled.takeError());
    if (isOutside)
      return exitError(exitTarget, what,
                       "--ptxas=PATH names another assembler; with --ptxas=none there is none, and the "
                       "driver compiles PTX when a model is created");
    std::string text;
    raw_string_ostream(text) << set.kernels[failed] << '\n';
    return compilation.internalError(Phase::Codegen, what, text);
  }
  set.codes = std::move(*compiled);
  return Error::success();
}

/// Kernels of a device are data of the host's module, in the order of its table, in which those that run on the host
/// have none.
void Artefact::describeDeviceCode(CompiledTarget &part) {
  if (!part.target.getInfo().runsOnDevice)
    return;
  size_t levels = part.levels.size();
  host::DeviceCode &device = part.inputs.device.emplace();
  device.recordsGraphs = compilation.options.mode != "default";
  device.images.resize(levels);
  device.kernels.resize(levels);
  size_t next = 0;
  for (loop::KernelOp kernel : host::launchedKernels(part.inputs)) {
    bool isHere = next < part.kernels.size() && part.kernels[next] == kernel;
    for (size_t level = 0; level < levels; ++level) {
      const codegen::KernelCode *code = isHere ? &part.codes[next * levels + level] : nullptr;
      device.kernels[level].push_back(code && code->launch ? *code->launch : codegen::DeviceLaunch());
      device.images[level].push_back(code ? StringRef(code->object.data(), code->object.size()) : StringRef());
    }
    next += isHere;
  }
}

/// What was measured stands in the place of what the planner of the target that has the level chooses.
Error Artefact::useTuning(KernelSet &set) {
  StringRef file = compilation.options.tuneFile;
  const TargetInfo &info = set.target.getInfo();
  if (!llvm::is_contained(info.levels, tuning->level))
    return Error::success();
  if (llvm::none_of(set.levels, [&](const codegen::Level &level) { return level.name == tuning->level; }))
    return exitError(exitUsage,
                     "'" + file + "' was measured at level " + tuning->level + ", which is not in the library",
                     info.levelFlag + "=" + tuning->level + ", or a file measured at one of its levels");
  auto warn = [&](std::string message, std::string help) {
    DiagnosticRecord record{.severity = DiagnosticRecord::Severity::Warning, .subject = file.str()};
    record.message = std::move(message);
    record.helps.push_back(std::move(help));
    compilation.hooks.diagnostics.report(std::move(record));
  };
  llvm::ArrayRef<llvm::StringLiteral> known = set.target.getTunedNames();
  if (std::vector<std::string> names = findUnknownNumbers(*tuning, known); !names.empty())
    warn("numbers that this ptc does not know are left out: " + llvm::join(names, ", "),
         "those for " + info.name.str() + " are " + llvm::join(known, ", "));
  if (size_t unknown = applyTuning(*tuning, set.kernels))
    warn(formatv("{0} of {1} kernels are not in it and keep the sizes that ptc estimates to be best", unknown,
                 set.kernels.size()),
         "it was written for another model, other flags or by another ptc: run `ptc tune " + compilation.options.model +
             "` again");
  return Error::success();
}

Error Artefact::planKernels(KernelSet &set) {
  set.target.loadDialects(compilation.getContext());
  if (Error error = addSpecialLevels(set))
    return error;
  if (tuning && !set.isBeside)
    if (Error error = useTuning(set))
      return error;
  for (loop::KernelOp kernel : set.kernels)
    if (mlir::failed(set.target.planKernel(kernel)))
      return createStringError(inconvertibleErrorCode(), "kernel " + kernel.getSymName() + " cannot be planned");
  return Error::success();
}

std::string Artefact::listingName() const {
  return plan.listing.empty() ? plan.name + ".debug.mlir" : sys::path::filename(plan.listing).str();
}

/// --debug-info: the planned module as text, whose lines are the kernels' locations from here on.
Error Artefact::writeListing(CompiledTarget &part) {
  part.inputs.namesLaunches = true;
  mlir::AsmState::LocationMap places;
  mlir::AsmState state(part.module, mlir::OpPrintingFlags(), &places);
  std::string text;
  raw_string_ostream os(text);
  part.module.print(os, state);
  mlir::StringAttr file = mlir::StringAttr::get(&compilation.getContext(), listingName());
  for (loop::KernelOp kernel : part.kernels)
    kernel->walk([&](mlir::Operation *op) {
      auto place = places.find(op);
      if (place != places.end())
        op->setLoc(mlir::FileLineColLoc::get(file, place->second.first, place->second.second));
    });
  return plan.listing.empty() ? Error::success() : outputs.write(plan.listing, text + "\n");
}

Error Artefact::generateHost() {
  auto offsetOf = [&](mlir::Operation *op) { return weights->offsetOf(op); };
  SmallVector<const host::HostInputs *> inputs;
  for (CompiledTarget &part : parts) {
    part.inputs.storedOffset = offsetOf;
    inputs.push_back(&part.inputs);
  }
  LLVMContext context;
  Expected<std::unique_ptr<Module>> module = host::emitHostModule(inputs, interface, context);
  if (!module)
    return module.takeError();
  if (plan.find(OutputKind::Llvm) || !compilation.options.saveTemps.empty())
    hostText = object::printModule(**module);
  object::TargetLevel baseline; // entry functions run before the level is known
  baseline.triple = parts.front().levels.front().triple;
  if (Triple(baseline.triple).isAArch64())
    baseline.cpu = baseline.tuneCpu = "generic";
  Expected<SmallVector<char, 0>> object = object::emitObject(**module, baseline, /*optLevel=*/0);
  if (!object)
    return object.takeError();
  hostObject = std::move(*object);
  return Error::success();
}

/// DIR/kernels/NAME/bench.c, for the first launch of each kernel.
Error Artefact::saveBenchmarks(const CompiledTarget &part) {
  llvm::StringSet<> seen;
  for (auto program : mlir::ModuleOp(part.module).getOps<loop::ProgramOp>()) {
    SymbolValues hints = prim::getSymbolHints(program.getSymbols());
    std::vector<std::pair<std::string, std::string>> texts;
    program.walk([&](loop::LaunchOp launch) {
      loop::KernelOp kernel =
          *llvm::find_if(part.kernels, [&](auto k) { return k.getSymName() == launch.getKernel(); });
      if (seen.insert(launch.getKernel()).second)
        texts.emplace_back(launch.getKernel(), writeKernelBenchmark(kernel, launch, hints, part.inputs.levels));
    });
    for (const auto &[kernel, text] : texts)
      if (Error error = saveText(compilation.options.saveTemps, "kernels/" + kernel + "/bench.c", text))
        return error;
  }
  return Error::success();
}

/// DIR/kernels/NAME/: the kernel's loop text, and its LLVM and assembly text per level.
Error Artefact::saveKernels(const CompiledTarget &part, const KernelSet &set) {
  const std::string &folder = compilation.options.saveTemps;
  if (folder.empty())
    return Error::success();
  for (loop::KernelOp kernel : set.kernels) {
    std::string text;
    raw_string_ostream(text) << kernel << '\n';
    if (Error error = saveText(folder, "kernels/" + kernel.getSymName() + "/kernel.mlir", text))
      return error;
  }
  for (const codegen::KernelCode &code : set.codes) {
    if (!code.sharedWith.empty())
      continue;
    std::string stem = "kernels/" + code.kernel + "/" + code.level;
    if (Error error = saveText(folder, stem + ".ll", code.llvmText))
      return error;
    if (Error error = saveText(folder, stem + set.target.getInfo().assemblySuffix, code.assembly))
      return error;
  }
  return plan.needsHost && !part.inputs.device ? saveBenchmarks(part) : Error::success();
}

/// --emit=llvm: all modules, one after the other, each under a line that names it. --emit=asm: as the target joins
/// them.
Error Artefact::writeCodeTexts() {
  for (const Output &output : plan.outputs) {
    std::string text;
    if (output.kind == OutputKind::Assembly) {
      for (const CompiledTarget &part : parts)
        text += part.target.joinAssembly(part.codes);
    } else if (output.kind == OutputKind::Llvm) {
      text = plan.needsHost ? ";;; host program\n" + hostText : "";
      for (const CompiledTarget &part : parts)
        for (const KernelSet *set : part.getSets())
          for (const codegen::KernelCode &code : set->codes)
            if (code.sharedWith.empty())
              text += ";;; " + code.kernel + " for " + code.level + "\n" + code.llvmText;
    } else {
      continue;
    }
    if (Error error = writeText(output.path, text))
      return error;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

Expected<artifact::LinkResult> Artefact::linkOutput(const Output &output, artifact::LinkInputs &inputs) {
  switch (output.kind) {
  case OutputKind::SharedLibrary:
    return artifact::linkSharedLibrary(outputs, output.path, inputs);
  case OutputKind::StaticLibrary:
    return artifact::linkStaticLibrary(outputs, output.path, inputs);
  case OutputKind::Object:
    return artifact::linkObject(outputs, output.path, inputs);
  default:
    return linked;
  }
}

artifact::HeaderOptions Artefact::headerOptions(const Output &output) const {
  const Output *cHeader = plan.find(OutputKind::Header);
  return {.fileName = sys::path::filename(output.path).str(),
          .source = sys::path::filename(compilation.options.model).str(),
          .staticLibrary = !plan.find(OutputKind::SharedLibrary),
          .cHeader = sys::path::filename(cHeader ? cHeader->path : plan.beside(".h")).str()};
}

/// The object of each function that launches call; `named` holds those that are copies under the names of launches.
Error Artefact::addKernels(const CompiledTarget &part, const KernelSet &set, artifact::LinkInputs &inputs,
                           std::deque<SmallVector<char, 0>> &named) {
  inputs.keepsSymbols |= part.inputs.namesLaunches;
  size_t levels = set.levels.size();
  DenseMap<mlir::Operation *, size_t> rows;
  for (auto [row, kernel] : llvm::enumerate(set.kernels))
    rows[kernel] = row;
  host::KernelTable table = host::tabulateKernels(part.inputs);
  for (const host::KernelEntry &entry : table.entries)
    for (size_t level = 0; level < levels && rows.contains(entry.kernel); ++level) {
      const codegen::KernelCode &code = set.codes[rows.lookup(entry.kernel) * levels + level];
      if (!code.sharedWith.empty())
        continue;
      StringRef object(code.object.data(), code.object.size());
      std::string symbol = entry.symbol(code.level), shared = host::kernelSymbol(code.kernel, code.level);
      if (symbol != shared) {
        Expected<SmallVector<char, 0>> copy = artifact::renameSymbol(object, shared, symbol);
        if (!copy)
          return copy.takeError();
        named.push_back(std::move(*copy));
        object = {named.back().data(), named.back().size()};
      }
      inputs.objects.push_back({symbol, object});
    }
  return Error::success();
}

Error Artefact::link() {
  artifact::LinkInputs inputs{.triple = Triple(parts.front().levels.front().triple), .name = plan.name};
  inputs.objects.push_back({"host", StringRef(hostObject.data(), hostObject.size())});
  std::deque<SmallVector<char, 0>> named;
  for (const CompiledTarget &part : parts)
    for (const KernelSet *set : part.getSets())
      if (!set->target.getInfo().runsOnDevice)
        if (Error error = addKernels(part, *set, inputs, named))
          return error;
  inputs.exported = host::typedNames(interface);
  inputs.exported.push_back("ptc_model_v1");
  inputs.weights = weights->getBlobs();
  inputs.layout = &weights->getLayout();
  inputs.embedWeights = parts.front().inputs.weightsPlace == host::WeightsPlace::Embedded;
  inputs.jobs = compilation.pool.getMaxConcurrency();
  if (!plan.weights.empty()) {
    Expected<std::string> staged = outputs.stage(plan.weights);
    if (!staged)
      return staged.takeError();
    Expected<artifact::Digest> digest =
        artifact::writeWeightsFile(*staged, inputs.weights, *inputs.layout, inputs.jobs);
    if (!digest)
      return digest.takeError();
    inputs.weightsDigest = *digest;
  }
  for (const Output &output : plan.outputs) {
    Expected<artifact::LinkResult> result = linkOutput(output, inputs);
    if (!result)
      return result.takeError();
    linked = std::move(*result);
  }
  for (const Output &output : plan.outputs) {
    std::string text;
    if (output.kind == OutputKind::Header) {
      text = artifact::writeHeader(interface, headerOptions(output));
    } else if (output.kind == OutputKind::CppHeader) {
      text = artifact::writeCppHeader(interface, headerOptions(output));
    } else if (output.kind == OutputKind::Manifest) {
      Expected<artifact::Manifest> manifest = describe();
      if (!manifest)
        return manifest.takeError();
      text = artifact::writeManifest(*manifest);
    } else {
      continue;
    }
    if (Error error = writeText(output.path, text))
      return error;
  }
  return Error::success();
}

Error Artefact::writeDepfile() {
  if (plan.depfile.empty())
    return Error::success();
  std::vector<std::string> made;
  if (!compilation.options.depfileTarget.empty()) {
    made.push_back(compilation.options.depfileTarget);
  } else {
    for (const Output &output : plan.outputs)
      made.push_back(output.path);
    if (plan.writesWeights())
      made.push_back(plan.weights);
    if (!plan.listing.empty())
      made.push_back(plan.listing);
  }
  return outputs.write(plan.depfile, artifact::writeDepfile(made, compilation.filesRead));
}

Error Artefact::writeStats(StringRef text) { return writeText(compilation.options.stats, text); }
Error Artefact::writeTimeTrace(StringRef text) { return writeText(compilation.options.timeTrace, text); }

Error Artefact::commit() {
  if (Error error = writeDepfile())
    return error;
  if (Error error = outputs.commit(plan.outputs.front().path))
    return error;
  for (const auto &[path, text] : pipes)
    outs() << text;
  return Error::success();
}

} // namespace ptc
