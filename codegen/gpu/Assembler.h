//===- Assembler.h - ptxas of the CUDA toolkit, where there is one -*- C++ -*-===//
#ifndef PTC_CODEGEN_GPU_ASSEMBLER_H
#define PTC_CODEGEN_GPU_ASSEMBLER_H

#include "codegen/object/CodeFacts.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ptc::gpu {

/// Where the toolkit puts its programs, besides the folders of PATH.
llvm::ArrayRef<llvm::StringRef> getToolkitFolders();
/// The path of ptxas; empty: there is none.
std::string findAssembler();
/// "13.0" of its toolkit; empty if it does not say so.
std::string getToolkitVersion(llvm::StringRef assembler);

/// Machine code of PTX text for one architecture (a cubin), and what the assembler says of it: registers, spills, stack
/// and bytes of code. Runs the program `assembler`; the error has its sentence.
struct Assembled {
  llvm::SmallVector<char, 0> cubin;
  uint64_t codeBytes = 0;
};
llvm::Expected<Assembled> assemble(llvm::StringRef assembler, llvm::StringRef text, llvm::StringRef architecture,
                                   object::CodeFacts &facts);

} // namespace ptc::gpu

#endif // PTC_CODEGEN_GPU_ASSEMBLER_H
