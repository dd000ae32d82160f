// Which function a launch calls, on every level.
//
// Kernels are shared: layers of one shape launch one function. That is good for size and caches, and bad for whoever
// looks at an address: a debugger or profiler would name the kernel and not the user's node. So with names of launches
// every launch has a function of its own, the same code under another symbol, `NODES [KERNEL.LEVEL]`. The object of the
// kernel is compiled once; its copies differ in that symbol alone (artifact::renameSymbol), since debug info of kernels
// consists of line tables without names.
#include "codegen/host/HostModule.h"

#include "ir/Diagnostics.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace ptc::host {

/// The user's nodes behind a location, each once; of one without a name its output.
static std::vector<std::string> namesOf(mlir::Location location) {
  SmallSetVector<StringRef, 8> names;
  location->walk([&](mlir::Location part) {
    if (std::optional<NodeLocation> node = describeLocation(part))
      names.insert(node->node.empty() ? node->output : node->node);
    else if (auto name = mlir::dyn_cast<mlir::NameLoc>(part))
      names.insert(name.getName().getValue());
    return mlir::WalkResult::advance();
  });
  return std::vector<std::string>(names.begin(), names.end());
}

std::string nodesOf(mlir::Location location) {
  constexpr size_t most = 200;
  std::string text;
  for (const std::string &name : namesOf(location)) {
    if (!text.empty() && text.size() + name.size() > most)
      return text + ", ...";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

/// Nodes as they may begin a symbol: an '@' would start a version, a leading '.' or '$' makes symbols that assemblers
/// and debuggers drop, and control characters would garble a listing.
static std::string symbolText(StringRef nodes) {
  std::string text = nodes.empty() ? "no node" : nodes.str();
  for (char &c : text)
    if (c == '@' || static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      c = '_';
  return text.front() == '.' || text.front() == '$' ? "_" + text : text;
}

/// `layer_0_fc1_MatMul_Add` of layer.0/fc1/MatMul and layer.0/fc1/Add: what a node's path has in common with that of
/// the node in front of it is not repeated.
static std::string entryText(mlir::Location location) {
  constexpr size_t most = 80;
  SmallVector<StringRef> before, path;
  std::string text;
  for (const std::string &node : namesOf(location)) {
    path.clear();
    StringRef(node).split(path, '/', -1, /*KeepEmpty=*/false);
    size_t common = 0;
    while (common + 1 < std::min(path.size(), before.size()) && path[common] == before[common])
      ++common;
    for (StringRef part : ArrayRef(path).drop_front(common))
      for (char c : ("_" + part).str())
        if (isAlnum(c) || (!text.empty() && text.back() != '_'))
          text += isAlnum(c) ? c : '_';
    before = path;
  }
  text.resize(std::min(text.size(), most));
  return StringRef(text).rtrim('_').str();
}

std::vector<std::string> entryNames(const HostInputs &inputs) {
  MapVector<mlir::Operation *, std::pair<std::string, unsigned>> launches;
  for (const HostFunction &function : inputs.functions)
    for (loop::ProgramOp program : function.variants)
      program->walk([&](loop::LaunchOp launch) {
        if (loop::KernelOp kernel = kernelOf(launch))
          if (auto [at, isNew] = launches.try_emplace(kernel, entryText(launch.getLoc()), 0); !isNew)
            ++at->second.second;
      });
  std::vector<std::string> names;
  for (auto &[op, first] : launches) {
    std::string name = mlir::cast<loop::KernelOp>(op).getSymName().str();
    if (!first.first.empty())
      name += "__" + first.first;
    if (first.second > 0)
      name += "_and_" + std::to_string(first.second) + "_more";
    names.push_back(std::move(name));
  }
  return names;
}

std::string KernelEntry::symbol(StringRef level) const {
  std::string function = kernelSymbol(launchedKernel(), level);
  return nodes.empty() ? function : nodes + " [" + function + "]";
}

StringRef KernelEntry::launchedKernel() const {
  loop::KernelOp op = kernel; // a handle, whose functions are not const
  return op.getSymName();
}

bool KernelEntry::runsOnHost() const {
  loop::KernelOp op = kernel;
  return op.getOnHost().has_value();
}

KernelTable tabulateKernels(const HostInputs &inputs) {
  KernelTable table;
  DenseMap<mlir::Operation *, unsigned> shared;
  StringMap<unsigned> taken; // by nodes and kernel
  auto add = [&](loop::LaunchOp launch) {
    loop::KernelOp kernel = kernelOf(launch);
    if (!kernel)
      return;
    auto [known, isNew] = shared.try_emplace(kernel, table.entries.size());
    if (isNew || inputs.namesLaunches)
      table.entries.push_back({kernel, ""});
    table.ofLaunch[launch] = inputs.namesLaunches ? table.entries.size() - 1 : known->second;
    if (!inputs.namesLaunches)
      return;
    std::string &nodes = table.entries.back().nodes = symbolText(nodesOf(launch.getLoc()));
    if (unsigned copies = ++taken[nodes + "\n" + kernel.getSymName().str()]; copies > 1)
      nodes += " #" + std::to_string(copies);
  };
  for (const HostFunction &function : inputs.functions)
    for (loop::ProgramOp program : function.variants)
      program->walk(add);
  return table;
}

} // namespace ptc::host
