//===- MmaOperand.cpp - an operand's tiles in shared memory ---------------===//
//
// A tile is stored as memory has it: rows of 128 bytes along k, or a row of `size` elements for each k (MmaShared.h).
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/MmaOperand.h"
#include "codegen/gpu/GpuInstructions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

// Beside packed numbers lhs lies along k, whatever that takes.
static MmaSource sourceOf(const MmaBlock &block, bool isRhs) {
  MmaSource source = analyzeSource(block.op, block.dims, isRhs, block.tile.kind);
  if (block.tile.rhsBits && !source.isAlongK) {
    source.isAlongK = true;
    if (source.copy == MmaSource::Copy::Vectors)
      source.copy = block.tile.elementBytes() == 4 ? MmaSource::Copy::Words : MmaSource::Copy::Values;
  }
  return source;
}

static MmaRows::Reader readerOf(const MmaBlock &block, const MmaSource &source) {
  if (block.tile.rhsBits)
    return MmaRows::Reader::Strips;
  if (block.tile.elementBytes() == 1 && source.copy > MmaSource::Copy::Words)
    return MmaRows::Reader::TurnedMatrices;
  bool areWords = !source.isAlongK && block.tile.kind == MmaKind::SplitF32;
  return areWords ? MmaRows::Reader::Words : MmaRows::Reader::Matrices;
}

MmaOperand::MmaOperand(MmaBlock &block, bool isRhs, Value number, int64_t offset)
    : block(block), e(block.e), isRhs(isRhs), region(isRhs ? block.op.getRhs() : block.op.getLhs()),
      source(sourceOf(block, isRhs)), size(isRhs ? block.tile.n : block.tile.m),
      rows{.rowBytes = source.isAlongK ? MmaTile::depthBytes : size * block.tile.elementBytes(),
           .elementBytes = block.tile.elementBytes(),
           .reader = readerOf(block, source)},
      firstDim(isRhs ? block.dims.firstN : block.dims.firstM), offset(offset),
      warpFirst(isRhs ? block.warpColumn : block.warpRow) {
  ArrayRef<Expr> extents = isRhs ? block.dims.n() : block.dims.m();
  first = e.invariants.mul(number, e.constant(size));
  count = e.emitExpr(product(block.op.getContext(), extents), {});
  for (Expr extent : extents)
    freeSizes.push_back(e.emitExpr(extent, {}));
}

//===----------------------------------------------------------------------===//
// Into shared memory
//===----------------------------------------------------------------------===//

void MmaOperand::setFree(EmissionPoint &point, Value position) const {
  llvm::copy(e.createDigits(position, freeSizes), point.dims.begin() + firstDim);
}

void MmaOperand::setDepth(EmissionPoint &point, Value step, Value k) const {
  Value base = e.invariants.mul(step, e.constant(block.tile.k()));
  SmallVector<Value> digits;
  if (block.isWholeInner) { // all threads divide the same number
    digits = e.createDigits(base, block.kSizes);
    if (!digits.empty())
      digits.back() = e.invariants.add(digits.back(), k);
  } else {
    digits = e.createDigits(e.invariants.add(base, k), block.kSizes);
  }
  llvm::copy(digits, point.dims.begin() + block.dims.firstK);
}

/// Where the thread's element (or chunk of elements that lie together) `number` is.
MmaOperand::Place MmaOperand::placeOf(int64_t number, int64_t together) const {
  int64_t inner = (source.isAlongK ? block.tile.k() : size) / together;
  Value index = e.invariants.add(block.thread, e.constant(number * block.tile.threads()));
  Value low = e.invariants.mul(e.invariants.mod(index, e.constant(inner), true), e.constant(together));
  Value high = e.invariants.floorDiv(index, e.constant(inner), true);
  return source.isAlongK ? Place{high, low} : Place{low, high};
}

/// Rows and columns that do not exist repeat the last ones.
EmissionPoint MmaOperand::pointAt(const Place &place, Value step, int64_t together) const {
  EmissionPoint at = block.point;
  Value last = e.invariants.sub(count, e.constant(source.isAlongK ? 1 : together));
  setFree(at, e.invariants.min(e.invariants.add(first, place.free), last));
  setDepth(at, step, place.k);
  return at;
}

