//===- MmaEpilogue.cpp - from sums of warps to results --------------------===//
//
// The tensor cores leave sums in registers, two neighbours a thread. They go through shared memory, so that threads
// take 16 bytes of neighbouring results: the epilogue's own reads (a bias, a residual) and its writes are whole lines.
//
// A thread takes a few chunks at a time: reads of all, then writes of all, so that several reads are under way at once
// (writes may alias, so that the compiler cannot do that). Chunks outside of the result read what lies inside and write
// nothing.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/MmaEpilogue.h"
#include "codegen/gpu/GpuInstructions.h"
#include "codegen/gpu/LaneEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t chunksTogether = 4;

static Value isNoNumber(GpuEmitter &e, Value sum) {
  return arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::UNO, sum, sum);
}

Value MmaEpilogue::sumAddress(Value row, Value column, int64_t more) {
  Value index = e.invariants.add(e.invariants.mul(row, e.constant(tile.sumPitch())), column);
  return e.getAddress(e.getAddress(shared, e.builder.getF32Type(), index), e.builder.getF32Type(), e.constant(more));
}

/// Sums to shared memory; whether one of the thread's is no number (null where that means nothing).
Value MmaEpilogue::spread(ValueRange sums) {
  OpBuilder &b = e.builder;
  Value row = e.invariants.add(block.warpRow, e.invariants.floorDiv(block.lane, e.constant(4), true));
  Value pair = e.invariants.mul(e.invariants.mod(block.lane, e.constant(4), true), e.constant(2));
  Value column = e.invariants.add(block.warpColumn, pair), bad;
  auto type = VectorType::get({2}, getSumType(b.getContext(), tile.kind));
  size_t at = 0;
  for (int64_t m = 0; m < tile.warpM(); m += 16)
    for (int64_t n = 0; n < tile.warpN(); n += 8)
      for (int64_t below : {0, 8}) {
        Value vector = LLVM::PoisonOp::create(b, e.loc, type);
        for (int64_t i : {0, 1}) {
          Value sum = sums[at++];
          vector = LLVM::InsertElementOp::create(b, e.loc, vector, sum, e.constant(i));
          if (tile.kind != MmaKind::SplitF32)
            continue;
          Value isBad = isNoNumber(e, sum);
          bad = bad ? arith::OrIOp::create(b, e.loc, bad, isBad).getResult() : isBad;
        }
        LLVM::StoreOp::create(b, e.loc, vector, sumAddress(row, column, (m + below) * tile.sumPitch() + n), 8);
      }
  return bad;
}

