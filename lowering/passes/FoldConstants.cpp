//===- FoldConstants.cpp - computes what depends on constants alone -------===//
//
// Ops whose operands are all known are run by the reference interpreter, in the
// order of the function, and the values kept beside the IR. Only where a known
// value meets an op that is not known does it become a `prim.constant`; what lies
// before it dies. Some known values stay ops:
//
//   broadcast, iota    computed for nothing by whoever reads them
//   views of a weight  weights never enter the IR; a view becomes its recipe
//   widened operands   of products: kernels read the narrow ones
//   weights of few bits of products, unless they are small: kernels convert them while they read them
//   parts of a weight  of few bits that is too large as a whole: the same
//
// What is computed of weights alone by products, convolutions or reductions is computed here, too, if it is larger:
// such an op would run in each call, and reads as much as its result has. So are bytes whose top bit is flipped for
// products. The value becomes a weight, which stays out of the IR. So projections of a table of positions and
// standardised filters are weights like others. Where views repeat such a value, for each element of a batch, it is
// computed as it was before they did.
//
// What is small itself is computed through values that are not, where a kernel of its own would compute one of them in
// each call: scores of relative positions, say, of a table of indices that is larger than they are.
//
// A branch with a known condition is replaced by the ops of the region taken. An
// op that fails (an index out of range) stays: it may never run.
//
// Invariant: values are static, and no operand, result or window exceeds the limit, so the time is bounded by the
// number of ops times a small contraction, and by a budget for what is larger. Of that only what will be read or stored
// is held.
//
//===----------------------------------------------------------------------===//
#include "ir/eval/ReferenceEval.h"
#include "ir/prim/Variants.h"
#include "ir/prim/WeightAttrs.h"
#include "lowering/passes/Passes.h"
#include "lowering/passes/Patterns.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace ptc {
#define GEN_PASS_DEF_FOLDCONSTANTS
#include "lowering/passes/Passes.h.inc"
} // namespace ptc

using namespace ptc;
using namespace mlir;
using eval::Tensor;

static constexpr double mostWork = 32e9;  // multiply-adds of all that is larger in a function: a quarter of a minute
static constexpr double elementWork = 15; // of an f32 or f64 that another op reads or writes, in multiply-adds
static constexpr double slowElementWork = 100;     // of an element of other types
static constexpr double windowWork = 45;           // of an element that a window meets
static constexpr int64_t leastConverted = 1 << 17; // bytes of a weight of few bits as floats: fewer are floats
static constexpr int64_t mostGrowth = 2;           // a result's bytes over those of the weights that it is computed of

static bool isSource(Operation *op) { return isa<prim::ConstantOp, prim::WeightOp>(op); }

namespace {

class ConstantFolder {
public:
  ConstantFolder(FoldedBytes limits, eval::WeightSource &weights) : limits(limits), weights(weights) {}

  void run(Block &body) {
    for (auto product : body.getOps<prim::MatmulOp>())
      leaveWeight(product);
    if (limits.computed > limits.constants)
      chooseComputed(body);
    visit(body);
    materialize();
    for (Operation &op : llvm::make_early_inc_range(body))
      if (isSource(&op) && op.use_empty())
        op.erase();
  }

private:
  void visit(Block &block);
  void visitOp(Operation *op);
  bool inlineBranch(prim::IfOp branch, Block::iterator &next);
  const Tensor *lookup(Value value, int64_t maxBytes);
  Value store(OpBuilder &builder, Value value);
  void chooseComputed(Block &body);
  bool isComputable(Operation *op);
  Operation *getRepeated(Operation *op) const;
  void addChain(Operation *root);
  int64_t limitOf(Operation *op) const {
    return converted.contains(op) ? 0 : computed.contains(op) ? limits.computed : limits.constants;
  }
  void leaveWeight(prim::MatmulOp product);
  bool staysOp(Operation *op) const;
  bool isPartOfLarger(Operation *op) const;
  bool isOnlyOnTheWay(Operation *op) const;
  void noteWeights(Operation *op);
  void releaseOperands(Operation *op);
  void materialize();

