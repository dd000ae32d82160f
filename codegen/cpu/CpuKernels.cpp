//===- CpuKernels.cpp - from a loop.kernel to an LLVM module --------------===//
//
// One llvm.func is built from the kernel's nodes with arith, math, scf, vector and llvm ops, elementary functions are
// expanded, everything is converted to the LLVM dialect, translated, and optimised by LLVM. The MLIR lives in the
// kernel's own context: contexts are safe for several threads once all dialects are loaded, and the expressions in
// attributes need no translation. Each LLVM module has a context of its own.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/CpuKernels.h"
#include "codegen/common/ElementaryFunctions.h"
#include "codegen/common/FloatContraction.h"
#include "codegen/common/LowerToLLVM.h"
#include "codegen/common/NarrowFloats.h"
#include "codegen/common/Optimize.h"
#include "codegen/common/ReductionSteps.h"
#include "codegen/cpu/ChosenPoints.h"
#include "codegen/cpu/CpuPlan.h"
#include "codegen/cpu/CpuRecurrence.h"
#include "codegen/cpu/CpuTemplates.h"
#include "codegen/cpu/FloatMode.h"
#include "codegen/cpu/NodeEmitter.h"
#include "codegen/object/EmitObject.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Bounds.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

void cpu::loadKernelDialects(MLIRContext &context) {
  codegen::registerTranslation(context);
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, math::MathDialect,
                      scf::SCFDialect, ub::UBDialect, vector::VectorDialect, loop::LoopDialect>();
}

LogicalResult cpu::planKernel(loop::KernelOp kernel) {
  if (loop::RecurrenceOp recurrence = getRecurrence(kernel))
    return planRecurrence(kernel, recurrence);
  FailureOr<KernelPlan> plan = failure();
  SmallVector<Operation *> nodes = getNodes(kernel);
  if (!nodes.empty() && isa<loop::AttentionOp>(nodes.back()))
    plan = planAttention(kernel, nodes);
  else if (!nodes.empty() && isa<loop::ContractionOp>(nodes.front()))
    plan = planContractions(kernel, nodes);
  else
    plan = planLoops(kernel);
  if (failed(plan))
    return failure();
  setPlan(kernel, *plan);
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels of loop nodes
//===----------------------------------------------------------------------===//

namespace {

/// How lanes along a shared dim are taken.
struct LaneSteps {
  int64_t lanes, perStep; // vectors at a time
  bool inPairs;
};

/// The nodes of one kernel over the iterations [begin, end).
class LoopKernel {
public:
  LoopKernel(KernelEmitter &e)
      : e(e), kernel(e.kernel), config(LoopConfig::fromAttribute(kernel.getConfigAttr())), nodes(getNodes(kernel)),
        shared(int64_t(kernel.getParallel())) {
    if (!nodes.empty())
      extents = loop::getDomain(nodes.front());
    extents.truncate(size_t(shared));
  }
  void emit(Value begin, Value end);

private:
  void emitNodes(const Points &points);
  Value emitShortRows(Value begin, Value end);
  void emitRows(Value begin, Value end);
  void emitTiledRows(Value begin, Value end);
  ChosenPoints orderPoints();
  PointContext emitContext(const ChosenPoints &chosen, EmissionPoint point, Value place);
  void emitSquares(Value begin, Value end);
  void emitLanes(Value begin, Value end);
  LaneSteps chooseLaneSteps();
  void emitLaneRange(const LaneSteps &steps, const EmissionPoint &point, Value from, Value to, Value tileBlock);
  void emitLaneBlocks(const LaneSteps &steps, Value begin, Value end, Value extent);
  bool hasNoLocals() { return kernel.getBlock().getOps<loop::BufferOp>().empty(); }
  loop::ReductionOp getWindow() { return nodes.size() == 1 ? dyn_cast<loop::ReductionOp>(nodes.front()) : nullptr; }
  void emitOdometer(Value begin, Value end, ArrayRef<Value> sizes,
                    llvm::function_ref<void(ArrayRef<Value> digits)> body);

  KernelEmitter &e;
  loop::KernelOp kernel;
  LoopConfig config;
  SmallVector<Operation *> nodes;
  int64_t shared;
  SmallVector<Expr> extents; // of the shared dims
};

} // namespace

void cpu::placeLocals(KernelEmitter &e, int64_t lanes, Expr base) {
  LocalMemory memory = placeLocalBuffers(e.kernel);
  auto inScratch = [&](Expr offset) { return e.getScratchAt(e.emitExpr(base ? base + offset : offset, {})); };
  for (const LocalBuffer &local : memory.buffers) {
    auto buffer = dyn_cast<loop::BufferOp>(local.op);
    if (!buffer) {
      e.setLocalMemory(local.op, inScratch(local.offset));
      continue;
    }
    if (lanes > 1)
      e.setPerLane(buffer.getResult());
    bool onStack = local.onStack || lanes > 1;
    e.setPointer(buffer.getResult(),
                 onStack ? e.createStackSlot(*local.bytes.asConstant() * lanes) : inScratch(local.offset));
  }
}

void LoopKernel::emitNodes(const Points &points) {
  for (auto [index, node] : llvm::enumerate(nodes))
    NodeEmitter(e, node).emit(points, shared, config.nodeVectors[index]);
}

// Runs `body` for the numbers [begin, end), written in mixed radix `sizes` (outermost digit first). Digits are counted
// on instead of divided out: one division a range, not one a row.
void LoopKernel::emitOdometer(Value begin, Value end, ArrayRef<Value> sizes,
                              llvm::function_ref<void(ArrayRef<Value>)> body) {
  InvariantBuilder &in = e.invariants;
  SmallVector<Value> start(sizes.size());
  Value rest = begin;
  for (size_t digit = sizes.size(); digit-- > 1;) {
    Value size = in.max(sizes[digit], e.constant(1));
    Value above = in.floorDiv(rest, size, true);
    start[digit] = in.sub(rest, in.mul(above, size));
    rest = above;
  }
  if (sizes.size() <= 1) {
    e.forEach(begin, end, 1, [&](Value iv) { body(sizes.empty() ? ArrayRef<Value>() : ArrayRef<Value>(iv)); });
    return;
  }
  start[0] = rest;
  e.createLoop(begin, end, 1, start, [&](Value, ValueRange carried) {
    SmallVector<Value> digits(carried);
    body(digits);
    Value carry = e.invariants.constant(e.builder.getBoolAttr(true));
    for (size_t digit = sizes.size(); digit-- > 0;) {
      Value next = arith::AddIOp::create(e.builder, e.loc, digits[digit], e.constant(1));
      Value stepped = arith::SelectOp::create(e.builder, e.loc, carry, next, digits[digit]);
      if (digit == 0) {
        digits[0] = stepped;
        break;
      }
      Value wraps = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::sge, stepped, sizes[digit]);
      digits[digit] = arith::SelectOp::create(e.builder, e.loc, wraps, e.constant(0), stepped);
      carry = wraps;
    }
    return digits;
  });
}

