//===- MmaPacked.cpp - packed weights on tensor cores ---------------------===//
//
// A product of numbers of 2, 4 or 8 bits reads them as they are, so that neither memory nor shared memory has more than
// their bits; threads convert what their warp multiplies, in registers.
//
// The tensor cores want of a thread t of four certain k of each column, and the same k of lhs; which k these are is
// nobody's business but theirs, since a sum has no order. So each of the four has a quarter of the tile's depth that
// lies together, a strip: of lhs two chunks of 16 bytes, which are the operands of four instructions as they lie there,
// and of rhs 2 to 16 bytes of the column. No number is moved from thread to thread.
//
//   16-bit floats   numbers times factors, rounded to the operands' type as the region says
//   f16             the same two at a time, where numbers are small integers and factors f16: a number in the mantissa
//                   of 2^10 is worth 2^place, from where one exact multiply-add gets it
//   f32             as three products of tf32; or, where numbers are small integers and a tile's depth has one factor,
//                   as two: the integers are tf32 numbers, and the factor is the sums'
//
// Scales and zero points are read from memory, a step ahead.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/MmaPacked.h"
#include "codegen/gpu/GpuInstructions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using codegen::BodyEmitter;

// Numbers that have the same scale and zero point.
static int64_t countAlike(const ContractionDims &dims, const PackedRhs &rhs) {
  return *dims.domain[size_t(rhs.byte)].asConstant() * rhs.parts();
}

// The dims of k whose elements are bytes.
static SmallVector<int64_t> byteDims(const ContractionDims &dims, const PackedRhs &rhs) {
  return llvm::to_vector(llvm::seq(dims.firstK, dims.lastK() + (rhs.part < 0 ? 1 : 0)));
}

std::optional<PackedRhs> gpu::matchMmaPacked(loop::ContractionOp op, MmaKind kind) {
  std::optional<PackedRhs> rhs = multipliesBytes(kind) ? std::nullopt : matchPackedRhs(op);
  if (!rhs)
    return std::nullopt;
  ContractionDims dims(op);
  bool isLast = rhs->part < 0 ? rhs->byte == dims.lastK() : rhs->part == dims.lastK() && rhs->byte == rhs->part - 1;
  bool isNarrow = kind != MmaKind::SplitF32;
  int64_t strip = MmaTile{.kind = kind}.k() / 4;
  std::optional<int64_t> depth = product(op.getContext(), dims.k()).asConstant();
  bool readsMore = llvm::any_of(rhs->varying, [](Operation *each) { return isa<loop::LoadOp, loop::IndexOp>(each); });
  if (!isLast || readsMore || !depth || countAlike(dims, *rhs) % strip != 0 || isNarrow != bool(rhs->rounding) ||
      !isVectorAlong(dims, byteDims(dims, *rhs), {.load = rhs->load}, PackedRhs::wordBytes))
    return std::nullopt;
  return rhs;
}

MmaPackedRhs::MmaPackedRhs(MmaBlock &block, const MmaOperand &columns, int64_t offset)
    : block(block), e(block.e), columns(columns), rhs(*matchMmaPacked(block.op, block.tile.kind)), offset(offset) {
  constexpr int64_t most = MmaTile::vectorBytes;
  bool areVectors = block.tile.rhsDepthBytes() % most == 0 &&
                    isVectorAlong(block.dims, byteDims(block.dims, rhs), {.load = rhs.load}, most);
  together = areVectors ? most : PackedRhs::wordBytes;
  isScaledLate = block.tile.kind == MmaKind::SplitF32 && rhs.isInteger && rhs.factor && !rhs.roundedTo() &&
                 countAlike(block.dims, rhs) % block.tile.k() == 0;
  isPaired =
      block.tile.kind == MmaKind::F16 && rhs.isInteger && (!rhs.factor || beforeWidening(rhs.factor).getType().isF16());
  inFour = e.invariants.mod(block.lane, e.constant(4), true);
  auto need = [&](Value value) {
    Operation *from = value.getDefiningOp();
    if (llvm::is_contained(rhs.shared, from) && !isa<arith::ConstantOp>(from) && !llvm::is_contained(shared, value))
      shared.push_back(value);
  };
  for (Operation *each : rhs.varying)
    for (Value operand : each->getOperands())
      need(operand);
  if (rhs.factor && !isScaledLate)
    need(rhs.factor);
}

