//===- MmaAttention.cpp - streaming attention on tensor cores -------------===//
//
//   o[i] = sum over j of softmax_j(score(q[i] . k[j])) * v[j]
//
// A warp has 16 queries, whose fragments stay in its registers, and walks over the keys, a tile at a time (online
// softmax, as in codegen/cpu/CpuAttention.cpp, which states the invariants for -inf and NaN). Tiles of k and v are
// copied to shared memory while the one before is worked on; all warps of a block use them. Several warps may have the
// same queries and each its share of every tile's keys (`groups`). Few keys come at once: scores are made while v is
// still under way.
//
//   scores    16 x keys products of q and k, in registers: a thread has two neighbours of the rows g and g + 8. Only
//             tiles with keys that do not exist, or that some query does not see, are checked one by one
//   maximum   over the four threads of a row, by exchanges
//   weights   e^(score - maximum), as 2^(score log2(e) - maximum): one multiplication with addition and one
//             instruction; as the left operand of the second product they stay in the same registers
//   sums      of weights: each thread's own, added up at the end; of weights times v: products are added to the
//             rescaled sums, but of f32 each tile has new sums where registers allow it, which are rounded less often
//
// Maxima are kept times log2(e), so that one base holds for all weights of a row until a larger one comes: weights are
// powers of a number that is e but for rounding, and quotients of them are what counts. 2^x is the hardware's (at most
// two units of the last place of f32 off, over all its values): less than what rounding to 16 bits or the products of
// split f32 cost.
//
// Where queries are few (a decoder's one), `splits` blocks share the keys of their tile (MmaAttentionParts.cpp). Most
// rows of it do not exist then; what counts is how fast keys and values are read.
//
// The left operand wants k at t and t + 4 of a thread where it has 2t and 2t + 1 (f32): the rows of v are taken in the
// same order instead. For 16-bit elements the places agree.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuInstructions.h"
#include "codegen/gpu/GpuTemplates.h"
#include "codegen/gpu/MmaAttentionEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr float log2e = 1.44269504f;
static constexpr int64_t mostKeptSplit = 64; // elements of a row of f32: their halves are registers, too
static constexpr int64_t swizzlePeriod = 8;  // rows after which chunks lie as before (MmaShared.cpp)

AttentionEmitter::AttentionEmitter(GpuEmitter &e, loop::AttentionOp op)
    : e(e), b(e.builder), op(op), tile(AttentionTile::fromAttribute(e.kernel.getConfigAttr())),
      splitsExpr(e.kernel.getConfigAttr().getAs<ExprAttr>("splits")), domain(loop::getDomain(op)),
      iDim(int64_t(op.getBatch())), jDim(iDim + 1), dDim(iDim + 2), eDim(iDim + 3),
      keyRows{tile.depthBytes(), tile.elementBytes(), MmaRows::Reader::Matrices},
      valueRows{tile.widthBytes(), tile.elementBytes(),
                tile.kind == MmaKind::SplitF32 ? MmaRows::Reader::PairedWords : MmaRows::Reader::Matrices} {
  e.setDomain(domain);
  shared = e.launchedMemory();
  findPlace();
}

void AttentionEmitter::findPlace() {
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
  Value block = e.getRegister("ctaid.x");
  splits = e.emitExpr(splitsExpr, {});
  tileNumber = e.invariants.floorDiv(block, splits, true);
  split = e.invariants.sub(block, e.invariants.mul(tileNumber, splits));
  point.dims = e.createDigits(tileNumber, sizes);
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
  Value steps = e.invariants.floorDiv(e.invariants.add(keys, e.constant(tile.keys - 1)), e.constant(tile.keys), true);
  Value share = e.invariants.add(steps, e.invariants.sub(splits, e.constant(1)));
  share = e.invariants.floorDiv(share, splits, true);
  firstStep = e.invariants.mul(split, share);
  lastStep = e.invariants.min(e.invariants.add(firstStep, share), steps);
}

