//===- CpuContractionFixedPoint.cpp - rows as bytes by weights of few bits ===//
//
// Problem. A row by a weight of 4 bits is bound by instructions, not by memory: 16 products take a shift, a look-up and
// a multiply-add, 64 of them 12 instructions.
//
// Idea. Numbers of few bits are bytes after a shift and a mask for 64 of them, and an instruction multiplies 64 bytes
// and adds them up. So the other operand, a row, becomes bytes, too, and keeps its precision: in each block of the
// innermost loop over k, along which the scale of the weight is the same,
//
//   a = q 2^(E-30),  |q| <= 2^30,     2^(E-1) <= the largest |a| of the block < 2^E
//   q = q0 + 2^8 q1 + 2^16 q2 + 2^24 q3,      digits in [-128, 127]
//
// The products of each digit are added up exactly in 32 bits, and the four sums of a block become a float at its end:
// 64 weights take four products, a mask and half of a shift, a block of 32 terms a dozen instructions for 16 columns.
//
// Accuracy. Numbers down to a 64th of the block's largest have all of their 24 bits in q, so their products are exact;
// others are off by at most 2^-31 of the power of two above the largest: no more than a rounding of its product, where
// its weight is not zero. Infinity and NaN make NaN of all that the row is multiplied by. `--fp=strict` leaves all this
// alone.
//
// Offset. The weight's value is u - c + R, u the number in its word, c = 2^(bits-1) and R the same all along the
// block (0 for most): the sums of digits start at -c times the sum of the row's digits, and R times the sum of q is
// added to the float.
//
// Layout. A row's block is a record of 32-bit words: where the four sums start, 2^(E-30), the sum of q, and the digits.
// A word of the weight holds numbers k, k+1, ... in ascending bits; a shift and a mask leave every (8/bits)-th of them,
// a byte each. For each word and shift the record has the same terms of each digit, four bytes:
//
//   [word][shift][digit][k / (8/bits) % 4]
//
// which are a transposition of the bytes of q. The copy is made once for a task's rows; its products are those of the
// tile's panels, some at a time, as registers have room for four sums of each vector.
//
// Rows of 8 bits. Where the model permits them (prim::byteRowsAttr) a number has one digit: q = a / s to the nearest
// integer, |q| <= 127, s the largest |a| of the block by 127. All else stays, but that any number of rows is worth it:
// a tile's rows share what is taken out of words. Without an instruction that adds up four products of bytes there is
// one for pairs, whose sums 16 bits hold for `mostWords` words: two products are at most 2 * 15 * 127.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionFixedPoint.h"
#include "codegen/cpu/CpuContractionConvert.h"
#include "codegen/cpu/CpuContractionEmission.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <numeric>

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t longestInFixedPoint = 256; // terms of a block, whose sums 32 bits hold two digits at a time of
static constexpr int64_t mostWords = 4;             // of a weight in one step

namespace {

/// How weights of few bits are multiplied by bytes: four terms at once, by one instruction on an unsigned and a signed
/// byte, on signed ones, or on pairs that are added up in 16 bits.
enum class ByteProducts { None, Dots, SignedDots, Pairs };

/// A block of a row: words before the digits, of which those of the sums' starts are the first; all of them.
struct Record {
  explicit Record(const ContractionForm &form)
      : digits(form.permitsByteRows() ? 1 : 4), terms(form.kLoops.back().extent.getValue() * form.group) {}
  int64_t digits, terms;
  int64_t scaleWord = digits, sumWord = digits + 1, headWords = digits == 1 ? 4 : 8;
  int64_t words = terms / 4 * digits + headWords;
};

} // namespace

//===----------------------------------------------------------------------===//
// Which products
//===----------------------------------------------------------------------===//

