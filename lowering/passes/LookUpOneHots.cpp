//===- LookUpOneHots.cpp - products with one-hot rows are lookups ---------===//
//
// Exporters of frameworks that train on other hardware write an embedding as a product:
//
//   matmul(h, table)     h[..., k] = 1 where k = index[...], else 0
//
// One row of the table comes of each index, or zeros where the index is outside of it. So it is that row:
//
//   select(inside(index), gather(table, clamped(index)), 0)
//
// The sums are the same bits but for the sign of zeros, and unless the table holds infinities or NaN, which 0 times
// anything else in their column makes of every sum; hence not under --fp=strict. The match looks at h alone: an
// equality of integers with 0, 1, 2, ... along the last dim, as 1 and 0 of any type, perhaps with other leading dims.
//
//===----------------------------------------------------------------------===//
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"

namespace ptc {
#define GEN_PASS_DEF_LOOKUPONEHOTS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

/// Whether the value is 0, 1, 2, ... along its last dim, the same everywhere else.
static bool countsUp(Value value) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>()) {
    int64_t last = getRank(value) - 1;
    bool isLastKept = !broadcast.getAxes().empty() && broadcast.getAxes().back() == last &&
                      getDims(broadcast.getX()).back() == getDims(value).back();
    return isLastKept && countsUp(broadcast.getX());
  }
  if (auto iota = value.getDefiningOp<IotaOp>())
    return int64_t(iota.getAxis()) == getRank(value) - 1;
  DenseElementsAttr elements = getConstant(value);
  if (!elements || !isa<IntegerType>(elements.getElementType()) || getRank(value) == 0)
    return false;
  int64_t size = elements.getType().getShape().back();
  for (auto [i, element] : llvm::enumerate(elements.getValues<APInt>()))
    if (element != uint64_t(int64_t(i) % size))
      return false;
  return true;
}

namespace {
class Lookup {
public:
  explicit Lookup(MatmulOp product) : product(product), b(product), loc(product.getLoc()) {}

  bool rewrite() {
    if (getRank(product.getRhs()) != 2)
      return false;
    Value index = findIndex(product.getLhs());
    if (!index)
      return false;
    SmallVector<Expr> dims = getDims(index);
    Value zero = spread(constant(getElementType(index), 0), dims);
    Value last = spread(constant(getElementType(index), getDims(product.getRhs())[0].getValue() - 1), dims);
    Value clamped = MinimumOp::create(b, loc, MaximumOp::create(b, loc, index, zero), last);
    Value isInside = EqOp::create(b, loc, index, clamped);
    Value rows = GatherOp::create(b, loc, product.getRhs(), clamped, 0);
    SmallVector<int64_t> leading = llvm::to_vector(llvm::seq<int64_t>(dims.size()));
    SmallVector<Expr> whole = getDims(product.getResult());
    Type condition = getTensorType(whole, getElementType(isInside));
    Value nothing = spread(constant(getElementType(product.getRhs()), 0), whole);
    Value result = SelectOp::create(b, loc, BroadcastOp::create(b, loc, condition, isInside, leading), rows, nothing);
    product.getResult().replaceAllUsesWith(result);
    return true;
  }

private:
  Value findIndex(Value oneHot);
  Value withoutLastDim(Value value);

  Value constant(Type type, int64_t number) {
    auto scalar = RankedTensorType::get({}, type);
    Attribute element = isa<FloatType>(type) ? Attribute(b.getFloatAttr(type, double(number)))
                                             : Attribute(b.getIntegerAttr(type, number));
    return ConstantOp::create(b, loc, scalar, DenseElementsAttr::get(scalar, element));
  }
  Value spread(Value scalar, ArrayRef<Expr> dims) {
    return BroadcastOp::create(b, loc, getTensorType(dims, getElementType(scalar)), scalar, ArrayRef<int64_t>());
  }

  MatmulOp product;
  OpBuilder b;
  Location loc;
};
} // namespace

/// The value without its last dim, along which it does not vary; null if it may.
Value Lookup::withoutLastDim(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  Value x = broadcast.getX();
  SmallVector<int64_t> axes(broadcast.getAxes());
  SmallVector<Expr> dims = getDims(value), own = getDims(x);
  dims.pop_back();
  if (!axes.empty() && axes.back() == getRank(value) - 1) {
    if (!own.back().isConstant(1))
      return {};
    own.pop_back();
    axes.pop_back();
    x = ReshapeOp::create(b, loc, getTensorType(own, getElementType(x)), x);
  }
  return BroadcastOp::create(b, loc, getTensorType(dims, getElementType(x)), x, axes);
}

/// The integers that the rows of a one-hot matrix stand for, of the matrix's dims but the last; null if it is none.
Value Lookup::findIndex(Value oneHot) {
  if (auto reshape = oneHot.getDefiningOp<ReshapeOp>()) {
    if (getRank(reshape.getX()) == 0 || getDims(reshape.getX()).back() != getDims(oneHot).back())
      return {};
    Value index = findIndex(reshape.getX());
    SmallVector<Expr> dims = getDims(oneHot);
    dims.pop_back();
    return index ? ReshapeOp::create(b, loc, getTensorType(dims, getElementType(index)), index) : index;
  }
  Value condition;
  if (auto convert = oneHot.getDefiningOp<ConvertOp>())
    condition = convert.getX();
  else if (auto select = oneHot.getDefiningOp<SelectOp>();
           select && getSplat(select->getOperand(1)) == 1 && getSplat(select->getOperand(2)) == 0)
    condition = select->getOperand(0);
  auto equal = condition ? condition.getDefiningOp<EqOp>() : EqOp();
  if (!equal || getRank(condition) == 0 || !getDims(condition).back().isConstant())
    return {};
  for (auto [index, count] : {std::pair(equal.getA(), equal.getB()), std::pair(equal.getB(), equal.getA())})
    if (isa<IntegerType>(getElementType(index)) && countsUp(count))
      if (Value found = withoutLastDim(index))
        return found;
  return {};
}

namespace {
struct LookUpOneHots : ptc::impl::LookUpOneHotsBase<LookUpOneHots> {
  void runOnOperation() override {
    SmallVector<MatmulOp> products;
    getOperation().walk([&](MatmulOp product) { products.push_back(product); });
    for (MatmulOp product : products)
      Lookup(product).rewrite();
    eraseDeadOps(getOperation());
  }
};
} // namespace
