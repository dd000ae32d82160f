//===- CpuAttention.cpp - streaming softmax attention on the CPU ----------===//
//
//   o[i] = sum over j of softmax_j(score(q[i] . k[j])) * v[j]
//
// Idea (online softmax; Milakov and Gimelshein 2018, "FlashAttention" on GPUs): the matrix of scores never exists. A
// task takes one head and a block of queries, walks over blocks of keys, and keeps for each query the largest score so
// far m, the sum l of exp(score - m) and the sum o of exp(score - m) * v. A block with a larger maximum m' rescales l
// and o by exp(m - m'). Keys are transposed into unit panels and values copied into panels, so that both products run
// on the register tile; the scores of a tile's rows stay in the first-level cache. Tasks of a head that follow each
// other hold these copies and add the keys that none of them has seen; of heads with more keys than heldBytes the rest
// is copied by each task, block after block in one place.
//
// Invariants. Rows: scores that are -inf throughout give m = -inf; exp is then taken relative to 0, so that weights and
// l are 0 and the quotient is NaN. NaN scores do not change m but l, hence the row is NaN. Where l says that a row will
// be NaN, zero_masked_rows stores 0 instead. `causal` lets query i see the keys j <= i; blocks and tiles behind that
// are not computed.
//
// exp(x) is 2^(x log2(e)), rounded twice: the error grows with -x, but stays below a unit in the last place of 1, which
// is the largest weight; weights below the smallest normal number may be 0. Where scores are products times a constant,
// the queries are multiplied by it and by log2(e) when they are copied, which takes d roundings for the keys' one
// multiplication each; --fp=strict leaves it out, and so do scores with a mask that is added, whose largest finite
// numbers log2(e) would make infinite.
//
// Pointwise nodes and products that write what a head reads (the copy of a cache of keys and values, scores by
// distances) run ahead of all its queries, which are one task then. Products use the scratch of the queries, one after
// the other.
//
// Cost: 2*(d + e) flops and one exp for each pair of query and key, copies of k and v once a head and thread.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuAttention.h"
#include "codegen/common/ElementaryFunctions.h"
#include "codegen/cpu/CpuPlan.h"
#include "codegen/cpu/CpuTemplates.h"
#include "codegen/cpu/NodeEmitter.h"
#include "codegen/cpu/ScratchLayout.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr float log2e = 1.44269504f;

/// What the score multiplies the product by, if that is all it does and queries can bring it.
static std::optional<float> getScale(loop::AttentionOp op) {
  Block &score = op.getScore().front();
  Value product = score.getArgument(0), result = score.getTerminator()->getOperand(0);
  if (result == product)
    return 1.0f;
  auto multiply = result.getDefiningOp<arith::MulFOp>();
  if (!multiply || !llvm::is_contained(multiply->getOperands(), product))
    return std::nullopt;
  APFloat factor(0.0f);
  Value other = multiply.getLhs() == product ? multiply.getRhs() : multiply.getLhs();
  if (!matchPattern(other, m_ConstantFloat(&factor)) || !std::isfinite(factor.convertToFloat() * log2e))
    return std::nullopt;
  return factor.convertToFloat();
}

