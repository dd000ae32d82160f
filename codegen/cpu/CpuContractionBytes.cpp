//===- CpuContractionBytes.cpp - bytes multiplied in pairs ----------------===//
//
// Problem. Where no instruction multiplies four bytes and adds them up, one does for two: into 16 bits, in which larger
// sums saturate. With one that adds up neighbours it makes three instructions for four products of each lane; as 16-bit
// integers they take four and twice the loads.
//
// Idea. Bytes of A have no sign, those of B have one. Two products leave 16 bits only if the two weights are of one
// sign and large, and so are bytes of A at both places: whether that may be, the largest byte of a task's rows at each
// place tells. Of weights that are normally distributed 0.7 to 7 % of the pairs have a sum beyond +-128, the least that
// leaves 16 bits, and most places have no byte near 255. So of such a pair the second weight is taken out of the tile's
// copy of B. Its products are added up apart, exactly, and the tile's sums start from them.
//
// Column tiles of which no four products can leave 16 bits, either, add up two pairs, of two groups that follow each
// other, before neighbours: five instructions for eight products in place of six, and three that multiply in place of
// four. (To take out weights until four fit gained nothing.)
//
// Column tiles of which many pairs leave 16 bits (of weights over the whole range a fourth of them) are products of
// 16-bit integers. Lists would take longer, as the first groups tell. (To look at groups all along k took 5 % of
// MiniLM, whose weights stream from memory.)
//
//   A      a task's rows are copied, wherever bytes come from: in place, around borders, packed; each column tile reads
//          them. The largest bytes are found in the copies, which are widened once for all tiles of 16-bit integers
//   B      is read where it is by tiles that add up two pairs. Of the others the panels are copied without the weights
//          that are taken out: those wait in a list for each column, (where k's rows begin in A's transposed copy,
//          weight)
//   rest   the first time something is taken out A's rows are transposed, [k][rows]. For each column, vectors of rows:
//          two entries of its list at a time are widened to 16 bits, interleaved, and multiplied and added up by one
//          instruction; then transposed, [row][columns of the tile]
//
// Copies hold the block of k that is computed, as a rule all of k. Neighbours in k are contiguous in them, whatever the
// loops over k were: the tile has one.
//
// Cost. Looking at B takes eight instructions for a vector, of which each row of the tile takes three: from
// `fewestCopied` rows of a task on. A product of a row and an entry takes a third of an instruction, where the tile has
// a twelfth for each; a list is made weight by weight, for each task. As 16-bit integers the products of a vector take
// an instruction more. So lists are as fast up to 2 % of the pairs at 16 rows, 7 % at 64 and 12 % at 256 (measured on
// Zen 3; twice as fast as with lists at 16 rows and weights over the whole range, 0.85 of the time at 256). Sums are
// the same integers in any order.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionBytes.h"
#include "codegen/cpu/CpuContractionConvert.h"
#include "codegen/cpu/CpuContractionEmission.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t squareSize = 16; // bytes of the part of a vector that interleaving stays in
static constexpr int64_t pairsOfGroup = 2;
static constexpr int64_t groupsLookedAt = 8; // before it is asked whether more are of use
static constexpr int64_t groupsSampled = 16; // of a panel, which have just been read, for the number of its pairs

void ContractionEmission::takeBlocksOfCopies() {
  if (!e.level.multipliesPairs())
    return;
  int64_t width = takesPatches() ? 1 : split.width;
  int64_t mostColumns = llvm::divideCeil(llvm::divideCeil(f.n.asConstant().value_or(1), panelWidth), width);
  if (f.blocks.togetherInCopies > 1) {
    int64_t most = std::min(f.blocks.togetherInCopies, mostColumns / f.blocks.n.getValue());
    Value together = i.min(i.constant(std::max<int64_t>(most, 1)), mBlocks);
    mBlocks = i.floorDiv(mBlocks, together, true);
    nBlocks = i.mul(nBlocks, together);
    endOfTasks = i.mul(value(f.batch), i.mul(mBlocks, nBlocks));
    return;
  }
  if (!f.blocks.ofCopies)
    return;
  int64_t tasks = f.blocks.m.getValue() * f.blocks.n.getValue();
  for (int64_t rows = f.blocks.ofCopies; rows < f.blocks.m.getValue(); ++rows)
    if (tasks % rows == 0 && tasks / rows <= mostColumns) {
      mBlocks = i.constant(rows);
      nBlocks = i.constant(tasks / rows);
      return;
    }
}

ByteCopying ContractionEmission::chooseCopying() {
  if (!f.bytes.rowsAt || !e.level.multipliesPairs())
    return ByteCopying::None;
  auto rows = i.asConstant(m), blocks = i.asConstant(mBlocks);
  if (!rows || !blocks)
    return ByteCopying::ManyRows;
  return *rows / *blocks >= fewestCopied ? ByteCopying::All : ByteCopying::None;
}

