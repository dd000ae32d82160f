//===- JoinProducts.cpp - products of one value by several weights --------===//
//
// Products that share their lhs and have weights of one type become one (the projections of an attention to queries,
// keys and values, for example):
//
//   matmul(x, w0), matmul(x, w1), ...     ->    p = matmul(broadcast(x), [w0, w1, ...]),  p[0], p[1], ...
//
// The weights lie one behind another along a new first dim, which the product has as its batch: each part has the
// values and the row-major order that it had alone. What follows all products alike, op by op (a bias, a rounding),
// follows the joint one; biases are put one behind another, too, with -0 for a product that has none (as the keys of
// some attentions): x + -0 = x for every x. Some weights may be stored as the transposes of what the others are.
//
// Queries, keys and values of one attention may be products of two values (where positions are added for the scores
// alone). These are written one behind the other then, and the joint product reads each as often as it needs it:
//
//   matmul(x, w0), matmul(x, w1), matmul(y, w2)   ->   matmul([x, x, y], [w0, w1, w2])    of    concat(x, y)
//
// One kernel runs where several did, which reads x once for all of them. It is no gain where a product's only reader
// could have been computed in its epilogue, or where it would have been written straight into a concat or a result:
// such products stay alone, as do those whose weight something else reads.
//
// Concats are no hindrance where they, too, become one (keys by content and by position, side by side in each head, of
// several layers that read one image): those of products of the same values follow each other along the new dim.
//
//   concat(matmul(x, v0), matmul(y, w0)), concat(matmul(x, v1), matmul(y, w1)), ...
//                                                  ->    c = concat(matmul(x, [v0, v1, ...]), ...),  c[0], c[1], ...
//
// A concat of products of two values is that of the parts of one product (queries by content and by position).
//
//===----------------------------------------------------------------------===//
#include "ir/prim/ByteRows.h"
#include "ir/prim/WeightAttrs.h"
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "llvm/ADT/MapVector.h"

namespace ptc {
#define GEN_PASS_DEF_JOINPRODUCTS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace ptc::prim;
using namespace mlir;

//===----------------------------------------------------------------------===//
// What is alike
//===----------------------------------------------------------------------===//

/// Whether the ops compute the same of their operands.
static bool areAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getAttrDictionary() == b->getAttrDictionary() &&
         a->getResultTypes() == b->getResultTypes() && a->getNumOperands() == b->getNumOperands();
}

/// Views and pointwise ops: what a new first dim can be put before.
static bool takesFirstDim(Operation *op) {
  return op && op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         isa<BroadcastOp, ReshapeOp, TransposeOp, PointwiseOpInterface>(op);
}

static bool isView(Operation *op) { return isa<BroadcastOp, ReshapeOp, TransposeOp>(op); }

