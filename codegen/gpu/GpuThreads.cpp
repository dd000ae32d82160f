//===- GpuThreads.cpp - what threads do together --------------------------===//
//
// Intrinsics are called by name: the NVVM dialect would add a conversion for what is one call each.
//
// A team combines its reduction in two steps. Inside a warp, five exchanges with the lane whose number differs in one
// bit; every lane does the same tree of steps, so that all end with the same value and nothing depends on timing. Then,
// if there are several warps, each leaves its value in shared memory and all repeat the exchange over those.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuEmitter.h"
#include "codegen/gpu/RowBuffers.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

Value GpuEmitter::getRegister(StringRef name) {
  auto intrinsic = builder.getStringAttr("llvm.nvvm.read.ptx.sreg." + name);
  Value value = LLVM::CallIntrinsicOp::create(builder, loc, builder.getI32Type(), intrinsic, ValueRange()).getResult(0);
  return arith::ExtUIOp::create(builder, loc, builder.getI64Type(), value);
}

// The launch behind begins when the blocks of this one have ended, before their writes are seen everywhere; it waits
// for that. Beginning earlier (griddepcontrol.launch_dependents) was slower: blocks of the next launch gather on the
// few multiprocessors that are free, and stay there.
void GpuEmitter::createLaunchOrder() {
  if (startsEarly)
    LLVM::InlineAsmOp::create(builder, loc, TypeRange(), ValueRange(), "griddepcontrol.wait;", "~{memory}",
                              /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                              LLVM::AsmDialectAttr(), ArrayAttr());
}

void GpuEmitter::createBarrier() {
  bool isWarp = row.size <= warpSize;
  auto intrinsic = builder.getStringAttr(isWarp ? "llvm.nvvm.bar.warp.sync" : "llvm.nvvm.barrier.cta.sync.aligned.all");
  Value operand = invariants.constant(builder.getI32IntegerAttr(isWarp ? -1 : 0));
  LLVM::CallIntrinsicOp::create(builder, loc, intrinsic, ValueRange(operand));
}

void GpuEmitter::createBlockBarrier() {
  auto intrinsic = builder.getStringAttr("llvm.nvvm.barrier.cta.sync.aligned.all");
  Value barrier = invariants.constant(builder.getI32IntegerAttr(0));
  LLVM::CallIntrinsicOp::create(builder, loc, intrinsic, ValueRange(barrier));
}

Value GpuEmitter::createBallot(Value condition) {
  auto intrinsic = builder.getStringAttr("llvm.nvvm.vote.ballot.sync");
  Value operands[] = {invariants.constant(builder.getI32IntegerAttr(-1)), condition};
  return LLVM::CallIntrinsicOp::create(builder, loc, builder.getI32Type(), intrinsic, operands).getResult(0);
}

SmallVector<Value> GpuEmitter::createIf(Value condition, ValueRange carried,
                                        llvm::function_ref<SmallVector<Value>()> body) {
  SmallVector<Type> types(TypeRange(carried.getTypes()));
  auto choice = scf::IfOp::create(builder, loc, types, condition, /*withElseRegion=*/!types.empty());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(choice.thenBlock());
  SmallVector<Value> values = body();
  if (types.empty())
    return {};
  scf::YieldOp::create(builder, loc, values);
  builder.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(builder, loc, carried);
  return SmallVector<Value>(choice.getResults());
}

SmallVector<Value> GpuEmitter::createStrided(const Team &team, Value count, ValueRange carried, LoopBody body) {
  std::optional<int64_t> known = invariants.asConstant(count);
  if (team.size == 1)
    return createLoop(constant(0), count, 1, carried, body);
  if (!known)
    return createLoop(team.rank, count, team.size, carried, body);
  // All threads take the same number of whole turns, which needs no comparison; some take one more.
  int64_t turns = *known / team.size, rest = *known % team.size;
  auto takeTurn = [&](Value number, ValueRange values) {
    return body(invariants.add(invariants.mul(number, constant(team.size)), team.rank), values);
  };
  SmallVector<Value> values(carried);
  llvm::SaveAndRestore outer(turn); // the body may have strided loops of its own
  if (turns <= unrolledTurns)
    for (int64_t number = 0; number < turns; ++number) {
      turn = number;
      values = takeTurn(constant(number), values);
    }
  else
    values = createLoop(constant(0), constant(turns), 1, values, takeTurn);
  if (!rest)
    return values;
  turn = turns;
  Value isLeft = invariants.compare(arith::CmpIPredicate::slt, team.rank, constant(rest));
  return createIf(isLeft, values, [&] { return takeTurn(constant(turns), values); });
}