Value MmaPackedRhs::columnOf(int64_t group) const {
  Value inEight = e.invariants.floorDiv(block.lane, e.constant(4), true);
  return e.invariants.add(e.invariants.add(block.warpColumn, inEight), e.constant(8 * group));
}

//===----------------------------------------------------------------------===//
// Into shared memory
//===----------------------------------------------------------------------===//

void MmaPackedRhs::copy(Value step, Value stage) const {
  const MmaTile &tile = block.tile;
  int64_t perColumn = tile.rhsDepthBytes() / together, count = tile.n * perColumn;
  loop::LoadOp load = rhs.load;
  auto less = [&](Value a, Value b) { return e.invariants.compare(arith::CmpIPredicate::slt, a, b); };
  for (int64_t first = 0; first < count; first += tile.threads()) {
    Value number = e.invariants.add(block.thread, e.constant(first));
    Value column = e.invariants.floorDiv(number, e.constant(perColumn), true);
    Value byte = e.invariants.mul(e.invariants.mod(number, e.constant(perColumn), true), e.constant(together));
    Value k = e.invariants.mul(byte, e.constant(rhs.parts())), exists;
    if (!isWhole())
      exists = less(e.invariants.add(e.invariants.mul(step, e.constant(tile.k())), k), block.kCount);
    EmissionPoint at = block.point;
    Value last = e.invariants.sub(columns.getCount(), e.constant(1));
    columns.setFree(at, e.invariants.min(e.invariants.add(columns.getFirst(), column), last));
    columns.setDepth(at, step, k);
    Value index = e.emitExpr(Expr(cast<ExprAttr>(load.getIndices()[0])), at);
    Value from = e.getAddress(e.getPointer(load.getBuffer()), load.getType(), index);
    Value place = e.invariants.add(e.invariants.mul(column, e.constant(tile.rhsDepthBytes())), byte);
    Value to = e.getAddress(stage, e.builder.getI8Type(), e.invariants.add(place, e.constant(offset)));
    auto begin = [&] {
      createCopyAsync(e, to, from, together, exists);
      return SmallVector<Value>();
    };
    if (first + tile.threads() <= count)
      begin();
    else
      e.createIf(less(number, e.constant(count)), {}, begin);
  }
}

//===----------------------------------------------------------------------===//
// Beside the numbers
//===----------------------------------------------------------------------===//

/// The region at a column of the tile and a k of the step, up to what numbers share. What does not exist is the last.
BodyEmitter MmaPackedRhs::bodyAt(Value column, Value step, Value k) const {
  EmissionPoint at = block.point;
  Value last = e.invariants.sub(columns.getCount(), e.constant(1));
  columns.setFree(at, e.invariants.min(e.invariants.add(columns.getFirst(), column), last));
  columns.setDepth(at, step, k);
  if (!isWhole()) {
    Value depth = e.invariants.add(e.invariants.mul(step, e.constant(block.tile.k())), k);
    depth = e.invariants.min(depth, e.invariants.sub(block.kCount, e.constant(stripNumbers())));
    llvm::copy(e.createDigits(depth, block.kSizes), at.dims.begin() + block.dims.firstK);
  }
  BodyEmitter body(e, at);
  body.emitOps(rhs.shared);
  return body;
}