//===----------------------------------------------------------------------===//
// Rows of A
//===----------------------------------------------------------------------===//

ByteEmission::ByteEmission(ContractionEmission &contraction) : ContractionTechnique(contraction) {
  auto at = [&](Expr offset) { return offset ? c.scratchAt(offset) : Value(); };
  byteRows = at(f.bytes.rowsAt);
  turnedRows = at(f.bytes.turnedAt);
  wideRows = at(f.bytes.wideAt);
  byteColumns = at(f.bytes.columnsAt);
  listPlaces = at(f.bytes.listPlacesAt);
  listWeights = at(f.bytes.listWeightsAt);
  largestBytes = at(f.bytes.largestAt);
  isTurned = at(f.bytes.isTurnedAt);
  isWidened = at(f.bytes.isWidenedAt);
  listCounts = at(f.bytes.listCountsAt);
  restOfColumns = at(f.bytes.restOfColumnsAt);
  restOfRows = at(f.bytes.restOfRowsAt);
  zeroRow = at(f.bytes.zerosAt);
}

void ByteEmission::copyRows(const ContractionTask &task, Value kLower, Value kUpper) {
  Type byte = f.lhs.element;
  int64_t together = e.level.lanesOf(8) / f.group; // groups of a vector
  auto copyRun = [&](Value from, Value to, Value groups) {
    auto copy = [&](Value at, int64_t count) {
      Value offset = i.mul(at, i.constant(f.group));
      Value bytes = e.createLoad(byte, count * f.group, e.getAddress(from, byte, offset));
      e.createStore(bytes, e.getAddress(to, byte, offset));
    };
    Value whole = i.mul(i.floorDiv(groups, i.constant(together), true), i.constant(together));
    loop(i.constant(0), whole, together, [&](Value at) { copy(at, together); });
    auto known = i.asConstant(groups);
    if (!known)
      return loop(whole, groups, 1, [&](Value at) { copy(at, 1); });
    Value rest = whole;
    for (int64_t count = together / 2; count; count /= 2)
      if (*known & count) {
        copy(rest, count);
        rest = i.add(rest, i.constant(count));
      }
  };
  Value rows = task.rows;
  if (c.copying == ByteCopying::ManyRows)
    rows = i.select(i.compare(arith::CmpIPredicate::sge, rows, i.constant(fewestCopied)), rows, i.constant(0));
  Value endRow = i.add(task.firstRow, rows);
  loop(task.firstRow, endRow, 1, [&](Value row) {
    auto addresses = c.rowAddresses(task, RowClass{.height = 1}, row);
    SmallVector<Value> outer;
    auto copyLoops = [&](auto &&self, Value to) -> void {
      const KLoop &kLoop = f.kLoops[outer.size()];
      Value lower = outer.empty() ? kLower : i.constant(0), upper = outer.empty() ? kUpper : value(kLoop.extent);
      if (outer.size() + 1 == f.kLoops.size()) {
        Value from = e.getAddress(addresses(outer).front(), byte, i.mul(lower, i.constant(f.group)));
        return copyRun(from, to, i.sub(upper, lower));
      }
      Value step = i.mul(value(kLoop.bStride), i.constant(f.group));
      loop(lower, upper, 1, [&](Value at) {
        outer.push_back(at);
        self(self, e.getAddress(to, byte, i.mul(i.sub(at, lower), step)));
        outer.pop_back();
      });
    };
    Value local = i.sub(row, task.firstRow);
    copyLoops(copyLoops, e.getAddress(byteRows, byte, i.mul(local, value(f.bytes.pitch))));
  });
  findLargest(rows, i.mul(i.sub(groupsTo(kUpper), groupsTo(kLower)), i.constant(f.group)));
  e.createStore(i.constant(0), isTurned);
  e.createStore(i.constant(0), isWidened);
}

/// Of each place of so many copied rows.
void ByteEmission::findLargest(Value rows, Value terms) {
  Type byte = f.lhs.element;
  int64_t size = e.level.lanesOf(8);
  auto upTo = [&](Value first, Value end, int64_t width) {
    loop(first, end, width, [&](Value term) {
      Value none = i.constant(cast<TypedAttr>(e.builder.getZeroAttr(VectorType::get({width}, byte))));
      Value most = e.createLoop(i.constant(0), rows, 1, {none}, [&](Value row, ValueRange carried) {
                      Value from = e.getAddress(byteRows, byte, i.add(i.mul(row, value(f.bytes.pitch)), term));
                      Value bytes = e.createLoad(byte, width, from);
                      return SmallVector<Value>{arith::MaxUIOp::create(e.builder, e.loc, carried.front(), bytes)};
                    }).front();
      e.createStore(most, e.getAddress(largestBytes, byte, term));
    });
  };
  Value whole = i.mul(i.floorDiv(terms, i.constant(size), true), i.constant(size));
  upTo(i.constant(0), whole, size);
  upTo(whole, terms, f.group);
}

