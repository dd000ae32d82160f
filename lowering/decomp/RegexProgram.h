//===- RegexProgram.h - regular expressions, compiled -----------*- C++ -*-===//
//
// Expressions in RE2's syntax become programs of runtime/src/regex.c, which runs
// them in time proportional to text and program.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_DECOMP_REGEXPROGRAM_H
#define PTC_LOWERING_DECOMP_REGEXPROGRAM_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ptc::decomp {

/// The program that matches all of a text; nothing, with a reason, if the expression is not valid or has what is not
/// supported: \p{...} and \C. Back references and look-around are not in RE2's language.
std::optional<std::vector<int32_t>> compileRegex(llvm::StringRef pattern, std::string &problem);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_REGEXPROGRAM_H