AttentionEmission::AttentionEmission(KernelEmitter &emitter, loop::AttentionOp op, ArrayRef<Operation *> ahead)
    : e(emitter), op(op), ahead(ahead), in(emitter.invariants), f(analyzeAttention(op)),
      f32(emitter.builder.getF32Type()) {
  lanes = std::min(panelWidth, e.level.lanesOf(32));
  if (!e.isStrict)
    scale = getScale(op);
  skipsHidden = !e.isStrict && !op.getCausal() && mayHideKeys(op);
  dimI = f.batchDims;
  dimJ = dimI + 1;
  dimD = dimI + 2;
  dimE = dimI + 3;
  queries = value(f.i);
  keys = value(f.j);
  depth = value(f.d);
  size = value(f.e);
  // Widths divide a block of keys: only its last tile is narrower.
  TileSplit split = chooseTile(e.level, f32, TiledExtents(f.rowsMost, 64 * panelWidth, 128), {.wide = true});
  height = std::min(split.height, tallestTile);
  width = split.width;
  if (width > 2) {
    width = 4;
    int64_t tiles = llvm::divideCeil(f.rowsMost, 6);
    height = llvm::divideCeil(f.rowsMost, tiles);
  }
  auto scratch = [&](Expr offset) { return e.getAddress(e.getScratch(), e.builder.getI8Type(), value(offset)); };
  qPack = scratch(f.qAt);
  kPacks = scratch(f.kAt);
  vPacks = scratch(f.vAt);
  scores = scratch(f.scoresAt);
  output = scratch(f.outputAt);
  maxima = scratch(f.maximaAt);
  sums = scratch(f.sumsAt);
  scales = scratch(f.scalesAt);
  partials = scratch(f.partialsAt);
  skips = scratch(f.skipsAt);
  qPitch = value(f.qPitch);
  scorePitch = value(f.scorePitch);
  outputPitch = value(f.outputPitch);
  blockKeys = value(f.keys);
  placeLocals(e, 1, scratchInTurns(f, ahead));
}

//===----------------------------------------------------------------------===//
// Small emitters
//===----------------------------------------------------------------------===//

EmissionPoint AttentionEmission::point() const {
  EmissionPoint point;
  point.dims.assign(f.domain.size(), Value());
  llvm::copy(batchDims, point.dims.begin());
  return point;
}

void AttentionEmission::forEachColumnTile(Value columns, std::optional<int64_t> known,
                                          llvm::function_ref<void(const TileShape &, Value)> body) {
  Value panels = in.floorDiv(in.add(columns, in.constant(panelWidth - 1)), in.constant(panelWidth), true);
  int64_t unit = known ? panelWidth : 1; // a last tile that is not full is one of its own if it is known
  Value tiles = in.floorDiv(known ? columns : panels, in.constant(width * unit), true);
  Value whole = in.mul(tiles, in.constant(width));
  loop(in.constant(0), whole, width, [&](Value panel) { body({height, width}, panel); });
  if (!known)
    return loop(whole, panels, 1, [&](Value panel) { body({height, 1}, panel); });
  if (int64_t rest = *known % (width * panelWidth)) {
    int64_t count = llvm::divideCeil(rest, panelWidth);
    loop(whole, panels, count, [&](Value panel) {
      body({.rows = height, .panels = count, .lastColumns = rest - (count - 1) * panelWidth}, panel);
    });
  }
}

Value AttentionEmission::maximum(Value a, Value b) { // one instruction; b where a is NaN
  Value isGreater = arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::OGT, a, b);
  return arith::SelectOp::create(e.builder, e.loc, isGreater, a, b);
}

Value AttentionEmission::exponential(Value x) {
  if (!scale)
    x = binary(x, splatConstant(log2e), false);
  auto power = math::Exp2Op::create(e.builder, e.loc, x);
  power->setAttr(codegen::notPositiveAttr, e.builder.getUnitAttr());
  return power;
}

Value AttentionEmission::firstLane(Value vector) {
  return LLVM::ExtractElementOp::create(e.builder, e.loc, vector, in.constant(0));
}

Value AttentionEmission::binary(Value a, Value b, bool isSum) {
  if (isSum)
    return arith::AddFOp::create(e.builder, e.loc, a, b);
  return arith::MulFOp::create(e.builder, e.loc, a, b);
}

Value AttentionEmission::splatConstant(float x) {
  auto type = VectorType::get({lanes}, f32);
  return in.constant(cast<TypedAttr>(Attribute(DenseElementsAttr::get(type, x))));
}

