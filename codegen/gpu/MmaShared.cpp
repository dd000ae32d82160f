//===- MmaShared.cpp - tiles in shared memory for tensor cores ------------===//
#include "codegen/gpu/MmaShared.h"
#include "codegen/gpu/GpuInstructions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

//   Matrices     chunk ^ row % 8: eight rows lie in eight groups of banks
//   Words        chunk ^ 2 * (row % 4): eight neighbours are two chunks of each of four rows
//   PairedWords  chunk ^ 2 * (row / 2 % 4)
//   Strips       chunk ^ row % 2: eight neighbours have every other chunk of two rows
//   Turned...    chunk ^ (row ^ row / 4) % 8: neither eight neighbouring rows meet nor every fourth of 32
Value MmaRows::offsetOf(GpuEmitter &e, Value row, Value column) const {
  int64_t chunks = rowBytes / MmaTile::vectorBytes, vector = MmaTile::vectorBytes / elementBytes;
  auto mod = [&](Value value, int64_t by) { return e.invariants.mod(value, e.constant(by), true); };
  auto divide = [&](Value value, int64_t by) { return e.invariants.floorDiv(value, e.constant(by), true); };
  auto scale = [&](Value value, int64_t by) { return e.invariants.mul(value, e.constant(by)); };
  Value turn;
  if (reader == Reader::Matrices)
    turn = mod(divide(row, std::max<int64_t>(8 / chunks, 1)), std::min<int64_t>(8, chunks));
  else if (reader == Reader::Strips)
    turn = mod(row, 2);
  else if (reader == Reader::TurnedMatrices)
    turn = mod(e.invariants.get<arith::XOrIOp>(row, divide(row, 4)), 8);
  else
    turn = mod(scale(mod(reader == Reader::Words ? row : divide(row, 2), 4), 2), chunks);
  Value chunk = e.invariants.get<arith::XOrIOp>(divide(column, vector), turn);
  Value start = e.invariants.add(scale(row, rowBytes), scale(chunk, MmaTile::vectorBytes));
  return e.invariants.add(start, scale(mod(column, vector), elementBytes));
}

Value MmaRows::addressOf(GpuEmitter &e, Value base, Value row, Value column, int64_t more) const {
  Type byte = e.builder.getI8Type();
  return e.getAddress(e.getAddress(base, byte, offsetOf(e, row, column)), byte, e.constant(more));
}

// Four matrices are 16 rows, or twice 8 columns. Of lhs, rows change first from matrix to matrix; of rhs, k.
MmaFragments gpu::createMatrixFragments(GpuEmitter &e, const MmaRows &rows, MmaSide side, Value base, Value lane,
                                        Value free, int64_t more, int64_t k) {
  int64_t vector = MmaTile::vectorBytes / rows.elementBytes;
  Value inner = e.invariants.mod(lane, e.constant(8), true);
  auto half = [&](int64_t over, int64_t by) {
    Value digit = e.invariants.mod(e.invariants.floorDiv(lane, e.constant(over), true), e.constant(2), true);
    return e.invariants.mul(digit, e.constant(by));
  };
  Value ofFree = half(side.isRhs ? 16 : 8, 8), ofK = half(side.isRhs ? 8 : 16, side.isAlongK ? vector : 8);
  (side.isAlongK ? ofFree : ofK) = e.invariants.add(side.isAlongK ? ofFree : ofK, inner);
  Value row = e.invariants.add(free, ofFree), address;
  if (rows.reader == MmaRows::Reader::TurnedMatrices)
    address = rows.addressOf(e, base, e.invariants.add(row, e.constant(more)), e.invariants.add(ofK, e.constant(k)), 0);
  else if (side.isAlongK) // the turn repeats every eight rows
    address = rows.addressOf(e, base, row, e.invariants.add(ofK, e.constant(k)), more * rows.rowBytes);
  else
    address = rows.addressOf(e, base, ofK, e.invariants.add(row, e.constant(more)), k * rows.rowBytes);
  SmallVector<Value> four = createLoadMatrices(e, address, !side.isAlongK);
  if (!side.isRhs)
    return {four};
  return {{four[0], four[1]}, {four[2], four[3]}};
}

