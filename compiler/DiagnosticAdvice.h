// What a diagnostic means and what to do, for people who look its code up.
#ifndef PTC_COMPILER_DIAGNOSTICADVICE_H
#define PTC_COMPILER_DIAGNOSTICADVICE_H

#include "ir/Diagnostics.h"

namespace ptc {

struct DiagnosticAdvice {
  llvm::StringLiteral meaning, remedy;
};

const DiagnosticAdvice &getAdvice(DiagId id);
/// "the model is valid, but not supported (exit code 4)"
llvm::StringRef describe(ExitClass exitClass);

} // namespace ptc

#endif // PTC_COMPILER_DIAGNOSTICADVICE_H
