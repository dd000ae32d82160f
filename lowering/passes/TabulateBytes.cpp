//===- TabulateBytes.cpp - functions of one byte are looked up ------------===//
//
// Between quantised tensors lie functions of one of them: an activation with its scales, and the steps of others that a
// quantiser put inside of it, as in SiLU:
//
//   q1 = round(sigmoid(real(q0)) / s1)    q2 = round(real(q0) * real(q1) / s2)
//
// All of that depends on one byte, so it is one of 256 numbers, which are computed here and looked up in each run. A
// lookup takes as long as some twenty operations on a vector: what has an elementary function takes more, with its
// divisions two to five times as much. The reference interpreter computes the table, rounding as the ops say.
//
// Quantisers put their steps around reshapes, too: what comes behind one is a function of the reshaped bytes.
//
// A table's numbers are those that something else reads: bytes, or floats where bytes are taken apart behind it by
// whoever reads them. Floats are computed from bytes that are stored anyway.
//
//===----------------------------------------------------------------------===//
#include "ir/eval/ReferenceEval.h"
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "mlir/IR/IRMapping.h"

namespace ptc {
#define GEN_PASS_DEF_TABULATEBYTES
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

namespace {

constexpr int64_t tableSize = 256;
constexpr int64_t fewestElements = 1024; // of a tensor, for a table of its own

/// A value that depends on one byte, element by element.
struct OfByte {
  Value source;
  Value lastBytes;               // bytes on all ways from the source to the value, the nearest; the source if none are
  bool hasFunction = false;      // an elementary one, since the source
  bool hasFunctionSince = false; // since lastBytes
};

class Tabulator {
public:
  explicit Tabulator(func::FuncOp function) : function(function), b(function.getContext()) {}

  void run() {
    function.walk([&](Operation *op) {
      if (auto reshape = dyn_cast<ReshapeOp>(op))
        passBy(reshape);
      else if (isa<PointwiseOpInterface>(op))
        visit(op);
    });
    SmallVector<Value> roots;
    for (auto &[value, known] : found)
      if (known.hasFunction && isOfStoredBytes(value))
        kept.insert(value);
      else if (known.hasFunction && isReadElsewhere(value))
        roots.push_back(value);
    for (Value root : roots)
      tabulate(root);
    eraseDeadOps(function);
  }

private:
  void visit(Operation *op);
  void passBy(ReshapeOp reshape);
  OfByte lookup(Value value) const;
  bool isReadElsewhere(Value value) const;
  bool isOfStoredBytes(Value value) const;
  DenseElementsAttr computeTable(Value value, Value source);
  bool isOfByte(Operation *op) const { return op->getNumResults() == 1 && found.contains(op->getResult(0)); }
  void tabulate(Value root);

  func::FuncOp function;
  OpBuilder b;
  llvm::MapVector<Value, OfByte> found;
  llvm::DenseMap<Value, Value> reshaped; // bytes that reshapes of their functions have made, to the bytes before
  llvm::DenseSet<Value> kept;            // computed of bytes that have a table
};

} // namespace

static bool isByte(Value value) {
  auto type = dyn_cast<IntegerType>(getElementType(value));
  return type && type.getWidth() == 8 && !type.isSignless();
}

/// The constant of one value that a value is, through views.
static DenseElementsAttr getSplatConstant(Value value) {
  while (isa_and_nonnull<BroadcastOp, ReshapeOp, TransposeOp, SliceOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  DenseElementsAttr elements = getConstant(value);
  return elements && elements.isSplat() ? elements : DenseElementsAttr();
}

static bool isElementary(Operation *op) {
  return isa<PowOp, Atan2Op, ExpOp, Exp2Op, Expm1Op, LogOp, Log2Op, Log1pOp, SinOp, CosOp, TanOp, AsinOp, AcosOp,
             AtanOp, SinhOp, CoshOp, TanhOp, AsinhOp, AcoshOp, AtanhOp, ErfOp, SigmoidOp>(op);
}

static bool isLarge(Value value) {
  std::optional<int64_t> count = product(value.getContext(), getDims(value)).asConstant();
  return !count || *count >= fewestElements;
}

/// Whether products, or others that are no pointwise operations, read wider integers: they read the bytes themselves.
static bool widensForOthers(Operation *op) {
  return widens(op) && isa<IntegerType>(getElementType(op->getResult(0))) &&
         !llvm::all_of(op->getUsers(), llvm::IsaPred<PointwiseOpInterface>);
}

/// Nothing if the value depends on more than one byte.
OfByte Tabulator::lookup(Value value) const {
  if (auto known = found.find(value); known != found.end())
    return known->second;
  return isByte(value) ? OfByte{value, value} : OfByte();
}

void Tabulator::visit(Operation *op) {
  Value result = op->getResult(0);
  if (!getElementType(result).isIntOrFloat() || widensForOthers(op))
    return;
  OfByte merged;
  for (Value operand : op->getOperands()) {
    if (getSplatConstant(operand))
      continue;
    OfByte known = lookup(operand);
    if (!known.source || (merged.source && merged.source != known.source))
      return;
    bool isFirst = !merged.source, isSame = isFirst || merged.lastBytes == known.lastBytes;
    merged.source = known.source;
    merged.lastBytes = isSame ? known.lastBytes : known.source;
    merged.hasFunction |= known.hasFunction;
    merged.hasFunctionSince |= known.hasFunctionSince;
    if (!isSame)
      merged.hasFunctionSince = merged.hasFunction;
  }
  if (!merged.source || !isLarge(result))
    return;
  merged.hasFunction |= isElementary(op);
  merged.hasFunctionSince |= isElementary(op);
  if (isByte(result)) {
    merged.lastBytes = result;
    merged.hasFunctionSince = false;
  }
  found[result] = merged;
}

/// What is computed of reshaped bytes is what is reshaped.
void Tabulator::passBy(ReshapeOp reshape) {
  auto known = found.find(reshape.getX());
  if (known == found.end())
    return;
  OfByte moved = known->second;
  b.setInsertionPoint(reshape);
  Type type = getTensorType(getDims(reshape.getResult()), getElementType(moved.source));
  Value source = ReshapeOp::create(b, reshape.getLoc(), type, moved.source);
  reshaped[source] = moved.source;
  if (moved.lastBytes == moved.source)
    moved.lastBytes = source;
  moved.source = source;
  found[reshape.getResult()] = moved;
}

/// Whether something reads the value that is no function of the same byte.
bool Tabulator::isReadElsewhere(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) { return !isOfByte(user); });
}