/// The row of a block whose byte is at this place of the transposed copy: two vectors of interleaved 16-bit integers
/// have then the rows of two vectors of sums, in their order.
int64_t ByteEmission::rowOfPlace(int64_t place) const {
  int64_t words = e.level.lanesOf(16), parts = words / 8, word = place % words;
  return place / words * words + word % 8 / 4 * (4 * parts) + word / 8 * 4 + word % 4;
}

Value ByteEmission::zeroBytes() {
  return i.constant(cast<TypedAttr>(e.builder.getZeroAttr(VectorType::get({squareSize}, f.lhs.element))));
}

/// Squares of 16 terms by the rows of a vector. Rows behind the last are zeros.
void ByteEmission::turnRows(Value rows, Value terms) {
  Type byte = f.lhs.element;
  int64_t together = e.level.lanesOf(8);
  Value zero = zeroBytes(), vector = i.constant(together);
  Value wholeRows = i.mul(i.floorDiv(i.add(rows, i.constant(together - 1)), vector, true), vector);
  loop(rows, wholeRows, 1, [&](Value row) {
    loop(i.constant(0), terms, squareSize, [&](Value term) {
      e.createStore(zero, e.getAddress(byteRows, byte, i.add(i.mul(row, value(f.bytes.pitch)), term)));
    });
  });
  Value pitch = value(f.bytes.pitch), turnedPitch = value(f.bytes.turnedPitch);
  loop(i.constant(0), rows, together, [&](Value row) {
    loop(i.constant(0), terms, squareSize, [&](Value term) {
      SmallVector<Value> square;
      for (int64_t at = 0; at < squareSize; ++at) {
        SmallVector<Value> parts;
        for (int64_t place = at; place < together; place += squareSize) {
          Value from = i.add(i.mul(i.add(row, i.constant(rowOfPlace(place))), pitch), term);
          parts.push_back(e.createLoad(byte, squareSize, e.getAddress(byteRows, byte, from)));
        }
        square.push_back(join(e, parts));
      }
      for (int64_t round = 1; round < squareSize; round *= 2) {
        SmallVector<Value> next;
        for (int64_t at = 0; at < squareSize / 2; ++at) {
          auto [low, high] = interleave(e, square[size_t(at)], square[size_t(at + squareSize / 2)], squareSize);
          next.append({low, high});
        }
        square = next;
      }
      for (auto [at, vector] : llvm::enumerate(square)) {
        Value to = i.add(i.mul(i.add(term, i.constant(int64_t(at))), turnedPitch), row);
        e.createStore(vector, e.getAddress(turnedRows, byte, to));
      }
    });
  });
}

/// What `make` makes of the rows' copies, if it is the first time.
void ByteEmission::onceForRows(Value isMade, llvm::function_ref<void()> make) {
  Value made = e.createLoad(e.builder.getI64Type(), 1, isMade);
  emitIf(i.compare(arith::CmpIPredicate::eq, made, i.constant(0)), [&] {
    make();
    e.createStore(i.constant(1), isMade);
  });
}

/// The rows' copies as 16-bit integers, in words. What lies behind the terms is no term of the products.
void ByteEmission::widenRows(Value rows, Value terms) {
  Type byte = f.lhs.element, wide = e.builder.getI16Type();
  int64_t together = e.level.lanesOf(16);
  loop(i.constant(0), rows, 1, [&](Value row) {
    Value from = e.getAddress(byteRows, byte, i.mul(row, value(f.bytes.pitch)));
    Value to = e.getAddress(wideRows, wide, i.mul(row, value(f.bytes.widePitch)));
    loop(i.constant(0), terms, together, [&](Value term) {
      e.createStore(c.loadWords(e.getAddress(from, byte, term), together / f.group), e.getAddress(to, wide, term));
    });
  });
}

//===----------------------------------------------------------------------===//
// Columns of B
//===----------------------------------------------------------------------===//

/// Where a panel's k loop stands, in groups: those of the outermost loop's [kLower, kUpper).
Value ByteEmission::groupsTo(Value k) { return i.mul(k, value(f.kLoops.front().bStride)); }

/// The sums of the pairs of a vector of groups by the largest bytes, which saturate.
Value ByteEmission::largestPairs(Value weights, Value largest) {
  auto bytes = VectorType::get(lanes * f.group, e.builder.getI8Type());
  return createBytePairs(e, LLVM::BitcastOp::create(e.builder, e.loc, bytes, e.splat(largest, lanes)),
                         LLVM::BitcastOp::create(e.builder, e.loc, bytes, weights));
}

