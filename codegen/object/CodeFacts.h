// What LLVM made of a kernel, counted where it is known: loops on the optimised IR, registers and stack on the machine
// code that is about to be printed.
#ifndef PTC_CODEGEN_OBJECT_CODEFACTS_H
#define PTC_CODEGEN_OBJECT_CODEFACTS_H

#include <cstdint>

namespace llvm {
class MachineFunctionPass;
class Module;
} // namespace llvm

namespace ptc::object {

/// Sums over the functions of a module; the largest of widths. Registers are 0 for targets whose assembler chooses them
/// (PTX).
struct CodeFacts {
#define CODE_FACT(field, name, text, better) int64_t field = 0;
#include "codegen/object/CodeFacts.def"
#undef CODE_FACT
  bool operator==(const CodeFacts &) const = default;
};

/// Adds what the optimised IR tells: loops, and the widest access by vectors.
void countLoops(llvm::Module &module, CodeFacts &facts);

/// A pass for the end of code generation, after the last change of machine code, that adds registers, spills and stack.
/// `facts` must outlive it and have the loops already. The caller owns it.
llvm::MachineFunctionPass *createCountRegistersPass(CodeFacts &facts);

} // namespace ptc::object

#endif
