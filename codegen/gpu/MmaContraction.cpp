//===- MmaContraction.cpp - contractions on tensor cores ------------------===//
//
//   result[b, m, n] = epilogue(sum over k of lhs(b, m, k) * rhs(b, k, n))
//
// A block computes a tile of m x n results. Operands come through a ring of stages in shared memory (MmaOperand), each
// 128 bytes deep in k; copies of the next stages are under way while the warps multiply the present one:
//
//   repeat for each step of k:   wait for the oldest copy | barrier | begin the copy of a later step | products
//
// f32 is multiplied as x = high + low, two tf32 numbers of 11 bits: low*high + high*low + high*high (MmaShared). The
// result is as exact as a sum of f32 products; where it is no number, the dot product is done again in f32, since the
// parts of an infinity are no numbers (see the epilogue).
//
// 8-bit integers are multiplied exactly, signed or not; their sums are i32. Weights of few bits beside floats are
// converted by those who multiply them (MmaPacked).
//
// Where tiles are few, `splits` blocks share the k of one: each leaves its sums in the launch's scratch, and the last
// to arrive at the tile's counter adds them up in the order of the splits. So results do not depend on timing.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuInstructions.h"
#include "codegen/gpu/GpuTemplates.h"
#include "codegen/gpu/MmaEpilogue.h"
#include "codegen/gpu/MmaPacked.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

namespace {

class MmaEmitter {
public:
  MmaEmitter(GpuEmitter &e, loop::ContractionOp op);
  void emit();

private:
  void findPlace();
  Type sumType() { return getSumType(b.getContext(), tile.kind); }
  Value zero() { return e.invariants.constant(b.getZeroAttr(sumType())); }
  Value stageAt(Value bytes) { return e.getAddress(shared, b.getI8Type(), bytes); }
  Value nextStage(Value bytes);
  void fill(Value step, Value stage);
  SmallVector<Value> runSteps(Value begin, Value end);
  bool isAsync(const MmaOperand &operand) const { return operand.isAsync() || (packed && &operand == &*rhs); }
  void copy(const MmaOperand &operand, Value step, Value stage);
  SmallVector<Value> multiply(Value step, Value stage, ValueRange requested, ValueRange sums);
  Value partAddress(Value split, size_t quad);
  SmallVector<Value> meet(ValueRange sums);
  size_t sumCount() const { return size_t(tile.warpM() * tile.warpN() / warpSize); }

  GpuEmitter &e;
  OpBuilder &b;
  loop::ContractionOp op;
  MmaBlock block;
  const MmaTile &tile;
  Expr splitsExpr;
  Value splits, split, tileNumber, shared;
  std::optional<MmaOperand> lhs, rhs;
  std::optional<MmaPackedRhs> packed; // in place of rhs, which knows the columns
};

} // namespace

MmaEmitter::MmaEmitter(GpuEmitter &e, loop::ContractionOp op)
    : e(e), b(e.builder), op(op),
      block{.e = e, .op = op, .dims = ContractionDims(op), .tile = MmaTile::fromAttribute(e.kernel.getConfigAttr())},
      tile(block.tile), splitsExpr(getMmaSplits(e.kernel)) {
  e.setDomain(block.dims.domain);
  shared = e.launchedMemory();
  findPlace();
}

