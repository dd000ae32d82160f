//===- CpuRecurrence.cpp - all steps of a loop in one kernel --------------===//
//
// A loop.recurrence runs groups of nodes (stages) one after another for each step. Each stage is planned and emitted as
// the kernel that it would be alone: a function of the kernel ABI, internal to the module. What is new is the function
// around them, which counts the steps, turns the states' buffers and calls the stages.
//
// Iterations. Stages that do not depend on each other (two directions, two layers of a pipeline) form a phase. A
// phase is cut into 64 parts, whatever the numbers of iterations of its stages are, and the kernel's iterations are
//
//   (step * phases + phase) * 64 + part
//
// Parts of one phase may run at the same time on several threads, phases one after another: the attribute `phase` says
// so to the runtime, which forks and joins its threads for each phase within the one launch. A thread that runs alone
// gets all iterations in one call and loops here.
//
// A part of a stage is always the same range of its iterations, so results do not depend on the threads.
//
// Chains. A direction of a bidirectional LSTM knows nothing of the other in any step (loop::findChains).
// A thread that runs alone runs one chain after the other, all steps of each: the second-level cache then holds the
// weights of one, as many as fit, and products sweep them forwards and backwards in turn (CpuContraction.cpp).
//
// States. Now and next are pointers, which change roles with each step: the state of the last step is written to the
// final buffer, the ones before it alternate between that and the spare one; the first step reads the initial buffer in
// place.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuRecurrence.h"
#include "codegen/cpu/CpuKernels.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t parts = 64;       // of a phase
static constexpr int64_t cheaperForks = 4; // a fork between steps finds the threads awake: less work is worth it

static constexpr llvm::StringLiteral configAttr = "config", iterationsAttr = "iterations", grainAttr = "grain",
                                     scratchAttr = "scratch";

loop::RecurrenceOp cpu::getRecurrence(loop::KernelOp kernel) {
  auto all = kernel.getBlock().getOps<loop::RecurrenceOp>();
  return all.empty() ? loop::RecurrenceOp() : *all.begin();
}

static SmallVector<loop::FusedOp> stagesOf(Region &region) {
  return region.empty() ? SmallVector<loop::FusedOp>() : llvm::to_vector(region.front().getOps<loop::FusedOp>());
}

SmallVector<loop::FusedOp> cpu::getStages(loop::RecurrenceOp op) {
  SmallVector<loop::FusedOp> stages = stagesOf(op.getBody());
  stages.append(stagesOf(op.getOtherwise()));
  return stages;
}

//===----------------------------------------------------------------------===//
// Stages as kernels
//===----------------------------------------------------------------------===//

loop::KernelOp cpu::createStageKernel(loop::KernelOp kernel, loop::FusedOp stage) {
  OpBuilder b(kernel.getContext());
  auto recurrence = stage->getParentOfType<loop::RecurrenceOp>();
  SmallVector<Attribute> symbols(kernel.getSymbols().getValue());
  symbols.push_back(b.getStringAttr(loop::RecurrenceOp::stepSymbol));
  auto own = loop::KernelOp::create(
      b, kernel.getLoc(), kernel.getSymName(), b.getArrayAttr(symbols), int64_t(stage.getParallel()),
      ArrayRef<int64_t>(), stage->getAttrOfType<DictionaryAttr>(configAttr),
      stage->getAttrOfType<ExprAttr>(iterationsAttr), stage->getAttrOfType<ExprAttr>(grainAttr),
      stage->getAttrOfType<ExprAttr>(scratchAttr), ExprAttr(), ExprAttr(), ExprAttr(), StringAttr());
  Block &block = own.getBody().emplaceBlock();
  IRMapping mapping;
  for (ArrayRef<BlockArgument> arguments : {ArrayRef<BlockArgument>(kernel.getBlock().getArguments()),
                                            ArrayRef<BlockArgument>(recurrence.getBody().front().getArguments())})
    for (BlockArgument argument : arguments)
      mapping.map(argument, block.addArgument(argument.getType(), argument.getLoc()));
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  for (Operation &op : stage.getBody().front())
    body.clone(op, mapping);
  SmallVector<Value> read, written;
  loop::collectAccesses(own, read, written);
  SmallVector<int64_t> numbers;
  for (BlockArgument argument : block.getArguments())
    if (llvm::is_contained(written, argument))
      numbers.push_back(int64_t(argument.getArgNumber()));
  own.setArgumentsWritten(numbers);
  return own;
}

