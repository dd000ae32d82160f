// What an artefact is made of, for the manifest and --stats: read off the planned module and the objects.
#include "compiler/Artefact.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

static artifact::Amount amountOf(Expr expr, const SymbolValues &hints) {
  if (!expr)
    return {"0", 0};
  return {expr.str(), expr.evaluate(hints).value_or(0)};
}

/// A kernel's expression in terms of the launching program's symbols.
static Expr atLaunch(Expr expr, loop::KernelOp kernel, loop::LaunchOp launch) {
  if (!expr)
    return expr;
  SmallVector<Expr> values = prim::getExprs(launch.getSymbols());
  return expr.substitute([&](StringRef name) -> Expr {
    for (auto [attr, value] : llvm::zip_equal(kernel.getSymbols().getAsRange<mlir::StringAttr>(), values))
      if (attr.getValue() == name)
        return value;
    return {};
  });
}

static Expr exprOf(std::optional<Expr> attr) { return attr ? *attr : Expr(); }

/// The kinds of its nodes in order, each once: "contraction", "reduction+pointwise".
static std::string kindOf(loop::KernelOp kernel) {
  SmallSetVector<StringRef, 4> kinds;
  for (mlir::Operation &op : kernel.getBlock())
    if (loop::isNode(&op))
      kinds.insert(op.getName().stripDialect());
  return join(kinds, "+");
}

static std::vector<std::string> nodesOf(mlir::Location location) {
  SmallSetVector<StringRef, 8> names;
  location->walk([&](mlir::Location part) {
    if (std::optional<NodeLocation> node = describeLocation(part))
      names.insert(node->node.empty() ? node->output : node->node);
    return mlir::WalkResult::advance();
  });
  std::vector<std::string> result;
  for (StringRef name : names)
    result.push_back(name.str());
  return result;
}

/// What the launch reads of weights and constants: all of them, but no more than it reads at all (rows of a table).
static int64_t countWeightBytes(loop::LaunchOp launch, int64_t bytesRead) {
  int64_t bytes = 0;
  for (mlir::Value buffer : launch.getBuffers()) {
    while (auto flatten = buffer.getDefiningOp<loop::FlattenOp>())
      buffer = flatten.getBuffer();
    if (isa_and_nonnull<loop::WeightOp, loop::ConstantOp>(buffer.getDefiningOp())) {
      auto type = cast<loop::BufferType>(buffer.getType());
      bytes += type.getElementCount().asConstant().value_or(0) * type.getElementBytes();
    }
  }
  return std::min(bytes, bytesRead);
}

std::vector<artifact::KernelEntry> Artefact::describeKernels() {
  std::vector<artifact::KernelEntry> entries;
  for (auto [i, kernel] : llvm::enumerate(kernels)) {
    artifact::KernelEntry entry{.name = kernel.getSymName().str(), .kind = kindOf(kernel)};
    for (const host::HostFunction &function : hostInputs.functions) {
      loop::ProgramOp program = function.variants.back();
      SymbolValues hints = prim::getSymbolHints(program.getSymbols());
      program.walk([&](loop::LaunchOp launch) {
        if (launch.getKernel() != kernel.getSymName() || entry.launches++)
          return;
        entry.nodes = nodesOf(launch.getLoc());
        entry.flops = amountOf(atLaunch(exprOf(kernel.getFlops()), kernel, launch), hints);
        entry.bytesRead = amountOf(atLaunch(exprOf(kernel.getBytesRead()), kernel, launch), hints);
        entry.bytesWritten = amountOf(atLaunch(exprOf(kernel.getBytesWritten()), kernel, launch), hints);
        entry.weightBytesRead = countWeightBytes(launch, entry.bytesRead.atHint);
      });
    }
    for (size_t level = 0; level < levels.size(); ++level)
      entry.codeBytes.emplace_back(levels[level].name, codes[i * levels.size() + level].codeBytes);
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<artifact::MemoryEntry> Artefact::describeMemory() {
  std::vector<artifact::MemoryEntry> entries;
  for (const host::HostFunction &function : hostInputs.functions) {
    loop::ProgramOp program = function.variants.back();
    SymbolValues hints = prim::getSymbolHints(program.getSymbols());
    entries.push_back(
        {function.name, amountOf(exprOf(program.getArena()), hints), amountOf(exprOf(program.getLowerBound()), hints)});
  }
  return entries;
}

Expected<artifact::Manifest> Artefact::describe(const artifact::LinkResult &result) {
  artifact::Manifest manifest{
      .interface = interface, .flags = canonicalFlags(compilation.options), .target = target.getInfo().name.str()};
  auto model = MemoryBuffer::getFile(compilation.options.model, false, false);
  if (!model)
    return createStringError(model.getError(), "cannot read '" + compilation.options.model + "'");
  StringRef bytes = (*model)->getBuffer();
  manifest.modelDigest =
      toHex(artifact::digestOf({bytes.data(), bytes.size()}, compilation.pool.getMaxConcurrency()), /*LowerCase=*/true);
  for (const codegen::Level &level : levels)
    manifest.levels.push_back(level.name);
  manifest.kernels = describeKernels();
  manifest.memory = describeMemory();
  manifest.weights.place = hostInputs.weightsPlace == host::WeightsPlace::Embedded ? "embedded"
                           : plan.weights.empty()                                  ? "absent"
                                                                                   : "file";
  manifest.weights.file = hostInputs.weightsFile;
  manifest.weights.bytes = weights->getLayout().bytes;
  manifest.weights.digest = toHex(result.weightsDigest, /*LowerCase=*/true);
  manifest.buildId = result.buildId;
  manifest.fileBytes = result.fileBytes;
  manifest.codeBytes = result.codeBytes;
  return manifest;
}

ArtefactSummary Artefact::getSummary() const {
  ArtefactSummary summary{.kernels = kernels.size(), .codeBytes = linked.codeBytes, .fileBytes = linked.fileBytes};
  summary.weightBytes = weights ? weights->getLayout().bytes : 0;
  for (const host::HostFunction &function : hostInputs.functions) {
    loop::ProgramOp program = function.variants.back();
    SymbolValues hints = prim::getSymbolHints(program.getSymbols());
    program.walk([&](loop::LaunchOp) { ++summary.launches; });
    summary.arenaBytes += amountOf(exprOf(program.getArena()), hints).atHint;
    summary.lowerBoundBytes += amountOf(exprOf(program.getLowerBound()), hints).atHint;
  }
  return summary;
}

} // namespace ptc