bool cpu::suitsFixedPoint(const ContractionForm &form) {
  if ((form.bits != 2 && form.bits != 4) || form.rhs.form != RhsForm::Panels || !form.accumulator.isF32() ||
      form.kLoops.size() < 2 || form.kLoops.back().dim < 0 || !form.k.isConstant() || form.taps.step)
    return false;
  bool hasRows = form.lhs.form == LhsForm::InPlace || form.lhs.form == LhsForm::PackedRows;
  const KLoop &inner = form.kLoops.back();
  if (!hasRows || !inner.bStride.isConstant(1) || !inner.aStride.isConstant(form.group) || !inner.extent.isConstant() ||
      Record(form).terms > longestInFixedPoint)
    return false;
  return form.permitsByteRows() || form.m.asConstant().value_or(mostInFixedPoint) <= mostInFixedPoint;
}

Expr cpu::wordsOfFixedPoint(const ContractionForm &form) {
  Record record(form);
  return form.k.floorDiv(record.terms) * record.words;
}

/// One digit is worth it without four products in one instruction, too.
static ByteProducts chooseByteProducts(const ContractionEmission &c) {
  const CpuLevel &level = c.e.level;
  if (!level.byteDotOf(c.lanes * 32).empty())
    return ByteProducts::Dots;
  if (!c.f.permitsByteRows())
    return ByteProducts::None;
  if (!level.signedByteDotOf(c.lanes * 32).empty())
    return ByteProducts::SignedDots;
  return level.bytePairsOf(c.lanes * 32).empty() ? ByteProducts::None : ByteProducts::Pairs;
}

FixedPoint ContractionEmission::chooseFixedPoint() {
  bool readsNumbers = f.conversion.numbers != WeightConversion::Numbers::Other;
  if (!f.fixedPoint.at || !readsNumbers || chooseByteProducts(*this) == ByteProducts::None)
    return FixedPoint::None;
  return i.asConstant(m) || f.permitsByteRows() ? FixedPoint::All : FixedPoint::FewRows;
}

