//===- RegisterTile.cpp - the multiply-add tile held in registers ---------===//
//
// Problem. A matrix product does two floating-point operations for each pair of operands, so it runs at the speed of
// the multiply-add units only if operands are reused from registers.
//
// Idea. Hold a block of the result in registers (as SSA values carried by the loops over k, so that nothing depends on
// the register allocator guessing right) and for each k load a row of B (`width` vectors), broadcast one element of A
// for each row, and do rows x width multiply-adds. The loads are width + rows, the arithmetic rows * width.
//
// The k loops take a few steps in each turn: a loop's own instructions are three to five, beside the twenty of a step
// of six rows by two vectors, and compete with those of the core's other thread. Between steps there
// are fences that are none of the processor's: LLVM's scheduler would move loads ahead and keep more B rows alive,
// which spills.
//
// Columns that do not fill the last panel still cost their vector. Half of it is computed where that is enough: many
// processors run two 256-bit multiply-adds in the time of a 512-bit one.
//
// Tiles with few accumulators (matrix times vector) have several sets of them, which hide the latency, and B, which
// streams from memory once, is read as one contiguous stream for each panel. RegisterTileChoice.cpp chooses the tile.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/RegisterTile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

Value cpu::createMultiplyAdd(KernelEmitter &emitter, Value a, Value b, Value c) {
  OpBuilder &builder = emitter.builder;
  if (isa<FloatType>(getElementTypeOrSelf(c.getType()))) {
    if (emitter.level.hasFma)
      return LLVM::FMAOp::create(builder, emitter.loc, c.getType(), a, b, c);
    Value product = arith::MulFOp::create(builder, emitter.loc, a, b);
    return arith::AddFOp::create(builder, emitter.loc, product, c);
  }
  Value product = arith::MulIOp::create(builder, emitter.loc, a, b);
  return arith::AddIOp::create(builder, emitter.loc, product, c);
}

std::pair<Value, Value> cpu::splitBytes(KernelEmitter &e, Value x, bool isSigned) {
  OpBuilder &b = e.builder;
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements() * 2;
  auto type = VectorType::get(lanes, b.getI16Type());
  Value pairs = LLVM::BitcastOp::create(b, e.loc, type, x);
  Value eight = e.invariants.constant(cast<TypedAttr>(DenseElementsAttr::get(type, APInt(16, 8))));
  if (isSigned) {
    Value even = arith::ShLIOp::create(b, e.loc, pairs, eight);
    return {arith::ShRSIOp::create(b, e.loc, even, eight), arith::ShRSIOp::create(b, e.loc, pairs, eight)};
  }
  Value low = e.invariants.constant(cast<TypedAttr>(DenseElementsAttr::get(type, APInt(16, 255))));
  return {arith::AndIOp::create(b, e.loc, pairs, low), arith::ShRUIOp::create(b, e.loc, pairs, eight)};
}

/// Products of pairs of 16-bit integers, each pair's added up.
static Value createPairProducts(KernelEmitter &e, Value a, Value b, VectorType type) {
  OpBuilder &builder = e.builder;
  int64_t lanes = type.getNumElements();
  if (StringRef name = e.level.pairProductOf(lanes * 32); !name.empty()) {
    auto pairs = VectorType::get(lanes * 2, builder.getI16Type());
    Value x = LLVM::BitcastOp::create(builder, e.loc, pairs, a), y = LLVM::BitcastOp::create(builder, e.loc, pairs, b);
    return LLVM::CallIntrinsicOp::create(builder, e.loc, type, builder.getStringAttr(name), ValueRange{x, y})
        .getResult(0);
  }
  Value sum;
  Value sixteen = e.invariants.constant(cast<TypedAttr>(DenseElementsAttr::get(type, APInt(32, 16))));
  Value x = LLVM::BitcastOp::create(builder, e.loc, type, a), y = LLVM::BitcastOp::create(builder, e.loc, type, b);
  for (bool isHigh : {false, true}) {
    auto half = [&](Value v) -> Value {
      v = isHigh ? v : arith::ShLIOp::create(builder, e.loc, v, sixteen).getResult();
      return arith::ShRSIOp::create(builder, e.loc, v, sixteen);
    };
    Value product = arith::MulIOp::create(builder, e.loc, half(x), half(y));
    sum = sum ? arith::AddIOp::create(builder, e.loc, sum, product).getResult() : product;
  }
  return sum;
}

Value cpu::createPairDot(KernelEmitter &e, Value a, Value b, Value c) {
  Value products = createPairProducts(e, a, b, cast<VectorType>(c.getType()));
  return arith::AddIOp::create(e.builder, e.loc, c, products);
}