/// Whether sums that saturated are the largest or the smallest number: they have left 16 bits, or are about to.
Value ByteEmission::isAtEnd(Value sums, bool isLargest) {
  APInt end = isLargest ? APInt::getSignedMaxValue(16) : APInt::getSignedMinValue(16);
  Value limit = i.constant(cast<TypedAttr>(DenseElementsAttr::get(cast<VectorType>(sums.getType()), end)));
  return arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::eq, sums, limit);
}

/// For each pair of a vector of weights of a group whether its products may leave 16 bits: those of two signs do not.
Value ByteEmission::pairLeaves(Value weights, Value largest) {
  Value sums = largestPairs(weights, largest);
  return arith::OrIOp::create(e.builder, e.loc, isAtEnd(sums, true), isAtEnd(sums, false));
}

/// The same of the sums with the pairs of the next group: those of each sign for themselves.
Value ByteEmission::fourLeave(const WeightsOfGroups &weights, const WeightsOfGroups &largest) {
  OpBuilder &b = e.builder;
  Value zero = i.constant(cast<TypedAttr>(b.getZeroAttr(VectorType::get({lanes * f.group}, b.getI8Type())))), leave;
  for (bool isLargest : {true, false}) {
    auto ofSign = [&](Value words, Value most) {
      Value bytes = LLVM::BitcastOp::create(b, e.loc, zero.getType(), words);
      bytes = isLargest ? arith::MaxSIOp::create(b, e.loc, bytes, zero).getResult()
                        : arith::MinSIOp::create(b, e.loc, bytes, zero).getResult();
      return largestPairs(bytes, most);
    };
    Value first = ofSign(weights[0], largest[0]), second = ofSign(weights[1], largest[1]);
    Value sums = LLVM::SAddSat::create(b, e.loc, first.getType(), first, second);
    Value own = isAtEnd(sums, isLargest);
    leave = leave ? arith::OrIOp::create(b, e.loc, leave, own).getResult() : own;
  }
  return leave;
}

/// Puts the second weights of the pairs that the bits of `pairs` tell into the lists of their columns, and zeros in
/// place of them: bit 2 * column + pair of each group from `term` on, whose copy begins at `copy`.
void ByteEmission::takeOut(Value pairs, Value copy, Value term) {
  OpBuilder &b = e.builder;
  Type byte = b.getI8Type(), half = b.getI16Type();
  Value count = LLVM::CtPopOp::create(b, e.loc, pairs.getType(), pairs), one = i.constant(1);
  e.createLoop(i.constant(0), count, 1, {pairs}, [&](Value, ValueRange carried) -> SmallVector<Value> {
    Value left = carried.front();
    Value bit = LLVM::CountTrailingZerosOp::create(b, e.loc, left.getType(), left, /*is_zero_poison=*/false);
    Value weightAt = e.getAddress(copy, byte, i.add(i.mul(bit, i.constant(pairsOfGroup)), one));
    Value weight = e.createLoad(byte, 1, weightAt);
    e.createStore(i.constant(b.getI8IntegerAttr(0)), weightAt);
    Value column = i.mod(i.floorDiv(bit, i.constant(pairsOfGroup), true), i.constant(panelWidth), true);
    Value group = i.floorDiv(bit, i.constant(pairsOfGroup * panelWidth), true);
    Value own = i.add(i.mul(i.mod(bit, i.constant(pairsOfGroup), true), i.constant(2)), one);
    own = i.add(term, i.add(i.mul(group, i.constant(f.group)), own));
    Value countAt = e.getAddress(listCounts, b.getI64Type(), column), number = e.createLoad(b.getI64Type(), 1, countAt);
    Value entry = i.add(i.mul(column, value(f.bytes.listSize)), number);
    e.createStore(i.mul(own, value(f.bytes.turnedPitch)), e.getAddress(listPlaces, b.getI64Type(), entry));
    e.createStore(arith::ExtSIOp::create(b, e.loc, half, weight), e.getAddress(listWeights, half, entry));
    e.createStore(i.add(number, one), countAt);
    Value lower = arith::SubIOp::create(b, e.loc, left, one);
    return {arith::AndIOp::create(b, e.loc, left, lower)};
  });
}

/// The largest bytes at the places of a group, as a word.
Value ByteEmission::largestOfGroup(Value group) {
  Value place = i.mul(group, i.constant(f.group));
  Value bytes = e.createLoad(f.lhs.element, f.group, e.getAddress(largestBytes, f.lhs.element, place));
  return LLVM::BitcastOp::create(e.builder, e.loc, accumulator, bytes);
}

/// A vector of groups of a panel, from a column on.
Value ByteEmission::loadWeights(const ContractionTask &task, Value panel, Value group, int64_t column) {
  Value place = i.add(i.mul(group, i.constant(panelWidth)), i.constant(column));
  Value words = e.createLoad(accumulator, lanes, e.getAddress(panel, accumulator, place));
  return c.convertsWeight() ? WeightConverter(c, task).convertGroups(words) : words;
}

