//===- FloatMode.cpp - Kernels in which denormal numbers count as 0 -------===//
#include "codegen/cpu/FloatMode.h"
#include "codegen/cpu/CpuRecurrence.h"
#include "ir/loop/ToldNumbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace ptc;

static bool isTold(Value value) { return loop::isToldNumber(value.getDefiningOp()); }

/// A constant, or a number that the launch says, that no denormal number comes near.
static bool isNormalConstant(Value value) {
  APFloat number(0.0);
  return isTold(value) || (matchPattern(value, m_ConstantFloat(&number)) && !number.isZero() && !number.isDenormal());
}

/// Whether two nodes compute the same value, each from its own loads.
static bool areSame(Value x, Value y, int steps = 8) {
  Operation *a = x.getDefiningOp(), *b = y.getDefiningOp();
  if (!a || !b || steps == 0)
    return x == y;
  return a->getName() == b->getName() && a->getNumRegions() == 0 && a->getAttrDictionary() == b->getAttrDictionary() &&
         a->getNumOperands() == b->getNumOperands() &&
         llvm::all_of(llvm::zip(a->getOperands(), b->getOperands()), [&](auto pair) {
           auto [u, v] = pair;
           return isa<loop::BufferType>(u.getType()) ? u == v : areSame(u, v, isTold(x) ? steps : steps - 1);
         });
}

/// What fills the kernel's own buffer that the value is read from.
static loop::StoreOp getStoreOf(Value value) {
  auto load = value.getDefiningOp<loop::LoadOp>();
  auto buffer = load ? load.getBuffer().getDefiningOp<loop::BufferOp>() : loop::BufferOp();
  loop::StoreOp only;
  if (!buffer)
    return {};
  for (Operation *user : buffer->getUsers()) {
    auto store = dyn_cast<loop::StoreOp>(user);
    if (isa<loop::LoadOp>(user))
      continue;
    if (!store || only || store.getCombine())
      return {};
    only = store;
  }
  return only;
}

static loop::ReduceOp getReduceOf(loop::StoreOp store, prim::ReduceKind kind) {
  auto reduce = store ? store.getValue().getDefiningOp<loop::ReduceOp>() : loop::ReduceOp();
  return reduce && reduce.getKind() == kind ? reduce : loop::ReduceOp();
}

/// What finds the m of exp(x - m), which the node computes point by point, as the maximum of the same x over its row.
static loop::ReductionOp getMaximumOf(math::ExpOp exp) {
  auto difference = exp.getOperand().getDefiningOp<arith::SubFOp>();
  loop::StoreOp row = difference ? getStoreOf(difference.getRhs()) : loop::StoreOp();
  loop::ReduceOp max = getReduceOf(row, prim::ReduceKind::Max);
  auto ofMax = max ? max->getParentOfType<loop::ReductionOp>() : loop::ReductionOp();
  Operation *node = exp->getParentOp();
  bool isOfRow = ofMax && isa<loop::ReductionOp, loop::PointwiseOp>(node) &&
                 loop::getDomain(node) == loop::getDomain(ofMax.getOperation()) &&
                 difference.getRhs().getDefiningOp<loop::LoadOp>().getIndices() == row.getIndices() &&
                 areSame(difference.getLhs(), max.getValue());
  return isOfRow ? ofMax : loop::ReductionOp();
}

/// A softmax's sum, of exp(x - max x) over a row: at least 1, or NaN.
static bool isSumOfSoftmax(Value value) {
  auto sum = value.getDefiningOp<loop::ReduceOp>();
  if (!sum)
    sum = getReduceOf(getStoreOf(value), prim::ReduceKind::Sum);
  auto exp =
      sum && sum.getKind() == prim::ReduceKind::Sum ? sum.getValue().getDefiningOp<math::ExpOp>() : math::ExpOp();
  auto ofMax = exp ? getMaximumOf(exp) : loop::ReductionOp();
  return ofMax && sum->getParentOp()->getAttrDictionary() == ofMax->getAttrDictionary();
}

/// Such a constant, a sum with one (the epsilon of a norm), or the root of that; a softmax's sum.
static bool isAwayFromZero(Value value) {
  if (isSumOfSoftmax(value))
    return true;
  if (auto root = value.getDefiningOp<math::SqrtOp>())
    return isAwayFromZero(root.getOperand());
  auto sum = value.getDefiningOp<arith::AddFOp>();
  return isNormalConstant(value) || (sum && (isNormalConstant(sum.getLhs()) || isNormalConstant(sum.getRhs())));
}

static bool addsUp(Operation *op) {
  auto reduce = dyn_cast<loop::ReduceOp>(op);
  return isa<loop::ContractionOp, loop::AttentionOp>(op) ||
         (reduce && reduce.getKind() == prim::ReduceKind::Sum && isa<FloatType>(reduce.getType()));
}