static SmallVector<Value> accumulate(GpuEmitter &e, MmaKind kind, const MmaFragments &a, const MmaFragments &b,
                                     SmallVector<Value> sums) {
  size_t at = 0;
  for (const SmallVector<Value> &row : a)
    for (const SmallVector<Value> &column : b) {
      SmallVector<Value> next = createMma(e, kind, row, column, ArrayRef(sums).slice(at, 4));
      llvm::copy(next, sums.begin() + at);
      at += 4;
    }
  return sums;
}

// x = high + low: high has 11 bits, rounded, so that errors have no direction; low the rest, of which the tensor cores
// take 11 bits, and at most the last one is lost. (`cvt.rna.tf32` is slower than the two instructions.) What is too
// large to be rounded becomes infinite, and its sums no numbers.
static std::pair<MmaFragments, MmaFragments> divide(GpuEmitter &e, const MmaFragments &from) {
  OpBuilder &b = e.builder;
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  Value mask = e.invariants.constant(b.getI32IntegerAttr(int32_t(0xffffe000)));
  Value half = e.invariants.constant(b.getI32IntegerAttr(0x1000));
  std::pair<MmaFragments, MmaFragments> parts;
  for (const SmallVector<Value> &fragment : from) {
    SmallVector<Value> &high = parts.first.emplace_back(), &low = parts.second.emplace_back();
    for (Value bits : fragment) {
      Value top = arith::AndIOp::create(b, e.loc, arith::AddIOp::create(b, e.loc, bits, half).getResult(), mask);
      Value x = arith::BitcastOp::create(b, e.loc, f32, bits), y = arith::BitcastOp::create(b, e.loc, f32, top);
      high.push_back(top);
      low.push_back(arith::BitcastOp::create(b, e.loc, i32, arith::SubFOp::create(b, e.loc, x, y).getResult()));
    }
  }
  return parts;
}

SmallVector<Value> gpu::createProducts(GpuEmitter &e, MmaKind kind, const MmaFragments &a, const MmaFragments &b,
                                       SmallVector<Value> sums) {
  if (kind != MmaKind::SplitF32)
    return accumulate(e, kind, a, b, std::move(sums));
  auto [aHigh, aLow] = divide(e, a);
  auto [bHigh, bLow] = divide(e, b);
  Value zero = e.invariants.constant(e.builder.getF32FloatAttr(0));
  SmallVector<Value> own(sums.size(), zero);
  own = accumulate(e, kind, aLow, bHigh, std::move(own));
  own = accumulate(e, kind, aHigh, bLow, std::move(own));
  own = accumulate(e, kind, aHigh, bHigh, std::move(own));
  for (auto [sum, more] : llvm::zip_equal(sums, own))
    sum = arith::AddFOp::create(e.builder, e.loc, sum, more);
  return sums;
}

SmallVector<Value> gpu::createScaledProducts(GpuEmitter &e, const MmaFragments &a, const MmaFragments &b,
                                             ValueRange factors, SmallVector<Value> sums) {
  auto [high, low] = divide(e, a);
  SmallVector<Value> own(sums.size(), e.invariants.constant(e.builder.getF32FloatAttr(0)));
  own = accumulate(e, MmaKind::SplitF32, low, b, std::move(own));
  own = accumulate(e, MmaKind::SplitF32, high, b, std::move(own));
  for (auto [i, sum] : llvm::enumerate(sums)) {
    size_t column = i / 4 % b.size() * 2 + i % 2;
    sum = math::FmaOp::create(e.builder, e.loc, own[i], factors[column], sum);
  }
  return sums;
}
