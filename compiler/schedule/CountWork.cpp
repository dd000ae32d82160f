//===- CountWork.cpp - what a kernel computes and moves -------------------===//
//
// For reports, gates and cost estimates, each kernel states its floating-point operations and the bytes that it must
// read and write, as expressions of its symbols. An operation of a body counts once for each point of the domain
// that it runs on; a product's multiply-add counts as two. Of a buffer an access touches as many elements as the
// dims have points that its index uses, all accesses together at most the whole buffer: what a kernel
// reads again is expected in a cache. Buffers inside a kernel do not count. Of a recurrence it is also told what one
// step of a chain reads: the next one reads most of it again, since it waits for this one's results.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/NodeDims.h"
#include "compiler/schedule/Passes.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Recurrence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_COUNTWORK
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

class WorkCounter {
public:
  explicit WorkCounter(KernelOp kernel)
      : kernel(kernel), context(kernel.getContext()), flops(Expr::constant(context, 0)),
        steps(Expr::constant(context, 1)) {}

  void run() {
    for (Operation &op : kernel.getBlock())
      if (isNode(&op))
        countNode(&op);
      else if (auto recurrence = dyn_cast<RecurrenceOp>(op))
        countRecurrence(recurrence);
    SymbolRanges ranges;
    for (Attribute name : kernel.getSymbols())
      ranges[cast<StringAttr>(name).str()] = {0, std::numeric_limits<int64_t>::max()};
    kernel.setFlopsAttr(ExprAttr(flops.simplify(ranges)));
    kernel.setBytesReadAttr(ExprAttr(sum(read).simplify(ranges)));
    kernel.setBytesWrittenAttr(ExprAttr(sum(written).simplify(ranges)));
    if (readInStep.empty())
      return;
    kernel->setAttr(stepBytesReadAttr, ExprAttr(sum(readInStep).floorDiv(chains).simplify(ranges)));
    kernel->setAttr(stepsAttr, ExprAttr((steps * chains).simplify(ranges)));
  }

private:
  void countRecurrence(RecurrenceOp recurrence) {
    steps = recurrence.getSteps();
    chains = std::max<int64_t>(int64_t(findChains(recurrence).size()), 1);
    isInSteps = true;
    recurrence.getBody().walk([&](Operation *op) {
      if (isNode(op))
        countNode(op);
    });
  }

  /// Over how many points a node's operation runs: the dims that are summed over do not count in an epilogue, and of
  /// attention each region has dims of its own.
  Expr pointsOf(Operation *op, Operation *node, ArrayRef<Expr> domain) {
    auto attention = dyn_cast<AttentionOp>(node);
    if (!attention)
      return product(context, domain) * steps;
    Region *region = op->getParentRegion();
    while (region->getParentOp() != node)
      region = region->getParentOp()->getParentRegion();
    Expr points = product(context, domain.take_front(attention.getBatch())) * steps;
    Expr rows = domain[attention.getBatch()], keys = domain[attention.getBatch() + 1],
         d = domain[attention.getBatch() + 2], e = domain[attention.getBatch() + 3];
    if (region == &attention.getScore())
      return points * rows * keys;
    if (region == &attention.getEpilogue())
      return points * rows * e;
    return points * (region == &attention.getQ() ? rows * d : region == &attention.getK() ? keys * d : keys * e);
  }