/// Planning rewrites nodes: the stage takes over what the kernel made of them.
static void adopt(loop::FusedOp stage, loop::KernelOp own, loop::KernelOp kernel, loop::RecurrenceOp recurrence) {
  IRMapping mapping;
  SmallVector<Value> originals(kernel.getBlock().getArguments());
  llvm::append_range(originals, recurrence.getBody().front().getArguments());
  mapping.map(own.getBlock().getArguments(), originals);
  Block &body = stage.getBody().front();
  body.clear();
  OpBuilder b = OpBuilder::atBlockEnd(&body);
  for (Operation &op : own.getBlock())
    b.clone(op, mapping);
  stage.setParallel(own.getParallel());
  stage->setAttr(configAttr, own.getConfigAttr());
  stage->setAttr(iterationsAttr, own.getIterationsAttr());
  stage->setAttr(grainAttr, own.getGrainAttr());
  stage->setAttr(scratchAttr, own.getScratchAttr());
}

static Expr exprOf(loop::FusedOp stage, StringRef name) { return stage->getAttrOfType<ExprAttr>(name); }

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// Numbers the phases: a stage comes after those whose memory it touches. Returns how many there are.
static int64_t assignPhases(ArrayRef<loop::FusedOp> stages) {
  struct Accesses {
    SmallVector<Value> read, written;
    int64_t phase = 0;
  };
  auto meet = [](ArrayRef<Value> a, ArrayRef<Value> b) {
    return llvm::any_of(a, [&](Value v) { return llvm::is_contained(b, v); });
  };
  std::vector<Accesses> before;
  int64_t phases = 0;
  for (loop::FusedOp stage : stages) {
    Accesses own;
    loop::collectAccesses(stage, own.read, own.written);
    for (const Accesses &other : before)
      if (meet(own.written, other.written) || meet(own.written, other.read) || meet(own.read, other.written))
        own.phase = std::max(own.phase, other.phase + 1);
    phases = std::max(phases, own.phase + 1);
    stage->setAttr(loop::phaseAttr, Builder(stage.getContext()).getI64IntegerAttr(own.phase));
    before.push_back(std::move(own));
  }
  return phases;
}

static int64_t phaseOf(loop::FusedOp stage) { return stage->getAttrOfType<IntegerAttr>(loop::phaseAttr).getInt(); }

