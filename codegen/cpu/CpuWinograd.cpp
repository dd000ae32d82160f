//===- CpuWinograd.cpp - tasks of a Winograd convolution ------------------===//
//
// The loop nest of a task (a block of tiles of outputs, a block of columns), from the outside in:
//
//   for tile of outputs                   unless the task before had the same tiles
//     [for slice]                         of a window that has several
//     [copy the tile's pixels]            where some lie in the padding, or are not what a load yields
//     for channels, a vector at a time    B^T d B to scratch, [position][tile][channel]
//       [for plane of pixels]             of a volume: then along its depth, in place
//   for position                          a product of any other kind: rows are tiles, k is the channels
//     for column tile, row tile           the register tile; sums to scratch, [position][tile][column]
//   for tile of outputs
//     for columns, a vector at a time     A^T m A to scratch, [output][column]; of a volume first along its depth
//     for outputs that there are          epilogue
//
// Transforms. Positions along a dim are the points 0, p0, -p0, p1, -p1, ..., perhaps infinity, at which a polynomial
// with the pixels as coefficients is evaluated, transposed. Pairs of points share their even and odd halves: for +-p
// the even powers' sum E and the odd ones' O give E + pO and E - pO. So a side of 6 takes 12 fused multiply-adds. A
// window along one dim has tiles of one pixel and one output down, where nothing is transformed.
//
// Pixels outside the image that a tile at its lower or right edge would read do not exist: the last ones of its phase
// stand in for them, and the outputs that they enter are not stored.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuWinograd.h"
#include "codegen/cpu/CpuContractionEmission.h"
#include "codegen/cpu/CpuContractionEpilogue.h"
#include "ir/loop/Winograd.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

namespace {

/// A tile of outputs: its first one, all dims of the domain set for it. It may lie outside, as the last of a phase that
/// has fewer outputs than the first one.
struct OutputTile {
  EmissionPoint point;

  Value start(const WinogradSide &side) const { return point.dims[side.output]; }
};

/// Vectors in memory, so many elements apart.
struct Pixels {
  Value base;
  Value planeStep, rowStep, columnStep;
};

class WinogradEmission {
public:
  WinogradEmission(KernelEmitter &emitter, WinogradForm &form)
      : e(emitter), w(form), c(emitter, form.product), i(emitter.invariants), type(form.product.accumulator),
        pixels(c.scratchAt(w.pixelsAt)), sums(c.scratchAt(w.sumsAt)), patch(c.scratchAt(w.patchAt)),
        results(c.scratchAt(w.resultsAt)) {}

  void emit(Value begin, Value end);

private:
  OutputTile tileAt(const ContractionTask &task, Value local);
  void transformPixels(const ContractionTask &task);
  void transformTile(const ContractionTask &task, Value local, Value slice);
  Value liesInside(const OutputTile &tile);
  void copyPixels(const OutputTile &tile);
  Pixels pixelsOf(const OutputTile &tile);
  void transformPlane(const Pixels &source, Value target, Value channel, Value mask);
  void transformPlaneOfSums(Value source, Value target, Value column);
  void storeOutputs(const OutputTile &tile, Value firstColumn, Value columns);
  /// Along the depth of a volume, in place: vectors at `base`, `position` elements from one position to the next.
  void transformDepth(Value base, Value position, llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> transform);
  void multiply(const ContractionTask &task);
  Value panelsOfPosition() { return i.mul(c.value(w.product.batch), c.panels); }
  /// The task's group; a constant where there is one alone, which holds no register.
  Value groupOf(const ContractionTask &task) { return w.product.batch.isConstant(1) ? constant(0) : task.batch; }
  Value nextPanels(const ContractionTask &task, Value position, const ColumnClass &columns, Value panel);
  void multiplyTile(const ContractionTask &task, Value position, const RowClass &rows, const ColumnClass &columns,
                    Value rowTile, Value row, Value panel);
  void transformSums(const ContractionTask &task);
  /// Calls `body` with each number below `count`, without a loop where that is 1.
  void forEach(Value count, llvm::function_ref<void(Value)> body);