/// Whether no four products of a panel can leave 16 bits, nor those of the panels before; of a last group that has none
/// beside it, no two.
Value ByteEmission::addsFour(const ContractionTask &task, Value panel, Value groups, Value before) {
  OpBuilder &b = e.builder;
  Value whole = wholePairs(groups);
  auto type = VectorType::get({lanes * pairsOfGroup}, b.getI1Type());
  Value none = i.constant(cast<TypedAttr>(b.getZeroAttr(type)));
  auto areNone = [&](Value leave) {
    Type bits = b.getIntegerType(unsigned(lanes * pairsOfGroup));
    leave = LLVM::BitcastOp::create(b, e.loc, bits, leave);
    return i.compare(arith::CmpIPredicate::eq, leave, i.constant(b.getIntegerAttr(bits, 0)));
  };
  auto fit = [&](Value first, Value end) {
    Value leave =
        e.createLoop(first, end, 2, {none}, [&](Value group, ValueRange carried) {
           Value next = i.add(group, i.constant(1)), any = carried.front();
           WeightsOfGroups largest{largestOfGroup(group), largestOfGroup(next)};
           for (int64_t column = 0; column < panelWidth; column += lanes) {
             WeightsOfGroups weights{loadWeights(task, panel, group, column), loadWeights(task, panel, next, column)};
             any = arith::OrIOp::create(b, e.loc, any, fourLeave(weights, largest));
           }
           return SmallVector<Value>{any};
         }).front();
    return areNone(leave);
  };
  auto lookWhile = [&](Value lower, Value upper, int64_t step, Value before, auto look) {
    return e
        .createLoop(lower, upper, step, {before},
                    [&](Value group, ValueRange carried) {
                      return e.emitChoice(carried.front(), b.getI1Type(), [&](bool looks) {
                        return SmallVector<Value>{looks ? look(group) : carried.front()};
                      });
                    })
        .front();
  };
  Value fits = lookWhile(i.constant(0), whole, groupsLookedAt, before, [&](Value group) {
    return fit(group, i.min(i.add(group, i.constant(groupsLookedAt)), whole));
  });
  return lookWhile(whole, groups, 1, fits, [&](Value group) {
    Value any = none;
    for (int64_t column = 0; column < panelWidth; column += lanes)
      any = arith::OrIOp::create(b, e.loc, any,
                                 pairLeaves(loadWeights(task, panel, group, column), largestOfGroup(group)));
    return areNone(any);
  });
}

/// Of so many groups those that have another one beside them.
Value ByteEmission::wholePairs(Value groups) {
  return i.sub(groups, i.mod(groups, i.constant(2), /*nonNegative=*/true));
}

Value ByteEmission::copyWeights(const ContractionTask &task, Value from, Value to, Value groups) {
  OpBuilder &b = e.builder;
  constexpr int64_t together = 64 / (pairsOfGroup * panelWidth); // groups of one word of bits
  auto copy = [&](Value group, int64_t count, Value any) -> SmallVector<Value> {
    Value copied = e.getAddress(to, accumulator, i.mul(group, i.constant(panelWidth)));
    SmallVector<Value> masks;
    for (int64_t at = 0; at < count; ++at) {
      Value own = i.add(group, i.constant(at)), largest = largestOfGroup(own);
      for (int64_t column = 0; column < panelWidth; column += lanes) {
        Value weights = loadWeights(task, from, own, column);
        e.createStore(weights, e.getAddress(copied, accumulator, i.constant(at * panelWidth + column)));
        masks.push_back(pairLeaves(weights, largest));
      }
    }
    Type bits = b.getIntegerType(unsigned(count * pairsOfGroup * panelWidth));
    Value pairs = LLVM::BitcastOp::create(b, e.loc, bits, join(e, masks));
    if (count < together)
      pairs = arith::ExtUIOp::create(b, e.loc, b.getI64Type(), pairs);
    takeOut(pairs, copied, i.mul(group, i.constant(f.group)));
    return {arith::OrIOp::create(b, e.loc, any, pairs)};
  };
  static_assert(together == 2);
  Value whole = wholePairs(groups);
  SmallVector<Value> any =
      e.createLoop(i.constant(0), whole, together, i.constant(0),
                   [&](Value group, ValueRange carried) { return copy(group, together, carried.front()); });
  any = e.createLoop(whole, groups, 1, any,
                     [&](Value group, ValueRange carried) { return copy(group, 1, carried.front()); });
  return arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne, any.front(), i.constant(0));
}

