//===- MmaAttention.cpp - streaming attention on tensor cores -------------===//
//
//   o[i] = sum over j of softmax_j(score(q[i] . k[j])) * v[j]
//
// A warp has 16 queries and walks over the keys, a tile at a time (online softmax, as in codegen/cpu/CpuAttention.cpp,
// which states the invariants for -inf and NaN). Tiles of k and v are copied to shared memory while the one before is
// worked on; all warps of a block use them. Where there are few queries, several warps have the same ones and each its
// share of every tile's keys (`groups`); the first of them joins what they have found, in order.
//
//   scores    16 x keys products of q and k, in registers: a thread has two neighbours of the rows g and g + 8
//   maximum   over the four threads of a row, by exchanges
//   weights   e^(score - maximum); as the left operand of the second product they stay in the same registers
//   sums      of weights: each thread's own, added up at the end; of weights times v: new registers for each tile,
//             which are added to the rescaled sums in f32
//
// The left operand wants k at t and t + 4 of a thread where it has 2t and 2t + 1 (f32): the rows of v are taken in the
// same order instead. For 16-bit elements the places agree.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/MmaAttention.h"
#include "codegen/gpu/GpuInstructions.h"
#include "codegen/gpu/GpuTemplates.h"
#include "codegen/gpu/MmaShared.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

namespace {

class AttentionTiles {
public:
  AttentionTiles(GpuEmitter &e, loop::AttentionOp op);
  void emit();

private:
  // The state of a thread: of its two rows the maximum and the sum of weights, then the sums of all columns.
  static constexpr size_t firstSum = 4;

  Value number(float value) { return e.invariants.constant(b.getF32FloatAttr(value)); }
  Value infinity() { return number(-std::numeric_limits<float>::infinity()); }
  Value less(Value x, Value y) { return e.invariants.compare(arith::CmpIPredicate::slt, x, y); }
  Value at(Value base, int64_t bytes) { return e.getAddress(base, b.getI8Type(), e.constant(bytes)); }
  Value stageAt(Value bytes) { return e.getAddress(at(shared, tile.queryBytes()), b.getI8Type(), bytes); }
  /// The group's number times so many. (Rows change places within fewer than a group has.)
  Value ofGroup(int64_t factor) { return e.invariants.mul(group, e.constant(factor)); }
  void findPlace();
  void copyRows(Region &region, int64_t rowDim, int64_t columnDim, int64_t columns, const MmaRows &rows, int64_t count,
                Value first, Value extent, Value target);
  void copyTile(Value step, Value stage);
  SmallVector<Value> scoresOf(Value stage);
  void applyScore(SmallVector<Value> &scores, Value firstKey);
  Value overQuad(Value value, llvm::function_ref<Value(Value, Value)> step);
  Value larger(Value a, Value c);
  Value baseOf(Value maximum);
  Value exponential(Value x, Value base);
  SmallVector<Value> weigh(SmallVector<Value> &scores, ValueRange state, SmallVector<Value> &scales);
  MmaFragments leftOf(ArrayRef<Value> weights, int64_t part);
  MmaFragments valuesOf(Value stage, int64_t part);
  SmallVector<Value> step(Value stepNumber, Value stage, ValueRange state);
  Value wordAt(int64_t group, int64_t word);
  SmallVector<Value> joinGroups(ValueRange state);
  void emitResults(ValueRange state);
  int64_t scoreTiles() const { return tile.groupKeys() / 8; }
  size_t sumCount() const { return size_t(tile.width / 8 * 4); }

  GpuEmitter &e;
  OpBuilder &b;
  loop::AttentionOp op;
  const AttentionTile tile;
  SmallVector<Expr> domain;
  EmissionPoint point;
  int64_t iDim, jDim, dDim, eDim;
  MmaRows keyRows, valueRows; // q lies as k does
  Value shared, thread, lane, warpRow, group, firstQuery, queryCount, keyCount, steps;
  Value query[2], queryInside[2]; // of the thread's rows; clamped
};

} // namespace

