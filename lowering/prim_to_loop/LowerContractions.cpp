//===- LowerContractions.cpp - matmul, convolution ------------------------===//
//
// Matrix products and convolutions are one thing: acc[b, m, n] = sum over k of
// lhs(b, m, k) * rhs(b, k, n). A convolution's m dims are the image and the output
// pixel, its k dims the window and the channel; padding is a mask in the lhs region.
// Depthwise convolutions have no n dim to speak of: they are reductions over the window. So are, for targets whose
// vectors run along the channels of several groups, those of a few channels a group.
//
//===----------------------------------------------------------------------===//

#include "ir/expr/DimName.h"
#include "ir/prim/ByteRows.h"
#include "ir/prim/Elements.h"
#include "lowering/prim_to_loop/FunctionLowering.h"
#include "lowering/prim_to_loop/NeededTerms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

using Exprs = SmallVector<Expr>;

bool isEightBits(Value value) {
  Type type = prim::getElementType(value);
  return isa<IntegerType>(type) && type.getIntOrFloatBitWidth() == 8;
}

/// Whether nothing but a weight's or constant's elements lies below bit operations and views.
bool isOfWeight(Value value) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<prim::XorOp, prim::BitcastOp, prim::TransposeOp, prim::ReshapeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<prim::WeightOp, prim::ConstantOp>(op);
}

/// A weight of few bits with its scales and zero points: what products convert while they read it.
bool isOfFewBits(Value value) {
  constexpr unsigned mostOps = 40;
  SmallVector<Value> open{value};
  SmallPtrSet<Operation *, 16> seen;
  bool hasWeight = false;
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op || seen.size() == mostOps)
      return false;
    if (!seen.insert(op).second)
      continue;
    Type element = prim::getElementType(op->getResult(0));
    hasWeight |= isa<prim::WeightOp>(op) && isa<IntegerType>(element) && element.getIntOrFloatBitWidth() <= 8;
    if (isa<prim::WeightOp, prim::ConstantOp, prim::IotaOp>(op))
      continue;
    if (!isa<prim::BroadcastOp, prim::ReshapeOp, prim::TransposeOp, prim::SliceOp, prim::ConvertOp, prim::BitcastOp,
             prim::AndOp, prim::XorOp, prim::ShiftRightOp, prim::AddOp, prim::SubOp, prim::MulOp>(op))
      return false;
    llvm::append_range(open, op->getOperands());
  }
  return hasWeight;
}

/// Whether four neighbours along a dim lie apart in what a view reads, as behind a shuffle of channels: instructions
/// take them at once.
bool partsGroups(FunctionLowering &lowering, const Tensor &tensor, int64_t axis, Location loc) {
  constexpr int64_t together = 4;
  std::optional<int64_t> extent = tensor.dims[axis].asConstant();
  if (tensor.buffer || !extent || *extent % together != 0)
    return false;
  OpBuilder::InsertionGuard guard(lowering.builder);
  MLIRContext *context = lowering.builder.getContext();
  auto node = PointwiseOp::create(lowering.builder, loc, prim::getExprArray(context, tensor.dims));
  Body body = lowering.beginBody(node.getBody(), tensor.dims, loc);
  tensor.element(body, {lowering.dims(0, tensor.dims.size()), {}});
  body.ranges[dimName(axis)] = {.min = 0, .max = *extent / together - 1};
  auto placed = [&](Expr index, int64_t number) {
    return index.substitute(
        [&](StringRef name) { return name == dimName(axis) ? Expr::dim(context, axis) * together + number : Expr(); });
  };
  auto isApart = [&](LoadOp load, int64_t number) {
    int64_t distance = 0;
    for (Expr index : prim::getExprs(load.getIndices()))
      if (Expr moved = (placed(index, number) - placed(index, 0)).simplify(body.ranges); !moved.isConstant(0))
        distance += moved.asConstant().value_or(together);
    return distance != number;
  };
  bool isAny = false;
  node->walk([&](LoadOp load) {
    for (int64_t number = 1; number < together; ++number)
      isAny |= isApart(load, number);
  });
  node.erase();
  return isAny;
}

