// Completion of command lines by the three shells.
#ifndef PTC_CLI_HELP_COMPLETION_H
#define PTC_CLI_HELP_COMPLETION_H

#include "cli/help/VerbShape.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

namespace ptc {

void printBashCompletion(llvm::raw_ostream &os, llvm::ArrayRef<VerbShape> verbs);
void printZshCompletion(llvm::raw_ostream &os, llvm::ArrayRef<VerbShape> verbs);
void printFishCompletion(llvm::raw_ostream &os, llvm::ArrayRef<VerbShape> verbs);

} // namespace ptc

#endif // PTC_CLI_HELP_COMPLETION_H