Value cpu::createByteDot(KernelEmitter &e, Value a, Value b, Value c) {
  OpBuilder &builder = e.builder;
  auto type = cast<VectorType>(c.getType());
  auto bytes = VectorType::get(type.getNumElements() * 4, builder.getI8Type());
  auto asBytes = [&](Value x) { return LLVM::BitcastOp::create(builder, e.loc, bytes, x).getResult(); };
  auto dot = [&](StringRef name, Value sum, Value x, Value y) {
    return LLVM::CallIntrinsicOp::create(builder, e.loc, type, builder.getStringAttr(name), ValueRange{sum, x, y})
        .getResult(0);
  };
  if (StringRef name = e.level.byteDotOf(type.getNumElements() * 32); !name.empty())
    return dot(name, c, asBytes(a), asBytes(b));
  if (StringRef name = e.level.signedByteDotOf(type.getNumElements() * 32); !name.empty()) {
    // a = (a - 128) + 2 * 64: the sums of b are the same for all rows.
    auto splat = [&](VectorType type, APInt value) {
      return e.invariants.constant(cast<TypedAttr>(DenseElementsAttr::get(type, value)));
    };
    Value moved = arith::XOrIOp::create(builder, e.loc, asBytes(a), splat(bytes, APInt(8, 128)));
    Value half = dot(name, splat(type, APInt(32, 0)), splat(bytes, APInt(8, 64)), asBytes(b));
    Value rest = arith::AddIOp::create(builder, e.loc, half, half);
    return arith::AddIOp::create(builder, e.loc, dot(name, c, moved, asBytes(b)), rest);
  }
  auto [aEven, aOdd] = splitBytes(e, a, /*isSigned=*/false);
  auto [bEven, bOdd] = splitBytes(e, b, /*isSigned=*/true);
  return createPairDot(e, aOdd, bOdd, createPairDot(e, aEven, bEven, c));
}

Value cpu::createBytePairs(KernelEmitter &e, Value a, Value b) {
  OpBuilder &builder = e.builder;
  int64_t bytes = cast<VectorType>(b.getType()).getNumElements();
  auto pairs = VectorType::get(bytes / 2, builder.getI16Type());
  auto name = builder.getStringAttr(e.level.bytePairsOf(bytes * 8));
  return LLVM::CallIntrinsicOp::create(builder, e.loc, pairs, name, ValueRange{a, b}).getResult(0);
}

/// createBytePairs on 32-bit lanes.
static Value createPairsOfGroups(KernelEmitter &e, Value a, Value b) {
  auto bytes = VectorType::get(cast<VectorType>(b.getType()).getNumElements() * 4, e.builder.getI8Type());
  Value x = LLVM::BitcastOp::create(e.builder, e.loc, bytes, a);
  return createBytePairs(e, x, LLVM::BitcastOp::create(e.builder, e.loc, bytes, b));
}

/// c + the sums of neighbours.
static Value addNeighbours(KernelEmitter &e, Value pairs, Value c) {
  auto ones = DenseElementsAttr::get(cast<VectorType>(pairs.getType()), APInt(16, 1));
  return createPairDot(e, pairs, e.invariants.constant(cast<TypedAttr>(ones)), c);
}

Value cpu::createDotOfPairs(KernelEmitter &e, Value a, Value b, Value c) {
  return addNeighbours(e, createPairsOfGroups(e, a, b), c);
}

Value cpu::createDotOfGroups(KernelEmitter &e, Value a0, Value a1, Value b0, Value b1, Value c) {
  Value first = createPairsOfGroups(e, a0, b0), second = createPairsOfGroups(e, a1, b1);
  return addNeighbours(e, arith::AddIOp::create(e.builder, e.loc, first, second), c);
}

Value cpu::createBf16Dot(KernelEmitter &e, Value a, Value b, Value c) {
  OpBuilder &builder = e.builder;
  auto type = cast<VectorType>(c.getType());
  if (StringRef name = e.level.bf16DotOf(type.getNumElements() * 32); !name.empty()) {
    auto pairs = VectorType::get(type.getNumElements() * 2, builder.getBF16Type());
    Value x = LLVM::BitcastOp::create(builder, e.loc, pairs, a), y = LLVM::BitcastOp::create(builder, e.loc, pairs, b);
    return LLVM::CallIntrinsicOp::create(builder, e.loc, type, builder.getStringAttr(name), ValueRange{c, x, y})
        .getResult(0);
  }
  // A bf16 is the upper half of an f32.
  auto bits = VectorType::get(type.getShape(), builder.getI32Type());
  auto splat = [&](uint32_t value) {
    return e.invariants.constant(cast<TypedAttr>(DenseElementsAttr::get(bits, APInt(32, value))));
  };
  for (bool isHigh : {false, true}) {
    auto half = [&](Value pair) -> Value {
      Value x = LLVM::BitcastOp::create(builder, e.loc, bits, pair);
      x = isHigh ? arith::AndIOp::create(builder, e.loc, x, splat(0xffff0000)).getResult()
                 : arith::ShLIOp::create(builder, e.loc, x, splat(16)).getResult();
      return LLVM::BitcastOp::create(builder, e.loc, type, x);
    };
    c = createMultiplyAdd(e, half(a), half(b), c);
  }
  return c;
}

