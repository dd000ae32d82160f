// Which files a compile writes, from -o and --emit.
#ifndef PTC_COMPILER_OUTPUTPLAN_H
#define PTC_COMPILER_OUTPUTPLAN_H

#include "compiler/Options.h"
#include "compiler/Phases.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace ptc {

enum class OutputKind : uint8_t {
  SharedLibrary,
  StaticLibrary,
  Object,
  Header,
  CppHeader,
  Manifest,
  Llvm,
  Assembly,
  Mlir,
  Onnx
};

struct Output {
  OutputKind kind;
  Phase phase;          // of OutputKind::Mlir and Onnx
  llvm::StringRef name; // the word of --emit; "mlir" and "onnx" for all stages
  std::string path;     // "-": standard output, for text
};

struct OutputPlan {
  std::vector<Output> outputs; // the main one first
  std::string name;            // of the model in C
  std::string depfile;         // empty: none
  std::string weights;         // of --weights=file: the file beside the library
  std::string listing;         // of --debug-info: the file that line tables are about
  std::string stats, timeTrace;
  bool needsHost = false; // some output holds the entry functions or describes them

  const Output *find(OutputKind kind) const;
  /// The last stage that any output needs.
  Phase lastPhase() const;
  /// Whether the output is a stage's result, which needs nothing of what comes after it.
  static bool isStage(OutputKind kind) { return kind == OutputKind::Mlir || kind == OutputKind::Onnx; }
  bool writesWeights() const { return !weights.empty() && lastPhase() == Phase::Link; }
  /// Every file that is written: what it is, in words, and its path.
  std::vector<std::pair<std::string, std::string>> files() const;
  /// The main output with another suffix.
  std::string beside(llvm::StringRef suffix) const;
};

/// The main output is the first kind of --emit, under exactly the name of -o; without --emit the suffix of -o decides,
/// and without one that the target writes, its default. `written`: the kinds that targets write, the default first.
/// No two outputs share a file, and the suffix of -o does not name a kind that is not written there.
llvm::Expected<OutputPlan> planOutputs(const CompileOptions &options, llvm::ArrayRef<llvm::StringRef> written);

/// An error if an output would take the place of one of `inputs`, under whatever name.
llvm::Error checkInputsKept(const OutputPlan &plan, llvm::ArrayRef<std::string> inputs);

} // namespace ptc

#endif // PTC_COMPILER_OUTPUTPLAN_H