/// A constant below views.
static bool isConstantView(Value value) {
  while (value.getDefiningOp() && isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return bool(getConstant(value));
}

static bool hasWholeBytes(Value value) {
  Type type = getElementType(value);
  return type.isIntOrFloat() && type.getIntOrFloatBitWidth() % 8 == 0;
}

static bool isTurned(Value matrix) { return matrix.getDefiningOp<TransposeOp>() != nullptr; }

/// The weight that the value is, rounded or not, or is the transpose of. `isAlone`: whether nothing else reads it.
static WeightOp getWeight(Value value, bool *isAlone = nullptr) {
  bool isOnlyUse = value.hasOneUse();
  auto takeOff = [&](Operation *op) {
    value = op->getOperand(0);
    isOnlyUse &= value.hasOneUse();
  };
  if (isTurned(value))
    takeOff(value.getDefiningOp());
  if (isNarrowedWeight(value.getDefiningOp()))
    takeOff(value.getDefiningOp());
  if (isAlone)
    *isAlone = isOnlyUse;
  return value.getDefiningOp<WeightOp>();
}

/// Whether the values are matrices of one type, of which the model stores one as it is and the other's transpose.
static bool areStoredBothWays(Value a, Value b) {
  bool isFirstAlone = false, isSecondAlone = false;
  WeightOp first = getWeight(a, &isFirstAlone), second = getWeight(b, &isSecondAlone);
  return first && second && isTurned(a) != isTurned(b) && getRank(a) == 2 && isFirstAlone && isSecondAlone &&
         !first.getOthers() && !second.getOthers() && getElementType(first) == getElementType(second);
}

/// Whether the values can lie one behind another without a copy at run time: constants or weights below ops that are
/// alike. Weights must have no other reader, or they would be stored twice.
static bool canStack(Value a, Value b) {
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  bool areConstant = isConstantView(a) && isConstantView(b);
  if (!first || !second || (a == b && !areConstant) || a.getType() != b.getType() || !hasWholeBytes(a))
    return false;
  if (areStoredBothWays(a, b))
    return true;
  if (auto weight = dyn_cast<WeightOp>(first)) {
    auto other = dyn_cast<WeightOp>(second);
    return other && a.hasOneUse() && b.hasOneUse() && !weight.getOthers() && !other.getOthers();
  }
  if (getConstant(a))
    return bool(getConstant(b));
  if (!takesFirstDim(first) || first->getNumOperands() != 1 || !areAlike(first, second) ||
      (!areConstant && !(a.hasOneUse() && b.hasOneUse())))
    return false;
  return canStack(first->getOperand(0), second->getOperand(0));
}

/// Whether all values are one, or can lie one behind another.
static bool areJoinable(ArrayRef<Value> values) {
  if (llvm::all_equal(values))
    return true;
  return llvm::all_of(values.drop_front(), [&](Value value) { return canStack(values.front(), value); });
}

//===----------------------------------------------------------------------===//
// Who reads a product
//===----------------------------------------------------------------------===//

using Operations = llvm::SmallPtrSet<Operation *, 8>;

/// Whether the value lies in memory of its own, however its readers are fused with it. (What reads a slice is another
/// loop; a concat or a result may be where the value is written at once.) Or it is read by one of the `joined` concats.
static bool isStoredAnyway(Value value, const Operations &joined) {
  SmallVector<Operation *> readers;
  listReaders(value, readers);
  bool hasProduct = false;
  for (Operation *reader : readers) {
    bool isProduct = isa<MatmulOp, AttentionOp, ConvolutionOp>(reader) || joined.contains(reader);
    if (!isProduct && !isa<PointwiseOpInterface, ReduceOp, SliceOp>(reader))
      return false;
    hasProduct |= isProduct;
  }
  return hasProduct || readers.size() > 1;
}

//===----------------------------------------------------------------------===//
// A new first dim
//===----------------------------------------------------------------------===//

/// The type of `count` such values along a new first dim.
static Type getStackedType(Value value, size_t count) {
  SmallVector<Expr> dims{Expr::constant(value.getContext(), int64_t(count))};
  llvm::append_range(dims, getDims(value));
  return getTensorType(dims, getElementType(value));
}

/// The op with a new first dim of `count` in front of its operands' and its result's.
static Value putFirstDim(OpBuilder &b, Location loc, Operation *op, ValueRange operands, size_t count) {
  auto behindFirst = [](ArrayRef<int64_t> axes, bool withFirst) {
    SmallVector<int64_t> moved(withFirst ? 1 : 0, 0);
    for (int64_t axis : axes)
      moved.push_back(axis + 1);
    return moved;
  };
  Type type = getStackedType(op->getResult(0), count);
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return BroadcastOp::create(b, loc, type, operands[0], behindFirst(broadcast.getAxes(), true));
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return TransposeOp::create(b, loc, operands[0], behindFirst(transpose.getPermutation(), true));
  IRMapping mapping;
  mapping.map(op->getOperands(), operands);
  Operation *joint = b.clone(*op, mapping);
  joint->setLoc(loc);
  joint->getResult(0).setType(type);
  return joint->getResult(0);
}

/// `count` elements along the first dim, from `first` on.
static Value takeParts(OpBuilder &b, Location loc, Value value, int64_t first, int64_t count) {
  SmallVector<Expr> starts(getRank(value), Expr::constant(b.getContext(), 0)), dims = getDims(value);
  starts[0] = Expr::constant(b.getContext(), first);
  dims[0] = Expr::constant(b.getContext(), count);
  return SliceOp::create(b, loc, getTensorType(dims, getElementType(value)), value,
                         getExprArray(b.getContext(), starts), SmallVector<int64_t>(starts.size(), 1));
}

//===----------------------------------------------------------------------===//
// One group
//===----------------------------------------------------------------------===//

namespace {
/// Products with one lhs, and what follows each of them alike.
class Group {
public:
  /// `start` is the function's first block; `concats` are joined, too.
  Group(Block *start, ArrayRef<MatmulOp> products, const Operations &concats) : start(start), concats(concats) {
    for (MatmulOp product : products)
      chains.push_back({product});
  }
  /// Joins those products for which it pays; false if there are none.
  bool join();

private:
  using Chain = SmallVector<Operation *>;

  bool findChains();
  void build();
  bool grow();
  void fillBiases();
  Value makeNeutral(OpBuilder &b, Value bias) const;
  void trimViews();
  bool keepStored();
  Operation *firstEnd() const;
  SmallVector<Operation *> step(size_t at) const {
    return llvm::map_to_vector(chains, [&](const Chain &chain) { return chain[at]; });
  }
  Type stackedType(Value value) const { return getStackedType(value, chains.size()); }
  Value stackConstants(OpBuilder &b, Location loc, ArrayRef<Value> values) const;
  Value stack(OpBuilder &b, Location loc, ArrayRef<Value> values) const;
  Value stackLhs(OpBuilder &b, Location loc, ArrayRef<Value> values) const;
  Value putFirstDim(OpBuilder &b, Location loc, Operation *op, ArrayRef<Value> operands) const {
    return ::putFirstDim(b, loc, op, operands, chains.size());
  }

  Block *start;
  const Operations &concats;
  SmallVector<Chain> chains; // of equal length
  SmallVector<AddOp> filled; // biases of -0
};
} // namespace

/// The end of a chain that stands in front of all others: there the joint product is computed.
Operation *Group::firstEnd() const {
  Operation *first = chains.front().back();
  for (const Chain &chain : chains)
    if (chain.back()->isBeforeInBlock(first))
      first = chain.back();
  return first;
}

/// A bias of that shape which changes nothing.
Value Group::makeNeutral(OpBuilder &b, Value bias) const {
  Operation *view = bias.getDefiningOp();
  if (isView(view)) {
    IRMapping mapping;
    mapping.map(view->getOperand(0), makeNeutral(b, view->getOperand(0)));
    return b.clone(*view, mapping)->getResult(0);
  }
  auto type = cast<ShapedType>(bias.getType());
  Attribute zero = b.getFloatAttr(type.getElementType(), -0.0);
  OpBuilder atStart = OpBuilder::atBlockBegin(start);
  return ConstantOp::create(atStart, bias.getLoc(), type, DenseElementsAttr::get(type, zero));
}

/// Where some chains' ends get a constant bias, those of the others get one that changes nothing.
void Group::fillBiases() {
  auto getBias = [](const Chain &chain) {
    Value end = chain.back()->getResult(0);
    auto add = end.hasOneUse() ? dyn_cast<AddOp>(*end.user_begin()) : AddOp();
    bool isBiased = add && isConstantView(add->getOperand(add->getOperand(0) == end ? 1 : 0));
    return isBiased ? add : AddOp();
  };
  AddOp model;
  for (const Chain &chain : chains)
    if (AddOp add = getBias(chain); add && !model)
      model = add;
  if (!model || !isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(getElementType(model)))
    return;
  for (const Chain &chain : chains) {
    Value end = chain.back()->getResult(0);
    if (getBias(chain) || end.getType() != model.getType())
      continue;
    OpBuilder b(chain.back());
    b.setInsertionPointAfter(chain.back());
    IRMapping mapping;
    for (Value operand : model->getOperands())
      mapping.map(operand, isConstantView(operand) ? makeNeutral(b, operand) : end);
    auto add = cast<AddOp>(b.clone(*model, mapping));
    add->setLoc(chain.back()->getLoc());
    end.replaceAllUsesExcept(add, add);
    filled.push_back(add);
  }
}

/// Adds the op that alone reads each chain's end, if all are alike and what else they read can be joined.
bool Group::grow() {
  fillBiases();
  SmallVector<Operation *> next;
  for (Chain &chain : chains) {
    Value end = chain.back()->getResult(0);
    Operation *user = end.hasOneUse() ? *end.user_begin() : nullptr;
    if (!takesFirstDim(user) || user->getBlock() != chain.back()->getBlock() ||
        (next.size() && !areAlike(user, next[0])))
      return false;
    next.push_back(user);
  }
  for (Chain &chain : chains)
    chain.push_back(next[&chain - chains.begin()]);
  Operation *at = firstEnd();
  for (unsigned i = 0; i < next[0]->getNumOperands(); ++i) {
    SmallVector<Value> operands;
    bool isChain = true;
    for (Chain &chain : chains) {
      operands.push_back(chain.back()->getOperand(i));
      isChain &= operands.back() == chain[chain.size() - 2]->getResult(0);
    }
    if (isChain)
      continue;
    Operation *source = operands[0].getDefiningOp();
    bool isKnown = !source || source->getBlock() != at->getBlock() || source->isBeforeInBlock(at);
    if (!areJoinable(operands) || (llvm::all_equal(operands) && !isKnown)) {
      for (Chain &chain : chains)
        chain.pop_back();
      return false;
    }
  }
  return true;
}

/// Views at the chains' ends stay behind the parts.
void Group::trimViews() {
  while (isView(chains.front().back()))
    for (Chain &chain : chains)
      chain.pop_back();
}

/// Takes products out that had better stay alone, and says whether there were none.
bool Group::keepStored() {
  size_t before = chains.size();
  llvm::erase_if(chains, [&](const Chain &chain) { return !isStoredAnyway(chain.back()->getResult(0), concats); });
  return chains.size() == before;
}

Value Group::stackConstants(OpBuilder &b, Location loc, ArrayRef<Value> values) const {
  std::vector<char> bytes;
  for (Value value : values) {
    DenseElementsAttr elements = getConstant(value);
    int64_t copies = elements.isSplat() ? elements.getNumElements() : 1;
    for (int64_t i = 0; i < copies; ++i)
      llvm::append_range(bytes, elements.getRawData());
  }
  auto type = cast<ShapedType>(stackedType(values.front()));
  return ConstantOp::create(b, loc, type, DenseElementsAttr::getFromRawBuffer(type, bytes));
}

/// The values, of each chain one, along a new first dim.
Value Group::stack(OpBuilder &b, Location loc, ArrayRef<Value> values) const {
  Value first = values.front();
  if (llvm::all_equal(values) && widens(first.getDefiningOp()))
    return putFirstDim(b, loc, first.getDefiningOp(),
                       stack(b, loc, SmallVector<Value>(values.size(), first.getDefiningOp()->getOperand(0))));
  if (llvm::all_equal(values))
    return BroadcastOp::create(b, loc, stackedType(first), first,
                               llvm::to_vector(llvm::seq<int64_t>(1, getRank(first) + 1)));
  // Weights and constants stand where all dominate, whatever region reads them.
  OpBuilder atStart = OpBuilder::atBlockBegin(start);
  auto areTurned = llvm::map_to_vector(values, isTurned);
  if (first.getDefiningOp<WeightOp>() || !llvm::all_equal(areTurned)) {
    SmallVector<Attribute> others;
    for (Value value : values.drop_front())
      others.push_back(getWeight(value).getRef());
    Type type = stackedType(first), stored = getTensorType(getDims(type), getElementType(getWeight(first)));
    auto weight = WeightOp::create(atStart, loc, stored, getWeight(first).getRef(), b.getArrayAttr(others));
    setTurned(weight, areTurned);
    return stored == type ? weight.getResult() : ConvertOp::create(atStart, loc, type, weight).getResult();
  }
  if (getConstant(first))
    return stackConstants(atStart, loc, values);
  SmallVector<Value> below = llvm::map_to_vector(values, [](Value v) { return v.getDefiningOp()->getOperand(0); });
  return putFirstDim(b, loc, first.getDefiningOp(), stack(b, loc, below));
}

/// The products' lhs along a new first dim. Each distinct one is computed once, and equal ones follow each other: as
/// many as there are of the first, or fewer of the last.
Value Group::stackLhs(OpBuilder &b, Location loc, ArrayRef<Value> values) const {
  if (llvm::all_equal(values))
    return stack(b, loc, values);
  SmallVector<Expr> one = getDims(values.front());
  one.insert(one.begin(), Expr::constant(b.getContext(), 1));
  Type element = getElementType(values.front());
  SmallVector<Value> distinct;
  for (auto [number, value] : llvm::enumerate(values))
    if (number == 0 || value != values[number - 1])
      distinct.push_back(ReshapeOp::create(b, loc, getTensorType(one, element), value));
  SmallVector<Expr> dims = one;
  dims[0] = Expr::constant(b.getContext(), int64_t(distinct.size()));
  Value all = ConcatOp::create(b, loc, getTensorType(dims, element), distinct, 0);
  int64_t times = llvm::count(values, values.front());
  if (times == 1)
    return all;
  dims.insert(dims.begin() + 1, Expr::constant(b.getContext(), times));
  SmallVector<int64_t> axes{0};
  llvm::append_range(axes, llvm::seq<int64_t>(2, dims.size()));
  all = BroadcastOp::create(b, loc, getTensorType(dims, element), all, axes);
  one[0] = dims[0] * times;
  all = ReshapeOp::create(b, loc, getTensorType(one, element), all);
  SmallVector<Expr> starts(one.size(), Expr::constant(b.getContext(), 0));
  return SliceOp::create(b, loc, stackedType(values.front()), all, getExprArray(b.getContext(), starts),
                         SmallVector<int64_t>(one.size(), 1));
}

/// The products that are to be joined, each with what follows it; false if there are not several.
bool Group::findChains() {
  do {
    if (chains.size() < 2)
      return false;
    for (Chain &chain : chains)
      chain.resize(1);
    while (grow()) {
    }
    trimViews();
  } while (!keepStored());
  return true;
}

void Group::build() {
  OpBuilder b(firstEnd());
  Value joint;
  for (size_t at = 0; at < chains.front().size(); ++at) {
    SmallVector<Operation *> ops = step(at);
    Location loc = b.getFusedLoc(llvm::map_to_vector(ops, [](Operation *op) { return op->getLoc(); }));
    SmallVector<Value> operands;
    for (unsigned i = 0; i < ops[0]->getNumOperands(); ++i) {
      bool isChain = at > 0 && ops[0]->getOperand(i) == chains[0][at - 1]->getResult(0);
      auto parts = llvm::map_to_vector(ops, [&](Operation *op) { return op->getOperand(i); });
      bool isLhs = at == 0 && i == 0;
      operands.push_back(isChain ? joint : isLhs ? stackLhs(b, loc, parts) : stack(b, loc, parts));
    }
    joint = at == 0 ? MatmulOp::create(b, loc, operands[0], operands[1]).getResult()
                    : putFirstDim(b, loc, ops[0], operands);
    if (at == 0 && llvm::all_of(ops, [](Operation *op) { return op->hasAttr(byteRowsAttr); }))
      joint.getDefiningOp()->setAttr(byteRowsAttr, b.getUnitAttr());
  }
  for (auto [number, chain] : llvm::enumerate(chains)) {
    Value end = chain.back()->getResult(0), part = takeParts(b, end.getLoc(), joint, int64_t(number), 1);
    end.replaceAllUsesWith(ReshapeOp::create(b, end.getLoc(), end.getType(), part));
  }
}

bool Group::join() {
  bool joins = findChains();
  if (joins)
    build();
  for (AddOp add : filled)
    add.replaceAllUsesWith(add->getOperand(isConstantView(add->getOperand(0)) ? 1 : 0));
  return joins;
}

//===----------------------------------------------------------------------===//
// Who is joined
//===----------------------------------------------------------------------===//

/// Products of two dims by one value in one block.
using ProductsByLhs = llvm::MapVector<std::pair<Value, Block *>, SmallVector<MatmulOp>>;

/// Whether the products can be one, but for what they are of.
static bool areOfOneForm(MatmulOp a, MatmulOp b) {
  return a.getType() == b.getType() && canStack(a.getRhs(), b.getRhs());
}

/// The product that a value is, views and biases aside.
static MatmulOp findProjection(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && (isView(op) || isa<AddOp>(op))) {
    bool isBiasFirst = isa<AddOp>(op) && isConstantView(op->getOperand(0));
    if (isa<AddOp>(op) && !isBiasFirst && !isConstantView(op->getOperand(1)))
      return {};
    op = op->getOperand(isBiasFirst ? 1 : 0).getDefiningOp();
  }
  return dyn_cast_or_null<MatmulOp>(op);
}

