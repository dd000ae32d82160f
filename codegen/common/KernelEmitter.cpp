//===- KernelEmitter.cpp - values, memory and loops of a kernel -----------===//
#include "codegen/common/KernelEmitter.h"
#include "codegen/common/BodyEmitter.h"
#include "codegen/common/Strides.h"
#include "ir/expr/DimName.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::codegen;

std::optional<unsigned> codegen::parseOperand(StringRef name) {
  return name.consume_front("v") ? parseNumbered(name, '$') : std::nullopt;
}

static LLVM::LLVMPointerType pointerType(MLIRContext *context) { return LLVM::LLVMPointerType::get(context); }

KernelEmitter::KernelEmitter(OpBuilder &builder, loop::KernelOp kernel, EmissionTraits traits, Value errorFlag)
    : builder(builder), kernel(kernel), traits(traits), loc(kernel.getLoc()),
      invariants(builder.getInsertionBlock(), loc), entry(builder.getInsertionBlock()), errorFlag(errorFlag) {
  prologue = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), 0);
}

void KernelEmitter::setSymbol(StringRef name, Value value, const ExprRange &range) {
  symbolValues[name] = value;
  if (range != ExprRange())
    symbolRanges[name] = ranges[name] = range;
}

void KernelEmitter::setDomain(ArrayRef<Expr> domain) {
  ranges = symbolRanges;
  for (auto [index, extent] : llvm::enumerate(domain)) {
    ExprRange range{.min = 0};
    ExprRange of = extent.range(ranges);
    if (of.max != std::numeric_limits<int64_t>::max())
      range.max = std::max<int64_t>(of.max - 1, 0);
    ranges[dimName(index)] = range;
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelEmitter::getHeld(Value buffer) const {
  Value value = held.lookup(buffer);
  bool isVisible = value && value.getParentRegion()->isAncestor(builder.getInsertionBlock()->getParent());
  return isVisible ? value : Value();
}

void KernelEmitter::setHeld(Value buffer, Value value) {
  if (auto it = held.find(buffer); it != held.end())
    it->second = value;
}

Value KernelEmitter::createStackSlot(int64_t bytes, int64_t alignment) {
  OpBuilder::InsertionGuard guard(builder);
  Value count = constant(bytes);
  builder.setInsertionPointAfter(prologue);
  Value slot = LLVM::AllocaOp::create(builder, loc, pointerType(builder.getContext()), builder.getI8Type(), count,
                                      unsigned(alignment));
  prologue = slot.getDefiningOp();
  return slot;
}

Value KernelEmitter::getDummy() {
  if (dummy)
    return dummy;
  dummy = createStackSlot(8, 8);
  OpBuilder::InsertionGuard guard(builder);
  Value zero = constant(0);
  builder.setInsertionPointAfter(prologue);
  LLVM::StoreOp::create(builder, loc, zero, dummy);
  return dummy;
}

Type KernelEmitter::getMemoryType(Type elementType) {
  unsigned bits = elementType.getIntOrFloatBitWidth();
  // Masked accesses of f16 and bf16 vectors are not legal everywhere; those of their bits are.
  bool isKept = elementType.isF32() || elementType.isF64() || (elementType.isSignlessInteger() && bits >= 8);
  return isKept ? elementType : IntegerType::get(elementType.getContext(), std::max(bits, 8u));
}

Value KernelEmitter::getAddress(Value pointer, Type elementType, Value index) {
  Type type = isa<LLVM::LLVMPointerType>(elementType) ? elementType : getMemoryType(elementType);
  if (auto known = invariants.asConstant(index); known == 0)
    return pointer;
  Type result = pointer.getType();
  if (auto vector = dyn_cast<VectorType>(index.getType()))
    result = VectorType::get(vector.getShape(), result);
  return invariants.get<LLVM::GEPOp>(result, type, pointer, ArrayRef<LLVM::GEPArg>{index});
}

// Of complex128, that of its parts.
static unsigned naturalAlignment(Type memoryType) { return std::min(memoryType.getIntOrFloatBitWidth(), 64u) / 8; }

static Type vectorOf(Type element, int64_t lanes) {
  return lanes == 1 ? element : Type(VectorType::get({lanes}, element));
}

// What memory holds -> what bodies compute with. i1 is a byte, 0 or 1; small floats are their bits, those of 4 bits in
// a byte.
Value KernelEmitter::fromMemory(Value stored, Type elementType) {
  Type memory = getElementTypeOrSelf(stored.getType());
  if (memory == elementType)
    return stored;
  auto lanes = isVector(stored) ? cast<VectorType>(stored.getType()).getNumElements() : 1;
  Type result = vectorOf(elementType, lanes);
  if (unsigned bits = elementType.getIntOrFloatBitWidth(); bits < memory.getIntOrFloatBitWidth()) {
    stored = arith::TruncIOp::create(builder, loc, vectorOf(builder.getIntegerType(bits), lanes), stored);
    if (elementType.isInteger())
      return stored;
  }
  return arith::BitcastOp::create(builder, loc, result, stored);
}

Value KernelEmitter::toMemory(Value value) {
  Type element = getElementTypeOrSelf(value.getType()), memory = KernelEmitter::getMemoryType(element);
  if (memory == element)
    return value;
  auto lanes = isVector(value) ? cast<VectorType>(value.getType()).getNumElements() : 1;
  Type result = vectorOf(memory, lanes);
  if (unsigned bits = element.getIntOrFloatBitWidth(); bits < memory.getIntOrFloatBitWidth()) {
    if (!element.isInteger())
      value = arith::BitcastOp::create(builder, loc, vectorOf(builder.getIntegerType(bits), lanes), value);
    return arith::ExtUIOp::create(builder, loc, result, value);
  }
  return arith::BitcastOp::create(builder, loc, result, value);
}

Value KernelEmitter::createLoad(Type elementType, int64_t lanes, Value address, Value mask) {
  Type memory = getMemoryType(elementType);
  Type type = vectorOf(memory, lanes);
  unsigned alignment = naturalAlignment(memory);
  Value stored;
  if (isVector(address)) {
    Value on = mask ? mask : invariants.broadcast(invariants.constant(builder.getBoolAttr(true)), lanes);
    Value zero = invariants.constant(cast<TypedAttr>(builder.getZeroAttr(type)));
    stored = LLVM::masked_gather::create(builder, loc, type, address, on, ValueRange{zero}, alignment);
  } else if (mask) {
    Value zero = invariants.constant(cast<TypedAttr>(builder.getZeroAttr(type)));
    stored = LLVM::MaskedLoadOp::create(builder, loc, type, address, mask, zero, alignment);
  } else {
    stored = LLVM::LoadOp::create(builder, loc, type, address, alignment);
  }
  return fromMemory(stored, elementType);
}

void KernelEmitter::createStore(Value value, Value address, Value mask) {
  unsigned alignment = naturalAlignment(getMemoryType(getElementTypeOrSelf(value.getType())));
  value = toMemory(value);
  if (isVector(address)) {
    int64_t lanes = cast<VectorType>(address.getType()).getNumElements();
    Value on = mask ? mask : invariants.broadcast(invariants.constant(builder.getBoolAttr(true)), lanes);
    LLVM::masked_scatter::create(builder, loc, splat(value, lanes), address, on, alignment);
  } else if (mask) {
    LLVM::MaskedStoreOp::create(builder, loc, value, address, mask, alignment);
  } else {
    LLVM::StoreOp::create(builder, loc, value, address, alignment);
  }
}

//===----------------------------------------------------------------------===//
// Lanes, errors, loops
//===----------------------------------------------------------------------===//

Value KernelEmitter::splat(Value value, int64_t lanes) { return invariants.broadcast(value, lanes); }

Value KernelEmitter::laneMask(Value count, int64_t lanes) {
  // 32-bit compares suffice: the count is clamped to the lanes before.
  Type i32 = builder.getI32Type();
  Value clamped = invariants.min(invariants.max(count, constant(0)), constant(lanes));
  Value narrow = invariants.get<arith::TruncIOp>(i32, clamped);
  return invariants.compare(arith::CmpIPredicate::slt, invariants.iota(lanes, i32), narrow);
}

Value KernelEmitter::laneNumbers(const EmissionPoint &point, Type elementType, int64_t step) {
  if (point.laneStride == 1)
    return invariants.iota(point.lanes, elementType, step);
  StridedLanes strided(point.lanes, point.laneStride);
  return invariants.constant(llvm::map_to_vector(strided.order, [&](int64_t lane) { return lane * step; }),
                             elementType);
}

Value KernelEmitter::anyLane(Value mask) {
  int64_t lanes = cast<VectorType>(mask.getType()).getNumElements();
  Type bits = builder.getIntegerType(unsigned(lanes));
  Value packed = LLVM::BitcastOp::create(builder, loc, bits, mask);
  Value zero = invariants.constant(cast<TypedAttr>(builder.getZeroAttr(bits)));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, packed, zero);
}

void KernelEmitter::raiseError(Value bad) {
  Type i32 = builder.getI32Type();
  if (traits.sharedErrors) { // threads write 1 or nothing: a read and a write of theirs would race
    auto branch = scf::IfOp::create(builder, loc, bad, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value one = invariants.constant(builder.getI32IntegerAttr(1));
    LLVM::StoreOp::create(builder, loc, one, errorFlag);
    return;
  }
  Value old = LLVM::LoadOp::create(builder, loc, i32, errorFlag);
  Value now = arith::ExtUIOp::create(builder, loc, i32, bad);
  LLVM::StoreOp::create(builder, loc, arith::OrIOp::create(builder, loc, old, now).getResult(), errorFlag);
}

SmallVector<Value> KernelEmitter::createLoop(Value lower, Value upper, int64_t step, ValueRange init, LoopBody body) {
  auto from = invariants.asConstant(lower), to = invariants.asConstant(upper);
  if (from && to && *from >= *to)
    return SmallVector<Value>(init);
  if (from && to && *to - *from <= step)
    return body(lower, init);
  auto loop = scf::ForOp::create(builder, loc, lower, upper, constant(step), init);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (init.empty() && !loop.getBody()->empty() && isa<scf::YieldOp>(loop.getBody()->back()))
    return {};
  builder.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(builder, loc, next);
  return SmallVector<Value>(loop.getResults());
}

Value KernelEmitter::emitBlock(Block &block, const EmissionPoint &point, ValueRange arguments) {
  BodyEmitter body(*this, point);
  body.bind(block.getArguments(), arguments);
  return body.emitBlock(block);
}

int64_t KernelEmitter::chooseLanes(Operation *op) const {
  unsigned widest = 8;
  bool hasNarrow = false;
  auto see = [&](Type type) {
    unsigned bits = KernelEmitter::getMemoryType(type).getIntOrFloatBitWidth();
    if (bits < 64)
      hasNarrow = true;
    widest = std::max(widest, bits);
  };
  op->walk([&](Operation *inner) {
    if (auto load = dyn_cast<loop::LoadOp>(inner))
      see(load.getType());
    else if (auto store = dyn_cast<loop::StoreOp>(inner))
      see(store.getValue().getType());
    else
      for (Type type : inner->getResultTypes())
        if (isa<FloatType>(type) || type.isInteger(32))
          see(type);
  });
  // 64-bit values beside narrower ones take two registers each.
  if (widest == 64 && hasNarrow)
    widest = 32;
  return std::max<int64_t>(traits.vectorBits / int64_t(widest), 2);
}