/// The reduction of all lanes, in every lane.
Value AttentionEmission::acrossLanes(Value vector, llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t distance = lanes / 2; distance; distance /= 2) {
    SmallVector<int32_t> order;
    for (int64_t lane = 0; lane < lanes; ++lane)
      order.push_back(int32_t(lane ^ distance));
    vector = combine(vector, LLVM::ShuffleVectorOp::create(e.builder, e.loc, vector, vector, order));
  }
  return vector;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void AttentionEmission::packQueries() {
  EmissionPoint here = point();
  loop(in.constant(0), rows, 1, [&](Value r) {
    here.dims[dimI] = in.add(firstRow, r);
    Value row = at(qPack, in.mul(r, qPitch));
    forEachVector(here, dimD, in.constant(0), depth, [&](const EmissionPoint &p, Value position) {
      Value query = e.splat(e.emitRegion(op.getQ(), p), lanes);
      e.createStore(scale ? binary(query, splatConstant(*scale * log2e), false) : query, at(row, position));
    });
  });
}

/// Unit panels [lanesDim / 16][rowsDim][16] of a region; rows lie `rowsOfPanel` apart between panels.
void AttentionEmission::packPanels(Region &region, int64_t lanesDim, Value first, Value count, int64_t rowsDim,
                                   Value rowFirst, Value rowCount, Value target, Value rowsOfPanel) {
  Value sixteen = in.constant(panelWidth), panelSize = in.mul(rowsOfPanel, sixteen);
  bool isAlongRows = false, isAlongLanes = false;
  region.walk([&](loop::LoadOp load) {
    Expr index = cast<ExprAttr>(load.getIndices()[0]);
    Expr rowStride = loop::strideOf(index, rowsDim), laneStride = loop::strideOf(index, lanesDim);
    isAlongRows |= rowStride && rowStride.isConstant(1);
    isAlongLanes |= laneStride && laneStride.isConstant(1);
  });
  EmissionPoint here = point();
  if (!isAlongRows || isAlongLanes) {
    loop(in.constant(0), rowCount, 1, [&](Value r) {
      here.dims[rowsDim] = in.add(rowFirst, r);
      Value row = at(target, in.mul(r, sixteen));
      forEachVector(here, lanesDim, first, in.add(first, count), [&](const EmissionPoint &p, Value position) {
        Value local = in.sub(position, first);
        Value offset = in.add(in.mul(in.floorDiv(local, sixteen, true), panelSize), in.mod(local, sixteen, true));
        e.createStore(e.splat(e.emitRegion(region, p), lanes), at(row, offset));
      });
    });
    return;
  }
  // Vectors along the rows, transposed in squares. What a square at the end writes beyond its panel belongs to the next
  // panel, which comes later.
  Value last = in.sub(in.add(first, count), in.constant(1));
  loop(in.constant(0), count, lanes, [&](Value column) {
    Value panel =
        at(target, in.add(in.mul(in.floorDiv(column, sixteen, true), panelSize), in.mod(column, sixteen, true)));
    forEachVector(here, rowsDim, rowFirst, in.add(rowFirst, rowCount), [&](const EmissionPoint &p, Value position) {
      SmallVector<Value> square;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        EmissionPoint one = p;
        one.dims[lanesDim] = in.min(in.add(in.add(first, column), in.constant(lane)), last);
        square.push_back(e.splat(e.emitRegion(region, one), lanes));
      }
      transposeSquare(e, square);
      Value row = at(panel, in.mul(in.sub(position, rowFirst), sixteen));
      for (int64_t lane = 0; lane < lanes; ++lane)
        e.createStore(square[lane], at(row, in.constant(lane * panelWidth)));
    });
  });
}

//===----------------------------------------------------------------------===//
// A tile of queries against a block of keys
//===----------------------------------------------------------------------===//

void AttentionEmission::resetState() {
  Value none = splatConstant(-std::numeric_limits<float>::infinity()), zero = splatConstant(0);
  Value all = in.add(rows, in.constant(height));
  loop(in.constant(0), all, lanes, [&](Value r) {
    e.createStore(none, at(maxima, r));
    e.createStore(zero, at(sums, r));
  });
  if (f.isOneBlock)
    return;
  loop(in.constant(0), all, 1, [&](Value r) {
    Value row = at(output, in.mul(r, outputPitch));
    loop(in.constant(0), outputPitch, lanes, [&](Value c) { e.createStore(zero, at(row, c)); });
  });
}

