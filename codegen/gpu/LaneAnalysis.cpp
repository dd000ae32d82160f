//===- LaneAnalysis.cpp - which points a thread may take together ---------===//
#include "codegen/gpu/LaneAnalysis.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t accessBytes = 16; // the widest load or store of a thread
static constexpr int64_t maxLanes = 8;     // more are registers without speed

LaneAnalysis::LaneAnalysis(Operation *node, int64_t number) : dim(dimName(number)) {
  for (auto [index, extent] : llvm::enumerate(loop::getDomain(node))) {
    ExprRange range{.min = 0};
    if (std::optional<int64_t> known = extent.asConstant())
      range.max = std::max<int64_t>(*known - 1, 0);
    ranges[dimName(index)] = range;
  }
  for (Region &region : node->getRegions())
    for (Operation &op : region.front())
      visit(&op, false);
}

void LaneAnalysis::visit(Operation *op, bool isConditional) {
  auto varies = [&](ValueRange values) { return llvm::any_of(values, [&](Value v) { return varying.contains(v); }); };
  bool result = varies(op->getOperands());
  auto see = [&](Value buffer, Expr index, ValueRange operands, Type type) {
    bool moves = index.uses(dim) || varies(operands);
    result |= moves;
    if (!moves)
      return;
    // Vectors of integers of a few bits would be packed in local memory.
    bool isWhole = type.isInteger(1) || loop::getElementBytes(type) * 8 == int64_t(type.getIntOrFloatBitWidth());
    bool isGood = !isConditional && isWhole && isContiguous(index, operands);
    contiguous += isGood;
    hasOthers |= !isGood;
    bool isLocal = isa_and_nonnull<loop::BufferOp>(buffer.getDefiningOp()); // in registers, or several accesses
    if (isGood)
      accesses.push_back({index, operands, isLocal ? 1 : loop::getElementBytes(type)});
  };
  if (auto load = dyn_cast<loop::LoadOp>(op))
    see(load.getBuffer(), Expr(cast<ExprAttr>(load.getIndices()[0])), load.getIndexOperands(), load.getType());
  else if (auto store = dyn_cast<loop::StoreOp>(op))
    see(store.getBuffer(), Expr(cast<ExprAttr>(store.getIndices()[0])), store.getIndexOperands(),
        store.getValue().getType());
  else if (auto index = dyn_cast<loop::IndexOp>(op))
    result |= index.getExpr().uses(dim);
  else if (auto masked = dyn_cast<loop::MaskedOp>(op))
    for (Attribute condition : masked.getConditions())
      result |= Expr(cast<ExprAttr>(condition)).uses(dim);
  for (Region &region : op->getRegions())
    for (Operation &inner : region.front()) {
      visit(&inner, true);
      if (auto yield = dyn_cast<loop::YieldOp>(inner))
        result |= varying.contains(yield.getValue());
    }
  if (result)
    varying.insert(op->result_begin(), op->result_end());
}

bool LaneAnalysis::isUniform(Expr index, ValueRange operands) const {
  return !index.uses(dim) && llvm::none_of(operands, [&](Value v) { return varying.contains(v); });
}

bool LaneAnalysis::isContiguous(Expr index, ValueRange operands) const {
  if (llvm::any_of(operands, [&](Value v) { return varying.contains(v); }))
    return false;
  Expr coefficient = index.uses(dim) ? index.coefficientOf(dim) : Expr();
  return coefficient && coefficient.isConstant(1);
}

bool LaneAnalysis::isVector(Expr index, ValueRange operands, int64_t lanes) const {
  if (!isContiguous(index, operands))
    return false;
  SymbolRanges first = ranges;
  first[dim].divisor = lanes;
  return index.range(first).divisor % lanes == 0;
}

int64_t LaneAnalysis::chooseLanes() const {
  if (!contiguous || hasOthers)
    return 1;
  int64_t widest = 1;
  for (const Access &access : accesses)
    widest = std::max(widest, access.bytes);
  for (int64_t lanes = std::min(accessBytes / widest, maxLanes); lanes > 1; lanes /= 2)
    if (llvm::all_of(accesses, [&](const Access &a) { return isVector(a.index, a.operands, lanes); }))
      return lanes;
  return 1;
}
