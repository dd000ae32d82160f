// Which nodes make a library's results worse than they were.
#ifndef PTC_CLI_GATE_NODESEARCH_H
#define PTC_CLI_GATE_NODESEARCH_H

#include "cli/PerNode.h"

namespace ptc {

struct NodeBlame {
  std::vector<std::string> nodes; // in the order of the graph
  std::string cause;              // "first differs at node 'soft' (Softmax → soft_out), ..."; or why no node is named
};

/// Searches one model, which is compiled anew, with taps, by the first search.
class NodeSearch {
public:
  /// Writes libraries into `folder`.
  NodeSearch(Session &session, const CompileOptions &options, llvm::StringRef folder)
      : session(session), options(options), folder(folder),
        silent(llvm::nulls(), {.format = DiagnosticFormat::Text}, options.model) {}

  /// At one CPU level. A failure is told in `cause`: what is being explained is found anyway.
  NodeBlame run(llvm::StringRef level, const std::vector<Tensor> &inputs);

private:
  llvm::Expected<std::string> compileWith(const std::vector<std::string> &taps);
  llvm::Expected<NodeComparison> compareWith(const std::vector<std::string> &taps, llvm::StringRef level,
                                             const std::vector<Tensor> &inputs);

  CompileHooks hooks();

  Session &session;
  CompileOptions options;
  std::string folder;
  Diagnostics silent; // the first compile of the model has said what there is to say
  std::vector<std::pair<std::vector<std::string>, std::string>> libraries; // by their taps
};

} // namespace ptc

#endif // PTC_CLI_GATE_NODESEARCH_H
