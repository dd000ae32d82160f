#include "compiler/Phases.h"
#include "llvm/ADT/STLExtras.h"

namespace ptc {

static constexpr PhaseRow rows[] = {
#define PHASE(Name, name, summary) {Phase::Name, name, summary},
#include "compiler/Phases.def"
#undef PHASE
};

llvm::ArrayRef<PhaseRow> getPhases() { return rows; }

std::optional<Phase> findMlirPhase(llvm::StringRef name) {
  for (const PhaseRow &row : rows)
    if (row.name == name && row.phase <= Phase::PlanMemory)
      return row.phase;
  return std::nullopt;
}

} // namespace ptc
