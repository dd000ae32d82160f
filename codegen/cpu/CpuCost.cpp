//===- CpuCost.cpp - along which dim lanes should run ---------------------===//
//
// Lanes can run along any dim of a node, at very different prices: an access whose index has coefficient 1 there is
// one vector load, one that does not use the dim is a broadcast, a coefficient s up to 4 is s loads and their merging,
// any other is a gather of as many loads as there are lanes, but for runs that take turns (a channel shuffle), which
// are short vectors, and for what is turned in registers (NodeSquares.cpp). What follows a reduction counts once for
// all of its points. The estimate adds this up for one point of the domain, for sixteen lanes, and divides by the part
// of the lanes that the dim's extent fills. Scalar code is one more candidate. Absolute values matter only for the
// grain.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Interleaving.h"
#include "codegen/common/ReductionSteps.h"
#include "codegen/common/Strides.h"
#include "codegen/cpu/CpuPlan.h"
#include "codegen/cpu/RowSort.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ToldNumbers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr double lanes = 16;
static constexpr int64_t registerLanes = 8; // of 32 bits, of the narrowest level that is in use
static constexpr int64_t unknownExtent = 1024;

namespace {
enum class AccessKind { Uniform, Contiguous, Grouped, Interleaved, Turned, Split, Strided, Indexed };

/// How the lanes of a dim see an access.
struct LaneAccess {
  AccessKind kind;
  int64_t stride = 1;
};

/// Values of a body that differ between the lanes of a dim; of a reduction what follows it, once for `points` points.
struct LaneAnalysis {
  int64_t number;            // -1: there is none
  int64_t turned = -1;       // a dim that accesses may follow instead: they are turned in registers
  bool alignsVectors = true; // what is the same in each whole vector does not vary
  std::string dim = dimName(number);
  SymbolRanges ranges = {}; // of the dims
  llvm::DenseSet<Value> varying;
  llvm::DenseSet<Operation *> once;
  double points = 1;

  bool varies(Value value) const { return varying.contains(value); }
  bool anyVaries(ValueRange values) const {
    return llvm::any_of(values, [&](Value value) { return varies(value); });
  }
  LaneAccess classify(Expr index, ValueRange operands) const {
    if (anyVaries(operands))
      return {AccessKind::Indexed};
    if (!index.uses(dim))
      return {AccessKind::Uniform};
    Expr coefficient = index.coefficientOf(dim), other = turned >= 0 ? index.coefficientOf(dimName(turned)) : Expr();
    if (other && other.isConstant(1))
      return {AccessKind::Turned};
    auto block = coefficient || !alignsVectors ? std::nullopt : codegen::findStepInBlocks(index, number, registerLanes);
    if (block)
      return {*block ? AccessKind::Contiguous : AccessKind::Uniform};
    if (!coefficient && alignsVectors && codegen::findGroupedLanes(index, number, registerLanes, ranges))
      return {AccessKind::Grouped};
    if (!coefficient)
      return {codegen::findInterleaving(index, number) ? AccessKind::Interleaved : AccessKind::Indexed};
    int64_t stride = coefficient.asConstant().value_or(0);
    if (stride == 1 || stride == -1)
      return {AccessKind::Contiguous};
    return {stride >= 2 && stride <= codegen::mostSplitStride ? AccessKind::Split : AccessKind::Strided, stride};
  }
};
} // namespace

static double accessCost(LaneAccess access, bool isStore) {
  switch (access.kind) {
  case AccessKind::Uniform:
    return 1 / lanes;
  case AccessKind::Contiguous:
    return 2 / lanes;
  case AccessKind::Grouped:
    return isStore ? 3 : 3 / lanes;
  case AccessKind::Interleaved:
    return isStore ? 3 : 6 / lanes;
  case AccessKind::Turned:
    return 6 / lanes;
  case AccessKind::Split:
    return isStore ? 2.5 : 3 * double(access.stride) / lanes;
  case AccessKind::Strided:
    return isStore ? 2.5 : 1.5;
  case AccessKind::Indexed:
    return isStore ? 3 : 2;
  }
  llvm_unreachable("all kinds are above");
}

static double arithmeticCost(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (loop::isNumber(op))
    return 0;
  if (isa<arith::DivFOp, math::SqrtOp, math::RsqrtOp>(op))
    return 4;
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
    return 10;
  if (name.starts_with("math.") && !isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::FmaOp>(op))
    return 16;
  return 1;
}

// Marks the op's result as varying if it is, and returns the cost of one point.
static double visit(Operation *op, LaneAnalysis &analysis, bool isVector) {
  bool varies = analysis.anyVaries(op->getOperands());
  double cost = 0;
  if (auto load = dyn_cast<loop::LoadOp>(op)) {
    LaneAccess access = analysis.classify(Expr(cast<ExprAttr>(load.getIndices()[0])), load.getIndexOperands());
    varies = access.kind != AccessKind::Uniform;
    cost = isVector ? accessCost(access, false) : 1;
  } else if (auto store = dyn_cast<loop::StoreOp>(op)) {
    LaneAccess access = analysis.classify(Expr(cast<ExprAttr>(store.getIndices()[0])), store.getIndexOperands());
    cost = isVector ? accessCost(access, true) : 1;
  } else if (auto index = dyn_cast<loop::IndexOp>(op)) {
    varies |= index.getExpr().uses(analysis.dim);
    cost = loop::isNumber(op) ? 0 : isVector ? 2 / lanes : 1;
  } else if (auto masked = dyn_cast<loop::MaskedOp>(op)) {
    for (Attribute condition : masked.getConditions())
      varies |= Expr(cast<ExprAttr>(condition)).uses(analysis.dim);
    cost = isVector ? (varies ? 3 : 2) / lanes : 1;
  } else if (isa<loop::ArgReduceOp>(op)) {
    cost = isVector ? 4 / lanes : 3;
  } else if (op->getNumRegions() == 0) {
    cost = arithmeticCost(op) * (isVector ? 1 / lanes : 1);
    if (isVector && !varies)
      cost = std::min(cost, 1 / lanes); // once for all lanes, and often once for the loop
  }
  if (varies)
    for (Value result : op->getResults())
      analysis.varying.insert(result);
  return cost;
}

