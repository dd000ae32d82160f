// What the machine under this process has of what ptc and its libraries can use.
#ifndef PTC_COMPILER_MACHINE_H
#define PTC_COMPILER_MACHINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ptc {

struct Finding {
  enum class State : uint8_t {
    Ok,
    Absent, // not here, and needed for some uses only
    Missing // without it no library can be made for this machine's processor and run on it
  };
  llvm::StringLiteral subject; // "memory"
  State state;
  std::string found; // a line or several
  std::string help;  // what to do, if it is not here
};

/// In a fixed order, the same subjects on every machine. Starts child processes for a moment, since a device's driver
/// is asked there; call it from a process that has no threads.
std::vector<Finding> examineMachine();

/// The name of the first CUDA device, or an ExitError that says what is missing: exitNoDevice. Asks a child process, as
/// examineMachine does.
llvm::Expected<std::string> nameCudaDevice();
/// The best level for it, likewise.
llvm::Expected<std::string> findCudaLevel();
/// Whether the loader finds one of these shared libraries.
bool hasSharedLibrary(llvm::ArrayRef<const char *> names);

/// The part of it that is devices and their tools, and the runtime of OpenMP.
std::vector<Finding> examineOptionalParts();

} // namespace ptc

#endif // PTC_COMPILER_MACHINE_H