/// Operands of templates are read many times: whatever computes is realized. Of widened 8-bit integers, what is
/// stored is the 8 bits, neighbours along axis `grouped` together; a border of constants around them stays a condition.
/// Of widened floats it is the narrow ones, which are returned: regions widen what they yield. What is read `asRows`,
/// whole ones, may have them anywhere.
Value prepareOperand(FunctionLowering &lowering, Value value, Location loc, bool asRows = false, int64_t grouped = -1) {
  if (auto convert = value.getDefiningOp<prim::ConvertOp>(); convert && isEightBits(convert.getX())) {
    auto pad = convert.getX().getDefiningOp<prim::PadOp>();
    if (pad && (pad.getKind() != prim::PadKind::Constant || !lowering.get(pad.getValue()).isScalarConstant))
      pad = {};
    // Channels are padded in memory: groups of them are read at once.
    if (pad && prim::getRank(pad.getX()) > 2 && prim::getDims(pad.getX())[1] != prim::getDims(convert.getX())[1]) {
      lowering.realize(lowering.get(convert.getX()), loc);
      lowering.lowerPointwise(convert);
      return value;
    }
    Value stored = pad ? pad.getX() : convert.getX();
    if (!isOfWeight(stored))
      lowering.realizeUnlessCheap(lowering.get(stored), loc);
    bool isProduct = grouped >= 0 && isa<IntegerType>(prim::getElementType(value));
    if (isProduct && partsGroups(lowering, lowering.get(stored), grouped, loc))
      lowering.realize(lowering.get(stored), loc);
    if (pad)
      lowering.lowerView(pad);
    lowering.lowerPointwise(convert);
    return value;
  }
  value = unwidened(value);
  if (Tensor &tensor = lowering.get(value); tensor.operations > 0 || tensor.reads > 1)
    asRows ? lowering.realizeBelowViews(value, loc, asRows) : lowering.realize(tensor, loc);
  return value;
}