Value ByteEmission::copyPanel(const ContractionTask &task, const ColumnClass &columns, int64_t p, Value from,
                              Value groups) {
  Type word = e.builder.getI64Type();
  Value none = i.constant(0), size = value(f.bytes.rows);
  loop(none, i.constant(panelWidth), 1,
       [&](Value column) { e.createStore(none, e.getAddress(listCounts, word, column)); });
  Value to = e.getAddress(byteColumns, accumulator, i.mul(size, i.constant(p * panelWidth)));
  Value isSplit = copyWeights(task, from, to, groups);
  emitIf(isSplit, [&] {
    onceForRows(isTurned, [&] { turnRows(task.rows, i.mul(groups, i.constant(f.group))); });
    multiplyLists(task);
    transposeRest(task, columns, p);
  });
  return isSplit;
}

/// Whether so many pairs of the panels' first groups leave 16 bits that a list of them takes longer than products of
/// 16-bit integers: for a vector of a group by a row those are `ofWords` instructions more.
Value ByteEmission::wantsWords(const ContractionTask &task, ArrayRef<Value> panelsOfTile, Value groups) {
  constexpr int64_t ofWords = 3, ofEntries = 8, ofList = 120; // by a row in all lanes, or once
  OpBuilder &b = e.builder;
  Value samples = i.min(groups, i.constant(groupsSampled));
  auto countPairs = [&](Value group, ValueRange carried) -> SmallVector<Value> {
    Value largest = largestOfGroup(group), sum = carried.front();
    for (Value panel : panelsOfTile) {
      SmallVector<Value> masks;
      for (int64_t column = 0; column < panelWidth; column += lanes)
        masks.push_back(pairLeaves(loadWeights(task, panel, group, column), largest));
      Type bits = b.getIntegerType(unsigned(pairsOfGroup * panelWidth));
      Value pairs = LLVM::BitcastOp::create(b, e.loc, bits, join(e, masks));
      Value count = LLVM::CtPopOp::create(b, e.loc, bits, pairs);
      sum = i.add(sum, arith::ExtUIOp::create(b, e.loc, b.getI64Type(), count));
    }
    return {sum};
  };
  Value entries = e.createLoop(i.constant(0), samples, 1, i.constant(0), countPairs).front();
  int64_t vectorsOfGroup = int64_t(panelsOfTile.size()) * panelWidth / lanes;
  Value ofEntry = i.add(i.mul(task.rows, i.constant(ofEntries)), i.constant(ofList * lanes));
  Value ofSample = i.mul(task.rows, i.constant(ofWords * vectorsOfGroup * lanes));
  return i.compare(arith::CmpIPredicate::sgt, i.mul(entries, ofEntry), i.mul(samples, ofSample));
}

/// A panel's copy in words of 16-bit integers.
void ByteEmission::widenPanel(const ContractionTask &task, int64_t p, Value from, Value groups) {
  Value size = i.mul(value(f.bytes.rows), i.constant(wordsOfGroup * panelWidth));
  Value to = e.getAddress(byteColumns, accumulator, i.mul(size, i.constant(p)));
  loop(i.constant(0), groups, 1, [&](Value group) {
    for (int64_t column = 0; column < panelWidth; column += lanes) {
      auto [even, odd] = splitBytes(e, loadWeights(task, from, group, column), /*isSigned=*/true);
      Value place = i.add(i.mul(group, i.constant(wordsOfGroup * panelWidth)), i.constant(column));
      e.createStore(even, e.getAddress(to, accumulator, place));
      e.createStore(odd, e.getAddress(to, accumulator, i.add(place, i.constant(panelWidth))));
    }
  });
}

void ByteEmission::copyColumns(const ContractionTask &task, const ColumnClass &columns, Value panel, Value kLower,
                               Value kUpper) {
  Value lower = groupsTo(kLower), groups = i.sub(groupsTo(kUpper), lower), width = i.constant(panelWidth);
  for (int64_t at = 0; at < panelWidth; at += lanes)
    e.createStore(c.zeroSum(), e.getAddress(zeroRow, accumulator, i.constant(at)));
  SmallVector<Value> panelsOfTile;
  Value fits = i.constant(e.builder.getBoolAttr(!c.convertsWeight()));
  for (int64_t p = 0; p < columns.panels; ++p) {
    Value from = c.panelAddress(task, i.add(panel, i.constant(p)), kLower);
    panelsOfTile.push_back(e.getAddress(from, accumulator, i.mul(lower, width)));
    if (!c.convertsWeight())
      fits = addsFour(task, panelsOfTile.back(), groups, fits);
  }
  Value none = i.constant(e.builder.getBoolAttr(false));
  SmallVector<Type> flags(panelsOfTile.size(), none.getType());
  auto copyPanels = [&](bool inWords) {
    SmallVector<Value> found(panelsOfTile.size(), none);
    if (inWords)
      onceForRows(isWidened, [&] { widenRows(task.rows, i.mul(groups, i.constant(f.group))); });
    for (auto [p, from] : llvm::enumerate(panelsOfTile))
      if (inWords)
        widenPanel(task, int64_t(p), from, groups);
      else
        found[p] = copyPanel(task, columns, int64_t(p), from, groups);
    return found;
  };
  SmallVector<Type> allFlags(flags);
  allFlags.push_back(none.getType());
  SmallVector<Value> areSplit = e.emitChoice(fits, allFlags, [&](bool isInPlace) {
    if (isInPlace)
      return SmallVector<Value>(allFlags.size(), none);
    Value inWords = wantsWords(task, panelsOfTile, groups);
    SmallVector<Value> found = e.emitChoice(inWords, flags, copyPanels);
    found.push_back(inWords);
    return found;
  });
  Value inWords = areSplit.pop_back_val();
  columnTile = {.inPlace = panelsOfTile.front(), .addsFour = fits, .inWords = inWords, .rests = {}};
  for (auto [p, isSplit] : llvm::enumerate(areSplit)) {
    Value own = e.getAddress(restOfRows, accumulator, i.constant(int64_t(p) * panelWidth));
    Value pitch = i.select(isSplit, i.constant(columns.panels * panelWidth), i.constant(0));
    columnTile.rests.push_back({i.select(isSplit, own, zeroRow), pitch});
  }
}

