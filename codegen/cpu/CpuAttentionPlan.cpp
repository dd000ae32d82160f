//===- CpuAttentionPlan.cpp - blocks, tasks and scratch of an attention ---===//
#include "codegen/cpu/CpuAttention.h"
#include "codegen/cpu/CpuPlan.h"
#include "codegen/cpu/CpuTemplates.h"
#include "codegen/cpu/CpuTuning.h"
#include "codegen/cpu/ScratchLayout.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::cpu;

static constexpr int64_t keysOfBlock = 256;   // k and v of 64 floats: 128 KiB of second-level cache
static constexpr int64_t heldBytes = 8 << 20; // of k and v that are held for all tasks of a head, a thread
static constexpr int64_t queriesOfTask = 128;
static constexpr int64_t rowsOfTile = 6; // at most levels; a task's last tile computes rows that there are not
static constexpr int64_t mostKeys = 4096, mostQueries = 4096; // that tuning may ask for
static constexpr int64_t wantedTasks = 16;
static constexpr int64_t grainWork = 1 << 19; // multiply-adds
// In multiply-adds: an element of keys or values that is copied into panels, and one that is stored ahead, which may
// come from memory and go there.
static constexpr int64_t packedElement = 8, storedElement = 32;

/// How the queries of a head are cut into tasks.
static void cutQueries(AttentionForm &f, loop::AttentionOp op) {
  auto constant = [&](int64_t value) { return Expr::constant(op.getContext(), value); };
  auto wanted = loop::getTuned(op, tuned::taskQueries);
  if (auto known = f.i.asConstant(); known && wanted) {
    f.rowsMost = std::clamp<int64_t>(*wanted, 1, std::clamp<int64_t>(*known, 1, mostQueries));
    f.rows = constant(f.rowsMost);
    f.blocks = f.i.ceilDiv(f.rows);
  } else if (known) {
    int64_t blocks = std::max<int64_t>(1, llvm::divideCeil(*known, queriesOfTask + 64));
    int64_t heads = f.batch.asConstant().value_or(1);
    while (heads * blocks < wantedTasks && *known / (blocks + 1) >= 64)
      ++blocks;
    f.rowsMost = std::max<int64_t>(1, llvm::divideCeil(*known, blocks));
    if (blocks > 1)
      f.rowsMost = llvm::alignTo(f.rowsMost, rowsOfTile);
    f.rows = constant(f.rowsMost);
    f.blocks = f.i.ceilDiv(f.rows);
  } else { // few tasks of a head, whose threads each copy keys and values, where there are heads enough for them
    int64_t heads = 1;
    for (Expr extent : ArrayRef(f.domain).take_front(f.batchDims))
      heads *= extent.asConstant().value_or(1);
    f.rowsMost = heads >= wantedTasks / 2 ? queriesOfTask : queriesOfTask / 2;
    f.blocks = f.i.ceilDiv(f.rowsMost);
    f.rowsMost = llvm::alignTo(f.rowsMost, rowsOfTile);
    f.rows = roundUp(f.i.ceilDiv(Expr::max(f.blocks, constant(1))), rowsOfTile);
  }
}

/// How the keys are cut into blocks, and how many of these wait for the next tasks of their head.
static void cutKeys(AttentionForm &f, loop::AttentionOp op) {
  auto constant = [&](int64_t value) { return Expr::constant(op.getContext(), value); };
  auto keys = f.j.asConstant(), depth = f.d.asConstant(), size = f.e.asConstant();
  bool isSmall = keys && depth && size && *keys * (*depth + *size) * int64_t(sizeof(float)) <= blockBytes;
  int64_t wantedKeys = isSmall ? std::max(*keys, keysOfBlock) : keysOfBlock;
  // Vectors of keys are whole: a block is a multiple of the longest.
  int64_t most = llvm::alignTo(tunedWithin(op, tuned::blockKeys, 16, mostKeys, wantedKeys), 64);
  f.keys = constant(keys ? std::clamp<int64_t>(llvm::divideCeil(*keys, 16) * 16, 16, most) : most);
  f.isOneBlock = keys && *keys <= most;
  int64_t mostHeld = 1; // block, of which a run tells the size
  if (depth && size) {
    int64_t columns = llvm::alignTo(*depth, panelWidth) + llvm::alignTo(*size, panelWidth);
    mostHeld = std::max<int64_t>(heldBytes / (f.keys.getValue() * std::max(columns, panelWidth) * 4), 1);
  }
  Expr allBlocks = f.j.ceilDiv(f.keys), one = constant(1);
  Expr isHeld = Expr::max(Expr::min(f.blocks - one, one), constant(0));
  f.held = Expr::min(allBlocks, isHeld * mostHeld);
  f.slots = Expr::max(Expr::min(allBlocks, f.held + one), one);
}