void cpu::createPrefetch(KernelEmitter &emitter, Value address, int level) {
  OpBuilder &builder = emitter.builder;
  LLVM::Prefetch::create(builder, emitter.loc, address, /*rw=*/builder.getI32IntegerAttr(0),
                         /*hint=*/builder.getI32IntegerAttr(4 - level), /*cache=*/builder.getI32IntegerAttr(1));
}

Value cpu::join(KernelEmitter &e, ArrayRef<Value> vectors) {
  if (vectors.size() == 1)
    return vectors.front();
  size_t half = vectors.size() / 2;
  Value x = join(e, vectors.take_front(half)), y = join(e, vectors.drop_front(half));
  auto order = llvm::to_vector(llvm::seq<int32_t>(0, int32_t(2 * cast<VectorType>(x.getType()).getNumElements())));
  return LLVM::ShuffleVectorOp::create(e.builder, e.loc, x, y, order);
}

std::pair<Value, Value> cpu::interleave(KernelEmitter &e, Value x, Value y, int64_t ofPart) {
  int64_t count = cast<VectorType>(x.getType()).getNumElements();
  SmallVector<int32_t> low, high;
  for (int64_t part = 0; part < count; part += ofPart)
    for (int64_t at = 0; at < ofPart / 2; ++at)
      for (int64_t operand : {int64_t(0), count}) {
        low.push_back(int32_t(operand + part + at));
        high.push_back(int32_t(operand + part + ofPart / 2 + at));
      }
  return {LLVM::ShuffleVectorOp::create(e.builder, e.loc, x, y, low),
          LLVM::ShuffleVectorOp::create(e.builder, e.loc, x, y, high)};
}

void cpu::transposeSquare(KernelEmitter &e, SmallVectorImpl<Value> &rows) {
  int64_t count = int64_t(rows.size());
  for (int64_t block = count / 2; block; block /= 2) {
    SmallVector<int32_t> low, high;
    for (int64_t lane = 0; lane < count; ++lane) {
      bool isUpper = lane & block;
      low.push_back(int32_t(isUpper ? count + lane - block : lane));
      high.push_back(int32_t(isUpper ? count + lane : lane + block));
    }
    for (int64_t r = 0; r < count; ++r) {
      if (r & block)
        continue;
      Value a = rows[r], b = rows[r + block];
      rows[r] = LLVM::ShuffleVectorOp::create(e.builder, e.loc, a, b, low);
      rows[r + block] = LLVM::ShuffleVectorOp::create(e.builder, e.loc, a, b, high);
    }
  }
}

