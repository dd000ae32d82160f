//===- GraphImporter.h - nodes of ONNX graphs become prim ops ---*- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_GRAPHIMPORTER_H
#define PTC_LOWERING_ONNX_GRAPHIMPORTER_H

#include "lowering/decomp/OnnxOps.h"
#include "lowering/onnx/CustomOps.h"
#include "lowering/onnx/ImportOnnx.h"
#include "lowering/onnx/ModelFile.h"
#include "lowering/onnx/NodeSelection.h"
#include "lowering/onnx/Opsets.h"
#include "mlir/IR/BuiltinOps.h"

namespace ptc::onnx_import {

/// Values by name in one graph, subgraph or function body. A name may stand for nothing: an optional input that the
/// caller left out (`absent`), or a value whose node failed (`failed`), so that what depends on it is skipped in
/// silence.
class NameScope {
public:
  enum class State { Unknown, Absent, Failed, Known };
  struct Entry {
    State state = State::Unknown;
    mlir::Value value;
    const onnx::TensorProto *initializer = nullptr; // imported at its first use
  };

  explicit NameScope(NameScope *parent = nullptr) : parent(parent) {}
  Entry *find(llvm::StringRef name);
  void set(llvm::StringRef name, mlir::Value value);
  void setAbsent(llvm::StringRef name) { entries[name] = {State::Absent, {}, nullptr}; }
  void setInitializer(const onnx::TensorProto &tensor) { entries[tensor.name()] = {State::Known, {}, &tensor}; }

private:
  NameScope *parent;
  llvm::StringMap<Entry> entries;
};

class GraphImporter {
public:
  GraphImporter(mlir::OpBuilder &builder, decomp::ShapeScope &shapes, const ModelFile &file,
                const ImportOptions &options);

  /// Reads the graph's initializers and nodes; false if any failed.
  bool importGraph(const onnx::GraphProto &graph, NameScope &scope);
  /// The values of the graph's outputs; nothing if one failed.
  std::optional<decomp::Values> outputsOf(const onnx::GraphProto &graph, NameScope &scope);
  NodeSelection taps, keeps;
  CustomOps customOps;

private:
  /// Where a node stands: its names, its operator versions, and the path of calls around it.
  struct Frame {
    NameScope &scope;
    const Opsets &opsets;
    std::string path;
    unsigned depth;
    llvm::ArrayRef<std::string> results; // the names that are asked for once the nodes are imported
    unsigned forks = 0;                  // Ifs around it that have the rest of their graph inside
  };
  using Nodes = llvm::ArrayRef<const onnx::NodeProto *>;
  /// What importing a node came to. `Forks`: an If whose results differ in rank, of which nothing has been reported.
  enum class Outcome { Complete, Failed, Forks };

  bool importNodes(Nodes nodes, const Frame &frame);
  Outcome importNode(const onnx::NodeProto &node, const Frame &frame, const Nodes *rest = nullptr);
  bool importFork(const onnx::NodeProto &node, Nodes later, const Frame &frame);
  Outcome decompose(const onnx::NodeProto &node, const Frame &frame, llvm::ArrayRef<mlir::Value> inputs,
                    mlir::Location loc, decomp::Decomposition function, const Nodes *rest,
                    const CustomOp *custom = nullptr);
  std::optional<decomp::Values> importRest(const onnx::NodeProto &node, llvm::ArrayRef<mlir::Value> outputs, Nodes rest,
                                           llvm::ArrayRef<std::string> results, const Frame &frame);
  bool expand(const onnx::NodeProto &node, const Frame &frame, llvm::ArrayRef<mlir::Value> inputs, mlir::Location loc,
              const onnx::FunctionProto &function);
  bool expandSchema(const onnx::NodeProto &node, const Frame &frame, llvm::ArrayRef<mlir::Value> inputs,
                    mlir::Location loc);
  bool expandSchemaBody(const onnx::NodeProto &node, const Frame &frame, llvm::ArrayRef<mlir::Value> inputs,
                        mlir::Location loc);
  void restoreFloats(const onnx::NodeProto &node, const Frame &frame, const onnx::OpSchema &schema,
                     llvm::ArrayRef<mlir::Value> inputs, decomp::PrimBuilder &n);
  std::optional<decomp::Values> importSubgraph(const onnx::GraphProto &graph, llvm::ArrayRef<mlir::Value> inputs,
                                               const Frame &frame);
  bool haveNoMap(llvm::ArrayRef<mlir::Value> values);
  mlir::Value valueOf(NameScope::Entry &entry, bool isInline = false);
  void fail(const onnx::NodeProto &node, const Frame &frame);
  bool keepTypes(const onnx::NodeProto &node, mlir::Location loc, mlir::Operation *before);
  void tapOutputs(const onnx::NodeProto &node, const Frame &frame, mlir::Location loc, bool isCall);

  mlir::OpBuilder &builder;
  decomp::ShapeScope &shapes;
  const ModelFile &file;
  const ImportOptions &options;
  Opsets opsets;
  LocalFunctions functions;
  mlir::Block *entry; // weights and constants of all graphs stand at its beginning
  unsigned nodeCount = 0;
  int64_t tapCount = 0;
  uint64_t streamCount = 0; // of random numbers
  unsigned schemaDepth = 0; // of operators that their schemas' bodies define: the nodes inside are not the user's
};

/// Outputs of a node of the user's own operator; nothing after a diagnostic.
decomp::Values importCustomNode(decomp::NodeContext &context, const onnx::NodeProto &node, const CustomOp &op,
                                const ModelFile &file);

} // namespace ptc::onnx_import

#endif // PTC_LOWERING_ONNX_GRAPHIMPORTER_H