/// The operands that are projections of two values, as Group::stackLhs needs them; empty where they are of
/// one, or one of the values would have to be copied, or has other products, which it is joined for.
static SmallVector<MatmulOp> listProjections(ValueRange operands, const ProductsByLhs &byLhs) {
  MatmulOp model = findProjection(operands.back());
  llvm::MapVector<Value, SmallVector<MatmulOp>> ofValues;
  SmallVector<MatmulOp> all;
  if (!model)
    return {};
  for (Value operand : operands)
    if (MatmulOp product = findProjection(operand);
        product && product->getBlock() == model->getBlock() && !llvm::is_contained(all, product) &&
        product.getLhs().getType() == model.getLhs().getType() && (product == model || areOfOneForm(product, model))) {
      ofValues[product.getLhs()].push_back(product);
      all.push_back(product);
    }
  if (ofValues.size() != 2)
    return {};
  MatmulOp first = *llvm::min_element(all, [](MatmulOp a, MatmulOp b) { return a->isBeforeInBlock(b); });
  for (auto &[value, products] : ofValues) {
    Operation *maker = value.getDefiningOp();
    while (auto transpose = dyn_cast_or_null<TransposeOp>(maker)) // its maker may write it in another order, too
      maker = transpose.getX().getDefiningOp();
    auto found = byLhs.find({value, model->getBlock()});
    if (!isa_and_present<PointwiseOpInterface>(maker) || maker->getBlock() != model->getBlock() ||
        !maker->isBeforeInBlock(first) || found == byLhs.end() || found->second.size() != products.size())
      return {};
  }
  llvm::stable_sort(all,
                    [&](MatmulOp a, MatmulOp b) { return ofValues[a.getLhs()].size() > ofValues[b.getLhs()].size(); });
  return all;
}

