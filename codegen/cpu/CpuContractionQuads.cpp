//===- CpuContractionQuads.cpp - windows of three bytes, four outputs at once ===//
//
// Problem. Where no instruction multiplies bytes, a product of 8-bit integers takes as many instructions as one of
// 16-bit integers, whose range it does not use.
//
// Idea. Winograd's algorithm along one dim, F(4, 3): four outputs that follow each other in a row of the image, a quad,
// take six products for each row of the window and each channel, not twelve,
//
//   Y = A^T [ (G g) * (B^T d) ]      g: three weights in a row, d: six pixels, Y: four outputs
//
// at the points 0, 1, -1, 2, -2 and infinity. Rows of G are multiplied by what makes them integers (4, 6, 6, 24, 24, 1)
// and columns of A^T by the rest of 24, so that all is exact:
//
//   pixels   of 0 to 255 become at most 8 * 255 in magnitude, weights at most 7 * 128: 16 bits hold both
//   sums     are those of the integers modulo 2^32, whatever overflows on the way. They hold 24 Y. A multiplication by
//            the inverse of 3 leaves 8 Y, a shift Y, if 8 Y has room: so many terms the sum may have, `mostTerms`
//
// Two dims at once (4x4 pixels for 2x2 outputs) would take 2.25 times fewer products, not 2, and twice the transforms.
//
// A task is a block of quads and of columns. Its pixels are transformed once, [quad][point][window row, channel], a
// panel of weights for each task, [point][window row, channel][16]. Of a row whose length is no multiple of four the
// last quad begins four pixels before its end; outputs that it shares with the one before are left out.
//
// A group of four bytes becomes two words of 16-bit integers in both operands: its even bytes, its odd ones. So weights
// need shifts alone, and pixels one shuffle of the vector of bytes before they are widened.
//
// Two products for four. On processors with fewer units for multiplications than for additions words are added before
// they are multiplied (S. Winograd, A New Algorithm for Inner Product, 1968):
//
//   (a0 + b1) (a1 + b0) = a0 b0 + a1 b1 + a0 a1 + b0 b1
//
// 16 bits hold the sums. What the last two terms come to is told by the row and by the column alone; it is added up
// beside the transforms, and subtracted where a tile's sums start. Modulo 2^32 the results are the same integers.
// Beside one product for each of two words a step has as many instructions, one multiplication and three additions in
// place of two each: a tile's loop takes 0.88 of the time on a processor with two units that multiply and four that
// add.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionEmission.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t fewestSummed = 128; // terms of products of sums: 64 took a tenth longer

namespace {
/// Sums of vectors of integers with small factors.
struct Terms {
  KernelEmitter &e;
  Value add(Value x, Value y) const { return arith::AddIOp::create(e.builder, e.loc, x, y); }
  Value sub(Value x, Value y) const { return arith::SubIOp::create(e.builder, e.loc, x, y); }
  Value splat(Value like, int64_t value) const {
    auto type = cast<VectorType>(like.getType());
    APInt bits(type.getElementTypeBitWidth(), uint64_t(value), /*isSigned=*/false, /*implicitTrunc=*/true);
    return e.invariants.constant(cast<TypedAttr>(DenseElementsAttr::get(type, bits)));
  }
  /// x * 2^bits.
  Value shifted(Value x, int64_t bits) const { return arith::ShLIOp::create(e.builder, e.loc, x, splat(x, bits)); }
};
} // namespace

/// B^T d.
static SmallVector<Value> toPoints(const Terms &t, ArrayRef<Value> d) {
  auto five = [&](Value x) { return t.add(t.shifted(x, 2), x); };
  Value near = t.sub(d[4], t.shifted(d[2], 2)), odd = t.sub(d[3], t.shifted(d[1], 2));
  Value far = t.sub(d[4], d[2]), twice = t.shifted(t.sub(d[3], d[1]), 1);
  return {t.add(t.sub(t.shifted(d[0], 2), five(d[2])), d[4]),
          t.add(near, odd),
          t.sub(near, odd),
          t.add(far, twice),
          t.sub(far, twice),
          t.add(t.sub(t.shifted(d[1], 2), five(d[3])), d[5])};
}

/// G g, each row as integers.
static SmallVector<Value> weightsToPoints(const Terms &t, ArrayRef<Value> g) {
  Value outer = t.add(g[0], g[2]), far = t.add(g[0], t.shifted(g[2], 2)), twice = t.shifted(g[1], 1);
  return {g[0], t.sub(t.splat(g[0], 0), t.add(outer, g[1])), t.sub(g[1], outer), t.add(far, twice), t.sub(far, twice),
          g[2]};
}

