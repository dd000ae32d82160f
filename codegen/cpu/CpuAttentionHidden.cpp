//===- CpuAttentionHidden.cpp - keys that masks hide from queries ---------===//
//
// Problem. That a query sees no later ones, its neighbours alone or no padding comes as a mask: numbers that are added
// to scores or take their place. Weights of hidden keys are 0, and of long sequences most weights may be.
//
// Idea. The score of a product of 0 tells what the mask does. Below `hidden` the key is hidden, whatever the product
// is: scores of finite operands are not near 1e36. A tile of queries leaves out the hidden keys at both ends of a
// block, in units of whole column tiles, and the block where no key is left. A unit is probed first at the key and the
// query where a mask along a diagonal would show it. Before a task's first block each tile makes the first probes of
// all blocks: where they see keys, as beside numbers that are added and hide nothing, it asks no more.
//
// Invariant. Softmax gives hidden keys weights of 0 only if the query sees another key: where it sees none, finite
// masks leave all keys equal. So a tile leaves keys out if each of its queries sees the key at its own place, which it
// does in masks that models have; all that they hide has exactly no weight then, but for scores that are not finite.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuAttention.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t keysOfUnit = 64; // a multiple of all tiles' widths
static constexpr int64_t mostShort = 128; // keys that are known to be so few cost less than a loop to where they end
static constexpr float hidden = -1e37f, visible = -1e36f;

/// The value that an op makes of `score` by a constant factor, a cap or a mask; null for other ops.
static Value stepOf(Operation *op, Value score, bool &isMask) {
  if (op->getNumResults() != 1)
    return {};
  Value result = op->getResult(0);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    isMask = true;
    return select.getCondition() == score ? Value() : result;
  }
  if (isa<math::TanhOp>(op))
    return isMask ? Value() : result;
  if (!isa<arith::AddFOp, arith::MulFOp>(op))
    return {};
  Value other = op->getOperand(op->getOperand(0) == score ? 1 : 0);
  if (isa<arith::MulFOp>(op))
    return matchPattern(other, m_Constant()) ? result : Value();
  isMask = true;
  return other == score ? Value() : result;
}

bool cpu::mayHideKeys(loop::AttentionOp op) {
  Block &block = op.getScore().front();
  Value score = block.getArgument(0), end = block.getTerminator()->getOperand(0);
  bool isMasked = false;
  while (score && score != end)
    score = score.hasOneUse() ? stepOf(*score.getUsers().begin(), score, isMasked) : Value();
  auto keys = loop::getDomain(op)[op.getBatch() + 1].asConstant();
  return score && isMasked && (!keys || *keys > mostShort);
}

/// Whether the tile's row may see a key of the vector from `column` of the block on; those behind `count` are hidden.
Value AttentionEmission::isAnyVisible(Value row, Value key, Value column, Value count) {
  EmissionPoint here = point();
  here.lanes = lanes;
  here.vectorDim = dimJ;
  here.dims[dimI] = in.add(firstRow, row);
  here.dims[dimJ] = in.add(key, column);
  here.mask = e.laneMask(in.sub(count, column), lanes);
  Value score = e.splat(e.emitRegion(op.getScore(), here, {splatConstant(0)}), lanes);
  Value isVisible =
      arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::UGE, score, splatConstant(hidden)); // NaN is seen
  isVisible = arith::AndIOp::create(e.builder, e.loc, isVisible, here.mask);
  return LLVM::vector_reduce_or::create(e.builder, e.loc, e.builder.getI1Type(), isVisible);
}

/// Whether one of the tile's first probes of any block finds hidden keys.
Value AttentionEmission::findsHidden(Value row) {
  OpBuilder &b = e.builder;
  Value unitKeys = in.constant(keysOfUnit), all = in.constant(cast<TypedAttr>(b.getBoolAttr(true)));
  Value lastRow = in.sub(in.min(rows, in.add(row, in.constant(height))), in.constant(1));
  Value isSeen = e.createLoop(in.constant(0), keys, f.keys.getValue(), {all}, [&](Value key, ValueRange before) {
    Value count = in.min(blockKeys, in.sub(keys, key)), lastKey = in.sub(count, in.constant(1));
    Value lastUnit = in.mul(in.floorDiv(lastKey, unitKeys, true), unitKeys);
    Value ofLast = isAnyVisible(lastRow, key, lastUnit, count);
    Value ofFirst = isAnyVisible(row, key, in.min(in.constant(keysOfUnit - lanes), lastKey), count);
    Value both = arith::AndIOp::create(b, e.loc, ofLast, ofFirst);
    return SmallVector<Value>{arith::AndIOp::create(b, e.loc, both, before[0])};
  })[0];
  return arith::XOrIOp::create(b, e.loc, isSeen, all);
}

/// skips[row of a tile's first query]: 1 if a probe finds hidden keys and each query sees the key at its own place.
void AttentionEmission::emitSkips() {
  OpBuilder &b = e.builder;
  Value one = in.constant(cast<TypedAttr>(b.getF32FloatAttr(1))),
        zero = in.constant(cast<TypedAttr>(b.getF32FloatAttr(0)));
  Value limit = in.constant(cast<TypedAttr>(b.getF32FloatAttr(visible)));
  loop(in.constant(0), rows, height, [&](Value row) {
    auto branch = scf::IfOp::create(b, e.loc, TypeRange{f32}, findsHidden(row), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, e.loc, zero);
    b.setInsertionPointToStart(branch.thenBlock());
    Value end = in.min(rows, in.add(row, in.constant(height)));
    Value all = e.createLoop(row, end, 1, {one}, [&](Value r, ValueRange before) {
      EmissionPoint here = point();
      here.dims[dimI] = in.add(firstRow, r);
      here.dims[dimJ] = in.min(here.dims[dimI], in.sub(keys, in.constant(1)));
      Value score = e.emitRegion(op.getScore(), here, {zero});
      Value isSeen = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, score, limit);
      return SmallVector<Value>{arith::SelectOp::create(b, e.loc, isSeen, before[0], zero)};
    })[0];
    scf::YieldOp::create(b, e.loc, all);
    b.setInsertionPointAfter(branch);
    e.createStore(branch.getResult(0), at(skips, row));
  });
}