//===----------------------------------------------------------------------===//
// Concats
//===----------------------------------------------------------------------===//

/// The products whose views the concat joins, if each is of another value and nothing else reads the views; empty if it
/// joins something else.
static SmallVector<MatmulOp> listParts(ConcatOp concat) {
  SmallVector<MatmulOp> parts;
  for (Value input : concat.getInputs()) {
    MatmulOp product = findProjection(input);
    SmallVector<Operation *> readers;
    if (product)
      listReaders(input, readers);
    if (readers.size() != 1 || getRank(product.getRhs()) != 2 || product->getBlock() != concat->getBlock() ||
        llvm::any_of(parts, [&](MatmulOp part) { return part.getLhs() == product.getLhs(); }))
      return {};
    parts.push_back(product);
  }
  return parts;
}

namespace {
/// Concats that are alike, of products that are of the same values and can be joined.
struct ConcatFamily {
  SmallVector<ConcatOp> concats;
  SmallVector<MatmulOp> parts; // of the first one

  bool takes(ConcatOp concat, MutableArrayRef<MatmulOp> its) {
    if (concat->getBlock() != concats.front()->getBlock() || !areAlike(concat, concats.front()))
      return false;
    return llvm::all_of(llvm::zip_equal(its, parts), [](auto pair) {
      MatmulOp a = std::get<0>(pair), b = std::get<1>(pair);
      return a.getLhs() == b.getLhs() && areOfOneForm(a, b);
    });
  }
};

/// An input of a concat as views of an element along a product's first dim.
struct PartViews {
  SmallVector<Operation *> views; // the last one first
  SliceOp slice;
  int64_t number;
};
} // namespace