SmallVector<Value> MmaPackedRhs::request(Value step) const {
  Values values;
  Value strip = e.invariants.mul(inFour, e.constant(stripNumbers()));
  for (int64_t group = 0; group < groups(); ++group) {
    if (!shared.empty()) {
      BodyEmitter body = bodyAt(columnOf(group), step, strip);
      for (Value value : shared)
        values.push_back(body.lookup(value));
    }
    for (int64_t i = 0; isScaledLate && i < 2; ++i) { // of the columns that the thread has sums of
      Value pair = e.invariants.add(e.invariants.mul(inFour, e.constant(2)), e.constant(8 * group + i));
      BodyEmitter body = bodyAt(e.invariants.add(block.warpColumn, pair), step, e.constant(0));
      values.push_back(body.lookup(rhs.factor));
    }
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The thread's strip of a column: words.
SmallVector<Value> MmaPackedRhs::readStrip(Value stage, int64_t group) const {
  OpBuilder &b = e.builder;
  int64_t bytes = block.tile.rhsDepthBytes() / 4, words = std::max<int64_t>(bytes / 4, 1);
  Value place = e.invariants.mul(columnOf(group), e.constant(block.tile.rhsDepthBytes()));
  place = e.invariants.add(place, e.invariants.mul(inFour, e.constant(bytes)));
  Value address = e.getAddress(stage, b.getI8Type(), e.invariants.add(place, e.constant(offset)));
  if (bytes < 4) {
    Value half = LLVM::LoadOp::create(b, e.loc, b.getIntegerType(unsigned(bytes * 8)), address, unsigned(bytes));
    return {arith::ExtUIOp::create(b, e.loc, b.getI32Type(), half)};
  }
  Value all = LLVM::LoadOp::create(b, e.loc, VectorType::get({words}, b.getI32Type()), address, unsigned(bytes));
  Values strip;
  for (int64_t word = 0; word < words; ++word)
    strip.push_back(LLVM::ExtractElementOp::create(b, e.loc, all, e.constant(word)));
  return strip;
}

/// Two neighbours of a strip as f16.
Value MmaPackedRhs::convertPair(const Values &strip, int64_t number, const BodyEmitter &body) const {
  constexpr int64_t wordBits = 32;
  constexpr uint32_t exponents = 0x64646464; // of 2^10, whose mantissa has the number
  OpBuilder &b = e.builder;
  Type half = b.getF16Type();
  auto type = VectorType::get({2}, half);
  auto i32 = [&](uint32_t value) { return e.invariants.constant(b.getI32IntegerAttr(int32_t(value))); };
  auto constants = [&](double first, double second) -> Value {
    auto number = [&](double value) { return Attribute(b.getFloatAttr(half, value)); };
    return arith::ConstantOp::create(b, e.loc, DenseElementsAttr::get(type, {number(first), number(second)}));
  };
  auto both = [&](Value value) -> Value {
    Value narrow = arith::TruncFOp::create(b, e.loc, half, value), pair = LLVM::PoisonOp::create(b, e.loc, type);
    for (int64_t i : {0, 1})
      pair = LLVM::InsertElementOp::create(b, e.loc, pair, narrow, e.constant(i));
    return pair;
  };
  Value word = strip[size_t(number * rhs.bits / wordBits)];
  int64_t subtracted = rhs.subtracted;
  if (rhs.isSigned) { // from -128 on
    word = arith::XOrIOp::create(b, e.loc, word, i32(0x80808080));
    subtracted += 128;
  }
  int64_t first = number * rhs.bits % wordBits, second = first + rhs.bits, bytes[] = {first / 8, second / 8};
  int64_t places[] = {first % 8, second % 8};
  uint32_t mask = (1u << rhs.bits) - 1;
  Value bits = createBytes(e, word, i32(exponents), bytes[0] | 4 << 4 | bytes[1] << 8 | 4 << 12);
  if (rhs.bits < 8)
    bits = arith::AndIOp::create(b, e.loc, bits, i32(0xff00ff00 | mask << places[0] | mask << (16 + places[1])));
  auto worth = [&](int64_t i) { return std::ldexp(1.0, int(-places[i])); };
  auto offset = [&](int64_t i) { return -(1024 * worth(i) + double(subtracted)); };
  Value offsets = constants(offset(0), offset(1));
  if (rhs.zero)
    offsets = arith::SubFOp::create(b, e.loc, offsets, both(body.lookup(rhs.zero)));
  Value numbers = math::FmaOp::create(b, e.loc, LLVM::BitcastOp::create(b, e.loc, type, bits).getResult(),
                                      constants(worth(0), worth(1)), offsets);
  if (rhs.factor)
    numbers = arith::MulFOp::create(b, e.loc, numbers, both(body.lookup(rhs.factor)));
  return LLVM::BitcastOp::create(b, e.loc, b.getI32Type(), numbers);
}

/// The numbers of a part of the step, as the tensor cores take them; behind the end of k zeros.
MmaFragments MmaPackedRhs::convert(ArrayRef<Values> strips, Value step, int64_t part, ValueRange requested) const {
  constexpr int64_t wordBits = 32, parts = 4;
  OpBuilder &b = e.builder;
  bool isNarrow = block.tile.kind != MmaKind::SplitF32;
  Value exists;
  if (!isWhole()) {
    Value k = e.invariants.add(e.invariants.mul(step, e.constant(block.tile.k())),
                               e.invariants.mul(inFour, e.constant(stripNumbers())));
    exists = e.invariants.compare(arith::CmpIPredicate::slt, k, block.kCount);
  }
  MmaFragments fragments;
  for (auto [group, strip] : llvm::enumerate(strips)) {
    BodyEmitter body(e, block.point);
    for (Operation *each : rhs.shared)
      if (isa<arith::ConstantOp>(each))
        body.emitOp(each);
    body.bind(shared, requested.slice(group * requestedOfGroup(), shared.size()));
    Values numbers;
    SmallVector<Value> &registers = fragments.emplace_back();
    int64_t count = stripNumbers() / parts;
    for (int64_t i = 0; isPaired && i < count; i += 2)
      registers.push_back(convertPair(strip, part * count + i, body));
    for (int64_t i = 0; !isPaired && i < count; ++i) {
      int64_t bit = (part * count + i) * rhs.bits;
      Value real = createReal(e, rhs, strip[size_t(bit / wordBits)], bit % wordBits);
      numbers.push_back(createElement(e, rhs, body, real, /*isFinal=*/!isScaledLate));
    }
    for (size_t i = 0; i < numbers.size(); i += isNarrow ? 2 : 1)
      registers.push_back(isNarrow ? createPair(e, block.tile.kind, numbers[i], numbers[i + 1])
                                   : arith::BitcastOp::create(b, e.loc, b.getI32Type(), numbers[i]).getResult());
    for (Value &bits : registers)
      if (exists)
        bits = arith::SelectOp::create(b, e.loc, exists, bits, e.invariants.constant(b.getI32IntegerAttr(0)));
  }
  return fragments;
}

SmallVector<Value> MmaPackedRhs::multiply(const MmaOperand &lhs, Value step, Value stage, ValueRange requested,
                                          SmallVector<Value> sums) const {
  SmallVector<Values> strips;
  Values factors;
  for (int64_t group = 0; group < groups(); ++group) {
    strips.push_back(readStrip(stage, group));
    if (isScaledLate)
      llvm::append_range(factors, requested.slice(size_t(group) * requestedOfGroup() + shared.size(), 2));
  }
  for (int64_t half : {0, 1})
    for (auto [inHalf, left] : llvm::enumerate(lhs.readStrips(stage, half))) {
      MmaFragments right = convert(strips, step, 2 * half + int64_t(inHalf), requested);
      sums = isScaledLate ? createScaledProducts(e, left, right, factors, std::move(sums))
                          : createProducts(e, block.tile.kind, left, right, std::move(sums));
    }
  return sums;
}
