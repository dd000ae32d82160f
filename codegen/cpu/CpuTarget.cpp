//===- CpuTarget.cpp - the CPU as a target --------------------------------===//
#include "codegen/cpu/CpuTarget.h"
#include "codegen/cpu/CpuContraction.h"
#include "codegen/cpu/CpuKernels.h"
#include "codegen/cpu/CpuTuning.h"
#include "codegen/cpu/CpuWinograd.h"
#include "codegen/host/HostModule.h"
#include "ir/loop/ContractionDims.h"
#include "ir/loop/Strassen.h"
#include "ir/loop/Tuned.h"
#include "ir/loop/Winograd.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ObjectFile.h"

using namespace ptc;
using namespace ptc::cpu;

namespace {
/// What a kernel computes that some levels have more for than others.
struct LevelWants {
  bool byteDots = false, bf16Dots = false; // products that an instruction may add up several at a time
  bool fixedPoint = false;                 // of rows by weights of few bits, as bytes
  bool strassen = false;                   // by Strassen's algorithm, where it is faster
  bool plainBesideStreams = false;         // the same, but not where processors follow streams
  bool streams = false;                    // of few rows, maybe, by a weight that streams from memory
};
} // namespace

static bool readsStreams(loop::ContractionOp op) {
  ContractionForm form = describeContraction(op);
  if (loop::WinogradTile tile = loop::getWinogradTile(op))
    form = analyzeWinograd(std::move(form), tile, loop::getWinogradDilations(op)).product;
  return form.rhs.streams && form.rowUnit() <= tallestTile;
}

/// Whether levels of processors that follow streams multiply plainly what their base does by Strassen's algorithm.
static bool isPlainBesideStreams(loop::ContractionOp op) {
  if (loop::getWinogradTile(op))
    return false;
  ContractionForm form = analyzeContraction(op);
  return llvm::any_of(getCpuLevels(), [&](const CpuLevel &level) {
    if (!level.followsStreams)
      return false;
    const CpuLevel *base = findCpuLevel(level.base);
    assert(base && "a level of processors that follow streams adds to another");
    return takesStrassen(form, level) != takesStrassen(form, *base);
  });
}

static LevelWants findWants(loop::KernelOp kernel) {
  LevelWants wants;
  kernel->walk([&](loop::ContractionOp op) {
    bool ofIntegers = mlir::isa<mlir::IntegerType>(op.getEpilogue().getArgument(0).getType()), hasFewBits = false;
    wants.byteDots |= ofIntegers && loop::getGroup(op) > 1; // of bytes that the task packs
    op->walk([&](loop::PanelsOp panels) {
      auto buffer = mlir::cast<loop::BufferType>(panels.getBuffer().getType());
      bool isDot = panels.getGroup() > 1 && !panels.getBits(), isBf16 = buffer.getElementType().isBF16();
      wants.byteDots |= isDot && !isBf16;
      wants.bf16Dots |= isDot && isBf16;
      wants.strassen |= panels->hasAttr(loop::strassenAttr);
      hasFewBits |= panels.getBits() > 0;
    });
    wants.fixedPoint |= hasFewBits && suitsFixedPoint(describeContraction(op));
    wants.streams |= readsStreams(op);
    wants.plainBesideStreams |= wants.strassen && isPlainBesideStreams(op);
  });
  return wants;
}