/// A step takes words apart for all rows of the tile, whose sums fill half of the registers
/// (FixedPointEmission::multiply).
TileSplit cpu::chooseTileOfBytes(const ContractionForm &form, const CpuLevel &level, const TiledExtents &extents) {
  bool isFew = extents.m >= 1 && extents.m <= mostInFixedPoint;
  int64_t height = level.vectorRegisters > 16 ? 6 : 4, width = isFew ? 4 : 2;
  if (extents.m >= 1)
    height = std::min(height, extents.m);
  int64_t ofBlock = std::max<int64_t>(extents.panels / form.blocks.n.asConstant().value_or(1), 1);
  width = std::min(width, ofBlock);
  if (form.behind.panelUnit > 1 && form.behind.panelUnit % width)
    width = 1;
  return {.height = height, .width = width};
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

namespace {

/// The records of a row being written. Vectors are of a word's terms.
struct RecordWriter {
  ContractionEmission &c;
  KernelEmitter &e = c.e;
  InvariantBuilder &i = c.i;
  Record form{c.f};
  Type word = e.builder.getI32Type(), number = e.builder.getF32Type();
  int64_t terms = form.terms, group = c.f.group, center = int64_t(1) << (c.f.bits - 1);
  VectorType words = VectorType::get(group, word), numbers = VectorType::get(group, number);

  Value splat(uint32_t bits) const {
    return i.constant(cast<TypedAttr>(DenseElementsAttr::get(words, APInt(32, bits))));
  }
  Value scalar(uint32_t bits) const { return i.constant(e.builder.getI32IntegerAttr(int32_t(bits))); }
  Value largest(Value from) const;
  Value digitsOf(Value numbers) const;
  Value sumOfDigits(Value dots, int64_t digit) const;
  void writeHead(Value record, Value dots, Value scale) const;
  void writeDigits(Value from, Value record) const;
  Value bytesOf(Value wholes) const;
  void writeBytes(Value from, Value record) const;
  void write(Value from, Value record) const {
    form.digits == 1 ? writeBytes(from, record) : writeDigits(from, record);
  }
};

/// The products of some of a tile's columns: of each row, these vectors.
struct FixedPointTile {
  ContractionEmission &c;
  const ContractionTask &task;
  const ContractionTile &tile;
  ArrayRef<TileVector> vectors;
  int64_t fetchedAhead;
  KernelEmitter &e = c.e;
  InvariantBuilder &i = c.i;
  Record form{c.f};
  ByteProducts products = chooseByteProducts(c);
  Type word = e.builder.getI32Type(), number = e.builder.getF32Type();
  int64_t rows = tile.rows.height, bits = c.f.bits, shifts = 8 / bits;
  Value panelStride = c.panelWords(), pitch = c.value(c.f.fixedPoint.pitch);

  Value wordOfRow(Value record, int64_t row, int64_t at, Type type) const;
  Value bytesAhead(Value number) const;
  Value loadWords(Value panels, const TileVector &vector, Value ahead) const;
  Value bytesOf(Value words, int64_t shift) const;
  Value addProducts(Value bytes, Value digits, Value sum) const;
  SmallVector<Value> addWord(Value panels, Value record, Value ahead, ValueRange sums) const;
  SmallVector<Value> addWords(Value panels, Value record, Value ahead, int64_t count, ValueRange sums) const;
  Value widened(Value pairs, Value sum) const;
  Value toFloat(ArrayRef<Value> sums) const;
  Value restOf(const TileVector &vector, ValueRange outer) const;
  SmallVector<Value> multiplyRecord(ArrayRef<Value> outer, Value panels, Value record, Value ahead,
                                    ValueRange init) const;
  SmallVector<Value> multiply(SmallVector<Value> outer, Value number, Value panels, Value record,
                              ValueRange init) const;
};

} // namespace

/// The bits of the largest absolute value, which are in the order of the values; NaN comes behind infinity.
Value RecordWriter::largest(Value from) const {
  SmallVector<Value> most =
      e.createLoop(i.constant(0), i.constant(terms), group, {splat(0)}, [&](Value at, ValueRange m) {
        Value bits = e.createLoad(word, group, e.getAddress(from, number, at));
        Value absolute = arith::AndIOp::create(e.builder, e.loc, bits, splat(0x7fffffff));
        return SmallVector<Value>{arith::MaxUIOp::create(e.builder, e.loc, m.front(), absolute)};
      });
  return LLVM::vector_reduce_umax::create(e.builder, e.loc, word, most.front());
}

/// The digits of a word's terms in the order of the record.
Value RecordWriter::digitsOf(Value numbers) const {
  constexpr int64_t digitsOfTerm = 4;
  OpBuilder &b = e.builder;
  Value whole = arith::FPToSIOp::create(b, e.loc, words, math::RoundEvenOp::create(b, e.loc, numbers));
  // Bytes of the sum are digits plus 128.
  Value moved = arith::AddIOp::create(b, e.loc, whole, splat(0x80808080));
  Value digits = arith::XOrIOp::create(b, e.loc, moved, splat(0x80808080));
  auto bytes = VectorType::get(group * digitsOfTerm, b.getI8Type());
  digits = LLVM::BitcastOp::create(b, e.loc, bytes, digits);
  int64_t shifts = 8 / c.f.bits;
  SmallVector<int32_t> order;
  for (int64_t shift = 0; shift < shifts; ++shift)
    for (int64_t digit = 0; digit < digitsOfTerm; ++digit)
      for (int64_t term = shift; term < group; term += shifts)
        order.push_back(int32_t(term * digitsOfTerm + digit));
  Value turned = LLVM::ShuffleVectorOp::create(b, e.loc, digits, digits, order);
  return LLVM::BitcastOp::create(b, e.loc, words, turned);
}

/// Of the sums of each shift.
Value RecordWriter::sumOfDigits(Value dots, int64_t digit) const {
  Value sum;
  for (int64_t lane = digit; lane < group; lane += form.digits) {
    Value one = LLVM::ExtractElementOp::create(e.builder, e.loc, dots, scalar(uint32_t(lane)));
    sum = sum ? arith::AddIOp::create(e.builder, e.loc, sum, one).getResult() : one;
  }
  return sum;
}

/// `dots`: for each shift and digit the sum of the block's digits, times the center.
void RecordWriter::writeHead(Value record, Value dots, Value scale) const {
  OpBuilder &b = e.builder;
  auto store = [&](Value value, int64_t at) { e.createStore(value, e.getAddress(record, word, i.constant(at))); };
  Value sum = i.constant(b.getF32FloatAttr(0));
  for (int64_t digit = form.digits - 1; digit >= 0; --digit) {
    Value centered = sumOfDigits(dots, digit);
    store(arith::SubIOp::create(b, e.loc, scalar(0), centered), digit);
    Value own = arith::SIToFPOp::create(b, e.loc, number, centered);
    sum = createMultiplyAdd(e, sum, i.constant(b.getF32FloatAttr(256)), own);
  }
  store(scale, form.scaleWord);
  store(arith::MulFOp::create(b, e.loc, sum, i.constant(b.getF32FloatAttr(1 / float(center)))), form.sumWord);
}

/// Integers of 8 bits in the order of the record.
Value RecordWriter::bytesOf(Value wholes) const {
  OpBuilder &b = e.builder;
  auto bytes = VectorType::get(group, b.getI8Type());
  int64_t shifts = 8 / c.f.bits;
  SmallVector<int32_t> order;
  for (int64_t shift = 0; shift < shifts; ++shift)
    for (int64_t term = shift; term < group; term += shifts)
      order.push_back(int32_t(term));
  Value narrow = arith::TruncIOp::create(b, e.loc, bytes, wholes);
  Value turned = LLVM::ShuffleVectorOp::create(b, e.loc, narrow, narrow, order);
  return LLVM::BitcastOp::create(b, e.loc, VectorType::get(shifts, word), turned);
}

/// A block of smaller numbers than 2^-100 is as one of that.
void RecordWriter::writeBytes(Value from, Value record) const {
  constexpr uint32_t least = (127 - 100) << 23;
  OpBuilder &b = e.builder;
  auto real = [&](float value) { return i.constant(b.getF32FloatAttr(value)); };
  Value bits = arith::MaxUIOp::create(b, e.loc, largest(from), scalar(least)), infinity = scalar(0x7f800000);
  Value isFinite = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ult, bits, infinity);
  Value most = LLVM::BitcastOp::create(b, e.loc, number, bits);
  Value scale = arith::MulFOp::create(b, e.loc, most, real(1.0f / 127));
  scale =
      arith::SelectOp::create(b, e.loc, isFinite, scale, LLVM::BitcastOp::create(b, e.loc, number, scalar(0x7fc00000)));
  Value factor = e.splat(arith::DivFOp::create(b, e.loc, real(127), most), group);
  Value zero = i.constant(cast<TypedAttr>(b.getZeroAttr(numbers)));
  Value digits = e.getAddress(record, word, i.constant(form.headWords));
  auto each = [&](Value at, ValueRange sums) {
    Value loaded = e.createLoad(number, group, e.getAddress(from, number, at));
    loaded = arith::SelectOp::create(b, e.loc, isFinite, loaded, zero);
    Value scaled = arith::MulFOp::create(b, e.loc, loaded, factor);
    Value whole = arith::FPToSIOp::create(b, e.loc, words, math::RoundEvenOp::create(b, e.loc, scaled));
    e.createStore(bytesOf(whole), e.getAddress(digits, b.getI8Type(), at));
    return SmallVector<Value>{arith::AddIOp::create(b, e.loc, sums.front(), whole)};
  };
  Value sums = e.createLoop(i.constant(0), i.constant(terms), group, {splat(0)}, each).front();
  Value sum = LLVM::vector_reduce_add::create(b, e.loc, word, sums);
  Value start = arith::MulIOp::create(b, e.loc, sum, scalar(uint32_t(-center)));
  auto store = [&](Value value, int64_t at) { e.createStore(value, e.getAddress(record, word, i.constant(at))); };
  store(start, 0);
  store(scale, form.scaleWord);
  store(arith::SIToFPOp::create(b, e.loc, number, sum), form.sumWord);
}

