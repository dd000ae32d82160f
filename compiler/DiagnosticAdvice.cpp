#include "compiler/DiagnosticAdvice.h"
#include <iterator>

using namespace llvm;

namespace ptc {

static constexpr DiagnosticAdvice rows[] = {
#define ADVICE(Name, meaning, remedy) {meaning, remedy},
#include "compiler/DiagnosticAdvice.def"
#undef ADVICE
};

static constexpr DiagId order[] = {
#define ADVICE(Name, meaning, remedy) DiagId::Name,
#include "compiler/DiagnosticAdvice.def"
#undef ADVICE
};

static constexpr unsigned count = 0
#define DIAG(code, name, exitClass, format) +1
#include "ir/Diagnostics.def"
#undef DIAG
    ;

/// Rows are found by their number, so the tables have the same order.
static constexpr bool isInOrder() {
  for (unsigned i = 0; i < std::size(order); ++i)
    if (static_cast<unsigned>(order[i]) != i)
      return false;
  return true;
}
static_assert(std::size(rows) == count && isInOrder(), "DiagnosticAdvice.def has the rows of Diagnostics.def in order");

const DiagnosticAdvice &getAdvice(DiagId id) { return rows[static_cast<unsigned>(id)]; }

StringRef describe(ExitClass exitClass) {
  switch (exitClass) {
  case ExitClass::None:
    return "a warning";
  case ExitClass::Usage:
    return "an error in the flags (exit code 2)";
  case ExitClass::InvalidModel:
    return "an error in the model (exit code 3)";
  case ExitClass::Unsupported:
    return "the model is valid, but not supported (exit code 4)";
  case ExitClass::Target:
    return "a problem of the target or device (exit code 5)";
  case ExitClass::File:
    return "a problem with a file or the disk (exit code 6)";
  case ExitClass::Limit:
    return "a limit of resources (exit code 8)";
  }
  llvm_unreachable("all exit classes have a name");
}

} // namespace ptc
