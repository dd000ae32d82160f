// What ptc verify --per-node prints.
#include "cli/CompileSession.h"
#include "cli/PerNode.h"
#include "llvm/Support/Format.h"

using namespace llvm;

namespace ptc {

/// "[0, 3, 1]" for a row-major position.
static std::string formatIndex(ArrayRef<int64_t> shape, int64_t position) {
  std::string text;
  for (int64_t extent : llvm::reverse(shape)) {
    text = std::to_string(position % extent) + (text.empty() ? "" : ", ") + text;
    position /= extent;
  }
  return "[" + text + "]";
}

static void reportDifference(raw_ostream &os, const WrongNode &node) {
  const Difference &difference = node.difference;
  int64_t count = 1;
  for (int64_t extent : node.shape)
    count *= extent;
  os << node.title << ", value '" << node.name.value << "': " << difference.count << " of " << count
     << " elements differ; " << format("largest difference %.3g", difference.largest);
  if (node.isFloat)
    os << ", " << difference.largestUlp << " ulp";
  if (difference.worst >= 0)
    os << "; at " << formatIndex(node.shape, difference.worst)
       << format(": %.9g, expected %.9g", node.actual, node.expected);
  os << '\n';
}

static void reportFirst(raw_ostream &os, const WrongNode &node) {
  os << "first node that differs: ";
  if (node.failure.empty())
    reportDifference(os, node);
  else
    os << node.title << ": " << node.failure << '\n';
  os << "  expected from the library's own values of what the node reads, which agree: the error is made here\n";
  if (!node.kernel.empty())
    os << "  kernel " << node.kernel << ", launch " << node.launch << ", of " << node.nodesOfKernel << '\n';
}

/// How many values have no tap, by reason, with the first few names.
static void reportUnseen(raw_ostream &os, ArrayRef<UnseenValues> unseen) {
  constexpr size_t shown = 3;
  for (const UnseenValues &group : unseen) {
    os << group.values.size() << " not compared, " << group.reason << ": ";
    for (auto [i, value] : llvm::enumerate(ArrayRef(group.values).take_front(shown)))
      os << (i ? ", " : "") << '\'' << value << '\'';
    os << (group.values.size() > shown ? ", ...\n" : "\n");
  }
}

static void reportFusion(raw_ostream &os, const FusionChange &fusion) {
  if (fusion.changed)
    os << "taps changed which nodes are fused in " << fusion.changed << " of " << fusion.launches
       << " launches; `ptc verify` without --per-node checks the library as it is without taps\n";
  else
    os << "taps changed no kernel's nodes: all " << fusion.launches << " launches are those without taps\n";
}

Error verifyPerNode(Session &session, const PerNodeRequest &request) {
  Expected<NodeComparison> compared = compareNodes(hooksOf(session, "verify"), request);
  if (!compared)
    return compared.takeError();
  raw_ostream &os = session.out;
  size_t wrong = compared->wrong.size();
  for (auto [i, node] : llvm::enumerate(compared->wrong))
    if (i == 0)
      reportFirst(os, node);
    else if (session.common.verbose && node.failure.empty())
      reportDifference(os << "also: ", node);
  if (wrong > 1)
    os << wrong - 1 << " later value(s) differ too, each from what it is computed from\n";
  os << compared->compared << " of " << compared->values << " values compared, ";
  if (wrong)
    os << compared->compared - wrong << " agree\n";
  else
    os << "all agree\n";
  reportUnseen(os, compared->unseen);
  if (compared->fusion)
    reportFusion(os, *compared->fusion);
  if (wrong)
    return exitError(exitDifference, Twine(wrong) + " of " + Twine(compared->compared) + " values differ");
  return Error::success();
}

} // namespace ptc