/// The type an accumulator has: narrow floats add up in f32.
Type getAccumulatorType(Type scalarType) {
  if (isa<FloatType>(scalarType) && scalarType.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(scalarType.getContext());
  return scalarType;
}

/// What a contraction is made of; the functions say what stands in its regions.
struct Contraction {
  Exprs batch, m, n, k;
  std::function<Value(Body &)> lhs, rhs;
  std::function<Exprs()> resultIndex;
  Exprs resultDims;
  Type elementType;
  Exprs needed;                                  // of the node
  bool keepsType = false, takesByteRows = false; // prim::keepsTypeAttr, prim::byteRowsAttr

  Exprs domain() const {
    Exprs all(batch);
    all.append(m);
    all.append(n);
    all.append(k);
    return all;
  }
};

Tensor emitContraction(FunctionLowering &lowering, const Contraction &c, Location loc) {
  OpBuilder &b = lowering.builder;
  Value buffer = lowering.createBuffer(c.resultDims, c.elementType, loc);
  Exprs domain = c.domain();
  ArrayAttr needed = c.needed.empty() ? ArrayAttr() : prim::getExprArray(b.getContext(), c.needed);
  OpBuilder::InsertionGuard guard(b);
  auto node = ContractionOp::create(b, loc, prim::getExprArray(b.getContext(), domain), int64_t(c.batch.size()),
                                    int64_t(c.m.size()), int64_t(c.n.size()), int64_t(c.k.size()), needed);
  if (c.keepsType)
    node->setAttr(prim::keepsTypeAttr, b.getUnitAttr());
  if (c.takesByteRows)
    node->setAttr(prim::byteRowsAttr, b.getUnitAttr());
  Body lhs = lowering.beginBody(node.getLhs(), domain, loc);
  YieldOp::create(b, loc, widen(lhs, c.lhs(lhs)));
  Body rhs = lowering.beginBody(node.getRhs(), domain, loc);
  YieldOp::create(b, loc, widen(rhs, c.rhs(rhs)));
  Type accumulator = getAccumulatorType(prim::getScalarType(c.elementType));
  Body epilogue = lowering.beginBody(node.getEpilogue(), domain, loc, {accumulator});
  Value result = narrow(epilogue, node.getEpilogue().getArgument(0), c.elementType);
  StoreOp::create(b, loc, result, buffer, ArrayRef<Expr>(c.resultIndex()));
  return lowering.readOf(buffer, c.elementType);
}

//===----------------------------------------------------------------------===//
// Matmul
//===----------------------------------------------------------------------===//

/// Whether of all that rhs reads one load alone, of bytes, changes within words: groups of neighbours along k that
/// whoever unpacks numbers takes at a time.
bool readsWords(FunctionLowering &lowering, const Contraction &c, Location loc) {
  constexpr int64_t together = 16; // 2 bits of a word, and a thread's part of a step of tensor cores
  std::optional<int64_t> depth = c.k.back().asConstant();
  if (!depth || *depth % together != 0)
    return false;
  OpBuilder::InsertionGuard guard(lowering.builder);
  MLIRContext *context = lowering.builder.getContext();
  auto node = PointwiseOp::create(lowering.builder, loc, prim::getExprArray(context, c.domain()));
  Body body = lowering.beginBody(node.getBody(), c.domain(), loc);
  c.rhs(body);
  unsigned k = c.domain().size() - 1;
  std::string name = dimName(k), within = dimName(k + 1);
  body.ranges[name] = {.min = 0, .max = *depth / together - 1};
  body.ranges[within] = {.min = 0, .max = together - 1};
  auto changes = [&](Expr expr) {
    Expr place = Expr::dim(context, k) * together + Expr::dim(context, k + 1);
    auto placed = [&](StringRef symbol) { return symbol == name ? place : Expr(); };
    return expr.substitute(placed).simplify(body.ranges).uses(within);
  };
  unsigned words = 0, others = 0;
  node->walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op)) {
      if (llvm::any_of(prim::getExprs(load.getIndices()), changes))
        ++(load.getType().isInteger(8) ? words : others);
    }
    // The place of a number in its byte.
    auto index = dyn_cast<IndexOp>(op);
    others += index && changes(index.getExpr()) && index.getExpr().getKind() != ExprKind::Mod;
    others += isa<MaskedOp>(op);
  });
  node.erase();
  return words == 1 && others == 0;
}

/// Whether rhs is converted where the product reads it, and not beforehand.
bool convertsOnRead(FunctionLowering &lowering, prim::MatmulOp op, const Contraction &c) {
  const TargetTraits &target = lowering.target;
  if (!target.convertsWeights || !isOfFewBits(op.getRhs()))
    return false;
  auto rows = product(op.getContext(), ArrayRef(prim::getDims(op.getLhs())).drop_back()).asConstant();
  bool isAny = target.mostStreamedRows == 0 || (rows && *rows <= target.mostStreamedRows);
  return isAny || readsWords(lowering, c, op.getLoc());
}