/// The unit that [first, end) begins or ends with once hidden ones are left out.
Value AttentionEmission::skipUnits(Value doesSkip, Value first, Value end, bool isFromEnd,
                                   llvm::function_ref<Value(Value)> isHidden) {
  OpBuilder &b = e.builder;
  Type i64 = b.getI64Type();
  Value one = in.constant(1), bound = isFromEnd ? first : end, start = isFromEnd ? end : first;
  auto loop = scf::WhileOp::create(b, e.loc, TypeRange{i64}, ValueRange{start});
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, {i64}, {e.loc});
  Value state = before->getArgument(0), unit = isFromEnd ? in.sub(state, one) : state;
  auto predicate = isFromEnd ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt;
  Value isInside = arith::CmpIOp::create(b, e.loc, predicate, state, bound);
  Value isAsked = arith::AndIOp::create(b, e.loc, isInside, doesSkip);
  auto branch = scf::IfOp::create(b, e.loc, TypeRange{b.getI1Type()}, isAsked, /*withElseRegion=*/true);
  scf::ConditionOp::create(b, e.loc, branch.getResult(0), ValueRange{state});
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, e.loc, in.constant(cast<TypedAttr>(b.getBoolAttr(false))));
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, e.loc, isHidden(unit));
  Block *after = b.createBlock(&loop.getAfter(), {}, {i64}, {e.loc});
  Value last = after->getArgument(0);
  scf::YieldOp::create(b, e.loc, isFromEnd ? in.sub(last, one) : in.add(last, one));
  return loop.getResult(0);
}

/// Whether a unit of the block is hidden from all rows of the tile; one vector of one row is asked first.
Value AttentionEmission::isHidden(Value row, Value key, Value count, Value probedRow, Value probedColumn, Value unit) {
  OpBuilder &b = e.builder;
  Value none = in.constant(cast<TypedAttr>(b.getBoolAttr(false))),
        all = in.constant(cast<TypedAttr>(b.getBoolAttr(true)));
  Value isProbed = isAnyVisible(probedRow, key, probedColumn, count);
  auto branch = scf::IfOp::create(b, e.loc, TypeRange{b.getI1Type()}, isProbed, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, e.loc, none);
  b.setInsertionPointToStart(branch.elseBlock());
  Value first = in.mul(unit, in.constant(keysOfUnit)), end = in.min(count, in.add(first, in.constant(keysOfUnit)));
  Value lastRow = in.min(rows, in.add(row, in.constant(height)));
  Value isHidden = e.createLoop(row, lastRow, 1, {all}, [&](Value r, ValueRange hiddenRows) {
    return e.createLoop(first, end, lanes, hiddenRows, [&](Value column, ValueRange hiddenLanes) {
      Value isVisible = isAnyVisible(r, key, column, count);
      return SmallVector<Value>{arith::SelectOp::create(b, e.loc, isVisible, none, hiddenLanes[0])};
    });
  })[0];
  scf::YieldOp::create(b, e.loc, isHidden);
  b.setInsertionPointAfter(branch);
  return branch.getResult(0);
}

void AttentionEmission::emitVisibleKeys(Value row, Value key, Value count) {
  OpBuilder &b = e.builder;
  Value half = in.constant(cast<TypedAttr>(b.getF32FloatAttr(0.5)));
  Value doesSkip =
      arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, e.createLoad(f32, 1, at(skips, row)), half);
  Value unitKeys = in.constant(keysOfUnit);
  Value units = in.floorDiv(in.add(count, in.constant(keysOfUnit - 1)), unitKeys, true);
  Value lastRow = in.sub(in.min(rows, in.add(row, in.constant(height))), in.constant(1));
  Value end = skipUnits(doesSkip, in.constant(0), units, /*isFromEnd=*/true,
                        [&](Value unit) { return isHidden(row, key, count, lastRow, in.mul(unit, unitKeys), unit); });
  Value first = skipUnits(doesSkip, in.constant(0), end, /*isFromEnd=*/false, [&](Value unit) {
    Value probed = in.sub(in.mul(in.add(unit, in.constant(1)), unitKeys), in.constant(lanes));
    return isHidden(row, key, count, row, in.max(in.min(probed, in.sub(count, in.constant(1))), in.constant(0)), unit);
  });
  Value from = in.mul(first, unitKeys), rest = in.sub(in.min(count, in.mul(end, unitKeys)), from);
  Value ofBlock[] = {kPack, vPack};
  kPack = at(kPack, in.mul(from, depth));
  vPack = at(vPack, in.mul(from, in.constant(panelWidth)));
  e.emitIf(in.compare(arith::CmpIPredicate::sgt, rest, in.constant(0)),
           [&] { emitKeys(row, in.add(key, from), rest); });
  std::tie(kPack, vPack) = std::tie(ofBlock[0], ofBlock[1]);
}