void RecordWriter::writeDigits(Value from, Value record) const {
  OpBuilder &b = e.builder;
  Value most = largest(from), infinity = scalar(0x7f800000), mantissa = scalar(23);
  Value isFinite = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ult, most, infinity);
  // E + 126, of which 2^(E-30) is a normal number.
  Value exponent = arith::MaxUIOp::create(b, e.loc, arith::ShRUIOp::create(b, e.loc, most, mantissa), scalar(30));
  Value up = arith::ShLIOp::create(b, e.loc, arith::SubIOp::create(b, e.loc, scalar(283), exponent), mantissa);
  Value down = arith::ShLIOp::create(b, e.loc, arith::SubIOp::create(b, e.loc, exponent, scalar(29)), mantissa);
  Value scale = arith::SelectOp::create(b, e.loc, isFinite, down, scalar(0x7fc00000));
  Value factor = e.splat(LLVM::BitcastOp::create(b, e.loc, number, up), group);
  Value zero = i.constant(cast<TypedAttr>(b.getZeroAttr(numbers)));
  Value centers = splat(uint32_t(center) * 0x01010101);
  Value digits = e.getAddress(record, word, i.constant(form.headWords));
  SmallVector<Value> dots =
      e.createLoop(i.constant(0), i.constant(terms), group, {splat(0)}, [&](Value at, ValueRange d) {
        Value loaded = e.createLoad(number, group, e.getAddress(from, number, at));
        loaded = arith::SelectOp::create(b, e.loc, isFinite, loaded, zero);
        Value turned = digitsOf(arith::MulFOp::create(b, e.loc, loaded, factor));
        e.createStore(turned, e.getAddress(digits, word, at));
        return SmallVector<Value>{createByteDot(e, centers, turned, d.front())};
      });
  writeHead(record, dots.front(), scale);
}

