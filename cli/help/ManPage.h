// Manual pages: ptc(1), and ptc-VERB(1) for each verb.
#ifndef PTC_CLI_HELP_MANPAGE_H
#define PTC_CLI_HELP_MANPAGE_H

#include "cli/help/VerbShape.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

namespace ptc {

void printManPage(llvm::raw_ostream &os, llvm::ArrayRef<VerbShape> verbs);
void printManPage(llvm::raw_ostream &os, const VerbShape &verb);

} // namespace ptc

#endif // PTC_CLI_HELP_MANPAGE_H