static double visitAll(Region &region, LaneAnalysis &analysis, bool isVector) {
  double cost = 0;
  for (Operation &op : region.front()) {
    double own = 0;
    for (Region &nested : op.getRegions()) {
      own += visitAll(nested, analysis, isVector);
      auto *last = nested.front().empty() ? nullptr : &nested.front().back();
      if (isa_and_nonnull<loop::YieldOp>(last) && analysis.anyVaries(last->getOperands()))
        for (Value result : op.getResults())
          analysis.varying.insert(result);
    }
    own += visit(&op, analysis, isVector);
    cost += analysis.once.contains(&op) ? own / analysis.points : own;
  }
  return cost;
}

static double sizeOf(ArrayRef<Expr> extents) {
  double points = 1;
  for (Expr extent : extents)
    points *= double(std::max<int64_t>(extent.asConstant().value_or(unknownExtent), 1));
  return points;
}

double cpu::estimatePoint(Operation *node, int64_t dim, int64_t turned) {
  SmallVector<Expr> domain = loop::getDomain(node);
  LaneAnalysis analysis{.number = dim, .turned = turned, .ranges = codegen::getWholeRanges(node)};
  auto reduction = dyn_cast<loop::ReductionOp>(node);
  if (reduction) {
    codegen::BodyParts parts = codegen::splitBody(reduction.getBody().front());
    analysis.once.insert_range(parts.after);
    for (Operation *before : parts.before)
      analysis.once.erase(before);
    analysis.points = sizeOf(ArrayRef(domain).take_back(reduction.getReduced()));
  }
  double cost = 0;
  for (Region &region : node->getRegions())
    cost += visitAll(region, analysis, dim >= 0);
  if (auto sort = dyn_cast<loop::SortOp>(node); sort && dim >= 0)
    cost += (7 * double(Expr(sort.getKept()).getValue()) + 8) / lanes; // LaneSelection.cpp
  else if (isa<loop::SortOp, loop::GreedyOp>(node))
    cost += 64; // about n log n steps a row
  cost = std::max(cost, 1 / lanes) * 16;
  if (dim < 0)
    return cost;
  int64_t extent = std::max<int64_t>(domain[dim].asConstant().value_or(unknownExtent), 1);
  double filled = double(extent) / double(llvm::alignTo(uint64_t(extent), uint64_t(lanes)));
  if (extent < int64_t(lanes)) // narrower vectors are used then
    filled = double(extent) / double(llvm::PowerOf2Ceil(uint64_t(extent))) * double(extent) / lanes;
  cost /= std::max(filled, 1 / lanes);
  int64_t kept = reduction ? int64_t(domain.size()) - int64_t(reduction.getReduced()) : dim + 1;
  if (dim >= kept) {
    double horizontal = 0; // once behind the loops of all reduced dims
    node->walk([&](Operation *op) {
      horizontal += isa<loop::ReduceOp>(op) ? 14 : isa<loop::ArgReduceOp>(op) ? 40 : 0;
    });
    cost += horizontal * 16 / analysis.points;
  }
  return cost;
}

bool cpu::gathersAlong(Operation *node, int64_t dim) {
  LaneAnalysis analysis{.number = dim, .ranges = codegen::getWholeRanges(node)};
  WalkResult result = node->walk([&](loop::LoadOp load) {
    switch (analysis.classify(Expr(cast<ExprAttr>(load.getIndices()[0])), {}).kind) {
    case AccessKind::Uniform:
    case AccessKind::Contiguous:
    case AccessKind::Grouped:
    case AccessKind::Split:
      return WalkResult::advance();
    default:
      return WalkResult::interrupt();
    }
  });
  return result.wasInterrupted();
}

bool cpu::canVectorize(Operation *node, int64_t dim) {
  int64_t rank = int64_t(loop::getDomain(node).size());
  if (auto sort = dyn_cast<loop::SortOp>(node))
    return selectsInLanes(sort, dim);
  if (isa<loop::GreedyOp>(node))
    return false;
  if (isa<loop::ScanOp>(node))
    return dim != rank - 1;
  auto scatter = dyn_cast<loop::ScatterOp>(node);
  if (!scatter || dim < int64_t(scatter.getIndependent()))
    return true;
  if (dim != rank - 1)
    return false;
  // Points of the innermost dim do not meet where each store moves along it by itself.
  LaneAnalysis analysis{.number = dim, .alignsVectors = false};
  visitAll(scatter.getBody(), analysis, true);
  WalkResult result = node->walk([&](loop::StoreOp store) {
    AccessKind kind = analysis.classify(Expr(cast<ExprAttr>(store.getIndices()[0])), store.getIndexOperands()).kind;
    bool moves = kind == AccessKind::Contiguous || kind == AccessKind::Split || kind == AccessKind::Strided;
    return moves ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}
