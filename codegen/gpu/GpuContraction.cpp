//===- GpuContraction.cpp - matrix products and convolutions --------------===//
//
//   result[b, m, n] = epilogue(sum over k of lhs(b, m, k) * rhs(b, k, n))
//
// A block computes a tile of m x n results. The regions that say how operands are read are emitted for single elements,
// so that views, padding, dilation and fused producers need no cases of their own: an operand's tile of k columns is
// evaluated once by the block's threads, converted to the accumulator's type and left in shared memory, from where each
// thread multiplies a square of its own out of registers.
//
//   repeat for each step of k:   operands from registers to shared memory | barrier | next operands to registers,
//                                products from shared memory | barrier
//
// Rows and columns that do not exist repeat the last one and are not stored; behind the end of k both operands are
// zero. Where there are few tiles and k is long, groups of threads take the steps in turn, each with shared memory of
// its own; their sums are added in order at the end. The order of all sums follows from shapes alone.
//
// What tensor cores multiply, and what is streamed for a few rows, is planned elsewhere (MmaPlan, StreamedProduct,
// PackedProduct): what comes here are f64 and wider integers.
//
// Which threads read which elements follows from memory: neighbours take neighbours along k or along the free dim,
// whichever is contiguous.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/CpuContraction.h"
#include "codegen/gpu/DeviceShape.h"
#include "codegen/gpu/GpuTemplates.h"
#include "codegen/gpu/LibraryCall.h"
#include "codegen/gpu/MmaPlan.h"
#include "codegen/gpu/PackedProduct.h"
#include "codegen/gpu/StreamedProduct.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr int64_t fewestColumns = 8;   // of a tile that pays; below, contractions are reductions
static constexpr int64_t fewestStreamed = 64; // columns and k that pay with fewer rows

DenseI64ArrayAttr ContractionTile::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {m, n, k, threadM, threadN, groups});
}