SmallVector<Value> GpuEmitter::createDigits(Value number, ArrayRef<Value> sizes) {
  // Divisions of 32 bits where all sizes are small: those of 64 bits are long sequences.
  int64_t total = 1;
  for (Value size : sizes) {
    std::optional<int64_t> most = getLargest(size);
    bool fits = most && *most < (int64_t(1) << 31) && total < (int64_t(1) << 31);
    total = fits ? total * std::max<int64_t>(*most, 1) : std::numeric_limits<int64_t>::max();
  }
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  bool narrow = total < (int64_t(1) << 31);
  SmallVector<Value> digits(sizes.size());
  if (sizes.empty())
    return digits;
  Value rest = narrow && sizes.size() > 1 ? invariants.get<arith::TruncIOp>(i32, number) : number;
  for (size_t digit = sizes.size(); digit-- > 1;) {
    Value size = invariants.max(sizes[digit], constant(1));
    if (auto known = narrow ? invariants.asConstant(size) : std::nullopt)
      size = invariants.constant(builder.getI32IntegerAttr(int32_t(*known)));
    else if (narrow)
      size = invariants.get<arith::TruncIOp>(i32, size);
    Value above = invariants.floorDiv(rest, size, true);
    Value value = invariants.sub(rest, invariants.mul(above, size));
    digits[digit] = narrow ? invariants.get<arith::ExtUIOp>(i64, value) : value;
    rest = above;
  }
  digits[0] = narrow && sizes.size() > 1 ? invariants.get<arith::ExtUIOp>(i64, rest) : rest;
  return digits;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

// 32 bits of a value that is no wider: `kind` and `lane` of the exchange.
static Value shuffleWord(GpuEmitter &e, Value word, StringRef kind, Value lane) {
  auto number = [&](int32_t value) { return e.invariants.constant(e.builder.getI32IntegerAttr(value)); };
  auto intrinsic = e.builder.getStringAttr("llvm.nvvm.shfl.sync." + kind + ".i32");
  Value operands[] = {number(-1), word, lane, number(warpSize - 1)};
  return LLVM::CallIntrinsicOp::create(e.builder, e.loc, e.builder.getI32Type(), intrinsic, operands).getResult(0);
}

static Value shuffle(GpuEmitter &e, Value value, StringRef kind, Value lane) {
  OpBuilder &b = e.builder;
  Type type = value.getType(), i32 = b.getI32Type();
  unsigned bits = type.getIntOrFloatBitWidth();
  Type integer = b.getIntegerType(bits);
  Value word = type == integer ? value : arith::BitcastOp::create(b, e.loc, integer, value).getResult();
  if (bits == 64) {
    Value shift = e.invariants.constant(b.getI64IntegerAttr(32));
    Value low = arith::TruncIOp::create(b, e.loc, i32, word);
    Value high = arith::TruncIOp::create(b, e.loc, i32, arith::ShRUIOp::create(b, e.loc, word, shift).getResult());
    low = arith::ExtUIOp::create(b, e.loc, integer, shuffleWord(e, low, kind, lane));
    high = arith::ExtUIOp::create(b, e.loc, integer, shuffleWord(e, high, kind, lane));
    word = arith::OrIOp::create(b, e.loc, arith::ShLIOp::create(b, e.loc, high, shift).getResult(), low);
  } else {
    word = bits == 32 ? word : arith::ExtUIOp::create(b, e.loc, i32, word).getResult();
    word = shuffleWord(e, word, kind, lane);
    word = bits == 32 ? word : arith::TruncIOp::create(b, e.loc, integer, word).getResult();
  }
  return type == integer ? word : arith::BitcastOp::create(b, e.loc, type, word).getResult();
}

SmallVector<Value> GpuEmitter::createShuffle(ValueRange values, int64_t distance) {
  Value lane = invariants.constant(builder.getI32IntegerAttr(int32_t(distance)));
  return llvm::map_to_vector(values, [&](Value value) { return shuffle(*this, value, "bfly", lane); });
}

SmallVector<Value> GpuEmitter::createShuffleFrom(ValueRange values, Value lane) {
  Value from = invariants.get<arith::TruncIOp>(builder.getI32Type(), lane);
  return llvm::map_to_vector(values, [&](Value value) { return shuffle(*this, value, "idx", from); });
}

// a + b is b + a; where there is no instruction for the larger one, that of +0 and -0 is the second.
static bool isSymmetric(Operation *reduction) {
  auto reduce = dyn_cast<loop::ReduceOp>(reduction);
  if (!reduce)
    return false;
  bool isExtremum = reduce.getKind() == prim::ReduceKind::Max || reduce.getKind() == prim::ReduceKind::Min;
  return !isExtremum || !isa<FloatType>(reduce.getType()) || reduce.getType().isF32();
}

SmallVector<Value> GpuEmitter::combine(const Team &team, Operation *reduction, SmallVector<Value> slots) {
  auto exchange = [&](int64_t width) {
    for (int64_t distance = width / 2; distance > 0; distance /= 2) {
      SmallVector<Value> lower = slots, upper = createShuffle(slots, distance);
      // Both lanes merge in the same order: of equal values that are told apart (zeros) both take the same.
      if (!isSymmetric(reduction)) {
        Value bit = invariants.floorDiv(team.rank, constant(distance), true);
        Value isUpper =
            invariants.compare(arith::CmpIPredicate::eq, invariants.mod(bit, constant(2), true), constant(1));
        for (auto [low, high] : llvm::zip_equal(lower, upper)) {
          Value own = low, other = high;
          low = arith::SelectOp::create(builder, loc, isUpper, other, own);
          high = arith::SelectOp::create(builder, loc, isUpper, own, other);
        }
      }
      slots = codegen::mergeSlots(*this, reduction, lower, upper);
    }
  };
  exchange(std::min(team.size, warpSize));
  if (team.size <= warpSize)
    return slots;
  int64_t warps = team.size / warpSize;
  Value lane = invariants.mod(team.rank, constant(warpSize), true);
  Value warp = invariants.floorDiv(team.rank, constant(warpSize), true);
  SmallVector<Value> memory;
  for (Value slot : slots)
    memory.push_back(sharedMemory(warps * loop::getElementBytes(slot.getType())));
  createIf(invariants.compare(arith::CmpIPredicate::eq, lane, constant(0)), {}, [&] {
    for (auto [slot, base] : llvm::zip_equal(slots, memory))
      createStore(slot, getAddress(base, slot.getType(), warp));
    return SmallVector<Value>();
  });
  createBarrier();
  Value partner = invariants.mod(team.rank, constant(warps), true);
  for (auto [slot, base] : llvm::zip_equal(slots, memory))
    slot = createLoad(slot.getType(), 1, getAddress(base, slot.getType(), partner));
  exchange(warps);
  return slots;
}
