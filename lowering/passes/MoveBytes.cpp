//===- MoveBytes.cpp - quantised tensors are moved as bytes ---------------===//
//
// A quantiser rounds behind each operator, also behind those that move elements or choose among them:
//
//   round(move(s (q - z)) / s) + z  =  move(q)          the same scale and zero point, s > 0
//
// That is exact: s (q - z) / s lies within 2^-15 of the integer that it was. Moves are views, concats, pads, gathers,
// choices by a condition and the largest or smallest of some, so of an element and a bound, too: rounding is monotonic,
// and infinities become the bytes that are neutral. A constant is rounded here. Bytes have no NaN: ONNX names none that
// one becomes, and a bound may make it another.
//
// A concat whose parts have other scales, or none, is one of rounded parts, if nothing else reads it: what makes a part
// stores bytes, where floats were stored and read again.
//
// Comes before products are matched, which then see bytes behind moves, too.
//
//===----------------------------------------------------------------------===//
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "mlir/IR/IRMapping.h"

namespace ptc {
#define GEN_PASS_DEF_MOVEBYTES
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {

constexpr unsigned mostMoves = 8; // one behind another

/// How reals become bytes: a scale, a zero point, a type of 8-bit integers.
struct Rounding {
  double scale = 1, zero = 0;
  Type type;
};

class ByteMover {
public:
  explicit ByteMover(func::FuncOp function) : function(function), b(function.getContext()) {}

  void run() {
    function.walk([&](ConvertOp op) { visit(op); });
    eraseDeadOps(function);
  }

private:
  void visit(ConvertOp op);
  bool canMove(Value value, bool isAlone, unsigned depth = 0) const;
  Value move(Value value);
  Value round(Value value);
  Value filled(RankedTensorType type, double real);
  Value bytesOf(Value value) const;

  func::FuncOp function;
  OpBuilder b;
  Rounding rounding; // of the op that is visited
  llvm::DenseMap<Value, Value> moved;
};

} // namespace

/// Whether scale * k / scale is near k for all k of 9 bits.
static bool isModerate(double scale) { return scale > 1e-30 && scale < 1e30; }

/// The operands that a move takes elements from; none if it is no move.
static SmallVector<OpOperand *> getMoved(Operation *op) {
  if (isa<BroadcastOp, ReshapeOp, TransposeOp, SliceOp, GatherOp, GatherElementsOp, GatherNdOp, ReluOp>(op))
    return {&op->getOpOperand(0)};
  if (isa<PadOp, MaximumOp, MinimumOp>(op))
    return {&op->getOpOperand(0), &op->getOpOperand(1)};
  if (isa<SelectOp>(op))
    return {&op->getOpOperand(1), &op->getOpOperand(2)};
  auto isExtremum = [](ReduceKind kind) { return kind == ReduceKind::Max || kind == ReduceKind::Min; };
  auto reduce = dyn_cast<ReduceOp>(op);
  auto windows = dyn_cast<WindowReduceOp>(op);
  if ((reduce && isExtremum(reduce.getKind())) || (windows && isExtremum(windows.getKind())))
    return {&op->getOpOperand(0)};
  return llvm::map_to_vector(isa<ConcatOp>(op) ? op->getOpOperands() : MutableArrayRef<OpOperand>(),
                             [](OpOperand &operand) { return &operand; });
}

/// What the value was before scale and zero point made it real, if these are the rounding's.
Value ByteMover::bytesOf(Value value) const {
  auto product = value.getDefiningOp<MulOp>();
  std::optional<Bytes> bytes = product ? matchBytes(product.getA()) : std::nullopt;
  std::optional<double> scale = bytes ? getSplat(product.getB()) : std::nullopt;
  bool isSame =
      scale && *scale == rounding.scale && bytes->zero == rounding.zero && getElementType(bytes->q) == rounding.type;
  return isSame ? bytes->q : Value();
}

/// Whether rounding the value takes no more than moves of bytes. `isAlone`: nothing else reads what is made of it.
bool ByteMover::canMove(Value value, bool isAlone, unsigned depth) const {
  if (bytesOf(value) || moved.contains(value))
    return true;
  if (std::optional<double> splat = getSplat(value))
    return !std::isnan(*splat);
  Operation *op = value.getDefiningOp();
  SmallVector<OpOperand *> operands = op ? getMoved(op) : SmallVector<OpOperand *>();
  if (operands.empty() || depth == mostMoves)
    return false;
  isAlone &= hasUses(value, 1);
  return (isAlone && isa<ConcatOp>(op)) ||
         llvm::all_of(operands, [&](OpOperand *operand) { return canMove(operand->get(), isAlone, depth + 1); });
}

/// All elements the byte of one number.
Value ByteMover::filled(RankedTensorType type, double real) {
  double least = rounding.type.isUnsignedInteger() ? 0 : -128;
  double byte = std::nearbyint(float(real) / float(rounding.scale)) + rounding.zero;
  auto scalar = RankedTensorType::get({}, rounding.type);
  APInt bits(8, uint64_t(int64_t(std::clamp(byte, least, least + 255))), /*isSigned=*/false, /*implicitTrunc=*/true);
  Value fill = ConstantOp::create(b, function.getLoc(), scalar, DenseElementsAttr::get(scalar, bits));
  return type.getRank() ? BroadcastOp::create(b, function.getLoc(), type, fill, ArrayRef<int64_t>()).getResult() : fill;
}

/// convert(round(value / scale) + zero)
Value ByteMover::round(Value value) {
  b.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  auto spread = [&](double number) {
    auto scalar = RankedTensorType::get({}, b.getF32Type());
    Value constant = ConstantOp::create(b, loc, scalar, DenseElementsAttr::get(scalar, float(number)));
    return BroadcastOp::create(b, loc, value.getType(), constant, ArrayRef<int64_t>());
  };
  Value whole = RoundOp::create(b, loc, DivOp::create(b, loc, value, spread(rounding.scale)));
  if (rounding.zero != 0)
    whole = AddOp::create(b, loc, whole, spread(rounding.zero));
  return ConvertOp::create(b, loc, getTensorType(getDims(value), rounding.type), whole);
}

/// The bytes of a value that can move, or that a concat holds.
Value ByteMover::move(Value value) {
  if (Value bytes = bytesOf(value))
    return bytes;
  if (Value known = moved.lookup(value))
    return known;
  auto type = cast<RankedTensorType>(getTensorType(getDims(value), rounding.type));
  Operation *op = value.getDefiningOp();
  std::optional<double> splat = getSplat(value);
  if (splat && !std::isnan(*splat)) {
    b.setInsertionPointAfter(op);
    return moved[value] = filled(type, *splat);
  }
  if (!canMove(value, /*isAlone=*/true))
    return moved[value] = round(value);
  IRMapping mapping;
  for (OpOperand *operand : getMoved(op))
    mapping.map(operand->get(), move(operand->get()));
  b.setInsertionPointAfter(op);
  if (isa<ReluOp>(op))
    return moved[value] = MaximumOp::create(b, op->getLoc(), mapping.lookup(op->getOperand(0)), filled(type, 0));
  Operation *clone = b.clone(*op, mapping);
  clone->getResult(0).setType(type);
  return moved[value] = clone->getResult(0);
}

void ByteMover::visit(ConvertOp op) {
  std::optional<Quantization> found = matchQuantization(op);
  auto quotient = found ? found->round.getX().getDefiningOp<DivOp>() : DivOp();
  std::optional<double> scale = quotient ? getSplat(quotient.getB()) : std::nullopt;
  if (!scale || !isModerate(*scale))
    return;
  Value value = quotient.getA();
  rounding = {*scale, found->zero, getElementType(op.getY())};
  moved.clear();
  bool isAlone = hasUses(value, 1) && hasUses(quotient, 1) && found->isAlone;
  if (!getSplat(value) && canMove(value, isAlone))
    op.getY().replaceAllUsesWith(move(value));
}

namespace {
struct MoveBytes : ptc::impl::MoveBytesBase<MoveBytes> {
  void runOnOperation() override { ByteMover(getOperation()).run(); }
};
} // namespace