//===----------------------------------------------------------------------===//
// What was taken out
//===----------------------------------------------------------------------===//

/// Two entries by the rows of a vector of bytes.
SmallVector<Value> ByteEmission::multiplyEntries(Value entry, Value row, ValueRange sums) {
  OpBuilder &b = e.builder;
  int64_t words = e.level.lanesOf(16);
  Value weights = e.createLoad(b.getI16Type(), 2, e.getAddress(listWeights, b.getI16Type(), entry));
  weights = e.splat(LLVM::BitcastOp::create(b, e.loc, accumulator, weights), lanes);
  SmallVector<Value> rows, next;
  for (int64_t at : {0, 1}) {
    Value place = e.getAddress(listPlaces, b.getI64Type(), i.add(entry, i.constant(at)));
    rows.push_back(e.getAddress(turnedRows, f.lhs.element,
                                arith::AddIOp::create(b, e.loc, e.createLoad(b.getI64Type(), 1, place), row)));
  }
  for (size_t at = 0; at < sums.size(); at += 2) {
    SmallVector<Value> own;
    for (Value first : rows) {
      Value from = e.getAddress(first, f.lhs.element, i.constant(int64_t(at) / 2 * words));
      Value bytes = e.createLoad(f.lhs.element, words, from);
      own.push_back(arith::ExtUIOp::create(b, e.loc, VectorType::get(words, b.getI16Type()), bytes));
    }
    auto [low, high] = interleave(e, own[0], own[1], squareSize / 2);
    next.push_back(createPairDot(e, low, weights, sums[at]));
    next.push_back(createPairDot(e, high, weights, sums[at + 1]));
  }
  return next;
}

/// Each column's list by all rows of the task.
void ByteEmission::multiplyLists(const ContractionTask &task) {
  OpBuilder &b = e.builder;
  int64_t together = e.level.lanesOf(8);
  auto type = VectorType::get({lanes}, accumulator);
  Value zero = i.constant(cast<TypedAttr>(b.getZeroAttr(type)));
  loop(i.constant(0), i.constant(panelWidth), 1, [&](Value column) {
    Value count = e.createLoad(b.getI64Type(), 1, e.getAddress(listCounts, b.getI64Type(), column));
    Value first = i.mul(column, value(f.bytes.listSize)), last = i.add(first, count);
    e.createStore(i.constant(0), e.getAddress(listPlaces, b.getI64Type(), last));
    e.createStore(i.constant(b.getI16IntegerAttr(0)), e.getAddress(listWeights, b.getI16Type(), last));
    loop(i.constant(0), task.rows, together, [&](Value row) {
      SmallVector<Value> sums(size_t(together / lanes), zero);
      sums = e.createLoop(first, last, 2, sums,
                          [&](Value entry, ValueRange carried) { return multiplyEntries(entry, row, carried); });
      for (auto [at, sum] : llvm::enumerate(sums)) {
        Value place = i.add(i.mul(column, value(f.bytes.restPitch)), i.add(row, i.constant(int64_t(at) * lanes)));
        e.createStore(sum, e.getAddress(restOfColumns, accumulator, place));
      }
    });
  });
}

/// As panel p of the tile's rows.
void ByteEmission::transposeRest(const ContractionTask &task, const ColumnClass &columns, int64_t p) {
  loop(i.constant(0), task.rows, lanes, [&](Value row) {
    for (int64_t part = 0; part < panelWidth; part += lanes) {
      SmallVector<Value> square;
      for (int64_t column = part; column < part + lanes; ++column) {
        Value place = i.add(i.mul(i.constant(column), value(f.bytes.restPitch)), row);
        square.push_back(e.createLoad(accumulator, lanes, e.getAddress(restOfColumns, accumulator, place)));
      }
      transposeSquare(e, square);
      for (auto [at, vector] : llvm::enumerate(square)) {
        Value place = i.mul(i.add(row, i.constant(int64_t(at))), i.constant(columns.panels * panelWidth));
        place = i.add(place, i.constant(p * panelWidth + part));
        e.createStore(vector, e.getAddress(restOfRows, accumulator, place));
      }
    }
  });
}

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