/// What a value that a few steps compute from `x` alone is where x is 0.
static std::optional<double> getValueAtZero(Value value, Value x, int steps = 6) {
  if (value == x)
    return 0;
  if (APFloat number(0.0); matchPattern(value, m_ConstantFloat(&number)))
    return number.convertToDouble();
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0 || op->getNumOperands() == 0 || op->getNumOperands() > 2)
    return std::nullopt;
  std::optional<double> a = getValueAtZero(op->getOperand(0), x, steps - 1);
  std::optional<double> b = op->getNumOperands() == 2 ? getValueAtZero(op->getOperand(1), x, steps - 1) : a;
  if (!a || !b)
    return std::nullopt;
  return TypeSwitch<Operation *, std::optional<double>>(op)
      .Case([&](arith::AddFOp) { return *a + *b; })
      .Case([&](arith::SubFOp) { return *a - *b; })
      .Case([&](arith::MulFOp) { return *a * *b; })
      .Case([&](arith::NegFOp) { return -*a; })
      .Case([&](math::AbsFOp) { return std::abs(*a); })
      .Case([&](math::ExpOp) { return std::exp(*a); })
      .Case([&](math::ExpM1Op) { return std::expm1(*a); })
      .Default(std::nullopt);
}

/// Whether a comparison of floats chooses between results that are the same where the numbers are denormal: those of a
/// sigmoid, of a rectifier with a slope.
static bool isContinuous(arith::CmpFOp compare) {
  if (llvm::is_contained(
          {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UEQ, arith::CmpFPredicate::ONE, arith::CmpFPredicate::UNE},
          compare.getPredicate()))
    return false; // a choice for 0 alone
  bool isRight = matchPattern(compare.getRhs(), m_AnyZeroFloat());
  if (!isRight && !matchPattern(compare.getLhs(), m_AnyZeroFloat()))
    return false;
  Value x = isRight ? compare.getLhs() : compare.getRhs();
  return llvm::all_of(compare->getUsers(), [&](Operation *user) {
    auto select = dyn_cast<arith::SelectOp>(user);
    if (!select || !isa<FloatType>(select.getType()))
      return false;
    std::optional<double> a = getValueAtZero(select.getTrueValue(), x), b = getValueAtZero(select.getFalseValue(), x);
    return a && b && *a == *b;
  });
}

/// Whether the operation makes much of the difference between a denormal number and 0.
static bool tellsFromZero(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    bool asksForNaN =
        llvm::is_contained({arith::CmpFPredicate::ORD, arith::CmpFPredicate::UNO}, compare.getPredicate());
    return !asksForNaN && !isNormalConstant(compare.getLhs()) && !isNormalConstant(compare.getRhs()) &&
           !isContinuous(compare);
  }
  if (isa<math::LogOp, math::Log2Op, math::Log10Op, math::SqrtOp, math::RsqrtOp, math::CbrtOp, math::PowFOp>(op))
    return !isAwayFromZero(op->getOperand(0));
  if (isa<arith::DivFOp>(op))
    return !isAwayFromZero(op->getOperand(1));
  if (isa<math::CeilOp, math::FloorOp, math::Atan2Op, arith::RemFOp, loop::ArgReduceOp>(op))
    return true;
  if (isa<arith::ExtFOp>(op) && getElementTypeOrSelf(op->getResult(0).getType()).isF64())
    return true; // in which it is normal
  APFloat number(0.0);
  auto isScale = [](Type type) { return isa<Float8E8M0FNUType>(type); }; // 2^-127 is one
  return (matchPattern(op, m_ConstantFloat(&number)) && number.isDenormal()) ||
         llvm::any_of(op->getOperandTypes(), isScale) || llvm::any_of(op->getResultTypes(), isScale);
}

bool cpu::mayFlushDenormals(loop::KernelOp kernel) {
  if (getRecurrence(kernel)) // threads that share its steps enter its groups of nodes by themselves
    return false;
  bool adds = false;
  WalkResult result = kernel->walk([&](Operation *op) {
    adds |= addsUp(op);
    return tellsFromZero(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return adds && !result.wasInterrupted();
}

void cpu::setFlushDenormals(OpBuilder &builder, Location loc, const CpuLevel &level, Value word, bool flush) {
  StringRef load = level.loadFloatMode();
  if (load.empty())
    return;
  constexpr int32_t keeping = 0x1f80, flushing = keeping | 0x8040; // MXCSR: exceptions masked; DAZ and FTZ
  Value mode = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), flush ? flushing : keeping);
  LLVM::StoreOp::create(builder, loc, mode, word);
  LLVM::CallIntrinsicOp::create(builder, loc, builder.getStringAttr(load), ValueRange(word));
}
