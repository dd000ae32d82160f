//===- CpuContractionPatches.cpp - windows of 3x3 bytes, 4x4 outputs at once ===//
//
// Problem. Where no instruction multiplies four bytes and adds them up, a window of nine pixels takes nine products of
// bytes a channel, and each is three instructions for four of them or five for eight (CpuContractionBytes.cpp).
//
// Idea. Winograd's algorithm F(4x4, 3x3) in whole numbers: 4 x 4 outputs that lie side by side, a patch, take 36
// products of 16-bit integers for each channel, not 144,
//
//   Y = A^T [ (G g G^T) * (B^T d B) ] A      g: 3 x 3 weights, d: 6 x 6 pixels, Y: 4 x 4 outputs
//
// at the points 0, 1, -1, 2, -2 and infinity along both dims. Rows of G are multiplied by what makes them integers
// (4, 6, 6, 24, 24, 1) and columns of A^T by the rest of 24, so that all is exact:
//
//   pixels   of 0 to 255 become at most 68 * 255 in magnitude, weights at most 49 * 128: 16 bits hold both
//   sums     are those of the integers modulo 2^32, whatever overflows on the way. They hold 24 * 24 Y. Multiplied by
//            the inverse of 9 that is 64 Y, of which a shift leaves Y, if 64 Y has room: of `mostPatchTerms` channels
//            at most. So channels are added up in blocks, whose transformed weights stay in the caches nearby
//
// A task is a block of patches and of columns. Its pixels are transformed once, [patch][point][outer dims of k,
// channel]. For each panel and block of channels weights are transformed, [point][channel][16], and multiplied, point
// by point, to [patch][point][16]; what that comes to is added to the outputs, [patch][4 x 4][16]. Where the height or
// the width of the image is no multiple of four the last patches begin four pixels before its end; outputs that they
// share with those before are left out.
//
// A group of four bytes becomes two words of 16-bit integers in both operands: its even bytes, its odd ones. So weights
// need shifts alone, and pixels one shuffle of the vector of bytes before they are widened.
//
// Cost. Transforms of weights are a third of the time where a task has four patches, a tenth at 16. Refused: products
// of sums, (a0 + b1) (a1 + b0), which take half as many multiplications and what rows and columns alone come to beside
// them (S. Winograd, A New Algorithm for Inner Product, 1968): 1.00 to 1.18 of the time.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuContractionPatches.h"
#include "codegen/cpu/CpuContractionConvert.h"
#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuContractionEpilogue.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t groupsAhead = 1; // whose weights are fetched: of nine places far apart
static constexpr int64_t windowLoops = 3; // over k: of the window, and of channels

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

/// What a transform makes of each line of a square, and then of each column of that.
static SmallVector<Value> alongBoth(ArrayRef<Value> square, int64_t side,
                                    llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> transform) {
  SmallVector<SmallVector<Value>> lines;
  for (int64_t line = 0; line < side; ++line)
    lines.push_back(transform(square.slice(size_t(line * side), size_t(side))));
  size_t size = lines.front().size();
  SmallVector<Value> result(size * size);
  for (size_t column = 0; column < size; ++column) {
    SmallVector<Value> values = llvm::map_to_vector(lines, [&](ArrayRef<Value> line) { return line[column]; });
    for (auto [line, value] : llvm::enumerate(transform(values)))
      result[line * size + column] = value;
  }
  return result;
}

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

/// G g, each row as integers, those of 1 and -1 negated, for several g side by side: point by point, so that few values
/// are alive at a time.
static void forEachPoint(const Terms &t, ArrayRef<SmallVector<Value>> g,
                         llvm::function_ref<void(int64_t point, ArrayRef<Value> weights)> body) {
  using Values = SmallVector<Value>;
  auto zipped = [](const Values &x, const Values &y, llvm::function_ref<Value(Value, Value)> combine) {
    return llvm::map_to_vector(llvm::zip_equal(x, y),
                               [&](auto both) { return combine(std::get<0>(both), std::get<1>(both)); });
  };
  auto add = [&](Value x, Value y) { return t.add(x, y); };
  auto sub = [&](Value x, Value y) { return t.sub(x, y); };
  body(0, g[0]);
  body(5, g[2]);
  Values near = zipped(g[0], g[2], add);
  body(1, zipped(near, g[1], add));
  body(2, zipped(near, g[1], sub));
  Values far = zipped(g[0], g[2], [&](Value x, Value y) { return t.add(x, t.shifted(y, 2)); });
  Values twice = llvm::map_to_vector(g[1], [&](Value x) { return t.shifted(x, 1); });
  body(3, zipped(far, twice, add));
  body(4, zipped(far, twice, sub));
}