/// 24 A^T m.
static SmallVector<Value> fromPoints(const Terms &t, ArrayRef<Value> m) {
  Value nearSum = t.shifted(t.add(m[1], m[2]), 2), nearDifference = t.shifted(t.sub(m[1], m[2]), 2);
  Value farSum = t.add(m[3], m[4]), farDifference = t.shifted(t.sub(m[3], m[4]), 1);
  Value first = t.shifted(t.add(t.shifted(m[0], 1), m[0]), 1), last = t.shifted(t.add(t.shifted(m[5], 1), m[5]), 3);
  return {t.add(t.add(first, nearSum), farSum), t.add(nearDifference, farDifference),
          t.add(nearSum, t.shifted(farSum, 2)), t.add(t.add(nearDifference, t.shifted(farDifference, 2)), last)};
}

//===----------------------------------------------------------------------===//
// Products of sums
//===----------------------------------------------------------------------===//

bool ContractionEmission::takesSums() const {
  return takesQuads() && e.level.multipliesSums() && f.k.asConstant().value_or(fewestSummed) / quadTaps >= fewestSummed;
}

Value ContractionEmission::loadWords(Value from, int64_t groups) {
  int64_t count = groups * f.group;
  Value bytes = e.createLoad(f.lhs.element, count, from);
  SmallVector<int32_t> order; // the even bytes of each group before the odd ones
  for (int64_t first = 0; first < count; first += f.group)
    for (int64_t parity : {0, 1})
      for (int64_t at = parity; at < f.group; at += wordsOfGroup)
        order.push_back(int32_t(first + at));
  bytes = LLVM::ShuffleVectorOp::create(e.builder, e.loc, bytes, bytes, order);
  return arith::ExtUIOp::create(e.builder, e.loc, VectorType::get(count, e.builder.getI16Type()), bytes);
}

Value ContractionEmission::zeroSum() {
  auto type = VectorType::get({lanes}, accumulator);
  return i.constant(cast<TypedAttr>(e.builder.getZeroAttr(type)));
}

Value ContractionEmission::sumOfLanes(Value vector) {
  for (int64_t half = lanes / 2; half; half /= 2) {
    SmallVector<int32_t> low = llvm::to_vector(llvm::seq<int32_t>(0, int32_t(half))), high;
    for (int32_t lane : low)
      high.push_back(lane + int32_t(half));
    Value x = LLVM::ShuffleVectorOp::create(e.builder, e.loc, vector, vector, low);
    Value y = LLVM::ShuffleVectorOp::create(e.builder, e.loc, vector, vector, high);
    vector = arith::AddIOp::create(e.builder, e.loc, x, y);
  }
  return LLVM::BitcastOp::create(e.builder, e.loc, accumulator, vector);
}

Value ContractionEmission::addProductsOfWords(Value words, Value sums) {
  int64_t count = cast<VectorType>(words.getType()).getNumElements() / 2; // words
  auto type = VectorType::get({count}, accumulator);
  Value first = LLVM::BitcastOp::create(e.builder, e.loc, type, words);
  Value zero = i.constant(cast<TypedAttr>(e.builder.getZeroAttr(type)));
  SmallVector<int32_t> own, others; // the second words under the first, beside zeros
  for (int32_t lane = 0; lane < int32_t(lanes); ++lane) {
    own.push_back(lane < count ? lane : int32_t(count));
    others.push_back(lane < count && lane % 2 == 0 ? lane + 1 : int32_t(count));
  }
  Value second = LLVM::ShuffleVectorOp::create(e.builder, e.loc, first, zero, others);
  first = LLVM::ShuffleVectorOp::create(e.builder, e.loc, first, zero, own);
  return createPairDot(e, first, second, sums);
}

