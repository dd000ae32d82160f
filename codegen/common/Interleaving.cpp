//===- Interleaving.cpp - indices that read several runs in turns ---------===//
#include "codegen/common/Interleaving.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Loop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ptc;

std::optional<int64_t> codegen::findInterleaving(Expr index, int64_t dim) {
  std::string name = dimName(dim);
  auto movesOneByOne = [&](int64_t k, int64_t r) { // along q, which takes the dim's name
    Expr run = index.substitute(
        [&](StringRef symbol) { return symbol == name ? Expr::symbol(index.getContext(), name) * k + r : Expr(); });
    Expr step = run.uses(name) ? run.coefficientOf(name) : Expr();
    return step && step.isConstant(1);
  };
  for (int64_t k : {2, 4})
    if (llvm::all_of(llvm::seq<int64_t>(0, k), [&](int64_t r) { return movesOneByOne(k, r); }))
      return k;
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> codegen::findLaneOffsets(Expr index, int64_t dim, int64_t lanes) {
  std::string name = dimName(dim);
  auto at = [&](int64_t lane) {
    return index.substitute([&](StringRef symbol) {
      return symbol == name ? Expr::symbol(index.getContext(), name) * lanes + lane : Expr();
    });
  };
  Expr first = at(0);
  SmallVector<int64_t> offsets;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    std::optional<int64_t> offset = (at(lane) - first).asConstant();
    if (!offset)
      return std::nullopt;
    offsets.push_back(*offset);
  }
  return offsets;
}

std::optional<int64_t> codegen::findStepInBlocks(Expr index, int64_t dim, int64_t lanes) {
  std::optional<SmallVector<int64_t>> offsets = findLaneOffsets(index, dim, lanes);
  if (!offsets || lanes < 2 || (*offsets)[1] < 0 || (*offsets)[1] > 1)
    return std::nullopt;
  int64_t step = (*offsets)[1];
  bool goesOn =
      llvm::all_of(llvm::enumerate(*offsets), [&](auto lane) { return lane.value() == step * int64_t(lane.index()); });
  return goesOn ? std::optional(step) : std::nullopt;
}

SymbolRanges codegen::getWholeRanges(Operation *node) {
  SmallVector<Expr> domain = loop::getDomain(node);
  llvm::StringSet<> masked;
  node->walk([&](loop::MaskedOp op) {
    for (Attribute condition : op.getConditions())
      Expr(cast<ExprAttr>(condition)).walkSymbols([&](StringRef name) { masked.insert(name); });
  });
  SymbolRanges ranges;
  for (auto [number, extent] : llvm::enumerate(domain))
    if (std::optional<int64_t> known = extent.asConstant(); known && *known > 0 && !masked.contains(dimName(number)))
      ranges[dimName(number)] = {.min = 0, .max = *known - 1};
  return ranges;
}

std::optional<codegen::GroupedLanes> codegen::findGroupedLanes(Expr index, int64_t dim, int64_t lanes,
                                                               const SymbolRanges &ranges) {
  std::optional<SmallVector<int64_t>> offsets = findLaneOffsets(index, dim, lanes);
  if (!offsets || llvm::any_of(*offsets, [&](int64_t offset) { return offset < 0 || offset >= lanes; }))
    return std::nullopt;
  int64_t last = *llvm::max_element(*offsets);
  std::optional<int64_t> term;
  index.walkSymbols([&](StringRef name) {
    std::optional<unsigned> number = parseNumbered(name, 'd');
    const ExprRange *range = ranges.find(name);
    if (!number || int64_t(*number) == dim || !range || range->min != 0)
      return;
    Expr step = index.coefficientOf(name);
    int64_t together = range->max < lanes ? last + range->max + 1 : 0;
    if (step && step.isConstant(1) && together > 1 && together <= lanes && llvm::isPowerOf2_64(uint64_t(together)))
      term = *number;
  });
  if (!term)
    return std::nullopt;
  int64_t places = ranges.find(dimName(*term))->max + 1;
  return GroupedLanes{*term, last + places, std::move(*offsets), places};
}

bool codegen::GroupedLanes::keepsPlaces() const {
  return together == int64_t(first.size()) && llvm::all_of(llvm::enumerate(first), [&](auto lane) {
           return lane.value() == int64_t(lane.index()) / places * places;
         });
}

bool codegen::isMultipleOf(Value value, int64_t power) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument == loop.getInductionVar() && isMultipleOf(loop.getLowerBound(), power) &&
           isMultipleOf(loop.getStep(), power);
  }
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto number = dyn_cast<IntegerAttr>(constant.getValue());
    return number && number.getInt() % power == 0;
  }
  auto isMultiple = [&](Value operand) { return isMultipleOf(operand, power); };
  if (isa<arith::MulIOp>(op))
    return llvm::any_of(op->getOperands(), isMultiple);
  return isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op) &&
         llvm::all_of(op->getOperands(), isMultiple);
}

Value codegen::createInterleaved(OpBuilder &builder, Location loc, ArrayRef<Value> vectors) {
  if (vectors.size() == 1)
    return vectors.front();
  SmallVector<Value> even, odd;
  for (auto [index, vector] : llvm::enumerate(vectors))
    (index % 2 ? odd : even).push_back(vector);
  Value a = createInterleaved(builder, loc, even), b = createInterleaved(builder, loc, odd);
  int32_t lanes = int32_t(cast<VectorType>(a.getType()).getNumElements());
  SmallVector<int32_t> order;
  for (int32_t lane = 0; lane < lanes; ++lane)
    order.append({lane, lane + lanes});
  return LLVM::ShuffleVectorOp::create(builder, loc, a, b, order);
}

Value codegen::createEachNth(OpBuilder &builder, Location loc, Value vector, int64_t first, int64_t step) {
  SmallVector<int32_t> order;
  for (int64_t lane = first, lanes = cast<VectorType>(vector.getType()).getNumElements(); lane < lanes; lane += step)
    order.push_back(int32_t(lane));
  return LLVM::ShuffleVectorOp::create(builder, loc, vector, vector, order);
}

Value codegen::createSpread(OpBuilder &builder, Location loc, Value vector, ArrayRef<int32_t> places) {
  return LLVM::ShuffleVectorOp::create(builder, loc, vector, vector, places);
}