/// scores[r][c] = q[row + r] . k[c] for the tile's rows and `count` keys.
void AttentionEmission::emitScores(Value row, Value count) {
  Value panelStride = in.mul(depth, in.constant(panelWidth));
  auto known = op.getCausal() ? std::nullopt : f.j.asConstant();
  forEachColumnTile(count, known, [&](const TileShape &shape, Value panel) {
    TileOperands operands{.accumulator = f32, .aElement = f32, .bElement = f32};
    operands.loops.push_back({in.constant(0), depth, in.constant(1), in.constant(panelWidth)});
    operands.panels = at(kPack, in.mul(panel, panelStride));
    operands.panelStride = panelStride;
    operands.rowAddresses = [&](ValueRange) {
      SmallVector<Value> addresses;
      Value base = at(qPack, in.mul(row, qPitch));
      for (int64_t r = 0; r < height; ++r)
        addresses.push_back(at(base, in.mul(in.constant(r), qPitch)));
      return addresses;
    };
    SmallVector<Value> acc = emitRegisterTile(e, shape, operands, {});
    SmallVector<TileVector> vectors = getTileVectors(shape.panels, shape.lastColumns, lanes);
    Value column = at(scores, in.mul(panel, in.constant(panelWidth)));
    for (auto [index, sum] : llvm::enumerate(acc)) {
      Value line = in.mul(in.constant(int64_t(index / vectors.size())), scorePitch);
      e.createStore(sum, at(column, in.add(line, in.constant(vectors[index % vectors.size()].column))));
    }
  });
}

/// dot products -> scores for the rows that exist; partials: the largest of each lane.
void AttentionEmission::emitScoreRows(Value row, Value key, Value count) {
  Value none = splatConstant(-std::numeric_limits<float>::infinity());
  EmissionPoint here = point();
  here.lanes = lanes;
  here.vectorDim = dimJ;
  loop(in.constant(0), in.min(in.constant(height), in.sub(rows, row)), 1, [&](Value r) {
    Value query = in.add(firstRow, in.add(row, r));
    here.dims[dimI] = query;
    Value line = at(scores, in.mul(r, scorePitch)), step = in.constant(lanes);
    Value whole = in.mul(in.floorDiv(count, step, true), step);
    auto score = [&](Value column, Value mask, Value best) {
      here.dims[dimJ] = in.add(key, column);
      here.mask = mask;
      Value slot = at(line, column);
      Value dot = e.createLoad(f32, lanes, slot);
      Value s = scale ? dot : e.splat(e.emitRegion(op.getScore(), here, {dot}), lanes);
      if (op.getCausal()) { // keys key + column + lane <= query
        Value visible = e.laneMask(in.add(in.sub(query, here.dims[dimJ]), in.constant(1)), lanes);
        s = arith::SelectOp::create(e.builder, e.loc, visible, s, none);
      }
      if (mask)
        s = arith::SelectOp::create(e.builder, e.loc, mask, s, none);
      if (s != dot)
        e.createStore(s, slot);
      return maximum(s, best);
    };
    SmallVector<Value> best = e.createLoop(in.constant(0), whole, lanes, {none}, [&](Value c, ValueRange m) {
      return SmallVector<Value>{score(c, {}, m[0])};
    });
    best = e.createLoop(whole, count, lanes, best, [&](Value c, ValueRange m) {
      return SmallVector<Value>{score(c, e.laneMask(in.sub(count, c), lanes), m[0])};
    });
    e.createStore(best[0], partialAt(r));
  });
}