/// The rows of a lone node that steps of several take; the first that is left.
Value LoopKernel::emitShortRows(Value begin, Value end) {
  bool isLone = nodes.size() == 1 && shared == 1 && hasNoLocals();
  int64_t count = isLone ? chooseShortRows(e, nodes.front(), config.nodeVectors.front()) : 1;
  if (count == 1)
    return begin;
  InvariantBuilder &in = e.invariants;
  Value length = in.max(in.sub(end, begin), e.constant(0)), step = e.constant(count);
  Value rest = in.add(begin, in.mul(in.floorDiv(length, step, true), step));
  e.forEach(begin, rest, count, [&](Value row) { cpu::emitShortRows(e, nodes.front(), row, count); });
  return rest;
}

// Each iteration is one point of the shared dims.
void LoopKernel::emitRows(Value begin, Value end) {
  placeLocals(e, 1);
  begin = emitShortRows(begin, end);
  SmallVector<Value> sizes;
  for (Expr extent : extents)
    sizes.push_back(e.emitExpr(extent, {}));
  emitOdometer(begin, end, sizes, [&](ArrayRef<Value> digits) {
    EmissionPoint point;
    point.dims.assign(digits.begin(), digits.end());
    emitNodes({point});
  });
}

// Each iteration is one point of the shared dims but one, which is tiled, or a block of that.
void LoopKernel::emitTiledRows(Value begin, Value end) {
  placeLocals(e, 1);
  SmallVector<Value> sizes;
  for (auto [dim, extent] : llvm::enumerate(extents))
    if (int64_t(dim) != config.tiled)
      sizes.push_back(e.emitExpr(extent, {}));
  if (config.tileBlock)
    sizes.push_back(e.emitExpr(extents[size_t(config.tiled)].ceilDiv(config.tileBlock), {}));
  std::optional<ChosenPoints> chosen;
  if (config.ordered >= 0)
    chosen = orderPoints();
  emitOdometer(begin, end, sizes, [&](ArrayRef<Value> digits) {
    EmissionPoint point;
    point.dims.resize(size_t(shared));
    for (int64_t dim = 0, digit = 0; dim < shared; ++dim)
      if (dim != config.tiled)
        point.dims[size_t(dim)] = digits[size_t(digit++)];
    PointContext context;
    if (chosen) {
      Value place = std::exchange(point.dims[size_t(chosen->dim)], Value());
      point.dims[size_t(chosen->dim)] = loadInOrder(e, e.getScratch(), place);
      context = emitContext(*chosen, point, place);
    }
    emitTiles(
        e, nodes.front(), config, shared, config.tileBlock ? digits.back() : Value(), [&](auto body) { body(point); },
        context);
  });
}

