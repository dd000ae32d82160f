// What the headers of C and of C++ say about a model in their comments.
#ifndef PTC_COMPILER_ARTIFACT_HEADERTEXT_H
#define PTC_COMPILER_ARTIFACT_HEADERTEXT_H

#include "codegen/host/Interface.h"
#include "llvm/Support/raw_ostream.h"

namespace ptc::artifact {

/// A comment cannot be ended by a user's name, nor begun a second time, nor go on in the next line.
std::string inComment(llvm::StringRef text);

/// "[batch, 3]"
std::string dimsText(const host::Value &value);

/// "1 <= batch <= 64, a multiple of 8"
std::string describeRange(const host::Symbol &symbol);

/// Inputs, outputs, guards and variants of a function, each in a line of its own behind `prefix`.
void describeValues(llvm::raw_ostream &os, const host::Function &function, llvm::StringRef prefix);

/// The include guard of a model's header.
std::string includeGuard(const host::ModelInterface &model, llvm::StringRef fileName);

} // namespace ptc::artifact

#endif
