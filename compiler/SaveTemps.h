// Files that let people look inside: stages and kernels of --save-temps, reproducers of defects.
#ifndef PTC_COMPILER_SAVETEMPS_H
#define PTC_COMPILER_SAVETEMPS_H

#include "compiler/Options.h"
#include "compiler/Phases.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace ptc {

/// Writes `text` to FOLDER/NAME; folders are made as needed.
llvm::Error saveText(llvm::StringRef folder, const llvm::Twine &name, llvm::StringRef text);

/// Writes the module before a stage that failed into a new file in the system's folder for temporary files, with the
/// command in a comment; returns its path.
llvm::Expected<std::string> writeReproducer(const CompileOptions &options, llvm::StringRef command, Phase phase,
                                            llvm::StringRef text);

} // namespace ptc

#endif // PTC_COMPILER_SAVETEMPS_H
