//===- CodeFacts.cpp - loops, vectors, registers and spills of a kernel ---===//
//
// Loops are counted before instruction selection, where LoopInfo is exact and a vector still is a type: an innermost
// loop counts as one over vectors if any instruction of it makes or stores a vector of numbers (masks, vectors of i1,
// do not count: a scalar loop may carry one). Machine code would be later, but there the same register holds a scalar
// and a vector.
//
// Registers are counted after all machine passes. A vector register is one that holds four floats, whatever part or
// extension of it an instruction names; all others that the allocator may use count as general. The width of vectors
// is that of the widest vector register in use. A spill or reload is an instruction that stores to or loads from a slot
// which the register allocator made, folded ones included: what the comments of assembly text call so.
//
//===----------------------------------------------------------------------===//
#include "codegen/object/CodeFacts.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/MemoryLocation.h"
#include "llvm/CodeGen/MachineFrameInfo.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace ptc::object {

/// Bits of a vector of numbers, else 0.
static int64_t vectorBitsOf(const Type *type) {
  auto *vector = dyn_cast<FixedVectorType>(type);
  if (!vector || vector->getNumElements() < 2 || vector->getElementType()->isIntegerTy(1))
    return 0;
  return int64_t(vector->getPrimitiveSizeInBits().getFixedValue());
}

static int64_t vectorBitsOf(const Instruction &instruction) {
  if (auto *store = dyn_cast<StoreInst>(&instruction))
    return vectorBitsOf(store->getValueOperand()->getType());
  return vectorBitsOf(instruction.getType());
}

void countLoops(Module &module, CodeFacts &facts) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    DominatorTree dominators(function);
    LoopInfo loops(dominators);
    for (const Loop *loop : loops.getLoopsInPreorder()) {
      if (!loop->isInnermost())
        continue;
      bool hasVectors = any_of(loop->blocks(), [](const BasicBlock *block) {
        return any_of(*block, [](const Instruction &instruction) { return vectorBitsOf(instruction) != 0; });
      });
      ++(hasVectors ? facts.vectorLoops : facts.scalarLoops);
    }
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        facts.vectorBits = std::max(facts.vectorBits, vectorBitsOf(instruction));
  }
}

namespace {

/// The registers of one machine that hold vectors.
class VectorRegisters {
public:
  VectorRegisters(const TargetRegisterInfo &registers) : registers(registers), whole(registers.getNumRegs()) {
    for (const TargetRegisterClass *set : registers.regclasses())
      if (set->isAllocatable() && registers.isTypeLegalForClass(*set, MVT::v4f32))
        for (MCPhysReg reg : *set)
          whole.set(reg);
  }
  /// The vector register that `reg` is a part or an extension of, or none.
  MCPhysReg find(MCRegister reg) const {
    for (MCPhysReg other : registers.subregs_inclusive(reg))
      if (whole.test(other))
        return other;
    for (MCPhysReg other : registers.superregs(reg))
      if (whole.test(other))
        return other;
    return 0;
  }
  int64_t widthOf(MCRegister reg) const {
    for (auto [type, bits] : {std::pair(MVT::v16f32, 512), {MVT::v8f32, 256}, {MVT::v4f32, 128}})
      for (const TargetRegisterClass *set : registers.regclasses())
        if (set->contains(reg) && registers.isTypeLegalForClass(*set, type))
          return bits;
    return 0;
  }

private:
  const TargetRegisterInfo &registers;
  BitVector whole;
};

class CountRegisters : public MachineFunctionPass {
public:
  static char ID;
  CountRegisters(CodeFacts &facts) : MachineFunctionPass(ID), facts(facts) {}
  StringRef getPassName() const override { return "count registers"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override {
    countRegisters(function);
    countSpills(function);
    return false;
  }

private:
  void countRegisters(MachineFunction &function);
  void countSpills(MachineFunction &function);
  CodeFacts &facts;
};

char CountRegisters::ID = 0;

} // namespace

/// The widest allocatable register that `reg` is a part of.
static MCPhysReg wholeOf(const TargetRegisterInfo &registers, const BitVector &allocatable, MCRegister reg) {
  MCPhysReg widest = 0;
  for (MCPhysReg other : registers.superregs_inclusive(reg))
    if (allocatable.test(other))
      widest = other;
  return widest;
}

void CountRegisters::countRegisters(MachineFunction &function) {
  const TargetRegisterInfo &registers = *function.getSubtarget().getRegisterInfo();
  BitVector allocatable = registers.getAllocatableSet(function);
  VectorRegisters vectors(registers);
  BitVector seen(registers.getNumRegs()), wholes(registers.getNumRegs());
  int64_t width = 0;
  for (const MachineBasicBlock &block : function)
    for (const MachineInstr &instruction : block)
      for (const MachineOperand &operand : instruction.explicit_operands()) // vzeroupper names all of them implicitly
        if (operand.isReg() && operand.getReg().isPhysical() && !instruction.isDebugInstr())
          seen.set(operand.getReg());
  for (unsigned reg : seen.set_bits()) {
    if (MCPhysReg vector = vectors.find(reg)) {
      facts.vectorRegisters += !wholes.test(vector);
      wholes.set(vector);
      width = std::max(width, vectors.widthOf(reg));
    } else if (MCPhysReg whole = wholeOf(registers, allocatable, reg)) {
      facts.generalRegisters += !wholes.test(whole);
      wholes.set(whole);
    }
  }
  // Where IR has no vectors these registers hold scalars; where there are no such registers IR's types stand.
  if (facts.vectorBits && width)
    facts.vectorBits = width;
}

void CountRegisters::countSpills(MachineFunction &function) {
  const TargetInstrInfo *instructions = function.getSubtarget().getInstrInfo();
  facts.stackBytes += int64_t(function.getFrameInfo().getStackSize());
  for (const MachineBasicBlock &block : function)
    for (const MachineInstr &instruction : block) {
      facts.spills += instruction.getSpillSize(instructions) || instruction.getFoldedSpillSize(instructions);
      facts.reloads += instruction.getRestoreSize(instructions) || instruction.getFoldedRestoreSize(instructions);
    }
}

MachineFunctionPass *createCountRegistersPass(CodeFacts &facts) { return new CountRegisters(facts); }

} // namespace ptc::object