  void countNode(Operation *node) {
    SmallVector<Expr> domain = getDomain(node);
    if (auto contraction = dyn_cast<ContractionOp>(node)) {
      flops = flops + product(context, domain) * steps * 2;
      domain.truncate(domain.size() - contraction.getK());
    } else if (auto attention = dyn_cast<AttentionOp>(node)) {
      // Scores over d, the softmax's maximum, difference, exponential and sum, results over e.
      size_t batch = attention.getBatch();
      Expr scores = product(context, ArrayRef<Expr>(domain).take_front(batch + 2));
      flops = flops + scores * steps * ((domain[batch + 2] + domain[batch + 3]) * 2 + 4);
    }
    llvm::SmallPtrSet<Operation *, 16> outer; // of what a reduction has summed up: once for each point that it keeps
    Expr kept = product(context, ArrayRef(domain).take_front(getKeptCount(node))) * steps;
    node->walk([&](Operation *op) {
      bool isOuter = isa<ReductionOp>(node) && llvm::any_of(op->getOperands(), [&](Value operand) {
                       Operation *source = operand.getDefiningOp();
                       return source && (isa<ReduceOp, ArgReduceOp>(source) || outer.contains(source));
                     });
      if (isOuter)
        outer.insert(op);
      if (isa<LoadOp, StoreOp>(op))
        countAccess(op, getDomain(node));
      else if (auto panels = dyn_cast<PanelsOp>(op))
        addRead(panels.getBuffer(), cast<BufferType>(panels.getBuffer().getType()).getElementCount(), false);
      else if (isFloatingPoint(op))
        flops = flops + (isOuter ? kept : pointsOf(op, node, domain));
    });
  }

  static bool isFloatingPoint(Operation *op) {
    if (isa<arith::ConstantOp, arith::SelectOp, YieldOp>(op) || op->getNumResults() != 1 || op->getNumRegions())
      return false;
    StringRef dialect = op->getName().getDialectNamespace();
    bool computes = dialect == "arith" || dialect == "math" || isa<ReduceOp, ArgReduceOp, RunningOp>(op);
    return computes && op->getNumOperands() && isa<FloatType>(op->getOperand(0).getType());
  }

  void countAccess(Operation *op, ArrayRef<Expr> domain) {
    Value buffer = isa<LoadOp>(op) ? cast<LoadOp>(op).getBuffer() : cast<StoreOp>(op).getBuffer();
    Expr index = prim::getExprs(op->getAttrOfType<ArrayAttr>("indices"))[0];
    // Where an operand decides the element, every point may touch another one.
    bool isIndirect = index.usesAny(isOperandSymbol);
    Expr touched = Expr::constant(context, 1);
    for (auto [dim, extent] : llvm::enumerate(domain))
      if (isIndirect || index.uses(dimName(dim)))
        touched = touched * extent;
    bool isOfStep = index.uses(RecurrenceOp::stepSymbol);
    if (isa<LoadOp>(op))
      addRead(buffer, touched, isOfStep);
    else
      add(written, buffer, isOfStep ? touched * steps : touched);
  }

  /// Elements that one step reads; `isOfStep`: each step others.
  void addRead(Value buffer, Expr elements, bool isOfStep) {
    add(read, buffer, isOfStep ? elements * steps : elements);
    if (isInSteps)
      add(readInStep, buffer, elements);
  }

  void add(llvm::MapVector<Value, Expr> &amounts, Value buffer, Expr elements) {
    if (!isa<BlockArgument>(buffer))
      return;
    auto [found, isNew] = amounts.insert({buffer, elements});
    if (!isNew)
      found->second = found->second + elements;
  }

  /// Bytes in all.
  Expr sum(const llvm::MapVector<Value, Expr> &amounts) {
    Expr bytes = Expr::constant(context, 0);
    for (const auto &[buffer, elements] : amounts) {
      auto type = cast<BufferType>(buffer.getType());
      Expr whole = type.getElementCount(); // 0: its size needs symbols that the kernel does not have
      bytes = bytes + (whole.isConstant(0) ? elements : Expr::min(whole, elements)) * type.getElementBytes();
    }
    return bytes;
  }

  KernelOp kernel;
  MLIRContext *context;
  Expr flops;
  Expr steps;         // how often a node runs
  int64_t chains = 1; // whose steps do not wait for each other's
  bool isInSteps = false;
  llvm::MapVector<Value, Expr> read, written, readInStep; // elements
};

struct CountWork : ptc::impl::CountWorkBase<CountWork> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<KernelOp>())
      WorkCounter(kernel).run();
  }
};

} // namespace
