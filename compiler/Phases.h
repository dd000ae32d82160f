// The stages of a compile as an enum; the table is Phases.def.
#ifndef PTC_COMPILER_PHASES_H
#define PTC_COMPILER_PHASES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace ptc {

enum class Phase : uint8_t {
#define PHASE(Name, name, summary) Name,
#include "compiler/Phases.def"
#undef PHASE
};

struct PhaseRow {
  Phase phase;
  llvm::StringLiteral name;
  llvm::StringLiteral summary;
};

/// All stages, in order.
llvm::ArrayRef<PhaseRow> getPhases();
inline const PhaseRow &getRow(Phase phase) { return getPhases()[static_cast<size_t>(phase)]; }
/// The stage whose result is text of MLIR and has this name.
std::optional<Phase> findMlirPhase(llvm::StringRef name);

} // namespace ptc

#endif // PTC_COMPILER_PHASES_H