static std::optional<PartViews> findPartViews(Value input) {
  PartViews found;
  for (; isa_and_nonnull<ReshapeOp, TransposeOp>(input.getDefiningOp()); input = input.getDefiningOp()->getOperand(0))
    found.views.push_back(input.getDefiningOp());
  found.slice = input.getDefiningOp<SliceOp>();
  auto number = found.slice ? getExprs(found.slice.getStarts())[0].asConstant() : std::nullopt;
  if (!number || found.views.empty() || !getDims(input)[0].isConstant(1))
    return std::nullopt;
  found.number = *number;
  return found;
}

/// What `number` is joined by the concats, of each `count` ops alike, along a new first dim; null if the parts of one
/// product do not follow each other.
static Value stackInputs(OpBuilder &b, ArrayRef<ConcatOp> concats, unsigned number) {
  std::optional<PartViews> first = findPartViews(ConcatOp(concats.front()).getInputs()[number]);
  if (!first)
    return {};
  for (auto [i, concat] : llvm::enumerate(concats)) {
    std::optional<PartViews> part = findPartViews(ConcatOp(concat).getInputs()[number]);
    if (!part || part->slice.getX() != first->slice.getX() || part->number != first->number + int64_t(i) ||
        !llvm::equal(part->views, first->views, areAlike))
      return {};
  }
  Value stacked = takeParts(b, first->slice.getLoc(), first->slice.getX(), first->number, int64_t(concats.size()));
  first->views.pop_back(); // which takes the first dim off
  for (Operation *view : llvm::reverse(first->views))
    stacked = putFirstDim(b, view->getLoc(), view, stacked, concats.size());
  return stacked;
}