ChosenPoints LoopKernel::orderPoints() {
  auto product = cast<loop::ReductionOp>(nodes.front());
  SmallVector<Expr> domain = loop::getDomain(product);
  e.setDomain(domain);
  ChosenPoints chosen = *findChosenPoints(product);
  emitOrder(e, chosen, domain, e.getScratch());
  return chosen;
}

/// What is the same for all rows and terms of the point at that place of the order.
PointContext LoopKernel::emitContext(const ChosenPoints &chosen, EmissionPoint point, Value place) {
  size_t rank = loop::getDomain(nodes.front()).size();
  Block &body = getWindow().getBody().front();
  SmallVector<Operation *> ops = findUniform(e, body, dimsBetween(config.tiled, int64_t(rank)));
  point.dims.resize(rank);
  BodyEmitter emitter(e, point);
  emitter.emitOps(ops);
  PointContext context;
  for (Operation *op : ops)
    context.known[op->getResult(0)] = emitter.lookup(op->getResult(0));
  Value matrix = context.known.lookup(chosen.getChoice());
  if (matrix && hasNextBlock(getWindow(), chosen))
    context.atStep = [=, this](const EmissionPoint &first, int64_t rows) {
      fetchNextBlock(e, getWindow(), chosen, first, rows, matrix, place);
    };
  return context;
}

// Each iteration is one point of the shared dims but two, of which each is whole or a block. Blocks of the tiled one
// come first: the others then go on where the lines of a block end.
void LoopKernel::emitSquares(Value begin, Value end) {
  SmallVector<Value> sizes;
  if (config.tileBlock)
    sizes.push_back(e.emitExpr(extents[size_t(config.tiled)].ceilDiv(config.tileBlock), {}));
  for (auto [dim, extent] : llvm::enumerate(extents))
    if (int64_t(dim) != config.tiled && int64_t(dim) != config.sharedVector)
      sizes.push_back(e.emitExpr(extent, {}));
  sizes.push_back(e.emitExpr(extents[size_t(config.sharedVector)].ceilDiv(config.block), {}));
  emitOdometer(begin, end, sizes, [&](ArrayRef<Value> digits) {
    Value tileBlock = config.tileBlock ? digits.front() : Value();
    EmissionPoint point;
    point.dims.resize(size_t(shared));
    size_t digit = config.tileBlock ? 1 : 0;
    for (int64_t dim = 0; dim < shared; ++dim)
      if (dim != config.tiled && dim != config.sharedVector)
        point.dims[size_t(dim)] = digits[digit++];
    cpu::emitSquares(e, nodes.front(), config, point, digits.back(), tileBlock);
  });
}

static constexpr int64_t longSum = 64;    // terms beside which what follows the sum is little
static constexpr size_t shortBody = 8;    // operations for a term
static constexpr int64_t widestSums = 16; // vectors
static constexpr int64_t besideSums = 4;  // registers

static int64_t mostSums(const CpuLevel &level) {
  return std::min<int64_t>(level.vectorRegisters - besideSums, widestSums);
}