AttentionTiles::AttentionTiles(GpuEmitter &e, loop::AttentionOp op)
    : e(e), b(e.builder), op(op), tile(AttentionTile::fromAttribute(e.kernel.getConfigAttr())),
      domain(loop::getDomain(op)), iDim(int64_t(op.getBatch())), jDim(iDim + 1), dDim(iDim + 2), eDim(iDim + 3),
      keyRows{tile.depthBytes(), tile.elementBytes(), MmaRows::Reader::Matrices},
      valueRows{tile.widthBytes(), tile.elementBytes(),
                tile.kind == MmaKind::SplitF32 ? MmaRows::Reader::PairedWords : MmaRows::Reader::Matrices} {
  e.setDomain(domain);
  shared = e.launchedMemory();
  findPlace();
}

void AttentionTiles::findPlace() {
  thread = e.getRegister("tid.x");
  lane = e.invariants.mod(thread, e.constant(warpSize), true);
  Value warp = e.invariants.floorDiv(thread, e.constant(warpSize), true);
  warpRow = e.invariants.mul(e.invariants.mod(warp, e.constant(tile.queryWarps()), true), e.constant(16));
  group = e.invariants.floorDiv(warp, e.constant(tile.queryWarps()), true);
  queryCount = e.emitExpr(domain[size_t(iDim)], {});
  keyCount = e.emitExpr(domain[size_t(jDim)], {});
  SmallVector<Value> sizes;
  for (Expr extent : ArrayRef(domain).take_front(size_t(iDim)))
    sizes.push_back(e.emitExpr(extent, {}));
  sizes.push_back(e.emitExpr(domain[size_t(iDim)].ceilDiv(tile.queries()), {}));
  point.dims = e.createDigits(e.getRegister("ctaid.x"), sizes);
  firstQuery = e.invariants.mul(point.dims.back(), e.constant(tile.queries()));
  point.dims.resize(domain.size());
  Value last = e.invariants.sub(queryCount, e.constant(1));
  Value row = e.invariants.add(warpRow, e.invariants.floorDiv(lane, e.constant(4), true));
  for (int64_t i : {0, 1}) {
    query[i] = e.invariants.add(firstQuery, e.invariants.add(row, e.constant(8 * i)));
    queryInside[i] = e.invariants.min(query[i], last);
  }
  Value keys = keyCount; // that some query of the block sees
  if (op.getCausal())
    keys = e.invariants.min(keys, e.invariants.add(firstQuery, e.constant(tile.queries())));
  steps = e.invariants.floorDiv(e.invariants.add(keys, e.constant(tile.keys - 1)), e.constant(tile.keys), true);
}

//===----------------------------------------------------------------------===//
// Into shared memory
//===----------------------------------------------------------------------===//

/// Rows that do not exist repeat the last one.
void AttentionTiles::copyRows(Region &region, int64_t rowDim, int64_t columnDim, int64_t columns, const MmaRows &rows,
                              int64_t count, Value first, Value extent, Value target) {
  auto load = getNarrowValue(region).getDefiningOp<loop::LoadOp>();
  int64_t chunks = columns * rows.elementBytes / MmaTile::vectorBytes, total = count * chunks, threads = tile.threads();
  for (int64_t begin = 0; begin < total; begin += threads) {
    Value index = e.invariants.add(thread, e.constant(begin));
    Value row = e.invariants.floorDiv(index, e.constant(chunks), true);
    Value chunk = e.invariants.mod(index, e.constant(chunks), true);
    Value column = e.invariants.mul(chunk, e.constant(MmaTile::vectorBytes / rows.elementBytes));
    auto copy = [&] {
      EmissionPoint here = point;
      here.dims[size_t(rowDim)] =
          e.invariants.min(e.invariants.add(first, row), e.invariants.sub(extent, e.constant(1)));
      here.dims[size_t(columnDim)] = column;
      Value from = e.getAddress(e.getPointer(load.getBuffer()), load.getType(),
                                e.emitExpr(Expr(cast<ExprAttr>(load.getIndices()[0])), here));
      createCopyAsync(e, rows.addressOf(e, target, row, column, 0), from, MmaTile::vectorBytes, {});
      return SmallVector<Value>();
    };
    if (begin + threads <= total)
      copy();
    else
      e.createIf(less(index, e.constant(total)), {}, copy);
  }
}

void AttentionTiles::copyTile(Value step, Value stage) {
  Value first = e.invariants.mul(step, e.constant(tile.keys));
  copyRows(op.getK(), jDim, dDim, tile.depth, keyRows, tile.keys, first, keyCount, stage);
  copyRows(op.getV(), jDim, eDim, tile.width, valueRows, tile.keys, first, keyCount, at(stage, tile.keyBytes()));
}