  FoldedBytes limits;
  llvm::DenseSet<Operation *> computable; // of sources alone, and none too large
  llvm::DenseSet<Operation *> computed;   // chosen of these, with all that they are computed of
  llvm::DenseSet<Operation *> stored;     // chosen of these: their values may become weights
  double work = 0;                        // of these
  llvm::DenseSet<Operation *> converted;  // by products that read what they are computed of
  eval::WeightSource &weights;
  DenseMap<Value, Tensor> values;
  llvm::DenseSet<Value> unreadable; // sources that failed, not to be tried again
  llvm::SetVector<Operation *> folded;
  llvm::DenseSet<Operation *> constant; // computed of constants alone, folded or too large for that
  llvm::DenseSet<Operation *> noted;

public:
  llvm::SetVector<StringAttr> usedWeights; // whose values are in a constant now
};

} // namespace

static bool isView(Operation *op) {
  return isa<prim::BroadcastOp, prim::ReshapeOp, prim::TransposeOp, prim::SliceOp>(op);
}

static bool isSmall(Type type, int64_t maxBytes) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || tensor.getEncoding() || !tensor.getElementType().isIntOrFloat())
    return false;
  std::optional<int64_t> count = eval::countElements(tensor.getShape());
  return count && *count <= maxBytes / std::max<int64_t>((tensor.getElementTypeBitWidth() + 7) / 8, 1);
}

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

/// Whether the op widens integers for products alone, which read the narrow ones.
static bool isWidenedByProducts(Operation *op) {
  auto convert = dyn_cast<prim::ConvertOp>(op);
  return convert && prim::widens(op) && !op->use_empty() && llvm::all_of(op->getUsers(), [](Operation *user) {
           return isa<prim::MatmulOp, prim::ConvolutionOp>(user) &&
                  !isa<FloatType>(prim::getElementType(user->getResult(0)));
         });
}

/// Whether the op does no more than take numbers out of bytes and scale them.
static bool isConversion(Operation *op) {
  return isView(op) || isa<prim::ConvertOp, prim::ShiftRightOp, prim::AndOp, prim::IotaOp, prim::AddOp, prim::SubOp,
                           prim::MulOp, prim::ConcatOp>(op);
}

/// Leaves what the product's weight is computed of to the product, where that has more than four times fewer bits: one
/// row takes 0.4 to 0.5 of the time then, 8 rows 1.2 and many 1.02 to 1.04. Smaller weights are faster as floats.
void ConstantFolder::leaveWeight(prim::MatmulOp product) {
  constexpr int64_t leastGrowth = 4;
  Operation *weight = product.getRhs().getDefiningOp();
  if (!weight || !isSmall(product.getRhs().getType(), limits.constants) || bytesOf(product.getRhs()) <= leastConverted)
    return;
  llvm::SetVector<Operation *> chain;
  chain.insert(weight);
  int64_t bits = 0;
  bool hasBytes = false;
  for (size_t at = 0; at < chain.size(); ++at) {
    Operation *op = chain[at];
    if (!op || !(isSource(op) || isConversion(op)) || !isSmall(op->getResult(0).getType(), limits.constants))
      return;
    if (isSource(op)) {
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      bits += type.getNumElements() * type.getElementTypeBitWidth();
      hasBytes |= isa<prim::WeightOp>(op) && type.getElementTypeBitWidth() <= 8;
    }
    for (Value operand : op->getOperands())
      chain.insert(operand.getDefiningOp());
  }
  if (!hasBytes || bytesOf(product.getRhs()) * 8 <= leastGrowth * bits)
    return;
  int64_t elements = *eval::countElements(cast<RankedTensorType>(product.getRhs().getType()).getShape());
  for (Operation *op : chain) // scales and zero points are prepared beforehand
    if (cast<RankedTensorType>(op->getResult(0).getType()).getNumElements() >= elements)
      converted.insert(op);
}

/// Whether each run would take long for it. Products read bytes as they are stored: flipped ones would be stored first.
static bool isCostly(Operation *op) {
  return isa<prim::MatmulOp, prim::ConvolutionOp, prim::ReduceOp>(op) ||
         (isa<prim::XorOp>(op) && prim::isInteger(op->getResult(0), 8) && !op->use_empty() &&
          llvm::all_of(op->getUsers(), isWidenedByProducts));
}

/// Whether whoever reads the op's result computes it again for nothing, or nearly.
static bool isFused(Operation *op) {
  return isSource(op) || isView(op) || isa<prim::IotaOp, prim::PointwiseOpInterface>(op);
}