/// partials -> what is subtracted from the scores of a row; updates maxima and scales. Rows that do not exist have
/// places of their own.
void AttentionEmission::emitBases(Value row) {
  Value none = splatConstant(-std::numeric_limits<float>::infinity()), zero = splatConstant(0);
  for (int64_t r = 0; r < height; ++r) {
    Value state = in.add(row, in.constant(r)), slot = partialAt(in.constant(r));
    Value now = acrossLanes(e.createLoad(f32, lanes, slot), [&](Value a, Value b) { return maximum(a, b); }), old;
    if (!f.isOneBlock) {
      old = e.splat(e.createLoad(f32, 1, at(maxima, state)), lanes);
      now = maximum(now, old);
      e.createStore(firstLane(now), at(maxima, state));
    }
    Value isNone = arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::OEQ, now, none);
    Value base = arith::SelectOp::create(e.builder, e.loc, isNone, zero, now);
    e.createStore(base, slot);
    if (old) {
      Value scale = exponential(arith::SubFOp::create(e.builder, e.loc, old, base));
      e.createStore(firstLane(scale), at(scales, in.constant(r)));
    }
  }
}

/// scores -> exp(score - base) for the rows that exist; partials: the sum of each lane.
void AttentionEmission::emitWeights(Value row, Value count) {
  loop(in.constant(0), in.min(in.constant(height), in.sub(rows, row)), 1, [&](Value r) {
    Value line = at(scores, in.mul(r, scorePitch)), base = e.createLoad(f32, lanes, partialAt(r));
    // Lanes behind the last key hold -inf: their weight is 0.
    SmallVector<Value> total =
        e.createLoop(in.constant(0), count, lanes, {splatConstant(0)}, [&](Value column, ValueRange sum) {
          Value slot = at(line, column);
          Value s = e.createLoad(f32, lanes, slot);
          Value weight = exponential(arith::SubFOp::create(e.builder, e.loc, s, base));
          e.createStore(weight, slot);
          return SmallVector<Value>{binary(weight, sum[0], true)};
        });
    e.createStore(total[0], partialAt(r));
  });
}

/// partials -> sums.
void AttentionEmission::emitSums(Value row) {
  for (int64_t r = 0; r < height; ++r) {
    Value slot = at(sums, in.add(row, in.constant(r))),
          lanesOfRow = e.createLoad(f32, lanes, partialAt(in.constant(r)));
    Value sum = firstLane(acrossLanes(lanesOfRow, [&](Value a, Value b) { return binary(a, b, true); }));
    if (!f.isOneBlock) {
      Value scale = e.createLoad(f32, 1, at(scales, in.constant(r)));
      sum = binary(sum, binary(e.createLoad(f32, 1, slot), scale, false), true);
    }
    e.createStore(sum, slot);
  }
}

/// output[row + r] = output * scale + weights[r] . v
void AttentionEmission::emitOutput(Value row, Value count) {
  Value panelStride = in.mul(blockKeys, in.constant(panelWidth));
  // Whole panels: where a result has one element, any lane may be the one that is stored.
  Expr columns = roundUp(f.e, panelWidth);
  forEachColumnTile(value(columns), columns.asConstant(), [&](const TileShape &shape, Value panel) {
    TileOperands operands{.accumulator = f32, .aElement = f32, .bElement = f32};
    operands.loops.push_back({in.constant(0), count, in.constant(1), in.constant(panelWidth)});
    operands.panels = at(vPack, in.mul(panel, panelStride));
    operands.panelStride = panelStride;
    operands.rowAddresses = [&](ValueRange) {
      SmallVector<Value> addresses;
      for (int64_t r = 0; r < height; ++r)
        addresses.push_back(at(scores, in.mul(in.constant(r), scorePitch)));
      return addresses;
    };
    Value column = at(output, in.add(in.mul(row, outputPitch), in.mul(panel, in.constant(panelWidth))));
    SmallVector<Value> slots, init;
    for (int64_t r = 0; r < height; ++r) {
      Value scale = f.isOneBlock ? Value() : e.createLoad(f32, 1, at(scales, in.constant(r)));
      for (const TileVector &vector : getTileVectors(shape.panels, shape.lastColumns, lanes)) {
        slots.push_back(at(column, in.add(in.mul(in.constant(r), outputPitch), in.constant(vector.column))));
        if (scale)
          init.push_back(binary(e.createLoad(f32, vector.lanes, slots.back()), e.splat(scale, vector.lanes), false));
      }
    }
    SmallVector<Value> acc = emitRegisterTile(e, shape, operands, init);
    for (auto [sum, slot] : llvm::zip_equal(acc, slots))
      e.createStore(sum, slot);
  });
}

