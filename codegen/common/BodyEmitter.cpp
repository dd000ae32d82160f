//===- BodyEmitter.cpp - one body at one point ----------------------------===//
//
// The rules of vectorisation by construction:
//
//   access                          becomes
//   index without the vector dim    one scalar load, broadcast where a vector op needs it (in front of all loops if
//                                   the kernel does not write the element)
//   coefficient 1                   a vector load (masked where lanes are missing)
//   coefficient -1                  a vector load and a reversal
//   coefficient 2, 3 or 4           as many vector loads, and the lanes out of them (Strides.h)
//   blocks of lanes (a repetition)  one scalar, or a vector load
//   an element of each group        one vector load of the groups, and its lanes spread (Interleaving.h)
//   runs in turns (a shuffle)       a short vector load of each, merged (Interleaving.h)
//   anything else                   a gather or scatter
//
//   condition                       becomes
//   same in all lanes               a branch around the region
//   different in the lanes          a mask on the accesses of the region, then a select
//
// Nothing outside a mask is touched: what all lanes would read together, under a mask that may be empty, is read from
// a dummy then.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/BodyEmitter.h"
#include "codegen/common/ElementaryFunctions.h"
#include "codegen/common/Interleaving.h"
#include "codegen/common/LaneConditions.h"
#include "codegen/common/Strides.h"
#include "ir/expr/DimName.h"
#include "ir/loop/Softmax.h"
#include "ir/loop/ToldNumbers.h"
#include "ir/loop/UnsignedStores.h"
#include "ir/loop/WrappedIndices.h"
#include "ir/prim/Elements.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;

Value BodyEmitter::emitBlock(Block &block) {
  loop::YieldOp yield;
  SmallVector<Operation *> ops;
  for (Operation &op : block) {
    if (auto last = dyn_cast<loop::YieldOp>(op))
      yield = last;
    else if (op.getNumResults() != 1 || !isBound(op.getResult(0)))
      ops.push_back(&op);
  }
  emitOps(ops);
  return yield ? lookup(yield.getValue()) : Value();
}