/// Whether little is computed of bytes that have a table themselves.
bool Tabulator::isOfStoredBytes(Value value) const {
  const OfByte &known = found.find(value)->second;
  auto bytes = found.find(known.lastBytes);
  return known.lastBytes != value && !known.hasFunctionSince && bytes != found.end() && bytes->second.hasFunction &&
         isReadElsewhere(known.lastBytes);
}

/// The value for each byte, from bits of zeros on; null if one of the ops cannot be run.
DenseElementsAttr Tabulator::computeTable(Value value, Value source) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front()); // of constants alone, outside of all loops
  IRMapping mapping;
  SmallVector<Operation *> made;
  auto typeOf = [](Value like) { return RankedTensorType::get({tableSize}, getElementType(like)); };
  auto constant = [&](DenseElementsAttr elements) {
    auto op = ConstantOp::create(b, value.getLoc(), elements.getType(), elements);
    made.push_back(op);
    return op.getResult();
  };
  SmallVector<APInt> bytes;
  for (int64_t i = 0; i < tableSize; ++i)
    bytes.push_back(APInt(8, uint64_t(i)));
  while (Value before = reshaped.lookup(source))
    source = before;
  mapping.map(source, constant(DenseElementsAttr::get(typeOf(source), bytes)));
  auto copy = [&](Value original) -> Value {
    if (DenseElementsAttr splat = getSplatConstant(original))
      return constant(splat.resizeSplat(typeOf(original)));
    Operation *op = original.getDefiningOp();
    if (isa<ReshapeOp>(op))
      return mapping.lookup(op->getOperand(0));
    Operation *clone = b.clone(*op, mapping);
    clone->getResult(0).setType(typeOf(original));
    made.push_back(clone);
    return clone->getResult(0);
  };
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value original = open.back();
    size_t before = open.size();
    if (!mapping.contains(original) && !getSplatConstant(original))
      llvm::copy_if(original.getDefiningOp()->getOperands(), std::back_inserter(open),
                    [&](Value operand) { return !mapping.contains(operand); });
    if (open.size() > before)
      continue;
    open.pop_back();
    if (!mapping.contains(original))
      mapping.map(original, copy(original));
  }
  eval::NoWeights none;
  auto tensor = eval::evaluateValue(mapping.lookup(value), {}, [](Value) { return nullptr; }, {}, none);
  for (Operation *op : llvm::reverse(made))
    op->erase();
  if (!tensor) {
    llvm::consumeError(tensor.takeError());
    return {};
  }
  return tensor->toAttribute();
}

void Tabulator::tabulate(Value root) {
  Value source = found.find(root)->second.source;
  b.setInsertionPointAfterValue(root);
  Location loc = root.getLoc();
  DenseElementsAttr numbers = computeTable(root, source);
  if (!numbers)
    return;
  Value table = ConstantOp::create(b, loc, numbers.getType(), numbers);
  auto typeOf = [&](unsigned bits, IntegerType::SignednessSemantics signedness) {
    return getTensorType(getDims(source), IntegerType::get(b.getContext(), bits, signedness));
  };
  Value index = source;
  if (getElementType(index).isSignedInteger())
    index = BitcastOp::create(b, loc, typeOf(8, IntegerType::Unsigned), index);
  index = ConvertOp::create(b, loc, typeOf(32, IntegerType::Signed), index);
  Value value = GatherOp::create(b, loc, table, index, 0);
  root.replaceUsesWithIf(value, [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return !isOfByte(user) || kept.contains(user->getResult(0));
  });
}

namespace {
struct TabulateBytes : ptc::impl::TabulateBytesBase<TabulateBytes> {
  void runOnOperation() override { Tabulator(getOperation()).run(); }
};
} // namespace
