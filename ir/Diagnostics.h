//===- Diagnostics.h - coded diagnostics at a model's nodes -----*- C++ -*-===//
//
// Every error about a user's model is a row of Diagnostics.def, emitted through
// `diagnose`. What a diagnostic handler receives is an ordinary MLIR diagnostic:
//
//   message   begins with `[PTC0412] `; the code names the row
//   location  of a node: a FusedLoc whose metadata is the dictionary
//             {node = "layer3/conv2", op = "Conv", output = "x_214"};
//             `describeLocation` reads it back. Anything else: the whole file.
//   notes     begin with `help: ` where they tell the user what to do; other
//             notes say more about what was found.
//
// Renderers (text, json, sarif) use parseCode, stripCode and describeLocation;
// the exit code of the program is the largest exitCode() of the errors seen.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_DIAGNOSTICS_H
#define PTC_IR_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/FormatVariadic.h"
#include <optional>
#include <string>

namespace ptc {

/// What the process exits with; cli/README.md lists the values.
enum class ExitClass : uint8_t {
  None = 0,
  Usage = 2,
  InvalidModel = 3,
  Unsupported = 4,
  Target = 5,
  File = 6,
  Limit = 8
};

enum class DiagId : uint16_t {
#define DIAG(code, name, exitClass, format) name,
#include "ir/Diagnostics.def"
#undef DIAG
};

struct DiagRow {
  unsigned code; // 412 is shown as PTC0412
  llvm::StringLiteral name;
  ExitClass exitClass;
  llvm::StringLiteral format;
};

const DiagRow &getDiagRow(DiagId id);
/// All rows in the order of the table, for `ptc explain` and the coverage test.
llvm::ArrayRef<DiagRow> getDiagRows();

/// "PTC0412"
std::string getCode(DiagId id);
/// The row named by the `[PTC0412] ` that a message begins with.
std::optional<DiagId> parseCode(llvm::StringRef message);
/// The message without its code.
llvm::StringRef stripCode(llvm::StringRef message);
inline int exitCode(DiagId id) { return static_cast<int>(getDiagRow(id).exitClass); }

/// Emits the row's sentence at `loc`. Add help with `addHelp`.
template <typename... Args> mlir::InFlightDiagnostic diagnose(mlir::Location loc, DiagId id, Args &&...args) {
  const DiagRow &row = getDiagRow(id);
  std::string text = llvm::formatv(/*Validate=*/false, row.format.data(), std::forward<Args>(args)...).str();
  mlir::InFlightDiagnostic diag = row.exitClass == ExitClass::None ? mlir::emitWarning(loc) : mlir::emitError(loc);
  diag << '[' << getCode(id) << "] " << text;
  return diag;
}

/// Attaches `help: text`.
void addHelp(mlir::InFlightDiagnostic &diag, const llvm::Twine &text);

/// The location of what a node of the model becomes.
mlir::Location makeNodeLocation(mlir::MLIRContext *context, llvm::StringRef node, llvm::StringRef op,
                                llvm::StringRef output);

struct NodeLocation {
  llvm::StringRef node, op, output; // any may be empty
};
/// The node that a location stems from, looking through fused and call-site
/// locations; nothing if it stems from none.
std::optional<NodeLocation> describeLocation(mlir::Location loc);
/// "node 'layer3/conv2' (Conv → x_214)"; empty if the location names no node.
std::string formatLocation(mlir::Location loc);

} // namespace ptc

#endif // PTC_IR_DIAGNOSTICS_H