  // A side's transform.
  Value scaled(double factor, Value x, Value sum);
  SmallVector<Value> phaseToPoints(loop::WinogradTile phase, ArrayRef<Value> x);
  SmallVector<Value> phaseFromPoints(loop::WinogradTile phase, ArrayRef<Value> m);
  SmallVector<Value> toPoints(ArrayRef<Value> x);   // B^T x
  SmallVector<Value> fromPoints(ArrayRef<Value> m); // A^T m

  /// Positions of a plane, which are those of all tiles but volumes.
  int64_t square() const { return w.positions() / w.tile.planes(); }

  Value constant(int64_t value) { return i.constant(value); }
  Value address(Value base, Value index) { return e.getAddress(base, type, index); }
  Value extent(int64_t dim) { return c.value(w.product.domain[dim]); }

  KernelEmitter &e;
  WinogradForm &w;
  ContractionEmission c;
  InvariantBuilder &i;
  Type type;
  Value pixels, sums, patch, results;
};

} // namespace

//===----------------------------------------------------------------------===//
// Transforms of a side
//===----------------------------------------------------------------------===//

/// sum + factor * x; a null sum is 0.
Value WinogradEmission::scaled(double factor, Value x, Value sum) {
  if (factor == 1)
    return sum ? arith::AddFOp::create(e.builder, e.loc, sum, x).getResult() : x;
  if (factor == -1 && sum)
    return arith::SubFOp::create(e.builder, e.loc, sum, x);
  Attribute number = e.builder.getFloatAttr(type, factor);
  Value splat = i.constant(cast<TypedAttr>(DenseElementsAttr::get(cast<ShapedType>(x.getType()), number)));
  return sum ? createMultiplyAdd(e, splat, x, sum) : arith::MulFOp::create(e.builder, e.loc, splat, x).getResult();
}

/// Coefficients of the product of (s - p^2) over all points but `except`, from the constant one up.
static SmallVector<double> squaresBut(ArrayRef<double> points, int64_t except) {
  SmallVector<double> product{1};
  for (auto [at, p] : llvm::enumerate(points)) {
    if (int64_t(at) == except)
      continue;
    product.insert(product.begin(), 0);
    for (size_t k = 0; k + 1 < product.size(); ++k)
      product[k] -= p * p * product[k + 1];
  }
  return product;
}

/// B^T x of a phase.
SmallVector<Value> WinogradEmission::phaseToPoints(loop::WinogradTile phase, ArrayRef<Value> x) {
  if (phase.taps == 1)
    return SmallVector<Value>(x);
  ArrayRef<double> points = loop::getWinogradPoints(phase);
  auto polynomial = [&](ArrayRef<double> coefficients, size_t first) {
    Value sum = x[first + 2 * (coefficients.size() - 1)]; // the highest coefficient is 1
    for (auto [k, factor] : llvm::enumerate(coefficients.drop_back()))
      sum = scaled(factor, x[first + 2 * k], sum);
    return sum;
  };
  SmallVector<double> all = squaresBut(points, -1);
  SmallVector<Value> result{polynomial(all, 0)};
  for (auto [at, p] : llvm::enumerate(points)) {
    SmallVector<double> others = squaresBut(points, int64_t(at));
    Value even = polynomial(others, 2), odd = polynomial(others, 1);
    result.push_back(scaled(p, odd, even));
    result.push_back(scaled(-p, odd, even));
  }
  if (loop::hasInfinity(phase))
    result.push_back(polynomial(all, 1));
  return result;
}