//===----------------------------------------------------------------------===//
// One tile of keys
//===----------------------------------------------------------------------===//

/// 16 dot products with each of the group's keys.
SmallVector<Value> AttentionTiles::scoresOf(Value stage) {
  SmallVector<Value> sums(size_t(scoreTiles() * 4), number(0));
  Value keys = e.getAddress(stage, b.getI8Type(), ofGroup(tile.groupKeys() * keyRows.rowBytes));
  int64_t depth = 32 / tile.elementBytes();
  for (int64_t k = 0; k < tile.depth; k += depth) {
    MmaFragments left = createMatrixFragments(e, keyRows, {false, true}, shared, lane, warpRow, 0, k), right;
    for (int64_t key = 0; key < tile.groupKeys(); key += 16)
      right.append(createMatrixFragments(e, keyRows, {true, true}, keys, lane, e.constant(0), key, k));
    sums = createProducts(e, tile.kind, left, right, std::move(sums));
  }
  return sums;
}

/// The op's own scale and mask; -inf for keys that the query does not see.
void AttentionTiles::applyScore(SmallVector<Value> &scores, Value firstKey) {
  Value last = e.invariants.sub(keyCount, e.constant(1));
  Value pair = e.invariants.mul(e.invariants.mod(lane, e.constant(4), true), e.constant(2));
  for (int64_t number = 0; number < int64_t(scores.size()); ++number) {
    int64_t row = number % 4 / 2;
    Value inTile = e.invariants.add(pair, e.constant(number / 4 * 8 + number % 2));
    Value key = e.invariants.add(firstKey, inTile);
    EmissionPoint here = point;
    here.dims[size_t(iDim)] = queryInside[row];
    here.dims[size_t(jDim)] = e.invariants.min(key, last);
    Value score = e.emitRegion(op.getScore(), here, {scores[size_t(number)]});
    Value exists = less(key, keyCount);
    if (op.getCausal())
      exists = e.invariants.logicalAnd(exists, e.invariants.compare(arith::CmpIPredicate::sle, key, query[row]));
    scores[size_t(number)] = arith::SelectOp::create(b, e.loc, exists, score, infinity());
  }
}

Value AttentionTiles::overQuad(Value value, llvm::function_ref<Value(Value, Value)> step) {
  for (int64_t distance : {2, 1})
    value = step(value, e.createShuffle({value}, distance)[0]);
  return value;
}

/// The larger one; what is no number leaves `a` as it is.
Value AttentionTiles::larger(Value a, Value c) {
  Value isLarger = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, c, a);
  return arith::SelectOp::create(b, e.loc, isLarger, c, a);
}

/// What is taken from scores: the maximum, or 0 where no key is seen yet.
Value AttentionTiles::baseOf(Value maximum) {
  Value isNone = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OEQ, maximum, infinity());
  return arith::SelectOp::create(b, e.loc, isNone, number(0), maximum);
}

Value AttentionTiles::exponential(Value x, Value base) {
  return math::ExpOp::create(b, e.loc, arith::SubFOp::create(b, e.loc, x, base).getResult());
}

/// Scores become weights. Returns the next maxima and sums of weights; `scales`: what sums so far are multiplied by.
SmallVector<Value> AttentionTiles::weigh(SmallVector<Value> &scores, ValueRange state, SmallVector<Value> &scales) {
  SmallVector<Value> next(firstSum);
  auto larger = [&](Value a, Value c) { return this->larger(a, c); };
  for (size_t row : {0, 1}) {
    Value maximum = infinity();
    for (size_t i = 0; i < scores.size(); ++i)
      if (i % 4 / 2 == row)
        maximum = larger(maximum, scores[i]);
    maximum = larger(state[row], overQuad(maximum, larger));
    Value base = baseOf(maximum);
    Value scale = exponential(state[row], base), sum = arith::MulFOp::create(b, e.loc, state[row + 2], scale);
    for (size_t i = 0; i < scores.size(); ++i)
      if (i % 4 / 2 == row) {
        scores[i] = exponential(scores[i], base);
        sum = arith::AddFOp::create(b, e.loc, sum, scores[i]);
      }
    next[row] = maximum;
    next[row + 2] = sum;
    scales.push_back(scale);
  }
  return next;
}

