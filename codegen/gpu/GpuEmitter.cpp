//===- GpuEmitter.cpp - one kernel as the code of one thread --------------===//
#include "codegen/gpu/GpuEmitter.h"
#include "codegen/gpu/AtomicScatter.h"
#include "codegen/gpu/GpuBarriers.h"
#include "codegen/gpu/GpuTemplates.h"
#include "codegen/gpu/MergeSort.h"
#include "codegen/gpu/OwnedScatter.h"
#include "codegen/gpu/PackedProduct.h"
#include "codegen/gpu/RowBuffers.h"
#include "codegen/gpu/SortedScatter.h"
#include "codegen/gpu/SplitReduction.h"
#include "codegen/gpu/StreamedProduct.h"
#include "codegen/gpu/TeamScan.h"
#include "ir/loop/Horizontal.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static Value errorFlagOf(loop::KernelOp kernel, ValueRange arguments) {
  size_t before = kernel.getBlock().getNumArguments() + kernel.getSymbols().size();
  return checksIndices(kernel) ? arguments[before] : Value();
}

GpuEmitter::GpuEmitter(OpBuilder &builder, ModuleOp module, loop::KernelOp kernel, ValueRange arguments,
                       bool startsEarly)
    : KernelEmitter(builder, kernel, {.narrowIndices = true, .sharedErrors = true, .hasExtrema = true},
                    errorFlagOf(kernel, arguments)),
      config(GpuConfig::fromAttribute(kernel.getConfigAttr())), startsEarly(startsEarly), module(module) {
  size_t next = 0;
  for (BlockArgument buffer : kernel.getBlock().getArguments())
    setPointer(buffer, arguments[next++]);
  auto bounds = kernel.getConfigAttr().getAs<DenseI64ArrayAttr>("bounds");
  for (auto [i, name] : llvm::enumerate(kernel.getSymbols().getAsValueRange<StringAttr>()))
    setSymbol(name, arguments[next++], bounds ? ExprRange{bounds[2 * i], bounds[2 * i + 1]} : ExprRange());
  next += checksIndices(kernel);
  if (!Expr(kernel.getScratchAttr()).isConstant(0))
    scratch = arguments[next++];
  if (kernel.getConfigAttr().contains("counters"))
    counters = arguments[next++];
  llvm::append_range(maps, arguments.drop_front(next));
}

Value GpuEmitter::sharedMemory(int64_t bytes) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), unsigned(bytes));
  std::string name = (kernel.getSymName() + "_shared" + std::to_string(sharedBlocks++)).str();
  constexpr unsigned sharedSpace = 3;
  auto global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/false, LLVM::Linkage::Internal, name,
                                       Attribute(), /*alignment=*/16, sharedSpace);
  builder.createBlock(&global.getInitializerRegion());
  Value nothing = LLVM::PoisonOp::create(builder, loc, type);
  LLVM::ReturnOp::create(builder, loc, nothing);
  return invariants.get<LLVM::AddressOfOp>(global);
}

Value GpuEmitter::sharedMemoryOfRow(int64_t bytes) {
  Value offset = invariants.mul(rowOfBlock, constant(bytes));
  return getAddress(sharedMemory(bytes * config.rows), builder.getI8Type(), offset);
}

Value GpuEmitter::launchedMemory(int64_t alignment) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  constexpr unsigned sharedSpace = 3;
  auto global =
      LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/false, LLVM::Linkage::External,
                             (kernel.getSymName() + "_launched").str(), Attribute(), unsigned(alignment), sharedSpace);
  return invariants.get<LLVM::AddressOfOp>(global);
}

Value *GpuEmitter::getKept(Value buffer, int64_t lane) {
  return keptBuffers.contains(buffer) ? &kept[{buffer, {turn, lane}}] : nullptr;
}

void GpuEmitter::placeLocals() {
  LocalMemory memory = placeLocalBuffers(kernel, config);
  Value shared = memory.sharedBytes ? sharedMemory(memory.sharedBytes * config.rows) : Value();
  for (const LocalBuffer &local : memory.buffers) {
    Value buffer = loop::BufferOp(local.buffer).getResult();
    auto type = cast<loop::BufferType>(buffer.getType());
    if (local.place == LocalBuffer::Place::Registers) {
      keptBuffers.insert(buffer);
      continue;
    }
    if (local.place == LocalBuffer::Place::Thread) {
      setPointer(buffer, createStackSlot(*type.getElementCount().asConstant() * type.getElementBytes(), 16));
      if (isRowValue(local.buffer, config))
        hold(buffer);
      continue;
    }
    bool isShared = local.place == LocalBuffer::Place::Shared;
    Value stride = isShared ? constant(memory.sharedBytes) : emitExpr(memory.scratchBytes, {});
    Value offset =
        invariants.add(invariants.mul(isShared ? rowOfBlock : rowOfGrid, stride), emitExpr(local.offset, {}));
    setPointer(buffer, getAddress(isShared ? shared : scratch, builder.getI8Type(), offset));
  }
  for (const WorkSpace &space : memory.workSpaces) {
    Value start = invariants.mul(rowOfGrid, emitExpr(memory.scratchBytes, {}));
    Value offset = invariants.add(start, emitExpr(space.offset, {}));
    setLocalMemory(space.node, getAddress(scratch, builder.getI8Type(), offset));
  }
}