/// Whether any element, in memory or on the way, has less than 32 bits; truth values on the way have none.
static bool hasNarrowElements(loop::KernelOp kernel) {
  auto isNarrow = [](mlir::Type type) {
    if (auto buffer = mlir::dyn_cast<loop::BufferType>(type))
      return buffer.getElementBytes() < 4;
    mlir::Type element = mlir::getElementTypeOrSelf(type);
    return element.isIntOrFloat() && !element.isInteger(1) && element.getIntOrFloatBitWidth() < 32;
  };
  auto result = kernel->walk([&](mlir::Operation *op) {
    bool isHere = llvm::any_of(op->getOperandTypes(), isNarrow) || llvm::any_of(op->getResultTypes(), isNarrow);
    for (mlir::Region &region : op->getRegions())
      for (mlir::Block &block : region)
        isHere |= llvm::any_of(block.getArgumentTypes(), isNarrow);
    return isHere ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Whether a level beside the usual ones has something for what is wanted.
static bool suits(const CpuLevel &level, const LevelWants &wants) {
  if (level.followsStreams)
    return wants.streams || wants.plainBesideStreams;
  if (level.addsBesideProducts)
    return wants.strassen;
  bool ofBytes = level.hasByteDot && (wants.byteDots || (wants.fixedPoint && !level.hasMatrixRegisters));
  return ofBytes || (level.hasBf16Dot && wants.bf16Dots);
}

/// Whether what the level adds to its base is anything to the kernel, or one of them alone was tuned.
static bool differsFromBase(const CpuLevel &level, loop::KernelOp kernel) {
  bool addsNarrow = level.hasBf16Dot && !findCpuLevel(level.base)->hasBf16Dot; // moves and conversions of such, too
  auto tuned = kernel->getAttrOfType<mlir::DictionaryAttr>(loop::tunedAttr);
  auto measured = tuned ? tuned.getAs<mlir::StringAttr>(loop::tunedLevelAttr) : mlir::StringAttr();
  bool isTuned = measured && (measured == level.name || measured == level.base);
  return isTuned || suits(level, findWants(kernel)) || (addsNarrow && hasNarrowElements(kernel));
}

/// Whether elementary functions, which are polynomials of many constants, stand behind a register tile.
static bool hasConstantsBesideTile(loop::KernelOp kernel) {
  bool hasTile = false, hasFunction = false;
  kernel->walk([&](mlir::Operation *op) {
    auto contraction = mlir::dyn_cast<loop::ContractionOp>(op);
    hasTile |= contraction && !loop::getWinogradTile(contraction);
    hasFunction |= mlir::isa<mlir::math::MathDialect>(op->getDialect());
  });
  return hasTile && hasFunction;
}

static uint64_t codeBytesOf(llvm::ArrayRef<char> object) {
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), ""));
  if (!file)
    return llvm::consumeError(file.takeError()), 0;
  uint64_t bytes = 0;
  for (const llvm::object::SectionRef &section : (*file)->sections())
    if (section.isText())
      bytes += section.getSize();
  return bytes;
}

namespace {

class CpuTarget : public codegen::Target {
public:
  CpuTarget() {
    for (const CpuLevel &level : getCpuLevels())
      levels.push_back(level.name);
    info = {.name = "cpu",
            .levels = levels,
            .levelFlag = "--cpu",
            .autoLevels = usualLevels,
            .outputs = outputs,
            .weightPanel = loop::panelWidth,
            .fewestPanelColumns = 6,
            .coreCacheBytes = 1 << 20,
            .sharedCacheBytes = 1 << 24,
            .hasWinograd = true,
            .hasStrassen = true};
  }
  const TargetInfo &getInfo() const override { return info; }

  llvm::Expected<codegen::Level> describeLevel(llvm::StringRef name) const override {
    const CpuLevel *level = findCpuLevel(name);
    assert(level && "the level is one of the target's");
    llvm::Expected<uint64_t> features = object::runtimeFeatures(level->cpu, level->features);
    if (!features)
      return features.takeError();
    return codegen::Level{level->name.str(), level->triple.str(), *features};
  }

  std::optional<llvm::StringRef> findHostLevel() const override {
    const CpuLevel *level = cpu::findHostLevel();
    return level ? std::optional<llvm::StringRef>(level->name) : std::nullopt;
  }

  bool runsHere(llvm::StringRef level) const override { return isOfHost(*findCpuLevel(level)); }

  /// Dot products of bytes and bf16, by vectors and in matrix registers: processors that have these multiply vectors of
  /// bf16 at half the speed of f32, and take 1.1 to 1.7 times as long for a quantised model by vectors. Rows in fixed
  /// point, whose products are of bytes, are no operands of matrix registers. Strassen's algorithm, which with 512-bit
  /// vectors takes 1.01 to 1.1 times as long as plain products where its sums take the units of multiply-adds, has a
  /// level of its own, and so have processors that follow streams by themselves.
  llvm::SmallVector<llvm::StringRef> findSpecialLevels(loop::KernelOp kernel) const override {
    LevelWants wants = findWants(kernel);
    llvm::SmallVector<llvm::StringRef> found;
    for (const CpuLevel &row : getCpuLevels())
      if (row.triple == usualTriple && suits(row, wants))
        found.push_back(row.name);
    return found;
  }
  llvm::StringRef findCodeLevel(loop::KernelOp kernel, llvm::StringRef level,
                                llvm::ArrayRef<codegen::Level> levels) const override {
    llvm::StringRef found = level;
    for (const CpuLevel *row = findCpuLevel(level); !row->base.empty() && !differsFromBase(*row, kernel);) {
      row = findCpuLevel(row->base);
      if (llvm::any_of(levels, [&](const codegen::Level &other) { return other.name == row->name; }))
        found = row->name;
    }
    return found;
  }

