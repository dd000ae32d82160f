//===- LLVMFaults.cpp - kernels kept from what LLVM does wrong ------------===//
//
// Parts of a vector. SROA of LLVM 22 (its "tree-structured merge") makes of
//
//   store <8 x float> %high, %slot + 32
//   %low = ...
//   store <8 x float> %low, %slot
//   %all = load <16 x float>, %slot
//
// a shuffle of %low and %high at the first of these lines, where the part at the highest offset is stored: before %low
// is there. The module is broken, and what is computed is anything. With that store behind the other it is right.
//
// Lone elements. The x86 code of
//
//   %narrow = trunc <8 x i32> %wide to <8 x i16>
//   masked.store %narrow, %at, <true, false, ...>
//
// is a store of the first 32 bits of %wide, with AVX512BW and VL: the element behind is written, too. It arises where
// 16 * n + 1 columns of bf16 or f16 are stored.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/LLVMFaults.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {

struct Access {
  Instruction *op;
  int64_t begin, end; // bytes of the slot
  bool overlaps(const Access &other) const { return begin < other.end && other.begin < end; }
  bool contains(const Access &other) const { return begin <= other.begin && other.end <= end; }
};

struct Slot {
  SmallVector<Access> loads, stores;
};

/// All that is read and written of the slot; nothing if SROA leaves it alone, since its address is used otherwise.
std::optional<Slot> collectAccesses(AllocaInst &alloca, const DataLayout &layout) {
  Slot slot;
  SmallVector<std::pair<Value *, int64_t>> addresses = {{&alloca, 0}};
  while (!addresses.empty()) {
    auto [address, offset] = addresses.pop_back_val();
    for (User *user : address->users()) {
      auto add = [&](SmallVector<Access> &list, Type *type) {
        TypeSize size = layout.getTypeStoreSize(type);
        if (!size.isScalable())
          list.push_back({cast<Instruction>(user), offset, offset + int64_t(size.getFixedValue())});
        return !size.isScalable();
      };
      bool isKnown = false;
      if (auto *load = dyn_cast<LoadInst>(user)) {
        isKnown = add(slot.loads, load->getType());
      } else if (auto *store = dyn_cast<StoreInst>(user)) {
        isKnown = store->getPointerOperand() == address && add(slot.stores, store->getValueOperand()->getType());
      } else if (auto *gep = dyn_cast<GetElementPtrInst>(user)) {
        APInt step(layout.getIndexTypeSizeInBits(gep->getType()), 0);
        isKnown = gep->accumulateConstantOffset(layout, step);
        addresses.push_back({gep, offset + step.getSExtValue()});
      } else {
        isKnown = isa<LifetimeIntrinsic>(user);
      }
      if (!isKnown)
        return std::nullopt;
    }
  }
  return slot;
}

/// Moves the store of the last part behind the other stores of parts of what the load reads, in its block.
bool orderParts(const Slot &slot, const Access &load) {
  const Access *last = nullptr;
  for (const Access &store : slot.stores)
    if (load.contains(store) && (!last || store.begin > last->begin))
      last = &store;
  if (!last)
    return false;
  Instruction *behind = last->op;
  for (const Access &store : slot.stores)
    if (load.contains(store) && store.op->getParent() == behind->getParent() && behind->comesBefore(store.op))
      behind = store.op;
  // What touches the part in between keeps SROA from joining, too.
  for (const Access &access : llvm::concat<const Access>(slot.loads, slot.stores))
    if (&access != last && access.overlaps(*last) && access.op->getParent() == behind->getParent() &&
        last->op->comesBefore(access.op) && !behind->comesBefore(access.op))
      return false;
  if (behind == last->op)
    return false;
  last->op->moveAfter(behind);
  return true;
}

} // namespace

PreservedAnalyses ptc::codegen::OrderStoresPass::run(Function &function, FunctionAnalysisManager &) {
  const DataLayout &layout = function.getParent()->getDataLayout();
  bool hasChanged = false;
  for (Instruction &op : function.getEntryBlock())
    if (auto *alloca = dyn_cast<AllocaInst>(&op))
      if (std::optional<Slot> slot = collectAccesses(*alloca, layout))
        for (const Access &load : slot->loads)
          if (load.op->getType()->isVectorTy())
            hasChanged |= orderParts(*slot, load);
  return hasChanged ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

/// The one lane that a constant mask has; nothing where it has several, or none.
static std::optional<unsigned> findLoneLane(const Constant &mask) {
  std::optional<unsigned> found;
  auto *type = dyn_cast<FixedVectorType>(mask.getType());
  for (unsigned lane = 0; type && lane < type->getNumElements(); ++lane) {
    Constant *element = mask.getAggregateElement(lane);
    bool isOff = element && (element->isNullValue() || isa<UndefValue>(element));
    if (isOff)
      continue;
    if (found || !element || !element->isOneValue())
      return std::nullopt;
    found = lane;
  }
  return found;
}

PreservedAnalyses ptc::codegen::StoreLonePass::run(Function &function, FunctionAnalysisManager &) {
  bool hasChanged = false;
  for (Instruction &op : make_early_inc_range(instructions(function))) {
    auto *call = dyn_cast<IntrinsicInst>(&op);
    if (!call || call->getIntrinsicID() != Intrinsic::masked_store)
      continue;
    auto *mask = dyn_cast<Constant>(call->getArgOperand(2));
    std::optional<unsigned> lane = mask ? findLoneLane(*mask) : std::nullopt;
    if (!lane)
      continue;
    IRBuilder<> b(call);
    Value *element = b.CreateExtractElement(call->getArgOperand(0), *lane);
    Value *at = b.CreateConstGEP1_64(element->getType(), call->getArgOperand(1), *lane);
    b.CreateAlignedStore(element, at, call->getParamAlign(1).valueOrOne())->copyMetadata(*call);
    call->eraseFromParent();
    hasChanged = true;
  }
  return hasChanged ? PreservedAnalyses::none() : PreservedAnalyses::all();
}
