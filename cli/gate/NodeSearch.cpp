// An output that is further from the reference than it was says nothing about where. So the model is compiled once
// more, with taps, and each node is computed from the library's own operands (cli/PerNode.h): a node that is off by
// more than its own rounding is to blame.
//
// Some nodes have no value of their own to look at: an attention kernel computes two products and the softmax between
// them, and all that can be seen is the last product. If that is wrong, a second compile names the values inside as
// taps, which makes the compiler compute each on its own, and the node inside that is wrong then is the one to blame.
// If none is, the fault is in how they are computed together, and all of them are named.
//
// A fault inside may also be lost in the rounding of what is seen. So where no node is wrong at first, the second
// compile shows all values that are inside any other.
#include "cli/gate/NodeSearch.h"
#include "cli/CompileSession.h"
#include "compiler/CustomOps.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ptc {

CompileHooks NodeSearch::hooks() {
  CompileHooks loud = hooksOf(session, "gate");
  return {.diagnostics = silent,
          .progress = std::move(loud.progress),
          .log = std::move(loud.log),
          .version = std::move(loud.version),
          .command = std::move(loud.command),
          .argumentFiles = std::move(loud.argumentFiles),
          .targets = loud.targets,
          .changePasses = std::move(loud.changePasses)};
}

Expected<std::string> NodeSearch::compileWith(const std::vector<std::string> &taps) {
  for (const auto &[names, path] : libraries)
    if (names == taps)
      return path;
  SmallString<128> path(folder);
  sys::path::append(path, "taps" + Twine(libraries.size()) + ".so");
  CompileOptions tapped = options;
  tapped.output = path.str().str();
  tapped.emit = {"so"};
  makePathsAbsolute(tapped.customOps);
  tapped.taps.assign(taps.begin(), taps.end());
  if (Error error = compile(tapped, hooks()))
    return std::move(error);
  libraries.emplace_back(taps, path.str().str());
  return path.str().str();
}

Expected<NodeComparison> NodeSearch::compareWith(const std::vector<std::string> &taps, StringRef level,
                                                 const std::vector<Tensor> &inputs) {
  Expected<std::string> path = compileWith(taps);
  if (!path)
    return path.takeError();
  Expected<ModelLibrary> library = ModelLibrary::open(session, *path);
  if (!library)
    return library.takeError();
  InstanceOptions instance;
  instance.threads = 1;
  instance.cpuLevel = level.str();
  return compareNodes(
      hooks(),
      {.model = options, .library = *library, .instance = instance, .inputs = inputs, .tolerance = std::nullopt});
}

/// What is wrong among `outer` and the values inside it, now that these are computed on their own.
static std::vector<WrongNode> lookInside(const WrongNode &outer, const NodeComparison &split) {
  std::vector<WrongNode> found;
  for (const WrongNode &node : split.wrong)
    if (node.name.value == outer.name.value ||
        any_of(outer.inside, [&](const NodeName &name) { return name.value == node.name.value; })) {
      found.push_back(node);
      found.back().kernel = outer.kernel; // the one that is at fault in the library as it is
    }
  return found.empty() ? std::vector{outer} : found;
}

/// What is wrong now that hidden values are computed on their own.
static std::vector<WrongNode> lookAtHidden(ArrayRef<HiddenValue> hidden, const NodeComparison &split) {
  std::vector<WrongNode> found = split.wrong;
  for (WrongNode &node : found)
    if (auto known = find_if(hidden, [&](const HiddenValue &value) { return value.name.value == node.name.value; });
        known != hidden.end())
      node.kernel = known->kernel; // the one that is at fault in the library as it is
  return found;
}

static std::string describeFirst(const WrongNode &node) {
  std::string text = "first differs at " + node.title;
  if (!node.kernel.empty())
    text += ", in kernel " + node.kernel;
  if (!node.failure.empty())
    return text + ": " + node.failure;
  raw_string_ostream os(text);
  os << format(": largest difference %.3g", node.difference.largest);
  if (node.isFloat)
    os << ", " << node.difference.largestUlp << " ulp";
  os << ", computed from the library's own operands";
  return text;
}

static NodeBlame blame(ArrayRef<WrongNode> wrong) {
  if (wrong.empty())
    return {{}, "no node alone differs by more than its rounding, given the library's own operands"};
  NodeBlame result;
  auto add = [&](const NodeName &name) {
    if (!is_contained(result.nodes, name.get()))
      result.nodes.push_back(name.get());
  };
  for (const WrongNode &node : wrong) {
    for_each(node.inside, add);
    add(node.name);
  }
  result.cause = describeFirst(wrong.front());
  if (size_t later = wrong.size() - 1)
    result.cause += "; " + std::to_string(later) + " later value(s) differ too, each from its own operands";
  return result;
}

NodeBlame NodeSearch::run(StringRef level, const std::vector<Tensor> &inputs) {
  auto failed = [](Error error) {
    return NodeBlame{{}, "the nodes could not be compared (" + toString(std::move(error)) + ")"};
  };
  Expected<NodeComparison> whole = compareWith({"all"}, level, inputs);
  if (!whole)
    return failed(whole.takeError());
  std::vector<std::string> taps = {"all"};
  for (const WrongNode &node : whole->wrong)
    for (const NodeName &name : node.inside)
      taps.push_back(name.value);
  if (whole->wrong.empty())
    for (const HiddenValue &value : whole->hidden)
      taps.push_back(value.name.value);
  if (taps.size() == 1)
    return blame(whole->wrong);
  Expected<NodeComparison> split = compareWith(taps, level, inputs);
  if (!split)
    return failed(split.takeError());
  if (whole->wrong.empty())
    return blame(lookAtHidden(whole->hidden, *split));
  std::vector<WrongNode> wrong;
  for (const WrongNode &node : whole->wrong)
    append_range(wrong, node.inside.empty() ? std::vector{node} : lookInside(node, *split));
  return blame(wrong);
}

} // namespace ptc
