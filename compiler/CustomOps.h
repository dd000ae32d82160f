// --custom-op: libraries with operators of the user's own, as the importer asks them.
#ifndef PTC_COMPILER_CUSTOMOPS_H
#define PTC_COMPILER_CUSTOMOPS_H

#include "lowering/onnx/CustomOps.h"
#include "llvm/ADT/ArrayRef.h"

namespace ptc {

/// The operators that values of --custom-op name, DOMAIN.OP=LIBRARY:SYMBOL. Opens the libraries, which stay open as
/// long as one of their operators lives: a path, or a name of a file in the current folder or where the loader looks.
/// The artefact gets an absolute path as it is, and of any other the file's name.
llvm::Expected<std::vector<CustomOp>> openCustomOps(llvm::ArrayRef<std::string> specs);
/// Values of --custom-op for an artefact that lies in a folder of its own, as one that is made to be run at once: files
/// that are here by absolute paths.
void makePathsAbsolute(std::vector<std::string> &specs);

} // namespace ptc

#endif // PTC_COMPILER_CUSTOMOPS_H