/// Of a tile that adds up so many pairs.
TileOperands ByteEmission::byteOperands(const ContractionTask &task, const ContractionTile &tile, int64_t addedPairs) {
  Type byte = f.lhs.element;
  Value width = i.constant(panelWidth), group = i.constant(f.group);
  Value lower = groupsTo(tile.kLower), pitch = value(f.bytes.pitch);
  TileOperands operands{.accumulator = accumulator, .aElement = byte, .bElement = accumulator, .group = f.group};
  operands.addedPairs = addedPairs;
  bool isInPlace = addedPairs > 1;
  operands.panelStride = isInPlace ? c.panelWords() : i.mul(value(f.bytes.rows), width);
  Value panels = isInPlace ? columnTile.inPlace : byteColumns;
  operands.panels = e.getAddress(panels, accumulator, i.sub(i.constant(0), i.mul(lower, width)));
  operands.loops.push_back({.lower = lower, .upper = groupsTo(tile.kUpper), .aStride = group, .bStride = width});
  Value skipped = i.mul(lower, group); // copies start at kLower
  Value first = e.getAddress(byteRows, byte, i.sub(i.mul(i.sub(tile.row, task.firstRow), pitch), skipped));
  operands.rowAddresses = [=, this, count = tile.rows.height](ValueRange) {
    return c.addressesApart(first, byte, count, pitch);
  };
  return operands;
}

/// Of a tile of 16-bit integers.
TileOperands ByteEmission::wideOperands(const ContractionTask &task, const ContractionTile &tile) {
  Type wide = e.builder.getI16Type();
  Value width = i.constant(panelWidth), words = i.constant(wordsOfGroup), pitch = value(f.bytes.widePitch);
  Value lower = i.mul(groupsTo(tile.kLower), words), upper = i.mul(groupsTo(tile.kUpper), words);
  TileOperands operands{.accumulator = accumulator, .aElement = wide, .bElement = accumulator, .group = termsOfWord};
  operands.panelStride = i.mul(value(f.bytes.rows), i.mul(words, width));
  operands.panels = e.getAddress(byteColumns, accumulator, i.sub(i.constant(0), i.mul(lower, width)));
  operands.loops.push_back({.lower = lower, .upper = upper, .aStride = i.constant(termsOfWord), .bStride = width});
  Value skipped = i.mul(lower, i.constant(termsOfWord)); // copies start at kLower
  Value first = e.getAddress(wideRows, wide, i.sub(i.mul(i.sub(tile.row, task.firstRow), pitch), skipped));
  operands.rowAddresses = [=, this, count = tile.rows.height](ValueRange) {
    return c.addressesApart(first, wide, count, pitch);
  };
  return operands;
}

SmallVector<Value> ByteEmission::multiply(const ContractionTask &task, const ContractionTile &tile, ValueRange init) {
  TileShape shape = c.shapeOf(tile);
  auto multiplyCopies = [&](bool inWords) {
    return inWords ? emitRegisterTile(e, shape, wideOperands(task, tile), init)
                   : emitRegisterTile(e, shape, byteOperands(task, tile, /*addedPairs=*/1), startOf(task, tile, init));
  };
  auto multiplyAny = [&](bool addsFour) {
    return addsFour ? emitRegisterTile(e, shape, byteOperands(task, tile, /*addedPairs=*/2), init)
                    : e.emitChoice(columnTile.inWords, c.sumTypes(tile), multiplyCopies);
  };
  return c.convertsWeight() ? multiplyAny(false) : e.emitChoice(columnTile.addsFour, c.sumTypes(tile), multiplyAny);
}

SmallVector<Value> ByteEmission::startOf(const ContractionTask &task, const ContractionTile &tile, ValueRange init) {
  SmallVector<Value> result;
  Value first = i.sub(tile.row, task.firstRow);
  for (int64_t r = 0; r < tile.rows.height; ++r)
    for (const TileVector &vector : getTileVectors(tile.columns.panels, tile.columns.lastColumns, lanes)) {
      const RestOfPanel &own = columnTile.rests[size_t(vector.column / panelWidth)];
      Value place = i.add(i.mul(i.add(first, i.constant(r)), own.pitch), i.constant(vector.column % panelWidth));
      Value rest = e.createLoad(accumulator, vector.lanes, e.getAddress(own.first, accumulator, place));
      result.push_back(init.empty() ? rest : arith::AddIOp::create(e.builder, e.loc, init[result.size()], rest));
    }
  return result;
}