/// One concat for all of the family, whose products are joined.
static void joinConcats(ArrayRef<ConcatOp> concats) {
  ConcatOp first = *llvm::min_element(concats, [](ConcatOp a, ConcatOp b) { return a->isBeforeInBlock(b); });
  OpBuilder b(first);
  SmallVector<Value> inputs;
  for (unsigned number = 0; number < first.getInputs().size(); ++number)
    if (Value stacked = stackInputs(b, concats, number))
      inputs.push_back(stacked);
    else
      return;
  Location loc = b.getFusedLoc(llvm::map_to_vector(concats, [](ConcatOp concat) { return concat.getLoc(); }));
  Value joint = ConcatOp::create(b, loc, getStackedType(first, concats.size()), inputs, first.getAxis() + 1);
  for (auto [number, concat] : llvm::enumerate(concats)) {
    Value part = takeParts(b, ConcatOp(concat).getLoc(), joint, int64_t(number), 1);
    concat->getResult(0).replaceAllUsesWith(
        ReshapeOp::create(b, ConcatOp(concat).getLoc(), concat->getResult(0).getType(), part));
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct JoinProducts : ptc::impl::JoinProductsBase<JoinProducts> {
  using JoinProductsBase::JoinProductsBase;
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    // By lhs and block; then, of those, the ones whose weights fit together.
    ProductsByLhs byLhs;
    function.walk([&](MatmulOp product) {
      if (getRank(product.getRhs()) == 2)
        byLhs[{product.getLhs(), product->getBlock()}].push_back(product);
    });
    SmallVector<ConcatFamily> families = listFamilies();
    Operations joined, concatenated;
    for (ConcatFamily &family : families)
      if (family.concats.size() > 1)
        for (ConcatOp concat : family.concats) {
          joined.insert(concat);
          for (MatmulOp part : listParts(concat))
            concatenated.insert(part);
        }
    auto joinSeveral = [&](ValueRange operands, const Operations &concats) {
      SmallVector<MatmulOp> projections = listProjections(operands, byLhs);
      if (Group(&function.front(), projections, concats).join())
        for (MatmulOp product : projections)
          byLhs[{product.getLhs(), product->getBlock()}].clear();
    };
    function.walk([&](AttentionOp attention) {
      if (severalValues)
        joinSeveral({attention.getQ(), attention.getK(), attention.getV()}, joined);
    });
    for (ConcatFamily &family : families)
      if (family.concats.size() == 1)
        joinSeveral(family.concats[0].getInputs(), Operations(family.concats.begin(), family.concats.end()));
    // What goes into concats lies nowhere else, and is joined apart.
    auto areTogether = [&](MatmulOp a, MatmulOp b) {
      return concatenated.contains(a) == concatenated.contains(b) && areOfOneForm(a, b);
    };
    for (auto &[lhs, products] : byLhs)
      while (products.size() > 1) {
        SmallVector<MatmulOp> alike{products.front()}, others;
        for (MatmulOp product : ArrayRef(products).drop_front())
          (areTogether(product, alike[0]) ? alike : others).push_back(product);
        Group(&function.front(), alike, joined).join();
        products = others;
      }
    for (const ConcatFamily &family : families)
      if (family.concats.size() > 1)
        joinConcats(family.concats);
    eraseDeadOps(function);
  }

  /// Concats of products, in the order of the program. None where each part would be copied: epilogues write them.
  SmallVector<ConcatFamily> listFamilies() {
    SmallVector<ConcatFamily> families;
    if (!severalValues)
      return families;
    getOperation().walk([&](ConcatOp concat) {
      SmallVector<MatmulOp> parts = listParts(concat);
      if (parts.size() < 2)
        return;
      auto *found = llvm::find_if(families, [&](ConcatFamily &family) { return family.takes(concat, parts); });
      if (found == families.end())
        families.push_back({{concat}, parts});
      else
        found->concats.push_back(concat);
    });
    return families;
  }
};
} // namespace