SmallVector<TileVector> cpu::getTileVectors(int64_t panels, int64_t lastColumns, int64_t lanes) {
  SmallVector<TileVector> vectors;
  int64_t end = (panels - 1) * panelWidth + lastColumns;
  for (int64_t column = 0; column < end; column += lanes) {
    bool isHalf = lanes == panelWidth && end - column <= lanes / 2;
    vectors.push_back({column, isHalf ? lanes / 2 : lanes});
  }
  return vectors;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// Steps in a turn of the innermost loop, multiply-adds of a step that is not the only one, and bits of their vectors:
/// tiles of 512 bits have 24 sums and more, which LLVM spills in two steps, and wait for the multiply-add units anyway.
static constexpr int64_t mostSteps = 4, mostProducts = 16, widestInTurns = 256;
static constexpr int64_t besideGroups = 5; // registers beside sums and B: two of A, two of products, ones

namespace {
/// The innermost loop over k where the others stand at `outer`: where the rows of A are, where B's begin, and what is
/// fetched beside them.
struct InnermostLoop {
  SmallVector<Value> rows, outer;
  Value panels;
  ValueRange fetched;
};

/// One tile being emitted.
struct TileEmission {
  KernelEmitter &emitter;
  TileShape shape;
  const TileOperands &operands;
  int64_t lanes;
  SmallVector<TileVector> vectors; // of a row

  int64_t vectorsOfRow() const { return int64_t(vectors.size()); }
  int64_t accumulators() const { return shape.rows * vectorsOfRow(); }

  Value zero(const TileVector &vector) const {
    auto type = VectorType::get({vector.lanes}, operands.accumulator);
    return emitter.invariants.constant(cast<TypedAttr>(emitter.builder.getZeroAttr(type)));
  }
  SmallVector<Value> zeros(int64_t sets) const {
    SmallVector<Value> values;
    for (int64_t a = 0; a < accumulators() * sets; ++a)
      values.push_back(zero(vectors[a % vectors.size()]));
    return values;
  }
  /// Groups of the innermost loop may be few: their sets are not summed up behind it.
  int64_t setsBetweenLoops() const { return operands.splitB ? shape.unroll : 1; }
  std::optional<int64_t> knownSteps() const;
  int64_t stepsOfTurn() const;
  SmallVector<Value> inOrder(ArrayRef<Value> sums);
  Value loadA(Value rowAddress, Value index);
  Value lowerHalf(Value vector);
  Value loadB(Value rowAddress, const TileVector &vector, ValueRange ks);
  Value loadOutputs(Value rowAddress, const TileVector &vector);
  Value maskOfOutputs(const TileVector &vector);
  bool hasProducts(const TileVector &vector) const;
  SmallVector<Value> movedFetches(ValueRange fetched, const TileLoop &loop, Value k);
  SmallVector<Value> step(ArrayRef<Value> rows, ArrayRef<Value> outer, Value k, Value bRow, ValueRange acc,
                          ValueRange fetched);
  SmallVector<Value> stepGroups(ArrayRef<Value> rows, Value k, Value panels, ValueRange acc);
  SmallVector<Value> stepPixels(ArrayRef<Value> pixels, Value index, Value bRow, ValueRange acc);
  SmallVector<Value> stepSplit(ArrayRef<Value> rows, Value index, ValueRange ks, ArrayRef<Value> words, ValueRange acc);
  SmallVector<Value> sumOfSets(ValueRange sums);
  Value upperBound(ArrayRef<Value> rows);
  Value rowOfB(const InnermostLoop &inner, Value k) {
    return emitter.getAddress(inner.panels, operands.bElement,
                              emitter.invariants.mul(k, operands.loops.back().bStride));
  }
  SmallVector<Value> stepAt(const InnermostLoop &inner, Value k, ValueRange acc);
  Value endOfWhole(Value lower, Value upper, int64_t steps);
  SmallVector<Value> stepsInSets(const InnermostLoop &inner, Value lower, Value upper, ValueRange acc);
  SmallVector<Value> stepsInTurns(const InnermostLoop &inner, Value lower, Value upper, int64_t steps, ValueRange acc);
  SmallVector<Value> innermost(const InnermostLoop &inner, ValueRange acc);
  SmallVector<Value> nest(unsigned depth, SmallVector<Value> outer, Value panels, ValueRange fetched, ValueRange acc);
};
} // namespace

Value TileEmission::loadA(Value rowAddress, Value index) {
  Value address = emitter.getAddress(rowAddress, operands.aElement, index);
  int64_t neighbours = operands.splitB ? 1 : operands.group;
  Value scalar = emitter.createLoad(operands.aElement, neighbours, address);
  if (neighbours > 1)
    scalar = LLVM::BitcastOp::create(emitter.builder, emitter.loc, operands.accumulator, scalar);
  int64_t widest = vectors.front().lanes;
  auto type = VectorType::get(widest, operands.accumulator);
  Value broadcast = vector::BroadcastOp::create(emitter.builder, emitter.loc, type, scalar);
  if (vectors.back().lanes == widest || !isa<FloatType>(operands.accumulator))
    return broadcast;
  auto fence = emitter.builder.getStringAttr("llvm.arithmetic.fence");
  return LLVM::CallIntrinsicOp::create(emitter.builder, emitter.loc, type, fence, ValueRange(broadcast)).getResult(0);
}

/// The same register. Unless it is hidden where the value comes from, LLVM broadcasts a second time.
Value TileEmission::lowerHalf(Value vector) {
  SmallVector<int32_t> order = llvm::to_vector(llvm::seq<int32_t>(0, int32_t(lanes / 2)));
  return LLVM::ShuffleVectorOp::create(emitter.builder, emitter.loc, vector, vector, order);
}

/// Whether one of the outputs in the vector has a product in these steps.
bool TileEmission::hasProducts(const TileVector &vector) const {
  const TileOutputs &outputs = operands.outputs;
  return outputs.count == 1 ||
         (vector.column < outputs.end * outputColumns && vector.column + vector.lanes > outputs.first * outputColumns);
}

/// The lanes of those outputs; null: all of the vector.
Value TileEmission::maskOfOutputs(const TileVector &vector) {
  const TileOutputs &outputs = operands.outputs;
  if (outputs.count == 1)
    return {};
  SmallVector<bool> lanesOfProducts;
  for (int64_t lane = 0; lane < vector.lanes; ++lane) {
    int64_t output = (vector.column + lane) / outputColumns;
    lanesOfProducts.push_back(output >= outputs.first && output < outputs.end);
  }
  if (llvm::all_of(lanesOfProducts, [](bool has) { return has; }))
    return {};
  auto type = VectorType::get({vector.lanes}, emitter.builder.getI1Type());
  return emitter.invariants.constant(cast<TypedAttr>(DenseElementsAttr::get(type, lanesOfProducts)));
}

/// Each output's columns, from where it stands in B. What stands in lanes of others is not used.
Value TileEmission::loadOutputs(Value rowAddress, const TileVector &vector) {
  InvariantBuilder &i = emitter.invariants;
  const TileOutputs &outputs = operands.outputs;
  SmallVector<Value> parts;
  for (int64_t column = vector.column; column < vector.column + vector.lanes; column += outputColumns) {
    int64_t output = std::clamp(column / outputColumns, outputs.first, outputs.end - 1);
    Value offset = i.sub(i.constant(column % outputColumns), i.mul(outputs.distance, i.constant(output)));
    Value address = emitter.getAddress(rowAddress, operands.bElement, offset);
    parts.push_back(emitter.createLoad(operands.bElement, std::min(vector.lanes, outputColumns), address));
  }
  if (parts.size() == 1)
    return parts[0];
  SmallVector<int32_t> order = llvm::to_vector(llvm::seq<int32_t>(0, int32_t(vector.lanes)));
  return LLVM::ShuffleVectorOp::create(emitter.builder, emitter.loc, parts[0], parts[1], order);
}

Value TileEmission::loadB(Value rowAddress, const TileVector &vector, ValueRange ks) {
  if (operands.outputs.count > 1)
    return hasProducts(vector) ? loadOutputs(rowAddress, vector) : Value();
  int64_t panel = vector.column / panelWidth, part = vector.column % panelWidth;
  InvariantBuilder &i = emitter.invariants;
  Value offset = i.add(i.mul(operands.panelStride, i.constant(panel)), i.constant(part));
  Value address = emitter.getAddress(rowAddress, operands.bElement, offset);
  Value loaded = emitter.createLoad(operands.bElement, vector.lanes, address);
  if (operands.fetchedAhead && part == 0)
    createPrefetch(emitter,
                   emitter.getAddress(address, emitter.builder.getI8Type(), i.constant(operands.fetchedAhead)));
  if (operands.addend.distance) {
    Value place = emitter.getAddress(address, operands.bElement, operands.addend.distance);
    Value other = emitter.createLoad(operands.bElement, vector.lanes, place);
    Value sum = operands.addend.isSubtracted
                    ? arith::SubFOp::create(emitter.builder, emitter.loc, loaded, other).getResult()
                    : arith::AddFOp::create(emitter.builder, emitter.loc, loaded, other).getResult();
    if (operands.addend.storedAt) {
      assert(panel == 0 && ks.size() == 1 && "sums of one panel, along one loop");
      Value at = i.add(i.mul(ks.back(), i.constant(panelWidth)), i.constant(part));
      emitter.createStore(sum, emitter.getAddress(operands.addend.storedAt, operands.bElement, at));
    }
    return sum;
  }
  return operands.convertB ? operands.convertB(loaded, vector.column, ks) : loaded;
}

Value cpu::hide(KernelEmitter &e, Value value) {
  auto dialect = LLVM::AsmDialectAttr::get(e.builder.getContext(), LLVM::AsmDialect::AD_ATT);
  return LLVM::InlineAsmOp::create(e.builder, e.loc, value.getType(), ValueRange(value), "", "=r,0", false, false,
                                   LLVM::TailCallKind::None, dialect, ArrayAttr())
      .getResult(0);
}

/// Where the loop stands at `k`.
SmallVector<Value> TileEmission::movedFetches(ValueRange fetched, const TileLoop &loop, Value k) {
  InvariantBuilder &i = emitter.invariants;
  SmallVector<Value> moved;
  for (Value address : fetched) {
    Value rows = i.floorDiv(loop.bStride, i.constant(panelWidth), /*nonNegative=*/true);
    Value offset = i.mul(k, i.mul(rows, operands.fetchedBytes));
    moved.push_back(emitter.getAddress(address, emitter.builder.getI8Type(), offset));
  }
  return moved;
}

SmallVector<Value> TileEmission::step(ArrayRef<Value> rows, ArrayRef<Value> outer, Value k, Value bRow, ValueRange acc,
                                      ValueRange fetched) {
  InvariantBuilder &i = emitter.invariants;
  for (Value address : fetched)
    createPrefetch(emitter, address);
  if (!operands.pixels.empty())
    return stepPixels(rows, i.mul(k, operands.loops.back().aStride), bRow, acc);
  int64_t width = vectorsOfRow();
  SmallVector<Value> b, next(acc), ks(outer);
  ks.push_back(k);
  for (const TileVector &vector : vectors)
    b.push_back(loadB(bRow, vector, ks));
  // Of several steps side by side LLVM would load what they share once, and hold it in registers that there are not.
  Value index = i.mul(operands.meetsRows ? hide(emitter, k) : k, operands.loops.back().aStride);
  if (operands.splitB)
    return stepSplit(rows, index, ks, b, acc);
  for (int64_t r = 0; r < shape.rows; ++r) {
    Value a = loadA(rows[r], index);
    for (int64_t c = 0; c < width; ++c) {
      if (!hasProducts(vectors[c]))
        continue;
      Value part = vectors[c].lanes < vectors.front().lanes ? lowerHalf(a) : a, &sum = next[r * width + c];
      auto createDot = operands.group == 1                    ? createMultiplyAdd
                       : isa<FloatType>(operands.accumulator) ? createBf16Dot
                       : operands.aElement.isInteger(16)      ? createPairDot
                       : operands.addedPairs                  ? createDotOfPairs
                                                              : createByteDot;
      Value added = createDot(emitter, part, b[c], sum);
      Value mask = maskOfOutputs(vectors[c]);
      sum = mask ? arith::SelectOp::create(emitter.builder, emitter.loc, mask, added, sum).getResult() : added;
    }
  }
  return next;
}

/// What the rows share is loaded once.
SmallVector<Value> TileEmission::stepPixels(ArrayRef<Value> pixels, Value index, Value bRow, ValueRange acc) {
  InvariantBuilder &i = emitter.invariants;
  int64_t width = vectorsOfRow();
  SmallVector<SmallVector<Value>> b;
  SmallVector<Value> next(acc);
  for (auto [pixel, uses] : llvm::zip_equal(pixels, operands.pixels)) {
    Value a = loadA(pixel, index);
    for (const TileUse &use : uses) {
      while (int64_t(b.size()) <= use.tap) {
        Value distance = i.mul(operands.tapStride, i.constant(int64_t(b.size())));
        Value row = emitter.getAddress(bRow, operands.bElement, distance);
        b.emplace_back();
        for (const TileVector &vector : vectors)
          b.back().push_back(loadB(row, vector, {}));
      }
      for (int64_t c = 0; c < width; ++c) {
        Value &sum = next[use.row * width + c];
        sum = createMultiplyAdd(emitter, a, b[use.tap][c], sum);
      }
    }
  }
  return next;
}

/// Two groups of bytes at once. Where registers do not hold all of B, each row reads it again but the first vector's.
SmallVector<Value> TileEmission::stepGroups(ArrayRef<Value> rows, Value k, Value panels, ValueRange acc) {
  InvariantBuilder &i = emitter.invariants;
  const TileLoop &loop = operands.loops.back();
  int64_t width = vectorsOfRow();
  bool readsAgain = accumulators() + 2 * width + besideGroups > emitter.level.vectorRegisters;
  Value bRow = emitter.getAddress(panels, operands.bElement, i.mul(k, loop.bStride)), index = i.mul(k, loop.aStride);
  auto loadBoth = [&](const TileVector &vector) {
    Value next = emitter.getAddress(bRow, operands.bElement, loop.bStride);
    return std::pair(loadB(bRow, vector, {}), loadB(next, vector, {}));
  };
  SmallVector<std::pair<Value, Value>> b;
  for (const TileVector &vector : vectors)
    b.push_back(loadBoth(vector));
  SmallVector<Value> next(acc);
  for (int64_t r = 0; r < shape.rows; ++r) {
    Value a0 = loadA(rows[r], index), a1 = loadA(rows[r], i.add(index, loop.aStride));
    if (r && readsAgain)
      bRow = hide(emitter, bRow); // else LLVM reads once what is the same
    for (int64_t c = 0; c < width; ++c) {
      auto [b0, b1] = r && c && readsAgain ? loadBoth(vectors[c]) : b[c];
      bool isHalf = vectors[c].lanes < vectors.front().lanes;
      Value &sum = next[r * width + c];
      sum = createDotOfGroups(emitter, isHalf ? lowerHalf(a0) : a0, isHalf ? lowerHalf(a1) : a1, b0, b1, sum);
    }
  }
  return next;
}

/// The terms of a group one after the other, in turns between the sets of accumulators.
SmallVector<Value> TileEmission::stepSplit(ArrayRef<Value> rows, Value index, ValueRange ks, ArrayRef<Value> words,
                                           ValueRange acc) {
  InvariantBuilder &i = emitter.invariants;
  int64_t width = vectorsOfRow();
  SmallVector<Value> next(acc);
  for (int64_t term = 0; term < operands.group; ++term) {
    SmallVector<Value> b;
    for (auto [vector, word] : llvm::zip_equal(vectors, words))
      b.push_back(operands.splitB(word, term, vector.column, ks));
    int64_t set = term % shape.unroll * accumulators();
    for (int64_t r = 0; r < shape.rows; ++r) {
      Value a = loadA(rows[r], i.add(index, i.constant(term)));
      for (int64_t c = 0; c < width; ++c) {
        Value part = vectors[c].lanes < vectors.front().lanes ? lowerHalf(a) : a, &sum = next[set + r * width + c];
        sum = createMultiplyAdd(emitter, part, b[c], sum);
      }
    }
  }
  return next;
}

/// One set of accumulators from `unroll`.
SmallVector<Value> TileEmission::sumOfSets(ValueRange sets) {
  int64_t count = accumulators();
  SmallVector<Value> sums(sets);
  for (int64_t distance = shape.unroll / 2; distance; distance /= 2)
    for (int64_t a = 0; a < distance * count; ++a) {
      Value x = sums[a], y = sums[distance * count + a];
      sums[a] = isa<FloatType>(operands.accumulator)
                    ? arith::AddFOp::create(emitter.builder, emitter.loc, x, y).getResult()
                    : arith::AddIOp::create(emitter.builder, emitter.loc, x, y).getResult();
    }
  sums.resize(count);
  return sums;
}

/// Of the innermost loop: its lower one where all rows are zeros.
Value TileEmission::upperBound(ArrayRef<Value> rows) {
  const TileLoop &loop = operands.loops.back();
  if (!operands.zeros)
    return loop.upper;
  OpBuilder &b = emitter.builder;
  Value all;
  for (Value row : rows) {
    Value isZero = LLVM::ICmpOp::create(b, emitter.loc, LLVM::ICmpPredicate::eq, row, operands.zeros);
    all = all ? arith::AndIOp::create(b, emitter.loc, all, isZero).getResult() : isZero;
  }
  return arith::SelectOp::create(b, emitter.loc, all, loop.lower, loop.upper);
}

/// Of the innermost loop, where it does not start at rows of zeros.
std::optional<int64_t> TileEmission::knownSteps() const {
  InvariantBuilder &i = emitter.invariants;
  return i.asConstant(i.sub(operands.loops.back().upper, operands.loops.back().lower));
}

/// Steps of the innermost loop that are one turn of it. Few enough that a short loop has hardly any left.
int64_t TileEmission::stepsOfTurn() const {
  if (operands.addedPairs)
    return 2;
  if (shape.unroll > 1 || operands.splitB || operands.convertB)
    return 1;
  std::optional<int64_t> all = knownSteps();
  if (all && *all <= longestUnrolled)
    return 1;
  int64_t products = accumulators();
  if (!operands.pixels.empty())
    products =
        vectorsOfRow() * std::transform_reduce(operands.pixels.begin(), operands.pixels.end(), int64_t(0),
                                               std::plus<>(), [](const auto &uses) { return int64_t(uses.size()); });
  if (products > mostProducts || vectors.front().lanes * operands.accumulator.getIntOrFloatBitWidth() > widestInTurns)
    return 1;
  auto leavesMany = [&](int64_t steps) { return all && *all % steps && *all < steps * 8; };
  int64_t steps = mostSteps;
  while (steps > 1 && leavesMany(steps))
    steps /= 2;
  return steps;
}

/// Sums that are added to as they are. Of 32-bit integers LLVM would add up the products of several steps before, and
/// spill.
SmallVector<Value> TileEmission::inOrder(ArrayRef<Value> sums) {
  if (!operands.accumulator.isInteger(32))
    return SmallVector<Value>(sums);
  OpBuilder &b = emitter.builder;
  auto fence = b.getStringAttr("llvm.arithmetic.fence"); // is one of floats
  return llvm::map_to_vector(sums, [&](Value sum) -> Value {
    auto type = cast<VectorType>(sum.getType()).clone(b.getF32Type());
    Value floats = LLVM::BitcastOp::create(b, emitter.loc, type, sum);
    floats = LLVM::CallIntrinsicOp::create(b, emitter.loc, type, fence, ValueRange(floats)).getResult(0);
    return LLVM::BitcastOp::create(b, emitter.loc, sum.getType(), floats);
  });
}

SmallVector<Value> TileEmission::stepAt(const InnermostLoop &inner, Value k, ValueRange acc) {
  return step(inner.rows, inner.outer, k, rowOfB(inner, k), acc, movedFetches(inner.fetched, operands.loops.back(), k));
}

/// Where the last whole multiple of so many steps from `lower` on ends.
Value TileEmission::endOfWhole(Value lower, Value upper, int64_t steps) {
  InvariantBuilder &i = emitter.invariants;
  Value span = i.sub(upper, lower);
  return i.add(lower, i.sub(span, i.mod(span, i.constant(steps), /*nonNegative=*/true)));
}

/// Steps [lower, upper), as many at once as there are sets of accumulators, which are summed up behind them.
SmallVector<Value> TileEmission::stepsInSets(const InnermostLoop &inner, Value lower, Value upper, ValueRange acc) {
  InvariantBuilder &i = emitter.invariants;
  int64_t sets = shape.unroll, count = accumulators();
  SmallVector<Value> init(acc);
  llvm::append_range(init, zeros(sets - 1));
  SmallVector<Value> sums = emitter.createLoop(lower, upper, sets, init, [&](Value k, ValueRange carried) {
    SmallVector<Value> next;
    for (int64_t u = 0; u < sets; ++u) {
      Value ku = i.add(k, i.constant(u));
      SmallVector<Value> lines = movedFetches(inner.fetched, operands.loops.back(), ku);
      llvm::append_range(next,
                         step(inner.rows, inner.outer, ku, rowOfB(inner, ku), carried.slice(u * count, count), lines));
    }
    return next;
  });
  return sumOfSets(sums);
}

/// Steps [lower, upper), so many one behind the other in a turn of the loop.
SmallVector<Value> TileEmission::stepsInTurns(const InnermostLoop &inner, Value lower, Value upper, int64_t steps,
                                              ValueRange acc) {
  InvariantBuilder &i = emitter.invariants;
  return emitter.createLoop(lower, upper, steps, acc, [&](Value k, ValueRange carried) {
    if (operands.addedPairs == 2)
      return stepGroups(inner.rows, k, inner.panels, carried);
    SmallVector<Value> sums = stepAt(inner, k, carried);
    for (int64_t s = 1; s < steps; ++s) {
      LLVM::FenceOp::create(emitter.builder, emitter.loc, LLVM::AtomicOrdering::seq_cst, "singlethread");
      sums = stepAt(inner, i.add(k, i.constant(s)), inOrder(sums));
    }
    return sums;
  });
}

/// With `unroll` steps at once, or a few in turn, and the rest one by one.
SmallVector<Value> TileEmission::innermost(const InnermostLoop &inner, ValueRange acc) {
  Value lower = operands.loops.back().lower, upper = upperBound(inner.rows);
  SmallVector<Value> result(acc);
  if (shape.unroll > 1 && !operands.splitB) {
    Value middle = endOfWhole(lower, upper, shape.unroll);
    result = stepsInSets(inner, lower, middle, result);
    lower = middle;
  }
  if (int64_t steps = stepsOfTurn(); steps > 1) {
    assert((shape.unroll & 1) == 0 || shape.unroll == 1); // groups that are added up follow an even one
    std::optional<int64_t> all = shape.unroll == 1 ? knownSteps() : std::nullopt;
    if (all && *all % steps == 0) // there are as many turns as that or, at rows of zeros, none
      return stepsInTurns(inner, lower, upper, steps, result);
    Value middle = endOfWhole(lower, upper, steps);
    result = stepsInTurns(inner, lower, middle, steps, result);
    lower = middle;
  }
  return emitter.createLoop(lower, upper, 1, result,
                            [&](Value k, ValueRange carried) { return stepAt(inner, k, carried); });
}

SmallVector<Value> TileEmission::nest(unsigned depth, SmallVector<Value> outer, Value panels, ValueRange fetched,
                                      ValueRange acc) {
  if (depth + 1 == operands.loops.size() && !operands.factorB)
    return innermost({operands.rowAddresses(outer), outer, panels, fetched}, acc);
  if (depth + 1 == operands.loops.size()) {
    SmallVector<Value> sums =
        innermost({operands.rowAddresses(outer), outer, panels, fetched}, zeros(setsBetweenLoops()));
    if (setsBetweenLoops() > 1)
      sums = sumOfSets(sums);
    SmallVector<Value> factors, next(acc);
    for (const TileVector &vector : vectors)
      factors.push_back(operands.factorB(vector.column, vector.lanes, outer));
    for (auto [index, sum] : llvm::enumerate(sums))
      next[index] = createMultiplyAdd(emitter, sum, factors[index % vectors.size()], next[index]);
    return next;
  }
  InvariantBuilder &i = emitter.invariants;
  const TileLoop &loop = operands.loops[depth];
  return emitter.createLoop(loop.lower, loop.upper, 1, acc, [&](Value k, ValueRange carried) {
    SmallVector<Value> inner(outer);
    inner.push_back(k);
    Value moved = emitter.getAddress(panels, operands.bElement, i.mul(k, loop.bStride));
    return nest(depth + 1, inner, moved, movedFetches(fetched, loop, k), carried);
  });
}

SmallVector<Value> cpu::emitRegisterTile(KernelEmitter &emitter, TileShape shape, const TileOperands &operands,
                                         ValueRange init) {
  Type element = operands.accumulator;
  int64_t lanes = std::min(panelWidth, emitter.level.lanesOf(element.getIntOrFloatBitWidth()));
  TileEmission emission{emitter, shape, operands, lanes, getTileVectors(shape.panels, shape.lastColumns, lanes)};
  SmallVector<Value> acc(init);
  if (acc.empty())
    acc = emission.zeros(1);
  if (emission.setsBetweenLoops() == 1 || operands.factorB)
    return emission.nest(0, {}, operands.panels, operands.fetched, acc);
  llvm::append_range(acc, emission.zeros(shape.unroll - 1));
  return emission.sumOfSets(emission.nest(0, {}, operands.panels, operands.fetched, acc));
}
