// ptc check: each node of a model, and what stands in its way.
#ifndef PTC_COMPILER_CHECKMODEL_H
#define PTC_COMPILER_CHECKMODEL_H

#include "compiler/Pipeline.h"
#include "lowering/onnx/Operators.h"

namespace ptc {

struct CheckedNode {
  enum State : uint8_t {
    Supported,
    Refused,  // for `reason`
    Behind,   // it needs a node that is refused, or has one in a graph of its own
    Unchecked // something else is wrong with the model
  } state = Supported;
  ModelNode node;
  std::string code, reason; // "PTC0301", its sentence
  std::vector<std::string> helps;
  std::string cause; // of Behind: the first refused node that it needs
};

struct ModelReport {
  std::vector<CheckedNode> nodes;
  bool isSupported = false;
  size_t count(CheckedNode::State state) const;
};

llvm::StringRef nameOf(CheckedNode::State state);
/// The node's name, or that of what it makes.
std::string nameOf(const ModelNode &node);

/// Takes the model as far as it goes without generating code. What is wrong has been reported when this returns; only
/// errors that are not about the model are errors of this. `hooks` of the compilation should say findsAll.
llvm::Expected<ModelReport> checkModel(Compilation &compilation);

} // namespace ptc

#endif // PTC_COMPILER_CHECKMODEL_H