/// A^T m of a phase.
SmallVector<Value> WinogradEmission::phaseFromPoints(loop::WinogradTile phase, ArrayRef<Value> m) {
  if (phase.taps == 1)
    return SmallVector<Value>(m);
  ArrayRef<double> points = loop::getWinogradPoints(phase);
  SmallVector<Value> sum, difference, result;
  for (size_t at = 0; at < points.size(); ++at) {
    Value plus = m[1 + 2 * at], minus = m[2 + 2 * at];
    sum.push_back(arith::AddFOp::create(e.builder, e.loc, plus, minus));
    difference.push_back(arith::SubFOp::create(e.builder, e.loc, plus, minus));
  }
  for (int64_t k = 0; k < phase.outputs; ++k) {
    bool isHighest = k == phase.outputs - 1 && loop::hasInfinity(phase);
    Value y = k == 0 ? m.front() : isHighest ? m.back() : Value();
    for (auto [at, p] : llvm::enumerate(points)) {
      double power = 1;
      for (int64_t factor = 0; factor < k; ++factor)
        power *= p;
      y = scaled(power, k % 2 ? difference[at] : sum[at], y);
    }
    result.push_back(y);
  }
  return result;
}

SmallVector<Value> WinogradEmission::toPoints(ArrayRef<Value> x) {
  if (x.size() == 1)
    return {x[0]};
  SmallVector<Value> result;
  for (int64_t number = 0; number < w.tile.stride; ++number) {
    SmallVector<Value> pixelsOfPhase;
    for (size_t at = size_t(number); at < x.size(); at += size_t(w.tile.stride))
      pixelsOfPhase.push_back(x[at]);
    llvm::append_range(result, phaseToPoints(w.tile.phase(number), pixelsOfPhase));
  }
  return result;
}

SmallVector<Value> WinogradEmission::fromPoints(ArrayRef<Value> m) {
  if (m.size() == 1)
    return {m[0]};
  SmallVector<Value> result;
  for (int64_t number = 0; number < w.tile.stride; ++number) {
    loop::WinogradTile phase = w.tile.phase(number);
    SmallVector<Value> ofPhase = phaseFromPoints(phase, m.take_front(phase.size()));
    m = m.drop_front(phase.size());
    if (result.empty())
      result = ofPhase;
    else
      for (auto [sum, value] : llvm::zip_equal(result, ofPhase))
        sum = scaled(1, value, sum);
  }
  return result;
}

void WinogradEmission::forEach(Value count, llvm::function_ref<void(Value)> body) {
  if (i.asConstant(count) == 1)
    body(constant(0));
  else
    c.loop(constant(0), count, 1, body);
}

//===----------------------------------------------------------------------===//
// Pixels
//===----------------------------------------------------------------------===//

OutputTile WinogradEmission::tileAt(const ContractionTask &task, Value local) {
  OutputTile tile{.point = c.taskPoint(task)};
  Value flat = i.add(task.firstRow, local);
  auto takeDigit = [&](Expr extent) {
    Value count = c.value(extent), digit = i.mod(flat, count, /*nonNegative=*/true);
    flat = i.floorDiv(flat, count, true);
    return digit;
  };
  auto takeOutput = [&](const WinogradSide &side) {
    Value output = i.mul(takeDigit(side.tiles), constant(side.outputs * side.dilation));
    return side.dilation == 1 ? output : i.add(output, takeDigit(side.phases));
  };
  SmallVector<const WinogradSide *> sides = w.sides();
  for (const WinogradSide *side : llvm::reverse(sides))
    tile.point.dims[side->output] = takeOutput(*side);
  c.setDims(tile.point, w.product.firstM(), w.firstOutput() - w.product.firstM(), flat);
  return tile;
}

