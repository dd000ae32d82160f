// Which nodes of a model a library computes wrong.
#ifndef PTC_CLI_PERNODE_H
#define PTC_CLI_PERNODE_H

#include "cli/Comparison.h"
#include "cli/ModelLibrary.h"
#include "compiler/Pipeline.h"

namespace ptc {

struct PerNodeRequest {
  const CompileOptions &model; // whose graph says what is expected
  const ModelLibrary &library; // compiled with taps
  const InstanceOptions &instance;
  std::vector<Tensor> inputs;
  std::optional<Tolerance> tolerance; // none: what rounding may do to one node, by its type
  /// Also says which kernels the taps have changed: the library was compiled with the options of `model` and all taps.
  bool isOwnLibrary = false;
};

/// A value of the user's graph, and the node that it is of.
struct NodeName {
  std::string node, value; // a node need not have a name
  const std::string &get() const { return node.empty() ? value : node; }
};

/// A node whose value is out of tolerance, given the library's own values of what it reads.
struct WrongNode {
  NodeName name;
  std::string title;     // "node 'soft' (Softmax → soft_out)"
  std::string failure;   // why there is nothing to compare; then what follows up to `kernel` is not set
  Difference difference; // in a tensor of `shape`; `actual` and `expected` are those of the worst element
  std::vector<int64_t> shape;
  bool isFloat = false;
  double actual = 0, expected = 0;
  std::string kernel, nodesOfKernel; // empty: no kernel computes it
  uint32_t launch = 0;
  /// Values that are computed on the way from what it reads and that the library does not show: the node to blame may
  /// be that of one of these.
  std::vector<NodeName> inside;
};

/// A value that the library does not show, inside the computation of one that it shows and that is in tolerance.
struct HiddenValue {
  NodeName name;
  std::string kernel; // of the first such value
};

struct FusionChange {
  size_t launches = 0, changed = 0; // of the library without taps; with taps they hold other nodes
};

struct UnseenValues {
  std::string reason;
  std::vector<std::string> values;
};

struct NodeComparison {
  std::vector<WrongNode> wrong;     // in the order of the graph
  size_t values = 0, compared = 0;  // of the graph; that the library shows
  std::vector<UnseenValues> unseen; // the others
  std::vector<HiddenValue> hidden;  // of the others, those that may still be wrong without its being seen
  std::optional<FusionChange> fusion;
};

/// Runs the library once and computes each node that it shows from the library's own values of what the node reads.
llvm::Expected<NodeComparison> compareNodes(const CompileHooks &hooks, const PerNodeRequest &request);

/// Prints what compareNodes finds. Exit code 1 if a node is out of tolerance.
llvm::Error verifyPerNode(Session &session, const PerNodeRequest &request);

} // namespace ptc

#endif // PTC_CLI_PERNODE_H