void AttentionEmission::emitTile(Value row, Value key, Value count) {
  if (op.getCausal()) { // keys up to the tile's last query
    Value visible = in.sub(in.add(in.add(firstRow, row), in.constant(height)), key);
    count = in.max(in.min(count, visible), in.constant(0));
  }
  if (skipsHidden)
    emitVisibleKeys(row, key, count);
  else
    emitKeys(row, key, count);
}

void AttentionEmission::emitKeys(Value row, Value key, Value count) {
  emitScores(row, count);
  emitScoreRows(row, key, count);
  emitBases(row);
  emitWeights(row, count);
  emitSums(row);
  emitOutput(row, count);
}

void AttentionEmission::emitResults() {
  EmissionPoint here = point();
  loop(in.constant(0), rows, 1, [&](Value r) {
    here.dims[dimI] = in.add(firstRow, r);
    Value sum = e.createLoad(f32, 1, at(sums, r));
    Value one = in.constant(cast<TypedAttr>(e.builder.getF32FloatAttr(1)));
    Value inverse = arith::DivFOp::create(e.builder, e.loc, one, sum), isNan;
    if (op.getZeroMaskedRows()) {
      Value zero = in.constant(cast<TypedAttr>(e.builder.getF32FloatAttr(0)));
      isNan = arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::UEQ, sum, zero);
    }
    Value scale = e.splat(inverse, lanes), row = at(output, in.mul(r, outputPitch));
    forEachVector(here, dimE, in.constant(0), size, [&](const EmissionPoint &p, Value position) {
      Value result = binary(e.createLoad(f32, lanes, at(row, position)), scale, false);
      if (isNan)
        result = arith::SelectOp::create(e.builder, e.loc, isNan, splatConstant(0), result);
      e.emitRegion(op.getEpilogue(), p, {result});
    });
  });
}

void AttentionEmission::decodeHead(Value index) {
  Value flat = batch = index;
  batchDims.assign(f.batchDims, Value());
  for (int64_t d = f.batchDims - 1; d > 0; --d) {
    Value extent = value(f.domain[d]);
    batchDims[d] = in.mod(flat, extent, true);
    flat = in.floorDiv(flat, extent, true);
  }
  if (f.batchDims)
    batchDims[0] = flat;
}

void AttentionEmission::decodeBlock(Value block) {
  Value most = value(f.rows);
  firstRow = in.mul(block, most);
  rows = in.min(most, in.sub(queries, firstRow));
}

void AttentionEmission::emitAhead() {
  EmissionPoint point;
  point.dims = batchDims;
  for (Operation *node : ahead) {
    auto product = dyn_cast<loop::ContractionOp>(node);
    if (!product) {
      NodeEmitter(e, node).emit({point}, f.batchDims, chooseNodeVector(node, f.batchDims));
      continue;
    }
    ContractionForm form = analyzeContraction(product);
    Value tasks = value(matricesOfHead(form, f) * form.blocks.m * form.blocks.n), first = in.mul(batch, tasks);
    isEmitted &= succeeded(emitContractions(e, node, first, in.add(first, tasks), nullptr));
  }
  e.setDomain(f.domain);
}

/// Where the block from `key` on has its copies; returns the number of its keys that may be there already.
Value AttentionEmission::chooseBlock(Value key) {
  kPack = kPacks;
  vPack = vPacks;
  if (f.held.isConstant(0))
    return in.constant(0);
  if (f.slots.isConstant(1))
    return blockKeys;
  Value block = in.floorDiv(key, blockKeys, true),
        slot = in.min(block, value(f.slots - Expr::constant(f.j.getContext(), 1)));
  kPack = at(kPacks, in.mul(slot, value(f.keys * roundUp(f.d, panelWidth))));
  vPack = at(vPacks, in.mul(slot, value(f.keys * roundUp(f.e, panelWidth))));
  return in.max(in.min(in.mul(in.sub(value(f.held), block), blockKeys), blockKeys), in.constant(0));
}

