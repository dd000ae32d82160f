// Where every complaint of ptc takes its final form.
//
// Two kinds arrive: MLIR diagnostics about the user's model (ir/Diagnostics.h has their code and node) and llvm::Errors
// about the outside world. Both become a DiagnosticRecord, and records become text, JSON or SARIF. The exit code of the
// program is the largest of the records'.
#ifndef PTC_COMPILER_DIAGNOSTICRENDERING_H
#define PTC_COMPILER_DIAGNOSTICRENDERING_H

#include "ir/Diagnostics.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

namespace ptc {

/// Exit codes that do not stem from a diagnostic's row.
enum ExitCode : int {
  exitOk = 0,
  exitDifference = 1,
  exitUsage = 2,
  exitInvalidModel = 3,
  exitUnsupported = 4,
  exitTarget = 5,
  exitFile = 6,
  exitRunFailure = 7,
  exitLimit = 8,
  exitInternal = 70,
  exitNoDevice = 77
};

enum class DiagnosticFormat : uint8_t { Text, Json, Sarif };

struct DiagnosticRecord {
  enum class Severity : uint8_t { Error, Warning, Remark } severity = Severity::Error;
  std::string code, name;       // "PTC0412", "BadShape"; empty for what is not about the model
  std::string subject;          // file or program that the sentence is about
  std::string node, op, output; // of the model's node, if any
  std::string message;
  std::vector<std::string> notes, helps;
  std::vector<std::string> parts; // for programs: what kind of remark it is, then what it is made of
  int exitCode = exitInternal;
};

/// One line of text, notes and helps indented below it.
void printText(llvm::raw_ostream &os, const DiagnosticRecord &record, bool color);

/// Collects what happens in one run of ptc. Thread-safe.
class Diagnostics {
public:
  struct Style {
    DiagnosticFormat format = DiagnosticFormat::Text;
    bool color = false;
    bool remarks = false; // MLIR remarks are dropped without it
  };
  Diagnostics(llvm::raw_ostream &os, Style style, std::string subject)
      : os(os), style(style), subject(std::move(subject)) {}
  /// JSON and SARIF are written here.
  ~Diagnostics();

  /// The file that later MLIR diagnostics are about.
  void setSubject(llvm::StringRef path) { subject = path.str(); }
  void showRemarks(bool on) { style.remarks = on; }
  /// Gets the remarks instead of the printer.
  std::function<void(const DiagnosticRecord &)> onRemark;
  /// Called before a line is printed: clears a progress bar.
  std::function<void()> beforePrint;

  void report(DiagnosticRecord record);
  void report(mlir::Diagnostic &diagnostic);
  /// An error of the outside world; one that was reported already (see ReportedError) is dropped.
  void report(llvm::Error error);
  void error(int exitCode, const llvm::Twine &message, const llvm::Twine &help = "");

  unsigned errorCount() const { return errors; }
  int exitCode() const { return exit; }
  llvm::ArrayRef<DiagnosticRecord> getRecords() const { return records; }

private:
  llvm::raw_ostream &os;
  Style style;
  std::string subject;
  std::mutex mutex;
  std::vector<DiagnosticRecord> records;
  unsigned errors = 0;
  int exit = exitOk;
};

/// What a function returns after it, or what it called, has reported diagnostics.
class ReportedError : public llvm::ErrorInfo<ReportedError> {
public:
  static char ID;
  void log(llvm::raw_ostream &os) const override { os << "already reported"; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
};
inline llvm::Error reported() { return llvm::make_error<ReportedError>(); }

/// An error with an exit code of its own.
class ExitError : public llvm::ErrorInfo<ExitError> {
public:
  static char ID;
  ExitError(int code, std::string message, std::string help = "")
      : code(code), message(std::move(message)), help(std::move(help)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  int code;
  std::string message, help;
};
llvm::Error exitError(int code, const llvm::Twine &message, const llvm::Twine &help = "");

} // namespace ptc

#endif // PTC_COMPILER_DIAGNOSTICRENDERING_H
