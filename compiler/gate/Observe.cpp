//===- Observe.cpp - a model as it compiles now ---------------------------===//
//
// Everything static is in the manifest, but for two things. Refusals are remarks of the scheduler, which are collected
// while it works. And whether the same input gives the same bytes takes a second compile: with one thread where the
// first had many, since the order of threads is the likeliest reason for a difference. Objects are compared, kernel by
// kernel, and not recorded: their bytes change with any version of LLVM, while what a gate is about (size, registers,
// loops) is recorded as such.
//
// A refused pair counts if its nodes end up apart: fusion asks again after each change, and often fuses what it refused
// at first.
//
//===----------------------------------------------------------------------===//
#include "compiler/gate/Observe.h"
#include "compiler/artifact/Weights.h"
#include "compiler/gate/Compare.h"
#include "compiler/schedule/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace llvm;

namespace ptc::gate {

namespace {
/// The scheduler's refusals of one compile: the last reason for each pair of producer and consumer.
struct RefusedPairs {
  MapVector<std::pair<std::string, std::string>, std::string, std::map<std::pair<std::string, std::string>, unsigned>>
      reasons;

  void add(const DiagnosticRecord &remark) {
    if (remark.parts.size() == 3 && remark.parts[0] == refusedFusion)
      reasons[{remark.parts[1], remark.node.empty() ? remark.output : remark.node}] = remark.parts[2];
  }
};
} // namespace

/// A node may be refused itself: what it became in several parts. Those are together if one launch holds all of it.
static bool areTogether(ArrayRef<artifact::KernelEntry> kernels, const std::pair<std::string, std::string> &pair) {
  unsigned holdingBoth = 0, holdingFirst = 0;
  for (const artifact::KernelEntry &kernel : kernels)
    for (const std::vector<std::string> &nodes : kernel.launches)
      if (is_contained(nodes, pair.first)) {
        ++holdingFirst;
        holdingBoth += is_contained(nodes, pair.second);
      }
  return pair.first == pair.second ? holdingFirst <= 1 : holdingBoth > 0;
}

static std::vector<Refusal> refusalsOf(const RefusedPairs &refused, ArrayRef<artifact::KernelEntry> kernels) {
  std::vector<Refusal> refusals;
  for (const auto &[pair, reason] : refused.reasons) {
    if (areTogether(kernels, pair))
      continue;
    auto found = find_if(refusals, [&](const Refusal &refusal) { return refusal.reason == reason; });
    if (found == refusals.end())
      found = refusals.insert(refusals.end(), Refusal{.reason = reason});
    found->pairs.push_back(pair);
  }
  return refusals;
}

/// "conv_relu" of "conv_relu_3f9a03b1c2d4".
static std::string withoutDigest(StringRef name) {
  auto [stem, digest] = name.rsplit('_');
  constexpr size_t digits = 12;
  bool isDigest = digest.size() == digits && all_of(digest, [](char c) { return isHexDigit(c); });
  return (isDigest ? stem : name).str();
}

/// As it would be read back: a check compares with what was read, where names that are no UTF-8 have been mended.
static Expected<Baseline> baselineOf(const CompileOptions &options, const artifact::Manifest &manifest,
                                     const RefusedPairs &refused) {
  Baseline baseline{.model = sys::path::filename(options.model).str(),
                    .modelDigest = manifest.modelDigest,
                    .target = manifest.target,
                    .levels = manifest.levels,
                    .flags = manifest.flags,
                    .kernels = manifest.kernels,
                    .memory = manifest.memory,
                    .buffers = manifest.buffers,
                    .weightBytes = int64_t(manifest.weights.bytes)};
  json::Array functions;
  for (const host::Function &function : manifest.interface.functions)
    functions.push_back(artifact::describeFunction(function));
  baseline.interface = flattenInterface(functions);
  for (artifact::KernelEntry &kernel : baseline.kernels) {
    kernel.name = withoutDigest(kernel.name);
    llvm::sort(kernel.code, [](const auto &a, const auto &b) { return a.level < b.level; });
  }
  baseline.refusals = refusalsOf(refused, baseline.kernels);
  return parseBaseline(writeBaseline(baseline), options.model);
}

static std::vector<Finding> compareObjects(const CompileRecord &first, const CompileRecord &second) {
  std::vector<Finding> findings;
  for (auto [one, other] : zip(first.code, second.code))
    if (one != other)
      findings.push_back(
          {.kind = FindingKind::Reproducibility,
           .direction = Direction::Regression,
           .subject = "kernel " + one.first,
           .what = "a second compile of the same model, with another number of threads, wrote other bytes"});
  if (first.code.size() != second.code.size())
    findings.push_back(findingOf(FindingKind::Reproducibility, "model", "kernels of a second compile",
                                 int64_t(first.code.size()), int64_t(second.code.size())));
  return findings;
}

Expected<Observed> observe(const ObserveRequest &request, const CompileHooks &hooks) {
  CompileOptions options = request.options;
  if (Error error = requireOneTarget(options, "a baseline"))
    return std::move(error);
  const codegen::Target *target = codegen::findTarget(hooks.targets, options.target);
  if (!target)
    return exitError(exitUsage, "unknown target '" + options.target + "'",
                     "--target=" + codegen::targetNames(hooks.targets));
  bool hasLibraries = is_contained(target->getInfo().outputs, "so");
  // A baseline must not depend on whether the machine has a device.
  bool makesLibrary = hasLibraries && !target->getInfo().runsOnDevice && request.wantsLibrary;
  SmallString<128> output(request.folder);
  sys::path::append(output, stemOf(options.model) + (makesLibrary ? ".so" : hasLibraries ? ".json" : ".out"));
  options.output = output.str().str();
  options.emit = {makesLibrary ? "so" : hasLibraries ? "json" : target->getInfo().outputs.front().str()};
  options.remarks = true;

  RefusedPairs refused;
  CompileRecord first, second;
  Diagnostics own(nulls(), {.format = DiagnosticFormat::Text, .color = false, .remarks = true}, options.model);
  own.onRemark = [&](const DiagnosticRecord &remark) { refused.add(remark); };
  CompileHooks quiet{.diagnostics = own,
                     .progress = hooks.progress,
                     .log = hooks.log,
                     .version = hooks.version,
                     .command = hooks.command,
                     .targets = hooks.targets,
                     .changePasses = hooks.changePasses};
  Error error = compile(options, quiet, &first);
  for (const DiagnosticRecord &record : own.getRecords())
    hooks.diagnostics.report(record);
  if (error)
    return std::move(error);
  Expected<Baseline> baseline = baselineOf(options, first.manifest, refused);
  if (!baseline)
    return baseline.takeError();
  Observed observed{.baseline = std::move(*baseline)};
  if (makesLibrary)
    observed.library = options.output;
  if (!request.twice)
    return observed;
  options.jobs = options.jobs == 1 ? 2 : 1;
  if (makesLibrary) { // code alone: a library with its weights need not be written again
    options.emit = {"json"};
    sys::path::replace_extension(output, "json"); // the same stem: symbols are named after it
    options.output = output.str().str();
  }
  if (Error again = compile(options, quiet, &second))
    return std::move(again);
  observed.unstable = compareObjects(first, second);
  return observed;
}

Expected<std::string> digestOfModel(StringRef path) {
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return exitError(exitFile, "cannot read '" + path + "': " + file.getError().message());
  StringRef bytes = (*file)->getBuffer();
  return toHex(artifact::digestOf({bytes.data(), bytes.size()}, /*jobs=*/1), /*LowerCase=*/true);
}

} // namespace ptc::gate
