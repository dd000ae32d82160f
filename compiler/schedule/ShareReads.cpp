//===- ShareReads.cpp - pointwise groups side by side in one kernel -------===//
//
// Groups that do not depend on each other and read one value (the rotations of an attention's queries and keys, the
// copies of its keys and values into results) run as one kernel: for each point of common outer dims, one node after
// the other. What they read comes into cache once, and one launch does what several did.
//
// Points of such groups may be paired in any way. They are paired by the place in the value: with each node's dims in
// the order in which they walk it, far to near, common are the first ones that have equal extents and steps. A node's
// innermost dim stays its own, so that its runs do.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Scheduler.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

/// A dim of a node, and how far one step of it moves in the value.
struct Step {
  unsigned dim;
  Expr extent, step;
};

/// Dims that the group could share, far to near; nothing if it reads the value in no such order.
std::optional<SmallVector<Step>> getSteps(const Group &group, Value buffer, const FusionContext &context) {
  Expr address;
  Operation *reader = nullptr;
  for (Operation *node : group.nodes)
    node->walk([&](LoadOp load) {
      if (!address && load.getBuffer() == buffer && load.getIndexOperands().empty()) {
        address = prim::getExprs(load.getIndices())[0];
        reader = node;
      }
    });
  if (!address)
    return std::nullopt;
  SmallVector<Expr> domain = getDomain(reader);
  bool isFixed = group.nodes.size() > 1;
  SmallVector<Step> steps;
  for (unsigned dim = 0; dim < (isFixed ? group.outer.size() : domain.size() - 1); ++dim) {
    std::string name = dimName(dim);
    Expr step = address.uses(name) ? address.coefficientOf(name) : Expr::constant(buffer.getContext(), 0);
    if (!step || step.usesAny(isDimSymbol))
      return std::nullopt;
    steps.push_back({dim, domain[dim], step});
  }
  if (!isFixed)
    llvm::stable_sort(steps, [&](const Step &a, const Step &b) {
      return a.step.evaluate(context.hints).value_or(0) > b.step.evaluate(context.hints).value_or(0);
    });
  return steps;
}

/// Whether each node's work is little: at the hints, or whatever the sizes where nothing is shared.
bool isSmall(const Group &group, bool hasOuter, const FusionContext &context) {
  return llvm::all_of(group.nodes, [&](Operation *node) {
    Expr work = product(node->getContext(), getDomain(node));
    return (hasOuter ? work.evaluate(context.hints).value_or(0) : work.range(context.symbols).max) <= smallWork;
  });
}

/// How many of the dims are common.
unsigned countCommon(ArrayRef<Step> a, ArrayRef<Step> b) {
  unsigned count = 0;
  while (count < std::min(a.size(), b.size()) && a[count].extent == b[count].extent && a[count].step == b[count].step &&
         !a[count].step.isConstant(0))
    ++count;
  return count;
}

} // namespace

FusionPlan loop::canRunBeside(const Group &first, const Group &second, const FusionContext &context) {
  for (const Group *group : {&first, &second})
    for (Operation *node : group->nodes)
      if (group->isOpaque || !isa<PointwiseOp>(node) || getDomain(node).empty())
        return {};
  if (first.nodes.size() + second.nodes.size() > mostBeside)
    return FusionPlan::no("the kernel would have too many nodes");
  FusionPlan best;
  int64_t largest = -1;
  for (Value buffer : first.read) {
    bool isFixed = isa_and_present<WeightOp, ConstantOp>(buffer.getDefiningOp());
    if (isFixed || !second.reads(buffer))
      continue;
    if (best.reason.empty())
      best.reason = "they walk what both read in different orders";
    auto a = getSteps(first, buffer, context), b = getSteps(second, buffer, context);
    if (!a || !b)
      continue;
    SmallVector<Expr> outer;
    for (const Step &step : ArrayRef(*a).take_front(countCommon(*a, *b)))
      outer.push_back(step.extent);
    int64_t points = product(buffer.getContext(), outer).evaluate(context.hints).value_or(0);
    int64_t size = cast<BufferType>(buffer.getType()).getElementCount().evaluate(context.hints).value_or(0);
    bool areSmall = isSmall(first, !outer.empty(), context) && isSmall(second, !outer.empty(), context);
    if (!areSmall && outer.empty())
      continue;
    if (!areSmall && points < minParallelPoints) {
      best.reason = "too few points are shared to keep the cores busy";
    } else if (size > largest) {
      largest = size;
      best.kind = FusionKind::Beside;
      best.buffer = buffer;
      best.outer = outer;
    }
  }
  return best;
}

void loop::runBeside(Group &first, const Group &second, const FusionPlan &plan, const FusionContext &context) {
  for (const Group *group : {static_cast<const Group *>(&first), &second})
    if (group->nodes.size() == 1) {
      SmallVector<Step> steps = *getSteps(*group, plan.buffer, context);
      auto dimOf = [](const Step &step) { return step.dim; };
      bringForward(group->nodes[0], llvm::map_to_vector(ArrayRef(steps).take_front(plan.outer.size()), dimOf),
                   context.symbols);
    }
  first.nodes.append(second.nodes);
  first.outer = plan.outer;
}