// What this block and thread compute.
void MmaEmitter::findPlace() {
  MLIRContext *context = op.getContext();
  const ContractionDims &dims = block.dims;
  auto productOf = [&](ArrayRef<Expr> extents) { return product(context, extents); };
  block.thread = e.getRegister("tid.x");
  block.lane = e.invariants.mod(block.thread, e.constant(warpSize), true);
  Value warp = e.invariants.floorDiv(block.thread, e.constant(warpSize), true);
  block.warpRow =
      e.invariants.mul(e.invariants.floorDiv(warp, e.constant(tile.warpsN), true), e.constant(tile.warpM()));
  block.warpColumn = e.invariants.mul(e.invariants.mod(warp, e.constant(tile.warpsN), true), e.constant(tile.warpN()));

  Value number = e.getRegister("ctaid.x");
  splits = e.emitExpr(splitsExpr, {});
  tileNumber = e.invariants.floorDiv(number, splits, true);
  split = e.invariants.mod(number, splits, true);
  Value batches = e.emitExpr(productOf(dims.batch()), {});
  Value rows = e.emitExpr(productOf(dims.m()).ceilDiv(tile.m), {});
  Value columns = e.emitExpr(productOf(dims.n()).ceilDiv(tile.n), {});
  SmallVector<Value> place = e.createDigits(tileNumber, {batches, rows, columns});
  SmallVector<Value> batchSizes;
  for (Expr extent : dims.batch())
    batchSizes.push_back(e.emitExpr(extent, {}));
  block.point.dims = e.createDigits(place[0], batchSizes);
  block.point.dims.resize(dims.domain.size());

  for (Expr extent : dims.k())
    block.kSizes.push_back(e.emitExpr(extent, {}));
  block.kCount = e.emitExpr(productOf(dims.k()), {});
  std::optional<int64_t> known = e.invariants.asConstant(block.kCount);
  block.isWholeK = known && *known % tile.k() == 0;
  std::optional<int64_t> inner = dims.k().empty() ? std::nullopt : dims.k().back().asConstant();
  block.isWholeInner = dims.k().size() <= 1 || (inner && *inner % tile.k() == 0);
  lhs.emplace(block, /*isRhs=*/false, place[1], 0);
  rhs.emplace(block, /*isRhs=*/true, place[2], tile.m * MmaTile::depthBytes);
  if (tile.rhsBits)
    packed.emplace(block, *rhs, tile.m * MmaTile::depthBytes);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Value MmaEmitter::nextStage(Value bytes) {
  Value next = e.invariants.add(bytes, e.constant(tile.stageBytes()));
  Value isEnd = e.invariants.compare(arith::CmpIPredicate::eq, next, e.constant(tile.stages * tile.stageBytes()));
  return e.invariants.select(isEnd, e.constant(0), next);
}

void MmaEmitter::copy(const MmaOperand &operand, Value step, Value stage) {
  if (packed && &operand == &*rhs)
    packed->copy(step, stage);
  else
    operand.copy(step, stage);
}

/// Begins the copies of a step, and does what is not asynchronous.
void MmaEmitter::fill(Value step, Value stage) {
  for (const MmaOperand *operand : {&*lhs, &*rhs}) {
    if (isAsync(*operand))
      copy(*operand, step, stage);
    else
      operand->store(operand->compute(step), stage);
  }
}

SmallVector<Value> MmaEmitter::runSteps(Value begin, Value end) {
  size_t count = sumCount();
  auto less = [&](Value a, Value c) { return e.invariants.compare(arith::CmpIPredicate::slt, a, c); };
  for (int64_t ahead = 0; ahead + 1 < tile.stages; ++ahead) {
    Value step = e.invariants.add(begin, e.constant(ahead));
    e.createIf(less(step, end), {}, [&] {
      fill(step, stageAt(e.constant(ahead * tile.stageBytes())));
      return SmallVector<Value>();
    });
    createCopyCommit(e);
  }
  SmallVector<Value> carried(count, zero());
  carried.push_back(e.constant(0));
  carried.push_back(e.constant((tile.stages - 1) * tile.stageBytes()));
  if (packed)
    llvm::append_range(carried, packed->request(begin));
  carried = e.createLoop(begin, end, 1, carried, [&](Value step, ValueRange in) {
    createCopyWait(e, tile.stages - 2);
    e.createBlockBarrier();
    Value later = e.invariants.add(step, e.constant(tile.stages - 1)), isLater = less(later, end);
    Value from = stageAt(in[count]), to = stageAt(in[count + 1]);
    e.createIf(isLater, {}, [&] {
      for (const MmaOperand *operand : {&*lhs, &*rhs})
        if (isAsync(*operand))
          copy(*operand, later, to);
      return SmallVector<Value>();
    });
    createCopyCommit(e);
    // Computed elements are asked for before the products and stored behind them.
    Value last = e.invariants.sub(end, e.constant(1)), computed = e.invariants.min(later, last);
    SmallVector<Value> values[2];
    for (auto [operand, held] : {std::pair(&*lhs, &values[0]), std::pair(&*rhs, &values[1])})
      if (!isAsync(*operand))
        *held = operand->compute(computed);
    SmallVector<Value> requested;
    if (packed)
      requested = packed->request(e.invariants.min(e.invariants.add(step, e.constant(1)), last));
    SmallVector<Value> out = multiply(step, from, in.drop_front(count + 2), in.take_front(count));
    for (auto [operand, held] : {std::pair(&*lhs, &values[0]), std::pair(&*rhs, &values[1])})
      if (!isAsync(*operand))
        operand->store(*held, to);
    out.push_back(nextStage(in[count]));
    out.push_back(nextStage(in[count + 1]));
    llvm::append_range(out, requested);
    return out;
  });
  createCopyWait(e, 0);
  e.createBlockBarrier(); // the stages are free for the sums
  carried.truncate(count);
  return carried;
}

SmallVector<Value> MmaEmitter::multiply(Value step, Value stage, ValueRange requested, ValueRange sums) {
  constexpr int64_t parts = 4; // of 32 bytes
  SmallVector<Value> next(sums);
  if (packed)
    return packed->multiply(*lhs, step, stage, requested, std::move(next));
  for (int64_t part = 0; part < parts; ++part)
    next =
        createProducts(e, tile.kind, lhs->readFragments(stage, part), rhs->readFragments(stage, part), std::move(next));
  return next;
}

//===----------------------------------------------------------------------===//
// Splits
//===----------------------------------------------------------------------===//

/// Four of a thread's sums, 16 bytes.
Value MmaEmitter::partAddress(Value of, size_t quad) {
  Value part = e.invariants.add(e.invariants.mul(tileNumber, splits), of);
  Value line = e.invariants.add(e.invariants.mul(part, e.constant(int64_t(sumCount() / 4))), e.constant(int64_t(quad)));
  Value index = e.invariants.add(e.invariants.mul(line, e.constant(tile.threads())), block.thread);
  return e.getAddress(e.scratch, b.getF32Type(), e.invariants.mul(index, e.constant(4)));
}

/// The sums of all splits, and whether this block is the one that has them.
SmallVector<Value> MmaEmitter::meet(ValueRange sums) {
  auto quadType = VectorType::get({4}, sumType());
  for (size_t quad = 0; quad * 4 < sums.size(); ++quad) {
    Value vector = LLVM::PoisonOp::create(b, e.loc, quadType);
    for (size_t i = 0; i < 4; ++i)
      vector = LLVM::InsertElementOp::create(b, e.loc, vector, sums[quad * 4 + i], e.constant(int64_t(i)));
    LLVM::StoreOp::create(b, e.loc, vector, partAddress(split, quad), 16);
  }
  Value isLast = createLastArrival(e, tileNumber, splits);
  SmallVector<Value> all = e.createIf(isLast, sums, [&] {
    SmallVector<Value> start(sums.size(), zero());
    return e.createLoop(e.constant(0), splits, 1, start, [&](Value of, ValueRange in) {
      SmallVector<Value> next;
      for (size_t quad = 0; quad * 4 < in.size(); ++quad) {
        Value vector = LLVM::LoadOp::create(b, e.loc, quadType, partAddress(of, quad), 16);
        for (size_t i = 0; i < 4; ++i) {
          Value part = LLVM::ExtractElementOp::create(b, e.loc, vector, e.constant(int64_t(i)));
          next.push_back(createSum(e, in[quad * 4 + i], part));
        }
      }
      return next;
    });
  });
  all.push_back(isLast);
  return all;
}

void MmaEmitter::emit() {
  Value steps = e.emitExpr(product(op.getContext(), block.dims.k()).ceilDiv(tile.k()), {});
  MmaEpilogue epilogue(block, *lhs, *rhs, shared);
  if (splitsExpr.isConstant(1)) {
    epilogue.emit(runSteps(e.constant(0), steps));
    return;
  }
  auto share = [&](Value of) { return e.invariants.floorDiv(e.invariants.mul(steps, of), splits, true); };
  SmallVector<Value> sums = runSteps(share(split), share(e.invariants.add(split, e.constant(1))));
  SmallVector<Value> carried(sums);
  carried.push_back(e.invariants.constant(b.getBoolAttr(true)));
  Value isShared = e.invariants.compare(arith::CmpIPredicate::sgt, splits, e.constant(1));
  carried = splitsExpr.isConstant() ? meet(sums) : e.createIf(isShared, carried, [&] { return meet(sums); });
  Value isOurs = carried.pop_back_val();
  e.createIf(isOurs, {}, [&] {
    epilogue.emit(carried);
    return SmallVector<Value>();
  });
}

void gpu::emitMmaContraction(GpuEmitter &e, loop::ContractionOp op) { MmaEmitter(e, op).emit(); }