/// Whether the element's k is one; null: always.
Value MmaOperand::existsAt(const Place &place, Value step) const {
  if (block.isWholeK)
    return {};
  Value depth = e.invariants.add(e.invariants.mul(step, e.constant(block.tile.k())), place.k);
  return e.invariants.compare(arith::CmpIPredicate::slt, depth, block.kCount);
}

Value MmaOperand::addressOf(Value stage, Value free, Value k, int64_t more) const {
  Value row = source.isAlongK ? free : k, column = source.isAlongK ? k : free;
  return rows.addressOf(e, stage, row, column, offset + more);
}

/// Whether the mask holds at the point; null: always.
Value MmaOperand::isInside(const EmissionPoint &at) const {
  Value inside;
  loop::MaskedOp mask = source.mask;
  if (mask)
    for (Attribute condition : mask.getConditions()) {
      Value value = e.emitExpr(Expr(cast<ExprAttr>(condition)), at);
      Value holds = e.invariants.compare(arith::CmpIPredicate::sge, value, e.constant(0));
      inside = inside ? e.invariants.logicalAnd(inside, holds) : holds;
    }
  return inside;
}

/// Behind the end of k there are zeros, whatever padding is.
void MmaOperand::copy(Value step, Value stage) const {
  auto both = [&](Value a, Value b) { return a && b ? e.invariants.logicalAnd(a, b) : a ? a : b; };
  loop::LoadOp load = source.load;
  for (int64_t number = 0; number < perThread(); ++number) {
    Place place = placeOf(number, together());
    EmissionPoint at = pointAt(place, step, together());
    Value inK = existsAt(place, step), exists = inK;
    if (isFew()) // all blocks would read the last ones
      exists =
          both(exists, e.invariants.compare(arith::CmpIPredicate::slt, e.invariants.add(first, place.free), count));
    Value inside = isInside(at);
    if (source.padding == 0)
      exists = both(exists, inside);
    Value index = e.emitExpr(Expr(cast<ExprAttr>(load.getIndices()[0])), at);
    Value from = e.getAddress(e.getPointer(load.getBuffer()), load.getType(), index);
    Value to = addressOf(stage, place.free, place.k);
    int64_t bytes = together() * block.tile.elementBytes();
    if (source.padding == 0 || !inside) {
      createCopyAsync(e, to, from, bytes, exists);
      continue;
    }
    Value yes = e.invariants.constant(e.builder.getBoolAttr(true));
    Value isCopied = inK ? e.invariants.select(inK, inside, yes) : inside;
    auto choice = scf::IfOp::create(e.builder, e.loc, isCopied, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(e.builder);
    e.builder.setInsertionPointToStart(choice.thenBlock());
    createCopyAsync(e, to, from, bytes, exists);
    e.builder.setInsertionPointToStart(choice.elseBlock());
    fill(to, bytes);
  }
}

/// Stores padding, which is no zero that copies could leave.
void MmaOperand::fill(Value address, int64_t bytes) const {
  OpBuilder &b = e.builder;
  APInt word = APInt::getSplat(32, APInt(8, uint64_t(source.padding), /*isSigned=*/true, /*implicitTrunc=*/true));
  auto type = VectorType::get({bytes / 4}, b.getI32Type());
  Value words = LLVM::ConstantOp::create(b, e.loc, type, DenseElementsAttr::get(type, word));
  LLVM::StoreOp::create(b, e.loc, words, address, unsigned(bytes));
}

/// To the type that is multiplied; exact.
Value MmaOperand::convert(Value value) const {
  OpBuilder &b = e.builder;
  Type target = block.tile.kind == MmaKind::F16    ? Type(b.getF16Type())
                : block.tile.kind == MmaKind::BF16 ? Type(b.getBF16Type())
                                                   : Type(b.getF32Type());
  if (value.getType() == target)
    return value;
  if (target.isF32())
    return arith::ExtFOp::create(b, e.loc, target, value);
  return arith::TruncFOp::create(b, e.loc, target, value);
}

SmallVector<Value> MmaOperand::compute(Value step) const {
  SmallVector<Value> values;
  if (isBytes())
    return computeWords(step);
  Type type = cast<loop::YieldOp>(region.front().getTerminator()).getValue().getType();
  Value zero = e.invariants.constant(cast<TypedAttr>(e.builder.getZeroAttr(type)));
  for (int64_t number = 0; number < perThread(); ++number) {
    Place place = placeOf(number, 1);
    EmissionPoint at = pointAt(place, step, 1);
    auto element = [&] { return SmallVector<Value>{e.emitRegion(region, at)}; };
    Value exists = existsAt(place, step);
    Value value = exists ? e.createIf(exists, {zero}, element)[0] : element()[0];
    values.push_back(convert(value));
  }
  return values;
}

void MmaOperand::store(ValueRange values, Value stage) const {
  for (auto [number, value] : llvm::enumerate(values)) {
    Place place = isBytes() ? placeOfWord(int64_t(number)) : placeOf(int64_t(number), 1);
    e.createStore(value, addressOf(stage, place.free, place.k));
  }
}

//===----------------------------------------------------------------------===//
// Bytes that do not lie along k
//===----------------------------------------------------------------------===//

/// Where the thread's word `number` is. Eight threads have neighbours along the free dims, four have them along k:
/// reads are sectors, and writes meet in no bank. Where single bytes are read, neighbours are those in memory.
MmaOperand::Place MmaOperand::placeOfWord(int64_t number) const {
  constexpr int64_t wordBytes = 4, words = MmaTile::depthBytes / wordBytes;
  int64_t wide = isTurned() ? wordBytes : 1, across = size / wide;
  Value index = e.invariants.add(block.thread, e.constant(number / wide * block.tile.threads()));
  auto take = [&](int64_t count) {
    Value digit = e.invariants.mod(index, e.constant(count), true);
    index = e.invariants.floorDiv(index, e.constant(count), true);
    return digit;
  };
  auto scale = [&](Value value, int64_t by) { return e.invariants.mul(value, e.constant(by)); };
  if (!isTurned() && source.isReadAlongK) {
    Value k = scale(take(words), wordBytes);
    return {index, k};
  }
  int64_t near = isTurned() ? std::min<int64_t>(across, 8) : across, deep = isTurned() ? 4 : words;
  Value free = take(near), k = take(deep);
  free = e.invariants.add(free, scale(take(across / near), near));
  k = e.invariants.add(k, scale(index, deep));
  return {e.invariants.add(scale(free, wide), e.constant(number % wide)), scale(k, wordBytes)};
}

/// What does not exist repeats the last; `exists`: whether its k does (null: for certain).
EmissionPoint MmaOperand::pointOfByte(const Place &place, Value step, Value *exists) const {
  EmissionPoint at = pointAt(place, step, 1);
  *exists = existsAt(place, step);
  if (*exists) {
    Value depth = e.invariants.add(e.invariants.mul(step, e.constant(block.tile.k())), place.k);
    depth = e.invariants.min(depth, e.invariants.sub(block.kCount, e.constant(1)));
    llvm::copy(e.createDigits(depth, block.kSizes), at.dims.begin() + block.dims.firstK);
  }
  return at;
}

/// Four neighbours along the free dims of each of four k, turned: four along k of each of four neighbours.
SmallVector<Value> MmaOperand::loadWords(const Place &place, Value step) const {
  OpBuilder &b = e.builder;
  loop::LoadOp load = source.load;
  Value zero = e.invariants.constant(b.getI32IntegerAttr(0)), last = e.invariants.sub(count, e.constant(4));
  SmallVector<Value> rows;
  for (int64_t deeper = 0; deeper < 4; ++deeper) {
    Value exists;
    EmissionPoint at = pointOfByte({place.free, e.invariants.add(place.k, e.constant(deeper))}, step, &exists);
    setFree(at, e.invariants.min(e.invariants.add(first, place.free), last));
    Value index = e.emitExpr(Expr(cast<ExprAttr>(load.getIndices()[0])), at);
    Value address = e.getAddress(e.getPointer(load.getBuffer()), load.getType(), index);
    Value word = LLVM::LoadOp::create(b, e.loc, b.getI32Type(), address, 4);
    rows.push_back(exists ? arith::SelectOp::create(b, e.loc, exists, word, zero).getResult() : word);
  }
  SmallVector<Value> words;
  for (int64_t pair : {0x5140, 0x7362}) { // of two rows: bytes 0 and 1, or 2 and 3, of both
    Value low = createBytes(e, rows[0], rows[1], pair), high = createBytes(e, rows[2], rows[3], pair);
    for (int64_t halves : {0x5410, 0x7632})
      words.push_back(createBytes(e, low, high, halves));
  }
  return words;
}

/// Four bytes along k, as the region says.
Value MmaOperand::computeWord(const Place &place, Value step) const {
  OpBuilder &b = e.builder;
  Value word, zero = e.invariants.constant(b.getI32IntegerAttr(0));
  for (int64_t byte = 0; byte < 4; ++byte) {
    Value exists;
    EmissionPoint at = pointOfByte({place.free, e.invariants.add(place.k, e.constant(byte))}, step, &exists);
    Value value = e.emitRegion(region, at);
    if (exists)
      value = arith::SelectOp::create(b, e.loc, exists, value, zero);
    int64_t digit = 4 * byte, kept = 0x3210 & ~(0xf << digit);
    word = word ? createBytes(e, word, value, kept | 4 << digit) : value;
  }
  return word;
}

SmallVector<Value> MmaOperand::computeWords(Value step) const {
  SmallVector<Value> words;
  for (int64_t number = 0; number < wordsPerThread(); number += isTurned() ? 4 : 1) {
    if (isTurned())
      llvm::append_range(words, loadWords(placeOfWord(number), step));
    else
      words.push_back(computeWord(placeOfWord(number), step));
  }
  return words;
}

//===----------------------------------------------------------------------===//
// Out of shared memory
//===----------------------------------------------------------------------===//

MmaFragments MmaOperand::readFragments(Value stage, int64_t part) const {
  int64_t extent = isRhs ? block.tile.warpN() : block.tile.warpM(), depth = 2 * block.tile.vector();
  if (rows.reader == MmaRows::Reader::Words)
    return readWords(stage, part);
  Value base = e.getAddress(stage, e.builder.getI8Type(), e.constant(offset));
  MmaFragments fragments;
  for (int64_t at = 0; at < extent; at += 16)
    fragments.append(
        createMatrixFragments(e, rows, {isRhs, source.isAlongK}, base, block.lane, warpFirst, at, part * depth));
  return fragments;
}

MmaFragments MmaOperand::readWords(Value stage, int64_t part) const {
  Value group = e.invariants.floorDiv(block.lane, e.constant(4), true);
  Value k = e.invariants.mod(block.lane, e.constant(4), true);
  MmaFragments fragments;
  int64_t extent = isRhs ? block.tile.warpN() : block.tile.warpM(), together = isRhs ? 8 : 16;
  for (int64_t at = 0; at < extent; at += together) {
    SmallVector<Value> &registers = fragments.emplace_back();
    for (int64_t deeper : {0, 4})
      for (int64_t below = 0; below < together; below += 8) {
        Value free = e.invariants.add(e.invariants.add(warpFirst, group), e.constant(at + below));
        Value address = addressOf(stage, free, k, (part * 8 + deeper) * rows.rowBytes);
        registers.push_back(LLVM::LoadOp::create(e.builder, e.loc, e.builder.getI32Type(), address, 4));
      }
  }
  return fragments;
}

std::array<MmaFragments, 2> MmaOperand::readStrips(Value stage, int64_t half) const {
  OpBuilder &b = e.builder;
  Value group = e.invariants.floorDiv(block.lane, e.constant(4), true);
  Value strip = e.invariants.mul(e.invariants.mod(block.lane, e.constant(4), true), e.constant(block.tile.k() / 4));
  Value k = e.invariants.add(strip, e.constant(half * block.tile.vector()));
  std::array<MmaFragments, 2> parts;
  for (int64_t at = 0; at < block.tile.warpM(); at += 16) {
    Value chunks[2];
    for (int64_t below : {0, 1}) {
      Value free = e.invariants.add(e.invariants.add(warpFirst, group), e.constant(at + 8 * below));
      chunks[below] =
          LLVM::LoadOp::create(b, e.loc, VectorType::get({4}, b.getI32Type()), addressOf(stage, free, k), 16);
    }
    for (int64_t part : {0, 1}) {
      SmallVector<Value> &registers = parts[size_t(part)].emplace_back();
      for (int64_t number : {2 * part, 2 * part + 1})
        for (Value chunk : chunks)
          registers.push_back(LLVM::ExtractElementOp::create(b, e.loc, chunk, e.constant(number)));
    }
  }
  return parts;
}
