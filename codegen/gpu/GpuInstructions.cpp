//===- GpuInstructions.cpp - instructions of tensor-core kernels ----------===//
#include "codegen/gpu/GpuInstructions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static Value call(GpuEmitter &e, StringRef name, Type result, ValueRange operands) {
  auto intrinsic = e.builder.getStringAttr(name);
  return LLVM::CallIntrinsicOp::create(e.builder, e.loc, result, intrinsic, operands).getResult(0);
}

static void callVoid(GpuEmitter &e, StringRef name, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(e.builder, e.loc, e.builder.getStringAttr(name), operands);
}

static Value word(GpuEmitter &e, int64_t value) {
  return e.invariants.constant(e.builder.getI32IntegerAttr(int32_t(value)));
}

static SmallVector<Value> fourOf(GpuEmitter &e, StringRef name, Type element, ValueRange operands) {
  auto type = LLVM::LLVMStructType::getLiteral(e.builder.getContext(), SmallVector<Type>(4, element));
  Value all = call(e, name, type, operands);
  SmallVector<Value> values;
  for (int64_t i = 0; i < 4; ++i)
    values.push_back(LLVM::ExtractValueOp::create(e.builder, e.loc, all, i));
  return values;
}

SmallVector<Value> gpu::createLoadMatrices(GpuEmitter &e, Value address, bool isTransposed) {
  StringRef name = isTransposed ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3"
                                : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3";
  return fourOf(e, name, e.builder.getI32Type(), address);
}

static StringRef nameOfMma(MmaKind kind) {
  switch (kind) {
  case MmaKind::F16:
    return "llvm.nvvm.mma.m16n8k16.row.col.f32.f32";
  case MmaKind::BF16:
    return "llvm.nvvm.mma.m16n8k16.row.col.bf16";
  case MmaKind::SplitF32:
    return "llvm.nvvm.mma.m16n8k8.row.col.tf32";
  case MmaKind::S8S8:
    return "llvm.nvvm.mma.m16n8k32.row.col.s8";
  case MmaKind::S8U8:
    return "llvm.nvvm.mma.m16n8k32.row.col.s8.u8";
  case MmaKind::U8S8:
    return "llvm.nvvm.mma.m16n8k32.row.col.u8.s8";
  case MmaKind::U8U8:
    return "llvm.nvvm.mma.m16n8k32.row.col.u8";
  }
  llvm_unreachable("a kind has a name");
}

SmallVector<Value> gpu::createMma(GpuEmitter &e, MmaKind kind, ValueRange a, ValueRange b, ValueRange sums) {
  SmallVector<Value> operands;
  auto pair = VectorType::get({2}, e.builder.getF16Type());
  for (ValueRange side : {a, b})
    for (Value value : side)
      operands.push_back(kind == MmaKind::F16 ? LLVM::BitcastOp::create(e.builder, e.loc, pair, value).getResult()
                                              : value);
  operands.append(sums.begin(), sums.end());
  return fourOf(e, nameOfMma(kind), getSumType(e.builder.getContext(), kind), operands);
}

Value gpu::createSum(GpuEmitter &e, Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::AddFOp::create(e.builder, e.loc, a, b);
  return arith::AddIOp::create(e.builder, e.loc, a, b);
}

Value gpu::createPowerOfTwo(GpuEmitter &e, Value x) {
  return call(e, "llvm.nvvm.ex2.approx.ftz.f32", e.builder.getF32Type(), x);
}

Value gpu::createPair(GpuEmitter &e, MmaKind kind, Value first, Value second) {
  bool isF16 = kind == MmaKind::F16;
  auto type = VectorType::get({2}, isF16 ? Type(e.builder.getF16Type()) : Type(e.builder.getBF16Type()));
  Value pair = call(e, isF16 ? "llvm.nvvm.ff2f16x2.rn" : "llvm.nvvm.ff2bf16x2.rn", type, {second, first});
  return LLVM::BitcastOp::create(e.builder, e.loc, e.builder.getI32Type(), pair);
}

Value gpu::createBytes(GpuEmitter &e, Value low, Value high, int64_t choice) {
  return call(e, "llvm.nvvm.prmt", e.builder.getI32Type(), {low, high, word(e, choice)});
}

void gpu::createCopyAsync(GpuEmitter &e, Value target, Value source, int64_t bytes, Value exists) {
  Value count = exists ? e.invariants.select(exists, word(e, bytes), word(e, 0)) : word(e, bytes);
  callVoid(e, bytes == 16 ? "llvm.nvvm.cp.async.cg.shared.global.16.s" : "llvm.nvvm.cp.async.ca.shared.global.4.s",
           {target, source, count});
}

void gpu::createCopyCommit(GpuEmitter &e) { callVoid(e, "llvm.nvvm.cp.async.commit.group", {}); }

void gpu::createCopyWait(GpuEmitter &e, int64_t pending) {
  callVoid(e, "llvm.nvvm.cp.async.wait.group", word(e, pending));
}

Value gpu::createBarrierOr(GpuEmitter &e, Value flag) {
  return call(e, "llvm.nvvm.barrier.cta.red.or.aligned.all", e.builder.getI1Type(), {word(e, 0), flag});
}

void gpu::createDeviceFence(GpuEmitter &e) {
  LLVM::FenceOp::create(e.builder, e.loc, LLVM::AtomicOrdering::acq_rel, "device");
}

Value gpu::createCount(GpuEmitter &e, Value counter) {
  return LLVM::AtomicRMWOp::create(e.builder, e.loc, LLVM::AtomicBinOp::add, counter, word(e, 1),
                                   LLVM::AtomicOrdering::monotonic, "device");
}

Value gpu::createLastArrival(GpuEmitter &e, Value number, Value count) {
  OpBuilder &b = e.builder;
  createDeviceFence(e);
  e.createBlockBarrier();
  Value counter = e.getAddress(e.counters, b.getI32Type(), number);
  Value isFirst = e.invariants.compare(arith::CmpIPredicate::eq, e.getRegister("tid.x"), e.constant(0));
  Value no = e.invariants.constant(b.getBoolAttr(false));
  Value arrived = e.createIf(isFirst, {no}, [&] {
    Value before = arith::ExtUIOp::create(b, e.loc, b.getI64Type(), createCount(e, counter));
    Value last = e.invariants.sub(count, e.constant(1));
    return SmallVector<Value>{arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq, before, last).getResult()};
  })[0];
  Value isLast = createBarrierOr(e, arrived);
  e.createIf(isLast, {}, [&] {
    createDeviceFence(e);
    e.createIf(isFirst, {}, [&] {
      LLVM::StoreOp::create(b, e.loc, word(e, 0), counter);
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
  return isLast;
}
