// What a check found, in the forms that people and machines read.
#ifndef PTC_COMPILER_GATE_REPORT_H
#define PTC_COMPILER_GATE_REPORT_H

#include "compiler/gate/Compare.h"
#include "llvm/Support/raw_ostream.h"

namespace ptc::gate {

/// One baseline's part of a report.
struct CheckResult {
  std::string baseline; // path as given
  std::string model;    // name
  std::vector<Finding> findings;
  std::string problem, help; // why it could not be checked, and the way out; empty: it was
  double seconds = 0;
  std::vector<std::string> lines; // of the baseline, to point reports at a line

  Verdict verdict() const { return judge(findings); }
};

struct ReportStyle {
  bool allowImprovements = false;
  std::string updateCommand; // "ptc gate update tests/gates/x.json": what keeps a change
  std::string version;       // of ptc
};

bool passes(const CheckResult &result, const ReportStyle &style);

/// The line of the baseline that a finding is about, from 1: that of its kernel or buffer, or the first.
unsigned lineOf(const CheckResult &result, const Finding &finding);

/// The names of --format, in one text for --help.
llvm::ArrayRef<llvm::StringLiteral> getFormats();
/// `format` is one of getFormats().
void writeReport(llvm::raw_ostream &os, llvm::StringRef format, llvm::ArrayRef<CheckResult> results,
                 const ReportStyle &style);

void writeText(llvm::raw_ostream &os, llvm::ArrayRef<CheckResult> results, const ReportStyle &style);
void writeJson(llvm::raw_ostream &os, llvm::ArrayRef<CheckResult> results, const ReportStyle &style);
void writeJunit(llvm::raw_ostream &os, llvm::ArrayRef<CheckResult> results, const ReportStyle &style);
void writeSarif(llvm::raw_ostream &os, llvm::ArrayRef<CheckResult> results, const ReportStyle &style);
void writeGithub(llvm::raw_ostream &os, llvm::ArrayRef<CheckResult> results, const ReportStyle &style);
void writeGitlab(llvm::raw_ostream &os, llvm::ArrayRef<CheckResult> results, const ReportStyle &style);

/// Two baselines for a review: totals, then findings, in Markdown.
void writeMarkdown(llvm::raw_ostream &os, const Baseline &before, const Baseline &after,
                   llvm::ArrayRef<Finding> findings);

} // namespace ptc::gate

#endif // PTC_COMPILER_GATE_REPORT_H
