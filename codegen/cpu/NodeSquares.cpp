//===- NodeSquares.cpp - pointwise nodes that turn what they read ---------===//
//
// A transposition reads along one dim and writes along another: whichever carries the lanes, the other side goes
// element by element. A square of as many points along both dims as a vector has lanes reads vectors along the one,
// turns them in registers (log2 rounds of shuffles) and goes on with vectors along the other: the body is that of any
// point with lanes along the dim of the stores, and may read other things along it, or the same for all lanes.
//
// Blocks of both dims keep the lines that a square uses a part of in the cache until the next squares use the rest.
// Where another dim lies between the lines that are written, the next block goes on where they end, and there are few
// of them (measured: 48 lines of 16 f32 take ten times as long as three times 16).
//
// Of 2 to 4 points along the dim of the stores, or 8, there is no square. Lanes run along the other one then, and where
// the results of these few points lie between each other (pixels of three channels, one row at eight shifts) their
// vectors are woven into as many that follow each other. Each point of the few is known: its shift is a number.
//
// Where a node gathers rows that lie across its stores (pixels with their channels side by side, at places that are
// read), the body itself runs with lanes along the rows, for as many points as a vector has lanes, and its results are
// turned: one turn for all that it gathers, and no element is loaded alone.
//
// What is left beside whole squares runs in narrower ones where extents are known, else in vectors along the longer
// side with the other side's accesses one by one.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/NodeEmitter.h"
#include "codegen/cpu/RegisterTile.h"
#include "ir/expr/DimName.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

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

static constexpr int64_t widestSquare = 16; // vectors that are in registers at once
static constexpr int64_t narrowestRest = 4; // a square of two is no faster than its elements one by one

SmallVector<loop::LoadOp> cpu::getCrossingLoads(Operation *node, int64_t along, int64_t across) {
  if (along == across || !isa<loop::PointwiseOp>(node))
    return {};
  std::string alongName = dimName(along), acrossName = dimName(across);
  auto isStep = [](Expr index, StringRef dim) {
    Expr step = index.coefficientOf(dim);
    return step && step.isConstant(1);
  };
  Block &block = node->getRegion(0).front();
  SmallVector<loop::LoadOp> crossing;
  for (Operation &op : block) {
    if (op.getNumRegions())
      return {};
    if (auto store = dyn_cast<loop::StoreOp>(op))
      if (!store.getIndexOperands().empty() || !isStep(cast<ExprAttr>(store.getIndices()[0]), alongName))
        return {};
    auto load = dyn_cast<loop::LoadOp>(op);
    if (!load || !load.getIndexOperands().empty() || load.getType().isInteger(1))
      continue;
    Expr index = cast<ExprAttr>(load.getIndices()[0]);
    if (index.uses(alongName) && !isStep(index, alongName) && isStep(index, acrossName))
      crossing.push_back(load);
  }
  auto isStored = [&](loop::LoadOp load) {
    return llvm::any_of(block.getOps<loop::StoreOp>(),
                        [&](loop::StoreOp store) { return store.getBuffer() == load.getBuffer(); });
  };
  return llvm::any_of(crossing, isStored) ? SmallVector<loop::LoadOp>() : crossing;
}

bool cpu::gathersAcross(Operation *node, int64_t along, int64_t across) {
  if (along == across || !isa<loop::PointwiseOp>(node))
    return false;
  std::string alongName = dimName(along), acrossName = dimName(across);
  auto isStep = [](Expr index, StringRef dim) {
    Expr step = index.coefficientOf(dim);
    return step && step.isConstant(1);
  };
  Block &block = node->getRegion(0).front();
  llvm::DenseSet<Value> stored;
  for (auto store : block.getOps<loop::StoreOp>())
    stored.insert(store.getBuffer());
  bool gathers = false;
  llvm::DenseSet<Value> varying; // along the rows
  for (Operation &op : block) {
    if (op.getNumRegions())
      return false;
    bool varies = llvm::any_of(op.getOperands(), [&](Value value) { return varying.contains(value); });
    if (auto store = dyn_cast<loop::StoreOp>(op)) {
      bool isTurned = store.getIndexOperands().empty() && !store.getCombine() &&
                      !store.getValue().getType().isInteger(1) &&
                      isStep(cast<ExprAttr>(store.getIndices()[0]), alongName);
      if (!isTurned)
        return false;
      continue;
    }
    if (auto load = dyn_cast<loop::LoadOp>(op)) {
      Expr index = cast<ExprAttr>(load.getIndices()[0]);
      if (varies || stored.contains(load.getBuffer()) || (index.uses(acrossName) && !isStep(index, acrossName)))
        return false;
      gathers |= !load.getIndexOperands().empty() && index.uses(acrossName);
      varies = index.uses(acrossName);
    } else if (auto index = dyn_cast<loop::IndexOp>(op)) {
      varies |= index.getExpr().uses(acrossName);
    }
    if (varies)
      varying.insert_range(op.getResults());
  }
  return gathers;
}

