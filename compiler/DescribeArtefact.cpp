// What an artefact is made of, for the manifest and --stats: read off the planned module and the objects.
#include "compiler/Artefact.h"
#include "ir/loop/Recurrence.h"
#include "ir/loop/Rounds.h"
#include "ir/loop/Winograd.h"
#include "ir/prim/Variants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

artifact::Amount amountOf(Expr expr, const SymbolValues &hints) {
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

/// "winograd-4x4" for a convolution that is computed in such tiles of outputs, "winograd-4" along one dim,
/// "winograd-3x3-s2" with stride 2, "winograd-2x4x4" in volumes; "strassen" for a product that is planned so; else the
/// op's name.
static std::string kindOfNode(mlir::Operation *op) {
  auto contraction = dyn_cast<loop::ContractionOp>(op);
  mlir::DictionaryAttr config = op->getParentOfType<loop::KernelOp>().getConfigAttr();
  if (auto algorithm = config ? config.getAs<mlir::StringAttr>("algorithm") : mlir::StringAttr();
      algorithm && contraction)
    return algorithm.str();
  loop::WinogradTile tile = contraction ? loop::getWinogradTile(contraction) : loop::WinogradTile();
  if (!tile)
    return op->getName().stripDialect().str();
  std::string deep = tile.isVolume() ? std::to_string(tile.depth) + "x" : "";
  std::string kind = formatv(tile.sides == 2 ? "winograd-{1}{0}x{0}" : "winograd-{0}", tile.outputs, deep).str();
  return tile.stride == 1 ? kind : kind + "-s" + std::to_string(tile.stride);
}

/// The kinds of its nodes in order, each once: "contraction", "reduction+pointwise".
static std::string kindOf(loop::KernelOp kernel) {
  SmallVector<std::string> kinds;
  for (mlir::Operation &op : kernel.getBlock())
    if (loop::isNode(&op) || isa<loop::RecurrenceOp>(op))
      if (std::string kind = kindOfNode(&op); !is_contained(kinds, kind))
        kinds.push_back(std::move(kind));
  return join(kinds, "+");
}

/// What the operands are whose products a kernel adds up, by the region of one of them. A device multiplies values as
/// they lie in memory; a processor widens them first, but for panels of neighbours in k, which are for an instruction
/// that takes those.
static mlir::Type multipliedType(mlir::Region &operand, bool isDevice) {
  mlir::Value value = cast<loop::YieldOp>(operand.front().getTerminator()).getValue();
  if (auto mask = value.getDefiningOp<loop::MaskedOp>(); mask && isDevice)
    value = cast<loop::YieldOp>(mask.getBody().front().getTerminator()).getValue();
  mlir::Operation *defining = value.getDefiningOp();
  bool isWidened = isa_and_nonnull<mlir::arith::ExtFOp, mlir::arith::ExtSIOp, mlir::arith::ExtUIOp>(defining);
  auto panels = (isWidened ? defining->getOperand(0) : value).getDefiningOp<loop::PanelsOp>();
  bool isNarrow = isDevice || (panels && panels.getGroup() > 1 && !panels.getBits());
  return isWidened && isNarrow ? defining->getOperand(0).getType() : value.getType();
}

/// Of the first node that adds up products: "f32", "i8"; empty without one.
static std::string productsOf(loop::KernelOp kernel, bool isDevice) {
  std::string name;
  kernel.walk([&](mlir::Operation *op) {
    auto contraction = dyn_cast<loop::ContractionOp>(op);
    auto attention = dyn_cast<loop::AttentionOp>(op);
    if (!contraction && !attention)
      return mlir::WalkResult::advance();
    raw_string_ostream(name) << multipliedType(contraction ? contraction.getRhs() : attention.getK(), isDevice);
    return mlir::WalkResult::interrupt();
  });
  return name;
}

std::vector<std::string> nodeNames(mlir::Location location) {
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
    buffer = loop::skipViews(buffer);
    if (isa_and_nonnull<loop::WeightOp, loop::ConstantOp>(buffer.getDefiningOp())) {
      auto type = cast<loop::BufferType>(buffer.getType());
      bytes += type.getElementCount().asConstant().value_or(0) * type.getElementBytes();
    }
  }
  return std::min(bytes, bytesRead);
}

