// From an LLVM module to an object file, assembly or text. Everything here is safe to call from several threads, on
// modules of different contexts.
#ifndef PTC_CODEGEN_OBJECT_EMITOBJECT_H
#define PTC_CODEGEN_OBJECT_EMITOBJECT_H

#include "codegen/object/CodeFacts.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace ptc::object {

/// What LLVM is told about a processor. codegen/cpu's table of levels has one for each.
struct TargetLevel {
  std::string triple = "x86_64-unknown-linux-gnu";
  std::string cpu = "x86-64";
  std::string tuneCpu = "generic";
  std::string features;      // "+avx512vnni,-prefer-256-bit"
  unsigned vectorBits = 128; // vectors that LLVM's own vectorisers may use; 0: they do not run
  /// Whether LLVM's code generator moves constants in front of loops, for the outermost of which it fills registers
  /// that inner ones need.
  bool hoistsConstants = true;
};

/// Position independent code of the level, compiled without calls of a math library. optLevel: how much the code
/// generator does, as for optimizeModule.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const TargetLevel &level,
                                                                         unsigned optLevel = 2);

/// Machines to use again: one takes as long to make as a small kernel's code. Safe to use from several threads; the
/// kernels of one machine come one after the other.
class MachinePool {
public:
  /// A machine out of the pool, back in it when the result goes. The pool must live longer.
  class Loan {
  public:
    Loan(MachinePool &pool, std::string key, std::unique_ptr<llvm::TargetMachine> machine)
        : pool(&pool), key(std::move(key)), machine(std::move(machine)) {}
    Loan(Loan &&) = default;
    ~Loan();
    llvm::TargetMachine &operator*() const { return *machine; }

  private:
    MachinePool *pool;
    std::string key;
    std::unique_ptr<llvm::TargetMachine> machine; // null where it was moved on
  };

  llvm::Expected<Loan> take(const TargetLevel &level, unsigned optLevel);

private:
  std::mutex mutex;
  llvm::StringMap<std::vector<std::unique_ptr<llvm::TargetMachine>>> idle; // by what createTargetMachine is told
};

/// Sets triple, data layout and the level's function attributes; do this before optimising.
void prepareModule(llvm::Module &module, const TargetLevel &level, const llvm::TargetMachine &machine);

/// LLVM's default pipeline for -O<level>, 0 to 3.
void optimizeModule(llvm::Module &module, const TargetLevel &level, llvm::TargetMachine &machine,
                    unsigned optLevel = 2);

enum class EmissionKind { Object, Assembly };

/// Machine code of a prepared (and optimised) module. The module is changed. `facts`, if any, gets what it is like.
llvm::Expected<llvm::SmallVector<char, 0>> emitModule(llvm::Module &module, llvm::TargetMachine &machine,
                                                      EmissionKind kind = EmissionKind::Object,
                                                      CodeFacts *facts = nullptr, bool hoistsConstants = true);

/// prepareModule, optimizeModule and emitModule with a machine of the level; for the optLevel 0 nothing is optimised.
llvm::Expected<llvm::SmallVector<char, 0>> emitObject(llvm::Module &module, const TargetLevel &level,
                                                      unsigned optLevel = 2);

/// The same for a module that is optimised already.
llvm::Expected<llvm::SmallVector<char, 0>> emitOptimized(llvm::Module &module, const TargetLevel &level,
                                                         EmissionKind kind = EmissionKind::Object,
                                                         unsigned optLevel = 2, CodeFacts *facts = nullptr);

/// The module as LLVM IR text.
std::string printModule(const llvm::Module &module);

/// The PTC_RT_... bits (runtime/include/ptc/descriptor.h) that a processor needs to run code for `cpu` with `features`.
/// An error for a processor or feature that the runtime cannot detect.
llvm::Expected<uint64_t> runtimeFeatures(llvm::StringRef cpu, llvm::StringRef features);

} // namespace ptc::object

#endif