SmallVector<Value> ContractionEmission::startOfSums(TileShape shape, Value rowSums, Value columnSums) {
  if (!takesSums())
    return {};
  SmallVector<Value> ofColumns, result;
  SmallVector<TileVector> vectors = getTileVectors(shape.panels, shape.lastColumns, lanes);
  for (const TileVector &vector : vectors)
    ofColumns.push_back(
        e.createLoad(accumulator, vector.lanes, e.getAddress(columnSums, accumulator, i.constant(vector.column))));
  for (int64_t r = 0; r < shape.rows; ++r) {
    Value ofRow = e.createLoad(accumulator, 1, e.getAddress(rowSums, accumulator, i.constant(r * quadPoints)));
    for (auto [c, vector] : llvm::enumerate(vectors)) {
      Value both = arith::AddIOp::create(e.builder, e.loc, e.splat(ofRow, vector.lanes), ofColumns[c]);
      Value zero = i.constant(cast<TypedAttr>(e.builder.getZeroAttr(both.getType())));
      result.push_back(arith::SubIOp::create(e.builder, e.loc, zero, both));
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Quads
//===----------------------------------------------------------------------===//

Value ContractionEmission::firstRowOfQuad(Value quad) {
  Value across = i.constant(f.quads.across), width = value(f.domain[f.firstN() - 1]);
  Value line = i.floorDiv(quad, across, true), at = i.mod(quad, across, true);
  Value column = i.min(i.mul(at, i.constant(quadSize)), i.sub(width, i.constant(quadSize)));
  return i.add(i.mul(line, width), column);
}

/// Outputs of a quad that the one before it has, too.
Value ContractionEmission::sharedOutputs(Value quad) {
  Value across = i.constant(f.quads.across), width = value(f.domain[f.firstN() - 1]);
  Value column = i.mul(i.mod(quad, across, true), i.constant(quadSize));
  return i.max(i.sub(column, i.sub(width, i.constant(quadSize))), i.constant(0));
}

void ContractionEmission::transformPixels(const ContractionTask &task) {
  Type wide = e.builder.getI16Type();
  Terms terms{e};
  int64_t step = std::min<int64_t>(e.level.lanesOf(16), quadChannels);
  loop(i.constant(0), task.rows, 1, [&](Value local) {
    Value row = firstRowOfQuad(i.add(task.firstRow, local));
    auto addresses = rowAddresses(task, RowClass{.height = quadSize}, row);
    SmallVector<Value> outer;
    auto pixelsOf = [&](Value to) {
      SmallVector<Value> from;
      for (int64_t tap = 0; tap < quadTaps; ++tap) {
        outer.push_back(i.constant(tap));
        SmallVector<Value> rows = addresses(outer);
        outer.pop_back();
        from.append(rows.begin(), tap + 1 == quadTaps ? rows.end() : rows.begin() + 1);
      }
      Value channels = i.mul(value(f.kLoops.back().extent), i.constant(f.group));
      loop(i.constant(0), channels, step, [&](Value channel) {
        SmallVector<Value> pixels;
        for (Value pixel : from)
          pixels.push_back(loadWords(e.getAddress(pixel, f.lhs.element, channel), step / f.group));
        for (auto [point, pixel] : llvm::enumerate(toPoints(terms, pixels))) {
          Value at = i.add(i.mul(i.constant(point), value(f.quads.terms)), channel);
          e.createStore(pixel, e.getAddress(to, wide, at));
        }
      });
    };
    auto outerLoops = [&](auto &&self, Value to) -> void {
      const KLoop &kLoop = f.kLoops[outer.size()];
      if (outer.size() + 2 == f.kLoops.size())
        return pixelsOf(to);
      loop(i.constant(0), value(kLoop.extent), 1, [&](Value at) {
        outer.push_back(at);
        self(self, e.getAddress(to, wide, i.mul(at, value(termsOfOuter(kLoop)))));
        outer.pop_back();
      });
    };
    Value pixels = e.getAddress(quadPixels, wide, i.mul(local, value(f.quads.pitch)));
    outerLoops(outerLoops, pixels);
    if (!takesSums())
      return;
    loop(i.constant(0), i.constant(quadPoints), 1, [&](Value point) {
      Value from = e.getAddress(pixels, wide, i.mul(point, value(f.quads.terms)));
      Value sum = e.createLoop(i.constant(0), value(f.quads.terms), step, zeroSum(),
                               [&](Value at, ValueRange carried) -> SmallVector<Value> {
                                 Value words = e.createLoad(wide, step, e.getAddress(from, wide, at));
                                 return {addProductsOfWords(words, carried.front())};
                               })
                      .front();
      Value at = i.add(i.mul(local, i.constant(quadPoints)), point);
      e.createStore(sumOfLanes(sum), e.getAddress(quadRowSums, accumulator, at));
    });
  });
}

/// Transformed terms between two steps of a loop over k outside of the three weights.
Expr ContractionEmission::termsOfOuter(const KLoop &kLoop) { return (kLoop.bStride * f.group).floorDiv(quadTaps); }

void ContractionEmission::transformWeights(const ContractionTask &task, Value panel) {
  Terms terms{e};
  Value width = i.constant(panelWidth), words = i.constant(wordsOfGroup);
  Value groups = i.floorDiv(k, i.constant(f.group), true), ofPoint = i.floorDiv(value(f.quads.terms), words, true);
  Value inner = value(f.kLoops.back().extent);
  Value from = e.getAddress(e.getPointer(f.rhs.buffer), accumulator, i.mul(i.mul(panel, groups), width));
  Value lines = i.floorDiv(groups, i.mul(inner, i.constant(quadTaps)), true);
  loop(i.constant(0), lines, 1, [&](Value line) {
    loop(i.constant(0), inner, 1, [&](Value group) {
      Value source = i.add(i.mul(i.mul(line, i.constant(quadTaps)), inner), group);
      Value target = i.mul(i.add(i.mul(line, inner), group), words);
      for (int64_t part = 0; part < panelWidth; part += lanes) {
        SmallVector<Value> even, odd;
        for (int64_t tap = 0; tap < quadTaps; ++tap) {
          Value at = i.add(i.mul(i.add(source, i.mul(i.constant(tap), inner)), width), i.constant(part));
          Value bytes = e.createLoad(accumulator, lanes, e.getAddress(from, accumulator, at));
          auto [low, high] = splitBytes(e, convertsWeight() ? convertedGroups(task, bytes) : bytes, /*isSigned=*/true);
          even.push_back(low);
          odd.push_back(high);
        }
        for (auto [parity, taps] : {std::pair(0, &even), std::pair(1, &odd)})
          for (auto [point, weights] : llvm::enumerate(weightsToPoints(terms, *taps))) {
            Value word = i.add(i.add(i.mul(i.constant(point), ofPoint), target), i.constant(parity));
            e.createStore(weights, e.getAddress(quadWeights, accumulator, i.add(i.mul(word, width), i.constant(part))));
          }
      }
    });
  });
}

/// The products of the two words of each group of transformed weights, added up.
void ContractionEmission::addUpWeights() {
  Value width = i.constant(panelWidth), words = i.floorDiv(value(f.quads.terms), i.constant(2), true);
  loop(i.constant(0), i.constant(quadPoints), 1, [&](Value point) {
    Value from = e.getAddress(quadWeights, accumulator, i.mul(i.mul(point, words), width));
    SmallVector<Value> sums(size_t(panelWidth / lanes), zeroSum());
    sums = e.createLoop(i.constant(0), words, wordsOfGroup, sums, [&](Value word, ValueRange carried) {
      SmallVector<Value> next;
      for (auto [index, sum] : llvm::enumerate(carried)) {
        Value at = i.add(i.mul(word, width), i.constant(int64_t(index) * lanes));
        Value even = e.createLoad(accumulator, lanes, e.getAddress(from, accumulator, at));
        Value odd = e.createLoad(accumulator, lanes, e.getAddress(from, accumulator, i.add(at, width)));
        next.push_back(createPairDot(e, even, odd, sum));
      }
      return next;
    });
    for (auto [index, sum] : llvm::enumerate(sums)) {
      Value at = i.add(i.mul(point, width), i.constant(int64_t(index) * lanes));
      e.createStore(sum, e.getAddress(quadColumnSums, accumulator, at));
    }
  });
}

/// The products of `height` quads at a point, from the task's quad `first` on.
void ContractionEmission::multiplyQuads(Value point, Value first, int64_t height) {
  Type wide = e.builder.getI16Type();
  Value width = i.constant(panelWidth), words = i.floorDiv(value(f.quads.terms), i.constant(2), true);
  Value pitch = value(f.quads.pitch), ofPoint = i.mul(point, value(f.quads.terms));
  int64_t wordsOfStep = takesSums() ? wordsOfGroup : 1;
  TileOperands operands{
      .accumulator = accumulator, .aElement = wide, .bElement = accumulator, .group = 2 * wordsOfStep};
  operands.panelStride = i.mul(words, width);
  operands.panels = e.getAddress(quadWeights, accumulator, i.mul(point, operands.panelStride));
  operands.loops.push_back({.lower = i.constant(0),
                            .upper = i.floorDiv(words, i.constant(wordsOfStep), true),
                            .aStride = i.constant(operands.group),
                            .bStride = i.constant(wordsOfStep * panelWidth)});
  operands.rowAddresses = [&](ValueRange) {
    SmallVector<Value> addresses;
    for (int64_t r = 0; r < height; ++r)
      addresses.push_back(e.getAddress(quadPixels, wide, i.add(i.mul(i.add(first, i.constant(r)), pitch), ofPoint)));
    return addresses;
  };
  TileShape shape{.rows = height, .panels = 1};
  Value rowSums = e.getAddress(quadRowSums, accumulator, i.add(i.mul(first, i.constant(quadPoints)), point));
  Value columnSums = e.getAddress(quadColumnSums, accumulator, i.mul(point, width));
  SmallVector<Value> init = startOfSums(shape, rowSums, columnSums);
  SmallVector<Value> products = emitRegisterTile(e, shape, operands, init);
  SmallVector<TileVector> vectors = getTileVectors(1, panelWidth, lanes);
  for (auto [index, product] : llvm::enumerate(products)) {
    Value quad = i.add(first, i.constant(index / vectors.size()));
    Value slot = i.add(i.mul(quad, i.constant(quadPoints)), point);
    Value at = i.add(i.mul(slot, width), i.constant(vectors[index % vectors.size()].column));
    e.createStore(product, e.getAddress(quadProducts, accumulator, at));
  }
}

/// Outputs from the products of the task's quads, and what becomes of them.
void ContractionEmission::finishQuads(const ContractionTask &task, Value panel) {
  constexpr uint64_t inverseOfThree = 0xaaaaaaab; // modulo 2^32
  Terms terms{e};
  Value column = i.mul(panel, i.constant(panelWidth));
  ColumnClass columns{.panels = 1, .offset = 0};
  SmallVector<Value> start = initialSums(task, RowClass{.height = 1}, columns, panel);
  loop(i.constant(0), task.rows, 1, [&](Value local) {
    Value products = e.getAddress(quadProducts, accumulator, i.mul(local, i.constant(quadPoints * panelWidth)));
    for (auto [index, vector] : llvm::enumerate(getTileVectors(1, panelWidth, lanes))) {
      SmallVector<Value> points;
      for (int64_t point = 0; point < quadPoints; ++point)
        points.push_back(e.createLoad(
            accumulator, lanes, e.getAddress(products, accumulator, i.constant(point * panelWidth + vector.column))));
      for (auto [output, sum] : llvm::enumerate(fromPoints(terms, points))) {
        sum = arith::MulIOp::create(e.builder, e.loc, sum, terms.splat(sum, int64_t(inverseOfThree)));
        sum = arith::ShRSIOp::create(e.builder, e.loc, sum, terms.splat(sum, 3));
        if (!start.empty())
          sum = terms.add(sum, start[index]);
        Value at = i.add(i.mul(i.constant(output), sumsPitch), i.constant(vector.column));
        e.createStore(sum, e.getAddress(sums, accumulator, at));
      }
    }
    Value quad = i.add(task.firstRow, local), shared = sharedOutputs(quad);
    Value own = e.getAddress(sums, accumulator, i.mul(shared, sumsPitch));
    emitEpilogueOnSums(task, own, i.add(firstRowOfQuad(quad), shared), i.sub(i.constant(quadSize), shared), column,
                       i.add(column, i.constant(panelWidth)));
  });
}

void ContractionEmission::emitQuads(const ContractionTask &task) {
  int64_t most =
      chooseTile(e.level, accumulator, TiledExtents(-1, panelWidth, -1), {.splitsGroups = takesSums()}).height;
  // Tiles of one height, and before them some that are one higher.
  Value tiles = i.floorDiv(i.add(task.rows, i.constant(most - 1)), i.constant(most), true);
  Value part = i.floorDiv(task.rows, i.max(tiles, i.constant(1)), true);
  Value larger = i.sub(task.rows, i.mul(tiles, part));
  loop(task.firstPanel, task.endPanel, 1, [&](Value panel) {
    transformWeights(task, panel);
    if (takesSums())
      addUpWeights();
    loop(i.constant(0), i.constant(quadPoints), 1, [&](Value point) {
      for (int64_t height = most; height >= 1; --height) {
        Value isPart = i.compare(arith::CmpIPredicate::eq, part, i.constant(height));
        Value isLarger = i.compare(arith::CmpIPredicate::eq, part, i.constant(height - 1));
        Value offset = i.select(isPart, larger, i.constant(0));
        Value upper = i.select(isPart, tiles, i.select(isLarger, larger, i.constant(0)));
        loop(offset, upper, 1,
             [&](Value tile) { multiplyQuads(point, i.add(i.mul(tile, i.constant(height)), offset), height); });
      }
    });
    finishQuads(task, panel);
  });
}