LogicalResult cpu::planRecurrence(loop::KernelOp kernel, loop::RecurrenceOp op) {
  MLIRContext *context = kernel.getContext();
  Expr one = Expr::constant(context, 1), scratch = Expr::constant(context, 0), grain = Expr::constant(context, parts);
  for (loop::FusedOp stage : getStages(op)) {
    OwningOpRef<loop::KernelOp> own = createStageKernel(kernel, stage);
    if (failed(planKernel(*own)))
      return failure();
    adopt(stage, *own, kernel, op);
    scratch = Expr::max(scratch, exprOf(stage, scratchAttr));
  }
  SmallVector<loop::FusedOp> stages = stagesOf(op.getBody());
  int64_t phases = assignPhases(stages);
  for (loop::FusedOp stage : stages) { // the stage with most work decides how many threads pay
    Expr count = Expr::max(exprOf(stage, iterationsAttr), one);
    Expr worth = (exprOf(stage, grainAttr) * (parts / cheaperForks)).floorDiv(count);
    grain = Expr::min(grain, Expr::max(worth, Expr::constant(context, parts).floorDiv(count)));
  }
  SymbolRanges ranges;
  for (Attribute name : kernel.getSymbols())
    ranges[cast<StringAttr>(name).str()] = {.min = 0};
  auto set = [&](Expr expr) { return ExprAttr(expr.simplify(ranges)); };
  kernel.setIterationsAttr(set(Expr::max(Expr(op.getSteps()) * phases, one) * parts));
  kernel->setAttr(loop::phaseAttr, set(Expr::constant(context, parts)));
  kernel.setGrainAttr(set(Expr::max(grain, one)));
  kernel.setScratchAttr(set(scratch));
  kernel.setConfigAttr(Builder(context).getDictionaryAttr({}));
  return success();
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

namespace {

/// The function around the stages.
class RecurrenceEmission {
public:
  RecurrenceEmission(KernelEmitter &e, loop::RecurrenceOp op, ArrayRef<std::string> names, const KernelFrame &frame)
      : e(e), in(e.invariants), op(op), names(names), frame(frame), steps(e.emitExpr(op.getSteps(), {})),
        arguments(int64_t(e.kernel.getBlock().getNumArguments())), symbols(int64_t(e.kernel.getSymbols().size())),
        stages(stagesOf(op.getBody())) {}
  void emit();

private:
  /// Stages that may run at the same time, each with the number of its iterations.
  struct Member {
    StringRef name;
    Value iterations;
  };
  void copyFrame();
  void emitPhases(int64_t phases);
  void emitChain(ArrayRef<loop::FusedOp> chain);
  void emitStep(Value step, Value lower, Value upper, int64_t phases);
  void turnStates(Value step);
  void emitPhase(ArrayRef<Member> members, Value lower, Value upper);
  void call(StringRef stage, Value begin, Value end);
  Member memberOf(loop::FusedOp stage, size_t number) {
    return {names[number], e.emitExpr(exprOf(stage, iterationsAttr), {})};
  }
  Value clamp(Value value, Value upper) { return in.min(in.max(value, e.constant(0)), upper); }
  Value slot(Value array, int64_t index) {
    return e.getAddress(array, e.builder.getI64Type(), e.constant(index)); // pointers and symbols are 8 bytes
  }
  Type pointerType() { return LLVM::LLVMPointerType::get(e.builder.getContext()); }
  Value pointerOf(Value argument) {
    int64_t number = cast<BlockArgument>(argument).getArgNumber();
    return LLVM::LoadOp::create(e.builder, e.loc, pointerType(), slot(frame.buffers, number));
  }

  KernelEmitter &e;
  codegen::InvariantBuilder &in;
  loop::RecurrenceOp op;
  ArrayRef<std::string> names;
  KernelFrame frame;
  Value steps;
  int64_t arguments, symbols;
  SmallVector<loop::FusedOp> stages;
  Value ownBuffers, ownSymbols;             // what the stages are given
  SmallVector<std::array<Value, 3>> states; // initial, spare, final
};

} // namespace

void RecurrenceEmission::copyFrame() {
  int64_t count = int64_t(op.getInitial().size());
  ownBuffers = e.createStackSlot(8 * (arguments + 2 * count));
  ownSymbols = e.createStackSlot(8 * (symbols + 1));
  for (int64_t i = 0; i < arguments; ++i) {
    Value pointer = LLVM::LoadOp::create(e.builder, e.loc, pointerType(), slot(frame.buffers, i));
    LLVM::StoreOp::create(e.builder, e.loc, pointer, slot(ownBuffers, i));
  }
  for (int64_t i = 0; i < symbols; ++i) {
    Value value = LLVM::LoadOp::create(e.builder, e.loc, e.builder.getI64Type(), slot(frame.symbols, i));
    LLVM::StoreOp::create(e.builder, e.loc, value, slot(ownSymbols, i));
  }
  for (int64_t k = 0; k < count; ++k)
    states.push_back({pointerOf(op.getInitial()[k]), pointerOf(op.getSpare()[k]), pointerOf(op.getFinals()[k])});
}

// The last step writes the final buffer; before it, final and spare alternate.
void RecurrenceEmission::turnStates(Value step) {
  LLVM::StoreOp::create(e.builder, e.loc, step, slot(ownSymbols, symbols));
  Value left = in.sub(in.sub(steps, step), e.constant(1)), zero = e.constant(0);
  Value writesFinal = in.compare(arith::CmpIPredicate::eq, in.mod(left, e.constant(2), true), zero);
  Value isFirst = in.compare(arith::CmpIPredicate::eq, step, zero);
  for (auto [k, state] : llvm::enumerate(states)) {
    auto [initial, spare, last] = state;
    Value written = in.get<arith::SelectOp>(writesFinal, last, spare);
    Value other = in.get<arith::SelectOp>(writesFinal, spare, last);
    Value read = in.get<arith::SelectOp>(isFirst, initial, other);
    LLVM::StoreOp::create(e.builder, e.loc, read, slot(ownBuffers, arguments + 2 * int64_t(k)));
    LLVM::StoreOp::create(e.builder, e.loc, written, slot(ownBuffers, arguments + 2 * int64_t(k) + 1));
  }
}

void cpu::callKernel(KernelEmitter &e, StringRef name, const KernelFrame &frame) {
  Type i32 = e.builder.getI32Type();
  auto callee = FlatSymbolRefAttr::get(e.builder.getContext(), name);
  Value fault = LLVM::CallOp::create(e.builder, e.loc, TypeRange(i32), callee,
                                     ValueRange{frame.buffers, frame.symbols, frame.begin, frame.end, frame.scratch})
                    .getResult();
  Value before = LLVM::LoadOp::create(e.builder, e.loc, i32, frame.errorFlag);
  Value both = arith::OrIOp::create(e.builder, e.loc, before, fault);
  LLVM::StoreOp::create(e.builder, e.loc, both, frame.errorFlag);
}

void RecurrenceEmission::call(StringRef stage, Value begin, Value end) {
  callKernel(e, stage, {ownBuffers, ownSymbols, begin, end, frame.scratch, frame.errorFlag});
}

// Parts [lower, upper) of the phase: their share of the iterations of all members together.
void RecurrenceEmission::emitPhase(ArrayRef<Member> members, Value lower, Value upper) {
  Value all = e.constant(0);
  for (const Member &member : members)
    all = in.add(all, member.iterations);
  Value begin = in.floorDiv(in.mul(lower, all), e.constant(parts), true);
  Value end = in.floorDiv(in.mul(upper, all), e.constant(parts), true);
  Value first = e.constant(0);
  for (const Member &member : members) {
    Value from = clamp(in.sub(begin, first), member.iterations), to = clamp(in.sub(end, first), member.iterations);
    e.emitIf(in.compare(arith::CmpIPredicate::slt, from, to), [&] { call(member.name, from, to); });
    first = in.add(first, member.iterations);
  }
}

void RecurrenceEmission::emitStep(Value step, Value lower, Value upper, int64_t phases) {
  turnStates(step);
  for (int64_t phase = 0; phase < phases; ++phase) {
    SmallVector<Member> members;
    for (auto [number, stage] : llvm::enumerate(stages))
      if (phaseOf(stage) == phase)
        members.push_back(memberOf(stage, number));
    Value first = e.constant(phase * parts), all = e.constant(parts);
    emitPhase(members, clamp(in.sub(lower, first), all), clamp(in.sub(upper, first), all));
  }
}

void RecurrenceEmission::emitPhases(int64_t phases) {
  Value size = e.constant(phases * parts);
  Value begin = in.floorDiv(frame.begin, size, true);
  Value end = in.min(in.floorDiv(in.add(frame.end, in.sub(size, e.constant(1))), size, true), steps);
  e.forEach(begin, end, 1, [&](Value step) {
    Value first = in.mul(step, size);
    emitStep(step, in.max(in.sub(frame.begin, first), e.constant(0)), in.min(in.sub(frame.end, first), size), phases);
  });
}

// All steps of the chain.
void RecurrenceEmission::emitChain(ArrayRef<loop::FusedOp> chain) {
  e.forEach(e.constant(0), steps, 1, [&](Value step) {
    turnStates(step);
    for (loop::FusedOp stage : chain) {
      Member member = memberOf(stage, size_t(llvm::find(stages, stage) - stages.begin()));
      call(member.name, e.constant(0), member.iterations);
    }
  });
}

void RecurrenceEmission::emit() {
  int64_t phases = 1;
  for (loop::FusedOp stage : stages)
    phases = std::max(phases, phaseOf(stage) + 1);
  copyFrame();
  SmallVector<SmallVector<loop::FusedOp>> chains = loop::findChains(op);
  if (chains.size() > 1) {
    Value all = in.mul(steps, e.constant(phases * parts));
    Value isAlone = in.logicalAnd(in.compare(arith::CmpIPredicate::eq, frame.begin, e.constant(0)),
                                  in.compare(arith::CmpIPredicate::sge, frame.end, all));
    e.emitIf(
        isAlone, [&] { llvm::for_each(chains, [&](ArrayRef<loop::FusedOp> chain) { emitChain(chain); }); },
        [&] { emitPhases(phases); });
  } else {
    emitPhases(phases);
  }
  SmallVector<loop::FusedOp> otherwise = stagesOf(op.getOtherwise());
  if (otherwise.empty())
    return;
  Value isFirst = in.compare(arith::CmpIPredicate::eq, frame.begin, e.constant(0));
  Value isNone = in.compare(arith::CmpIPredicate::sle, steps, e.constant(0));
  e.emitIf(in.logicalAnd(isNone, isFirst), [&] {
    for (auto [number, stage] : llvm::enumerate(otherwise)) {
      Member member = memberOf(stage, stages.size() + number);
      call(member.name, e.constant(0), member.iterations);
    }
  });
}

void cpu::emitRecurrence(KernelEmitter &emitter, loop::RecurrenceOp op, ArrayRef<std::string> stages,
                         const KernelFrame &frame) {
  RecurrenceEmission(emitter, op, stages, frame).emit();
}