/// Copies keys [first, end) of the block from `key` on; first divides into whole panels.
void AttentionEmission::packKeys(Value key, Value first, Value end) {
  Value from = in.add(key, first), count = in.max(in.sub(end, first), in.constant(0));
  packPanels(op.getK(), dimJ, from, count, dimD, in.constant(0), depth, at(kPack, in.mul(first, depth)), depth);
  packPanels(op.getV(), dimE, in.constant(0), size, dimJ, from, count,
             at(vPack, in.mul(first, in.constant(panelWidth))), blockKeys);
}

/// Copies what is not held of a block's first `end` keys: with `causal` those behind `held`, otherwise all or none.
void AttentionEmission::packBlock(Value key, Value held, Value end) {
  if (op.getCausal() || f.held.isConstant(0))
    return packKeys(key, held, end);
  Value isNew = in.compare(arith::CmpIPredicate::eq, held, in.constant(0));
  e.emitIf(isNew, [&] { packKeys(key, in.constant(0), end); });
}

/// Keys below `packed` that are held have been copied; returns how many that is behind the task.
Value AttentionEmission::emitTask(Value packed) {
  Value end = op.getCausal() ? in.min(keys, in.add(firstRow, rows)) : keys;
  Value unit = in.constant(panelWidth);
  Value packEnd =
      in.min(keys, in.mul(in.floorDiv(in.add(end, in.constant(panelWidth - 1)), unit, true), unit)); // whole panels
  auto pack = [&](Value key) {
    Value held = in.min(chooseBlock(key), in.max(in.sub(packed, key), in.constant(0)));
    packBlock(key, held, in.min(blockKeys, in.sub(packEnd, key)));
  };
  bool isPackedFirst = f.isOneBlock && !f.held.isConstant(0); // queries are read sooner than keys
  if (isPackedFirst)
    pack(in.constant(0));
  packQueries();
  resetState();
  if (skipsHidden)
    emitSkips();
  loop(in.constant(0), end, f.keys.getValue(), [&](Value key) {
    Value count = in.min(blockKeys, in.sub(end, key));
    if (!isPackedFirst)
      pack(key);
    loop(in.constant(0), rows, height, [&](Value row) { emitTile(row, key, count); });
  });
  if (f.isOneBlock) // no key at all: the loop did not run
    if (f.j.isConstant(0))
      loop(in.constant(0), rows, 1, [&](Value r) {
        loop(in.constant(0), outputPitch, lanes,
             [&](Value c) { e.createStore(splatConstant(0), at(output, in.add(in.mul(r, outputPitch), c))); });
      });
  emitResults();
  return in.max(packed, packEnd);
}

void AttentionEmission::emit(Value begin, Value end) {
  Value blocks = value(f.blocks);
  if (!ahead.empty())
    return loop(begin, end, 1, [&](Value head) {
      decodeHead(head);
      emitAhead();
      e.createLoop(in.constant(0), blocks, 1, {in.constant(0)}, [&](Value block, ValueRange packed) {
        decodeBlock(block);
        return SmallVector<Value>{emitTask(packed[0])};
      });
    });
  e.createLoop(begin, end, 1, {in.constant(-1), in.constant(0)}, [&](Value index, ValueRange held) {
    decodeHead(in.floorDiv(index, blocks, true));
    decodeBlock(in.mod(index, blocks, true));
    Value isSame = in.compare(arith::CmpIPredicate::eq, batch, held[0]);
    Value packed = in.select(isSame, held[1], in.constant(0));
    return SmallVector<Value>{batch, emitTask(packed)};
  });
}

LogicalResult cpu::emitAttention(KernelEmitter &emitter, ArrayRef<Operation *> nodes, Value begin, Value end) {
  auto op = cast<loop::AttentionOp>(nodes.back());
  emitter.setDomain(loop::getDomain(op));
  AttentionEmission emission(emitter, op, nodes.drop_back());
  emission.emit(begin, end);
  return success(emission.isEmitted);
}