/// What the launch is given of the function's inputs and outputs; a constant without any.
static Expr countArgumentBytes(loop::LaunchOp launch) {
  Expr bytes = Expr::constant(launch.getContext(), 0);
  SmallPtrSet<mlir::Value, 8> seen;
  for (mlir::Value buffer : launch.getBuffers())
    if (seen.insert(buffer).second && isa<mlir::BlockArgument>(loop::skipViews(buffer))) {
      auto type = cast<loop::BufferType>(buffer.getType());
      bytes = bytes + type.getElementCount() * type.getElementBytes();
    }
  return bytes;
}

/// What every launch of the kernel has in common.
static artifact::KernelEntry describeKernel(const CompiledTarget &part, loop::KernelOp kernel) {
  const KernelSet &set = part.onHost && kernel.getOnHost() ? *part.onHost : part;
  size_t levels = set.levels.size(), row = size_t(llvm::find(set.kernels, kernel) - set.kernels.begin());
  artifact::KernelEntry entry{.name = kernel.getSymName().str(), .kind = kindOf(kernel)};
  entry.products = productsOf(kernel, set.target.getInfo().runsOnDevice);
  entry.onHost = kernel.getOnHost().value_or("").str();
  for (const codegen::KernelCode &code : ArrayRef(set.codes).slice(row * levels, levels)) {
    entry.code.push_back({code.level, int64_t(code.codeBytes), code.facts});
    if (code.launch && !code.launch->getLibrary().empty())
      entry.library = code.launch->getLibrary().str();
  }
  if (const std::optional<codegen::DeviceLaunch> &launch = set.codes[row * levels].launch) {
    entry.block[0] = launch->threads;
    entry.block[1] = launch->rows;
  }
  return entry;
}

/// Work and traffic are those of the first launch, but for the bytes of arguments.
static void addLaunch(const CompiledTarget &part, loop::LaunchOp launch, artifact::KernelEntry &entry,
                      const SymbolValues &hints) {
  entry.launches.push_back(nodeNames(launch.getLoc()));
  entry.joinedLaunches += launch.getJoined();
  entry.executions += loop::countRounds(launch, hints);
  if (entry.launches.size() > 1)
    return;
  loop::KernelOp kernel = host::kernelOf(launch);
  entry.flops = amountOf(atLaunch(exprOf(kernel.getFlops()), kernel, launch), hints);
  entry.bytesRead = amountOf(atLaunch(exprOf(kernel.getBytesRead()), kernel, launch), hints);
  entry.bytesWritten = amountOf(atLaunch(exprOf(kernel.getBytesWritten()), kernel, launch), hints);
  if (auto inStep = kernel->getAttrOfType<ExprAttr>(loop::stepBytesReadAttr)) {
    auto steps = kernel->getAttrOfType<ExprAttr>(loop::stepsAttr);
    entry.steps = amountOf(atLaunch(steps, kernel, launch), hints);
    entry.stepBytesRead = amountOf(atLaunch(inStep, kernel, launch), hints);
  }
  if (part.inputs.device && !kernel.getOnHost()) {
    size_t row = size_t(llvm::find(part.kernels, kernel) - part.kernels.begin());
    unsigned blocks = part.codes[row * part.levels.size()].launch->blocks; // of the first level, as the block is
    Expr grid = blocks ? Expr::constant(kernel.getContext(), blocks) : exprOf(kernel.getIterations());
    entry.grid = amountOf(atLaunch(grid, kernel, launch), hints);
  }
  entry.weightBytesRead = countWeightBytes(launch, entry.bytesRead.atHint);
}

/// Of each function the general program first.
static void forEachProgram(const CompiledTarget &part,
                           function_ref<void(const host::HostFunction &, loop::ProgramOp)> visit) {
  for (const host::HostFunction &function : part.inputs.functions) {
    visit(function, function.variants.back());
    for (loop::ProgramOp variant : ArrayRef(function.variants).drop_back())
      visit(function, variant);
  }
}

/// The general program's first, then those of the variants, in the order of first launch.
static std::vector<artifact::KernelEntry> describeKernels(const CompiledTarget &part, StringRef target) {
  std::vector<artifact::KernelEntry> entries;
  forEachProgram(part, [&](const host::HostFunction &, loop::ProgramOp program) {
    SymbolValues hints = prim::getSymbolHints(program.getSymbols());
    DenseMap<mlir::Operation *, size_t> known;
    MapVector<size_t, Expr> arguments; // bytes of all launches
    program.walk([&](loop::LaunchOp launch) {
      loop::KernelOp kernel = host::kernelOf(launch);
      auto [place, isNew] = known.try_emplace(kernel, entries.size());
      if (isNew) {
        entries.push_back(describeKernel(part, kernel));
        entries.back().target = target.str();
        entries.back().variant = prim::getVariantName(program);
      }
      addLaunch(part, launch, entries[place->second], hints);
      Expr &bytes = arguments[place->second], own = countArgumentBytes(launch);
      bytes = bytes ? bytes + own : own;
    });
    for (auto [entry, bytes] : arguments)
      entries[entry].argumentBytes = amountOf(bytes, hints);
  });
  return entries;
}