static constexpr int64_t mostStrands = 8;

bool cpu::weavesStores(Operation *node, int64_t along, int64_t across) {
  std::optional<int64_t> strands = loop::getDomain(node)[size_t(along)].asConstant();
  bool isCount = strands && *strands >= 2 && *strands <= mostStrands &&
                 (*strands == 3 || llvm::isPowerOf2_64(uint64_t(*strands))); // weaveVectors
  if (!isCount || along == across || !isa<loop::PointwiseOp>(node))
    return false;
  std::string alongName = dimName(along), acrossName = dimName(across);
  auto isStep = [](Expr index, StringRef dim, int64_t length) {
    Expr step = index.coefficientOf(dim);
    return step && step.isConstant(length);
  };
  llvm::DenseSet<Value> stored;
  for (auto store : node->getRegion(0).front().getOps<loop::StoreOp>()) {
    Expr index = cast<ExprAttr>(store.getIndices()[0]);
    if (!store.getIndexOperands().empty() || store.getCombine() || store.getValue().getType().isInteger(1) ||
        !isStep(index, alongName, 1) || !isStep(index, acrossName, *strands))
      return false;
    stored.insert(store.getBuffer());
  }
  bool isCrossing = false;
  WalkResult result = node->walk([&](loop::LoadOp load) {
    Expr index = cast<ExprAttr>(load.getIndices()[0]);
    isCrossing |= load.getIndexOperands().empty() && !load.getType().isInteger(1) && index.uses(alongName) &&
                  !isStep(index, alongName, 1) && isStep(index, acrossName, 1);
    return stored.contains(load.getBuffer()) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return isCrossing && !result.wasInterrupted();
}

namespace {
/// Points [from, to) of a dim; `length` where that is known.
struct Side {
  Value from, to;
  std::optional<int64_t> length;
};

class SquareEmission {
public:
  SquareEmission(KernelEmitter &e, Operation *node, const LoopConfig &config, const EmissionPoint &point)
      : e(e), node(node), along(config.sharedVector), across(config.tiled), point(point),
        crossing(getCrossingLoads(node, along, across)), isGather(gathersAcross(node, along, across)) {
    for (Operation &op : node->getRegion(0).front())
      if (auto store = dyn_cast<loop::StoreOp>(op))
        stores.push_back(store);
      else
        computed.push_back(&op);
  }

  Side sideOf(Expr extent, Value block, int64_t size);
  void emit(const Side &columns, const Side &rows, int64_t width);
  void weave(const Side &columns, const Side &rows, int64_t width);

private:
  Side wholes(const Side &side, int64_t width);
  Side behind(const Side &side, const Side &whole);
  void square(Value column, Value row, int64_t width);
  void gatheredSquare(Value column, Value row, int64_t width);
  void strands(Value row, int64_t count, int64_t width);
  bool mayRepeat();
  void lines(int64_t dim, const Side &lanes, int64_t other, const Side &points);
  EmissionPoint at(Value column, Value row, int64_t vectorDim, int64_t lanes);

  KernelEmitter &e;
  Operation *node;
  int64_t along, across; // of the stores, and of what is turned
  EmissionPoint point;
  SmallVector<loop::LoadOp> crossing;
  bool isGather; // results are turned, not what is read
  SmallVector<loop::StoreOp> stores;
  SmallVector<Operation *> computed; // what is no store
};
} // namespace

Side SquareEmission::sideOf(Expr extent, Value block, int64_t size) {
  InvariantBuilder &in = e.invariants;
  Value end = e.emitExpr(extent, {});
  std::optional<int64_t> known = extent.asConstant();
  if (!block || (known && *known == size))
    return {e.constant(0), end, known};
  Value from = in.mul(block, e.constant(size)), to = in.add(from, e.constant(size));
  if (known && *known % size == 0)
    return {from, to, size};
  return {from, in.min(to, end), std::nullopt};
}

Side SquareEmission::wholes(const Side &side, int64_t width) {
  InvariantBuilder &in = e.invariants;
  if (side.length)
    return {side.from, in.add(side.from, e.constant(*side.length / width * width)), *side.length / width * width};
  Value count = in.floorDiv(in.max(in.sub(side.to, side.from), e.constant(0)), e.constant(width), true);
  return {side.from, in.add(side.from, in.mul(count, e.constant(width))), std::nullopt};
}

Side SquareEmission::behind(const Side &side, const Side &whole) {
  return {whole.to, side.to, side.length ? std::optional(*side.length - *whole.length) : std::nullopt};
}

EmissionPoint SquareEmission::at(Value column, Value row, int64_t vectorDim, int64_t lanes) {
  EmissionPoint result = point;
  result.dims[size_t(along)] = column;
  result.dims[size_t(across)] = row;
  result.offsets.assign(result.dims.size(), 0);
  result.vectorDim = lanes > 1 ? vectorDim : -1;
  result.lanes = lanes;
  return result;
}

void SquareEmission::square(Value column, Value row, int64_t width) {
  SmallVector<SmallVector<Value>> turned;
  for (loop::LoadOp load : crossing) {
    SmallVector<Value> &vectors = turned.emplace_back();
    EmissionPoint line = at(column, row, across, width);
    for (int64_t &i = line.offsets[size_t(along)]; i < width; ++i) {
      codegen::BodyEmitter body(e, line);
      body.emitOp(load);
      vectors.push_back(body.lookup(load.getResult()));
    }
    transposeSquare(e, vectors);
  }
  EmissionPoint line = at(column, row, along, width);
  for (int64_t &i = line.offsets[size_t(across)]; i < width; ++i) {
    codegen::BodyEmitter body(e, line);
    for (auto [load, vectors] : llvm::zip_equal(crossing, turned))
      body.bind(load.getResult(), vectors[size_t(i)]);
    body.emitBlock(node->getRegion(0).front());
  }
}

void SquareEmission::gatheredSquare(Value column, Value row, int64_t width) {
  SmallVector<SmallVector<Value>> results(stores.size());
  EmissionPoint line = at(column, row, across, width);
  for (int64_t &i = line.offsets[size_t(along)]; i < width; ++i) {
    codegen::BodyEmitter body(e, line);
    body.emitOps(computed);
    for (auto [store, vectors] : llvm::zip_equal(stores, results))
      vectors.push_back(e.splat(body.lookup(store.getValue()), width));
  }
  for (SmallVector<Value> &vectors : results)
    transposeSquare(e, vectors);
  line = at(column, row, along, width);
  for (int64_t &i = line.offsets[size_t(across)]; i < width; ++i) {
    codegen::BodyEmitter body(e, line);
    for (auto [store, vectors] : llvm::zip_equal(stores, results)) {
      body.bind(store.getValue(), vectors[size_t(i)]);
      body.emitOp(store);
    }
  }
}

/// Vectors along `dim` at each point of the other one.
void SquareEmission::lines(int64_t dim, const Side &lanes, int64_t other, const Side &points) {
  if (lanes.length == 0 || points.length == 0)
    return;
  e.forEach(points.from, points.to, 1, [&](Value iv) {
    EmissionPoint start = point;
    start.dims[size_t(other)] = iv;
    auto body = [&](const Points &at, ValueRange) {
      for (const EmissionPoint &each : at)
        codegen::BodyEmitter(e, each).emitBlock(node->getRegion(0).front());
      return SmallVector<Value>();
    };
    int64_t width = e.chooseLanes(node);
    if (lanes.length)
      width = std::min<int64_t>(width, std::max<int64_t>(int64_t(llvm::PowerOf2Ceil(uint64_t(*lanes.length))), 2));
    emitVectorLoop(e, start, dim, lanes.from, lanes.to, width, 1, hasMasks(node, e.level), {}, body);
  });
}

void SquareEmission::emit(const Side &columns, const Side &rows, int64_t width) {
  auto fits = [&](const Side &side) { return !side.length || *side.length >= width; };
  while (width > narrowestRest && !(fits(columns) && fits(rows)))
    width /= 2;
  Side wholeColumns = wholes(columns, width), wholeRows = wholes(rows, width);
  if (wholeColumns.length != 0 && wholeRows.length != 0)
    e.forEach(wholeRows.from, wholeRows.to, width, [&](Value row) {
      e.forEach(wholeColumns.from, wholeColumns.to, width,
                [&](Value column) { isGather ? gatheredSquare(column, row, width) : square(column, row, width); });
    });
  auto isWide = [&](const Side &side) { return side.length && *side.length >= narrowestRest; };
  Side restOfColumns = behind(columns, wholeColumns), restOfRows = behind(rows, wholeRows);
  if (isWide(restOfColumns) && isWide(wholeRows))
    emit(restOfColumns, wholeRows, width / 2);
  else
    lines(across, wholeRows, along, restOfColumns);
  if (isWide(restOfRows) && isWide(columns))
    emit(columns, restOfRows, width / 2);
  else
    lines(along, columns, across, restOfRows);
}

/// Vector `number` of those that hold the strands' elements in turns.
static Value weaveVector(KernelEmitter &e, ArrayRef<Value> strands, int64_t number) {
  auto width = int32_t(cast<VectorType>(strands.front().getType()).getNumElements()), count = int32_t(strands.size());
  Value woven = strands.front();
  for (int32_t strand = 1; strand < count; ++strand) {
    SmallVector<int32_t> order;
    for (int32_t lane = 0; lane < width; ++lane) {
      int32_t at = int32_t(number) * width + lane;
      bool isFirst = strand == 1 && at % count == 0;
      order.push_back(at % count == strand ? width + at / count : isFirst ? at / count : lane);
    }
    woven = LLVM::ShuffleVectorOp::create(e.builder, e.loc, woven, strands[size_t(strand)], order);
  }
  return woven;
}

/// The vectors that hold the strands' elements in turns. As many strands as lanes are a square; else 4 and 8 are woven
/// in rounds: those with even numbers, those with odd ones, and these two with each other.
static SmallVector<Value> weaveVectors(KernelEmitter &e, ArrayRef<Value> strands) {
  SmallVector<Value> woven(strands);
  if (int64_t(strands.size()) == cast<VectorType>(strands.front().getType()).getNumElements()) {
    transposeSquare(e, woven);
    return woven;
  }
  woven.clear();
  if (strands.size() < 4) {
    for (int64_t number = 0; number < int64_t(strands.size()); ++number)
      woven.push_back(weaveVector(e, strands, number));
    return woven;
  }
  SmallVector<Value> sides[2];
  for (auto [number, strand] : llvm::enumerate(strands))
    sides[number % 2].push_back(strand);
  SmallVector<Value> even = weaveVectors(e, sides[0]), odd = weaveVectors(e, sides[1]);
  for (auto [a, b] : llvm::zip_equal(even, odd))
    for (int64_t number : {0, 1})
      woven.push_back(weaveVector(e, {a, b}, number));
  return woven;
}

void SquareEmission::strands(Value row, int64_t count, int64_t width) {
  SmallVector<SmallVector<Value>> values(stores.size());
  for (int64_t i = 0; i < count; ++i) {
    codegen::BodyEmitter body(e, at(e.constant(i), row, across, width));
    body.emitOps(computed);
    for (auto [store, all] : llvm::zip_equal(stores, values))
      all.push_back(e.splat(body.lookup(store.getValue()), width));
  }
  EmissionPoint first = at(e.constant(0), row, -1, 1);
  for (auto [store, all] : llvm::zip_equal(stores, values)) {
    Type type = store.getValue().getType();
    Value start = e.emitExpr(Expr(cast<ExprAttr>(store.getIndices()[0])), first);
    for (auto [i, vector] : llvm::enumerate(weaveVectors(e, all))) {
      Value place = e.invariants.add(start, e.constant(int64_t(i) * width));
      e.createStore(vector, e.getAddress(e.getPointer(store.getBuffer()), type, place));
    }
  }
}

void SquareEmission::weave(const Side &columns, const Side &rows, int64_t width) {
  if (rows.length)
    width = std::min<int64_t>(width, int64_t(llvm::bit_floor(uint64_t(std::max<int64_t>(*rows.length, 2)))));
  Side whole = wholes(rows, width);
  if (whole.length != 0)
    e.forEach(whole.from, whole.to, width, [&](Value row) { strands(row, *columns.length, width); });
  Side rest = behind(rows, whole);
  if (rest.length.value_or(0) > 0 && *whole.length > 0 && mayRepeat()) // some of a whole vector are stored twice
    return strands(e.invariants.sub(rows.to, e.constant(width)), *columns.length, width);
  lines(across, rest, along, columns);
}

/// Whether a point may be computed again: nothing is read where results are stored, whose buffer may be the same then.
bool SquareEmission::mayRepeat() {
  WalkResult result = node->walk([&](loop::LoadOp load) {
    bool isStored = llvm::any_of(stores, [&](loop::StoreOp store) { return store.getIndices() == load.getIndices(); });
    return isStored ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

void cpu::emitSquares(KernelEmitter &e, Operation *node, const LoopConfig &config, const EmissionPoint &point,
                      Value block, Value tileBlock) {
  SmallVector<Expr> domain = loop::getDomain(node);
  e.setDomain(domain);
  e.loc = node->getLoc();
  SquareEmission emission(e, node, config, point);
  Side columns = emission.sideOf(domain[size_t(config.sharedVector)], block, config.block);
  Side rows = emission.sideOf(domain[size_t(config.tiled)], tileBlock, config.tileBlock);
  bool isGather = gathersAcross(node, config.sharedVector, config.tiled);
  if (!isGather && weavesStores(node, config.sharedVector, config.tiled))
    return emission.weave(columns, rows, e.chooseLanes(node));
  emission.emit(columns, rows, std::min(e.chooseLanes(node), widestSquare));
}