/// All outputs of the tile exist, and no condition of the lhs fails for any of its pixels: conditions are affine, so
/// that the pixels at the corners decide.
Value WinogradEmission::liesInside(const OutputTile &tile) {
  auto fits = [&](Value start, const WinogradSide &side) {
    Value end = i.add(start, constant((side.outputs - 1) * side.dilation + 1));
    return i.compare(arith::CmpIPredicate::sle, end, extent(side.output));
  };
  SmallVector<const WinogradSide *> sides = w.sides();
  Value inside;
  for (const WinogradSide *side : llvm::reverse(sides)) {
    Value fitting = fits(tile.start(*side), *side);
    inside = inside ? i.logicalAnd(fitting, inside) : fitting;
  }
  if (!w.product.lhs.mask)
    return inside;
  for (size_t number = 0; number < size_t(1) << sides.size(); ++number) {
    EmissionPoint corner = tile.point;
    for (auto [at, side] : llvm::enumerate(sides)) {
      bool isFar = number >> (sides.size() - 1 - at) & 1;
      int64_t outputs = isFar ? side->outputs - 1 : 0;
      corner.dims[side->output] = i.add(corner.dims[side->output], constant(outputs * side->dilation));
      corner.dims[side->window] = constant(isFar ? side->taps - 1 : 0);
    }
    for (Expr condition : w.product.lhs.conditions()) {
      Value v = e.emitExpr(condition, corner);
      inside = i.logicalAnd(inside, i.compare(arith::CmpIPredicate::sge, v, constant(0)));
    }
  }
  return inside;
}

/// Evaluates the lhs into the patch, [plane][row][column][channel].
void WinogradEmission::copyPixels(const OutputTile &tile) {
  EmissionPoint point = tile.point;
  Value pitch = c.value(w.pixelsPitch);
  // Pixel `at` of the tile is that of an output and a window element that exist; `last`: the phase's last output, which
  // lies before the tile's first one if the tile is outside.
  auto set = [&](const WinogradSide &side, Value at) {
    if (side.output < 0)
      return;
    Value start = tile.start(side);
    Value last = i.sub(extent(side.output), constant(1)), apart = constant(side.dilation);
    if (side.dilation > 1)
      last = i.add(start, i.mul(i.floorDiv(i.sub(last, start), apart, /*nonNegative=*/false), apart));
    auto pixelOf = [&](Value output) { return i.mul(output, constant(side.step)); };
    Value most = i.add(pixelOf(last), constant((side.taps - 1) * side.dilation));
    Value place = i.min(i.add(pixelOf(start), i.mul(at, apart)), most);
    Value output = i.min(i.floorDiv(place, constant(side.step), /*nonNegative=*/true), last);
    point.dims[side.output] = output;
    point.dims[side.window] = i.floorDiv(i.sub(place, pixelOf(output)), apart, /*nonNegative=*/true);
  };
  auto copyLine = [&](Value place) {
    Value line = address(patch, i.mul(place, pitch));
    c.forEachVector(point, w.channel, constant(0), extent(w.channel), [&](const EmissionPoint &at, Value position) {
      e.createStore(e.splat(c.emitLhs(at), c.lanes), address(line, position));
    });
  };
  forEach(constant(w.deep.size()), [&](Value plane) {
    forEach(constant(w.down.size()), [&](Value row) {
      forEach(constant(w.across.size()), [&](Value column) {
        set(w.deep, plane);
        set(w.down, row);
        set(w.across, column);
        Value line = i.add(i.mul(plane, constant(w.down.size())), row);
        copyLine(i.add(i.mul(line, constant(w.across.size())), column));
      });
    });
  });
}

/// The tile's pixels, which are copied if need be: those of the first channel.
Pixels WinogradEmission::pixelsOf(const OutputTile &tile) {
  Value pitch = c.value(w.pixelsPitch), line = i.mul(constant(w.across.size()), pitch);
  Pixels source{patch, i.mul(constant(w.down.size()), line), line, pitch};
  if (!w.readsInPlace) {
    copyPixels(tile);
    return source;
  }
  Value inside = liesInside(tile);
  Value outside = i.compare(arith::CmpIPredicate::eq, inside, i.constant(e.builder.getBoolAttr(false)));
  c.emitIf(outside, [&] { copyPixels(tile); });
  EmissionPoint first = tile.point;
  for (int64_t dim = w.firstWindow(); dim <= w.channel; ++dim)
    first.dims[dim] = constant(0);
  Value place = c.addressInPlace(first);
  source.base = i.get<arith::SelectOp>(inside, place, patch);
  source.planeStep = i.select(inside, c.value(w.deep.stride), source.planeStep);
  source.rowStep = i.select(inside, c.value(w.down.stride), source.rowStep);
  source.columnStep = i.select(inside, c.value(w.across.stride), source.columnStep);
  return source;
}

