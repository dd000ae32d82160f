//===- ConflictParts.cpp - what of a greedy choice's test is computed when -===//
#include "codegen/common/ConflictParts.h"
#include "codegen/common/KernelEmitter.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;

static constexpr int64_t most = 64; // lanes of any level

namespace {
enum Dependence : unsigned { OnCandidate = 1, OnChosen = 2, OnBoth = 3 };

using Values = SmallVector<Value>;
} // namespace

// Values that the op or its regions use and do not define.
static SetVector<Value> usedBy(Operation *op) {
  SetVector<Value> used(llvm::from_range, op->getOperands());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  return used;
}

static void addConditions(Value value, Values &conditions) {
  auto both = value.getDefiningOp<arith::AndIOp>();
  if (!both)
    return conditions.push_back(value);
  addConditions(both.getLhs(), conditions);
  addConditions(both.getRhs(), conditions);
}

ConflictParts::ConflictParts(loop::GreedyOp op) {
  Block &block = op.getConflict().front();
  std::string dim = dimName(loop::getDomain(op).size() - 1);
  DenseMap<Value, unsigned> dependences;
  dependences[block.getArgument(0)] = OnChosen;
  SmallVector<Operation *> pairs;
  SetVector<Value> read;
  Values conditions;
  for (Operation &inner : block) {
    if (auto yield = dyn_cast<loop::YieldOp>(inner)) {
      addConditions(yield.getValue(), conditions);
      break;
    }
    SetVector<Value> used = usedBy(&inner);
    unsigned on = loop::usesDim(&inner, dim) ? OnCandidate : 0;
    for (Value value : used)
      on |= dependences.lookup(value);
    for (Value result : inner.getResults())
      dependences[result] = on;
    if (on == OnBoth) {
      pairs.push_back(&inner);
      for (Value value : used)
        if (dependences.lookup(value) == OnChosen)
          read.insert(value);
    } else {
      (on == OnChosen ? other : own).push_back(&inner);
    }
  }
  // What the conditions of pairs compare.
  SmallVector<std::pair<Value, SetVector<Value>>> judged;
  for (Value condition : conditions) {
    unsigned on = dependences.lookup(condition);
    if (on == OnChosen)
      otherConditions.push_back(condition);
    else if (on != OnBoth)
      ownConditions.push_back(condition);
    else
      judged.emplace_back(condition, SetVector<Value>());
  }
  for (auto &[condition, values] : judged)
    for (Value value : usedBy(condition.getDefiningOp()))
      if (dependences.lookup(value) == OnBoth)
        values.insert(value);
  // A condition waits for those on values that it is computed from.
  DenseSet<Operation *> isEarly, isLate;
  for (auto &[condition, values] : judged) {
    DenseSet<Operation *> slice;
    SmallVector<Value> open{condition};
    while (!open.empty()) {
      Operation *defining = open.pop_back_val().getDefiningOp();
      if (!defining || defining->getBlock() != &block || !slice.insert(defining).second)
        continue;
      for (Value value : usedBy(defining))
        if (dependences.lookup(value) == OnBoth)
          open.push_back(value);
    }
    auto waitsFor = [&](auto &entry) {
      return llvm::any_of(
          entry.second, [&](Value value) { return !values.contains(value) && slice.contains(value.getDefiningOp()); });
    };
    bool waits = llvm::any_of(judged, waitsFor);
    (waits ? lateConditions : earlyConditions).push_back(condition);
    (waits ? isLate : isEarly).insert_range(slice);
  }
  for (Operation *pair : pairs)
    if (isEarly.contains(pair))
      early.push_back(pair);
    else if (isLate.contains(pair))
      late.push_back(pair);
  remembered.assign(read.begin(), read.end());
}

Expr ConflictParts::getOffset(size_t i, Expr count) const {
  int64_t bytes = 0;
  for (Value value : ArrayRef(remembered).take_front(i))
    bytes += KernelEmitter::getMemoryType(value.getType()).getIntOrFloatBitWidth() / 8;
  return count.ceilDiv(most) * (most * bytes);
}