  void loadDialects(mlir::MLIRContext &context) const override { loadKernelDialects(context); }
  mlir::LogicalResult planKernel(loop::KernelOp kernel) const override { return cpu::planKernel(kernel); }
  llvm::SmallVector<mlir::DictionaryAttr> listAlternatives(loop::KernelOp kernel,
                                                           llvm::StringRef level) const override {
    return cpu::listAlternatives(kernel, *findCpuLevel(level));
  }
  llvm::ArrayRef<llvm::StringLiteral> getTunedNames() const override { return cpu::tuned::names; }
  llvm::Expected<codegen::KernelCode> generateKernel(loop::KernelOp kernel, llvm::StringRef levelName,
                                                     const codegen::CodeOptions &options) const override;

private:
  static constexpr llvm::StringRef usualLevels[] = {"x86-64-v3", "x86-64-v4"};
  static constexpr llvm::StringRef usualTriple = "x86_64-unknown-linux-gnu";
  static constexpr llvm::StringRef outputs[] = {"so", "a", "o", "h", "hpp", "json", "llvm", "asm"};
  llvm::SmallVector<llvm::StringRef> levels;
  TargetInfo info;
  mutable object::MachinePool machines;
};

} // namespace

llvm::Expected<codegen::KernelCode> CpuTarget::generateKernel(loop::KernelOp kernel, llvm::StringRef levelName,
                                                              const codegen::CodeOptions &options) const {
  const CpuLevel &level = *findCpuLevel(levelName);
  codegen::KernelCode code{.kernel = kernel.getSymName().str(), .level = level.name.str()};
  std::string symbol = host::kernelSymbol(kernel.getSymName(), level.name);
  object::TargetLevel target = getTargetLevel(level);
  auto machine = machines.take(target, options.optLevel);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context; // of its own: threads do not share one
  auto module = cpu::generateKernel(kernel, symbol, level, context, **machine, options);
  if (!module)
    return module.takeError();
  if (options.wantsText)
    code.llvmText = object::printModule(**module);
  // Emission changes a module: what may be emitted again is kept as bitcode, with the order of uses, of which some
  // passes' results depend.
  bool mayEmitAgain = hasConstantsBesideTile(kernel);
  llvm::SmallVector<char, 0> kept;
  if (mayEmitAgain || options.wantsText) {
    llvm::raw_svector_ostream stream(kept);
    llvm::WriteBitcodeToFile(**module, stream, /*ShouldPreserveUseListOrder=*/true);
  }
  auto emitAgain = [&](object::EmissionKind kind,
                       object::CodeFacts *facts) -> llvm::Expected<llvm::SmallVector<char, 0>> {
    llvm::LLVMContext again;
    auto copy = llvm::parseBitcodeFile(llvm::MemoryBufferRef(llvm::StringRef(kept.data(), kept.size()), ""), again);
    if (!copy)
      return copy.takeError();
    return object::emitModule(**copy, **machine, kind, facts, target.hoistsConstants);
  };
  auto object = object::emitModule(**module, **machine, object::EmissionKind::Object, &code.facts);
  if (!object)
    return object.takeError();
  // A tile takes all registers. With constants in some of them besides, the allocator may copy and spill accumulators
  // in the innermost loop, which halves the speed: if it spills, the code without is made, too, and compared.
  if (code.facts.spills > 0 && mayEmitAgain) {
    object::CodeFacts facts;
    target.hoistsConstants = false;
    auto other = emitAgain(object::EmissionKind::Object, &facts);
    if (!other)
      return other.takeError();
    target.hoistsConstants = facts.spills + facts.reloads > code.facts.spills + code.facts.reloads;
    if (!target.hoistsConstants) {
      object = std::move(other);
      code.facts = facts;
    }
  }
  if (options.wantsText) {
    auto text = emitAgain(object::EmissionKind::Assembly, nullptr);
    if (!text)
      return text.takeError();
    code.assembly.assign(text->begin(), text->end());
  }
  code.object = std::move(*object);
  code.codeBytes = codeBytesOf(code.object);
  return code;
}

const codegen::Target &cpu::getCpuTarget() {
  static const CpuTarget target;
  return target;
}