/// No tile reaches over the last key.
bool AttentionEmitter::isWholeTiles() const {
  return domain[size_t(jDim)].range(SymbolRanges()).divisor % tile.keys == 0;
}

/// The values of `yes` where the condition holds, of `no` elsewhere.
AttentionEmitter::Values AttentionEmitter::choose(Value condition, TypeRange types, llvm::function_ref<Values()> yes,
                                                  llvm::function_ref<Values()> no) {
  auto choice = scf::IfOp::create(b, e.loc, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (auto [block, body] : {std::pair(choice.thenBlock(), yes), std::pair(choice.elseBlock(), no)}) {
    b.setInsertionPointToStart(block);
    Values values = body();
    if (!types.empty())
      scf::YieldOp::create(b, e.loc, values);
  }
  return Values(choice.getResults());
}

//===----------------------------------------------------------------------===//
// Into shared memory
//===----------------------------------------------------------------------===//

/// `count` rows of 16-byte chunks from row `first` on; behind row `last` that one again (null: all rows exist).
void AttentionEmitter::copyRows(Region &region, int64_t rowDim, int64_t columnDim, int64_t columns, const MmaRows &rows,
                                int64_t count, Value first, Value last, Value target) {
  auto load = getNarrowValue(region).getDefiningOp<loop::LoadOp>();
  int64_t chunks = columns * rows.elementBytes / MmaTile::vectorBytes, total = count * chunks, threads = tile.threads();
  // Rows of a turn are a constant apart where turns are whole rows and chunks lie in them alike.
  bool isRegular = threads % (chunks * swizzlePeriod) == 0;
  for (int64_t begin = 0; begin < total; begin += threads) {
    Value index = e.invariants.add(thread, e.constant(isRegular ? 0 : begin));
    int64_t below = isRegular ? begin / chunks : 0;
    Value row = e.invariants.floorDiv(index, e.constant(chunks), true);
    Value chunk = e.invariants.mod(index, e.constant(chunks), true);
    Value column = e.invariants.mul(chunk, e.constant(MmaTile::vectorBytes / rows.elementBytes));
    auto copy = [&] {
      EmissionPoint here = point;
      Value &at = here.dims[size_t(rowDim)];
      at = e.invariants.add(first, row);
      if (last) {
        at = e.invariants.min(e.invariants.add(at, e.constant(below)), last);
      } else {
        here.offsets.assign(domain.size(), 0);
        here.offsets[size_t(rowDim)] = below;
      }
      here.dims[size_t(columnDim)] = column;
      Value from = e.getAddress(e.getPointer(load.getBuffer()), load.getType(),
                                e.emitExpr(Expr(cast<ExprAttr>(load.getIndices()[0])), here));
      createCopyAsync(e, rows.addressOf(e, target, row, column, below * rows.rowBytes), from, MmaTile::vectorBytes, {});
      return Values();
    };
    if (begin + threads <= total)
      copy();
    else
      e.createIf(less(index, e.constant(total - (isRegular ? begin : 0))), {}, copy);
  }
}

void AttentionEmitter::copyQueries() {
  bool isWhole = domain[size_t(iDim)].range(SymbolRanges()).divisor % tile.queries() == 0;
  Value last = isWhole ? Value() : e.invariants.sub(queryCount, e.constant(1));
  copyRows(op.getQ(), iDim, dDim, tile.depth, keyRows, tile.queries(), firstQuery, last, shared);
}

/// A tile of k, or of v behind it.
void AttentionEmitter::copyKeys(Value step, Value stage, bool isValues) {
  Value first = e.invariants.mul(step, e.constant(tile.keys)), end = e.invariants.add(first, e.constant(tile.keys));
  auto copy = [&](Value last) {
    if (isValues)
      copyRows(op.getV(), jDim, eDim, tile.width, valueRows, tile.keys, first, last, at(stage, tile.keyBytes()));
    else
      copyRows(op.getK(), jDim, dDim, tile.depth, keyRows, tile.keys, first, last, stage);
    return Values();
  };
  Value last = e.invariants.sub(keyCount, e.constant(1));
  if (isWholeTiles())
    copy({});
  else if (tile.stages == 1)
    copy(last);
  else
    choose(atMost(end, keyCount), {}, [&] { return copy({}); }, [&] { return copy(last); });
}

void AttentionEmitter::copyTile(Value step, Value stage) {
  copyKeys(step, stage, false);
  copyKeys(step, stage, true);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

MmaFragments AttentionEmitter::readQueries(int64_t k) {
  return createMatrixFragments(e, keyRows, {false, true}, shared, lane, warpRow, 0, k);
}

void AttentionEmitter::keepQueries() {
  if (tile.kind == MmaKind::SplitF32 && tile.depth > mostKeptSplit)
    return;
  for (int64_t k = 0; k < tile.depth; k += stepDepth())
    queries.push_back(readQueries(k));
}

/// 16 dot products with each of the group's keys.
AttentionEmitter::Values AttentionEmitter::scoresOf(Value stage) {
  Values sums(size_t(scoreTiles() * 4), number(0));
  Value keys = e.getAddress(stage, b.getI8Type(), ofGroup(tile.groupKeys() * keyRows.rowBytes));
  for (int64_t k = 0; k < tile.depth; k += stepDepth()) {
    MmaFragments left = queries.empty() ? readQueries(k) : queries[size_t(k / stepDepth())], right;
    for (int64_t key = 0; key < tile.groupKeys(); key += 16)
      right.append(createMatrixFragments(e, keyRows, {true, true}, keys, lane, e.constant(0), key, k));
    sums = createProducts(e, tile.kind, left, right, std::move(sums));
  }
  return sums;
}

/// The op's own scale and mask. All keys exist and are seen by all of the warp's queries.
AttentionEmitter::Values AttentionEmitter::scoresWithin(ValueRange products, Value firstKey) {
  Block &body = op.getScore().front();
  SmallVector<Operation *> ops = llvm::map_to_vector(body.without_terminator(), [](Operation &op) { return &op; });
  Value yielded = cast<loop::YieldOp>(body.getTerminator()).getValue();
  Value pair = e.invariants.mul(e.invariants.mod(lane, e.constant(4), true), e.constant(2));
  Values scores;
  for (size_t first = 0; first < products.size(); first += 2) {
    EmissionPoint here = point;
    here.dims[size_t(iDim)] = queryInside[first % 4 / 2];
    here.dims[size_t(jDim)] = e.invariants.add(firstKey, e.invariants.add(pair, e.constant(int64_t(first / 4 * 8))));
    LaneEmitter lanes(e, op, here, jDim, 2);
    for (size_t i : {0, 1})
      lanes.getBody(i).bind(body.getArgument(0), products[first + i]);
    lanes.emitOps(ops);
    for (size_t i : {0, 1})
      scores.push_back(lanes.getBody(i).lookup(yielded));
  }
  return scores;
}

/// The same, with -inf for keys that do not exist or that the query does not see.
AttentionEmitter::Values AttentionEmitter::scoresChecked(ValueRange products, Value firstKey) {
  Value last = e.invariants.sub(keyCount, e.constant(1));
  Value pair = e.invariants.mul(e.invariants.mod(lane, e.constant(4), true), e.constant(2));
  Values scores;
  for (int64_t number = 0; number < int64_t(products.size()); ++number) {
    int64_t row = number % 4 / 2;
    Value inTile = e.invariants.add(pair, e.constant(number / 4 * 8 + number % 2));
    Value key = e.invariants.add(firstKey, inTile);
    EmissionPoint here = point;
    here.dims[size_t(iDim)] = queryInside[row];
    here.dims[size_t(jDim)] = e.invariants.min(key, last);
    Value score = e.emitRegion(op.getScore(), here, {products[size_t(number)]});
    Value exists = less(key, keyCount);
    if (op.getCausal())
      exists = e.invariants.logicalAnd(exists, atMost(key, query[row]));
    scores.push_back(arith::SelectOp::create(b, e.loc, exists, score, infinity()));
  }
  return scores;
}

void AttentionEmitter::applyScore(Values &scores, Value firstKey) {
  auto within = [&] { return scoresWithin(scores, firstKey); };
  auto checked = [&] { return scoresChecked(scores, firstKey); };
  if (isWholeTiles() && !op.getCausal()) {
    scores = within();
    return;
  }
  Value end = e.invariants.add(firstKey, e.constant(tile.groupKeys()));
  Value isWithin = atMost(end, keyCount);
  if (op.getCausal()) {
    Value seen = e.invariants.add(e.invariants.add(firstQuery, warpRow), e.constant(1)); // by the first query
    isWithin = e.invariants.logicalAnd(isWithin, atMost(end, seen));
  }
  SmallVector<Type> types(scores.size(), b.getF32Type());
  scores = choose(isWithin, types, within, checked);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Value AttentionEmitter::overQuad(Value value, llvm::function_ref<Value(Value, Value)> step) {
  for (int64_t distance : {2, 1})
    value = step(value, e.createShuffle({value}, distance)[0]);
  return value;
}

static Value overAll(SmallVector<Value> values, llvm::function_ref<Value(Value, Value)> step) {
  while (values.size() > 1) {
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      values[i / 2] = step(values[i], values[i + 1]);
    if (values.size() % 2)
      values[values.size() / 2] = values.back();
    values.truncate((values.size() + 1) / 2);
  }
  return values.front();
}

/// The larger one; of a number and what is none, the number.
Value AttentionEmitter::larger(Value a, Value c) { return LLVM::MaxNumOp::create(b, e.loc, a, c); }

/// What is taken from scores: the maximum, or 0 where no key is seen yet.
Value AttentionEmitter::baseOf(Value maximum) {
  Value isNone = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OEQ, maximum, infinity());
  return arith::SelectOp::create(b, e.loc, isNone, number(0), maximum);
}

Value AttentionEmitter::powerOfTwo(Value exponent) { return createPowerOfTwo(e, exponent); }

/// Scores become weights. Returns the next maxima and sums of weights; `scales`: what sums so far are multiplied by.
/// Without a state there are none.
AttentionEmitter::Values AttentionEmitter::weigh(Values &scores, ValueRange state, Values &scales) {
  auto larger = [&](Value a, Value c) { return this->larger(a, c); };
  auto plus = [&](Value a, Value c) -> Value { return arith::AddFOp::create(b, e.loc, a, c); };
  Values next(firstSum);
  for (size_t row : {0, 1}) {
    Values own;
    for (size_t i = 0; i < scores.size(); ++i)
      if (i % 4 / 2 == row)
        own.push_back(scores[i]);
    Value maximum = arith::MulFOp::create(b, e.loc, overQuad(overAll(own, larger), larger), number(log2e));
    if (!state.empty())
      maximum = larger(state[row], maximum);
    Value base = baseOf(maximum), minus = arith::NegFOp::create(b, e.loc, base);
    own.clear();
    for (size_t i = 0; i < scores.size(); ++i)
      if (i % 4 / 2 == row) {
        scores[i] = powerOfTwo(math::FmaOp::create(b, e.loc, scores[i], number(log2e), minus));
        own.push_back(scores[i]);
      }
    next[row] = maximum;
    next[row + 2] = overAll(own, plus);
    if (state.empty())
      continue;
    scales.push_back(powerOfTwo(arith::SubFOp::create(b, e.loc, state[row], base)));
    next[row + 2] = math::FmaOp::create(b, e.loc, state[row + 2], scales.back(), next[row + 2]);
  }
  return next;
}

/// Weights of 8 (f32) or 16 keys as a left operand.
MmaFragments AttentionEmitter::leftOf(ArrayRef<Value> weights, int64_t part) {
  SmallVector<Value> words;
  if (tile.kind == MmaKind::SplitF32)
    for (size_t i : {0, 2, 1, 3}) // rows first
      words.push_back(arith::BitcastOp::create(b, e.loc, b.getI32Type(), weights[size_t(part) * 4 + i]));
  else
    for (size_t i = 0; i < 8; i += 2)
      words.push_back(createPair(e, tile.kind, weights[size_t(part) * 8 + i], weights[size_t(part) * 8 + i + 1]));
  return {words};
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// v of the same keys, all columns, as right operands.
MmaFragments AttentionEmitter::valuesOf(Value stage, int64_t part) {
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

/// The sums times their rows' scales (none: 1), plus weights times v.
AttentionEmitter::Values AttentionEmitter::addValues(Value stage, ArrayRef<Value> weights, ValueRange sums,
                                                     ArrayRef<Value> scales) {
  bool isSplit = tile.kind == MmaKind::SplitF32, isNew = isSplit && tile.width <= mostKeptSplit;
  auto scaleOf = [&](size_t i) { return scales[i % 4 / 2]; };
  Values next(sums);
  for (size_t i = 0; i < sums.size() && !scales.empty(); ++i)
    next[i] = isNew ? number(0) : arith::MulFOp::create(b, e.loc, sums[i], scaleOf(i)).getResult();
  int64_t together = isSplit ? 8 : 16;
  for (int64_t part = 0; part * together < tile.groupKeys(); ++part)
    next = createProducts(e, tile.kind, leftOf(weights, part), valuesOf(stage, part), std::move(next));
  for (size_t i = 0; i < sums.size() && isNew && !scales.empty(); ++i)
    next[i] = math::FmaOp::create(b, e.loc, sums[i], scaleOf(i), next[i]);
  return next;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// All keys are one tile.
AttentionEmitter::Values AttentionEmitter::takeAll() {
  Value stage = stageAt(e.constant(0));
  copyQueries();
  copyKeys(e.constant(0), stage, false);
  createCopyCommit(e);
  copyKeys(e.constant(0), stage, true);
  createCopyCommit(e);
  createCopyWait(e, 1);
  e.createBlockBarrier();
  keepQueries();
  Values scores = scoresOf(stage), scales;
  applyScore(scores, ofGroup(tile.groupKeys()));
  Values state = weigh(scores, {}, scales), sums(sumCount(), number(0));
  createCopyWait(e, 0);
  e.createBlockBarrier();
  state.append(addValues(stage, scores, sums, scales));
  return state;
}

AttentionEmitter::Values AttentionEmitter::takeTiles() {
  copyQueries();
  e.createIf(less(firstStep, lastStep), {}, [&] {
    copyTile(firstStep, stageAt(e.constant(0)));
    return Values();
  });
  createCopyCommit(e);
  createCopyWait(e, 0);
  e.createBlockBarrier();
  keepQueries();
  Values state(firstSum + sumCount(), number(0));
  state[0] = state[1] = infinity();
  state.push_back(e.constant(0)); // where the stage begins
  state = e.createLoop(firstStep, lastStep, 1, state, [&](Value step, ValueRange in) {
    createCopyWait(e, 0);
    e.createBlockBarrier();
    Value stage = stageAt(in.back()), other = e.invariants.sub(e.constant(tile.stageBytes()), in.back());
    Value next = e.invariants.add(step, e.constant(1));
    e.createIf(less(next, lastStep), {}, [&] {
      copyTile(next, stageAt(other));
      return Values();
    });
    createCopyCommit(e);
    Values scores = scoresOf(stage), scales;
    Value firstKey = e.invariants.mul(step, e.constant(tile.keys));
    applyScore(scores, e.invariants.add(firstKey, ofGroup(tile.groupKeys())));
    Values out = weigh(scores, in.take_front(firstSum), scales);
    out.append(addValues(stage, scores, in.slice(firstSum, sumCount()), scales));
    out.push_back(other);
    return out;
  });
  state.pop_back();
  createCopyWait(e, 0); // for nothing, but shared memory has another use now
  return state;
}

void AttentionEmitter::emit() {
  Values state = tile.stages == 1 ? takeAll() : takeTiles();
  emitResults(state);
}

void gpu::emitMmaAttention(GpuEmitter &e, loop::AttentionOp op) { AttentionEmitter(e, op).emit(); }