/// Sums that are no numbers, again in f32.
void MmaEpilogue::repair(const MmaResults &results) {
  OpBuilder &b = e.builder;
  auto less = [&](Value x, Value y) { return e.invariants.compare(arith::CmpIPredicate::slt, x, y); };
  e.createLoop(block.thread, e.constant(tile.m * tile.n), tile.threads(), {}, [&](Value number, ValueRange) {
    Value row = e.invariants.floorDiv(number, e.constant(tile.n), true);
    Value column = e.invariants.mod(number, e.constant(tile.n), true);
    Value address = sumAddress(row, column);
    Value isBad = isNoNumber(e, e.createLoad(b.getF32Type(), 1, address));
    Value m = e.invariants.add(lhs.getFirst(), row), n = e.invariants.add(rhs.getFirst(), column);
    Value exists = e.invariants.logicalAnd(less(m, lhs.getCount()), less(n, rhs.getCount()));
    e.createIf(arith::AndIOp::create(b, e.loc, isBad, exists), {}, [&] {
      e.createStore(results.sumAgain(m, n, 1)[0], address);
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
}

void MmaEpilogue::emitGroup(const MmaResults &results, Value firstChunk, int64_t count) {
  OpBuilder &b = e.builder;
  int64_t lanes = results.chooseLanes(), columns = tile.n / lanes;
  SmallVector<MmaResults::Chunk> chunks;
  for (int64_t i = 0; i < count; ++i) {
    Value number = e.invariants.add(firstChunk, e.constant(i * tile.threads()));
    Value row = e.invariants.floorDiv(number, e.constant(columns), true);
    Value column = e.invariants.mul(e.invariants.mod(number, e.constant(columns), true), e.constant(lanes));
    MmaResults::Chunk chunk{e.invariants.add(lhs.getFirst(), row), e.invariants.add(rhs.getFirst(), column), {}};
    for (int64_t lane = 0; lane < lanes; lane += 4) {
      int64_t width = std::min<int64_t>(lanes, 4);
      Type type = VectorType::get({width}, getSumType(b.getContext(), tile.kind));
      Value sums = LLVM::LoadOp::create(b, e.loc, type, sumAddress(row, column, lane), unsigned(width * 4));
      for (int64_t j = 0; j < width; ++j)
        chunk.sums.push_back(LLVM::ExtractElementOp::create(b, e.loc, sums, e.constant(j)));
    }
    chunks.push_back(std::move(chunk));
  }
  results.emit(chunks);
}

void MmaEpilogue::emit(ValueRange sums) {
  MmaResults results(e, block.op, block.dims, block.point);
  Value bad = spread(sums);
  if (bad) {
    e.createIf(createBarrierOr(e, bad), {}, [&] {
      repair(results);
      e.createBlockBarrier();
      return SmallVector<Value>();
    });
  } else {
    e.createBlockBarrier();
  }
  int64_t lanes = results.chooseLanes(), perThread = tile.m * tile.n / (lanes * tile.threads());
  int64_t together = std::min(perThread, chunksTogether);
  e.createLoop(e.constant(0), e.constant(perThread), together, {}, [&](Value first, ValueRange) {
    Value number = e.invariants.add(e.invariants.mul(first, e.constant(tile.threads())), block.thread);
    emitGroup(results, number, together);
    return SmallVector<Value>();
  });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

MmaResults::MmaResults(GpuEmitter &e, loop::ContractionOp op, const ContractionDims &dims, EmissionPoint batch)
    : e(e), op(op), dims(dims), batch(std::move(batch)) {
  this->batch.dims.resize(dims.domain.size());
  for (Expr extent : dims.m())
    rowSizes.push_back(e.emitExpr(extent, {}));
  for (Expr extent : dims.n())
    columnSizes.push_back(e.emitExpr(extent, {}));
  rows = e.emitExpr(product(op.getContext(), dims.m()), {});
  columns = e.emitExpr(product(op.getContext(), dims.n()), {});
}

int64_t MmaResults::chooseLanes() const {
  int64_t widest = 1;
  loop::ContractionOp contraction = op;
  contraction.getEpilogue().walk(
      [&](loop::StoreOp op) { widest = std::max(widest, loop::getElementBytes(op.getValue().getType())); });
  std::optional<int64_t> inner = dims.n().empty() ? std::nullopt : dims.n().back().asConstant();
  int64_t lanes = std::clamp<int64_t>(16 / widest, 1, 8);
  while (lanes > 1 && (!inner || *inner % lanes != 0))
    lanes /= 2;
  return lanes;
}

EmissionPoint MmaResults::pointAt(Value m, Value n, int64_t lanes) const {
  auto inside = [&](Value position, Value count, int64_t together) {
    return e.invariants.min(position, e.invariants.sub(count, e.constant(together)));
  };
  EmissionPoint at = batch;
  llvm::copy(e.createDigits(inside(m, rows, 1), rowSizes), at.dims.begin() + dims.firstM);
  llvm::copy(e.createDigits(inside(n, columns, lanes), columnSizes), at.dims.begin() + dims.firstN);
  return at;
}

SmallVector<Value> MmaResults::sumAgain(Value m, Value n, int64_t lanes) const {
  OpBuilder &b = e.builder;
  Type f32 = b.getF32Type();
  loop::ContractionOp contraction = op;
  const EmissionPoint first = pointAt(m, n, lanes);
  SmallVector<Value> sizes, start(size_t(lanes), e.invariants.constant(b.getF32FloatAttr(0)));
  for (Expr extent : dims.k())
    sizes.push_back(e.emitExpr(extent, {}));
  Value count = e.emitExpr(product(contraction.getContext(), dims.k()), {});
  return e.createLoop(e.constant(0), count, 1, start, [&](Value k, ValueRange in) {
    EmissionPoint at = first;
    llvm::copy(e.createDigits(k, sizes), at.dims.begin() + dims.firstK);
    auto element = [&](Region &region) -> Value {
      Value value = e.emitRegion(region, at);
      return value.getType() == f32 ? value : arith::ExtFOp::create(b, e.loc, f32, value).getResult();
    };
    Value x = element(contraction.getLhs());
    SmallVector<Value> next;
    for (Value sum : in) {
      next.push_back(math::FmaOp::create(b, e.loc, x, element(contraction.getRhs()), sum));
      if (next.size() < in.size())
        at.dims[dims.firstK - 1] = e.invariants.add(at.dims[dims.firstK - 1], e.constant(1));
    }
    return next;
  });
}

// One thread's, chunk by chunk in a loop: this is rare, and its code is to be small.
void MmaResults::repair(MutableArrayRef<Chunk> chunks) const {
  OpBuilder &b = e.builder;
  SmallVector<Value> all, bad;
  Value any;
  for (const Chunk &chunk : chunks) {
    llvm::append_range(all, chunk.sums);
    bad.push_back(isNoNumber(e, chunk.sums.front()));
    for (Value sum : ArrayRef(chunk.sums).drop_front())
      bad.back() = arith::OrIOp::create(b, e.loc, bad.back(), isNoNumber(e, sum));
    any = any ? arith::OrIOp::create(b, e.loc, any, bad.back()).getResult() : bad.back();
  }
  const size_t lanes = chunks.front().sums.size();
  auto chunkBy = [&](Value number, Value m, Value n, ValueRange in) {
    SmallVector<Value> sums = sumAgain(m, n, int64_t(lanes)), out;
    for (auto [i, value] : llvm::enumerate(in)) {
      Value isIt = e.invariants.compare(arith::CmpIPredicate::eq, number, e.constant(int64_t(i / lanes)));
      out.push_back(e.invariants.select(isIt, sums[i % lanes], value));
    }
    return out;
  };
  all = e.createIf(any, all, [&] {
    return e.createLoop(e.constant(0), e.constant(int64_t(chunks.size())), 1, all, [&](Value number, ValueRange in) {
      Value m = chunks[0].m, n = chunks[0].n, isBad = bad[0];
      for (size_t i = 1; i < chunks.size(); ++i) {
        Value isIt = e.invariants.compare(arith::CmpIPredicate::eq, number, e.constant(int64_t(i)));
        m = e.invariants.select(isIt, chunks[i].m, m);
        n = e.invariants.select(isIt, chunks[i].n, n);
        isBad = e.invariants.select(isIt, bad[i], isBad);
      }
      return e.createIf(isBad, in, [&] { return chunkBy(number, m, n, in); });
    });
  });
  for (auto [i, chunk] : llvm::enumerate(chunks))
    llvm::copy(ArrayRef(all).slice(i * lanes, lanes), chunk.sums.begin());
}

void MmaResults::emitWarpSums(const WarpSums &all) const {
  OpBuilder &b = e.builder;
  Type type = b.getF32Type();
  int64_t size = all.rows * all.columns, lanes = std::min(chooseLanes(), all.columns);
  e.createStrided({all.thread, all.threads}, e.constant(size / lanes), {}, [&](Value number, ValueRange) {
    Value perRow = e.constant(all.columns / lanes), m = e.invariants.floorDiv(number, perRow, true);
    Value n = e.invariants.mul(e.invariants.mod(number, perRow, true), e.constant(lanes));
    Chunk chunk{m, e.invariants.add(all.firstColumn, n), {}};
    Value first = e.invariants.add(e.invariants.mul(m, e.constant(all.columns)), n);
    for (int64_t warp = 0; warp < all.threads / warpSize; ++warp)
      for (int64_t lane = 0; lane < lanes; ++lane) {
        Value at = e.invariants.add(first, e.constant(warp * size + lane));
        Value part = e.createLoad(type, 1, e.getAddress(all.memory, type, at));
        if (warp == 0)
          chunk.sums.push_back(part);
        else
          chunk.sums[size_t(lane)] = arith::AddFOp::create(b, e.loc, chunk.sums[size_t(lane)], part);
      }
    emit(chunk);
    return SmallVector<Value>();
  });
}

void MmaResults::emit(ArrayRef<Chunk> chunks) const {
  loop::ContractionOp contraction = op;
  Block &body = contraction.getEpilogue().front();
  SmallVector<Operation *> reads, writes;
  llvm::DenseSet<Value> written;
  bool readsBack = false; // what it wrote: then all is done in order
  for (Operation &op : body) {
    if (isa<loop::YieldOp>(op))
      continue;
    op.walk([&](loop::LoadOp load) { readsBack |= written.contains(load.getBuffer()); });
    if (auto store = dyn_cast<loop::StoreOp>(op))
      written.insert(store.getBuffer());
    (readsBack || isa<loop::StoreOp>(op) ? writes : reads).push_back(&op);
  }
  auto less = [&](Value x, Value y) { return e.invariants.compare(arith::CmpIPredicate::slt, x, y); };
  std::vector<LaneEmitter> bodies;
  bodies.reserve(chunks.size());
  for (const Chunk &chunk : chunks) {
    LaneEmitter &lanes = bodies.emplace_back(e, contraction, pointAt(chunk.m, chunk.n, int64_t(chunk.sums.size())),
                                             dims.firstK - 1, int64_t(chunk.sums.size()));
    for (auto [lane, sum] : llvm::enumerate(chunk.sums))
      lanes.getBody(lane).bind(body.getArgument(0), sum);
  }
  for (LaneEmitter &lanes : bodies)
    lanes.emitOps(reads);
  for (auto [chunk, lanes] : llvm::zip_equal(chunks, bodies))
    e.createIf(e.invariants.logicalAnd(less(chunk.m, rows), less(chunk.n, columns)), {}, [&] {
      lanes.emitOps(writes);
      return SmallVector<Value>();
    });
}