void WinogradEmission::transformPlane(const Pixels &source, Value target, Value channel, Value mask) {
  Value plane = c.value(w.pixelsPlane);
  int64_t n = w.across.size();
  SmallVector<SmallVector<Value>> columns;
  for (int64_t x = 0; x < n; ++x) {
    SmallVector<Value> column;
    for (int64_t y = 0; y < w.down.size(); ++y) {
      Value row = address(source.base, i.add(i.mul(source.rowStep, constant(y)), channel));
      Value from = address(row, i.mul(source.columnStep, constant(x)));
      column.push_back(e.createLoad(type, c.lanes, from, mask));
    }
    columns.push_back(toPoints(column));
  }
  for (int64_t y = 0; y < w.down.size(); ++y) {
    SmallVector<Value> row;
    for (int64_t x = 0; x < n; ++x)
      row.push_back(columns[x][y]);
    for (auto [x, value] : llvm::enumerate(toPoints(row))) {
      Value at = i.add(i.mul(plane, constant(y * n + int64_t(x))), channel);
      e.createStore(value, address(target, at));
    }
  }
}

void WinogradEmission::transformDepth(Value base, Value position,
                                      llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> transform) {
  Value apart = i.mul(constant(square()), position);
  c.loop(constant(0), constant(square()), 1, [&](Value number) {
    Value place = address(base, i.mul(position, number));
    auto planeAt = [&](size_t plane) { return address(place, i.mul(apart, constant(int64_t(plane)))); };
    SmallVector<Value> vectors;
    for (size_t plane = 0; plane < size_t(w.tile.planes()); ++plane)
      vectors.push_back(e.createLoad(type, c.lanes, planeAt(plane)));
    for (auto [plane, value] : llvm::enumerate(transform(vectors)))
      e.createStore(value, planeAt(plane));
  });
}

void WinogradEmission::transformTile(const ContractionTask &task, Value local, Value slice) {
  Value pitch = c.value(w.pixelsPitch), plane = c.value(w.pixelsPlane);
  OutputTile tile = tileAt(task, local);
  c.setDims(tile.point, w.product.firstK(), w.firstWindow() - w.product.firstK(), slice);
  Pixels source = pixelsOf(tile);
  Value target = address(pixels, i.add(i.mul(local, pitch), i.mul(slice, extent(w.channel))));
  c.forEachVector(tile.point, w.channel, constant(0), extent(w.channel), [&](const EmissionPoint &at, Value channel) {
    forEach(constant(w.tile.planes()), [&](Value number) {
      Pixels ofPlane = source;
      ofPlane.base = address(source.base, i.mul(number, source.planeStep));
      Value first = i.mul(number, i.mul(constant(square()), plane));
      transformPlane(ofPlane, address(target, first), channel, at.mask);
    });
    if (w.tile.isVolume())
      transformDepth(address(target, channel), plane,
                     [&](ArrayRef<Value> x) { return phaseToPoints(w.tile.alongDepth(), x); });
  });
}