/// 24 A^T m, of products at 1 and -1 that are negated.
static SmallVector<Value> fromPoints(const Terms &t, ArrayRef<Value> m) {
  Value nearSum = t.shifted(t.add(m[1], m[2]), 2), nearDifference = t.shifted(t.sub(m[1], m[2]), 2);
  Value farSum = t.add(m[3], m[4]), farDifference = t.shifted(t.sub(m[3], m[4]), 1);
  Value first = t.shifted(t.add(t.shifted(m[0], 1), m[0]), 1), last = t.shifted(t.add(t.shifted(m[5], 1), m[5]), 3);
  return {t.add(t.sub(first, nearSum), farSum), t.sub(farDifference, nearDifference),
          t.sub(t.shifted(farSum, 2), nearSum), t.add(t.sub(t.shifted(farDifference, 2), nearDifference), last)};
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

//===----------------------------------------------------------------------===//
// Patches
//===----------------------------------------------------------------------===//

PatchEmission::PatchEmission(ContractionEmission &contraction)
    : ContractionTechnique(contraction), pixelCopies(c.scratchAt(f.patches.pixelsAt)),
      pointWeights(c.scratchAt(f.patches.weightsAt)), pointProducts(c.scratchAt(f.patches.productsAt)),
      outputSums(c.scratchAt(f.patches.outputsAt)) {}

PatchEmission::Place PatchEmission::placeOf(Value patch) {
  int64_t height = f.domain[f.firstN() - 2].getValue(), width = f.domain[f.firstN() - 1].getValue();
  Value ofImage = i.constant(f.patches.ofImage), across = i.constant(f.patches.across);
  Value image = i.floorDiv(patch, ofImage, true), rest = i.mod(patch, ofImage, true);
  auto along = [&](Value number, int64_t extent) {
    Value next = i.mul(number, i.constant(patchSize)), first = i.min(next, i.constant(extent - patchSize));
    return std::pair(first, i.sub(next, first));
  };
  auto [line, sharedLines] = along(i.floorDiv(rest, across, true), height);
  auto [column, sharedColumns] = along(i.mod(rest, across, true), width);
  Value row = i.add(i.mul(i.add(i.mul(image, i.constant(height)), line), i.constant(width)), column);
  return {row, sharedLines, sharedColumns};
}

/// Where the 6 x 6 pixels of a patch are, in its lines, by what the loops over k outside of the window are at.
RowAddresses PatchEmission::pixelsOf(const ContractionTask &task, Value row) {
  SmallVector<RowAddresses> lines;
  for (int64_t line = 0; line < patchSize; ++line) {
    Value first = i.add(row, i.mul(i.constant(line), value(f.domain[f.firstN() - 1])));
    lines.push_back(c.rowAddresses(task, RowClass{.height = patchSize}, first));
  }
  return [=, this](ValueRange outside) {
    SmallVector<Value> pixels, outer(outside);
    for (int64_t line = 0; line < patchSide; ++line) {
      int64_t lineTap = std::min(line, patchTaps - 1);
      outer.push_back(i.constant(lineTap));
      for (int64_t tap = 0; tap < patchTaps; ++tap) {
        outer.push_back(i.constant(tap));
        SmallVector<Value> outputs = lines[size_t(line - lineTap)](outer);
        pixels.append(outputs.begin(), tap + 1 == patchTaps ? outputs.end() : outputs.begin() + 1);
        outer.pop_back();
      }
      outer.pop_back();
    }
    return pixels;
  };
}

void PatchEmission::transformPixels(const ContractionTask &task) {
  Type wide = e.builder.getI16Type();
  Terms terms{e};
  int64_t step = std::min<int64_t>(e.level.lanesOf(16), patchChannels);
  loop(i.constant(0), task.rows, 1, [&](Value local) {
    RowAddresses addresses = pixelsOf(task, placeOf(i.add(task.firstRow, local)).row);
    Value copy = e.getAddress(pixelCopies, wide, i.mul(local, i.constant(f.patches.pitch)));
    SmallVector<Value> outer;
    auto transformTo = [&](Value to) {
      SmallVector<Value> from = addresses(outer);
      Value channels = i.mul(value(f.kLoops.back().extent), i.constant(f.group));
      loop(i.constant(0), channels, step, [&](Value channel) {
        SmallVector<Value> pixels;
        for (Value pixel : from)
          pixels.push_back(c.loadWords(e.getAddress(pixel, f.lhs.element, channel), step / f.group));
        auto transform = [&](ArrayRef<Value> d) { return toPoints(terms, d); };
        for (auto [point, pixel] : llvm::enumerate(alongBoth(pixels, patchSide, transform))) {
          Value at = i.add(i.constant(int64_t(point) * f.patches.terms), channel);
          e.createStore(pixel, e.getAddress(to, wide, at));
        }
      });
    };
    auto outerLoops = [&](auto &&self, Value to) -> void {
      const KLoop &kLoop = f.kLoops[outer.size()];
      if (outer.size() + windowLoops == f.kLoops.size())
        return transformTo(to);
      loop(i.constant(0), value(kLoop.extent), 1, [&](Value at) {
        outer.push_back(at);
        self(self, e.getAddress(to, wide, i.mul(at, value(termsOfOuter(kLoop)))));
        outer.pop_back();
      });
    };
    outerLoops(outerLoops, copy);
  });
}

/// Transformed terms between two steps of a loop over k outside of the window.
Expr PatchEmission::termsOfOuter(const KLoop &kLoop) {
  return (kLoop.bStride * f.group).floorDiv(patchTaps * patchTaps);
}

void PatchEmission::forEachBlock(llvm::function_ref<void(const Block &block)> body) {
  const PatchCopies &patches = f.patches;
  bool isWhole = patches.terms % patches.blockTerms == 0;
  loop(i.constant(0), i.constant(patches.blocks), 1, [&](Value block) {
    Value lower = i.mul(block, i.constant(patches.blockTerms));
    Value terms = i.constant(patches.blockTerms);
    if (!isWhole)
      terms = i.min(terms, i.sub(i.constant(patches.terms), lower));
    body({lower, i.floorDiv(terms, i.constant(f.group), true)});
  });
}

/// Of the block, [point][word][16].
void PatchEmission::transformWeights(const ContractionTask &task, Value panel, const Block &block) {
  Terms terms{e};
  Value lower = i.floorDiv(block.lower, i.constant(f.group), true);
  Value width = i.constant(panelWidth), inner = value(f.kLoops.back().extent);
  Value ofPanel = i.mul(i.floorDiv(c.k, i.constant(f.group), true), width);
  Value from = e.getAddress(e.getPointer(f.rhs.buffer), accumulator, i.mul(panel, ofPanel));
  loop(i.constant(0), block.groups, 1, [&](Value local) {
    Value group = i.add(lower, local), outer = i.floorDiv(group, inner, true);
    Value source = i.add(i.mul(i.mul(outer, i.constant(patchTaps * patchTaps)), inner), i.mod(group, inner, true));
    for (int64_t tap = 0; tap < patchTaps * patchTaps; ++tap) {
      Value at = i.mul(i.add(source, i.add(i.mul(i.constant(tap), inner), i.constant(groupsAhead))), width);
      createPrefetch(e, e.getAddress(from, accumulator, at));
    }
    for (int64_t part = 0; part < panelWidth; part += lanes)
      for (int64_t parity = 0; parity < wordsOfGroup; ++parity) {
        std::array<SmallVector<Value>, patchTaps> columns;
        for (int64_t tap = 0; tap < patchTaps * patchTaps; ++tap) { // loaded twice: registers hold those of one parity
          Value at = i.add(i.mul(i.add(source, i.mul(i.constant(tap), inner)), width), i.constant(part));
          Value bytes = e.createLoad(accumulator, lanes, e.getAddress(from, accumulator, at));
          auto [even, odd] = splitBytes(e, c.convertsWeight() ? WeightConverter(c, task).convertGroups(bytes) : bytes,
                                        /*isSigned=*/true);
          columns[size_t(tap % patchTaps)].push_back(parity ? odd : even);
        }
        Value word = i.mul(i.add(i.mul(local, i.constant(wordsOfGroup)), i.constant(parity)), width);
        forEachPoint(terms, columns, [&](int64_t column, ArrayRef<Value> weights) {
          auto lines = llvm::map_to_vector(weights, [](Value x) { return SmallVector<Value>{x}; });
          forEachPoint(terms, lines, [&](int64_t line, ArrayRef<Value> point) {
            int64_t offset = (line * patchSide + column) * f.patches.weightPitch + part;
            e.createStore(point.front(), e.getAddress(pointWeights, accumulator, i.add(word, i.constant(offset))));
          });
        });
      }
  });
}

/// The products of `height` patches at a point, from the task's patch `first` on.
void PatchEmission::multiplyTile(const Block &block, Value point, Value first, int64_t height) {
  Type wide = e.builder.getI16Type();
  const PatchCopies &patches = f.patches;
  TileOperands operands{.accumulator = accumulator, .aElement = wide, .bElement = accumulator, .group = termsOfWord};
  operands.panelStride = i.constant(patches.weightPitch);
  operands.panels = e.getAddress(pointWeights, accumulator, i.mul(point, operands.panelStride));
  operands.loops.push_back({.lower = i.constant(0),
                            .upper = i.mul(block.groups, i.constant(wordsOfGroup)),
                            .aStride = i.constant(termsOfWord),
                            .bStride = i.constant(panelWidth)});
  Value ofPoint = i.add(i.mul(point, i.constant(patches.terms)), block.lower);
  operands.rowAddresses = [&](ValueRange) {
    SmallVector<Value> addresses;
    for (int64_t r = 0; r < height; ++r) {
      Value at = i.add(i.mul(i.add(first, i.constant(r)), i.constant(patches.pitch)), ofPoint);
      addresses.push_back(e.getAddress(pixelCopies, wide, at));
    }
    return addresses;
  };
  TileShape shape{.rows = height, .panels = 1};
  SmallVector<Value> products = emitRegisterTile(e, shape, operands, {});
  SmallVector<TileVector> vectors = getTileVectors(1, panelWidth, lanes);
  for (auto [index, product] : llvm::enumerate(products)) {
    Value patch = i.add(first, i.constant(index / vectors.size()));
    Value slot = i.add(i.mul(patch, i.constant(patchPoints)), point);
    Value at = i.add(i.mul(slot, i.constant(panelWidth)), i.constant(vectors[index % vectors.size()].column));
    e.createStore(product, e.getAddress(pointProducts, accumulator, at));
  }
}

/// A block's products of all the task's patches: in tiles of one height, and before them some that are one higher.
void PatchEmission::multiplyBlock(const ContractionTask &task, const Block &block) {
  int64_t most = chooseTile(e.level, accumulator, TiledExtents(-1, panelWidth, -1)).height;
  Value tiles = i.floorDiv(i.add(task.rows, i.constant(most - 1)), i.constant(most), true);
  Value part = i.floorDiv(task.rows, i.max(tiles, i.constant(1)), true);
  Value larger = i.sub(task.rows, i.mul(tiles, part));
  loop(i.constant(0), i.constant(patchPoints), 1, [&](Value point) {
    for (int64_t height = most; height >= 1; --height) {
      Value isPart = i.compare(arith::CmpIPredicate::eq, part, i.constant(height));
      Value isLarger = i.compare(arith::CmpIPredicate::eq, part, i.constant(height - 1));
      Value offset = i.select(isPart, larger, i.constant(0));
      Value upper = i.select(isPart, tiles, i.select(isLarger, larger, i.constant(0)));
      loop(offset, upper, 1,
           [&](Value tile) { multiplyTile(block, point, i.add(i.mul(tile, i.constant(height)), offset), height); });
    }
  });
}

Value PatchEmission::outputsOf(Value local, int64_t output, const TileVector &vector) {
  Value at =
      i.add(i.mul(local, i.constant(patchOutputs * panelWidth)), i.constant(output * panelWidth + vector.column));
  return e.getAddress(outputSums, accumulator, at);
}

/// What the sums of the panel's outputs start from.
void PatchEmission::startOutputs(const ContractionTask &task, Value panel) {
  ColumnClass columns{.panels = 1, .offset = 0};
  SmallVector<Value> start = c.epilogue->initialSums(task, RowClass{.height = 1}, columns, panel);
  loop(i.constant(0), task.rows, 1, [&](Value local) {
    for (auto [index, vector] : llvm::enumerate(getTileVectors(1, panelWidth, lanes)))
      for (int64_t output = 0; output < patchOutputs; ++output)
        e.createStore(start.empty() ? c.zeroSum() : start[index], outputsOf(local, output, vector));
  });
}

/// Adds up what a block's products come to.
void PatchEmission::addToOutputs(const ContractionTask &task) {
  constexpr uint64_t inverseOfNine = 0x38e38e39; // modulo 2^32
  Terms terms{e};
  auto transform = [&](ArrayRef<Value> m) { return fromPoints(terms, m); };
  loop(i.constant(0), task.rows, 1, [&](Value local) {
    Value products = e.getAddress(pointProducts, accumulator, i.mul(local, i.constant(patchPoints * panelWidth)));
    for (const TileVector &vector : getTileVectors(1, panelWidth, lanes)) {
      SmallVector<Value> points;
      for (int64_t point = 0; point < patchPoints; ++point)
        points.push_back(e.createLoad(
            accumulator, lanes, e.getAddress(products, accumulator, i.constant(point * panelWidth + vector.column))));
      for (auto [output, sum] : llvm::enumerate(alongBoth(points, patchSide, transform))) {
        sum = arith::MulIOp::create(e.builder, e.loc, sum, terms.splat(sum, int64_t(inverseOfNine)));
        sum = arith::ShRSIOp::create(e.builder, e.loc, sum, terms.splat(sum, patchBits));
        Value to = outputsOf(local, int64_t(output), vector);
        e.createStore(terms.add(sum, e.createLoad(accumulator, lanes, to)), to);
      }
    }
  });
}

/// What becomes of the outputs that patches do not share with those before them.
void PatchEmission::finish(const ContractionTask &task, Value panel) {
  Value column = i.mul(panel, i.constant(panelWidth)), columnEnd = i.add(column, i.constant(panelWidth));
  Value size = i.constant(patchSize), width = value(f.domain[f.firstN() - 1]);
  TileVector first{0, lanes};
  loop(i.constant(0), task.rows, 1, [&](Value local) {
    Place place = placeOf(i.add(task.firstRow, local));
    loop(place.sharedLines, size, 1, [&](Value line) {
      Value output = i.add(i.mul(line, size), place.sharedColumns);
      Value own = e.getAddress(outputsOf(local, 0, first), accumulator, i.mul(output, c.sumsPitch));
      Value row = i.add(i.add(place.row, i.mul(line, width)), place.sharedColumns);
      c.epilogue->emitOnSums(task, own, row, i.sub(size, place.sharedColumns), column, columnEnd);
    });
  });
}

void PatchEmission::emit(const ContractionTask &task) {
  loop(task.firstPanel, task.endPanel, 1, [&](Value panel) {
    startOutputs(task, panel);
    forEachBlock([&](const Block &block) {
      transformWeights(task, panel, block);
      multiplyBlock(task, block);
      addToOutputs(task);
    });
    finish(task, panel);
  });
}