Expected<artifact::Manifest> Artefact::describe() {
  artifact::Manifest manifest{
      .interface = interface, .flags = canonicalFlags(compilation.options), .target = compilation.options.target};
  auto model = MemoryBuffer::getFile(compilation.options.model, false, false);
  if (!model)
    return createStringError(model.getError(), "cannot read '" + compilation.options.model + "'");
  StringRef bytes = (*model)->getBuffer();
  manifest.modelDigest =
      toHex(artifact::digestOf({bytes.data(), bytes.size()}, compilation.pool.getMaxConcurrency()), /*LowerCase=*/true);
  for (const CompiledTarget &part : parts) {
    for (const codegen::Level &level : part.levels)
      manifest.levels.push_back(level.name);
    llvm::append_range(manifest.kernels, describeKernels(part, nameOf(part)));
    forEachProgram(part, [&](const host::HostFunction &function, loop::ProgramOp program) {
      describeMemory(nameOf(part), function.name, program, manifest);
    });
  }
  const host::HostInputs &inputs = parts.front().inputs; // weights are the library's
  manifest.weights.place = inputs.weightsPlace == host::WeightsPlace::Embedded ? "embedded"
                           : plan.weights.empty()                              ? "absent"
                                                                               : "file";
  manifest.weights.file = inputs.weightsFile;
  manifest.weights.bytes = weights->getLayout().bytes;
  manifest.weights.digest = toHex(linked.weightsDigest, /*LowerCase=*/true);
  manifest.buildId = linked.buildId;
  manifest.fileBytes = linked.fileBytes;
  manifest.codeBytes = linked.codeBytes;
  return manifest;
}

Error Artefact::fill(CompileRecord &record) {
  Expected<artifact::Manifest> manifest = describe();
  if (!manifest)
    return manifest.takeError();
  record.manifest = std::move(*manifest);
  record.code.clear();
  auto add = [&](const Twine &name, ArrayRef<char> bytes) {
    record.code.emplace_back(name.str(), toHex(artifact::digestOf(bytes, /*jobs=*/1), /*LowerCase=*/true));
  };
  for (const CompiledTarget &part : parts)
    for (const KernelSet *set : part.getSets())
      for (const codegen::KernelCode &code : set->codes)
        if (code.sharedWith.empty())
          add(code.kernel + " for " + code.level, code.object.empty() ? ArrayRef<char>(code.assembly) : code.object);
  if (plan.needsHost)
    add("host", hostObject);
  return Error::success();
}

/// Of several targets, kernels and launches of all; the arena is that of the one that needs most.
ArtefactSummary Artefact::getSummary() const {
  ArtefactSummary summary{.codeBytes = linked.codeBytes, .fileBytes = linked.fileBytes};
  summary.weightBytes = weights ? weights->getLayout().bytes : 0;
  for (const CompiledTarget &part : parts) {
    int64_t arenaBytes = 0, lowerBoundBytes = 0;
    for (const KernelSet *set : part.getSets())
      summary.kernels += set->kernels.size();
    for (const host::HostFunction &function : part.inputs.functions) {
      loop::ProgramOp program = function.variants.back();
      SymbolValues hints = prim::getSymbolHints(program.getSymbols());
      program.walk([&](loop::LaunchOp) { ++summary.launches; });
      arenaBytes += amountOf(exprOf(program.getArena()), hints).atHint;
      lowerBoundBytes += amountOf(exprOf(program.getLowerBound()), hints).atHint;
    }
    summary.arenaBytes = std::max(summary.arenaBytes, arenaBytes);
    summary.lowerBoundBytes = std::max(summary.lowerBoundBytes, lowerBoundBytes);
  }
  return summary;
}

StringRef Artefact::nameOf(const CompiledTarget &part) const {
  return parts.size() > 1 ? part.target.getInfo().name : StringRef();
}

} // namespace ptc