// Batch dims of the lhs become m dims where the rhs has none: one large product.
void lowerMatmul(FunctionLowering &lowering, prim::MatmulOp op) {
  Location loc = op.getLoc();
  int64_t last = prim::getRank(op.getLhs()) - 1;
  Value a = prepareOperand(lowering, op.getLhs(), loc, lowering.target.readsRowsAnywhere, last), b = op.getRhs();
  Exprs lhsDims = prim::getDims(op.getLhs()), rhsDims = prim::getDims(op.getRhs());
  unsigned lead = lhsDims.size() - 2, batch = rhsDims.size() - 2;
  Contraction c;
  c.batch.assign(lhsDims.begin(), lhsDims.begin() + batch);
  c.m.assign(lhsDims.begin() + batch, lhsDims.end() - 1);
  c.n = {rhsDims.back()};
  c.k = {lhsDims.back()};
  c.resultDims = prim::getDims(op.getResult());
  c.elementType = prim::getElementType(op.getResult());
  if (lowering.target.skipsZeros)
    c.needed = findNeededTerms(op);
  c.takesByteRows = lowering.target.takesByteRows && op->hasAttr(prim::byteRowsAttr);
  unsigned rows = lead + 1; // batch and m dims together
  Expr n = Expr::dim(op.getContext(), rows), k = Expr::dim(op.getContext(), rows + 1);
  ElementFn lhs = lowering.get(a).element, rhs = lowering.get(b).element;
  c.lhs = [&](Body &body) {
    Exprs at = lowering.dims(0, rows);
    at.push_back(k);
    return lhs(body, {at, {}});
  };
  c.rhs = [&](Body &body) {
    Exprs at = lowering.dims(0, batch);
    at.append({k, n});
    return rhs(body, {at, {}});
  };
  if (!convertsOnRead(lowering, op, c))
    rhs = lowering.get(prepareOperand(lowering, b, loc)).element;
  c.resultIndex = [&] { return lowering.dims(0, rows + 1); };
  lowering.set(op.getResult(), emitContraction(lowering, c, loc));
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// x at a position that may lie in the padding.
Value emitPadded(Body &body, const Tensor &x, ArrayRef<Expr> at, ArrayRef<Expr> conditions) {
  Exprs undecided;
  for (Expr condition : conditions) {
    condition = condition.simplify(body.ranges);
    if (!body.holds(condition))
      undecided.push_back(condition);
  }
  Index index{Exprs(at), {}};
  if (undecided.empty())
    return x.element(body, index);
  OpBuilder &b = body.builder;
  Type scalarType = prim::getScalarType(x.elementType);
  Value zero = arith::ConstantOp::create(b, body.loc, b.getZeroAttr(scalarType));
  auto masked =
      MaskedOp::create(b, body.loc, scalarType, prim::getExprArray(b.getContext(), undecided), ValueRange(), zero);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&masked.getBody().emplaceBlock());
  YieldOp::create(b, body.loc, x.element(body, index));
  return masked.getResult();
}

/// Positions in x of one output pixel and window element, with their conditions.
struct WindowPosition {
  Exprs at, conditions;
};

WindowPosition getWindowPosition(prim::ConvolutionOp op, ArrayRef<Expr> outputAt, ArrayRef<Expr> windowAt,
                                 ArrayRef<Expr> extents, const SymbolRanges &ranges) {
  WindowPosition position;
  Exprs low = prim::getExprs(op.getLow());
  for (unsigned i = 0; i < outputAt.size(); ++i) {
    int64_t stride = op.getStrides()[i], dilation = op.getDilations()[i];
    Expr at;
    if (op.getTransposed()) {
      Expr scaled = (outputAt[i] + low[i] - windowAt[i] * dilation).simplify(ranges);
      at = scaled.floorDiv(stride);
      if (stride != 1)
        position.conditions.push_back(-scaled.mod(stride));
    } else {
      at = outputAt[i] * stride + windowAt[i] * dilation - low[i];
    }
    at = at.simplify(ranges);
    position.at.push_back(at);
    position.conditions.push_back(at);
    position.conditions.push_back(extents[i] - 1 - at);
  }
  return position;
}

/// Whether groups are so small that several fill a vector, and have as many channels as lanes that hold them do: a
/// product for each group would leave most lanes, and most of its short sums' time, unused.
bool hasSmallGroups(prim::ConvolutionOp op, const TargetTraits &target) {
  constexpr int64_t widest = 16, mostTerms = 128; // lanes of a vector; of a window that tiles of outputs share
  if (!target.groupsInWindows || op.getTransposed() || op.getGroups() == 1 || !isOfWeight(op.getW()) ||
      !prim::getScalarType(prim::getElementType(op.getResult())).isF32() ||
      !prim::getScalarType(prim::getElementType(op.getX())).isF32())
    return false;
  Exprs w = prim::getDims(op.getW());
  int64_t terms = 1;
  for (Expr extent : ArrayRef(w).drop_front())
    terms *= extent.asConstant().value_or(mostTerms + 1);
  auto channels = w[0].asConstant(), taken = w[1].asConstant();
  if (!channels || !taken || terms > mostTerms || w.size() < 4)
    return false;
  int64_t group = *channels / op.getGroups();
  return group >= 2 && group < widest && llvm::isPowerOf2_64(uint64_t(group)) && *taken == group;
}

