//===- SharedDivisors.cpp - vectors divided by what does not change -------===//
//
// A division of 512-bit vectors takes as long as ten to twenty products. Where all lanes are divided by one number that
// was known before the loop (a row's norm, the sum of a softmax, the scale of a quantised tensor), one division tells
// the reciprocal y of the divisor b, and each quotient is three operations that round it correctly all the same:
//
//   q0 = x y    r = x - q0 b, exact    q = q0 + r y
//
// (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", IBM J. Res. Dev. 34, 1990).
// Infinities and zeros make r, and so q, a NaN: q0 is the quotient then. A divisor so small that y would be infinite is
// scaled by a power of 2, and x with it. Where r is denormal (|x| below 2^-100 in f32) its last digits are lost, and q
// may be a neighbour of the quotient: --fp=contract allows that.
//
// Where a loop computes much else for each quotient, its division runs beside that, for nothing, and behind a loop
// (in the epilogue of a product's tile) there are too few to matter.
//
// A softmax's sum is 1 at least, and x/b within 1.5 ulp of x y, which is taken for it: --fp=contract allows that, too.
// If it is for one quotient of a function, then for all, those of the last few elements included: equal elements of a
// row stay equal.
//
// Refused for others: vectors of 256 bits, whose division takes half as long (measured: 1.00 to 1.26 of the time of
// rows' softmax, quantisation and norms), and divisors of each lane's own (a softmax over channels: 0.97 to 1.05), its
// own sums included.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ElementaryFamilies.h"
#include "ir/loop/Softmax.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include <cmath>

using namespace mlir;

namespace ptc::codegen {

static constexpr unsigned fewestQuotients = 4; // of one divisor, outside of loops: the reciprocal is a division, too
static constexpr unsigned fewestBits = 512;    // of a vector
static constexpr unsigned mostOperations = 10; // for each quotient, beside which its division takes time of its own
static constexpr unsigned ofFunction = 12;     // operations

namespace {
/// What a quotient needs of its divisor.
struct Divisor {
  Value scale, scaled, reciprocal;
};
using Divisors = llvm::MapVector<std::pair<Value, Type>, Divisor>;
} // namespace

/// The scalar, or the constant vector, that all lanes are divided by; null where each has its own.
static Value getSource(Value divisor) {
  DenseElementsAttr constant;
  if (matchPattern(divisor, m_Constant(&constant)))
    return constant.isSplat() ? divisor : Value();
  auto broadcast = divisor.getDefiningOp<vector::BroadcastOp>();
  return broadcast && !isa<VectorType>(broadcast.getSource().getType()) ? broadcast.getSource() : Value();
}

static bool isKnownBefore(LoopLikeOpInterface loop, Value value) {
  return llvm::none_of(loop->getRegions(), [&](Region &region) { return region.isAncestor(value.getParentRegion()); });
}

/// Divisions by powers of 2 are products, without that.
static bool isPowerOfTwo(Value value) {
  llvm::APFloat constant(0.0);
  return matchPattern(value, m_ConstantFloat(&constant)) && constant.getExactInverse(nullptr);
}

static bool isShared(arith::DivFOp quotient) {
  Value source = getSource(quotient.getRhs());
  if (!source || isPowerOfTwo(source))
    return false;
  if (llvm::any_of(*quotient->getBlock(), llvm::IsaPred<LoopLikeOpInterface>))
    return false;
  auto loop = quotient->getParentOfType<LoopLikeOpInterface>();
  if (matchPattern(source, m_Constant()) || (loop && isKnownBefore(loop, source)))
    return true;
  auto isSame = [&](Operation *user) {
    return isa<arith::DivFOp>(user) && user->getOperand(1) == quotient.getRhs() &&
           user->getBlock() == quotient->getBlock();
  };
  return llvm::count_if(quotient.getRhs().getUsers(), isSame) >= fewestQuotients;
}

/// Operations of a block on vectors of floats, for each of its divisions.
static unsigned countOperations(Block &block) {
  unsigned operations = 0, divisions = 0;
  for (Operation &op : block) {
    auto type = op.getNumResults() == 1 ? dyn_cast<VectorType>(op.getResult(0).getType()) : VectorType();
    if (!type || !isa<FloatType>(type.getElementType()))
      continue;
    bool isInstruction = isa<math::FmaOp, math::AbsFOp, math::SqrtOp, math::RoundEvenOp, math::FloorOp, math::CeilOp,
                             math::TruncOp, math::CopySignOp>(op);
    if (isa<arith::DivFOp>(op))
      ++divisions;
    else if (isa<math::MathDialect>(op.getDialect()))
      operations += isInstruction ? 1 : ofFunction;
    else
      operations += isa<arith::ArithDialect>(op.getDialect());
  }
  return operations / std::max(divisions, 1u);
}

/// For all lanes of the type.
static Value spread(ImplicitLocOpBuilder &b, Num number, Type type) {
  return number.v.getType() == type ? number.v : vector::BroadcastOp::create(b, type, number.v).getResult();
}

static ImplicitLocOpBuilder behind(Value source) {
  ImplicitLocOpBuilder b(source.getLoc(), source.getContext());
  b.setInsertionPointAfterValue(source);
  return b;
}

static Divisor makeDivisor(Value source, Type type, const ElementaryOptions &options) {
  ImplicitLocOpBuilder b = behind(source);
  Emitter e(b, source.getType(), options);
  Num divisor = e.num(source), one = e.num(1.0);
  double power = e.pick(0x1p64, 0x1p500);
  Num scale = select(abs(divisor) < 1 / power, e.num(power), one), scaled = divisor * scale;
  return {
      .scale = spread(b, scale, type), .scaled = spread(b, scaled, type), .reciprocal = spread(b, one / scaled, type)};
}

static Value emitQuotient(arith::DivFOp op, const Divisor &divisor, const ElementaryOptions &options) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Emitter e(b, op.getType(), options);
  Num x = e.num(op.getLhs()) * e.num(divisor.scale), reciprocal = e.num(divisor.reciprocal);
  Num first = x * reciprocal;
  Num rest = fma(-first, e.num(divisor.scaled), x);
  Num quotient = fma(rest, reciprocal, first);
  return select(unordered(quotient, quotient), first, quotient).v;
}