/// Each node has blocks of its own, one node's behind the other's.
void GpuEmitter::emitHorizontal(ArrayRef<Operation *> nodes) {
  auto less = [&](Value a, Value b) { return invariants.compare(arith::CmpIPredicate::slt, a, b); };
  Value block = getRegister("ctaid.x"), thread = getRegister("tid.x"), first = constant(0);
  row = {constant(0), 1};
  for (Operation *node : nodes) {
    GpuConfig own = planHorizontal(node);
    Value end = invariants.add(first, emitExpr(countBlocks(node, own), {}));
    Value isOwn = arith::XOrIOp::create(builder, loc, less(block, first), less(block, end));
    createIf(isOwn, {}, [&] {
      Value number = invariants.add(invariants.mul(invariants.sub(block, first), constant(own.threads)), thread);
      SmallVector<Value> sizes;
      Value total = constant(1);
      SmallVector<Expr> domain = loop::getDomain(node);
      for (auto [dim, extent] : llvm::enumerate(domain)) {
        sizes.push_back(emitExpr(dim + 1 == domain.size() ? extent.ceilDiv(own.lanes) : extent, {}));
        total = invariants.mul(total, sizes.back());
      }
      createIf(less(number, total), {}, [&] {
        EmissionPoint point;
        point.dims = createDigits(number, sizes);
        if (own.lanes > 1)
          point.dims.back() = invariants.mul(point.dims.back(), constant(own.lanes));
        NodeEmitter(*this, node, own.spread).emit(point, own.lanes);
        return SmallVector<Value>();
      });
      return SmallVector<Value>();
    });
    first = end;
  }
}

void GpuEmitter::emit() {
  SmallVector<Operation *> nodes = getNodes(kernel);
  auto contraction = nodes.empty() ? loop::ContractionOp() : dyn_cast<loop::ContractionOp>(nodes.front());
  if (!maps.empty()) // prepares its barriers before it waits
    return emitWgmmaContraction(*this, contraction);
  if (kernel.getConfigAttr().contains("streamed"))
    return emitStreamed(*this, contraction);
  if (kernel.getConfigAttr().contains("packed"))
    return emitPacked(*this, contraction);
  createLaunchOrder();
  if (contraction)
    return kernel.getConfigAttr().contains("mma") ? emitMmaContraction(*this, contraction)
                                                  : emitContraction(*this, contraction);
  if (kernel.getConfigAttr().contains("attention"))
    return emitMmaAttention(*this, cast<loop::AttentionOp>(nodes.front()));
  if (kernel.getConfigAttr().contains("reduction"))
    return emitSplitReduction(*this, cast<loop::ReductionOp>(nodes.front()));
  if (kernel.getConfigAttr().contains("scan"))
    return emitSplitScan(*this, cast<loop::ScanOp>(nodes.front()));
  if (kernel.getConfigAttr().contains("sort"))
    return emitMergeSort(*this, cast<loop::SortOp>(nodes.front()));
  if (kernel.getConfigAttr().contains("atomic"))
    return emitAtomicScatter(*this, cast<loop::ScatterOp>(nodes.front()));
  if (kernel.getConfigAttr().contains("last"))
    return emitLastScatter(*this, cast<loop::ScatterOp>(nodes.front()));
  if (kernel.getConfigAttr().contains("sorted"))
    return emitSortedScatter(*this, cast<loop::ScatterOp>(nodes.front()));
  if (kernel.getConfigAttr().contains("scatter"))
    return emitOwnedScatter(*this, cast<loop::ScatterOp>(nodes.front()));
  if (loop::isHorizontal(kernel))
    return emitHorizontal(nodes);
  SmallVector<Value> sizes;
  SmallVector<Expr> domain = nodes.empty() ? SmallVector<Expr>() : loop::getDomain(nodes.front());
  for (Expr extent : ArrayRef(domain).take_front(size_t(config.spread)))
    sizes.push_back(emitExpr(sizes.size() + 1 == size_t(config.spread) ? extent.ceilDiv(config.lanes) : extent, {}));
  Value block = getRegister("ctaid.x"), thread = getRegister("tid.x");
  rowOfBlock = config.rows > 1 ? getRegister("tid.y") : constant(0);
  row = config.isRows ? Team{thread, config.threads} : Team{constant(0), 1};
  Value number = invariants.add(invariants.mul(block, constant(config.isRows ? config.rows : config.threads)),
                                config.isRows ? rowOfBlock : thread);
  rowOfGrid = number;
  placeLocals();

  auto body = [&] {
    EmissionPoint point;
    point.dims = createDigits(number, sizes);
    if (config.lanes > 1)
      point.dims.back() = invariants.mul(point.dims.back(), constant(config.lanes));
    Barriers barriers(config);
    for (Operation *node : nodes) {
      if (config.isRows && barriers.enter(node))
        createBarrier();
      NodeEmitter(*this, node, config.spread).emit(point, config.lanes);
    }
    return SmallVector<Value>();
  };
  if (config.isRows && config.rows == 1) { // blocks are rows
    body();
    return;
  }
  Value total = constant(1);
  for (Value size : sizes)
    total = invariants.mul(total, size);
  createIf(invariants.compare(arith::CmpIPredicate::slt, number, total), {}, body);
}