/// Where a task's copies and sums lie in the thread's scratch.
static void layOutTask(AttentionForm &f, loop::AttentionOp op) {
  auto constant = [&](int64_t value) { return Expr::constant(op.getContext(), value); };
  f.qPitch = roundUp(f.d, 32) + 16;
  f.scorePitch = f.keys + 16;
  f.outputPitch = roundUp(f.e, 16) + 16;
  ScratchLayout layout{constant(0)};
  auto add = [&](Expr elements) { return layout.add(elements, sizeof(float)); };
  Expr allRows = constant(f.rowsMost + tallestTile);
  f.qAt = add(allRows * f.qPitch);
  f.kAt = add(f.slots * f.keys * roundUp(f.d, 16) + 16 * panelWidth); // a transposed square may run over the end
  f.vAt = add(f.slots * f.keys * roundUp(f.e, 16) + 16 * panelWidth);
  f.scoresAt = add(f.scorePitch * tallestTile);
  f.outputAt = add(allRows * f.outputPitch);
  f.maximaAt = add(allRows);
  f.sumsAt = add(allRows);
  f.scalesAt = add(constant(tallestTile));
  f.partialsAt = add(constant(tallestTile * panelWidth));
  f.skipsAt = add(mayHideKeys(op) ? allRows : constant(0));
  f.scratch = layout.end;
}

AttentionForm cpu::analyzeAttention(loop::AttentionOp op) {
  AttentionForm f;
  f.domain = loop::getDomain(op);
  f.batchDims = int64_t(op.getBatch());
  f.batch = product(op.getContext(), ArrayRef(f.domain).take_front(f.batchDims));
  f.i = f.domain[f.batchDims];
  f.j = f.domain[f.batchDims + 1];
  f.d = f.domain[f.batchDims + 2];
  f.e = f.domain[f.batchDims + 3];
  cutQueries(f, op);
  cutKeys(f, op);
  layOutTask(f, op);
  return f;
}

/// Bytes of scratch that queries and the products ahead of them use in turns; the kernel's own buffers follow.
Expr cpu::scratchInTurns(const AttentionForm &f, ArrayRef<Operation *> ahead) {
  Expr bytes = f.scratch;
  for (Operation *node : ahead)
    if (auto product = dyn_cast<loop::ContractionOp>(node))
      bytes = Expr::max(bytes, analyzeContraction(product).scratch.size);
  return bytes;
}

/// Of a product that runs ahead of each head. Its dims may be merged; its batch begins with the heads.
Expr cpu::matricesOfHead(const ContractionForm &form, const AttentionForm &f) {
  return form.batch.floorDiv(Expr::max(f.batch, Expr::constant(form.accumulator.getContext(), 1)));
}

/// What runs ahead of a head, in multiply-adds.
static Expr workAhead(loop::KernelOp kernel, const AttentionForm &f, ArrayRef<Operation *> ahead) {
  MLIRContext *context = kernel.getContext();
  Expr work = Expr::constant(context, 0);
  for (Operation *node : ahead) {
    if (auto contraction = dyn_cast<loop::ContractionOp>(node)) {
      ContractionForm form = describeContraction(contraction);
      work = work + matricesOfHead(form, f) * form.m * form.n * form.k;
      continue;
    }
    int64_t stores = 0;
    node->walk([&](loop::StoreOp) { ++stores; });
    work = work + product(context, ArrayRef(loop::getDomain(node)).drop_front(f.batchDims)) * stores * storedElement;
  }
  return work;
}

FailureOr<KernelPlan> cpu::planAttention(loop::KernelOp kernel, ArrayRef<Operation *> nodes) {
  AttentionForm f = analyzeAttention(cast<loop::AttentionOp>(nodes.back()));
  ArrayRef<Operation *> ahead = nodes.drop_back();
  for (Operation *node : ahead)
    if (auto product = dyn_cast<loop::ContractionOp>(node))
      canonicalizeContraction(product);
  MLIRContext *context = kernel.getContext();
  Expr one = Expr::constant(context, 1);
  Expr work = (f.rows + packedElement) * f.j * (f.d + f.e), tasks = f.blocks;
  if (!ahead.empty()) {
    work = work * tasks + workAhead(kernel, f, ahead);
    tasks = one;
  }
  Builder builder(context);
  auto config = builder.getDictionaryAttr(
      {builder.getNamedAttr("queries", ExprAttr(f.rows)), builder.getNamedAttr("keys", ExprAttr(f.keys))});
  return KernelPlan{.iterations = f.batch * tasks,
                    .grain = Expr::constant(context, grainWork).ceilDiv(Expr::max(work, one)),
                    .scratch = scratchInTurns(f, ahead) + placeLocalBuffers(kernel).scratch,
                    .config = config};
}