/// Weights of 8 (f32) or 16 keys as a left operand.
MmaFragments AttentionTiles::leftOf(ArrayRef<Value> weights, int64_t part) {
  Type i32 = b.getI32Type();
  if (tile.kind == MmaKind::SplitF32) {
    SmallVector<Value> words;
    for (size_t i : {0, 2, 1, 3}) // rows first
      words.push_back(arith::BitcastOp::create(b, e.loc, i32, weights[size_t(part) * 4 + i]));
    return {words};
  }
  Type half = tile.kind == MmaKind::F16 ? Type(b.getF16Type()) : Type(b.getBF16Type());
  SmallVector<Value> words;
  for (size_t i = 0; i < 8; i += 2) {
    Value bits[2];
    for (size_t j : {0, 1}) {
      Value small = arith::TruncFOp::create(b, e.loc, half, weights[size_t(part) * 8 + i + j]);
      Value word = arith::BitcastOp::create(b, e.loc, b.getI16Type(), small);
      bits[j] = arith::ExtUIOp::create(b, e.loc, i32, word);
    }
    Value high = arith::ShLIOp::create(b, e.loc, bits[1], e.invariants.constant(b.getI32IntegerAttr(16)));
    words.push_back(arith::OrIOp::create(b, e.loc, bits[0], high));
  }
  return {words};
}

/// v of the same keys, all columns, as right operands.
MmaFragments AttentionTiles::valuesOf(Value stage, int64_t part) {
  Value base = e.getAddress(at(stage, tile.keyBytes()), b.getI8Type(), ofGroup(tile.groupKeys() * valueRows.rowBytes));
  MmaFragments fragments;
  if (tile.kind != MmaKind::SplitF32) {
    for (int64_t column = 0; column < tile.width; column += 16)
      fragments.append(
          createMatrixFragments(e, valueRows, {true, false}, base, lane, e.constant(0), column, part * 16));
    return fragments;
  }
  Value row = e.invariants.mul(e.invariants.mod(lane, e.constant(4), true), e.constant(2));
  Value group = e.invariants.floorDiv(lane, e.constant(4), true);
  for (int64_t column = 0; column < tile.width; column += 8) {
    SmallVector<Value> &words = fragments.emplace_back();
    for (int64_t next : {0, 1}) {
      Value address = valueRows.addressOf(e, base, row, e.invariants.add(group, e.constant(column)),
                                          (part * 8 + next) * valueRows.rowBytes);
      words.push_back(LLVM::LoadOp::create(b, e.loc, b.getI32Type(), address, 4));
    }
  }
  return fragments;
}

SmallVector<Value> AttentionTiles::step(Value stepNumber, Value stage, ValueRange state) {
  SmallVector<Value> scores = scoresOf(stage), scales;
  Value firstKey = e.invariants.mul(stepNumber, e.constant(tile.keys));
  applyScore(scores, e.invariants.add(firstKey, ofGroup(tile.groupKeys())));
  SmallVector<Value> next = weigh(scores, state, scales), sums(sumCount(), number(0));
  int64_t together = tile.kind == MmaKind::SplitF32 ? 8 : 16;
  for (int64_t part = 0; part * together < tile.groupKeys(); ++part)
    sums = createProducts(e, tile.kind, leftOf(scores, part), valuesOf(stage, part), std::move(sums));
  for (auto [i, sum] : llvm::enumerate(sums))
    next.push_back(math::FmaOp::create(b, e.loc, state[firstSum + i], scales[i % 4 / 2], sum));
  return next;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// Where a thread of a group behind the first one puts a word of its state; neighbours lie side by side.
Value AttentionTiles::wordAt(int64_t from, int64_t word) {
  int64_t threads = tile.queryWarps() * warpSize, row = (word * (tile.groups - 1) + from - 1) * threads;
  Value inGroup = e.invariants.mod(thread, e.constant(threads), true);
  Value offset = e.invariants.mul(e.invariants.add(inGroup, e.constant(row)), e.constant(4));
  return stageAt(offset);
}

/// The state of all keys, in the first group's threads.
SmallVector<Value> AttentionTiles::joinGroups(ValueRange state) {
  SmallVector<Value> joint(state);
  if (tile.groups == 1)
    return joint;
  Type f32 = b.getF32Type();
  createCopyWait(e, 0); // tiles that none reads
  e.createBlockBarrier();
  for (int64_t from = 1; from < tile.groups; ++from)
    e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, group, e.constant(from)), {}, [&] {
      for (auto [word, value] : llvm::enumerate(state))
        LLVM::StoreOp::create(b, e.loc, value, wordAt(from, int64_t(word)), 4);
      return SmallVector<Value>();
    });
  e.createBlockBarrier();
  for (int64_t from = 1; from < tile.groups; ++from) {
    SmallVector<Value> other;
    for (size_t word = 0; word < state.size(); ++word)
      other.push_back(LLVM::LoadOp::create(b, e.loc, f32, wordAt(from, int64_t(word)), 4));
    SmallVector<Value> scales[2];
    for (size_t row : {0, 1}) {
      Value maximum = larger(joint[row], other[row]), base = baseOf(maximum);
      for (Value before : {joint[row], other[row]})
        scales[row].push_back(exponential(before, base));
      joint[row] = maximum;
    }
    for (size_t word = 2; word < joint.size(); ++word) {
      ArrayRef<Value> scale = scales[word < firstSum ? word - 2 : (word - firstSum) % 4 / 2];
      Value scaled = arith::MulFOp::create(b, e.loc, joint[word], scale[0]);
      joint[word] = math::FmaOp::create(b, e.loc, other[word], scale[1], scaled);
    }
  }
  return joint;
}