// Domain [n, channels, out... | window..., channels of a group]: vectorizes over channels or columns.
void lowerDepthwise(FunctionLowering &lowering, prim::ConvolutionOp op, const Tensor &x, const Tensor &w) {
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  Exprs result = prim::getDims(op.getResult()), weights = prim::getDims(op.getW());
  unsigned spatial = result.size() - 2, kept = result.size();
  Expr taken = op.getTransposed() ? Expr::constant(context, 1) : weights[1]; // channels of a group
  bool isDepthwise = taken.isConstant(1);
  Exprs domain(result);
  domain.append(weights.begin() + 2, weights.end());
  if (!isDepthwise)
    domain.push_back(taken);
  Type elementType = prim::getElementType(op.getResult());
  Value buffer = lowering.createBuffer(result, elementType, loc);
  OpBuilder &b = lowering.builder;
  OpBuilder::InsertionGuard guard(b);
  auto node = ReductionOp::create(b, loc, prim::getExprArray(context, domain), int64_t(domain.size() - kept));
  Body body = lowering.beginBody(node.getBody(), domain, loc);
  Exprs outputAt = lowering.dims(2, spatial), windowAt = lowering.dims(kept, spatial);
  Exprs extents(x.dims.begin() + 2, x.dims.end());
  WindowPosition position = getWindowPosition(op, outputAt, windowAt, extents, body.ranges);
  Expr channel = Expr::dim(context, 1);
  Expr multiplier = result[1].floorDiv(Expr::constant(context, op.getGroups()));
  Expr within = isDepthwise ? Expr::constant(context, 0) : Expr::dim(context, kept + spatial);
  Exprs xAt{Expr::dim(context, 0), (channel.floorDiv(multiplier) * taken + within).simplify(body.ranges)};
  xAt.append(position.at);
  Exprs wAt{channel, within};
  if (op.getTransposed()) // w is [channels, out/groups, window...]
    wAt = {channel.floorDiv(multiplier).simplify(body.ranges), channel.mod(multiplier).simplify(body.ranges)};
  wAt.append(windowAt);
  Value element = widen(body, emitPadded(body, x, xAt, position.conditions));
  Value weight = widen(body, w.element(body, {wAt, {}}));
  Value product = isa<FloatType>(element.getType()) ? arith::MulFOp::create(b, loc, element, weight).getResult()
                                                    : arith::MulIOp::create(b, loc, element, weight).getResult();
  Value sum = ReduceOp::create(b, loc, product, prim::ReduceKindAttr::get(context, prim::ReduceKind::Sum), UnitAttr(),
                               UnitAttr());
  StoreOp::create(b, loc, narrow(body, sum, elementType), buffer, ArrayRef<Expr>(lowering.dims(0, kept)));
  lowering.set(op.getResult(), lowering.readOf(buffer, elementType));
}

/// Realizes bytes of which a value is made, less a zero point, in f32: windows that overlap widen what they share once,
/// and memory holds a quarter. Whether it is such a value.
bool storeBytes(FunctionLowering &lowering, Value value, Location loc) {
  SmallVector<Operation *> steps;
  Value bytes = value;
  for (; !isEightBits(bytes); bytes = steps.back()->getOperand(0)) {
    Operation *op = bytes.getDefiningOp();
    auto zero = isa_and_nonnull<prim::SubOp>(op) ? op->getOperand(1).getDefiningOp<prim::BroadcastOp>() : nullptr;
    if (!isa_and_nonnull<prim::ConvertOp>(op) && !(zero && lowering.get(zero.getX()).isScalarConstant))
      return false;
    steps.push_back(op);
  }
  if (!prim::getElementType(value).isF32())
    return false;
  lowering.realizeUnlessCheap(lowering.get(bytes), loc);
  for (Operation *step : llvm::reverse(steps))
    lowering.lowerPointwise(step);
  return true;
}