static bool loadsFrom(Operation *op, ArrayRef<loop::StoreOp> stores) {
  WalkResult result = op->walk([&](loop::LoadOp load) {
    bool isStored = llvm::any_of(stores, [&](loop::StoreOp store) { return store.getBuffer() == load.getBuffer(); });
    return isStored ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

void codegen::emitStoresLast(ArrayRef<Operation *> ops, llvm::function_ref<void(Operation *)> emit) {
  SmallVector<loop::StoreOp> pending;
  auto flush = [&] {
    for (loop::StoreOp store : pending)
      emit(store);
    pending.clear();
  };
  for (Operation *op : ops) {
    if (auto store = dyn_cast<loop::StoreOp>(op)) {
      pending.push_back(store);
      continue;
    }
    if (loadsFrom(op, pending))
      flush();
    emit(op);
  }
  flush();
}

void BodyEmitter::emitOps(ArrayRef<Operation *> ops) {
  emitStoresLast(ops, [&](Operation *op) {
    llvm::SaveAndRestore place(e.loc, op->getLoc());
    emitOp(op);
  });
}

/// An element that all points read and the kernel does not write. It may be read in front of all loops; LLVM, to which
/// pointers may mean the same memory, leaves it where it is.
static bool isSameForAll(loop::LoadOp load) {
  auto argument = dyn_cast<BlockArgument>(load.getBuffer());
  auto kernel = argument ? dyn_cast<loop::KernelOp>(argument.getOwner()->getParentOp()) : loop::KernelOp();
  if (!kernel || llvm::is_contained(kernel.getArgumentsWritten(), int64_t(argument.getArgNumber())) ||
      !llvm::isa_and_present<loop::PointwiseOp, loop::ReductionOp, loop::ScanOp>(load->getParentOp()))
    return false;
  assert(load.getIndices().size() == 1 && "indices inside kernels are linear");
  std::optional<int64_t> index = Expr(cast<ExprAttr>(load.getIndices()[0])).asConstant();
  std::optional<int64_t> count = cast<loop::BufferType>(argument.getType()).getElementCount().asConstant();
  return index && count && *index >= 0 && *index < *count;
}

/// The predicate of b and a that says what this one, no unsigned one, says of a and b.
static arith::CmpIPredicate swapped(arith::CmpIPredicate predicate) {
  using Predicate = arith::CmpIPredicate;
  switch (predicate) {
  case Predicate::slt:
    return Predicate::sgt;
  case Predicate::sle:
    return Predicate::sge;
  case Predicate::sgt:
    return Predicate::slt;
  case Predicate::sge:
    return Predicate::sle;
  default:
    return predicate;
  }
}

static Value emitToldNumber(KernelEmitter &e, Operation *op, Value bits) {
  Type type = op->getResult(0).getType();
  return isa<arith::TruncIOp>(op) ? e.invariants.get<arith::TruncIOp>(type, bits)
                                  : e.invariants.get<arith::BitcastOp>(type, bits);
}

void BodyEmitter::emitOp(Operation *op) {
  if (auto load = dyn_cast<loop::LoadOp>(op)) {
    if (Value held = e.getHeld(load.getBuffer()))
      return bind(load.getResult(), held);
    Access access = resolve(load.getBuffer(), load.getIndices(), load.getIndexOperands(), load.getType(), load);
    OpBuilder::InsertionGuard guard(e.builder);
    if (isSameForAll(load))
      e.builder.setInsertionPointAfterValue(access.address);
    return bind(load.getResult(), this->load(access, load.getType()));
  }
  if (auto store = dyn_cast<loop::StoreOp>(op))
    return emitStore(store);
  if (auto index = dyn_cast<loop::IndexOp>(op))
    return bind(index.getResult(), e.emitLanes(index.getExpr(), point, lookupAll(index.getOperands())));
  if (auto check = dyn_cast<loop::CheckIndexOp>(op))
    return emitCheckIndex(check);
  if (auto masked = dyn_cast<loop::MaskedOp>(op))
    return emitMasked(masked);
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return bind(constant.getResult(), e.invariants.constant(constant.getValue()));
  if (loop::isToldNumber(op)) // in front of all loops, as a constant is
    return bind(op->getResult(0), emitToldNumber(e, op, lookup(op->getOperand(0))));
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    if (Value holds = emitIndexComparison(compare))
      return bind(compare.getResult(), holds);
  emitElementwise(op);
}

Value BodyEmitter::emitIndexComparison(arith::CmpIOp op) {
  auto predicate = op.getPredicate();
  if (auto index = op.getLhs().getDefiningOp<loop::IndexOp>())
    if (Value holds = codegen::emitIndexComparison(e, predicate, index.getExpr(), lookup(op.getRhs()), point))
      return holds;
  if (auto index = op.getRhs().getDefiningOp<loop::IndexOp>())
    return codegen::emitIndexComparison(e, swapped(predicate), index.getExpr(), lookup(op.getLhs()), point);
  return {};
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

SmallVector<Value> BodyEmitter::resolveRuns(Value base, Expr index, ValueRange operands, Type elementType) {
  std::optional<int64_t> count = findInterleaving(index, point.vectorDim);
  Value first = point.dims[size_t(point.vectorDim)];
  if (!count || point.lanes < 2 * *count || !isMultipleOf(first, *count))
    return {};
  SmallVector<Value> runs;
  for (int64_t run = 0; run < *count; ++run) {
    EmissionPoint at = point;
    at.dims[size_t(point.vectorDim)] = e.invariants.add(first, e.constant(run));
    runs.push_back(e.getAddress(base, elementType, e.emitExpr(index, at, operands)));
  }
  return runs;
}

bool BodyEmitter::resolveGroups(Access &access, Value base, loop::LoadOp load, ValueRange operands) {
  Operation *node = load;
  while (!loop::isNode(node))
    node = node->getParentOp();
  SymbolRanges ranges = getWholeRanges(node);
  Expr index = cast<ExprAttr>(load.getIndices()[0]);
  Type elementType = load.getType();
  auto grouped = findGroupedLanes(index, point.vectorDim, point.lanes, ranges);
  Value place = grouped && size_t(grouped->term) < point.dims.size() ? point.dims[size_t(grouped->term)] : Value();
  std::optional<int64_t> known = place ? e.invariants.asConstant(place) : std::nullopt;
  if (!known)
    return false;
  // A mask says which lanes there are: of whole groups, where the extent is a multiple of theirs.
  const ExprRange *lanes = ranges.find(dimName(point.vectorDim));
  bool isWhole = lanes && (lanes->max + 1) % grouped->places == 0;
  if (point.mask && (isGuarded || !isWhole || !grouped->keepsPlaces()))
    return false;
  EmissionPoint first = point;
  first.dims[size_t(grouped->term)] = e.constant(0);
  access.address = e.getAddress(base, elementType, e.emitExpr(index, first, operands));
  access.together = grouped->together;
  for (int64_t lane : grouped->first)
    access.places.push_back(int32_t(lane + *known));
  return true;
}

BodyEmitter::Access BodyEmitter::resolve(Value buffer, ArrayAttr indices, OperandRange operands, Type elementType,
                                         loop::LoadOp load) {
  assert(indices.size() == 1 && "indices inside kernels are linear");
  bool isStore = !load;
  Expr index = cast<ExprAttr>(indices[0]);
  SmallVector<Value> at = lookupAll(operands);
  Value base = e.getPointer(buffer);
  Access access;
  if (point.isVector() && e.isPerLane(buffer)) {
    Value slot = e.invariants.mul(e.emitExpr(index, point, at), e.constant(point.lanes));
    access.address = e.getAddress(base, elementType, slot);
    access.lanes = point.lanes;
    return access;
  }
  Value lanes = e.emitLaneIndex(index, point, at);
  if (!isVector(lanes)) {
    access.address = e.getAddress(base, elementType, lanes);
    if (point.mask && isGuarded)
      access.address = arith::SelectOp::create(e.builder, e.loc, e.anyLane(point.mask), access.address, e.getDummy());
    return access;
  }
  access.lanes = point.lanes;
  access.mask = point.mask;
  bool isUniformBut = llvm::none_of(at, isVector);
  Expr coefficient = isUniformBut ? index.coefficientOf(dimName(point.vectorDim)) : Expr();
  std::optional<int64_t> step = coefficient ? coefficient.asConstant() : std::nullopt;
  if (step == 1) {
    access.address = e.getAddress(base, elementType, e.emitExpr(index, point, at));
  } else if (step == -1 && !point.mask) {
    Value last = e.invariants.add(e.emitExpr(index, point, at), e.constant(1 - point.lanes));
    access.address = e.getAddress(base, elementType, last);
    access.isReversed = true;
  } else if (step && !isStore && splits(*step, elementType)) {
    access.stride = *step;
    for (int64_t vector = 0; vector < *step; ++vector) {
      Expr start = index + StridedLanes(point.lanes, *step).startOf(vector);
      access.vectors.push_back(e.getAddress(base, elementType, e.emitExpr(start, point, at)));
    }
  } else if (step) {
    // A scalar base and constant offsets: the gather's offsets then take no registers per access.
    Value first = e.getAddress(base, elementType, e.emitExpr(index, point, at));
    access.address = e.getAddress(first, elementType, e.laneNumbers(point, e.builder.getI64Type(), *step));
  } else {
    bool isAligned = isUniformBut && !coefficient && isMultipleOf(point.dims[size_t(point.vectorDim)], point.lanes);
    auto block = isAligned ? findStepInBlocks(index, point.vectorDim, point.lanes) : std::nullopt;
    if (block == 1) {
      access.address = e.getAddress(base, elementType, e.emitExpr(index, point, at));
      return access;
    }
    if (block == 0 && !isStore && !point.mask) {
      access.lanes = 1;
      access.address = e.getAddress(base, elementType, e.emitExpr(index, point, at));
      return access;
    }
    if (isAligned && !isStore && resolveGroups(access, base, load, at))
      return access;
    if (isUniformBut && !coefficient && !isStore)
      access.runs = resolveRuns(base, index, at, elementType);
    access.address = e.getAddress(base, elementType, lanes);
  }
  return access;
}

static Value reverse(KernelEmitter &e, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  SmallVector<int32_t> order;
  for (int64_t lane = type.getNumElements(); lane-- > 0;)
    order.push_back(int32_t(lane));
  return LLVM::ShuffleVectorOp::create(e.builder, e.loc, vector, vector, order);
}

bool BodyEmitter::splits(int64_t stride, Type elementType) const {
  unsigned bits = KernelEmitter::getMemoryType(elementType).getIntOrFloatBitWidth();
  bool hasMasks = e.traits.maskedBits && bits >= e.traits.maskedBits;
  return stride >= 2 && stride <= e.traits.mostStride && (!point.mask || hasMasks);
}

Value BodyEmitter::loadStrided(const Access &access, Type elementType) {
  StridedLanes strided(access.lanes, access.stride);
  bool isMerged = point.laneStride == access.stride;
  Value mask = access.mask;
  if (mask && !isMerged && point.laneStride != 1)
    mask = StridedLanes(access.lanes, point.laneStride).toLanes(e.builder, e.loc, mask);
  SmallVector<Value> vectors;
  for (auto [vector, address] : llvm::enumerate(access.vectors)) {
    Value own = mask ? strided.maskOf(e.builder, e.loc, mask, int64_t(vector), isMerged) : Value();
    vectors.push_back(e.createLoad(elementType, access.lanes, address, own));
  }
  Value value = strided.join(e.builder, e.loc, vectors, !isMerged);
  if (isMerged || point.laneStride == 1)
    return value;
  return StridedLanes(access.lanes, point.laneStride).fromLanes(e.builder, e.loc, value);
}

Value BodyEmitter::loadInOrder(const Access &access, Type elementType) {
  if (access.together)
    return createSpread(e.builder, e.loc, e.createLoad(elementType, access.together, access.address, access.mask),
                        access.places);
  if (int64_t count = int64_t(access.runs.size())) {
    SmallVector<Value> parts;
    for (auto [run, address] : llvm::enumerate(access.runs)) {
      Value mask = access.mask ? createEachNth(e.builder, e.loc, access.mask, int64_t(run), count) : Value();
      parts.push_back(e.createLoad(elementType, access.lanes / count, address, mask));
    }
    return createInterleaved(e.builder, e.loc, parts);
  }
  Value value = e.createLoad(elementType, access.lanes, access.address, access.mask);
  return access.isReversed ? reverse(e, value) : value;
}

Value BodyEmitter::load(const Access &access, Type elementType) {
  if (!access.vectors.empty())
    return loadStrided(access, elementType);
  bool isGather = access.runs.empty() && isVector(access.address);
  if (point.laneStride == 1 || access.lanes == 1 || isGather)
    return loadInOrder(access, elementType);
  StridedLanes strided(access.lanes, point.laneStride);
  Access natural = access;
  if (access.mask)
    natural.mask = strided.toLanes(e.builder, e.loc, access.mask);
  return strided.fromLanes(e.builder, e.loc, loadInOrder(natural, elementType));
}

void BodyEmitter::store(Value value, const Access &access) {
  if (access.lanes > 1)
    value = e.splat(value, access.lanes);
  else if (isVector(value)) // all lanes write one element: the last one wins
    value = LLVM::ExtractElementOp::create(e.builder, e.loc, value, e.constant(point.lanes - 1));
  e.createStore(access.isReversed ? reverse(e, value) : value, access.address, access.mask);
}

void BodyEmitter::emitStore(loop::StoreOp op) {
  Value value = lookup(op.getValue());
  e.setHeld(op.getBuffer(), value);
  Type elementType = op.getValue().getType();
  Access access = resolve(op.getBuffer(), op.getIndices(), op.getIndexOperands(), elementType, {});
  if (std::optional<prim::ReduceKind> kind = op.getCombine()) {
    Value old = load(access, elementType);
    if (access.lanes > 1)
      value = e.splat(value, access.lanes);
    value = emitCombine(e, *kind, old, value, loop::isUnsigned(op));
  }
  store(value, access);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

void BodyEmitter::emitElementwise(Operation *op) {
  assert(op->getNumRegions() == 0 && op->getNumResults() == 1 && "not a scalar body op");
  SmallVector<Value> operands = lookupAll(op->getOperands());
  Type type = op->getResult(0).getType();
  if (llvm::any_of(operands, isVector)) {
    for (Value &operand : operands)
      operand = e.splat(operand, point.lanes);
    type = VectorType::get({point.lanes}, type);
  }
  Operation *clone =
      Operation::create(e.loc, op->getName(), TypeRange{type}, operands,
                        NamedAttrList(op->getDiscardableAttrDictionary()), op->getPropertiesStorage(), BlockRange{}, 0);
  e.builder.insert(clone);
  if (e.flushesDenormals && op->hasAttr(loop::notPositiveAttr))
    clone->setAttr(notPositiveAttr, e.builder.getUnitAttr());
  // LLVM may contract a product and a sum into one rounding, unless each is to be rounded, and nothing else.
  // Conversions say themselves whether a pair may be left out.
  if (auto arithmetic = dyn_cast<arith::ArithFastMathInterface>(clone);
      arithmetic && !isa<arith::ExtFOp, arith::TruncFOp>(clone) && !clone->hasAttr(prim::roundedAttr)) {
    auto flags = arithmetic.getFastMathFlagsAttr();
    auto contract = arith::FastMathFlags::contract;
    auto with = flags ? flags.getValue() | contract : contract;
    clone->setAttr(arithmetic.getFastMathAttrName(), arith::FastMathFlagsAttr::get(e.builder.getContext(), with));
  }
  bind(op->getResult(0), clone->getResult(0));
}

// Where the index is outside [0, extent), after negative ones have wrapped if they do, the error flag is set and 0
// stands in.
void BodyEmitter::emitCheckIndex(loop::CheckIndexOp op) {
  Value index = lookup(op.getIndex()), extent = e.emitExpr(op.getExtent(), point);
  InvariantBuilder &in = e.invariants;
  Value zero = e.constant(0);
  if (loop::wraps(op))
    index = in.select(in.compare(arith::CmpIPredicate::slt, index, zero), in.add(index, extent), index);
  // One unsigned comparison covers both ends.
  Value isGood = in.compare(arith::CmpIPredicate::ult, index, extent);
  bind(op.getResult(), in.select(isGood, index, zero));
  Type flagType = isGood.getType();
  Value ones =
      in.constant(cast<TypedAttr>(isVector(isGood) ? Attribute(DenseElementsAttr::get(cast<VectorType>(flagType), true))
                                                   : Attribute(e.builder.getBoolAttr(true))));
  Value bad = arith::XOrIOp::create(e.builder, e.loc, isGood, ones);
  if (point.mask && isVector(bad))
    bad = arith::AndIOp::create(e.builder, e.loc, bad, point.mask);
  if (isVector(bad))
    bad = e.anyLane(bad);
  else if (point.mask && isGuarded)
    bad = arith::AndIOp::create(e.builder, e.loc, bad, e.anyLane(point.mask));
  e.raiseError(bad);
}

//===----------------------------------------------------------------------===//
// Masked regions
//===----------------------------------------------------------------------===//

// Conservative: some value of the region may differ between lanes.
bool BodyEmitter::variesInLanes(Region &region) const {
  if (!point.isVector())
    return false;
  std::string dim = dimName(point.vectorDim);
  auto usesDim = [&](Attribute attribute) {
    if (auto expr = dyn_cast<ExprAttr>(attribute))
      return Expr(expr).uses(dim);
    if (auto list = dyn_cast<ArrayAttr>(attribute))
      return llvm::any_of(list.getAsRange<ExprAttr>(), [&](ExprAttr expr) { return Expr(expr).uses(dim); });
    return false;
  };
  WalkResult found = region.walk([&](Operation *op) {
    for (NamedAttribute attribute : op->getAttrDictionary())
      if (usesDim(attribute.getValue()))
        return WalkResult::interrupt();
    for (Value operand : op->getOperands()) {
      if (e.isPerLane(operand))
        return WalkResult::interrupt();
      if (Value emitted = values.lookup(operand); emitted && isVector(emitted))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return found.wasInterrupted();
}

void BodyEmitter::emitMasked(loop::MaskedOp op) {
  SmallVector<Value> operands = lookupAll(op.getOperands_());
  Value branch, mask;
  for (Attribute attribute : op.getConditions()) {
    if (point.assumed && point.assumed->contains(attribute))
      continue;
    Value holds = emitCondition(e, Expr(cast<ExprAttr>(attribute)), point, operands);
    Value &into = isVector(holds) ? mask : branch;
    into = e.invariants.logicalAnd(into, holds);
  }
  Value other = lookup(op.getOther());
  bool isVarying = mask || isVector(other) || variesInLanes(op.getBody());
  if (!branch)
    return bind(op.getResult(), emitGuarded(op, mask, isVarying));
  if (auto known = e.invariants.asConstant(branch)) {
    bool holds = *known != 0;
    return bind(op.getResult(), holds ? emitGuarded(op, mask, isVarying) : other);
  }
  if (isMemoryEffectFree(op)) {
    Value value = emitGuarded(op, mask, isVarying);
    int64_t lanes = isVarying ? point.lanes : 1;
    Value condition = e.splat(branch, lanes);
    return bind(op.getResult(),
                arith::SelectOp::create(e.builder, e.loc, condition, value, e.splat(other, lanes)).getResult());
  }
  Value otherwise = isVarying ? e.splat(other, point.lanes) : other;
  auto choice = scf::IfOp::create(e.builder, e.loc, TypeRange{otherwise.getType()}, branch, true);
  OpBuilder::InsertionGuard guard(e.builder);
  e.builder.setInsertionPointToStart(choice.thenBlock());
  Value value = emitGuarded(op, mask, isVarying);
  e.builder.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(e.builder, e.loc, value);
  e.builder.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(e.builder, e.loc, otherwise);
  bind(op.getResult(), choice.getResult(0));
}

// The region under a mask of lanes (null: all lanes of the point).
Value BodyEmitter::emitGuarded(loop::MaskedOp op, Value mask, bool isVarying) {
  BodyEmitter inner(e, point);
  inner.values = values;
  inner.isGuarded = isGuarded || mask;
  inner.point.mask = e.invariants.logicalAnd(point.mask, mask);
  Value value = inner.emitBlock(op.getBody().front());
  if (isVarying)
    value = e.splat(value, point.lanes);
  if (!mask)
    return value;
  Value other = e.splat(lookup(op.getOther()), point.lanes);
  return arith::SelectOp::create(e.builder, e.loc, mask, value, other);
}