/// Long sums take many vectors at a time: they do not wait for their own last additions, and what follows each other in
/// memory is read in turn (a lone row by a matrix of 64 x 512 from the third-level cache, vectors of 512 bits: 9 at a
/// time take 1.8 times as long as 16).
static int64_t chooseSumsPerStep(loop::ReductionOp op, const CpuLevel &level) {
  codegen::BodyParts parts = codegen::splitBody(op.getBody().front());
  std::optional<int64_t> terms =
      product(op.getContext(), ArrayRef(loop::getDomain(op)).take_back(op.getReduced())).asConstant();
  bool isLong = terms && *terms >= longSum && parts.reductions.size() == 1 && parts.before.size() <= shortBody;
  return isLong ? mostSums(level) : 1;
}

/// So do running values, which are stored at each step.
static int64_t chooseRunningPerStep(loop::ScanOp op, const CpuLevel &level) {
  Block &body = op.getBody().front();
  std::optional<int64_t> steps = loop::getDomain(op).back().asConstant();
  bool isLong = steps && *steps >= longSum && llvm::hasSingleElement(body.getOps<loop::RunningOp>()) &&
                body.getOperations().size() <= shortBody;
  return isLong ? mostSums(level) : 1;
}

/// Whether a condition differs between lanes along the dim.
static bool asksAlong(Operation *node, int64_t dim) {
  WalkResult result = node->walk([&](loop::MaskedOp mask) {
    bool differs = llvm::any_of(prim::getExprs(mask.getConditions()),
                                [&](Expr condition) { return condition.uses(dimName(dim)); });
    return differs ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

LaneSteps LoopKernel::chooseLaneSteps() {
  int64_t lanes =
      shortenToBlocks(kernel, config.sharedVector, chooseLanes(e, kernel, extents[size_t(config.sharedVector)]));
  LaneSteps steps{.lanes = lanes, .perStep = 1, .inPairs = false};
  if (nodes.size() != 1 || config.tiled >= 0)
    return steps;
  if (hasNoLocals()) {
    steps.perStep = choosePointsPerStep(nodes.front());
    steps.inPairs = takesPairs(nodes.front(), e.level);
    if (auto scan = dyn_cast<loop::ScanOp>(nodes.front()))
      steps.perStep = std::max(steps.perStep, chooseRunningPerStep(scan, e.level));
  }
  if (loop::ReductionOp window = getWindow())
    steps.perStep = std::max(steps.perStep, chooseSumsPerStep(window, e.level));
  return steps;
}

/// Elements [from, to) of the lanes' dim. `tileBlock`: the number of the block of the tiled dim, if that is cut.
void LoopKernel::emitLaneRange(const LaneSteps &steps, const EmissionPoint &point, Value from, Value to,
                               Value tileBlock) {
  if (from == to)
    return;
  int64_t dim = config.sharedVector;
  auto vectors = [&](llvm::function_ref<void(const Points &)> body) {
    auto step = [&](const Points &points, ValueRange) {
      body(points);
      return SmallVector<Value>();
    };
    emitVectorLoop(e, point, dim, from, to, steps.lanes, steps.perStep, hasMasks(kernel, e.level), {}, step,
                   steps.inPairs);
  };
  if (config.tiled < 0)
    return vectors([&](const Points &points) { emitNodes(points); });
  auto tiles = [&](PointLoop alongLanes) { emitTiles(e, nodes.front(), config, shared, tileBlock, alongLanes); };
  if (asksAlong(nodes.front(), dim)) // masks of lanes are the same for all tiles
    return vectors([&](const Points &points) { tiles([&](auto body) { body(points.front()); }); });
  tiles([&](auto body) { vectors([&](const Points &points) { body(points.front()); }); });
}

/// Whole vectors of the lanes' dim whose windows all lie inside: they ask nothing about the border.
struct InsideVectors {
  int64_t first = 0, last = 0;
  llvm::DenseSet<Attribute> conditions; // which hold for them
};

static InsideVectors findInsideVectors(KernelEmitter &e, loop::ReductionOp window, int64_t dim, int64_t lanes) {
  Interior inside = findInterior(e, window, dim);
  InsideVectors vectors{.conditions = inside.conditions};
  auto from = e.invariants.asConstant(inside.from), to = e.invariants.asConstant(inside.to);
  if (!from || !to || inside.conditions.empty())
    return vectors;
  int64_t first = int64_t(llvm::alignTo(uint64_t(*from), uint64_t(lanes))), last = *to / lanes * lanes;
  if (first < last)
    std::tie(vectors.first, vectors.last) = std::pair(first, last);
  return vectors;
}

/// Blocks of the lanes' dim, or all of it, at each point of the other shared dims.
void LoopKernel::emitLaneBlocks(const LaneSteps &steps, Value begin, Value end, Value extent) {
  InvariantBuilder &in = e.invariants;
  int64_t dim = config.sharedVector;
  Value block = e.constant(config.block);
  SmallVector<Value> sizes;
  for (auto [other, size] : llvm::enumerate(extents))
    if (int64_t(other) != dim && int64_t(other) != config.tiled)
      sizes.push_back(e.emitExpr(size, {}));
  size_t others = sizes.size();
  bool isCut = config.tiled >= 0 && config.tileBlock;
  if (isCut)
    sizes.push_back(e.emitExpr(extents[size_t(config.tiled)].ceilDiv(config.tileBlock), {}));
  std::optional<int64_t> known = in.asConstant(extent);
  bool isWhole = known && *known <= config.block;
  InsideVectors inside;
  if (loop::ReductionOp window = getWindow())
    inside = findInsideVectors(e, window, dim, steps.lanes);
  if (!isWhole)
    sizes.push_back(in.floorDiv(in.add(extent, e.constant(config.block - 1)), block, true));
  emitOdometer(begin, end, sizes, [&](ArrayRef<Value> digits) {
    EmissionPoint point;
    point.dims.resize(size_t(shared));
    for (int64_t other = 0, digit = 0; other < shared; ++other)
      if (other != dim && other != config.tiled)
        point.dims[size_t(other)] = digits[size_t(digit++)];
    auto range = [&](Value from, Value to) { emitLaneRange(steps, point, from, to, isCut ? digits[others] : Value()); };
    Value from = e.constant(0), to = extent, first = e.constant(inside.first), last = e.constant(inside.last);
    if (!isWhole) {
      from = in.mul(digits.back(), block);
      to = in.min(in.add(from, block), extent);
      if (inside.first == inside.last)
        return range(from, to);
      first = in.min(in.max(first, from), to);
      last = in.min(in.max(last, first), to);
    }
    range(from, first);
    point.assumed = &inside.conditions;
    range(first, last);
    point.assumed = nullptr;
    range(last, to);
  });
}

// Lanes along one shared dim; each iteration is a block of it.
void LoopKernel::emitLanes(Value begin, Value end) {
  InvariantBuilder &in = e.invariants;
  Value extent = e.emitExpr(extents[size_t(config.sharedVector)], {});
  LaneSteps steps = chooseLaneSteps();
  placeLocals(e, steps.lanes);
  if (shared > 1 || config.tiled >= 0)
    return emitLaneBlocks(steps, begin, end, extent);
  // Neighbouring blocks are one range.
  Value block = e.constant(config.block), from = in.mul(begin, block), to = in.min(in.mul(end, block), extent);
  EmissionPoint point;
  point.dims.resize(1);
  auto range = [&] { emitLaneRange(steps, point, from, to, {}); };
  loop::ReductionOp window = getWindow();
  if (window && hasNoLocals() && readsRowsInTurn(window))
    return emitRowsInTurn(e, window, from, to, range);
  range();
}

void LoopKernel::emit(Value begin, Value end) {
  if (config.tiled >= 0 && isa<loop::PointwiseOp>(nodes.front()))
    emitSquares(begin, end);
  else if (config.sharedVector >= 0)
    emitLanes(begin, end);
  else if (config.tiled >= 0)
    emitTiledRows(begin, end);
  else
    emitRows(begin, end);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// `runBehind`: what runs behind a product row by row or column by column, in a function of its own.
static LogicalResult emitKernel(KernelEmitter &e, Value begin, Value end, RunBehind runBehind) {
  SmallVector<Operation *> nodes = getNodes(e.kernel);
  Operation *first = nodes.empty() ? nullptr : nodes.front();
  if (first)
    e.loc = first->getLoc();
  if (first && isa<loop::AttentionOp>(nodes.back()))
    return emitAttention(e, nodes, begin, end);
  if (isa_and_present<loop::ContractionOp>(first))
    return emitContractions(e, nodes, begin, end, runBehind);
  LoopKernel(e).emit(begin, end);
  return success();
}

// Line tables alone: what a debugger or profiler calls the function is its symbol, of which every launch has its own
// (codegen/host/KernelTable.cpp).
static Location withLines(loop::KernelOp kernel, StringRef name, StringRef listing) {
  MLIRContext *context = kernel.getContext();
  auto file = LLVM::DIFileAttr::get(context, listing, "");
  auto unit = LLVM::DICompileUnitAttr::get(
      DistinctAttr::create(UnitAttr::get(context)), llvm::dwarf::DW_LANG_C99, file, StringAttr::get(context, "ptc"),
      /*isOptimized=*/true, LLVM::DIEmissionKind::LineTablesOnly, LLVM::DINameTableKind::None);
  unsigned line = 0;
  if (auto place = dyn_cast<FileLineColLoc>(kernel.getLoc()))
    line = place.getLine();
  auto type = LLVM::DISubroutineTypeAttr::get(context, llvm::dwarf::DW_CC_normal, {});
  auto function = LLVM::DISubprogramAttr::get(
      context, DistinctAttr::create(UnitAttr::get(context)), unit, file, StringAttr::get(context, name), StringAttr(),
      file, line, line, LLVM::DISubprogramFlags::Definition | LLVM::DISubprogramFlags::Optimized, type, {}, {});
  return FusedLoc::get(context, {kernel.getLoc()}, function);
}

namespace {

/// The functions of one kernel in one module.
class ModuleBuilder {
public:
  ModuleBuilder(const CpuLevel &level, const codegen::CodeOptions &code, MLIRContext *context)
      : level(level), code(code), module(ModuleOp::create(UnknownLoc::get(context))) {}

  /// A function of the kernel ABI; those for the groups of a recurrence come first.
  LogicalResult addFunction(loop::KernelOp kernel, StringRef name, LLVM::Linkage linkage = LLVM::Linkage::External);
  OwningOpRef<ModuleOp> take() { return std::move(module); }

private:
  FailureOr<SmallVector<std::string>> addStages(loop::KernelOp kernel, StringRef name);
  /// A function of what runs behind a product, and its iterations for a row or a part of the columns.
  struct FunctionBehind {
    std::string name; // empty: there is nothing
    Expr iterations;
  };
  FailureOr<FunctionBehind> addBehind(loop::KernelOp kernel, StringRef name);
  void expand(LLVM::LLVMFuncOp function);

  const CpuLevel &level;
  const codegen::CodeOptions &code;
  OwningOpRef<ModuleOp> module;
};

} // namespace

FailureOr<SmallVector<std::string>> ModuleBuilder::addStages(loop::KernelOp kernel, StringRef name) {
  SmallVector<std::string> names;
  loop::RecurrenceOp recurrence = getRecurrence(kernel);
  if (!recurrence)
    return names;
  for (loop::FusedOp stage : getStages(recurrence)) {
    OwningOpRef<loop::KernelOp> own = createStageKernel(kernel, stage);
    names.push_back((name + ".stage" + Twine(names.size())).str());
    if (failed(addFunction(*own, names.back(), LLVM::Linkage::Internal)))
      return failure();
  }
  return names;
}

FailureOr<ModuleBuilder::FunctionBehind> ModuleBuilder::addBehind(loop::KernelOp kernel, StringRef name) {
  bool hasColumns = findColumnsBehind(kernel).has_value();
  if (!hasColumns && !hasRowsBehind(kernel))
    return FunctionBehind();
  FailureOr<NodesBehind> behind = createKernelBehind(kernel);
  if (failed(behind))
    return failure();
  OwningOpRef<loop::KernelOp> own = behind->kernel;
  std::string ownName = (name + (hasColumns ? ".columns" : ".rows")).str();
  if (failed(addFunction(*own, ownName, LLVM::Linkage::Internal)))
    return failure();
  return FunctionBehind{ownName, behind->iterations};
}

LogicalResult ModuleBuilder::addFunction(loop::KernelOp kernel, StringRef name, LLVM::Linkage linkage) {
  FailureOr<SmallVector<std::string>> stages = addStages(kernel, name);
  FailureOr<FunctionBehind> behind = addBehind(kernel, name);
  if (failed(stages) || failed(behind))
    return failure();
  MLIRContext *context = kernel.getContext();
  Location loc = UnknownLoc::get(context);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  Type ptr = LLVM::LLVMPointerType::get(context), i64 = builder.getI64Type(), i32 = builder.getI32Type();
  auto type = LLVM::LLVMFunctionType::get(i32, {ptr, ptr, i64, i64, ptr});
  Location place = code.listing.empty() ? loc : withLines(kernel, name, code.listing);
  auto function = LLVM::LLVMFuncOp::create(builder, place, name, type, linkage);
  if (!code.listing.empty())
    function.setFramePointerAttr(
        LLVM::FramePointerKindAttr::get(context, LLVM::framePointerKind::FramePointerKind::All));
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  Value one = LLVM::ConstantOp::create(builder, loc, i64, 1);
  Value errorFlag = LLVM::AllocaOp::create(builder, loc, ptr, i32, one);
  LLVM::StoreOp::create(builder, loc, LLVM::ConstantOp::create(builder, loc, i32, 0), errorFlag);
  KernelFrame frame{entry->getArgument(0), entry->getArgument(1), entry->getArgument(2),
                    entry->getArgument(3), entry->getArgument(4), errorFlag};
  KernelEmitter emitter(builder, kernel, level, frame.buffers, frame.symbols, frame.scratch, errorFlag);
  emitter.isStrict = !code.contracts;
  emitter.isStage = linkage == LLVM::Linkage::Internal;
  bool flushes = code.contracts && !emitter.isStage && mayFlushDenormals(kernel);
  Value floatMode = flushes ? LLVM::AllocaOp::create(builder, loc, ptr, i32, one).getResult() : Value();
  if (flushes) {
    setFlushDenormals(builder, loc, level, floatMode, true);
    emitter.flushesDenormals = !level.loadFloatMode().empty();
  }
  auto runBehind = [&](Value begin, Value end) {
    InvariantBuilder &in = emitter.invariants;
    Value own = emitter.getScratchAt(emitter.emitExpr(getProductScratch(kernel), {}));
    Value iterations = emitter.emitExpr(behind->iterations, {});
    callKernel(emitter, behind->name,
               {frame.buffers, frame.symbols, in.mul(begin, iterations), in.mul(end, iterations), own, errorFlag});
  };
  if (loop::RecurrenceOp recurrence = getRecurrence(kernel))
    emitRecurrence(emitter, recurrence, *stages, frame);
  else if (failed(
               emitKernel(emitter, frame.begin, frame.end, behind->name.empty() ? RunBehind() : RunBehind(runBehind))))
    return failure();
  if (flushes)
    setFlushDenormals(builder, loc, level, floatMode, false);
  Value result = LLVM::LoadOp::create(builder, loc, i32, errorFlag);
  LLVM::ReturnOp::create(builder, loc, result);
  expand(function);
  return success();
}

/// A conversion to integers of what was rounded to nearest even rounds itself: one instruction. Vectors alone, which
/// all levels have it for.
static void roundWhileConverting(LLVM::LLVMFuncOp function) {
  function.walk([](arith::FPToSIOp convert) {
    auto round = convert.getIn().getDefiningOp<math::RoundEvenOp>();
    auto type = dyn_cast<VectorType>(convert.getType());
    if (!round || !type || !type.getElementType().isInteger(32) || !getElementTypeOrSelf(round.getType()).isF32())
      return;
    OpBuilder b(convert);
    Operation *whole = LLVM::CallIntrinsicOp::create(b, convert.getLoc(), type, b.getStringAttr("llvm.lrint"),
                                                     ValueRange(round.getOperand()));
    convert.getResult().replaceAllUsesWith(whole->getResult(0));
    convert.erase();
    if (round->use_empty())
      round.erase();
  });
}

/// Bounds of what becomes a byte are those of integers that saturate while they are narrowed: no instructions but the
/// upper one's. Numbers below all integers and NaN convert to the least one, as they did to the lower bound.
static void clampWhileNarrowing(LLVM::LLVMFuncOp function) {
  function.walk([](arith::TruncIOp narrow) {
    auto type = dyn_cast<VectorType>(narrow.getIn().getType());
    auto whole = narrow.getIn().getDefiningOp<LLVM::CallIntrinsicOp>();
    if (!type || !getElementTypeOrSelf(narrow.getType()).isInteger(8) || !whole || !whole->hasOneUse() ||
        whole.getIntrin() != "llvm.lrint")
      return;
    auto boundOf = [](Value value) {
      auto select = value.getDefiningOp<arith::SelectOp>();
      return select ? loop::findBound(select) : std::nullopt;
    };
    auto upper = boundOf(whole.getArgs()[0]), lower = upper ? boundOf(upper->x) : std::nullopt;
    if (!lower || !upper->isUpper || lower->isUpper)
      return;
    bool isUnsigned = lower->number == 0 && upper->number == 255,
         isSigned = lower->number == -128 && upper->number == 127;
    if (!isUnsigned && !isSigned)
      return;
    OpBuilder b(whole);
    Location loc = whole.getLoc();
    auto select = whole.getArgs()[0].getDefiningOp<arith::SelectOp>();
    Value isAbove = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, lower->x, select.getFalseValue());
    whole->setOperand(0, arith::SelectOp::create(b, loc, isAbove, select.getFalseValue(), lower->x));
    b.setInsertionPoint(narrow);
    auto splat = [&](int32_t number) {
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, number)).getResult();
    };
    Value bounded = arith::MaxSIOp::create(b, loc, whole->getResult(0), splat(int32_t(lower->number)));
    narrow->setOperand(0, arith::MinSIOp::create(b, loc, bounded, splat(int32_t(upper->number))));
  });
}

void ModuleBuilder::expand(LLVM::LLVMFuncOp function) {
  roundWhileConverting(function);
  if (llvm::Triple(level.triple).isX86())
    clampWhileNarrowing(function);
  if (!code.contracts)
    codegen::forbidContraction(function);
  codegen::ElementaryOptions options;
  options.hasFma = level.hasFma;
  options.x86Scalef = level.hasScalef;
  options.joinsSigmoids = options.dividesByFloats = true;
  options.convertsThrough32 = llvm::Triple(level.triple).isX86() && !level.hasScalef;
  options.multipliesByInverseSums = code.contracts;
  options.multipliesByReciprocals = level.hasFma && level.vectorBits >= 512 && code.contracts;
  codegen::expandElementaryFunctions(function, options);
  codegen::expandNarrowFloatConversions(function);
  if (!level.hasBf16Dot) // the level that converts to bf16 too
    codegen::expandBf16Conversions(function);
}

object::TargetLevel cpu::getTargetLevel(const CpuLevel &level) {
  StringRef features = level.features;
  features.consume_back("+sse4a"); // tells processors from each other; no kernel needs its instructions
  return {.triple = level.triple.str(),
          .cpu = level.cpu.str(),
          .tuneCpu = level.tuneCpu.str(),
          .features = features.rtrim(',').str(),
          .vectorBits = unsigned(level.vectorBits)};
}

llvm::Expected<std::unique_ptr<llvm::Module>> cpu::generateKernel(loop::KernelOp kernel, StringRef name,
                                                                  const CpuLevel &level, llvm::LLVMContext &context,
                                                                  const codegen::CodeOptions &options) {
  auto machine = object::createTargetMachine(getTargetLevel(level), options.optLevel);
  if (!machine)
    return machine.takeError();
  return generateKernel(kernel, name, level, context, **machine, options);
}

llvm::Expected<std::unique_ptr<llvm::Module>> cpu::generateKernel(loop::KernelOp kernel, StringRef name,
                                                                  const CpuLevel &level, llvm::LLVMContext &context,
                                                                  llvm::TargetMachine &machine,
                                                                  const codegen::CodeOptions &options) {
  assert(kernel.getConfigAttr() && "generateKernel wants a planned kernel");
  auto failed = [&](const char *what) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "kernel '" + kernel.getSymName() + "' for " + level.name + ": " + what);
  };
  ModuleBuilder functions(level, options, kernel.getContext());
  if (mlir::failed(functions.addFunction(kernel, name)))
    return failed("no code could be emitted");
  OwningOpRef<ModuleOp> module = functions.take();
  if (mlir::failed(codegen::lowerToLLVMDialect(*module)))
    return failed("lowering to LLVM failed");
  std::unique_ptr<llvm::Module> result = codegen::translateToLLVM(*module, context);
  if (!result)
    return failed("translation to LLVM failed");
  object::TargetLevel target = getTargetLevel(level);
  object::prepareModule(*result, target, machine);
  codegen::optimizeKernel(*result, machine, options.optLevel);
  if (options.optLevel >= 3)
    object::optimizeModule(*result, target, machine, options.optLevel);
  return result;
}
