//===- NodeSelection.h - the nodes that a flag asks for ---------*- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_NODESELECTION_H
#define PTC_LOWERING_ONNX_NODESELECTION_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/GlobPattern.h"
#include <string>
#include <vector>

namespace ptc::onnx_import {

/// What was asked for, compared with the model's nodes as they are imported: names of nodes or of values, patterns
/// of them (`layer1/*`), and `all`. A name asks for exactly that value; a pattern for what the program computes.
/// Not thread-safe.
class NodeSelection {
public:
  /// `flag` is named in messages ("--tap"), which say what `all` does there ("taps every one").
  NodeSelection(llvm::StringRef flag, llvm::StringRef all, llvm::ArrayRef<std::string> asked);

  enum class Kind { None, Pattern, Name };
  /// Whether the output of a node is asked for. The node is known by its path.
  Kind find(llvm::StringRef node, llvm::StringRef output);
  /// Reports what no node matched, with the name that comes closest; true if there is nothing.
  bool reportUnmatched(mlir::Location loc) const;

  bool empty() const { return asked.empty(); }

private:
  struct Asked {
    std::string text;
    std::optional<llvm::GlobPattern> pattern;
    bool isMatched = false;
  };
  std::string flag, all;
  std::vector<Asked> asked;
  std::vector<std::string> names; // of all nodes and outputs
};

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_NODESELECTION_H
