//===- WgmmaInstructions.cpp - wgmma, TMA and their barriers --------------===//
//
// Inline assembly: LLVM has no intrinsics for most of these, and what ties sums to the wait for them is an operand.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/WgmmaInstructions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static LLVM::InlineAsmOp assemble(GpuEmitter &e, TypeRange results, StringRef text, StringRef constraints,
                                  ValueRange operands) {
  return LLVM::InlineAsmOp::create(e.builder, e.loc, results, operands, text, constraints, /*has_side_effects=*/true,
                                   /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                                   ArrayAttr());
}

static void run(GpuEmitter &e, const Twine &text, StringRef constraints, ValueRange operands) {
  std::string all = constraints.empty() ? "~{memory}" : constraints.str() + ",~{memory}";
  assemble(e, TypeRange(), text.str(), all, operands);
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void gpu::createBarrierInit(GpuEmitter &e, Value barrier, int64_t arrivals) {
  run(e, "mbarrier.init.shared::cta.b64 [$0], " + Twine(arrivals) + ";", "r", barrier);
}

void gpu::createBarrierInitFence(GpuEmitter &e) {
  run(e, "fence.mbarrier_init.release.cluster;\n\tfence.proxy.async;", "", {});
}

void gpu::createBarrierWait(GpuEmitter &e, Value barrier, Value parity) {
  run(e,
      "{\n\t.reg .pred done;\n\tagain:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n\t@done bra "
      "end;\n\t"
      "bra again;\n\tend:\n\t}",
      "r,r", {barrier, parity});
}

void gpu::createBarrierExpect(GpuEmitter &e, Value barrier, int64_t bytes) {
  run(e, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], " + Twine(bytes) + ";", "r", barrier);
}

// A predicate inside: a branch in a loop of products would make the assembler wait for each of them.
void gpu::createBarrierArrive(GpuEmitter &e, Value barrier, Value condition) {
  run(e, "{\n\t.reg .pred is;\n\tsetp.ne.b32 is, $1, 0;\n\t@is mbarrier.arrive.shared::cta.b64 _, [$0];\n\t}", "r,r",
      {barrier, condition});
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void gpu::createMapPrefetch(GpuEmitter &e, Value map) { run(e, "prefetch.tensormap [$0];", "l", map); }

void gpu::createBoxCopy(GpuEmitter &e, Value target, Value map, ValueRange coordinates, Value barrier) {
  std::string places, constraints = "r,l,r";
  for (size_t i = 0; i < coordinates.size(); ++i) {
    places += (i ? ", $" : "$") + std::to_string(i + 3);
    constraints += ",r";
  }
  SmallVector<Value> operands{target, map, barrier};
  llvm::append_range(operands, coordinates);
  run(e,
      "cp.async.bulk.tensor." + Twine(coordinates.size()) +
          "d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {" + places + "}], [$2];",
      constraints, operands);
}

void gpu::createPixelCopy(GpuEmitter &e, Value target, Value map, ValueRange coordinates, ValueRange within,
                          Value barrier) {
  std::string constraints = "r,l,r";
  SmallVector<Value> operands{target, map, barrier};
  auto listOf = [&](ValueRange values, StringRef constraint) {
    std::string list;
    for (auto [i, value] : llvm::enumerate(values)) {
      list += (i ? ", $" : "$") + std::to_string(operands.size());
      constraints += "," + constraint.str();
      operands.push_back(value);
    }
    return list;
  };
  std::string places = listOf(coordinates, "r");
  SmallVector<Value> narrow;
  for (Value offset : within)
    narrow.push_back(e.invariants.get<arith::TruncIOp>(e.builder.getI16Type(), offset));
  std::string offsets = listOf(narrow, "h");
  run(e,
      "cp.async.bulk.tensor." + Twine(coordinates.size()) +
          "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [$0], [$1, {" + places + "}], [$2], {" +
          offsets + "};",
      constraints, operands);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void gpu::createRegisterLimit(GpuEmitter &e, int64_t count, bool isMore) {
  run(e, Twine("setmaxnreg.") + (isMore ? "inc" : "dec") + ".sync.aligned.u32 " + Twine(count) + ";", "", {});
}

// Bits: 0-13 the address, 16-29 the distance of chunks, 32-45 that of groups of eight rows, all in 16 bytes; 62-63 the
// swizzle of 128 bytes.
Value gpu::createMatrixDescriptor(GpuEmitter &e, Value address, int64_t chunks) {
  constexpr uint64_t groupBytes = 1024, unit = 16, swizzle = uint64_t(1) << 62;
  uint64_t rest = std::max<uint64_t>(uint64_t(chunks) / unit, 1) << 16 | groupBytes / unit << 32 | swizzle;
  OpBuilder &b = e.builder;
  auto word = [&](int32_t value) { return e.invariants.constant(b.getI32IntegerAttr(value)); };
  Value place = arith::AndIOp::create(b, e.loc, address, word(0x3ffff));
  place = arith::ShRUIOp::create(b, e.loc, place, word(4));
  Value wide = arith::ExtUIOp::create(b, e.loc, b.getI64Type(), place);
  return arith::OrIOp::create(b, e.loc, wide, e.constant(int64_t(rest)));
}

// Values that are operands and results at once; or `fresh` f32 results alone.
static SmallVector<Value> assembleInPlace(GpuEmitter &e, StringRef text, ValueRange values, ValueRange more,
                                          StringRef moreConstraints, size_t fresh = 0) {
  std::string constraints, tied;
  for (size_t i = 0; i < fresh; ++i)
    constraints += i ? ",=f" : "=f";
  for (auto [i, value] : llvm::enumerate(values)) {
    constraints += (i ? ",=" : "=") + std::string(isa<FloatType>(value.getType()) ? "f" : "r");
    tied += "," + std::to_string(i);
  }
  SmallVector<Value> operands(more);
  llvm::append_range(operands, values);
  constraints += moreConstraints.str() + tied + ",~{memory}";
  SmallVector<Type> types(values.getTypes());
  types.append(fresh, e.builder.getF32Type());
  Type all = LLVM::LLVMStructType::getLiteral(e.builder.getContext(), types);
  Value result = assemble(e, all, text, constraints, operands).getResult(0);
  SmallVector<Value> results;
  for (size_t i = 0; i < types.size(); ++i)
    results.push_back(LLVM::ExtractValueOp::create(e.builder, e.loc, result, int64_t(i)));
  return results;
}

SmallVector<Value> gpu::createProductFence(GpuEmitter &e, ValueRange operands) {
  StringRef text = "wgmma.fence.sync.aligned;";
  if (!operands.empty())
    return assembleInPlace(e, text, operands, {}, "");
  run(e, text, "", {});
  return {};
}

static StringRef typesOfProduct(MmaKind kind) {
  switch (kind) {
  case MmaKind::F16:
    return "k16.f32.f16.f16";
  case MmaKind::BF16:
    return "k16.f32.bf16.bf16";
  case MmaKind::SplitF32:
    return "k8.f32.tf32.tf32";
  case MmaKind::S8S8:
    return "k32.s32.s8.s8";
  case MmaKind::S8U8:
    return "k32.s32.s8.u8";
  case MmaKind::U8S8:
    return "k32.s32.u8.s8";
  case MmaKind::U8U8:
    return "k32.s32.u8.u8";
  }
  llvm_unreachable("a kind has types");
}

SmallVector<Value> gpu::createSplitProduct(GpuEmitter &e, const WgmmaTile &tile, ValueRange lhs, Value rhs,
                                           ValueRange sums) {
  size_t count = size_t(tile.n / 2);
  std::string text, list;
  for (size_t i = 0; i < count; ++i)
    list += (i ? ", $" : "$") + std::to_string(i);
  llvm::raw_string_ostream os(text);
  os << "wgmma.mma_async.sync.aligned.m64n" << tile.n << typesOfProduct(tile.kind) << " {" << list << "}, {$" << count
     << ", $" << count + 1 << ", $" << count + 2 << ", $" << count + 3 << "}, $" << count + 4 << ", " << !sums.empty()
     << ", 1, 1;";
  SmallVector<Value> operands(lhs);
  operands.push_back(rhs);
  return assembleInPlace(e, text, sums, operands, ",r,r,r,r,l", sums.empty() ? count : 0);
}

SmallVector<Value> gpu::createProduct(GpuEmitter &e, const WgmmaTile &tile, Value lhs, Value rhs, bool lhsAlongK,
                                      bool rhsAlongK, ValueRange sums) {
  std::string text, list;
  for (size_t i = 0; i < sums.size(); ++i)
    list += (i ? ", $" : "$") + std::to_string(i);
  llvm::raw_string_ostream os(text);
  os << "wgmma.mma_async.sync.aligned.m64n" << tile.n << typesOfProduct(tile.kind) << " {" << list << "}, $"
     << sums.size() << ", $" << sums.size() + 1 << ", 1";
  if (!multipliesBytes(tile.kind))
    os << ", 1, 1, " << !lhsAlongK << ", " << !rhsAlongK;
  os << ";";
  return assembleInPlace(e, text, sums, {lhs, rhs}, ",l,l");
}

void gpu::createProductCommit(GpuEmitter &e) { run(e, "wgmma.commit_group.sync.aligned;", "", {}); }

void gpu::createProductWait(GpuEmitter &e, int64_t pending) {
  run(e, "wgmma.wait_group.sync.aligned " + Twine(pending) + ";", "", {});
}

SmallVector<Value> gpu::createProductEnd(GpuEmitter &e, ValueRange values, int64_t pending) {
  return assembleInPlace(e, ("wgmma.wait_group.sync.aligned " + Twine(pending) + ";").str(), values, {}, "");
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void gpu::createSharedFence(GpuEmitter &e) { run(e, "fence.proxy.async.shared::cta;", "", {}); }

void gpu::createWarpBarrier(GpuEmitter &e) { run(e, "bar.warp.sync 0xffffffff;", "", {}); }

Value gpu::createGroupBarrierOr(GpuEmitter &e, Value group, Value flag) {
  std::string text = "{\n\t.reg .pred is, any;\n\tsetp.ne.b32 is, $2, 0;\n\tbarrier.cta.red.or.pred.aligned any, $1, " +
                     std::to_string(WgmmaTile::groupThreads) + ", is;\n\tselp.b32 $0, 1, 0, any;\n\t}";
  return assemble(e, e.builder.getI32Type(), text, "=r,r,r,~{memory}", {group, flag}).getResult(0);
}

void gpu::createGroupsBarrier(GpuEmitter &e, int64_t groups) {
  constexpr int64_t number = 8; // other than the block's and those of single groups
  run(e, "barrier.cta.sync.aligned " + Twine(number) + ", " + Twine(groups * WgmmaTile::groupThreads) + ";", "", {});
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

void gpu::createClusterBarrier(GpuEmitter &e) {
  run(e, "barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;", "", {});
}

void gpu::createSharedStore(GpuEmitter &e, Value address, ValueRange values) {
  SmallVector<Value> operands{address};
  llvm::append_range(operands, values);
  bool isFloat = isa<FloatType>(values[0].getType());
  run(e, "st.shared.v4.b32 [$0], {$1, $2, $3, $4};", isFloat ? "r,f,f,f,f" : "r,r,r,r,r", operands);
}

SmallVector<Value> gpu::createPeerLoad(GpuEmitter &e, Type type, Value address, Value rank) {
  SmallVector<Type> types(4, type);
  Type all = LLVM::LLVMStructType::getLiteral(e.builder.getContext(), types);
  StringRef text = "{\n\t.reg .b32 peer;\n\tmapa.shared::cluster.u32 peer, $4, $5;\n\t"
                   "ld.shared::cluster.v4.b32 {$0, $1, $2, $3}, [peer];\n\t}";
  StringRef results = isa<FloatType>(type) ? "=f,=f,=f,=f" : "=r,=r,=r,=r";
  Value result = assemble(e, all, text, (results + ",r,r,~{memory}").str(), {address, rank}).getResult(0);
  SmallVector<Value> values;
  for (int64_t i = 0; i < 4; ++i)
    values.push_back(LLVM::ExtractValueOp::create(e.builder, e.loc, result, i));
  return values;
}