/// Whether all that the op is computed of is computable, or a source, and workOf tells how long it takes.
bool ConstantFolder::isComputable(Operation *op) {
  auto fits = [&](Value value) { return isSmall(value.getType(), limits.computed); };
  return op->getNumRegions() == 0 && !isa<prim::AttentionOp, prim::NmsOp>(op) && op->getNumResults() != 0 &&
         isMemoryEffectFree(op) && isa_and_nonnull<prim::PrimDialect>(op->getDialect()) &&
         llvm::all_of(op->getResults(), fits) && llvm::all_of(op->getOperands(), [&](Value operand) {
           Operation *source = operand.getDefiningOp();
           return source && (isSource(source) ? fits(operand) : computable.contains(source));
         });
}

/// In multiply-adds.
static double workOf(Operation *op) {
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  auto elementsOf = [&](Value value) { return double(typeOf(value).getNumElements()); };
  if (auto product = dyn_cast<prim::MatmulOp>(op))
    return elementsOf(product.getResult()) * double(typeOf(product.getLhs()).getShape().back());
  if (isa<prim::ConvolutionOp>(op)) {
    Value weight = op->getOperand(1);
    return elementsOf(op->getResult(0)) * elementsOf(weight) /
           double(std::max<int64_t>(typeOf(weight).getDimSize(0), 1));
  }
  if (auto pool = dyn_cast<prim::WindowReduceOp>(op)) {
    std::optional<int64_t> window = eval::countElements(pool.getWindow());
    return elementsOf(op->getResult(0)) * (window ? double(*window) : mostWork) * windowWork;
  }
  auto touchOf = [&](Value value) {
    Type element = typeOf(value).getElementType();
    return elementsOf(value) * (element.isF32() || element.isF64() ? elementWork : slowElementWork);
  };
  double touched = 0;
  for (Value operand : op->getOperands())
    touched += touchOf(operand);
  for (Value result : op->getResults())
    touched += touchOf(result);
  return touched;
}

/// What views of the op's result only repeat: the op itself, or one before it.
Operation *ConstantFolder::getRepeated(Operation *op) const {
  Operation *repeated = op;
  while (isView(op)) {
    Operation *source = op->getOperand(0).getDefiningOp();
    if (!computable.contains(source))
      break;
    if (bytesOf(op->getResult(0)) > bytesOf(op->getOperand(0)))
      repeated = source;
    op = source;
  }
  return repeated;
}

/// Chooses the op with all that it is computed of, if it pays.
void ConstantFolder::addChain(Operation *root) {
  llvm::SetVector<Operation *> chain;
  chain.insert(root);
  bool hasCostly = false, hasKernel = false;
  double chainWork = 0;
  int64_t weightBytes = 0;
  for (size_t at = 0; at < chain.size(); ++at) {
    Operation *op = chain[at];
    if (isSource(op)) {
      weightBytes += bytesOf(op->getResult(0));
      continue;
    }
    hasCostly |= isCostly(op);
    hasKernel |= !isFused(op);
    chainWork += computed.contains(op) ? 0 : workOf(op);
    for (Value operand : op->getOperands())
      chain.insert(operand.getDefiningOp());
  }
  auto pays = [&](Value value) {
    if (isSmall(value.getType(), limits.constants))
      return hasKernel;
    bool isOfBytes = prim::getElementType(value).getIntOrFloatBitWidth() % 8 == 0;
    return hasCostly && isOfBytes && bytesOf(value) <= mostGrowth * weightBytes;
  };
  if (!llvm::all_of(root->getResults(), pays) || work + chainWork > mostWork)
    return;
  work += chainWork;
  stored.insert(root);
  for (Operation *op : chain)
    if (!isSource(op))
      computed.insert(op);
}

void ConstantFolder::chooseComputed(Block &body) {
  for (Operation &op : body)
    if (!isSource(&op) && isComputable(&op))
      computable.insert(&op);
  auto isRead = [&](Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) { return !computable.contains(user); });
  };
  for (Operation &op : body) {
    bool isReadNarrow =
        llvm::any_of(op.getUsers(), [&](Operation *user) { return isWidenedByProducts(user) && isRead(user); });
    if (computable.contains(&op) && (isRead(&op) || isReadNarrow))
      addChain(getRepeated(&op));
  }
}

/// The value of a constant, a weight or a folded op; null for other values.
const Tensor *ConstantFolder::lookup(Value value, int64_t maxBytes) {
  if (auto it = values.find(value); it != values.end())
    return &it->second;
  Operation *op = value.getDefiningOp();
  if (!op || !isSource(op) || !isSmall(value.getType(), maxBytes) || unreadable.contains(value))
    return nullptr;
  auto results = eval::evaluate(op, {}, SymbolValues(), weights);
  if (!results) {
    llvm::consumeError(results.takeError());
    unreadable.insert(value);
    return nullptr;
  }
  return &values.try_emplace(value, std::move(results->front())).first->second;
}