static bool isOfF32OrF64(arith::DivFOp quotient) {
  Type element = getElementTypeOrSelf(quotient.getType());
  return element.isF32() || element.isF64();
}

void multiplyByReciprocals(Operation *root, const ElementaryOptions &options) {
  SmallVector<arith::DivFOp> quotients;
  root->walk([&](arith::DivFOp quotient) {
    auto type = dyn_cast<VectorType>(quotient.getType());
    bool isWide = type && type.getNumElements() * type.getElementTypeBitWidth() >= fewestBits;
    if (isWide && isOfF32OrF64(quotient) && isShared(quotient))
      quotients.push_back(quotient);
  });
  llvm::DenseMap<Block *, unsigned> operations;
  for (arith::DivFOp quotient : quotients)
    if (Block *block = quotient->getBlock(); !operations.contains(block))
      operations[block] = countOperations(*block);
  llvm::erase_if(quotients, [&](arith::DivFOp quotient) { return operations[quotient->getBlock()] > mostOperations; });
  Divisors divisors;
  for (arith::DivFOp quotient : quotients) {
    Value source = getSource(quotient.getRhs());
    auto [entry, isNew] = divisors.insert({{source, quotient.getType()}, {}});
    if (isNew)
      entry->second = makeDivisor(source, quotient.getType(), options);
    quotient.replaceAllUsesWith(emitQuotient(quotient, entry->second, options));
    quotient.erase();
  }
}

void multiplyByInverseSums(Operation *root, const ElementaryOptions &options) {
  SmallVector<arith::DivFOp> quotients;
  bool pays = false;
  root->walk([&](arith::DivFOp quotient) {
    if (!quotient->hasAttr(loop::ofSoftmaxAttr) || !isOfF32OrF64(quotient))
      return;
    quotients.push_back(quotient);
    pays |= isa<VectorType>(quotient.getType()) && isShared(quotient);
  });
  if (!pays)
    return;
  llvm::MapVector<std::pair<Value, Type>, Value> inverses;
  for (arith::DivFOp quotient : quotients) {
    Value shared = getSource(quotient.getRhs()), source = shared ? shared : quotient.getRhs();
    auto [entry, isNew] = inverses.insert({{source, quotient.getType()}, {}});
    if (isNew) {
      ImplicitLocOpBuilder b = behind(source);
      Emitter e(b, source.getType(), options);
      entry->second = spread(b, 1.0 / e.num(source), quotient.getType());
    }
    OpBuilder b(quotient);
    auto product = arith::MulFOp::create(b, quotient.getLoc(), quotient.getLhs(), entry->second);
    quotient.replaceAllUsesWith(product.getResult());
    quotient.erase();
  }
}

} // namespace ptc::codegen
