//===- CpuContractionKernel.cpp - the products of a kernel ----------------===//
//
// A kernel has one product, or several that are cut into the same tasks, of which later ones read what the earlier ones
// have put there. Pointwise nodes that read a product part by part (heads that are rotated) run behind each task, for
// the parts that it has computed. Nodes that share a product's rows (a norm) are a function of their own, which each
// task of whole rows calls for its rows: what their code keeps in registers is not in the way of the tile. So is a sum
// that reads columns in any rows (a depthwise convolution), which each task of whole columns calls for its parts of
// them.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuPlan.h"
#include "codegen/cpu/CpuTemplates.h"
#include "codegen/cpu/CpuWinograd.h"
#include "codegen/cpu/NodeEmitter.h"
#include "ir/loop/ColumnParts.h"
#include "ir/loop/Winograd.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t resultsOfTurn = 1 << 14; // of tasks of one product before those of the next of a kernel

/// The first of `count` parts that does not begin before the panel. Blocks are cut between parts: one lies inside of
/// the block, or outside.
static Value partAt(InvariantBuilder &i, const loop::ColumnParts &parts, Value count, Value panel) {
  Value columns = i.sub(i.mul(panel, i.constant(panelWidth)), i.constant(parts.first));
  Value part = i.floorDiv(i.max(columns, i.constant(0)), i.constant(parts.width), true);
  return i.min(part, count);
}

void ContractionEmission::emitBehind(const ContractionTask &task, Operation *node, loop::ContractionOp product) {
  std::optional<loop::ColumnParts> parts = loop::findColumnParts(product, node);
  if (!parts)
    return;
  SmallVector<Expr> domain = loop::getDomain(node);
  int64_t rowDims = int64_t(parts->rows.size()), vectorDim = chooseNodeVector(node, rowDims + 1);
  Value count = value(domain[size_t(rowDims)]);
  Value first = partAt(i, *parts, count, task.firstPanel), end = partAt(i, *parts, count, task.endPanel);
  NodeEmitter emitter(e, node);
  loop(i.constant(0), task.rows, 1, [&](Value row) {
    EmissionPoint point;
    point.dims.resize(size_t(rowDims) + 1);
    setDims(point, domain, 0, rowDims, i.add(task.firstRow, row));
    loop(first, end, 1, [&](Value part) {
      point.dims.back() = part;
      emitter.emit({point}, rowDims + 1, vectorDim);
    });
  });
  e.setDomain(f.domain);
}

/// `behind`: pointwise nodes of the kernel, each read a product's parts. `runBehind`: what shares its rows or columns;
/// null: nothing.
static LogicalResult emitContraction(KernelEmitter &emitter, loop::ContractionOp op, Value begin, Value end,
                                     ArrayRef<Operation *> behind, RunBehind runBehind) {
  // Parts of the op are rewritten for emission; other threads may be emitting the same kernel for another level.
  OpBuilder detached(op.getContext());
  OwningOpRef<loop::KernelOp> copy = cast<loop::KernelOp>(detached.clone(*emitter.kernel));
  for (auto [mine, original] : llvm::zip(copy->getBlock().getArguments(), emitter.kernel.getBlock().getArguments()))
    if (Value pointer = emitter.getPointer(original))
      emitter.setPointer(mine, pointer);
  for (auto [mine, original] :
       llvm::zip(copy->getBlock().getOps<loop::BufferOp>(), emitter.kernel.getBlock().getOps<loop::BufferOp>()))
    if (Value pointer = emitter.getPointer(original.getResult()))
      emitter.setPointer(mine.getResult(), pointer);
  SmallVector<Operation *> originals = getNodes(emitter.kernel);
  auto place = llvm::find(originals, op.getOperation()) - originals.begin();
  auto mine = cast<loop::ContractionOp>(getNodes(*copy)[size_t(place)]);
  emitter.setDomain(loop::getDomain(mine));
  loop::WinogradTile winograd = loop::getWinogradTile(mine);
  loop::WinogradDilations dilations = loop::getWinogradDilations(mine);
  ContractionForm form = winograd ? describeContraction(mine) : analyzeContraction(mine);
  if (form.m.isConstant(0) || form.n.isConstant(0))
    return success();
  if (form.rhs.panels)
    bindPanels(form, emitter.level, emitter.isStrict);
  if (winograd) {
    emitWinograd(emitter, analyzeWinograd(std::move(form), winograd, dilations), begin, end);
    return success();
  }
  ContractionEmission emission(emitter, form);
  if (form.isDot()) { // the tile takes bytes or bf16 and widens them itself
    for (Region *region : {&mine.getLhs(), &mine.getRhs()}) {
      auto yield = cast<loop::YieldOp>(region->front().getTerminator());
      Operation *widening = yield.getValue().getDefiningOp();
      yield->setOperand(0, widening->getOperand(0));
      widening->erase();
    }
  }
  std::optional<loop::ColumnParts> columns = findColumnsBehind(*copy);
  if (columns)
    emission.afterTask = [&](const ContractionTask &task) {
      Value count = emission.value(loop::getDomain(originals.back()).front());
      runBehind(partAt(emission.i, *columns, count, task.firstPanel),
                partAt(emission.i, *columns, count, task.endPanel));
    };
  else if (runBehind)
    emission.afterTask = [&](const ContractionTask &task) {
      runBehind(task.firstRow, emission.i.add(task.firstRow, task.rows));
    };
  else if (!behind.empty())
    emission.afterTask = [&](const ContractionTask &task) {
      for (Operation *node : behind)
        for (Operation *product : originals)
          if (isa<loop::ContractionOp>(product))
            emission.emitBehind(task, node, cast<loop::ContractionOp>(product));
    };
  emission.emit(begin, end);
  return success();
}

LogicalResult cpu::emitContractions(KernelEmitter &emitter, ArrayRef<Operation *> nodes, Value begin, Value end,
                                    RunBehind runBehind) {
  ArrayRef<Operation *> ops = nodes.take_while(llvm::IsaPred<loop::ContractionOp>),
                        behind = nodes.drop_front(ops.size());
  if (ops.size() == 1)
    return emitContraction(emitter, cast<loop::ContractionOp>(ops.front()), begin, end, behind, runBehind);
  // As many tasks of one as leave their results in the second-level cache, then the same of the next: weights stream in
  // long runs, and copies of rows serve several tasks.
  InvariantBuilder &in = emitter.invariants;
  ContractionForm form = analyzeContraction(cast<loop::ContractionOp>(ops.front()));
  Expr one = Expr::constant(form.op.getContext(), 1);
  Expr results = Expr::max(form.m.ceilDiv(form.blocks.m) * form.n.ceilDiv(form.blocks.n), one);
  Value turn = emitter.emitExpr(Expr::max((one * resultsOfTurn).floorDiv(results), one), {});
  Value turns = in.floorDiv(in.sub(in.add(in.sub(end, begin), turn), emitter.constant(1)), turn, true);
  bool isEmitted = true;
  emitter.forEach(emitter.constant(0), turns, 1, [&](Value number) {
    Value first = in.add(begin, in.mul(number, turn)), last = in.min(in.add(first, turn), end);
    for (Operation *op : ops)
      isEmitted &= succeeded(emitContraction(emitter, cast<loop::ContractionOp>(op), first, last,
                                             op == ops.back() ? behind : ArrayRef<Operation *>(), nullptr));
  });
  return success(isEmitted);
}
