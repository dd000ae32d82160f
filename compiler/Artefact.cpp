#include "compiler/Artefact.h"
#include "codegen/cpu/CpuKernels.h"
#include "compiler/SaveTemps.h"
#include "compiler/artifact/Header.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"

using namespace llvm;

namespace ptc {

Artefact::Artefact(Compilation &compilation, const OutputPlan &plan) : compilation(compilation), plan(plan) {}

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

static std::string levelNames() {
  return join(map_range(cpu::getCpuLevels(), [](const cpu::CpuLevel &level) { return level.name.str(); }), ", ");
}

Error Artefact::checkOptions() {
  const CompileOptions &options = compilation.options;
  if (options.target != "cpu")
    return exitError(exitUsage, "unknown target '" + options.target + "'", "--target=cpu");
  std::optional<host::Threading> threading = parseThreading(options.threads);
  if (!threading)
    return exitError(exitUsage, "unknown kind of threads '" + options.threads + "'", "--threads=pool, openmp or none");
  std::optional<host::WeightsPlace> place = parsePlace(options.weights);
  if (!place)
    return exitError(exitUsage, "unknown place for weights '" + options.weights + "'", "--weights=embed, file or none");
  for (StringRef name : options.cpu) {
    const cpu::CpuLevel *level = cpu::findCpuLevel(name);
    if (!level)
      return exitError(exitUsage, "unknown CPU level '" + name + "'", levelNames());
    if (!levels.empty() && level->triple != levels.front()->triple)
      return exitError(exitUsage,
                       "CPU levels '" + levels.front()->name + "' and '" + level->name +
                           "' belong to different processors",
                       "compile one library for each");
    if (!llvm::is_contained(levels, level))
      levels.push_back(level);
  }
  if (levels.empty())
    return exitError(exitUsage, "--cpu names no level", levelNames());
  llvm::sort(levels); // rows of one table, from low to high
  for (const cpu::CpuLevel *level : levels) {
    Expected<uint64_t> features = object::runtimeFeatures(level->cpu, level->features);
    if (!features)
      return features.takeError();
    hostInputs.levels.push_back({level->name.str(), *features});
  }
  hostInputs.name = plan.name;
  hostInputs.compiler = "ptc " + compilation.hooks.version;
  hostInputs.threading = *threading;
  hostInputs.weightsPlace = *place;
  if (*place == host::WeightsPlace::File) {
    weightsPath = plan.beside(".weights");
    hostInputs.weightsFile = sys::path::filename(weightsPath).str();
  }
  return Error::success();
}

Error Artefact::writeStage(Phase phase) {
  for (const Output &output : plan.outputs)
    if (output.kind == OutputKind::Mlir && output.phase == phase)
      if (Error error = writeText(output.path, printModule(compilation.getModule())))
        return error;
  return Error::success();
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

Error Artefact::generateCode() {
  InitializeAllTargetInfos();
  InitializeAllTargets();
  InitializeAllTargetMCs();
  InitializeAllAsmPrinters();
  cpu::loadKernelDialects(compilation.getContext());
  Expected<StoredWeights> stored = StoredWeights::collect(compilation.getModule(), compilation.weightFiles);
  if (!stored)
    return stored.takeError();
  weights = std::move(*stored);
  for (auto program : compilation.getModule().getOps<loop::ProgramOp>())
    hostInputs.functions.push_back({program.getSymName().str(), {program}});
  hostInputs.weightBytes = weights->getLayout().bytes;
  hostInputs.weights = weights->replaceable();
  kernels = host::launchedKernels(hostInputs);
  if (Error error = planKernels())
    return error;
  interface = host::describeInterface(hostInputs);

  bool wantsText =
      !compilation.options.saveTemps.empty() || plan.find(OutputKind::Llvm) || plan.find(OutputKind::Assembly);
  KernelRequest request{.kernels = kernels, .levels = levels, .wantsText = wantsText};
  request.progress = [&](size_t done, size_t total) { compilation.hooks.progress("compiling kernels", done, total); };
  size_t failed = 0;
  Expected<std::vector<KernelObject>> compiled = compileKernels(request, compilation.pool, failed);
  if (!compiled) {
    std::string text;
    raw_string_ostream(text) << kernels[failed] << '\n';
    return compilation.internalError(Phase::Codegen, toString(compiled.takeError()), text);
  }
  objects = std::move(*compiled);
  if (Error error = generateHost())
    return error;
  if (Error error = saveKernels())
    return error;
  return writeCodeTexts();
}

Error Artefact::planKernels() {
  for (loop::KernelOp kernel : kernels)
    if (mlir::failed(cpu::planKernel(kernel)))
      return createStringError(inconvertibleErrorCode(), "kernel " + kernel.getSymName() + " cannot be planned");
  return Error::success();
}

Error Artefact::generateHost() {
  auto offsetOf = [&](loop::WeightOp weight) { return weights->offsetOf(weight); };
  hostInputs.weightOffset = offsetOf;
  LLVMContext context;
  Expected<std::unique_ptr<Module>> module = host::emitHostModule(hostInputs, interface, context);
  if (!module)
    return module.takeError();
  if (plan.find(OutputKind::Llvm) || !compilation.options.saveTemps.empty())
    hostText = object::printModule(**module);
  object::TargetLevel baseline; // entry functions run before the level is known
  baseline.triple = levels.front()->triple.str();
  if (Triple(baseline.triple).isAArch64())
    baseline.cpu = baseline.tuneCpu = "generic";
  Expected<SmallVector<char, 0>> object = object::emitObject(**module, baseline, /*optLevel=*/0);
  if (!object)
    return object.takeError();
  hostObject = std::move(*object);
  return Error::success();
}

/// DIR/kernels/NAME/: the kernel's loop text, and its LLVM and assembly text per level.
Error Artefact::saveKernels() {
  const std::string &folder = compilation.options.saveTemps;
  if (folder.empty())
    return Error::success();
  for (loop::KernelOp kernel : kernels) {
    std::string text;
    raw_string_ostream(text) << kernel << '\n';
    if (Error error = saveText(folder, "kernels/" + kernel.getSymName() + "/kernel.mlir", text))
      return error;
  }
  for (const KernelObject &object : objects) {
    std::string stem = "kernels/" + object.kernel + "/" + object.level;
    if (Error error = saveText(folder, stem + ".ll", object.llvmText))
      return error;
    if (Error error = saveText(folder, stem + ".s", object.assembly))
      return error;
  }
  return saveText(folder, "host.ll", hostText);
}

/// --emit=llvm and asm: all modules, one after the other, each under a line that names it.
Error Artefact::writeCodeTexts() {
  for (const Output &output : plan.outputs) {
    bool isLlvm = output.kind == OutputKind::Llvm;
    if (!isLlvm && output.kind != OutputKind::Assembly)
      continue;
    std::string text = isLlvm ? ";;; host program\n" + hostText : "";
    for (const KernelObject &object : objects)
      text += (isLlvm ? ";;; " : "### ") + object.kernel + " for " + object.level + "\n" +
              (isLlvm ? object.llvmText : object.assembly);
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

Error Artefact::link() {
  artifact::LinkInputs inputs{.triple = Triple(levels.front()->triple), .name = plan.name};
  inputs.objects.push_back({"host", StringRef(hostObject.data(), hostObject.size())});
  for (const KernelObject &object : objects)
    inputs.objects.push_back(
        {object.kernel + "." + object.level, StringRef(object.object.data(), object.object.size())});
  inputs.exported = host::typedNames(interface);
  inputs.exported.push_back("ptc_model_v1");
  inputs.weights = weights->getBlobs();
  inputs.layout = &weights->getLayout();
  inputs.embedWeights = hostInputs.weightsPlace == host::WeightsPlace::Embedded;
  inputs.jobs = compilation.pool.getMaxConcurrency();
  if (!weightsPath.empty()) {
    Expected<std::string> staged = outputs.stage(weightsPath);
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
      text = artifact::writeHeader(interface, {.fileName = sys::path::filename(output.path).str(),
                                               .source = sys::path::filename(compilation.options.model).str(),
                                               .staticLibrary = !plan.find(OutputKind::SharedLibrary)});
    } else if (output.kind == OutputKind::Manifest) {
      Expected<artifact::Manifest> manifest = describe(linked);
      if (!manifest)
        return manifest.takeError();
      text = artifact::writeManifest(*manifest);
    } else {
      continue;
    }
    if (Error error = writeText(output.path, text))
      return error;
  }
  return writeDepfile();
}

Error Artefact::writeDepfile() {
  if (plan.depfile.empty())
    return Error::success();
  std::vector<std::string> made, read = {compilation.options.model};
  for (const Output &output : plan.outputs)
    made.push_back(output.path);
  for (const std::string &path : compilation.weightFiles.getPaths())
    if (path != compilation.options.model)
      read.push_back(path);
  return outputs.write(plan.depfile, artifact::writeDepfile(made, read));
}

Error Artefact::writeStats(StringRef text) { return writeText(compilation.options.stats, text); }

Error Artefact::commit() {
  if (Error error = outputs.commit())
    return error;
  for (const auto &[path, text] : pipes)
    outs() << text;
  return Error::success();
}

} // namespace ptc
