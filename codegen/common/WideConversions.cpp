//===- WideConversions.cpp - floats as integers of 64 bits ----------------===//
//
// Before AVX-512 x86 converts vectors of floats to integers of 32 bits alone: to 64 each lane takes a conversion and
// the moves out of the vector and back. Indices, sizes and tokens are in 32 bits, so where all lanes are
//
//   x    becomes    extend(convert32(x))
//
// in front of which a branch tells the others apart. What a saturating conversion does besides, the bounds before it
// and the choices of the largest integer and of 0 for NaN behind it, changes nothing of such lanes and is left out of
// their side.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryFamilies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ptc::codegen {

static constexpr double reach = 0x1p31; // integers of 32 bits are below it and not below its opposite

namespace {
/// A conversion with what makes it saturate, in the order in which it is computed.
struct Saturating {
  Value source;
  SmallVector<Operation *> ops;
};
enum class Outcome { Unknown, Holds, Fails };
} // namespace

/// What a comparison says of all x within the reach.
static Outcome compareWithin(Value condition, Value x) {
  auto compare = condition.getDefiningOp<arith::CmpFOp>();
  if (!compare || compare.getLhs() != x)
    return Outcome::Unknown;
  if (compare.getPredicate() == arith::CmpFPredicate::UNO && compare.getRhs() == x)
    return Outcome::Fails;
  bool isAbove = compare.getPredicate() == arith::CmpFPredicate::OGT;
  llvm::APFloat bound(0.0);
  if (!matchPattern(compare.getRhs(), m_ConstantFloat(&bound)) ||
      (!isAbove && compare.getPredicate() != arith::CmpFPredicate::OLT))
    return Outcome::Unknown;
  double number = bound.convertToDouble();
  if (std::abs(number) < reach)
    return Outcome::Unknown;
  return (number < 0) == isAbove ? Outcome::Holds : Outcome::Fails;
}

static Saturating findSaturating(arith::FPToSIOp op) {
  Saturating found{op.getIn(), {op}};
  auto prepend = [&](Operation *step) { found.ops.insert(found.ops.begin(), step); };
  while (auto bounded = found.source.getDefiningOp<arith::SelectOp>()) {
    Value x = bounded.getTrueValue();
    if (compareWithin(bounded.getCondition(), x) != Outcome::Holds)
      break;
    prepend(bounded);
    prepend(bounded.getCondition().getDefiningOp());
    found.source = x;
  }
  for (Value result = op; result.hasOneUse(); result = found.ops.back()->getResult(0)) {
    auto choice = dyn_cast<arith::SelectOp>(*result.user_begin());
    if (!choice || choice.getFalseValue() != result ||
        compareWithin(choice.getCondition(), found.source) != Outcome::Fails)
      break;
    found.ops.push_back(choice.getCondition().getDefiningOp());
    found.ops.push_back(choice);
  }
  return found;
}

static void expandWideConversion(const Saturating &found, const ElementaryOptions &options) {
  Operation *last = found.ops.back();
  ImplicitLocOpBuilder b(last->getLoc(), last);
  Emitter e(b, found.source.getType(), options);
  Value beyond = arith::CmpFOp::create(b, arith::CmpFPredicate::UGE, abs(e.num(found.source)).v, e.num(reach).v);
  Value within = arith::FPToSIOp::create(b, e.withElement(b.getI32Type()), found.source);
  Value extended = arith::ExtSIOp::create(b, last->getResult(0).getType(), within);
  Value result = e.ifAny(e.mask(beyond), {extended}, [&]() -> SmallVector<Value> {
                    IRMapping copies;
                    for (Operation *op : found.ops)
                      b.clone(*op, copies);
                    return {copies.lookup(last->getResult(0))};
                  }).front();
  last->getResult(0).replaceAllUsesWith(result);
  eraseUnused(last);
}

void expandWideConversions(Operation *root, const ElementaryOptions &options) {
  SmallVector<arith::FPToSIOp> ops;
  root->walk([&](arith::FPToSIOp op) {
    auto type = dyn_cast<VectorType>(op.getType());
    Type from = getElementTypeOrSelf(op.getIn().getType());
    if (type && type.getElementTypeBitWidth() == 64 && (from.isF32() || from.isF64()))
      ops.push_back(op);
  });
  for (arith::FPToSIOp op : ops)
    expandWideConversion(findSaturating(op), options);
}

} // namespace ptc::codegen