void ConstantFolder::visitOp(Operation *op) {
  if (isSource(op) || op->getNumRegions() != 0 || op->getNumResults() == 0 || !isMemoryEffectFree(op) ||
      !isa_and_nonnull<prim::PrimDialect>(op->getDialect()))
    return;
  if (llvm::all_of(op->getOperands(), [&](Value operand) {
        Operation *source = operand.getDefiningOp();
        return source && (isSource(source) || constant.contains(source));
      }))
    constant.insert(op);
  int64_t maxBytes = limitOf(op);
  auto isSmallType = [&](Type type) { return isSmall(type, maxBytes); };
  if (!llvm::all_of(op->getResultTypes(), isSmallType))
    return;
  if (auto pool = dyn_cast<prim::WindowReduceOp>(op))
    if (std::optional<int64_t> window = eval::countElements(pool.getWindow()); !window || *window > limits.constants)
      return;
  for (Value operand : op->getOperands())
    if (!lookup(operand, maxBytes))
      return;
  std::vector<const Tensor *> operands; // no insertion into `values` from here on
  for (Value operand : op->getOperands())
    operands.push_back(lookup(operand, maxBytes));
  auto results = eval::evaluate(op, operands, SymbolValues(), weights);
  if (!results)
    return llvm::consumeError(results.takeError());
  folded.insert(op);
  for (auto [value, tensor] : llvm::zip(op->getResults(), *results))
    values.try_emplace(value, std::move(tensor));
  releaseOperands(op);
}

/// Frees large values that nothing asks for any more: all that reads them is folded, and they are not to be stored.
void ConstantFolder::releaseOperands(Operation *op) {
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    bool isStored = !isSource(source) && !isOnlyOnTheWay(source);
    if (!isStored && !isSmall(operand.getType(), limits.constants) &&
        llvm::all_of(operand.getUsers(), [&](Operation *user) { return folded.contains(user); }))
      values.erase(operand);
  }
}

/// Sizes that the branches make differently are, from the `if` on, what the branch taken makes them.
static void replaceJoined(prim::IfOp branch, bool isThen) {
  llvm::StringMap<Expr> sizes;
  for (auto size : branch.getJoinedAttr().getAsRange<prim::JoinedAttr>())
    sizes[size.getName()] = isThen ? size.getThenSize() : size.getElseSize();
  prim::substituteSymbols(branch->getParentOfType<func::FuncOp>(),
                          [&](StringRef symbol) { return sizes.lookup(symbol); });
}

/// Moves the region that a known condition takes in front of its `if`.
bool ConstantFolder::inlineBranch(prim::IfOp branch, Block::iterator &next) {
  const Tensor *condition = lookup(branch.getCondition(), limits.constants);
  if (!condition || condition->getNumElements() != 1)
    return false;
  bool isThen = condition->getInt(0);
  if (branch.getJoinedAttr())
    replaceJoined(branch, isThen);
  Region &taken = isThen ? branch.getThenRegion() : branch.getElseRegion();
  Block &body = taken.front();
  Operation *yield = body.getTerminator();
  SmallVector<Value> results(yield->getOperands());
  yield->erase();
  Operation *first = body.empty() ? nullptr : &body.front();
  branch->getBlock()->getOperations().splice(branch->getIterator(), body.getOperations());
  branch->replaceAllUsesWith(results);
  next = first ? first->getIterator() : std::next(branch->getIterator());
  branch->erase();
  return true;
}

void ConstantFolder::visit(Block &block) {
  for (Block::iterator it = block.begin(); it != block.end();) {
    Operation *op = &*it;
    if (auto branch = dyn_cast<prim::IfOp>(op))
      if (inlineBranch(branch, it))
        continue;
    for (Region &region : op->getRegions())
      for (Block &nested : region)
        visit(nested);
    visitOp(op);
    ++it;
  }
}

bool ConstantFolder::staysOp(Operation *op) const {
  if (isa<prim::BroadcastOp, prim::IotaOp>(op) || isWidenedByProducts(op))
    return true;
  if (!isView(op))
    return false;
  Operation *source = op->getOperand(0).getDefiningOp();
  return source && (isa<prim::WeightOp>(source) || (isView(source) && staysOp(source)));
}