ContractionTile ContractionTile::fromAttribute(DictionaryAttr config) {
  ArrayRef<int64_t> values = config.getAs<DenseI64ArrayAttr>("tile").asArrayRef();
  return {values[0], values[1], values[2], values[3], values[4], values[5]};
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

static ContractionTile chooseTile(loop::ContractionOp op, const ContractionDims &dims) {
  MLIRContext *context = op.getContext();
  int64_t bytes = loop::getElementBytes(op.getEpilogue().getArgument(0).getType());
  // What is symbolic counts as 1, often the batch: the least work there can be.
  auto count = [&](ArrayRef<Expr> extents) {
    Expr least = product(context, extents).substitute([&](StringRef) { return Expr::constant(context, 1); });
    return std::max<int64_t>(least.asConstant().value_or(1), 1);
  };
  int64_t batch = count(dims.batch()), m = count(dims.m()), n = count(dims.n()), k = count(dims.k());
  auto tiles = [&](int64_t rows, int64_t columns) {
    return batch * llvm::divideCeil(m, rows) * llvm::divideCeil(n, columns);
  };
  if (bytes <= 4 && m > 64 && n > 64 && tiles(128, 128) >= multiprocessors)
    return {.m = 128, .n = 128, .k = 8, .threadM = 8, .threadN = 8, .groups = 1};
  if (m > 32 && n > 32 && tiles(64, 64) >= multiprocessors)
    return {.m = 64, .n = 64, .k = 16, .threadM = 4, .threadN = 4, .groups = 1};
  int64_t groups = tiles(32, 32) < 4 * multiprocessors && k >= 256 && bytes <= 4 ? 4 : 1;
  return {.m = 32, .n = 32, .k = 16, .threadM = 4, .threadN = 4, .groups = groups};
}

// Of few rows and a rhs worth streaming, tensor cores have time for rows that do not exist. A single row is a reduction
// of each column, if the threads that share one read neighbours.
static bool isStreamed(loop::ContractionOp op, const ContractionDims &dims) {
  auto count = [&](ArrayRef<Expr> extents) { return product(op.getContext(), extents).asConstant().value_or(0); };
  bool isRow = count(dims.m()) == 1 && readsAlongK(op.getRhs(), dims.firstK - 1, dims.lastK());
  return !isRow && count(dims.n()) >= fewestStreamed && count(dims.k()) >= fewestStreamed;
}

bool gpu::planContraction(loop::KernelOp kernel, loop::ContractionOp op) {
  MLIRContext *context = kernel.getContext();
  cpu::canonicalizeContraction(op);
  ContractionDims dims(op);
  auto isBelow = [&](ArrayRef<Expr> extents) {
    std::optional<int64_t> known = product(context, extents).asConstant();
    return known && *known < fewestColumns;
  };
  if (planPacked(kernel, op))
    return true;
  std::optional<MmaKind> kind = findMmaKind(op);
  // A library's kernel stays what the library is told of it.
  if ((isBelow(dims.m()) || isBelow(dims.n())) && !(kind && isStreamed(op, dims)) && !isLeftToLibrary(kernel)) {
    loop::replaceByReduction(op);
    return false;
  }
  if (kind && planStreamed(kernel, op))
    return true;
  if (kind) {
    planMma(kernel, op, *kind);
    return true;
  }
  ContractionTile tile = chooseTile(op, dims);
  Expr blocks = product(context, dims.batch()) * product(context, dims.m()).ceilDiv(tile.m) *
                product(context, dims.n()).ceilDiv(tile.n);
  setPlan(kernel, {.layout = "tiles",
                   .name = "tile",
                   .tile = tile.toAttribute(context),
                   .threads = tile.threads(),
                   .blocks = blocks});
  return true;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {

/// One operand: lhs, whose free dims are m, or rhs, whose are n.
struct Operand {
  Region *region;
  bool isAlongK;               // neighbouring threads take neighbours along k
  int64_t size;                // of the tile in the free dims
  int64_t firstDim, dimsEnd;   // of the free dims
  Value first, count;          // of the tile's rows (or columns), of all there are
  Value memory;                // the group's tile, [k][size + padding]
  SmallVector<Value> freeSize; // extents of the free dims
  int64_t pitch() const { return size + padding; }
  static constexpr int64_t padding = 4; // keeps rows apart in banks, and accesses of 16 bytes aligned
};

class TileEmitter {
public:
  TileEmitter(GpuEmitter &e, loop::ContractionOp op);
  void emit();

private:
  Value createAdd(Value a, Value b) { return e.invariants.add(a, b); }
  Value zero() { return e.invariants.constant(b.getZeroAttr(type)); }
  Operand makeOperand(Region &region, int64_t from, int64_t to, int64_t size, Value block, Value memory);
  std::pair<Value, Value> placeOf(const Operand &operand, int64_t number);
  SmallVector<Value> loadTile(const Operand &operand, Value step);
  void storeTile(const Operand &operand, ValueRange values);
  SmallVector<Value> multiply(ValueRange sums);
  SmallVector<Value> readLine(const Operand &operand, int64_t k, Value first, int64_t count);
  Value multiplyAdd(Value x, Value y, Value sum);
  Value widen(Value value);
  SmallVector<Value> addGroups(SmallVector<Value> sums);
  void emitResults(ValueRange sums);
  int64_t perThread(const Operand &operand) const { return operand.size * tile.k / tile.groupThreads(); }

  GpuEmitter &e;
  OpBuilder &b;
  loop::ContractionOp op;
  ContractionDims dims;
  ContractionTile tile;
  Type type; // of the accumulator
  EmissionPoint point;
  Operand lhs, rhs;
  SmallVector<Value> kSizes;
  Value kCount, thread, group, row, column; // thread of its group; its square's place in the tile
  Value memory;                             // of the block: the groups' tiles, then their sums
};

} // namespace

// Threads that are neighbours read neighbouring elements: along k, unless the free dim is what memory is contiguous in.
bool gpu::readsAlongK(Region &region, int64_t lastFree, int64_t lastK) {
  bool alongFree = false, alongK = false;
  region.walk([&](loop::LoadOp load) {
    Expr index = Expr(cast<ExprAttr>(load.getIndices()[0]));
    Expr free = lastFree >= 0 ? loop::strideOf(index, lastFree) : Expr(), k = loop::strideOf(index, lastK);
    alongFree |= free && free.isConstant(1);
    alongK |= k && k.isConstant(1);
  });
  return alongK || !alongFree;
}

TileEmitter::TileEmitter(GpuEmitter &e, loop::ContractionOp op)
    : e(e), b(e.builder), op(op), dims(op), tile(ContractionTile::fromAttribute(e.kernel.getConfigAttr())),
      type(op.getEpilogue().getArgument(0).getType()) {
  e.setDomain(dims.domain);
  auto sizesOf = [&](ArrayRef<Expr> extents) {
    return llvm::map_to_vector(extents, [&](Expr extent) { return e.emitExpr(extent, {}); });
  };
  auto productOf = [&](ArrayRef<Expr> extents) { return e.emitExpr(product(op.getContext(), extents), {}); };
  Value all = e.getRegister("tid.x");
  thread = e.invariants.mod(all, e.constant(tile.groupThreads()), true);
  group = e.invariants.floorDiv(all, e.constant(tile.groupThreads()), true);
  Value across = e.constant(tile.n / tile.threadN);
  row = e.invariants.mul(e.invariants.floorDiv(thread, across, true), e.constant(tile.threadM));
  column = e.invariants.mul(e.invariants.mod(thread, across, true), e.constant(tile.threadN));
  Value rows = e.emitExpr(product(op.getContext(), dims.m()).ceilDiv(tile.m), {});
  Value columns = e.emitExpr(product(op.getContext(), dims.n()).ceilDiv(tile.n), {});
  SmallVector<Value> place = e.createDigits(e.getRegister("ctaid.x"), {productOf(dims.batch()), rows, columns});
  point.dims = e.createDigits(place[0], sizesOf(dims.batch()));
  point.dims.resize(dims.domain.size());
  kSizes = sizesOf(dims.k());
  kCount = productOf(dims.k());

  constexpr int64_t padding = Operand::padding;
  int64_t bytes = loop::getElementBytes(type), lhsBytes = tile.k * (tile.m + padding) * bytes;
  int64_t groupBytes = lhsBytes + tile.k * (tile.n + padding) * bytes;
  int64_t sumBytes = tile.groups > 1 ? (tile.groups - 1) * tile.m * tile.n * bytes : 0;
  memory = e.sharedMemory(std::max(groupBytes * tile.groups, sumBytes));
  Value own = e.getAddress(memory, b.getI8Type(), e.invariants.mul(group, e.constant(groupBytes)));
  lhs = makeOperand(op.getLhs(), dims.firstM, dims.firstN, tile.m, place[1], own);
  rhs = makeOperand(op.getRhs(), dims.firstN, dims.firstK, tile.n, place[2],
                    e.getAddress(own, b.getI8Type(), e.constant(lhsBytes)));
}

Operand TileEmitter::makeOperand(Region &region, int64_t from, int64_t to, int64_t size, Value block, Value memory) {
  Operand operand{.region = &region, .size = size, .firstDim = from, .dimsEnd = to, .memory = memory};
  operand.isAlongK = readsAlongK(region, to > from ? to - 1 : -1, int64_t(dims.domain.size()) - 1);
  operand.first = e.invariants.mul(block, e.constant(size));
  operand.count = e.emitExpr(product(op.getContext(), dims.slice(from, to)), {});
  for (Expr extent : dims.slice(from, to))
    operand.freeSize.push_back(e.emitExpr(extent, {}));
  return operand;
}

/// (row or column, k) within the tile of the thread's element `number`.
std::pair<Value, Value> TileEmitter::placeOf(const Operand &operand, int64_t number) {
  Value index = createAdd(thread, e.constant(number * tile.groupThreads()));
  Value inner = e.constant(operand.isAlongK ? tile.k : operand.size);
  Value low = e.invariants.mod(index, inner, true), high = e.invariants.floorDiv(index, inner, true);
  return operand.isAlongK ? std::pair(high, low) : std::pair(low, high);
}

Value TileEmitter::widen(Value value) {
  if (value.getType() == type)
    return value;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(b, e.loc, type, value);
  return arith::ExtSIOp::create(b, e.loc, type, value);
}

SmallVector<Value> TileEmitter::loadTile(const Operand &operand, Value step) {
  SmallVector<Value> values;
  for (int64_t number = 0; number < perThread(operand); ++number) {
    auto [free, k] = placeOf(operand, number);
    Value position = createAdd(operand.first, free), depth = createAdd(step, k);
    Value exists = e.invariants.compare(arith::CmpIPredicate::slt, depth, kCount);
    EmissionPoint at = point;
    Value last = e.invariants.sub(operand.count, e.constant(1));
    SmallVector<Value> free_ = e.createDigits(e.invariants.min(position, last), operand.freeSize);
    llvm::copy(free_, at.dims.begin() + operand.firstDim);
    SmallVector<Value> deep = e.createDigits(depth, kSizes);
    llvm::copy(deep, at.dims.begin() + dims.firstK);
    auto load = [&] { return SmallVector<Value>{widen(e.emitRegion(*operand.region, at))}; };
    std::optional<int64_t> known = e.invariants.asConstant(kCount);
    bool isWhole = known && *known % (tile.k * tile.groups) == 0;
    values.push_back(isWhole ? load()[0] : e.createIf(exists, {zero()}, load)[0]);
  }
  return values;
}

void TileEmitter::storeTile(const Operand &operand, ValueRange values) {
  for (auto [number, value] : llvm::enumerate(values)) {
    auto [free, k] = placeOf(operand, int64_t(number));
    Value index = createAdd(e.invariants.mul(k, e.constant(operand.pitch())), free);
    e.createStore(value, e.getAddress(operand.memory, type, index));
  }
}

/// Elements of one k: in vectors of up to 16 bytes.
SmallVector<Value> TileEmitter::readLine(const Operand &operand, int64_t k, Value first, int64_t count) {
  int64_t lanes = std::min<int64_t>(count, 16 / loop::getElementBytes(type));
  SmallVector<Value> line;
  for (int64_t at = 0; at < count; at += lanes) {
    Value index = createAdd(first, e.constant(k * operand.pitch() + at));
    Value address = e.getAddress(operand.memory, type, index);
    unsigned alignment = unsigned(lanes * loop::getElementBytes(type));
    Type memory = e.getMemoryType(type);
    Value vector = LLVM::LoadOp::create(b, e.loc, VectorType::get({lanes}, memory), address, alignment);
    for (int64_t lane = 0; lane < lanes; ++lane)
      line.push_back(e.fromMemory(LLVM::ExtractElementOp::create(b, e.loc, vector, e.constant(lane)), type));
  }
  return line;
}

Value TileEmitter::multiplyAdd(Value x, Value y, Value sum) {
  if (isa<FloatType>(type))
    return math::FmaOp::create(b, e.loc, x, y, sum);
  return arith::AddIOp::create(b, e.loc, arith::MulIOp::create(b, e.loc, x, y).getResult(), sum);
}

SmallVector<Value> TileEmitter::multiply(ValueRange sums) {
  SmallVector<Value> next(sums);
  for (int64_t k = 0; k < tile.k; ++k) {
    SmallVector<Value> x = readLine(lhs, k, row, tile.threadM), y = readLine(rhs, k, column, tile.threadN);
    for (int64_t i = 0; i < tile.threadM; ++i)
      for (int64_t j = 0; j < tile.threadN; ++j) {
        Value &sum = next[size_t(i * tile.threadN + j)];
        sum = multiplyAdd(x[size_t(i)], y[size_t(j)], sum);
      }
  }
  return next;
}

/// The first group gets the sums of all, in the order of the groups.
SmallVector<Value> TileEmitter::addGroups(SmallVector<Value> sums) {
  if (tile.groups == 1)
    return sums;
  auto addressOf = [&](Value of, int64_t sum) {
    Value index = createAdd(e.invariants.mul(of, e.constant(int64_t(sums.size()) * tile.groupThreads())),
                            createAdd(thread, e.constant(sum * tile.groupThreads())));
    return e.getAddress(memory, type, index);
  };
  Value isFirst = e.invariants.compare(arith::CmpIPredicate::eq, group, e.constant(0));
  Value isOther = e.invariants.compare(arith::CmpIPredicate::sgt, group, e.constant(0));
  e.createIf(isOther, {}, [&] {
    for (auto [i, sum] : llvm::enumerate(sums))
      e.createStore(sum, addressOf(e.invariants.sub(group, e.constant(1)), int64_t(i)));
    return SmallVector<Value>();
  });
  e.createBlockBarrier();
  return e.createIf(isFirst, sums, [&] {
    SmallVector<Value> all(sums);
    for (int64_t other = 0; other + 1 < tile.groups; ++other)
      for (auto [i, sum] : llvm::enumerate(all)) {
        Value part = e.createLoad(type, 1, addressOf(e.constant(other), int64_t(i)));
        sum = isa<FloatType>(type) ? arith::AddFOp::create(b, e.loc, sum, part).getResult()
                                   : arith::AddIOp::create(b, e.loc, sum, part).getResult();
      }
    return all;
  });
}

void TileEmitter::emitResults(ValueRange sums) {
  for (int64_t i = 0; i < tile.threadM; ++i)
    for (int64_t j = 0; j < tile.threadN; ++j) {
      Value m = createAdd(lhs.first, createAdd(row, e.constant(i)));
      Value n = createAdd(rhs.first, createAdd(column, e.constant(j)));
      Value exists = e.invariants.logicalAnd(e.invariants.compare(arith::CmpIPredicate::slt, m, lhs.count),
                                             e.invariants.compare(arith::CmpIPredicate::slt, n, rhs.count));
      if (tile.groups > 1)
        exists = e.invariants.logicalAnd(exists, e.invariants.compare(arith::CmpIPredicate::eq, group, e.constant(0)));
      e.createIf(exists, {}, [&] {
        EmissionPoint at = point;
        llvm::copy(e.createDigits(m, lhs.freeSize), at.dims.begin() + lhs.firstDim);
        llvm::copy(e.createDigits(n, rhs.freeSize), at.dims.begin() + rhs.firstDim);
        e.emitRegion(op.getEpilogue(), at, {sums[size_t(i * tile.threadN + j)]});
        return SmallVector<Value>();
      });
    }
}

void TileEmitter::emit() {
  size_t squares = size_t(tile.threadM * tile.threadN);
  int64_t stride = tile.k * tile.groups;
  SmallVector<Value> sums(squares, zero());
  Value first = e.invariants.mul(group, e.constant(tile.k));
  SmallVector<Value> carried(sums);
  carried.append(loadTile(lhs, first));
  size_t lhsEnd = carried.size();
  carried.append(loadTile(rhs, first));
  // All groups take as many steps: a barrier is the whole block's.
  carried = e.createLoop(e.constant(0), kCount, stride, carried, [&](Value iv, ValueRange in) {
    ValueRange before = in;
    storeTile(lhs, before.slice(squares, lhsEnd - squares));
    storeTile(rhs, before.drop_front(lhsEnd));
    e.createBlockBarrier();
    Value next = createAdd(createAdd(iv, e.constant(stride)), first);
    SmallVector<Value> fetched;
    // Behind the last step elements do not exist; those that are not asked whether they do are read again.
    std::optional<int64_t> known = e.invariants.asConstant(kCount);
    if (known && *known % stride == 0)
      next = e.invariants.min(next, createAdd(e.constant(*known - stride), first));
    fetched.append(loadTile(lhs, next));
    fetched.append(loadTile(rhs, next));
    SmallVector<Value> out = multiply(before.take_front(squares));
    e.createBlockBarrier();
    out.append(fetched);
    return out;
  });
  carried.truncate(squares);
  emitResults(addGroups(std::move(carried)));
}

void gpu::emitContraction(GpuEmitter &e, loop::ContractionOp op) { TileEmitter(e, op).emit(); }
