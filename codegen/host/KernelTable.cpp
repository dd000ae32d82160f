// Which function a launch calls, on every level.
//
// Kernels are shared: layers of one shape launch one function. That is good for size and caches, and bad for whoever
// looks at an address: a debugger or profiler would name the kernel and not the user's node. So with names of launches
// every launch has a function of its own, the same code under another symbol, `NODES [KERNEL.LEVEL]`. The object of the
// kernel is compiled once; its copies differ in that symbol alone (artifact::renameSymbol), since debug info of kernels
// consists of line tables without names.
#include "codegen/host/HostModule.h"

#include "ir/Diagnostics.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace ptc::host {

std::string nodesOf(mlir::Location location) {
  constexpr size_t most = 200;
  SmallSetVector<StringRef, 8> names;
  location->walk([&](mlir::Location part) {
    if (std::optional<NodeLocation> node = describeLocation(part))
      names.insert(node->node.empty() ? node->output : node->node);
    else if (auto name = mlir::dyn_cast<mlir::NameLoc>(part))
      names.insert(name.getName().getValue());
    return mlir::WalkResult::advance();
  });
  std::string text;
  for (StringRef name : names) {
    if (!text.empty() && text.size() + name.size() > most)
      return text + ", ...";
    text += (text.empty() ? "" : ", ") + name.str();
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