/// Whether the op's values are too large for constants and were computed for those of other ops alone.
bool ConstantFolder::isOnlyOnTheWay(Operation *op) const {
  return !stored.contains(op) &&
         llvm::any_of(op->getResultTypes(), [&](Type type) { return !isSmall(type, limits.constants); });
}

/// Whether the op makes more bytes of an 8-bit weight, or of none, for another op that could be folded but for its
/// size.
bool ConstantFolder::isPartOfLarger(Operation *op) const {
  constexpr int64_t leastBytes = 1 << 16; // fewer are cheap to read
  bool isPart =
      !stored.contains(op) && op->getNumResults() == 1 && bytesOf(op->getResult(0)) > leastBytes &&
      llvm::any_of(op->getUsers(), [&](Operation *user) { return constant.contains(user) && !staysOp(user); });
  if (!isPart)
    return false;
  int64_t weightBytes = 0;
  llvm::SmallPtrSet<Operation *, 8> seen;
  SmallVector<Operation *> open{op};
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (!source || !seen.insert(source).second)
        continue;
      if (!isa<prim::WeightOp>(source))
        open.push_back(source);
      else if (prim::getElementType(operand).getIntOrFloatBitWidth() > 8)
        return false;
      else
        weightBytes += bytesOf(operand);
    }
  return bytesOf(op->getResult(0)) > weightBytes;
}

/// The weights that a folded op was computed from.
void ConstantFolder::noteWeights(Operation *op) {
  SmallVector<Operation *> open = {op};
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (!source || !noted.insert(source).second)
        continue;
      if (auto weight = dyn_cast<prim::WeightOp>(source))
        usedWeights.insert(StringAttr::get(op->getContext(), weight.getRef().getName()));
      else if (folded.contains(source))
        open.push_back(source);
    }
}

/// A folded value as a constant, or a weight if it is large.
Value ConstantFolder::store(OpBuilder &builder, Value value) {
  const Tensor &tensor = values.find(value)->second;
  if (!isSmall(value.getType(), limits.constants)) {
    ArrayRef<uint8_t> bytes = tensor.getBytes();
    ArrayRef<char> kept(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    if (prim::WeightRefAttr ref = weights.keep(builder.getContext(), kept))
      return prim::WeightOp::create(builder, value.getLoc(), value.getType(), ref, ArrayAttr());
  }
  return prim::ConstantOp::create(builder, value.getLoc(), value.getType(), tensor.toAttribute());
}

/// Users of a folded op come after it, so going backwards knows which of them
/// remain in the function.
void ConstantFolder::materialize() {
  llvm::DenseSet<Operation *> remaining;
  auto remains = [&](Operation *user) { return !folded.contains(user) || remaining.contains(user); };
  for (Operation *op : llvm::reverse(folded)) {
    if (!llvm::any_of(op->getUsers(), remains)) {
      op->erase();
      continue;
    }
    if (staysOp(op) || isPartOfLarger(op) || isOnlyOnTheWay(op)) {
      remaining.insert(op);
      continue;
    }
    noteWeights(op);
    OpBuilder builder(op);
    for (Value value : op->getResults())
      if (!value.use_empty())
        value.replaceAllUsesWith(store(builder, value));
    op->erase();
  }
}

namespace {
struct FoldConstants : ptc::impl::FoldConstantsBase<FoldConstants> {
  using FoldConstantsBase::FoldConstantsBase;
  FoldConstants(FoldedBytes limits, eval::WeightSource &weights) : computedBytes(limits.computed), weights(&weights) {
    maxBytes = limits.constants;
  }

  void runOnOperation() override {
    eval::NoWeights none;
    ConstantFolder folder({maxBytes, computedBytes}, weights ? *weights : none);
    for (Block &block : getOperation().getBody())
      folder.run(block);
    // A branch that vanished may have been the last to use a loop, which nothing but this drops if it binds sizes: its
    // uses of values would keep later passes from patterns.
    prim::eraseDeadOps(getOperation());
    prim::noteFoldedWeights(getOperation(), folder.usedWeights.getArrayRef());
  }

  int64_t computedBytes = 0;
  eval::WeightSource *weights = nullptr;
};
} // namespace

std::unique_ptr<Pass> ptc::createFoldConstants(FoldedBytes limits, eval::WeightSource &weights) {
  return std::make_unique<FoldConstants>(limits, weights);
}