/// Whether sums run along windows, with lanes along the channels of all groups.
bool isOfWindows(prim::ConvolutionOp op, const TargetTraits &target) {
  Expr channels =
      op.getTransposed() ? prim::getDims(op.getX())[1].floorDiv(op.getGroups()) : prim::getDims(op.getW())[1];
  return op.getGroups() > 1 && (channels.isConstant(1) || hasSmallGroups(op, target));
}

void lowerConvolution(FunctionLowering &lowering, prim::ConvolutionOp op) {
  Location loc = op.getLoc();
  if (lowering.target.storesBorders)
    lowering.storeBorders(op.getX());
  if (isOfWindows(op, lowering.target)) {
    Value x = storeBytes(lowering, op.getX(), loc) ? op.getX() : prepareOperand(lowering, op.getX(), loc);
    Value w = prepareOperand(lowering, op.getW(), loc);
    return lowerDepthwise(lowering, op, lowering.get(x), lowering.get(w));
  }
  const Tensor input = lowering.get(prepareOperand(lowering, op.getX(), loc, /*asRows=*/false, /*grouped=*/1));
  const Tensor weight = lowering.get(prepareOperand(lowering, op.getW(), loc));
  MLIRContext *context = op.getContext();
  Exprs result = prim::getDims(op.getResult()), x = prim::getDims(op.getX()), w = prim::getDims(op.getW());
  int64_t groups = op.getGroups();
  Expr channelsPerGroup = op.getTransposed() ? x[1].floorDiv(groups) : w[1];

  unsigned spatial = result.size() - 2;
  Expr outPerGroup = op.getTransposed() ? w[1] : w[0].floorDiv(groups);
  Contraction c;
  c.keepsType = op->hasAttr(prim::keepsTypeAttr);
  if (groups > 1)
    c.batch = {Expr::constant(context, groups)};
  c.m = {result[0]};
  c.m.append(result.begin() + 2, result.end());
  c.n = {outPerGroup};
  c.k.assign(w.begin() + 2, w.end());
  c.k.push_back(channelsPerGroup);
  c.resultDims = result;
  c.elementType = prim::getElementType(op.getResult());
  unsigned next = c.batch.size();
  Expr group = groups > 1 ? Expr::dim(context, 0) : Expr::constant(context, 0);
  Expr image = Expr::dim(context, next);
  Exprs outputAt = lowering.dims(next + 1, spatial);
  Expr out = Expr::dim(context, next + 1 + spatial);
  Exprs windowAt = lowering.dims(next + 2 + spatial, spatial);
  Expr channel = Expr::dim(context, next + 2 + 2 * spatial);
  c.lhs = [&](Body &body) {
    Exprs extents(x.begin() + 2, x.end());
    WindowPosition position = getWindowPosition(op, outputAt, windowAt, extents, body.ranges);
    Exprs at{image, group * channelsPerGroup + channel};
    at.append(position.at);
    return emitPadded(body, input, at, position.conditions);
  };
  c.rhs = [&](Body &body) {
    Exprs at{group * outPerGroup + out, channel};
    if (op.getTransposed())
      at = {group * channelsPerGroup + channel, out};
    at.append(windowAt);
    return weight.element(body, {at, {}});
  };
  c.resultIndex = [&] {
    Exprs at{image, group * outPerGroup + out};
    at.append(outputAt);
    return at;
  };
  lowering.set(op.getResult(), emitContraction(lowering, c, loc));
}

} // namespace

bool FunctionLowering::lowerContraction(Operation *op) {
  if (auto matmul = dyn_cast<prim::MatmulOp>(op))
    lowerMatmul(*this, matmul);
  else if (auto convolution = dyn_cast<prim::ConvolutionOp>(op))
    ::lowerConvolution(*this, convolution);
  else if (auto attention = dyn_cast<prim::AttentionOp>(op))
    lowerAttention(attention);
  else
    return false;
  return true;
}