/// A vector behind the last channel of a slice goes beyond it, where the next slice or tile is stored later.
void WinogradEmission::transformPixels(const ContractionTask &task) {
  c.loop(constant(0), task.rows, 1, [&](Value local) {
    if (w.slices == 1)
      transformTile(task, local, constant(0));
    else
      c.loop(constant(0), constant(w.slices), 1, [&](Value slice) { transformTile(task, local, slice); });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// How many panels behind this column tile the next one lies: behind a task's last one its first, of the next position,
/// and behind the last position the next task's.
Value WinogradEmission::nextPanels(const ContractionTask &task, Value position, const ColumnClass &columns,
                                   Value panel) {
  Value width = constant(columns.panels), next = i.add(position, constant(1)), all = constant(w.positions());
  Value isLast = i.compare(arith::CmpIPredicate::sge, i.add(panel, width), task.endPanel);
  Value hasMore = i.compare(arith::CmpIPredicate::slt, next, all);
  Value stride = panelsOfPosition();
  Value ofPosition = i.sub(i.add(stride, task.firstPanel), panel);
  Value ofTask = i.sub(i.mod(task.endPanel, c.panels, true), i.add(i.mul(position, stride), panel));
  return i.select(isLast, i.select(hasMore, ofPosition, ofTask), width);
}

void WinogradEmission::multiplyTile(const ContractionTask &task, Value position, const RowClass &rows,
                                    const ColumnClass &columns, Value rowTile, Value row, Value panel) {
  ContractionForm &p = w.product;
  Value channels = c.value(p.k), pitch = c.value(w.pixelsPitch);
  Value local = i.sub(row, task.firstRow);
  TileShape shape{rows.height, columns.panels, c.split.unroll, columns.lastColumns};
  TileOperands operands{.accumulator = type, .aElement = type, .bElement = type};
  operands.panelStride = i.mul(channels, constant(panelWidth));
  Value flat = i.add(i.add(i.mul(position, panelsOfPosition()), i.mul(groupOf(task), c.panels)), panel);
  operands.panels = address(e.getPointer(p.rhs.buffer), i.mul(flat, operands.panelStride));
  if (c.isLoneRowTile(rows.height))
    operands.fetchedAhead =
        aheadOfStreams(e.level, e.level.followsStreams && p.rhs.streams, rows.height, columns.panels);
  else
    c.fetchNextPanels(operands, task, rowTile, columns.panels, constant(0), channels,
                      {nextPanels(task, position, columns, panel), constant(0)});
  operands.loops = {{constant(0), channels, constant(1), constant(panelWidth)}};
  Value first = address(pixels, i.add(i.mul(position, c.value(w.pixelsPlane)), i.mul(local, pitch)));
  operands.rowAddresses = [&](ValueRange) { return c.addressesApart(first, type, rows.height, pitch); };
  SmallVector<Value> products = emitRegisterTile(e, shape, operands, {});
  SmallVector<TileVector> vectors = getTileVectors(columns.panels, columns.lastColumns, c.lanes);
  Value column = i.mul(i.sub(panel, task.firstPanel), constant(panelWidth)), sumsPitch = c.value(w.sumsPitch);
  Value target = address(sums, i.add(i.mul(position, c.value(w.sumsPlane)), i.add(i.mul(local, sumsPitch), column)));
  for (int64_t r = 0; r < rows.height; ++r)
    for (auto [v, vector] : llvm::enumerate(vectors)) {
      Value at = i.add(i.mul(sumsPitch, constant(r)), constant(vector.column));
      e.createStore(products[size_t(r) * vectors.size() + v], address(target, at));
    }
}

void WinogradEmission::multiply(const ContractionTask &task) {
  c.loop(constant(0), constant(w.positions()), 1, [&](Value position) {
    c.forEachTile(task, [&](const RowClass &rows, const ColumnClass &columns, Value rowTile, Value row, Value panel) {
      multiplyTile(task, position, rows, columns, rowTile, row, panel);
    });
  });
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

void WinogradEmission::transformPlaneOfSums(Value source, Value target, Value column) {
  Value pitch = c.value(w.sumsPitch), plane = c.value(w.sumsPlane);
  int64_t n = w.across.size(), outputs = w.across.outputs;
  SmallVector<SmallVector<Value>> transformed;
  for (int64_t x = 0; x < n; ++x) {
    SmallVector<Value> m;
    for (int64_t y = 0; y < w.down.size(); ++y)
      m.push_back(e.createLoad(type, c.lanes, address(source, i.add(i.mul(plane, constant(y * n + x)), column))));
    transformed.push_back(fromPoints(m));
  }
  for (int64_t y = 0; y < w.down.outputs; ++y) {
    SmallVector<Value> row;
    for (int64_t x = 0; x < n; ++x)
      row.push_back(transformed[x][y]);
    for (auto [x, value] : llvm::enumerate(fromPoints(row)))
      e.createStore(value, address(target, i.add(i.mul(pitch, constant(y * outputs + int64_t(x))), column)));
  }
}

/// The epilogue of outputs that there are.
void WinogradEmission::storeOutputs(const OutputTile &tile, Value firstColumn, Value columns) {
  auto present = [&](const WinogradSide &side) {
    if (side.output < 0)
      return constant(1);
    Value left = i.sub(extent(side.output), tile.start(side));
    if (side.dilation > 1)
      left = i.floorDiv(i.add(left, constant(side.dilation - 1)), constant(side.dilation), /*nonNegative=*/false);
    return i.min(constant(side.outputs), left);
  };
  EmissionPoint point = tile.point;
  auto set = [&](const WinogradSide &side, Value at) {
    if (side.output >= 0)
      point.dims[side.output] = i.add(tile.start(side), i.mul(at, constant(side.dilation)));
  };
  forEach(present(w.deep), [&](Value z) {
    forEach(present(w.down), [&](Value y) {
      forEach(present(w.across), [&](Value x) {
        set(w.deep, z);
        set(w.down, y);
        set(w.across, x);
        Value row = i.add(i.mul(z, constant(w.down.outputs)), y);
        Value number = i.add(i.mul(row, constant(w.across.outputs)), x);
        c.epilogue->emitOnRow(point, address(results, i.mul(c.value(w.sumsPitch), number)), firstColumn, columns);
      });
    });
  });
}

void WinogradEmission::transformSums(const ContractionTask &task) {
  Value pitch = c.value(w.sumsPitch), plane = c.value(w.sumsPlane), width = constant(panelWidth);
  Value firstColumn = i.mul(task.firstPanel, width);
  Value columns = i.sub(i.min(i.mul(task.endPanel, width), c.n), firstColumn);
  c.loop(constant(0), task.rows, 1, [&](Value local) {
    OutputTile tile = tileAt(task, local);
    Value source = address(sums, i.mul(local, pitch));
    c.loop(constant(0), columns, c.lanes, [&](Value column) { // the last vector may go beyond, as the products do
      if (w.tile.isVolume())
        transformDepth(address(source, column), plane,
                       [&](ArrayRef<Value> m) { return phaseFromPoints(w.tile.alongDepth(), m); });
      forEach(constant(w.deep.outputs), [&](Value number) {
        Value first = i.mul(number, i.mul(constant(square()), plane));
        Value result = i.mul(number, i.mul(constant(w.down.outputs * w.across.outputs), pitch));
        transformPlaneOfSums(address(source, first), address(results, result), column);
      });
    });
    storeOutputs(tile, firstColumn, columns);
  });
}

void WinogradEmission::emit(Value begin, Value end) {
  SmallVector<Value> held{constant(-1)}; // the group's block of tiles whose pixels are in scratch
  e.createLoop(begin, end, 1, held, [&](Value index, ValueRange carried) -> SmallVector<Value> {
    ContractionTask task = c.decodeTask(index);
    Value block = i.add(i.mul(groupOf(task), c.mBlocks), task.mBlock);
    c.emitIf(i.compare(arith::CmpIPredicate::ne, block, carried[0]), [&] { transformPixels(task); });
    multiply(task);
    transformSums(task);
    return {block};
  });
}

void cpu::emitWinograd(KernelEmitter &emitter, WinogradForm form, Value begin, Value end) {
  WinogradEmission(emitter, form).emit(begin, end);
}