void AttentionTiles::emitResults(ValueRange state) {
  auto plus = [&](Value a, Value c) -> Value { return arith::AddFOp::create(b, e.loc, a, c); };
  Value pair = e.invariants.mul(e.invariants.mod(lane, e.constant(4), true), e.constant(2));
  for (size_t row : {0, 1}) {
    Value all = overQuad(state[row + 2], plus);
    Value isSome = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, all, number(0));
    e.createIf(less(query[row], queryCount), {}, [&] {
      for (int64_t column = 0; column < tile.width; column += 8)
        for (size_t i : {0, 1}) {
          Value sum = state[firstSum + size_t(column / 2) + row * 2 + i];
          Value result = arith::DivFOp::create(b, e.loc, sum, all);
          if (op.getZeroMaskedRows())
            result = arith::SelectOp::create(b, e.loc, isSome, result, number(0));
          EmissionPoint here = point;
          here.dims[size_t(iDim)] = query[row];
          here.dims[size_t(eDim)] = e.invariants.add(pair, e.constant(column + int64_t(i)));
          e.emitRegion(op.getEpilogue(), here, {result});
        }
      return SmallVector<Value>();
    });
  }
}

void AttentionTiles::emit() {
  copyRows(op.getQ(), iDim, dDim, tile.depth, keyRows, tile.queries(), firstQuery, queryCount, shared);
  e.createIf(less(e.constant(0), steps), {}, [&] {
    copyTile(e.constant(0), stageAt(e.constant(0)));
    return SmallVector<Value>();
  });
  createCopyCommit(e);
  SmallVector<Value> state(firstSum + sumCount(), number(0));
  state[0] = state[1] = infinity();
  state.push_back(e.constant(0)); // where the stage begins
  state = e.createLoop(e.constant(0), steps, 1, state, [&](Value number, ValueRange in) {
    createCopyWait(e, 0);
    e.createBlockBarrier();
    Value other = e.invariants.sub(e.constant(tile.stageBytes()), in.back());
    Value next = e.invariants.add(number, e.constant(1));
    e.createIf(less(next, steps), {}, [&] {
      copyTile(next, stageAt(other));
      return SmallVector<Value>();
    });
    createCopyCommit(e);
    SmallVector<Value> out = step(number, stageAt(in.back()), in.drop_back());
    out.push_back(other);
    return out;
  });
  state.pop_back();
  state = joinGroups(state);
  if (tile.groups == 1)
    return emitResults(state);
  e.createIf(e.invariants.compare(arith::CmpIPredicate::eq, group, e.constant(0)), {}, [&] {
    emitResults(state);
    return SmallVector<Value>();
  });
}

void gpu::emitMmaAttention(GpuEmitter &e, loop::AttentionOp op) { AttentionTiles(e, op).emit(); }
