//===- PackedRhs.cpp - a rhs that converts numbers of few bits ------------===//
#include "codegen/gpu/PackedRhs.h"
#include "codegen/gpu/LaneAnalysis.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static Operation *onlyUser(Value value) { return value.hasOneUse() ? *value.user_begin() : nullptr; }

namespace {

class PackedMatcher {
public:
  explicit PackedMatcher(loop::ContractionOp op) : op(op), dims(op), block(op.getRhs().front()) {}
  std::optional<PackedRhs> run();

private:
  bool matchLoad(loop::LoadOp load);
  Operation *matchNumber();
  bool matchReal(Operation *number);
  bool moves(Operation &inner) const;
  bool sortOps(Operation *number);

  loop::ContractionOp op;
  ContractionDims dims;
  Block &block;
  PackedRhs rhs;
};

} // namespace

/// Words of four neighbours along a dim of k.
bool PackedMatcher::matchLoad(loop::LoadOp load) {
  if (!load.getType().isInteger(8) || !load.getIndexOperands().empty())
    return false;
  Expr index(cast<ExprAttr>(load.getIndices()[0]));
  for (int64_t dim = dims.firstK; dim <= dims.lastK(); ++dim) {
    std::optional<int64_t> extent = dims.domain[size_t(dim)].asConstant();
    if (!extent || *extent % PackedRhs::wordBytes != 0 ||
        !LaneAnalysis(op, dim).isVector(index, {}, PackedRhs::wordBytes))
      continue;
    rhs.load = load;
    rhs.byte = dim;
    return true;
  }
  return false;
}

/// The op that has the number: the load, or what takes it out of its byte.
Operation *PackedMatcher::matchNumber() {
  auto shift = dyn_cast_or_null<arith::ShRUIOp>(onlyUser(rhs.load.getResult()));
  if (!shift || shift.getLhs() != rhs.load.getResult())
    return rhs.load;
  auto number = dyn_cast_or_null<arith::AndIOp>(onlyUser(shift.getResult()));
  auto amount = shift.getRhs().getDefiningOp<arith::MulIOp>();
  auto narrowed = amount ? amount.getLhs().getDefiningOp<arith::TruncIOp>() : arith::TruncIOp();
  auto index = narrowed ? narrowed.getIn().getDefiningOp<loop::IndexOp>() : loop::IndexOp();
  APInt mask, bits;
  if (!number || !index || !matchPattern(number.getRhs(), m_ConstantInt(&mask)) || !mask.isMask() ||
      !matchPattern(amount.getRhs(), m_ConstantInt(&bits)) || bits != mask.popcount())
    return nullptr;
  rhs.bits = mask.popcount();
  for (int64_t dim = dims.firstK; dim <= dims.lastK(); ++dim)
    if (index.getExpr().isSymbol("d" + std::to_string(dim)))
      rhs.part = dim;
  bool isWhole = rhs.part >= 0 && rhs.part != rhs.byte && 8 % rhs.bits == 0 &&
                 dims.domain[size_t(rhs.part)].isConstant(rhs.parts());
  return isWhole ? number.getOperation() : nullptr;
}

bool PackedMatcher::matchReal(Operation *number) {
  Operation *real = onlyUser(number->getResult(0));
  if (!isa_and_nonnull<arith::UIToFPOp, arith::SIToFPOp>(real) || !real->getResult(0).getType().isF32())
    return false;
  rhs.isSigned = rhs.bits == 8 && isa<arith::SIToFPOp>(real);
  rhs.real = real;
  constexpr double mostSubtracted = 256; // exact beside 2^23
  auto difference = dyn_cast_or_null<arith::SubFOp>(onlyUser(real->getResult(0)));
  FloatAttr zero;
  if (difference && difference.getLhs() == real->getResult(0) && matchPattern(difference.getRhs(), m_Constant(&zero))) {
    double value = zero.getValueAsDouble();
    if (value == std::trunc(value) && std::abs(value) <= mostSubtracted) {
      rhs.real = difference;
      rhs.subtracted = int64_t(value);
    }
  }
  return true;
}

/// The op itself depends on where in a word it is.
bool PackedMatcher::moves(Operation &inner) const {
  auto uses = [&](Expr expr) {
    return expr.uses("d" + std::to_string(rhs.byte)) || (rhs.part >= 0 && expr.uses("d" + std::to_string(rhs.part)));
  };
  if (auto load = dyn_cast<loop::LoadOp>(inner))
    return llvm::any_of(load.getIndices(), [&](Attribute each) { return uses(Expr(cast<ExprAttr>(each))); });
  auto index = dyn_cast<loop::IndexOp>(inner);
  return index && uses(index.getExpr());
}

bool PackedMatcher::sortOps(Operation *number) {
  llvm::DenseSet<Operation *> inNumber, varying; // number, and what it is made of
  SmallVector<Operation *> open{rhs.real};
  while (!open.empty()) {
    Operation *inner = open.pop_back_val();
    if (isa<arith::ConstantOp>(inner) || !inNumber.insert(inner).second)
      continue;
    for (Value operand : inner->getOperands())
      if (Operation *from = operand.getDefiningOp())
        open.push_back(from);
  }
  Value yielded = cast<loop::YieldOp>(block.getTerminator()).getValue();
  for (Operation &inner : block) {
    if (isa<loop::YieldOp>(inner))
      continue;
    bool isInside = inNumber.contains(&inner);
    auto isOutside = [&](Operation *user) { return !inNumber.contains(user); };
    if (inner.getNumRegions() || (isInside && &inner != rhs.real && llvm::any_of(inner.getUsers(), isOutside)) ||
        (!isInside && moves(inner)))
      return false;
    if (isInside)
      continue;
    bool varies = llvm::any_of(inner.getOperands(), [&](Value operand) {
      Operation *from = operand.getDefiningOp();
      return from == rhs.real || varying.contains(from);
    });
    if (varies)
      varying.insert(&inner);
    (varies ? rhs.varying : rhs.shared).push_back(&inner);
  }
  rhs.element = yielded;
  auto product = yielded.getDefiningOp<arith::MulFOp>();
  auto isVarying = [&](Value value) {
    return value.getDefiningOp() == rhs.real || varying.contains(value.getDefiningOp());
  };
  if (product && isVarying(product.getLhs()) != isVarying(product.getRhs())) {
    bool first = isVarying(product.getLhs());
    rhs.element = first ? product.getLhs() : product.getRhs();
    rhs.factor = first ? product.getRhs() : product.getLhs();
    llvm::erase(rhs.varying, product.getOperation());
  }
  return isVarying(rhs.element);
}

std::optional<PackedRhs> PackedMatcher::run() {
  if (!cast<loop::YieldOp>(block.getTerminator()).getValue().getType().isF32())
    return std::nullopt;
  for (loop::LoadOp load : block.getOps<loop::LoadOp>()) {
    rhs = {};
    if (!matchLoad(load))
      continue;
    Operation *number = matchNumber();
    if (number && matchReal(number) && sortOps(number))
      return rhs;
  }
  return std::nullopt;
}

std::optional<PackedRhs> gpu::matchPackedRhs(loop::ContractionOp op) { return PackedMatcher(op).run(); }