FixedPointEmission::FixedPointEmission(ContractionEmission &contraction)
    : ContractionTechnique(contraction), records(c.scratchAt(f.fixedPoint.at)) {}

void FixedPointEmission::copyRows(const ContractionTask &task) {
  Type word = e.builder.getI32Type();
  Value end = i.add(task.firstRow, task.rows);
  if (c.fixedPoint == FixedPoint::FewRows)
    end = i.select(i.compare(arith::CmpIPredicate::sle, task.rows, i.constant(mostInFixedPoint)), end, task.firstRow);
  RecordWriter writer{c};
  Expr recordWords = Expr::constant(e.builder.getContext(), writer.form.words);
  loop(task.firstRow, end, 1, [&](Value row) {
    RowAddresses addresses = c.rowAddresses(task, RowClass{.height = 1}, row);
    SmallVector<Value> outer;
    auto writeLoops = [&](auto &&self, Value to) -> void {
      const KLoop &kLoop = f.kLoops[outer.size()];
      if (outer.size() + 1 == f.kLoops.size())
        return writer.write(addresses(outer).front(), to);
      Value step = value(kLoop.bStride.floorDiv(f.kLoops.back().extent) * recordWords);
      loop(i.constant(0), value(kLoop.extent), 1, [&](Value at) {
        outer.push_back(at);
        self(self, e.getAddress(to, word, i.mul(at, step)));
        outer.pop_back();
      });
    };
    Value local = i.sub(row, task.firstRow);
    writeLoops(writeLoops, e.getAddress(records, word, i.mul(local, value(f.fixedPoint.pitch))));
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value FixedPointTile::wordOfRow(Value record, int64_t row, int64_t at, Type type) const {
  Value offset = i.add(i.mul(pitch, i.constant(row)), i.constant(at));
  return e.createLoad(type, 1, e.getAddress(record, word, offset));
}

/// How far ahead panels are fetched from the record on: behind a panel's end those of the next tile, not of its
/// neighbour. Null: they are not.
Value FixedPointTile::bytesAhead(Value number) const {
  if (!fetchedAhead)
    return {};
  const ContractionForm &f = c.f;
  int64_t records = f.k.getValue() / form.terms, bytes = f.kLoops.back().extent.getValue() * panelWidth * 4;
  Value first = i.constant(records - fetchedAhead / bytes), ahead = i.constant(fetchedAhead);
  Value others = i.mul(panelStride, i.constant((tile.columns.panels - 1) * 4));
  return i.select(i.compare(arith::CmpIPredicate::sge, number, first), i.add(ahead, others), ahead);
}

Value FixedPointTile::loadWords(Value panels, const TileVector &vector, Value ahead) const {
  int64_t part = vector.column % panelWidth;
  Value offset = i.add(i.mul(panelStride, i.constant(vector.column / panelWidth)), i.constant(part));
  Value address = e.getAddress(panels, word, offset);
  if (ahead && part == 0)
    createPrefetch(e, e.getAddress(address, e.builder.getI8Type(), ahead));
  return e.createLoad(word, vector.lanes, address);
}

/// Every (8 / bits)-th number of the words, from that of the shift on, as unsigned bytes.
Value FixedPointTile::bytesOf(Value words, int64_t shift) const {
  auto splat = [&](uint32_t value) {
    return i.constant(cast<TypedAttr>(DenseElementsAttr::get(cast<VectorType>(words.getType()), APInt(32, value))));
  };
  if (shift)
    words = arith::ShRUIOp::create(e.builder, e.loc, words, splat(uint32_t(shift * bits)));
  words = arith::AndIOp::create(e.builder, e.loc, words, splat(((1u << bits) - 1) * 0x01010101));
  if (c.f.conversion.numbers == WeightConversion::Numbers::Unsigned)
    return words;
  return arith::XOrIOp::create(e.builder, e.loc, words, splat((1u << (bits - 1)) * 0x01010101)); // the lowest is 0
}

/// Pairs: in vectors of 16-bit integers, `sum` being null at first.
Value FixedPointTile::addProducts(Value bytes, Value digits, Value sum) const {
  if (products == ByteProducts::Dots)
    return createByteDot(e, bytes, digits, sum);
  OpBuilder &b = e.builder;
  int64_t lanes = cast<VectorType>(bytes.getType()).getNumElements();
  auto type = VectorType::get(lanes * 4, b.getI8Type());
  Value x = LLVM::BitcastOp::create(b, e.loc, type, bytes), y = LLVM::BitcastOp::create(b, e.loc, type, digits);
  if (products == ByteProducts::SignedDots) // numbers of few bits have no sign
    return LLVM::CallIntrinsicOp::create(b, e.loc, sum.getType(), b.getStringAttr(e.level.signedByteDotOf(lanes * 32)),
                                         ValueRange{sum, x, y})
        .getResult(0);
  Value product = createBytePairs(e, x, y);
  return sum ? arith::AddIOp::create(b, e.loc, sum, product).getResult() : product;
}

/// Sums lie in the order [row][vector][digit].
SmallVector<Value> FixedPointTile::addWord(Value panels, Value record, Value ahead, ValueRange sums) const {
  int64_t digitsOfTerm = form.digits;
  SmallVector<Value> next(sums), words;
  for (const TileVector &vector : vectors)
    words.push_back(loadWords(panels, vector, ahead));
  for (int64_t shift = 0; shift < shifts; ++shift) {
    SmallVector<Value> digits;
    for (int64_t at = 0; at < rows * digitsOfTerm; ++at)
      digits.push_back(wordOfRow(record, at / digitsOfTerm, shift * digitsOfTerm + at % digitsOfTerm, word));
    for (auto [index, vector] : llvm::enumerate(vectors)) {
      Value bytes = bytesOf(words[index], shift);
      for (int64_t at = 0; at < rows * digitsOfTerm; ++at) {
        int64_t row = at / digitsOfTerm, digit = at % digitsOfTerm;
        Value &sum = next[size_t((row * int64_t(vectors.size()) + int64_t(index)) * digitsOfTerm + digit)];
        sum = addProducts(bytes, e.splat(digits[size_t(at)], vector.lanes), sum);
      }
    }
  }
  return next;
}

Value FixedPointTile::widened(Value pairs, Value sum) const {
  auto ones = DenseElementsAttr::get(cast<VectorType>(pairs.getType()), APInt(16, 1));
  return createPairDot(e, pairs, i.constant(cast<TypedAttr>(ones)), sum);
}

/// At most `mostWords`.
SmallVector<Value> FixedPointTile::addWords(Value panels, Value record, Value ahead, int64_t count,
                                            ValueRange sums) const {
  bool areWide = products != ByteProducts::Pairs;
  SmallVector<Value> next(sums.size());
  if (areWide)
    next.assign(sums.begin(), sums.end());
  for (int64_t at = 0; at < count; ++at)
    next = addWord(e.getAddress(panels, word, i.constant(at * panelWidth)),
                   e.getAddress(record, word, i.constant(at * shifts * form.digits)), ahead, next);
  if (areWide)
    return next;
  for (auto [pairs, sum] : llvm::zip_equal(next, sums))
    pairs = widened(pairs, sum);
  return next;
}

/// Two digits at a time are whole numbers that floats hold, or nearly.
Value FixedPointTile::toFloat(ArrayRef<Value> sums) const {
  OpBuilder &b = e.builder;
  auto type = cast<VectorType>(sums.front().getType());
  if (form.digits == 1)
    return arith::SIToFPOp::create(b, e.loc, type.clone(number), sums.front());
  Value eight = i.constant(cast<TypedAttr>(DenseElementsAttr::get(type, APInt(32, 8))));
  auto both = [&](Value low, Value high) {
    Value moved = arith::ShLIOp::create(b, e.loc, high, eight);
    Value sum = arith::AddIOp::create(b, e.loc, moved, low);
    return arith::SIToFPOp::create(b, e.loc, type.clone(number), sum).getResult();
  };
  Value upper = e.splat(i.constant(b.getF32FloatAttr(1 << 16)), type.getNumElements());
  return createMultiplyAdd(e, both(sums[2], sums[3]), upper, both(sums[0], sums[1]));
}

/// The weight's value at the number in the middle of all; null: 0.
Value FixedPointTile::restOf(const TileVector &vector, ValueRange outer) const {
  const WeightConversion &conversion = c.f.conversion;
  bool isUnsigned = conversion.numbers == WeightConversion::Numbers::Unsigned;
  int64_t middle = isUnsigned ? int64_t(1) << (bits - 1) : 0;
  Type type = c.f.op.getRhs().getArgument(0).getType();
  auto element = conversion.table ? cast<TypedAttr>(conversion.table.getValues<FloatAttr>()[size_t(middle)])
                                  : cast<TypedAttr>(IntegerAttr::get(type, middle));
  if (auto known = dyn_cast<FloatAttr>(element);
      known && known.getValue().isZero() && conversion.factored == c.f.op.getRhs().getArgument(0))
    return {};
  SmallVector<Value> ks(outer);
  ks.push_back(i.constant(0));
  Value elements = e.splat(i.constant(element), vector.lanes);
  WeightConverter converter(c, task);
  return converter.convert(converter.pointInLoops(ks, /*term=*/0), conversion.factored, tile.panel, elements,
                           vector.column);
}

SmallVector<Value> FixedPointTile::multiplyRecord(ArrayRef<Value> outer, Value panels, Value record, Value ahead,
                                                  ValueRange init) const {
  int64_t words = c.f.kLoops.back().extent.getValue(), together = std::gcd<int64_t>(words, mostWords);
  int64_t digitsOfTerm = form.digits;
  SmallVector<Value> sums, result(init);
  for (int64_t row = 0; row < rows; ++row)
    for (const TileVector &vector : vectors)
      for (int64_t digit = 0; digit < digitsOfTerm; ++digit)
        sums.push_back(e.splat(wordOfRow(record, row, digit, word), vector.lanes));
  Value digits = e.getAddress(record, word, i.constant(form.headWords));
  auto addFrom = [&](Value first, ValueRange carried) {
    return addWords(e.getAddress(panels, word, i.mul(first, i.constant(panelWidth))),
                    e.getAddress(digits, word, i.mul(first, i.constant(shifts * digitsOfTerm))), ahead, together,
                    carried);
  };
  sums = words == together ? addFrom(i.constant(0), sums)
                           : e.createLoop(i.constant(0), i.constant(words), together, sums, addFrom);
  for (auto [index, vector] : llvm::enumerate(vectors)) {
    Value factor = WeightConverter(c, task).factorOf(tile.panel, vector, outer, /*prefetches=*/fetchedAhead > 0);
    Value rest = restOf(vector, outer);
    for (int64_t row = 0; row < rows; ++row) {
      size_t at = size_t(row) * vectors.size() + index;
      Value sum = toFloat(ArrayRef(sums).slice(at * digitsOfTerm, digitsOfTerm));
      auto ofRow = [&](int64_t word) { return e.splat(wordOfRow(record, row, word, number), vector.lanes); };
      if (rest)
        sum = createMultiplyAdd(e, rest, ofRow(form.sumWord), sum);
      // Units of bytes are as large as numbers by 127, those of digits so small that times a weight's they might be 0.
      Value scaled = arith::MulFOp::create(e.builder, e.loc, form.digits == 1 ? factor : sum, ofRow(form.scaleWord));
      result[at] = form.digits == 1 ? createMultiplyAdd(e, sum, scaled, result[at])
                                    : createMultiplyAdd(e, scaled, factor, result[at]);
    }
  }
  return result;
}

/// `number`, `panels` and `record`: where `outer` stands.
SmallVector<Value> FixedPointTile::multiply(SmallVector<Value> outer, Value number, Value panels, Value record,
                                            ValueRange init) const {
  const ContractionForm &f = c.f;
  if (outer.size() + 1 == f.kLoops.size())
    return multiplyRecord(outer, panels, record, bytesAhead(number), init);
  const KLoop &kLoop = f.kLoops[outer.size()];
  Value lower = outer.empty() ? tile.kLower : i.constant(0);
  Value upper = outer.empty() ? tile.kUpper : c.value(kLoop.extent);
  Value panelStep = i.mul(c.value(kLoop.bStride), i.constant(panelWidth));
  Value records = c.value(kLoop.bStride.floorDiv(f.kLoops.back().extent));
  Value recordStep = i.mul(records, i.constant(form.words));
  return e.createLoop(lower, upper, 1, init, [&](Value k, ValueRange carried) {
    SmallVector<Value> inner(outer);
    inner.push_back(k);
    return multiply(inner, i.add(number, i.mul(k, records)), e.getAddress(panels, word, i.mul(k, panelStep)),
                    e.getAddress(record, word, i.mul(k, recordStep)), carried);
  });
}

SmallVector<Value> FixedPointEmission::multiply(const ContractionTask &task, const ContractionTile &tile,
                                                ValueRange init) {
  int64_t rows = tile.rows.height;
  SmallVector<TileVector> vectors = getTileVectors(tile.columns.panels, tile.columns.lastColumns, lanes);
  SmallVector<Value> result(init);
  if (init.empty())
    for (int64_t at = 0; at < rows * int64_t(vectors.size()); ++at)
      result.push_back(i.constant(cast<TypedAttr>(
          e.builder.getZeroAttr(VectorType::get(vectors[size_t(at) % vectors.size()].lanes, accumulator)))));
  int64_t weightBytes = i.asConstant(c.n).value_or(0) * f.k.getValue() * f.bits / 8;
  int64_t fetchedAhead = !e.isStage && weightBytes >= leastStreamed ? streamAhead : 0;
  Value panels = c.panelAddress(task, tile.panel, tile.kLower);
  Value local = i.sub(tile.row, task.firstRow);
  Value record = e.getAddress(records, e.builder.getI32Type(), i.mul(local, value(f.fixedPoint.pitch)));
  int64_t sumsOfVector = Record(f).digits * rows;
  size_t together = size_t(std::max<int64_t>(e.level.vectorRegisters / 2 / sumsOfVector, 1));
  for (size_t first = 0; first < vectors.size(); first += together) {
    ArrayRef<TileVector> part = ArrayRef(vectors).slice(first).take_front(together);
    SmallVector<Value> sums;
    for (size_t at = 0; at < size_t(rows) * part.size(); ++at)
      sums.push_back(result[at / part.size() * vectors.size() + first + at % part.size()]);
    FixedPointTile multiplied{c, task, tile, part, fetchedAhead};
    sums = multiplied.multiply({}, i.constant(0), panels, record, sums);
    for (auto [at, sum] : llvm::enumerate(sums))
      result[at / part.size() * vectors.size() + first + at % part.size()] = sum;
  }
  return result;
}
